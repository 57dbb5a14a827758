/* Designs to try next: learns from 120 designs, proposes 8, keeps what it learnt in a file and
 * proposes from that again. The best design is (0.3, 0.7); none near it was tried.
 *     cc propose.c $(pkg-config --cflags --libs n2ce) -lm -o propose && ./propose */
#include <math.h>
#include <n2ce.h>
#include <stdio.h>
#include <string.h>

enum { ROWS = 120, WANTED = 8 };

static double value_of(const double *x) {
    return -(x[0] - 0.3) * (x[0] - 0.3) - (x[1] - 0.7) * (x[1] - 0.7);
}

/* Points spread evenly over the square, but for a hole around the best. */
static void fill(double *x, double *y) {
    for (int i = 0, n = 0; n < ROWS; i++) {
        double *row = x + 2 * n;
        row[0] = fmod(0.5 + 0.7548776662 * i, 1);
        row[1] = fmod(0.5 + 0.5698402910 * i, 1);
        if (value_of(row) < -0.04) y[n++] = value_of(row);
    }
}

static n2ce_status fit(n2ce_ctx *ctx, n2ce_optimizer **out) {
    static double x[2 * ROWS], y[ROWS];
    fill(x, y);
    const n2ce_matrix designs = {x, N2CE_F64, ROWS, 2, 0, 0}, values = {y, N2CE_F64, ROWS, 1, 0, 0};
    n2ce_options *options;
    n2ce_status status =
        n2ce_options_new(ctx, n2ce_task_options(n2ce_task_find("optimize")), &options);
    if (status != N2CE_OK) return status;
    status = n2ce_options_set(options, "effort", "0.05"); /* quick; leave it out for real work */
    if (status == N2CE_OK) status = n2ce_options_set(options, "rounds", "4");
    if (status == N2CE_OK) status = n2ce_optimizer_fit(ctx, options, &designs, &values, out);
    n2ce_options_free(options);
    return status;
}

static n2ce_status propose(n2ce_optimizer *optimizer, double *first) {
    const n2ce_proposals *p;
    const n2ce_status status = n2ce_optimizer_propose(optimizer, WANTED, &p);
    for (size_t i = 0; status == N2CE_OK && i < p->rows; i++)
        printf("%6.3f %6.3f   predicted %7.4f +- %.4f\n", p->designs[2 * i], p->designs[2 * i + 1],
               p->predicted[i], p->spread[i]);
    if (status == N2CE_OK) memcpy(first, p->designs, 2 * sizeof *first);
    return status;
}

int main(void) {
    const char *path = "propose.safetensors";
    double first[2] = {0, 0}, again[2] = {1, 1};
    n2ce_ctx *ctx;
    n2ce_optimizer *optimizer = NULL, *loaded = NULL;
    if (n2ce_ctx_new(&ctx, NULL) != N2CE_OK) return 1;
    n2ce_status status = fit(ctx, &optimizer);
    if (status == N2CE_OK) status = propose(optimizer, first);
    if (status == N2CE_OK) status = n2ce_optimizer_save(optimizer, path, true);
    if (status == N2CE_OK) status = n2ce_optimizer_load(ctx, path, &loaded);
    if (status == N2CE_OK) status = propose(loaded, again);
    if (status != N2CE_OK) fprintf(stderr, "propose: %s\n", n2ce_errmsg(ctx));
    n2ce_optimizer_free(loaded);
    n2ce_optimizer_free(optimizer);
    n2ce_ctx_free(ctx);
    remove(path);
    const bool good = value_of(first) > -0.04 && memcmp(first, again, sizeof first) == 0;
    return status == N2CE_OK && good ? 0 : 1;
}
