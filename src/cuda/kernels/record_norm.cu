/* Norms as jobs. */
#include "cuda/wide/norm.h"
#include "record.h"

void n2_note_norm(const n2_call *c) {
    const n2_normed v = n2_normed_of(c);
    const n2_norm a = c->node->attr->norm;
    if (n2_wide_norm_takes(c)) return n2_note_wide_norm(c);
    job j = job_of(c, JOB_NORM);
    if (j.n == 0 || !fits(c, v.positions + 32) || !fits(c, v.c) || !fits(c, v.n * a.groups)) return;
    j.f[0] = a.eps;
    j.f[1] = a.slope;
    j.norm.positions = (uint32_t)v.positions;
    j.norm.c = (uint32_t)v.c;
    j.norm.each = (uint32_t)v.each;
    j.norm.groups = (uint32_t)a.groups;
    j.norm.act = (uint32_t)a.act;
    j.norm.type_x = c->in[0].dtype;
    j.norm.type_dy = c->in[4].dtype;
    j.norm.type_out = c->out.dtype;
    for (int k = 0; k < 4; k++) j.in[k] = c->node->in[k].id ? in_of(c, k) : NULL;
    for (int k = 1; k < 4; k++) j.norm.step[k - 1] = (uint32_t)n2_norm_step(c, k);
    if (c->node->n_in > 4) j.gate = in_of(c, 4);
    noted *n = n2_queue_add(c->queue, &j, v.n * a.groups);
    for (int k = 0; k < c->node->n_in; k++)
        if (c->node->in[k].id)
            n2_note_read(n, in_of(c, k), n2_floats_of(c->in[k].dtype, n_in(c, k)));
    n2_note_write(n, j.out, n2_floats_of(c->out.dtype, j.n));
}
