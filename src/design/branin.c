/* Branin's function, turned round so that larger is better, on [-5, 10] x [0, 15].
 *
 * Offline are `setting` points drawn uniformly by the seed without the best tenth of them: their
 * best value is about -5.9, that of the three optima -0.397887. Variants keep that tenth. A value
 * outside the square is that of the formula, which can be terrible. */
#include "design_space.h"
#include "design_task.h"

#include <math.h>

enum { STREAM = 0x42520000, REMOVED_SHARE = 10 };

double n2_branin(double x1, double x2) {
    const double pi = 3.14159265358979323846;
    const double b = 5.1 / (4 * pi * pi), c = 5 / pi, t = 1 / (8 * pi);
    const double square = x2 - b * x1 * x1 + c * x1 - 6;
    return -square * square - 10 * (1 - t) * cos(x1) - 10;
}

static n2ce_status score(const n2_design_bench *b, const double *x, size_t rows, double *y) {
    (void)b;
    for (size_t i = 0; i < rows; i++) y[i] = n2_branin(x[2 * i], x[2 * i + 1]);
    return N2CE_OK;
}

/* The rows but for the best tenth, in their order. */
static n2ce_status drop_the_best(n2_design_bench *b) {
    n2_designs *d = &b->offline;
    const size_t removed = d->rows / REMOVED_SHARE;
    size_t *best = n2_arena_alloc(&b->by_seed, removed + 1, sizeof *best);
    if (!best) return N2CE_ENOMEM;
    N2_TRY(n2_designs_best(b->ctx, d, removed + 1, best));
    d->rows = n2_keep_up_to(d->y[best[removed]], 2, d->x, d->y, d->rows);
    return N2CE_OK;
}

static n2ce_status begin_all(n2_design_bench *b, uint64_t seed) {
    const size_t n = (size_t)b->task->setting;
    const n2_stream stream = {seed, STREAM, 0};
    N2_TRY(n2_design_make_room(b, n, 2));
    b->offline.space = n2_space_of(&b->by_seed, 2, (n2_factor){N2_CONTINUOUS, 0, 15, 0});
    if (!b->offline.space.factor) return N2CE_ENOMEM;
    b->offline.space.factor[0] = (n2_factor){N2_CONTINUOUS, -5, 10, 0};
    n2_space_uniform(&b->offline.space, stream, n, b->offline.x);
    return score(b, b->offline.x, n, b->offline.y);
}

static n2ce_status begin(n2_design_bench *b, uint64_t seed) {
    N2_TRY(begin_all(b, seed));
    return drop_the_best(b);
}

/* Values are reported as they are. */
#define BRANIN(title, about, points, of, how)                                                    \
    {                                                                                            \
        .name = title, .summary = about, .low = 0, .high = 1, .queries = 128, .setting = points, \
        .variant_of = of, .begin = how, .score = score                                           \
    }

const n2_design_task n2_branin_task =
    BRANIN("branin", "Branin's function in the plane; 5000 points without the best tenth", 5000,
           NULL, begin);
const n2_design_task n2_branin_50_task =
    BRANIN("branin-50", "Branin's function in the plane; 50 points without the best tenth", 50,
           NULL, begin);
const n2_design_task n2_branin_all_task =
    BRANIN("branin-all", "Branin's function in the plane; 5000 points, the best among them", 5000,
           "branin", begin_all);
const n2_design_task n2_branin_50_all_task =
    BRANIN("branin-50-all", "Branin's function in the plane; 50 points, the best among them", 50,
           "branin-50", begin_all);
