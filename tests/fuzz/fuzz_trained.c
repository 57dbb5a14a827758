/* Fuzzes the readers of what was trained: detectors, models of pictures, diffusion models, as files
 * and as changes to valid ones (trained_file.h). What is accepted is as large as the file, and
 * detectors score rows.
 *
 * libFuzzer: -max_len=64
 *
 *     clang -fsanitize=fuzzer,address,undefined ...     a libFuzzer program
 *     cc -DFUZZ_REPLAY ...                              a plain one: see main() */
#define _GNU_SOURCE
#include "trained_file.h"

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

static kind kinds[] = {{save_detector, load_detector, NULL, NULL},
                       {save_lebm, load_lebm, NULL, NULL},
                       {save_denoiser, load_denoiser, NULL, NULL}};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n) {
    try_input(kinds, KINDS, bytes, n);
    return 0;
}
