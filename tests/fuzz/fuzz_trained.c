/* Fuzzes the readers of what was trained: detectors, models of pictures, diffusion models. The
 * input is tried as a file, and as changes to the tensors and texts of a valid one under a check
 * sum that fits; its first byte says of which kind. What is refused is so in a sentence; what is
 * accepted is as large as the file, and detectors score rows.
 *
 * libFuzzer: -max_len=64
 *
 *     clang -fsanitize=fuzzer,address,undefined ...     a libFuzzer program
 *     cc -DFUZZ_REPLAY ...                              a plain one: see main() */
#define _GNU_SOURCE
#include "memory_file.h"
#include "one_thread.h"
#include "tensor_parts.h"

#include "detect/detector_file.h"
#include "diffusion/denoiser.h"
#include "io/json.h"
#include "lebm/lebm.h"

/* ---- valid files ------------------------------------------------------------------------------
 */

/* Two numbers and a column of three levels; no network, which would have to be trained. */
static void save_detector(n2ce_ctx *ctx, const char *path) {
    static const char text[] =
        "u,v,colour\n1,2,red\n2,1,blue\n1.5,2,red\n3,4,green\n1,1,blue\n"
        "2,2,red\n1,3,red\n2.5,1,blue\n0,2,green\n1,0,red\n2,3,red\n3,1,red\n";
    static memory_file table;
    const n2_detect_options o = {.folds = 2, .use = {[N2_PART_PLAIN] = true}};
    n2_table_options keep = {.keep_missing = true, .categorical = "colour"};
    n2_table *t;
    n2_detector *d;
    REQUIRE(n2_levels_new(ctx, &keep.levels) == N2CE_OK);
    const char *rows = in_memory(&table, text, sizeof text - 1);
    REQUIRE(n2_table_read(ctx, rows, &keep, &t) == N2CE_OK);
    REQUIRE(n2_detector_fit(ctx, t, keep.levels, NULL, &o, &d) == N2CE_OK);
    REQUIRE(n2_detector_save(d, path, true) == N2CE_OK);
    n2_detector_free(d);
    n2_table_free(t);
    n2_levels_free(keep.levels);
}

static void save_lebm(n2ce_ctx *ctx, const char *path) {
    n2_lebm_spec spec = n2_lebm_defaults(n2_image_spec_named("mnist"));
    n2_lebm *m;
    spec.frame = (n2_lebm_frame){28, 28, 1};
    spec.encoder_width = spec.decoder_width = spec.embedding = spec.nz = 1;
    spec.prior.width = 2;
    spec.prior.depth = 1;
    spec.prior.fitted = true;
    REQUIRE(n2_lebm_new(ctx, &spec, 1, &m) == N2CE_OK);
    REQUIRE(n2_lebm_save(m, "a note", path, true) == N2CE_OK);
    n2_lebm_free(m);
}

static void save_denoiser(n2ce_ctx *ctx, const char *path) {
    n2_denoiser_spec spec;
    n2_denoiser *m;
    n2_images *p;
    REQUIRE(n2_images_new(ctx, 1, 8, 8, 1, &p) == N2CE_OK);
    REQUIRE(n2_denoiser_spec_for(ctx, "s", p, 4, 0, &spec) == N2CE_OK);
    spec.net.levels = 1;
    spec.net.blocks = 1;
    REQUIRE(n2_denoiser_new(ctx, &spec, 1, &m) == N2CE_OK);
    REQUIRE(n2_denoiser_save(m, NULL, path, true) == N2CE_OK);
    n2_denoiser_free(m);
    n2_images_free(p);
}

/* ---- readers ----------------------------------------------------------------------------------
 */

static n2ce_status load_detector(n2ce_ctx *ctx, const char *path) {
    double rows[2 * 64] = {0}, score[2];
    n2_detector *d;
    const n2ce_status status = n2_detector_load(ctx, path, NULL, &d);
    REQUIRE((status == N2CE_OK) == (d != NULL));
    if (status == N2CE_OK && d->cols <= 64)
        REQUIRE(n2_detector_score(d, rows, 2, score, NULL) == N2CE_OK && !isnan(score[0]));
    n2_detector_free(d);
    return status;
}

static n2ce_status load_lebm(n2ce_ctx *ctx, const char *path) {
    n2_lebm *m;
    const n2ce_status status = n2_lebm_load(ctx, path, &m);
    REQUIRE((status == N2CE_OK) == (m != NULL));
    n2_lebm_free(m);
    return status;
}

