/* A kernel: one loop nest over a rectangular index space that stores one or more expressions.

     for i in dims[0 .. rank):                    the last reduce_rank dimensions are reduced over
       for each store s:
         slot[s.slot][ s.at(i) ]  =  expr(i)                                         if s.reduce is AX_SCALAR_NONE
         slot[s.slot][ s.at(i) ]  =  reduce over the reduced dimensions of expr(i)   otherwise

   A kernel that runs (`running`) has one reduced dimension and one store. It stores what is reduced so far in each step, so that
   the store's positions are those of all dimensions:

         slot[s.slot][ s.at(i) ]  =  reduce of expr(i) over the reduced index, from 0 to i's

   Slots are the arrays that it touches: dense, row-major. A kernel knows nothing of programs, buffers or devices, so equal
   kernels are compiled once. Kernels live in an arena. Adding to one fails for lack of memory and beyond AX_MAX_SLOTS slots;
   `failed` remembers it. */
#ifndef AX_PLAN_KERNEL_H
#define AX_PLAN_KERNEL_H

#include "axle/type.h"
#include "base/base.h"
#include "ir/scalar.h"

/* A node of a kernel's expression graph: its index in `exprs`; operands come before users. */
typedef uint32_t ax_ex;

/* The position along one dimension of a slot: coef * i[dim] + offset + clamp(dynamic, 0, limit). dim: -1 for none. dynamic:
   AX_NONE or an s64 node. A load's may depend on loop indices, as a look-up in a table does. A store's may not, so that no two
   steps write one place. */
typedef struct ax_position {
  int dim;
  int64_t coef, offset, limit;
  ax_ex dynamic;
} ax_position;

/* The integers that a node can be, as far as the way it is made tells (plan/kernel_range.h): low .. high, both included, as
   numbers of its dtype. is: false if nothing is known, as of bools, floats and large u64. */
typedef struct ax_integers {
  bool is;
  int64_t low, high;
} ax_integers;

typedef struct ax_expr {
  ax_scalar op;
  ax_dtype dtype; /* of the result */
  ax_ex arg[3];    /* LOAD: the first is its guard, or AX_NONE */
  int64_t imm;     /* also of ADD and SUB: 1 + the operand that is a contracted product (plan/contract.h); 0: none */
  uint32_t slot;   /* LOAD */
  const ax_position *at; /* LOAD: one for each dimension of the slot; INSIDE: one */
  ax_integers range;     /* follows from the others and from dims, which must not grow under an INDEX; no part of the structure */
} ax_expr;

enum { AX_MAX_SLOTS = 64, AX_MAX_GIVEN = 128 }; /* of one kernel: slots; numbers that its calls give */
/* The code generator makes loads of neighbouring elements of a row together: at most AX_LINE_LOADS of them, and in no fewer than
   AX_LINE_ROWS rows (jit/emit/columns.c). Lowering that spells a short row out as loads keeps to both (ops/argmax.c). */
enum { AX_LINE_LOADS = 16, AX_LINE_ROWS = 1 << 13 };
typedef struct ax_slot {
  ax_dtype dtype;
  uint32_t rank;
  int64_t dims[AX_MAX_RANK];
} ax_slot;

typedef struct ax_store {
  uint32_t slot;
  ax_ex expr; /* of the slot's dtype; a reduction may mix bf16, f16, f32, as it computes in f32 or wider and rounds once */
  ax_scalar reduce; /* NONE, ADD, MUL, MAX, MIN, AND, OR or XOR */
  const ax_position *at;  /* one for each dimension of the slot */
} ax_store;

typedef struct ax_loop_kernel {
  ax_arena *arena;
  bool failed;
  uint32_t rank, reduce_rank;
  uint32_t ranged; /* the dimension of which a call does a range: not a reduced one, if there is another; 0 at first */
  bool running;    /* see above; false at first */
  bool streams;    /* stores whole cache lines past the caches (plan/stream.c); false at first */
  uint32_t parts;  /* ranges worth cutting it into (plan/cut.c); not part of its structure; 1 at first */
  int64_t dims[AX_MAX_RANK + AX_MAX_RANK];
  uint32_t expr_count, slot_count, store_count, expr_capacity, slot_capacity, store_capacity;
  ax_expr *exprs;
  ax_slot *slots;
  ax_store *stores;
  uint64_t *table; /* by a node's hash: the hash, and 1 + the node; 0: free. Finds equal nodes */
  uint32_t table_size;
  bool extends; /* an ax_kernel_extend: what is added is looked for node by node, as few are */
} ax_loop_kernel;

