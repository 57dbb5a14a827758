/* Facts about factors, solutions and eigenvalues. */
#include "close.h"

#include "base/linalg.h"
#include "base/numerics.h"
#include "base/random.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

static const double pi = 3.14159265358979324;

/* Around the panel of the factorisation and the unrolling of the loops. */
static const size_t sizes[] = {1, 2, 3, 4, 5, 7, 8, 9, 12, 16, 17, 33, 60};

static double *new_matrix(size_t rows, size_t cols) {
    double *m = calloc(rows * cols + 1, sizeof *m);
    assert_non_null(m);
    return m;
}

static double *copy_of(const double *a, size_t n) {
    double *copy = new_matrix(n, 1);
    memcpy(copy, a, n * sizeof *a);
    return copy;
}

static double *random_matrix(size_t rows, size_t cols, uint32_t stream) {
    double *m = new_matrix(rows, cols);
    float *z = malloc((rows * cols + 1) * sizeof *z);
    assert_non_null(z);
    n2_fill_normal((n2_stream){.seed = 7, .stream = stream}, 0, rows * cols, z);
    for (size_t i = 0; i < rows * cols; i++) m[i] = (double)z[i];
    free(z);
    return m;
}

/* a (n x m) times b (m x p), or times b' (b is p x m). */
static double *product(const double *a, const double *b, size_t n, size_t m, size_t p, bool turn) {
    double *c = new_matrix(n, p);
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < p; j++)
            for (size_t k = 0; k < m; k++)
                c[i * p + j] += a[i * m + k] * (turn ? b[j * m + k] : b[k * p + j]);
    return c;
}

/* X X' + I: its condition is harmless. */
static double *random_spd(size_t n) {
    double *x = random_matrix(n, n, (uint32_t)n);
    double *a = product(x, x, n, n, n, true);
    for (size_t i = 0; i < n; i++) a[i * n + i] += 1;
    free(x);
    return a;
}

static double *random_symmetric(size_t n) {
    double *a = random_matrix(n, n, 100 + (uint32_t)n);
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < i; j++) a[j * n + i] = a[i * n + j];
    return a;
}

static void spoil_upper(double *a, size_t n) {
    for (size_t i = 0; i < n; i++)
        for (size_t j = i + 1; j < n; j++) a[i * n + j] = N2_NAN;
}

static double *factor_of(const double *a, size_t n) {
    double *l = copy_of(a, n * n);
    spoil_upper(l, n);
    assert_true(n2_cholesky(l, n));
    return l;
}

static void assert_all_close(const double *actual, const double *expected, size_t n,
                             double absolute) {
    for (size_t i = 0; i < n; i++) assert_close(actual[i], expected[i], 0, absolute);
}

/* [[4,2],[2,5]] = [[2,0],[1,2]] [[2,1],[0,2]], det 16. */
static void a_factor_by_hand(void **state) {
    (void)state;
    double a[] = {4, 99, 2, 5}, b[] = {8, 9}, inverse[4];
    assert_true(n2_cholesky(a, 2));
    assert_all_close(a, (const double[]){2, 0, 1, 2}, 4, 0);
    assert_close(n2_cholesky_log_det(a, 2), log(16), 1e-15, 0);
    n2_cholesky_solve(a, 2, b, 1);
    assert_all_close(b, (const double[]){22. / 16, 20. / 16}, 2, 1e-15);
    n2_cholesky_inverse(a, 2, inverse);
    assert_all_close(inverse, (const double[]){5. / 16, -2. / 16, -2. / 16, 4. / 16}, 4, 1e-15);
}

