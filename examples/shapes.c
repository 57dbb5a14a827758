/* A generative model of pictures: draws rings, squares and crosses, learns a model of them with a
 * prior by N2CE, and writes what it makes up itself as a contact sheet, shapes.png.
 *     cc shapes.c $(pkg-config --cflags --libs n2ce) -lm -o shapes && ./shapes [cpu|cuda] */
#include <math.h>
#include <n2ce.h>
#include <stdio.h>
#include <stdlib.h>

enum { SIDE = 28, PIXELS = SIDE * SIDE, SHAPES = 600 };

static double uniform(void) { return rand() / (double)RAND_MAX; }

/* Shape 0 is a ring, 1 a square, 2 a cross, of radius 5 to 10. */
static void draw(unsigned char *pixels, int shape) {
    const double radius = 5 + 5 * uniform();
    const double cx = radius + (SIDE - 1 - 2 * radius) * uniform();
    const double cy = radius + (SIDE - 1 - 2 * radius) * uniform();
    for (int i = 0; i < PIXELS; i++) {
        const double x = fabs(i % SIDE - cx), y = fabs(i / SIDE - cy), far = fmax(x, y);
        const double from_line[] = {fabs(hypot(x, y) - radius), fabs(far - radius),
                                    far < radius ? fmin(x, y) : SIDE};
        pixels[i] = from_line[shape] < 1.5 ? 255 : 0;
    }
}

/* MNIST's format: bytes, three dimensions, all numbers big-endian. */
static int write_pictures(const char *path) {
    static unsigned char pixels[PIXELS];
    const unsigned char head[] = {0, 0, 8, 3,    0, 0, SHAPES >> 8, SHAPES & 255,
                                  0, 0, 0, SIDE, 0, 0, 0,           SIDE};
    FILE *file = fopen(path, "wb");
    if (!file) return 0;
    size_t written = fwrite(head, sizeof head, 1, file);
    for (int i = 0; i < SHAPES; i++) {
        draw(pixels, i % 3);
        written += fwrite(pixels, PIXELS, 1, file);
    }
    return (fclose(file) == 0) & (written == SHAPES + 1);
}

/* Runs a verb of the command line: names and values of options, a NULL at the end. */
static n2ce_status run(n2ce_ctx *ctx, const char *verb, const char *const *options) {
    const n2ce_task *task = n2ce_task_find(verb);
    n2ce_options *o;
    n2ce_answer *answer = NULL;
    n2ce_status status = n2ce_options_new(ctx, n2ce_task_options(task), &o);
    for (; status == N2CE_OK && *options; options += 2)
        status = n2ce_options_set(o, options[0], options[1]);
    if (status == N2CE_OK) status = n2ce_task_run(ctx, task, o, &answer);
    if (status == N2CE_OK) printf("%s", n2ce_answer_text(answer));
    n2ce_answer_free(answer);
    n2ce_options_free(o);
    return status;
}

int main(int argc, char **argv) {
    const char *device = argc > 1 ? argv[1] : "cpu";
    /* quick: leave phases and width out for real work */
    const char *const train[] = {"images", "shapes.idx", "output",     "shapes.model", "force",
                                 "true",   "phases",     "150,150,20", "width",        "8",
                                 "device", device,       NULL};
    const char *const sample[] = {"model", "shapes.model", "number", "36",   "output", "shapes.png",
                                  "force", "true",         "device", device, NULL};
    n2ce_ctx *ctx;
    if (!write_pictures("shapes.idx") || n2ce_ctx_new(&ctx, NULL) != N2CE_OK) return 1;
    n2ce_status status = run(ctx, "train", train);
    if (status == N2CE_OK) status = run(ctx, "sample", sample);
    if (status != N2CE_OK) fprintf(stderr, "%s\n", n2ce_errmsg(ctx));
    n2ce_ctx_free(ctx);
    remove("shapes.idx");
    remove("shapes.model");
    return status == N2CE_OK ? 0 : 1;
}
