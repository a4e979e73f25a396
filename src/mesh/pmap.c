/* pmap: a function on as many devices as a dimension of its operands is long. It is no primitive, but an unchecked shard_map over a
   mesh of one axis. Blocks have size 1 along the mapped dimension; the function gets operands without it, and its results get one.

     operand f32[4,8]  --P(i)-->  f32[1,8]  --squeeze-->  f32[8]  --function-->  f32[3]
     f32[3]  --out_axes 1-->  f32[3,1]  --P(_,i)-->  result f32[3,4]

   So derivatives, batches, pruning and everything after are shard_map's. */
#include "axle/pmap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "axle/ops.h"
#include "ir/memo.h"
#include "ir/path.h"
#include "mesh/constraint.h"
#include "mesh/shard_map.h"
#include "prim/prims.h"
#include "prim/region.h"

static const char owner[] = "pmap";

typedef struct mapping {
  const ax_pmap_options *options;
  ax_fn function;
  ax_spec *out_specs; /* filled in when the results are there, whose ranks a dimension counted from the end needs */
} mapping;

/* The mapped dimension of an operand that find_size has checked, or -1. */
static int operand_axis(const mapping *m, uint32_t i, uint32_t rank) {
  int axis;
  return ax_mapped_dim(ax_option_at(&m->options->in_axes, i, 0), rank, &axis) ? axis : -1;
}

/* Split along `axis` over the mesh's one axis; whole for -1. */
static ax_spec spec_along(int axis) {
  ax_spec spec = {0};
  if (axis < 0) return spec;
  spec.rank = (uint32_t)axis + 1;
  spec.count[axis] = 1;
  return spec;
}

/* --- What runs on each device --- */

static ax_value with_axis(const mapping *m, ax_value result, uint32_t k) {
  ax_type type = ax_typeof(result);
  const int64_t given = ax_option_at(&m->options->out_axes, k, 0);
  int axis;
  if (ax_failed()) return result;
  if (ax_mapped_dim(given, type.rank + 1, &axis)) {
    if (axis < 0) return result;
    if (axis < AX_MAX_RANK) m->out_specs[k] = spec_along(axis);
    return ax_expand_dims(result, axis);
  }
  ax_fail(ax_error(AX_INVALID_ARGUMENT, "out_axes[%u]=%lld of %s is out of range", k, (long long)given,
                   ax_type_string(&type, &ax_builder_current()->axes)));
  return ax_poison;
}

static void on_device(const ax_value *in, ax_value *out, void *context) {
  const mapping *m = context;
  ax_value *slices = ax_trace_alloc(m->function.in_count * sizeof slices[0]);
  for (uint32_t i = 0; i < m->function.in_count && slices != NULL; i++) {
    const int64_t axis = operand_axis(m, i, ax_typeof(in[i]).rank);
    slices[i] = axis < 0 ? in[i] : ax_squeeze(in[i], AX_LIST(1, &axis));
  }
  const ax_value *made = slices != NULL ? ax_builder_call(m->function, slices) : NULL;
  for (uint32_t k = 0; k < m->function.out_count && made != NULL; k++) out[k] = with_axis(m, made[k], k);
}

/* --- How long the axis is --- */

/* "; in_axes[0]=0 of f32[8,4] has size 8" of each operand that is mapped. */
static ax_status refuse_sizes(const ax_type *types, const mapping *m, const char *what) {
  ax_text text = {0};
  for (uint32_t i = 0; i < m->function.in_count; i++) {
    const int axis = operand_axis(m, i, types[i].rank);
    if (axis < 0) continue;
    ax_text_add(&text, "%s in_axes[%u]=%lld of %s has size %lld", text.length > 0 ? "," : "", i,
                (long long)ax_option_at(&m->options->in_axes, i, 0), ax_type_string(&types[i], &ax_builder_current()->axes),
                (long long)types[i].dims[axis]);
  }
  ax_status status = ax_error(AX_INVALID_ARGUMENT, "%s:%s", what, text.data != NULL ? text.data : "");
  ax_text_deinit(&text);
  return status;
}

