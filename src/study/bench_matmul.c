/* "bench matmul": how fast matrix products are, on our kernels and on the vendor's library. */
#include "bench_time.h"

#include "base/random.h"
#include "cuda/cuda.h"
#include "engine/plan.h"
#include "rewrite/rewrites.h"
#include "task/device_options.h"
#include "task/task.h"
#include "task/vocabulary.h"

#include <math.h>

static const n2ce_option options[] = {
    {"largest", 0, N2CE_OPTION_COUNT, "0", 0, 65536, NULL, "N",
     "leave out products with a longer side; 0: 8192 on a GPU, 1024 on a processor"},
    {"seconds", 0, N2CE_OPTION_REAL, "0.1", 0.001, 1e3, NULL, "S",
     "time to measure for, each product"},
    N2_SEED_OPTION,
    {"device", 0, N2CE_OPTION_TEXT, "cpu", 0, 0, NULL, "DEVICE",
     "where to compute: cpu, cuda, cuda:N for GPU N"},
    N2_PRECISION_OPTION,
    {0},
};

/* out [m x n] from factors with an inner axis of k; ta: the first lies transposed, as for a
 * weight's gradient, tb: the second, as weights do. */
typedef struct product {
    int64_t m, n, k;
    bool ta, tb;
} product;

static const product products[] = {
    {1024, 1024, 1024, false, false},
    {2048, 2048, 2048, false, false},
    {4096, 4096, 4096, false, false},
    {8192, 8192, 8192, false, false},
    {64, 512, 128, false, true},
    {64, 512, 512, false, true},
    {64, 1024, 1024, false, true},
    {256, 256, 256, false, true},
    {256, 512, 512, false, true},
    {256, 1024, 1024, false, true},
    {1024, 512, 128, false, true},
    {1024, 256, 256, false, true},
    {1024, 512, 512, false, true},
    {1024, 1024, 1024, false, true},
    {8192, 512, 128, false, true},
    {8192, 128, 512, false, true},
    {8192, 256, 256, false, true},
    {8192, 512, 512, false, true},
    {8192, 1024, 1024, false, true},
    {256, 256, 8192, true, false},
    {512, 512, 8192, true, false},
    {1024, 1024, 8192, true, false},
    /* of encoders and decoders of pictures, where kernels cover the picture */
    {128, 1024, 8192, false, false},
    {128, 8192, 1024, false, true},
    {8192, 1024, 128, true, false},
    {128, 8192, 100, false, true},
    {8192, 100, 128, true, false},
    {128, 100, 8192, false, false},
};

static double flops_of(const product *p) { return 2 * (double)p->m * (double)p->n * (double)p->k; }

static int64_t longest_side(const product *p) {
    const int64_t longer = p->m > p->n ? p->m : p->n;
    return longer > p->k ? longer : p->k;
}

/* A measurement; seconds 0: not made. */
typedef struct measured {
    double seconds, error;
} measured;

/* A product that is being measured. */
typedef struct bench {
    n2ce_ctx *ctx;
    const n2ce_options *o;
    const n2_backend *backend;
    product p;
    n2_store *store;
    n2_tensor *a, *b;
} bench;

static n2_tensor *add_matrix(const bench *b, const char *name, int64_t rows, int64_t columns,
                             uint32_t stream) {
    n2_tensor *t = n2_store_add(b->store, name, n2_dims(rows, columns));
    const n2_stream random = {n2_options_count(b->o, "seed"), stream, 0};
    if (t) n2_fill_normal(random, 0, (size_t)(rows * columns), t->data);
    return t;
}

static n2ce_status add_factors(bench *b) {
    const product *p = &b->p;
    N2_TRY(n2_store_new(b->ctx, sizeof(float), &b->store));
    b->a = add_matrix(b, "a", p->ta ? p->k : p->m, p->ta ? p->m : p->k, 1);
    b->b = add_matrix(b, "b", p->tb ? p->n : p->k, p->tb ? p->k : p->n, 2);
    return b->a && b->b ? N2CE_OK : N2CE_ENOMEM;
}

/* ---- errors ----------------------------------------------------------------- */

