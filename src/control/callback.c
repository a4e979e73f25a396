/* pure_callback: T0[d..].. -> R0[e..]..              a function of the host applied to the operands, without other effects
   io_callback: T0[d..].. -> R0[e..]{V: axes}..       the same of one that has effects
   ordered_io_callback: likewise                      one call after the other

     y:f32[4] = pure_callback[vectorized=false callback="median" types=(f32[4],)] x
     n:s32[]{V:d} = io_callback[axes=(d,) callback="count" types=(s32[],)] x

   Parameters: callback, a name, and the function when it was traced in this process; types of the results; of pure_callback whether
   it takes a whole batch at once; of the others axes: they are called once for each coordinate along these, and along those that an
   operand varies over.
   Errors: results that are no arrays; a pure_callback without results; operands that are unreduced; an ordered one where devices go
   different ways along its axes.
   pure_callback may be dropped, merged and moved, and is computed once where its operands are the same. io_callback is called as
   often as the program says. Ordered ones are called in one order: in program order, and at each place in that of the devices,
   as a collective that all have to come to.
   No derivatives. Batched they are called for one element after the other, but for pure_callback with vectorized, whose operands
   and results then have the batch dimension in front; ordered ones are not batched. */
#include <stdio.h>
#include <string.h>

#include "axle/exec.h"
#include "control/host_call.h"
#include "machine/float_mode.h"
#include "plan/lower.h"
#include "prim/prims.h"

typedef struct pure_params {
  ax_callback *callback;
  ax_types types;
  bool vectorized;
} pure_params;

typedef struct io_params {
  ax_axes axes; /* first: host_call.h */
  ax_callback *callback;
  ax_types types;
} io_params;

static uint32_t pure_outs(const void *params) { return ((const pure_params *)params)->types.count; }
static uint32_t io_outs(const void *params) { return ((const io_params *)params)->types.count; }

/* --- infer --- */

static ax_status infer_types(const ax_infer_args *args, const ax_types *types) {
  for (uint32_t k = 0; k < types->count; k++) {
    const ax_type *type = &types->v[k];
    args->out[k] = type->rank <= AX_MAX_RANK ? ax_array_type(type->dtype, AX_LIST(type->rank, type->dims)) : (ax_type){0};
    if (type->form != AX_ARRAY || args->out[k].dtype == AX_NO_DTYPE)
      return ax_error(AX_INVALID_ARGUMENT, "result %u is to be of a type that is no array's", k);
  }
  return AX_OK;
}

static ax_status pure_infer(const ax_infer_args *args) {
  const ax_types *types = &((const pure_params *)args->params)->types;
  if (types->count == 0) return ax_error(AX_INVALID_ARGUMENT, "there are no results; a function with effects is an io_callback");
  return infer_types(args, types);
}

static ax_status io_infer(const ax_infer_args *args) { return infer_types(args, &((const io_params *)args->params)->types); }

/* --- eval --- */

static ax_host_array view_of(const ax_tensor *tensor) {
  ax_host_array view = {.dtype = tensor->dtype, .rank = tensor->rank, .data = tensor->data, .view = true};
  memcpy(view.dims, tensor->dims, sizeof view.dims);
  return view;
}

static ax_status failed(const ax_callback *callback, const ax_callback_call *call, ax_status status) {
  const ax_status known = status > AX_OK && status <= AX_INTERNAL ? status : AX_INVALID_ARGUMENT;
  call->message[AX_MESSAGE_BYTES - 1] = '\0';
  return ax_error(known, "callback \"%s\" failed (%s)%s%s", callback->name, ax_status_name(known),
                  call->message[0] != '\0' ? ": " : "", call->message);
}

/* Results are where they were to be filled in: memory that the callback puts in their place would be looked at by nobody. */
static ax_status check_places(const ax_eval_args *args, const ax_host_array *out, uint32_t lane, char *message) {
  for (uint32_t k = 0; k < args->eqn->out_count; k++) {
    if (out[k].data == args->out[(size_t)k * args->lanes + lane]->data) continue;
    snprintf(message, AX_MESSAGE_BYTES, "the data of result %u is other memory now; it is to be filled in place", k);
    return AX_INVALID_ARGUMENT;
  }
  return AX_OK;
}

