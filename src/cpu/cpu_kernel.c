/* Kernel file, compiled once per instruction set (base/isa.h), with contraction to fused
 * multiply-add: what is fast here may differ from ref, and from another instruction set,
 * in the last bits. It never depends on the number of threads. */
#include "cpu.h"

#include "base/isa.h"
#include "base/lanes.h"

#include <math.h>
#include <string.h>

#define DECLARE(NAME, ...) n2_kernel N2_ISA(n2_cpu_##NAME);
N2_FAST_LIST(DECLARE)
#undef DECLARE

#define INLINE   N2_CPU_INLINE
#define NOINLINE __attribute__((noinline))
#define OUT(c)   ((float *)(c)->out.data)
#define IN(c, k) ((const float *)(c)->in[k].data)

/* ---- functions of one number --------------------------------------------- */

#define UNARY(NAME, EXPRESSION)                                                   \
    void N2_ISA(n2_cpu_##NAME)(const n2_call *c) {                                \
        const float a = (float)c->node->attr.f[0], b = (float)c->node->attr.f[1]; \
        const int64_t n = n2_elements(c->out.shape);                              \
        const float *in = IN(c, 0);                                               \
        float *out = OUT(c);                                                      \
        (void)a, (void)b;                                                         \
        for (int64_t i = 0; i < n; i++) {                                         \
            const float x = in[i];                                                \
            out[i] = EXPRESSION;                                                  \
        }                                                                         \
    }
N2_FAST_UNARY(UNARY)

/* ---- functions of two ---------------------------------------------------- */

/* Two operands over one output, as few nested loops as possible. */
typedef struct loops {
    int rank;
    int64_t length[N2_MAX_RANK], step[2][N2_MAX_RANK];
} loops;

static int64_t operand_step(n2_shape in, n2_shape out, int k) {
    const int j = k - (out.rank - in.rank);
    if (j < 0 || in.dim[j] == 1) return 0;
    int64_t step = 1;
    for (int i = j + 1; i < in.rank; i++) step *= in.dim[i];
    return step;
}

/* Innermost axis first; axes that continue one another in both operands become one. */
static loops plan_loops(const n2_call *c) {
    loops l = {.rank = 0};
    const n2_shape out = c->out.shape;
    for (int k = out.rank - 1; k >= 0; k--) {
        if (out.dim[k] == 1) continue;
        const int64_t sa = operand_step(c->in[0].shape, out, k);
        const int64_t sb = operand_step(c->in[1].shape, out, k);
        const int t = l.rank - 1;
        if (t >= 0 && sa == l.length[t] * l.step[0][t] && sb == l.length[t] * l.step[1][t]) {
            l.length[t] *= out.dim[k];
            continue;
        }
        l.length[l.rank] = out.dim[k];
        l.step[0][l.rank] = sa;
        l.step[1][l.rank++] = sb;
    }
    if (l.rank == 0) l.length[l.rank++] = n2_elements(out);
    return l;
}

typedef void run_fn(int64_t n, const float *x, const float *y, bool x_moves, bool y_moves, float a,
                    float *out);

/* Rank 1 is the common case; more are counted like the digits of a number. */
static void walk(const n2_call *c, run_fn *run) {
    const loops l = plan_loops(c);
    const float a = (float)c->node->attr.f[0];
    int64_t digit[N2_MAX_RANK] = {0};
    const float *x = IN(c, 0), *y = IN(c, 1);
    const int64_t n = l.length[0], total = n2_elements(c->out.shape);
    for (int64_t done = 0; done < total; done += n) {
        run(n, x, y, l.step[0][0] != 0, l.step[1][0] != 0, a, OUT(c) + done);
        for (int k = 1; k < l.rank; k++) {
            x += l.step[0][k];
            y += l.step[1][k];
            if (++digit[k] < l.length[k]) break;
            x -= l.step[0][k] * l.length[k];
            y -= l.step[1][k] * l.length[k];
            digit[k] = 0;
        }
    }
}

#define LOOP(X, Y, EXPRESSION)        \
    for (int64_t i = 0; i < n; i++) { \
        const float x = X, y = Y;     \
        out[i] = EXPRESSION;          \
    }
