/* The executor's inside: instructions, executables, runs.

   An executable has codes: instruction lists, each with its activations. Those of the first code are the devices of the mesh. An
   activation is a program counter, loop counters, and how often it has entered each region of the list. It runs the instructions
   that are for it and steps over the rest. The one way to synchronise is a WAIT until a counter of an event has been signalled
   often enough:

     instruction k:   skip unless my coordinate is 0 on every axis in `skip`
     event e:         counters; by device, which it signals and which it awaits;   SIGNAL adds 1;
                      WAIT until >= (how often I have entered the signal's region + delta) * how many signal it each time round

   Events exist only where one activation reads what another wrote (read after write) or writes what others may still read: see
   synchronise.c. README.md has a table of which pass fills what of an instruction. */
#ifndef AX_EXEC_EXEC_H
#define AX_EXEC_EXEC_H

#include <pthread.h>

#include "axle/stages.h"
#include "exec/array.h"
#include "exec/devices.h"
#include "exec/pool.h"
#include "exec/workers.h"
#include "jit/jit.h"
#include "plan/passes.h"
#include "partition/partition.h"

/* Address = part[first + place[device]] + offset + iteration[loop] * step: where a part lies is looked up, never computed from
   another's. */
typedef struct ax_ref {
  uint32_t space, loop;
  int64_t offset, step;
  uint32_t first;        /* as the space's: its parts in a run's table begin here ... */
  const uint32_t *place; /* ... and the device's own comes so many later */
} ax_ref;

typedef enum ax_instr_kind {
  AX_INSTR_KERNEL,
  AX_INSTR_ROWS,
  AX_INSTR_GEMM,
  AX_INSTR_EVAL,
  AX_INSTR_ROUTINE,
  AX_INSTR_CHECK,
  AX_INSTR_RAGGED, /* a step of a ragged exchange */
  /* from here on they order activations or move about in the list; those before only compute */
  AX_INSTR_CALL,   /* of a callback, or of print, that is ordered: takes its turn (exec/turns.c) */
  AX_INSTR_CORES,  /* a step of a kernel: runs what is ready of it */
  AX_INSTR_PUSH,   /* my parts of an exchange; then signals its event */
  AX_INSTR_CLEAR,  /* my result of a ppermute, when I have no source */
  AX_INSTR_SEND,   /* a message to another device */
  AX_INSTR_RECEIVE, /* one from another: waits for it */
  AX_INSTR_WAIT,
  AX_INSTR_SIGNAL,
  AX_INSTR_LOOP,   /* iteration = 0; to `target` when there are no trips, or when its fused loop has made them all */
  AX_INSTR_ENTER,  /* a region: count it */
  AX_INSTR_NEXT,   /* iteration + 1; to `target` when there are more trips (always, in a while loop) */
  AX_INSTR_TEST,   /* to `target` when the condition is false */
  AX_INSTR_BRANCH, /* to targets[clamp(index)] */
  AX_INSTR_JUMP,
  AX_INSTR_END
} ax_instr_kind;

typedef struct ax_push {
  const ax_exchange *exchange;
  uint32_t event, in_set, out_set; /* the coordinates `in` and `out` are stored along */
  uint32_t first;               /* the event's counters, as in sync */
  const uint32_t *counter;
  int64_t item, out_item;       /* bytes of an element of `in`, and of `out`: sums may be of a wider dtype */
  uint32_t members;
  const uint32_t *number; /* by device: which member of its group it is */
  uint32_t *place;  /* by member number: where its part of `out` comes after that of member 0; peers ONE: unused */
  uint32_t *targets, *sources; /* PAIRS: by member number, or AX_NONE */
  bool at_last_arrival;                  /* combined by whoever comes last, block by block, out of everybody's input */
  uint32_t *in_place;          /* at_last_arrival: by member number, as place, in in's set */
  ax_kernel_code combine;      /* dst[i] = dst[i] op src[i] over `run` elements */
  ax_kernel_code widen;        /* dst[i] = src[i], when out's dtype is another; NULL: bytes are copied */
  ax_kernel_code all; /* at_once: slots are the results of the peers, then the operands of all members; over `run` elements */
  bool at_once;                /* a few elements, in a loop: where all members have come, one call combines everything */
  bool small;                  /* each member combines short runs of elements: nothing to share */
  int64_t run;                 /* contiguous elements of the part */
  uint32_t outer_rank;         /* dimensions around the run */
} ax_push;

