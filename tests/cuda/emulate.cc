#include "emulate.h"

#include "base/narrow.h"
#include "cuda/fused_mlp/mlp.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include <map>
#include <vector>

emulated_index threadIdx, blockIdx, blockDim;
float4 *emulated_shared;

/* ---- fibers ---------------------------------------------------------------- */

enum { MOST_THREADS = 2048, MOST_CLUSTER = 8, STACK = 128 << 10, SHARED = 228 << 10 };
enum state {
    READY,
    AT_CLUSTER_BARRIER,
    AT_BLOCK_BARRIER,
    AT_FOUR_BARRIER,
    AT_EIGHT_BARRIER,
    AT_WARP_BARRIER,
    DONE
};

struct fiber {
    void *stack; /* where it stopped */
    state at;
    unsigned turns; /* of the warp's slots */
};

static fiber fibers[MOST_THREADS]; /* of all blocks of a cluster */
static float4 *all_shared;
static char *stacks;
static void *scheduler;
static unsigned current;
static const std::function<void()> *body;
static emulated_lane slots[MOST_THREADS / 32][2][32];

/* Saves what a function must leave as it was, and goes on where `to` stopped. */
extern "C" void emulated_switch(void **from, void *to);
#if defined(__x86_64__)
asm(R"(
.text
.globl emulated_switch
emulated_switch:
    push %rbp
    push %rbx
    push %r12
    push %r13
    push %r14
    push %r15
    mov %rsp, (%rdi)
    mov %rsi, %rsp
    pop %r15
    pop %r14
    pop %r13
    pop %r12
    pop %rbx
    pop %rbp
    ret
)");
#else
#error "emulate.cc knows how to switch stacks on x86-64 only"
#endif

static void fiber_main() {
    (*body)();
    fibers[current].at = DONE;
    emulated_switch(&fibers[current].stack, scheduler);
}

static void wait_at(state where) {
    fibers[current].at = where;
    emulated_switch(&fibers[current].stack, scheduler);
}

void __syncthreads() { wait_at(AT_BLOCK_BARRIER); }
void cluster_barrier() { wait_at(AT_CLUSTER_BARRIER); }
float cluster_load(const float *own, unsigned rank) {
    const size_t offset = (size_t)((const char *)own - (const char *)emulated_shared);
    return *(const float *)((const char *)all_shared + (size_t)rank * SHARED + offset);
}
void emulated_warp_barrier() { wait_at(AT_WARP_BARRIER); }
emulated_lane *emulated_warp() { return slots[current / 32][fibers[current].turns++ % 2]; }

/* A stack from which a switch returns into fiber_main, as if it had been called. */
static void start(unsigned threads) {
    if (!stacks) stacks = (char *)aligned_alloc(64, (size_t)MOST_THREADS * STACK);
    for (unsigned t = 0; t < threads; t++) {
        void **top = (void **)(stacks + (size_t)(t + 1) * STACK - 64);
        *--top = NULL; /* a return address that nobody uses */
        *--top = (void *)fiber_main;
        for (int i = 0; i < 6; i++) *--top = NULL;
        fibers[t].stack = top;
        fibers[t].at = READY;
        fibers[t].turns = 0;
    }
}

/* Fibers [begin, end) that all wait at `where`, or are done, go on. */
static bool release(unsigned begin, unsigned end, state where) {
    bool any = false;
    for (unsigned t = begin; t < end; t++) {
        if (fibers[t].at != where && fibers[t].at != DONE) return false;
        any |= fibers[t].at == where;
    }
    for (unsigned t = begin; t < end; t++)
        if (fibers[t].at == where) fibers[t].at = READY;
    return any;
}

/* `blocks` of a cluster, from block `first` on. */
static void run_cluster(unsigned first, unsigned blocks, unsigned each) {
    const unsigned threads = blocks * each;
    start(threads);
    for (;;) {
        bool ran = false;
        for (unsigned t = 0; t < threads; t++) {
            if (fibers[t].at != READY) continue;
            ran = true;
            current = t;
            threadIdx.x = t % each;
            blockIdx.x = first + t / each;
            emulated_shared = (float4 *)((char *)all_shared + (size_t)(t / each) * SHARED);
            emulated_switch(&scheduler, fibers[t].stack);
        }
        bool released = false;
        for (unsigned w = 0; w < threads; w += 32)
            released |= release(w, w + 32 < threads ? w + 32 : threads, AT_WARP_BARRIER);
        for (unsigned t = 0; t < threads; t += 128)
            released |= release(t, t + 128 < threads ? t + 128 : threads, AT_FOUR_BARRIER);
        released |= release(0, threads < 256 ? threads : 256, AT_EIGHT_BARRIER);
        for (unsigned t = 0; t < threads && !released; t += each)
            released = release(t, t + each, AT_BLOCK_BARRIER);
        if (!released) released = release(0, threads, AT_CLUSTER_BARRIER);
        if (released) continue;
        if (ran) continue;
        for (unsigned t = 0; t < threads; t++)
            if (fibers[t].at != DONE) {
                fprintf(stderr, "emulate: threads wait for one another for ever\n");
                abort();
            }
        return;
    }
}

