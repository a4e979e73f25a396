/* How convolutions are computed: as products of strided parts of lhs with parts of rhs.

     y = sum over the kernel's places of       lhs's part for that place . rhs there         many results, few places: 3x3 over an image
     y at each position =                      lhs's part for that position . rhs            few results, many places: a kernel's gradient

   For each spatial dimension the shorter of the two is written out, or gone through in a loop where all of them together would be too many. */
#include <string.h>

#include "prim/conv_general_dilated.h"
#include "prim/prims.h"

enum { most_written_out = 128 };

/* lhs as [group, batch, s.., in], padded; rhs as [group, k.., in, out]; the result as [group, batch, o.., out]. */
typedef struct product {
  ax_window windows[AX_MAX_RANK];
  uint32_t spatial, at; /* the dimension that is gone through next */
  bool looped[AX_MAX_RANK];
  ax_value lhs, rhs;
  bool by_place[AX_MAX_RANK];
} product;

static ax_value multiply(const product *c);

/* At place or position `n` of dimension c->at: a part of lhs, and of rhs where it is a place. */
static product taken(const product *c, int64_t n) {
  product inner = *c;
  const ax_window *w = &c->windows[c->at];
  const uint32_t d = 2 + c->at;
  if (c->by_place[c->at]) {
    inner.lhs = ax_window_part(c->lhs, d, n * w->dilation, ax_window_count(w), w->stride);
    inner.rhs = ax_window_part(c->rhs, 1 + c->at, n, 1, 1);
  } else {
    inner.lhs = ax_window_part(c->lhs, d, n * w->stride, w->size, w->dilation);
  }
  inner.at++;
  return inner;
}

/* The same where `n` is computed. */
static product taken_at(const product *c, ax_value n) {
  product inner = *c;
  const ax_window *w = &c->windows[c->at];
  const bool by_place = c->by_place[c->at];
  const int64_t count = by_place ? ax_window_count(w) : w->size, step = by_place ? w->stride : w->dilation;
  ax_value start = ax_mul(n, ax_integer(by_place ? w->dilation : w->stride));
  ax_value part = ax_dynamic_slice_in_dim(c->lhs, start, ax_dilated(count, step), 2 + c->at);
  inner.lhs = ax_window_part(part, 2 + c->at, 0, count, step);
  if (by_place) inner.rhs = ax_dynamic_slice_in_dim(c->rhs, n, 1, 1 + c->at);
  inner.at++;
  return inner;
}

static AX_BODY(add_place) {
  product inner = taken_at(context, in[0]);
  out[0] = ax_add(in[1], multiply(&inner));
}

/* in: the position; out: the result there. */
static AX_BODY(one_position) {
  product inner = taken_at(context, in[0]);
  out[0] = ax_add(in[0], ax_integer(1));
  out[1] = multiply(&inner);
}

static ax_value by_places(product *c) {
  const int64_t count = c->windows[c->at].size;
  product first = taken(c, 0);
  ax_value sum = multiply(&first);
  if (c->looped[c->at]) {
    ax_fori_loop(ax_integer(1), ax_integer(count), AX_CLOSURE(add_place, 2, 1, c), &sum, &sum);
    return sum;
  }
  for (int64_t n = 1; n < count && !ax_failed(); n++) {
    product inner = taken(c, n);
    sum = ax_add(sum, multiply(&inner));
  }
  return sum;
}

