/* Fewer jobs for gradients, once it is known which are made from the stash: sums that are taken on
 * the way, by who makes what is summed up. */
#include "cuda/runtime/edit.h"
#include "make.h"

#include <string.h>

/* ---- one gradient of two ------------------------------------------------- */

/* The gradient from the stash, and the one that adds up its slices: itself, if it has one slice. */
typedef struct made {
    size_t gradient, last;
} made;

/* How the gradient x, which job i reads and nobody else, was made; false: not from the stash. */
static bool find_made(n2_queue *q, size_t i, const float *x, int64_t n, made *m) {
    m->last = n2_writer_of(q, i, x, n);
    if (m->last == SIZE_MAX || q->list[m->last].j.out != x) return false;
    if (!n2_is_only_reader(q, m->last, i, x, n)) return false;
    const job *last = &q->list[m->last].j;
    const bool slices = last->kind == JOB_SUM_SLICES;
    m->gradient = slices ? n2_maker_of_slices(q, m->last, last->in[0]) : m->last;
    return m->gradient != SIZE_MAX && q->list[m->gradient].fused_gradient &&
           !q->list[m->gradient].kept;
}

/* The job before i that sums up the same slices to the same place, if nobody else touches the sums;
 * SIZE_MAX: none. */
static size_t same_sum_before(const n2_queue *q, size_t i) {
    const job *j = &q->list[i].j;
    for (size_t k = i; k-- > 0;) {
        const job *at = &q->list[k].j;
        if (!n2_noted_touches(&q->list[k], j->out, j->m, true)) continue;
        const bool same = at->kind == j->kind && at->in[0] == j->in[0] && at->out == j->out &&
                          at->n == j->n && at->m == j->m && at->k == j->k;
        return same && !q->list[k].kept ? k : SIZE_MAX;
    }
    return SIZE_MAX;
}

static bool makes_slices(const n2_queue *q, size_t i) {
    return i != SIZE_MAX && (q->list[i].fused_gradient || q->list[i].taken) && !q->list[i].pair;
}

/* A tile's slices are added to those of the tile before, and summed up after the last tile only. */
static bool add_to_slices(n2_queue *q, size_t i) {
    noted *n = &q->list[i];
    if (!(n->j.kind == JOB_SUM_SLICES || n->j.kind == JOB_SUM_COLUMNS) || !n->j.add) return false;
    const size_t before = same_sum_before(q, i);
    if (before == SIZE_MAX || n->j.n_blocks == 0) return false;
    const size_t maker = n2_maker_of_slices(q, i, n->j.in[0]);
    const size_t other = n2_maker_of_slices(q, before, n->j.in[0]);
    if (maker < before || !makes_slices(q, maker) || !makes_slices(q, other)) return false;
    for (size_t k = other + 1; k < i; k++)
        if (k != before && k != maker &&
            n2_noted_touches(&q->list[k], n->j.in[0], n->j.n * n->j.m, true))
            return false;
    q->list[maker].j.add = true;
    n->j.add = q->list[before].j.add;
    n2_drop(&q->list[before]);
    return true;
}

static bool is_whole(const n2_queue *q, const made *m) {
    return m->gradient == m->last && !q->list[m->last].j.add;
}

/* The job after which column sums i are whole: itself, if it makes one slice. */
static size_t last_of_columns(const n2_queue *q, size_t i) {
    if (q->list[i].j.k == 1) return i;
    for (size_t k = i + 1; k < q->n; k++)
        if (q->list[k].j.kind == JOB_SUM_COLUMNS && q->list[k].j.in[0] == q->list[i].j.out)
            return last_of_columns(q, k);
    return SIZE_MAX;
}

/* The columns' sums of two gradients that become one: nothing, or both, added in the end. */
typedef struct columns {
    size_t small, small_last, large; /* small: SIZE_MAX: nothing */
    merger m;
} columns;

static bool find_columns(n2_queue *q, size_t small, size_t large, columns *c) {
    c->small = n2_sums_of(q, small);
    c->large = n2_sums_of(q, large);
    if (c->small == SIZE_MAX || c->large == SIZE_MAX) return c->small == c->large;
    c->small_last = last_of_columns(q, c->small);
    const size_t large_last = last_of_columns(q, c->large);
    if (c->small_last == SIZE_MAX || large_last == SIZE_MAX || q->list[c->small_last].j.add)
        return false;
    const float *x = q->list[c->small_last].j.out, *y = q->list[large_last].j.out;
    const int64_t n = q->list[c->small].j.m;
    for (size_t i = large_last + 1; i < q->n; i++) {
        const job *j = &q->list[i].j;
        const bool both = (j->in[0] == x && j->in[1] == y) || (j->in[0] == y && j->in[1] == x);
        if (!n2_is_sum_of_two(j) || !both || j->n != n) continue;
        return n2_writer_of(q, i, x, n) == c->small_last &&
               n2_writer_of(q, i, y, n) == large_last &&
               n2_is_only_reader(q, c->small_last, i, x, n) &&
               n2_is_only_reader(q, large_last, i, y, n) &&
               n2_find_merger(q, i, large_last, y, &c->m);
    }
    return false;
}

