#include "npy.h"

#include "base/pool.h"
#include "base/text.h"
#include "file.h"

#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "elements are used as they stand");

static const char MAGIC[] = "\x93NUMPY";

enum {
    MAGIC_BYTES = 6,
    BLOCK_BYTES = 1 << 18,  /* converted, or streamed, at once */
    BLOCKS = 32,            /* of a mapped file that are converted side by side */
    FORTRAN_ROWS = 1 << 14, /* converted at once, column by column */
    LOADED_BYTES = 8 << 20, /* of a mapped file before pages are given back */
    FAULT_BYTES = 2 << 20   /* what touching one byte of a mapped file may load: a huge page */
};

/* ---- elements --------------------------------------------------------------------------- */

/* n elements that are `stride` bytes apart, to every `step`-th double. */
typedef void convert_fn(const unsigned char *from, ptrdiff_t stride, size_t n, double *to,
                        size_t step);

/* Elements side by side have a loop of their own, which compilers vectorise. */
#define CONVERT(name, type)                                                                       \
    static void from_##name(const unsigned char *from, ptrdiff_t stride, size_t n, double *to,    \
                            size_t step) {                                                        \
        const bool dense = stride == (ptrdiff_t)sizeof(type) && step == 1;                        \
        for (size_t i = 0; dense && i < n; i++) {                                                 \
            type value;                                                                           \
            memcpy(&value, from + i * sizeof value, sizeof value);                                \
            to[i] = (double)value;                                                                \
        }                                                                                         \
        if (dense) return;                                                                        \
        for (size_t i = 0; i < n; i++, to += step) {                                              \
            type value;                                                                           \
            memcpy(&value, from + (ptrdiff_t)i * stride, sizeof value);                           \
            *to = (double)value;                                                                  \
        }                                                                                         \
    }                                                                                             \
    static void swapped_##name(const unsigned char *from, ptrdiff_t stride, size_t n, double *to, \
                               size_t step) {                                                     \
        for (size_t i = 0; i < n; i++, to += step) {                                              \
            const unsigned char *at = from + (ptrdiff_t)i * stride;                               \
            unsigned char bytes[sizeof(type)];                                                    \
            for (size_t k = 0; k < sizeof bytes; k++) bytes[k] = at[sizeof bytes - 1 - k];        \
            from_##name(bytes, 0, 1, to, 1);                                                      \
        }                                                                                         \
    }
CONVERT(f8, double)
CONVERT(f4, float)
CONVERT(i8, int64_t)
CONVERT(i4, int32_t)
CONVERT(i2, int16_t)
CONVERT(i1, int8_t)
CONVERT(u8, uint64_t)
CONVERT(u4, uint32_t)
CONVERT(u2, uint16_t)
CONVERT(u1, uint8_t)
#undef CONVERT

typedef struct element {
    const char *name; /* as in 'descr', without the byte order */
    size_t bytes;
    convert_fn *convert, *swapped;
} element;

/* The first five in the order of n2ce_dtype. */
static const element elements[] = {
    {"f8", 8, from_f8, swapped_f8}, {"f4", 4, from_f4, swapped_f4}, {"i8", 8, from_i8, swapped_i8},
    {"i4", 4, from_i4, swapped_i4}, {"u1", 1, from_u1, swapped_u1}, {"i2", 2, from_i2, swapped_i2},
    {"i1", 1, from_i1, swapped_i1}, {"u8", 8, from_u8, swapped_u8}, {"u4", 4, from_u4, swapped_u4},
    {"u2", 2, from_u2, swapped_u2}, {"b1", 1, from_u1, swapped_u1},
};

enum { N_ELEMENTS = sizeof elements / sizeof elements[0] };

/* What the letters of other elements mean. */
static const struct {
    char letter;
    const char *meaning;
} strangers[] = {{'O', "Python objects"}, {'S', "texts"},       {'a', "texts"},
                 {'U', "texts"},          {'c', "complex"},     {'M', "dates"},
                 {'m', "time spans"},     {'V', "raw records"}, {'f', "floats of another size"}};

