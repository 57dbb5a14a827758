/* Features that need no network: of a picture at 32 x 32,
 *
 *     32 of layout    principal components of its 8 x 8 miniature
 *     32 of texture   root mean square of principal components of its 8 x 8 patches, at steps of 4
 *
 * each in units of its spread over the real pictures, from which the components are learnt.
 * Components without spread are 0. They see blur, noise, colours and composition, not things. */
#ifndef N2_PATCH_FEATURES_H
#define N2_PATCH_FEATURES_H

#include "image/image.h"

enum { N2_PATCH_COMPONENTS = 32, N2_PATCH_FEATURES = 2 * N2_PATCH_COMPONENTS };

typedef struct n2_patch_basis n2_patch_basis;

/* From at most 4,096 of the pictures, at equal steps; at least two. Fails with N2CE_ENOMEM. */
n2ce_status n2_patch_basis_learn(n2ce_ctx *ctx, const n2_images *real, n2_patch_basis **out);
void n2_patch_basis_free(n2_patch_basis *basis); /* NULL is fine */

/* Features [n x N2_PATCH_FEATURES] of all pictures. */
n2ce_status n2_patch_features(const n2_patch_basis *basis, const n2_images *pictures,
                              float *features);

#endif