static ax_status call_function(const ax_eval_args *args, ax_callback *callback, uint32_t lane) {
  const ax_eqn *eqn = args->eqn;
  char message[AX_MESSAGE_BYTES] = "";
  if (args->callback != NULL) callback = args->callback;
  else AX_TRY(ax_callback_resolve(args->hooks, callback, &callback));
  ax_host_array *in = ax_alloc(((size_t)eqn->in_count + eqn->out_count) * sizeof in[0]), *out = in + eqn->in_count;
  if (in == NULL) return ax_out_of_memory(((size_t)eqn->in_count + eqn->out_count) * sizeof in[0]);
  for (uint32_t i = 0; i < eqn->in_count; i++) in[i] = view_of(args->in[(size_t)i * args->lanes + lane]);
  for (uint32_t k = 0; k < eqn->out_count; k++) {
    ax_tensor *result = args->out[(size_t)k * args->lanes + lane];
    size_t bytes = (size_t)ax_dims_elems(result->rank, result->dims) * ax_dtype_bytes(result->dtype);
    out[k] = view_of(result);
    if (bytes > 0) memset(result->data, 0, bytes); /* its memory may have been another's */
  }
  ax_callback_call call = {callback->name, args->device[lane], eqn->in_count, eqn->out_count, in, out, message, 0, NULL};
  if (args->run != NULL) call.user_data_count = args->run->user_data_count, call.user_data = args->run->user_data;
  const ax_float_mode run = ax_float_mode_enter(false); /* the user's code does not compute as the run does */
  ax_status status = callback->function(&call, callback->context);
  ax_float_mode_leave(run);
  if (status == AX_OK) status = check_places(args, out, lane, message);
  ax_free(in);
  return status == AX_OK ? AX_OK : failed(callback, &call, status);
}

static ax_status pure_eval(const ax_eval_args *args) {
  return call_function(args, ((const pure_params *)args->eqn->params)->callback, 0);
}

static ax_status io_call(const ax_eval_args *args, uint32_t lane) {
  return call_function(args, ((const io_params *)args->eqn->params)->callback, lane);
}
static ax_status io_eval(const ax_eval_args *args) { return ax_host_call_eval(args, io_call); }

/* --- jvp, batch, lower --- */

static void pure_differs(const ax_differs_args *args) {
  ax_axis_set set = 0;
  for (uint32_t i = 0; i < args->eqn->in_count; i++) set |= args->in[i];
  for (uint32_t k = 0; k < args->eqn->out_count; k++) args->out[k] = set;
}

static void pure_batch(const ax_batch_args *args) {
  const ax_eqn *eqn = args->eqn;
  pure_params params = *(const pure_params *)eqn->params;
  if (!params.vectorized) {
    ax_batch_one_by_one(args, &params);
    return;
  }
  ax_value *in = ax_trace_alloc(eqn->in_count * sizeof in[0]);
  ax_type *types = ax_trace_alloc(params.types.count * sizeof types[0]);
  if (in == NULL || types == NULL) return;
  for (uint32_t i = 0; i < eqn->in_count; i++) in[i] = ax_batch_front(args->in[i], args->in_dim[i], args->size);
  for (uint32_t k = 0; k < params.types.count; k++) {
    types[k] = params.types.v[k];
    if (types[k].rank == AX_MAX_RANK) {
      (void)ax_reject(&ax_prim_pure_callback, "batched, a result would have a rank above %d", AX_MAX_RANK);
      return;
    }
    memmove(types[k].dims + 1, types[k].dims, types[k].rank * sizeof types[k].dims[0]);
    types[k].dims[0] = args->size;
    types[k].rank++;
  }
  params.types.v = types;
  ax_bind(&ax_prim_pure_callback, &params, in, eqn->in_count, args->out, eqn->out_count);
}

static ax_status io_lower(ax_lower *lower, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  return ax_lower_host_call(lower, eqn, &((const io_params *)eqn->params)->axes, in, out);
}

/* --- The records --- */

static const ax_param pure_list[] = {{"vectorized", AX_PARAM_BOOL, offsetof(pure_params, vectorized)},
                                     {"callback", AX_PARAM_CALLBACK, offsetof(pure_params, callback)},
                                     {"types", AX_PARAM_TYPES, offsetof(pure_params, types)}};
