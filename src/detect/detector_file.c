#include "detector_file.h"

#include "base/text.h"
#include "io/json.h"
#include "ratio/critic_file.h"

#include <math.h>
#include <string.h>
#include <sys/stat.h>

static const char FORMAT[] = "n2ce detector 1";

/* The array "numbers": of the detector, the ends of the folds, and of each fold's network. */
enum { SEED, FOLDS, WEIGHTS, HEAD = WEIGHTS + N2_PARTS_COUNT };
enum { NETWORK, STAGES, WIDTH, BLOCKS, SHAPE }; /* NETWORK: 0, there is none */

static size_t count_numbers(size_t folds) { return HEAD + folds + folds * SHAPE; }

bool n2_is_detector_file(n2ce_ctx *ctx, const char *path) {
    n2_st_file *f;
    struct stat info;
    if (stat(path, &info) != 0 || !S_ISREG(info.st_mode)) return false; /* a pipe is read once */
    if (n2_st_open(ctx, path, &f) != N2CE_OK) return false;
    const char *format = n2_st_metadata(f, "format");
    const bool found = format && strncmp(format, "n2ce detector", 13) == 0;
    n2_st_close(f);
    return found;
}

/* ---- saving -------------------------------------------------------------- */

/* [["name"], ["name", "level", "level"], ...] */
static n2ce_status describe_columns(const n2_detector *d, char **out) {
    n2_text text = n2_text_new(d->ctx);
    n2_text_add(&text, "[");
    for (size_t c = 0; c < d->cols; c++) {
        n2_text_add(&text, c ? ", [" : "[");
        n2_text_add_json_string(&text, d->names[c]);
        for (size_t k = 0; k < d->n_levels[c]; k++) {
            n2_text_add(&text, ", ");
            n2_text_add_json_string(&text, n2_levels_text(d->levels, d->names[c], k));
        }
        n2_text_add(&text, "]");
    }
    n2_text_add(&text, "]");
    return n2_text_take(&text, out);
}

static n2ce_status put_numbers(const n2_detector *d, n2_bundle *b) {
    double *x = n2_bundle_room(b, count_numbers(d->folds));
    if (!x) return N2CE_ENOMEM;
    x[SEED] = (double)d->seed;
    x[FOLDS] = (double)d->folds;
    memcpy(x + WEIGHTS, d->weight, sizeof d->weight);
    for (size_t k = 0; k < d->folds; k++) {
        const n2_learned *l = d->expert[k]->learned;
        double *shape = x + HEAD + d->folds + k * SHAPE;
        x[HEAD + k] = (double)d->begin[k + 1];
        if (!l || !l->critic) continue;
        shape[NETWORK] = 1;
        shape[STAGES] = (double)l->shape.stages;
        shape[WIDTH] = (double)l->shape.width;
        shape[BLOCKS] = (double)l->shape.blocks;
        N2_TRY(n2_critic_put(b, l->critic, k));
    }
    n2_bundle_put_doubles(b, "numbers", count_numbers(d->folds), 0, x);
    return N2CE_OK;
}

n2ce_status n2_detector_save(const n2_detector *d, const char *path, bool overwrite) {
    n2_bundle b = n2_bundle_new(d->ctx);
    char *columns = NULL;
    n2ce_status status = describe_columns(d, &columns);
    if (status == N2CE_OK) {
        n2_bundle_note(&b, "columns", columns);
        n2_bundle_put_doubles(&b, "rows", d->n, d->cols, d->rows);
        n2_bundle_put_doubles(&b, "parts", d->n, N2_PARTS_COUNT, d->parts);
        status = put_numbers(d, &b);
    }
    if (status == N2CE_OK) status = n2_bundle_write(&b, FORMAT, path, overwrite);
    n2_free(d->ctx, columns);
    n2_bundle_free(&b);
    return status;
}

/* ---- loading ------------------------------------------------------------- */

