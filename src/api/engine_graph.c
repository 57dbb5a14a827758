/* The nodes of n2ce_engine.h, one function an op. */
#include "engine_types.h"

#define G       n2_graph_in(g)
#define IN(x)   n2_node_in(g, x)
#define OUT(x)  (g ? n2_node_out(x) : N2CE_NONE) /* without a graph nothing is built */
#define SHAPE() n2_shape_in(shape)

/* ---- leaves -------------------------------------------------------------- */

n2ce_node n2ce_constant(n2ce_graph *g, double value) { return OUT(n2g_constant(G, value)); }

n2ce_node n2ce_read(n2ce_graph *g, n2ce_tensor *tensor) {
    return OUT(n2_tensor_fits(g, tensor) ? n2g_read(G, n2_tensor_in(tensor)) : N2_NONE);
}

n2ce_node n2ce_normal(n2ce_graph *g, n2ce_shape shape) { return OUT(n2g_randn(G, SHAPE())); }
n2ce_node n2ce_uniform(n2ce_graph *g, n2ce_shape shape) { return OUT(n2g_randu(G, SHAPE())); }

n2ce_node n2ce_integers(n2ce_graph *g, n2ce_shape shape, int64_t n) {
    return OUT(n2g_randint(G, SHAPE(), n));
}

n2ce_node n2ce_permutation(n2ce_graph *g, int64_t n) { return OUT(n2g_permutation(G, n)); }

/* ---- element by element -------------------------------------------------- */

#define UNARY(name) \
    n2ce_node n2ce_##name(n2ce_graph *g, n2ce_node x) { return OUT(n2g_##name(G, IN(x))); }
UNARY(neg)
UNARY(exp)
UNARY(log)
UNARY(sqrt)
UNARY(reciprocal)
UNARY(sin)
UNARY(cos)
UNARY(tanh)
UNARY(sigmoid)
UNARY(log_sigmoid)
UNARY(softplus)
UNARY(silu)
UNARY(gelu)
UNARY(positive)
UNARY(detach)
UNARY(total)

n2ce_node n2ce_affine(n2ce_graph *g, n2ce_node x, double a, double b) {
    return OUT(n2g_affine(G, IN(x), a, b));
}

n2ce_node n2ce_scale(n2ce_graph *g, n2ce_node x, double a) { return OUT(n2g_scale(G, IN(x), a)); }

n2ce_node n2ce_lrelu(n2ce_graph *g, n2ce_node x, double slope) {
    return OUT(n2g_lrelu(G, IN(x), slope));
}

#define BINARY(name)                                                 \
    n2ce_node n2ce_##name(n2ce_graph *g, n2ce_node a, n2ce_node b) { \
        const n2_node left = IN(a), right = IN(b);                   \
        return OUT(n2g_##name(G, left, right));                      \
    }
BINARY(add)
BINARY(sub)
BINARY(mul)
BINARY(div)
BINARY(maximum)
BINARY(minimum)
BINARY(equal)
BINARY(greater)
BINARY(cross_entropy)
BINARY(gaussian_kl)
BINARY(squared_distances)
BINARY(gather)

/* ---- products and reductions --------------------------------------------- */

n2ce_node n2ce_matmul(n2ce_graph *g, n2ce_node a, n2ce_node b, bool transpose_a, bool transpose_b) {
    return OUT(n2g_matmul(G, IN(a), IN(b), transpose_a, transpose_b));
}

n2ce_node n2ce_linear(n2ce_graph *g, n2ce_node x, n2ce_node weight, n2ce_node bias) {
    return OUT(n2g_linear(G, IN(x), IN(weight), IN(bias)));
}

n2ce_node n2ce_sum(n2ce_graph *g, n2ce_node x, int axes) { return OUT(n2g_sum(G, IN(x), axes)); }
n2ce_node n2ce_max(n2ce_graph *g, n2ce_node x, int axes) { return OUT(n2g_amax(G, IN(x), axes)); }

/* A mean over everything is a loss more often than not: without axes. */
n2ce_node n2ce_mean(n2ce_graph *g, n2ce_node x, int axes) {
    if (!g) return N2CE_NONE;
    const n2_node mean = n2g_mean(G, IN(x), axes);
    return OUT(axes == N2CE_ALL_AXES ? n2g_total(G, mean) : mean);
}

