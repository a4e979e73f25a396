#include "hlo/verify_rules.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ir/dtype.h"
#include "ir/number.h"

/* --- Questions --- */

static uint32_t class_of_elements(ax_dtype dtype) {
  switch (ax_dtype_get(dtype)->kind) {
    case AX_KIND_BOOL:
      return AX_HLO_TRUTHS;
    case AX_KIND_SIGNED:
      return AX_HLO_SIGNED;
    case AX_KIND_UNSIGNED:
      return AX_HLO_UNSIGNED;
    case AX_KIND_FLOAT:
      return AX_HLO_FLOATS;
    case AX_KIND_COMPLEX:
      return AX_HLO_COMPLEXES;
    case AX_KIND_KEY:
      break;
  }
  return AX_HLO_ALL;
}

/* Elements of StableHLO's for which Axle has no dtype. */
static bool may_be_elements(ax_hlo_slice text) {
  static const char *const names[] = {"f6E2M3FN",   "f6E3M2FN",          "tf32",
                                      "!quant.any", "!quant.calibrated", ":{" /* blocks of scales */};
  for (size_t i = 0; i < AX_COUNT(names); i++)
    if (memmem(text.start, text.length, names[i], strlen(names[i])) != NULL) return true;
  return false;
}

uint32_t ax_hlo_class_of(const ax_hlo_value_type *type) {
  switch (type->kind) {
    case AX_HLO_TENSOR:
      break;
    case AX_HLO_TOKEN:
      return AX_HLO_TOKENS;
    case AX_HLO_TUPLE:
      return AX_HLO_TUPLES;
    case AX_HLO_FUTURE_TYPE:
      return AX_HLO_FUTURES;
    case AX_HLO_SCALAR:
    case AX_HLO_FUNCTION:
    case AX_HLO_OTHER:
      return AX_HLO_OTHERS;
  }
  if (type->quantized != NULL) return type->quantized->axis < 0 ? AX_HLO_SCALED : AX_HLO_CHANNELS;
  if (type->element_known) return class_of_elements(type->dtype);
  return may_be_elements(type->text) ? AX_HLO_ALL & ~AX_HLO_OTHERS : AX_HLO_OTHERS;
}

bool ax_hlo_ranked(const ax_hlo_value_type *type) {
  return type->kind == AX_HLO_TENSOR && type->ranked && type->rank <= AX_MAX_RANK;
}

bool ax_hlo_extents_fit(int64_t a, int64_t b) { return a == b || a == AX_HLO_DYNAMIC || b == AX_HLO_DYNAMIC; }

int64_t ax_hlo_bound(const ax_hlo_value_type *type, uint32_t d) {
  return type->bounds != NULL && d < type->bound_count ? type->bounds[d] : AX_HLO_DYNAMIC;
}

/* An extent that is known is at most the other one's bound. */
static bool is_within(const ax_hlo_value_type *a, const ax_hlo_value_type *b, uint32_t d) {
  const int64_t bound = ax_hlo_bound(b, d);
  return bound == AX_HLO_DYNAMIC || a->dims[d] <= bound;
}

bool ax_hlo_shapes_fit(const ax_hlo_value_type *a, const ax_hlo_value_type *b) {
  if (!ax_hlo_ranked(a) || !ax_hlo_ranked(b)) return true;
  bool fit = a->rank == b->rank;
  for (uint32_t d = 0; fit && d < a->rank; d++)
    fit = ax_hlo_extents_fit(a->dims[d], b->dims[d]) && is_within(a, b, d) && is_within(b, a, d);
  return fit;
}

bool ax_hlo_elements_fit(const ax_hlo_value_type *a, const ax_hlo_value_type *b) {
  const ax_hlo_quantized *x = a->quantized, *y = b->quantized;
  if (x != NULL && y != NULL)
    return x->storage == y->storage && x->least == y->least && x->greatest == y->greatest && x->expressed == y->expressed;
  if (!a->element_known || !b->element_known) return true;
  return (x != NULL ? x->expressed : a->dtype) == (y != NULL ? y->expressed : b->dtype);
}

/* Parts of different types that are compared. What parts share is compared as often as it stands there. */
enum { most_compared = 1 << 16 };

bool ax_hlo_types_fit(const ax_hlo_value_type *a, const ax_hlo_value_type *b) {
  if (a == b) return true;
  if (a->kind == AX_HLO_TENSOR && b->kind == AX_HLO_TENSOR) return ax_hlo_shapes_fit(a, b) && ax_hlo_elements_fit(a, b);
  bool fit = a->kind == b->kind && a->part_count == b->part_count && a->kind != AX_HLO_OTHER && a->size <= most_compared;
  for (uint32_t i = 0; fit && i < a->part_count; i++) fit = ax_hlo_types_fit(a->parts[i], b->parts[i]);
  return fit;
}

