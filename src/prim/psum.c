/* psum: T[d..]{V: axes, v..} -> T[d..]{V: v..}            y = sum over the group's members of x
   Parameters: axes. pmax and pmin are alike with another combination.
   Errors: an unknown axis or one named twice; an operand that does not vary over a checked axis; bool.
   Numerics: members are combined in index order, so the result does not depend on who comes first; bf16/f16 in f32.
   psum is linear. Transpose: on a checked axis the result is one value for all, whose cotangent reaches each member's x: pvary.
   On an unchecked axis every device holds its own copy of the result, with its own cotangent: psum again.
   Batching: over a named axis that is among the axes, psum is a sum over the batch dimension. */
#include <string.h>

#include "ir/number.h"
#include "prim/collective.h"
#include "prim/pointwise.h"
#include "prim/prims.h"

typedef struct psum_params {
  ax_axes axes;
} psum_params;

static ax_status infer(const ax_infer_args *args) {
  ax_axis_set set;
  int64_t size;
  AX_TRY(ax_collective_axes(args, args->params, &set, &size));
  if (args->in[0].dtype == AX_BOOL) return ax_error(AX_INVALID_ARGUMENT, "needs a numeric dtype, got bool");
  AX_TRY(ax_require_varying(&args->in[0], set, args->axes));
  args->out[0] = args->in[0];
  args->out[0].varying &= ~set;
  return AX_OK;
}

static ax_scalar combination(const ax_prim *prim) {
  if (prim == &ax_prim_pmax) return AX_SCALAR_MAX;
  return prim == &ax_prim_pmin ? AX_SCALAR_MIN : AX_SCALAR_ADD;
}

/* bf16 and f16 are combined in f32 and rounded once. */
static ax_dtype combined_in(ax_dtype dtype) { return dtype == AX_BF16 || dtype == AX_F16 ? AX_F32 : dtype; }

static ax_status eval(const ax_eval_args *args) {
  ax_scalar op = combination(args->eqn->prim);
  const ax_tensor *out = args->out[0];
  ax_dtype wide = combined_in(out->dtype);
  int64_t elems = ax_dims_elems(out->rank, out->dims);
  for (int64_t i = 0; i < elems; i++) {
    ax_number total = ax_number_load(out->dtype, args->in[0]->data, i);
    for (uint32_t lane = 1; lane < args->lanes; lane++) {
      ax_number pair[] = {total, ax_number_load(out->dtype, args->in[lane]->data, i)};
      total = ax_number_round(wide, ax_scalar_eval(op, wide, pair, 0));
    }
    for (uint32_t lane = 0; lane < args->lanes; lane++) ax_number_store(out->dtype, args->out[lane]->data, i, total);
  }
  return AX_OK;
}

static void psum_transpose(const ax_transpose_args *args) {
  const psum_params *all = args->eqn->params;
  const ax_mesh *axes = &ax_builder_current()->axes;
  psum_params checked = {0}, unchecked = {0};
  for (uint32_t i = 0; i < all->axes.count; i++) {
    bool is_unchecked = axes->axis[ax_mesh_find(axes, all->axes.name[i])].unchecked;
    ax_axes *side = is_unchecked ? &unchecked.axes : &checked.axes;
    memcpy(side->name[side->count++], all->axes.name[i], AX_MAX_NAME);
  }
  ax_value cotangent = args->cotangent[0];
  if (unchecked.axes.count > 0) cotangent = ax_bind1(&ax_prim_psum, &unchecked, &cotangent, 1);
  if (checked.axes.count > 0) cotangent = ax_bind1(&ax_prim_pvary, &checked, &cotangent, 1);
  args->out[0] = cotangent;
}

/* The named axis being batched is summed (or maxed) over where the operand is batched; a value without a batch dimension is
   the same on all its `size` members. */
static void batch(const ax_batch_args *args) {
  const ax_prim *prim = args->eqn->prim;
  psum_params rest;
  ax_value x = args->in[0];
  int dim = args->in_dim[0];
  if (ax_axes_without(args->eqn->params, args->axis, &rest.axes)) {
    if (dim < 0) {
      if (prim == &ax_prim_psum) x = ax_mul(x, ax_full_like(x, (double)args->size));
    } else {
      int64_t d = dim;
      x = prim == &ax_prim_psum   ? ax_reduce_sum(x, &d, 1)
          : prim == &ax_prim_pmax ? ax_reduce_max(x, &d, 1)
                                  : ax_reduce_min(x, &d, 1);
      dim = -1;
    }
  }
  args->out[0] = rest.axes.count > 0 ? ax_bind1(prim, &rest, &x, 1) : x;
  args->out_dim[0] = dim;
}

