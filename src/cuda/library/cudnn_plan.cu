#include "cudnn_descriptors.h"

#ifdef N2_HAS_CUDNN
#include "dynamic.h"
#include "engine/kernel.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the library --------------------------------------------------------- */

/* Returns the name of a function that is missing; NULL: none is. */
static const char *find_functions(void *file, cudnn *d) {
#define FIND_FUNCTION(name)                                        \
    d->name = (decltype(d->name))n2_library_function(file, #name); \
    if (!d->name) return #name;
    CUDNN_FUNCTIONS(FIND_FUNCTION)
    return NULL;
}

static bool load(cudnn *d, char *about, size_t bytes) {
    static const char *const names[] = {"libcudnn.so.9", NULL};
    void *file = n2_library_load(names);
    if (!file) {
        snprintf(about, bytes, "There is no %s on this machine.", names[0]);
        return false;
    }
    const char *missing = find_functions(file, d);
    if (missing) {
        snprintf(about, bytes, "The cuDNN of this machine has no function %s.", missing);
        return false;
    }
    const unsigned version = (unsigned)d->cudnnGetVersion();
    snprintf(about, bytes, "cuDNN %u.%u.%u", version / 10000, version / 100 % 100, version % 100);
    return true;
}

cudnn *n2_cudnn_open(int device, char *about, size_t bytes) {
    cudnn *d = (cudnn *)calloc(1, sizeof *d);
    if (!d) {
        snprintf(about, bytes, "There is no memory for cuDNN.");
        return NULL;
    }
    if (load(d, about, bytes)) {
        cudaSetDevice(device);
        const cudnnStatus_t status = d->cudnnCreate(&d->handle);
        if (status == CUDNN_STATUS_SUCCESS) {
            pthread_mutex_init(&d->lock, NULL);
            d->device = device;
            return d;
        }
        snprintf(about, bytes, "cuDNN could not begin: %s.", d->cudnnGetErrorString(status));
    }
    free(d);
    return NULL;
}

void n2_cudnn_close(cudnn *d) {
    for (size_t i = 0; i < d->n; i++) {
        if (d->list[i].plan) d->cudnnBackendDestroyDescriptor(d->list[i].plan);
        if (d->list[i].config) d->cudnnBackendDestroyDescriptor(d->list[i].config);
    }
    d->cudnnDestroy(d->handle);
    pthread_mutex_destroy(&d->lock);
    free(d->list);
    free(d);
}

/* ---- a convolution as a graph of one operation --------------------------- */

enum { UID_X = 'x', UID_K = 'k', UID_Y = 'y' };

static cudnnDataType_t type_of(int32_t dtype) {
    return dtype == N2_BF16  ? CUDNN_DATA_BFLOAT16
           : dtype == N2_F16 ? CUDNN_DATA_HALF
                             : CUDNN_DATA_FLOAT;
}

/* [n][h][w][c] in memory. */
static descriptor make_tensor(workbench *w, int64_t uid, int32_t dtype, int64_t alignment,
                              int64_t n, int64_t height, int64_t width, int64_t c) {
    const cudnnDataType_t type = type_of(dtype);
    const int64_t dims[] = {n, c, height, width};
    const int64_t strides[] = {height * width * c, 1, width * c, c};
    descriptor t = begin(w, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    set(w, t, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type);
    set(w, t, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, dims);
    set(w, t, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, strides);
    set(w, t, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &uid);
    set(w, t, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &alignment);
    finish(w, t);
    return t;
}

static descriptor make_window(workbench *w, const convolution *c) {
    const int64_t axes = 2, dilations[] = {1, 1}, strides[] = {c->stride_y, c->stride_x};
    const int64_t before[] = {c->top, c->left}, behind[] = {c->bottom, c->right};
    const cudnnDataType_t computes = CUDNN_DATA_FLOAT;
    /* what networks call a convolution */
    const cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
    descriptor v = begin(w, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
    set(w, v, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, 1, &axes);
    set(w, v, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &computes);
    set(w, v, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode);
    set(w, v, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, axes, before);
    set(w, v, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, axes, behind);
    set(w, v, CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, axes, dilations);
    set(w, v, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, axes, strides);
    finish(w, v);
    return v;
}

/* What the three ops are called. */
typedef struct operation_names {
    int32_t op;
    cudnnBackendDescriptorType_t type;
    cudnnBackendAttributeName_t window, x, k, y, alpha, beta;
} operation_names;

static const operation_names operations[] = {
    {N2_OP_conv2d, CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA},
    {N2_OP_conv2d_input, CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA},
    {N2_OP_conv2d_weight, CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA},
};

static descriptor make_operation(workbench *w, const convolution *c) {
    const operation_names *names = operations;
    while (names->op != c->op) names++;
    const float one = 1, zero = 0;
    const descriptor x = make_tensor(w, UID_X, c->type_x, c->alignment, c->n, c->h, c->w, c->c_in);
    const descriptor k =
        make_tensor(w, UID_K, c->type_k, c->alignment, c->c_out, c->rows, c->columns, c->c_in);
    const descriptor y =
        make_tensor(w, UID_Y, c->type_y, c->alignment, c->n, c->oh, c->ow, c->c_out);
    const descriptor window = make_window(w, c), op = begin(w, names->type);
    set_one(w, op, names->window, &window);
    set_one(w, op, names->x, &x);
    set_one(w, op, names->k, &k);
    set_one(w, op, names->y, &y);
    set(w, op, names->alpha, CUDNN_TYPE_FLOAT, 1, &one);
    set(w, op, names->beta, CUDNN_TYPE_FLOAT, 1, &zero);
    finish(w, op);
    return op;
}

static descriptor make_graph(workbench *w, const convolution *c) {
    const descriptor op = make_operation(w, c);
    const descriptor graph = begin(w, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    set(w, graph, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &w->d->handle);
    set_one(w, graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, &op);
    finish(w, graph);
    return graph;
}

/* A shape that cuDNN does not like is no failure: our kernel does it. */
static void choose(cudnn *d, const convolution *c, convolution_plan *out) {
    workbench w = {d, {}, 0, CUDNN_STATUS_SUCCESS};
    *out = {*c, NULL, NULL, 0};
    const descriptor graph = make_graph(&w, c);
    if (w.status == CUDNN_STATUS_SUCCESS) n2_cudnn_choose(d, graph, out);
    clear(&w);
}

static bool has_room(cudnn *d) {
    if (d->n < d->room) return true;
    const size_t room = d->room ? 2 * d->room : 64;
    convolution_plan *list = (convolution_plan *)realloc(d->list, room * sizeof *list);
    if (!list) return false;
    d->list = list;
    d->room = room;
    return true;
}

bool n2_cudnn_plan(cudnn *d, const convolution *c, convolution_plan *out) {
    pthread_mutex_lock(&d->lock);
    size_t i = 0;
    while (i < d->n && memcmp(&d->list[i].key, c, sizeof *c) != 0) i++;
    const bool room = i < d->n || has_room(d);
    cudaSetDevice(d->device);
    if (room && i == d->n) choose(d, c, &d->list[d->n++]);
    if (room) *out = d->list[i];
    pthread_mutex_unlock(&d->lock);
    return room;
}

cudnnStatus_t n2_cudnn_ask(const cudnn *d, const convolution_plan *p, const void *x, const void *k,
                           const void *y, void *workspace) {
    workbench w = {d, {}, 0, CUDNN_STATUS_SUCCESS};
    const int64_t uids[] = {UID_X, UID_K, UID_Y};
    const void *at[] = {x, k, y};
    descriptor pack = begin(&w, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    set(&w, pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, 3, uids);
    set(&w, pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, 3, at);
    set(&w, pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &workspace);
    finish(&w, pack);
    if (w.status == CUDNN_STATUS_SUCCESS)
        w.status = d->cudnnBackendExecute(d->handle, p->plan, pack);
    clear(&w);
    return w.status;
}

cudnnStatus_t n2_cudnn_execute(cudnn *d, const convolution_plan *p, const void *x, const void *k,
                               const void *y, void *workspace, cudaStream_t stream) {
    pthread_mutex_lock(&d->lock);
    cudnnStatus_t status = d->cudnnSetStream(d->handle, stream);
    if (status == CUDNN_STATUS_SUCCESS) status = n2_cudnn_ask(d, p, x, k, y, workspace);
    pthread_mutex_unlock(&d->lock);
    return status;
}
#endif
