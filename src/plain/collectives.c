/* Collectives as programs of other collectives.

     pbroadcast   a psum of integers: the source's bits, and zeros of the others. Every bit pattern arrives as it is, also that of a NaN or
                  of -0; it costs what a psum of the array does
     psum, ..     in a dtype that the device can combine: s8 and u8 for integers of fewer bits; f32 for narrow floats, rounded once at the
                  end, which is what the primitives say
     all_gather, all_to_all, ppermute
                  of integers of two bits, which move as bytes; where nothing comes by a ppermute of f8e8m0fnu, which has no 0, the least
                  number is, as its bits are 0
     ragged_all_to_all
                  the operands go round a ring of the members, each of which takes the rows that are for it: n - 1 rounds for n members, in
                  each of which a device passes on one operand with its tables. It sends as many bytes as all_gather does, and holds two
                  operands instead of n */
#include "axle/random.h"
#include "collectives/collective.h"
#include "collectives/ragged.h"
#include "plain/rules.h"
#include "prim/bind.h"
#include "prim/prims.h"

/* This member's number in its group. */
static ax_value own_number(const ax_axes *axes) {
  ax_axes all = *axes;
  all.groups = (ax_groups){0};
  const int64_t members = ax_axes_members(&all);
  const ax_value place = ax_bind1(&ax_prim_axis_index, &all, NULL, 0);
  const ax_type type = ax_array_type(AX_S32, AX_DIMS(members));
  uint32_t *number = ax_trace_alloc((size_t)members * sizeof number[0]);
  if (axes->groups.count == 0 || number == NULL) return place;
  ax_groups_numbers(&axes->groups, NULL, number);
  return ax_dynamic_at(ax_constant(&type, number), place, 0);
}

/* --- pbroadcast --- */

typedef struct source {
  const ax_axes *axes;
  ax_value here; /* bool: this device is the source */
} source;

/* The dtype whose numbers have the bits of the float's, or their own; integers of less than a byte become bytes. */
static ax_dtype bits_dtype(ax_dtype dtype) {
  switch (ax_dtype_get(dtype)->bits) {
  case 4: return AX_U4;
  case 8: return AX_U8;
  case 16: return AX_U16;
  case 32: return AX_U32;
  default: return AX_U64;
  }
}

static ax_value from_source(const source *s, ax_value x);

/* As numbers of `wide`, which has all of x. */
static ax_value as_wider(const source *s, ax_value x, ax_dtype wide) {
  const ax_dtype dtype = ax_typeof(x).dtype;
  return ax_convert_element_type(from_source(s, ax_convert_element_type(x, wide)), dtype);
}

static ax_value from_source(const source *s, ax_value x) {
  const ax_dtype dtype = ax_typeof(x).dtype;
  if (ax_failed()) return ax_poison;
  if (ax_is_key(dtype)) return ax_random_wrap_key_data(from_source(s, ax_random_key_data(x)));
  if (ax_is_complex(dtype)) return ax_complex(from_source(s, ax_real_part(x)), from_source(s, ax_imag_part(x)));
  if (dtype == AX_BOOL) return as_wider(s, x, AX_U8);
  if (ax_is_short_integer(dtype)) return as_wider(s, x, ax_multiplied_as(dtype));
  if (ax_dtype_get(dtype)->bits == 6) return as_wider(s, x, AX_BF16); /* no integers have six bits, and these floats no NaN */
  if (ax_is_float(dtype))
    return ax_bitcast_convert_type(from_source(s, ax_bitcast_convert_type(x, bits_dtype(dtype))), dtype);
  const ax_value part = ax_where(s->here, x, ax_full_like(x, 0));
  return ax_bind1(&ax_prim_psum, s->axes, &part, 1);
}

static bool broadcast_applies(const ax_plain_lacks *lacks, const ax_eqn *eqn, const ax_type *in, const ax_type *out) {
  (void)eqn, (void)in, (void)out;
  return lacks->collective_broadcast;
}

static void broadcast(const ax_eqn *eqn, const ax_value *in, ax_value *out) {
  const int64_t *member = ax_plain_parameter(eqn, "source");
  source s = {.axes = eqn->params};
  s.here = ax_eq(own_number(s.axes), ax_integer(*member));
  out[0] = from_source(&s, in[0]);
}

/* --- psum, pmax, pmin, psum_scatter --- */

