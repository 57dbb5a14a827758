/* The backend's kernels, as the engine calls them: each notes jobs in the queue of the call.
 * Shapes become numbers of blocks here; the arithmetic is in jobs_*.h. */
#include "record.h"

#include "cuda/fused_mlp/fused_mlp.h"
#include "cuda/wide/pass.h"
#include "cuda/wide/sums.h"

#include <math.h>

/* ---- element-wise -------------------------------------------------------- */

/* Whether four elements are consecutive in an operand, or one and the same. */
static bool goes_by_vec4(const job *j, int operand) {
    const uint32_t *step = j->loops.step[operand];
    bool whole = is_aligned(j->in[operand]);
    for (int k = 1; k < j->loops.rank; k++) whole &= step[k] % 4 == 0;
    return step[0] == 0 || (step[0] == 1 && whole);
}

static bool overlaps(const span *s, const float *x, int64_t n) {
    return s->begin < (uintptr_t)(x + n) && s->end > (uintptr_t)x;
}

/* Memory that the product reads at element i no later than it writes element i may be the
 * very same. */
static bool can_write_too(const noted *product, const float *out, int64_t n) {
    const bool same = out == product->j.addend || out == product->j.gate;
    for (int s = 0; s < product->n_spans; s++) {
        const span *x = &product->spans[s];
        if (!overlaps(x, out, n)) continue;
        if (x->written || !same || x->begin != (uintptr_t)out) return false;
    }
    return true;
}

/* The product that made x could write an element-wise function of it to `out` too, if nothing
 * noted since stands between. NULL: it cannot. */
static noted *product_of(n2_queue *q, const float *x, float *out, int64_t n) {
    for (size_t i = q->n; i-- > 0 && q->n - i < 24;) {
        noted *at = &q->list[i];
        if (at->j.kind == JOB_MATMUL && at->j.out == x) {
            const bool whole = at->j.product.slices == 1 && !at->j.more[0] && at->j.n == n;
            return whole && can_write_too(at, out, n) ? at : NULL;
        }
        for (int s = 0; s < at->n_spans; s++) {
            if (overlaps(&at->spans[s], out, n)) return NULL;
            if (at->spans[s].written && overlaps(&at->spans[s], x, n)) return NULL;
        }
    }
    return NULL;
}

static void note_unary(const n2_call *c) {
    if (n2_pass_takes(c)) return n2_note_pass(c);
    job j = job_of(c, JOB_UNARY);
    j.in[0] = in_of(c, 0);
    j.vec4 = can_vec4(&j, 4) && is_aligned(j.in[0]);
    if (j.op == N2_OP_n2ce_term || j.op == N2_OP_n2ce_weight) {
        j.k = c->node->attr->n2ce.is_den;
        j.f[0] = c->node->attr->n2ce.magnitude;
        j.f[1] = log(j.f[0]);
    }
    noted *product = j.op == N2_OP_lrelu && j.f[0] <= 1
                         ? product_of(c->queue, j.in[0], j.out, j.n)
                         : (noted *)NULL; /* leaky() of mlp_kernel.cu */
    if (product) {
        product->j.more[0] = j.out;
        product->j.slope_more = (float)j.f[0];
        n2_note_write(product, j.out, j.n);
        return;
    }
    noted *n = n2_queue_add(c->queue, &j, shares(j.n));
    n2_note_read(n, j.in[0], j.n);
    n2_note_write(n, j.out, j.n);
}

static void note_strided(const n2_call *c, job j, int operands, axes a) {
    if (a.rank > JOB_AXES) { /* a job for each step along the outermost axis */
        const int outer = --a.rank;
        if (j.n == 0) return;
        j.n /= a.length[outer];
        for (int64_t i = 0; i < a.length[outer]; i++, j.out += j.n) {
            note_strided(c, j, operands, a);
            for (int k = 0; k < operands; k++) j.in[k] += a.step[k][outer];
        }
        return;
    }
    j.loops = loops_of(&a);
    j.vec4 = can_vec4(&j, j.loops.length[0].by);
    for (int k = 0; k < operands; k++) j.vec4 &= goes_by_vec4(&j, k);
    /* move_some copies what is there; a fused segment, of one division, may repeat it */
    const bool segment = j.loops.rank <= 2 && job_share(j.n) <= JOB_ELEMENTS;
    if (operands == 1) j.vec4 &= j.loops.step[0][0] == 1 || segment;
    noted *n = n2_queue_add(c->queue, &j, shares(j.n));
    for (int k = 0; k < operands; k++) n2_note_read(n, in_of(c, k), n_in(c, k));
    n2_note_write(n, j.out, j.n);
}

