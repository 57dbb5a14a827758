/* Odd rows: learns from 200 points near a circle, and judges four others; a detector that was saved
 * and loaded says the same.
 *     cc detect.c $(pkg-config --cflags --libs n2ce) -lm -o detect && ./detect */
#include <math.h>
#include <n2ce.h>
#include <stdio.h>

enum { NORMAL = 200, ROWS = 4 };

/* Points spread evenly over a circle, up to a twentieth from it. */
static void fill(double *x) {
    for (int i = 0; i < NORMAL; i++) {
        const double angle = 6.283185307179586 * fmod(0.6180339887 * i, 1);
        const double radius = 1 + 0.1 * (fmod(0.7548776662 * i, 1) - 0.5);
        x[2 * i] = radius * cos(angle);
        x[2 * i + 1] = radius * sin(angle);
    }
}

static n2ce_status judge(n2ce_detector *detector, double *scores, double *p) {
    static const double x[2 * ROWS] = {0, 1, -0.7, 0.72, 0, 0, 1, 1};
    const n2ce_matrix rows = {x, N2CE_F64, ROWS, 2, 0, 0};
    return n2ce_detector_score(detector, &rows, 0, scores, p);
}

int main(void) {
    const char *path = "detect.safetensors";
    static double x[2 * NORMAL];
    double scores[ROWS] = {0}, again[ROWS] = {0}, p[ROWS] = {0};
    n2ce_ctx *ctx;
    n2ce_detector *detector = NULL, *loaded = NULL;
    fill(x);
    const n2ce_matrix normal = {x, N2CE_F64, NORMAL, 2, 0, 0};
    if (n2ce_ctx_new(&ctx, NULL) != N2CE_OK) return 1;
    n2ce_status status = n2ce_detector_fit(ctx, NULL, &normal, &detector);
    if (status == N2CE_OK) status = judge(detector, scores, p);
    if (status == N2CE_OK) status = n2ce_detector_save(detector, path, true);
    if (status == N2CE_OK) status = n2ce_detector_load(ctx, path, &loaded);
    if (status == N2CE_OK) status = judge(loaded, again, p);
    for (int i = 0; status == N2CE_OK && i < ROWS; i++)
        printf("score %7.2f   p-value %.3f\n", scores[i], p[i]);
    if (status != N2CE_OK) fprintf(stderr, "%s\n", n2ce_errmsg(ctx));
    const int same = scores[2] == again[2];
    const int told = scores[2] > scores[0] && scores[3] > scores[1]; /* the centre, a corner */
    n2ce_detector_free(detector);
    n2ce_detector_free(loaded);
    n2ce_ctx_free(ctx);
    remove(path);
    return status == N2CE_OK && same && told ? 0 : 1;
}
