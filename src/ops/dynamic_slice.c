/* dynamic_slice: x T[d..], start I[] .. -> T[slice_sizes..]         y[i..] = x[start + i ..]
   dynamic_update_slice: x T[d..], update T[n..], start I[] .. -> T[d..]         x with update put at start
   One start a dimension, integer scalars of one dtype, clamped so that the part lies inside.
   Parameters: slice_sizes (dynamic_slice).
   Errors: a part larger than the operand; starts that are not integer scalars, or not one a dimension.
   Linear in x and update. Each is the other's transpose: a slice's cotangent is put into zeros; an update's cotangent is that slice
   of the result's, and x's is the result's with zeros in that place. Batched over starts they are a gather and a scatter.
   Sharding: dimensions that the part has whole may be cut, and of x those of which it has one element, or at most an eighth of the elements, but
   of keys: the devices that have the elements give them, and the parts are added (not bools or f8e8m0fnu), or overwrite them. */
#include <string.h>

#include "hlo/hlo.h"
#include "ops/gather.h"
#include "ops/scatter.h"
#include "plan/lower.h"
#include "prim/prims.h"
#include "prim/shape.h"

typedef struct dynamic_slice_params {
  ax_dims slice_sizes;
} dynamic_slice_params;

/* --- infer --- */

/* The part of size `sizes` fits, and the operands from `first` on are its starts. */
static ax_status infer_part(const ax_infer_args *args, const int64_t *sizes, uint32_t first) {
  const ax_type *x = &args->in[0];
  for (uint32_t d = 0; d < x->rank; d++)
    if (sizes[d] < 0 || sizes[d] > x->dims[d])
      return ax_error(AX_INVALID_ARGUMENT, "a part of %lld does not fit dimension %u, of %lld", (long long)sizes[d], d,
                      (long long)x->dims[d]);
  if (args->in_count != first + x->rank)
    return ax_error(AX_INVALID_ARGUMENT, "needs one start a dimension, %u, got %u", x->rank, args->in_count - first);
  for (uint32_t i = first; i < args->in_count; i++) {
    ax_dtype_kind kind = ax_dtype_get(args->in[i].dtype)->kind;
    if (args->in[i].rank != 0 || (kind != AX_KIND_SIGNED && kind != AX_KIND_UNSIGNED))
      return ax_error(AX_INVALID_ARGUMENT, "start %u is not an integer scalar: %s", i - first,
                      ax_type_string(&args->in[i], args->axes));
    if (args->in[i].dtype != args->in[first].dtype)
      return ax_error(AX_INVALID_ARGUMENT, "start dtypes differ: %s and %s", ax_dtype_name(args->in[first].dtype),
                      ax_dtype_name(args->in[i].dtype));
  }
  return AX_OK;
}

static ax_status slice_infer(const ax_infer_args *args) {
  const ax_dims *sizes = &((const dynamic_slice_params *)args->params)->slice_sizes;
  if (args->in_count == 0) return ax_error(AX_INVALID_ARGUMENT, "needs an operand");
  AX_TRY(ax_infer_one_each("slice_sizes", sizes, args->in[0].rank));
  AX_TRY(infer_part(args, sizes->v, 1));
  return ax_infer_shape(args->in[0].dtype, sizes, &args->out[0]);
}

static ax_status update_infer(const ax_infer_args *args) {
  if (args->in_count < 2) return ax_error(AX_INVALID_ARGUMENT, "needs an operand and an update");
  const ax_type *x = &args->in[0], *update = &args->in[1];
  if (update->dtype != x->dtype || update->rank != x->rank)
    return ax_error(AX_INVALID_ARGUMENT, "the update differs in dtype or rank: %s into %s",
                    ax_type_string(update, args->axes), ax_type_string(x, args->axes));
  AX_TRY(infer_part(args, update->dims, 2));
  args->out[0] = ax_array_type(x->dtype, AX_LIST(x->rank, x->dims));
  return AX_OK;
}

/* --- shard: dimensions that are taken whole, where starts are clamped to 0, are cut. So are those of which few elements are taken or
   overwritten, by the devices that have them: others give 0, which is added, or leave their blocks as they are --- */

