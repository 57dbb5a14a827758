/* Parameters, layers, the optimiser and the samplers of n2ce_engine.h. */
#include "engine_types.h"

#include "sampler/svgd.h"
#include "train/train.h"

#include <stdio.h>
#include <string.h>

#define G      n2_graph_in(g)
#define IN(x)  n2_node_in(g, x)
#define OUT(x) (g ? n2_node_out(x) : N2CE_NONE)

struct n2ce_layer {
    n2ce_store *store;
    n2_layer layer;
};

struct n2ce_mlp {
    n2ce_store *store;
    int n;
    double slope;
    const n2ce_layer *layers[];
};

/* ---- parameters ---------------------------------------------------------- */

n2ce_parameters *n2ce_parameters_new(n2ce_store *store, uint64_t seed) {
    n2ce_parameters *p = store ? n2_arena_alloc(&store->arena, 1, sizeof *p) : NULL;
    if (!p) return NULL;
    p->store = store;
    p->list = n2_parameters_new(store->tensors, seed);
    return p;
}

size_t n2ce_parameters_n(const n2ce_parameters *parameters) {
    return parameters ? parameters->list.n : 0;
}

n2ce_tensor *n2ce_parameters_at(const n2ce_parameters *parameters, size_t index) {
    return index < n2ce_parameters_n(parameters) ? n2_tensor_out(parameters->list.list[index])
                                                 : NULL;
}

/* Names get beginnings and ends, for weights, moments and averages, which must not be cut off. */
enum { LONGEST_NAME = 80, LONGEST_OPTIMISER_NAME = 32 };

static bool is_name(const char *name, size_t longest) { return name && strlen(name) <= longest; }

bool n2_has_name(const n2ce_parameters *parameters, const char *name) {
    if (is_name(name, LONGEST_NAME)) return true;
    n2_fail(n2_store_ctx(parameters->store->tensors), N2CE_EINVAL,
            "Parameters and layers need a name of at most %d characters, not %s.", LONGEST_NAME,
            name ? name : "NULL");
    return false;
}

n2ce_tensor *n2ce_parameter(n2ce_parameters *parameters, const char *name, n2ce_shape shape,
                            double bound) {
    if (!parameters || !n2_has_name(parameters, name)) return NULL;
    return n2_tensor_out(n2_parameter(&parameters->list, name, n2_shape_in(shape), bound));
}

/* ---- layers -------------------------------------------------------------- */

n2ce_layer *n2ce_layer_new(n2ce_parameters *parameters, const char *name, int64_t in, int64_t out) {
    if (!parameters || !n2_has_name(parameters, name)) return NULL;
    n2ce_layer *layer = n2_arena_alloc(&parameters->store->arena, 1, sizeof *layer);
    if (!layer) return NULL;
    layer->store = parameters->store;
    layer->layer = n2_layer_new(&parameters->list, name, in, out);
    return layer->layer.weight && layer->layer.bias ? layer : NULL;
}

n2_node n2_fail_null(n2_graph *g, const char *what) {
    return n2_graph_fail(g, "the %s is NULL. %s", what,
                         n2ce_errmsg(n2_store_ctx(n2_graph_store(g))));
}

n2ce_node n2ce_layer_apply(n2ce_graph *g, const n2ce_layer *layer, n2ce_node x) {
    if (!g) return N2CE_NONE;
    if (!layer) return OUT(n2_fail_null(G, "layer"));
    if (!n2_tensor_fits(g, n2_tensor_out(layer->layer.weight))) return OUT(N2_NONE);
    return OUT(n2_layer_apply(G, &layer->layer, IN(x)));
}

n2ce_mlp *n2ce_mlp_new(n2ce_parameters *parameters, const char *name, const int64_t *widths,
                       int n_widths, double slope) {
    if (!parameters || !n2_has_name(parameters, name)) return NULL;
    if (!widths || n_widths < 2) {
        n2_fail(n2_store_ctx(parameters->store->tensors), N2CE_EINVAL,
                "The network \"%s\" has %d widths; it needs two at least, in and out.", name,
                widths ? n_widths : 0);
        return NULL;
    }
    const size_t n = (size_t)n_widths - 1;
    n2ce_mlp *mlp =
        n2_arena_alloc(&parameters->store->arena, 1, sizeof *mlp + n * sizeof mlp->layers[0]);
    if (!mlp) return NULL;
    mlp->store = parameters->store;
    mlp->slope = slope;
    for (size_t i = 0; i < n; i++) {
        char full[128];
        snprintf(full, sizeof full, "%s.%zu", name, 2 * i);
        mlp->layers[i] = n2ce_layer_new(parameters, full, widths[i], widths[i + 1]);
        if (!mlp->layers[i]) return NULL;
        mlp->n++;
    }
    return mlp;
}

n2ce_node n2ce_mlp_apply(n2ce_graph *g, const n2ce_mlp *mlp, n2ce_node x) {
    if (!g) return N2CE_NONE;
    if (!mlp) return OUT(n2_fail_null(G, "network"));
    for (int i = 0; i < mlp->n; i++) {
        if (i > 0) x = n2ce_lrelu(g, x, mlp->slope);
        x = n2ce_layer_apply(g, mlp->layers[i], x);
    }
    return x;
}

/* ---- averages ------------------------------------------------------------ */

n2ce_layer *n2ce_layer_averaged(const n2ce_layer *layer) {
    n2ce_layer *twin = layer ? n2_arena_alloc(&layer->store->arena, 1, sizeof *twin) : NULL;
    if (!twin) return NULL;
    twin->store = layer->store;
    twin->layer = n2_averaged_layer(layer->store->tensors, layer->layer);
    return twin;
}