#define BINARY(NAME, EXPRESSION)                                                      \
    static void NAME##_run(int64_t n, const float *px, const float *py, bool x_moves, \
                           bool y_moves, float a, float *out) {                       \
        (void)a;                                                                      \
        if (x_moves && y_moves)                                                       \
            LOOP(px[i], py[i], EXPRESSION)                                            \
        else if (x_moves)                                                             \
            LOOP(px[i], *py, EXPRESSION)                                              \
        else if (y_moves)                                                             \
            LOOP(*px, py[i], EXPRESSION)                                              \
        else                                                                          \
            LOOP(*px, *py, EXPRESSION)                                                \
    }                                                                                 \
    void N2_ISA(n2_cpu_##NAME)(const n2_call *c) { walk(c, NAME##_run); }
N2_FAST_BINARY(BINARY)

/* ---- matrix product ------------------------------------------------------ */

/* A block of MR x (2 vectors) of the output stays in registers while k runs. */
#if defined(__AVX512F__)
enum { MR = 12 };
#else
enum { MR = 6 };
#endif
enum { LANES = N2_PART_LANES, PANEL = 2 * LANES };

typedef float uvec __attribute__((vector_size(N2_VEC_BYTES), may_alias, aligned(4)));
#define VEC(p) (*(const uvec *)(const void *)(p))

/* Element (i, l) of op(a) is a[i row + l column]. */
typedef struct strided {
    const float *data;
    int64_t row, column;
} strided;

/* What a product begins with, and what happens to it on its way out (n2_call). Rows and gate
 * lie as the output does. NULL: nothing. */
typedef struct frame {
    const float *rows, *bias; /* sums begin at rows + bias; rows may be the output itself */
    const float *gate, *addend;
    float slope;
} frame;

INLINE frame frame_at(frame f, int64_t offset, int64_t column) {
    if (f.rows) f.rows += offset + column;
    if (f.bias) f.bias += column;
    if (f.gate) f.gate += offset + column;
    if (f.addend) f.addend += offset + column;
    return f;
}

/* Apart from the block's loop, where it would cost registers, but soon enough to find the
 * rows in the first-level cache. */
static NOINLINE void finish(int64_t m, int64_t n, float *out, int64_t ld, frame f) {
    for (int64_t row = 0; row < m * ld; row += ld)
        if (f.addend)
            for (int64_t i = row; i < row + n; i++)
                out[i] = (f.gate[i] > 0.0f ? out[i] : f.slope * out[i]) + f.addend[i];
        else
            for (int64_t i = row; i < row + n; i++)
                out[i] = f.gate[i] > 0.0f ? out[i] : f.slope * out[i];
}

INLINE void block(int mr, int nv, int64_t k, strided a, const float *b, int64_t ldb, float *out,
                  int64_t ldo, frame f) {
    n2_vec sum[MR][2];
    for (int i = 0; i < mr; i++)
        for (int j = 0; j < nv; j++)
            sum[i][j] = f.rows ? VEC(f.rows + i * ldo + j * LANES) : (uvec){0};
    for (int i = 0; f.bias && i < mr; i++)
        for (int j = 0; j < nv; j++) sum[i][j] += VEC(f.bias + j * LANES);
    const float *at[(MR + 2) / 3]; /* of three rows each: an address can add one or two */
    for (int i = 0; i < mr; i += 3) at[i / 3] = a.data + i * a.row;
    for (int64_t l = 0; l < k; l++) {
        n2_vec row[2];
        for (int j = 0; j < nv; j++) row[j] = VEC(b + l * ldb + j * LANES);
        for (int i = 0; i < mr; i++)
            for (int j = 0; j < nv; j++) sum[i][j] += at[i / 3][i % 3 * a.row] * row[j];
        for (int i = 0; i < mr; i += 3) at[i / 3] += a.column;
    }
    for (int i = 0; i < mr; i++)
        for (int j = 0; j < nv; j++) *(uvec *)(void *)(out + i * ldo + j * LANES) = sum[i][j];
    if (f.gate) finish(mr, nv * LANES, out, ldo, f);
}

/* All rows of one panel of columns. */
INLINE void panel(int nv, int64_t m, int64_t k, strided a, const float *b, int64_t ldb, float *out,
                  int64_t ldo, frame f) {
    int64_t i = 0;
#define ROWS(N)                                                                                \
    for (; i + (N) <= m; i += (N))                                                             \
        block(N, nv, k, (strided){a.data + i * a.row, a.row, a.column}, b, ldb, out + i * ldo, \
              ldo, frame_at(f, i * ldo, 0));
    ROWS(MR)
    ROWS(4)
    ROWS(1)
#undef ROWS
}

/* Columns that do not fill a vector go through padded copies. */
static void narrow_panel(int64_t m, int64_t n, int64_t k, strided a, const float *b, int64_t ldb,
                         float *out, int64_t ldo, frame f) {
    enum { DEPTH = 128, HEIGHT = 12 };
    const size_t bytes = (size_t)n * sizeof(float);
    float padded[DEPTH][LANES], tile[HEIGHT][LANES], bias[LANES] = {0};
    if (f.bias) memcpy(bias, f.bias, bytes);
    for (int64_t l0 = 0; l0 < k || l0 == 0; l0 += DEPTH) {
        const int64_t depth = k - l0 < DEPTH ? k - l0 : DEPTH;
        const float *rows_before = l0 > 0 ? out : f.rows;
        memset(padded, 0, sizeof padded);
        for (int64_t l = 0; l < depth; l++) memcpy(padded[l], b + (l0 + l) * ldb, bytes);
        for (int64_t i = 0; i < m; i += HEIGHT) {
            const int64_t rows = m - i < HEIGHT ? m - i : HEIGHT;
            memset(tile, 0, sizeof tile);
            for (int64_t r = 0; rows_before && r < rows; r++)
                memcpy(tile[r], rows_before + (i + r) * ldo, bytes);
            const strided part = {a.data + i * a.row + l0 * a.column, a.row, a.column};
            panel(1, rows, depth, part, padded[0], LANES, tile[0], LANES,
                  (frame){.rows = tile[0], .bias = l0 > 0 ? NULL : bias});
            for (int64_t r = 0; r < rows; r++) memcpy(out + (i + r) * ldo, tile[r], bytes);
        }
    }
    if (f.gate) finish(m, n, out, ldo, f);
}

/* Constant strides need fewer registers, and so do functions of their own. */
static NOINLINE void panel_by_rows(int64_t m, int64_t k, strided a, const float *b, float *out,
                                   int64_t n, frame f) {
    panel(2, m, k, (strided){a.data, a.row, 1}, b, n, out, n, f);
}

static NOINLINE void panel_by_columns(int64_t m, int64_t k, strided a, const float *b, float *out,
                                      int64_t n, frame f) {
    panel(2, m, k, (strided){a.data, 1, a.column}, b, n, out, n, f);
}

static void product(int64_t m, int64_t n, int64_t k, strided a, const float *b, float *out,
                    frame f) {
    int64_t j = 0;
    for (; j + PANEL <= n; j += PANEL)
        (a.row == 1 ? panel_by_columns : panel_by_rows)(m, k, a, b + j, out + j, n,
                                                        frame_at(f, 0, j));
    for (; j + LANES <= n; j += LANES) panel(1, m, k, a, b + j, n, out + j, n, frame_at(f, 0, j));
    if (j < n) narrow_panel(m, n - j, k, a, b + j, n, out + j, n, frame_at(f, 0, j));
}

/* Product with a transposed b that nobody transposed beforehand: row times row. */
static void product_of_rows(int64_t m, int64_t n, int64_t k, strided a, const float *b, float *out,
                            bool add) {
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            double sum = add ? (double)out[i * n + j] : 0;
            for (int64_t l = 0; l < k; l++)
                sum += (double)(a.data[i * a.row + l * a.column] * b[j * k + l]);
            out[i * n + j] = (float)sum;
        }
}

