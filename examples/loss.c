/* The objective alone: loss and gradient of four logits a side.
 *     cc loss.c $(pkg-config --cflags --libs n2ce) -o loss && ./loss */
#include <n2ce.h>
#include <stdio.h>

int main(void) {
    const double num[] = {2.1, 0.3, 4.0, 1.2};    /* ln p_num/p_den at samples of p_num */
    const double den[] = {-1.0, 0.2, -3.5, -0.4}; /* ... and at samples of p_den */
    double grad_num[4], grad_den[4], loss;
    n2ce_objective objective = N2CE_OBJECTIVE_INIT;
    objective.magnitude = 100;
    const n2ce_logits_f64 logits = {num, 4, den, 4, grad_num, grad_den};
    n2ce_diagnostics seen;
    const n2ce_status status = n2ce_loss_f64(NULL, &objective, &logits, &loss, &seen);
    if (status != N2CE_OK) {
        fprintf(stderr, "%s\n", n2ce_status_text(status));
        return 1;
    }
    printf("loss %.6f nats, KL at least %.6f of at most %.6f\n", loss, seen.kl_bound, seen.kl_cap);
    for (int i = 0; i < 4; i++) printf("%10.6f %10.6f\n", grad_num[i], grad_den[i]);
    return 0;
}
