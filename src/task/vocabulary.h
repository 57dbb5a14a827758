/* Options that several verbs have, as rows for their tables. One name, one letter and one meaning
 * over all verbs: tests/unit/test_vocabulary.c looks. */
#ifndef N2_VOCABULARY_H
#define N2_VOCABULARY_H

#include "base/options.h"
#include "io/header.h"

/* clang-format off */
#define N2_SEED_OPTION                                                                           \
    {"seed", 's', N2CE_OPTION_COUNT, "0", 0, 9007199254740992.0, NULL, "S", "random seed"}

#define N2_FIRST_SEED_OPTION                                                                     \
    {"seed", 's', N2CE_OPTION_COUNT, "0", 0, 9007199254740992.0, NULL, "S",                      \
     "random seed of the first repetition; the others follow"}

#define N2_FORCE_OPTION                                                                          \
    {"force", 'f', N2CE_OPTION_FLAG, "false", 0, 0, NULL, NULL, "replace files that are there"}

/* With N2_FORCE_OPTION, of a verb that has a page: n2ce_task_run writes it. */
#define N2_REPORT_OPTION                                                                         \
    {"report", 'r', N2CE_OPTION_PATH, NULL, 0, 0, NULL, "DIR",                                   \
     "write a page with plots, and the JSON, into this folder"}

#define N2_TIME_LIMIT_OPTION                                                                     \
    {"time-limit", 't', N2CE_OPTION_REAL, "auto", 0.1, 1e9, NULL, "S",                           \
     "stop training after so many seconds and use what is there; the result then depends on "    \
     "the machine. auto: no limit"}

#define N2_COLUMNS_OPTION                                                                        \
    {"columns", 'c', N2CE_OPTION_TEXT, "", 0, 0, NULL, "COLS",                                   \
     "columns to use, by name or zero-based number or range: temp,3,5-9; default: all"}

#define N2_HEADER_OPTION                                                                         \
    {"header", 0, N2CE_OPTION_WORD, "auto", 0, 0, "auto|yes|no", "WHICH",                        \
     "whether the first line of a CSV file has names of columns. auto: if it has texts and no "  \
     "number; says what it assumed where both may be"}

#define N2_DROP_MISSING_OPTION                                                                   \
    {"drop-missing", 0, N2CE_OPTION_FLAG, "false", 0, 0, NULL, NULL,                             \
     "leave out rows with missing values instead of refusing them"}
/* clang-format on */

/* What N2_HEADER_OPTION says. */
static inline n2_header n2_header_of(const n2ce_options *o) {
    const char *which = n2ce_options_get(o, "header");
    return *which == 'y' ? N2_HEADER_YES : *which == 'n' ? N2_HEADER_NO : N2_HEADER_AUTO;
}

#endif
