/* reduce: x T[d..], y U[d..] .., start of x T[], start of y U[] .. -> T[the dimensions that are left], U[..] ..
   Elements are combined by the body, a function of 2n scalars (what there is so far, then the next elements) to n scalars, in
   row-major order, from the starts on. The body is associative: which elements are combined first is not said.
   Parameters: body, axes.
   Errors: no operands; not as many starts as operands; shapes that differ; an axis outside the rank or named twice; a start that is
   neither a scalar of its operand's dtype nor of the result's shape; a body that is no function of scalars of these dtypes.
   The tangent is that of the tree of elements that the compiled program combines. Cut along other dimensions; where a reduced one is
   cut, devices combine what they have, and these parts are gathered.
   Compiled: up to 16 neighbours at a time as one expression, the results of that likewise, until one is left; last with the start. Of
   elements and their places, reduced to the greatest or least: argmax or argmin (reduce_places.c). */
#include <string.h>

#include "hlo/hlo.h"
#include "hlo/read.h"
#include "ir/transform.h"
#include "ops/fold.h"
#include "ops/reduce.h"
#include "plan/lower.h"
#include "prim/composite.h"
#include "prim/expand.h"
#include "prim/prims.h"
#include "prim/region.h"
#include "prim/scalars.h"
#include "prim/shape.h"

typedef ax_reduce_by_params reduce_params;

static uint32_t count_outs(const void *params) { return ((const reduce_params *)params)->body->out_count; }

static ax_status check_body(const ax_program *body, const ax_infer_args *args, uint32_t count) {
  AX_TRY(ax_scalars_check(body, "the body"));
  if (body->in_count != 2 * count || body->out_count != count)
    return ax_error(AX_INVALID_ARGUMENT, "the body has %u inputs and %u results, not %u and %u", body->in_count, body->out_count,
                    2 * count, count);
  for (uint32_t i = 0; i < 3 * count; i++) {
    const ax_dtype is = body->types[i < 2 * count ? i : body->outs[i - 2 * count]].dtype, wanted = args->in[i % count].dtype;
    if (is != wanted)
      return ax_error(AX_INVALID_ARGUMENT, "%s %u of the body is %s, but the operand is %s", i < 2 * count ? "input" : "result",
                      i < 2 * count ? i : i - 2 * count, ax_dtype_name(is), ax_dtype_name(wanted));
  }
  return AX_OK;
}

static ax_status infer(const ax_infer_args *args) {
  const reduce_params *p = args->params;
  const uint32_t count = args->in_count / 2;
  const ax_type *first = &args->in[0];
  if (args->in_count == 0 || args->in_count % 2 != 0)
    return ax_error(AX_INVALID_ARGUMENT, "needs as many starts as operands, and at least one; %u in all", args->in_count);
  AX_TRY(ax_infer_distinct("axes", &p->axes, first->rank));
  AX_TRY(check_body(p->body, args, count));
  const ax_dims left = ax_dims_left(first, &p->axes);
  for (uint32_t k = 0; k < count; k++) {
    const ax_type *x = &args->in[k], *start = &args->in[count + k];
    if (!ax_same_shape(x, first))
      return ax_error(AX_INVALID_ARGUMENT, "operand %u, %s, has not the shape of %s", k, ax_type_string(x, args->axes),
                      ax_type_string(first, args->axes));
    args->out[k] = ax_array_type(x->dtype, AX_LIST(left.count, left.v));
    if (start->dtype != x->dtype || (start->rank != 0 && !ax_same_shape(start, &args->out[k])))
      return ax_error(AX_INVALID_ARGUMENT, "start %u is %s, neither a scalar nor of the result's %s", k,
                      ax_type_string(start, args->axes), ax_type_string(&args->out[k], args->axes));
  }
  return AX_OK;
}

/* --- eval: element after element --- */

static void copy_elem(ax_tensor *to, int64_t to_at, const ax_tensor *from, int64_t from_at) {
  const size_t bytes = ax_dtype_bytes(from->dtype);
  memcpy((char *)to->data + (size_t)to_at * bytes, (const char *)from->data + (size_t)from_at * bytes, bytes);
}