/* ---- the array -------------------------------------------------------------------------- */

struct n2_npy {
    n2ce_ctx *ctx;
    n2_input *in; /* NULL for a matrix */
    const char *label;
    char *header;

    convert_fn *convert;
    size_t element_bytes, rows, cols;
    size_t bytes; /* of all elements */
    bool fortran;

    const unsigned char *data; /* all elements, or NULL: they are streamed */
    ptrdiff_t row_stride, col_stride;
    unsigned char *copy; /* `data` of a pipe, or a block of a stream; or NULL */
    size_t next, loaded; /* row; bytes of the map that may be in memory */
};

bool n2_is_npy(const unsigned char *head, size_t n) {
    return n >= MAGIC_BYTES && memcmp(head, MAGIC, MAGIC_BYTES) == 0;
}

void n2_npy_close(n2_npy *npy) {
    if (!npy) return;
    n2_free(npy->ctx, npy->header);
    n2_free(npy->ctx, npy->copy);
    n2_free(npy->ctx, npy);
}

size_t n2_npy_rows(const n2_npy *npy) { return npy->rows; }
size_t n2_npy_cols(const n2_npy *npy) { return npy->cols; }
size_t n2_npy_bytes_of(const n2_npy *npy) { return npy->bytes; }
bool n2_npy_can_cut(const n2_npy *npy) { return npy->data && npy->rows > 0; }

void n2_npy_cut(n2_npy *npy, size_t from, size_t to) {
    npy->next = from;
    npy->rows = to;
}

/* ---- the header ------------------------------------------------------------------------- */

/* The dictionary as read so far. */
typedef struct literal {
    n2_npy *npy;
    const char *start, *at, *end;
    const char *descr, *shape; /* where these values start, or NULL; and their lengths */
    size_t descr_bytes, shape_bytes;
    bool has_order;
    size_t rank, dims[4];
} literal;

static n2ce_status damaged(const literal *l, const char *expected) {
    const size_t left = (size_t)(l->end - l->at);
    return n2_fail(l->npy->ctx, N2CE_EDATA,
                   "%s: byte %zu of the header should be %s, and \"%s\" is there. The file is "
                   "damaged: write it again with numpy.save.",
                   l->npy->label, (size_t)(l->at - l->start), expected,
                   n2_show(l->at, left < 12 ? left : 12).text);
}

static void skip_blanks(literal *l) {
    while (l->at < l->end && (*l->at == ' ' || *l->at == '\n' || *l->at == '\t')) l->at++;
}

/* Steps over a character, after blanks, if it is there. */
static bool skip(literal *l, char c) {
    skip_blanks(l);
    if (l->at == l->end || *l->at != c) return false;
    l->at++;
    return true;
}

static bool skip_word(literal *l, const char *word) {
    const size_t n = strlen(word);
    skip_blanks(l);
    if ((size_t)(l->end - l->at) < n || memcmp(l->at, word, n) != 0) return false;
    l->at += n;
    return true;
}

static n2ce_status read_string(literal *l, const char **text, size_t *n) {
    skip_blanks(l);
    if (l->at == l->end || (*l->at != '\'' && *l->at != '"')) return damaged(l, "a quote");
    const char quote = *l->at;
    *text = l->at + 1;
    const char *close = memchr(*text, quote, (size_t)(l->end - *text));
    if (!close) return damaged(l, "a text that ends");
    *n = (size_t)(close - *text);
    l->at = close + 1;
    return N2CE_OK;
}

static n2ce_status read_count(literal *l, size_t *count) {
    skip_blanks(l);
    if (l->at == l->end || *l->at < '0' || *l->at > '9') return damaged(l, "a whole number");
    for (*count = 0; l->at < l->end && *l->at >= '0' && *l->at <= '9'; l->at++)
        if (__builtin_mul_overflow(*count, (size_t)10, count) ||
            __builtin_add_overflow(*count, (size_t)(*l->at - '0'), count))
            return damaged(l, "a smaller number");
    if (l->at < l->end && *l->at == 'L') l->at++; /* Python 2 */
    return N2CE_OK;
}

