/* Which launch a job goes to. Jobs go into as few as their memory allows: a job's level is the one
 * after the last that touches what it touches, and towers wait for one another, to run side by
 * side. */
#include "queue.h"
#include "tower.h"

/* ---- as early as possible ------------------------------------------------ */

enum { MOST_CHAIN = 64, MOST_SINGLES = 12 }; /* singles: jobs of one block, in turn */

/* The last launch that touches what job i touches; -1: none. */
static int last_conflict(const n2_queue *q, size_t i) {
    int level = -1;
    for (size_t k = i; k-- > 0;)
        if (q->list[k].level > level && n2_noted_conflict(&q->list[i], &q->list[k]))
            level = q->list[k].level;
    return level;
}

/* The one chain that job i could lengthen: everything of that launch that it conflicts with is
 * part of it, and leaves it alone element by element. SIZE_MAX: none. */
static size_t find_chain(const n2_queue *q, size_t i, int level) {
    size_t chain = SIZE_MAX;
    for (size_t k = i; k-- > 0;) {
        const noted *n = &q->list[k];
        if (n->level != level || !n2_noted_conflict(&q->list[i], n)) continue;
        if (chain != SIZE_MAX && n->chain != chain) return SIZE_MAX;
        if (!n2_noted_chain(n, &q->list[i])) return SIZE_MAX;
        chain = n->chain;
    }
    if (chain == SIZE_MAX) return SIZE_MAX;
    const noted *first = &q->list[chain];
    if (first->j.kind == JOB_NARROW || n2_is_tower(first))
        return n2_tower_admits(q, chain, i) ? chain : SIZE_MAX;
    const int most = first->j.n_blocks == 1 ? MOST_SINGLES : MOST_CHAIN;
    return first->j.chained < most ? chain : SIZE_MAX;
}

static int find_level(n2_queue *q, size_t i) {
    const int last = last_conflict(q, i);
    const size_t chain = last >= 0 ? find_chain(q, i, last) : SIZE_MAX;
    q->list[i].chain = chain != SIZE_MAX ? chain : i;
    q->list[i].last = i;
    if (chain == SIZE_MAX) return last + 1;
    if (q->list[i].j.kind == JOB_MATMUL) q->list[chain].last = i;
    q->list[chain].j.chained++;
    return last;
}

static size_t find_levels(n2_queue *q) {
    int last = -1;
    for (size_t i = 0; i < q->n; i++) {
        q->list[i].level = find_level(q, i);
        if (q->list[i].level > last) last = q->list[i].level;
    }
    return (size_t)(last + 1);
}

/* ---- side by side -------------------------------------------------------- */

/* Chain b waits for chain a. */
typedef struct edge {
    size_t a, b;
} edge;

typedef struct schedule {
    n2_queue *q;
    edge *edges;
    size_t n_edges, capacity;
    int *early, *late; /* by the first job of a chain */
    int levels;
} schedule;

static bool add_edge(schedule *s, size_t a, size_t b) {
    if (s->n_edges == s->capacity) {
        const size_t capacity = s->capacity ? 2 * s->capacity : 4096;
        edge *more = (edge *)n2_realloc(s->q->ctx, s->edges, capacity, sizeof *more);
        if (!more) return false;
        s->edges = more;
        s->capacity = capacity;
    }
    s->edges[s->n_edges++] = edge{a, b};
    return true;
}

static bool find_edges(schedule *s) {
    const noted *list = s->q->list;
    for (size_t b = 0; b < s->q->n; b++)
        for (size_t a = 0; a < b; a++)
            if (list[a].chain != list[b].chain && n2_noted_conflict(&list[a], &list[b]) &&
                !add_edge(s, list[a].chain, list[b].chain))
                return false;
    return true;
}

/* Moves on what would be too early, until nothing is. */
static void settle_early(schedule *s) {
    for (bool moved = true; moved;) {
        moved = false;
        for (size_t i = 0; i < s->n_edges; i++) {
            const edge e = s->edges[i];
            if (s->early[e.b] > s->early[e.a]) continue;
            s->early[e.b] = s->early[e.a] + 1;
            if (s->early[e.b] >= s->levels) s->levels = s->early[e.b] + 1;
            moved = true;
        }
    }
}

static void settle_late(schedule *s) {
    for (size_t i = 0; i < s->q->n; i++) s->late[i] = s->levels - 1;
    for (bool moved = true; moved;) {
        moved = false;
        for (size_t i = 0; i < s->n_edges; i++) {
            const edge e = s->edges[i];
            if (s->late[e.a] < s->late[e.b]) continue;
            s->late[e.a] = s->late[e.b] - 1;
            moved = true;
        }
    }
}

static bool begins_tower(const n2_queue *q, size_t i) {
    return q->list[i].chain == i && n2_is_tower(&q->list[i]);
}

/* What it costs to wait for a tower: layers, and above all rows. */
static int64_t work_of(const n2_queue *q, size_t i) {
    return (q->list[i].j.chained + 1) * (q->list[i].j.product.m / TOWER_ROWS + 1);
}

/* The level of the largest tower among those that tower i could run beside. */
static int best_company(const schedule *s, size_t i) {
    int64_t most = work_of(s->q, i);
    int level = s->early[i];
    for (size_t k = 0; k < s->q->n; k++) {
        if (k == i || !begins_tower(s->q, k) || work_of(s->q, k) < most) continue;
        if (s->early[k] < s->early[i] || s->early[k] > s->late[i]) continue;
        most = work_of(s->q, k);
        level = s->early[k];
    }
    return level;
}

/* A level lasts as long as its longest job: small towers with time to spare go where a large one
 * is at work anyway. */
static void gather_towers(schedule *s) {
    for (size_t i = 0; i < s->q->n; i++) {
        if (!begins_tower(s->q, i)) continue;
        settle_late(s);
        s->early[i] = best_company(s, i);
        settle_early(s);
    }
}

size_t n2_queue_schedule(n2_queue *q) {
    schedule s = {};
    s.q = q;
    s.levels = (int)find_levels(q);
    s.early = (int *)n2_alloc(q->ctx, q->n + 1, sizeof *s.early);
    s.late = (int *)n2_alloc(q->ctx, q->n + 1, sizeof *s.late);
    if (q->towers && s.early && s.late && find_edges(&s)) { /* else the levels will do */
        for (size_t i = 0; i < q->n; i++) s.early[i] = q->list[i].level;
        gather_towers(&s);
        for (size_t i = 0; i < q->n; i++) q->list[i].level = s.early[q->list[i].chain];
    }
    n2_free(q->ctx, s.edges);
    n2_free(q->ctx, s.early);
    n2_free(q->ctx, s.late);
    return (size_t)s.levels;
}
