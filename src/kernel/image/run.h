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

/* With the lock held: the cores of a list may go on. */
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
int64_t ax_walk_integer(const ax_row_walk *walk, uint32_t operand);
ax_run_object *ax_walk_object(const ax_row_walk *walk, const ax_run_core *core, uint32_t operand);
AX_MUST_USE ax_status ax_walk_core_meant(const ax_row_walk *walk, const ax_core_params *to, ax_run_core **out);
/* Wake the cores that have what they wait for now. */
void ax_walk_signal(const ax_row_walk *walk, ax_run_object *semaphore, int64_t amount);
void ax_walk_arrive(const ax_row_walk *walk, ax_run_object *barrier);
/* Whether the core must wait until the count is `amount`, or that phase complete. It then stands in the object's list. */
bool ax_walk_wait_for(const ax_row_walk *walk, ax_run_object *object, int64_t amount, bool phase);
/* Waits for the count of operand 0, and takes the amount off. */
AX_MUST_USE ax_status ax_walk_wait(const ax_row_walk *walk, int64_t amount, bool *waits);

/* --- run_rows.c: of views --- */

/* The view's elements to dense memory, and from there. mask: a byte an element; NULL: all. */
void ax_rows_take(const ax_type *type, const int64_t *strides, const void *view, const unsigned char *mask, void *to);
void ax_rows_put(const ax_type *type, const int64_t *strides, void *view, const unsigned char *mask, const void *from);
/* From one view to another of the same shape. far: no core reads it soon, so the copy may bypass caches. */
void ax_rows_copy(const ax_type *type, const int64_t *from_strides, const void *from, const int64_t *to_strides, void *to,
                  bool far);

#endif
