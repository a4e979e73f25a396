/* Digits are found from what each loop index adds to an address: a multiple of the last digit's weight that reaches up to some
   first digit. Digits that one index reaches over are one group; so is, with its neighbour, a group that may carry into it. Where
   no group carries, the digits are unique, as those of any number. */
#include "plan/index_map.h"

#include "ir/program.h"

bool ax_affine_of(uint32_t rank, const int64_t *dims, const ax_position *at, ax_affine *out) {
  int64_t pitch = 1;
  *out = (ax_affine){0};
  for (uint32_t d = rank; d-- > 0; pitch *= dims[d]) {
    if (at[d].dynamic != AX_NONE) return false;
    out->offset += at[d].offset * pitch;
    if (at[d].dim >= 0) out->coef[at[d].dim] += at[d].coef * pitch;
  }
  return true;
}

static int64_t magnitude(int64_t x) { return x < 0 ? -x : x; }

static bool moves(const ax_affine *address, const int64_t *loop, uint32_t k) { return address->coef[k] != 0 && loop[k] > 1; }

/* The least and the greatest that it comes to. */
static void range_of(const ax_affine *address, uint32_t loop_rank, const int64_t *loop, int64_t *low, int64_t *high) {
  *low = *high = address->offset;
  for (uint32_t k = 0; k < loop_rank; k++)
    if (moves(address, loop, k)) *(address->coef[k] < 0 ? low : high) += address->coef[k] * (loop[k] - 1);
}

/* --- Digits --- */

typedef struct digits {
  const ax_affine *address;
  uint32_t loop_rank, rank;
  const int64_t *loop, *dims;
  int64_t weight[AX_MAX_RANK + 1]; /* by digit; the last: 1 */
  bool joined[AX_MAX_RANK];        /* by digit: it is one number with the one before */
} digits;

/* The first digit of those whose weight divides what index k adds. */
static uint32_t digit_of(const digits *g, uint32_t k) {
  uint32_t d = 0;
  while (magnitude(g->address->coef[k]) % g->weight[d] != 0) d++;
  return d;
}

static void join(digits *g, uint32_t k) {
  int64_t most = magnitude(g->address->coef[k]) * (g->loop[k] - 1);
  uint32_t last = digit_of(g, k), first = last;
  while (first > 0 && g->weight[first - 1] <= most) first--;
  for (uint32_t d = first + 1; d <= last; d++) g->joined[d] = true;
}

/* The digits first .. last, read as one number. */
static ax_affine number_of(const digits *g, uint32_t first, uint32_t last) {
  int64_t size = g->weight[first] * g->dims[first] / g->weight[last];
  ax_affine number = {.offset = g->address->offset / g->weight[last] % size};
  for (uint32_t k = 0; k < g->loop_rank; k++) {
    if (!moves(g->address, g->loop, k)) continue;
    uint32_t d = digit_of(g, k);
    if (d >= first && d <= last) number.coef[k] = g->address->coef[k] / g->weight[last];
  }
  return number;
}

/* Goes through the groups from the last to the first; false when one was enlarged. */
static bool list(digits *g, ax_digits *out, uint32_t *count) {
  *count = 0;
  for (uint32_t last = g->rank; last-- > 0;) {
    uint32_t first = last;
    int64_t low, high;
    while (g->joined[first]) first--;
    ax_digits one = {first, last, number_of(g, first, last)};
    range_of(&one.number, g->loop_rank, g->loop, &low, &high);
    if ((low < 0 || high >= g->weight[first] * g->dims[first] / g->weight[last]) && first > 0) {
      g->joined[first] = true;
      return false;
    }
    out[(*count)++] = one;
    last = first;
  }
  return true;
}

