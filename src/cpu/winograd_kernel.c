/* Kernel file, compiled once per instruction set. Convolutions by Winograd's transforms
 * (winograd.h): pictures' tiles and the kernel are transformed, multiplied channel by channel,
 * which is t t matrix products, and transformed back. The transforms of one axis are those of the
 * points 0, 1, infinity (t = 3) and 0, 1, -1, 2, -2, infinity (t = 6); vectors are channels. */
#include "cpu_kernels.h"
#include "cpu_product.h"
#include "winograd.h"
#include "winograd_kernels.h"

#include "base/lanes.h"

#include <string.h>

#define INLINE   N2_CPU_INLINE
#define OUT(c)   ((float *)(c)->out.data)
#define IN(c, k) ((const float *)(c)->in[k].data)

typedef float uvec __attribute__((vector_size(N2_VEC_BYTES), may_alias, aligned(4)));
#define VEC(p)        (*(const uvec *)(const void *)(p))
#define STORE(p, vec) (*(uvec *)(void *)(p) = (vec))

enum { LANES = N2_PART_LANES, PANEL = 32, SLICE = 256, MOST_T = 6, MOST_TAPS = 9 };

/* ---- along one axis ------------------------------------------------------ */

#define NEAR  0.70710678f
#define FAR   1.41421356f
#define THIRD 0.33333333f
#define NINTH 0.11111111f

/* t numbers of a picture. */
INLINE void take(int t, const n2_vec *d, n2_vec *o) {
    if (t == 3) {
        o[0] = d[0] - d[1];
        o[1] = d[1];
        o[2] = d[2] - d[1];
        return;
    }
    if (t == 5) {
        o[0] = d[3] + 1.5f * (d[2] - d[1]) - d[0];
        o[1] = d[3] + 2.5f * d[2] + d[1];
        o[2] = d[3] + d[2] - 2.0f * d[1];
        o[3] = d[3] - 0.5f * (d[2] + d[1]);
        o[4] = d[4] + 1.5f * (d[3] - d[2]) - d[1];
        return;
    }
    const n2_vec even = d[4] - 2.0f * d[2], odd = NEAR * (d[3] - 2.0f * d[1]);
    const n2_vec far_even = d[4] - 0.5f * d[2], far_odd = FAR * (d[3] - 0.5f * d[1]);
    o[0] = d[0] - 2.5f * d[2] + d[4];
    o[1] = even + odd;
    o[2] = even - odd;
    o[3] = far_even + far_odd;
    o[4] = far_even - far_odd;
    o[5] = d[1] - 2.5f * d[3] + d[5];
}

/* t products to m outputs. */
INLINE void give(int t, const n2_vec *d, n2_vec *o) {
    if (t == 3) {
        o[0] = d[0] + d[1];
        o[1] = d[1] + d[2];
        return;
    }
    if (t == 5) {
        o[0] = d[0] + d[1] + d[2] + d[3];
        o[1] = d[1] - 0.5f * d[2] - 2.0f * d[3];
        o[2] = d[1] + 0.25f * d[2] + 4.0f * d[3];
        o[3] = d[1] - 0.125f * d[2] - 8.0f * d[3] + d[4];
        return;
    }
    const n2_vec near = d[1] + d[2], near_odd = d[1] - d[2];
    const n2_vec far = d[3] + d[4], far_odd = d[3] - d[4];
    o[0] = d[0] + near + far;
    o[1] = NEAR * near_odd + FAR * far_odd;
    o[2] = 0.5f * near + 2.0f * far;
    o[3] = 0.5f * NEAR * near_odd + 2.0f * FAR * far_odd + d[5];
}

/* m outputs' gradients to t: `give`, transposed. */
INLINE void spread(int t, const n2_vec *d, n2_vec *o) {
    if (t == 3) {
        o[0] = d[0];
        o[1] = d[0] + d[1];
        o[2] = d[1];
        return;
    }
    if (t == 5) {
        o[0] = d[0];
        o[1] = d[0] + d[1] + d[2] + d[3];
        o[2] = d[0] - 0.5f * d[1] + 0.25f * d[2] - 0.125f * d[3];
        o[3] = d[0] - 2.0f * d[1] + 4.0f * d[2] - 8.0f * d[3];
        o[4] = d[3];
        return;
    }
    const n2_vec even = d[0] + 0.5f * d[2], odd = NEAR * (d[1] + 0.5f * d[3]);
    const n2_vec far_even = d[0] + 2.0f * d[2], far_odd = FAR * (d[1] + 2.0f * d[3]);
    o[0] = d[0];
    o[1] = even + odd;
    o[2] = even - odd;
    o[3] = far_even + far_odd;
    o[4] = far_even - far_odd;
    o[5] = d[3];
}

