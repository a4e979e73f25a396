/* associative_scan: pairs of neighbours are combined, what they come to is scanned, and each of its elements but the last is
   combined with the element that follows the pairs up to there.

     elements    a   b    c    d     e
     pairs           ab        cd
     scanned         ab        abcd
     results     a   ab   abc  abcd  abcde     the first; then of each pair scanned what it is, and with its follower

   As jax.lax.associative_scan does, so derivatives of combinations that tell equal operands apart are the same. */
#include <string.h>

#include "prim/composite.h"

static const char name[] = "associative_scan";

typedef struct scan {
  ax_fn combine;
  uint32_t count;
  int64_t axis;
} scan;

/* Every second element from `start` on, `count` of them. */
static ax_value seconds(ax_value x, int64_t start, int64_t count, int64_t axis) {
  return ax_slice_in_dim(x, start, start + 2 * count - 1, 2, axis);
}

/* operands: of a, then of b; out: of c. False: the trace has failed. */
static bool combine(const scan *s, const ax_value *operands, ax_value *out) {
  const ax_value *made = ax_builder_call(s->combine, operands);
  for (uint32_t i = 0; made != NULL && i < s->count; i++) {
    ax_type type, wanted = ax_typeof(operands[i]);
    if (!ax_operand(name, made[i], &type)) return false;
    if (type.dtype != wanted.dtype || type.rank != wanted.rank || memcmp(type.dims, wanted.dims, type.rank * sizeof type.dims[0]) != 0)
      return ax_reject_as(name, "combine: result %u is %s; the operands are %s", i, ax_operand_string(&type),
                          ax_operand_string(&wanted)),
             false;
    out[i] = made[i];
  }
  return made != NULL;
}

/* One result: the first element; scanned pairs and those with their followers in turn; and, of an even number, the last pair. */
static ax_value in_turn(const scan *s, ax_value first, ax_value pairs, ax_value followed, int64_t size) {
  const int64_t rest = (size - 1) / 2;
  ax_value parts[] = {ax_slice_in_dim(first, 0, 1, 1, s->axis), ax_poison, ax_poison}, last = ax_poison;
  uint32_t count = 1;
  if (size % 2 == 0) last = ax_slice_in_dim(pairs, rest, rest + 1, 1, s->axis);
  if (rest > 0) {
    ax_type type = ax_typeof(followed);
    pairs = ax_slice_in_dim(pairs, 0, rest, 1, s->axis);
    const ax_value two[] = {ax_expand_dims(pairs, s->axis + 1), ax_expand_dims(followed, s->axis + 1)};
    ax_value turns = (ax_concatenate)(2, two, s->axis + 1);
    type.dims[s->axis] = 2 * rest;
    parts[count++] = ax_reshape(turns, AX_LIST(type.rank, type.dims));
  }
  if (size % 2 == 0) parts[count++] = last;
  return (ax_concatenate)(count, parts, s->axis);
}

/* Scans `elements` in place. */
static void scan_pairs(const scan *s, ax_value *elements, int64_t size) {
  const int64_t half = size / 2, rest = (size - 1) / 2;
  if (size < 2 || ax_failed()) return;
  ax_value *operands = ax_trace_alloc(2 * s->count * sizeof operands[0]), *pairs = ax_trace_alloc(s->count * sizeof pairs[0]),
           *followed = ax_trace_alloc(s->count * sizeof followed[0]);
  if (operands == NULL || pairs == NULL || followed == NULL) return;
  for (uint32_t i = 0; i < s->count; i++) {
    operands[i] = seconds(elements[i], 0, half, s->axis);
    operands[s->count + i] = seconds(elements[i], 1, half, s->axis);
  }
  if (!combine(s, operands, pairs)) return;
  scan_pairs(s, pairs, half);
  for (uint32_t i = 0; i < s->count && rest > 0; i++) {
    operands[i] = ax_slice_in_dim(pairs[i], 0, rest, 1, s->axis);
    operands[s->count + i] = seconds(elements[i], 2, rest, s->axis);
  }
  if (rest > 0 && !combine(s, operands, followed)) return;
  for (uint32_t i = 0; i < s->count; i++) elements[i] = in_turn(s, elements[i], pairs[i], rest > 0 ? followed[i] : ax_poison, size);
}

/* Checks the operands; gives the axis, counted from 0, and their size along it. False: the trace has failed. */
static bool check(scan *s, const ax_value *in, int64_t *size) {
  const int64_t given = s->axis;
  for (uint32_t i = 0; i < s->count; i++) {
    ax_type type;
    int64_t axis = given;
    if (!ax_operand(name, in[i], &type) || !ax_dimension(name, "the axis", &axis, type.rank)) return false;
    if (i == 0) s->axis = axis, *size = type.dims[axis];
    if (axis != s->axis || type.dims[axis] != *size)
      return ax_reject_as(name, "operand %u is %s; along dimension %lld it must have %lld elements, as operand 0", i,
                          ax_operand_string(&type), (long long)s->axis, (long long)*size),
             false;
  }
  return true;
}

void (ax_associative_scan)(ax_fn function, int64_t axis, bool reverse, uint32_t in_count, const ax_value *in, uint32_t out_count,
                           ax_value *out) {
  scan s = {.combine = function, .count = function.out_count, .axis = axis};
  int64_t size = 0;
  if (!ax_lists_fit(name, in_count, s.count, out_count, s.count, out)) return;
  in = ax_take_operands(in, s.count, out, s.count);
  if (function.in_count != 2 * s.count || s.count == 0) {
    (void)ax_reject_as(name, "combine takes %u operands and gives %u results; it must take two for each result", function.in_count,
                       s.count);
    return;
  }
  ax_value *elements = ax_trace_alloc(s.count * sizeof elements[0]);
  if (elements == NULL || !check(&s, in, &size)) return;
  for (uint32_t i = 0; i < s.count; i++) elements[i] = reverse ? ax_rev(in[i], AX_DIMS(s.axis)) : in[i];
  scan_pairs(&s, elements, size);
  for (uint32_t i = 0; !ax_failed() && i < s.count; i++) out[i] = reverse ? ax_rev(elements[i], AX_DIMS(s.axis)) : elements[i];
}
