#include "linalg.h"

#include "isa.h"
#include "linalg_kernel.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum {
    PANEL = 8,       /* rows eliminated together: fewer passes over what remains */
    MAX_SWEEPS = 60, /* QR steps per eigenvalue; two are usual */
};

N2_ISA_TABLE(n2_tile_fn, n2_tile);
N2_ISA_TABLE(n2_dot_fn, n2_dot_rows);
N2_ISA_TABLE(n2_quadratic_fn, n2_quadratic_rows);
N2_ISA_TABLE(n2_subtract_rows_fn, n2_subtract_rows);
N2_ISA_TABLE(n2_subtract_two_fn, n2_subtract_two);
N2_ISA_TABLE(n2_rotate_fn, n2_rotate);

void n2_tile_product(const double *a, size_t a_row, size_t a_step, const double *b, size_t b_step,
                     size_t n, double *out) {
    n2_tile_table[n2_isa_current()](a, a_row, a_step, b, b_step, n, out);
}

static void copy_lower_to_upper(double *a, size_t n) {
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < i; j++) a[j * n + i] = a[i * n + j];
}

static void transpose(double *a, size_t n) {
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j < i; j++) {
            const double kept = a[i * n + j];
            a[i * n + j] = a[j * n + i];
            a[j * n + i] = kept;
        }
    }
}

double n2_dot(const double *x, const double *y, size_t n) {
    return n2_dot_rows_table[n2_isa_current()](x, y, n);
}

double n2_quadratic(const double *a, const double *b, const double *x, size_t n) {
    return n2_quadratic_rows_table[n2_isa_current()](a, b, x, n);
}

static void subtract_rows(double *row, size_t n, const double *m, size_t stride, size_t rows,
                          const double *c, size_t step) {
    n2_subtract_rows_table[n2_isa_current()](row, n, m, stride, rows, c, step);
}

void n2_turned_product(const double *a, const double *b, size_t m, size_t k, size_t n,
                       double *out) {
    memset(out, 0, k * n * sizeof *out);
    for (size_t i = 0; i < k; i++) subtract_rows(out + i * n, n, b, n, m, a + i, k);
    for (size_t i = 0; i < k * n; i++) out[i] = -out[i];
}

/* Row i of the upper factor R, columns i.., less what rows [from, to) explain. */
static void eliminate(double *r, size_t n, size_t from, size_t to, size_t i) {
    const double *first = r + from * n + i;
    subtract_rows(r + i * n + i, n - i, first, n, to - from, first, n);
}

static bool divide_by_pivot(double *row, size_t n) {
    if (!(row[0] > 0) || !isfinite(row[0])) return false;
    const double pivot = sqrt(row[0]);
    row[0] = pivot;
    for (size_t j = 1; j < n; j++) row[j] /= pivot;
    return true;
}

/* Works on R = L' in the upper triangle, where every inner loop runs along a row. */
bool n2_cholesky(double *a, size_t n) {
    copy_lower_to_upper(a, n);
    for (size_t from = 0; from < n; from += PANEL) {
        const size_t to = n - from < PANEL ? n : from + PANEL;
        for (size_t k = from; k < to; k++) {
            eliminate(a, n, from, k, k);
            if (!divide_by_pivot(a + k * n + k, n - k)) return false;
        }
        for (size_t i = to; i < n; i++) eliminate(a, n, from, to, i);
    }
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j < i; j++) {
            a[i * n + j] = a[j * n + i];
            a[j * n + i] = 0;
        }
    }
    return true;
}

double n2_cholesky_log_det(const double *l, size_t n) {
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += log(l[i * n + i]);
    return 2 * sum;
}

static void divide(double *row, size_t n, double by) {
    for (size_t j = 0; j < n; j++) row[j] /= by;
}

/* Numbers that a row of L begins with and that are 0, as where variables are in independent groups.
 * A multiple of four: so many are subtracted together. */
static size_t leading_zeros(const double *row, size_t n) {
    size_t k = 0;
    while (k < n && row[k] == 0) k++;
    return k - k % 4;
}

