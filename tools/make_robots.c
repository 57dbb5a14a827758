/* Makes what the robots of "n2ce study bbo" need: a policy by evolution strategies over random
 * designs, and the designs that are its data, by repeated CMA-ES.
 *
 *     make_robots policy ant|dkitty GENERATIONS >src/design/NAME_policy.h
 *     make_robots data ant|dkitty GENERATIONS [NAME_policy.h] >DIR/NAME/designs.csv
 *
 * GENERATIONS of a policy may be seconds: 600s. A generation of the former tries 32 changes of the
 * policy, each way, on a design of its own that is as far from the usual one as the data's first
 * designs are; the policy moves along the differences, weighted by rank. Data are the designs of
 * four searches that start there, each generation 16. */
#include "base/clock.h"
#include "base/ctx.h"
#include "base/numerics.h"
#include "base/random.h"
#include "design/robot.h"
#include "optimize/cma.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PAIRS = 32, TRIES = 2 * PAIRS, SEARCHES = 4, TEST = 32 };
enum { OWN = 6, SHARED = 16, LEGS = 4, OF_JOINT = SHARED + 3 * LEGS, LEARNT = 3 * OF_JOINT };
enum { DESIGN_STREAM = 1, CHANGE_STREAM, START_STREAM, TEST_STREAM };
static const double CHANGE = 0.1, RATE = 0.02, STEP = 0.02;

/* The usual design, moved by chance. */
static void draw_design(const n2_robot *r, n2_stream stream, double *design) {
    float z[N2_ROBOT_COLUMNS_MAX];
    n2_fill_normal(stream, 0, r->columns, z);
    for (size_t c = 0; c < r->columns; c++) {
        const size_t k = c % r->legs_columns;
        design[c] = r->usual[c] + (double)z[c] * r->noise * (r->high[k] - r->low[k]) / 2;
        design[c] = fmax(r->low[k], fmin(r->high[k], design[c]));
    }
}

static n2ce_status fail(n2ce_ctx *ctx, n2ce_status status) {
    if (status != N2CE_OK) fprintf(stderr, "make_robots: %s\n", n2ce_errmsg(ctx));
    return status;
}

/* ---- policies -------------------------------------------------------------------------------- */

typedef struct training {
    double learnt[LEARNT], m[LEARNT], v[LEARNT];
    double policy[N2_ROBOT_WEIGHTS];
    float change[PAIRS][LEARNT];
    double tried[TRIES][N2_ROBOT_WEIGHTS], value[TRIES];
    double designs[TRIES * N2_ROBOT_COLUMNS_MAX];
} training;

/* All weights from those that are learnt. A leg senses its own joints, the torso, its clock. */
static void expand(const double *learnt, double *policy) {
    enum { ACTIONS = N2_ROBOT_ACTIONS, TORSO = 2 * ACTIONS, CLOCK = TORSO + SHARED - OWN };
    memset(policy, 0, N2_ROBOT_WEIGHTS * sizeof *policy);
    for (size_t a = 0; a < ACTIONS; a++) {
        const size_t leg = a / 3;
        const double *from = learnt + a % 3 * OF_JOINT;
        double *to = policy + a * N2_ROBOT_SENSES;
        for (size_t i = 0; i < 3; i++) {
            to[leg * 3 + i] = from[i];
            to[ACTIONS + leg * 3 + i] = from[3 + i];
            to[i < 2 ? CLOCK + i : N2_ROBOT_SENSES - 1] = from[SHARED + i * LEGS + leg];
        }
        for (size_t i = OWN; i < SHARED; i++) to[TORSO + i - OWN] = from[i];
    }
}

static void draw_generation(const n2_robot *r, training *t, uint32_t generation) {
    for (size_t p = 0; p < PAIRS; p++) {
        double design[N2_ROBOT_COLUMNS_MAX];
        const uint32_t step = generation * PAIRS + (uint32_t)p;
        draw_design(r, (n2_stream){0, DESIGN_STREAM, step}, design);
        n2_fill_normal((n2_stream){0, CHANGE_STREAM, step}, 0, LEARNT, t->change[p]);
        for (size_t way = 0; way < 2; way++) {
            const double sign = way ? -CHANGE : CHANGE;
            memcpy(t->designs + (2 * p + way) * r->columns, design, r->columns * sizeof *design);
            double tried[LEARNT];
            for (size_t i = 0; i < LEARNT; i++)
                tried[i] = t->learnt[i] + sign * (double)t->change[p][i];
            expand(tried, t->tried[2 * p + way]);
        }
    }
}

