/* What was learnt of normal pictures, in a file and out of it again. Networks, codes and the parts
 * of pictures that were held out are there; what follows from these is worked out again. */
#include "io/bundle.h"
#include "io/json.h"
#include "oddity_parts.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char FORMAT[] = "n2ce odd pictures 1";
enum { NAME = 160 };

bool n2_is_oddity(const n2_st_file *f) {
    const char *format = n2_st_metadata(f, "format");
    return format && strcmp(format, FORMAT) == 0;
}

/* ---- sizes ---- */

enum { HEIGHT, WIDTH, CHANNELS, NZ, NET_WIDTH, WEIGHT, MEMBERS, N_SIZES };
static const char *const size_names[N_SIZES] = {"height",    "width",  "channels", "nz",
                                                "net_width", "weight", "members"};

static void add_spec(const n2_oddity *o, n2_text *out) {
    const n2_oddity_member *m = &o->members[0];
    const n2_lebm_frame *f = &m->nets.spec.frame;
    const double sizes[N_SIZES] = {(double)f->height,  (double)f->width,      (double)f->channels,
                                   (double)m->spec.nz, (double)m->spec.width, m->spec.weight,
                                   (double)o->n};
    n2_text_add(out, "{\"net\": \"%s\"", m->spec.net->name);
    for (size_t i = 0; i < N_SIZES; i++) {
        n2_text_add(out, ", \"%s\": ", size_names[i]);
        n2_text_add_number(out, sizes[i]);
    }
    n2_text_add(out, "}");
}

static n2ce_status read_size(n2_json *json, const char *key, const n2_image_spec **net,
                             double sizes[N_SIZES]) {
    const char *word;
    if (strcmp(key, "net") == 0) {
        N2_TRY(n2_json_string(json, &word));
        *net = n2_image_spec_named(word);
        return N2CE_OK;
    }
    for (size_t i = 0; i < N_SIZES; i++)
        if (strcmp(key, size_names[i]) == 0) return n2_json_number(json, &sizes[i]);
    return n2_json_skip(json);
}

static n2ce_status read_sizes(n2_json *json, const n2_image_spec **net, double sizes[N_SIZES]) {
    const char *key;
    bool more;
    N2_TRY(n2_json_enter(json, '{'));
    for (;;) {
        N2_TRY(n2_json_next(json, '}', &more));
        if (!more) return n2_json_end(json);
        N2_TRY(n2_json_key(json, &key));
        N2_TRY(read_size(json, key, net, sizes));
    }
}

static bool is_from(double x, double least, double most) {
    return x >= least && x <= most && x == floor(x);
}

/* Whether these can be sizes of a model; then they are. */
static bool take_sizes(const n2_image_spec *net, const double sizes[N_SIZES], n2_oddity_spec *spec,
                       n2_lebm_frame *frame) {
    const double side = net ? (double)net->side : 0, channels = net ? (double)net->channels : 0;
    if (!is_from(sizes[HEIGHT], 1, side) || !is_from(sizes[WIDTH], 1, side) ||
        !is_from(sizes[CHANNELS], 1, channels) || !is_from(sizes[NZ], 1, 4096) ||
        !is_from(sizes[NET_WIDTH], 1, 4096) || !is_from(sizes[MEMBERS], 1, N2_ODDITY_MEMBERS) ||
        !(sizes[WEIGHT] > 0 && sizes[WEIGHT] < 1e12))
        return false;
    *spec = n2_oddity_defaults(net);
    spec->nz = (int64_t)sizes[NZ];
    spec->width = (int64_t)sizes[NET_WIDTH];
    spec->weight = sizes[WEIGHT];
    spec->members = (size_t)sizes[MEMBERS];
    *frame = (n2_lebm_frame){(size_t)sizes[HEIGHT], (size_t)sizes[WIDTH], (size_t)sizes[CHANNELS]};
    return true;
}