static n2ce_status read_descr(literal *l) {
    skip_blanks(l);
    if (l->at < l->end && (*l->at == '[' || *l->at == '('))
        return n2_fail(l->npy->ctx, N2CE_EDATA,
                       "%s: the elements are records of several fields (a structured dtype). Save "
                       "a plain array of numbers.",
                       l->npy->label);
    return read_string(l, &l->descr, &l->descr_bytes);
}

static n2ce_status read_order(literal *l) {
    l->has_order = true;
    if (skip_word(l, "True"))
        l->npy->fortran = true;
    else if (!skip_word(l, "False"))
        return damaged(l, "True or False");
    return N2CE_OK;
}

static n2ce_status read_shape(literal *l) {
    if (!skip(l, '(')) return damaged(l, "'('");
    l->shape = l->at - 1;
    while (!skip(l, ')')) {
        size_t dim = 0;
        N2_TRY(read_count(l, &dim));
        if (l->rank < 4) l->dims[l->rank] = dim;
        l->rank++;
        skip_blanks(l);
        const bool closes = l->at < l->end && *l->at == ')';
        if (!skip(l, ',') && (!closes || l->rank == 1)) return damaged(l, "',' or ')'");
    }
    l->shape_bytes = (size_t)(l->at - l->shape);
    return N2CE_OK;
}

static n2ce_status read_member(literal *l) {
    const char *key;
    size_t n;
    N2_TRY(read_string(l, &key, &n));
    if (!skip(l, ':')) return damaged(l, "':'");
    if (n == 5 && memcmp(key, "descr", n) == 0 && !l->descr) return read_descr(l);
    if (n == 13 && memcmp(key, "fortran_order", n) == 0 && !l->has_order) return read_order(l);
    if (n == 5 && memcmp(key, "shape", n) == 0 && !l->shape) return read_shape(l);
    l->at = key;
    return damaged(l, "descr, fortran_order or shape, each once");
}

static n2ce_status read_dictionary(literal *l) {
    if (!skip(l, '{')) return damaged(l, "'{'");
    while (!skip(l, '}')) {
        N2_TRY(read_member(l));
        skip_blanks(l);
        const bool closes = l->at < l->end && *l->at == '}';
        if (!skip(l, ',') && !closes) return damaged(l, "',' or '}'");
    }
    skip_blanks(l);
    if (l->at < l->end) return damaged(l, "the end");
    if (!l->descr || !l->shape || !l->has_order)
        return n2_fail(l->npy->ctx, N2CE_EDATA,
                       "%s: the header lacks descr, fortran_order or shape. The file is damaged: "
                       "write it again with numpy.save.",
                       l->npy->label);
    return N2CE_OK;
}

/* ---- what the header means -------------------------------------------------------------- */

static n2ce_status unknown_element(const literal *l) {
    const char *meaning = "unknown";
    for (size_t i = 0; i < sizeof strangers / sizeof strangers[0]; i++)
        if (l->descr_bytes > 1 && l->descr[1] == strangers[i].letter)
            meaning = strangers[i].meaning;
    return n2_fail(l->npy->ctx, N2CE_EDATA,
                   "%s: the dtype is '%s' (%s), and numbers are needed. Convert the array with "
                   ".astype('float64') before it is saved.",
                   l->npy->label, n2_show(l->descr, l->descr_bytes).text, meaning);
}

static n2ce_status find_element(const literal *l) {
    for (int i = 0; i < N_ELEMENTS; i++) {
        const element *e = &elements[i];
        if (l->descr_bytes != 3 || memcmp(l->descr + 1, e->name, 2) != 0) continue;
        if (!memchr("<=|>", l->descr[0], 4)) continue;
        l->npy->convert = l->descr[0] == '>' ? e->swapped : e->convert;
        l->npy->element_bytes = e->bytes;
        return N2CE_OK;
    }
    return unknown_element(l);
}

