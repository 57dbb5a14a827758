/* Precision and recall of a set of pictures by nearest neighbours. */
#include "neighbours.h"

#include "base/pool.h"

/* Rows, and the squared radii of their balls. */
typedef struct manifold {
    n2_packed_rows packed;
    double *radii;
} manifold;

static n2ce_status new_manifold(n2_arena *arena, const n2_feature_rows *rows, size_t k,
                                manifold *out) {
    N2_TRY(n2_pack_rows(arena, rows, N2_NEIGHBOUR_ROWS, &out->packed));
    const size_t n = out->packed.rows.n;
    double *nearest = n2_arena_alloc(arena, n * k, sizeof *nearest);
    out->radii = n2_arena_alloc(arena, n, sizeof *out->radii);
    if (!nearest || !out->radii) return N2CE_ENOMEM;
    N2_TRY(n2_nearest_squares(arena->ctx, &out->packed, &out->packed, k, nearest));
    for (size_t i = 0; i < n; i++) out->radii[i] = nearest[i * k + k - 1];
    return N2CE_OK;
}

typedef struct inside_job {
    n2ce_ctx *ctx;
    const manifold *of, *among;
    unsigned char *inside; /* of each row of `of`: some ball of `among` has it */
} inside_job;

static void find_inside(void *arg, size_t item, int worker) {
    (void)worker;
    const inside_job *job = arg;
    double tile[N2_TILE * N2_TILE];
    if (n2_cancelled(job->ctx)) return;
    for (size_t k = 0; k < job->among->packed.rows.panels; k++) {
        n2_panel_distances(&job->of->packed, item, &job->among->packed, k, tile);
        for (size_t t = 0; t < N2_TILE * N2_TILE; t++) {
            const size_t row = item * N2_TILE + t / N2_TILE, ball = k * N2_TILE + t % N2_TILE;
            if (ball < job->among->packed.rows.n && tile[t] <= job->among->radii[ball])
                job->inside[row] = 1;
        }
    }
}

/* The share of rows of `of` that are in a ball of `among`. */
static n2ce_status share_inside(n2_arena *arena, const manifold *of, const manifold *among,
                                double *share) {
    const n2_row_panels *rows = &of->packed.rows;
    inside_job job = {.ctx = arena->ctx, .of = of, .among = among};
    job.inside = n2_arena_alloc(arena, rows->panels * N2_TILE, 1);
    if (!job.inside) return N2CE_ENOMEM;
    N2_TRY(n2_parallel_for(arena->ctx, rows->panels, find_inside, &job));
    size_t count = 0;
    for (size_t i = 0; i < rows->n; i++) count += job.inside[i];
    *share = (double)count / (double)rows->n;
    return N2CE_OK;
}

static n2ce_status measure(n2_arena *arena, const n2_feature_rows *real,
                           const n2_feature_rows *made, size_t k, n2_precision_recall *out) {
    manifold r, m;
    N2_TRY(new_manifold(arena, real, k, &r));
    N2_TRY(new_manifold(arena, made, k, &m));
    N2_TRY(share_inside(arena, &m, &r, &out->precision));
    N2_TRY(share_inside(arena, &r, &m, &out->recall));
    out->real_rows = r.packed.rows.n;
    out->made_rows = m.packed.rows.n;
    if (n2_cancelled(arena->ctx)) return n2_fail(arena->ctx, N2CE_ECANCELED, "Stopped on request.");
    return N2CE_OK;
}

n2ce_status n2_precision_and_recall(n2ce_ctx *ctx, const n2_feature_rows *real,
                                    const n2_feature_rows *made, size_t k,
                                    n2_precision_recall *out) {
    if (k < 1 || k > N2_NEIGHBOURS_MAX || real->n <= k || made->n <= k)
        return n2_fail(
            ctx, N2CE_EINVAL,
            "%zu neighbours cannot be found among %zu and %zu rows: ask for at least one, "
            "at most %d, and fewer than there are rows.",
            k, real->n, made->n, (int)N2_NEIGHBOURS_MAX);
    n2_arena arena = n2_arena_new(ctx);
    const n2ce_status status = measure(&arena, real, made, k, out);
    n2_arena_free(&arena);
    return status;
}
