/* The list of methods of the study of anomalies: a new one is a function and a row here. */
#include "anomaly_study.h"

#include <string.h>

const n2_anomaly_method n2_anomaly_methods[] = {
    {"knn", "mean distance to 5 neighbours in 50 principal components", NULL, false,
     n2_anomaly_neighbours},
    {"pca", "error of a reconstruction from 20 principal components", NULL, false,
     n2_anomaly_reconstruction},
    {"vae", "bound of a variational autoencoder", NULL, true, n2_anomaly_bound},
    {"damc-mle", "amortised sampler, prior by maximum likelihood", "DAMC, MLE", true,
     n2_anomaly_damc_mle},
    {"damc-1", "amortised sampler, N2CE with M = 1", "DAMC, M = 1", true, n2_anomaly_damc_1},
    {"damc-100", "amortised sampler, N2CE with M = 100", "DAMC, M = 100, K = 1", true,
     n2_anomaly_damc_100},
    {"damc-100-k3", "amortised sampler, N2CE with M = 100 and K = 3", "DAMC, M = 100, K = 3", true,
     n2_anomaly_damc_100_k3},
    {"default", "autoencoder with N2CE prior, variances and a critic of mixes, calibrated", NULL,
     true, n2_anomaly_oddity},
};
const size_t n2_anomaly_method_count = sizeof n2_anomaly_methods / sizeof n2_anomaly_methods[0];

const n2_anomaly_method *n2_anomaly_method_find(const char *name) {
    for (size_t i = 0; i < n2_anomaly_method_count; i++)
        if (strcmp(n2_anomaly_methods[i].name, name) == 0) return &n2_anomaly_methods[i];
    return NULL;
}

void n2_anomaly_settings(const n2_anomaly_effort *e, n2_anomaly_setting out[N2_ANOMALY_SETTINGS]) {
    const n2_anomaly_setting all[N2_ANOMALY_SETTINGS] = {
        {"width", (double)e->width}, {"steps", (double)e->steps},
        {"rate_factor", e->rate},    {"slow", e->slow},
        {"sigma", e->sigma},         {"weight", e->weight},
        {"contrast", e->magnitude},  {"members", (double)e->members}};
    memcpy(out, all, sizeof all);
}
