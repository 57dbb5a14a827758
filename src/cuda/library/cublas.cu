/* Matrix products by cuBLASLt.
 *
 * Our matrices lie row by row, its matrices column by column; what is [r x c] to us, with rows on
 * end, is [c x r] to it. So out = a b is out^T = b^T a^T to it: b is its first factor, a its
 * second, m and n change places, and since every matrix is transposed by the way it is read, a
 * factor is transposed for it exactly if it is for us. A bias that has a number for each of our
 * columns has one for each of its rows, which is what its epilogue adds.
 *
 * Same bytes every time: the algorithm is what the library's heuristics name first for a shape,
 * never what a stopwatch says; partial sums along k lie in the workspace and are added in order. */
#ifndef N2_EMULATE
#include "library.h"

#include "dynamic.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if __has_include(<cublasLt.h>)
#include <cublasLt.h>

enum { WORKSPACE = 32 << 20, LEAST_VERSION = 120000 };

/* ---- the library --------------------------------------------------------- */

#define FUNCTIONS(F)                        \
    F(cublasLtCreate)                       \
    F(cublasLtDestroy)                      \
    F(cublasLtGetVersion)                   \
    F(cublasLtGetStatusString)              \
    F(cublasLtMatmulDescCreate)             \
    F(cublasLtMatmulDescDestroy)            \
    F(cublasLtMatmulDescSetAttribute)       \
    F(cublasLtMatrixLayoutCreate)           \
    F(cublasLtMatrixLayoutDestroy)          \
    F(cublasLtMatrixLayoutSetAttribute)     \
    F(cublasLtMatmulPreferenceCreate)       \
    F(cublasLtMatmulPreferenceDestroy)      \
    F(cublasLtMatmulPreferenceSetAttribute) \
    F(cublasLtMatmulAlgoGetHeuristic)       \
    F(cublasLtMatmulAlgoConfigGetAttribute) \
    F(cublasLtMatmul)

/* What an algorithm is chosen by. No gaps: compared byte by byte. */
typedef struct product_key {
    int64_t m, n, k, stride_a, stride_b, stride_out;
    int32_t batches, ta, tb, strict;
    int32_t biased, adds;      /* adds: something that has the shape of the output */
    uint32_t align_a, align_b; /* bytes: powers of two, */
    uint32_t align_c, align_d; /* 256 at most */
} product_key;

typedef struct chosen {
    product_key key;
    bool found; /* the library has an algorithm */
    cublasLtMatmulAlgo_t algorithm;
    size_t workspace; /* bytes */
} chosen;

typedef struct cublas {
#define FUNCTION_FIELD(name) decltype(&::name) name;
    FUNCTIONS(FUNCTION_FIELD)
    cublasLtHandle_t handle;
    pthread_mutex_t lock; /* of what follows */
    chosen *list;
    size_t n, room;
} cublas;

