/* Runs a kernel's cores (run.c): declarations shared by its files. */
#ifndef AX_KERNEL_IMAGE_RUN_H
#define AX_KERNEL_IMAGE_RUN_H

#include "kernel/image/image.h"

/* A core at one of its operations. */
typedef struct ax_row_walk {
  const ax_image *image;
  const ax_cores_runner *runner;
  ax_run_core *core;
  const ax_image_body *body;
  const ax_image_op *op;
} ax_row_walk;

static inline void *ax_core_value(const ax_run_core *core, const ax_image_slot *slot) {
  return slot->source == AX_SLOT_OWN       ? core->values + slot->at
         : slot->source == AX_SLOT_OPERAND ? core->device->memory[slot->at]
                                           : (void *)(uintptr_t)slot->constant;
}
/* Gives the table entry of the unit at `offset` in a root that aliases its source. */
static inline char **ax_core_unit(const ax_run_core *core, const ax_image_slot *view, int64_t offset) {
  return (char **)(void *)((char *)core->roots[view->root] + view->table_at) + (size_t)offset / view->unit;
}
/* Gives the address at which a view of memory begins. */
static inline char *ax_core_view(const ax_run_core *core, uint32_t slot) {
  const ax_image_slot *view = &core->body->slots[slot];
  int64_t offset = core->views[core->body->view_of[slot]];
  if (view->unit == 0) return (char *)core->roots[view->root] + offset;
  return *ax_core_unit(core, view, offset) + (size_t)offset % view->unit;
}

/* --- run.c --- */

/* With the lock held. All members of this process have entered: puts their cores in order, once. */
void ax_run_group_begin(const ax_image *image, ax_run_group *group, const ax_cores_runner *runner);
/* Notes the first failure, with its message. */
void ax_run_group_fail(ax_run_group *group, ax_status status);
/* If all cores are through, and no messages are to come, the callers that are parked go on. */
void ax_run_group_end(ax_run_group *group, const ax_cores_runner *runner);
/* The cores of a list may go on. */
void ax_group_ready(ax_run_group *group, const ax_cores_runner *runner, ax_run_core *core);
void ax_core_text(ax_text *text, const ax_image *image, const ax_run_core *core); /* "device 3, core 0" */

/* --- run_step.c --- */

/* The core as far as it comes; the group's lock is held when it comes back. A failure is noted in the group. */
typedef enum ax_walked { AX_WALKED_WAITS, AX_WALKED_THROUGH, AX_WALKED_FAILED } ax_walked;
ax_walked ax_core_walk(const ax_image *image, const ax_cores_runner *runner, ax_run_core *core);
/* "device 3, core 0: ..": AX_INVALID_ARGUMENT */
ax_status ax_walk_fault(const ax_row_walk *walk, const char *format, ...) AX_PRINTF(2, 3);

/* --- run_act.c: with the lock held, on entry and at the end --- */

/* Does an operation that other cores can notice. *waits: it is not done; the core stands in the list of the object that it waits
   for. */
AX_MUST_USE ax_status ax_walk_act(ax_row_walk *walk, bool *waits);
/* Lets other cores go first before such an operation; the core stays ready and tries again. It does so where a policy draws the
   next core, and before a core reads a semaphore. */
bool ax_core_makes_way(ax_row_walk *walk);

/* For the rules of steps (step.h). Of the present operation: its integer operand; the object that operand is of, of a core of this
   body; the core that `to` means, by the last operands. */
typedef struct ax_core_meant {
  ax_run_core *here;       /* NULL: it is of another process */
  uint32_t member, number; /* its device, among the members; its number among the image's cores */
} ax_core_meant;
int64_t ax_walk_integer(const ax_row_walk *walk, uint32_t operand);
ax_run_object *ax_walk_object(const ax_row_walk *walk, const ax_run_core *core, uint32_t operand);
AX_MUST_USE ax_status ax_walk_core_meant(const ax_row_walk *walk, const ax_core_params *to, ax_core_meant *out);
/* Wake the cores that have what they wait for now. */
void ax_walk_signal(const ax_row_walk *walk, ax_run_object *semaphore, int64_t amount);
void ax_walk_arrive(const ax_row_walk *walk, ax_run_object *barrier);
/* Whether the core must wait until the count is `amount`, or that phase complete. It then stands in the object's list. */
bool ax_walk_wait_for(const ax_row_walk *walk, ax_run_object *object, int64_t amount, bool phase);
/* Waits for the count of operand 0, and takes the amount off. */
AX_MUST_USE ax_status ax_walk_wait(const ax_row_walk *walk, int64_t amount, bool *waits);

/* --- run_away.c --- */

/* A step that a core of another process has sent to a core of this one. */
typedef struct ax_landing {
  ax_row_walk walk;              /* of the core here, at no operation */
  const ax_core_code_step *step; /* of its body */
  /* What the sender said. */
  uint32_t object;  /* the place of the semaphore among those of its root */
  int64_t number;   /* bytes into a root, or an amount */
  const void *data; /* elements, dense */
  size_t bytes;
} ax_landing;

/* An operation as it is sent to a core of another process. */
typedef struct ax_departure {
  uint32_t object;  /* the operand that is a semaphore of that core; AX_NONE: there is none */
  uint32_t barrier; /* the operand that is a barrier of this core, which gets an arrival once it is done there; AX_NONE: likewise */
  int64_t number;   /* as in ax_landing */
  const void *data; /* copied */
  size_t bytes;
} ax_departure;
/* Sends the present operation, with the lock held, which is released meanwhile. */
AX_MUST_USE ax_status ax_walk_send(const ax_row_walk *walk, const ax_core_meant *to, const ax_departure *what);
/* The object that operand is of, of the core here. */
ax_run_object *ax_landing_object(const ax_landing *landing, uint32_t operand);

/* --- run_rows.c: of views --- */

/* The view's elements to dense memory, and from there. mask: a byte an element; NULL: all. */
void ax_rows_take(const ax_type *type, const int64_t *strides, const void *view, const unsigned char *mask, void *to);
void ax_rows_put(const ax_type *type, const int64_t *strides, void *view, const unsigned char *mask, const void *from);
/* From one view to another of the same shape. far: no core reads it soon, so the copy may bypass caches. */
void ax_rows_copy(const ax_type *type, const int64_t *from_strides, const void *from, const int64_t *to_strides, void *to,
                  bool far);

#endif