static bool combine_applies(const ax_plain_lacks *lacks, const ax_eqn *eqn, const ax_type *in, const ax_type *out) {
  (void)out;
  const ax_dtype dtype = in[0].dtype;
  const bool sums = eqn->prim == &ax_prim_psum || eqn->prim == &ax_prim_psum_scatter;
  if (ax_is_short_integer(dtype) || ax_is_byte_float(dtype)) return lacks->byte_combinations;
  return lacks->wide_sums && sums && ax_is_narrow_float(dtype);
}

static void combine(const ax_eqn *eqn, const ax_value *in, ax_value *out) {
  const ax_dtype dtype = ax_typeof(in[0]).dtype, wide = ax_is_short_integer(dtype) ? ax_multiplied_as(dtype) : AX_F32;
  const ax_value x = ax_convert_element_type(ax_own_parts(in[0]), wide);
  out[0] = ax_convert_element_type(ax_bind1(eqn->prim, eqn->params, &x, 1), dtype);
}

/* --- all_gather and its like, all_to_all, ppermute --- */

static bool bits_apply(const ax_plain_lacks *lacks, const ax_eqn *eqn, const ax_type *in, const ax_type *out) {
  (void)eqn, (void)out;
  return lacks->two_bit_moves && ax_is_power(in[0].dtype);
}

static void as_bits(const ax_eqn *eqn, const ax_value *in, ax_value *out) {
  const ax_value x = ax_bitcast_convert_type(in[0], AX_U8);
  out[0] = ax_bitcast_convert_type(ax_bind1(eqn->prim, eqn->params, &x, 1), AX_F8E8M0FNU);
}

/* --- ragged_all_to_all --- */

typedef struct ring {
  const ax_axes *axes;
  ax_pairs next;  /* from each member to the one behind it in its group */
  ax_value me;    /* this member's number in its group */
  int64_t slices; /* for each member */
} ring;

enum { HELD_OPERAND, HELD_TABLES, MADE, CARRIES };

/* s64[slices]: entry `which` of the tables that came along, s64[3, n, slices], of the slices that are for this member. */
static ax_value own_entries(const ring *r, ax_value tables, int64_t which) { return ax_dynamic_at(ax_at(tables, which, 0), r->me, 0); }

/* `output` with the rows of the operand at hand that are for this member. Its slices do not lie on each other there, so that at most one of
   them covers a row: the sum of their distances is that one's. */
static ax_value take_rows(const ring *r, ax_value operand, ax_value tables, ax_value output) {
  const ax_type type = ax_typeof(output);
  if (ax_failed()) return ax_poison;
  const ax_value begin = own_entries(r, tables, 2), size = own_entries(r, tables, 1);
  const ax_value rows = ax_iota(AX_S64, AX_DIMS(type.dims[0]), 0), row = ax_expand_dims(rows, 1);
  const ax_value covers = ax_and(ax_ge(row, begin), ax_lt(row, ax_add(begin, size)));
  const ax_value distance = ax_where(covers, ax_sub(own_entries(r, tables, 0), begin), ax_integer(0));
  const ax_value place = ax_add(rows, ax_reduce_sum(distance, AX_DIMS(1), false)), comes = ax_reduce_or(covers, AX_DIMS(1), false);
  const ax_value taken = ax_take(operand, place, 0); /* clamped where no row comes */
  return ax_where(ax_broadcast_in_dim(comes, AX_LIST(type.rank, type.dims), AX_DIMS(0)), taken, output);
}

static ax_value pass_on(const ring *r, ax_value x) {
  const ax_ppermute_params params = {*r->axes, r->next};
  return ax_bind1(&ax_prim_ppermute, &params, &x, 1);
}

static void next_round(const ax_value *in, ax_value *out, void *context) {
  const ring *r = context;
  out[HELD_OPERAND] = pass_on(r, in[HELD_OPERAND]);
  out[HELD_TABLES] = pass_on(r, in[HELD_TABLES]);
  out[MADE] = take_rows(r, out[HELD_OPERAND], out[HELD_TABLES], in[MADE]);
}

/* s64[3, n, slices]: input offsets, sizes, output offsets. */
static ax_value join_tables(const ax_value *in, int64_t members, int64_t slices) {
  static const uint32_t order[] = {AX_RAGGED_INPUT_OFFSETS, AX_RAGGED_SEND_SIZES, AX_RAGGED_OUTPUT_OFFSETS};
  ax_value tables[3];
  for (size_t i = 0; i < AX_COUNT(tables); i++)
    tables[i] = ax_reshape(ax_convert_element_type(in[order[i]], AX_S64), AX_DIMS(members, slices));
  return ax_stack(AX_LIST(3, tables), 0);
}