/* Places from -1/2 to 1/2. */
static double place(const training *t, size_t k) {
    size_t below = 0;
    for (size_t i = 0; i < TRIES; i++)
        below += t->value[i] < t->value[k] || (t->value[i] == t->value[k] && i < k);
    return (double)below / (TRIES - 1) - 0.5;
}

/* Adam along the difference of both ways. */
static void move_policy(training *t, uint32_t generation) {
    double weight[PAIRS];
    for (size_t p = 0; p < PAIRS; p++) weight[p] = place(t, 2 * p) - place(t, 2 * p + 1);
    for (size_t i = 0; i < LEARNT; i++) {
        double slope = 0;
        for (size_t p = 0; p < PAIRS; p++) slope += weight[p] * (double)t->change[p][i];
        slope /= PAIRS * CHANGE;
        t->m[i] = 0.9 * t->m[i] + 0.1 * slope;
        t->v[i] = 0.99 * t->v[i] + 0.01 * slope * slope;
        const double m = t->m[i] / (1 - pow(0.9, generation + 1));
        const double v = t->v[i] / (1 - pow(0.99, generation + 1));
        t->learnt[i] += RATE * m / (sqrt(v) + 1e-8);
    }
    expand(t->learnt, t->policy);
}

static n2ce_status test_policy(n2ce_ctx *ctx, const n2_robot *r, const training *t,
                               uint32_t generation) {
    double designs[TEST * N2_ROBOT_COLUMNS_MAX], value[TEST + 1], mean = 0;
    for (uint32_t i = 0; i < TEST; i++)
        draw_design(r, (n2_stream){0, TEST_STREAM, i}, designs + i * r->columns);
    n2ce_status status = n2_robot_walk(ctx, r, designs, TEST, t->policy, false, value);
    if (status == N2CE_OK)
        status = n2_robot_walk(ctx, r, r->usual, 1, t->policy, false, value + TEST);
    for (size_t i = 0; i < TEST; i++) mean += value[i] / TEST;
    if (status == N2CE_OK)
        fprintf(stderr, "%u: %g on designs kept aside, %g on the usual one\n", generation, mean,
                value[TEST]);
    return status;
}

static void print_policy(const n2_robot *r, const training *t) {
    char upper[16] = "";
    for (size_t i = 0; r->name[i] && i < 15; i++) upper[i] = (char)(r->name[i] - 'a' + 'A');
    printf("/* The policy of %s, made by make_robots (docs/bbo.md). */\n", r->name);
    printf("#ifndef N2_%s_POLICY_H\n#define N2_%s_POLICY_H\n\n/* clang-format off */\n", upper,
           upper);
    printf("static const double n2_%s_policy[12 * 39] = {", r->name);
    for (size_t i = 0; i < N2_ROBOT_WEIGHTS; i++)
        printf("%s%.4g,", i % 13 ? " " : "\n    ", t->policy[i]);
    printf("\n};\n/* clang-format on */\n\n#endif\n");
}

/* Until there were so many generations, or so many seconds have passed. */
static n2ce_status train(n2ce_ctx *ctx, const n2_robot *r, uint32_t generations, double seconds) {
    training *t = calloc(1, sizeof *t);
    n2ce_status status = t ? N2CE_OK : N2CE_ENOMEM;
    const double end = n2_seconds() + seconds;
    uint32_t g = 0;
    for (; g < generations && n2_seconds() < end && status == N2CE_OK; g++) {
        if (g % 25 == 0) status = test_policy(ctx, r, t, g);
        draw_generation(r, t, g);
        if (status == N2CE_OK)
            status = n2_robot_walk(ctx, r, t->designs, TRIES, t->tried[0], true, t->value);
        move_policy(t, g);
    }
    if (status == N2CE_OK) status = test_policy(ctx, r, t, g);
    if (status == N2CE_OK) print_policy(r, t);
    free(t);
    return fail(ctx, status);
}

/* ---- data ------------------------------------------------------------------------------------ */

