/* One call of an executable: what ax_run does at once and a pending run when its time has come.

   A call is of what the plan takes and makes, which may be less than the program does (exec/prune.c). Behind that come results that
   are an argument unchanged and yet another array: because the argument was donated, and is gone, or because the result is to lie
   otherwise. */
#ifndef AX_EXEC_CALL_H
#define AX_EXEC_CALL_H

#include "exec/array.h"
#include "exec/exec.h"

typedef struct ax_passed {
  uint32_t from, result; /* the argument of the call, and the result of the program */
} ax_passed;

typedef struct ax_same { /* a result of the program that is an argument of it, the same array */
  ax_array *array; /* the result's reference */
  uint32_t input;
} ax_same;

typedef struct ax_run_call {
  ax_executable *e;
  const ax_assigned *on;
  uint32_t in_count, passed_count; /* at least the plan's; and how many results come behind the plan's */
  ax_array *const *in;             /* borrowed */
  ax_array **out;
  const uint32_t *input;   /* by `in`: the program's number; NULL: the same */
  const ax_passed *passed; /* by `out`, from the plan's on */
  uint32_t same_count;
  const ax_same *same; /* looked at when the call begins: none may be donated to it */
} ax_run_call;

static inline uint32_t ax_call_out_count(const ax_run_call *call) { return call->e->plan->out_count + call->passed_count; }
static inline uint32_t ax_call_input(const ax_run_call *call, uint32_t i) { return call->input != NULL ? call->input[i] : i; }
static inline bool ax_call_donates(const ax_run_call *call, uint32_t i) { return call->e->donate[ax_call_input(call, i)]; }

/* The results' arrays, without parts yet. Drop: releases them, and sets all to NULL. */
AX_MUST_USE ax_status ax_call_make_arrays(const ax_run_call *call);
void ax_call_drop_arrays(ax_array **out, uint32_t count);
/* Arguments that are held and made: lays them out, runs, and gives the results their parts. number: as a job's. *began: donated
   arguments are gone, whatever the status. */
AX_MUST_USE ax_status ax_call_perform(const ax_run_call *call, uint64_t number, bool *began);
/* Ends the use of the first `count` arguments; donated ones are given back unless the run began. */
void ax_call_let_go(const ax_run_call *call, uint32_t count, bool began);
/* The error: argument i is the same array as an earlier one or a later, and one of the two is donated. */
AX_MUST_USE ax_status ax_call_refuse_twice(const ax_run_call *call, uint32_t i);
/* Once the call's arguments are held. AX_INVALID_ARGUMENT: a result that is an argument was donated, to this call or by another
   thread. */
AX_MUST_USE ax_status ax_call_check_same(const ax_run_call *call);

/* AX_INVALID_ARGUMENT: counts other than the program's; `who` begins the message. */
AX_MUST_USE ax_status ax_call_check_counts(const ax_executable *executable, const char *who, uint32_t in_count, uint32_t out_count);
/* Arguments that do not match, of which a message names the first few. got NULL: there is none. `but`: what else is wrong with
   it. */
typedef struct ax_mismatches {
  ax_text text;
  uint32_t count;
} ax_mismatches;
void ax_mismatch(ax_mismatches *all, const ax_executable *executable, uint32_t index, const ax_type *want, const ax_type *got,
                 const char *but);
/* AX_OK when there are none; deinits. */
AX_MUST_USE ax_status ax_mismatches_report(ax_mismatches *all, const char *who, uint32_t arguments);

#endif
