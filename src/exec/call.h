/* One call of an executable: what ax_run does at once and a pending run when its time has come. `in` and `out` are as long as
   the program's. */
#ifndef AX_EXEC_CALL_H
#define AX_EXEC_CALL_H

#include "exec/array.h"

/* The results' arrays, without parts yet. Drop: releases them, and sets all to NULL. */
AX_MUST_USE ax_status ax_call_make_arrays(ax_executable *executable, ax_array **out);
void ax_call_drop_arrays(const ax_executable *executable, ax_array **out);
/* Arguments that are held and made: lays them out, runs, and gives the results their parts. number: as a job's. *began: donated arguments
   are gone, whatever the status. */
AX_MUST_USE ax_status ax_call_perform(ax_executable *executable, ax_array *const *in, ax_array *const *out, uint64_t number, bool *began);
/* Ends the use of the first `count` arguments; donated ones are given back unless the run began. */
void ax_call_let_go(const ax_executable *executable, ax_array *const *in, uint32_t count, bool began);
/* The error: argument i is the same array as an earlier one or a later, and one of the two is donated. */
AX_MUST_USE ax_status ax_call_refuse_twice(const ax_executable *executable, ax_array *const *in, uint32_t i);

/* AX_INVALID_ARGUMENT: counts other than the program's; `who` begins the message. */
AX_MUST_USE ax_status ax_call_check_counts(const ax_executable *executable, const char *who, uint32_t in_count, uint32_t out_count);
/* Arguments that do not match, of which a message names the first few. got NULL: there is none. `but`: what else is wrong with it. */
typedef struct ax_mismatches {
  ax_text text;
  uint32_t count;
} ax_mismatches;
void ax_mismatch(ax_mismatches *all, uint32_t index, const ax_type *want, const ax_type *got, const char *but);
/* AX_OK when there are none; deinits. */
AX_MUST_USE ax_status ax_mismatches_report(ax_mismatches *all, const char *who, uint32_t arguments);

#endif
