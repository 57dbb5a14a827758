/* Kernel file, compiled once per instruction set. Convolutions as products: what a pixel of y sees
 * of x is a patch [rows x columns x c_in], a row of a matrix; slices of some lie in scratch memory
 * at a time. Sums are taken in the order of a patch, or of pixels, however the work is dealt out.
 * Those that can be done with fewer multiplications are (winograd.h). */
#include "conv_patches.h"
#include "cpu_kernels.h"
#include "cpu_product.h"
#include "winograd_kernels.h"

#include "base/lanes.h"

#include <string.h>

#define DECLARE(NAME, ...) n2_kernel N2_ISA(n2_cpu_##NAME);
N2_FAST_CONV(DECLARE)
#undef DECLARE

#define OUT(c)   ((float *)(c)->out.data)
#define IN(c, k) ((const float *)(c)->in[k].data)

typedef float uvec __attribute__((vector_size(N2_VEC_BYTES), may_alias, aligned(4)));
#define VEC(p) (*(const uvec *)(const void *)(p))
enum { LANES = N2_PART_LANES, FEW = 4 };

static int64_t at_least(int64_t a, int64_t b) { return a > b ? a : b; }
static int64_t at_most(int64_t a, int64_t b) { return a < b ? a : b; }

/* A part of n items: those of its number, in runs of `unit`. */
static n2_range share(const n2_call *c, int64_t n, int64_t unit) {
    const int64_t units = n2_ratio_up(n, unit);
    return (n2_range){at_most(units * c->part / c->parts * unit, n),
                      at_most(units * (c->part + 1) / c->parts * unit, n)};
}

/* ---- patches ------------------------------------------------------------- */

/* One line of a patch: `before` of its numbers are outside the picture, `inside` lie on end from
 * `at` of x on, the others are outside again. */
typedef struct line {
    int64_t before, inside, at;
} line;

/* A pixel of y. */
typedef struct pixel {
    int64_t n, row, column;
} pixel;

static pixel pixel_of(const n2_conv *v, int64_t k) {
    const int64_t row = k / v->ow, n = row / v->oh;
    return (pixel){n, row - n * v->oh, k - row * v->ow};
}

static pixel next_pixel(const n2_conv *v, pixel p) {
    if (++p.column < v->ow) return p;
    p.column = 0;
    if (++p.row < v->oh) return p;
    return (pixel){p.n + 1, 0, 0};
}

/* Line r of the patch of a pixel of y. */
static line line_of(const n2_conv *v, pixel p, int64_t r) {
    const int64_t i = p.row * v->window.stride_y - v->window.top + r;
    const int64_t j = p.column * v->window.stride_x - v->window.left;
    int64_t begin = at_least(-j, 0), end = at_most(v->w - j, v->columns);
    if (i < 0 || i >= v->h || end <= begin) begin = end = v->columns;
    return (line){begin * v->c_in, (end - begin) * v->c_in,
                  end > begin ? ((p.n * v->h + i) * v->w + j + begin) * v->c_in : 0};
}

/* Numbers [from, to) of a line. */
static float *take_line(const float *x, line l, int64_t from, int64_t to, float *out) {
    const int64_t first = at_most(at_least(l.before, from), to);
    const int64_t last = at_least(at_most(l.before + l.inside, to), first);
    if (first > from) memset(out, 0, (size_t)(first - from) * sizeof *out);
    memcpy(out + (first - from), x + l.at + (first - l.before),
           (size_t)(last - first) * sizeof *out);
    if (to > last) memset(out + (last - from), 0, (size_t)(to - last) * sizeof *out);
    return out + (to - from);
}

/* Numbers [slice.begin, slice.end) of the patches of some pixels, a row each. */
static void take_patches(const n2_conv *v, const float *x, n2_range pixels, n2_range slice,
                         float *to) {
    const int64_t length = v->columns * v->c_in, first = slice.begin / length;
    pixel p = pixel_of(v, pixels.begin);
    for (int64_t k = pixels.begin; k < pixels.end; k++, p = next_pixel(v, p))
        for (int64_t r = first; r * length < slice.end; r++)
            to = take_line(x, line_of(v, p, r), at_least(slice.begin - r * length, 0),
                           at_most(slice.end - r * length, length), to);
}