static n2ce_status read_column(n2_detector *d, n2_json *json, size_t c) {
    const char *text;
    bool more;
    size_t code;
    N2_TRY(n2_json_enter(json, '['));
    N2_TRY(n2_json_next(json, ']', &more));
    N2_TRY(n2_json_string(json, &text));
    d->names[c] = n2_alloc(d->ctx, strlen(text) + 1, 1);
    if (!d->names[c]) return N2CE_ENOMEM;
    strcpy(d->names[c], text);
    for (;;) {
        N2_TRY(n2_json_next(json, ']', &more));
        if (!more) return N2CE_OK;
        N2_TRY(n2_json_string(json, &text));
        d->categorical[c] = true;
        N2_TRY(n2_levels_add(d->levels, d->names[c], text, &code));
        if (code != d->n_levels[c]++) return N2CE_EDATA; /* one text twice, or one name */
    }
}

static n2ce_status read_columns(n2_detector *d, const char *path, const char *text, char *strings) {
    n2_json json = n2_json_new(d->ctx, path, text, strlen(text), strings);
    bool more;
    N2_TRY(n2_json_enter(&json, '['));
    for (size_t c = 0;; c++) {
        N2_TRY(n2_json_next(&json, ']', &more));
        if (!more) return c == d->cols ? N2CE_OK : N2CE_EDATA;
        if (c == d->cols) return N2CE_EDATA;
        N2_TRY(read_column(d, &json, c));
    }
}

static n2ce_status load_columns(n2_detector *d, const char *path, const n2_st_file *f) {
    const char *text = n2_st_metadata(f, "columns");
    if (!text) return N2CE_EDATA;
    d->names = n2_alloc(d->ctx, d->cols, sizeof *d->names);
    d->categorical = n2_alloc(d->ctx, d->cols, sizeof *d->categorical);
    d->n_levels = n2_alloc(d->ctx, d->cols, sizeof *d->n_levels);
    char *strings = n2_alloc(d->ctx, strlen(text) + 1, 1);
    n2ce_status status =
        d->names && d->categorical && d->n_levels && strings ? N2CE_OK : N2CE_ENOMEM;
    if (status == N2CE_OK) status = n2_levels_new(d->ctx, &d->levels);
    if (status == N2CE_OK) status = read_columns(d, path, text, strings);
    if (status == N2CE_OK) n2_levels_freeze(d->levels);
    n2_free(d->ctx, strings);
    return status;
}

/* A level of a normal row is one of those that the column has. */
static n2ce_status check_rows(const n2_detector *d) {
    for (size_t i = 0; i < d->n * d->cols; i++) {
        const double x = d->rows[i];
        const size_t levels = d->n_levels[i % d->cols];
        if (isinf(x)) return N2CE_EDATA;
        if (levels && !isnan(x) && !(x >= 0 && x < (double)levels && x == floor(x)))
            return N2CE_EDATA;
    }
    return N2CE_OK;
}

static n2ce_status load_rows(n2_detector *d, const n2_st_file *f) {
    N2_TRY(n2_bundle_take(d->ctx, f, "rows", d->n * d->cols, &d->rows));
    N2_TRY(n2_bundle_take(d->ctx, f, "parts", d->n * N2_PARTS_COUNT, &d->parts));
    for (size_t i = 0; i < d->n * N2_PARTS_COUNT; i++)
        if (!isfinite(d->parts[i])) return N2CE_EDATA;
    return check_rows(d);
}

static bool is_count(double x, double least, double most) {
    return x >= least && x <= most && x == floor(x);
}