static const ax_type *part_type(const ax_eqn *eqn, const ax_type *types) {
  return &types[eqn->prim == &ax_prim_dynamic_update_slice ? eqn->in[1] : eqn->out];
}

/* Of more elements the parts that are added would be more than what is gathered. */
static bool picks_few(const ax_type *x, const ax_type *part, uint32_t d) {
  const int64_t size = part->dims[d];
  return !ax_is_key(x->dtype) && size > 0 && size < x->dims[d] && (size == 1 || size <= x->dims[d] / AX_FEW_OF);
}

static void shard(const ax_shard_args *args) {
  const bool updates = args->eqn->prim == &ax_prim_dynamic_update_slice;
  const ax_type *x = &args->types[args->eqn->in[0]], *part = part_type(args->eqn, args->types);
  for (uint32_t d = 0; d < x->rank; d++) {
    const bool whole = part->dims[d] == x->dims[d], few = picks_few(x, part, d), adds = few && !updates;
    if ((!whole && !few) || (adds && !ax_picked_adds_up(x->dtype))) continue;
    const uint32_t factor = ax_factor(args, x->dims[d], adds ? AX_FACTOR_SUM : AX_FACTOR_ALONG);
    ax_factor_of(&args->in[0], d, factor);
    if (updates && whole) ax_factor_of(&args->in[1], d, factor);
    if (!adds) ax_factor_of(&args->out[0], d, factor);
  }
}

/* The part as a device's block has it: `sizes` elements of the block, no fewer than it has of the part. Along dimensions that few elements are
   picked of and that are cut, the part begins at `part` of the block, which may be outside it; along others that is the start.

     block           . . a b      sizes 3, start 1: . a b
     part of three       a b c    part 2
     which is that, moved by part - start: a b and one element that is another device's */
typedef struct local_part {
  uint32_t rank, cut; /* cut: bits of those dimensions */
  bool one;           /* the part has one element along all of them */
  ax_value start[AX_MAX_RANK], part[AX_MAX_RANK];
  int64_t sizes[AX_MAX_RANK];
} local_part;

static bool is_cut(const local_part *p, uint32_t d) { return (p->cut >> d & 1) != 0; }

static ax_value clamped_to(ax_value x, int64_t most) { return ax_max(ax_min(x, ax_integer(most)), ax_integer(0)); }

static local_part part_here(const ax_block_args *args, const ax_value *starts, const int64_t *sizes) {
  const ax_type *x = &args->types[args->eqn->in[0]], *part = part_type(args->eqn, args->types), block = ax_typeof(args->in[0]);
  local_part p = {.rank = x->rank, .one = true};
  for (uint32_t d = 0; d < x->rank; d++) p.cut |= (uint32_t)(args->in_specs[0].count[d] > 0 && picks_few(x, part, d)) << d;
  for (uint32_t d = 0; d < x->rank && !ax_failed(); d++) {
    const bool cut = is_cut(&p, d);
    p.part[d] = starts[d];
    p.sizes[d] = cut ? ax_least(sizes[d], block.dims[d]) : sizes[d];
    if (p.cut == 0) continue;
    if (ax_typeof(p.part[d]).dtype == AX_U64) p.part[d] = ax_min(p.part[d], ax_unsigned(INT64_MAX));
    p.part[d] = ax_convert_element_type(p.part[d], AX_S64);
    if (!cut) continue;
    p.one = p.one && sizes[d] == 1;
    p.part[d] = ax_sub(clamped_to(p.part[d], x->dims[d] - sizes[d]), ax_spec_start(&args->in_specs[0], d, block.dims[d], AX_S64));
  }
  for (uint32_t d = 0; d < x->rank && !ax_failed(); d++)
    p.start[d] = is_cut(&p, d) ? clamped_to(p.part[d], block.dims[d] - p.sizes[d]) : p.part[d];
  return p;
}

/* Which of the block's elements from `start` on are the part's; a scalar if it has one. */
static ax_value is_part(const local_part *p, const int64_t *sizes) {
  ax_value all = ax_poison;
  for (uint32_t d = 0; d < p->rank && !ax_failed(); d++) {
    if (!is_cut(p, d)) continue;
    ax_value at = ax_sub(p->start[d], p->part[d]);
    if (!p->one) at = ax_add(ax_iota(AX_S64, AX_LIST(p->rank, p->sizes), d), at);
    const ax_value inside = ax_and(ax_ge(at, ax_integer(0)), ax_lt(at, ax_integer(sizes[d])));
    all = all.trace == 0 ? inside : ax_and(all, inside);
  }
  return all;
}

