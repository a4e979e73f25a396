/* Readers of CHLO operations that are made of others: those that broadcast their operands first, products of integers of which the
   high half is kept, products of ragged rows, and scans. */
#include "bridge/readers.h"

#include <stdio.h>
#include <string.h>

#include "axle/numpy.h"
#include "axle/ops.h"
#include "ir/dtype.h"
#include "prim/bind.h"
#include "prim/shape.h"

/* --- Operands that are broadcast --- */

/* Where the dimensions of an operand stand in the result: last, unless broadcast_dimensions says so for those with fewer. */
static ax_status places_of(const ax_hlo_read_args *args, uint32_t rank, uint32_t in_result, ax_dims *out) {
  out->count = rank;
  for (uint32_t d = 0; d < rank; d++) out->v[d] = in_result - rank + d;
  if (rank == in_result || ax_hlo_find(args->op, "broadcast_dimensions") == NULL) return AX_OK;
  AX_TRY(ax_hlo_integers(args->op, "broadcast_dimensions", out));
  bool valid = out->count == rank;
  for (uint32_t d = 0; valid && d < rank; d++) valid = out->v[d] >= 0 && out->v[d] < in_result;
  return valid ? AX_OK : ax_error(AX_INVALID_ARGUMENT, "broadcast_dimensions must have a dimension of the result for each of %u", rank);
}

static ax_status add_extents(const ax_type *type, const ax_dims *places, ax_dims *shape) {
  for (uint32_t d = 0; d < type->rank; d++) {
    int64_t *extent = &shape->v[places->v[d]];
    if (*extent == 1) *extent = type->dims[d];
    if (type->dims[d] != 1 && type->dims[d] != *extent)
      return ax_error(AX_INVALID_ARGUMENT, "extents %lld and %lld cannot be broadcast together", (long long)*extent, (long long)type->dims[d]);
  }
  return AX_OK;
}

static ax_hlo_slice behind(const ax_hlo_read_args *args, const char *prefix) {
  return (ax_hlo_slice){args->op->name.start + strlen(prefix), args->op->name.length - strlen(prefix)};
}

/* Reads the operation of this name in a dialect. */
static ax_status read_of(const ax_hlo_read_args *args, const char *dialect, ax_hlo_slice word, const ax_value *in) {
  char name[64];
  snprintf(name, sizeof name, "%s.%.*s", dialect, (int)word.length, word.start);
  return ax_hlo_read_as(args, name, in);
}

/* Reads the operation of the name behind "broadcast_" on the operands of one shape, which holds all of them. */
static ax_status read_on(const ax_hlo_read_args *args, const ax_value *in) {
  static const char *const of_chlo[] = {"next_after", "polygamma", "zeta"};
  const ax_hlo_slice word = behind(args, "chlo.broadcast_");
  bool chlo = false;
  for (size_t i = 0; i < AX_COUNT(of_chlo); i++) chlo = chlo || ax_hlo_slice_is(word, of_chlo[i]);
  return read_of(args, chlo ? "chlo" : "stablehlo", word, in);
}

static ax_status broadcast_read(const ax_hlo_read_args *args) {
  enum { most = 3 };
  const uint32_t count = args->op->operand_count;
  ax_type types[most];
  ax_dims places[most], shape = {0};
  ax_value in[most];
  if (count == 0 || count > most) return ax_error(AX_INVALID_ARGUMENT, "it takes 2 operands, and here are %u", count);
  for (uint32_t i = 0; i < count; i++) {
    types[i] = ax_typeof(args->in[i]);
    if (types[i].rank > shape.count) shape.count = types[i].rank;
  }
  for (uint32_t d = 0; d < shape.count; d++) shape.v[d] = 1;
  for (uint32_t i = 0; i < count; i++) {
    AX_TRY(places_of(args, types[i].rank, shape.count, &places[i]));
    AX_TRY(add_extents(&types[i], &places[i], &shape));
  }
  for (uint32_t i = 0; i < count; i++)
    in[i] = (ax_broadcast_in_dim)(args->in[i], AX_LIST(shape.count, shape.v), AX_LIST(places[i].count, places[i].v));
  return read_on(args, in);
}

