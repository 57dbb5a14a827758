/* How many processors this process may use: those of the machine that it is let run on (affinity),
 * and no more than the time that its control group has (containers). */
#ifndef N2_PROCESSORS_H
#define N2_PROCESSORS_H

/* 1 to 1024. */
int n2_processors(void);

/* Whole processors of a quota, "200000 100000" as in cpu.max of a control group, rounded up; 0:
 * there is no limit. */
int n2_processors_of_quota(const char *text);

#endif
