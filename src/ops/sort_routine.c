/* Sorts row by row. Each element of a row becomes a word: its key, an unsigned number that ascends with the element, in the high
   bits and its place in the low bits. So all words are different and their order is the stable one. Words are sorted by the digits
   of the key, from the lowest to the highest. Digits that are the same in all words are skipped, and short rows are sorted by
   insertion. Of several keys the last is sorted first: each round starts from the places that the previous one found. At the end
   each operand's elements are taken in the order of the places.

   A 64-bit key and a place do not fit one word: their words are pairs.

   Short rows by themselves, whose equal elements cannot be told apart, are sorted by a network, many at a time (sort_network.h). */
#include <string.h>

#include "machine/features.h"
#include "ops/sort.h"
#include "ops/sort_network.h"
#include "plan/lower.h"
#include "plan/plan.h"

typedef struct sorter {
  int64_t extent, inner, rows; /* of the dimension; elements between neighbours along it; rows */
  uint32_t count, keys, parts;
  bool by_network;
  ax_sort_network network;
  ax_dtype dtype[]; /* by operand */
} sorter;

typedef struct pair {
  uint64_t key;
  uint32_t place;
} pair;

enum { digit_bits = 11, digit_values = 1 << digit_bits, few = 24, least_to_count = 512, short_bits = 8 };

/* --- Keys --- */

/* The key of a float, given as the bits of its dtype. Larger numbers have larger keys, both zeros the same, and NaNs the
   largest. */
static uint64_t float_key(uint64_t bits, unsigned width, uint64_t infinity) {
  uint64_t sign = (uint64_t)1 << (width - 1), magnitude = bits & (sign - 1);
  if (magnitude > infinity) return sign | (sign - 1);
  if (magnitude == 0) return sign;
  return bits & sign ? sign - magnitude : sign | bits;
}

/* A byte of any dtype that has one. */
static uint64_t byte_key(ax_dtype dtype, uint8_t byte) {
  const ax_dtype_info *info = ax_dtype_get(dtype);
  const uint8_t bits = (uint8_t)(byte & 0xff >> (8 - info->bits)), sign = (uint8_t)(1 << (info->bits - 1));
  if (info->kind == AX_KIND_BOOL) return byte;
  if (info->kind == AX_KIND_SIGNED) return bits ^ sign;
  if (info->kind == AX_KIND_UNSIGNED || !ax_has_sign(dtype)) return bits; /* NaN is the largest */
  return ax_float_is_nan(dtype, bits) ? 0xff : float_key(bits, info->bits, UINT64_MAX) - 1; /* 1 is the least key */
}

uint64_t ax_sort_key(ax_dtype dtype, const void *data, int64_t at) {
  switch (dtype) {
    case AX_F32: return float_key(((const uint32_t *)data)[at], 32, 0x7f800000);
    case AX_F64: return float_key(((const uint64_t *)data)[at], 64, 0x7ff0000000000000);
    case AX_BF16: return float_key(((const uint16_t *)data)[at], 16, 0x7f80);
    case AX_F16: return float_key(((const uint16_t *)data)[at], 16, 0x7c00);
    case AX_S8: return (uint8_t)(((const uint8_t *)data)[at] ^ 0x80);
    case AX_S16: return (uint16_t)(((const uint16_t *)data)[at] ^ 0x8000);
    case AX_S32: return ((const uint32_t *)data)[at] ^ 0x80000000;
    case AX_S64: return ((const uint64_t *)data)[at] ^ 0x8000000000000000;
    case AX_U16: return ((const uint16_t *)data)[at];
    case AX_U32: return ((const uint32_t *)data)[at];
    case AX_U64: return ((const uint64_t *)data)[at];
    case AX_U8: return ((const uint8_t *)data)[at];
    default: return byte_key(dtype, ((const uint8_t *)data)[at]);
  }
}

/* Bits without a sign ascend with the number, those with one descend. */
static uint64_t total_key(uint64_t bits, unsigned width) {
  const uint64_t sign = (uint64_t)1 << (width - 1);
  return bits & sign ? ~bits & (sign | (sign - 1)) : bits | sign;
}

uint64_t ax_total_key(ax_dtype dtype, const void *data, int64_t at) {
  switch (dtype) {
    case AX_F32: return total_key(((const uint32_t *)data)[at], 32);
    case AX_F64: return total_key(((const uint64_t *)data)[at], 64);
    case AX_BF16:
    case AX_F16: return total_key(((const uint16_t *)data)[at], 16);
    default: return ax_sort_key(dtype, data, at);
  }
}

/* --- Words --- */

static void insert_words(uint64_t *words, int64_t n) {
  for (int64_t i = 1; i < n; i++) {
    uint64_t word = words[i];
    int64_t at = i;
    for (; at > 0 && words[at - 1] > word; at--) words[at] = words[at - 1];
    words[at] = word;
  }
}

