/* TFBind8 and TFBind10: DNA sequences that bind to a protein; the oracle is a table of all of
 * them. Levels 0..3 are a, c, g, t; a sequence's number has its first base as the largest digit.
 *
 * TFBind8 (SIX6_REF_R1): 65,792 rows, offline those up to the median. TFBind10 (Pho4): 10,000 of
 * the 4,161,482 measurements up to the median, drawn beforehand, a file a draw; measurements of
 * one sequence differ, and the oracle's is one of them. `setting` is the length. */
#include "design_space.h"
#include "design_task.h"
#include "io/file.h"
#include "io/table.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

enum { ROWS_8 = 65792, SEQUENCES_10 = 1048576, BASES = 4, DRAWS = 5 };

typedef struct tfbind {
    double *x, *y; /* all rows of TFBind8 */
    double *value; /* of every sequence */
    char folder[PATH_MAX];
} tfbind;

static size_t sequence_number(const double *x, size_t length) {
    size_t code = 0;
    for (size_t i = 0; i < length; i++) code = code * BASES + (size_t)x[i];
    return code;
}

static n2ce_status score(const n2_design_bench *b, const double *x, size_t rows, double *y) {
    const tfbind *t = b->data;
    const size_t length = (size_t)b->task->setting;
    for (size_t i = 0; i < rows; i++) y[i] = t->value[sequence_number(x + i * length, length)];
    return N2CE_OK;
}

static tfbind *new_data(n2_design_bench *b) {
    return b->data = n2_arena_alloc(&b->always, 1, sizeof(tfbind));
}

static n2ce_status set_space(n2_design_bench *b) {
    b->offline.space =
        n2_space_of(&b->by_seed, (size_t)b->task->setting, (n2_factor){N2_CATEGORY, 0, 0, BASES});
    return b->offline.space.factor ? N2CE_OK : N2CE_ENOMEM;
}

/* ---- eight bases ----------------------------------------------------------------------------- */

static n2ce_status check_bases(n2ce_ctx *ctx, const double *x) {
    for (size_t i = 0; i < (size_t)ROWS_8 * 8; i++)
        if (!(x[i] == 0 || x[i] == 1 || x[i] == 2 || x[i] == 3))
            return n2_fail(ctx, N2CE_EDATA,
                           "tfbind8/x.npy, row %zu: %g is not a base, which is 0, 1, 2 or 3.",
                           i / 8, x[i]);
    return N2CE_OK;
}

static n2ce_status open_8(n2_design_bench *b, const char *folder) {
    tfbind *t = new_data(b);
    if (!t) return N2CE_ENOMEM;
    N2_TRY(n2_design_read(b->ctx, folder, "x.npy", ROWS_8, 8, &b->always, &t->x));
    N2_TRY(n2_design_read(b->ctx, folder, "y.npy", ROWS_8, 1, &b->always, &t->y));
    N2_TRY(check_bases(b->ctx, t->x));
    t->value = n2_arena_alloc(&b->always, 65536, sizeof *t->value);
    if (!t->value) return N2CE_ENOMEM;
    for (size_t i = 0; i < ROWS_8; i++) t->value[sequence_number(t->x + 8 * i, 8)] = t->y[i];
    return N2CE_OK;
}

/* The same for every seed: there is nothing to draw. */
static n2ce_status begin_8(n2_design_bench *b, uint64_t seed) {
    const tfbind *t = b->data;
    n2_designs *d = &b->offline;
    (void)seed;
    N2_TRY(set_space(b));
    N2_TRY(n2_design_make_room(b, ROWS_8, 8));
    memcpy(d->y, t->y, ROWS_8 * sizeof *t->y);
    const double median = n2_percentile(d->y, ROWS_8, 50);
    memcpy(d->x, t->x, (size_t)ROWS_8 * 8 * sizeof *t->x);
    memcpy(d->y, t->y, ROWS_8 * sizeof *t->y);
    d->rows = n2_keep_up_to(median, 8, d->x, d->y, ROWS_8);
    return N2CE_OK;
}

/* ---- ten bases ------------------------------------------------------------------------------- */

static n2ce_status open_10(n2_design_bench *b, const char *folder) {
    tfbind *t = new_data(b);
    if (!t) return N2CE_ENOMEM;
    snprintf(t->folder, sizeof t->folder, "%s", folder);
    return n2_design_read(b->ctx, folder, "oracle.npy", SEQUENCES_10, 1, &b->always, &t->value);
}

static n2ce_status read_bases(n2ce_ctx *ctx, const char *path, const char *text, double *x) {
    static const char bases[] = "ACGTacgt";
    for (size_t i = 0; i < 10; i++) {
        const char *at = text[i] ? strchr(bases, text[i]) : NULL;
        if (!at || strlen(text) != 10)
            return n2_fail(ctx, N2CE_EDATA, "%s: \"%s\" is not a sequence of ten of A, C, G, T.",
                           path, text);
        x[i] = (double)((at - bases) % BASES);
    }
    return N2CE_OK;
}

static n2ce_status take_draw(n2_design_bench *b, const char *path, const n2_table *t,
                             const n2_levels *levels) {
    if (t->cols != 2)
        return n2_fail(b->ctx, N2CE_EDATA, "%s: %zu columns were found, not sequence and ddG.",
                       path, t->cols);
    N2_TRY(n2_design_make_room(b, t->rows, 10));
    for (size_t i = 0; i < t->rows; i++) {
        const char *text = n2_levels_text(levels, t->names[0], (size_t)t->x[2 * i]);
        N2_TRY(read_bases(b->ctx, path, text, b->offline.x + 10 * i));
        b->offline.y[i] = t->x[2 * i + 1];
    }
    return N2CE_OK;
}

static n2ce_status read_draw(n2_design_bench *b, const char *path, n2_levels *levels) {
    n2_table *t;
    const n2_table_options o = {.categorical = "sequence", .levels = levels};
    N2_TRY(n2_table_read(b->ctx, path, &o, &t));
    const n2ce_status status = take_draw(b, path, t, levels);
    n2_table_free(t);
    return status;
}

/* There are five draws; later seeds come back to the first. */
static n2ce_status begin_10(n2_design_bench *b, uint64_t seed) {
    const tfbind *t = b->data;
    char path[PATH_MAX], name[64];
    n2_levels *levels;
    snprintf(name, sizeof name, "offline_10k_seed%d.csv", (int)(seed % DRAWS));
    N2_TRY(n2_path_join(b->ctx, path, sizeof path, t->folder, name));
    N2_TRY(set_space(b));
    N2_TRY(n2_levels_new(b->ctx, &levels));
    const n2ce_status status = read_draw(b, path, levels);
    n2_levels_free(levels);
    return status;
}

const n2_design_task n2_tfbind8_task = {
    .name = "tfbind8",
    .summary = "DNA of 8 bases that binds to SIX6; all values are known",
    .folder = "tfbind8",
    .low = 0,
    .high = 1,
    .queries = 256,
    .setting = 8,
    .open = open_8,
    .begin = begin_8,
    .score = score,
};

const n2_design_task n2_tfbind10_task = {
    .name = "tfbind10",
    .summary = "DNA of 10 bases that binds to Pho4; noisy labels, all values of the oracle known",
    .folder = "tfbind10",
    .low = -1.8585268,
    .high = 2.1287067,
    .queries = 256,
    .setting = 10,
    .open = open_10,
    .begin = begin_10,
    .score = score,
};
