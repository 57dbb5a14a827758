#include "learned.h"

#include "base/numerics.h"
#include "base/pool.h"
#include "base/random.h"
#include "ratio/choose.h"

#include <math.h>
#include <string.h>

/* Sizes of the noise, in standard deviations: evenly on a log scale. */
static const double LEAST_NOISE = 0.1, MOST_NOISE = 3;

/* What both sides have, so that no direction is without spread: ties, copies of columns. */
static const double BLUR = 0.05;

enum {
    COPIES = 4,             /* reference rows for each row, and more of few rows: */
    LEAST_REFERENCE = 4000, /* about so many in all */
    ROWS_FOR_A_NETWORK = 100,
    STEPS = 800,
    ROWS_AN_ITEM = 256,
    SCORE_BLOCK = 4096
};

/* Streams of random numbers, nobody else's. */
enum { PROJECTION = 0x64650001, NOISE, NOISE_SIZE, BLURRING };

void n2_learned_free(n2_learned *l) {
    if (!l) return;
    n2_free(l->ctx, l->projection);
    n2_gauss_free(l->base);
    n2_critic_free(l->critic);
    n2_free(l->ctx, l);
}

/* ---- features ------------------------------------------------------------ */

static n2ce_status make_projection(n2_learned *l, uint64_t seed) {
    if (l->d <= N2_LEARNED_WIDTH) return N2CE_OK;
    float *normal = n2_alloc(l->ctx, l->d * l->width, sizeof *normal);
    l->projection = n2_alloc(l->ctx, l->d * l->width, sizeof *l->projection);
    if (normal && l->projection) {
        n2_fill_normal((n2_stream){seed, PROJECTION, 0}, 0, l->d * l->width, normal);
        for (size_t i = 0; i < l->d * l->width; i++)
            l->projection[i] = (double)normal[i] / sqrt((double)l->width);
    }
    n2_free(l->ctx, normal);
    return normal && l->projection ? N2CE_OK : N2CE_ENOMEM;
}

typedef struct bend_job {
    const n2_learned *l;
    const double *x;
    size_t n;
    double *out;
} bend_job;

static void bend_row(const n2_learned *l, const double *x, double *out) {
    if (!l->projection) {
        for (size_t j = 0; j < l->d; j++) out[j] = asinh(x[j]);
        return;
    }
    memset(out, 0, l->width * sizeof *out);
    for (size_t j = 0; j < l->d; j++) {
        const double bent = asinh(x[j]), *row = l->projection + j * l->width;
        for (size_t k = 0; k < l->width; k++) out[k] += bent * row[k];
    }
}

static void bend_some(void *arg, size_t item, int worker) {
    (void)worker;
    const bend_job *job = arg;
    const size_t end = (item + 1) * ROWS_AN_ITEM < job->n ? (item + 1) * ROWS_AN_ITEM : job->n;
    for (size_t i = item * ROWS_AN_ITEM; i < end; i++)
        bend_row(job->l, job->x + i * job->l->d, job->out + i * job->l->width);
}

static n2ce_status bend(const n2_learned *l, const double *x, size_t n, double *out) {
    bend_job job = {l, x, n, out};
    return n2_parallel_for(l->ctx, (n + ROWS_AN_ITEM - 1) / ROWS_AN_ITEM, bend_some, &job);
}

/* ---- the reference ------------------------------------------------------- */

/* The copies of a row stand together, so that those of held-out rows are held out. */
typedef struct reference {
    n2ce_ctx *ctx;
    double *x; /* which are blurred, too */
    size_t n, d, copies;
    uint64_t seed;
    double *out;
} reference;

static void copy_row(void *arg, size_t item, int worker) {
    (void)worker;
    const reference *r = arg;
    float size[1], noise[N2_LEARNED_WIDTH];
    for (size_t k = item * r->copies; k < (item + 1) * r->copies; k++) {
        n2_fill_uniform((n2_stream){r->seed, NOISE_SIZE, 0}, k, 1, size);
        n2_fill_normal((n2_stream){r->seed, NOISE, 0}, k * r->d, r->d, noise);
        const double h = LEAST_NOISE * pow(MOST_NOISE / LEAST_NOISE, (double)size[0]);
        for (size_t j = 0; j < r->d; j++)
            r->out[k * r->d + j] = r->x[item * r->d + j] + h * (double)noise[j];
    }
    n2_fill_normal((n2_stream){r->seed, BLURRING, 0}, item * r->d, r->d, noise);
    for (size_t j = 0; j < r->d; j++) r->x[item * r->d + j] += BLUR * (double)noise[j];
}

/* ---- learning ------------------------------------------------------------ */

static n2ce_status moments_of(n2ce_ctx *ctx, n2_rows_view rows, const size_t held[2],
                              n2_moments *out) {
    const size_t bounds[] = {0, held[0], held[1], rows.n};
    n2_fold_sums *sums;
    N2_TRY(n2_fold_sums_new(ctx, rows, bounds, 3, &sums));
    const n2ce_status status = n2_moments_without(sums, 1, out);
    n2_fold_sums_free(sums);
    if (status == N2CE_OK) n2_moments_shrink(out, rows.d);
    return status;
}

