/* Molecules as strings, in kind: the paper's ChEMBL task with other molecules.
 *
 * ESOL (Delaney 2004): molecules with their measured solubility in water, log mol per litre; the
 * benchmark's table could not be found. Wanted are molecules that do not dissolve: the others are
 * the shortest strings, which chance finds. A design is a SMILES string of at most 30 tokens, a
 * column a token, and after its end END only counts; molecules that are longer, or need a token
 * that there is not, are left out. Offline are those up to the 40th percentile.
 *
 * As in the benchmark the oracle is a forest of 100 trees on 2048 bits of circular fingerprints of
 * radius 4, fitted to half of all molecules, which the seed draws; and a string that is no molecule
 * has the least value of all, as most strings do. */
#include "forest_oracle.h"
#include "io/file.h"
#include "io/table.h"
#include "smiles.h"

#include <limits.h>
#include <string.h>

enum { TOKENS = 30, BITS = 2048, RADIUS = 4, TOKEN_LETTERS = 5 };
enum { STREAM = 0x4D4F0000 };

/* A level is a token; the first ends the string. */
static const char tokens[][TOKEN_LETTERS] = {"",  "C",  "c", "(", ")", "O", "1",    "=",
                                             "2", "Cl", "N", "n", "3", "S", "F",    "4",
                                             "I", "Br", "P", "#", "o", "s", "[nH]", "5"};
enum { LEVELS = sizeof tokens / sizeof tokens[0] };

typedef struct molecules {
    size_t rows;
    double *x, *y, *bits;
    double least;
} molecules;

/* The longest token that a text begins with; 0: none. */
static size_t find_token(const char *text) {
    size_t best = 0;
    for (size_t t = 1; t < LEVELS; t++)
        if (strncmp(text, tokens[t], strlen(tokens[t])) == 0 &&
            strlen(tokens[t]) > strlen(tokens[best]))
            best = t;
    return best;
}

/* False if the string is too long or has something else. */
static bool to_design(const char *text, double *x) {
    size_t n = 0;
    for (size_t i = 0; i < TOKENS; i++) x[i] = 0;
    while (*text && *text != ' ' && *text != '\r') {
        const size_t t = find_token(text);
        if (!t || n == TOKENS) return false;
        x[n++] = (double)t;
        text += strlen(tokens[t]);
    }
    return n > 0;
}

static void to_text(const double *x, char text[TOKENS * TOKEN_LETTERS]) {
    *text = '\0';
    for (size_t i = 0; i < TOKENS && x[i] > 0; i++) strcat(text, tokens[(size_t)x[i]]);
}

/* The bits of a design; false: it is no molecule. */
static bool bits_of(const double *x, double *bits) {
    char text[TOKENS * TOKEN_LETTERS];
    n2_molecule m;
    to_text(x, text);
    if (n2_smiles_read(text, &m)) return false;
    n2_molecule_bits(&m, RADIUS, BITS, bits);
    return true;
}

static n2ce_status make_room(n2_design_bench *b, size_t rows, molecules **out) {
    molecules *m = b->data = *out = n2_arena_alloc(&b->always, 1, sizeof *m);
    if (!m) return N2CE_ENOMEM;
    m->x = n2_arena_alloc(&b->always, rows * TOKENS, sizeof *m->x);
    m->y = n2_arena_alloc(&b->always, rows, sizeof *m->y);
    m->bits = n2_arena_alloc(&b->always, rows * BITS, sizeof *m->bits);
    return m->x && m->y && m->bits ? N2CE_OK : N2CE_ENOMEM;
}

/* Column 0 of the table has values, column 1 levels. */
static n2ce_status take_molecules(n2_design_bench *b, const char *path, const n2_table *t,
                                  const n2_levels *levels) {
    molecules *m;
    N2_TRY(make_room(b, t->rows, &m));
    for (size_t i = 0; i < t->rows; i++) {
        const char *text = n2_levels_text(levels, "smiles", (size_t)t->x[2 * i + 1]);
        double *x = m->x + m->rows * TOKENS;
        if (!to_design(text, x)) continue;
        if (!bits_of(x, m->bits + m->rows * BITS))
            return n2_fail(b->ctx, N2CE_EDATA, "%s: \"%s\" is no molecule that can be read.", path,
                           text);
        m->y[m->rows] = -t->x[2 * i];
        if (m->rows == 0 || m->y[m->rows] < m->least) m->least = m->y[m->rows];
        m->rows++;
    }
    if (m->rows >= 16) return N2CE_OK;
    return n2_fail(b->ctx, N2CE_EDATA, "%s: only %zu of its molecules have at most %d tokens.",
                   path, m->rows, (int)TOKENS);
}

static n2ce_status open_molecules(n2_design_bench *b, const char *folder) {
    char path[PATH_MAX];
    n2_levels *levels;
    n2_table *t = NULL;
    N2_TRY(n2_path_join(b->ctx, path, sizeof path, folder, "delaney-processed.csv"));
    N2_TRY(n2_levels_new(b->ctx, &levels));
    const n2_table_options o = {.columns = "measured log solubility in mols per litre,smiles",
                                .categorical = "smiles",
                                .levels = levels};
    n2ce_status status = n2_table_read(b->ctx, path, &o, &t);
    if (status == N2CE_OK) status = take_molecules(b, path, t, levels);
    n2_table_free(t);
    n2_levels_free(levels);
    return status;
}

static n2ce_status begin(n2_design_bench *b, uint64_t seed) {
    const molecules *m = b->data;
    (void)seed;
    b->offline.space = n2_space_of(&b->by_seed, TOKENS, (n2_factor){N2_CATEGORY, 0, 0, LEVELS});
    if (!b->offline.space.factor) return N2CE_ENOMEM;
    N2_TRY(n2_offline_up_to(b, m->x, m->y, m->rows, 40, 0, STREAM));
    return n2_forest_oracle_fit(b, &(n2_judged_rows){m->bits, m->y, m->rows, BITS}, m->rows / 2,
                                STREAM);
}

static n2ce_status score(const n2_design_bench *b, const double *x, size_t rows, double *y) {
    const molecules *m = b->data;
    double bits[BITS];
    for (size_t i = 0; i < rows; i++) {
        y[i] = m->least;
        if (!bits_of(x + i * TOKENS, bits)) continue;
        N2_TRY(n2_forest_predict(b->oracle, bits, 1, &y[i]));
    }
    return N2CE_OK;
}

const n2_design_task n2_molecule_task = {
    .name = "molecule",
    .summary = "molecules as strings of at most 30 tokens that do not dissolve; ChEMBL in kind",
    .folder = "chembl_aux",
    .low = -1.58,
    .high = 11.6,
    .queries = 256,
    .open = open_molecules,
    .begin = begin,
    .score = score,
    .end = n2_forest_oracle_end,
};
