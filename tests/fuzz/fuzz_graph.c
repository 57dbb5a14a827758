/* Random graphs: the fast backend, with its row programs, tiles and shared memory, must give what
 * the reference gives, node by node; and, for a quarter of them, the same bytes on 3 threads.
 *
 * libFuzzer: -max_len=80
 *
 *     clang -fsanitize=fuzzer,address,undefined ...     a fuzz target
 *     cc -DFUZZ_REPLAY ...                              a plain one: see main() of replay.h */
#include "cpu/cpu.h"
#include "engine/plan.h"
#include "nn/nn.h"
#include "ref/ref.h"
#include "require.h"
#include "rewrite/rewrites.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_NODES = 40, MOST_NUMBERS = 20000, OUTPUTS = 4, TENSORS = 3, RUNS = 2 };

typedef struct bytes {
    const uint8_t *data;
    size_t n, at;
} bytes;

static unsigned take(bytes *b, unsigned below) {
    return b->at < b->n ? b->data[b->at++] % below : 0;
}

/* What is built so far; all numbers stay of order one, so that errors do too, and of what has grown
 * large nothing larger is made. */
typedef struct garden {
    n2_graph *g;
    n2_node nodes[MOST_NODES];
    size_t n;
} garden;

static void keep(garden *k, n2_node x) {
    if (!x.id || k->n == MOST_NODES) return;
    const n2_shape s = n2_shape_at(k->g, x);
    if (s.rank == 2 && n2_elements(s) <= MOST_NUMBERS) k->nodes[k->n++] = x;
}

static n2_node pick(garden *k, bytes *b) { return k->nodes[take(b, (unsigned)k->n)]; }

static n2_node squash(n2_graph *g, n2_node x) { return n2g_tanh(g, x); }

static n2_node random_unary(n2_graph *g, n2_node x, bytes *b) {
    switch (take(b, 9)) {
    case 0:
        return n2g_tanh(g, x);
    case 1:
        return n2g_sigmoid(g, x);
    case 2:
        return n2g_lrelu(g, x, 0.2);
    case 3:
        return n2g_affine(g, x, -0.7, 0.3);
    case 4:
        return n2g_exp(g, n2g_tanh(g, x));
    case 5:
        return n2g_softplus(g, x);
    case 6:
        return n2g_neg(g, x);
    case 7:
        return n2g_detach(g, x);
    default:
        return n2g_sqrt(g, n2g_affine(g, n2g_mul(g, x, x), 1, 0.5));
    }
}

static bool fit(n2_shape a, n2_shape b) {
    return (a.dim[0] == b.dim[0] || a.dim[0] == 1 || b.dim[0] == 1) &&
           (a.dim[1] == b.dim[1] || a.dim[1] == 1 || b.dim[1] == 1);
}

static n2_node random_binary(n2_graph *g, n2_node x, n2_node y, bytes *b) {
    const n2_shape sx = n2_shape_at(g, x), sy = n2_shape_at(g, y);
    switch (take(b, 7)) {
    case 0:
        return fit(sx, sy) ? n2g_scale(g, n2g_add(g, x, y), 0.5) : N2_NONE;
    case 1:
        return fit(sx, sy) ? n2g_mul(g, x, squash(g, y)) : N2_NONE;
    case 2:
        return fit(sx, sy) ? n2g_sub(g, x, n2g_scale(g, y, 0.3)) : N2_NONE;
    case 3:
        return sx.dim[0] == sy.dim[0] ? n2g_concat(g, x, y, 1) : N2_NONE;
    case 4:
        return sx.dim[1] == sy.dim[1] ? n2g_concat(g, x, y, 0) : N2_NONE;
    case 5:
        return sx.dim[1] == sy.dim[1] ? squash(g, n2g_matmul(g, x, y, false, true)) : N2_NONE;
    default:
        return sx.dim[0] == sy.dim[0]
                   ? squash(g, n2g_scale(g, n2g_matmul(g, x, y, true, false), 0.05))
                   : N2_NONE;
    }
}

static n2_node random_shape_op(n2_graph *g, n2_node x, bytes *b) {
    const n2_shape s = n2_shape_at(g, x);
    switch (take(b, 8)) {
    case 0:
        return n2g_scale(g, n2g_sum(g, x, n2_axis(0)), 1 / (double)s.dim[0]);
    case 1:
        return n2g_scale(g, n2g_sum(g, x, n2_axis(1)), 1 / (double)s.dim[1]);
    case 2:
        return n2g_transpose(g, x, 0, 1);
    case 3:
        return n2g_slice(g, x, 1, s.dim[1] / 3, (s.dim[1] + 1) / 2);
    case 4:
        return n2g_slice(g, x, 0, s.dim[0] / 4, (s.dim[0] + 1) / 2);
    case 5:
        return n2g_reshape(g, x, n2_dims(s.dim[1], s.dim[0]));
    case 6:
        return s.dim[0] * 3 <= 400 ? n2g_tile_rows(g, x, 3) : N2_NONE;
    default:
        return n2g_softmax(g, x, 1);
    }
}

static void grow_garden(garden *k, bytes *b) {
    static const int64_t rows[] = {1, 5, 16, 33, 70, 130}, columns[] = {1, 3, 16, 20};
    keep(k, n2g_randn(k->g, n2_dims(rows[take(b, 6)], columns[take(b, 4)])));
    for (int i = 0; i < 30 && b->at < b->n; i++) {
        const n2_node x = pick(k, b);
        switch (take(b, 4)) {
        case 0:
            keep(k, random_unary(k->g, x, b));
            break;
        case 1:
            keep(k, random_binary(k->g, x, pick(k, b), b));
            break;
        case 2:
            keep(k, random_shape_op(k->g, x, b));
            break;
        default: {
            const n2_shape s = n2_shape_at(k->g, x);
            const n2_node index = n2g_randint(k->g, n2_dims(rows[take(b, 6)]), s.dim[0]);
            keep(k, n2g_gather(k->g, x, index));
        }
        }
    }
}

