/* Bits of a state that goes on, as XLA's RngBitGenerator expands them: Threefry2x32 and Philox4x32 of consecutive counts. A state is two
   numbers of 64 bits, a key and a count. Philox counts in 128 bits: a state of three numbers has their upper half, too; where there are two
   it begins as the key.
   J. Salmon, M. Moraes, R. Dror and D. Shaw, Parallel random numbers: as easy as 1, 2, 3 (2011). */
#include "axle/random.h"
#include "ir/dtype.h"
#include "prim/composite.h"

typedef struct generator {
  ax_value key, count, upper; /* u64; upper: of Philox's count */
  ax_dtype dtype;      /* of results */
  ax_dims shape;
  int64_t elems;
} generator;

static ax_value low_word(ax_value x) { return ax_convert_element_type(x, AX_U32); }
static ax_value high_word(ax_value x) { return ax_convert_element_type(ax_shift_right_logical(x, ax_integer(32)), AX_U32); }
static ax_value joined(ax_value low, ax_value high) {
  const ax_value above = ax_shift_left(ax_convert_element_type(high, AX_U64), ax_integer(32));
  return ax_or(above, ax_convert_element_type(low, AX_U64));
}
static ax_value shaped(ax_value x, const ax_dims *shape) { return (ax_reshape)(x, shape->count, shape->v); }
static ax_value below(int64_t n) { return ax_iota(AX_U64, AX_LIST(1, &n), 0); } /* 0, 1 .. n - 1 */

/* The first `elems` of the parts, one of each in turn, in the generator's shape. */
static ax_value in_turn(const generator *g, const ax_value *parts, uint32_t count, int64_t each) {
  const int64_t all = each * count;
  const ax_value row = ax_reshape((ax_stack)(count, parts, -1), AX_LIST(1, &all));
  return shaped(ax_slice_in_dim(row, 0, g->elems, 1, 0), &g->shape);
}

/* --- Threefry: both words of a count are elements, side by side along the first even dimension, or else along the longest; of u64 they
   are one element --- */

static void threefry(const generator *g, int64_t counts, ax_value *words) {
  const ax_value count = ax_add(below(counts), g->count);
  (ax_threefry2x32)(low_word(g->key), high_word(g->key), low_word(count), high_word(count), 2, words);
}

static uint32_t paired_dimension(const ax_dims *shape) {
  uint32_t longest = 0;
  for (uint32_t d = 0; d < shape->count; d++) {
    if (shape->v[d] % 2 == 0) return d;
    if (shape->v[d] > shape->v[longest]) longest = d;
  }
  return longest;
}

/* -> how many counts were used */
static int64_t threefry_pairs(const generator *g, ax_value *bits) {
  ax_dims half = g->shape, whole = g->shape;
  ax_value words[2];
  if (half.count == 0) half.v[half.count++] = 1;
  const uint32_t d = paired_dimension(&half);
  half.v[d] = (half.v[d] + 1) / 2;
  int64_t counts = 1;
  for (uint32_t i = 0; i < half.count; i++) counts *= half.v[i];
  threefry(g, counts, words);
  for (int k = 0; k < 2; k++) words[k] = shaped(words[k], &half);
  *bits = ax_stack(AX_LIST(2, words), d + 1);
  half.v[d] *= 2;
  *bits = shaped(*bits, &half);
  *bits = g->shape.count == 0 ? shaped(ax_slice_in_dim(*bits, 0, 1, 1, 0), &whole) : ax_slice_in_dim(*bits, 0, whole.v[d], 1, d);
  return counts;
}

static int64_t threefry_bits(const generator *g, ax_value *bits) {
  ax_value words[2];
  if (g->dtype != AX_U64) return threefry_pairs(g, bits);
  threefry(g, g->elems, words);
  *bits = shaped(joined(words[0], words[1]), &g->shape);
  return g->elems;
}

/* --- Philox: the four words of a count are four elements, or two of u64 --- */

static void philox_round(ax_value *x, ax_value key0, ax_value key1) {
  const ax_value first = ax_mul(ax_convert_element_type(x[0], AX_U64), ax_unsigned(0xd2511f53));
  const ax_value second = ax_mul(ax_convert_element_type(x[2], AX_U64), ax_unsigned(0xcd9e8d57));
  const ax_value made[] = {ax_xor(ax_xor(high_word(second), x[1]), key0), low_word(second), ax_xor(ax_xor(high_word(first), x[3]), key1),
                           low_word(first)};
  for (int i = 0; i < 4; i++) x[i] = made[i];
}

/* The upper half of a count behind g's, whose lower half is `low`. */
static ax_value upper_of(const generator *g, ax_value low) {
  return ax_add(ax_convert_element_type(ax_lt(low, g->count), AX_U64), g->upper);
}