/* Returns the name of a function that is missing; NULL: none is. */
static const char *find_functions(void *file, cublas *b) {
#define FIND_FUNCTION(name)                                        \
    b->name = (decltype(b->name))n2_library_function(file, #name); \
    if (!b->name) return #name;
    FUNCTIONS(FIND_FUNCTION)
    return NULL;
}

static bool open_functions(cublas *b, char *about, size_t bytes) {
    static const char *const names[] = {"libcublasLt.so.13", "libcublasLt.so.12", NULL};
    void *file = n2_library_load(names);
    if (!file) {
        snprintf(about, bytes, "There is no %s and no %s on this machine.", names[0], names[1]);
        return false;
    }
    const char *missing = find_functions(file, b);
    if (missing) {
        snprintf(about, bytes, "The cuBLASLt of this machine has no function %s.", missing);
        return false;
    }
    const unsigned version = (unsigned)b->cublasLtGetVersion();
    snprintf(about, bytes, "cuBLASLt %u.%u.%u", version / 10000, version / 100 % 100,
             version % 100);
    if (version < LEAST_VERSION) {
        snprintf(about, bytes, "This machine has cuBLASLt %u.%u; n2ce wants 12.0.", version / 10000,
                 version / 100 % 100);
        return false;
    }
    return true;
}

static void *open_cublas(int device, char *about, size_t bytes) {
    cublas *b = (cublas *)calloc(1, sizeof *b);
    if (!b) {
        snprintf(about, bytes, "There is no memory for cuBLASLt.");
        return NULL;
    }
    if (open_functions(b, about, bytes)) {
        cudaSetDevice(device);
        const cublasStatus_t status = b->cublasLtCreate(&b->handle);
        if (status == CUBLAS_STATUS_SUCCESS) {
            pthread_mutex_init(&b->lock, NULL);
            return b;
        }
        snprintf(about, bytes, "cuBLASLt could not begin: %s.", b->cublasLtGetStatusString(status));
    }
    free(b);
    return NULL;
}

static void close_cublas(void *handle) {
    cublas *b = (cublas *)handle;
    b->cublasLtDestroy(b->handle);
    pthread_mutex_destroy(&b->lock);
    free(b->list);
    free(b);
}

static n2ce_status check(n2ce_ctx *ctx, const cublas *b, cublasStatus_t status, const char *what) {
    if (status == CUBLAS_STATUS_SUCCESS) return N2CE_OK;
    return n2_fail(ctx, N2CE_EDEVICE,
                   "cuBLASLt could not %s: %s (status %d). N2CE_CUDA_LIBRARY=off does without it.",
                   what, b->cublasLtGetStatusString(status), (int)status);
}

/* ---- which products ------------------------------------------------------ */

static bool admits(const job *j) {
    const job_product *p = &j->product;
    const bool sums = j->add && (j->gate || j->addend || j->in[3]);
    return p->m > 0 && p->n > 0 && p->k > 0 && !sums;
}

/* Alone the library is ahead from 2^22 on, by a microsecond or two; that much a launch of its own
 * costs, which cannot begin early and shares nothing with others. Narrow networks, whose trainings
 * take a second, are not worth the second that loading it takes. docs/cuda.md has the times. */
static bool pays(const job *j) {
    const job_product *p = &j->product;
    enum { LEAST_SIDE = 512 };
    const double least = 0x1p26, plenty = 0x1p30; /* products of two numbers */
    const double all = (double)p->m * (double)p->n * (double)p->k * p->batches;
    const bool slim = p->m < LEAST_SIDE || p->n < LEAST_SIDE || p->k < LEAST_SIDE;
    return all >= (slim ? plenty : least);
}

/* ---- a call -------------------------------------------------------------- */

typedef struct product_call {
    cublasLtMatmulDesc_t op;
    cublasLtMatrixLayout_t first, second, out; /* its factors; what is added lies as the output */
    const float *a, *b, *c;
    float *d;
    float beta;
    cublasLtMatmulAlgo_t algorithm;
    size_t workspace; /* bytes */
} product_call;

/* A matrix of ours, [rows x columns] with rows on end, and its batches. */
static cublasStatus_t make_layout(const cublas *b, cublasLtMatrixLayout_t *out, int64_t rows,
                                  int64_t columns, int32_t batches, int64_t stride) {
    cublasStatus_t status =
        b->cublasLtMatrixLayoutCreate(out, CUDA_R_32F, (uint64_t)columns, (uint64_t)rows, columns);
    if (status != CUBLAS_STATUS_SUCCESS || batches == 1) return status;
    status = b->cublasLtMatrixLayoutSetAttribute(*out, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batches,
                                                 sizeof batches);
    if (status != CUBLAS_STATUS_SUCCESS) return status;
    return b->cublasLtMatrixLayoutSetAttribute(*out, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
                                               &stride, sizeof stride);
}

static cublasStatus_t make_layouts(const cublas *b, const job_product *p, product_call *c) {
    cublasStatus_t status = make_layout(b, &c->first, p->tb ? p->n : p->k, p->tb ? p->k : p->n,
                                        p->batches, p->stride_b);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = make_layout(b, &c->second, p->ta ? p->k : p->m, p->ta ? p->m : p->k, p->batches,
                             p->stride_a);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = make_layout(b, &c->out, p->m, p->n, p->batches, p->stride_out);
    return status;
}

static cublasStatus_t set_bias(const cublas *b, cublasLtMatmulDesc_t op, const float *bias) {
    const cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_BIAS;
    if (!bias) return CUBLAS_STATUS_SUCCESS;
    const cublasStatus_t status = b->cublasLtMatmulDescSetAttribute(
        op, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue);
    if (status != CUBLAS_STATUS_SUCCESS) return status;
    return b->cublasLtMatmulDescSetAttribute(op, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias,
                                             sizeof bias);
}

static cublasStatus_t make_op(const cublas *b, const job *j, cublasLtMatmulDesc_t *op) {
    const job_product *p = &j->product;
    const cublasComputeType_t compute =
        p->strict ? CUBLAS_COMPUTE_32F : CUBLAS_COMPUTE_32F_FAST_TF32;
    const cublasOperation_t first = p->tb ? CUBLAS_OP_T : CUBLAS_OP_N;
    const cublasOperation_t second = p->ta ? CUBLAS_OP_T : CUBLAS_OP_N;
    cublasStatus_t status = b->cublasLtMatmulDescCreate(op, compute, CUDA_R_32F);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = b->cublasLtMatmulDescSetAttribute(*op, CUBLASLT_MATMUL_DESC_TRANSA, &first,
                                                   sizeof first);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = b->cublasLtMatmulDescSetAttribute(*op, CUBLASLT_MATMUL_DESC_TRANSB, &second,
                                                   sizeof second);
    return status == CUBLAS_STATUS_SUCCESS ? set_bias(b, *op, j->in[3]) : status;
}

static void release(void *handle, void *call) {
    const cublas *b = (const cublas *)handle;
    product_call *c = (product_call *)call;
    if (!c) return;
    if (c->op) b->cublasLtMatmulDescDestroy(c->op);
    if (c->first) b->cublasLtMatrixLayoutDestroy(c->first);
    if (c->second) b->cublasLtMatrixLayoutDestroy(c->second);
    if (c->out) b->cublasLtMatrixLayoutDestroy(c->out);
    free(c);
}

/* ---- algorithms ---------------------------------------------------------- */

static uint32_t alignment_of(const void *x) {
    uint32_t bytes = 256;
    while ((uintptr_t)x % bytes != 0) bytes /= 2;
    return bytes;
}

static product_key key_of(const job *j, const product_call *c) {
    const job_product *p = &j->product;
    product_key key;
    memset(&key, 0, sizeof key);
    key.m = p->m, key.n = p->n, key.k = p->k;
    key.batches = p->batches;
    key.stride_a = p->stride_a, key.stride_b = p->stride_b, key.stride_out = p->stride_out;
    key.ta = p->ta, key.tb = p->tb, key.strict = p->strict;
    key.biased = j->in[3] ? (int32_t)alignment_of(j->in[3]) : 0;
    key.adds = c->beta != 0;
    key.align_a = alignment_of(c->a);
    key.align_b = alignment_of(c->b);
    key.align_c = alignment_of(c->c);
    key.align_d = alignment_of(c->d);
    return key;
}

static cublasStatus_t prefer(const cublas *b, cublasLtMatmulPreference_t preference,
                             const product_key *key) {
    const uint64_t workspace = WORKSPACE;
    /* partial sums of their own, added in order; not added up in the output */
    const uint32_t schemes =
        CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE | CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE;
    const struct {
        cublasLtMatmulPreferenceAttributes_t name;
        const void *value;
        size_t bytes;
    } wishes[] = {
        {CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace, sizeof workspace},
        {CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &schemes, sizeof schemes},
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, &key->align_b, sizeof key->align_b},
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, &key->align_a, sizeof key->align_a},
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, &key->align_c, sizeof key->align_c},
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, &key->align_d, sizeof key->align_d},
    };
    for (const auto &wish : wishes) {
        const cublasStatus_t status =
            b->cublasLtMatmulPreferenceSetAttribute(preference, wish.name, wish.value, wish.bytes);
        if (status != CUBLAS_STATUS_SUCCESS) return status;
    }
    return CUBLAS_STATUS_SUCCESS;
}

