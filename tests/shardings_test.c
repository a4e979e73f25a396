/* Whole programs with shardings said of some of their values, made at random: arrays of many shapes, operations of all kinds on
   them, in loops, branches and calls, on meshes of several axes. Of integers, so that the order of sums does not matter:
   partitioned, they give bit for bit what they give as they are, evaluated, and compiled under every policy. Parts of them stand in
   shard_maps that take some of the axes by hand, or all, with collectives over these, shardings said over the others, and
   shard_maps that take more of them. And each primitive's samples with each of their inputs and results laid out in ways that
   divide them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "axle/ops.h"
#include "axle/stages.h"
#include "axle/transform.h"
#include "partition/partition.h"
#include "prim/bind.h"
#include "support/cmocka.h"
#include "support/compare.h"
#include "support/random.h"
#include "support/run.h"

enum { POOL = 12, IN = 3, OUT = 3, MOST = 1 << 10 };

static const char *const meshes[] = {"a=2,b=2", "a=2,b=3", "a=4,b=2", "a=2,b=2,c=2", "a=3", "a=1,b=4"};
static const int64_t sizes[] = {1, 2, 3, 4, 5, 6, 7, 8, 12};

typedef struct maker {
  test_random random;
  const ax_mesh *mesh;
  int depth; /* of control flow still allowed */
  ax_axis_set taken; /* by hand, by shard_maps around */
} maker;

static int64_t below(maker *m, int64_t n) { return test_random_below(&m->random, n); }

/* A spec as text, which mostly divides the shape. */
static void random_spec(maker *m, const ax_type *type, char *out) {
  int64_t left[AX_MAX_RANK], first = below(m, m->mesh->count);
  char dims[AX_MAX_RANK][64] = {""};
  for (uint32_t d = 0; d < type->rank; d++) left[d] = type->dims[d];
  for (uint32_t i = 0; i < m->mesh->count && type->rank > 0; i++) {
    const ax_axis *axis = &m->mesh->axis[(first + i) % m->mesh->count];
    int64_t d = below(m, type->rank);
    if ((m->taken >> (first + i) % m->mesh->count & 1) != 0) continue;
    if (below(m, 4) == 0 || (left[d] % axis->size != 0 && below(m, 3) > 0)) continue;
    left[d] /= axis->size;
    if (dims[d][0] != '\0') strcat(dims[d], "+");
    strcat(dims[d], axis->name);
  }
  out[0] = '\0';
  for (uint32_t d = 0; d < type->rank; d++) {
    if (d > 0) strcat(out, ",");
    strcat(out, dims[d][0] != '\0' ? dims[d] : below(m, 4) == 0 ? "?" : "_");
  }
}

static ax_value said(maker *m, ax_value x) {
  char spec[256];
  ax_type type = ax_typeof(x);
  if (m->taken == ((ax_axis_set)1 << m->mesh->count) - 1) return x;
  random_spec(m, &type, spec);
  return ax_with_sharding(x, m->mesh, spec);
}

/* y in the shape of x. */
static ax_value fitted(maker *m, ax_value y, ax_value x) {
  ax_type to = ax_typeof(x), from = ax_typeof(y);
  if (ax_same_shape(&to, &from)) return y;
  if (ax_type_elems(&to) == ax_type_elems(&from)) return ax_reshape(y, AX_LIST(to.rank, to.dims));
  int64_t where[AX_MAX_RANK];
  for (uint32_t d = 0; d < to.rank; d++)
    for (uint32_t e = 0; e < from.rank; e++) {
      if (to.dims[d] != from.dims[e]) continue;
      ax_dims others = {0};
      for (uint32_t k = 0; k < from.rank; k++)
        if (k != e) others.v[others.count++] = k;
      where[0] = d;
      ax_value row =
          below(m, 2) == 0 ? ax_reduce_sum(y, AX_LIST(others.count, others.v), false) : ax_reduce_max(y, AX_LIST(others.count, others.v), false);
      return ax_broadcast_in_dim(row, AX_LIST(to.rank, to.dims), where);
    }
  return ax_broadcast_in_dim(ax_reduce_min(y, AX_ALL_DIMS, false), AX_LIST(to.rank, to.dims), where);
}

static ax_value pointwise(maker *m, ax_value x, ax_value y) {
  switch (below(m, 6)) {
    case 0: return ax_add(x, y);
    case 1: return ax_sub(ax_mul(x, ax_integer(3)), y);
    case 2: return ax_max(x, y);
    case 3: return ax_where(ax_lt(x, y), ax_neg(x), y);
    case 4: return ax_convert_element_type(ax_abs(ax_convert_element_type(x, AX_S64)), AX_S32);
    default: return ax_mul(x, y);
  }
}