void mma_tf32(float c[4], const uint32_t a[4], const uint32_t b[2]) {
    emulated_lane *lanes = emulated_warp();
    const unsigned lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    memcpy(lanes[lane].a, a, sizeof lanes[lane].a);
    memcpy(lanes[lane].b, b, sizeof lanes[lane].b);
    emulated_warp_barrier();
    for (unsigned i = 0; i < 4; i++) {
        const unsigned row = g + i / 2 * 8, column = 2 * t + i % 2;
        double sum = (double)c[i];
        for (unsigned k = 0; k < 8; k++) {
            const unsigned which = row / 8 + k / 4 * 2;
            const float x = __uint_as_float(lanes[row % 8 * 4 + k % 4].a[which]);
            const float y = __uint_as_float(lanes[column * 4 + k % 4].b[k / 4]);
            sum += (double)x * (double)y;
        }
        c[i] = (float)sum;
    }
}

/* One of two numbers of 16 bits in a word. */
static double half_of(n2_dtype type, uint32_t word, unsigned which) {
    return (double)n2_widen(type, (uint16_t)(which ? word >> 16 : word));
}

static void mma_narrow(n2_dtype type, float c[4], const uint32_t a[4], const uint32_t b[2]) {
    emulated_lane *lanes = emulated_warp();
    const unsigned lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    memcpy(lanes[lane].a, a, sizeof lanes[lane].a);
    memcpy(lanes[lane].b, b, sizeof lanes[lane].b);
    emulated_warp_barrier();
    for (unsigned i = 0; i < 4; i++) {
        const unsigned row = g + i / 2 * 8, column = 2 * t + i % 2;
        double sum = (double)c[i];
        for (unsigned k = 0; k < 16; k++) {
            const unsigned other = k % 8 / 2;
            const uint32_t x = lanes[row % 8 * 4 + other].a[row / 8 + k / 8 * 2];
            const uint32_t y = lanes[column * 4 + other].b[k / 8];
            sum += half_of(type, x, k % 2) * half_of(type, y, k % 2);
        }
        c[i] = (float)sum;
    }
}

void mma_bf16(float c[4], const uint32_t a[4], const uint32_t b[2]) {
    mma_narrow(N2_BF16, c, a, b);
}
void mma_fp16(float c[4], const uint32_t a[4], const uint32_t b[2]) { mma_narrow(N2_F16, c, a, b); }

/* Element (row, column) of matrix k of four, whose rows lanes have named. */
static uint32_t matrix_element(const emulated_lane *lanes, unsigned k, unsigned row,
                               unsigned column) {
    uint16_t x;
    memcpy(&x, (const char *)(uintptr_t)lanes[8 * k + row].number + 2 * column, sizeof x);
    return x;
}

static const emulated_lane *name_row(const void *row) {
    emulated_lane *lanes = emulated_warp();
    lanes[threadIdx.x % 32].number = (double)(uintptr_t)row; /* addresses have 48 bits */
    emulated_warp_barrier();
    return lanes;
}

void load_matrices(uint32_t x[4], const void *row) {
    const emulated_lane *lanes = name_row(row);
    const unsigned g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    for (unsigned k = 0; k < 4; k++)
        x[k] = matrix_element(lanes, k, g, 2 * t) | matrix_element(lanes, k, g, 2 * t + 1) << 16;
}

void load_matrices_turned(uint32_t x[4], const void *row) {
    const emulated_lane *lanes = name_row(row);
    const unsigned g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    for (unsigned k = 0; k < 4; k++)
        x[k] = matrix_element(lanes, k, 2 * t, g) | matrix_element(lanes, k, 2 * t + 1, g) << 16;
}

/* ---- fused MLPs ---------------------------------------------------------------- */

