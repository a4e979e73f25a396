#include "machine/system.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void know(ax_description *machine, ax_fact fact, double value) { machine->facts[fact] = (ax_known){value, AX_SOURCE_ASKED}; }

bool ax_system_file(const char *root, const char *path, char *out, size_t capacity) {
  char whole[PATH_MAX];
  if ((size_t)snprintf(whole, sizeof whole, "%s%s", root, path) >= sizeof whole) return false;
  FILE *file = fopen(whole, "re");
  if (file == NULL) return false;
  out[fread(out, 1, capacity - 1, file)] = '\0';
  const bool read = !ferror(file); /* a folder opens, and cannot be read */
  fclose(file);
  return read;
}

/* --- Processes --- */

/* Of "pid (name) state parent ..": a name may have parentheses too. */
bool ax_system_find_process(const char *root, int32_t pid, ax_system_process *out) {
  char path[64], line[512], state;
  int parent;
  snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
  if (!ax_system_file(root, path, line, sizeof line)) return false;
  const char *begin = strchr(line, '('), *end = strrchr(line, ')');
  if (begin == NULL || end == NULL || sscanf(end + 1, " %c %d", &state, &parent) != 2) return false;
  *out = (ax_system_process){.parent = parent, .stopped = state == 'T' || state == 't', .ended = state == 'Z'};
  snprintf(out->name, sizeof out->name, "%.*s", (int)(end - begin - 1), begin + 1);
  return true;
}

/* --- Processors --- */

enum { list_bytes = 1 << 16 }; /* of a list of processors, were every other one in it */

static bool read_list(const char *root, const char *path, ax_processor_set *out) {
  char *list = ax_alloc(list_bytes);
  const bool read = list != NULL && ax_system_file(root, path, list, list_bytes) && ax_processor_set_parse(list, out);
  ax_free(list);
  return read;
}

static bool read_list_of(const char *root, uint32_t processor, const char *name, ax_processor_set *out) {
  char path[128];
  snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%u/%s", processor, name);
  return read_list(root, path, out);
}

/* Processors at work; where nothing says, as many as the C library counts, by the first numbers. */
static bool read_online(const char *root, ax_processor_set *out) {
  if (read_list(root, "/sys/devices/system/cpu/online", out)) return true;
  const long count = root[0] == '\0' ? sysconf(_SC_NPROCESSORS_ONLN) : 0;
  memset(out, 0, sizeof *out);
  for (long p = 0; p < count && p < AX_MOST_PROCESSORS; p++) out->words[p / 64] |= (uint64_t)1 << p % 64;
  return count > 0;
}

/* "Cpus_allowed_list:	0-3" of a process. */
static bool read_allowed(const char *root, ax_processor_set *out) {
  static const char key[] = "\nCpus_allowed_list:";
  char *status = ax_alloc(list_bytes), *line = NULL, *end = NULL;
  if (status != NULL && ax_system_file(root, "/proc/self/status", status, list_bytes)) line = strstr(status, key);
  if (line != NULL) {
    line += sizeof key - 1;
    line += strspn(line, " \t");
    end = strchr(line, '\n');
  }
  if (end != NULL) *end = '\0';
  const bool read = line != NULL && ax_processor_set_parse(line, out);
  ax_free(status);
  return read;
}

bool ax_system_usable(const char *root, ax_processor_set *out) {
  ax_processor_set online;
  const bool bound = root[0] == '\0' ? ax_processor_set_of_thread(out) : read_allowed(root, out);
  if (!bound) return read_online(root, out);
  if (root[0] != '\0' && read_online(root, &online)) ax_processor_set_keep(out, &online); /* the system call does that itself */
  return ax_processor_set_count(out) > 0 || read_online(root, out);
}

void ax_system_read_limits(const char *root, ax_description *machine) {
  ax_processor_set usable;
  if (ax_system_usable(root, &usable)) know(machine, AX_FACT_USABLE, ax_processor_set_count(&usable));
  know(machine, AX_FACT_QUOTA, ax_system_quota(root));
}

