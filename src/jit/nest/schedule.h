/* A schedule: how a kernel's index space is walked. Made from the kernel alone, before any code.

   Dimensions become loops: those of size 1 vanish, and neighbours through which every access is linear become one. One loop
   is the vector loop: its indices lie side by side in the lanes of a register. The shapes of nest:

     LANES   par.. red.. V        the vector loop is innermost. Reductions over it keep `unroll` vectors and add up at the end.
     BLOCK   par.. V red..        results lie along V; `unroll` vectors of them stay in registers while red.. runs.
     STRIP   par.. V red.. r      one vector of results (V is short, or r are rows that are short); `unroll` partial sums along r,
   added up at the end. TILE    par.. tile red.. r V many results (V is long) over many rows: sums live in a tile on the stack, so
   that memory is walked row by row; `unroll` rows at a time. RUNS    par.. red.. p V      as LANES, where rows along p lie nearer
   to each other than those that are added up: for each p a vector of sums lives in a tile on the stack, so that memory is walked in
   its order COLUMNS par.. V c            no reductions; rows of the short c, which loads lie along, are done a vector of rows at a
   time (columns.c) NARROW       par.. R c.. V        no reductions; the loops after R are so short that a vector takes several rows
   (narrow.c). TRANSPOSE    par.. block V w      no reductions; loads that lie along w are read as squares, lanes by lanes, and
   transposed. Short V and w are made longer with loops around them (composed.c).

   Which one it is depends on the kernel's static sizes only, never on the range it is called with: so neither do the results. */
#ifndef AX_JIT_NEST_SCHEDULE_H
#define AX_JIT_NEST_SCHEDULE_H

#include "plan/kernel.h"

enum { AX_MAX_LOOPS = 2 * AX_MAX_RANK + 1 };
enum { AX_FEW_ADDITIONS = 16, AX_MOST_ROW = 16 /* as AX_MAX_UNROLL */ };

typedef struct ax_loop {
  int64_t extent;
  int64_t scale; /* ranged: how many of its iterations one step of the kernel's ranged dimension is */
  int64_t inner; /* of two loops that have become one (composed.c): iterations of the inner one; 0: it is one */
  bool reduced;
  bool ranged; /* runs from begin * scale to end * scale */
} ax_loop;

/* A load or store as a linear function of the loop indices, in elements of its slot; dynamic starts are added to it. */
typedef struct ax_nest_access {
  bool live;
  bool transposed; /* TRANSPOSE: read through a transposed square */
  uint64_t moved;  /* the loops that dynamic starts depend on, a bit each; 0 of stores */
  uint32_t slot;
  ax_ex guard;     /* of a load: where it is done; AX_NONE: everywhere */
  const ax_position *at; /* for the dynamic starts */
  int64_t offset;
  int64_t stride[AX_MAX_LOOPS];
  int64_t uneven[AX_MAX_LOOPS]; /* and so much more after each `inner` iterations of the loop */
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
  const ax_loop_kernel *kernel; /* the one asked for, or the same on bits (bits.c) */
  ax_dtype bits_of;    /* what its elements of AX_U16 are the bits of; AX_NO_DTYPE: numbers */
  bool reduces;        /* has stores that reduce */
  bool wide;           /* sums of narrower floats are made in f64: one accumulator would take more than AX_FEW_ADDITIONS */
  uint32_t weight;     /* nodes of its body, times its stores, roughly */
  uint32_t loop_count; /* at least 1 */
  uint32_t vector;     /* the vector loop */
  uint32_t outer;      /* so many parallel loops stand outside everything else */
  uint32_t unrolled;   /* the loop of which several iterations are done at a time: `vector`, or the last reduced one */
  uint32_t unroll;     /* how many */
  uint32_t listed;     /* RUNS: the loop p */
  int64_t blocked;     /* LANES: so many iterations of the last parallel loop at a time, for each of the one before it; 0: all */
  uint32_t lanes;
  bool streams;        /* LANES, TRANSPOSE: whole lines of a cache are stored past it */
  bool paired;         /* instances are taken in pairs, whose elements alternate (paired.c); the unrolled loop is the vector loop */
  uint32_t vector_bytes; /* of the machine's registers */
  uint32_t narrow;       /* NARROW: iterations of the loops after R, together */
  int64_t work; /* iterations in all */
  ax_nest_shape shape;
  ax_loop loops[AX_MAX_LOOPS];   /* outermost first, as in the shapes above */
  int loop_of_dim[AX_MAX_LOOPS]; /* kernel dimension -> loop; -1: its index is always 0 */
  ax_nest_access *accesses;           /* by node for loads, then by store */
  bool *live;                    /* by node: some store needs it */
  uint64_t *deps;                /* by node: the loops it depends on, a bit each */
  ax_stretch *stretches;         /* by node, of INSIDE: the iterations of its loop in which it holds */
} ax_nest_schedule;

/* `vector_bytes`: of the machine's registers. Memory comes from the arena. AX_OUT_OF_MEMORY. */
AX_MUST_USE ax_status ax_nest_schedule_create(ax_arena *arena, const ax_loop_kernel *kernel, uint32_t vector_bytes,
                                         ax_nest_schedule **out);

