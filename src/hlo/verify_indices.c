#include "hlo/verify_rules.h"

#include <inttypes.h>
#include <string.h>

/* --- Slices --- */

ax_status ax_hlo_check_slice(const ax_verified *v) {
  const ax_hlo_value_type *in = ax_verified_in(v, 0);
  ax_dims first, limit, step, dims;
  AX_TRY(ax_hlo_integers(v->op, "start_indices", &first));
  AX_TRY(ax_hlo_integers(v->op, "limit_indices", &limit));
  AX_TRY(ax_hlo_integers(v->op, "strides", &step));
  if (!ax_hlo_ranked(in)) return AX_OK;
  if (first.count != in->rank || limit.count != in->rank || step.count != in->rank)
    return ax_error(AX_INVALID_ARGUMENT, "start_indices, limit_indices and strides must have %u entries each", in->rank);
  dims.count = in->rank;
  for (uint32_t d = 0; d < in->rank; d++) {
    const int64_t most = in->dims[d] != AX_HLO_DYNAMIC ? in->dims[d] : ax_hlo_bound(in, d);
    if (first.v[d] < 0 || limit.v[d] < first.v[d] || (most != AX_HLO_DYNAMIC && limit.v[d] > most))
      return ax_error(AX_INVALID_ARGUMENT, "along dimension %u it goes from %" PRId64 " to %" PRId64 ", and the operand is %.*s", d,
                      first.v[d], limit.v[d], ax_hlo_length(in->text), in->text.start);
    if (step.v[d] <= 0) return ax_error(AX_INVALID_ARGUMENT, "strides has %" PRId64 ", and must have numbers above 0", step.v[d]);
    const int64_t length = limit.v[d] - first.v[d];
    dims.v[d] = length / step.v[d] + (length % step.v[d] != 0);
  }
  return ax_hlo_check_shape(v, 0, &dims);
}

/* Operands from number `first` on are an index for each dimension, of one type. */
static ax_status check_starts(const ax_verified *v, uint32_t first) {
  const ax_hlo_value_type *in = ax_verified_in(v, 0);
  if (ax_hlo_ranked(in) && v->op->operand_count - first != in->rank)
    return ax_error(AX_INVALID_ARGUMENT, "there are %u indices, and the operand has the rank %u", v->op->operand_count - first,
                    in->rank);
  for (uint32_t i = first; i < v->op->operand_count; i++) {
    const ax_hlo_value_type *index = ax_verified_in(v, i);
    if (ax_hlo_ranked(index) && index->rank != 0) return ax_error(AX_INVALID_ARGUMENT, "operand %u, an index, must be a scalar", i);
    if (!ax_hlo_elements_fit(index, ax_verified_in(v, first)))
      return ax_error(AX_INVALID_ARGUMENT, "all indices must have one type");
  }
  return AX_OK;
}

static ax_status check_sizes(const char *name, const ax_dims *sizes, const ax_hlo_value_type *in) {
  if (sizes->count != in->rank)
    return ax_error(AX_INVALID_ARGUMENT, "%s must have %u entries, and has %u", name, in->rank, sizes->count);
  for (uint32_t d = 0; d < in->rank; d++)
    if (sizes->v[d] < 0 || (in->dims[d] >= 0 && sizes->v[d] > in->dims[d]))
      return ax_error(AX_INVALID_ARGUMENT, "%s has %" PRId64 " for dimension %u, whose extent is %" PRId64, name, sizes->v[d], d,
                      in->dims[d]);
  return AX_OK;
}

ax_status ax_hlo_check_dynamic_slice(const ax_verified *v) {
  const ax_hlo_value_type *in = ax_verified_in(v, 0);
  ax_dims sizes;
  AX_TRY(ax_hlo_integers(v->op, "slice_sizes", &sizes));
  AX_TRY(ax_hlo_check_elements(v, 0, 0));
  AX_TRY(check_starts(v, 1));
  if (!ax_hlo_ranked(in)) return AX_OK;
  AX_TRY(check_sizes("slice_sizes", &sizes, in));
  return ax_hlo_check_shape(v, 0, &sizes);
}

