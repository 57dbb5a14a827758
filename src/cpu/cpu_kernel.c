/* Kernel file, compiled once per instruction set (base/isa.h), with contraction to fused
 * multiply-add: what is fast here may differ from ref, and from another instruction set,
 * in the last bits. It never depends on the number of threads. */
#include "cpu_kernels.h"
#include "cpu_product.h"
#include "large_product.h"

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

#define UNARY(NAME, EXPRESSION)                                               \
    void N2_ISA(n2_cpu_##NAME)(const n2_call *c) {                            \
        const float a = (float)c->node->attr->a, b = (float)c->node->attr->b; \
        const n2_range r = n2_elements_of(c);                                 \
        const float *in = IN(c, 0);                                           \
        float *out = OUT(c);                                                  \
        (void)a, (void)b;                                                     \
        for (int64_t i = r.begin; i < r.end; i++) {                           \
            const float x = in[i];                                            \
            out[i] = EXPRESSION;                                              \
        }                                                                     \
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

/* Run number `from` of the loops, counted like the digits of a number. */
typedef struct position {
    int64_t digit[N2_MAX_RANK];
    const float *x, *y;
} position;

static position position_of(const loops *l, const float *x, const float *y, int64_t from) {
    position at = {.x = x, .y = y};
    for (int k = 1; k < l->rank; k++) {
        at.digit[k] = from % l->length[k];
        from /= l->length[k];
        at.x += at.digit[k] * l->step[0][k];
        at.y += at.digit[k] * l->step[1][k];
    }
    return at;
}

static void move_on(const loops *l, position *at) {
    for (int k = 1; k < l->rank; k++) {
        at->x += l->step[0][k];
        at->y += l->step[1][k];
        if (++at->digit[k] < l->length[k]) break;
        at->x -= l->step[0][k] * l->length[k];
        at->y -= l->step[1][k] * l->length[k];
        at->digit[k] = 0;
    }
}

/* One run is the common case; a part is some elements of it, or else some of the runs. */
static void walk(const n2_call *c, run_fn *run) {
    const loops l = plan_loops(c);
    const float a = (float)c->node->attr->a;
    const bool x_moves = l.step[0][0] != 0, y_moves = l.step[1][0] != 0;
    const int64_t n = l.length[0], total = n2_elements(c->out.shape);
    if (l.rank == 1) {
        const n2_range r = n2_part_of(n, c->part, c->parts);
        run(r.end - r.begin, IN(c, 0) + (x_moves ? r.begin : 0), IN(c, 1) + (y_moves ? r.begin : 0),
            x_moves, y_moves, a, OUT(c) + r.begin);
        return;
    }
    if (total == 0) return;
    const int64_t runs = total / n, end = runs * (c->part + 1) / c->parts;
    int64_t k = runs * c->part / c->parts;
    position at = position_of(&l, IN(c, 0), IN(c, 1), k);
    for (; k < end; k++, move_on(&l, &at)) run(n, at.x, at.y, x_moves, y_moves, a, OUT(c) + k * n);
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

/* A block of MR x (2 vectors) of the output stays in registers while k runs: of which AVX-512 and
 * NEON have 32, the others 16. */
#if defined(__AVX512F__) || defined(__aarch64__)
enum { MR = 12 };
#else
enum { MR = 6 };
#endif
enum { LANES = N2_PART_LANES, PANEL = 2 * LANES };

typedef float uvec __attribute__((vector_size(N2_VEC_BYTES), may_alias, aligned(4)));
#define VEC(p) (*(const uvec *)(const void *)(p))

/* What a product begins with, and what happens to it on its way out (n2_call). Rows and gate
 * lie as the output does. NULL: nothing. */
typedef struct frame {
    const float *rows, *bias; /* sums begin at rows + bias; rows may be the output itself */
    const float *gate, *addend;
    float slope;
} frame;

/* Some rows further, which is `offset` numbers, and some columns. */
INLINE frame frame_at(frame f, int64_t offset, int64_t column) {
    if (f.rows) f.rows += offset + column;
    if (f.bias) f.bias += column;
    if (f.gate) f.gate += offset + column;
    if (f.addend) f.addend += offset + column;
    return f;
}

typedef int32_t mask __attribute__((vector_size(N2_VEC_BYTES), may_alias));

/* x where gate is positive, slope x elsewhere. */
INLINE n2_vec gated(n2_vec x, n2_vec gate, float slope) {
    const mask open = (mask)(gate > 0.0f);
    return (n2_vec)((open & (mask)x) | (~open & (mask)(slope * x)));
}

/* Rows of whole vectors. Vectors are spelt out: gcc would not take the chance, for all it knows the
 * output may be the gate. Apart from the block's loop, where it would cost registers, but soon
 * enough to find the rows in the first-level cache. */
static NOINLINE void finish_vectors(int64_t m, int64_t n, float *out, int64_t ld, frame f) {
    for (int64_t row = 0; row < m * ld; row += ld)
        for (int64_t i = row; i < row + n; i += LANES) {
            n2_vec x = gated(VEC(out + i), VEC(f.gate + i), f.slope);
            if (f.addend) x += VEC(f.addend + i);
            *(uvec *)(void *)(out + i) = x;
        }
}

static void finish_narrow(int64_t m, int64_t n, float *out, int64_t ld, frame f) {
    for (int64_t row = 0; row < m * ld; row += ld)
        for (int64_t i = row; i < row + n; i++) {
            const float x = f.gate[i] > 0.0f ? out[i] : f.slope * out[i];
            out[i] = f.addend ? x + f.addend[i] : x;
        }
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
    if (f.gate) finish_vectors(mr, nv * LANES, out, ldo, f);
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
    if (f.gate) finish_narrow(m, n, out, ldo, f);
}

/* Constant strides need fewer registers, and so do functions of their own. */
static NOINLINE void panel_by_rows(int64_t m, int64_t k, strided a, const float *b, int64_t ldb,
                                   float *out, int64_t ldo, frame f) {
    panel(2, m, k, (strided){a.data, a.row, 1}, b, ldb, out, ldo, f);
}

static NOINLINE void panel_by_columns(int64_t m, int64_t k, strided a, const float *b, int64_t ldb,
                                      float *out, int64_t ldo, frame f) {
    panel(2, m, k, (strided){a.data, 1, a.column}, b, ldb, out, ldo, f);
}

/* Rows of b are ldb numbers apart, those of out ldo. */
static void product(int64_t m, int64_t n, int64_t k, strided a, const float *b, int64_t ldb,
                    float *out, int64_t ldo, frame f) {
    int64_t j = 0;
    for (; j + PANEL <= n; j += PANEL)
        (a.row == 1 ? panel_by_columns : panel_by_rows)(m, k, a, b + j, ldb, out + j, ldo,
                                                        frame_at(f, 0, j));
    for (; j + LANES <= n; j += LANES)
        panel(1, m, k, a, b + j, ldb, out + j, ldo, frame_at(f, 0, j));
    if (j < n) narrow_panel(m, n - j, k, a, b + j, ldb, out + j, ldo, frame_at(f, 0, j));
}

void N2_ISA(n2_cpu_product_in)(int64_t m, int64_t n, int64_t k, strided a, const float *b,
                               int64_t ldb, float *out, int64_t ldo, bool add) {
    product(m, n, k, a, b, ldb, out, ldo, (frame){.rows = add ? out : NULL});
}

void N2_ISA(n2_cpu_product)(int64_t m, int64_t n, int64_t k, strided a, const float *b, float *out,
                            bool add) {
    N2_ISA(n2_cpu_product_in)(m, n, k, a, b, n, out, n, add);
}

/* A slice of a, laid together if its rows, or columns, are far apart. */
static strided lay_together(int64_t m, int64_t k, strided a, float *to) {
    const bool by_rows = a.column == 1;
    const int64_t apart = by_rows ? a.row : a.column;
    const int64_t lines = by_rows ? m : k, length = by_rows ? k : m;
    if (apart <= N2_LONG_ROW) return a;
    for (int64_t i = 0; i < lines; i++)
        memcpy(to + i * length, a.data + i * apart, (size_t)length * sizeof *to);
    return by_rows ? (strided){to, length, 1} : (strided){to, 1, length};
}

/* One slice of a by all columns of b: the first one begins with rows and bias, the last one goes
 * through the gate. */
static void slice_product(int64_t m, int64_t n, int64_t k, strided a, const float *b, int64_t ldb,
                          float *out, int64_t ldo, frame f, float *panel) {
    for (int64_t j = 0; j < n; j += N2_BLOCK_COLUMNS) {
        const int64_t columns = n - j < N2_BLOCK_COLUMNS ? n - j : N2_BLOCK_COLUMNS;
        for (int64_t l = 0; l < k; l++)
            memcpy(panel + l * columns, b + l * ldb + j, (size_t)columns * sizeof *panel);
        product(m, columns, k, a, panel, columns, out + j, ldo, frame_at(f, 0, j));
    }
}

static void large_product(int64_t m, int64_t n, int64_t k, strided a, const float *b, int64_t ldb,
                          float *out, int64_t ldo, frame f, float *work) {
    for (int64_t i = 0; i < m; i += N2_BLOCK_ROWS)
        for (int64_t l = 0; l < k || l == 0; l += N2_BLOCK_DEPTH) {
            const int64_t rows = m - i < N2_BLOCK_ROWS ? m - i : N2_BLOCK_ROWS;
            const int64_t depth = k - l < N2_BLOCK_DEPTH ? k - l : N2_BLOCK_DEPTH;
            const strided part = {a.data + i * a.row + l * a.column, a.row, a.column};
            frame g = frame_at(f, i * ldo, 0);
            if (l > 0) g.rows = out + i * ldo, g.bias = NULL;
            if (l + depth < k) g.gate = NULL;
            slice_product(rows, n, depth, lay_together(rows, depth, part, work), b + l * ldb, ldb,
                          out + i * ldo, ldo, g, work + N2_BLOCK_ROWS * N2_BLOCK_DEPTH);
        }
}

/* Product with a transposed b that nobody transposed beforehand: row times row. */
static void product_of_rows(int64_t m, int64_t n, int64_t k, strided a, const float *b, float *out,
                            const float *bias, bool add) {
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            double sum = add ? (double)out[i * n + j] : bias ? (double)bias[j] : 0;
            for (int64_t l = 0; l < k; l++)
                sum += (double)(a.data[i * a.row + l * a.column] * b[j * k + l]);
            out[i * n + j] = (float)sum;
        }
}

/* Rows [begin, end) and columns [from, to) of product z of a call. */
static void product_rows(const n2_call *c, const n2_product *p, int64_t z, int64_t begin,
                         int64_t end, int64_t from, int64_t to) {
    const bool packed = p->tb && c->node->in[2].id;
    const int64_t lda = p->ta ? p->m : p->k, at = (z * p->m + begin) * p->n;
    const strided whole = {IN(c, 0) + z * p->m * p->k, p->ta ? 1 : lda, p->ta ? lda : 1};
    const strided a = {whole.data + begin * whole.row, whole.row, whole.column};
    const float *b = IN(c, packed ? 2 : 1) + z * p->k * p->n;
    /* without a gate, what is to be added is where the sums begin */
    const float *rows = c->add ? OUT(c) : c->gate ? NULL : c->addend;
    const float *bias = c->node->n_in == 4 ? IN(c, 3) : NULL;
    const frame f = {rows, bias, c->gate, c->addend, (float)c->slope};
    if (p->tb && !packed)
        product_of_rows(end - begin, p->n, p->k, a, b, OUT(c) + at, bias, c->add);
    else if (n2_is_large(p))
        large_product(end - begin, to - from, p->k, a, b + from, p->n, OUT(c) + at + from, p->n,
                      frame_at(f, at, from), c->work);
    else
        product(end - begin, p->n, p->k, a, b, p->n, OUT(c) + at, p->n, frame_at(f, at, 0));
}

/* Part of n in units. */
static n2_range units_of(const n2_call *c, int64_t n, int64_t unit) {
    const int64_t units = (n + unit - 1) / unit;
    const int64_t begin = units * c->part / c->parts * unit;
    const int64_t end = units * (c->part + 1) / c->parts * unit;
    return (n2_range){begin < n ? begin : n, end < n ? end : n};
}

/* Some columns, or some rows: so many that laying things together is worth it. */
static void large_part(const n2_call *c, const n2_product *p) {
    enum { COLUMNS = 128, ROWS = 96 };
    const n2_range columns = p->n >= p->m ? units_of(c, p->n, COLUMNS) : (n2_range){0, p->n};
    const n2_range rows = p->n >= p->m ? (n2_range){0, p->m} : units_of(c, p->m, ROWS);
    if (rows.end > rows.begin && columns.end > columns.begin)
        product_rows(c, p, 0, rows.begin, rows.end, columns.begin, columns.end);
}

/* A part is some rows, or some of the products; large products see above. */
void N2_ISA(n2_cpu_matmul)(const n2_call *c) {
    enum { ROWS = 12 };
    const n2_product p = n2_product_of(c);
    if (n2_is_large(&p) && (!p.tb || c->node->in[2].id)) {
        large_part(c, &p);
        return;
    }
    const int64_t blocks = (p.m + ROWS - 1) / ROWS;
    int64_t block = p.batches * blocks * c->part / c->parts;
    const int64_t end = p.batches * blocks * (c->part + 1) / c->parts;
    while (block < end) {
        const int64_t z = block / blocks, first = block - z * blocks;
        const int64_t last = end - z * blocks < blocks ? end - z * blocks : blocks;
        const int64_t rows_end = last * ROWS < p.m ? last * ROWS : p.m;
        product_rows(c, &p, z, first * ROWS, rows_end, 0, p.n);
        block = z * blocks + last;
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

/* Axes apart: runs of the input are added to runs of the output, or are summed. A part is some
 * of the outermost indices, if the output has them; else the first part is all. */
static void sum_scattered(const n2_call *c) {
    n2_call pair = *c; /* input and output, walked as two operands of the input's shape */
    pair.out.shape = c->in[0].shape;
    pair.in[1] = c->out;
    const loops l = plan_loops(&pair);
    const int outermost = l.rank - 1;
    const int64_t total = n2_elements(c->in[0].shape), size = n2_elements(c->out.shape);
    const bool split = outermost > 0 && l.step[1][outermost] != 0;
    const int64_t outer = split ? l.length[outermost] : 1;
    const int64_t begin = outer * c->part / c->parts, end = outer * (c->part + 1) / c->parts;
    if (begin == end || size == 0) return;
    const int64_t each = size / outer, n = l.length[0];
    if (!c->add) memset(OUT(c) + begin * each, 0, (size_t)((end - begin) * each) * sizeof(float));
    if (total == 0) return;
    const int64_t runs = total / n / outer;
    position at = position_of(&l, IN(c, 0), OUT(c), begin * runs);
    for (int64_t k = begin * runs; k < end * runs; k++, move_on(&l, &at)) {
        float *to = OUT(c) + (at.y - OUT(c));
        if (l.step[1][0] == 0)
            *to += sum_run(at.x, n);
        else
            for (int64_t i = 0; i < n; i++) to[i] += at.x[i];
    }
}

/* Sums [begin, end) of the inner axes, of one outer index. */
static void sum_columns(const float *x, int64_t reduced, int64_t inner, n2_range r, float *out) {
    for (int64_t l = 0; l < reduced; l++)
        for (int64_t k = r.begin; k < r.end; k++) out[k] += x[l * inner + k];
}

/* A part is some of the outer indices or, if there is one, some of the inner. */
void N2_ISA(n2_cpu_sum)(const n2_call *c) {
    int64_t outer, reduced, inner;
    float *out = OUT(c);
    if (!contiguous_axes(c->in[0].shape, c->node->attr->reduce.axes, &outer, &reduced, &inner)) {
        sum_scattered(c);
        return;
    }
    const n2_range all = {0, inner};
    const n2_range columns = outer == 1 ? n2_part_of(inner, c->part, c->parts) : all;
    const int64_t first = outer == 1 ? 0 : outer * c->part / c->parts;
    const int64_t end = outer == 1 ? 1 : outer * (c->part + 1) / c->parts;
    for (int64_t i = first; i < end; i++) {
        const float *x = IN(c, 0) + i * reduced * inner;
        float *to = out + i * inner;
        for (int64_t k = columns.begin; k < columns.end && !c->add; k++) to[k] = 0;
        if (inner > 1)
            sum_columns(x, reduced, inner, columns, to);
        else if (columns.begin < columns.end)
            *to += sum_run(x, reduced);
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

/* Axes a < b of [outer x A x middle x B x inner]: runs of `inner` keep together. A part is some
 * of outer x B. */
static void transpose_axes(const n2_call *c) {
    const int a = c->node->attr->transpose.axis_a, b = c->node->attr->transpose.axis_b;
    const n2_shape s = c->in[0].shape;
    const int64_t outer = between(s, 0, a), middle = between(s, a + 1, b);
    const int64_t inner = between(s, b + 1, s.rank), na = s.dim[a], nb = s.dim[b];
    const int64_t end = outer * nb * (c->part + 1) / c->parts;
    for (int64_t j = outer * nb * c->part / c->parts; j < end; j++) {
        float *out = OUT(c) + j * middle * na * inner;
        for (int64_t m = 0; m < middle; m++)
            for (int64_t i = 0; i < na; i++, out += inner)
                memcpy(out, IN(c, 0) + (((j / nb * na + i) * middle + m) * nb + j % nb) * inner,
                       (size_t)inner * sizeof *out);
    }
}

void N2_ISA(n2_cpu_transpose)(const n2_call *c) {
    const n2_shape s = c->in[0].shape;
    const n2_range r = n2_part_of(s.dim[0], c->part, c->parts);
    if (s.rank == 2)
        transpose_matrix(IN(c, 0), s.dim[0], s.dim[1], r.begin, r.end, OUT(c));
    else
        transpose_axes(c);
}

/* ---- Adam ---------------------------------------------------------------- */

void N2_ISA(n2_cpu_adam)(const n2_call *c) {
    const n2_adam adam = c->node->attr->adam;
    const double step = (double)IN(c, 3)[0];
    const float b1 = (float)adam.beta1, b2 = (float)adam.beta2, eps = (float)adam.eps;
    const float decay = (float)adam.decay;
    const float c1 = (float)(1 - adam.beta1), c2 = (float)(1 - adam.beta2);
    const float rate = IN(c, 1)[0], factor = IN(c, 2)[0];
    const float fix1 = (float)(1 / (1 - pow(adam.beta1, step)));
    const float fix2 = (float)(1 / (1 - pow(adam.beta2, step)));
    const n2_range r = n2_elements_of(c);
    const float *g = IN(c, 0);
    float *p = OUT(c), *m = c->node->attr->tensor[1]->data, *v = c->node->attr->tensor[2]->data;
    for (int64_t i = r.begin; i < r.end; i++) {
        const float gi = g[i] * factor;
        m[i] = b1 * m[i] + c1 * gi;
        v[i] = b2 * v[i] + c2 * gi * gi;
        p[i] -= rate * (m[i] * fix1 / (sqrtf(v[i] * fix2) + eps) + decay * p[i]);
    }
}
