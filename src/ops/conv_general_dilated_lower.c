/* Lowers convolutions to products of strided parts of lhs with parts of rhs.

     y = sum over the kernel's places of   lhs's part for that place . rhs there      many results, few places: 3x3 over an image
     y at each position =                  lhs's part for that position . rhs         few results, many places: a kernel's gradient

   A convolution of a dilated lhs is first made of convolutions that are not dilated: conv_general_dilated_phases.c. Most of f32 and
   f64 then go through their operands as they lie: conv_general_dilated_image.c. This file has all others.

   For each spatial dimension the code goes through the kernel's places or the result's positions, whichever are fewer: written out
   one by one, or in a loop if all of them together would be too many. Places that are written out are taken several at a time and
   joined, so that products are not over a few features only. A group with a single feature has no product to make, nor have at most
   four filters of one input feature (a blur, a signal's convolution); these are multiplied element by element. */
#include <string.h>

#include "ops/conv_general_dilated.h"
#include "plan/lower.h"
#include "plan/plan.h"
#include "prim/prims.h"
#include "product/product.h"

enum { most_written_out = 128, few_features = 32, long_sum = 128, few_places = 64, few_results = 4 };

/* A convolution partly taken apart. lhs is [group, ..], padded, with its batch, spatial and feature dimensions where the fields
   say; rhs likewise. The result is [group, batch, o.., out]. */
typedef struct product {
  ax_window windows[AX_MAX_RANK];
  uint32_t spatial, at; /* the dimension that is gone through next */
  bool by_place[AX_MAX_RANK], looped[AX_MAX_RANK];
  ax_value lhs, rhs;
  uint32_t lhs_at[AX_MAX_RANK], lhs_in, rhs_at[AX_MAX_RANK], rhs_in;
} product;

static ax_value multiply(const product *c);

/* At place or position `n` of dimension c->at: a part of lhs, and of rhs where it is a place. */
static product taken(const product *c, int64_t n) {
  product inner = *c;
  const ax_window *w = &c->windows[c->at];
  if (c->by_place[c->at]) {
    inner.lhs = ax_window_part(c->lhs, c->lhs_at[c->at], n * w->dilation, ax_window_count(w), w->stride);
    inner.rhs = ax_window_part(c->rhs, c->rhs_at[c->at], n, 1, 1);
  } else {
    inner.lhs = ax_window_part(c->lhs, c->lhs_at[c->at], n * w->stride, w->size, w->dilation);
  }
  inner.at++;
  return inner;
}

/* The same for an `n` that is computed. */
static product taken_at(const product *c, ax_value n) {
  product inner = *c;
  const ax_window *w = &c->windows[c->at];
  const bool by_place = c->by_place[c->at];
  const int64_t count = by_place ? ax_window_count(w) : w->size, step = by_place ? w->stride : w->dilation;
  ax_value start = ax_mul(n, ax_integer(by_place ? w->dilation : w->stride));
  ax_value part = ax_dynamic_slice_in_dim(c->lhs, start, ax_dilated(count, step), c->lhs_at[c->at]);
  inner.lhs = ax_window_part(part, c->lhs_at[c->at], 0, count, step);
  if (by_place) inner.rhs = ax_dynamic_slice_in_dim(c->rhs, n, 1, c->rhs_at[c->at]);
  inner.at++;
  return inner;
}

static AX_BODY(add_place) {
  product inner = taken_at(context, in[0]);
  out[0] = ax_add(in[1], multiply(&inner));
}

/* A step of a loop over many places adds `more`, and keeps the rounding errors of the additions (Knuth's two-sum). in: the place or
   step, the sum, the sum of its errors. */
static void add_exactly(const ax_value *in, ax_value more, ax_value *out) {
  const ax_value sum = ax_add(in[1], more), added = ax_sub(sum, in[1]);
  out[0] = sum;
  out[1] = ax_add(in[2], ax_add(ax_sub(in[1], ax_sub(sum, added)), ax_sub(more, added)));
}

/* The sum and that of its errors, as one. The error of an infinite sum is NaN. */
static ax_value with_errors(const ax_value *carry) {
  return ax_where(ax_eq(carry[1], carry[1]), ax_add(carry[0], carry[1]), carry[0]);
}

