#include "trees_file.h"

#include <math.h>
#include <stdio.h>

enum { NUMBERS = 4 }; /* of a node: column, left, threshold, value */

static const char *name_of(size_t k, char text[64]) {
    snprintf(text, 64, "trees.%zu", k);
    return text;
}

n2ce_status n2_trees_put(n2_bundle *b, const n2_boosting *trees, size_t k) {
    char name[64];
    const size_t n = trees->trees * trees->nodes;
    double *numbers = n2_bundle_room(b, n * NUMBERS);
    if (!numbers) return N2CE_ENOMEM;
    for (size_t i = 0; i < n; i++) {
        const n2_tree_node *node = &trees->node[i];
        double *to = numbers + i * NUMBERS;
        to[0] = (double)node->column;
        to[1] = (double)node->left;
        to[2] = node->threshold;
        to[3] = node->value;
    }
    n2_bundle_put_doubles(b, name_of(k, name), trees->trees, trees->nodes * NUMBERS, numbers);
    return b->failed ? N2CE_ENOMEM : N2CE_OK;
}

bool n2_trees_are_there(const n2_st_file *f, size_t k) {
    char name[64];
    return n2_st_find(f, name_of(k, name)) != NULL;
}

/* A node's successors stand behind it, so that every way ends. */
static bool read_node(const double *from, size_t at, size_t nodes, size_t d, n2_tree_node *to) {
    const bool ends = from[1] == 0, on = from[1] > (double)at && from[1] < (double)nodes - 1;
    if (!(ends || on) || !(from[0] >= 0 && from[0] < (double)d)) return false;
    if (from[1] != floor(from[1]) || isnan(from[2]) || !isfinite(from[3])) return false;
    *to = (n2_tree_node){(uint32_t)from[0], (uint32_t)from[1], from[2], from[3]};
    return true;
}

n2ce_status n2_trees_take(n2ce_ctx *ctx, const n2_st_file *f, size_t k, size_t d,
                          n2_boosting **out) {
    char name[64];
    double *numbers = NULL;
    const n2_st_tensor *t = n2_st_find(f, name_of(k, name));
    *out = NULL;
    if (!t || t->rank != 2 || t->shape[0] < 1 || t->shape[1] < NUMBERS || t->shape[1] % NUMBERS)
        return N2CE_EDATA;
    const size_t trees = (size_t)t->shape[0], nodes = (size_t)t->shape[1] / NUMBERS;
    n2ce_status status = n2_bundle_take(ctx, f, name, trees * nodes * NUMBERS, &numbers);
    if (status == N2CE_OK) status = n2_boosting_new(ctx, d, trees, nodes, out);
    for (size_t i = 0; i < trees * nodes && status == N2CE_OK; i++)
        if (!read_node(numbers + i * NUMBERS, i % nodes, nodes, d, &(*out)->node[i]))
            status = N2CE_EDATA;
    n2_free(ctx, numbers);
    if (status == N2CE_OK) return N2CE_OK;
    n2_boosting_free(*out);
    *out = NULL;
    return status;
}