n2ce_node n2ce_logsumexp(n2ce_graph *g, n2ce_node x, int axes) {
    return OUT(n2g_logsumexp(G, IN(x), axes));
}

n2ce_node n2ce_softmax(n2ce_graph *g, n2ce_node x, int axis) {
    return OUT(n2g_softmax(G, IN(x), axis));
}

/* ---- shapes and rows ----------------------------------------------------- */

n2ce_node n2ce_broadcast(n2ce_graph *g, n2ce_node x, n2ce_shape shape) {
    return OUT(n2g_broadcast(G, IN(x), SHAPE()));
}

n2ce_node n2ce_reshape(n2ce_graph *g, n2ce_node x, n2ce_shape shape) {
    return OUT(n2g_reshape(G, IN(x), SHAPE()));
}

n2ce_node n2ce_transpose(n2ce_graph *g, n2ce_node x, int axis_a, int axis_b) {
    return OUT(n2g_transpose(G, IN(x), axis_a, axis_b));
}

n2ce_node n2ce_concat(n2ce_graph *g, n2ce_node a, n2ce_node b, int axis) {
    return OUT(n2g_concat(G, IN(a), IN(b), axis));
}

n2ce_node n2ce_slice(n2ce_graph *g, n2ce_node x, int axis, int64_t begin, int64_t length) {
    return OUT(n2g_slice(G, IN(x), axis, begin, length));
}

n2ce_node n2ce_scatter_add(n2ce_graph *g, n2ce_node x, n2ce_node index, int64_t rows) {
    return OUT(n2g_scatter_add(G, IN(x), IN(index), rows));
}

n2ce_node n2ce_tile_rows(n2ce_graph *g, n2ce_node x, int64_t times) {
    return OUT(n2g_tile_rows(G, IN(x), times));
}

n2ce_node n2ce_repeat_rows(n2ce_graph *g, n2ce_node x, int64_t times) {
    return OUT(n2g_repeat_rows(G, IN(x), times));
}

/* ---- losses -------------------------------------------------------------- */

n2ce_node n2ce_loss(n2ce_graph *g, n2ce_node f_num, n2ce_node f_den, double magnitude) {
    const n2_node num = IN(f_num), den = IN(f_den);
    if (g && !(magnitude >= 1))
        return OUT(n2_graph_fail(G, "loss: M is %g; it must be at least 1", magnitude));
    return OUT(n2g_n2ce_loss(G, num, den, magnitude));
}

n2ce_node n2ce_reparameterise(n2ce_graph *g, n2ce_node mean, n2ce_node logvar, n2ce_node eps) {
    return OUT(n2g_reparameterise(G, IN(mean), IN(logvar), IN(eps)));
}

/* ---- gradient and updates ------------------------------------------------ */

void n2ce_grad(n2ce_graph *g, n2ce_node y, const n2ce_node *x, size_t n, n2ce_node *dx) {
    for (size_t i = 0; i < n; i++) dx[i] = N2CE_NONE;
    if (!g) return;
    n2ce_ctx *ctx = n2_store_ctx(n2_graph_store(G));
    n2_node *in = n2_alloc(ctx, 2 * n, sizeof *in), *out = in ? in + n : NULL;
    if (!in) {
        n2_graph_out_of_memory(G);
        return;
    }
    for (size_t i = 0; i < n; i++) in[i] = IN(x[i]);
    const n2_node of = IN(y);
    if (n2_graph_status(G) == N2CE_OK) {
        n2g_grad(G, of, in, n, out);
        for (size_t i = 0; i < n; i++) dx[i] = OUT(out[i]);
    }
    n2_free(ctx, in);
}

n2ce_node n2ce_assign(n2ce_graph *g, n2ce_tensor *tensor, n2ce_node x) {
    return OUT(n2_tensor_fits(g, tensor) ? n2g_assign(G, n2_tensor_in(tensor), IN(x)) : N2_NONE);
}

n2ce_node n2ce_average(n2ce_graph *g, n2ce_tensor *tensor, n2ce_node x, double decay) {
    const n2ce_node old = n2ce_scale(g, n2ce_read(g, tensor), decay);
    return n2ce_assign(g, tensor, n2ce_add(g, old, n2ce_scale(g, x, 1 - decay)));
}

void n2ce_watch(n2ce_graph *g, n2ce_node x) {
    if (g) n2g_watch(G, IN(x));
}
