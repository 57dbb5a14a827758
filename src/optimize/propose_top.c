/* The best designs offline, proposed again. */
#include "design/design_space.h"
#include "methods.h"

#include <string.h>

static n2ce_status propose(n2ce_ctx *ctx, const n2_designs *offline, uint64_t seed,
                           n2_proposals *out) {
    const size_t n = offline->space.n;
    size_t *row = n2_alloc(ctx, out->rows, sizeof *row);
    (void)seed;
    if (!row) return N2CE_ENOMEM;
    const n2ce_status status = n2_designs_best(ctx, offline, out->rows, row);
    for (size_t i = 0; status == N2CE_OK && i < out->rows; i++)
        memcpy(out->x + i * n, offline->x + row[i] * n, n * sizeof *out->x);
    n2_free(ctx, row);
    if (status == N2CE_OK) n2_proposals_settle(&offline->space, out);
    return status;
}

const n2_method n2_top_method = {"top-offline", "the best designs offline, proposed again",
                                 propose};
