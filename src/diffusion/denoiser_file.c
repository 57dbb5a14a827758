/* A model in a file, and out of it again. */
#include "denoiser.h"

#include "base/numerics.h"
#include "io/bundle.h"
#include "io/json.h"

#include <math.h>
#include <string.h>

static const char FORMAT[] = "n2ce denoiser 1";

/* ---- sizes ---- */

/* Numbers of a spec, and their names in files. */
typedef struct spec_numbers {
    double height, width, kind, sigma, steps;
    double net, channels, base, levels, blocks, attention, labels, augment, dropout;
    double multiples[N2_UNET_LEVELS];
    double sd;
} spec_numbers;

enum { N_NUMBERS = sizeof(spec_numbers) / sizeof(double) };

static const char *const names[N_NUMBERS] = {
    "height", "width",  "kind",      "sigma",  "steps",   "net",     "channels", "base",
    "levels", "blocks", "attention", "labels", "augment", "dropout", "m0",       "m1",
    "m2",     "m3",     "m4",        "m5",     "m6",      "m7",      "sd"};

static spec_numbers numbers_of(const n2_denoiser_spec *s) {
    spec_numbers n = {.height = (double)s->height,
                      .width = (double)s->width,
                      .kind = s->kind,
                      .sigma = s->sigma,
                      .steps = (double)s->steps,
                      .net = s->net.kind,
                      .channels = (double)s->net.channels,
                      .base = (double)s->net.base,
                      .levels = s->net.levels,
                      .blocks = s->net.blocks,
                      .attention = s->net.attention,
                      .labels = (double)s->net.labels,
                      .augment = (double)s->net.augment,
                      .dropout = s->net.dropout,
                      .sd = s->edm.sd};
    for (int l = 0; l < N2_UNET_LEVELS; l++) n.multiples[l] = (double)s->net.multiples[l];
    return n;
}

void n2_denoiser_spec_json(const n2_denoiser_spec *spec, n2_text *out) {
    const spec_numbers all = numbers_of(spec);
    double x[N_NUMBERS];
    memcpy(x, &all, sizeof all);
    for (size_t i = 0; i < N_NUMBERS; i++) {
        n2_text_add(out, "%s\"%s\": ", i ? ", " : "{", names[i]);
        n2_text_add_number(out, x[i]);
    }
    n2_text_add(out, "}");
}

static bool is_count(double x, double least, double most) {
    return x >= least && x <= most && x == floor(x);
}

static bool is_net(const spec_numbers *n) {
    bool is = is_count(n->net, 0, N2_UNET_ADM) && is_count(n->channels, 1, 3) &&
              is_count(n->base / 4, 1, 1024) && is_count(n->levels, 1, N2_UNET_LEVELS) &&
              is_count(n->blocks, 1, 6) && is_count(n->attention, 0, 255) &&
              is_count(n->labels, 0, 256) && is_count(n->augment, 0, 64) && n->dropout >= 0 &&
              n->dropout < 1;
    for (int l = 0; is && l < (int)n->levels; l++) is = is_count(n->multiples[l], 1, 16);
    return is;
}

/* Whether numbers of a file can be sizes; then they are. */
static bool take_numbers(const spec_numbers *n, n2_denoiser_spec *s) {
    if (!is_net(n) || !is_count(n->kind, 0, N2_DENOISER_FEW_STEPS) || !(n->sd > 0)) return false;
    const double times = ldexp(1, (int)n->levels - 1);
    if (!is_count(n->height / times, 1, N2_DENOISER_SIDE_MAX / times) ||
        !is_count(n->width / times, 1, N2_DENOISER_SIDE_MAX / times))
        return false;
    *s = (n2_denoiser_spec){.height = (int64_t)n->height,
                            .width = (int64_t)n->width,
                            .edm = N2_EDM_DEFAULTS,
                            .kind = (n2_denoiser_kind)n->kind,
                            .sigma = n->sigma};
    s->edm.sd = n->sd;
    s->net = (n2_unet_spec){.kind = (n2_unet_kind)n->net,
                            .channels = (int64_t)n->channels,
                            .base = (int64_t)n->base,
                            .levels = (int)n->levels,
                            .blocks = (int)n->blocks,
                            .attention = (unsigned)n->attention,
                            .labels = (int64_t)n->labels,
                            .augment = (int64_t)n->augment,
                            .dropout = n->dropout};
    for (int l = 0; l < s->net.levels; l++) s->net.multiples[l] = (int64_t)n->multiples[l];
    if (s->kind == N2_DENOISER_ONE_STEP) return n->sigma > 0;
    if (s->kind == N2_DENOISER_TEACHER) return true;
    if (!is_count(n->steps, 2, N2_FEW_STEPS_MAX)) return false;
    s->steps = (size_t)n->steps;
    return true;
}

static n2ce_status read_spec(n2_json *json, double x[N_NUMBERS]) {
    const char *key;
    bool more;
    N2_TRY(n2_json_enter(json, '{'));
    for (;;) {
        size_t i = 0;
        N2_TRY(n2_json_next(json, '}', &more));
        if (!more) return n2_json_end(json);
        N2_TRY(n2_json_key(json, &key));
        while (i < N_NUMBERS && strcmp(key, names[i]) != 0) i++;
        N2_TRY(i < N_NUMBERS ? n2_json_number(json, &x[i]) : n2_json_skip(json));
    }
}

