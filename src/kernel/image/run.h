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
  bool held; /* this thread holds the group's lock */
  bool own;  /* the present operation is done whether it holds it or not */
} ax_row_walk;

/* --- The lock of a group. A thread keeps it from act to act, as most others that want it would only wait for what it does next; it
   gives it up when another thread waits for it, and before what takes long. --- */

void ax_group_lock_wanted(ax_run_group *group);
static inline void ax_group_lock(ax_run_group *group) {
  if (pthread_mutex_trylock(&group->lock) != 0) ax_group_lock_wanted(group);
}
static inline bool ax_group_is_wanted(const ax_run_group *group) {
  return atomic_load_explicit(&group->wanted, memory_order_relaxed) > 0;
}
static inline void ax_walk_hold(ax_row_walk *walk) {
  if (!walk->held) ax_group_lock(walk->core->device->group);
  walk->held = true;
}
static inline void ax_walk_free(ax_row_walk *walk) {
  if (walk->held) pthread_mutex_unlock(&walk->core->device->group->lock);
  walk->held = false;
}
static inline void ax_walk_free_if_wanted(ax_row_walk *walk) {
  if (walk->held && ax_group_is_wanted(walk->core->device->group)) ax_walk_free(walk);
}
/* Around the moving of so many bytes by an act. */
enum { AX_WALK_LONG = 1 << 14 };
static inline void ax_walk_begin_moving(ax_row_walk *walk, size_t bytes) {
  if (bytes >= AX_WALK_LONG) ax_walk_free(walk);
  else ax_walk_free_if_wanted(walk);
}
static inline void ax_walk_end_moving(ax_row_walk *walk) {
  if (!walk->own) ax_walk_hold(walk);
}

