/* A schedule: the order in which a kernel's index space is walked. It is made from the kernel alone, before any code.

   Dimensions become loops: those of size 1 vanish, and neighbours through which every access is linear become one. One loop is
   the vector loop: its indices lie side by side in the lanes of a register. The shapes of nest:

     LANES      par.. red.. V         The vector loop is innermost. Reductions over it keep `unroll` partial sums, added at the end.
     BLOCK      par.. V red..         Results lie along V; `unroll` vectors of them stay in registers while red.. runs.
     STRIP      par.. V red.. r       One vector of results (V or rows r are short); `unroll` partial sums along r, added last.
     TILE       par.. tile red.. r V  Many results (V is long) over many rows: sums live in a tile on the stack, so that
                                      memory is read row by row; `unroll` rows at a time.
     RUNS       par.. red.. p V       As LANES, if rows along p lie nearer to each other than rows that are added up: a tile
                                      on the stack has a vector of sums for each p, so that memory is read in its order.
     COLUMNS    par.. V c             No reductions; loads lie along the short loop c; a vector of its rows at a time (columns.c).
     NARROW     par.. R c.. V         No reductions; the loops after R are so short that a vector takes several rows (narrow.c).
     TRANSPOSE  par.. block V w       Loads that lie along w are read as squares, lanes by lanes, and transposed. No reductions, or
                                      all of them over V and w.
                                      Short V and w are made longer with loops around them (composed.c).

   The shape depends on the kernel's static sizes only, never on the range it is called with. So results do not depend on the
   range either. */
#ifndef AX_JIT_NEST_SCHEDULE_H
#define AX_JIT_NEST_SCHEDULE_H

#include "plan/kernel.h"

enum { AX_MAX_LOOPS = 2 * AX_MAX_RANK + 1 };
enum { AX_FEW_ADDITIONS = 16, AX_MOST_ROW = 16 /* as AX_MAX_UNROLL */ };

/* The vector registers of the machine that code is made for. */
typedef struct ax_registers {
  uint32_t bytes; /* 64, 32 or 16 */
  bool f16;       /* operations on f16 are instructions (AVX512-FP16); elsewhere each is computed in f32 and rounded */
} ax_registers;

typedef struct ax_loop {
  int64_t extent;
  int64_t scale; /* ranged: iterations for each step of the kernel's ranged dimension */
  int64_t inner; /* two loops merged into one (composed.c): iterations of the inner one; 0: not merged */
  bool reduced;
  bool ranged; /* runs from begin * scale to end * scale */
} ax_loop;

/* A load or store as a linear function of the loop indices, in elements of its slot. Dynamic starts are added to it. */
typedef struct ax_nest_access {
  bool live;
  bool transposed; /* TRANSPOSE: read through a transposed square */
  uint64_t moved;  /* loops that dynamic starts depend on, a bit each; 0 for stores */
  uint32_t slot;
  ax_ex guard;     /* of a load: the condition under which it is done; AX_NONE: always */
  const ax_position *at; /* holds the dynamic starts */
  int64_t offset;
  int64_t stride[AX_MAX_LOOPS];
  int64_t uneven[AX_MAX_LOOPS]; /* elements added after each `inner` iterations of the loop */
} ax_nest_access;

typedef struct ax_stretch {
  int64_t first, end;
} ax_stretch;

typedef enum ax_nest_shape {
  AX_NEST_LANES,
  AX_NEST_BLOCK,
  AX_NEST_STRIP,
  AX_NEST_TILE,
  AX_NEST_RUNS,
  AX_NEST_COLUMNS,
  AX_NEST_NARROW,
  AX_NEST_TRANSPOSE
} ax_nest_shape;

typedef struct ax_nest_schedule {
  const ax_loop_kernel *kernel; /* the given kernel, or the same kernel on bits (bits.c) */
  ax_dtype bits_of;    /* the dtype whose bits its AX_U16, or of a byte its AX_U8, elements are; AX_NO_DTYPE: they are numbers */
  bool reduces;        /* has stores that reduce */
  bool running;        /* stores what is reduced so far in each step (plan/kernel.h) */
  bool in_line;        /* exp of f32 is code in line: of a few, and of so many vectors that the time to compile comes back */
  bool wide;           /* floats below f64 are summed in f64, since one accumulator would take more than AX_FEW_ADDITIONS */
  uint32_t weight;     /* simple operations of the body, roughly */
  uint32_t loop_count; /* at least 1 */
  uint32_t vector;     /* the vector loop */
  uint32_t outer;      /* count of parallel loops outside everything else */
  uint32_t unrolled;   /* the loop of which `unroll` iterations are done at a time: `vector`, or the last reduced loop */
  uint32_t unroll;     /* iterations done at a time */
  uint32_t listed;     /* RUNS: the loop p */
  int64_t blocked;     /* LANES: so many iterations of the last parallel loop at a time, for each of the one before it; 0: all */
  uint32_t lanes;
  bool streams;        /* LANES, TRANSPOSE: whole cache lines are stored past the caches */
  bool called;         /* TRANSPOSE: the two innermost loops are a call of jit/turn, where the kernel is a function of its own */
  bool paired;         /* instances are taken in pairs whose elements alternate (paired.c); unrolled == vector */
  uint32_t vector_bytes; /* of the machine's registers */
  bool f16;              /* ax_registers.f16 */
  uint32_t narrow;       /* NARROW: iterations of all loops after R together */
  int64_t work; /* iterations in all */
  ax_nest_shape shape;
  ax_loop loops[AX_MAX_LOOPS];   /* outermost first, as in the shapes above */
  int loop_of_dim[AX_MAX_LOOPS]; /* kernel dimension -> loop; -1: its index is always 0 */
  ax_nest_access *accesses;           /* by node for loads, then by store */
  bool *live;                    /* by node: whether some store needs it */
  bool *still;                   /* by node: whether a store starts where it says, so that it must be known before the loops */
  uint64_t *deps;                /* by node: the loops it depends on, a bit each */
  ax_stretch *stretches;         /* by INSIDE node: the iterations of its loop in which it holds */
} ax_nest_schedule;

