#include "few.h"

#include "cuda/kernels/record.h"
#include "eight.h"

enum {
    FEW_THREADS = 256,
    FEW_WARPS = FEW_THREADS / 32,
    FEW_CHANNELS = 4, /* at most */
    FEW_TERMS = 48,   /* likewise; 16 to a tile */
    MANY_CHANNELS = 256,
    FEW_SHARED = 100 << 10 /* bytes of a block, at most: two fit a large multiprocessor */
};

typedef enum few_way { FEW_TO_MANY, MANY_TO_FEW, FEW_BY_WEIGHT } few_way;

/* What a launch gives its threads. */
typedef struct few_task {
    int32_t way; /* few_way */
    int32_t n;   /* pictures */
    int32_t fh, fw, cf, wh, ww, cw;
    int32_t rows, columns, stride_y, stride_x, top, left;
    int32_t turned;      /* the kernel is [place][many][few], places from the end */
    int32_t terms;       /* rows x columns x cf */
    int32_t band, bands; /* rows of the output, or of the many, that a block does at a time */
    int32_t blocks;
    job_divisor pitch; /* numbers of a row of the few that a row of the many sees */
    int32_t type_few, type_many;
    const void *few, *many;
    const float *kernel;
    float *out; /* of FEW_BY_WEIGHT: a kernel for each block */
} few_task;

/* ---- device code --------------------------------------------------------- */

/* Where the kernel has a term of a channel of the many. */
__device__ inline uint32_t kernel_index(const few_task &t, int term, int channel) {
    if (!t.turned) return (uint32_t)(term * t.cw + channel);
    const int place = t.rows * t.columns - 1 - term / t.cf;
    return (uint32_t)((place * t.cw + channel) * t.cf + term % t.cf);
}

__device__ inline float kernel_at(const few_task &t, int term, int channel) {
    if (term >= t.terms) return 0.0f;
    return __uint_as_float(to_tf32(t.kernel[kernel_index(t, term, channel)]));
}

/* Rows of the few that some rows of the many see, with zeros around the picture. */
struct frame {
    int rows, pitch; /* pitch: numbers of a row */
    __device__ frame(const few_task &t, int many_rows)
        : rows((many_rows - 1) * t.stride_y + t.rows), pitch((int)t.pitch.by) {}

    /* Of picture n, for the many's rows from `first` on. */
    __device__ void load(const few_task &t, int n, int first, float *out) const {
        const int y0 = first * t.stride_y - t.top, x0 = -t.left * t.cf, width = t.fw * t.cf;
#pragma unroll 8
        for (int i = (int)threadIdx.x; i < rows * pitch; i += FEW_THREADS) {
            const int row = (int)job_quotient(t.pitch, (uint32_t)i);
            const int y = y0 + row, x = x0 + i - row * pitch;
            const bool inside = y >= 0 && y < t.fh && x >= 0 && x < width;
            const size_t at = inside ? ((size_t)n * t.fh + y) * width + x : 0;
            const float number = load_one((n2_dtype)t.type_few, t.few, at);
            out[i] = inside ? __uint_as_float(to_tf32(number)) : 0.0f;
        }
    }

    /* From the frame's pixel above a pixel of the many to a term. Terms beyond the last meet zeros
     * of the kernel, or are not looked at. */
    __device__ int offset(const few_task &t, int term) const {
        if (term >= t.terms) return 0;
        const int place = term / t.cf, row = place / t.columns;
        return row * pitch + (place - row * t.columns) * t.cf + term % t.cf;
    }
    /* The frame's pixels above those of the rows of the many, once for all bands. */
    __device__ void place(const few_task &t, int *pixels) const {
        for (int i = (int)threadIdx.x; i < t.band * t.ww; i += FEW_THREADS) {
            const int row = i / t.ww;
            pixels[i] = row * t.stride_y * pitch + (i - row * t.ww) * t.stride_x * t.cf;
        }
    }
};

/* The rows of a band, and of which picture. */
struct band_of {
    int picture, first, rows;
    __device__ band_of(const few_task &t, int item, int all) {
        picture = item / t.bands;
        first = (item - picture * t.bands) * t.band;
        rows = all - first < t.band ? all - first : t.band;
    }
};