typedef struct ax_loops { /* that an instruction which may find something stands in, the outermost first */
  uint32_t count, *v;
} ax_loops;

typedef struct ax_rows_instr {
  const ax_rows *rows;
  ax_kernel_code *code; /* by kernel */
} ax_rows_instr;

typedef struct ax_ragged_instr {
  const ax_ragged *ragged;
  ax_ragged_step step;
  ax_loops loops;
  const uint32_t *number; /* TAKE: by device, its number in its group */
  const uint32_t *place;  /* by number, where its operand comes after that of number 0 */
} ax_ragged_instr;

typedef struct ax_cores_instr {
  const ax_cores *cores;
  ax_cores_step step;
  const uint32_t *number; /* by device, its number in its group; NULL: each is alone */
  const uint32_t *place;  /* by number, where its state comes after that of number 0 */
  const uint32_t *group;  /* by device: which group's counter activations are parked on; */
  uint32_t first;         /* the first of these */
} ax_cores_instr;

/* What a CHECK looks at: the first operand is the equation's result, the others what that is made of. */
typedef struct ax_value_check {
  uint32_t kinds;      /* AX_CHECK_* */
  uint32_t result;     /* of the equation, which one */
  ax_type type;        /* its */
  const ax_dtype *dtype; /* by operand */
  const int64_t *elems;  /* likewise */
  ax_loops loops;
} ax_value_check;

/* One side of messages: each goes over a link, a queue from one device to another. */
typedef struct ax_side {
  const uint32_t *link; /* by device: to, or from, another; AX_NONE: it has none */
  ax_type type;         /* of what is sent or received */
  int64_t bytes;
} ax_side;

typedef struct ax_link {
  uint32_t source, target; /* devices */
} ax_link;

/* Who makes the calls of a CALL: devices with coordinate 0 on all axes of `others`, each with its number among them. */
typedef struct ax_turns {
  ax_axis_set others;
  uint32_t calls;
  const uint32_t *number; /* by device */
} ax_turns;

/* A loop that is one function (fused_loops.c). */
typedef struct ax_fused_loop_instr {
  ax_kernel_code code;
  ax_axis_set skip;   /* as an instruction's */
  uint32_t ref_count;
  const ax_ref *refs; /* by place */
} ax_fused_loop_instr;

