/* Seconds of a clock that only goes forward. */
#ifndef N2_CLOCK_H
#define N2_CLOCK_H

double n2_seconds(void);

#endif