/* How many sets the processors fall into, by a file that each has: the list of its own set. 0: some have none. */
static uint32_t count_sets(const char *root, const ax_processor_set *online, const char *name, const char *older) {
  ax_processor_set counted = {{0}}, own;
  uint32_t count = 0;
  for (uint32_t p = 0; (p = ax_processor_set_next(online, p)) < AX_MOST_PROCESSORS; p++) {
    if (ax_processor_set_has(&counted, p)) continue;
    if (!read_list_of(root, p, name, &own) && !read_list_of(root, p, older, &own)) return 0;
    if (!ax_processor_set_has(&own, p)) return 0;
    for (uint32_t w = 0; w < AX_COUNT(own.words); w++) counted.words[w] |= own.words[w];
    count++;
  }
  return count;
}

void ax_system_read_processors(const char *root, ax_description *machine) {
  static const struct {
    ax_fact fact;
    const char *name, *older; /* of before Linux 5.3 */
  } sets[] = {{AX_FACT_CORES, "topology/core_cpus_list", "topology/thread_siblings_list"},
              {AX_FACT_PACKAGES, "topology/package_cpus_list", "topology/core_siblings_list"}};
  ax_processor_set online, usable, nodes;
  if (!read_online(root, &online)) return;
  know(machine, AX_FACT_PROCESSORS, ax_processor_set_count(&online));
  for (size_t i = 0; i < AX_COUNT(sets); i++) {
    const uint32_t count = count_sets(root, &online, sets[i].name, sets[i].older);
    if (count > 0) know(machine, sets[i].fact, count);
  }
  const uint32_t cores = ax_system_usable(root, &usable) ? count_sets(root, &usable, sets[0].name, sets[0].older) : 0;
  if (cores > 0) know(machine, AX_FACT_USABLE_CORES, cores);
  if (read_list(root, "/sys/devices/system/node/online", &nodes)) know(machine, AX_FACT_NODES, ax_processor_set_count(&nodes));
}

void ax_system_model(const char *root, char *out, size_t capacity) {
  enum { some_bytes = 4096 }; /* the first processor's lines */
  static const char key[] = "model name";
  char *text = ax_alloc(some_bytes), *line = NULL;
  if (text != NULL && ax_system_file(root, "/proc/cpuinfo", text, some_bytes)) line = strstr(text, key);
  if (line != NULL) line += sizeof key - 1, line += strspn(line, " \t:");
  snprintf(out, capacity, "%.*s", line != NULL ? (int)strcspn(line, "\n") : 0, line != NULL ? line : "");
  ax_free(text);
}

/* --- Caches --- */

/* The caches of one processor stand for all of its kind. */
typedef struct cache {
  uint32_t level, processors; /* that share it; 0: nothing says */
  double bytes, line;
} cache;

/* "48K", "32768K", "1M"; 0: no such number. */
static double size_of(const char *text) {
  char *end;
  const double number = strtod(text, &end);
  const double unit = *end == 'K' ? 1 << 10 : *end == 'M' ? 1 << 20 : *end == 'G' ? 1 << 30 : 1;
  return number >= 1 && number * unit < 1e15 && text[0] >= '0' && text[0] <= '9' ? number * unit : 0;
}

static bool read_word(const char *root, uint32_t processor, uint32_t index, const char *name, char *out, size_t capacity) {
  char path[128];
  snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%u/cache/index%u/%s", processor, index, name);
  if (!ax_system_file(root, path, out, capacity)) return false;
  out[strcspn(out, "\n")] = '\0';
  return true;
}

