#include "mujoco.h"

#ifdef N2CE_MUJOCO

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

static n2_mujoco functions;
static bool found;
static char why[160];
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* What MuJoCo would write to a file MUJOCO_LOG.TXT. */
static void be_quiet(const char *text) { (void)text; }

static void *open_library(void) {
    char versioned[64];
    snprintf(versioned, sizeof versioned, "libmujoco.so.%d.%d.%d", mjVERSION_HEADER / 100,
             mjVERSION_HEADER / 10 % 10, mjVERSION_HEADER % 10);
    const char *const names[] = {versioned, "libmujoco.so"};
    void *library = NULL;
    for (size_t i = 0; i < 2 && !library; i++) library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    if (!library) snprintf(why, sizeof why, "%s was not found", versioned);
    return library;
}

/* A pointer to a function is no pointer to an object in C, but is one for dlsym. */
static bool find(void *library, const char *name, void *function, size_t size) {
    void *symbol = dlsym(library, name);
    memcpy(function, &symbol, size);
    if (!symbol) snprintf(why, sizeof why, "the library has no %s", name);
    return symbol != NULL;
}

static void find_all(void) {
    void *library = open_library();
    void (**warning)(const char *) = NULL;
    if (!library) return;
#define FIND(member, name) find(library, name, &functions.member, sizeof functions.member)
    if (!FIND(version, "mj_version")) return;
    if (functions.version() != mjVERSION_HEADER) {
        snprintf(why, sizeof why, "the library is of version %d and the header of version %d",
                 functions.version(), mjVERSION_HEADER);
        return;
    }
    found = FIND(load_xml, "mj_loadXML") && FIND(delete_model, "mj_deleteModel") &&
            FIND(make_data, "mj_makeData") && FIND(delete_data, "mj_deleteData") &&
            FIND(reset, "mj_resetData") && FIND(forward, "mj_forward") && FIND(step, "mj_step") &&
            FIND(forces, "mj_rnePostConstraint") && FIND(default_vfs, "mj_defaultVFS") &&
            FIND(delete_vfs, "mj_deleteVFS") &&
#if mjVERSION_HEADER < 300
            FIND(make_file, "mj_makeEmptyFileVFS") && FIND(find_file, "mj_findFileVFS") &&
#else
            FIND(add_buffer, "mj_addBufferVFS") &&
#endif
            find(library, "mju_user_warning", &warning, sizeof warning);
#undef FIND
    if (found) *warning = be_quiet;
}

const n2_mujoco *n2_mujoco_open(n2ce_ctx *ctx) {
    pthread_once(&once, find_all);
    if (found) return &functions;
    n2_fail(ctx, N2CE_EIO,
            "Robots need MuJoCo, and %s. Install it (Debian: libmujoco-dev), or say where its "
            "library is with LD_LIBRARY_PATH.",
            why);
    return NULL;
}

#endif
