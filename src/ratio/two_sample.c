#include "two_sample.h"

#include "base/linalg.h"
#include "base/numerics.h"
#include "base/pool.h"
#include "base/random.h"
#include "two_sample_rows.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *const n2_two_sample_names[N2_TS_STATISTICS] = {
    "energy", "kernel", "moments", "neighbours", "columns", "spreads", "pairs"};

/* The first statistics are forms w' K w; their matrices are made eight rows at a time. */
enum { FORMS = N2_TS_NEIGHBOURS + 1, NEAREST = 5, MOST_PAIRED = 64, LABEL_STREAM = 22 };
enum { DISTANCES = 2001 }; /* of which the median is taken */

typedef struct two_sample_job {
    n2ce_ctx *ctx;
    n2_ts_rows rows;
    size_t draws, panels; /* draw 0 are the labels as they are; eight draws a panel */
    uint64_t seed;
    size_t pairs;      /* of columns; 0: too many */
    double *weight;    /* panels x n x 8 */
    size_t *order;     /* of every worker: n */
    double *square;    /* |z|^2 of each row */
    double width;      /* h of the kernel */
    double *block;     /* of every worker: FORMS x 8 x n */
    double *partial;   /* of every eight rows: FORMS x draws */
    double *value;     /* of columns, spreads and pairs: draws each */
    double *statistic; /* N2_TS_STATISTICS x draws */
} two_sample_job;

static size_t eighths(size_t n) { return (n + N2_TILE - 1) / N2_TILE; }

/* ---- labels ---- */

/* The weights of draw 8 p + c for all rows, into column c of panel p. */
static void draw_labels(const two_sample_job *job, size_t draw, size_t *order, double *weight) {
    const size_t n = job->rows.n;
    const n2_stream s = {job->seed, LABEL_STREAM, (uint32_t)draw};
    size_t n_num = 0;
    for (size_t i = 0; i < n; i++) n_num += job->rows.num[i];
    for (size_t i = 0; i < n; i++) {
        order[i] = i;
        weight[i * N2_TILE] = draw               ? -1 / (double)(n - n_num)
                              : job->rows.num[i] ? 1 / (double)n_num
                                                 : -1 / (double)(n - n_num);
    }
    for (size_t i = 0; i < n_num && draw; i++) {
        const size_t k = i + n2_random_below(s, i, n - i), kept = order[i];
        order[i] = order[k];
        order[k] = kept;
        weight[order[i] * N2_TILE] = 1 / (double)n_num;
    }
}

static void draw_panel(void *arg, size_t item, int worker) {
    const two_sample_job *job = arg;
    const size_t n = job->rows.n;
    for (size_t c = 0; c < N2_TILE && item * N2_TILE + c < job->draws; c++)
        draw_labels(job, item * N2_TILE + c, job->order + (size_t)worker * n,
                    job->weight + item * n * N2_TILE + c);
}

/* ---- forms of all pairs of rows ---- */

static double distance2(const two_sample_job *job, size_t i, size_t j) {
    const size_t d = job->rows.d;
    const double *z = job->rows.z, product = n2_dot(z + i * d, z + j * d, d);
    return fmax(0, job->square[i] + job->square[j] - 2 * product);
}

