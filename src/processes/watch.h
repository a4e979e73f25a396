/* Whether the other processes of this node still run. Libraries of MPI do not say it of one that was killed, where the launcher
   does not end all of them; the system does (pidfd_open). Processes on other nodes, or whose numbers mean nothing here, are not
   watched. */
#ifndef AX_PROCESSES_WATCH_H
#define AX_PROCESSES_WATCH_H

#include "base/base.h"

/* What a process is known by on its node. */
typedef struct ax_node_watch_name {
  uint64_t space; /* the namespace that `pid` is a number of; 0: unknown */
  int32_t pid;
  uint32_t process;
} ax_node_watch_name;
ax_node_watch_name ax_node_watch_name_of_me(uint32_t process);

typedef struct ax_node_watch ax_node_watch;
/* Watches those of `all`, which are this process's node's, that can be. AX_OUT_OF_MEMORY. */
AX_MUST_USE ax_status ax_node_watch_create(const ax_node_watch_name *all, uint32_t count, uint32_t me, ax_node_watch **out);
void ax_node_watch_destroy(ax_node_watch *watch); /* NULL is allowed */
/* A process that has ended, which is not watched any more. AX_NONE: there is none. */
uint32_t ax_node_watch_ended(ax_node_watch *watch);
/* The number by which this node knows a process that is watched, and whether it is stopped. 0: it is not watched. */
int32_t ax_node_watch_pid(const ax_node_watch *watch, uint32_t process, bool *stopped);

#endif
