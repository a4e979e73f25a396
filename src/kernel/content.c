/* Memory as values: what a ref's memory has in it is a value, a load takes a part of it, and a store makes a new one.

     x: ref<f32[8,4]>                        content: f32[8,4]
     y = ref_slice x i 0 -> ref<f32[2,4]>
     ref_load y                              dynamic_slice content, i 0
     ref_store y v                           content := dynamic_update_slice content, v, i 0

   A view of a view is read and written by way of what it is of. */
#include <string.h>

#include "kernel/discharge.h"
#include "kernel/step.h"
#include "prim/prims.h"

ax_value ax_discharge_spread(const ax_discharge *d, ax_value x) {
  return ax_failed() || ax_typeof(x).form != AX_ARRAY ? x : ax_spread_to(x, &d->spread);
}

/* --- Memory --- */

ax_value ax_content_unset(const ax_discharge *d, const ax_type *type) {
  double value = 0;
  if (!d->zeros && ax_is_float(type->dtype)) value = __builtin_nan("");
  if (!d->zeros && type->dtype == AX_S32 && type->form != AX_SEMAPHORE) value = INT32_MIN;
  return ax_discharge_spread(d, ax_full(type->dtype, type->rank, type->dims, value));
}

static ax_content_view *new_view(ax_discharge *d, const ax_type *type) {
  ax_content_view *view = ax_arena_alloc(&d->arena, sizeof *view);
  if (view == NULL) ax_fail(ax_out_of_memory(sizeof *view));
  else *view = (ax_content_view){.memory = AX_NONE, .type = *type};
  return view;
}

const ax_content_view *ax_content_add(ax_discharge *d, const ax_type *type, ax_value content) {
  ax_content_view *view = new_view(d, type);
  if (view == NULL || (type->form != AX_REF && type->form != AX_SEMAPHORE)) return view;
  ax_status status = ax_grow(&d->content, sizeof d->content[0], d->memory_count, 1, &d->memory_capacity);
  if (status != AX_OK) {
    ax_fail(status);
    return NULL;
  }
  view->memory = d->memory_count;
  d->content[d->memory_count++] = content;
  return view;
}

const ax_content_view *ax_content_of(ax_discharge *d, const ax_content_view *of, const ax_eqn *eqn, const ax_type *type,
                                     const ax_value *starts) {
  ax_content_view *view = new_view(d, type);
  ax_value *kept = ax_arena_alloc(&d->arena, (eqn->in_count + 1) * sizeof kept[0]);
  if (kept == NULL) ax_fail(ax_out_of_memory(eqn->in_count * sizeof kept[0]));
  if (view == NULL || kept == NULL) return NULL;
  memcpy(kept, starts, (eqn->in_count - 1) * sizeof kept[0]);
  view->memory = of->memory;
  view->of = of;
  view->eqn = eqn;
  view->starts = kept;
  return view;
}

/* --- Slices --- */

static bool is_strided(const ax_content_view *view) {
  const ax_dims *strides = &((const ax_ref_slice_params *)view->eqn->params)->strides;
  for (uint32_t d = 0; d < strides->count; d++)
    if (strides->v[d] != 1) return true;
  return false;
}

/* From the first element to the last. */
static void span_of(const ax_content_view *view, int64_t *sizes) {
  const ax_ref_slice_params *params = view->eqn->params;
  for (uint32_t d = 0; d < params->sizes.count; d++) {
    int64_t size = params->sizes.v[d], stride = params->strides.count > 0 ? params->strides.v[d] : 1;
    sizes[d] = size == 0 ? 0 : (size - 1) * stride + 1;
  }
}

static ax_value read_slice(const ax_content_view *view, ax_value whole) {
  const ax_ref_slice_params *params = view->eqn->params;
  int64_t span[AX_MAX_RANK], first[AX_MAX_RANK] = {0};
  span_of(view, span);
  ax_value x = ax_dynamic_slice(whole, view->starts, span);
  return is_strided(view) ? ax_slice(x, first, span, params->strides.v) : x;
}

/* Every strides[d]-th element of `span` from `value`, the others as they were. */
static ax_value interleave(const ax_discharge *d, const ax_content_view *view, ax_value span, ax_value value) {
  const ax_ref_slice_params *params = view->eqn->params;
  int64_t none[AX_MAX_RANK] = {0}, interior[AX_MAX_RANK];
  ax_type mask = ax_array_type(AX_BOOL, view->type.rank, view->type.dims), scalar = ax_array_type(view->type.dtype, 0, NULL);
  for (uint32_t k = 0; k < params->strides.count; k++) interior[k] = params->strides.v[k] - 1;
  ax_value ours = ax_pad(ax_full(AX_BOOL, mask.rank, mask.dims, 1), ax_full(AX_BOOL, 0, NULL, 0), none, none, interior);
  ax_value zero = ax_discharge_spread(d, ax_full(scalar.dtype, 0, NULL, 0));
  return ax_select_n(ours, span, ax_pad(value, zero, none, none, interior));
}

