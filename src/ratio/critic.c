#include "critic_parts.h"

#include "base/pool.h"
#include "rewrite/rewrites.h"

#include <string.h>

/* Rows that are scored together: a device wants many, because it has to be waited for. */
enum { FEW_ROWS = 1024, MANY_ROWS = 8192 };

/* ---- the networks -------------------------------------------------------- */

n2_tensor *n2_critic_table(n2_store *store, const char *name, size_t rows, size_t cols,
                           const double *values) {
    n2_tensor *tensor = n2_store_add(store, name, n2_dims((int64_t)rows, (int64_t)cols));
    if (tensor) n2_tensor_set(store, tensor, values);
    return tensor;
}

n2_node n2_waymark_mix(n2_graph *g, const n2_waymark_tables *w, n2_node num, n2_node den,
                       n2_node stage, int64_t side) {
    const n2_node at = n2g_affine(g, stage, 1, (double)side);
    num = n2g_mul(g, n2g_gather(g, n2g_read(g, w->keep), at), num);
    return n2g_add(g, num, n2g_mul(g, n2g_gather(g, n2g_read(g, w->mix), at), den));
}

n2_node n2_waymark_row(n2_graph *g, const n2_waymark_tables *w, n2_node away) {
    return w->centre ? n2g_add(g, away, n2g_read(g, w->centre)) : away;
}

static n2ce_status make_shape_tables(n2_critic *c, const n2_gauss *shape) {
    const size_t d = c->d;
    if (!shape) return N2CE_OK;
    c->centre = n2_critic_table(c->store, "shape.centre", 1, d, shape->centre);
    c->whiten = n2_critic_table(c->store, "shape.whiten", d, d, shape->whiten);
    c->basis = n2_critic_table(c->store, "shape.basis", d, d, shape->basis);
    if (!shape->dx) c->delta = n2_critic_table(c->store, "shape.delta", 1, d, shape->delta);
    c->inverse_var = n2_critic_table(c->store, "shape.lambda", 1, d, shape->lambda);
    if (!c->centre || !c->whiten || !c->basis || !c->inverse_var) return N2CE_ENOMEM;
    if (!shape->dx && !c->delta) return N2CE_ENOMEM;
    for (size_t i = 0; i < d; i++)
        ((float *)c->inverse_var->data)[i] = (float)(1 / shape->lambda[i]);
    n2_tensor_push(c->store, c->inverse_var);
    return N2CE_OK;
}

/* ln(1 + mean of the squares) of columns first .. first + n - 1: a distance that heavy
 * tails do not blow up. */
static n2_node log_distance(n2_graph *g, n2_node squares, size_t first, size_t n) {
    const n2_node part = n2g_slice(g, squares, 1, (int64_t)first, (int64_t)n);
    return n2g_log(g, n2g_affine(g, n2g_sum(g, part, n2_axis(1)), 1 / (double)n, 1));
}

n2_node n2_critic_features(n2_graph *g, const n2_critic *c, n2_node x) {
    if (!c->centre) return x;
    const n2_node away = n2g_sub(g, x, n2g_read(g, c->centre));
    const n2_node v = n2g_matmul(g, away, n2g_read(g, c->whiten), false, true);
    n2_node u = n2g_matmul(g, away, n2g_read(g, c->basis), false, true);
    if (c->delta) u = n2g_sub(g, u, n2g_read(g, c->delta));
    const n2_node from_den = n2g_mul(g, v, v);
    const n2_node from_num = n2g_mul(g, n2g_mul(g, u, u), n2g_read(g, c->inverse_var));
    x = n2g_concat(g, x, log_distance(g, from_num, 0, c->d), 1);
    x = n2g_concat(g, x, log_distance(g, from_den, 0, c->dx ? c->dx : c->d), 1);
    return c->dx ? n2g_concat(g, x, log_distance(g, from_den, c->dx, c->d - c->dx), 1) : x;
}

/* phi(x) . psi(y), the same at every stage. */
static n2_node paired_part(n2_graph *g, const n2_critic *c, const n2_critic_nets *nets, n2_node x) {
    const int64_t d = (int64_t)c->d, dx = (int64_t)c->dx;
    const n2_node phi = n2_mlp_apply(g, &nets->phi, n2g_slice(g, x, 1, 0, dx));
    const n2_node psi = n2_mlp_apply(g, &nets->psi, n2g_slice(g, x, 1, dx, d - dx));
    return n2g_sum(g, n2g_mul(g, phi, psi), n2_axis(1));
}

