/* What a fuzz target promises: said and trapped where it does not hold. */
#ifndef REQUIRE_H
#define REQUIRE_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define REQUIRE(condition)                                                  \
    do {                                                                    \
        if (!(condition)) {                                                 \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
            __builtin_trap();                                               \
        }                                                                   \
    } while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