static n2ce_status load_denoiser(n2ce_ctx *ctx, const char *path) {
    n2_denoiser *m;
    const n2ce_status status = n2_denoiser_load(ctx, path, &m);
    REQUIRE((status == N2CE_OK) == (m != NULL));
    n2_denoiser_free(m);
    return status;
}

typedef struct kind {
    void (*save)(n2ce_ctx *ctx, const char *path);
    n2ce_status (*load)(n2ce_ctx *ctx, const char *path);
    char *bytes; /* of a valid file, kept; NULL: not made yet */
    n2_st_file *file;
} kind;

static kind kinds[] = {{save_detector, load_detector, NULL, NULL},
                       {save_lebm, load_lebm, NULL, NULL},
                       {save_denoiser, load_denoiser, NULL, NULL}};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

static void make(kind *k) {
    static n2ce_ctx *ctx;
    char folder[] = "/dev/shm/fuzz_trained_XXXXXX", path[64];
    if (!ctx) ctx = one_thread();
    REQUIRE(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/file", folder);
    k->save(ctx, path);
    FILE *file = fopen(path, "rb");
    REQUIRE(file && (k->bytes = malloc(1 << 20)));
    const size_t n = fread(k->bytes, 1, 1 << 20, file);
    fclose(file);
    REQUIRE(n2_st_parse(ctx, "valid", k->bytes, n, &k->file) == N2CE_OK);
    unlink(path);
    rmdir(folder);
}

static n2ce_status load(const kind *k, const void *bytes, size_t n) {
    static memory_file file;
    n2ce_ctx *ctx = one_thread();
    const n2ce_status status = k->load(ctx, in_memory(&file, bytes, n));
    REQUIRE(status == N2CE_OK || status == N2CE_EDATA);
    if (status != N2CE_OK) REQUIRE(*n2ce_errmsg(ctx) && n2_is_utf8(n2ce_errmsg(ctx)));
    n2ce_ctx_free(ctx);
    return status;
}

/* ---- changes ----------------------------------------------------------------------------------
 */

/* Number `at` of a text is another one. */
static void change_number(st_parts *p, size_t i, size_t at, size_t which) {
    static const char *const numbers[] = {"-1",    "0",       "1",    "2",   "3",  "7",
                                          "65536", "1000000", "1e99", "0.5", "64", "256"};
    char *text = p->texts[i], *begin = text, *changed = calloc(strlen(text) + 16, 1);
    REQUIRE(changed);
    for (at %= 40; at > 0 && strchr(begin, ':'); at--) begin = strchr(begin, ':') + 1;
    memcpy(changed, text, (size_t)(begin - text));
    strcat(changed, numbers[which % (sizeof numbers / sizeof numbers[0])]);
    strcat(changed, begin + strcspn(begin, ",}]"));
    free(text);
    p->pairs[i].value = p->texts[i] = changed;
}

static void change(st_parts *p, const uint8_t e[3]) {
    const size_t i = e[1] % p->n_pairs, n = strlen(p->texts[i]);
    if (e[0] % 5 == 0) change_number(p, i, e[1] / p->n_pairs, e[2]);
    if (e[0] % 5 == 1 && n > 0) p->texts[i][e[2] % n] = (char)(' ' + e[0] / 5 + e[1] / 8);
    if (e[0] % 5 > 1) edit_tensor(p, e[0] % 5 - 2, e[1], e[2]);
}

static void try_parts(const kind *k, const uint8_t *bytes, size_t n) {
    n2ce_ctx *ctx = one_thread();
    st_parts p;
    size_t length;
    take_apart(k->file, &p);
    for (size_t i = 0; i + 2 < n && i < 12; i += 3) change(&p, bytes + i);
    char *encoded = put_together(ctx, &p, &length);
    const n2ce_status status = encoded ? load(k, encoded, length) : N2CE_EDATA;
    if (n < 3) REQUIRE(status == N2CE_OK);
    n2_free(ctx, encoded);
    parts_free(&p);
    n2ce_ctx_free(ctx);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n) {
    kind *k = &kinds[(n ? bytes[0] : 0) % KINDS];
    if (!k->file) make(k);
    const size_t skip = n > 0;
    if (n && bytes[0] / KINDS % 8 == 1)
        (void)load(k, bytes + skip, n - skip);
    else
        try_parts(k, bytes + skip, n - skip);
    return 0;
}

#ifdef FUZZ_REPLAY
#include "replay.h"

/* Which kind, and up to three changes. */
static size_t random_input(uint32_t *state, uint8_t *buffer, size_t room) {
    const size_t n = 1 + 3 * (next_random(state) % 4);
    REQUIRE(n <= room);
    for (size_t i = 0; i < n; i++) buffer[i] = (uint8_t)next_random(state);
    return n;
}
#endif
