/* Memory as values: what a ref's memory has in it is a value, a load takes a part of it, and a store makes a new one.

     x: ref<f32[8,4]>                        content: f32[8,4]
     y = ref_slice x i 0 -> ref<f32[2,4]>
     ref_load y                              dynamic_slice content, i 0
     ref_store y v                           content := dynamic_update_slice content, v, i 0

   A view of a view is read and written by way of what it is of. */
#include <string.h>

#include "ir/number.h"
#include "ir/region_link.h"
#include "kernel/discharge.h"
#include "kernel/ranges.h"
#include "kernel/step.h"

ax_value ax_discharge_spread(const ax_discharge *d, ax_value x) {
  return ax_failed() || ax_typeof(x).form != AX_ARRAY ? x : ax_spread_to(x, &d->spread);
}

/* --- Memory --- */

double ax_lowest(ax_dtype dtype) {
  const ax_dtype_info *info = ax_dtype_get(dtype);
  if (ax_is_float(dtype)) return ax_number_holds(dtype, __builtin_nan("")) ? __builtin_nan("") : 0;
  return info->kind == AX_KIND_SIGNED ? (double)(INT64_MIN >> (64 - info->bits)) : 0;
}

ax_value ax_content_unset(const ax_discharge *d, const ax_type *type) {
  const bool zero = d->zeros || type->form == AX_SEMAPHORE || type->form == AX_DMA_SEMAPHORE;
  if (!zero && ax_dtype_get(type->dtype)->kind == AX_KIND_SIGNED)
    return ax_discharge_spread(d, ax_full_i64(type->dtype, AX_LIST(type->rank, type->dims), (int64_t)ax_lowest(type->dtype)));
  const double value = zero ? 0 : ax_lowest(type->dtype);
  return ax_discharge_spread(d, ax_full(type->dtype, AX_LIST(type->rank, type->dims), value));
}

static ax_content_view *new_view(ax_discharge *d, const ax_type *type) {
  ax_content_view *view = ax_arena_alloc(&d->arena, sizeof *view);
  if (view == NULL) ax_fail(ax_out_of_memory(sizeof *view));
  else *view = (ax_content_view){.memory = AX_NONE, .type = *type};
  return view;
}

