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
#include <string.h>

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
  size_t kept;            /* CONSTANT, OPERAND: bytes into the core's values where it is kept, if is_kept: an integer of rank 0 */
  bool is_kept;
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
  AX_IMAGE_ADD, AX_IMAGE_SUB, AX_IMAGE_MUL, AX_IMAGE_AND, AX_IMAGE_LT, AX_IMAGE_GE, AX_IMAGE_EQ, /* of two s32, in line */
  AX_IMAGE_SAME,    /* an integer as another one, in line */
  AX_IMAGE_SEGMENT, /* compiled code for loads, equations and stores */
  AX_IMAGE_SLICE,   /* a view that begins elsewhere than the one it is of */
  AX_IMAGE_ACCESS,  /* to memory, by the core itself */
  AX_IMAGE_LOAD, AX_IMAGE_STORE, /* few bytes, to a value of the core's own, from one */
  AX_IMAGE_MOVE, AX_IMAGE_JUMP, AX_IMAGE_SWITCH, AX_IMAGE_TEST, AX_IMAGE_BEGIN, AX_IMAGE_NEXT, AX_IMAGE_STACK, AX_IMAGE_ADVANCE,
  AX_IMAGE_OPEN, AX_IMAGE_CLOSE, /* from here on with the group's lock held */
  AX_IMAGE_ACT,     /* by the `run` of its rules */
  AX_IMAGE_END,
  AX_IMAGE_PAUSE /* in no body: a core comes to it after many rounds (run_spin.c) */
} ax_image_kind;

/* Where an operand or result of an operation is, of any core. */
typedef struct ax_image_place {
  size_t at;     /* a value: bytes into the core's values; memory: the number of its view among the core's */
  uint32_t root; /* memory: its root */
  bool narrow;   /* an integer of one byte: a bool */
  bool is_view;  /* of a SEGMENT: memory, at its view */
  bool is_other; /* of a SEGMENT: neither that nor among the core's values */
} ax_image_place;

/* Where a view begins whose starts are all within their bounds: at `base` and the sum of starts times strides, bytes or objects after
   the view that it is of. */
typedef struct ax_image_start {
  ax_image_place from;
  int64_t last; /* the greatest start; the least is 0 */
  int64_t stride;
} ax_image_start;
typedef struct ax_image_offset {
  int64_t base;
  uint32_t count;
  ax_image_start start[]; /* those that are not known before */
} ax_image_offset;

struct ax_segment;
typedef struct ax_image_op { /* what most operations need comes first */
  ax_image_kind kind;
  uint32_t target;  /* operation, where the step has one */
  uint32_t scalar;  /* SCALAR: number of the operation; NEXT, ADVANCE: of the loop */
  bool own;         /* ACT: no other core can notice it or touch what it signals or waits for (image_place.c) */
  bool makes_way;   /* ACT: other cores may have to go first (ax_core_makes_way) */
  bool far;         /* COPY: to an operand or result */
  bool dense;       /* COPY: the bytes lie dense on both sides */
  bool plain;       /* COPY: it only moves few such bytes: nothing is aliased or forwarded */
  bool small;       /* MOVE: of at most 8 bytes each, none of which is in an operand's memory */
  const ax_image_place *in, *out; /* by operand and result of the step, or of the segment */
  const ax_image_offset *offset;  /* SLICE: NULL: by the `offset` of its rules */
  const struct ax_step *rules;    /* of its primitive, a step of kernels (step.h); NULL: it is none */
  const ax_core_code_step *step;
  size_t bytes;     /* of operand 1 of an ACT, a copy or a wait for it; of a LOAD or STORE */
  int64_t length;   /* NEXT, ADVANCE: of the step */
  struct ax_segment *segment;
  uint32_t meant;   /* ACT: 1 + the core's ax_run_targets that it uses; 0: none */
  uint32_t scope;   /* OPEN, CLOSE: which */
  uint32_t forwards, copy; /* SEGMENT: 1 + the result that is stored directly to the destination of operation `copy`
                              (image_forward.c); 0: none */
  uint32_t *targets; /* operations, where the step has steps */
  bool crosses;      /* MOVE: a slot that it reads is written before, when the moves are done in order */
  bool forwarded;    /* COPY: it forwards its destination to a segment */
  bool masked;       /* ACCESS: it has a mask */
} ax_image_op;

/* An integer of an operand that a core keeps among its values. */
typedef struct ax_image_kept {
  size_t memory, at, bytes; /* memory: the plan's number; at: bytes into the core's values */
} ax_image_kept;

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
  bool *hoisted;          /* by step: it is done once, before all others (image_hoist.c) */
  uint64_t *kept;         /* integers that a core keeps among its values, from kept_at on */
  ax_image_kept *kept_operands;
  size_t kept_at;
  uint32_t kept_count, kept_operand_count;
  int64_t *first_views;   /* by view: where it begins in its root, if it is known before; else 0 */
  bool *view_is_known;
  uint32_t *view_of;      /* by slot: its place among the core's views */
  size_t *unit;           /* by root: bytes of a unit where it aliases its source, else 0; NULL: none does */
  size_t value_bytes;     /* of a core's values */
  size_t core_bytes;      /* of all that a core has */
  size_t views_at, counters_at, occurrences_at, waited_at, roots_at, targets_at, values_at, segments_at;
  const ax_core_params **targets; /* the axes over which acts mean other cores, those of at most two */
  uint32_t target_count, target_capacity;
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
  bool one_thread; /* one thread at a time runs cores (image_time.c) */
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
double ax_image_time(const ax_image *image); /* nanoseconds, roughly, in which several threads can be at it: else 0 */
/* Whether a body writes an operand that is no alias, so that it needs a copy: by operand without constants. */
AX_MUST_USE ax_status ax_image_written(const ax_eqn *eqn, const ax_type *in, const ax_mesh *axes, bool *out);

