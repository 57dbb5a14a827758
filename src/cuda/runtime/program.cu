/* From a queue of jobs, whose launches are known (schedule.cu), to a CUDA graph. */
#include "program.h"

#include "cuda/wide/wide.h"

#include <string.h>

/* Runs in one graph, if it stays this small: some, or more if twice as many are asked for. */
enum { SOME_RUNS = 8, MORE_RUNS = 32, MOST_NODES = 8192 };

/* ---- launches ------------------------------------------------------------ */

/* A job whose blocks begin at `first`, and so many that are nobody else's: none, if it is part
 * of a chain. */
static void add_job(launch *l, const job *j, uint32_t first, uint32_t blocks, job *jobs,
                    uint32_t *starts) {
    const int at = l->list.n++;
    starts[at] = l->blocks;
    jobs[at] = *j;
    jobs[at].first_block = first;
    if (at < INLINE_JOBS) {
        l->list.inline_first[at] = l->blocks;
        memcpy(l->list.inline_words + at * JOB_WORDS, &jobs[at], sizeof *j);
    }
    l->blocks += blocks;
    starts[at + 1] = l->blocks;
}

/* b follows a in a chain: can it find its rows where a leaves them? Its k must fill pieces, for
 * what lies beyond the rows is not zero. */
static void hand_over(job *a, job *b) {
    if (a->kind != JOB_MATMUL || b->kind != JOB_MATMUL) return;
    if (!a->product.rows || !b->product.rows) return;
    if (b->product.k != a->product.n || b->product.k % TILE_K != 0) return;
    const int keeps = b->in[0] == a->out ? 1 : a->more[0] && b->in[0] == a->more[0] ? 2 : 0;
    a->product.keeps = (uint8_t)keeps;
    b->product.finds = keeps != 0;
    if (!keeps || a->product.tb != b->product.tb) return;
    a->product.next_b = b->in[1];
    a->product.next_n = (int32_t)b->product.n;
    a->product.next_k = (int32_t)b->product.k;
    b->product.begun = true;
}

static size_t next_of_chain(const n2_queue *q, size_t i) {
    const size_t chain = q->list[i].chain;
    for (i++; i < q->n && q->list[i].chain != chain; i++) continue;
    return i;
}

static void hand_over_all(n2_queue *q, size_t first) {
    size_t i = first;
    for (int left = q->list[first].j.chained; left > 0; left--) {
        const size_t next = next_of_chain(q, i);
        hand_over(&q->list[i].j, &q->list[next].j);
        n2_noted_hand_over(q, i, next);
        i = next;
    }
}

static void add_chain(n2_queue *q, launch *l, size_t first, job *jobs, uint32_t *starts) {
    const uint32_t begin = l->blocks;
    int left = q->list[first].j.chained;
    if (left >= l->list.at_once) l->list.at_once = left < CHAIN_JOBS ? left + 1 : (int)CHAIN_JOBS;
    hand_over_all(q, first);
    n2_chain_segments(q, first);
    for (size_t i = first;; i = next_of_chain(q, i)) {
        add_job(l, &q->list[i].j, begin, i == first ? q->list[i].j.n_blocks : 0, jobs, starts);
        if (left-- == 0) return;
    }
}

bool n2_has_adam(const n2_queue *q, int level) {
    for (const uint32_t i : n2_jobs_at(q, level))
        if (q->list[i].j.kind == JOB_ADAM) return true;
    return false;
}

launch_kind n2_launch_kind_of(const job *j, bool adam) {
    const bool update = j->kind == JOB_ADAM || j->kind == JOB_ASSIGN || j->kind == JOB_END;
    if (j->kind == JOB_LIBRARY) return LAUNCH_LIBRARY;
    if (j->kind == JOB_WIDE) return LAUNCH_WIDE;
    return j->kind == JOB_MATMUL ? LAUNCH_PRODUCTS : update && adam ? LAUNCH_UPDATES : LAUNCH_JOBS;
}

