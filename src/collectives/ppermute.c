/* ppermute: T[d..]{V: axes, v..} -> T[d..]{V: axes, v..}     y on member `target` = x of member `source`; zeros where there is none
   Parameters: axes; pairs (source, target) of member numbers.
   Errors: an unknown axis or one named twice; an operand that does not vary over a checked axis; a number outside the group; two
   pairs with one source, or with one target.
   Linear; the transpose swaps source and target. Over several axes members are numbered in the order named, as axis_index counts
   them (jax.lax numbers them in mesh order here, whatever the order named).
   Batching over a named axis: slices of the batch dimension put in another order. */
#include <stdlib.h>
#include <string.h>

#include "collectives/collective.h"
#include "hlo/hlo.h"
#include "plan/lower.h"
#include "plan/plan.h"
#include "prim/hlo_groups.h"
#include "prim/prims.h"

/* --- infer --- */

static ax_status infer(const ax_infer_args *args) {
  const ax_ppermute_params *params = args->params;
  int64_t size;
  AX_TRY(ax_collective_size(args, &params->axes, &size));
  AX_TRY(ax_pairs_check(&params->pairs, size));
  args->out[0] = args->in[0];
  return AX_OK;
}

/* --- eval --- */

static ax_status eval(const ax_eval_args *args) {
  const ax_ppermute_params *params = args->eqn->params;
  for (uint32_t lane = 0; lane < args->lanes; lane++) {
    const ax_tensor *out = args->out[lane];
    memset(out->data, 0, (size_t)ax_dims_elems(out->rank, out->dims) * ax_dtype_bytes(out->dtype));
  }
  for (uint32_t i = 0; i < params->pairs.count; i++)
    ax_tensor_assign(args->out[params->pairs.v[i][1]], args->in[params->pairs.v[i][0]]);
  return AX_OK;
}

/* --- transpose --- */

static void transpose(const ax_transpose_args *args) {
  ax_ppermute_params params = *(const ax_ppermute_params *)args->eqn->params;
  if (!ax_pairs_swap(&((const ax_ppermute_params *)args->eqn->params)->pairs, &params.pairs)) return;
  args->out[0] = ax_bind1(&ax_prim_ppermute, &params, args->cotangent, 1);
}

/* --- batch: the batched axis, of `size`, is among the axes. Members are numbered (major, batch, minor); the rest of the axes,
   (major, minor), has `rest` members. --- */

typedef struct permutation {
  const ax_ppermute_params *params;
  ax_axes rest;
  int64_t size, rest_members, minor_members;
  ax_value x;            /* the batch dimension in front */
  int64_t (*pairs)[2];   /* room for as many as there are; binding copies them */
  struct route *routes;  /* the pairs, those to one batch element from another together */
} permutation;

typedef struct route { /* a pair: batch elements, and members along the rest */
  int64_t target, source, rest_target, rest_source;
} route;

static int64_t batch_part(const permutation *p, int64_t member) { return member / p->minor_members % p->size; }

static int64_t rest_part(const permutation *p, int64_t member) {
  return member / (p->minor_members * p->size) * p->minor_members + member % p->minor_members;
}

/* Zeros for `count` elements of the batch dimension. */
static ax_value batch_zeros(const permutation *p, int64_t count) {
  ax_type type = ax_typeof(p->x);
  if (ax_failed()) return ax_poison;
  type.dims[0] = count;
  return ax_zeros_of(&type);
}

/* Elements start .. limit of the batch dimension. */
static ax_value batch_slice(ax_value x, int64_t start, int64_t limit) {
  ax_type type = ax_typeof(x);
  int64_t starts[AX_MAX_RANK] = {0};
  if (ax_failed()) return ax_poison;
  starts[0] = start;
  type.dims[0] = limit;
  return ax_slice(x, starts, type.dims, NULL);
}

