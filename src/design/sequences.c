/* Sequences that somebody measured, judged by a random forest on what is known to matter: tasks
 * besides the paper's.
 *
 * UTR: 280,000 regions of 50 bases before a gene and how many ribosomes load there (Sample et al.
 * 2019, as in Design-Bench). Offline are 10,000 of the rows up to the median, drawn by the seed.
 * The forest sees counts of bases and of triplets, where the first start codon is, start and stop
 * codons by frame, and the last eight bases.
 *
 * AAV: 44,128 segments of 28 amino acids of a virus' capsid and how well it packs (Bryant et al.
 * 2021). Offline are 10,000 of the rows up to the median. The forest sees hydropathy (Kyte and
 * Doolittle), volume and charge of every residue.
 *
 * Either forest is fitted to 4,000 rows of the full table. */
#include "base/ctx.h"
#include "forest_oracle.h"
#include "io/file.h"
#include "io/table.h"

#include <limits.h>
#include <string.h>

enum { UTR_ROWS = 280000, UTR_LENGTH = 50, UTR_BYTES = 13, TRIPLETS = 64, FRAMES = 3, TAIL = 8 };
enum { UTR_FEATURES = 4 + TRIPLETS + 2 * FRAMES + 1 + TAIL };
enum { AAV_LENGTH = 28, RESIDUES = 20, PROPERTIES = 3, AAV_FEATURES = AAV_LENGTH * PROPERTIES };
enum { ORACLE_ROWS = 4000, OFFLINE_ROWS = 10000, ORACLE_STREAM = 0x53510000, STREAM };

typedef void features_fn(const double *x, double *f);

typedef struct sequences {
    size_t rows, length, levels, n_features;
    features_fn *features;
    double *x, *y;
} sequences;

static n2ce_status new_data(n2_design_bench *b, sequences kind, sequences **out) {
    b->data = *out = n2_arena_alloc(&b->always, 1, sizeof kind);
    if (!*out) return N2CE_ENOMEM;
    **out = kind;
    (*out)->x = n2_arena_alloc(&b->always, kind.rows * kind.length, sizeof *kind.x);
    return (*out)->x ? N2CE_OK : N2CE_ENOMEM;
}

/* ---- regions before a gene ------------------------------------------------------------------- */

enum { A, C, G, T };

static size_t triplet(const double *x) {
    return (size_t)x[0] * 16 + (size_t)x[1] * 4 + (size_t)x[2];
}

static bool is_stop(size_t t) {
    return t == T * 16 + A * 4 + A || t == T * 16 + A * 4 + G || t == T * 16 + G * 4 + A;
}

static void utr_features(const double *x, double *f) {
    double *triplets = f + 4, *starts = triplets + TRIPLETS, *stops = starts + FRAMES;
    double *first = stops + FRAMES;
    memset(f, 0, UTR_FEATURES * sizeof *f);
    *first = UTR_LENGTH;
    for (size_t i = 0; i < UTR_LENGTH; i++) f[(size_t)x[i]]++;
    for (size_t i = 0; i + 2 < UTR_LENGTH; i++) {
        const size_t t = triplet(x + i);
        triplets[t]++;
        if (t == A * 16 + T * 4 + G) {
            starts[i % FRAMES]++;
            if (*first == UTR_LENGTH) *first = (double)i;
        }
        if (is_stop(t)) stops[i % FRAMES]++;
    }
    memcpy(first + 1, x + UTR_LENGTH - TAIL, TAIL * sizeof *x);
}

/* Four bases a byte, the first in the lowest bits. */
static void unpack(const double *bytes, double *x) {
    for (size_t i = 0; i < (size_t)UTR_ROWS * UTR_LENGTH; i++) {
        const size_t row = i / UTR_LENGTH, j = i % UTR_LENGTH;
        x[i] = (double)(((unsigned)bytes[row * UTR_BYTES + j / 4] >> (2 * (j % 4))) & 3);
    }
}

static n2ce_status check_bytes(n2ce_ctx *ctx, const double *bytes) {
    for (size_t i = 0; i < (size_t)UTR_ROWS * UTR_BYTES; i++)
        if (!(bytes[i] >= 0 && bytes[i] <= 255))
            return n2_fail(ctx, N2CE_EDATA,
                           "utr/x_packed.npy, row %zu: %g is no byte with four bases.",
                           i / UTR_BYTES, bytes[i]);
    return N2CE_OK;
}

static n2ce_status open_utr(n2_design_bench *b, const char *folder) {
    sequences *s;
    double *bytes = NULL;
    n2_arena arena = n2_arena_new(b->ctx);
    n2ce_status status =
        n2_design_read(b->ctx, folder, "x_packed.npy", UTR_ROWS, UTR_BYTES, &arena, &bytes);
    if (status == N2CE_OK) status = check_bytes(b->ctx, bytes);
    if (status == N2CE_OK)
        status = new_data(b,
                          (sequences){.rows = UTR_ROWS,
                                      .length = UTR_LENGTH,
                                      .levels = 4,
                                      .n_features = UTR_FEATURES,
                                      .features = utr_features},
                          &s);
    if (status == N2CE_OK) unpack(bytes, s->x);
    n2_arena_free(&arena);
    if (status != N2CE_OK) return status;
    return n2_design_read(b->ctx, folder, "y.npy", UTR_ROWS, 1, &b->always, &s->y);
}

/* ---- a capsid -------------------------------------------------------------------------------- */

static const char residues[] = "ACDEFGHIKLMNPQRSTVWY";

