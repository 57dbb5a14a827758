/* The kernels, written plainly: naive loops, nothing to trust. This file is included with
 *
 *     N2_NUM       the type of numbers
 *     N2_PLAIN(x)  the name of kernel x
 *
 * once with double, which is the reference backend and defines what an op means, and once
 * with float, where it serves the ops that no fast kernel takes over. */
#include "base/numerics.h"
#include "base/random.h"
#include "engine/kernel.h"
#include "objective/terms.h"

#include <math.h>
#include <string.h>

#define PLAIN    static void
#define OUT(c)   ((N2_NUM *)(c)->out.data)
#define IN(c, k) ((const N2_NUM *)(c)->in[k].data)

/* ---- indices ------------------------------------------------------------- */

/* Position in an input of the element that broadcasts to element i of the output. */
static int64_t N2_PLAIN(source)(n2_shape in, n2_shape out, int64_t i) {
    int64_t at = 0, stride = 1;
    for (int k = out.rank - 1; k >= 0; k--) {
        const int64_t x = i % out.dim[k];
        const int j = k - (out.rank - in.rank);
        i /= out.dim[k];
        if (j < 0) continue;
        if (in.dim[j] != 1) at += x * stride;
        stride *= in.dim[j];
    }
    return at;
}

/* Elements before, along and after an axis. */
typedef struct N2_PLAIN(extent) {
    int64_t outer, length, inner;
} N2_PLAIN(extent);

static N2_PLAIN(extent) N2_PLAIN(extent_of)(n2_shape s, int axis) {
    N2_PLAIN(extent) e = {1, s.dim[axis], 1};
    for (int i = 0; i < axis; i++) e.outer *= s.dim[i];
    for (int i = axis + 1; i < s.rank; i++) e.inner *= s.dim[i];
    return e;
}

/* ---- random -------------------------------------------------------------- */

enum { N2_PLAIN(BATCH) = 256 };

/* The draws of a tile begin where its first row does. */
static void N2_PLAIN(draw)(const n2_call *c, void (*fill)(n2_stream, uint64_t, size_t, float *),
                           float factor) {
    const int64_t n = n2_elements(c->out.shape);
    const int64_t per_row =
        c->out.shape.rank ? n / (c->out.shape.dim[0] ? c->out.shape.dim[0] : 1) : 1;
    const n2_stream s = {c->seed, (uint32_t)c->node->attr->random.stream, c->step};
    const n2_range r = n2_elements_of(c);
    for (int64_t i = r.begin; i < r.end; i += N2_PLAIN(BATCH)) {
        float batch[N2_PLAIN(BATCH)];
        const int64_t m = r.end - i < N2_PLAIN(BATCH) ? r.end - i : N2_PLAIN(BATCH);
        fill(s, (uint64_t)(c->row0 * per_row + i), (size_t)m, batch);
        for (int64_t k = 0; k < m; k++) {
            float x = batch[k];
            if (factor > 0) x = fminf(floorf(x * factor), factor - 1);
            OUT(c)[i + k] = (N2_NUM)x;
        }
    }
}

PLAIN N2_PLAIN(normal)(const n2_call *c) { N2_PLAIN(draw)(c, n2_fill_normal, 0); }
PLAIN N2_PLAIN(uniform)(const n2_call *c) { N2_PLAIN(draw)(c, n2_fill_uniform, 0); }
PLAIN N2_PLAIN(integer)(const n2_call *c) {
    N2_PLAIN(draw)(c, n2_fill_uniform, (float)c->node->attr->random.below);
}

/* Fisher and Yates: from the end, swap with a random one not behind it. */
PLAIN N2_PLAIN(permutation)(const n2_call *c) {
    const int64_t n = n2_elements(c->out.shape);
    const n2_stream s = {c->seed, (uint32_t)c->node->attr->random.stream, c->step};
    for (int64_t i = 0; i < n; i++) OUT(c)[i] = (N2_NUM)i;
    for (int64_t i = n - 1; i > 0; i--) {
        float u;
        n2_fill_uniform(s, (uint64_t)i, 1, &u);
        const int64_t j = (int64_t)fminf(floorf(u * (float)(i + 1)), (float)i);
        const N2_NUM swap = OUT(c)[i];
        OUT(c)[i] = OUT(c)[j];
        OUT(c)[j] = swap;
    }
}

