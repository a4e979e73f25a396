/* The state of the passes that make instructions from a plan, and these passes. pipeline.c has them in their order. */
#ifndef AX_ASSEMBLE_ASSEMBLY_H
#define AX_ASSEMBLE_ASSEMBLY_H

#include "code/compiled.h"

typedef struct ax_region { /* region 0 is the whole program */
  uint32_t parent, begin, end; /* positions in the list before weaving; end: behind the last */
  uint32_t exit;               /* position behind the whole loop or branch of the region */
  ax_axis_set axes;            /* along which control flow differs here or around it */
  bool is_loop;                /* the body or the test of a loop, which repeats ... */
  uint32_t loop;               /* ... as this loop does */
} ax_region;

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
  bool lodges; /* in the memory of a result, which is written later (lodge.c) */
} ax_resident;

/* Whether an allocation has memory, or devices have pointers to parts of another (pointers.c). */
typedef struct ax_pointed {
  uint32_t memory;       /* the allocation in whose memory it is: itself, unless it is an image of another */
  bool has_pointers;     /* each device finds the part that it sees by a pointer ... */
  uint32_t space;        /* ... in this space; set when memory is placed */
  ax_axis_set away;      /* devices see the parts of others along these axes, directly or in images */
  const ax_op *renewed;  /* an operation in a loop before which each device sees its own part again; NULL */
} ax_pointed;

/* Products that the members of an exchange make where they are added (contributed.c). */
typedef struct ax_contributed {
  const ax_gemm **product; /* by exchange; NULL: its contributions are operands */
  bool *unmade;            /* by allocation: it would be such a product's result */
} ax_contributed;

typedef struct ax_assembly {
  ax_compiled *compiled; /* to be filled */
  ax_plan *plan;         /* its plan */
  ax_compiler *jit;
  ax_instr *instrs;
  ax_op const **ops; /* by instruction: its operation; NULL for WAIT, SIGNAL, ENTER, NEXT, JUMP and END */
  uint32_t instr_count, instr_capacity, ops_capacity;
  ax_region *regions;
  uint32_t region_count, region_capacity;
  ax_access *accesses;
  uint32_t access_count, access_capacity;
  ax_event *events;
  uint32_t event_count, event_capacity;
  ax_pointed *pointed; /* by allocation; NULL: nothing goes by pointer */
  ax_contributed contributed; /* NULLs: there are none */
  bool *shared; /* by allocation: an activation accesses the part of another */
  int64_t *shared_offset; /* by shared allocation: its offset in the memory shared along its axes */
  ax_aliased_allocations *aliased_allocations;
  uint32_t aliased_allocation_count, aliased_allocation_capacity;
  ax_resident *residents; /* by buffer, for allocations; set once memory is placed */
  uint32_t threads; /* that a run may have */
  bool elsewhere;   /* the plan is of another machine: what its products work in is not known, and not counted */
  bool results_elsewhere; /* results are written to a caller's memory, aligned to their elements alone */
  bool counted; /* memory is only counted: all devices together may take more than any machine has */
  ax_arena scratch; /* for data of the passes alone */
} ax_assembly;

/* --- verify.c --- */
/* Properties of an instruction list. Each pass needs some and makes one more (pipeline.c). README.md says which fields each pass
   fills in. */
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
/* AX_INTERNAL: an invariant of the list does not hold, so a pass is wrong. */
AX_MUST_USE ax_status ax_instrs_verify(const ax_assembly *assembly, ax_instrs_properties properties);

/* --- The passes: ax_instrs_NAME is in NAME.c. --- */
AX_MUST_USE ax_status ax_instrs_flatten(ax_assembly *assembly);
AX_MUST_USE ax_status ax_instrs_synchronise(ax_assembly *assembly);
AX_MUST_USE ax_status ax_instrs_memory(ax_assembly *assembly);
/* Numbers the counters of events and makes their tables; waits, signals and pushes get theirs. */
AX_MUST_USE ax_status ax_instrs_events(ax_assembly *assembly);
/* Completes PUSH and CLEAR, once memory is placed. */
AX_MUST_USE ax_status ax_instrs_exchanges(ax_assembly *assembly);
/* Gives steps of users' kernels the members of their groups and the counters they are parked on. */
AX_MUST_USE ax_status ax_instrs_cores(ax_assembly *assembly);
/* Adds the counter of ordered calls, and says which devices make each CALL. */
AX_MUST_USE ax_status ax_instrs_turns(ax_assembly *assembly);
/* Numbers the links between senders and receivers; SEND and RECEIVE get theirs. */
AX_MUST_USE ax_status ax_instrs_links(ax_assembly *assembly);
/* Gives steps of ragged exchanges the members of their groups and the places of their operands. */
AX_MUST_USE ax_status ax_instrs_ragged(ax_assembly *assembly);
AX_MUST_USE ax_status ax_instrs_codegen(ax_assembly *assembly); /* machine code for every kernel and fused loop */
AX_MUST_USE ax_status ax_instrs_finish(ax_assembly *assembly);  /* facts that the executor looks up */

