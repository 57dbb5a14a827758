/* Networks on a GPU (src/cuda/fused_mlp/mlp.h) beside the processor: rows that are cut into
 * tiles, layers of many widths, numbers of many sizes. What a step changes in the tensors of its
 * store must be the same. Where there is no GPU the tests say so and are skipped. */
#define _POSIX_C_SOURCE 200809L
#include "close.h"
#include "cpu/cpu.h"
#include "fast_backend.h"
#include "stores.h"

#include "model/ratio_net.h"
#include "nn/nn.h"
#include "rewrite/rewrites.h"
#include "study/bench_model.h"

static const double SLOPE = 0.2;

/* An emulated GPU takes seconds for what a real one does in a millisecond. */
static bool is_small(void) {
    return strncmp(n2_cuda_name(open_cuda_or_skip(true)), "emulated", 8) == 0;
}

/* ---- a step, made on either device --------------------------------------------- */

typedef struct learner {
    n2ce_ctx *ctx;
    n2_store *store;
    n2_graph *graph;
    n2_plan *plan; /* NULL: as it begins */
} learner;

/* Which gradients are taken: none, those of the rows, those of the weights too. */
typedef enum way { FORWARD, TO_ROWS, TO_ALL } way;

/* What is built, for so many rows, and how often it is run. */
typedef struct step {
    n2_node (*build)(n2_graph *g, const struct step *s); /* returns the loss */
    int64_t rows;
    double size; /* of their numbers, where they are noise */
    int runs;
    way back;
} step;

static learner built(const step *s, n2_node *loss) {
    learner l = {.plan = NULL};
    assert_int_equal(n2ce_ctx_new(&l.ctx, NULL), N2CE_OK);
    assert_int_equal(n2_store_new(l.ctx, sizeof(float), &l.store), N2CE_OK);
    l.graph = n2_graph_new(l.store);
    assert_non_null(l.graph);
    *loss = s->build(l.graph, s);
    return l;
}

static learner learned(const step *s, const n2_backend *backend) {
    n2_node loss;
    learner l = built(s, &loss);
    if (n2_plan_compile(l.graph, backend, &loss, 1, &l.plan) != N2CE_OK)
        fail_msg("%s", n2ce_errmsg(l.ctx));
    n2_plan_seed(l.plan, 11, 0);
    if (n2_plan_run_many(l.plan, (uint64_t)s->runs) != N2CE_OK) fail_msg("%s", n2ce_errmsg(l.ctx));
    return l;
}

static void forget(learner *l) {
    n2_plan_free(l->plan);
    n2_graph_free(l->graph);
    n2_store_free(l->store);
    n2ce_ctx_free(l->ctx);
}

/* A tensor that has what the node gives. */
static void keep(n2_graph *g, const char *kind, const char *name, n2_node x) {
    char full[128];
    snprintf(full, sizeof full, "%s.%s", kind, name);
    n2_tensor *t = n2_store_add(n2_graph_store(g), full, n2_shape_at(g, x));
    assert_non_null(t);
    n2g_assign(g, t, x);
}

/* The first parameter is the rows. */
static void keep_gradients(n2_graph *g, const step *s, const n2_parameters *p, n2_node loss) {
    const size_t n = s->back == TO_ROWS ? 1 : p->n;
    n2_node x[128], dx[128];
    assert_true(n <= 128);
    if (s->back == FORWARD || n == 0) return;
    for (size_t i = 0; i < n; i++) x[i] = n2g_read(g, p->list[i]);
    n2g_grad(g, loss, x, n, dx);
    for (size_t i = 0; i < n; i++) keep(g, "gradient", p->list[i]->name, dx[i]);
}

/* ---- closeness ------------------------------------------------------------------ */

/* By how much of its norm a tensor may be off. A factor of tf32 is off by 5e-4, and a number near
 * zero may come out on the other side of a LeakyReLU, with 0.8 of its gradient. Adam divides
 * gradients by their size: the smallest may change their sign. What is astray is off by 1. */