/* often: the kernel is run many times, as in a loop, so that code may take longer to compile. Memory comes from the arena.
   AX_OUT_OF_MEMORY. */
AX_MUST_USE ax_status ax_nest_schedule_create(ax_arena *arena, const ax_loop_kernel *kernel, ax_registers registers, bool often,
                                              ax_nest_schedule **out);

/* Whether an operation on f16 gives the same bits in f16 as computed in f32 and rounded: f32 has 24 digits, and 2 * 11 + 2 are
   enough for sums, products, quotients and roots. Functions and powers take several operations, and round once. */
bool ax_scalar_in_f16(ax_scalar op);

static inline ax_nest_access *ax_nest_schedule_store(const ax_nest_schedule *schedule, uint32_t store) {
  return &schedule->accesses[schedule->kernel->expr_count + store];
}
static inline bool ax_nest_schedule_depends(const ax_nest_schedule *schedule, ax_ex node, uint32_t loop) {
  return schedule->deps[node] >> loop & 1;
}
/* The level at which a value with these dependences is computed: 1 + the innermost loop in `deps`, or 0 for none. */
static inline uint32_t ax_nest_schedule_level(uint64_t deps) { return deps == 0 ? 0 : 64 - (uint32_t)__builtin_clzll(deps); }
static inline uint32_t ax_nest_schedule_access_count(const ax_nest_schedule *schedule) {
  return schedule->kernel->expr_count + schedule->kernel->store_count;
}

/* Steps of making a schedule (loops.c), in this order: marks the live nodes; makes accesses, by dimension, and loops; finds the
   loops that each node depends on, to be called again whenever loops change. */
void ax_nest_schedule_mark_live(ax_nest_schedule *schedule);
void ax_nest_schedule_make_loops(ax_nest_schedule *schedule);
void ax_nest_schedule_find_deps(ax_nest_schedule *schedule);
/* Replaces the kernel by one on bits if it only moves or compares narrow floats (bits.c). Called when the schedule has live
   nodes and no loops yet. AX_OUT_OF_MEMORY. */
AX_MUST_USE ax_status ax_nest_schedule_take_bits(ax_nest_schedule *schedule, ax_arena *arena);
uint64_t ax_access_deps(const ax_nest_schedule *schedule, const ax_nest_access *access);
/* The loops that the access's dynamic starts depend on, of a store too. */
uint64_t ax_access_starts(const ax_nest_schedule *schedule, const ax_nest_access *access);
/* Whether it has any, which need not depend on loops. */
static inline bool ax_access_has_starts(const ax_nest_schedule *schedule, const ax_nest_access *access) {
  for (uint32_t d = 0; d < schedule->kernel->slots[access->slot].rank; d++)
    if (access->at[d].dynamic != AX_NONE) return true;
  return false;
}
static inline bool ax_access_is_moved(const ax_nest_access *access, uint32_t loop) { return access->moved >> loop & 1; }

bool ax_nest_schedule_can_pair(
    const ax_nest_schedule *schedule); /* paired.c; reads all fields but `unroll` and those set after it */

bool ax_nest_schedule_can_stream(const ax_nest_schedule *schedule); /* streamed.c; reads the order of loops */
/* streamed.c: whether every vector of the first store is a line of the cache, where the first one is. */
bool ax_nest_schedule_stores_lines(const ax_nest_schedule *schedule);

/* Whether the operation is exp of f32, of the usual accuracy; whether it is code in line. */
bool ax_expr_is_exp(const ax_expr *expr);
static inline bool ax_nest_schedule_in_line(const ax_nest_schedule *schedule, const ax_expr *expr) {
  return schedule->in_line && ax_expr_is_exp(expr);
}

/* latency.c: how many vectors of LANES without reductions are computed side by side: a power of two. AX_OUT_OF_MEMORY. */
AX_MUST_USE ax_status ax_nest_schedule_choose_abreast(const ax_nest_schedule *schedule, ax_arena *arena, uint32_t *out);