/* What every activation reads as it steps through the list comes first, what few kinds or only reports need last. */
typedef struct ax_instr {
  ax_instr_kind kind;
  ax_axis_set skip;
  ax_ref *refs; /* KERNEL: by slot; ROWS: by slot of all kernels, of local allocations in no space; GEMM: a, b, c; EVAL, CALL,
                   ROUTINE: in then out; CHECK: result, then what it is made of; RAGGED, CORES: as ax_ragged_buffers and
                   ax_cores_buffer_at have them; PUSH, CLEAR: in, out; SEND, RECEIVE: the array; TEST, BRANCH: the scalar */
  uint32_t ref_count;
  uint32_t parts;  /* KERNEL, ROWS, GEMM, ROUTINE, CHECK: into which it may be cut */
  uint32_t region; /* ENTER: which; PUSH: that it stands in */
  uint16_t microseconds; /* where it may be cut: about what it takes one thread, up to the most that is told */
  bool scratch;    /* an activation that goes on from here may still need scratch memory */
  union {
    struct {
      ax_kernel_code code;
      int64_t extent; /* of the dimension it is ranged over */
      int64_t scale;  /* a step along it is so many of the code's (exec/flat.h) */
    } kernel;
    ax_rows_instr *rows;
    const ax_gemm *gemm;
    const ax_routine *routine;
    const ax_value_check *check;
    const ax_side *side; /* SEND, RECEIVE */
    ax_ragged_instr *ragged;
    ax_cores_instr *cores;
    struct { /* EVAL, CALL */
      ax_callback *callback; /* that it calls, NULL: none that had to be looked up */
      const ax_turns *turns; /* CALL */
      const ax_loops *loops;
    } call;
    struct { /* PUSH, CLEAR */
      ax_push *push;
      int64_t bytes; /* CLEAR: of my result */
    };
    struct { /* LOOP, NEXT, TEST, JUMP */
      int64_t trips;
      uint32_t target, loop;
      ax_fused_loop_instr *fused_loop; /* LOOP: all of it, up to the target, is done at once; NULL */
    };
    struct {
      uint32_t *targets, count;
    } branch;
    struct { /* WAIT until count >= (entered[region] + delta) * times */
      int64_t delta;
      const uint32_t *counter; /* by device: which of the event's it awaits or signals; AX_NONE: it need not */
      const uint32_t *times;   /* by counter, as the event's */
      uint32_t first, region;  /* first: as the event's */
      uint32_t event;
      bool parks;              /* an activation parked here gives its scratch memory back */
      const ax_exchange *away; /* the counter of the part that mine of this exchange goes to, not of my own; NULL */
    } sync;
  };
  const ax_eqn *eqn;
  const ax_program *program;
} ax_instr;
_Static_assert(sizeof(ax_instr) <= 104, "a activation steps over many instructions that are not for it");

/* An activation that waits here gives its scratch memory back. */
static inline bool ax_instr_parks(const ax_instr *instr) {
  return instr->kind == AX_INSTR_RECEIVE || instr->kind == AX_INSTR_CALL || (instr->kind == AX_INSTR_WAIT && instr->sync.parks);
}

/* Its counters are numbered from `first` on; who signals and who awaits which is looked up in tables by device, made once for all
   events and waits of the same kind (exec/events.c). */
typedef struct ax_event {
  ax_axis_set groups;      /* a counter for each coordinate along these ... */
  const ax_exchange *away; /* ... that an activation's part of this exchange goes to; NULL: of its own */
  ax_axis_set by;          /* the activations that signal: coordinate 0 on all other axes */
  uint32_t first, count;
  uint32_t signalled_at;   /* the instruction of the first code that does */
  const uint32_t *signal;  /* by device: the counter it signals; AX_NONE */
  const uint32_t *times;   /* by counter: how many signal it each time round */
} ax_event;

typedef enum ax_space_kind { AX_SPACE_CONST, AX_SPACE_INPUT, AX_SPACE_OUTPUT, AX_SPACE_KEPT, AX_SPACE_SCRATCH } ax_space_kind;
typedef struct ax_part_space {
  ax_space_kind kind;
  uint32_t index; /* INPUT, OUTPUT: which */
  uint32_t set;   /* one part for each coordinate along these axes */
  int64_t bytes;  /* of one part, a multiple of 64 */
  size_t total;   /* of all parts */
  uint32_t first; /* its parts in a run's table: one for each coordinate along the set; SCRATCH: one a device */
} ax_part_space;

/* Axis sets in use, with each device's index along them. */
typedef struct ax_set {
  ax_axis_set axes;
  uint32_t size;
  uint32_t *index; /* by device */
} ax_set;

typedef struct ax_result { /* an output of the plan */
  ax_layout *layout;
  uint32_t space, donated; /* donated: it lives in this input's memory, by the plan's numbers; AX_NONE */
} ax_result;

/* What a result of the program is: one that is made, or an input unchanged. */
typedef struct ax_returned {
  uint32_t made, input; /* the number of one of the two, in the program or plan that is left; the other is AX_NONE */
} ax_returned;

