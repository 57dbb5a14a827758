/* How much memory this machine could still give. */
#ifndef N2_HOST_MEMORY_H
#define N2_HOST_MEMORY_H

#include <stddef.h>

/* Bytes that are available without doing others harm, with what can be swapped out, and no more
 * than the limit of the control group. SIZE_MAX where the system does not say. */
size_t n2_host_memory(void);

#endif
