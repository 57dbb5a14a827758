/* Precision and recall of a set of pictures by nearest neighbours. */
#include "row_panels.h"

#include "base/arena.h"
#include "base/numerics.h"
#include "base/pool.h"

/* Rows with |x|^2 and, once they are known, the squared radii of their balls. */
typedef struct neighbourhood {
    n2_row_panels rows;
    double *squares, *radii; /* of whole panels */
} neighbourhood;

typedef struct neighbour_job {
    n2ce_ctx *ctx;
    neighbourhood *of, *among;
    size_t k;
    unsigned char *inside; /* of each row of `of`: some ball of `among` has it */
} neighbour_job;

/* Products of a row with itself are the squares to the last bit: equal rows are at distance 0. */
static void square_rows(neighbourhood *h) {
    double tile[N2_TILE * N2_TILE];
    for (size_t i = 0; i < h->rows.panels; i++) {
        n2_row_panels_multiply(&h->rows, i, &h->rows, i, tile);
        for (size_t r = 0; r < N2_TILE; r++) h->squares[i * N2_TILE + r] = tile[r * N2_TILE + r];
    }
}

static n2ce_status new_neighbourhood(n2_arena *arena, const n2_feature_rows *rows,
                                     neighbourhood *out) {
    const size_t n = rows->n < N2_NEIGHBOUR_ROWS ? rows->n : N2_NEIGHBOUR_ROWS;
    const size_t room = n2_panels_of(n) * N2_TILE;
    size_t *index = n2_arena_alloc(arena, n, sizeof *index);
    double *packed = n2_arena_alloc(arena, room * rows->d, sizeof *packed);
    out->squares = n2_arena_alloc(arena, room, sizeof *out->squares);
    out->radii = n2_arena_alloc(arena, room, sizeof *out->radii);
    if (!index || !packed || !out->squares || !out->radii) return N2CE_ENOMEM;
    for (size_t i = 0; i < n; i++) index[i] = i * rows->n / n;
    out->rows = n2_row_panels_pack(rows, index, n, packed);
    square_rows(out);
    return N2CE_OK;
}

/* Squared distances of the rows of panel i of a from those of panel k of b. */
static void distances(const neighbourhood *a, size_t i, const neighbourhood *b, size_t k,
                      double out[N2_TILE * N2_TILE]) {
    n2_row_panels_multiply(&a->rows, i, &b->rows, k, out);
    for (size_t t = 0; t < N2_TILE * N2_TILE; t++)
        out[t] = a->squares[i * N2_TILE + t / N2_TILE] + b->squares[k * N2_TILE + t % N2_TILE] -
                 2 * out[t];
}

/* Keeps the k least, in order. */
static void keep_least(double *least, size_t k, double x) {
    if (!(x < least[k - 1])) return;
    size_t at = k - 1;
    for (; at > 0 && least[at - 1] > x; at--) least[at] = least[at - 1];
    least[at] = x;
}

static void find_radii(void *arg, size_t item, int worker) {
    (void)worker;
    const neighbour_job *job = arg;
    const neighbourhood *h = job->of;
    double tile[N2_TILE * N2_TILE], least[N2_TILE][N2_NEIGHBOURS_MAX];
    if (n2_cancelled(job->ctx)) return;
    for (size_t r = 0; r < N2_TILE; r++)
        for (size_t i = 0; i < job->k; i++) least[r][i] = N2_INFINITY;
    for (size_t k = 0; k < h->rows.panels; k++) {
        distances(h, item, h, k, tile);
        for (size_t t = 0; t < N2_TILE * N2_TILE; t++) {
            const size_t row = item * N2_TILE + t / N2_TILE, other = k * N2_TILE + t % N2_TILE;
            if (other < h->rows.n && other != row) keep_least(least[t / N2_TILE], job->k, tile[t]);
        }
    }
    for (size_t r = 0; r < N2_TILE; r++) h->radii[item * N2_TILE + r] = least[r][job->k - 1];
}

static void find_inside(void *arg, size_t item, int worker) {
    (void)worker;
    const neighbour_job *job = arg;
    double tile[N2_TILE * N2_TILE];
    if (n2_cancelled(job->ctx)) return;
    for (size_t k = 0; k < job->among->rows.panels; k++) {
        distances(job->of, item, job->among, k, tile);
        for (size_t t = 0; t < N2_TILE * N2_TILE; t++) {
            const size_t row = item * N2_TILE + t / N2_TILE, ball = k * N2_TILE + t % N2_TILE;
            if (ball < job->among->rows.n && tile[t] <= job->among->radii[ball])
                job->inside[row] = 1;
        }
    }
}

static n2ce_status radii_of(n2ce_ctx *ctx, neighbourhood *h, size_t k) {
    neighbour_job job = {.ctx = ctx, .of = h, .k = k};
    return n2_parallel_for(ctx, h->rows.panels, find_radii, &job);
}

/* The share of rows of `of` that are in a ball of `among`. */
static n2ce_status share_inside(n2_arena *arena, neighbourhood *of, neighbourhood *among,
                                double *share) {
    neighbour_job job = {.ctx = arena->ctx, .of = of, .among = among};
    job.inside = n2_arena_alloc(arena, of->rows.panels * N2_TILE, 1);
    if (!job.inside) return N2CE_ENOMEM;
    N2_TRY(n2_parallel_for(arena->ctx, of->rows.panels, find_inside, &job));
    size_t count = 0;
    for (size_t i = 0; i < of->rows.n; i++) count += job.inside[i];
    *share = (double)count / (double)of->rows.n;
    return N2CE_OK;
}

static n2ce_status measure(n2_arena *arena, const n2_feature_rows *real,
                           const n2_feature_rows *made, size_t k, n2_precision_recall *out) {
    neighbourhood r, m;
    N2_TRY(new_neighbourhood(arena, real, &r));
    N2_TRY(new_neighbourhood(arena, made, &m));
    N2_TRY(radii_of(arena->ctx, &r, k));
    N2_TRY(radii_of(arena->ctx, &m, k));
    N2_TRY(share_inside(arena, &m, &r, &out->precision));
    N2_TRY(share_inside(arena, &r, &m, &out->recall));
    out->real_rows = r.rows.n;
    out->made_rows = m.rows.n;
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