/* Entry (i, j) of the product, in double precision. */
static double entry_of(const bench *b, int64_t i, int64_t j) {
    const product *p = &b->p;
    const float *x = b->a->data, *y = b->b->data;
    double sum = 0;
    for (int64_t l = 0; l < p->k; l++)
        sum += (double)x[p->ta ? l * p->m + i : i * p->k + l] *
               (double)y[p->tb ? j * p->k + l : l * p->n + j];
    return sum;
}

/* The largest difference of some entries, of their root mean square. */
static double error_of(const bench *b, const double *out) {
    enum { SAMPLES = 64 };
    const product *p = &b->p;
    const n2_stream random = {n2_options_count(b->o, "seed"), 3, 0};
    double worst = 0, squares = 0;
    for (uint64_t s = 0; s < SAMPLES; s++) {
        /* the corners are among them */
        const bool last_row = s & 1, last_column = s & 2, corner = s < 4;
        const int64_t i = corner ? (last_row ? p->m - 1 : 0)
                                 : (int64_t)n2_random_below(random, 2 * s, (size_t)p->m);
        const int64_t j = corner ? (last_column ? p->n - 1 : 0)
                                 : (int64_t)n2_random_below(random, 2 * s + 1, (size_t)p->n);
        const double exact = entry_of(b, i, j), difference = fabs(out[i * p->n + j] - exact);
        if (!(difference <= worst)) worst = difference; /* NaN is worse than any */
        squares += exact * exact;
    }
    return worst / sqrt(squares / SAMPLES);
}

static n2ce_status find_error(const bench *b, const n2_plan *plan, double *error) {
    double *out = n2_alloc(b->ctx, (size_t)(b->p.m * b->p.n), sizeof *out);
    if (!out) return N2CE_ENOMEM;
    n2_plan_get(plan, 0, out);
    *error = error_of(b, out);
    n2_free(b->ctx, out);
    return N2CE_OK;
}

/* ---- time ------------------------------------------------------------------- */

static n2ce_status measure_plan(bench *b, n2_graph *g, measured *out) {
    const n2_node y = n2g_matmul(g, n2g_read(g, b->a), n2g_read(g, b->b), b->p.ta, b->p.tb);
    n2_plan *plan = NULL;
    N2_TRY(n2_plan_compile(g, b->backend, &y, 1, &plan));
    n2ce_status status =
        n2_bench_time(b->ctx, plan, n2ce_options_number(b->o, "seconds"), &out->seconds);
    if (status == N2CE_OK) status = find_error(b, plan, &out->error);
    n2_plan_free(plan);
    return status;
}

static n2ce_status measure(bench *b, measured *out) {
    n2_graph *g = n2_graph_new(b->store);
    if (!g) return N2CE_ENOMEM;
    const n2ce_status status = measure_plan(b, g, out);
    n2_graph_free(g);
    return status;
}

/* Ours, the library's, and what is taken without being told. */
typedef struct comparison {
    measured ours, library, taken;
    bool takes_library;
} comparison;

/* On a processor there are only ours. */
static n2ce_status compare(bench *b, bool has_library, comparison *c) {
    if (!b->backend->device) return measure(b, &c->ours);
    const n2_library_use before = n2_cuda_use_library(b->backend, N2_LIBRARY_OFF);
    n2ce_status status = measure(b, &c->ours);
    n2_cuda_use_library(b->backend, N2_LIBRARY_ALWAYS);
    if (status == N2CE_OK && has_library) status = measure(b, &c->library);
    n2_cuda_use_library(b->backend, N2_LIBRARY_AUTO);
    const size_t calls = n2_cuda_library_calls(b->backend);
    if (status == N2CE_OK) status = measure(b, &c->taken);
    c->takes_library = n2_cuda_library_calls(b->backend) > calls;
    n2_cuda_use_library(b->backend, before);
    return status;
}

/* ---- the answer ------------------------------------------------------------- */

