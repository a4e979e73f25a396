/* The format of instructions.

   A program becomes a list of instructions, which each device of the mesh walks by itself: an activation, with a program counter,
   loop counters, and a count of how often it has entered each region of the list. It runs the instructions that are for it and
   steps over the rest. Activations synchronise by one means: a WAIT until the counter of an event has been signalled often enough.

     instruction k:   skipped unless the activation's coordinate is 0 on every axis in `skip`
     event e:         counters; tables by device of the counter that it signals and of the one that it awaits
     SIGNAL           adds 1
     WAIT             until count >= (how often I have entered the signal's region + delta) * how many activations signal each time

   There are events only where one activation reads what another wrote (read after write), or writes what others may still read: see
   assemble/synchronise.c. README.md has a table of the fields of an instruction and the passes that fill them. */
#ifndef AX_CODE_INSTR_H
#define AX_CODE_INSTR_H

#include "jit/jit.h"
#include "plan/plan.h"

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
  AX_INSTR_CALL,   /* an ordered call of a callback or of print: takes its turn (run/turns.c) */
  AX_INSTR_CORES,  /* a step of a user's kernel: runs cores that are ready */
  AX_INSTR_PUSH,   /* delivers my parts of an exchange; then signals its event */
  AX_INSTR_CLEAR,  /* zeroes my result of a ppermute in which I have no source */
  AX_INSTR_POINT,  /* sets a pointer of mine to the part of another device (assemble/pointers.c) */
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

enum { AX_PUSH_SMALL = 1 << 14 }; /* most elements that a member combines by itself: less is not worth sharing */
enum { AX_PUSH_BLOCK_LEAST = 1 << 10, AX_PUSH_BLOCK_MOST = 1 << 14 }; /* elements of a block of several contributions */
enum { AX_PUSH_AT_ONCE = 16 };   /* most members whose contributions one call combines */
enum { AX_PUSH_BATCH = 64 };     /* most members of a batch */

/* How the pieces that members have for each other get to their places. Many short pieces are put by blocks. */
typedef enum ax_push_way {
  AX_PUSH_APART,      /* each member puts its own */
  AX_PUSH_AS_WHOLE,   /* each member combines its whole operand into one sum; when that is complete, each peer gets its piece */
  AX_PUSH_IN_BATCHES  /* one member puts those of several (run/batches.c) */
} ax_push_way;

/* A process that has members of a group. */
typedef struct ax_party {
  uint32_t process, first, count; /* its members are `count` entries of `held` from `first` on */
} ax_party;

/* Groups of exchanges, or of kernels, that have members in several processes. A process may have a member more than once, since
   values that are the same along other axes are pushed by their owner in each process. A member that it does not have is a ghost
   there: the process of the first device that is this member sends what the member pushes (run/crossing.h). */
typedef struct ax_crossing {
  struct ax_crossing *next; /* in the list of the compiled code */
  const ax_axes *names;     /* over which members are numbered */
  ax_axis_set axes, on;     /* those axes; along which devices push, each its own */
  uint32_t groups, members, here_count; /* here: groups that have members in this process */
  const uint32_t *group;    /* by device: its group */
  uint32_t *first, *here; /* by group * members + member: the first device that it is; the first in this process, AX_NONE if none */
  uint32_t *begin;        /* by group: its parties begin there, in ascending order of processes; of one group more: where all end */
  ax_party *parties;
  uint32_t *held;           /* members of parties, in ascending order */
  uint32_t *index;          /* by group: its number among those that are here; AX_NONE */
  bool crosses;             /* some process has a part of a group alone */
} ax_crossing;

/* NULL: the process has no member of the group. */
static inline const ax_party *ax_party_of(const ax_crossing *crossing, uint32_t group, uint32_t process) {
  for (uint32_t i = crossing->begin[group]; i < crossing->begin[group + 1]; i++)
    if (crossing->parties[i].process == process) return &crossing->parties[i];
  return NULL;
}
static inline bool ax_party_has(const ax_crossing *crossing, const ax_party *party, uint32_t member) {
  uint32_t low = 0, high = party != NULL ? party->count : 0;
  while (low < high) {
    const uint32_t middle = low + (high - low) / 2, held = crossing->held[party->first + middle];
    if (held == member) return true;
    if (held < member) low = middle + 1;
    else high = middle;
  }
  return false;
}

/* Says whether a member of a group pushes something into what a process has, besides its signal. target: by member, its target in
   an exchange with PAIRS. */
static inline bool ax_reaches(const ax_exchange *exchange, const ax_crossing *crossing, const uint32_t *target, uint32_t member,
                              const ax_party *party) {
  if (exchange->alone && member != exchange->source) return false;
  return exchange->peers != AX_PEERS_PAIRS || (target[member] != AX_NONE && ax_party_has(crossing, party, target[member]));
}