n2_node n2_critic_learned(n2_graph *g, const n2_critic *c, const n2_critic_nets *nets, n2_node x,
                          n2_node features, n2_node stage) {
    const n2_node joint = n2_ratio_net_apply(g, &nets->net, features, stage);
    return c->dx ? n2g_add(g, joint, paired_part(g, c, nets, x)) : joint;
}

static void make_networks(n2_critic *c, const n2_critic_options *o) {
    n2_parameters *p = &c->parameters;
    const int64_t d = (int64_t)c->d, dx = (int64_t)c->dx, width = (int64_t)o->width;
    const int64_t distances = !c->centre ? 0 : dx ? 3 : 2;
    *p = n2_parameters_new(c->store, o->seed);
    c->nets.net = n2_ratio_net_new(p, d + distances, width, (int)o->blocks, (int64_t)o->stages);
    if (!dx) return;
    c->nets.phi = n2_mlp_new(p, "phi", (int64_t[]){dx, width, width, width / 2}, 4, 0.2);
    c->nets.psi = n2_mlp_new(p, "psi", (int64_t[]){d - dx, width, width, width / 2}, 4, 0.2);
}

static void zero(n2_store *store, n2_tensor *t) {
    memset(t->data, 0, (size_t)n2_elements(t->shape) * n2_store_bytes(store));
    n2_tensor_push(store, t);
}

static void zero_last(n2_critic *c) {
    const n2_layer *const last[] = {&c->nets.net.out, c->dx ? &c->nets.psi.layers[c->nets.psi.n - 1]
                                                            : &c->nets.net.out};
    for (size_t i = 0; i < 2; i++) {
        zero(c->store, last[i]->weight);
        zero(c->store, last[i]->bias);
    }
}

n2ce_status n2_critic_new(n2ce_ctx *ctx, size_t d, size_t dx, const n2_gauss *shape,
                          const n2_critic_options *o, n2_critic **out) {
    *out = NULL;
    n2_critic *c = n2_alloc(ctx, 1, sizeof *c);
    if (!c) return N2CE_ENOMEM;
    *c = (n2_critic){.ctx = ctx, .d = d, .dx = dx, .stages = o->stages};
    c->backend = n2_choice_backend(o->choice);
    n2ce_status status = n2_store_new(ctx, sizeof(float), &c->store);
    if (status == N2CE_OK) status = make_shape_tables(c, shape);
    if (status == N2CE_OK) make_networks(c, o);
    if (status == N2CE_OK && c->parameters.failed) status = N2CE_ENOMEM;
    if (status == N2CE_OK) {
        zero_last(c); /* start from the base */
        *out = c;
    } else {
        n2_critic_free(c);
    }
    return status;
}

void n2_critic_free(n2_critic *c) {
    if (!c) return;
    n2_plan_free(c->plan);
    n2_graph_free(c->evaluate);
    n2_store_free(c->store);
    n2_free(c->ctx, c->out);
    n2_free(c->ctx, c);
}

n2_tensor *n2_critic_parameter(const n2_critic *c, size_t index) {
    return index < c->parameters.n ? c->parameters.list[index] : NULL;
}

n2ce_status n2_critic_pull(const n2_critic *c) {
    for (size_t i = 0; i < c->parameters.n; i++)
        N2_TRY(n2_tensor_pull(c->store, c->parameters.list[i]));
    return N2CE_OK;
}

void n2_critic_push(n2_critic *c) {
    for (size_t i = 0; i < c->parameters.n; i++) n2_tensor_push(c->store, c->parameters.list[i]);
}

n2ce_status n2_critic_copy(const n2_critic *c, const n2_gauss *shape, const n2_critic_options *o,
                           n2_critic **out) {
    *out = NULL;
    N2_TRY(n2_critic_pull(c));
    N2_TRY(n2_critic_new(c->ctx, c->d, c->dx, shape, o, out));
    for (size_t i = 0; i < c->parameters.n; i++) {
        const n2_tensor *from = c->parameters.list[i];
        memcpy((*out)->parameters.list[i]->data, from->data,
               (size_t)n2_elements(from->shape) * sizeof(float));
    }
    n2_critic_push(*out);
    return N2CE_OK;
}

/* ---- evaluation ---------------------------------------------------------- */

/* Every row at every stage. What does not depend on the stage is computed once a row: a product
 * with gathered rows is done before they are gathered. */