bool ax_hlo_is_scalar(const ax_hlo_value_type *type, ax_dtype dtype) {
  return type->kind == AX_HLO_TENSOR && type->ranked && type->rank == 0 && type->element_known && type->quantized == NULL &&
         type->dtype == dtype;
}

const char *ax_hlo_dims_text(const ax_dims *dims, char out[256]) {
  size_t at = 1;
  strcpy(out, "[");
  for (uint32_t d = 0; d < dims->count && at < 220; d++) {
    const char *comma = d > 0 ? ", " : "";
    at += (size_t)(dims->v[d] == AX_HLO_DYNAMIC ? snprintf(out + at, 256 - at, "%s?", comma)
                                                : snprintf(out + at, 256 - at, "%s%" PRId64, comma, dims->v[d]));
  }
  snprintf(out + at, 256 - at, "]");
  return out;
}

ax_dims ax_hlo_dims_of(const ax_hlo_value_type *type) {
  ax_dims dims = {.count = type->rank};
  for (uint32_t d = 0; d < dims.count; d++) dims.v[d] = type->dims[d];
  return dims;
}

bool ax_hlo_known_list(const ax_verified *v, uint32_t i, ax_dims *out) {
  const ax_hlo_attribute *constant = ax_hlo_constant(v->module, v->op->operands[i]);
  if (constant == NULL || constant->data == NULL || constant->kind != AX_HLO_ELEMENTS || !constant->type->element_known)
    return false;
  if ((ax_hlo_class_of(constant->type) & AX_HLO_INTS) == 0 || constant->type->rank != 1 || constant->type->dims[0] > AX_MAX_RANK)
    return false;
  *out = (ax_dims){.count = (uint32_t)constant->type->dims[0]};
  for (uint32_t d = 0; d < out->count; d++)
    out->v[d] = ax_number_load(constant->type->dtype, constant->data, constant->splat ? 0 : d).i;
  return true;
}

bool ax_hlo_table(const ax_hlo_attribute *attribute, int64_t *rows, int64_t *columns) {
  if (attribute == NULL || attribute->kind != AX_HLO_ELEMENTS || !attribute->type->element_known ||
      attribute->type->dtype != AX_S64)
    return false;
  if (attribute->type->rank != 2) return false;
  *rows = attribute->type->dims[0], *columns = attribute->type->dims[1];
  return true;
}

int64_t ax_hlo_table_at(const ax_hlo_attribute *attribute, int64_t place) {
  return ((const int64_t *)attribute->data)[attribute->splat ? 0 : place];
}

/* --- Types that are none --- */

/* #stablehlo.bounds<3, ?>: as many as dimensions, and each of one that is not known. */
static ax_status check_bounds(const ax_hlo_value_type *type) {
  if (type->bound_count != type->rank)
    return ax_error(AX_INVALID_ARGUMENT, "%.*s: there are %u bounds, and %u dimensions", ax_hlo_length(type->text),
                    type->text.start, type->bound_count, type->rank);
  for (uint32_t d = 0; d < type->rank; d++)
    if (type->bounds[d] != AX_HLO_DYNAMIC && type->dims[d] != AX_HLO_DYNAMIC)
      return ax_error(AX_INVALID_ARGUMENT, "%.*s: dimension %u has an extent, and cannot have a bound", ax_hlo_length(type->text),
                      type->text.start, d);
  return AX_OK;
}

static ax_status check_quantized(const ax_hlo_value_type *type, const ax_hlo_quantized *q) {
  const double largest = ax_float_largest(q->expressed);
  const double smallest = ldexp(ax_float_smallest_normal(q->expressed), -(int)ax_dtype_get(q->expressed)->fraction);
  for (uint32_t i = 0; i < q->count; i++) {
    if (!(q->scales[i] >= smallest && q->scales[i] <= largest))
      return ax_error(AX_INVALID_ARGUMENT, "%.*s: the scale %g is no number of %s", ax_hlo_length(type->text), type->text.start,
                      q->scales[i], ax_dtype_get(q->expressed)->hlo);
    const ax_dtype_info *storage = ax_dtype_get(q->storage);
    const bool is_signed = storage->kind == AX_KIND_SIGNED;
    const int64_t half = (int64_t)1 << (storage->bits - 1), least = is_signed ? -half : 0,
                  greatest = is_signed ? half - 1 : 2 * half - 1;
    if (q->zeros[i] < least || q->zeros[i] > greatest)
      return ax_error(AX_INVALID_ARGUMENT, "%.*s: the zero point %" PRId64 " cannot be stored", ax_hlo_length(type->text),
                      type->text.start, q->zeros[i]);
  }
  if (q->axis >= 0 || q->count == 1) return AX_OK;
  return ax_error(AX_INVALID_ARGUMENT, "%.*s: scales must be those of a dimension", ax_hlo_length(type->text), type->text.start);
}