/* By the digit at `shift`; false, and nothing is done, where it is the same in all. */
static bool distribute_words(const uint64_t *from, uint64_t *to, int64_t n, unsigned shift, unsigned bits) {
  uint32_t starts[digit_values];
  const uint64_t mask = ((uint64_t)1 << bits) - 1;
  uint32_t sum = 0;
  memset(starts, 0, (mask + 1) * sizeof starts[0]);
  for (int64_t i = 0; i < n; i++) starts[from[i] >> shift & mask]++;
  if (starts[from[0] >> shift & mask] == n) return false;
  for (uint64_t d = 0; d <= mask; d++) {
    uint32_t here = starts[d];
    starts[d] = sum;
    sum += here;
  }
  for (int64_t i = 0; i < n; i++) to[starts[from[i] >> shift & mask]++] = from[i];
  return true;
}

/* Sorts the words and returns the one of the two buffers that then holds them. `width`: bits of a key, above the place's 32. */
static uint64_t *sort_words(uint64_t *words, uint64_t *other, int64_t n, unsigned width) {
  const unsigned bits = n < least_to_count * few ? short_bits : digit_bits;
  if (n <= few) insert_words(words, n);
  for (unsigned shift = 32; n > few && shift < 32 + width; shift += bits) {
    if (!distribute_words(words, other, n, shift, bits)) continue;
    uint64_t *sorted = other;
    other = words;
    words = sorted;
  }
  return words;
}

/* --- Pairs --- */

static bool distribute_pairs(const pair *from, pair *to, int64_t n, unsigned shift) {
  uint32_t starts[1 << short_bits] = {0}, sum = 0;
  for (int64_t i = 0; i < n; i++) starts[from[i].key >> shift & 0xff]++;
  if (starts[from[0].key >> shift & 0xff] == n) return false;
  for (int d = 0; d < 1 << short_bits; d++) {
    uint32_t here = starts[d];
    starts[d] = sum;
    sum += here;
  }
  for (int64_t i = 0; i < n; i++) to[starts[from[i].key >> shift & 0xff]++] = from[i];
  return true;
}

/* Insertion sort, stable: of equal keys the first stays first. */
static void insert_pairs(pair *pairs, int64_t n) {
  for (int64_t i = 1; i < n; i++) {
    pair moved = pairs[i];
    int64_t at = i;
    for (; at > 0 && pairs[at - 1].key > moved.key; at--) pairs[at] = pairs[at - 1];
    pairs[at] = moved;
  }
}

static pair *sort_pairs(pair *pairs, pair *other, int64_t n) {
  if (n <= few) insert_pairs(pairs, n);
  for (unsigned shift = 0; n > few && shift < 64; shift += short_bits) {
    if (!distribute_pairs(pairs, other, n, shift)) continue;
    pair *sorted = other;
    other = pairs;
    pairs = sorted;
  }
  return pairs;
}

/* --- Rows --- */

typedef struct workspace { /* of one row */
  void *first, *second;    /* words or pairs */
  uint32_t *order, *earlier; /* where the elements come from, along the dimension; the second: before the round */
} workspace;

/* One round: `order` gets to ascend by key k. The first round has no order before it. */
static void order_by(const sorter *s, uint32_t k, const void *data, int64_t base, bool begins, workspace *w) {
  const int64_t n = s->extent;
  const unsigned width = 8 * (unsigned)ax_dtype_bytes(s->dtype[k]);
  uint32_t *swap = w->earlier;
  w->earlier = w->order;
  w->order = swap;
  if (width == 64) {
    pair *pairs = w->first;
    for (int64_t i = 0; i < n; i++)
      pairs[i] = (pair){ax_sort_key(s->dtype[k], data, base + (begins ? i : w->earlier[i]) * s->inner), (uint32_t)i};
    pairs = sort_pairs(pairs, w->second, n);
    for (int64_t i = 0; i < n; i++) w->order[i] = begins ? pairs[i].place : w->earlier[pairs[i].place];
    return;
  }
  uint64_t *words = w->first;
  for (int64_t i = 0; i < n; i++)
    words[i] = ax_sort_key(s->dtype[k], data, base + (begins ? i : w->earlier[i]) * s->inner) << 32 | (uint64_t)i;
  words = sort_words(words, w->second, n, width);
  for (int64_t i = 0; i < n; i++) w->order[i] = begins ? (uint32_t)words[i] : w->earlier[(uint32_t)words[i]];
}

