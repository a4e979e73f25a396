/* Operations on parameters, written once for all primitives by the record's description: copy, release, compare, hash. */
#include <string.h>

#include "base/shared.h"
#include "ir/prim.h"
#include "ir/program.h"

static ax_status copy_bytes(ax_arena *arena, void *pointer_field, size_t bytes) {
  void *old, *copy;
  memcpy(&old, pointer_field, sizeof old);
  copy = ax_arena_copy(arena, old, bytes);
  if (copy == NULL) return ax_out_of_memory(bytes);
  memcpy(pointer_field, &copy, sizeof copy);
  return AX_OK;
}

static size_t literal_bytes(const ax_literal *literal) {
  return (size_t)ax_type_elems(&literal->type) * ax_dtype_bytes(literal->type.dtype);
}

/* Short arrays are the arena's; a long one is copied once, where it comes from memory without an owner, and shared from then on. */
static ax_status copy_literal(ax_arena *arena, ax_literal *literal) {
  const size_t bytes = literal_bytes(literal);
  if (literal->owner != NULL) {
    (void)ax_shared_retain(literal->owner);
    return AX_OK;
  }
  if (bytes < AX_SHARED_LEAST) return copy_bytes(arena, &literal->data, bytes);
  AX_TRY(ax_shared_create(bytes, &literal->owner));
  literal->data = memcpy(ax_shared_data(literal->owner), literal->data, bytes);
  return AX_OK;
}

/* Memory first; what is held by reference is retained only once nothing can fail any more. */
static ax_status copy_field(ax_arena *arena, ax_param_kind kind, void *field) {
  switch (kind) {
    case AX_PARAM_AXES: {
      ax_groups *groups = &((ax_axes *)field)->groups;
      if (groups->count == 0) return AX_OK;
      AX_TRY(copy_bytes(arena, &groups->member, groups->end[groups->count - 1] * sizeof groups->member[0]));
      return copy_bytes(arena, &groups->end, groups->count * sizeof groups->end[0]);
    }
    case AX_PARAM_PAIRS: {
      ax_pairs *pairs = field;
      return copy_bytes(arena, &pairs->v, pairs->count * sizeof pairs->v[0]);
    }
    case AX_PARAM_PROGRAMS: {
      ax_programs *programs = field;
      return copy_bytes(arena, &programs->v, programs->count * sizeof programs->v[0]);
    }
    case AX_PARAM_SPECS: {
      ax_specs *specs = field;
      return copy_bytes(arena, &specs->v, specs->count * sizeof specs->v[0]);
    }
    case AX_PARAM_TEXT: return copy_bytes(arena, field, strlen(*(const char *const *)field) + 1);
    case AX_PARAM_TYPES: {
      ax_types *types = field;
      return copy_bytes(arena, &types->v, types->count * sizeof types->v[0]);
    }
    default:
      return AX_OK;
  }
}

/* Visits everything that parameters hold by reference: programs and callbacks. */
static void each_held(const ax_prim *prim, const void *params, void (*visit)(ax_program *), void (*visit_callback)(ax_callback *)) {
  for (uint32_t i = 0; i < prim->param_count; i++) {
    const void *field = (const char *)params + prim->params[i].offset;
    if (prim->params[i].kind == AX_PARAM_CALLBACK) visit_callback(*(ax_callback *const *)field);
    if (prim->params[i].kind == AX_PARAM_PROGRAM || prim->params[i].kind == AX_PARAM_SCALARS) visit(*(ax_program *const *)field);
    if (prim->params[i].kind != AX_PARAM_PROGRAMS) continue;
    const ax_programs *programs = field;
    for (uint32_t j = 0; j < programs->count; j++) visit(programs->v[j]);
  }
}

static void retain(ax_program *program) { (void)ax_program_retain(program); }
static void retain_callback(ax_callback *callback) { (void)ax_callback_retain(callback); }

/* Bytes behind a short field that are no other's: 0, as parameters are also told apart by all of their bytes (ir/flow.c). */
static void clear_behind(const ax_prim *prim, char *params, uint32_t i) {
  const size_t from = prim->params[i].offset + (prim->params[i].kind == AX_PARAM_BOOL ? sizeof(bool) : sizeof(ax_dtype));
  size_t end = (from + 7) / 8 * 8;
  if (end > prim->params_bytes) end = prim->params_bytes;
  for (uint32_t k = 0; k < prim->param_count; k++)
    if (prim->params[k].offset >= from && prim->params[k].offset < end) end = prim->params[k].offset;
  memset(params + from, 0, end - from);
}