/* --- exec/prune.c: which inputs and results of a program stay when what a run does not need is left out. {0} to start, _deinit to
   end. --- */
typedef struct ax_pruning {
  uint32_t in_count, out_count; /* of the program as it was */
  uint32_t *place;              /* by input: its number among those that stay; AX_NONE: nothing depends on it */
  ax_returned *returned;        /* by result; `input` is the program's as it was */
} ax_pruning;
/* laid: of a per-device program, how its inputs and results lie; NULL: what is an input is that array, however it lies.
   keep_unused: all inputs stay.
   `*out`: the program that is left, owned by the caller. */
AX_MUST_USE ax_status ax_pruning_make(ax_pruning *pruning, const ax_program *program, const ax_partitioned *laid, bool keep_unused,
                                      ax_program **out);
void ax_pruning_deinit(ax_pruning *pruning);
/* Leaves the specs of what stays, in `arena`. */
AX_MUST_USE ax_status ax_pruning_specs(const ax_pruning *pruning, ax_partitioned *laid, ax_arena *arena);

/* Instructions and the activations that run them: activation first_activation + d is device d of the code's mesh. Tables by device
   are by this. */
typedef struct ax_code {
  const ax_mesh *mesh;
  uint32_t first_activation, activation_count;
  uint32_t entry, instr_count;
  const ax_instr *instrs;
} ax_code;

enum { AX_IDLE_PLACES = 8 };
typedef struct ax_idle {
  _Alignas(64) _Atomic(struct ax_execution *) run; /* NULL: none */
} ax_idle;

struct ax_executable {
  ax_runtime *runtime;
  ax_jit_use code;     /* of all its instructions */
  ax_program *program; /* as it was given */
  ax_mesh mesh;        /* of the arrays that go in and come out */
  ax_plan *plan;       /* of what each device runs; owns the arena everything below is in */
  /* The program's inputs and results. Nothing else here is by these: all is by the plan's, which has fewer. */
  uint32_t in_count, out_count;
  ax_layout **wanted; /* by input: how it has to lie */
  bool *asked;        /* by input: to be donated, as the options say; */
  bool *donate;       /* and what is: not what nothing depends on */
  bool keep_unused;
  uint32_t *donated;  /* by input: the result that lives in its memory, or AX_NONE */
  uint32_t *place;    /* by input: its number in the plan, or AX_NONE */
  uint32_t *kept;     /* by the plan's inputs: the program's */
  ax_returned *returned;     /* by result: the plan's that it is, or the program's input */
  ax_layout **passed_layout; /* by result that is an input: how it lies; NULL: as that does */
  bool *is_passed;           /* by input: it is a result */
  const char **names;        /* by input, for messages; NULL: they have none */
  ax_assigned assigned;      /* how results lie on devices 0, 1, ..; */
  _Atomic(ax_assigned *) other_assigned; /* and on others that there have been; the lock is for adding one */
  bool plain;                /* the plan has the same inputs and results */
  bool idle_plan;            /* the plan makes nothing, and does nothing */
  bool is_constant;          /* what it makes is small, and the same in each run */
  _Atomic(ax_parts **) constant_parts; /* then: by the plan's results, retained; NULL before the first run */
  uint32_t devices;
  uint32_t code_count, activation_count; /* of all codes; the first is that of the devices */
  ax_code *codes;
  uint32_t event_count, access_count, space_count, part_count, set_count, region_count, loop_count, counter_count;
  uint32_t turns;                  /* the counter of ordered calls made; AX_NONE: there are none */
  uint32_t link_count, first_link; /* the first link's counter: of messages sent; the others' follow */
  ax_link *links;
  ax_event *events;
  struct ax_access *accesses; /* that waits were derived from, of the first code: which instructions may be exchanged for which */
  ax_part_space *spaces;
  ax_set *sets;
  ax_result *results;
  unsigned char *constants; /* of the CONST space: aligned, on the heap */
  uint32_t const_space, scratch_space;
  size_t
      rows_bytes; /* that local allocations of a ROWS instruction take at most: each thread that does rows has a block of so many */
  double lower_seconds, compile_seconds;
  bool threaded; /* big enough for more than the calling thread */
  bool brief;    /* so short that waiting for a thread without a processor would be most of it */
  bool in_parts; /* some instruction may be done in parts by several threads */
  struct ax_executable *next_cached;
  _Alignas(64) atomic_uint references; /* of callers, and of calls that go on: apart from what every run reads */
  ax_idle idle[AX_IDLE_PLACES]; /* runs kept for the next calls; each thread looks at a place of its own first */
  pthread_mutex_t lock;         /* of what follows */
  struct ax_execution *more_idle;
  struct ax_timeline *timeline; /* of the latest run; NULL: none is kept */
  const ax_op **ops;            /* by instruction of the first code, where timelines are kept: what it came from */
};

