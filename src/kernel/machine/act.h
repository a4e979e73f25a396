/* The checker's view of a kernel: agents that act.

   The cores, warpgroups and copies under way of a kernel are *agents*. Each goes on by itself, one *act* after the other. An act
   does one thing to one object, and touches memory:

       agent            acts, in its own order
       core 0           START copy 7    WAIT done 1       LOCAL read slot     SIGNAL free 1
       copy 7           LOCAL read x    LOCAL write slot  SIGNAL done 1

   An agent's next act can be asked for before it is done, and may be held up: a WAIT until the semaphore holds enough, an AWAIT
   until the phase is complete, a JOIN until the other agent has done so many acts. All other acts are never held up. An act is
   atomic.

   Promises of a source of acts:
     - an agent's next act, with its touches, depends only on its own earlier acts and the values they have read; its computation
       between two acts has no effect on others. So bytes that a store's address or a branch depends on are read by an act before.
     - numbers of agents, semaphores, barriers and regions do not depend on the order in which agents went on. An agent that is
       started is numbered by its starter and by how many that one has started before.
     - touches say every byte of memory that another agent could touch too. A region's allocation, and the end of its scope, are
       LOCAL acts that write the whole of it, with `scope`: an agent that touches it at the same time uses it after its scope. A
       scope that several agents share ends with the last of them: each leaves it by an act with a `scope` touch that does not
       write, and that conflicts with nothing. The end of a kernel is an act that reads its results.
     - an act is the same, and touches the same, until its agent has done it.

   A *record* is one whole run: every act that was done, in the order of the run, and the next acts of the agents that were held up
   at the end. Strings are borrowed, and outlive every holder of the act. */
#ifndef AX_KERNEL_MACHINE_ACT_H
#define AX_KERNEL_MACHINE_ACT_H

#include "base/base.h"

typedef enum ax_act_kind {
  AX_ACT_NONE,   /* the agent is through */
  AX_ACT_LOCAL,  /* only touches memory, or nothing */
  AX_ACT_SIGNAL, /* adds `amount` to semaphore `object`; at least 0 */
  AX_ACT_WAIT,   /* goes on when semaphore `object` holds at least `amount`, and takes it off */
  AX_ACT_READ,   /* reads semaphore `object`'s count: later acts may depend on it */
  AX_ACT_ARRIVE, /* one arrival at barrier `object`: after `arrivals` of them a phase is complete and the count begins anew */
  AX_ACT_AWAIT,  /* goes on when phase `amount` (1, 2, ..: the n-th wait of this agent on this barrier) of barrier `object` is
                    complete */
  AX_ACT_START,  /* agent `object` begins; each agent once at most */
  AX_ACT_JOIN,   /* goes on when agent `object` has done `amount` acts; INT64_MAX: when it is through, which it is not yet */
  AX_ACT_SEEN /* of scripts: a read of semaphore `object` that gave `amount`. Goes on where no more than that is there, but for what
                 others have still to take */
} ax_act_kind;

typedef struct ax_bytes { /* of a region */
  uint64_t begin, end;
} ax_bytes;

/* What an addition does: it need not be a sum. Each operation commutes and is associative, of integers and bools. */
typedef enum ax_update {
  AX_UPDATE_ADD,
  AX_UPDATE_MUL,
  AX_UPDATE_MAX,
  AX_UPDATE_MIN,
  AX_UPDATE_AND,
  AX_UPDATE_OR,
  AX_UPDATE_XOR
} ax_update;
static inline bool ax_update_is_extreme(uint8_t update) { return update == AX_UPDATE_MAX || update == AX_UPDATE_MIN; }

/* A touch may be part of an *addition*: a load, and a store of the sum of what was loaded and another value, or one act that adds.
   In place of the sum may be another result of two values (ax_update), as their maximum. The agent has no other use of what it
   loaded. So additions of one kind to the same elements, each done as a whole, leave the same there in any order: of integers
   always, of floats if no sum is rounded, or, of maxima and minima, if no value is NaN and no zeros differ in their sign. */