/* A = L L', zeros above, and the upper triangle of A is never looked at. */
static void the_factor_multiplies_back(void **state) {
    (void)state;
    for (size_t s = 0; s < COUNT_OF(sizes); s++) {
        const size_t n = sizes[s];
        double *a = random_spd(n), *l = factor_of(a, n), *back = product(l, l, n, n, n, true);
        assert_all_close(back, a, n * n, 1e-14 * (double)(n * n + 10));
        for (size_t i = 0; i < n; i++)
            for (size_t j = i + 1; j < n; j++) assert_true(l[i * n + j] == 0);
        free(a), free(l), free(back);
    }
}

static void solutions_solve(void **state) {
    (void)state;
    const size_t columns[] = {1, 2, 3, 9};
    for (size_t s = 0; s < COUNT_OF(sizes) * COUNT_OF(columns); s++) {
        const size_t n = sizes[s / COUNT_OF(columns)], c = columns[s % COUNT_OF(columns)];
        double *a = random_spd(n), *l = factor_of(a, n), *b = random_matrix(n, c, 3);
        double *x = copy_of(b, n * c), *y = copy_of(b, n * c);
        n2_cholesky_solve(l, n, x, c);
        n2_lower_solve(l, n, y, c);
        double *ax = product(a, x, n, n, c, false), *ly = product(l, y, n, n, c, false);
        assert_all_close(ax, b, n * c, 1e-12);
        assert_all_close(ly, b, n * c, 1e-12);
        free(a), free(l), free(b), free(x), free(y), free(ax), free(ly);
    }
}

/* What solves for all unit vectors is the inverse, to the bit; also where the variables of the
 * second half have nothing to do with those of the first. */
static void the_factor_has_an_inverse(void **state) {
    (void)state;
    for (size_t s = 0; s < 2 * COUNT_OF(sizes); s++) {
        const size_t n = sizes[s / 2], half = s % 2 ? n / 2 : 0;
        double *a = random_spd(n), *inverse = new_matrix(n, n), *x = new_matrix(n, n);
        for (size_t i = half; i < n; i++)
            for (size_t j = 0; j < half; j++) a[i * n + j] = a[j * n + i] = 0;
        double *l = factor_of(a, n);
        memset(x, 0, n * n * sizeof *x);
        for (size_t i = 0; i < n; i++) x[i * n + i] = 1;
        n2_lower_inverse(l, n, inverse);
        double *one = product(l, inverse, n, n, n, false);
        assert_all_close(one, x, n * n, 1e-12);
        n2_lower_solve(l, n, x, n);
        for (size_t i = 0; i < n * n && n > 1; i++) assert_true(x[i] == inverse[i]);
        free(a), free(l), free(inverse), free(x), free(one);
    }
}

static void the_inverse_inverts_and_is_symmetric(void **state) {
    (void)state;
    for (size_t s = 0; s < COUNT_OF(sizes); s++) {
        const size_t n = sizes[s];
        double *a = random_spd(n), *l = factor_of(a, n), *inverse = new_matrix(n, n);
        n2_cholesky_inverse(l, n, inverse);
        double *one = product(a, inverse, n, n, n, false);
        for (size_t i = 0; i < n * n; i++) {
            assert_close(one[i], i % (n + 1) == 0, 0, 1e-12);
            assert_true(inverse[i] == inverse[(i % n) * n + i / n]);
        }
        free(a), free(l), free(inverse), free(one);
    }
}

static void what_is_not_positive_definite_is_refused(void **state) {
    (void)state;
    double indefinite[] = {1, 2, 2, 1}, zero[] = {0}, negative[] = {-1};
    double nan[] = {N2_NAN}, infinite[] = {N2_INFINITY}, singular[] = {1, 1, 1, 1};
    assert_false(n2_cholesky(indefinite, 2));
    assert_false(n2_cholesky(singular, 2));
    assert_false(n2_cholesky(zero, 1));
    assert_false(n2_cholesky(negative, 1));
    assert_false(n2_cholesky(nan, 1));
    assert_false(n2_cholesky(infinite, 1));
    double *late = random_spd(20); /* fails in the last panel only */
    late[19 * 20 + 19] = -1;
    assert_false(n2_cholesky(late, 20));
    free(late);
}