/* --- exec/flatten.c, synchronise.c, memory.c: the passes from plan to instructions. --- */

typedef struct ax_region { /* region 0 is the whole program */
  uint32_t parent, begin, end; /* positions in the list before sync; end: the first after it */
  uint32_t exit;               /* the first position after the whole loop or branch it belongs to */
  ax_axis_set axes;            /* along which control differs here or around it */
  bool is_loop;                /* a body or test that repeats ... */
  uint32_t loop;               /* ... of this loop */
} ax_region;

typedef struct ax_access { /* of an allocation buffer by the instruction at `position` */
  uint32_t allocation, position, region;
  ax_axis_set axes; /* the activations that do */
  bool writes;
  const ax_exchange *exchange; /* writes into others' */
  uint32_t event;              /* that says it is done; AX_NONE until someone waits for it */
  /* where "it is done" can be signalled: after this position, or before it when done_before */
  uint32_t done_position, done_region;
  bool done_before;
  bool hoisted; /* a read that is reported done where activations pass that may not have done it */
} ax_access;

typedef struct ax_lifetime { /* positions, inclusive; first > last: never touched */
  uint32_t first, last;
  uint32_t region; /* the innermost that holds all accesses */
} ax_lifetime;

typedef struct ax_aliased_allocations { /* two allocations that live in the same memory, one after the other */
  uint32_t a, b;
} ax_aliased_allocations;

typedef struct ax_resident { /* where an allocation lives, and how long */
  uint32_t space; /* AX_NONE: nowhere, it is never touched */
  int64_t offset;
  ax_lifetime life;
} ax_resident;

typedef struct ax_assembly {
  ax_executable *executable;
  ax_plan *plan;
  ax_instr *instrs;
  ax_op const **ops; /* by instruction: what it was made of; NULL for WAIT, SIGNAL, ENTER, NEXT, JUMP and END */
  uint32_t instr_count, instr_capacity, ops_capacity;
  ax_region *regions;
  uint32_t region_count, region_capacity;
  ax_access *accesses;
  uint32_t access_count, access_capacity;
  ax_event *events;
  uint32_t event_count, event_capacity;
  bool *shared; /* by allocation: some activation touches another's */
  int64_t *shared_offset; /* by allocation that is: where in the memory shared along its axes */
  ax_aliased_allocations *aliased_allocations;
  uint32_t aliased_allocation_count, aliased_allocation_capacity;
  ax_resident *residents; /* by buffer, of allocations: once memory is placed */
  ax_arena scratch; /* what only the passes need */
} ax_assembly;

