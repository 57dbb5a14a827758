/* The CPU backend: float, row programs, kernels for the instruction set of this machine. May use
 * engine, objective, and the plain kernels of ref. */
#ifndef N2_CPU_H
#define N2_CPU_H

#include "engine/kernel.h"

const n2_backend *n2_cpu_backend(void);

#endif
