/* Which of cuDNN's engines does a convolution, and how.
 *
 * The heuristics have two modes that name configurations, best first: A, which is quick, and B.
 * Either may be off by a factor of two or three. So the engine is the one that B names most often;
 * its first configuration, in A's list or else in B's, settles which bytes come out; and of the
 * configurations that make the same bytes, which differ in tiles and stages, a stopwatch takes the
 * fastest. What comes out does not depend on the stopwatch. */
#include "cudnn_descriptors.h"

#ifdef N2_HAS_CUDNN
#include "base/narrow.h"

enum {
    MOST_CONFIGS = 64,         /* that a mode names */
    MOST_TRIED = 6,            /* of these */
    MOST_WORKSPACE = 256 << 20 /* bytes that an engine may want for itself */
};

/* Configurations, in the order in which they were named. */
typedef struct candidates {
    struct {
        descriptor config;
        int64_t engine;
    } list[2 * MOST_TRIED];
    int n, n_a; /* n_a: of mode A */
} candidates;

/* Whether an engine's numbers are as they should be: the same every time, and no less exact than
 * the types say. */
static bool is_fine(const cudnn *d, descriptor engine, bool strict) {
    cudnnBackendNumericalNote_t notes[CUDNN_NUMERICAL_NOTE_TYPE_COUNT];
    int64_t n = 0;
    bool fine = d->cudnnBackendGetAttribute(
                    engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                    CUDNN_NUMERICAL_NOTE_TYPE_COUNT, &n, notes) == CUDNN_STATUS_SUCCESS;
    for (int64_t i = 0; fine && i < n; i++) switch (notes[i]) {
        case CUDNN_NUMERICAL_NOTE_TENSOR_CORE:
            fine = !strict;
            break;
        case CUDNN_NUMERICAL_NOTE_STRICT_NAN_PROP:
            break;
        default: /* in any order, by 16 bits, FFT, Winograd */
            fine = false;
        }
    return fine;
}

/* The number of a configuration's engine; -1: it is not to be had. */
static int64_t engine_of(const cudnn *d, descriptor config, bool strict) {
    descriptor engine = NULL;
    int64_t n = 0, number = -1;
    if (d->cudnnBackendCreateDescriptor(CUDNN_BACKEND_ENGINE_DESCRIPTOR, &engine) !=
        CUDNN_STATUS_SUCCESS)
        return -1;
    if (d->cudnnBackendGetAttribute(config, CUDNN_ATTR_ENGINECFG_ENGINE,
                                    CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &n,
                                    &engine) != CUDNN_STATUS_SUCCESS ||
        d->cudnnBackendGetAttribute(engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, &n,
                                    &number) != CUDNN_STATUS_SUCCESS ||
        !is_fine(d, engine, strict))
        number = -1;
    d->cudnnBackendDestroyDescriptor(engine);
    return number;
}