static n2ce_status spec_of_text(n2ce_ctx *ctx, const char *path, const char *text,
                                n2_oddity_spec *spec, n2_lebm_frame *frame) {
    const size_t n = text ? strlen(text) : 0;
    const n2_image_spec *net = NULL;
    double sizes[N_SIZES] = {0};
    char *strings = n2_alloc(ctx, n + 1, 1);
    if (!strings) return N2CE_ENOMEM;
    n2_json json = n2_json_new(ctx, path, text ? text : "", n, strings);
    const n2ce_status status = read_sizes(&json, &net, sizes);
    n2_free(ctx, strings);
    N2_TRY(status);
    return take_sizes(net, sizes, spec, frame) ? N2CE_OK
                                               : n2_bundle_damaged(ctx, path, "its sizes are none");
}

/* ---- members ---- */

/* Parameter i of all networks; NULL beyond the last. */
static n2_tensor *parameter_at(const n2_oddity_member *m, size_t i) {
    const n2_parameters *const lists[] = {&m->nets.vae, &m->nets.prior.parameters,
                                          &m->variance_parameters, &m->critic_parameters};
    for (size_t k = 0; k < sizeof lists / sizeof lists[0]; k++) {
        if (i < lists[k]->n) return lists[k]->list[i];
        i -= lists[k]->n;
    }
    return NULL;
}

static const char *name_in(size_t member, const char *name, char full[NAME]) {
    snprintf(full, NAME, "member.%zu.%s", member, name);
    return full;
}

static n2ce_status put_member(const n2_oddity_member *m, size_t number, n2_bundle *b) {
    const int64_t codes[] = {(int64_t)m->n_codes, m->spec.nz};
    char name[NAME];
    n2_tensor *t;
    for (size_t i = 0; (t = parameter_at(m, i)); i++) {
        n2_st_tensor d;
        N2_TRY(n2_tensor_to_file(m->store, t, &b->arena, &d));
        n2_bundle_put(b, name_in(number, t->name, name), d.dtype, d.rank, d.shape, d.data);
    }
    n2_bundle_put(b, name_in(number, "codes", name), N2_ST_F32, 2, codes, m->codes);
    n2_bundle_put_doubles(b, name_in(number, "held_out", name), m->n_held_out, N2_ODDITY_PARTS,
                          m->held_out);
    return N2CE_OK;
}

static n2ce_status put_all(const n2_oddity *o, n2_bundle *b) {
    n2_text spec = n2_text_new(o->ctx);
    char *text = NULL;
    add_spec(o, &spec);
    N2_TRY(n2_text_take(&spec, &text));
    n2_bundle_note(b, "spec", text);
    n2_free(o->ctx, text);
    for (size_t k = 0; k < o->n; k++) N2_TRY(put_member(&o->members[k], k, b));
    return N2CE_OK;
}

n2ce_status n2_oddity_save(const n2_oddity *o, const char *path, bool overwrite) {
    n2_bundle b = n2_bundle_new(o->ctx);
    n2ce_status status = put_all(o, &b);
    if (status == N2CE_OK) status = n2_bundle_write(&b, FORMAT, path, overwrite);
    n2_bundle_free(&b);
    return status;
}

/* A tensor of rows of so many numbers, at least `least` of them; NULL: there is no such one. */
static const n2_st_tensor *find_rows(const n2_st_file *f, const char *name, n2_st_dtype type,
                                     size_t columns, int64_t least) {
    const n2_st_tensor *t = n2_st_find(f, name);
    const bool fits = t && t->dtype == type && t->rank == 2 && t->shape[0] >= least &&
                      t->shape[1] == (int64_t)columns;
    return fits ? t : NULL;
}

static bool all_finite(const n2_oddity_member *m) {
    for (size_t i = 0; i < m->n_codes * (size_t)m->spec.nz; i++)
        if (!isfinite(m->codes[i])) return false;
    for (size_t i = 0; i < m->n_held_out * N2_ODDITY_PARTS; i++)
        if (!isfinite(m->held_out[i])) return false;
    return true;
}