/* What numbers say of the detector as a whole; false: they are impossible. */
static bool read_head(n2_detector *d, const double *x, size_t n) {
    double sum = 0;
    if (n < HEAD || !is_count(x[SEED], 0, 9007199254740992.0)) return false;
    if (!is_count(x[FOLDS], 2, N2_DETECT_FOLDS)) return false;
    d->seed = (uint64_t)x[SEED];
    d->folds = (size_t)x[FOLDS];
    if (n != count_numbers(d->folds)) return false;
    for (size_t p = 0; p < N2_PARTS_COUNT; p++) {
        d->weight[p] = x[WEIGHTS + p];
        if (!(d->weight[p] >= 0 && d->weight[p] <= 1)) return false;
        sum += d->weight[p];
    }
    for (size_t k = 0; k < d->folds; k++) {
        if (!is_count(x[HEAD + k], (double)d->begin[k] + 1, (double)d->n)) return false;
        d->begin[k + 1] = (size_t)x[HEAD + k];
    }
    return sum > 0 && d->begin[d->folds] == d->n;
}

static n2ce_status load_network(n2_detector *d, const n2_st_file *f, size_t k, const double *shape,
                                n2_device_choice *choice) {
    n2_learned *l = d->expert[k]->learned;
    if (!(shape[NETWORK] > 0)) return N2CE_OK;
    if (!l || !is_count(shape[STAGES], 1, 32) || !is_count(shape[WIDTH], 2, 65536) ||
        !is_count(shape[BLOCKS], 0, 32))
        return N2CE_EDATA;
    l->shape.stages = (size_t)shape[STAGES];
    l->shape.width = (size_t)shape[WIDTH];
    l->shape.blocks = (size_t)shape[BLOCKS];
    l->shape.choice = choice;
    const n2_critic_shape what = {l->width, 0, l->base, &l->shape};
    return n2_critic_take(d->ctx, f, k, &what, &l->critic);
}

static n2ce_status load_experts(n2_detector *d, const n2_st_file *f, const double *x,
                                n2_device_choice *choice) {
    for (size_t k = 0; k < d->folds; k++) {
        N2_TRY(n2_detector_teach(d, k, false, choice));
        N2_TRY(load_network(d, f, k, x + HEAD + d->folds + k * SHAPE, choice));
    }
    return n2_detector_calibrate(d);
}

static n2ce_status load_parts(n2_detector *d, const char *path, const n2_st_file *f,
                              n2_device_choice *choice) {
    const n2_st_tensor *rows = n2_st_find(f, "rows"), *numbers = n2_st_find(f, "numbers");
    double *x = NULL;
    if (!rows || rows->rank != 2 || rows->shape[0] < 2 || rows->shape[1] < 1 || !numbers)
        return N2CE_EDATA;
    d->n = (size_t)rows->shape[0];
    d->cols = (size_t)rows->shape[1];
    N2_TRY(load_columns(d, path, f));
    N2_TRY(load_rows(d, f));
    n2ce_status status = n2_bundle_take(d->ctx, f, "numbers", n2_st_elements(numbers), &x);
    if (status == N2CE_OK && !read_head(d, x, n2_st_elements(numbers))) status = N2CE_EDATA;
    if (status == N2CE_OK) status = load_experts(d, f, x, choice);
    n2_free(d->ctx, x);
    return status;
}

static n2ce_status load(n2ce_ctx *ctx, const char *path, const n2_st_file *f,
                        n2_device_choice *choice, n2_detector **out) {
    N2_TRY(n2_bundle_check(ctx, path, f, FORMAT,
                           "a detector. Make one with: n2ce detect --normal FILE --save FILE"));
    n2_detector *d = n2_alloc(ctx, 1, sizeof *d);
    if (!d) return N2CE_ENOMEM;
    d->ctx = ctx;
    const n2ce_status status = load_parts(d, path, f, choice);
    if (status == N2CE_OK) {
        *out = d;
        return N2CE_OK;
    }
    n2_detector_free(d);
    return status == N2CE_EDATA ? n2_bundle_damaged(ctx, path, "a part is missing or does not fit")
                                : status;
}

n2ce_status n2_detector_load(n2ce_ctx *ctx, const char *path, n2_device_choice *choice,
                             n2_detector **out) {
    n2_st_file *f;
    *out = NULL;
    N2_TRY(n2_st_open(ctx, path, &f));
    const n2ce_status status = load(ctx, path, f, choice, out);
    n2_st_close(f);
    return status;
}
