/* The executor's data: instructions, executables, and the state of the passes that make them.

   An executable has codes: instruction lists, each with its activations. The activations of the first code are the devices of the
   mesh. An activation has a program counter, loop counters, and a count of how often it has entered each region of the list. It
   runs the instructions that are for it and steps over the rest. Activations synchronise by one means: a WAIT until the counter of
   an event has been signalled often enough.

     instruction k:   skipped unless the activation's coordinate is 0 on every axis in `skip`
     event e:         counters; tables by device of the counter that it signals and of the one that it awaits
     SIGNAL           adds 1
     WAIT             until count >= (how often I have entered the signal's region + delta) * how many activations signal each time

   There are events only where one activation reads what another wrote (read after write), or writes what others may still read: see
   synchronise.c. README.md has a table of the fields of an instruction and the passes that fill them. */
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

/* Address = part[first + place[device]] + offset + iteration[loop] * step. The address of a part is looked up, never computed
   from another's. */
typedef struct ax_ref {
  uint32_t space, loop;
  int64_t offset, step;
  uint32_t first;        /* the space's parts begin here in a run's table ... */
  const uint32_t *place; /* ... and the device's own part comes so many places later */
} ax_ref;

typedef enum ax_instr_kind {
  AX_INSTR_KERNEL,
  AX_INSTR_ROWS,
  AX_INSTR_GEMM,
  AX_INSTR_EVAL,
  AX_INSTR_ROUTINE,
  AX_INSTR_CHECK,
  AX_INSTR_RAGGED, /* a step of a ragged exchange */
  /* instructions from here on order activations or move about in the list; those before only compute */
  AX_INSTR_CALL,   /* an ordered call of a callback or of print: takes its turn (exec/turns.c) */
  AX_INSTR_CORES,  /* a step of a user's kernel: runs cores that are ready */
  AX_INSTR_PUSH,   /* delivers my parts of an exchange; then signals its event */
  AX_INSTR_CLEAR,  /* zeroes my result of a ppermute in which I have no source */
  AX_INSTR_SEND,   /* sends a message to another device */
  AX_INSTR_RECEIVE, /* waits for a message of another device */
  AX_INSTR_WAIT,
  AX_INSTR_SIGNAL,
  AX_INSTR_LOOP,   /* iteration = 0; jumps to `target` if there are no trips, or after its fused loop has made all */
  AX_INSTR_ENTER,  /* counts an entry into a region */
  AX_INSTR_NEXT,   /* iteration + 1; jumps to `target` if there are more trips (always, in a while loop) */
  AX_INSTR_TEST,   /* jumps to `target` if the condition is false */
  AX_INSTR_BRANCH, /* jumps to targets[clamp(index)] */
  AX_INSTR_JUMP,
  AX_INSTR_END
} ax_instr_kind;

typedef struct ax_push {
  const ax_exchange *exchange;
  uint32_t event, in_set, out_set; /* sets: along which `in` and `out` are stored, by index in executable->sets */
  uint32_t first;               /* the event's first counter, as in sync */
  const uint32_t *counter;
  int64_t item, out_item;       /* bytes of an element of `in`, and of `out`, as sums may have a wider dtype */
  uint32_t members;
  const uint32_t *number; /* by device: its member number in its group */
  uint32_t *place;  /* by member number: its part of `out`, in places after member 0's; peers ONE: unused */
  uint32_t *targets, *sources; /* PAIRS: by member number; AX_NONE: it has none */
  bool at_last_arrival;                  /* the last member to arrive combines all inputs, block by block */
  uint32_t *in_place;          /* at_last_arrival: as `place`, in the set of `in` */
  ax_kernel_code combine;      /* dst[i] = dst[i] op src[i] over `run` elements */
  ax_kernel_code widen;        /* dst[i] = src[i], if out has another dtype; NULL: bytes are copied */
  ax_kernel_code all; /* at_once: over `run` elements; slots are the results of the peers, then the operands of all members */
  bool at_once;                /* few elements, in a loop: once all members have come, one call combines everything */
  bool small;                  /* each member combines short runs of elements: not worth sharing */
  int64_t run;                 /* contiguous elements of a part */
  uint32_t outer_rank;         /* dimensions around the run */
} ax_push;

