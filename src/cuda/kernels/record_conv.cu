/* Convolutions as jobs: of ours, or calls of a library, which wants kernels turned over. */
#include "cuda/library/library.h"
#include "cuda/runtime/edit.h"
#include "cuda/wide/few.h"
#include "record.h"

/* Which operand of the three ops is which; OUT: the output. */
enum { OUT = -1 };
typedef struct conv_places {
    int x, k, y;
} conv_places;

static conv_places places_of(int op) {
    return op == N2_OP_conv2d         ? conv_places{0, 1, OUT}
           : op == N2_OP_conv2d_input ? conv_places{OUT, 1, 0}
                                      : conv_places{0, OUT, 1};
}

static n2_dtype type_at(const n2_call *c, int place) {
    return place == OUT ? c->out.dtype : c->in[place].dtype;
}

static job_conv conv_shape(const n2_call *c, const n2_conv *v) {
    const conv_places at = places_of(c->node->op->id);
    job_conv s;
    memset(&s, 0, sizeof s);
    s.h = (int32_t)v->h, s.w = (int32_t)v->w, s.c_in = (int32_t)v->c_in;
    s.rows = (int32_t)v->rows, s.columns = (int32_t)v->columns;
    s.oh = (int32_t)v->oh, s.ow = (int32_t)v->ow, s.c_out = (int32_t)v->c_out;
    s.stride_y = v->window.stride_y, s.stride_x = v->window.stride_x;
    s.top = v->window.top, s.left = v->window.left;
    s.lines = s.slice_lines = (uint32_t)(v->n * v->oh);
    s.strict = c->queue->strict;
    s.type_x = (uint8_t)type_at(c, at.x);
    s.type_k = (uint8_t)type_at(c, at.k);
    s.type_y = (uint8_t)type_at(c, at.y);
    return s;
}

/* Positions along an axis, the frame's and those of its kernel included, have 31 bits. */
static bool has_small_axes(const n2_call *c, const n2_conv *v) {
    const n2_window w = v->window;
    return fits(c, 2 * (v->h + w.top + w.bottom + w.stride_y)) &&
           fits(c, 2 * (v->w + w.left + w.right + w.stride_x)) && fits(c, 2 * v->c_in) &&
           fits(c, 2 * v->c_out) && fits(c, 2 * v->rows * v->columns) && fits(c, v->n * v->oh);
}

static int64_t floats_at(const n2_call *c, int place) {
    return place == OUT ? n2_floats_of(c->out.dtype, n_out(c))
                        : n2_floats_of(c->in[place].dtype, n_in(c, place));
}

/* ---- ours ---------------------------------------------------------------- */

static void note_ours(const n2_call *c, job j, int64_t lines) {
    enum { SLICES = 64, LINES = 16 }; /* at most; at least, of a slice */
    const int64_t size = j.n, some = pieces(lines, SLICES);
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
    n2_note_read(n, j.in[0], floats_at(c, 0));
    n2_note_read(n, j.in[1], floats_at(c, 1));
    n2_note_write(n, j.out, slices > 1 ? j.n : floats_at(c, OUT));
    if (slices > 1 && n) n2_note_sum_slices(c, j.out, out_of(c), slices, size);
}

/* ---- a library's --------------------------------------------------------- */

/* A matrix that a job turns over. */
static job turn_job(const n2_queue *q, const float *in, int64_t rows, int64_t columns,
                    n2_dtype from, n2_dtype into) {
    job j;
    memset(&j, 0, sizeof j);
    j.kind = JOB_TURN;
    j.in[0] = in;
    j.n = rows * columns;
    j.state = q->state;
    j.turn.rows = (uint32_t)rows;
    j.turn.columns = (uint32_t)columns;
    j.turn.tiles = job_divide_by((uint32_t)pieces(columns, TURN_TILE));
    j.turn.from = from;
    j.turn.into = into;
    return j;
}

static void note_turn(n2_queue *q, const job *j) {
    const job_turn *t = &j->turn;
    noted *n = n2_queue_add(q, j, pieces(t->rows, TURN_TILE) * t->tiles.by);
    n2_note_read(n, j->in[0], n2_floats_of((n2_dtype)t->from, j->n));
    n2_note_write(n, j->out, n2_floats_of((n2_dtype)t->into, j->n));
}

/* A kernel turned over, as it was made last, if neither it nor the kernel has changed since; NULL:
 * there is none. */
static const float *find_turned(const n2_queue *q, const job *wanted) {
    for (size_t i = q->n; i-- > 0;) {
        const job *j = &q->list[i].j;
        if (j->kind != JOB_TURN || j->in[0] != wanted->in[0] ||
            memcmp(&j->turn, &wanted->turn, sizeof j->turn) != 0)
            continue;
        const int64_t floats = n2_floats_of((n2_dtype)j->turn.into, j->n);
        const bool changed = n2_is_written_between(q, i, q->n, j->in[0], j->n) ||
                             n2_is_written_between(q, i, q->n, j->out, floats);
        return changed ? NULL : j->out;
    }
    return NULL;
}

/* Made once for all who read it between two updates. */
static const float *turn_kernel(const n2_call *c, const job_conv *v, n2_dtype into) {
    n2_queue *q = c->queue;
    const float *kernel = in_of(c, 1);
    job j = turn_job(q, kernel, n_in(c, 1) / v->c_out, v->c_out, c->in[1].dtype, into);
    const float *there = find_turned(q, &j);
    if (there) return there;
    j.out = n2_queue_scratch(q, (const char *)kernel + 1, n2_floats_of(into, j.n));
    note_turn(q, &j);
    return j.out;
}