static ax_value by_positions(product *c) {
  const int64_t count = ax_window_count(&c->windows[c->at]);
  const uint32_t d = 2 + c->at;
  if (c->looped[c->at]) {
    ax_value carry[] = {ax_as("conv_general_dilated", ax_integer(0), AX_S32), ax_poison};
    ax_scan(AX_CLOSURE(one_position, 1, 2, c), 1, count, false, carry, carry);
    ax_type type = ax_typeof(carry[1]);
    if (ax_failed()) return ax_poison;
    ax_value moved = ax_move_dim(carry[1], 0, (int)d); /* in front of the dimension of 1 that it is */
    memmove(type.dims, type.dims + 1, (type.rank - 1) * sizeof type.dims[0]);
    type.dims[d] = count;
    return ax_reshape(moved, type.rank - 1, type.dims);
  }
  ax_value *parts = ax_trace_alloc((size_t)count * sizeof parts[0]);
  for (int64_t n = 0; n < count && parts != NULL && !ax_failed(); n++) {
    product inner = taken(c, n);
    parts[n] = multiply(&inner);
  }
  return parts != NULL ? ax_concatenate((uint32_t)count, parts, d) : ax_poison;
}

/* All dimensions are taken: one product. Those of positions are contracted, of which one is left; those of places have one place. */
static ax_value multiply_all(const product *c) {
  const ax_type x = ax_typeof(c->lhs);
  int64_t lhs[AX_MAX_RANK], rhs[AX_MAX_RANK], group = 0, dims[AX_MAX_RANK];
  uint32_t count = 0;
  for (uint32_t i = 0; i < c->spatial && !ax_failed(); i++) {
    lhs[count] = 2 + i, rhs[count] = 1 + i;
    count += !c->by_place[i];
  }
  lhs[count] = x.rank - 1, rhs[count++] = 1 + c->spatial;
  ax_value kernel = c->rhs;
  ax_value made;
  bool places = false;
  for (uint32_t i = 0; i < c->spatial; i++) places = places || c->by_place[i];
  if (places) { /* without the dimensions of one place */
    ax_type type = ax_typeof(kernel);
    uint32_t rank = 0, gone[AX_MAX_RANK];
    for (uint32_t d = 0; d < type.rank && !ax_failed(); d++) {
      gone[d] = rank;
      if (d == 0 || d > c->spatial || !c->by_place[d - 1]) dims[rank++] = type.dims[d];
    }
    kernel = ax_reshape(kernel, rank, dims);
    for (uint32_t i = 0; i < count && !ax_failed(); i++) rhs[i] = gone[rhs[i]];
  }
  made = ax_dot_general(c->lhs, kernel, count, lhs, rhs, 1, &group, &group);
  ax_type type = ax_typeof(made);
  if (ax_failed()) return ax_poison;
  for (uint32_t d = 0; d < x.rank; d++) dims[d] = x.dims[d];
  for (uint32_t i = 0; i < c->spatial; i++)
    if (!c->by_place[i]) dims[2 + i] = 1;
  dims[x.rank - 1] = type.dims[type.rank - 1];
  return ax_reshape(made, x.rank, dims);
}

static ax_value multiply(const product *c) {
  product own = *c;
  if (c->at == c->spatial) return multiply_all(c);
  return c->by_place[c->at] ? by_places(&own) : by_positions(&own);
}

/* How each dimension is gone through: the longest in loops, until few enough are left to write out. */
static void plan_loops(product *c) {
  double all = 1, count[AX_MAX_RANK];
  for (uint32_t i = 0; i < c->spatial; i++) {
    int64_t positions = ax_window_count(&c->windows[i]);
    c->by_place[i] = c->windows[i].size <= positions;
    count[i] = (double)(c->by_place[i] ? c->windows[i].size : positions);
    all *= count[i];
  }
  while (all > most_written_out) {
    uint32_t longest = 0;
    for (uint32_t i = 1; i < c->spatial; i++)
      if (count[i] > count[longest]) longest = i;
    all /= count[longest];
    count[longest] = 1;
    c->looped[longest] = true;
  }
}

/* x with dimensions in the order of `spec`, batch or out, and feature or in, where `order` puts them: dimension i is spec's place order[i]. */
static ax_value ordered(ax_value x, const ax_dims *spec, const uint32_t *order) {
  int64_t permutation[AX_MAX_RANK];
  bool same = true;
  for (uint32_t i = 0; i < spec->count; i++) {
    permutation[i] = spec->v[order[i]];
    same = same && permutation[i] == i;
  }
  return same ? x : ax_transpose(x, permutation);
}