/* The jobs of a level that go this way. */
static void fill_jobs(n2_queue *q, launch *l, job *jobs, uint32_t *starts) {
    const bool adam = n2_has_adam(q, l->level);
    for (const uint32_t i : n2_jobs_at(q, l->level)) {
        const noted *n = &q->list[i];
        if (n->chain != i || n2_is_mlp_layer(n)) continue;
        if (n->fused_gradient || n->taken || n->j.n_blocks == 0) continue;
        if (n2_launch_kind_of(&n->j, adam) == l->way) add_chain(q, l, i, jobs, starts);
    }
}

static void fill_fused(n2_queue *q, launch *l, fused_table *table) {
    const bool side = l->way == LAUNCH_SIDE;
    n2_fused_mlp_make(q, l->level, side ? 0 : l->way - LAUNCH_FUSED, side, table, &l->fused);
    l->blocks = l->fused.blocks;
    l->until = l->fused.until;
}

/* The first launch, if it is one of jobs, once more, for a run that follows another and finds
 * packed weights that last; behind all others. */
static void fill_again(n2_device_program *p, size_t at, job *jobs, uint32_t *starts) {
    const launch *first = &p->launches[0];
    const size_t from = (size_t)(first->list.jobs - p->jobs);
    launch *l = &p->again[0];
    *l = (launch){};
    if (p->n_launches == 0 || first->level > 0 || first->way != LAUNCH_JOBS) return;
    l->way = LAUNCH_JOBS;
    l->list.jobs = p->jobs + at;
    l->list.first = p->starts + at + p->n_launches;
    l->list.at_once = first->list.at_once;
    uint32_t begin = 0;
    for (int i = 0; i < first->list.n; i++) {
        const uint32_t blocks = starts[from + i + 1] - starts[from + i];
        if (jobs[from + i].lasts && jobs[from + i].chained == 0) continue; /* it is there */
        if (blocks > 0) begin = l->blocks;
        add_job(l, &jobs[from + i], begin, blocks, jobs + at, starts + at + p->n_launches);
    }
}

/* All launches, in the order of their levels; memory of the host, to be copied. */
static void fill_launches(n2_device_program *p, size_t levels, job *jobs, uint32_t *starts,
                          fused_table *table) {
    size_t at = 0;
    for (size_t k = 0; k < levels * N_LAUNCH_KINDS; k++) {
        launch *l = &p->launches[p->n_launches];
        *l = (launch){};
        l->level = (int)(k / N_LAUNCH_KINDS);
        l->way = (launch_kind)(k % N_LAUNCH_KINDS);
        l->list.jobs = p->jobs + at;
        l->list.first = p->starts + at + p->n_launches;
        if (n2_is_fused(l->way))
            fill_fused(p->queue, l, table);
        else if (l->way == LAUNCH_LIBRARY)
            l->blocks = (uint32_t)n2_library_calls_at(p->queue, l->level, &l->first_call);
        else if (l->way == LAUNCH_WIDE)
            l->blocks = (uint32_t)n2_wide_at(p->queue, l->level);
        else
            fill_jobs(p->queue, l, jobs + at, starts + at + p->n_launches);
        l->apart = p->queue->fuses_mlps && (int64_t)l->blocks <= p->queue->multiprocessors;
        at += (size_t)l->list.n;
        p->n_launches += l->blocks > 0;
    }
    fill_again(p, at, jobs, starts);
}

/* ---- preludes ------------------------------------------------------------ */

static bool touches_state(const n2_queue *q, const noted *n) {
    for (int s = 0; s < n->n_spans; s++)
        if (n->spans[s].begin == (uintptr_t)q->state) return true;
    return false;
}

/* Whether it makes a difference to job n if the end of the run has been noted. Not to an update
 * that looks at all watched numbers itself. */
static bool minds_state(const n2_queue *q, const noted *n) {
    uint32_t watched = 0;
    while (q->watched[watched]) watched++;
    const bool update = n->j.kind == JOB_ADAM || n->j.kind == JOB_ASSIGN;
    return touches_state(q, n) && !(update && n->j.guards == watched);
}

