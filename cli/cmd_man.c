/* Manual pages, written from the same tables as parser and help. */
#include "cli.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Text as roff: backslashes, hyphens and a leading dot are special. */
static void print_roff(const char *text) {
    bool line_start = true;
    for (; *text; text++) {
        if (line_start && (*text == '.' || *text == '\'')) fputs("\\&", stdout);
        if (*text == '\\')
            fputs("\\e", stdout);
        else if (*text == '-')
            fputs("\\-", stdout);
        else
            putchar(*text);
        line_start = *text == '\n';
    }
}

/* Without what another table, of the task itself, hides; NULL: nothing is hidden. */
static void print_man_options(const char *title, const n2ce_option *table, const n2ce_task *task) {
    printf(".SH %s\n", title);
    for (const n2ce_option *row = table; row->name; row++) {
        if (is_hidden(task, row)) continue;
        printf(".TP\n.B \\-\\-");
        print_roff(row->name);
        if (row->letter) printf(", \\-%c", row->letter);
        if (row->value) printf(" \\fI%s\\fP", row->value);
        printf("\n");
        print_roff(row->help);
        if (row->choices) printf(" (%s)", row->choices);
        if (has_default_worth_saying(row)) {
            printf("; default ");
            print_roff(row->fallback);
        }
        printf("\n");
    }
}

static void print_head(const char *page, const char *summary) {
    printf(".TH \"%s\" 1 \"\" \"n2ce %s\" \"n2ce manual\"\n.SH NAME\n", page, n2ce_version());
    print_roff(page);
    printf(" \\- ");
    print_roff(summary);
    printf("\n");
}

static void print_exit_section(void) {
    printf(".SH EXIT STATUS\n"
           "0 done; 1 the computation failed or its result could not be written; 2 bad usage,\n"
           "or a file would have been overwritten; 3 bad input data; 4 a device is missing or\n"
           "failed; with --quiet 5 the number is doubtful, 6 its verdict is failed; 130 "
           "interrupted, what was finished is printed and saved.\n"
           ".SH ENVIRONMENT\n.TP\n.B N2CE_ISA\n"
           "portable, avx2 or avx512: use at most these instructions. The result is the same.\n");
}

static void print_synopsis_operands(const n2ce_task *task) {
    char operands[256];
    if (!*format_operands(task, operands, sizeof operands)) return;
    printf(".I");
    print_roff(operands);
    printf("\n");
}

enum { PAGE_NAME = 128 };

/* "study gaussian" has the page n2ce-study-gaussian. */
static const char *page_name(const n2ce_task *task, char page[PAGE_NAME]) {
    snprintf(page, PAGE_NAME, "n2ce-%s", n2ce_task_name(task));
    for (char *c = page; *c; c++)
        if (*c == ' ') *c = '-';
    return page;
}

static void print_task_page(const n2ce_task *task) {
    char page[PAGE_NAME];
    page_name(task, page);
    print_head(page, n2ce_task_summary(task));
    printf(".SH SYNOPSIS\n.B n2ce %s\n", n2ce_task_name(task));
    print_synopsis_operands(task);
    printf("[options]\n.SH DESCRIPTION\n");
    print_roff(n2ce_task_description(task));
    print_man_options("OPTIONS", n2ce_task_options(task), NULL);
    print_man_options("COMMON OPTIONS", common_options, task);
    printf(".SH EXAMPLES\n.nf\n");
    print_roff(n2ce_task_examples(task));
    printf(".fi\n");
    print_exit_section();
    printf(".SH SEE ALSO\n.BR n2ce (1)\n");
}

static void print_program_page(void) {
    print_head("n2ce", "density ratios and energy-based models by noisier noise contrastive "
                       "estimation");
    printf(".SH SYNOPSIS\n.B n2ce\n.I VERB\n[options]\n.SH VERBS\n");
    for (size_t i = 0; n2ce_task_at(i); i++) {
        printf(".TP\n.B %s\n", n2ce_task_name(n2ce_task_at(i)));
        print_roff(n2ce_task_summary(n2ce_task_at(i)));
        printf("\n");
    }
    for (const command *c = commands; c->name; c++) {
        printf(".TP\n.B %s \\fR%s\n", c->name, c->arguments);
        print_roff(c->summary);
        printf("\n");
    }
    print_man_options("OPTIONS OF EVERY VERB THAT COMPUTES", common_options, NULL);
    print_exit_section();
}

/* Pages are printed; with their file as stdout they are written. NULL: the program's page. */
static bool write_page(const char *folder, const n2ce_task *task) {
    char page[PAGE_NAME], path[4096];
    snprintf(path, sizeof path, "%s/%s.1", folder, task ? page_name(task, page) : "n2ce");
    if (!freopen(path, "wx", stdout)) {
        complain("%s: the page cannot be written: %s.", path, strerror(errno));
        return false;
    }
    if (task)
        print_task_page(task);
    else
        print_program_page();
    return true;
}

static int write_all_pages(const char *folder) {
    if (strcmp(folder, "-") == 0) {
        complain("\"-\" names no folder to write into. Write ./- for one of that name.");
        return EXIT_USAGE;
    }
    if (!write_page(folder, NULL)) return EXIT_FAILED;
    for (size_t i = 0; n2ce_task_at(i); i++) {
        const int before = finish_output(EXIT_OK);
        if (before != EXIT_OK) return before;
        if (!write_page(folder, n2ce_task_at(i))) return EXIT_FAILED;
    }
    return EXIT_OK;
}

/* The program's own verbs, and groups of tasks, are on the program's page. */
int cmd_man(int argc, char **argv) {
    int words;
    if (argc == 2 && strcmp(argv[0], "--all") == 0) return write_all_pages(argv[1]);
    const n2ce_task *task = match_task(argc, argv, &words);
    const bool known = argc == 0 || find_command(argv[0]) || is_group(argv[0]);
    if (!task && !known) return unknown_verb(argc, argv);
    if (task)
        print_task_page(task);
    else
        print_program_page();
    return EXIT_OK;
}
