/* What a training keeps: the best weights so far, and the checkpoint. */
#include "training.h"

#include "base/clock.h"
#include "base/text.h"
#include "io/own_file.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- weights --------------------------------------------------------------- */

static n2_tensor *judged(const n2_training *r, n2_tensor *parameter) {
    return n2_phase_at(r)->average > 0 ? n2_average_of(r->t->store, parameter) : parameter;
}

n2ce_status n2_keep_member(const n2_training *r, size_t member) {
    const n2_phase *p = n2_phase_at(r);
    const size_t members = p->members ? p->members : 1, each = p->parameters->n / members;
    for (size_t i = member * each; i < (member + 1) * each; i++) {
        n2_tensor *t = p->parameters->list[i];
        n2_tensor *kept = n2_twin_of(r->t->store, "kept", t);
        N2_TRY(n2_copy_tensor(r->t->store, kept, judged(r, t)));
    }
    return N2CE_OK;
}

n2ce_status n2_end_weights(const n2_training *r) {
    const n2_phase *p = n2_phase_at(r);
    for (size_t i = 0; (p->check || p->average > 0) && i < p->parameters->n; i++) {
        n2_tensor *t = p->parameters->list[i];
        n2_tensor *best = p->check ? n2_twin_of(r->t->store, "kept", t) : judged(r, t);
        if (judged(r, t) != best) N2_TRY(n2_copy_tensor(r->t->store, judged(r, t), best));
        if (judged(r, t) != t) N2_TRY(n2_copy_tensor(r->t->store, t, best));
    }
    return N2CE_OK;
}

/* ---- the checkpoint -------------------------------------------------------- */

/* A record as numbers, for a checkpoint's note. */
enum { NUMBERS = 4 + N2_TRAIN_OUTPUTS + 2 * N2_TRAIN_MEMBERS };

static void pack(const n2_phase_record *p, double x[NUMBERS]) {
    *x++ = (double)p->steps;
    *x++ = (double)p->since_best;
    *x++ = p->stopped_early;
    *x++ = p->out_of_time;
    for (size_t i = 0; i < N2_TRAIN_OUTPUTS; i++) *x++ = p->output[i];
    for (size_t i = 0; i < N2_TRAIN_MEMBERS; i++) *x++ = p->loss[i];
    for (size_t i = 0; i < N2_TRAIN_MEMBERS; i++) *x++ = (double)p->best[i];
}

static void unpack(const double x[NUMBERS], n2_phase_record *p) {
    p->steps = (uint64_t)*x++;
    p->since_best = (uint64_t)*x++;
    p->stopped_early = *x++ != 0;
    p->out_of_time = *x++ != 0;
    for (size_t i = 0; i < N2_TRAIN_OUTPUTS; i++) p->output[i] = *x++;
    for (size_t i = 0; i < N2_TRAIN_MEMBERS; i++) p->loss[i] = *x++;
    for (size_t i = 0; i < N2_TRAIN_MEMBERS; i++) p->best[i] = (uint64_t)*x++;
}

static void add_number(n2_text *text, double x) {
    char number[N2_NUMBER_ROOM];
    n2_text_add(text, "%s ", n2_format_number(x, number));
}

/* What it is of, an empty line, then phase, step of it, and the records. */
static void write_note(const n2_training *r, n2_text *text) {
    double x[NUMBERS];
    n2_text_add(text, "%s\n", r->t->identity ? r->t->identity : "");
    add_number(text, (double)r->which);
    add_number(text, (double)r->step);
    for (size_t i = 0; i < r->t->n_phases; i++) {
        pack(&r->records[i], x);
        for (size_t k = 0; k < NUMBERS; k++) add_number(text, x[k]);
    }
}

static bool read_number(const char **text, double *x) {
    char *end;
    *x = strtod(*text, &end);
    if (end == *text) return false;
    *text = end;
    return true;
}

/* A whole number from 0 to most. */
static bool is_count(double x, double most) { return x >= 0 && x <= most && x == floor(x); }

/* Whether numbers can be those of a phase of so many steps. */
static bool can_be_record(const double x[NUMBERS], double steps) {
    bool can = is_count(x[0], steps) && is_count(x[1], steps + 1) && is_count(x[2], 1) &&
               is_count(x[3], 1);
    for (size_t i = 0; i < N2_TRAIN_MEMBERS; i++)
        can = can && is_count(x[NUMBERS - N2_TRAIN_MEMBERS + i], steps);
    return can;
}