static double allowed(const char *name, bool strict) {
    if (strncmp(name, "result.", 7) == 0) return strict ? 1e-5 : 4e-3;
    if (strncmp(name, "gradient.", 9) == 0 || strstr(name, ".m.")) return strict ? 5e-3 : 0.12;
    return strict ? 0.1 : 0.6;
}

/* n numbers that were x and are y on the processor, z on the GPU. */
static void assert_like(const char *name, const double *x, const double *y, const double *z,
                        int64_t n, bool strict) {
    double change = 0, miss = 0, size = 0;
    for (int64_t k = 0; k < n; k++) {
        change += (y[k] - x[k]) * (y[k] - x[k]);
        miss += (z[k] - y[k]) * (z[k] - y[k]);
        size += y[k] * y[k];
    }
    const double rounding = 1e-7 * sqrt(size);
    if (!isfinite(size) || !(sqrt(miss) <= allowed(name, strict) * sqrt(change) + rounding))
        fail_msg("%s is off by %g of what it changed, %g (%s)", name, sqrt(miss / change),
                 sqrt(change), strict ? "float32" : "tf32");
}

static bool has_rows(const n2_tensor *t) {
    const bool rows = strncmp(t->name, "result.", 7) == 0 || strcmp(t->name, "gradient.rows") == 0;
    return rows && t->shape.rank == 2;
}

/* All tensors; rows sixteen by sixteen, for so many have a power of two in common. */
static void assert_alike(const learner *begin, const learner *cpu, const learner *gpu,
                         bool strict) {
    const n2_tensor *t;
    for (size_t i = 0; (t = n2_store_at(begin->store, i)) != NULL; i++) {
        double *x = values_of(begin->store, t);
        double *y = values_of(cpu->store, n2_store_find(cpu->store, t->name));
        double *z = values_of(gpu->store, n2_store_find(gpu->store, t->name));
        const int64_t n = n2_elements(t->shape), part = has_rows(t) ? 16 * t->shape.dim[1] : n;
        for (int64_t k = 0; k < n; k += part)
            assert_like(t->name, x + k, y + k, z + k, k + part < n ? part : n - k, strict);
        free(x), free(y), free(z);
    }
}

static void check(const step *s, const n2_backend *cuda, bool strict) {
    n2_node loss;
    learner begin = built(s, &loss), cpu = learned(s, n2_cpu_backend()), gpu = learned(s, cuda);
    assert_alike(&begin, &cpu, &gpu, strict);
    forget(&begin), forget(&cpu), forget(&gpu);
}

/* ---- the paper's kind of network -------------------------------------------------- */

/* Learns to tell 128 rows of noise from others. */
static n2_node noise_step(n2_graph *g, const step *s, const n2_ratio_net *net,
                          const n2_parameters *p, n2_node x, n2_node k) {
    const n2_node other = n2g_scale(g, n2g_randn(g, n2_dims(128, 20)), s->size);
    const n2_node num = n2_ratio_net_apply(g, net, other, n2g_randint(g, n2_dims(128), 3));
    const n2_node loss = n2g_n2ce_loss(g, num, n2_ratio_net_apply(g, net, x, k), 9);
    const n2_optimiser adam = {.adam = {0.9, 0.999, 1e-2, 0}, .rate = 1e-4, .clip = 100};
    n2_minimise(g, &adam, "net", p, loss, NULL);
    keep(g, "result", "loss", loss);
    return loss;
}

static n2_node wide_network(n2_graph *g, const step *s) {
    n2_parameters p = n2_parameters_new(n2_graph_store(g), 3);
    const n2_ratio_net net = n2_ratio_net_new(&p, 20, 128, 2, 3);
    const n2_node x = n2g_scale(g, n2g_randn(g, n2_dims(s->rows, 20)), s->size);
    return noise_step(g, s, &net, &p, x, n2g_row_index(g, s->rows, 1, 3));
}