void N2_ISA(n2_cpu_matmul)(const n2_call *c) {
    const bool ta = c->node->attr.i[0] != 0, tb = c->node->attr.i[1] != 0;
    const bool packed = tb && c->node->n_in >= 3;
    const n2_shape sa = c->in[0].shape, so = c->out.shape;
    const int r = so.rank;
    const int64_t batches = r == 3 ? so.dim[0] : 1, m = so.dim[r - 2], n = so.dim[r - 1];
    const int64_t k = sa.dim[ta ? r - 2 : r - 1], lda = sa.dim[r - 1];
    const float *b = IN(c, packed ? 2 : 1);
    const float *bias = c->node->n_in == 4 ? IN(c, 3) : NULL;
    for (int64_t z = 0; z < batches; z++) {
        const strided a = {IN(c, 0) + z * m * k, ta ? 1 : lda, ta ? lda : 1};
        float *out = OUT(c) + z * m * n;
        /* without a gate, what is to be added is where the sums begin */
        const float *rows = c->add ? out : c->gate ? NULL : c->addend;
        const frame f = {rows, bias, c->gate, c->addend, (float)c->slope};
        if (tb && !packed)
            product_of_rows(m, n, k, a, b + z * k * n, out, c->add);
        else
            product(m, n, k, a, b + z * k * n, out, f);
    }
}