static inline ax_nest_access *ax_nest_schedule_store(const ax_nest_schedule *schedule, uint32_t store) {
  return &schedule->accesses[schedule->kernel->expr_count + store];
}
static inline bool ax_nest_schedule_depends(const ax_nest_schedule *schedule, ax_ex node, uint32_t loop) {
  return schedule->deps[node] >> loop & 1;
}
/* 1 + the position of the innermost loop in `deps`; 0 for none: where a value with these dependences is computed. */
static inline uint32_t ax_nest_schedule_level(uint64_t deps) { return deps == 0 ? 0 : 64 - (uint32_t)__builtin_clzll(deps); }
static inline uint32_t ax_nest_schedule_access_count(const ax_nest_schedule *schedule) {
  return schedule->kernel->expr_count + schedule->kernel->store_count;
}

/* loops.c, in this order: what is live; accesses and loops, by dimension; what depends on which loops, once more whenever these
   change. */
void ax_nest_schedule_mark_live(ax_nest_schedule *schedule);
void ax_nest_schedule_make_loops(ax_nest_schedule *schedule);
void ax_nest_schedule_find_deps(ax_nest_schedule *schedule);
/* bits.c: of a schedule that says what is live, and no more yet. AX_OUT_OF_MEMORY. */
AX_MUST_USE ax_status ax_nest_schedule_take_bits(ax_nest_schedule *schedule, ax_arena *arena);
uint64_t ax_access_deps(const ax_nest_schedule *schedule, const ax_nest_access *access);
static inline bool ax_access_is_moved(const ax_nest_access *access, uint32_t loop) { return access->moved >> loop & 1; }

bool ax_nest_schedule_can_pair(
    const ax_nest_schedule *schedule); /* paired.c; by all but `unroll` and what comes after it in the making */

bool ax_nest_schedule_can_stream(const ax_nest_schedule *schedule); /* streamed.c; by its order of loops */

/* squares.c. The least extent of the loop that squares lie along, at most. */
enum { AX_FULL_SQUARE = 16, AX_SHORT_SQUARE = 8 };
/* Whether a load would be read in such squares, were `vector` the vector loop. */
bool ax_nest_schedule_can_turn(const ax_nest_schedule *schedule, const ax_nest_access *access, uint32_t vector, uint32_t least);
/* Picks the loop w for TRANSPOSE by the first load that wants one, and marks all that lie along it. -1: none does. */
int ax_nest_schedule_choose_turned(ax_nest_schedule *schedule, uint32_t least);
/* Squares of whole registers (`whole` lanes; 0: of no more than the schedule's), so that lines of a cache are read and written
   whole; but no larger than the loops are. */
uint32_t ax_nest_schedule_turned_lanes(const ax_nest_schedule *schedule, uint32_t along, uint32_t whole);
/* What short squares leave nothing over of, and a core's caches hold: elsewhere it counts that several rows make whole lines. */
bool ax_nest_schedule_fits_squares(const ax_nest_schedule *schedule);

/* composed.c: makes short loops longer, where squares can be turned along them; then sets the vector loop, and in *along the one
 *that squares lie along. along -1: nothing is changed. AX_OUT_OF_MEMORY. */
AX_MUST_USE ax_status ax_nest_schedule_compose(ax_nest_schedule *schedule, ax_arena *arena, int *along);

/* columns.c: whether a load that steps over rows along `loop` is done with those of its neighbours. */
bool ax_nest_schedule_in_columns(const ax_nest_schedule *schedule, ax_ex load, uint32_t loop);
/* Of a kernel without reductions: the short loop that a load lies along, which would step over rows. By LANES it would go over all
   of them once for each of their elements. -1: there is none. */
int ax_nest_schedule_choose_columns(const ax_nest_schedule *schedule);
/* Of a load of a reduction's that would step over rows along `loop`, and along them by the last reduced loop: how many elements of
   a row are best taken at a time; 0: it does not. */
uint32_t ax_nest_schedule_row_line(const ax_nest_schedule *schedule, const ax_nest_access *access, uint32_t loop);

/* NARROW (narrow.c), of a schedule with its loops in that order: instructions an element; below 0: it cannot be done so. */
enum { AX_MAX_NARROW = 48 };
double ax_narrow_cost(const ax_nest_schedule *schedule);

static inline int64_t ax_stride_length(int64_t stride) { return stride < 0 ? -stride : stride; }

/* Loads of short strides read everything between and pick; with longer ones, they gather. */
static inline bool ax_stride_picks(int64_t stride, uint32_t lanes) {
  return stride > 1 && stride <= 8 && stride * 2 <= (int64_t)lanes;
}

/* Guarded loads do not: they may reach outside of memory. */
static inline bool ax_access_picks(const ax_nest_access *access, uint32_t loop, uint32_t lanes) {
  return access->guard == AX_NONE && ax_stride_picks(access->stride[loop], lanes);
}

#endif
