#define N2_INSIDE
#include "nn.h"

#include <stdio.h>

/* min(1, clip / (norm + 1e-6)), as PyTorch clips. */
static n2_node clip_factor(n2_graph *g, n2_node norm, double clip) {
    const n2_node ratio = n2g_div(g, n2g_constant(g, clip), n2g_affine(g, norm, 1, 1e-6));
    return n2g_minimum(g, n2g_constant(g, 1), ratio);
}

/* The squares of halves of the list, and so on: a chain of additions would be as long as the
 * list, and every link of it a launch on a GPU. */
static n2_node sum_of_squares(n2_graph *g, const n2_node *grads, size_t n) {
    if (n == 0) return n2g_constant(g, 0);
    if (n == 1) return n2g_total(g, n2g_mul(g, grads[0], grads[0]));
    const n2_node left = sum_of_squares(g, grads, n / 2);
    return n2g_add(g, left, sum_of_squares(g, grads + n / 2, n - n / 2));
}

static n2_node global_norm(n2_graph *g, const n2_node *grads, size_t n) {
    return n2g_sqrt(g, sum_of_squares(g, grads, n));
}

/* That of an optimiser of this name which is there already, or a new one. */
static n2_tensor *state(n2_graph *g, const char *name, const char *kind, const n2_tensor *like) {
    char full[128];
    snprintf(full, sizeof full, "%s.%s.%s", name, kind, like ? like->name : "count");
    const n2_shape shape = like ? like->shape : n2_scalar_shape();
    n2_tensor *t = n2_store_find(n2_graph_store(g), full);
    if (t) return t;
    t = n2_store_add(n2_graph_store(g), full, shape);
    if (!t) n2_graph_out_of_memory(g);
    if (t && like) t->is_kernel = like->is_kernel;
    return t;
}

/* Each number of a gradient, between -clip and clip. */
static n2_node clip_each(n2_graph *g, n2_node dx, double clip) {
    const n2_node low = n2g_maximum(g, dx, n2g_constant(g, -clip));
    return n2g_minimum(g, low, n2g_constant(g, clip));
}

static n2_node times(n2_graph *g, n2_node x, double factor) {
    return factor == 1 ? x : n2g_scale(g, x, factor);
}

/* x, dx: room for all parameters. */
static void minimise(n2_graph *g, const n2_optimiser *o, const char *name, const n2_parameters *p,
                     n2_node loss, n2_node *norm, n2_node *x, n2_node *dx) {
    for (size_t i = 0; i < p->n; i++) x[i] = n2g_read(g, p->list[i]);
    const double scale = o->loss_scale > 0 ? o->loss_scale : 1;
    n2g_grad(g, times(g, loss, scale), x, p->n, dx);
    for (size_t i = 0; i < p->n && o->clip_each > 0; i++)
        dx[i] = clip_each(g, dx[i], scale * o->clip_each);
    const n2_node size = times(g, global_norm(g, dx, p->n), 1 / scale);
    if (norm) *norm = size;
    n2g_watch(g, loss);
    if (norm || o->clip > 0 || scale > 1) n2g_watch(g, size); /* else nobody computes it */
    n2_tensor *count = state(g, name, "step", NULL);
    /* the rate does not wait for the assignment, which waits for everything that is watched */
    const n2_node next = n2g_affine(g, n2g_read(g, count), 1, 1);
    const n2_node step = n2g_assign(g, count, next);
    n2_node rate = n2g_constant(g, o->rate);
    if (o->schedule) rate = n2g_mul(g, rate, o->schedule(g, next, o->schedule_arg));
    const n2_node clip = o->clip > 0 ? clip_factor(g, size, o->clip) : n2g_constant(g, 1);
    const n2_node factor = times(g, clip, 1 / scale);
    for (size_t i = 0; i < p->n && n2_graph_status(g) == N2CE_OK; i++) {
        n2_tensor *const tensors[] = {p->list[i], state(g, name, "m", p->list[i]),
                                      state(g, name, "v", p->list[i])};
        n2g_adam_update(g, &o->adam, tensors, dx[i], rate, factor, step);
    }
}

void n2_build_minimise(n2_graph *g, const n2_optimiser *o, const char *name, const n2_parameters *p,
                       n2_node loss, n2_node *norm) {
    if (p->failed) n2_graph_fail(g, "minimise: the parameters are not complete");
    n2_arena scratch = n2_arena_new(n2_store_ctx(n2_graph_store(g)));
    n2_node *x = n2_arena_alloc(&scratch, 2 * p->n + 1, sizeof *x);
    if (x)
        minimise(g, o, name, p, loss, norm, x, x + p->n);
    else
        n2_graph_out_of_memory(g);
    n2_arena_free(&scratch);
}

n2_node n2_schedule_exponential(n2_graph *g, n2_node step, const void *arg) {
    const double decay = *(const double *)arg; /* decay^(step - 1) */
    return n2g_exp(g, n2g_scale(g, n2g_affine(g, step, 1, -1), __builtin_log(decay)));
}

n2_node n2_schedule_cosine(n2_graph *g, n2_node step, const void *arg) {
    const double steps = *(const double *)arg;
    const n2_node share =
        n2g_minimum(g, n2g_affine(g, step, 1 / steps, -1 / steps), n2g_constant(g, 1));
    return n2g_affine(g, n2g_cos(g, n2g_scale(g, share, 3.141592653589793)), 0.5, 0.5);
}

void n2_build_average(n2_graph *g, n2_tensor *average, n2_tensor *tensor, double decay) {
    const n2_node old = n2g_scale(g, n2g_read(g, average), decay);
    n2g_assign(g, average, n2g_add(g, old, n2g_scale(g, n2g_read(g, tensor), 1 - decay)));
}
