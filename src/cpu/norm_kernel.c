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

#define INLINE   N2_CPU_INLINE
#define NOINLINE __attribute__((noinline))

enum { BLOCK = 128 };

/* A picture, and what scratch memory has of each channel. Loops over pixels are functions that are
 * not inlined, of few pointers: then compilers know that these do not meet. */
typedef struct picture {
    n2_normed v;
    n2_norm norm;
    const float *x, *dy;
    float *out;
    double *centred;  /* sum of x - centre */
    double *total[2]; /* sums, of whatever is summed up */
    float *part;      /* two sums of a block: [2 x c] */
    float *shift;
    /* the following lie side by side, [4 x c] */
    float *centre; /* mean - shift: what x is centred by */
    float *factor; /* 1 / sqrt(variance + eps) of its group */
    float *gamma, *beta;
    float *row; /* a pixel that nobody wants */
} picture;

static picture open_picture(const n2_call *c, const n2_normed *v) {
    double *at = c->work;
    float *next = (float *)(at + 3 * v->c);
    return (picture){.v = *v,
                     .norm = c->node->attr->norm,
                     .centred = at,
                     .total = {at + v->c, at + 2 * v->c},
                     .part = next,
                     .shift = next + 2 * v->c,
                     .centre = next + 3 * v->c,
                     .factor = next + 4 * v->c,
                     .gamma = next + 5 * v->c,
                     .beta = next + 6 * v->c,
                     .row = next + 7 * v->c};
}

/* Shift, gamma or beta of picture n. */
static void take_parameter(const n2_call *c, int k, int64_t n, int64_t channels, float *to) {
    if (c->node->in[k].id)
        memcpy(to, (const float *)c->in[k].data + n * n2_norm_step(c, k),
               (size_t)channels * sizeof *to);
    else
        for (int64_t i = 0; i < channels; i++) to[i] = k == 2 ? 1.0f : 0.0f;
}

/* A block's sums, of one or of two kinds, added to the totals, or the first of them. */
static void add_part(picture *p, int kinds, bool first) {
    for (int k = 0; k < kinds; k++)
        for (int64_t i = 0; i < p->v.c; i++)
            p->total[k][i] = (first ? 0 : p->total[k][i]) + (double)p->part[k * p->v.c + i];
}

/* ---- moments ------------------------------------------------------------- */

/* Sums of the rows, four at a time: a sum need not wait for the one before as often. */
static NOINLINE void sum_rows(int64_t rows, int64_t c, const float *restrict x,
                              float *restrict sum) {
    for (; rows >= 4; rows -= 4, x += 4 * c)
        for (int64_t i = 0; i < c; i++) sum[i] += (x[i] + x[c + i]) + (x[2 * c + i] + x[3 * c + i]);
    for (; rows > 0; rows--, x += c)
        for (int64_t i = 0; i < c; i++) sum[i] += x[i];
}

/* Of x - centre, and of its square. */
static NOINLINE void sum_centred(int64_t rows, int64_t c, const float *restrict x,
                                 const float *restrict centre, float *restrict sum) {
    for (; rows >= 2; rows -= 2, x += 2 * c)
        for (int64_t i = 0; i < c; i++) {
            const float a = x[i] - centre[i], b = x[c + i] - centre[i];
            sum[i] += a + b;
            sum[c + i] += a * a + b * b;
        }
    for (; rows > 0; rows--, x += c)
        for (int64_t i = 0; i < c; i++) {
            const float a = x[i] - centre[i];
            sum[i] += a;
            sum[c + i] += a * a;
        }
}