/* And then learns its input, once more through the same network. */
static n2_node wide_network_and_input(n2_graph *g, const step *s) {
    n2_parameters p = n2_parameters_new(n2_graph_store(g), 3);
    n2_parameters q = n2_parameters_new(n2_graph_store(g), 4);
    const n2_ratio_net net = n2_ratio_net_new(&p, 20, 128, 2, 3);
    n2_tensor *shift = n2_parameter(&q, "shift", n2_dims(20), 1);
    const n2_node x = n2g_scale(g, n2g_randn(g, n2_dims(s->rows, 20)), s->size),
                  k = n2g_row_index(g, s->rows, 1, 3);
    const n2_node loss = noise_step(g, s, &net, &p, x, k);
    const n2_node moved = n2g_add(g, x, n2g_read(g, shift));
    const n2_node f = n2g_total(g, n2_ratio_net_apply(g, &net, moved, k));
    const n2_optimiser adam = {.adam = {0.9, 0.999, 1e-2, 0}, .rate = 1e-4, .clip = 100};
    n2_minimise(g, &adam, "shift", &q, f, NULL);
    return loss;
}

/* Rows that do not fill the last stash tile, or the last block; one block only. */
static void gradients_of_wide_networks_are_the_processors(void **state) {
    (void)state;
    const int64_t rows[] = {256, 300, 97, 128};
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        check(&(step){.build = wide_network_and_input, .rows = rows[i], .size = 1, .runs = 1},
              open_cuda_or_skip(false), false);
}

/* fp16 ends at 65504, and has fewer digits below 0.00006. */
static void powers_of_two_keep_numbers_in_range(void **state) {
    (void)state;
    const double size[] = {1e6, 1e-6};
    for (size_t i = 0; i < COUNT_OF(size); i++)
        check(&(step){.build = wide_network_and_input, .rows = 97, .size = size[i], .runs = 1},
              open_cuda_or_skip(false), false);
}

/* ---- tiles ------------------------------------------------------------------------- */

/* A backend whose tiles have at most so many rows. */
static n2_backend with_tiles(bool strict, int64_t most) {
    n2_backend cuda = *open_cuda_or_skip(strict);
    cuda.most_tile = most;
    return cuda;
}

static void assert_tiles(const step *s, const n2_backend *cuda, int64_t tile) {
    n2_node loss;
    learner l = built(s, &loss);
    n2_text text = n2_text_new(l.ctx);
    char expected[64];
    snprintf(expected, sizeof expected, " %lld rows, tiles of %lld rows", (long long)s->rows,
             (long long)tile);
    assert_int_equal(n2_plan_compile(l.graph, cuda, &loss, 1, &l.plan), N2CE_OK);
    n2_plan_print(l.plan, &text);
    if (!strstr(text.data, expected)) fail_msg("not%s:\n%s", expected, text.data);
    n2_text_free(&text);
    forget(&l);
}

/* The second run finds what the first left in the tiles' sums. */
static void check_tiles(int64_t rows, int64_t tile, bool strict) {
    const n2_backend cuda = with_tiles(strict, tile);
    const step s = {.build = wide_network, .rows = rows, .size = 1, .runs = 2};
    assert_tiles(&s, &cuda, tile);
    check(&s, &cuda, strict);
}

/* Whole tiles of rows, of whole stash tiles; a shorter last tile, and tiles that end inside a stash
 * tile; tiles whose gradients are made in slices, but for that of the last; the 128 rows in tiles,
 * too. */
static void rows_in_tiles_are_learned_from_as_a_whole(void **state) {
    (void)state;
    check_tiles(768, 192, false);
    check_tiles(500, 132, false);
    check_tiles(3 * 516 + 300, 516, false);
    check_tiles(230, 60, true);
    if (is_small()) return;
    for (int strict = 0; strict < 2; strict++) { /* the backend's own, and with places shared */
        check_tiles(3 * 32760 + 4000, 32760, strict);
        check_tiles(4 * 8448, 8448, strict);
    }
}

