/* Calls of the host: the devices that make them, and batches, which call for one element after the other. */
#include "control/host_call.h"

#include <stdlib.h>
#include <string.h>

#include "collectives/collective.h"
#include "hlo/hlo.h"
#include "ir/callback.h"
#include "prim/prims.h"

static const ax_axes *axes_of(const ax_eqn *eqn) { return eqn->params; }

bool ax_host_call_axes(ax_axes *out) {
  if (ax_failed()) return false;
  const ax_mesh *axes = &ax_builder_current()->axes;
  *out = ax_axis_set_names(ax_manual_axes(axes), axes); /* devices along automatic ones are one */
  return true;
}

ax_status ax_host_call_spread(const ax_infer_args *args) {
  const ax_axes *names = args->params;
  ax_axis_set set;
  ax_spread all;
  if (names->groups.count > 0) return ax_error(AX_INVALID_ARGUMENT, "it takes no groups");
  AX_TRY(ax_axes_resolve(names, args->axes, &set));
  AX_TRY(ax_spread_join(args, ~(ax_axis_set)0, &all));
  all.varying |= set & ax_checked_axes(args->axes);
  all.reduced &= ~set;
  for (uint32_t k = 0; k < args->out_count; k++) args->out[k].spread = all;
  return AX_OK;
}

void ax_host_call_differs(const ax_differs_args *args) {
  const ax_axes *names = axes_of(args->eqn);
  ax_axis_set set = 0;
  for (uint32_t i = 0; i < args->eqn->in_count; i++) set |= args->in[i];
  for (uint32_t i = 0; args->program != NULL && i < names->count; i++) {
    int axis = ax_mesh_find(&args->program->axes, names->name[i]);
    if (axis >= 0) set |= (ax_axis_set)1 << axis;
  }
  for (uint32_t k = 0; k < args->eqn->out_count; k++) args->out[k] = set;
}

/* --- eval --- */

/* The first device with the same coordinates along the axes of the set. */
static int64_t caller_of(const ax_mesh *mesh, ax_axis_set set, int64_t device) {
  int64_t caller = 0;
  for (uint32_t axis = 0; axis < mesh->count; axis++)
    caller = caller * mesh->axis[axis].size + ((set >> axis & 1) != 0 ? ax_mesh_coordinate(mesh, device, axis) : 0);
  return caller;
}

static int by_number(const void *a, const void *b) {
  int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return x < y ? -1 : x > y;
}

ax_status ax_host_call_eval(const ax_eval_args *args, ax_host_call call) {
  for (uint32_t lane = 0; lane < args->lanes; lane++) {
    const int64_t caller = caller_of(args->axes, args->each, args->device[lane]);
    if (caller == args->device[lane]) {
      AX_TRY(call(args, lane));
      continue;
    }
    const int64_t *from = bsearch(&caller, args->device, args->lanes, sizeof caller, by_number);
    if (from == NULL)
      return ax_error(AX_ABSENT, "no reference evaluation of a %s that is made once for devices which messages order",
                      args->eqn->prim->name);
    for (uint32_t k = 0; k < args->eqn->out_count; k++)
      ax_tensor_assign(args->out[(size_t)k * args->lanes + lane],
                       args->out[(size_t)k * args->lanes + (size_t)(from - args->device)]);
  }
  return AX_OK;
}

/* --- batch --- */

typedef struct element { /* of a batch */
  const ax_batch_args *args;
  const void *params;
} element;

/* in: slices of the operands that have a batch dimension, in their order. */
static void one_element(const ax_value *in, ax_value *out, void *context) {
  const element *e = context;
  const ax_eqn *eqn = e->args->eqn;
  ax_value *operands = ax_trace_alloc(eqn->in_count * sizeof operands[0]);
  if (operands == NULL) return;
  for (uint32_t i = 0; i < eqn->in_count; i++) operands[i] = e->args->in_dim[i] >= 0 ? *in++ : e->args->in[i];
  ax_bind(eqn->prim, e->params, operands, eqn->in_count, out, eqn->out_count);
}

void ax_batch_one_by_one(const ax_batch_args *args, const void *params) {
  const ax_eqn *eqn = args->eqn;
  ax_value *batched = ax_trace_alloc(eqn->in_count * sizeof batched[0]);
  uint32_t count = 0;
  if (batched == NULL) return;
  for (uint32_t i = 0; i < eqn->in_count; i++)
    if (args->in_dim[i] >= 0) batched[count++] = ax_move_dim(args->in[i], args->in_dim[i], 0);
  element e = {args, params};
  ax_scan(AX_CLOSURE(one_element, count, eqn->out_count, &e), 0, args->size, false, batched, args->out);
}