/* x moved towards the front along the cut dimensions, by `by` of each, to an array of `sizes`; `fill` comes in from outside. */
static ax_value moved(const local_part *p, ax_value x, ax_value fill, const ax_value *by, const int64_t *sizes) {
  const ax_type type = ax_typeof(x);
  int64_t wide[AX_MAX_RANK] = {0}, none[AX_MAX_RANK] = {0};
  ax_value starts[AX_MAX_RANK];
  if (ax_failed()) return ax_poison;
  for (uint32_t d = 0; d < p->rank; d++) {
    const bool cut = is_cut(p, d);
    wide[d] = cut ? sizes[d] : 0;
    starts[d] = cut ? clamped_to(ax_add(by[d], ax_integer(sizes[d])), type.dims[d] + sizes[d]) : ax_integer(0);
  }
  return ax_dynamic_slice(ax_pad(x, fill, wide, wide, none), starts, sizes);
}

/* The part's elements. In the place of those that other devices have stands what changes no number it is added to. */
static void slice_block(const ax_block_args *args) {
  const ax_type *block = &args->blocks[0];
  const local_part p = part_here(args, args->in + 1, block->dims);
  const ax_value y = ax_failed() ? ax_poison : ax_dynamic_slice(args->in[0], p.start, p.sizes);
  ax_value by[AX_MAX_RANK];
  args->out[0] = y;
  if (p.cut == 0 || ax_failed()) return;
  const ax_literal not_here = ax_not_picked(block->dtype);
  const ax_value zero = ax_failed() ? ax_poison : ax_constant(&not_here.type, not_here.data);
  if (p.one) {
    args->out[0] = ax_where(is_part(&p, block->dims), y, zero);
    return;
  }
  for (uint32_t d = 0; d < p.rank; d++) by[d] = ax_sub(p.part[d], p.start[d]);
  args->out[0] = moved(&p, y, zero, by, block->dims);
}

static void update_block(const ax_block_args *args) {
  const ax_type update = ax_typeof(args->in[1]);
  const local_part p = part_here(args, args->in + 2, update.dims);
  ax_value made = args->in[1], by[AX_MAX_RANK];
  if (p.cut != 0 && !ax_failed()) {
    for (uint32_t d = 0; d < p.rank; d++) by[d] = ax_sub(p.start[d], p.part[d]);
    if (!p.one) made = moved(&p, made, ax_full(update.dtype, AX_DIMS(), 0), by, p.sizes);
    made = ax_where(is_part(&p, update.dims), made, ax_dynamic_slice(args->in[0], p.start, p.sizes));
  }
  args->out[0] = ax_failed() ? ax_poison : ax_dynamic_update_slice(args->in[0], made, p.start);
}

/* --- eval --- */

static int64_t clamped(const ax_tensor *start, int64_t limit) {
  ax_number number = ax_number_load(start->dtype, start->data, 0);
  if (ax_dtype_get(start->dtype)->kind == AX_KIND_UNSIGNED)
    return number.u > (uint64_t)limit ? limit : (int64_t)number.u;
  return number.i < 0 ? 0 : number.i > limit ? limit : number.i;
}

/* x's elements from the starts on. */
static ax_strided part_of(const ax_tensor *x, const int64_t *sizes, ax_tensor *const *starts) {
  ax_strided part = ax_strided_dense(x);
  for (uint32_t d = 0; d < x->rank; d++) part.offset += clamped(starts[d], x->dims[d] - sizes[d]) * part.strides[d];
  return part;
}

static ax_status slice_eval(const ax_eval_args *args) {
  const ax_tensor *out = args->out[0];
  ax_strided to = ax_strided_dense(out), from = part_of(args->in[0], out->dims, args->in + 1);
  ax_strided_copy(out->rank, out->dims, ax_dtype_bytes(out->dtype), &to, &from);
  return AX_OK;
}

