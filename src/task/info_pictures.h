/* info of a file or folder of pictures: what it holds, and a contact sheet of the first ones. */
#ifndef N2_INFO_PICTURES_H
#define N2_INFO_PICTURES_H

#include "task.h"

n2ce_status n2_info_of_pictures(n2ce_ctx *ctx, const n2ce_options *options, n2ce_answer *answer);

/* The same for a model of pictures (n2ce train), and whether a file says that it is one. */
bool n2_is_picture_model(n2ce_ctx *ctx, const char *path);
n2ce_status n2_info_of_picture_model(n2ce_ctx *ctx, const n2ce_options *o, n2ce_answer *answer);

#endif
