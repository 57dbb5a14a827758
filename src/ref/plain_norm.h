/* Norms, written plainly: a part of plain.h. */

/* Shift, gamma or beta of a channel. */
static double N2_PLAIN(parameter)(const n2_call *c, int k, int64_t n, int64_t channel) {
    if (!c->node->in[k].id) return k == 2;
    return (double)IN(c, k)[n * n2_norm_step(c, k) + channel];
}

/* Where number i of group g of picture n is. */
static int64_t N2_PLAIN(in_group)(const n2_normed *v, int64_t n, int64_t g, int64_t i) {
    return (n * v->positions + i / v->each) * v->c + g * v->each + i % v->each;
}

typedef struct N2_PLAIN(moments) {
    double mean, factor;
} N2_PLAIN(moments);

static N2_PLAIN(moments)
    N2_PLAIN(group_moments)(const n2_call *c, const n2_normed *v, int64_t n, int64_t g) {
    const int64_t size = v->positions * v->each;
    double mean = 0, variance = 0;
    for (int64_t i = 0; i < size; i++) {
        const int64_t at = N2_PLAIN(in_group)(v, n, g, i);
        mean += ((double)IN(c, 0)[at] + N2_PLAIN(parameter)(c, 1, n, at % v->c)) / (double)size;
    }
    for (int64_t i = 0; i < size; i++) {
        const int64_t at = N2_PLAIN(in_group)(v, n, g, i);
        const double x = (double)IN(c, 0)[at] + N2_PLAIN(parameter)(c, 1, n, at % v->c) - mean;
        variance += x * x / (double)size;
    }
    return (N2_PLAIN(moments)){mean, 1 / sqrt(variance + c->node->attr->norm.eps)};
}

/* x of mean 0 and variance 1. */
static double N2_PLAIN(unit)(const n2_call *c, const n2_normed *v, int64_t n, int64_t at,
                             N2_PLAIN(moments) m) {
    return ((double)IN(c, 0)[at] + N2_PLAIN(parameter)(c, 1, n, at % v->c) - m.mean) * m.factor;
}

PLAIN N2_PLAIN(norm)(const n2_call *c) {
    const n2_normed v = n2_normed_of(c);
    const n2_norm a = c->node->attr->norm;
    for (int64_t n = 0; n < v.n; n++)
        for (int64_t g = 0; g < a.groups; g++) {
            const N2_PLAIN(moments) m = N2_PLAIN(group_moments)(c, &v, n, g);
            for (int64_t i = 0; i < v.positions * v.each; i++) {
                const int64_t at = N2_PLAIN(in_group)(&v, n, g, i);
                const double x =
                    N2_PLAIN(parameter)(c, 2, n, at % v.c) * N2_PLAIN(unit)(c, &v, n, at, m) +
                    N2_PLAIN(parameter)(c, 3, n, at % v.c);
                OUT(c)
                [at] = (N2_NUM)(a.act == N2_ACT_SILU              ? x * n2_sigmoid(x)
                                : a.act == N2_ACT_LRELU && x <= 0 ? a.slope * x
                                                                  : x);
            }
        }
}

/* The gradient by what the activation is of. */
static double N2_PLAIN(before_act)(const n2_call *c, const n2_normed *v, int64_t n, int64_t at,
                                   double unit) {
    const n2_norm a = c->node->attr->norm;
    const double dy = (double)IN(c, 4)[at];
    const double x =
        N2_PLAIN(parameter)(c, 2, n, at % v->c) * unit + N2_PLAIN(parameter)(c, 3, n, at % v->c);
    if (a.act == N2_ACT_SILU) return dy * n2_sigmoid(x) * (1 + x * n2_sigmoid(-x));
    return a.act == N2_ACT_LRELU && x <= 0 ? a.slope * dy : dy;
}

/* dx, or the sums: of u, which has mean 0 and variance 1, du is gamma times the gradient before the
 * activation, and dx = factor (du - mean of du - u mean of u du). */
static void N2_PLAIN(norm_gradient)(const n2_call *c, bool sums) {
    const n2_normed v = n2_normed_of(c);
    for (int64_t n = 0; n < v.n; n++)
        for (int64_t g = 0; g < c->node->attr->norm.groups; g++) {
            const N2_PLAIN(moments) m = N2_PLAIN(group_moments)(c, &v, n, g);
            const int64_t size = v.positions * v.each;
            double mean = 0, along = 0;
            for (int64_t i = 0; i < size; i++) {
                const int64_t at = N2_PLAIN(in_group)(&v, n, g, i);
                const double u = N2_PLAIN(unit)(c, &v, n, at, m);
                const double du =
                    N2_PLAIN(parameter)(c, 2, n, at % v.c) * N2_PLAIN(before_act)(c, &v, n, at, u);
                mean += du / (double)size;
                along += u * du / (double)size;
            }
            for (int64_t i = 0; i < size; i++) {
                const int64_t at = N2_PLAIN(in_group)(&v, n, g, i), channel = at % v.c;
                const double u = N2_PLAIN(unit)(c, &v, n, at, m);
                const double d = N2_PLAIN(before_act)(c, &v, n, at, u);
                const double du = N2_PLAIN(parameter)(c, 2, n, channel) * d;
                const double dx = m.factor * (du - mean - u * along);
                N2_NUM *sum = OUT(c) + (n * v.c + channel) * 3;
                if (!sums)
                    OUT(c)[at] = (N2_NUM)dx;
                else
                    sum[0] += (N2_NUM)d, sum[1] += (N2_NUM)(d * u), sum[2] += (N2_NUM)dx;
            }
        }
}

PLAIN N2_PLAIN(norm_input)(const n2_call *c) { N2_PLAIN(norm_gradient)(c, false); }

PLAIN N2_PLAIN(norm_sums)(const n2_call *c) {
    for (int64_t i = 0; i < n2_elements(c->out.shape); i++) OUT(c)[i] = 0;
    N2_PLAIN(norm_gradient)(c, true);
}
