/* Makes what the robots of "n2ce study bbo" need: a policy, by CMA-ES on designs around the usual
 * one, and the designs that are its data, by CMA-ES again.
 *
 *     make_robots policy ant|dkitty GENERATIONS >src/design/NAME_policy.h
 *     make_robots data ant|dkitty GENERATIONS [NAME_policy.h] >DIR/NAME/designs.csv
 *
 * GENERATIONS of a policy may be seconds: 600s. A policy is learnt in two lessons of so many
 * generations each, or one and two thirds of the seconds: four searches that walk the usual design;
 * then, from the best that they found, one whose policies are worth the mean over eight designs, of
 * which seven are as far from the usual one as the data's first designs are. Data are the designs
 * of four searches that start there, each generation 16. The environment variable THREADS says how
 * many work. */
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

enum { FIRST_SEARCHES = 4, PUPILS = 8, SEARCHES = 4, TEST = 32, MOST_TRIED = 128 };
enum { OWN = 6, SHARED = 16, LEGS = 4, OF_LEG = 5, LEARNT = 3 * (SHARED + OF_LEG * LEGS) };
enum { START_STREAM = 3, TEST_STREAM, PUPIL_STREAM };
static const double FIRST_STEP = 0.1, SECOND_STEP = 0.03, STEP = 0.02;

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

/* All weights from those that are learnt. A leg senses its own joints and the torso, by weights
 * that legs have in common, and the clocks, by its own. */
static void expand(const double *learnt, double *policy) {
    enum { ACTIONS = N2_ROBOT_ACTIONS, TORSO = 2 * ACTIONS, CLOCK = TORSO + SHARED - OWN };
    memset(policy, 0, N2_ROBOT_WEIGHTS * sizeof *policy);
    for (size_t a = 0; a < ACTIONS; a++) {
        const size_t leg = a / 3;
        const double *from = learnt + a % 3 * (LEARNT / 3);
        double *to = policy + a * N2_ROBOT_SENSES;
        for (size_t i = 0; i < 3; i++) {
            to[leg * 3 + i] = from[i];
            to[ACTIONS + leg * 3 + i] = from[3 + i];
        }
        for (size_t i = OWN; i < SHARED; i++) to[TORSO + i - OWN] = from[i];
        for (size_t i = 0; i < OF_LEG; i++) to[CLOCK + i] = from[SHARED + i * LEGS + leg];
    }
}

/* Policies are tried on the first of these designs. */
typedef struct lesson {
    n2ce_ctx *ctx;
    const n2_robot *robot;
    double designs[PUPILS * N2_ROBOT_COLUMNS_MAX];
    size_t pupils, generation;
    double most, best[LEARNT]; /* what was earned at most, and by which policy */
    double deadline;
    double tried[MOST_TRIED][N2_ROBOT_WEIGHTS];
    double walked[MOST_TRIED * N2_ROBOT_COLUMNS_MAX], value[MOST_TRIED];
} lesson;

/* Every policy on one design: adds a share of what it earns. */
static n2ce_status walk_pupil(lesson *l, size_t pupil, size_t rows, double *value) {
    const size_t n = l->robot->columns;
    for (size_t i = 0; i < rows; i++)
        memcpy(l->walked + i * n, l->designs + pupil * n, n * sizeof *l->walked);
    N2_TRY(n2_robot_walk(l->ctx, l->robot, l->walked, rows, l->tried[0], true, l->value));
    for (size_t i = 0; i < rows; i++) value[i] += l->value[i] / (double)l->pupils;
    return N2CE_OK;
}

static n2ce_status try_policies(void *user, const double *x, size_t rows, double *value) {
    lesson *l = user;
    if (rows > MOST_TRIED) return N2CE_EINVAL;
    for (size_t i = 0; i < rows; i++) {
        expand(x + i * LEARNT, l->tried[i]);
        value[i] = 0;
    }
    for (size_t p = 0; p < l->pupils; p++) N2_TRY(walk_pupil(l, p, rows, value));
    for (size_t i = 0; i < rows; i++) {
        if (!(value[i] > l->most)) continue;
        l->most = value[i];
        memcpy(l->best, x + i * LEARNT, sizeof l->best);
    }
    if (++l->generation % 10 == 0) fprintf(stderr, "%zu: %g\n", l->generation, l->most);
    return n2_seconds() < l->deadline ? N2CE_OK : N2CE_ECANCELED;
}

/* From the best policy so far to a better one, on so many designs; until there were so many
 * generations, or so many seconds have passed. */