void n2_lower_solve(const double *l, size_t n, double *b, size_t columns) {
    for (size_t i = 0; i < n; i++) {
        const double *row = l + i * n;
        const size_t from = leading_zeros(row, i);
        if (columns == 1)
            b[i] -= n2_dot(row, b, i);
        else
            subtract_rows(b + i * columns, columns, b + from * columns, columns, i - from,
                          row + from, 1);
        divide(b + i * columns, columns, row[i]);
    }
}

void n2_lower_inverse(const double *l, size_t n, double *inverse) {
    memset(inverse, 0, n * n * sizeof *inverse);
    for (size_t i = 0; i < n; i++) {
        const double *row = l + i * n;
        double *out = inverse + i * n;
        const size_t from = leading_zeros(row, i);
        subtract_rows(out, i, inverse + from * n, n, i - from, row + from, 1);
        out[i] = 1;
        divide(out, i + 1, row[i]);
    }
}

/* L' x = b for one column: subtracts row by row, because the columns of L are far
 * apart in memory. */
static void upper_solve_vector(const double *l, size_t n, double *b) {
    for (size_t i = n; i-- > 0;) {
        b[i] /= l[i * n + i];
        subtract_rows(b, i, l + i * n, n, 1, b + i, 1);
    }
}

/* L' X = B */
static void upper_solve(const double *l, size_t n, double *b, size_t columns) {
    if (columns == 1) {
        upper_solve_vector(l, n, b);
        return;
    }
    for (size_t i = n; i-- > 0;) {
        const size_t below = n - 1 - i;
        double *row = b + i * columns;
        if (below) subtract_rows(row, columns, row + columns, columns, below, l + i * n + n + i, n);
        divide(row, columns, l[i * n + i]);
    }
}

void n2_cholesky_solve(const double *l, size_t n, double *b, size_t columns) {
    n2_lower_solve(l, n, b, columns);
    upper_solve(l, n, b, columns);
}

void n2_cholesky_inverse(const double *l, size_t n, double *inverse) {
    memset(inverse, 0, n * n * sizeof *inverse);
    for (size_t i = 0; i < n; i++) inverse[i * n + i] = 1;
    n2_cholesky_solve(l, n, inverse, n);
    copy_lower_to_upper(inverse, n);
}

/* ---- eigenvalues -------------------------------------------------------------------------
 *
 * Householder reflections to tridiagonal form, then implicitly shifted QR (Golub and Van Loan,
 * Matrix Computations, sections 8.3.1 to 8.3.5). While reducing, row k of A right of the diagonal
 * keeps the k-th reflection v, and the free places below the diagonal keep two numbers. */

static double *off_diagonal(double *a, size_t n, size_t k) { return a + (k + 1) * n + k; }
static double *reflection_factor(double *a, size_t n, size_t k) { return a + (k + 2) * n + k; }

/* Turns x into v such that (I - factor v v') x = (result, 0, .., 0). */
static double make_reflection(double *x, size_t n, double *factor) {
    const double rest = n2_dot(x + 1, x + 1, n - 1);
    *factor = 0;
    if (rest < DBL_MIN) return x[0]; /* nothing beside the first, or next to nothing */
    const double length = -copysign(sqrt(x[0] * x[0] + rest), x[0]);
    x[0] -= length;
    *factor = 2 / (x[0] * x[0] + rest);
    return length;
}

/* M = H M H for H = I - factor v v' and the symmetric n x n block M with the given stride:
 * M - v w' - w v'. `w` is scratch. */
static void reflect_both_sides(double *m, size_t stride, size_t n, const double *restrict v,
                               double factor, double *restrict w) {
    for (size_t i = 0; i < n; i++) w[i] = factor * n2_dot(m + i * stride, v, n);
    const double half = factor / 2 * n2_dot(w, v, n);
    for (size_t i = 0; i < n; i++) w[i] -= half * v[i];
    n2_subtract_two_fn *const subtract_two = n2_subtract_two_table[n2_isa_current()];
    for (size_t i = 0; i < n; i++) subtract_two(m + i * stride, n, v[i], w, w[i], v);
}

