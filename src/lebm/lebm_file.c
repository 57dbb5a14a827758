/* A model in a file, and out of it again. */
#include "io/bundle.h"
#include "io/json.h"
#include "lebm.h"

#include <math.h>
#include <string.h>

static const char FORMAT[] = "n2ce pictures 1";
static const char *const kinds[] = {"none", "n2ce", "mle"};

/* ---- sizes ---- */

/* Numbers of a spec and their names in files; whole ones but for M and the step. */
typedef struct spec_numbers {
    double height, width, channels, nz, encoder_width, embedding, decoder_width;
    double magnitude, noise, stages, ratio_width, depth, moves, step, fitted;
} spec_numbers;

enum { N_NUMBERS = sizeof(spec_numbers) / sizeof(double) };

static const char *const names[N_NUMBERS] = {
    "height", "width",  "channels",    "nz",    "encoder_width", "embedding", "decoder_width", "M",
    "noise",  "stages", "ratio_width", "depth", "moves",         "step",      "fitted"};

static spec_numbers numbers_of(const n2_lebm_spec *s) {
    const n2_prior_spec *p = &s->prior;
    return (spec_numbers){(double)s->frame.height,
                          (double)s->frame.width,
                          (double)s->frame.channels,
                          (double)s->nz,
                          (double)s->encoder_width,
                          (double)s->embedding,
                          (double)s->decoder_width,
                          p->magnitude,
                          (double)p->noise,
                          (double)p->stages,
                          (double)p->width,
                          (double)p->depth,
                          (double)p->moves,
                          p->step,
                          p->fitted};
}

void n2_lebm_spec_json(const n2_lebm_spec *spec, n2_text *out) {
    const spec_numbers all = numbers_of(spec);
    double x[N_NUMBERS];
    memcpy(x, &all, sizeof all);
    n2_text_add(out, "{\"net\": \"%s\", \"prior\": \"%s\"", spec->net->name,
                kinds[spec->prior.kind]);
    for (size_t i = 0; i < N_NUMBERS; i++) {
        n2_text_add(out, ", \"%s\": ", names[i]);
        n2_text_add_number(out, x[i]);
    }
    n2_text_add(out, "}");
}

static void add_numbers(n2_text *out, const char *name, const double *x, size_t n) {
    n2_text_add(out, ", \"%s\": [", name);
    for (size_t i = 0; i < n; i++) {
        if (i) n2_text_add(out, ", ");
        n2_text_add_number(out, x[i]);
    }
    n2_text_add(out, "]");
}

void n2_lebm_schedule_json(const n2_lebm_schedule *s, n2_text *out) {
    double steps[N2_LEBM_PHASES];
    for (size_t i = 0; i < N2_LEBM_PHASES; i++) steps[i] = (double)s->steps[i];
    const double rates[] = {s->vae_rate, s->prior_rate, s->joint_rate, s->joint_prior_rate};
    const double weights[] = {s->weight[N2_LEBM_VAE], s->weight[N2_LEBM_JOINT]};
    n2_text_add(out, "{\"seed\": %llu, \"batch\": %lld, \"flips\": %s", (unsigned long long)s->seed,
                (long long)s->batch, s->flips ? "true" : "false");
    add_numbers(out, "steps", steps, N2_LEBM_PHASES);
    add_numbers(out, "misfit_weights", weights, 2);
    add_numbers(out, "rates", rates, 4);
    n2_text_add(out, "}");
}

static n2ce_status read_value(n2_json *json, const char *key, n2_lebm_spec *spec, double *x) {
    const char *word;
    if (strcmp(key, "net") == 0) {
        N2_TRY(n2_json_string(json, &word));
        spec->net = n2_image_spec_named(word);
        return N2CE_OK;
    }
    if (strcmp(key, "prior") == 0) {
        N2_TRY(n2_json_string(json, &word));
        for (int i = 0; i < 3; i++)
            if (strcmp(word, kinds[i]) == 0) spec->prior.kind = (n2_prior_kind)i;
        return N2CE_OK;
    }
    for (size_t i = 0; i < N_NUMBERS; i++)
        if (strcmp(key, names[i]) == 0) return n2_json_number(json, &x[i]);
    return n2_json_skip(json);
}

static bool is_count(double x) { return x >= 0 && x <= 65536 && x == floor(x); }

/* Whether numbers of a file can be sizes; then they are. */
static bool take_numbers(const spec_numbers *n, n2_lebm_spec *s) {
    const double counts[] = {n->height,        n->width, n->channels, n->nz,    n->encoder_width,
                             n->embedding,     n->noise, n->stages,   n->depth, n->ratio_width,
                             n->decoder_width, n->moves, n->fitted};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        if (!is_count(counts[i])) return false;
    s->frame = (n2_lebm_frame){(size_t)n->height, (size_t)n->width, (size_t)n->channels};
    s->nz = (int64_t)n->nz;
    s->encoder_width = (int64_t)n->encoder_width;
    s->embedding = (int64_t)n->embedding;
    s->decoder_width = (int64_t)n->decoder_width;
    s->prior.magnitude = n->magnitude;
    s->prior.noise = (int64_t)n->noise;
    s->prior.stages = (int64_t)n->stages;
    s->prior.width = (int64_t)n->ratio_width;
    s->prior.depth = (int64_t)n->depth;
    s->prior.moves = (int64_t)n->moves;
    s->prior.step = n->step;
    s->prior.fitted = n->fitted > 0;
    const size_t side = s->net ? (size_t)s->net->side : 0;
    return s->net && s->frame.height >= 1 && s->frame.height <= side && s->frame.width >= 1 &&
           s->frame.width <= side && s->frame.channels >= 1 &&
           s->frame.channels <= (size_t)s->net->channels && s->frame.channels != 2;
}

