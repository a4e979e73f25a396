/* ref_slice: M[d..], start: s32[].. -> M[sizes..]     the elements from `start` on, every strides[d]-th; one start a dimension
   ref_transpose: M[d..] -> M[d[permutation]..]        the same elements, dimensions in another order
   ref_reshape: M[d..] -> M[dims..]                    the same elements, row-major, under other dimensions

   They make views of a kernel's memory. M is a ref of a dtype in a space, semaphores or barriers; the view is of the same kind.
   Nothing is copied: a store to a view is a store to the ref that it was made of.

     o:ref<f32[4,8] vmem> = ref_slice[sizes=(4, 8) strides=()] x i 0:s32[]     x: ref<f32[16,8] vmem>, as x.at[pl.ds(i, 4), 0:8]

   Parameters: sizes; strides, none: all 1; permutation; dims.
   Errors: an operand that is no memory; counts other than the rank; a slice that is larger than its operand, or whose start is
   known and makes it leave the operand; a stride below 1; a permutation that is none; other numbers of elements. A start that is
   not known is checked when the kernel runs, and so is a reshape that splits or joins dimensions which do not lie in one piece.
   They have no effect: an unused one is dropped. They stand in kernels' bodies alone. */
#include <string.h>

#include "ir/number.h"
#include "kernel/discharge.h"
#include "kernel/local.h"
#include "kernel/machine/state.h"
#include "prim/prims.h"
#include "prim/shape.h"

/* --- infer --- */

/* `of` with other dimensions. */
static ax_type view(const ax_type *of, uint32_t rank, const int64_t *dims) {
  ax_type type = *of;
  type.rank = rank;
  memset(type.dims, 0, sizeof type.dims);
  memcpy(type.dims, dims, rank * sizeof dims[0]);
  return type;
}

static ax_status check_slice_dim(const ax_infer_args *args, uint32_t d) {
  const ax_ref_slice_params *params = args->params;
  const ax_type *of = &args->in[0];
  int64_t size = params->sizes.v[d], stride = params->strides.count > 0 ? params->strides.v[d] : 1, last;
  if (stride < 1) return ax_error(AX_INVALID_ARGUMENT, "stride %u is %lld, not at least 1", d, (long long)stride);
  if (size < 0) return ax_error(AX_INVALID_ARGUMENT, "size %u is %lld", d, (long long)size);
  if (size == 0) return AX_OK;
  if (!ax_mul_i64(size - 1, stride, &last) || last >= of->dims[d])
    return ax_error(AX_INVALID_ARGUMENT, "%lld elements%s along dimension %u of %s are too many", (long long)size,
                    stride > 1 ? " that far apart" : "", d, ax_type_string(of, args->axes));
  return AX_OK;
}

static ax_status slice_infer(const ax_infer_args *args) {
  const ax_ref_slice_params *params = args->params;
  AX_TRY(ax_step_count(args, 1, 1 + AX_MAX_RANK));
  AX_TRY(ax_step_memory(args, 0));
  uint32_t rank = args->in[0].rank;
  if (params->sizes.count != rank || args->in_count != 1 + rank || (params->strides.count != 0 && params->strides.count != rank))
    return ax_error(AX_INVALID_ARGUMENT, "%u starts, %u sizes and %u strides for %u dimensions", args->in_count - 1,
                    params->sizes.count, params->strides.count, rank);
  for (uint32_t d = 0; d < rank; d++) {
    AX_TRY(ax_step_scalar(args, 1 + d, AX_S32, "a start"));
    AX_TRY(check_slice_dim(args, d));
  }
  args->out[0] = view(&args->in[0], rank, params->sizes.v);
  return AX_OK;
}

