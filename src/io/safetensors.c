#include "safetensors.h"

#include "base/text.h"
#include "file.h"
#include "input.h"
#include "json.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "elements are used as they stand");

static const char METADATA[] = "__metadata__";

enum { SIZE_BYTES = 8, ALIGNMENT = 64 };

/* ---- element types ---------------------------------------------------------------------- */

#define READ(name, type)                                \
    static double read_##name(const unsigned char *p) { \
        type value;                                     \
        memcpy(&value, p, sizeof value);                \
        return (double)value;                           \
    }
READ(f64, double)
READ(f32, float)
READ(i64, int64_t)
READ(i32, int32_t)
READ(i16, int16_t)
READ(i8, int8_t)
READ(u64, uint64_t)
READ(u32, uint32_t)
READ(u16, uint16_t)
READ(u8, uint8_t)
#undef READ

static double read_bf16(const unsigned char *p) {
    const unsigned char wide[4] = {0, 0, p[0], p[1]};
    return read_f32(wide);
}

static double read_f16(const unsigned char *p) {
    const int bits = p[0] | p[1] << 8, exponent = bits >> 10 & 31, fraction = bits & 1023;
    double size = ldexp(1024 + fraction, exponent - 25);
    if (exponent == 0) size = ldexp(fraction, -24);
    if (exponent == 31) size = (double)(fraction ? NAN : INFINITY);
    return bits >> 15 ? -size : size;
}

static const struct {
    const char *name;
    size_t bytes;
    double (*read)(const unsigned char *); /* NULL: not a number */
} dtypes[N2_ST_DTYPES] = {
    [N2_ST_F64] = {"F64", 8, read_f64}, [N2_ST_F32] = {"F32", 4, read_f32},
    [N2_ST_F16] = {"F16", 2, read_f16}, [N2_ST_BF16] = {"BF16", 2, read_bf16},
    [N2_ST_I64] = {"I64", 8, read_i64}, [N2_ST_I32] = {"I32", 4, read_i32},
    [N2_ST_I16] = {"I16", 2, read_i16}, [N2_ST_I8] = {"I8", 1, read_i8},
    [N2_ST_U64] = {"U64", 8, read_u64}, [N2_ST_U32] = {"U32", 4, read_u32},
    [N2_ST_U16] = {"U16", 2, read_u16}, [N2_ST_U8] = {"U8", 1, read_u8},
    [N2_ST_BOOL] = {"BOOL", 1, NULL},
};

static bool is_dtype(n2_st_dtype dtype) { return (unsigned)dtype < (unsigned)N2_ST_DTYPES; }

const char *n2_st_dtype_name(n2_st_dtype dtype) {
    return is_dtype(dtype) ? dtypes[dtype].name : "?";
}

size_t n2_st_dtype_bytes(n2_st_dtype dtype) { return is_dtype(dtype) ? dtypes[dtype].bytes : 0; }

/* ---- tensors ---------------------------------------------------------------------------- */

/* A name as messages show it: no control characters, not too long, and cut between
 * characters. */
typedef struct shown {
    char text[68];
} shown;

static shown show(const char *name) {
    shown s;
    size_t n = 0;
    for (; name[n] && n < 64; n++) s.text[n] = (unsigned char)name[n] < 0x20 ? '?' : name[n];
    const bool cut = name[n] != '\0';
    while (cut && n > 0 && ((unsigned char)name[n] & 0xc0) == 0x80) n--;
    strcpy(s.text + n, cut ? "..." : "");
    return s;
}

size_t n2_st_elements(const n2_st_tensor *tensor) {
    const size_t size = n2_st_dtype_bytes(tensor->dtype);
    return size ? tensor->bytes / size : 0;
}

/* Bytes that the shape asks for; false if they cannot be counted. The dimensions that are not 0
 * must have a product that fits even if another is 0, as NumPy wants it. */
