#include "io/safetensors.h"
#include "nn.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static size_t store_size(const n2_store *store) {
    size_t n = 0;
    while (n2_store_at(store, n)) n++;
    return n;
}

static n2_st_dtype dtype_of(const n2_store *store, const n2_tensor *t) {
    if (t->dtype != N2_NUMBER) return t->dtype == N2_BF16 ? N2_ST_BF16 : N2_ST_F16;
    return n2_store_bytes(store) == sizeof(float) ? N2_ST_F32 : N2_ST_F64;
}

static n2_st_tensor describe(const n2_store *store, const n2_tensor *t) {
    n2_st_tensor d = {.name = t->name,
                      .dtype = dtype_of(store, t),
                      .rank = t->shape.rank,
                      .data = t->data,
                      .bytes = n2_tensor_bytes(store, t)};
    for (int i = 0; i < t->shape.rank; i++) d.shape[i] = t->shape.dim[i];
    return d;
}

n2ce_status n2_checkpoint_save_noted(const n2_store *store, const n2_plan *plan, const char *note,
                                     const char *path) {
    n2ce_ctx *ctx = n2_store_ctx(store);
    const size_t n = store_size(store);
    for (size_t i = 0; i < n; i++) N2_TRY(n2_tensor_pull(store, n2_store_at(store, i)));
    n2_st_tensor *list = n2_alloc(ctx, n, sizeof *list);
    if (!list) return N2CE_ENOMEM;
    for (size_t i = 0; i < n; i++) list[i] = describe(store, n2_store_at(store, i));
    char seed[32], runs[32];
    snprintf(seed, sizeof seed, "%llu", (unsigned long long)n2_plan_seed_of(plan));
    snprintf(runs, sizeof runs, "%lu", (unsigned long)n2_plan_runs(plan));
    const n2_st_pair metadata[] = {{"n2ce.version", n2ce_version()},
                                   {"n2ce.seed", seed},
                                   {"n2ce.runs", runs},
                                   {"n2ce.device", n2_backend_device(n2_plan_backend(plan))},
                                   {"n2ce.note", note}};
    const n2ce_status status = n2_st_write(ctx, path, list, n, metadata, note ? 5 : 4);
    n2_free(ctx, list);
    return status;
}

n2ce_status n2_checkpoint_save(const n2_store *store, const n2_plan *plan, const char *path) {
    return n2_checkpoint_save_noted(store, plan, NULL, path);
}

static bool same_shape(const n2_st_tensor *a, n2_shape b) {
    if (a->rank != b.rank) return false;
    for (int i = 0; i < b.rank; i++)
        if (a->shape[i] != b.dim[i]) return false;
    return true;
}

/* Everything must fit before anything is changed. */
static n2ce_status check_fit(const n2_store *store, const n2_st_file *file, const char *path) {
    n2ce_ctx *ctx = n2_store_ctx(store);
    char text[64];
    for (size_t i = 0; n2_store_at(store, i); i++) {
        const n2_tensor *t = n2_store_at(store, i);
        const n2_st_tensor *found = n2_st_find(file, t->name);
        if (!found)
            return n2_fail(ctx, N2CE_EDATA,
                           "%s has no tensor \"%s\". Is it a checkpoint of this model?", path,
                           t->name);
        if (!same_shape(found, t->shape))
            return n2_fail(ctx, N2CE_EDATA,
                           "%s: the tensor \"%s\" is not %s. Was the model made "
                           "with other options?",
                           path, t->name, n2_shape_text(t->shape, text));
    }
    if (n2_st_metadata(file, "n2ce.seed") && n2_st_metadata(file, "n2ce.runs")) return N2CE_OK;
    return n2_fail(ctx, N2CE_EDATA, "%s is not a checkpoint: seed and runs are missing.", path);
}

/* Numbers of 16 bits by way of double, which is exact. */
static n2ce_status copy_narrow(n2_store *store, n2_tensor *t, const n2_st_tensor *found, size_t n) {
    n2ce_ctx *ctx = n2_store_ctx(store);
    double *values = n2_alloc(ctx, n + 1, sizeof *values);
    if (!values) return N2CE_ENOMEM;
    const n2ce_status status = n2_st_to_f64(ctx, found, values, n);
    if (status == N2CE_OK) n2_tensor_set(store, t, values);
    n2_free(ctx, values);
    return status;
}

static n2ce_status copy_in(n2_store *store, const n2_st_file *file) {
    n2ce_ctx *ctx = n2_store_ctx(store);
    for (size_t i = 0; n2_store_at(store, i); i++) {
        n2_tensor *t = n2_store_at(store, i);
        const n2_st_tensor *found = n2_st_find(file, t->name);
        const size_t n = (size_t)n2_elements(t->shape);
        if (t->dtype != N2_NUMBER) {
            N2_TRY(copy_narrow(store, t, found, n));
            continue;
        }
        N2_TRY(n2_store_bytes(store) == sizeof(float) ? n2_st_to_f32(ctx, found, t->data, n)
                                                      : n2_st_to_f64(ctx, found, t->data, n));
        n2_tensor_push(store, t);
    }
    return N2CE_OK;
}

/* What goes on elsewhere is no longer what an uninterrupted run gives. */
static void compare_devices(n2ce_ctx *ctx, const n2_st_file *file, const n2_plan *plan,
                            const char *path) {
    const char *then = n2_st_metadata(file, "n2ce.device");
    const char *now = n2_backend_device(n2_plan_backend(plan));
    if (then && strcmp(then, now) != 0)
        n2_log(ctx, N2CE_LOG_WARNING,
               "%s was made on %s and is continued on %s: the result is that of neither alone.",
               path, then, now);
}

n2ce_status n2_checkpoint_load(n2_store *store, n2_plan *plan, const char *path) {
    n2_st_file *file;
    N2_TRY(n2_st_open(n2_store_ctx(store), path, &file));
    n2ce_status status = check_fit(store, file, path);
    if (status == N2CE_OK) status = copy_in(store, file);
    if (status == N2CE_OK)
        n2_plan_seed(plan, strtoull(n2_st_metadata(file, "n2ce.seed"), NULL, 10),
                     (uint32_t)strtoul(n2_st_metadata(file, "n2ce.runs"), NULL, 10));
    if (status == N2CE_OK) compare_devices(n2_store_ctx(store), file, plan, path);
    n2_st_close(file);
    return status;
}

n2ce_status n2_checkpoint_device(n2ce_ctx *ctx, const char *path, char name[N2_DEVICE_NAME]) {
    n2_st_file *file;
    N2_TRY(n2_st_open(ctx, path, &file));
    const char *device = n2_st_metadata(file, "n2ce.device");
    snprintf(name, N2_DEVICE_NAME, "%s", device ? device : "");
    n2_st_close(file);
    return N2CE_OK;
}

n2ce_status n2_checkpoint_note(n2ce_ctx *ctx, const char *path, n2_text *note) {
    n2_st_file *file;
    N2_TRY(n2_st_open(ctx, path, &file));
    const char *text = n2_st_metadata(file, "n2ce.note");
    if (text) n2_text_add(note, "%s", text);
    n2_st_close(file);
    return note->failed ? N2CE_ENOMEM : N2CE_OK;
}
