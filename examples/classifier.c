/* The engine's tutorial: build, train and save a classifier of two interleaved spirals.
 * One training iteration is one graph, compiled once and replayed (n2ce_engine.h).
 *     cc classifier.c $(pkg-config --cflags --libs n2ce) -lm -o classifier && ./classifier */
#include <math.h>
#include <n2ce_engine.h>
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

/* One training step: a random batch, the network, its loss and the update of its weights. */
static n2ce_node build_step(n2ce_store *store, n2ce_graph *g) {
    static double x[2 * POINTS], label[POINTS];
    make_data(x, label);
    n2ce_tensor *points = n2ce_store_add(store, "data.x", n2ce_dims(POINTS, 2));
    n2ce_tensor *labels = n2ce_store_add(store, "data.label", n2ce_dims(POINTS));
    n2ce_tensor_set(store, points, x);
    n2ce_tensor_set(store, labels, label);
    n2ce_parameters *weights = n2ce_parameters_new(store, 1);
    n2ce_mlp *net = n2ce_mlp_new(weights, "net", (int64_t[]){2, 64, 64, 2}, 4, 0.1);
    n2ce_node pick = n2ce_integers(g, n2ce_dims(BATCH), POINTS);
    n2ce_node logits = n2ce_mlp_apply(g, net, n2ce_gather(g, n2ce_read(g, points), pick));
    n2ce_node answers = n2ce_gather(g, n2ce_read(g, labels), pick);
    n2ce_node loss = n2ce_cross_entropy(g, logits, answers);
    n2ce_adam adam = N2CE_ADAM_INIT;
    adam.rate = 5e-3;
    adam.clip = 10;
    n2ce_minimise(g, &adam, "adam", weights, loss, NULL);
    return loss;
}

static n2ce_status train(n2ce_plan *plan) {
    for (int done = 300; done <= STEPS; done += 300) {
        const n2ce_status status = n2ce_plan_run_many(plan, 300);
        if (status != N2CE_OK) return status;
        printf("step %4d  cross-entropy %.4f\n", done, n2ce_plan_scalar(plan, 0));
    }
    return n2ce_checkpoint_save(plan, "classifier.safetensors");
}

int main(int argc, char **argv) {
    n2ce_ctx *ctx = NULL;
    n2ce_store *store = NULL;
    n2ce_graph *g = NULL;
    n2ce_plan *plan = NULL;
    if (n2ce_ctx_new(&ctx, NULL) != N2CE_OK) return 1;
    n2ce_status status = n2ce_store_new(ctx, &store);
    if (status == N2CE_OK) status = n2ce_graph_new(store, &g);
    if (status == N2CE_OK) {
        const n2ce_node loss = build_step(store, g);
        status = n2ce_plan_compile(g, argc > 1 ? argv[1] : "cpu", &loss, 1, &plan);
    }
    if (status == N2CE_OK) status = train(plan);
    if (status != N2CE_OK) fprintf(stderr, "classifier: %s\n", n2ce_errmsg(ctx));
    const bool learnt = status == N2CE_OK && n2ce_plan_scalar(plan, 0) < 0.1;
    n2ce_plan_free(plan);
    n2ce_graph_free(g);
    n2ce_store_free(store);
    n2ce_ctx_free(ctx);
    return learnt ? 0 : 1;
}
