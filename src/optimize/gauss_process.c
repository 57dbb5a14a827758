#include "gauss_process.h"

#include "base/linalg.h"
#include "base/numerics.h"
#include "base/pool.h"

#include <math.h>
#include <string.h>

enum { TUNED_ROWS = 320, STEPS = 90, ROUGH_STEPS = 40, BLOCK = 64 };
static const double RATE = 0.12, LEAST_NOISE = 1e-4, JITTER = 1e-6;

/* Logarithms of what is tuned: weights of columns first, then these. */
enum { SIGNAL, LINE, NOISE, OTHERS };

struct n2_gauss_process {
    n2ce_ctx *ctx;
    size_t rows, width;
    double *theta;                 /* width + OTHERS */
    float *turned;                 /* the rows, width x rows */
    double *alpha, *factor, *left; /* K^-1 y, Cholesky factor of K, leave-one-out predictions */
};

static double signal_of(const n2_gauss_process *p) { return exp(p->theta[p->width + SIGNAL]); }
static double line_of(const n2_gauss_process *p) { return exp(p->theta[p->width + LINE]); }
static double noise_of(const n2_gauss_process *p) {
    return LEAST_NOISE + exp(p->theta[p->width + NOISE]);
}

double n2_gauss_process_noise(const n2_gauss_process *p) { return sqrt(noise_of(p)); }
size_t n2_gauss_process_rows(const n2_gauss_process *p) { return p->rows; }
const double *n2_gauss_process_left_out(const n2_gauss_process *p) { return p->left; }

/* ---- tuning -------------------------------------------------------------- */

/* A few rows and room for what is computed of them. */
typedef struct tuning {
    const float *x;
    const double *y;
    size_t n, width;
    double *k, *inverse, *alpha, *far; /* far: r^2 / 4 of pairs */
    double *slope, *moment;            /* of theta; two moments of it */
    double evidence;                   /* ln p of y, but for a constant */
} tuning;

static void set_weights(const double *theta, size_t width, double *w) {
    for (size_t j = 0; j < width; j++) w[j] = exp(theta[j]);
}

/* The lower triangle of K without noise at rows i; r^2 / 4 into `far`, unless NULL. */
static void covariances(const n2_gauss_process *p, const float *x, size_t i, const double *w,
                        double *k, double *far) {
    const size_t d = p->width;
    const double s = signal_of(p), l = line_of(p);
    for (size_t c = 0; c <= i; c++) {
        double r = 0, dot = 0;
        for (size_t j = 0; j < d; j++) {
            const double a = (double)x[i * d + j], b = (double)x[c * d + j];
            r += w[j] * (a - b) * (a - b);
            dot += a * b;
        }
        const double q = 1 / (1 + r / 4);
        k[c] = s * q * q + l * dot;
        if (far) far[c] = r / 4;
    }
}

static bool factorise(const n2_gauss_process *p, const float *x, size_t n, const double *w,
                      double *k, double *far) {
    for (size_t i = 0; i < n; i++) {
        covariances(p, x, i, w, k + i * n, far ? far + i * n : NULL);
        k[i * n + i] += noise_of(p) + JITTER;
    }
    return n2_cholesky(k, n);
}

/* What one pair of rows adds: g = d ln p / d K_ic, twice for the two triangles. */
static void add_pair(const n2_gauss_process *p, const tuning *t, const double *w, size_t i,
                     size_t c, double g) {
    const size_t d = t->width;
    const float *a = t->x + i * d, *b = t->x + c * d;
    const double q = 1 / (1 + t->far[i * t->n + c]), s = signal_of(p);
    double dot = 0;
    for (size_t j = 0; j < d; j++) {
        const double gap = (double)a[j] - (double)b[j];
        t->slope[j] -= g * s * q * q * q / 2 * w[j] * gap * gap;
        dot += (double)a[j] * (double)b[j];
    }
    t->slope[d + SIGNAL] += g * s * q * q;
    t->slope[d + LINE] += g * line_of(p) * dot;
    if (i == c) t->slope[d + NOISE] += g * (noise_of(p) - LEAST_NOISE);
}