static bool shape_bytes(const n2_st_tensor *t, size_t *bytes) {
    int64_t product = (int64_t)dtypes[t->dtype].bytes;
    bool empty = false;
    for (int i = 0; i < t->rank; i++) {
        if (t->shape[i] < 0) return false;
        if (t->shape[i] == 0)
            empty = true;
        else if (__builtin_mul_overflow(product, t->shape[i], &product))
            return false;
    }
    *bytes = empty ? 0 : (size_t)product;
    return (uint64_t)product <= SIZE_MAX;
}

static int compare_names(const void *a, const void *b) {
    const n2_st_tensor *const *x = a, *const *y = b;
    return strcmp((*x)->name, (*y)->name);
}

static int compare_keys(const void *a, const void *b) {
    const n2_st_pair *x = a, *y = b;
    return strcmp(x->key, y->key);
}

/* Sorts pointers to tensors by name, and pairs by key; a name or key that occurs twice, or NULL. */
static const char *sort_names(const n2_st_tensor **tensors, size_t n) {
    if (n > 0) qsort(tensors, n, sizeof *tensors, compare_names);
    for (size_t i = 1; i < n; i++)
        if (compare_names(&tensors[i - 1], &tensors[i]) == 0) return tensors[i]->name;
    return NULL;
}

static const char *sort_keys(n2_st_pair *pairs, size_t n) {
    if (n > 0) qsort(pairs, n, sizeof *pairs, compare_keys);
    for (size_t i = 1; i < n; i++)
        if (compare_keys(&pairs[i - 1], &pairs[i]) == 0) return pairs[i].key;
    return NULL;
}

/* ---- the reader: from bytes to tensors -------------------------------------------------- */

struct n2_st_file {
    n2ce_ctx *ctx;
    void *map;  /* the whole file, or NULL; then */
    char *copy; /* what was read, or NULL if the bytes are the caller's */
    size_t map_bytes;
    char *strings;         /* the names, keys and values */
    n2_st_tensor *tensors; /* in the order of their bytes */
    const n2_st_tensor **by_name;
    n2_st_pair *metadata; /* in the order of the keys */
    size_t n_tensors, tensor_room, n_metadata, metadata_room;
};

typedef struct reader {
    n2ce_ctx *ctx;
    const char *source;
    n2_json json;
    const unsigned char *buffer; /* the arrays */
    size_t buffer_bytes;
    n2_st_file *file;
} reader;

static n2ce_status refuse(const reader *r, const char *format, ...) N2_PRINTF(2, 3);

static n2ce_status refuse(const reader *r, const char *format, ...) {
    char found[512];
    va_list args;
    va_start(args, format);
    vsnprintf(found, sizeof found, format, args);
    va_end(args);
    return n2_fail(r->ctx, N2CE_EDATA,
                   "%s: %s. The file is damaged or not a safetensors file: get it or write it "
                   "again.",
                   r->source, found);
}

/* Room for one more item of an array that holds n. */
static n2ce_status reserve(n2ce_ctx *ctx, void **items, size_t n, size_t *room, size_t size) {
    if (n < *room) return N2CE_OK;
    const size_t wanted = *room ? *room * 2 : 16;
    void *larger = n2_realloc(ctx, *items, wanted, size);
    if (!larger) return N2CE_ENOMEM;
    *items = larger;
    *room = wanted;
    return N2CE_OK;
}

static n2ce_status read_dtype(reader *r, n2_st_tensor *t) {
    const char *name;
    N2_TRY(n2_json_string(&r->json, &name));
    for (int i = 0; i < N2_ST_DTYPES; i++) {
        t->dtype = (n2_st_dtype)i;
        if (strcmp(name, dtypes[i].name) == 0) return N2CE_OK;
    }
    return n2_fail(r->ctx, N2CE_EDATA,
                   "%s: tensor \"%s\" has dtype \"%s\", which this version does not know. Convert "
                   "it to F64, F32, F16, BF16, I64, I32, I16, I8, U64, U32, U16, U8 or BOOL.",
                   r->source, show(t->name).text, show(name).text);
}

