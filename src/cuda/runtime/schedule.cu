/* Which launch a job goes to. Jobs go into as few as their memory allows: a job's level is the one
 * after the last that touches what it touches, and fused MLPs wait for one another, to run side by
 * side. */
#include "cuda/fused_mlp/fused_mlp.h"
#include "edit.h"
#include "program.h"

#include <stdlib.h>

/* ---- as early as possible ------------------------------------------------ */

/* A span, and whose it is. */
typedef struct touched {
    const span *at;
    uint32_t job;
    uint32_t next_written; /* the place of the next that is written, if this one is not it */
} touched;

static int by_begin(const void *a, const void *b) {
    const uintptr_t x = ((const touched *)a)->at->begin, y = ((const touched *)b)->at->begin;
    return (x > y) - (x < y);
}

/* All of them, by where they begin. */
static size_t list_spans(const n2_queue *q, touched *list) {
    size_t n = 0;
    for (size_t i = 0; i < q->n; i++)
        for (int s = 0; s < q->list[i].n_spans; s++)
            list[n++] = touched{&q->list[i].spans[s], (uint32_t)i, 0};
    qsort(list, n, sizeof *list, by_begin);
    uint32_t next = (uint32_t)n;
    for (size_t k = n; k-- > 0;) {
        if (list[k].at->written) next = (uint32_t)k;
        list[k].next_written = next;
    }
    return n;
}

/* f(i, k) for jobs k before i that cannot run at the same time, some of them several times. A span
 * meets only those that begin before it ends, and what is read matters to what is written only. */
template <typename F> static void each_meeting(const touched *list, size_t n, F f) {
    for (size_t a = 0; a < n; a++)
        for (size_t b = a + 1; b < n; b++) {
            if (!list[a].at->written) b = list[b].next_written;
            if (b == n || list[b].at->begin >= list[a].at->end) break;
            const uint32_t x = list[a].job, y = list[b].job;
            if (x != y && n2_spans_meet(list[a].at, list[b].at)) f(x > y ? x : y, x > y ? y : x);
        }
}

static int last_first(const void *a, const void *b) {
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x < y) - (x > y);
}

/* Each job's list, last first and each once; they lie on end. ends[i]: the end of job i's, which
 * still has room for those that are there several times. */
static void tidy_conflicts(n2_queue *q) {
    size_t n = 0, begin = 0;
    for (size_t i = 0; i < q->n; i++) {
        const size_t end = q->conflicts_end[i];
        qsort(q->conflicts + begin, end - begin, sizeof *q->conflicts, last_first);
        for (size_t k = begin; k < end; k++)
            if (k == begin || q->conflicts[k] != q->conflicts[k - 1])
                q->conflicts[n++] = q->conflicts[k];
        q->conflicts_end[i] = (uint32_t)n;
        begin = end;
    }
}

/* Counts, makes room, and fills it in. False: there is no memory, or there are too many. */
static bool list_conflicts(n2_queue *q, const touched *list, size_t n) {
    uint64_t all = 0;
    uint32_t *ends = q->conflicts_end;
    each_meeting(list, n, [&](uint32_t i, uint32_t) {
        ends[i]++;
        all++;
    });
    if (all > UINT32_MAX) return false;
    q->conflicts = (uint32_t *)n2_alloc(q->ctx, (size_t)all + 1, sizeof *q->conflicts);
    if (!q->conflicts) return false;
    for (size_t i = 0, begin = 0; i < q->n; i++) { /* becomes where the next is to go */
        const size_t count = ends[i];
        ends[i] = (uint32_t)begin;
        begin += count;
    }
    each_meeting(list, n, [&](uint32_t i, uint32_t k) { q->conflicts[ends[i]++] = k; });
    tidy_conflicts(q);
    return true;
}

static void forget_conflicts(n2_queue *q) {
    n2_free(q->ctx, q->conflicts);
    n2_free(q->ctx, q->conflicts_end);
    q->conflicts = q->conflicts_end = NULL;
}

/* Which jobs cannot run at the same time is asked again and again; without memory to note it,
 * it is found out each time. */