static ax_status find_size(const ax_type *types, const mapping *m, int64_t *size) {
  const ax_pmap_options *options = m->options;
  char what[96];
  *size = -1;
  if (options->axis_size < 0) return ax_error(AX_INVALID_ARGUMENT, "axis_size is %lld", (long long)options->axis_size);
  for (uint32_t i = 0; i < m->function.in_count; i++) {
    const int64_t given = ax_option_at(&options->in_axes, i, 0);
    int axis;
    if (!ax_mapped_dim(given, types[i].rank, &axis))
      return ax_error(AX_INVALID_ARGUMENT, "in_axes[%u]=%lld of %s is out of range", i, (long long)given,
                      ax_type_string(&types[i], &ax_builder_current()->axes));
  }
  for (uint32_t i = 0; i < m->function.in_count; i++) {
    const int axis = operand_axis(m, i, types[i].rank);
    if (axis < 0) continue;
    if (*size >= 0 && types[i].dims[axis] != *size) return refuse_sizes(types, m, "the mapped dimensions are not of one size");
    *size = types[i].dims[axis];
  }
  if (*size < 0 && options->axis_size == 0)
    return ax_error(AX_INVALID_ARGUMENT, "in_axes maps no operand, and axis_size does not say how many devices there are");
  if (*size < 0) *size = options->axis_size;
  if (*size == 0) return refuse_sizes(types, m, "there is no device for mapped dimensions of size 0");
  snprintf(what, sizeof what, "axis_size is %lld", (long long)options->axis_size);
  return options->axis_size == 0 || options->axis_size == *size ? AX_OK : refuse_sizes(types, m, what);
}

/* --- The devices --- */

typedef struct given_device {
  int64_t id;
  uint32_t index;
} given_device;

static int by_id(const void *a, const void *b) {
  const given_device *x = a, *y = b;
  return x->id != y->id ? (x->id > y->id) - (x->id < y->id) : (x->index > y->index) - (x->index < y->index);
}

static ax_status check_ids(const int64_t *devices, uint32_t count) {
  ax_status status = AX_OK;
  given_device *sorted = ax_calloc(count, sizeof sorted[0]);
  if (sorted == NULL) return ax_out_of_memory(count * sizeof sorted[0]);
  for (uint32_t i = 0; i < count; i++) sorted[i] = (given_device){devices[i], i};
  qsort(sorted, count, sizeof sorted[0], by_id);
  if (sorted[0].id < 0) status = ax_error(AX_INVALID_ARGUMENT, "devices[%u] is %lld", sorted[0].index, (long long)sorted[0].id);
  for (uint32_t i = 1; i < count && status == AX_OK; i++)
    if (sorted[i].id == sorted[i - 1].id)
      status = ax_error(AX_INVALID_ARGUMENT, "devices[%u] and devices[%u] are both %lld", sorted[i - 1].index, sorted[i].index,
                        (long long)sorted[i].id);
  ax_free(sorted);
  return status;
}

static ax_status check_devices(const ax_type *types, const mapping *m, int64_t size) {
  const ax_pmap_options *options = m->options;
  const ax_mesh *around = &ax_builder_current()->axes;
  char what[96];
  const uint32_t count = options->devices.count;
  if (count == 0) return AX_OK;
  if (options->devices.v == NULL) return ax_error(AX_INVALID_ARGUMENT, "devices has a count of %u, but no entries", count);
  snprintf(what, sizeof what, "%u device%s given for an axis of %lld", count, count == 1 ? " is" : "s are", (long long)size);
  if (count != size) return refuse_sizes(types, m, what);
  if (around->count > 0)
    return ax_error(AX_INVALID_ARGUMENT, "devices are the outermost pmap's to give; around this one there %s %s",
                    around->count == 1 ? "is" : "are", ax_axis_set_string(ax_all_axes(around), around));
  return check_ids(options->devices.v, count);
}

/* The name given, or one that is not in use. */
static ax_status name_axis(const ax_pmap_options *options, char name[AX_MAX_NAME]) {
  const ax_mesh *around = &ax_builder_current()->axes;
  const char *given = options->axis_name;
  if (given == NULL) {
    snprintf(name, AX_MAX_NAME, "pmap");
    for (uint32_t i = 1; ax_mesh_find(around, name) >= 0; i++) snprintf(name, AX_MAX_NAME, "pmap_%u", i);
    return AX_OK;
  }
  if (!ax_is_name(given, strlen(given))) return ax_error(AX_INVALID_ARGUMENT, "axis_name \"%.64s\" is not a name", given);
  if (ax_mesh_find(around, given) >= 0) return ax_error(AX_INVALID_ARGUMENT, "axis_name \"%s\" is in use around this pmap", given);
  snprintf(name, AX_MAX_NAME, "%s", given);
  return AX_OK;
}

/* --- The function --- */