/* Whether the end of the run must not be noted while job n is at work. */
static bool minds_end(const n2_queue *q, const noted *n) {
    return n2_writes_watched(q, n) || minds_state(q, n);
}

/* One number, from few: what every block can do for itself. */
static bool is_little(const job *j) {
    enum { MOST_SUMS = 128 };
    if (j->kind == JOB_SUM_LIST) return j->k <= MOST_SUMS;
    return j->n == 1 && (j->kind == JOB_UNARY || j->kind == JOB_BINARY || j->kind == JOB_ASSIGN);
}

/* Whether a job finds the same numbers when others of its chain have been done already, by another
 * block: nothing that it reads is written by itself or a later one. */
static bool can_be_repeated(const n2_queue *q, size_t i) {
    const noted *n = &q->list[i];
    if (n->j.add || !is_little(&n->j)) return false;
    for (int s = 0; s < n->n_spans; s++) {
        const float *x = (const float *)n->spans[s].begin;
        const int64_t floats = (const float *)n->spans[s].end - x;
        for (size_t k = i; k < q->n && !n->spans[s].written; k++)
            if (q->list[k].chain == n->chain && n2_noted_touches(&q->list[k], x, floats, false))
                return false;
    }
    return true;
}

/* Whether all blocks of a level's only launch can do a job of the level before for themselves. */
static bool is_prelude(const n2_queue *q, size_t i, int level) {
    for (const uint32_t k : n2_jobs_at(q, level)) {
        const noted *n = &q->list[k];
        if (n->j.n_blocks == 0) continue;
        if (n->j.kind == JOB_END && minds_state(q, &q->list[i])) return false;
        for (int s = 0; s < q->list[i].n_spans; s++) {
            const span *at = &q->list[i].spans[s];
            if (n2_noted_touches(n, (const float *)at->begin,
                                 (const float *)at->end - (const float *)at->begin, false))
                return false;
        }
    }
    return can_be_repeated(q, i);
}

static bool follows(const job *j, int kind, int op, const float *x) {
    return j->kind == kind && j->op == op && j->in[kind == JOB_BINARY] == x;
}

/* Whether the jobs of a launch are a norm, and what clipping makes of it (update.h). Jobs: the
 * host's copies, which travel with the launch. */
static bool find_norm(const launch *one, update_norm *out) {
    job j[INLINE_JOBS];
    const int n = one->list.n;
    if (n != 2 && n != 5) return false;
    memcpy(j, one->list.inline_words, (size_t)n * sizeof *j);
    const bool norm = j[0].kind == JOB_SUM_LIST && follows(&j[1], JOB_UNARY, N2_OP_sqrt, j[0].out);
    *out = update_norm{(const job_part *)j[0].in[0],
                       (int32_t)j[0].k,
                       0,
                       0,
                       j[0].out,
                       j[1].out,
                       NULL,
                       NULL,
                       NULL,
                       NULL,
                       NULL};
    if (n == 2 || !norm) return norm;
    out->a = (float)j[2].f[0];
    out->b = (float)j[2].f[1];
    out->shifted = j[2].out;
    out->ratio = j[3].out;
    out->factor = j[4].out;
    out->limit = j[3].in[0];
    out->most = j[4].in[0];
    return follows(&j[2], JOB_UNARY, N2_OP_affine, j[1].out) &&
           follows(&j[3], JOB_BINARY, N2_OP_div, j[2].out) &&
           follows(&j[4], JOB_BINARY, N2_OP_minimum, j[3].out);
}

/* What one block does, alone at its level, is done by all blocks of the next launch: that takes
 * less time than a launch. */