static ax_status transpose_infer(const ax_infer_args *args) {
  const ax_dims *permutation = &((const ax_ref_dims_params *)args->params)->dims;
  const ax_type *of = &args->in[0];
  int64_t dims[AX_MAX_RANK];
  uint32_t seen = 0;
  AX_TRY(ax_step_memory(args, 0));
  for (uint32_t d = 0; d < permutation->count; d++) {
    int64_t from = permutation->v[d];
    if (permutation->count != of->rank || from < 0 || from >= of->rank || (seen >> from & 1) != 0)
      return ax_error(AX_INVALID_ARGUMENT, "the permutation is none of the %u dimensions of %s", of->rank,
                      ax_type_string(of, args->axes));
    seen |= 1u << from;
    dims[d] = of->dims[from];
  }
  if (permutation->count != of->rank)
    return ax_error(AX_INVALID_ARGUMENT, "the permutation is none of the %u dimensions of %s", of->rank,
                    ax_type_string(of, args->axes));
  args->out[0] = view(of, of->rank, dims);
  return AX_OK;
}

static ax_status reshape_infer(const ax_infer_args *args) {
  const ax_dims *dims = &((const ax_ref_dims_params *)args->params)->dims;
  const ax_type *of = &args->in[0];
  int64_t elems = 1;
  AX_TRY(ax_step_memory(args, 0));
  bool fits = true;
  for (uint32_t d = 0; d < dims->count && fits; d++) fits = dims->v[d] >= 0 && ax_mul_i64(elems, dims->v[d], &elems);
  if (!fits || elems != ax_type_elems(of))
    return ax_error(AX_INVALID_ARGUMENT, "%s has other elements than the new dimensions hold", ax_type_string(of, args->axes));
  args->out[0] = view(of, dims->count, dims->v);
  return AX_OK;
}

/* --- check --- */

/* Starts that are literals, and do not depend on where the kernel is. */
static ax_status check_slice(ax_step_check_args *args) {
  const ax_eqn *eqn = args->eqn;
  const ax_ref_slice_params *params = eqn->params;
  const ax_type *of = &args->program->types[eqn->in[0]];
  for (uint32_t d = 0; d < of->rank; d++) {
    const ax_literal *start = ax_value_literal(args->program, eqn->in[1 + d]);
    if (start == NULL) continue;
    int64_t begin = ax_number_load(AX_S32, start->data, 0).i, size = params->sizes.v[d],
            stride = params->strides.count > 0 ? params->strides.v[d] : 1;
    int64_t end = begin + (size > 0 ? (size - 1) * stride + 1 : 0);
    if (begin < 0 || end > of->dims[d])
      return ax_error(AX_INVALID_ARGUMENT, "ref_slice%s%s: elements %lld to %lld of dimension %u of %s, which has %lld",
                      eqn->location != NULL ? " at " : "", eqn->location != NULL ? eqn->location : "", (long long)begin,
                      (long long)end, d, ax_type_string(of, &args->program->axes), (long long)of->dims[d]);
  }
  return AX_OK;
}

/* --- Memory as values --- */

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
  ax_type mask = ax_array_type(AX_BOOL, AX_LIST(view->type.rank, view->type.dims)),
          scalar = ax_array_type(view->type.dtype, AX_DIMS());
  for (uint32_t k = 0; k < params->strides.count; k++) interior[k] = params->strides.v[k] - 1;
  ax_value ours = ax_pad(ax_full(AX_BOOL, AX_LIST(mask.rank, mask.dims), 1), ax_full(AX_BOOL, AX_DIMS(), 0), none, none, interior);
  ax_value zero = ax_discharge_spread(d, ax_full(scalar.dtype, AX_DIMS(), 0));
  return ax_select_n(ours, span, ax_pad(value, zero, none, none, interior));
}

static ax_value slice_is_there(const ax_content_view *view) {
  const ax_type *of = &view->of->type;
  int64_t span[AX_MAX_RANK];
  ax_value there = ax_full(AX_BOOL, AX_DIMS(), 1);
  span_of(view, span);
  for (uint32_t d = 0; d < of->rank; d++) {
    if (span[d] == 0) continue; /* nothing is taken */
    const ax_value start = view->starts[d];
    const int64_t last = of->dims[d] - span[d];
    there = ax_and(there, ax_ge(start, ax_integer(0)));
    if (ax_typeof(start).dtype != AX_S32 || last <= INT32_MAX) there = ax_and(there, ax_le(start, ax_integer(last)));
  }
  return there;
}

