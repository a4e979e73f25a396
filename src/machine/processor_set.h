/* Sets of processors, by their numbers: of any that Linux can be built for, so far more than the 1,024 of the C library's set. */
#ifndef AX_MACHINE_PROCESSOR_SET_H
#define AX_MACHINE_PROCESSOR_SET_H

#include <stdbool.h>
#include <stdint.h>

enum { AX_MOST_PROCESSORS = 1 << 14 };

typedef struct ax_processor_set {
  uint64_t words[AX_MOST_PROCESSORS / 64];
} ax_processor_set;

/* Reads a list as the kernel writes it: "0-3,8-11". False: it is none, is empty, or has numbers beyond the set. */
bool ax_processor_set_parse(const char *list, ax_processor_set *out);
uint32_t ax_processor_set_count(const ax_processor_set *set);
bool ax_processor_set_has(const ax_processor_set *set, uint32_t processor);
/* The least number from `from` on that is in the set; AX_MOST_PROCESSORS: there is none. */
uint32_t ax_processor_set_next(const ax_processor_set *set, uint32_t from);
void ax_processor_set_keep(ax_processor_set *set, const ax_processor_set *others); /* those alone that are in both */

/* The processors that this thread may run on; false: the system does not say. */
bool ax_processor_set_of_thread(ax_processor_set *out);
bool ax_processor_set_bind(const ax_processor_set *set); /* this thread to them */

#endif
