/* REINFORCE on the mean of an ensemble of forward models, as Design-Bench runs it. What is learned
 * is a distribution of designs: for numbers a normal of fixed standard deviation .1 whose mean
 * starts at that of the best designs offline, for sequences independent categories that start at
 * their frequencies there. 200 steps of Adam .01 along the score-function gradient, with rewards
 * standardised in a batch of 2048 (numbers) or 256 (sequences). Proposals are draws. */
#include "base/random.h"
#include "surrogate.h"

#include <math.h>
#include <string.h>

enum { ITERATIONS = 200, BATCH_NUMBERS = 2048, BATCH_SEQUENCES = 256, STREAM = 0x524C0000 };
static const double RATE = 0.01, SPREAD = 0.1, LEAST_SHARE = 1e-5;

typedef struct policy {
    const n2_code *code;
    uint64_t seed;
    bool sequence;
    size_t levels;
    double *theta;       /* width: means, or logits */
    double *m, *v;       /* Adam's moments */
    double *gradient;    /* width */
    double *probability; /* width */
} policy;

static n2ce_status policy_new(n2_arena *arena, const n2_code *code, uint64_t seed, policy *p) {
    const size_t n = code->width;
    *p = (policy){.code = code, .seed = seed, .sequence = n2_space_is_sequence(code->space)};
    p->levels = p->sequence ? code->space->factor[0].levels : 1;
    p->theta = n2_arena_alloc(arena, 5 * n, sizeof *p->theta);
    if (!p->theta) return N2CE_ENOMEM;
    p->m = p->theta + n;
    p->v = p->m + n;
    p->gradient = p->v + n;
    p->probability = p->gradient + n;
    return N2CE_OK;
}

/* From the mean of rows, which for a one-hot code is the frequency. */
static void policy_start(policy *p, const double *rows, size_t n) {
    const size_t width = p->code->width;
    for (size_t k = 0; k < width; k++) {
        double mean = 0;
        for (size_t i = 0; i < n; i++) mean += rows[i * width + k] / (double)n;
        p->theta[k] = p->sequence ? log(mean + LEAST_SHARE) : mean;
    }
}

static void set_probabilities(policy *p) {
    for (size_t first = 0; p->sequence && first < p->code->width; first += p->levels) {
        double sum = 0;
        for (size_t k = first; k < first + p->levels; k++)
            sum += p->probability[k] = exp(p->theta[k] - p->theta[first]);
        for (size_t k = first; k < first + p->levels; k++) p->probability[k] /= sum;
    }
}

static void draw_level(const policy *p, size_t first, double u, double *x) {
    size_t level = 0;
    for (double sum = p->probability[first]; u > sum && level + 1 < p->levels;)
        sum += p->probability[first + ++level];
    for (size_t k = 0; k < p->levels; k++) x[first + k] = k == level;
}

static void policy_draw(policy *p, uint32_t step, size_t n, double *x) {
    const size_t width = p->code->width;
    const n2_stream stream = {p->seed, STREAM, step};
    set_probabilities(p);
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < width; k += p->levels) {
            float e;
            if (p->sequence) {
                n2_fill_uniform(stream, i * width + k, 1, &e);
                draw_level(p, k, (double)e, x + i * width);
            } else {
                n2_fill_normal(stream, i * width + k, 1, &e);
                x[i * width + k] = p->theta[k] + SPREAD * (double)e;
            }
        }
}

static void standardise(double *reward, size_t n) {
    double mean = 0, square = 0;
    for (size_t i = 0; i < n; i++) mean += reward[i] / (double)n;
    for (size_t i = 0; i < n; i++) square += (reward[i] - mean) * (reward[i] - mean) / (double)n;
    for (size_t i = 0; i < n; i++) reward[i] = (reward[i] - mean) / (sqrt(square) + 1e-7);
}

/* Mean over the batch of reward times the gradient of the log density. */
static void policy_gradient(policy *p, const double *x, const double *reward, size_t n) {
    const size_t width = p->code->width;
    memset(p->gradient, 0, width * sizeof *p->gradient);
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < width; k++) {
            const double score = p->sequence ? x[i * width + k] - p->probability[k]
                                             : (x[i * width + k] - p->theta[k]) / (SPREAD * SPREAD);
            p->gradient[k] += reward[i] * score / (double)n;
        }
}

static void policy_step(policy *p, double step) {
    for (size_t k = 0; k < p->code->width; k++) {
        const double g = p->gradient[k];
        p->m[k] = 0.9 * p->m[k] + 0.1 * g;
        p->v[k] = 0.999 * p->v[k] + 0.001 * g * g;
        const double m = p->m[k] / (1 - pow(0.9, step)), v = p->v[k] / (1 - pow(0.999, step));
        p->theta[k] += RATE * m / (sqrt(v) + 1e-7);
    }
}

static n2ce_status improve(n2_workspace *ws, n2_surrogate *s, policy *p) {
    const size_t n = p->sequence ? BATCH_SEQUENCES : BATCH_NUMBERS;
    double *x = n2_arena_alloc(&ws->arena, n * p->code->width, sizeof *x);
    double *reward = n2_arena_alloc(&ws->arena, n, sizeof *reward);
    if (!x || !reward) return N2CE_ENOMEM;
    for (uint32_t i = 0; i < ITERATIONS; i++) {
        policy_draw(p, i, n, x);
        N2_TRY(n2_surrogate_mean(s, x, n, reward));
        standardise(reward, n);
        policy_gradient(p, x, reward, n);
        policy_step(p, (double)(i + 1));
        N2_TRY(n2_workspace_report(ws, 0.9 + 0.1 * (double)i / ITERATIONS));
    }
    return N2CE_OK;
}

static n2ce_status run(n2_workspace *ws, const n2_designs *offline, n2_proposals *out) {
    const n2_surrogate_options o = n2_surrogate_ensemble(1e-3);
    n2_code code;
    n2_surrogate s;
    policy p;
    double *x;
    N2_TRY(n2_code_new(&ws->arena, offline, N2_CODE_ONE_HOT, &code));
    N2_TRY(n2_surrogate_fit(ws, &code, &o, 0.9, &s));
    N2_TRY(n2_code_best(&ws->arena, offline, &code, out->rows, &x));
    N2_TRY(policy_new(&ws->arena, &code, ws->seed, &p));
    policy_start(&p, x, out->rows);
    N2_TRY(improve(ws, &s, &p));
    policy_draw(&p, ITERATIONS, out->rows, x);
    n2_code_propose(&code, x, out);
    return N2CE_OK;
}

n2ce_status n2_reinforce_with(n2ce_ctx *ctx, const n2_designs *offline, uint64_t seed,
                              const n2_effort *effort, n2_proposals *out) {
    return n2_workspace_propose(ctx, offline, seed, effort, run, out);
}

N2_PROPOSE_AS_PUBLISHED(n2_reinforce_with)

const n2_method n2_reinforce_method = {"reinforce",
                                       "policy gradient on an ensemble that predicts y", propose};
