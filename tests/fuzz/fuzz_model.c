/* Fuzzes the reader of models. The input is tried as a file, and as changes to a valid one: to its
 * bytes, or to its tensors and its description under a check sum that fits. Its first byte says to
 * which model, and how: seven of eight times the latter. What is accepted must be usable: it scores
 * rows.
 *
 * libFuzzer: -max_len=64
 *
 *     clang -fsanitize=fuzzer,address,undefined ...     a libFuzzer program
 *     cc -DFUZZ_REPLAY ...                              a plain one: see main() */
#include "one_thread.h"
#include "ratio/model_file.h"
#include "tensor_parts.h"

#include <unistd.h>

/* ---- valid models ------------------------------------------------------------------------- */

enum { MODELS = 5, ROWS = 120 };

typedef struct bytes {
    char *data;
    size_t n;
} bytes;

static const char *const options[MODELS][20] = {
    {"critic", "quadratic", "categorical", "2", "scaling", "normal"},
    {"critic", "net", "steps", "2", "width", "4", "blocks", "2", "stages", "2", "folds", "2", "M",
     "10", "categorical", "2"},
    {"method", "kliep"},
    {"critic", "net", "steps", "2", "width", "4", "blocks", "1", "folds", "2", "M", "10"},
    {"critic", "quadratic"}, /* and trees */
};

/* Columns: two numbers and three levels. */
static void fill(double *x, size_t rows, double shift) {
    for (size_t i = 0; i < rows; i++) {
        x[3 * i] = sin((double)i) + shift;
        x[3 * i + 1] = cos((double)(i * i));
        x[3 * i + 2] = (double)(i % 3);
    }
}

static bytes read_back(const char *path) {
    FILE *file = fopen(path, "rb");
    REQUIRE(file);
    bytes b = {malloc(1 << 18), 0};
    REQUIRE(b.data);
    b.n = fread(b.data, 1, 1 << 18, file);
    fclose(file);
    return b;
}

/* As if held-out rows had been predicted better by them. */
static void add_trees(n2ce_model *m, const double *x) {
    const n2_boosting_options o = {
        .loss = N2_BOOSTING_LOGISTIC, .trees = 3, .leaves = 4, .least_rows = 10};
    n2_ratio *r = m->ratio;
    double label[ROWS];
    for (size_t i = 0; i < ROWS; i++) label[i] = x[3 * i] * x[3 * i + 1] > 0;
    for (; r->forests < 2; r->forests++)
        REQUIRE(n2_boosting_fit(r->ctx, &o, x, label, ROWS, 3, &r->trees[r->forests]) == N2CE_OK);
    r->blend.weight[N2_BLEND_PARTS - 1] = 0.5;
}

static bytes make_model(size_t which) {
    double num[3 * ROWS], den[3 * ROWS];
    fill(num, ROWS, 0.5);
    fill(den, ROWS, 0);
    const n2ce_matrix data[] = {{num, N2CE_F64, ROWS, 3, 0, 0}, {den, N2CE_F64, ROWS, 3, 0, 0}};
    const n2ce_task *task = n2ce_task_find(which == 3 ? "mi" : "fit");
    n2ce_ctx *ctx = one_thread();
    n2ce_options *o;
    n2ce_answer *answer;
    char path[] = "/tmp/n2ce-fuzz-XXXXXX";
    REQUIRE(n2ce_options_new(ctx, n2ce_task_options(task), &o) == N2CE_OK);
    for (const char *const *pair = options[which]; *pair; pair += 2)
        REQUIRE(n2ce_options_set(o, pair[0], pair[1]) == N2CE_OK);
    REQUIRE(n2ce_task_run_on(ctx, task, o, data, 2, &answer) == N2CE_OK);
    n2ce_model *m = n2ce_answer_take_model(answer);
    if (which == MODELS - 1) add_trees(m, num);
    close(mkstemp(path));
    REQUIRE(n2ce_model_save(m, path, true) == N2CE_OK);
    const bytes b = read_back(path);
    unlink(path);
    n2ce_model_free(m);
    n2ce_answer_free(answer);
    n2ce_options_free(o);
    n2ce_ctx_free(ctx);
    return b;
}

/* Made on first use, and kept; so is what is in it. */
static const bytes *valid(size_t which) {
    static bytes models[MODELS];
    bytes *b = &models[which % MODELS];
    if (!b->data) *b = make_model(which % MODELS);
    return b;
}

static const n2_st_file *valid_file(size_t which) {
    static n2ce_ctx *ctx;
    static n2_st_file *files[MODELS];
    n2_st_file **file = &files[which % MODELS];
    const bytes *b = valid(which);
    if (!ctx) ctx = one_thread();
    if (!*file) REQUIRE(n2_st_parse(ctx, "valid", b->data, b->n, file) == N2CE_OK);
    return *file;
}