static void note_conflicts(n2_queue *q) {
    size_t spans = 0;
    for (size_t i = 0; i < q->n; i++) spans += (size_t)q->list[i].n_spans;
    touched *list = (touched *)n2_alloc(q->ctx, spans + 1, sizeof *list);
    q->conflicts_end = (uint32_t *)n2_alloc(q->ctx, q->n + 1, sizeof *q->conflicts_end);
    if (!list || !q->conflicts_end || !list_conflicts(q, list, list_spans(q, list)))
        forget_conflicts(q);
    n2_free(q->ctx, list);
}

/* f(k), last first, for jobs before job i that it cannot run at the same time with, if matters(k);
 * until one says no. */
template <typename M, typename F>
static void each_conflict(const n2_queue *q, size_t i, M matters, F f) {
    if (!q->conflicts || !q->conflicts_end) {
        for (size_t k = i; k-- > 0;)
            if (matters(k) && n2_noted_conflict(&q->list[i], &q->list[k]) && !f(k)) return;
        return;
    }
    for (size_t c = i ? q->conflicts_end[i - 1] : 0; c < q->conflicts_end[i]; c++)
        if (matters(q->conflicts[c]) && !f(q->conflicts[c])) return;
}

enum { MOST_CHAIN = 64, MOST_SINGLES = 12 }; /* singles: jobs of one block, in turn */
static const uint64_t MOST_WORK = (uint64_t)1 << 26;

/* The last level at which a job is at work. */
static int end_of(const noted *n) { return n->level + (n2_is_long(n) ? LONG_LEVELS - 1 : 0); }

/* The last level at which something touches what job i touches; -1: none. */
static int last_conflict(const n2_queue *q, size_t i) {
    int level = -1;
    each_conflict(
        q, i, [&](size_t k) { return end_of(&q->list[k]) > level; },
        [&](size_t k) {
            level = end_of(&q->list[k]);
            return true;
        });
    return level;
}

/* Two chains of a level leave each other alone, so they may become one if the same blocks can do
 * both: element-wise jobs over as many elements, which is what job i is too. Jobs of one block stay
 * side by side: in turn they would take longer than another launch. */
static bool can_unite(const n2_queue *q, size_t i, size_t a, size_t b) {
    const job *j = &q->list[i].j, *x = &q->list[a].j, *y = &q->list[b].j;
    return j->kind != JOB_MATMUL && j->kind != JOB_NARROW && x->n_blocks > 1 &&
           x->n_blocks == y->n_blocks && x->chained + y->chained + 1 < MOST_CHAIN;
}

static void unite(n2_queue *q, size_t into, size_t chain) {
    q->list[into].j.chained += q->list[chain].j.chained + 1;
    q->list[chain].j.chained = 0;
    for (size_t k = chain; k < q->n; k++)
        if (q->list[k].chain == chain) q->list[k].chain = into;
}

/* The chain that job i could lengthen: everything of that launch that it conflicts with is
 * part of it, or of one that it can be united with, and leaves it alone element by element.
 * SIZE_MAX: none. */
static size_t find_chain(const n2_queue *q, size_t i, int level) {
    size_t chain = SIZE_MAX;
    bool possible = true;
    each_conflict(
        q, i, [&](size_t k) { return end_of(&q->list[k]) == level; },
        [&](size_t k) {
            const noted *n = &q->list[k];
            const bool other = chain != SIZE_MAX && n->chain != chain;
            possible =
                n2_noted_chain(n, &q->list[i]) && !(other && !can_unite(q, i, chain, n->chain));
            if (chain == SIZE_MAX || n->chain < chain) chain = n->chain;
            return possible;
        });
    if (chain == SIZE_MAX || !possible) return SIZE_MAX;
    const noted *first = &q->list[chain];
    if (first->j.kind == JOB_NARROW || n2_is_mlp_layer(first))
        return n2_fused_mlp_admits(q, chain, i) ? chain : SIZE_MAX;
    const int most = first->j.n_blocks == 1 ? MOST_SINGLES : MOST_CHAIN;
    return first->j.chained < most ? chain : SIZE_MAX;
}

