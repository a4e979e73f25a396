#include "machine/processor_set.h"

#include <string.h>

/* A number at *at, which moves behind it; AX_MOST_PROCESSORS: there is none in the set's range. */
static uint32_t number(const char **at) {
  uint32_t n = 0;
  if (**at < '0' || **at > '9') return AX_MOST_PROCESSORS;
  for (; **at >= '0' && **at <= '9'; ++*at) n = n < AX_MOST_PROCESSORS ? 10 * n + (uint32_t)(**at - '0') : n;
  return n < AX_MOST_PROCESSORS ? n : AX_MOST_PROCESSORS;
}

bool ax_processor_set_parse(const char *list, ax_processor_set *out) {
  memset(out, 0, sizeof *out);
  for (const char *at = list;; at++) {
    const uint32_t first = number(&at);
    const bool several = *at == '-';
    at += several;
    const uint32_t last = several ? number(&at) : first;
    if (first == AX_MOST_PROCESSORS || last == AX_MOST_PROCESSORS || last < first) return false;
    for (uint32_t p = first; p <= last; p++) out->words[p / 64] |= (uint64_t)1 << p % 64;
    if (*at != ',') return *at == '\0' || *at == '\n';
  }
}

uint32_t ax_processor_set_count(const ax_processor_set *set) {
  uint32_t count = 0;
  for (uint32_t w = 0; w < AX_MOST_PROCESSORS / 64; w++) count += (uint32_t)__builtin_popcountll(set->words[w]);
  return count;
}

bool ax_processor_set_has(const ax_processor_set *set, uint32_t processor) {
  return processor < AX_MOST_PROCESSORS && (set->words[processor / 64] >> processor % 64 & 1) != 0;
}

uint32_t ax_processor_set_next(const ax_processor_set *set, uint32_t from) {
  while (from < AX_MOST_PROCESSORS && !ax_processor_set_has(set, from)) from++;
  return from;
}

void ax_processor_set_keep(ax_processor_set *set, const ax_processor_set *others) {
  for (uint32_t w = 0; w < AX_MOST_PROCESSORS / 64; w++) set->words[w] &= others->words[w];
}

#ifdef __linux__
#include <sched.h>

/* The C library clears what the kernel does not write. Its type is a shorter set, of which it takes the address alone. */
bool ax_processor_set_of_thread(ax_processor_set *out) {
  return sched_getaffinity(0, sizeof *out, (cpu_set_t *)(void *)out) == 0;
}
bool ax_processor_set_bind(const ax_processor_set *set) {
  return sched_setaffinity(0, sizeof *set, (const cpu_set_t *)(const void *)set) == 0;
}

#else

bool ax_processor_set_of_thread(ax_processor_set *out) {
  (void)out;
  return false;
}
bool ax_processor_set_bind(const ax_processor_set *set) {
  (void)set;
  return false;
}

#endif
