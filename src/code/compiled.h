/* The code of a compiled program, as data: instruction lists, and the tables that runs need beside them.

   Compiled code has codes: instruction lists, each with its activations. The activations of the first code are the devices of the
   mesh. Its memory is in spaces, and its waits are for events. assemble/assemble.h makes it; runs only read it. */
#ifndef AX_CODE_COMPILED_H
#define AX_CODE_COMPILED_H

#include "axle/stages.h"
#include "code/instr.h"
#include "processes/map.h"

typedef struct ax_link {
  uint32_t source, target; /* devices */
} ax_link;

/* An event's counters are numbered from `first` on. Tables by device say which counter a device signals and which it awaits; one
   table serves all events and waits of the same kind (assemble/events.c). */
typedef struct ax_event {
  ax_axis_set groups;      /* there is a counter for each coordinate along these axes ... */
  const ax_exchange *away; /* ... of the part that an activation's part of this exchange goes to; NULL: of its own part */
  ax_axis_set by;          /* the activations that signal have coordinate 0 on all other axes */
  uint32_t first, count;
  uint32_t signalled_at;   /* the instruction of the first code that signals it */
  const uint32_t *signal;  /* by device: the counter it signals; AX_NONE: none */
  const uint32_t *times;   /* by counter: how many activations signal it each time the region is entered */
} ax_event;

typedef enum ax_space_kind {
  AX_SPACE_CONST,
  AX_SPACE_INPUT,
  AX_SPACE_OUTPUT,
  AX_SPACE_KEPT,
  AX_SPACE_SCRATCH,
  AX_SPACE_POINTERS /* no memory: each device sees a part of another space */
} ax_space_kind;
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

typedef struct ax_result { /* an output of the plan */
  uint32_t space, donated; /* donated: the plan's input in whose memory the result lives; AX_NONE */
  uint32_t pointers;       /* the space of pointers to its blocks, wherever a run has left them; AX_NONE: they are in their order */
  uint32_t blocks;         /* then: the set of axes along which its array is cut */
  uint32_t lent;           /* the plan's input, which stays, in whose memory they then are; AX_NONE */
  uint32_t part_count;     /* parts of the space */
  const uint32_t *part;    /* by block of the array: the part that it is in, if some blocks are the same; NULL: each has its own */
} ax_result;

/* An instruction list and the activations that run it: activation first_activation + i is device devices[i] of the code's mesh.
   Tables by device are indexed by the device. */
typedef struct ax_code {
  const ax_mesh *mesh;
  uint32_t first_activation, activation_count;
  const uint32_t *devices; /* by activation: its device; NULL: device i */
  uint32_t entry, instr_count;
  const ax_instr *instrs;
} ax_code;

/* If devices are spread over processes, each process computes what is the same along some axes once more: the owner is the first of
   its devices that are alike but for these axes. A bit in `skip` of an instruction then stands for a whole set of axes. */
typedef struct ax_owned_by {
  ax_axis_set axes;
  bool once;         /* computed once for all processes, by the owner of all of them: a call that others do not repeat */
  const bool *owner; /* by device */
} ax_owned_by;

/* Zero-initialise to start. */
/* A large constant that stays where the program has it: in a mapped file, say. */
typedef struct ax_lent_constant {
  const void *data;        /* aligned to an element */
  struct ax_shared *owner; /* holds it; retained */
} ax_lent_constant;

typedef struct ax_compiled {
  ax_plan *plan;      /* of each device; its arena owns the tables below */
  ax_jit_use jit_use; /* the machine code of all instructions */
  uint32_t devices;
  ax_process_map *map; /* which of the devices are of this process; NULL: all are */
  ax_owned_by *owned;  /* if there is a map: the bits in `skip` of instructions */
  uint32_t owned_count;
  ax_crossing *crossings;   /* all that have been made */
  uint32_t crossing_groups; /* groups of this process in pushes that cross to other processes, of all such pushes */
  uint32_t cores_groups;    /* likewise of users' kernels */
  uint32_t code_count, activation_count; /* codes: the first is that of the devices; activations: of all codes */
  ax_code *codes;
  uint32_t event_count, access_count, space_count, part_count, set_count, region_count, loop_count, counter_count;
  uint32_t turns;                  /* counter of ordered calls made; AX_NONE: there are none. If devices are spread over processes,
                                      the next one counts results of ordered calls that have come from other processes */
  uint32_t stage_count;            /* places of groups where members leave what one of them puts (ax_push.stage) */
  uint32_t first_loan; /* of several processes: for each device, a counter of its loans that are settled (run/lent.h) */
  uint32_t link_count, first_link; /* first_link: counter of messages over link 0; those of other links follow */
  ax_link *links;
  uint32_t giver_count, first_giver; /* members whose rows come from other processes, by ragged exchange, group of this process and
                                        number; first_giver: counter of what has come from the first of them */
  ax_event *events;
  ax_access *accesses; /* of the first code; waits are derived from these, which show what instructions may change places */
  ax_part_space *spaces;
  ax_set *sets;
  ax_result *results;       /* by output of the plan */
  unsigned char *constants; /* of the CONST space of index 0: aligned, on the heap */
  ax_lent_constant *lent; /* of the CONST spaces of index 1, 2, .. */
  uint32_t lent_count, const_space, scratch_space;
  size_t
      rows_bytes; /* most bytes of a ROWS instruction's local allocations; each thread that runs one has such a block */
  bool points;      /* some instruction is a POINT */
  bool threaded;    /* worth more threads than the caller's */
  bool late;        /* they are called only when there is work to share */
  bool brief;       /* so short that a wait for a thread without a processor would be most of its time */
  bool ends_soon;   /* brief, whatever its arguments are, but for what it calls: there are no loops of unknown length */
  bool in_parts;    /* several threads may share some instruction */
  bool idle_plan;   /* the plan computes nothing and has no effects */
  bool is_constant; /* the results are small, and the same in each run */
  bool timed;       /* runs keep timelines */
  bool flushes;     /* runs flush subnormal numbers (machine/float_mode.h); the code is the same */
  const ax_op **ops; /* if timed: by instruction of the first code, the plan's operation */
} ax_compiled;

/* The memory of a space of constants. */
static inline unsigned char *ax_constants_of(const ax_compiled *c, const ax_part_space *space) {
  return space->index == 0 ? c->constants : (unsigned char *)(uintptr_t)c->lent[space->index - 1].data;
}
/* jit: the compiler that made the code. NULL: only the memory is freed, since a thread that is not in this process may hold the
   compiler's lock. */
void ax_compiled_deinit(ax_compiled *compiled, ax_compiler *jit);
/* The axes along which an instruction of finished code does something once for all devices. */
ax_axis_set ax_instr_skipped(const ax_compiled *compiled, const ax_instr *instr);
/* Prints the spaces and the list. Fields that no pass has filled yet are left out. */
void ax_instrs_text(ax_text *text, const ax_compiled *compiled, const ax_instr *instrs, uint32_t count);
/* code/memory_use.c: requires placed spaces. */
void ax_memory_of(const ax_compiled *compiled, ax_memory *out);

#endif
