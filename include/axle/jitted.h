/* Functions that are compiled when they are called: what `f = jax.jit(f)` gives. A call traces and compiles the function for the
   types, the layouts and the static bytes that it is given, and keeps the executable. Later calls that are given the same find it.

     ax_must(ax_jitted_create(runtime, AX_FN(step, 2, 1), NULL, &step_of));
     ax_must(ax_jitted_run(step_of, AX_ARRAYS(x, w), &y));       traces, compiles, runs
     ax_must(ax_jitted_run(step_of, AX_ARRAYS(y, w), &z));       runs

   Computation follows data: an input of which the options' shardings say nothing lies as the argument does, so that an argument is
   not moved and each device computes with its blocks (ax_compile_options.like). For arguments that lie otherwise the function is
   compiled once more, and not traced again.

   Threads. Every function may be called from any thread, on the same object at the same time. Calls that find their executable do
   not wait for those that compile. Threads that call at the same time with arguments of one kind that is new compile once: one
   compiles, the others wait for it. The function itself may be traced by several of them, so it may run on several threads at once.
   It is called without a lock held, and may itself call the object.

   Several processes: as of ax_jit and ax_run, each makes the same calls in the same order. */
#ifndef AXLE_JITTED_H
#define AXLE_JITTED_H

#include "axle/exec.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default) /* all else is hidden in the library */

/* Reference-counted; retains the runtime. */
typedef struct ax_jitted ax_jitted;
typedef struct ax_jitted_options {
  ax_compile_options compile; /* of every executable. `like` is {0}: the arguments say it. Copied, with its lists and texts */
  uint32_t most_kept;         /* executables that are kept; 0: 256. Beyond them that is dropped which was not used for longest. A run
                                 of it goes on, and a call that needs it again compiles it again */
} ax_jitted_options;
/* The function's counts say how many arguments and results there are. Its context is borrowed, until the last reference is released.
   options may be NULL: {0}. `*out` is owned by the caller. AX_INVALID_ARGUMENT: there is no function; `like` in the options; names of
   another number than operands; shardings without a mesh, or a mesh without them. AX_OUT_OF_MEMORY. */
AX_MUST_USE ax_status ax_jitted_create(ax_runtime *runtime, ax_fn function, const ax_jitted_options *options, ax_jitted **out);
ax_jitted *ax_jitted_retain(ax_jitted *jitted);
void ax_jitted_release(ax_jitted *jitted);

/* Traces and compiles where that is needed, then ax_run: it waits. A call that finds its executable costs little more than ax_run of
   it. `out` receives arrays owned by the caller, all NULL on failure.
   Statuses: those of ax_trace, ax_compile and ax_run. What failed to compile is not kept, and the next such call tries again. */
AX_MUST_USE ax_status ax_jitted_run(ax_jitted *jitted, uint32_t in_count, ax_array *const *in, uint32_t out_count, ax_array **out);
/* The same with ax_run_start, which does not wait for the run. It does wait where it compiles. */
AX_MUST_USE ax_status ax_jitted_run_start(ax_jitted *jitted, uint32_t in_count, ax_array *const *in, uint32_t out_count,
                                          ax_array **out);
/* The same from host arrays to host arrays, with ax_run_host. Layouts are the program's, as of arrays that are not committed. */
AX_MUST_USE ax_status ax_jitted_run_host(ax_jitted *jitted, uint32_t in_count, const ax_host_array *in, uint32_t out_count,
                                         ax_host_array *out);

/* What the function is told beside its operands, and traced for: as jax.jit's static_argnums. The bytes are compared one by one: a
   struct is cleared before its members are set, so that the bytes between them are the same, and pointers are compared as addresses. */
typedef struct ax_static {
  const void *data;
  size_t bytes;
} ax_static;
#ifndef __cplusplus
#define AX_STATIC(...) ((ax_static){&(__VA_ARGS__), sizeof(__VA_ARGS__)}) /* a variable */
#endif
/* ax_jitted_run where the function's context is the static bytes: a copy, aligned as by malloc, that it reads while it is traced.
   Without bytes, {0}, the context is the function's own, as in the calls above. */
AX_MUST_USE ax_status ax_jitted_run_static(ax_jitted *jitted, ax_static statics, uint32_t in_count, ax_array *const *in,
                                           uint32_t out_count, ax_array **out);
/* The executable that such a call runs, without running it: to ask what it costs and how results will lie, to start runs of it, to
   compile before the first call. Arguments may be donated already. `*out` is owned by the caller. */
AX_MUST_USE ax_status ax_jitted_executable(ax_jitted *jitted, ax_static statics, uint32_t in_count, ax_array *const *in,
                                           ax_executable **out);
/* Drops all executables that are kept, as f.clear_cache() does: the next call traces again. Runs go on. */
void ax_jitted_clear(ax_jitted *jitted);

/* Counts since it was created. A plain value. */
typedef struct ax_jitted_counters {
  uint64_t found;    /* calls that found their executable */
  uint64_t missed;   /* calls that did not, and compiled or waited for another thread that did; failed ones too */
  uint64_t traced;   /* how often the function was traced */
  uint64_t compiled; /* executables made; those among them that the runtime had already (ax_compile) were only found */
  uint64_t dropped;  /* executables that made room for others, or were cleared */
  uint32_t kept;     /* executables kept now */
} ax_jitted_counters;
ax_jitted_counters ax_jitted_count(ax_jitted *jitted); /* zeros for NULL */

#pragma GCC visibility pop

#ifndef __cplusplus /* lists with their counts (axle/type.h) */
#define ax_jitted_run(jitted, in, out) \
  AX_LINED_STATUS(jitted_run, jitted, AX_COUNTED(ax_array *, in), AX_COUNTED(ax_array *, out))
#define ax_jitted_run_start(jitted, in, out) \
  AX_LINED_STATUS(jitted_run_start, jitted, AX_COUNTED(ax_array *, in), AX_COUNTED(ax_array *, out))
#define ax_jitted_run_host(jitted, in, out) \
  AX_LINED_STATUS(jitted_run_host, jitted, AX_COUNTED(ax_host_array, in), AX_COUNTED(ax_host_array, out))
#define ax_jitted_run_static(jitted, statics, in, out) \
  AX_LINED_STATUS(jitted_run_static, jitted, statics, AX_COUNTED(ax_array *, in), AX_COUNTED(ax_array *, out))
#define ax_jitted_executable(jitted, statics, in, out) \
  AX_LINED_STATUS(jitted_executable, jitted, statics, AX_COUNTED(ax_array *, in), out)
#endif

#ifndef AXLE_NO_LINES /* axle/line.h */
#define ax_jitted_create(...) AX_LINED_STATUS(jitted_create, __VA_ARGS__)
#endif

#ifdef __cplusplus
}
#endif
#endif