/* r taps of a kernel to t. */
INLINE void widen(int t, const n2_vec *d, n2_vec *o) {
    if (t == 3) {
        o[0] = d[0];
        o[1] = d[0] + d[1];
        o[2] = d[1];
        return;
    }
    if (t == 5) {
        o[0] = -d[0];
        o[1] = 2 * NINTH * (d[0] + d[1]);
        o[2] = 8 * NINTH * (d[0] - 0.5f * d[1]);
        o[3] = NINTH * (2.0f * d[1] - d[0]);
        o[4] = d[1];
        return;
    }
    const n2_vec even = -2 * THIRD * (d[0] + 0.5f * d[2]), odd = -2 * THIRD * NEAR * d[1];
    const n2_vec far_even = THIRD * (0.5f * d[0] + d[2]), far_odd = 0.5f * THIRD * FAR * d[1];
    o[0] = d[0];
    o[1] = even + odd;
    o[2] = even - odd;
    o[3] = far_even + far_odd;
    o[4] = far_even - far_odd;
    o[5] = d[2];
}

/* t sums to r taps' gradients: `widen`, transposed. */
INLINE void narrow(int t, const n2_vec *d, n2_vec *o) {
    if (t == 3) {
        o[0] = d[0] + d[1];
        o[1] = d[1] + d[2];
        return;
    }
    if (t == 5) {
        o[0] = NINTH * (2.0f * d[1] + 8.0f * d[2] - d[3]) - d[0];
        o[1] = 2 * NINTH * (d[1] - 2.0f * d[2] + d[3]) + d[4];
        return;
    }
    const n2_vec near = THIRD * (d[1] + d[2]), near_odd = -2 * THIRD * NEAR * (d[1] - d[2]);
    const n2_vec far = THIRD * (d[3] + d[4]), far_odd = 0.5f * THIRD * FAR * (d[3] - d[4]);
    o[0] = d[0] - 2.0f * near + 0.5f * far;
    o[1] = near_odd + far_odd;
    o[2] = far - near + d[5];
}

/* Along both axes: d [from x from] becomes o [to x to]. */
#define BOTH(TRANSFORM, t, from, to, d, o)                                  \
    do {                                                                    \
        n2_vec half_[MOST_T][MOST_T];                                       \
        for (int j_ = 0; j_ < (from); j_++) {                               \
            n2_vec column_[MOST_T], made_[MOST_T];                          \
            for (int i_ = 0; i_ < (from); i_++) column_[i_] = (d)[i_][j_];  \
            TRANSFORM(t, column_, made_);                                   \
            for (int i_ = 0; i_ < (to); i_++) half_[i_][j_] = made_[i_];    \
        }                                                                   \
        for (int i_ = 0; i_ < (to); i_++) TRANSFORM(t, half_[i_], (o)[i_]); \
    } while (0)

/* A function of constants t and m, or r, for the size at hand: compilers unroll its loops. */
#define BY_SIZE(g, T3, T5, T6) \
    switch ((g)->t) {          \
    case 3:                    \
        T3;                    \
        break;                 \
    case 5:                    \
        T5;                    \
        break;                 \
    default:                   \
        T6;                    \
    }
#define BY_SIZE_T(g, F, ...) BY_SIZE(g, F(3, __VA_ARGS__), F(5, __VA_ARGS__), F(6, __VA_ARGS__))
#define BY_SIZE_M(g, F, ...) \
    BY_SIZE(g, F(3, 2, __VA_ARGS__), F(5, 4, __VA_ARGS__), F(6, 4, __VA_ARGS__))
#define BY_SIZE_R(g, F, ...) \
    BY_SIZE(g, F(3, 2, __VA_ARGS__), F(5, 2, __VA_ARGS__), F(6, 3, __VA_ARGS__))

/* ---- where things are ---------------------------------------------------- */