/* False: the trace has failed. */
static bool check_axes(const ax_pmap_options *options, ax_fn function) {
  return ax_option_fits(owner, "in_axes", options->in_axes.count, options->in_axes.v, function.in_count, "operand") &&
         ax_option_fits(owner, "out_axes", options->out_axes.count, options->out_axes.v, function.out_count, "result");
}

void (ax_pmap)(ax_fn function, uint32_t in_count, const ax_value *in, uint32_t out_count, ax_value *out,
               const ax_pmap_options *options) {
  if (!ax_lists_fit(owner, in_count, function.in_count, out_count, function.out_count, out)) return;
  const ax_pmap_options none = {0};
  if (options != NULL && !check_axes(options, function)) {
    ax_poison_list(out_count, function.out_count, out);
    return;
  }
  mapping m = {options != NULL ? options : &none, function, NULL};
  in = ax_take_operands(in, function.in_count, out, function.out_count);
  ax_type *types = ax_types_of(owner, in, function.in_count);
  ax_spec *in_specs = ax_trace_alloc(function.in_count * sizeof in_specs[0]);
  ax_spec *out_specs = ax_trace_alloc(function.out_count * sizeof out_specs[0]);
  if (types == NULL || in_specs == NULL || out_specs == NULL) return;
  if (function.out_count > 0) memset(out_specs, 0, function.out_count * sizeof out_specs[0]);
  m.out_specs = out_specs;
  ax_shard_map_params params = {.mesh.count = 1, .unchecked = true, .out_specs = {function.out_count, out_specs}};
  ax_axis *axis = &params.mesh.axis[0];
  ax_status status = find_size(types, &m, &axis->size);
  if (status == AX_OK) status = check_devices(types, &m, axis->size);
  if (status == AX_OK) status = name_axis(m.options, axis->name);
  if (status != AX_OK) {
    ax_fail(ax_error_context(status, "%s: ", owner));
    return;
  }
  for (uint32_t i = 0; i < function.in_count; i++) in_specs[i] = spec_along(operand_axis(&m, i, types[i].rank));
  ax_shard_map_trace(owner, &params, in_specs, AX_CLOSURE(on_device, function.in_count, function.out_count, &m), in, out);
}

void ax_call_pmapped(const ax_value *in, ax_value *out, void *pmapped) {
  const ax_pmapped *p = pmapped;
  ax_pmap(p->body, in, out, p->options);
  if (p->call != NULL) ax_stamp(p->call);
}

/* --- How many devices --- */

/* The number of devices that the equation adds. */
static int64_t own_devices(const ax_eqn *eqn, const ax_mesh *axes) {
  const ax_mesh *mesh = NULL;
  if (eqn->prim == &ax_prim_shard_map) mesh = &((const ax_shard_map_params *)eqn->params)->mesh;
  if (eqn->prim == &ax_prim_sharding_constraint) mesh = &((const ax_constraint_params *)eqn->params)->mesh;
  return mesh != NULL && !ax_mesh_is_around(mesh, axes) ? ax_mesh_devices(mesh) : 1;
}

static ax_status count_devices(ax_memo *memo, const ax_program *program, int64_t *count) {
  ax_memo_entry *entry = ax_memo_ask(memo, "devices", program, NULL, 0);
  if (entry == NULL) return ax_out_of_memory(sizeof *entry);
  *count = 1;
  if (entry->known) {
    memcpy(count, entry->data, sizeof *count);
    return AX_OK;
  }
  for (uint32_t i = 0; i < program->eqn_count; i++) {
    const ax_eqn *eqn = &program->eqns[i];
    const ax_program *held;
    const int64_t own = own_devices(eqn, &program->axes);
    if (own > *count) *count = own;
    for (uint32_t k = 0; (held = ax_eqn_program(eqn, k)) != NULL; k++) {
      int64_t needed;
      AX_TRY(count_devices(memo, held, &needed));
      if (!ax_mul_i64(needed, own, &needed)) needed = INT64_MAX;
      if (needed > *count) *count = needed;
    }
  }
  entry->data = ax_arena_alloc(&memo->arena, sizeof *count);
  if (entry->data == NULL) return ax_out_of_memory(sizeof *count);
  memcpy(entry->data, count, sizeof *count);
  entry->known = true;
  return AX_OK;
}

int64_t ax_program_devices(const ax_program *program) {
  ax_memo memo = {0};
  int64_t count = 1;
  if (program == NULL) return 1;
  if (count_devices(&memo, program, &count) != AX_OK) count = INT64_MAX;
  ax_memo_deinit(&memo);
  return count;
}
