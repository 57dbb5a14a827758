/* Graphs and plans of a training, and the device they run on. */
#include "base/numerics.h"
#include "rewrite/rewrites.h"
#include "training.h"

#include <string.h>

/* ---- graphs ---------------------------------------------------------------- */

static n2ce_status new_graph(n2_training *r, n2_build_step *build, n2_graph **g, n2_outputs *out) {
    *g = n2_graph_new(r->t->store);
    return *g ? build(r->t->user, *g, out) : N2CE_ENOMEM;
}

static void build_averages(const n2_training *r, const n2_phase *p, n2_graph *g) {
    for (size_t i = 0; i < p->parameters->n && n2_graph_status(g) == N2CE_OK; i++)
        n2_average(g, n2_average_of(r->t->store, p->parameters->list[i]), p->parameters->list[i],
                   p->average);
}

static n2ce_status add_twins(const n2_phase *p) {
    if (p->average > 0) N2_TRY(n2_averages_add(p->parameters));
    return p->check ? n2_kept_add(p->parameters) : N2CE_OK;
}

static n2ce_status build_phase(n2_training *r, size_t which) {
    const n2_phase *p = &r->t->phases[which];
    n2_phase_graphs *g = &r->graphs[which];
    if (p->steps == 0) return N2CE_OK;
    N2_TRY(add_twins(p));
    for (size_t k = 0; k < N2_TRAIN_INNER && p->inner[k].build; k++)
        N2_TRY(new_graph(r, p->inner[k].build, &g->inner[k], &(n2_outputs){.n = 0}));
    N2_TRY(new_graph(r, p->build, &g->step, &g->outputs));
    if (g->outputs.n > N2_TRAIN_OUTPUTS)
        return n2_fail(r->ctx, N2CE_EINVAL,
                       "Phase %zu of the training has %zu outputs; %d is most.", which + 1,
                       g->outputs.n, N2_TRAIN_OUTPUTS);
    if (p->average > 0) build_averages(r, p, g->step);
    return N2CE_OK;
}

/* ---- plans ----------------------------------------------------------------- */

static n2ce_status compile_phase(n2_training *r, size_t which, n2_plan_set *set) {
    const n2_phase_graphs *g = &r->graphs[which];
    n2_phase_plans *plans = &set->phases[which];
    if (!g->step) return N2CE_OK;
    for (size_t k = 0; k < N2_TRAIN_INNER && g->inner[k]; k++)
        N2_TRY(n2_plan_compile(g->inner[k], set->backend, NULL, 0, &plans->inner[k]));
    return n2_plan_compile(g->step, set->backend, g->outputs.node, g->outputs.n, &plans->step);
}

static void free_plans(const n2_training *r, n2_plan_set *set) {
    for (size_t i = 0; set->phases && i < r->t->n_phases; i++) {
        for (size_t k = 0; k < N2_TRAIN_INNER; k++) n2_plan_free(set->phases[i].inner[k]);
        n2_plan_free(set->phases[i].step);
        set->phases[i] = (n2_phase_plans){.step = NULL};
    }
    set->backend = NULL;
}

static n2ce_status compile(n2_training *r, const n2_backend *backend, n2_plan_set *set) {
    set->backend = backend;
    for (size_t i = 0; i < r->t->n_phases; i++) N2_TRY(compile_phase(r, i, set));
    return N2CE_OK;
}

/* From now on the plans are those of this backend. */
static n2ce_status use(n2_training *r, const n2_backend *backend) {
    n2_plan_set *set = r->sets;
    while (set->backend && set->backend != backend) set++;
    if (r->plans == set) return N2CE_OK;
    if (!set->backend) N2_TRY(compile(r, backend, set));
    r->plans = set;
    return r->t->ready ? r->t->ready(r->t->user, backend) : N2CE_OK;
}

/* ---- the device ------------------------------------------------------------ */

static bool is_written(const n2_training *r, const n2_tensor *t) {
    for (size_t i = 0; i < r->t->n_phases; i++) {
        const n2_phase_plans *p = &r->plans->phases[i];
        if (p->step && n2_plan_writes(p->step, t)) return true;
        for (size_t k = 0; k < N2_TRAIN_INNER && p->inner[k]; k++)
            if (n2_plan_writes(p->inner[k], t)) return true;
    }
    return false;
}

/* What the plans change, to `saved` or back: a trial leaves no trace. NULL: only counts. */
static n2ce_status copy_written(const n2_training *r, char *saved, bool restore, size_t *bytes) {
    n2_store *store = r->t->store;
    *bytes = 0;
    for (size_t i = 0; n2_store_at(store, i); i++) {
        n2_tensor *t = n2_store_at(store, i);
        const size_t size = n2_tensor_bytes(store, t);
        if (!is_written(r, t)) continue;
        if (saved && restore) {
            memcpy(t->data, saved + *bytes, size);
            n2_tensor_push(store, t);
        } else if (saved) {
            N2_TRY(n2_tensor_pull(store, t));
            memcpy(saved + *bytes, t->data, size);
        }
        *bytes += size;
    }
    return N2CE_OK;
}