/* Whether slices of k, if there are any, are added up in an order that is always the same. */
static bool is_repeatable(const cublas *b, const cublasLtMatmulAlgo_t *algorithm) {
    int32_t slices = 1;
    uint32_t scheme = CUBLASLT_REDUCTION_SCHEME_NONE;
    size_t written;
    b->cublasLtMatmulAlgoConfigGetAttribute(algorithm, CUBLASLT_ALGO_CONFIG_SPLITK_NUM, &slices,
                                            sizeof slices, &written);
    b->cublasLtMatmulAlgoConfigGetAttribute(algorithm, CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME,
                                            &scheme, sizeof scheme, &written);
    return slices <= 1 || scheme != CUBLASLT_REDUCTION_SCHEME_INPLACE;
}

/* The first that the heuristics name. */
static cublasStatus_t choose(const cublas *b, const product_call *c, const product_key *key,
                             chosen *out) {
    enum { MOST = 8 };
    cublasLtMatmulHeuristicResult_t results[MOST];
    cublasLtMatmulPreference_t preference = NULL;
    int n = 0;
    memset(out, 0, sizeof *out);
    out->key = *key;
    cublasStatus_t status = b->cublasLtMatmulPreferenceCreate(&preference);
    if (status == CUBLAS_STATUS_SUCCESS) status = prefer(b, preference, key);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = b->cublasLtMatmulAlgoGetHeuristic(b->handle, c->op, c->first, c->second, c->out,
                                                   c->out, preference, MOST, results, &n);
    if (preference) b->cublasLtMatmulPreferenceDestroy(preference);
    if (status == CUBLAS_STATUS_NOT_SUPPORTED) return CUBLAS_STATUS_SUCCESS; /* none is found */
    for (int i = 0; status == CUBLAS_STATUS_SUCCESS && i < n && !out->found; i++) {
        if (results[i].state != CUBLAS_STATUS_SUCCESS || results[i].workspaceSize > WORKSPACE)
            continue;
        if (!is_repeatable(b, &results[i].algo)) continue;
        out->found = true;
        out->algorithm = results[i].algo;
        out->workspace = results[i].workspaceSize;
    }
    return status;
}

