/* Transposes, batching and sharding of convolutions. Groups are the major part of the dimension that they cut. */
#include <string.h>

#include "ops/conv_general_dilated.h"
#include "prim/prims.h"

/* --- Dimensions of groups --- */

/* Cuts dimension `at` in two: `groups`, and the rest. */
static ax_value split(ax_value x, uint32_t at, int64_t groups) {
  ax_type type = ax_typeof(x);
  ax_dims dims = {.count = type.rank};
  memcpy(dims.v, type.dims, sizeof type.dims);
  if (ax_failed() || !ax_dims_insert(&ax_prim_conv_general_dilated, &dims, at, groups)) return ax_poison;
  dims.v[at + 1] /= groups;
  return ax_reshape(x, AX_LIST(dims.count, dims.v));
}

/* Dimensions `at` and the next as one. */
static ax_value merge(ax_value x, uint32_t at) {
  ax_type type = ax_typeof(x);
  int64_t dims[AX_MAX_RANK];
  if (ax_failed()) return ax_poison;
  for (uint32_t d = 0; d + 1 < type.rank; d++) dims[d] = type.dims[d <= at ? d : d + 1];
  dims[at] = type.dims[at] * type.dims[at + 1];
  return ax_reshape(x, AX_LIST(type.rank - 1, dims));
}

/* The groups that cut dimension `from` are those of dimension `to` from now on. */
static ax_value move_groups(ax_value x, uint32_t from, uint32_t to, int64_t groups) {
  if (groups == 1) return x;
  ax_value moved = ax_move_dim(split(x, from, groups), (int)from, (int)to); /* the others are numbered as before */
  return merge(moved, to);
}

/* --- Transposes --- */

static void take_window(ax_conv_params *p, uint32_t i, const ax_window *w) {
  p->window_strides.v[i] = w->stride;
  p->padding_low.v[i] = w->low;
  p->padding_high.v[i] = w->high;
  p->lhs_dilation.v[i] = w->base;
  p->rhs_dilation.v[i] = w->dilation;
}

/* lhs's cotangent: rhs's in and out change places, group by group, and it is turned round. */
static ax_value transpose_lhs(const ax_conv_params *p, const ax_type *lhs, ax_value rhs, ax_value cotangent) {
  const ax_type kernel = ax_typeof(rhs);
  const int64_t groups = p->feature_group_count * p->batch_group_count; /* one of them is 1 */
  ax_conv_params t = *p;
  t.lhs_spec = p->out_spec;
  t.out_spec = p->lhs_spec;
  t.rhs_spec.v[AX_CONV_OUT] = p->rhs_spec.v[AX_CONV_IN];
  t.rhs_spec.v[AX_CONV_IN] = p->rhs_spec.v[AX_CONV_OUT];
  t.feature_group_count = groups;
  t.batch_group_count = 1;
  for (uint32_t i = 0; i < ax_conv_spatial(p); i++) {
    const ax_window w = ax_conv_window(p, lhs, &kernel, i), back = ax_window_transposed(&w);
    take_window(&t, i, &back);
  }
  rhs = move_groups(rhs, (uint32_t)p->rhs_spec.v[AX_CONV_OUT], (uint32_t)p->rhs_spec.v[AX_CONV_IN], groups);
  ax_value made = ax_conv_bind(&t, cotangent, ax_rev(rhs, AX_LIST(ax_conv_spatial(p), p->rhs_spec.v + AX_CONV_SPATIAL)));
  return move_groups(made, (uint32_t)p->lhs_spec.v[AX_CONV_FEATURE], (uint32_t)p->lhs_spec.v[AX_CONV_BATCH], p->batch_group_count);
}

/* The cotangent of rhs: a convolution that sums over lhs's batch and has lhs's features as its batch. */
static ax_value transpose_rhs(const ax_conv_params *p, ax_value lhs, const ax_type *rhs, ax_value cotangent) {
  const ax_type x = ax_typeof(lhs), y = ax_typeof(cotangent);
  ax_conv_params t = *p;
  t.lhs_spec.v[AX_CONV_BATCH] = p->lhs_spec.v[AX_CONV_FEATURE];
  t.lhs_spec.v[AX_CONV_FEATURE] = p->lhs_spec.v[AX_CONV_BATCH];
  t.rhs_spec = p->out_spec;
  t.rhs_spec.v[AX_CONV_OUT] = p->out_spec.v[AX_CONV_FEATURE];
  t.rhs_spec.v[AX_CONV_IN] = p->out_spec.v[AX_CONV_BATCH];
  t.out_spec = p->rhs_spec;
  t.out_spec.v[AX_CONV_BATCH] = p->rhs_spec.v[AX_CONV_IN];
  t.out_spec.v[AX_CONV_FEATURE] = p->rhs_spec.v[AX_CONV_OUT];
  t.feature_group_count = p->batch_group_count;
  t.batch_group_count = p->feature_group_count;
  for (uint32_t i = 0; i < ax_conv_spatial(p); i++) {
    ax_window w = ax_conv_window(p, &x, rhs, i);
    ax_window over = {.array = w.array, .base = w.base, .low = w.low, .size = y.dims[p->out_spec.v[AX_CONV_SPATIAL + i]],
                      .dilation = w.stride, .stride = w.dilation};
    over.high = (w.size - 1) * w.dilation + ax_dilated(over.size, over.dilation) - ax_dilated(w.array, w.base) - w.low;
    take_window(&t, i, &over);
  }
  return ax_conv_bind(&t, lhs, cotangent);
}