static int64_t philox_bits(const generator *g, ax_value *bits) {
  const int64_t words = g->dtype == AX_U64 ? 2 * g->elems : g->elems, counts = (words + 3) / 4;
  const ax_value low = ax_add(below(counts), g->count), high = upper_of(g, low);
  ax_value x[] = {low_word(low), high_word(low), low_word(high), high_word(high)}, key0 = low_word(g->key), key1 = high_word(g->key);
  for (int round = 0; round < 10; round++) {
    philox_round(x, key0, key1);
    key0 = ax_add(key0, ax_unsigned(0x9e3779b9)), key1 = ax_add(key1, ax_unsigned(0xbb67ae85));
  }
  const ax_value wide[] = {joined(x[0], x[1]), joined(x[2], x[3])};
  *bits = g->dtype == AX_U64 ? in_turn(g, wide, 2, counts) : in_turn(g, x, 4, counts);
  return counts;
}

/* --- The function --- */

static const char NAME[] = "rng_bit_generator";

typedef enum form { WORDS, WIDE, LONG } form; /* of a state: u32[4], whose words stand lower ones first; u64[2]; u64[3], of Philox */

static bool find_form(const ax_type *type, ax_rng_algorithm algorithm, form *out) {
  const int64_t count = type->rank == 1 ? type->dims[0] : 0;
  *out = type->dtype == AX_U32 ? WORDS : count == 2 ? WIDE : LONG;
  if (type->dtype == AX_U32) return count == 4;
  return type->dtype == AX_U64 && (count == 2 || (count == 3 && algorithm != AX_RNG_THREE_FRY));
}

static bool take_state(ax_value state, ax_rng_algorithm algorithm, generator *g, form *as) {
  ax_type type;
  if (!ax_operand(NAME, state, &type)) return false;
  if (!find_form(&type, algorithm, as)) {
    ax_reject_as(NAME, "the key is %s; it must be u32[4] or u64[2], or u64[3] of Philox", ax_operand_string(&type));
    return false;
  }
  g->key = *as == WORDS ? joined(ax_at(state, 0, 0), ax_at(state, 1, 0)) : ax_at(state, 0, 0);
  g->count = *as == WORDS ? joined(ax_at(state, 2, 0), ax_at(state, 3, 0)) : ax_at(state, 1, 0);
  g->upper = *as == LONG ? ax_at(state, 2, 0) : g->key;
  return !ax_failed();
}

static bool take_shape(uint32_t rank, const int64_t *dims, generator *g) {
  g->shape = (ax_dims){.count = rank};
  g->elems = 1;
  if (rank > AX_MAX_RANK || (rank > 0 && dims == NULL)) return ax_reject_as(NAME, "rank %u has no dimensions, or too many", rank), false;
  for (uint32_t d = 0; d < rank; d++) {
    if (dims[d] < 0) return ax_reject_as(NAME, "dimension %u is %lld", d, (long long)dims[d]), false;
    g->shape.v[d] = dims[d];
    g->elems *= dims[d];
  }
  return true;
}

static ax_value next_state(const generator *g, int64_t counts, form as) {
  const ax_value next = ax_add(g->count, ax_integer(counts));
  if (as == WORDS) return ax_stack(AX_LIST(4, ((ax_value[]){low_word(g->key), high_word(g->key), low_word(next), high_word(next)})), 0);
  if (as == WIDE) return ax_stack(AX_LIST(2, ((ax_value[]){g->key, next})), 0);
  return ax_stack(AX_LIST(3, ((ax_value[]){g->key, next, upper_of(g, next)})), 0);
}

void (ax_rng_bit_generator)(ax_value key, ax_dtype dtype, uint32_t rank, const int64_t *dims, ax_rng_algorithm algorithm, uint32_t out_count,
                            ax_value *out) {
  generator g = {.dtype = dtype};
  form as;
  if (!ax_lists_fit(NAME, 0, 0, out_count, 2, out)) return;
  out[0] = out[1] = ax_poison;
  if (dtype != AX_U8 && dtype != AX_U16 && dtype != AX_U32 && dtype != AX_U64)
    ax_reject_as(NAME, "%s is no dtype of bits; it must be u8, u16, u32 or u64", ax_dtype_name(dtype));
  else if (algorithm > AX_RNG_PHILOX) ax_reject_as(NAME, "there is no algorithm %d", (int)algorithm);
  if (ax_failed() || !take_shape(rank, dims, &g) || !take_state(key, algorithm, &g, &as)) return;
  const int64_t counts = algorithm == AX_RNG_THREE_FRY ? threefry_bits(&g, &out[1]) : philox_bits(&g, &out[1]);
  out[0] = next_state(&g, counts, as);
  out[1] = ax_convert_element_type(out[1], dtype);
}