typedef struct ax_loops { /* the loops around an instruction that may have a finding, the outermost first */
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
  const uint32_t *number; /* TAKE: by device, its member number in its group */
  const uint32_t *place;  /* by member number: its operand, in places after member 0's */
} ax_ragged_instr;

typedef struct ax_cores_instr {
  const ax_cores *cores;
  ax_cores_step step;
  const uint32_t *number; /* by device, its member number in its group; NULL: each device is alone */
  const uint32_t *place;  /* by member number: its state, in places after member 0's */
  const uint32_t *group;  /* by device: its group, on whose counter activations are parked */
  uint32_t first;         /* counter of the first group */
} ax_cores_instr;

/* The data of a CHECK. Its first operand is the equation's result; the others are the operands that the result is made of. */
typedef struct ax_value_check {
  uint32_t kinds;      /* AX_CHECK_* */
  uint32_t result;     /* which result of the equation */
  ax_type type;        /* of that result */
  const ax_dtype *dtype; /* by operand */
  const int64_t *elems;  /* likewise */
  ax_loops loops;
} ax_value_check;

/* One side, SEND or RECEIVE, of messages. Each message goes over a link, a queue from one device to another. */
typedef struct ax_side {
  const uint32_t *link; /* by device: its link, to or from another; AX_NONE: it takes no part */
  ax_type type;         /* of the message */
  int64_t bytes;
} ax_side;

typedef struct ax_link {
  uint32_t source, target; /* devices */
} ax_link;

/* The devices that make the calls of a CALL: those with coordinate 0 on all axes of `others`. `calls` is how many there are,
   `number` gives the place of each among them. */
typedef struct ax_turns {
  ax_axis_set others;
  uint32_t calls;
  const uint32_t *number; /* by device */
} ax_turns;

/* A loop that is one function (fused_loops.c). */
typedef struct ax_fused_loop_instr {
  ax_kernel_code code;
  ax_axis_set skip;   /* as in an instruction */
  uint32_t ref_count;
  const ax_ref *refs; /* by place */
} ax_fused_loop_instr;

/* Fields that every activation reads as it steps through the list come first; fields for few kinds of instructions or for
   reports come last. */
typedef struct ax_instr {
  ax_instr_kind kind;
  ax_axis_set skip;
  ax_ref *refs; /* KERNEL: by slot; ROWS: by slot of all kernels, local allocations in no space; GEMM: a, b, c; EVAL, CALL, ROUTINE:
                   operands, then results; CHECK: result, then its operands; RAGGED, CORES: in the order of ax_ragged_buffers and
                   ax_cores_buffer_at; PUSH, CLEAR: in, out; SEND, RECEIVE: the array; TEST, BRANCH: the scalar */
  uint32_t ref_count;
  uint32_t parts;  /* KERNEL, ROWS, GEMM, ROUTINE, CHECK: most parts that it may be cut into */
  uint32_t region; /* ENTER: the region entered; PUSH: the region around it */
  uint16_t microseconds; /* if it may be cut: rough time on one thread, at most UINT16_MAX */
  bool scratch;    /* this instruction or a later one may touch scratch memory */
  union {
    struct {
      ax_kernel_code code;
      int64_t extent; /* of the ranged dimension */
      int64_t scale;  /* steps of the code for one step along it (exec/flat.h) */
    } kernel;
    ax_rows_instr *rows;
    const ax_gemm *gemm;
    const ax_routine *routine;
    const ax_value_check *check;
    const ax_side *side; /* SEND, RECEIVE */
    ax_ragged_instr *ragged;
    ax_cores_instr *cores;
    struct { /* EVAL, CALL */
      ax_callback *callback; /* the callback, NULL if there is none to look up */
      const ax_turns *turns; /* CALL */
      const ax_loops *loops;
    } call;
    struct { /* PUSH, CLEAR */
      ax_push *push;
      int64_t bytes; /* CLEAR: bytes of my result */
    };
    struct { /* LOOP, NEXT, TEST, JUMP */
      int64_t trips;
      uint32_t target, loop;
      ax_fused_loop_instr *fused_loop; /* LOOP: makes the whole loop, up to the target, at once; NULL */
    };
    struct {
      uint32_t *targets, count;
    } branch;
    struct { /* WAIT until count >= (entered[region] + delta) * times */
      int64_t delta;
      const uint32_t *counter; /* by device: the event's counter that it awaits or signals; AX_NONE: none */
      const uint32_t *times;   /* by counter, as in the event */
      uint32_t first, region;  /* first: as in the event */
      uint32_t event;
      bool parks;              /* an activation parked here gives up its scratch memory */
      const ax_exchange *away; /* uses the counter of the part that my part of this exchange goes to; NULL: of my own part */
    } sync;
  };
  const ax_eqn *eqn;
  const ax_program *program;
} ax_instr;
_Static_assert(sizeof(ax_instr) <= 104, "a activation steps over many instructions that are not for it");

