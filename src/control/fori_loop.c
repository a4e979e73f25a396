/* fori_loop: a scan if both bounds are numbers or constants, so that it has all derivatives; otherwise a while. The index is a carry
   behind the user's carries, so that messages number carries as the user does.

   A bound that is a value is known if it is an equation of constants alone: its rule computes it here, as it would in a run. So
   ax_full of a count, or half of it, makes a scan as the count itself does. */
#include <math.h>

#include "control/fori_loop.h"
#include "ir/number.h"
#include "ir/prim.h"
#include "prim/composite.h"

ax_value ax_fori_next(const char *function, ax_value index) {
  return ax_add(index, ax_as(function, ax_integer(1), ax_typeof(index).dtype));
}

/* As in scan and while: carry.., index, and of a while the upper bound. */
static void step(const ax_value *in, ax_value *out, void *context) {
  const ax_fn *body = context;
  uint32_t count = body->out_count;
  ax_value *given = ax_trace_alloc(((size_t)count + 1) * sizeof given[0]);
  if (given == NULL) return;
  given[0] = in[count];
  for (uint32_t k = 0; k < count; k++) given[k + 1] = in[k];
  const ax_value *made = ax_builder_call(*body, given);
  for (uint32_t k = 0; k < count && made != NULL; k++) out[k] = made[k];
  out[count] = ax_fori_next("fori_loop", in[count]);
}

static void step_to(const ax_value *in, ax_value *out, void *context) {
  uint32_t count = ((const ax_fn *)context)->out_count;
  step(in, out, context);
  out[count + 1] = in[count + 1];
}

static void is_below(const ax_value *in, ax_value *out, void *context) {
  uint32_t count = ((const ax_fn *)context)->out_count;
  out[0] = ax_lt(in[count], in[count + 1]);
}

/* --- Values that are known while they are traced --- */

enum { most_looked_at = 64 }; /* equations, for one bound */

/* The equation of the trace in progress, or of one around it, that makes a value; NULL: there is none. */
static const ax_eqn *maker_of(ax_value value, const ax_builder **trace) {
  const ax_builder *b = ax_builder_current();
  while (b != NULL && b->serial != value.trace) b = b->parent;
  uint32_t low = 0, high = b != NULL ? b->eqn_count : 0;
  while (low < high) { /* the last equation whose results do not begin behind the value */
    const uint32_t middle = low + (high - low) / 2;
    if (b->eqns[middle].out <= value.id)
      low = middle + 1;
    else
      high = middle;
  }
  *trace = b;
  return low > 0 && value.id - b->eqns[low - 1].out < b->eqns[low - 1].out_count ? &b->eqns[low - 1] : NULL;
}

/* Whether a rule may compute the equation here: one scalar, from few. What calls the host takes any number. */
static bool is_scalar_work(const ax_builder *trace, const ax_eqn *eqn) {
  const ax_prim *prim = eqn->prim;
  const ax_type *made = &trace->types[eqn->out];
  return prim->kind == AX_LOCAL && prim->effects == 0 && prim->in_count >= 0 && eqn->in_count <= 3 && eqn->out_count == 1 &&
         made->form == AX_ARRAY && made->rank == 0;
}

typedef struct scalar {
  uint64_t bits[2];
  ax_tensor tensor;
} scalar;

/* Computes a scalar. False: it depends on what only a run knows. */
static bool compute(ax_value value, uint32_t *looked_at, scalar *out) {
  const ax_builder *trace;
  const ax_eqn *eqn = maker_of(value, &trace);
  scalar operands[3];
  ax_tensor *in[3], *made = &out->tensor;
  if (eqn == NULL || ++*looked_at > most_looked_at || !is_scalar_work(trace, eqn)) return false;
  for (uint32_t i = 0; i < eqn->in_count; i++) {
    in[i] = &operands[i].tensor;
    if (!compute((ax_value){.trace = trace->serial, .id = eqn->in[i]}, looked_at, &operands[i])) return false;
  }
  *out = (scalar){.tensor = {.dtype = trace->types[eqn->out].dtype, .data = out->bits}};
  const ax_eval_args args = {.eqn = eqn, .axes = &trace->axes, .lanes = 1, .device = &(int64_t){0}, .in = in, .out = &made};
  return eqn->prim->eval(&args) == AX_OK;
}

/* False: the value is no integer that is known here. */
static bool known(ax_value value, int64_t *out) {
  uint32_t looked_at = 0;
  scalar made;
  if (!compute(value, &looked_at, &made)) return false;
  const ax_dtype_kind kind = ax_dtype_get(made.tensor.dtype)->kind;
  if (kind != AX_KIND_SIGNED && kind != AX_KIND_UNSIGNED) return false;
  *out = ax_number_load(made.tensor.dtype, made.bits, 0).i;
  return kind == AX_KIND_SIGNED || *out >= 0; /* u64 beyond 2^63 */
}

bool ax_fori_known(ax_value lower, ax_value upper) {
  int64_t integer;
  return (ax_is_number(lower) || known(lower, &integer)) && (ax_is_number(upper) || known(upper, &integer));
}