/* ---- few to many: [pixels x terms] by [terms x channels] ---- */

/* Columns of four tiles are channels so that a thread has eight on end, or as floats four and four,
 * and threads side by side what is side by side: column 2 t + e of tile v is this channel of 32. */
__device__ inline int channel_of(n2_dtype type, int t, int v, int e) {
    if (type != N2_NUMBER) return t * 8 + v * 2 + e;
    return v / 2 * 16 + t * 4 + v % 2 * 2 + e;
}

__device__ inline void pack_terms(const few_task &t, int steps, float2 *packed) {
    const int lane = (int)threadIdx.x % 32, g = lane / 4, k = lane % 4, tiles = t.cw / 8;
#pragma unroll 4
    for (int i = (int)threadIdx.x / 32; i < steps * tiles; i += FEW_WARPS) {
        const int step = i / tiles, tile = i - step * tiles;
        const int channel =
            tile / 4 * 32 + channel_of((n2_dtype)t.type_many, g / 2, tile % 4, g % 2);
        packed[i * 32 + lane] = {kernel_at(t, step * 8 + k, channel),
                                 kernel_at(t, step * 8 + k + 4, channel)};
    }
}

/* What a thread has of 32 channels of a pixel, the one of its numbers FIRST and the next. */
template <int FIRST>
__device__ inline void store_channels(const few_task &t, size_t at, const float (&sums)[4][4]) {
    const n2_dtype type = (n2_dtype)t.type_many;
    const int k = (int)threadIdx.x % 4;
    float x[8];
#pragma unroll
    for (int v = 0; v < 4; v++) x[2 * v] = sums[v][FIRST], x[2 * v + 1] = sums[v][FIRST + 1];
    if (type != N2_NUMBER) return store_eight(type, t.out, at + k * 8, x);
    *(float4 *)(t.out + at + k * 4) = float4{x[0], x[1], x[2], x[3]};
    *(float4 *)(t.out + at + 16 + k * 4) = float4{x[4], x[5], x[6], x[7]};
}

/* 16 pixels from `first` on, of which there are `pixels`. */
template <int STEPS>
__device__ inline void make_many(const few_task &t, const float *frame_at, const int *places,
                                 const float2 *packed, const int (&offsets)[STEPS][2], int first,
                                 int pixels, size_t before) {
    const int lane = (int)threadIdx.x % 32, g = lane / 4;
    const int low = first + g < pixels ? first + g : 0;
    const int high = first + g + 8 < pixels ? first + g + 8 : 0;
    const float *a = frame_at + places[low], *b = frame_at + places[high];
    uint32_t factor[STEPS][4];
#pragma unroll
    for (int s = 0; s < STEPS; s++) {
        factor[s][0] = __float_as_uint(a[offsets[s][0]]);
        factor[s][1] = __float_as_uint(b[offsets[s][0]]);
        factor[s][2] = __float_as_uint(a[offsets[s][1]]);
        factor[s][3] = __float_as_uint(b[offsets[s][1]]);
    }
    for (int group = 0; group < t.cw / 32; group++) {
        float sums[4][4] = {};
#pragma unroll
        for (int s = 0; s < STEPS; s++)
#pragma unroll
            for (int v = 0; v < 4; v++) {
                const float2 by = packed[((s * (t.cw / 32) + group) * 4 + v) * 32 + lane];
                const uint32_t both[2] = {__float_as_uint(by.x), __float_as_uint(by.y)};
                mma_tf32(sums[v], factor[s], both);
            }
        const size_t at = (before + (size_t)first + g) * t.cw + group * 32;
        if (first + g < pixels) store_channels<0>(t, at, sums);
        if (first + g + 8 < pixels) store_channels<2>(t, at + (size_t)8 * t.cw, sums);
    }
}

