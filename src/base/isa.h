/* One source, several instruction sets.
 *
 * A kernel file is plain C with loops over 16 lanes that compilers vectorise.
 * The build compiles it once per instruction set with another suffix:
 *
 *     void N2_ISA(fill)(...)   becomes   fill_portable, fill_avx2, fill_avx512
 *
 * and a table picks one at run time. On other machines there is the first alone:
 * on aarch64 it is NEON's, which every such processor has. Exact kernels are
 * compiled without contraction to fused multiply-add, so all give the same bits. */
#ifndef N2_ISA_H
#define N2_ISA_H

typedef enum n2_isa { N2_ISA_PORTABLE, N2_ISA_AVX2, N2_ISA_AVX512, N2_ISA_COUNT } n2_isa;

/* What the first of them is called. */
#ifdef __aarch64__
#define N2_ISA_FIRST "neon"
#else
#define N2_ISA_FIRST "portable"
#endif

/* The best instruction set of this machine; the environment variable N2CE_ISA
 * (portable, avx2, avx512) asks for a lesser one. */
n2_isa n2_isa_current(void);

const char *n2_isa_name(n2_isa isa);

enum { N2_LANES = 16 }; /* what kernels are written in, on every machine */

/* Used inside kernel files, where the build defines N2_ISA_SUFFIX. */
#define N2_ISA_JOIN_(name, suffix) name##_##suffix
#define N2_ISA_JOIN(name, suffix)  N2_ISA_JOIN_(name, suffix)
#define N2_ISA(name)               N2_ISA_JOIN(name, N2_ISA_SUFFIX)

/* Declares the variants of a kernel and defines a table of them:
 *     N2_ISA_TABLE(fill_fn, fill);  ...  fill_table[n2_isa_current()](...)
 * N2CE_X86 is defined by the build where the vector variants exist. */
#ifdef N2CE_X86
#define N2_ISA_TABLE(type, name)                      \
    type name##_portable, name##_avx2, name##_avx512; \
    static type *const name##_table[N2_ISA_COUNT] = {name##_portable, name##_avx2, name##_avx512}
#else
#define N2_ISA_TABLE(type, name)                                                       \
    type name##_portable;                                                              \
    static type *const name##_table[N2_ISA_COUNT] = {name##_portable, name##_portable, \
                                                     name##_portable}
#endif

#endif
