/* A convolution by cuDNN beside the sum that it stands for. Skipped without a GPU or cuDNN. */
#define _POSIX_C_SOURCE 200809L
#include "contexts.h"
#include "fast_backend.h"

#include "cuda/library/convolution.h"

static float number(uint32_t i) {
    return (float)((i * 2654435761u + 12345u) >> 8) / 8388608.0f - 1.0f;
}

/* Pixel (i, j) of filter f of picture p. */
static double pixel(const n2_convolution *c, const float *x, const float *w, int p, int f, int i,
                    int j) {
    double sum = 0;
    for (int d = 0; d < c->channels; d++)
        for (int r = 0; r < c->rows; r++)
            for (int s = 0; s < c->columns; s++) {
                const int row = i * c->stride + r - c->padding;
                const int column = j * c->stride + s - c->padding;
                if (row < 0 || row >= c->height || column < 0 || column >= c->width) continue;
                sum += (double)x[((p * c->channels + d) * c->height + row) * c->width + column] *
                       (double)w[((f * c->channels + d) * c->rows + r) * c->columns + s];
            }
    return sum;
}

typedef struct array {
    float *host;
    void *device;
    size_t n;
} array;

static array new_array(n2ce_ctx *ctx, n2_device *gpu, size_t n, uint32_t seed) {
    array a = {calloc(n, sizeof(float)), NULL, n};
    assert_non_null(a.host);
    for (size_t i = 0; i < n; i++) a.host[i] = number((uint32_t)i + seed);
    if (gpu->alloc(gpu, ctx, n * sizeof(float), &a.device) != N2CE_OK ||
        gpu->upload(gpu, ctx, a.device, a.host, n * sizeof(float)) != N2CE_OK)
        fail_msg("%s", n2ce_errmsg(ctx));
    return a;
}

static void free_array(n2_device *gpu, array *a) {
    gpu->free(gpu, a->device);
    free(a->host);
}

static void compare(const n2_convolution *c, const float *x, const float *w, const float *y) {
    const int height = n2_convolved(c->height, c->rows, c);
    const int width = n2_convolved(c->width, c->columns, c);
    const double allowed = (c->strict ? 1e-5 : 4e-3) * sqrt(c->channels * c->rows * c->columns);
    for (int at = 0; at < c->n * c->filters * height * width; at++) {
        const int j = at % width, i = at / width % height, f = at / width / height % c->filters;
        const int p = at / width / height / c->filters;
        assert_close((double)y[at], pixel(c, x, w, p, f, i, j), 0, allowed);
    }
}

static n2_cudnn *open_or_skip(n2ce_ctx *ctx, const n2_backend *backend) {
    char about[256];
    n2_cudnn *d;
    if (n2_cudnn_open(ctx, backend, &d, about, sizeof about) != N2CE_OK)
        fail_msg("%s", n2ce_errmsg(ctx));
    printf("%s\n", about);
    if (!d) exit(77);
    return d;
}

static void check(const n2_convolution *c) {
    const n2_backend *backend = open_cuda_or_skip(c->strict);
    n2_device *gpu = backend->device;
    n2ce_ctx *ctx = new_ctx(1);
    n2_cudnn *d = open_or_skip(ctx, backend);
    const size_t pixels =
        (size_t)(n2_convolved(c->height, c->rows, c) * n2_convolved(c->width, c->columns, c));
    array x = new_array(ctx, gpu, (size_t)(c->n * c->channels * c->height * c->width), 1);
    array w = new_array(ctx, gpu, (size_t)(c->filters * c->channels * c->rows * c->columns), 2);
    array y = new_array(ctx, gpu, (size_t)(c->n * c->filters) * pixels, 3);
    if (n2_cudnn_forward(ctx, d, c, x.device, w.device, y.device) != N2CE_OK ||
        gpu->download(gpu, ctx, y.host, y.device, y.n * sizeof(float)) != N2CE_OK)
        fail_msg("%s", n2ce_errmsg(ctx));
    compare(c, x.host, w.host, y.host);
    free_array(gpu, &x);
    free_array(gpu, &w);
    free_array(gpu, &y);
    n2_cudnn_close(d);
    n2ce_ctx_free(ctx);
}

static void a_convolution_is_the_sum_it_stands_for(void **state) {
    (void)state;
    check(&(n2_convolution){2, 16, 12, 10, 32, 3, 3, 1, 1, true});
    check(&(n2_convolution){2, 3, 9, 11, 5, 3, 3, 1, 2, true});
}

static void a_convolution_in_tf32_nearly(void **state) {
    (void)state;
    check(&(n2_convolution){2, 16, 12, 10, 32, 3, 3, 1, 1, false});
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_convolution_is_the_sum_it_stands_for),
        cmocka_unit_test(a_convolution_in_tf32_nearly),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
