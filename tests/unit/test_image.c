/* Facts about files of pictures: what is written is read back, every format gives the pixels that
 * it holds, and files that are damaged, cut short or no pictures are refused with a sentence. */
#include "../fuzz/known_images.h"
#include "failing_alloc.h"
#include "tables.h"

#include "image/image.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

/* Written by other programs. */
static const unsigned char deep_png[] = {
    0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0x00, 0x00, 0x00, 0x0d, 0x49, 0x48,
    0x44, 0x52, 0x00, 0x00, 0x00, 0x02, 0x00, 0x00, 0x00, 0x01, 0x10, 0x06, 0x00, 0x00,
    0x00, 0xa4, 0xb2, 0xa3, 0xc9, 0x00, 0x00, 0x00, 0x19, 0x49, 0x44, 0x41, 0x54, 0x78,
    0xda, 0x63, 0xf8, 0xff, 0xbf, 0xa1, 0x81, 0x81, 0x41, 0xc8, 0x84, 0x91, 0x91, 0x89,
    0x89, 0x99, 0x99, 0x81, 0x01, 0x00, 0x2f, 0x34, 0x03, 0x51, 0xd5, 0x2c, 0x96, 0x7e,
    0x00, 0x00, 0x00, 0x00, 0x49, 0x45, 0x4e, 0x44, 0xae, 0x42, 0x60, 0x82};
static const unsigned char bomb_png[] = {
    0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0x00, 0x00, 0x00, 0x0d, 0x49, 0x48,
    0x44, 0x52, 0x00, 0x08, 0x00, 0x00, 0x00, 0x08, 0x00, 0x00, 0x08, 0x02, 0x00, 0x00,
    0x00, 0x61, 0x00, 0x86, 0x0e, 0x00, 0x00, 0x00, 0x0c, 0x49, 0x44, 0x41, 0x54, 0x78,
    0xda, 0x63, 0x60, 0xa0, 0x0c, 0x00, 0x00, 0x00, 0x40, 0x00, 0x01, 0x89, 0xc9, 0xaf,
    0x43, 0x00, 0x00, 0x00, 0x00, 0x49, 0x45, 0x4e, 0x44, 0xae, 0x42, 0x60, 0x82};

static const unsigned char idx_labels[] = {0, 0, 8, 1, 0, 0, 0, 2, 7, 9};

static n2_images *parse(n2ce_ctx *ctx, const void *bytes, size_t n) {
    n2_images *images;
    assert_ok(ctx, n2_images_parse(ctx, "a file", bytes, n, &images));
    return images;
}

static void assert_size(const n2_images *p, size_t n, size_t height, size_t width,
                        size_t channels) {
    assert_int_equal(p->n, n);
    assert_int_equal(p->height, height);
    assert_int_equal(p->width, width);
    assert_int_equal(p->channels, channels);
}

static void assert_no_picture(n2ce_ctx *ctx, const void *bytes, size_t n, const char *fragment) {
    n2_images *images = (n2_images *)1;
    assert_int_equal(n2_images_parse(ctx, "a file", bytes, n, &images), N2CE_EDATA);
    assert_null(images);
    assert_message(ctx, "a file");
    assert_message(ctx, fragment);
}

/* Every shorter file is refused. The bytes are copied, for sanitizers to see the end. */
static void assert_refused_if_cut(n2ce_ctx *ctx, const unsigned char *bytes, size_t n) {
    for (size_t cut = 0; cut < n; cut++) {
        unsigned char *part = malloc(cut + 1);
        assert_non_null(part);
        memcpy(part + 1, bytes, cut);
        assert_no_picture(ctx, part + 1, cut, "");
        free(part);
    }
}

static n2_images *noise(n2ce_ctx *ctx, size_t n, size_t height, size_t width, size_t channels) {
    n2_images *p;
    uint32_t state = 1;
    assert_ok(ctx, n2_images_new(ctx, n, height, width, channels, &p));
    for (size_t i = 0; i < n * height * width * channels; i++)
        p->pixels[i] = (unsigned char)((state = state * 1664525u + 1013904223u) >> 24);
    return p;
}

#ifdef N2CE_PNG

