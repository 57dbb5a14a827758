#include "cli.h"

#include <stdio.h>
#include <string.h>

/* "-t, --time-limit S" or "-j, --json". */
static void print_names(const n2ce_option *row, char *buffer, size_t size) {
    const char *value = row->value ? row->value : "", *gap = row->value ? " " : "";
    if (row->letter)
        snprintf(buffer, size, "-%c, --%s%s%s", row->letter, row->name, gap, value);
    else
        snprintf(buffer, size, "    --%s%s%s", row->name, gap, value);
}

static void print_range(const n2ce_option *row) {
    if (row->choices) printf(" {%s}", row->choices);
    if (has_default_worth_saying(row)) printf(" [%s]", row->fallback);
}

/* Of a common table, without what the task hides; NULL: nothing is hidden. */
static void print_options(const char *title, const n2ce_option *table, const n2ce_task *task) {
    printf("\n%s\n", title);
    for (const n2ce_option *row = table; row->name; row++) {
        char names[64];
        if (is_hidden(task, row)) continue;
        print_names(row, names, sizeof names);
        printf("  %-22s  %s", names, row->help);
        print_range(row);
        printf("\n");
    }
}

static void print_exit_codes(void) {
    printf("\nExit codes\n"
           "  0  done\n"
           "  1  the computation failed, or its result could not be written\n"
           "  2  bad usage, or a file would have been overwritten\n"
           "  3  bad input data\n"
           "  4  a device is missing or failed\n"
           "  5  with --quiet: the number is doubtful\n"
           "  6  with --quiet: the number means nothing, its verdict is failed\n"
           "  130  interrupted (Ctrl-C); what was finished is printed and saved\n");
}

static void print_indented(const char *text) {
    while (*text) {
        const size_t n = strcspn(text, "\n");
        printf("  %.*s\n", (int)n, text);
        text += n + (text[n] == '\n');
    }
}

static void print_task_help(const n2ce_task *task) {
    char operands[256];
    printf("n2ce %s: %s\n\n", n2ce_task_name(task), n2ce_task_summary(task));
    printf("Usage: n2ce %s%s [options]\n\n%s", n2ce_task_name(task),
           format_operands(task, operands, sizeof operands), n2ce_task_description(task));
    print_options("Options [default]", n2ce_task_options(task), NULL);
    print_options("Common options", common_options, task);
    printf("\nExamples\n");
    print_indented(n2ce_task_examples(task));
    print_exit_codes();
}

static void print_program_help(void) {
    printf("n2ce: density ratios and energy-based models by noisier noise contrastive\n"
           "estimation.\n\nUsage: n2ce VERB [options]\n\nVerbs\n");
    for (size_t i = 0; n2ce_task_at(i); i++)
        printf("  %-22s  %s\n", n2ce_task_name(n2ce_task_at(i)),
               n2ce_task_summary(n2ce_task_at(i)));
    for (const command *c = commands; c->name; c++) {
        char name[64];
        snprintf(name, sizeof name, "%s %s", c->name, c->arguments);
        printf("  %-22s  %s\n", name, c->summary);
    }
    print_options("Options of every verb that computes", common_options, NULL);
    printf("\nExample\n");
    print_indented("n2ce study gaussian --runs 20 --report out\n"
                   "n2ce help study gaussian\n");
    print_exit_codes();
}

static bool in_group(const n2ce_task *task, const char *word) {
    const size_t n = strlen(word);
    return strncmp(n2ce_task_name(task), word, n) == 0 && n2ce_task_name(task)[n] == ' ';
}

bool is_group(const char *word) {
    for (size_t i = 0; n2ce_task_at(i); i++)
        if (in_group(n2ce_task_at(i), word)) return true;
    return false;
}

static void print_group(const char *word) {
    printf("n2ce %s NAME [options], with NAME one of\n", word);
    for (size_t i = 0; n2ce_task_at(i); i++) {
        const n2ce_task *task = n2ce_task_at(i);
        if (!in_group(task, word)) continue;
        printf("  %-22s  %s\n", n2ce_task_name(task) + strlen(word) + 1, n2ce_task_summary(task));
    }
    printf("Try: n2ce help %s NAME\n", word);
}

static void print_command_help(const command *c) {
    printf("n2ce %s%s%s: %s\n", c->name, *c->arguments ? " " : "", c->arguments, c->summary);
}

int cmd_help(int argc, char **argv) {
    int words;
    const n2ce_task *task = match_task(argc, argv, &words);
    const command *own = argc > 0 ? find_command(argv[0]) : NULL;
    if (argc == 0)
        print_program_help();
    else if (task)
        print_task_help(task);
    else if (own)
        print_command_help(own);
    else if (is_group(argv[0]))
        print_group(argv[0]);
    else
        return unknown_verb(argc, argv);
    return EXIT_OK;
}
