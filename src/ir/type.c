/* Types of values: what types promise, and their text for messages. */
#include "ir/program.h"

#include <stdio.h>
#include <string.h>

ax_type (ax_array_type)(ax_dtype dtype, uint32_t rank, const int64_t *dims) {
  ax_type type = {0};
  if (rank > AX_MAX_RANK || dtype < AX_NO_DTYPE || dtype >= AX_DTYPE_COUNT) return type;
  for (uint32_t i = 0; i < rank; i++) {
    if (dims[i] < 0) return (ax_type){0};
    type.dims[i] = dims[i];
  }
  type.dtype = dtype;
  type.rank = rank;
  return type;
}

int64_t ax_dims_elems(uint32_t rank, const int64_t *dims) {
  int64_t elems = 1;
  for (uint32_t i = 0; i < rank; i++) elems *= dims[i];
  return elems;
}

int64_t ax_type_elems(const ax_type *type) {
  int64_t elems = 1;
  if (type->rank > AX_MAX_RANK) return 0;
  for (uint32_t i = 0; i < type->rank; i++)
    if (type->dims[i] < 0 || !ax_mul_i64(elems, type->dims[i], &elems)) return 0;
  return elems;
}

bool ax_is_memory(ax_form form) { return form >= AX_REF && form <= AX_BARRIER; }

static bool is_known_form(const ax_type *type) {
  switch (type->form) {
    case AX_ARRAY:
    case AX_FUTURE: return type->space == AX_SPACE_NONE;
    case AX_TOKEN: return type->dtype == AX_BOOL && type->rank == 0 && type->space == AX_SPACE_NONE;
    case AX_REF: return type->space > AX_SPACE_NONE && type->space < AX_SPACE_COUNT;
    case AX_SEMAPHORE:
    case AX_DMA_SEMAPHORE:
    case AX_BARRIER: return type->dtype == AX_S32 && type->space == AX_SPACE_NONE;
  }
  return false;
}

const char *ax_form_advice(const ax_type *type) {
  switch (type->form) {
    case AX_FUTURE: return "which done must end first";
    case AX_TOKEN: return "which only precv takes";
    case AX_REF: return "memory, and no value: ref_load gives what is in it";
    case AX_SEMAPHORE:
    case AX_DMA_SEMAPHORE:
    case AX_BARRIER: return "no value: kernels signal it and wait for it";
    case AX_ARRAY: break;
  }
  return "an array";
}

ax_status ax_type_check(const ax_type *type, const ax_mesh *axes) {
  if (!is_known_form(type) || type->dtype <= AX_NO_DTYPE || type->dtype >= AX_DTYPE_COUNT || type->rank > AX_MAX_RANK)
    return ax_error(AX_INVALID_ARGUMENT, "not a type (no dtype, rank above %d, or a negative dimension)", AX_MAX_RANK);
  int64_t bytes = (int64_t)ax_dtype_bytes(type->dtype);
  for (uint32_t d = 0; d < type->rank; d++)
    if (type->dims[d] < 0 || (type->dims[d] > 0 && !ax_mul_i64(bytes, type->dims[d], &bytes)))
      return ax_error(AX_INVALID_ARGUMENT, "%s has a negative dimension or is too large", ax_type_string(type, axes));
  const ax_spread *on = &type->spread;
  ax_axis_set all = on->varying | on->reduced | on->unreduced;
  bool overlap = (on->varying & on->reduced) != 0 || ((on->varying | on->reduced) & on->unreduced) != 0;
  if (ax_is_memory(type->form) && all != 0)
    return ax_error(AX_INVALID_ARGUMENT, "%s spreads over axes, but memory is a device's own", ax_type_string(type, axes));
  if (overlap || (all & ~ax_checked_axes(axes)) != 0)
    return ax_error(AX_INVALID_ARGUMENT, "%s has axis sets that overlap or are not of the environment", ax_type_string(type, axes));
  if (ax_is_key(type->dtype) && on->unreduced != 0)
    return ax_error(AX_INVALID_ARGUMENT, "%s is unreduced, and keys are no parts that could be combined", ax_type_string(type, axes));
  bool known = on->kind == AX_UNREDUCED_SUM || on->kind == AX_UNREDUCED_MAX || on->kind == AX_UNREDUCED_MIN;
  if (!known || (on->kind != AX_UNREDUCED_SUM && on->unreduced == 0))
    return ax_error(AX_INVALID_ARGUMENT, "%s is unreduced of a kind that is none, or has a kind without being unreduced",
                    ax_type_string(type, axes));
  return AX_OK;
}

bool ax_same_shape(const ax_type *a, const ax_type *b) {
  return a->rank == b->rank && a->rank <= AX_MAX_RANK && memcmp(a->dims, b->dims, a->rank * sizeof a->dims[0]) == 0;
}

bool ax_spread_equal(const ax_spread *a, const ax_spread *b) {
  return a->varying == b->varying && a->reduced == b->reduced && a->unreduced == b->unreduced && a->kind == b->kind;
}

bool ax_type_equal(const ax_type *a, const ax_type *b) {
  return a->form == b->form && a->space == b->space && a->dtype == b->dtype && ax_same_shape(a, b) &&
         ax_spread_equal(&a->spread, &b->spread);
}

ax_type ax_tangent(const ax_type *type) {
  ax_type tangent = *type;
  tangent.form = AX_ARRAY;
  if (type->spread.kind == AX_UNREDUCED_SUM) return tangent;
  tangent.spread.varying |= type->spread.unreduced;
  tangent.spread.unreduced = 0;
  tangent.spread.kind = AX_UNREDUCED_SUM;
  return tangent;
}