static ax_status update_eval(const ax_eval_args *args) {
  const ax_tensor *update = args->in[1], *out = args->out[0];
  ax_tensor_assign(args->out[0], args->in[0]);
  ax_strided to = part_of(out, update->dims, args->in + 2), from = ax_strided_dense(update);
  ax_strided_copy(update->rank, update->dims, ax_dtype_bytes(out->dtype), &to, &from);
  return AX_OK;
}

/* --- jvp: the same on the tangents, at the same starts --- */

static void slice_jvp(const ax_jvp_args *args) {
  const ax_eqn *eqn = args->eqn;
  const int64_t *sizes = ((const dynamic_slice_params *)eqn->params)->slice_sizes.v;
  args->out[0] = ax_dynamic_slice(args->in[0], args->in + 1, sizes);
  args->tangent_out[0] =
      ax_is_zero(args->tangent_in[0]) ? ax_zero : ax_dynamic_slice(args->tangent_in[0], args->in + 1, sizes);
}

static void update_jvp(const ax_jvp_args *args) {
  args->out[0] = ax_dynamic_update_slice(args->in[0], args->in[1], args->in + 2);
  args->tangent_out[0] = ax_zero;
  if (ax_is_zero(args->tangent_in[0]) && ax_is_zero(args->tangent_in[1])) return;
  args->tangent_out[0] = ax_dynamic_update_slice(ax_instantiate(args->tangent_in[0], args->in[0]),
                                                 ax_instantiate(args->tangent_in[1], args->in[1]), args->in + 2);
}

/* --- transpose --- */

static void slice_transpose(const ax_transpose_args *args) {
  if (args->linear[0] && !ax_is_zero(args->sum)) {
    const int64_t *sizes = ((const dynamic_slice_params *)args->eqn->params)->slice_sizes.v;
    ax_value part = ax_add_any(ax_dynamic_slice(args->sum, args->in + 1, sizes), args->cotangent[0]);
    args->out[0] = ax_dynamic_update_slice(args->sum, part, args->in + 1);
    *args->summed = true;
  } else if (args->linear[0])
    args->out[0] = ax_dynamic_update_slice(ax_zero_cotangent(&args->in_types[0]), args->cotangent[0], args->in + 1);
}

static void update_transpose(const ax_transpose_args *args) {
  const ax_type *update = &args->in_types[1];
  /* the part is read before it is overwritten, so that the second can be done in place */
  if (args->linear[1]) args->out[1] = ax_dynamic_slice(args->cotangent[0], args->in + 2, update->dims);
  if (args->linear[0]) args->out[0] = ax_dynamic_update_slice(args->cotangent[0], ax_zero_cotangent(update), args->in + 2);
}

/* --- batch --- */

static bool any_batched(const ax_batch_args *args, uint32_t first) {
  for (uint32_t i = first; i < args->eqn->in_count; i++)
    if (args->in_dim[i] >= 0) return true;
  return false;
}

/* Windows at the starts of each batch element: those along dimensions where they can be anywhere but at 0. `first`: the first
   start's number.
   Without any such: at->map is empty. */
static ax_value batched_starts(const ax_batch_args *args, uint32_t first, const int64_t *dims, const int64_t *sizes,
                               ax_indexing *at) {
  const uint32_t rank = args->eqn->in_count - first;
  ax_value columns[AX_MAX_RANK];
  *at = (ax_indexing){.mode = "clip"};
  for (uint32_t d = 0; d < rank; d++) {
    const uint32_t i = first + d;
    at->window.v[at->window.count++] = d + 1;
    if (sizes[d] == dims[d]) continue;
    columns[at->map.count] =
        args->in_dim[i] >= 0 ? ax_expand_dims(args->in[i], 1) : ax_broadcast_to(args->in[i], AX_DIMS(args->size, 1));
    at->map.v[at->map.count++] = d;
  }
  return at->map.count > 0 ? ax_concatenate(AX_LIST(at->map.count, columns), 1) : ax_poison;
}

/* The same over an operand with a batch dimension in front. */
static void batch_operand(ax_indexing *at) {
  for (uint32_t i = 0; i < at->map.count; i++) at->map.v[i]++;
  at->batching = at->index_batching = (ax_dims){1, {0}};
}

