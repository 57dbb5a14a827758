/* Collectives, over exchanges of two. */
#include "comm.h"

#include "base/clock.h"
#include "base/numerics.h"
#include "world.h"

#include <string.h>

enum { SMALL = 4096 }; /* bytes below which fewer messages beat fewer bytes */

static n2_comm *comm_of(const n2ce_ctx *ctx) { return n2_ctx_comm(ctx); }

static int ranks_of(const n2_comm *c) { return c->few ? c->few : c->world->transport.size; }

static bool is_together(const n2ce_ctx *ctx) {
    const n2_comm *c = comm_of(ctx);
    return c && c->alone == 0 && ranks_of(c) > 1;
}

int n2_rank(const n2ce_ctx *ctx) {
    return is_together(ctx) ? comm_of(ctx)->world->transport.rank : 0;
}
int n2_ranks(const n2ce_ctx *ctx) { return is_together(ctx) ? ranks_of(comm_of(ctx)) : 1; }
int n2_world_rank(const n2ce_ctx *ctx) {
    return comm_of(ctx) ? comm_of(ctx)->world->transport.rank : 0;
}
int n2_world_ranks(const n2ce_ctx *ctx) {
    return comm_of(ctx) ? comm_of(ctx)->world->transport.size : 1;
}

void n2_comm_alone(n2ce_ctx *ctx) {
    if (comm_of(ctx)) comm_of(ctx)->alone++;
}

void n2_comm_together(n2ce_ctx *ctx) {
    if (comm_of(ctx)) comm_of(ctx)->alone--;
}

void n2_comm_few(n2ce_ctx *ctx, int ranks) {
    if (comm_of(ctx)) comm_of(ctx)->few = ranks;
}

n2_comm_traffic n2_comm_sent(const n2ce_ctx *ctx) {
    return comm_of(ctx) ? comm_of(ctx)->sent : (n2_comm_traffic){0, 0};
}

/* ---- exchanges of two ---------------------------------------------------- */

/* Who asked to stop waits for the others to notice, but not for ever: they may be gone. */
static const double PATIENCE = 5;

typedef struct waiting {
    const n2ce_ctx *ctx;
    double since; /* it was to stop; 0: it is not */
} waiting;

static bool had_enough(void *arg) {
    waiting *w = arg;
    if (!n2_cancelled(w->ctx)) return false;
    if (w->since == 0) w->since = n2_seconds();
    return n2_seconds() - w->since > PATIENCE;
}

static n2ce_status no_exchange(n2ce_ctx *ctx, n2_exchanged how) {
    switch (how) {
    case N2_EXCHANGED:
        return N2CE_OK;
    case N2_EXCHANGE_LEFT:
        comm_of(ctx)->world->is_echo = true;
        return n2_fail(ctx, N2CE_EIO, "Another rank has ended; this one cannot go on without it.");
    case N2_EXCHANGE_DIED: /* rank 0 saw it, and says so */
        comm_of(ctx)->world->is_echo = comm_of(ctx)->world->transport.rank > 0;
        return n2_fail(
            ctx, N2CE_EIO,
            "A rank is gone: it was killed, or its machine is down. Files that were "
            "written are whole; with --checkpoint, --resume goes on from the last one, with any "
            "number of ranks.");
    case N2_EXCHANGE_STOPPED:
        return n2_fail(ctx, N2CE_ECANCELED, "Interrupted while other ranks were waited for.");
    case N2_EXCHANGE_MISMATCH:
        break;
    }
    return n2_fail(ctx, N2CE_EIO,
                   "Ranks went different ways: do all of them see the same files, options and "
                   "version of n2ce?");
}

static n2ce_status exchange(n2ce_ctx *ctx, int to, const void *out, size_t n_out, int from,
                            void *in, size_t n_in) {
    n2_comm *c = comm_of(ctx);
    const n2_transport *t = &c->world->transport;
    waiting w = {ctx, 0};
    if (to >= 0) c->sent.bytes += (double)n_out;
    c->sent.exchanges++;
    return no_exchange(ctx, t->exchange(t->state, to, out, n_out, from, in, n_in, had_enough, &w));
}

n2ce_status n2_comm_check(n2ce_ctx *ctx) {
    const n2_comm *c = comm_of(ctx);
    const n2_transport *t = c ? &c->world->transport : NULL;
    return t && t->look ? no_exchange(ctx, t->look(t->state)) : N2CE_OK;
}

static n2ce_status room_for(n2ce_ctx *ctx, size_t bytes) {
    n2_comm *c = comm_of(ctx);
    if (bytes <= c->room) return N2CE_OK;
    char *more = n2_realloc(ctx, c->scratch, bytes, 1);
    if (!more) return N2CE_ENOMEM;
    c->scratch = more;
    c->room = bytes;
    return N2CE_OK;
}