static void note_binary(const n2_call *c) {
    if (n2_pass_takes(c)) return n2_note_pass(c);
    job j = job_of(c, JOB_BINARY);
    j.in[0] = in_of(c, 0);
    j.in[1] = in_of(c, 1);
    const n2_shape out = c->out.shape;
    axes a = {};
    for (int k = out.rank - 1; k >= 0; k--)
        add_axis(&a, out.dim[k], operand_step(c->in[0].shape, out, k),
                 operand_step(c->in[1].shape, out, k));
    note_strided(c, j, 2, a);
}

static void note_broadcast(const n2_call *c) {
    if (n2_pass_takes(c)) return n2_note_pass(c);
    job j = job_of(c, JOB_COPY);
    j.in[0] = in_of(c, 0);
    axes a = {};
    for (int k = c->out.shape.rank - 1; k >= 0; k--)
        add_axis(&a, c->out.shape.dim[k], operand_step(c->in[0].shape, c->out.shape, k), 0);
    note_strided(c, j, 1, a);
}

static void note_transpose(const n2_call *c) {
    job j = job_of(c, JOB_COPY);
    j.in[0] = in_of(c, 0);
    const int a = c->node->attr->transpose.axis_a, b = c->node->attr->transpose.axis_b;
    axes all = {};
    for (int k = c->out.shape.rank - 1; k >= 0; k--) {
        const int from = k == a ? b : k == b ? a : k; /* the input's axis */
        int64_t step = 1;
        for (int i = from + 1; i < c->in[0].shape.rank; i++) step *= c->in[0].shape.dim[i];
        add_axis(&all, c->out.shape.dim[k], step, 0);
    }
    note_strided(c, j, 1, all);
}

/* ---- rectangles ---------------------------------------------------------- */

typedef struct extent {
    int64_t outer, length, inner;
} extent;

static extent extent_of(n2_shape s, int axis) {
    extent e = {1, s.dim[axis], 1};
    for (int i = 0; i < axis; i++) e.outer *= s.dim[i];
    for (int i = axis + 1; i < s.rank; i++) e.inner *= s.dim[i];
    return e;
}

/* `length` along an axis, from `from` of input k to `to` of the output. */
static void note_move(const n2_call *c, int k, int axis, int64_t from, int64_t to, int64_t length) {
    const extent in = extent_of(c->in[k].shape, axis), out = extent_of(c->out.shape, axis);
    const int64_t width = length * in.inner, row_in = in.length * in.inner;
    const int64_t row_out = out.length * out.inner;
    job j = job_of(c, JOB_MOVE);
    if (width == 0 || !fits(c, row_in) || !fits(c, row_out)) return;
    j.m = width;
    j.n = in.outer * width;
    j.in[0] = in_of(c, k) + from * in.inner;
    j.out = out_of(c) + to * out.inner;
    j.loops.rank = 1;
    j.loops.length[0] = job_divide_by((uint32_t)width);
    j.loops.step[0][0] = (uint32_t)row_in;
    j.loops.step[1][0] = (uint32_t)row_out;
    j.vec4 = can_vec4(&j, width) && is_aligned(j.in[0]) && row_in % 4 == 0 && row_out % 4 == 0;
    noted *n = n2_queue_add(c->queue, &j, shares(j.n));
    n2_note_columns(n, {in_of(c, k), in.outer, row_in, from * in.inner, width}, false);
    n2_note_columns(n, {out_of(c), in.outer, row_out, to * out.inner, width}, true);
}

static void note_concat(const n2_call *c) {
    if (n2_pass_takes(c)) return n2_note_pass(c);
    const int axis = (int)c->node->attr->along.axis;
    for (int64_t k = 0, at = 0; k < c->node->n_in; at += c->in[k++].shape.dim[axis])
        note_move(c, (int)k, axis, 0, at, c->in[k].shape.dim[axis]);
}

static void note_slice(const n2_call *c) {
    if (n2_pass_takes(c)) return n2_note_pass(c);
    const int axis = (int)c->node->attr->along.axis;
    note_move(c, 0, axis, c->node->attr->along.begin, 0, c->out.shape.dim[axis]);
}

