/* Convolutions as jobs. */
#include "record.h"

static job_conv conv_shape(const n2_conv *v) {
    job_conv s;
    memset(&s, 0, sizeof s);
    s.h = (int32_t)v->h, s.w = (int32_t)v->w, s.c_in = (int32_t)v->c_in;
    s.rows = (int32_t)v->rows, s.columns = (int32_t)v->columns;
    s.oh = (int32_t)v->oh, s.ow = (int32_t)v->ow, s.c_out = (int32_t)v->c_out;
    s.stride_y = v->window.stride_y, s.stride_x = v->window.stride_x;
    s.top = v->window.top, s.left = v->window.left;
    s.lines = s.slice_lines = (uint32_t)(v->n * v->oh);
    return s;
}

/* Positions along an axis, the frame's and those of its kernel included, have 31 bits. */
static bool has_small_axes(const n2_call *c, const n2_conv *v) {
    const n2_window w = v->window;
    return fits(c, 2 * (v->h + w.top + w.bottom + w.stride_y)) &&
           fits(c, 2 * (v->w + w.left + w.right + w.stride_x)) && fits(c, 2 * v->c_in) &&
           fits(c, 2 * v->c_out) && fits(c, 2 * v->rows * v->columns) && fits(c, v->n * v->oh);
}

void n2_note_conv(const n2_call *c) {
    enum { SLICES = 64, LINES = 16 }; /* at most; at least, of a slice */
    const n2_conv v = n2_conv_of(c);
    job j = job_of(c, JOB_CONV);
    if (j.n == 0 || !has_small_axes(c, &v)) return;
    j.in[0] = in_of(c, 0);
    j.in[1] = in_of(c, 1);
    j.conv = conv_shape(&v);
    const int64_t size = j.n, lines = v.n * v.oh, some = pieces(lines, SLICES);
    int64_t slices = 1;
    if (j.op == N2_OP_conv2d_weight && lines > LINES) {
        j.conv.slice_lines = (uint32_t)(some < LINES ? (int64_t)LINES : some);
        slices = pieces(lines, j.conv.slice_lines);
    }
    if (slices > 1) {
        j.add = false;
        j.n = slices * size;
        j.out = n2_queue_scratch(c->queue, out_of(c), j.n);
    }
    if (!fits(c, j.n)) return;
    noted *n = n2_queue_add(c->queue, &j, shares(j.n));
    n2_note_read(n, j.in[0], n_in(c, 0));
    n2_note_read(n, j.in[1], n_in(c, 1));
    n2_note_write(n, j.out, j.n);
    if (slices > 1 && n) n2_note_sum_slices(c, j.out, out_of(c), slices, size);
}