/* A v = lambda v, v orthonormal, values ascending, the same without vectors. */
static void check_eigen(const double *a, size_t n, double tolerance) {
    double *work = copy_of(a, n * n), *values = new_matrix(n, 1), *v = new_matrix(n, n);
    spoil_upper(work, n);
    assert_true(n2_symmetric_eigen(work, n, values, v));
    double *av = product(a, v, n, n, n, false);
    for (size_t i = 0; i < n; i++) {
        if (i) assert_true(values[i] >= values[i - 1]);
        for (size_t j = 0; j < n; j++) {
            double inner = 0;
            for (size_t k = 0; k < n; k++) inner += v[k * n + i] * v[k * n + j];
            assert_close(inner, i == j, 0, 1e-13);
            assert_close(av[i * n + j], v[i * n + j] * values[j], 0, tolerance);
        }
    }
    double *again = copy_of(a, n * n), *alone = new_matrix(n, 1);
    assert_true(n2_symmetric_eigen(again, n, alone, NULL));
    assert_all_close(alone, values, n, 0);
    free(work), free(values), free(v), free(av), free(again), free(alone);
}

static void eigenvectors_are_eigenvectors(void **state) {
    (void)state;
    for (size_t s = 0; s < COUNT_OF(sizes); s++) {
        double *a = random_symmetric(sizes[s]);
        check_eigen(a, sizes[s], 1e-13);
        free(a);
    }
}

/* Zero, the identity, all ones, a diagonal, huge and tiny entries. */
static void degenerate_matrices_have_eigenvectors_too(void **state) {
    (void)state;
    enum { N = 9 };
    double zero[N * N] = {0}, one[N * N] = {0}, ones[N * N], diagonal[N * N] = {0};
    for (size_t i = 0; i < N * N; i++) ones[i] = 1;
    for (size_t i = 0; i < N; i++) one[i * N + i] = 1;
    for (size_t i = 0; i < N; i++) diagonal[i * N + i] = (double)((5 * i) % N) - 3;
    check_eigen(zero, N, 0);
    check_eigen(one, N, 0);
    check_eigen(ones, N, 1e-14);
    check_eigen(diagonal, N, 0);
    double *huge = random_symmetric(N), *tiny = random_symmetric(N);
    for (size_t i = 0; i < N * N; i++) huge[i] *= 1e300, tiny[i] *= 1e-300;
    check_eigen(huge, N, 1e286);
    check_eigen(tiny, N, 1e-314);
    free(huge), free(tiny);
}

/* The second difference matrix has the eigenvalues 2 - 2 cos(pi k / (n + 1)). */
static void eigenvalues_of_the_second_difference(void **state) {
    (void)state;
    enum { N = 50 };
    double *a = new_matrix(N, N), values[N];
    for (size_t i = 0; i < N; i++) {
        a[i * N + i] = 2;
        if (i) a[i * N + i - 1] = a[(i - 1) * N + i] = -1;
    }
    assert_true(n2_symmetric_eigen(a, N, values, NULL));
    for (size_t k = 0; k < N; k++)
        assert_close(values[k], 2 - 2 * cos(pi * (double)(k + 1) / (N + 1)), 0, 1e-14);
    free(a);
}

/* Trace and determinant from eigenvalues agree with the Cholesky factor. */
static void eigenvalues_sum_to_the_trace(void **state) {
    (void)state;
    const size_t n = 60;
    double *a = random_spd(n), *l = factor_of(a, n), values[60], trace = 0, sum = 0, log_det = 0;
    for (size_t i = 0; i < n; i++) trace += a[i * n + i];
    assert_true(n2_symmetric_eigen(a, n, values, NULL));
    for (size_t i = 0; i < n; i++) sum += values[i], log_det += log(values[i]);
    assert_close(sum, trace, 1e-13, 0);
    assert_close(log_det, n2_cholesky_log_det(l, n), 1e-11, 0);
    free(a), free(l);
}

