/* The state of the code generator while it emits one kernel, shared by emit.c (loops), body.c (nodes and reductions), memory.c
   (loads and stores) and the other files named below.

   Levels: level 0 is the function's entry, level l + 1 the inside of loop l. A node is computed once, at the level of the
   innermost loop it depends on. Inside the unrolled loop several *instances* of the body stand side by side: instance i is the
   iteration i steps further on. */
#ifndef AX_JIT_EMIT_NEST_H
#define AX_JIT_EMIT_NEST_H

#include "jit/emit/codegen.h"
#include "jit/nest/schedule.h"
#include "machine/caches.h"

enum { AX_MAX_UNROLL = 16 };
enum { AX_SQUARES_A_BLOCK = 4 }; /* TRANSPOSE: squares in a block, in either direction */
enum { AX_STRIP_BYTES = 4096 };  /* TRANSPOSE, rows that lie in several places: bytes of each in one strip */

/* Starts that were clamped already, each in the block in which that is known (starts.c). */
typedef struct ax_clamped_start {
  LLVMBasicBlockRef block;
  LLVMValueRef start, clamped;
  int64_t limit;
  bool aside; /* by a branch */
} ax_clamped_start;
typedef struct ax_clamped_starts {
  ax_clamped_start starts[8];
  uint32_t next;
} ax_clamped_starts;

/* Integers that were divided, in the block in which quotient and rest are known (body.c). */
typedef struct ax_divided {
  LLVMBasicBlockRef block;
  LLVMValueRef x, y, quotient, rest;
  ax_dtype dtype;
} ax_divided;

/* The surroundings of a kernel that is emitted inside a larger function (fused_loop.h). */
typedef struct ax_nest_inside {
  LLVMValueRef coordinates;
  const LLVMValueRef *bases; /* by slot: its address; undefined for a held slot */
  LLVMValueRef *const
      *held; /* by slot: registers with its elements, or with all its vectors of schedule->lanes lanes; NULL: not held */
  const bool *far;           /* by slot: loops around step through ax_caches.far_rows bytes or more of it; one trip sees a part */
  bool unrolled;             /* some slot is held as vectors: ax_nest_walks_once */
  ax_clamped_starts *clamped; /* by this kernel and those before it */
} ax_nest_inside;

typedef struct ax_range { /* lo .. hi; `count` is hi - lo if constant, else -1 and a multiple of `multiple` */
  LLVMValueRef lo, hi;
  int64_t count, multiple;
} ax_range;

typedef struct ax_nest {
  ax_codegen cg;
  const ax_nest_inside *inside; /* NULL: the kernel is a function of its own */
  const ax_nest_schedule *schedule;
  LLVMValueRef slots, coordinates, begin, end; /* the arguments; begin and end in iterations of the ranged loop */
  uint32_t level, instances;
  LLVMValueRef rest_mask;           /* of the vector that ends each row; NULL: made where it is needed */
  bool narrow;                      /* in a block of NARROW */
  uint64_t spread, repeated;        /* loops, a bit each: those whose iterations lie in lanes; those that make instances differ */
  LLVMValueRef mask;                /* the lanes that exist; NULL: all. See ax_nest_mask */
  LLVMValueRef present;             /* count of lanes that exist, where mask is not NULL */
  int64_t present_count;            /* the same, where it is a constant; else -1 */
  LLVMValueRef index[AX_MAX_LOOPS]; /* of each open loop; of the vector loop: that of lane 0 */
  LLVMValueRef *slot_bases;         /* by slot */
  LLVMValueRef nowhere;             /* memory of no slot, of two registers; NULL: none was needed yet */
  LLVMValueRef *pointers;           /* [level][access]: with the loops open at that level added in */
  LLVMValueRef *pairs;              /* by access: what the even instance loaded or has for the odd one to store (paired.c) */
  LLVMValueRef *columns;            /* [instance][node]: loads that were done with an earlier one (columns.c) */
  LLVMValueRef *values;             /* [instance][node] */
  LLVMValueRef *spread_values;      /* [node]: in all lanes, of the nodes that is_spread names */
  LLVMValueRef *reciprocals;        /* [instance][node][2]: of divisors */
  ax_divided divided[4];            /* the latest ones */
  uint32_t next_divided;
  ax_ex *order;                     /* nodes of level 0, `ordered` of them: how they are computed (together.c) */
  uint32_t ordered, *depth;         /* depth: by node: functions of scalars that it waits for, one after another */
  bool *is_fetched;                 /* by node: a given number, which is loaded into all lanes where it is used (spread.c) */
  bool *is_spread;                  /* by node: is put into all lanes of a register once, where it is computed (spread.c) */
  bool *is_divisor;                 /* by node: divides many values, which are multiplied by its reciprocal (body.c) */
  ax_ex *wanted;                    /* by node: the condition where any lane wants what it looks up (wanted.c); AX_NONE: always */
  LLVMValueRef *accumulators;       /* [store][instance] */
  LLVMValueRef *tiles;              /* on the stack: TILE's and RUNS' sums, by store; TRANSPOSE's squares, by access;
                                       what it passes to a function, by its store */
  LLVMValueRef tile_start; /* where the tiles begin: along the vector loop (TILE), p (RUNS) or the innermost one (TRANSPOSE) */
  ax_range strip;                  /* TRANSPOSE, of rows that lie in several places: the innermost loop's range in this strip */
  LLVMValueRef block_lo,
      block_hi; /* TRANSPOSE: the innermost loop's range in this square; blocked LANES: the range of the last parallel loop */
  bool *holds;                     /* by node: the value of each guard in the settled steps (guards.c) */
  int64_t settled_first, settled_end; /* the settled steps along the vector loop */
  bool row_settled;                /* code is being emitted for rows inside the box of settled steps, */
  uint32_t settled;                /* and these instances, a bit each, are settled steps */
  bool streaming;                  /* code is being emitted that stores whole cache lines past the caches */
  bool accumulating;               /* the accumulators are live: loops carry them around */
  bool adds_few;                   /* a few terms are being added up in their own precision, though sums are wider */
} ax_nest;

