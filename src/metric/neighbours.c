#include "neighbours.h"

#include "base/numerics.h"
#include "base/pool.h"

#include <math.h>

/* Products of a row with itself are the squares to the last bit: equal rows are at distance 0. */
static void square_rows(n2_packed_rows *p) {
    double tile[N2_TILE * N2_TILE];
    for (size_t i = 0; i < p->rows.panels; i++) {
        n2_row_panels_multiply(&p->rows, i, &p->rows, i, tile);
        for (size_t r = 0; r < N2_TILE; r++) p->squares[i * N2_TILE + r] = tile[r * N2_TILE + r];
    }
}

/* One row of each of n steps through `all`, at ever other places of them: rows may come in turns,
 * as classes do, and always the first of five would be of two classes of ten. */
static size_t row_of_step(size_t i, size_t n, size_t all) {
    static const double GOLDEN = 0.61803398874989485;
    const double turns = (double)i * GOLDEN, at = (double)i + turns - floor(turns);
    const size_t row = (size_t)(at * (double)all / (double)n);
    return n == all ? i : row < all ? row : all - 1;
}

n2ce_status n2_pack_rows(n2_arena *arena, const n2_feature_rows *rows, size_t most,
                         n2_packed_rows *out) {
    const size_t n = rows->n < most ? rows->n : most, room = n2_panels_of(n) * N2_TILE;
    size_t *index = n2_arena_alloc(arena, n, sizeof *index);
    double *packed = n2_arena_alloc(arena, room * rows->d, sizeof *packed);
    out->squares = n2_arena_alloc(arena, room, sizeof *out->squares);
    if (!index || !packed || !out->squares) return N2CE_ENOMEM;
    for (size_t i = 0; i < n; i++) index[i] = row_of_step(i, n, rows->n);
    out->rows = n2_row_panels_pack(rows, index, n, packed);
    square_rows(out);
    return N2CE_OK;
}

void n2_panel_distances(const n2_packed_rows *a, size_t i, const n2_packed_rows *b, size_t k,
                        double out[N2_TILE * N2_TILE]) {
    n2_row_panels_multiply(&a->rows, i, &b->rows, k, out);
    for (size_t t = 0; t < N2_TILE * N2_TILE; t++)
        out[t] = a->squares[i * N2_TILE + t / N2_TILE] + b->squares[k * N2_TILE + t % N2_TILE] -
                 2 * out[t];
}

typedef struct nearest_job {
    n2ce_ctx *ctx;
    const n2_packed_rows *of, *among;
    size_t k;
    double *squares;
} nearest_job;

/* Keeps the k least, in order. */
static void keep_least(double *least, size_t k, double x) {
    if (!(x < least[k - 1])) return;
    size_t at = k - 1;
    for (; at > 0 && least[at - 1] > x; at--) least[at] = least[at - 1];
    least[at] = x;
}

static void find_nearest(void *arg, size_t item, int worker) {
    (void)worker;
    const nearest_job *job = arg;
    double tile[N2_TILE * N2_TILE], least[N2_TILE][N2_NEIGHBOURS_MAX];
    if (n2_cancelled(job->ctx)) return;
    for (size_t r = 0; r < N2_TILE; r++)
        for (size_t i = 0; i < job->k; i++) least[r][i] = N2_INFINITY;
    for (size_t k = 0; k < job->among->rows.panels; k++) {
        n2_panel_distances(job->of, item, job->among, k, tile);
        for (size_t t = 0; t < N2_TILE * N2_TILE; t++) {
            const size_t row = item * N2_TILE + t / N2_TILE, other = k * N2_TILE + t % N2_TILE;
            if (other < job->among->rows.n && (job->of != job->among || other != row))
                keep_least(least[t / N2_TILE], job->k, tile[t]);
        }
    }
    for (size_t r = 0; r < N2_TILE && item * N2_TILE + r < job->of->rows.n; r++)
        for (size_t i = 0; i < job->k; i++)
            job->squares[(item * N2_TILE + r) * job->k + i] = least[r][i];
}

n2ce_status n2_nearest_squares(n2ce_ctx *ctx, const n2_packed_rows *of, const n2_packed_rows *among,
                               size_t k, double *squares) {
    nearest_job job = {ctx, of, among, k, squares};
    N2_TRY(n2_parallel_for(ctx, of->rows.panels, find_nearest, &job));
    return n2_cancelled(ctx) ? n2_fail(ctx, N2CE_ECANCELED, "Stopped on request.") : N2CE_OK;
}