typedef struct ax_touch_sum {
  uint8_t bits;  /* of a float's significand, with the hidden one; AX_SUM_WRAPS: an integer; 0: no part of an addition */
  uint8_t update; /* an ax_update */
  uint8_t zeros;  /* floats, of maxima and minima: bit 0, there is a zero; bit 1, there is one with a minus */
  int16_t top;   /* floats: finite numbers are below 2^top */
  int32_t least; /* floats: what is loaded (of a touch that reads) or added (that writes) are multiples of 2^least .. */
  double most;   /* .. and at most this, without their signs; infinite: one of them is not finite (of maxima and minima: is NaN) */
} ax_touch_sum;
enum { AX_SUM_WRAPS = 255, AX_SUM_ZERO = 1 << 20 /* `least` of zeros alone */ };

typedef struct ax_touch {
  uint32_t region;
  bool write, scope;     /* scope: the region begins or ends here */
  uint32_t first, count; /* its bytes: runs[first ..) of the pool; ascending, disjoint, none empty */
  uint32_t colour;       /* touches of one colour do not conflict with one another, whatever their bytes; 0: it has none */
  ax_touch_sum sum;
} ax_touch;

/* One of several agents leaves the scope that they share. */
static inline bool ax_touch_leaves(const ax_touch *touch) { return touch->scope && !touch->write; }

/* Touches, and the byte runs they name. Zero-initialise to start. */
typedef struct ax_touches {
  ax_touch *touches;
  ax_bytes *runs;
  uint32_t touch_count, touch_capacity, run_count, run_capacity;
} ax_touches;
AX_MUST_USE ax_status ax_touches_add(ax_touches *pool, uint32_t region, bool write, bool scope, uint32_t run_count,
                                     const ax_bytes *runs);
/* Adds a touch of another pool. */
AX_MUST_USE ax_status ax_touches_copy(ax_touches *pool, const ax_touches *from, const ax_touch *touch);
void ax_touches_deinit(ax_touches *pool);

typedef struct ax_act {
  ax_act_kind kind;
  uint32_t object;
  int64_t amount;
  uint32_t touch_first, touch_count; /* in the pool of the act's source */
  const char *what, *location, *span; /* for people: "store out[0:8]", "kernel.c:12", "Compute"; NULL: nothing to say */
} ax_act;

const char *ax_act_kind_name(ax_act_kind kind); /* "signal" */
/* Says that the act can affect others. A copy of nothing signals no bytes, and no agent waits for that. */
bool ax_act_has_effect(const ax_act *act);

typedef enum ax_finding_kind {
  AX_FINDING_NONE,
  AX_FINDING_DEADLOCK,
  AX_FINDING_RACE,
  AX_FINDING_LEAK,    /* a semaphore is not 0 at the end */
  AX_FINDING_BARRIER, /* a phase is complete before all have waited for the previous one, or is left half done */
  AX_FINDING_UNSET_READ,
  AX_FINDING_OUT_OF_BOUNDS,
  AX_FINDING_AFTER_SCOPE,     /* used before a region's scope begins, or after it ends */
  AX_FINDING_CAPACITY,        /* more memory than the space has */
  AX_FINDING_COPY_NOT_AWAITED, /* all cores may be through while it is still under way */
  AX_FINDING_RESULTS,          /* runs that end well have different results */
  AX_FINDING_ROUNDING,         /* the same, by roundings alone: floats are added in an order that is not fixed */
  AX_FINDING_NOT_COMMITTED,    /* a copy reads stores that were not made visible to copies */
  AX_FINDING_BETWEEN_POINTS    /* a point of a grid needs what another one does, and they are in no order */
} ax_finding_kind;
#define AX_FINDING_KINDS 14

const char *ax_finding_kind_name(ax_finding_kind kind); /* "data race" */