static n2ce_status read_shape(reader *r, n2_st_tensor *t) {
    N2_TRY(n2_json_enter(&r->json, '['));
    for (bool more;;) {
        N2_TRY(n2_json_next(&r->json, ']', &more));
        if (!more) return N2CE_OK;
        if (t->rank == N2_ST_RANK_MAX)
            return refuse(r, "tensor \"%s\" has more than %d dimensions", show(t->name).text,
                          N2_ST_RANK_MAX);
        N2_TRY(n2_json_count(&r->json, &t->shape[t->rank++]));
    }
}

static n2ce_status read_offsets(reader *r, n2_st_tensor *t) {
    int64_t at[2] = {0, 0};
    bool more = true;
    int n = 0;
    N2_TRY(n2_json_enter(&r->json, '['));
    for (; more; n += more) {
        N2_TRY(n2_json_next(&r->json, ']', &more));
        if (more && n == 2)
            return refuse(r, "tensor \"%s\" has more than two offsets", show(t->name).text);
        if (more) N2_TRY(n2_json_count(&r->json, &at[n]));
    }
    if (n != 2) return refuse(r, "tensor \"%s\" has %d offsets, not two", show(t->name).text, n);
    if (at[0] > at[1] || (uint64_t)at[1] > r->buffer_bytes)
        return refuse(r, "tensor \"%s\" is said to be bytes %lld to %lld of %zu",
                      show(t->name).text, (long long)at[0], (long long)at[1], r->buffer_bytes);
    t->data = r->buffer + at[0];
    t->bytes = (size_t)(at[1] - at[0]);
    return N2CE_OK;
}

static const struct {
    const char *name;
    n2ce_status (*read)(reader *, n2_st_tensor *);
} fields[] = {{"dtype", read_dtype}, {"shape", read_shape}, {"data_offsets", read_offsets}};

enum { N_FIELDS = sizeof fields / sizeof fields[0] };

/* One member of a tensor's object; seen[] says which fields there were. */
static n2ce_status read_field(reader *r, n2_st_tensor *t, bool seen[N_FIELDS]) {
    const char *key;
    N2_TRY(n2_json_key(&r->json, &key));
    for (int i = 0; i < N_FIELDS; i++) {
        if (strcmp(key, fields[i].name) != 0) continue;
        if (seen[i])
            return refuse(r, "tensor \"%s\" has two fields \"%s\"", show(t->name).text, key);
        seen[i] = true;
        return fields[i].read(r, t);
    }
    return n2_json_skip(&r->json);
}

static n2ce_status check_bytes(const reader *r, const n2_st_tensor *t) {
    size_t bytes;
    if (!shape_bytes(t, &bytes))
        return refuse(r, "tensor \"%s\" has a shape with more elements than memory can hold",
                      show(t->name).text);
    if (bytes == t->bytes) return N2CE_OK;
    return refuse(r, "tensor \"%s\" has %zu bytes, but its shape and dtype %s need %zu",
                  show(t->name).text, t->bytes, dtypes[t->dtype].name, bytes);
}

static n2ce_status read_tensor(reader *r, const char *name) {
    n2_st_file *f = r->file;
    n2_st_tensor t = {.name = name};
    bool seen[N_FIELDS] = {false}, more;
    N2_TRY(n2_json_enter(&r->json, '{'));
    for (;;) {
        N2_TRY(n2_json_next(&r->json, '}', &more));
        if (!more) break;
        N2_TRY(read_field(r, &t, seen));
    }
    for (int i = 0; i < N_FIELDS; i++)
        if (!seen[i])
            return refuse(r, "tensor \"%s\" has no \"%s\"", show(name).text, fields[i].name);
    N2_TRY(check_bytes(r, &t));
    void *items = f->tensors;
    N2_TRY(reserve(r->ctx, &items, f->n_tensors, &f->tensor_room, sizeof t));
    f->tensors = items;
    f->tensors[f->n_tensors++] = t;
    return N2CE_OK;
}