/* --- Numbers --- */

static ax_status takes(const ax_hlo_read_args *args, uint32_t count) {
  if (args->op->operand_count == count) return AX_OK;
  return ax_error(AX_INVALID_ARGUMENT, "it takes %u operands, and here are %u", count, args->op->operand_count);
}

static ax_status is_infinite(const ax_hlo_read_args *args, bool positive) {
  AX_TRY(takes(args, 1));
  const ax_value x = args->in[0], finite = ax_is_finite(x), zero = ax_zero_like(x);
  const ax_value sign = positive ? ax_gt(x, zero) : ax_lt(x, zero);
  args->out[0] = ax_and(ax_not(finite), sign);
  return AX_OK;
}
static ax_status is_pos_inf_read(const ax_hlo_read_args *args) { return is_infinite(args, true); }
static ax_status is_neg_inf_read(const ax_hlo_read_args *args) { return is_infinite(args, false); }

/* The integer type with twice the bits. */
static ax_dtype wider(ax_dtype dtype) {
  const ax_dtype_info *info = ax_dtype_get(dtype);
  for (uint32_t d = AX_NO_DTYPE + 1; d < AX_DTYPE_COUNT; d++)
    if (ax_dtype_get((ax_dtype)d)->kind == info->kind && ax_dtype_get((ax_dtype)d)->bits == 2 * info->bits) return (ax_dtype)d;
  return AX_NO_DTYPE;
}

/* Of 64 bits by halves: x = a 2^32 + b, y = c 2^32 + d, and no sum has more than 64 bits. */
static ax_value high_of_halves(ax_value x, ax_value y, bool is_signed) {
  const ax_value half = ax_integer(32), low = ax_integer(0xffffffff);
  const ax_value b = ax_and(x, low), d = ax_and(y, low);
  const ax_value a = is_signed ? ax_shift_right_arithmetic(x, half) : ax_shift_right_logical(x, half);
  const ax_value c = is_signed ? ax_shift_right_arithmetic(y, half) : ax_shift_right_logical(y, half);
  const ax_value bd = ax_mul(b, d), ad = ax_mul(a, d), bc = ax_mul(b, c);
  const ax_value t = ax_add(ad, ax_shift_right_logical(bd, half)), middle = ax_add(bc, ax_and(t, low));
  const ax_value from_t = is_signed ? ax_shift_right_arithmetic(t, half) : ax_shift_right_logical(t, half);
  const ax_value from_middle = is_signed ? ax_shift_right_arithmetic(middle, half) : ax_shift_right_logical(middle, half);
  const ax_value ac = ax_mul(a, c), sum = ax_add(ac, from_t);
  return ax_add(sum, from_middle);
}

static ax_status mulhi_read(const ax_hlo_read_args *args) {
  AX_TRY(takes(args, 2));
  const ax_dtype dtype = ax_typeof(args->in[0]).dtype, wide = wider(dtype);
  const ax_dtype_info *info = ax_dtype_get(dtype);
  const bool is_signed = info->kind == AX_KIND_SIGNED;
  if (!is_signed && info->kind != AX_KIND_UNSIGNED)
    return ax_error(AX_INVALID_ARGUMENT, "it needs integers, not %s", ax_dtype_name(dtype));
  if (info->bits == 64) {
    args->out[0] = high_of_halves(args->in[0], args->in[1], is_signed);
    return AX_OK;
  }
  const ax_value x = ax_convert_element_type(args->in[0], wide), y = ax_convert_element_type(args->in[1], wide);
  const ax_value high = ax_shift_right_logical(ax_mul(x, y), ax_integer(info->bits)); /* what comes in from above is cut off */
  args->out[0] = ax_convert_element_type(high, dtype);
  return AX_OK;
}