ax_status ax_hlo_check_type(const ax_hlo_value_type *type) {
  if (type->kind == AX_HLO_TENSOR && type->quantized != NULL) AX_TRY(check_quantized(type, type->quantized));
  if (type->kind == AX_HLO_TENSOR) return type->bounds != NULL && type->ranked ? check_bounds(type) : AX_OK;
  if (type->kind == AX_HLO_OTHER && type->text.length > 11 && memcmp(type->text.start, "!stablehlo.", 11) == 0)
    return ax_error(AX_INVALID_ARGUMENT, "%.*s is no type of StableHLO", ax_hlo_length(type->text), type->text.start);
  for (uint32_t i = 0; type->kind == AX_HLO_FUTURE_TYPE && i < type->part_count; i++)
    if (type->parts[i]->kind != AX_HLO_TENSOR || !type->parts[i]->ranked)
      return ax_error(AX_INVALID_ARGUMENT, "%.*s: a future is of arrays of known ranks", ax_hlo_length(type->text),
                      type->text.start);
  return AX_OK;
}

/* --- Checks --- */

ax_status ax_hlo_check_shape(const ax_verified *v, uint32_t k, const ax_dims *dims) {
  char text[256];
  const ax_hlo_value_type *type = ax_verified_out(v, k);
  if (!ax_hlo_ranked(type)) return AX_OK;
  bool fit = type->rank == dims->count;
  for (uint32_t d = 0; fit && d < dims->count; d++) fit = ax_hlo_extents_fit(type->dims[d], dims->v[d]);
  if (fit) return AX_OK;
  return ax_error(AX_INVALID_ARGUMENT, "result %u is %.*s, and must have the shape %s", k, ax_hlo_length(type->text),
                  type->text.start, ax_hlo_dims_text(dims, text));
}

ax_status ax_hlo_check_elements(const ax_verified *v, uint32_t k, uint32_t i) {
  const ax_hlo_value_type *out = ax_verified_out(v, k), *in = ax_verified_in(v, i);
  if (ax_hlo_elements_fit(out, in)) return AX_OK;
  return ax_error(AX_INVALID_ARGUMENT, "result %u is %.*s, and must have the elements of operand %u, %.*s", k,
                  ax_hlo_length(out->text), out->text.start, i, ax_hlo_length(in->text), in->text.start);
}

ax_status ax_hlo_check_places(const char *name, const ax_dims *list, int64_t end, bool sorted) {
  for (uint32_t i = 0; i < list->count; i++) {
    const int64_t d = list->v[i];
    if (d < 0 || d >= end)
      return ax_error(AX_INVALID_ARGUMENT, "%s has %" PRId64 ", which is not in [0, %" PRId64 ")", name, d, end);
    for (uint32_t j = 0; j < i; j++)
      if (list->v[j] == d) return ax_error(AX_INVALID_ARGUMENT, "%s has %" PRId64 " twice", name, d);
    if (sorted && i > 0 && list->v[i - 1] > d) return ax_error(AX_INVALID_ARGUMENT, "%s must be sorted", name);
  }
  return AX_OK;
}

ax_status ax_hlo_check_disjoint(const char *name, const ax_dims *list, const char *other_name, const ax_dims *other) {
  for (uint32_t i = 0; i < list->count; i++)
    for (uint32_t j = 0; j < other->count; j++)
      if (list->v[i] == other->v[j])
        return ax_error(AX_INVALID_ARGUMENT, "dimension %" PRId64 " is both in %s and in %s", list->v[i], name, other_name);
  return AX_OK;
}

ax_status ax_hlo_check_block(const ax_verified *v, uint32_t region, uint32_t count, const ax_hlo_block **block,
                             const ax_hlo_operation **last) {
  const ax_hlo_region *r = region < v->op->region_count ? &v->op->regions[region] : NULL;
  if (r == NULL || r->block_count != 1) return ax_error(AX_INVALID_ARGUMENT, "region %u must be one block", region);
  *block = &r->blocks[0];
  if ((*block)->operation_count == 0) return ax_error(AX_INVALID_ARGUMENT, "region %u is empty, and must return values", region);
  *last = (*block)->operations[(*block)->operation_count - 1];
  if (!ax_hlo_is_return((*last)->name)) return ax_error(AX_INVALID_ARGUMENT, "region %u must end in a return", region);
  if (count == AX_NONE || (*block)->argument_count == count) return AX_OK;
  return ax_error(AX_INVALID_ARGUMENT, "region %u must take %u values, and takes %u", region, count, (*block)->argument_count);
}

