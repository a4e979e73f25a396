/* The quota of processor time. A process is in one group of each hierarchy; /proc/self/cgroup says which, and /proc/self/mountinfo
   where the hierarchies' files are. A group has no more than the groups around it, so all are asked, up to where the hierarchy is
   mounted: in a container that is often the container's own group, whose outer path /proc/self/cgroup still says.

     version 2   0::/a/b          <mount>/a/b/cpu.max                                       "150000 100000", "max 100000"
     version 1   4:cpu,cpuacct:/a/b  <mount>/a/b/cpu.cfs_quota_us and cpu.cfs_period_us     "150000", "-1" and "100000"     */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "machine/system.h"

enum { table_bytes = 1 << 18 }; /* bytes of a process's mounts that are read */

typedef struct hierarchy {
  bool second;           /* version 2 */
  char group[PATH_MAX];  /* the process's */
  char mount[PATH_MAX];  /* where the files are */
  char shown[PATH_MAX];  /* the group that is mounted there */
} hierarchy;

/* Whether a list with commas has the word. */
static bool has_word(const char *list, const char *word) {
  const size_t length = strlen(word);
  for (; *list != '\0'; list += strcspn(list, ","), list += *list == ',')
    if (strcspn(list, ",") == length && strncmp(list, word, length) == 0) return true;
  return false;
}

/* Cuts the next line off the text at *rest; NULL: there are no more. */
static char *next_line(char **rest) {
  char *line = *rest, *end = strchr(line, '\n');
  if (*line == '\0') return NULL;
  *rest = end != NULL ? end + 1 : line + strlen(line);
  if (end != NULL) *end = '\0';
  return line;
}

/* "ID:CONTROLLERS:PATH"; version 2 has no controllers there. */
static bool find_group(char *table, hierarchy *h) {
  for (char *line; (line = next_line(&table)) != NULL;) {
    char *controllers = strchr(line, ':'), *path = controllers != NULL ? strchr(controllers + 1, ':') : NULL;
    if (path == NULL) continue;
    *path++ = '\0';
    controllers++;
    if (h->second ? controllers[0] != '\0' : !has_word(controllers, "cpu")) continue;
    return (size_t)snprintf(h->group, sizeof h->group, "%s", path) < sizeof h->group;
  }
  return false;
}

/* "ID PARENT DEVICE ROOT MOUNT OPTIONS FIELDS.. - TYPE SOURCE OPTIONS" */
static bool find_mount(char *table, hierarchy *h) {
  static const char form[] = "%*s %*s %*s %4095s %4095s";
  for (char *line; (line = next_line(&table)) != NULL;) {
    char type[32], options[512], *behind = strstr(line, " - ");
    if (behind == NULL || sscanf(behind + 3, "%31s %*s %511s", type, options) != 2) continue;
    if (strcmp(type, h->second ? "cgroup2" : "cgroup") != 0 || (!h->second && !has_word(options, "cpu"))) continue;
    if (sscanf(line, form, h->shown, h->mount) == 2) return true;
  }
  return false;
}

/* Writes where the files of the process's group are; those of the mounted one, if the group is not inside of it. Returns the length
   of the mount's own part. */
static size_t place_of(const hierarchy *h, char *out, size_t capacity) {
  const size_t shown = strcmp(h->shown, "/") == 0 ? 0 : strlen(h->shown);
  const bool inside = strncmp(h->group, h->shown, shown) == 0 && (h->group[shown] == '/' || h->group[shown] == '\0') &&
                      strstr(h->group, "/..") == NULL;
  const int length = snprintf(out, capacity, "%s%s", h->mount, inside ? h->group + shown : "");
  if (length < 0 || (size_t)length >= capacity) snprintf(out, capacity, "%s", h->mount);
  return strlen(h->mount);
}

static bool read_number(const char *root, const char *folder, const char *name, double *out) {
  char path[2 * PATH_MAX + 32], text[64], *end;
  snprintf(path, sizeof path, "%s/%s", folder, name);
  if (!ax_system_file(root, path, text, sizeof text)) return false;
  *out = strtod(text, &end);
  return end != text;
}

/* The quota of one group, in processors; 0: none. */
static double quota_of(const char *root, const hierarchy *h, const char *folder) {
  char path[2 * PATH_MAX + 32], text[64];
  double quota = 0, period = 0;
  snprintf(path, sizeof path, "%s/cpu.max", folder);
  if (h->second && (!ax_system_file(root, path, text, sizeof text) || sscanf(text, "%lf %lf", &quota, &period) != 2)) return 0;
  if (!h->second && (!read_number(root, folder, "cpu.cfs_quota_us", &quota) ||
                     !read_number(root, folder, "cpu.cfs_period_us", &period)))
    return 0;
  return quota > 0 && period > 0 && quota / period < AX_MOST_PROCESSORS ? quota / period : 0;
}

static double least_quota(const char *root, const hierarchy *h) {
  char folder[2 * PATH_MAX];
  const size_t mount = place_of(h, folder, sizeof folder);
  double least = 0;
  for (;;) {
    const double quota = quota_of(root, h, folder);
    if (quota > 0 && (least == 0 || quota < least)) least = quota;
    char *parent = strrchr(folder, '/');
    if (parent == NULL || (size_t)(parent - folder) < mount) return least;
    *parent = '\0';
  }
}

static double quota_in(const char *root, bool second, char *table) {
  hierarchy *h = ax_calloc(1, sizeof *h);
  double quota = 0;
  if (h == NULL) return 0;
  h->second = second;
  if (ax_system_file(root, "/proc/self/cgroup", table, table_bytes) && find_group(table, h) &&
      ax_system_file(root, "/proc/self/mountinfo", table, table_bytes) && find_mount(table, h))
    quota = least_quota(root, h);
  ax_free(h);
  return quota;
}

double ax_system_quota(const char *root) {
  char *table = ax_alloc(table_bytes);
  if (table == NULL) return 0;
  const double second = quota_in(root, true, table), first = quota_in(root, false, table);
  ax_free(table);
  return second == 0 || (first > 0 && first < second) ? first : second;
}
