/* --device and --precision: where a task computes. */
#ifndef N2_DEVICE_CHOICE_H
#define N2_DEVICE_CHOICE_H

#include "engine/kernel.h"

/* Rows for a task's table of options. */
#define N2_DEVICE_OPTION                                                     \
    {                                                                        \
        "device", 0, N2CE_OPTION_TEXT, "auto", 0, 0, NULL, "DEVICE",         \
            "auto (a GPU if there is one), cpu, cuda, cuda:N for GPU N, all" \
    }
#define N2_PRECISION_OPTION                                                      \
    {                                                                            \
        "precision", 0, N2CE_OPTION_WORD, "tf32", 0, 0, "tf32|float32", "P",     \
            "of matrix products on a GPU: tf32 (factors of 10 bits), or float32" \
    }

enum { N2_MOST_DEVICES = 2 };

/* The backends that the options name, and why: a sentence for each. With "all", a backend
 * that there is not is NULL and has its reason. Fails with N2CE_EINVAL for a word that is no
 * device, N2CE_EDEVICE for a GPU that there is not. */
typedef struct n2_device_choice {
    size_t n;
    const n2_backend *backend[N2_MOST_DEVICES];
    char reason[N2_MOST_DEVICES][256];
} n2_device_choice;

n2ce_status n2_choose_device(n2ce_ctx *ctx, const n2ce_options *o, n2_device_choice *out);

#endif