static void what_is_written_as_png_is_read_back(void **state) {
    const fixture *f = *state;
    static const size_t sizes[][3] = {{1, 1, 1}, {1, 1, 3}, {7, 5, 1},    {5, 7, 3},
                                      {1, 9, 3}, {9, 1, 1}, {65, 130, 3}, {28, 28, 1}};
    for (size_t k = 0; k < COUNT_OF(sizes); k++) {
        const size_t *s = sizes[k], bytes = s[0] * s[1] * s[2];
        n2_images *p = noise(f->ctx, 3, s[0], s[1], s[2]), *again;
        assert_ok(f->ctx, n2_images_write_png(p, 1, f->path, n2_file_write));
        assert_ok(f->ctx, n2_images_read(f->ctx, f->path, &again));
        assert_size(again, 1, s[0], s[1], s[2]);
        assert_memory_equal(again->pixels, p->pixels + bytes, bytes);
        assert_null(again->labels);
        assert_int_equal(n2_images_write_png(p, 3, f->path, n2_file_write), N2CE_EINVAL);
        n2_images_free(again);
        n2_images_free(p);
    }
}

static void kinds_of_png_become_grey_or_rgb(void **state) {
    n2ce_ctx *ctx = ((const fixture *)*state)->ctx;
    n2_images *p = parse(ctx, palette_png, sizeof palette_png);
    assert_size(p, 1, 1, 3, 3);
    assert_memory_equal(p->pixels, "\xfa\xfb\xfc\x01\x02\x03\xfa\xfb\xfc", 9);
    n2_images_free(p);
    p = parse(ctx, deep_png, sizeof deep_png);
    assert_size(p, 1, 1, 2, 3);
    assert_memory_equal(p->pixels, "\xff\x80\x00\x01\x02\x03", 6);
    n2_images_free(p);
    p = parse(ctx, interlaced_png, sizeof interlaced_png);
    assert_size(p, 1, 2, 2, 1);
    assert_memory_equal(p->pixels, "\x0a\x14\x1e\x28", 4);
    n2_images_free(p);
}

static void a_damaged_png_is_refused(void **state) {
    n2ce_ctx *ctx = ((const fixture *)*state)->ctx;
    assert_refused_if_cut(ctx, palette_png, sizeof palette_png);
    assert_refused_if_cut(ctx, interlaced_png, sizeof interlaced_png);
    assert_no_picture(ctx, bomb_png, sizeof bomb_png, "can hold");
    unsigned char bytes[sizeof deep_png + 1];
    memcpy(bytes, deep_png, sizeof deep_png);
    bytes[sizeof deep_png] = 0;
    assert_no_picture(ctx, bytes, sizeof bytes, "1 bytes follow");
    bytes[45] ^= 1; /* inside IDAT */
    assert_no_picture(ctx, bytes, sizeof deep_png, "libpng");
}

static void remove_in(const fixture *f, const char *name) {
    char path[256];
    snprintf(path, sizeof path, "%s/%s", f->folder, name);
    assert_int_equal(unlink(path), 0);
}

static void write_in(const fixture *f, const char *name, const n2_images *p, size_t i) {
    char path[256];
    snprintf(path, sizeof path, "%s/%s", f->folder, name);
    assert_ok(f->ctx, n2_images_write_png(p, i, path, n2_file_write));
}

static void a_folder_is_read_in_the_order_of_names(void **state) {
    const fixture *f = *state;
    n2_images *p = noise(f->ctx, 3, 4, 5, 3), *other = noise(f->ctx, 1, 4, 6, 3), *all;
    assert_int_equal(n2_images_read(f->ctx, f->folder, &all), N2CE_EDATA);
    assert_message(f->ctx, "no file *.png");
    write_in(f, "b.png", p, 1);
    write_in(f, "c.PNG", p, 2);
    write_in(f, "a.png", p, 0);
    write_text(f->path, "x,y\n1,2\n"); /* not a picture, and not asked for */
    assert_ok(f->ctx, n2_images_read(f->ctx, f->folder, &all));
    assert_size(all, 3, 4, 5, 3);
    assert_memory_equal(all->pixels, p->pixels, 3 * 4 * 5 * 3);
    n2_images_free(all);
    write_in(f, "d.png", other, 0);
    assert_int_equal(n2_images_read(f->ctx, f->folder, &all), N2CE_EDATA);
    assert_null(all);
    assert_message(f->ctx, "d.png is 4 x 6 with 3 channels, and a.png");
    for (const char *const *name = (const char *const[]){"a.png", "b.png", "c.PNG", "d.png", NULL};
         *name; name++)
        remove_in(f, *name);
    n2_images_free(other);
    n2_images_free(p);
}