/* ---- what is accepted must be usable -------------------------------------------------------- */

static void use(n2ce_model *m) {
    enum { FEW = 3 };
    const size_t cols = n2ce_model_columns(m);
    double *x = calloc(FEW * cols, sizeof *x), f[FEW];
    REQUIRE(x && cols > 0 && n2ce_model_json(m));
    for (size_t c = 0; c < cols; c++) REQUIRE(n2ce_model_column(m, c));
    const n2ce_matrix rows = {x, N2CE_F64, FEW, cols, 0, 0};
    const n2ce_status status = n2ce_model_score(m, &rows, f);
    REQUIRE(status == N2CE_OK || status == N2CE_EDATA); /* a level need not be called 0 */
    free(x);
}

static void try_bytes(const void *data, size_t n, bool must_load) {
    n2ce_ctx *ctx = one_thread();
    n2_st_file *file;
    n2ce_model *m = NULL;
    n2ce_status status = n2_st_parse(ctx, "fuzz", data, n, &file);
    if (status == N2CE_OK) {
        status = n2_model_of_file(ctx, "fuzz", file, &m);
        n2_st_close(file);
    }
    REQUIRE(status == N2CE_OK || status == N2CE_EDATA);
    REQUIRE((status == N2CE_OK) == (m != NULL));
    REQUIRE(status == N2CE_OK || strncmp(n2ce_errmsg(ctx), "fuzz", 4) == 0);
    REQUIRE(status == N2CE_OK || !must_load);
    if (m) use(m);
    n2ce_model_free(m);
    n2ce_ctx_free(ctx);
}

/* Some bytes of a valid file replaced: the input is places and bytes. */
static void try_edits(const uint8_t *data, size_t size) {
    const bytes *b = valid(size ? data[0] : 0);
    char *edited = malloc(b->n);
    REQUIRE(edited);
    memcpy(edited, b->data, b->n);
    for (size_t i = 1; i + 2 < size; i += 3)
        edited[(data[i] * 256u + data[i + 1]) % b->n] = (char)data[i + 2];
    try_bytes(edited, b->n, false);
    free(edited);
}

/* ---- changes under a check sum that fits ----------------------------------------------------- */

static size_t find_tensor(const st_parts *p, const char *name) {
    for (size_t i = 0; i < p->n; i++)
        if (strcmp(p->tensors[i].name, name) == 0) return i;
    return 0;
}

static void edit(st_parts *p, const uint8_t e[3]) {
    const double special = specials[e[2] % (sizeof specials / sizeof specials[0])];
    const size_t features = find_tensor(p, "features"), trees = find_tensor(p, "trees.0");
    char *text = p->texts[find_text(p, "model")];
    switch (e[0] % 7) {
    case 0: /* the description, from its end: that is where the sizes are */
        text[strlen(text) - 1 - e[1] % strlen(text)] = (char)(e[2] ? e[2] : ' ');
        break;
    case 1:
        set_number(&p->tensors[features], own(p, features), e[1], special);
        break;
    case 2: /* one more digit in the sizes */
        text[strlen(text) - 1 - e[1] % 24 % strlen(text)] = (char)('0' + e[2] % 10);
        break;
    case 3: /* a tree's columns, ways, thresholds and values */
        set_number(&p->tensors[trees], own(p, trees), e[1], e[2] / 2.0);
        break;
    default:
        edit_tensor(p, e[0] % 7 - 4, e[1], e[2]);
    }
}

static void try_parts(const uint8_t *data, size_t size) {
    n2ce_ctx *ctx = one_thread();
    st_parts p;
    size_t n;
    take_apart(valid_file(size ? data[0] : 0), &p);
    for (size_t i = 1; i + 2 < size; i += 3) edit(&p, data + i);
    char *encoded = put_together(ctx, &p, &n);
    if (encoded) try_bytes(encoded, n, size < 4);
    n2_free(ctx, encoded);
    parts_free(&p);
    n2ce_ctx_free(ctx);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    try_bytes(data, size, false);
    if (size > 0 && data[0] / MODELS % 8 == 1)
        try_edits(data, size);
    else
        try_parts(data, size);
    return 0;
}

#ifdef FUZZ_REPLAY
#include "replay.h"

/* Which model, and up to three changes. */
static size_t random_input(uint32_t *state, uint8_t *buffer, size_t room) {
    const size_t n = 1 + 3 * (next_random(state) % 4);
    REQUIRE(n <= room);
    for (size_t i = 0; i < n; i++) buffer[i] = (uint8_t)next_random(state);
    return n;
}

#endif