static void note_pad(const n2_call *c) {
    const int axis = (int)c->node->attr->along.axis;
    const extent in = extent_of(c->in[0].shape, axis), out = extent_of(c->out.shape, axis);
    job j = job_of(c, JOB_PAD);
    j.in[0] = in_of(c, 0);
    j.m = in.length * in.inner;
    j.k = c->node->attr->along.begin * in.inner;
    const int64_t width = out.length * out.inner;
    if (width == 0 || !fits(c, width)) return;
    j.loops.rank = 1;
    j.loops.length[0] = job_divide_by((uint32_t)width);
    j.loops.step[1][0] = (uint32_t)width;
    j.vec4 = can_vec4(&j, width) && is_aligned(j.in[0]) && j.m % 4 == 0 && j.k % 4 == 0;
    noted *n = n2_queue_add(c->queue, &j, shares(j.n));
    n2_note_read(n, j.in[0], n_in(c, 0));
    n2_note_write(n, j.out, j.n);
}

/* ---- sums ---------------------------------------------------------------- */

void n2_note_sum_slices(const n2_call *c, const float *in, float *out, int64_t rows,
                        int64_t inner) {
    job j = job_of(c, JOB_SUM_SLICES);
    j.in[0] = in;
    j.out = out;
    j.n = rows;
    j.m = inner;
    noted *n = n2_queue_add(c->queue, &j, pieces(inner, 4 * JOB_THREADS));
    n2_note_read(n, in, rows * inner);
    n2_note_write(n, out, inner);
}

/* out [outer x inner] = or += sums over the middle of in [outer x rows x inner]. */
void n2_note_sum_columns(const n2_call *c, const float *in, float *out, int64_t outer, int64_t rows,
                         int64_t inner) {
    job j = job_of(c, JOB_SUM_COLUMNS);
    const int64_t slices = rows > JOB_SLICE ? pieces(rows, JOB_SLICE) : 1;
    const bool last = slices == 1;
    float *to = last ? out : n2_queue_scratch(c->queue, in, outer * slices * inner);
    j.in[0] = in;
    j.out = to;
    j.add = last && c->add;
    j.n = rows;
    j.m = inner;
    j.k = slices;
    noted *n = n2_queue_add(c->queue, &j, outer * slices * pieces(inner, 32));
    n2_note_read(n, in, outer * rows * inner);
    n2_note_write(n, to, outer * slices * inner);
    if (!last && to) n2_note_sum_columns(c, to, out, outer, slices, inner);
}

/* out [runs] = or += sums of runs of `length` numbers. */
static void note_sum_runs(const n2_call *c, const float *in, float *out, int64_t runs,
                          int64_t length) {
    job j = job_of(c, JOB_SUM_CHUNKS);
    const int64_t chunks = length > JOB_CHUNK ? pieces(length, JOB_CHUNK) : 1;
    const bool last = chunks == 1;
    float *to = last ? out : n2_queue_scratch(c->queue, in, runs * chunks);
    j.in[0] = in;
    j.out = to;
    j.add = last && c->add;
    j.n = length;
    j.k = chunks;
    noted *n = n2_queue_add(c->queue, &j, runs * chunks);
    n2_note_read(n, in, runs * length);
    n2_note_write(n, to, runs * chunks);
    if (!last && to) note_sum_runs(c, to, out, runs, chunks);
}

/* Many numbers of a few each, and neighbours of neighbours: pooling, for instance. A thread each
 * reads along with the others then, and a warp each would have little to do. */
static bool is_few_each(const n2_call *c) {
    enum { FEW = 8, MANY = 1024 };
    const n2_shape s = c->in[0].shape;
    const bool ends_kept = s.rank > 0 && !(c->node->attr->reduce.axes >> (s.rank - 1) & 1);
    return ends_kept && s.dim[s.rank - 1] > 1 && n_out(c) >= MANY && n_in(c, 0) <= FEW * n_out(c);
}