/* An array of the operand's shape; the attribute says the element, and its type. */
static ax_status constant_like_read(const ax_hlo_read_args *args) {
  const ax_hlo_attribute *value = ax_hlo_find(args->op, "value");
  const ax_type x = ax_typeof(args->in[0]);
  ax_dtype dtype;
  ax_element number;
  AX_TRY(takes(args, 1));
  if (value == NULL || !ax_hlo_number(value, &dtype, &number))
    return ax_error(AX_INVALID_ARGUMENT, "the attribute value must be a number that its type has");
  const ax_type scalar = ax_array_type(dtype, AX_DIMS());
  const ax_value one = (ax_constant)(&scalar, dtype, &number, ax_dtype_bytes(dtype));
  args->out[0] = (ax_broadcast_in_dim)(one, AX_LIST(x.rank, x.dims), AX_LIST(0, NULL));
  return AX_OK;
}

/* --- ragged_dot: rows of the left operand in groups, one after the other, as long as the third operand says --- */

typedef struct ragged {
  ax_dims lhs_batch, rhs_batch, lhs_contract, rhs_contract, ragged, group;
  ax_dims before; /* dimensions of the left operand at whose places groups have sizes of their own; none: all have the same */
  int64_t groups;
} ragged;

/* Batching dimensions, and those of what is contracted, or of rows, that stand before the ragged one. */
static void find_before(ragged *r) {
  const int64_t at = r->ragged.v[0];
  const bool contracted = ax_dims_has(&r->lhs_contract, at);
  r->before = r->lhs_batch;
  for (uint32_t i = 0; contracted && r->lhs_contract.v[i] != at; i++) r->before.v[r->before.count++] = r->lhs_contract.v[i];
  for (int64_t d = 0; d < at && !contracted; d++)
    if (!ax_dims_has(&r->lhs_contract, d) && !ax_dims_has(&r->lhs_batch, d)) r->before.v[r->before.count++] = d;
}

static ax_status read_ragged(const ax_hlo_read_args *args, ragged *r) {
  const ax_hlo_attribute *numbers = ax_hlo_find(args->op, "ragged_dot_dimension_numbers");
  AX_TRY(takes(args, 3));
  if (numbers == NULL || numbers->kind != AX_HLO_DICTIONARY)
    return ax_error(AX_INVALID_ARGUMENT, "the attribute ragged_dot_dimension_numbers is missing");
  AX_TRY(ax_hlo_item_integers(numbers, "lhs_batching_dimensions", &r->lhs_batch));
  AX_TRY(ax_hlo_item_integers(numbers, "rhs_batching_dimensions", &r->rhs_batch));
  AX_TRY(ax_hlo_item_integers(numbers, "lhs_contracting_dimensions", &r->lhs_contract));
  AX_TRY(ax_hlo_item_integers(numbers, "rhs_contracting_dimensions", &r->rhs_contract));
  AX_TRY(ax_hlo_item_integers(numbers, "lhs_ragged_dimensions", &r->ragged));
  AX_TRY(ax_hlo_item_integers(numbers, "rhs_group_dimensions", &r->group));
  const ax_type lhs = ax_typeof(args->in[0]), rhs = ax_typeof(args->in[1]), sizes = ax_typeof(args->in[2]);
  if (r->ragged.count != 1 || r->ragged.v[0] < 0 || r->ragged.v[0] >= lhs.rank || r->group.count > 1)
    return ax_error(AX_INVALID_ARGUMENT, "the left operand must have one ragged dimension, the right one at most one of groups");
  if (sizes.rank > 1 && !ax_dims_has(&r->lhs_batch, r->ragged.v[0])) find_before(r);
  r->groups = sizes.rank > 0 ? sizes.dims[sizes.rank - 1] : 1;
  if (r->group.count == 1 && (r->group.v[0] < 0 || r->group.v[0] >= rhs.rank || rhs.dims[r->group.v[0]] != r->groups))
    return ax_error(AX_INVALID_ARGUMENT, "the right operand must have as many groups as there are sizes");
  return AX_OK;
}