static void join(n2_queue *q, size_t i, size_t chain) {
    each_conflict(
        q, i,
        [&](size_t k) {
            return q->list[k].level == q->list[chain].level && q->list[k].chain != chain;
        },
        [&](size_t k) {
            unite(q, chain, q->list[k].chain);
            return true;
        });
    q->list[i].chain = chain;
    q->list[chain].j.chained++;
    if (q->list[i].j.kind == JOB_MATMUL) q->list[chain].last = i;
}

/* A job's level is `earliest` at least. */
static int find_level(n2_queue *q, size_t i, int earliest) {
    const int last = last_conflict(q, i);
    const size_t chain = last >= earliest ? find_chain(q, i, last) : SIZE_MAX;
    q->list[i].chain = q->list[i].last = i;
    q->list[i].j.chained = 0;
    if (chain == SIZE_MAX) return last + 1 > earliest ? last + 1 : earliest;
    join(q, i, chain);
    return last;
}

static int find_levels(n2_queue *q, const int *earliest) {
    int last = -1;
    for (size_t i = 0; i < q->n; i++) {
        q->list[i].level = find_level(q, i, earliest[i]);
        if (q->list[i].level > last) last = q->list[i].level;
    }
    return last + 1;
}

/* ---- side by side -------------------------------------------------------- */

/* What the fused MLPs of a level take. */
typedef struct load {
    int64_t longest, all, blocks;
} load;

/* What a level has. */
enum { HAS_JOBS = 1, HAS_MLPS = 2, HAS_PRODUCTS = 4, IS_MIXED = HAS_JOBS | HAS_MLPS };
typedef struct level {
    uint8_t has;
    bool takes_long; /* its jobs are so slow that a chain beside them would not matter */
    int turns;       /* how long its jobs take, about: as many as the longest chain has */
} level;

typedef struct schedule {
    n2_queue *q;
    int *earliest, *before; /* by job; what is tried, and what there was before */
    load *loads;            /* by level, */
    level *at;              /* the same */
    int levels;
    uint64_t work; /* done so far: jobs and conflicts looked at */
} schedule;

/* Trying takes a look at every job and its conflicts. So many looks take less than a second, and
 * are tens of times what a multilayer perceptron's training needs; what has not been tried by then
 * stays as it is. */
static bool has_time(const schedule *s) { return s->work < MOST_WORK; }

static void find_again(schedule *s) {
    const n2_queue *q = s->q;
    s->levels = find_levels(s->q, s->earliest);
    s->work += q->n + (q->conflicts_end && q->n ? q->conflicts_end[q->n - 1] : 0);
}

static bool begins_mlp(const n2_queue *q, size_t i) {
    return q->list[i].chain == i && n2_is_mlp_layer(&q->list[i]);
}

static void add_mlp(const n2_queue *q, size_t i, load *l) {
    const int64_t time = n2_fused_mlp_time(q, i);
    l->all += time;
    if (time > l->longest) l->longest = time;
    l->blocks += n2_fused_mlp_blocks(q, i);
}

/* What the step costs, about, in half layers of a small fused MLP: a level has its price, and lasts
 * as long as its longest fused MLP; fused MLPs that would fill the GPU are done in turn. */
static int64_t cost_of(schedule *s) {
    enum { LEVEL = 8, FULL = 120 };
    const n2_queue *q = s->q;
    int64_t cost = (int64_t)s->levels * LEVEL;
    for (int l = 0; l < s->levels; l++) s->loads[l] = load{0, 0, 0};
    for (size_t i = 0; i < q->n; i++)
        if (begins_mlp(q, i)) add_mlp(q, i, &s->loads[q->list[i].level]);
    for (int l = 0; l < s->levels; l++)
        cost += s->loads[l].blocks > FULL ? s->loads[l].all : s->loads[l].longest;
    return cost;
}

/* The first level after this one that has a fused MLP; the number of levels: none. */
static int next_with_mlp(const schedule *s, int level) {
    for (level++; level < s->levels && s->loads[level].blocks == 0;) level++;
    return level;
}

/* Fused MLP i waits for others, one level after the other, as long as no level is added; and stays
 * where the cost is least. */
