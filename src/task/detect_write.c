#include "detect_write.h"

#include "comm/comm.h"
#include "io/csv.h"
#include "io/file_set.h"
#include "io/npy.h"
#include "io/table.h"

#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- before the work -------------------------------------------------------- */

/* All columns are written, so they are the same in all files, those too that are not judged by. */
static n2ce_status check_alike(n2_detect_session *s, const n2_reader *first, const char *path) {
    const n2_table_options o = {.header = n2_reader_header(first)};
    n2_reader *other;
    N2_TRY(n2_reader_open(s->ctx, path, &o, &other));
    const n2ce_status status = n2_reader_check_alike(first, other);
    n2_reader_close(other);
    return status;
}

static n2ce_status check_set(n2_detect_session *s, const n2_file_set *files) {
    const n2_table_options o = {.header = n2_header_of(s->options)};
    struct stat info;
    n2_reader *first;
    for (size_t i = 0; i < files->n; i++)
        if (stat(files->path[i], &info) == 0 && S_ISFIFO(info.st_mode))
            return n2_fail(s->ctx, N2CE_EINVAL,
                           "The rows to judge are read twice, so they cannot come from a pipe as "
                           "%s. Put them into a file.",
                           files->path[i]);
    if (files->n == 1) return N2CE_OK;
    N2_TRY(n2_reader_open(s->ctx, files->path[0], &o, &first));
    n2ce_status status = N2CE_OK;
    for (size_t i = 1; i < files->n && status == N2CE_OK; i++)
        status = check_alike(s, first, files->path[i]);
    n2_reader_close(first);
    return status;
}

/* The columns that are written behind those of the rows. */
static const char *const ADDED[] = {"score", "p_value", "flag"};
enum { N_ADDED = sizeof ADDED / sizeof ADDED[0] };

static n2ce_status refuse_names(n2ce_ctx *ctx, const char *path, const n2_csv_field *fields,
                                size_t n) {
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < N_ADDED; k++)
            if (fields[i].n == strlen(ADDED[k]) &&
                memcmp(fields[i].text, ADDED[k], fields[i].n) == 0)
                return n2_fail(ctx, N2CE_EDATA,
                               "%s has a column \"%s\", as --output adds one: were its rows judged "
                               "before? Judge the file without it, or rename it.",
                               path, ADDED[k]);
    return N2CE_OK;
}

/* A table with two columns of one name cannot be read again. */
static n2ce_status check_header(n2_detect_session *s, const char *path, n2_input *in) {
    const n2_csv_field *fields;
    size_t n;
    n2_csv *csv;
    const unsigned char *head = n2_input_head(in, &n);
    if (n2_is_npy(head, n)) return N2CE_OK;
    N2_TRY(n2_csv_open(s->ctx, in, 0, &csv));
    n2ce_status status = n2_csv_next(csv, &fields, &n);
    if (status == N2CE_OK && fields && n2_csv_is_header(fields, n, n2_header_of(s->options)))
        status = refuse_names(s->ctx, path, fields, n);
    n2_csv_close(csv);
    return status;
}

static n2ce_status check_names(n2_detect_session *s, const char *path) {
    n2_input in;
    if (!n2ce_options_get(s->options, "output")) return N2CE_OK;
    N2_TRY(n2_input_open(s->ctx, path, &in));
    const n2ce_status status = check_header(s, path, &in);
    n2_input_close(&in);
    return status;
}

n2ce_status n2_detect_check_rows(n2_detect_session *s) {
    n2_file_set files;
    N2_TRY(n2_file_set_find(s->ctx, s->rows, &files));
    n2ce_status status = check_set(s, &files);
    if (status == N2CE_OK) status = check_names(s, files.path[0]);
    n2_file_set_free(&files);
    return status;
}

/* ---- the spool ----------------------------------------------------------- */

n2ce_status n2_spool_begin(n2_detect_session *s, const char *path) {
    if (n2_world_rank(s->ctx) > 0) return N2CE_OK; /* rank 0 alone writes */
    N2_TRY(n2_new_file_begin(s->ctx, path, &s->spool));
    s->spooled = n2_new_file_reader(&s->spool);
    s->spooling = s->spooled >= 0;
    if (s->spooling) return N2CE_OK;
    close(s->spool.file);
    return n2_fail(s->ctx, N2CE_EIO, "%s: no file can be opened beside it.", path);
}

