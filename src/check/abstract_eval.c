/* Equations of cores on values that are known in part. Where all operands are known, the equation is evaluated. Otherwise integers
   are followed element by element, or within bounds, and floats are not. */
#include <string.h>

#include "check/abstract.h"
#include "kernel/step.h"
#include "ir/dtype.h"
#include "prim/prims.h"

enum { most_operands = 64 };

typedef struct evaluation {
  const ax_abstract_site *site;
  const ax_core_code_step *step;
  ax_abstract *const *in;
} evaluation;

static const ax_type *type_in(const evaluation *e, uint32_t i) { return &e->site->code->types[e->step->in[i]]; }
static const ax_type *type_out(const evaluation *e, uint32_t k) { return &e->site->code->types[e->step->out[k]]; }

static ax_status call(const evaluation *e, ax_tensor *const *in, ax_tensor **out) {
  const ax_eval_args args = {.eqn = e->step->eqn,
                             .axes = &e->step->program->axes,
                             .lanes = 1,
                             .device = &e->site->core->place,
                             .in = in,
                             .out = out,
                             .hooks = e->site->machine->hooks};
  return e->step->eqn->prim->eval(&args);
}

/* --- All operands are known --- */

/* Large arrays of floats decide nothing, and cost time. */
static bool is_known(const evaluation *e) {
  if (e->step->eqn->prim->effects != 0) return false;
  for (uint32_t i = 0; i < e->step->in_count; i++)
    if (e->in[i]->tensor == NULL) return false;
  for (uint32_t k = 0; k < e->step->out_count; k++)
    if (ax_type_elems(type_out(e, k)) > AX_MOST_SYMBOLS ||
        (!ax_is_counted(type_out(e, k)->dtype) && ax_type_elems(type_out(e, k)) > 64))
      return false;
  return true;
}

static ax_status evaluate(const evaluation *e, ax_abstract **out) {
  ax_tensor *in[most_operands], *made[most_operands] = {NULL};
  ax_status status = AX_OK;
  for (uint32_t i = 0; i < e->step->in_count; i++) in[i] = e->in[i]->tensor;
  for (uint32_t k = 0; k < e->step->out_count && status == AX_OK; k++) status = ax_tensor_create(type_out(e, k), &made[k]);
  if (status == AX_OK) status = call(e, in, made);
  for (uint32_t k = 0; k < e->step->out_count && status == AX_OK; k++) {
    status = ax_abstract_own(made[k], &out[k]);
    if (status == AX_OK) made[k] = NULL;
  }
  for (uint32_t k = 0; k < e->step->out_count; k++) ax_tensor_release(made[k]);
  return status;
}

/* --- Element by element --- */

static bool all_have_ids(const evaluation *e) {
  for (uint32_t i = 0; i < e->step->in_count; i++)
    if (!ax_abstract_has_ids(e->in[i], type_in(e, i)->dtype)) return false;
  return e->step->in_count > 0;
}

static ax_status each_element(const evaluation *e, ax_abstract *out) {
  ax_symbols *symbols = e->site->symbols;
  uint32_t ids[4];
  for (uint64_t i = 0; i < out->count; i++) {
    for (uint32_t k = 0; k < e->step->in_count; k++)
      AX_TRY(ax_abstract_id(symbols, e->in[k], type_in(e, k)->dtype, e->in[k]->count == 1 ? 0 : i, &ids[k]));
    AX_TRY(ax_symbols_apply(symbols, e->step->eqn, ids, type_out(e, 0)->dtype, &out->ids[i]));
  }
  return AX_OK;
}

/* --- Elements that move --- */

static bool is_move(const ax_prim *prim) {
  return prim == &ax_prim_transpose || prim == &ax_prim_broadcast_in_dim || prim == &ax_prim_slice || prim == &ax_prim_rev ||
         prim == &ax_prim_concatenate || prim == &ax_prim_dynamic_slice;
}

/* How many of the operands move; those behind are known. 0: they cannot be followed. */
static uint32_t moving_of(const evaluation *e) {
  const uint32_t count = e->step->eqn->prim == &ax_prim_dynamic_slice ? 1 : e->step->in_count;
  if (!is_move(e->step->eqn->prim) || ax_dtype_get(type_out(e, 0)->dtype)->bytes != sizeof(uint32_t)) return 0;
  for (uint32_t i = 0; i < count; i++)
    if (!ax_abstract_has_ids(e->in[i], type_in(e, i)->dtype)) return 0;
  for (uint32_t i = count; i < e->step->in_count; i++)
    if (e->in[i]->tensor == NULL) return 0;
  return count;
}

/* The equation itself moves the ids, which have the size of the elements. */
static ax_status move_ids(const evaluation *e, uint32_t moving, ax_abstract *out) {
  ax_tensor *in[most_operands] = {NULL}, *made = NULL;
  ax_status status = ax_tensor_create(type_out(e, 0), &made);
  for (uint32_t i = 0; i < moving && status == AX_OK; i++) {
    status = ax_tensor_create(type_in(e, i), &in[i]);
    for (uint64_t k = 0; k < e->in[i]->count && status == AX_OK; k++)
      status = ax_abstract_id(e->site->symbols, e->in[i], type_in(e, i)->dtype, k, (uint32_t *)in[i]->data + k);
  }
  for (uint32_t i = moving; i < e->step->in_count; i++) in[i] = e->in[i]->tensor;
  if (status == AX_OK) status = call(e, in, &made);
  if (status == AX_OK) memcpy(out->ids, made->data, out->count * sizeof out->ids[0]);
  for (uint32_t i = 0; i < moving; i++) ax_tensor_release(in[i]);
  ax_tensor_release(made);
  return status;
}