/* --- Parts of passes --- */
/* pointers.c: finds the exchanges and copies that go by pointer, before the list is made. */
AX_MUST_USE ax_status ax_find_pointed(ax_assembly *assembly);
/* Says whether an operation does, START and DONE alike, and between which allocations. */
bool ax_is_by_pointer(const ax_assembly *assembly, const ax_op *op, uint32_t *from, uint32_t *to);
/* The allocation in whose memory another one is; most often itself. */
static inline uint32_t ax_memory_of_allocation(const ax_assembly *assembly, uint32_t allocation) {
  return assembly->pointed != NULL ? assembly->pointed[allocation].memory : allocation;
}
/* The axes along which devices see others' parts of it. */
static inline ax_axis_set ax_seen_along(const ax_assembly *assembly, uint32_t allocation) {
  return assembly->pointed != NULL ? assembly->pointed[allocation].away : 0;
}
/* contributed.c: finds the products that are made where they are added, before the list is made. */
AX_MUST_USE ax_status ax_find_contributed(ax_assembly *assembly);
/* The product that members make when they add to an exchange; NULL: they add an operand. */
static inline const ax_gemm *ax_contributed_to(const ax_assembly *assembly, const ax_exchange *exchange) {
  return assembly->contributed.product != NULL ? assembly->contributed.product[exchange->id] : NULL;
}
/* Lists the buffers that a member touches: its operand, or the factors of its product, and last where it puts them. Returns how many. */
enum { AX_EXCHANGE_BUFFERS = 3 };
uint32_t ax_exchange_buffers(const ax_assembly *assembly, const ax_exchange *exchange, uint32_t *out);
/* The operation is such a product: it has no instruction of its own. */
bool ax_is_contributed(const ax_assembly *assembly, const ax_op *op);
void ax_resolve_counters(ax_assembly *assembly); /* events.c */
/* Orders ppermutes by their pairs of devices; 0: the same pairs. NULL comes first. */
int ax_compare_pairs(const ax_exchange *a, const ax_exchange *b);
/* lifetime.c: *out is by allocation, in the assembly's scratch. */
AX_MUST_USE ax_status ax_find_lifetimes(ax_assembly *assembly, ax_lifetime **out);
/* reuse.c: places shared allocations. group: by allocation, the axes along which all activations that access one part have
   the same coordinates; fixed: by allocation, it must share its memory with no other. */
AX_MUST_USE ax_status ax_reuse_shared(ax_assembly *assembly, const ax_axis_set *group, const bool *fixed);
/* holding.c: prints the allocations alive where a run holds most, once memory is placed. AX_OUT_OF_MEMORY. */
AX_MUST_USE ax_status ax_holding_text(ax_text *text, ax_assembly *assembly);
/* fused_loops.c: finds the fused loops, in the order of the list. loops[i]: the position of the LOOP of fused_loops[i], whose
   instruction is complete but for the code. Both arrays have room for as many as there are instructions. */
AX_MUST_USE ax_status ax_find_fused_loops(ax_assembly *assembly, const ax_fused_loop **fused_loops, uint32_t *loops,
                                          uint32_t *count);
/* owners.c: gives the index in compiled->owned of the owners of what is the same along some axes, which are added if they are new.
   If `once`, there is one owner in all processes. AX_ABSENT: there are too many such sets. */
AX_MUST_USE ax_status ax_owned_along(ax_compiled *compiled, ax_axis_set axes, bool once, uint32_t *out);
/* owner: by device, whether it is of this process and an owner there. */
AX_MUST_USE ax_status ax_find_owners(ax_compiled *compiled, ax_axis_set axes, bool *owner);
/* first: by device, whether it is the owner in all processes, which has coordinate 0 on all the axes. */
void ax_find_first(const ax_compiled *compiled, ax_axis_set axes, bool *first);
/* Replaces the axes in `skip` of all instructions, if devices are spread over processes. */
AX_MUST_USE ax_status ax_number_owners(ax_assembly *assembly);
/* crossing.c: *out NULL: no group of exchanges over `names`, pushed by the devices along `on`, has members in several processes. */
AX_MUST_USE ax_status ax_find_crossing(ax_compiled *compiled, const ax_axes *names, ax_axis_set axes, ax_axis_set on,
                                       const ax_crossing **out);
/* sets.c: gives the index in compiled->sets of a set of axes, which is added if it is new. */
AX_MUST_USE ax_status ax_set_of(ax_compiled *compiled, ax_axis_set axes, uint32_t *out);
/* Groups of devices along `names`. *numbers: by device, its number in its group. *places: by member of the group, the place of its
   block among those of a set, for the group of device 0; the members of all groups are as far apart. */
AX_MUST_USE ax_status ax_member_numbers(ax_compiled *compiled, const ax_axes *names, uint32_t **numbers);
AX_MUST_USE ax_status ax_member_places(ax_compiled *compiled, const ax_axes *names, uint32_t members, uint32_t set,
                                       uint32_t **places);
/* exchanges.c: the kernels by which a push combines. */
ax_loop_kernel *ax_combine_kernel(ax_assembly *assembly, const ax_push *push, bool first);
ax_loop_kernel *ax_combine_all_kernel(ax_assembly *assembly, const ax_push *push); /* for a push that is at_once */
/* code/split.c: into how many parts an instruction may be cut, which threads share. It follows from sizes alone. */
uint32_t ax_gemm_parts(const ax_gemm *gemm); /* large products are cut differently */
uint32_t ax_check_parts(const ax_value_check *check);
/* cost.c: rough nanoseconds on one thread; whether waking other threads pays. */
double ax_plan_time(const ax_plan *plan);
bool ax_plan_is_foreseen(const ax_plan *plan); /* no loop says itself how long it goes on */
bool ax_worth_threads(const ax_compiled *compiled);
bool ax_worth_help(const ax_assembly *assembly);

#endif