/* The elements of result i, the first of which is at `base`. */
static ax_status reduce_one(const ax_eval_args *args, const ax_scalars_run *run, const ax_reduction *r, const int64_t *strides,
                            int64_t base, int64_t i) {
  const uint32_t count = args->eqn->out_count;
  int64_t dims[AX_MAX_RANK], by[AX_MAX_RANK];
  for (uint32_t d = 0; d < r->reduced.count; d++) dims[d] = r->dims[r->kept.count + d], by[d] = strides[r->reduced.v[d]];
  for (uint32_t k = 0; k < count; k++) copy_elem(args->out[k], i, args->in[count + k], args->in[count + k]->rank == 0 ? 0 : i);
  for (int64_t j = 0; j < ax_dims_elems(r->reduced.count, dims); j++) {
    const int64_t at = base + ax_strided_at(j, r->reduced.count, dims, by);
    for (uint32_t k = 0; k < count; k++) {
      copy_elem(&run->value[k], 0, args->out[k], i);
      copy_elem(&run->value[count + k], 0, args->in[k], at);
    }
    AX_TRY(ax_scalars_step(run));
    for (uint32_t k = 0; k < count; k++) copy_elem(args->out[k], i, &run->value[run->body->outs[k]], 0);
  }
  return AX_OK;
}

static ax_status eval(const ax_eval_args *args) {
  const reduce_params *p = args->eqn->params;
  const ax_tensor *x = args->in[0];
  const ax_reduction r = ax_reduction_of(x->rank, x->dims, &p->axes);
  int64_t strides[AX_MAX_RANK], by[AX_MAX_RANK];
  ax_arena arena = {0};
  ax_scalars_run run;
  ax_dense_strides(x->rank, x->dims, strides);
  for (uint32_t d = 0; d < r.kept.count; d++) by[d] = strides[r.kept.v[d]];
  ax_status status = ax_scalars_open(&arena, p->body, &run);
  for (int64_t i = 0; status == AX_OK && i < ax_dims_elems(r.kept.count, r.dims); i++)
    status = reduce_one(args, &run, &r, strides, ax_strided_at(i, r.kept.count, r.dims, by), i);
  ax_arena_deinit(&arena);
  return status;
}

/* --- As other equations --- */

/* The start as an array of the result's shape. */
static ax_value start_of(ax_value start, const ax_dims *left) {
  if (ax_failed() || ax_typeof(start).rank == left->count) return start;
  return ax_broadcast_in_dim(start, AX_LIST(left->count, left->v), NULL);
}

/* Starts and then what the axes come to. */
static void begin(const ax_program *body, uint32_t count, const ax_value *starts, ax_value *x, const ax_dims *left) {
  ax_value *in = ax_trace_alloc(2 * (size_t)count * sizeof in[0]);
  for (uint32_t k = 0; in != NULL && k < count; k++) in[k] = start_of(starts[k], left), in[count + k] = x[k];
  if (in != NULL && !ax_failed()) ax_scalars_call(body, in, x);
}

void ax_reduce_expand(const ax_eqn *eqn, const ax_value *in, ax_value *out) {
  const reduce_params *p = eqn->params;
  const uint32_t count = eqn->out_count;
  if (ax_failed()) return;
  const ax_type type = ax_typeof(in[0]);
  const ax_dims left = ax_dims_left(&type, &p->axes);
  const bool empty = ax_type_elems(&type) == 0;
  for (uint32_t k = 0; k < count; k++) out[k] = empty ? start_of(in[count + k], &left) : in[k];
  if (empty) return;
  ax_fold(p->body, count, out, &p->axes);
  begin(p->body, count, in + count, out, &left);
}

/* --- jvp: of the tree --- */

static ax_status differentiated(const ax_jvp_args *args, const bool *wrt, ax_program **out) {
  const ax_eqn *eqn = args->eqn;
  const ax_mesh axes = ax_builder_current()->axes;
  ax_builder builder;
  ax_program *tree;
  *out = NULL;
  ax_type *types = ax_trace_alloc(eqn->in_count * sizeof types[0]);
  if (types == NULL) return ax_out_of_memory(eqn->in_count * sizeof types[0]);
  for (uint32_t i = 0; i < eqn->in_count; i++) types[i] = ax_typeof(args->in[i]);
  const ax_value *in = ax_region_begin(&builder, &axes, types, eqn->in_count);
  ax_value *made = ax_trace_alloc(eqn->out_count * sizeof made[0]);
  const ax_value *together = in != NULL ? ax_spread_together(in, eqn->in_count) : NULL;
  if (together != NULL && made != NULL) ax_reduce_expand(eqn, together, made);
  AX_TRY(ax_region_finish(&builder, made, eqn->out_count, &tree));
  ax_status status = ax_jvp_program(tree, wrt, NULL, out);
  ax_program_release(tree);
  return status;
}

