/* Replaying a plan. All workers walk through the steps together; between steps they
 * meet at a barrier that spins, because the next step is microseconds away. */
#include "base/clock.h"
#include "base/pool.h"
#include "plan_data.h"

#include <math.h>
#include <sched.h>
#include <string.h>

/* ---- barrier ------------------------------------------------------------- */

static void relax(int spins) {
    if (spins > 2000) sched_yield(); /* more workers than cores */
#if defined(__x86_64__)
    else
        __builtin_ia32_pause();
#endif
}

static void barrier(n2_plan *p, int workers) {
    if (workers == 1) return;
    const int phase = atomic_load_explicit(&p->barrier_phase, memory_order_acquire);
    if (atomic_fetch_add_explicit(&p->barrier_count, 1, memory_order_acq_rel) == workers - 1) {
        atomic_store_explicit(&p->barrier_count, 0, memory_order_relaxed);
        atomic_store_explicit(&p->barrier_phase, phase + 1, memory_order_release);
        return;
    }
    for (int spins = 0; atomic_load_explicit(&p->barrier_phase, memory_order_acquire) == phase;
         spins++)
        relax(spins);
}

/* ---- what must be finite ------------------------------------------------- */

enum { LOOK = 4096 }; /* bytes that are looked at together */

static bool are_finite(const n2_plan *p, const void *data, size_t n) {
    for (size_t i = 0; i < n; i++) {
        const double x = p->backend->bytes == sizeof(float) ? (double)((const float *)data)[i]
                                                            : ((const double *)data)[i];
        if (!isfinite(x)) return false;
    }
    return true;
}

/* Of a device whose numbers cannot be read, none is finite. */
static bool is_finite(const n2_plan *p, const void *data, int64_t n) {
    double buffer[LOOK / sizeof(double)];
    const size_t bytes = p->backend->bytes;
    if (!p->device) return are_finite(p, data, (size_t)n);
    for (size_t i = 0, step = LOOK / bytes; i < (size_t)n; i += step) {
        const size_t m = (size_t)n - i < step ? (size_t)n - i : step;
        if (n2_plan_read(p, buffer, (const char *)data + i * bytes, m * bytes) != N2CE_OK)
            return false;
        if (!are_finite(p, buffer, m)) return false;
    }
    return true;
}

/* The first watched number before node `end` that is not finite; 0: all are. */
static uint32_t bad_watched(const n2_plan *p, uint32_t end) {
    for (size_t k = 0; k < p->n_watched && p->watched[k] < end; k++)
        if (!is_finite(p, p->nodes[p->nodes[p->watched[k]].root].data, 1)) return p->watched[k];
    return 0;
}

/* How many watched numbers are computed before node `end`. */
static uint32_t guards(const n2_plan *p, uint32_t end) {
    uint32_t n = 0;
    while (n < p->n_watched && p->watched[n] < end) n++;
    return n;
}

/* Whether somebody reads node `id`, or a view of it, after the run. */
static bool is_kept(const n2_plan *p, uint32_t id) {
    if (!p->queue) return false;
    const uint32_t root = p->nodes[id].root;
    for (size_t k = 0; k < p->n_outputs; k++)
        if (p->nodes[p->outputs[k].id].root == root) return true;
    for (size_t k = 0; k < p->n_watched; k++)
        if (p->nodes[p->watched[k]].root == root) return true;
    return false;
}

/* An update that would destroy the last good state, and the evidence, is not made. A device
 * sees to that itself. */
static bool is_held_back(const n2_plan *p, const n2_instruction *i) {
    return !p->device && i->node->op->update && (p->frozen || bad_watched(p, i->id));
}

/* ---- one instruction ----------------------------------------------------- */

/* The rows [row0, row0 + rows) of an operand; all of it if it does not go by rows. */
static n2_view view_of(const n2_operand *o, char *tile, int64_t tile_rows, int64_t row0,
                       int64_t rows, size_t bytes) {
    n2_view v = {.shape = o->shape};
    if (o->by_rows) v.shape.dim[0] = rows;
    v.data = o->base ? o->base + row0 * o->row_bytes : tile + o->tile * (size_t)tile_rows * bytes;
    return v;
}