/* Says whether an activation that waits here gives its scratch memory back. */
static inline bool ax_instr_parks(const ax_instr *instr) {
  return instr->kind == AX_INSTR_RECEIVE || instr->kind == AX_INSTR_CALL || (instr->kind == AX_INSTR_WAIT && instr->sync.parks);
}

/* An event's counters are numbered from `first` on. Tables by device say which counter a device signals and which it awaits; one
   table serves all events and waits of the same kind (exec/events.c). */
typedef struct ax_event {
  ax_axis_set groups;      /* there is a counter for each coordinate along these axes ... */
  const ax_exchange *away; /* ... of the part that an activation's part of this exchange goes to; NULL: of its own part */
  ax_axis_set by;          /* the activations that signal have coordinate 0 on all other axes */
  uint32_t first, count;
  uint32_t signalled_at;   /* the instruction of the first code that signals it */
  const uint32_t *signal;  /* by device: the counter it signals; AX_NONE: none */
  const uint32_t *times;   /* by counter: how many activations signal it each time the region is entered */
} ax_event;

typedef enum ax_space_kind { AX_SPACE_CONST, AX_SPACE_INPUT, AX_SPACE_OUTPUT, AX_SPACE_KEPT, AX_SPACE_SCRATCH } ax_space_kind;
typedef struct ax_part_space {
  ax_space_kind kind;
  uint32_t index; /* INPUT, OUTPUT: number of the input or result */
  uint32_t set;   /* index of the axis set: there is one part for each coordinate along it */
  int64_t bytes;  /* of one part, a multiple of 64 */
  size_t total;   /* of all parts */
  uint32_t first; /* its first part in a run's table: one for each coordinate along the set; SCRATCH: one for each device */
} ax_part_space;

/* Axis sets in use, with each device's index along them. */
typedef struct ax_set {
  ax_axis_set axes;
  uint32_t size;
  uint32_t *index; /* by device */
} ax_set;

typedef struct ax_result { /* an output of the plan */
  ax_layout *layout;
  uint32_t space, donated; /* donated: the plan's input in whose memory the result lives; AX_NONE */
} ax_result;

/* The source of a result of the program: it is computed, or it is an unchanged input. */
typedef struct ax_returned {
  uint32_t made, input; /* one of the two has its number in the pruned program or plan; the other is AX_NONE */
} ax_returned;

/* --- exec/prune.c: the inputs and results of a program that remain when all that a run does not need is left out. {0} to start,
   _deinit to end. --- */