static void jvp(const ax_jvp_args *args) {
  const ax_eqn *eqn = args->eqn;
  const uint32_t ins = eqn->in_count, count = eqn->out_count;
  bool *wrt = ax_trace_alloc(ins * sizeof wrt[0]);
  ax_value *in = ax_trace_alloc(2 * (size_t)ins * sizeof in[0]), *out = ax_trace_alloc(2 * (size_t)count * sizeof out[0]);
  uint32_t given = 0, made = 0;
  ax_bind(eqn->prim, eqn->params, args->in, ins, args->out, count);
  for (uint32_t k = 0; k < count; k++) args->tangent_out[k] = ax_zero;
  if (wrt == NULL || in == NULL || out == NULL || ax_failed()) return;
  for (uint32_t i = 0; i < ins; i++) {
    in[i] = args->in[i];
    wrt[i] = !ax_is_zero(args->tangent_in[i]);
    if (wrt[i]) in[ins + given++] = args->tangent_in[i];
  }
  if (given == 0) return;
  ax_program *program;
  ax_status status = differentiated(args, wrt, &program);
  if (status != AX_OK) {
    ax_fail(status);
    return;
  }
  ax_call(program, AX_LIST(ins + given, in), AX_LIST(program->out_count, out));
  for (uint32_t k = 0; k < count && !ax_failed(); k++)
    if (ax_is_differentiable(ax_typeof(args->out[k]).dtype)) args->tangent_out[k] = out[count + made++];
  ax_program_release(program);
}

/* --- batch --- */

/* A start with a batch dimension becomes one of the result's shape. */
static ax_value batched_start(ax_value start, int dim, int64_t size, const ax_dims *left) {
  if (ax_failed()) return ax_poison;
  const uint32_t rank = ax_typeof(start).rank - (dim >= 0);
  if (rank == 0 && dim < 0) return start;
  start = ax_batch_front(start, dim, size);
  if (rank == left->count) return start;
  int64_t dims[AX_MAX_RANK], front = 0;
  dims[0] = size;
  memcpy(dims + 1, left->v, left->count * sizeof dims[0]);
  return ax_broadcast_in_dim(start, AX_LIST(left->count + 1, dims), &front);
}

static void batch(const ax_batch_args *args) {
  const ax_eqn *eqn = args->eqn;
  reduce_params p = *(const reduce_params *)eqn->params;
  const uint32_t count = eqn->out_count;
  ax_value *in = ax_trace_alloc(eqn->in_count * sizeof in[0]);
  if (in == NULL) return;
  for (uint32_t k = 0; k < count; k++) in[k] = ax_batch_front(args->in[k], args->in_dim[k], args->size);
  if (ax_failed()) return;
  ax_type type = ax_typeof(in[0]);
  ax_dims_shift(&p.axes, 0);
  ax_dims left = ax_dims_left(&type, &p.axes);
  memmove(left.v, left.v + 1, --left.count * sizeof left.v[0]);
  for (uint32_t k = 0; k < count; k++) in[count + k] = batched_start(args->in[count + k], args->in_dim[count + k], args->size, &left);
  ax_bind(eqn->prim, &p, in, eqn->in_count, args->out, count);
}

/* --- shard, block --- */

static void shard(const ax_shard_args *args) {
  const ax_eqn *eqn = args->eqn;
  const ax_dims *axes = &((const reduce_params *)eqn->params)->axes;
  const ax_type *x = &args->types[eqn->in[0]];
  const uint32_t count = eqn->out_count;
  if (ax_type_elems(x) == 0) return;
  for (uint32_t d = 0, kept = 0; d < x->rank; d++) {
    const bool reduced = ax_dims_has(axes, d);
    const uint32_t factor = ax_factor(args, x->dims[d], AX_FACTOR_ALONG);
    for (uint32_t k = 0; k < count; k++) {
      ax_factor_of(&args->in[k], d, factor);
      if (!reduced && args->types[eqn->in[count + k]].rank != 0) ax_factor_of(&args->in[count + k], kept, factor);
      if (!reduced) ax_factor_of(&args->out[k], kept, factor);
    }
    kept += !reduced;
  }
}

/* The body on elements that may be missing, each with a flag in front that says that it is there: (f, a..) (g, b..) ->
   (f or g, a and b combined if both are there, else the one that is). */
