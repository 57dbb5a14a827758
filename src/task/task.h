/* A task is data in, answer out: a line of the list in api/verb_list.h. */
#ifndef N2_TASK_H
#define N2_TASK_H

#include "base/arena.h"
#include "base/options.h"

struct n2ce_task {
    const char *name;        /* what is typed: "study gaussian" */
    const char *summary;     /* one line */
    const char *description; /* paragraphs for help and manual */
    const char *examples;    /* lines to paste */
    const char *page, *data; /* files of the report: "x.html", "x.json"; NULL: none. With them the
                              * table has N2_REPORT_OPTION and N2_FORCE_OPTION */
    const n2ce_option *options;
    const char *operands; /* options that may be given as bare words, in this order, separated by
                           * single blanks: "model data"; NULL: none */
    /* Fills the texts of the answer. After N2CE_ECANCELED it may have filled them
     * with what was finished. */
    n2ce_status (*run)(n2ce_ctx *ctx, const n2ce_options *options, n2ce_answer *answer);
    /* The same for a task that works on samples: `matrices` of them in memory, or, if data is
     * NULL, those in the files that its options name. */
    n2ce_status (*run_on)(n2ce_ctx *ctx, const n2ce_options *options, const n2ce_matrix *data,
                          n2ce_answer *answer);
    size_t matrices;
};

struct n2ce_answer {
    n2ce_ctx *ctx;
    const n2ce_task *task;
    char *text, *json, *brief, *kept, *html; /* from the context's allocator */
    n2ce_model *model;                       /* or NULL */
    n2_arena arena;                          /* of what was noted: */
    struct n2_noted_number *numbers;
    struct n2_noted_estimate *estimates;
    const n2ce_test_result *test;
    const n2ce_proposals *proposals;
    bool incomplete; /* there was no memory for a note: the task fails */
};

/* A task that may be killed keeps what it has in FILE.part beside its report's data; see
 * study/study_runner.h. */
#define N2_PART ".part"

/* Numbers for n2ce_answer_number and its neighbours; everything is copied. A failure is
 * remembered, and makes the task fail when it is over. */
void n2_note_number(n2ce_answer *a, const char *name, double value);
void n2_note_estimate(n2ce_answer *a, const char *name, const n2ce_estimate *e);
void n2_note_test(n2ce_answer *a, const n2ce_test_result *result);
void n2_note_proposals(n2ce_answer *a, const n2ce_proposals *p);

/* The texts of an answer while they are written. */
typedef struct n2_writer {
    n2_text text, json, brief, kept;
} n2_writer;
n2_writer n2_writer_new(n2ce_ctx *ctx);
void n2_writer_free(n2_writer *w);

/* Hands the texts to the answer; frees the writer in any case. */
n2ce_status n2_writer_take(n2_writer *w, n2ce_answer *answer);

/* A task's body, with memory that is freed when it returns. */
typedef n2ce_status n2_task_body(n2ce_ctx *ctx, const n2ce_options *options, n2_arena *arena,
                                 n2ce_answer *answer);
n2ce_status n2_task_in_arena(n2ce_ctx *ctx, const n2ce_options *options, n2ce_answer *answer,
                             n2_task_body *body);

/* One form of an answer (text, JSON, ...) about something, and its text as a string. */
typedef n2ce_status n2_form(n2_text *out, const void *about, n2_arena *arena);
n2ce_status n2_form_write(n2ce_ctx *ctx, const void *about, n2_form *form, char **to);

#endif