static void a_contact_sheet_shows_each_picture_once(void **state) {
    const fixture *f = *state;
    enum { H = 3, W = 4, C = 3, GAP = N2_SHEET_GAP };
    n2_images *p = noise(f->ctx, 5, H, W, C), *sheet;
    assert_ok(f->ctx,
              n2_images_write_sheet(p, 0, 0, f->path, n2_file_write)); /* 3 columns, 2 rows */
    assert_ok(f->ctx, n2_images_read(f->ctx, f->path, &sheet));
    assert_size(sheet, 1, GAP + 2 * (H + GAP), GAP + 3 * (W + GAP), C);
    for (size_t y = 0; y < sheet->height; y++)
        for (size_t x = 0; x < sheet->width; x++) {
            const size_t row = y / (H + GAP), col = x / (W + GAP), i = 3 * row + col;
            const size_t v = y % (H + GAP), u = x % (W + GAP);
            const unsigned char *at = sheet->pixels + (y * sheet->width + x) * C;
            if (u >= GAP && v >= GAP && i < 5)
                assert_memory_equal(at, p->pixels + ((i * H + v - GAP) * W + u - GAP) * C, C);
            else
                assert_memory_equal(at, "\xff\xff\xff", C);
        }
    n2_images_free(sheet);
    assert_ok(f->ctx, n2_images_write_sheet(p, 2, 9, f->path, n2_file_write));
    assert_ok(f->ctx, n2_images_read(f->ctx, f->path, &sheet));
    assert_size(sheet, 1, GAP + H + GAP, GAP + 2 * (W + GAP), C);
    n2_images_free(sheet);
    assert_int_equal(n2_images_write_sheet(p, 6, 0, f->path, n2_file_write), N2CE_EINVAL);
    n2_images_free(p);
}

static void a_sheet_in_memory_is_the_one_in_the_file(void **state) {
    const fixture *f = *state;
    n2_images *p = noise(f->ctx, 5, 6, 4, 3), *some, *sheet, *again;
    n2_text png = n2_text_new(f->ctx);
    const size_t numbers[] = {4, 0, 4};
    assert_ok(f->ctx, n2_images_pick(p, numbers, 3, &some));
    for (size_t i = 0; i < 3; i++)
        assert_memory_equal(some->pixels + i * 72, p->pixels + numbers[i] * 72, 72);
    assert_ok(f->ctx, n2_images_write_sheet(some, 0, 2, f->path, n2_file_write));
    assert_ok(f->ctx, n2_images_sheet_bytes(some, 0, 2, &png));
    assert_ok(f->ctx, n2_images_read(f->ctx, f->path, &sheet));
    assert_ok(f->ctx, n2_images_parse(f->ctx, "memory", png.data, png.length, &again));
    assert_size(again, 1, sheet->height, sheet->width, 3);
    assert_memory_equal(again->pixels, sheet->pixels, sheet->height * sheet->width * 3);
    n2_images_free(again);
    n2_images_free(sheet);
    n2_images_free(some);
    n2_images_free(p);
    n2_text_free(&png);
}

/* A full disk, played by a limit on file sizes: the old sheet stays as it was. */
static void a_sheet_that_cannot_be_written_leaves_the_old_one(void **state) {
    const fixture *f = *state;
    n2_images *p = noise(f->ctx, 9, 40, 40, 3), *old;
    struct rlimit before;
    assert_ok(f->ctx, n2_images_write_sheet(p, 1, 0, f->path, n2_file_write));
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    struct rlimit small = before;
    small.rlim_cur = 1000;
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &small);
    const n2ce_status status = n2_images_write_sheet(p, 0, 0, f->path, n2_file_write);
    setrlimit(RLIMIT_FSIZE, &before);
    signal(SIGXFSZ, handler);
    assert_int_equal(status, N2CE_EIO);
    assert_ok(f->ctx, n2_images_read(f->ctx, f->path, &old));
    assert_size(old, 1, 40 + 2 * N2_SHEET_GAP, 40 + 2 * N2_SHEET_GAP, 3);
    n2_images_free(old);
    n2_images_free(p);
}

