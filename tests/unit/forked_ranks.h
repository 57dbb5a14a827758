/* Ranks in processes of their own. */
#ifndef TEST_FORKED_RANKS_H
#define TEST_FORKED_RANKS_H

#include "comm/comm.h"

#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

/* What a rank does; true: as it should be. */
typedef bool rank_fn(n2ce_ctx *ctx);

/* In a process of its own, since ranks are forked: its exit code says whether all ranks agreed. */
static inline int run_ranks(int ranks, rank_fn *body) {
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        n2ce_ctx *ctx, *outer;
        n2ce_world *world;
        if (n2ce_ctx_new(&outer, NULL) != N2CE_OK) _exit(50);
        if (n2ce_world_join(outer, ranks, &world) != N2CE_OK) _exit(51);
        if (n2ce_ctx_new(&ctx, NULL) != N2CE_OK || n2ce_ctx_join(ctx, world) != N2CE_OK) _exit(52);
        int code = body(ctx) ? 0 : 1 + n2ce_world_rank(world);
        n2ce_ctx_free(ctx);
        const bool speaks = n2ce_world_leave(world, &code);
        const int rank = n2ce_world_rank(world);
        n2ce_world_free(world, code);
        n2ce_ctx_free(outer);
        _exit(rank == 0 && code == 0 && !speaks ? 60 : code);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

#endif