/* The batched axis is the only one: its elements in another order, runs of neighbours together, zeros between. */
static ax_value permute_batch(const permutation *p) {
  const ax_pairs *pairs = &p->params->pairs;
  int64_t *source = ax_trace_alloc((size_t)p->size * sizeof source[0]);
  ax_value *pieces = ax_trace_alloc((size_t)p->size * sizeof pieces[0]);
  if (source == NULL || pieces == NULL) return ax_poison;
  uint32_t count = 0;
  for (int64_t t = 0; t < p->size; t++) source[t] = -1;
  for (uint32_t i = 0; i < pairs->count; i++) source[pairs->v[i][1]] = pairs->v[i][0];
  for (int64_t t = 0, end; t < p->size; t = end) {
    bool none = source[t] < 0;
    for (end = t + 1; end < p->size && source[end] == (none ? -1 : source[end - 1] + 1);) end++;
    pieces[count++] = none ? batch_zeros(p, end - t) : batch_slice(p->x, source[t], source[t] + end - t);
  }
  return count == 1 ? pieces[0] : ax_concatenate(AX_LIST(count, pieces), 0);
}

/* Is this member, along the rest of the axes, a target of the pairs? A bool scalar. */
static ax_value is_target(const permutation *p, const ax_pairs *pairs) {
  ax_type type = ax_array_type(AX_BOOL, AX_LIST(1, &p->rest_members));
  unsigned char *table = ax_trace_alloc((size_t)p->rest_members);
  if (table == NULL) return ax_poison;
  for (uint32_t i = 0; i < pairs->count; i++) table[pairs->v[i][1]] = 1;
  ax_value index = ax_bind1(&ax_prim_axis_index, &p->rest, NULL, 0);
  return ax_reshape(ax_dynamic_slice(ax_constant(&type, table), &index, &(int64_t){1}), AX_DIMS());
}

static int by_route(const void *a, const void *b) {
  const route *x = a, *y = b;
  if (x->target != y->target) return x->target < y->target ? -1 : 1;
  return x->source < y->source ? -1 : x->source > y->source;
}

static void find_routes(permutation *p) {
  const ax_pairs *pairs = &p->params->pairs;
  for (uint32_t i = 0; i < pairs->count; i++)
    p->routes[i] = (route){batch_part(p, pairs->v[i][1]), batch_part(p, pairs->v[i][0]), rest_part(p, pairs->v[i][1]),
                           rest_part(p, pairs->v[i][0])};
  if (pairs->count > 0) qsort(p->routes, pairs->count, sizeof p->routes[0], by_route);
}

/* The values that batch element `target` receives, by its routes from *next on: one permutation along the rest of the axes for each
   source. */
static ax_value permute_to(const permutation *p, int64_t target, uint32_t *next) {
  const uint32_t count = p->params->pairs.count;
  ax_value result = ax_poison;
  bool any = false;
  while (*next < count && p->routes[*next].target == target && !ax_failed()) {
    ax_ppermute_params part = {p->rest, {0, p->pairs}};
    const int64_t source = p->routes[*next].source;
    for (; *next < count && p->routes[*next].target == target && p->routes[*next].source == source; ++*next) {
      part.pairs.v[part.pairs.count][0] = p->routes[*next].rest_source;
      part.pairs.v[part.pairs.count++][1] = p->routes[*next].rest_target;
    }
    ax_value slice = batch_slice(p->x, source, source + 1);
    ax_value moved = ax_bind1(&ax_prim_ppermute, &part, &slice, 1);
    result = any ? ax_select_n(is_target(p, &part.pairs), result, moved) : moved;
    any = true;
  }
  return any ? result : batch_zeros(p, 1);
}

static ax_value permute_all(permutation *p) {
  ax_value *pieces = ax_trace_alloc((size_t)p->size * sizeof pieces[0]);
  p->pairs = ax_trace_alloc(p->params->pairs.count * sizeof p->pairs[0]);
  p->routes = ax_trace_alloc(p->params->pairs.count * sizeof p->routes[0]);
  uint32_t next = 0;
  if (pieces == NULL || p->pairs == NULL || p->routes == NULL) return ax_poison;
  find_routes(p);
  for (int64_t t = 0; t < p->size; t++) pieces[t] = permute_to(p, t, &next);
  return p->size == 1 ? pieces[0] : ax_concatenate(AX_LIST((uint32_t)p->size, pieces), 0);
}

