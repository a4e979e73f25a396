/* Windows at indices: checks of the parameters, and the place of each window. */
#include "ops/indexed.h"

#include <string.h>

#include "hlo/hlo.h"
#include "hlo/read.h"
#include "plan/lower.h"
#include "prim/prims.h"

/* --- Parameters --- */

static ax_status check_ascending(const char *name, const ax_dims *dims) {
  for (uint32_t i = 1; i < dims->count; i++)
    if (dims->v[i] <= dims->v[i - 1])
      return ax_error(AX_INVALID_ARGUMENT, "%s must be ascending, but %lld comes before %lld", name, (long long)dims->v[i - 1],
                      (long long)dims->v[i]);
  return AX_OK;
}

static ax_status check_apart(const char *a_name, const ax_dims *a, const char *b_name, const ax_dims *b) {
  for (uint32_t i = 0; i < a->count; i++)
    if (ax_dims_has(b, a->v[i]))
      return ax_error(AX_INVALID_ARGUMENT, "%s and %s both have %lld", a_name, b_name, (long long)a->v[i]);
  return AX_OK;
}

static ax_status check_mode(const ax_indexing *at) {
  static const char *const modes[] = {"fill", "clip", "promise_in_bounds"};
  for (size_t i = 0; i < AX_COUNT(modes); i++)
    if (strcmp(at->mode, modes[i]) == 0) return AX_OK;
  return ax_error(AX_INVALID_ARGUMENT, "the mode is \"%s\"; there are fill, clip and promise_in_bounds", at->mode);
}

static ax_status check_batching(const ax_indexing *at, const char *const *names, const ax_type *operand, const ax_type *indices) {
  if (at->batching.count != at->index_batching.count)
    return ax_error(AX_INVALID_ARGUMENT, "%s has %u entries, %s %u", names[3], at->batching.count, names[4],
                    at->index_batching.count);
  for (uint32_t i = 0; i < at->batching.count; i++) {
    int64_t here = operand->dims[at->batching.v[i]], there = indices->dims[at->index_batching.v[i]];
    if (here != there)
      return ax_error(AX_INVALID_ARGUMENT, "dimension %lld of the operand, %lld, batches with dimension %lld of the indices, %lld",
                      (long long)at->batching.v[i], (long long)here, (long long)at->index_batching.v[i], (long long)there);
  }
  return AX_OK;
}

ax_status ax_indexing_check(const ax_indexing *at, const char *const *names, const ax_type *operand, const ax_type *indices) {
  ax_dtype_kind kind = ax_dtype_get(indices->dtype)->kind;
  if (kind != AX_KIND_SIGNED && kind != AX_KIND_UNSIGNED)
    return ax_error(AX_INVALID_ARGUMENT, "the indices are %s; they must be integers", ax_dtype_name(indices->dtype));
  if (indices->rank == 0)
    return ax_error(AX_INVALID_ARGUMENT, "the indices are a scalar; their last dimension is that of one index");
  AX_TRY(check_mode(at));
  uint32_t kept = at->window.count + at->collapsed.count + at->batching.count, wide = indices->rank - 1 + at->window.count;
  if (kept != operand->rank)
    return ax_error(AX_INVALID_ARGUMENT, "%s, %s and %s have %u dimensions together, the operand has %u", names[0], names[1],
                    names[3], kept, operand->rank);
  if (wide > AX_MAX_RANK) return ax_error(AX_INVALID_ARGUMENT, "the rank would be %u, above %d", wide, AX_MAX_RANK);
  AX_TRY(ax_infer_distinct(names[0], &at->window, wide));
  AX_TRY(ax_infer_distinct(names[1], &at->collapsed, operand->rank));
  AX_TRY(ax_infer_distinct(names[2], &at->map, operand->rank));
  AX_TRY(ax_infer_distinct(names[3], &at->batching, operand->rank));
  AX_TRY(ax_infer_distinct(names[4], &at->index_batching, indices->rank - 1));
  AX_TRY(check_ascending(names[0], &at->window));
  AX_TRY(check_ascending(names[1], &at->collapsed));
  AX_TRY(check_ascending(names[3], &at->batching));
  AX_TRY(check_apart(names[1], &at->collapsed, names[3], &at->batching));
  AX_TRY(check_apart(names[2], &at->map, names[3], &at->batching));
  int64_t numbers = indices->dims[indices->rank - 1];
  if (numbers != at->map.count)
    return ax_error(AX_INVALID_ARGUMENT, "an index has %lld numbers, but %s has %u entries", (long long)numbers, names[2],
                    at->map.count);
  return check_batching(at, names, operand, indices);
}

