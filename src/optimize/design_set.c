#include "design_set.h"

#include <string.h>

static uint64_t hash_of(const double *x, size_t n) {
    uint64_t h = 1469598103934665603u;
    for (size_t j = 0; j < n; j++) {
        const double value = x[j] + 0.0; /* -0 is 0 */
        uint64_t bits;
        memcpy(&bits, &value, sizeof bits);
        h = (h ^ bits) * 1099511628211u;
        h ^= h >> 29;
    }
    return h;
}

/* The slot of a design, or the empty one where it would go. */
static size_t find_slot(const n2_design_set *s, const double *x) {
    size_t at = (size_t)hash_of(x, s->columns) & (s->slots - 1);
    while (s->slot[at]) {
        const double *y = s->rows + (s->slot[at] - 1) * s->columns;
        size_t j = 0;
        while (j < s->columns && x[j] == y[j]) j++;
        if (j == s->columns) break;
        at = (at + 1) & (s->slots - 1);
    }
    return at;
}

n2ce_status n2_design_set_open(n2ce_ctx *ctx, size_t columns, size_t room, n2_design_set *s) {
    *s = (n2_design_set){.ctx = ctx, .columns = columns, .room = room, .slots = 64};
    while (s->slots < 2 * room) s->slots *= 2;
    s->rows = n2_alloc(ctx, room * columns, sizeof *s->rows);
    s->slot = n2_alloc(ctx, s->slots, sizeof *s->slot);
    return s->rows && s->slot ? N2CE_OK : N2CE_ENOMEM;
}

void n2_design_set_close(n2_design_set *s) {
    n2_free(s->ctx, s->rows);
    n2_free(s->ctx, s->slot);
}

bool n2_design_set_has(const n2_design_set *s, const double *x) {
    return s->slot[find_slot(s, x)] != 0;
}

void n2_design_set_add(n2_design_set *s, const double *x) {
    const size_t at = find_slot(s, x);
    if (s->slot[at] || s->n == s->room) return;
    memcpy(s->rows + s->n * s->columns, x, s->columns * sizeof *x);
    s->slot[at] = ++s->n;
}