PLAIN N2_PLAIN(row_index)(const n2_call *c) {
    const int64_t n = n2_elements(c->out.shape);
    const int64_t divide = c->node->attr->row_index.divide,
                  modulo = c->node->attr->row_index.modulo;
    for (int64_t i = 0; i < n; i++) OUT(c)[i] = (N2_NUM)((c->row0 + i) / divide % modulo);
}

/* ---- element-wise -------------------------------------------------------- */

#define UNARY(NAME, EXPRESSION)                                  \
    PLAIN N2_PLAIN(NAME)(const n2_call *c) {                     \
        const double a = c->node->attr->a, b = c->node->attr->b; \
        const n2_range r = n2_elements_of(c);                    \
        (void)a, (void)b;                                        \
        for (int64_t i = r.begin; i < r.end; i++) {              \
            const double x = (double)IN(c, 0)[i];                \
            OUT(c)[i] = (N2_NUM)(EXPRESSION);                    \
        }                                                        \
    }
UNARY(neg, -x)
UNARY(exp, exp(x))
UNARY(log, log(x))
UNARY(sqrt, sqrt(x))
UNARY(reciprocal, 1 / x)
UNARY(tanh, tanh(x))
UNARY(sigmoid, n2_sigmoid(x))
UNARY(softplus, n2_softplus(x))
UNARY(sin, sin(x))
UNARY(cos, cos(x))
UNARY(positive, x > 0)
UNARY(affine, a *x + b)
UNARY(lrelu, x > 0 ? x : a * x)
UNARY(silu, x *n2_sigmoid(x))
UNARY(gelu, x *n2_normal_cdf(x))
/* The terms of the loss: M, and the side it is on. */
#define LOSS(NUM, DEN)                                                  \
    (c->node->attr->n2ce.is_den ? DEN(x, c->node->attr->n2ce.magnitude) \
                                : NUM(x, c->node->attr->n2ce.magnitude))
#define MINUS_NUM_WEIGHT(x, m) (-n2_num_weight(x, m))
UNARY(n2ce_term, LOSS(n2_num_term, n2_den_term))
UNARY(n2ce_weight, LOSS(MINUS_NUM_WEIGHT, n2_den_weight))
#undef LOSS
#undef MINUS_NUM_WEIGHT

#define BINARY(NAME, EXPRESSION)                                                                  \
    PLAIN N2_PLAIN(NAME)(const n2_call *c) {                                                      \
        const double a = c->node->attr->a;                                                        \
        const int64_t n = n2_elements(c->out.shape);                                              \
        (void)a;                                                                                  \
        for (int64_t i = 0; i < n; i++) {                                                         \
            const double x = (double)IN(c, 0)[N2_PLAIN(source)(c->in[0].shape, c->out.shape, i)]; \
            const double y = (double)IN(c, 1)[N2_PLAIN(source)(c->in[1].shape, c->out.shape, i)]; \
            OUT(c)[i] = (N2_NUM)(EXPRESSION);                                                     \
        }                                                                                         \
    }
BINARY(add, x + y)
BINARY(sub, x - y)
BINARY(mul, x *y)
BINARY(div, x / y)
BINARY(maximum, x > y || isnan(x) ? x : y)
BINARY(minimum, x < y || isnan(x) ? x : y)
BINARY(equal, x == y)
BINARY(greater, x > y)
BINARY(lrelu_grad, x > 0 ? y : a * y)
BINARY(silu_grad, y *n2_sigmoid(x) * (1 + x * n2_sigmoid(-x)))
BINARY(gelu_grad, y *(n2_normal_cdf(x) + x * exp(-0.5 * x * x) * 0.39894228040143268))

/* Between the backend's numbers and 16 bits. */
PLAIN N2_PLAIN(cast)(const n2_call *c) {
    const n2_dtype from = (n2_dtype)c->node->attr->cast.from, to = c->node->dtype;
    const n2_range r = n2_elements_of(c);
    for (int64_t i = r.begin; i < r.end; i++) {
        const double x = n2_load_number(c->in[0].data, from, sizeof(N2_NUM), (size_t)i);
        n2_store_number(c->out.data, to, sizeof(N2_NUM), (size_t)i, x);
    }
}

