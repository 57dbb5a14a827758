/* Sets of pictures for the study, from a folder of data. */
#include "images_study.h"
#include "io/file.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PARTS = 8 };

typedef struct listed_set {
    const char *name;
    const char *train[PARTS]; /* in images/NAME, as they are or packed, up to NULL */
    const char *test;         /* NULL: none */
    bool optional;            /* parts after the first may be missing */
} listed_set;

static const listed_set sets[] = {
    {"mnist", {"train-images-idx3-ubyte"}, "t10k-images-idx3-ubyte", false},
    {"cifar10",
     {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin",
      "data_batch_5.bin"},
     "test_batch.bin",
     false},
    {"svhn",
     {"svhn_train_00.bin", "svhn_train_01.bin", "svhn_train_02.bin", "svhn_train_03.bin",
      "svhn_train_04.bin", "svhn_train_05.bin", "svhn_train_06.bin", "svhn_train_07.bin"},
     NULL,
     true},
};

/* The path of a file, packed or not; false: it is not there, and the path is that of the plain
 * one. */
static bool find_file(const char *folder, const char *set, const char *name, char path[PATH_MAX]) {
    static const char *const endings[] = {".gz", ".xz", ""};
    for (size_t i = 0; i < 3; i++) {
        const int n = snprintf(path, PATH_MAX, "%s/images/%s/%s%s", folder, set, name, endings[i]);
        if (n > 0 && n < PATH_MAX && access(path, R_OK) == 0) return true;
    }
    return false;
}

static n2ce_status add_part(n2ce_ctx *ctx, const char *folder, const listed_set *set, size_t i,
                            n2_text *list, bool *more) {
    char path[PATH_MAX];
    *more = find_file(folder, set->name, set->train[i], path);
    if (*more) {
        n2_text_add(list, "%s%s", i ? "," : "", path);
        return N2CE_OK;
    }
    if (set->optional && i > 0) return N2CE_OK;
    return n2_fail(ctx, N2CE_EIO,
                   "%s is not there, nor packed by gzip or xz. Name a folder of data with --data.",
                   path);
}

static n2ce_status read_parts(n2ce_ctx *ctx, const char *folder, const listed_set *set,
                              n2_images **out) {
    n2_text list = n2_text_new(ctx);
    bool more = true;
    n2ce_status status = N2CE_OK;
    for (size_t i = 0; i < PARTS && set->train[i] && more && status == N2CE_OK; i++)
        status = add_part(ctx, folder, set, i, &list, &more);
    if (status == N2CE_OK && list.failed) status = N2CE_ENOMEM;
    if (status == N2CE_OK) status = n2_images_read_list(ctx, list.data, out);
    n2_text_free(&list);
    return status;
}

/* Pictures at equal steps of a larger set. */
static void thin(n2_images *p, size_t n) {
    const size_t bytes = p->height * p->width * p->channels;
    if (n == 0 || n >= p->n) return;
    for (size_t i = 0; i < n; i++) {
        const size_t from = i * p->n / n;
        memmove(p->pixels + i * bytes, p->pixels + from * bytes, bytes);
        if (p->labels) p->labels[i] = p->labels[from];
    }
    p->n = n;
}

static n2ce_status read_set(n2ce_ctx *ctx, const char *folder, const listed_set *set,
                            n2_images_set *out) {
    char path[PATH_MAX];
    N2_TRY(read_parts(ctx, folder, set, &out->train));
    if (!set->test || !find_file(folder, set->name, set->test, path)) return N2CE_OK;
    return n2_images_read(ctx, path, &out->test);
}

static n2ce_status read_named(n2ce_ctx *ctx, const n2ce_options *o, n2_images_set *out) {
    const char *folder = n2ce_options_get(o, "data");
    if (!folder) folder = getenv("N2CE_DATA");
    if (!folder)
        return n2_fail(ctx, N2CE_EINVAL,
                       "The study reads images/%s in a folder of data: say which with --data, or "
                       "with the environment variable N2CE_DATA. --images takes files of your own.",
                       out->name);
    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++)
        if (strcmp(sets[i].name, out->name) == 0) return read_set(ctx, folder, &sets[i], out);
    return n2_fail(ctx, N2CE_EINVAL, "There is no set \"%s\".", out->name);
}

n2ce_status n2_images_set_read(n2ce_ctx *ctx, const n2ce_options *o, n2_images_set *out) {
    const char *own = n2ce_options_get(o, "images");
    *out = (n2_images_set){.name = own ? "images" : n2ce_options_get(o, "set")};
    const n2ce_status status =
        own ? n2_images_read_list(ctx, own, &out->train) : read_named(ctx, o, out);
    size_t most = (size_t)n2_options_count(o, "subset");
    if (status == N2CE_OK) thin(out->train, most);
    if (status == N2CE_OK && out->test) thin(out->test, most);
    if (status == N2CE_OK && out->train->n >= 4 * N2_SET_LEAST) return N2CE_OK;
    if (status == N2CE_OK) {
        n2_images_set_free(out);
        return n2_fail(ctx, N2CE_EDATA, "The set has fewer than %d pictures.", 4 * N2_SET_LEAST);
    }
    n2_images_set_free(out);
    return status;
}

void n2_images_set_free(n2_images_set *set) {
    n2_images_free(set->train);
    n2_images_free(set->test);
    set->train = set->test = NULL;
}

void n2_images_set_sum(const n2_images_set *set, char sum[N2_SET_SUM_ROOM]) {
    char train[N2_CHECKSUM_ROOM], test[N2_CHECKSUM_ROOM] = "none";
    n2_images_sum(set->train, train);
    if (set->test) n2_images_sum(set->test, test);
    snprintf(sum, N2_SET_SUM_ROOM, "%s, %s", train, test);
}