static n2ce_status use_shape(const literal *l) {
    n2_npy *a = l->npy;
    const n2_shown shape = n2_show(l->shape, l->shape_bytes);
    if (l->rank < 1 || l->rank > 2)
        return n2_fail(a->ctx, N2CE_EDATA,
                       "%s: the shape is %s, %zu dimensions, and one or two are needed: (rows, "
                       "columns). Reshape the array before it is saved.",
                       a->label, shape.text, l->rank);
    a->rows = l->dims[0];
    a->cols = l->rank == 2 ? l->dims[1] : 1;
    if (a->cols > N2_NPY_COLUMNS_MAX)
        return n2_fail(a->ctx, N2CE_EDATA,
                       "%s: the shape is %s, and more than %zu columns are too many. Is it "
                       "transposed?",
                       a->label, shape.text, N2_NPY_COLUMNS_MAX);
    if (__builtin_mul_overflow(a->rows, a->cols * a->element_bytes, &a->bytes) ||
        a->bytes > PTRDIFF_MAX)
        return n2_fail(a->ctx, N2CE_EDATA, "%s: the shape is %s, more than memory can hold.",
                       a->label, shape.text);
    return N2CE_OK;
}

static n2ce_status wrong_size(const n2_npy *a, size_t found, bool more) {
    return n2_fail(a->ctx, N2CE_EDATA,
                   "%s: %zu rows of %zu columns of %zu bytes are %zu bytes, and %s%zu follow the "
                   "header. The file is damaged: write it again.",
                   a->label, a->rows, a->cols, a->element_bytes, a->bytes, more ? "at least " : "",
                   found);
}

/* ---- opening ---------------------------------------------------------------------------- */

/* Exactly n bytes, or fewer at the end of the input. */
static n2ce_status read_bytes(n2_npy *a, unsigned char *to, size_t n, size_t *found) {
    for (*found = 0; *found < n;) {
        size_t got;
        N2_TRY(n2_input_read(a->in, to + *found, n - *found, &got));
        if (got == 0) break;
        *found += got;
    }
    return N2CE_OK;
}

static n2ce_status cut_short(const n2_npy *a, size_t n, size_t found) {
    return n2_fail(a->ctx, N2CE_EDATA,
                   "%s: the header is %zu bytes, and the file ends after %zu of them. The file is "
                   "damaged: write it again.",
                   a->label, n, found);
}

/* Version and size of the header. */
static n2ce_status read_size(n2_npy *a, size_t *size) {
    unsigned char fixed[MAGIC_BYTES + 6];
    size_t found;
    N2_TRY(read_bytes(a, fixed, MAGIC_BYTES + 4, &found));
    if (found < MAGIC_BYTES + 4 || !n2_is_npy(fixed, found))
        return cut_short(a, MAGIC_BYTES + 4, found);
    const int major = fixed[6], minor = fixed[7];
    if (major < 1 || major > 3 || minor != 0)
        return n2_fail(a->ctx, N2CE_EDATA,
                       "%s: this is NPY version %d.%d, and 1.0, 2.0 and 3.0 are known. Write it "
                       "again with numpy.save.",
                       a->label, major, minor);
    *size = (size_t)fixed[8] | (size_t)fixed[9] << 8;
    if (major == 1) return N2CE_OK;
    N2_TRY(read_bytes(a, fixed + 10, 2, &found));
    if (found < 2) return cut_short(a, MAGIC_BYTES + 6, MAGIC_BYTES + 4 + found);
    *size |= (size_t)fixed[10] << 16 | (size_t)fixed[11] << 24;
    return N2CE_OK;
}

static n2ce_status read_header(n2_npy *a, literal *l) {
    size_t size = 0, found = 0;
    N2_TRY(read_size(a, &size));
    if (size > N2_NPY_HEADER_MAX)
        return n2_fail(a->ctx, N2CE_EDATA,
                       "%s: the header is said to be %zu bytes, and %zu are allowed. The file is "
                       "damaged: write it again.",
                       a->label, size, N2_NPY_HEADER_MAX);
    a->header = n2_alloc(a->ctx, size, 1);
    if (!a->header) return N2CE_ENOMEM;
    N2_TRY(read_bytes(a, (unsigned char *)a->header, size, &found));
    if (found < size) return cut_short(a, size, found);
    *l = (literal){.npy = a, .start = a->header, .at = a->header, .end = a->header + size};
    N2_TRY(read_dictionary(l));
    return find_element(l);
}