void n2_spool_end(n2_detect_session *s) {
    if (s->spooling) close(s->spool.file);
    if (s->spooling) close(s->spooled);
    s->spooling = false;
}

/* ---- writing ------------------------------------------------------------- */

enum { SPOOLED = 4096, FLUSH = 1 << 18 };

typedef struct copier {
    n2_detect_session *s;
    n2_text text; /* not yet in the file */
    n2_new_file file;
    n2_spooled some[SPOOLED];
    size_t at, n; /* of these */
    uint64_t rows;
    bool begun, named; /* the line of names is written; the files have one */
} copier;

static void flush(copier *c) {
    if (c->text.length == 0) return;
    n2_new_file_add(&c->file, c->text.data, c->text.length);
    c->text.length = 0;
}

static n2ce_status refill(copier *c) {
    size_t bytes = 0;
    for (ssize_t n = 1; n > 0 && bytes < sizeof c->some; bytes += (size_t)n) {
        n = read(c->s->spooled, (char *)c->some + bytes, sizeof c->some - bytes);
        if (n < 0) return n2_fail(c->s->ctx, N2CE_EIO, "Scores could not be read back.");
    }
    c->at = 0;
    c->n = bytes / sizeof c->some[0];
    if (c->n > 0) return N2CE_OK;
    return n2_fail(c->s->ctx, N2CE_EDATA, "%s has more rows than when it was judged.", c->s->rows);
}

/* Score, p-value and flag of the next row. */
static n2ce_status end_row(copier *c) {
    if (c->at == c->n) N2_TRY(refill(c));
    const n2_spooled *row = &c->some[c->at++];
    const n2_rank_counts *ranks = &c->s->ranks;
    n2_text_add_raw(&c->text, ",", 1);
    n2_text_add_number(&c->text, row->score);
    n2_text_add_raw(&c->text, ",", 1);
    n2_text_add_number(&c->text, (double)row->rank / (double)ranks->ranks);
    n2_text_add_raw(&c->text, row->rank <= ranks->flagged ? ",1\n" : ",0\n", 3);
    c->rows++;
    if (c->text.length >= FLUSH) flush(c);
    return n2_cancelled(c->s->ctx) ? N2CE_ECANCELED : N2CE_OK;
}

static void add_field(n2_text *text, const n2_csv_field *f) {
    bool quote = f->quoted;
    for (size_t i = 0; i < f->n && !quote; i++) quote = strchr(",\"\r\n", f->text[i]) != NULL;
    if (!quote) {
        n2_text_add_raw(text, f->text, f->n);
        return;
    }
    n2_text_add_raw(text, "\"", 1);
    for (size_t i = 0; i < f->n; i++) {
        if (f->text[i] == '"') n2_text_add_raw(text, "\"", 1);
        n2_text_add_raw(text, f->text + i, 1);
    }
    n2_text_add_raw(text, "\"", 1);
}

static void add_fields(n2_text *text, const n2_csv_field *fields, size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (i > 0) n2_text_add_raw(text, ",", 1);
        add_field(text, &fields[i]);
    }
}

static void add_names(n2_text *text) {
    for (size_t k = 0; k < N_ADDED; k++) n2_text_add(text, ",%s", ADDED[k]);
    n2_text_add(text, "\n");
}

/* A file without a header gets one: the numbers of its columns. */
static void number_columns(copier *c, size_t n) {
    for (size_t i = 0; i < n && !c->begun; i++) n2_text_add(&c->text, "%s%zu", i ? "," : "", i);
    if (!c->begun) add_names(&c->text);
    c->begun = true;
}

/* Of several files the first one's line of names stands for all. */
static void begin_csv(copier *c, const n2_csv_field *fields, size_t n) {
    if (!c->begun) c->named = n2_csv_is_header(fields, n, n2_header_of(c->s->options));
    if (!c->named) {
        number_columns(c, n);
    } else if (!c->begun) {
        add_fields(&c->text, fields, n);
        add_names(&c->text);
        c->begun = true;
    }
}

