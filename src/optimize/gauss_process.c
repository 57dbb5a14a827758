#include "gauss_process.h"

#include "base/linalg.h"
#include "base/numerics.h"
#include "base/pool.h"
#include "base/random.h"

#include <math.h>
#include <string.h>

enum { TUNED_ROWS = 320, STEPS = 90, BLOCK = 64 };
static const double RATE = 0.12, LEAST_NOISE = 1e-4, JITTER = 1e-6;

/* Logarithms of what is tuned: weights of columns first, then these. */
enum { SIGNAL, LINE, NOISE, OTHERS };

/* Functions that are drawn: waves with weights, lines, and what makes them fit the rows. */
enum { WAVES = 256 };
typedef struct drawn {
    size_t n;
    float *often, *phase; /* width x WAVES; WAVES */
    double *weight, *slope,
        *bend; /* n x WAVES; n x width; n x rows, K^-1 of what a draw is off by */
} drawn;

struct n2_gauss_process {
    n2ce_ctx *ctx;
    size_t rows, width;
    double *theta;                 /* width + OTHERS */
    float *turned;                 /* the rows, width x rows */
    double *alpha, *factor, *left; /* K^-1 y, Cholesky factor of K, leave-one-out predictions */
    drawn draws;
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
    for (size_t i = 0; i < n; i++)
        for (size_t c = 0; c <= i; c++)
            add_pair(p, t, w, i, c,
                     (c < i ? 1 : 0.5) * (t->alpha[i] * t->alpha[c] - t->inverse[i * n + c]));
    add_priors(p, t->slope);
    return true;
}

/* One step of Adam, uphill. */
static void climb(n2_gauss_process *p, tuning *t, size_t step) {
    const size_t n = p->width + OTHERS;
    const double rate = RATE * (1 - (double)step / STEPS * 0.9);
    for (size_t j = 0; j < n; j++) {
        double *m = t->moment + j, *v = t->moment + n + j;
        *m += 0.1 * (t->slope[j] - *m);
        *v += 0.01 * (t->slope[j] * t->slope[j] - *v);
        const double mean = *m / (1 - pow(0.9, (double)step + 1));
        const double size = sqrt(*v / (1 - pow(0.99, (double)step + 1)));
        p->theta[j] = fmax(-12, fmin(6, p->theta[j] + rate * mean / (size + 1e-9)));
    }
}

static n2ce_status tune(n2_gauss_process *p, const float *x, const double *y) {
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
    for (size_t step = 0; step < STEPS && status == N2CE_OK; step++) {
        if (n2_cancelled(p->ctx)) status = N2CE_ECANCELED;
        if (status == N2CE_OK && !find_slope(p, &t, w)) break; /* as good as it gets */
        climb(p, &t, step);
    }
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
        status = tune(p, x, values);
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

void n2_gauss_process_free(n2_gauss_process *p) {
    if (!p) return;
    void *const blocks[] = {p->theta,       p->turned,      p->alpha,       p->factor,
                            p->left,        p->draws.often, p->draws.phase, p->draws.weight,
                            p->draws.slope, p->draws.bend};
    for (size_t i = 0; i < sizeof blocks / sizeof blocks[0]; i++) n2_free(p->ctx, blocks[i]);
    n2_free(p->ctx, p);
}

/* ---- drawing ------------------------------------------------------------- */

/* The kernel is a mixture of Gaussian ones, whose sharpness has a gamma distribution of shape and
 * rate 2; so are its waves. */
static void draw_waves(n2_gauss_process *p, n2_stream s) {
    const size_t d = p->width;
    float u[3], *often = p->draws.often;
    for (size_t f = 0; f < WAVES; f++) {
        n2_fill_uniform(s, 3 * f, 3, u);
        const double sharp = sqrt(-(log((double)u[0]) + log((double)u[1])) / 2);
        p->draws.phase[f] = (float)(2 * acos(-1) * (double)u[2]);
        for (size_t j = 0; j < d; j++)
            often[j * WAVES + f] *= (float)(sharp * exp(p->theta[j] / 2));
    }
}

/* What the draws say before they know of any row; wave is room for WAVES. */
static void ask_waves(const n2_gauss_process *p, const float *x, float *restrict wave,
                      double *out) {
    const drawn *w = &p->draws;
    const double size = sqrt(2 * signal_of(p) / WAVES), steep = sqrt(line_of(p));
    memcpy(wave, w->phase, WAVES * sizeof *wave);
    for (size_t j = 0; j < p->width; j++) {
        const float *restrict often = w->often + j * WAVES;
        for (size_t f = 0; f < WAVES; f++) wave[f] += x[j] * often[f];
    }
    for (size_t f = 0; f < WAVES; f++) wave[f] = cosf(wave[f]);
    for (size_t e = 0; e < w->n; e++) {
        double sum = 0, line = 0;
        for (size_t f = 0; f < WAVES; f++) sum += w->weight[e * WAVES + f] * (double)wave[f];
        for (size_t j = 0; j < p->width; j++) line += w->slope[e * p->width + j] * (double)x[j];
        out[e] = size * sum + steep * line;
    }
}

static void fill_normal(n2_stream s, size_t n, double *out) {
    for (size_t i = 0; i < n; i++) {
        float z;
        n2_fill_normal(s, i, 1, &z);
        out[i] = (double)z;
    }
}

/* What each draw, with noise, is off by at the rows: what is added makes it 0 there. */
static void fit_draws(n2_gauss_process *p, float *row) {
    const drawn *w = &p->draws;
    const size_t n = p->rows, d = p->width;
    float wave[WAVES];
    double said[N2_PROCESS_DRAWS];
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j < d; j++) row[j] = p->turned[j * n + i];
        ask_waves(p, row, wave, said);
        for (size_t e = 0; e < w->n; e++)
            w->bend[e * n + i] = -said[e] - sqrt(noise_of(p)) * w->bend[e * n + i];
    }
    for (size_t e = 0; e < w->n; e++) n2_cholesky_solve(p->factor, n, w->bend + e * n, 1);
}

