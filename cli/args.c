#include "cli.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const n2ce_option common_options[] = {
    {"json", 'j', N2CE_OPTION_FLAG, "false", 0, 0, NULL, NULL, "print one JSON object"},
    {"quiet", 'q', N2CE_OPTION_FLAG, "false", 0, 0, NULL, NULL,
     "print bare numbers, one a line, and nothing on stderr but errors"},
    {"threads", 0, N2CE_OPTION_COUNT, "0", 0, 1024, NULL, "T",
     "threads to use, 0 for one a processor that the process may use; the result is the same"},
    {"ranks", 0, N2CE_OPTION_COUNT, "1", 1, 256, NULL, "R",
     "processes of this machine that share the work; mpirun n2ce is the same on many; the result "
     "is the same"},
    {"gpus", 0, N2CE_OPTION_COUNT, "0", 0, 256, NULL, "N",
     "ranks with a GPU each, and --device cuda where a verb has it; 0: none"},
    {"reproducible", 0, N2CE_OPTION_FLAG, "false", 0, 0, NULL, NULL,
     "the same bytes for any number of ranks on GPUs too, which takes more time; on processors "
     "they "
     "always are"},
    {"help", 'h', N2CE_OPTION_FLAG, "false", 0, 0, NULL, NULL, "print help and stop"},
    {0},
};

bool all_may_complain;

/* Whether mpirun started this as one that is not the first. */
static bool is_echo(void) {
    static const char *const names[] = {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *rank = getenv(names[i]);
        if (rank && atoi(rank) > 0) return true;
    }
    return false;
}

void complain(const char *format, ...) {
    char *text = NULL;
    size_t n;
    va_list args;
    if (!all_may_complain && is_echo()) {
        sleep(1); /* the first to end ends all: not before the sentence is said */
        return;
    }
    va_start(args, format);
    FILE *memory = open_memstream(&text, &n);
    if (memory) vfprintf(memory, format, args);
    if (memory) fclose(memory);
    va_end(args);
    fputs("n2ce: ", stderr);
    put_harmless(text ? text : "no memory to say what is wrong.", stderr);
    fputc('\n', stderr);
    free(text);
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
    case N2CE_EDEVICE:
        return EXIT_DEVICE;
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

/* ---- tables -------------------------------------------------------------- */

enum { MOST_OPERANDS = 8 };

const n2ce_option *operand_at(const n2ce_task *task, size_t index) {
    const char *at = n2ce_task_operands(task);
    if (index >= MOST_OPERANDS) return NULL;
    for (; index > 0 && *at; index--) {
        at += strcspn(at, " ");
        at += *at == ' ';
    }
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(at, " "), at);
    return *name ? n2ce_option_find(n2ce_task_options(task), name) : NULL;
}

const char *format_operands(const n2ce_task *task, char *buffer, size_t size) {
    const n2ce_option *row;
    size_t at = 0;
    buffer[0] = '\0';
    for (size_t k = 0; (row = operand_at(task, k)) && at < size; k++) {
        const char *word = row->value ? row->value : row->name;
        const int added = snprintf(buffer + at, size - at, row->fallback ? " [%s]" : " %s", word);
        for (char *c = buffer + at; *c; c++) *c = (char)toupper((unsigned char)*c);
        at += added > 0 ? (size_t)added : 0;
    }
    return buffer;
}

bool has_default_worth_saying(const n2ce_option *row) {
    return row->fallback && *row->fallback && row->type != N2CE_OPTION_FLAG;
}

bool is_hidden(const n2ce_task *task, const n2ce_option *row) {
    return task && n2ce_option_find(n2ce_task_options(task), row->name);
}

/* ---- options and words --------------------------------------------------- */

typedef struct parser {
    n2ce_ctx *ctx;
    const n2ce_task *task;
    arguments *args;
    bool options_ended;                                          /* by "--" */
    size_t n_words;                                              /* bare ones, so far */
    const char *by_word[MOST_OPERANDS], *by_name[MOST_OPERANDS]; /* NULL: not given so */
} parser;

/* One argument split at its "=": "--dim=5" is name "dim", value "5". */
typedef struct word {
    char name[64];
    const char *value; /* NULL: none attached */
    bool is_letter;    /* "-s" */
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
    w->is_letter = !is_long;
    return true;
}

static const n2ce_option *find_row(const n2ce_option *table, const word *w) {
    for (const n2ce_option *row = table; row->name; row++)
        if (w->is_letter ? row->letter == w->name[0] : strcmp(row->name, w->name) == 0) return row;
    return NULL;
}

/* The options, the task's own or the common ones, whose table knows the name. */
static n2ce_options *find_owner(const parser *p, const word *w, const n2ce_option **row) {
    if ((*row = find_row(n2ce_task_options(p->task), w))) return p->args->own;
    if ((*row = find_row(common_options, w))) return p->args->common;
    return NULL;
}

