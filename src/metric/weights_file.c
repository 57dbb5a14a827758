#include "weights_file.h"

#include "io/file.h"
#include "io/input.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the list ---- */

typedef struct list_reader {
    n2ce_ctx *ctx;
    const char *label, *at;
    size_t line, bytes;
} list_reader;

static n2ce_status bad_line(const list_reader *r, const char *what) {
    const n2_shown shown = n2_show(r->at, strcspn(r->at, "\n"));
    return n2_fail(
        r->ctx, N2CE_EDATA,
        "%s: line %zu, \"%s\": %s. A line is NAME SHAPE OFFSET COUNT, as in \"conv1.weight "
        "16x3x3x3 0 432\"; get the list again.",
        r->label, r->line, shown.text, what);
}

/* A whole number up to 2^40 that begins here; false: there is none. */
static bool read_count(const char **at, size_t *out) {
    const size_t most = (size_t)1 << 40;
    size_t n = 0;
    if (**at < '0' || **at > '9') return false;
    for (; **at >= '0' && **at <= '9'; ++*at) {
        n = n * 10 + (size_t)(**at - '0');
        if (n > most) return false;
    }
    *out = n;
    return true;
}

static bool skip_blank(const char **at) {
    if (**at != ' ') return false;
    while (**at == ' ') ++*at;
    return true;
}

static bool read_name(const char **at, char name[N2_WEIGHTS_NAME]) {
    static const char allowed[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-";
    const size_t n = strspn(*at, allowed);
    if (n == 0 || n >= N2_WEIGHTS_NAME) return false;
    memcpy(name, *at, n);
    name[n] = '\0';
    *at += n;
    return true;
}

/* 16x3x3x3; the product stays below 2^40, as each factor does. */
static bool read_shape(const char **at, n2_weights_array *a) {
    const size_t most = (size_t)1 << 40;
    size_t product = 1;
    for (a->rank = 0; a->rank < N2_WEIGHTS_RANK; ++*at) {
        size_t *dim = &a->dim[a->rank++];
        if (!read_count(at, dim) || *dim == 0 || *dim > most / product) return false;
        product *= *dim;
        if (**at != 'x') break;
    }
    a->count = product;
    return **at == ' ';
}

static n2ce_status read_line(list_reader *r, n2_weights_array *a) {
    const char *at = r->at;
    size_t count;
    if (!read_name(&at, a->name))
        return bad_line(
            r, "there is no name of at most 63 letters, digits, points, dashes and underlines");
    if (!skip_blank(&at) || !read_shape(&at, a))
        return bad_line(r, "there is no shape of up to four lengths");
    if (!skip_blank(&at) || !read_count(&at, &a->offset) || !skip_blank(&at) ||
        !read_count(&at, &count) || (*at && *at != '\n'))
        return bad_line(r, "there are no two whole numbers at its end");
    if (count != a->count) return bad_line(r, "its count is not the product of its shape");
    if (a->offset % sizeof(float) || a->offset > r->bytes ||
        a->count > (r->bytes - a->offset) / sizeof(float))
        return bad_line(r, "its numbers are not inside the file");
    return N2CE_OK;
}

static size_t count_lines(const char *at) {
    size_t lines = 1;
    for (; (at = strchr(at, '\n')); at++) lines++;
    return lines;
}

static n2ce_status read_lines(list_reader *r, n2_weights_array *array, size_t *n) {
    for (*n = 0; *r->at; r->line++) {
        if (*r->at != '#' && *r->at != '\n') {
            N2_TRY(read_line(r, &array[*n]));
            for (size_t i = 0; i < *n; i++)
                if (strcmp(array[i].name, array[*n].name) == 0)
                    return bad_line(r, "the name occurs twice");
            ++*n;
        }
        r->at += strcspn(r->at, "\n");
        if (*r->at) r->at++;
    }
    return N2CE_OK;
}

n2ce_status n2_weights_parse_list(n2ce_ctx *ctx, const char *label, const n2_text *list,
                                  size_t bytes, n2_weights_array **array, size_t *n) {
    *array = NULL;
    list_reader r = {ctx, label, list->data ? list->data : "", 1, bytes};
    const size_t lines = count_lines(r.at);
    if (strlen(r.at) != list->length || lines > N2_WEIGHTS_MAX)
        return n2_fail(ctx, N2CE_EDATA,
                       "%s: it is no list of arrays: it has %zu lines of at most %d, or bytes that "
                       "are no text. Get it again.",
                       label, lines, (int)N2_WEIGHTS_MAX);
    *array = n2_alloc(ctx, lines, sizeof **array);
    if (!*array) return N2CE_ENOMEM;
    const n2ce_status status = read_lines(&r, *array, n);
    if (status == N2CE_OK) return N2CE_OK;
    n2_free(ctx, *array);
    *array = NULL;
    return status;
}

/* ---- the numbers ---- */

double n2_weights_number(const n2_weights *w, const n2_weights_array *a, size_t i) {
    float x;
    memcpy(&x, w->numbers.data + a->offset + i * sizeof x, sizeof x);
    return (double)x;
}

static n2ce_status check_numbers(const n2_weights *w) {
    for (size_t k = 0; k < w->n; k++)
        for (size_t i = 0; i < w->array[k].count; i++)
            if (!isfinite(n2_weights_number(w, &w->array[k], i)))
                return n2_fail(w->ctx, N2CE_EDATA,
                               "%s: number %zu of %s is not finite. The file is damaged, or not of "
                               "little-endian floats: get it again.",
                               w->label, i, w->array[k].name);
    return N2CE_OK;
}

/* NAME_manifest.txt of NAME.f32. */
static n2ce_status list_path(n2ce_ctx *ctx, const char *path, char *out, size_t room) {
    const size_t n = strlen(path);
    if (n < 5 || strcmp(path + n - 4, ".f32") != 0)
        return n2_fail(
            ctx, N2CE_EDATA,
            "%s: the name of a network's weights ends in .f32, and beside NAME.f32 is the "
            "list NAME_manifest.txt.",
            path);
    const int length = snprintf(out, room, "%.*s_manifest.txt", (int)(n - 4), path);
    if (length > 0 && (size_t)length < room) return N2CE_OK;
    return n2_fail(ctx, N2CE_EINVAL, "%s: the path is too long.", path);
}

static n2ce_status read_both(n2_weights *w, const char *path, n2_text *list) {
    char beside[PATH_MAX];
    N2_TRY(list_path(w->ctx, path, beside, sizeof beside));
    N2_TRY(n2_file_read(w->ctx, path, &w->numbers));
    N2_TRY(n2_file_read(w->ctx, beside, list));
    N2_TRY(n2_weights_parse_list(w->ctx, beside, list, w->numbers.length, &w->array, &w->n));
    return check_numbers(w);
}

n2ce_status n2_weights_read(n2ce_ctx *ctx, const char *path, n2_weights *out) {
    *out = (n2_weights){.ctx = ctx, .label = path, .numbers = n2_text_new(ctx)};
    n2_text list = n2_text_new(ctx);
    const n2ce_status status = read_both(out, path, &list);
    n2_text_free(&list);
    if (status != N2CE_OK) n2_weights_free(out);
    return status;
}

void n2_weights_free(n2_weights *w) {
    n2_text_free(&w->numbers);
    n2_free(w->ctx, w->array);
    w->array = NULL;
}

const n2_weights_array *n2_weights_find(const n2_weights *w, const char *name) {
    for (size_t i = 0; i < w->n; i++)
        if (strcmp(w->array[i].name, name) == 0) return &w->array[i];
    return NULL;
}
