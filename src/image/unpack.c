/* gzip and xz, by the libraries that the build found. */
#include "image_formats.h"

#include <string.h>

#ifdef N2CE_ZLIB
#include <zlib.h>
#endif
#ifdef N2CE_LZMA
#include <lzma.h>
#endif

enum { GZIP_MAGIC = 3, XZ_MAGIC = 6, FIRST_ROOM = 1 << 16 };

static bool is_gzip(const n2_image_file *f) {
    return f->n >= GZIP_MAGIC && memcmp(f->bytes, "\x1f\x8b\x08", GZIP_MAGIC) == 0;
}

static bool is_xz(const n2_image_file *f) {
    return f->n >= XZ_MAGIC && memcmp(f->bytes, "\xfd\x37zXZ", XZ_MAGIC) == 0;
}

const char *n2_packing_of(const n2_image_file *f) {
    return is_gzip(f) ? "gzip" : is_xz(f) ? "xz" : NULL;
}

#if defined(N2CE_ZLIB) || defined(N2CE_LZMA)

/* What has been unpacked so far. */
typedef struct growing {
    const n2_image_file *file;
    unsigned char *bytes;
    size_t n, room;
} growing;

/* Room for at least one more byte. */
static n2ce_status grow(growing *g) {
    if (g->n < g->room) return N2CE_OK;
    if (g->room >= N2_UNPACKED_MAX)
        return n2_fail(g->file->ctx, N2CE_EDATA,
                       "%s: it unpacks to more than %zu bytes, which is the limit. Unpack it "
                       "yourself if it can be trusted.",
                       g->file->label, N2_UNPACKED_MAX);
    const size_t room = g->room ? 2 * g->room : FIRST_ROOM;
    unsigned char *bytes = n2_realloc(g->file->ctx, g->bytes, room, 1);
    if (!bytes) return N2CE_ENOMEM;
    g->bytes = bytes;
    g->room = room;
    return N2CE_OK;
}

static n2ce_status damaged(const n2_image_file *f, const char *kind, bool cut) {
    return n2_fail(f->ctx, N2CE_EDATA, "%s: this %s file %s. Fetch or pack it again.", f->label,
                   kind, cut ? "is cut short" : "is damaged");
}

static n2ce_status finish(growing *g, n2ce_status status, unsigned char **bytes, size_t *n) {
    *bytes = g->bytes;
    *n = g->n;
    if (status == N2CE_OK) return N2CE_OK;
    n2_free(g->file->ctx, g->bytes);
    *bytes = NULL;
    return status;
}

#endif

#if !defined(N2CE_ZLIB) || !defined(N2CE_LZMA)

static n2ce_status not_built(const n2_image_file *f, const char *kind, const char *library,
                             const char *package) {
    return n2_fail(f->ctx, N2CE_EDATA,
                   "%s is packed by %s, and this n2ce was built without %s. Unpack it, or install "
                   "the library's headers (Debian: %s) and build n2ce again.",
                   f->label, kind, library, package);
}

#endif

#ifdef N2CE_ZLIB

enum {
    WINDOW_BITS = 15 + 16,
    PIECE = 1 << 30
}; /* 16: gzip's wrapping alone; zlib counts in ints */

static void *zlib_alloc(void *ctx, unsigned n, unsigned size) { return n2_alloc(ctx, n, size); }

static void zlib_free(void *ctx, void *p) { n2_free(ctx, p); }

/* One call of inflate on the next bytes: at most a piece in, at most a piece out. */
static int inflate_some(z_stream *z, growing *g, size_t *used) {
    const size_t left = g->file->n - *used, room = g->room - g->n;
    const unsigned in = left < PIECE ? (unsigned)left : PIECE;
    const unsigned out = room < PIECE ? (unsigned)room : PIECE;
    z->next_in = (z_const Bytef *)(g->file->bytes + *used);
    z->avail_in = in;
    z->next_out = g->bytes + g->n;
    z->avail_out = out;
    const int result = inflate(z, Z_NO_FLUSH);
    *used += in - z->avail_in;
    g->n += out - z->avail_out;
    return result;
}

