#define N2_INSIDE
#include "ratio_loss.h"

n2_tensor *n2_waymarks_new(n2_store *store, const char *name, const double *variances, size_t n) {
    n2_tensor *t = n2_store_add(store, name, n2_dims((int64_t)n, 1));
    if (t) n2_tensor_set(store, t, variances);
    return t;
}

/* sqrt(1 - s) noise + sqrt(s) z. */
static n2_node interpolate(n2_graph *g, n2_node s, n2_node z, n2_node noise) {
    const n2_node rest = n2g_sqrt(g, n2g_affine(g, s, -1, 1));
    return n2g_add(g, n2g_mul(g, rest, noise), n2g_mul(g, n2g_sqrt(g, s), z));
}

/* Random numbers depend on their nodes' numbers: nodes are built where they always were. */
n2_node n2_build_ratio_loss(n2_graph *g, const n2_ratio_task *task, n2_node z) {
    if (!z.id) return N2_NONE;
    const n2_ratio_net *net = task->net;
    const n2_ratio_draws *d = task->draws;
    if (task->every_stage) z = n2g_repeat_rows(g, z, net->n_stages);
    const int64_t n = n2_shape_at(g, z).dim[0], nz = n2_shape_at(g, z).dim[1];
    const n2_node table = n2g_read(g, task->waymarks);
    const n2_node k = d                   ? d->k
                      : task->every_stage ? n2g_row_index(g, n, 1, net->n_stages)
                                          : n2g_randint(g, n2_dims(n), net->n_stages);
    const n2_node s_num = n2g_gather(g, table, n2g_affine(g, k, 1, 1));
    const n2_node num = d ? d->num : n2g_randn(g, n2_dims(n, nz));
    const n2_node z_num = interpolate(g, s_num, z, num);
    const n2_node k_den = n2g_tile_rows(g, k, task->times);
    const n2_node den = d ? d->den : n2g_randn(g, n2_dims(n * task->times, nz));
    const n2_node rows = n2g_tile_rows(g, z, task->times);
    const n2_node z_den = interpolate(g, n2g_gather(g, table, k_den), rows, den);
    return n2g_n2ce_loss(g, n2_ratio_net_apply(g, net, z_num, k),
                         n2_ratio_net_apply(g, net, z_den, k_den), task->magnitude);
}

/* f of every row at every stage, [n stages x 1]: the stages of a row follow one another. */
static n2_node all_stages(n2_graph *g, const n2_ratio_net *net, n2_node z) {
    const int64_t n = n2_shape_at(g, z).dim[0], stages = net->n_stages;
    const n2_node k = n2g_row_index(g, n * stages, 1, stages);
    return n2_ratio_net_apply(g, net, n2g_repeat_rows(g, z, stages), k);
}

n2_node n2_build_ratio_mean(n2_graph *g, const n2_ratio_net *net, n2_node z) {
    if (!z.id) return N2_NONE;
    const double n = (double)n2_shape_at(g, z).dim[0];
    return n2g_scale(g, n2g_total(g, all_stages(g, net, z)), 1 / n);
}

n2_node n2_build_ratio_means(n2_graph *g, const n2_ratio_net *net, n2_node z) {
    if (!z.id) return N2_NONE;
    const n2_shape by_row = n2_dims(n2_shape_at(g, z).dim[0], net->n_stages);
    return n2g_mean(g, n2g_reshape(g, all_stages(g, net, z), by_row), n2_axis(0));
}