static n2ce_status read_metadata(reader *r) {
    n2_st_file *f = r->file;
    N2_TRY(n2_json_enter(&r->json, '{'));
    for (bool more;;) {
        n2_st_pair pair;
        N2_TRY(n2_json_next(&r->json, '}', &more));
        if (!more) return N2CE_OK;
        N2_TRY(n2_json_key(&r->json, &pair.key));
        N2_TRY(n2_json_string(&r->json, &pair.value));
        void *items = f->metadata;
        N2_TRY(reserve(r->ctx, &items, f->n_metadata, &f->metadata_room, sizeof pair));
        f->metadata = items;
        f->metadata[f->n_metadata++] = pair;
    }
}

static n2ce_status read_header(reader *r) {
    bool had_metadata = false, more;
    N2_TRY(n2_json_enter(&r->json, '{'));
    for (;;) {
        const char *name;
        N2_TRY(n2_json_next(&r->json, '}', &more));
        if (!more) return n2_json_end(&r->json);
        N2_TRY(n2_json_key(&r->json, &name));
        const bool is_metadata = strcmp(name, METADATA) == 0;
        if (is_metadata && had_metadata) return refuse(r, "the key \"%s\" occurs twice", METADATA);
        had_metadata |= is_metadata;
        N2_TRY(is_metadata ? read_metadata(r) : read_tensor(r, name));
    }
}

/* Where tensors lie: an empty one before another at the same place. */
static int compare_places(const void *a, const void *b) {
    const n2_st_tensor *x = a, *y = b;
    if (x->data != y->data) return (const char *)x->data < (const char *)y->data ? -1 : 1;
    if (x->bytes != y->bytes) return x->bytes < y->bytes ? -1 : 1;
    return strcmp(x->name, y->name);
}

/* Every byte of the buffer belongs to exactly one tensor. */
static n2ce_status check_places(reader *r) {
    n2_st_file *f = r->file;
    if (f->n_tensors > 0) qsort(f->tensors, f->n_tensors, sizeof *f->tensors, compare_places);
    size_t end = 0;
    for (size_t i = 0; i < f->n_tensors; i++) {
        const n2_st_tensor *t = &f->tensors[i];
        const size_t begin = (size_t)((const unsigned char *)t->data - r->buffer);
        if (begin != end)
            return refuse(r,
                          "tensor \"%s\" starts at byte %zu, where the one before it ends at %zu",
                          show(t->name).text, begin, end);
        end += t->bytes;
    }
    if (end == r->buffer_bytes) return N2CE_OK;
    return refuse(r, "the tensors are %zu bytes, but %zu follow the header", end, r->buffer_bytes);
}

static n2ce_status check_names(reader *r) {
    n2_st_file *f = r->file;
    f->by_name = n2_alloc(r->ctx, f->n_tensors, sizeof *f->by_name);
    if (!f->by_name) return N2CE_ENOMEM;
    for (size_t i = 0; i < f->n_tensors; i++) f->by_name[i] = &f->tensors[i];
    const char *twice = sort_names(f->by_name, f->n_tensors);
    if (twice) return refuse(r, "the tensor name \"%s\" occurs twice", show(twice).text);
    twice = sort_keys(f->metadata, f->n_metadata);
    if (twice) return refuse(r, "the metadata key \"%s\" occurs twice", show(twice).text);
    return N2CE_OK;
}

/* Finds header and buffer in the bytes. */
static n2ce_status split(reader *r, const unsigned char *bytes, size_t n) {
    uint64_t size;
    if (n < SIZE_BYTES) return refuse(r, "%zu bytes are too few", n);
    memcpy(&size, bytes, sizeof size);
    if (size > N2_ST_HEADER_MAX)
        return refuse(r, "the header is said to be %llu bytes, and the format allows %d",
                      (unsigned long long)size, N2_ST_HEADER_MAX);
    if (size > n - SIZE_BYTES)
        return refuse(r, "the header is said to be %llu bytes, but %zu follow",
                      (unsigned long long)size, n - SIZE_BYTES);
    const char *header = (const char *)bytes + SIZE_BYTES;
    if (size == 0 || header[0] != '{') return refuse(r, "the header does not start with '{'");
    r->file->strings = n2_alloc(r->ctx, (size_t)size, 1);
    if (!r->file->strings) return N2CE_ENOMEM;
    r->json = n2_json_new(r->ctx, r->source, header, (size_t)size, r->file->strings);
    r->json.origin = SIZE_BYTES;
    r->buffer = bytes + SIZE_BYTES + size;
    r->buffer_bytes = n - SIZE_BYTES - (size_t)size;
    return N2CE_OK;
}

