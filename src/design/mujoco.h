/* MuJoCo's functions, found in its library when they are first wanted. */
#ifndef N2_MUJOCO_H
#define N2_MUJOCO_H

#include "base/ctx.h"

#ifdef N2CE_MUJOCO

#include <mujoco/mujoco.h>

typedef struct n2_mujoco {
    int (*version)(void);
    mjModel *(*load_xml)(const char *, const mjVFS *, char *, int);
    void (*delete_model)(mjModel *);
    mjData *(*make_data)(const mjModel *);
    void (*delete_data)(mjData *);
    void (*reset)(const mjModel *, mjData *);
    void (*forward)(const mjModel *, mjData *);
    void (*step)(const mjModel *, mjData *);
    void (*forces)(const mjModel *, mjData *);
    void (*default_vfs)(mjVFS *);
    void (*delete_vfs)(mjVFS *);
#if mjVERSION_HEADER < 300
    int (*make_file)(mjVFS *, const char *, int);
    int (*find_file)(const mjVFS *, const char *);
#else
    int (*add_buffer)(mjVFS *, const char *, const void *, int);
#endif
} n2_mujoco;

/* NULL, with a sentence in the context, where it is not there or of another version than the header
 * that n2ce was built with. */
const n2_mujoco *n2_mujoco_open(n2ce_ctx *ctx);

#endif

#endif