ax_status ax_params_copy(ax_arena *arena, const ax_prim *prim, const void *params, const void **out) {
  *out = NULL;
  if (prim->params_bytes == 0) return AX_OK;
  char *copy = ax_arena_copy(arena, params, prim->params_bytes);
  if (copy == NULL) return ax_out_of_memory(prim->params_bytes);
  for (uint32_t i = 0; i < prim->param_count; i++)
    if (prim->params[i].kind == AX_PARAM_BOOL || prim->params[i].kind == AX_PARAM_DTYPE) clear_behind(prim, copy, i);
  for (uint32_t i = 0; i < prim->param_count; i++)
    AX_TRY(copy_field(arena, prim->params[i].kind, copy + prim->params[i].offset));
  for (uint32_t i = 0; i < prim->param_count; i++) /* a primitive has one at most */
    if (prim->params[i].kind == AX_PARAM_LITERAL) AX_TRY(copy_literal(arena, (void *)(copy + prim->params[i].offset)));
  each_held(prim, copy, retain, retain_callback);
  *out = copy;
  return AX_OK;
}

void ax_params_release(const ax_prim *prim, const void *params) {
  each_held(prim, params, ax_program_release, ax_callback_release);
  for (uint32_t i = 0; i < prim->param_count; i++)
    if (prim->params[i].kind == AX_PARAM_LITERAL)
      ax_shared_release(((const ax_literal *)(const void *)((const char *)params + prim->params[i].offset))->owner);
}

static bool specs_equal(const ax_specs *a, const ax_specs *b) {
  if (a->count != b->count) return false;
  for (uint32_t i = 0; i < a->count; i++) /* they print differently when their ranks differ */
    if (a->v[i].rank != b->v[i].rank || !ax_spec_equal(&a->v[i], &b->v[i])) return false;
  return true;
}

static bool programs_equal(const ax_programs *a, const ax_programs *b) {
  if (a->count != b->count) return false;
  for (uint32_t i = 0; i < a->count; i++)
    if (!ax_program_equal(a->v[i], b->v[i])) return false;
  return true;
}

static bool types_equal(const ax_types *a, const ax_types *b) {
  if (a->count != b->count) return false;
  for (uint32_t i = 0; i < a->count; i++)
    if (!ax_type_equal(&a->v[i], &b->v[i])) return false;
  return true;
}

static bool field_equal(ax_param_kind kind, const void *a, const void *b) {
  switch (kind) {
    case AX_PARAM_I64:
    case AX_PARAM_ACCURACY: return *(const int64_t *)a == *(const int64_t *)b;
    case AX_PARAM_BOOL: return *(const bool *)a == *(const bool *)b;
    case AX_PARAM_DTYPE: return *(const ax_dtype *)a == *(const ax_dtype *)b;
    case AX_PARAM_DIMS: {
      const ax_dims *x = a, *y = b;
      return x->count == y->count && memcmp(x->v, y->v, x->count * sizeof x->v[0]) == 0;
    }
    case AX_PARAM_AXES:
    case AX_PARAM_NAMES: return ax_axes_equal(a, b);
    case AX_PARAM_PAIRS: {
      const ax_pairs *x = a, *y = b;
      return x->count == y->count && (x->count == 0 || memcmp(x->v, y->v, x->count * sizeof x->v[0]) == 0);
    }
    case AX_PARAM_PROGRAM:
    case AX_PARAM_SCALARS: return ax_program_equal(*(ax_program *const *)a, *(ax_program *const *)b);
    case AX_PARAM_PROGRAMS: return programs_equal(a, b);
    case AX_PARAM_LITERAL: {
      const ax_literal *x = a, *y = b;
      return ax_type_equal(&x->type, &y->type) && (x->data == y->data || memcmp(x->data, y->data, literal_bytes(x)) == 0);
    }
    case AX_PARAM_MESH: return ax_mesh_equal(a, b, true);
    case AX_PARAM_SPECS: return specs_equal(a, b);
    case AX_PARAM_KIND: return *(const ax_unreduced_kind *)a == *(const ax_unreduced_kind *)b;
    case AX_PARAM_TEXT: return strcmp(*(const char *const *)a, *(const char *const *)b) == 0;
    case AX_PARAM_TYPES: return types_equal(a, b);
    case AX_PARAM_CALLBACK: return ax_callback_equal(*(ax_callback *const *)a, *(ax_callback *const *)b);
  }
  return false;
}

bool ax_params_equal(const ax_prim *prim, const void *a, const void *b) {
  for (uint32_t i = 0; i < prim->param_count; i++) {
    size_t offset = prim->params[i].offset;
    if (!field_equal(prim->params[i].kind, (const char *)a + offset, (const char *)b + offset)) return false;
  }
  return true;
}

