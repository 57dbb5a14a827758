#include "csv_writer.h"

#include "base/pool.h"
#include "file.h"

#include <string.h>

/* Numbers an item formats, and items whose texts, 8 MiB or less, are written together. */
enum { BLOCK = 4096, BLOCKS = 64 };

typedef struct formatting {
    const double *x;
    size_t n, cols, first; /* numbers in all, and the first one of these blocks */
    char *texts;
    size_t length[BLOCKS];
} formatting;

static char *text_of(const formatting *f, size_t block) {
    return f->texts + block * BLOCK * N2_NUMBER_ROOM;
}

static void format_block(void *arg, size_t item, int worker) {
    (void)worker;
    formatting *f = arg;
    const size_t first = f->first + item * BLOCK;
    const size_t end = f->n - first < BLOCK ? f->n : first + BLOCK;
    char *const start = text_of(f, item), *out = start;
    for (size_t i = first; i < end; i++) {
        out += n2_put_number(f->x[i], out);
        *out++ = (i + 1) % f->cols ? ',' : '\n';
    }
    f->length[item] = (size_t)(out - start);
}

static n2ce_status add_numbers(n2ce_ctx *ctx, n2_new_file *file, formatting *f) {
    for (; f->first < f->n; f->first += BLOCKS * BLOCK) {
        const size_t left = (f->n - f->first + BLOCK - 1) / BLOCK;
        const size_t blocks = left < BLOCKS ? left : BLOCKS;
        N2_TRY(n2_parallel_for(ctx, blocks, format_block, f));
        for (size_t i = 0; i < blocks; i++) n2_new_file_add(file, text_of(f, i), f->length[i]);
    }
    return N2CE_OK;
}

n2ce_status n2_csv_write(n2ce_ctx *ctx, const char *path, const char *header, const double *x,
                         size_t rows, size_t cols, bool replace) {
    formatting f = {.x = x, .n = rows * cols, .cols = cols};
    n2_new_file file;
    N2_TRY(n2_new_file_begin(ctx, path, &file));
    file.keep = !replace;
    n2_new_file_add(&file, header, strlen(header));
    f.texts = n2_realloc(ctx, NULL, BLOCKS * BLOCK, N2_NUMBER_ROOM);
    const n2ce_status status = f.texts ? add_numbers(ctx, &file, &f) : N2CE_ENOMEM;
    n2_free(ctx, f.texts);
    return n2_new_file_end(&file, status);
}
