/* The command line. It reaches the library through n2ce.h only: what it needs and
 * cannot reach is missing from the library.
 *
 * A verb is either a task of the library (cmd_task.c serves them all) or one of
 * the few below that are about the program itself. */
#ifndef CLI_H
#define CLI_H

#include "n2ce.h"

#include <stdio.h>

/* Exit codes; documented in help, manual and README. */
enum {
    EXIT_OK = 0,
    EXIT_FAILED = 1, /* the computation failed, or its result could not be written */
    EXIT_USAGE = 2,
    EXIT_DATA = 3, /* bad input data */
    EXIT_DEVICE = 4,
    EXIT_DOUBTFUL = 5, /* with --quiet */
    EXIT_NOTHING = 6,
    /* likewise: the verdict is failed */ /* no such device, or it failed */
    EXIT_INTERRUPTED = 130
};

/* A verb of the program itself. */
typedef struct command {
    const char *name, *arguments, *summary;
    int (*run)(int argc, char **argv); /* arguments after the verb */
} command;
extern const command commands[]; /* ends with a NULL name */
const command *find_command(const char *name);

int cmd_completion(int argc, char **argv);
int cmd_help(int argc, char **argv);
int cmd_man(int argc, char **argv);
int cmd_version(int argc, char **argv);

/* Runs a task of the library with the arguments after its name. */
int cmd_task(const n2ce_task *task, int argc, char **argv);

/* ---- args.c ---- */

/* Options that every task has besides its own. */
extern const n2ce_option common_options[];

typedef struct arguments {
    n2ce_options *own, *common; /* freed by the caller, also after a failure */
} arguments;

/* Reads --name value, --name=value, -x value, switches and bare words, which fill the
 * task's operands in order; "--" ends the options. Prints a sentence and returns
 * EXIT_USAGE if something is wrong. */
int read_arguments(n2ce_ctx *ctx, int argc, char **argv, const n2ce_task *task, arguments *args);

/* The option that the index-th bare word sets; NULL beyond the last. */
const n2ce_option *operand_at(const n2ce_task *task, size_t index);

/* " MODEL [DATA]": the operands as help calls them, a blank before each, those that have
 * a default in brackets; "" if there are none. Returns the buffer. */
const char *format_operands(const n2ce_task *task, char *buffer, size_t size);

/* Whether a task (NULL: none) hides a common option: it has the same one in its own table. */
bool is_hidden(const n2ce_task *task, const n2ce_option *row);

/* Not that of a flag, nor nothing. */
bool has_default_worth_saying(const n2ce_option *row);

bool switched_on(const n2ce_options *options, const char *name);

/* The task whose name the arguments begin with, and how many words that took. */
const n2ce_task *match_task(int argc, char **argv, int *words);

/* Prints what is wrong with a verb, and the nearest one. Returns EXIT_USAGE. */
int unknown_verb(int argc, char **argv);

/* True if the word is the first of some task's two ("study"). */
bool is_group(const char *word);

int exit_code(n2ce_status status);

/* Prints "n2ce: ..." to stderr. What is wrong with the words of the command is the same for all
 * processes that mpirun started, and the first of them says it; once each has work of its own, all
 * may complain. */
extern bool all_may_complain;
void complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Flushes stdout; a full disk there is an error too. */
int finish_output(int code);

/* ---- terminal.c ---- */

/* Text that may have names of files and columns in it, which anybody chose: control characters,
 * which could tell a terminal to do something, are printed as "?". */
void put_harmless(const char *text, FILE *file);

/* A file that is longer than allowed becomes an error of writing, and one that shrinks while it is
 * read a sentence, where the system would end the program. What is said to a stream that is closed
 * goes into no file. */
void survive_files(void);

/* Draws a bar on stderr if it is a terminal; an n2ce_progress_fn whose user is the
 * title. */
void show_progress(void *title, double done, double total);
void clear_progress(void);
bool stderr_is_terminal(void);

/* From now on Ctrl-C cancels the context's task; a second one ends the program. NULL
 * ends that: do it before the context is freed. */
void cancel_on_interrupt(n2ce_ctx *ctx);

#endif