/* All elements of a pipe. Memory grows with what comes, not with what the header promises. */
static n2ce_status read_whole(n2_npy *a, size_t *found) {
    size_t room = BLOCK_BYTES;
    for (*found = 0;; room *= 2) {
        if (room > a->bytes) room = a->bytes + 1; /* one more, to see that there is none */
        unsigned char *larger = n2_realloc(a->ctx, a->copy, room, 1);
        if (!larger) return N2CE_ENOMEM;
        a->copy = larger;
        size_t n;
        N2_TRY(read_bytes(a, a->copy + *found, room - *found, &n));
        *found += n;
        if (*found < room || room > a->bytes) return N2CE_OK;
    }
}

/* Finds the elements, or makes room for a block of them. */
static n2ce_status find_data(n2_npy *a) {
    size_t found = 0;
    a->row_stride = (ptrdiff_t)(a->fortran ? a->element_bytes : a->element_bytes * a->cols);
    a->col_stride = (ptrdiff_t)(a->fortran ? a->element_bytes * a->rows : a->element_bytes);
    const bool mapped = n2_input_map(a->in, &a->data, &found);
    if (mapped && found != a->bytes) return wrong_size(a, found, false);
    if (mapped) return N2CE_OK;
    if (a->fortran && a->cols > 1) {
        N2_TRY(read_whole(a, &found));
        if (found != a->bytes) return wrong_size(a, found, found > a->bytes);
        a->data = a->copy;
        return N2CE_OK;
    }
    const size_t row = (size_t)a->row_stride;
    a->copy = n2_alloc(a->ctx, row > BLOCK_BYTES ? row : BLOCK_BYTES, 1);
    return a->copy ? N2CE_OK : N2CE_ENOMEM;
}

static n2_npy *npy_new(n2ce_ctx *ctx, n2_input *in, const char *label) {
    n2_npy *a = n2_alloc(ctx, 1, sizeof *a);
    if (a) *a = (n2_npy){.ctx = ctx, .in = in, .label = label};
    return a;
}

n2ce_status n2_npy_open(n2ce_ctx *ctx, n2_input *in, n2_npy **out) {
    n2_npy *a = *out = npy_new(ctx, in, in->label);
    if (!a) return N2CE_ENOMEM;
    literal l;
    n2ce_status status = read_header(a, &l);
    if (status == N2CE_OK) status = use_shape(&l);
    if (status == N2CE_OK) status = find_data(a);
    if (status == N2CE_OK) return N2CE_OK;
    n2_npy_close(a);
    *out = NULL;
    return status;
}

static n2ce_status use_bytes(const literal *l, n2_npy_bytes *out) {
    const n2_npy *a = l->npy;
    size_t found = 0;
    *out = (n2_npy_bytes){.rank = l->rank, .n = 1};
    if (memcmp(l->descr + 1, "u1", 2) != 0 || a->fortran || l->rank > 4)
        return n2_fail(a->ctx, N2CE_EDATA,
                       "%s: the array is of dtype '%s', shape %s%s, and unsigned bytes of up to "
                       "four dimensions in C order are needed. Save "
                       "numpy.ascontiguousarray(a, dtype='uint8').",
                       a->label, n2_show(l->descr, l->descr_bytes).text,
                       n2_show(l->shape, l->shape_bytes).text, a->fortran ? ", Fortran order" : "");
    bool fits = n2_input_map(a->in, &out->bytes, &found);
    for (size_t k = 0; k < l->rank; k++) {
        out->dims[k] = l->dims[k];
        fits = fits && !__builtin_mul_overflow(out->n, l->dims[k], &out->n);
    }
    if (fits && found == out->n) return N2CE_OK;
    return n2_fail(a->ctx, N2CE_EDATA,
                   "%s: the shape is %s, and %zu bytes follow the header. The file is damaged: "
                   "write it again.",
                   a->label, n2_show(l->shape, l->shape_bytes).text, found);
}