static n2ce_status build_evaluation(n2_critic *c, size_t rows) {
    const int64_t n = c->backend->device && rows > FEW_ROWS ? MANY_ROWS : FEW_ROWS;
    const int64_t k = (int64_t)c->stages;
    n2_graph *g = c->evaluate = n2_graph_new(c->store);
    c->rows = n2_store_add(c->store, "evaluate.rows", n2_dims(n, (int64_t)c->d));
    c->out = n2_alloc(c->ctx, (size_t)(n * (k + 1)), sizeof *c->out);
    if (!g || !c->rows || !c->out) return N2CE_ENOMEM;
    const n2_node x = n2g_read(g, c->rows), stage = n2g_row_index(g, n * k, 1, k);
    n2_node features = n2_critic_features(g, c, x);
    if (k > 1) features = n2g_gather(g, features, n2g_row_index(g, n * k, k, n));
    const n2_node out[2] = {n2_ratio_net_apply(g, &c->nets.net, features, stage),
                            c->dx ? paired_part(g, c, &c->nets, x) : N2_NONE};
    return n2_plan_compile(g, c->backend, out, c->dx ? 2 : 1, &c->plan);
}

/* Some of the rows that are scored together, as floats; the rest of the block is 0. */
typedef struct narrow_job {
    const double *x;
    float *out;
    size_t n, all; /* numbers: given, and of the block */
} narrow_job;

enum { NARROW_AT_ONCE = 1 << 15 };

static void narrow_part(void *arg, size_t item, int worker) {
    (void)worker;
    const narrow_job *job = arg;
    const size_t begin = item * NARROW_AT_ONCE, left = job->all - begin;
    const size_t end = begin + (left < NARROW_AT_ONCE ? left : NARROW_AT_ONCE);
    const size_t given = end < job->n ? end : job->n;
    for (size_t i = begin; i < given; i++) job->out[i] = (float)job->x[i];
    for (size_t i = given > begin ? given : begin; i < end; i++) job->out[i] = 0;
}

/* Leaves what the networks say of n rows, as many as are scored together or fewer, in c->out. */
static n2ce_status run_block(n2_critic *c, const double *x, size_t n) {
    const size_t k = c->stages, all = (size_t)c->rows->shape.dim[0];
    narrow_job job = {x, c->rows->data, n * c->d, all * c->d};
    const size_t parts = (job.all + NARROW_AT_ONCE - 1) / NARROW_AT_ONCE;
    N2_TRY(n2_parallel_for(c->ctx, parts, narrow_part, &job));
    n2_tensor_push(c->store, c->rows);
    N2_TRY(n2_plan_run(c->plan));
    n2_plan_get(c->plan, 0, c->out);
    if (c->dx) n2_plan_get(c->plan, 1, c->out + all * k);
    return N2CE_OK;
}

/* phi(x) . psi(y) of the block's rows. */
static const double *paired_of(const n2_critic *c) {
    return c->out + (size_t)c->rows->shape.dim[0] * c->stages;
}

static void add_sums(const n2_critic *c, size_t n, double *f) {
    const size_t k = c->stages;
    const double *paired = paired_of(c);
    for (size_t i = 0; i < n; i++) {
        for (size_t s = 0; s < k; s++) f[i] += c->out[i * k + s];
        if (c->dx) f[i] += (double)k * paired[i];
    }
}

n2ce_status n2_critic_add(n2_critic *c, const double *x, size_t n, double *f) {
    if (!c->plan) N2_TRY(build_evaluation(c, n));
    const size_t most = (size_t)c->rows->shape.dim[0];
    for (size_t first = 0; first < n; first += most) {
        const size_t count = n - first < most ? n - first : most;
        N2_TRY(run_block(c, x + first * c->d, count));
        add_sums(c, count, f + first);
    }
    return N2CE_OK;
}

n2ce_status n2_critic_stages(n2_critic *c, const double *x, size_t n, double *g) {
    if (!c->plan) N2_TRY(build_evaluation(c, n));
    const size_t most = (size_t)c->rows->shape.dim[0], k = c->stages;
    for (size_t first = 0; first < n; first += most) {
        const size_t count = n - first < most ? n - first : most;
        N2_TRY(run_block(c, x + first * c->d, count));
        const double *paired = paired_of(c);
        for (size_t i = 0; i < count * k; i++)
            g[first * k + i] = c->out[i] + (c->dx ? paired[i / k] : 0);
    }
    return N2CE_OK;
}