/* All members: gzip files may be put one after another. */
static n2ce_status inflate_all(z_stream *z, growing *g) {
    for (size_t used = 0;;) {
        N2_TRY(grow(g));
        const int result = inflate_some(z, g, &used);
        if (result == Z_STREAM_END && used == g->file->n) return N2CE_OK;
        if (result == Z_STREAM_END && inflateReset(z) == Z_OK) continue;
        if (result == Z_MEM_ERROR) return N2CE_ENOMEM;
        if (result != Z_OK) return damaged(g->file, "gzip", result == Z_BUF_ERROR);
    }
}

static n2ce_status unpack_gzip(const n2_image_file *f, unsigned char **bytes, size_t *n) {
    growing g = {.file = f};
    z_stream z = {.zalloc = zlib_alloc, .zfree = zlib_free, .opaque = f->ctx};
    if (inflateInit2(&z, WINDOW_BITS) != Z_OK) return N2CE_ENOMEM;
    const n2ce_status status = inflate_all(&z, &g);
    inflateEnd(&z);
    return finish(&g, status, bytes, n);
}

#else

static n2ce_status unpack_gzip(const n2_image_file *f, unsigned char **bytes, size_t *n) {
    *bytes = NULL;
    *n = 0;
    return not_built(f, "gzip", "zlib", "zlib1g-dev");
}

#endif

#ifdef N2CE_LZMA

#define XZ_MEMORY_MAX ((uint64_t)1 << 28) /* of the decoder; xz -9 needs a quarter of it */

static void *lzma_alloc_hook(void *ctx, size_t n, size_t size) { return n2_alloc(ctx, n, size); }

static void lzma_free_hook(void *ctx, void *p) { n2_free(ctx, p); }

static n2ce_status decode_all(lzma_stream *z, growing *g) {
    z->next_in = g->file->bytes;
    z->avail_in = g->file->n;
    for (;;) {
        N2_TRY(grow(g));
        z->next_out = g->bytes + g->n;
        z->avail_out = g->room - g->n;
        const lzma_ret result = lzma_code(z, LZMA_FINISH);
        g->n = g->room - z->avail_out;
        if (result == LZMA_STREAM_END) return N2CE_OK;
        if (result == LZMA_MEM_ERROR) return N2CE_ENOMEM;
        if (result == LZMA_MEMLIMIT_ERROR)
            return n2_fail(g->file->ctx, N2CE_EDATA,
                           "%s: unpacking this xz file needs more than %zu MiB. Pack it again with "
                           "a smaller dictionary.",
                           g->file->label, (size_t)(XZ_MEMORY_MAX >> 20));
        if (result != LZMA_OK) return damaged(g->file, "xz", result == LZMA_BUF_ERROR);
    }
}

static n2ce_status unpack_xz(const n2_image_file *f, unsigned char **bytes, size_t *n) {
    growing g = {.file = f};
    const lzma_allocator memory = {lzma_alloc_hook, lzma_free_hook, f->ctx};
    lzma_stream z = LZMA_STREAM_INIT;
    z.allocator = &memory;
    n2ce_status status = N2CE_ENOMEM;
    if (lzma_stream_decoder(&z, XZ_MEMORY_MAX, LZMA_CONCATENATED) == LZMA_OK)
        status = decode_all(&z, &g);
    lzma_end(&z);
    return finish(&g, status, bytes, n);
}

#else

static n2ce_status unpack_xz(const n2_image_file *f, unsigned char **bytes, size_t *n) {
    *bytes = NULL;
    *n = 0;
    return not_built(f, "xz", "liblzma", "liblzma-dev");
}

#endif

n2ce_status n2_unpack(const n2_image_file *f, unsigned char **bytes, size_t *n) {
    return is_gzip(f) ? unpack_gzip(f, bytes, n) : unpack_xz(f, bytes, n);
}
