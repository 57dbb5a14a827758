/* How ranks reach one another: what a backend of the communicator provides. There are two:
 * processes forked on one machine, over shared memory (forked.c), and MPI, in a plugin of its own
 * (mpi_plugin.c) that is loaded when the environment says that mpirun or srun started us. */
#ifndef N2_TRANSPORT_H
#define N2_TRANSPORT_H

#include "base/ctx.h"

/* Called while somebody is waited for; true: wait no longer. */
typedef bool n2_idle_fn(void *arg);

/* What became of an exchange. */
typedef enum n2_exchanged {
    N2_EXCHANGED,
    N2_EXCHANGE_LEFT,     /* a rank has ended its work: nobody will answer */
    N2_EXCHANGE_DIED,     /* a rank is gone without a word */
    N2_EXCHANGE_STOPPED,  /* `idle` said so */
    N2_EXCHANGE_MISMATCH, /* the other sent another number of bytes: ranks went different ways */
} n2_exchanged;

typedef struct n2_transport {
    const char *name;
    int rank, size;
    int local_rank, local_size; /* among those of the same machine */
    void *state;

    /* Sends to one rank and receives from another, at once; either may be -1: nobody. */
    n2_exchanged (*exchange)(void *state, int to, const void *out, size_t n_out, int from, void *in,
                             size_t n_in, n2_idle_fn *idle, void *arg);

    /* Tells everybody that this rank ends, and how; waits until all have, at most so many seconds.
     * codes[size]: how each ended. False: not all came. */
    bool (*leave)(void *state, int code, double seconds, int *codes);

    /* Frees everything. `orderly`: all have left and nothing is on its way; otherwise the others
     * are ended, with this code. */
    void (*close)(void *state, bool orderly, int code);

    /* Whether everybody is there, who waits otherwise asks; NULL: who started them sees to that. */
    n2_exchanged (*look)(void *state);
} n2_transport;

/* N processes of this one, whose rank 0 it is; -1 if that is not possible (errno). */
int n2_fork_transport(n2ce_ctx *ctx, int n, n2_transport *out);

/* What the plugin exports: joins the processes that mpirun started. 0, or -1. */
#define N2_MPI_ENTRY "n2ce_mpi_join"
typedef int n2_mpi_join_fn(n2_transport *out);

#endif