template <int TILES>
__global__ void __launch_bounds__(FEW_THREADS, TILES < 3 ? 3 : 2)
    run_few_to_many(const __grid_constant__ few_task t) {
    GPU_SHARED(shared);
    enum { STEPS = 2 * TILES };
    const int k = (int)threadIdx.x % 4, warp = (int)threadIdx.x / 32;
    const frame f(t, t.band);
    float2 *packed = (float2 *)shared;
    int *places = (int *)(packed + STEPS * (t.cw / 8) * 32);
    float *frame_at = (float *)(places + t.band * t.ww);
    int offsets[STEPS][2];
    for (int s = 0; s < STEPS; s++) {
        offsets[s][0] = f.offset(t, s * 8 + k);
        offsets[s][1] = f.offset(t, s * 8 + k + 4);
    }
    grid_wait();
    grid_next();
    pack_terms(t, STEPS, packed);
    f.place(t, places);
    for (int item = (int)blockIdx.x; item < t.n * t.bands; item += t.blocks) {
        const band_of b(t, item, t.wh);
        const size_t before = ((size_t)b.picture * t.wh + b.first) * t.ww;
        __syncthreads(); /* all are done with the frame before */
        f.load(t, b.picture, b.first, frame_at);
        __syncthreads();
        for (int first = warp * 16; first < b.rows * t.ww; first += FEW_WARPS * 16)
            make_many<STEPS>(t, frame_at, places, packed, offsets, first, b.rows * t.ww, before);
    }
}

/* ---- many to few: [pixels x channels] by [channels x terms], and sums of terms ---- */

/* A thread has eight channels on end of 32: number 2 i is k = t of step i, number 2 i + 1 k = t
 * + 4. */
__device__ inline void pack_channels(const few_task &t, int tiles, float2 *packed) {
    const int lane = (int)threadIdx.x % 32, g = lane / 4, k = lane % 4;
#pragma unroll 4
    for (int i = (int)threadIdx.x / 32; i < t.cw / 8 * tiles; i += FEW_WARPS) {
        const int step = i / tiles, tile = i - step * tiles;
        const int channel = step / 4 * 32 + k * 8 + step % 4 * 2;
        packed[i * 32 + lane] = {kernel_at(t, tile * 8 + g, channel),
                                 kernel_at(t, tile * 8 + g, channel + 1)};
    }
}

/* Numbers of a pixel's terms in shared memory. */
__host__ __device__ inline int terms_pitch(int terms) {
    const int even = (terms + 1) / 2 * 2;
    return even % 16 == 0 ? even + 2 : even;
}

/* The terms of 16 pixels from `first` on; before: pixels before the first row. */
template <int TILES>
__device__ inline void make_terms(const few_task &t, const float2 *packed, int first, int pixels,
                                  size_t before, float *terms) {
    const int lane = (int)threadIdx.x % 32, g = lane / 4, k = lane % 4;
    const int low = first + g < pixels ? first + g : 0;
    const int high = first + g + 8 < pixels ? first + g + 8 : 0;
    const n2_dtype type = (n2_dtype)t.type_many;
    float sums[TILES][4] = {};
    for (int chunk = 0; chunk < t.cw / 32; chunk += 2) {
        float x[2][8], y[2][8]; /* all are asked for before the first is used */
#pragma unroll
        for (int c = 0; c < 2; c++) {
            const int channel = (chunk + c) * 32 + k * 8;
            load_eight(type, t.many, (before + low) * t.cw + channel, x[c]);
            load_eight(type, t.many, (before + high) * t.cw + channel, y[c]);
        }
#pragma unroll
        for (int c = 0; c < 2; c++)
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const uint32_t factor[4] = {to_tf32(x[c][2 * i]), to_tf32(y[c][2 * i]),
                                            to_tf32(x[c][2 * i + 1]), to_tf32(y[c][2 * i + 1])};
#pragma unroll
                for (int v = 0; v < TILES; v++) {
                    const float2 by = packed[(((chunk + c) * 4 + i) * TILES + v) * 32 + lane];
                    const uint32_t both[2] = {__float_as_uint(by.x), __float_as_uint(by.y)};
                    mma_tf32(sums[v], factor, both);
                }
            }
    }
    const int pitch = terms_pitch(t.terms);