struct arrival_state { /* as many bytes as a barrier has */
    int32_t pending;
    uint32_t turns : 12, count : 10, left : 10; /* the last two: arrivals */
};

static arrival_state *state_of(uint64_t *arrival) { return (arrival_state *)arrival; }

static void look(arrival_state *a) {
    if (a->left || a->pending) return;
    a->turns++;
    a->left = a->count;
}

void arrival_init(uint64_t *arrival, unsigned count) {
    *state_of(arrival) = arrival_state{0, 0, count & 1023u, count & 1023u};
}
void arrive(uint64_t *arrival) {
    state_of(arrival)->left--;
    look(state_of(arrival));
}
void arrival_expect(uint64_t *arrival, unsigned bytes) {
    state_of(arrival)->pending += (int32_t)bytes;
    arrive(arrival);
}
static void check_bulk(const void *to, const void *from, unsigned bytes) {
    if ((uintptr_t)to % 16 || (uintptr_t)from % 16 || bytes % 16) {
        fprintf(stderr, "emulate: a bulk copy that is not aligned\n");
        abort();
    }
}
void copy_bulk(void *to, const void *from, unsigned bytes, uint64_t *arrival) {
    check_bulk(to, from, bytes);
    memcpy(to, from, bytes);
    state_of(arrival)->pending -= (int32_t)bytes;
    look(state_of(arrival));
}
void arrival_wait(uint64_t *arrival, unsigned turn) {
    while (state_of(arrival)->turns == (turn & 4095u)) wait_at(READY);
}

/* ---- fp16 ---------------------------------------------------------------- */

/* To nearest, ties to even; too large becomes infinite. */
static uint16_t to_fp16(float x) {
    const uint32_t bits = __float_as_uint(x), sign = bits >> 16 & 0x8000;
    const float size = fabsf(x);
    if (isnan(x)) return 0x7fff;
    if (size >= 65520.0f) return (uint16_t)(sign | 0x7c00);
    if (size < 6.103515625e-05f) /* in units of 2^-24 */
        return (uint16_t)(sign | (uint32_t)nearbyintf(size * 16777216.0f));
    const uint32_t rest = bits & 0x1fff, cut = (bits & 0x7fffffff) >> 13;
    const uint32_t up = rest > 0x1000 || (rest == 0x1000 && cut & 1);
    return (uint16_t)(sign | (cut + up - (112 << 10)));
}