static void schedule_mlp(schedule *s, size_t i, int64_t *least) {
    const int levels = s->levels, was = s->earliest[i];
    int best = was;
    int to = next_with_mlp(s, s->q->list[i].level);
    while (to < levels) {
        s->earliest[i] = to;
        find_again(s);
        const int64_t cost = cost_of(s);
        if (s->levels > levels) break;
        if (cost < *least) {
            *least = cost;
            best = to;
        }
        to = next_with_mlp(s, to);
    }
    s->earliest[i] = best;
    find_again(s);
    cost_of(s);
}

/* Fused MLPs with time to spare go where another is at work anyway, high ones first; then those
 * that had been beside one which went. */
static void gather_mlps(schedule *s) {
    enum { PASSES = 3, HIGH = 8 };
    int64_t least = cost_of(s);
    for (size_t k = 0; k < PASSES * s->q->n; k++) {
        const size_t i = k % s->q->n;
        const int layers = s->q->list[i].j.chained + 1;
        if (begins_mlp(s->q, i) && (layers >= HIGH || k >= s->q->n) && has_time(s))
            schedule_mlp(s, i, &least);
    }
}

/* ---- apart ----------------------------------------------------------------- */

static uint8_t sort_of(const n2_queue *q, size_t i) {
    const noted *first = &q->list[q->list[i].chain];
    if (n2_is_mlp_layer(first)) return HAS_MLPS;
    if (first->fused_gradient) return 0; /* it may go to the side stream */
    if (first->j.kind == JOB_LIBRARY || first->j.kind == JOB_WIDE) return HAS_PRODUCTS;
    return first->j.kind == JOB_MATMUL && !n2_is_small(first) ? HAS_PRODUCTS : HAS_JOBS;
}

static bool is_slow_job(const noted *n) {
    return n->j.n_blocks > 1 &&
           (n->j.kind == JOB_SCATTER || (n->j.kind == JOB_MATMUL && n2_is_small(n)));
}

static void look_at_levels(schedule *s) {
    const n2_queue *q = s->q;
    for (int l = 0; l < s->levels; l++) s->at[l] = level{0, false, 0};
    for (size_t i = 0; i < q->n; i++) {
        const noted *n = &q->list[i];
        level *at = &s->at[n->level];
        const uint8_t sort = sort_of(q, i);
        if (n->j.n_blocks > 0) at->has |= sort;
        if (n->chain == i && sort == HAS_JOBS && n->j.chained + 1 > at->turns)
            at->turns = n->j.chained + 1;
        at->takes_long |= is_slow_job(n);
    }
}

static int count_mixed(const schedule *s) {
    int n = 0;
    for (int l = 0; l < s->levels; l++) n += s->at[l].has == IS_MIXED;
    return n;
}

/* The next level with jobs alone that take as long, about, so that those of this one could be done
 * beside them. */
static int where_to(const schedule *s, int from) {
    const int turns = s->at[from].turns;
    int to = from + 1;
    while (to < s->levels && (s->at[to].has != HAS_JOBS || s->at[to].turns + 1 < turns)) to++;
    return to;
}

/* What is tried: earliest levels, to go back to if it does not pay. */
static void remember(const schedule *s) {
    for (size_t i = 0; i < s->q->n; i++) s->before[i] = s->earliest[i];
}
static void find_anew(schedule *s) {
    find_again(s);
    look_at_levels(s);
}
static void go_back(schedule *s) {
    for (size_t i = 0; i < s->q->n; i++) s->earliest[i] = s->before[i];
    find_anew(s);
}

/* Jobs of a level are done at a later one, with jobs already there. */
static void move_jobs(schedule *s, int from, int to) {
    for (size_t i = 0; i < s->q->n; i++)
        if (s->q->list[i].level == from && sort_of(s->q, i) == HAS_JOBS) s->earliest[i] = to;
}

/* A launch that is alone at its level begins while the one before ends; one beside others cannot.
 * So jobs that need not be done beside fused MLPs are done later, if that takes no more levels. */
static void part_jobs(schedule *s) {
    look_at_levels(s);
    for (int l = 0; l < s->levels && has_time(s); l++) {
        const int levels = s->levels, mixed = count_mixed(s);
        const int to = s->at[l].has == IS_MIXED ? where_to(s, l) : levels;
        if (to == levels) continue;
        remember(s);
        move_jobs(s, l, to);
        find_anew(s);
        if (s->levels > levels || count_mixed(s) >= mixed) go_back(s);
    }
}