/* Says that an operand or the result has no elements: all cotangents are zero then. */
static bool is_empty(const ax_transpose_args *args) {
  ax_type y = ax_typeof(args->cotangent[0]);
  return ax_type_elems(&args->in_types[0]) == 0 || ax_type_elems(&args->in_types[1]) == 0 || ax_type_elems(&y) == 0;
}

void ax_conv_transpose(const ax_transpose_args *args) {
  const ax_conv_params *p = args->eqn->params;
  if (!ax_linear_in_one(args) || is_empty(args)) return;
  if (args->linear[0]) args->out[0] = transpose_lhs(p, &args->in_types[0], args->in[1], args->cotangent[0]);
  if (args->linear[1]) args->out[1] = transpose_rhs(p, args->in[0], &args->in_types[1], args->cotangent[0]);
}

/* --- batch --- */

/* Merges the batch dimension `from` into dimension `at` of the remaining ones, inside its groups. */
static ax_value batch_into(ax_value x, int from, int64_t at, int64_t groups) {
  x = split(ax_move_dim(x, from, 0), (uint32_t)at + 1, groups);
  return merge(merge(ax_move_dim(x, 0, (int)at + 1), (uint32_t)at + 1), (uint32_t)at);
}

/* Out of dimension `at`, to the front. */
static ax_value batch_out_of(ax_value x, int64_t at, int64_t groups, int64_t size) {
  x = split(split(x, (uint32_t)at, groups), (uint32_t)at + 1, size);
  return merge(ax_move_dim(x, (int)at + 1, 0), (uint32_t)at + 1);
}

void ax_conv_batch(const ax_batch_args *args) {
  ax_conv_params p = *(const ax_conv_params *)args->eqn->params;
  const int left = args->in_dim[0], right = args->in_dim[1];
  const int64_t size = args->size, bg = p.batch_group_count, groups = p.feature_group_count * bg;
  ax_value lhs = args->in[0], rhs = args->in[1];
  const int64_t features = p.out_spec.v[AX_CONV_FEATURE];
  args->out_dim[0] = 0;
  if (size == 0) { /* of no elements: any of them would do */
    for (uint32_t i = 0; i < 2; i++)
      if (args->in_dim[i] >= 0) *(i == 0 ? &lhs : &rhs) = ax_reduce_sum(args->in[i], AX_DIMS(args->in_dim[i]), false);
    args->out[0] = ax_batch_front(ax_conv_bind(&p, lhs, rhs), -1, size);
    return;
  }
  if (right < 0) {
    lhs = batch_into(lhs, left, p.lhs_spec.v[AX_CONV_BATCH], bg);
    args->out[0] = batch_out_of(ax_conv_bind(&p, lhs, rhs), p.out_spec.v[AX_CONV_BATCH], 1, size);
    return;
  }
  if (left < 0) {
    rhs = batch_into(rhs, right, p.rhs_spec.v[AX_CONV_OUT], groups);
    args->out[0] = batch_out_of(ax_conv_bind(&p, lhs, rhs), features, groups, size);
    return;
  }
  *(bg > 1 ? &p.batch_group_count : &p.feature_group_count) *= size;
  lhs = batch_into(lhs, left, p.lhs_spec.v[bg > 1 ? AX_CONV_BATCH : AX_CONV_FEATURE], 1);
  rhs = batch_into(rhs, right, p.rhs_spec.v[AX_CONV_OUT], 1);
  args->out[0] = batch_out_of(ax_conv_bind(&p, lhs, rhs), features, 1, size);
}

/* --- shard --- */

/* The first of two factors of a dimension is of groups, where there are several. */
static uint32_t group_factor(const ax_shard_args *args, int64_t groups) {
  return groups > 1 ? ax_factor(args, groups, AX_FACTOR_ALONG) : UINT32_MAX;
}

static void grouped_factor_of(ax_factored *tensor, int64_t d, uint32_t group, uint32_t factor) {
  if (group != UINT32_MAX) ax_factor_of(tensor, d, group);
  ax_factor_of(tensor, d, factor);
}

