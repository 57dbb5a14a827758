/* Calls of the engine as passes. */
#include "cuda/kernels/record.h"
#include "pass.h"

/* ---- addresses ----------------------------------------------------------- */

const void *n2_pass_input_at(const job *j, int k) {
    return k < 4 ? j->in[k] : k == 4 ? j->gate : j->addend;
}

void *n2_pass_output_at(const job *j, int k) { return k == 0 ? j->out : j->more[k - 1]; }

void n2_pass_set_input(job *j, int k, const void *at) {
    *(k < 4 ? &j->in[k] : k == 4 ? &j->gate : &j->addend) = (const float *)at;
}

void n2_pass_set_output(job *j, int k, void *at) {
    *(k == 0 ? &j->out : &j->more[k - 1]) = (float *)at;
}

static bool is_aligned_16(const void *x) { return (uintptr_t)x % 16 == 0; }

bool n2_pass_is_whole(const wide_pass *p, const job *j) {
    bool whole = p->n % 8 == 0;
    for (int k = 0; k < p->n_inputs; k++)
        whole &= p->input[k].way != PASS_ALONG || is_aligned_16(n2_pass_input_at(j, k));
    for (int k = 0; k < p->n_outputs; k++) {
        const pass_output *o = &p->output[k];
        whole &= is_aligned_16(n2_pass_output_at(j, k));
        whole &= !o->pitched || (o->width.by % 8 == 0 && o->pitch % 8 == 0);
    }
    return whole;
}

/* ---- which --------------------------------------------------------------- */

/* Pictures of many numbers, and whatever has an operand in 16 bits, which other jobs cannot read.
 */
bool n2_pass_takes(const n2_call *c) {
    bool narrow = c->out.dtype != N2_NUMBER;
    for (int k = 0; k < c->node->n_in; k++) narrow |= c->in[k].dtype != N2_NUMBER;
    const n2_op_id op = c->node->op->id;
    if (op == N2_OP_n2ce_term || op == N2_OP_n2ce_weight) return false;
    const bool always = n2_wide_pays(c->queue, 1);
    return narrow || always || (c->out.shape.rank >= 4 && n2_wide_pays(c->queue, n_out(c)));
}

/* ---- operands ------------------------------------------------------------ */

static span span_of_view(const n2_view *v, bool written) {
    const uintptr_t begin = (uintptr_t)v->data;
    const int64_t floats = n2_floats_of(v->dtype, n2_elements(v->shape));
    return span{begin, begin + (uintptr_t)floats * sizeof(float), written, 0, 0, 0};
}

static const void *element_of(const n2_view *v, int64_t i) {
    return (const char *)v->data + (size_t)i * n2_dtype_bytes(v->dtype, sizeof(float));
}

static pass_axes axes_as_passed(const axes *all) {
    pass_axes a = {};
    a.rank = all->rank ? all->rank : 1;
    a.length[0] = job_divide_by(1);
    for (int k = 0; k < all->rank; k++) {
        a.length[k] = job_divide_by((uint32_t)all->length[k]);
        a.step[k] = (uint32_t)all->step[0][k];
    }
    return a;
}

static uint8_t way_of(const pass_axes *a, const void *at) {
    bool eight = a->step[0] == 1 && is_aligned_16(at);
    for (int k = 1; k < a->rank; k++) eight &= a->step[k] % 8 == 0;
    if (a->rank == 1 && a->step[0] == 1) return PASS_ALONG;
    if (a->rank > 1 && a->length[0].by % 8 != 0) return PASS_EACH;
    return a->step[0] == 0 ? PASS_ONE : a->step[0] == 1 && eight ? PASS_EIGHT : PASS_EACH;
}

/* An operand whose element `first` is the first that is read, with these steps. */
static void add_input(wide_pass *p, job *j, const n2_view *v, int64_t first, const axes *all) {
    pass_input *in = &p->input[p->n_inputs];
    const void *at = element_of(v, first);
    in->type = (uint8_t)v->dtype;
    in->axes = axes_as_passed(all);
    in->way = way_of(&in->axes, at);
    in->memory = span_of_view(v, false);
    n2_pass_set_input(j, p->n_inputs++, at);
}

