/* The numbers of an answer, for programs: by name, as estimates, as a test's result, as
 * proposals. */
#include "task.h"

#include "base/numerics.h"

#include <math.h>
#include <string.h>

struct n2_noted_number {
    const char *name;
    double value;
    struct n2_noted_number *next;
};

struct n2_noted_estimate {
    const char *name;
    n2ce_estimate estimate;
    struct n2_noted_estimate *next;
};

/* Remembers a failure until the task is over, so that who notes need not look. */
static void *room(n2ce_answer *a, size_t n, size_t size) {
    void *memory = a->incomplete ? NULL : n2_arena_alloc(&a->arena, n, size);
    a->incomplete = !memory;
    return memory;
}

static const char *copy(n2ce_answer *a, const char *text) {
    char *to = room(a, strlen(text) + 1, 1);
    return to ? strcpy(to, text) : NULL;
}

void n2_note_number(n2ce_answer *a, const char *name, double value) {
    struct n2_noted_number *noted = room(a, 1, sizeof *noted);
    if (!noted) return;
    *noted = (struct n2_noted_number){copy(a, name), value, a->numbers};
    if (noted->name) a->numbers = noted;
}

void n2_note_estimate(n2ce_answer *a, const char *name, const n2ce_estimate *e) {
    struct n2_noted_estimate *noted = room(a, 1, sizeof *noted);
    if (!noted) return;
    *noted = (struct n2_noted_estimate){copy(a, name), *e, a->estimates};
    noted->estimate.unit = copy(a, e->unit);
    noted->estimate.verdict = copy(a, e->verdict);
    noted->estimate.reason = copy(a, e->reason);
    if (!a->incomplete) a->estimates = noted;
}

void n2_note_test(n2ce_answer *a, const n2ce_test_result *result) {
    n2ce_test_result *noted = room(a, 1, sizeof *noted);
    if (!noted) return;
    *noted = *result;
    a->test = noted;
}

static const double *copy_numbers(n2ce_answer *a, const double *x, size_t n) {
    double *to = room(a, n, sizeof *to);
    return to ? memcpy(to, x, n * sizeof *to) : NULL;
}

static const char *const *copy_texts(n2ce_answer *a, const char *const *texts, size_t n) {
    const char **to = room(a, n, sizeof *to);
    for (size_t i = 0; to && i < n; i++) to[i] = copy(a, texts[i]);
    return to;
}

static void copy_levels(n2ce_answer *a, const n2ce_proposals *from, n2ce_proposals *to) {
    size_t *n = room(a, from->cols, sizeof *n);
    const char *const **levels = room(a, from->cols, sizeof *levels);
    for (size_t j = 0; n && levels && j < from->cols; j++) {
        n[j] = from->n_levels[j];
        levels[j] = n[j] ? copy_texts(a, from->levels[j], n[j]) : NULL;
    }
    to->n_levels = n;
    to->levels = levels;
}

void n2_note_proposals(n2ce_answer *a, const n2ce_proposals *p) {
    n2ce_proposals *noted = room(a, 1, sizeof *noted);
    if (!noted) return;
    *noted = (n2ce_proposals){.rows = p->rows, .cols = p->cols};
    noted->names = copy_texts(a, p->names, p->cols);
    noted->designs = copy_numbers(a, p->designs, p->rows * p->cols);
    noted->predicted = copy_numbers(a, p->predicted, p->rows);
    noted->spread = copy_numbers(a, p->spread, p->rows);
    noted->log_prior = copy_numbers(a, p->log_prior, p->rows);
    noted->distance = copy_numbers(a, p->distance, p->rows);
    copy_levels(a, p, noted);
    if (!a->incomplete) a->proposals = noted;
}

double n2ce_answer_number(const n2ce_answer *answer, const char *name) {
    if (!answer || !name) return (double)NAN;
    for (const struct n2_noted_number *at = answer->numbers; at; at = at->next)
        if (strcmp(at->name, name) == 0) return at->value;
    return N2_NAN;
}

const n2ce_estimate *n2ce_answer_estimate(const n2ce_answer *answer, const char *name) {
    if (!answer || !name) return NULL;
    for (const struct n2_noted_estimate *at = answer->estimates; at; at = at->next)
        if (strcmp(at->name, name) == 0) return &at->estimate;
    return NULL;
}

const n2ce_test_result *n2ce_answer_test(const n2ce_answer *answer) {
    return answer ? answer->test : NULL;
}

const n2ce_proposals *n2ce_answer_proposals(const n2ce_answer *answer) {
    return answer ? answer->proposals : NULL;
}