static void reduce_to_tridiagonal(double *a, size_t n, double *scratch) {
    for (size_t k = 0; k + 2 < n; k++) {
        double *v = a + k * n + k + 1, factor;
        const double off = make_reflection(v, n - k - 1, &factor);
        if (factor != 0)
            reflect_both_sides(a + (k + 1) * n + k + 1, n, n - k - 1, v, factor, scratch);
        *off_diagonal(a, n, k) = off;
        *reflection_factor(a, n, k) = factor;
    }
}

/* Q, the product of all reflections, from the last to the first: then the part that differs
 * from the identity grows by one row and column at a time. */
static void collect_reflections(double *a, size_t n, double *q, double *scratch) {
    memset(q, 0, n * n * sizeof *q);
    for (size_t i = 0; i < n; i++) q[i * n + i] = 1;
    for (size_t k = n < 2 ? 0 : n - 2; k-- > 0;) {
        const double *v = a + k * n + k + 1, factor = *reflection_factor(a, n, k);
        const size_t m = n - k - 1;
        double *block = q + (k + 1) * n + k + 1;
        memset(scratch, 0, m * sizeof *scratch);
        subtract_rows(scratch, m, block, n, m, v, 1);
        for (size_t i = 0; i < m; i++) {
            const double c = -factor * v[i];
            subtract_rows(block + i * n, m, scratch, 0, 1, &c, 1);
        }
    }
}

/* The eigenvalue of the last 2 x 2 block that is nearer to its last entry (Wilkinson). */
static double wilkinson_shift(double before_last, double last, double off) {
    const double half = (before_last - last) / 2;
    return last - off * (off / (half + copysign(hypot(half, off), half)));
}

/* One QR step on rows lo..hi of the tridiagonal matrix (d, e): a rotation makes a bulge
 * below the off-diagonal, the others chase it out. */
static void qr_step(double *d, double *e, size_t lo, size_t hi, double *vt, size_t n,
                    double *turns) {
    double *cosine = turns, *sine = turns + n - 1;
    double x = d[lo] - wilkinson_shift(d[hi - 1], d[hi], e[hi - 1]), z = e[lo];
    for (size_t k = lo; k < hi; k++) {
        const double r = hypot(x, z), c = r > 0 ? x / r : 1, s = r > 0 ? z / r : 0;
        const double upper = d[k], lower = d[k + 1], off = e[k];
        const double move = s * (s * (lower - upper) + 2 * c * off);
        if (k > lo) e[k - 1] = r;
        d[k] = upper + move;
        d[k + 1] = lower - move;
        e[k] = c * s * (lower - upper) + (c - s) * (c + s) * off;
        if (k + 1 < hi) {
            x = e[k];
            z = s * e[k + 1];
            e[k + 1] *= c;
        }
        cosine[k - lo] = c;
        sine[k - lo] = s;
    }
    if (vt) /* the vectors, as rows */
        n2_rotate_table[n2_isa_current()](vt + lo * n, n, n, hi - lo, cosine, sine);
}

static bool negligible(const double *d, const double *e, size_t k) {
    return fabs(e[k]) <= DBL_EPSILON / 2 * (fabs(d[k]) + fabs(d[k + 1])) || fabs(e[k]) < DBL_MIN;
}

/* Splits off one eigenvalue after another at the lower end. Behind e, from n on, there is room for
 * the 2 (n - 1) numbers of a step's rotations. */
static bool diagonalise(double *d, double *e, size_t n, double *vt) {
    for (size_t hi = n - 1; hi > 0; hi--) {
        for (int sweep = 0; !negligible(d, e, hi - 1); sweep++) {
            if (sweep == MAX_SWEEPS) return false;
            size_t lo = hi - 1;
            while (lo > 0 && !negligible(d, e, lo - 1)) lo--;
            qr_step(d, e, lo, hi, vt, n, e + n);
        }
    }
    return true;
}