static n2ce_status parse_into(n2_st_file *file, const char *source, const void *bytes, size_t n) {
    reader r = {.ctx = file->ctx, .source = source, .file = file};
    N2_TRY(split(&r, bytes, n));
    N2_TRY(read_header(&r));
    N2_TRY(check_places(&r));
    return check_names(&r);
}

/* ---- files ------------------------------------------------------------------------------ */

static n2ce_status io_failure(n2ce_ctx *ctx, const char *path, int error) {
    return n2_fail(ctx, N2CE_EIO, "%s: could not be read: %s. Check the path and your permissions.",
                   path, strerror(error));
}

/* Whether a file begins as the format does: of something else the end, which may never come, is not
 * waited for. */
static bool may_begin(const char *bytes, size_t n) {
    uint64_t size;
    if (n <= SIZE_BYTES) return true;
    memcpy(&size, bytes, sizeof size);
    return size <= N2_ST_HEADER_MAX && bytes[SIZE_BYTES] == '{';
}

/* Reads to the end of an open file. A signal may be the user's wish to stop. */
static n2ce_status read_all(n2_st_file *f, const char *path, int file, size_t *n) {
    size_t room = 0;
    for (*n = 0;;) {
        if (*n == room) {
            room = room ? room * 2 : 1 << 16;
            char *larger = n2_realloc(f->ctx, f->copy, room, 1);
            if (!larger) return N2CE_ENOMEM;
            f->copy = larger;
        }
        if (n2_cancelled(f->ctx)) return n2_fail(f->ctx, N2CE_ECANCELED, "Stopped on request.");
        const ssize_t got = read(file, f->copy + *n, room - *n);
        if (got < 0 && errno != EINTR) return io_failure(f->ctx, path, errno);
        if (got > 0) *n += (size_t)got;
        if (got == 0 || !may_begin(f->copy, *n)) return N2CE_OK;
    }
}

/* Maps an open file, or reads it if it is a pipe or cannot be mapped. */
static n2ce_status load(n2_st_file *f, const char *path, int file, size_t *n) {
    struct stat info;
    if (fstat(file, &info) != 0) return io_failure(f->ctx, path, errno);
    if (!S_ISREG(info.st_mode) && !S_ISFIFO(info.st_mode))
        return n2_fail(f->ctx, N2CE_EIO, "%s is a folder or a device, not a file. Name a file.",
                       path);
    *n = (size_t)info.st_size;
    if (S_ISREG(info.st_mode) && *n > 0) {
        void *map = mmap(NULL, *n, PROT_READ, MAP_PRIVATE, file, 0);
        f->map = map == MAP_FAILED ? NULL : map;
        f->map_bytes = *n;
    }
    return f->map ? N2CE_OK : read_all(f, path, file, n);
}

static n2ce_status open_into(n2_st_file *f, const char *path) {
    size_t n = 0;
    int file;
    N2_TRY(n2_open_to_read(f->ctx, path, &file));
    const n2ce_status status = load(f, path, file, &n);
    close(file);
    if (status != N2CE_OK) return status;
    return parse_into(f, path, f->map ? f->map : f->copy, n);
}

static n2_st_file *file_new(n2ce_ctx *ctx) {
    n2_st_file *f = n2_alloc(ctx, 1, sizeof *f);
    if (f) f->ctx = ctx;
    return f;
}

/* The file if all went well, else NULL. */
static n2ce_status hand_over(n2_st_file *f, n2ce_status status, n2_st_file **out) {
    *out = status == N2CE_OK ? f : NULL;
    if (status != N2CE_OK) n2_st_close(f);
    return status;
}

n2ce_status n2_st_open(n2ce_ctx *ctx, const char *path, n2_st_file **out) {
    *out = NULL;
    if (!path) return n2_fail(ctx, N2CE_EINVAL, "The name of the file to read is NULL.");
    n2_st_file *f = file_new(ctx);
    return f ? hand_over(f, open_into(f, path), out) : N2CE_ENOMEM;
}