/* sizes[before.., g] -> [g, before..], the dimensions in the left operand's order; *at: where they stand behind that of the groups. */
static ax_value order_sizes(const ragged *r, ax_value sizes, int64_t *at) {
  int64_t order[AX_MAX_RANK] = {r->before.count};
  uint32_t count = 1;
  at[0] = 0;
  for (int64_t d = 0; d < AX_MAX_RANK; d++)
    for (uint32_t i = 0; i < r->before.count; i++)
      if (r->before.v[i] == d) order[count] = i, at[count++] = d + 1;
  return (ax_transpose)(sizes, AX_LIST(count, order));
}

/* bool[g, d..]: whether the place along the ragged dimension of the left operand belongs to group g. */
static ax_value in_group(const ragged *r, const ax_type *lhs, ax_value sizes) {
  int64_t dims[AX_MAX_RANK + 1] = {r->groups}, at[AX_MAX_RANK + 1];
  const uint32_t count = r->before.count + 1;
  memcpy(dims + 1, lhs->dims, lhs->rank * sizeof dims[0]);
  const ax_value ordered = order_sizes(r, ax_convert_element_type(sizes, AX_S64), at);
  const ax_value ends = ax_cumsum(ordered, 0, false), starts = ax_sub(ends, ordered);
  const ax_value place = (ax_iota)(AX_S64, AX_LIST(lhs->rank + 1, dims), r->ragged.v[0] + 1);
  const ax_value from = (ax_broadcast_in_dim)(starts, AX_LIST(lhs->rank + 1, dims), AX_LIST(count, at));
  const ax_value to = (ax_broadcast_in_dim)(ends, AX_LIST(lhs->rank + 1, dims), AX_LIST(count, at));
  const ax_value behind = ax_ge(place, from), before = ax_lt(place, to);
  return ax_and(behind, before);
}

/* Dimensions of the left operand when that of the groups comes in front. */
static void shift(ax_dims *dims) {
  for (uint32_t i = 0; i < dims->count; i++) dims->v[i]++;
}

/* Groups of rows have a matrix each (the groups are contracted, too), or groups of what is contracted have a product each. */
static ax_status ragged_dot_read(const ax_hlo_read_args *args) {
  ragged r = {0};
  AX_TRY(read_ragged(args, &r));
  const ax_type lhs = ax_typeof(args->in[0]);
  const ax_dtype wanted = args->out_types[0].dtype;
  ax_value x = ax_convert_element_type(args->in[0], wanted);
  const ax_value y = ax_convert_element_type(args->in[1], wanted);
  const bool by_batch = ax_dims_has(&r.lhs_batch, r.ragged.v[0]), contracted = ax_dims_has(&r.lhs_contract, r.ragged.v[0]);
  if (contracted == (r.group.count == 1) && !by_batch)
    return ax_error(AX_INVALID_ARGUMENT, "the right operand has a dimension of groups if rows are ragged, and only then");
  if (lhs.rank == AX_MAX_RANK) return ax_error(AX_ABSENT, "the left operand has too many dimensions");
  if (!by_batch) {
    int64_t dims[AX_MAX_RANK] = {r.groups}, at[AX_MAX_RANK];
    memcpy(dims + 1, lhs.dims, lhs.rank * sizeof dims[0]);
    for (uint32_t d = 0; d < lhs.rank; d++) at[d] = d + 1;
    const ax_value each = (ax_broadcast_in_dim)(x, AX_LIST(lhs.rank + 1, dims), AX_LIST(lhs.rank, at));
    x = ax_where(in_group(&r, &lhs, args->in[2]), each, ax_zero_like(each));
    shift(&r.lhs_batch);
    shift(&r.lhs_contract);
  }
  if (!by_batch && !contracted) {
    r.lhs_contract.v[r.lhs_contract.count++] = 0;
    r.rhs_contract.v[r.rhs_contract.count++] = r.group.v[0];
  }
  const ax_value product =
      (ax_dot_general)(x, y, AX_LIST(r.lhs_contract.count, r.lhs_contract.v), AX_LIST(r.rhs_contract.count, r.rhs_contract.v),
                       AX_LIST(r.lhs_batch.count, r.lhs_batch.v), AX_LIST(r.rhs_batch.count, r.rhs_batch.v));
  args->out[0] = contracted ? ax_moveaxis(product, r.lhs_batch.count, 0) : product;
  return AX_OK;
}