/* ---- sums ---------------------------------------------------------------- */

static float sum_run(const float *x, int64_t n) {
    double total = 0;
    for (int64_t i = 0; i < n; i += 1024) {
        const int64_t m = n - i < 1024 ? n - i : 1024;
        float lanes[N2_LANES] = {0}, rest = 0;
        int64_t k = 0;
        for (; k + N2_LANES <= m; k += N2_LANES)
            for (int l = 0; l < N2_LANES; l++) lanes[l] += x[i + k + l];
        for (; k < m; k++) rest += x[i + k];
        for (int l = 0; l < N2_LANES; l++) total += (double)lanes[l];
        total += (double)rest;
    }
    return (float)total;
}

/* The reduced axes as outer x reduced x inner, if they are next to one another. */
static bool contiguous_axes(n2_shape s, int64_t axes, int64_t *outer, int64_t *reduced,
                            int64_t *inner) {
    *outer = *reduced = *inner = 1;
    int phase = 0;
    for (int k = 0; k < s.rank; k++) {
        const bool is_reduced = (axes >> k & 1) != 0;
        if (phase == 0 && is_reduced) phase = 1;
        if (phase == 1 && !is_reduced) phase = 2;
        if (phase == 2 && is_reduced) return false;
        *(phase == 0 ? outer : phase == 1 ? reduced : inner) *= s.dim[k];
    }
    return true;
}

/* Axes apart are summed one element after another. */
static void sum_scattered(const n2_call *c) {
    const n2_shape in = c->in[0].shape, out = c->out.shape;
    const int64_t n = n2_elements(in);
    for (int64_t i = 0; i < n; i++) {
        int64_t at = 0, stride = 1, rest = i;
        for (int k = in.rank - 1; k >= 0; k--) {
            if (out.dim[k] != 1) at += rest % in.dim[k] * stride;
            rest /= in.dim[k];
            stride *= out.dim[k];
        }
        OUT(c)[at] += IN(c, 0)[i];
    }
}

void N2_ISA(n2_cpu_sum)(const n2_call *c) {
    int64_t outer, reduced, inner;
    float *out = OUT(c);
    if (!c->add) memset(out, 0, (size_t)n2_elements(c->out.shape) * sizeof *out);
    if (!contiguous_axes(c->in[0].shape, c->node->attr.i[0], &outer, &reduced, &inner)) {
        sum_scattered(c);
        return;
    }
    for (int64_t i = 0; i < outer; i++) {
        const float *x = IN(c, 0) + i * reduced * inner;
        if (inner == 1) {
            out[i] += sum_run(x, reduced);
            continue;
        }
        for (int64_t l = 0; l < reduced; l++)
            for (int64_t k = 0; k < inner; k++) out[i * inner + k] += x[l * inner + k];
    }
}

/* ---- moving numbers ------------------------------------------------------ */

static void copy_run(int64_t n, const float *x, const float *unused, bool moves, bool unused2,
                     float a, float *out) {
    (void)unused, (void)unused2, (void)a;
    if (moves)
        memcpy(out, x, (size_t)n * sizeof *out);
    else
        for (int64_t i = 0; i < n; i++) out[i] = *x;
}