ax_status ax_hlo_check_update_slice(const ax_verified *v) {
  const ax_hlo_value_type *in = ax_verified_in(v, 0), *update = ax_verified_in(v, 1);
  if (!ax_hlo_elements_fit(in, update)) return ax_error(AX_INVALID_ARGUMENT, "operands 0 and 1 must have the same elements");
  AX_TRY(check_starts(v, 2));
  AX_TRY(ax_hlo_check_elements(v, 0, 0));
  if (!ax_hlo_ranked(in)) return AX_OK;
  const ax_dims dims = ax_hlo_dims_of(in), sizes = ax_hlo_dims_of(update);
  if (ax_hlo_ranked(update) && update->rank != in->rank)
    return ax_error(AX_INVALID_ARGUMENT, "operand 1 has the rank %u, and operand 0 %u", update->rank, in->rank);
  for (uint32_t d = 0; ax_hlo_ranked(update) && d < in->rank; d++)
    if (sizes.v[d] >= 0 && dims.v[d] >= 0 && sizes.v[d] > dims.v[d])
      return ax_error(AX_INVALID_ARGUMENT, "operand 1 is longer than operand 0 along dimension %u: %" PRId64 " and %" PRId64, d,
                      sizes.v[d], dims.v[d]);
  return ax_hlo_check_shape(v, 0, &dims);
}

ax_status ax_hlo_check_real_dynamic_slice(const ax_verified *v) {
  const ax_hlo_value_type *in = ax_verified_in(v, 0), *out = ax_verified_out(v, 0);
  AX_TRY(ax_hlo_check_elements(v, 0, 0));
  if (!ax_hlo_ranked(in)) return AX_OK;
  if (ax_hlo_ranked(out) && out->rank != in->rank)
    return ax_error(AX_INVALID_ARGUMENT, "the result has the rank %u, and the operand %u", out->rank, in->rank);
  for (uint32_t i = 1; i < 4; i++) {
    const ax_hlo_value_type *list = ax_verified_in(v, i);
    if (ax_hlo_ranked(list) && (list->rank != 1 || !ax_hlo_extents_fit(list->dims[0], in->rank)))
      return ax_error(AX_INVALID_ARGUMENT, "operand %u must have %u entries", i, in->rank);
  }
  return AX_OK;
}

ax_status ax_hlo_check_torch_index_select(const ax_verified *v) {
  const ax_hlo_value_type *in = ax_verified_in(v, 0), *index = ax_verified_in(v, 1);
  int64_t along, batch;
  AX_TRY(ax_hlo_integer(v->op, "dim", &along));
  AX_TRY(ax_hlo_integer(v->op, "batch_dims", &batch));
  if (!ax_hlo_ranked(in) || !ax_hlo_ranked(index)) return AX_OK;
  if (along < 0) along += in->rank;
  if (batch < 0) batch += index->rank;
  if (along < 0 || along >= in->rank || batch < 0 || batch > along || batch > index->rank)
    return ax_error(AX_INVALID_ARGUMENT, "dim is %" PRId64 " and batch_dims %" PRId64 ", which the operands do not have", along,
                    batch);
  return AX_OK;
}

/* --- Gather and scatter, which have the same numbers of dimensions by other names --- */

typedef struct names {
  const char *group, *window, *dropped, *batching, *index_batching, *map;
} names;
static const names gather_names = {"dimension_numbers",           "offset_dims",    "collapsed_slice_dims", "operand_batching_dims",
                                   "start_indices_batching_dims", "start_index_map"};
static const names scatter_names = {"scatter_dimension_numbers",     "update_window_dims",
                                    "inserted_window_dims",          "input_batching_dims",
                                    "scatter_indices_batching_dims", "scatter_dims_to_operand_dims"};

typedef struct numbers {
  ax_dims window, dropped, batching, index_batching, map;
  int64_t vector;
} numbers;