/* --- scan: (slices.., carries..) -> (slices.., carries..) along a dimension --- */

typedef struct step {
  const ax_fn *body;
  uint32_t in_count, carry_count, out_count; /* slices that go in, carries, slices that come out */
} step;

/* (carries.., slices..) -> (carries.., slices..) */
static AX_BODY(run_step) {
  const step *s = context;
  ax_value *turned = ax_trace_alloc((s->in_count + s->carry_count + 1) * sizeof turned[0]);
  ax_value *made = ax_trace_alloc((s->out_count + s->carry_count + 1) * sizeof made[0]);
  if (turned == NULL || made == NULL) return;
  for (uint32_t i = 0; i < s->in_count; i++) turned[i] = in[s->carry_count + i];
  for (uint32_t i = 0; i < s->carry_count; i++) turned[s->in_count + i] = in[i];
  for (uint32_t i = 0; i < s->out_count + s->carry_count; i++) made[i] = ax_poison;
  s->body->function(turned, made, s->body->context);
  for (uint32_t i = 0; i < s->carry_count; i++) out[i] = made[s->out_count + i];
  for (uint32_t i = 0; i < s->out_count; i++) out[s->carry_count + i] = made[i];
}

typedef struct scan_numbers {
  int64_t dimension, length;
  bool reverse;
} scan_numbers;

static ax_status read_scan(const ax_hlo_read_args *args, step *s, scan_numbers *n) {
  const uint32_t count = args->op->operand_count, results = args->op->result_count;
  ax_dims segments;
  AX_TRY(ax_hlo_integers(args->op, "operandSegmentSizes", &segments));
  AX_TRY(ax_hlo_integer(args->op, "dimension", &n->dimension));
  AX_TRY(ax_hlo_bool_or(args->op, "is_reverse", false, &n->reverse));
  AX_TRY(ax_hlo_integer_or(args->op, "scan_dim_size", -1, &n->length));
  if (segments.count != 2 || segments.v[0] < 0 || segments.v[1] < 0 || segments.v[0] > count || segments.v[0] + segments.v[1] != count)
    return ax_error(AX_INVALID_ARGUMENT, "operandSegmentSizes must say how many operands are scanned, and how many are carried");
  s->in_count = (uint32_t)segments.v[0], s->carry_count = (uint32_t)segments.v[1];
  if (results < s->carry_count) return ax_error(AX_INVALID_ARGUMENT, "it has fewer results than carries");
  s->out_count = results - s->carry_count;
  for (uint32_t i = 0; i < s->in_count; i++) {
    const ax_type type = ax_typeof(args->in[i]);
    if (n->dimension < 0 || n->dimension >= type.rank) return ax_error(AX_INVALID_ARGUMENT, "operand %u has no dimension %lld", i, (long long)n->dimension);
    if (n->length < 0) n->length = type.dims[n->dimension];
  }
  return n->length >= 0 ? AX_OK : ax_error(AX_INVALID_ARGUMENT, "nothing says how long the scan is");
}