/* One axis of a phase: output i is at out_from + out_step i and reads, for tap u of r, the source
 * at from + step (i + u), times the kernel's tap tap_from + tap_step u. */
typedef struct axis {
    int64_t from, step, size;              /* of the source */
    int64_t out_from, out_step, out_count; /* of the output */
    int64_t tap_from, tap_step;
} axis;

typedef struct phase {
    axis y, x;
} phase;

static axis forward_axis(int64_t size, int64_t count, int64_t before, int s, int64_t a) {
    return (axis){a - before, s, size, 0, 1, count, a, s};
}

/* Pixels of x whose distance from the padded edge has the remainder b. */
static axis input_axis(int64_t size, int64_t count, int64_t before, int s, int64_t b, int r) {
    const int64_t first = n2_ratio_up(before > b ? before - b : 0, s), at = s * first + b - before;
    const int64_t outputs = size > at ? n2_ratio_up(size - at, s) : 0;
    return (axis){first - (r - 1), 1, count, at, s, outputs, b + (int64_t)s * (r - 1), -s};
}

static phase forward_phase(const n2_conv *v, int s, int k) {
    return (phase){forward_axis(v->h, v->oh, v->window.top, s, k / s),
                   forward_axis(v->w, v->ow, v->window.left, s, k % s)};
}

static phase input_phase(const n2_conv *v, const n2_winograd *g, int k) {
    return (phase){input_axis(v->h, v->oh, v->window.top, g->s, k / g->s, g->r),
                   input_axis(v->w, v->ow, v->window.left, g->s, k % g->s, g->r)};
}

/* A tile: its picture, and its first output. */
typedef struct place {
    int64_t picture, y, x;
} place;

INLINE place place_of(const n2_winograd *g, int64_t tile) {
    const int64_t row = tile / g->across, picture = row / g->down;
    return (place){picture, (row - picture * g->down) * g->m, (tile - row * g->across) * g->m};
}

/* Transformed pictures [t t][tiles x channels], channels in slices that a product takes at once. */
typedef struct taken {
    float *data;
    int64_t apart, tiles, channels;
} taken;

INLINE float *taken_at(const taken *v, int64_t tile, int64_t channel) {
    const int64_t slice = channel / SLICE * SLICE, left = v->channels - slice;
    return v->data + slice * v->tiles + tile * (left < SLICE ? left : SLICE) + (channel - slice);
}

/* ---- transforms of pictures ---------------------------------------------- */

/* Channels [begin, end) of the source at a tile, to `channel` of v on. */
typedef struct patch {
    const float *at[MOST_T][MOST_T]; /* NULL: outside the picture */
} patch;

static patch patch_of(int t, const phase *f, place p, const float *source, int64_t pitch) {
    patch made;
    for (int i = 0; i < t; i++)
        for (int j = 0; j < t; j++) {
            const int64_t y = f->y.from + f->y.step * (p.y + i);
            const int64_t x = f->x.from + f->x.step * (p.x + j);
            const bool inside = y >= 0 && y < f->y.size && x >= 0 && x < f->x.size;
            made.at[i][j] =
                inside ? source + ((p.picture * f->y.size + y) * f->x.size + x) * pitch : NULL;
        }
    return made;
}

INLINE void take_tile(int t, const patch *from, n2_range channels, const taken *v, int64_t tile,
                      int64_t to) {
    for (int64_t c = channels.begin; c < channels.end; c += LANES) {
        n2_vec d[MOST_T][MOST_T], o[MOST_T][MOST_T];
        for (int i = 0; i < t; i++)
            for (int j = 0; j < t; j++)
                d[i][j] = from->at[i][j] ? VEC(from->at[i][j] + c) : (uvec){0};
        BOTH(take, t, t, t, d, o);
        float *at = taken_at(v, tile, to + c - channels.begin);
        for (int i = 0; i < t; i++)
            for (int j = 0; j < t; j++) STORE(at + (i * t + j) * v->apart, o[i][j]);
    }
}

static void take_tiles(const n2_winograd *g, const phase *f, const float *source, int64_t pitch,
                       n2_range channels, n2_range tiles, const taken *v, int64_t to) {
    for (int64_t k = tiles.begin; k < tiles.end; k++) {
        const patch from = patch_of(g->t, f, place_of(g, k), source, pitch);
        BY_SIZE_T(g, take_tile, &from, channels, v, k - tiles.begin, to)
    }
}