/* The starts, with a 0 for a new dimension. */
static void starts_with(const ax_batch_args *args, uint32_t first, uint32_t dim, ax_value *starts) {
  uint32_t count = args->eqn->in_count - first;
  for (uint32_t i = 0; i < count; i++) starts[i + (i >= dim)] = args->in[first + i];
  starts[dim] = ax_full(count > 0 ? ax_typeof(args->in[first]).dtype : AX_S32, AX_DIMS(), 0);
}

static ax_value slices_at(const ax_batch_args *args, const ax_dims *slice_sizes) {
  ax_type x = ax_typeof(args->in[0]);
  ax_value operand = args->in[0];
  ax_dims sizes = *slice_sizes;
  ax_indexing at;
  if (args->in_dim[0] >= 0) {
    operand = ax_move_dim(operand, args->in_dim[0], 0);
    x = ax_typeof(operand);
    memmove(x.dims, x.dims + 1, --x.rank * sizeof x.dims[0]);
  }
  if (ax_failed()) return ax_poison;
  ax_value indices = batched_starts(args, 1, x.dims, sizes.v, &at);
  if (at.map.count == 0) return ax_batch_front(args->in[0], args->in_dim[0], args->size);
  if (args->in_dim[0] >= 0) {
    batch_operand(&at);
    if (!ax_dims_insert(args->eqn->prim, &sizes, 0, args->size > 0)) return ax_poison;
  }
  return ax_gather_of(operand, indices, &at, sizes.v);
}

/* The batch dimension stays where it is, so that nothing is moved. */
static void slice_batch(const ax_batch_args *args) {
  dynamic_slice_params p = *(const dynamic_slice_params *)args->eqn->params;
  ax_value starts[AX_MAX_RANK + 1];
  if (any_batched(args, 1)) {
    args->out[0] = slices_at(args, &p.slice_sizes);
    return;
  }
  const uint32_t at = (uint32_t)args->in_dim[0];
  if (!ax_dims_insert(args->eqn->prim, &p.slice_sizes, at, args->size)) return;
  starts_with(args, 1, at, starts);
  args->out[0] = ax_dynamic_slice(args->in[0], starts, p.slice_sizes.v);
  args->out_dim[0] = args->in_dim[0];
}

/* Each batch element has a window of its own: they do not overlap. */
static ax_value update_at(const ax_batch_args *args) {
  ax_value x = ax_batch_front(args->in[0], args->in_dim[0], args->size),
           updates = ax_batch_front(args->in[1], args->in_dim[1], args->size);
  const ax_type types[] = {ax_typeof(x), ax_typeof(updates)};
  ax_indexing at;
  if (ax_failed()) return ax_poison;
  ax_value indices = batched_starts(args, 2, types[0].dims + 1, types[1].dims + 1, &at);
  if (at.map.count == 0) return updates;
  batch_operand(&at);
  at.unique = true;
  return ax_scatter_of(x, indices, updates, &at);
}

static void update_batch(const ax_batch_args *args) {
  ax_value starts[AX_MAX_RANK + 1];
  if (args->size == 0) {
    args->out[0] = ax_batch_front(args->in[0], args->in_dim[0], 0);
    return;
  }
  if (any_batched(args, 2)) {
    args->out[0] = update_at(args);
    return;
  }
  starts_with(args, 2, 0, starts);
  ax_value x = ax_batch_front(args->in[0], args->in_dim[0], args->size);
  ax_value update = ax_batch_front(args->in[1], args->in_dim[1], args->size);
  args->out[0] = ax_dynamic_update_slice(x, update, starts);
}

/* --- lower --- */

/* A start that is a constant, clamped: code then serves it wherever it is (assemble/moved.c). */
static bool known_start(ax_lower *lower, uint32_t start, int64_t limit, int64_t *out) {
  const ax_tensor number = {.dtype = ax_lower_type(lower, start)->dtype, .data = out};
  if (!ax_lower_constant(ax_lower_get(lower, start), out)) return false;
  *out = clamped(&number, limit);
  return true;
}

