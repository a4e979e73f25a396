/* Facts that the operating system keeps in files (sysfs, procfs, cgroups). Each function sets what it finds, as asked, and leaves
   the rest; files that are not there, or make no sense, say nothing.

   root: a folder in which the files lie as they lie under /, so that tests have other machines; "" for this machine, for which
   CPUID and system calls are asked too. */
#ifndef AX_MACHINE_SYSTEM_H
#define AX_MACHINE_SYSTEM_H

#include "machine/machine.h"
#include "machine/processor_set.h"

/* Reads a whole file, of which at most `capacity` - 1 bytes count; false: there is none. */
bool ax_system_file(const char *root, const char *path, char *out, size_t capacity);
typedef struct ax_system_process {
  int32_t parent;
  bool stopped, ended; /* ended: nobody has waited for it yet */
  char name[16];
} ax_system_process;
/* What the system says of a process; false: there is none. */
bool ax_system_find_process(const char *root, int32_t pid, ax_system_process *out);
/* The processors that this process may run on; false: nothing says. */
bool ax_system_usable(const char *root, ax_processor_set *out);

/* The model of the processor, as the first line of /proc/cpuinfo that names one; "": nothing says. */
void ax_system_model(const char *root, char *out, size_t capacity);

void ax_system_read_caches(const char *root, ax_description *machine);
void ax_system_read_limits(const char *root, ax_description *machine);
void ax_system_read_processors(const char *root, ax_description *machine);

/* The least quota of the cgroups that the process is in, and of those around them, in processors; 0: none is set (cgroup.c). */
double ax_system_quota(const char *root);

#endif