/* Dimensions of the operand that a window has more than one of. */
static ax_dims kept_of(const ax_indexing *at, uint32_t rank) { return ax_dims_others(rank, &at->collapsed, &at->batching); }

void ax_window_sizes(const ax_indexing *at, const ax_type *operand, const ax_type *wide, int64_t *sizes) {
  ax_dims kept = kept_of(at, operand->rank);
  for (uint32_t d = 0; d < operand->rank; d++) sizes[d] = operand->dims[d] > 0 || ax_dims_has(&at->collapsed, d);
  for (uint32_t i = 0; i < kept.count; i++) sizes[kept.v[i]] = wide->dims[at->window.v[i]];
}

ax_index_windows ax_scatter_windows(const ax_indexing *at, const ax_type *operand, const ax_type *indices, const ax_type *updates) {
  int64_t sizes[AX_MAX_RANK];
  ax_window_sizes(at, operand, updates, sizes);
  return ax_windows_of(at, operand, indices, sizes);
}

ax_index_windows ax_windows_of(const ax_indexing *at, const ax_type *operand, const ax_type *indices, const int64_t *sizes) {
  ax_index_windows w = {.rank = operand->rank, .index_rank = indices->rank, .wide_rank = indices->rank - 1 + at->window.count};
  ax_dims kept = kept_of(at, operand->rank), others = ax_dims_others(w.wide_rank, &at->window, NULL);
  for (uint32_t d = 0; d < w.rank; d++) {
    w.wide_of[d] = w.component_of[d] = -1;
    w.sizes[d] = sizes[d];
    w.limit[d] = operand->dims[d] - sizes[d];
  }
  for (uint32_t i = 0; i < others.count; i++) w.wide_of_index[i] = (int)others.v[i];
  for (uint32_t i = 0; i < kept.count; i++) w.wide_of[kept.v[i]] = (int)at->window.v[i];
  for (uint32_t i = 0; i < at->batching.count; i++) w.wide_of[at->batching.v[i]] = w.wide_of_index[at->index_batching.v[i]];
  for (uint32_t i = 0; i < at->map.count; i++) w.component_of[at->map.v[i]] = (int)i;
  return w;
}

/* --- eval --- */

/* Number `component` of the index at these coordinates; what no s64 holds is the largest. */
static int64_t index_at(const ax_index_windows *w, const ax_tensor *indices, const int64_t *wide_index, int component) {
  int64_t at = 0;
  for (uint32_t d = 0; d + 1 < w->index_rank; d++) at = at * indices->dims[d] + wide_index[w->wide_of_index[d]];
  ax_number number = ax_number_load(indices->dtype, indices->data, at * indices->dims[w->index_rank - 1] + component);
  bool is_signed = ax_dtype_get(indices->dtype)->kind == AX_KIND_SIGNED;
  return is_signed || number.u <= INT64_MAX ? number.i : INT64_MAX;
}

int64_t ax_window_place(const ax_index_windows *w, const ax_tensor *operand, const ax_tensor *indices, const ax_tensor *wide,
                        int64_t index, bool clips) {
  int64_t wide_index[AX_MAX_RANK], place = 0;
  for (uint32_t d = w->wide_rank; d-- > 0; index /= wide->dims[d]) wide_index[d] = index % wide->dims[d];
  for (uint32_t d = 0; d < w->rank; d++) {
    int64_t start = w->component_of[d] >= 0 ? index_at(w, indices, wide_index, w->component_of[d]) : 0;
    if (!clips && (start < 0 || start > w->limit[d])) return -1;
    start = start < 0 ? 0 : start > w->limit[d] ? w->limit[d] : start;
    place = place * operand->dims[d] + start + (w->wide_of[d] >= 0 ? wide_index[w->wide_of[d]] : 0);
  }
  return place;
}

/* --- Transforms --- */

static void shift(ax_dims *dims) { ax_dims_shift(dims, 0); }

bool ax_indexing_batch(const ax_prim *prim, ax_indexing *at, bool operand, bool indices, int64_t size, ax_dims *sizes) {
  shift(&at->window);
  if (operand) {
    shift(&at->collapsed);
    shift(&at->map);
    shift(&at->batching);
    if (sizes != NULL && !ax_dims_insert(prim, sizes, 0, !indices ? size : size > 0)) return false;
  }
  if (indices) shift(&at->index_batching);
  if (operand && indices) return ax_dims_insert(prim, &at->batching, 0, 0) && ax_dims_insert(prim, &at->index_batching, 0, 0);
  return operand ? ax_dims_insert(prim, &at->window, 0, 0) : true;
}