static void add_patches(const n2_conv *v, const float *from, int64_t first, int64_t n, float *x) {
    pixel p = pixel_of(v, first);
    for (int64_t k = 0; k < n; k++, p = next_pixel(v, p))
        for (int64_t r = 0; r < v->rows; r++, from += v->columns * v->c_in) {
            const line l = line_of(v, p, r);
            for (int64_t i = 0; i < l.inside; i++) x[l.at + i] += from[l.before + i];
        }
}

static bool is_padded(const n2_conv *v) {
    const n2_window *w = &v->window;
    return w->top || w->bottom || w->left || w->right;
}

/* Patches lie on end in x: they are its pixels, or whole pictures. */
static bool is_dense(const n2_conv *v) {
    const n2_window *w = &v->window;
    const bool pixels = v->rows == 1 && v->columns == 1 && w->stride_y == 1 && w->stride_x == 1;
    return !is_padded(v) && (pixels || (v->rows == v->h && v->columns == v->w));
}

/* Rows of a matrix that are not too far apart for the cache are read where they lie. */
static bool is_near(int64_t apart) { return apart <= 2 * N2_PATCH_SLICE; }

/* A slice of patches: where it is. */
static strided patches(const n2_call *c, const n2_conv *v, n2_range pixels, n2_range slice) {
    const int64_t size = n2_patch_size(v);
    if (is_dense(v) && is_near(size))
        return (strided){IN(c, 0) + pixels.begin * size + slice.begin, size, 1};
    take_patches(v, IN(c, 0), pixels, slice, c->work);
    return (strided){c->work, slice.end - slice.begin, 1};
}

/* ---- pictures ------------------------------------------------------------ */

/* out [rows x columns] = or += a by rows [slice] and `columns` of a matrix, whose rows are `apart`;
 * panels of it are laid into `panel`. */
static void by_panels(int64_t rows, strided a, const float *matrix, int64_t apart, n2_range slice,
                      n2_range columns, float *out, float *panel) {
    const int64_t depth = slice.end - slice.begin;
    for (int64_t j = columns.begin; j < columns.end; j += N2_PATCH_PANEL) {
        const int64_t n = at_most(columns.end - j, N2_PATCH_PANEL);
        const float *from = matrix + slice.begin * apart + j;
        for (int64_t k = 0; k < depth; k++)
            memcpy(panel + k * n, from + k * apart, (size_t)n * sizeof *panel);
        N2_ISA(n2_cpu_product_in)
        (rows, n, depth, a, panel, n, out + j, apart, slice.begin > 0);
    }
}

/* Parts are blocks of pixels, or, if kernels outweigh pictures, of channels. */
static void split_outputs(const n2_call *c, int64_t pixels, int64_t channels, n2_range *some,
                          n2_range *columns) {
    const bool by_channels = channels > pixels;
    *some = by_channels ? (n2_range){0, pixels} : share(c, pixels, N2_PATCHES);
    *columns = by_channels ? share(c, channels, N2_PATCH_PANEL) : (n2_range){0, channels};
}

/* Rows of the kernel become columns: [c_out x rows]. */
static void turn(const float *kernel, int64_t rows, int64_t c_out, n2_range slice, float *to) {
    enum { BLOCK = 16 };
    for (int64_t o = slice.begin; o < slice.end; o += BLOCK)
        for (int64_t i = 0; i < rows; i++)
            for (int64_t l = o; l < at_most(o + BLOCK, slice.end); l++)
                to[(l - slice.begin) * rows + i] = kernel[i * c_out + l];
}

/* out [n] = or += a [k] times rows of b [n x k], n at most FEW: vectors go along k. */
N2_CPU_INLINE void dots(int n, int64_t k, const float *a, const float *b, float *out, bool add) {
    n2_vec sum[FEW] = {{0}};
    float rest[FEW] = {0};
    int64_t i = 0;
    for (; i + LANES <= k; i += LANES)
        for (int o = 0; o < n; o++) sum[o] += VEC(a + i) * VEC(b + o * k + i);
    for (; i < k; i++)
        for (int o = 0; o < n; o++) rest[o] += a[i] * b[o * k + i];
    for (int o = 0; o < n; o++) {
        for (int half = LANES / 2; half > 0; half /= 2)
            for (int l = 0; l < half; l++) sum[o][l] += sum[o][l + half];
        out[o] = add ? out[o] + (rest[o] + sum[o][0]) : rest[o] + sum[o][0];
    }
}