n2ce_status n2_npy_read_bytes(n2ce_ctx *ctx, n2_input *in, n2_npy_bytes *out) {
    n2_npy *a = npy_new(ctx, in, in->label);
    literal l;
    if (!a) return N2CE_ENOMEM;
    n2ce_status status = read_header(a, &l);
    if (status == N2CE_OK) status = use_bytes(&l, out);
    n2_npy_close(a);
    return status;
}

/* Whether n steps of so many bytes stay within what an address can be apart. */
static bool reaches(size_t n, ptrdiff_t stride, size_t most) {
    const size_t step = stride < 0 ? (size_t)0 - (size_t)stride : (size_t)stride;
    return n <= 1 || step <= most / (n - 1);
}

/* Sizes that no memory has are a mistake of the caller's, such as -1. */
static bool can_be_in_memory(const n2ce_matrix *m, size_t bytes) {
    const size_t most = (size_t)PTRDIFF_MAX / 2;
    if (m->rows > most / bytes / (m->cols ? m->cols : 1)) return false;
    if (m->row_stride == 0 && m->col_stride == 0) return true;
    return reaches(m->rows, m->row_stride, most) && reaches(m->cols, m->col_stride, most);
}

n2ce_status n2_npy_of_matrix(n2ce_ctx *ctx, const n2ce_matrix *m, const char *label, n2_npy **out) {
    *out = NULL;
    if ((unsigned)m->type > N2CE_U8)
        return n2_fail(ctx, N2CE_EINVAL, "%s: the type is %d; use one of N2CE_F64 to N2CE_U8.",
                       label, (int)m->type);
    if (m->cols > N2_NPY_COLUMNS_MAX || (!m->data && m->rows > 0 && m->cols > 0))
        return n2_fail(ctx, N2CE_EINVAL,
                       "%s: the matrix has no data, or more than %zu columns (it has %zu).", label,
                       N2_NPY_COLUMNS_MAX, m->cols);
    const element *e = &elements[m->type];
    if (!can_be_in_memory(m, sizeof(double)))
        return n2_fail(ctx, N2CE_EINVAL,
                       "%s: a matrix of %zu rows and %zu columns, or its strides, do not fit into "
                       "any memory.",
                       label, m->rows, m->cols);
    n2_npy *a = npy_new(ctx, NULL, label);
    if (!a) return N2CE_ENOMEM;
    const bool plain = m->row_stride == 0 && m->col_stride == 0;
    a->convert = e->convert;
    a->element_bytes = e->bytes;
    a->rows = m->rows;
    a->cols = m->cols;
    a->data = m->data;
    a->row_stride = plain ? (ptrdiff_t)(e->bytes * m->cols) : m->row_stride;
    a->col_stride = plain ? (ptrdiff_t)e->bytes : m->col_stride;
    *out = a;
    return N2CE_OK;
}

/* ---- rows ------------------------------------------------------------------------------- */

/* Counts bytes of a mapped file that were touched, and gives them back when they are many. */
static void count_loaded(n2_npy *a, size_t bytes) {
    a->loaded += bytes;
    if (!a->in || a->loaded < LOADED_BYTES) return;
    n2_input_unload(a->in);
    a->loaded = 0;
}

/* Columns of consecutive rows, each somewhere else in the file. */
static void convert_columns(n2_npy *a, const unsigned char *first, const size_t *columns, size_t n,
                            double *x, size_t rows) {
    for (size_t k = 0; k < n; k++) {
        a->convert(first + (ptrdiff_t)columns[k] * a->col_stride, a->row_stride, rows, x + k, n);
        count_loaded(a, rows * a->element_bytes + FAULT_BYTES);
    }
}

