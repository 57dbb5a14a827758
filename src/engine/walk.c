/* A walk through the steps of a plan. A step is a phase of a job (base/pool.h) and its shares are
 * the items, so that a thread which comes late, or is not scheduled, holds up nobody but who waits
 * for the share it has in hand. */
#include "walk.h"

#include "accesses.h"
#include "base/clock.h"
#include "base/pool.h"
#include "plan_ranks.h"
#include "watch.h"

/* ---- time ---------------------------------------------------------------- */

static double began(const n2_plan *p) { return p->timing ? n2_thread_seconds() : 0; }

static void ended(const n2_plan *p, n2_instruction *i, double start) {
    if (p->timing) i->nanoseconds += (int64_t)(1e9 * (n2_thread_seconds() - start));
}

/* ---- one instruction ----------------------------------------------------- */

/* The rows of an operand; all of it if it does not go by rows. */
static n2_view view_of(const n2_plan *p, const n2_operand *o, const n2_step *s, n2_tile t,
                       int worker) {
    n2_view v = {.shape = o->shape, .dtype = o->dtype};
    if (o->by_rows) v.shape.dim[0] = t.rows;
    v.data = o->base ? o->base + t.row0 * o->row_bytes
                     : p->tiles[worker] + s->tile_at +
                           o->tile * (size_t)s->tile_rows * p->backend->bytes;
    return v;
}

static n2_view whole_view(const n2_operand *o) { return (n2_view){o->base, o->shape, o->dtype}; }

static n2_call new_call(const n2_plan *p, const n2_instruction *i, int worker) {
    return (n2_call){.node = i->node,
                     .seed = p->seed,
                     .step = p->runs,
                     .parts = 1,
                     .work = p->tiles[worker] + p->tile_bytes,
                     .queue = p->queue,
                     .kept = n2_is_kept(p, i->made)};
}

void n2_run_whole(const n2_plan *p, const n2_instruction *i, int part, int parts, int worker) {
    if (n2_is_held_back(p, i)) return;
    n2_call call = new_call(p, i, worker);
    call.part = part;
    call.parts = parts;
    call.guards = n2_guards(p, i->id);
    call.out = whole_view(&i->out);
    for (int k = 0; k < i->node->n_in; k++) call.in[k] = whole_view(&i->in[k]);
    n2_tell_accesses(&call, p->backend->bytes);
    i->kernel(&call);
}

/* ---- row programs -------------------------------------------------------- */

size_t n2_partial_bytes(const n2_plan *p, const n2_instruction *i) {
    return (i->fold_numbers * p->backend->bytes + N2_ALIGN - 1) / N2_ALIGN * N2_ALIGN;
}

void *n2_partial_sum(const n2_plan *p, const n2_instruction *i, int chunk) {
    return chunk ? i->partials + (size_t)(chunk - 1) * n2_partial_bytes(p, i) : i->out.base;
}

n2_view n2_value_on_tile(const n2_plan *p, const n2_step *s, const n2_instruction *i, n2_tile tile,
                         int worker) {
    n2_view v = view_of(p, &i->out, s, tile, worker);
    if (i->partials) v.data = n2_partial_sum(p, i, tile.chunk);
    return v;
}

void n2_run_on_tile(const n2_plan *p, const n2_step *s, const n2_instruction *i, n2_tile tile,
                    int worker) {
    n2_call call = new_call(p, i, worker);
    call.row0 = tile.row0;
    call.out = n2_value_on_tile(p, s, i, tile, worker);
    call.add = i->partials && !tile.first;
    for (int k = 0; k < i->node->n_in; k++) call.in[k] = view_of(p, &i->in[k], s, tile, worker);
    call.slope = i->slope;
    if (i->gate.shape.rank) call.gate = view_of(p, &i->gate, s, tile, worker).data;
    if (i->addend.shape.rank) call.addend = view_of(p, &i->addend, s, tile, worker).data;
    n2_tell_accesses(&call, p->backend->bytes);
    i->kernel(&call);
}

bool n2_next_tile(const n2_step *s, n2_tile *t) {
    const int64_t begin = t->chunk * s->chunk_rows;
    const int64_t end = begin + s->chunk_rows < s->n_rows ? begin + s->chunk_rows : s->n_rows;
    t->first = t->rows == 0;
    t->row0 = t->first ? begin : t->row0 + t->rows;
    t->rows = end - t->row0 < s->tile_rows ? end - t->row0 : s->tile_rows;
    return t->rows > 0;
}

static void run_chunk(const n2_plan *p, const n2_step *s, int chunk, int worker) {
    n2_tile tile = {.chunk = chunk};
    while (n2_next_tile(s, &tile))
        for (size_t i = 0; i < s->n_code; i++) {
            const double start = began(p);
            n2_run_on_tile(p, s, &s->code[i], tile, worker);
            ended(p, &s->code[i], start);
        }
}

