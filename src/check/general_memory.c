/* Memory in the general run: which symbols it holds, and which bytes are written for all inputs. */
#include <string.h>

#include "check/general.h"
#include "ir/number.h"
#include "kernel/step.h"

enum { most_loaded = 4096 };

ax_status ax_general_make_region(ax_general *g, uint32_t region, const ax_type *type, bool set) {
  while (g->region_count <= region) {
    AX_TRY(ax_grow(&g->regions, sizeof g->regions[0], g->region_count, 1, &g->region_capacity));
    g->regions[g->region_count++] = (ax_general_region){0};
  }
  ax_general_region *r = &g->regions[region];
  ax_general_forget_region(r);
  if (type->form != AX_REF) return AX_OK;
  *r = (ax_general_region){.there = true,
                           .type = *type,
                           .count = (uint64_t)ax_type_elems(type),
                           .version = ax_symbols_serial(g->symbols),
                           .range = set ? ax_interval_of_dtype(type->dtype) : (ax_interval){INT64_MAX, INT64_MIN}};
  r->bytes = r->count * ax_dtype_bytes(type->dtype);
  if (!set) r->set = ax_calloc(1, r->bytes + 1);
  return set || r->set != NULL ? AX_OK : ax_out_of_memory(r->bytes);
}

void ax_general_forget_region(ax_general_region *r) {
  ax_free(r->ids);
  ax_free(r->set);
  *r = (ax_general_region){0};
}

/* --- Which bytes are written --- */

bool ax_general_is_set(const ax_general *g, uint32_t region, const ax_bytes *runs, uint32_t count) {
  const unsigned char *set = g->regions[region].set;
  for (uint32_t k = 0; k < count && set != NULL; k++)
    if (memchr(set + runs[k].begin, 0, runs[k].end - runs[k].begin) != NULL) return false;
  return true;
}

ax_status ax_general_put_set(ax_general *g, uint32_t region, const ax_bytes *runs, uint32_t count, bool set) {
  ax_general_region *r = &g->regions[region];
  if (!set && r->set == NULL) { /* a copy brings bytes that were never written */
    r->set = ax_alloc(r->bytes + 1);
    if (r->set == NULL) return ax_out_of_memory(r->bytes);
    memset(r->set, 1, r->bytes);
  }
  for (uint32_t k = 0; k < count && r->set != NULL; k++) memset(r->set + runs[k].begin, set, runs[k].end - runs[k].begin);
  return AX_OK;
}

/* --- Symbols --- */

/* A walk over the elements of a view, row-major. */
typedef struct elements {
  const ax_view *view;
  int64_t index[AX_MAX_RANK], offset;
} elements;

static uint64_t element_of(const elements *e, const ax_general_region *r) {
  return (uint64_t)e->offset / ax_dtype_bytes(r->type.dtype);
}

static void next_element(elements *e) {
  for (uint32_t d = e->view->type.rank; d-- > 0;) {
    e->offset += e->view->strides[d];
    if (++e->index[d] < e->view->type.dims[d]) return;
    e->offset -= e->index[d] * e->view->strides[d];
    e->index[d] = 0;
  }
}

static ax_status symbol_at(ax_general *g, uint32_t region, uint64_t element, uint32_t *out) {
  const ax_general_region *r = &g->regions[region];
  const ax_dtype dtype = r->type.dtype;
  const uint64_t key[] = {AX_SYMBOL_LOADED, region, r->version, element};
  if (r->ids != NULL && r->ids[element] != AX_NONE) {
    *out = r->ids[element];
    return AX_OK;
  }
  if (r->ids == NULL && r->fixed != NULL)
    return ax_symbols_constant(g->symbols, dtype, ax_number_load(dtype, r->fixed->data, (int64_t)element).i, out);
  const bool empty = r->ids != NULL || r->range.low > r->range.high; /* it was never written */
  return ax_symbols_named(g->symbols, dtype, empty ? ax_interval_of_dtype(dtype) : r->range, AX_COUNT(key), key, out);
}

/* Bounds of all that a region holds. */
static ax_interval hull_of(const ax_general *g, const ax_general_region *r) {
  ax_interval all = {INT64_MAX, INT64_MIN};
  if (r->ids == NULL && r->fixed == NULL) return r->range.low <= r->range.high ? r->range : ax_interval_of_dtype(r->type.dtype);
  for (uint64_t i = 0; i < r->count; i++) {
    const int64_t value = r->ids == NULL ? ax_number_load(r->type.dtype, r->fixed->data, (int64_t)i).i : 0;
    if (r->ids != NULL && r->ids[i] == AX_NONE) continue;
    all = ax_interval_hull(all, r->ids == NULL ? (ax_interval){value, value} : ax_symbols_range(g->symbols, r->ids[i]));
  }
  return all.low <= all.high ? all : ax_interval_of_dtype(r->type.dtype);
}