static bool has_room(cublas *b) {
    if (b->n < b->room) return true;
    const size_t room = b->room ? 2 * b->room : 64;
    chosen *list = (chosen *)realloc(b->list, room * sizeof *list);
    if (!list) return false;
    b->list = list;
    b->room = room;
    return true;
}

/* Chosen once for each shape, and kept. */
static cublasStatus_t look_up(cublas *b, const product_call *c, const product_key *key,
                              chosen *out) {
    pthread_mutex_lock(&b->lock);
    size_t i = 0;
    while (i < b->n && memcmp(&b->list[i].key, key, sizeof *key) != 0) i++;
    cublasStatus_t status = CUBLAS_STATUS_SUCCESS;
    if (i < b->n)
        *out = b->list[i];
    else
        status = choose(b, c, key, out);
    if (status == CUBLAS_STATUS_SUCCESS && i == b->n && has_room(b)) b->list[b->n++] = *out;
    pthread_mutex_unlock(&b->lock);
    return status;
}

/* ---- the lane ------------------------------------------------------------ */

static n2ce_status fill_call(n2ce_ctx *ctx, cublas *b, const job *j, product_call *c, bool *found) {
    chosen algorithm;
    c->a = j->in[0];
    c->b = j->in[1];
    c->d = j->out;
    c->c = j->addend ? j->addend : j->out;
    c->beta = j->addend || j->add ? 1.0f : 0.0f;
    N2_TRY(check(ctx, b, make_op(b, j, &c->op), "describe a matrix product"));
    N2_TRY(check(ctx, b, make_layouts(b, &j->product, c), "describe a matrix"));
    const product_key key = key_of(j, c);
    N2_TRY(check(ctx, b, look_up(b, c, &key, &algorithm), "choose an algorithm"));
    *found = algorithm.found;
    c->algorithm = algorithm.algorithm;
    c->workspace = algorithm.workspace;
    return N2CE_OK;
}

static n2ce_status make(n2ce_ctx *ctx, void *handle, const job *j, void **call, size_t *workspace) {
    product_call *c = (product_call *)calloc(1, sizeof *c);
    bool found = false;
    *call = NULL;
    if (!c) return N2CE_ENOMEM;
    const n2ce_status status = fill_call(ctx, (cublas *)handle, j, c, &found);
    *workspace = c->workspace;
    if (status == N2CE_OK && found)
        *call = c;
    else
        release(handle, c);
    return status;
}

/* The library may load a kernel the first time that it is asked for, while the stream is captured:
 * that is allowed if the thread says that it knows what it does. */
static n2ce_status launch(n2ce_ctx *ctx, void *handle, const void *call, void *workspace,
                          cudaStream_t stream) {
    const cublas *b = (const cublas *)handle;
    const product_call *c = (const product_call *)call;
    const float one = 1.0f;
    cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
    cudaThreadExchangeStreamCaptureMode(&mode);
    const cublasStatus_t status =
        b->cublasLtMatmul(b->handle, c->op, &one, c->b, c->first, c->a, c->second, &c->beta, c->c,
                          c->out, c->d, c->out, &c->algorithm, workspace, c->workspace, stream);
    cudaThreadExchangeStreamCaptureMode(&mode);
    return check(ctx, b, status, "multiply matrices");
}

const library_lane n2_matmul_lane = {1,    {N2_OP_matmul}, JOB_MATMUL, open_cublas, admits,
                                     pays, make,           launch,     release,     close_cublas};

#else /* no header: the lane is there, and has no library */

static void *open_none(int, char *about, size_t bytes) {
    snprintf(about, bytes, "This n2ce was built without cublasLt.h.");
    return NULL;
}
static bool admits_none(const job *) { return false; }

const library_lane n2_matmul_lane = {
    1, {N2_OP_matmul}, JOB_MATMUL, open_none, admits_none, admits_none, NULL, NULL, NULL, NULL};
#endif
#endif
