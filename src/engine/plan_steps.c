/* The steps of a plan, in the order in which they run: of each stage its whole nodes, then its
 * row programs. */
#include "plan_data.h"

/* ---- whole nodes --------------------------------------------------------- */

static bool is_whole_of(const n2_plan *p, uint32_t id, int stage) {
    const n2_planned *n = &p->nodes[id];
    return n->live && n->rows == N2_ROWS_WHOLE && n->stage == stage &&
           n2_needs_kernel(n2_node_at(p, id)->op->id);
}

static int after(const n2_plan *p, uint32_t id, int stage, int level) {
    return is_whole_of(p, id, stage) && p->nodes[id].level >= level ? p->nodes[id].level + 1
                                                                    : level;
}

/* An update may not begin while others read what it overwrites, or make what is watched. */
static int level_of_update(const n2_plan *p, uint32_t update, int level) {
    const int stage = p->nodes[update].stage;
    for (uint32_t id = 1; id < update; id++) {
        if (!p->nodes[id].live) continue;
        const n2_node_data *d = n2_node_at(p, id);
        bool waits = p->nodes[id].killer == update;
        for (int k = 0; k < d->n_in; k++)
            waits |= p->nodes[p->nodes[d->in[k].id].root].killer == update;
        if (waits) level = after(p, id, stage, level);
        if (p->nodes[id].watched) level = after(p, p->nodes[id].root, stage, level);
    }
    return level;
}

static int earlier(const n2_plan *p, uint32_t id, int level) {
    return level < 0 || p->nodes[id].level < level ? p->nodes[id].level : level;
}

/* What is made again waits until it is needed, or until what it reads is overwritten. */
static void put_off(n2_plan *p, uint32_t id, int stage) {
    int first = -1; /* level of its first reader, or of that update */
    for (int k = 0; k < n2_node_at(p, id)->n_in; k++) {
        const uint32_t killer = p->nodes[p->nodes[n2_node_at(p, id)->in[k].id].root].killer;
        if (killer && is_whole_of(p, killer, stage)) first = earlier(p, killer, first);
    }
    for (uint32_t user = id + 1; user <= p->n_nodes; user++) {
        const n2_node_data *d = n2_node_at(p, user);
        if (!is_whole_of(p, user, stage)) continue;
        for (int k = 0; k < d->n_in; k++)
            if (p->nodes[d->in[k].id].root == id) first = earlier(p, user, first);
    }
    if (first > p->nodes[id].level + 1) p->nodes[id].level = first - 1;
}

/* Nodes of a level need none of the same level, only of those before: they can run at once. */
static int assign_levels(n2_plan *p, int stage) {
    int last = -1;
    for (uint32_t id = 1; id <= p->n_nodes; id++) {
        if (!is_whole_of(p, id, stage)) continue;
        const n2_node_data *d = n2_node_at(p, id);
        int level = 0;
        for (int k = 0; k < d->n_in; k++)
            level = after(p, p->nodes[d->in[k].id].root, stage, level);
        if (d->op->update) level = level_of_update(p, id, level);
        p->nodes[id].level = level;
        if (level > last) last = level;
    }
    for (uint32_t id = p->n_nodes; id > 0; id--)
        if (is_whole_of(p, id, stage) && n2_node_at(p, id)->again) put_off(p, id, stage);
    return last;
}

static double work_of_level(const n2_plan *p, int stage, int level) {
    double work = 0;
    for (uint32_t id = 1; id <= p->n_nodes; id++)
        if (is_whole_of(p, id, stage) && p->nodes[id].level == level)
            work += n2_work(p->graph, n2_node_at(p, id));
    return work;
}

static void add_level(n2_plan *p, int stage, int level, int step) {
    for (uint32_t id = 1; id <= p->n_nodes; id++) {
        if (!is_whole_of(p, id, stage) || p->nodes[id].level != level) continue;
        p->nodes[id].step = step;
        p->steps[step].n_code++;
    }
}

/* A level with enough work for several threads is a step; levels of little work that follow one
 * another are one, done by one thread. A device orders its kernels itself: it gets them as they
 * were built. */
static void group_whole(n2_plan *p, int stage) {
    const int last = assign_levels(p, stage);
    int open = -1; /* a step that levels of little work can join */
    for (int level = 0; level <= last; level++) {
        const bool shared = !p->backend->device && work_of_level(p, stage, level) >= 2 * N2_GRAIN;
        if (shared || open < 0) {
            open = (int)p->n_steps++;
            p->steps[open] =
                (n2_step){.kind = shared ? N2_STEP_SPLIT : N2_STEP_SERIAL, .stage = stage};
        }
        add_level(p, stage, level, open);
        if (shared) open = -1;
    }
}

/* ---- row programs -------------------------------------------------------- */

static void group_rows(n2_plan *p, int stage) {
    const size_t first = p->n_steps;
    for (uint32_t id = 1; id <= p->n_nodes; id++) {
        n2_planned *n = &p->nodes[id];
        if (!n->live || n->rows == N2_ROWS_WHOLE || n->stage != stage) continue;
        size_t s = first;
        while (s < p->n_steps && p->steps[s].n_rows != n->n_rows) s++;
        if (s == p->n_steps)
            p->steps[p->n_steps++] =
                (n2_step){.kind = N2_STEP_ROWS, .stage = stage, .n_rows = n->n_rows};
        n->step = (int)s;
        p->steps[s].n_code += n2_needs_kernel(n2_node_at(p, id)->op->id);
    }
}

n2ce_status n2_plan_steps(n2_plan *p) {
    int last = 0;
    size_t live = 0;
    for (uint32_t id = 1; id <= p->n_nodes; id++) {
        if (!p->nodes[id].live) continue;
        live++;
        p->nodes[id].step = -1;
        if (p->nodes[id].stage > last) last = p->nodes[id].stage;
    }
    p->steps = n2_arena_alloc(&p->arena, live + 1, sizeof *p->steps);
    if (!p->steps) return N2CE_ENOMEM;
    for (int stage = 0; stage <= last; stage++) {
        group_whole(p, stage);
        group_rows(p, stage);
    }
    return N2CE_OK;
}
