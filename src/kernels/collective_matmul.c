/* collective_matmul: x T[b.., m, k], w U[b.., k, j] -> [b.., n m, j]
      all_gather(x) w, while x is gathered; columns: w U[b.., n k, j] -> [b.., m, j]
   matmul_reduce_scatter: x T[b.., n m, k], w U[b.., k, j] -> [b.., m, j]
      psum_scatter(x w), while it is summed; columns: w U[b.., k, n j]
   Parameters: body, a program of the operands, in the environment of the equation, that computes it: a kernel on the ring of
   devices along axes; axes, of n members; columns: columns are gathered or scattered, not rows; buffering and collective_id, as of
   the body's kernel, for the kernels of its derivatives.
   Errors: operands that the body does not take; sizes that do not go together; an unknown axis.
   Bilinear. Each transpose is a product of the other kind, or one of its own kind with a transposed operand:
     z = G(x) w       x' = S(z' w^T),      w' = G(x^T) z'         where G gathers and S sums and scatters; in w' it is columns where
     z = S(x w)       x' = G(z') w^T,      w'^T = G(z'^T) x       z has rows, and rows where it has columns
   Batching: a batch of both operands is a leading dimension; of one alone it is more rows of x or columns of w. Over the axis that
   is batched, the gather or scatter and the multiplication are two operations.
   Compiled: a call of its body. StableHLO: the gather or scatter and the multiplication as two operations. */
#include <stdio.h>

#include "collectives/collective.h"
#include "control/closed_call.h"
#include "hlo/hlo.h"
#include "kernel/scratch.h"
#include "kernels/collective_matmul.h"
#include "prim/composite.h"
#include "prim/prims.h"

typedef struct product_params {
  ax_closed_call_params call;
  ax_axes axes;
  bool columns;
  int64_t buffering, collective_id;
} product_params;

static bool scatters(const ax_prim *prim) { return prim == &ax_prim_matmul_reduce_scatter; }

/* --- infer --- */

static ax_status check_sizes(const ax_infer_args *args, int64_t n) {
  const product_params *params = args->params;
  const ax_type *x = &args->in[0], *w = &args->in[1], *z = &args->out[0];
  const uint32_t rank = x->rank, rows = rank - 2, columns = rank - 1;
  bool fits = rank >= 2 && w->rank == rank && z->rank == rank;
  for (uint32_t d = 0; fits && d < rows; d++) fits = x->dims[d] == w->dims[d] && x->dims[d] == z->dims[d];
  if (fits) {
    bool scatter = scatters(args->prim);
    int64_t of_x[] = {x->dims[rows], x->dims[columns]}, of_w[] = {w->dims[rows], w->dims[columns]},
            of_z[] = {z->dims[rows], z->dims[columns]};
    int64_t *part = scatter ? &of_z[params->columns] : &of_x[params->columns];
    fits = !__builtin_mul_overflow(*part, n, part) && of_x[1] == of_w[0] && of_x[0] == of_z[0] && of_w[1] == of_z[1];
  }
  if (fits) return AX_OK;
  return ax_error(AX_INVALID_ARGUMENT, "%s and %s give %s, which is no product with %s %s over %lld members",
                  ax_type_string(x, args->axes), ax_type_string(w, args->axes), ax_type_string(z, args->axes),
                  params->columns ? "columns" : "rows", scatters(args->prim) ? "scattered" : "gathered", (long long)n);
}

static ax_status infer(const ax_infer_args *args) {
  const product_params *params = args->params;
  int64_t n;
  AX_TRY(ax_called_infer(args));
  AX_TRY(ax_collective_size(args, &params->axes, &n));
  for (int i = 0; i < 3; i++) {
    const ax_type *type = i < 2 ? &args->in[i] : &args->out[0];
    if (type->form != AX_ARRAY || type->dtype == AX_BOOL)
      return ax_error(AX_INVALID_ARGUMENT, "%s is no array of numbers", ax_type_string(type, args->axes));
  }
  return check_sizes(args, n);
}

/* --- Making one --- */