bool ax_indexing_take(const ax_prim *prim, const ax_dim_list *const lists[5], const ax_index_options *options, ax_indexing *out) {
  static const char *const modes[] = {
      [AX_INDEX_FILL] = "fill", [AX_INDEX_CLIP] = "clip", [AX_INDEX_PROMISE_IN_BOUNDS] = "promise_in_bounds"};
  const ax_index_options none = {0};
  ax_dims *const dims[] = {&out->window, &out->collapsed, &out->map, &out->batching, &out->index_batching};
  if (options == NULL) options = &none;
  if ((unsigned)options->mode >= AX_COUNT(modes)) {
    ax_reject(prim, "there is no mode %d", (int)options->mode);
    return false;
  }
  for (size_t i = 0; i < AX_COUNT(dims); i++)
    if (!ax_dims_take(prim, lists[i]->count, lists[i]->v, dims[i])) return false;
  out->mode = modes[options->mode];
  out->sorted = options->indices_are_sorted;
  out->unique = options->unique_indices;
  return true;
}

/* --- lower --- */

ax_ex ax_lower_index(ax_lower *lower, const ax_index_windows *w, uint32_t indices, int component, const ax_position *at_index) {
  ax_loop_kernel *kernel = lower->kernel;
  ax_dtype dtype = ax_lower_type(lower, indices)->dtype;
  ax_position at[AX_MAX_RANK];
  for (uint32_t d = 0; d + 1 < w->index_rank; d++) at[d] = at_index[d];
  at[w->index_rank - 1] = (ax_position){.dim = -1, .offset = component, .dynamic = AX_NONE};
  ax_ex index = ax_lower_load(lower, indices, at);
  if (dtype == AX_U64)
    index = ax_kernel_op(kernel, AX_SCALAR_MIN, AX_U64, index, ax_kernel_const(kernel, AX_U64, INT64_MAX), AX_NONE);
  return dtype == AX_S64 ? index : ax_kernel_op(kernel, AX_SCALAR_CONVERT, AX_S64, index, AX_NONE, AX_NONE);
}

static ax_ex both(ax_loop_kernel *kernel, ax_ex a, ax_ex b) {
  return a == AX_NONE ? b : ax_kernel_op(kernel, AX_SCALAR_AND, AX_BOOL, a, b, AX_NONE);
}

void ax_lower_windows(ax_lower *lower, const ax_index_windows *w, uint32_t indices, ax_position *at, ax_ex *inside) {
  ax_loop_kernel *kernel = lower->kernel;
  ax_position of_index[AX_MAX_RANK];
  for (uint32_t d = 0; d + 1 < w->index_rank; d++) of_index[d] = (ax_position){.dim = w->wide_of_index[d], .coef = 1, .dynamic = AX_NONE};
  if (inside != NULL) *inside = AX_NONE;
  for (uint32_t d = 0; d < w->rank; d++) {
    at[d] = (ax_position){.dim = w->wide_of[d], .coef = 1, .dynamic = AX_NONE};
    if (w->component_of[d] < 0) continue;
    ax_ex start = ax_lower_index(lower, w, indices, w->component_of[d], of_index);
    at[d].dynamic = start;
    at[d].limit = w->limit[d];
    if (inside == NULL) continue;
    ax_ex low = ax_kernel_op(kernel, AX_SCALAR_GE, AX_BOOL, start, ax_kernel_const(kernel, AX_S64, 0), AX_NONE);
    ax_ex high = ax_kernel_op(kernel, AX_SCALAR_LE, AX_BOOL, start, ax_kernel_const(kernel, AX_S64, w->limit[d]), AX_NONE);
    *inside = both(kernel, both(kernel, *inside, low), high);
  }
}

/* --- hlo --- */

/* By component, the largest that a window may begin at; of the indices' shape. */
static uint32_t hlo_limits(ax_hlo *hlo, const ax_index_windows *w, const ax_type *type) {
  int64_t limits[AX_MAX_RANK] = {0}, count = type->dims[type->rank - 1];
  for (uint32_t d = 0; d < w->rank; d++)
    if (w->component_of[d] >= 0) limits[w->component_of[d]] = w->limit[d];
  const ax_type row = ax_array_type(AX_S64, AX_LIST(1, &count));
  const ax_dims last = {1, {type->rank - 1}};
  return ax_hlo_broadcast(hlo, ax_hlo_dense(hlo, &row, limits), &last, type);
}