static ax_value write_slice(const ax_discharge *d, const ax_content_view *view, ax_value whole, ax_value value) {
  int64_t span[AX_MAX_RANK];
  if (ax_type_elems(&view->type) == 0) return whole;
  span_of(view, span);
  if (is_strided(view)) value = interleave(d, view, ax_dynamic_slice(whole, view->starts, span), value);
  return ax_dynamic_update_slice(whole, value, view->starts);
}

static ax_value read_transpose(const ax_content_view *view, ax_value whole) {
  return ax_transpose(whole, ((const ax_ref_dims_params *)view->eqn->params)->dims.v);
}

static ax_value write_transpose(const ax_discharge *d, const ax_content_view *view, ax_value whole, ax_value value) {
  const ax_dims *dims = &((const ax_ref_dims_params *)view->eqn->params)->dims;
  int64_t back[AX_MAX_RANK];
  (void)d, (void)whole;
  for (uint32_t k = 0; k < dims->count; k++) back[dims->v[k]] = k;
  return ax_transpose(value, back);
}

static ax_value read_reshape(const ax_content_view *view, ax_value whole) {
  const ax_dims *dims = &((const ax_ref_dims_params *)view->eqn->params)->dims;
  return ax_reshape(whole, AX_LIST(dims->count, dims->v));
}

static ax_value write_reshape(const ax_discharge *d, const ax_content_view *view, ax_value whole, ax_value value) {
  (void)d, (void)whole;
  return ax_reshape(value, AX_LIST(view->of->type.rank, view->of->type.dims));
}

/* --- Views of memory that lies somewhere: in the machine and in the executor --- */

static ax_status shape_slice(const ax_eqn *eqn, const ax_type *type, ax_view *view) {
  const ax_dims *strides = &((const ax_ref_slice_params *)eqn->params)->strides;
  for (uint32_t d = 0; d < type->rank; d++) {
    if (strides->count > 0) view->strides[d] *= strides->v[d];
    view->type.dims[d] = type->dims[d];
  }
  return AX_OK;
}

static ax_status offset_slice(const ax_eqn *eqn, const ax_type *of, const int64_t *strides, const int64_t *starts,
                              int64_t *offset) {
  const ax_ref_slice_params *params = eqn->params;
  for (uint32_t d = 0; d < of->rank; d++) {
    const int64_t size = params->sizes.v[d], stride = params->strides.count > 0 ? params->strides.v[d] : 1;
    const int64_t last = starts[d] + (size > 0 ? (size - 1) * stride : 0);
    if (size > 0 && (starts[d] < 0 || last >= of->dims[d]))
      return ax_error(AX_INVALID_ARGUMENT, "takes elements %lld to %lld of dimension %u, which has %lld", (long long)starts[d],
                      (long long)last, d, (long long)of->dims[d]);
    *offset += starts[d] * strides[d];
  }
  return AX_OK;
}

static void lasts_of_slice(const ax_eqn *eqn, const ax_type *of, int64_t *last) {
  const ax_ref_slice_params *params = eqn->params;
  for (uint32_t d = 0; d < of->rank; d++) {
    const int64_t size = params->sizes.v[d], stride = params->strides.count > 0 ? params->strides.v[d] : 1;
    last[d] = size > 0 ? of->dims[d] - 1 - (size - 1) * stride : INT32_MAX;
  }
}

static bool slice_keeps_place(const ax_eqn *eqn, const ax_type *of) {
  const ax_ref_slice_params *params = eqn->params;
  bool rest = false;
  for (uint32_t d = 0; d < of->rank; d++) {
    if (params->strides.count > 0 && params->strides.v[d] != 1) return false;
    if (params->sizes.v[d] == of->dims[d]) rest = rest || of->dims[d] != 1;
    else if (rest || params->sizes.v[d] != 1) return false;
  }
  return true;
}

static ax_status shape_transpose(const ax_eqn *eqn, const ax_type *type, ax_view *view) {
  const ax_dims *order = &((const ax_ref_dims_params *)eqn->params)->dims;
  const ax_view of = *view;
  (void)type;
  for (uint32_t d = 0; d < order->count; d++) {
    view->type.dims[d] = of.type.dims[order->v[d]];
    view->strides[d] = of.strides[order->v[d]];
  }
  return AX_OK;
}