n2ce_mlp *n2ce_mlp_averaged(const n2ce_mlp *mlp) {
    if (!mlp) return NULL;
    const size_t bytes = sizeof *mlp + (size_t)mlp->n * sizeof mlp->layers[0];
    n2ce_mlp *twin = n2_arena_alloc(&mlp->store->arena, 1, bytes);
    if (!twin) return NULL;
    memcpy(twin, mlp, bytes);
    for (int i = 0; i < mlp->n; i++)
        if (!(twin->layers[i] = n2ce_layer_averaged(mlp->layers[i]))) return NULL;
    return twin;
}

/* ---- the optimiser ------------------------------------------------------- */

n2ce_node n2ce_schedule_cosine(n2ce_graph *g, n2ce_node step, const void *steps) {
    return OUT(steps ? n2_schedule_cosine(G, IN(step), steps) : n2_fail_null(G, "schedule_arg"));
}

n2ce_node n2ce_schedule_exponential(n2ce_graph *g, n2ce_node step, const void *decay) {
    return OUT(decay ? n2_schedule_exponential(G, IN(step), decay)
                     : n2_fail_null(G, "schedule_arg"));
}

/* The engine calls back with its own types. */
static n2_node call_schedule(n2_graph *g, n2_node step, const void *arg) {
    const n2ce_adam *adam = arg;
    n2ce_graph *graph = n2_graph_out(g);
    const n2_node factor =
        n2_node_in(graph, adam->schedule(graph, n2_node_out(step), adam->schedule_arg));
    char text[64];
    if (!factor.id || n2_elements(n2_shape_at(g, factor)) == 1) return factor;
    return n2_graph_fail(g, "minimise: the schedule gives %s; it must be one number",
                         n2_shape_text(n2_shape_at(g, factor), text));
}

static void check_optimiser_name(n2_graph *g, const char *name) {
    if (!is_name(name, LONGEST_OPTIMISER_NAME))
        n2_graph_fail(g, "the name of an optimiser or a sampler has at most %d characters, not %s",
                      LONGEST_OPTIMISER_NAME, name ? name : "NULL");
}

void n2ce_minimise(n2ce_graph *g, const n2ce_adam *adam, const char *name,
                   const n2ce_parameters *parameters, n2ce_node loss, n2ce_node *norm) {
    n2_node size = N2_NONE;
    if (norm) *norm = N2CE_NONE;
    if (!g) return;
    const n2_node of = IN(loss);
    if (!adam)
        n2_fail_null(G, "optimiser");
    else if (adam->struct_size != sizeof *adam)
        n2_graph_fail(G, "minimise: start from N2CE_ADAM_INIT; struct_size is %zu, not %zu",
                      adam->struct_size, sizeof *adam);
    if (!parameters)
        n2_fail_null(G, "list of parameters");
    else if (parameters->store->tensors != n2_graph_store(G))
        n2_graph_fail(G, "minimise: the parameters belong to another store");
    check_optimiser_name(G, name);
    if (n2_graph_status(G) != N2CE_OK) return;
    const n2_optimiser optimiser = {
        .adam = {adam->beta1, adam->beta2, adam->eps, adam->decay},
        .rate = adam->rate,
        .clip = adam->clip,
        .schedule = adam->schedule ? call_schedule : NULL,
        .schedule_arg = adam,
    };
    n2_minimise(G, &optimiser, name, &parameters->list, of, norm ? &size : NULL);
    if (norm) *norm = OUT(size);
}

/* ---- samplers ------------------------------------------------------------ */

typedef struct density_call {
    n2ce_log_density *density;
    const void *model;
} density_call;

static n2_node call_density(n2_graph *g, n2_node x, const void *model) {
    const density_call *call = model;
    n2ce_graph *graph = n2_graph_out(g);
    const n2_node each = n2_node_in(graph, call->density(graph, n2_node_out(x), call->model));
    const int64_t rows = n2_shape_at(g, x).rank ? n2_shape_at(g, x).dim[0] : 0;
    char is[64], text[64];
    if (!each.id || n2_same_shape(n2_shape_at(g, each), n2_dims(rows, 1))) return each;
    return n2_graph_fail(g, "the log density of %s is %s; it must be one number a row, [%lld x 1]",
                         n2_shape_text(n2_shape_at(g, x), text),
                         n2_shape_text(n2_shape_at(g, each), is), (long long)rows);
}

n2ce_node n2ce_score(n2ce_graph *g, n2ce_node x, n2ce_log_density *density, const void *model) {
    const density_call call = {density, model};
    const n2_node at = IN(x);
    if (!density) return OUT(n2_fail_null(G, "log density"));
    return OUT(at.id ? n2_score(G, at, call_density, &call, NULL) : N2_NONE);
}

n2ce_node n2ce_langevin_step(n2ce_graph *g, n2ce_tensor *rows, n2ce_log_density *density,
                             const void *model, double step, bool metropolis) {
    if (!g) return N2CE_NONE;
    const density_call call = {density, model};
    if (!density) n2_fail_null(G, "log density");
    if (!density || !n2_tensor_fits(g, rows)) return OUT(N2_NONE);
    return OUT(n2_langevin_step(G, n2_tensor_in(rows), call_density, &call, step, metropolis));
}

n2ce_node n2ce_svgd_step(n2ce_graph *g, const char *name, n2ce_tensor *rows,
                         n2ce_log_density *density, const void *model, double rate) {
    if (!g) return N2CE_NONE;
    const density_call call = {density, model};
    if (!density) n2_fail_null(G, "log density");
    check_optimiser_name(G, name);
    if (n2_graph_status(G) != N2CE_OK || !n2_tensor_fits(g, rows)) return OUT(N2_NONE);
    return OUT(n2_svgd_step(G, name, n2_tensor_in(rows), call_density, &call, rate));
}
