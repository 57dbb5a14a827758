/* Kernel file, compiled once per instruction set. Norms, picture by picture: a picture is in the
 * cache after the first pass over it. Numbers of a channel are added up position by position, in
 * float for BLOCK positions and in double from there on. */
#include "cpu_kernels.h"
#include "cpu_norm.h"

#include "base/isa.h"

#include <math.h>
#include <string.h>

#define DECLARE(NAME, ...) n2_kernel N2_ISA(n2_cpu_##NAME);
N2_FAST_NORM(DECLARE)
#undef DECLARE

#define INLINE N2_CPU_INLINE

enum { BLOCK = 128 };

/* A picture, and what scratch memory has of each channel. */
typedef struct picture {
    n2_normed v;
    n2_norm norm;
    const float *x, *dy;
    float *out;
    float *shift, *gamma, *beta;
    float *centre;    /* mean - shift: what x is centred by */
    float *factor;    /* 1 / sqrt(variance + eps) of its group */
    float *part[2];   /* sums of a block */
    double *centred;  /* sum of x - centre */
    double *total[2]; /* sums, of whatever is summed up */
} picture;

static picture open_picture(const n2_call *c, const n2_normed *v) {
    double *at = c->work;
    float *next = (float *)(at + 3 * v->c);
    return (picture){.v = *v,
                     .norm = c->node->attr->norm,
                     .centred = at,
                     .total = {at + v->c, at + 2 * v->c},
                     .shift = next,
                     .gamma = next + v->c,
                     .beta = next + 2 * v->c,
                     .centre = next + 3 * v->c,
                     .factor = next + 4 * v->c,
                     .part = {next + 5 * v->c, next + 6 * v->c}};
}

/* Shift, gamma or beta of picture n. */
static void take_parameter(const n2_call *c, int k, int64_t n, int64_t channels, float *to) {
    if (c->node->in[k].id)
        memcpy(to, (const float *)c->in[k].data + n * n2_norm_step(c, k),
               (size_t)channels * sizeof *to);
    else
        for (int64_t i = 0; i < channels; i++) to[i] = k == 2 ? 1.0f : 0.0f;
}

static void clear_parts(picture *p) {
    memset(p->part[0], 0, (size_t)p->v.c * sizeof(float));
    memset(p->part[1], 0, (size_t)p->v.c * sizeof(float));
}

static void add_parts(picture *p) {
    for (int k = 0; k < 2; k++)
        for (int64_t i = 0; i < p->v.c; i++) p->total[k][i] += (double)p->part[k][i];
}

/* ---- moments ------------------------------------------------------------- */

/* Sums of the rows, four at a time: a sum need not wait for the one before as often. */
static void sum_rows(int64_t rows, int64_t c, const float *restrict x, float *restrict sum) {
    for (; rows >= 4; rows -= 4, x += 4 * c)
        for (int64_t i = 0; i < c; i++) sum[i] += (x[i] + x[c + i]) + (x[2 * c + i] + x[3 * c + i]);
    for (; rows > 0; rows--, x += c)
        for (int64_t i = 0; i < c; i++) sum[i] += x[i];
}

static void sum_centred(int64_t rows, int64_t c, const float *restrict x,
                        const float *restrict centre, float *restrict sum,
                        float *restrict squares) {
    for (; rows >= 2; rows -= 2, x += 2 * c)
        for (int64_t i = 0; i < c; i++) {
            const float a = x[i] - centre[i], b = x[c + i] - centre[i];
            sum[i] += a + b;
            squares[i] += a * a + b * b;
        }
    for (; rows > 0; rows--, x += c)
        for (int64_t i = 0; i < c; i++) {
            const float a = x[i] - centre[i];
            sum[i] += a;
            squares[i] += a * a;
        }
}

/* Totals of x, or of x - centre and its square. */
static void add_up(picture *p, bool centred) {
    const int64_t c = p->v.c;
    memset(p->total[0], 0, (size_t)c * sizeof(double));
    memset(p->total[1], 0, (size_t)c * sizeof(double));
    for (int64_t at = 0; at < p->v.positions; at += BLOCK) {
        const int64_t rows = p->v.positions - at < BLOCK ? p->v.positions - at : BLOCK;
        clear_parts(p);
        if (centred)
            sum_centred(rows, c, p->x + at * c, p->centre, p->part[0], p->part[1]);
        else
            sum_rows(rows, c, p->x + at * c, p->part[0]);
        add_parts(p);
    }
}