/* A u64 beyond s64 becomes a negative s64, which is outside the operand as well. */
static uint32_t hlo_as_s64(ax_hlo *hlo, uint32_t indices, const ax_type *type, ax_type *as) {
  *as = ax_array_type(AX_S64, AX_LIST(type->rank, type->dims));
  return type->dtype == AX_S64 ? indices : ax_hlo_op(hlo, "stablehlo.convert", &indices, 1, NULL, as, 1);
}

uint32_t ax_hlo_windows_inside(ax_hlo *hlo, const ax_index_windows *w, uint32_t indices, const ax_type *index_type,
                               const ax_type *wide) {
  const int64_t zero = 0;
  ax_type type;
  const uint32_t index = hlo_as_s64(hlo, indices, index_type, &type), limits = hlo_limits(hlo, w, &type);
  const ax_type truths = ax_array_type(AX_BOOL, AX_LIST(type.rank, type.dims)), result = ax_array_type(AX_BOOL, AX_LIST(wide->rank, wide->dims));
  const ax_dims last = {1, {type.rank - 1}};
  const uint32_t low = ax_hlo_compare(hlo, "GE", NULL, index, ax_hlo_splat(hlo, &type, &zero), &type);
  const uint32_t high = ax_hlo_compare(hlo, "LE", NULL, index, limits, &type);
  const uint32_t inside = ax_hlo_op(hlo, "stablehlo.and", (uint32_t[]){low, high}, 2, NULL, &truths, 1);
  const uint32_t all = ax_hlo_reduce_axes(hlo, AX_SCALAR_MIN, inside, &truths, &last);
  ax_dims where = {.count = type.rank - 1};
  for (uint32_t d = 0; d < where.count; d++) where.v[d] = w->wide_of_index[d];
  return ax_hlo_broadcast(hlo, all, &where, &result);
}

uint32_t ax_hlo_indices_clamped(ax_hlo *hlo, const ax_index_windows *w, uint32_t indices, const ax_type *index_type) {
  const int64_t zero = 0;
  ax_type type;
  const uint32_t index = hlo_as_s64(hlo, indices, index_type, &type), limits = hlo_limits(hlo, w, &type);
  const uint32_t in[] = {ax_hlo_splat(hlo, &type, &zero), index, limits};
  return ax_hlo_op(hlo, "stablehlo.clamp", in, 3, NULL, &type, 1);
}

ax_status ax_hlo_index_vectors(const ax_hlo_read_args *args, const char *numbers, ax_value indices, ax_dims *batching, ax_value *out) {
  const ax_hlo_attribute *group = ax_hlo_find(args->op, numbers), *dimension = ax_hlo_item(group, "index_vector_dim");
  const ax_type type = ax_typeof(indices);
  const int64_t vector = dimension != NULL ? dimension->integer : 0;
  if (vector < 0 || vector > type.rank || type.rank == AX_MAX_RANK)
    return ax_error(AX_INVALID_ARGUMENT, "index_vector_dim is %lld, and the indices have rank %u", (long long)vector, type.rank);
  for (uint32_t i = 0; i < batching->count; i++) batching->v[i] -= batching->v[i] > vector;
  *out = vector < type.rank ? ax_move_dim(indices, (int)vector, (int)type.rank - 1) : ax_expand_dims(indices, -1);
  return AX_OK;
}

/* --- shard --- */

void ax_shard_windows(const ax_shard_args *args, const ax_index_windows *w, const ax_indexing *at, ax_factored *wide,
                      ax_factored *out, const ax_factor_kind *alone) {
  const ax_type *operand = &args->types[args->eqn->in[0]], *indices = &args->types[args->eqn->in[1]];
  for (uint32_t k = 0; k + 1 < w->index_rank; k++) {
    const bool batches = ax_dims_has(&at->index_batching, k);
    if (!batches && alone == NULL) continue;
    uint32_t factor = ax_factor(args, indices->dims[k], batches ? AX_FACTOR_ALONG : *alone);
    ax_factor_of(&args->in[1], k, factor);
    ax_factor_of(wide, w->wide_of_index[k], factor);
    for (uint32_t i = 0; i < at->batching.count; i++) {
      if (at->index_batching.v[i] != k) continue;
      ax_factor_of(&args->in[0], at->batching.v[i], factor);
      if (out != NULL) ax_factor_of(out, at->batching.v[i], factor);
    }
  }
  for (uint32_t d = 0; d < w->rank; d++) {
    if (ax_dims_has(&at->batching, d) || w->wide_of[d] < 0 || w->limit[d] > 0) continue;
    uint32_t factor = ax_factor(args, operand->dims[d], AX_FACTOR_ALONG);
    ax_factor_of(&args->in[0], d, factor);
    ax_factor_of(wide, w->wide_of[d], factor);
    if (out != NULL) ax_factor_of(out, d, factor);
  }
}

