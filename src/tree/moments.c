/* The layout of an optimiser's state (moments.h). */
#include "tree/moments.h"

#include <string.h>

#include "tree/pattern.h"
#include "tree/treedef.h"

bool ax_accumulates(const ax_optimizer *o) { return o->accumulate_steps > 1; }

uint32_t ax_moment_scalars(const ax_optimizer *o) { return ax_accumulates(o) ? 2 : 1; }

static const ax_moment sgd[] = {{"trace", AX_MOMENT_LIKE}}, lion[] = {{"mu", AX_MOMENT_LIKE}},
                       rmsprop[] = {{"nu", AX_MOMENT_LIKE}, {"trace", AX_MOMENT_LIKE}},
                       adagrad[] = {{"sum_of_squares", AX_MOMENT_LIKE}},
                       adafactor[] = {{"v_row", AX_MOMENT_ROWS},
                                      {"v_col", AX_MOMENT_COLUMNS},
                                      {"v", AX_MOMENT_WHOLE},
                                      {"trace", AX_MOMENT_LIKE}},
                       shampoo[] = {{"left", AX_MOMENT_LEFT}, {"right", AX_MOMENT_RIGHT}, {"trace", AX_MOMENT_LIKE}},
                       novograd[] = {{"mu", AX_MOMENT_LIKE}, {"nu", AX_MOMENT_SCALAR}},
                       adam[] = {{"mu", AX_MOMENT_LIKE}, {"nu", AX_MOMENT_LIKE}};

static const ax_moment *own_moments(const ax_optimizer *o, uint32_t *count) {
  const uint32_t momentum = o->momentum != 0;
  switch (o->kind) {
    case AX_SGD:
      return *count = momentum, sgd;
    case AX_LION:
      return *count = 1, lion;
    case AX_RMSPROP:
      return *count = 1 + momentum, rmsprop;
    case AX_ADAGRAD:
      return *count = 1, adagrad;
    case AX_ADAFACTOR:
      return *count = 3 + momentum, adafactor;
    case AX_SHAMPOO:
      return *count = 2 + momentum, shampoo;
    case AX_NOVOGRAD:
      return *count = 2, novograd;
    default:
      return *count = 2, adam;
  }
}

uint32_t ax_moments_of(const ax_optimizer *o, ax_moment out[AX_MOMENTS]) {
  uint32_t count;
  const ax_moment *own = own_moments(o, &count);
  memcpy(out, own, count * sizeof out[0]);
  if (ax_accumulates(o)) out[count++] = (ax_moment){"acc_grads", AX_MOMENT_WIDE};
  if (o->ema_decay > 0) out[count++] = (ax_moment){"ema", AX_MOMENT_LIKE};
  return count;
}

/* --- Shapes --- */

bool ax_is_factored(const ax_optimizer *o, const ax_type *whole, uint32_t *largest, uint32_t *next) {
  if (whole->rank < 2) return false;
  *largest = 0;
  for (uint32_t d = 1; d < whole->rank; d++)
    if (whole->dims[d] >= whole->dims[*largest]) *largest = d;
  *next = *largest == 0 ? 1 : 0;
  for (uint32_t d = 0; d < whole->rank; d++)
    if (d != *largest && whole->dims[d] >= whole->dims[*next]) *next = d;
  return whole->dims[*next] >= o->min_dim_size_to_factor;
}

/* The dimension that the moment lacks; AX_NONE: none. False: the moment is [1]. */
static bool dropped(const ax_optimizer *o, ax_moment_shape shape, const ax_type *whole, uint32_t *out) {
  uint32_t largest, next;
  *out = AX_NONE;
  if (shape != AX_MOMENT_ROWS && shape != AX_MOMENT_COLUMNS && shape != AX_MOMENT_WHOLE) return true;
  const bool factored = ax_is_factored(o, whole, &largest, &next);
  if (shape == AX_MOMENT_WHOLE) return !factored;
  if (factored) *out = shape == AX_MOMENT_ROWS ? largest : next;
  return factored;
}

static bool of_blocks(ax_moment_shape shape) { return shape == AX_MOMENT_LEFT || shape == AX_MOMENT_RIGHT; }

static ax_type blocks_type(const ax_optimizer *o, ax_moment_shape shape, const ax_type *whole, ax_dtype dtype) {
  const ax_shampoo_blocks b = ax_shampoo_blocks_of(o, whole);
  const int64_t size = shape == AX_MOMENT_LEFT ? b.block_rows : b.block_columns;
  if (shape == AX_MOMENT_RIGHT && b.vector) return ax_array_type(dtype, AX_DIMS(1));
  return ax_array_type(dtype, AX_DIMS(b.down, b.across, size, size));
}