static ax_status scan_read(const ax_hlo_read_args *args) {
  step s;
  scan_numbers n;
  ax_hlo_body body;
  ax_fn function;
  AX_TRY(read_scan(args, &s, &n));
  const uint32_t ins = s.in_count + s.carry_count, outs = s.out_count + s.carry_count;
  AX_TRY(ax_hlo_body_of(args, 0, outs, &body, &function));
  if (function.in_count != ins) return ax_error(AX_INVALID_ARGUMENT, "the body must take %u values", ins);
  s.body = &function;
  ax_value *in = ax_trace_alloc((ins + 1) * sizeof in[0]), *out = ax_trace_alloc((outs + 1) * sizeof out[0]);
  if (in == NULL || out == NULL) return AX_OK;
  for (uint32_t i = 0; i < s.carry_count; i++) in[i] = args->in[s.in_count + i];
  for (uint32_t i = 0; i < s.in_count; i++) in[s.carry_count + i] = ax_moveaxis(args->in[i], n.dimension, 0);
  for (uint32_t k = 0; k < outs; k++) out[k] = ax_poison;
  (ax_scan)((ax_fn){run_step, ins, outs, &s}, s.carry_count, n.length, n.reverse, ins, in, outs, out);
  for (uint32_t k = 0; k < s.carry_count; k++) args->out[s.out_count + k] = out[k];
  for (uint32_t k = 0; k < s.out_count; k++) args->out[k] = ax_failed() ? ax_poison : ax_moveaxis(out[s.carry_count + k], 0, n.dimension);
  return AX_OK;
}

/* --- MHLO. What XLA writes of its own instructions, as TensorFlow's compiler hands it out, has functions that StableHLO lacks under names of
   this dialect; CHLO has the same ones. --- */

static ax_status mhlo_read(const ax_hlo_read_args *args) {
  const ax_hlo_operation *op = args->op;
  if (op->operand_count != 1 || op->result_count != 1 || op->region_count != 0)
    return ax_error(AX_INVALID_ARGUMENT, "it takes 1 operand and has 1 result and no regions, and here are %u, %u and %u", op->operand_count, op->result_count, op->region_count);
  return read_of(args, "chlo", behind(args, "mhlo."), args->in);
}

const ax_hlo_reader ax_hlo_chlo_readers[] = {
    {"mhlo.acos", mhlo_read},
    {"mhlo.acosh", mhlo_read},
    {"mhlo.asin", mhlo_read},
    {"mhlo.asinh", mhlo_read},
    {"mhlo.atanh", mhlo_read},
    {"mhlo.cosh", mhlo_read},
    {"mhlo.erf", mhlo_read},
    {"mhlo.sinh", mhlo_read},
    {"chlo.broadcast_add", broadcast_read},
    {"chlo.broadcast_and", broadcast_read},
    {"chlo.broadcast_atan2", broadcast_read},
    {"chlo.broadcast_compare", broadcast_read},
    {"chlo.broadcast_complex", broadcast_read},
    {"chlo.broadcast_divide", broadcast_read},
    {"chlo.broadcast_maximum", broadcast_read},
    {"chlo.broadcast_minimum", broadcast_read},
    {"chlo.broadcast_multiply", broadcast_read},
    {"chlo.broadcast_next_after", broadcast_read},
    {"chlo.broadcast_or", broadcast_read},
    {"chlo.broadcast_polygamma", broadcast_read},
    {"chlo.broadcast_power", broadcast_read},
    {"chlo.broadcast_remainder", broadcast_read},
    {"chlo.broadcast_select", broadcast_read},
    {"chlo.broadcast_shift_left", broadcast_read},
    {"chlo.broadcast_shift_right_arithmetic", broadcast_read},
    {"chlo.broadcast_shift_right_logical", broadcast_read},
    {"chlo.broadcast_subtract", broadcast_read},
    {"chlo.broadcast_xor", broadcast_read},
    {"chlo.broadcast_zeta", broadcast_read},
    {"chlo.is_pos_inf", is_pos_inf_read},
    {"chlo.is_neg_inf", is_neg_inf_read},
    {"chlo.mulhi", mulhi_read},
    {"chlo.constant_like", constant_like_read},
    {"chlo.ragged_dot", ragged_dot_read},
    {"chlo.scan", scan_read},
    {0}};