static n2ce_status copy_csv(copier *c, n2_input *in) {
    const n2_csv_field *fields;
    n2_csv *csv;
    size_t n;
    N2_TRY(n2_csv_open(c->s->ctx, in, 0, &csv));
    n2ce_status status = n2_csv_next(csv, &fields, &n);
    if (status == N2CE_OK && fields) {
        begin_csv(c, fields, n);
        if (c->named) status = n2_csv_next(csv, &fields, &n);
    }
    while (status == N2CE_OK && fields) {
        add_fields(&c->text, fields, n);
        status = end_row(c);
        if (status == N2CE_OK) status = n2_csv_next(csv, &fields, &n);
    }
    n2_csv_close(csv);
    return status;
}

static n2ce_status copy_numbers(copier *c, n2_npy *npy, double *row, size_t *columns) {
    const size_t cols = n2_npy_cols(npy);
    if (!row || !columns) return N2CE_ENOMEM;
    for (size_t j = 0; j < cols; j++) columns[j] = j;
    number_columns(c, cols);
    for (size_t n = 1; n > 0;) {
        N2_TRY(n2_npy_next(npy, columns, cols, row, 1, &n));
        for (size_t j = 0; j < cols && n > 0; j++) {
            if (j > 0) n2_text_add_raw(&c->text, ",", 1);
            if (!isnan(row[j])) n2_text_add_number(&c->text, row[j]);
        }
        if (n > 0) N2_TRY(end_row(c));
    }
    return N2CE_OK;
}

static n2ce_status copy_npy(copier *c, n2_input *in) {
    n2_npy *npy;
    N2_TRY(n2_npy_open(c->s->ctx, in, &npy));
    double *row = n2_alloc(c->s->ctx, n2_npy_cols(npy), sizeof *row);
    size_t *columns = n2_alloc(c->s->ctx, n2_npy_cols(npy), sizeof *columns);
    const n2ce_status status = copy_numbers(c, npy, row, columns);
    n2_free(c->s->ctx, row);
    n2_free(c->s->ctx, columns);
    n2_npy_close(npy);
    return status;
}

static n2ce_status copy_file(copier *c, const char *path) {
    n2_input in;
    size_t n;
    N2_TRY(n2_input_open(c->s->ctx, path, &in));
    const unsigned char *head = n2_input_head(&in, &n);
    const n2ce_status status = n2_is_npy(head, n) ? copy_npy(c, &in) : copy_csv(c, &in);
    n2_input_close(&in);
    return status;
}

static n2ce_status copy_rows(copier *c) {
    n2_file_set files;
    N2_TRY(n2_file_set_find(c->s->ctx, c->s->rows, &files));
    n2ce_status status = N2CE_OK;
    for (size_t i = 0; i < files.n && status == N2CE_OK; i++) status = copy_file(c, files.path[i]);
    n2_file_set_free(&files);
    N2_TRY(status);
    flush(c);
    if (c->rows == c->s->judged) return c->text.failed ? N2CE_ENOMEM : N2CE_OK;
    return n2_fail(c->s->ctx, N2CE_EDATA, "%s has fewer rows than when it was judged.", c->s->rows);
}

n2ce_status n2_detect_write(n2_detect_session *s, const char *path) {
    if (n2_world_rank(s->ctx) > 0) return N2CE_OK;
    if (s->spool.error)
        return n2_fail(s->ctx, N2CE_EIO, "Scores could not be kept beside %s: %s.", path,
                       strerror(s->spool.error));
    copier *c = n2_alloc(s->ctx, 1, sizeof *c);
    if (!c) return N2CE_ENOMEM;
    c->s = s;
    c->text = n2_text_new(s->ctx);
    n2ce_status status = n2_new_file_begin(s->ctx, path, &c->file);
    if (status == N2CE_OK) {
        c->file.keep = !n2_options_flag(s->options, "force");
        status = copy_rows(c);
        status = n2_new_file_end(&c->file, status);
    }
    n2_text_free(&c->text);
    n2_free(s->ctx, c);
    return status;
}
