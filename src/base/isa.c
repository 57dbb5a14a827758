#include "isa.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static const char *const names[N2_ISA_COUNT] = {N2_ISA_FIRST, "avx2", "avx512"};

static n2_isa best(void) {
#ifdef N2CE_X86
    __builtin_cpu_init();
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") ||
        !__builtin_cpu_supports("bmi"))
        return N2_ISA_PORTABLE;
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl"))
        return N2_ISA_AVX512;
    return N2_ISA_AVX2;
#else
    return N2_ISA_PORTABLE;
#endif
}

static n2_isa choose(void) {
    const n2_isa top = best();
    const char *wish = getenv("N2CE_ISA");
    for (int i = 0; wish && i < (int)top; i++)
        if (strcmp(wish, names[i]) == 0) return (n2_isa)i;
    return top;
}

/* The machine does not change under us, so the answer is kept. Threads that race
 * here store the same value. */
n2_isa n2_isa_current(void) {
    static atomic_int kept = -1;
    int isa = atomic_load_explicit(&kept, memory_order_relaxed);
    if (isa < 0) {
        isa = (int)choose();
        atomic_store_explicit(&kept, isa, memory_order_relaxed);
    }
    return (n2_isa)isa;
}

const char *n2_isa_name(n2_isa isa) { return names[isa]; }
