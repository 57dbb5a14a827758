/* A context that starts nothing and asks nothing of the system: one for every input, in
 * microseconds. */
#ifndef ONE_THREAD_H
#define ONE_THREAD_H

#include "n2ce.h"
#include "require.h"

static n2ce_ctx *one_thread(void) {
    n2ce_ctx_options options = N2CE_CTX_OPTIONS_INIT;
    n2ce_ctx *ctx;
    options.threads = 1;
    REQUIRE(n2ce_ctx_new(&ctx, &options) == N2CE_OK);
    return ctx;
}

#endif
