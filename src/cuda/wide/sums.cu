#include "sums.h"

#include "cuda/kernels/record.h"
#include "eight.h"

enum { SUM_THREADS = 512, MOST_SLICES = 128, LEAST_ROWS = 64 };

/* ---- device code --------------------------------------------------------- */

typedef struct sums_task {
    wide_sums s;
    const void *in;
    float *out;
    bool add;
} sums_task;

/* Adds N consecutive numbers from element i on. */
template <int N>
__device__ inline void add_some(float sum[N], n2_dtype type, const void *in, size_t i) {
    if constexpr (N == 8) {
        float x[8];
        load_eight(type, in, i, x);
#pragma unroll
        for (int e = 0; e < 8; e++) sum[e] += x[e];
    } else {
        sum[0] += load_one(type, in, i);
    }
}

/* A thread's columns of its rows, from `row` on; four are on their way at a time. */
template <int N>
__device__ inline void add_rows(float sum[N], const sums_task &t, size_t first, int row, int end) {
    const n2_dtype type = (n2_dtype)t.s.type;
    const int step = t.s.rows_a_time;
    float more[3][N] = {};
    for (; row + 3 * step < end; row += 4 * step) {
        const size_t pitch = (size_t)t.s.inner, at = first + (size_t)row * pitch;
        add_some<N>(sum, type, t.in, at);
        add_some<N>(more[0], type, t.in, at + (size_t)step * pitch);
        add_some<N>(more[1], type, t.in, at + (size_t)(2 * step) * pitch);
        add_some<N>(more[2], type, t.in, at + (size_t)(3 * step) * pitch);
    }
    for (; row < end; row += step)
        add_some<N>(sum, type, t.in, first + (size_t)row * (size_t)t.s.inner);
#pragma unroll
    for (int e = 0; e < N; e++) sum[e] = (sum[e] + more[0][e]) + (more[1][e] + more[2][e]);
}

/* A block has a slice of rows and a strip of columns; its threads' sums are added in their order.
 */
template <int N>
__global__ void __launch_bounds__(SUM_THREADS) run_sums(const __grid_constant__ sums_task t) {
    GPU_SHARED(shared);
    float *sums = (float *)shared; /* [rows a time x lanes x N] */
    grid_wait();
    grid_next();
    const int strip = (int)(blockIdx.x % (unsigned)t.s.strips);
    const int which = (int)(blockIdx.x / (unsigned)t.s.strips);
    const int slice = which % t.s.slices, outer = which / t.s.slices;
    const int lane = (int)threadIdx.x % t.s.lanes, group = (int)threadIdx.x / t.s.lanes;
    const int64_t column = ((int64_t)strip * t.s.lanes + lane) * N;
    const int begin = slice * t.s.slice_rows;
    const int rest = (int)t.s.rows - begin,
              end = begin + (rest < t.s.slice_rows ? rest : t.s.slice_rows);
    const bool works = group < t.s.rows_a_time && column < t.s.inner;
    float sum[N] = {};
    if (works)
        add_rows<N>(sum, t, (size_t)outer * (size_t)t.s.rows * (size_t)t.s.inner + (size_t)column,
                    begin + group, end);
    if (works && group > 0) {
#pragma unroll
        for (int e = 0; e < N; e++) sums[((group - 1) * t.s.lanes + lane) * N + e] = sum[e];
    }
    __syncthreads();
    if (!works || group > 0) return;
    for (int g = 0; g + 1 < t.s.rows_a_time; g++)
#pragma unroll
        for (int e = 0; e < N; e++) sum[e] += sums[(g * t.s.lanes + lane) * N + e];
    float *to = t.out + (size_t)which * (size_t)t.s.inner + (size_t)column;
#pragma unroll
    for (int e = 0; e < N; e++) to[e] = t.add ? to[e] + sum[e] : sum[e];
}

void n2_wide_sums_launch(const n2_queue *, const job *j, cudaStream_t stream, bool early) {
    sums_task t = {};
    t.s = *(const wide_sums *)j->wide.about;
    t.in = j->in[0];
    t.out = j->out;
    t.add = j->add;
    const unsigned blocks = (unsigned)(t.s.strips * t.s.slices * t.s.outer);
    const size_t bytes = SUM_THREADS * sizeof(float) * (t.s.eight ? 8 : 1);
    if (t.s.eight)
        GPU_LAUNCH(run_sums<8>, blocks, SUM_THREADS, bytes, stream, early, t);
    else
        GPU_LAUNCH(run_sums<1>, blocks, SUM_THREADS, bytes, stream, early, t);
}

/* ---- notes --------------------------------------------------------------- */

/* Enough blocks to fill a GPU, of enough rows each. */
int64_t n2_wide_sums_slices(int64_t outer, int64_t rows, int64_t inner) {
    const int64_t blocks = outer * pieces(inner, 8 * SUM_THREADS);
    const int64_t wanted = pieces(MOST_SLICES, blocks), most = pieces(rows, LEAST_ROWS);
    return wanted < most ? wanted : most;
}

bool n2_wide_sums_takes(const n2_call *c, int64_t outer, int64_t rows, int64_t inner) {
    if (outer < 1 || rows < 1 || inner < 1 || outer > INT32_MAX / MOST_SLICES ||
        rows > INT32_MAX / 2)
        return false;
    return c->in[0].dtype != N2_NUMBER ||
           (c->in[0].shape.rank >= 4 && n2_wide_pays(c->queue, n_in(c, 0)));
}

void n2_note_wide_sums(const n2_call *c, float *to, int64_t outer, int64_t rows, int64_t inner) {
    job j = job_of(c, JOB_WIDE);
    wide_sums s = {};
    const n2_view *in = &c->in[0];
    s.rows = rows, s.inner = inner;
    s.type = in->dtype;
    s.outer = (int32_t)outer;
    const int64_t wanted = n2_wide_sums_slices(outer, rows, inner);
    s.slice_rows = (int32_t)pieces(rows, wanted);
    s.slices = (int32_t)wanted;
    s.eight = inner % 8 == 0 && (uintptr_t)in->data % 16 == 0;
    const int64_t lanes = s.eight ? inner / 8 : inner;
    s.strips = (int32_t)pieces(lanes, SUM_THREADS);
    s.lanes = (int32_t)(lanes < SUM_THREADS ? lanes : (int64_t)SUM_THREADS);
    s.rows_a_time = SUM_THREADS / s.lanes;
    j.in[0] = in_of(c, 0);
    j.out = to;
    j.add = c->add && s.slices == 1;
    noted *n = n2_wide_add(c->queue, &j, WIDE_SUMS, &s, sizeof s);
    n2_wide_reads(n, in);
    n2_note_write(n, to, outer * s.slices * inner);
}