/* Weak priors keep what the rows do not tell near its start. */
static const double START_SIGNAL = 0, START_LINE = -3, START_NOISE = -3;
static double start_weight(size_t width) { return log(4.0 / (double)width); }

static void add_priors(const n2_gauss_process *p, double *slope) {
    const size_t d = p->width;
    for (size_t j = 0; j < d; j++) slope[j] -= (p->theta[j] - start_weight(d)) / 9;
    slope[d + SIGNAL] -= (p->theta[d + SIGNAL] - START_SIGNAL) / 4;
    slope[d + LINE] -= (p->theta[d + LINE] - START_LINE) / 4;
    slope[d + NOISE] -= (p->theta[d + NOISE] - START_NOISE) / 16;
}

/* The slope of ln p(y) in theta: (alpha alpha' - K^-1) / 2 times that of K. */
static bool find_slope(const n2_gauss_process *p, tuning *t, double *w) {
    const size_t n = t->n;
    set_weights(p->theta, p->width, w);
    memset(t->slope, 0, (p->width + OTHERS) * sizeof *t->slope);
    if (!factorise(p, t->x, n, w, t->k, t->far)) return false;
    n2_cholesky_inverse(t->k, n, t->inverse);
    memcpy(t->alpha, t->y, n * sizeof *t->y);
    n2_cholesky_solve(t->k, n, t->alpha, 1);
    t->evidence = -0.5 * (n2_dot(t->alpha, t->y, n) + n2_cholesky_log_det(t->k, n));
    for (size_t i = 0; i < n; i++)
        for (size_t c = 0; c <= i; c++)
            add_pair(p, t, w, i, c,
                     (c < i ? 1 : 0.5) * (t->alpha[i] * t->alpha[c] - t->inverse[i * n + c]));
    add_priors(p, t->slope);
    return true;
}

/* One step of Adam, uphill. */
static void climb(n2_gauss_process *p, tuning *t, size_t step, size_t steps) {
    const size_t n = p->width + OTHERS;
    const double rate = RATE * (1 - (double)step / (double)steps * 0.9);
    for (size_t j = 0; j < n; j++) {
        double *m = t->moment + j, *v = t->moment + n + j;
        *m += 0.1 * (t->slope[j] - *m);
        *v += 0.01 * (t->slope[j] * t->slope[j] - *v);
        const double mean = *m / (1 - pow(0.9, (double)step + 1));
        const double size = sqrt(*v / (1 - pow(0.99, (double)step + 1)));
        p->theta[j] = fmax(-12, fmin(6, p->theta[j] + rate * mean / (size + 1e-9)));
    }
}

/* *evidence: of where it ended; or NULL. */
static n2ce_status tune(n2_gauss_process *p, const float *x, const double *y, size_t steps,
                        double *evidence) {
    const size_t n = p->rows < TUNED_ROWS ? p->rows : TUNED_ROWS, d = p->width;
    double *room = n2_alloc(p->ctx, 3 * n * n + n + 3 * (d + OTHERS) + d, sizeof *room);
    if (!room) return N2CE_ENOMEM;
    tuning t = {.x = x, .y = y, .n = n, .width = d, .k = room, .inverse = room + n * n};
    t.far = t.inverse + n * n;
    t.alpha = t.far + n * n;
    t.slope = t.alpha + n;
    t.moment = t.slope + d + OTHERS;
    double *w = t.moment + 2 * (d + OTHERS);
    n2ce_status status = N2CE_OK;
    for (size_t j = 0; j < d; j++) p->theta[j] = start_weight(d);
    p->theta[d + SIGNAL] = START_SIGNAL;
    p->theta[d + LINE] = START_LINE;
    p->theta[d + NOISE] = START_NOISE;
    for (size_t step = 0; step < steps && status == N2CE_OK; step++) {
        if (n2_cancelled(p->ctx)) status = N2CE_ECANCELED;
        if (status == N2CE_OK && !find_slope(p, &t, w)) break; /* as good as it gets */
        climb(p, &t, step, steps);
    }
    if (evidence) *evidence = t.evidence;
    n2_free(p->ctx, room);
    return status;
}

