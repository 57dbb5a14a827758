/* Seconds of a clock that only goes forward. */
#ifndef N2_CLOCK_H
#define N2_CLOCK_H

double n2_seconds(void);

/* Seconds that this thread has had of a processor: not those in which others had it. */
double n2_thread_seconds(void);

/* Between two looks at what another thread or process will write: it may have the core's units
 * meanwhile. */
static inline void n2_relax(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield" ::: "memory");
#endif
}

#endif
