/* One call of an executable. ax_run performs it at once, a pending run when its arguments are there.

   A call has the arguments and results of the plan, which may be fewer than the program's (assemble/prune.c). Behind the plan's
   results come those that are an unchanged argument but need an array of their own: the argument was donated, or the result has
   another layout. */
#ifndef AX_ARRAY_CALL_H
#define AX_ARRAY_CALL_H

#include "array/executable.h"
#include "client/client.h"
#include "processes/together.h"

typedef struct ax_passed {
  uint32_t from, result; /* index of the argument in the call, and of the result in the program */
} ax_passed;

typedef struct ax_same { /* a result of the program that is the very array of an argument */
  ax_array *array; /* the reference that the result holds */
  uint32_t input;
} ax_same;

typedef struct ax_run_call {
  ax_executable *e;
  const ax_assigned *on;
  uint32_t in_count, passed_count; /* at least the plan's; the number of results behind the plan's */
  ax_array *const *in;             /* borrowed */
  ax_array **out;
  const uint32_t *input;   /* by `in`: the input's number in the program; NULL: the same number */
  const ax_passed *passed; /* by `out`, behind the plan's results */
  uint32_t same_count;
  const ax_same *same; /* checked when the call begins: none of them may be donated to it */
  const ax_run_options *options; /* borrowed until the run is over; NULL: none */
  bool together;       /* all processes make the call, and need not do so at the same time: it is pending, behind those before it */
} ax_run_call;

static inline uint32_t ax_call_out_count(const ax_run_call *call) { return call->e->compiled.plan->out_count + call->passed_count; }
static inline uint32_t ax_call_input(const ax_run_call *call, uint32_t i) { return call->input != NULL ? call->input[i] : i; }
static inline bool ax_call_donates(const ax_run_call *call, uint32_t i) {
  return call->e->signature.in[ax_call_input(call, i)].donate;
}

/* Makes the results' arrays, without parts. ax_call_drop_arrays releases them and sets all to NULL. */
AX_MUST_USE ax_status ax_call_make_arrays(const ax_run_call *call);
void ax_call_drop_arrays(ax_array **out, uint32_t count);
/* Lays out the arguments, which are held and ready, runs, and gives the results their parts. number: as in ax_job. *began:
   donated arguments are gone, whatever the status. */
AX_MUST_USE ax_status ax_call_perform(const ax_run_call *call, uint64_t number, bool *began);
/* The two halves of it where a plugin runs the program: hands the run over, which is all that can begin it, and gives the results parts
   whose elements the plugin will have made before anything reads them there; ax_client_finish waits until it is over. Where nothing
   is to be run, `going` is all zero. */
AX_MUST_USE ax_status ax_call_launch(const ax_run_call *call, ax_client_going *going);
/* What processes compare if the call does nothing else together. */
ax_doing ax_call_doing(const ax_executable *executable);
/* Returns the error that argument i is the same array as another argument, and one of the two is donated. */
AX_MUST_USE ax_status ax_call_refuse_twice(const ax_run_call *call, uint32_t i);
/* Called once the arguments are held. AX_INVALID_ARGUMENT: a result that is an argument was donated, to this call or by another
   thread. */
AX_MUST_USE ax_status ax_call_check_same(const ax_run_call *call);

/* AX_INVALID_ARGUMENT: the counts differ from the program's; `who` begins the message. */
AX_MUST_USE ax_status ax_call_check_counts(const ax_executable *executable, const char *who, uint32_t in_count, uint32_t out_count);
/* Collects arguments that do not match; a message names the first few. got NULL: the argument is missing. `but`: another fault
   of it. */
typedef struct ax_mismatches {
  ax_text text;
  uint32_t count;
} ax_mismatches;
void ax_mismatch(ax_mismatches *all, const ax_executable *executable, uint32_t index, const ax_type *want, const ax_type *got,
                 const char *but);
/* Returns AX_OK if there are none; otherwise the error. Deinitialises. */
AX_MUST_USE ax_status ax_mismatches_report(ax_mismatches *all, const char *who, uint32_t arguments);

#endif
