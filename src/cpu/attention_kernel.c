/* Kernel file, compiled once per instruction set. Attention as products: a strip of weights, those
 * of a hundred queries or so, is made, used and forgotten. A strip lies by blocks of keys, [queries
 * x keys] each, so that what a product reads lies close together. */
#include "attention_blocks.h"
#include "cpu_kernels.h"
#include "cpu_product.h"

#include <math.h>
#include <string.h>

#define DECLARE(NAME, ...) n2_kernel N2_ISA(n2_cpu_##NAME);
N2_FAST_ATTENTION(DECLARE)
#undef DECLARE

#define OUT(c)   ((float *)(c)->out.data)
#define IN(c, k) ((const float *)(c)->in[k].data)

enum { LANES = 16 };

static int64_t at_most(int64_t n, int64_t most) { return n < most ? n : most; }

/* ---- copies: rows of `step` numbers to rows of d, and back ---------------- */

static void take(const n2_attention *a, const float *from, int64_t step, int64_t rows, float *to) {
    for (int64_t i = 0; i < rows; i++)
        memcpy(to + i * a->d, from + i * step, (size_t)a->d * sizeof *to);
}

static void give(const n2_attention *a, const float *from, int64_t rows, float *to, int64_t step) {
    for (int64_t i = 0; i < rows; i++)
        memcpy(to + i * step, from + i * a->d, (size_t)a->d * sizeof *to);
}

/* By blocks of keys, [d x keys] each. */
static void take_turned(const n2_attention *a, const float *from, float *to) {
    for (int64_t j = 0; j < a->t; j += N2_KEYS) {
        const int64_t n = at_most(a->t - j, N2_KEYS);
        float *block = to + j * a->d;
        for (int64_t k = 0; k < n; k++)
            for (int64_t e = 0; e < a->d; e++) block[e * n + k] = from[(j + k) * a->step + e];
    }
}

/* ---- products of a strip -------------------------------------------------- */

/* Rows of a strip, and where its blocks begin. */
typedef struct strip {
    const n2_attention *a;
    int64_t rows;
    float *at;
} strip;

static float *block_of(const strip *s, int64_t key) { return s->at + s->rows * key; }

/* Queries times turned keys. */
static void fill_strip(const strip *s, strided queries, const float *turned) {
    const n2_attention *a = s->a;
    for (int64_t j = 0; j < a->t; j += N2_KEYS) N2_ISA(n2_cpu_product)
    (s->rows, at_most(a->t - j, N2_KEYS), a->d, queries, turned + j * a->d, block_of(s, j), false);
}

/* out [rows x d] = the strip times [t x d]. */
static void strip_times(const strip *s, const float *by, float *out) {
    const n2_attention *a = s->a;
    for (int64_t j = 0; j < a->t; j += N2_KEYS) {
        const int64_t n = at_most(a->t - j, N2_KEYS);
        const strided block = {block_of(s, j), n, 1};
        N2_ISA(n2_cpu_product)(s->rows, a->d, n, block, by + j * a->d, out, j > 0);
    }
}

/* out [t x d] = or += the strip, turned, times [rows x d]. */
static void turned_strip_times(const strip *s, const float *by, float *out, bool add) {
    const n2_attention *a = s->a;
    for (int64_t j = 0; j < a->t; j += N2_KEYS) {
        const int64_t n = at_most(a->t - j, N2_KEYS);
        const strided block = {block_of(s, j), 1, n};
        N2_ISA(n2_cpu_product)(n, a->d, s->rows, block, by, out + j * a->d, add);
    }
}

/* ---- rows of a strip ------------------------------------------------------ */

/* Sums have sixteen lanes, whatever the instruction set. */
static float sum_lanes(const float x[LANES]) {
    float sum = 0;
    for (int l = 0; l < LANES; l++) sum += x[l];
    return sum;
}

static float largest(const float *x, int64_t n, float top) {
    float lane[LANES];
    for (int l = 0; l < LANES; l++) lane[l] = top;
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int l = 0; l < LANES; l++) lane[l] = x[i + l] > lane[l] ? x[i + l] : lane[l];
    for (; i < n; i++) lane[0] = x[i] > lane[0] ? x[i] : lane[0];
    for (int l = 0; l < LANES; l++) top = lane[l] > top ? lane[l] : top;
    return top;
}

/* exp(x) for x <= 0; NaN stays. */
N2_CPU_INLINE float fall(float x) {
    const float e = n2_lane_exp(x);
    return x != x ? x : e;
}

/* x becomes exp(scale (x - top)); returns their sum. */
static float exponentials(float *x, int64_t n, float scale, float top) {
    float lane[LANES] = {0};
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int l = 0; l < LANES; l++) {
            x[i + l] = fall(scale * (x[i + l] - top));
            lane[l] += x[i + l];
        }
    for (; i < n; i++) lane[0] += x[i] = fall(scale * (x[i] - top));
    return sum_lanes(lane);
}

static float dot(const float *x, const float *y, int64_t n) {
    float lane[LANES] = {0};
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int l = 0; l < LANES; l++) lane[l] += x[i + l] * y[i + l];
    for (; i < n; i++) lane[0] += x[i] * y[i];
    return sum_lanes(lane);
}

static void multiply(float *x, int64_t n, float factor) {
    for (int64_t i = 0; i < n; i++) x[i] *= factor;
}

/* Row i of the block from key j on, which has n numbers. */
static float *row_of(const strip *s, int64_t i, int64_t j, int64_t *n) {
    *n = at_most(s->a->t - j, N2_KEYS);
    return block_of(s, j) + i * *n;
}

