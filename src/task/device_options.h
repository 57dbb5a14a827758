/* --device and --precision: where a task computes. */
#ifndef N2_DEVICE_OPTIONS_H
#define N2_DEVICE_OPTIONS_H

#include "train/device_choice.h"

#include <pthread.h>

/* Rows for a task's table of options. */
#define N2_DEVICE_OPTION                                                                           \
    {                                                                                              \
        "device", 0, N2CE_OPTION_TEXT, "auto", 0, 0, NULL, "DEVICE",                               \
            "where to compute: auto (whichever is faster, by measurement), cpu, cuda, cuda:N for " \
            "GPU N"                                                                                \
    }
#define N2_ANY_DEVICE_OPTION                                                                       \
    {                                                                                              \
        "device", 0, N2CE_OPTION_TEXT, "auto", 0, 0, NULL, "DEVICE",                               \
            "where to compute: auto (whichever is faster, by measurement), cpu, cuda, cuda:N for " \
            "GPU N, all"                                                                           \
    }
#define N2_PRECISION_OPTION                                                      \
    {                                                                            \
        "precision", 0, N2CE_OPTION_WORD, "tf32", 0, 0, "tf32|float32", "P",     \
            "of matrix products on a GPU: tf32 (factors of 10 bits), or float32" \
    }

/* Of tasks whose networks have pictures inside. */
#define N2_PICTURES_PRECISION_OPTION                                                              \
    {                                                                                             \
        "precision", 0, N2CE_OPTION_WORD, "auto", 0, 0, "auto|tf32|float32|bf16|half", "P",       \
            "of matrix products on a GPU: tf32 (factors of 10 bits), or float32; bf16 and half: " \
            "pictures inside networks lie in memory in 16 bits; auto: bf16 for training "         \
            "diffusion models, else tf32"                                                         \
    }

/* The choice that the options name. "auto" is the processor until it is settled by measuring
 * (n2_choice_settle). Fails with N2CE_EINVAL for a word that is no device, N2CE_EDEVICE for a GPU
 * that there is not. */
n2ce_status n2_choice_of_options(n2ce_ctx *ctx, const n2ce_options *o, n2_device_choice *out);

n2_precision n2_precision_of_options(const n2ce_options *o);

/* A GPU that is being opened on a thread of its own. Zeroed: none. */
typedef struct n2_opening {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t done;
    bool running, finished;
    int device;
    n2_precision precision;
} n2_opening;

/* As n2_choice_of_options, but a GPU that takes its time, as one that is there does, is opened
 * beside what comes first: n2_choice_settle waits for it. One that is not there is told at once.
 * `opening` must stay where it is until n2_opening_end, which is due after failures too. */
n2ce_status n2_choice_of_options_beside(n2ce_ctx *ctx, const n2ce_options *o, n2_device_choice *out,
                                        n2_opening *opening);
/* If the device is open by now, or failed to, the choice is settled: a failure need not wait until
 * the device is needed. */
n2ce_status n2_opening_look(n2ce_ctx *ctx, const n2ce_options *o, n2_device_choice *choice,
                            n2_opening *opening);
void n2_opening_end(n2_opening *opening);

/* Whether --device is "all": processor and GPU 0, one after the other. */
bool n2_wants_all_devices(const n2ce_options *o);

#endif