void N2_ISA(n2_cpu_broadcast)(const n2_call *c) {
    n2_call both = *c;
    both.in[1] = both.in[0];
    walk(&both, copy_run);
}

typedef float quad __attribute__((vector_size(16), may_alias, aligned(4)));
#define QUAD(p) (*(quad *)(void *)(p))

INLINE void transpose_4x4(const float *in, int64_t row_in, float *out, int64_t row_out) {
    const quad a = QUAD(in), b = QUAD(in + row_in);
    const quad c = QUAD(in + 2 * row_in), d = QUAD(in + 3 * row_in);
    for (int i = 0; i < 4; i++) QUAD(out + i * row_out) = (quad){a[i], b[i], c[i], d[i]};
}

/* Rows [begin, end) of the input, 16 at a time: whole cache lines of the output. */
static void transpose_matrix(const float *in, int64_t rows, int64_t columns, int64_t begin,
                             int64_t end, float *out) {
    for (int64_t i = begin; i < end; i += 16)
        for (int64_t l = 0; l < columns; l += 4)
            for (int64_t k = i; k < i + 16 && k < end; k += 4) {
                if (l + 4 <= columns && k + 4 <= end) {
                    transpose_4x4(in + k * columns + l, columns, out + l * rows + k, rows);
                    continue;
                }
                for (int64_t r = k; r < k + 4 && r < end; r++)
                    for (int64_t c = l; c < l + 4 && c < columns; c++)
                        out[c * rows + r] = in[r * columns + c];
            }
}

static int64_t between(n2_shape s, int from, int to) {
    int64_t n = 1;
    for (int k = from; k < to; k++) n *= s.dim[k];
    return n;
}

/* Axes a < b of [outer x A x middle x B x inner]: stretches of `inner` keep together. */
static void transpose_axes(const n2_call *c) {
    const int a = (int)c->node->attr.i[0], b = (int)c->node->attr.i[1];
    const n2_shape s = c->in[0].shape;
    const int64_t outer = between(s, 0, a), middle = between(s, a + 1, b);
    const int64_t inner = between(s, b + 1, s.rank), na = s.dim[a], nb = s.dim[b];
    float *out = OUT(c);
    for (int64_t o = 0; o < outer; o++)
        for (int64_t j = 0; j < nb; j++)
            for (int64_t m = 0; m < middle; m++)
                for (int64_t i = 0; i < na; i++, out += inner)
                    memcpy(out, IN(c, 0) + (((o * na + i) * middle + m) * nb + j) * inner,
                           (size_t)inner * sizeof *out);
}

void N2_ISA(n2_cpu_transpose)(const n2_call *c) {
    const n2_shape s = c->in[0].shape;
    const n2_range r = n2_part_of(s.dim[0], c->part, c->parts);
    if (s.rank == 2)
        transpose_matrix(IN(c, 0), s.dim[0], s.dim[1], r.begin, r.end, OUT(c));
    else if (c->part == 0)
        transpose_axes(c);
}

/* ---- Adam ---------------------------------------------------------------- */

void N2_ISA(n2_cpu_adam)(const n2_call *c) {
    const double *f = c->node->attr.f, step = (double)IN(c, 3)[0];
    const float b1 = (float)f[0], b2 = (float)f[1], eps = (float)f[2], decay = (float)f[3];
    const float c1 = (float)(1 - f[0]), c2 = (float)(1 - f[1]);
    const float rate = IN(c, 1)[0], factor = IN(c, 2)[0];
    const float fix1 = (float)(1 / (1 - pow(f[0], step)));
    const float fix2 = (float)(1 / (1 - pow(f[1], step)));
    const n2_range r = n2_part_of(n2_elements(c->out.shape), c->part, c->parts);
    const float *g = IN(c, 0);
    float *p = OUT(c), *m = c->node->attr.t[1]->data, *v = c->node->attr.t[2]->data;
    for (int64_t i = r.begin; i < r.end; i++) {
        const float gi = g[i] * factor;
        m[i] = b1 * m[i] + c1 * gi;
        v[i] = b2 * v[i] + c2 * gi * gi;
        p[i] -= rate * (m[i] * fix1 / (sqrtf(v[i] * fix2) + eps) + decay * p[i]);
    }
}