static int by_size(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double median_distance(const two_sample_job *job) {
    double some[DISTANCES];
    const size_t n = job->rows.n;
    for (size_t k = 0; k < DISTANCES; k++) {
        const size_t i = k % n, j = (i + 1 + k / n * 7) % n;
        some[k] = distance2(job, i, j);
    }
    qsort(some, DISTANCES, sizeof *some, by_size);
    return sqrt(some[DISTANCES / 2]);
}

/* A row's nearest others. */
typedef struct nearest {
    double distance[NEAREST];
    size_t row[NEAREST], n;
} nearest;

static void offer(nearest *best, double distance, size_t row) {
    size_t at = best->n;
    if (at == NEAREST && distance >= best->distance[NEAREST - 1]) return;
    if (at == NEAREST) at--;
    for (; at > 0 && best->distance[at - 1] > distance; at--) {
        best->distance[at] = best->distance[at - 1];
        best->row[at] = best->row[at - 1];
    }
    best->distance[at] = distance;
    best->row[at] = row;
    if (best->n < NEAREST) best->n++;
}

/* Row i of the four matrices, each at its place in a block of eight rows. */
static void fill_row(const two_sample_job *job, size_t i, double *const to[FORMS]) {
    const size_t n = job->rows.n;
    const double d = (double)job->rows.d, scale = -0.5 / (job->width * job->width);
    nearest best = {.n = 0};
    for (size_t j = 0; j < n; j++) {
        const double far = distance2(job, i, j);
        const double product = 0.5 * (job->square[i] + job->square[j] - far);
        to[N2_TS_ENERGY][j] = -sqrt(far);
        to[N2_TS_KERNEL][j] = exp(scale * far);
        to[N2_TS_MOMENTS][j] = product * product / d;
        to[N2_TS_NEIGHBOURS][j] = 0;
        if (i != j) offer(&best, far, j);
    }
    for (size_t k = 0; k < best.n; k++) to[N2_TS_NEIGHBOURS][best.row[k]] = 1;
}

/* What eight rows add to the form of eight draws. */
static void add_tile(const two_sample_job *job, size_t first, const double *block, size_t panel,
                     double *sums) {
    const size_t n = job->rows.n;
    const double *w = job->weight + panel * n * N2_TILE;
    double tile[N2_TILE * N2_TILE];
    n2_tile_product(block, n, 1, w, N2_TILE, n, tile);
    for (size_t c = 0; c < N2_TILE && panel * N2_TILE + c < job->draws; c++) {
        double sum = 0;
        for (size_t r = 0; r < N2_TILE && first + r < n; r++)
            sum += w[(first + r) * N2_TILE + c] * tile[r * N2_TILE + c];
        sums[panel * N2_TILE + c] = sum;
    }
}

static void add_rows(void *arg, size_t item, int worker) {
    const two_sample_job *job = arg;
    const size_t n = job->rows.n, first = item * N2_TILE;
    double *block = job->block + (size_t)worker * FORMS * N2_TILE * n;
    if (n2_cancelled(job->ctx)) return;
    memset(block, 0, FORMS * N2_TILE * n * sizeof *block);
    for (size_t r = 0; r < N2_TILE && first + r < n; r++) {
        double *to[FORMS];
        for (size_t f = 0; f < FORMS; f++) to[f] = block + (f * N2_TILE + r) * n;
        fill_row(job, first + r, to);
    }
    for (size_t f = 0; f < FORMS; f++)
        for (size_t p = 0; p < job->panels; p++)
            add_tile(job, first, block + f * N2_TILE * n, p,
                     job->partial + (item * FORMS + f) * job->draws);
}

static n2ce_status make_forms(two_sample_job *job) {
    const size_t n = job->rows.n, d = job->rows.d;
    for (size_t i = 0; i < n; i++)
        job->square[i] = n2_dot(job->rows.z + i * d, job->rows.z + i * d, d);
    job->width = fmax(1e-6, 0.5 * median_distance(job));
    N2_TRY(n2_parallel_for(job->ctx, eighths(n), add_rows, job));
    for (size_t item = 0; item < eighths(n); item++)
        for (size_t k = 0; k < FORMS * job->draws; k++)
            job->statistic[k] += job->partial[item * FORMS * job->draws + k];
    return N2CE_OK;
}

/* ---- single columns and pairs of them ---- */

typedef struct placed {
    double z;
    size_t row;
} placed;

static int by_place(const void *a, const void *b) {
    const placed *p = a, *q = b;
    return p->z < q->z ? -1 : p->z > q->z ? 1 : p->row < q->row ? -1 : p->row > q->row;
}

/* Sum over rows of the squared difference of the samples' distribution functions, for each draw. */
static void compare_column(const two_sample_job *job, placed *sorted, double *out) {
    const size_t n = job->rows.n;
    qsort(sorted, n, sizeof *sorted, by_place);
    for (size_t p = 0; p < job->panels; p++) {
        const double *w = job->weight + p * n * N2_TILE;
        double difference[N2_TILE] = {0}, sum[N2_TILE] = {0};
        size_t since = 0; /* rows that share the place */
        for (size_t i = 0; i < n; i++) {
            const double *at = w + sorted[i].row * N2_TILE;
            for (size_t c = 0; c < N2_TILE; c++) difference[c] += at[c];
            since++;
            if (i + 1 < n && sorted[i + 1].z == sorted[i].z) continue;
            for (size_t c = 0; c < N2_TILE; c++)
                sum[c] += (double)since * difference[c] * difference[c];
            since = 0;
        }
        for (size_t c = 0; c < N2_TILE && p * N2_TILE + c < job->draws; c++)
            out[p * N2_TILE + c] = sum[c];
    }
}

/* Columns as they are, then their absolute values. */
static void do_column(void *arg, size_t item, int worker) {
    const two_sample_job *job = arg;
    const size_t n = job->rows.n, d = job->rows.d, column = item % d;
    placed *sorted = (placed *)(void *)(job->block + (size_t)worker * FORMS * N2_TILE * n);
    if (n2_cancelled(job->ctx)) return;
    for (size_t i = 0; i < n; i++) {
        const double z = job->rows.z[i * d + column];
        sorted[i] = (placed){item < d ? z : fabs(z), i};
    }
    compare_column(job, sorted, job->value + item * job->draws);
}

/* The two columns of pair k, of those with a <= b. */
static void find_pair(size_t k, size_t d, size_t *a, size_t *b) {
    for (*a = 0; k >= d - *a; ++*a) k -= d - *a;
    *b = *a + k;
}

static void do_pairs(void *arg, size_t item, int worker) {
    const two_sample_job *job = arg;
    const size_t n = job->rows.n, d = job->rows.d, first = item * N2_TILE;
    double *block = job->block + (size_t)worker * FORMS * N2_TILE * n, tile[N2_TILE * N2_TILE];
    if (n2_cancelled(job->ctx)) return;
    memset(block, 0, N2_TILE * n * sizeof *block);
    for (size_t r = 0; r < N2_TILE && first + r < job->pairs; r++) {
        size_t a, b;
        find_pair(first + r, d, &a, &b);
        for (size_t i = 0; i < n; i++)
            block[r * n + i] = job->rows.z[i * d + a] * job->rows.z[i * d + b];
    }
    for (size_t p = 0; p < job->panels; p++) {
        n2_tile_product(block, n, 1, job->weight + p * n * N2_TILE, N2_TILE, n, tile);
        for (size_t t = 0; t < N2_TILE * N2_TILE; t++) {
            const size_t pair = first + t / N2_TILE, draw = p * N2_TILE + t % N2_TILE;
            if (pair < job->pairs && draw < job->draws)
                job->value[(2 * d + pair) * job->draws + draw] = tile[t] * tile[t];
        }
    }
}

/* The largest of some values for each draw, each over its mean over draws. */
static void take_largest(const two_sample_job *job, size_t first, size_t n, double *out) {
    for (size_t k = first; k < first + n; k++) {
        const double *value = job->value + k * job->draws;
        double sum = 0;
        for (size_t b = 0; b < job->draws; b++) sum += value[b];
        for (size_t b = 0; b < job->draws && sum > 0; b++)
            out[b] = fmax(out[b], value[b] * (double)job->draws / sum);
    }
}

static n2ce_status make_columns(two_sample_job *job) {
    const size_t d = job->rows.d;
    N2_TRY(n2_parallel_for(job->ctx, 2 * d, do_column, job));
    N2_TRY(n2_parallel_for(job->ctx, eighths(job->pairs), do_pairs, job));
    take_largest(job, 0, d, job->statistic + N2_TS_COLUMNS * job->draws);
    take_largest(job, d, d, job->statistic + N2_TS_SPREADS * job->draws);
    take_largest(job, 2 * d, job->pairs, job->statistic + N2_TS_PAIRS * job->draws);
    return N2CE_OK;
}

/* ---- p-values ---- */

/* The share of draws whose statistic is at least as large, for each draw; ties with rounding count
 * as such. */
static void rank_draws(const double *statistic, size_t draws, double *sorted, double *share) {
    memcpy(sorted, statistic, draws * sizeof *sorted);
    qsort(sorted, draws, sizeof *sorted, by_size);
    const double slack = 1e-9 * fmax(fabs(sorted[0]), fabs(sorted[draws - 1]));
    for (size_t b = 0; b < draws; b++) {
        size_t low = 0, high = draws; /* the first that is not below */
        while (low < high) {
            const size_t middle = (low + high) / 2;
            if (sorted[middle] < statistic[b] - slack)
                low = middle + 1;
            else
                high = middle;
        }
        share[b] = (double)(draws - low) / (double)draws;
    }
}

/* How far a statistic is above its mean, in standard deviations over all draws, if that is farther
 * than what was seen before. */
static void stretch(const double *statistic, size_t draws, double *farthest) {
    double mean = 0, square = 0;
    for (size_t b = 0; b < draws; b++) mean += statistic[b] / (double)draws;
    for (size_t b = 0; b < draws; b++) square += pow(statistic[b] - mean, 2);
    const double spread = sqrt(square / (double)draws);
    for (size_t b = 0; b < draws && spread > 0; b++)
        farthest[b] = fmax(farthest[b], (statistic[b] - mean) / spread);
}

/* Draws are compared by their best share, of which there are few, and where that is the same by how
 * far out they are: that is worth less than the next share. */
static double share_as_good(const double *best, double *farthest, size_t draws) {
    size_t as_good = 0;
    for (size_t b = 0; b < draws; b++)
        farthest[b] = best[b] - 0.5 / (double)draws * farthest[b] / (1 + farthest[b]);
    for (size_t b = 0; b < draws; b++) as_good += farthest[b] <= farthest[0] + 1e-12;
    return (double)as_good / (double)draws;
}

static n2ce_status conclude(const two_sample_job *job, n2_two_sample *out) {
    const size_t draws = job->draws;
    double *room = n2_alloc(job->ctx, 4 * draws, sizeof *room);
    if (!room) return N2CE_ENOMEM;
    double *share = room + draws, *best = share + draws, *farthest = best + draws;
    for (size_t b = 0; b < draws; b++) best[b] = 1;
    out->best = N2_TS_ENERGY;
    for (n2_two_sample_statistic s = N2_TS_ENERGY; s < N2_TS_STATISTICS; s++) {
        out->each[s] = N2_NAN;
        if (s == N2_TS_PAIRS && job->pairs == 0) continue;
        rank_draws(job->statistic + s * draws, draws, room, share);
        out->each[s] = share[0];
        if (share[0] < out->each[out->best]) out->best = s;
        for (size_t b = 0; b < draws; b++) best[b] = fmin(best[b], share[b]);
        stretch(job->statistic + s * draws, draws, farthest);
    }
    out->p = share_as_good(best, farthest, draws);
    n2_free(job->ctx, room);
    return N2CE_OK;
}

static n2ce_status make_room(two_sample_job *job) {
    n2ce_ctx *ctx = job->ctx;
    const size_t n = job->rows.n, d = job->rows.d, workers = (size_t)n2_ctx_threads(ctx);
    job->panels = eighths(job->draws);
    job->pairs = d <= MOST_PAIRED ? d * (d + 1) / 2 : 0;
    job->weight = n2_alloc(ctx, job->panels * n * N2_TILE, sizeof(double));
    job->order = n2_alloc(ctx, workers * n, sizeof *job->order);
    job->square = n2_alloc(ctx, n, sizeof(double));
    job->block = n2_alloc(ctx, workers * FORMS * N2_TILE * n, sizeof(double));
    job->partial = n2_alloc(ctx, eighths(n) * FORMS * job->draws, sizeof(double));
    job->value = n2_alloc(ctx, (2 * d + job->pairs) * job->draws, sizeof(double));
    job->statistic = n2_alloc(ctx, N2_TS_STATISTICS * job->draws, sizeof(double));
    return job->weight && job->order && job->square && job->block && job->partial && job->value &&
                   job->statistic
               ? N2CE_OK
               : N2CE_ENOMEM;
}

static n2ce_status run(two_sample_job *job, n2_two_sample *out) {
    N2_TRY(make_room(job));
    N2_TRY(n2_parallel_for(job->ctx, job->panels, draw_panel, job));
    N2_TRY(make_forms(job));
    N2_TRY(make_columns(job));
    if (n2_cancelled(job->ctx))
        return n2_fail(job->ctx, N2CE_ECANCELED, "Stopped on request, before the test was done.");
    return conclude(job, out);
}

/* Of the rows' bytes (FNV-1a), as ranks have made them: who draws the same permutations for all
 * data has a p-value that is exact over permutations, and not over data. */
static uint64_t seed_of_rows(uint64_t seed, const double *x, size_t n) {
    const unsigned char *byte = (const unsigned char *)x;
    uint64_t h = 0xcbf29ce484222325u ^ seed;
    for (size_t i = 0; i < n * sizeof *x; i++) h = (h ^ byte[i]) * 0x100000001b3u;
    return h;
}

n2ce_status n2_two_sample_test(n2ce_ctx *ctx, const n2_two_sample_data *data, size_t permutations,
                               uint64_t seed, n2_two_sample *out) {
    two_sample_job job = {.ctx = ctx, .draws = permutations + 1};
    *out = (n2_two_sample){.p = 1};
    n2ce_status status = n2_ts_rows_new(ctx, data, seed, &job.rows, out->rows);
    if (status == N2CE_OK) {
        job.seed = seed_of_rows(seed, job.rows.z, job.rows.n * job.rows.d);
        status = run(&job, out);
    }
    void *const memory[] = {job.rows.z, job.rows.num, job.weight, job.order,    job.square,
                            job.block,  job.partial,  job.value,  job.statistic};
    for (size_t i = 0; i < sizeof memory / sizeof *memory; i++) n2_free(ctx, memory[i]);
    return status;
}
