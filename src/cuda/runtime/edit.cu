#include "edit.h"

#include <string.h>

size_t n2_writer_of(const n2_queue *q, size_t i, const float *x, int64_t n) {
    const uintptr_t begin = (uintptr_t)x, end = (uintptr_t)(x + n);
    while (i-- > 0)
        for (int s = 0; s < q->list[i].n_spans; s++) {
            const span *at = &q->list[i].spans[s];
            if (!at->written || at->begin >= end || at->end <= begin) continue;
            return at->begin == begin && at->end == end && !at->pitch ? i : SIZE_MAX;
        }
    return SIZE_MAX;
}

bool n2_is_written_between(const n2_queue *q, size_t a, size_t b, const float *x, int64_t n) {
    for (size_t k = a + 1; k < b; k++)
        if (n2_noted_touches(&q->list[k], x, n, false)) return true;
    return false;
}

bool n2_is_only_reader(n2_queue *q, size_t k, size_t i, const float *x, int64_t n) {
    if (q->list[k].kept) return false;
    const int spans = q->list[i].n_spans;
    q->list[i].n_spans = 0;
    const bool others = n2_is_read_later(q, k, x, n);
    q->list[i].n_spans = spans;
    return !others;
}

bool n2_may_move(const n2_queue *q, const noted *n, size_t a, size_t b) {
    for (size_t k = a + 1; k < b; k++)
        if (n2_noted_conflict(&q->list[k], n)) return false;
    return true;
}

void n2_forget_spans(noted *n) {
    memset(n->spans, 0, sizeof n->spans);
    n->n_spans = 0;
}

void n2_drop(noted *n) {
    n2_forget_spans(n);
    n->j.n_blocks = 0;
}

void n2_replace_read(noted *n, const float *from, const float *to, int64_t floats) {
    for (int s = 0; s < n->n_spans; s++)
        if (!n->spans[s].written && n->spans[s].begin == (uintptr_t)from)
            n->spans[s] = span{(uintptr_t)to, (uintptr_t)(to + floats), false, 0, 0, 0};
}

void n2_redirect(n2_queue *q, size_t first, size_t last, const float *x, float *instead,
                 int64_t n) {
    for (size_t k = first; k <= last; k++) {
        noted *at = &q->list[k];
        if (!n2_noted_touches(at, x, n, true)) continue;
        at->j.out = instead;
        for (int s = 0; s < at->n_spans; s++)
            if (at->spans[s].begin == (uintptr_t)x)
                at->spans[s] = span{
                    (uintptr_t)instead, (uintptr_t)(instead + n), at->spans[s].written, 0, 0, 0};
    }
}

bool n2_is_sum_of_two(const job *j) {
    return j->kind == JOB_BINARY && j->op == N2_OP_add && !j->add && j->n > 1 && j->n_blocks > 0 &&
           j->loops.rank == 1 && j->loops.step[0][0] == 1 && j->loops.step[1][0] == 1;
}

size_t n2_maker_of_slices(const n2_queue *q, size_t i, const float *x) {
    while (i-- > 0)
        if (q->list[i].j.n_blocks > 0 && q->list[i].j.out == x) return i;
    return SIZE_MAX;
}

/* The first of the jobs up to `last` that make what job i finds at x, each adding to it; SIZE_MAX:
 * others touch it too, or what is to take its place. */
static size_t first_maker(const n2_queue *q, size_t last, size_t i, const float *x,
                          const float *instead, int64_t n) {
    for (size_t k = i; k-- > 0;) {
        const noted *at = &q->list[k];
        if (n2_noted_touches(at, instead, n, true)) return SIZE_MAX;
        if (!n2_noted_touches(at, x, n, true)) continue;
        if (k > last || at->j.out != x) return SIZE_MAX;
        if (!at->j.add) return k;
    }
    return SIZE_MAX;
}

bool n2_find_merger(const n2_queue *q, size_t sum, size_t last, const float *y, merger *m) {
    const job *j = &q->list[sum].j;
    *m = merger{sum, first_maker(q, last, sum, y, j->out, j->n), last, y};
    return m->first != SIZE_MAX;
}

void n2_apply_merger(n2_queue *q, const merger *m) {
    const job *j = &q->list[m->sum].j;
    n2_redirect(q, m->first, m->last, m->y, j->out, j->n);
    q->list[m->last].kept |= q->list[m->sum].kept;
    n2_drop(&q->list[m->sum]);
}