#else

static void without_libpng_a_png_is_refused_with_a_sentence(void **state) {
    const fixture *f = *state;
    n2_images *p = noise(f->ctx, 1, 2, 2, 1);
    assert_no_picture(f->ctx, palette_png, sizeof palette_png, "built without libpng");
    assert_no_picture(f->ctx, deep_png, sizeof deep_png, "built without libpng");
    assert_no_picture(f->ctx, bomb_png, sizeof bomb_png, "built without libpng");
    assert_no_picture(f->ctx, interlaced_png, sizeof interlaced_png, "built without libpng");
    assert_int_equal(n2_images_write_png(p, 0, f->path, n2_file_write), N2CE_EINVAL);
    assert_int_equal(access(f->path, F_OK), -1);
    n2_images_free(p);
}

#endif

static void the_format_and_the_packing_are_told(void **state) {
    const fixture *f = *state;
    n2_images *p = parse(f->ctx, idx, sizeof idx);
    assert_string_equal(p->format, "IDX");
    assert_null(p->packed);
    n2_images_free(p);
#ifdef N2CE_ZLIB
    p = parse(f->ctx, idx_gz, sizeof idx_gz);
    assert_string_equal(p->format, "IDX");
    assert_string_equal(p->packed, "gzip");
    n2_images_free(p);
#endif
}

static void idx_is_read_with_its_labels(void **state) {
    const fixture *f = *state;
    n2_images *p = parse(f->ctx, idx, sizeof idx);
    assert_size(p, 2, 2, 3, 1);
    assert_memory_equal(p->pixels, idx + 16, 12);
    assert_null(p->labels);
    write_bytes(f->path, idx_labels, sizeof idx_labels);
    assert_ok(f->ctx, n2_images_read_labels(p, f->path));
    assert_memory_equal(p->labels, "\x07\x09", 2);
    p->n = 3;
    assert_int_equal(n2_images_read_labels(p, f->path), N2CE_EDATA);
    assert_message(f->ctx, "2 labels, and there are 3 pictures");
    assert_memory_equal(p->labels, "\x07\x09", 2);
    write_bytes(f->path, idx, sizeof idx);
    assert_int_equal(n2_images_read_labels(p, f->path), N2CE_EDATA);
    n2_images_free(p);
    assert_no_picture(f->ctx, idx_labels, sizeof idx_labels, "IDX file of labels");
    assert_refused_if_cut(f->ctx, idx, sizeof idx);
}

static void sizes_that_overflow_are_refused(void **state) {
    n2ce_ctx *ctx = ((const fixture *)*state)->ctx;
    unsigned char bytes[28];
    n2_images *p;
    memcpy(bytes, idx, sizeof bytes);
    memset(bytes + 4, 0xff, 12);
    assert_no_picture(ctx, bytes, sizeof bytes, "4294967295 x 4294967295");
    memset(bytes + 4, 0, 12);
    assert_no_picture(ctx, bytes, 16, "at least one");
    assert_int_equal(n2_images_new(ctx, SIZE_MAX / 2, 3, 1, 1, &p), N2CE_EINVAL);
    assert_int_equal(n2_images_new(ctx, 1, 1, 1, 2, &p), N2CE_EINVAL);
    assert_int_equal(n2_images_new(ctx, 0, 1, 1, 1, &p), N2CE_EINVAL);
}