#pragma unroll
    for (int v = 0; v < TILES; v++)
#pragma unroll
        for (int e = 0; e < 4; e++) {
            const int pixel = first + g + e / 2 * 8, term = v * 8 + k * 2 + e % 2;
            if (pixel < pixels && term < t.terms) terms[pixel * pitch + term] = sums[v][e];
        }
}

/* Pixel i of a band: the sums of its terms; row0: the first row of the many that there are terms
 * of. Every stride-th place of the kernel meets a pixel of the many. */
__device__ inline void make_few(const few_task &t, const band_of &b, int i, int row0,
                                const float *terms) {
    const int pitch = terms_pitch(t.terms), row = i / t.fw;
    const int y = b.first + row + t.top, x = i - row * t.fw + t.left;
    float sums[FEW_CHANNELS] = {};
    for (int r = y % t.stride_y, wy = y / t.stride_y; r < t.rows; r += t.stride_y, wy--) {
        if (wy < 0 || wy >= t.wh) continue;
        for (int s = x % t.stride_x, wx = x / t.stride_x; s < t.columns; s += t.stride_x, wx--) {
            if (wx < 0 || wx >= t.ww) continue;
            const float *at =
                terms + ((wy - row0) * t.ww + wx) * pitch + (r * t.columns + s) * t.cf;
#pragma unroll
            for (int c = 0; c < FEW_CHANNELS; c++)
                if (c < t.cf) sums[c] += at[c];
        }
    }
    const size_t out = (((size_t)b.picture * t.fh + b.first) * t.fw + i) * t.cf;
#pragma unroll
    for (int c = 0; c < FEW_CHANNELS; c++)
        if (c < t.cf) store_one((n2_dtype)t.type_few, t.out, out + c, sums[c]);
}

template <int TILES>
__global__ void __launch_bounds__(FEW_THREADS, TILES < 6 ? 3 : 2)
    run_many_to_few(const __grid_constant__ few_task t) {
    GPU_SHARED(shared);
    const int warp = (int)threadIdx.x / 32;
    float2 *packed = (float2 *)shared;
    float *terms = (float *)(packed + t.cw / 8 * TILES * 32);
    grid_wait();
    grid_next();
    pack_channels(t, TILES, packed);
    for (int item = (int)blockIdx.x; item < t.n * t.bands; item += t.blocks) {
        const band_of b(t, item, t.fh);
        /* rows of the many that the band's pixels meet */
        const int above = b.first + t.top - t.rows + 1, end = b.first + b.rows - 1 + t.top;
        const int row0 = above > 0 ? above / t.stride_y : 0;
        const int last = end / t.stride_y < t.wh ? end / t.stride_y : t.wh - 1;
        const int pixels = last >= row0 ? (last - row0 + 1) * t.ww : 0;
        const size_t before = ((size_t)b.picture * t.wh + row0) * t.ww;
        __syncthreads(); /* all are done with the terms before */
        for (int first = warp * 16; first < pixels; first += FEW_WARPS * 16)
            make_terms<TILES>(t, packed, first, pixels, before, terms);
        __syncthreads();
        for (int i = (int)threadIdx.x; i < b.rows * t.fw; i += FEW_THREADS)
            make_few(t, b, i, row0, terms);
    }
}

/* ---- the kernel's gradient: [terms x pixels] by [pixels x channels] ---- */

/* Sixteen pixels, in two steps of eight, of which k = t and t + 4 are a thread's; its 8 channels on
 * end of 64 are the columns g of 8 tiles. */
template <int TILES>
__device__ inline void add_pixels(const few_task &t, const float *frame_at, const int *places,
                                  const int (&offsets)[TILES][2], int first, int pixels, size_t at,
                                  float (&sums)[TILES][8][4]) {
    const int k = (int)threadIdx.x % 4;
    float x[4][8] = {};
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const int pixel = first + i * 4 + k;
        if (pixel < pixels)
            load_eight((n2_dtype)t.type_many, t.many, at + (size_t)pixel * t.cw, x[i]);
    }