/* Dimensions joined, split, dropped or added. */
static ax_value reshaped(maker *m, ax_value x) {
  ax_type type = ax_typeof(x);
  int64_t dims[AX_MAX_RANK];
  uint32_t rank = 0;
  for (uint32_t d = 0; d < type.rank; d++) {
    int64_t size = type.dims[d], part = sizes[below(m, AX_COUNT(sizes))];
    if (d > 0 && below(m, 3) == 0) dims[rank - 1] *= size;
    else if (size % part == 0 && rank < 3) dims[rank++] = part, dims[rank++] = size / part;
    else dims[rank++] = size;
  }
  return rank > 4 ? x : ax_reshape(x, AX_LIST(rank, dims));
}

static ax_value turned(maker *m, ax_value x) {
  uint32_t rank = ax_typeof(x).rank;
  int64_t order[AX_MAX_RANK];
  for (uint32_t d = 0; d < rank; d++) order[d] = d;
  for (uint32_t d = rank; d > 1; d--) {
    int64_t other = below(m, d), kept = order[d - 1];
    order[d - 1] = order[other], order[other] = kept;
  }
  return ax_transpose(x, order);
}

static ax_value cut(maker *m, ax_value x, ax_value y) {
  ax_type type = ax_typeof(x);
  if (type.rank == 0) return x;
  int64_t low[AX_MAX_RANK] = {0}, high[AX_MAX_RANK], zero[AX_MAX_RANK] = {0}, more[AX_MAX_RANK] = {0}, axis = below(m, type.rank);
  for (uint32_t d = 0; d < type.rank; d++) high[d] = type.dims[d];
  int64_t size = high[axis], at = below(m, size);
  ax_value start = ax_convert_element_type(ax_reduce_max(y, AX_ALL_DIMS, false), AX_S32), starts[AX_MAX_RANK];
  for (uint32_t d = 0; d < type.rank; d++) starts[d] = start;
  switch (below(m, 5)) {
    case 0: low[axis] = at; return ax_slice(x, low, high, NULL);
    case 1: more[axis] = at; return ax_pad(x, ax_integer(7), more, zero, zero);
    case 2: return ax_concatenate(AX_VALUES(x, ax_neg(x)), (uint32_t)axis);
    case 3: high[axis] = size - at; return ax_dynamic_slice(x, starts, high);
    default: high[axis] = size - at; return ax_dynamic_update_slice(x, ax_slice(ax_neg(x), low, high, NULL), starts);
  }
}

/* Sums and extremes of windows, parts with strides, dimensions turned round. */
static ax_value windowed(maker *m, ax_value x) {
  ax_type type = ax_typeof(x);
  int64_t window[AX_MAX_RANK], stride[AX_MAX_RANK], low[AX_MAX_RANK], high[AX_MAX_RANK], base[AX_MAX_RANK], dilation[AX_MAX_RANK],
      axis = below(m, 4);
  for (uint32_t d = 0; d < type.rank; d++) {
    bool plain = d != axis && below(m, 2) == 0;
    window[d] = plain ? 1 : 1 + below(m, 3);
    stride[d] = plain ? 1 : 1 + below(m, 3);
    low[d] = plain ? 0 : below(m, 4) - 1;
    high[d] = plain ? 0 : below(m, 4) - 1;
    base[d] = plain ? 1 : 1 + below(m, 2);
    dilation[d] = plain ? 1 : 1 + below(m, 2);
    if (type.dims[d] < 3) low[d] = high[d] = 1;
  }
  const ax_window_options options = {.strides = {type.rank, stride},
                                     .low = {type.rank, low},
                                     .high = {type.rank, high},
                                     .base_dilation = {type.rank, base},
                                     .window_dilation = {type.rank, dilation}};
  switch (below(m, 5)) {
    case 0: return ax_reduce_window_max(x, window, &options);
    case 1: return ax_reduce_window_min(x, window, &options);
    case 2: return axis < type.rank ? ax_rev(x, AX_LIST(1, &axis)) : x;
    case 3: return axis < type.rank ? ax_slice_in_dim(x, below(m, type.dims[axis]), AX_END, 1 + below(m, 3), axis) : x;
    default: return ax_reduce_window_sum(x, window, &options);
  }
}

