/* Checks of numbers. After the operations of an equation, a check of each result reads it and looks for NaNs or infinities. The
   result is in memory then, since a check is a reader like any other; fusion goes on around it.

     log b1 = b0                kernel of b0 b1
                                check log b1 of b0       b1 has a NaN and b0 has none: log made it

   An equation makes such a number if its result has one and none of its operands has. Numbers that come in with an argument or a
   constant, or with a carry, are not reported. Only operations that can make one are checked. Kernels that move or choose
   elements cannot, so they need no check, and values that are overwritten in place stay so.

   The sum over a group is made of operands on other devices. Each device says whether its own operand has such a number, in a
   scalar that goes the same way as the operand:

     psum b2 = b1               kernel of b1 b3            b3 = NaN if b1 has one, else 0
                                start, done: b3 to b4      b4: whether some member's operand had one
                                check psum b2 of b4 */
#include <math.h>

#include "axle/exec.h"
#include "ir/number.h"
#include "ir/prim.h"
#include "plan/lowering.h"
#include "plan/op.h"

enum { most_kinds = 2 };
static const uint32_t kinds[most_kinds] = {AX_CHECK_NAN, AX_CHECK_INF};

/* --- Operations that can make a NaN or an infinity --- */

static bool sums(const ax_lower *lower, const ax_op *op, ax_op_sum *out) {
  const ax_op_rules *rules = ax_op_rules_of(op);
  return rules->sums != NULL && rules->sums(lower->plan, op, out);
}

static bool may_make(const ax_lower *lower, const ax_op *op) {
  const ax_op_rules *rules = ax_op_rules_of(op);
  ax_op_sum sum;
  return (rules->makes_nonfinite != NULL && rules->makes_nonfinite(op)) || sums(lower, op, &sum);
}

/* An equation without operands, or of empty ones, gives what its parameters and its definition say. */
static bool has_operands(const ax_lower *lower, const ax_eqn *eqn, const uint32_t *in) {
  for (uint32_t k = 0; k < eqn->in_count; k++)
    if (ax_type_elems(&ax_lower_get(lower, in[k])->type) > 0) return true;
  return false;
}

/* --- What it is made of --- */

static ax_ex constant(ax_lower *lower, ax_dtype dtype, double value) {
  int64_t bits = 0;
  ax_number_store(dtype, &bits, 0, (ax_number){.f = value});
  return ax_kernel_const(lower->kernel, dtype, bits);
}

/* An f32 scalar: a number of the kind if the buffer has one, 0 if not. */
static ax_status add_own(ax_lower *lower, uint32_t buffer, uint32_t kind, uint32_t *out) {
  const ax_type scalar = ax_array_type(AX_F32, AX_DIMS());
  const ax_buffer from = *ax_lower_get(lower, buffer);
  ax_dtype dtype = from.type.dtype;
  ax_position at[AX_MAX_RANK];
  ax_at_identity(at, from.type.rank);
  AX_TRY(ax_lower_buffer(lower, &scalar, from.axes, out));
  AX_TRY(ax_lower_kernel_begin(lower, from.type.rank, from.type.rank, from.type.dims));
  ax_loop_kernel *kernel = lower->kernel;
  ax_ex x = ax_lower_load(lower, buffer, at), is;
  if (kind == AX_CHECK_NAN) is = ax_kernel_op(kernel, AX_SCALAR_NE, AX_BOOL, x, x, AX_NONE);
  else if (!ax_has_infinity(dtype)) is = ax_kernel_op(kernel, AX_SCALAR_LT, AX_BOOL, x, x, AX_NONE); /* never */
  else is = ax_kernel_op(kernel, AX_SCALAR_EQ, AX_BOOL, ax_kernel_op(kernel, AX_SCALAR_ABS, dtype, x, AX_NONE, AX_NONE),
                         constant(lower, dtype, (double)INFINITY), AX_NONE);
  ax_ex one = constant(lower, AX_F32, kind == AX_CHECK_NAN ? (double)NAN : (double)INFINITY), none = constant(lower, AX_F32, 0);
  ax_ex said = ax_kernel_op(kernel, AX_SCALAR_SELECT, AX_F32, is, one, none);
  ax_lower_store(lower, *out, NULL, said, from.type.rank > 0 ? AX_SCALAR_ADD : AX_SCALAR_NONE);
  return ax_lower_kernel_end(lower);
}

