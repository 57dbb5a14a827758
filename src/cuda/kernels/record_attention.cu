/* Attention as jobs. */
#include "cuda/wide/attention.h"
#include "record.h"

#include <math.h>

static void note_rows(const n2_call *c, job *j, bool of_keys, int64_t notes) {
    j->attention.of_keys = of_keys;
    noted *n = n2_queue_add(c->queue, j, pieces(j->n, JOB_ROWS));
    for (int k = 0; k < c->node->n_in; k++) n2_wide_reads(n, &c->in[k]);
    if (of_keys) n2_note_read(n, j->more[0], notes);
    if (notes && !of_keys) n2_note_write(n, j->more[0], notes);
    n2_wide_writes(n, &c->out);
}

static job_attention shape_of(const n2_call *c, const n2_attention *a) {
    job_attention s;
    memset(&s, 0, sizeof s);
    s.t = (uint32_t)a->t, s.heads = (uint32_t)a->heads, s.d = (uint32_t)a->d;
    s.c = (uint32_t)a->c, s.step = (uint32_t)a->step;
    s.scale = (float)(1 / sqrt((double)a->d));
    s.type_x = (uint8_t)c->in[0].dtype;
    s.type_dy = (uint8_t)c->in[1].dtype;
    s.type_out = (uint8_t)c->out.dtype;
    return s;
}

/* Of a gradient queries are first: what is known of them then, three numbers each, is noted for
 * their keys. */
void n2_note_attention(const n2_call *c) {
    const n2_attention a = n2_attention_of(c);
    const bool back = c->node->op->id == N2_OP_attention_grad;
    if (n2_attention_takes(c)) return n2_note_wide_attention(c);
    job j = job_of(c, JOB_ATTENTION);
    if (j.n == 0 || !fits(c, 2 * n_in(c, 0))) return;
    j.n = a.n * a.heads * a.t;
    j.in[0] = in_of(c, 0);
    j.attention = shape_of(c, &a);
    if (back) {
        j.in[1] = in_of(c, 1);
        j.more[0] = n2_queue_scratch(c->queue, out_of(c), 3 * j.n);
    }
    note_rows(c, &j, false, back ? 3 * j.n : 0);
    if (back) note_rows(c, &j, true, 3 * j.n);
}