/* ---- matrix product ------------------------------------------------------ */

PLAIN N2_PLAIN(matmul)(const n2_call *c) {
    const n2_product p = n2_product_of(c);
    const int64_t lda = p.ta ? p.m : p.k, ldb = p.tb ? p.k : p.n;
    for (int64_t z = 0; z < p.batches; z++)
        for (int64_t i = 0; i < p.m; i++)
            for (int64_t j = 0; j < p.n; j++) {
                const N2_NUM *a = IN(c, 0) + z * p.m * p.k, *b = IN(c, 1) + z * p.k * p.n;
                N2_NUM *out = OUT(c) + (z * p.m + i) * p.n + j;
                double sum = c->add ? (double)*out : c->node->n_in == 4 ? (double)IN(c, 3)[j] : 0;
                for (int64_t l = 0; l < p.k; l++)
                    sum += (double)(p.ta ? a[l * lda + i] : a[i * lda + l]) *
                           (double)(p.tb ? b[j * ldb + l] : b[l * ldb + j]);
                *out = (N2_NUM)sum;
            }
}

/* ---- convolution --------------------------------------------------------- */

/* A number of x; 0 outside the picture. */
static double N2_PLAIN(pixel)(const N2_NUM *x, const n2_conv *v, int64_t n, int64_t i, int64_t j,
                              int64_t channel) {
    if (i < 0 || i >= v->h || j < 0 || j >= v->w) return 0;
    return (double)x[((n * v->h + i) * v->w + j) * v->c_in + channel];
}

/* A number of the kernel. */
static double N2_PLAIN(weight)(const N2_NUM *kernel, const n2_conv *v, int64_t r, int64_t s,
                               int64_t in, int64_t out) {
    return (double)kernel[((r * v->columns + s) * v->c_in + in) * v->c_out + out];
}

PLAIN N2_PLAIN(conv2d)(const n2_call *c) {
    const n2_conv v = n2_conv_of(c);
    N2_NUM *out = OUT(c);
    for (int64_t n = 0; n < v.n; n++)
        for (int64_t i = 0; i < v.oh; i++)
            for (int64_t j = 0; j < v.ow; j++)
                for (int64_t o = 0; o < v.c_out; o++) {
                    const int64_t y = i * v.window.stride_y - v.window.top;
                    const int64_t x = j * v.window.stride_x - v.window.left;
                    double sum = 0;
                    for (int64_t r = 0; r < v.rows; r++)
                        for (int64_t s = 0; s < v.columns; s++)
                            for (int64_t k = 0; k < v.c_in; k++)
                                sum += N2_PLAIN(pixel)(IN(c, 0), &v, n, y + r, x + s, k) *
                                       N2_PLAIN(weight)(IN(c, 1), &v, r, s, k, o);
                    *out++ = (N2_NUM)sum;
                }
}

/* dy where the kernel's first pixel is at (i, j), counted from the first one of the frame; 0 where
 * it never is. */
static double N2_PLAIN(reply)(const N2_NUM *dy, const n2_conv *v, int64_t n, int64_t i, int64_t j,
                              int64_t channel) {
    if (i < 0 || i % v->window.stride_y || i / v->window.stride_y >= v->oh) return 0;
    if (j < 0 || j % v->window.stride_x || j / v->window.stride_x >= v->ow) return 0;
    const int64_t row = n * v->oh + i / v->window.stride_y;
    return (double)dy[(row * v->ow + j / v->window.stride_x) * v->c_out + channel];
}

PLAIN N2_PLAIN(conv2d_input)(const n2_call *c) {
    const n2_conv v = n2_conv_of(c);
    N2_NUM *out = OUT(c);
    for (int64_t n = 0; n < v.n; n++)
        for (int64_t i = v.window.top; i < v.h + v.window.top; i++)
            for (int64_t j = v.window.left; j < v.w + v.window.left; j++)
                for (int64_t k = 0; k < v.c_in; k++) {
                    double sum = 0;
                    for (int64_t r = 0; r < v.rows; r++)
                        for (int64_t s = 0; s < v.columns; s++)
                            for (int64_t o = 0; o < v.c_out; o++)
                                sum += N2_PLAIN(reply)(IN(c, 0), &v, n, i - r, j - s, o) *
                                       N2_PLAIN(weight)(IN(c, 1), &v, r, s, k, o);
                    *out++ = (N2_NUM)sum;
                }
}

