/* Runs of a plan, on the host or on a device, and reading what they made. */
#include "plan_data.h"
#include "walk.h"
#include "watch.h"

#include <math.h>

/* ---- runs ---------------------------------------------------------------- */

static n2ce_status run_on_host(n2_plan *p, uint32_t *bad) {
    N2_TRY(n2_plan_pull_tensors(p));
    N2_TRY(n2_walk(p));
    n2_plan_push_tensors(p);
    *bad = n2_bad_watched(p, UINT32_MAX);
    p->runs += *bad == 0;
    p->timed_runs += p->timing && *bad == 0;
    return N2CE_OK;
}

n2ce_status n2_plan_begin(n2_plan *p, uint64_t n) {
    p->bad = 0;
    if (p->device) return n2_plan_begin_on_device(p, n, n2_walk_alone);
    for (uint64_t k = 0; k < n && !p->bad; k++) N2_TRY(run_on_host(p, &p->bad));
    return N2CE_OK;
}

n2ce_status n2_plan_end(n2_plan *p) {
    if (p->device) N2_TRY(n2_plan_end_on_device(p, &p->bad));
    return p->bad ? n2_explain_bad(p, p->bad) : N2CE_OK;
}

n2ce_status n2_plan_run_many(n2_plan *p, uint64_t n) {
    N2_TRY(n2_plan_begin(p, n));
    return n2_plan_end(p);
}

n2ce_status n2_plan_run(n2_plan *p) { return n2_plan_run_many(p, 1); }

/* ---- reading ------------------------------------------------------------- */

void n2_plan_seed(n2_plan *p, uint64_t seed, uint32_t runs_so_far) {
    p->seed = seed;
    p->runs = runs_so_far;
    p->state_moved = true;
}

uint32_t n2_plan_runs(const n2_plan *p) { return p->runs; }
uint64_t n2_plan_seed_of(const n2_plan *p) { return p->seed; }
const n2_backend *n2_plan_backend(const n2_plan *p) { return p->backend; }

enum {
    READ = 65536
}; /* bytes that are fetched together: a device has to be waited for each time */

/* If a device fails, NaN. */
void n2_plan_get(const n2_plan *p, size_t k, double *values) {
    const n2_node_data *d = n2_node_at(p, p->outputs[k].id);
    const n2_planned *root = &p->nodes[p->nodes[p->outputs[k].id].root];
    const char *data = root->data;
    const size_t n = (size_t)n2_elements(d->shape), number = p->backend->bytes;
    const size_t bytes = n2_dtype_bytes(root->dtype, number);
    for (size_t i = 0, step = READ / bytes; i < n; i += step) {
        double some[READ / sizeof(double)];
        const size_t m = n - i < step ? n - i : step;
        const bool read = n2_plan_read(p, some, data + i * bytes, m * bytes) == N2CE_OK;
        for (size_t l = 0; l < m; l++)
            values[i + l] = read ? n2_load_number(some, root->dtype, number, l) : (double)NAN;
    }
}

double n2_plan_scalar(const n2_plan *p, size_t k) {
    if (n2_elements(n2_shape_at(p->graph, p->outputs[k])) != 1) return (double)NAN;
    double value;
    n2_plan_get(p, k, &value);
    return value;
}

void n2_plan_time(n2_plan *p, bool on) { p->timing = on; }
