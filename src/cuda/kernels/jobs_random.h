/* Random numbers in device code, to the bit those of base/random.h: the same counters, and
 * every product and sum rounded by itself. */
#ifndef N2_CUDA_JOBS_RANDOM_H
#define N2_CUDA_JOBS_RANDOM_H

#include "base/philox.h"
#include "cuda/runtime/gpu.h"
#include "job.h"

#define MUL(a, b) __fmul_rn(a, b)
#define ADD(a, b) __fadd_rn(a, b)

__device__ inline float open_uniform(uint32_t w) {
    return ADD(MUL((float)w, 2.3283064365386963e-10f), 1.1641532182693481e-10f);
}

/* n2_lane_log, base/lanes.h. */
__device__ inline float lane_log(float u) {
    const uint32_t bits = __float_as_uint(u);
    const int32_t e = (int32_t)(bits - 0x3f3504f3u) >> 23;
    const float t = ADD(__uint_as_float(bits - ((uint32_t)e << 23)), -1.0f);
    float p = 0.0891786330f;
    p = ADD(MUL(p, t), -0.143502005f);
    p = ADD(MUL(p, t), 0.148769626f);
    p = ADD(MUL(p, t), -0.165656346f);
    p = ADD(MUL(p, t), 0.199653980f);
    p = ADD(MUL(p, t), -0.250017469f);
    p = ADD(MUL(p, t), 0.333338581f);
    p = ADD(MUL(p, t), -0.5f);
    return ADD(MUL((float)e, 0.693147181f), ADD(MUL(MUL(t, t), p), t));
}

/* n2_lane_turn, base/lanes.h: cos and sin of 2 pi w / 2^32. */
__device__ inline void lane_turn(uint32_t w, float *cosine, float *sine) {
    const uint32_t q = (w + 0x20000000u) >> 30;
    const float x = MUL((float)(int32_t)(w - (q << 30)), 1.46291808e-9f), y = MUL(x, x);
    const float s =
        ADD(x, MUL(MUL(x, y), ADD(-0.16666665f, MUL(y, ADD(0.00833275f, -MUL(y, 1.9588e-4f))))));
    float c = ADD(-0.00138873675f, MUL(y, 2.44384514e-5f));
    c = ADD(0.0416666469f, MUL(y, c));
    c = ADD(1.0f, MUL(y, ADD(-0.5f, MUL(y, c))));
    const uint32_t odd = 0u - (q & 1u), sb = __float_as_uint(s), cb = __float_as_uint(c);
    *sine = __uint_as_float(((sb & ~odd) | (cb & odd)) ^ ((q & 2u) << 30));
    *cosine = __uint_as_float(((cb & ~odd) | (sb & odd)) ^ (((q + 1u) & 2u) << 30));
}

/* The four words of a counter. */
__device__ inline void draw_words(const n2_device_state *s, uint32_t stream, uint64_t counter,
                                  uint32_t w[4]) {
    const uint32_t k0 = (uint32_t)s->seed, k1 = (uint32_t)(s->seed >> 32);
    uint32_t a = (uint32_t)counter, b = (uint32_t)(counter >> 32), c = s->step, d = stream;
    N2_PHILOX_ROUNDS(a, b, c, d, k0, k1);
    w[0] = a, w[1] = b, w[2] = c, w[3] = d;
}

/* Element e of a stream of uniform numbers. */
__device__ inline float draw_uniform(const n2_device_state *s, uint32_t stream, uint64_t e) {
    uint32_t w[4];
    draw_words(s, stream, e / 64 * 16 + e % 16, w);
    return open_uniform(w[e % 64 / 16]);
}

__device__ inline void box_muller(uint32_t w0, uint32_t w1, float *x, float *y) {
    const float radius = __fsqrt_rn(MUL(-2.0f, lane_log(open_uniform(w0))));
    float c, s;
    lane_turn(w1, &c, &s);
    *x = MUL(radius, c);
    *y = MUL(radius, s);
}

#undef MUL
#undef ADD
#endif