static void run_whole(const n2_plan *p, const n2_instruction *i, int part, int parts) {
    if (is_held_back(p, i)) return;
    n2_call call = {.node = i->node,
                    .seed = p->seed,
                    .step = p->runs,
                    .part = part,
                    .parts = parts,
                    .work = i->work,
                    .queue = p->queue,
                    .guards = guards(p, i->id),
                    .kept = is_kept(p, i->id)};
    call.out = (n2_view){i->out.base, i->out.shape};
    for (int k = 0; k < i->node->n_in; k++) call.in[k] = (n2_view){i->in[k].base, i->in[k].shape};
    i->kernel(&call);
}

static size_t partial_bytes(const n2_plan *p, const n2_instruction *i) {
    return (i->fold_numbers * p->backend->bytes + N2_ALIGN - 1) / N2_ALIGN * N2_ALIGN;
}

/* Where a chunk sums up: the first in the result itself. */
static void *partial_sum(const n2_plan *p, const n2_instruction *i, int chunk) {
    return chunk ? i->partials + (size_t)(chunk - 1) * partial_bytes(p, i) : i->out.base;
}

/* ---- row programs -------------------------------------------------------- */

typedef struct tile_range {
    int chunk;
    int64_t row0, rows;
    bool first; /* of its chunk */
} tile_range;

static void run_on_tile(const n2_plan *p, const n2_step *s, const n2_instruction *i, char *tile,
                        tile_range r) {
    const size_t bytes = p->backend->bytes;
    n2_call call = {.node = i->node,
                    .row0 = r.row0,
                    .seed = p->seed,
                    .step = p->runs,
                    .parts = 1,
                    .work = i->work,
                    .queue = p->queue,
                    .kept = is_kept(p, i->id)};
    call.out = view_of(&i->out, tile, s->tile_rows, r.row0, r.rows, bytes);
    if (i->partials) {
        call.out.data = partial_sum(p, i, r.chunk);
        call.add = !r.first;
    }
    for (int k = 0; k < i->node->n_in; k++)
        call.in[k] = view_of(&i->in[k], tile, s->tile_rows, r.row0, r.rows, bytes);
    call.slope = i->slope;
    if (i->gate.shape.rank)
        call.gate = view_of(&i->gate, tile, s->tile_rows, r.row0, r.rows, bytes).data;
    if (i->addend.shape.rank)
        call.addend = view_of(&i->addend, tile, s->tile_rows, r.row0, r.rows, bytes).data;
    i->kernel(&call);
}

/* The tile that follows r in its chunk; false after the last. Start with rows = 0. */
static bool next_tile(const n2_step *s, tile_range *r) {
    const int64_t begin = r->chunk * s->chunk_rows;
    const int64_t end = begin + s->chunk_rows < s->n_rows ? begin + s->chunk_rows : s->n_rows;
    r->first = r->rows == 0;
    r->row0 = r->first ? begin : r->row0 + r->rows;
    r->rows = end - r->row0 < s->tile_rows ? end - r->row0 : s->tile_rows;
    return r->rows > 0;
}

static void run_chunk(const n2_plan *p, const n2_step *s, int chunk, char *tile) {
    tile_range r = {.chunk = chunk};
    while (next_tile(s, &r))
        for (size_t i = 0; i < s->n_code; i++) run_on_tile(p, s, &s->code[i], tile, r);
}

#define ADD_PARTIALS(TYPE)                                         \
    for (int c = 1; c < s->n_chunks; c++) {                        \
        const TYPE *partial = partial_sum(p, i, c);                \
        TYPE *out = (void *)i->out.base;                           \
        for (size_t k = begin; k < end; k++) out[k] += partial[k]; \
    }

/* Adds the partial sums in the order of the chunks. Workers share the elements. */
static void combine(const n2_plan *p, const n2_step *s, const n2_instruction *i, int part,
                    int parts) {
    const size_t n = i->fold_numbers, begin = n * (size_t)part / (size_t)parts;
    const size_t end = n * ((size_t)part + 1) / (size_t)parts;
    if (p->backend->bytes == sizeof(float))
        ADD_PARTIALS(float)
    else
        ADD_PARTIALS(double)
}

static void run_rows(n2_plan *p, n2_step *s, int worker, int workers) {
    for (;;) {
        const int chunk = atomic_fetch_add_explicit(&s->next_chunk, 1, memory_order_relaxed);
        if (chunk >= s->n_chunks) break;
        run_chunk(p, s, chunk, p->tiles[worker] + s->tile_at);
    }
    barrier(p, workers);
    for (size_t i = 0; i < s->n_code; i++)
        if (s->code[i].partials) combine(p, s, &s->code[i], worker, workers);
}

/* ---- the walk ------------------------------------------------------------ */

