/* Rows packed by eight for products of all of one set with all of another: panel p holds rows 8 p
 * to 8 p + 7 as [d][8], zeros where there are none. */
#ifndef N2_ROW_PANELS_H
#define N2_ROW_PANELS_H

#include "metric.h"

#include "base/linalg.h"

typedef struct n2_row_panels {
    size_t n, d, panels;
    double *x;
} n2_row_panels;

static inline size_t n2_panels_of(size_t n) { return (n + N2_TILE - 1) / N2_TILE; }

/* Packs row index[i] as row i, for i below n; x has room for 8 d n2_panels_of(n) numbers. */
static inline n2_row_panels n2_row_panels_pack(const n2_feature_rows *rows, const size_t *index,
                                               size_t n, double *x) {
    const n2_row_panels p = {n, rows->d, n2_panels_of(n), x};
    for (size_t i = 0; i < N2_TILE * p.panels; i++) {
        double *to = x + i / N2_TILE * rows->d * N2_TILE + i % N2_TILE;
        const float *from = i < n ? rows->x + index[i] * rows->d : NULL;
        for (size_t k = 0; k < rows->d; k++) to[k * N2_TILE] = from ? (double)from[k] : 0;
    }
    return p;
}

/* out[8 r + c]: row r of panel i of a, times row c of panel k of b. */
static inline void n2_row_panels_multiply(const n2_row_panels *a, size_t i, const n2_row_panels *b,
                                          size_t k, double out[N2_TILE * N2_TILE]) {
    n2_tile_product(a->x + i * a->d * N2_TILE, 1, N2_TILE, b->x + k * b->d * N2_TILE, N2_TILE, a->d,
                    out);
}

#endif