/* --- exec/verify.c --- */
/* What holds of the list: a pass needs some, and makes one more (exec/pipeline.c). README.md says what each fills in. */
typedef enum ax_instrs_property {
  AX_INSTRS_FLAT = 1 << 0,         /* one END, jumps and regions are in order */
  AX_INSTRS_SYNCHRONISED = 1 << 1, /* what is awaited is signalled before */
  AX_INSTRS_PLACED = 1 << 2,       /* operands lie in their spaces, and what is read there was written there */
  AX_INSTRS_NUMBERED = 1 << 3,     /* counters of events and waits */
  AX_INSTRS_PUSHES = 1 << 4,       /* pushes are of their exchanges, between members that there are */
  AX_INSTRS_CORES = 1 << 5,        /* steps of users' kernels know who runs them together */
  AX_INSTRS_TURNS = 1 << 6,        /* ordered calls have their numbers */
  AX_INSTRS_LINKS = 1 << 7,        /* messages have their links */
  AX_INSTRS_RAGGED = 1 << 8,       /* steps of ragged exchanges know where others' rows lie */
  AX_INSTRS_CODE = 1 << 9,         /* kernels, fused loops and combining pushes have machine code */
  AX_INSTRS_FINISHED = 1 << 10,    /* signals' counters, and who still needs scratch memory */
  AX_INSTRS_ALL = (1 << 11) - 1
} ax_instrs_property;
typedef uint32_t ax_instrs_properties; /* a set */
/* AX_INTERNAL: a pass of exec/pipeline.c needs what none before it makes, when the one named left_out is not there; NULL: when all
   are. */
AX_MUST_USE ax_status ax_pipeline_check(const char *left_out);
/* AX_INTERNAL: an invariant of the list does not hold, which says that a pass is wrong. */
AX_MUST_USE ax_status ax_instrs_verify(const ax_assembly *assembly, ax_instrs_properties properties);
/* What the first passes (exec/pipeline.c) give: simplified, pruned and partitioned, with the numbers that messages name. {NULL} to
   start. */
typedef struct ax_laid {
  ax_program *program; /* owned */
  ax_pruning pruning;  /* of the program that they were given */
} ax_laid;
void ax_laid_deinit(ax_laid *laid);
AX_MUST_USE ax_status ax_program_lay_out(ax_program *program, bool keep_unused, ax_laid *out);
/* The next ones, and those over plans: the plan of a run, for any number of devices. Destroyed by the caller. */
AX_MUST_USE ax_status ax_laid_plan(const ax_laid *laid, const ax_compile_options *options, ax_plan **out);
/* The same of what ax_program_lower gave. */
AX_MUST_USE ax_status ax_lowered_plan(const ax_lowered *lowered, ax_plan **out);
/* The others: makes a fresh executable of what they gave of its program. */
AX_MUST_USE ax_status ax_executable_build(ax_executable *executable, const ax_laid *laid, const ax_compile_options *options);
/* The others up to where memory is placed, and what it then is; text: NULL, or for what is held. The executable is good for nothing
   afterwards. */
AX_MUST_USE ax_status ax_executable_place(ax_executable *executable, const ax_laid *laid, const ax_compile_options *options,
                                          ax_memory *out, ax_text *text);
/* A program's memory, and what is alive where most is held, as text (exec/lowered.c). */
AX_MUST_USE ax_status ax_memory_text(ax_runtime *runtime, ax_program *program, char **out);
/* exec/executable.c: an executable of nothing yet, NULL: no memory; its end; and one of a program that is laid out already, or
   NULL. */
ax_executable *ax_executable_create(ax_runtime *runtime, ax_program *program);
void ax_executable_destroy(ax_executable *executable);
AX_MUST_USE ax_status ax_executable_of(ax_runtime *runtime, ax_program *program, const ax_laid *laid, double lower_seconds,
                                       const ax_compile_options *options, ax_executable **out);
/* Names of inputs, or NULL where there are none: one block, ax_free. */
AX_MUST_USE ax_status ax_names_copy(const char *const *names, uint32_t count, const char ***out);
/* Of the program as options->shardings say; retained. Messages begin with `who`. */
AX_MUST_USE ax_status ax_program_laid_over(ax_program *program, const ax_compile_options *options, const char *who,
                                           ax_program **out);
/* exec/memory_use.c: of spaces that are placed. */
void ax_memory_of(const ax_executable *executable, ax_memory *out);
/* The same up to the pass of this name, of a fresh executable that is good for nothing afterwards; its result as text.
   AX_INVALID_ARGUMENT: there is no such pass. */