ax_type ax_moment_type(const ax_optimizer *o, ax_moment_shape shape, const ax_type *whole, const ax_type *part) {
  const ax_dtype wide = part->dtype == AX_F64 ? AX_F64 : AX_F32;
  uint32_t without;
  if (shape == AX_MOMENT_SCALAR) return ax_array_type(part->dtype, AX_DIMS());
  if (of_blocks(shape)) return blocks_type(o, shape, whole, wide);
  if (!dropped(o, shape, whole, &without)) return ax_array_type(part->dtype, AX_DIMS(1));
  ax_type type = ax_array_type(part->dtype, AX_LIST(part->rank, part->dims));
  if (shape == AX_MOMENT_WIDE) type.dtype = wide;
  if (without >= part->rank) return type; /* none, or a part of another rank, which is refused */
  memmove(type.dims + without, type.dims + without + 1, (type.rank - without - 1) * sizeof type.dims[0]);
  type.dims[--type.rank] = 0;
  return type;
}

/* --- Treedefs --- */

static ax_status add(ax_treedef *def, const ax_treedef *from, uint32_t i, const ax_type *type, const char *spec, size_t length) {
  return ax_treedef_add(def, from->names[i], strlen(from->names[i]), type, spec, length);
}

/* The spec of a moment: the parameter's, without the entry of a dimension that the moment lacks. */
static ax_status add_moment(ax_treedef *def, const ax_optimizer *o, ax_moment_shape shape, const ax_treedef *params, uint32_t i) {
  const ax_type *whole = &params->types[i], type = ax_moment_type(o, shape, whole, whole);
  const char *spec = params->specs[i];
  char without_one[AX_MAX_RANK * (AX_MAX_AXES * (AX_MAX_NAME + 1) + 1)] = "";
  uint32_t without;
  if (shape == AX_MOMENT_SCALAR || of_blocks(shape) || !dropped(o, shape, whole, &without))
    return add(def, params, i, &type, "", 0);
  if (without == AX_NONE) return add(def, params, i, &type, spec, strlen(spec));
  size_t length = 0;
  for (uint32_t d = 0; *spec != '\0'; d++) {
    size_t bytes = strcspn(spec, ",");
    if (d != without) {
      if (length > 0) without_one[length++] = ',';
      memcpy(without_one + length, spec, bytes);
      length += bytes;
    }
    spec += bytes + (spec[bytes] != '\0');
  }
  return add(def, params, i, &type, without_one, length);
}

static ax_status moment_treedef(const ax_optimizer *o, ax_moment_shape shape, const ax_treedef *params, ax_treedef **out) {
  ax_treedef *def;
  *out = NULL;
  AX_TRY(ax_treedef_begin(&def));
  ax_status status = AX_OK;
  for (uint32_t i = 0; status == AX_OK && i < params->count; i++) status = add_moment(def, o, shape, params, i);
  return ax_treedef_finish(def, status, out);
}

static ax_status scalars_treedef(const ax_optimizer *o, ax_treedef **out) {
  const ax_type type = ax_array_type(AX_S32, AX_DIMS());
  const char *const names[] = {"count", "mini_step"};
  return ax_treedef_create(AX_LIST(ax_moment_scalars(o), names), ((const ax_type[]){type, type}), NULL, out);
}

ax_status ax_moments_treedef(const ax_optimizer *o, const ax_treedef *trained, ax_treedef **out) {
  ax_moment moments[AX_MOMENTS];
  ax_treedef *parts[1 + AX_MOMENTS] = {NULL};
  char names[128] = "";
  const uint32_t count = trained->count > 0 ? ax_moments_of(o, moments) : 0;
  *out = NULL;
  ax_status status = scalars_treedef(o, &parts[0]);
  for (uint32_t k = 0; status == AX_OK && k < count; k++) {
    strcat(strcat(names, "; "), moments[k].name);
    status = moment_treedef(o, moments[k].shape, trained, &parts[1 + k]);
  }
  if (status == AX_OK) status = ax_treedef_join(names, AX_LIST(1 + count, parts), out);
  for (uint32_t k = 0; k <= count; k++) ax_treedef_release(parts[k]);
  return status;
}

ax_status ax_trained(const ax_optimizer *o, const ax_treedef *params, ax_treedef **out) {
  ax_rules rules = {0};
  ax_treedef *def;
  *out = NULL;
  if (o->trainable == NULL) {
    *out = ax_treedef_retain((ax_treedef *)params);
    return AX_OK;
  }
  ax_status status = ax_rules_parse(o->trainable, "trainable", false, &rules);
  if (status == AX_OK) status = ax_treedef_begin(&def);
  if (status == AX_OK) {
    for (uint32_t i = 0; status == AX_OK && i < params->count; i++)
      if (ax_rules_pick(&rules, params->names[i]))
        status = add(def, params, i, &params->types[i], params->specs[i], strlen(params->specs[i]));
    status = ax_treedef_finish(def, status, out);
  }
  ax_rules_deinit(&rules);
  return status;
}
