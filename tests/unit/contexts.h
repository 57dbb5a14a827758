/* Contexts for tests. */
#ifndef TEST_CONTEXTS_H
#define TEST_CONTEXTS_H

#include "close.h"

#include "base/ctx.h"

static inline n2ce_ctx *new_ctx(int threads) {
    n2ce_ctx_options options = N2CE_CTX_OPTIONS_INIT;
    options.threads = threads;
    n2ce_ctx *ctx = NULL;
    assert_int_equal(n2ce_ctx_new(&ctx, &options), N2CE_OK);
    return ctx;
}

#endif