/* The same graph for the same bytes, on any backend. */
typedef struct world {
    n2ce_ctx *ctx;
    n2_store *store;
    n2_graph *g;
    n2_plan *plan;
    int64_t size[OUTPUTS];
} world;

static n2_node total_loss(garden *k, bytes *b) {
    n2_node loss = n2g_constant(k->g, 0);
    for (int i = 0; i < 3; i++) {
        const n2_node x = pick(k, b);
        const double n = (double)n2_elements(n2_shape_at(k->g, x));
        loss = n2g_add(k->g, loss, n2g_scale(k->g, n2g_total(k->g, n2g_tanh(k->g, x)), 1 / n));
    }
    return loss;
}

static void build(world *w, const n2_backend *backend, bytes b) {
    static const int64_t shapes[TENSORS][2] = {{20, 16}, {1, 20}, {130, 3}};
    n2_parameters p = n2_parameters_new(w->store, 3);
    garden k = {.g = w->g};
    n2_tensor *tensors[TENSORS];
    n2_node x[TENSORS], dx[TENSORS];
    for (int i = 0; i < TENSORS; i++) {
        const char name[] = {'t', (char)('0' + i), '\0'};
        tensors[i] = n2_parameter(&p, name, n2_dims(shapes[i][0], shapes[i][1]), 1);
        keep(&k, x[i] = n2g_read(w->g, tensors[i]));
    }
    grow_garden(&k, &b);
    const n2_node loss = total_loss(&k, &b);
    n2g_grad(w->g, loss, x, TENSORS, dx);
    const n2_node outputs[OUTPUTS] = {loss, k.nodes[k.n - 1], dx[0], dx[2]};
    for (int i = 0; i < TENSORS; i++)
        n2g_assign(w->g, tensors[i], n2g_sub(w->g, x[i], n2g_scale(w->g, dx[i], 0.1)));
    for (int i = 0; i < OUTPUTS; i++) w->size[i] = n2_elements(n2_shape_at(w->g, outputs[i]));
    const n2ce_status status = n2_plan_compile(w->g, backend, outputs, OUTPUTS, &w->plan);
    w->plan = status == N2CE_OK ? w->plan : NULL; /* an output may be a tensor that is updated */
    REQUIRE(status == N2CE_OK || status == N2CE_EINVAL);
}

/* For all inputs: threads take longer to start than to run a small graph. */
static n2ce_ctx *context_of(int threads) {
    static n2ce_ctx *all[4];
    n2ce_ctx_options options = N2CE_CTX_OPTIONS_INIT;
    options.threads = threads;
    if (!all[threads]) REQUIRE(n2ce_ctx_new(&all[threads], &options) == N2CE_OK);
    return all[threads];
}

static world open_world(const n2_backend *backend, int threads, bytes b) {
    world w = {.ctx = context_of(threads)};
    REQUIRE(n2_store_new(w.ctx, backend->bytes, &w.store) == N2CE_OK);
    w.g = n2_graph_new(w.store);
    build(&w, backend, b);
    for (int i = 0; w.plan && i < RUNS; i++) REQUIRE(n2_plan_run(w.plan) == N2CE_OK);
    return w;
}

static void close_world(world *w) {
    n2_plan_free(w->plan);
    n2_graph_free(w->g);
    n2_store_free(w->store);
}

/* Output k of both worlds, compared with a tolerance of the outputs' own size. */
static void compare(const world *a, const world *b, size_t k, double tolerance) {
    double *x = malloc(((size_t)a->size[k] + 1) * sizeof *x);
    double *y = malloc(((size_t)a->size[k] + 1) * sizeof *y);
    n2_plan_get(a->plan, k, x);
    n2_plan_get(b->plan, k, y);
    double top = 1e-3;
    for (int64_t i = 0; i < a->size[k]; i++) top = fmax(top, fabs(x[i]));
    for (int64_t i = 0; i < a->size[k]; i++) {
        REQUIRE(isfinite(x[i]) && isfinite(y[i]));
        REQUIRE(fabs(x[i] - y[i]) <= tolerance * top);
    }
    free(x);
    free(y);
}

static void compare_threads(const world *one, bytes b) {
    world three = open_world(n2_cpu_backend(), 3, b);
    REQUIRE(!one->plan == !three.plan);
    for (size_t k = 0; one->plan && k < OUTPUTS; k++) compare(one, &three, k, 0);
    close_world(&three);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const bytes b = {data, size, 0};
    world ref = open_world(n2_ref_backend(), 1, b), one = open_world(n2_cpu_backend(), 1, b);
    REQUIRE(!ref.plan == !one.plan);
    for (size_t k = 0; ref.plan && k < OUTPUTS; k++) compare(&ref, &one, k, 2e-3);
    if (size > 0 && data[size - 1] % 4 == 0) compare_threads(&one, b);
    close_world(&ref);
    close_world(&one);
    return 0;
}

#ifdef FUZZ_REPLAY
#define REPLAY_INPUTS 300 /* each builds, compiles and runs three plans */
#include "replay.h"

static size_t random_input(uint32_t *state, uint8_t *buffer, size_t room) {
    for (size_t i = 0; i < room; i++) buffer[i] = (uint8_t)next_random(state);
    return room;
}
#endif
