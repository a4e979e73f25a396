/* Whole Jacobians, inside a trace: the linear map on all basis vectors together, by vmap.

     jacfwd   basis [total, x_k..] for each x_k     jvp, batched         dy_r [y_r.., total]    its columns of x_k -> [y_r.., x_k..]
     jacrev   basis [total, y_r..] for each y_r     transposed, batched  dx_k [total, x_k..]    its rows of y_r    -> [y_r.., x_k..]

   The basis is that of all arrays laid end to end, and each array has a range of it. So one batch goes through the function,
   however many operands it has. */
#include <string.h>

#include "xform/in_trace.h"

/* Arrays laid end to end. */
typedef struct ends {
  uint32_t count;
  const ax_type *types;
  int64_t *start; /* count + 1 of them; the last is the total */
} ends;

static ax_status ends_init(ends *e, ax_arena *arena, const ax_type *types, uint32_t count) {
  *e = (ends){.count = count, .types = types, .start = ax_arena_alloc(arena, ((size_t)count + 1) * sizeof e->start[0])};
  if (e->start == NULL) return ax_out_of_memory(((size_t)count + 1) * sizeof e->start[0]);
  for (uint32_t k = 0; k < count; k++)
    if (__builtin_add_overflow(e->start[k], ax_type_elems(&types[k]), &e->start[k + 1]))
      return ax_error(AX_INVALID_ARGUMENT, "there are too many elements");
  return AX_OK;
}

/* Array k's part of the basis: [total, dims..], a row for each element of all arrays. */
static ax_value basis(const ends *e, uint32_t k) {
  const ax_type *type = &e->types[k];
  int64_t total = e->start[e->count], flat[] = {total, e->start[k + 1] - e->start[k]}, dims[AX_MAX_RANK + 1] = {total};
  ax_dtype index = total <= INT32_MAX ? AX_S32 : AX_S64;
  memcpy(dims + 1, type->dims, type->rank * sizeof dims[0]);
  ax_value row = ax_iota(index, AX_LIST(2, flat), 0), column = ax_iota(index, AX_LIST(2, flat), 1);
  ax_value units = ax_convert_element_type(ax_eq(row, ax_add(column, ax_integer(e->start[k]))), type->dtype);
  return ax_placed(ax_reshape(units, AX_LIST(type->rank + 1, dims)), &type->spread);
}

/* The part of `all` that belongs to `array`, as [y.., x..]: a range of the dimension that goes over all arrays. */
static ax_value piece(ax_value all, const ends *e, uint32_t array, int64_t dimension, const ax_type *y, const ax_type *x) {
  int64_t dims[2 * AX_MAX_RANK];
  memcpy(dims, y->dims, y->rank * sizeof dims[0]);
  memcpy(dims + y->rank, x->dims, x->rank * sizeof dims[0]);
  if (e->count > 1) all = ax_slice_in_dim(all, e->start[array], e->start[array + 1], 1, dimension);
  return ax_reshape(all, AX_LIST(y->rank + x->rank, dims));
}

/* --- As programs: (x..) -> (y..) becomes (x..) -> (dy_r/dx_k..), r major --- */

typedef struct jacobian {
  const ax_program *program;
  ax_args wrt;
  ax_arena arena;
  ends x, y;
} jacobian;

static ax_status check_rank(const ax_type *y, const ax_type *x, const ax_mesh *axes) {
  uint32_t rank = y->rank + x->rank;
  if (rank <= AX_MAX_RANK && y->rank < AX_MAX_RANK && x->rank < AX_MAX_RANK) return AX_OK;
  return ax_error(AX_INVALID_ARGUMENT, "the derivative of %s by %s: there may be %d dimensions, and one less in each",
                  ax_type_string(y, axes), ax_type_string(x, axes), AX_MAX_RANK);
}

/* Whose derivative is a complex number only where the function is holomorphic. */
static ax_status refuse_complex(const char *what, uint32_t k, const ax_type *type, const ax_mesh *axes) {
  return ax_error(AX_INVALID_ARGUMENT, "%s %u is %s: Jacobians are by floats of floats; split complex numbers into their parts", what, k,
                  ax_type_string(type, axes));
}

