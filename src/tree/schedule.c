/* Schedules in a trace: scalars, in f32 as optax computes them, so that the same roundings come out.

   Each maker sets the function and the fields it reads. A schedule of several parts calls theirs. */
#include <math.h>
#include <stdio.h>

#include "axle/ops.h"
#include "axle/optimizer.h"
#include "ir/program.h"
#include "prim/bind.h"
#include "tree/leaves.h"

static const double pi = 3.14159265358979323846;

static ax_value real32(double x) { return ax_full(AX_F32, AX_DIMS(), x); }
static ax_value count32(int64_t n) { return ax_full_i64(AX_S32, AX_DIMS(), n); }
static ax_value as_real(ax_value count) { return ax_convert_element_type(count, AX_F32); }

/* Steps that fit the count. False: the trace has failed. */
static bool sound_steps(const char *who, const char *what, int64_t steps) {
  if (steps >= INT32_MIN && steps <= INT32_MAX) return true;
  ax_reject_as(who, "%s is %lld, beyond what is counted", what, (long long)steps);
  return false;
}

static bool sound_number(const char *who, const char *what, double number) {
  if (isfinite(number)) return true;
  ax_reject_as(who, "%s is %g, which is not finite", what, number);
  return false;
}

/* base^power with base >= 0: as JAX, by products when the power is a small whole number. */
static ax_value power_of(ax_value base, double power) {
  if (power == 1) return base;
  if (power == rint(power) && fabs(power) <= 64) return ax_integer_pow(base, (int64_t)power);
  return ax_pow(base, real32(power));
}

static ax_value constant_at(const ax_schedule *s, ax_value count) {
  (void)count;
  return sound_number("constant_schedule", "the value", s->from) ? real32(s->from) : ax_poison;
}

ax_schedule ax_constant_schedule(double value) { return (ax_schedule){.function = constant_at, .from = value}; }

bool ax_schedule_is_constant(const ax_schedule *schedule) { return schedule->function == constant_at; }

/* --- Polynomials --- */

static ax_value polynomial_at(const ax_schedule *s, ax_value count) {
  const char *who = "polynomial_schedule";
  int64_t begin = s->begin > 0 ? s->begin : 0;
  if (!sound_number(who, "from", s->from) || !sound_number(who, "to", s->to) || !sound_number(who, "power", s->power))
    return ax_poison;
  if (!sound_steps(who, "steps", s->steps) || !sound_steps(who, "begin", begin)) return ax_poison;
  if (s->steps <= 0) return real32(s->from);
  ax_value done = ax_clamp(count32(0), ax_sub(count, count32(begin)), count32(s->steps));
  ax_value left = ax_sub(real32(1), ax_div(as_real(done), real32((double)s->steps)));
  return ax_add(ax_mul(real32(s->from - s->to), power_of(left, s->power)), real32(s->to));
}

ax_schedule ax_polynomial_schedule(double from, double to, double power, int64_t steps, int64_t begin) {
  return (ax_schedule){.function = polynomial_at, .from = from, .to = to, .power = power, .steps = steps, .begin = begin};
}

ax_schedule ax_linear_schedule(double from, double to, int64_t steps, int64_t begin) {
  return ax_polynomial_schedule(from, to, 1, steps, begin);
}

/* --- Cosines --- */

/* cos of an angle from 0 to pi, f32[], as 1 - 2 sin^2 of its half, by the series of the sine in f64: 2^-40 at most is left out. */
static ax_value cosine_of(ax_value angle) {
  ax_value half = ax_mul(ax_convert_element_type(angle, AX_F64), ax_full(AX_F64, AX_DIMS(), 0.5)), square = ax_mul(half, half);
  ax_value sum = ax_full(AX_F64, AX_DIMS(), 1), one = sum;
  for (int k = 8; k >= 1; k--) /* 1 - x^2 / 2k(2k+1) * (the rest) */
    sum = ax_sub(one, ax_mul(ax_mul(square, ax_full(AX_F64, AX_DIMS(), 1.0 / (2 * k * (2 * k + 1)))), sum));
  ax_value sine = ax_mul(half, sum);
  return ax_convert_element_type(ax_sub(one, ax_mul(ax_full(AX_F64, AX_DIMS(), 2), ax_mul(sine, sine))), AX_F32);
}

