#include "anomaly_split.h"

#include "io/file.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- the pictures ---------------------------------------------------------------------------- */

enum { FIRST = 50000 }; /* of the training set, which come first */

static n2ce_status find_file(n2ce_ctx *ctx, const char *folder, const char *name,
                             char path[PATH_MAX]) {
    char packed[96];
    snprintf(packed, sizeof packed, "images/mnist/%s.gz", name);
    N2_TRY(n2_path_join(ctx, path, PATH_MAX, folder, packed));
    if (access(path, R_OK) == 0) return N2CE_OK;
    packed[strlen(packed) - 3] = '\0';
    return n2_path_join(ctx, path, PATH_MAX, folder, packed);
}

static n2ce_status read_part(n2ce_ctx *ctx, const char *folder, const char *part, n2_images **out) {
    char images[PATH_MAX], labels[PATH_MAX], name[64];
    snprintf(name, sizeof name, "%s-images-idx3-ubyte", part);
    N2_TRY(find_file(ctx, folder, name, images));
    snprintf(name, sizeof name, "%s-labels-idx1-ubyte", part);
    N2_TRY(find_file(ctx, folder, name, labels));
    N2_TRY(n2_images_read(ctx, images, out));
    const n2ce_status status = n2_images_read_labels(*out, labels);
    if (status == N2CE_OK) return N2CE_OK;
    n2_images_free(*out);
    *out = NULL;
    return status;
}

static void copy_pictures(n2_images *to, size_t at, const n2_images *from, size_t first, size_t n) {
    const size_t size = to->height * to->width * to->channels;
    memcpy(to->pixels + at * size, from->pixels + first * size, n * size);
    memcpy(to->labels + at, from->labels + first, n);
}

static n2ce_status join_parts(n2ce_ctx *ctx, const n2_images *train, const n2_images *test,
                              n2_images **out) {
    const size_t first = train->n < FIRST ? train->n : FIRST;
    if (train->height != test->height || train->width != test->width ||
        train->channels != test->channels)
        return n2_fail(ctx, N2CE_EDATA,
                       "MNIST's training pictures are %zu x %zu, its test pictures %zu x %zu.",
                       train->height, train->width, test->height, test->width);
    N2_TRY(
        n2_images_new(ctx, train->n + test->n, train->height, train->width, train->channels, out));
    (*out)->labels = n2_alloc(ctx, (*out)->n, 1);
    if (!(*out)->labels) {
        n2_images_free(*out);
        return N2CE_ENOMEM;
    }
    copy_pictures(*out, 0, train, 0, first);
    copy_pictures(*out, first, test, 0, test->n);
    copy_pictures(*out, first + test->n, train, first, train->n - first);
    return N2CE_OK;
}

n2ce_status n2_anomaly_read(n2ce_ctx *ctx, const char *folder, n2_images **out) {
    n2_images *train, *test;
    if (!folder)
        return n2_fail(ctx, N2CE_EINVAL,
                       "The study reads MNIST from images/mnist in a folder of data: say which "
                       "with --data, or with the environment variable N2CE_DATA.");
    N2_TRY(read_part(ctx, folder, "train", &train));
    n2ce_status status = read_part(ctx, folder, "t10k", &test);
    if (status == N2CE_OK) {
        status = join_parts(ctx, train, test, out);
        n2_images_free(test);
    }
    n2_images_free(train);
    return status;
}

/* ---- NumPy's permutation --------------------------------------------------------------------- */

/* MT19937 (Matsumoto and Nishimura 1998). */
enum { WORDS = 624, MIDDLE = 397 };

typedef struct twister {
    uint32_t word[WORDS];
    size_t at;
} twister;

static void seed_twister(twister *t, uint32_t seed) {
    t->word[0] = seed;
    for (uint32_t i = 1; i < WORDS; i++)
        t->word[i] = 1812433253u * (t->word[i - 1] ^ t->word[i - 1] >> 30) + i;
    t->at = WORDS;
}

static void turn_twister(twister *t) {
    for (size_t i = 0; i < WORDS; i++) {
        const uint32_t y = (t->word[i] & 0x80000000u) | (t->word[(i + 1) % WORDS] & 0x7fffffffu);
        t->word[i] = t->word[(i + MIDDLE) % WORDS] ^ y >> 1 ^ (y & 1 ? 0x9908b0dfu : 0);
    }
    t->at = 0;
}

static uint32_t next_word(twister *t) {
    if (t->at == WORDS) turn_twister(t);
    uint32_t y = t->word[t->at++];
    y ^= y >> 11;
    y ^= y << 7 & 0x9d2c5680u;
    y ^= y << 15 & 0xefc60000u;
    return y ^ y >> 18;
}

