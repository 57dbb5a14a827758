/* The plugin libn2ce_mpi.so: n2ce's ranks by MPI. It is built where mpi.h is found and loaded when
 * mpirun or srun started the program, so that the program itself needs no MPI; and it is compiled
 * against the MPI that it runs with, whose binary interface is nobody else's. */
#include "transport.h"

#include <mpi.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { DATA = 1, FAILED = 2, LEFT = 3, LARGEST = 1 << 30 };

typedef struct joined {
    MPI_Comm comm;
    int rank, size;
    bool unfinished; /* a message is on its way that nobody takes */
} joined;

/* The plugin's one world: MPI has no more. */
static joined world;

n2_mpi_join_fn n2ce_mpi_join;

/* ---- exchanges ----------------------------------------------------------- */

static bool somebody_failed(const joined *j) {
    int failed = 0;
    return MPI_Iprobe(MPI_ANY_SOURCE, FAILED, j->comm, &failed, MPI_STATUS_IGNORE) == MPI_SUCCESS &&
           failed;
}

typedef struct pair {
    MPI_Request request[2];
    int n, failed;
} pair;

static void begin_send(const joined *j, pair *p, int to, const char *out, size_t n) {
    if (to < 0) return;
    p->failed |= MPI_Isend(out, (int)n, MPI_BYTE, to, DATA, j->comm, &p->request[p->n]);
    p->n++;
}

static void begin_receive(const joined *j, pair *p, int from, char *in, size_t n) {
    if (from < 0) return;
    p->failed |= MPI_Irecv(in, (int)n, MPI_BYTE, from, DATA, j->comm, &p->request[p->n]);
    p->n++;
}

static n2_exchanged give_up(joined *j, n2_exchanged why) {
    j->unfinished = true;
    return why;
}

/* Who has waited for long leaves the processor to others, who may be waited for. */
static void leave_processor(uint64_t turn) {
    enum { LONG = 64 * 256 };
    const struct timespec pause = {0, 20000};
    if (turn < LONG)
        sched_yield();
    else
        nanosleep(&pause, NULL);
}

static n2_exchanged wait_for(joined *j, pair *p, n2_idle_fn *idle, void *arg) {
    for (uint64_t turn = 1;; turn++) {
        int done = 0;
        const int error = MPI_Testall(p->n, p->request, &done, MPI_STATUSES_IGNORE);
        if (error != MPI_SUCCESS || p->failed) return give_up(j, N2_EXCHANGE_MISMATCH);
        if (done) return N2_EXCHANGED;
        if (turn % 64 != 0) continue;
        if (somebody_failed(j)) return give_up(j, N2_EXCHANGE_LEFT);
        if (idle(arg)) return give_up(j, N2_EXCHANGE_STOPPED);
        leave_processor(turn);
    }
}

static size_t part_of(size_t n) { return n < LARGEST ? n : LARGEST; }

/* In parts that an int can count. */
static n2_exchanged mpi_exchange(void *state, int to, const void *out, size_t n_out, int from,
                                 void *in, size_t n_in, n2_idle_fn *idle, void *arg) {
    joined *j = state;
    const char *send = out;
    char *receive = in;
    bool first = true;
    while (first || n_out > 0 || n_in > 0) {
        const size_t n = part_of(n_out), m = part_of(n_in);
        pair p = {.n = 0};
        if (first || n > 0) begin_send(j, &p, to, send, n);
        if (first || m > 0) begin_receive(j, &p, from, receive, m);
        const n2_exchanged how = wait_for(j, &p, idle, arg);
        if (how != N2_EXCHANGED) return how;
        send += n;
        receive += m;
        n_out -= n;
        n_in -= m;
        first = false;
    }
    return N2_EXCHANGED;
}

/* ---- ending -------------------------------------------------------------- */

/* So that who waits for this rank does so no longer. */
static void tell_failure(const joined *j) {
    for (int r = 0; r < j->size; r++) {
        MPI_Request sent;
        MPI_Isend(NULL, 0, MPI_BYTE, r, FAILED, j->comm, &sent);
        MPI_Request_free(&sent);
    }
}

/* When all have left, what they told is on its way. */
static void take_failures(const joined *j, const int *codes) {
    for (int r = 0; r < j->size; r++)
        if (codes[r] != 0) MPI_Recv(NULL, 0, MPI_BYTE, r, FAILED, j->comm, MPI_STATUS_IGNORE);
}

static bool mpi_leave(void *state, int code, double seconds, int *codes) {
    const joined *j = state;
    const double until = MPI_Wtime() + seconds;
    MPI_Request *open = malloc(2 * (size_t)j->size * sizeof *open);
    if (!open) return false;
    if (code != 0) tell_failure(j);
    for (int r = 0; r < j->size; r++) {
        MPI_Isend(&code, 1, MPI_INT, r, LEFT, j->comm, &open[r]);
        MPI_Irecv(&codes[r], 1, MPI_INT, r, LEFT, j->comm, &open[j->size + r]);
    }
    int done = 0;
    while (!done && MPI_Wtime() < until) {
        if (MPI_Testall(2 * j->size, open, &done, MPI_STATUSES_IGNORE) != MPI_SUCCESS) break;
        if (!done) sched_yield();
    }
    free(open);
    if (done) take_failures(j, codes);
    return done != 0;
}

static void mpi_close(void *state, bool orderly, int code) {
    const joined *j = state;
    if (orderly && !j->unfinished)
        MPI_Finalize();
    else
        MPI_Abort(j->comm, code);
}

/* ---- beginning ----------------------------------------------------------- */

static void find_neighbours(n2_transport *t) {
    MPI_Comm machine;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &machine);
    MPI_Comm_rank(machine, &t->local_rank);
    MPI_Comm_size(machine, &t->local_size);
    MPI_Comm_free(&machine);
}

/* One thread at a time calls MPI, not always the same. */
__attribute__((visibility("default"))) int n2ce_mpi_join(n2_transport *out) {
    int threads = MPI_THREAD_SINGLE;
    if (MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &threads) != MPI_SUCCESS) return -1;
    if (threads < MPI_THREAD_SERIALIZED) return -1;
    MPI_Comm_dup(MPI_COMM_WORLD, &world.comm);
    MPI_Comm_set_errhandler(world.comm, MPI_ERRORS_RETURN);
    MPI_Comm_rank(world.comm, &world.rank);
    MPI_Comm_size(world.comm, &world.size);
    *out = (n2_transport){"MPI",  world.rank,   world.size, 0,         1,
                          &world, mpi_exchange, mpi_leave,  mpi_close, NULL};
    find_neighbours(out);
    return 0;
}