static AX_BODY(kernel_body) {
  const ax_ring_matmul *m = context;
  out[0] = m->scatter ? ax_scatter_kernel(m, in) : ax_gather_kernel(m, in);
}

/* Both operands vary over all that either does, and over the axes. */
static bool take_operands(const ax_prim *prim, ax_value *in, const char *axes, ax_axes *names) {
  ax_axis_set varying = 0;
  for (int i = 0; i < 2; i++) {
    if (!ax_collective_operand(prim, &in[i], axes, names)) return false;
    const ax_spread on = ax_typeof(in[i]).spread;
    if (on.unreduced != 0) {
      ax_reject_as(prim->name, "operand %d is parts of a sum; %s", i, ax_reduce_advice(on.kind));
      return false;
    }
    varying |= on.varying | on.reduced;
  }
  for (int i = 0; i < 2; i++) in[i] = ax_vary_to(in[i], varying);
  return !ax_failed();
}

static ax_value bind(const ax_prim *prim, ax_value x, ax_value w, const char *axes, const ax_ring_options *options) {
  ax_value in[] = {x, w};
  ax_ring_matmul m;
  product_params params = {.columns = options->columns, .buffering = options->buffering, .collective_id = options->collective_id};
  if (!ax_ring_matmul_init(&m, prim->name, scatters(prim), in, axes, NULL, options) || !take_operands(prim, in, axes, &params.axes))
    return ax_poison;
  const ax_type types[] = {ax_typeof(in[0]), ax_typeof(in[1])};
  ax_body body;
  ax_status status = ax_body_trace(
      &(ax_body_options){.owner = prim->name, .part = "kernel", .function = AX_CLOSURE(kernel_body, 2, 1, &m), .in = types}, &body);
  if (status != AX_OK) {
    ax_fail(ax_error_context(status, "%s: ", prim->name));
    return ax_poison;
  }
  params.call.body = body.program = ax_unify_program(body.program);
  ax_value out = params.call.body != NULL ? ax_bind1(prim, &params, in, 2) : ax_poison;
  ax_body_deinit(&body);
  return out;
}

enum { NAMES_BYTES = AX_MAX_AXES * (AX_MAX_NAME + 1) };
static void names_text(const ax_axes *axes, char text[NAMES_BYTES]) {
  size_t used = 0;
  text[0] = '\0';
  for (uint32_t i = 0; i < axes->count; i++)
    used += (size_t)snprintf(text + used, NAMES_BYTES - used, "%s%s", i > 0 ? "," : "", axes->name[i]);
}

/* The same axes and buffers, for a product that belongs to the equation. */
static ax_value bind_like(const ax_eqn *eqn, const ax_prim *prim, bool columns, ax_dtype dtype, ax_value x, ax_value w) {
  const product_params *params = eqn->params;
  char axes[NAMES_BYTES];
  names_text(&params->axes, axes);
  return bind(prim, x, w, axes, &(ax_ring_options){columns, dtype, params->buffering, params->collective_id});
}

static ax_value bind_again(const ax_eqn *eqn, ax_value x, ax_value w) {
  const product_params *params = eqn->params;
  const ax_program *body = params->call.body;
  return bind_like(eqn, eqn->prim, params->columns, body->types[body->outs[0]].dtype, x, w);
}

/* --- jvp, transpose --- */

static void jvp(const ax_jvp_args *args) {
  const ax_eqn *eqn = args->eqn;
  ax_value x = args->tangent_in[0], w = args->tangent_in[1];
  args->out[0] = bind_again(eqn, args->in[0], args->in[1]);
  args->tangent_out[0] = ax_add_any(ax_is_zero(x) ? ax_zero : bind_again(eqn, x, args->in[1]),
                                    ax_is_zero(w) ? ax_zero : bind_again(eqn, args->in[0], w));
}

static ax_value turned(ax_value x) { return ax_swapaxes(x, -2, -1); }