static void note_factor(noted *n, const job *gradient, int factor) {
    const job_product *p = &gradient->product;
    n2_note_read(n, gradient->in[factor], p->k * (factor ? p->n : p->m));
}

/* Gradient `small` goes along with `large`. It stays in the list, for its factors, but does
 * nothing. */
static void apply_pair(n2_queue *q, size_t small, size_t large, const columns *c) {
    noted *from = &q->list[small], *to = &q->list[large];
    for (int f = 0; f < 2; f++) note_factor(to, &from->j, f);
    to->pair = small;
    from->taken = c->small != SIZE_MAX;
    n2_drop(from);
    if (!from->taken) return;
    note_factor(&q->list[c->large], &from->j, 0); /* so that both wait for the same */
    n2_drop(&q->list[c->small]);
    n2_drop(&q->list[c->small_last]);
    n2_apply_merger(q, &c->m);
}

/* A weight that is used twice has two gradients, which are added: one gradient of all rows, if both
 * are made from the stash. */
static bool pair_gradients(n2_queue *q, size_t i) {
    const job *j = &q->list[i].j;
    made a, b;
    merger m;
    columns c;
    if (!n2_is_sum_of_two(j) || !find_made(q, i, j->in[0], j->n, &a) ||
        !find_made(q, i, j->in[1], j->n, &b) || a.gradient == b.gradient)
        return false;
    const bool swap = b.gradient < a.gradient;
    const made small = swap ? b : a, large = swap ? a : b;
    const job *s = &q->list[small.gradient].j, *l = &q->list[large.gradient].j;
    if (!is_whole(q, &small) || q->list[large.gradient].pair || s->product.m != l->product.m ||
        s->product.n != l->product.n)
        return false;
    const float *y = j->in[swap ? 0 : 1];
    for (int f = 0; f < 2; f++)
        if (n2_is_written_between(q, small.gradient, large.gradient, s->in[f],
                                  s->product.k * (f ? s->product.n : s->product.m)))
            return false;
    if (!n2_find_merger(q, i, large.last, y, &m) ||
        !find_columns(q, small.gradient, large.gradient, &c))
        return false;
    apply_pair(q, small.gradient, large.gradient, &c);
    n2_apply_merger(q, &m);
    return true;
}

/* ---- squares on the way -------------------------------------------------- */

/* The list that adds up what is at x, and which part of it; SIZE_MAX: none. */
static size_t list_of(const n2_queue *q, size_t i, const float *x, int64_t *part) {
    for (size_t k = i + 1; k < q->n; k++)
        for (*part = 0; q->list[k].parts && *part < q->list[k].j.k; ++*part)
            if (q->list[k].parts[*part].at == x) return k;
    return SIZE_MAX;
}

/* Sums of squares of a gradient, for its norm, are taken by who makes it, a number a block. */
static bool square_on_the_way(n2_queue *q, size_t i) {
    const job *j = &q->list[i].j;
    int64_t part;
    if (j->kind != JOB_SUM_CHUNKS || j->n_blocks != j->k || !j->squares || j->add) return false;
    const size_t k = n2_writer_of(q, i, j->in[0], j->n), to = list_of(q, i, j->out, &part);
    if (k == SIZE_MAX || to == SIZE_MAX || !n2_is_only_reader(q, i, to, j->out, j->k)) return false;
    noted *maker = &q->list[k], *list = &q->list[to];
    const bool slices = maker->j.kind == JOB_SUM_SLICES, small = n2_is_small(maker);
    const bool whole =
        (small || maker->fused_gradient) && !maker->j.add && maker->j.product.slices == 1;
    if (maker->j.more[0] || !(slices || whole)) return false;
    const int64_t blocks = slices  ? maker->j.n_blocks
                           : small ? n2_small_blocks(&maker->j.product)
                                   : 1;
    float *squares = n2_queue_scratch(q, (const char *)j->out + 1, blocks);
    if (!squares) return false;
    maker->j.more[0] = squares;
    maker->j.squares = true;
    n2_note_write(maker, squares, blocks);
    list->parts[part] = job_part{squares, (uint32_t)blocks, false};
    n2_replace_read(list, j->out, squares, blocks);
    n2_drop(&q->list[i]);
    return true;
}

