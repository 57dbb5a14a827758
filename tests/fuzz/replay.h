/* A fuzz target as a plain program, for compilers without libFuzzer and for the tests. The
 * target includes this under FUZZ_REPLAY and defines random_input(). */
#ifndef REPLAY_H
#define REPLAY_H

#include "require.h"

#include <stdlib.h>

#ifndef REPLAY_INPUTS
#define REPLAY_INPUTS 2000
#endif

/* Makes up an input of at most `room` bytes; returns its size. */
static size_t random_input(uint32_t *state, uint8_t *buffer, size_t room);

/* The generator of Numerical Recipes; the upper bits are the good ones. */
static uint32_t next_random(uint32_t *state) {
    *state = *state * 1664525u + 1013904223u;
    return *state >> 16;
}

static void replay_file(const char *path) {
    static uint8_t buffer[1 << 20];
    FILE *file = fopen(path, "rb");
    if (!file) {
        perror(path);
        exit(1);
    }
    LLVMFuzzerTestOneInput(buffer, fread(buffer, 1, sizeof buffer, file));
    fclose(file);
}

/* Feeds the files named on the command line or, without any, random inputs. */
int main(int argc, char **argv) {
    for (int i = 1; i < argc; i++) replay_file(argv[i]);
    uint32_t state = 1;
    uint8_t buffer[512];
    for (int i = 0; argc == 1 && i < REPLAY_INPUTS; i++)
        LLVMFuzzerTestOneInput(buffer, random_input(&state, buffer, sizeof buffer));
    return 0;
}

#endif