/* ---- fitting ------------------------------------------------------------- */

/* y - alpha / diag K^-1: what all the other rows say of a row. */
static n2ce_status leave_out(n2_gauss_process *p, const double *y) {
    const size_t n = p->rows;
    double *inverse = n2_alloc(p->ctx, n * n, sizeof *inverse);
    if (!inverse) return N2CE_ENOMEM;
    n2_lower_inverse(p->factor, n, inverse);
    for (size_t i = 0; i < n; i++) p->left[i] = 0;
    for (size_t r = 0; r < n; r++)
        for (size_t i = 0; i <= r; i++) p->left[i] += inverse[r * n + i] * inverse[r * n + i];
    for (size_t i = 0; i < n; i++) p->left[i] = y[i] - p->alpha[i] / p->left[i];
    n2_free(p->ctx, inverse);
    return N2CE_OK;
}

static n2ce_status settle(n2_gauss_process *p, const float *x, const double *y) {
    const size_t n = p->rows, d = p->width;
    double *w = n2_alloc(p->ctx, d, sizeof *w);
    if (!w) return N2CE_ENOMEM;
    set_weights(p->theta, d, w);
    const bool proper = factorise(p, x, n, w, p->factor, NULL);
    n2_free(p->ctx, w);
    if (!proper) return n2_fail(p->ctx, N2CE_ENAN, "The rows make no covariance.");
    memcpy(p->alpha, y, n * sizeof *y);
    n2_cholesky_solve(p->factor, n, p->alpha, 1);
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < d; j++) p->turned[j * n + i] = x[i * d + j];
    return leave_out(p, y);
}

static n2ce_status make(n2_gauss_process *p, const n2_gauss_process *like, const float *x,
                        const float *y) {
    const size_t n = p->rows, d = p->width;
    p->theta = n2_alloc(p->ctx, d + OTHERS, sizeof *p->theta);
    p->turned = n2_alloc(p->ctx, n * d, sizeof *p->turned);
    p->alpha = n2_alloc(p->ctx, n, sizeof *p->alpha);
    p->factor = n2_alloc(p->ctx, n * n, sizeof *p->factor);
    p->left = n2_alloc(p->ctx, n, sizeof *p->left);
    double *values = n2_alloc(p->ctx, n, sizeof *values);
    n2ce_status status =
        p->theta && p->turned && p->alpha && p->factor && p->left && values ? N2CE_OK : N2CE_ENOMEM;
    for (size_t i = 0; i < n && status == N2CE_OK; i++) values[i] = (double)y[i];
    if (status == N2CE_OK && like && like->width == d)
        memcpy(p->theta, like->theta, (d + OTHERS) * sizeof *p->theta);
    else if (status == N2CE_OK)
        status = tune(p, x, values, STEPS, NULL);
    if (status == N2CE_OK) status = settle(p, x, values);
    n2_free(p->ctx, values);
    return status;
}

n2ce_status n2_gauss_process_fit(n2ce_ctx *ctx, const float *x, const float *y, size_t rows,
                                 size_t width, const n2_gauss_process *like,
                                 n2_gauss_process **out) {
    *out = NULL;
    n2_gauss_process *p = n2_alloc(ctx, 1, sizeof *p);
    if (!p) return N2CE_ENOMEM;
    *p = (n2_gauss_process){
        .ctx = ctx, .rows = rows < N2_PROCESS_ROWS ? rows : N2_PROCESS_ROWS, .width = width};
    const n2ce_status status = make(p, like, x, y);
    if (status == N2CE_OK)
        *out = p;
    else
        n2_gauss_process_free(p);
    return status;
}