/* Totals of x, or of x - centre and its square. */
static void add_up(picture *p, bool centred) {
    const int64_t c = p->v.c;
    for (int64_t at = 0; at < p->v.positions; at += BLOCK) {
        const int64_t rows = p->v.positions - at < BLOCK ? p->v.positions - at : BLOCK;
        memset(p->part, 0, (size_t)(2 * c) * sizeof(float));
        if (centred)
            sum_centred(rows, c, p->x + at * c, p->centre, p->part);
        else
            sum_rows(rows, c, p->x + at * c, p->part);
        add_part(p, centred ? 2 : 1, at == 0);
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

/* NaN stays NaN, as x is a factor of what becomes of it. */
INLINE float gate_of(float x) { return 1.0f / (1.0f + n2_lane_exp(-x)); }

INLINE float activate(int act, float x, float slope) {
    return act == N2_ACT_SILU ? x * gate_of(x) : act == N2_ACT_LRELU && x <= 0.0f ? slope * x : x;
}

INLINE float activation_slope(int act, float x, float slope) {
    const float gate = act == N2_ACT_SILU ? gate_of(x) : 0.0f;
    return act == N2_ACT_SILU                 ? gate * (1.0f + x * (1.0f - gate))
           : act == N2_ACT_LRELU && x <= 0.0f ? slope
                                              : 1.0f;
}

/* of: centre, factor, gamma, beta; gamma is in the factor. */
#define NORMALISE(NAME, ACT)                                                                  \
    static NOINLINE void NAME(int64_t rows, int64_t c, float slope, const float *restrict of, \
                              const float *restrict x, float *restrict out) {                 \
        for (; rows > 0; rows--, x += c, out += c)                                            \
            for (int64_t i = 0; i < c; i++)                                                   \
                out[i] = activate(ACT, (x[i] - of[i]) * of[c + i] + of[3 * c + i], slope);    \
    }
NORMALISE(normalise_only, N2_ACT_NONE)
NORMALISE(normalise_silu, N2_ACT_SILU)
NORMALISE(normalise_lrelu, N2_ACT_LRELU)

void N2_ISA(n2_cpu_norm)(const n2_call *c) {
    const n2_normed v = n2_normed_of(c);
    picture p = open_picture(c, &v);
    const float slope = (float)p.norm.slope;
    for (int64_t n = 0; n < v.n; n++) {
        begin_picture(c, &p, n);
        for (int64_t i = 0; i < v.c; i++) p.factor[i] *= p.gamma[i];
        (p.norm.act == N2_ACT_SILU ? normalise_silu
         : p.norm.act == N2_ACT_LRELU
             ? normalise_lrelu
             : normalise_only)(v.positions, v.c, slope, p.centre, p.x, p.out);
    }
}

/* ---- gradients ----------------------------------------------------------- */

/* The gradient before the activation, to out, whose pixels are `step` numbers apart, and its sums,
 * alone and times what it is the gradient of; of: centre, factor, gamma, beta. */
#define SLOPES(NAME, ACT)                                                                     \
    static NOINLINE void NAME(int64_t rows, int64_t c, float slope, const float *restrict of, \
                              const float *restrict x, const float *restrict dy,              \
                              float *restrict sum, float *restrict out, int64_t step) {       \
        for (; rows > 0; rows--, x += c, dy += c, out += step)                                \
            for (int64_t i = 0; i < c; i++) {                                                 \
                const float u = (x[i] - of[i]) * of[c + i];                                   \
                const float before = u * of[2 * c + i] + of[3 * c + i];                       \
                const float d = dy[i] * activation_slope(ACT, before, slope);                 \
                out[i] = d;                                                                   \
                sum[i] += d;                                                                  \
                sum[c + i] += d * u;                                                          \
            }                                                                                 \
    }
SLOPES(slopes_only, N2_ACT_NONE)
SLOPES(slopes_silu, N2_ACT_SILU)
SLOPES(slopes_lrelu, N2_ACT_LRELU)

/* Totals of the gradient before the activation, which is kept where dx goes if `keeps`, and of it
 * times the picture of variance 1. */
static void find_slopes(bool keeps, picture *p) {
    const int64_t c = p->v.c, step = keeps ? c : 0;
    const float slope = (float)p->norm.slope;
    for (int64_t at = 0; at < p->v.positions; at += BLOCK) {
        const int64_t rows = p->v.positions - at < BLOCK ? p->v.positions - at : BLOCK;
        memset(p->part, 0, (size_t)(2 * c) * sizeof(float));
        (p->norm.act == N2_ACT_SILU    ? slopes_silu
         : p->norm.act == N2_ACT_LRELU ? slopes_lrelu
                                       : slopes_only)(rows, c, slope, p->centre, p->x + at * c,
                                                      p->dy + at * c, p->part,
                                                      keeps ? p->out + at * c : p->row, step);
        add_part(p, 2, at == 0);
    }
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
static NOINLINE void finish_input(int64_t rows, int64_t c, const float *restrict centre,
                                  const float *restrict by, const float *restrict less,
                                  const float *restrict x, float *restrict out) {
    const float *times = less + c;
    for (; rows > 0; rows--, x += c, out += c)
        for (int64_t i = 0; i < c; i++)
            out[i] = out[i] * by[i] - less[i] - (x[i] - centre[i]) * times[i];
}

void N2_ISA(n2_cpu_norm_input)(const n2_call *c) {
    const n2_normed v = n2_normed_of(c);
    picture p = open_picture(c, &v);
    float *by = p.gamma, *less = p.part, *times = p.part + v.c;
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
        finish_input(v.positions, v.c, p.centre, by, less, p.x, p.out);
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