bool ax_window_picks(const ax_index_windows *w, const ax_indexing *at, uint32_t d) {
  return w->component_of[d] >= 0 && w->limit[d] > 0 && ax_dims_has(&at->collapsed, d);
}

bool ax_window_overlaps(const ax_index_windows *w, const ax_indexing *at, uint32_t d) {
  return w->component_of[d] >= 0 && !ax_dims_has(&at->collapsed, d) && w->sizes[d] > 1 &&
         w->sizes[d] <= (w->limit[d] + w->sizes[d]) / AX_FEW_OF;
}

bool ax_picked_adds_up(ax_dtype dtype) { return dtype != AX_BOOL && !ax_is_power(dtype) && !ax_is_key(dtype); }

ax_literal ax_not_picked(ax_dtype dtype) {
  ax_element *bits = ax_trace_alloc(sizeof *bits);
  const ax_number number = ax_rounds(dtype) ? (ax_number){.f = -0.0, .imag = -0.0} : (ax_number){0};
  if (bits == NULL) return (ax_literal){0}; /* the trace has failed */
  *bits = (ax_element){0};
  ax_number_store(dtype, bits, 0, number);
  return (ax_literal){.type = ax_array_type(dtype, AX_DIMS()), .data = bits};
}

/* By number of an index. */
typedef struct places {
  int64_t limit[AX_MAX_RANK]; /* of the whole operand */
  ax_value start[AX_MAX_RANK]; /* of the block */
} places;

static places places_of(const ax_block_args *args, const ax_index_windows *w, const ax_indexing *at, bool *cut) {
  const ax_type block = ax_typeof(args->in[0]);
  places p;
  *cut = false;
  for (uint32_t d = 0; d < w->rank && !ax_failed(); d++) {
    if (w->component_of[d] < 0) continue;
    const bool overlaps = ax_window_overlaps(w, at, d), here = (ax_window_picks(w, at, d) || overlaps) && args->in_specs[0].count[d] > 0;
    p.limit[w->component_of[d]] = w->limit[d];
    ax_value start = here ? ax_spec_start(&args->in_specs[0], d, block.dims[d], AX_S64) : ax_full(AX_S64, AX_DIMS(), 0);
    if (here && overlaps) start = ax_sub(start, ax_integer(w->sizes[d] - 1));
    p.start[w->component_of[d]] = ax_expand_dims(start, 0);
    *cut = *cut || here;
  }
  return p;
}

ax_value ax_block_indices(const ax_block_args *args, const ax_index_windows *w, const ax_indexing *at, bool *cut,
                          ax_value *outside) {
  ax_value indices = args->in[1];
  const uint32_t count = at->map.count;
  places p = places_of(args, w, at, cut);
  if (!*cut || ax_failed()) return indices;
  const ax_type row = ax_array_type(AX_S64, AX_DIMS(count));
  if (ax_typeof(indices).dtype == AX_U64) indices = ax_min(indices, ax_unsigned(INT64_MAX));
  indices = ax_convert_element_type(indices, AX_S64);
  ax_value limits = ax_constant(&row, p.limit), zero = ax_full(AX_S64, AX_DIMS(), 0);
  if (!ax_indexing_fills(at)) {
    indices = ax_max(ax_min(indices, limits), zero);
  } else {
    const ax_type type = ax_typeof(indices);
    *outside = ax_reduce_or(ax_or(ax_lt(indices, zero), ax_gt(indices, limits)), AX_DIMS(-1), false);
    indices = ax_where(ax_expand_dims(*outside, type.rank - 1), ax_integer(-1), indices);
  }
  ax_value starts = ax_concatenate(AX_LIST(count, p.start), 0), local = ax_sub(indices, starts);
  return ax_indexing_fills(at) ? ax_where(ax_lt(indices, zero), ax_integer(-1), local) : local;
}