bool ax_affine_digits(const ax_affine *address, uint32_t loop_rank, const int64_t *loop, uint32_t rank, const int64_t *dims,
                      ax_digits *out, uint32_t *count) {
  digits g = {.address = address, .loop_rank = loop_rank, .rank = rank, .loop = loop, .dims = dims};
  int64_t low, high;
  *count = 0;
  range_of(address, loop_rank, loop, &low, &high);
  if (ax_dims_elems(rank, dims) == 0 || low < 0 || high >= ax_dims_elems(rank, dims)) return false;
  if (rank == 0) return true;
  g.weight[rank - 1] = 1;
  for (uint32_t d = rank - 1; d-- > 0;) g.weight[d] = g.weight[d + 1] * dims[d + 1];
  for (uint32_t k = 0; k < loop_rank; k++)
    if (moves(address, loop, k)) join(&g, k);
  while (!list(&g, out, count)) continue;
  for (uint32_t i = 0; i < *count / 2; i++) { /* the first ones first */
    ax_digits one = out[i];
    out[i] = out[*count - 1 - i];
    out[*count - 1 - i] = one;
  }
  return true;
}

/* --- Arrays --- */

bool ax_affine_at(const ax_affine *address, uint32_t loop_rank, const int64_t *loop, uint32_t rank, const int64_t *dims,
                  ax_position *at) {
  ax_digits found[AX_MAX_RANK];
  uint32_t count;
  if (!ax_affine_digits(address, loop_rank, loop, rank, dims, found, &count) || count != rank) return false;
  for (uint32_t d = 0; d < rank; d++) {
    at[d] = (ax_position){.dim = -1, .offset = found[d].number.offset, .dynamic = AX_NONE};
    for (uint32_t k = 0; k < loop_rank; k++) {
      if (found[d].number.coef[k] == 0) continue;
      if (at[d].dim >= 0) return false;
      at[d].dim = (int)k;
      at[d].coef = found[d].number.coef[k];
    }
  }
  return true;
}

bool ax_affine_array(const ax_affine *address, uint32_t loop_rank, const int64_t *loop, int64_t elems, uint32_t *rank,
                     int64_t *dims, ax_position *at) {
  uint32_t order[2 * AX_MAX_RANK], count = 0;
  for (uint32_t k = 0; k < loop_rank; k++) { /* by what they add, the most first */
    if (!moves(address, loop, k)) continue;
    uint32_t i = count++;
    for (; i > 0 && magnitude(address->coef[order[i - 1]]) < magnitude(address->coef[k]); i--) order[i] = order[i - 1];
    order[i] = k;
  }
  if (count >= AX_MAX_RANK) return false;
  int64_t weight = elems;
  *rank = 0;
  for (uint32_t i = 0; i < count; i++) {
    int64_t next = magnitude(address->coef[order[i]]);
    if (i > 0 && (weight % next != 0 || weight == next)) return false;
    dims[(*rank)++] = weight / next;
    weight = next;
  }
  if (weight > 1) dims[(*rank)++] = weight;
  return ax_affine_at(address, loop_rank, loop, *rank, dims, at);
}

/* --- Numbers that nodes compute --- */

enum { deepest = 8 }; /* nodes */

static bool is_counter(ax_dtype dtype) { return dtype == AX_S32 || dtype == AX_S64 || dtype == AX_U32 || dtype == AX_U64; }

/* The numbers are such as an s32 holds, and not negative unless signed: no conversion among integers of 4 and 8 bytes changes them. */
static bool holds_all(ax_dtype dtype, const ax_loop_kernel *kernel, const ax_affine *number) {
  const bool has_sign = dtype == AX_S32 || dtype == AX_S64;
  int64_t least = number->offset, most = number->offset, reach;
  for (uint32_t d = 0; d < kernel->rank; d++) {
    if (number->coef[d] > INT32_MAX || number->coef[d] < -INT32_MAX) return false;
    if (number->coef[d] == 0 || kernel->dims[d] < 2) continue;
    if (!ax_mul_i64(number->coef[d], kernel->dims[d] - 1, &reach) || reach > INT32_MAX || reach < -INT32_MAX) return false;
    *(reach > 0 ? &most : &least) += reach;
  }
  return most <= INT32_MAX && least >= (has_sign ? -INT32_MAX : 0);
}

