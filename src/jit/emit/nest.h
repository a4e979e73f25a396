/* One kernel's code in the making: what emit.c (loops), body.c (nodes and reductions) and memory.c (loads and stores) share.

   Levels: level 0 is the function's entry, level l + 1 the inside of loop l. A node is computed once at the level of the
   innermost loop it depends on. Inside the unrolled loop several *instances* of the body stand side by side: instance i is
   the iteration i steps further on. */
#ifndef AX_JIT_EMIT_NEST_H
#define AX_JIT_EMIT_NEST_H

#include "jit/emit/codegen.h"
#include "jit/nest/schedule.h"

enum { AX_MAX_UNROLL = 16 };
enum { AX_SQUARES_A_BLOCK = 4 }; /* TRANSPOSE: in either direction */
enum { AX_STRIP_BYTES = 4096 };  /* TRANSPOSE, of rows that lie in several places: of each */

enum { AX_FAR_BYTES = 12 << 20 };   /* no cache near a core has that much */

/* Where a kernel stands in a function of more than itself (fused_loop.h). */
typedef struct ax_nest_inside {
  LLVMValueRef coordinates;
  const LLVMValueRef *bases; /* by slot: its address; of one that is held, anything */
  LLVMValueRef *const
      *held; /* by slot: what is in registers of it: one element, or all of its vectors, of as many lanes as the schedule's; NULL */
  const bool *far;           /* by slot: loops go through more than AX_FAR_BYTES, of which this is the part of one trip */
  bool unrolled;             /* some are held as vectors: ax_nest_walks_once */
} ax_nest_inside;

typedef struct ax_range { /* lo .. hi; `count` is hi - lo where it is a constant, else -1 and a multiple of `multiple` */
  LLVMValueRef lo, hi;
  int64_t count, multiple;
} ax_range;

typedef struct ax_nest {
  ax_codegen cg;
  const ax_nest_inside *inside; /* NULL: a function of its own */
  const ax_nest_schedule *schedule;
  LLVMValueRef slots, coordinates, begin, end; /* the arguments; begin and end in iterations of the ranged loop */
  uint32_t level, instances;
  LLVMValueRef rest_mask;           /* of the vector that ends each row; NULL: made where it is needed */
  bool narrow;                      /* in a block of NARROW */
  uint64_t spread, repeated;        /* loops, a bit each: whose iterations lie in lanes; on which what an instance has depends */
  LLVMValueRef mask;                /* the lanes that exist; NULL: all. See ax_nest_mask */
  LLVMValueRef present;             /* how many there are, where mask is not NULL */
  int64_t present_count;            /* the same, where it is a constant; else -1 */
  LLVMValueRef index[AX_MAX_LOOPS]; /* of each open loop; of the vector loop: that of lane 0 */
  LLVMValueRef *slot_bases;         /* by slot */
  LLVMValueRef *pointers;           /* [level][access]: with the loops open at that level added in */
  LLVMValueRef *pairs;              /* by access: what the even instance loaded or has for the odd one to store (paired.c) */
  LLVMValueRef *columns;            /* [instance][node]: loads that were done with an earlier one (columns.c) */
  LLVMValueRef *values;             /* [instance][node] */
  LLVMValueRef *reciprocals;        /* [instance][node][2]: of divisors */
  bool *is_divisor;                 /* by node: of many, which are multiplied instead (body.c) */
  LLVMValueRef *accumulators;       /* [store][instance] */
  LLVMValueRef *tiles;              /* on the stack: TILE's and RUNS' sums, by store; TRANSPOSE's squares, by access */
  LLVMValueRef tile_start; /* where the tiles begin: along the vector loop (TILE), p (RUNS) or the innermost one (TRANSPOSE) */
  ax_range strip;                  /* TRANSPOSE, of rows that lie in several places: the innermost loop's range in this strip */
  LLVMValueRef block_lo,
      block_hi; /* TRANSPOSE: the innermost loop's range in this square; blocked LANES: that of the last parallel loop */
  bool *holds;                     /* by node: what each guard is in the settled steps (guards.c) */
  int64_t settled_first, settled_end; /* those along the vector loop */
  bool settled;                    /* the code in the making is of settled steps */
  bool streaming;                  /* the code in the making stores whole lines of a cache, past it */
  bool accumulating;               /* the accumulators are live: loops carry them around */
} ax_nest;

/* Emits the function `name` into cg->module. Scratch memory comes from the arena. AX_OUT_OF_MEMORY. */
AX_MUST_USE ax_status ax_nest_emit(ax_arena *arena, const ax_codegen *cg, const ax_loop_kernel *kernel, const char *name);