/* --- Bounds --- */

/* The dtype of an index from one number to another: s32 where that holds both. */
static bool number_dtype(const char *function, double lower, double upper, ax_dtype *out) {
  for (int i = 0; i < 2; i++) {
    double bound = i == 0 ? lower : upper;
    if (!(fabs(bound) < 0x1p53) || bound != trunc(bound)) {
      ax_reject_as(function, "the %s bound is %.17g; it must be an integer below 2^53 in size", i == 0 ? "lower" : "upper", bound);
      return false;
    }
  }
  *out = fmin(lower, upper) >= INT32_MIN && fmax(lower, upper) <= INT32_MAX ? AX_S32 : AX_S64;
  return true;
}

static bool both_numbers(const char *function, ax_value from, ax_value to, ax_value *start, int64_t *length) {
  double lower = ax_number_real(from), upper = ax_number_real(to);
  ax_dtype dtype;
  if (!number_dtype(function, lower, upper, &dtype)) return false;
  *start = ax_as(function, ax_integer((int64_t)lower), dtype);
  *length = upper > lower ? (int64_t)upper - (int64_t)lower : 0;
  return !ax_failed();
}

static bool is_integer_scalar(const char *function, ax_value bound, const char *which) {
  if (ax_is_number(bound)) return true;
  ax_type type = ax_typeof(bound);
  ax_dtype_kind kind = ax_dtype_get(type.dtype)->kind;
  if (!ax_failed() && (type.form != AX_ARRAY || type.rank != 0 || (kind != AX_KIND_SIGNED && kind != AX_KIND_UNSIGNED)))
    ax_reject_as(function, "the %s bound is %s; it must be an integer scalar", which, ax_operand_string(&type));
  return !ax_failed();
}

bool ax_fori_values(const char *function, ax_value *bounds) {
  ax_type types[2];
  if (!is_integer_scalar(function, bounds[0], "lower") || !is_integer_scalar(function, bounds[1], "upper")) return false;
  ax_give_dtype(function, bounds, 2);
  for (int i = 0; i < 2; i++) types[i] = ax_typeof(bounds[i]);
  if (types[0].dtype != types[1].dtype)
    ax_reject_as(function, "the bounds are %s and %s; they need one dtype", ax_operand_string(&types[0]),
                 ax_operand_string(&types[1]));
  return !ax_failed();
}

bool ax_fori_numbers(const char *function, ax_value from, ax_value to, ax_value *start, int64_t *length) {
  ax_value bounds[] = {from, to};
  int64_t lower = 0, upper = 0;
  if (ax_is_number(from) && ax_is_number(to)) return both_numbers(function, from, to, start, length);
  if (!ax_fori_values(function, bounds) || !known(bounds[0], &lower) || !known(bounds[1], &upper)) return false;
  *start = bounds[0];
  if (upper > lower && __builtin_sub_overflow(upper, lower, length))
    (void)ax_reject_as(function, "there are more than 2^63 indices from %lld to %lld", (long long)lower, (long long)upper);
  if (upper <= lower) *length = 0;
  return !ax_failed();
}

static void count_numbers(ax_value lower, ax_value upper, ax_fn body, ax_value *carries, ax_value *out) {
  uint32_t count = body.out_count;
  int64_t length;
  if (ax_fori_numbers("fori_loop", lower, upper, &carries[count], &length))
    ax_scan(AX_CLOSURE(step, count + 1, count + 1, &body), count + 1, length, false, carries, out);
}

static void count_values(ax_value lower, ax_value upper, ax_fn body, ax_value *carries, ax_value *out) {
  uint32_t count = body.out_count;
  carries[count] = lower;
  carries[count + 1] = upper;
  if (ax_fori_values("fori_loop", carries + count))
    ax_while(AX_CLOSURE(is_below, count + 2, 1, &body), AX_CLOSURE(step_to, count + 2, count + 2, &body), carries, out);
}

void (ax_fori_loop)(ax_value lower, ax_value upper, ax_fn body, uint32_t in_count, const ax_value *in, uint32_t out_count,
                    ax_value *out) {
  uint32_t count = body.out_count;
  if (body.in_count != count + 1) {
    ax_reject_as("fori_loop", "the body takes %u operands and gives %u results; it takes an index, and as many carries as it gives",
                 body.in_count, count);
    ax_poison_list(out_count, count, out);
    return;
  }
  if (!ax_lists_fit("fori_loop", in_count, count, out_count, count, out)) return;
  ax_value *carries = ax_trace_alloc(((size_t)count + 2) * sizeof carries[0]);
  ax_value *made = ax_trace_alloc(((size_t)count + 2) * sizeof made[0]);
  for (uint32_t k = 0; k < count && carries != NULL; k++) carries[k] = in[k];
  for (uint32_t k = 0; k < count; k++) out[k] = ax_poison;
  if (carries == NULL || made == NULL) return;
  if (ax_fori_known(lower, upper))
    count_numbers(lower, upper, body, carries, made);
  else
    count_values(lower, upper, body, carries, made);
  for (uint32_t k = 0; k < count && !ax_failed(); k++) out[k] = made[k];
}
