/* The layers of a network as ncnn writes them, NET.param:
 *
 *     7767517
 *     3 3
 *     Input        data   0 1 data 0=227 1=227 2=3
 *     Convolution  conv1  1 1 data conv1_relu 0=64 1=3 3=2 5=1 6=1728 9=1
 *     Pooling      pool1  1 1 conv1_relu pool1 1=3 2=2
 *
 * after a number that all such files begin with and the numbers of layers and blobs, a line for
 * each layer: type, name, how many blobs it reads and makes, their names, and parameters by number.
 * A blob is what layers hand to one another. */
#ifndef N2_NCNN_LAYERS_H
#define N2_NCNN_LAYERS_H

#include "base/text.h"

enum { N2_NCNN_LAYERS = 512, N2_NCNN_BLOBS = 4, N2_NCNN_PARAMETERS = 20, N2_NCNN_TYPE = 24 };

typedef struct n2_ncnn_layer {
    char type[N2_NCNN_TYPE];
    size_t line; /* of the file, from 1 */
    size_t n_in, n_out;
    size_t in[N2_NCNN_BLOBS], out[N2_NCNN_BLOBS]; /* numbers of blobs, in order of appearance */
    long parameter[N2_NCNN_PARAMETERS];           /* 0 where the line has none */
} n2_ncnn_layer;

typedef struct n2_ncnn_layers {
    n2_ncnn_layer *layer; /* memory of the context */
    size_t n, blobs;
} n2_ncnn_layers;

/* Every blob is made once, before it is read. Fails with N2CE_EDATA, naming the line, for a text
 * that is not as above; N2CE_ENOMEM. */
n2ce_status n2_ncnn_parse(n2ce_ctx *ctx, const char *label, const n2_text *text,
                          n2_ncnn_layers *out);

#endif
