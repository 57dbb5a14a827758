/* Joining the other processes, and leaving them. */
#define _GNU_SOURCE /* dladdr */

#include "world.h"

#include "base/processors.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* ---- the plugin ---------------------------------------------------------- */

static const char PLUGIN[] = "libn2ce_mpi.so";

/* Beside this library or program, and where one installed in bin has its libraries. */
static void *open_beside(const char *folder_of, const char *way) {
    char path[PATH_MAX];
    const char *slash = strrchr(folder_of, '/');
    const int folder = slash ? (int)(slash - folder_of) : 0;
    const int n = snprintf(path, sizeof path, "%.*s%s%s", folder, folder_of, way, PLUGIN);
    return slash && n > 0 && (size_t)n < sizeof path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
}

static void *open_plugin(void) {
    static const char *const ways[] = {"/", "/../lib/", "/n2ce/", "/../lib/n2ce/"};
    const char *said = getenv("N2CE_MPI");
    if (said && *said) return dlopen(said, RTLD_NOW | RTLD_LOCAL);
    char program[PATH_MAX] = "";
    const ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);
    program[n > 0 ? n : 0] = '\0';
    Dl_info here = {0};
    if (!dladdr(PLUGIN, &here)) here.dli_fname = NULL;
    void *plugin = NULL;
    for (size_t i = 0; i < sizeof ways / sizeof ways[0] && !plugin; i++) {
        if (here.dli_fname) plugin = open_beside(here.dli_fname, ways[i]);
        if (!plugin) plugin = open_beside(program, ways[i]);
    }
    return plugin ? plugin : dlopen(PLUGIN, RTLD_NOW | RTLD_LOCAL);
}

/* How many processes the environment says there are: of Open MPI, MPICH and Slurm's PMI, or
 * unknown (0) with PMIx alone; -1: we were not started by any of them. */
static int processes_said(void) {
    static const char *const names[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MPI_LOCALNRANKS"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *text = getenv(names[i]);
        if (text && *text) return atoi(text);
    }
    return getenv("PMIX_RANK") ? 0 : -1;
}

static n2ce_status join_mpi(n2ce_ctx *ctx, n2ce_world *world) {
    world->plugin = open_plugin();
    if (!world->plugin) {
        const char *why = dlerror();
        return n2_fail(ctx, N2CE_EDEVICE,
                       "mpirun started this, but n2ce's MPI plugin could not be loaded (%.300s). "
                       "Build n2ce where MPI's headers are (libopenmpi-dev), or name the plugin in "
                       "N2CE_MPI.",
                       why ? why : "no such file");
    }
    n2_mpi_join_fn *join;
    *(void **)&join = dlsym(world->plugin, N2_MPI_ENTRY);
    if (join && join(&world->transport) == 0) return N2CE_OK;
    return n2_fail(ctx, N2CE_EDEVICE,
                   "MPI could not be started. Is %s built for the MPI whose mpirun this is?",
                   PLUGIN);
}

/* ---- joining ------------------------------------------------------------- */

static n2ce_status fork_ranks(n2ce_ctx *ctx, int ranks, n2ce_world *world) {
    if (n2_fork_transport(ctx, ranks, &world->transport) == 0) return N2CE_OK;
    return n2_fail(ctx, N2CE_ENOMEM, "%d processes could not be started: %s.", ranks,
                   strerror(errno));
}

static n2ce_status find_ranks(n2ce_ctx *ctx, int ranks, n2ce_world *world) {
    const int said = processes_said();
    if (ranks > 1 && said > 1)
        return n2_fail(ctx, N2CE_EINVAL,
                       "mpirun started %d processes; leave --ranks and --gpus out, or mpirun.",
                       said);
    if (ranks > 1) return fork_ranks(ctx, ranks, world);
    if (said > 1 || said == 0) return join_mpi(ctx, world);
    world->transport = (n2_transport){.name = "alone", .size = 1, .local_size = 1};
    return N2CE_OK;
}

n2ce_status n2ce_world_join(n2ce_ctx *ctx, int ranks, n2ce_world **out) {
    *out = NULL;
    if (ranks < 0 || ranks > 256)
        return n2_fail(ctx, N2CE_EINVAL, "%d ranks: between 1 and 256 are possible.", ranks);
    n2ce_world *world = n2_alloc(ctx, 1, sizeof *world);
    if (!world) return N2CE_ENOMEM;
    world->ctx = ctx;
    const n2ce_status status = find_ranks(ctx, ranks, world);
    if (status == N2CE_OK)
        *out = world;
    else
        n2_free(ctx, world); /* the plugin stays: MPI does not survive being unloaded */
    return status;
}

int n2ce_world_rank(const n2ce_world *world) { return world->transport.rank; }
int n2ce_world_ranks(const n2ce_world *world) { return world->transport.size; }

/* Processes that are bound to processors have theirs; others share the machine's. */
int n2ce_world_threads(const n2ce_world *world) {
    const int processors = n2_processors(), local = world->transport.local_size;
    const long all = sysconf(_SC_NPROCESSORS_ONLN);
    if (local <= 1) return 0;
    if (world->plugin && processors < all && processors * local <= all) return processors;
    return processors / local > 0 ? processors / local : 1;
}

static void free_comm(n2ce_ctx *ctx, void *block) {
    n2_comm *c = block;
    n2_free(ctx, c->scratch);
    n2_ctx_set_comm(ctx, NULL);
}

n2ce_status n2ce_ctx_join(n2ce_ctx *ctx, n2ce_world *world) {
    static const char KEY;
    if (world->transport.size == 1) return N2CE_OK;
    n2_comm *c = n2_ctx_attached(ctx, &KEY, sizeof *c, NULL, free_comm);
    if (!c) return N2CE_ENOMEM;
    c->world = world;
    n2_ctx_set_comm(ctx, c);
    return N2CE_OK;
}

/* ---- leaving ------------------------------------------------------------- */

/* Ranks that failed wait for the others so long to notice; those that did not, as long as it
 * takes. */
static const double WAIT_FAILED = 10, WAIT = 1e9;

/* An echo of another rank's failure has nothing to say. */
enum { ECHO = 1000 };

/* The first rank that has something of its own to say. */
static int speaker_of(const n2ce_world *world, const int *codes) {
    for (int r = 0; r < world->transport.size; r++)
        if (codes[r] != 0 && codes[r] != ECHO) return r;
    return 0;
}

bool n2ce_world_leave(n2ce_world *world, int *code) {
    if (!world) return true;
    const n2_transport *t = &world->transport;
    world->speaks = true;
    if (!t->state) return true;
    int *codes = n2_alloc(world->ctx, (size_t)t->size, sizeof *codes);
    const int said = world->is_echo ? ECHO : *code;
    const bool all = codes && t->leave(t->state, said, *code ? WAIT_FAILED : WAIT, codes);
    world->orderly = all;
    for (int r = 0; all && r < t->size; r++) world->orderly &= codes[r] != ECHO;
    const int speaker = all ? speaker_of(world, codes) : 0;
    world->speaks = all ? speaker == t->rank : !world->is_echo;
    if (all && codes[speaker] != ECHO) *code = codes[speaker];
    n2_free(world->ctx, codes);
    return world->speaks;
}

void n2ce_world_free(n2ce_world *world, int code) {
    if (!world) return;
    const n2_transport *t = &world->transport;
    const struct timespec so_long = {1, 0}; /* as it takes to say a sentence */
    if (!world->orderly && !world->speaks) nanosleep(&so_long, NULL);
    if (t->close) t->close(t->state, world->orderly, code);
    n2_free(world->ctx, world);
}