static ax_status with_flags(const ax_program *body, ax_program **out) {
  const ax_mesh none = {0};
  const uint32_t count = body->out_count;
  ax_builder builder;
  *out = NULL;
  ax_type *types = ax_calloc(2 * (size_t)count + 2, sizeof types[0]);
  if (types == NULL) return ax_out_of_memory(2 * count * sizeof types[0]);
  types[0] = types[count + 1] = ax_array_type(AX_BOOL, AX_DIMS());
  for (uint32_t k = 0; k < count; k++) types[1 + k] = types[count + 2 + k] = body->types[k];
  ax_value *in = ax_region_begin(&builder, &none, types, 2 * count + 2);
  ax_value *pair = ax_trace_alloc(2 * (size_t)count * sizeof pair[0]), *made = ax_trace_alloc((count + 1) * sizeof made[0]);
  if (in != NULL && pair != NULL && made != NULL) {
    const ax_value *a = in, *b = in + count + 1;
    memcpy(pair, a + 1, count * sizeof a[0]);
    memcpy(pair + count, b + 1, count * sizeof b[0]);
    ax_scalars_call(body, pair, made + 1);
    for (uint32_t k = 1; k <= count; k++) made[k] = ax_select_n(b[0], a[k], ax_select_n(a[0], b[k], made[k]));
    made[0] = ax_or(a[0], b[0]);
  }
  ax_free(types);
  return ax_region_finish(&builder, made, count + 1, out);
}

/* Combines along one dimension after the other, the last first, so that the order is that of the whole array: each device its
   block, and then the parts of all, where blocks are cut there. */
static void fold_blocks(const ax_block_args *args, const ax_program *body, uint32_t count, ax_value *x, const ax_dims *axes) {
  for (uint32_t d = ax_failed() ? 0 : ax_typeof(x[0]).rank; d-- > 0 && !ax_failed();) {
    bool padded;
    if (!ax_dims_has(axes, d)) continue;
    const ax_axes names = ax_block_axes(args, 0, d, &padded);
    const ax_axes_list list = ax_axes_listed(&names);
    ax_fold(body, count, x, &(ax_dims){1, {d}});
    if (names.count == 0) continue;
    for (uint32_t k = 0; k < count; k++) x[k] = ax_all_gather_invariant(x[k], list.text, 0, false);
    ax_fold(body, count, x, &(ax_dims){1, {0}});
  }
}

static void block_cut(const ax_block_args *args, bool padded) {
  const ax_eqn *eqn = args->eqn;
  const reduce_params *p = eqn->params;
  const uint32_t count = eqn->out_count;
  ax_value *x = ax_trace_alloc((count + 1) * sizeof x[0]);
  ax_program *flagged = NULL;
  if (x == NULL) return;
  memcpy(x + 1, args->in, count * sizeof x[0]);
  ax_status status = padded ? with_flags(p->body, &flagged) : AX_OK;
  if (status != AX_OK) {
    ax_fail(status);
    return;
  }
  if (padded) x[0] = ax_block_unpadded(args, 0, &p->axes);
  fold_blocks(args, padded ? flagged : p->body, count + padded, x + !padded, &p->axes);
  ax_program_release(flagged);
  if (ax_failed()) return;
  const ax_type type = ax_typeof(x[1]);
  ax_dims left = {.count = type.rank};
  memcpy(left.v, type.dims, type.rank * sizeof left.v[0]);
  begin(p->body, count, args->in + count, x + 1, &left);
  memcpy(args->out, x + 1, count * sizeof x[0]);
}

static void block(const ax_block_args *args) {
  const ax_eqn *eqn = args->eqn;
  const ax_dims *axes = &((const reduce_params *)eqn->params)->axes;
  bool cut = false, padded = false;
  for (uint32_t i = 0; i < axes->count; i++) {
    bool here = false;
    cut = cut || ax_block_axes(args, 0, (uint32_t)axes->v[i], &here).count > 0;
    padded = padded || here;
  }
  if (cut) block_cut(args, padded);
  else ax_bind(eqn->prim, eqn->params, args->in, eqn->in_count, args->out, eqn->out_count);
}

static ax_status lower(ax_lower *lower, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  return ax_lower_expanded_all(lower, eqn, ax_reduce_expand, in, out);
}

/* --- hlo --- */