/* Of groups; what is left of the mean after the first pass, which is rounding, is taken off. */
static void find_moments(picture *p) {
    const int64_t each = p->v.each;
    const double one = 1 / (double)p->v.positions, size = (double)each;
    add_up(p, false);
    for (int64_t i = 0; i < p->v.c; i += each) {
        double mean = 0;
        for (int64_t k = i; k < i + each; k++) mean += p->total[0][k] * one + (double)p->shift[k];
        for (int64_t k = i; k < i + each; k++)
            p->centre[k] = (float)(mean / size - (double)p->shift[k]);
    }
    add_up(p, true);
    for (int64_t i = 0; i < p->v.c; i += each) {
        double rest = 0, squares = 0;
        for (int64_t k = i; k < i + each; k++) rest += p->total[0][k], squares += p->total[1][k];
        rest *= one / size;
        const double variance = fmax(squares * one / size - rest * rest, 0);
        for (int64_t k = i; k < i + each; k++) {
            const float centre = (float)((double)p->centre[k] + rest);
            p->centred[k] =
                p->total[0][k] - (double)p->v.positions * ((double)centre - (double)p->centre[k]);
            p->centre[k] = centre;
            p->factor[k] = (float)(1 / sqrt(variance + p->norm.eps));
        }
    }
}

static void begin_picture(const n2_call *c, picture *p, int64_t n) {
    const int64_t size = p->v.positions * p->v.c;
    p->x = (const float *)c->in[0].data + n * size;
    if (c->node->n_in > 4) p->dy = (const float *)c->in[4].data + n * size;
    p->out = (float *)c->out.data + n * size;
    if (c->node->op->id == N2_OP_norm_sums) p->out = (float *)c->out.data + n * p->v.c * 3;
    take_parameter(c, 1, n, p->v.c, p->shift);
    take_parameter(c, 2, n, p->v.c, p->gamma);
    take_parameter(c, 3, n, p->v.c, p->beta);
    find_moments(p);
}

/* ---- forward ------------------------------------------------------------- */

INLINE float activate(int act, float x, float slope) {
    return act == N2_ACT_SILU ? x * sigmoid(x) : act == N2_ACT_LRELU && x <= 0.0f ? slope * x : x;
}

INLINE float activation_slope(int act, float x, float slope) {
    return act == N2_ACT_SILU ? silu_slope(x) : act == N2_ACT_LRELU && x <= 0.0f ? slope : 1.0f;
}

INLINE void normalise(int act, const picture *p) {
    const int64_t c = p->v.c;
    const float slope = (float)p->norm.slope, *restrict x = p->x;
    const float *restrict centre = p->centre, *restrict factor = p->factor,
                          *restrict beta = p->beta;
    float *restrict out = p->out;
    for (int64_t at = 0; at < p->v.positions; at++, x += c, out += c)
        for (int64_t i = 0; i < c; i++)
            out[i] = activate(act, (x[i] - centre[i]) * factor[i] + beta[i], slope);
}

void N2_ISA(n2_cpu_norm)(const n2_call *c) {
    const n2_normed v = n2_normed_of(c);
    picture p = open_picture(c, &v);
    for (int64_t n = 0; n < v.n; n++) {
        begin_picture(c, &p, n);
        for (int64_t i = 0; i < v.c; i++) p.factor[i] *= p.gamma[i];
        if (p.norm.act == N2_ACT_SILU)
            normalise(N2_ACT_SILU, &p);
        else if (p.norm.act == N2_ACT_LRELU)
            normalise(N2_ACT_LRELU, &p);
        else
            normalise(N2_ACT_NONE, &p);
    }
}

/* ---- gradients ----------------------------------------------------------- */

/* The gradient before the activation, which is kept if there is room for it, and its sums, alone
 * and times what it is the gradient of, over rows from `at` on. */