/* Elements at a place that depends on inputs: the same place in the same array has the same. By its size a slice may begin elsewhere than
   its start says, so slices of other sizes have other elements. */
static ax_status take_ids(const evaluation *e, ax_abstract *out) {
  ax_symbols *symbols = e->site->symbols;
  const ax_interval bounds = ax_abstract_bounds(symbols, e->in[0]);
  const ax_type *type = type_out(e, 0);
  uint64_t key[3 + 2 * AX_MAX_RANK] = {AX_SYMBOL_TAKEN, e->in[0]->serial};
  uint32_t words = 2;
  for (uint32_t i = 1; i < e->step->in_count; i++) {
    uint32_t start;
    AX_TRY(ax_abstract_id(symbols, e->in[i], type_in(e, i)->dtype, 0, &start));
    key[words++] = start;
  }
  for (uint32_t d = 0; d < type->rank; d++) key[words++] = (uint64_t)type->dims[d];
  for (uint64_t k = 0; k < out->count; k++) {
    key[words] = k;
    AX_TRY(ax_symbols_named(symbols, type->dtype, bounds, words + 1, key, &out->ids[k]));
  }
  return AX_OK;
}

static bool takes_ids(const evaluation *e) {
  if (e->step->eqn->prim != &ax_prim_dynamic_slice || e->in[0]->ids == NULL) return false;
  for (uint32_t i = 1; i < e->step->in_count; i++)
    if (!ax_abstract_has_ids(e->in[i], type_in(e, i)->dtype)) return false;
  return true;
}

/* Fills in the ids of result 0, if they can be told; *told. */
static ax_status fill_ids(const evaluation *e, ax_abstract *out, bool *told) {
  const ax_eqn *eqn = e->step->eqn;
  const uint32_t moving = moving_of(e);
  const bool copies = eqn->prim == &ax_prim_reshape || (eqn->prim == &ax_prim_broadcast_in_dim && e->in[0]->count == 1);
  *told = true;
  if (ax_is_elementwise(eqn) && e->step->in_count <= 4 && all_have_ids(e)) return each_element(e, out);
  if (copies && all_have_ids(e)) {
    for (uint64_t k = 0; k < out->count; k++)
      AX_TRY(ax_abstract_id(e->site->symbols, e->in[0], type_in(e, 0)->dtype, e->in[0]->count == 1 ? 0 : k, &out->ids[k]));
    return AX_OK;
  }
  if (moving > 0) return move_ids(e, moving, out);
  if (takes_ids(e)) return take_ids(e, out);
  *told = false;
  return AX_OK;
}

/* --- Bounds --- */

static ax_status bounds_of(const evaluation *e, uint32_t k, ax_interval *out) {
  ax_interval ranges[most_operands];
  ax_dtype dtypes[most_operands];
  for (uint32_t i = 0; i < e->step->in_count; i++) {
    dtypes[i] = type_in(e, i)->dtype;
    ranges[i] = ax_abstract_bounds(e->site->symbols, e->in[i]);
  }
  *out = ax_interval_of_eqn(e->step->eqn, dtypes, ranges, type_out(e, k)->dtype);
  return AX_OK;
}

static ax_status one_result(const evaluation *e, uint32_t k, ax_abstract **out) {
  const ax_type *type = type_out(e, k);
  const uint64_t count = (uint64_t)ax_type_elems(type);
  bool told = false;
  ax_interval range;
  if (!ax_is_counted(type->dtype)) return ax_abstract_range(count, ax_interval_of_dtype(type->dtype), out);
  if (count > AX_MOST_SYMBOLS) {
    AX_TRY(bounds_of(e, k, &range));
    return ax_abstract_range(count, range, out);
  }
  AX_TRY(ax_abstract_ids(e->site->symbols, count, out));
  if (k == 0) AX_TRY(fill_ids(e, *out, &told));
  if (told) return ax_abstract_settle(e->site->symbols, type, out);
  AX_TRY(bounds_of(e, k, &range));
  if (count == 1) return ax_symbols_fresh(e->site->symbols, type->dtype, range, &(*out)->ids[0]);
  ax_abstract_release(*out);
  return ax_abstract_range(count, range, out);
}

ax_status ax_abstract_eval(const ax_abstract_site *site, const ax_core_code_step *step, ax_abstract *const *in, ax_abstract **out) {
  const evaluation e = {site, step, in};
  if (step->in_count > most_operands || step->out_count > most_operands)
    return ax_error(AX_ABSENT, "an equation of more than %d operands in a kernel", most_operands);
  if (is_known(&e)) return evaluate(&e, out);
  for (uint32_t k = 0; k < step->out_count; k++) AX_TRY(one_result(&e, k, &out[k]));
  return AX_OK;
}