static ax_status shape_reshape(const ax_eqn *eqn, const ax_type *type, ax_view *view) {
  const ax_view of = *view;
  (void)eqn;
  if (ax_view_reshape(&of, type, view)) return AX_OK;
  return ax_error(AX_INVALID_ARGUMENT, "ref_reshape: what is split or joined does not lie in one piece");
}

static bool always(const ax_eqn *eqn, const ax_type *of) {
  (void)eqn, (void)of;
  return true;
}

/* --- The records --- */

static const ax_step_view slices = {.shape = shape_slice, .offset = offset_slice, .lasts = lasts_of_slice, .keeps_place = slice_keeps_place,
                                    .read = read_slice, .write = write_slice, .there = slice_is_there};
static const ax_step_view transposes = {.all = true, .shape = shape_transpose, .read = read_transpose, .write = write_transpose};
static const ax_step_view reshapes = {.all = true, .shape = shape_reshape, .keeps_place = always, .read = read_reshape,
                                      .write = write_reshape};

static const ax_step slice_step = {.role = AX_STEP_MAKES_VIEW, .view = &slices, .check = check_slice};
static const ax_step transpose_step = {.role = AX_STEP_MAKES_VIEW, .view = &transposes};
static const ax_step reshape_step = {.role = AX_STEP_MAKES_VIEW, .view = &reshapes};

static const ax_param slice_params[] = {{"sizes", AX_PARAM_DIMS, offsetof(ax_ref_slice_params, sizes)},
                                        {"strides", AX_PARAM_DIMS, offsetof(ax_ref_slice_params, strides)}};
static const ax_param transpose_params[] = {{"permutation", AX_PARAM_DIMS, offsetof(ax_ref_dims_params, dims)}};
static const ax_param reshape_params[] = {{"dims", AX_PARAM_DIMS, offsetof(ax_ref_dims_params, dims)}};

const ax_prim ax_prim_ref_slice = {
    .name = "ref_slice", AX_STEP_RULES, .in_count = -1, .out_count = 1, .infer = slice_infer,
    .step = &slice_step,
    AX_PARAMS(slice_params, ax_ref_slice_params),
};

const ax_prim ax_prim_ref_transpose = {
    .name = "ref_transpose", AX_STEP_RULES, .in_count = 1, .out_count = 1, .infer = transpose_infer,
    .step = &transpose_step,
    AX_PARAMS(transpose_params, ax_ref_dims_params),
};

const ax_prim ax_prim_ref_reshape = {
    .name = "ref_reshape", AX_STEP_RULES, .in_count = 1, .out_count = 1, .infer = reshape_infer,
    .step = &reshape_step,
    AX_PARAMS(reshape_params, ax_ref_dims_params),
};

/* --- The functions --- */

/* A start that is a number of C is known here; one that is a value, where the kernel is put together (check_slice). */
static bool start_fits(const char *function, const ax_type *of, uint32_t d, ax_value start, int64_t size, int64_t stride) {
  int64_t begin, end;
  if (!ax_is_number(start)) return true;
  if (!ax_number_bits(function, start, AX_S32, &begin)) return false;
  begin = (int32_t)begin;
  end = begin + (size > 0 ? (size - 1) * stride + 1 : 0);
  if (begin >= 0 && end <= of->dims[d]) return true;
  ax_reject_as(function, "elements %lld to %lld of dimension %u of %s, which has %lld", (long long)begin, (long long)end, d,
               ax_type_string(of, &ax_builder_current()->axes), (long long)of->dims[d]);
  return false;
}

static bool lists_fit(const char *function, ax_value ref, uint32_t starts, uint32_t sizes, uint32_t strides) {
  uint32_t rank = ax_memory_type(function, ref).rank;
  return !ax_failed() && ax_list_fits(function, "the ref has", "dimension", starts, rank) &&
         ax_list_fits(function, "the ref has", "dimension", sizes, rank) &&
         ax_list_fits(function, "the ref has", "dimension", strides, rank);
}