/* n numbers as another type. */
static void note_cast(n2_queue *q, const float *in, n2_dtype from, float *out, n2_dtype into,
                      int64_t numbers) {
    job j;
    memset(&j, 0, sizeof j);
    j.kind = JOB_CAST;
    j.in[0] = in;
    j.out = out;
    j.n = numbers;
    j.m = from;
    j.k = into;
    j.state = q->state;
    noted *n = n2_queue_add(q, &j, shares(numbers));
    n2_note_read(n, in, n2_floats_of(from, numbers));
    n2_note_write(n, out, n2_floats_of(into, numbers));
}

/* Pictures that the op reads, of the type that all of them are to have. */
static const float *pictures_as(const n2_call *c, int place, n2_dtype type) {
    if (c->in[place].dtype == type) return in_of(c, place);
    float *out = n2_queue_scratch(c->queue, (const char *)in_of(c, place) + 1,
                                  n2_floats_of(type, n_in(c, place)));
    note_cast(c->queue, in_of(c, place), c->in[place].dtype, out, type, n_in(c, place));
    return out;
}

static void note_call(n2_queue *q, const job *j) {
    const job_conv *v = &j->conv;
    const n2_dtype type = (n2_dtype)v->type_x;
    const int64_t x = (int64_t)(v->lines / (uint32_t)v->oh) * v->h * v->w * v->c_in;
    const int64_t y = (int64_t)v->lines * v->ow * v->c_out;
    const int64_t k = (int64_t)v->rows * v->columns * v->c_in * v->c_out;
    noted *n = n2_queue_add(q, j, shares(j->n));
    n2_note_read(n, j->in[0], n2_floats_of(type, j->op == N2_OP_conv2d_input ? y : x));
    n2_note_read(n, j->in[1], n2_floats_of(type, j->op == N2_OP_conv2d_weight ? y : k));
    n2_note_write(n, j->out, n2_floats_of(type, j->n));
}

/* Memory for what a library makes of it, if that is not yet the output. */
static void make_elsewhere(const n2_call *c, job *j, n2_dtype type) {
    j->out = n2_queue_scratch(c->queue, (const char *)out_of(c) + 1, n2_floats_of(type, j->n));
    j->add = j->kept = false;
}

/* How many pictures go at once. A library adds up all pixels in float32: where that is to be as
 * exact as double precision is elsewhere, it adds up some, and our job the rest. */
static int64_t pictures_at_once(const job_conv *v) {
    enum { PIXELS = 512, PARTS = 16 }; /* at least, of a part; at most */
    const int64_t n = v->lines / (uint32_t)v->oh;
    const int64_t some = pieces(PIXELS, (int64_t)v->oh * v->ow), part = pieces(n, PARTS);
    return !v->strict ? n : some > part ? some : part;
}

/* A kernel's gradient, which our job turns over. */
static void note_weight(const n2_call *c, job j, n2_dtype type) {
    n2_queue *q = c->queue;
    const job_conv v = j.conv;
    const int64_t all = v.lines / (uint32_t)v.oh, step = pictures_at_once(&v);
    const float *x = pictures_as(c, 0, type), *y = pictures_as(c, 1, type);
    make_elsewhere(c, &j, type);
    for (int64_t first = 0; first < all; first += step) {
        const int64_t some = all - first < step ? all - first : step;
        j.in[0] = x + n2_floats_of(type, first * v.h * v.w * v.c_in);
        j.in[1] = y + n2_floats_of(type, first * v.oh * v.ow * v.c_out);
        j.conv.lines = j.conv.slice_lines = (uint32_t)(some * v.oh);
        note_call(q, &j);
        job turned = turn_job(q, j.out, v.c_out, j.n / v.c_out, type, c->out.dtype);
        turned.out = out_of(c);
        turned.add = c->add || first > 0;
        turned.kept = c->kept;
        note_turn(q, &turned);
    }
}

/* All have one type, in 16 bits if pictures have. Its kernels and gradients of kernels are turned
 * over by jobs of ours; so is our own kernel's, if the library has nothing for it. */
static void note_library(const n2_call *c, job j) {
    job_conv *v = &j.conv;
    const n2_dtype type = (n2_dtype)(v->type_x ? v->type_x : v->type_y), out = c->out.dtype;
    v->type_x = v->type_k = v->type_y = (uint8_t)type;
    v->strict = v->strict && type == N2_NUMBER;
    v->turned = true;
    j.kind = JOB_LIBRARY;
    if (j.op == N2_OP_conv2d_weight) return note_weight(c, j, type);
    j.in[0] = pictures_as(c, 0, type);
    j.in[1] = turn_kernel(c, v, type);
    if (out != type) make_elsewhere(c, &j, type);
    note_call(c->queue, &j);
    if (out != type) note_cast(c->queue, j.out, type, out_of(c), out, j.n);
}

void n2_note_conv(const n2_call *c) {
    const n2_conv v = n2_conv_of(c);
    job j = job_of(c, JOB_CONV);
    if (j.n == 0 || !has_small_axes(c, &v)) return;
    j.in[0] = in_of(c, 0);
    j.in[1] = in_of(c, 1);
    j.conv = conv_shape(c, &v);
    if (n2_few_takes(c, &v))
        n2_few_note(c, &v);
    else if (n2_library_takes(c->queue, &j))
        note_library(c, j);
    else
        note_ours(c, j, v.n * v.oh);
}