/* x, with a batch and a feature dimension put in front where it has none, with y in the shape of a kernel. */
static ax_value convolved(maker *m, ax_value x, ax_value y) {
  ax_type type = ax_typeof(x);
  int64_t dims[AX_MAX_RANK] = {1, 1}, kernel[AX_MAX_RANK], stride[AX_MAX_RANK], low[AX_MAX_RANK], high[AX_MAX_RANK],
          left[AX_MAX_RANK], right[AX_MAX_RANK];
  uint32_t rank = type.rank < 3 ? type.rank + 2 : type.rank, added = rank - type.rank;
  for (uint32_t d = 0; d < type.rank; d++) dims[d + added] = type.dims[d];
  int64_t fg = dims[1] % 2 == 0 && below(m, 2) == 0 ? 2 : 1, bg = fg == 1 && dims[0] % 2 == 0 && below(m, 2) == 0 ? 2 : 1;
  kernel[0] = fg * bg * (1 + below(m, 3));
  kernel[1] = dims[1] / fg;
  for (uint32_t d = 2; d < rank; d++) {
    bool longer = below(m, 4) == 0;
    kernel[d] = longer ? dims[d] : 1 + below(m, 3);
    stride[d - 2] = 1 + below(m, 3);
    low[d - 2] = below(m, 4) - (dims[d] > 2);
    high[d - 2] = below(m, 4) - (dims[d] > 2);
    left[d - 2] = 1 + (below(m, 4) == 0);
    right[d - 2] = longer ? 1 : 1 + below(m, 2);
  }
  ax_value shaped = ax_full(AX_S32, AX_LIST(rank, kernel), 0);
  const ax_conv_options options = {.strides = {rank - 2, stride},
                                   .low = {rank - 2, low},
                                   .high = {rank - 2, high},
                                   .lhs_dilation = {rank - 2, left},
                                   .rhs_dilation = {rank - 2, right},
                                   .feature_group_count = fg,
                                   .batch_group_count = bg};
  if (ax_dims_elems(rank, kernel) > MOST) return x;
  return ax_conv_general_dilated(ax_reshape(x, AX_LIST(rank, dims)), fitted(m, y, shaped), &options);
}

static ax_value product(maker *m, ax_value x, ax_value y) {
  ax_type a = ax_typeof(x), b = ax_typeof(y);
  for (uint32_t i = 0; i < a.rank; i++)
    for (uint32_t j = 0; j < b.rank; j++) {
      int64_t lhs[] = {i}, rhs[] = {j};
      if (a.dims[i] != b.dims[j] || a.rank + b.rank > 5) continue;
      if (below(m, 2) == 0) return ax_dot_general(x, y, AX_LIST(1, lhs), AX_LIST(1, rhs), AX_DIMS(), AX_DIMS());
      int64_t other[] = {(i + 1) % a.rank}, same[] = {(j + 1) % b.rank};
      bool batched = a.rank > 1 && b.rank > 1 && a.dims[other[0]] == b.dims[same[0]];
      return batched ? ax_dot_general(x, y, AX_LIST(1, lhs), AX_LIST(1, rhs), AX_LIST(1, other),
                                      AX_LIST(1, same)) : ax_dot_general(x, y, AX_DIMS(), AX_DIMS(), AX_LIST(1, lhs),
                                                                         AX_LIST(1, rhs));
    }
  return pointwise(m, x, fitted(m, y, x));
}

static ax_value reduced(maker *m, ax_value x) {
  ax_type type = ax_typeof(x);
  if (type.rank == 0) return x;
  int64_t axis = below(m, type.rank);
  switch (below(m, 7)) {
    case 5: return ax_sub(x, ax_cumsum(x, axis, below(m, 2) == 0));
    case 6: return below(m, 2) == 0 ? ax_cummax(x, axis, below(m, 2) == 0) : ax_cummin(x, axis, below(m, 2) == 0);
    case 0: return ax_reduce_sum(x, AX_LIST(1, &axis), below(m, 2) == 0);
    case 1: return ax_reduce_max(x, AX_LIST(1, &axis), false);
    case 2: return ax_argmax(x, axis, AX_S32);
    case 3: return ax_add(x, ax_iota(AX_S32, AX_LIST(type.rank, type.dims), axis));
    default: return ax_reduce_min(x, AX_ALL_DIMS, false);
  }
}

