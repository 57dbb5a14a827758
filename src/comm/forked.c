/* Processes forked on one machine. Every ordered pair has a channel in shared memory: a ring of
 * bytes, which one of them fills and the other empties. What is sent to rank 0 in bulk, results
 * that it collects, has a larger one: who sends them goes on with its work before rank 0 is there.
 */
#define _GNU_SOURCE

#include "transport.h"

#include "base/clock.h"

#include <errno.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Bytes go in parts, so that one rank fills the ring while the other empties it. */
enum { MOST = 256, LINE = 128, RING = 1 << 18, PART = 1 << 15 };
enum { BULK = 1 << 19, BULK_RING = 1 << 22 }; /* bytes of a message, and room for some */

typedef struct flow {
    _Atomic uint64_t written; /* bytes, in all */
    char gap1[LINE - 8];
    _Atomic uint64_t read;
    char gap2[LINE - 8];
} flow;

typedef struct channel {
    flow flow;
    char ring[RING];
} channel;

typedef struct bulk_channel {
    flow flow;
    char ring[BULK_RING];
} bulk_channel;

typedef struct member {
    _Atomic int pid;
    _Atomic int left;      /* 0: at work; else its code + 1 */
    _Atomic int gone;      /* its parent saw it end */
    _Atomic uint32_t bell; /* rung, so many times, by who did something that it may wait for */
    _Atomic int asleep;
    char gap[LINE - 20];
} member;

typedef struct shared {
    member member[MOST];
    channel channel[]; /* from * size + to */
} shared;

typedef struct forked {
    n2ce_ctx *ctx;
    shared *shared;
    bulk_channel *bulk; /* behind it: to rank 0, from each */
    size_t bytes;
    int rank, size;
} forked;

/* ---- waiting ------------------------------------------------------------- */