/* A window's positions, which are the result's, or its places, which are the kernel's. */
static void shard_spatial(const ax_shard_args *args, const ax_conv_params *p, uint32_t i) {
  const ax_type *lhs = &args->types[args->eqn->in[0]], *rhs = &args->types[args->eqn->in[1]];
  const int64_t left = p->lhs_spec.v[AX_CONV_SPATIAL + i], right = p->rhs_spec.v[AX_CONV_SPATIAL + i],
                made = p->out_spec.v[AX_CONV_SPATIAL + i];
  const ax_window w = ax_conv_window(p, lhs, rhs, i);
  const int64_t positions = ax_window_count(&w);
  if (w.array == 0 || w.size == 0 || positions == 0) return;
  if (positions >= w.size) {
    const uint32_t factor = ax_factor(args, positions, AX_FACTOR_ALONG);
    ax_factor_reaches(&args->in[0], left, factor,
                      (ax_reach){-w.low, w.stride, ax_dilated(w.size, w.dilation), w.base, AX_FILL_ZERO});
    ax_factor_of(&args->out[0], made, factor);
    (void)ax_factor(args, w.size, AX_FACTOR_ALONG); /* work, of nothing that is cut */
  } else {
    const uint32_t factor = ax_factor(args, w.size, AX_FACTOR_SUM);
    ax_factor_reaches(&args->in[0], left, factor,
                      (ax_reach){-w.low, w.dilation, ax_dilated(positions, w.stride), w.base, AX_FILL_ZERO});
    ax_factor_of(&args->in[1], right, factor);
    (void)ax_factor(args, positions, AX_FACTOR_ALONG);
  }
}

void ax_conv_shard(const ax_shard_args *args) {
  const ax_conv_params *p = args->eqn->params;
  const ax_type *lhs = &args->types[args->eqn->in[0]], *rhs = &args->types[args->eqn->in[1]];
  const int64_t fg = p->feature_group_count, bg = p->batch_group_count;
  const int64_t in = rhs->dims[p->rhs_spec.v[AX_CONV_IN]], out = rhs->dims[p->rhs_spec.v[AX_CONV_OUT]];
  const uint32_t features = group_factor(args, fg), batches = group_factor(args, bg),
                 groups = features != UINT32_MAX ? features : batches;
  const uint32_t batch = ax_factor(args, lhs->dims[p->lhs_spec.v[AX_CONV_BATCH]] / bg, AX_FACTOR_ALONG);
  const uint32_t made = ax_factor(args, out / (fg * bg), AX_FACTOR_ALONG), summed = ax_factor(args, in, AX_FACTOR_SUM);
  grouped_factor_of(&args->in[0], p->lhs_spec.v[AX_CONV_BATCH], batches, batch);
  ax_factor_of(&args->out[0], p->out_spec.v[AX_CONV_BATCH], batch);
  grouped_factor_of(&args->in[0], p->lhs_spec.v[AX_CONV_FEATURE], features, summed);
  ax_factor_of(&args->in[1], p->rhs_spec.v[AX_CONV_IN], summed);
  grouped_factor_of(&args->in[1], p->rhs_spec.v[AX_CONV_OUT], groups, made);
  grouped_factor_of(&args->out[0], p->out_spec.v[AX_CONV_FEATURE], groups, made);
  for (uint32_t i = 0; i < ax_conv_spatial(p); i++) shard_spatial(args, p, i);
}

/* As many groups as blocks have, and of nothing one; what windows see is padded and dilated already. */
void ax_conv_block(const ax_block_args *args) {
  ax_conv_params p = *(const ax_conv_params *)args->eqn->params;
  const ax_type lhs = ax_typeof(args->in[0]), rhs = ax_typeof(args->in[1]);
  if (ax_failed()) return;
  const int64_t in = rhs.dims[p.rhs_spec.v[AX_CONV_IN]], batch = args->blocks[0].dims[p.out_spec.v[AX_CONV_BATCH]];
  p.feature_group_count = in > 0 ? lhs.dims[p.lhs_spec.v[AX_CONV_FEATURE]] / in : 1;
  p.batch_group_count = batch > 0 ? lhs.dims[p.lhs_spec.v[AX_CONV_BATCH]] / batch : 1;
  for (uint32_t i = 0; i < ax_conv_spatial(&p); i++) {
    if ((args->reached[0] >> p.lhs_spec.v[AX_CONV_SPATIAL + i] & 1) == 0) continue;
    p.padding_low.v[i] = p.padding_high.v[i] = 0;
    p.lhs_dilation.v[i] = 1;
  }
  args->out[0] = ax_conv_bind(&p, args->in[0], args->in[1]);
}