/* Of two matrices whose squares are summed up together the first is summed up by who makes it. */
static bool square_half_on_the_way(n2_queue *q, size_t i) {
    noted *n = &q->list[i];
    int64_t part;
    if (n->j.kind != JOB_SUM_CHUNKS || !n->j.squares || n->j.add || !n->j.in[1] ||
        n->j.n_blocks != 2 * n->j.k)
        return false;
    const size_t k = n2_writer_of(q, i, n->j.in[0], n->j.n), to = list_of(q, i, n->j.out, &part);
    if (k == SIZE_MAX || to == SIZE_MAX || q->list[k].j.kind != JOB_SUM_SLICES ||
        q->list[k].j.more[0] || !n2_is_only_reader(q, i, to, n->j.out, 2 * n->j.k))
        return false;
    noted *maker = &q->list[k], *list = &q->list[to];
    job_part *parts =
        (job_part *)n2_realloc(q->ctx, list->parts, (size_t)list->j.k + 1, sizeof *parts);
    if (!parts) return false;
    list->parts = parts;
    float *squares = n2_queue_scratch(q, (const char *)n->j.out + 1, maker->j.n_blocks);
    if (!squares) return false;
    maker->j.more[0] = squares;
    maker->j.squares = true;
    n2_note_write(maker, squares, maker->j.n_blocks);
    parts[part].n = (uint32_t)n->j.k;
    parts[list->j.k++] = job_part{squares, maker->j.n_blocks, false};
    n2_note_read(list, squares, maker->j.n_blocks);
    n->j.in[0] = n->j.in[1];
    n->j.in[1] = NULL;
    n->j.n_blocks = (uint32_t)n->j.k;
    n2_forget_spans(n);
    n2_note_read(n, n->j.in[0], n->j.n);
    n2_note_write(n, n->j.out, n->j.k);
    return true;
}

bool n2_queue_unite(n2_queue *q) {
    bool changed = false;
    for (size_t i = 0; i < q->n; i++) changed |= add_to_slices(q, i);
    for (size_t i = 0; i < q->n; i++) changed |= pair_gradients(q, i);
    for (size_t i = 0; i < q->n; i++) changed |= square_on_the_way(q, i);
    for (size_t i = 0; i < q->n; i++) changed |= square_half_on_the_way(q, i);
    return changed;
}

/* ---- levels ------------------------------------------------------------------ */

static size_t schedule(n2_queue *q) {
    const size_t levels = n2_queue_schedule(q);
    n2_fused_mlps_settle(q);
    return levels;
}

/* Jobs whose host copies of lists are their own. */
static noted *copy_jobs(n2_queue *q) {
    noted *list = (noted *)n2_alloc(q->ctx, q->n + 1, sizeof *list);
    for (size_t i = 0; list && i < q->n; i++) {
        list[i] = q->list[i];
        if (!list[i].parts) continue;
        const size_t bytes = (size_t)list[i].j.k * sizeof(job_part);
        list[i].parts = (job_part *)n2_alloc(q->ctx, bytes, 1);
        if (list[i].parts)
            memcpy(list[i].parts, q->list[i].parts, bytes);
        else
            q->status = N2CE_ENOMEM;
    }
    if (!list) q->status = N2CE_ENOMEM;
    return list;
}

/* Two gradients become one on condition that they are still made from the stash at their new
 * levels. */
static size_t unite(n2_queue *q, size_t levels) {
    noted *before = copy_jobs(q);
    if (q->status == N2CE_OK && n2_queue_unite(q)) levels = schedule(q);
    if (q->status == N2CE_OK && !n2_fused_mlps_hold(q, before)) {
        for (size_t i = 0; i < q->n; i++) {
            const noted swap = q->list[i];
            q->list[i] = before[i];
            before[i] = swap;
        }
        levels = schedule(q);
    }
    for (size_t i = 0; before && i < q->n; i++) n2_free(q->ctx, before[i].parts);
    n2_free(q->ctx, before);
    return levels;
}

size_t n2_fused_mlp_schedule(n2_queue *q, bool ends) {
    n2_fused_mlps_trim(q);
    const size_t levels = schedule(q);
    return ends ? unite(q, levels) : levels;
}
