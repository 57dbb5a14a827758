/* A network of pictures: learns to tell rings, squares and crosses apart, drawn anywhere in 16 x 16
 * pixels of noise, and is asked about pictures that it has not seen.
 *     cc pictures.c $(pkg-config --cflags --libs n2ce) -lm -o pictures && ./pictures [cpu|cuda] */
#include <math.h>
#include <n2ce_engine.h>
#include <stdio.h>
#include <stdlib.h>

enum { SIDE = 16, PIXELS = SIDE * SIDE, SHAPES = 3, SEEN = 1200, UNSEEN = 300, BATCH = 60 };

static double uniform(void) { return rand() / (double)RAND_MAX; }

/* One picture: shape 0 is a ring, 1 a square, 2 a cross, of radius 3 to 5. */
static void draw(double *pixels, int shape) {
    const double radius = 3 + 2 * uniform();
    const double cx = radius + (SIDE - 1 - 2 * radius) * uniform();
    const double cy = radius + (SIDE - 1 - 2 * radius) * uniform();
    for (int i = 0; i < PIXELS; i++) {
        const double x = fabs(i % SIDE - cx), y = fabs(i / SIDE - cy), far = fmax(x, y);
        const double from_line[SHAPES] = {fabs(hypot(x, y) - radius), fabs(far - radius),
                                          far < radius ? fmin(x, y) : SIDE};
        pixels[i] = (from_line[shape] < 0.7) + 0.6 * (uniform() - 0.5);
    }
}

typedef struct data {
    n2ce_tensor *pictures, *shapes;
} data;

static data make_data(n2ce_store *store, const char *name, int n) {
    static double pixels[SEEN * PIXELS], shapes[SEEN];
    char full[2][32];
    snprintf(full[0], sizeof full[0], "%s.pictures", name);
    snprintf(full[1], sizeof full[1], "%s.shapes", name);
    const data d = {n2ce_store_add(store, full[0], n2ce_dims(n, SIDE, SIDE, 1)),
                    n2ce_store_add(store, full[1], n2ce_dims(n))};
    for (int i = 0; i < n; i++) draw(pixels + i * PIXELS, (int)(shapes[i] = i % SHAPES));
    n2ce_tensor_set(store, d.pictures, pixels);
    n2ce_tensor_set(store, d.shapes, shapes);
    return d;
}

typedef struct network {
    n2ce_conv_layer *conv[3];
    n2ce_norm_layer *norm[3];
    n2ce_layer *out;
} network;

static network network_new(n2ce_parameters *p) {
    static const int64_t width[] = {1, 8, 16, 32};
    network net;
    for (int i = 0; i < 3; i++) {
        char name[16];
        snprintf(name, sizeof name, "conv%d", i);
        net.conv[i] = n2ce_conv_layer_new(p, name, width[i], width[i + 1], 3, 1, 1);
        snprintf(name, sizeof name, "norm%d", i);
        net.norm[i] = n2ce_norm_layer_new(p, name, width[i + 1], 4, 1e-5);
    }
    net.out = n2ce_layer_new(p, "out", 32, SHAPES);
    return net;
}

/* Logits of pictures: three times convolution, norm, SiLU, half the size; then the mean of what is
 * left, and a linear layer. */
static n2ce_node logits_of(n2ce_graph *g, const network *net, n2ce_node x, int n) {
    for (int i = 0; i < 3; i++) {
        x = n2ce_conv_layer_apply(g, net->conv[i], x);
        x = n2ce_norm_layer_apply(g, net->norm[i], x, N2CE_ACTIVATION_SILU);
        x = n2ce_avg_pool2(g, x);
    }
    x = n2ce_mean(g, x, 1 << 1 | 1 << 2);
    return n2ce_layer_apply(g, net->out, n2ce_reshape(g, x, n2ce_dims(n, 32)));
}

static n2ce_node build_step(n2ce_graph *g, const network *net, n2ce_parameters *p,
                            const data *seen) {
    const n2ce_node pick = n2ce_integers(g, n2ce_dims(BATCH), SEEN);
    const n2ce_node x = n2ce_gather(g, n2ce_read(g, seen->pictures), pick);
    const n2ce_node shapes = n2ce_gather(g, n2ce_read(g, seen->shapes), pick);
    const n2ce_node loss = n2ce_cross_entropy(g, logits_of(g, net, x, BATCH), shapes);
    n2ce_adam adam = N2CE_ADAM_INIT;
    adam.rate = 3e-3;
    n2ce_minimise(g, &adam, "adam", p, loss, NULL);
    return loss;
}

/* The share of unseen pictures whose largest logit is that of their shape. */
static double share_right(const n2ce_plan *answers) {
    static double logits[UNSEEN * SHAPES];
    int right = 0;
    n2ce_plan_get(answers, 0, logits);
    for (int i = 0; i < UNSEEN; i++) {
        const double *l = logits + i * SHAPES;
        const int best = l[1] > l[0] ? (l[2] > l[1] ? 2 : 1) : (l[2] > l[0] ? 2 : 0);
        right += best == i % SHAPES;
    }
    return (double)right / UNSEEN;
}

static n2ce_status learn(n2ce_plan *steps, n2ce_plan *answers, double *right) {
    for (int done = 100; done <= 300; done += 100) {
        n2ce_status status = n2ce_plan_run_many(steps, 100);
        if (status == N2CE_OK) status = n2ce_plan_run(answers);
        if (status != N2CE_OK) return status;
        *right = share_right(answers);
        printf("step %3d  cross-entropy %.4f  right %.1f %%\n", done, n2ce_plan_scalar(steps, 0),
               100 * *right);
    }
    return N2CE_OK;
}

int main(int argc, char **argv) {
    const char *device = argc > 1 ? argv[1] : "cpu";
    n2ce_ctx *ctx = NULL;
    n2ce_store *store = NULL;
    n2ce_graph *step = NULL, *answer = NULL;
    n2ce_plan *steps = NULL, *answers = NULL;
    double right = 0;
    if (n2ce_ctx_new(&ctx, NULL) != N2CE_OK) return 1;
    n2ce_status status = n2ce_store_new(ctx, &store);
    if (status == N2CE_OK) status = n2ce_graph_new(store, &step);
    if (status == N2CE_OK) status = n2ce_graph_new(store, &answer);
    if (status == N2CE_OK) {
        const data seen = make_data(store, "seen", SEEN), unseen = make_data(store, "new", UNSEEN);
        n2ce_parameters *p = n2ce_parameters_new(store, 1);
        const network net = network_new(p);
        const n2ce_node loss = build_step(step, &net, p, &seen);
        const n2ce_node x = n2ce_read(answer, unseen.pictures);
        const n2ce_node logits = logits_of(answer, &net, x, UNSEEN);
        status = n2ce_plan_compile(step, device, &loss, 1, &steps);
        if (status == N2CE_OK) status = n2ce_plan_compile(answer, device, &logits, 1, &answers);
    }
    if (status == N2CE_OK) status = learn(steps, answers, &right);
    if (status != N2CE_OK) fprintf(stderr, "pictures: %s\n", n2ce_errmsg(ctx));
    n2ce_plan_free(steps);
    n2ce_plan_free(answers);
    n2ce_graph_free(step);
    n2ce_graph_free(answer);
    n2ce_store_free(store);
    n2ce_ctx_free(ctx);
    return right > 0.95 ? 0 : 1;
}
