/* Kernel file, compiled once per instruction set. Convolutions as products: what a pixel of y sees
 * of x is a patch [rows x columns x c_in], a row of a matrix; a hundred or so lie in scratch memory
 * at a time. Sums are taken in the order of pixels, however pictures are dealt out. */
#include "conv_patches.h"
#include "cpu_kernels.h"
#include "cpu_product.h"
#include "winograd_kernels.h"

#include <string.h>

#define DECLARE(NAME, ...) n2_kernel N2_ISA(n2_cpu_##NAME);
N2_FAST_CONV(DECLARE)
#undef DECLARE

#define OUT(c)   ((float *)(c)->out.data)
#define IN(c, k) ((const float *)(c)->in[k].data)

/* One line of a patch: `before` and `after` of its numbers are outside the picture, the others lie
 * on end from `at` of x on. */
typedef struct line {
    int64_t before, inside, after, at;
} line;

/* Line r of the patch of a pixel of y. */
static line line_of(const n2_conv *v, int64_t pixel, int64_t r) {
    const int64_t column = pixel % v->ow, row = pixel / v->ow % v->oh, n = pixel / v->ow / v->oh;
    const int64_t i = row * v->window.stride_y - v->window.top + r;
    const int64_t j = column * v->window.stride_x - v->window.left;
    int64_t begin = j < 0 ? -j : 0, end = v->w - j < v->columns ? v->w - j : v->columns;
    if (i < 0 || i >= v->h || end <= begin) begin = end = v->columns;
    return (line){begin * v->c_in, (end - begin) * v->c_in, (v->columns - end) * v->c_in,
                  end > begin ? ((n * v->h + i) * v->w + j + begin) * v->c_in : 0};
}

static void take_patches(const n2_conv *v, const float *x, int64_t first, int64_t n, float *to) {
    for (int64_t p = first; p < first + n; p++)
        for (int64_t r = 0; r < v->rows; r++) {
            const line l = line_of(v, p, r);
            memset(to, 0, (size_t)l.before * sizeof *to);
            to += l.before;
            memcpy(to, x + l.at, (size_t)l.inside * sizeof *to);
            to += l.inside;
            memset(to, 0, (size_t)l.after * sizeof *to);
            to += l.after;
        }
}

static void add_patches(const n2_conv *v, const float *from, int64_t first, int64_t n, float *x) {
    for (int64_t p = first; p < first + n; p++)
        for (int64_t r = 0; r < v->rows; r++, from += v->columns * v->c_in) {
            const line l = line_of(v, p, r);
            for (int64_t k = 0; k < l.inside; k++) x[l.at + k] += from[l.before + k];
        }
}

/* Pixels of x are the patches. */
static bool is_pointwise(const n2_conv *v) {
    const n2_window *w = &v->window;
    return v->rows == 1 && v->columns == 1 && w->stride_y == 1 && w->stride_x == 1 &&
           v->h == v->oh && v->w == v->ow && w->top == 0 && w->left == 0;
}

/* Patches from `first` on: where they are. */
static const float *patches(const n2_call *c, const n2_conv *v, int64_t first, int64_t n) {
    if (is_pointwise(v)) return IN(c, 0) + first * v->c_in;
    take_patches(v, IN(c, 0), first, n, c->work);
    return c->work;
}

void N2_ISA(n2_cpu_conv2d)(const n2_call *c) {
    const n2_conv v = n2_conv_of(c);
    const n2_winograd g = n2_winograd_of(N2_OP_conv2d, &v);
    if (g.r) {
        N2_ISA(n2_winograd_conv2d)(c, &v, &g);
        return;
    }
    const int64_t size = n2_patch_size(&v), step = n2_patches_at_once(&v);
    const int64_t pixels = v.n * v.oh * v.ow;
    for (int64_t p = 0; p < pixels; p += step) {
        const int64_t n = pixels - p < step ? pixels - p : step;
        const strided a = {patches(c, &v, p, n), size, 1};
        N2_ISA(n2_cpu_product)(n, v.c_out, size, a, IN(c, 1), OUT(c) + p * v.c_out, false);
    }
}

void N2_ISA(n2_cpu_conv2d_input)(const n2_call *c) {
    const n2_conv v = n2_conv_of(c);
    const n2_winograd g = n2_winograd_of(N2_OP_conv2d_input, &v);
    if (g.r) {
        N2_ISA(n2_winograd_conv2d_input)(c, &v, &g);
        return;
    }
    const int64_t size = n2_patch_size(&v), step = n2_patches_at_once(&v);
    const int64_t pixels = v.n * v.oh * v.ow;
    float *turned = c->work, *made = turned + size * v.c_out;
    for (int64_t i = 0; i < size; i++)
        for (int64_t o = 0; o < v.c_out; o++) turned[o * size + i] = IN(c, 1)[i * v.c_out + o];
    memset(OUT(c), 0, (size_t)n2_elements(c->out.shape) * sizeof(float));
    for (int64_t p = 0; p < pixels; p += step) {
        const int64_t n = pixels - p < step ? pixels - p : step;
        const strided a = {IN(c, 0) + p * v.c_out, v.c_out, 1};
        float *to = is_pointwise(&v) ? OUT(c) + p * v.c_in : made;
        N2_ISA(n2_cpu_product)(n, size, v.c_out, a, turned, to, false);
        if (to == made) add_patches(&v, made, p, n, OUT(c));
    }
}

void N2_ISA(n2_cpu_conv2d_weight)(const n2_call *c) {
    const n2_conv v = n2_conv_of(c);
    const n2_winograd g = n2_winograd_of(N2_OP_conv2d_weight, &v);
    if (g.r) {
        N2_ISA(n2_winograd_conv2d_weight)(c, &v, &g);
        return;
    }
    const int64_t size = n2_patch_size(&v), step = n2_patches_at_once(&v);
    const int64_t pixels = v.n * v.oh * v.ow;
    if (!c->add) memset(OUT(c), 0, (size_t)(size * v.c_out) * sizeof(float));
    for (int64_t p = 0; p < pixels; p += step) {
        const int64_t n = pixels - p < step ? pixels - p : step;
        const strided a = {patches(c, &v, p, n), 1, size};
        N2_ISA(n2_cpu_product)(size, v.c_out, n, a, IN(c, 1) + p * v.c_out, OUT(c), true);
    }
}
