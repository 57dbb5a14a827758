/* Levels of noise and what samplers do between them: numbers alone, no networks.
 *
 * A sampler goes down levels sigma, and a step of it is
 *
 *     x <- keep x + take D(x; sigma) + noise z,      z ~ N(0, I)
 *
 * for D the denoiser: Euler's step of the ODE from sigma to s is keep = s / sigma, take = 1 - keep.
 * Karras et al. 2022 (EDM); Kong and Ping 2021 (FastDPM); Zhou et al. 2024 (SiD); Yoon et al. 2024
 * (DxMI). */
#ifndef N2_NOISE_LEVELS_H
#define N2_NOISE_LEVELS_H

#include "base/ctx.h"

/* EDM's levels: from the first to the last, evenly in sigma^(1/7). */
#define N2_SIGMA_MOST  80.0
#define N2_SIGMA_LEAST 0.002
#define N2_SIGMA_POWER 7.0

/* Level i of n, of which the first is N2_SIGMA_MOST and the last N2_SIGMA_LEAST; level n is 0. */
double n2_karras_sigma(size_t i, size_t n);

/* The level at a share u of the way up from N2_SIGMA_LEAST: SiD draws u from U(0, 0.8). */
double n2_sid_sigma(double u);
#define N2_SID_SHARE 0.8

/* ---- steps ---- */

typedef struct n2_denoise_step {
    double sigma;
    double keep, take, noise;
    double next; /* the level after it; 0: the last */
    /* Heun's: keep and take lead to u at the level `middle`, and x becomes
     * x + first (u - x) + rest (u - D(u; middle)) / middle. */
    double middle, first, rest;
} n2_denoise_step;

typedef enum n2_sampler_kind {
    N2_SAMPLER_HEUN,      /* EDM's algorithm 2: of second order, without noise unless it churns */
    N2_SAMPLER_ANCESTRAL, /* Euler's step to sigma_down, then noise of sigma_up */
    N2_SAMPLER_FASTDPM,   /* DDPM's reversed steps over few, quadratically spaced variances */
    N2_SAMPLER_ONE_STEP   /* D(sigma z; sigma): generators that were distilled */
} n2_sampler_kind;
const char *n2_sampler_name(n2_sampler_kind kind);

typedef struct n2_sampling {
    n2_sampler_kind kind;
    size_t steps; /* at least 2, but for N2_SAMPLER_ONE_STEP; FastDPM: at most 100 */
    double sigma; /* of N2_SAMPLER_ONE_STEP */
    double churn; /* of Heun: EDM's S_churn, with S_min 0.05, S_max 50, S_noise 1.003; 0: none */
    /* of Heun: how far before a step's end its second look is, as a share of the step. 0 is Heun's
     * rule, 0.5 the midpoint's (EDM's algorithm 3 with alpha = 1 - early): of a normal distribution
     * Heun's makes too much, 18 steps 4 to 27 % of variance, and a second look at 0.6 of the step
     * 1 %. */
    double early;
    /* of teachers that are told classes: D becomes D without + (1 + guide) (D with - D without),
     * for D without the class; 0: as it is, at half the work */
    double guide;
} n2_sampling;

/* Where chains begin: x = sigma z. */
double n2_sampling_start(const n2_sampling *s);

/* Step i of s->steps. Heun's `noise` is what its churn adds before the step, from `sigma` on:
 * sigma is that of after. */
n2_denoise_step n2_sampling_step(const n2_sampling *s, size_t i);

/* ---- EDM, ancestral ---- */

/* From sigma to next: noise of variance sigma_up^2 on top of the ODE's step to sigma_down. */
typedef struct n2_ancestral {
    double up, down;
} n2_ancestral;
n2_ancestral n2_ancestral_split(double sigma, double next);

/* ---- DDPM and FastDPM ----
 *
 * x_vp = sqrt(a) (y + sigma z), sigma^2 = (1 - a) / a. Of n steps, the variances of which are
 * 1e-4 (1 + k x)^2 for k = 0 (data's side) to n - 1, with x as large as the sheet's clamp has it
 * or less, so that their product is that of DDPM's 1000 linear ones. */
typedef struct n2_fastdpm_row {
    double variance; /* eta_k of the step's own k = n - 1 - i */
    double before;   /* a of what the step is given; */
    double after;    /* and of what it makes: 1 at the last */
    double time;     /* tau: DDPM's step with this a, a fraction */
    double x_factor, eps_factor, sigma;
} n2_fastdpm_row;

/* Row i of n, the first of which is the noisiest. 2 <= n <= 100. */
n2_fastdpm_row n2_fastdpm(size_t i, size_t n);

/* ---- DxMI ---- */

/* ln of the noise of step i that a sampler of few steps begins to learn with: 1e-3 at least, and
 * 1e-4 for the last step, which has none. */
double n2_few_steps_log_sigma(const n2_sampling *s, size_t i);

/* R(t) of T steps: what a step costs, more in the middle; the sum is nearly 1. */
double n2_dxmi_time_cost(size_t t, size_t steps);

#endif