static void eigen_refuses_what_is_not_finite(void **state) {
    (void)state;
    double nan[] = {1, 0, N2_NAN, 1}, infinite[] = {N2_INFINITY}, values[2];
    assert_false(n2_symmetric_eigen(nan, 2, values, NULL));
    assert_false(n2_symmetric_eigen(infinite, 1, values, NULL));
    assert_true(n2_symmetric_eigen(nan, 0, values, NULL));
}

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now); /* a busy machine is no mistake */
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Sizes that are used; the limits are wide enough for sanitizers. */
static void large_matrices_take_no_time(void **state) {
    (void)state;
    const size_t n = 400, m = 320;
    double *a = random_matrix(n, n, 1), *values = new_matrix(m, 1), *v = new_matrix(m, m);
    for (size_t i = 0; i < n; i++) a[i * n + i] += 900;
    double start = seconds();
    assert_true(n2_cholesky(a, n));
    print_message("Cholesky, n = 400: %.4f s\n", seconds() - start);
    assert_true(seconds() - start < 2);
    double *b = random_symmetric(m);
    start = seconds();
    assert_true(n2_symmetric_eigen(b, m, values, v));
    print_message("eigenvalues and vectors, n = 320: %.3f s\n", seconds() - start);
    assert_true(seconds() - start < 20);
    free(a), free(b), free(values), free(v);
}

/* ---- orthonormal rows ---- */

/* X = L Q with orthonormal rows of Q and a lower L whose diagonal is given. */
static void check_row_basis(const double *x, size_t k, size_t n) {
    double *work = malloc(k * n * sizeof *work), *q = malloc(n * n * sizeof *q);
    double *diagonal = malloc(k * sizeof *diagonal);
    assert_true(work && q && diagonal);
    memcpy(work, x, k * n * sizeof *work);
    n2_row_basis(work, k, n, diagonal, q);
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++)
            assert_close(n2_dot(q + i * n, q + j * n, n), i == j, 0, 1e-13);
    for (size_t i = 0; i < k; i++) {
        assert_close(n2_dot(x + i * n, q + i * n, n), diagonal[i], 1e-13, 1e-13);
        assert_true(diagonal[i] >= 0);
        for (size_t j = i + 1; j < n; j++)
            assert_close(n2_dot(x + i * n, q + j * n, n), 0, 0, 1e-13);
    }
    free(work), free(q), free(diagonal);
}

static void rows_get_an_orthonormal_basis(void **state) {
    (void)state;
    enum { N = 12 };
    double *a = random_symmetric(N), zero[N * N] = {0}, same[N * N], tiny[N * N];
    for (size_t i = 0; i < N * N; i++) same[i] = 0.3, tiny[i] = 1e-160 * a[i];
    for (size_t k = 1; k <= N; k++) {
        check_row_basis(a, k, N);
        check_row_basis(zero, k, N);
        check_row_basis(same, k, N);
        check_row_basis(tiny, k, N);
    }
    free(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_factor_by_hand),
        cmocka_unit_test(the_factor_multiplies_back),
        cmocka_unit_test(solutions_solve),
        cmocka_unit_test(the_factor_has_an_inverse),
        cmocka_unit_test(the_inverse_inverts_and_is_symmetric),
        cmocka_unit_test(what_is_not_positive_definite_is_refused),
        cmocka_unit_test(eigenvectors_are_eigenvectors),
        cmocka_unit_test(degenerate_matrices_have_eigenvectors_too),
        cmocka_unit_test(eigenvalues_of_the_second_difference),
        cmocka_unit_test(eigenvalues_sum_to_the_trace),
        cmocka_unit_test(eigen_refuses_what_is_not_finite),
        cmocka_unit_test(large_matrices_take_no_time),
        cmocka_unit_test(rows_get_an_orthonormal_basis),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
