/* Launches of fused MLPs and of weights' gradients: what a level has of them, as kernels read it.
 */
#include "gradient.h"
#include "make.h"

/* The kinds of launches, in their order. */
enum { GRADIENTS, LARGE, SMALL, FEW };

static int rows_of(int kind) {
    return kind == LARGE ? MLP_ROWS : kind == SMALL ? SMALL_ROWS : FEW_ROWS;
}

cudaError_t n2_fused_mlp_prepare(bool *able) {
    cudaError_t error = n2_updates_prepare(*able);
    if (error == cudaSuccess && *able) error = n2_fused_mlps_prepare(able);
    if (error == cudaSuccess && *able) error = n2_gradients_prepare();
    return error;
}

size_t n2_fused_mlp_bytes(const n2_queue *q) {
    size_t bytes = 0;
    for (size_t i = 0; i < q->n; i++) {
        if (q->list[i].chain == i && n2_is_mlp_layer(&q->list[i])) bytes += sizeof(fused_mlp);
        if (q->list[i].fused_gradient) bytes += sizeof(gradient) + 16; /* aligned */
    }
    return bytes;
}

/* Another one begins, `bytes` of the table. */
static void *add(fused_table *table, fused_launch *l, size_t bytes) {
    const int k = l->starts.n++;
    if (k < MOST_STARTS) l->starts.first[k] = (int32_t)l->blocks;
    void *at = table->host + table->at;
    table->at += bytes;
    return at;
}

static void make_mlps(n2_queue *q, int level, fused_table *table, fused_launch *l) {
    for (const uint32_t i : n2_jobs_at(q, level)) {
        const noted *n = &q->list[i];
        if (n->chain != i || !n2_is_mlp_layer(n)) continue;
        if (n2_fused_mlp_rows(q, i) != rows_of(l->kind)) continue;
        fused_mlp *t = (fused_mlp *)add(table, l, sizeof *t);
        n2_fused_mlp_of_chain(q, i, l->blocks, t);
        l->blocks += (uint32_t)t->n_blocks;
    }
}

static void make_gradients(n2_queue *q, int level, bool side, bool many, fused_table *table,
                           fused_launch *l) {
    for (const uint32_t i : n2_jobs_at(q, level)) {
        const noted *n = &q->list[i];
        if (!n->fused_gradient || (n->until > 0) != side) continue;
        if (n->j.n_blocks == 0) continue; /* it goes along with another */
        if ((n->j.product.slices > 1) != many) continue;
        if (l->until == 0 || n->until < l->until) l->until = n->until;
        gradient *t = (gradient *)add(table, l, sizeof *t);
        n2_gradient_of_job(q, i, l->blocks, t);
        l->blocks += (uint32_t)t->n_blocks;
    }
}

/* Gradients of many slices first: the others fill what is left of the multiprocessors. */
void n2_fused_mlp_make(n2_queue *q, int level, int kind, bool side, fused_table *table,
                       fused_launch *l) {
    *l = fused_launch{};
    table->at = (table->at + 15) / 16 * 16;
    l->kind = kind;
    l->list = table->device + table->at;
    if (kind != GRADIENTS) return make_mlps(q, level, table, l);
    make_gradients(q, level, side, true, table, l);
    make_gradients(q, level, side, false, table, l);
}

void n2_fused_mlp_launch(const fused_launch *l, bool strict, cudaStream_t stream, bool early) {
    if (l->kind == GRADIENTS)
        n2_gradients_launch((const gradient *)l->list, &l->starts, l->blocks, strict, stream,
                            early);
    else
        n2_fused_mlps_launch((const fused_mlp *)l->list, &l->starts, l->blocks, rows_of(l->kind),
                             strict, stream, early);
}