static const ax_param io_list[] = {{"axes", AX_PARAM_AXES, offsetof(io_params, axes)},
                                   {"callback", AX_PARAM_CALLBACK, offsetof(io_params, callback)},
                                   {"types", AX_PARAM_TYPES, offsetof(io_params, types)}};

const ax_prim ax_prim_pure_callback = {
    .name = "pure_callback", .kind = AX_LOCAL, .in_count = -1, .out_count = -1, .count_outs = pure_outs,
    AX_PARAMS(pure_list, pure_params),
    .infer = pure_infer, .spread = ax_spread_local, .eval = pure_eval, .differs = pure_differs, .jvp = ax_absent_jvp,
    .linearize = ax_absent_jvp, .transpose = ax_absent_transpose, .batch = pure_batch,
    .simplify = ax_simplify_nothing, .shard = ax_shard_whole, .lower = ax_lower_eval, .complex = ax_complex_whole, .hlo = ax_host_call_hlo,
};

#define IO_CALLBACK(name_, effects_)     \
  const ax_prim ax_prim_##name_ = {      \
      .name = #name_,                    \
      .kind = AX_COLLECTIVE,             \
      .effects = (effects_),             \
      .in_count = -1,                    \
      .out_count = -1,                   \
      .count_outs = io_outs,             \
      AX_PARAMS(io_list, io_params),     \
      .infer = io_infer,                 \
      .spread = ax_host_call_spread,     \
      .eval = io_eval,                   \
      .differs = ax_host_call_differs,   \
      .jvp = ax_absent_jvp,              \
      .linearize = ax_absent_jvp,        \
      .transpose = ax_absent_transpose,  \
      .batch = ax_host_call_batch,       \
      .simplify = ax_simplify_nothing,   \
      .shard = ax_shard_whole,           \
      .lower = io_lower, .complex = ax_complex_whole, \
      .hlo = ax_host_call_hlo,           \
  };
IO_CALLBACK(io_callback, AX_EFFECT_STATE)
IO_CALLBACK(ordered_io_callback, AX_EFFECT_STATE | AX_EFFECT_ORDER | AX_EFFECT_EXCHANGE)

/* --- The functions --- */

/* The operands; NULL: the trace has failed. `out` is poison. */
static const ax_value *begin(const ax_prim *prim, const ax_callback *callback, uint32_t in_count, const ax_value *in,
                             uint32_t type_count, const ax_type *out_types, uint32_t out_count, ax_value *out) {
  if (!ax_lists_fit(prim->name, in_count, in_count, out_count, type_count, out)) return NULL;
  const ax_value *operands = ax_take_operands(in, in_count, out, type_count);
  if (!ax_check_operands(prim->name, operands, in_count)) return NULL;
  if (callback == NULL || (out_types == NULL && type_count > 0)) {
    (void)ax_reject(prim, callback == NULL ? "there is no callback" : "there are no types of results");
    return NULL;
  }
  return ax_failed() ? NULL : operands;
}

void (ax_pure_callback)(ax_callback *callback, bool vectorized, uint32_t in_count, const ax_value *in, uint32_t type_count,
                        const ax_type *out_types, uint32_t out_count, ax_value *out) {
  const ax_prim *prim = &ax_prim_pure_callback;
  const ax_value *operands = begin(prim, callback, in_count, in, type_count, out_types, out_count, out);
  pure_params params = {callback, {type_count, (ax_type *)(uintptr_t)out_types}, vectorized};
  if (operands != NULL) ax_bind(prim, &params, operands, in_count, out, type_count);
}

void (ax_io_callback)(ax_callback *callback, bool ordered, uint32_t in_count, const ax_value *in, uint32_t type_count,
                      const ax_type *out_types, uint32_t out_count, ax_value *out) {
  const ax_prim *prim = ordered ? &ax_prim_ordered_io_callback : &ax_prim_io_callback;
  const ax_value *operands = begin(prim, callback, in_count, in, type_count, out_types, out_count, out);
  io_params params = {.callback = callback, .types = {type_count, (ax_type *)(uintptr_t)out_types}};
  if (operands != NULL && ax_host_call_axes(&params.axes)) ax_bind(prim, &params, operands, in_count, out, type_count);
}
