/* A graph of n2ce_engine.h with its store and context, for tests of what is public. */
#ifndef TEST_ENGINE_BENCH_H
#define TEST_ENGINE_BENCH_H

#include "close.h"

#include "n2ce_engine.h"

typedef struct bench {
    n2ce_ctx *ctx;
    n2ce_store *store;
    n2ce_graph *g;
    n2ce_plan *plan;
} bench;

static inline bench open_bench(int threads) {
    bench b = {0};
    n2ce_ctx_options options = N2CE_CTX_OPTIONS_INIT;
    options.threads = threads;
    assert_int_equal(n2ce_ctx_new(&b.ctx, &options), N2CE_OK);
    assert_int_equal(n2ce_store_new(b.ctx, &b.store), N2CE_OK);
    assert_int_equal(n2ce_graph_new(b.store, &b.g), N2CE_OK);
    return b;
}

static inline void close_bench(bench *b) {
    n2ce_plan_free(b->plan);
    n2ce_graph_free(b->g);
    n2ce_store_free(b->store);
    n2ce_ctx_free(b->ctx);
}

static inline void compile(bench *b, const n2ce_node *outputs, size_t n) {
    if (n2ce_plan_compile(b->g, "cpu", outputs, n, &b->plan) != N2CE_OK)
        fail_msg("%s", n2ce_errmsg(b->ctx));
}

static inline void run(bench *b, uint64_t runs) {
    if (n2ce_plan_run_many(b->plan, runs) != N2CE_OK) fail_msg("%s", n2ce_errmsg(b->ctx));
}

#endif
