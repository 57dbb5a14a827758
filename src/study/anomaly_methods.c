/* The list of methods of the study of anomalies: a new one is a function and a row here. */
#include "anomaly_study.h"

#include <string.h>

const n2_anomaly_method n2_anomaly_methods[] = {
    {"knn", "mean distance to 5 neighbours in 50 principal components", NULL, false,
     n2_anomaly_neighbours},
    {"pca", "error of a reconstruction from 20 principal components", NULL, false,
     n2_anomaly_reconstruction},
};
const size_t n2_anomaly_method_count = sizeof n2_anomaly_methods / sizeof n2_anomaly_methods[0];

const n2_anomaly_method *n2_anomaly_method_find(const char *name) {
    for (size_t i = 0; i < n2_anomaly_method_count; i++)
        if (strcmp(n2_anomaly_methods[i].name, name) == 0) return &n2_anomaly_methods[i];
    return NULL;
}
