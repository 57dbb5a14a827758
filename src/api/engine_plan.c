/* Plans and checkpoints of n2ce_engine.h, and devices by their names. */
#include "engine_types.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

struct n2ce_plan {
    n2_plan *plan;
    n2_store *store;
    size_t n_outputs;
};

/* ---- devices ------------------------------------------------------------- */

n2ce_status n2_device_named(n2ce_ctx *ctx, const char *name, n2_device_choice *out) {
    char word[32];
    const char *comma = name ? strchr(name, ',') : NULL;
    const size_t n = comma ? (size_t)(comma - name) : name ? strlen(name) : 0;
    n2_precision precision = {0};
    const bool gpu = name && strncmp(name, "cuda", 4) == 0;
    const bool known_precision =
        comma && comma[1] == ' ' && n2_precision_of_word(comma + 2, &precision);
    const bool fits = n < sizeof word && (!comma || (gpu && known_precision));
    *out = (n2_device_choice){.reason = "as asked for"};
    if (!name) return N2CE_OK;
    snprintf(word, sizeof word, "%.*s", (int)n, name);
    const bool known =
        fits && (!strcmp(word, "cpu") || !strcmp(word, "auto") || n2_gpu_number(word) >= 0);
    if (known) return n2_choice_of_word(ctx, word, precision, out);
    return n2_fail(
        ctx, N2CE_EINVAL,
        "The device is \"%s\"; it is cpu, cuda, cuda:N (N from 0), or auto. "
        "\"cuda, float32\" multiplies without rounding to tf32; \"cuda, bf16\" and \"cuda, "
        "half\" store pictures inside networks in 16 bits.",
        name);
}

/* "auto" is a GPU if there is one: there is nothing to be measured yet. */
static n2ce_status find_backend(n2ce_ctx *ctx, const char *name, const n2_backend **out) {
    n2_device_choice choice;
    N2_TRY(n2_device_named(ctx, name, &choice));
    if (choice.open && choice.open(&choice, ctx, out) == N2CE_OK) return N2CE_OK;
    *out = n2_choice_backend(&choice);
    return N2CE_OK;
}

/* ---- plans --------------------------------------------------------------- */

static n2ce_status compile(n2_graph *g, const n2_backend *backend, const n2ce_node *outputs,
                           n2ce_plan *plan) {
    n2ce_ctx *ctx = n2_store_ctx(plan->store);
    n2_node *nodes = n2_alloc(ctx, plan->n_outputs, sizeof *nodes);
    if (!nodes) return N2CE_ENOMEM;
    for (size_t i = 0; outputs && i < plan->n_outputs; i++)
        nodes[i] = n2_node_in(n2_graph_out(g), outputs[i]);
    const n2ce_status status = n2_plan_compile(g, backend, nodes, plan->n_outputs, &plan->plan);
    n2_free(ctx, nodes);
    return status;
}

n2ce_status n2ce_plan_compile(n2ce_graph *g, const char *device, const n2ce_node *outputs,
                              size_t n_outputs, n2ce_plan **out) {
    const n2_backend *backend;
    *out = NULL;
    if (!g) return N2CE_EINVAL;
    n2_store *store = n2_graph_store(n2_graph_in(g));
    n2ce_ctx *ctx = n2_store_ctx(store);
    N2_TRY(n2_graph_tell(n2_graph_in(g)));
    N2_TRY(find_backend(ctx, device, &backend));
    n2ce_plan *plan = n2_alloc(ctx, 1, sizeof *plan);
    if (!plan) return N2CE_ENOMEM;
    *plan = (n2ce_plan){.store = store, .n_outputs = n_outputs};
    const n2ce_status status = compile(n2_graph_in(g), backend, outputs, plan);
    if (status == N2CE_OK)
        *out = plan;
    else
        n2_free(ctx, plan);
    return status;
}

void n2ce_plan_free(n2ce_plan *plan) {
    if (!plan) return;
    n2_plan_free(plan->plan);
    n2_free(n2_store_ctx(plan->store), plan);
}

const char *n2ce_plan_device(const n2ce_plan *plan) {
    return plan ? n2_backend_device(n2_plan_backend(plan->plan)) : NULL;
}

size_t n2ce_plan_bytes(const n2ce_plan *plan) {
    return plan ? n2_plan_measure(plan->plan).bytes : 0;
}

n2ce_status n2ce_plan_run(n2ce_plan *plan) { return plan ? n2_plan_run(plan->plan) : N2CE_EINVAL; }

n2ce_status n2ce_plan_run_many(n2ce_plan *plan, uint64_t runs) {
    enum { BATCH = 64 }; /* between two looks at whether to stop */
    if (!plan) return N2CE_EINVAL;
    n2ce_ctx *ctx = n2_store_ctx(plan->store);
    for (uint64_t done = 0; done < runs; done += BATCH) {
        if (n2_cancelled(ctx)) {
            n2_cancel_reset(ctx);
            return n2_fail(ctx, N2CE_ECANCELED, "Stopped on request, after %llu of %llu runs.",
                           (unsigned long long)done, (unsigned long long)runs);
        }
        N2_TRY(n2_plan_run_many(plan->plan, runs - done < BATCH ? runs - done : BATCH));
    }
    return N2CE_OK;
}

double n2ce_plan_scalar(const n2ce_plan *plan, size_t k) {
    return plan && k < plan->n_outputs ? n2_plan_scalar(plan->plan, k) : (double)NAN;
}

void n2ce_plan_get(const n2ce_plan *plan, size_t k, double *values) {
    if (plan && k < plan->n_outputs) n2_plan_get(plan->plan, k, values);
}

void n2ce_plan_seed(n2ce_plan *plan, uint64_t seed) {
    if (plan) n2_plan_seed(plan->plan, seed, n2_plan_runs(plan->plan));
}

uint64_t n2ce_plan_runs(const n2ce_plan *plan) { return plan ? n2_plan_runs(plan->plan) : 0; }

/* ---- files --------------------------------------------------------------- */

n2ce_status n2ce_checkpoint_save(const n2ce_plan *plan, const char *path) {
    return plan ? n2_checkpoint_save(plan->store, plan->plan, path) : N2CE_EINVAL;
}

n2ce_status n2ce_checkpoint_load(n2ce_plan *plan, const char *path) {
    return plan ? n2_checkpoint_load(plan->store, plan->plan, path) : N2CE_EINVAL;
}
