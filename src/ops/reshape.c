/* reshape: T[d..] -> T[new_sizes..]         the same elements in row-major order
   Parameters: new_sizes.
   Errors: another number of elements; a negative size.
   Linear; the transpose is the reshape back. The result is the operand's memory. */
#include "hlo/hlo.h"
#include "prim/prims.h"
#include "prim/shape.h"

typedef struct reshape_params {
  ax_dims new_sizes;
} reshape_params;

static ax_status infer(const ax_infer_args *args) {
  const reshape_params *p = args->params;
  int64_t elems = 1;
  AX_TRY(ax_infer_shape(args->in[0].dtype, &p->new_sizes, &args->out[0]));
  if (ax_dims_has(&p->new_sizes, 0)) elems = 0;
  for (uint32_t d = 0; d < p->new_sizes.count && elems > 0; d++)
    if (!ax_mul_i64(elems, p->new_sizes.v[d], &elems))
      return ax_error(AX_INVALID_ARGUMENT, "the new sizes are too large: %s",
                      ax_type_string(&args->out[0], args->axes));
  if (elems != ax_type_elems(&args->in[0]))
    return ax_error(AX_INVALID_ARGUMENT, "%lld elements do not fill %s", (long long)ax_type_elems(&args->in[0]),
                    ax_type_string(&args->out[0], args->axes));
  return AX_OK;
}

static void transpose(const ax_transpose_args *args) {
  args->out[0] = ax_reshape(args->cotangent[0], AX_LIST(args->in_types[0].rank, args->in_types[0].dims));
}

static void batch(const ax_batch_args *args) {
  reshape_params p = *(const reshape_params *)args->eqn->params;
  if (!ax_dims_insert(args->eqn->prim, &p.new_sizes, 0, args->size)) return;
  args->out[0] = ax_reshape(ax_batch_front(args->in[0], args->in_dim[0], args->size), AX_LIST(p.new_sizes.count, p.new_sizes.v));
}

/* A reshape of a reshape is one; to the shape there is, none. */
static void simplify(const ax_simplify_args *args) {
  const ax_eqn *inner = ax_simplify_operand(args, 0, &ax_prim_reshape);
  if (inner != NULL) ax_simplify_replace(args, 0, inner->in[0], args->eqn->params);
  uint32_t x = args->eqn->in[0];
  if (ax_same_shape(&args->types[x], &args->types[args->eqn->out])) args->same[0] = x;
}

/* Runs of dimensions on both sides that hold the same elements are cut at the same places: [6,4] and [2,12] go by the factors 2, 3,
   4 of which the last two are one dimension there. Where sizes do not go together the rest of a run is one factor that neither side
   is cut by. */
static void shard(const ax_shard_args *args) {
  const ax_type *x = &args->types[args->eqn->in[0]], *y = &args->types[args->eqn->out];
  int64_t left = 1, right = 1; /* of the dimensions under way */
  uint32_t i = 0, k = 0;       /* behind them */
  if (ax_type_elems(x) == 0) return;
  while (i < x->rank || k < y->rank || left > 1 || right > 1) {
    if (left == 1 && i < x->rank) left = x->dims[i++];
    if (right == 1 && k < y->rank) right = y->dims[k++];
    if (left == 1 && i < x->rank) continue;
    if (right == 1 && k < y->rank) continue;
    int64_t size = left < right ? left : right;
    if (size == 1 || left % size != 0 || right % size != 0) return;
    uint32_t factor = ax_factor(args, size, AX_FACTOR_ALONG);
    ax_factor_of(&args->in[0], i - 1, factor);
    ax_factor_of(&args->out[0], k - 1, factor);
    left /= size;
    right /= size;
  }
}

static void block(const ax_block_args *args) {
  args->out[0] = ax_reshape(args->in[0], AX_LIST(args->blocks[0].rank, args->blocks[0].dims));
}

static ax_status lower(ax_lower *lower, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  return ax_lower_as_view(lower, eqn, in[0], 0, &out[0]);
}

static const ax_hlo_form form = {.op = "stablehlo.reshape", .fields = AX_HLO_FIELDS({NULL, "new_sizes"})};

static const ax_param params[] = {{"new_sizes", AX_PARAM_DIMS, offsetof(reshape_params, new_sizes)}};

const ax_prim ax_prim_reshape = {
    .name = "reshape", .kind = AX_LOCAL, .cheap = true, .in_count = 1, .out_count = 1,
    AX_PARAMS(params, reshape_params),
    .linear = AX_LINEAR_ALL, .kinds = AX_KINDS_ALL,
    .infer = infer, .spread = ax_spread_local, .eval = ax_eval_same, .differs = ax_differs_union,
    .jvp = ax_jvp_linear, .linearize = ax_jvp_linear,
    .transpose = transpose, .batch = batch, .simplify = simplify, .shard = shard, .block = block, .lower = lower,
    .complex = ax_complex_parts, .keys = ax_keys_whole, .form = &form, .hlo = ax_hlo_by_form,
};

/* Replaces a size -1 by the quotient of the elements and the other sizes. False: the trace has failed. */
static bool fill_in(const ax_type *type, ax_dims *dims) {
  int64_t others = 1, elems = ax_type_elems(type);
  uint32_t open = AX_NONE, count = 0;
  for (uint32_t d = 0; d < dims->count; d++) {
    bool is_open = dims->v[d] == -1;
    count += is_open;
    if (is_open) open = d;
    else if (dims->v[d] < 0 || !ax_mul_i64(others, dims->v[d], &others)) return true; /* infer reports the error */
  }
  if (count == 0) return true;
  if (count == 1 && others > 0 && elems % others == 0) dims->v[open] = elems / others;
  else if (count > 1) ax_reject(&ax_prim_reshape, "%u dimensions are -1: one may be", count);
  else
    ax_reject(&ax_prim_reshape, "dimension %u is -1, but the others' %lld elements do not divide the %lld of %s", open,
              (long long)others, (long long)elems, ax_type_string(type, &ax_builder_current()->axes));
  return !ax_failed();
}

ax_value (ax_reshape)(ax_value x, uint32_t rank, const int64_t *dims) {
  reshape_params p;
  if (!ax_dims_take(&ax_prim_reshape, rank, dims, &p.new_sizes)) return ax_poison;
  ax_type type = ax_typeof(x);
  if (ax_failed()) return ax_poison;
  if (!fill_in(&type, &p.new_sizes)) return ax_poison;
  ax_type wanted = ax_array_type(type.dtype, AX_LIST(rank, p.new_sizes.v));
  if (wanted.dtype != AX_NO_DTYPE && ax_same_shape(&type, &wanted)) return x;
  return ax_bind1(&ax_prim_reshape, &p, &x, 1);
}