struct ax_speeds; /* exec/profile.h: for the bounds that `codegen` shows; NULL: none */
AX_MUST_USE ax_status ax_executable_text_after(ax_executable *executable, const char *pass, const struct ax_speeds *speeds,
                                               char **out);
AX_MUST_USE ax_status ax_text_after(ax_runtime *runtime, ax_program *program, const char *pass, const struct ax_speeds *speeds,
                                    char **out); /* exec/executable.c */
void ax_instrs_text(ax_text *text, const ax_executable *executable, const ax_instr *instrs, uint32_t count);
AX_MUST_USE ax_status ax_instrs_flatten(ax_assembly *assembly);
AX_MUST_USE ax_status ax_instrs_synchronise(ax_assembly *assembly);
/* --- exec/events.c: events' counters are numbered and their tables made; waits, signals and pushes get theirs. --- */
AX_MUST_USE ax_status ax_instrs_events(ax_assembly *assembly);
void ax_resolve_counters(ax_assembly *assembly);
/* Orders ppermutes by the devices that give and take; 0: the same ones. NULL comes first. */
int ax_compare_pairs(const ax_exchange *a, const ax_exchange *b);
AX_MUST_USE ax_status ax_instrs_memory(ax_assembly *assembly);
/* --- exec/holding.c: what is alive where a run holds most, once memory is placed. AX_OUT_OF_MEMORY. --- */
AX_MUST_USE ax_status ax_holding_text(ax_text *text, ax_assembly *assembly);
/* --- exec/lifetime.c: by allocation; in the assembly's scratch. --- */
AX_MUST_USE ax_status ax_find_lifetimes(ax_assembly *assembly, ax_lifetime **out);
/* --- exec/reuse.c: where shared allocations live. group: by allocation, the axes whose coordinates a group of activations that
   touch one part has in common; fixed: by allocation, it is to have memory of its own. --- */
AX_MUST_USE ax_status ax_reuse_shared(ax_assembly *assembly, const ax_axis_set *group, const bool *fixed);
/* --- exec/gemm.c --- */
/* Into how many tiles it is cut where threads share it: by its size alone; large ones are cut otherwise. */
uint32_t ax_gemm_parts(const ax_gemm *gemm);
uint32_t ax_check_parts(const ax_value_check *check); /* exec/check.c */
/* --- exec/fused_loops.c: the loops that are fused loops, in the order of the list: each, and its LOOP, which has all of it but the
   code. Room for as many as there are instructions. --- */
AX_MUST_USE ax_status ax_find_fused_loops(ax_assembly *assembly, const ax_fused_loop **fused_loops, uint32_t *loops,
                                          uint32_t *count);
/* --- exec/sets.c: the index in executable->sets of a set of axes, made when first asked for. --- */
AX_MUST_USE ax_status ax_set_of(ax_executable *executable, ax_axis_set axes, uint32_t *out);
/* --- exec/exchanges.c: what PUSH and CLEAR need at run time, once memory is placed; the kernels by which a push combines. --- */
AX_MUST_USE ax_status ax_instrs_exchanges(ax_assembly *assembly);
ax_loop_kernel *ax_combine_kernel(ax_assembly *assembly, const ax_exchange *exchange, int64_t run, bool first);
ax_loop_kernel *ax_combine_all_kernel(ax_assembly *assembly, const ax_push *push); /* of a push that is at_once */
/* --- exec/turns.c: a counter for ordered calls, and who makes those of each CALL. --- */
AX_MUST_USE ax_status ax_instrs_turns(ax_assembly *assembly);
/* --- exec/links.c: who sends to whom, numbered; SEND and RECEIVE get theirs. --- */
AX_MUST_USE ax_status ax_instrs_links(ax_assembly *assembly);
/* --- exec/ragged.c: the same of the steps of ragged exchanges. --- */
AX_MUST_USE ax_status ax_instrs_ragged(ax_assembly *assembly);
/* --- exec/cores.c: who runs a kernel together, and on which counter they are parked. --- */
AX_MUST_USE ax_status ax_instrs_cores(ax_assembly *assembly);
/* --- exec/cost.c: nanoseconds on one thread, roughly; whether more than the calling thread are worth waking. --- */
double ax_plan_time(const ax_plan *plan);
/* Of one operation that is no loop and no branch. */
double ax_plan_op_time(const ax_plan *plan, const ax_op *op);
bool ax_worth_threads(const ax_executable *executable);
AX_MUST_USE ax_status ax_instrs_codegen(ax_assembly *assembly); /* exec/codegen.c: machine code for every kernel and fused loop */
AX_MUST_USE ax_status ax_instrs_finish(ax_assembly *assembly);  /* exec/finish.c: what the executor wants at hand */