static ax_value go_round(const ring *r, int64_t members, const ax_value *in) {
  ax_value carry[CARRIES] = {in[AX_RAGGED_OPERAND], join_tables(in, members, r->slices)};
  carry[MADE] = take_rows(r, carry[HELD_OPERAND], carry[HELD_TABLES], in[AX_RAGGED_OUTPUT]);
  if (members > 1)
    ax_scan(AX_CLOSURE(next_round, CARRIES, CARRIES, r), CARRIES, members - 1, false, AX_LIST(CARRIES, carry), AX_LIST(CARRIES, carry));
  return carry[MADE];
}

/* From each member to the one behind it in its group, all of which are of one size; members are numbered without groups. False: the trace
   has failed. */
static bool link_ring(const ax_groups *groups, uint32_t members, uint32_t size, ax_pairs *out) {
  *out = (ax_pairs){members, ax_trace_alloc(members * sizeof out->v[0])};
  for (uint32_t i = 0; i < members && out->v != NULL; i++) {
    const uint32_t next = i - i % size + (i + 1) % size;
    out->v[i][0] = groups->count > 0 ? groups->member[i] : i;
    out->v[i][1] = groups->count > 0 ? groups->member[next] : next;
  }
  return out->v != NULL;
}

static ax_value exchange_rows(const ax_ragged_params *params, const ax_value *in) {
  const ax_type operand = ax_typeof(in[AX_RAGGED_OPERAND]), output = ax_typeof(in[AX_RAGGED_OUTPUT]),
                table = ax_typeof(in[AX_RAGGED_INPUT_OFFSETS]);
  const ax_groups *groups = &params->axes.groups;
  if (ax_failed()) return ax_poison;
  if (operand.dims[0] == 0 || output.dims[0] == 0) return in[AX_RAGGED_OUTPUT];
  ax_axes axes = params->axes;
  axes.groups = (ax_groups){0};
  const int64_t size = ax_axes_members(&params->axes), members = ax_axes_members(&axes);
  ring r = {.axes = &axes, .slices = table.dims[0] / size};
  if (!link_ring(groups, (uint32_t)members, (uint32_t)size, &r.next)) return ax_poison;
  r.me = own_number(&params->axes);
  return go_round(&r, size, in);
}

static bool ragged_applies(const ax_plain_lacks *lacks, const ax_eqn *eqn, const ax_type *in, const ax_type *out) {
  (void)eqn, (void)in, (void)out;
  return lacks->ragged_all_to_all;
}

/* Forms with a batch, or backwards, are first written as exchanges of rows, which are gone through in their turn. */
static void ragged(const ax_eqn *eqn, const ax_value *in, ax_value *out) {
  const ax_ragged_params *params = eqn->params;
  if (params->batch == 0 && params->local.count == 0 && !params->back) out[0] = exchange_rows(params, in);
  else ax_ragged_written_out(params, in, out);
}

const ax_plain_rule ax_plain_collectives[] = {{.prim = &ax_prim_pbroadcast, .applies = broadcast_applies, .trace = broadcast},
                                              {.prim = &ax_prim_psum, .applies = combine_applies, .trace = combine},
                                              {.prim = &ax_prim_pmax, .applies = combine_applies, .trace = combine},
                                              {.prim = &ax_prim_pmin, .applies = combine_applies, .trace = combine},
                                              {.prim = &ax_prim_psum_scatter, .applies = combine_applies, .trace = combine},
                                              {.prim = &ax_prim_all_gather, .applies = ax_plain_two_bits, .trace = ax_plain_as_bytes},
                                              {.prim = &ax_prim_all_gather_invariant, .applies = ax_plain_two_bits, .trace = ax_plain_as_bytes},
                                              {.prim = &ax_prim_all_gather_reduced, .applies = ax_plain_two_bits, .trace = ax_plain_as_bytes},
                                              {.prim = &ax_prim_all_to_all, .applies = ax_plain_two_bits, .trace = ax_plain_as_bytes},
                                              {.prim = &ax_prim_ppermute, .applies = ax_plain_two_bits, .trace = ax_plain_as_bytes},
                                              {.prim = &ax_prim_ppermute, .applies = bits_apply, .trace = as_bits},
                                              {.prim = &ax_prim_ragged_all_to_all, .applies = ragged_applies, .trace = ragged},
                                              {0}};