PLAIN N2_PLAIN(conv2d_weight)(const n2_call *c) {
    const n2_conv v = n2_conv_of(c);
    N2_NUM *out = OUT(c);
    for (int64_t r = 0; r < v.rows; r++)
        for (int64_t s = 0; s < v.columns; s++)
            for (int64_t k = 0; k < v.c_in; k++)
                for (int64_t o = 0; o < v.c_out; o++, out++) {
                    double sum = c->add ? (double)*out : 0;
                    for (int64_t n = 0; n < v.n; n++)
                        for (int64_t i = 0; i < v.oh; i++)
                            for (int64_t j = 0; j < v.ow; j++) {
                                const int64_t y = i * v.window.stride_y - v.window.top;
                                const int64_t x = j * v.window.stride_x - v.window.left;
                                const N2_NUM *dy = IN(c, 1) + (n * v.oh + i) * v.ow * v.c_out;
                                sum += N2_PLAIN(pixel)(IN(c, 0), &v, n, y + r, x + s, k) *
                                       (double)dy[j * v.c_out + o];
                            }
                    *out = (N2_NUM)sum;
                }
}

#include "plain_norm.h"

/* ---- attention ------------------------------------------------------------ */

/* Numbers of q, k or v of one head. */
static double N2_PLAIN(dot)(const N2_NUM *x, const N2_NUM *y, int64_t d) {
    double sum = 0;
    for (int64_t e = 0; e < d; e++) sum += (double)x[e] * (double)y[e];
    return sum;
}

static void N2_PLAIN(add_times)(N2_NUM *to, double factor, const N2_NUM *x, int64_t d) {
    for (int64_t e = 0; e < d; e++) to[e] = (N2_NUM)((double)to[e] + factor * (double)x[e]);
}

/* What query q makes of the keys: the softmax of products, p [t]. */
static void N2_PLAIN(attend)(const n2_attention *a, const N2_NUM *q, const N2_NUM *keys,
                             N2_NUM *p) {
    double top = -N2_INFINITY, sum = 0;
    for (int64_t j = 0; j < a->t; j++) {
        p[j] = (N2_NUM)(N2_PLAIN(dot)(q, keys + j * a->step, a->d) / sqrt((double)a->d));
        if ((double)p[j] > top) top = (double)p[j];
    }
    for (int64_t j = 0; j < a->t; j++) sum += exp((double)p[j] - top);
    for (int64_t j = 0; j < a->t; j++) p[j] = (N2_NUM)(exp((double)p[j] - top) / sum);
}

/* Softmax of a row, and its gradient. */
static inline int64_t N2_PLAIN(attention_scratch)(const n2_call *c) {
    return 2 * c->in[0].shape.dim[1];
}

PLAIN N2_PLAIN(attention)(const n2_call *c) {
    const n2_attention a = n2_attention_of(c);
    N2_NUM *p = c->work;
    memset(OUT(c), 0, (size_t)n2_elements(c->out.shape) * sizeof(N2_NUM));
    for (int64_t n = 0; n < a.n; n++)
        for (int64_t h = 0; h < a.heads; h++)
            for (int64_t i = 0; i < a.t; i++) {
                const N2_NUM *q = IN(c, 0) + n * a.t * a.step + h * a.d, *k = q + a.c;
                N2_PLAIN(attend)(&a, q + i * a.step, k, p);
                for (int64_t j = 0; j < a.t; j++) N2_PLAIN(add_times)
                (OUT(c) + (n * a.t + i) * a.c + h * a.d, (double)p[j], k + a.c + j * a.step, a.d);
            }
}