/* The paper's step: 128 positives in one tile, negatives and the encoder's rows in several. */
static n2_node bench_step(n2_graph *g, const step *s) {
    n2_bench_model m = {.store = n2_graph_store(g), .graph = g};
    m.ratio_parameters = n2_parameters_new(m.store, 3);
    m.vae_parameters = n2_parameters_new(m.store, 4);
    m.ratio = n2_ratio_net_new(&m.ratio_parameters, N2_BENCH_NZ, 128, is_small() ? 2 : 16,
                               N2_BENCH_STAGES);
    m.vae = n2_vae_new(&m.vae_parameters, N2_BENCH_DIM, N2_BENCH_NZ, 32);
    const n2_node loss = n2_bench_step(&m, s->rows / N2_BENCH_BATCH);
    keep(g, "result", "loss", loss);
    return loss;
}

static void the_papers_step_is_made_in_tiles(void **state) {
    (void)state;
    for (int strict = 0; strict < 2; strict++) {
        const n2_backend cuda = with_tiles(strict, 132);
        const step s = {.build = bench_step, .rows = 512, .runs = 1};
        assert_tiles(&s, &cuda, 132);
        check(&s, &cuda, strict);
    }
}

static void tiles_give_the_same_bytes_again(void **state) {
    (void)state;
    const n2_backend cuda = with_tiles(false, 132);
    const step s = {.build = bench_step, .rows = 512, .runs = is_small() ? 1 : 20};
    learner a = learned(&s, &cuda), b = learned(&s, &cuda);
    assert_same_tensors(a.store, b.store);
    forget(&a), forget(&b);
}

/* ---- layers of many widths -------------------------------------------------------- */

/* Encoder and decoder: 87, 128, 128, two heads of 20; 20, 128, 64, 32, 32, 87. */
static n2_node narrowing_network(n2_graph *g, const step *s) {
    n2_parameters p = n2_parameters_new(n2_graph_store(g), 3);
    const n2_node x = n2g_read(g, n2_parameter(&p, "rows", n2_dims(s->rows, 87), 1));
    const n2_vae vae = n2_vae_new(&p, 87, 20, 32);
    n2_node mean, logvar;
    n2_vae_encode(g, &vae, x, &mean, &logvar);
    const n2_node z = n2g_reparameterise(g, mean, logvar, n2g_randn(g, n2_dims(s->rows, 20)));
    const n2_node y = n2_vae_decode(g, &vae, z), miss = n2g_sub(g, y, x);
    const n2_node loss = n2g_add(g, n2g_scale(g, n2g_total(g, n2g_mul(g, miss, miss)), 50),
                                 n2g_gaussian_kl(g, mean, logvar));
    keep(g, "result", "mean", mean);
    keep(g, "result", "logvar", logvar);
    keep(g, "result", "decoded", y);
    keep_gradients(g, s, &p, loss);
    return loss;
}

/* Two layers that read the same rows, one of each of theirs, and the sum. */
static n2_node fork_of(n2_graph *g, const step *s, n2_parameters *p, n2_node x) {
    const n2_layer a = n2_layer_new(p, "a", 40, 48), b = n2_layer_new(p, "b", 40, 33);
    const n2_layer c = n2_layer_new(p, "c", 48, 20), d = n2_layer_new(p, "d", 33, 20);
    const n2_node ax = n2_layer_apply(g, &a, x), bx = n2_layer_apply(g, &b, x);
    const n2_node y = n2g_add(g, n2_layer_apply(g, &c, n2g_lrelu(g, ax, SLOPE)),
                              n2_layer_apply(g, &d, n2g_lrelu(g, bx, SLOPE)));
    const n2_node loss = n2g_total(g, n2g_mul(g, y, y));
    keep(g, "result", "y", y);
    keep_gradients(g, s, p, loss);
    return loss;
}