n2ce_status n2_gauss_process_evidence(n2ce_ctx *ctx, const float *x, const float *y, size_t rows,
                                      size_t width, double *evidence) {
    n2_gauss_process p = {.ctx = ctx, .rows = rows, .width = width};
    p.theta = n2_alloc(ctx, width + OTHERS + rows, sizeof *p.theta);
    if (!p.theta) return N2CE_ENOMEM;
    double *values = p.theta + width + OTHERS;
    for (size_t i = 0; i < rows; i++) values[i] = (double)y[i];
    const n2ce_status status = tune(&p, x, values, ROUGH_STEPS, evidence);
    n2_free(ctx, p.theta);
    return status;
}

void n2_gauss_process_free(n2_gauss_process *p) {
    if (!p) return;
    void *const blocks[] = {p->theta, p->turned, p->alpha, p->factor, p->left};
    for (size_t i = 0; i < sizeof blocks / sizeof blocks[0]; i++) n2_free(p->ctx, blocks[i]);
    n2_free(p->ctx, p);
}

/* ---- asking -------------------------------------------------------------- */

typedef struct question {
    const n2_gauss_process *p;
    const float *x;
    size_t n;
    double *mean, *deviation;
    float *scratch;  /* 2 x rows a worker */
    double *between; /* rows a worker */
} question;

/* Covariances of one row with all that were learnt from, in floats: side by side over these. */
static void reach(const n2_gauss_process *p, const float *x, float *restrict far,
                  float *restrict dot) {
    const size_t n = p->rows;
    memset(far, 0, n * sizeof *far);
    memset(dot, 0, n * sizeof *dot);
    for (size_t j = 0; j < p->width; j++) {
        const float *restrict column = p->turned + j * n;
        const float at = x[j], weight = (float)(exp(p->theta[j]) / 4);
        for (size_t i = 0; i < n; i++) {
            const float gap = at - column[i];
            far[i] += weight * gap * gap;
            dot[i] += at * column[i];
        }
    }
    const float s = (float)signal_of(p), l = (float)line_of(p);
    for (size_t i = 0; i < n; i++) {
        const float q = 1 / (1 + far[i]);
        far[i] = s * q * q + l * dot[i];
    }
}

static double own_variance(const n2_gauss_process *p, const float *x) {
    double dot = 0;
    for (size_t j = 0; j < p->width; j++) dot += (double)x[j] * (double)x[j];
    return signal_of(p) + line_of(p) * dot;
}

static void ask_one(const question *q, size_t i, int worker) {
    const n2_gauss_process *p = q->p;
    const size_t n = p->rows;
    const float *x = q->x + i * p->width;
    float *k = q->scratch + (size_t)worker * 2 * n;
    double *b = q->between + (size_t)worker * n;
    reach(p, x, k, k + n);
    for (size_t r = 0; r < n; r++) b[r] = (double)k[r];
    q->mean[i] = n2_dot(b, p->alpha, n);
    if (!q->deviation) return;
    n2_lower_solve(p->factor, n, b, 1);
    q->deviation[i] = sqrt(fmax(own_variance(p, x) - n2_dot(b, b, n), 0));
}

static void ask_block(void *arg, size_t block, int worker) {
    const question *q = arg;
    const size_t end = (block + 1) * BLOCK < q->n ? (block + 1) * BLOCK : q->n;
    for (size_t i = block * BLOCK; i < end; i++) ask_one(q, i, worker);
}

n2ce_status n2_gauss_process_ask(const n2_gauss_process *p, const float *x, size_t n, double *mean,
                                 double *deviation) {
    const size_t threads = (size_t)n2_ctx_threads(p->ctx);
    question q = {.p = p, .x = x, .n = n, .mean = mean, .deviation = deviation};
    q.scratch = n2_alloc(p->ctx, threads * 2 * p->rows, sizeof *q.scratch);
    q.between = n2_alloc(p->ctx, threads * p->rows, sizeof *q.between);
    n2ce_status status = q.scratch && q.between ? N2CE_OK : N2CE_ENOMEM;
    if (status == N2CE_OK) status = n2_parallel_for(p->ctx, (n + BLOCK - 1) / BLOCK, ask_block, &q);
    n2_free(p->ctx, q.scratch);
    n2_free(p->ctx, q.between);
    return status;
}
