/* bitcast_convert between any two types: elements as bits, and these as others. Where the primitive has no rule, because one of
   the types is bool, complex or has fewer than 8 bits, both are taken apart into units: unsigned integers as wide as the smaller of
   their parts.

     c128[d]  -> f64[d, 2]  -> u32[d, 4]   -> f32[d, 2, 2]  -> c64[d, 2]
     bool[64] ->               bool[1, 64] -> u64[1]        -> f64[]      */
#include "bridge/readers.h"

#include <string.h>

#include "axle/ops.h"
#include "ir/dtype.h"
#include "prim/bind.h"

static uint32_t bits_of(ax_dtype dtype) { return dtype == AX_BOOL ? 1 : ax_dtype_get(dtype)->bits; }
static uint32_t part_bits(ax_dtype dtype) { return bits_of(ax_is_complex(dtype) ? ax_part_dtype(dtype) : dtype); }

static ax_dtype unsigned_of(uint32_t bits) {
  if (bits == 1) return AX_BOOL;
  for (uint32_t d = AX_NO_DTYPE + 1; d < AX_DTYPE_COUNT; d++)
    if (ax_dtype_get((ax_dtype)d)->kind == AX_KIND_UNSIGNED && ax_dtype_get((ax_dtype)d)->bits == bits) return (ax_dtype)d;
  return AX_NO_DTYPE;
}

/* The type's dimensions and one more. */
static ax_dims with_last(const ax_type *type, int64_t last) {
  ax_dims dims = {.count = type->rank + 1};
  memcpy(dims.v, type->dims, type->rank * sizeof dims.v[0]);
  dims.v[type->rank] = last;
  return dims;
}

static ax_value broadcast_last(ax_value x, const ax_type *type, int64_t last) {
  int64_t at[AX_MAX_RANK];
  const ax_dims dims = with_last(type, last);
  for (uint32_t d = 0; d < type->rank; d++) at[d] = d;
  return (ax_broadcast_in_dim)(x, AX_LIST(dims.count, dims.v), AX_LIST(type->rank, at));
}

static ax_value places(ax_dtype dtype, const ax_type *type, int64_t count, uint32_t bits) {
  const ax_dims dims = with_last(type, count);
  return ax_mul((ax_iota)(dtype, AX_LIST(dims.count, dims.v), type->rank), ax_integer(bits));
}

/* T[d..] -> units[d.., n]: unsigned integers of `bits` bits, or bool; the lowest first. */
static ax_value take_apart(ax_value x, uint32_t bits) {
  ax_type type = ax_typeof(x);
  const uint32_t whole = bits_of(type.dtype), count = whole / bits;
  if (ax_is_complex(type.dtype)) {
    const ax_value parts[] = {ax_real_part(x), ax_imag_part(x)};
    return take_apart((ax_stack)(2, parts, type.rank), bits);
  }
  if (type.dtype == AX_BOOL) return ax_expand_dims(x, type.rank);
  x = ax_bitcast_convert_type(x, unsigned_of(whole));
  if (count == 1) return ax_expand_dims(x, type.rank);
  if (bits >= 8) return ax_bitcast_convert_type(x, unsigned_of(bits));
  if (whole < 8) x = ax_convert_element_type(x, AX_U8);
  type = ax_typeof(x);
  const ax_value each = broadcast_last(x, &type, count), by = places(type.dtype, &type, count, bits);
  const ax_value unit = ax_and(ax_shift_right_logical(each, by), ax_integer((1 << bits) - 1));
  return bits == 1 ? ax_ne(unit, ax_zero_like(unit)) : ax_convert_element_type(unit, unsigned_of(bits));
}