/* --- exec/runtime.c --- */
typedef struct ax_tally { /* of threads that share a place: nearly always one */
  _Alignas(64) atomic_uint_least64_t runs, calls_without, copied;
} ax_tally;
enum { AX_TALLIES = 16 };

struct ax_runtime {
  atomic_uint references; /* of all; */
  atomic_uint owners;     /* of these, those that users hold */
  pid_t process;          /* that made it */
  ax_runtime_options options;
  const struct ax_scheduling_policy
      *scheduling_policy; /* of runs on one thread, instead of the policy's; NULL. For tests and checkers */
  const struct ax_plan_pass
      *plan_passes; /* likewise, instead of ax_plan_passes, for what is compiled from now on; NULL. For tests */
  uint32_t plan_pass_count;
  ax_compiler *jit;
  ax_callbacks callbacks; /* by name */
  ax_hooks hooks;         /* these, and who reads what is printed */
  ax_workers *workers;
  ax_pool pool; /* no run writes the fields above; those below the tallies are not written by runs that are done inline */
  ax_tally tallies[AX_TALLIES];
  pthread_mutex_t layouts_lock;
  ax_layout *layouts[256]; /* by hash; holds no reference */
  uint64_t layouts_made, layouts_found;
  pthread_mutex_t cache_lock;
  ax_executable *cache;  /* holds no reference */
  uint64_t compiled, found; /* programs; under cache_lock */
  pthread_mutex_t order; /* who waits for whom: exec/pending.c */
  uint32_t pending;      /* runs that are not over, of those that were not at once */
  uint64_t runs;         /* started so far, of these */
};
/* References that are not users': those of layouts (which arrays hold), executables and pending runs. ax_runtime_let_go is true for
   the last of all, whose holder then destroys the runtime. */
ax_runtime *ax_runtime_hold(ax_runtime *runtime);
bool ax_runtime_let_go(ax_runtime *runtime);
void ax_runtime_destroy(ax_runtime *runtime);
/* A line for ax_runtime_options.log, where there is one. */
void ax_runtime_log(const ax_runtime *runtime, const char *format, ...) AX_PRINTF(2, 3);
static inline ax_tally *ax_runtime_tally(ax_runtime *runtime) { return &runtime->tallies[ax_thread_place(AX_TALLIES)]; }
static inline void ax_runtime_drop(ax_runtime *runtime) {
  if (ax_runtime_let_go(runtime)) ax_runtime_destroy(runtime);
}
/* Whether a result or an effect depends on an input. */
static inline bool ax_executable_uses(const ax_executable *executable, uint32_t input) {
  return executable->place[input] != AX_NONE || executable->is_passed[input];
}
static inline void ax_executable_hold(ax_executable *executable) {
  atomic_fetch_add_explicit(&executable->references, 1, memory_order_relaxed);
}

/* --- exec/executor.c --- */
/* *began: some device may have written memory, whatever the status. */
AX_MUST_USE ax_status ax_execute(ax_executable *executable, ax_parts *const *inputs, ax_parts *const *outputs, uint64_t number,
                                 bool *began);
#endif