static ax_status hlo_reduce(ax_hlo *hlo, const ax_eqn *eqn, ax_type *scalars, uint32_t *ids, const uint32_t *in, uint32_t *out) {
  const reduce_params *p = eqn->params;
  const uint32_t count = eqn->out_count;
  const ax_type *types = hlo->program->types;
  ax_hlo_attributes attributes = {.hlo = hlo};
  for (uint32_t i = 0; i < 2 * count; i++) scalars[i] = ax_array_type(types[eqn->in[i % count]].dtype, AX_DIMS());
  ax_hlo_add_fields(&attributes, eqn->prim, p);
  out[0] = ax_hlo_begin(hlo, "stablehlo.reduce", in, 2 * count, types + eqn->out, count);
  for (uint32_t k = 1; k < count; k++) out[k] = out[0] + k;
  const uint32_t arg = ax_hlo_region_begin(hlo, scalars, 2 * count);
  for (uint32_t i = 0; i < 2 * count; i++) ids[i] = arg + i;
  AX_TRY(hlo->inline_program(hlo, p->body, ids, ids + 2 * count));
  ax_hlo_region_end(hlo, ids + 2 * count, count);
  ax_hlo_end(hlo, &attributes);
  return AX_OK;
}

static ax_status hlo(ax_hlo *hlo, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  const uint32_t count = eqn->out_count;
  for (uint32_t k = 0; k < count; k++)
    if (hlo->program->types[eqn->in[count + k]].rank != 0) return ax_hlo_expanded_all(hlo, eqn, ax_reduce_expand, in, out); /* it takes scalars */
  ax_arena arena = {0};
  ax_type *scalars = ax_arena_alloc(&arena, 2 * (size_t)count * sizeof scalars[0]);
  uint32_t *ids = ax_arena_alloc(&arena, 3 * (size_t)count * sizeof ids[0]);
  ax_status status =
      scalars == NULL || ids == NULL ? ax_out_of_memory(2 * count * sizeof scalars[0]) : hlo_reduce(hlo, eqn, scalars, ids, in, out);
  ax_arena_deinit(&arena);
  return status;
}

static const ax_hlo_form form = {.op = "stablehlo.reduce", .fields = AX_HLO_FIELDS({"dimensions", "axes"})};

/* --- The record --- */

static const ax_param params[] = {
    {"body", AX_PARAM_SCALARS, offsetof(reduce_params, body)},
    {"axes", AX_PARAM_DIMS, offsetof(reduce_params, axes)},
};

static bool from_neutral(const ax_hlo_read_args *args, const ax_dims *axes);

static ax_status read(const ax_hlo_read_args *args) {
  const uint32_t count = args->op->operand_count / 2;
  ax_hlo_body body;
  reduce_params p = {0};
  ax_fn function;
  if (args->op->operand_count != 2 * count || args->op->result_count != count)
    return ax_error(AX_INVALID_ARGUMENT, "it takes operands and as many starts, and has as many results");
  AX_TRY(ax_hlo_read_fields(args, &ax_prim_reduce, &p));
  AX_TRY(ax_hlo_body_of(args, 0, count, &body, &function));
  if (from_neutral(args, &p.axes)) return AX_OK;
  (ax_reduce)(count, args->in, count, args->in + count, function, AX_LIST(p.axes.count, p.axes.v), count, args->out);
  return AX_OK;
}

static const ax_hlo_reader readers[] = {{"stablehlo.reduce", read}, {0}};

const ax_prim ax_prim_reduce = {
    .name = "reduce", .kind = AX_LOCAL, .in_count = -1, .out_count = -1, .count_outs = count_outs,
    AX_PARAMS(params, reduce_params),
    .infer = infer, .spread = ax_spread_local, .eval = eval, .differs = ax_differs_union, .jvp = jvp, .linearize = jvp,
    .transpose = ax_absent_transpose, .batch = batch, .simplify = ax_simplify_nothing, .rewrite = ax_reduce_places,
    .shard = shard, .block = block, .lower = lower, .complex = ax_complex_whole, .form = &form, .reads = readers, .hlo = hlo,
};

/* --- The function --- */