static ax_status read_numbers(const ax_verified *v, const names *n, numbers *out) {
  const ax_hlo_attribute *group = ax_hlo_find(v->op, n->group);
  if (group == NULL || group->kind != AX_HLO_DICTIONARY)
    return ax_error(AX_INVALID_ARGUMENT, "the attribute %s is missing", n->group);
  const ax_hlo_attribute *vector = ax_hlo_item(group, "index_vector_dim");
  AX_TRY(ax_hlo_item_integers(group, n->window, &out->window));
  AX_TRY(ax_hlo_item_integers(group, n->dropped, &out->dropped));
  AX_TRY(ax_hlo_item_integers(group, n->batching, &out->batching));
  AX_TRY(ax_hlo_item_integers(group, n->index_batching, &out->index_batching));
  AX_TRY(ax_hlo_item_integers(group, n->map, &out->map));
  out->vector = vector != NULL ? vector->integer : 0;
  return AX_OK;
}

/* Extent d of the indices without the dimension that is the vector of an index. */
static int64_t batch_extent(const ax_hlo_value_type *indices, int64_t vector, uint32_t d) {
  return indices->dims[d < vector ? d : d + 1];
}

static ax_status check_vector(const ax_hlo_value_type *indices, const numbers *n, const names *names) {
  if (n->vector < 0 || n->vector > indices->rank)
    return ax_error(AX_INVALID_ARGUMENT, "index_vector_dim is %" PRId64 ", which is not in [0, %u]", n->vector, indices->rank);
  const int64_t length = n->vector == indices->rank ? 1 : indices->dims[n->vector];
  if (ax_hlo_extents_fit(length, n->map.count)) return AX_OK;
  return ax_error(AX_INVALID_ARGUMENT, "%s has %u entries, and an index %" PRId64, names->map, n->map.count, length);
}

static ax_status check_batching(const ax_hlo_value_type *in, const ax_hlo_value_type *indices, const numbers *n,
                                const names *names) {
  AX_TRY(ax_hlo_check_places(names->index_batching, &n->index_batching, indices->rank, false));
  for (uint32_t i = 0; i < n->index_batching.count; i++)
    if (n->index_batching.v[i] == n->vector)
      return ax_error(AX_INVALID_ARGUMENT, "%s has index_vector_dim, %" PRId64, names->index_batching, n->vector);
  if (n->index_batching.count != n->batching.count)
    return ax_error(AX_INVALID_ARGUMENT, "%s and %s must have as many entries", names->batching, names->index_batching);
  for (uint32_t i = 0; i < n->batching.count; i++)
    if (!ax_hlo_extents_fit(in->dims[n->batching.v[i]], indices->dims[n->index_batching.v[i]]))
      return ax_error(AX_INVALID_ARGUMENT,
                      "dimension %" PRId64 " in %s has the extent %" PRId64 ", and dimension %" PRId64 " in %s has %" PRId64,
                      n->batching.v[i], names->batching, in->dims[n->batching.v[i]], n->index_batching.v[i], names->index_batching,
                      indices->dims[n->index_batching.v[i]]);
  return AX_OK;
}

/* What both have in common; result_rank: of the array that has the windows. */
static ax_status check_numbers(const ax_hlo_value_type *in, const ax_hlo_value_type *indices, int64_t result_rank, const numbers *n,
                               const names *names) {
  if (in->rank != n->window.count + n->dropped.count + n->batching.count)
    return ax_error(AX_INVALID_ARGUMENT, "the operand has the rank %u, and %s, %s and %s together %u dimensions", in->rank,
                    names->window, names->dropped, names->batching, n->window.count + n->dropped.count + n->batching.count);
  AX_TRY(check_vector(indices, n, names));
  AX_TRY(ax_hlo_check_places(names->window, &n->window, result_rank, true));
  AX_TRY(ax_hlo_check_disjoint(names->dropped, &n->dropped, names->batching, &n->batching));
  AX_TRY(ax_hlo_check_places(names->dropped, &n->dropped, in->rank, true));
  AX_TRY(ax_hlo_check_places(names->batching, &n->batching, in->rank, true));
  AX_TRY(check_batching(in, indices, n, names));
  AX_TRY(ax_hlo_check_disjoint(names->map, &n->map, names->batching, &n->batching));
  return ax_hlo_check_places(names->map, &n->map, in->rank, false);
}

