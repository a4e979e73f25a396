/* A kernel in the form in which activations of the executor run it: made once, when it is lowered, from the kernel's machine
   (machine.h).

     kernel ---- machine: codes, cores, places of one device ----> image: a list of operations for each body, and where all is in a
     device's state

   A core's values have fixed places in its memory, and a view is one number: its offset in its root. So an operation knows shapes
   and strides, and only addresses differ from core to core.

     state of a device   group | device | cores, each with views, counters, values | semaphores and barriers | scratch

   A *root* is memory that views are made of: an operand, a result, scratch, the barrier semaphore, a scope's scratch. Each body
   numbers its own. */
#ifndef AX_KERNEL_IMAGE_IMAGE_H
#define AX_KERNEL_IMAGE_IMAGE_H

#include <pthread.h>
#include <stdatomic.h>

#include "kernel/machine/machine.h"
#include "plan/cores.h"

/* --- The image of a body --- */

enum { AX_IMAGE_MOST = 64 }; /* operands, results of an equation */

typedef enum ax_slot_source { AX_SLOT_OWN, AX_SLOT_CONSTANT, AX_SLOT_OPERAND, AX_SLOT_VIEW } ax_slot_source;
typedef struct ax_image_slot {
  ax_slot_source source;
  ax_type type;
  size_t bytes;
  size_t at;              /* OWN: bytes into the core's values; OPERAND: which of the plan's memory */
  const void *constant;
  uint32_t root;          /* VIEW: */
  const ax_core_code_step *maker; /* the step that makes it of another view; NULL: it is a root */
  bool whole, keeps_place; /* whole: it is all of its root, from the beginning. keeps_place: it is one index along the first
                              dimensions of the view it was made of, or all of it */
  size_t unit, table_at;   /* of a root that aliases its source (image_alias.c): bytes of a unit, and the offset in the root of its
                              table of units; else 0 */
  int64_t strides[AX_MAX_RANK]; /* VIEW: bytes; of semaphores and barriers: objects */
} ax_image_slot;

typedef enum ax_image_kind {
  AX_IMAGE_EVAL,    /* by the primitive's reference code */
  AX_IMAGE_SCALAR,  /* integers, by image_scalar.c */
  AX_IMAGE_SEGMENT, /* compiled code for loads, equations and stores */
  AX_IMAGE_VIEW,    /* at the beginning of the view it is of */
  AX_IMAGE_SLICE,   /* elsewhere, by the `offset` of its rules */
  AX_IMAGE_ACCESS,  /* to memory, by the core itself */
  AX_IMAGE_MOVE, AX_IMAGE_JUMP, AX_IMAGE_SWITCH, AX_IMAGE_TEST, AX_IMAGE_BEGIN, AX_IMAGE_NEXT, AX_IMAGE_STACK, AX_IMAGE_ADVANCE,
  AX_IMAGE_OPEN, AX_IMAGE_CLOSE, /* from here on with the group's lock held */
  AX_IMAGE_ACT,     /* by the `run` of its rules */
  AX_IMAGE_END
} ax_image_kind;

struct ax_segment;
typedef struct ax_image_op {
  ax_image_kind kind;
  uint32_t target, *targets; /* operations, where the step has steps */
  uint32_t scope;            /* OPEN, CLOSE: which */
  uint32_t scalar;           /* SCALAR: number of the operation */
  bool crosses;              /* MOVE: a slot that it reads is written before, when the moves are done in order */
  uint32_t forwards, copy; /* SEGMENT: 1 + the result that is stored directly to the destination of operation `copy`
                              (image_forward.c); 0: none */
  bool forwarded;                 /* COPY: it forwards its destination to a segment */
  bool masked;                    /* ACCESS: it has a mask */
  const ax_core_code_step *step;
  const struct ax_step *rules;    /* of its primitive, a step of kernels (step.h); NULL: it is none */
  struct ax_segment *segment;
} ax_image_op;

typedef struct ax_image_scope { /* of a body: the scratch of one run_scoped. Each core has it once, or cores along its axes share
                                   it */
  const ax_run_scoped_params *params;
  uint32_t first_root; /* of its scratch */
  int64_t users;       /* cores that open it together */
  bool shared;
} ax_image_scope;

