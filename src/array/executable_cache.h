/* The executables of a runtime that are in use, by their programs and options: a program that is compiled again gives the
   executable that there is. A hash table, so the cost of a search does not grow with the number of executables. */
#ifndef AX_ARRAY_EXECUTABLE_CACHE_H
#define AX_ARRAY_EXECUTABLE_CACHE_H

#include <pthread.h>
#include <sys/types.h>

#include "axle/exec.h"

/* The key by which an executable is found. All its pointers are borrowed. */
typedef struct ax_compile_key {
  const ax_program *program;
  const ax_compile_options *options; /* with both options of numbers decided: none is DEFAULT */
  const bool *donate; /* by input: options->donate */
  uint64_t hash;
} ax_compile_key;
ax_compile_key ax_compile_key_of(const ax_program *program, const ax_compile_options *options, const bool *donate);

/* Zero-initialise, then _init. */
typedef struct ax_executable_cache {
  pthread_mutex_t lock;      /* guards all fields but `process` */
  pid_t process;             /* that made it: in one forked from it, another thread may have held the lock for ever */
  ax_executable **chains;    /* by hash; holds no references */
  uint32_t chain_count;      /* a power of two; 0: there is no table yet */
  uint32_t count;            /* of executables in it */
  uint64_t compiled, found;  /* numbers of programs so far */
  uint64_t looked_at;        /* executables that searches have looked at so far, for tests */
} ax_executable_cache;

void ax_executable_cache_init(ax_executable_cache *cache);
void ax_executable_cache_deinit(ax_executable_cache *cache); /* all but the lock, which in a forked process cannot be ended */
/* Gives an executable of an equal program, traced at the same lines, compiled with the same options; retained. NULL: there is
   none. */
ax_executable *ax_executable_cache_find(ax_executable_cache *cache, const ax_compile_key *key);
/* Adds an executable, which was compiled for this key. AX_OUT_OF_MEMORY: there is no memory for the table. */
AX_MUST_USE ax_status ax_executable_cache_add(ax_executable_cache *cache, ax_executable *executable, const ax_compile_key *key);
/* Gives up a reference that may be the last. True: it was, and the executable is no longer in the cache. */
bool ax_executable_cache_drop(ax_executable_cache *cache, ax_executable *executable);

#endif
