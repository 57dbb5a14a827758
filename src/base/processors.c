#define _GNU_SOURCE /* sched_getaffinity */
#include "processors.h"

#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST = 1024, LINE = 512 };

static int allowed_here(void) {
#ifdef __linux__
    cpu_set_t set;
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0) return CPU_COUNT(&set);
#endif
    return (int)sysconf(_SC_NPROCESSORS_ONLN);
}

int n2_processors_of_quota(const char *text) {
    char *end;
    const double quota = strtod(text, &end), period = strtod(end, NULL);
    if (end == text || quota <= 0 || period <= 0 || quota / period > MOST) return 0;
    const int whole = (int)(quota / period);
    return whole + (whole * period < quota);
}

static bool read_line(const char *path, char line[LINE]) {
    FILE *file = fopen(path, "re");
    if (!file) return false;
    const bool read = fgets(line, LINE, file) != NULL;
    (void)fclose(file);
    return read;
}

/* The group of this process, of version 2: the line "0::/GROUP". */
static bool find_group(char group[LINE]) {
    FILE *file = fopen("/proc/self/cgroup", "re");
    bool found = false;
    while (file && !found && fgets(group, LINE, file)) found = strncmp(group, "0::", 3) == 0;
    if (file) (void)fclose(file);
    if (!found) return false;
    group[strcspn(group, "\n")] = '\0';
    memmove(group, group + 3, strlen(group + 3) + 1);
    return true;
}

/* Of version 2, from the process's own group up to the root, the least; then of version 1. */
static int quota_of_group(void) {
    char group[LINE], path[2 * LINE], line[LINE], period[LINE];
    int least = 0;
    for (bool more = find_group(group); more;) {
        snprintf(path, sizeof path, "/sys/fs/cgroup%s/cpu.max", group);
        const int n = read_line(path, line) ? n2_processors_of_quota(line) : 0;
        if (n > 0 && (least == 0 || n < least)) least = n;
        char *slash = strrchr(group, '/');
        more = slash != NULL;
        if (slash) *slash = '\0';
    }
    if (least > 0) return least;
    if (!read_line("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", line) ||
        !read_line("/sys/fs/cgroup/cpu/cpu.cfs_period_us", period))
        return 0;
    line[strcspn(line, "\n")] = '\0';
    snprintf(path, sizeof path, "%s %s", line, period);
    return n2_processors_of_quota(path);
}

int n2_processors(void) {
    const int allowed = allowed_here(), quota = quota_of_group();
    const int n = quota > 0 && quota < allowed ? quota : allowed;
    return n < 1 ? 1 : n > MOST ? MOST : n;
}
