#include "distill.h"

n2_distill_plan n2_distill_defaults(n2_distill_method method) {
    n2_distill_plan p = {.method = method,
                         .critic = {.magnitude = 50, .lambda = 0.5},
                         .steps = 3500,
                         .batch = 512,
                         .flips = true,
                         .rate = 1e-4,
                         .alpha = 1.2,
                         .sigma = 2.5,
                         .half_life = 5e4,
                         .alone = 2.5e4,
                         .by_score = 2.5e4};
    if (method != N2_DISTILL_DXMI) return p;
    p.critic = (n2_critic){.magnitude = 100, .lambda = 1.5};
    p.steps = 2000;
    p.batch = 256;
    p.sampler_steps = 10;
    p.value_width = 64;
    p.sampler_rate = 3e-6;
    p.noise_rate = 3e-4;
    p.value_rate = 1e-4;
    p.clip = 0.1;
    p.entropy = 0.1;
    p.velocity = 0.01;
    p.plain = 3;
    return p;
}

const char *const *n2_distill_numbers(n2_distill_method method) {
    static const char *const of_score[] = {"fake", "sid", "real", "made", NULL};
    static const char *const of_value[] = {"energy", "real", "made", NULL};
    return method == N2_DISTILL_DXMI ? of_value : of_score;
}

/* ---- whether it can be done ---- */

static bool same_shapes(const n2_score_net *one, const n2_score_net *other) {
    const n2_parameters *a = &one->parameters, *b = &other->parameters;
    bool same = a->n == b->n;
    for (size_t i = 0; same && i < a->n; i++)
        same = n2_same_shape(a->list[i]->shape, b->list[i]->shape);
    return same;
}

static n2ce_status check(n2ce_ctx *ctx, const n2_distillation *task) {
    const n2_denoiser_spec *s = &task->teacher->spec;
    if (s->kind != N2_DENOISER_TEACHER)
        return n2_fail(ctx, N2CE_EDATA,
                       "The teacher was distilled already: take the model that it was made of.");
    if (task->start && !same_shapes(&task->teacher->net, &task->start->net))
        return n2_fail(ctx, N2CE_EDATA,
                       "The student to begin with has another network than the teacher.");
    if (task->start && task->plan.method == N2_DISTILL_DXMI)
        return n2_fail(ctx, N2CE_EINVAL, "DxMI begins with the teacher.");
    if (task->plan.method == N2_DISTILL_DXMI && (s->height % 8 || s->width % 8))
        return n2_fail(
            ctx, N2CE_EDATA,
            "The pictures are %lld x %lld; DxMI's value network halves them three times: "
            "both sides must be divisible by 8.",
            (long long)s->height, (long long)s->width);
    return n2_denoiser_check_size(ctx, s, task->pictures);
}

n2_denoiser_spec n2_student_spec(const n2_distillation *task) {
    n2_denoiser_spec s = task->teacher->spec;
    const bool few = task->plan.method == N2_DISTILL_DXMI;
    s.kind = few ? N2_DENOISER_FEW_STEPS : N2_DENOISER_ONE_STEP;
    s.steps = few ? task->plan.sampler_steps : 0;
    s.sigma = few ? 0 : task->plan.sigma;
    return s;
}

static n2ce_status distill(n2_store *store, const n2_distillation *task, const n2_denoiser_run *run,
                           n2_denoiser *student, n2_denoiser_record *record) {
    return task->plan.method == N2_DISTILL_DXMI
               ? n2_distill_by_value(store, task, run, student, record)
               : n2_distill_by_score(store, task, run, student, record);
}

n2ce_status n2_distill(n2ce_ctx *ctx, const n2_distillation *task, const n2_denoiser_run *run,
                       n2_denoiser **student, n2_denoiser_record *record) {
    n2_store *store = NULL;
    *student = NULL;
    record->curve.n = 0;
    N2_TRY(check(ctx, task));
    const n2_denoiser_spec spec = n2_student_spec(task);
    n2ce_status status = n2_denoiser_new(ctx, &spec, 0, student);
    if (status == N2CE_OK) status = n2_store_new(ctx, sizeof(float), &store);
    if (status == N2CE_OK) status = distill(store, task, run, *student, record);
    if (status == N2CE_OK) (*student)->backend = n2_choice_backend(run->choice);
    n2_store_free(store);
    if (status == N2CE_OK) return N2CE_OK;
    n2_denoiser_free(*student);
    *student = NULL;
    return status;
}