static ax_status jacobian_init(jacobian *j, const ax_program *program, ax_args wrt) {
  *j = (jacobian){.program = program, .wrt = wrt};
  if ((uint64_t)program->out_count * wrt.count > UINT32_MAX)
    return ax_error(AX_INVALID_ARGUMENT, "%u results by %u operands are too many", program->out_count, wrt.count);
  ax_type *x = ax_arena_alloc(&j->arena, ((size_t)wrt.count + program->out_count) * sizeof x[0]), *y = x + wrt.count;
  if (x == NULL) return ax_out_of_memory(((size_t)wrt.count + program->out_count) * sizeof x[0]);
  uint32_t most_x = 0, most_y = 0;
  for (uint32_t k = 0; k < wrt.count; k++) {
    x[k] = ax_tangent(&program->types[wrt.list[k]]);
    if (ax_is_complex(x[k].dtype)) return refuse_complex("operand", k, &x[k], &program->axes);
    if (x[k].rank > x[most_x].rank) most_x = k;
  }
  for (uint32_t r = 0; r < program->out_count; r++) {
    y[r] = *ax_program_out_type(program, r);
    if (ax_is_complex(y[r].dtype)) return refuse_complex("result", r, &y[r], &program->axes);
    if (!ax_is_differentiable(y[r].dtype))
      return ax_error(AX_INVALID_ARGUMENT, "result %u is %s: only floats have derivatives", r,
                      ax_type_string(&y[r], &program->axes));
    y[r] = ax_dual(&y[r]);
    if (y[r].rank > y[most_y].rank) most_y = r;
  }
  if (program->out_count > 0) AX_TRY(check_rank(&y[most_y], &x[most_x], &program->axes));
  AX_TRY(ends_init(&j->x, &j->arena, x, wrt.count));
  return ends_init(&j->y, &j->arena, y, program->out_count);
}

/* `linear`, whose inputs from `first` on are those of the basis, on all of it at once. Its results from `made` on are wanted, with
   their batch dimensions at at[0], .. */
static ax_status batch(jacobian *j, const ax_program *linear, uint32_t first, uint32_t made, const int *at, int64_t total,
                       ax_program **out) {
  int *dims = ax_arena_alloc(&j->arena, ((size_t)linear->in_count + linear->out_count) * sizeof dims[0]);
  if (dims == NULL) return ax_out_of_memory(((size_t)linear->in_count + linear->out_count) * sizeof dims[0]);
  int *want = dims + linear->in_count;
  for (uint32_t i = 0; i < first; i++) dims[i] = -1;
  for (uint32_t k = 0; k < linear->out_count; k++) want[k] = k < made ? AX_BATCH_ANY : at[k - made];
  return ax_batch_program(linear, dims, total, NULL, want, NULL, out);
}

/* The builder is current, `in` its inputs. Gives the results; NULL: it has failed. */
static ax_value *forward(jacobian *j, const ax_value *in) {
  const ax_program *program = j->program;
  ax_program *jvp = NULL, *batched = NULL;
  uint32_t x_count = j->x.count, y_count = j->y.count;
  int *at = ax_trace_alloc(y_count * sizeof at[0]);
  for (uint32_t r = 0; r < y_count && at != NULL; r++) at[r] = (int)j->y.types[r].rank;
  ax_value *operands = ax_trace_alloc(((size_t)program->in_count + x_count) * sizeof operands[0]);
  ax_value *made = ax_trace_alloc(2 * (size_t)y_count * sizeof made[0]),
           *outs = ax_trace_alloc((size_t)y_count * x_count * sizeof outs[0]);
  if (ax_failed()) return NULL;
  ax_status status = ax_program_jvp(program, j->wrt, &jvp);
  if (status == AX_OK) status = batch(j, jvp, program->in_count, y_count, at, j->x.start[x_count], &batched);
  ax_program_release(jvp);
  if (status != AX_OK) {
    ax_fail(status);
    return NULL;
  }
  if (program->in_count > 0) memcpy(operands, in, program->in_count * sizeof in[0]);
  for (uint32_t k = 0; k < x_count; k++) operands[program->in_count + k] = basis(&j->x, k);
  ax_call(batched, operands, made);
  ax_program_release(batched);
  for (uint32_t r = 0; r < y_count; r++)
    for (uint32_t k = 0; k < x_count; k++)
      outs[r * x_count + k] = piece(made[y_count + r], &j->x, k, at[r], &j->y.types[r], &j->x.types[k]);
  return outs;
}

