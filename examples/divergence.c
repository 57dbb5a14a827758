/* A divergence between two samples in memory, as a number with its interval.
 *     cc divergence.c $(pkg-config --cflags --libs n2ce) -lm -o divergence && ./divergence */
#include <math.h>
#include <n2ce.h>
#include <stdio.h>

enum { N = 1000 };

/* Quantiles of the exponential distribution with this rate, in a mixed order. */
static void fill(double *x, double rate) {
    for (int i = 0; i < N; i++) x[i] = -log1p(-((i * 617 % N) + 0.5) / N) / rate;
}

static n2ce_status measure(n2ce_ctx *ctx, const n2ce_matrix data[2], n2ce_answer **answer) {
    const n2ce_task *task = n2ce_task_find("divergence");
    n2ce_options *options;
    n2ce_status status = n2ce_options_new(ctx, n2ce_task_options(task), &options);
    if (status != N2CE_OK) return status;
    status = n2ce_options_set(options, "device", "cpu"); /* the same bytes always */
    if (status == N2CE_OK) status = n2ce_options_set(options, "steps", "300"); /* quick */
    if (status == N2CE_OK) status = n2ce_task_run_on(ctx, task, options, data, 2, answer);
    n2ce_options_free(options);
    return status;
}

int main(void) {
    static double x[N], y[N];
    const double truth = log(2.0) - 0.5; /* ln a/b + b/a - 1 for rates a and b */
    n2ce_ctx *ctx;
    n2ce_answer *answer = NULL;
    bool covered = false;
    fill(x, 2);
    fill(y, 1);
    const n2ce_matrix data[] = {{x, N2CE_F64, N, 1, 0, 0}, {y, N2CE_F64, N, 1, 0, 0}};
    if (n2ce_ctx_new(&ctx, NULL) != N2CE_OK) return 1;
    if (measure(ctx, data, &answer) == N2CE_OK) {
        const n2ce_estimate *kl = n2ce_answer_estimate(answer, "kl");
        const n2ce_estimate *js = n2ce_answer_estimate(answer, "js");
        printf("KL %.3f %s, %.3f to %.3f; truth %.3f; %s\n", kl->value, kl->unit, kl->lo, kl->hi,
               truth, kl->verdict);
        printf("JS %.3f %s, standard error %.3f\n", js->value, js->unit, js->standard_error);
        covered = kl->lo < truth && truth < kl->hi;
    } else {
        fprintf(stderr, "divergence: %s\n", n2ce_errmsg(ctx));
    }
    n2ce_answer_free(answer);
    n2ce_ctx_free(ctx);
    return covered ? 0 : 1;
}