static float decode_fp16(uint16_t h) {
    const uint32_t exponent = h >> 10 & 31, digits = h & 1023u, sign = (uint32_t)(h >> 15) << 31;
    if (exponent == 0) return (sign ? -1.0f : 1.0f) * (float)digits * 0x1p-24f;
    const uint32_t bits = sign | (exponent == 31 ? 255 : exponent + 112) << 23 | digits << 13;
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* Most of the emulator's time goes into products: their factors are looked up. */
struct fp16_values {
    float of[1 << 16];
    fp16_values() {
        for (uint32_t h = 0; h < 1 << 16; h++) of[h] = decode_fp16((uint16_t)h);
    }
};
static const fp16_values values;
static float from_fp16(uint16_t h) { return values.of[h]; }

uint32_t pack_bf16(float x, float y) {
    return n2_to_bf16(x) | (uint32_t)n2_to_bf16(y) << 16;
}
uint32_t pack_fp16(float x, float y) { return to_fp16(x) | (uint32_t)to_fp16(y) << 16; }
float2 unpack_fp16(uint32_t both) {
    return float2{from_fp16((uint16_t)both), from_fp16((uint16_t)(both >> 16))};
}
uint32_t larger_fp16(uint32_t a, uint32_t b) {
    const float2 x = unpack_fp16(a), y = unpack_fp16(b);
    return pack_fp16(fmaxf(fabsf(x.x), fabsf(y.x)), fmaxf(fabsf(x.y), fabsf(y.y)));
}
uint32_t leaky_fp16(uint32_t both, uint32_t slope) {
    const float2 x = unpack_fp16(both), s = unpack_fp16(slope);
    const float2 y = unpack_fp16(pack_fp16(x.x * s.x, x.y * s.y));
    return pack_fp16(x.x > y.x ? x.x : y.x, x.y > y.y ? x.y : y.y);
}
uint32_t warp_most(uint32_t x) {
    for (int mask = 16; mask > 0; mask /= 2) {
        const uint32_t other = __shfl_xor_sync(0xffffffffu, x, mask);
        x = x > other ? x : other;
    }
    return x;
}

/* ---- products -------------------------------------------------------------- */

/* Eight columns of a row, which lie side by side (packed_at). */
static void fp16_run(const char *packed, unsigned rows, unsigned row, unsigned column, float out[8]) {
    uint16_t h[8];
    memcpy(h, packed + 2 * packed_at(rows, row, column), sizeof h);
    for (unsigned k = 0; k < 8; k++) out[k] = from_fp16(h[k]);
}

/* As gpu_tensor.h says. Lanes show each other sixteen inner numbers at a time. */
void multiply_rows(float sum[64], const uint32_t a[32], const char *b, bool fresh) {
    const unsigned lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    if (fresh) memset(sum, 0, 64 * sizeof *sum);
    for (unsigned j = 0; j < 8; j++) {
        emulated_lane *lanes = emulated_warp();
        memcpy(lanes[lane].a, a + 4 * j, sizeof lanes[lane].a);
        emulated_warp_barrier();
        float row[2][16];
        for (unsigned h = 0; h < 2; h++)
            for (unsigned k = 0; k < 16; k += 2) {
                const float2 x = unpack_fp16(lanes[g * 4 + k / 2 % 4].a[k / 8 * 2 + h]);
                row[h][k] = x.x, row[h][k + 1] = x.y;
            }
        for (unsigned i = 0; i < 64; i += 4)
            for (unsigned c = 0; c < 2; c++)
                for (unsigned k0 = 0; k0 < 16; k0 += 8) {
                    float w[8];
                    fp16_run(b, MLP_WIDTH, i / 4 * 8 + 2 * t + c, 16 * j + k0, w);
                    for (unsigned k = 0; k < 8; k++) {
                        sum[i + c] += row[0][k0 + k] * w[k];
                        sum[i + 2 + c] += row[1][k0 + k] * w[k];
                    }
                }
    }
}

void store_transposed(void *row, const uint32_t a[4]) {
    emulated_lane *lanes = emulated_warp();
    const unsigned lane = threadIdx.x % 32, r = lane % 8;
    memcpy(lanes[lane].a, a, sizeof lanes[lane].a);
    emulated_warp_barrier();
    for (unsigned c = 0; c < 8; c++) {
        const uint32_t pair = lanes[c * 4 + r / 2].a[lane / 8];
        const uint16_t half = (uint16_t)(r % 2 ? pair >> 16 : pair);
        memcpy((char *)row + 2 * c, &half, 2);
    }
}

void multiply_few(float sum[8], uint64_t left, uint64_t right, bool fresh) {
    const char *a = (const char *)(left * 16), *b = (const char *)(right * 16);
    const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4;
    for (unsigned i = 0; i < 8; i++) {
        const unsigned row = 16 * warp + 8 * (i / 2 % 2) + lane / 4;
        const unsigned other = 8 * (i / 4) + lane % 4 * 2 + i % 2;
        if (fresh) sum[i] = 0;
        for (unsigned k0 = 0; k0 < MLP_WIDTH; k0 += 8) {
            float x[8], y[8];
            fp16_run(a, MLP_WIDTH, row, k0, x);
            fp16_run(b, FEW_ROWS, other, k0, y);
            for (unsigned k = 0; k < 8; k++) sum[i] += x[k] * y[k];
        }
    }
}

void multiply_columns(float sum[64], const char *a, const char *b) {
    const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4;
    for (unsigned k = 0; k < 16; k++) {
        float x[2][8];
        fp16_run(a, STASH_TILE_ROWS, k, warp * 16, x[0]);
        fp16_run(a, STASH_TILE_ROWS, k, warp * 16 + 8, x[1]);
        for (unsigned i = 0; i < 64; i += 4) {
            float y[8];
            fp16_run(b, STASH_TILE_ROWS, k, i / 4 * 8, y);
            for (unsigned e = 0; e < 4; e++)
                sum[i + e] += x[e / 2][lane / 4] * y[lane % 4 * 2 + e % 2];
        }
    }
}

uint32_t negative_fp16(uint32_t a, uint32_t b) {
    return (a >> 15 & 1) * 0xffu | (a >> 31) * 0xff00u | (b >> 15 & 1) * 0xff0000u |
           (b >> 31) * 0xff000000u;
}

void add_gated(float *to, float x, uint32_t word, uint32_t bit, float set, float clear) {
    *to = fmaf(x, word & bit ? set : clear, *to);
}

bool any_of_four(bool holds) {
    static bool any[MOST_THREADS / 128];
    bool *mine = &any[current / 128];
    if (current % 128 == 0) *mine = false;
    wait_at(AT_FOUR_BARRIER);
    *mine |= holds;
    wait_at(AT_FOUR_BARRIER);
    const bool answer = *mine;
    wait_at(AT_FOUR_BARRIER);
    return answer;
}

void barrier_of_eight() { wait_at(AT_EIGHT_BARRIER); }

void store_far(bool stores, void *to, uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
    const uint32_t all[4] = {a, b, c, d};
    if (stores) memcpy(to, all, sizeof all);
}

/* ---- streams and graphs ---------------------------------------------------- */

typedef std::function<void()> action;
struct emulated_graph {
    std::vector<action> actions;
};
struct emulated_stream {
    emulated_graph *captured;
    bool first;               /* the one that capturing began with */
    std::vector<action> held; /* of any other: what nobody has waited for yet, if it is late */
};

/* N2CE_EMULATED_LATE, if it is set: what is done beside the first stream is done when that waits
 * for it, not at once. */
static bool is_late() { return getenv("N2CE_EMULATED_LATE") != NULL; }

/* N2CE_EMULATED_BACKWARDS, if it is set: a launch's last block is done first. */
static bool is_backwards() { return getenv("N2CE_EMULATED_BACKWARDS") != NULL; }

/* Done now, or captured. */
static cudaError_t in_stream(cudaStream_t stream, action run) {
    if (stream && stream->captured)
        (is_late() && !stream->first ? stream->held : stream->captured->actions).push_back(run);
    else
        run();
    return cudaSuccess;
}

void emulated_launch(cudaStream_t stream, unsigned blocks, unsigned cluster, unsigned threads,
                     size_t shared, action kernel) {
    if (blocks == 0 || blocks % cluster || cluster > MOST_CLUSTER ||
        cluster * threads > MOST_THREADS || shared > SHARED || shared > emulated_most_shared()) {
        fprintf(stderr, "emulate: a launch of %u blocks, %u threads\n", blocks, threads);
        abort();
    }
    action run = [=] {
        if (!all_shared) all_shared = (float4 *)aligned_alloc(256, (size_t)MOST_CLUSTER * SHARED);
        body = &kernel;
        blockDim.x = threads;
        for (unsigned i = 0; i < blocks; i += cluster) {
            for (unsigned k = 0; k < cluster; k++) /* NaN: nobody relies on zeros */
                memset((char *)all_shared + (size_t)k * SHARED, 0xff, shared);
            run_cluster(is_backwards() ? blocks - cluster - i : i, cluster, threads);
        }
    };
    in_stream(stream, run);
}

/* Memory ends where a page ends that nobody may touch, and another such page comes before it; what
 * was freed is gone. So an access that a GPU's memcheck would complain about stops the program. */
enum { PAGE = 4096 };
static std::map<void *, size_t> allocations; /* bytes that may be touched, in whole pages */
static size_t in_use;

/* N2CE_EMULATED_MEMORY, if it is set, else 1 GiB. */
static size_t memory_size() {
    const char *text = getenv("N2CE_EMULATED_MEMORY");
    return text ? (size_t)strtoull(text, NULL, 10) : (size_t)1 << 30;
}

cudaError_t cudaMalloc(void **out, size_t bytes) {
    const size_t size = (bytes + 255) / 256 * 256, pages = (size + PAGE - 1) / PAGE * PAGE;
    if (in_use + pages > memory_size()) return cudaErrorMemoryAllocation;
    char *begin = (char *)mmap(NULL, pages + 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (begin == MAP_FAILED) return cudaErrorMemoryAllocation;
    if (mprotect(begin + PAGE, pages, PROT_READ | PROT_WRITE) != 0) return cudaErrorMemoryAllocation;
    memset(begin + PAGE, 0xff, pages);
    *out = begin + PAGE + pages - size;
    allocations[*out] = pages;
    in_use += pages;
    return cudaSuccess;
}
cudaError_t cudaMallocHost(void **out, size_t bytes) {
    *out = malloc(bytes);
    return *out ? cudaSuccess : cudaErrorMemoryAllocation;
}
cudaError_t cudaFreeHost(void *memory) {
    free(memory);
    return cudaSuccess;
}
cudaError_t cudaFree(void *memory) {
    const auto found = allocations.find(memory);
    if (found == allocations.end()) {
        fprintf(stderr, "emulate: memory is freed that nobody asked for\n");
        abort();
    }
    munmap((char *)((uintptr_t)memory / PAGE * PAGE) - PAGE, found->second + 2 * PAGE);
    in_use -= found->second;
    allocations.erase(found);
    return cudaSuccess;
}
cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, int) {
    memcpy(to, from, bytes);
    return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, int, cudaStream_t stream) {
    return in_stream(stream, [=] { memcpy(to, from, bytes); });
}
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, void (*run)(void *), void *arg) {
    return in_stream(stream, [=] { run(arg); });
}
cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t) {
    memset(to, value, bytes);
    return cudaSuccess;
}
cudaError_t cudaMemGetInfo(size_t *left, size_t *all) {
    *all = memory_size();
    *left = *all > in_use ? *all - in_use : 0;
    return cudaSuccess;
}
/* N2CE_EMULATED_DEVICES: how many GPUs there are; 1, unless it is set. */
static int devices() {
    const char *text = getenv("N2CE_EMULATED_DEVICES");
    return text ? atoi(text) : 1;
}
cudaError_t cudaSetDevice(int) { return cudaSuccess; }

