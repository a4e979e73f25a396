/* The machine that kernels run on: *agents*, each going on by itself. An agent is a core (or a warpgroup, a subcore: one walk
   through a body's code), a copy under way, the beginning of the kernel on a device, before which its memory is not the kernel's,
   or its end, which comes when all its cores are through and reads its results. By number: cores, ends, beginnings, copies.

     machine   immutable: codes, places of cores and refs, capacities
     state     memory, semaphores, barriers, and where each agent stands; may be cloned

   Agents go from one *act* to the next (act.h): an operation that others can notice. Between acts a core computes with values of
   its own. The driver of the machine chooses whose act is next: reference evaluation (eval.c), the checker (check.c).

   Nothing here waits or takes a lock, and a state is one thread's. */
#ifndef AX_KERNEL_MACHINE_MACHINE_H
#define AX_KERNEL_MACHINE_MACHINE_H

#include "kernel/machine/act.h"
#include "kernel/machine/code.h"
#include "prim/region.h"

typedef struct ax_core { /* of the machine: one walk through a body */
  uint32_t device; /* its place among the machine's devices */
  uint32_t body;
  int64_t number;  /* row-major over the core axes of its mesh */
  int64_t place;   /* of the device and the core, row-major over the body's axes; axis_index reads it */
} ax_core;

struct ax_alike; /* alike.h */

typedef enum ax_commits { /* copies from near memory that read a core's stores only after commit_smem */
  AX_COMMITS_NONE,
  AX_COMMITS_GROUPED, /* those that belong to groups */
  AX_COMMITS_ALL
} ax_commits;

typedef struct ax_machine {
  const ax_eqn *eqn;
  const ax_kernel_params *params;
  const ax_mesh *axes; /* of the devices: the environment of the equation */
  const ax_hooks *hooks;
  ax_status (*computes)(void *context, uint32_t core, const ax_program *program,
                        const ax_eqn *eqn); /* called for each equation that a core computes; NULL: nothing is called */
  void *computes_context;
  bool signals_travel; /* a signal to another device is an agent of its own, which adds to the count at its own time; otherwise it
                          has come when it is sent */
  ax_commits commits; /* which copies of stores that are not committed are faults */
  const struct ax_alike *alike; /* states that differ in who of these cores is where have one hash; NULL: none have */
  bool strict; /* reading unset memory is a fault; otherwise it gives arbitrary bytes */
  uint32_t device_count, core_count, operand_count; /* operand_count: without constants */
  uint32_t begins; /* number of devices whose beginning is an agent: all; 0 if there is a single device */
  const int64_t *devices; /* ids, row-major over `axes` */
  ax_core_code **codes;        /* by body */
  ax_core *cores;
  uint32_t *first_core;  /* of each device and body: [device * bodies + body] */
  uint32_t
      *first_place; /* of each device, body and ref: [(device * bodies + body) * ref_count + ref]: the first of its instances */
  uint32_t ref_count, place_count; /* places of the kernel itself; scopes' come behind */
  uint32_t first_barrier; /* of the places: the barrier semaphore of each device, which has ref ref_count */
  struct ax_ref_place { uint32_t device, body, ref, instance; } *places; /* the ref and instance of each of these places */
  struct ax_names *names; /* numbers of copies, scopes and objects */
  ax_arena arena;
} ax_machine;

/* in: the types of the equation's operands. `devices` of them: ids, ascending, borrowed as is `eqn`. AX_ABSENT: a body that cores
   cannot run. */
AX_MUST_USE ax_status ax_machine_create(const ax_eqn *eqn, const ax_type *in, const ax_mesh *axes, uint32_t device_count,
                                        const int64_t *devices, const ax_hooks *hooks, ax_machine **out);
/* Makes the machine of the equation that is being evaluated. */
AX_MUST_USE ax_status ax_machine_of(const ax_eval_args *args, const ax_hooks *hooks, ax_machine **out);
void ax_machine_release(ax_machine *machine);

/* The number of agents that exist from the beginning; copies are numbered from here. */
static inline uint32_t ax_machine_agents(const ax_machine *machine) {
  return machine->core_count + machine->device_count + machine->begins;
}

/* The first of the cores that open a scope along `along` together with this one; *users: their number. */
uint32_t ax_machine_leader(const ax_machine *machine, uint32_t core, const ax_axes *along, int64_t *users);

/* The number of arrivals that complete a phase of this scratch. */
int64_t ax_arrivals_of(const ax_pairs *arrivals, uint32_t scratch);

typedef struct ax_state ax_state;
/* in[operand * devices + device], constants among them; copied. */
AX_MUST_USE ax_status ax_state_create(const ax_machine *machine, ax_tensor *const *in, ax_state **out);
AX_MUST_USE ax_status ax_state_clone(const ax_state *state, ax_state **out);
void ax_state_release(ax_state *state);

uint32_t ax_state_agents(const ax_state *state);
/* Gives the agent's next act, and whether it can be done now. Computes up to it, without any effect that others notice. The act and
   its touches are valid until the next call. A fault of the computation or its touches (out of bounds, unset memory, ..) is in
   `fault`, with AX_OK. A step with a fault is not done, and its agent stops. */
AX_MUST_USE ax_status ax_state_peek(ax_state *state, uint32_t agent, ax_act *act, bool *enabled, ax_act_fault *fault);
AX_MUST_USE ax_status ax_state_step(ax_state *state, uint32_t agent, ax_act_fault *fault);
const ax_touches *ax_state_touched(const ax_state *state); /* the touches of the act that was peeked at last */

/* Result k of device number `device`, as a new tensor. */
AX_MUST_USE ax_status ax_state_result(const ax_state *state, uint32_t k, uint32_t device, ax_tensor **out);
void ax_state_hash(const ax_state *state, uint64_t out[2]);
/* A hash that tells an agent of a state from others, but not from a core that is like it and stands where it does. */
uint64_t ax_state_hash_agent(const ax_state *state, uint32_t agent);
uint64_t ax_state_outcome(const ax_state *state); /* hash of the results and the semaphores' counts */
/* From the first act on, sums know how large their terms are. */
void ax_state_weigh(ax_state *state);
/* Whether what that is of differs from another's only as floats do whose additions are in another order: each element by no more
   than the terms of its sum allow, where the state has weighed them (else nothing is known of these), or by 16 units of the
   result's largest element. */
bool ax_state_is_rounded(const ax_state *state, const ax_state *other);
size_t ax_state_bytes(const ax_state *state);     /* bytes of a clone, roughly */

/* Reference evaluation of a kernel_call. */
AX_MUST_USE ax_status ax_kernel_eval(const ax_eval_args *args);

#endif