/* Where output (i, j) of a tile is; NULL: beyond the edge. */
INLINE float *output_at(const phase *f, place p, int i, int j, int64_t height, int64_t width,
                        int64_t pitch, float *out) {
    if (p.y + i >= f->y.out_count || p.x + j >= f->x.out_count) return NULL;
    const int64_t y = f->y.out_from + f->y.out_step * (p.y + i);
    const int64_t x = f->x.out_from + f->x.out_step * (p.x + j);
    return out + ((p.picture * height + y) * width + x) * pitch;
}

/* Products [t t][tiles x columns] of a call, and where they go: pictures of `height` x `width` with
 * `pitch` channels, from `out` on. */
typedef struct made {
    float *data;
    int64_t apart, columns;
    float *out;
    int64_t height, width, pitch;
} made;

INLINE void give_tile(int t, int m, const phase *f, place p, const made *w, int64_t tile) {
    float *to[MOST_T][MOST_T];
    for (int i = 0; i < m; i++)
        for (int j = 0; j < m; j++)
            to[i][j] = output_at(f, p, i, j, w->height, w->width, w->pitch, w->out);
    for (int64_t n = 0; n < w->columns; n += LANES) {
        n2_vec d[MOST_T][MOST_T], o[MOST_T][MOST_T];
        for (int i = 0; i < t; i++)
            for (int j = 0; j < t; j++)
                d[i][j] = VEC(w->data + (i * t + j) * w->apart + tile * w->columns + n);
        BOTH(give, t, t, m, d, o);
        for (int i = 0; i < m; i++)
            for (int j = 0; j < m; j++)
                if (to[i][j]) STORE(to[i][j] + n, o[i][j]);
    }
}

static void give_tiles(const n2_winograd *g, const phase *f, n2_range tiles, const made *w) {
    for (int64_t k = tiles.begin; k < tiles.end; k++)
        BY_SIZE_M(g, give_tile, f, place_of(g, k), w, k - tiles.begin)
}

/* ---- transforms of kernels ----------------------------------------------- */

/* A kernel, or its gradient, tap by tap of a phase: matrices of which rows are `pitch` apart. */
typedef struct taps {
    float *at[MOST_TAPS];
    int64_t pitch;
} taps;

static taps taps_of(const n2_winograd *g, const phase *f, const n2_conv *v, float *kernel) {
    taps k = {.pitch = v->c_out};
    for (int i = 0; i < g->r; i++)
        for (int j = 0; j < g->r; j++) {
            const int64_t y = f->y.tap_from + f->y.tap_step * i;
            const int64_t x = f->x.tap_from + f->x.tap_step * j;
            k.at[i * g->r + j] = kernel + (y * v->columns + x) * v->c_in * v->c_out;
        }
    return k;
}

/* Transformed kernels: [t t][panels of columns][depth][columns of the panel]. */
typedef struct turned {
    float *data;
    int64_t depth, columns;
} turned;

INLINE float *turned_at(const turned *u, int64_t row, int64_t column) {
    const int64_t panel = column / PANEL * PANEL, left = u->columns - panel;
    return u->data + panel * u->depth + row * (left < PANEL ? left : PANEL) + (column - panel);
}

INLINE void turn_row(int t, int r, const taps *k, int64_t row, int64_t first, const turned *u,
                     int64_t to) {
    for (int64_t n = 0; n < u->columns; n += LANES) {
        n2_vec d[MOST_T][MOST_T], o[MOST_T][MOST_T];
        for (int i = 0; i < r; i++)
            for (int j = 0; j < r; j++)
                d[i][j] = VEC(k->at[i * r + j] + row * k->pitch + first + n);
        BOTH(widen, t, r, t, d, o);
        float *at = turned_at(u, to, n);
        for (int i = 0; i < t; i++)
            for (int j = 0; j < t; j++) STORE(at + (i * t + j) * u->depth * u->columns, o[i][j]);
    }
}

/* Rows of the kernel, and columns from `first` on, to rows of u from `to` on. */
static void turn_kernel(const n2_winograd *g, const taps *k, int64_t rows, int64_t first,
                        const turned *u, int64_t to) {
    for (int64_t row = 0; row < rows; row++) BY_SIZE_R(g, turn_row, k, row, first, u, to + row)
}