/* What a mode of the heuristics names, best first. */
static int64_t ask_heuristics(workbench *w, descriptor graph, cudnnBackendHeurMode_t mode,
                              descriptor *configs) {
    const cudnn *d = w->d;
    int64_t n = 0;
    descriptor heuristics = begin(w, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    set_one(w, heuristics, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, &graph);
    set(w, heuristics, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
    finish(w, heuristics);
    for (int i = 0; i < MOST_CONFIGS && w->status == CUDNN_STATUS_SUCCESS; i++)
        w->status =
            d->cudnnBackendCreateDescriptor(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, &configs[i]);
    if (w->status == CUDNN_STATUS_SUCCESS)
        w->status =
            d->cudnnBackendGetAttribute(heuristics, CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                        CUDNN_TYPE_BACKEND_DESCRIPTOR, MOST_CONFIGS, &n, configs);
    return w->status == CUDNN_STATUS_SUCCESS ? n : 0;
}

/* Adds the first that a mode names. */
static void collect(const cudnn *d, descriptor graph, cudnnBackendHeurMode_t mode, bool strict,
                    candidates *c) {
    workbench w = {d, {}, 0, CUDNN_STATUS_SUCCESS};
    descriptor configs[MOST_CONFIGS] = {};
    const int64_t n = ask_heuristics(&w, graph, mode, configs);
    for (int64_t i = 0, taken = 0; i < n && taken < MOST_TRIED; i++) {
        const int64_t engine = engine_of(d, configs[i], strict);
        if (engine < 0) continue;
        c->list[c->n++] = {configs[i], engine};
        configs[i] = NULL;
        taken++;
    }
    for (descriptor config : configs)
        if (config) d->cudnnBackendDestroyDescriptor(config);
    clear(&w);
}

/* The engine that mode B names most often, the first of several; without B, A's first. */
static int64_t favourite_of(const candidates *c) {
    int most = 0;
    int64_t engine = c->n > 0 ? c->list[0].engine : -1;
    for (int i = c->n_a; i < c->n; i++) {
        int times = 0;
        for (int k = c->n_a; k < c->n; k++) times += c->list[k].engine == c->list[i].engine;
        if (times <= most) continue;
        most = times;
        engine = c->list[i].engine;
    }
    return engine;
}

/* An execution plan of a configuration; NULL: it does not work, or wants too much memory. */
static descriptor build_plan(const cudnn *d, descriptor config, int64_t *workspace) {
    workbench w = {d, {}, 0, CUDNN_STATUS_SUCCESS};
    int64_t n = 0;
    descriptor plan = begin(&w, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    set(&w, plan, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &d->handle);
    set_one(&w, plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, &config);
    finish(&w, plan);
    if (w.status == CUDNN_STATUS_SUCCESS)
        w.status = d->cudnnBackendGetAttribute(plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
                                               CUDNN_TYPE_INT64, 1, &n, workspace);
    if (w.status == CUDNN_STATUS_SUCCESS && *workspace <= MOST_WORKSPACE) return plan;
    clear(&w);
    return NULL;
}

/* So little that trying takes longer than it gains. */
static bool is_little(const convolution *c) {
    const double kernel = (double)(c->rows * c->columns) * c->c_in * c->c_out;
    return kernel * c->n * c->oh * c->ow < 0x1p28;
}

/* Plans of an engine, -1: of any; `most` of them at most. */
static int build_plans(const cudnn *d, candidates *c, int64_t engine, int most,
                       const convolution *key, convolution_plan *plans) {
    int n = 0;
    for (int i = 0; i < c->n && n < most; i++) {
        auto *at = &c->list[i];
        if (!at->config || (engine >= 0 && at->engine != engine)) continue;
        plans[n] = {*key, NULL, at->config, 0};
        plans[n].plan = build_plan(d, at->config, &plans[n].workspace);
        if (!plans[n].plan) continue;
        at->config = NULL; /* the plan's now */
        n++;
    }
    return n;
}

static void take_fastest(cudnn *d, convolution_plan *plans, int n, convolution_plan *out) {
    const int best = n > 1 ? n2_cudnn_fastest(d, plans, n) : 0;
    for (int i = 0; i < n; i++) {
        if (i == best) continue;
        d->cudnnBackendDestroyDescriptor(plans[i].plan);
        d->cudnnBackendDestroyDescriptor(plans[i].config);
    }
    if (n > 0) *out = plans[best];
}

void n2_cudnn_choose(cudnn *d, descriptor graph, convolution_plan *out) {
    const convolution key = out->key;
    candidates c = {};
    convolution_plan plans[2 * MOST_TRIED];
    collect(d, graph, CUDNN_HEUR_MODE_A, key.strict, &c);
    c.n_a = c.n;
    collect(d, graph, CUDNN_HEUR_MODE_B, key.strict, &c);
    if (c.n == 0) collect(d, graph, CUDNN_HEUR_MODE_FALLBACK, key.strict, &c);
    const int most = is_little(&key) ? 1 : 2 * MOST_TRIED;
    int n = build_plans(d, &c, favourite_of(&c), most, &key, plans);
    if (n == 0) n = build_plans(d, &c, -1, 1, &key, plans);
    take_fastest(d, plans, n, out);
    for (int i = 0; i < c.n; i++)
        if (c.list[i].config) d->cudnnBackendDestroyDescriptor(c.list[i].config);
}
#endif