static bool can_be_prelude(const n2_device_program *p, const launch *one, const launch *next) {
    enum { MOST_BLOCKS = 512 };
    const n2_queue *q = p->queue;
    if (one->way != LAUNCH_JOBS || one->blocks != 1 || one->list.n > CHAIN_JOBS ||
        one->list.n_prelude)
        return false;
    if (next->way == LAUNCH_UPDATES) {
        update_norm norm;
        if (!find_norm(one, &norm)) return false;
    } else if (next->way != LAUNCH_JOBS || next->blocks > MOST_BLOCKS) {
        return false;
    }
    for (const uint32_t i : n2_jobs_at(q, one->level))
        if (!is_prelude(q, i, next->level)) return false;
    return true;
}

static bool is_alone(const n2_device_program *p, size_t k) {
    const launch *l = &p->launches[k];
    return (k == 0 || l[-1].level != l->level) &&
           (k + 1 == p->n_launches || l[1].level != l->level);
}

static void find_preludes(n2_device_program *p) {
    size_t n = 0;
    for (size_t k = 0; k < p->n_launches; k++) {
        launch *l = &p->launches[k], *next = l + 1;
        const bool joins = k + 1 < p->n_launches && is_alone(p, k) && is_alone(p, k + 1) &&
                           can_be_prelude(p, l, next);
        if (joins && next->way == LAUNCH_UPDATES) {
            find_norm(l, &next->norm);
        } else if (joins) {
            next->list.prelude = l->list.jobs;
            next->list.n_prelude = l->list.n;
        } else {
            p->launches[n++] = *l;
        }
    }
    p->n_launches = n;
}

/* What a run does that follows another: the same, but for the first launch. */
static void complete_again(n2_device_program *p) {
    const launch first = p->again[0];
    memcpy(p->again, p->launches, p->n_launches * sizeof *p->again);
    if (first.way == LAUNCH_JOBS && p->launches[0].list.n_prelude == 0) p->again[0] = first;
}

/* Jobs, the fused MLP's table and starts in one block of the device's memory. */
static n2ce_status upload_jobs(n2_device_program *p, size_t levels) {
    n2_queue *q = p->queue;
    n2_device *d = &p->device->api;
    size_t n_jobs = q->n; /* those of the first level twice */
    for (size_t i = 0; i < q->n; i++) n_jobs += q->list[i].level == 0;
    const size_t table_at = (n_jobs * sizeof(job) + 15) / 16 * 16;
    const size_t starts_at = table_at + n2_fused_mlp_bytes(q);
    const size_t bytes = starts_at + (n_jobs + levels * N_LAUNCH_KINDS + 2) * sizeof(uint32_t);
    void *memory;
    N2_TRY(d->alloc(d, q->ctx, bytes, &memory));
    p->jobs = (job *)memory;
    p->starts = (uint32_t *)((char *)memory + starts_at);
    char *host = (char *)n2_alloc(q->ctx, bytes, 1);
    if (!host) return N2CE_ENOMEM;
    fused_table table = {host + table_at, (const char *)memory + table_at, 0};
    fill_launches(p, levels, (job *)host, (uint32_t *)(host + starts_at), &table);
    const n2ce_status status = d->upload(d, q->ctx, memory, host, bytes);
    n2_free(q->ctx, host);
    return status;
}

/* ---- graphs -------------------------------------------------------------- */

/* Streams that part where a level has launches of several ways, and meet again; what runs on the
 * side stream meets the others where it is needed. */
typedef struct streams {
    cudaStream_t stream[N_LAUNCH_KINDS], side;
    cudaEvent_t parted, met[N_LAUNCH_KINDS], back;
    int until; /* the level before which the side stream is joined; 0: none is at work */
} streams;

void n2_launch_one(const n2_device_program *p, const launch *l, cudaStream_t stream, bool early,
                   bool ahead) {
    if (l->way == LAUNCH_LIBRARY)
        n2_library_launch(p->queue, l->first_call, l->blocks, stream);
    else if (l->way == LAUNCH_WIDE)
        n2_wide_launch(p->queue, l->level, stream, early);
    else if (l->way == LAUNCH_UPDATES)
        n2_updates_launch(&l->list, &l->norm, l->blocks, ahead, l->apart, stream, early);
    else if (n2_is_fused(l->way))
        n2_fused_mlp_launch(&l->fused, p->device->strict, stream, early);
    else
        n2_jobs_launch(&l->list, l->blocks, l->way == LAUNCH_PRODUCTS, stream, early);
}

