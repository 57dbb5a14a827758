#include "noise_levels.h"

#include <math.h>

/* ---- levels ---- */

/* A share u of the way from the least to the most. */
static double level_at(double u) {
    const double most = pow(N2_SIGMA_MOST, 1 / N2_SIGMA_POWER);
    const double least = pow(N2_SIGMA_LEAST, 1 / N2_SIGMA_POWER);
    return pow(most + (1 - u) * (least - most), N2_SIGMA_POWER);
}

double n2_karras_sigma(size_t i, size_t n) {
    return i < n ? level_at(1 - (double)i / (double)(n - 1)) : 0;
}

double n2_sid_sigma(double u) { return level_at(u); }

/* ---- EDM, ancestral ---- */

n2_ancestral n2_ancestral_split(double sigma, double next) {
    const double s = sigma * sigma, t = next * next, up = t * (s - t) / s;
    return (n2_ancestral){.up = sqrt(up), .down = sqrt(t - up)};
}

/* ---- DDPM and FastDPM ---- */

static const double BETA_FIRST = 1e-4, BETA_LAST = 0.02;
enum { DDPM_STEPS = 1000 };

/* ln of the product of 1 - beta over DDPM's steps 0 .. t, for fractions too: 1 - beta_s is
 * d (c - s), and a product of such is a quotient of Gamma functions. */
static double ddpm_log_alpha(double t) {
    const double d = (BETA_LAST - BETA_FIRST) / (DDPM_STEPS - 1), c = (1 - BETA_FIRST) / d;
    return (t + 1) * log(d) + lgamma(c + 1) - lgamma(c - t);
}

static double ddpm_time(double log_alpha) {
    double low = -1, high = DDPM_STEPS - 1;
    for (int i = 0; i < 100; i++) {
        const double middle = (low + high) / 2;
        *(ddpm_log_alpha(middle) > log_alpha ? &low : &high) = middle;
    }
    return (low + high) / 2;
}

static double variance_of(size_t k, double x) {
    const double root = 1 + (double)k * x;
    return BETA_FIRST * root * root;
}

/* ln of the product of 1 - eta_0 .. eta_(n - 1). */
static double log_product(size_t n, double x) {
    double sum = 0;
    for (size_t k = 0; k < n; k++) sum += log1p(-variance_of(k, x));
    return sum;
}

/* At most what keeps the last variance below 0.95^2 or so. */
static double fastdpm_spacing(size_t n) {
    const double all = ddpm_log_alpha(DDPM_STEPS - 1);
    double low = 0, high = 0.95 / (sqrt(BETA_FIRST) * (double)n);
    if (log_product(n, high) > all) return high;
    for (int i = 0; i < 100; i++) {
        const double middle = (low + high) / 2;
        *(log_product(n, middle) > all ? &low : &high) = middle;
    }
    return (low + high) / 2;
}

n2_fastdpm_row n2_fastdpm(size_t i, size_t n) {
    static const double LAST_SIGMA = 1e-3; /* DxMI's, instead of 0 */
    const double x = fastdpm_spacing(n);
    const size_t k = n - 1 - i;
    n2_fastdpm_row r = {.variance = variance_of(k, x),
                        .before = exp(log_product(k + 1, x)),
                        .after = exp(log_product(k, x))};
    const double a = r.before, b = r.after;
    const double variance = (1 - b) / (1 - a) * (1 - a / b);
    r.time = ddpm_time(log(a));
    r.x_factor = sqrt(b / a);
    r.eps_factor = sqrt(1 - b - variance > 0 ? 1 - b - variance : 0) - sqrt(1 - a) * r.x_factor;
    r.sigma = k ? sqrt(variance) : LAST_SIGMA;
    return r;
}

/* ---- steps ---- */

const char *n2_sampler_name(n2_sampler_kind kind) {
    static const char *const names[] = {"heun", "ancestral", "fastdpm", "one-step"};
    return names[kind];
}

double n2_sampling_start(const n2_sampling *s) {
    if (s->kind == N2_SAMPLER_ONE_STEP) return s->sigma;
    return s->kind == N2_SAMPLER_FASTDPM ? 1 / sqrt(n2_fastdpm(0, s->steps).before) : N2_SIGMA_MOST;
}

static n2_denoise_step to_level(double sigma, double next, double noise) {
    const double keep = next / sigma;
    return (n2_denoise_step){.sigma = sigma, .keep = keep, .take = 1 - keep, .noise = noise};
}

static n2_denoise_step heun_step(const n2_sampling *s, size_t i) {
    static const double NOISE = 1.003, LEAST = 0.05, MOST = 50;
    const double sigma = n2_karras_sigma(i, s->steps);
    const bool churns = sigma >= LEAST && sigma <= MOST;
    const double gamma = churns ? fmin(s->churn / (double)s->steps, sqrt(2) - 1) : 0;
    const double more = sigma * (1 + gamma), next = n2_karras_sigma(i + 1, s->steps);
    const double alpha = 1 - s->early, middle = next > 0 ? more + alpha * (next - more) : 0;
    n2_denoise_step step = to_level(more, middle, NOISE * sqrt(more * more - sigma * sigma));
    step.next = next;
    step.middle = middle;
    step.first = (1 - 0.5 / alpha) / alpha;
    step.rest = 0.5 / alpha * (next - more);
    return step;
}

/* With eps = (x - D) / sigma and everything divided by sqrt(a), which FastDPM's x is multiplied
 * by. */
static n2_denoise_step fastdpm_step(size_t i, size_t n) {
    const n2_fastdpm_row r = n2_fastdpm(i, n);
    const double sigma = sqrt((1 - r.before) / r.before);
    const double eps = r.eps_factor / (sqrt(r.after) * sigma);
    const bool last = i + 1 == n;
    return (n2_denoise_step){.sigma = sigma,
                             .keep = 1 + eps,
                             .take = -eps,
                             .noise = last ? 0 : r.sigma / sqrt(r.after),
                             .next = last ? 0 : sqrt((1 - r.after) / r.after)};
}

static n2_denoise_step ancestral_step(size_t i, size_t n) {
    const double sigma = n2_karras_sigma(i, n), next = n2_karras_sigma(i + 1, n);
    const n2_ancestral split = n2_ancestral_split(sigma, next);
    n2_denoise_step step = to_level(sigma, split.down, split.up);
    step.next = next;
    return step;
}

n2_denoise_step n2_sampling_step(const n2_sampling *s, size_t i) {
    if (s->kind == N2_SAMPLER_HEUN) return heun_step(s, i);
    if (s->kind == N2_SAMPLER_ANCESTRAL) return ancestral_step(i, s->steps);
    if (s->kind == N2_SAMPLER_FASTDPM) return fastdpm_step(i, s->steps);
    return (n2_denoise_step){.sigma = s->sigma, .take = 1};
}

/* ---- DxMI ---- */

double n2_few_steps_log_sigma(const n2_sampling *s, size_t i) {
    static const double LEAST = 1e-3, LAST = 1e-4;
    return i + 1 == s->steps ? log(LAST) : log(fmax(n2_sampling_step(s, i).noise, LEAST));
}

static double sigmoid(double x) { return 1 / (1 + exp(-x)); }

double n2_dxmi_time_cost(size_t t, size_t steps) {
    const double middle = (double)steps / 2 - (double)t;
    return sigmoid(middle) - sigmoid(middle - 1);
}