static bool is_fixed(const ax_loop_kernel *kernel, const ax_affine *number) {
  for (uint32_t d = 0; d < kernel->rank; d++)
    if (number->coef[d] != 0) return false;
  return true;
}

/* out = out + times * other, or out = out * other, of which one is constant. Factors are such as an s32 holds. */
static bool combine(const ax_loop_kernel *kernel, ax_scalar op, const ax_affine *other, ax_affine *out) {
  ax_affine number = *other;
  int64_t times = op == AX_SCALAR_SUB ? -1 : 1;
  if (op == AX_SCALAR_MUL) {
    const bool first = is_fixed(kernel, out);
    if (!first && !is_fixed(kernel, other)) return false;
    times = first ? out->offset : other->offset;
    if (!first) number = *out;
    *out = (ax_affine){0};
  }
  out->offset += times * number.offset;
  for (uint32_t d = 0; d < kernel->rank; d++) out->coef[d] += times * number.coef[d];
  return true;
}

static bool counted(const ax_loop_kernel *kernel, ax_ex node, int depth, ax_affine *out) {
  const ax_expr *expr = &kernel->exprs[node];
  ax_affine other;
  *out = (ax_affine){0};
  if (depth == deepest || !is_counter(expr->dtype) || kernel->rank > 2 * AX_MAX_RANK) return false;
  switch (expr->op) {
    case AX_LEAF_CONST: out->offset = expr->imm; break;
    case AX_LEAF_INDEX: out->coef[expr->imm] = 1; break;
    case AX_SCALAR_CONVERT:
      if (!counted(kernel, expr->arg[0], depth + 1, out)) return false;
      break;
    case AX_SCALAR_ADD:
    case AX_SCALAR_SUB:
    case AX_SCALAR_MUL:
      if (!counted(kernel, expr->arg[0], depth + 1, out) || !counted(kernel, expr->arg[1], depth + 1, &other)) return false;
      if (!combine(kernel, expr->op, &other, out)) return false;
      break;
    default: return false;
  }
  return holds_all(expr->dtype, kernel, out);
}

bool ax_affine_node(const ax_loop_kernel *kernel, ax_ex node, ax_affine *out) { return counted(kernel, node, 0, out); }

bool ax_kernel_counts_over(const ax_loop_kernel *kernel, uint32_t dim) {
  ax_affine number;
  for (ax_ex i = 0; i < kernel->expr_count; i++) {
    const bool adds = kernel->exprs[i].op == AX_SCALAR_ADD && is_counter(kernel->exprs[i].dtype);
    if (adds && ax_affine_node(kernel, i, &number) && number.coef[dim] != 0 &&
        number.coef[dim - 1] == number.coef[dim] * kernel->dims[dim])
      return true;
  }
  return false;
}

/* --- Positions that nodes compute --- */

/* The number as a position of at most one loop index, of which none is negative. *most: the largest. */
static bool node_position(const ax_loop_kernel *kernel, ax_ex node, ax_position *out, int64_t *most) {
  ax_affine number;
  *out = (ax_position){.dim = -1, .dynamic = AX_NONE};
  if (!ax_affine_node(kernel, node, &number)) return false;
  int64_t least = *most = out->offset = number.offset;
  for (uint32_t d = 0; d < kernel->rank; d++) {
    if (number.coef[d] == 0) continue;
    if (out->dim >= 0) return false;
    out->dim = (int)d, out->coef = number.coef[d];
    const int64_t reach = out->coef * (kernel->dims[d] > 0 ? kernel->dims[d] - 1 : 0);
    *(reach > 0 ? most : &least) += reach;
  }
  return least >= 0;
}

ax_position ax_position_settled(const ax_loop_kernel *kernel, const ax_position *at) {
  ax_position made;
  int64_t most;
  if (at->dynamic == AX_NONE || !node_position(kernel, at->dynamic, &made, &most)) return *at;
  if (most > at->limit || (at->dim >= 0 && made.dim >= 0)) return *at;
  if (made.dim < 0) made.dim = at->dim, made.coef = at->coef;
  made.offset += at->offset;
  return made;
}
