/* The loop. */
#include "training.h"

#include "base/clock.h"
#include "base/numerics.h"
#include "comm/comm.h"

#include <stdlib.h>

enum { AT_ONCE = 64, SAVE_SECONDS = 20, TOLD = 1000, AGREE_EVERY = 8 };

/* ---- checks ---------------------------------------------------------------- */

static size_t members_of(const n2_phase *p) { return p->members ? p->members : 1; }

/* Members that are better than before are kept; at first all are. */
static n2ce_status check(n2_training *r) {
    const n2_phase *p = n2_phase_at(r);
    n2_phase_record *record = &r->records[r->which];
    double loss[N2_TRAIN_MEMBERS];
    N2_TRY(p->check(r->t->user, r->step, loss));
    record->since_best++;
    for (size_t m = 0; m < members_of(p); m++) {
        if (r->step > 0 && !(loss[m] < record->loss[m])) continue;
        record->loss[m] = loss[m];
        record->best[m] = r->step;
        record->since_best = 0;
        N2_TRY(n2_keep_member(r, m));
    }
    record->stopped_early = p->patience > 0 && record->since_best >= p->patience;
    return N2CE_OK;
}

/* The check at step 0, of what is kept already. */
static n2ce_status check_start(n2_training *r) {
    return n2_phase_at(r)->check(r->t->user, 0, r->records[r->which].loss);
}

static n2ce_status begin_averages(const n2_training *r) {
    const n2_phase *p = n2_phase_at(r);
    for (size_t i = 0; p->average > 0 && r->step == 0 && i < p->parameters->n; i++) {
        const n2_tensor *t = p->parameters->list[i];
        N2_TRY(n2_copy_tensor(r->t->store, n2_average_of(r->t->store, t), t));
    }
    return N2CE_OK;
}

static n2ce_status begin_checks(n2_training *r) {
    const n2_phase *p = n2_phase_at(r);
    if (!p->check || r->step > 0) return N2CE_OK;
    if (!p->check_later) return check(r);
    for (size_t m = 0; m < members_of(p); m++) N2_TRY(n2_keep_member(r, m));
    return N2CE_OK;
}

/* ---- between steps --------------------------------------------------------- */

static void tell(n2_training *r) {
    double done = (double)r->step, total = 0;
    for (size_t i = 0; i < r->t->n_phases; i++) {
        done += i < r->which ? (double)r->t->phases[i].steps : 0;
        total += (double)r->t->phases[i].steps;
    }
    const uint64_t share = (uint64_t)(TOLD * done / total);
    if (share == r->told) return;
    r->told = share;
    if (r->t->progress)
        r->t->progress(r->t->progress_user, done, total);
    else
        n2_progress(r->ctx, done, total);
}

/* Ranks have a clock and a Ctrl-C each, and agree on both now and then: the others' wishes are
 * theirs, the time is rank 0's. */
static bool is_time_to_agree(const n2_training *r) {
    return n2_ranks(r->ctx) == 1 || r->step % AGREE_EVERY == 0;
}

static n2ce_status look_at_clock(n2_training *r) {
    const double deadline = n2_phase_at(r)->deadline;
    if (deadline <= 0 || !is_time_to_agree(r)) return N2CE_OK;
    bool over = n2_seconds() > deadline;
    N2_TRY(n2_comm_decide(r->ctx, &over));
    r->records[r->which].out_of_time = over;
    return N2CE_OK;
}

/* Between two checkpoints; the environment's wish is for tests that kill programs. */
static double save_seconds(const n2_trainer *t) {
    const char *wish = getenv("N2CE_SAVE_SECONDS");
    const double seconds = wish ? strtod(wish, NULL) : 0;
    return seconds > 0 ? seconds : t->save_seconds > 0 ? t->save_seconds : SAVE_SECONDS;
}

/* After what was due: somebody may have had enough, and a checkpoint holds whole steps. */
static n2ce_status look_up(n2_training *r) {
    bool stop = is_time_to_agree(r) && n2_cancelled(r->ctx);
    if (is_time_to_agree(r)) N2_TRY(n2_comm_any(r->ctx, &stop));
    if (stop) N2_TRY(n2_training_save(r));
    if (stop) return N2CE_ECANCELED;
    const bool due = r->t->checkpoint && n2_seconds() - r->saved > save_seconds(r->t);
    return due ? n2_training_try_to_save(r) : N2CE_OK;
}

/* ---- steps ----------------------------------------------------------------- */

static uint64_t least(uint64_t a, uint64_t b) { return a < b ? a : b; }

/* A device is asked for several at once, but not beyond what is to be done between steps. */
static uint64_t steps_at_once(const n2_training *r) {
    const n2_phase *p = n2_phase_at(r);
    uint64_t n = r->plans->backend->device && !p->inner[0].build ? AT_ONCE : 1;
    n = least(n, p->steps - r->step);
    if (p->check) n = least(n, p->check_every - r->step % p->check_every);
    if (p->renew) n = least(n, p->renew_every - r->step % p->renew_every);
    return n;
}

/* Runs of an inner loop before this step. */
static uint64_t inner_runs(const n2_inner_loop *loop, uint64_t step) {
    const uint64_t every = loop->every ? loop->every : 1;
    return (step + every - 1) / every * loop->times;
}