static n2_node forked_rows(n2_graph *g, const step *s) {
    n2_parameters p = n2_parameters_new(n2_graph_store(g), 3);
    return fork_of(g, s, &p, n2g_read(g, n2_parameter(&p, "rows", n2_dims(s->rows, 40), 1)));
}

static n2_node forked_layer(n2_graph *g, const step *s) {
    n2_parameters p = n2_parameters_new(n2_graph_store(g), 3);
    const n2_node x = n2g_read(g, n2_parameter(&p, "rows", n2_dims(s->rows, 20), 1));
    const n2_layer stem = n2_layer_new(&p, "stem", 20, 40);
    return fork_of(g, s, &p, n2g_lrelu(g, n2_layer_apply(g, &stem, x), SLOPE));
}

static void check_ways(n2_node (*build)(n2_graph *g, const step *s), int64_t rows) {
    for (int strict = 0; strict < 2; strict++)
        for (way back = FORWARD; back <= TO_ALL; back++)
            check(&(step){.build = build, .rows = rows, .runs = 1, .back = back},
                  open_cuda_or_skip(strict), strict);
}

/* Not few on any GPU, in blocks of 64 and of 128. An emulated one calls sixteen few, or, if it has
 * many multiprocessors, all. */
static const int64_t many_rows[] = {4010, 8400};

/* Gates have room in place of the numbers, or not, for there are too few rows. */
static void layers_of_many_widths_are_the_processors(void **state) {
    (void)state;
    const int64_t rows[] = {1, 7, 64, 65, 128, 200};
    for (size_t i = 0; i < COUNT_OF(rows); i++) check_ways(narrowing_network, rows[i]);
    for (size_t i = 0; i < COUNT_OF(many_rows) && !is_small(); i++)
        check_ways(narrowing_network, many_rows[i]);
}

static void layers_that_read_the_same_are_the_processors(void **state) {
    (void)state;
    const int64_t rows[] = {1, 65};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        check_ways(forked_rows, rows[i]);
        check_ways(forked_layer, rows[i]);
    }
}

/* Sums of columns of more than 128 x 128 rows are added up in three steps; of those that gradients
 * bring along there are few, whatever the rows are. */
static void very_many_rows_are_the_processors(void **state) {
    (void)state;
    check(&(step){.build = forked_layer, .rows = 16500, .runs = 1, .back = TO_ALL},
          open_cuda_or_skip(false), false);
}

/* ---- rows that a fused MLP begins with ---------------------------------------------- */

/* How pairs are made, and what else is read of them. */
typedef enum pairing { SUMS, DIFFERENCES, READ_SUMS, READ_LEAKY, READ_ROWS } pairing;

/* Each row with each of so many others: a residual network of what becomes of both. */
static n2_node network_of_pairs(n2_graph *g, const step *s, int64_t others, pairing how) {
    n2_parameters p = n2_parameters_new(n2_graph_store(g), 3);
    const n2_node x = n2g_read(g, n2_parameter(&p, "rows", n2_dims(s->rows, 20), 1));
    const n2_node y = n2g_read(g, n2_parameter(&p, "others", n2_dims(others, 20), 1));
    const n2_layer of_x = n2_layer_new(&p, "of_x", 20, 128),
                   of_y = n2_layer_new(&p, "of_y", 20, 128);
    const int64_t n = s->rows * others;
    const n2_node a =
        n2g_gather(g, n2_layer_apply(g, &of_x, x), n2g_row_index(g, n, others, s->rows));
    const n2_node b = n2g_gather(g, n2_layer_apply(g, &of_y, y), n2g_row_index(g, n, 1, others));
    n2_node h = how == DIFFERENCES ? n2g_sub(g, a, b) : n2g_add(g, a, b);
    if (how >= READ_SUMS)
        keep(g, "result", "read",
             how == READ_SUMS   ? h
             : how == READ_ROWS ? a
                                : n2g_lrelu(g, h, SLOPE));
    for (int i = 0; i < 3; i++) {
        const char name[] = {'b', (char)('0' + i), 0};
        const n2_layer block = n2_layer_new(&p, name, 128, 128);
        h = n2g_add(g, h, n2_layer_apply(g, &block, n2g_lrelu(g, h, SLOPE)));
    }
    const n2_layer out = n2_layer_new(&p, "out", 128, 1);
    const n2_node f = n2_layer_apply(g, &out, n2g_lrelu(g, h, SLOPE));
    const n2_node loss = n2g_total(g, n2g_mul(g, f, f));
    keep(g, "result", "f", f);
    keep_gradients(g, s, &p, loss);
    return loss;
}