/* ---- sums ---------------------------------------------------------------- */

static void add(void *x, const void *y, size_t n, size_t bytes) {
    if (bytes == sizeof(float)) {
        float *a = x;
        const float *b = y;
        for (size_t i = 0; i < n; i++) a[i] += b[i];
    } else {
        double *a = x;
        const double *b = y;
        for (size_t i = 0; i < n; i++) a[i] += b[i];
    }
}

typedef struct piece {
    size_t begin, end; /* numbers */
} piece;

/* Pairs exchange all they have: few messages. Of two numbers the sum does not depend on who is
 * first, so both have the same one. */
static n2ce_status sum_small(n2ce_ctx *ctx, char *x, size_t n, size_t bytes, int contributors) {
    const int rank = n2_rank(ctx);
    N2_TRY(room_for(ctx, n * bytes));
    char *other = comm_of(ctx)->scratch;
    for (int step = 1; step < contributors; step *= 2) {
        N2_TRY(exchange(ctx, rank ^ step, x, n * bytes, rank ^ step, other, n * bytes));
        add(x, other, n, bytes);
    }
    return N2CE_OK;
}

/* Of a pair each takes half of the numbers, of two pairs a quarter, and so on; then back. */
static n2ce_status sum_large(n2ce_ctx *ctx, char *x, size_t n, size_t bytes, int contributors) {
    const int rank = n2_rank(ctx);
    piece held[32] = {{0, n}};
    int level = 0;
    N2_TRY(room_for(ctx, (n + 1) / 2 * bytes));
    char *other = comm_of(ctx)->scratch;
    for (int step = 1; step < contributors; step *= 2, level++) {
        const piece all = held[level];
        const size_t middle = all.begin + (all.end - all.begin) / 2;
        const piece low = {all.begin, middle}, high = {middle, all.end};
        const piece mine = rank & step ? high : low, theirs = rank & step ? low : high;
        N2_TRY(exchange(ctx, rank ^ step, x + theirs.begin * bytes,
                        (theirs.end - theirs.begin) * bytes, rank ^ step, other,
                        (mine.end - mine.begin) * bytes));
        add(x + mine.begin * bytes, other, mine.end - mine.begin, bytes);
        held[level + 1] = mine;
    }
    for (int step = contributors / 2; step > 0; step /= 2, level--) {
        const piece mine = held[level], all = held[level - 1];
        const piece theirs =
            rank & step ? (piece){all.begin, mine.begin} : (piece){mine.end, all.end};
        N2_TRY(exchange(ctx, rank ^ step, x + mine.begin * bytes, (mine.end - mine.begin) * bytes,
                        rank ^ step, x + theirs.begin * bytes,
                        (theirs.end - theirs.begin) * bytes));
    }
    return N2CE_OK;
}

/* Who had nothing to add is told by somebody who had. */
static n2ce_status tell_others(n2ce_ctx *ctx, void *x, size_t bytes, int contributors) {
    const int rank = n2_rank(ctx), ranks = n2_ranks(ctx);
    if (rank >= contributors) return exchange(ctx, -1, NULL, 0, rank % contributors, x, bytes);
    for (int to = rank + contributors; to < ranks; to += contributors)
        N2_TRY(exchange(ctx, to, x, bytes, -1, NULL, 0));
    return N2CE_OK;
}

n2ce_status n2_comm_sum(n2ce_ctx *ctx, void *x, size_t n, size_t bytes, int contributors) {
    if (!is_together(ctx) || n == 0) return N2CE_OK;
    if (n2_rank(ctx) < contributors)
        N2_TRY((n * bytes < SMALL ? sum_small : sum_large)(ctx, x, n, bytes, contributors));
    return tell_others(ctx, x, n * bytes, contributors);
}

/* ---- others -------------------------------------------------------------- */

/* Ranks are counted from the root; who knows tells who is a power of two further on. */
n2ce_status n2_comm_broadcast(n2ce_ctx *ctx, int root, void *x, size_t bytes) {
    if (!is_together(ctx)) return N2CE_OK;
    const int ranks = n2_ranks(ctx), at = (n2_rank(ctx) - root + ranks) % ranks;
    for (int step = 1; step < ranks; step *= 2) {
        const int to = (at + step + root) % ranks, from = (at - step + root + ranks) % ranks;
        if (at < step && at + step < ranks) N2_TRY(exchange(ctx, to, x, bytes, -1, NULL, 0));
        if (at >= step && at < 2 * step) N2_TRY(exchange(ctx, -1, NULL, 0, from, x, bytes));
    }
    return N2CE_OK;
}