/* The last, which are fused MLPs if there are any, goes on in the first stream, the others beside
 * it. early: that one may begin before the kernel before it ends; ahead: and read what it changes.
 */
static void launch_level(const n2_device_program *p, const launch *l, size_t n, const streams *s,
                         bool early, bool ahead) {
    if (n > 1) cudaEventRecord(s->parted, s->stream[0]);
    for (size_t k = 1; k < n; k++) {
        cudaStreamWaitEvent(s->stream[k], s->parted, 0);
        n2_launch_one(p, &l[k - 1], s->stream[k], false, false);
    }
    n2_launch_one(p, &l[n - 1], s->stream[0], early, ahead);
    for (size_t k = 1; k < n; k++) {
        cudaEventRecord(s->met[k], s->stream[k]);
        cudaStreamWaitEvent(s->stream[0], s->met[k], 0);
    }
}

static void launch_on_side_stream(const n2_device_program *p, const launch *l, streams *s) {
    cudaEventRecord(s->parted, s->stream[0]);
    cudaStreamWaitEvent(s->side, s->parted, 0);
    n2_launch_one(p, l, s->side, false, false);
    cudaEventRecord(s->back, s->side);
    s->until = l->until;
}

static void join_side_stream(streams *s) {
    if (s->until > 0) cudaStreamWaitEvent(s->stream[0], s->back, 0);
    s->until = 0;
}

/* Launches of one level. */
static size_t count_level(const launch *l, size_t most) {
    size_t n = 1;
    while (n < most && l[n].level == l->level) n++;
    return n;
}

/* Whether updates of a level may read ahead if jobs from level `since` on may still be at work; -1:
 * those of the run before, too. */
static bool may_read_ahead(const n2_queue *q, int since, int level) {
    if (since < 0) return false;
    for (const uint32_t i : n2_jobs_at(q, level)) {
        const job *update = &q->list[i].j;
        if (update->kind != JOB_ADAM) continue;
        for (int l = since; l < level; l++)
            for (const uint32_t k : n2_jobs_at(q, l))
                if (n2_update_reads_ahead(update, &q->list[k])) return false;
    }
    return true;
}

/* alone: what comes before is one kernel. Returns whether this ends with one. */
static bool launch_all(const n2_device_program *p, const launch *launches, bool alone, streams *s) {
    /* the last level that did not begin before others ended; -1: of the run before */
    int since = -1;
    for (size_t k = 0, n; k < p->n_launches; k += n) {
        const launch *l = &launches[k];
        n = count_level(l, p->n_launches - k);
        const bool side = l->way == LAUNCH_SIDE;
        const bool met = s->until > 0 && (side || l->level >= s->until);
        if (met) join_side_stream(s);
        alone = alone && !met;
        if (side) launch_on_side_stream(p, l, s);
        /* on the side stream, or nothing is left of it */
        const size_t before = side + (side < n && l[side].blocks == 0);
        if (n == before) continue;
        const bool early = p->device->waits && alone && l[n - 1].way != LAUNCH_LIBRARY;
        if (!early) since = l->level;
        const bool ahead =
            l[n - 1].way == LAUNCH_UPDATES && may_read_ahead(p->queue, since, l->level);
        launch_level(p, l + before, n - before, s, early, ahead);
        /* a library may launch what is not one kernel, or no kernel */
        alone = n - before == 1 && l[n - 1].way != LAUNCH_LIBRARY;
    }
    if (s->until > 0) alone = false;
    join_side_stream(s);
    return alone;
}

