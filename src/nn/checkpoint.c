#include "io/bundle.h"
#include "io/own_file.h"
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

/* ---- kernels: [rows, columns, in, out] in memory, [out, in, rows, columns] in files ---- */

static n2_shape shape_in_file(const n2_tensor *t) {
    const int64_t *k = t->shape.dim;
    return t->is_kernel ? n2_dims(k[3], k[2], k[0], k[1]) : t->shape;
}

/* Elements of a kernel from one order to the other. */
static void reorder(const n2_tensor *t, size_t bytes, const char *from, char *to, bool to_file) {
    const size_t area = (size_t)(t->shape.dim[0] * t->shape.dim[1]);
    const size_t in = (size_t)t->shape.dim[2], out = (size_t)t->shape.dim[3];
    for (size_t o = 0; o < out; o++)
        for (size_t i = 0; i < in; i++)
            for (size_t k = 0; k < area; k++) {
                const size_t file = (o * in + i) * area + k, memory = (k * in + i) * out + o;
                memcpy(to + bytes * (to_file ? file : memory),
                       from + bytes * (to_file ? memory : file), bytes);
            }
}

/* A copy of a kernel in the order of files. NULL: out of memory. */
static const void *kernel_for_file(n2_arena *copies, const n2_store *store, const n2_tensor *t) {
    const size_t all = n2_tensor_bytes(store, t), n = (size_t)n2_elements(t->shape);
    char *copy = n2_arena_alloc(copies, all + 1, 1);
    if (copy && n) reorder(t, all / n, t->data, copy, true);
    return copy;
}

/* ---- lists of tensors ---- */

typedef struct tensors {
    n2_store *store;
    n2_tensor **list;
    size_t n;
} tensors;

/* All of a store but what is given; the list is the arena's. */
static n2ce_status all_of(const n2_store *store, n2_arena *arena, tensors *t) {
    n2_tensor *one;
    *t = (tensors){.store = (n2_store *)store};
    t->list = n2_arena_alloc(arena, store_size(store) + 1, sizeof *t->list);
    for (size_t i = 0; t->list && (one = n2_store_at(store, i)); i++)
        if (!one->is_given) t->list[t->n++] = one;
    return t->list ? N2CE_OK : N2CE_ENOMEM;
}

static n2_st_tensor describe(const n2_store *store, const n2_tensor *t, const void *data) {
    n2_st_tensor d = {.name = t->name,
                      .dtype = dtype_of(store, t),
                      .rank = t->shape.rank,
                      .data = data,
                      .bytes = n2_tensor_bytes(store, t)};
    const n2_shape shape = shape_in_file(t);
    for (int i = 0; i < shape.rank; i++) d.shape[i] = shape.dim[i];
    return d;
}

n2ce_status n2_tensor_to_file(const n2_store *store, const n2_tensor *t, n2_arena *arena,
                              n2_st_tensor *out) {
    N2_TRY(n2_tensor_pull(store, t));
    const void *data = t->is_kernel ? kernel_for_file(arena, store, t) : t->data;
    if (!data) return N2CE_ENOMEM;
    *out = describe(store, t, data);
    return N2CE_OK;
}

static n2ce_status list_tensors(const tensors *t, n2_arena *arena, n2_st_tensor **list) {
    *list = n2_arena_alloc(arena, t->n + 1, sizeof **list);
    if (!*list) return N2CE_ENOMEM;
    for (size_t i = 0; i < t->n; i++)
        N2_TRY(n2_tensor_to_file(t->store, t->list[i], arena, &(*list)[i]));
    return N2CE_OK;
}

static n2ce_status save(const n2_store *store, const n2_plan *plan, const char *note,
                        const char *path, n2_file_writer *write) {
    char seed[32], runs[32], sum[N2_CHECKSUM_ROOM];
    snprintf(seed, sizeof seed, "%llu", (unsigned long long)n2_plan_seed_of(plan));
    snprintf(runs, sizeof runs, "%lu", (unsigned long)n2_plan_runs(plan));
    const n2_st_pair metadata[] = {{"n2ce.version", n2ce_version()},
                                   {"n2ce.seed", seed},
                                   {"n2ce.runs", runs},
                                   {"n2ce.device", n2_backend_device(n2_plan_backend(plan))},
                                   {"checksum", sum},
                                   {"n2ce.note", note}};
    const size_t n = note ? 6 : 5;
    n2_st_tensor *list;
    n2_arena arena = n2_arena_new(n2_store_ctx(store));
    tensors all;
    n2ce_status status = all_of(store, &arena, &all);
    if (status == N2CE_OK) status = list_tensors(&all, &arena, &list);
    if (status == N2CE_OK) {
        n2_checksum(list, all.n, metadata, n, sum);
        status = n2_st_put(n2_store_ctx(store), path, list, all.n, metadata, n, write);
    }
    n2_arena_free(&arena);
    return status;
}

n2ce_status n2_checkpoint_save(const n2_store *store, const n2_plan *plan, const char *path) {
    return save(store, plan, NULL, path, n2_file_write);
}

n2ce_status n2_checkpoint_save_own(const n2_store *store, const n2_plan *plan, const char *note,
                                   const char *path) {
    return save(store, plan, note, path, n2_own_file_write);
}

n2ce_status n2_parameters_save(const n2_parameters *p, const char *path) {
    const n2_st_pair metadata[] = {{"format", "pt"}, {"n2ce.version", n2ce_version()}};
    n2_arena arena = n2_arena_new(n2_store_ctx(p->store));
    const tensors all = {p->store, p->list, p->n};
    n2_st_tensor *list;
    n2ce_status status = list_tensors(&all, &arena, &list);
    if (status == N2CE_OK)
        status = n2_st_write(n2_store_ctx(p->store), path, list, all.n, metadata, 2);
    n2_arena_free(&arena);
    return status;
}

