/* The executable, as a user holds it: a compiled program with its signature, layouts of its arguments and results, and runs. */
#ifndef AX_ARRAY_EXECUTABLE_H
#define AX_ARRAY_EXECUTABLE_H

#include "axle/stages.h"
#include "array/devices.h"
#include "array/runtime.h"
#include "run/callers.h"
#include "run/runner.h"

struct ax_executable {
  ax_runtime *runtime; /* held */
  ax_program *program; /* as the caller gave it */
  ax_signature signature;
  ax_compiled compiled;
  struct ax_client_program *remote; /* in place of instructions, if a plugin runs it; NULL */
  ax_layout **wanted;    /* by input: the layout that arguments must have */
  ax_assigned assigned;  /* layouts of results on devices 0, 1, .. */
  _Atomic(ax_assigned *) other_assigned; /* and on other devices so far; `lock` guards additions */
  pthread_mutex_t lock;
  _Atomic(ax_parts **) constant_parts; /* compiled.is_constant: by result of the plan, retained; NULL before the first run */
  const char **names;  /* by input, for messages; NULL: they have none */
  bool keep_unused, late_sums; /* as the options said */
  uint64_t check;      /* of a program in several processes: a digest of its text and options */
  double lower_seconds, compile_seconds;
  _Atomic int64_t took; /* nanoseconds of the last run that was good; only of programs with loops of unknown length; 0: none */
  struct {
    struct ax_executable *next;
    uint64_t hash;
    bool is_in;
  } cached; /* its place in the runtime's cache, whose lock guards it */
  _Alignas(64) atomic_uint references; /* on a cache line of its own, apart from what every run reads */
  ax_callers callers; /* calls and pending runs: they hold the executable, whose last reference may be released meanwhile */
  ax_runner runner;
};

void ax_executable_destroy(ax_executable *executable);
static inline void ax_executable_hold(ax_executable *executable) {
  atomic_fetch_add_explicit(&executable->references, 1, memory_order_relaxed);
}
/* Ends a call of it that entered at the place (run/callers.h). */
static inline void ax_executable_leave(ax_executable *executable, uint32_t place) {
  if (ax_callers_leave(&executable->callers, place)) ax_executable_destroy(executable);
}

/* The executable of a program, from `laid` if that is not NULL. */
AX_MUST_USE ax_status ax_executable_of(ax_runtime *runtime, ax_program *program, const ax_laid *laid, double lower_seconds,
                                       const ax_compile_options *options, ax_executable **out);
/* Gives the program as options->shardings lay it out, retained. `who` begins messages. */
AX_MUST_USE ax_status ax_program_laid_over(ax_program *program, const ax_compile_options *options, const char *who,
                                           ax_program **out);
/* Copies names of inputs into one block (ax_free); NULL if there are none. */
AX_MUST_USE ax_status ax_names_copy(const ax_name_list *names, uint32_t count, const char ***out);
/* As ax_assemble_text, of a program and no options. */
AX_MUST_USE ax_status ax_text_after(ax_runtime *runtime, ax_program *program, const char *pass, const struct ax_rates *rates,
                                    char **out);

/* array/lowered.c: the plan of a run, for any number of devices; the caller destroys it. */
AX_MUST_USE ax_status ax_lowered_plan(const ax_lowered *lowered, ax_plan **out);
/* All of them. */
static inline double ax_memory_bytes_all(const ax_memory_bytes *bytes) {
  return (double)bytes->arguments + (double)bytes->constants + (double)bytes->results + (double)bytes->kept + (double)bytes->scratch;
}
/* array/lowered.c: the memory of a run, and a use of the plan of which it is counted. */
AX_MUST_USE ax_status ax_lowered_use_plan(ax_runtime *runtime, const ax_lowered *lowered, const ax_plan_use *use, ax_memory *out);
/* array/lowered.c: prints a program's memory, and the allocations alive where it holds most. */
AX_MUST_USE ax_status ax_memory_text(ax_runtime *runtime, ax_program *program, char **out);

#endif