/* Query i of one head, whose gradients dq, dk = dq + c, dv = dq + 2 c it adds to. */
static void N2_PLAIN(attention_row_grad)(const n2_attention *a, const N2_NUM *q, const N2_NUM *dy,
                                         N2_NUM *dq, int64_t i, N2_NUM *p) {
    const N2_NUM *k = q + a->c, *v = k + a->c;
    N2_NUM *dp = p + a->t;
    double mean = 0;
    N2_PLAIN(attend)(a, q + i * a->step, k, p);
    for (int64_t j = 0; j < a->t; j++) {
        dp[j] = (N2_NUM)N2_PLAIN(dot)(dy + i * a->c, v + j * a->step, a->d);
        mean += (double)p[j] * (double)dp[j];
    }
    for (int64_t j = 0; j < a->t; j++) {
        const double ds = (double)p[j] * ((double)dp[j] - mean) / sqrt((double)a->d);
        N2_NUM *dk = dq + a->c + j * a->step;
        N2_PLAIN(add_times)(dq + i * a->step, ds, k + j * a->step, a->d);
        N2_PLAIN(add_times)(dk, ds, q + i * a->step, a->d);
        N2_PLAIN(add_times)(dk + a->c, (double)p[j], dy + i * a->c, a->d);
    }
}

PLAIN N2_PLAIN(attention_grad)(const n2_call *c) {
    const n2_attention a = n2_attention_of(c);
    memset(OUT(c), 0, (size_t)n2_elements(c->out.shape) * sizeof(N2_NUM));
    for (int64_t n = 0; n < a.n; n++)
        for (int64_t h = 0; h < a.heads; h++) {
            const int64_t at = n * a.t * a.step + h * a.d;
            const N2_NUM *dy = IN(c, 1) + n * a.t * a.c + h * a.d;
            for (int64_t i = 0; i < a.t; i++) N2_PLAIN(attention_row_grad)
            (&a, IN(c, 0) + at, dy, OUT(c) + at, i, c->work);
        }
}

/* ---- reductions ---------------------------------------------------------- */

PLAIN N2_PLAIN(sum)(const n2_call *c) {
    const int64_t n = n2_elements(c->in[0].shape), m = n2_elements(c->out.shape);
    for (int64_t i = 0; i < m && !c->add; i++) OUT(c)[i] = 0;
    for (int64_t i = 0; i < n; i++)
        OUT(c)[N2_PLAIN(source)(c->out.shape, c->in[0].shape, i)] += IN(c, 0)[i];
}

PLAIN N2_PLAIN(amax)(const n2_call *c) {
    const int64_t n = n2_elements(c->in[0].shape), m = n2_elements(c->out.shape);
    for (int64_t i = 0; i < m; i++) OUT(c)[i] = (N2_NUM)-N2_INFINITY;
    for (int64_t i = 0; i < n; i++) {
        N2_NUM *top = &OUT(c)[N2_PLAIN(source)(c->out.shape, c->in[0].shape, i)];
        const N2_NUM x = IN(c, 0)[i];
        if (x > *top || x != x) *top = x;
    }
}

/* The k-th smallest of n numbers, which change places: those before it are not larger. */
static N2_NUM N2_PLAIN(select)(N2_NUM *x, int64_t n, int64_t k) {
    int64_t low = 0, high = n - 1;
    while (low < high) {
        const N2_NUM pivot = x[low + (high - low) / 2];
        int64_t i = low, j = high;
        while (i <= j) {
            while (x[i] < pivot) i++;
            while (pivot < x[j]) j--;
            if (i > j) break;
            const N2_NUM swap = x[i];
            x[i++] = x[j];
            x[j--] = swap;
        }
        if (k <= j)
            high = j;
        else if (k >= i)
            low = i;
        else
            break;
    }
    return x[k];
}

static int64_t N2_PLAIN(median_scratch)(const n2_call *c) { return n2_elements(c->in[0].shape); }

PLAIN N2_PLAIN(median)(const n2_call *c) {
    N2_NUM *x = c->work;
    int64_t n = 0;
    const bool above = c->node->attr->reduce.above_diagonal; /* the diagonal; else all as one row */
    const int64_t rows = above ? c->in[0].shape.dim[0] : 1;
    const int64_t size = above ? rows : n2_elements(c->in[0].shape);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t i = above ? r + 1 : 0; i < size; i++) x[n++] = IN(c, 0)[r * size + i];
    if (n == 0) {
        OUT(c)[0] = (N2_NUM)N2_NAN;
        return;
    }
    const N2_NUM upper = N2_PLAIN(select)(x, n, n / 2);
    N2_NUM lower = x[0]; /* the largest of those before it */
    for (int64_t i = 1; i < n / 2; i++) lower = x[i] > lower ? x[i] : lower;
    OUT(c)[0] = n % 2 ? upper : (N2_NUM)(((double)lower + (double)upper) / 2);
}