INLINE void slopes(int act, bool keeps, const picture *p, int64_t at, int64_t rows) {
    const int64_t c = p->v.c;
    const float slope = (float)p->norm.slope, *restrict x = p->x + at * c,
                *restrict dy = p->dy + at * c;
    const float *restrict centre = p->centre, *restrict factor = p->factor;
    const float *restrict gamma = p->gamma, *restrict beta = p->beta;
    float *restrict out = keeps ? p->out + at * c : NULL;
    float *restrict sum = p->part[0], *restrict along = p->part[1];
    for (int64_t r = 0; r < rows; r++)
        for (int64_t i = 0; i < c; i++) {
            const float u = (x[r * c + i] - centre[i]) * factor[i];
            const float d = dy[r * c + i] * activation_slope(act, u * gamma[i] + beta[i], slope);
            sum[i] += d;
            along[i] += d * u;
            if (keeps) out[r * c + i] = d;
        }
}

INLINE void add_up_slopes(int act, bool keeps, picture *p) {
    memset(p->total[0], 0, (size_t)p->v.c * sizeof(double));
    memset(p->total[1], 0, (size_t)p->v.c * sizeof(double));
    for (int64_t at = 0; at < p->v.positions; at += BLOCK) {
        const int64_t rows = p->v.positions - at < BLOCK ? p->v.positions - at : BLOCK;
        clear_parts(p);
        slopes(act, keeps, p, at, rows);
        add_parts(p);
    }
}

/* Totals of the gradient before the activation, and of it times the picture of variance 1. */
INLINE void find_slopes(bool keeps, picture *p) {
    if (p->norm.act == N2_ACT_SILU)
        add_up_slopes(N2_ACT_SILU, keeps, p);
    else if (p->norm.act == N2_ACT_LRELU)
        add_up_slopes(N2_ACT_LRELU, keeps, p);
    else
        add_up_slopes(N2_ACT_NONE, keeps, p);
}

/* With du = gamma d of the gradient d before the activation, dx = factor (du - mean of du - u mean
 * of u du): the two means of a group, times its factor. */
typedef struct means {
    double du, along;
} means;

static means group_means(const picture *p, int64_t first) {
    const double size = (double)p->v.each * (double)p->v.positions;
    means m = {0, 0};
    for (int64_t k = first; k < first + p->v.each; k++) {
        m.du += (double)p->gamma[k] * p->total[0][k];
        m.along += (double)p->gamma[k] * p->total[1][k];
    }
    const double factor = (double)p->factor[first];
    return (means){m.du * factor / size, m.along * factor / size};
}

/* dx = d by - less - (x - centre) times, of the d that is where dx goes. */
static void finish_input(const picture *p, const float *restrict by, const float *restrict less,
                         const float *restrict times) {
    const int64_t c = p->v.c;
    const float *restrict x = p->x, *restrict centre = p->centre;
    float *restrict out = p->out;
    for (int64_t at = 0; at < p->v.positions; at++, x += c, out += c)
        for (int64_t i = 0; i < c; i++)
            out[i] = out[i] * by[i] - less[i] - (x[i] - centre[i]) * times[i];
}

void N2_ISA(n2_cpu_norm_input)(const n2_call *c) {
    const n2_normed v = n2_normed_of(c);
    picture p = open_picture(c, &v);
    float *by = p.gamma, *less = p.part[0], *times = p.part[1];
    for (int64_t n = 0; n < v.n; n++) {
        begin_picture(c, &p, n);
        find_slopes(true, &p);
        for (int64_t i = 0; i < v.c; i += v.each) {
            const means m = group_means(&p, i);
            for (int64_t k = i; k < i + v.each; k++) {
                by[k] *= p.factor[k];
                less[k] = (float)m.du;
                times[k] = (float)(m.along * (double)p.factor[k]);
            }
        }
        finish_input(&p, by, less, times);
    }
}

void N2_ISA(n2_cpu_norm_sums)(const n2_call *c) {
    const n2_normed v = n2_normed_of(c);
    picture p = open_picture(c, &v);
    for (int64_t n = 0; n < v.n; n++) {
        begin_picture(c, &p, n);
        find_slopes(false, &p);
        for (int64_t i = 0; i < v.c; i += v.each) {
            const means m = group_means(&p, i);
            for (int64_t k = i; k < i + v.each; k++) {
                const double factor = (double)p.factor[k];
                p.out[3 * k] = (float)p.total[0][k];
                p.out[3 * k + 1] = (float)p.total[1][k];
                p.out[3 * k + 2] =
                    (float)((double)p.gamma[k] * factor * p.total[0][k] -
                            m.du * (double)v.positions - m.along * factor * p.centred[k]);
            }
        }
    }
}