static n2ce_status take_rows(n2_oddity_member *m, const n2_st_tensor *codes,
                             const n2_st_tensor *held_out) {
    m->n_codes = (size_t)codes->shape[0];
    m->n_held_out = (size_t)held_out->shape[0];
    m->codes = n2_arena_alloc(&m->arena, codes->bytes, 1);
    m->held_out = n2_arena_alloc(&m->arena, held_out->bytes, 1);
    if (!m->codes || !m->held_out) return N2CE_ENOMEM;
    memcpy(m->codes, codes->data, codes->bytes);
    memcpy(m->held_out, held_out->data, held_out->bytes);
    return all_finite(m) ? N2CE_OK : N2CE_EDATA;
}

/* N2CE_EDATA without a sentence: something is missing or does not fit. */
static n2ce_status take_member(n2_oddity_member *m, size_t number, const n2_st_file *f) {
    enum { LEAST = 10 };
    char name[NAME];
    n2_tensor *t;
    for (size_t i = 0; (t = parameter_at(m, i)); i++) {
        const n2_st_tensor *from = n2_st_find(f, name_in(number, t->name, name));
        if (!from) return N2CE_EDATA;
        N2_TRY(n2_tensor_from_file(m->store, t, from));
    }
    const n2_st_tensor *codes =
        find_rows(f, name_in(number, "codes", name), N2_ST_F32, (size_t)m->spec.nz, LEAST);
    const n2_st_tensor *held_out =
        find_rows(f, name_in(number, "held_out", name), N2_ST_F64, N2_ODDITY_PARTS, LEAST);
    return codes && held_out ? take_rows(m, codes, held_out) : N2CE_EDATA;
}

/* N2CE_EDATA without a sentence unless the file can hold the autoencoders of all members. */
static n2ce_status check_weights(n2ce_ctx *ctx, const n2_st_file *f, const n2_oddity_spec *spec,
                                 n2_lebm_frame frame) {
    const n2_lebm_spec autoencoder = n2_oddity_autoencoder(spec, frame);
    double numbers;
    N2_TRY(n2_lebm_nets_count(ctx, &autoencoder, &numbers));
    return n2_bundle_can_hold(f, numbers * (double)spec->members) ? N2CE_OK : N2CE_EDATA;
}

static n2ce_status take_all(n2_oddity *o, const n2_oddity_spec *spec, n2_lebm_frame frame,
                            const n2_st_file *f, const n2_backend *backend) {
    N2_TRY(check_weights(o->ctx, f, spec, frame));
    for (size_t k = 0; k < spec->members; k++) {
        n2_oddity_member *m = &o->members[o->n++];
        N2_TRY(n2_oddity_member_open(o->ctx, spec, 0, frame, 1, m));
        N2_TRY(take_member(m, k, f));
        N2_TRY(n2_oddity_member_compile(m, backend));
    }
    return n2_oddity_calibrate(o);
}

static n2ce_status load(n2ce_ctx *ctx, const char *path, const n2_st_file *f,
                        n2_device_choice *choice, n2_oddity **out) {
    n2_oddity_spec spec;
    n2_lebm_frame frame = {0, 0, 0};
    N2_TRY(n2_bundle_check(ctx, path, f, FORMAT,
                           "a detector of odd pictures. Make one with: n2ce detect --save"));
    N2_TRY(spec_of_text(ctx, path, n2_st_metadata(f, "spec"), &spec, &frame));
    N2_TRY(n2_choice_settle(choice, ctx, 0, NULL, NULL));
    N2_TRY(n2_oddity_new(ctx, spec.members, out));
    const n2ce_status status = take_all(*out, &spec, frame, f, n2_choice_backend(choice));
    if (status == N2CE_OK) return N2CE_OK;
    n2_oddity_free(*out);
    *out = NULL;
    if (status != N2CE_EDATA) return status;
    return n2_bundle_damaged(ctx, path, "a part is missing or does not fit");
}

n2ce_status n2_oddity_load(n2ce_ctx *ctx, const char *path, n2_device_choice *choice,
                           n2_oddity **out) {
    n2_device_choice processor = {.backend = NULL};
    n2_st_file *f;
    *out = NULL;
    N2_TRY(n2_st_open(ctx, path, &f));
    const n2ce_status status = load(ctx, path, f, choice ? choice : &processor, out);
    n2_st_close(f);
    return status;
}
