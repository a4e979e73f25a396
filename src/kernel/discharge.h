/* Discharge: a kernel as a plain program, in which memory is values that are handed on. */
#ifndef AX_KERNEL_DISCHARGE_H
#define AX_KERNEL_DISCHARGE_H

#include "kernel/kernel.h"
#include "prim/region.h"

/* AX_ABSENT: the kernel is none that a plain program can be, with the step at which cores or devices wait for one another. */
AX_MUST_USE ax_status ax_kernel_plain(const ax_kernel_params *params);

typedef struct ax_discharge_options {
  const ax_type *in;    /* of the operands, as they spread */
  uint32_t in_count;
  const ax_mesh *axes;  /* the environment that the program is to have: that of the kernel_call */
  ax_spread spread;     /* how results spread */
  bool zeros; /* unwritten memory is 0, so that derivatives of masked values are finite; otherwise it has the value that shows best
                 (NaN for floats) */
  bool beside; /* points that need nothing of one another are one batch (beside.h); otherwise all go one after the other */
  bool checked; /* one result more, s32[]: 1, or 0 if some view leaves what it is of, or a wait for a copy would never end. Then the other
                   results are those of no run */
  bool apart;  /* few points, or the first and the last, stand apart from the loop: what runs fastest, and a larger program */
} ax_discharge_options;
/* (operands) -> (results), as those of the kernel_call. AX_ABSENT: as above. Owned by the caller; NULL on failure. */
AX_MUST_USE ax_status ax_kernel_discharge(const ax_kernel_params *params, const ax_discharge_options *options, ax_program **out);
/* The same of an equation of a program whose axes say no more how anything spreads: as it is run. The options' axes and spreads are
   not used. */
AX_MUST_USE ax_status ax_kernel_discharge_run(const ax_eqn *eqn, const ax_discharge_options *options, ax_program **out);

/* --- Inside: memory as values (content.c) --- */

/* A ref in the body: all of a memory, or what a view leaves of another ref. Semaphores that cores signal are memory with their
   counts, since these can be read; DMA semaphores and barriers are of no memory: they only order. */
typedef struct ax_content_view {
  uint32_t memory; /* AX_NONE: none */
  const struct ax_content_view *of; /* NULL: all of it */
  const ax_eqn *eqn; /* how it is made of that: a step that has a `view` (step.h) .. */
  const ax_value *starts; /* .. from where on */
  ax_type type;
} ax_content_view;

typedef struct ax_discharge {
  const ax_kernel_params *params;
  const ax_mesh *axes;      /* of the program */
  const ax_mesh *body_axes; /* of the body at hand: the same, and those of cores */
  ax_spread spread;         /* of everything in the program */
  bool zeros;
  const ax_value *ids;   /* the point of the grid; NULL: not in a body */
  uint32_t right;        /* memory, an s32: whether all that was asked for held so far; AX_NONE: nothing is asked. DMA semaphores are memory
                            with their counts then */
  struct ax_ranges *all; /* of all points, if something is asked */
  const ax_value *guard; /* bool[]: whether the copies, waits and views at hand are there; NULL: they are */
  struct ax_ranges *ranges; /* of the point's numbers; NULL: nothing is known */
  const ax_value *cores; /* the core, along each of its axes */
  ax_value *content; /* by memory: its content now, a value of the trace in progress or one around it */
  uint32_t memory_count, memory_capacity;
  ax_arena arena; /* of views */
} ax_discharge;

/* A value of the body: an array, or memory. */
typedef struct ax_discharge_value {
  ax_value value;
  const ax_content_view *view; /* NULL: an array */
} ax_discharge_value;

/* x, spread as everything is. */
ax_value ax_discharge_spread(const ax_discharge *d, ax_value x);
/* Gives the content of memory of this type before any write. */
ax_value ax_content_unset(const ax_discharge *d, const ax_type *type);
/* Adds memory of this type with `content`. A type other than a ref or a counting semaphore gets a view without memory. NULL: the
   trace has failed. */
const ax_content_view *ax_content_add(ax_discharge *d, const ax_type *type, ax_value content);
ax_value ax_content_read(ax_discharge *d, const ax_content_view *view);
void ax_content_write(ax_discharge *d, const ax_content_view *view, ax_value value);
/* The value that something has now, `was`, or `becomes` if the guard holds. */
ax_value ax_discharge_guarded(const ax_discharge *d, ax_value was, ax_value becomes);
/* Asks for something: bool[]. */
void ax_discharge_require(ax_discharge *d, ax_value holds);
/* Whether something is asked for in the program. */
bool ax_discharge_asks(const ax_discharge *d, const ax_program *program);
/* The view that an equation makes of another. NULL: the trace has failed. */
const ax_content_view *ax_content_of(ax_discharge *d, const ax_content_view *of, const ax_eqn *eqn, const ax_type *type,
                                     const ax_value *starts);

/* Memories whose contents come round a loop, or out of a branch. */
typedef struct ax_carried {
  uint32_t count;
  uint32_t *memory; /* ascending */
} ax_carried;
/* written[i]: whether the program writes what its input i is a ref of; there are in_count. */
AX_MUST_USE ax_status ax_written_inputs(const ax_program *program, bool *written);

/* --- The equations (discharge_step.c) --- */

typedef struct ax_discharge_args {
  ax_discharge *d;
  const ax_program *program;
  const ax_eqn *eqn;
  const ax_type *types; /* by value id */
  const ax_discharge_value *in;
  ax_discharge_value *out;
} ax_discharge_args;
/* Result k is the value, spread as everything is. */
void ax_discharge_give(const ax_discharge_args *args, uint32_t k, ax_value value);
/* Binds a body in place of the equation; its results are the equation's. */
void ax_discharge_body(const ax_discharge_args *args, const ax_program *body, const ax_discharge_value *in);
/* Binds those of the program in the trace in progress, on `in`. */
void ax_discharge_program(ax_discharge *d, const ax_program *program, const ax_discharge_value *in, ax_value *out);

#endif