ax_type ax_dual(const ax_type *type) {
  ax_type dual = ax_tangent(type);
  ax_axis_set reduced = dual.spread.reduced;
  dual.spread.reduced = dual.spread.unreduced;
  dual.spread.unreduced = reduced;
  return dual;
}

void ax_spread_vary(ax_spread *spread, ax_axis_set axes) {
  spread->varying |= axes & ~spread->unreduced;
  spread->reduced &= ~spread->varying;
}

void ax_spread_keep_checked(ax_spread *spread, const ax_mesh *axes) {
  const ax_axis_set checked = ax_checked_axes(axes);
  spread->varying &= checked;
  spread->reduced &= checked;
  spread->unreduced &= checked;
  if (spread->unreduced == 0) spread->kind = AX_UNREDUCED_SUM;
}

ax_axis_set ax_spread_differs(const ax_spread *spread) { return spread->varying | spread->unreduced; }

static void add_set(ax_text *text, const char *lead, ax_axis_set set, const ax_mesh *axes) {
  const char *separator = lead;
  for (uint32_t i = 0; axes != NULL && i < axes->count; i++)
    if (set >> i & 1) {
      ax_text_add(text, "%s%s", separator, axes->axis[i].name);
      separator = ",";
    }
}

const char *const ax_unreduced_names[] = {[AX_UNREDUCED_SUM] = "U", [AX_UNREDUCED_MAX] = "Umax", [AX_UNREDUCED_MIN] = "Umin"};

const char *const ax_kind_names[] = {[AX_UNREDUCED_SUM] = "sum", [AX_UNREDUCED_MAX] = "max", [AX_UNREDUCED_MIN] = "min"};

static void add_spread(ax_text *text, const ax_spread *on, const ax_mesh *axes) {
  char lead[8];
  const char *unreduced = on->kind <= AX_UNREDUCED_MIN ? ax_unreduced_names[on->kind] : "U?";
  if ((on->varying | on->reduced | on->unreduced) == 0) return;
  ax_text_add(text, "{");
  add_set(text, "V:", on->varying, axes);
  add_set(text, on->varying != 0 ? " R:" : "R:", on->reduced, axes);
  snprintf(lead, sizeof lead, "%s%s:", (on->varying | on->reduced) != 0 ? " " : "", unreduced);
  add_set(text, lead, on->unreduced, axes);
  ax_text_add(text, "}");
}

const char *const ax_space_names[AX_SPACE_COUNT] = {
    [AX_SPACE_NONE] = "none", [AX_SPACE_ANY] = "any", [AX_SPACE_HBM] = "hbm", [AX_SPACE_VMEM] = "vmem", [AX_SPACE_SMEM] = "smem",
    [AX_SPACE_REGISTERS] = "registers",
};

const char *const ax_form_names[] = {
    [AX_ARRAY] = "", [AX_FUTURE] = "future", [AX_TOKEN] = "token", [AX_REF] = "ref", [AX_SEMAPHORE] = "semaphore",
    [AX_DMA_SEMAPHORE] = "dma_semaphore", [AX_BARRIER] = "barrier",
};

void ax_type_text(ax_text *text, const ax_type *type, const ax_mesh *axes) {
  bool brackets = type->form == AX_FUTURE || type->form == AX_REF, has_dtype = type->form == AX_ARRAY || brackets;
  if (type->form <= AX_BARRIER) ax_text_add(text, "%s%s", ax_form_names[type->form], brackets ? "<" : "");
  if (has_dtype) ax_text_add(text, "%s", ax_dtype_name(type->dtype));
  for (uint32_t i = 0; type->form != AX_TOKEN && i < type->rank; i++)
    ax_text_add(text, "%s%lld", i ? "," : "[", (long long)type->dims[i]);
  if (type->form != AX_TOKEN) ax_text_add(text, type->rank == 0 ? "[]" : "]");
  if (type->form == AX_REF) ax_text_add(text, " %s", type->space < AX_SPACE_COUNT ? ax_space_names[type->space] : "?");
  add_spread(text, &type->spread, axes);
  if (brackets) ax_text_add(text, ">");
}

enum { ring_slots = 8, ring_bytes = 512 };
static _Thread_local char ring[ring_slots][ring_bytes];
static _Thread_local unsigned ring_next;

static const char *into_ring(ax_text *text) {
  char *slot = ring[ring_next++ % ring_slots];
  snprintf(slot, ring_bytes, "%s", text->data != NULL && !text->failed ? text->data : "?");
  ax_text_deinit(text);
  return slot;
}

const char *ax_type_string(const ax_type *type, const ax_mesh *axes) {
  ax_text text = {0};
  ax_type_text(&text, type, axes);
  return into_ring(&text);
}

const char *ax_axis_set_string(ax_axis_set set, const ax_mesh *axes) {
  ax_text text = {0};
  ax_text_add(&text, "{");
  add_set(&text, "", set, axes);
  ax_text_add(&text, "}");
  return into_ring(&text);
}

const char *ax_bound_string(const ax_mesh *axes) {
  ax_text text = {0};
  for (uint32_t i = 0; i < axes->count; i++)
    ax_text_add(&text, "%s%s (%lld)", i > 0 ? ", " : "", axes->axis[i].name, (long long)axes->axis[i].size);
  if (axes->count == 0) ax_text_add(&text, "none");
  return into_ring(&text);
}