typedef struct ax_push {
  const ax_exchange *exchange;
  const ax_gemm *product; /* what a member contributes, made where it is added: refs are its factors, then `out`; NULL: refs[0] */
  const ax_crossing *crossing; /* groups have members in other processes; NULL: none has */
  uint32_t crossing_first;     /* then: the first of its groups of this process, in a run's table */
  bool lends;                  /* then: no other device writes a member's operand, so it stays until the member goes on */
  uint32_t event, in_set, out_set; /* sets: along which `in` and `out` are stored, by index in the sets of the compiled code */
  uint32_t first;               /* the event's first counter, as in sync */
  const uint32_t *counter;
  int64_t item, out_item;       /* bytes of an element of `in`, and of `out`, as sums may have a wider dtype */
  uint32_t members;
  const uint32_t *number; /* by device: its member number in its group */
  uint32_t *place;  /* by member number: its part of `out`, in places after member 0's; peers ONE: unused */
  uint32_t *targets, *sources; /* PAIRS: by member number; AX_NONE: it has none */
  bool at_last_arrival;                  /* the last member to arrive combines all inputs, block by block */
  uint32_t *in_place;          /* as `place`, in the set of `in` */
  ax_push_way way;
  uint32_t batch;              /* IN_BATCHES: members of a batch, which are copied; 0: operands stay where they are for the run */
  uint32_t stage;              /* unless APART, or if at_once: of its first group, in a run's table */
  int64_t elems;               /* of an operand */
  int64_t combined;            /* contiguous elements that are combined at once: `run`; AS_WHOLE: all of an operand */
  ax_kernel_code combine;      /* dst[i] = dst[i] op src[i] over these elements */
  ax_kernel_code widen;        /* dst[i] = src[i], if out has another dtype; NULL: bytes are copied */
  ax_kernel_code all; /* at_once: over `run` elements; slots are the results of the peers, then the operands of all members */
  bool at_once;                /* few elements, in a loop: members leave copies; the last to come combines all in one call */
  bool small;                  /* each member combines short runs of elements: not worth sharing */
  int64_t run;                 /* contiguous elements of a part */
  uint32_t outer_rank;         /* dimensions around the run */
} ax_push;

/* The data of a POINT. The part that a device sees of an allocation is known by its place among the parts. */
typedef struct ax_point {
  const ax_exchange *exchange; /* NULL: a copy */
  uint32_t from, to, memory;   /* allocations of the plan; from AX_NONE: each device sees its own part */
  uint32_t from_pointers, to_pointers; /* where these have pointers, one for each device, in a run's table; AX_NONE: own parts */
  uint32_t first, parts; /* where the memory's parts begin there, and how many there are */
  const uint32_t *place; /* by device: its own part of the memory */
  const uint32_t *next;  /* by part: that of the member which sends to the device that has it; NULL: the same */
} ax_point;

/* Memory that nothing else is in while a GEMM or ROWS is made: its threads work in equal shares of it, as far as these are large
   enough. */
typedef struct ax_work_room {
  ax_ref ref;
  size_t bytes;
} ax_work_room;

/* Numbers that a kernel's code is given with each call (assemble/given.h). */
typedef struct ax_given_numbers {
  uint32_t count;
  uint64_t bits[];
} ax_given_numbers;

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
  const ax_crossing *crossing; /* groups have members in other processes; NULL: none has */
  uint32_t first_givers;       /* then: giver 0 of its first group of this process (ax_compiled.first_giver) */
} ax_ragged_instr;

typedef struct ax_cores_instr {
  const ax_cores *cores;
  ax_cores_step step;
  const uint32_t *number; /* by device, its member number in its group; NULL: each device is alone */
  const uint32_t *place;  /* by member number: its state, in places after member 0's */
  const uint32_t *group;  /* by device: its group, on whose counter activations are parked */
  uint32_t first;         /* counter of the first group */
  const ax_crossing *crossing; /* groups have members in other processes, each in one of them; NULL: none has */
  uint32_t crossing_first;     /* then: the first of its groups of this process, in a run's table */
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

/* The devices that make the calls of a CALL, in whatever process: how many, and the place of each among them. */
typedef struct ax_turns {
  uint32_t calls;
  const uint32_t *number; /* by device: of its call; AX_NONE: it makes none */
  const uint32_t *caller; /* by number: the device */
  const uint32_t *takes;  /* by device: the call of another process whose results it gets, for all that are alike in its own
                             process; AX_NONE: none. NULL: no device does */
  const uint32_t *taker, *first_taker; /* the same by call: its takers, in order; by call, and one more: where they begin */
  const uint32_t *others; /* the other processes that have devices, in order of devices */
  uint32_t other_count;
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
                   ax_cores_buffer_at; PUSH, CLEAR: in, out (of a PUSH with a product: its factors, out); SEND, RECEIVE: the array; TEST, BRANCH: the scalar */
  uint32_t ref_count;
  uint32_t parts;  /* KERNEL, ROWS, GEMM, ROUTINE, CHECK: most parts that it may be cut into */
  uint32_t region; /* ENTER: the region entered; PUSH: the region around it */
  uint16_t microseconds; /* if it may be cut: rough time on one thread, at most UINT16_MAX */
  bool scratch;    /* this instruction or a later one may touch scratch memory */
  union {
    struct {
      ax_kernel_code code;
      int64_t extent; /* of the ranged dimension */
      int64_t scale;  /* steps of the code for one step along it (assemble/flat.h) */
      const int64_t *later; /* by slot: bytes by which `refs` begins later than the buffer (assemble/moved.h); NULL: none does */
      const ax_given_numbers *given; /* NULL: it is given none */
    } kernel;
    struct {
      union {
        ax_rows_instr *rows;
        const ax_gemm *gemm;
      };
      const ax_work_room *room; /* NULL: threads find memory to work in by themselves */
    };
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
    ax_point *point;
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

/* Whether it has the field `room`. */
static inline bool ax_instr_has_room(const ax_instr *instr) { return instr->kind == AX_INSTR_GEMM || instr->kind == AX_INSTR_ROWS; }

/* Says whether an activation that waits here gives its scratch memory back. */
static inline bool ax_instr_parks(const ax_instr *instr) {
  return instr->kind == AX_INSTR_RECEIVE || instr->kind == AX_INSTR_CALL || (instr->kind == AX_INSTR_WAIT && instr->sync.parks);
}

#endif
