/* Running averages of weights: tensors average.NAME beside the parameters NAME. */
#include "train.h"

#include "training.h"

#include <stdio.h>
#include <string.h>

static const char *twin_name(const char *prefix, const n2_tensor *of, char name[N2_TWIN_NAME]) {
    snprintf(name, N2_TWIN_NAME, "%s.%s", prefix, of->name);
    return name;
}

n2_tensor *n2_twin_of(const n2_store *store, const char *prefix, const n2_tensor *of) {
    char name[N2_TWIN_NAME];
    return n2_store_find(store, twin_name(prefix, of, name));
}

n2ce_status n2_copy_tensor(const n2_store *store, n2_tensor *to, const n2_tensor *from) {
    N2_TRY(n2_tensor_pull(store, from));
    memcpy(to->data, from->data, n2_tensor_bytes(store, from));
    n2_tensor_push(store, to);
    return N2CE_OK;
}

n2ce_status n2_add_twin(n2_store *store, const char *prefix, const n2_tensor *of) {
    char name[N2_TWIN_NAME];
    n2_tensor *twin = n2_twin_of(store, prefix, of);
    if (twin && n2_same_shape(twin->shape, of->shape) && twin->dtype == of->dtype) return N2CE_OK;
    if (twin)
        return n2_fail(n2_store_ctx(store), N2CE_EINVAL,
                       "The tensor \"%s\" is in the way of the trainer's own, which has the shape "
                       "of \"%s\". Give it another name.",
                       twin->name, of->name);
    twin = n2_store_add_as(store, twin_name(prefix, of, name), of->shape, of->dtype);
    if (twin) twin->is_kernel = of->is_kernel;
    return twin ? n2_copy_tensor(store, twin, of) : N2CE_ENOMEM;
}

n2ce_status n2_averages_add(const n2_parameters *p) {
    for (size_t i = 0; i < p->n; i++) N2_TRY(n2_add_twin(p->store, "average", p->list[i]));
    return N2CE_OK;
}

n2ce_status n2_kept_add(const n2_parameters *p) {
    for (size_t i = 0; i < p->n; i++) N2_TRY(n2_add_twin(p->store, "kept", p->list[i]));
    return N2CE_OK;
}

n2_tensor *n2_average_of(const n2_store *store, const n2_tensor *parameter) {
    return n2_twin_of(store, "average", parameter);
}

/* A layer that a network does not have stays none. */
n2_layer n2_averaged_layer(const n2_store *store, n2_layer layer) {
    if (layer.weight) layer.weight = n2_average_of(store, layer.weight);
    if (layer.bias) layer.bias = n2_average_of(store, layer.bias);
    return layer;
}

n2ce_status n2_averaged_layers(n2_store *store, const n2_layer *layers, int n, n2_layer **out) {
    *out = n2_layers_new(store, layers, n);
    for (int i = 0; *out && i < n; i++) (*out)[i] = n2_averaged_layer(store, layers[i]);
    return *out ? N2CE_OK : N2CE_ENOMEM;
}

n2ce_status n2_averaged_mlp(n2_store *store, const n2_mlp *mlp, n2_mlp *out) {
    n2_layer *layers;
    N2_TRY(n2_averaged_layers(store, mlp->layers, mlp->n, &layers));
    *out = (n2_mlp){layers, mlp->n, mlp->slope};
    return N2CE_OK;
}
