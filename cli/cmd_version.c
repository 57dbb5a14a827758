#include "cli.h"

#include <stdio.h>

int cmd_version(int argc, char **argv) {
    (void)argv;
    if (argc > 0) {
        complain("version takes no arguments.");
        return EXIT_USAGE;
    }
    printf("n2ce %s\n", n2ce_version());
    return EXIT_OK;
}