/* False: there is no cache `index`, or not even its level and kind can be read. */
static bool read_cache(const char *root, uint32_t processor, uint32_t index, cache *out) {
  char word[64], shared[64];
  ax_processor_set sharing;
  if (!read_word(root, processor, index, "level", word, sizeof word)) return false;
  *out = (cache){.level = (uint32_t)strtoul(word, NULL, 10)};
  if (!read_word(root, processor, index, "type", word, sizeof word)) return false;
  if (strcmp(word, "Instruction") == 0) out->level = 0;
  if (read_word(root, processor, index, "size", word, sizeof word)) out->bytes = size_of(word);
  if (read_word(root, processor, index, "coherency_line_size", word, sizeof word)) out->line = size_of(word);
  snprintf(shared, sizeof shared, "cache/index%u/shared_cpu_list", index);
  if (read_list_of(root, processor, shared, &sharing)) out->processors = ax_processor_set_count(&sharing);
  return true;
}

#if defined(__x86_64__)
#include <cpuid.h>

/* Leaf 4 of Intel's processors, and 0x8000001d of AMD's, describe caches alike. */
static bool ask_cache(uint32_t index, cache *out) {
  unsigned a, b, c, d;
  const unsigned leaf = __builtin_cpu_is("intel") ? 4 : __builtin_cpu_is("amd") ? 0x8000001du : 0;
  if (leaf == 0 || __get_cpuid_count(leaf, index, &a, &b, &c, &d) == 0 || (a & 31) == 0) return false;
  *out = (cache){.level = (a & 31) == 2 ? 0 : a >> 5 & 7, .line = (b & 4095) + 1, .processors = (a >> 14 & 4095) + 1};
  out->bytes = out->line * ((b >> 12 & 1023) + 1) * ((b >> 22) + 1) * ((double)c + 1);
  return true;
}
#else
static bool ask_cache(uint32_t index, cache *out) {
  (void)index, (void)out;
  return false;
}
#endif

enum { most_caches = 16, least_cache = 4096 };

static void know_cache(ax_description *machine, const cache *c, uint32_t threads) {
  static const ax_fact sizes[] = {[1] = AX_FACT_L1, [2] = AX_FACT_L2, [3] = AX_FACT_L3},
                       sharing[] = {[2] = AX_FACT_L2_CORES, [3] = AX_FACT_L3_CORES};
  if (c->level < 1 || c->level > 3 || c->bytes < least_cache) return; /* smaller numbers are no size of a cache */
  know(machine, sizes[c->level], c->bytes);
  if (c->level == 1 && c->line >= 16 && c->line <= 4096) know(machine, AX_FACT_LINE, c->line);
  if (c->level > 1 && c->processors > 0)
    know(machine, sharing[c->level], c->processors > threads ? (double)((c->processors + threads - 1) / threads) : 1);
}

/* The instruction's answer. threads: of a core; 0: nothing says, so that they are those that share a first cache. */
static void ask_caches(ax_description *machine, uint32_t threads) {
  cache found;
  for (uint32_t i = 0; i < most_caches && ask_cache(i, &found); i++) {
    if (threads == 0 && found.level == 1) threads = found.processors;
    know_cache(machine, &found, threads > 0 ? threads : 1);
  }
}

/* A machine that has told some of its caches has no others. */
static void know_no_more(ax_description *machine) {
  if (machine->facts[AX_FACT_L1].source == AX_SOURCE_ASKED && machine->facts[AX_FACT_L2].source == AX_SOURCE_ASKED &&
      machine->facts[AX_FACT_L3].source != AX_SOURCE_ASKED) {
    know(machine, AX_FACT_L3, 0);
    know(machine, AX_FACT_L3_CORES, 1);
  }
}

static void read_caches_of(const char *root, uint32_t first, ax_description *machine) {
  ax_processor_set siblings;
  cache found;
  const bool says = read_list_of(root, first, "topology/core_cpus_list", &siblings) ||
                    read_list_of(root, first, "topology/thread_siblings_list", &siblings);
  const uint32_t threads = says ? ax_processor_set_count(&siblings) : 1;
  if (says) know(machine, AX_FACT_THREADS, threads);
  uint32_t count = 0;
  while (count < most_caches && read_cache(root, first, count, &found)) know_cache(machine, &found, threads), count++;
  if (machine->facts[AX_FACT_L1].source != AX_SOURCE_ASKED && root[0] == '\0') ask_caches(machine, says ? threads : 0);
  know_no_more(machine);
}