static bool same_shape(const n2_st_tensor *a, n2_shape b) {
    if (a->rank != b.rank) return false;
    for (int i = 0; i < b.rank; i++)
        if (a->shape[i] != b.dim[i]) return false;
    return true;
}

/* Everything must fit before anything is changed. */
static n2ce_status check_fit(const tensors *t, const n2_st_file *file, const char *path) {
    n2ce_ctx *ctx = n2_store_ctx(t->store);
    char text[64];
    for (size_t i = 0; i < t->n; i++) {
        const n2_shape shape = shape_in_file(t->list[i]);
        const char *name = t->list[i]->name;
        const n2_st_tensor *found = n2_st_find(file, name);
        if (!found)
            return n2_fail(ctx, N2CE_EDATA,
                           "%s has no tensor \"%s\". Is it a checkpoint of this model?", path,
                           name);
        if (!same_shape(found, shape))
            return n2_fail(ctx, N2CE_EDATA,
                           "%s: the tensor \"%s\" is not %s. Was the model made "
                           "with other options?",
                           path, name, n2_shape_text(shape, text));
        if (found->dtype == N2_ST_BOOL)
            return n2_fail(ctx, N2CE_EDATA, "%s: the tensor \"%s\" holds no numbers.", path, name);
    }
    return N2CE_OK;
}

static n2ce_status check_state(n2ce_ctx *ctx, const n2_st_file *file, const char *path) {
    if (!n2_st_metadata(file, "n2ce.seed") || !n2_st_metadata(file, "n2ce.runs"))
        return n2_fail(ctx, N2CE_EDATA, "%s is not a checkpoint: seed and runs are missing.", path);
    return n2_checksum_fits(file) ? N2CE_OK
                                  : n2_bundle_damaged(ctx, path, "the check sum does not fit");
}

/* By way of double, which is exact: numbers of 16 bits, and kernels. */
static n2ce_status convert(n2_store *store, n2_tensor *t, const n2_st_tensor *found, size_t n) {
    n2ce_ctx *ctx = n2_store_ctx(store);
    double *values = n2_alloc(ctx, 2 * n + 1, sizeof *values), *turned = values + n;
    if (!values) return N2CE_ENOMEM;
    const n2ce_status status = n2_st_to_f64(ctx, found, values, n);
    if (t->is_kernel) reorder(t, sizeof *values, (char *)values, (char *)turned, false);
    if (status == N2CE_OK) n2_tensor_set(store, t, t->is_kernel ? turned : values);
    n2_free(ctx, values);
    return status;
}

static n2ce_status copy_one(n2_store *store, n2_tensor *t, const n2_st_tensor *found) {
    n2ce_ctx *ctx = n2_store_ctx(store);
    const size_t n = (size_t)n2_elements(t->shape);
    if (t->dtype != N2_NUMBER || t->is_kernel) return convert(store, t, found, n);
    N2_TRY(n2_store_bytes(store) == sizeof(float) ? n2_st_to_f32(ctx, found, t->data, n)
                                                  : n2_st_to_f64(ctx, found, t->data, n));
    n2_tensor_push(store, t);
    return N2CE_OK;
}

n2ce_status n2_tensor_from_file(n2_store *store, n2_tensor *t, const n2_st_tensor *from) {
    return same_shape(from, shape_in_file(t)) ? copy_one(store, t, from) : N2CE_EDATA;
}

static n2ce_status copy_in(const tensors *list, const n2_st_file *file) {
    for (size_t i = 0; i < list->n; i++)
        N2_TRY(copy_one(list->store, list->list[i], n2_st_find(file, list->list[i]->name)));
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

static n2ce_status load_all(n2_store *store, n2_plan *plan, const n2_st_file *file, n2_arena *arena,
                            const char *path) {
    n2ce_ctx *ctx = n2_store_ctx(store);
    tensors all;
    N2_TRY(all_of(store, arena, &all));
    N2_TRY(check_fit(&all, file, path));
    N2_TRY(check_state(ctx, file, path));
    N2_TRY(copy_in(&all, file));
    n2_plan_seed(plan, strtoull(n2_st_metadata(file, "n2ce.seed"), NULL, 10),
                 (uint32_t)strtoul(n2_st_metadata(file, "n2ce.runs"), NULL, 10));
    compare_devices(ctx, file, plan, path);
    return N2CE_OK;
}

n2ce_status n2_checkpoint_load(n2_store *store, n2_plan *plan, const char *path) {
    n2_st_file *file;
    N2_TRY(n2_st_open(n2_store_ctx(store), path, &file));
    n2_arena arena = n2_arena_new(n2_store_ctx(store));
    const n2ce_status status = load_all(store, plan, file, &arena, path);
    n2_arena_free(&arena);
    n2_st_close(file);
    return status;
}

n2ce_status n2_parameters_load(const n2_parameters *p, const char *path) {
    const tensors list = {p->store, p->list, p->n};
    n2_st_file *file;
    N2_TRY(n2_st_open(n2_store_ctx(p->store), path, &file));
    n2ce_status status = check_fit(&list, file, path);
    if (status == N2CE_OK) status = copy_in(&list, file);
    n2_st_close(file);
    return status;
}

bool n2_is_checkpoint(n2ce_ctx *ctx, const char *path) {
    n2_st_file *file;
    if (n2_st_open(ctx, path, &file) != N2CE_OK) return false;
    const bool is = n2_st_metadata(file, "n2ce.seed") && n2_st_metadata(file, "n2ce.runs");
    n2_st_close(file);
    return is;
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