static inline void *ax_core_value(const ax_run_core *core, const ax_image_slot *slot) {
  return slot->source == AX_SLOT_OWN       ? core->values + slot->at
         : slot->source == AX_SLOT_OPERAND ? core->device->memory[slot->at]
                                           : (void *)(uintptr_t)slot->constant;
}
/* Where the core remembers that one, if the operation means cores by one or two coordinates. */
static inline struct ax_run_target *ax_run_target_of(const ax_run_core *core, const ax_image_op *op, int32_t a, int32_t b) {
  return &core->targets[op->meant - 1].of[((uint32_t)a + (uint32_t)b) % AX_RUN_TARGETS];
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
/* Fails with what each core waits for. */
ax_status ax_run_group_deadlock(const ax_image *image, ax_run_group *group);
/* If all cores are through, and no messages are to come, the callers that are parked go on. */
void ax_run_group_end(ax_run_group *group, const ax_cores_runner *runner);
/* The cores of a list may go on. */
void ax_group_ready(ax_run_group *group, const ax_cores_runner *runner, ax_run_core *core);
void ax_core_text(ax_text *text, const ax_image *image, const ax_run_core *core); /* "device 3, core 0" */

/* --- run_step.c --- */

/* The core as far as it comes, with the group's lock held on entry and at the end. A failure is noted in the group. */
typedef enum ax_walked { AX_WALKED_WAITS, AX_WALKED_THROUGH, AX_WALKED_FAILED, AX_WALKED_GOES_ON } ax_walked; /* WAITS: or is ready */
ax_walked ax_core_walk(const ax_image *image, const ax_cores_runner *runner, ax_run_core *core);
/* Does the present operation, and says which one is next. *waits: as of an act; the core stays at the operation. */
AX_MUST_USE ax_status ax_walk_do(ax_row_walk *walk, const ax_image_op **next, bool *waits);
/* The walk ends at the present operation, at which the core waits or has failed; takes the lock. */
ax_walked ax_walk_end(ax_row_walk *walk, ax_status status);
/* "device 3, core 0: ..": AX_INVALID_ARGUMENT */
ax_status ax_walk_fault(const ax_row_walk *walk, const char *format, ...) AX_PRINTF(2, 3);

/* --- run_spin.c: with the lock held, on entry and at the end --- */

/* A core that goes round a `while` comes here each so many rounds, with its pc at the next. Finds whether it does so for ever. GOES_ON: from
   its pc. */
enum { AX_RUN_ROUNDS = 1 << 14 };
extern const ax_image_op ax_image_pause; /* that operation */
ax_walked ax_core_goes_round(ax_row_walk *walk);

/* --- run_act.c: with the lock held, on entry and at the end, but for operations that are a core's own --- */

/* Opens or closes a scope. *waits: it is not done; the core stands in the list of the object that it waits for. */
void ax_walk_open(const ax_row_walk *walk, bool *waits);
void ax_walk_close(const ax_row_walk *walk);
/* Lets other cores go first before such an operation; the core stays ready and tries again. It does so where a policy draws the
   next core, and before a core reads a semaphore. */
bool ax_core_makes_way(ax_row_walk *walk);

/* For the rules of steps (step.h). Of the present operation: its integer operand; the object that operand is of, of a core of this
   body; the core that `to` means, by the last operands. */
typedef struct ax_core_meant {
  ax_run_core *here;       /* NULL: it is of another process */
  uint32_t member, number; /* its device, among the members; its number among the image's cores */
} ax_core_meant;
static inline int64_t ax_walk_integer(const ax_row_walk *walk, uint32_t operand) {
  return ax_image_integer(walk->core->values, &walk->op->in[operand]);
}
static inline ax_run_object *ax_walk_object(const ax_row_walk *walk, const ax_run_core *core, uint32_t operand) {
  const ax_image_place *place = &walk->op->in[operand];
  return (ax_run_object *)core->roots[place->root] + walk->core->views[place->at];
}
/* Where the operand's view begins, of a core of this body. Not of memory that aliases its source. */
static inline char *ax_walk_memory(const ax_row_walk *walk, const ax_run_core *core, uint32_t operand) {
  const ax_image_place *place = &walk->op->in[operand];
  return (char *)core->roots[place->root] + walk->core->views[place->at];
}
AX_MUST_USE ax_status ax_walk_find_core(const ax_row_walk *walk, const ax_core_params *to, ax_core_meant *out);
static inline ax_status ax_walk_core_meant(const ax_row_walk *walk, const ax_core_params *to, ax_core_meant *out) {
  const uint32_t count = ax_core_operands(to);
  if (count == 0) {
    *out = (ax_core_meant){.here = walk->core};
    return AX_OK;
  }
  if (walk->op->meant == 0) return ax_walk_find_core(walk, to, out);
  const uint32_t first = walk->op->step->in_count - count;
  const int32_t a = (int32_t)ax_walk_integer(walk, first), b = count > 1 ? (int32_t)ax_walk_integer(walk, first + 1) : 0;
  const struct ax_run_target *known = ax_run_target_of(walk->core, walk->op, a, b);
  if (!known->known || known->coordinate[0] != a || known->coordinate[1] != b) return ax_walk_find_core(walk, to, out);
  *out = (ax_core_meant){known->here, known->member, known->number};
  return AX_OK;
}
/* Wake the cores that have what they wait for now. */
void ax_walk_let_go(const ax_row_walk *walk, ax_run_object *object);
static inline void ax_walk_signal(const ax_row_walk *walk, ax_run_object *semaphore, int64_t amount) {
  semaphore->count += amount;
  if (semaphore->waiting != NULL) ax_walk_let_go(walk, semaphore);
}
void ax_walk_arrive(const ax_row_walk *walk, ax_run_object *barrier);
/* Waits for the count of operand 0 and takes the amount off, or for the next phase of operand 0 that this core has not waited for. *waits:
   the core stands in the object's list, and goes on with the next operation when it has been given what it waits for. */
AX_MUST_USE ax_status ax_walk_stand_for(const ax_row_walk *walk, ax_run_object *object, int64_t amount, bool *waits);
void ax_walk_wait_phase(const ax_row_walk *walk, bool *waits);
static inline ax_status ax_walk_wait(const ax_row_walk *walk, int64_t amount, bool *waits) {
  ax_run_object *object = ax_walk_object(walk, walk->core, 0);
  if (amount < 0 || object->count < amount) return ax_walk_stand_for(walk, object, amount, waits);
  object->count -= amount;
  return AX_OK;
}

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