static void packed_files_are_read(void **state) {
    n2ce_ctx *ctx = ((const fixture *)*state)->ctx;
    const struct {
        const unsigned char *bytes;
        size_t n;
        bool built;
    } files[] = {
#ifdef N2CE_ZLIB
        {idx_gz, sizeof idx_gz, true},
#else
        {idx_gz, sizeof idx_gz, false},
#endif
#ifdef N2CE_LZMA
        {idx_xz, sizeof idx_xz, true},
#else
        {idx_xz, sizeof idx_xz, false},
#endif
    };
    for (size_t k = 0; k < COUNT_OF(files); k++) {
        if (!files[k].built) {
            assert_no_picture(ctx, files[k].bytes, files[k].n, "built without");
            continue;
        }
        unsigned char edited[256];
        n2_images *p = parse(ctx, files[k].bytes, files[k].n);
        assert_size(p, 2, 2, 3, 1);
        assert_memory_equal(p->pixels, idx + 16, 12);
        n2_images_free(p);
        assert_refused_if_cut(ctx, files[k].bytes, files[k].n);
        memcpy(edited, files[k].bytes, files[k].n);
        edited[files[k].n / 2] ^= 0x55;
        assert_no_picture(ctx, edited, files[k].n, "");
        memcpy(edited, files[k].bytes, files[k].n);
        memset(edited + files[k].n, 'x', 12);
        assert_no_picture(ctx, edited, files[k].n + 12, "is damaged");
    }
}

static void cifar_batches_become_pixels_and_labels(void **state) {
    n2ce_ctx *ctx = ((const fixture *)*state)->ctx;
    static unsigned char bytes[2 * 3073];
    for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (unsigned char)(i * 7 + i / 1024);
    bytes[0] = 3;
    bytes[3073] = 9;
    n2_images *p = parse(ctx, bytes, sizeof bytes);
    assert_size(p, 2, 32, 32, 3);
    assert_memory_equal(p->labels, "\x03\x09", 2);
    for (size_t i = 0; i < 2; i++)
        for (size_t k = 0; k < 1024; k++)
            for (size_t c = 0; c < 3; c++)
                assert_int_equal(p->pixels[(i * 1024 + k) * 3 + c],
                                 bytes[3073 * i + 1 + 1024 * c + k]);
    n2_images_free(p);
    assert_no_picture(ctx, bytes, sizeof bytes - 1, "no CIFAR-10 batch");
    bytes[3073] = 10;
    assert_no_picture(ctx, bytes, sizeof bytes, "no CIFAR-10 batch");
    memcpy(bytes, "\0\0\x08\x03", 4); /* begins as IDX does, and is as long as batches are */
    bytes[3073] = 1;
    p = parse(ctx, bytes, sizeof bytes);
    assert_size(p, 2, 32, 32, 3);
    n2_images_free(p);
}

/* Labels of several files follow one another; beside a file that has none they are lost. */
static void a_list_keeps_labels_that_all_have(void **state) {
    const fixture *f = *state;
    static unsigned char bytes[3073];
    char list[1024], other[512];
    n2_images *p;
    bytes[0] = 4;
    write_bytes(f->path, bytes, sizeof bytes);
    snprintf(list, sizeof list, "%s,%s", f->path, f->path);
    assert_ok(f->ctx, n2_images_read_list(f->ctx, list, &p));
    assert_size(p, 2, 32, 32, 3);
    assert_memory_equal(p->labels, "\x04\x04", 2);
    snprintf(other, sizeof other, "%s.npy", f->path);
    assert_ok(f->ctx, n2_images_write_npy(p, other, true));
    n2_images_free(p);
    snprintf(list, sizeof list, "%s,%s", f->path, other);
    assert_ok(f->ctx, n2_images_read_list(f->ctx, list, &p));
    assert_size(p, 3, 32, 32, 3);
    assert_null(p->labels);
    n2_images_free(p);
    unlink(other);
}

/* Means of 2 x 2 pixels, rounded, channel by channel. */
static void halved_pictures_are_means(void **state) {
    const fixture *f = *state;
    static const unsigned char pixels[] = {0, 1, 2,  255, 1, 0, /* row 0 */
                                           4, 5, 10, 254, 0, 0, /* row 1 */
                                           9, 9, 9,  9,   9, 9, /* another picture */
                                           9, 9, 9,  9,   9, 11};
    n2_images *p;
    assert_ok(f->ctx, n2_images_new(f->ctx, 2, 2, 2, 3, &p));
    memcpy(p->pixels, pixels, sizeof pixels);
    assert_ok(f->ctx, n2_images_halve(p));
    assert_size(p, 2, 1, 1, 3);
    assert_memory_equal(p->pixels, "\x80\x02\x03\x09\x09\x0a", 6);
    assert_int_equal(n2_images_halve(p), N2CE_EDATA);
    assert_message(f->ctx, "odd");
    n2_images_free(p);
}

