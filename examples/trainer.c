/* The objective inside a trainer of your own: logistic-style regression of the log
 * ratio between two samples, f(x) = w x + b, by gradient descent. The truth for
 * N(1,1) against N(0,1) is f(x) = x - 1/2, and KL = 1/2. Your network takes the
 * place of the two lines marked (forward) and (backward). */
#include <math.h>
#include <n2ce.h>
#include <stdio.h>

enum { N = 2000 };

/* Any generator does; this one keeps the example short. */
static double normal(unsigned long long *state) {
    double u[2];
    for (int i = 0; i < 2; i++) {
        *state = *state * 6364136223846793005ULL + 1442695040888963407ULL;
        u[i] = ((double)(*state >> 11) + 0.5) / 9007199254740992.0;
    }
    return sqrt(-2 * log(u[0])) * cos(6.283185307179586 * u[1]);
}

int main(void) {
    static double x_num[N], x_den[N], f_num[N], f_den[N], g_num[N], g_den[N];
    unsigned long long state = 1;
    for (int i = 0; i < N; i++) {
        x_num[i] = 1 + normal(&state);
        x_den[i] = normal(&state);
    }
    n2ce_objective objective = N2CE_OBJECTIVE_INIT;
    objective.magnitude = n2ce_magnitude_for(N, 0); /* C sqrt(n) */
    const n2ce_logits_f64 logits = {f_num, N, f_den, N, g_num, g_den};
    double w = 0, b = 0, loss = 0;
    n2ce_diagnostics seen = {0};
    for (int step = 0; step < 200; step++) {
        for (int i = 0; i < N; i++) { /* (forward) */
            f_num[i] = w * x_num[i] + b;
            f_den[i] = w * x_den[i] + b;
        }
        if (n2ce_loss_f64(NULL, &objective, &logits, &loss, &seen) != N2CE_OK) return 1;
        double dw = 0, db = 0;
        for (int i = 0; i < N; i++) { /* (backward) */
            dw += g_num[i] * x_num[i] + g_den[i] * x_den[i];
            db += g_num[i] + g_den[i];
        }
        w -= 0.3 * dw;
        b -= 0.3 * db;
    }
    printf("M = %.0f   f(x) = %.3f x %+.3f   KL about %.3f nats (truth: 1 x -0.5, 0.5)\n",
           objective.magnitude, w, b, seen.mean_num);
    printf("effective noise samples %.0f of %d\n", seen.ess_den, N);
    return fabs(w - 1) < 0.1 && fabs(seen.mean_num - 0.5) < 0.1 ? 0 : 1;
}