/* ---- shapes -------------------------------------------------------------- */

PLAIN N2_PLAIN(broadcast)(const n2_call *c) {
    const int64_t n = n2_elements(c->out.shape);
    for (int64_t i = 0; i < n; i++)
        OUT(c)[i] = IN(c, 0)[N2_PLAIN(source)(c->in[0].shape, c->out.shape, i)];
}

PLAIN N2_PLAIN(transpose)(const n2_call *c) {
    const int a = c->node->attr->transpose.axis_a, b = c->node->attr->transpose.axis_b;
    const n2_shape so = c->out.shape, si = c->in[0].shape;
    const int64_t n = n2_elements(so);
    for (int64_t i = 0; i < n; i++) {
        int64_t x[N2_MAX_RANK], rest = i, at = 0;
        for (int k = so.rank - 1; k >= 0; k--) {
            x[k] = rest % so.dim[k];
            rest /= so.dim[k];
        }
        for (int k = 0; k < si.rank; k++) at = at * si.dim[k] + x[k == a ? b : k == b ? a : k];
        OUT(c)[i] = IN(c, 0)[at];
    }
}

/* Pictures of half and of double size: a pixel of the output after the other, by parts. */
PLAIN N2_PLAIN(pool2)(const n2_call *c) {
    const n2_shape s = c->out.shape;
    const int64_t h = s.dim[1], w = s.dim[2], channels = s.dim[3];
    const n2_range r = n2_part_of(s.dim[0] * h * w, c->part, c->parts);
    const N2_NUM a = (N2_NUM)c->node->attr->a;
    for (int64_t p = r.begin; p < r.end; p++) {
        const N2_NUM *x = IN(c, 0) + (4 * (p / w) * w + 2 * (p % w)) * channels;
        const N2_NUM *below = x + 2 * w * channels;
        N2_NUM *y = OUT(c) + p * channels;
        for (int64_t k = 0; k < channels; k++)
            y[k] = a * (x[k] + x[k + channels] + (below[k] + below[k + channels]));
    }
}

PLAIN N2_PLAIN(upsample2)(const n2_call *c) {
    const n2_shape s = c->out.shape;
    const int64_t h = s.dim[1], w = s.dim[2], channels = s.dim[3];
    const n2_range r = n2_part_of(s.dim[0] * h * w, c->part, c->parts);
    const N2_NUM a = (N2_NUM)c->node->attr->a;
    for (int64_t p = r.begin; p < r.end; p++) {
        const int64_t line = p / w, from = line / h * (h / 2) + line % h / 2;
        const N2_NUM *x = IN(c, 0) + (from * (w / 2) + p % w / 2) * channels;
        for (int64_t k = 0; k < channels; k++) OUT(c)[p * channels + k] = a * x[k];
    }
}

/* Copies a stretch along an axis: `from` of the input to `to` of the output. */
static void N2_PLAIN(copy_along)(const n2_call *c, int k, int axis, int64_t from, int64_t to,
                                 int64_t length) {
    const N2_PLAIN(extent) ein = N2_PLAIN(extent_of)(c->in[k].shape, axis);
    const N2_PLAIN(extent) eout = N2_PLAIN(extent_of)(c->out.shape, axis);
    for (int64_t i = 0; i < ein.outer; i++)
        memcpy(OUT(c) + (i * eout.length + to) * eout.inner,
               IN(c, k) + (i * ein.length + from) * ein.inner,
               (size_t)(length * ein.inner) * sizeof(N2_NUM));
}

PLAIN N2_PLAIN(concat)(const n2_call *c) {
    const int axis = (int)c->node->attr->along.axis;
    for (int64_t k = 0, at = 0; k < c->node->n_in; at += c->in[k++].shape.dim[axis])
        N2_PLAIN(copy_along)(c, (int)k, axis, 0, at, c->in[k].shape.dim[axis]);
}