static void few_dots(int64_t n, int64_t k, const float *a, const float *b, float *out, bool add) {
    if (n == 1)
        dots(1, k, a, b, out, add);
    else if (n == 2)
        dots(2, k, a, b, out, add);
    else if (n == 3)
        dots(3, k, a, b, out, add);
    else
        dots(4, k, a, b, out, add);
}

/* Few channels out would leave vectors of them empty. */
static void few_outputs(const n2_call *c, const n2_conv *v, n2_range pixels, n2_range slice,
                        float *panel) {
    const int64_t depth = slice.end - slice.begin;
    const strided a = patches(c, v, pixels, slice);
    turn(IN(c, 1) + slice.begin * v->c_out, depth, v->c_out, (n2_range){0, v->c_out}, panel);
    for (int64_t p = 0; p < pixels.end - pixels.begin; p++)
        few_dots(v->c_out, depth, a.data + p * a.row, panel, OUT(c) + (pixels.begin + p) * v->c_out,
                 slice.begin > 0);
}

void N2_ISA(n2_cpu_conv2d)(const n2_call *c) {
    const n2_conv v = n2_conv_of(c);
    const n2_winograd g = n2_winograd_of(N2_OP_conv2d, &v);
    if (g.r) {
        N2_ISA(n2_winograd_conv2d)(c, &v, &g);
        return;
    }
    const int64_t size = n2_patch_size(&v);
    float *panel = (float *)c->work + N2_PATCHES * N2_PATCH_SLICE;
    n2_range some, columns;
    split_outputs(c, v.n * v.oh * v.ow, v.c_out, &some, &columns);
    for (int64_t p = some.begin; p < some.end; p += N2_PATCHES)
        for (int64_t k = 0; k < size; k += N2_PATCH_SLICE) {
            const n2_range pixels = {p, at_most(p + N2_PATCHES, some.end)};
            const n2_range slice = {k, at_most(k + N2_PATCH_SLICE, size)};
            if (v.c_out <= FEW)
                few_outputs(c, &v, pixels, slice, panel);
            else
                by_panels(pixels.end - p, patches(c, &v, pixels, slice), IN(c, 1), v.c_out, slice,
                          columns, OUT(c) + p * v.c_out, panel);
        }
}

/* dy times the turned kernel are patches that lie on end in x. */
static void dense_input(const n2_call *c, const n2_conv *v) {
    enum { ROWS = 4 * N2_PATCHES };
    const int64_t size = n2_patch_size(v);
    n2_range some, columns;
    split_outputs(c, v->n * v->oh * v->ow, size, &some, &columns);
    for (int64_t p = some.begin; p < some.end; p += ROWS)
        for (int64_t j = columns.begin; j < columns.end; j += N2_PATCH_PANEL)
            for (int64_t o = 0; o < v->c_out; o += N2_PATCH_SLICE) {
                const int64_t n = at_most(columns.end - j, N2_PATCH_PANEL);
                const n2_range slice = {o, at_most(o + N2_PATCH_SLICE, v->c_out)};
                const strided a = {IN(c, 0) + p * v->c_out + o, v->c_out, 1};
                turn(IN(c, 1) + j * v->c_out, n, v->c_out, slice, c->work);
                N2_ISA(n2_cpu_product_in)
                (at_most(some.end - p, ROWS), n, slice.end - o, a, c->work, n,
                 OUT(c) + p * size + j, size, o > 0);
            }
}

/* Patches of some pictures are made and added. */
static void add_input(const n2_call *c, const n2_conv *v, n2_range pictures) {
    const int64_t size = n2_patch_size(v), of_picture = v->oh * v->ow, x = v->h * v->w * v->c_in;
    float *turned = c->work, *made = turned + size * v->c_out;
    turn(IN(c, 1), size, v->c_out, (n2_range){0, v->c_out}, turned);
    memset(OUT(c) + pictures.begin * x, 0,
           (size_t)((pictures.end - pictures.begin) * x) * sizeof(float));
    const int64_t end = pictures.end * of_picture;
    for (int64_t p = pictures.begin * of_picture; p < end; p += N2_PATCHES) {
        const int64_t n = at_most(end - p, N2_PATCHES);
        const strided a = {IN(c, 0) + p * v->c_out, v->c_out, 1};
        N2_ISA(n2_cpu_product)(n, size, v->c_out, a, turned, made, false);
        add_patches(v, made, p, n, OUT(c));
    }
}

