#include "cli.h"

#include <stdio.h>
#include <string.h>

const command commands[] = {
    {"help", "[VERB]", "this page, or all about one verb", cmd_help},
    {"version", "", "version of the program", cmd_version},
    {"completion", "bash|zsh", "a completion script for the shell", cmd_completion},
    {"man", "[VERB|--all DIR]", "the manual page, as roff; all of them into a folder", cmd_man},
    {0},
};

/* The header the program was built with and the library it runs must agree. */
static bool same_version(void) {
    char built[32];
    snprintf(built, sizeof built, "%d.%d.%d", N2CE_VERSION_MAJOR, N2CE_VERSION_MINOR,
             N2CE_VERSION_PATCH);
    if (strcmp(built, n2ce_version()) == 0) return true;
    complain("built for library %s but running with %s; install both from one release.", built,
             n2ce_version());
    return false;
}

/* "n2ce --help" and "n2ce --version" are habits to be served. */
static const char *without_dashes(const char *name) {
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0) return "help";
    if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0) return "version";
    return name;
}

const command *find_command(const char *name) {
    for (const command *c = commands; c->name; c++)
        if (strcmp(c->name, name) == 0) return c;
    return NULL;
}

int main(int argc, char **argv) {
    if (!same_version()) return EXIT_FAILED;
    survive_files();
    if (argc < 2) {
        complain("which verb? Try: n2ce help");
        return EXIT_USAGE;
    }
    const command *c = find_command(without_dashes(argv[1]));
    if (c) return finish_output(c->run(argc - 2, argv + 2));
    int words;
    const n2ce_task *task = match_task(argc - 1, argv + 1, &words);
    if (task) return finish_output(cmd_task(task, argc - 1 - words, argv + 1 + words));
    const bool asks = argc > 2 && (strcmp(argv[2], "--help") == 0 || strcmp(argv[2], "-h") == 0);
    if ((argc == 2 || asks) && is_group(argv[1])) return finish_output(cmd_help(1, argv + 1));
    return unknown_verb(argc - 1, argv + 1);
}