/* primal on `in`; its residuals, and the basis, to `transposed`, batched. Both are consumed. */
static void call_halves(const jacobian *j, const ax_value *in, ax_program *primal, ax_program *batched, uint32_t residuals,
                        ax_value *made) {
  uint32_t y_count = j->y.count;
  ax_value *kept = ax_trace_alloc((primal->out_count + (size_t)y_count) * sizeof kept[0]);
  if (kept != NULL) {
    ax_call(primal, in, kept);
    for (uint32_t r = 0; r < y_count; r++) kept[primal->out_count + r] = basis(&j->y, r);
    ax_call(batched, AX_LIST(residuals + y_count, kept + y_count), AX_LIST(batched->out_count, made));
  }
  ax_program_release(primal);
  ax_program_release(batched);
}

static ax_value *reverse(jacobian *j, const ax_value *in) {
  ax_program *primal = NULL, *tangent = NULL, *transposed = NULL, *batched = NULL;
  uint32_t x_count = j->x.count, y_count = j->y.count, residuals;
  int *at = ax_trace_alloc(x_count * sizeof at[0]); /* in front */
  ax_value *made = ax_trace_alloc(x_count * sizeof made[0]), *outs = ax_trace_alloc((size_t)y_count * x_count * sizeof outs[0]);
  if (ax_failed()) return NULL;
  ax_status status = ax_program_linearize(j->program, j->wrt, &primal, &tangent, &residuals);
  if (status == AX_OK) status = ax_program_transpose(tangent, AX_RANGE(residuals, x_count), &transposed);
  if (status == AX_OK) status = batch(j, transposed, residuals, 0, at, j->y.start[y_count], &batched);
  ax_program_release(tangent);
  ax_program_release(transposed);
  if (status != AX_OK) {
    ax_program_release(primal);
    ax_fail(status);
    return NULL;
  }
  call_halves(j, in, primal, batched, residuals, made);
  for (uint32_t r = 0; r < y_count; r++)
    for (uint32_t k = 0; k < x_count; k++) outs[r * x_count + k] = piece(made[k], &j->y, r, 0, &j->y.types[r], &j->x.types[k]);
  return outs;
}

typedef ax_value *direction(jacobian *j, const ax_value *in);

static ax_status make(const ax_program *program, ax_args wrt, direction *way, ax_program **out) {
  jacobian j;
  ax_builder builder;
  *out = NULL;
  ax_status status = jacobian_init(&j, program, wrt);
  if (status == AX_OK) {
    const ax_value *in = ax_region_begin(&builder, &program->axes, program->types, program->in_count);
    const ax_value *outs = in != NULL ? way(&j, in) : NULL;
    status = ax_finish_clean(&builder, outs, wrt.count * program->out_count, out);
  }
  ax_arena_deinit(&j.arena);
  return status;
}

/* --- In the trace --- */

/* The way there and, of a Hessian, the way that is gone after it; or NULL. */
static void derive(const char *what, direction *first, direction *second, ax_fn function, ax_args wrt, ax_in_and_out l) {
  ax_traced f;
  ax_program *once = NULL, *twice = NULL;
  bool ready = ax_traced_begin(&f, what, function, wrt, l.in_count, l.in);
  uint32_t count = function.out_count * f.by_count * (second != NULL ? f.by_count : 1);
  ready = ax_traced_results(what, l.out_count, count, l.out) && ready;
  if (ready && ax_traced_trace(&f, NULL)) {
    ax_args inputs = ax_traced_inputs(&f);
    ax_status status = ax_failed() ? AX_OK : make(f.body.program, inputs, first, &once);
    if (status == AX_OK && once != NULL && second != NULL) status = make(once, inputs, second, &twice);
    ax_traced_call(&f, status, second != NULL ? twice : once, NULL, 0, l.out, count);
    if (second != NULL) ax_program_release(once);
  }
  ax_traced_deinit(&f);
}

void (ax_jacfwd)(ax_fn f, ax_args wrt, uint32_t in_count, const ax_value *in, uint32_t out_count, ax_value *out) {
  derive("jacfwd", forward, NULL, f, wrt, (ax_in_and_out){in_count, in, out_count, out});
}

void (ax_jacrev)(ax_fn f, ax_args wrt, uint32_t in_count, const ax_value *in, uint32_t out_count, ax_value *out) {
  derive("jacrev", reverse, NULL, f, wrt, (ax_in_and_out){in_count, in, out_count, out});
}

void (ax_hessian)(ax_fn f, ax_args wrt, uint32_t in_count, const ax_value *in, uint32_t out_count, ax_value *out) {
  derive("hessian", reverse, forward, f, wrt, (ax_in_and_out){in_count, in, out_count, out});
}
