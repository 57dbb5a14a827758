/* Arrays as NPY files. */
#include "file.h"
#include "npy.h"

/* Magic number, version 1.0, and the header, padded so that the elements begin at a multiple of 64
 * bytes. */
static void add_header(n2_text *text, const char *type, const size_t *dims, size_t rank) {
    enum { ALIGNMENT = 64, FIXED = 10 };
    n2_text_add_raw(text, "\x93NUMPY\x01\x00\x00\x00", FIXED);
    n2_text_add(text, "{'descr': '%s', 'fortran_order': False, 'shape': (", type);
    for (size_t i = 0; i < rank; i++) n2_text_add(text, i ? " %zu," : "%zu,", dims[i]);
    if (rank > 1 && !text->failed) text->length--; /* (3, 4), but (3,) */
    n2_text_add(text, "), }");
    n2_text_pad(text, ALIGNMENT - 1 - text->length % ALIGNMENT);
    n2_text_add_raw(text, "\n", 1);
    if (text->failed) return;
    text->data[FIXED - 2] = (char)((text->length - FIXED) & 0xff);
    text->data[FIXED - 1] = (char)((text->length - FIXED) >> 8);
}

static n2ce_status write_array(n2ce_ctx *ctx, const char *path, const n2_text *header,
                               const void *x, size_t bytes, bool replace) {
    n2_new_file file;
    if (header->failed) return N2CE_ENOMEM;
    N2_TRY(n2_new_file_begin(ctx, path, &file));
    file.keep = !replace;
    n2_new_file_add(&file, header->data, header->length);
    if (bytes > 0) n2_new_file_add(&file, x, bytes);
    return n2_new_file_end(&file, N2CE_OK);
}

n2ce_status n2_npy_write(n2ce_ctx *ctx, const char *path, const double *x, size_t n, bool replace) {
    n2_text header = n2_text_new(ctx);
    add_header(&header, "<f8", &n, 1);
    const n2ce_status status = write_array(ctx, path, &header, x, n * sizeof *x, replace);
    n2_text_free(&header);
    return status;
}

n2ce_status n2_npy_write_bytes(n2ce_ctx *ctx, const char *path, const n2_npy_bytes *array,
                               bool replace) {
    n2_text header = n2_text_new(ctx);
    add_header(&header, "|u1", array->dims, array->rank);
    const n2ce_status status = write_array(ctx, path, &header, array->bytes, array->n, replace);
    n2_text_free(&header);
    return status;
}
