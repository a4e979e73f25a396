/* A kernel: one loop nest over a rectangular index space, storing one or more expressions.

     for i in dims[0 .. rank):                    the last reduce_rank dimensions are reduced over
       for each store s:  slot[s.slot][ s.at(i) ]  =  expr(i)      when s.reduce is AX_SCALAR_NONE (may use every dimension)
                          slot[s.slot][ s.at(i) ]  =  reduce over the reduced dimensions of expr(i)          otherwise

   Slots are the arrays it touches: dense, row-major. A kernel knows nothing of programs, buffers or devices, so equal kernels
   are compiled once. Kernels live in an arena; adding to one fails for lack of memory and beyond AX_MAX_SLOTS slots, which is
   remembered in `failed`. */
#ifndef AX_PLAN_KERNEL_H
#define AX_PLAN_KERNEL_H

#include "axle/type.h"
#include "base/base.h"
#include "ir/scalar.h"

/* A node of a kernel's expression graph: its index in `exprs`; operands come before users. */
typedef uint32_t ax_ex;

/* Position along one dimension of a slot:  coef * i[dim] + offset + clamp(dynamic, 0, limit).
   dim is -1 for none; dynamic is AX_NONE or an s64 node, which may depend on loop indices where the position is of a load: a table
   is looked up so. A store's does not, so that no two steps that follow from each other write one place. */
typedef struct ax_position {
  int dim;
  int64_t coef, offset, limit;
  ax_ex dynamic;
} ax_position;

typedef struct ax_expr {
  ax_scalar op;
  ax_dtype dtype; /* of the result */
  ax_ex arg[3];    /* LOAD: the first is its guard, or AX_NONE */
  int64_t imm;
  uint32_t slot;   /* LOAD */
  const ax_position *at; /* LOAD: one a dimension of the slot; INSIDE: one */
} ax_expr;

enum { AX_MAX_SLOTS = 64 }; /* of one kernel */
typedef struct ax_slot {
  ax_dtype dtype;
  uint32_t rank;
  int64_t dims[AX_MAX_RANK];
} ax_slot;

typedef struct ax_store {
  uint32_t slot;
  ax_ex expr; /* of the slot's dtype; bf16 and f16 are reduced in f32 or wider and rounded once, so a reduction may also go from one
                 to another of bf16, f16 and f32 */
  ax_scalar reduce; /* NONE, ADD, MUL, MAX, MIN, AND or OR */
  const ax_position *at;  /* one a dimension of the slot */
} ax_store;

typedef struct ax_loop_kernel {
  ax_arena *arena;
  bool failed;
  uint32_t rank, reduce_rank;
  uint32_t ranged; /* the dimension of which a call does a range, one that is not reduced over (where there is any); 0 at first */
  bool streams;    /* its store goes past the caches, where it writes whole lines of them (plan/stream.c); false at first */
  uint32_t parts;  /* into how many ranges it is worth cutting (plan/cut.c); no matter of structure; 1 at first */
  int64_t dims[AX_MAX_RANK + AX_MAX_RANK];
  uint32_t expr_count, slot_count, store_count, expr_capacity, slot_capacity, store_capacity;
  ax_expr *exprs;
  ax_slot *slots;
  ax_store *stores;
  uint32_t *table, table_size; /* 1 + a node by its hash, or 0: how equal nodes are found */
} ax_loop_kernel;

/* A kernel at work: the buffer, by number, that each of its slots stands for. */
typedef struct ax_bound {
  ax_loop_kernel *kernel;
  uint32_t *buffers;
} ax_bound;