/* At a place that depends on inputs. */
static ax_status load_shifted(ax_general *g, const ax_abstract *view, ax_abstract *out) {
  const ax_general_region *r = &g->regions[view->view.region];
  uint64_t key[5 + 3 * AX_MOST_SHIFTS] = {AX_SYMBOL_LOADED, view->view.region, r->version, (uint64_t)view->view.offset};
  uint32_t words = 4;
  for (uint32_t k = 0; k < view->shift_count; k++) {
    key[words++] = (uint64_t)view->shifts[k].stride;
    key[words++] = view->shifts[k].part;
    key[words++] = (uint64_t)view->shifts[k].constant;
  }
  const ax_interval hull = hull_of(g, r);
  elements e = {.view = &view->view, .offset = view->view.offset};
  for (uint64_t i = 0; i < out->count; i++, next_element(&e)) {
    key[words] = (uint64_t)e.offset; /* views of several shapes may have the element, in several places of their own */
    AX_TRY(ax_symbols_named(g->symbols, r->type.dtype, hull, words + 1, key, &out->ids[i]));
  }
  return AX_OK;
}

ax_status ax_general_load(ax_general *g, const ax_abstract *view, ax_abstract **out) {
  const ax_general_region *r = &g->regions[view->view.region];
  const ax_type type = ax_array_type(r->type.dtype, AX_LIST(view->view.type.rank, view->view.type.dims));
  const uint64_t count = (uint64_t)ax_type_elems(&type);
  const bool symbols = r->ids != NULL || r->fixed != NULL || r->named || count == 1;
  if (!ax_is_counted(type.dtype) || count > most_loaded || !symbols) {
    const bool known = ax_is_counted(type.dtype) && r->ids == NULL && r->fixed == NULL && r->range.low <= r->range.high;
    return ax_abstract_range(count, known ? r->range : ax_interval_of_dtype(type.dtype), out);
  }
  AX_TRY(ax_abstract_ids(g->symbols, count, out));
  if (view->shift_count > 0) return load_shifted(g, view, *out);
  elements e = {.view = &view->view, .offset = view->view.offset};
  for (uint64_t i = 0; i < count; i++, next_element(&e))
    AX_TRY(symbol_at(g, view->view.region, element_of(&e, r), &(*out)->ids[i]));
  return ax_abstract_settle(g->symbols, &type, out);
}

/* A symbol for each element from now on. */
static ax_status list_symbols(ax_general *g, uint32_t region) {
  ax_general_region *r = &g->regions[region];
  uint32_t *ids = ax_alloc((r->count + 1) * sizeof ids[0]);
  if (ids == NULL) return ax_out_of_memory(r->count);
  const bool empty = r->fixed == NULL && r->range.low > r->range.high;
  ax_status status = AX_OK;
  for (uint64_t i = 0; i < r->count && status == AX_OK; i++) {
    ids[i] = AX_NONE;
    if (!empty) status = symbol_at(g, region, i, &ids[i]);
  }
  r->ids = ids;
  return status;
}

/* It holds no symbols from now on, but something within bounds. */
static void forget_symbols(ax_general *g, ax_general_region *r, ax_interval value) {
  const bool empty = r->ids == NULL && r->fixed == NULL && r->range.low > r->range.high;
  r->range = empty ? value : ax_interval_hull(hull_of(g, r), value);
  ax_free(r->ids);
  r->ids = NULL;
  r->fixed = NULL;
  r->named = false;
}

static ax_status put_symbol(ax_general *g, ax_general_region *r, uint64_t element, uint32_t id, bool may) {
  uint32_t *at = &r->ids[element];
  if (!may || *at == AX_NONE || *at == id) {
    *at = id;
    return AX_OK;
  }
  return ax_symbols_fresh(g->symbols, r->type.dtype,
                          ax_interval_hull(ax_symbols_range(g->symbols, *at), ax_symbols_range(g->symbols, id)), at);
}

ax_status ax_general_store(ax_general *g, const ax_abstract *view, const ax_abstract *value, bool may) {
  const uint32_t region = view->view.region;
  ax_general_region *r = &g->regions[region];
  if (!ax_is_counted(r->type.dtype)) return AX_OK;
  const bool exact = view->shift_count == 0 && r->count <= AX_MOST_SYMBOLS && value->count <= most_loaded &&
                     ax_abstract_has_ids(value, r->type.dtype);
  if (!exact) {
    forget_symbols(g, r, ax_abstract_bounds(g->symbols, value));
    r->version = ax_symbols_serial(g->symbols);
    return AX_OK;
  }
  if (r->ids == NULL) AX_TRY(list_symbols(g, region));
  r->version = ax_symbols_serial(g->symbols);
  elements e = {.view = &view->view, .offset = view->view.offset};
  for (uint64_t i = 0; i < value->count; i++, next_element(&e)) {
    uint32_t id;
    AX_TRY(ax_abstract_id(g->symbols, value, r->type.dtype, i, &id));
    AX_TRY(put_symbol(g, r, element_of(&e, r), id, may));
  }
  return AX_OK;
}

void ax_general_forget_content(ax_general *g, uint32_t region) {
  ax_general_region *r = &g->regions[region];
  forget_symbols(g, r, ax_interval_of_dtype(r->type.dtype));
  r->version = ax_symbols_serial(g->symbols);
}
