/* fori_loop: a scan if both bounds are numbers, so that it has all derivatives; otherwise a while. The index is a carry behind the
   user's carries, so that messages number carries as the user does. */
#include <math.h>

#include "control/fori_loop.h"
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

bool ax_fori_numbers(const char *function, ax_value from, ax_value to, ax_value *start, int64_t *length) {
  double lower = ax_number_real(from), upper = ax_number_real(to);
  ax_dtype dtype;
  if (!number_dtype(function, lower, upper, &dtype)) return false;
  *start = ax_as(function, ax_integer((int64_t)lower), dtype);
  *length = upper > lower ? (int64_t)upper - (int64_t)lower : 0;
  return !ax_failed();
}

static void count_numbers(ax_value lower, ax_value upper, ax_fn body, ax_value *carries, ax_value *out) {
  uint32_t count = body.out_count;
  int64_t length;
  if (ax_fori_numbers("fori_loop", lower, upper, &carries[count], &length))
    ax_scan(AX_CLOSURE(step, count + 1, count + 1, &body), count + 1, length, false, carries, out);
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
  if (ax_is_number(lower) && ax_is_number(upper))
    count_numbers(lower, upper, body, carries, made);
  else
    count_values(lower, upper, body, carries, made);
  for (uint32_t k = 0; k < count && !ax_failed(); k++) out[k] = made[k];
}
