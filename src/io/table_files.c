/* Files of a pattern, one behind the other as if they were one. */
#include "reader_parts.h"

#include <string.h>

size_t n2_reader_seen(const n2_reader *r) { return r->seen + (r->later ? r->later->seen : 0); }
size_t n2_reader_dropped(const n2_reader *r) {
    return r->dropped + (r->later ? r->later->dropped : 0);
}

/* ---- opening ---------------------------------------------------------------------------- */

static n2ce_status keep_text(n2_reader *r, const char **text) {
    if (!*text) return N2CE_OK;
    *text = n2_arena_strdup(&r->arena, *text);
    return *text ? N2CE_OK : N2CE_ENOMEM;
}

static n2ce_status keep_options(n2_reader *r, const n2_table_options *o) {
    if (o) r->as = *o;
    r->as.header = n2_reader_header(r);
    N2_TRY(keep_text(r, &r->as.columns));
    N2_TRY(keep_text(r, &r->as.then));
    return keep_text(r, &r->as.categorical);
}

static n2ce_status open_set(n2ce_ctx *ctx, n2_file_set *files, const n2_table_options *o,
                            n2_reader **out) {
    N2_TRY(n2_reader_open_file(ctx, files->path[0], o, out));
    n2_reader *r = *out;
    if (files->n == 1) return N2CE_OK;
    const n2ce_status status = keep_options(r, o);
    if (status == N2CE_OK) {
        r->files = *files;
        *files = (n2_file_set){0};
        return N2CE_OK;
    }
    n2_reader_close(r);
    *out = NULL;
    return status;
}

n2ce_status n2_reader_open(n2ce_ctx *ctx, const char *path, const n2_table_options *o,
                           n2_reader **out) {
    n2_file_set files;
    *out = NULL;
    if (o && o->to > 0) {
        n2_table_options whole = *o;
        whole.from = whole.to = 0;
        return n2_reader_open_piece(ctx, path, &whole, o->from, o->to, out);
    }
    N2_TRY(n2_file_set_find(ctx, path, &files));
    const n2ce_status status = open_set(ctx, &files, o, out);
    n2_file_set_free(&files);
    return status;
}

n2ce_status n2_reader_check_alike(const n2_reader *first, const n2_reader *other) {
    if (other->cols != first->cols)
        return n2_fail(first->ctx, N2CE_EDATA, "%s has %zu columns and %s has %zu.", first->label,
                       first->cols, other->label, other->cols);
    for (size_t k = 0; k < first->cols; k++) {
        const char *a = n2_reader_name(first, k), *b = n2_reader_name(other, k);
        if (strcmp(a, b) == 0) continue;
        return n2_fail(first->ctx, N2CE_EDATA,
                       "Column %zu is \"%s\" in %s and \"%s\" in %s: files of a pattern are alike.",
                       k + 1, n2_show_all(a).text, first->label, n2_show_all(b).text, other->label);
    }
    return N2CE_OK;
}

/* ---- rows ------------------------------------------------------------------------------- */

/* Which columns hold texts is what the first file's rows said. */
static n2ce_status take_texts(const n2_reader *first, n2_reader *r) {
    if (!first->as.find_texts) return N2CE_OK;
    r->find_texts = false;
    for (size_t k = 0; k < r->cols; k++) {
        r->found[k] = first->found[k];
        if (first->categorical[k]) N2_TRY(n2_reader_open_levels(r, k));
    }
    return n2_reader_find_plain(r);
}

static n2ce_status open_next(n2_reader *r) {
    r->seen = n2_reader_seen(r);
    r->dropped = n2_reader_dropped(r);
    n2_reader_close(r->later);
    r->later = NULL;
    r->file++;
    N2_TRY(n2_reader_open_file(r->ctx, r->files.path[r->file], &r->as, &r->later));
    N2_TRY(n2_reader_check_alike(r, r->later));
    return take_texts(r, r->later);
}

n2ce_status n2_reader_next(n2_reader *r, double *x, size_t max_rows, size_t *rows) {
    for (;;) {
        N2_TRY(n2_reader_next_here(r->later ? r->later : r, x, max_rows, rows));
        if (*rows > 0 || max_rows == 0 || r->file + 1 >= r->files.n) return N2CE_OK;
        N2_TRY(open_next(r));
    }
}