/* ---- pictures ------------------------------------------------------------ */

static void multiply(const n2_winograd *g, const taken *v, const turned *u, const made *w,
                     int64_t tiles) {
    for (int64_t k = 0; k < g->t * g->t; k++)
        for (int64_t n = 0; n < u->columns; n += PANEL) {
            const int64_t columns = u->columns - n < PANEL ? u->columns - n : PANEL;
            const float *panel = u->data + k * u->depth * u->columns + n * u->depth;
            for (int64_t c = 0; c < u->depth; c += SLICE) {
                const int64_t depth = u->depth - c < SLICE ? u->depth - c : SLICE;
                const strided a = {v->data + k * v->apart + c * v->tiles, depth, 1};
                N2_ISA(n2_cpu_product_in)
                (tiles, columns, depth, a, panel + c * columns, columns, w->data + k * w->apart + n,
                 w->columns, c > 0);
            }
        }
}

/* What a call of conv2d or conv2d_input does of a phase of its result at a time. */
typedef struct job {
    const n2_winograd *g;
    const float *source;
    int64_t pitch;     /* of the source: its channels */
    const phase *from; /* as many as the depth is made of, */
    int n_from;
    phase to; /* of the result */
    n2_range tiles;
    turned u;
    taken v;
    made w;
} job;

static void run_job(job *b) {
    const n2_winograd *g = b->g;
    for (int64_t k = b->tiles.begin; k < b->tiles.end; k += g->at_once) {
        const int64_t left = b->tiles.end - k;
        const n2_range some = {k, k + (left < g->at_once ? left : g->at_once)};
        b->v.tiles = some.end - some.begin;
        for (int i = 0; i < b->n_from; i++)
            take_tiles(g, &b->from[i], b->source, b->pitch, (n2_range){0, b->pitch}, some, &b->v,
                       i * b->pitch);
        multiply(g, &b->v, &b->u, &b->w, some.end - some.begin);
        give_tiles(g, &b->to, some, &b->w);
    }
}

/* Scratch memory: transforms of the kernel, of tiles, of their products; then what is left. */
static float *lay_out(job *b, float *work, int64_t columns) {
    const n2_winograd *g = b->g;
    const int64_t square = g->t * g->t;
    b->u = (turned){work, g->depth, columns};
    work += square * g->depth * columns;
    b->v = (taken){work, n2_winograd_apart(g->at_once * g->depth), 0, g->depth};
    work += square * b->v.apart;
    b->w.data = work;
    b->w.apart = n2_winograd_apart(g->at_once * columns);
    b->w.columns = columns;
    return work + square * b->w.apart;
}

/* A call is asked for a part of its units: tiles in some groups, columns in others. */
typedef struct units {
    int64_t tile_groups, column_groups;
} units;

/* Of so many channels, in vectors, at most so many each: blocks differ by a vector. */
static int64_t blocks_of(int64_t channels, int64_t most) {
    return n2_ratio_up(channels / N2_WINOGRAD_CHANNELS, most / N2_WINOGRAD_CHANNELS);
}

static units units_of(const n2_winograd *g, int parts) {
    enum { COLUMNS = 128, TILES = 96, ENOUGH = 8 };
    if (parts == 1) return (units){1, blocks_of(g->width, g->block)};
    const int64_t block = g->block < COLUMNS ? g->block : COLUMNS;
    const int64_t columns = blocks_of(g->width, block), most = n2_ratio_up(g->tiles, TILES);
    const int64_t tiles = n2_ratio_up(ENOUGH, columns);
    return (units){tiles < most ? tiles : most, columns};
}

static n2_range tiles_of(const n2_winograd *g, const units *all, int64_t unit) {
    const int64_t k = unit / all->column_groups;
    return (n2_range){g->tiles * k / all->tile_groups, g->tiles * (k + 1) / all->tile_groups};
}

static n2_range columns_of(const n2_winograd *g, const units *all, int64_t unit) {
    const int64_t vectors = g->width / N2_WINOGRAD_CHANNELS, k = unit % all->column_groups;
    return (n2_range){vectors * k / all->column_groups * N2_WINOGRAD_CHANNELS,
                      vectors * (k + 1) / all->column_groups * N2_WINOGRAD_CHANNELS};
}