PLAIN N2_PLAIN(slice)(const n2_call *c) {
    const int axis = (int)c->node->attr->along.axis;
    N2_PLAIN(copy_along)(c, 0, axis, c->node->attr->along.begin, 0, c->out.shape.dim[axis]);
}

PLAIN N2_PLAIN(pad)(const n2_call *c) {
    const int axis = (int)c->node->attr->along.axis;
    memset(OUT(c), 0, (size_t)n2_elements(c->out.shape) * sizeof(N2_NUM));
    N2_PLAIN(copy_along)(c, 0, axis, 0, c->node->attr->along.begin, c->in[0].shape.dim[axis]);
}

/* ---- rows ---------------------------------------------------------------- */

/* A row number, kept inside the table: a wrong index must not write elsewhere. */
static int64_t N2_PLAIN(row)(N2_NUM index, int64_t rows) {
    const double x = (double)index;
    return !(x >= 0) ? 0 : x < (double)rows ? (int64_t)x : rows - 1;
}

PLAIN N2_PLAIN(gather)(const n2_call *c) {
    const int64_t rows = c->in[0].shape.dim[0], n = c->out.shape.dim[0];
    if (n == 0 || rows == 0) return;
    const size_t width = (size_t)(n2_elements(c->out.shape) / n);
    for (int64_t i = n * c->part / c->parts; i < n * (c->part + 1) / c->parts; i++)
        memcpy(OUT(c) + (size_t)i * width,
               IN(c, 0) + (size_t)N2_PLAIN(row)(IN(c, 1)[i], rows) * width, width * sizeof(N2_NUM));
}

PLAIN N2_PLAIN(scatter_add)(const n2_call *c) {
    const int64_t rows = c->out.shape.dim[0], n = c->in[0].shape.dim[0];
    const int64_t total = n2_elements(c->out.shape);
    if (!c->add) memset(OUT(c), 0, (size_t)total * sizeof(N2_NUM));
    if (n == 0 || rows == 0) return;
    const int64_t width = total / rows;
    for (int64_t i = 0; i < n; i++) {
        N2_NUM *to = OUT(c) + N2_PLAIN(row)(IN(c, 1)[i], rows) * width;
        for (int64_t k = 0; k < width; k++) to[k] += IN(c, 0)[i * width + k];
    }
}

/* ---- updates ------------------------------------------------------------- */

PLAIN N2_PLAIN(assign)(const n2_call *c) {
    const n2_range r = n2_elements_of(c);
    const size_t bytes = n2_dtype_bytes(c->node->dtype, sizeof(N2_NUM));
    memmove((char *)c->out.data + (size_t)r.begin * bytes,
            (const char *)c->in[0].data + (size_t)r.begin * bytes,
            (size_t)(r.end - r.begin) * bytes);
}

/* p <- p - rate (m_hat / (sqrt(v_hat) + eps) + decay p); in = gradient, rate, factor on
 * the gradient, number of the step. */
PLAIN N2_PLAIN(adam)(const n2_call *c) {
    const n2_adam *adam = &c->node->attr->adam;
    const double b1 = adam->beta1, b2 = adam->beta2, eps = adam->eps, decay = adam->decay;
    const double rate = (double)IN(c, 1)[0];
    const double factor = (double)IN(c, 2)[0], step = (double)IN(c, 3)[0];
    const double fix1 = 1 - pow(b1, step), fix2 = 1 - pow(b2, step);
    N2_NUM *p = OUT(c), *m = c->node->attr->tensor[1]->data, *v = c->node->attr->tensor[2]->data;
    const n2_range r = n2_elements_of(c);
    for (int64_t i = r.begin; i < r.end; i++) {
        const double g = (double)IN(c, 0)[i] * factor;
        const double m1 = b1 * (double)m[i] + (1 - b1) * g;
        const double v1 = b2 * (double)v[i] + (1 - b2) * g * g;
        m[i] = (N2_NUM)m1;
        v[i] = (N2_NUM)v1;
        const double direction = (m1 / fix1) / (sqrt(v1 / fix2) + eps);
        p[i] = (N2_NUM)((double)p[i] - rate * (direction + decay * (double)p[i]));
    }
}

#undef PLAIN
#undef OUT
#undef IN
#undef UNARY
#undef BINARY
