/* The engine's tutorial: build, train and save a classifier of two interleaved spirals.
 * One training iteration is one graph, compiled once and replayed (docs/engine.md). */
#include "nn/nn.h"
#include <math.h>
#include <stdio.h>

enum { POINTS = 2000, BATCH = 128, STEPS = 1500 };

/* Two spirals in the plane, one per class. */
static void make_data(double *x, double *label) {
    for (int i = 0; i < POINTS; i++) {
        const double t = 0.5 + 9.0 * (i / 2) / POINTS, angle = 1.5 * t + 3.14159265 * (i % 2);
        x[2 * i] = t / 5 * cos(angle);
        x[2 * i + 1] = t / 5 * sin(angle);
        label[i] = i % 2;
    }
}

static n2ce_status train(n2ce_ctx *ctx, n2_store *store, n2_graph *g) {
    static double x[2 * POINTS], label[POINTS];
    make_data(x, label);
    n2_tensor *points = n2_store_add(store, "data.x", n2_dims(POINTS, 2));
    n2_tensor *labels = n2_store_add(store, "data.label", n2_dims(POINTS));
    if (!points || !labels) return N2CE_ENOMEM;
    n2_tensor_set(store, points, x);
    n2_tensor_set(store, labels, label);
    n2_parameters weights = n2_parameters_new(store, 1);
    const n2_mlp net = n2_mlp_new(&weights, "net", (int64_t[]){2, 64, 64, 2}, 4, 0.1);
    const n2_node pick = n2g_randint(g, n2_dims(BATCH), POINTS); /* a random batch */
    const n2_node logits = n2_mlp_apply(g, &net, n2g_gather(g, n2g_read(g, points), pick));
    const n2_node loss = n2g_cross_entropy(g, logits, n2g_gather(g, n2g_read(g, labels), pick));
    const n2_optimiser adam = {.adam = {0.9, 0.999, 1e-8, 0}, .rate = 5e-3, .clip = 10};
    n2_minimise(g, &adam, "adam", &weights, loss, NULL);
    n2_plan *plan;
    N2_TRY(n2_plan_compile(g, n2_cpu_backend(), &loss, 1, &plan));
    n2ce_status status = N2CE_OK;
    for (int i = 0; i < STEPS && status == N2CE_OK; i++) {
        status = n2_plan_run(plan);
        if (i % 300 == 299)
            printf("step %4d  cross-entropy %.4f\n", i + 1, n2_plan_scalar(plan, 0));
    }
    if (status == N2CE_OK) status = n2_checkpoint_save(store, plan, "classifier.safetensors");
    if (n2_plan_scalar(plan, 0) > 0.1) status = n2_fail(ctx, N2CE_ERANGE, "It did not learn.");
    n2_plan_free(plan);
    return status;
}

int main(void) {
    n2ce_ctx *ctx;
    n2_store *store = NULL;
    n2_graph *g = NULL;
    if (n2ce_ctx_new(&ctx, NULL) != N2CE_OK) return 1;
    n2ce_status status = n2_store_new(ctx, sizeof(float), &store);
    if (status == N2CE_OK) status = (g = n2_graph_new(store)) ? train(ctx, store, g) : N2CE_ENOMEM;
    if (status != N2CE_OK) fprintf(stderr, "%s\n", n2ce_errmsg(ctx));
    n2_graph_free(g);
    n2_store_free(store);
    n2ce_ctx_free(ctx);
    return status != N2CE_OK;
}