n2ce_status n2_st_parse(n2ce_ctx *ctx, const char *source, const void *bytes, size_t n,
                        n2_st_file **out) {
    *out = NULL;
    n2_st_file *f = file_new(ctx);
    return f ? hand_over(f, parse_into(f, source, bytes, n), out) : N2CE_ENOMEM;
}

void n2_st_close(n2_st_file *file) {
    if (!file) return;
    if (file->map) munmap(file->map, file->map_bytes);
    n2_free(file->ctx, file->copy);
    n2_free(file->ctx, file->strings);
    n2_free(file->ctx, file->tensors);
    n2_free(file->ctx, file->by_name);
    n2_free(file->ctx, file->metadata);
    n2_free(file->ctx, file);
}

/* ---- what is in a file ------------------------------------------------------------------ */

size_t n2_st_count(const n2_st_file *file) { return file->n_tensors; }

const n2_st_tensor *n2_st_at(const n2_st_file *file, size_t index) {
    return index < file->n_tensors ? &file->tensors[index] : NULL;
}

const n2_st_tensor *n2_st_find(const n2_st_file *file, const char *name) {
    const n2_st_tensor wanted = {.name = name}, *key = &wanted;
    if (file->n_tensors == 0) return NULL;
    const n2_st_tensor **found =
        bsearch(&key, file->by_name, file->n_tensors, sizeof key, compare_names);
    return found ? *found : NULL;
}

size_t n2_st_metadata_count(const n2_st_file *file) { return file->n_metadata; }

const n2_st_pair *n2_st_metadata_at(const n2_st_file *file, size_t index) {
    return index < file->n_metadata ? &file->metadata[index] : NULL;
}

const char *n2_st_metadata(const n2_st_file *file, const char *key) {
    const n2_st_pair wanted = {.key = key};
    if (file->n_metadata == 0) return NULL;
    const n2_st_pair *found =
        bsearch(&wanted, file->metadata, file->n_metadata, sizeof wanted, compare_keys);
    return found ? found->value : NULL;
}

static n2ce_status check_convertible(n2ce_ctx *ctx, const n2_st_tensor *t, size_t n) {
    if (!is_dtype(t->dtype) || !dtypes[t->dtype].read)
        return n2_fail(ctx, N2CE_EDATA,
                       "Tensor \"%s\" has dtype %s, which is not a number. Store it as F32, F64 or "
                       "an integer.",
                       show(t->name).text, n2_st_dtype_name(t->dtype));
    if (n2_st_elements(t) == n) return N2CE_OK;
    return n2_fail(
        ctx, N2CE_EDATA,
        "Tensor \"%s\" has %zu elements, and %zu are needed. Check that the file belongs "
        "to this model.",
        show(t->name).text, n2_st_elements(t), n);
}

n2ce_status n2_st_to_f32(n2ce_ctx *ctx, const n2_st_tensor *tensor, float *out, size_t n) {
    N2_TRY(check_convertible(ctx, tensor, n));
    const unsigned char *data = tensor->data;
    if (tensor->dtype == N2_ST_F32 && n > 0) {
        memcpy(out, data, tensor->bytes);
        return N2CE_OK;
    }
    for (size_t i = 0; i < n; i++)
        out[i] = (float)dtypes[tensor->dtype].read(data + i * dtypes[tensor->dtype].bytes);
    return N2CE_OK;
}

n2ce_status n2_st_to_f64(n2ce_ctx *ctx, const n2_st_tensor *tensor, double *out, size_t n) {
    N2_TRY(check_convertible(ctx, tensor, n));
    const unsigned char *data = tensor->data;
    for (size_t i = 0; i < n; i++)
        out[i] = dtypes[tensor->dtype].read(data + i * dtypes[tensor->dtype].bytes);
    return N2CE_OK;
}

/* ---- the writer ------------------------------------------------------------------------- */

