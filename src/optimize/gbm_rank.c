/* What an engineer does first: gradient-boosted trees learn the values, and the best of 40,000
 * candidates by their prediction are tried. Categories are seen one-hot. */
#include "candidates.h"
#include "design_code.h"
#include "methods.h"
#include "ratio/boosting.h"

typedef struct trees {
    const n2_code *code;
    const n2_boosting *model;
    double *row;
} trees;

static n2ce_status rank(void *user, const double *x, size_t rows, double *score) {
    const trees *t = user;
    for (size_t i = 0; i < rows; i++) {
        n2_code_encode(t->code, x + i * t->code->space->n, t->row);
        n2_boosting_predict(t->model, t->row, 1, &score[i]);
    }
    return N2CE_OK;
}

static n2ce_status rank_candidates(n2_arena *arena, const n2_designs *offline, uint64_t seed,
                                   n2_proposals *out) {
    n2_code code;
    n2_candidates c;
    n2_boosting *model;
    N2_TRY(n2_code_new(arena, offline, N2_CODE_ONE_HOT, &code));
    N2_TRY(n2_candidates_first(arena, offline, seed, &c));
    double *row = n2_arena_alloc(arena, code.width, sizeof *row);
    if (!row) return N2CE_ENOMEM;
    N2_TRY(n2_boosting_fit(arena->ctx, &(n2_boosting_options){.loss = N2_BOOSTING_SQUARES}, code.x,
                           code.y, code.rows, code.width, &model));
    n2ce_status status = n2_candidates_rank(&c, rank, &(trees){&code, model, row});
    if (status == N2CE_OK) status = n2_candidates_propose(&c, out);
    n2_boosting_free(model);
    return status;
}

/* Trees are the same at any effort. */
n2ce_status n2_gbm_rank_with(n2ce_ctx *ctx, const n2_designs *offline, uint64_t seed,
                             const n2_effort *effort, n2_proposals *out) {
    (void)effort;
    n2_arena arena = n2_arena_new(ctx);
    const n2ce_status status = rank_candidates(&arena, offline, seed, out);
    n2_arena_free(&arena);
    return status;
}

N2_PROPOSE_AS_PUBLISHED(n2_gbm_rank_with)

const n2_method n2_gbm_rank_method = {
    "gbm-rank", "gradient-boosted trees rank 40,000 candidates, as with scikit-learn", propose};
