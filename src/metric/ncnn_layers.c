#include "ncnn_layers.h"

#include "io/input.h"

#include <string.h>

enum { NAME = 128, BLOBS_MAX = 2 * N2_NCNN_LAYERS };

/* A word of the text, which stays where it is. */
typedef struct word {
    const char *at;
    size_t n;
} word;

typedef struct layer_reader {
    n2ce_ctx *ctx;
    const char *label, *at; /* at: what is left of the line */
    size_t line;
    word *blob; /* names, by number */
    size_t blobs;
} layer_reader;

static n2ce_status bad_line(const layer_reader *r, const char *what) {
    const n2_shown shown = n2_show(r->at, strcspn(r->at, "\n"));
    return n2_fail(r->ctx, N2CE_EDATA,
                   "%s: line %zu, at \"%s\": %s. It is no list of layers as ncnn writes them: get "
                   "the file again.",
                   r->label, r->line, shown.text, what);
}

static word next_word(layer_reader *r) {
    r->at += strspn(r->at, " \t\r");
    const word w = {r->at, strcspn(r->at, " \t\r\n")};
    r->at += w.n;
    return w;
}

/* A whole number of up to nine digits; false: it is none. */
static bool number_of(word w, long *out) {
    const bool negative = w.n > 0 && *w.at == '-';
    long n = 0;
    if (negative) w = (word){w.at + 1, w.n - 1};
    if (w.n == 0 || w.n > 9) return false;
    for (size_t i = 0; i < w.n; i++) {
        if (w.at[i] < '0' || w.at[i] > '9') return false;
        n = n * 10 + (w.at[i] - '0');
    }
    *out = negative ? -n : n;
    return true;
}

static n2ce_status read_number(layer_reader *r, long least, long most, size_t *out) {
    long n;
    const char *begin = r->at;
    if (number_of(next_word(r), &n) && n >= least && n <= most) {
        *out = (size_t)n;
        return N2CE_OK;
    }
    r->at = begin;
    return bad_line(r, "there is no whole number of the right size");
}

static bool end_line(layer_reader *r) {
    r->at += strspn(r->at, " \t\r");
    if (*r->at && *r->at != '\n') return false;
    if (*r->at) r->at++;
    r->line++;
    return true;
}

static bool same(word a, word b) { return a.n == b.n && memcmp(a.at, b.at, a.n) == 0; }

/* The number of the blob of that name; r->blobs: there is none. */
static size_t find_blob(const layer_reader *r, word name) {
    size_t i = 0;
    while (i < r->blobs && !same(r->blob[i], name)) i++;
    return i;
}

static n2ce_status read_blobs(layer_reader *r, n2_ncnn_layer *l) {
    for (size_t i = 0; i < l->n_in; i++) {
        const word name = next_word(r);
        l->in[i] = find_blob(r, name);
        if (name.n == 0 || l->in[i] == r->blobs)
            return bad_line(r, "before it, a blob is read that no line before makes");
    }
    for (size_t i = 0; i < l->n_out; i++) {
        const word name = next_word(r);
        if (name.n == 0 || name.n >= NAME || find_blob(r, name) < r->blobs)
            return bad_line(r, "before it, a blob has no name, or one that is taken");
        if (r->blobs == BLOBS_MAX) return bad_line(r, "there are too many blobs");
        l->out[i] = r->blobs;
        r->blob[r->blobs++] = name;
    }
    return N2CE_OK;
}

/* 0=64 1=3; parameters that are no whole numbers, or of high numbers, are passed over. */
static n2ce_status read_parameters(layer_reader *r, n2_ncnn_layer *l) {
    for (;;) {
        const word w = next_word(r);
        if (w.n == 0) return N2CE_OK;
        const char *equals = memchr(w.at, '=', w.n);
        if (!equals) return bad_line(r, "before it, a parameter has no \"=\"");
        const word key = {w.at, (size_t)(equals - w.at)};
        const word value = {equals + 1, w.n - key.n - 1};
        long k, v;
        if (!number_of(key, &k)) return bad_line(r, "before it, a parameter has no number");
        if (k >= 0 && k < N2_NCNN_PARAMETERS && number_of(value, &v)) l->parameter[k] = v;
    }
}

static n2ce_status read_layer(layer_reader *r, n2_ncnn_layer *l) {
    const word type = next_word(r), name = next_word(r);
    if (type.n == 0 || type.n >= sizeof l->type || name.n == 0)
        return bad_line(r, "there is no type and no name of a layer");
    memcpy(l->type, type.at, type.n);
    l->line = r->line;
    N2_TRY(read_number(r, 0, N2_NCNN_BLOBS, &l->n_in));
    N2_TRY(read_number(r, 1, N2_NCNN_BLOBS, &l->n_out));
    N2_TRY(read_blobs(r, l));
    N2_TRY(read_parameters(r, l));
    return end_line(r) ? N2CE_OK : bad_line(r, "the line goes on");
}

static n2ce_status read_layers(layer_reader *r, n2_ncnn_layers *out) {
    size_t magic, n, blobs;
    N2_TRY(read_number(r, 7767517, 7767517, &magic));
    if (!end_line(r)) return bad_line(r, "the line goes on");
    N2_TRY(read_number(r, 1, N2_NCNN_LAYERS, &n));
    N2_TRY(read_number(r, 1, BLOBS_MAX, &blobs));
    if (!end_line(r)) return bad_line(r, "the line goes on");
    out->layer = n2_alloc(r->ctx, n, sizeof *out->layer);
    if (!out->layer) return N2CE_ENOMEM;
    for (; out->n < n; out->n++) N2_TRY(read_layer(r, &out->layer[out->n]));
    out->blobs = r->blobs;
    return r->at[strspn(r->at, " \t\r\n")] ? bad_line(r, "there are more lines than layers")
                                           : N2CE_OK;
}

n2ce_status n2_ncnn_parse(n2ce_ctx *ctx, const char *label, const n2_text *text,
                          n2_ncnn_layers *out) {
    layer_reader r = {ctx, label, text->data ? text->data : "", 1, NULL, 0};
    *out = (n2_ncnn_layers){0};
    if (strlen(r.at) != text->length)
        return n2_fail(ctx, N2CE_EDATA, "%s: it is no text. Get the file again.", label);
    r.blob = n2_alloc(ctx, BLOBS_MAX, sizeof *r.blob);
    const n2ce_status status = r.blob ? read_layers(&r, out) : N2CE_ENOMEM;
    n2_free(ctx, r.blob);
    if (status == N2CE_OK) return N2CE_OK;
    n2_free(ctx, out->layer);
    *out = (n2_ncnn_layers){0};
    return status;
}