/* A warp, or a thread, per number of the output, whatever the axes. */
static void note_reduce(const n2_call *c) {
    const bool few = is_few_each(c);
    job j = job_of(c, few ? JOB_REDUCE_FEW : JOB_REDUCE);
    const n2_shape s = c->in[0].shape;
    int64_t step = 1;
    axes kept = {}, summed = {};
    if (!fits(c, n_in(c, 0))) return;
    j.in[0] = in_of(c, 0);
    j.k = 1;
    for (int k = s.rank - 1; k >= 0; k--) {
        const bool reduced = (c->node->attr->reduce.axes >> k & 1) != 0;
        add_axis(reduced ? &summed : &kept, s.dim[k], step, 0);
        if (reduced) j.k *= s.dim[k];
        step *= s.dim[k];
    }
    j.loops = loops_of(&kept); /* kept and summed axes alternate: not more than half each */
    j.inner = loops_of(&summed);
    noted *n = n2_queue_add(c->queue, &j, pieces(j.n, few ? JOB_THREADS : JOB_ROWS));
    n2_note_read(n, j.in[0], n_in(c, 0));
    n2_note_write(n, j.out, j.n);
}

/* The reduced axes as outer x reduced x inner, if they are next to one another. */
static bool contiguous_axes(n2_shape s, int64_t axes, extent *e) {
    int phase = 0;
    *e = (extent){1, 1, 1};
    for (int k = 0; k < s.rank; k++) {
        const bool reduced = (axes >> k & 1) != 0;
        if (phase == 0 && reduced) phase = 1;
        if (phase == 1 && !reduced) phase = 2;
        if (phase == 2 && reduced) return false;
        *(phase == 0 ? &e->outer : phase == 1 ? &e->length : &e->inner) *= s.dim[k];
    }
    return true;
}

/* Sums of many numbers, or of such in 16 bits. */
static void note_sum_wide(const n2_call *c, const extent *e) {
    const int64_t slices = n2_wide_sums_slices(e->outer, e->length, e->inner);
    float *out = out_of(c), *to = out;
    if (slices > 1) to = n2_queue_scratch(c->queue, in_of(c, 0), e->outer * slices * e->inner);
    if (!to) return;
    n2_note_wide_sums(c, to, e->outer, e->length, e->inner);
    if (slices > 1 && e->inner > 1)
        n2_note_sum_columns(c, to, out, e->outer, slices, e->inner);
    else if (slices > 1)
        note_sum_runs(c, to, out, e->outer, slices);
}

static void note_sum(const n2_call *c) {
    enum { RUN = 256, MANY_RUNS = 64 }; /* a block for each of a few long runs; else a warp */
    extent e;
    if (n_out(c) == 0) return; /* without columns there is nothing to read either */
    const bool contiguous = contiguous_axes(c->in[0].shape, c->node->attr->reduce.axes, &e);
    if (contiguous && n2_wide_sums_takes(c, e.outer, e.length, e.inner))
        return note_sum_wide(c, &e);
    if (c->in[0].dtype != N2_NUMBER) {
        n2_call numbers = *c;
        numbers.in[0].data = n2_pass_widened(c, 0);
        numbers.in[0].dtype = N2_NUMBER;
        if (numbers.in[0].data) note_sum(&numbers);
        return;
    }
    if (contiguous && e.inner > 1 && (e.outer < MANY_RUNS || !is_few_each(c)))
        n2_note_sum_columns(c, in_of(c, 0), out_of(c), e.outer, e.length, e.inner);
    else if (contiguous && e.length > (e.outer < MANY_RUNS ? (int)RUN : (int)JOB_CHUNK))
        note_sum_runs(c, in_of(c, 0), out_of(c), e.outer, e.length);
    else
        note_reduce(c);
}

static void note_median(const n2_call *c) {
    job j = job_of(c, JOB_MEDIAN);
    const n2_shape s = c->in[0].shape;
    j.in[0] = in_of(c, 0);
    j.n = j.k = n_in(c, 0);
    if (c->node->attr->reduce.above_diagonal) {
        j.m = s.dim[0];
        j.k = s.dim[0] * (s.dim[0] - 1) / 2;
    }
    noted *n = n2_queue_add(c->queue, &j, 1);
    n2_note_read(n, j.in[0], j.n);
    n2_note_write(n, j.out, 1);
}

/* ---- random numbers and rows --------------------------------------------- */

static void note_random(const n2_call *c) {
    job j = job_of(c, JOB_RANDOM);
    const int64_t rows = c->out.shape.rank ? c->out.shape.dim[0] : 1;
    j.k = rows ? c->row0 * (j.n / rows) : 0;
    j.m = c->node->attr->random.below;
    j.stream = (uint32_t)c->node->attr->random.stream;
    const int64_t groups = pieces(j.k + j.n, 64) - j.k / 64;
    noted *n = n2_queue_add(c->queue, &j, j.n ? pieces(groups * 16, JOB_THREADS) : 0);
    n2_note_read(n, j.state, sizeof *j.state / sizeof(float));
    n2_note_write(n, j.out, j.n);
}

