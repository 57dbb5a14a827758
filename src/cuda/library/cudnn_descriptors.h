/* Descriptors of cuDNN's backend, as they are made one after the other. */
#ifndef N2_CUDA_CUDNN_DESCRIPTORS_H
#define N2_CUDA_CUDNN_DESCRIPTORS_H

#include "cudnn_plan.h"

#ifdef N2_HAS_CUDNN

typedef cudnnBackendDescriptor_t descriptor;

/* What is made on the way to a plan. After a failure nothing more is done. */
typedef struct workbench {
    const cudnn *d;
    descriptor made[16];
    int n;
    cudnnStatus_t status;
} workbench;

static inline descriptor begin(workbench *w, cudnnBackendDescriptorType_t type) {
    descriptor x = NULL;
    if (w->status == CUDNN_STATUS_SUCCESS) w->status = w->d->cudnnBackendCreateDescriptor(type, &x);
    if (x) w->made[w->n++] = x;
    return x;
}

static inline void set(workbench *w, descriptor x, cudnnBackendAttributeName_t name,
                       cudnnBackendAttributeType_t type, int64_t n, const void *values) {
    if (w->status == CUDNN_STATUS_SUCCESS)
        w->status = w->d->cudnnBackendSetAttribute(x, name, type, n, values);
}

static inline void set_one(workbench *w, descriptor x, cudnnBackendAttributeName_t name,
                           const descriptor *value) {
    set(w, x, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, value);
}

static inline void finish(workbench *w, descriptor x) {
    if (w->status == CUDNN_STATUS_SUCCESS) w->status = w->d->cudnnBackendFinalize(x);
}

static inline void clear(workbench *w) {
    while (w->n > 0) w->d->cudnnBackendDestroyDescriptor(w->made[--w->n]);
}

#endif
#endif
