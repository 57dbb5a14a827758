#include "optimize_require.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double LEAST_CHANCE = 0.5;

static n2ce_status read_one(n2ce_ctx *ctx, const char *from, const char *to, n2_requirements *r) {
    char *text = n2_arena_trimmed(&r->arena, from, to);
    if (!text) return N2CE_ENOMEM;
    char *at = strstr(text, ">="), *end = NULL;
    const double sign = at ? 1 : -1;
    if (!at) at = strstr(text, "<=");
    const double limit = at ? strtod(at + 2, &end) : 0;
    while (end && isspace((unsigned char)*end)) end++;
    if (!at || at == text || end == at + 2 || *end || !isfinite(limit))
        return n2_fail(ctx, N2CE_EINVAL,
                       "--require takes \"COLUMN >= NUMBER\" or \"COLUMN <= NUMBER\", not \"%s\".",
                       text);
    if (r->n == N2_LATENT_NEEDS_MAX)
        return n2_fail(ctx, N2CE_EINVAL, "--require takes at most %d conditions.",
                       (int)N2_LATENT_NEEDS_MAX);
    char *column = n2_arena_trimmed(&r->arena, text, at);
    if (!column) return N2CE_ENOMEM;
    r->text[r->n] = text;
    r->column[r->n] = column;
    r->sign[r->n] = sign;
    r->limit[r->n++] = limit;
    return N2CE_OK;
}

n2ce_status n2_requirements_read(n2ce_ctx *ctx, const char *text, n2_requirements *out) {
    *out = (n2_requirements){.arena = n2_arena_new(ctx)};
    while (*text) {
        const char *end = n2_item_end(text, ';');
        N2_TRY(read_one(ctx, text, end, out));
        text = *end ? end + 1 : end;
    }
    return N2CE_OK;
}

void n2_requirements_free(n2_requirements *r) { n2_arena_free(&r->arena); }

n2ce_status n2_requirements_fill(const n2_design_table *t, n2_requirements *r) {
    const size_t rows = t->designs.rows;
    for (size_t k = 0; k < r->n; k++) {
        double *y = n2_arena_alloc(&r->arena, rows, sizeof *y);
        size_t met = 0;
        if (!y) return N2CE_ENOMEM;
        for (size_t i = 0; i < rows; i++) {
            y[i] = r->sign[k] * (t->aside[k * rows + i] - r->limit[k]);
            met += y[i] >= 0;
        }
        r->need[k].y = y;
        r->met[k] = met;
        r->rows = rows;
        if (met == 0)
            n2_log(t->ctx, N2CE_LOG_WARNING,
                   "No row has %s: that is asking for what was never seen.", r->text[k]);
    }
    return N2CE_OK;
}

/* Names every condition, and how many rows have it: the rarest is what to ask less of. */
static n2ce_status tell_too_much(n2ce_ctx *ctx, const n2_requirements *r) {
    n2_text list = n2_text_new(ctx);
    for (size_t k = 0; k < r->n; k++)
        n2_text_add(&list, "%s%s (%zu of %zu rows do)", k ? " and " : "", r->text[k], r->met[k],
                    r->rows);
    const n2ce_status status =
        n2_fail(ctx, N2CE_EDATA,
                "No design was found that is likely to have %s. Ask for less, or for fewer things "
                "at once.",
                list.data ? list.data : r->text[0]);
    n2_text_free(&list);
    return status;
}

n2ce_status n2_requirements_keep(n2ce_ctx *ctx, n2_latent *m, const n2_requirements *r,
                                 size_t columns, n2_proposals *p) {
    size_t kept = 0;
    if (r->n == 0) {
        p->chance = NULL;
        return N2CE_OK;
    }
    N2_TRY(n2_latent_chance(m, p->x, p->rows, p->chance));
    for (size_t i = 0; i < p->rows; i++) {
        if (!(p->chance[i] >= LEAST_CHANCE)) continue;
        memmove(p->x + kept * columns, p->x + i * columns, columns * sizeof *p->x);
        p->predicted[kept] = p->predicted[i];
        p->log_prior[kept] = p->log_prior[i];
        p->chance[kept++] = p->chance[i];
    }
    p->rows = kept;
    return kept > 0 ? N2CE_OK : tell_too_much(ctx, r);
}