/* A kernel with the buffer, by number, that each of its slots stands for. */
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
/* A load where `guard` holds; elsewhere the result is 0 (all bits). AX_NONE: always. A guard is an INSIDE node or a conjunction
   of them. Where it does not hold, positions may lie outside of the slot. */
ax_ex ax_kernel_load_where(ax_loop_kernel *kernel, uint32_t slot, const ax_position *at, ax_ex guard);
/* Whether 0 <= coef * i[dim] + offset < limit. The result is a constant node if that is the same in all steps. dim -1: no index. */
ax_ex ax_kernel_inside(ax_loop_kernel *kernel, int dim, int64_t coef, int64_t offset, int64_t limit);
/* The conjunction of two guards. AX_NONE stands for a guard that always holds, as operand and as result. */
ax_ex ax_kernel_both(ax_loop_kernel *kernel, ax_ex a, ax_ex b);
/* The number of a node's positions in `at`. */
static inline uint32_t ax_expr_positions(const ax_loop_kernel *kernel, const ax_expr *expr) {
  return expr->op == AX_LEAF_LOAD ? kernel->slots[expr->slot].rank : expr->op == AX_LEAF_INSIDE ? 1 : 0;
}
/* Equal nodes are shared. Unused operands are AX_NONE. */
ax_ex ax_kernel_op(ax_loop_kernel *kernel, ax_scalar op, ax_dtype dtype, ax_ex a, ax_ex b, ax_ex c);
ax_ex ax_kernel_op_imm(ax_loop_kernel *kernel, ax_scalar op, ax_dtype dtype, ax_ex a, int64_t imm);
/* An operation as `like`, which may be another kernel's, of three operands. What it is of may have become known (plan/kernel_known.h). */
ax_ex ax_kernel_op_like(ax_loop_kernel *kernel, const ax_expr *like, const ax_ex *args);
void ax_kernel_store(ax_loop_kernel *kernel, uint32_t slot, const ax_position *at, ax_ex expr, ax_scalar reduce);

/* A copy that takes no more memory than it needs, in any arena. NULL: out of memory. */
ax_loop_kernel *ax_kernel_copy(ax_arena *arena, const ax_loop_kernel *kernel);
/* A copy without stores, to which a few nodes are to be added: `more` of them at once have room. NULL: out of memory. */
ax_loop_kernel *ax_kernel_extend(ax_arena *arena, const ax_loop_kernel *kernel, uint32_t more);
size_t ax_kernel_copy_bytes(const ax_loop_kernel *kernel); /* bytes of the arena that the copy takes */

/* The extent of the ranged dimension; 1 if all dimensions are reduced over. */
int64_t ax_kernel_extent(const ax_loop_kernel *kernel);
/* Nanoseconds on one thread, a rough estimate. */
double ax_kernel_time(const ax_loop_kernel *kernel); /* plan/cut.c */
/* The most parts that work of this time is worth cutting into; below 2: it is not worth cutting. */
double ax_parts_worth(double nanoseconds);

/* at[d] = i[d]: the slot's dimensions are the kernel's first ones. */
void ax_at_identity(ax_position *at, uint32_t rank);
bool ax_at_is_identity(const ax_position *at, uint32_t rank);
/* Whether the kernel's steps touch, at these positions, every element of the slot's array once, in the order of memory. */
bool ax_kernel_covers(const ax_loop_kernel *kernel, uint32_t slot, const ax_position *at);
/* Whether the store makes every element of its array, once, in the order of memory; the kernel may have more dimensions behind, of one step. */
bool ax_kernel_makes(const ax_loop_kernel *kernel, const ax_store *store);

/* These compare structure only: equal kernels give the same machine code. The words are all of a kernel's structure, so
   different kernels have different words. A new field of the structure must be added to them. */
typedef void ax_take_word(void *context, uint64_t word);
void ax_kernel_words(const ax_loop_kernel *kernel, ax_take_word *take, void *context);
uint64_t ax_kernel_hash(const ax_loop_kernel *kernel);
bool ax_kernel_equal(const ax_loop_kernel *a, const ax_loop_kernel *b);
/* For messages and golden files. */
void ax_kernel_text(ax_text *text, const ax_loop_kernel *kernel);

#endif