/* --- image_alias.c: finds the scratch that aliases its source, and its units --- */
AX_MUST_USE ax_status ax_image_alias(ax_image *image);

/* --- image_forward.c: finds the stores that write directly to a copy's destination --- */
AX_MUST_USE ax_status ax_image_forward(ax_image *image);

/* --- image_jumps.c --- */
void ax_image_find_targets(const ax_core_code *code, bool *is); /* by step: a jump leads to it */
/* Gives all jumps their operations. op_of: by step, its operation, or the next one; uses: by slot, operands of steps that it is. */
AX_MUST_USE ax_status ax_image_join(ax_image *image, ax_image_body *body, const uint32_t *op_of, const uint32_t *uses);

/* --- image_hoist.c: finds the steps of loops that give each core the same every time --- */
AX_MUST_USE ax_status ax_image_hoist(ax_image *image, ax_image_body *body);

/* --- image_place.c --- */
AX_MUST_USE ax_status ax_image_places_init(ax_image *image, ax_image_body *body);
/* Finds where the operands and results of an operation are. *known: it makes a view that is known before, and is not needed. */
AX_MUST_USE ax_status ax_image_find_places(ax_image *image, ax_image_body *body, ax_image_op *op, bool *known);
/* Once it is known what aliases its source or is forwarded: the ends of segments, and which copies only move bytes. */
AX_MUST_USE ax_status ax_image_place_ends(ax_image *image);
/* Finds the acts that other cores cannot notice, once all roots have their places. */
AX_MUST_USE ax_status ax_image_find_own(ax_image *image);

/* --- image_time.c: finds whether one thread is to run all cores --- */
AX_MUST_USE ax_status ax_image_find_threads(ax_image *image);

/* --- image_scalar.c --- */
bool ax_scalar_step_known(const ax_core_code *code,
                          const ax_core_code_step *step); /* integers of rank 0, and a known operation */
uint32_t ax_scalar_step_number(const ax_core_code *code, const ax_core_code_step *step); /* of that operation; AX_NONE */
/* On the values of a core at that place of the mesh. False: a division without a result; the reference code defines its value. */
bool ax_scalar_do(const ax_image_op *op, int64_t place, char *values);
/* What such operations are of: one s32 or bool. */
static inline bool ax_image_is_integer(const ax_type *type) {
  return type->form == AX_ARRAY && ax_type_elems(type) == 1 && (type->dtype == AX_S32 || type->dtype == AX_BOOL);
}
static inline int64_t ax_image_integer(const char *values, const ax_image_place *place) {
  int32_t value;
  if (place->narrow) return *(const unsigned char *)(values + place->at) != 0;
  memcpy(&value, values + place->at, sizeof value);
  return value;
}

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

/* Cores that acts over the same one or two axes meant lately: mostly they mean the same ones again. The place of one follows from its
   coordinates. */
enum { AX_RUN_TARGETS = 4 };
typedef struct ax_run_targets {
  struct ax_run_target {
    bool known;
    int32_t coordinate[2];
    uint32_t member, number;
    struct ax_run_core *here; /* these three as of ax_core_meant */
  } of[AX_RUN_TARGETS];
} ax_run_targets;

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
  bool pauses_now;               /* it is to be watched at its pc (run_spin.c) */
  bool quiet;                    /* it goes round in a circle .. */
  bool forwarded;                /* the next copy's data is at its destination already */
  uint32_t rounds;               /* of a `while`, until it pauses */
  int64_t *views, *counters, *waited; /* waited: by barrier, how often */
  uint32_t *occurrences; /* by scope */
  void **roots;
  ax_run_targets *targets;
  char *values, *segments;
  uint32_t pauses;            /* how often it has paused */
  uint32_t circle;            /* .. of so many rounds .. */
  const ax_image_op *circles; /* .. at whose end this operation is .. */
  uint64_t quiet_since;       /* .. and was found to after so many changes of the group */
} ax_run_core;

typedef struct ax_run_group {
  pthread_mutex_t lock; /* of all that follows, and all objects of the group */
  atomic_uint wanted;   /* threads that wait for the lock */
  bool begun;
  uint32_t members, live, running, parked; /* live: cores of this process that are not through */
  uint32_t open;       /* other processes that have not said that no more messages come from them */
  uint32_t unanswered; /* copies to devices of other processes whose arrivals at barriers here are to come */
  bool closing, closed; /* this one says so; has said so */
  uint64_t signals, random; /* signals: what the counter has counted */
  ax_run_core *first, *last;
  uint32_t ready;
  ax_status status;     /* of the first that failed */
  uint64_t changes;     /* how often a core has run that was not quiet .. */
  uint64_t quiet_since; /* .. when the cores were found quiet that `quiet` counts .. */
  uint32_t quiet;
  bool takes, reads; /* .. and one of these changes counts, reads counts */
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
