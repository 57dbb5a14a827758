/* Fuzzes the reader of detectors of odd pictures, as files and as changes to a valid one
 * (trained_file.h). What is accepted says what is usual.
 *
 * libFuzzer: -max_len=64
 *
 *     clang -fsanitize=fuzzer,address,undefined ...     a libFuzzer program
 *     cc -DFUZZ_REPLAY ...                              a plain one: see main() */
#define _GNU_SOURCE
#define REPLAY_INPUTS 300 /* each makes networks and a plan */
#include "trained_file.h"

#include "lebm/oddity.h"

enum { SIDE = 28, LEAST = 100 };

/* The smallest networks, which were not trained. */
static void save(n2ce_ctx *ctx, const char *path) {
    n2_oddity_spec spec = n2_oddity_defaults(n2_image_spec_named("mnist"));
    n2_images *p;
    n2_oddity *o;
    spec.width = spec.nz = 1;
    spec.members = 1;
    spec.vae_steps = spec.steps = 0;
    REQUIRE(n2_images_new(ctx, LEAST, SIDE, SIDE, 1, &p) == N2CE_OK);
    for (size_t i = 0; i < LEAST * SIDE * SIDE; i++) p->pixels[i] = (unsigned char)(i * i % 251);
    REQUIRE(n2_oddity_learn(ctx, &spec, p, 1, NULL, &o) == N2CE_OK);
    REQUIRE(n2_oddity_save(o, path, true) == N2CE_OK);
    n2_oddity_free(o);
    n2_images_free(p);
}

/* What it is asked beside pictures, which take its networks seconds under sanitizers. */
static n2ce_status load_oddity(n2ce_ctx *ctx, const char *path) {
    n2_oddity *o;
    size_t n;
    const n2ce_status status = n2_oddity_load(ctx, path, NULL, &o);
    REQUIRE((status == N2CE_OK) == (o != NULL));
    if (o) {
        const double *ranked = n2_oddity_ranked(o, &n);
        const n2_lebm_frame f = n2_oddity_frame(o);
        for (size_t i = 0; i < n; i++) REQUIRE(!isnan(ranked[i]));
        REQUIRE(f.height <= SIDE && f.width <= SIDE && f.channels == 1 && n > 0);
    }
    n2_oddity_free(o);
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n) {
    static kind one = {save, load_oddity, NULL, NULL};
    try_input(&one, 1, bytes, n);
    return 0;
}