static AX_BODY(add_place_exactly) {
  product inner = taken_at(context, in[0]);
  add_exactly(in, multiply(&inner), out);
}

/* in: the position; out: the next, and the result there. */
static AX_BODY(one_position) {
  product inner = taken_at(context, in[0]);
  out[0] = ax_add(in[0], ax_integer(1));
  out[1] = multiply(&inner);
}

static ax_value by_places(const product *c) {
  const int64_t count = c->windows[c->at].size;
  product first = taken(c, 0);
  ax_value sum = multiply(&first);
  if (c->looped[c->at] && count > few_places && !ax_failed() && ax_rounds(ax_typeof(sum).dtype)) {
    ax_value carry[] = {sum, ax_full_like(sum, 0)};
    ax_fori_loop(ax_integer(1), ax_integer(count), AX_CLOSURE(add_place_exactly, 3, 2, c), carry, carry);
    return with_errors(carry);
  }
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

static ax_value by_positions_in_loop(const product *c, uint32_t d, int64_t count) {
  ax_value carry[] = {ax_as("conv_general_dilated", ax_integer(0), AX_S32), ax_poison};
  ax_scan(AX_CLOSURE(one_position, 1, 2, c), 1, count, false, carry, carry);
  ax_type type = ax_typeof(carry[1]);
  if (ax_failed()) return ax_poison;
  ax_value moved = ax_move_dim(carry[1], 0, (int)d); /* in front of the dimension of 1 that it is */
  memmove(type.dims, type.dims + 1, (type.rank - 1) * sizeof type.dims[0]);
  type.dims[d] = count;
  return ax_reshape(moved, AX_LIST(type.rank - 1, type.dims));
}

static ax_value by_positions(const product *c) {
  const int64_t count = ax_window_count(&c->windows[c->at]);
  const uint32_t d = 2 + c->at;
  if (c->looped[c->at]) return by_positions_in_loop(c, d, count);
  ax_value *parts = ax_trace_alloc((size_t)count * sizeof parts[0]);
  for (int64_t n = 0; n < count && parts != NULL && !ax_failed(); n++) {
    product inner = taken(c, n);
    parts[n] = multiply(&inner);
  }
  return parts != NULL ? ax_concatenate(AX_LIST((uint32_t)count, parts), d) : ax_poison;
}

/* All dimensions are taken: one product. Those of positions are contracted, of which one is left; those of places have one place,
   and go. */
static ax_value multiply_all(const product *c) {
  const ax_type x = ax_typeof(c->lhs), kernel = ax_typeof(c->rhs);
  int64_t lhs[AX_MAX_RANK], rhs[AX_MAX_RANK], group = 0, dims[AX_MAX_RANK];
  uint32_t count = 0, rank = 0, now[AX_MAX_RANK] = {0};
  bool goes[AX_MAX_RANK] = {false};
  if (ax_failed()) return ax_poison;
  for (uint32_t i = 0; i < c->spatial; i++) goes[c->rhs_at[i]] = c->by_place[i];
  for (uint32_t d = 0; d < kernel.rank; d++) {
    now[d] = rank;
    if (!goes[d]) dims[rank++] = kernel.dims[d];
  }
  for (uint32_t i = 0; i < c->spatial; i++)
    if (!c->by_place[i]) lhs[count] = c->lhs_at[i], rhs[count++] = now[c->rhs_at[i]];
  lhs[count] = c->lhs_in, rhs[count++] = now[c->rhs_in];
  ax_value made = ax_dot_general(c->lhs, rank < kernel.rank ? ax_reshape(c->rhs, AX_LIST(rank, dims)) : c->rhs, AX_LIST(count, lhs),
                                 AX_LIST(count, rhs), AX_LIST(1, &group), AX_LIST(1, &group));
  const ax_type type = ax_typeof(made);
  if (ax_failed()) return ax_poison;
  dims[0] = type.dims[0], dims[1] = type.dims[1];
  for (uint32_t i = 0, next = 2; i < c->spatial; i++) dims[2 + i] = c->by_place[i] ? type.dims[next++] : 1;
  dims[x.rank - 1] = type.dims[type.rank - 1];
  return ax_reshape(made, AX_LIST(x.rank, dims));
}

static ax_value multiply(const product *c) {
  if (c->at == c->spatial) return multiply_all(c);
  return c->by_place[c->at] ? by_places(c) : by_positions(c);
}

/* --- Places side by side --- */

/* lhs's part for the kernel's place of this number, in row-major order. */
static ax_value part_for(const product *c, int64_t place) {
  const ax_type x = ax_typeof(c->lhs);
  int64_t from[AX_MAX_RANK] = {0}, to[AX_MAX_RANK], by[AX_MAX_RANK];
  for (uint32_t d = 0; d < x.rank; d++) to[d] = x.dims[d], by[d] = 1;
  for (uint32_t i = c->spatial; i-- > 0; place /= c->windows[i].size) {
    const ax_window *w = &c->windows[i];
    const uint32_t d = c->lhs_at[i];
    from[d] = place % w->size * w->dilation;
    by[d] = w->stride;
    to[d] = from[d] + ax_dilated(ax_window_count(w), w->stride);
  }
  return ax_slice(c->lhs, from, to, by);
}

/* For few features: joins the parts of so many places that one product sums over at least long_sum terms. rhs: [group, k.., in,
   out]. */
static ax_value by_places_together(const product *c) {
  const ax_type kernel = ax_typeof(c->rhs);
  if (ax_failed()) return ax_poison;
  const int64_t in = kernel.dims[c->rhs_in], out = kernel.dims[kernel.rank - 1], all = ax_dims_elems(c->spatial, kernel.dims + 1),
                group = 0;
  const int64_t together = in < few_features ? long_sum / in : 1, lhs[] = {c->lhs_in}, rhs[] = {1};
  ax_value *parts = ax_trace_alloc((size_t)together * sizeof parts[0]), sum = ax_poison;
  ax_value flat = ax_reshape(c->rhs, AX_DIMS(kernel.dims[0], all * in, out));
  for (int64_t first = 0; first < all && parts != NULL && !ax_failed(); first += together) {
    const int64_t count = first + together < all ? together : all - first;
    for (int64_t n = 0; n < count; n++) parts[n] = part_for(c, first + n);
    ax_value x = count > 1 ? ax_concatenate(AX_LIST((uint32_t)count, parts), c->lhs_in) : parts[0];
    ax_value made = ax_dot_general(x, ax_window_part(flat, 1, first * in, count * in, 1), AX_LIST(1, lhs), AX_LIST(1, rhs),
                                   AX_LIST(1, &group), AX_LIST(1, &group));
    sum = first == 0 ? made : ax_add(sum, made);
  }
  return sum;
}

/* For groups of one feature, and images of one: multiplies element by element. lhs has its dimensions in the result's order, the groups at `features`;
   rhs is [k.., 1, group * out]. */
static ax_value by_features(const product *c, uint32_t features, int64_t groups) {
  const ax_type x = ax_typeof(c->lhs), kernel = ax_typeof(c->rhs);
  if (ax_failed()) return ax_poison;
  const int64_t all = ax_dims_elems(c->spatial, kernel.dims), out = kernel.dims[kernel.rank - 1] / groups;
  ax_value rows = ax_reshape(c->rhs, AX_DIMS(all, groups, out)), sum = ax_poison;
  const int64_t by[] = {features, features + 1};
  for (int64_t n = 0; n < all && !ax_failed(); n++) {
    ax_value row = ax_reshape(ax_window_part(rows, 0, n, 1, 1), AX_DIMS(groups, out)), part = part_for(c, n);
    ax_type type = ax_typeof(part);
    int64_t same[AX_MAX_RANK];
    for (uint32_t d = 0; d < x.rank; d++) same[d] = d > features ? d + 1 : d;
    memmove(type.dims + features + 2, type.dims + features + 1, (type.rank++ - features - 1) * sizeof type.dims[0]);
    type.dims[features + 1] = out;
    ax_value made =
        ax_mul(ax_broadcast_in_dim(part, AX_LIST(type.rank, type.dims),
                                   same), ax_broadcast_in_dim(row, AX_LIST(type.rank, type.dims), by));
    sum = ax_add(n == 0 ? ax_zero_like(made) : sum, made); /* a sum of products that are all -0 is 0 */
  }
  ax_type type = ax_typeof(sum);
  if (ax_failed()) return ax_poison;
  memmove(type.dims + features + 1, type.dims + features + 2, (--type.rank - features - 1) * sizeof type.dims[0]);
  type.dims[features] = groups * out;
  return ax_reshape(sum, AX_LIST(type.rank, type.dims));
}

/* Of many places, `together` along one dimension are written out in each step of a loop. */
typedef struct steps {
  const product *c;
  uint32_t along, features; /* spatial; of the result */
  int64_t groups, together;
} steps;

/* The sum over `count` of the kernel's places, from place `from` on. */
static ax_value some_places(const steps *s, ax_value from, int64_t count) {
  product inner = *s->c;
  ax_window *w = &inner.windows[s->along];
  const int64_t array = ax_dilated(ax_window_count(w), w->stride) + ax_dilated(count, w->dilation) - 1;
  inner.lhs = ax_dynamic_slice_in_dim(inner.lhs, ax_mul(from, ax_integer(w->dilation)), array, inner.lhs_at[s->along]);
  inner.rhs = ax_dynamic_slice_in_dim(inner.rhs, from, count, inner.rhs_at[s->along]);
  w->size = count;
  w->array = array;
  return by_features(&inner, s->features, s->groups);
}

/* in: the step, the sum, the sum of its errors; those of integers stay 0. */
static AX_BODY(add_places) {
  const steps *s = context;
  const int64_t first = s->c->windows[s->along].size % s->together;
  const ax_value more = some_places(s, ax_add(ax_mul(in[0], ax_integer(s->together)), ax_integer(first)), s->together);
  if (!ax_failed() && ax_rounds(ax_typeof(more).dtype)) {
    add_exactly(in, more, out);
    return;
  }
  out[0] = ax_add(in[1], more);
  out[1] = in[2];
}

static ax_value by_features_in_steps(const steps *s) {
  const int64_t size = s->c->windows[s->along].size, first = size % s->together;
  const ax_value none = ax_as("conv_general_dilated", ax_integer(0), AX_S32);
  const ax_value start = some_places(s, none, first > 0 ? first : s->together);
  ax_value carry[] = {start, ax_full_like(start, 0)};
  ax_fori_loop(ax_integer(first > 0 ? 0 : 1), ax_integer(size / s->together), AX_CLOSURE(add_places, 3, 2, s), carry, carry);
  return ax_failed() || !ax_rounds(ax_typeof(start).dtype) ? carry[0] : with_errors(carry);
}

/* --- The whole --- */

/* How each dimension is gone through: the longest in loops, until few enough are left to write out. True: all are written out, by
   places. */
static bool plan_loops(product *c) {
  double all = 1, count[AX_MAX_RANK];
  bool places = true;
  for (uint32_t i = 0; i < c->spatial; i++) {
    int64_t positions = ax_window_count(&c->windows[i]);
    c->by_place[i] = c->windows[i].size <= positions;
    count[i] = (double)(c->by_place[i] ? c->windows[i].size : positions);
    all *= count[i];
    places = places && c->by_place[i];
  }
  places = places && all <= most_written_out;
  while (all > most_written_out) {
    uint32_t longest = 0;
    for (uint32_t i = 1; i < c->spatial; i++)
      if (count[i] > count[longest]) longest = i;
    all /= count[longest];
    count[longest] = 1;
    c->looped[longest] = true;
  }
  return places;
}

ax_value ax_conv_ordered(ax_value x, const ax_dims *spec, const uint32_t *order, bool lies, uint32_t *at) {
  int64_t permutation[AX_MAX_RANK];
  bool same = true;
  for (uint32_t i = 0; i < spec->count; i++) {
    permutation[i] = spec->v[order[i]];
    at[order[i]] = lies ? (uint32_t)permutation[i] : i;
    same = same && permutation[i] == i;
  }
  return same || lies ? x : ax_transpose(x, permutation);
}

ax_value ax_conv_groups_front(ax_value x, uint32_t d, int64_t groups) {
  ax_type type = ax_typeof(x);
  ax_dims dims = {.count = type.rank};
  if (ax_failed()) return ax_poison;
  memcpy(dims.v, type.dims, sizeof type.dims);
  if (!ax_dims_insert(&ax_prim_conv_general_dilated, &dims, d, groups)) return ax_poison;
  dims.v[d + 1] /= groups;
  return ax_move_dim(ax_reshape(x, AX_LIST(dims.count, dims.v)), (int)d, 0);
}

/* [group, batch, o.., out] as [batch, o.., features]. */
static ax_value groups_joined(ax_value made, int64_t groups) {
  ax_type type = ax_typeof(made);
  const uint32_t rank = type.rank - 1;
  int64_t dims[AX_MAX_RANK];
  if (ax_failed()) return ax_poison;
  memcpy(dims, type.dims + 1, rank * sizeof dims[0]);
  dims[rank - 1] *= groups;
  return ax_reshape(ax_move_dim(made, 0, (int)rank - 1), AX_LIST(rank, dims));
}

/* [batch, o.., features] as the result has it. */
static ax_value finished(ax_value made, const ax_conv_params *p) {
  const uint32_t rank = p->out_spec.count;
  int64_t permutation[AX_MAX_RANK];
  for (uint32_t place = 0; place < rank; place++)
    permutation[p->out_spec.v[place]] = place == AX_CONV_BATCH ? 0 : place == AX_CONV_FEATURE ? rank - 1 : place - 1;
  return ax_transpose(made, permutation);
}

/* Whether each group has a single feature, and nothing to make a product of: of a convolution without groups, few results. */
static bool has_single_features(const ax_conv_params *p, const ax_type *rhs) {
  const int64_t out = rhs->dims[p->rhs_spec.v[AX_CONV_OUT]];
  if (rhs->dims[p->rhs_spec.v[AX_CONV_IN]] != 1 || ax_conv_spatial(p) == 0 || rhs->rank == AX_MAX_RANK) return false; /* by_features adds one */
  return p->feature_group_count > 1 || (p->batch_group_count == 1 && out <= few_results);
}

/* How such are multiplied element by element, all places written out or many in each step (`together`) of a loop along one dimension,
   if the others have at most 8 places. Returns false: they are not. */
static bool plan_steps(const ax_conv_params *p, const ax_type *lhs, const ax_type *rhs, steps *s) {
  enum { in_a_step = 16 }; /* more would err more: they are added up plainly */
  int64_t others = 1;
  product c = {.spatial = ax_conv_spatial(p)};
  *s = (steps){.features = (uint32_t)p->out_spec.v[AX_CONV_FEATURE], .groups = p->feature_group_count};
  if (!has_single_features(p, rhs)) return false;
  for (uint32_t i = 0; i < c.spatial; i++) {
    c.windows[i] = ax_conv_window(p, lhs, rhs, i);
    if (c.windows[i].size > c.windows[s->along].size) s->along = i;
  }
  if (plan_loops(&c)) return true;
  for (uint32_t i = 0; i < c.spatial; i++) {
    if (!c.by_place[i]) return false;
    if (i != s->along) others *= c.windows[i].size;
  }
  s->together = in_a_step / others;
  return s->together > 1;
}

/* Floats of at least f32, or integers. */
static ax_value convolve(const ax_conv_params *p, ax_value x, ax_value y) {
  const ax_type lhs = ax_typeof(x), rhs = ax_typeof(y);
  const int64_t groups = p->feature_group_count * p->batch_group_count;
  const uint32_t rank = lhs.rank, spatial = rank - 2;
  uint32_t left[AX_MAX_RANK], right[AX_MAX_RANK], lhs_at[AX_MAX_RANK], rhs_at[AX_MAX_RANK];
  ax_window windows[AX_MAX_RANK];
  product c = {.spatial = spatial};
  steps in_steps;
  for (uint32_t i = 0; i < spatial; i++) {
    c.windows[i] = ax_conv_window(p, &lhs, &rhs, i);
    left[1 + i] = right[i] = AX_CONV_SPATIAL + i;
  }
  left[0] = AX_CONV_BATCH, left[rank - 1] = AX_CONV_FEATURE;
  const bool together = plan_loops(&c) && spatial > 0,
             by_feature = plan_steps(p, &lhs, &rhs, &in_steps);
  for (uint32_t place = 0; place < rank && by_feature; place++) left[p->out_spec.v[place]] = place;
  right[spatial] = AX_CONV_IN, right[spatial + 1] = AX_CONV_OUT;
  bool lies = groups == 1; /* where all is contracted, it may lie as it does */
  for (uint32_t i = 0; i < spatial; i++) lies = lies && !c.by_place[i];
  c.rhs = ax_conv_ordered(y, &p->rhs_spec, right, lies, rhs_at);
  c.lhs = ax_conv_ordered(x, &p->lhs_spec, left, lies, lhs_at);
  for (uint32_t i = 0; i < spatial; i++) windows[lhs_at[AX_CONV_SPATIAL + i]] = c.windows[i];
  for (uint32_t i = 0; i < 2; i++) windows[lhs_at[i]] = (ax_window){.base = 1};
  c.lhs = ax_window_padded(c.lhs, ax_zero_like(c.lhs), 0, rank, windows);
  for (uint32_t i = 0; i < spatial; i++) {
    c.windows[i].array = windows[lhs_at[AX_CONV_SPATIAL + i]].array;
    c.windows[i].low = c.windows[i].high = 0, c.windows[i].base = 1;
    c.lhs_at[i] = lhs_at[AX_CONV_SPATIAL + i];
    c.rhs_at[i] = rhs_at[AX_CONV_SPATIAL + i];
  }
  in_steps.c = &c;
  if (by_feature && in_steps.together > 0) return by_features_in_steps(&in_steps);
  if (by_feature) return by_features(&c, in_steps.features, groups);
  c.lhs = ax_conv_groups_front(c.lhs, lhs_at[p->batch_group_count > 1 ? AX_CONV_BATCH : AX_CONV_FEATURE], groups);
  c.rhs = ax_conv_groups_front(c.rhs, rhs_at[AX_CONV_OUT], groups);
  for (uint32_t i = 0; i < spatial; i++) c.lhs_at[i]++, c.rhs_at[i]++;
  c.lhs_in = 1 + lhs_at[AX_CONV_FEATURE];
  c.rhs_in = 1 + rhs_at[AX_CONV_IN];
  return finished(groups_joined(together ? by_places_together(&c) : multiply(&c), groups), p);
}

bool ax_conv_multiplies_narrow(ax_dtype dtype) { return dtype == AX_BF16 && ax_product_in_units(dtype); }

/* A kernel of one place makes a single product, which is rounded once. */
static bool has_one_place(const ax_conv_params *p, const ax_type *rhs) {
  int64_t places = 1;
  for (uint32_t i = 0; i < ax_conv_spatial(p); i++) places *= rhs->dims[p->rhs_spec.v[AX_CONV_SPATIAL + i]];
  return places == 1;
}

/* Narrow floats are multiplied and added up in f32. */
static ax_value expand(const ax_eqn *eqn, const ax_value *in) {
  const ax_type rhs = ax_typeof(in[1]);
  const ax_dtype dtype = ax_typeof(in[0]).dtype;
  if (ax_failed()) return ax_poison;
  const bool single = ax_conv_multiplies_narrow(dtype) && has_one_place(eqn->params, &rhs);
  if (!ax_is_narrow_float(dtype) || single) return convolve(eqn->params, in[0], in[1]);
  ax_value made = ax_conv_bind(eqn->params, ax_convert_element_type(in[0], AX_F32), ax_convert_element_type(in[1], AX_F32));
  return ax_convert_element_type(made, dtype);
}

ax_status ax_conv_lower(ax_lower *lower, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  const ax_type *types = lower->program->types;
  bool made;
  if (ax_type_elems(&types[eqn->in[0]]) == 0 || ax_type_elems(&types[eqn->in[1]]) == 0 || ax_type_elems(&types[eqn->out]) == 0) {
    AX_TRY(ax_lower_result(lower, eqn, 0, &out[0]));
    return ax_lower_fill(lower, out[0], (ax_number){0});
  }
  const ax_type *lhs = &types[eqn->in[0]];
  const bool whole = !ax_is_narrow_float(lhs->dtype) || ax_conv_multiplies_narrow(lhs->dtype);
  if (whole && ax_conv_has_phases(eqn->params, lhs, &types[eqn->in[1]]))
    return ax_lower_expanded(lower, eqn, ax_conv_by_phases, in, out);
  if (plan_steps(eqn->params, lhs, &types[eqn->in[1]], &(steps){0})) return ax_lower_expanded(lower, eqn, expand, in, out);
  AX_TRY(ax_conv_lower_image(lower, eqn, in, out, &made));
  return made ? AX_OK : ax_lower_expanded(lower, eqn, expand, in, out);
}