/* Tells all members of a group along some axes whether one of them has a NaN or an infinity in `buffer`: *out is not finite
   then. */
static ax_status add_group(ax_lower *lower, const ax_axes *names, uint32_t buffer, uint32_t kind, uint32_t *out) {
  const ax_type scalar = ax_array_type(AX_F32, AX_DIMS());
  ax_exchange exchange = {.names = *names, .peers = AX_PEERS_ONE, .combine = AX_SCALAR_ADD, .rank = 1, .dims = {1},
                          .src_stride = {1}, .dst_stride = {1}}, *started;
  AX_TRY(add_own(lower, buffer, kind, &exchange.in));
  AX_TRY(ax_lower_buffer(lower, &scalar, ax_lower_get(lower, exchange.in)->axes, &exchange.out));
  AX_TRY(ax_lower_start(lower, &exchange, &started));
  *out = exchange.out;
  return ax_lower_done(lower, started);
}

/* Adds to `list` the buffers that a sum over a group is made of, for the sums among operations first .. last: for each kind of
   check, one that says whether a member's operand had such a number. `list` has room for all. */
static ax_status list_groups(ax_lower *lower, uint32_t first, uint32_t last, uint32_t *list, uint32_t *count) {
  for (uint32_t i = first; i < last; i++) {
    const ax_op op = lower->block->ops[i];
    ax_op_sum sum;
    if (!sums(lower, &op, &sum)) continue;
    if (sum.added != AX_NONE) list[(*count)++] = sum.added;
    for (int k = 0; k < most_kinds; k++)
      if ((lower->plan->options.check & kinds[k]) != 0) AX_TRY(add_group(lower, sum.names, sum.in, kinds[k], &list[(*count)++]));
  }
  return AX_OK;
}

static uint32_t list_operands(ax_lower *lower, const ax_eqn *eqn, const uint32_t *in, uint32_t *list) {
  uint32_t count = 0;
  for (uint32_t k = 0; k < eqn->in_count; k++)
    if (ax_rounds(ax_lower_get(lower, in[k])->type.dtype) && ax_lower_as_reals(lower, in[k], &list[count]) == AX_OK) count++;
  return count;
}

/* --- Checks --- */

static ax_status add_check(ax_lower *lower, uint32_t k, uint32_t result, const uint32_t *of, uint32_t count) {
  uint32_t *buffers = ax_arena_alloc(&lower->plan->arena, (count + (size_t)1) * sizeof buffers[0]);
  if (buffers == NULL) return ax_out_of_memory(count * sizeof buffers[0]);
  buffers[0] = result;
  for (uint32_t i = 0; i < count; i++) buffers[i + 1] = of[i];
  return ax_lower_append(lower, &(ax_op){.kind = AX_OP_CHECK, .eqn = lower->eqn, .program = lower->program,
                                         .axes = ax_lower_get(lower, result)->axes, .diverging = lower->diverging,
                                         .check = {k, count + 1, buffers}});
}

ax_status ax_lower_checks(ax_lower *lower, const ax_eqn *eqn, uint32_t first, const uint32_t *in, const uint32_t *out) {
  uint32_t last = lower->block->count, count = 0;
  bool makes = false;
  if (eqn->prim->kind == AX_REGION || !has_operands(lower, eqn, in)) return AX_OK; /* a region's programs' equations are checked */
  for (uint32_t i = first; i < last && !makes; i++) makes = may_make(lower, &lower->block->ops[i]);
  if (!makes) return AX_OK;
  size_t room = eqn->in_count + most_kinds * (size_t)(last - first);
  uint32_t *list = ax_arena_alloc(&lower->plan->drafts, room * sizeof list[0]);
  if (list == NULL) return ax_out_of_memory(room * sizeof list[0]);
  if (eqn->prim->kind == AX_COLLECTIVE) AX_TRY(list_groups(lower, first, last, list, &count));
  else count = list_operands(lower, eqn, in, list);
  for (uint32_t k = 0; k < eqn->out_count; k++)
    if (ax_rounds(ax_lower_get(lower, out[k])->type.dtype)) {
      uint32_t reals;
      AX_TRY(ax_lower_as_reals(lower, out[k], &reals));
      AX_TRY(add_check(lower, k, reals, list, count));
    }
  return AX_OK;
}