/* N2CE_EMULATED_GPU: what is wrong with it, if anything. */
static bool gpu_is(const char *what) {
    const char *text = getenv("N2CE_EMULATED_GPU");
    return text && strcmp(text, what) == 0;
}
cudaError_t cudaGetDeviceCount(int *n) {
    *n = gpu_is("none") ? 0 : devices();
    return gpu_is("none")         ? cudaErrorNoDevice
           : gpu_is("old-driver") ? cudaErrorInsufficientDriver
                                  : cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int *version) {
    *version = gpu_is("no-driver") ? 0 : gpu_is("old-driver") ? 10020 : 13000;
    return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int *version) {
    *version = 13000;
    return cudaSuccess;
}
static int capability() {
    const char *text = getenv("N2CE_EMULATED_CAPABILITY");
    return gpu_is("old") ? 7 : text ? atoi(text) : 9;
}
size_t emulated_most_shared() { return (size_t)(capability() >= 9 ? 227 : 163) << 10; }
cudaError_t cudaGetDeviceProperties(cudaDeviceProp *p, int) {
    const char *multiprocessors = getenv("N2CE_EMULATED_MULTIPROCESSORS");
    *p = cudaDeviceProp{"emulated",    capability(),          0, multiprocessors ? atoi(multiprocessors) : 1,
                        memory_size(), emulated_most_shared()};
    return cudaSuccess;
}
cudaError_t cudaGetLastError() { return cudaSuccess; }
const char *cudaGetErrorString(cudaError_t) { return "emulated"; }
const char *cudaGetErrorName(cudaError_t) { return "emulated"; }
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *out, unsigned) {
    *out = new emulated_stream{NULL, false, {}};
    return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t s) {
    delete s;
    return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t) { return cudaSuccess; }