/* Dimension d is cut in groups, which come to the front. */
static ax_value groups_front(ax_value x, uint32_t d, int64_t groups) {
  ax_type type = ax_typeof(x);
  ax_dims dims = {.count = type.rank};
  if (ax_failed()) return ax_poison;
  memcpy(dims.v, type.dims, sizeof type.dims);
  if (!ax_dims_insert(&ax_prim_conv_general_dilated, &dims, d, groups)) return ax_poison;
  dims.v[d + 1] /= groups;
  return ax_move_dim(ax_reshape(x, dims.count, dims.v), (int)d, 0);
}

/* [group, batch, o.., out] as the result has it. */
static ax_value finished(ax_value made, const ax_conv_params *p, int64_t groups) {
  ax_type type = ax_typeof(made);
  uint32_t rank = p->out_spec.count;
  if (ax_failed()) return ax_poison;
  made = ax_move_dim(made, 0, (int)rank - 1); /* batch, o.., group, out */
  int64_t dims[AX_MAX_RANK], permutation[AX_MAX_RANK];
  memcpy(dims, type.dims + 1, rank * sizeof dims[0]);
  dims[rank - 1] *= groups;
  made = ax_reshape(made, rank, dims);
  for (uint32_t place = 0; place < rank; place++)
    permutation[p->out_spec.v[place]] = place == AX_CONV_BATCH ? 0 : place == AX_CONV_FEATURE ? rank - 1 : place - 1;
  return ax_transpose(made, permutation);
}

static ax_value expand(const ax_eqn *eqn, const ax_value *in) {
  const ax_conv_params *p = eqn->params;
  const ax_type lhs = ax_typeof(in[0]), rhs = ax_typeof(in[1]);
  const int64_t groups = p->feature_group_count * p->batch_group_count;
  const uint32_t rank = lhs.rank, spatial = rank - 2;
  uint32_t left[AX_MAX_RANK], right[AX_MAX_RANK];
  ax_value x = in[0], y = in[1];
  product c = {.spatial = spatial};
  if (ax_failed()) return ax_poison;
  if (lhs.dtype == AX_BF16 || lhs.dtype == AX_F16) {
    const ax_value wide[] = {ax_convert_element_type(x, AX_F32), ax_convert_element_type(y, AX_F32)};
    return ax_convert_element_type(expand(eqn, wide), lhs.dtype);
  }
  for (uint32_t i = 0; i < spatial; i++) {
    c.windows[i] = ax_conv_window(p, &lhs, &rhs, i);
    left[1 + i] = right[i] = AX_CONV_SPATIAL + i;
  }
  left[0] = AX_CONV_BATCH, left[rank - 1] = AX_CONV_FEATURE;
  right[spatial] = AX_CONV_IN, right[spatial + 1] = AX_CONV_OUT;
  x = ax_window_padded(ordered(x, &p->lhs_spec, left), ax_zero_like(x), 1, spatial, c.windows);
  c.lhs = groups_front(x, p->batch_group_count > 1 ? 0 : rank - 1, groups);
  c.rhs = groups_front(ordered(y, &p->rhs_spec, right), rank - 1, groups);
  plan_loops(&c);
  return finished(multiply(&c), p, groups);
}

ax_status ax_conv_lower(ax_lower *lower, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  const ax_type *types = lower->program->types;
  if (ax_type_elems(&types[eqn->in[0]]) > 0 && ax_type_elems(&types[eqn->in[1]]) > 0 && ax_type_elems(&types[eqn->out]) > 0)
    return ax_lower_expanded(lower, eqn, expand, in, out);
  AX_TRY(ax_lower_result(lower, eqn, 0, &out[0]));
  return ax_lower_fill(lower, out[0], (ax_number){0});
}
