/* Fewer jobs for the same numbers, before they are put into launches: what a GPU waits for is the
 * length of the longest chain of launches, and norms of gradients are the longest there are. */
#include "queue.h"

#include <string.h>

/* The last job before i that writes exactly the n numbers at x and nothing else of them does;
 * SIZE_MAX: there is none. */
static size_t writer_of(const n2_queue *q, size_t i, const float *x, int64_t n) {
    const uintptr_t begin = (uintptr_t)x, end = (uintptr_t)(x + n);
    while (i-- > 0)
        for (int s = 0; s < q->list[i].n_spans; s++) {
            const span *at = &q->list[i].spans[s];
            if (!at->written || at->begin >= end || at->end <= begin) continue;
            return at->begin == begin && at->end == end ? i : SIZE_MAX;
        }
    return SIZE_MAX;
}

/* Whether job i is the only one that reads what job k wrote to x. */
static bool is_only_reader(n2_queue *q, size_t k, size_t i, const float *x, int64_t n) {
    if (q->list[k].kept) return false;
    const int spans = q->list[i].n_spans;
    q->list[i].n_spans = 0;
    const bool others = n2_is_read_later(q, k, x, n);
    q->list[i].n_spans = spans;
    return !others;
}

static void forget_spans(noted *n) {
    memset(n->spans, 0, sizeof n->spans);
    n->n_spans = 0;
}

static void drop(noted *n) {
    forget_spans(n);
    n->j.n_blocks = 0;
}

static void replace_read(noted *n, const float *from, const float *to, int64_t floats) {
    for (int s = 0; s < n->n_spans; s++)
        if (!n->spans[s].written && n->spans[s].begin == (uintptr_t)from) {
            n->spans[s].begin = (uintptr_t)to;
            n->spans[s].end = (uintptr_t)(to + floats);
        }
}

/* ---- sums of squares ----------------------------------------------------- */

static bool is_square(const job *j) {
    return j->kind == JOB_BINARY && j->op == N2_OP_mul && j->in[0] == j->in[1] &&
           j->loops.rank == 1 && j->loops.step[0][0] == 1 && j->loops.step[1][0] == 1;
}

/* A sum over all of its input. */
static bool is_total(const job *j) {
    if (j->kind == JOB_SUM_CHUNKS) return true;
    return j->kind == JOB_REDUCE && j->op == N2_OP_sum && j->n == 1 && j->inner.rank == 1 &&
           j->inner.step[0][0] == 1;
}

static void as_chunks(job *j) {
    if (j->kind != JOB_REDUCE) return;
    j->kind = JOB_SUM_CHUNKS;
    j->n = j->k;
    j->k = 1;
}

static int64_t numbers_of(const job *j) {
    const int64_t runs = j->kind == JOB_SUM_CHUNKS ? (int64_t)j->n_blocks / j->k : 1;
    return j->kind == JOB_SUM_CHUNKS ? runs * j->n : j->k;
}

/* The product of a number with itself is taken where it is added up. */
static void sum_squares(n2_queue *q, size_t i) {
    noted *n = &q->list[i];
    if (!is_total(&n->j) || n->j.squares) return;
    const float *x = n->j.in[0];
    const int64_t numbers = numbers_of(&n->j);
    const size_t k = writer_of(q, i, x, numbers);
    if (k == SIZE_MAX || !is_square(&q->list[k].j) || !is_only_reader(q, k, i, x, numbers)) return;
    const float *from = q->list[k].j.in[0];
    for (size_t between = k + 1; between < i; between++) /* it must still be there */
        for (int s = 0; s < q->list[between].n_spans; s++) {
            const span *at = &q->list[between].spans[s];
            if (at->written && at->begin < (uintptr_t)(from + numbers) && at->end > (uintptr_t)from)
                return;
        }
    as_chunks(&n->j);
    n->j.in[0] = from;
    n->j.squares = true;
    replace_read(n, x, from, numbers);
    drop(&q->list[k]);
}

/* ---- sums of sums -------------------------------------------------------- */

/* A total that ends in one number, or a list of them. */
static bool is_last_sum(const noted *n) {
    if (n->j.kind == JOB_SUM_LIST) return true;
    return is_total(&n->j) && n->j.n_blocks == 1 && !n->j.add;
}

static size_t summand_of(n2_queue *q, size_t i, const float *x) {
    const size_t k = writer_of(q, i, x, 1);
    if (k == SIZE_MAX || !is_last_sum(&q->list[k]) || !is_only_reader(q, k, i, x, 1))
        return SIZE_MAX;
    return k;
}

static int take_parts(const noted *from, job_part *to) {
    if (from->j.kind == JOB_SUM_LIST) {
        memcpy(to, from->parts, (size_t)from->j.k * sizeof *to);
        return (int)from->j.k;
    }
    job j = from->j;
    as_chunks(&j);
    to[0].at = j.in[0];
    to[0].n = j.n;
    to[0].squares = j.squares;
    return 1;
}

/* x + y for totals x and y becomes one total of everything that they are made of. */
static void sum_sums(n2_queue *q, size_t i) {
    noted *n = &q->list[i];
    if (n->j.kind != JOB_BINARY || n->j.op != N2_OP_add || n->j.n != 1) return;
    const size_t a = summand_of(q, i, n->j.in[0]), b = summand_of(q, i, n->j.in[1]);
    if (a == SIZE_MAX || b == SIZE_MAX || a == b) return;
    const int64_t parts = (q->list[a].j.kind == JOB_SUM_LIST ? q->list[a].j.k : 1) +
                          (q->list[b].j.kind == JOB_SUM_LIST ? q->list[b].j.k : 1);
    if (parts > MOST_SPANS - 2) return;
    job_part *list = (job_part *)n2_alloc(q->ctx, (size_t)parts, sizeof *list);
    if (!list) return;
    take_parts(&q->list[b], list + take_parts(&q->list[a], list));
    n2_free(q->ctx, q->list[a].parts);
    n2_free(q->ctx, q->list[b].parts);
    q->list[a].parts = q->list[b].parts = NULL;
    drop(&q->list[a]);
    drop(&q->list[b]);
    n->parts = list;
    n->j.kind = JOB_SUM_LIST;
    n->j.k = parts;
    forget_spans(n);
    for (int64_t k = 0; k < parts; k++) n2_note_read(n, list[k].at, list[k].n);
    n2_note_write(n, n->j.out, 1);
}

/* The lists go to the device; the host's copies are done with. */
static void upload_parts(n2_queue *q, noted *n) {
    if (n->j.kind != JOB_SUM_LIST || q->status != N2CE_OK) return;
    const size_t bytes = (size_t)n->j.k * sizeof(job_part);
    float *memory = n2_queue_scratch(q, n->j.out, (int64_t)(bytes / sizeof(float)));
    if (!memory) return;
    q->status = q->device->upload(q->device, q->ctx, memory, n->parts, bytes);
    n->j.in[0] = memory;
}

void n2_queue_simplify(n2_queue *q) {
    for (size_t i = 0; i < q->n; i++) sum_squares(q, i);
    for (size_t i = 0; i < q->n; i++) sum_sums(q, i);
    size_t left = 0;
    for (size_t i = 0; i < q->n; i++) {
        if (q->list[i].j.n_blocks == 0) continue;
        upload_parts(q, &q->list[i]);
        q->list[left++] = q->list[i];
    }
    q->n = left;
}