static void run_step(n2_plan *p, n2_step *s, int worker, int workers) {
    if (s->kind == N2_STEP_ROWS) {
        run_rows(p, s, worker, workers);
    } else if (s->kind == N2_STEP_SPLIT) {
        for (size_t i = 0; i < s->n_code; i++) run_whole(p, &s->code[i], worker, workers);
    } else if (worker == 0) {
        for (size_t i = 0; i < s->n_code; i++) run_whole(p, &s->code[i], 0, 1);
    }
}

static void walk(void *arg, size_t item, int unused) {
    (void)unused;
    n2_plan *p = arg;
    const int worker = (int)item, workers = p->workers;
    for (size_t k = 0; k < p->n_steps; k++) {
        const double start = p->timing && worker == 0 ? n2_seconds() : 0;
        run_step(p, &p->steps[k], worker, workers);
        barrier(p, workers);
        if (p->timing && worker == 0) p->steps[k].seconds += n2_seconds() - start;
    }
}

/* ---- looking at every value ---------------------------------------------- */

/* One instruction, on a tile or as a whole, computed by the time the call returns. */
typedef struct single {
    const n2_step *step;
    const n2_instruction *code;
    tile_range range;
} single;

static void run_single(n2_plan *p, const void *arg) {
    const single *one = arg;
    if (one->step->kind == N2_STEP_ROWS)
        run_on_tile(p, one->step, one->code, p->tiles[0] + one->step->tile_at, one->range);
    else
        run_whole(p, one->code, 0, 1);
}

/* False: the device failed, and the context knows how. */
static bool run_at_once(n2_plan *p, single one) {
    if (p->device) return n2_plan_run_now(p, run_single, &one) == N2CE_OK;
    run_single(p, &one);
    return true;
}

static bool check_tile(n2_plan *p, const n2_step *s, tile_range r) {
    for (size_t i = 0; i < s->n_code; i++) {
        const n2_instruction *code = &s->code[i];
        const bool ran = run_at_once(p, (single){s, code, r});
        const n2_view v = view_of(&code->out, p->tiles[0] + s->tile_at, s->tile_rows, r.row0,
                                  r.rows, p->backend->bytes);
        const void *data = code->partials ? partial_sum(p, code, r.chunk) : v.data;
        if (ran && is_finite(p, data, n2_elements(v.shape))) continue;
        p->bad_node = code->id;
        return false;
    }
    return true;
}

static bool check_rows(n2_plan *p, const n2_step *s) {
    for (int chunk = 0; chunk < s->n_chunks; chunk++) {
        tile_range r = {.chunk = chunk};
        while (next_tile(s, &r))
            if (!check_tile(p, s, r)) return false;
    }
    for (size_t i = 0; i < s->n_code; i++)
        if (s->code[i].partials) combine(p, s, &s->code[i], 0, 1);
    return true;
}

static bool check_whole(n2_plan *p, const n2_step *s) {
    for (size_t i = 0; i < s->n_code; i++) {
        const bool ran = run_at_once(p, (single){.step = s, .code = &s->code[i]});
        if (ran && is_finite(p, s->code[i].out.base, n2_elements(s->code[i].out.shape))) continue;
        p->bad_node = s->code[i].id;
        return false;
    }
    return true;
}

/* False: bad_node is the first that is not finite. */
static bool check_all(n2_plan *p) {
    for (size_t k = 0; k < p->n_steps; k++) {
        const n2_step *s = &p->steps[k];
        if (!(s->kind == N2_STEP_ROWS ? check_rows(p, s) : check_whole(p, s))) return false;
    }
    return true;
}

/* The tensor that brought the trouble from an earlier step or from outside; NULL: none. */
static const n2_tensor *bad_tensor(const n2_plan *p, const n2_node_data *d) {
    for (int k = 0; k < d->n_in; k++) {
        if (!d->in[k].id) continue;
        const n2_node_data *in = n2_node_at(p, p->nodes[d->in[k].id].root);
        if (in->op->id == N2_OP_tensor &&
            !is_finite(p, p->nodes[p->nodes[d->in[k].id].root].data, n2_elements(in->shape)))
            return in->attr.t[0];
    }
    return NULL;
}

static n2ce_status fail_at(const n2_plan *p, uint32_t id) {
    const n2_node_data *d = n2_node_at(p, id);
    const n2_tensor *t = bad_tensor(p, d);
    char shape[64];
    return n2_fail(p->ctx, N2CE_ENAN,
                   "Step %u: the op %s %s built at %s:%d gave a number that is not finite%s%s%s.",
                   p->runs + 1, d->op->name, n2_shape_text(d->shape, shape), d->file, d->line,
                   t ? ": it read one in the tensor \"" : "", t ? t->name : "", t ? "\"" : "");
}

