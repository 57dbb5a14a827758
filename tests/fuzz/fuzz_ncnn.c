/* Fuzzes the list of a network's layers as ncnn writes it. The input is tried as a list, and as
 * changes to a valid one. What is accepted reads only blobs that were made before.
 *
 * libFuzzer: -max_len=512
 * traced: metric
 *
 *     clang -fsanitize=fuzzer,address,undefined ...     a libFuzzer program
 *     cc -DFUZZ_REPLAY ...                              a plain one: see main() */
#include "require.h"

#include "io/json.h"
#include "metric/ncnn_layers.h"

#include <string.h>

static void read_list(n2ce_ctx *ctx, const char *bytes, size_t n) {
    n2_ncnn_layers layers;
    n2_text list = n2_text_new(ctx);
    n2_text_add_raw(&list, bytes, n);
    const n2ce_status status = n2_ncnn_parse(ctx, "fuzz", &list, &layers);
    REQUIRE(status == N2CE_OK || status == N2CE_EDATA);
    REQUIRE((status == N2CE_OK) == (layers.layer != NULL));
    size_t made = 0;
    for (size_t i = 0; i < layers.n; i++) {
        const n2_ncnn_layer *l = &layers.layer[i];
        REQUIRE(l->n_in <= N2_NCNN_BLOBS && l->n_out >= 1 && l->n_out <= N2_NCNN_BLOBS);
        for (size_t k = 0; k < l->n_in; k++) REQUIRE(l->in[k] < made);
        for (size_t k = 0; k < l->n_out; k++) REQUIRE(l->out[k] == made + k);
        REQUIRE(memchr(l->type, '\0', sizeof l->type));
        made += l->n_out;
    }
    REQUIRE(made == layers.blobs);
    if (status != N2CE_OK)
        REQUIRE(strncmp(n2ce_errmsg(ctx), "fuzz: ", 6) == 0 && n2_is_utf8(n2ce_errmsg(ctx)));
    n2_free(ctx, layers.layer);
    n2_text_free(&list);
}

static const char valid[] = "7767517\n4 5\nInput data 0 1 data 0=19 1=19 2=3\n"
                            "Convolution conv1 1 1 data conv1 0=4 1=3 3=2 5=1 6=108 9=1\n"
                            "Split split 1 2 conv1 a b\nConcat concat 2 1 a b c\n";

static const char *const pieces[] = {"=", " ", "\n", "0", "9999", "-", "1=", "\xc3", " 4 ", "a"};

#include "fuzz_list.h"