/* How many of n columns, from the first, lie side by side. */
static size_t side_by_side(const size_t *columns, size_t n) {
    size_t k = 1;
    while (k < n && columns[k] == columns[0] + k) k++;
    return k;
}

/* Rows that lie one behind the other. */
typedef struct rows_job {
    const n2_npy *a;
    const unsigned char *first;
    const size_t *columns;
    size_t n, rows, block;
    double *x;
} rows_job;

/* Column by column, unless several lie side by side. */
static void convert_block(void *arg, size_t item, int worker) {
    (void)worker;
    enum { SEVERAL = 8 };
    const rows_job *job = arg;
    const n2_npy *a = job->a;
    const size_t begin = item * job->block, left = job->rows - begin, n = job->n;
    const size_t rows = left < job->block ? left : job->block;
    const unsigned char *from = job->first + (ptrdiff_t)begin * a->row_stride;
    double *x = job->x + begin * n;
    for (size_t k = 0, run; k < n; k += run) {
        const unsigned char *at = from + (ptrdiff_t)job->columns[k] * a->col_stride;
        run = side_by_side(job->columns + k, n - k);
        if (run < SEVERAL) run = 1;
        for (size_t i = 0; i < rows && run > 1; i++)
            a->convert(at + (ptrdiff_t)i * a->row_stride, a->col_stride, run, x + i * n + k, 1);
        if (run == 1) a->convert(at, a->row_stride, rows, x + k, n);
    }
}

/* On all threads. */
static n2ce_status convert_rows(n2_npy *a, const unsigned char *first, const size_t *columns,
                                size_t n, double *x, size_t rows, size_t block) {
    rows_job job = {a, first, columns, n, rows, block, x};
    N2_TRY(n2_parallel_for(a->ctx, (rows + block - 1) / block, convert_block, &job));
    count_loaded(a, rows * a->cols * a->element_bytes);
    return N2CE_OK;
}

/* Reads a block of a stream; *data is where it is. At the end there must be nothing left. */
static n2ce_status read_block(n2_npy *a, size_t rows, const unsigned char **data) {
    const size_t row = (size_t)a->row_stride;
    size_t found;
    N2_TRY(read_bytes(a, a->copy, rows * row, &found));
    if (found < rows * row) return wrong_size(a, a->next * row + found, false);
    *data = a->copy;
    if (a->next + rows < a->rows) return N2CE_OK;
    unsigned char more;
    N2_TRY(read_bytes(a, &more, 1, &found));
    return found == 0 ? N2CE_OK : wrong_size(a, a->bytes + 1, true);
}

/* Rows whose elements and doubles both fit into a block; more if columns lie apart, for then it is
 * the jump that costs. */
static size_t block_rows(const n2_npy *a, size_t n) {
    if (a->fortran && a->data) return FORTRAN_ROWS;
    const size_t row = a->cols * a->element_bytes, wide = n * sizeof(double);
    const size_t rows = BLOCK_BYTES / (row > wide ? row : wide);
    return rows > 0 ? rows : 1;
}

n2ce_status n2_npy_next(n2_npy *a, const size_t *columns, size_t n, double *x, size_t max_rows,
                        size_t *rows) {
    size_t left = a->rows - a->next;
    if (left > max_rows) left = max_rows;
    for (*rows = 0; *rows < left && n > 0;) {
        if (n2_cancelled(a->ctx)) return N2CE_ECANCELED;
        const size_t block = block_rows(a, n);
        size_t some = a->data && !a->fortran ? BLOCKS * block : block;
        if (some > left - *rows) some = left - *rows;
        const unsigned char *first = NULL;
        if (a->data)
            first = a->data + (ptrdiff_t)a->next * a->row_stride;
        else
            N2_TRY(read_block(a, some, &first));
        if (a->fortran)
            convert_columns(a, first, columns, n, x + *rows * n, some);
        else
            N2_TRY(convert_rows(a, first, columns, n, x + *rows * n, some, block));
        a->next += some;
        *rows += some;
    }
    return N2CE_OK;
}