typedef struct ax_pruning {
  uint32_t in_count, out_count; /* of the program before pruning */
  uint32_t *place;              /* by input: its number after pruning; AX_NONE: no result or effect depends on it */
  ax_returned *returned;        /* by result; its `input` is numbered as before pruning */
} ax_pruning;
/* Prunes a program. laid: the layouts of a per-device program's inputs and results; NULL: layouts are ignored, so a result that
   is an input is that array. keep_unused: all inputs stay. *out: the pruned program, owned by the caller. */
AX_MUST_USE ax_status ax_pruning_make(ax_pruning *pruning, const ax_program *program, const ax_partitioned *laid, bool keep_unused,
                                      ax_program **out);
void ax_pruning_deinit(ax_pruning *pruning);
/* Drops the specs of pruned inputs and results; the lists that remain are in `arena`. */
AX_MUST_USE ax_status ax_pruning_specs(const ax_pruning *pruning, ax_partitioned *laid, ax_arena *arena);

/* An instruction list and the activations that run it: activation first_activation + d is device d of the code's mesh. Tables by
   device are indexed by d. */
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
  ax_program *program; /* as the caller gave it */
  ax_mesh mesh;        /* of the arguments and results */
  ax_plan *plan;       /* of each device; its arena owns everything below */
  /* Counts of the program. Fields `by input` or `by result` are indexed by the program's numbers, unless they name the plan, which
     may have fewer inputs and results. */
  uint32_t in_count, out_count;
  ax_layout **wanted; /* by input: the layout that arguments must have */
  bool *asked;        /* by input: the options ask to donate it */
  bool *donate;       /* by input: it is donated, which an unused one is not */
  bool keep_unused;
  uint32_t *donated;  /* by input: the result that lives in its memory; AX_NONE */
  uint32_t *place;    /* by input: its number in the plan; AX_NONE */
  uint32_t *kept;     /* by input of the plan: its number in the program */
  ax_returned *returned;     /* by result: its number in the plan, or that of the program's input it is */
  ax_layout **passed_layout; /* by result that is an input: its layout; NULL: the input's */
  bool *is_passed;           /* by input: some result is this input */
  const char **names;        /* by input, for messages; NULL: they have none */
  ax_assigned assigned;      /* layouts of results on devices 0, 1, .. */
  _Atomic(ax_assigned *) other_assigned; /* and on other devices so far; `lock` guards additions */
  bool plain;                /* the plan has the program's inputs and results */
  bool idle_plan;            /* the plan computes nothing and has no effects */
  bool is_constant;          /* the results are small, and the same in each run */
  _Atomic(ax_parts **) constant_parts; /* is_constant: by result of the plan, retained; NULL before the first run */
  uint32_t devices;
  uint32_t code_count, activation_count; /* codes: the first is that of the devices; activations: of all codes */
  ax_code *codes;
  uint32_t event_count, access_count, space_count, part_count, set_count, region_count, loop_count, counter_count;
  uint32_t turns;                  /* counter of ordered calls made; AX_NONE: there are none */
  uint32_t link_count, first_link; /* first_link: counter of messages over link 0; those of other links follow */
  ax_link *links;
  ax_event *events;
  struct ax_access *accesses; /* of the first code; waits are derived from these, which show what instructions may change places */
  ax_part_space *spaces;
  ax_set *sets;
  ax_result *results;
  unsigned char *constants; /* of the CONST space: aligned, on the heap */
  uint32_t const_space, scratch_space;
  size_t
      rows_bytes; /* most bytes of a ROWS instruction's local allocations; each thread that runs one has such a block */
  double lower_seconds, compile_seconds;
  bool threaded; /* worth more threads than the caller's */
  bool brief;    /* so short that a wait for a thread without a processor would be most of its time */
  bool in_parts; /* several threads may share some instruction */
  struct ax_executable *next_cached;
  _Alignas(64) atomic_uint references; /* of callers and calls; on a cache line of its own, apart from what every run reads */
  ax_idle idle[AX_IDLE_PLACES]; /* runs kept for later calls; a thread looks first at a place of its own */
  pthread_mutex_t lock;         /* guards the following fields */
  struct ax_execution *more_idle;
  struct ax_timeline *timeline; /* of the latest run; NULL: none is kept */
  const ax_op **ops;            /* if timelines are kept: by instruction of the first code, the plan's operation */
};

