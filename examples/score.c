/* Scores rows with a model that n2ce fit wrote; the model knows columns and scaling.
 *     n2ce fit --num new.csv --den old.csv -o model.safetensors
 *     cc score.c $(pkg-config --cflags --libs n2ce) -o score && ./score model.safetensors */
#include <n2ce.h>
#include <stdio.h>

int main(int argc, char **argv) {
    const double x[] = {0.5, 1, -1, 0, 2, 2.5}; /* three rows of two columns */
    const n2ce_matrix rows = {x, N2CE_F64, 3, 2, 0, 0};
    double log_ratios[3];
    n2ce_ctx *ctx;
    n2ce_model *model = NULL;
    if (argc != 2) {
        fprintf(stderr, "usage: score MODEL\n");
        return 2;
    }
    if (n2ce_ctx_new(&ctx, NULL) != N2CE_OK) return 1;
    n2ce_status status = n2ce_model_load(ctx, argv[1], &model);
    if (status == N2CE_OK) status = n2ce_model_score(model, &rows, log_ratios);
    if (status != N2CE_OK) fprintf(stderr, "score: %s\n", n2ce_errmsg(ctx));
    for (int i = 0; i < 3 && status == N2CE_OK; i++) printf("%.17g\n", log_ratios[i]);
    n2ce_model_free(model);
    n2ce_ctx_free(ctx);
    return status != N2CE_OK;
}