typedef struct ax_image_body {
  const ax_core_code *code;
  ax_image_slot *slots;
  ax_image_op *ops;
  ax_image_scope *scopes;
  uint32_t op_count, op_capacity, root_count, scope_count, view_count;
  uint32_t first_own;     /* the number among the image's roots of the first that this body alone has (ax_image_root_number) */
  bool *is_target;        /* by step: a jump leads to it */
  uint32_t *view_of;      /* by slot: its place among the core's views */
  size_t *unit;           /* by root: bytes of a unit where it aliases its source, else 0; NULL: none does */
  size_t value_bytes;     /* of a core's values */
  size_t core_bytes;      /* of all that a core has */
  size_t views_at, counters_at, occurrences_at, waited_at, roots_at, values_at, segments_at;
  struct ax_segment **segments;
  uint32_t segment_count, segment_capacity;
} ax_image_body;

/* The place of a core's root: memory of an operand or result, or bytes of the state. */
typedef struct ax_image_root {
  uint32_t memory; /* the plan's number; AX_NONE: .. */
  size_t at;       /* .. so many bytes into the state */
} ax_image_root;

typedef struct ax_image_objects { /* semaphores or barriers in a row */
  size_t at;
  int64_t count, arrivals;
  bool barriers;
} ax_image_objects;

typedef struct ax_image_table { /* of units that are aliased */
  size_t root_at, table_at, unit; /* root_at, table_at: bytes into the state */
  int64_t count;
} ax_image_table;

typedef struct ax_image {
  ax_machine *machine; /* of one device */
  const ax_mesh *axes; /* of devices */
  ax_axes names;       /* of the group */
  int64_t device;      /* 0: the machine's only one */
  ax_image_body *bodies;
  ax_image_root **roots; /* by core, then root */
  size_t **shared_scopes; /* by core, then scope: where its ax_run_scope is in the state; 0: it has none */
  size_t *core_at;       /* by core: in the state */
  ax_image_objects *objects;
  ax_image_table *tables;
  size_t *scopes; /* where all shared scopes are */
  uint32_t table_count, table_capacity, object_count, object_capacity, scope_count, scope_capacity, memory_count;
  uint32_t barrier_total; /* of a device */
  uint32_t members, root_total; /* root_total: of roots, those that all bodies have counted once */
  bool crosses; /* members may be of several processes */
  size_t device_at, states_at, bytes;
  ax_arena arena;
} ax_image;

/* The plan's memory of each operand of the equation and of each result, by number. */
typedef struct ax_image_memory {
  uint32_t *of_operand; /* by the equation's operands, constants among them */
  uint32_t *of_result;
  uint32_t count;
} ax_image_memory;

struct ax_runtime; /* array/runtime.h */
/* in: the types of the equation's operands. eqn, axes: borrowed. names: of the group; crosses: its members may be of several
   processes. compile: segments become machine code, by this runtime; NULL: all is reference code. AX_ABSENT: an equation that cores
   cannot run. */
AX_MUST_USE ax_status ax_image_create(const ax_eqn *eqn, const ax_type *in, const ax_mesh *axes, const ax_axes *names, bool crosses,
                                      const ax_image_memory *memory, const ax_hooks *hooks, struct ax_runtime *compile,
                                      ax_image **out);
void ax_image_release(ax_image *image);
double ax_image_time(const ax_image *image); /* nanoseconds on one thread, roughly */
/* Whether a body writes an operand that is no alias, so that it needs a copy: by operand without constants. */
AX_MUST_USE ax_status ax_image_written(const ax_eqn *eqn, const ax_type *in, const ax_mesh *axes, bool *out);

/* --- image_alias.c: finds the scratch that aliases its source, and its units --- */
AX_MUST_USE ax_status ax_image_alias(ax_image *image);

/* --- image_forward.c: finds the stores that write directly to a copy's destination --- */
AX_MUST_USE ax_status ax_image_forward(ax_image *image);

/* --- image_scalar.c --- */
bool ax_scalar_step_known(const ax_core_code *code,
                          const ax_core_code_step *step); /* integers of rank 0, and a known operation */
