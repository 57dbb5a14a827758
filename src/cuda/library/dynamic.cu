#include "dynamic.h"

#include <dlfcn.h>
#include <stdio.h>

void *n2_library_load(const char *const *names) {
    static const char *const folders[] = {"", "/usr/local/cuda/lib64/", "/usr/local/cuda/lib/"};
    char path[256];
    for (; *names; names++)
        for (const char *folder : folders) {
            snprintf(path, sizeof path, "%s%s", folder, *names);
            void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
            if (library) return library;
        }
    return NULL;
}

void *n2_library_function(void *library, const char *name) { return dlsym(library, name); }