/* Rows looked up and updated, some of them outside; rows in order. */
static ax_value indexed(maker *m, ax_value x) {
  const ax_type type = ax_typeof(x);
  if (type.rank == 0) return x;
  const int64_t axis = below(m, type.rank), count = 1 + below(m, 7);
  if (type.dims[axis] == 0) return x;
  ax_value ids = ax_sub(ax_mul(ax_iota(AX_S32, AX_LIST(1, &count), 0), ax_integer(1 + below(m, 3))), ax_integer(below(m, 2)));
  ax_value rows = ax_mul(ax_take(x, ids, axis), ax_integer(2));
  switch (below(m, 6)) {
    case 0: return rows;
    case 1: return ax_take_with(x, ids, axis, &(ax_index_options){.fill_value = ax_integer(5)});
    case 2: return ax_at_add(x, ids, rows, axis, NULL);
    case 3: return ax_at_max(x, ids, rows, axis, &(ax_index_options){.mode = AX_INDEX_CLIP});
    case 4: return ax_at_set(x, ids, rows, axis, NULL);
    default: return ax_sort(x, axis);
  }
}

static ax_value next(maker *m, ax_value x, ax_value y);

static void loop_body(const ax_value *in, ax_value *out, void *context) {
  maker m = *(maker *)context;
  out[0] = fitted(&m, next(&m, in[0], in[2]), in[0]);
  out[1] = fitted(&m, next(&m, in[1], in[0]), in[1]);
  out[2] = next(&m, in[2], out[0]);
}

static void shared_body(const ax_value *in, ax_value *out, void *context) {
  maker m = *(maker *)context;
  out[0] = fitted(&m, next(&m, in[0], in[1]), in[0]);
  out[1] = below(&m, 2) == 0 ? in[1] : fitted(&m, next(&m, in[1], in[0]), in[1]);
}

static void branch_body(const ax_value *in, ax_value *out, void *context) {
  maker m = *(maker *)context;
  out[0] = fitted(&m, next(&m, next(&m, in[0], in[1]), in[1]), in[0]);
}

static void less(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_lt(in[1], ax_integer(3));
}

static void count(const ax_value *in, ax_value *out, void *context) {
  maker m = *(maker *)context;
  out[0] = fitted(&m, next(&m, in[0], in[0]), in[0]);
  out[1] = ax_add(in[1], ax_integer(1));
}

static ax_value stacked(ax_value x) {
  ax_type type = ax_typeof(x);
  int64_t dims[AX_MAX_RANK] = {3}, where[AX_MAX_RANK];
  for (uint32_t d = 0; d < type.rank; d++) dims[d + 1] = type.dims[d], where[d] = d + 1;
  return ax_broadcast_in_dim(x, AX_LIST(type.rank + 1, dims), where);
}

/* --- By hand --- */

/* "a,b", or joined by something else. */
static const char *names_of(const maker *m, ax_axis_set set, const char *between, char *out) {
  out[0] = '\0';
  for (uint32_t i = 0; i < m->mesh->count; i++)
    if (set >> i & 1) strcat(strcat(out, out[0] != '\0' ? between : ""), m->mesh->axis[i].name);
  return out;
}

static ax_axis_set some_of(maker *m, ax_axis_set set) {
  ax_axis_set some = 0;
  for (uint32_t i = 0; i < m->mesh->count; i++)
    if ((set >> i & 1) != 0 && below(m, 2) == 0) some |= (ax_axis_set)1 << i;
  return some != 0 ? some : set & (0 - set);
}

/* All devices decide alike. */
static ax_value agreed(maker *m, ax_value x) {
  char names[64];
  return m->taken != 0 ? ax_pmax(x, names_of(m, m->taken, ",", names)) : x;
}

/* In a body every value varies over all that is taken by hand. */
static ax_value varied(ax_value x) { return ax_vary_to(x, ax_checked_axes(&ax_builder_current()->axes)); }

static ax_value exchanged(maker *m, ax_value x) {
  char names[64];
  names_of(m, some_of(m, m->taken), ",", names);
  const ax_type type = ax_typeof(x);
  const int64_t members = ax_axis_size(names), d = type.rank > 0 ? below(m, type.rank) : 0,
                e = type.rank > 0 ? below(m, type.rank) : 0;
  const int64_t pairs[][2] = {{0, members - 1}, {members - 1, 0}};
  const bool divides = type.rank > 0 && type.dims[d] % members == 0;
  switch (below(m, 7)) {
    case 0: return ax_psum(x, names);
    case 1: return ax_pmin(x, names);
    case 2: return type.rank > 0 ? ax_all_gather(x, names, d, true) : ax_pmax(x, names);
    case 3: return divides ? ax_psum_scatter(x, names, d, true) : ax_pmax(x, names);
    case 4: return divides ? ax_all_to_all(x, names, d, e, true) : ax_psum(x, names);
    case 5: return ax_ppermute(x, names, members > 1 ? 2 : 1, pairs);
    default: return ax_add(x, ax_axis_index(names));
  }
}