/* A chain of jobs of one block, which takes its time. */
static bool is_slow(const n2_queue *q, size_t chain) {
    const job *j = &q->list[chain].j;
    return q->list[chain].chain == chain && j->n_blocks == 1 && j->chained > 0 &&
           sort_of(q, chain) == HAS_JOBS;
}

/* A slow chain among quick jobs, for which the next launch would wait, goes where others are slow,
 * if nothing else changes by that. */
static void delay_chain(schedule *s, size_t chain) {
    const n2_queue *q = s->q;
    const int levels = s->levels, mixed = count_mixed(s);
    int to = q->list[chain].level + 1;
    while (to < levels && (s->at[to].has != HAS_JOBS || !s->at[to].takes_long)) to++;
    if (to == levels) return;
    remember(s);
    for (size_t i = 0; i < q->n; i++)
        if (q->list[i].chain == chain) s->earliest[i] = to;
    find_anew(s);
    if (s->levels > levels || count_mixed(s) > mixed) go_back(s);
}

static void delay_chains(schedule *s) {
    look_at_levels(s);
    for (size_t i = 0; i < s->q->n && has_time(s); i++) {
        const level *at = &s->at[s->q->list[i].level];
        if (is_slow(s->q, i) && at->has == HAS_JOBS && !at->takes_long) delay_chain(s, i);
    }
}

/* ---- as late as possible ---------------------------------------------------- */

/* The job that reads what job i makes, many numbers, alone and element by element, so that threads
 * could keep them; SIZE_MAX: none does. */
static size_t next_in_line(n2_queue *q, size_t i) {
    enum { MANY = 16 * JOB_ELEMENTS };
    const noted *n = &q->list[i];
    if (n->j.n < MANY || job_share(n->j.n) > JOB_ELEMENTS) return SIZE_MAX;
    for (size_t k = i + 1; k < q->n; k++) {
        if (!n2_noted_touches(&q->list[k], n->j.out, n->j.n, true)) continue;
        const bool alone =
            n2_noted_alike(n, &q->list[k]) && n2_is_only_reader(q, i, k, n->j.out, n->j.n);
        return alone ? k : SIZE_MAX;
    }
    return SIZE_MAX;
}

/* What one job needs, much later, is made by the threads that need it, if nothing else changes by
 * that: it is neither stored nor fetched. */
static void wait_for_reader(schedule *s, size_t i) {
    n2_queue *q = s->q;
    const size_t reader = next_in_line(q, i);
    const int levels = s->levels, to = reader == SIZE_MAX ? 0 : q->list[reader].level;
    const int mixed = count_mixed(s);
    if (to <= q->list[i].level) return;
    remember(s);
    s->earliest[i] = to;
    find_anew(s);
    const bool joined = q->list[reader].level == to && q->list[i].chain == q->list[reader].chain;
    if (s->levels > levels || count_mixed(s) > mixed || !joined) go_back(s);
}

static void wait_for_readers(schedule *s) {
    for (size_t i = s->q->n; i-- > 0 && has_time(s);) wait_for_reader(s, i);
}

/* ---- packed weights that are there -------------------------------------------------- */

/* A run that follows another finds packed weights that last, and a first level of nothing else is
 * no launch then. So what else is done there waits for the fused MLPs of the next level, if that
 * takes no more levels, nor more of fused MLPs' time. */
static void leave_packed(schedule *s) {
    const n2_queue *q = s->q;
    const int levels = s->levels;
    const int64_t cost = cost_of(s);
    bool lasting = false;
    look_at_levels(s);
    if (levels < 2 || s->at[0].has != HAS_JOBS || !(s->at[1].has & HAS_MLPS)) return;
    remember(s);
    for (size_t i = 0; i < q->n; i++) {
        const job *j = &q->list[i].j;
        const bool first = q->list[i].level == 0 && j->n_blocks > 0, lasts = j->lasts;
        lasting |= first && lasts;
        if (first && !lasts) s->earliest[i] = 1;
    }
    find_anew(s);
    if (!lasting || s->levels > levels || cost_of(s) > cost) go_back(s);
}