/* In a ring: what came from the left goes on to the right. */
n2ce_status n2_comm_gather(n2ce_ctx *ctx, void *x, const size_t *begin) {
    if (!is_together(ctx)) return N2CE_OK;
    const int ranks = n2_ranks(ctx), rank = n2_rank(ctx);
    const int right = (rank + 1) % ranks, left = (rank + ranks - 1) % ranks;
    char *bytes = x;
    for (int k = 0; k + 1 < ranks; k++) {
        const int mine = (rank - k + ranks) % ranks, theirs = (mine + ranks - 1) % ranks;
        N2_TRY(exchange(ctx, right, bytes + begin[mine], begin[mine + 1] - begin[mine], left,
                        bytes + begin[theirs], begin[theirs + 1] - begin[theirs]));
    }
    return N2CE_OK;
}

static n2ce_status take_from(n2ce_ctx *ctx, int rank, n2_take_fn *take, void *user) {
    uint64_t n;
    N2_TRY(exchange(ctx, -1, NULL, 0, rank, &n, sizeof n));
    N2_TRY(room_for(ctx, (size_t)n + 1));
    N2_TRY(exchange(ctx, -1, NULL, 0, rank, comm_of(ctx)->scratch, (size_t)n));
    return take(user, rank, comm_of(ctx)->scratch, (size_t)n);
}

n2ce_status n2_comm_collect(n2ce_ctx *ctx, const void *bytes, size_t n, n2_take_fn *take,
                            void *user) {
    if (n2_rank(ctx) > 0) {
        const uint64_t count = n;
        N2_TRY(exchange(ctx, 0, &count, sizeof count, -1, NULL, 0));
        return exchange(ctx, 0, bytes, n, -1, NULL, 0);
    }
    N2_TRY(take(user, 0, bytes, n));
    for (int r = 1; r < n2_ranks(ctx); r++) N2_TRY(take_from(ctx, r, take, user));
    return N2CE_OK;
}

n2ce_status n2_comm_decide(n2ce_ctx *ctx, bool *flag) {
    unsigned char says = *flag;
    N2_TRY(n2_comm_broadcast(ctx, 0, &says, 1));
    *flag = says != 0;
    return N2CE_OK;
}

n2ce_status n2_comm_any(n2ce_ctx *ctx, bool *flag) {
    if (!is_together(ctx)) return N2CE_OK;
    float says = *flag;
    int contributors = 1;
    while (2 * contributors <= n2_ranks(ctx)) contributors *= 2;
    /* who has no place in the tree tells who has */
    const int rank = n2_rank(ctx), ranks = n2_ranks(ctx);
    float more = 0;
    if (rank >= contributors)
        N2_TRY(exchange(ctx, rank - contributors, &says, sizeof says, -1, NULL, 0));
    else if (rank + contributors < ranks)
        N2_TRY(exchange(ctx, -1, NULL, 0, rank + contributors, &more, sizeof more));
    says += more;
    N2_TRY(n2_comm_sum(ctx, &says, 1, sizeof says, contributors));
    *flag = says > 0;
    return N2CE_OK;
}

/* ---- tasks --------------------------------------------------------------- */

typedef struct outcome {
    int32_t status;
    char message[1020];
} outcome;

n2ce_status n2_comm_outcome(n2ce_ctx *ctx, int root, n2ce_status status) {
    outcome o = {.status = (int32_t)status};
    if (!is_together(ctx)) return status;
    if (status != N2CE_OK) strncpy(o.message, n2ce_errmsg(ctx), sizeof o.message - 1);
    N2_TRY(n2_comm_broadcast(ctx, root, &o, sizeof o.status));
    if (o.status == N2CE_OK) return N2CE_OK;
    N2_TRY(n2_comm_broadcast(ctx, root, &o, sizeof o));
    return n2_fail(ctx, (n2ce_status)o.status, "%s", o.message);
}

static n2ce_status run_alone(n2ce_ctx *ctx, size_t task, n2_run_task_fn *run, void *user) {
    n2_comm_alone(ctx);
    const n2ce_status status = run(user, task);
    n2_comm_together(ctx);
    return status;
}

n2ce_status n2_comm_tasks(n2ce_ctx *ctx, size_t n, n2_run_task_fn *run, n2_share_task_fn *share,
                          void *user) {
    const size_t ranks = (size_t)n2_ranks(ctx), rank = (size_t)n2_rank(ctx);
    for (size_t first = 0; first < n; first += ranks) {
        const bool mine = first + rank < n;
        const n2ce_status status = mine ? run_alone(ctx, first + rank, run, user) : N2CE_OK;
        if (ranks == 1) {
            N2_TRY(status);
            continue;
        }
        for (size_t i = first; i < n && i < first + ranks; i++) {
            const int root = (int)(i - first);
            N2_TRY(n2_comm_outcome(ctx, root, (size_t)root == rank ? status : N2CE_OK));
            N2_TRY(share(user, i, root));
        }
    }
    return N2CE_OK;
}