static ax_value slice(const char *function, ax_value ref, const ax_value *starts, const int64_t *sizes, const int64_t *strides) {
  ax_type of = ax_memory_type(function, ref);
  ax_ref_slice_params params = {.sizes.count = of.rank};
  ax_value in[1 + AX_MAX_RANK] = {ref};
  if (of.dtype == AX_NO_DTYPE) return ax_poison;
  if (of.rank > 0 && (starts == NULL || sizes == NULL))
    return ax_reject_as(function, "there are no starts, or no sizes, for %u dimensions", of.rank);
  bool strided = false;
  for (uint32_t d = 0; d < of.rank; d++) {
    params.sizes.v[d] = sizes[d];
    params.strides.v[d] = strides != NULL ? strides[d] : 1;
    strided = strided || params.strides.v[d] != 1;
  }
  if (strided) params.strides.count = of.rank;
  else memset(&params.strides, 0, sizeof params.strides);
  for (uint32_t d = 0; d < of.rank; d++) {
    if (sizes[d] >= 0 && sizes[d] <= of.dims[d] && (!strided || strides[d] <= of.dims[d]) &&
        !start_fits(function, &of, d, starts[d], sizes[d], strided ? strides[d] : 1))
      return ax_poison;
    in[1 + d] = ax_as(function, starts[d], AX_S32);
  }
  return ax_bind1(&ax_prim_ref_slice, &params, in, 1 + of.rank);
}

ax_value (ax_ref_slice)(ax_value ref, uint32_t start_count, const ax_value *starts, uint32_t size_count, const int64_t *sizes) {
  if (!lists_fit("ref_slice", ref, start_count, size_count, AX_ANY_ROOM)) return ax_poison;
  return slice("ref_slice", ref, starts, sizes, NULL);
}

ax_value (ax_ref_strided_slice)(ax_value ref, uint32_t start_count, const ax_value *starts, uint32_t size_count,
                                const int64_t *sizes, uint32_t stride_count, const int64_t *strides) {
  if (!lists_fit("ref_strided_slice", ref, start_count, size_count, strides != NULL ? stride_count : AX_ANY_ROOM)) return ax_poison;
  return slice("ref_strided_slice", ref, starts, sizes, strides);
}

ax_value ax_ref_at(ax_value ref, ax_value index) {
  ax_type of = ax_memory_type("ref_at", ref);
  ax_value starts[AX_MAX_RANK] = {index};
  if (of.dtype == AX_NO_DTYPE) return ax_poison;
  if (of.rank == 0)
    return ax_reject_as("ref_at", "%s has no dimension to take one of", ax_type_string(&of, &ax_builder_current()->axes));
  if (of.dims[0] == 0) return ax_reject_as("ref_at", "%s has none", ax_type_string(&of, &ax_builder_current()->axes));
  int64_t sizes[AX_MAX_RANK] = {1};
  for (uint32_t d = 1; d < of.rank; d++) {
    starts[d] = ax_integer(0);
    sizes[d] = of.dims[d];
  }
  return ax_ref_reshape(slice("ref_at", ref, starts, sizes, NULL), AX_LIST(of.rank - 1, of.dims + 1));
}

ax_value (ax_ref_transpose)(ax_value ref, uint32_t rank, const int64_t *permutation) {
  ax_ref_dims_params params;
  const ax_type type = ax_memory_type("ref_transpose", ref);
  if (type.dtype == AX_NO_DTYPE || !ax_list_fits("ref_transpose", "the ref has", "dimension", rank, type.rank) ||
      !ax_dims_take(&ax_prim_ref_transpose, type.rank, permutation, &params.dims))
    return ax_poison;
  return ax_bind1(&ax_prim_ref_transpose, &params, &ref, 1);
}

ax_value (ax_ref_reshape)(ax_value ref, uint32_t rank, const int64_t *dims) {
  ax_ref_dims_params params;
  if (ax_memory_type("ref_reshape", ref).dtype == AX_NO_DTYPE || !ax_dims_take(&ax_prim_ref_reshape, rank, dims, &params.dims))
    return ax_poison;
  return ax_bind1(&ax_prim_ref_reshape, &params, &ref, 1);
}