/* Elements of an accumulation may be wider than those of what is accumulated. */
static bool promotes(const ax_hlo_value_type *from, const ax_hlo_value_type *to) {
  if (ax_hlo_elements_fit(from, to)) return true;
  if (from->quantized != NULL && to->quantized != NULL)
    return from->quantized->expressed == to->quantized->expressed &&
           ax_dtype_get(from->quantized->storage)->bits <= ax_dtype_get(to->quantized->storage)->bits;
  if (from->quantized != NULL || to->quantized != NULL) return false;
  return ax_hlo_class_of(from) == ax_hlo_class_of(to) && ax_dtype_get(from->dtype)->bits <= ax_dtype_get(to->dtype)->bits &&
         ax_hlo_class_of(to) != AX_HLO_TRUTHS;
}

static ax_status wrong_reducer(uint32_t region, const char *what, uint32_t i, const ax_hlo_value_type *is,
                               const ax_hlo_value_type *wanted) {
  return ax_error(AX_INVALID_ARGUMENT, "region %u: %s %u is %.*s, which does not fit %.*s", region, what, i,
                  ax_hlo_length(is->text), is->text.start, ax_hlo_length(wanted->text), wanted->text.start);
}

static ax_status check_accumulator(const ax_verified *v, uint32_t region, const ax_hlo_block *block, uint32_t made, uint32_t i,
                                   uint32_t count) {
  const ax_hlo_value_type *out = v->module->values[made];
  const ax_hlo_value_type *a = v->module->values[block->argument + i], *b = v->module->values[block->argument + count + i];
  if (out->kind != AX_HLO_TENSOR)
    return ax_error(AX_INVALID_ARGUMENT, "region %u: value %u that it returns is %.*s, and must be an array", region, i,
                    ax_hlo_length(out->text), out->text.start);
  if (!ax_hlo_types_fit(out, a)) return wrong_reducer(region, "argument", i, a, out);
  return ax_hlo_types_fit(out, b) ? AX_OK : wrong_reducer(region, "argument", count + i, b, out);
}

/* A scalar, or extents that are among these, in their order. */
static bool is_among(const ax_hlo_value_type *type, const ax_dims *most) {
  uint32_t found = 0;
  for (uint32_t d = 0; most != NULL && d < most->count && found < type->rank; d++)
    if (ax_hlo_extents_fit(type->dims[found], most->v[d])) found++;
  return found == type->rank;
}

ax_status ax_hlo_check_reducer(const ax_verified *v, uint32_t region, uint32_t count, const ax_hlo_value_type *const *inputs,
                               const ax_hlo_value_type *const *starts, const ax_dims *most) {
  const ax_hlo_block *block;
  const ax_hlo_operation *last;
  AX_TRY(ax_hlo_check_block(v, region, 2 * count, &block, &last));
  if (last->operand_count != count)
    return ax_error(AX_INVALID_ARGUMENT, "region %u must return %u values, and returns %u", region, count, last->operand_count);
  for (uint32_t i = 0; i < count; i++) {
    const ax_hlo_value_type *made = v->module->values[last->operands[i]];
    AX_TRY(check_accumulator(v, region, block, last->operands[i], i, count));
    if (!ax_hlo_ranked(made)) continue;
    if (!is_among(made, most)) return wrong_reducer(region, "value", i, made, starts != NULL ? starts[i] : inputs[i]);
    if (starts != NULL && (!ax_hlo_shapes_fit(made, starts[i]) || !promotes(starts[i], made)))
      return wrong_reducer(region, "value", i, made, starts[i]);
    if (inputs[i]->kind == AX_HLO_TENSOR && !promotes(inputs[i], made)) return wrong_reducer(region, "value", i, made, inputs[i]);
  }
  return AX_OK;
}

ax_status ax_hlo_check_precision(const ax_verified *v) {
  const ax_hlo_attribute *config = ax_hlo_find(v->op, "precision_config");
  if (config == NULL) return AX_OK;
  if (config->kind != AX_HLO_ARRAY) return ax_error(AX_INVALID_ARGUMENT, "precision_config must be a list of precisions");
  if (config->count > 2)
    return ax_error(AX_INVALID_ARGUMENT, "precision_config must have at most 2 precisions, and has %u", config->count);
  for (uint32_t i = 0; i < config->count; i++) {
    const ax_hlo_slice word = config->items[i].text;
    if (config->items[i].kind == AX_HLO_WORD &&
        (ax_hlo_slice_is(word, "DEFAULT") || ax_hlo_slice_is(word, "HIGH") || ax_hlo_slice_is(word, "HIGHEST")))
      continue;
    return ax_error(AX_INVALID_ARGUMENT, "precision_config must be a list of DEFAULT, HIGH or HIGHEST");
  }
  return AX_OK;
}
