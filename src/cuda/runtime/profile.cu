/* Where the time of a run goes: its launches one after the other, each between two events. What a
 * run does side by side, or begins early, it does not here, so the sum is more than a run takes. */
#include "cuda/wide/wide.h"
#include "program.h"

#include <stdlib.h>
#include <string.h>

/* A launch, or one of the calls or wide jobs of it, and its time; or several of the same. */
typedef struct piece {
    const launch *l;
    uint32_t number;
    float ms;
    uint32_t times;
} piece;

typedef struct profile {
    n2_device_program *p;
    piece *pieces;
    cudaEvent_t *events; /* one more */
    size_t n;
} profile;

/* Whether a job is launched by l, however it is: as a layer of a fused MLP, say. */
static bool is_of(const n2_queue *q, const launch *l, const noted *n, bool adam) {
    const bool fused = n2_is_mlp_layer(n) || n->fused_gradient || n->taken;
    (void)q;
    return n2_is_fused(l->way) ? fused : !fused && n2_launch_kind_of(&n->j, adam) == l->way;
}

/* The job of a call of a library, or the wide job, that has this number at its level. */
static const noted *job_of_piece(const n2_queue *q, const piece *x) {
    uint32_t number = 0;
    for (const uint32_t i : n2_jobs_at(q, x->l->level)) {
        const noted *n = &q->list[i];
        if (n->j.n_blocks > 0 && is_of(q, x->l, n, false) && number++ == x->number) return n;
    }
    return NULL;
}

/* ---- measuring ----------------------------------------------------------- */

static void launch_piece(const profile *f, const piece *x, cudaStream_t stream) {
    const noted *n;
    if (x->l->way == LAUNCH_LIBRARY)
        n2_library_launch(f->p->queue, x->l->first_call + x->number, 1, stream);
    else if (x->l->way != LAUNCH_WIDE)
        n2_launch_one(f->p, x->l, stream, false, false);
    else if ((n = job_of_piece(f->p->queue, x)))
        n2_wide_launch_one(f->p->queue, &n->j, stream);
}

static cudaError_t capture(const profile *f, cudaStream_t stream, cudaGraph_t *graph) {
    cudaError_t error = cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);
    if (error != cudaSuccess) return error;
    for (size_t i = 0; i < f->n; i++) {
        cudaEventRecordWithFlags(f->events[i], stream, cudaEventRecordExternal);
        launch_piece(f, &f->pieces[i], stream);
    }
    error = cudaEventRecordWithFlags(f->events[f->n], stream, cudaEventRecordExternal);
    const cudaError_t ended = cudaStreamEndCapture(stream, graph);
    return error != cudaSuccess ? error : ended;
}

static cudaError_t read_times(profile *f, bool first) {
    for (size_t i = 0; i < f->n; i++) {
        float ms;
        const cudaError_t error = cudaEventElapsedTime(&ms, f->events[i], f->events[i + 1]);
        if (error != cudaSuccess) return error;
        if (first || ms < f->pieces[i].ms) f->pieces[i].ms = ms;
    }
    return cudaSuccess;
}

/* The least of three runs. */
static cudaError_t run(profile *f, cudaGraph_t graph) {
    cudaGraphExec_t runs;
    cudaError_t error = cudaGraphInstantiate(&runs, graph, 0);
    if (error != cudaSuccess) return error;
    for (int k = 0; k < 3 && error == cudaSuccess; k++) {
        error = cudaGraphLaunch(runs, f->p->device->stream);
        if (error == cudaSuccess) error = cudaStreamSynchronize(f->p->device->stream);
        if (error == cudaSuccess) error = read_times(f, k == 0);
    }
    cudaGraphExecDestroy(runs);
    return error;
}

static cudaError_t measure(profile *f) {
    cudaStream_t stream = NULL;
    cudaGraph_t graph = NULL;
    cudaError_t error = cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    for (size_t i = 0; i <= f->n && error == cudaSuccess; i++)
        error = cudaEventCreateWithFlags(&f->events[i], cudaEventDefault);
    if (error == cudaSuccess) error = capture(f, stream, &graph);
    if (error == cudaSuccess) error = run(f, graph);
    if (graph) cudaGraphDestroy(graph);
    if (stream) cudaStreamDestroy(stream);
    for (size_t i = 0; i <= f->n; i++)
        if (f->events[i]) cudaEventDestroy(f->events[i]);
    return error;
}

/* ---- in words ------------------------------------------------------------ */

static const char *way_of(launch_kind way) {
    static const char *const names[] = {"side", "jobs", "products", "library", "wide", "updates"};
    return way < LAUNCH_FUSED ? names[way] : "fused MLP";
}

static int longest_first(const void *a, const void *b) {
    const float x = ((const piece *)a)->ms, y = ((const piece *)b)->ms;
    return (x < y) - (x > y);
}

static void add_job(n2_text *out, const noted *n, const char *after) {
    char shape[64];
    if (n->node)
        n2_text_add(out, " %s %s%s", n->node->op->name, n2_shape_text(n->node->shape, shape),
                    after);
    else
        n2_text_add(out, " a job of %lld%s", (long long)n->j.n, after);
}