#pragma unroll
    for (int step = 0; step < 2; step++) {
        const int low = first + step * 8 + k, high = low + 4;
        const float *a = frame_at + places[low < pixels ? low : 0];
        const float *b = frame_at + places[high < pixels ? high : 0];
#pragma unroll
        for (int v = 0; v < TILES; v++) {
            const uint32_t factor[4] = {
                __float_as_uint(a[offsets[v][0]]), __float_as_uint(a[offsets[v][1]]),
                __float_as_uint(b[offsets[v][0]]), __float_as_uint(b[offsets[v][1]])};
#pragma unroll
            for (int c = 0; c < 8; c++) {
                const uint32_t both[2] = {to_tf32(x[2 * step][c]), to_tf32(x[2 * step + 1][c])};
                mma_tf32(sums[v][c], factor, both);
            }
        }
    }
}

/* Adds a warp's sums to the block's, which are [terms x channels]. */
template <int TILES>
__device__ inline void add_sums(const few_task &t, const float (&sums)[TILES][8][4], int group,
                                bool first, float *table) {
    const int lane = (int)threadIdx.x % 32, g = lane / 4, k = lane % 4;
#pragma unroll
    for (int v = 0; v < TILES; v++)
#pragma unroll
        for (int c = 0; c < 8; c++)
#pragma unroll
            for (int e = 0; e < 4; e++) {
                const int term = v * 16 + g + e / 2 * 8, channel = (k * 2 + e % 2) * 8 + c;
                float *to = table + term * t.cw + group * 64 + channel;
                *to = first ? sums[v][c][e] : *to + sums[v][c][e];
            }
}

/* Warps share the many's channels, 64 to a warp, and the pixels. */
template <int TILES>
__global__ void __launch_bounds__(FEW_THREADS, TILES < 3 ? 2 : 1)
    run_few_by_weight(const __grid_constant__ few_task t) {
    GPU_SHARED(shared);
    const int lane = (int)threadIdx.x % 32, g = lane / 4, warp = (int)threadIdx.x / 32;
    const int groups = t.cw / 64, group = warp % groups, slices = FEW_WARPS / groups;
    const int slice = warp / groups;
    const frame f(t, t.band);
    int *places = (int *)shared;
    float *table = (float *)(places + t.band * t.ww);
    int offsets[TILES][2];
    float sums[TILES][8][4] = {};
    for (int v = 0; v < TILES; v++) {
        offsets[v][0] = f.offset(t, v * 16 + g);
        offsets[v][1] = f.offset(t, v * 16 + g + 8);
    }
    f.place(t, places);
    grid_wait();
    grid_next();
    for (int item = (int)blockIdx.x; item < t.n * t.bands; item += t.blocks) {
        const band_of b(t, item, t.wh);
        const int pixels = b.rows * t.ww;
        const size_t at = ((size_t)b.picture * t.wh + b.first) * t.ww * t.cw + group * 64 + g * 8;
        __syncthreads();
        f.load(t, b.picture, b.first, table);
        __syncthreads();
        for (int first = slice * 16; first < pixels; first += slices * 16)
            add_pixels<TILES>(t, table, places, offsets, first, pixels, at, sums);
    }
    for (int s = 0; s < slices; s++) {
        __syncthreads();
        if (slice == s) add_sums<TILES>(t, sums, group, s == 0, table);
    }
    __syncthreads();
    float *out = t.out + (size_t)blockIdx.x * t.terms * t.cw;
    for (int i = (int)threadIdx.x; i < t.terms * t.cw; i += FEW_THREADS)
        out[kernel_index(t, i / t.cw, i % t.cw)] = table[i];
}

/* ---- launches ------------------------------------------------------------ */

typedef void few_kernel(const few_task);
static few_kernel *const kernels[3][FEW_TERMS / 16] = {
    {run_few_to_many<1>, run_few_to_many<2>, run_few_to_many<3>},
    {run_many_to_few<2>, run_many_to_few<4>, run_many_to_few<6>},
    {run_few_by_weight<1>, run_few_by_weight<2>, run_few_by_weight<3>},
};

static int tiles_of(const few_task *t) { return (t->terms + 15) / 16; }