/* Notes children that ended. Rank 0 alone has any; a child dies with rank 0. */
static void look_after_children(const forked *f) {
    for (int r = 1; f->rank == 0 && r < f->size; r++) {
        member *m = &f->shared->member[r];
        if (atomic_load(&m->gone)) continue;
        siginfo_t info = {0};
        if (waitid(P_PID, (id_t)atomic_load(&m->pid), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
            info.si_pid != 0)
            atomic_store(&m->gone, 1);
    }
}

typedef struct patience {
    double since,
        looked; /* seconds: of the last progress, and when it was last looked who is there */
} patience;

static void ring(const forked *f, int rank) {
    member *m = &f->shared->member[rank];
    atomic_fetch_add(&m->bell, 1);
    if (atomic_load(&m->asleep)) syscall(SYS_futex, &m->bell, FUTEX_WAKE, 1, NULL, NULL, 0);
}

/* Soon after the last progress the other is about to be there; later it is somewhere else, and may
 * need this processor: it rings. Not longer than a moment, to look who is there. */
static void wait_a_little(const forked *f, patience *p, uint32_t heard) {
    static const double SOON = 20e-6;
    const struct timespec moment = {0, 2000000};
    member *m = &f->shared->member[f->rank];
    if (n2_seconds() - p->since < SOON) {
        for (int i = 0; i < 16 && atomic_load_explicit(&m->bell, memory_order_relaxed) == heard;
             i++)
            n2_relax();
        return;
    }
    atomic_store(&m->asleep, 1);
    syscall(SYS_futex, &m->bell, FUTEX_WAIT, heard, &moment, NULL, 0);
    atomic_store(&m->asleep, 0);
}

/* Whether anybody has failed or is no longer there. Who is done may be gone: what it sent is there.
 */
static n2_exchanged forked_look(void *state) {
    const forked *f = state;
    look_after_children(f);
    for (int r = 0; r < f->size; r++)
        if (atomic_load(&f->shared->member[r].left) > 1) return N2_EXCHANGE_LEFT;
    for (int r = 0; r < f->size; r++)
        if (atomic_load(&f->shared->member[r].gone) && !atomic_load(&f->shared->member[r].left))
            return N2_EXCHANGE_DIED;
    return N2_EXCHANGED;
}

static n2_exchanged who_is_there(forked *f, patience *p) {
    const double now = n2_seconds();
    if (now - p->looked < 2e-3) return N2_EXCHANGED;
    p->looked = now;
    return forked_look(f);
}

/* ---- channels ------------------------------------------------------------ */

/* Where bytes go through. */
typedef struct pipe_end {
    flow *flow;
    char *ring;
    size_t room;
} pipe_end;

typedef struct stream {
    bool open;
    pipe_end counts, contents;
    uint64_t count;
    char *bytes;
    size_t n, at; /* at counts the 8 bytes of the count in front */
} stream;

static size_t least(size_t a, size_t b) { return a < b ? a : b; }

/* The part of a message that begins at s->at: the count, or the bytes. */
static char *part_at(stream *s, size_t *n) {
    if (s->at < sizeof s->count) {
        *n = sizeof s->count - s->at;
        return (char *)&s->count + s->at;
    }
    *n = s->n + sizeof s->count - s->at;
    return s->bytes + (s->at - sizeof s->count);
}

static const pipe_end *pipe_at(const stream *s) {
    return s->at < sizeof s->count ? &s->counts : &s->contents;
}

static bool is_over(const stream *s) { return !s->open || s->at == s->n + sizeof s->count; }

static bool push(stream *s) {
    bool moved = false;
    while (!is_over(s)) {
        const pipe_end *p = pipe_at(s);
        const uint64_t written = atomic_load_explicit(&p->flow->written, memory_order_relaxed);
        const uint64_t read = atomic_load_explicit(&p->flow->read, memory_order_acquire);
        const size_t place = written % p->room, room = p->room - (size_t)(written - read);
        size_t n;
        const char *from = part_at(s, &n);
        n = least(least(n, PART), least(room, p->room - place));
        if (n == 0) break;
        memcpy(p->ring + place, from, n);
        atomic_store_explicit(&p->flow->written, written + n, memory_order_release);
        s->at += n;
        moved = true;
    }
    return moved;
}

static bool pull(stream *s) {
    bool moved = false;
    while (!is_over(s)) {
        const pipe_end *p = pipe_at(s);
        const uint64_t read = atomic_load_explicit(&p->flow->read, memory_order_relaxed);
        const uint64_t written = atomic_load_explicit(&p->flow->written, memory_order_acquire);
        const size_t place = read % p->room;
        size_t n;
        char *to = part_at(s, &n);
        n = least(least(n, PART), least((size_t)(written - read), p->room - place));
        if (n == 0) break;
        memcpy(to, p->ring + place, n);
        atomic_store_explicit(&p->flow->read, read + n, memory_order_release);
        s->at += n;
        moved = true;
        if (s->at == sizeof s->count && s->count != s->n) break;
    }
    return moved;
}

static bool is_other_count(const stream *s) {
    return s->open && s->at >= sizeof s->count && s->count != s->n;
}

/* Both sides know how many bytes there are, and so through what they come. */
static stream stream_between(const forked *f, int from, int to, const void *bytes, size_t n) {
    stream s = {.open = from >= 0 && to >= 0, .bytes = (char *)(uintptr_t)bytes, .n = n};
    if (!s.open) return s;
    channel *c = &f->shared->channel[from * f->size + to];
    bulk_channel *bulk = &f->bulk[from];
    s.counts = s.contents = (pipe_end){&c->flow, c->ring, RING};
    if (to == 0 && n >= BULK) s.contents = (pipe_end){&bulk->flow, bulk->ring, BULK_RING};
    return s;
}

/* What can be moved now. Who waits for it, or for the room that it had, is told. */
static bool move(const forked *f, stream *send, int to, stream *receive, int from) {
    const bool sent = push(send), received = pull(receive);
    if (sent) ring(f, to);
    if (received) ring(f, from);
    return sent || received;
}

static n2_exchanged forked_exchange(void *state, int to, const void *out, size_t n_out, int from,
                                    void *in, size_t n_in, n2_idle_fn *idle, void *arg) {
    forked *f = state;
    stream send = stream_between(f, f->rank, to, out, n_out);
    stream receive = stream_between(f, from, f->rank, in, n_in);
    send.count = n_out;
    patience p = {n2_seconds(), n2_seconds()};
    while (!is_over(&send) || !is_over(&receive)) {
        const uint32_t heard = atomic_load(&f->shared->member[f->rank].bell);
        const bool moved = move(f, &send, to, &receive, from);
        if (is_other_count(&receive)) return N2_EXCHANGE_MISMATCH;
        if (moved) {
            p.since = n2_seconds();
            continue;
        }
        wait_a_little(f, &p, heard);
        const n2_exchanged there = who_is_there(f, &p);
        if (there != N2_EXCHANGED) return there;
        if (idle(arg)) return N2_EXCHANGE_STOPPED;
    }
    return N2_EXCHANGED;
}

/* ---- ending -------------------------------------------------------------- */

static bool all_left(const forked *f, int *codes) {
    bool all = true;
    look_after_children(f);
    for (int r = 0; r < f->size; r++) {
        const int left = atomic_load(&f->shared->member[r].left);
        codes[r] = left ? left - 1 : 1;
        all = all && left;
    }
    return all;
}

static bool some_died(const forked *f) {
    for (int r = 0; r < f->size; r++) {
        const member *m = &f->shared->member[r];
        if (atomic_load(&m->gone) && !atomic_load(&m->left)) return true;
    }
    return false;
}

static bool forked_leave(void *state, int code, double seconds, int *codes) {
    const forked *f = state;
    const double until = n2_seconds() + seconds;
    patience p = {0, 0};
    atomic_store(&f->shared->member[f->rank].left, code + 1);
    for (int r = 0; r < f->size; r++) ring(f, r);
    while (!all_left(f, codes)) {
        wait_a_little(f, &p, atomic_load(&f->shared->member[f->rank].bell));
        if (n2_seconds() > until || some_died(f)) return false;
    }
    return true;
}

/* Children that do not end by themselves are ended. */
static void forked_close(void *state, bool orderly, int code) {
    forked *f = state;
    (void)code;
    for (int r = 1; f->rank == 0 && r < f->size; r++) {
        const pid_t child = atomic_load(&f->shared->member[r].pid);
        if (!orderly) kill(child, SIGKILL);
        while (waitpid(child, NULL, 0) < 0 && errno == EINTR) {}
    }
    munmap(f->shared, f->bytes);
    n2_free(f->ctx, f);
}

/* ---- beginning ----------------------------------------------------------- */

static void end_children(const forked *f, int n) {
    for (int r = 1; r < n; r++) {
        const pid_t child = atomic_load(&f->shared->member[r].pid);
        kill(child, SIGKILL);
        (void)waitpid(child, NULL, 0);
    }
}

/* 0 in rank 0 and in each of the others; -1 if one could not be made. */
static int fork_others(forked *f) {
    const pid_t parent = getpid();
    atomic_store(&f->shared->member[0].pid, (int)parent);
    for (int r = 1; r < f->size; r++) {
        const pid_t child = fork();
        if (child < 0) {
            end_children(f, r);
            return -1;
        }
        if (child > 0) {
            atomic_store(&f->shared->member[r].pid, (int)child);
            continue;
        }
        f->rank = r;
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        return getppid() == parent ? 0 : -1;
    }
    return 0;
}

int n2_fork_transport(n2ce_ctx *ctx, int n, n2_transport *out) {
    if (n > MOST) {
        errno = EINVAL;
        return -1;
    }
    forked *f = n2_alloc(ctx, 1, sizeof *f);
    if (!f) return -1;
    f->ctx = ctx;
    f->size = n;
    const size_t channels = sizeof *f->shared + (size_t)n * (size_t)n * sizeof(channel);
    f->bytes = channels + (size_t)n * sizeof(bulk_channel);
    f->shared = mmap(NULL, f->bytes, PROT_READ | PROT_WRITE,
                     MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (f->shared != MAP_FAILED) f->bulk = (bulk_channel *)(void *)((char *)f->shared + channels);
    if (f->shared == MAP_FAILED || fork_others(f) != 0) {
        if (f->shared != MAP_FAILED) munmap(f->shared, f->bytes);
        n2_free(ctx, f);
        return -1;
    }
    *out = (n2_transport){"processes",  f->rank,      n,          f->rank, n, f, forked_exchange,
                          forked_leave, forked_close, forked_look};
    return 0;
}