ax_loop_kernel *ax_kernel_create(ax_arena *arena, uint32_t rank, uint32_t reduce_rank, const int64_t *dims); /* NULL: no memory */
uint32_t ax_kernel_slot(ax_loop_kernel *kernel, ax_dtype dtype, uint32_t rank, const int64_t *dims);
ax_ex ax_kernel_const(ax_loop_kernel *kernel, ax_dtype dtype, int64_t bits);
ax_ex ax_kernel_index(ax_loop_kernel *kernel, uint32_t dim);
ax_ex ax_kernel_axis(ax_loop_kernel *kernel, uint32_t axis);
ax_ex ax_kernel_load(ax_loop_kernel *kernel, uint32_t slot, const ax_position *at);
/* Loads only where `guard` holds, and is 0, all bits, elsewhere; AX_NONE: everywhere. A guard is an INSIDE or a conjunction of
   some; where it does not hold, the positions may be outside of the slot. */
ax_ex ax_kernel_load_where(ax_loop_kernel *kernel, uint32_t slot, const ax_position *at, ax_ex guard);
/* Whether 0 <= coef * i[dim] + offset < limit; a constant where that is one. dim -1: none. */
ax_ex ax_kernel_inside(ax_loop_kernel *kernel, int dim, int64_t coef, int64_t offset, int64_t limit);
/* Both; AX_NONE stands for what always holds, and comes back for it. */
ax_ex ax_kernel_both(ax_loop_kernel *kernel, ax_ex a, ax_ex b);
/* The positions of a node: how many there are in `at`. */
static inline uint32_t ax_expr_positions(const ax_loop_kernel *kernel, const ax_expr *expr) {
  return expr->op == AX_LEAF_LOAD ? kernel->slots[expr->slot].rank : expr->op == AX_LEAF_INSIDE ? 1 : 0;
}
/* Equal nodes are shared. Unused operands are AX_NONE. */
ax_ex ax_kernel_op(ax_loop_kernel *kernel, ax_scalar op, ax_dtype dtype, ax_ex a, ax_ex b, ax_ex c);
ax_ex ax_kernel_op_imm(ax_loop_kernel *kernel, ax_scalar op, ax_dtype dtype, ax_ex a, int64_t imm);
void ax_kernel_store(ax_loop_kernel *kernel, uint32_t slot, const ax_position *at, ax_ex expr, ax_scalar reduce);

/* A copy as large as it needs to be, in an arena of its own or another's; to be read, though it may grow like any other. NULL:
   no memory. */
ax_loop_kernel *ax_kernel_copy(ax_arena *arena, const ax_loop_kernel *kernel);
size_t ax_kernel_copy_bytes(const ax_loop_kernel *kernel); /* what the copy takes of the arena */

/* Of the dimension it is ranged over; 1 where all are reduced over. */
int64_t ax_kernel_extent(const ax_loop_kernel *kernel);
/* Nanoseconds on one thread, to tell microseconds from milliseconds. */
double ax_kernel_time(const ax_loop_kernel *kernel); /* plan/cut.c */
/* Into how many parts, at most, it is worth cutting what takes so long; below 2: it is not. */
double ax_parts_worth(double nanoseconds);

/* at[d] = i[d]: the slot's dimensions are the loop's first ones. */
void ax_at_identity(ax_position *at, uint32_t rank);
bool ax_at_is_identity(const ax_position *at, uint32_t rank);
/* Going through its steps, a kernel comes to every element of a slot's array at these positions, as it lies. */
bool ax_kernel_covers(const ax_loop_kernel *kernel, uint32_t slot, const ax_position *at);

/* Structure only: equal kernels give the same machine code. The words say all of it, so that those of different kernels differ: who
   adds to the structure adds to them. */
typedef void ax_take_word(void *context, uint64_t word);
void ax_kernel_words(const ax_loop_kernel *kernel, ax_take_word *take, void *context);
uint64_t ax_kernel_hash(const ax_loop_kernel *kernel);
bool ax_kernel_equal(const ax_loop_kernel *a, const ax_loop_kernel *b);
/* For messages and golden files. */
void ax_kernel_text(ax_text *text, const ax_loop_kernel *kernel);

#endif