static void add_broadcast(wide_pass *p, job *j, const n2_view *v, n2_shape out) {
    axes all = {};
    for (int k = out.rank - 1; k >= 0; k--)
        add_axis(&all, out.dim[k], operand_step(v->shape, out, k), 0);
    add_input(p, j, v, 0, &all);
}

/* Numbers from one index of an axis to the next. */
static int64_t step_along(n2_shape s, int axis) {
    int64_t step = 1;
    for (int k = axis + 1; k < s.rank; k++) step *= s.dim[k];
    return step;
}

static void add_slice(wide_pass *p, job *j, const n2_call *c) {
    const n2_shape in = c->in[0].shape, out = c->out.shape;
    axes all = {};
    for (int k = out.rank - 1; k >= 0; k--) add_axis(&all, out.dim[k], step_along(in, k), 0);
    const int axis = (int)c->node->attr->along.axis;
    add_input(p, j, &c->in[0], c->node->attr->along.begin * step_along(in, axis), &all);
}

/* One of the four pixels that become one. */
static void add_pooled(wide_pass *p, job *j, const n2_call *c, int which) {
    const n2_shape in = c->in[0].shape, out = c->out.shape;
    const int64_t line = step_along(in, 1), pixel = step_along(in, 2);
    axes all = {};
    add_axis(&all, out.dim[3], 1, 0);
    add_axis(&all, out.dim[2], 2 * pixel, 0);
    add_axis(&all, out.dim[1], 2 * line, 0);
    add_axis(&all, out.dim[0], step_along(in, 0), 0);
    add_input(p, j, &c->in[0], which / 2 * line + which % 2 * pixel, &all);
}

static void add_upsampled(wide_pass *p, job *j, const n2_call *c) {
    const n2_shape in = c->in[0].shape;
    axes all = {};
    add_axis(&all, in.dim[3], 1, 0);
    add_axis(&all, 2, 0, 0);
    add_axis(&all, in.dim[2], step_along(in, 2), 0);
    add_axis(&all, 2, 0, 0);
    add_axis(&all, in.dim[1], step_along(in, 1), 0);
    add_axis(&all, in.dim[0], step_along(in, 0), 0);
    add_input(p, j, &c->in[0], 0, &all);
}

static void add_output(wide_pass *p, const n2_view *v) {
    p->output[0].type = (uint8_t)v->dtype;
    p->output[0].memory = span_of_view(v, true);
    p->n_outputs = 1;
}

/* Columns of an output that is wider, of rows of `pitch` elements. */
static void add_columns(wide_pass *p, job *j, const n2_view *v, int64_t column, int64_t width,
                        int64_t pitch) {
    pass_output *o = &p->output[0];
    add_output(p, v);
    n2_pass_set_output(j, 0, (void *)element_of(v, column));
    if (width == pitch) return;
    o->pitched = true;
    o->width = job_divide_by((uint32_t)width);
    o->pitch = (uint32_t)pitch;
    const int64_t per_float = v->dtype == N2_NUMBER ? 1 : 2;
    if (column % per_float || width % per_float || pitch % per_float) return;
    const rectangle r = {(const float *)v->data, n2_elements(v->shape) / pitch, pitch / per_float,
                         column / per_float, width / per_float};
    o->memory = n2_span_of(&r, true);
}

/* ---- notes --------------------------------------------------------------- */

static void add_step(wide_pass *p, int op, int a, int b, float f0, float f1) {
    const uint8_t to = (uint8_t)(p->n_inputs + p->n_steps);
    p->step[p->n_steps++] = pass_step{(uint8_t)a, (uint8_t)b, to, (uint8_t)op, {f0, f1}};
    p->n_slots = (uint8_t)(to + 1);
    p->output[0].slot = to;
}

