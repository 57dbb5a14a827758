/* Libraries that are loaded at run time. */
#ifndef N2_CUDA_DYNAMIC_H
#define N2_CUDA_DYNAMIC_H

#include <stddef.h>

/* The first of these files, up to a NULL, that is found: where the loader looks, or where CUDA's
 * toolkit is installed usually. NULL: none. It stays loaded until the program ends. */
void *n2_library_load(const char *const *names);

/* A function of it; NULL: it has none of that name. */
void *n2_library_function(void *library, const char *name);

#endif
