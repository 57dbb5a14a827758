#include "shapes_file.h"

#include <math.h>
#include <string.h>

enum { NUMBERS = 5, OF_DIRECTION = 3 }; /* kind, centre, scale, least, most; the last of these */

static void put_directions(n2_bundle *b, const n2_shapes *s) {
    const size_t n = s->directions;
    double *of = n2_bundle_room(b, n * OF_DIRECTION);
    if (!of) return;
    for (size_t k = 0; k < n; k++) {
        const n2_shape_direction *v = &s->direction[k];
        const double row[OF_DIRECTION] = {v->centre, v->least, v->most};
        memcpy(of + k * OF_DIRECTION, row, sizeof row);
    }
    n2_bundle_put_doubles(b, "shapes.directions", n, OF_DIRECTION, of);
    n2_bundle_put_doubles(b, "shapes.turn", n, s->d, s->turn);
}

void n2_shapes_put(n2_bundle *b, const n2_shapes *s) {
    if (!s) return;
    double *columns = n2_bundle_room(b, s->d * NUMBERS), *of = n2_bundle_room(b, 2 * s->n);
    if (!columns || !of) return;
    for (size_t j = 0; j < s->d; j++) {
        const n2_shape_column *c = &s->column[j];
        const double row[NUMBERS] = {(double)c->kind, c->centre, c->scale, c->least, c->most};
        memcpy(columns + j * NUMBERS, row, sizeof row);
    }
    memcpy(of, s->mean, s->n * sizeof *of);
    memcpy(of + s->n, s->scale, s->n * sizeof *of);
    n2_bundle_put_doubles(b, "shapes.columns", s->d, NUMBERS, columns);
    n2_bundle_put_doubles(b, "shapes.functions", 2, s->n, of);
    if (s->directions > 0) put_directions(b, s);
}

/* A level has one function, a column one of the kinds, and none divides by 0. */
static bool read_column(const double *row, n2_shape_column *c) {
    const bool level = !c->feature;
    if (!(row[0] >= 0 && row[0] <= N2_SHAPE_ZEROS) || (level && row[0] != N2_SHAPE_NONE))
        return false;
    c->kind = (n2_shape_kind)row[0];
    c->centre = row[1];
    c->scale = row[2];
    c->least = row[3];
    c->most = row[4];
    return c->kind == N2_SHAPE_NONE || c->scale > 0;
}

static n2ce_status take_columns(n2ce_ctx *ctx, const n2_st_file *f, n2_shapes *s) {
    double *rows = NULL;
    bool fits = true;
    N2_TRY(n2_bundle_take(ctx, f, "shapes.columns", s->d * NUMBERS, &rows));
    for (size_t j = 0; j < s->d; j++) fits = read_column(rows + j * NUMBERS, &s->column[j]) && fits;
    n2_free(ctx, rows);
    return fits ? N2CE_OK : N2CE_EDATA;
}

/* Of a file that has them; then all functions are known. */
static n2ce_status take_directions(n2ce_ctx *ctx, const n2_st_file *f, n2_shapes *s) {
    const n2_st_tensor *t = n2_st_find(f, "shapes.directions");
    const size_t n = t ? n2_st_elements(t) / OF_DIRECTION : 0;
    double *of = NULL, *turn = NULL;
    if (n > N2_MOST_SHAPES || (t && (n == 0 || s->dx > 0))) return N2CE_EDATA;
    if (n > 0) {
        N2_TRY(n2_shapes_add_directions(s, n));
        N2_TRY(n2_bundle_take(ctx, f, "shapes.directions", n * OF_DIRECTION, &of));
        for (size_t k = 0; k < n; k++, of += OF_DIRECTION)
            s->direction[k] = (n2_shape_direction){of[0], of[1], of[2]};
        n2_free(ctx, of - n * OF_DIRECTION);
        N2_TRY(n2_bundle_take(ctx, f, "shapes.turn", n * s->d, &turn));
        memcpy(s->turn, turn, n * s->d * sizeof *turn);
        n2_free(ctx, turn);
    }
    s->n = n2_shapes_count(s);
    return s->n <= N2_MOST_SHAPES ? N2CE_OK : N2CE_EDATA;
}

static n2ce_status take_functions(n2ce_ctx *ctx, const n2_st_file *f, n2_shapes *s) {
    double *of = NULL;
    bool fits = true;
    N2_TRY(n2_bundle_take(ctx, f, "shapes.functions", 2 * s->n, &of));
    for (size_t k = 0; k < s->n; k++) {
        s->mean[k] = of[k];
        s->scale[k] = of[s->n + k];
        fits = fits && s->scale[k] > 0;
    }
    n2_free(ctx, of);
    return fits ? N2CE_OK : N2CE_EDATA;
}

n2ce_status n2_shapes_take(n2ce_ctx *ctx, const n2_st_file *f, const n2_features *features,
                           size_t dx, n2_shapes **out) {
    n2_shapes *s;
    *out = NULL;
    if (!n2_st_find(f, "shapes.columns")) return N2CE_OK;
    N2_TRY(n2_shapes_alloc(ctx, features, dx, &s));
    n2ce_status status = take_columns(ctx, f, s);
    if (status == N2CE_OK) status = take_directions(ctx, f, s);
    if (status == N2CE_OK) status = take_functions(ctx, f, s);
    if (status == N2CE_OK)
        *out = s;
    else
        n2_shapes_free(s);
    return status;
}