/* Along its own axes, but the one that is batched. */
void ax_host_call_batch(const ax_batch_args *args) {
  const ax_eqn *eqn = args->eqn;
  if ((eqn->prim->effects & AX_EFFECT_ORDER) != 0) {
    ax_fail(ax_error(AX_ABSENT, "vmap: no %s: the elements of a batch have no order; without it they are taken one after the other",
                     eqn->prim->name));
    return;
  }
  char *params = ax_trace_alloc(eqn->prim->params_bytes);
  if (params == NULL) return;
  memcpy(params, eqn->params, eqn->prim->params_bytes);
  (void)ax_axes_without(axes_of(eqn), args->axis, (ax_axes *)(void *)params);
  ax_batch_one_by_one(args, params);
}

static void write_transpose(ax_hlo *hlo, const ax_dims *permutation, ax_type *type, uint32_t *id) {
  ax_hlo_attributes attributes = {.hlo = hlo};
  ax_type to = *type;
  for (uint32_t d = 0; d < permutation->count; d++) to.dims[d] = type->dims[permutation->v[d]];
  ax_hlo_add_dims(&attributes, "permutation", permutation);
  *id = ax_hlo_op(hlo, "stablehlo.transpose", id, 1, &attributes, &to, 1);
  *type = to;
}

static ax_dims inverse(const ax_dims *permutation) {
  ax_dims back = {.count = permutation->count};
  for (uint32_t d = 0; d < permutation->count; d++) back.v[permutation->v[d]] = d;
  return back;
}

/* The call as the module had it: its operands and results are in the order of their dimensions, and those of the callback as they lie in
   memory. in, types: room for operands and results. */
static ax_status write_custom_call(ax_hlo *hlo, const ax_callback *callback, const ax_eqn *eqn, uint32_t *in, ax_type *types,
                                   uint32_t *out) {
  const ax_dims *orders = callback->orders;
  ax_hlo_attributes attributes = {.hlo = hlo};
  ax_type *out_types = types + eqn->in_count;
  for (uint32_t i = 0; i < eqn->in_count; i++) {
    types[i] = hlo->program->types[eqn->in[i]];
    const ax_dims back = orders != NULL ? inverse(&orders[i]) : (ax_dims){0};
    if (back.count > 0) write_transpose(hlo, &back, &types[i], &in[i]);
  }
  for (uint32_t k = 0; k < eqn->out_count; k++) {
    const ax_type *type = &hlo->program->types[eqn->out + k];
    const ax_dims *order = orders != NULL ? &orders[eqn->in_count + k] : NULL;
    out_types[k] = *type;
    for (uint32_t d = 0; order != NULL && d < order->count; d++) out_types[k].dims[order->v[d]] = type->dims[d];
  }
  AX_TRY(ax_hlo_add_spelled(&attributes, callback->custom_call));
  const uint32_t first = ax_hlo_op(hlo, "stablehlo.custom_call", in, eqn->in_count, &attributes, out_types, eqn->out_count);
  for (uint32_t k = 0; k < eqn->out_count; k++) {
    out[k] = first + k;
    if (orders != NULL && orders[eqn->in_count + k].count > 0) write_transpose(hlo, &orders[eqn->in_count + k], &out_types[k], &out[k]);
  }
  return AX_OK;
}

ax_callback *ax_host_call_callback(const ax_eqn *eqn) {
  ax_callback *callback = NULL;
  const ax_prim *prim = eqn->prim;
  for (uint32_t i = 0; i < prim->param_count; i++)
    if (prim->params[i].kind == AX_PARAM_CALLBACK) memcpy(&callback, (const char *)eqn->params + prim->params[i].offset, sizeof callback);
  return callback;
}

/* A callback that was read from a custom call is one again. */
ax_status ax_host_call_hlo(ax_hlo *hlo, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  const ax_callback *callback = ax_host_call_callback(eqn);
  if (callback == NULL || callback->custom_call == NULL)
    return ax_error(AX_ABSENT, "%s has no StableHLO form: it calls a function of this process, which means nothing outside", eqn->prim->name);
  const size_t count = (size_t)eqn->in_count + eqn->out_count + 1, bytes = count * (sizeof(ax_type) + sizeof in[0]);
  ax_type *types = ax_alloc(bytes);
  if (types == NULL) return ax_out_of_memory(bytes);
  uint32_t *ids = (uint32_t *)(types + count);
  if (eqn->in_count > 0) memcpy(ids, in, eqn->in_count * sizeof in[0]);
  const ax_status status = write_custom_call(hlo, callback, eqn, ids, types, out);
  ax_free(types);
  return status;
}