n2ce_status n2_plan_run_checked(n2_plan *p) {
    if (!p->device) N2_TRY(n2_plan_pull_tensors(p));
    p->state_moved = true;
    if (!check_all(p)) return fail_at(p, p->bad_node);
    p->runs++;
    if (!p->device) n2_plan_push_tensors(p);
    return N2CE_OK;
}

/* Updates that came before the bad number are made, the others are not: without any, the
 * tensors are now what the bad number was computed from. */
static n2ce_status explain(n2_plan *p, uint32_t watched) {
    p->frozen = p->state_moved = true;
    const bool found = !check_all(p);
    p->frozen = false;
    p->state_moved = true;
    return fail_at(p, found ? p->bad_node : watched);
}

static n2ce_status run_on_host(n2_plan *p, uint32_t *bad) {
    for (size_t k = 0; k < p->n_steps; k++)
        atomic_store_explicit(&p->steps[k].next_chunk, 0, memory_order_relaxed);
    N2_TRY(n2_plan_pull_tensors(p));
    N2_TRY(n2_parallel_together(p->ctx, &p->workers, walk, p));
    n2_plan_push_tensors(p);
    *bad = bad_watched(p, UINT32_MAX);
    p->runs += *bad == 0;
    p->timed_runs += p->timing && *bad == 0;
    return N2CE_OK;
}

/* A walk through all steps, by the one worker a device's plan has. */
static void record(n2_plan *p) {
    for (size_t k = 0; k < p->n_steps; k++)
        atomic_store_explicit(&p->steps[k].next_chunk, 0, memory_order_relaxed);
    walk(p, 0, 0);
}

n2ce_status n2_plan_begin(n2_plan *p, uint64_t n) {
    p->bad = 0;
    if (p->device) return n2_plan_begin_on_device(p, n, record);
    for (uint64_t k = 0; k < n && !p->bad; k++) N2_TRY(run_on_host(p, &p->bad));
    return N2CE_OK;
}

n2ce_status n2_plan_end(n2_plan *p) {
    if (p->device) N2_TRY(n2_plan_end_on_device(p, &p->bad));
    return p->bad ? explain(p, p->bad) : N2CE_OK;
}

n2ce_status n2_plan_run_many(n2_plan *p, uint64_t n) {
    N2_TRY(n2_plan_begin(p, n));
    return n2_plan_end(p);
}

n2ce_status n2_plan_run(n2_plan *p) { return n2_plan_run_many(p, 1); }

/* ---- reading ------------------------------------------------------------- */

void n2_plan_seed(n2_plan *p, uint64_t seed, uint32_t runs_so_far) {
    p->seed = seed;
    p->runs = runs_so_far;
    p->state_moved = true;
}

uint32_t n2_plan_runs(const n2_plan *p) { return p->runs; }
uint64_t n2_plan_seed_of(const n2_plan *p) { return p->seed; }
const n2_backend *n2_plan_backend(const n2_plan *p) { return p->backend; }

enum {
    READ = 65536
}; /* bytes that are fetched together: a device has to be waited for each time */

/* If a device fails, NaN. */
void n2_plan_get(const n2_plan *p, size_t k, double *values) {
    const char *data = p->nodes[p->nodes[p->outputs[k].id].root].data;
    const size_t n = (size_t)n2_elements(n2_shape_at(p->graph, p->outputs[k]));
    const size_t bytes = p->backend->bytes;
    for (size_t i = 0, step = READ / bytes; i < n; i += step) {
        double wide[READ / sizeof(double)];
        float narrow[READ / sizeof(float)];
        const size_t m = n - i < step ? n - i : step;
        void *to = bytes == sizeof(float) ? (void *)narrow : wide;
        const bool read = n2_plan_read(p, to, data + i * bytes, m * bytes) == N2CE_OK;
        for (size_t l = 0; l < m; l++)
            values[i + l] = !read                    ? (double)NAN
                            : bytes == sizeof(float) ? (double)narrow[l]
                                                     : wide[l];
    }
}

double n2_plan_scalar(const n2_plan *p, size_t k) {
    double value = 0;
    n2_plan_get(p, k, &value);
    return value;
}

void n2_plan_time(n2_plan *p, bool on) { p->timing = on; }