static void note_cast(const n2_call *c) {
    if (n2_wide_pays(c->queue, n_out(c))) return n2_note_pass(c);
    job j = job_of(c, JOB_CAST);
    const n2_dtype from = (n2_dtype)c->node->attr->cast.from, to = c->node->dtype;
    j.in[0] = in_of(c, 0);
    j.m = from;
    j.k = to;
    noted *n = n2_queue_add(c->queue, &j, shares(j.n));
    n2_note_read(n, j.in[0], n2_floats_of(from, j.n));
    n2_note_write(n, j.out, n2_floats_of(to, j.n));
}

static void note_permutation(const n2_call *c) {
    job j = job_of(c, JOB_PERMUTATION);
    j.stream = (uint32_t)c->node->attr->random.stream;
    noted *n = n2_queue_add(c->queue, &j, j.n ? 1 : 0);
    n2_note_read(n, j.state, sizeof *j.state / sizeof(float));
    n2_note_write(n, j.out, j.n);
}

static void note_row_index(const n2_call *c) {
    job j = job_of(c, JOB_ROW_INDEX);
    j.k = c->node->attr->row_index.divide;
    j.m = c->node->attr->row_index.modulo;
    if (!fits(c, c->row0 + j.n + j.m)) return;
    j.loops.rank = 2;
    j.loops.length[0] = job_divide_by((uint32_t)j.k);
    j.loops.length[1] = job_divide_by((uint32_t)j.m);
    j.loops.step[0][0] = (uint32_t)c->row0;
    noted *n = n2_queue_add(c->queue, &j, shares(j.n));
    n2_note_write(n, j.out, j.n);
}

static void note_gather(const n2_call *c) {
    job j = job_of(c, JOB_GATHER);
    const int64_t rows = c->out.shape.dim[0];
    j.in[0] = in_of(c, 0);
    j.in[1] = in_of(c, 1);
    j.k = c->in[0].shape.dim[0];
    if (rows == 0 || j.n == 0 || j.k == 0) return;
    j.m = j.n / rows;
    if (!fits(c, j.k)) return;
    j.loops.rank = 1;
    j.loops.length[0] = job_divide_by((uint32_t)j.m);
    j.vec4 = can_vec4(&j, j.m) && is_aligned(j.in[0]);
    noted *n = n2_queue_add(c->queue, &j, shares(j.n));
    n2_note_read(n, j.in[0], n_in(c, 0));
    n2_note_read(n, j.in[1], rows);
    n2_note_write(n, j.out, j.n);
}

/* How many rows on end go to each of the table, if they go to all of them in turn; 0: they do
 * not. */
static int64_t rows_in_turn(const n2_call *c) {
    const n2_queue *q = c->queue;
    const float *index = in_of(c, 1);
    const int64_t rows = c->in[0].shape.dim[0], table = c->out.shape.dim[0];
    for (size_t i = q->n; i-- > 0;) {
        const job *j = &q->list[i].j;
        if (j->kind == JOB_ROW_INDEX && j->out == index && j->n == rows)
            return j->m == table && j->k * j->m == rows && j->loops.step[0][0] == 0 ? j->k : 0;
        for (int s = 0; s < q->list[i].n_spans; s++)
            if (q->list[i].spans[s].written && overlaps(&q->list[i].spans[s], index, rows))
                return 0;
    }
    return 0;
}

/* Rows of a slice: all, or so many that there are few slices, for they have to be added up. */
static int64_t scattered_at_once(int64_t rows) {
    enum { SLICES = 32 };
    const int64_t some = pieces(rows, SLICES);
    return rows <= JOB_DROPS || some > JOB_DROPS ? (int64_t)JOB_DROPS : some;
}

