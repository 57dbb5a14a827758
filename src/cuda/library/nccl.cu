#include "nccl.h"

#ifdef N2_EMULATE /* whose GPUs are not connected */

n2ce_status n2_nccl_join(n2ce_ctx *, gpu_device *, void **out) {
    *out = NULL;
    return N2CE_OK;
}
void n2_nccl_leave(gpu_device *) {}
n2ce_status n2_nccl_exchange(n2ce_ctx *, const rank_exchange *, cudaStream_t) { return N2CE_OK; }
n2ce_status n2_nccl_wait(n2ce_ctx *, gpu_device *) { return N2CE_OK; }

#else

#include "dynamic.h"

extern "C" {
#include "base/clock.h"
#include "comm/comm.h"
}

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- the library ----------------------------------------------------------- */

/* As nccl.h of version 2 has them. */
typedef struct nccl_id {
    char bytes[128];
} nccl_id;
enum { NCCL_FLOAT = 7, NCCL_SUM = 0 };

static struct {
    bool tried, there;
    int (*get_id)(nccl_id *out);
    int (*join)(void **comm, int ranks, nccl_id id, int rank);
    int (*leave)(void *comm);
    int (*give_up)(void *comm); /* what waits in a stream ends, too */
    int (*begin)(void);
    int (*end)(void);
    int (*reduce)(const void *from, void *to, size_t n, int type, int op, void *comm,
                  cudaStream_t stream);
    int (*gather)(const void *from, void *to, size_t n, int type, void *comm, cudaStream_t stream);
    const char *(*text)(int error);
} nccl;

static bool find_functions(void *library) {
    const struct {
        const char *name;
        void *function;
    } wanted[] = {
        {"ncclGetUniqueId", &nccl.get_id},  {"ncclCommInitRank", &nccl.join},
        {"ncclCommDestroy", &nccl.leave},   {"ncclCommAbort", &nccl.give_up},
        {"ncclGroupStart", &nccl.begin},    {"ncclGroupEnd", &nccl.end},
        {"ncclAllReduce", &nccl.reduce},    {"ncclAllGather", &nccl.gather},
        {"ncclGetErrorString", &nccl.text},
    };
    for (const auto &one : wanted) {
        void *function = n2_library_function(library, one.name);
        if (!function) return false;
        memcpy(one.function, &function, sizeof function);
    }
    return true;
}

static bool load(void) {
    static const char *const names[] = {"libnccl.so.2", "libnccl.so", NULL};
    const char *word = getenv("N2CE_NCCL");
    if (word && strcmp(word, "off") == 0) return false;
    if (!nccl.tried) {
        void *library = n2_library_load(names);
        nccl.there = library && find_functions(library);
        nccl.tried = true;
    }
    return nccl.there;
}

static n2ce_status check(n2ce_ctx *ctx, int error, const char *what) {
    if (error == 0) return N2CE_OK;
    return n2_fail(ctx, N2CE_EDEVICE, "NCCL could not %s: %s.", what, nccl.text(error));
}

/* ---- communicators --------------------------------------------------------- */

/* Which GPU of which machine. */
static uint64_t name_of(const gpu_device *g) {
    char name[256] = "";
    uint64_t hash = 1469598103934665603u;
    if (cudaDeviceGetPCIBusId(name, 64, g->index) != cudaSuccess) name[0] = '\0';
    (void)gethostname(name + 64, sizeof name - 65);
    for (size_t i = 0; i < sizeof name; i++)
        hash = (hash ^ (unsigned char)name[i]) * 1099511628211u;
    return hash;
}

/* Whether every rank has NCCL and a GPU that no other has; the same answer for all. */
static n2ce_status is_possible(n2ce_ctx *ctx, const gpu_device *g, bool *possible) {
    const int ranks = n2_ranks(ctx), rank = n2_rank(ctx);
    uint64_t *names = (uint64_t *)n2_alloc(ctx, (size_t)ranks, sizeof *names);
    size_t *begin = (size_t *)n2_alloc(ctx, (size_t)ranks + 1, sizeof *begin);
    n2ce_status status = names && begin ? N2CE_OK : N2CE_ENOMEM;
    for (int r = 0; r <= ranks && status == N2CE_OK; r++) begin[r] = (size_t)r * sizeof *names;
    if (status == N2CE_OK) names[rank] = load() ? name_of(g) : 0;
    if (status == N2CE_OK) status = n2_comm_gather(ctx, names, begin);
    *possible = status == N2CE_OK;
    for (int a = 0; a < ranks && *possible; a++) {
        *possible = names[a] != 0;
        for (int b = 0; b < a && *possible; b++) *possible = names[a] != names[b];
    }
    n2_free(ctx, names);
    n2_free(ctx, begin);
    return status;
}

/* A step that all ranks have taken, or none goes on: there is another way to exchange sums. */
static n2ce_status agree(n2ce_ctx *ctx, int error, bool *failed) {
    *failed = error != 0;
    if (error)
        n2_log(ctx, N2CE_LOG_WARNING,
               "NCCL could not connect the GPUs: %s. Sums go by way of the host.",
               nccl.text(error));
    return n2_comm_any(ctx, failed);
}