static bool read_place(n2_training *r, const char *text) {
    const size_t phases = r->t->n_phases;
    double x[NUMBERS], which, step;
    if (!read_number(&text, &which) || !read_number(&text, &step)) return false;
    if (!is_count(which, (double)phases)) return false;
    r->which = (size_t)which;
    if (!is_count(step, r->which < phases ? (double)n2_phase_at(r)->steps : 0)) return false;
    r->step = (uint64_t)step;
    for (size_t i = 0; i < phases; i++) {
        for (size_t k = 0; k < NUMBERS; k++)
            if (!read_number(&text, &x[k])) return false;
        if (!can_be_record(x, (double)r->t->phases[i].steps)) return false;
        unpack(x, &r->records[i]);
    }
    return true;
}

/* ---- what it is of ---- */

/* Skips lines that are the same in both; an empty one is the end. */
static void skip_same(const char **then, const char **now) {
    for (;;) {
        const size_t n = strcspn(*then, "\n"), m = strcspn(*now, "\n");
        if (n == 0 || n != m || strncmp(*then, *now, n) != 0) return;
        *then += n + ((*then)[n] == '\n');
        *now += m + ((*now)[m] == '\n');
    }
}

/* *note is left where the numbers begin. */
static n2ce_status compare_identity(const n2_training *r, const char **note) {
    const char *now = r->t->identity ? r->t->identity : "", *path = r->t->checkpoint;
    skip_same(note, &now);
    if (**note == '\n' && !*now) return N2CE_OK;
    const char *then = *note;
    const int name = (int)strcspn(now, "=\n"), n = (int)strcspn(then, "\n"),
              m = (int)strcspn(now, "\n");
    if (strncmp(then, now, (size_t)name) != 0 || then[name] != '=' || now[name] != '=')
        return n2_fail(r->ctx, N2CE_EDATA,
                       "%s was made by a training of another kind, or by another version. Remove "
                       "it, or leave --resume out.",
                       path);
    return n2_fail(r->ctx, N2CE_EDATA,
                   "%s was begun with %.*s; now it is %.*s. Resume with what it was begun with, or "
                   "leave --resume out.",
                   path, n < 200 ? n : 200, then, m < 200 ? m : 200, now);
}

/* Any plan, for the seed and the device that a checkpoint has. */
static n2_plan *some_plan(const n2_training *r) {
    for (size_t i = 0; i < r->t->n_phases; i++)
        if (r->plans->phases[i].step) return r->plans->phases[i].step;
    return NULL;
}

n2ce_status n2_training_save(n2_training *r) {
    n2_text note = n2_text_new(r->ctx);
    char *text = NULL;
    if (!r->t->checkpoint || !some_plan(r)) return N2CE_OK;
    write_note(r, &note);
    N2_TRY(n2_text_take(&note, &text));
    const n2ce_status status =
        n2_checkpoint_save_own(r->t->store, some_plan(r), text, r->t->checkpoint);
    n2_free(r->ctx, text);
    r->saved = n2_seconds();
    return status;
}

n2ce_status n2_training_try_to_save(n2_training *r) {
    const n2ce_status status = n2_training_save(r);
    if (status != N2CE_EIO && status != N2CE_EEXIST) return status;
    n2_log(r->ctx, N2CE_LOG_WARNING,
           "The state of training could not be saved. %s Training goes on without it%s",
           n2ce_errmsg(r->ctx), r->which < r->t->n_phases ? ", and tries again." : ".");
    return N2CE_OK;
}

static n2ce_status find_where(n2_training *r) {
    const char *path = r->t->checkpoint;
    n2_text note = n2_text_new(r->ctx);
    n2ce_status status = n2_checkpoint_note(r->ctx, path, &note);
    const n2_c_locale scope = n2_c_locale_enter();
    const char *text = note.data ? note.data : "";
    if (status == N2CE_OK && *text) status = compare_identity(r, &text);
    if (status == N2CE_OK && !read_place(r, text))
        status =
            n2_fail(r->ctx, N2CE_EDATA,
                    "%s is no checkpoint of this training. Remove it, or do not resume.", path);
    n2_c_locale_leave(scope);
    n2_text_free(&note);
    return status;
}

n2ce_status n2_training_resume(n2_training *r) {
    const n2_trainer *t = r->t;
    if (!t->checkpoint || !t->resume || access(t->checkpoint, F_OK) != 0) return N2CE_OK;
    if (!some_plan(r)) return N2CE_OK;
    N2_TRY(n2_own_file_claim(r->ctx, t->checkpoint));
    N2_TRY(find_where(r));
    N2_TRY(n2_checkpoint_load(t->store, some_plan(r), t->checkpoint));
    if (r->which < t->n_phases)
        r->records[r->which].out_of_time = false; /* it has a new deadline */
    return t->resumed ? t->resumed(t->user) : N2CE_OK;
}