static n2_node sums_of_pairs(n2_graph *g, const step *s) { return network_of_pairs(g, s, 7, SUMS); }
static n2_node differences_of_pairs(n2_graph *g, const step *s) {
    return network_of_pairs(g, s, 7, DIFFERENCES);
}
static n2_node pairs_with_sums(n2_graph *g, const step *s) {
    return network_of_pairs(g, s, 7, READ_SUMS);
}
static n2_node pairs_with_leaky(n2_graph *g, const step *s) {
    return network_of_pairs(g, s, 7, READ_LEAKY);
}
static n2_node pairs_with_rows(n2_graph *g, const step *s) {
    return network_of_pairs(g, s, 7, READ_ROWS);
}
static n2_node pairs_with_nine(n2_graph *g, const step *s) {
    return network_of_pairs(g, s, 9, SUMS);
}

/* Pairs that are few on any GPU; that do not fill stash tiles, or blocks; as many as the paper's.
 */
static void rows_made_of_tables_are_the_processors(void **state) {
    (void)state;
    const int64_t rows[] = {2, 11};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        check_ways(sums_of_pairs, rows[i]);
        check_ways(pairs_with_sums, rows[i]);
        check_ways(pairs_with_leaky, rows[i]);
        check_ways(pairs_with_rows, rows[i]);
    }
    check_ways(sums_of_pairs, 32);
    check_ways(differences_of_pairs, 2);
    check_ways(pairs_with_nine, 1);
    const step paper = {.build = sums_of_pairs, .rows = 128, .runs = 1, .back = TO_ROWS};
    check(&paper, open_cuda_or_skip(false), false);
}

static size_t launches_of(const step *s, const n2_backend *cuda) {
    learner l = learned(s, cuda);
    const size_t launches = n2_plan_measure(l.plan).launches;
    forget(&l);
    return launches;
}

/* The way back adds up the rows of as many pairs where it multiplies the sums; not of nine. */
static void sums_of_few_rows_need_no_launch(void **state) {
    (void)state;
    size_t in_fused_mlp[2], before[2];
    for (way back = FORWARD; back <= TO_ROWS; back++) {
        const step seven = {.build = sums_of_pairs, .rows = 1, .runs = 1, .back = back};
        const step nine = {.build = pairs_with_nine, .rows = 1, .runs = 1, .back = back};
        in_fused_mlp[back] = launches_of(&seven, open_cuda_or_skip(false));
        before[back] = launches_of(&nine, open_cuda_or_skip(false));
    }
    assert_int_equal(in_fused_mlp[TO_ROWS] - in_fused_mlp[FORWARD] + 1,
                     before[TO_ROWS] - before[FORWARD]);
}

/* The sum of two tables' rows is made where it is multiplied; what else is made of them is not. */
static void rows_made_of_tables_need_no_launch(void **state) {
    (void)state;
    for (way back = FORWARD; back <= TO_ROWS; back++) {
        const step in_fused_mlp = {.build = sums_of_pairs, .rows = 2, .runs = 1, .back = back};
        const step before = {.build = differences_of_pairs, .rows = 2, .runs = 1, .back = back};
        const n2_backend *cuda = open_cuda_or_skip(false);
        assert_int_equal(launches_of(&in_fused_mlp, cuda) + 1, launches_of(&before, cuda));
    }
}

