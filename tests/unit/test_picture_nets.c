/* Layers and networks of pictures: sizes, initial values, files in PyTorch's order, training. What
 * they compute is held against PyTorch in test_golden_pictures.c. */
#include "contexts.h"
#include "fast_backend.h"
#include "files.h"
#include "ref/ref.h"

#include "io/safetensors.h"
#include "model/edm.h"
#include "model/energy_net.h"
#include "rewrite/rewrites.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static n2_store *new_store(n2ce_ctx *ctx, size_t bytes) {
    n2_store *store;
    assert_int_equal(n2_store_new(ctx, bytes, &store), N2CE_OK);
    return store;
}

/* ---- sizes ------------------------------------------------------------------- */

static int64_t unet_size(n2ce_ctx *ctx, const n2_unet_spec *spec) {
    n2_store *store = new_store(ctx, sizeof(float));
    n2_parameters p = n2_parameters_to_count(store);
    n2_unet_new(&p, "", spec);
    assert_false(p.failed);
    const int64_t n = n2_parameters_count(&p);
    n2_store_free(store);
    return n;
}

static int64_t energy_size(n2ce_ctx *ctx, int64_t nh) {
    n2_store *store = new_store(ctx, sizeof(float));
    n2_parameters p = n2_parameters_to_count(store);
    n2_energy_net_new(&p, "", 3, nh);
    const int64_t n = n2_parameters_count(&p);
    n2_store_free(store);
    return n;
}

static void networks_have_the_sizes_of_the_literature(void **state) {
    (void)state;
    n2ce_ctx *ctx = new_ctx(1);
    n2_unet_spec told = n2_unet_ddpmpp_cifar10;
    told.labels = 10;
    assert_int_equal(unet_size(ctx, &n2_unet_ddpmpp_cifar10), 55733891);
    assert_int_equal(unet_size(ctx, &told), 55735299);
    assert_int_equal(unet_size(ctx, &n2_unet_ddpm_cifar10), 35746307);
    assert_int_equal(unet_size(ctx, &n2_unet_adm_imagenet64), 295899267);
    assert_int_equal(unet_size(ctx, &n2_unet_s), 6990467);
    assert_int_equal(energy_size(ctx, 128), 5134595);
    assert_int_equal(energy_size(ctx, 64), 1285251);
    n2ce_ctx_free(ctx);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(networks_have_the_sizes_of_the_literature),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