/* `to` is alpha, the share of `from` that is left in the end. */
static ax_value cosine_at(const ax_schedule *s, ax_value count) {
  const char *who = "cosine_decay_schedule";
  if (!sound_number(who, "from", s->from) || !sound_number(who, "alpha", s->to) || !sound_number(who, "exponent", s->power))
    return ax_poison;
  if (!sound_steps(who, "steps", s->steps)) return ax_poison;
  if (s->steps <= 0) return ax_reject_as(who, "steps is %lld; there must be some", (long long)s->steps);
  ax_value done = ax_clamp(real32(0), as_real(count), real32((double)s->steps)); /* below 0 where a join takes another part */
  ax_value wave = cosine_of(ax_div(ax_mul(real32(pi), done), real32((double)s->steps)));
  ax_value decay = ax_mul(real32(0.5), ax_add(real32(1), wave));
  ax_value share = ax_add(ax_mul(real32(1 - s->to), power_of(decay, s->power)), real32(s->to));
  return ax_mul(real32(s->from), share);
}

ax_schedule ax_cosine_decay_schedule(double from, int64_t steps, double alpha, double exponent) {
  return (ax_schedule){.function = cosine_at, .from = from, .to = alpha, .power = exponent, .steps = steps};
}

/* --- Exponentials --- */

static ax_value exponential_at(const ax_schedule *s, ax_value count) {
  const char *who = "exponential_decay_schedule";
  int64_t begin = s->begin > 0 ? s->begin : 0;
  if (!sound_number(who, "from", s->from) || !sound_number(who, "the rate", s->power)) return ax_poison;
  if (!sound_steps(who, "steps", s->steps) || !sound_steps(who, "begin", begin)) return ax_poison;
  if (isinf(s->to)) return ax_reject_as(who, "to is %g; NAN is for none", s->to);
  if (s->steps <= 0 || s->power == 0) return real32(s->from);
  ax_value done = ax_max(ax_sub(count, count32(begin)), count32(0)); /* a power below 0 would be infinite soon, and is not needed */
  ax_value share = ax_div(as_real(done), real32((double)s->steps));
  if (s->staircase) share = as_real(ax_div(done, count32(s->steps)));
  ax_value decayed = ax_mul(real32(s->from), ax_pow(real32(s->power), share));
  ax_value value = ax_select_n(ax_le(done, count32(0)), decayed, real32(s->from));
  if (isnan(s->to)) return value;
  return s->power < 1 ? ax_max(value, real32(s->to)) : ax_min(value, real32(s->to));
}

ax_schedule ax_exponential_decay_schedule(double from, int64_t steps, double rate, int64_t begin, bool staircase, double to) {
  return (ax_schedule){
      .function = exponential_at, .from = from, .to = to, .power = rate, .begin = begin, .steps = steps, .staircase = staircase};
}

/* --- Of several parts --- */

/* The schedules of lists that do not go together, which are errors where they are used. `steps` is the count of parts, or of
   scales. */
static ax_value parts_at(const ax_schedule *s, ax_value count) {
  (void)count;
  (void)ax_list_fits("join_schedules", "the boundaries take", "part", (uint32_t)s->steps, s->count + 1);
  return ax_poison;
}
static ax_value scales_at(const ax_schedule *s, ax_value count) {
  (void)count;
  (void)ax_list_fits("piecewise_constant_schedule", "the boundaries take", "scale", (uint32_t)s->steps, s->count);
  return ax_poison;
}

static ax_value join_at(const ax_schedule *s, ax_value count) {
  if (s->parts == NULL || (s->count > 0 && s->boundaries == NULL))
    return ax_reject_as("join_schedules", "there are no parts, or no boundaries");
  ax_value value = ax_schedule_at(&s->parts[0], count);
  for (uint32_t i = 0; i < s->count; i++) {
    if (!sound_steps("join_schedules", "a boundary", s->boundaries[i])) return ax_poison;
    ax_value boundary = count32(s->boundaries[i]), next = ax_schedule_at(&s->parts[i + 1], ax_sub(count, boundary));
    value = ax_select_n(ax_lt(count, boundary), next, value);
  }
  return value;
}