/* ---- packed weights that last --------------------------------------------------------------- */

/* Two layers, which may learn, and what they make times noise, or times rows that are there. */
static n2_node layers_times(n2_graph *g, const step *s, bool noise) {
    n2_parameters p = n2_parameters_new(n2_graph_store(g), 3);
    n2_parameters q = n2_parameters_new(n2_graph_store(g), 4);
    const n2_shape shape = n2_dims(s->rows, 20);
    const n2_node x = n2g_read(g, n2_parameter(&q, "rows", shape, 1));
    const n2_layer a = n2_layer_new(&p, "a", 20, 40), b = n2_layer_new(&p, "b", 40, 20);
    const n2_node factor =
        noise ? n2g_randn(g, shape) : n2g_read(g, n2_parameter(&q, "factor", shape, 1));
    const n2_node hidden = n2g_lrelu(g, n2_layer_apply(g, &a, x), SLOPE);
    const n2_node y = n2g_mul(g, n2_layer_apply(g, &b, hidden), factor);
    const n2_node loss = n2g_total(g, n2g_mul(g, y, y));
    const n2_optimiser adam = {.adam = {0.9, 0.999, 1e-2, 0}, .rate = 1e-3, .clip = 100};
    keep(g, "result", "y", y);
    if (s->back == TO_ALL) n2_minimise(g, &adam, "layers", &p, loss, NULL);
    return loss;
}
static n2_node layers_times_noise(n2_graph *g, const step *s) { return layers_times(g, s, true); }
static n2_node layers_times_rows(n2_graph *g, const step *s) { return layers_times(g, s, false); }

/* Noise is made beside the layers, so that nothing but packed weights comes before them. */
static void packed_weights_that_last_are_alone(void **state) {
    (void)state;
    const n2_backend *cuda = open_cuda_or_skip(false);
    const step noise = {.build = layers_times_noise, .rows = 70, .runs = 1};
    const step rows = {.build = layers_times_rows, .rows = 70, .runs = 1};
    assert_int_equal(launches_of(&noise, cuda), launches_of(&rows, cuda) + 1);
}

/* Runs that follow one another, and do not pack weights again, are as those that begin anew. */
static void packed_weights_that_last_are_as_made(void **state) {
    (void)state;
    enum { RUNS = 75 }; /* graphs of many runs, of some, and of one */
    const way ways[] = {FORWARD, TO_ALL};
    for (size_t i = 0; i < COUNT_OF(ways); i++) {
        const n2_backend *cuda = open_cuda_or_skip(false);
        const step one = {.build = layers_times_noise, .rows = 70, .runs = 1, .back = ways[i]};
        const step all = {.build = layers_times_noise, .rows = 70, .runs = RUNS, .back = ways[i]};
        learner a = learned(&one, cuda), b = learned(&all, cuda);
        for (int k = 1; k < RUNS; k++) assert_int_equal(n2_plan_run(a.plan), N2CE_OK);
        assert_same_tensors(a.store, b.store);
        forget(&a), forget(&b);
    }
}

/* ---- numbers of many sizes ---------------------------------------------------------- */

static void scale_rows(n2_store *store, n2_tensor *t, double (*size)(int64_t row)) {
    const int64_t n = n2_elements(t->shape), rows = t->shape.dim[0];
    double *x = values_of(store, t);
    for (int64_t i = 0; i < n; i++) x[i] *= size(i / (n / rows));
    n2_tensor_set(store, t, x);
    free(x);
}

static void scale(n2_store *store, n2_tensor *t, double by) {
    double *x = values_of(store, t);
    for (int64_t i = 0; i < n2_elements(t->shape); i++) x[i] *= by;
    n2_tensor_set(store, t, x);
    free(x);
}

