/* The processes that a launcher has started on this machine, as the system knows them: before MPI has been started, nothing else
   says which there are.

   They are found by a variable of the environment that tells each its number (PMI_RANK=3), below the same launcher. A process that
   waits for the others to begin has a thread with a name of its own, by which it is known from one that has not come yet. */
#ifndef AX_PROCESSES_SIBLINGS_H
#define AX_PROCESSES_SIBLINGS_H

#include "base/base.h"

#define AX_OPENING_THREAD "axle_opening" /* the name of the thread: at most 15 characters */

typedef enum ax_sibling_state {
  AX_SIBLING_UNSEEN, /* has ended, hides its environment, or was started on another machine, or by a launcher within a launcher */
  AX_SIBLING_ELSEWHERE, /* runs, and has not come */
  AX_SIBLING_COME
} ax_sibling_state;

typedef struct ax_sibling {
  ax_sibling_state state;
  int32_t pid; /* of the youngest of its processes; 0: unseen */
  bool stopped;
  char program[16]; /* its name */
} ax_sibling;

/* Fills `of`, by number, `count` entries. root: as in machine/system.h, "" for this machine. variable: the name of the one that has the
   number. me: this process. False, all unseen: this process has no number, or what is asked for cannot be read. */
bool ax_siblings_find(const char *proc, const char *variable, int32_t me, ax_sibling *of, uint32_t count);

#endif
