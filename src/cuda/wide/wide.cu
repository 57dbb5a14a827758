#include "wide.h"

#include "attention.h"
#include "cuda/runtime/gpu_device.h"
#include "few.h"
#include "norm.h"
#include "pass.h"
#include "sums.h"

#include <string.h>

/* In the order of wide_id. */
static const wide_kernel kernels[] = {
    {"pass", n2_pass_launch, NULL},
    {"few", n2_few_launch, n2_few_prepare},
    {"norm", n2_wide_norm_launch, n2_wide_norm_prepare},
    {"sums", n2_wide_sums_launch, NULL},
    {"attention", n2_attention_launch, n2_attention_prepare},
};
static_assert(sizeof kernels / sizeof *kernels == N_WIDE_KERNELS, "a row for each wide_id");

/* ---- notes --------------------------------------------------------------- */

noted *n2_wide_add(n2_queue *q, const job *j, wide_id kernel, const void *about, size_t bytes) {
    if (q->status != N2CE_OK) return NULL;
    void *copy = n2_alloc(q->ctx, bytes, 1);
    if (!copy) {
        q->status = N2CE_ENOMEM;
        return NULL;
    }
    memcpy(copy, about, bytes);
    noted *n = n2_queue_add(q, j, 1);
    if (!n) {
        n2_free(q->ctx, copy);
        return NULL;
    }
    n->j.kind = JOB_WIDE;
    n->j.wide = job_wide{kernel, copy};
    return n;
}

void n2_wide_reads(noted *n, const n2_view *v) {
    n2_note_read(n, v->data, n2_floats_of(v->dtype, n2_elements(v->shape)));
}

void n2_wide_writes(noted *n, const n2_view *v) {
    n2_note_write(n, v->data, n2_floats_of(v->dtype, n2_elements(v->shape)));
}

bool n2_wide_pays(const n2_queue *q, int64_t elements) {
    enum { MANY = 1 << 20 };
    return elements >= MANY || ((const gpu_device *)q->device)->always_wide;
}

/* ---- launches ------------------------------------------------------------ */

bool n2_wide_waits(const n2_queue *q) { return ((const gpu_device *)q->device)->waits; }

size_t n2_wide_shared(const n2_queue *q) {
    return (size_t)((const gpu_device *)q->device)->most_shared;
}

cudaError_t n2_wide_prepare(int most_shared) {
    cudaError_t error = cudaSuccess;
    for (const wide_kernel &k : kernels)
        if (error == cudaSuccess && k.prepare) error = k.prepare(most_shared);
    return error;
}

void n2_wide_simplify(n2_queue *q) {
    n2_norms_add(q);
    n2_pass_fuse(q);
}

static bool is_at_work(const noted *n) { return n->j.kind == JOB_WIDE && n->j.n_blocks > 0; }

size_t n2_wide_at(const n2_queue *q, int level) {
    size_t n = 0;
    for (const uint32_t i : n2_jobs_at(q, level)) n += is_at_work(&q->list[i]);
    return n;
}

void n2_wide_launch(const n2_queue *q, int level, cudaStream_t stream, bool early) {
    for (const uint32_t i : n2_jobs_at(q, level)) {
        const noted *n = &q->list[i];
        if (!is_at_work(n)) continue;
        kernels[n->j.wide.kernel].launch(q, &n->j, stream, early);
        early = n2_wide_waits(q);
    }
}

void n2_wide_launch_one(const n2_queue *q, const job *j, cudaStream_t stream) {
    kernels[j->wide.kernel].launch(q, j, stream, false);
}

const char *n2_wide_name(const job *j) { return kernels[j->wide.kernel].name; }