static void note(const n2_call *c, job *j, wide_pass *p) {
    j->n = p->n;
    p->whole = n2_pass_is_whole(p, j);
    noted *n = n2_wide_add(c->queue, j, WIDE_PASS, p, sizeof *p);
    for (int k = 0; k < p->n_inputs; k++) n2_note_span(n, p->input[k].memory);
    for (int k = 0; k < p->n_outputs; k++) n2_note_span(n, p->output[k].memory);
}

/* A pass for each of what lies side by side. */
static void note_parts(const n2_call *c) {
    const int axis = (int)c->node->attr->along.axis;
    const int64_t inner = step_along(c->out.shape, axis), pitch = c->out.shape.dim[axis] * inner;
    int64_t column = 0;
    for (int k = 0; k < c->node->n_in; k++) {
        const int64_t width = c->in[k].shape.dim[axis] * inner;
        job j = job_of(c, JOB_WIDE);
        wide_pass p = {};
        p.n = (uint32_t)n_in(c, k);
        if (p.n == 0) continue;
        add_broadcast(&p, &j, &c->in[k], c->in[k].shape);
        add_columns(&p, &j, &c->out, column, width, pitch);
        add_step(&p, N2_OP_concat, 0, 0, 0, 0);
        note(c, &j, &p);
        column += width;
    }
}

static void fill_in(const n2_call *c, job *j, wide_pass *p) {
    const int op = c->node->op->id;
    const float a = (float)c->node->attr->a, b = (float)c->node->attr->b;
    if (op == N2_OP_pool2) {
        for (int k = 0; k < 4; k++) add_pooled(p, j, c, k);
        add_step(p, N2_OP_add, 0, 1, 0, 0);
        add_step(p, N2_OP_add, 2, 3, 0, 0);
        p->step[1].to = 1; /* the first sum is in 4 */
        p->step[2] = pass_step{4, 1, 0, N2_OP_add, {0, 0}};
        p->step[3] = pass_step{0, 0, 0, N2_OP_affine, {a, 0}};
        p->n_steps = 4;
        p->n_slots = 5;
        p->output[0].slot = 0;
    } else if (op == N2_OP_upsample2) {
        add_upsampled(p, j, c);
        add_step(p, N2_OP_affine, 0, 0, a, 0);
    } else if (op == N2_OP_slice) {
        add_slice(p, j, c);
        add_step(p, op, 0, 0, 0, 0);
    } else {
        for (int k = 0; k < c->node->n_in; k++) add_broadcast(p, j, &c->in[k], c->out.shape);
        add_step(p, op, 0, c->node->n_in - 1, a, b);
    }
}

void n2_note_pass(const n2_call *c) {
    job j = job_of(c, JOB_WIDE);
    wide_pass p = {};
    if (j.n == 0 || !fits(c, j.n)) return;
    for (int k = 0; k < c->node->n_in; k++)
        if (!fits(c, n_in(c, k))) return;
    if (c->node->op->id == N2_OP_concat) return note_parts(c);
    p.n = (uint32_t)j.n;
    add_output(&p, &c->out);
    fill_in(c, &j, &p);
    note(c, &j, &p);
}

float *n2_pass_widened(const n2_call *c, int k) {
    n2_view out = c->in[k];
    job j = job_of(c, JOB_WIDE);
    wide_pass p = {};
    p.n = (uint32_t)n_in(c, k);
    if (p.n == 0 || !fits(c, n_in(c, k))) return NULL;
    j.out = n2_queue_scratch(c->queue, (const char *)c->in[k].data + 1, p.n);
    j.kept = false;
    if (!j.out) return NULL;
    out.data = j.out;
    out.dtype = N2_NUMBER;
    add_output(&p, &out);
    add_broadcast(&p, &j, &c->in[k], out.shape);
    add_step(&p, N2_OP_cast, 0, 0, 0, 0);
    note(c, &j, &p);
    return j.out;
}