static void gather_transpose(const ax_transpose_args *args) {
  const ax_eqn *eqn = args->eqn;
  const bool columns = ((const product_params *)eqn->params)->columns;
  ax_value z = args->cotangent[0];
  if (!ax_linear_in_one(args)) return;
  if (args->linear[0])
    args->out[0] = bind_like(eqn, &ax_prim_matmul_reduce_scatter, columns, args->in_types[0].dtype, z, turned(args->in[1]));
  else args->out[1] = bind_like(eqn, eqn->prim, !columns, args->in_types[1].dtype, turned(args->in[0]), z);
}

static void scatter_transpose(const ax_transpose_args *args) {
  const ax_eqn *eqn = args->eqn;
  const bool columns = ((const product_params *)eqn->params)->columns;
  const ax_prim *gather = &ax_prim_collective_matmul;
  ax_value z = args->cotangent[0];
  if (!ax_linear_in_one(args)) return;
  if (args->linear[0]) args->out[0] = bind_like(eqn, gather, columns, args->in_types[0].dtype, z, turned(args->in[1]));
  else args->out[1] = turned(bind_like(eqn, gather, !columns, args->in_types[1].dtype, turned(z), args->in[0]));
}

/* --- batch --- */

/* Moves batch dimension `from` of x into dimension d of the remaining ones: [.., parts, size, rest, ..] becomes one dimension. */
static ax_value fold_in(ax_value x, int from, int64_t d, int64_t parts) {
  x = ax_move_dim(x, from, (int)d);
  if (parts == 1) return ax_fold_dims(x, d);
  x = ax_move_dim(ax_split_dim(x, d + 1, parts), (int)d, (int)d + 1);
  return ax_fold_dims(ax_fold_dims(x, d), d);
}

/* The inverse, for a z without another batch: the batch dimension becomes the first. */
static ax_value fold_out(ax_value made, const ax_type *z, int64_t size, int64_t d, int64_t parts) {
  int64_t dims[AX_MAX_RANK + 2], whole[AX_MAX_RANK + 1];
  if (z->rank + 2 > AX_MAX_RANK) return ax_reject_as("batch", "a result of %u dimensions, above %d", z->rank + 2, AX_MAX_RANK);
  for (uint32_t i = 0; i < z->rank; i++) dims[i < d ? i : i + 2] = whole[i + 1] = z->dims[i];
  whole[0] = size;
  dims[d] = parts, dims[d + 1] = size, dims[d + 2] = z->dims[d] / parts;
  return ax_reshape(ax_move_dim(ax_reshape(made, AX_LIST(z->rank + 2, dims)), (int)d + 1, 0), AX_LIST(z->rank + 1, whole));
}

/* Without a ring. */
static ax_status make_plain(const ax_eqn *eqn, ax_program **out) {
  const product_params *params = eqn->params;
  const ax_program *body = params->call.body;
  const bool scatter = scatters(eqn->prim);
  const ax_dtype dtype = body->types[body->outs[0]].dtype, sums = ax_ring_sums(dtype);
  ax_builder builder;
  char axes[NAMES_BYTES];
  const ax_value *in = ax_region_begin(&builder, &body->axes, body->types, 2);
  ax_value z = ax_poison;
  if (in != NULL) {
    names_text(&params->axes, axes);
    ax_value x = scatter ? in[0] : ax_all_gather(in[0], axes, params->columns ? -1 : -2, true);
    z = ax_matmul(ax_convert_element_type(x, sums), ax_convert_element_type(in[1], sums));
    if (scatter) z = ax_psum_scatter(z, axes, params->columns ? -1 : -2, true);
    z = ax_convert_element_type(z, dtype);
  }
  return ax_region_finish(&builder, &z, 1, out);
}

/* Over an axis that is being batched all that members have is at hand, and there is no ring of devices. */
static void batch_members(const ax_batch_args *args) {
  ax_program *plain, *batched;
  ax_status status = make_plain(args->eqn, &plain);
  if (status == AX_OK) status = ax_batch_program(plain, args->in_dim, args->size, args->axis, NULL, args->out_dim, &batched);
  if (status == AX_OK) ax_call(batched, args->in, args->out);
  else ax_fail(status);
  ax_program_release(plain);
  if (status == AX_OK) ax_program_release(batched);
}

