/* A library of matrix products for the emulated GPU: a host's function plays the part of cuBLASLt,
 * if N2CE_EMULATED_LIBRARY is set. It wants its products as the real one does, shape and addresses
 * at the end, and makes them when the graph comes to them. */
#include "cuda/library/library.h"

#include <stdio.h>
#include <stdlib.h>

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
static n2ce_status make(n2_queue *, void *, const job *j, void **call) {
    *call = j->product.m == 13 ? NULL : new job(*j);
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

static n2ce_status launch(n2ce_ctx *, void *, const void *call, cudaStream_t stream) {
    const job j = *(const job *)call;
    emulated_launch(stream, 1, 1, 0, [=] { multiply(&j); });
    return N2CE_OK;
}

static void release(void *, void *call) { delete (job *)call; }

const library_lane n2_matmul_lane = {"matmul", N2_OP_matmul, open_emulated, admits,
                                     pays,     make,         launch,        release,
                                     close_emulated};