static void swap_rows(double *x, double *y, size_t n) {
    for (size_t j = 0; j < n; j++) {
        const double kept = x[j];
        x[j] = y[j];
        y[j] = kept;
    }
}

static void sort_ascending(double *values, size_t n, double *vt) {
    for (size_t i = 0; i + 1 < n; i++) {
        size_t least = i;
        for (size_t k = i + 1; k < n; k++)
            if (values[k] < values[least]) least = k;
        if (least == i) continue;
        swap_rows(values + i, values + least, 1);
        if (vt) swap_rows(vt + i * n, vt + least * n, n);
    }
}

/* Divides A by a power of two near its largest entry, so that squares neither overflow nor
 * vanish. Returns the exponent; false if something is not finite. */
static bool scale_to_one(double *a, size_t n, int *exponent) {
    double top = 0;
    for (size_t i = 0; i < n * n; i++) {
        if (!isfinite(a[i])) return false;
        top = fmax(top, fabs(a[i]));
    }
    frexp(top, exponent);
    for (size_t i = 0; i < n * n; i++) a[i] = ldexp(a[i], -*exponent);
    return true;
}

/* The diagonal goes to `values`, what is beside it to the first row of A, which is free
 * by now. */
static void take_tridiagonal(double *a, size_t n, double *values) {
    for (size_t k = 0; k < n; k++) values[k] = a[k * n + k];
    for (size_t k = 0; k + 1 < n; k++) a[k] = *off_diagonal(a, n, k);
}

bool n2_symmetric_eigen(double *a, size_t n, double *values, double *v) {
    int exponent;
    if (n == 0) return true;
    copy_lower_to_upper(a, n);
    if (!scale_to_one(a, n, &exponent)) return false;
    reduce_to_tridiagonal(a, n, values);
    if (v) {
        collect_reflections(a, n, v, values);
        transpose(v, n); /* as rows, the vectors are turned along memory */
    }
    take_tridiagonal(a, n, values);
    if (!diagonalise(values, a, n, v)) return false;
    sort_ascending(values, n, v);
    if (v) transpose(v, n);
    for (size_t k = 0; k < n; k++) values[k] = ldexp(values[k], exponent);
    return true;
}

/* ---- orthonormal rows --------------------------------------------------------------------- */

/* row (I - factor v v') */
static void reflect_row(double *row, const double *v, size_t n, double factor) {
    const double c = factor * n2_dot(row, v, n);
    subtract_rows(row, n, v, 0, 1, &c, 1);
}

/* Reflection i makes row i of X end at the diagonal and is kept in its place, all 0 if there was
 * nothing to do. */
static void reduce_to_lower(double *x, size_t k, size_t n, double *diagonal) {
    for (size_t i = 0; i < k; i++) {
        double *v = x + i * n + i, factor;
        diagonal[i] = make_reflection(v, n - i, &factor);
        if (factor == 0) memset(v, 0, (n - i) * sizeof *v);
        for (size_t j = i + 1; j < k && factor != 0; j++)
            reflect_row(x + j * n + i, v, n - i, factor);
    }
}

void n2_row_basis(double *x, size_t k, size_t n, double *diagonal, double *q) {
    reduce_to_lower(x, k, n, diagonal);
    memset(q, 0, n * n * sizeof *q);
    for (size_t i = 0; i < n; i++) q[i * n + i] = 1;
    for (size_t i = k; i-- > 0;) { /* rows before i are still those of the identity */
        const double *v = x + i * n + i, square = n2_dot(v, v, n - i);
        for (size_t j = i; j < n && square > 0; j++)
            reflect_row(q + j * n + i, v, n - i, 2 / square);
    }
    for (size_t i = 0; i < k; i++) {
        for (size_t j = 0; j < n && diagonal[i] < 0; j++) q[i * n + j] = -q[i * n + j];
        diagonal[i] = fabs(diagonal[i]);
    }
}
