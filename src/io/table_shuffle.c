#include "base/pool.h"
#include "base/random.h"
#include "table.h"

#include <string.h>

/* Row i becomes what row from[i] was. Rows are taken in the order of their cycles, so that what one
 * receives is the next to be overwritten; that order is cut into parts which threads move side by
 * side, after they have put aside what others overwrite. */
typedef struct shuffle_job {
    n2_table *t;
    size_t *from, *order;
    size_t moved, parts; /* rows in `order`: those that do not stay; parts of it */
    double *aside;       /* ASIDE rows for each part */
} shuffle_job;

enum { SHUFFLE_PARTS = 64, NEXT = 0, START = 1, HAND = 2, ASIDE = 3 };

/* Cycle by cycle, each from its lowest row on. Rows that are in it already are marked in `seen`. */
static void order_cycles(shuffle_job *job, unsigned char *seen) {
    job->moved = 0;
    for (size_t i = 0; i < job->t->rows; i++) {
        if (seen[i] || job->from[i] == i) continue;
        for (size_t at = i; !seen[at]; at = job->from[at]) {
            seen[at] = 1;
            job->order[job->moved++] = at;
        }
    }
}

static size_t part_begin(const shuffle_job *job, size_t part) {
    return job->moved * part / job->parts;
}

static double *aside(const shuffle_job *job, size_t part, size_t which) {
    return job->aside + (part * ASIDE + which) * job->t->cols;
}

static void copy_row(const shuffle_job *job, double *to, const double *from) {
    memcpy(to, from, job->t->cols * sizeof *to);
}

/* Position k of the order is where a cycle begins. */
static bool begins(const shuffle_job *job, size_t k) {
    return k == 0 || job->from[job->order[k - 1]] != job->order[k];
}

/* The row after the part's last, and the start of the cycle that goes on in it, as they are. */
static void put_aside(shuffle_job *job) {
    size_t start = 0; /* of the cycle at k */
    for (size_t part = 0, k = 0; part < job->parts; part++) {
        const size_t end = part_begin(job, part + 1);
        if (k == end) continue;
        copy_row(job, aside(job, part, START), job->t->x + start * job->t->cols);
        copy_row(job, aside(job, part, NEXT),
                 job->t->x + job->from[job->order[end - 1]] * job->t->cols);
        for (; k < end; k++)
            if (begins(job, k)) start = job->order[k];
    }
}

static void shuffle_part(void *arg, size_t item, int worker) {
    (void)worker;
    const shuffle_job *job = arg;
    const size_t end = part_begin(job, item + 1), cols = job->t->cols;
    double *x = job->t->x, *start = aside(job, item, START), *hand = aside(job, item, HAND);
    for (size_t k = part_begin(job, item); k < end; k++) {
        const size_t to = job->order[k], from = job->from[to];
        const double *row = x + from * cols;
        if (begins(job, k)) {
            copy_row(job, hand, x + to * cols);
            start = hand;
        }
        if (k + 1 == end)
            row = aside(job, item, NEXT);
        else if (begins(job, k + 1)) /* so the cycle ends here, with its first row */
            row = start;
        copy_row(job, x + to * cols, row);
    }
}

static n2ce_status rearrange(shuffle_job *job, unsigned char *seen) {
    enum { FEW = 4096 };
    order_cycles(job, seen);
    job->parts = job->moved < FEW ? 1 : SHUFFLE_PARTS;
    job->aside = n2_alloc(job->t->ctx, job->parts * ASIDE * job->t->cols, sizeof *job->aside);
    if (!job->aside) return N2CE_ENOMEM;
    put_aside(job);
    return n2_parallel_for(job->t->ctx, job->parts, shuffle_part, job);
}

/* Row i is swapped with row order[i] of those before it and itself: what is drawn does not depend
 * on swaps, so threads draw side by side. */
typedef struct draw_job {
    size_t *order, n;
    n2_stream stream;
} draw_job;

enum { DRAWN_TOGETHER = 2048 };

static void draw_some(void *arg, size_t item, int worker) {
    (void)worker;
    const draw_job *job = arg;
    const size_t end = (item + 1) * DRAWN_TOGETHER;
    for (size_t i = item * DRAWN_TOGETHER; i < end && i < job->n; i++)
        job->order[i] = n2_random_below(job->stream, i + 1, i + 1);
}

static n2ce_status draw_order(const shuffle_job *job, uint64_t seed, uint32_t stream) {
    const size_t n = job->t->rows;
    draw_job draw = {job->order, n, {seed, stream, 0}};
    N2_TRY(
        n2_parallel_for(job->t->ctx, (n + DRAWN_TOGETHER - 1) / DRAWN_TOGETHER, draw_some, &draw));
    for (size_t i = 0; i < n; i++) job->from[i] = i;
    for (size_t i = n; i-- > 1;) {
        const size_t j = job->order[i], kept = job->from[j];
        job->from[j] = job->from[i];
        job->from[i] = kept;
    }
    return N2CE_OK;
}

n2ce_status n2_table_shuffle(n2_table *t, uint64_t seed, uint32_t stream) {
    unsigned char *seen = n2_alloc(t->ctx, t->rows, sizeof *seen);
    shuffle_job job = {.t = t,
                       .from = n2_alloc(t->ctx, t->rows, sizeof *job.from),
                       .order = n2_alloc(t->ctx, t->rows, sizeof *job.order)};
    n2ce_status status = N2CE_ENOMEM;
    if (seen && job.from && job.order) {
        status = draw_order(&job, seed, stream);
        if (status == N2CE_OK) status = rearrange(&job, seen);
    }
    n2_free(t->ctx, seen);
    n2_free(t->ctx, job.from);
    n2_free(t->ctx, job.order);
    n2_free(t->ctx, job.aside);
    return status;
}

n2ce_status n2_table_cut(n2_table *t, size_t rows, double **rest, size_t *n) {
    *n = t->rows - rows;
    *rest = n2_alloc(t->ctx, *n * t->cols, sizeof **rest);
    if (!*rest) return N2CE_ENOMEM;
    memcpy(*rest, t->x + rows * t->cols, *n * t->cols * sizeof **rest);
    t->rows = rows;
    return N2CE_OK;
}