static ax_status convert(ax_lower *lower, uint32_t dst, uint32_t src) {
  const ax_type *type = &ax_lower_get(lower, src)->type;
  ax_dtype to = ax_lower_get(lower, dst)->type.dtype;
  ax_at at[AX_MAX_RANK];
  ax_at_identity(at, type->rank);
  AX_TRY(ax_lower_kernel_begin(lower, type->rank, 0, type->dims));
  ax_ex x = ax_lower_load(lower, src, at);
  ax_lower_store(lower, dst, at, ax_kernel_op(lower->kernel, AX_SCALAR_CONVERT, to, x, AX_NONE, AX_NONE), AX_SCALAR_NONE);
  return ax_lower_kernel_end(lower);
}

static ax_status lower(ax_lower *lower, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  ax_type type = lower->program->types[eqn->out];
  ax_exchange exchange = {.names = *(const ax_axes *)eqn->params, .peers = AX_PEERS_ONE, .in = in[0],
                          .combine = combination(eqn->prim)};
  bool narrow = combined_in(type.dtype) != type.dtype;
  AX_TRY(ax_lower_result(lower, eqn, 0, &out[0]));
  exchange.out = out[0];
  ax_exchange_whole(&exchange, ax_type_elems(&type));
  if (!narrow) return ax_lower_exchange(lower, &exchange);
  type.dtype = AX_F32;
  AX_TRY(ax_lower_buffer(lower, &type, lower->vary[eqn->in[0]], &exchange.in));
  AX_TRY(ax_lower_buffer(lower, &type, lower->vary[eqn->out], &exchange.out));
  AX_TRY(convert(lower, exchange.in, in[0]));
  AX_TRY(ax_lower_exchange(lower, &exchange));
  return convert(lower, out[0], exchange.out);
}

/* stablehlo.all_reduce with the combination as its region. */
static ax_status hlo(ax_hlo *hlo, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  const ax_type *type = &hlo->program->types[eqn->in[0]];
  ax_type scalar = ax_array_type(type->dtype, 0, NULL), pair[] = {scalar, scalar};
  const char *names[] = {[AX_SCALAR_ADD] = "stablehlo.add", [AX_SCALAR_MAX] = "stablehlo.maximum",
                         [AX_SCALAR_MIN] = "stablehlo.minimum"};
  out[0] = ax_hlo_begin(hlo, "stablehlo.all_reduce", in, 1, 1);
  uint32_t arg = ax_hlo_region_begin(hlo, pair, 2), both[] = {arg, arg + 1};
  uint32_t sum = ax_hlo_op(hlo, names[combination(eqn->prim)], both, pair, 2, NULL, &scalar, 1);
  ax_hlo_region_end(hlo, &sum, &scalar, 1);
  ax_text attributes = {0};
  ax_text_add(&attributes, "replica_groups = ");
  ax_hlo_replica_groups(&attributes, eqn->params, &hlo->axes);
  ax_text_add(&attributes, ", channel_handle = #stablehlo.channel_handle<handle = %u, type = 1>, use_global_device_ids",
              ++hlo->channel);
  ax_hlo_end(hlo, attributes.data, type, 1, &hlo->program->types[eqn->out], 1);
  ax_text_deinit(&attributes);
  return AX_OK;
}

static const ax_param params[] = {{"axes", AX_PARAM_AXES, offsetof(psum_params, axes)}};

#define REDUCE_RECORD(name_, jvp_, transpose_)                                                                   \
  const ax_prim ax_prim_##name_ = {                                                                              \
      .name = #name_, .kind = AX_COLLECTIVE, .in_count = 1, .out_count = 1,                                      \
      .params = params, .param_count = AX_COUNT(params), .params_bytes = sizeof(psum_params),                    \
      .infer = infer, .eval = eval, .vary = ax_vary_drop, .jvp = jvp_, .linearize = jvp_,                        \
      .transpose = transpose_, .batch = batch, .lower = lower, .hlo = hlo,                                       \
  }
REDUCE_RECORD(psum, ax_jvp_linear, psum_transpose);
REDUCE_RECORD(pmax, ax_absent_jvp, ax_absent_transpose);
REDUCE_RECORD(pmin, ax_absent_jvp, ax_absent_transpose);

static ax_value reduce(const ax_prim *prim, ax_value x, const char *axes) {
  psum_params params;
  if (!ax_collective_operand(prim, &x, axes, &params.axes)) return ax_poison;
  return ax_bind1(prim, &params, &x, 1);
}

ax_value ax_psum(ax_value x, const char *axes) { return reduce(&ax_prim_psum, x, axes); }
ax_value ax_pmax(ax_value x, const char *axes) { return reduce(&ax_prim_pmax, x, axes); }
ax_value ax_pmin(ax_value x, const char *axes) { return reduce(&ax_prim_pmin, x, axes); }
ax_value ax_pmean(ax_value x, const char *axes) {
  ax_value sum = ax_psum(x, axes);
  return ax_div(sum, ax_full_like(sum, (double)ax_axis_size(axes)));
}