/* ---- seldom -------------------------------------------------------------------- */

/* A job that may be done at another level: by itself, and none that has rules of its own. */
static bool is_free(const n2_queue *q, size_t i) {
    const noted *n = &q->list[i];
    const int kind = n->j.kind;
    return n->chain == i && n->j.chained == 0 && n->j.n_blocks > 0 && !n->fused_gradient &&
           !n->taken && !n2_is_long(n) && !n2_is_mlp_layer(n) && kind != JOB_LIBRARY &&
           kind != JOB_WIDE;
}

/* The last level up to `latest` that has a launch for job i anyway, or `latest`. */
static int find_company(const n2_queue *q, size_t i, int latest, const bool *busy) {
    const int kind = (int)n2_launch_kind_of(&q->list[i].j, true), level = q->list[i].level;
    for (int l = latest; l >= level; l--)
        if (busy[l * N_LAUNCH_KINDS + kind]) return l;
    return latest > level ? latest : level;
}

/* Jobs wait as long as nothing waits for them, for others of their kind: a launch has its price,
 * however little it does. latest: room for a level of every job; busy: for kinds of all levels. */
static void gather_jobs(schedule *s, int *latest, bool *busy) {
    const n2_queue *q = s->q;
    const int levels = s->levels;
    remember(s);
    for (size_t i = 0; i < q->n; i++) {
        latest[i] = levels - 1;
        const size_t at = (size_t)q->list[i].level * N_LAUNCH_KINDS;
        if (!is_free(q, i)) busy[at + (size_t)n2_launch_kind_of(&q->list[i].j, true)] = true;
    }
    for (size_t i = q->n; i-- > 0;) { /* who waits for job i comes after it: its level is known */
        int level = q->list[i].level;
        if (is_free(q, i)) {
            s->earliest[i] = level = find_company(q, i, latest[i], busy);
            busy[level * N_LAUNCH_KINDS + (int)n2_launch_kind_of(&q->list[i].j, true)] = true;
        }
        each_conflict(
            q, i,
            [&](size_t k) { return latest[k] >= level && q->list[k].chain != q->list[i].chain; },
            [&](size_t k) {
                latest[k] = level - 1;
                return true;
            });
    }
    find_anew(s);
    if (s->levels > levels) go_back(s);
}

/* Plans with fused MLPs of several layers, whose levels were weighed already, are left alone. */
static void gather(schedule *s) {
    n2_queue *q = s->q;
    for (size_t i = 0; i < q->n; i++)
        if (n2_is_mlp_layer(&q->list[i]) && q->list[i].j.chained > 0) return;
    int *latest = (int *)n2_alloc(q->ctx, q->n + 1, sizeof *latest);
    bool *busy = (bool *)n2_alloc(q->ctx, (size_t)s->levels * N_LAUNCH_KINDS + 1, sizeof *busy);
    if (latest && busy && q->conflicts)
        gather_jobs(s, latest, busy);
    else if (!latest || !busy)
        q->status = N2CE_ENOMEM;
    n2_free(q->ctx, latest);
    n2_free(q->ctx, busy);
}

/* What may be done better than as early as possible, one thing after the other. */
static void improve(schedule *s) {
    gather_mlps(s);
    leave_packed(s);
    delay_chains(s);
    part_jobs(s);
    delay_chains(s); /* some only now can wait */
    wait_for_readers(s);
}

void n2_queue_sort_levels(n2_queue *q, size_t levels) {
    if (q->status != N2CE_OK) return;
    q->by_level = (uint32_t *)n2_alloc(q->ctx, q->n + 1, sizeof *q->by_level);
    q->level_begin = (uint32_t *)n2_alloc(q->ctx, levels + 2, sizeof *q->level_begin);
    if (!q->by_level || !q->level_begin) {
        q->status = N2CE_ENOMEM;
        return;
    }
    uint32_t *next = q->level_begin + 1; /* where a level's next job goes; then where it ends */
    for (size_t i = 0; i < q->n; i++) next[q->list[i].level + 1]++;
    for (size_t l = 1; l <= levels; l++) next[l] += next[l - 1];
    for (size_t i = 0; i < q->n; i++) q->by_level[next[q->list[i].level]++] = (uint32_t)i;
}