/* Row i of scores becomes exponentials; returns 1 / their sum. */
static float soften(const strip *s, int64_t i) {
    const float scale = 1.0f / sqrtf((float)s->a->d);
    float top = -(float)INFINITY, sum = 0;
    int64_t n;
    for (int64_t j = 0; j < s->a->t; j += N2_KEYS) {
        const float *x = row_of(s, i, j, &n);
        top = largest(x, n, top);
    }
    for (int64_t j = 0; j < s->a->t; j += N2_KEYS) {
        float *x = row_of(s, i, j, &n);
        sum += exponentials(x, n, scale, top);
    }
    return 1.0f / sum;
}

/* ---- the ops -------------------------------------------------------------- */

/* One head of one picture: q, k and v are `at` and so on, results go to `out`. */
static void attend(const n2_attention *a, const float *at, float *work, float *out) {
    float *turned = work, *values = turned + a->t * a->d, *made = values + a->t * a->d;
    strip s = {a, 0, made + n2_queries_size(a)};
    take_turned(a, at + a->c, turned);
    take(a, at + 2 * a->c, a->step, a->t, values);
    for (int64_t i = 0; i < a->t; i += N2_QUERIES) {
        s.rows = at_most(a->t - i, N2_QUERIES);
        fill_strip(&s, (strided){at + i * a->step, a->step, 1}, turned);
        float factor[N2_QUERIES];
        for (int64_t r = 0; r < s.rows; r++) factor[r] = soften(&s, r);
        strip_times(&s, values, made);
        for (int64_t r = 0; r < s.rows; r++) multiply(made + r * a->d, a->d, factor[r]);
        give(a, made, s.rows, out + i * a->c, a->c);
    }
}

void N2_ISA(n2_cpu_attention)(const n2_call *c) {
    const n2_attention a = n2_attention_of(c);
    for (int64_t n = 0; n < a.n; n++)
        for (int64_t h = 0; h < a.heads; h++)
            attend(&a, IN(c, 0) + n * a.t * a.step + h * a.d, c->work,
                   OUT(c) + n * a.t * a.c + h * a.d);
}

/* Row i of weights p, which are exponentials yet, and of their gradients dp, which become those of
 * the products of queries and keys. */
static void soften_back(const strip *p, const strip *dp, int64_t i, float factor) {
    const float scale = 1.0f / sqrtf((float)p->a->d);
    float mean = 0;
    int64_t n;
    for (int64_t j = 0; j < p->a->t; j += N2_KEYS) {
        float *x = row_of(p, i, j, &n);
        multiply(x, n, factor);
        mean += dot(x, row_of(dp, i, j, &n), n);
    }
    for (int64_t j = 0; j < p->a->t; j += N2_KEYS) {
        const float *by = row_of(p, i, j, &n);
        float *x = row_of(dp, i, j, &n);
        for (int64_t k = 0; k < n; k++) x[k] = scale * by[k] * (x[k] - mean);
    }
}

/* What lies in scratch memory while gradients of one head are made. */
typedef struct backward {
    float *keys, *turned_keys, *turned_values, *dk, *dv; /* of all positions */
    float *q, *dy, *dq;                                  /* of a strip's queries */
    strip p, dp;
} backward;

static backward lay_out(const n2_attention *a, float *work) {
    const int64_t all = a->t * a->d, some = n2_queries_size(a);
    backward b = {.keys = work};
    b.turned_keys = b.keys + all;
    b.turned_values = b.turned_keys + all;
    b.dk = b.turned_values + all;
    b.dv = b.dk + all;
    b.q = b.dv + all;
    b.dy = b.q + some;
    b.dq = b.dy + some;
    b.p = (strip){a, 0, b.dq + some};
    b.dp = (strip){a, 0, b.p.at + n2_strip_size(a)};
    return b;
}

/* One head of one picture. */
static void attend_back(const n2_attention *a, const float *at, const float *dy, float *work,
                        float *out) {
    backward b = lay_out(a, work);
    take(a, at + a->c, a->step, a->t, b.keys);
    take_turned(a, at + a->c, b.turned_keys);
    take_turned(a, at + 2 * a->c, b.turned_values);
    for (int64_t i = 0; i < a->t; i += N2_QUERIES) {
        const int64_t rows = b.p.rows = b.dp.rows = at_most(a->t - i, N2_QUERIES);
        take(a, at + i * a->step, a->step, rows, b.q);
        take(a, dy + i * a->c, a->c, rows, b.dy);
        fill_strip(&b.p, (strided){b.q, a->d, 1}, b.turned_keys);
        fill_strip(&b.dp, (strided){b.dy, a->d, 1}, b.turned_values);
        for (int64_t r = 0; r < rows; r++) soften_back(&b.p, &b.dp, r, soften(&b.p, r));
        strip_times(&b.dp, b.keys, b.dq);
        give(a, b.dq, rows, out + i * a->step, a->step);
        turned_strip_times(&b.dp, b.q, b.dk, i > 0);
        turned_strip_times(&b.p, b.dy, b.dv, i > 0);
    }
    give(a, b.dk, a->t, out + a->c, a->step);
    give(a, b.dv, a->t, out + 2 * a->c, a->step);
}

void N2_ISA(n2_cpu_attention_grad)(const n2_call *c) {
    const n2_attention a = n2_attention_of(c);
    for (int64_t n = 0; n < a.n; n++)
        for (int64_t h = 0; h < a.heads; h++) {
            const int64_t at = n * a.t * a.step + h * a.d;
            attend_back(&a, IN(c, 0) + at, IN(c, 1) + n * a.t * a.c + h * a.d, c->work,
                        OUT(c) + at);
        }
}
