#include "cli.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const n2ce_option common_options[] = {
    {"json", 'j', N2CE_OPTION_FLAG, "false", 0, 0, NULL, NULL, "print one JSON object"},
    {"quiet", 'q', N2CE_OPTION_FLAG, "false", 0, 0, NULL, NULL,
     "print bare numbers, one a line, and nothing on stderr but errors"},
    {"report", 'o', N2CE_OPTION_PATH, NULL, 0, 0, NULL, "DIR",
     "write a page with plots, and the JSON, into this folder"},
    {"force", 'f', N2CE_OPTION_FLAG, "false", 0, 0, NULL, NULL,
     "replace a report that is there already"},
    {"threads", 0, N2CE_OPTION_COUNT, "0", 0, 1024, NULL, "T",
     "threads to use, 0 for one a core; the result is the same"},
    {"help", 'h', N2CE_OPTION_FLAG, "false", 0, 0, NULL, NULL, "print help and stop"},
    {0},
};

void complain(const char *format, ...) {
    va_list args;
    va_start(args, format);
    fputs("n2ce: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
}

int exit_code(n2ce_status status) {
    switch (status) {
    case N2CE_OK:
        return EXIT_OK;
    case N2CE_EINVAL:
    case N2CE_EEXIST:
        return EXIT_USAGE;
    case N2CE_ENAN:
    case N2CE_EDATA:
        return EXIT_DATA;
    case N2CE_ECANCELED:
        return EXIT_INTERRUPTED;
    case N2CE_ENOMEM:
    case N2CE_ERANGE:
    case N2CE_EIO:
        return EXIT_FAILED;
    }
    return EXIT_FAILED;
}

/* The error is cleared once it was told, so that it is told once. */
int finish_output(int code) {
    if (fflush(stdout) == 0 && !ferror(stdout)) return code;
    complain("the output could not be written: %s.", strerror(errno));
    clearerr(stdout);
    return EXIT_FAILED;
}

/* ---- options ------------------------------------------------------------- */

/* One argument split at its "=": "--dim=5" is name "dim", value "5". */
typedef struct word {
    char name[64];
    const char *value; /* NULL: none attached */
} word;

static bool split(const char *argument, word *w) {
    const bool is_long = strncmp(argument, "--", 2) == 0;
    if (!is_long && !(argument[0] == '-' && argument[1] && !argument[2])) return false;
    const char *name = argument + (is_long ? 2 : 1), *equals = strchr(name, '=');
    const size_t n = equals ? (size_t)(equals - name) : strlen(name);
    if (n == 0 || n >= sizeof w->name) return false;
    memcpy(w->name, name, n);
    w->name[n] = '\0';
    w->value = equals ? equals + 1 : NULL;
    return true;
}

/* The options, the task's own or the common ones, whose table knows the name. */
static n2ce_options *find_owner(const arguments *args, const n2ce_option *own_table, const word *w,
                                const n2ce_option **row) {
    if ((*row = n2ce_option_find(own_table, w->name))) return args->own;
    if ((*row = n2ce_option_find(common_options, w->name))) return args->common;
    return NULL;
}

static int unknown_option(const n2ce_option *own_table, const char *argument, const word *w,
                          const char *verb) {
    const char *names[128];
    size_t n = 0;
    const n2ce_option *const tables[] = {own_table, common_options};
    for (size_t t = 0; t < 2; t++)
        for (const n2ce_option *row = tables[t]; row->name && n < 128; row++)
            names[n++] = row->name;
    const char *nearest = n2ce_nearest_word(w->name, names, n);
    if (nearest)
        complain("there is no option %s; did you mean --%s?", argument, nearest);
    else
        complain("there is no option %s. Try: n2ce help %s", argument, verb);
    return EXIT_USAGE;
}

/* Sets the option that argv[0] names; *used is how many arguments that took. */
static int read_one(n2ce_ctx *ctx, int argc, char **argv, const n2ce_task *task, arguments *args,
                    int *used) {
    const n2ce_option *own_table = n2ce_task_options(task), *row;
    const char *verb = n2ce_task_name(task);
    word w;
    if (!split(argv[0], &w)) {
        complain("\"%s\" is not an option, and %s takes nothing else. Try: n2ce help %s", argv[0],
                 verb, verb);
        return EXIT_USAGE;
    }
    n2ce_options *owner = find_owner(args, own_table, &w, &row);
    if (!owner) return unknown_option(own_table, argv[0], &w, verb);
    *used = 1;
    if (!w.value && row->type == N2CE_OPTION_FLAG) w.value = "true";
    if (!w.value) {
        if (argc < 2) {
            complain("--%s needs a value. Try: n2ce help %s", row->name, verb);
            return EXIT_USAGE;
        }
        w.value = argv[1];
        *used = 2;
    }
    const n2ce_status status = n2ce_options_set(owner, row->name, w.value);
    if (status != N2CE_OK) complain("%s", n2ce_errmsg(ctx));
    return exit_code(status);
}

int read_arguments(n2ce_ctx *ctx, int argc, char **argv, const n2ce_task *task, arguments *args) {
    n2ce_status status = n2ce_options_new(ctx, n2ce_task_options(task), &args->own);
    if (status == N2CE_OK) status = n2ce_options_new(ctx, common_options, &args->common);
    if (status != N2CE_OK) {
        complain("%s", n2ce_errmsg(ctx));
        return exit_code(status);
    }
    for (int i = 0, used = 1; i < argc; i += used) {
        const int code = read_one(ctx, argc - i, argv + i, task, args, &used);
        if (code != EXIT_OK) return code;
    }
    return EXIT_OK;
}

bool switched_on(const n2ce_options *options, const char *name) {
    return strcmp(n2ce_options_get(options, name), "true") == 0;
}

/* ---- verbs --------------------------------------------------------------- */

/* The first n arguments joined by single spaces. */
static void join(int n, char **argv, char *buffer, size_t size) {
    size_t at = 0;
    buffer[0] = '\0';
    for (int i = 0; i < n && at < size; i++) {
        const int added = snprintf(buffer + at, size - at, i ? " %s" : "%s", argv[i]);
        at += added > 0 ? (size_t)added : 0;
    }
}

enum { MOST_WORDS = 2 }; /* of a task's name */

const n2ce_task *match_task(int argc, char **argv, int *words) {
    char name[128];
    for (*words = argc < MOST_WORDS ? argc : MOST_WORDS; *words > 0; --*words) {
        join(*words, argv, name, sizeof name);
        const n2ce_task *task = n2ce_task_find(name);
        if (task) return task;
    }
    return NULL;
}

int unknown_verb(int argc, char **argv) {
    const char *names[64];
    size_t n = 0;
    for (const command *c = commands; c->name && n < 64; c++) names[n++] = c->name;
    for (size_t i = 0; n2ce_task_at(i) && n < 64; i++) names[n++] = n2ce_task_name(n2ce_task_at(i));
    char typed[128];
    const char *nearest = NULL;
    for (int words = argc < MOST_WORDS ? argc : MOST_WORDS; words > 0 && !nearest; words--) {
        join(words, argv, typed, sizeof typed);
        nearest = n2ce_nearest_word(typed, names, n);
    }
    if (nearest)
        complain("there is no verb \"%s\"; did you mean \"%s\"?", typed, nearest);
    else
        complain("there is no verb \"%s\". Try: n2ce help", argv[0]);
    return EXIT_USAGE;
}