static n2ce_status learn(lesson *l, size_t pupils, double step, size_t generations,
                         double seconds) {
    double x[FIRST_SEARCHES * LEARNT];
    const size_t searches = pupils == 1 ? FIRST_SEARCHES : 1;
    const n2_cma cma = {
        .dim = LEARNT, .generations = generations, .sigma = step, .ask = try_policies, .user = l};
    for (size_t s = 0; s < searches; s++) memcpy(x + s * LEARNT, l->best, sizeof l->best);
    l->pupils = pupils;
    l->generation = 0;
    l->most = -N2_INFINITY;
    l->deadline = n2_seconds() + seconds;
    const n2ce_status status = n2_cma_maximise(l->ctx, &cma, searches, x);
    fprintf(stderr, "%zu generations\n", l->generation);
    return status == N2CE_ECANCELED ? N2CE_OK : status;
}

static n2ce_status test_policy(n2ce_ctx *ctx, const n2_robot *r, const double *learnt) {
    double designs[TEST * N2_ROBOT_COLUMNS_MAX], policy[N2_ROBOT_WEIGHTS], value[TEST + 1];
    double mean = 0;
    expand(learnt, policy);
    for (uint32_t i = 0; i < TEST; i++)
        draw_design(r, (n2_stream){0, TEST_STREAM, i}, designs + i * r->columns);
    N2_TRY(n2_robot_walk(ctx, r, designs, TEST, policy, false, value));
    N2_TRY(n2_robot_walk(ctx, r, r->usual, 1, policy, false, value + TEST));
    for (size_t i = 0; i < TEST; i++) mean += value[i] / TEST;
    fprintf(stderr, "%g on designs kept aside, %g on the usual one\n", mean, value[TEST]);
    return N2CE_OK;
}

static void print_policy(const n2_robot *r, const double *learnt) {
    double policy[N2_ROBOT_WEIGHTS];
    char upper[16] = "";
    expand(learnt, policy);
    for (size_t i = 0; r->name[i] && i < 15; i++) upper[i] = (char)(r->name[i] - 'a' + 'A');
    printf("/* The policy of %s, made by make_robots (docs/bbo.md). */\n", r->name);
    printf("#ifndef N2_%s_POLICY_H\n#define N2_%s_POLICY_H\n\n/* clang-format off */\n", upper,
           upper);
    printf("static const double n2_%s_policy[12 * 39] = {", r->name);
    for (size_t i = 0; i < N2_ROBOT_WEIGHTS; i++)
        printf("%s%.4g,", i % 13 ? " " : "\n    ", policy[i]);
    printf("\n};\n/* clang-format on */\n\n#endif\n");
}

static n2ce_status teach(lesson *l, size_t generations, double seconds) {
    const n2_robot *r = l->robot;
    memcpy(l->designs, r->usual, sizeof r->usual);
    for (uint32_t i = 1; i < PUPILS; i++)
        draw_design(r, (n2_stream){0, PUPIL_STREAM, i}, l->designs + i * r->columns);
    N2_TRY(test_policy(l->ctx, r, l->best));
    N2_TRY(learn(l, 1, FIRST_STEP, generations, seconds / 3));
    N2_TRY(test_policy(l->ctx, r, l->best));
    N2_TRY(learn(l, PUPILS, SECOND_STEP, generations, 2 * seconds / 3));
    N2_TRY(test_policy(l->ctx, r, l->best));
    print_policy(r, l->best);
    return N2CE_OK;
}

static n2ce_status train(n2ce_ctx *ctx, const n2_robot *r, size_t generations, double seconds) {
    lesson *l = calloc(1, sizeof *l);
    if (!l) return fail(ctx, N2CE_ENOMEM);
    l->ctx = ctx;
    l->robot = r;
    const n2ce_status status = teach(l, generations, seconds);
    free(l);
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

/* As the file will have it: contacts make walking chaotic, and what is rounded afterwards earns
 * something else. */
static double as_written(double number) {
    char text[32];
    snprintf(text, sizeof text, "%.7g", number);
    return strtod(text, NULL);
}

static void print_row(const n2_robot *r, const double *design, double value) {
    for (size_t c = 0; c < r->columns; c++) printf("%.7g,", design[c]);
    printf("%.9g\n", value);
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
        const double most = 1 - 1e-6; /* so that it is inside when it is rounded, too */
        designs[i] = as_written(middle + half * fmax(-most, fmin(most, x[i])));
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
    const char *threads = getenv("THREADS");
    const n2ce_ctx_options options = {.struct_size = sizeof options,
                                      .threads = threads ? atoi(threads) : 0};
    if (!r || n2ce_ctx_new(&ctx, &options) != N2CE_OK) {
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
