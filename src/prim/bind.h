/* Adding equations to the trace in progress, for functions and transforms: binding with its checks, numbers made arrays, tangents
   and cotangents, and values made to spread alike. Rules of records, and the parts they share, are in prim/rules.h. */
#ifndef AX_PRIM_BIND_H
#define AX_PRIM_BIND_H

#include "axle/collectives.h"
#include "axle/ops.h"
#include "ir/program.h"

/* --- Binding: adds an equation. Unless it is a REGION or AX_LINEAR_EACH, its operands are cast first to spread alike. --- */
void ax_bind(const ax_prim *prim, const void *params, const ax_value *in, uint32_t in_count, ax_value *out,
             uint32_t out_count);
ax_value ax_bind1(const ax_prim *prim, const void *params, const ax_value *in, uint32_t in_count); /* one result */
/* Fails the trace with a message that names the primitive; returns poison. */
ax_value ax_reject(const ax_prim *prim, const char *format, ...) AX_PRINTF(2, 3);
/* The same for a function that is no primitive: the message names the function that the user called. */
ax_value ax_reject_as(const char *function, const char *format, ...) AX_PRINTF(2, 3);
/* Counts a negative dimension from the end. False: it is not in 0 .. rank then; the trace has failed. */
bool ax_dimension(const char *function, const char *what, int64_t *dimension, uint32_t rank);
/* Broadcasts the values to one shape by NumPy's rules, with broadcast_in_dim if needed. False: there is no common shape; the values
   are unchanged. */
bool ax_broadcast_together(ax_value *values, uint32_t count);
/* Gives numbers among the values the dtype of the first value that is not a number; they become scalars. */
void ax_give_dtype(const char *function, ax_value *values, uint32_t count);
/* For two operands that must both be parts of sums or neither: a number 0 becomes unreduced zeros if the other operand is
   unreduced. */
void ax_give_parts(const char *function, ax_value *pair);
/* Makes a number a scalar of this dtype; returns any other value unchanged. Errors are in `function`'s name. */
ax_value ax_as(const char *function, ax_value value, ax_dtype dtype);
/* Stores a number as the bits of an element of the dtype. False: the dtype cannot hold it; the trace has failed. */
bool ax_number_bits(const char *function, ax_value number, ax_dtype dtype, int64_t *bits);
double ax_number_real(ax_value number); /* rounded to a double */
ax_value ax_number_times(const char *function, ax_value number, int64_t factor); /* the same kind of number; factor > 0 */
/* A scratch array in the current trace's arena. NULL: no memory; the trace has failed. */
void *ax_trace_alloc(size_t bytes);

/* Copies the elements of a tensor of the same size and dtype. */
void ax_tensor_assign(ax_tensor *to, const ax_tensor *from);

ax_value ax_conjugated(ax_value x); /* of complex numbers; any others themselves */

/* --- Tangents and cotangents; the arguments may be the symbolic zero --- */
ax_value ax_add_any(ax_value a, ax_value b);
ax_value ax_filled(const ax_type *type, double value); /* an array of this type; if it is unreduced, its parts combine to `value` */
ax_value ax_zeros_of(const ax_type *type);
ax_value ax_zero_cotangent(const ax_type *primal); /* real zeros of the dual type */
ax_value ax_instantiate(ax_value tangent, ax_value primal_like); /* a symbolic zero becomes real zeros of the tangent type of
                                                                    primal_like */
ax_value ax_zero_like(ax_value x); /* the scalar 0 of x's dtype, spread as x is */

/* --- Spreading over the mesh (spread.c, casts.c) --- */
/* Makes x vary over all of `varying`: by pvary from invariant, by reduced_vary_cast from reduced. An unreduced x stays so; the
   equation that uses it then refuses it. */
ax_value ax_vary_to(ax_value x, ax_axis_set varying);
/* The same, and makes x reduced over the axes of wanted->reduced along which it is invariant. */
ax_value ax_spread_to(ax_value x, const ax_spread *wanted);
/* Adds to `all` the axes that an operand's partners must be cast over; `all` starts as {0}. */
void ax_spread_meet(ax_spread *all, const ax_spread *on);
/* Casts the operands so that they spread alike; returns `in` itself if they do already. NULL: the trace has failed. */
const ax_value *ax_spread_together(const ax_value *in, uint32_t count);
/* Casts x along `axes` by a cast without a kind; returns x if `axes` is empty. */
ax_value ax_cast(const ax_prim *prim, ax_value x, ax_axis_set axes);
/* vary_unreduced_cast along `axes`. */
ax_value ax_cast_unreduced(ax_value x, ax_axis_set axes, ax_unreduced_kind kind);
/* Makes a value unreduced by max or min vary, so that each device has its own part; returns any other x unchanged. */
ax_value ax_own_parts(ax_value x);
/* x on the first member along the names, zeros on the others. If x is the same on all members, these are parts that add up to
   it. */
ax_value ax_once(ax_value x, const ax_axes *names);
/* Spreads an invariant x as `on` says; along unreduced axes it becomes parts that combine to x. */
ax_value ax_placed(ax_value x, const ax_spread *on);
typedef enum ax_axis_state { AX_IS_INVARIANT, AX_IS_VARYING, AX_IS_REDUCED, AX_IS_UNREDUCED } ax_axis_state;
ax_axis_state ax_spread_state(const ax_spread *on, uint32_t axis);
const char *ax_state_name(const ax_spread *on, uint32_t axis); /* "varying" */
/* The advice for a value unreduced of this kind: "unreduced_pmax makes it invariant". */
const char *ax_reduce_advice(ax_unreduced_kind kind);

/* --- Batch dimensions --- */
/* The batching in progress, which traces inside inherit, so that rules need not pass it on. */
typedef struct ax_batching {
  const ax_axes *split; /* the axes that shard_maps split the batch over; NULL: there are none */
  ax_axis_set varying;  /* the checked axes among them that are in scope: values with a batch dimension vary over them */
} ax_batching;
ax_batching ax_batching_here(void); /* zero: there is none */
/* Sets it for the trace in progress, which ends before *batching does. False: the trace has failed. */
bool ax_batching_set(ax_batching *batching);
/* Moves dimension `from` to `to`. */
ax_value ax_move_dim(ax_value x, int from, int to);
/* Moves the batch dimension of x in front, or broadcasts an x without one. (It then varies over the axes that split the batch.) */
ax_value ax_batch_front(ax_value x, int dim, int64_t size);

#endif