static size_t frame_bytes(const few_task *t) {
    const size_t rows = (size_t)(t->band - 1) * (size_t)t->stride_y + (size_t)t->rows;
    return rows * t->pitch.by * sizeof(float);
}

/* Of a block. */
static size_t shared_bytes(const few_task *t) {
    const size_t packed = (size_t)tiles_of(t) * 16 * (size_t)t->cw * sizeof(float);
    const size_t places = (size_t)t->band * (size_t)t->ww * sizeof(int), frame = frame_bytes(t);
    if (t->way == FEW_TO_MANY) return packed + places + frame;
    if (t->way == FEW_BY_WEIGHT) return places + (packed > frame ? packed : frame);
    const size_t rows = (size_t)((t->band + t->rows - 2) / t->stride_y + 2);
    return packed + rows * (size_t)t->ww * (size_t)terms_pitch(t->terms) * sizeof(float);
}

/* Of a multiprocessor: as the kernels' bounds say, if there is shared memory for them. */
static int blocks_at_once(const few_task *t) {
    const int most = (t->way == FEW_BY_WEIGHT ? 2 : 3) - (tiles_of(t) == FEW_TERMS / 16);
    const int fit = (int)(((size_t)220 << 10) / (shared_bytes(t) + 1024));
    return fit < 1 ? 1 : fit < most ? fit : most;
}

static int64_t blocks_of(const n2_queue *q, const few_task *t) {
    const int64_t items = (int64_t)t->n * t->bands;
    const int64_t most = (int64_t)blocks_at_once(t) * q->multiprocessors;
    return items < most ? items : most;
}

void n2_few_launch(const n2_queue *q, const job *j, cudaStream_t stream, bool early) {
    few_task t = *(const few_task *)j->wide.about;
    const bool by_weight = t.way == FEW_BY_WEIGHT, first = by_weight && !t.turned;
    t.few = by_weight ? j->in[first ? 0 : 1] : t.way == FEW_TO_MANY ? j->in[0] : NULL;
    t.many = by_weight ? j->in[first ? 1 : 0] : t.way == MANY_TO_FEW ? j->in[0] : NULL;
    t.kernel = by_weight ? NULL : j->in[1];
    t.out = j->out;
    t.blocks = (int32_t)blocks_of(q, &t);
    GPU_LAUNCH(kernels[t.way][tiles_of(&t) - 1], (unsigned)t.blocks, FEW_THREADS, shared_bytes(&t),
               stream, early, t);
}

cudaError_t n2_few_prepare(int most_shared) {
    const int bytes = most_shared < FEW_SHARED ? most_shared : (int)FEW_SHARED;
    cudaError_t error = cudaSuccess;
    for (auto &way : kernels)
        for (few_kernel *kernel : way)
            if (error == cudaSuccess)
                error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                             bytes);
    return error;
}

/* ---- which, and how they are noted --------------------------------------- */

static few_task task_of(const n2_call *c, const n2_conv *v) {
    const n2_op_id op = c->node->op->id;
    const bool turned = v->c_in > v->c_out; /* y is the one of few */
    const n2_window w = v->window;
    few_task t;
    memset(&t, 0, sizeof t);
    t.way = op == N2_OP_conv2d_weight              ? FEW_BY_WEIGHT
            : (op == N2_OP_conv2d_input) == turned ? FEW_TO_MANY
                                                   : MANY_TO_FEW;
    t.turned = turned;
    t.n = (int32_t)v->n;
    t.fh = (int32_t)(turned ? v->oh : v->h), t.fw = (int32_t)(turned ? v->ow : v->w);
    t.wh = (int32_t)(turned ? v->h : v->oh), t.ww = (int32_t)(turned ? v->w : v->ow);
    t.cf = (int32_t)(turned ? v->c_out : v->c_in), t.cw = (int32_t)(turned ? v->c_in : v->c_out);
    t.rows = (int32_t)v->rows, t.columns = (int32_t)v->columns;
    t.stride_y = w.stride_y, t.stride_x = w.stride_x;
    t.top = turned ? t.rows - 1 - w.top : w.top;
    t.left = turned ? t.columns - 1 - w.left : w.left;
    t.terms = t.rows * t.columns * t.cf;
    t.pitch = job_divide_by((uint32_t)(((t.ww - 1) * t.stride_x + t.columns) * t.cf));
    const n2_dtype x = op == N2_OP_conv2d_input ? c->out.dtype : c->in[0].dtype;
    const n2_dtype y = op == N2_OP_conv2d         ? c->out.dtype
                       : op == N2_OP_conv2d_input ? c->in[0].dtype
                                                  : c->in[1].dtype;
    t.type_few = turned ? y : x;
    t.type_many = turned ? x : y;
    return t;
}