static n2ce_status read_spec(n2_json *json, n2_lebm_spec *spec, double x[N_NUMBERS]) {
    const char *key;
    bool more;
    N2_TRY(n2_json_enter(json, '{'));
    for (;;) {
        N2_TRY(n2_json_next(json, '}', &more));
        if (!more) return n2_json_end(json);
        N2_TRY(n2_json_key(json, &key));
        N2_TRY(read_value(json, key, spec, x));
    }
}

static n2ce_status spec_of_text(n2ce_ctx *ctx, const char *path, const char *text,
                                n2_lebm_spec *spec) {
    double x[N_NUMBERS];
    spec_numbers numbers;
    const size_t n = text ? strlen(text) : 0;
    char *strings = n2_alloc(ctx, n + 1, 1);
    if (!strings) return N2CE_ENOMEM;
    n2_json json = n2_json_new(ctx, path, text ? text : "", n, strings);
    for (size_t i = 0; i < N_NUMBERS; i++) x[i] = -1;
    x[N_NUMBERS - 1] = 0; /* fitted: files of before do not say */
    *spec = (n2_lebm_spec){.net = NULL};
    const n2ce_status status = read_spec(&json, spec, x);
    n2_free(ctx, strings);
    N2_TRY(status);
    memcpy(&numbers, x, sizeof numbers);
    return take_numbers(&numbers, spec) ? N2CE_OK
                                        : n2_bundle_damaged(ctx, path, "its sizes are none");
}

/* ---- weights ---- */

/* Parameter i of both lists, then the Gaussian of a fitted prior; NULL beyond the last. */
static n2_tensor *parameter_at(const n2_lebm *m, size_t i) {
    const n2_parameters *vae = &m->nets.vae, *prior = &m->nets.prior.parameters;
    if (i < vae->n) return vae->list[i];
    i -= vae->n;
    if (i < prior->n) return prior->list[i];
    i -= prior->n;
    return i < N2_PRIOR_BASE ? m->nets.prior.base[i] : NULL;
}

static n2ce_status put_all(const n2_lebm *m, const char *note, n2_bundle *b) {
    n2_text spec = n2_text_new(m->ctx);
    char *text = NULL;
    n2_lebm_spec_json(&m->nets.spec, &spec);
    N2_TRY(n2_text_take(&spec, &text));
    n2_bundle_note(b, "spec", text);
    if (note) n2_bundle_note(b, "note", note);
    n2_free(m->ctx, text);
    n2_tensor *t;
    for (size_t i = 0; (t = parameter_at(m, i)); i++) {
        n2_st_tensor d;
        N2_TRY(n2_tensor_to_file(m->store, t, &b->arena, &d));
        n2_bundle_put(b, t->name, d.dtype, d.rank, d.shape, d.data);
    }
    return N2CE_OK;
}

n2ce_status n2_lebm_save(const n2_lebm *m, const char *note, const char *path, bool overwrite) {
    n2_bundle b = n2_bundle_new(m->ctx);
    n2ce_status status = put_all(m, note, &b);
    if (status == N2CE_OK) status = n2_bundle_write(&b, FORMAT, path, overwrite);
    n2_bundle_free(&b);
    return status;
}

static n2ce_status take_all(n2_lebm *m, const char *path, const n2_st_file *f) {
    n2_tensor *t;
    for (size_t i = 0; (t = parameter_at(m, i)); i++) {
        const n2_st_tensor *from = n2_st_find(f, t->name);
        const n2ce_status status = from ? n2_tensor_from_file(m->store, t, from) : N2CE_EDATA;
        if (status == N2CE_EDATA)
            return n2_bundle_damaged(m->ctx, path, "a part is missing or does not fit");
        N2_TRY(status);
    }
    return N2CE_OK;
}

static n2ce_status load(n2ce_ctx *ctx, const char *path, const n2_st_file *f, n2_lebm **out) {
    n2_lebm_spec spec;
    double numbers;
    N2_TRY(n2_bundle_check(ctx, path, f, FORMAT,
                           "a model of pictures that n2ce wrote. Make one with: n2ce train"));
    N2_TRY(spec_of_text(ctx, path, n2_st_metadata(f, "spec"), &spec));
    N2_TRY(n2_lebm_nets_count(ctx, &spec, &numbers));
    if (!n2_bundle_can_hold(f, numbers))
        return n2_bundle_damaged(ctx, path, "a part is missing or does not fit");
    n2ce_status status = n2_lebm_new(ctx, &spec, 0, out);
    if (status == N2CE_EINVAL) return n2_bundle_damaged(ctx, path, "its sizes are none");
    if (status == N2CE_OK) status = take_all(*out, path, f);
    if (status != N2CE_OK) n2_lebm_free(*out);
    return status;
}

n2ce_status n2_lebm_load(n2ce_ctx *ctx, const char *path, n2_lebm **out) {
    n2_st_file *f;
    *out = NULL;
    N2_TRY(n2_st_open(ctx, path, &f));
    const n2ce_status status = load(ctx, path, f, out);
    n2_st_close(f);
    if (status != N2CE_OK) *out = NULL;
    return status;
}

bool n2_lebm_is_model(n2ce_ctx *ctx, const char *path) {
    n2_st_file *f;
    if (n2_st_open(ctx, path, &f) != N2CE_OK) return false;
    const char *format = n2_st_metadata(f, "format");
    const bool is = format && strcmp(format, FORMAT) == 0;
    n2_st_close(f);
    return is;
}