ax_schedule (ax_join_schedules)(uint32_t part_count, const ax_schedule *parts, uint32_t count, const int64_t *boundaries) {
  if (ax_list_entries(part_count, count + 1) != count + 1)
    return (ax_schedule){.function = parts_at, .count = count, .steps = part_count};
  return (ax_schedule){.function = join_at, .count = count, .parts = parts, .boundaries = boundaries};
}

/* `power` is the peak, `begin` the steps of warming up: the two parts are made where they are used. */
static ax_value warmup_cosine_at(const ax_schedule *s, ax_value count) {
  double peak = s->power;
  if (s->steps <= s->begin)
    return ax_reject_as("warmup_cosine_decay_schedule", "the %lld steps are to include the %lld of warming up, and more",
                        (long long)s->steps, (long long)s->begin);
  const ax_schedule parts[] = {ax_linear_schedule(s->from, peak, s->begin, 0),
                               ax_cosine_decay_schedule(peak, s->steps - s->begin, peak == 0 ? 0 : s->to / peak, 1)};
  ax_schedule both = ax_join_schedules(parts, AX_LIST(1, &s->begin));
  return join_at(&both, count);
}

ax_schedule ax_warmup_cosine_decay_schedule(double from, double peak, int64_t warmup, int64_t steps, double to) {
  return (ax_schedule){.function = warmup_cosine_at, .from = from, .to = to, .power = peak, .begin = warmup, .steps = steps};
}

static ax_value piecewise_at(const ax_schedule *s, ax_value count) {
  const char *who = "piecewise_constant_schedule";
  if (s->count > 0 && (s->boundaries == NULL || s->scales == NULL))
    return ax_reject_as(who, "there are no boundaries, or no scales");
  if (!sound_number(who, "from", s->from)) return ax_poison;
  ax_value value = real32(s->from);
  for (uint32_t i = 0; i < s->count; i++) {
    if (!sound_steps(who, "a boundary", s->boundaries[i]) || !sound_number(who, "a scale", s->scales[i])) return ax_poison;
    if (s->scales[i] < 0) return ax_reject_as(who, "scale %u is %g, below 0", i, s->scales[i]);
    ax_value reached = ax_ge(count, count32(s->boundaries[i]));
    value = ax_select_n(reached, value, ax_mul(real32(s->scales[i]), value));
  }
  return value;
}

ax_schedule (ax_piecewise_constant_schedule)(double from, uint32_t count, const int64_t *boundaries, uint32_t scale_count,
                                             const double *scales) {
  if (ax_list_entries(scale_count, count) != count)
    return (ax_schedule){.function = scales_at, .count = count, .steps = scale_count};
  return (ax_schedule){.function = piecewise_at, .from = from, .count = count, .boundaries = boundaries, .scales = scales};
}

ax_value ax_schedule_at(const ax_schedule *schedule, ax_value count) {
  ax_status status = ax_require(schedule, "schedule");
  if (status != AX_OK) ax_fail(status);
  if (status != AX_OK || ax_failed()) return ax_poison;
  count = ax_as("schedule_at", count, AX_S32);
  ax_type type = ax_typeof(count), value;
  if (ax_failed()) return ax_poison;
  if (type.dtype != AX_S32 || type.rank != 0)
    return ax_reject_as("schedule_at", "the count is %s, not s32[]", ax_type_string(&type, NULL));
  if (schedule->function == NULL) return real32(0);
  ax_value at = schedule->function(schedule, count);
  value = ax_typeof(at);
  if (ax_failed()) return ax_poison;
  if (value.dtype != AX_F32 || value.rank != 0)
    return ax_reject_as("schedule_at", "the schedule gives %s, not f32[]", ax_type_string(&value, NULL));
  return at;
}