static n2ce_status spec_of_text(n2ce_ctx *ctx, const char *path, const char *text,
                                n2_denoiser_spec *spec) {
    double x[N_NUMBERS];
    spec_numbers numbers;
    const size_t n = text ? strlen(text) : 0;
    char *strings = n2_alloc(ctx, n + 1, 1);
    if (!strings) return N2CE_ENOMEM;
    n2_json json = n2_json_new(ctx, path, text ? text : "", n, strings);
    for (size_t i = 0; i < N_NUMBERS; i++) x[i] = N2_NAN;
    const n2ce_status status = read_spec(&json, x);
    n2_free(ctx, strings);
    N2_TRY(status);
    memcpy(&numbers, x, sizeof numbers);
    return take_numbers(&numbers, spec) ? N2CE_OK
                                        : n2_bundle_damaged(ctx, path, "its sizes are none");
}

/* ---- weights ---- */

/* Parameter i, then the noise of steps; NULL beyond the last. */
static n2_tensor *part_at(const n2_denoiser *m, size_t i) {
    const n2_parameters *p = &m->net.parameters;
    if (i < p->n) return p->list[i];
    return i == p->n ? m->log_sigma : NULL;
}

static n2ce_status put_all(const n2_denoiser *m, const char *note, n2_bundle *b) {
    n2_text spec = n2_text_new(m->ctx);
    char *text = NULL;
    n2_denoiser_spec_json(&m->spec, &spec);
    N2_TRY(n2_text_take(&spec, &text));
    n2_bundle_note(b, "spec", text);
    if (note) n2_bundle_note(b, "note", note);
    n2_free(m->ctx, text);
    n2_tensor *t;
    for (size_t i = 0; (t = part_at(m, i)); i++) {
        n2_st_tensor d;
        N2_TRY(n2_tensor_to_file(m->store, t, &b->arena, &d));
        n2_bundle_put(b, t->name, d.dtype, d.rank, d.shape, d.data);
    }
    return N2CE_OK;
}

n2ce_status n2_denoiser_save(const n2_denoiser *m, const char *note, const char *path,
                             bool overwrite) {
    n2_bundle b = n2_bundle_new(m->ctx);
    n2ce_status status = put_all(m, note, &b);
    if (status == N2CE_OK) status = n2_bundle_write(&b, FORMAT, path, overwrite);
    n2_bundle_free(&b);
    return status;
}

static n2ce_status take_all(n2_denoiser *m, const char *path, const n2_st_file *f) {
    n2_tensor *t;
    for (size_t i = 0; (t = part_at(m, i)); i++) {
        const n2_st_tensor *from = n2_st_find(f, t->name);
        const n2ce_status status = from ? n2_tensor_from_file(m->store, t, from) : N2CE_EDATA;
        if (status == N2CE_EDATA)
            return n2_bundle_damaged(m->ctx, path, "a part is missing or does not fit");
        N2_TRY(status);
    }
    return N2CE_OK;
}

/* None is made that the file cannot fill. */
static n2ce_status check_weights(n2ce_ctx *ctx, const char *path, const n2_st_file *f,
                                 const n2_denoiser_spec *spec) {
    n2_store *store;
    N2_TRY(n2_store_new(ctx, sizeof(float), &store));
    n2_parameters p = n2_parameters_to_count(store);
    n2_unet_new(&p, "", &spec->net);
    const double numbers = (double)n2_parameters_count(&p);
    const bool failed = p.failed;
    n2_store_free(store);
    if (failed) return N2CE_ENOMEM;
    return n2_bundle_can_hold(f, numbers)
               ? N2CE_OK
               : n2_bundle_damaged(ctx, path, "a part is missing or does not fit");
}

static n2ce_status load(n2ce_ctx *ctx, const char *path, const n2_st_file *f, n2_denoiser **out) {
    n2_denoiser_spec spec;
    N2_TRY(n2_bundle_check(ctx, path, f, FORMAT,
                           "a diffusion model that n2ce wrote. Make one with: n2ce train --model "
                           "diffusion"));
    N2_TRY(spec_of_text(ctx, path, n2_st_metadata(f, "spec"), &spec));
    N2_TRY(check_weights(ctx, path, f, &spec));
    N2_TRY(n2_denoiser_new(ctx, &spec, 0, out));
    const n2ce_status status = take_all(*out, path, f);
    if (status == N2CE_OK) return N2CE_OK;
    n2_denoiser_free(*out);
    *out = NULL;
    return status;
}

n2ce_status n2_denoiser_load(n2ce_ctx *ctx, const char *path, n2_denoiser **out) {
    n2_st_file *f;
    *out = NULL;
    N2_TRY(n2_st_open(ctx, path, &f));
    const n2ce_status status = load(ctx, path, f, out);
    n2_st_close(f);
    return status;
}

bool n2_denoiser_is_model(n2ce_ctx *ctx, const char *path) {
    n2_st_file *f;
    if (n2_st_open(ctx, path, &f) != N2CE_OK) return false;
    const char *format = n2_st_metadata(f, "format");
    const bool is = format && strcmp(format, FORMAT) == 0;
    n2_st_close(f);
    return is;
}