static bool has(const ax_dims *list, int64_t d) {
  for (uint32_t i = 0; i < list->count; i++)
    if (list->v[i] == d) return true;
  return false;
}

/* Extents of the array of windows: those of the indices, and where `window` says those of a slice. */
static ax_dims window_dims(const ax_hlo_value_type *indices, const numbers *n, const ax_dims *slice, uint32_t rank) {
  ax_dims dims = {.count = rank};
  uint32_t kept = 0, batch = 0;
  for (uint32_t d = 0; d < rank; d++) {
    if (!has(&n->window, d)) {
      dims.v[d] = batch_extent(indices, n->vector, batch++);
      continue;
    }
    while (kept < slice->count && (has(&n->dropped, kept) || has(&n->batching, kept))) kept++;
    dims.v[d] = kept < slice->count ? slice->v[kept] : AX_HLO_DYNAMIC;
    kept++;
  }
  return dims;
}

static ax_status check_gather(const ax_verified *v, const ax_dims *sizes) {
  const ax_hlo_value_type *in = ax_verified_in(v, 0), *indices = ax_verified_in(v, 1);
  numbers n;
  AX_TRY(read_numbers(v, &gather_names, &n));
  AX_TRY(ax_hlo_check_elements(v, 0, 0));
  if (!ax_hlo_ranked(in) || !ax_hlo_ranked(indices)) return AX_OK;
  const int64_t rank = (int64_t)indices->rank + n.window.count - (n.vector < indices->rank);
  AX_TRY(check_numbers(in, indices, rank, &n, &gather_names));
  AX_TRY(check_sizes("slice_sizes", sizes, in));
  for (uint32_t d = 0; d < in->rank; d++)
    if ((has(&n.dropped, d) || has(&n.batching, d)) && sizes->v[d] > 1)
      return ax_error(AX_INVALID_ARGUMENT,
                      "slice_sizes has %" PRId64 " for dimension %u, which the result does not have: it must be 0 or 1",
                      sizes->v[d], d);
  if (rank > AX_MAX_RANK) return AX_OK;
  const ax_dims dims = window_dims(indices, &n, sizes, (uint32_t)rank);
  return ax_hlo_check_shape(v, 0, &dims);
}

ax_status ax_hlo_check_gather(const ax_verified *v) {
  ax_dims sizes;
  AX_TRY(ax_hlo_integers(v->op, "slice_sizes", &sizes));
  return check_gather(v, &sizes);
}

/* The sizes are an operand: those that a constant says, or any. */
ax_status ax_hlo_check_dynamic_gather(const ax_verified *v) {
  const ax_hlo_value_type *list = ax_verified_in(v, 2), *in = ax_verified_in(v, 0);
  ax_dims sizes;
  if (!ax_hlo_ranked(list) || !ax_hlo_ranked(in)) return AX_OK;
  if (list->rank != 1 || list->dynamic || list->dims[0] != in->rank)
    return ax_error(AX_INVALID_ARGUMENT, "operand 2 must have %u entries, one for each dimension of operand 0", in->rank);
  if (ax_hlo_known_list(v, 2, &sizes)) return check_gather(v, &sizes);
  numbers n;
  AX_TRY(read_numbers(v, &gather_names, &n));
  AX_TRY(ax_hlo_check_elements(v, 0, 0));
  const ax_hlo_value_type *indices = ax_verified_in(v, 1);
  if (!ax_hlo_ranked(indices)) return AX_OK;
  const int64_t rank = (int64_t)indices->rank + n.window.count - (n.vector < indices->rank);
  AX_TRY(check_numbers(in, indices, rank, &n, &gather_names));
  for (sizes.count = 0; sizes.count < in->rank; sizes.count++) sizes.v[sizes.count] = AX_HLO_DYNAMIC;
  if (rank > AX_MAX_RANK) return AX_OK;
  const ax_dims dims = window_dims(indices, &n, &sizes, (uint32_t)rank);
  return ax_hlo_check_shape(v, 0, &dims);
}