/* In the kernel being built: positions of x that begin at the starts. An s64 is needed; a u64 above it is clamped first. */
static void at_starts(ax_lower *lower, const ax_type *x, const int64_t *sizes, const uint32_t *starts, uint32_t count, ax_position *at) {
  ax_at_identity(at, x->rank);
  for (uint32_t d = 0; d < count; d++) {
    ax_dtype dtype = ax_lower_type(lower, starts[d])->dtype;
    ax_loop_kernel *kernel = lower->kernel;
    if (known_start(lower, starts[d], x->dims[d] - sizes[d], &at[d].offset)) continue;
    ax_ex start = ax_lower_load_scalar(lower, starts[d]);
    at[d].limit = x->dims[d] - sizes[d];
    if (dtype == AX_U64)
      start = ax_kernel_op(kernel, AX_SCALAR_MIN, AX_U64, start, ax_kernel_const(kernel, AX_U64, at[d].limit), AX_NONE);
    if (dtype != AX_S64) start = ax_kernel_op(kernel, AX_SCALAR_CONVERT, AX_S64, start, AX_NONE, AX_NONE);
    at[d].dynamic = start;
  }
}

/* y = x[starts..]. Dimensions behind those that have starts are whole. */
static ax_status slice_of(ax_lower *lower, uint32_t x, const uint32_t *starts, uint32_t start_count, uint32_t y) {
  const ax_type from_type = *ax_lower_type(lower, x), to_type = *ax_lower_type(lower, y);
  ax_position from[AX_MAX_RANK], to[AX_MAX_RANK];
  AX_TRY(ax_lower_kernel_begin(lower, to_type.rank, 0, to_type.dims));
  at_starts(lower, &from_type, to_type.dims, starts, start_count, from);
  ax_at_identity(to, to_type.rank);
  ax_lower_store(lower, y, to, ax_lower_load(lower, x, from), AX_SCALAR_NONE);
  return ax_lower_kernel_end(lower);
}

/* x[starts..] = update, likewise. */
static ax_status update_of(ax_lower *lower, uint32_t x, const uint32_t *starts, uint32_t start_count, uint32_t update) {
  const ax_type to_type = *ax_lower_type(lower, x), from_type = *ax_lower_type(lower, update);
  ax_position from[AX_MAX_RANK], to[AX_MAX_RANK];
  AX_TRY(ax_lower_kernel_begin(lower, from_type.rank, 0, from_type.dims));
  at_starts(lower, &to_type, from_type.dims, starts, start_count, to);
  ax_at_identity(from, from_type.rank);
  ax_lower_store(lower, x, to, ax_lower_load(lower, update, from), AX_SCALAR_NONE);
  return ax_lower_kernel_end(lower);
}

static ax_status slice_lower(ax_lower *lower, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  AX_TRY(ax_lower_result(lower, eqn, 0, &out[0]));
  return slice_of(lower, in[0], in + 1, eqn->in_count - 1, out[0]);
}

static ax_status update_lower(ax_lower *lower, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  AX_TRY(ax_lower_result(lower, eqn, 0, &out[0]));
  AX_TRY(ax_lower_copy(lower, out[0], in[0]));
  return update_of(lower, out[0], in + 2, eqn->in_count - 2, in[1]);
}

/* Complex arrays that are in memory: pairs are moved, as many as are taken or overwritten. */
static bool moves_pairs(const ax_lower *lower, const ax_eqn *eqn, uint32_t x) {
  return lower->program->types[eqn->in[0]].rank < AX_MAX_RANK && !ax_lower_has_parts(lower, x);
}

static ax_status slice_complex(ax_lower *lower, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  ax_type pairs;
  uint32_t x, y;
  if (!moves_pairs(lower, eqn, in[0])) return ax_complex_parts(lower, eqn, in, out);
  AX_TRY(ax_lower_result(lower, eqn, 0, &out[0]));
  AX_TRY(ax_lower_as_pairs(lower, in[0], &pairs, &x));
  AX_TRY(ax_lower_as_pairs(lower, out[0], &pairs, &y));
  return slice_of(lower, x, in + 1, eqn->in_count - 1, y);
}

static ax_status update_complex(ax_lower *lower, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  ax_type pairs;
  uint32_t x, update;
  if (!moves_pairs(lower, eqn, in[0])) return ax_complex_parts(lower, eqn, in, out);
  AX_TRY(ax_lower_result(lower, eqn, 0, &out[0]));
  AX_TRY(ax_lower_copy(lower, out[0], in[0]));
  AX_TRY(ax_lower_as_pairs(lower, out[0], &pairs, &x));
  AX_TRY(ax_lower_as_pairs(lower, in[1], &pairs, &update));
  return update_of(lower, x, in + 2, eqn->in_count - 2, update);
}

