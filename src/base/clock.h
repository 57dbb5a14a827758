/* Seconds of a clock that only goes forward. */
#ifndef N2_CLOCK_H
#define N2_CLOCK_H

double n2_seconds(void);

/* Seconds that this thread has had of a processor: not those in which others had it. */
double n2_thread_seconds(void);

#endif
