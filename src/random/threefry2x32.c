/* threefry2x32: key0, key1, count0, count1: u32[d..] -> u32[d..], u32[d..]     random bits: Threefry with 20 rounds
   A key and a count are two words each, the first one above. The two words of a result are bits that nobody can tell from random ones;
   equal keys and counts give equal bits, on every device. As jax's threefry2x32_p.
   Errors: dtypes other than u32; shapes that differ.
   No tangents. Batched and cut along every dimension, element by element.
   J. Salmon, M. Moraes, R. Dror and D. Shaw, Parallel random numbers: as easy as 1, 2, 3 (2011). */
#include "axle/random.h"
#include "base/threefry.h"
#include "hlo/hlo.h"
#include "plan/lower.h"
#include "prim/expand.h"
#include "prim/prims.h"
#include "prim/shape.h"
#include "random/keys.h"

static ax_status infer(const ax_infer_args *args) {
  const ax_type *first = &args->in[0];
  for (uint32_t i = 0; i < 4; i++) {
    if (args->in[i].dtype != AX_U32)
      return ax_error(AX_INVALID_ARGUMENT, "operand %u is of %s; it must be of u32", i, ax_dtype_name(args->in[i].dtype));
    if (!ax_same_shape(first, &args->in[i]))
      return ax_error(AX_INVALID_ARGUMENT, "operands 0 and %u are %s and %s; they need one shape", i, ax_type_string(first, args->axes),
                      ax_type_string(&args->in[i], args->axes));
  }
  for (int k = 0; k < 2; k++) args->out[k] = ax_array_type(AX_U32, AX_LIST(first->rank, first->dims));
  return AX_OK;
}

static uint64_t joined(const ax_tensor *high, const ax_tensor *low, int64_t i) {
  return (uint64_t)((const uint32_t *)high->data)[i] << 32 | ((const uint32_t *)low->data)[i];
}

static ax_status eval(const ax_eval_args *args) {
  const int64_t elems = ax_dims_elems(args->out[0]->rank, args->out[0]->dims);
  for (int64_t i = 0; i < elems; i++) {
    const uint64_t made = ax_threefry_bits(joined(args->in[0], args->in[1], i), joined(args->in[2], args->in[3], i));
    ((uint32_t *)args->out[0]->data)[i] = (uint32_t)(made >> 32);
    ((uint32_t *)args->out[1]->data)[i] = (uint32_t)made;
  }
  return AX_OK;
}

static void batch(const ax_batch_args *args) {
  ax_value in[4];
  for (int i = 0; i < 4; i++) in[i] = ax_batch_front(args->in[i], args->in_dim[i], args->size);
  ax_bind(args->eqn->prim, NULL, in, 4, args->out, 2);
}

static void shard(const ax_shard_args *args) {
  const ax_type *type = &args->types[args->eqn->out];
  for (uint32_t d = 0; d < type->rank; d++) {
    const uint32_t factor = ax_factor(args, type->dims[d], AX_FACTOR_ALONG);
    for (int i = 0; i < 4; i++) ax_factor_of(&args->in[i], d, factor);
    for (int k = 0; k < 2; k++) ax_factor_of(&args->out[k], d, factor);
  }
}

/* --- lower: one kernel --- */

static ax_status lower(ax_lower *lower, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  const ax_type *type = &lower->program->types[eqn->out];
  ax_position at[AX_MAX_RANK];
  ax_ex words[4];
  ax_at_identity(at, type->rank);
  for (uint32_t k = 0; k < 2; k++) AX_TRY(ax_lower_result(lower, eqn, k, &out[k]));
  AX_TRY(ax_lower_kernel_begin(lower, type->rank, 0, type->dims));
  for (int i = 0; i < 4; i++) words[i] = ax_lower_load(lower, in[i], at);
  const ax_ex key = ax_kernel_joined(lower->kernel, words[0], words[1]), count = ax_kernel_joined(lower->kernel, words[2], words[3]);
  const ax_ex made = ax_kernel_op(lower->kernel, AX_SCALAR_THREEFRY, AX_U64, key, count, AX_NONE);
  for (int k = 0; k < 2; k++) ax_lower_store(lower, out[k], at, ax_kernel_word(lower->kernel, made, k), AX_SCALAR_NONE);
  return ax_lower_kernel_end(lower);
}

/* --- hlo: the rounds, in a function of the module for each shape --- */

static ax_value rotated(ax_value x, int by) {
  return ax_or(ax_shift_left(x, ax_integer(by)), ax_shift_right_logical(x, ax_integer(32 - by)));
}

static void rounds(const ax_eqn *eqn, const ax_value *in, ax_value *out) {
  const ax_value words[3] = {in[0], in[1], ax_xor(ax_xor(in[0], in[1]), ax_unsigned(ax_threefry_parity))};
  ax_value x0 = ax_add(in[2], words[0]), x1 = ax_add(in[3], words[1]);
  (void)eqn;
  for (uint32_t group = 0; group < AX_THREEFRY_GROUPS; group++) {
    for (int i = 0; i < AX_THREEFRY_ROUNDS; i++) {
      x0 = ax_add(x0, x1);
      x1 = ax_xor(rotated(x1, ax_threefry_rotations[group % 2][i]), x0);
    }
    x0 = ax_add(x0, words[(group + 1) % 3]);
    x1 = ax_add(x1, ax_add(words[(group + 2) % 3], ax_unsigned(group + 1)));
  }
  out[0] = x0, out[1] = x1;
}

static ax_status hlo(ax_hlo *hlo, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  return ax_hlo_called_all(hlo, eqn, rounds, in, out);
}

const ax_prim ax_prim_threefry2x32 = {
    .name = "threefry2x32", .kind = AX_LOCAL, .in_count = 4, .out_count = 2,
    .infer = infer, .spread = ax_spread_local, .eval = eval, .differs = ax_differs_union, .jvp = ax_jvp_zero, .linearize = ax_jvp_zero,
    .transpose = ax_absent_transpose, .batch = batch, .simplify = ax_simplify_nothing, .shard = shard, .lower = lower, .hlo = hlo,
};

void (ax_threefry2x32)(ax_value key0, ax_value key1, ax_value count0, ax_value count1, uint32_t out_count, ax_value *out) {
  ax_value in[] = {key0, key1, count0, count1};
  if (!ax_lists_fit("threefry2x32", 4, 4, out_count, 2, out)) return;
  out[0] = out[1] = ax_poison;
  for (int i = 0; i < 4; i++) in[i] = ax_as("threefry2x32", in[i], AX_U32);
  if (ax_failed() || !ax_broadcast_together(in, 4)) return;
  ax_bind(&ax_prim_threefry2x32, NULL, in, 4, out, 2);
}