static n2ce_status join(n2ce_ctx *ctx, gpu_device *g, void **comm) {
    nccl_id id;
    bool possible, failed;
    N2_TRY(is_possible(ctx, g, &possible));
    if (!possible) return N2CE_OK;
    memset(&id, 0, sizeof id);
    N2_TRY(agree(ctx, n2_rank(ctx) == 0 ? nccl.get_id(&id) : 0, &failed));
    if (failed) return N2CE_OK;
    N2_TRY(n2_comm_broadcast(ctx, 0, &id, sizeof id));
    GPU_TRY(ctx, cudaSetDevice(g->index), "choose the GPU");
    void *joined = NULL;
    N2_TRY(agree(ctx, nccl.join(&joined, n2_ranks(ctx), id, n2_rank(ctx)), &failed));
    if (!failed) *comm = joined;
    return N2CE_OK;
}

/* One for every number of ranks that there was. */
n2ce_status n2_nccl_join(n2ce_ctx *ctx, gpu_device *g, void **out) {
    const int ranks = n2_ranks(ctx);
    int k = 0;
    while (k < g->n_joined && g->joined[k].ranks != ranks) k++;
    *out = k < g->n_joined ? g->joined[k].comm : NULL;
    if (k < g->n_joined || k == GPU_JOINED) return N2CE_OK;
    N2_TRY(join(ctx, g, out));
    g->joined[g->n_joined].ranks = ranks;
    g->joined[g->n_joined++].comm = *out;
    return N2CE_OK;
}

void n2_nccl_leave(gpu_device *g) {
    for (int k = 0; k < g->n_joined; k++)
        if (g->joined[k].comm) nccl.leave(g->joined[k].comm);
    g->n_joined = 0;
}

/* ---- ranks that are gone --------------------------------------------------- */

static bool waits_for_others(const gpu_device *g) {
    bool waits = false;
    for (int k = 0; k < g->n_joined; k++) waits |= g->joined[k].comm && g->joined[k].ranks > 1;
    return waits;
}

static void give_up_all(gpu_device *g) {
    for (int k = 0; k < g->n_joined; k++)
        if (g->joined[k].comm) nccl.give_up(g->joined[k].comm);
    g->n_joined = 0;
}

n2ce_status n2_nccl_wait(n2ce_ctx *ctx, gpu_device *g) {
    static const double LOOK_EVERY = 2e-3; /* seconds */
    double looked = n2_seconds();
    if (!waits_for_others(g)) return N2CE_OK;
    cudaError_t error;
    while ((error = cudaStreamQuery(g->stream)) == cudaErrorNotReady) {
        if (n2_seconds() - looked < LOOK_EVERY) continue;
        looked = n2_seconds();
        const n2ce_status status = n2_comm_check(ctx);
        if (status == N2CE_OK) continue;
        give_up_all(g);
        return status;
    }
    return n2_gpu_check(ctx, error, "finish its work");
}

/* ---- exchanges ------------------------------------------------------------- */

static int reduce_all(const rank_exchange *x, cudaStream_t stream) {
    for (size_t k = 0; k < x->n; k++)
        if (x->sums[k].shards == 0) cudaMemsetAsync(x->sums[k].to, 0, x->sums[k].n * 4, stream);
    int error = nccl.begin();
    for (size_t k = 0; k < x->n && error == 0; k++) {
        const n2_rank_sum *s = &x->sums[k];
        error = nccl.reduce(s->to, s->to, s->n, NCCL_FLOAT, NCCL_SUM, x->nccl, stream);
    }
    const int ended = nccl.end();
    return error ? error : ended;
}

static int gather_all(const rank_exchange *x, cudaStream_t stream) {
    float *at = x->gathered;
    int error = nccl.begin();
    for (size_t k = 0; k < x->n && error == 0; at += x->sums[k++].n * (size_t)x->ranks) {
        const n2_rank_sum *s = &x->sums[k];
        error = nccl.gather(s->to, at, s->n, NCCL_FLOAT, x->nccl, stream);
    }
    const int ended = nccl.end();
    return error ? error : ended;
}

n2ce_status n2_nccl_exchange(n2ce_ctx *ctx, const rank_exchange *x, cudaStream_t stream) {
    if (!x->gathered) return check(ctx, reduce_all(x, stream), "add up numbers of ranks");
    N2_TRY(check(ctx, gather_all(x, stream), "exchange numbers of ranks"));
    const float *at = x->gathered;
    for (size_t k = 0; k < x->n; at += x->sums[k++].n * (size_t)x->ranks) {
        const size_t n = x->sums[k].n;
        const n2_rank_sum all = {at, at + n, (size_t)x->contributors, n, n, x->sums[k].to};
        n2_add_by_tree(&all, stream);
    }
    return n2_gpu_check(ctx, cudaGetLastError(), "add up numbers of ranks");
}

#endif