/* A spec that divides, over axes of the set. */
static void even_spec(maker *m, const ax_type *type, ax_axis_set set, char *out) {
  out[0] = '\0';
  for (uint32_t d = 0; d < type->rank; d++) {
    int64_t left = type->dims[d];
    bool any = false;
    if (d > 0) strcat(out, ",");
    for (uint32_t i = 0; i < m->mesh->count; i++) {
      const ax_axis *axis = &m->mesh->axis[i];
      if ((set >> i & 1) == 0 || left % axis->size != 0 || below(m, 3) == 0) continue;
      strcat(strcat(out, any ? "+" : ""), axis->name);
      any = true;
      left /= axis->size;
      set &= ~((ax_axis_set)1 << i);
    }
    if (!any) strcat(out, "_");
  }
}

typedef struct part {
  maker maker;
  ax_axis_set own;
  bool joined; /* the result is put together along its first dimension */
} part;

static void part_body(const ax_value *in, ax_value *out, void *context) {
  part p = *(part *)context;
  maker *m = &p.maker;
  char names[64];
  ax_value x = varied(in[0]), y = varied(in[1]);
  x = next(m, x, y);
  y = varied(exchanged(m, y));
  x = next(m, x, y);
  out[0] = p.joined ? fitted(m, x, in[1]) : ax_psum(x, names_of(m, p.own, ",", names));
}

static ax_value by_hand(maker *m, ax_value x, ax_value y) {
  const ax_axis_set all = ((ax_axis_set)1 << m->mesh->count) - 1;
  if (m->taken == all) return x;
  part p = {.maker = *m, .own = below(m, 4) == 0 ? all & ~m->taken : some_of(m, all & ~m->taken)};
  p.maker.taken |= p.own;
  p.maker.depth--;
  test_random_bits(&m->random);
  char names[64], specs[640], one[256], other[256];
  ax_type a = ax_typeof(x), b = ax_typeof(y);
  even_spec(m, &a, p.own, one);
  even_spec(m, &b, p.own, other);
  p.joined = b.rank > 0 && below(m, 2) == 0;
  snprintf(specs, sizeof specs, "%s; %s -> %s", one, other, p.joined ? names_of(m, p.own, "+", names) : "");
  ax_value out;
  ax_shard_map_manual(m->mesh, names_of(m, p.own, ",", names), specs, AX_CLOSURE(part_body, 2, 1, &p), AX_VALUES(x, y), &out);
  return out;
}

static ax_value controlled(maker *m, ax_value x, ax_value y) {
  maker first = {m->random, m->mesh, m->depth - 1, m->taken}, second = first;
  test_random_bits(&second.random);
  test_random_bits(&m->random);
  test_random_bits(&m->random);
  ax_value out[3];
  switch (below(m, 4)) {
    case 0: {
      ax_value in[] = {x, y, stacked(below(m, 2) == 0 ? x : y)};
      ax_scan(AX_CLOSURE(loop_body, 3, 3, &first), 2, 3, below(m, 2) != 0, in, out);
      return below(m, 2) == 0 ? out[2] : fitted(m, out[1], out[0]);
    }
    case 1: {
      ax_value in[] = {x, y};
      ax_switch(ax_convert_element_type(ax_lt(agreed(m, ax_reduce_max(y, AX_ALL_DIMS, false)), ax_integer(5)), AX_S32),
                AX_FNS(AX_CLOSURE(branch_body, 2, 1, &first), AX_CLOSURE(branch_body, 2, 1, &second)), in, out);
      return out[0];
    }
    case 2: {
      ax_value in[] = {x, ax_full(AX_S32, AX_DIMS(), 0)};
      ax_while(AX_CLOSURE(less, 2, 1, &first), AX_CLOSURE(count, 2, 2, &first), in, out);
      return out[0];
    }
    default: {
      ax_value in[] = {x, y};
      ax_closed_call(AX_CLOSURE(shared_body, 2, 2, &first), in, out);
      ax_closed_call(AX_CLOSURE(shared_body, 2, 2, &first), out, in);
      return pointwise(m, in[0], fitted(m, in[1], in[0]));
    }
  }
}