/* What is written, in its order. */
typedef struct writer {
    n2ce_ctx *ctx;
    const n2_st_tensor **tensors;
    n2_st_pair *metadata;
    size_t n, n_metadata;
    size_t data_bytes;
    n2_text header;
} writer;

static n2ce_status check_tensor(n2ce_ctx *ctx, const n2_st_tensor *t) {
    size_t bytes;
    if (!t->name || !n2_is_utf8(t->name) || strcmp(t->name, METADATA) == 0)
        return n2_fail(ctx, N2CE_EINVAL, "\"%s\" cannot be the name of a tensor. Use UTF-8.",
                       t->name && n2_is_utf8(t->name) ? show(t->name).text : "?");
    if (!is_dtype(t->dtype) || t->rank < 0 || t->rank > N2_ST_RANK_MAX || !shape_bytes(t, &bytes))
        return n2_fail(
            ctx, N2CE_EINVAL,
            "Tensor \"%s\" has dtype %d and rank %d, or a shape, that cannot be written. "
            "Use at most %d dimensions, none negative.",
            show(t->name).text, (int)t->dtype, t->rank, N2_ST_RANK_MAX);
    if (bytes == t->bytes && (t->data || bytes == 0)) return N2CE_OK;
    return n2_fail(ctx, N2CE_EINVAL,
                   "Tensor \"%s\" comes with %zu bytes; its shape and dtype %s need %zu.",
                   show(t->name).text, t->data ? t->bytes : 0, dtypes[t->dtype].name, bytes);
}

static n2ce_status check_input(writer *w) {
    for (size_t i = 0; i < w->n; i++) {
        N2_TRY(check_tensor(w->ctx, w->tensors[i]));
        if (__builtin_add_overflow(w->data_bytes, w->tensors[i]->bytes, &w->data_bytes))
            return n2_fail(w->ctx, N2CE_EINVAL, "The tensors are too large for one file.");
    }
    for (size_t i = 0; i < w->n_metadata; i++) {
        const n2_st_pair *p = &w->metadata[i];
        if (!p->key || !p->value || !n2_is_utf8(p->key) || !n2_is_utf8(p->value))
            return n2_fail(w->ctx, N2CE_EINVAL, "Metadata %zu is not text in UTF-8.", i);
    }
    const char *twice = sort_names(w->tensors, w->n);
    if (!twice) twice = sort_keys(w->metadata, w->n_metadata);
    if (!twice) return N2CE_OK;
    return n2_fail(w->ctx, N2CE_EINVAL, "The name \"%s\" occurs twice. Use each name once.",
                   show(twice).text);
}

/* Larger elements first: then each tensor is aligned without a hole before it. */
static int compare_order(const void *a, const void *b) {
    const n2_st_tensor *const *x = a, *const *y = b;
    const size_t x_bytes = dtypes[(*x)->dtype].bytes, y_bytes = dtypes[(*y)->dtype].bytes;
    if (x_bytes != y_bytes) return x_bytes > y_bytes ? -1 : 1;
    return compare_names(a, b);
}

static void add_metadata(writer *w) {
    n2_text_add(&w->header, "\"%s\":{", METADATA);
    for (size_t i = 0; i < w->n_metadata; i++) {
        n2_text_add(&w->header, "%s", i ? "," : "");
        n2_text_add_json_string(&w->header, w->metadata[i].key);
        n2_text_add(&w->header, ":");
        n2_text_add_json_string(&w->header, w->metadata[i].value);
    }
    n2_text_add(&w->header, "}%s", w->n ? "," : "");
}

static void add_tensor(n2_text *header, const n2_st_tensor *t, size_t begin) {
    n2_text_add_json_string(header, t->name);
    n2_text_add(header, ":{\"dtype\":\"%s\",\"shape\":[", dtypes[t->dtype].name);
    for (int i = 0; i < t->rank; i++)
        n2_text_add(header, "%s%lld", i ? "," : "", (long long)t->shape[i]);
    n2_text_add(header, "],\"data_offsets\":[%zu,%zu]}", begin, begin + t->bytes);
}

