#include "published.h"

#include "base/numerics.h"

#include <string.h>

/* Arrays stored in the notebooks of the repository: 10 000 samples to fit, 1000 to evaluate. */
#define TRE(problem, estimate, mse)                                                             \
    {"tre-" problem, "tre", N2_PUBLISHED_ESTIMATE, estimate, N2_NAN, "benrhodes26/tre_code"}, { \
        "tre-" problem, "tre", N2_PUBLISHED_MSE, mse, N2_NAN, "benrhodes26/tre_code"            \
    }

/* Tables of the repository: 10 000 rows, 10 seeds. */
#define MUTINFO(d, infonce, infonce_spread, dv, dv_spread)                                         \
    {"mutinfo-" #d, "infonce", N2_PUBLISHED_ESTIMATE, infonce, infonce_spread, "VanessB/mutinfo"}, \
    {                                                                                              \
        "mutinfo-" #d, "dv", N2_PUBLISHED_ESTIMATE, dv, dv_spread, "VanessB/mutinfo"               \
    }
#define ERROR(mi, method, value) \
    { "correlated-normal-" #mi, method, N2_PUBLISHED_ERROR, value, N2_NAN, "VanessB/mutinfo" }
#define CORRELATED(mi, ksg, knn, dv, nwj, infonce)                             \
    ERROR(mi, "nwj", nwj), ERROR(mi, "dv", dv), ERROR(mi, "infonce", infonce), \
        ERROR(mi, "ksg", ksg), ERROR(mi, "weighted-knn", knn)

#define SHIFTED(method, mse) \
    { "shifted-2d", method, N2_PUBLISHED_MSE, mse, N2_NAN, "Choi et al. 2022" }

static const n2_published numbers[] = {
    TRE("peaked", 13.049, 0.079),
    TRE("gap-3", 142.64, 3267),
    TRE("gap-4", 227.98, 16400),
    TRE("gap-10", 34.51, 264),
    SHIFTED("nce", 952.8),
    SHIFTED("tre", 0.63), /* 9 ratios */
    SHIFTED("tre-4-ratios", 1.1),
    SHIFTED("dre-infinity-time", 0.58),
    SHIFTED("dre-infinity", 0.35),
    MUTINFO(1, 1.986, 0.010, 2.006, 0.045),
    MUTINFO(2, 3.847, 0.010, 3.87, 0.15),
    MUTINFO(4, 5.950, 0.011, 6.74, 0.79),
    MUTINFO(8, 6.217, 0.000, 9.7, 1.5),
    MUTINFO(16, 6.217, N2_NAN, 9.8, 2.6),
    MUTINFO(32, 6.217, N2_NAN, 10.4, 1.6),
    MUTINFO(64, 6.217, N2_NAN, 8.9, 1.4),
    CORRELATED(1, 0.01, 0.02, 0.02, 0.03, 0.02),
    CORRELATED(2, 0.05, 0.02, 0.02, 0.03, 0.03),
    CORRELATED(3, 0.18, 0.07, 0.05, 0.08, 0.06),
    CORRELATED(4, 0.45, 0.29, 0.13, 0.21, 0.14),
    CORRELATED(5, 0.83, 0.64, 0.30, 0.48, 0.30),
    CORRELATED(6, 1.27, 0.65, 0.66, 1.01, 0.63),
    CORRELATED(7, 1.77, 1.01, 1.31, 1.77, 1.19),
    CORRELATED(8, 2.34, 1.59, 2.12, 2.66, 1.98),
    CORRELATED(9, 3.01, 2.26, 3.00, 3.69, 2.91),
    CORRELATED(10, 3.79, 3.01, 3.88, 4.59, 3.89),
};

enum { NUMBERS = sizeof numbers / sizeof numbers[0] };

const n2_published *n2_published_at(size_t i) { return i < NUMBERS ? &numbers[i] : NULL; }

const n2_published *n2_published_find(const char *problem, const char *method,
                                      n2_published_kind kind) {
    for (size_t i = 0; i < NUMBERS; i++)
        if (numbers[i].kind == kind && strcmp(numbers[i].problem, problem) == 0 &&
            strcmp(numbers[i].method, method) == 0)
            return &numbers[i];
    return NULL;
}

size_t n2_published_tre_ratios(const char *problem) {
    static const struct {
        const char *problem;
        size_t ratios;
    } rows[] = {
        {"tre-peaked", 3},     {"tre-gap-3", 19},      {"tre-gap-4", 29},
        {"tre-gap-10", 9},     {"shifted-2d", 9},      {"gaussian-mi-40", 2},
        {"gaussian-mi-80", 4}, {"gaussian-mi-160", 6}, {"gaussian-mi-320", 8},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (strcmp(rows[i].problem, problem) == 0) return rows[i].ratios;
    return 0;
}

const char *n2_published_kind_name(n2_published_kind kind) {
    static const char *const names[] = {"estimate", "error", "mse"};
    return names[kind];
}
