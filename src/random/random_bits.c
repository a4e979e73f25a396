/* random_bits: keys u32[b.., 2] -> T[b.., shape..]        random bits, T u8, u16, u32 or u64
   Each key gives its own array of the shape. Its element number i, in row-major order, is made of threefry2x32's words w0 and w1 for the
   key and the count i: in u64 both, w0 above; in u32 w0 xor w1, and in u16 and u8 the lower bits of that. So an element depends on
   the key, the shape and its own place alone. As jax's random_bits for threefry2x32 (jax_threefry_partitionable).
   Parameters: dtype, shape.
   Errors: keys that are not of u32, or whose last dimension is not 2; another dtype.
   No tangents. Batched along the keys. Cut along every dimension but the words of keys: each device makes its own part.
   Compiled: one kernel, which other kernels take in. */
#include "axle/random.h"
#include "base/threefry.h"
#include "hlo/hlo.h"
#include "plan/lower.h"
#include "prim/expand.h"
#include "prim/prims.h"
#include "prim/shape.h"
#include "random/keys.h"

typedef struct random_bits_params {
  ax_dtype dtype;
  ax_dims shape;
} random_bits_params;

static bool is_dtype(ax_dtype dtype) { return dtype == AX_U8 || dtype == AX_U16 || dtype == AX_U32 || dtype == AX_U64; }

static ax_status infer(const ax_infer_args *args) {
  const random_bits_params *p = args->params;
  const ax_type *keys = &args->in[0];
  ax_dims dims = {.count = 0};
  if (!is_dtype(p->dtype)) return ax_error(AX_INVALID_ARGUMENT, "needs u8, u16, u32 or u64, got %s", ax_dtype_name(p->dtype));
  if (keys->dtype != AX_U32 || keys->rank == 0 || keys->dims[keys->rank - 1] != 2)
    return ax_error(AX_INVALID_ARGUMENT, "%s are no keys, u32[.., 2]", ax_type_string(keys, args->axes));
  if (keys->rank - 1 + p->shape.count > AX_MAX_RANK) return ax_error(AX_INVALID_ARGUMENT, "the rank would exceed %d", AX_MAX_RANK);
  for (uint32_t d = 0; d + 1 < keys->rank; d++) dims.v[dims.count++] = keys->dims[d];
  for (uint32_t d = 0; d < p->shape.count; d++) dims.v[dims.count++] = p->shape.v[d];
  return ax_infer_shape(p->dtype, &dims, &args->out[0]);
}

static ax_status eval(const ax_eval_args *args) {
  const random_bits_params *p = args->eqn->params;
  const ax_tensor *out = args->out[0];
  const uint32_t *words = args->in[0]->data;
  const int64_t each = ax_dims_elems(p->shape.count, p->shape.v), elems = ax_dims_elems(out->rank, out->dims);
  for (int64_t i = 0; i < elems; i++) {
    const int64_t k = i / each;
    const uint64_t bits = ax_threefry_bits((uint64_t)words[2 * k] << 32 | words[2 * k + 1], (uint64_t)(i % each));
    ax_number_store(p->dtype, out->data, i, (ax_number){.u = p->dtype == AX_U64 ? bits : bits ^ bits >> 32});
  }
  return AX_OK;
}

static void batch(const ax_batch_args *args) {
  const ax_value keys = ax_move_dim(args->in[0], args->in_dim[0], 0);
  args->out[0] = ax_bind1(args->eqn->prim, args->eqn->params, &keys, 1);
}

/* --- Sharding and StableHLO: counts as arrays --- */

/* An array with as many dimensions of 1 behind. */
static ax_value widened(ax_value x, uint32_t more) {
  ax_type type = ax_typeof(x);
  for (uint32_t d = 0; d < more && type.rank < AX_MAX_RANK; d++) type.dims[type.rank++] = 1;
  return ax_failed() ? ax_poison : ax_reshape(x, AX_LIST(type.rank, type.dims));
}

/* The bits of a part of the whole array: `part` are its sizes, after those of the keys; starts[d], where it begins, is a scalar of
   u64, or {0} for 0. */
static ax_value bits_of_part(const random_bits_params *p, ax_value keys, const int64_t *part, const ax_value *starts) {
  const uint32_t rank = p->shape.count;
  ax_value count = ax_full(AX_U64, AX_DIMS(), 0), words[2];
  int64_t apart = 1;
  for (uint32_t d = rank; d-- > 0; apart *= p->shape.v[d]) {
    ax_value place = ax_iota(AX_U64, AX_LIST(rank, part), d);
    if (starts != NULL && starts[d].id != 0) place = ax_add(place, starts[d]);
    if (apart != 1) place = ax_mul(place, ax_integer(apart));
    count = d + 1 == rank ? place : ax_add(count, place);
  }
  const ax_value high = ax_convert_element_type(ax_shift_right_logical(count, ax_integer(32)), AX_U32);
  (ax_threefry2x32)(widened(ax_key_word(keys, 0), rank), widened(ax_key_word(keys, 1), rank), high, ax_convert_element_type(count, AX_U32), 2,
                    words);
  if (p->dtype != AX_U64) return ax_convert_element_type(ax_xor(words[0], words[1]), p->dtype);
  for (int k = 0; k < 2; k++) words[k] = ax_convert_element_type(words[k], AX_U64);
  return ax_or(ax_shift_left(words[0], ax_integer(32)), words[1]);
}