/* --- exec/flatten.c, synchronise.c, memory.c: the passes from plan to instructions. --- */

typedef struct ax_region { /* region 0 is the whole program */
  uint32_t parent, begin, end; /* positions in the list before weaving; end: behind the last */
  uint32_t exit;               /* position behind the whole loop or branch of the region */
  ax_axis_set axes;            /* along which control flow differs here or around it */
  bool is_loop;                /* the body or the test of a loop, which repeats ... */
  uint32_t loop;               /* ... as this loop does */
} ax_region;

typedef struct ax_access { /* by the instruction at `position`, to the memory of an allocation */
  uint32_t allocation, position, region;
  ax_axis_set axes; /* activations that make the access */
  bool writes;
  const ax_exchange *exchange; /* set if it writes into others' parts */
  uint32_t event;              /* event that reports it done; AX_NONE until an access waits for it */
  /* the point where it can be reported done: after this position, or before it if done_before */
  uint32_t done_position, done_region;
  bool done_before;
  bool hoisted; /* a read that is reported also by activations that may not have made it */
} ax_access;

typedef struct ax_lifetime { /* positions, inclusive; first > last: never touched */
  uint32_t first, last;
  uint32_t region; /* the innermost region that holds all accesses */
} ax_lifetime;

typedef struct ax_aliased_allocations { /* two allocations in the same memory, one after the other */
  uint32_t a, b;
} ax_aliased_allocations;

typedef struct ax_resident { /* the memory of an allocation, and its lifetime */
  uint32_t space; /* AX_NONE: no memory, since it is never accessed */
  int64_t offset;
  ax_lifetime life;
} ax_resident;

typedef struct ax_assembly {
  ax_executable *executable;
  ax_plan *plan;
  ax_instr *instrs;
  ax_op const **ops; /* by instruction: its operation; NULL for WAIT, SIGNAL, ENTER, NEXT, JUMP and END */
  uint32_t instr_count, instr_capacity, ops_capacity;
  ax_region *regions;
  uint32_t region_count, region_capacity;
  ax_access *accesses;
  uint32_t access_count, access_capacity;
  ax_event *events;
  uint32_t event_count, event_capacity;
  bool *shared; /* by allocation: an activation accesses the part of another */
  int64_t *shared_offset; /* by shared allocation: its offset in the memory shared along its axes */
  ax_aliased_allocations *aliased_allocations;
  uint32_t aliased_allocation_count, aliased_allocation_capacity;
  ax_resident *residents; /* by buffer, for allocations; set once memory is placed */
  ax_arena scratch; /* for data of the passes alone */
} ax_assembly;

/* --- exec/verify.c --- */
/* Properties of an instruction list. Each pass needs some and makes one more (exec/pipeline.c). README.md says which fields each
   pass fills in. */
typedef enum ax_instrs_property {
  AX_INSTRS_FLAT = 1 << 0,         /* one END; jumps and regions are nested */
  AX_INSTRS_SYNCHRONISED = 1 << 1, /* every awaited signal is given before */
  AX_INSTRS_PLACED = 1 << 2,       /* operands lie in their spaces, and every read finds what was written */
  AX_INSTRS_NUMBERED = 1 << 3,     /* events and waits have their counters */
  AX_INSTRS_PUSHES = 1 << 4,       /* pushes agree with their exchanges, and their members exist */
  AX_INSTRS_CORES = 1 << 5,        /* steps of users' kernels have their groups */
  AX_INSTRS_TURNS = 1 << 6,        /* ordered calls have their numbers */
  AX_INSTRS_LINKS = 1 << 7,        /* messages have their links */
  AX_INSTRS_RAGGED = 1 << 8,       /* steps of ragged exchanges have the places of others' operands */
  AX_INSTRS_CODE = 1 << 9,         /* kernels, fused loops and combining pushes have machine code */
  AX_INSTRS_FINISHED = 1 << 10,    /* signals have counters; `scratch` is set */
  AX_INSTRS_ALL = (1 << 11) - 1
} ax_instrs_property;
typedef uint32_t ax_instrs_properties; /* a set */
/* Checks the table of passes without the pass named left_out; NULL: with all. AX_INTERNAL: some pass needs a property that no
   pass before it makes. */
