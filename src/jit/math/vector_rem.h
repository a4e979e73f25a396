/* The remainder x - y trunc(x / y), exact, as C's fmod: with the sign of x, also of 0; NaN where x is infinite, y is 0 or either is
   NaN; x where y is infinite. In the operations of vector_lanes.h.

   Sizes a and b, a finite, b normal. n is a whole number next to a / b, from a quotient that was rounded once. Then a - n b is a
   number of the dtype: it is a multiple of the last places' values of n and b, and smaller than b times n's last place. So one fused
   operation gives it exactly.

     a / b below 2^22 (2^51 of f64)    n = trunc of the quotient: the true one or one more, which the sign tells
     above                             the quotient itself is whole, and what is left is 2^53 times smaller; again from there

   Where b is so small that what is left may be subnormal, which a run may flush, f32 is computed in f64, and f64 by the C library. */
#include "jit/math/vector_lanes.h"

#if AX_VECTOR_BYTES == 64
static inline f32s f32_whole(f32s x) { return _mm512_roundscale_ps(x, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC); }
static inline f64s f64_whole(f64s x) { return _mm512_roundscale_pd(x, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC); }
#else
static inline f32s f32_whole(f32s x) { return _mm256_round_ps(x, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC); }
static inline f64s f64_whole(f64s x) { return _mm256_round_pd(x, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC); }
#endif

#define AX_REM_LEAST 0x1p-960 /* b from here on leaves no subnormal number but a itself */

/* What n = trunc(quotient) leaves of a. */
static inline f64s f64_rem_left(f64s a, f64s b, f64s quotient) {
  const f64s left = f64_fnma(f64_whole(quotient), b, a);
  return f64_pick(f64_less(left, f64_all(0)), left + b, left);
}

/* Of finite a and b from AX_REM_LEAST on. A step may leave a number below 0: from there on the remainder of its size is taken, and
   that is the complement of the one that is wanted. Where a / b is infinite, b 2^960 takes the place of b. */
static f64s f64_rem_sized(f64s a, f64s b) {
  const f64s most = f64_all(0x1p52), zero = f64_all(0);
  f64s turned = zero; /* -0 where the complement is wanted */
  for (;;) {
    const f64_mask far = f64_less(b, a * f64_all(0x1p-1000));
    const f64s by = f64_pick(far, b * f64_all(0x1p960), b), quotient = a / by;
    if (!f64_any_less(b, by) && !f64_any_not_inside(quotient, zero, most)) break;
    const f64s left = f64_fnma(f64_pick(f64_less(quotient, most), f64_whole(quotient), quotient), by, a);
    turned = (f64s)((u64s)turned ^ ((u64s)left & 0x8000000000000000u));
    a = f64_sized(left);
  }
  const f64s left = f64_rem_left(a, b, a / b), other = f64_pick(f64_less(zero, left), b - left, left);
  return f64_pick(f64_less(f64_signed(f64_all(1), turned), zero), other, left);
}

/* A subnormal number as 0 where the thread flushes them: a comparison takes it for 0. */
static inline f64s f64_rem_flushed(f64s x) { return f64_pick(f64_equal(x, f64_all(0)), f64_signed(f64_all(0), x), x); }

static AX_BESIDE f64s f64_rem_apart(f64s x, f64s y) {
  enum { lanes = sizeof(f64s) / sizeof(double) };
  const f64s zero = f64_all(0), one = f64_all(1), infinity = f64_all(HUGE_VAL), none = f64_all((double)NAN), a = f64_sized(x), b = f64_sized(y);
  const f64_mask finite = f64_less(a, infinity), bounded = f64_less(b, infinity), large = f64_not_less(b, f64_all(AX_REM_LEAST));
  const f64_mask usual = f64_equal(f64_pick(finite, f64_pick(bounded, f64_pick(large, one, zero), zero), zero), one);
  const f64s sized = f64_pick(usual, f64_rem_sized(f64_pick(usual, a, one), f64_pick(usual, b, one)), none);
  f64s result = f64_signed(f64_pick(f64_equal(b, infinity), f64_pick(finite, a, none), sized), x);
  const f64s is_tiny = f64_pick(large, zero, f64_pick(f64_equal(b, zero), zero, one)), by_x = f64_rem_flushed(x);
  for (int i = 0; i < lanes; i++)
    if (is_tiny[i] != 0) result[i] = fmod(by_x[i], y[i]);
  return f64_rem_flushed(result);
}

static f64s f64_rem(f64s x, f64s y) {
  const f64s a = f64_sized(x), b = f64_sized(y), quotient = a / b;
  if (f64_any_not_inside(quotient, f64_all(0), f64_all(0x1p51)) || f64_any_not_inside(b, f64_all(AX_REM_LEAST), f64_all(0x1.fffffffffffffp1023)))
    return f64_rem_apart(x, y);
  return f64_signed(f64_rem_left(a, b, quotient), x);
}

static AX_BESIDE f32s f32_rem_apart(f32s x, f32s y) {
  return f32_join(f64_rem(f64_low(x), f64_low(y)), f64_rem(f64_high(x), f64_high(y)));
}

static f32s f32_rem(f32s x, f32s y) {
  const f32s a = f32_sized(x), b = f32_sized(y), quotient = a / b;
  if (f32_any_not_inside(quotient, f32_all(0), f32_all(0x1p22f)) || f32_any_not_inside(b, f32_all(0x1p-100f), f32_all(0x1.fffffep127f)))
    return f32_rem_apart(x, y);
  const f32s left = f32_fnma(f32_whole(quotient), b, a);
  return f32_signed(f32_pick(f32_less(left, f32_all(0)), left + b, left), x);
}
