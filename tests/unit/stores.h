/* Tensors of two stores beside one another. */
#ifndef TEST_STORES_H
#define TEST_STORES_H

#include "close.h"

#include "engine/graph.h"

#include <stdlib.h>
#include <string.h>

static inline double *values_of(const n2_store *store, const n2_tensor *t) {
    double *values = calloc((size_t)n2_elements(t->shape) + 1, sizeof *values);
    assert_non_null(values);
    n2_tensor_get(store, t, values);
    return values;
}

static inline void assert_same_tensors(const n2_store *a, const n2_store *b) {
    for (size_t i = 0; n2_store_at(a, i); i++) {
        const n2_tensor *t = n2_store_at(a, i);
        double *x = values_of(a, t);
        double *y = values_of(b, n2_store_at(b, i));
        if (memcmp(x, y, (size_t)n2_elements(t->shape) * sizeof *x) != 0)
            fail_msg("the tensor %s differs", t->name);
        free(x);
        free(y);
    }
}

#endif
