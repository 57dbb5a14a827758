#include "host_memory.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* "MemAvailable:   8123456 kB" */
static size_t kilobytes_after(const char *text, const char *name) {
    const char *at = strstr(text, name);
    unsigned long long kb = 0;
    if (!at || sscanf(at + strlen(name), "%llu", &kb) != 1) return 0;
    return kb > SIZE_MAX / 1024 ? SIZE_MAX : (size_t)kb * 1024;
}

static size_t read_start(const char *path, char *text, size_t room) {
    FILE *file = fopen(path, "r");
    const size_t n = file ? fread(text, 1, room - 1, file) : 0;
    if (file) fclose(file);
    text[n] = '\0';
    return n;
}

/* "max", or bytes. */
static size_t group_limit(void) {
    char text[64];
    unsigned long long bytes;
    read_start("/sys/fs/cgroup/memory.max", text, sizeof text);
    return sscanf(text, "%llu", &bytes) == 1 && bytes < SIZE_MAX ? (size_t)bytes : SIZE_MAX;
}

size_t n2_host_memory(void) {
    char text[4096];
    read_start("/proc/meminfo", text, sizeof text);
    const size_t free = kilobytes_after(text, "MemAvailable:");
    const size_t swap = kilobytes_after(text, "SwapFree:");
    const size_t all = free == 0 ? SIZE_MAX : free > SIZE_MAX - swap ? SIZE_MAX : free + swap;
    const size_t limit = group_limit();
    return all < limit ? all : limit;
}