static n2ce_status make_base(n2_learned *l, const n2_contrast_data *data) {
    n2_moments num = {0}, den = {0};
    n2ce_status status = moments_of(l->ctx, data->num, data->held[0], &num);
    if (status == N2CE_OK) status = moments_of(l->ctx, data->den, data->held[1], &den);
    if (status == N2CE_OK) status = n2_gauss_new(l->ctx, l->width, &num, &den, &l->base);
    n2_moments_free(l->ctx, &num);
    n2_moments_free(l->ctx, &den);
    return status;
}

static n2ce_status train(n2_learned *l, const n2_contrast_data *data, const n2_learned_options *o) {
    double alpha[N2_MOST_STAGES + 1];
    n2_fit_options fit = {.critic = {.contrast = N2_CONTRAST_N2CE, .steps = STEPS}};
    const size_t rows = data->num.n - (data->held[0][1] - data->held[0][0]);
    n2_choose(l->base, N2_NAN, rows, data->den.n, &fit, alpha);
    l->shape = fit.critic;
    l->shape.magnitude = l->shape.judge;
    l->shape.alpha = alpha;
    l->shape.seed = o->seed;
    l->shape.choice = o->choice;
    n2ce_status status = N2CE_OK;
    if (o->network && rows >= ROWS_FOR_A_NETWORK) do
            status = n2_critic_train(l->ctx, data, l->base, l->base, &l->shape, o->listener,
                                     &l->critic, &l->record);
        while (n2_choice_retreat(o->choice, l->ctx, status));
    l->shape.alpha = NULL;
    return status;
}

static n2ce_status learn(n2_learned *l, const double *x, size_t n, const size_t held[2],
                         const n2_learned_options *o) {
    const size_t copies = n * COPIES < LEAST_REFERENCE ? LEAST_REFERENCE / n + 1 : COPIES;
    double *num = n2_alloc(l->ctx, n * l->width, sizeof *num);
    double *den = n2_alloc(l->ctx, n * copies * l->width, sizeof *den);
    reference r = {l->ctx, num, n, l->width, copies, o->seed, den};
    const n2_contrast_data data = {
        .num = {num, n, l->width},
        .den = {den, n * copies, l->width},
        .held = {{held[0], held[1]}, {held[0] * copies, held[1] * copies}}};
    n2ce_status status = num && den ? make_projection(l, o->seed) : N2CE_ENOMEM;
    if (status == N2CE_OK) status = bend(l, x, n, num);
    if (status == N2CE_OK) status = n2_parallel_for(l->ctx, n, copy_row, &r);
    if (status == N2CE_OK) status = make_base(l, &data);
    if (status == N2CE_OK) status = train(l, &data, o);
    n2_free(l->ctx, num);
    n2_free(l->ctx, den);
    return status;
}

n2ce_status n2_learned_new(n2ce_ctx *ctx, const double *x, size_t n, size_t d, const size_t held[2],
                           const n2_learned_options *o, n2_learned **out) {
    n2_learned *l = *out = n2_alloc(ctx, 1, sizeof *l);
    if (!l) return N2CE_ENOMEM;
    l->ctx = ctx;
    l->d = d;
    l->width = d < N2_LEARNED_WIDTH ? d : N2_LEARNED_WIDTH;
    const n2ce_status status = learn(l, x, n, held, o);
    if (status == N2CE_OK) return N2CE_OK;
    n2_learned_free(l);
    *out = NULL;
    return status;
}

/* ---- rows ---------------------------------------------------------------- */

/* Once more by a copy on the processor, if a device that nobody insists on failed. */
static n2ce_status add_network(n2_learned *l, const double *bent, size_t n, double *f) {
    n2_critic *copy;
    const n2ce_status status = n2_critic_add(l->critic, bent, n, f);
    if (!n2_choice_retreat(l->shape.choice, l->ctx, status)) return status;
    N2_TRY(n2_critic_copy(l->critic, l->base, &l->shape, &copy));
    n2_critic_free(l->critic);
    l->critic = copy;
    memset(f, 0, n * sizeof *f);
    return n2_critic_add(l->critic, bent, n, f);
}

static n2ce_status score_block(n2_learned *l, const double *x, size_t n, double *bent,
                               double *score) {
    double learned[SCORE_BLOCK] = {0};
    N2_TRY(bend(l, x, n, bent));
    N2_TRY(n2_gauss_score(l->base, bent, n, score));
    if (l->critic) N2_TRY(add_network(l, bent, n, learned));
    for (size_t i = 0; i < n; i++) score[i] = -(score[i] + learned[i]);
    return n2_cancelled(l->ctx) ? N2CE_ECANCELED : N2CE_OK;
}

n2ce_status n2_learned_score(n2_learned *l, const double *x, size_t n, double *score) {
    double *bent = n2_alloc(l->ctx, SCORE_BLOCK * l->width, sizeof *bent);
    n2ce_status status = bent ? N2CE_OK : N2CE_ENOMEM;
    for (size_t i = 0; i < n && status == N2CE_OK; i += SCORE_BLOCK) {
        const size_t some = n - i < SCORE_BLOCK ? n - i : SCORE_BLOCK;
        status = score_block(l, x + i * l->d, some, bent, score + i);
    }
    n2_free(l->ctx, bent);
    return status;
}