AX_MUST_USE ax_status ax_pipeline_check(const char *left_out);
/* AX_INTERNAL: an invariant of the list does not hold, so a pass is wrong. */
AX_MUST_USE ax_status ax_instrs_verify(const ax_assembly *assembly, ax_instrs_properties properties);
/* The result of the first passes (exec/pipeline.c): a simplified, pruned and partitioned program, which keeps the numbers of
   equations for messages. {NULL} to start. */
typedef struct ax_laid {
  ax_program *program; /* owned */
  ax_pruning pruning;  /* of the program before these passes */
} ax_laid;
void ax_laid_deinit(ax_laid *laid);
AX_MUST_USE ax_status ax_program_lay_out(ax_program *program, bool keep_unused, ax_laid *out);
/* Runs the next passes, and those over plans. Gives the plan of a run, for any number of devices; the caller destroys it. */
AX_MUST_USE ax_status ax_laid_plan(const ax_laid *laid, const ax_compile_options *options, ax_plan **out);
/* The same for the result of ax_program_lower. */
AX_MUST_USE ax_status ax_lowered_plan(const ax_lowered *lowered, ax_plan **out);
/* Runs the remaining passes: completes a fresh executable. `laid` is of its program. */
AX_MUST_USE ax_status ax_executable_build(ax_executable *executable, const ax_laid *laid, const ax_compile_options *options);
/* Runs the remaining passes up to the one that places memory; gives the memory that a run takes. text: NULL, or gets a table of
   the allocations. Afterwards the executable may only be destroyed. */
AX_MUST_USE ax_status ax_executable_place(ax_executable *executable, const ax_laid *laid, const ax_compile_options *options,
                                          ax_memory *out, ax_text *text);
/* Prints a program's memory, and the allocations alive where it holds most (exec/lowered.c). */
AX_MUST_USE ax_status ax_memory_text(ax_runtime *runtime, ax_program *program, char **out);
/* exec/executable.c. _create: an executable without a plan; NULL: no memory. _of: the executable of a program, from `laid` if
   that is not NULL. */
ax_executable *ax_executable_create(ax_runtime *runtime, ax_program *program);
void ax_executable_destroy(ax_executable *executable);
AX_MUST_USE ax_status ax_executable_of(ax_runtime *runtime, ax_program *program, const ax_laid *laid, double lower_seconds,
                                       const ax_compile_options *options, ax_executable **out);
/* Copies names of inputs into one block (ax_free); NULL if there are none. */
AX_MUST_USE ax_status ax_names_copy(const char *const *names, uint32_t count, const char ***out);
/* Gives the program as options->shardings lay it out, retained. `who` begins messages. */
AX_MUST_USE ax_status ax_program_laid_over(ax_program *program, const ax_compile_options *options, const char *who,
                                           ax_program **out);
/* exec/memory_use.c: requires placed spaces. */
void ax_memory_of(const ax_executable *executable, ax_memory *out);
/* Runs the passes up to the one of this name, and gives its result as text. The executable is a fresh one, and may afterwards
   only be destroyed. AX_INVALID_ARGUMENT: there is no such pass. */
struct ax_speeds; /* exec/profile.h: for the bounds that `codegen` shows; NULL: without bounds */
AX_MUST_USE ax_status ax_executable_text_after(ax_executable *executable, const char *pass, const struct ax_speeds *speeds,
                                               char **out);
