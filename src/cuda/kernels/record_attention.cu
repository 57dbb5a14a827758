/* Attention as jobs. */
#include "cuda/wide/attention.h"
#include "record.h"

#include <math.h>

static void note_rows(const n2_call *c, job *j, bool of_keys, int64_t notes) {
    j->attention.of_keys = of_keys;
    noted *n = n2_queue_add(c->queue, j, pieces(j->n, JOB_ROWS));
    n2_note_read(n, j->in[0], n_in(c, 0));
    if (j->in[1]) n2_note_read(n, j->in[1], n_in(c, 1));
    if (of_keys) n2_note_read(n, j->more[0], notes);
    if (notes && !of_keys) n2_note_write(n, j->more[0], notes);
    n2_note_write(n, j->out, n_out(c));
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
    j.attention = job_attention{(uint32_t)a.t,
                                (uint32_t)a.heads,
                                (uint32_t)a.d,
                                (uint32_t)a.c,
                                (uint32_t)a.step,
                                (float)(1 / sqrt((double)a.d)),
                                0};
    if (back) {
        j.in[1] = in_of(c, 1);
        j.more[0] = n2_queue_scratch(c->queue, out_of(c), 3 * j.n);
    }
    note_rows(c, &j, false, back ? 3 * j.n : 0);
    if (back) note_rows(c, &j, true, 3 * j.n);
}