/* Neighbours first, then pairs of them: ((0 + 1) + (2 + 3)) + ((4 + 5) + ...). A branch of chunks
 * that begins at a multiple of its size, a power of two, is one of the tree's. */
#define ADD_PARTIALS(TYPE)                                          \
    for (int step = 1; step < b.end - b.begin; step *= 2)           \
        for (int c = b.begin; c + step < b.end; c += 2 * step) {    \
            TYPE *sum = n2_partial_sum(p, i, c);                    \
            const TYPE *more = n2_partial_sum(p, i, c + step);      \
            for (size_t k = begin; k < end; k++) sum[k] += more[k]; \
        }

static void add_branch(const n2_plan *p, const n2_instruction *i, n2_branch b, size_t begin,
                       size_t end) {
    if (p->backend->bytes == sizeof(float))
        ADD_PARTIALS(float)
    else
        ADD_PARTIALS(double)
}

void n2_add_partials(const n2_plan *p, const n2_step *s, const n2_instruction *i, int part,
                     int parts) {
    const n2_range r = n2_part_of((int64_t)i->fold_numbers, part, parts);
    add_branch(p, i, (n2_branch){0, s->n_chunks}, (size_t)r.begin, (size_t)r.end);
}

/* Of this rank's chunks. */
static void add_own_partials(const n2_plan *p, const n2_step *s, const n2_instruction *i, int part,
                             int parts) {
    const n2_range r = n2_part_of((int64_t)i->fold_numbers, part, parts);
    const size_t begin = (size_t)r.begin, end = (size_t)r.end;
    const n2_branch b = n2_branch_at(p, s);
    add_branch(p, i, b, begin, end);
    if (p->ranks == 1 || !s->is_shared) return;
    n2_lend_sum(p, i, b.begin < b.end ? n2_partial_sum(p, i, b.begin) : NULL, begin, end);
}

static void take_sum(const n2_plan *p, const n2_instruction *i, int part, int parts) {
    const n2_range r = n2_part_of((int64_t)i->fold_numbers, part, parts);
    n2_take_sum(p, i, (size_t)r.begin, (size_t)r.end);
}

/* ---- the walk ------------------------------------------------------------ */

/* A step's phases: its work, the sums of its chunks, and those of ranks. */
enum { WORK, SUMS, RANKS, PHASES };

static void note_time(n2_plan *p, size_t phase) {
    const double now = n2_seconds();
    if (phase > 0) p->steps[(phase - 1) / PHASES].seconds += now - p->phase_began;
    p->phase_began = now;
}

static size_t items_of_work(const n2_plan *p, const n2_step *s) {
    if (s->kind != N2_STEP_ROWS) return s->shares.n;
    const n2_branch b = n2_branch_at(p, s);
    return (size_t)(b.end - b.begin);
}

/* Without the other ranks nothing that follows is of use. */
static size_t open_phase(void *arg, size_t phase) {
    n2_plan *p = arg;
    const n2_step *s = &p->steps[phase / PHASES];
    if (p->timing) note_time(p, phase);
    if (p->ranks_status != N2CE_OK) return 0;
    if (phase % PHASES == WORK) return items_of_work(p, s);
    if (phase % PHASES == SUMS) return s->sums.n;
    return n2_plan_exchange(p, s) ? s->sums.n : 0;
}

static void run_share(const n2_plan *p, const n2_step *s, n2_share share, size_t phase,
                      int worker) {
    for (size_t i = share.first; i < share.first + share.n; i++) {
        const double start = began(p);
        if (phase == SUMS)
            add_own_partials(p, s, &s->code[i], share.part, share.parts);
        else if (phase == RANKS)
            take_sum(p, &s->code[i], share.part, share.parts);
        else
            n2_run_whole(p, &s->code[i], share.part, share.parts, worker);
        ended(p, &s->code[i], start);
    }
}

static void run_item(void *arg, size_t phase, size_t item, int worker) {
    const n2_plan *p = arg;
    const n2_step *s = &p->steps[phase / PHASES];
    if (phase % PHASES != WORK)
        run_share(p, s, s->sums.list[item], phase % PHASES, worker);
    else if (s->kind == N2_STEP_ROWS)
        run_chunk(p, s, n2_branch_at(p, s).begin + (int)item, worker);
    else
        run_share(p, s, s->shares.list[item], WORK, worker);
}

n2ce_status n2_walk(n2_plan *p) {
    const n2_phases phases = {PHASES * p->n_steps, open_phase, run_item, p};
    N2_TRY(n2_plan_gather_ranks(p));
    N2_TRY(n2_parallel_phases(p->ctx, &phases));
    if (p->timing) note_time(p, PHASES * p->n_steps);
    return p->ranks_status;
}

void n2_walk_alone(n2_plan *p) {
    for (size_t phase = 0; phase < PHASES * p->n_steps; phase++)
        for (size_t item = 0, n = open_phase(p, phase); item < n; item++)
            run_item(p, phase, item, 0);
}