AX_MUST_USE ax_status ax_text_after(ax_runtime *runtime, ax_program *program, const char *pass, const struct ax_speeds *speeds,
                                    char **out); /* exec/executable.c */
void ax_instrs_text(ax_text *text, const ax_executable *executable, const ax_instr *instrs, uint32_t count);
AX_MUST_USE ax_status ax_instrs_flatten(ax_assembly *assembly);
AX_MUST_USE ax_status ax_instrs_synchronise(ax_assembly *assembly);
/* --- exec/events.c: numbers the counters of events and makes their tables; waits, signals and pushes get theirs. --- */
AX_MUST_USE ax_status ax_instrs_events(ax_assembly *assembly);
void ax_resolve_counters(ax_assembly *assembly);
/* Orders ppermutes by their pairs of devices; 0: the same pairs. NULL comes first. */
int ax_compare_pairs(const ax_exchange *a, const ax_exchange *b);
AX_MUST_USE ax_status ax_instrs_memory(ax_assembly *assembly);
/* --- exec/holding.c: prints the allocations alive where a run holds most, once memory is placed. AX_OUT_OF_MEMORY. --- */
AX_MUST_USE ax_status ax_holding_text(ax_text *text, ax_assembly *assembly);
/* --- exec/lifetime.c: *out is by allocation, in the assembly's scratch. --- */
AX_MUST_USE ax_status ax_find_lifetimes(ax_assembly *assembly, ax_lifetime **out);
/* --- exec/reuse.c: places shared allocations. group: by allocation, the axes along which all activations that access one part
   have the same coordinates; fixed: by allocation, it must share its memory with no other. --- */
AX_MUST_USE ax_status ax_reuse_shared(ax_assembly *assembly, const ax_axis_set *group, const bool *fixed);
/* --- exec/gemm.c --- */
/* The number of tiles that threads share; it follows from the product's size alone. Large products are cut differently. */
uint32_t ax_gemm_parts(const ax_gemm *gemm);
uint32_t ax_check_parts(const ax_value_check *check); /* exec/check.c */
/* --- exec/fused_loops.c: finds the fused loops, in the order of the list. loops[i]: the position of the LOOP of fused_loops[i],
   whose instruction is complete but for the code. Both arrays have room for as many as there are instructions. --- */
AX_MUST_USE ax_status ax_find_fused_loops(ax_assembly *assembly, const ax_fused_loop **fused_loops, uint32_t *loops,
                                          uint32_t *count);
/* --- exec/sets.c: gives the index in executable->sets of a set of axes, which is added if it is new. --- */
AX_MUST_USE ax_status ax_set_of(ax_executable *executable, ax_axis_set axes, uint32_t *out);
/* --- exec/exchanges.c: completes PUSH and CLEAR, once memory is placed; makes the kernels by which a push combines. --- */
AX_MUST_USE ax_status ax_instrs_exchanges(ax_assembly *assembly);
ax_loop_kernel *ax_combine_kernel(ax_assembly *assembly, const ax_exchange *exchange, int64_t run, bool first);
ax_loop_kernel *ax_combine_all_kernel(ax_assembly *assembly, const ax_push *push); /* for a push that is at_once */
/* --- exec/turns.c: adds the counter of ordered calls, and says which devices make each CALL. --- */
AX_MUST_USE ax_status ax_instrs_turns(ax_assembly *assembly);
/* --- exec/links.c: numbers the links between senders and receivers; SEND and RECEIVE get theirs. --- */
AX_MUST_USE ax_status ax_instrs_links(ax_assembly *assembly);
/* --- exec/ragged.c: gives steps of ragged exchanges the members of their groups and the places of their operands. --- */
AX_MUST_USE ax_status ax_instrs_ragged(ax_assembly *assembly);
/* --- exec/cores.c: gives steps of users' kernels the members of their groups and the counters they are parked on. --- */
AX_MUST_USE ax_status ax_instrs_cores(ax_assembly *assembly);
/* --- exec/cost.c: rough nanoseconds on one thread; whether waking other threads pays. --- */
double ax_plan_time(const ax_plan *plan);
/* For one operation that is neither a loop nor a branch. */
double ax_plan_op_time(const ax_plan *plan, const ax_op *op);
bool ax_worth_threads(const ax_executable *executable);
AX_MUST_USE ax_status ax_instrs_codegen(ax_assembly *assembly); /* exec/codegen.c: machine code for every kernel and fused loop */
AX_MUST_USE ax_status ax_instrs_finish(ax_assembly *assembly);  /* exec/finish.c: facts that the executor looks up */