size_t n2_queue_schedule(n2_queue *q) {
    const size_t most_levels = LONG_LEVELS * q->n + 1;
    schedule s = {};
    s.q = q;
    s.earliest = (int *)n2_alloc(q->ctx, q->n + 1, sizeof *s.earliest);
    s.before = (int *)n2_alloc(q->ctx, q->n + 1, sizeof *s.before);
    s.loads = (load *)n2_alloc(q->ctx, most_levels, sizeof *s.loads);
    s.at = (level *)n2_alloc(q->ctx, most_levels, sizeof *s.at);
    note_conflicts(q);
    if (s.earliest && s.before && s.loads && s.at) {
        find_again(&s);
        if (q->fuses_mlps) improve(&s);
        gather(&s);
    } else {
        q->status = N2CE_ENOMEM;
    }
    forget_conflicts(q);
    n2_free(q->ctx, s.earliest);
    n2_free(q->ctx, s.before);
    n2_free(q->ctx, s.loads);
    n2_free(q->ctx, s.at);
    return (size_t)s.levels;
}

/* ---- the side stream ----------------------------------------------------------------- */

/* Whether a later job has to wait for a gradient. The rows that a gradient reads may be saved
 * elsewhere: a layer that reads the same rows may save them there again. */
static bool waits_for(const noted *n, const noted *gradient) {
    for (int s = 0; s < gradient->n_spans && n2_is_mlp_layer(n); s++) {
        const float *x = (const float *)gradient->spans[s].begin;
        if (n2_noted_touches(n, x, (const float *)gradient->spans[s].end - x, true)) return true;
    }
    return n2_noted_conflict(n, gradient);
}

/* The first level after that of job i at which something waits for it; the end of the run looks at
 * watched numbers without being noted. */
static int next_waiting(const n2_queue *q, size_t i, int levels) {
    const int level = q->list[i].level;
    int first = n2_writes_watched(q, &q->list[i]) ? level + 1 : levels;
    for (size_t k = 0; k < q->n; k++) {
        const int at = q->list[k].level;
        if (at > level && at < first && waits_for(&q->list[k], &q->list[i])) first = at;
    }
    return first;
}

/* The same for a gradient with the sums that go along. */
static int next_needed(const n2_queue *q, size_t i, int levels) {
    const size_t sums = n2_sums_of(q, i);
    const int own = next_waiting(q, i, levels);
    const int along = sums == SIZE_MAX ? levels : next_waiting(q, sums, levels);
    return along < own ? along : own;
}

static bool is_made(const noted *n) { return n->fused_gradient && n->j.n_blocks > 0; }

/* Gradients of a level go to the side stream if they are not needed for so many levels; all, or,
 * with long ones, those that are as patient. Returns the level at which the first is needed; 0:
 * none goes. */
static int choose_side_stream(n2_queue *q, int level, bool with_long, int levels) {
    const int least = level + (with_long ? (int)LONG_LEVELS : 2);
    int until = levels;
    bool any = false, all = true;
    for (const uint32_t i : n2_jobs_at(q, level)) {
        noted *n = &q->list[i];
        if (!is_made(n)) continue;
        const int needed = next_needed(q, i, levels);
        n->until = needed >= least ? needed : 0;
        any |= n->until > 0;
        all &= n->until > 0;
        if (n->until > 0 && n->until < until) until = n->until;
    }
    if (any && (all || with_long)) return until;
    for (const uint32_t i : n2_jobs_at(q, level))
        if (is_made(&q->list[i])) q->list[i].until = 0;
    return 0;
}

/* One launch is on the side stream at a time; those with long ones go in any case. */
void n2_queue_choose_side_stream(n2_queue *q, size_t levels) {
    int busy = 0;
    for (int level = 0; level < (int)levels; level++) {
        bool with_long = false;
        for (const uint32_t i : n2_jobs_at(q, level))
            with_long |= is_made(&q->list[i]) && n2_is_long(&q->list[i]);
        if (level < busy && !with_long) continue;
        const int until = choose_side_stream(q, level, with_long, (int)levels);
        if (until > 0) busy = until;
    }
}