static ax_value some_control(maker *m, ax_value x, ax_value y) { return below(m, 3) == 0 ? by_hand(m, x, y) : controlled(m, x, y); }

static ax_value small(ax_value made, ax_value instead) {
  ax_type type = ax_typeof(made);
  return ax_type_elems(&type) > MOST || ax_type_elems(&type) == 0 || type.rank > 4 ? instead : made;
}

static ax_value next(maker *m, ax_value x, ax_value y) {
  ax_value made;
  switch (below(m, m->depth > 0 ? 14 : 12)) {
    case 0:
    case 1: made = pointwise(m, x, fitted(m, y, x)); break;
    case 2: made = reshaped(m, x); break;
    case 3: made = turned(m, x); break;
    case 4: made = cut(m, x, y); break;
    case 5:
    case 6: made = product(m, x, y); break;
    case 7: made = reduced(m, x); break;
    case 8: made = said(m, x); break;
    case 9: made = windowed(m, x); break;
    case 10: made = convolved(m, x, y); break;
    case 11: made = indexed(m, x); break;
    default: made = some_control(m, x, y); break;
  }
  if (m->taken != 0 && below(m, 5) == 0) made = exchanged(m, made);
  if (m->taken != 0) made = varied(made);
  made = small(ax_convert_element_type(made, AX_S32), x);
  return below(m, 4) == 0 ? said(m, made) : made;
}

static void whole(const ax_value *in, ax_value *out, void *context) {
  maker m = *(maker *)context;
  ax_value pool[POOL];
  for (int i = 0; i < IN; i++) pool[i] = below(&m, 2) == 0 ? said(&m, in[i]) : in[i];
  for (int i = IN; i < POOL; i++) {
    ax_value x = pool[below(&m, i)];
    pool[i] = next(&m, x, pool[below(&m, i)]);
  }
  for (int k = 0; k < OUT; k++) out[k] = below(&m, 3) == 0 ? said(&m, pool[POOL - 1 - k]) : pool[POOL - 1 - k];
}

/* The partitioned program, and that it gives the same. */
static void same_results(const ax_program *program, ax_tensor *const *in) {
  ax_tensor **wanted = calloc(program->out_count + 1, sizeof wanted[0]), **got = calloc(program->out_count + 1, sizeof got[0]);
  ax_program *partitioned;
  TEST_OK(ax_program_partition(program, &partitioned));
  TEST_OK(ax_program_verify(partitioned));
  test_run(program, in, wanted);
  test_run(partitioned, in, got);
  for (uint32_t k = 0; k < program->out_count; k++) TEST_TENSORS_NEAR(got[k], wanted[k], 0);
  test_release(got, (int)program->out_count);
  test_release(wanted, (int)program->out_count);
  free(got), free(wanted);
  ax_program_release(partitioned);
}

static void one_program(uint64_t seed, bool show) {
  maker m = {.random = {seed}, .depth = 2};
  ax_mesh mesh;
  ax_type types[IN];
  ax_tensor *in[IN];
  TEST_OK(ax_mesh_parse(meshes[below(&m, AX_COUNT(meshes))], &mesh));
  m.mesh = &mesh;
  for (int i = 0; i < IN; i++) {
    int64_t dims[3];
    uint32_t rank = (uint32_t)below(&m, 4);
    for (uint32_t d = 0; d < rank; d++) dims[d] = sizes[below(&m, AX_COUNT(sizes))];
    types[i] = ax_array_type(AX_S32, AX_LIST(rank, dims));
    in[i] = test_random_tensor(&m.random, types[i], -9, 9);
  }
  ax_program *program = test_trace(whole, &m, types, IN, OUT);
  if (show) test_show_program(program);
  same_results(program, in);
  if (seed % 5 == 0 || show) test_every_way(program, in, 0, seed, __FILE__, __LINE__);
  test_release(in, IN);
  ax_program_release(program);
}

static void programs(void **state) {
  (void)state;
  test_each_seed(60, one_program);
  test_tell_ways();
}

/* --- The samples of every primitive --- */

/* A spec, or "?", for each input and result. */
static ax_program *laid_out(maker *m, const ax_program *program) {
  char specs[2048] = "";
  for (uint32_t i = 0; i < program->in_count + program->out_count; i++) {
    const ax_type *type = i < program->in_count ? &program->types[i] : &program->types[program->outs[i - program->in_count]];
    char spec[256] = "?";
    if (below(m, 4) > 0) random_spec(m, type, spec);
    strcat(strcat(specs, i == program->in_count ? " -> " : i > 0 ? "; " : ""), spec);
  }
  if (program->out_count == 0) strcat(specs, " -> ");
  ax_program *made;
  TEST_OK(ax_program_with_shardings(program, m->mesh, specs, &made));
  return made;
}