static n2ce_status build_header(writer *w) {
    size_t begin = 0;
    if (w->n > 0) qsort(w->tensors, w->n, sizeof *w->tensors, compare_order);
    n2_text_add(&w->header, "{");
    if (w->n_metadata > 0) add_metadata(w);
    for (size_t i = 0; i < w->n; i++) {
        n2_text_add(&w->header, "%s", i ? "," : "");
        add_tensor(&w->header, w->tensors[i], begin);
        begin += w->tensors[i]->bytes;
    }
    n2_text_add(&w->header, "}");
    n2_text_pad(&w->header, (ALIGNMENT - (SIZE_BYTES + w->header.length) % ALIGNMENT) % ALIGNMENT);
    if (w->header.failed) return N2CE_ENOMEM;
    if (w->header.length <= N2_ST_HEADER_MAX) return N2CE_OK;
    return n2_fail(w->ctx, N2CE_EINVAL,
                   "The names and metadata make a header of %zu bytes, and the format allows %d. "
                   "Use fewer or shorter ones.",
                   w->header.length, N2_ST_HEADER_MAX);
}

static n2ce_status assemble(writer *w, char **out, size_t *out_bytes) {
    size_t bytes = 0;
    if (__builtin_add_overflow(w->data_bytes, SIZE_BYTES + w->header.length, &bytes))
        return n2_fail(w->ctx, N2CE_EINVAL, "The tensors are too large for one file.");
    char *at = *out = n2_realloc(w->ctx, NULL, bytes, 1);
    if (!at) return N2CE_ENOMEM;
    const uint64_t size = w->header.length;
    memcpy(at, &size, SIZE_BYTES);
    memcpy(at + SIZE_BYTES, w->header.data, w->header.length);
    at += SIZE_BYTES + w->header.length;
    for (size_t i = 0; i < w->n; i++) {
        if (w->tensors[i]->bytes > 0) memcpy(at, w->tensors[i]->data, w->tensors[i]->bytes);
        at += w->tensors[i]->bytes;
    }
    *out_bytes = bytes;
    return N2CE_OK;
}

static n2ce_status encode_with(writer *w, char **out, size_t *out_bytes) {
    if (!w->tensors || !w->metadata) return N2CE_ENOMEM;
    N2_TRY(check_input(w));
    N2_TRY(build_header(w));
    return assemble(w, out, out_bytes);
}

n2ce_status n2_st_encode(n2ce_ctx *ctx, const n2_st_tensor *tensors, size_t n,
                         const n2_st_pair *metadata, size_t n_metadata, char **out,
                         size_t *out_bytes) {
    writer w = {.ctx = ctx, .n = n, .n_metadata = n_metadata, .header = n2_text_new(ctx)};
    *out = NULL;
    *out_bytes = 0;
    w.tensors = n2_alloc(ctx, n, sizeof *w.tensors);
    w.metadata = n2_alloc(ctx, n_metadata, sizeof *w.metadata);
    for (size_t i = 0; w.tensors && i < n; i++) w.tensors[i] = &tensors[i];
    for (size_t i = 0; w.metadata && i < n_metadata; i++) w.metadata[i] = metadata[i];
    const n2ce_status status = encode_with(&w, out, out_bytes);
    n2_text_free(&w.header);
    n2_free(ctx, w.tensors);
    n2_free(ctx, w.metadata);
    return status;
}

n2ce_status n2_st_put(n2ce_ctx *ctx, const char *path, const n2_st_tensor *tensors, size_t n,
                      const n2_st_pair *metadata, size_t n_metadata, n2_file_writer *write) {
    char *bytes;
    size_t size;
    N2_TRY(n2_st_encode(ctx, tensors, n, metadata, n_metadata, &bytes, &size));
    const n2ce_status status = write(ctx, path, bytes, size);
    n2_free(ctx, bytes);
    return status;
}

n2ce_status n2_st_write(n2ce_ctx *ctx, const char *path, const n2_st_tensor *tensors, size_t n,
                        const n2_st_pair *metadata, size_t n_metadata) {
    return n2_st_put(ctx, path, tensors, n, metadata, n_metadata, n2_file_write);
}