void N2_ISA(n2_winograd_conv2d)(const n2_call *c, const n2_conv *v, const n2_winograd *g) {
    phase from[4];
    for (int k = 0; k < g->s * g->s; k++) from[k] = forward_phase(v, g->s, k);
    job b = {.g = g, .source = IN(c, 0), .pitch = v->c_in, .from = from, .n_from = g->s * g->s};
    b.to = from[0];
    const units all = units_of(g, c->parts);
    const int64_t n = all.tile_groups * all.column_groups;
    for (int64_t unit = n * c->part / c->parts; unit < n * (c->part + 1) / c->parts; unit++) {
        const n2_range columns = columns_of(g, &all, unit);
        lay_out(&b, c->work, columns.end - columns.begin);
        for (int k = 0; k < b.n_from; k++) {
            const taps kernel = taps_of(g, &from[k], v, (float *)c->in[1].data);
            turn_kernel(g, &kernel, v->c_in, columns.begin, &b.u, k * v->c_in);
        }
        b.tiles = tiles_of(g, &all, unit);
        b.w.out = OUT(c) + columns.begin;
        b.w.height = v->oh, b.w.width = v->ow, b.w.pitch = v->c_out;
        run_job(&b);
    }
}

/* Columns of every tap, [c_out x columns], where the kernel has them as rows. */
static taps transpose_taps(const n2_winograd *g, const taps *k, n2_range columns, float *to) {
    enum { BLOCK = 16 };
    const int64_t wide = columns.end - columns.begin;
    taps rows = {.pitch = wide};
    for (int tap = 0; tap < g->r * g->r; tap++) {
        rows.at[tap] = to + tap * g->depth * wide;
        for (int64_t o = 0; o < g->depth; o += BLOCK)
            for (int64_t i = 0; i < wide; i++)
                for (int64_t l = 0; l < BLOCK; l++)
                    rows.at[tap][(o + l) * wide + i] =
                        k->at[tap][(columns.begin + i) * k->pitch + o + l];
    }
    return rows;
}

void N2_ISA(n2_winograd_conv2d_input)(const n2_call *c, const n2_conv *v, const n2_winograd *g) {
    job b = {.g = g, .source = IN(c, 0), .pitch = v->c_out, .from = &b.to, .n_from = 1};
    const units all = units_of(g, c->parts);
    const int64_t of_phase = all.tile_groups * all.column_groups, n = of_phase * g->s * g->s;
    for (int64_t unit = n * c->part / c->parts; unit < n * (c->part + 1) / c->parts; unit++) {
        const n2_range columns = columns_of(g, &all, unit);
        b.to = input_phase(v, g, (int)(unit / of_phase));
        float *rest = lay_out(&b, c->work, columns.end - columns.begin);
        const taps kernel = taps_of(g, &b.to, v, (float *)c->in[1].data);
        const taps turned_round = transpose_taps(g, &kernel, columns, rest);
        turn_kernel(g, &turned_round, v->c_out, 0, &b.u, 0);
        b.tiles = tiles_of(g, &all, unit % of_phase);
        b.w.out = OUT(c) + columns.begin;
        b.w.height = v->h, b.w.width = v->w, b.w.pitch = v->c_in;
        run_job(&b);
    }
}

/* ---- kernels' gradients -------------------------------------------------- */

/* dy at a tile's outputs, in panels: [t t][panels of columns][tiles][columns of the panel]. */
INLINE void spread_tile(int t, int m, const phase *f, place p, const n2_conv *v, const float *dy,
                        const turned *u, int64_t apart, int64_t tile) {
    const float *from[MOST_T][MOST_T];
    for (int i = 0; i < m; i++)
        for (int j = 0; j < m; j++)
            from[i][j] = output_at(f, p, i, j, v->oh, v->ow, v->c_out, (float *)dy);
    for (int64_t n = 0; n < u->columns; n += LANES) {
        n2_vec d[MOST_T][MOST_T], o[MOST_T][MOST_T];
        for (int i = 0; i < m; i++)
            for (int j = 0; j < m; j++) d[i][j] = from[i][j] ? VEC(from[i][j] + n) : (uvec){0};
        BOTH(spread, t, m, t, d, o);
        float *at = turned_at(u, tile, n);
        for (int i = 0; i < t; i++)
            for (int j = 0; j < t; j++) STORE(at + (i * t + j) * apart, o[i][j]);
    }
}

