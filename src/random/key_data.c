/* The words of keys, and keys of words.

     random_wrap    u32[d.., 2] -> key[d..]        keys with these words, the first one first
     random_unwrap  key[d..] -> u32[d.., 2]        their words

   As random_wrap and random_unwrap of JAX. The memory is the same.
   Errors: an operand that is not of u32, or whose last dimension is not 2; one that is not of keys, or of the greatest rank.
   No tangents. Sharding: cuts of all dimensions but that of the words are kept. */
#include "axle/random.h"
#include "hlo/hlo.h"
#include "ir/dtype.h"
#include "plan/lower.h"
#include "prim/prims.h"
#include "prim/shape.h"
#include "random/keys.h"

static ax_status wrap_infer(const ax_infer_args *args) {
  const ax_type *x = &args->in[0];
  if (!ax_is_words_of_keys(x))
    return ax_error(AX_INVALID_ARGUMENT, "%s are no words of keys, u32[.., 2]", ax_type_string(x, args->axes));
  args->out[0] = ax_array_type(AX_KEY, AX_LIST(x->rank - 1, x->dims));
  return AX_OK;
}

static ax_status unwrap_infer(const ax_infer_args *args) {
  const ax_type *x = &args->in[0];
  ax_dims dims = {.count = x->rank};
  if (!ax_is_key(x->dtype)) return ax_error(AX_INVALID_ARGUMENT, "%s are no keys", ax_type_string(x, args->axes));
  if (x->rank == AX_MAX_RANK) return ax_error(AX_INVALID_ARGUMENT, "the rank would exceed %d", AX_MAX_RANK);
  for (uint32_t d = 0; d < x->rank; d++) dims.v[d] = x->dims[d];
  dims.v[dims.count++] = 2;
  return ax_infer_shape(AX_U32, &dims, &args->out[0]);
}

static void batch(const ax_batch_args *args) {
  const ax_value x = ax_batch_front(args->in[0], args->in_dim[0], args->size);
  args->out[0] = ax_bind1(args->eqn->prim, NULL, &x, 1);
}

/* The words of keys made of words, and keys of words of keys. */
static void simplify_by(const ax_simplify_args *args, const ax_prim *inverse) {
  const ax_eqn *inner = ax_simplify_operand(args, 0, inverse);
  if (inner != NULL) args->same[0] = inner->in[0];
}
static void wrap_simplify(const ax_simplify_args *args) { simplify_by(args, &ax_prim_random_unwrap); }
static void unwrap_simplify(const ax_simplify_args *args) { simplify_by(args, &ax_prim_random_wrap); }

static void shard(const ax_shard_args *args) {
  const ax_type *x = &args->types[args->eqn->in[0]], *y = &args->types[args->eqn->out];
  const ax_type *keys = ax_is_key(x->dtype) ? x : y;
  for (uint32_t d = 0; d < keys->rank; d++) {
    const uint32_t factor = ax_factor(args, keys->dims[d], AX_FACTOR_ALONG);
    ax_factor_of(&args->in[0], d, factor);
    ax_factor_of(&args->out[0], d, factor);
  }
}

static ax_status lower(ax_lower *lower, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  return ax_lower_as_view(lower, eqn, in[0], 0, &out[0]);
}

#define RECORD(name_, infer_, simplify_) \
  const ax_prim ax_prim_##name_ = {      \
      .name = #name_,                    \
      .kind = AX_LOCAL,                  \
      .in_count = 1,                     \
      .out_count = 1,                    \
      .infer = infer_,                   \
      .spread = ax_spread_local,         \
      .eval = ax_eval_same,              \
      .differs = ax_differs_union,       \
      .jvp = ax_jvp_zero,                \
      .linearize = ax_jvp_zero,          \
      .transpose = ax_absent_transpose,  \
      .batch = batch,                    \
      .simplify = simplify_,             \
      .shard = shard,                    \
      .lower = lower,                    \
      .hlo = ax_hlo_same,                \
      .keys = ax_keys_whole,             \
  }
RECORD(random_wrap, wrap_infer, wrap_simplify);
RECORD(random_unwrap, unwrap_infer, unwrap_simplify);

ax_value ax_random_wrap_key_data(ax_value words) {
  ax_type type;
  if (!ax_operand("random_wrap_key_data", words, &type)) return ax_poison;
  if (!ax_is_words_of_keys(&type))
    return ax_reject_as("random_wrap_key_data", "the words are %s; they must be u32[.., 2]", ax_operand_string(&type));
  return ax_bind1(&ax_prim_random_wrap, NULL, &words, 1);
}

ax_value ax_random_key_data(ax_value keys) {
  ax_type type;
  if (!ax_operand("random_key_data", keys, &type)) return ax_poison;
  if (ax_is_key(type.dtype)) return ax_bind1(&ax_prim_random_unwrap, NULL, &keys, 1);
  if (ax_is_words_of_keys(&type)) return keys;
  return ax_reject_as("random_key_data", "the keys are %s; they must be key[..] or u32[.., 2]", ax_operand_string(&type));
}