/* A stream that waits for a captured one is captured with it; the order is that of the calls, or of
 * the waiting. */
struct emulated_event {
    emulated_stream *of;
};
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *out, unsigned) {
    *out = new emulated_event{NULL};
    return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t e) {
    delete e;
    return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t s) {
    e->of = s;
    return cudaSuccess;
}
cudaError_t cudaEventRecordWithFlags(cudaEvent_t, cudaStream_t, unsigned) { return cudaSuccess; }
cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t, cudaEvent_t) {
    *ms = 1e-3f; /* every launch takes as long */
    return cudaSuccess;
}
cudaError_t cudaEventSynchronize(cudaEvent_t) { return cudaSuccess; }
cudaError_t cudaStreamWaitEvent(cudaStream_t s, cudaEvent_t e, unsigned) {
    std::vector<action> &held = e->of->held, &done = e->of->captured->actions;
    s->captured = e->of->captured;
    done.insert(done.end(), held.begin(), held.end());
    held.clear();
    return cudaSuccess;
}
cudaError_t cudaStreamBeginCapture(cudaStream_t s, int) {
    s->captured = new emulated_graph;
    s->first = true;
    return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t s, cudaGraph_t *out) {
    *out = s->captured;
    s->captured = NULL;
    return cudaSuccess;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t *out, cudaGraph_t graph, unsigned long long) {
    *out = new emulated_graph(*graph);
    return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
    delete graph;
    return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph) {
    delete graph;
    return cudaSuccess;
}
/* N2CE_EMULATED_IDLE, if it is set: graphs are made, and not run. */
cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t) {
    if (getenv("N2CE_EMULATED_IDLE")) return cudaSuccess;
    for (const action &run : graph->actions) run();
    return cudaSuccess;
}