static void show_measured(n2_writer *w, const char *name, const measured *m, const product *p) {
    if (m->seconds <= 0) {
        n2_text_add(&w->text, " %33s", "-");
        n2_text_add(&w->json, ", \"%s\": null", name);
        return;
    }
    const double ms = 1e3 * m->seconds, tflops = flops_of(p) / m->seconds * 1e-12;
    n2_text_add(&w->text, " %9.4f %8.3f TF/s %8.1e", ms, tflops, m->error);
    n2_text_add(&w->json, ", \"%s\": {\"ms\": %.6g, \"tflops\": %.6g, \"error\": ", name, ms,
                tflops);
    n2_text_add_number(&w->json, m->error);
    n2_text_add(&w->json, "}");
    n2_text_add(&w->brief, "%.6g\n", ms);
}

static void show(n2_writer *w, const product *p, const comparison *c, bool first) {
    n2_text_add(&w->text, "%5lld %5lld %5lld %s%s", (long long)p->m, (long long)p->n,
                (long long)p->k, p->ta ? "t" : "n", p->tb ? "t" : "n");
    n2_text_add(&w->json, "%s{\"m\": %lld, \"n\": %lld, \"k\": %lld, \"ta\": %s, \"tb\": %s",
                first ? "" : ",\n  ", (long long)p->m, (long long)p->n, (long long)p->k,
                p->ta ? "true" : "false", p->tb ? "true" : "false");
    show_measured(w, "ours", &c->ours, p);
    show_measured(w, "library", &c->library, p);
    show_measured(w, "taken", &c->taken, p);
    n2_text_add(&w->text, " %s\n", c->takes_library ? "library" : "ours");
    n2_text_add(&w->json, ", \"takes\": \"%s\"}", c->takes_library ? "library" : "ours");
}

static n2ce_status bench_one(bench *b, bool has_library, n2_writer *w, bool first) {
    comparison c = {.takes_library = false};
    n2ce_status status = add_factors(b);
    if (status == N2CE_OK) status = compare(b, has_library, &c);
    n2_store_free(b->store);
    if (status == N2CE_OK) show(w, &b->p, &c, first);
    return status;
}

static n2ce_status bench_all(n2ce_ctx *ctx, const n2ce_options *o, const n2_backend *backend,
                             n2_writer *w) {
    const char *about = "no library: a processor's products are ours";
    const bool has_library = backend->device && n2_cuda_has_library(backend, N2_OP_matmul, &about);
    const uint64_t asked = n2_options_count(o, "largest");
    const int64_t largest = asked ? (int64_t)asked : backend->device ? 8192 : 1024;
    const size_t all = sizeof products / sizeof products[0];
    n2_text_add(&w->text, "%s; %s\n", backend->name, about);
    n2_text_add(&w->text, "    m     n     k    %33s %33s %33s\n", "ours: ms, speed, error",
                "library", "taken");
    n2_text_add(&w->json, "{\"device\": \"%s\", \"library\": \"%s\", \"products\": [",
                backend->name, about);
    bool first = true;
    for (size_t i = 0; i < all; i++) {
        if (longest_side(&products[i]) > largest) continue;
        bench b = {.ctx = ctx, .o = o, .backend = backend, .p = products[i]};
        N2_TRY(bench_one(&b, has_library, w, first));
        n2_progress(ctx, (double)(i + 1), (double)all);
        first = false;
    }
    n2_text_add(&w->json, "]}\n");
    return N2CE_OK;
}

static n2ce_status run(n2ce_ctx *ctx, const n2ce_options *o, n2ce_answer *answer) {
    n2_device_choice choice;
    N2_TRY(n2_choice_of_options(ctx, o, &choice));
    n2_writer w = n2_writer_new(ctx);
    const n2ce_status status = bench_all(ctx, o, n2_choice_backend(&choice), &w);
    if (status == N2CE_OK) return n2_writer_take(&w, answer);
    n2_writer_free(&w);
    return status;
}

const n2ce_task n2_bench_matmul_task = {
    .name = "bench matmul",
    .summary = "time matrix products: our kernels, and a library's where there is one",
    .description =
        "Square products, products of a layer's rows and weights, and weights' gradients. On a\n"
        "GPU each is made by our kernel, by cuBLASLt, and by the one that is taken if nobody\n"
        "says which. The error is the largest of 64 entries, against double precision, of\n"
        "their root mean square.\n",
    .examples = "n2ce bench matmul --device cuda --precision float32 --json\n",
    .options = options,
    .run = run,
};