/* --- exec/runtime.c --- */
typedef struct ax_tally { /* counts of the threads at one place: nearly always one thread */
  _Alignas(64) atomic_uint_least64_t runs, calls_without, copied;
} ax_tally;
enum { AX_TALLIES = 16 };

struct ax_runtime {
  atomic_uint references; /* of all kinds */
  atomic_uint owners;     /* those that users hold */
  pid_t process;          /* the process that made it */
  ax_runtime_options options;
  const struct ax_scheduling_policy
      *scheduling_policy; /* for runs on one thread, in place of that of the policy; NULL. For tests and checkers */
  const struct ax_plan_pass
      *plan_passes; /* likewise, in place of ax_plan_passes, for programs compiled from now on; NULL. For tests */
  uint32_t plan_pass_count;
  ax_compiler *jit;
  ax_callbacks callbacks; /* by name */
  ax_hooks hooks;         /* with the callbacks, and the reader of printed text */
  ax_workers *workers;
  ax_pool pool; /* no run writes the fields above; runs done inline do not write those below the tallies */
  ax_tally tallies[AX_TALLIES];
  pthread_mutex_t layouts_lock;
  ax_layout *layouts[256]; /* by hash; holds no references */
  uint64_t layouts_made, layouts_found;
  pthread_mutex_t cache_lock;
  ax_executable *cache;  /* holds no references */
  uint64_t compiled, found; /* numbers of programs; guarded by cache_lock */
  pthread_mutex_t order; /* guards which run waits for which: exec/pending.c */
  uint32_t pending;      /* started runs that are not over */
  uint64_t runs;         /* runs started so far, without those done at once */
};
/* References other than users': those of layouts (which arrays hold), executables and pending runs. ax_runtime_let_go returns
   true for the last of all references; its holder then destroys the runtime. */
ax_runtime *ax_runtime_hold(ax_runtime *runtime);
bool ax_runtime_let_go(ax_runtime *runtime);
void ax_runtime_destroy(ax_runtime *runtime);
/* Passes a line to ax_runtime_options.log, if that is set. */
void ax_runtime_log(const ax_runtime *runtime, const char *format, ...) AX_PRINTF(2, 3);
static inline ax_tally *ax_runtime_tally(ax_runtime *runtime) { return &runtime->tallies[ax_thread_place(AX_TALLIES)]; }
static inline void ax_runtime_drop(ax_runtime *runtime) {
  if (ax_runtime_let_go(runtime)) ax_runtime_destroy(runtime);
}
/* Says whether a result or an effect depends on an input. */
static inline bool ax_executable_uses(const ax_executable *executable, uint32_t input) {
  return executable->place[input] != AX_NONE || executable->is_passed[input];
}
static inline void ax_executable_hold(ax_executable *executable) {
  atomic_fetch_add_explicit(&executable->references, 1, memory_order_relaxed);
}

/* --- exec/executor.c --- */
/* Runs the executable. *began: a device may have written memory, whatever the status. */
AX_MUST_USE ax_status ax_execute(ax_executable *executable, ax_parts *const *inputs, ax_parts *const *outputs, uint64_t number,
                                 bool *began);
#endif