static void take_in_order(const sorter *s, const uint32_t *order, const char *from, char *to, size_t bytes) {
  const int64_t n = s->extent, step = s->inner;
  switch (bytes) {
    case 4:
      for (int64_t i = 0; i < n; i++) ((uint32_t *)(void *)to)[i * step] = ((const uint32_t *)(const void *)from)[order[i] * step];
      break;
    case 8:
      for (int64_t i = 0; i < n; i++) ((uint64_t *)(void *)to)[i * step] = ((const uint64_t *)(const void *)from)[order[i] * step];
      break;
    default:
      for (int64_t i = 0; i < n; i++) memcpy(to + i * step * (int64_t)bytes, from + order[i] * step * (int64_t)bytes, bytes);
  }
}

static void sort_row(const sorter *s, void *const *memory, int64_t row, workspace *w) {
  int64_t base = row / s->inner * s->extent * s->inner + row % s->inner;
  for (uint32_t k = s->keys; k-- > 0;) order_by(s, k, memory[k], base, k + 1 == s->keys, w);
  for (uint32_t k = 0; k < s->count; k++) {
    size_t bytes = ax_dtype_bytes(s->dtype[k]), offset = (size_t)base * bytes;
    take_in_order(s, w->order, (const char *)memory[k] + offset, (char *)memory[s->count + k] + offset, bytes);
  }
}

static bool has_wide_keys(const sorter *s) {
  for (uint32_t k = 0; k < s->keys; k++)
    if (ax_dtype_bytes(s->dtype[k]) == 8) return true;
  return false;
}

static ax_status sort_by_digits(const sorter *s, void *const *memory, int64_t from, int64_t to) {
  const size_t item = has_wide_keys(s) ? sizeof(pair) : sizeof(uint64_t), n = (size_t)s->extent;
  char *work = ax_alloc(n * (2 * item + 2 * sizeof(uint32_t)));
  if (work == NULL) return AX_OUT_OF_MEMORY;
  workspace w = {work, work + n * item, (uint32_t *)(void *)(work + 2 * n * item), (uint32_t *)(void *)(work + 2 * n * item) + n};
  for (int64_t row = from; row < to; row++) sort_row(s, memory, row, &w);
  ax_free(work);
  return AX_OK;
}

static ax_status sort_part(const void *data, void *const *memory, uint32_t part) {
  const sorter *s = data;
  const int64_t from = s->rows * part / s->parts, to = s->rows * (part + 1) / s->parts;
  const uint32_t bytes = ax_machine_register_bytes();
  if (!s->by_network) return sort_by_digits(s, memory, from, to);
  for (int64_t row = from, next; row < to; row = next) {
    next = row + ax_sort_network_rows(&s->network, row, to);
    if (!ax_sort_network_run(&s->network, bytes, memory[0], memory[1], row, next - row))
      AX_TRY(sort_by_digits(s, memory, row, next));
  }
  return AX_OK;
}

/* --- Lowering --- */

ax_status ax_lower_sort(ax_lower *lower, const ax_sort_params *p, uint32_t count, const uint32_t *in, const uint32_t *out) {
  const ax_type first = *ax_lower_type(lower, in[0]);
  const uint32_t d = (uint32_t)p->dimension;
  const double time = 12 * (double)ax_type_elems(&first) * (double)p->num_keys;
  size_t bytes = sizeof(sorter) + count * sizeof(ax_dtype);
  if (first.dims[d] > UINT32_MAX) return ax_error(AX_ABSENT, "%lld elements along the dimension", (long long)first.dims[d]);
  sorter *s = ax_arena_alloc(&lower->plan->drafts, bytes);
  uint32_t *buffers = ax_arena_alloc(&lower->plan->drafts, 2 * count * sizeof buffers[0]);
  if (s == NULL || buffers == NULL) return ax_out_of_memory(bytes);
  *s = (sorter){.extent = first.dims[d],
                .inner = ax_dims_elems(first.rank - d - 1, first.dims + d + 1),
                .count = count,
                .keys = (uint32_t)p->num_keys};
  s->rows = ax_dims_elems(d, first.dims) * s->inner;
  s->parts = ax_routine_parts(time, s->rows);
  s->by_network = count == 1 && ax_sort_network_make(first.dtype, s->extent, s->inner, &s->network);
  for (uint32_t k = 0; k < count; k++) s->dtype[k] = ax_lower_type(lower, in[k])->dtype;
  memcpy(buffers, in, count * sizeof in[0]);
  memcpy(buffers + count, out, count * sizeof out[0]);
  for (uint32_t k = 0; k < count && s->rows * s->extent == 0; k++) AX_TRY(ax_lower_copy(lower, out[k], in[k]));
  if (s->rows * s->extent == 0) return AX_OK;
  return ax_lower_routine(lower,
                          &(ax_routine){.run = sort_part,
                                        .data = s,
                                        .in_count = count,
                                        .out_count = count,
                                        .parts = s->parts,
                                        .buffers = buffers,
                                        .time = time,
                                        .name = s->by_network ? "sort_network" : NULL},
                          bytes);
}