/* --- The records --- */

static const ax_param slice_params[] = {{"slice_sizes", AX_PARAM_DIMS, offsetof(dynamic_slice_params, slice_sizes)}};

static const ax_hlo_form slice_form = {.op = "stablehlo.dynamic_slice", .fields = AX_HLO_FIELDS({"slice_sizes", "slice_sizes"})};
static const ax_hlo_form update_form = {.op = "stablehlo.dynamic_update_slice"};

const ax_prim ax_prim_dynamic_slice = {
    .name = "dynamic_slice", .kind = AX_LOCAL, .in_count = -1, .out_count = 1,
    AX_PARAMS(slice_params, dynamic_slice_params),
    .linear = AX_LINEAR_FIRST, .kinds = AX_KINDS_ALL,
    .infer = slice_infer, .spread = ax_spread_local, .eval = slice_eval, .differs = ax_differs_union,
    .jvp = slice_jvp, .linearize = slice_jvp,
    .transpose = slice_transpose, .batch = slice_batch,
    .simplify = ax_simplify_nothing, .shard = shard, .block = slice_block, .lower = slice_lower,
    .complex = slice_complex, .keys = ax_keys_words, .form = &slice_form, .hlo = ax_hlo_by_form,
};

const ax_prim ax_prim_dynamic_update_slice = {
    .name = "dynamic_update_slice", .kind = AX_LOCAL, .in_count = -1, .out_count = 1,
    .linear = AX_LINEAR_FIRST_TWO, .kinds = AX_KINDS_ALL,
    .infer = update_infer, .spread = ax_spread_local, .eval = update_eval, .differs = ax_differs_union,
    .jvp = update_jvp, .linearize = update_jvp,
    .transpose = update_transpose, .batch = update_batch,
    .simplify = ax_simplify_nothing, .shard = shard, .block = update_block, .lower = update_lower,
    .complex = update_complex, .keys = ax_keys_words, .form = &update_form, .hlo = ax_hlo_by_form,
};

static bool take_starts(const ax_prim *prim, const ax_value *starts, uint32_t count, ax_value *in) {
  if (count > 0 && starts == NULL) {
    ax_reject(prim, "no starts are given for rank %u", count);
    return false;
  }
  ax_dtype dtype = AX_S32; /* of starts that are numbers */
  for (uint32_t d = 0; d < count; d++)
    if (!ax_is_number(starts[d])) dtype = ax_typeof(starts[d]).dtype;
  for (uint32_t d = 0; d < count; d++) in[d] = ax_as(prim->name, starts[d], dtype);
  return !ax_failed();
}

ax_value (ax_dynamic_slice)(ax_value x, uint32_t start_count, const ax_value *starts, uint32_t size_count, const int64_t *sizes) {
  dynamic_slice_params p;
  uint32_t rank = ax_typeof(x).rank;
  ax_value in[1 + AX_MAX_RANK] = {x};
  if (ax_failed() || !ax_list_fits("dynamic_slice", "the array has", "dimension", start_count, rank) ||
      !ax_list_fits("dynamic_slice", "the array has", "dimension", size_count, rank) ||
      !ax_dims_take(&ax_prim_dynamic_slice, rank, sizes, &p.slice_sizes) ||
      !take_starts(&ax_prim_dynamic_slice, starts, rank, in + 1))
    return ax_poison;
  return ax_bind1(&ax_prim_dynamic_slice, &p, in, 1 + rank);
}

ax_value (ax_dynamic_update_slice)(ax_value x, ax_value update, uint32_t start_count, const ax_value *starts) {
  uint32_t rank = ax_typeof(x).rank;
  ax_value in[2 + AX_MAX_RANK] = {x, update};
  if (ax_failed() || !ax_list_fits("dynamic_update_slice", "the array has", "dimension", start_count, rank) ||
      !take_starts(&ax_prim_dynamic_update_slice, starts, rank, in + 2)) return ax_poison;
  return ax_bind1(&ax_prim_dynamic_update_slice, NULL, in, 2 + rank);
}