/* Of each 64 rows sixteen are large, sixteen small, sixteen both in turn. Gradients begin large
 * where rows are small, and the other way round; in the mixed rows small ones are too few bits to
 * know on which side of a LeakyReLU they are. */
static double mixed(int64_t row) { return row % 2 ? 1e5 : 1e-6; }
static double size_of_row(int64_t row) {
    return (double[]){1e5, 1e-6, mixed(row), 1}[row / 16 % 4];
}
static double size_of_gradient(int64_t row) {
    return (double[]){1e-9, 1e5, mixed(row), 1}[row / 16 % 4];
}

/* LeakyReLU and a layer with weights so many times as large as usual, and hardly a bias. */
static n2_node scaled_layer(n2_graph *g, n2_parameters *p, const char *name, int64_t width,
                            double by, n2_node x) {
    const n2_layer layer = n2_layer_new(p, name, 128, width);
    scale(p->store, layer.weight, by);
    scale(p->store, layer.bias, 1e-8 * by);
    return n2_layer_apply(g, &layer, n2g_lrelu(g, x, SLOPE));
}

/* Residual blocks that make numbers 1e4 times as large, or hardly change them; between them a layer
 * that brings them down again. */
static n2_node jumping_network(n2_graph *g, const step *s) {
    n2_parameters p = n2_parameters_new(n2_graph_store(g), 3);
    n2_tensor *rows = n2_parameter(&p, "rows", n2_dims(s->rows, 128), 1);
    n2_tensor *weights = n2_parameter(&p, "weights", n2_dims(s->rows, 1), 1);
    static const double by[] = {1e4, 1e-4, 1, 0, 1e4, 1e-4, 1};
    scale_rows(p.store, rows, size_of_row);
    scale_rows(p.store, weights, size_of_gradient);
    n2_node h = n2g_read(g, rows);
    for (size_t i = 0; i < COUNT_OF(by); i++) {
        const char name[] = {'b', (char)('0' + i), 0};
        h = by[i] > 0 ? n2g_add(g, h, scaled_layer(g, &p, name, 128, by[i], h))
                      : scaled_layer(g, &p, name, 128, 1e-8, h);
    }
    const n2_node f = scaled_layer(g, &p, "out", 1, 1, h);
    const n2_node loss = n2g_total(g, n2g_mul(g, f, n2g_read(g, weights)));
    keep(g, "result", "f", f);
    keep_gradients(g, s, &p, loss);
    return loss;
}

static void jumps_in_size_are_followed(void **state) {
    (void)state;
    for (int strict = 0; strict < 2; strict++)
        check(&(step){.build = jumping_network, .rows = 120, .runs = 1, .back = TO_ALL},
              open_cuda_or_skip(strict), strict);
}

/* With a word only the tests that it matches, * standing for anything: for tools that are slow. */
int main(int argc, char **argv) {
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_of_wide_networks_are_the_processors),
        cmocka_unit_test(powers_of_two_keep_numbers_in_range),
        cmocka_unit_test(rows_in_tiles_are_learned_from_as_a_whole),
        cmocka_unit_test(the_papers_step_is_made_in_tiles),
        cmocka_unit_test(tiles_give_the_same_bytes_again),
        cmocka_unit_test(layers_of_many_widths_are_the_processors),
        cmocka_unit_test(layers_that_read_the_same_are_the_processors),
        cmocka_unit_test(very_many_rows_are_the_processors),
        cmocka_unit_test(rows_made_of_tables_are_the_processors),
        cmocka_unit_test(rows_made_of_tables_need_no_launch),
        cmocka_unit_test(packed_weights_that_last_are_alone),
        cmocka_unit_test(packed_weights_that_last_are_as_made),
        cmocka_unit_test(sums_of_few_rows_need_no_launch),
        cmocka_unit_test(jumps_in_size_are_followed),
    };
    printf("%s\n", n2_cuda_name(open_cuda_or_skip(true)));
    return cmocka_run_group_tests(tests, NULL, NULL);
}