/* A whole number from 0 to `most`: words with the bits that it needs, until one fits. */
static size_t draw_to(twister *t, size_t most) {
    uint32_t mask = (uint32_t)most;
    for (int k = 1; k < 32; k *= 2) mask |= mask >> k;
    uint32_t draw = next_word(t) & mask;
    while (draw > most) draw = next_word(t) & mask;
    return draw;
}

void n2_legacy_permutation(uint32_t seed, size_t n, size_t *out) {
    twister t;
    seed_twister(&t, seed);
    for (size_t i = 0; i < n; i++) out[i] = i;
    for (size_t i = n; i-- > 1;) {
        const size_t j = draw_to(&t, i), kept = out[i];
        out[i] = out[j];
        out[j] = kept;
    }
}

/* ---- the split ------------------------------------------------------------------------------- */

enum { SPLIT_SEED = 42 };

static n2ce_status check_kinds(n2ce_ctx *ctx, size_t normal, size_t all, int digit) {
    if (normal >= 2 && normal < all) return N2CE_OK;
    return n2_fail(ctx, N2CE_EINVAL,
                   "%zu of %zu pictures show a %d: the study needs both these and others.",
                   all - normal, all, digit);
}

n2ce_status n2_anomaly_split_of(n2_arena *arena, const n2_images *pictures, int digit,
                                n2_anomaly_split *out) {
    const size_t all = pictures->n;
    size_t *normal = n2_arena_alloc(arena, all, sizeof *normal);
    size_t *order = n2_arena_alloc(arena, all, sizeof *order), n = 0;
    *out = (n2_anomaly_split){.pictures = pictures, .digit = digit};
    out->train = n2_arena_alloc(arena, all, sizeof *out->train);
    out->test = n2_arena_alloc(arena, all, sizeof *out->test);
    out->is_odd = n2_arena_alloc(arena, all, 1);
    if (!normal || !order || !out->train || !out->test || !out->is_odd) return N2CE_ENOMEM;
    for (size_t i = 0; i < all; i++)
        if (pictures->labels[i] != digit) normal[n++] = i;
    N2_TRY(check_kinds(arena->ctx, n, all, digit));
    n2_legacy_permutation(SPLIT_SEED, n, order);
    out->n_train = n * 4 / 5;
    out->n_normal = n - out->n_train;
    for (size_t i = 0; i < out->n_train; i++) out->train[i] = normal[order[i]];
    for (size_t i = out->n_train; i < n; i++) out->test[out->n_test++] = normal[order[i]];
    for (size_t i = 0; i < all; i++) {
        if (pictures->labels[i] != digit) continue;
        out->is_odd[out->n_test] = 1;
        out->test[out->n_test++] = i;
    }
    return N2CE_OK;
}

/* Keeps `keep` of n numbers, at equal steps. */
static void thin_list(size_t *list, size_t n, size_t keep) {
    for (size_t i = 0; i < keep; i++) list[i] = list[i * n / keep];
}

void n2_anomaly_split_thin(n2_anomaly_split *s, size_t n) {
    const size_t judged = n / 4 < s->n_test ? n / 4 : s->n_test, n_odd = s->n_test - s->n_normal;
    size_t odd = n_odd * judged / s->n_test;
    if (odd < 1) odd = 1;
    const size_t normal = judged > odd + 1 ? judged - odd : 1;
    if (n < s->n_train) s->n_train = n;
    thin_list(s->test, s->n_normal, normal);
    thin_list(s->test + s->n_normal, n_odd, odd);
    memmove(s->test + normal, s->test + s->n_normal, odd * sizeof *s->test);
    for (size_t i = 0; i < normal + odd; i++) s->is_odd[i] = i >= normal;
    s->n_normal = normal;
    s->n_test = normal + odd;
}

void n2_anomaly_pixels(const n2_images *pictures, const size_t *numbers, size_t n, float *out) {
    const size_t d = pictures->height * pictures->width * pictures->channels;
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < d; k++)
            out[i * d + k] = (float)pictures->pixels[numbers[i] * d + k] / 127.5f - 1;
}

n2ce_status n2_anomaly_rows(n2_arena *arena, const n2_images *pictures, const size_t *numbers,
                            size_t n, n2_feature_rows *out) {
    const size_t d = pictures->height * pictures->width * pictures->channels;
    float *x = n2_arena_alloc(arena, n * d, sizeof *x);
    if (!x) return N2CE_ENOMEM;
    n2_anomaly_pixels(pictures, numbers, n, x);
    *out = (n2_feature_rows){n, d, x};
    return N2CE_OK;
}
