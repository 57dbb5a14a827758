/* What tests of feature networks have in common. */
#ifndef FEATURE_PICTURES_H
#define FEATURE_PICTURES_H

#include "contexts.h"
#include "files.h"

#include "image/image.h"
#include "io/file.h"
#include "metric/feature_net.h"

#include <math.h>

/* Pictures by a formula: the same as in tools/make_metric_goldens.py and
 * tools/make_ncnn_goldens.py. */
static n2_images *make_pictures(n2ce_ctx *ctx, size_t n, size_t side) {
    n2_images *p;
    assert_int_equal(n2_images_new(ctx, n, side, side, 3, &p), N2CE_OK);
    for (size_t at = 0; at < n * side * side * 3; at++) {
        const size_t c = at % 3, s = at / 3 % side, r = at / 3 / side % side;
        const size_t i = at / (3 * side * side);
        const size_t v = r * (7 + i) + s * (11 + 2 * c) + i * i * 5 + r * s * (1 + c);
        p->pixels[at] = (unsigned char)(v % 256);
    }
    return p;
}

static void assert_near(double got, double want) {
    if (fabs(got - want) <= 2e-5 * (1 + fabs(want))) return;
    print_error("%.9g is not %.9g\n", got, want);
    fail();
}

/* A text file with one thing in it changed, NULL: before its first byte. */
static inline void write_changed(n2ce_ctx *ctx, const char *path, const char *from, const char *to,
                                 const char *out) {
    n2_text text = n2_text_new(ctx), changed = n2_text_new(ctx);
    assert_int_equal(n2_file_read(ctx, path, &text), N2CE_OK);
    const char *at = from ? strstr(text.data, from) : text.data;
    assert_non_null(at);
    n2_text_add_raw(&changed, text.data, (size_t)(at - text.data));
    n2_text_add(&changed, "%s%s", to, at + (from ? strlen(from) : 0));
    write_bytes(out, changed.data, changed.length);
    n2_text_free(&text);
    n2_text_free(&changed);
}

static inline void assert_no_network(n2ce_ctx *ctx, const char *path, const char *message) {
    n2_feature_net *net;
    assert_int_equal(n2_feature_net_open(ctx, path, &net), N2CE_EDATA);
    assert_null(net);
    assert_message(ctx, message);
}

#endif