/* Captured in a stream of its own: others may be at work in the device's. */
static cudaError_t capture(const n2_device_program *p, int runs, streams *s, cudaGraph_t *graph) {
    cudaError_t error = cudaStreamBeginCapture(s->stream[0], cudaStreamCaptureModeThreadLocal);
    if (error != cudaSuccess) return error;
    bool alone = false;
    for (int k = 0; k < runs; k++) alone = launch_all(p, k ? p->again : p->launches, alone, s);
    error = cudaGetLastError();
    const cudaError_t ended = cudaStreamEndCapture(s->stream[0], graph);
    return error != cudaSuccess ? error : ended;
}

static cudaError_t open_streams(streams *s) {
    cudaError_t error = cudaEventCreateWithFlags(&s->parted, cudaEventDisableTiming);
    if (error == cudaSuccess) error = cudaEventCreateWithFlags(&s->back, cudaEventDisableTiming);
    if (error == cudaSuccess) error = cudaStreamCreateWithFlags(&s->side, cudaStreamNonBlocking);
    for (int k = 0; k < N_LAUNCH_KINDS && error == cudaSuccess; k++) {
        error = cudaStreamCreateWithFlags(&s->stream[k], cudaStreamNonBlocking);
        if (error == cudaSuccess)
            error = cudaEventCreateWithFlags(&s->met[k], cudaEventDisableTiming);
    }
    return error;
}

static void close_streams(const streams *s) {
    if (s->parted) cudaEventDestroy(s->parted);
    if (s->back) cudaEventDestroy(s->back);
    if (s->side) cudaStreamDestroy(s->side);
    for (int k = 0; k < N_LAUNCH_KINDS; k++) {
        if (s->met[k]) cudaEventDestroy(s->met[k]);
        if (s->stream[k]) cudaStreamDestroy(s->stream[k]);
    }
}

/* A library's failure has a sentence already. */
static n2ce_status make_graph(n2_device_program *p, n2ce_ctx *ctx, int runs, cudaGraphExec_t *out) {
    streams s = {};
    cudaGraph_t graph = NULL;
    cudaError_t error = open_streams(&s);
    if (error == cudaSuccess) error = capture(p, runs, &s, &graph);
    n2ce_status status = p->queue->status;
    if (error == cudaSuccess && status == N2CE_OK) error = cudaGraphInstantiate(out, graph, 0);
    if (graph) cudaGraphDestroy(graph);
    close_streams(&s);
    if (status == N2CE_OK) status = n2_gpu_check(ctx, error, "make a graph of the plan");
    return status;
}

/* ---- the interface ------------------------------------------------------- */

n2ce_status n2_cuda_queue_new(n2_device *d, n2ce_ctx *ctx, n2_device_state *state,
                              void *const *watched, n2_queue **out) {
    n2_queue *q = (n2_queue *)n2_alloc(ctx, 1, sizeof *q);
    *out = q;
    if (!q) return N2CE_ENOMEM;
    q->device = d;
    q->ctx = ctx;
    q->state = state;
    q->watched = watched;
    q->strict = ((gpu_device *)d)->strict;
    q->fuses_mlps = ((gpu_device *)d)->fuses_mlps;
    q->multiprocessors = ((gpu_device *)d)->multiprocessors;
    return N2CE_OK;
}

/* The end comes after everything else, or beside the last of it. Returns how many levels there
 * are. */
static size_t note_end(n2_queue *q, size_t levels) {
    bool alone = levels == 0;
    for (size_t i = 0; i < q->n && !alone; i++)
        alone = q->list[i].level == (int)levels - 1 && minds_end(q, &q->list[i]);
    job j;
    memset(&j, 0, sizeof j);
    j.kind = JOB_END;
    j.state = q->state;
    noted *n = n2_queue_add(q, &j, 1);
    if (!n) return levels;
    n->level = (int)levels - !alone;
    n->chain = q->n - 1;
    return levels + alone;
}

