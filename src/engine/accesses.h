/* What a kernel reads and writes, told to ThreadSanitizer, which does not look into kernels: loops
 * over numbers take it longer than all else (docs/security.md). Threads that meet in memory because
 * a plan is wrong are found all the same. Without ThreadSanitizer there is nothing to it. */
#ifndef N2_ACCESSES_H
#define N2_ACCESSES_H

#include "kernel.h"

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define N2_TELL_ACCESSES
#endif
#endif
#ifdef __SANITIZE_THREAD__
#define N2_TELL_ACCESSES
#endif

#ifdef N2_TELL_ACCESSES
/* Of a call that is about to be made; bytes: of a number. */
void n2_tell_accesses(const n2_call *call, size_t bytes);
#else
static inline void n2_tell_accesses(const n2_call *call, size_t bytes) {
    (void)call;
    (void)bytes;
}
#endif

#endif