/* squares.c: the least extent of the loop that squares lie along. The number of lanes is enough if it is less. */
enum { AX_FULL_SQUARE = 16, AX_SHORT_SQUARE = 8 };
/* Whether a load would be read in such squares if `vector` were the vector loop. */
bool ax_nest_schedule_can_turn(const ax_nest_schedule *schedule, const ax_nest_access *access, uint32_t vector, uint32_t least);
/* Picks loop w for TRANSPOSE: the loop of the first load that can be read in squares. Marks all loads that lie along it. -1:
   there is none. */
int ax_nest_schedule_choose_turned(ax_nest_schedule *schedule, uint32_t least);
/* Lanes of the squares' registers. They are `whole` if that divides the vector loop (0, or if it does not: the schedule's), so
   that cache lines are read and written whole and no masks are needed; fewer, but at least 4, where loops are shorter. */
uint32_t ax_nest_schedule_turned_lanes(const ax_nest_schedule *schedule, uint32_t along, uint32_t whole);
/* Whether short squares cover the loops without a rest, and a core's caches hold all that is read. For larger arrays it matters
   more that several rows fill whole cache lines. */
bool ax_nest_schedule_fits_squares(const ax_nest_schedule *schedule);

/* woven.c: whether the accesses go the same way, from starts that are computed or not, and so are always as far apart as their offsets are. */
bool ax_nest_schedule_go_together(const ax_nest_schedule *schedule, const ax_nest_access *a, const ax_nest_access *b);

/* woven.c: the stores that fill memory together with this one along the vector loop, each of them every `count`th element: in the order of
   memory. 0: there are none. `stores` has AX_MOST_WOVEN entries. */
enum { AX_MOST_WOVEN = 16 };
uint32_t ax_nest_schedule_woven(const ax_nest_schedule *schedule, uint32_t store, uint32_t *stores);
/* Whether so many columns of elements of `bytes` take turns in registers sooner than each is moved by itself. Few do; of more,
   eight bytes are few lanes, which 5 or 7 columns fill badly, and shuffles of less than four bytes take longer, also to compile. */
static inline bool ax_nest_takes_turns(int64_t columns, size_t bytes) {
  return columns <= 4 || bytes == 4 || (bytes == 8 && (columns & (columns - 1)) == 0);
}
bool ax_nest_schedule_weaves(const ax_nest_schedule *schedule); /* all of its stores */

/* Whether the kernel only moves elements, from places that no value and no condition decides (composed.c). */
bool ax_nest_schedule_only_moves(const ax_nest_schedule *schedule);
/* composed.c: makes short loops longer, if squares can be transposed along them; then sets the vector loop, and *along to the
   loop that squares lie along. *along = -1: nothing is changed. AX_OUT_OF_MEMORY. */
AX_MUST_USE ax_status ax_nest_schedule_compose(ax_nest_schedule *schedule, ax_arena *arena, int *along);

/* columns.c: whether a load that steps over rows along `loop` is done together with its neighbours. */
ax_ex ax_nest_schedule_first_of_column(const ax_nest_schedule *schedule,
                                       ax_ex load); /* the first load of its element; itself otherwise */
bool ax_nest_schedule_in_columns(const ax_nest_schedule *schedule, ax_ex load, uint32_t loop);
/* For a kernel without reductions: the short loop that a load lies along, while it steps over rows along the vector loop. With
   LANES the load would go over all rows once for each of their elements. -1: there is none. */
int ax_nest_schedule_choose_columns(const ax_nest_schedule *schedule);
/* For a load of a reduction that steps over rows along `loop`, and along each row by the last reduced loop: the best number of
   elements of a row to load at a time. 0: it is no such load. */
uint32_t ax_nest_schedule_row_line(const ax_nest_schedule *schedule, const ax_nest_access *access, uint32_t loop);

/* called.c: the value of `called`, once all else is decided but `streams`. */
bool ax_nest_schedule_can_call(const ax_nest_schedule *schedule);

/* NARROW (narrow.c): instructions for each element, with the loops in their present order. Below 0: the shape is not possible. */
enum { AX_MAX_NARROW = 48 };
double ax_narrow_cost(const ax_nest_schedule *schedule);

static inline int64_t ax_stride_length(int64_t stride) { return stride < 0 ? -stride : stride; }

/* Whether a load with this stride reads all elements in between and picks its own; with longer strides it gathers. */
static inline bool ax_stride_picks(int64_t stride, uint32_t lanes) {
  return stride > 1 && stride <= 8 && stride * 2 <= (int64_t)lanes;
}

/* Guarded loads do not read what lies in between, since that may be outside of memory. */
static inline bool ax_access_picks(const ax_nest_access *access, uint32_t loop, uint32_t lanes) {
  return access->guard == AX_NONE && ax_stride_picks(access->stride[loop], lanes);
}

#endif