/* Those of a launch that share it: some of them, those with most numbers first. */
static void add_jobs(n2_text *out, const n2_queue *q, const launch *l) {
    enum { SHOWN = 4 };
    const bool adam = n2_has_adam(q, l->level);
    const noted *most[SHOWN] = {};
    int n = 0;
    for (const uint32_t i : n2_jobs_at(q, l->level)) {
        const noted *one = &q->list[i];
        if (!is_of(q, l, one, adam)) continue;
        n++;
        for (const noted *&place : most)
            if (!place || place->j.n < one->j.n) {
                const noted *before = place;
                place = one;
                if (!(one = before)) break;
            }
    }
    for (const noted *one : most)
        if (one) add_job(out, one, ",");
    n2_text_add(out, " %d jobs", n);
}

static void add_piece(n2_text *out, const n2_queue *q, const piece *x, double total) {
    const noted *n = n2_has_several(x->l->way) ? job_of_piece(q, x) : NULL;
    n2_text_add(out, "%9.1f us %5.1f %%  ", 1e3 * (double)x->ms, 100 * (double)x->ms / total);
    if (n)
        n2_text_add(out, "%4u x %-8s", x->times, way_of(x->l->way));
    else
        n2_text_add(out, "level %-4d %-9s %6u blocks ", x->l->level, way_of(x->l->way),
                    x->l->blocks);
    if (n && x->l->way == LAUNCH_WIDE) n2_text_add(out, " %s:", n2_wide_name(&n->j));
    if (n)
        add_job(out, n, "");
    else
        add_jobs(out, q, x->l);
    n2_text_add(out, "\n");
}

static void add_ways(n2_text *out, const profile *f) {
    for (int way = 0; way <= LAUNCH_FUSED; way++) {
        double ms = 0;
        size_t n = 0;
        for (size_t i = 0; i < f->n; i++) {
            const launch_kind of = f->pieces[i].l->way;
            if ((of < LAUNCH_FUSED ? of : LAUNCH_FUSED) != way) continue;
            ms += (double)f->pieces[i].ms;
            n++;
        }
        if (n) n2_text_add(out, "%9.3f ms  %zu %s\n", ms, n, way_of((launch_kind)way));
    }
}

/* Whether they are of one op on one shape: the same for another tile of rows, or another layer. */
static bool are_alike(const n2_queue *q, const piece *a, const piece *b) {
    if (!n2_has_several(a->l->way) || a->l->way != b->l->way) return false;
    const noted *x = job_of_piece(q, a), *y = job_of_piece(q, b);
    return x && y && x->node && y->node && x->node->op == y->node->op &&
           n2_same_shape(x->node->shape, y->node->shape);
}

/* Pieces that are alike become one. */
static size_t gather_alike(const n2_queue *q, piece *pieces, size_t n) {
    size_t left = 0;
    for (size_t i = 0; i < n; i++) {
        size_t k = 0;
        while (k < left && !are_alike(q, &pieces[k], &pieces[i])) k++;
        if (k < left) {
            pieces[k].ms += pieces[i].ms;
            pieces[k].times++;
        } else {
            pieces[left++] = pieces[i];
        }
    }
    return left;
}

/* Those that take a five hundredth of the time at least. */
static void describe(n2_text *out, const profile *f) {
    double total = 0, shown = 0;
    size_t n = 0;
    for (size_t i = 0; i < f->n; i++) total += (double)f->pieces[i].ms;
    n2_text_add(out, "%zu launches, one after the other: %.3f ms\n", f->n, total);
    add_ways(out, f);
    const size_t kinds = gather_alike(f->p->queue, f->pieces, f->n);
    qsort(f->pieces, kinds, sizeof *f->pieces, longest_first);
    for (; n < kinds && (double)f->pieces[n].ms >= total / 500; n++) {
        add_piece(out, f->p->queue, &f->pieces[n], total);
        shown += (double)f->pieces[n].ms;
    }
    n2_text_add(out, "%9.1f us        %zu others\n", 1e3 * (total - shown), kinds - n);
}

static void fill_pieces(profile *f) {
    for (size_t k = 0; k < f->p->n_launches; k++) {
        const launch *l = &f->p->launches[k];
        const uint32_t n = n2_has_several(l->way) ? l->blocks : 1;
        for (uint32_t i = 0; i < n; i++) f->pieces[f->n++] = piece{l, i, 0, 1};
    }
}

n2ce_status n2_cuda_program_profile(n2_device_program *p, n2ce_ctx *ctx, n2_text *out) {
    const size_t most = n2_cuda_program_launches(p) + 1;
    profile f = {p, (piece *)n2_alloc(ctx, most, sizeof(piece)),
                 (cudaEvent_t *)n2_alloc(ctx, most, sizeof(cudaEvent_t)), 0};
    n2ce_status status = f.pieces && f.events ? N2CE_OK : N2CE_ENOMEM;
    if (status == N2CE_OK) {
        fill_pieces(&f);
        status = n2_gpu_check(ctx, cudaSetDevice(p->device->index), "choose the GPU");
    }
    if (status == N2CE_OK) status = n2_gpu_check(ctx, measure(&f), "time the plan");
    if (status == N2CE_OK) describe(out, &f);
    n2_free(ctx, f.pieces);
    n2_free(ctx, f.events);
    return status;
}