static void arrays_of_either_order_are_read(void **state) {
    n2ce_ctx *ctx = ((const fixture *)*state)->ctx;
    static const struct {
        const char *header;
        size_t sizes[4];
        const char *expected;
    } cases[] = {
        {HEADER("|u1", "False", "(1, 2, 2, 3)"), {1, 2, 2, 3}, "abcdefghijkl"},
        {HEADER("|u1", "False", "(1, 3, 2, 2)"), {1, 2, 2, 3}, "aeibfjcgkdhl"},
        {HEADER("|u1", "False", "(2, 1, 3, 2)"), {2, 3, 2, 1}, "abcdefghijkl"},
        {HEADER("|u1", "False", "(2, 3, 2)"), {2, 3, 2, 1}, "abcdefghijkl"},
    };
    unsigned char bytes[256];
    for (size_t k = 0; k < COUNT_OF(cases); k++) {
        const size_t *s = cases[k].sizes;
        n2_images *p = parse(ctx, bytes, make_npy(bytes, 1, cases[k].header, "abcdefghijkl", 12));
        assert_size(p, s[0], s[1], s[2], s[3]);
        assert_memory_equal(p->pixels, cases[k].expected, 12);
        n2_images_free(p);
    }
    assert_refused_if_cut(ctx, bytes, make_npy(bytes, 1, cases[0].header, "abcdefghijkl", 12));
    static const char *const refused[][2] = {
        {HEADER("<f4", "False", "(1, 1, 3, 1)"), "unsigned bytes"},
        {HEADER("|u1", "True", "(1, 2, 2, 3)"), "Fortran"},
        {HEADER("|u1", "False", "(1, 1, 2, 2, 3)"), "four dimensions"},
        {HEADER("|u1", "False", "(4, 3)"), "2 dimensions"},
        {HEADER("|u1", "False", "(1, 2, 3, 2)"), "2 channels"},
        {HEADER("|u1", "False", "(1, 2, 2, 9)"), "12 bytes follow"},
        {HEADER("|u1", "False", "(4294967296, 4294967296, 4294967296)"), "12 bytes follow"},
    };
    for (size_t k = 0; k < COUNT_OF(refused); k++)
        assert_no_picture(ctx, bytes, make_npy(bytes, 1, refused[k][0], "abcdefghijkl", 12),
                          refused[k][1]);
}

static void what_is_no_picture_is_refused(void **state) {
    const fixture *f = *state;
    n2_images *p;
    assert_no_picture(f->ctx, "", 0, "empty");
    assert_no_picture(f->ctx, "GIF89a-and-more", 15, "begin with \"GIF89a-a\"");
    assert_no_picture(f->ctx, "\0\0\x0d\x03............", 16, "type 13");
    assert_int_equal(n2_images_read(f->ctx, f->path, &p), N2CE_EIO);
    assert_null(p);
    write_text(f->path, "");
    assert_int_equal(n2_images_read(f->ctx, f->path, &p), N2CE_EDATA);
}

/* One life of everything on this allocator. */
static n2ce_status whole_life(failing_alloc *memory, const char *path) {
    static const struct {
        const unsigned char *bytes;
        size_t n;
    } files[] = {{idx, sizeof idx},
                 {idx_gz, sizeof idx_gz},
                 {idx_xz, sizeof idx_xz},
                 {interlaced_png, sizeof interlaced_png},
                 {palette_png, sizeof palette_png}};
    const n2ce_ctx_options options = failing_alloc_options(memory, 1);
    n2ce_ctx *ctx;
    n2ce_status status = n2ce_ctx_new(&ctx, &options);
    for (size_t k = 0; status == N2CE_OK && k < COUNT_OF(files); k++) {
        n2_images *p;
        status = n2_images_parse(ctx, "a file", files[k].bytes, files[k].n, &p);
        assert_true((status == N2CE_OK) == (p != NULL));
        if (status == N2CE_EDATA && strstr(n2ce_errmsg(ctx), "built without")) status = N2CE_OK;
        if (p && k == 0) status = n2_images_write_sheet(p, 0, 0, path, n2_file_write);
        if (status == N2CE_EINVAL && strstr(n2ce_errmsg(ctx), "built without")) status = N2CE_OK;
        n2_images_free(p);
    }
    n2ce_ctx_free(ctx);
    return status;
}