uint32_t ax_scalar_step_number(const ax_core_code *code, const ax_core_code_step *step); /* of that operation; AX_NONE */
/* False: a division without a result; the reference code defines its value. */
bool ax_scalar_step_do(uint32_t number, const ax_core_code *code, const ax_core_code_step *step, int64_t place,
                       const void *const *in, void *out);
int64_t ax_integer_at(ax_dtype dtype, const void *data); /* s32 or bool */

/* --- image.c, for those files --- */
/* An act without an effect here, a hint or one of copy groups: no operation is made of it. */
bool ax_image_is_nothing(const ax_core_code_step *step);

/* A root's number among all of the image, below root_total: roots of the kernel's refs are the same in all bodies. */
static inline uint32_t ax_image_root_number(const ax_image *image, uint32_t body, uint32_t root) {
  const uint32_t shared = image->machine->ref_count;
  return root < shared ? root : image->bodies[body].first_own + root - shared;
}

static inline bool ax_slot_is_dense(const ax_image_slot *slot) {
  int64_t stride = (int64_t)ax_dtype_bytes(slot->type.dtype);
  for (uint32_t d = slot->type.rank; d-- > 0; stride *= slot->type.dims[d])
    if (slot->type.dims[d] != 1 && slot->strides[d] != stride) return false;
  return true;
}

/* --- What runs --- */

typedef struct ax_run_object { /* a semaphore, a barrier */
  int64_t count, arrivals, arrived, phase;
  struct ax_run_core *waiting; /* linked by next */
  uint32_t number;             /* of a barrier: among the device's; AX_NONE */
} ax_run_object;

typedef struct ax_run_scope { /* shared: how many cores have come, and gone, over all times */
  int64_t opened, closed;
  struct ax_run_core *waiting;
} ax_run_scope;

typedef struct ax_run_device {
  int64_t device;
  char *state;
  struct ax_run_group *group;
  void *memory[]; /* as the plan lists it */
} ax_run_device;

typedef struct ax_run_core {
  const ax_image_body *body;
  ax_run_device *device;
  struct ax_run_core *next; /* among those that are ready, or wait for the same */
  uint32_t number, pc;      /* number: of the image's cores */
  int64_t place;            /* of the device and the core, as the machine's */
  ax_run_object *awaited;   /* while it waits: the object, and the amount .. */
  int64_t amount;
  bool awaits_phase; /* .. that its count must be, or the phase that must be complete */
  bool through, made_way;   /* made_way: it has let others go first before its present operation */
  bool forwarded;                /* the next copy's data is at its destination already */
  int64_t *views, *counters, *waited; /* waited: by barrier, how often */
  uint32_t *occurrences; /* by scope */
  void **roots;
  char *values, *segments;
} ax_run_core;

typedef struct ax_run_group {
  pthread_mutex_t lock; /* of all that follows, and all objects of the group */
  bool begun;
  uint32_t members, live, running, parked; /* live: cores of this process that are not through */
  uint32_t open;       /* other processes that have not said that no more messages come from them */
  uint32_t unanswered; /* copies to devices of other processes whose arrivals at barriers here are to come */
  bool closing, closed; /* this one says so; has said so */
  uint64_t signals, random; /* signals: what the counter has counted */
  ax_run_core *first, *last;
  uint32_t ready;
  ax_status status; /* of the first that failed */
  char message[1024];
  char *states[]; /* by member; NULL: of another process */
} ax_run_group;

/* run.c: the rules of plan/cores.h */
AX_MUST_USE ax_status ax_image_enter(const void *image, void *state, void *const *memory, int64_t device, bool first,
                                     uint64_t base);
ax_status ax_image_run(const void *image, const ax_cores_runner *runner, uint64_t *ticket);
void ax_image_report(const void *image, const void *common, ax_text *text);
/* run_away.c: likewise */
AX_MUST_USE ax_status ax_image_take(const void *image, const ax_cores_runner *runner, const ax_cores_message *message);
void ax_image_closed(const void *image, const ax_cores_runner *runner);

#endif