static void one_sample(maker *m, const test_instance *instance) {
  const ax_program *program = instance->program;
  ax_tensor **in = calloc(program->in_count + 1, sizeof in[0]), **wanted = calloc(program->out_count + 1, sizeof wanted[0]);
  ax_tensor **got = calloc(program->out_count + 1, sizeof got[0]);
  test_random data = test_instance_random(instance);
  for (uint32_t i = 0; i < program->in_count; i++)
    in[i] = test_random_tensor(&data, program->types[i], test_low(instance->sample), test_high(instance->sample));
  test_run(program, in, wanted);
  for (int turn = 0; turn < 6; turn++) {
    ax_program *made = laid_out(m, program), *partitioned;
    if (test_passes(instance, "partition", ax_program_partition(made, &partitioned))) {
      test_run(partitioned, in, got);
      for (uint32_t k = 0; k < program->out_count; k++) {
        ax_tensor *condition = test_absolute(wanted[k]);
        for (int64_t e = 0; e < test_elems(condition) && condition->dtype == AX_F64; e++)
          test_set(condition, e, 64); /* of what is summed */
        test_compare(instance, "laid over a mesh", got[k], wanted[k], condition);
        ax_tensor_release(condition);
      }
      test_release(got, (int)program->out_count);
      ax_program_release(partitioned);
    }
    ax_program_release(made);
  }
  test_release(in, (int)program->in_count);
  test_release(wanted, (int)program->out_count);
  free(in), free(wanted), free(got);
}

static void samples(void **state) {
  (void)state;
  for (size_t i = 0; i < test_sample_count; i++) {
    maker m = {.random = {i + 1}};
    ax_mesh mesh;
    if (test_samples[i].axes != NULL || test_samples[i].kernel || strstr(test_samples[i].text, "mesh=") != NULL)
      continue; /* they have a mesh */
    TEST_OK(ax_mesh_parse(i % 2 == 0 ? "u9=2,v9=2" : "u9=2,v9=3", &mesh));
    m.mesh = &mesh;
    test_instances instances = test_instances_of(&test_samples[i], &test_in_f64);
    for (uint32_t k = 0; k < instances.count; k++) one_sample(&m, &instances.v[k]);
    test_instances_release(&instances);
  }
  test_blameless();
}

/* --- By hand --- */

static ax_program *parsed(const char *text) {
  ax_program *program;
  TEST_OK(ax_program_parse(text, strlen(text), "by hand", &program));
  return program;
}

static ax_program *with(const char *text, const char *mesh, const char *specs) {
  ax_program *program = parsed(text), *laid;
  ax_mesh on;
  TEST_OK(ax_mesh_parse(mesh, &on));
  TEST_OK(ax_program_with_shardings(program, &on, specs, &laid));
  ax_program_release(program);
  return laid;
}

/* Numbers are rounded once, wherever a block begins. */
static void narrow_numbers(void **state) {
  (void)state;
  ax_program *program =
      with("{ lambda x:bf16[999]. let y:bf16[999] = iota[dtype=bf16 shape=(999,) dimension=0] z:bf16[999] = add x y in (z,) }",
           "a=3", "a -> ?");
  ax_tensor *in = test_tensor(*ax_program_in_type(program, 0), NULL);
  same_results(program, &in);
  ax_tensor_release(in);
  ax_program_release(program);
}

/* It was compiled for ever. */
static void largest_of_nothing(void **state) {
  (void)state;
  ax_program *program = parsed("{ lambda x:s32[1,0,3]. let q:s32[0,3] = argmax[axes=(0,) index_dtype=s32] x in (q,) }");
  ax_tensor *in = test_tensor(*ax_program_in_type(program, 0), NULL);
  TEST_EVERY_WAY(program, &in, 0);
  ax_tensor_release(in);
  ax_program_release(program);
}