/* A fault of an act itself, in any order: it reads unset memory, or is out of bounds. NONE: no fault. */
typedef struct ax_act_fault {
  ax_finding_kind kind;
  uint32_t region; /* AX_NONE: it is about none */
  ax_bytes bytes;
  const char *text; /* a sentence, without a full stop */
} ax_act_fault;

/* --- Agents and objects --- */

typedef struct ax_act_agent {
  const char *name; /* "device 3, core 0"; "copy of x[0:8], started at kernel.c:12" */
  uint32_t device;
  bool initial; /* there from the beginning; others are started, and are copies or signals that travel */
  bool signal;  /* a signal that travels: nothing has to wait for its agent, as the count says whether it has come */
} ax_act_agent;

typedef struct ax_act_semaphore {
  const char *name; /* "recv[1]" */
  uint32_t device;
  int64_t initial;
} ax_act_semaphore;

typedef struct ax_act_barrier {
  const char *name;
  uint32_t device;
  uint32_t arrivals; /* that complete a phase; at least 1 */
} ax_act_barrier;

enum { AX_REGION_RANK = 6 };

typedef struct ax_act_region {
  const char *name; /* "scratch 0" */
  uint32_t device;
  uint64_t bytes;
  uint32_t elem_bytes, rank; /* row-major; elem_bytes 0: bytes without a shape */
  int64_t dims[AX_REGION_RANK];
  uint32_t behind; /* it stands for bytes of another region: that one's number and 1; 0: it is memory itself */
} ax_act_region;

typedef struct ax_act_objects {
  ax_act_agent *agents;
  ax_act_semaphore *semaphores;
  ax_act_barrier *barriers;
  ax_act_region *regions;
  uint32_t agent_count, agent_capacity, semaphore_count, semaphore_capacity;
  uint32_t barrier_count, barrier_capacity, region_count, region_capacity;
} ax_act_objects;
/* Each appends; its number is the count before. */
AX_MUST_USE ax_status ax_act_objects_add_agent(ax_act_objects *objects, ax_act_agent agent);
AX_MUST_USE ax_status ax_act_objects_add_semaphore(ax_act_objects *objects, ax_act_semaphore semaphore);
AX_MUST_USE ax_status ax_act_objects_add_barrier(ax_act_objects *objects, ax_act_barrier barrier);
AX_MUST_USE ax_status ax_act_objects_add_region(ax_act_objects *objects, ax_act_region region);
void ax_act_objects_deinit(ax_act_objects *objects);

/* --- A run --- */

typedef struct ax_act_step { /* an act that was done, or would be next */
  uint32_t agent;
  ax_act act;
} ax_act_step;

typedef struct ax_act_noted { /* a fault, and the step it is of */
  uint32_t step;
  ax_act_fault fault;
} ax_act_noted;

/* Zero-initialise to start; objects may be added as the run goes on. */
typedef struct ax_act_record {
  ax_act_objects objects;
  ax_touches touches;   /* of all its acts */
  ax_act_step *steps;   /* as they were done */
  ax_act_step *pending; /* of agents that are not through, what each would do next: held up */
  ax_act_noted *faults;
  uint32_t step_count, step_capacity, pending_count, pending_capacity, fault_count, fault_capacity;
} ax_act_record;
/* Each copies the act with its touches, which are in `pool` (NULL: it has none). */
AX_MUST_USE ax_status ax_act_record_step(ax_act_record *record, uint32_t agent, const ax_act *act, const ax_touches *pool);
AX_MUST_USE ax_status ax_act_record_pending(ax_act_record *record, uint32_t agent, const ax_act *act, const ax_touches *pool);
/* Adds a fault of the step that was added last. */
AX_MUST_USE ax_status ax_act_record_fault(ax_act_record *record, const ax_act_fault *fault);
void ax_act_record_deinit(ax_act_record *record);

#endif