static void no_allocation_that_fails_leaks_or_crashes(void **state) {
    const fixture *f = *state;
    size_t n = 0, failures = 0;
    for (bool done = false; !done; n++) {
        failing_alloc memory = failing_alloc_new(n, n % 2);
        const n2ce_status status = whole_life(&memory, f->path);
        assert_true(status == N2CE_OK || status == N2CE_ENOMEM);
        assert_int_equal(memory.live, 0);
        failures += status == N2CE_ENOMEM;
        done = memory.calls <= n;
    }
    assert_true(failures > 4);
}

/* The data sets themselves, where they are: N2CE_DATA names the folder. */
static bool data_path(char path[256], const char *name) {
    const char *folder = getenv("N2CE_DATA");
    if (folder) snprintf(path, 256, "%s/images/%s", folder, name);
    if (folder && access(path, R_OK) == 0) return true;
    print_message("%s is not read: N2CE_DATA does not say where images/%s is.\n", name, name);
    return false;
}

static double mean(const n2_images *p) {
    const size_t n = p->n * p->height * p->width * p->channels;
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += p->pixels[i];
    return sum / (double)n;
}

static void mnist_is_read(void **state) {
    const fixture *f = *state;
    char images[256], labels[256];
    n2_images *p;
    if (!data_path(images, "mnist/train-images-idx3-ubyte.gz") ||
        !data_path(labels, "mnist/train-labels-idx1-ubyte.gz"))
        skip();
    assert_ok(f->ctx, n2_images_read(f->ctx, images, &p));
    assert_ok(f->ctx, n2_images_read_labels(p, labels));
    assert_size(p, 60000, 28, 28, 1);
    assert_memory_equal(p->labels, "\5\0\4\1\x09\2\1\3\1\4", 10);
    assert_close(mean(p) / 255, 0.1306604762738429, 1e-12, 0);
    n2_images_free(p);
}

static void cifar10_is_read(void **state) {
    const fixture *f = *state;
    char path[256];
    n2_images *p;
    size_t count[10] = {0};
    if (!data_path(path, "cifar10/test_batch.bin.xz")) skip();
    assert_ok(f->ctx, n2_images_read(f->ctx, path, &p));
    assert_size(p, 10000, 32, 32, 3);
    for (size_t i = 0; i < p->n; i++) count[p->labels[i]]++;
    for (size_t k = 0; k < 10; k++) assert_int_equal(count[k], 1000);
    assert_memory_equal(p->labels, "\3\x08\x08\0\6\6\1\6\3\1", 10);
    n2_images_free(p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
#ifdef N2CE_PNG
        TEST(what_is_written_as_png_is_read_back),
        TEST(kinds_of_png_become_grey_or_rgb),
        TEST(a_damaged_png_is_refused),
        TEST(a_folder_is_read_in_the_order_of_names),
        TEST(a_contact_sheet_shows_each_picture_once),
        TEST(a_sheet_in_memory_is_the_one_in_the_file),
        TEST(a_sheet_that_cannot_be_written_leaves_the_old_one),
#else
        TEST(without_libpng_a_png_is_refused_with_a_sentence),
#endif
        TEST(the_format_and_the_packing_are_told),
        TEST(idx_is_read_with_its_labels),
        TEST(sizes_that_overflow_are_refused),
        TEST(packed_files_are_read),
        TEST(cifar_batches_become_pixels_and_labels),
        TEST(a_list_keeps_labels_that_all_have),
        TEST(halved_pictures_are_means),
        TEST(arrays_of_either_order_are_read),
        TEST(what_is_no_picture_is_refused),
        TEST(no_allocation_that_fails_leaks_or_crashes),
        TEST(mnist_is_read),
        TEST(cifar10_is_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