/* Groups of no features, and of a batch of nothing, were as many on each device as on all. */
static void groups_of_nothing(void **state) {
  (void)state;
  static const char conv[] =
      "{ lambda x:s32[%s] k:s32[%s]. let y:s32[%s] = conv_general_dilated[window_strides=(1,) padding_low=(0,) padding_high=(0,) lhs_dilation=(1,)"
      " rhs_dilation=(1,) lhs_spec=(0, 1, 2) rhs_spec=(0, 1, 2) out_spec=(0, 1, 2) feature_group_count=%d batch_group_count=%d] x k in (y,) }";
  char text[2][512];
  snprintf(text[0], sizeof text[0], conv, "4,0,5", "6,0,3", "4,6,3", 2, 1);
  snprintf(text[1], sizeof text[1], conv, "0,4,5", "6,4,3", "0,6,3", 1, 2);
  for (int i = 0; i < 2; i++) {
    ax_program *program = with(text[i], "a=2", "?; a -> _,a");
    ax_tensor *in[] = {test_tensor(*ax_program_in_type(program, 0), NULL), test_tensor(*ax_program_in_type(program, 1), NULL)};
    same_results(program, in);
    test_release(in, 2);
    ax_program_release(program);
  }
}

/* Halves were converted before they were added up: to no whole number, and to as many truths as there are devices. */
static void sums_converted(void **state) {
  (void)state;
  ax_program *program = with(
      "{ lambda x:f32[2,4]. let s:f32[2] = reduce_sum[axes=(1,)] x i:s32[2] = convert_element_type[dtype=s32] s"
      " t:f32[2] = reduce_sum[axes=(1,)] x b:bool[2] = convert_element_type[dtype=bool] t"
      " u:f32[2] = reduce_sum[axes=(1,)] x h:f16[2] = convert_element_type[dtype=f16] u in (i, b, h) }",
      "a=4", "_,a -> ?; ?; ?");
  const double halves[] = {0.5, 0.5, 0.5, 0.5, 1, -1, 2048, 1};
  ax_tensor *in = test_tensor(*ax_program_in_type(program, 0), halves);
  same_results(program, &in);
  TEST_EVERY_WAY(program, &in, 0);
  ax_tensor_release(in);
  ax_program_release(program);
}

static double received(const char *mesh, const char *specs) {
  ax_program *program = with(
      "{ lambda x:f32[512,512] w:f32[512,512]. let y:f32[512,512] = dot_general[lhs_contract=(1,) rhs_contract=(0,)"
      " lhs_batch=() rhs_batch=()] x w in (y,) }",
      mesh, specs);
  ax_cost cost;
  TEST_OK(ax_program_cost(program, &cost));
  double bytes = cost.received;
  ax_cost_release(&cost);
  ax_program_release(program);
  return bytes;
}

/* An axis in two parts costs what it costs in one. */
static void axes_in_parts(void **state) {
  (void)state;
  double whole = received("a=8,b=8", "a,b; a,b -> a,b");
  assert_true(received("a=2,b=4,c=2,d=4", "a+b,c+d; a+b,c+d -> a+b,c+d") == whole);
  assert_true(received("a=4,b=2,c=4,d=2", "a+b,c+d; a+b,c+d -> a+b,c+d") == whole);
  assert_true(received("a=2,b=2,c=2,d=2,e=2,f=2", "a+b+c,d+e+f; a+b+c,d+e+f -> a+b+c,d+e+f") == whole);
}

static void mapped_over(const char *spmd, const char *spec) {
  ax_program *program = parsed("{ lambda x:f32[4]. let y:f32[4] = sharding_constraint[mesh=(a=2, b=2) specs=(P(a),)] x in (y,) }"),
             *batched, *wanted;
  char text[256];
  snprintf(text, sizeof text, "{ lambda x:f32[6,4]. let y:f32[6,4] = sharding_constraint[mesh=(a=2, b=2) specs=(%s,)] x in (y,) }",
           spec);
  wanted = parsed(text);
  TEST_OK(ax_program_vmap(program, &(ax_vmap_options){.size = 6, .spmd_axis_name = spmd}, &batched));
  assert_true(ax_program_equal(batched, wanted));
  ax_program_release(program), ax_program_release(batched), ax_program_release(wanted);
}

/* What is mapped is cut by spmd_axis_name; where no axis is left to cut it, nothing is said of it. */
static void mapped(void **state) {
  (void)state;
  mapped_over("b", "P(b, a)");
  mapped_over(NULL, "P(?, a)");
  mapped_over("a", "P(?, a)");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(programs),           cmocka_unit_test(samples),        cmocka_unit_test(narrow_numbers),
      cmocka_unit_test(largest_of_nothing), cmocka_unit_test(axes_in_parts),  cmocka_unit_test(mapped),
      cmocka_unit_test(groups_of_nothing),  cmocka_unit_test(sums_converted),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