/* Emits the function `name` into cg->module. Scratch memory comes from the arena. AX_OUT_OF_MEMORY. */
AX_MUST_USE ax_status ax_nest_emit(ax_arena *arena, const ax_codegen *cg, const ax_loop_kernel *kernel, const char *name);

/* The schedule of a kernel inside a larger function, which does all of its steps. NULL: the kernel has no steps. */
AX_MUST_USE ax_status ax_nest_schedule_inside(ax_arena *arena, const ax_loop_kernel *kernel, ax_registers registers, bool often,
                                              ax_nest_schedule **out);
/* Emits the kernel at the builder's position, and leaves the builder after it. */
AX_MUST_USE ax_status ax_nest_emit_inside(ax_arena *arena, const ax_codegen *cg, const ax_nest_schedule *schedule,
                                          const ax_nest_inside *inside);
/* Whether the kernel goes along its vector loop once, and in step i touches only element i of the slot. Then the slot can be
   held in vector registers. */
bool ax_nest_walks_once(const ax_nest_schedule *schedule, uint32_t slot, int64_t elems);

/* --- walk.c --- */
/* A mask of the first `present` lanes. */
LLVMValueRef ax_walk_constant_mask(const ax_nest *nest, int64_t present);

/* --- emit.c --- */
typedef struct ax_nest_loop {
  LLVMBasicBlockRef head; /* NULL: a single trip, no loop at all */
  LLVMValueRef index;
} ax_nest_loop;
/* Opens a loop from `lo` that runs at least once; its body is the code emitted until the close. Live accumulators become phis.
   `once`: there is a single trip, and no loop is made. */
ax_nest_loop ax_nest_open_loop(ax_nest *nest, LLVMValueRef lo, bool once);
void ax_nest_close_loop(ax_nest *nest, const ax_nest_loop *loop, LLVMValueRef hi, int64_t step);

/* --- body.c --- */
/* Enters a loop's level: computes the nodes and does the stores that belong to it. */
void ax_nest_enter(ax_nest *nest, uint32_t loop, LLVMValueRef index);
static inline void ax_nest_leave(ax_nest *nest) { nest->level--; }
void ax_nest_find_divisors(ax_nest *nest);
void ax_nest_find_wanted(ax_nest *nest); /* wanted.c */
void ax_nest_entry(ax_nest *nest); /* level 0 */
/* One instance of the nodes that depend on loops of `with` and on none of `without`. */
void ax_nest_emit_nodes(ax_nest *nest, uint64_t with, uint64_t without, uint32_t instance);
uint32_t ax_nest_lanes_of(const ax_nest *nest, ax_ex node); /* one if it is the same in all lanes, where the code now is */
LLVMValueRef ax_nest_value(ax_nest *nest, ax_ex node, uint32_t instance, uint32_t lanes);
/* The mask of one instance: when the vector loop is unrolled only the last instance is partial, otherwise all are. */
LLVMValueRef ax_nest_mask(const ax_nest *nest, uint32_t instance);
LLVMValueRef *ax_nest_accumulator(ax_nest *nest, uint32_t store, uint32_t instance);
ax_dtype ax_nest_accumulator_dtype(const ax_nest *nest, uint32_t store);
/* The dtype of a store's slot; that of the values which its accumulators take, which may be wider: then several values are combined
   first, and widened once. */