typedef struct recorder {
    n2ce_ctx *ctx;
    const n2_robot *robot;
    double policy[N2_ROBOT_WEIGHTS];
} recorder;

/* The numbers after the brace of a file that `policy` wrote. */
static bool read_policy(const char *path, double *policy) {
    FILE *f = fopen(path, "r");
    int c = 0;
    size_t n = 0;
    while (f && (c = getc(f)) != EOF && c != '{') continue;
    while (f && n < N2_ROBOT_WEIGHTS && fscanf(f, " %lf ,", &policy[n]) == 1) n++;
    if (f) fclose(f);
    return n == N2_ROBOT_WEIGHTS;
}

/* In full: contacts make walking chaotic, and a design that is rounded earns something else. */
static void print_row(const n2_robot *r, const double *design, double value) {
    for (size_t c = 0; c < r->columns; c++) printf("%.17g,", design[c]);
    printf("%.6g\n", value);
}

/* Points are designs in halves of the ranges; what is beyond the bounds is moved there. */
static n2ce_status record(void *user, const double *x, size_t rows, double *value) {
    const recorder *rec = user;
    const n2_robot *r = rec->robot;
    double *designs = calloc(rows * r->columns, sizeof *designs);
    if (!designs) return N2CE_ENOMEM;
    for (size_t i = 0; i < rows * r->columns; i++) {
        const size_t k = i % r->columns % r->legs_columns;
        const double middle = (r->low[k] + r->high[k]) / 2, half = (r->high[k] - r->low[k]) / 2;
        designs[i] = fmax(r->low[k], fmin(r->high[k], middle + half * x[i]));
    }
    const n2ce_status status = n2_robot_walk(rec->ctx, r, designs, rows, rec->policy, false, value);
    for (size_t i = 0; i < rows && status == N2CE_OK; i++)
        print_row(r, designs + i * r->columns, value[i]);
    fflush(stdout);
    free(designs);
    return status;
}

static n2ce_status make_data(n2ce_ctx *ctx, const n2_robot *r, uint32_t generations,
                             const char *policy) {
    double x[SEARCHES * N2_ROBOT_COLUMNS_MAX];
    recorder rec = {.ctx = ctx, .robot = r};
    memcpy(rec.policy, r->policy, sizeof rec.policy);
    if (policy && !read_policy(policy, rec.policy)) {
        fprintf(stderr, "make_robots: %s is no policy.\n", policy);
        return N2CE_EDATA;
    }
    const n2_cma cma = {
        .dim = r->columns, .generations = generations, .sigma = STEP, .ask = record, .user = &rec};
    for (size_t c = 0; c < r->columns; c++) printf("x%zu,", c);
    printf("value\n");
    for (uint32_t s = 0; s < SEARCHES; s++) {
        double *start = x + s * r->columns;
        draw_design(r, (n2_stream){0, START_STREAM, s}, start);
        for (size_t c = 0; c < r->columns; c++) {
            const size_t k = c % r->legs_columns;
            const double half = (r->high[k] - r->low[k]) / 2;
            start[c] = half > 0 ? (start[c] - (r->low[k] + r->high[k]) / 2) / half : 0;
        }
    }
    return fail(ctx, n2_cma_maximise(ctx, &cma, SEARCHES, x));
}

int main(int argc, char **argv) {
    const n2_robot *r = argc >= 4 && strcmp(argv[2], "ant") == 0      ? &n2_ant_robot
                        : argc >= 4 && strcmp(argv[2], "dkitty") == 0 ? &n2_dkitty_robot
                                                                      : NULL;
    n2ce_ctx *ctx;
    if (!r || n2ce_ctx_new(&ctx, NULL) != N2CE_OK) {
        fprintf(stderr, "Usage: make_robots policy|data ant|dkitty GENERATIONS [POLICY]\n");
        return 2;
    }
    char *unit;
    const uint32_t many = (uint32_t)strtoul(argv[3], &unit, 10);
    const bool by_time = *unit == 's';
    const n2ce_status status = strcmp(argv[1], "data") == 0
                                   ? make_data(ctx, r, many, argv[4])
                                   : train(ctx, r, by_time ? 1000000 : many, by_time ? many : 1e9);
    n2ce_ctx_free(ctx);
    return status == N2CE_OK ? 0 : 1;
}