const ax_content_view *ax_content_add(ax_discharge *d, const ax_type *type, ax_value content) {
  ax_content_view *view = new_view(d, type);
  const bool counts = type->form == AX_SEMAPHORE || (type->form == AX_DMA_SEMAPHORE && d->right != AX_NONE);
  if (view == NULL || (type->form != AX_REF && !counts)) return view;
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

/* --- Views --- */

ax_value ax_content_read(ax_discharge *d, const ax_content_view *view) {
  if (ax_failed()) return ax_poison;
  if (view->of == NULL) return d->content[view->memory];
  return ax_step_view_of(view->eqn)->read(view, ax_content_read(d, view->of));
}

void ax_content_write(ax_discharge *d, const ax_content_view *view, ax_value value) {
  for (; view->of != NULL && !ax_failed(); view = view->of) {
    const ax_step_view *how = ax_step_view_of(view->eqn); /* of a view of all nothing is left of what was there */
    value = how->write(d, view, how->all ? ax_poison : ax_content_read(d, view->of), value);
  }
  if (!ax_failed()) d->content[view->memory] = ax_discharge_spread(d, value);
}

/* --- What is asked for --- */

ax_value ax_discharge_guarded(const ax_discharge *d, ax_value was, ax_value becomes) {
  return d->guard != NULL ? ax_select_n(*d->guard, was, becomes) : becomes;
}

void ax_discharge_require(ax_discharge *d, ax_value holds) {
  if (ax_failed()) return;
  const ax_value asked = ax_discharge_spread(d, ax_convert_element_type(holds, AX_S32)), right = d->content[d->right];
  d->content[d->right] = ax_discharge_guarded(d, right, ax_min(right, asked));
}

static bool asks(ax_ranges *all, const ax_program *program) {
  const ax_program *nested;
  ax_memo_entry *entry = ax_memo_ask(&all->memo, "asks", program, NULL, 0);
  if (entry == NULL || entry->known) return entry == NULL || entry->count != 0;
  for (uint32_t e = 0; e < program->eqn_count && entry->count == 0; e++) {
    const ax_step *step = program->eqns[e].prim->step;
    if (step != NULL && step->view != NULL) entry->count = ax_ranges_is_late(all, program, e);
    else if (step != NULL) entry->count = step->moves;
    for (uint32_t k = 0; entry->count == 0 && (nested = ax_eqn_program(&program->eqns[e], k)) != NULL; k++) entry->count = asks(all, nested);
  }
  entry->known = true;
  return entry->count != 0;
}

bool ax_discharge_asks(const ax_discharge *d, const ax_program *program) { return d->right != AX_NONE && asks(d->all, program); }

/* --- What is written --- */

typedef struct origins {
  ax_memo *memo;
  uint32_t *of; /* by value: the input that it is a view of; AX_NONE: none */
  bool *written;
} origins;

static const bool *written_by(ax_memo *memo, const ax_program *program);

static bool look_into(const ax_eqn *eqn, uint32_t k, const ax_program *nested, const origins *o) {
  const bool *written = written_by(o->memo, nested);
  for (uint32_t i = 0; written != NULL && i < nested->in_count; i++) {
    const ax_region_link link = ax_region_link_in(eqn, k, i);
    const uint32_t operand = written[i] && link.carry == AX_NONE ? link.number : AX_NONE;
    if (operand != AX_NONE && o->of[eqn->in[operand]] != AX_NONE) o->written[o->of[eqn->in[operand]]] = true;
  }
  return written != NULL;
}

/* The count of a DMA semaphore, which copies and waits for them change. */
static bool is_counted(const ax_eqn *eqn, const ax_type *type) {
  return type->form == AX_DMA_SEMAPHORE && eqn->prim->step != NULL && eqn->prim->step->moves;
}

static bool look(const ax_eqn *eqn, const ax_type *types, const origins *o) {
  const ax_program *nested;
  if (ax_step_view_of(eqn) != NULL) o->of[eqn->out] = o->of[eqn->in[0]];
  for (uint32_t i = 0; i < eqn->in_count; i++)
    if ((ax_step_writes(eqn, i) || is_counted(eqn, &types[eqn->in[i]])) && o->of[eqn->in[i]] != AX_NONE)
      o->written[o->of[eqn->in[i]]] = true;
  for (uint32_t k = 0; (nested = ax_eqn_program(eqn, k)) != NULL; k++)
    if (!look_into(eqn, k, nested, o)) return false;
  return true;
}

/* By input. Each program once, however many call it. NULL: no memory. */
static const bool *written_by(ax_memo *memo, const ax_program *program) {
  ax_memo_entry *entry = ax_memo_ask(memo, "written", program, NULL, 0);
  if (entry == NULL || entry->data != NULL) return entry != NULL ? entry->data : NULL;
  origins o = {.memo = memo, .of = ax_alloc((size_t)program->value_count * sizeof o.of[0]),
               .written = ax_arena_alloc(&memo->arena, (size_t)program->in_count + 1)};
  bool made = o.of != NULL && o.written != NULL;
  for (uint32_t i = 0; made && i < program->value_count; i++) o.of[i] = i < program->in_count ? i : AX_NONE;
  for (uint32_t i = 0; made && i < program->in_count; i++) o.written[i] = false;
  for (uint32_t e = 0; e < program->eqn_count && made; e++) made = look(&program->eqns[e], program->types, &o);
  ax_free(o.of);
  return made ? (entry->data = o.written) : NULL;
}

ax_status ax_written_inputs(const ax_program *program, bool *written) {
  ax_memo memo = {0};
  const bool *found = written_by(&memo, program);
  if (found != NULL && program->in_count > 0) memcpy(written, found, program->in_count);
  ax_memo_deinit(&memo);
  return found != NULL ? AX_OK : ax_out_of_memory(program->value_count);
}