void N2_ISA(n2_cpu_conv2d_input)(const n2_call *c) {
    const n2_conv v = n2_conv_of(c);
    const n2_winograd g = n2_winograd_of(N2_OP_conv2d_input, &v);
    if (g.r) {
        N2_ISA(n2_winograd_conv2d_input)(c, &v, &g);
    } else if (is_dense(&v)) {
        dense_input(c, &v);
    } else {
        const n2_range pictures = share(c, v.n, 1);
        if (pictures.end > pictures.begin) add_input(c, &v, pictures);
    }
}

/* ---- kernels ------------------------------------------------------------- */

/* Rows of dy in panels of columns. */
static void take_panels(const float *dy, int64_t rows, int64_t columns, float *to) {
    for (int64_t j = 0; j < columns; j += N2_PATCH_PANEL) {
        const int64_t n = at_most(columns - j, N2_PATCH_PANEL);
        for (int64_t i = 0; i < rows; i++, to += n)
            memcpy(to, dy + i * columns + j, (size_t)n * sizeof *to);
    }
}

/* The same for few channels out: their rows by patches, and the result is turned. */
static void add_few_products(const n2_call *c, const n2_conv *v, n2_range pixels, n2_range slice,
                             strided by_rows, bool add) {
    const int64_t n = v->c_out, rows = slice.end - slice.begin;
    float made[FEW * N2_PATCH_SLICE], *out = OUT(c) + slice.begin * n;
    const strided dy = {IN(c, 1) + pixels.begin * n, 1, n};
    N2_ISA(n2_cpu_product_in)
    (n, rows, pixels.end - pixels.begin, dy, by_rows.data, by_rows.row, made, rows, false);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t o = 0; o < n; o++)
            out[i * n + o] = add ? out[i * n + o] + made[o * rows + i] : made[o * rows + i];
}

/* out [slice x c_out] = or += patches, turned, by panels of dy. */
static void add_products(const n2_call *c, const n2_conv *v, n2_range pixels, n2_range slice,
                         const float *panels, bool add) {
    const int64_t depth = pixels.end - pixels.begin;
    const strided by_rows = patches(c, v, pixels, slice), a = {by_rows.data, 1, by_rows.row};
    if (v->c_out <= FEW) {
        add_few_products(c, v, pixels, slice, by_rows, add);
        return;
    }
    for (int64_t j = 0; j < v->c_out; j += N2_PATCH_PANEL) {
        const int64_t n = at_most(v->c_out - j, N2_PATCH_PANEL);
        N2_ISA(n2_cpu_product_in)
        (slice.end - slice.begin, n, depth, a, panels + j * depth, n,
         OUT(c) + slice.begin * v->c_out + j, v->c_out, add);
    }
}

/* A part is some rows of the kernel. */
void N2_ISA(n2_cpu_conv2d_weight)(const n2_call *c) {
    enum { ROWS = 48 };
    const n2_conv v = n2_conv_of(c);
    const n2_winograd g = n2_winograd_of(N2_OP_conv2d_weight, &v);
    if (g.r) {
        N2_ISA(n2_winograd_conv2d_weight)(c, &v, &g);
        return;
    }
    const int64_t n = v.n * v.oh * v.ow;
    const n2_range rows = share(c, n2_patch_size(&v), ROWS);
    float *panels = (float *)c->work + N2_PATCHES * N2_PATCH_SLICE;
    if (n == 0 && !c->add)
        memset(OUT(c) + rows.begin * v.c_out, 0,
               (size_t)((rows.end - rows.begin) * v.c_out) * sizeof(float));
    for (int64_t p = 0; rows.end > rows.begin && p < n; p += N2_PATCHES) {
        const n2_range pixels = {p, at_most(p + N2_PATCHES, n)};
        take_panels(IN(c, 1) + p * v.c_out, pixels.end - p, v.c_out, panels);
        for (int64_t k = rows.begin; k < rows.end; k += N2_PATCH_SLICE)
            add_products(c, &v, pixels, (n2_range){k, at_most(k + N2_PATCH_SLICE, rows.end)},
                         panels, c->add || p > 0);
    }
}
