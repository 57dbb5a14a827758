/* Contexts, samples and tables for the tests of ratios. */
#ifndef TEST_SAMPLES_H
#define TEST_SAMPLES_H

#include "contexts.h"

#include "base/random.h"
#include "io/table.h"

#include <stdlib.h>
#include <string.h>

static inline double *new_doubles(size_t n) {
    double *x = calloc(n + 1, sizeof *x);
    assert_non_null(x);
    return x;
}

/* n independent normals; another stream, others. */
static inline double *normals(size_t n, double mean, double sd, uint32_t stream) {
    double *x = new_doubles(n);
    float *z = malloc((n + 1) * sizeof *z);
    assert_non_null(z);
    n2_fill_normal((n2_stream){.seed = 77, .stream = stream}, 0, n, z);
    for (size_t i = 0; i < n; i++) x[i] = mean + sd * (double)z[i];
    free(z);
    return x;
}

static inline double *uniforms(size_t n, uint32_t stream) {
    double *x = new_doubles(n);
    float *u = malloc((n + 1) * sizeof *u);
    assert_non_null(u);
    n2_fill_uniform((n2_stream){.seed = 77, .stream = stream}, 0, n, u);
    for (size_t i = 0; i < n; i++) x[i] = (double)u[i];
    free(u);
    return x;
}

/* n rows of (x, y), two normals of correlation rho. */
static inline double *correlated(size_t n, double rho, uint32_t stream) {
    double *x = normals(2 * n, 0, 1, stream);
    for (size_t i = 0; i < n; i++)
        x[2 * i + 1] = rho * x[2 * i] + sqrt(1 - rho * rho) * x[2 * i + 1];
    return x;
}

static inline n2ce_matrix matrix(const double *x, size_t rows, size_t cols) {
    return (n2ce_matrix){x, N2CE_F64, rows, cols, 0, 0};
}

/* A table of numbers; the caller keeps x. */
static inline n2_table *new_table(n2ce_ctx *ctx, const double *x, size_t rows, size_t cols) {
    const n2ce_matrix m = matrix(x, rows, cols);
    n2_table *t;
    assert_int_equal(n2_table_of_matrix(ctx, &m, "test", NULL, &t), N2CE_OK);
    return t;
}

static inline double mean_of(const double *x, size_t n) {
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += x[i];
    return sum / (double)n;
}

static inline double variance_of(const double *x, size_t n) {
    const double mean = mean_of(x, n);
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += (x[i] - mean) * (x[i] - mean);
    return sum / (double)(n - 1);
}

#endif