static void note_scatter_add(const n2_call *c) {
    job j = job_of(c, JOB_SCATTER);
    const int64_t size = n_out(c), rows = c->in[0].shape.dim[0];
    if (size == 0 || !fits(c, size)) return;
    const int64_t width = size / c->out.shape.dim[0];
    if (!fits(c, width * (int64_t)sizeof(float))) return; /* steps from row to row, in bytes */
    const int64_t each = rows_in_turn(c);
    if (each > 0) {
        n2_note_sum_columns(c, in_of(c, 0), out_of(c), rows / each, each, size / (rows / each));
        return;
    }
    const int64_t at_once = scattered_at_once(rows), slices = rows ? pieces(rows, at_once) : 1;
    j.in[0] = in_of(c, 0);
    j.in[1] = in_of(c, 1);
    j.n = rows;
    j.k = c->out.shape.dim[0];
    j.m = width;
    j.loops.rank = 1;
    j.loops.length[0] = job_divide_by((uint32_t)at_once);
    if (slices > 1) {
        j.add = false;
        j.out = n2_queue_scratch(c->queue, out_of(c), slices * size);
    }
    const int64_t blocks = pieces(j.k, JOB_ROWS) * pieces(j.m, SCATTER_COLUMNS);
    noted *n = n2_queue_add(c->queue, &j, slices * blocks);
    n2_note_read(n, j.in[0], n_in(c, 0));
    n2_note_read(n, j.in[1], rows);
    n2_note_write(n, j.out, slices * size);
    enum { FEW = 4096 }; /* numbers: a thread each would have to add up too many */
    if (slices > 1 && n && size <= FEW)
        n2_note_sum_columns(c, j.out, out_of(c), 1, slices, size);
    else if (slices > 1 && n)
        n2_note_sum_slices(c, j.out, out_of(c), slices, size);
}

/* ---- updates ------------------------------------------------------------- */

/* What decides whether an update is made. */
static void note_guards(const n2_call *c, noted *n) {
    n2_queue *q = c->queue;
    n2_note_read(n, q->state, sizeof *q->state / sizeof(float));
    for (uint32_t k = 0; n && k < c->guards; k++) n2_note_read(n, q->watched[k], 1);
}

static void note_assign(const n2_call *c) {
    job j = job_of(c, JOB_ASSIGN);
    j.n = n2_floats_of(c->node->dtype, j.n);
    j.in[0] = in_of(c, 0);
    j.guards = c->guards;
    noted *n = n2_queue_add(c->queue, &j, shares(j.n));
    n2_note_read(n, j.in[0], j.n);
    n2_note_write(n, j.out, j.n);
    note_guards(c, n);
}

static void note_adam(const n2_call *c) {
    job j = job_of(c, JOB_ADAM);
    const n2_adam adam = c->node->attr->adam;
    j.f[0] = adam.beta1, j.f[1] = adam.beta2, j.f[2] = adam.eps, j.f[3] = adam.decay;
    j.guards = c->guards;
    for (int k = 0; k < 4; k++) j.in[k] = in_of(c, k);
    for (int k = 0; k < 2; k++)
        j.more[k] = (float *)n2_tensor_on(c->node->attr->tensor[1 + k], c->queue->device);
    noted *n = n2_queue_add(c->queue, &j, n2_update_blocks(j.n));
    n2_note_read(n, j.in[0], j.n);
    for (int k = 1; k < 4; k++) n2_note_read(n, j.in[k], 1);
    n2_note_write(n, j.out, j.n);
    for (int k = 0; k < 2; k++) n2_note_write(n, j.more[k], j.n);
    note_guards(c, n);
}

/* ---- the table ----------------------------------------------------------- */

#define note_pool2          n2_note_pass
#define note_upsample2      n2_note_pass
#define note_matmul         n2_note_matmul
#define note_conv2d         n2_note_conv
#define note_conv2d_input   n2_note_conv
#define note_conv2d_weight  n2_note_conv
#define note_attention      n2_note_attention
#define note_attention_grad n2_note_attention
#define note_norm           n2_note_norm
#define note_norm_input     n2_note_norm
#define note_norm_sums      n2_note_norm
#define note_normal         note_random
#define note_uniform        note_random
#define note_integer        note_random
#define note_amax           note_reduce

/* In the order of N2_OP_LIST. */
#define NONE(name)   NULL,
#define UNARY(name)  note_unary,
#define BINARY(name) note_binary,
#define OWN(name)    note_##name,
n2_kernel *const n2_cuda_kernels[N2_OP_COUNT] = {N2_NO_KERNEL_LIST(NONE) N2_UNARY_LIST(UNARY)
                                                     N2_BINARY_LIST(BINARY) N2_KERNEL_LIST(OWN)};