static uint64_t all_steps(const n2_training *r) {
    uint64_t sum = 0;
    for (size_t i = 0; i < r->t->n_phases; i++) sum += r->t->phases[i].steps;
    return sum;
}

static double runs_a_step(const n2_inner_loop *loop) {
    return (double)loop->times / (double)(loop->every ? loop->every : 1);
}

/* Of all steps, or of one of them. */
static n2ce_status time_phases(const n2_training *r, double *seconds) {
    const double limit = r->t->n_phases > 1 ? N2_TRIAL_SECONDS / 2 : N2_TRIAL_SECONDS;
    double sum = 0, each;
    for (size_t i = 0; i < r->t->n_phases; i++) {
        const n2_phase *p = &r->t->phases[i];
        const n2_phase_plans *plans = &r->plans->phases[i];
        if (p->steps == 0) continue;
        for (size_t k = 0; k < N2_TRAIN_INNER && plans->inner[k]; k++) {
            N2_TRY(n2_time_plan(plans->inner[k], limit, &each));
            sum += each * runs_a_step(&p->inner[k]) * (double)p->steps;
        }
        N2_TRY(n2_time_plan(plans->step, limit, &each));
        sum += each * (double)p->steps;
    }
    *seconds = r->t->measure_all ? sum : sum / (double)all_steps(r);
    return N2CE_OK;
}

static n2ce_status time_on(void *user, const n2_backend *backend, double *seconds) {
    n2_training *r = user;
    size_t bytes;
    N2_TRY(use(r, backend));
    N2_TRY(copy_written(r, NULL, false, &bytes));
    char *saved = n2_alloc(r->ctx, bytes + 1, 1);
    if (!saved) return N2CE_ENOMEM;
    n2ce_status status = copy_written(r, saved, false, &bytes);
    if (status == N2CE_OK) {
        status = time_phases(r, seconds);
        copy_written(r, saved, true, &bytes);
    }
    n2_free(r->ctx, saved);
    return status;
}

/* Of a plan's run: floating-point operations, and what it costs to go from node to node. */
static double work_of(const n2_plan *plan) {
    static const double NODE = 1e4;
    const n2_plan_size size = n2_plan_measure(plan);
    return size.flops + NODE * (double)size.nodes;
}

static double all_work(const n2_training *r) {
    double sum = 0;
    for (size_t i = 0; i < r->t->n_phases; i++) {
        const n2_phase *p = &r->t->phases[i];
        const n2_phase_plans *plans = &r->plans->phases[i];
        if (p->steps == 0) continue;
        double each = work_of(plans->step);
        for (size_t k = 0; k < N2_TRAIN_INNER && plans->inner[k]; k++)
            each += work_of(plans->inner[k]) * runs_a_step(&p->inner[k]);
        sum += each * (double)p->steps;
    }
    return sum;
}

static n2ce_status settle(n2_training *r) {
    n2_device_choice *choice = r->t->choice;
    if (!n2_choice_is_timed(choice)) return n2_choice_settle(choice, r->ctx, 0, NULL, NULL);
    N2_TRY(use(r, n2_choice_backend(NULL)));
    const double work = r->t->measure_all ? N2_INFINITY : all_work(r);
    if (r->t->measure_all) choice->per = "in all";
    return n2_choice_settle(choice, r->ctx, work, time_on, r);
}

/* Of two sets of plans the one that was not chosen goes, and with it what a device holds. */
static void drop_other(n2_training *r, const n2_backend *backend) {
    for (size_t i = 0; i < 2; i++) {
        n2_plan_set *set = &r->sets[i];
        if (!set->backend || set->backend == backend) continue;
        const bool on_device = set->backend->device != NULL;
        free_plans(r, set);
        if (on_device) n2_store_leave_devices(r->t->store);
        if (r->plans == set) r->plans = NULL;
    }
}

n2ce_status n2_training_build(n2_training *r) {
    const size_t n = r->t->n_phases;
    r->graphs = n2_arena_alloc(&r->arena, n, sizeof *r->graphs);
    for (size_t i = 0; i < 2; i++)
        r->sets[i].phases = n2_arena_alloc(&r->arena, n, sizeof *r->sets[i].phases);
    if (!r->graphs || !r->sets[0].phases || !r->sets[1].phases) return N2CE_ENOMEM;
    for (size_t i = 0; i < n; i++) N2_TRY(build_phase(r, i));
    N2_TRY(settle(r));
    const n2_backend *backend = n2_choice_backend(r->t->choice);
    drop_other(r, backend);
    return use(r, backend);
}

void n2_training_free(n2_training *r) {
    for (size_t i = 0; i < 2; i++) free_plans(r, &r->sets[i]);
    for (size_t i = 0; r->graphs && i < r->t->n_phases; i++) {
        for (size_t k = 0; k < N2_TRAIN_INNER; k++) n2_graph_free(r->graphs[i].inner[k]);
        n2_graph_free(r->graphs[i].step);
    }
    n2_arena_free(&r->arena);
}
