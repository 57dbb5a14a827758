/* Where the time of a plan goes: ops of one name and shape together. */
#include "plan_data.h"

#include <stdlib.h>
#include <string.h>

typedef struct group {
    const n2_node_data *node; /* one of them */
    size_t n;
    double seconds, flops;
} group;

static int by_name_and_shape(const void *a, const void *b) {
    const n2_node_data *x = ((const group *)a)->node, *y = ((const group *)b)->node;
    const int names = strcmp(x->op->name, y->op->name);
    if (names) return names;
    const int ranks = x->shape.rank - y->shape.rank;
    return ranks ? ranks
                 : memcmp(x->shape.dim, y->shape.dim, (size_t)x->shape.rank * sizeof(int64_t));
}

static int longest_first(const void *a, const void *b) {
    const double x = ((const group *)a)->seconds, y = ((const group *)b)->seconds;
    return (x < y) - (x > y);
}

static size_t fill_groups(const n2_plan *p, group *list) {
    size_t n = 0;
    for (size_t k = 0; k < p->n_steps; k++)
        for (size_t i = 0; i < p->steps[k].n_code; i++) {
            const n2_instruction *x = &p->steps[k].code[i];
            list[n++] = (group){x->node, 1, 1e-9 * (double)x->nanoseconds, x->flops};
        }
    return n;
}

/* Those that are alike become one. Returns how many are left. */
static size_t unite(group *list, size_t n) {
    size_t left = 0;
    qsort(list, n, sizeof *list, by_name_and_shape);
    for (size_t i = 0; i < n; i++) {
        if (left && by_name_and_shape(&list[left - 1], &list[i]) == 0) {
            list[left - 1].n++;
            list[left - 1].seconds += list[i].seconds;
            list[left - 1].flops += list[i].flops;
        } else {
            list[left++] = list[i];
        }
    }
    return left;
}

/* Those that take a two hundredth of the time at least. */
static void describe(const n2_plan *p, group *list, size_t n, n2_text *out) {
    const double runs = (double)p->timed_runs;
    double total = 0;
    n = unite(list, n);
    qsort(list, n, sizeof *list, longest_first);
    for (size_t i = 0; i < n; i++) total += list[i].seconds;
    n2_text_add(out, "threads were at work for %.3f ms a run, at\n", 1e3 * total / runs);
    for (size_t i = 0; i < n && list[i].seconds >= total / 200; i++) {
        const group *x = &list[i];
        char shape[64];
        n2_text_add(out, "%10.3f ms %5.1f %%  %6.1f GFLOP/s  %4zu x %s %s\n",
                    1e3 * x->seconds / runs, 100 * x->seconds / total,
                    1e-9 * x->flops * runs / x->seconds, x->n, x->node->op->name,
                    n2_shape_text(x->node->shape, shape));
    }
}

n2ce_status n2_plan_profile(n2_plan *p, n2_text *out) {
    if (p->device) return n2_plan_profile_on_device(p, out);
    if (p->timed_runs == 0) return N2CE_OK;
    group *list = n2_alloc(p->ctx, n2_plan_measure(p).nodes + 1, sizeof *list);
    if (!list) return N2CE_ENOMEM;
    describe(p, list, fill_groups(p, list), out);
    n2_free(p->ctx, list);
    return N2CE_OK;
}
