/* Libraries for the emulated GPU: a host's functions play the parts of cuBLASLt and cuDNN, if
 * N2CE_EMULATED_LIBRARY is set. They want their jobs as the real ones do, shape and addresses at
 * the end, and do them when the graph comes to them. */
#include "cuda/library/library.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *open_emulated(int, char *about, size_t bytes) {
    static int handle;
    const bool there = getenv("N2CE_EMULATED_LIBRARY") != NULL;
    snprintf(about, bytes, there ? "emulated library" : "The emulated GPU has no library.");
    return there ? &handle : NULL;
}

static void close_emulated(void *) {}

static bool admits(const job *j) {
    const bool sums = j->add && (j->gate || j->addend || j->in[3]);
    return j->product.m > 0 && j->product.n > 0 && j->product.k > 0 && !sums;
}

static bool pays(const job *j) {
    return (double)j->product.m * (double)j->product.n * (double)j->product.k >= 0x1p21;
}

/* Nothing for products with 13 rows: so that there is a shape which ours has to do after all. */
static n2ce_status make(n2ce_ctx *, void *, const job *j, void **call, size_t *workspace) {
    *call = j->product.m == 13 ? NULL : new job(*j);
    *workspace = 100;
    return N2CE_OK;
}

static float rounded(const job *j, float x) {
    return j->product.strict ? x : __uint_as_float(to_tf32(x));
}

static void multiply(const job *j) {
    const job_product *p = &j->product;
    for (int64_t i = 0; i < p->batches * p->m * p->n; i++) {
        const int64_t batch = i / (p->m * p->n), row = i / p->n % p->m, column = i % p->n;
        const float *a = j->in[0] + batch * p->stride_a, *b = j->in[1] + batch * p->stride_b;
        double sum = j->in[3] ? (double)j->in[3][column] : 0.0;
        for (int64_t k = 0; k < p->k; k++)
            sum += (double)rounded(j, a[p->ta ? k * p->m + row : row * p->k + k]) *
                   (double)rounded(j, b[p->tb ? column * p->k + k : k * p->n + column]);
        if (j->addend) sum += (double)j->addend[i];
        j->out[i] = (float)(j->add ? sum + (double)j->out[i] : sum);
    }
}

static n2ce_status launch(n2ce_ctx *, void *, const void *call, void *, cudaStream_t stream) {
    const job j = *(const job *)call;
    emulated_launch(stream, 1, 1, 1, 0, [=] { multiply(&j); });
    return N2CE_OK;
}

static void release(void *, void *call) { delete (job *)call; }

const library_lane n2_matmul_lane = {1,    {N2_OP_matmul}, JOB_MATMUL, open_emulated, admits, pays,
                                     make, launch,         release,    close_emulated};

/* ---- convolutions -------------------------------------------------------- */

static bool admits_conv(const job *j) { return j->conv.lines > 0; }

static bool pays_conv(const job *j) {
    const job_conv *v = &j->conv;
    return (double)v->rows * v->columns * v->c_in * v->c_out * v->lines * v->ow >= 0x1p14;
}

/* Nothing for pictures of 5 channels. What it wants for itself it spoils: nobody else may keep
 * anything there. */
enum { CONV_WORKSPACE = 256 };
static n2ce_status make_conv(n2ce_ctx *, void *, const job *j, void **call, size_t *workspace) {
    *call = j->conv.c_in == 5 ? NULL : new job(*j);
    *workspace = CONV_WORKSPACE;
    return N2CE_OK;
}

static double load_at(const job *j, const float *data, uint8_t type, int64_t i) {
    if (type != N2_NUMBER) return (double)n2_widen((n2_dtype)type, ((const uint16_t *)data)[i]);
    return (double)(j->conv.strict ? data[i] : __uint_as_float(to_tf32(data[i])));
}

/* The operands of a product: pixel `p` of y, place `s` of the kernel, channels a and b; false: the
 * pixel of x is outside. Kernels are [out][rows][columns][in]. */
static bool find_pixels(const job_conv *v, int64_t p, int64_t s, int64_t *x) {
    const int64_t line = p / v->ow, n = line / v->oh;
    const int64_t row = line % v->oh * v->stride_y + s / v->columns - v->top;
    const int64_t column = p % v->ow * v->stride_x + s % v->columns - v->left;
    *x = (n * v->h + row) * v->w + column;
    return row >= 0 && row < v->h && column >= 0 && column < v->w;
}

/* All products of the convolution, each added to the number of the output that it belongs to. */
static void add_products(const job *j, double *sums) {
    const job_conv *v = &j->conv;
    const int64_t places = (int64_t)v->rows * v->columns, pixels = (int64_t)v->lines * v->ow;
    for (int64_t i = 0; i < pixels * places; i++) {
        const int64_t p = i / places, s = i % places;
        int64_t pixel;
        if (!find_pixels(v, p, s, &pixel)) continue;
        for (int64_t ab = 0; ab < (int64_t)v->c_in * v->c_out; ab++) {
            const int64_t a = ab / v->c_out, b = ab % v->c_out;
            const int64_t x = pixel * v->c_in + a, y = p * v->c_out + b;
            const int64_t k = (b * places + s) * v->c_in + a;
            if (j->op == N2_OP_conv2d)
                sums[y] += load_at(j, j->in[0], v->type_x, x) * load_at(j, j->in[1], v->type_k, k);
            else if (j->op == N2_OP_conv2d_input)
                sums[x] += load_at(j, j->in[0], v->type_y, y) * load_at(j, j->in[1], v->type_k, k);
            else
                sums[k] += load_at(j, j->in[0], v->type_x, x) * load_at(j, j->in[1], v->type_y, y);
        }
    }
}

static void convolve(const job *j, void *workspace) {
    const job_conv *v = &j->conv;
    const uint8_t type = j->op == N2_OP_conv2d         ? v->type_y
                         : j->op == N2_OP_conv2d_input ? v->type_x
                                                       : v->type_k;
    double *sums = (double *)calloc((size_t)j->n, sizeof *sums);
    memset(workspace, 255, CONV_WORKSPACE);
    add_products(j, sums);
    for (int64_t i = 0; i < j->n; i++)
        if (type == N2_NUMBER)
            j->out[i] = (float)sums[i];
        else
            ((uint16_t *)j->out)[i] = n2_narrow((n2_dtype)type, (float)sums[i]);
    free(sums);
}

static n2ce_status launch_conv(n2ce_ctx *, void *, const void *call, void *workspace,
                               cudaStream_t stream) {
    const job j = *(const job *)call;
    emulated_launch(stream, 1, 1, 1, 0, [=] { convolve(&j, workspace); });
    return N2CE_OK;
}

const library_lane n2_convolution_lane = {
    3,           {N2_OP_conv2d, N2_OP_conv2d_input, N2_OP_conv2d_weight},
    JOB_CONV,    open_emulated,
    admits_conv, pays_conv,
    make_conv,   launch_conv,
    release,     close_emulated};