static int unknown_option(const n2ce_task *task, const char *argument, const word *w) {
    const char *names[128];
    size_t n = 0;
    const n2ce_option *const tables[] = {n2ce_task_options(task), common_options};
    for (size_t t = 0; t < 2; t++)
        for (const n2ce_option *row = tables[t]; row->name && n < 128; row++)
            names[n++] = row->name;
    const char *nearest = n2ce_nearest_word(w->name, names, n);
    if (nearest)
        complain("there is no option %s; did you mean --%s?", argument, nearest);
    else
        complain("there is no option %s. Try: n2ce help %s", argument, n2ce_task_name(task));
    return EXIT_USAGE;
}

/* Neither an option nor a word that the task has a place for. */
static int not_an_option(const parser *p, const char *argument) {
    char operands[256];
    const char *verb = n2ce_task_name(p->task);
    if (!*format_operands(p->task, operands, sizeof operands))
        complain("\"%s\" is not an option, and %s takes nothing else. Try: n2ce help %s", argument,
                 verb, verb);
    else if (operand_at(p->task, p->n_words))
        complain("\"%s\" is not an option; put -- before words that begin with a dash. Try: n2ce "
                 "help %s",
                 argument, verb);
    else
        complain("\"%s\" is not an option, and %s takes no word after%s. Try: n2ce help %s",
                 argument, verb, operands, verb);
    return EXIT_USAGE;
}

/* Sets an option, which is the k-th operand if the task has one of that number. By its
 * name an operand may be set again, as any option; by its name and its place it may not,
 * because then another word is probably not where it was meant to be. */
static int set(const parser *p, n2ce_options *owner, const n2ce_option *row, size_t k,
               const char *value) {
    if (k < MOST_OPERANDS && p->by_word[k] && p->by_name[k]) {
        complain("the word \"%s\" stands for --%s, which is given by its name too, as \"%s\"; "
                 "leave one out, or name every option.",
                 p->by_word[k], row->name, p->by_name[k]);
        return EXIT_USAGE;
    }
    const n2ce_status status = n2ce_options_set(owner, row->name, value);
    if (status != N2CE_OK) complain("%s", n2ce_errmsg(p->ctx));
    return exit_code(status);
}

static int read_word(parser *p, const char *argument) {
    const size_t k = p->n_words;
    const n2ce_option *row = operand_at(p->task, k);
    if (!row) return not_an_option(p, argument);
    p->by_word[k] = argument;
    p->n_words++;
    return set(p, p->args->own, row, k, argument);
}

/* The operand that a row is, MOST_OPERANDS if it is none. */
static size_t operand_of(const n2ce_task *task, const n2ce_option *row) {
    for (size_t k = 0; operand_at(task, k); k++)
        if (operand_at(task, k) == row) return k;
    return MOST_OPERANDS;
}

/* Sets the option that argv[0] names; *used is how many arguments that took. */
static int read_option(parser *p, int argc, char **argv, int *used) {
    const n2ce_option *row;
    word w;
    if (!split(argv[0], &w)) return not_an_option(p, argv[0]);
    n2ce_options *owner = find_owner(p, &w, &row);
    if (!owner) return unknown_option(p->task, argv[0], &w);
    if (!w.value && row->type == N2CE_OPTION_FLAG) w.value = "true";
    if (!w.value) {
        if (argc < 2) {
            complain("--%s needs a value. Try: n2ce help %s", row->name, n2ce_task_name(p->task));
            return EXIT_USAGE;
        }
        w.value = argv[1];
        *used = 2;
    }
    const size_t k = operand_of(p->task, row);
    if (k < MOST_OPERANDS) p->by_name[k] = w.value;
    return set(p, owner, row, k, w.value);
}

/* "-" alone is a word: the standard input, for a task that reads it. */
static bool is_word(const char *argument) { return argument[0] != '-' || argument[1] == '\0'; }

static int read_one(parser *p, int argc, char **argv, int *used) {
    *used = 1;
    if (p->options_ended || is_word(argv[0])) return read_word(p, argv[0]);
    if (strcmp(argv[0], "--") != 0) return read_option(p, argc, argv, used);
    p->options_ended = true;
    return EXIT_OK;
}

int read_arguments(n2ce_ctx *ctx, int argc, char **argv, const n2ce_task *task, arguments *args) {
    n2ce_status status = n2ce_options_new(ctx, n2ce_task_options(task), &args->own);
    if (status == N2CE_OK) status = n2ce_options_new(ctx, common_options, &args->common);
    if (status != N2CE_OK) {
        complain("%s", n2ce_errmsg(ctx));
        return exit_code(status);
    }
    parser p = {.ctx = ctx, .task = task, .args = args};
    for (int i = 0, used = 1; i < argc; i += used) {
        const int code = read_one(&p, argc - i, argv + i, &used);
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