static void shard(const ax_shard_args *args) {
  const ax_type *type = &args->types[args->eqn->out];
  const uint32_t keys = args->types[args->eqn->in[0]].rank - 1;
  for (uint32_t d = 0; d < type->rank; d++) {
    const uint32_t factor = ax_factor(args, type->dims[d], AX_FACTOR_ALONG);
    ax_factor_of(&args->out[0], d, factor);
    if (d < keys) ax_factor_of(&args->in[0], d, factor);
  }
}

static void block(const ax_block_args *args) {
  const random_bits_params *p = args->eqn->params;
  const uint32_t keys = args->blocks[0].rank - p->shape.count;
  ax_value starts[AX_MAX_RANK] = {{0}};
  bool cut = false;
  for (uint32_t d = 0; d < p->shape.count; d++) {
    if (args->specs[0].count[keys + d] == 0) continue;
    starts[d] = ax_block_start(args, 0, keys + d, AX_U64);
    cut = true;
  }
  args->out[0] = cut ? bits_of_part(p, args->in[0], args->blocks[0].dims + keys, starts) : ax_bind1(args->eqn->prim, p, args->in, 1);
}

static ax_value bits_of(const ax_eqn *eqn, const ax_value *in) {
  const random_bits_params *p = eqn->params;
  return bits_of_part(p, in[0], p->shape.v, NULL);
}

static ax_status hlo(ax_hlo *hlo, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  return ax_hlo_expanded(hlo, eqn, bits_of, in, out);
}

/* --- lower --- */

/* The number of an element within its array, as a node of u64. */
static ax_ex place_of(ax_loop_kernel *kernel, const ax_dims *shape, uint32_t first) {
  ax_ex place = shape->count == 0 ? ax_kernel_const(kernel, AX_S64, 0) : AX_NONE;
  int64_t apart = 1;
  for (uint32_t d = shape->count; d-- > 0; apart *= shape->v[d]) {
    ax_ex index = ax_kernel_index(kernel, first + d);
    if (apart != 1) index = ax_kernel_op(kernel, AX_SCALAR_MUL, AX_S64, index, ax_kernel_const(kernel, AX_S64, apart), AX_NONE);
    place = d + 1 == shape->count ? index : ax_kernel_op(kernel, AX_SCALAR_ADD, AX_S64, place, index, AX_NONE);
  }
  return ax_kernel_op(kernel, AX_SCALAR_CONVERT, AX_U64, place, AX_NONE, AX_NONE);
}

static ax_ex element_of(ax_loop_kernel *kernel, ax_ex bits, ax_dtype dtype) {
  if (dtype == AX_U64) return bits;
  const ax_ex folded = ax_kernel_op(kernel, AX_SCALAR_XOR, AX_U32, ax_kernel_word(kernel, bits, 0), ax_kernel_word(kernel, bits, 1), AX_NONE);
  return dtype == AX_U32 ? folded : ax_kernel_op(kernel, AX_SCALAR_CONVERT, dtype, folded, AX_NONE, AX_NONE);
}

static ax_status lower(ax_lower *lower, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  const random_bits_params *p = eqn->params;
  const ax_type *type = &lower->program->types[eqn->out];
  const uint32_t keys = type->rank - p->shape.count;
  ax_position at[AX_MAX_RANK], word_at[AX_MAX_RANK];
  ax_ex words[2];
  ax_at_identity(at, type->rank);
  ax_at_identity(word_at, keys);
  AX_TRY(ax_lower_result(lower, eqn, 0, &out[0]));
  AX_TRY(ax_lower_kernel_begin(lower, type->rank, 0, type->dims));
  for (int k = 0; k < 2; k++) {
    word_at[keys] = (ax_position){.dim = -1, .offset = k, .dynamic = AX_NONE};
    words[k] = ax_lower_load(lower, in[0], word_at);
  }
  ax_loop_kernel *kernel = lower->kernel;
  const ax_ex key = ax_kernel_joined(kernel, words[0], words[1]), place = place_of(kernel, &p->shape, keys);
  const ax_ex bits = ax_kernel_op(kernel, AX_SCALAR_THREEFRY, AX_U64, key, place, AX_NONE);
  ax_lower_store(lower, out[0], at, element_of(kernel, bits, p->dtype), AX_SCALAR_NONE);
  return ax_lower_kernel_end(lower);
}

static const ax_param params[] = {{"dtype", AX_PARAM_DTYPE, offsetof(random_bits_params, dtype)},
                                  {"shape", AX_PARAM_DIMS, offsetof(random_bits_params, shape)}};

const ax_prim ax_prim_random_bits = {
    .name = "random_bits", .kind = AX_LOCAL, .in_count = 1, .out_count = 1, AX_PARAMS(params, random_bits_params),
    .infer = infer, .spread = ax_spread_local, .eval = eval, .differs = ax_differs_union, .jvp = ax_jvp_zero, .linearize = ax_jvp_zero,
    .transpose = ax_absent_transpose, .batch = batch, .simplify = ax_simplify_nothing, .shard = shard, .block = block, .lower = lower,
    .hlo = hlo,
};

ax_value (ax_random_bits)(ax_value key, ax_dtype dtype, uint32_t rank, const int64_t *dims) {
  return ax_key_operand("random_bits", &key, NULL) ? ax_keys_bits(key, dtype, rank, dims) : ax_poison;
}

ax_value ax_keys_bits(ax_value keys, ax_dtype dtype, uint32_t rank, const int64_t *dims) {
  random_bits_params p = {.dtype = dtype};
  return ax_dims_take(&ax_prim_random_bits, rank, dims, &p.shape) ? ax_bind1(&ax_prim_random_bits, &p, &keys, 1) : ax_poison;
}