static n2ce_status build(n2_device_program *p, bool ends) {
    n2_queue *q = p->queue;
    for (size_t i = 0; i < q->n && !ends; i++) q->list[i].kept = true;
    n2_wide_simplify(q);
    n2_queue_simplify(q);
    n2_queue_settle_updates(q, q->fuses_mlps && ends);
    size_t levels = q->fuses_mlps ? n2_fused_mlp_schedule(q, ends) : n2_queue_schedule(q);
    n2_library_settle(q);
    n2_products_settle(q);
    n2_queue_upload_lists(q);
    if (ends) levels = note_end(q, levels);
    n2_queue_sort_levels(q, levels);
    N2_TRY(q->status);
    n2_queue_choose_side_stream(q, levels);
    p->launches = (launch *)n2_alloc(q->ctx, levels * N_LAUNCH_KINDS + 1, sizeof *p->launches);
    p->again = (launch *)n2_alloc(q->ctx, levels * N_LAUNCH_KINDS + 1, sizeof *p->again);
    if (!p->launches || !p->again) return N2CE_ENOMEM;
    if (q->n == 0) return N2CE_OK;
    N2_TRY(upload_jobs(p, levels));
    find_preludes(p);
    complete_again(p);
    return make_graph(p, q->ctx, 1, &p->one);
}

n2ce_status n2_cuda_program_new(n2_queue *queue, bool ends, n2_device_program **out) {
    *out = NULL;
    n2_device_program *p = (n2_device_program *)n2_alloc(queue->ctx, 1, sizeof *p);
    if (!p) {
        n2_queue_free(queue);
        return N2CE_ENOMEM;
    }
    p->device = (gpu_device *)queue->device;
    p->queue = queue;
    const n2ce_status status = build(p, ends);
    if (status == N2CE_OK)
        *out = p;
    else
        n2_cuda_program_free(p);
    return status;
}

void n2_cuda_program_free(n2_device_program *p) {
    if (!p) return;
    n2ce_ctx *ctx = p->queue->ctx;
    cudaStreamSynchronize(p->device->stream);
    if (p->one) cudaGraphExecDestroy(p->one);
    if (p->some) cudaGraphExecDestroy(p->some);
    if (p->more) cudaGraphExecDestroy(p->more);
    p->device->api.free(&p->device->api, p->jobs);
    n2_queue_free(p->queue);
    n2_free(ctx, p->launches);
    n2_free(ctx, p->again);
    n2_free(ctx, p);
}

/* As many of n runs as graphs of so many have room for; the graph is made if it pays. */
static n2ce_status run_several(n2_device_program *p, n2ce_ctx *ctx, int runs, uint64_t least,
                               cudaGraphExec_t *graph, uint64_t *n) {
    if (*n >= least && !*graph && p->n_launches * (size_t)runs <= MOST_NODES)
        N2_TRY(make_graph(p, ctx, runs, graph));
    for (; *graph && *n >= (uint64_t)runs; *n -= (uint64_t)runs)
        GPU_TRY(ctx, cudaGraphLaunch(*graph, p->device->stream), "run the plan");
    return N2CE_OK;
}

n2ce_status n2_cuda_program_run(n2_device_program *p, n2ce_ctx *ctx, uint64_t n) {
    if (p->n_launches == 0) return N2CE_OK;
    GPU_TRY(ctx, cudaSetDevice(p->device->index), "choose the GPU");
    N2_TRY(run_several(p, ctx, MORE_RUNS, 2 * MORE_RUNS, &p->more, &n));
    N2_TRY(run_several(p, ctx, SOME_RUNS, SOME_RUNS, &p->some, &n));
    for (; n > 0; n--) GPU_TRY(ctx, cudaGraphLaunch(p->one, p->device->stream), "run the plan");
    return N2CE_OK;
}

size_t n2_cuda_program_launches(const n2_device_program *p) {
    size_t n = 0;
    for (size_t k = 0; k < p->n_launches; k++)
        n += n2_has_several(p->launches[k].way) ? p->launches[k].blocks : 1;
    return n;
}