static void spread_tiles(const n2_winograd *g, const phase *f, const n2_conv *v, const float *dy,
                         n2_range tiles, const turned *u, int64_t apart) {
    for (int64_t k = tiles.begin; k < tiles.end; k++)
        BY_SIZE_M(g, spread_tile, f, place_of(g, k), v, dy, u, apart, k - tiles.begin)
}

/* Sums [t t][channels in x channels out] += transformed pictures by transformed dy. */
static void multiply_tiles(const n2_winograd *g, const taken *v, const turned *u, int64_t apart,
                           float *sums, bool add) {
    for (int64_t k = 0; k < g->t * g->t; k++)
        for (int64_t c = 0; c < v->channels; c += SLICE) {
            const int64_t rows = v->channels - c < SLICE ? v->channels - c : SLICE;
            const strided a = {v->data + k * v->apart + c * v->tiles, 1, rows};
            for (int64_t n = 0; n < u->columns; n += PANEL) {
                const int64_t columns = u->columns - n < PANEL ? u->columns - n : PANEL;
                N2_ISA(n2_cpu_product_in)
                (rows, columns, v->tiles, a, u->data + k * apart + n * v->tiles, columns,
                 sums + (k * v->channels + c) * u->columns + n, u->columns, add);
            }
        }
}

INLINE void narrow_row(int t, int r, const float *sums, int64_t apart, int64_t columns,
                       const taps *to, int64_t row, bool add) {
    for (int64_t n = 0; n < columns; n += LANES) {
        n2_vec d[MOST_T][MOST_T], o[MOST_T][MOST_T];
        for (int i = 0; i < t; i++)
            for (int j = 0; j < t; j++) d[i][j] = VEC(sums + (i * t + j) * apart + n);
        BOTH(narrow, t, t, r, d, o);
        for (int i = 0; i < r; i++)
            for (int j = 0; j < r; j++) {
                float *at = to->at[i * r + j] + row * to->pitch + n;
                if (add) o[i][j] += VEC(at);
                STORE(at, o[i][j]);
            }
    }
}

/* Channels in of a phase. */
static void kernel_gradient(const n2_call *c, const n2_conv *v, const n2_winograd *g,
                            const phase *f, n2_range channels) {
    const int64_t square = g->t * g->t, rows = channels.end - channels.begin;
    taken x = {c->work, n2_winograd_apart(g->at_once * rows), 0, rows};
    turned dy = {x.data + square * x.apart, 0, g->width};
    const int64_t apart = n2_winograd_apart(g->at_once * g->width);
    float *sums = dy.data + square * apart;
    for (int64_t k = 0; k < g->tiles; k += g->at_once) {
        const n2_range some = {k, g->tiles - k < g->at_once ? g->tiles : k + g->at_once};
        x.tiles = dy.depth = some.end - some.begin;
        take_tiles(g, f, IN(c, 0), v->c_in, channels, some, &x, 0);
        spread_tiles(g, f, v, IN(c, 1), some, &dy, apart);
        multiply_tiles(g, &x, &dy, apart, sums, k > 0);
    }
    const taps to = taps_of(g, f, v, OUT(c));
    for (int64_t i = 0; i < rows; i++)
        BY_SIZE_R(g, narrow_row, sums + i * g->width, rows * g->width, g->width, &to,
                  channels.begin + i, c->add)
}

void N2_ISA(n2_winograd_conv2d_weight)(const n2_call *c, const n2_conv *v, const n2_winograd *g) {
    enum { ROWS = 128 };
    const int64_t most = c->parts == 1 || g->block < ROWS ? g->block : ROWS;
    const int64_t groups = blocks_of(g->depth, most);
    const int64_t n = groups * g->s * g->s, vectors = g->depth / N2_WINOGRAD_CHANNELS;
    for (int64_t unit = n * c->part / c->parts; unit < n * (c->part + 1) / c->parts; unit++) {
        const phase f = forward_phase(v, g->s, (int)(unit / groups));
        const int64_t k = unit % groups;
        kernel_gradient(c, v, g, &f,
                        (n2_range){vectors * k / groups * N2_WINOGRAD_CHANNELS,
                                   vectors * (k + 1) / groups * N2_WINOGRAD_CHANNELS});
    }
}