ax_dtype ax_nest_store_dtype(const ax_nest *nest, uint32_t store);
ax_dtype ax_nest_contribution_dtype(const ax_nest *nest, uint32_t store);
bool ax_nest_widens(const ax_nest *nest, uint32_t store);
LLVMValueRef ax_nest_contribution(ax_nest *nest, uint32_t store, uint32_t instance);
LLVMValueRef ax_nest_combine(ax_nest *nest, uint32_t store, LLVMValueRef a, LLVMValueRef b, uint32_t lanes); /* accumulators */
/* How many accumulators LANES and STRIP keep for one vector of results. */
uint32_t ax_nest_partial_sums(const ax_nest *nest, uint32_t store);
void ax_nest_init(ax_nest *nest);       /* accumulators to the identity */
/* Between the two the accumulators are those of a few terms, in the terms' own precision where sums are wider; then they are added to those
   before. */
void ax_nest_begin_few(ax_nest *nest);
void ax_nest_end_few(ax_nest *nest, const LLVMValueRef *before);
/* RUNS: loads the accumulators of the current row from its tile; stores them there. */
void ax_nest_take_up(ax_nest *nest);
void ax_nest_put_down(ax_nest *nest);
void ax_nest_accumulate(ax_nest *nest); /* adds the instances' values to the accumulators */
/* Stores the accumulators to their slots. If the shape keeps partial sums, they are added in a fixed order first. */
void ax_nest_finish(ax_nest *nest);
/* Stores a complete vector of sums to its slot. */
void ax_nest_store_sum(ax_nest *nest, uint32_t store, LLVMValueRef sum, uint32_t instance, uint32_t lanes);

/* --- spread.c: what vectors use and is the same in all of their lanes --- */
void ax_nest_find_spread(ax_nest *nest);
void ax_nest_spread(ax_nest *nest, ax_ex node, LLVMValueRef value); /* after `value` of a node that is_spread names is made */

/* --- together.c: functions of scalars in one register --- */
void ax_nest_find_together(ax_nest *nest); /* sets nest->order */
/* Computes the node at a place of the order, if it is such a function, with those that follow. False: it is to be computed
   alone. */
bool ax_nest_emit_together(ax_nest *nest, uint32_t first);

/* --- running.c: kernels that run along their vector loop --- */
uint32_t ax_nest_running_sums(const ax_nest *nest, uint32_t store); /* as ax_nest_partial_sums */
/* Stores what is reduced up to each lane; takes the whole vector into the accumulators. */
void ax_nest_run_along(ax_nest *nest, uint32_t store);

/* --- memory.c --- */
/* Makes the access's pointer of level 0. */
LLVMValueRef ax_nest_base(ax_nest *nest, uint32_t access);
/* Adds to the current level's pointer the dynamic starts that are known from this level on. */
void ax_nest_move_pointer(ax_nest *nest, uint32_t access);
/* Makes the pointers of the next level: those of the current level, moved to iteration `index` of the loop. */
void ax_nest_step_pointers(ax_nest *nest, uint32_t loop, LLVMValueRef index);
/* The elements by which iteration `index` of the loop has moved the access. */
LLVMValueRef ax_nest_offset(ax_nest *nest, uint32_t access, uint32_t loop, LLVMValueRef index);
LLVMValueRef ax_nest_load(ax_nest *nest, uint32_t access, ax_dtype dtype, uint32_t instance);
void ax_nest_store(ax_nest *nest, uint32_t access, LLVMValueRef value, uint32_t lanes, uint32_t instance);
/* The access's address, with all loops added that are open now. */
LLVMValueRef ax_nest_pointer(ax_nest *nest, uint32_t access);
LLVMValueRef ax_nest_instance_pointer(ax_nest *nest, uint32_t access, uint32_t instance); /* the same of an instance's first lane */
LLVMTypeRef ax_nest_element(const ax_nest *nest, uint32_t access); /* of its slot, in memory */
LLVMValueRef ax_nest_advance(ax_nest *nest, LLVMTypeRef element, LLVMValueRef pointer, LLVMValueRef count);
LLVMValueRef ax_nest_load_one(ax_nest *nest, LLVMTypeRef element, LLVMValueRef pointer);
/* A vector of elements from `pointer` on, side by side, in memory's types. `mask` NULL: all lanes. */
LLVMValueRef ax_nest_load_side_by_side(ax_nest *nest, LLVMTypeRef element, LLVMValueRef pointer, LLVMValueRef mask);
/* A vector of elements from `pointer` on, `stride` elements apart, in memory's types. `mask` NULL: all lanes. */
LLVMValueRef ax_nest_load_lanes(ax_nest *nest, LLVMTypeRef element, LLVMValueRef pointer, int64_t stride,
                                LLVMValueRef mask);