/* The schedule of a kernel that stands inside a function, where it is done whole; NULL: there is nothing to do. */
AX_MUST_USE ax_status ax_nest_schedule_inside(ax_arena *arena, const ax_loop_kernel *kernel, uint32_t vector_bytes,
                                              ax_nest_schedule **out);
/* Emits it from where the builder is, and leaves that where it is done. */
AX_MUST_USE ax_status ax_nest_emit_inside(ax_arena *arena, const ax_codegen *cg, const ax_nest_schedule *schedule,
                                          const ax_nest_inside *inside);
/* Whether it goes once along its vector loop, and there touches nothing of the slot but element i at step i: so it can be held as
   vectors. */
bool ax_nest_walks_once(const ax_nest_schedule *schedule, uint32_t slot, int64_t elems);

/* --- emit.c --- */
typedef struct ax_nest_loop {
  LLVMBasicBlockRef head; /* NULL: a single trip, no loop at all */
  LLVMValueRef index;
} ax_nest_loop;
/* A loop from `lo` that runs at least once, its body from here to the close. Live accumulators go around with it. */
ax_nest_loop ax_nest_open_loop(ax_nest *nest, LLVMValueRef lo, bool once);
void ax_nest_close_loop(ax_nest *nest, const ax_nest_loop *loop, LLVMValueRef hi, int64_t step);

/* --- body.c --- */
void ax_nest_enter(ax_nest *nest, uint32_t loop,
                   LLVMValueRef index); /* computes and stores what belongs to its level */
static inline void ax_nest_leave(ax_nest *nest) { nest->level--; }
void ax_nest_find_divisors(ax_nest *nest);
void ax_nest_entry(ax_nest *nest); /* level 0 */
/* One instance of the nodes that depend on loops of `with` and on none of `without`. */
void ax_nest_emit_nodes(ax_nest *nest, uint64_t with, uint64_t without, uint32_t instance);
LLVMValueRef ax_nest_value(ax_nest *nest, ax_ex node, uint32_t instance, uint32_t lanes);
/* The mask of one instance: when the vector loop is unrolled only the last instance is partial, otherwise all are. */
LLVMValueRef ax_nest_mask(const ax_nest *nest, uint32_t instance);
LLVMValueRef *ax_nest_accumulator(ax_nest *nest, uint32_t store, uint32_t instance);
ax_dtype ax_nest_accumulator_dtype(const ax_nest *nest, uint32_t store);
/* How many accumulators LANES and STRIP keep for one vector of results. */
uint32_t ax_nest_partial_sums(const ax_nest *nest, uint32_t store);
void ax_nest_init(ax_nest *nest);       /* accumulators to the identity */
/* RUNS: accumulators from and to where the tile has those of a row. */
void ax_nest_take_up(ax_nest *nest);
void ax_nest_put_down(ax_nest *nest);
void ax_nest_accumulate(ax_nest *nest); /* the instances' values into the accumulators */
/* Accumulators to the slots, adding up partial sums in a fixed order where the shape keeps them. */
void ax_nest_finish(ax_nest *nest);
/* One vector of sums, whole and in registers, to its slot. */
void ax_nest_store_sum(ax_nest *nest, uint32_t store, LLVMValueRef sum, uint32_t instance, uint32_t lanes);

/* --- memory.c --- */
LLVMValueRef ax_nest_base(ax_nest *nest, uint32_t access);                    /* a level 0 pointer */
void ax_nest_move_pointer(ax_nest *nest,
                          uint32_t access); /* the current level's, by the starts that are known from this level on */
void ax_nest_step_pointers(ax_nest *nest, uint32_t loop, LLVMValueRef index); /* level's pointers to level + 1's */
LLVMValueRef ax_nest_offset(ax_nest *nest, uint32_t access, uint32_t loop,
                            LLVMValueRef index); /* elements that the loop has moved it by */
LLVMValueRef ax_nest_load(ax_nest *nest, uint32_t access, ax_dtype dtype, uint32_t instance);
void ax_nest_store(ax_nest *nest, uint32_t access, LLVMValueRef value, uint32_t lanes, uint32_t instance);
/* The pointer as it is with the loops that are open now. */
LLVMValueRef ax_nest_pointer(ax_nest *nest, uint32_t access);
LLVMTypeRef ax_nest_element(const ax_nest *nest, uint32_t access); /* of its slot, in memory */
LLVMValueRef ax_nest_advance(ax_nest *nest, LLVMTypeRef element, LLVMValueRef pointer, LLVMValueRef count);
LLVMValueRef ax_nest_load_one(ax_nest *nest, LLVMTypeRef element, LLVMValueRef pointer);
/* A vector at `pointer`, `stride` elements apart, in memory's types. `mask` NULL: all lanes. */
LLVMValueRef ax_nest_load_lanes(ax_nest *nest, LLVMTypeRef element, LLVMValueRef pointer, int64_t stride,
                                LLVMValueRef mask);
