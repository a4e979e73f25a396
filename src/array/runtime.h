/* The runtime: threads, memory, the compiler, the layouts in use and the cache of executables. */
#ifndef AX_ARRAY_RUNTIME_H
#define AX_ARRAY_RUNTIME_H

#include <pthread.h>

#include "array/array.h"
#include "array/executable_cache.h"
#include "assemble/assemble.h"
#include "processes/processes.h"
#include "run/executor.h"

typedef struct ax_tally { /* counts of the threads at one place: nearly always one thread */
  _Alignas(64) atomic_uint_least64_t runs, calls_without, copied;
} ax_tally;
enum { AX_TALLIES = 16 };

struct ax_runtime {
  atomic_uint references; /* of all kinds */
  atomic_uint owners;     /* those that users hold */
  pid_t process;          /* the process that made it */
  ax_runtime_options options;
  ax_callbacks callbacks; /* by name */
  ax_assembler assembler; /* for programs compiled from now on */
  ax_executor executor;   /* no run writes the fields above; runs done inline do not write those below the tallies */
  ax_tally tallies[AX_TALLIES];
  const char *plugin_precision; /* of its products of f32, in StableHLO's words */
  struct ax_client *client; /* runs its programs, and has its arrays; NULL: the executor, and the pool */
  pthread_mutex_t bringing; /* held while parts get buffers or memory: array/away.c */
  pthread_mutex_t layouts_lock;
  ax_layout *layouts[256]; /* by hash; holds no references */
  uint64_t layouts_made, layouts_found;
  ax_executable_cache cache;
  pthread_mutex_t order; /* guards which run waits for which: array/pending.c */
  uint32_t pending;      /* started runs that are not over */
  uint64_t runs;         /* runs started so far, without those done at once */
  struct ax_pending *together; /* retained: the run started last that all processes make; NULL: none is pending */
};

/* Makes a runtime whose meshes are spread over the transport's processes. Consumes the transport, whatever the status. process_of:
   by device, for `listed` of them; 0: devices are in blocks of device order. */
AX_MUST_USE ax_status ax_runtime_create_over(const ax_runtime_options *options, ax_transport *transport, uint32_t listed,
                                             const uint32_t *process_of, ax_runtime **out);
/* The processes of its meshes, for costs. Its list is borrowed from the runtime. */
ax_process_layout ax_process_layout_of(const ax_runtime *runtime);
/* References other than users': those of layouts (which arrays hold), executables and pending runs. ax_runtime_let_go returns
   true for the last of all references; its holder then destroys the runtime. */
ax_runtime *ax_runtime_hold(ax_runtime *runtime);
bool ax_runtime_let_go(ax_runtime *runtime);
void ax_runtime_destroy(ax_runtime *runtime);
/* Passes a line to ax_runtime_options.log, if that is set. */
void ax_runtime_log(const ax_runtime *runtime, const char *format, ...) AX_PRINTF(2, 3);
static inline ax_tally *ax_runtime_tally(ax_runtime *runtime) { return &runtime->tallies[ax_thread_place(AX_TALLIES)]; }
static inline void ax_runtime_drop(ax_runtime *runtime) {
  if (ax_runtime_let_go(runtime)) ax_runtime_destroy(runtime);
}

#endif