static uint64_t hash_mesh(uint64_t seed, const ax_mesh *mesh) {
  for (uint32_t i = 0; i < mesh->count; i++) {
    seed = ax_hash_bytes(seed, mesh->axis[i].name, strlen(mesh->axis[i].name) + 1);
    seed = ax_hash_bytes(seed, &mesh->axis[i].size, sizeof mesh->axis[i].size);
    seed = ax_hash_bytes(seed, &mesh->axis[i].automatic, sizeof mesh->axis[i].automatic);
  }
  return seed;
}

static uint64_t hash_specs(uint64_t seed, const ax_specs *specs) {
  for (uint32_t i = 0; i < specs->count; i++) {
    seed = ax_hash_bytes(seed, &specs->v[i].open, sizeof specs->v[i].open);
    seed = ax_hash_bytes(seed, &specs->v[i].priority, sizeof specs->v[i].priority);
    for (uint32_t d = 0; d < specs->v[i].rank; d++) {
      seed = ax_hash_bytes(seed, &specs->v[i].count[d], 1);
      seed = ax_hash_bytes(seed, specs->v[i].axis[d], specs->v[i].count[d]);
    }
  }
  return seed;
}

static uint64_t hash_types(uint64_t seed, const ax_types *types) {
  for (uint32_t i = 0; i < types->count; i++) {
    seed = ax_hash_word(seed, ((uint64_t)types->v[i].form << 16 | (uint64_t)types->v[i].space) << 16 | types->v[i].dtype);
    seed = ax_hash_bytes(seed, types->v[i].dims, types->v[i].rank * sizeof types->v[i].dims[0]);
  }
  return seed;
}

static uint64_t hash_text(uint64_t seed, const char *text) { return ax_hash_bytes(seed, text, strlen(text) + 1); }

static uint64_t hash_field(uint64_t seed, ax_param_kind kind, const void *field) {
  switch (kind) {
    case AX_PARAM_I64:
    case AX_PARAM_ACCURACY: return ax_hash_bytes(seed, field, sizeof(int64_t));
    case AX_PARAM_BOOL: return ax_hash_bytes(seed, field, sizeof(bool));
    case AX_PARAM_DTYPE: return ax_hash_bytes(seed, field, sizeof(ax_dtype));
    case AX_PARAM_DIMS: {
      const ax_dims *dims = field;
      return ax_hash_bytes(seed, dims->v, dims->count * sizeof dims->v[0]);
    }
    case AX_PARAM_AXES:
    case AX_PARAM_NAMES: {
      const ax_axes *axes = field;
      for (uint32_t i = 0; i < axes->count; i++) seed = ax_hash_bytes(seed, axes->name[i], strlen(axes->name[i]) + 1);
      const ax_groups *groups = &axes->groups;
      if (groups->count == 0) return seed;
      seed = ax_hash_bytes(seed, groups->end, groups->count * sizeof groups->end[0]);
      return ax_hash_bytes(seed, groups->member, groups->end[groups->count - 1] * sizeof groups->member[0]);
    }
    case AX_PARAM_PAIRS: {
      const ax_pairs *pairs = field;
      return ax_hash_bytes(seed, pairs->v, pairs->count * sizeof pairs->v[0]);
    }
    case AX_PARAM_PROGRAM:
    case AX_PARAM_SCALARS: return ax_hash_bytes(seed, &(*(ax_program *const *)field)->hash, sizeof(uint64_t));
    case AX_PARAM_PROGRAMS: {
      const ax_programs *programs = field;
      for (uint32_t i = 0; i < programs->count; i++)
        seed = ax_hash_bytes(seed, &programs->v[i]->hash, sizeof(uint64_t));
      return seed;
    }
    case AX_PARAM_LITERAL: {
      const ax_literal *literal = field;
      return ax_hash_bytes(seed, literal->data, literal_bytes(literal));
    }
    case AX_PARAM_MESH: return hash_mesh(seed, field);
    case AX_PARAM_SPECS: return hash_specs(seed, field);
    case AX_PARAM_KIND: return ax_hash_bytes(seed, field, sizeof(ax_unreduced_kind));
    case AX_PARAM_TEXT: return hash_text(seed, *(const char *const *)field);
    case AX_PARAM_TYPES: return hash_types(seed, field);
    case AX_PARAM_CALLBACK: return hash_text(seed, (*(ax_callback *const *)field)->name);
  }
  return seed;
}

uint64_t ax_params_hash(uint64_t seed, const ax_prim *prim, const void *params) {
  for (uint32_t i = 0; i < prim->param_count; i++)
    seed = hash_field(seed, prim->params[i].kind, (const char *)params + prim->params[i].offset);
  return seed;
}