/* units[d.., n] -> T[d..] of a real dtype as wide as n units. */
static ax_value put_together(ax_value x, uint32_t bits, ax_dtype to) {
  const ax_type type = ax_typeof(x);
  const uint32_t whole = bits_of(to), last = type.rank - 1;
  const int64_t axis[] = {last};
  if (whole == bits) x = ax_reshape(x, AX_LIST(last, type.dims));
  else if (bits >= 8) x = ax_bitcast_convert_type(x, unsigned_of(whole));
  if (whole == bits || bits >= 8) return to == AX_BOOL ? x : ax_bitcast_convert_type(x, to);
  const ax_dtype sum = unsigned_of(whole < 8 ? 8 : whole);
  const ax_type element = ax_array_type(sum, AX_LIST(last, type.dims));
  const ax_value by = places(sum, &element, type.dims[last], bits);
  const ax_value placed = ax_shift_left(ax_convert_element_type(x, sum), by);
  const ax_value made = (ax_reduce_or)(placed, AX_LIST(1, axis), false);
  return ax_bitcast_convert_type(ax_convert_element_type(made, unsigned_of(whole)), to);
}

/* units[d.., n] -> T[d..], T complex. */
static ax_value put_complex(ax_value x, uint32_t bits, const ax_type *to) {
  const ax_dtype part = ax_part_dtype(to->dtype);
  ax_dims dims = with_last(to, 2);
  if (dims.count == AX_MAX_RANK) return ax_reject_as("bitcast_convert", "the rank would exceed %d", AX_MAX_RANK);
  dims.v[dims.count++] = bits_of(part) / bits;
  const ax_value parts = put_together((ax_reshape)(x, AX_LIST(dims.count, dims.v)), bits, part);
  const ax_value re = ax_at(parts, 0, to->rank), im = ax_at(parts, 1, to->rank);
  return ax_complex(re, im);
}

static bool is_direct(ax_dtype from, ax_dtype to) {
  const bool plain = from != AX_BOOL && to != AX_BOOL && !ax_is_complex(from) && !ax_is_complex(to);
  return from == to || (plain && (bits_of(from) == bits_of(to) || (bits_of(from) >= 8 && bits_of(to) >= 8)));
}

/* The number of elements that bits make; 0: too many to count. */
static int64_t bits_in(const ax_type *type) {
  int64_t bits;
  return __builtin_mul_overflow(ax_type_elems(type), (int64_t)bits_of(type->dtype), &bits) ? 0 : bits;
}

static ax_status bitcast_read(const ax_hlo_read_args *args) {
  const ax_type *to = &args->out_types[0];
  if (args->op->operand_count != 1) return ax_error(AX_INVALID_ARGUMENT, "it takes one operand");
  const ax_type from = ax_typeof(args->in[0]);
  if (is_direct(from.dtype, to->dtype)) {
    args->out[0] = ax_bitcast_convert_type(args->in[0], to->dtype);
    return AX_OK;
  }
  const uint32_t bits = part_bits(from.dtype) < part_bits(to->dtype) ? part_bits(from.dtype) : part_bits(to->dtype);
  const uint32_t common = from.rank < to->rank ? from.rank : to->rank;
  if (bits_in(&from) != bits_in(to) || memcmp(from.dims, to->dims, common * sizeof from.dims[0]) != 0)
    return ax_error(AX_INVALID_ARGUMENT, "the bits of %s are not those of %s", ax_type_string(&from, NULL), ax_type_string(to, NULL));
  if (to->rank == AX_MAX_RANK) return ax_error(AX_ABSENT, "the rank would exceed %d", AX_MAX_RANK);
  const ax_dims dims = with_last(to, bits_of(to->dtype) / bits);
  const ax_value units = (ax_reshape)(take_apart(args->in[0], bits), AX_LIST(dims.count, dims.v));
  args->out[0] = ax_is_complex(to->dtype) ? put_complex(units, bits, to) : put_together(units, bits, to->dtype);
  return AX_OK;
}

const ax_hlo_reader ax_hlo_bits_readers[] = {{"stablehlo.bitcast_convert", bitcast_read}, {0}};