/* --- Kinds of cores --- */

enum { most_kinds = 4 };

static void add_kind(uint32_t processor, uint32_t *kinds, uint32_t *count) {
  for (uint32_t i = 0; i < *count; i++)
    if (kinds[i] == processor) return;
  if (*count < most_kinds) kinds[(*count)++] = processor;
}

static double capacity_of(const char *root, uint32_t processor) {
  char path[128], text[32];
  snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%u/cpu_capacity", processor);
  return ax_system_file(root, path, text, sizeof text) ? strtod(text, NULL) : 0;
}

/* Finds a usable processor of each kind of cores, the first one first. Where x86-64 has several kinds, Linux lists each; where ARM
   has, each processor says its capacity. */
static uint32_t find_kinds(const char *root, const ax_processor_set *usable, uint32_t *kinds) {
  static const char *const lists[] = {"/sys/devices/cpu_core/cpus", "/sys/devices/cpu_atom/cpus", "/sys/devices/cpu_lowpower/cpus"};
  uint32_t count = 0, first = ax_processor_set_next(usable, 0);
  double met[most_kinds] = {capacity_of(root, first)};
  ax_processor_set own;
  add_kind(first, kinds, &count);
  for (size_t i = 0; i < AX_COUNT(lists); i++) {
    if (!read_list(root, lists[i], &own) || ax_processor_set_has(&own, first)) continue;
    ax_processor_set_keep(&own, usable);
    if (ax_processor_set_count(&own) > 0) add_kind(ax_processor_set_next(&own, 0), kinds, &count);
  }
  for (uint32_t p = first; met[0] > 0 && (p = ax_processor_set_next(usable, p + 1)) < AX_MOST_PROCESSORS && count < most_kinds;) {
    const double capacity = capacity_of(root, p);
    bool is_new = capacity > 0;
    for (uint32_t i = 0; i < count; i++) is_new = is_new && met[i] != capacity;
    if (is_new) met[count] = capacity, add_kind(p, kinds, &count);
  }
  return count;
}

/* Code is the same for all cores, so blocks are made for the smallest caches. A kind without a third cache goes without it. */
static void keep_smaller(ax_description *machine, const ax_description *other) {
  ax_known *own = machine->facts;
  const ax_known *its = other->facts;
  if (its[AX_FACT_L1].source == AX_SOURCE_ASKED && its[AX_FACT_L1].value < own[AX_FACT_L1].value) own[AX_FACT_L1] = its[AX_FACT_L1];
  if (its[AX_FACT_L2].source == AX_SOURCE_ASKED && its[AX_FACT_L2].value / its[AX_FACT_L2_CORES].value <
                                                      own[AX_FACT_L2].value / own[AX_FACT_L2_CORES].value) {
    own[AX_FACT_L2] = its[AX_FACT_L2];
    own[AX_FACT_L2_CORES] = its[AX_FACT_L2_CORES];
  }
}

void ax_system_read_caches(const char *root, ax_description *machine) {
  ax_processor_set usable;
  uint32_t kinds[most_kinds] = {0};
  const ax_description before = *machine;
  const uint32_t count = ax_system_usable(root, &usable) ? find_kinds(root, &usable, kinds) : 1;
  read_caches_of(root, kinds[0], machine);
  for (uint32_t i = 1; i < count && machine->facts[AX_FACT_L1].source == AX_SOURCE_ASKED; i++) {
    ax_description other = before;
    read_caches_of(root, kinds[i], &other);
    keep_smaller(machine, &other);
  }
}