static const double properties[RESIDUES][PROPERTIES] = {
    {1.8, 88.6, 0},  {2.5, 108.5, 0},   {-3.5, 111.1, -1}, {-3.5, 138.4, -1}, {2.8, 189.9, 0},
    {-0.4, 60.1, 0}, {-3.2, 153.2, .1}, {4.5, 166.7, 0},   {-3.9, 168.6, 1},  {3.8, 166.7, 0},
    {1.9, 162.9, 0}, {-3.5, 114.1, 0},  {-1.6, 112.7, 0},  {-3.5, 143.8, 0},  {-4.5, 173.4, 1},
    {-0.8, 89.0, 0}, {-0.7, 116.1, 0},  {4.2, 140.0, 0},   {-0.9, 227.8, 0},  {-1.3, 193.6, 0},
};

static void aav_features(const double *x, double *f) {
    for (size_t i = 0; i < AAV_LENGTH; i++)
        memcpy(f + i * PROPERTIES, properties[(size_t)x[i]], sizeof properties[0]);
}

static n2ce_status read_residues(n2ce_ctx *ctx, const char *text, double *x) {
    for (size_t i = 0; i < AAV_LENGTH; i++) {
        const char *at = text[i] ? strchr(residues, text[i]) : NULL;
        if (!at || strlen(text) != AAV_LENGTH)
            return n2_fail(ctx, N2CE_EDATA,
                           "aav/ground_truth.csv: \"%s\" is not a sequence of 28 amino acids.",
                           text);
        x[i] = (double)(at - residues);
    }
    return N2CE_OK;
}

static n2ce_status take_capsids(n2_design_bench *b, const n2_table *t, const n2_levels *levels) {
    sequences *s;
    N2_TRY(new_data(b,
                    (sequences){.rows = t->rows,
                                .length = AAV_LENGTH,
                                .levels = RESIDUES,
                                .n_features = AAV_FEATURES,
                                .features = aav_features},
                    &s));
    s->y = n2_arena_alloc(&b->always, t->rows, sizeof *s->y);
    if (!s->y) return N2CE_ENOMEM;
    for (size_t i = 0; i < t->rows; i++) {
        const char *text = n2_levels_text(levels, "sequence", (size_t)t->x[2 * i]);
        N2_TRY(read_residues(b->ctx, text, s->x + i * AAV_LENGTH));
        s->y[i] = t->x[2 * i + 1];
    }
    return N2CE_OK;
}

static n2ce_status open_aav(n2_design_bench *b, const char *folder) {
    char path[PATH_MAX];
    n2_levels *levels;
    n2_table *t = NULL;
    N2_TRY(n2_path_join(b->ctx, path, sizeof path, folder, "ground_truth.csv"));
    N2_TRY(n2_levels_new(b->ctx, &levels));
    const n2_table_options o = {
        .columns = "sequence,score", .categorical = "sequence", .levels = levels};
    n2ce_status status = n2_table_read(b->ctx, path, &o, &t);
    if (status == N2CE_OK) status = take_capsids(b, t, levels);
    n2_table_free(t);
    n2_levels_free(levels);
    return status;
}

/* ---- both ------------------------------------------------------------------------------------ */

static n2ce_status fit_oracle(n2_design_bench *b, const sequences *s) {
    const size_t n = s->rows < ORACLE_ROWS ? s->rows : ORACLE_ROWS, cols = s->n_features;
    size_t *order = n2_arena_alloc(&b->by_seed, s->rows, sizeof *order);
    double *f = n2_arena_alloc(&b->by_seed, n * (cols + 1), sizeof *f);
    if (!order || !f) return N2CE_ENOMEM;
    double *y = f + n * cols;
    n2_draw_rows(b->seed, ORACLE_STREAM, s->rows, n, order);
    for (size_t i = 0; i < n; i++) {
        s->features(s->x + order[i] * s->length, f + i * cols);
        y[i] = s->y[order[i]];
    }
    return n2_forest_oracle_fit(b, &(n2_judged_rows){f, y, n, cols}, n, ORACLE_STREAM);
}

static n2ce_status begin(n2_design_bench *b, uint64_t seed) {
    const sequences *s = b->data;
    (void)seed;
    b->offline.space =
        n2_space_of(&b->by_seed, s->length, (n2_factor){N2_CATEGORY, 0, 0, s->levels});
    if (!b->offline.space.factor) return N2CE_ENOMEM;
    N2_TRY(n2_offline_up_to(b, s->x, s->y, s->rows, 50, OFFLINE_ROWS, STREAM));
    return fit_oracle(b, s);
}

static n2ce_status score(const n2_design_bench *b, const double *x, size_t rows, double *y) {
    const sequences *s = b->data;
    double f[UTR_FEATURES + AAV_FEATURES];
    for (size_t i = 0; i < rows; i++) {
        s->features(x + i * s->length, f);
        N2_TRY(n2_forest_predict(b->oracle, f, 1, &y[i]));
    }
    return N2CE_OK;
}

#define SEQUENCES(title, about, most, reader)                                                     \
    {                                                                                             \
        .name = title, .summary = about, .folder = title, .low = 0, .high = most, .queries = 256, \
        .further = true, .open = reader, .begin = begin, .score = score,                          \
        .end = n2_forest_oracle_end                                                               \
    }

const n2_design_task n2_utr_task =
    SEQUENCES("utr", "50 bases before a gene for a high load of ribosomes", 12, open_utr);
const n2_design_task n2_aav_task =
    SEQUENCES("aav", "28 amino acids of a capsid for a high fitness", 19.5364566706, open_aav);