/* Rows that a block does at a time: few enough for shared memory, and for all blocks to have some.
 */
static bool cut_into_bands(const n2_queue *q, few_task *t) {
    enum { MOST_ROWS = 16 };
    const size_t most = n2_wide_shared(q) < FEW_SHARED ? n2_wide_shared(q) : (size_t)FEW_SHARED;
    const int32_t all = t->way == MANY_TO_FEW ? t->fh : t->wh;
    t->band = all < MOST_ROWS ? all : MOST_ROWS;
    while (t->band > 1 && shared_bytes(t) > most) t->band /= 2;
    const int32_t even = blocks_at_once(t) * q->multiprocessors / t->n; /* bands of a picture */
    const int32_t rows = even > 0 ? (all + even - 1) / even : all;
    if (rows < t->band) t->band = rows < 2 ? 2 : rows;
    if (t->band > all) t->band = all;
    t->bands = (all + t->band - 1) / t->band;
    return shared_bytes(t) <= most && (int64_t)t->n * t->bands < INT32_MAX / 2;
}

static bool is_fit(const few_task *t) {
    const int unit = t->way == FEW_TO_MANY ? 32 : 64;
    const bool single = t->stride_y == 1 && t->stride_x == 1;
    return t->n > 0 && t->cf >= 1 && t->cf <= FEW_CHANNELS && t->terms <= FEW_TERMS &&
           t->cw % unit == 0 && t->cw <= MANY_CHANNELS && (single || !t->turned) && t->top >= 0 &&
           t->left >= 0;
}

/* Warps share 64, 128 or 256 channels evenly. */
static bool has_even_groups(const few_task *t) {
    return t->way != FEW_BY_WEIGHT || FEW_WARPS % (t->cw / 64) == 0;
}

bool n2_few_takes(const n2_call *c, const n2_conv *v) {
    const n2_queue *q = c->queue;
    const int64_t least = v->c_in < v->c_out ? v->c_in : v->c_out;
    if (q->strict || least > FEW_CHANNELS) return false;
    few_task t = task_of(c, v);
    const bool aligned =
        is_aligned(in_of(c, 0)) && is_aligned(in_of(c, 1)) && is_aligned(out_of(c));
    return is_fit(&t) && has_even_groups(&t) && cut_into_bands(q, &t) && aligned &&
           n2_wide_pays(q, (int64_t)t.n * t.wh * t.ww * t.cw);
}

void n2_few_note(const n2_call *c, const n2_conv *v) {
    n2_queue *q = c->queue;
    few_task t = task_of(c, v);
    cut_into_bands(q, &t);
    const bool by_weight = t.way == FEW_BY_WEIGHT;
    const int64_t blocks = blocks_of(q, &t), size = n_out(c);
    job j = job_of(c, JOB_WIDE);
    j.in[0] = in_of(c, 0);
    j.in[1] = in_of(c, 1);
    if (by_weight) {
        j.out = n2_queue_scratch(q, out_of(c), blocks * size);
        j.add = j.kept = false;
    }
    noted *n = n2_wide_add(q, &j, WIDE_FEW, &t, sizeof t);
    n2_wide_reads(n, &c->in[0]);
    n2_wide_reads(n, &c->in[1]);
    if (!by_weight) return n2_wide_writes(n, &c->out);
    n2_note_write(n, j.out, blocks * size);
    if (n) n2_note_sum_columns(c, j.out, out_of(c), 1, blocks, size);
}