static void batch(const ax_batch_args *args) {
  const ax_eqn *eqn = args->eqn;
  const product_params *params = eqn->params;
  const bool scatter = scatters(eqn->prim), of_x = args->in_dim[0] >= 0, of_w = args->in_dim[1] >= 0;
  ax_value in[] = {args->in[0], args->in[1]};
  ax_axes without;
  if (ax_axes_without(&params->axes, args->axis, &without)) {
    batch_members(args);
    return;
  }
  if (of_x == of_w) {
    for (int i = 0; i < 2; i++) in[i] = of_x ? ax_batch_front(in[i], args->in_dim[i], args->size) : in[i];
    args->out[0] = bind_again(eqn, in[0], in[1]);
    args->out_dim[0] = of_x ? 0 : -1;
    return;
  }
  const ax_type z = params->call.body->types[params->call.body->outs[0]];
  const int64_t n = ax_axes_members(&params->axes), d = (int64_t)z.rank - (of_x ? 2 : 1);
  const bool here = params->columns == of_w; /* the dimension with n parts is the one that grows */
  in[of_w] = fold_in(in[of_w], args->in_dim[of_w], d, here && scatter ? n : 1);
  args->out[0] = fold_out(bind_again(eqn, in[0], in[1]), &z, args->size, d, here && !scatter && of_x ? n : 1);
}

/* --- lower, hlo --- */

static ax_status lower(ax_lower *lower, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  return ax_lower_call(lower, ax_eqn_program(eqn, 0), in, out);
}

/* Elsewhere there are no kernels of ours. */
static ax_status hlo(ax_hlo *hlo, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  ax_program *plain;
  AX_TRY(make_plain(eqn, &plain));
  ax_status status = hlo->call_program(hlo, plain, in, out);
  ax_program_release(plain);
  return status;
}

/* --- The records --- */

static const ax_param params[] = {{"body", AX_PARAM_PROGRAM, offsetof(product_params, call.body)},
                                  {"axes", AX_PARAM_NAMES, offsetof(product_params, axes)},
                                  {"columns", AX_PARAM_BOOL, offsetof(product_params, columns)},
                                  {"buffering", AX_PARAM_I64, offsetof(product_params, buffering)},
                                  {"collective_id", AX_PARAM_I64, offsetof(product_params, collective_id)}};

#define PRODUCT_RECORD(name_, transpose_)     \
  const ax_prim ax_prim_##name_ = {           \
      .name = #name_,                         \
      .kind = AX_REGION,                      \
      .derived = true,                        \
      .unify = true,                          \
      .in_count = 2,                          \
      .out_count = 1,                         \
      AX_PARAMS(params, product_params),      \
      .infer = infer,                         \
      .spread = ax_spread_body,               \
      .eval = ax_called_eval,                 \
      .differs = ax_called_differs,           \
      .links = ax_region_links_call,          \
      .jvp = jvp,                             \
      .linearize = jvp,                       \
      .transpose = transpose_,                \
      .batch = batch,                         \
      .simplify = ax_simplify_nothing,        \
      .prune = ax_prune_nothing,              \
      .shard = ax_shard_whole,                \
      .plain = make_plain,                    \
      .lower = lower,                         \
      .hlo = hlo,                             \
  }
PRODUCT_RECORD(collective_matmul, gather_transpose);
PRODUCT_RECORD(matmul_reduce_scatter, scatter_transpose);

/* --- The functions --- */

static ax_value product(const ax_prim *prim, ax_value x, ax_value w, const char *axes, const ax_ring_options *options) {
  static const ax_ring_options none;
  return ax_ring_same_dtype(prim->name, x, w) ? bind(prim, x, w, axes, options != NULL ? options : &none) : ax_poison;
}

ax_value ax_collective_matmul(ax_value x, ax_value w, const char *axes, const ax_ring_options *options) {
  return product(&ax_prim_collective_matmul, x, w, axes, options);
}

ax_value ax_matmul_reduce_scatter(ax_value x, ax_value w, const char *axes, const ax_ring_options *options) {
  return product(&ax_prim_matmul_reduce_scatter, x, w, axes, options);
}