static n2ce_status run_some(n2_training *r, uint64_t n) {
    const n2_phase *p = n2_phase_at(r);
    const n2_phase_plans *plans = &r->plans->phases[r->which];
    for (size_t k = 0; k < N2_TRAIN_INNER && plans->inner[k]; k++) {
        const n2_inner_loop *loop = &p->inner[k];
        const uint64_t due = inner_runs(loop, r->step + 1) - inner_runs(loop, r->step);
        if (due) N2_TRY(n2_plan_run_many(plans->inner[k], due));
    }
    N2_TRY(n2_plan_begin(plans->step, n));
    const n2ce_status meanwhile = r->t->meanwhile ? r->t->meanwhile(r->t->user) : N2CE_OK;
    const n2ce_status status = n2_plan_end(plans->step);
    return status == N2CE_OK ? meanwhile : status;
}

static bool is_over(const n2_training *r) {
    const n2_phase_record *record = &r->records[r->which];
    return r->step >= n2_phase_at(r)->steps || record->out_of_time || record->stopped_early;
}

static void note_outputs(n2_training *r) {
    for (size_t k = 0; k < r->graphs[r->which].outputs.n; k++)
        r->records[r->which].output[k] = n2_plan_scalar(r->plans->phases[r->which].step, k);
}

/* Steps, and the check that is due after them. */
static n2ce_status go_on(n2_training *r) {
    const n2_phase *p = n2_phase_at(r);
    const uint64_t n = steps_at_once(r);
    const bool in_first_round = p->check && r->step < p->check_every;
    if (p->renew && r->step % p->renew_every == 0) N2_TRY(p->renew(r->t->user, r->step));
    N2_TRY(run_some(r, n));
    r->records[r->which].steps = r->step += n;
    N2_TRY(look_at_clock(r));
    const bool due = p->check && (is_over(r) || r->step % p->check_every == 0);
    if (due && in_first_round && p->check_later) N2_TRY(check_start(r));
    tell(r);
    if (due) N2_TRY(check(r));
    if (is_over(r)) note_outputs(r);
    return look_up(r);
}

static void seed_plans(n2_training *r) {
    const n2_phase *p = n2_phase_at(r);
    const n2_phase_plans *plans = &r->plans->phases[r->which];
    for (size_t k = 0; k < N2_TRAIN_INNER && plans->inner[k]; k++)
        n2_plan_seed(plans->inner[k], p->inner[k].seed,
                     (uint32_t)inner_runs(&p->inner[k], r->step));
    n2_plan_seed(plans->step, p->seed, (uint32_t)r->step);
}

static n2ce_status run_phase(n2_training *r) {
    const n2_phase *p = n2_phase_at(r);
    if (p->steps == 0) return N2CE_OK;
    seed_plans(r);
    N2_TRY(begin_averages(r));
    N2_TRY(begin_checks(r));
    n2ce_status status = N2CE_OK;
    while (status == N2CE_OK && !is_over(r)) status = go_on(r);
    if (status != N2CE_OK && status != N2CE_ENAN) return status;
    r->records[r->which].steps = n2_plan_runs(r->plans->phases[r->which].step); /* good ones */
    const n2ce_status ended = n2_end_weights(r);
    return status == N2CE_OK ? ended : status;
}

/* What is wrong with a phase; NULL: nothing. */
static const char *mistake_in(const n2_phase *p) {
    if (p->steps == 0) return NULL;
    if (!p->build) return "has no build function";
    if ((p->check || p->average > 0) && !p->parameters) return "names no parameters";
    if (p->check && p->check_every == 0) return "does not say how often to check";
    if (p->renew && p->renew_every == 0) return "does not say how often to renew";
    if (p->members > N2_TRAIN_MEMBERS) return "has more members than a record has room for";
    if (p->check && p->parameters->n % members_of(p) != 0)
        return "has members with different numbers of tensors";
    return NULL;
}

static n2ce_status check_phases(const n2_training *r) {
    for (size_t i = 0; i < r->t->n_phases; i++) {
        const char *mistake = mistake_in(&r->t->phases[i]);
        if (mistake)
            return n2_fail(r->ctx, N2CE_EINVAL, "Phase %zu of the training %s.", i + 1, mistake);
    }
    return N2CE_OK;
}

static n2ce_status run_phases(n2_training *r) {
    N2_TRY(check_phases(r));
    N2_TRY(n2_training_build(r));
    N2_TRY(n2_training_resume(r));
    while (r->which < r->t->n_phases) {
        N2_TRY(run_phase(r));
        r->which++;
        r->step = 0;
    }
    return n2_training_try_to_save(r);
}

n2ce_status n2_train(const n2_trainer *t, n2_phase_record *records) {
    n2ce_ctx *ctx = n2_store_ctx(t->store);
    n2_training r = {.ctx = ctx, .t = t, .records = records, .arena = n2_arena_new(ctx)};
    r.saved = n2_seconds();
    for (size_t i = 0; i < t->n_phases; i++) records[i] = (n2_phase_record){.steps = 0};
    const n2ce_status status = run_phases(&r);
    n2_training_free(&r);
    return status;
}
