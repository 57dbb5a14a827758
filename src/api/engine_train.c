/* The trainer of n2ce_engine.h: one phase of the trainer. */
#include "engine_types.h"

#include "base/clock.h"
#include "rewrite/rewrites.h"
#include "train/train.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* A training under way: the caller's functions, and the plan of the check. */
typedef struct training {
    const n2ce_trainer *t;
    n2_graph *check;
    n2_node held_out;
    n2_plan *plan;
} training;

/* What a caller's function built: one number. */
static n2_node one_number(n2_graph *g, n2ce_node built, const char *what) {
    const n2_node loss = n2_node_in(n2_graph_out(g), built);
    char text[64];
    if (!loss.id || n2_elements(n2_shape_at(g, loss)) == 1) return loss;
    return n2_graph_fail(g, "train: what the %s returns must be one number, not %s", what,
                         n2_shape_text(n2_shape_at(g, loss), text));
}

static n2ce_status build_step(void *user, n2_graph *g, n2_outputs *out) {
    const training *r = user;
    n2_output(out, one_number(g, r->t->step(n2_graph_out(g), r->t->user), "step"));
    return N2CE_OK;
}

/* ---- the check ----------------------------------------------------------- */

static n2ce_status build_check(training *r) {
    r->check = n2_graph_new(r->t->store->tensors);
    if (!r->check) return N2CE_ENOMEM;
    r->held_out = one_number(r->check, r->t->check(n2_graph_out(r->check), r->t->user), "check");
    return n2_graph_status(r->check);
}

static n2ce_status compile_check(void *user, const n2_backend *backend) {
    training *r = user;
    n2_plan_free(r->plan);
    r->plan = NULL;
    return n2_plan_compile(r->check, backend, &r->held_out, 1, &r->plan);
}

static n2ce_status run_check(void *user, uint64_t step, double *loss) {
    training *r = user;
    (void)step;
    n2_plan_seed(r->plan, r->t->seed, 0); /* what is drawn is drawn again */
    N2_TRY(n2_plan_run(r->plan));
    *loss = n2_plan_scalar(r->plan, 0);
    return N2CE_OK;
}

/* ---- the training -------------------------------------------------------- */

static n2ce_status check_trainer(n2ce_ctx *ctx, const n2ce_trainer *t) {
    if (!t->step || t->steps == 0)
        return n2_fail(ctx, N2CE_EINVAL, "A training needs a step, and steps > 0.");
    if (!(t->average >= 0 && t->average < 1) || !(t->time_limit >= 0))
        return n2_fail(ctx, N2CE_EINVAL,
                       "average is %g and time_limit %g; the one is from 0 to below 1, the other "
                       "at least 0.",
                       t->average, t->time_limit);
    if ((t->check || t->average > 0) && !t->parameters)
        return n2_fail(ctx, N2CE_EINVAL,
                       "parameters is NULL; what is averaged, or kept where a check was best, "
                       "must be named.");
    if (t->parameters && t->parameters->store != t->store)
        return n2_fail(ctx, N2CE_EINVAL, "The parameters belong to another store.");
    if (t->check && t->check_every == 0)
        return n2_fail(ctx, N2CE_EINVAL, "check_every is 0; say after how many steps to check.");
    return N2CE_OK;
}

static n2ce_status run(training *r, n2_device_choice *choice, n2_phase_record *record) {
    const n2ce_trainer *t = r->t;
    const n2_phase phase = {.build = build_step,
                            .steps = t->steps,
                            .seed = t->seed,
                            .parameters = t->parameters ? &t->parameters->list : NULL,
                            .average = t->average,
                            .check = t->check ? run_check : NULL,
                            .check_every = t->check_every,
                            .patience = t->patience,
                            .deadline = t->time_limit > 0 ? n2_seconds() + t->time_limit : 0};
    const n2_trainer trainer = {.store = t->store->tensors,
                                .user = r,
                                .phases = &phase,
                                .n_phases = 1,
                                .ready = t->check ? compile_check : NULL,
                                .checkpoint = t->checkpoint,
                                .resume = t->resume,
                                .choice = choice};
    if (t->average > 0) N2_TRY(n2_averages_add(&t->parameters->list)); /* the check may read them */
    if (t->check) N2_TRY(build_check(r));
    return n2_train(&trainer, record);
}

n2ce_status n2ce_train(const n2ce_trainer *t, n2ce_training *out) {
    training r = {.t = t};
    n2_phase_record record = {0};
    n2_device_choice choice;
    *out = (n2ce_training){.loss = (double)NAN, .best_loss = (double)NAN};
    if (!t->store) return N2CE_EINVAL; /* nor is there a context to tell it to */
    n2ce_ctx *ctx = n2_store_ctx(t->store->tensors);
    if (t->struct_size != sizeof *t)
        return n2_fail(ctx, N2CE_EINVAL,
                       "Start from N2CE_TRAINER_INIT; struct_size is %zu, not %zu.", t->struct_size,
                       sizeof *t);
    N2_TRY(check_trainer(ctx, t));
    N2_TRY(n2_device_named(ctx, t->device, &choice));
    const n2ce_status status = run(&r, &choice, &record);
    n2_plan_free(r.plan);
    n2_graph_free(r.check);
    n2_cancel_reset(ctx);
    out->steps = record.steps;
    out->loss = record.output[0];
    if (t->check) out->best_loss = record.loss[0];
    out->best_step = t->check ? record.best[0] : record.steps;
    out->stopped_early = record.stopped_early;
    out->out_of_time = record.out_of_time;
    snprintf(out->device, sizeof out->device, "%s", n2_choice_name(&choice));
    return status;
}