n2ce_status n2_gauss_process_draw(n2_gauss_process *p, uint64_t seed, size_t n) {
    drawn *w = &p->draws;
    const size_t d = p->width;
    w->n = n < N2_PROCESS_DRAWS ? n : N2_PROCESS_DRAWS;
    w->often = n2_alloc(p->ctx, WAVES * d, sizeof *w->often);
    w->phase = n2_alloc(p->ctx, WAVES + d, sizeof *w->phase); /* and a row */
    w->weight = n2_alloc(p->ctx, w->n * WAVES, sizeof *w->weight);
    w->slope = n2_alloc(p->ctx, w->n * d, sizeof *w->slope);
    w->bend = n2_alloc(p->ctx, w->n * p->rows, sizeof *w->bend);
    if (!w->often || !w->phase || !w->weight || !w->slope || !w->bend) return N2CE_ENOMEM;
    n2_fill_normal((n2_stream){seed, 81, 0}, 0, WAVES * d, w->often);
    draw_waves(p, (n2_stream){seed, 81, 1});
    fill_normal((n2_stream){seed, 81, 2}, w->n * WAVES, w->weight);
    fill_normal((n2_stream){seed, 81, 3}, w->n * d, w->slope);
    fill_normal((n2_stream){seed, 81, 4}, w->n * p->rows, w->bend);
    fit_draws(p, w->phase + WAVES);
    return N2CE_OK;
}

/* ---- asking -------------------------------------------------------------- */

typedef struct question {
    const n2_gauss_process *p;
    const float *x;
    size_t n;
    double *mean, *apart;
    float *scratch;  /* 2 x rows and WAVES a worker */
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

/* Draws less their mean, as wide as if that were not taken from them. */
static void spread_out(double *apart, size_t n) {
    double mean = 0;
    for (size_t e = 0; e < n; e++) mean += apart[e] / (double)n;
    const double wider = n > 1 ? sqrt((double)n / ((double)n - 1)) : 0;
    for (size_t e = 0; e < n; e++) apart[e] = wider * (apart[e] - mean);
}

static void ask_one(const question *q, size_t i, int worker) {
    const n2_gauss_process *p = q->p;
    const size_t n = p->rows, draws = p->draws.n;
    const float *x = q->x + i * p->width;
    float *k = q->scratch + (size_t)worker * (2 * n + WAVES);
    double *b = q->between + (size_t)worker * n;
    reach(p, x, k, k + n);
    for (size_t r = 0; r < n; r++) b[r] = (double)k[r];
    q->mean[i] = n2_dot(b, p->alpha, n);
    if (!q->apart) return;
    double *apart = q->apart + i * draws;
    ask_waves(p, x, k + 2 * n, apart);
    for (size_t e = 0; e < draws; e++) apart[e] += n2_dot(b, p->draws.bend + e * n, n);
    spread_out(apart, draws);
}

static void ask_block(void *arg, size_t block, int worker) {
    const question *q = arg;
    const size_t end = (block + 1) * BLOCK < q->n ? (block + 1) * BLOCK : q->n;
    for (size_t i = block * BLOCK; i < end; i++) ask_one(q, i, worker);
}

n2ce_status n2_gauss_process_ask(const n2_gauss_process *p, const float *x, size_t n, double *mean,
                                 double *apart) {
    const size_t threads = (size_t)n2_ctx_threads(p->ctx);
    question q = {.p = p, .x = x, .n = n, .mean = mean, .apart = apart};
    q.scratch = n2_alloc(p->ctx, threads * (2 * p->rows + WAVES), sizeof *q.scratch);
    q.between = n2_alloc(p->ctx, threads * p->rows, sizeof *q.between);
    n2ce_status status = q.scratch && q.between ? N2CE_OK : N2CE_ENOMEM;
    if (status == N2CE_OK) status = n2_parallel_for(p->ctx, (n + BLOCK - 1) / BLOCK, ask_block, &q);
    n2_free(p->ctx, q.scratch);
    n2_free(p->ctx, q.between);
    return status;
}