void ax_nest_store_lanes(ax_nest *nest, LLVMTypeRef element, LLVMValueRef pointer, int64_t stride, LLVMValueRef mask,
                         LLVMValueRef value);
/* Vectors of the first `span` columns of rows of `row` elements, of which whole vectors are loaded, and nothing after the last
   element that is in one of these columns. `partial`: of the rows that are there. `columns` has `row` entries. */
void ax_nest_load_rows(ax_nest *nest, LLVMTypeRef element, LLVMValueRef pointer, uint32_t row, uint32_t span, bool partial,
                       LLVMValueRef *columns);
/* The first `count` lanes, side by side, in parts of 2^k lanes: who reads such a part soon does not wait for it, as he would for
   what is stored under a mask. */
void ax_nest_store_parts(ax_nest *nest, LLVMTypeRef element, LLVMValueRef pointer, int64_t count, LLVMValueRef value);
/* Where some rows of a vector are there, `stride` elements apart, and of the last `span` elements: the mask of a whole vector
   that begins `start` elements behind the first. */
LLVMValueRef ax_nest_mask_up_to(ax_nest *nest, int64_t stride, int64_t span, int64_t start);

/* --- starts.c --- */
/* Whether a start of these dependences differs between lanes or instances, so that loads add it and not the loops' pointers. */
bool ax_nest_start_is_added_by_load(const ax_nest_schedule *schedule, uint64_t deps);
/* Adds to `sum`, an offset in elements of so many bits, the starts that become known at `level`; if that is AX_NONE, those that each
   load adds, with a value for each of `lanes` lanes. NULL, as `sum` and as the result: there is nothing to add. */
LLVMValueRef ax_nest_add_starts(ax_nest *nest, uint32_t access, uint32_t level, uint32_t instance, uint32_t lanes, uint32_t bits,
                                LLVMValueRef sum);

/* --- small_table.c --- */
/* Whether the elements that an access can look up fit a few registers, and nothing else moves it from lane to lane. */
bool ax_nest_has_small_table(const ax_nest *nest, uint32_t access);
/* The elements at `offsets` from `pointer`, of 32 bits a lane, in memory's types. */
LLVMValueRef ax_nest_look_up_small(ax_nest *nest, uint32_t access, LLVMTypeRef element, LLVMValueRef pointer, LLVMValueRef offsets);

/* --- streamed.c --- */
/* Makes a store of `bytes`, aligned to `bytes`, go past the caches. */
void ax_nest_mark_streamed(ax_nest *nest, LLVMValueRef store, uint32_t bytes);
/* The first store, along the vector loop: how many steps after `from` it reaches the beginning of a cache line; whether it is at
   one at index `at`. */
LLVMValueRef ax_nest_steps_to_line(ax_nest *nest, LLVMValueRef from);
LLVMValueRef ax_nest_begins_line(ax_nest *nest, LLVMValueRef at);

/* --- paired.c --- */
/* Whether this instance and the one before or after it are a pair: lanes are every other element. */
bool ax_nest_makes_pair(const ax_nest *nest, uint32_t instance);
/* Whether an access of this instance is half of a pair. The even half comes first. */
bool ax_nest_is_paired(const ax_nest *nest, uint32_t access, uint32_t instance);
LLVMValueRef ax_nest_load_paired(ax_nest *nest, uint32_t access, LLVMValueRef pointer, uint32_t instance);
void ax_nest_store_paired(ax_nest *nest, uint32_t access, LLVMValueRef pointer, LLVMValueRef value, uint32_t instance);

