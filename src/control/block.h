/* Blocks of C that are traced where they stand (axle/bodies.h): declarations shared by loops and branches. */
#ifndef AX_CONTROL_BLOCK_H
#define AX_CONTROL_BLOCK_H

#include "axle/bodies.h"
#include "control/cond.h"
#include "control/scan.h"
#include "control/while.h"

typedef struct ax_block_state ax_block_state;

/* The functions of one form of block. Errors are the current trace's at first; a function that returns a status passes them to the
   trace around. */
typedef struct ax_block_form {
  AX_MUST_USE ax_status (*open)(ax_block_state *b); /* begins a run: a trace, in which the variables hold values */
  AX_MUST_USE ax_status (*close)(ax_block_state *b,
                                 bool *more); /* ends it with what the variables hold now; more: another run is needed */
  void (*bind)(ax_block_state *b);            /* the equation, in the trace around, and the variables after it */
  void (*deinit)(ax_block_state *b);
} ax_block_form;

/* Slices and stacks of a loop that is a scan, so that its length is known. */
typedef struct ax_block_slices {
  ax_value *whole, *slice; /* of the trace around it, and of the run */
  uint32_t count, capacity;
  ax_value **stacked, *made; /* the C variables that get the stacks, and the stacked values */
  uint32_t stacked_count, stacked_capacity;
} ax_block_slices;

/* The state of a block, in the memory of the trace around it. */
struct ax_block_state {
  const ax_block_form *form;
  const char *call, *name, *listed; /* "prog.c:12: AX_LOOP", "AX_LOOP", "10, &x" */
  const void *frame;
  ax_code_block *handle;
  ax_builder *trace; /* of the run under way; NULL: there is none */
  ax_value **variables, *starts;
  uint32_t count, runs;
  bool reruns;       /* the code around runs again: what comparing two runs finds was found */
  bool is_compared;  /* this run is the last, which is compared */
  bool declares;     /* the head declares a variable, in a `for` of its own */
  bool counts;       /* it is an index */
  ax_value index[2]; /* where the index starts, and the upper bound; of AX_SCAN the array; of AX_IF the number of the branch */
  ax_value *carries; /* of the run, as it began: the variables' values, the index, the upper bound */
  ax_scan_tracing scan;
  ax_while_tracing loop;
  ax_cond_tracing cond;
  uint32_t branch;
  ax_block_slices slices, earlier; /* of this run, and of the one that it is compared with */
  ax_body body, test;              /* of that one */
};

extern const ax_block_form ax_block_scan, ax_block_while, ax_block_if;

/* The block whose run the trace is; NULL: it is none. */
ax_block_state *ax_block_of(const ax_builder *trace);
/* The text of a variable as the head names it: "x" of "10, &x". */
const char *ax_block_variable_name(const ax_block_state *b, uint32_t k, char text[64]);
/* The variables hold arrays at the loop's beginning; or the trace has failed. */
bool ax_block_check_starts(const ax_block_state *b);
/* The values of the variables at a run's end, in the trace's memory, with room for `extra` more. Numbers become scalars of the
   dtype that the variable had. NULL: the trace has failed; the message names a variable that does not fit `types`. types NULL: any
   type fits. */
ax_value *ax_block_take(ax_block_state *b, const ax_type *types, uint32_t extra);
/* The same at the end of a loop's round. An error besides: the round made no equation, and changed and stacked nothing. */
ax_value *ax_block_take_round(ax_block_state *b, const ax_type *types, uint32_t extra);
/* Puts the values into the variables; NULL: poison. */
void ax_block_give(const ax_block_state *b, const ax_value *values);

/* --- The forms. begin fails the trace where the head is wrong. --- */
void ax_block_begin_scan(ax_block_state *b, int64_t length, bool reverse); /* length -1: that of the bounds */
void ax_block_begin_while(ax_block_state *b);
void ax_block_begin_if(ax_block_state *b, ax_value predicate);
AX_MUST_USE ax_status ax_block_close_test(ax_block_state *b, ax_value condition);
AX_MUST_USE ax_status ax_block_open_body(ax_block_state *b);
bool ax_block_same_values(const ax_value *a, const ax_value *b, uint32_t count);
/* Both runs made the same: else AX_INVALID_ARGUMENT. `earlier` is that of the run before. */
AX_MUST_USE ax_status ax_block_compare(const ax_block_state *b, const ax_body *earlier, const ax_body *body);

#endif