static void batch(const ax_batch_args *args) {
  const ax_ppermute_params *params = args->eqn->params;
  ax_axes major, minor;
  if (!ax_axes_around(&params->axes, args->axis, &major, &minor)) {
    args->out[0] = ax_bind1(&ax_prim_ppermute, params, args->in, 1);
    args->out_dim[0] = args->in_dim[0];
    return;
  }
  permutation p = {.params = params, .size = args->size, .minor_members = ax_axes_members(&minor)};
  ax_axes_without(&params->axes, args->axis, &p.rest);
  p.rest_members = ax_axes_members(&p.rest);
  p.x = ax_batch_front(args->in[0], args->in_dim[0], args->size);
  args->out[0] = p.rest.count == 0 ? permute_batch(&p) : permute_all(&p);
}

/* --- lower --- */

static ax_status lower(ax_lower *lower, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  const ax_ppermute_params *params = eqn->params;
  ax_exchange exchange = {.names = params->axes, .peers = AX_PEERS_PAIRS, .pairs = &params->pairs, .in = in[0]};
  AX_TRY(ax_lower_result(lower, eqn, 0, &out[0]));
  exchange.out = out[0];
  ax_exchange_whole(&exchange, ax_type_elems(&lower->program->types[eqn->out]));
  return ax_lower_exchange(lower, &exchange);
}

/* --- hlo --- */

static ax_status hlo(ax_hlo *hlo, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  const ax_ppermute_params *params = eqn->params;
  ax_hlo_attributes attributes = {.hlo = hlo};
  AX_TRY(ax_hlo_add_exchanged(&attributes, &params->axes, &params->pairs, ++hlo->channel));
  return ax_hlo_simple(hlo, eqn, "stablehlo.collective_permute", in, &attributes, out);
}

static ax_status read(const ax_hlo_read_args *args) {
  const char *names;
  ax_pairs pairs;
  AX_TRY(ax_hlo_read_pairs(args, &names, &pairs));
  if (args->op->operand_count != args->op->result_count) return ax_error(AX_INVALID_ARGUMENT, "it has a result for each operand");
  for (uint32_t k = 0; k < args->op->operand_count; k++)
    args->out[k] = (ax_ppermute)(args->in[k], names, pairs.count, (const int64_t(*)[2])pairs.v);
  return AX_OK;
}

static const ax_hlo_reader readers[] = {{"stablehlo.collective_permute", read}, {0}};

static const ax_param params[] = {{"axes", AX_PARAM_AXES, offsetof(ax_ppermute_params, axes)},
                                  {"pairs", AX_PARAM_PAIRS, offsetof(ax_ppermute_params, pairs)}};

const ax_prim ax_prim_ppermute = {
    .name = "ppermute",
    .kind = AX_COLLECTIVE,
    .effects = AX_EFFECT_EXCHANGE,
    .traffic = AX_TRAFFIC_OPERAND,
    .in_count = 1,
    .out_count = 1,
    AX_PARAMS(params, ax_ppermute_params),
    AX_LINEAR_TANGENTS,
    .kinds = AX_KINDS_ALL,
    .infer = infer,
    .spread = ax_spread_keep,
    .eval = eval,
    .differs = ax_differs_add,
    .transpose = transpose,
    .batch = batch,
    .simplify = ax_simplify_nothing,
    .shard = ax_shard_pointwise,
    .lower = lower,
    .complex = ax_complex_parts,
    .keys = ax_keys_whole,
    .reads = readers,
    .hlo = hlo,
};

ax_value ax_ppermute(ax_value x, const char *axes, uint32_t count, const int64_t (*pairs)[2]) {
  ax_ppermute_params params = {.pairs = {count, (int64_t(*)[2])pairs}};
  if (!ax_collective_operand(&ax_prim_ppermute, &x, axes, &params.axes)) return ax_poison;
  if (pairs == NULL && count > 0) return ax_reject(&ax_prim_ppermute, "there are no pairs");
  return ax_bind1(&ax_prim_ppermute, &params, &x, 1);
}