/* --- woven.c --- */
/* Whether this instance of a store is made with others that lie between its elements; made when the last of them is asked for. */
bool ax_nest_store_woven(ax_nest *nest, uint32_t store, uint32_t instance);

/* --- columns.c --- */
/* All lanes of a load that is done together with its neighbours (columns.c), in memory's types. `pointer`: the address of lane
   0. False: it is not such a load. Each is done once, until `instances` changes. */
bool ax_nest_load_columns(ax_nest *nest, uint32_t access, LLVMValueRef pointer, uint32_t instance, LLVMValueRef *out);

/* --- held.c --- */
LLVMTypeRef ax_nest_held_type(const ax_codegen *cg, ax_dtype dtype, uint32_t lanes); /* as memory has it; of one bool, a bit */
/* The register that holds the element or vector that this instance of the access touches. NULL: the slot is not held. */
LLVMValueRef *ax_nest_held_at(const ax_nest *nest, const ax_nest_access *access, uint32_t instance);
LLVMValueRef ax_nest_load_held(ax_nest *nest, uint32_t access, ax_dtype dtype, LLVMValueRef held, bool guarded, uint32_t instance);
void ax_nest_store_held(ax_nest *nest, ax_dtype dtype, LLVMValueRef *held, LLVMValueRef value, uint32_t lanes);

/* --- narrow.c --- */
bool ax_is_guard(const ax_nest_schedule *schedule, ax_ex node); /* a condition on indices alone */
void ax_nest_begin_narrow(ax_nest *nest); /* begins code for blocks, up to ax_nest_end_narrow; computes what blocks share */
void ax_nest_narrow_block(ax_nest *nest, LLVMValueRef index);
void ax_nest_end_narrow(ax_nest *nest);
/* Loads and stores in a block that depend on the block's loops, in memory's types. */
LLVMValueRef ax_nest_load_narrow(ax_nest *nest, uint32_t access, uint32_t instance);
void ax_nest_store_narrow(ax_nest *nest, uint32_t access, LLVMValueRef value, uint32_t instance);
LLVMValueRef ax_nest_narrow_index(ax_nest *nest, uint32_t loop, uint32_t instance);

/* --- guards.c --- */
/* Finds the settled steps; false: there are no guards, or too many. */
bool ax_nest_find_settled(ax_nest *nest);
/* NARROW: the steps of its outer loop that are settled; whether the open loops before it are at settled steps; whether there are
   conditions at all. */
void ax_nest_settled_rows(const ax_nest *nest, int64_t *first, int64_t *end);
LLVMValueRef ax_nest_outer_settled(ax_nest *nest);
bool ax_nest_has_guards(const ax_nest *nest);
/* Emitted inside all loops but the vector loop: whether this row has settled steps. */
LLVMValueRef ax_nest_row_settled(ax_nest *nest);
typedef enum ax_guard_state { AX_KNOWN_NOT, AX_KNOWN_FALSE, AX_KNOWN_TRUE } ax_guard_state;
/* The value that condition `node` is known to have in this instance of the code that is being emitted. */
ax_guard_state ax_nest_known(const ax_nest *nest, ax_ex node, uint32_t instance);
enum { AX_ALL_SETTLED = -1 }; /* nest->settled: all instances */
/* The value of INSIDE node `node` if its loop's index is `index`. In a vector, lane i stands for index + i. */
LLVMValueRef ax_nest_guard(ax_nest *nest, ax_ex node, LLVMValueRef index, uint32_t lanes);

/* --- transposed.c --- */
void ax_nest_allocate_squares(ax_nest *nest);
/* Transposes `line` registers inside of lines of `line` elements: afterwards line j of register k holds column j * line + k. */
void ax_nest_turn_lines(ax_nest *nest, LLVMValueRef *rows, uint32_t line);
/* At the vector loop's level: reads the squares at tile_start, transposes them and leaves them in their tiles. */
void ax_nest_fill_squares(ax_nest *nest);
LLVMValueRef ax_nest_load_transposed(ax_nest *nest, uint32_t access, ax_dtype dtype);

/* --- turned.c --- */
void ax_nest_allocate_turn(ax_nest *nest);
/* Calls the function of jit/turn for these ranges of the vector loop and of the innermost one, which are not open. */
void ax_nest_call_turn(ax_nest *nest, const ax_range *rows, const ax_range *columns);

#endif