/* A body that is one operation is a reduction by it, then combined with the start. False: there is no such reduction. */
static bool by_one_operation(const ax_program *body, ax_value x, ax_value start, const ax_dims *axes, ax_value *out) {
  const ax_prim *op = ax_scalars_operation(body);
  const ax_dtype dtype = ax_typeof(x).dtype;
  const bool bits = op == &ax_prim_and || op == &ax_prim_or || op == &ax_prim_xor;
  const ax_prim *by = op == &ax_prim_add   ? &ax_prim_reduce_sum
                      : op == &ax_prim_mul ? &ax_prim_reduce_prod
                      : op == &ax_prim_max ? &ax_prim_reduce_max
                      : op == &ax_prim_min ? &ax_prim_reduce_min
                      : op == &ax_prim_and ? &ax_prim_reduce_and
                      : op == &ax_prim_or  ? &ax_prim_reduce_or
                      : op == &ax_prim_xor ? &ax_prim_reduce_xor
                                           : NULL;
  if (by == NULL || (dtype == AX_BOOL && !bits)) return false;
  ax_value pair[] = {start, ax_bind1(by, &(ax_reduce_params){*axes}, &x, 1)};
  if (!ax_failed() && ax_broadcast_together(pair, 2)) *out = ax_bind1(op, NULL, pair, 2);
  return true;
}

/* The same without the start, where that is a constant that changes nothing. */
static bool from_neutral(const ax_hlo_read_args *args, const ax_dims *axes) {
  static const ax_prim *const family[] = {&ax_prim_reduce_and, &ax_prim_reduce_or,  &ax_prim_reduce_xor, &ax_prim_reduce_sum,
                                          &ax_prim_reduce_max, &ax_prim_reduce_min, &ax_prim_reduce_prod};
  enum { of_bits = 3 };
  const bool of_bool = ax_typeof(args->in[0]).dtype == AX_BOOL;
  const ax_prim *prim = ax_hlo_reducer_of(family, of_bool ? of_bits : AX_COUNT(family), ax_hlo_body_scalar(args->op, 0));
  if (prim == NULL || !ax_hlo_starts_neutral(args, prim->form->reducer)) return false;
  args->out[0] = ax_bind1(prim, &(ax_reduce_params){*axes}, args->in, 1);
  return true;
}

static bool take_axes(const ax_type *type, uint32_t count, const int64_t *axes, ax_dims *out) {
  *out = (ax_dims){0};
  for (; axes == NULL && count == 0 && out->count < type->rank; out->count++) out->v[out->count] = out->count;
  if (axes == NULL && count == 0) return true;
  if (!ax_dims_take(&ax_prim_reduce, count, axes, out)) return false;
  for (uint32_t i = 0; i < count; i++)
    if (!ax_dimension("reduce", "axis", &out->v[i], type->rank)) return false;
  return true;
}

void(ax_reduce)(uint32_t count, const ax_value *operands, uint32_t start_count, const ax_value *starts, ax_fn body,
                uint32_t axis_count, const int64_t *axes, uint32_t out_count, ax_value *out) {
  reduce_params p = {0};
  ax_type type;
  if (!ax_lists_fit("reduce", start_count, count, out_count, count, out)) return;
  ax_value *in = ax_trace_alloc(2 * (size_t)count * sizeof in[0]);
  ax_dtype *dtypes = ax_trace_alloc((2 * (size_t)count + body.in_count) * sizeof dtypes[0]);
  if (in == NULL || dtypes == NULL) return;
  memcpy(in, operands, count * sizeof in[0]);
  memcpy(in + count, starts, count * sizeof in[0]);
  for (uint32_t k = 0; k < count; k++) out[k] = ax_poison;
  if (count == 0 || body.in_count != 2 * count || body.out_count != count) {
    ax_reject_as("reduce", "%u operands are combined by a body with %u inputs and %u results; it must have %u and %u", count,
                 body.in_count, body.out_count, 2 * count, count);
    return;
  }
  for (uint32_t k = 0; k < count; k++) {
    if (!ax_operand("reduce", in[k], &type)) return;
    in[count + k] = ax_as("reduce", in[count + k], type.dtype);
    dtypes[k] = dtypes[count + k] = type.dtype;
  }
  type = ax_typeof(in[0]);
  if (ax_failed() || !take_axes(&type, axis_count, axes, &p.axes)) return;
  ax_status status = ax_scalars_trace("reduce", "body", body, dtypes, &p.body);
  if (status != AX_OK) {
    ax_fail(status);
    return;
  }
  const bool known = count == 1 && ax_typeof(in[1]).rank == 0 && by_one_operation(p.body, in[0], in[1], &p.axes, out);
  if (!known && !ax_failed()) ax_bind(&ax_prim_reduce, &p, in, 2 * count, out, count);
  ax_program_release(p.body);
}