void ax_nest_store_lanes(ax_nest *nest, LLVMTypeRef element, LLVMValueRef pointer, int64_t stride, LLVMValueRef mask,
                         LLVMValueRef value);

/* --- streamed.c --- */
void ax_nest_mark_streamed(ax_nest *nest, LLVMValueRef store,
                           uint32_t bytes); /* that it goes past the caches; to a multiple of its bytes */
/* Of the first store, along the vector loop: steps from `from` to where it comes to the beginning of a line of the cache; whether
   it is at one. */
LLVMValueRef ax_nest_steps_to_line(ax_nest *nest, LLVMValueRef from);
LLVMValueRef ax_nest_begins_line(ax_nest *nest, LLVMValueRef at);

/* --- paired.c --- */
/* Whether an access of this instance is one half of a pair's. The even half comes first. */
bool ax_nest_is_paired(const ax_nest *nest, uint32_t access, uint32_t instance);
LLVMValueRef ax_nest_load_paired(ax_nest *nest, uint32_t access, LLVMValueRef pointer, uint32_t instance);
void ax_nest_store_paired(ax_nest *nest, uint32_t access, LLVMValueRef pointer, LLVMValueRef value, uint32_t instance);

/* --- columns.c --- */
/* All lanes of a load that is done with its neighbours, in memory's types; `pointer`: of the first. False: it is not. Each load is
   done once between changes of `instances`. */
bool ax_nest_load_columns(ax_nest *nest, uint32_t access, LLVMValueRef pointer, uint32_t instance, LLVMValueRef *out);

/* --- held.c --- */
LLVMTypeRef ax_nest_held_type(const ax_codegen *cg, ax_dtype dtype, uint32_t lanes); /* as memory has it; of one bool, a bit */
/* The register of what an access is about, of an instance; NULL: it is not held. */
LLVMValueRef *ax_nest_held_at(const ax_nest *nest, const ax_nest_access *access, uint32_t instance);
LLVMValueRef ax_nest_load_held(ax_nest *nest, uint32_t access, ax_dtype dtype, LLVMValueRef held, bool guarded, uint32_t instance);
void ax_nest_store_held(ax_nest *nest, ax_dtype dtype, LLVMValueRef *held, LLVMValueRef value, uint32_t lanes);

/* --- narrow.c --- */
void ax_nest_begin_narrow(ax_nest *nest); /* what follows, to the end, is for blocks; computes what all of them share */
void ax_nest_narrow_block(ax_nest *nest, LLVMValueRef index);
void ax_nest_end_narrow(ax_nest *nest);
/* In a block, of what depends on its loops; in memory's types. */
LLVMValueRef ax_nest_load_narrow(ax_nest *nest, uint32_t access, uint32_t instance);
void ax_nest_store_narrow(ax_nest *nest, uint32_t access, LLVMValueRef value, uint32_t instance);
LLVMValueRef ax_nest_narrow_index(ax_nest *nest, uint32_t loop, uint32_t instance);

/* --- guards.c --- */
/* Finds the settled steps; false: there are no guards, or too many. */
bool ax_nest_find_settled(ax_nest *nest);
/* Inside all loops but the vector loop: whether steps are settled here. */
LLVMValueRef ax_nest_row_settled(ax_nest *nest);
typedef enum ax_guard_state { AX_KNOWN_NOT, AX_KNOWN_FALSE, AX_KNOWN_TRUE } ax_guard_state;
/* Of a condition, in the code in the making. */
ax_guard_state ax_nest_known(const ax_nest *nest, ax_ex node);
/* An INSIDE node where its loop's index is `index`, or from there on, lane by lane. */
LLVMValueRef ax_nest_guard(ax_nest *nest, ax_ex node, LLVMValueRef index, uint32_t lanes);

/* --- transposed.c --- */
void ax_nest_allocate_squares(ax_nest *nest);
/* `line` registers, each of lines of so many elements: inside of lines rows become columns. Row k then has, in its line j, column j
   * line + k. */
void ax_nest_turn_lines(ax_nest *nest, LLVMValueRef *rows, uint32_t line);
/* At the vector loop's level: reads each square at tile_start, turns it and leaves it in its tile. */
void ax_nest_fill_squares(ax_nest *nest);
LLVMValueRef ax_nest_load_transposed(ax_nest *nest, uint32_t access, ax_dtype dtype);

#endif
