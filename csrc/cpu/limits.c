/* limits: see limits.h.
 *
 * A container is a control group: a folder whose files hold its limits, in one tree (version 2) or in one for each
 * resource (version 1). /proc/self/cgroup names the folders of this process. In a container these may be paths of the
 * host, and the container sees its own folder as the root. So all folders on the path up to the root are read, those
 * that do not exist are skipped, and the smallest limit counts. Linux kernel documentation: cgroup-v2.rst,
 * cgroup-v1/memory.rst, sched-bwc.rst. */
#include "limits.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "../core/platform.h"

#define LONGEST_PATH 4096

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

#ifdef __linux__
typedef int64_t limit_of(const char *folder); /* INT64_MAX: none */

/* Reads up to two numbers at the start of a file; returns how many there are. */
static int read_numbers(const char *folder, const char *name, int64_t *first, int64_t *second) {
    char path[LONGEST_PATH + 64];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "re");
    if (!file) return 0;
    const int found = fscanf(file, "%" SCNd64 " %" SCNd64, first, second);
    fclose(file);
    return found < 0 ? 0 : found;
}

/* Files without a limit say "max", or a number beyond all memory. */
static int64_t memory_of(const char *folder) {
    int64_t bytes, unused;
    if (read_numbers(folder, "memory.max", &bytes, &unused) > 0) return bytes;
    if (read_numbers(folder, "memory.limit_in_bytes", &bytes, &unused) > 0) return bytes;
    return INT64_MAX;
}

/* Time of processors in a period of time, rounded up to whole ones; -1 is no limit. */
static int64_t processors_of(const char *folder) {
    int64_t quota, period, unused;
    if (read_numbers(folder, "cpu.max", &quota, &period) != 2 &&
        (read_numbers(folder, "cpu.cfs_quota_us", &quota, &unused) == 0 ||
         read_numbers(folder, "cpu.cfs_period_us", &period, &unused) == 0))
        return INT64_MAX;
    return quota <= 0 || period <= 0 ? INT64_MAX : (quota - 1) / period + 1;
}

static int64_t smallest(limit_of *limit, const char *tree, const char *group) {
    char folder[LONGEST_PATH];
    int64_t found = INT64_MAX;
    if ((size_t)snprintf(folder, sizeof folder, "%s%s", tree, group) >= sizeof folder) return limit(tree);
    for (char *end; strlen(folder) > strlen(tree) && (end = strrchr(folder, '/')); *end = 0)
        found = smaller(found, limit(folder));
    return smaller(found, limit(tree));
}

/* Whether a list such as "cpu,cpuacct" has this name. */
static bool lists(const char *names, const char *name) {
    const size_t length = strlen(name);
    for (const char *at = names; (at = strstr(at, name)); at += length)
        if ((at == names || at[-1] == ',') && (at[length] == 0 || at[length] == ',')) return true;
    return false;
}

/* A line is "NUMBER:RESOURCES:FOLDER"; of version 2, which has all resources in one tree, "0::FOLDER". */
static int64_t group_limit(const char *root, const char *resource, limit_of *limit) {
    char line[LONGEST_PATH], tree[LONGEST_PATH];
    int64_t found = INT64_MAX;
    snprintf(line, sizeof line, "%s/proc/self/cgroup", root);
    FILE *file = fopen(line, "re");
    if (!file) return found;
    while (fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = 0;
        char *names = strchr(line, ':'), *group = names ? strchr(names + 1, ':') : NULL;
        if (!group) continue;
        *group++ = 0;
        const bool all = *++names == 0;
        if (!all && !lists(names, resource)) continue;
        snprintf(tree, sizeof tree, "%s/sys/fs/cgroup%s%s", root, all ? "" : "/", all ? "" : resource);
        found = smaller(found, smallest(limit, tree, group));
    }
    fclose(file);
    return found;
}

static int64_t group_memory(const char *root) { return group_limit(root, "memory", memory_of); }
static int64_t group_processors(const char *root) { return group_limit(root, "cpu", processors_of); }
#else
static int64_t group_memory(const char *root) { return (void)root, INT64_MAX; }
static int64_t group_processors(const char *root) { return (void)root, INT64_MAX; }
#endif

int64_t nr_memory_limit(const char *root) {
    int64_t memory, swap;
    nr_machine_memory(&memory, &swap);
    memory = smaller(memory, group_memory(root));
    return memory > INT64_MAX - swap ? INT64_MAX : memory + swap;
}

int64_t nr_processor_limit(const char *root) { return group_processors(root); }