/* --- Scatter --- */

static ax_status check_updates(const ax_hlo_value_type *in, const ax_hlo_value_type *indices, const ax_hlo_value_type *updates,
                               const numbers *n) {
  const int64_t rank = (int64_t)indices->rank + n->window.count - (n->vector < indices->rank);
  if (updates->rank != rank)
    return ax_error(AX_INVALID_ARGUMENT, "updates are %.*s, and must have the rank %" PRId64, ax_hlo_length(updates->text),
                    updates->text.start, rank);
  const ax_dims slice = ax_hlo_dims_of(in), most = window_dims(indices, n, &slice, updates->rank);
  for (uint32_t d = 0; d < updates->rank; d++) {
    const int64_t extent = updates->dims[d];
    if (has(&n->window, d) ? extent > most.v[d] && most.v[d] >= 0 : !ax_hlo_extents_fit(extent, most.v[d]))
      return ax_error(AX_INVALID_ARGUMENT, "updates have the extent %" PRId64 " along dimension %u, and must have %s%" PRId64,
                      extent, d, has(&n->window, d) ? "at most " : "", most.v[d]);
  }
  return AX_OK;
}

static ax_status check_scattered(const ax_verified *v, uint32_t count, const numbers *n) {
  const ax_hlo_value_type *first = ax_verified_in(v, 0), *indices = ax_verified_in(v, count),
                          *updates = ax_verified_in(v, count + 1);
  for (uint32_t i = 0; i < count; i++) {
    const ax_hlo_value_type *in = ax_verified_in(v, i), *update = ax_verified_in(v, count + 1 + i);
    if (!ax_hlo_shapes_fit(in, first))
      return ax_error(AX_INVALID_ARGUMENT, "all arrays that are scattered into must have one shape");
    if (!ax_hlo_shapes_fit(update, updates)) return ax_error(AX_INVALID_ARGUMENT, "all updates must have one shape");
    if (!ax_hlo_shapes_fit(in, ax_verified_out(v, i)))
      return ax_error(AX_INVALID_ARGUMENT, "result %u must have the shape of operand %u", i, i);
  }
  if (!ax_hlo_ranked(first) || !ax_hlo_ranked(indices)) return AX_OK;
  AX_TRY(check_numbers(first, indices, ax_hlo_ranked(updates) ? updates->rank : AX_MAX_RANK, n, &scatter_names));
  return ax_hlo_ranked(updates) ? check_updates(first, indices, updates, n) : AX_OK;
}

ax_status ax_hlo_check_scatter(const ax_verified *v) {
  const uint32_t count = v->op->operand_count / 2;
  numbers n;
  if (v->op->operand_count % 2 == 0 || v->op->result_count != count)
    return ax_error(AX_INVALID_ARGUMENT, "it must have arrays, indices, and updates and results for each array");
  AX_TRY(read_numbers(v, &scatter_names, &n));
  AX_TRY(check_scattered(v, count, &n));
  const ax_hlo_value_type **types = ax_calloc(2 * (size_t)count, sizeof types[0]);
  if (types == NULL) return ax_out_of_memory(2 * count * sizeof types[0]);
  for (uint32_t i = 0; i < count; i++) types[i] = ax_verified_in(v, i), types[count + i] = ax_verified_in(v, count + 1 + i);
  const ax_status status = ax_hlo_check_reducer(v, 0, count, types, NULL, NULL);
  const ax_status updates = status == AX_OK ? ax_hlo_check_reducer(v, 0, count, types + count, NULL, NULL) : status;
  ax_free(types);
  return updates;
}