static ax_value write_slice(const ax_discharge *d, const ax_content_view *view, ax_value whole, ax_value value) {
  int64_t span[AX_MAX_RANK];
  if (ax_type_elems(&view->type) == 0) return whole;
  span_of(view, span);
  if (is_strided(view)) value = interleave(d, view, ax_dynamic_slice(whole, view->starts, span), value);
  return ax_dynamic_update_slice(whole, value, view->starts);
}

/* --- Views --- */

static ax_value read_of(const ax_content_view *view, ax_value whole) {
  const ax_dims *dims = view->eqn->params;
  if (view->eqn->prim == &ax_prim_ref_slice) return read_slice(view, whole);
  if (view->eqn->prim == &ax_prim_ref_transpose) return ax_transpose(whole, dims->v);
  return ax_reshape(whole, dims->count, dims->v);
}

/* `whole` with the value where the view is. */
static ax_value write_of(const ax_discharge *d, const ax_content_view *view, ax_value whole, ax_value value) {
  const ax_dims *dims = view->eqn->params;
  int64_t back[AX_MAX_RANK];
  if (view->eqn->prim == &ax_prim_ref_slice) return write_slice(d, view, whole, value);
  if (view->eqn->prim == &ax_prim_ref_reshape) return ax_reshape(value, view->of->type.rank, view->of->type.dims);
  for (uint32_t k = 0; k < dims->count; k++) back[dims->v[k]] = k;
  return ax_transpose(value, back);
}

ax_value ax_content_read(ax_discharge *d, const ax_content_view *view) {
  if (ax_failed()) return ax_poison;
  return view->of == NULL ? d->content[view->memory] : read_of(view, ax_content_read(d, view->of));
}

void ax_content_write(ax_discharge *d, const ax_content_view *view, ax_value value) {
  for (; view->of != NULL && !ax_failed(); view = view->of) {
    bool whole = view->eqn->prim != &ax_prim_ref_slice; /* nothing is left of what was there */
    value = write_of(d, view, whole ? ax_poison : ax_content_read(d, view->of), value);
  }
  if (!ax_failed()) d->content[view->memory] = ax_discharge_spread(d, value);
}

/* --- What is written --- */

typedef struct origins {
  uint32_t *of; /* by value: the input that it is a view of; AX_NONE: none */
  bool *written;
} origins;

static ax_status look_into(const ax_eqn *eqn, uint32_t k, const ax_program *nested, const origins *o) {
  bool *written = ax_calloc((size_t)nested->in_count + 1, sizeof written[0]);
  ax_status status = written != NULL ? ax_written_inputs(nested, written) : ax_out_of_memory(nested->in_count);
  for (uint32_t i = 0; status == AX_OK && i < nested->in_count; i++) {
    const ax_region_link link = ax_region_link_in(eqn, k, i);
    const uint32_t operand = written[i] && link.carry == AX_NONE ? link.number : AX_NONE;
    if (operand != AX_NONE && o->of[eqn->in[operand]] != AX_NONE) o->written[o->of[eqn->in[operand]]] = true;
  }
  ax_free(written);
  return status;
}

static ax_status look(const ax_eqn *eqn, const origins *o) {
  const ax_step *step = eqn->prim->step;
  const ax_program *nested;
  if (step != NULL && step->role == AX_STEP_MAKES_VIEW && eqn->in_count > 0) o->of[eqn->out] = o->of[eqn->in[0]];
  for (uint32_t i = 0; i < eqn->in_count; i++)
    if (ax_step_writes(eqn, i) && o->of[eqn->in[i]] != AX_NONE) o->written[o->of[eqn->in[i]]] = true;
  for (uint32_t k = 0; (nested = ax_eqn_program(eqn, k)) != NULL; k++) AX_TRY(look_into(eqn, k, nested, o));
  return AX_OK;
}

ax_status ax_written_inputs(const ax_program *program, bool *written) {
  origins o = {.of = ax_alloc((size_t)program->value_count * sizeof o.of[0]), .written = written};
  ax_status status = o.of == NULL ? ax_out_of_memory(program->value_count) : AX_OK;
  for (uint32_t i = 0; status == AX_OK && i < program->value_count; i++) o.of[i] = i < program->in_count ? i : AX_NONE;
  for (uint32_t i = 0; i < program->in_count; i++) written[i] = false;
  for (uint32_t e = 0; status == AX_OK && e < program->eqn_count; e++) status = look(&program->eqns[e], &o);
  ax_free(o.of);
  return status;
}
