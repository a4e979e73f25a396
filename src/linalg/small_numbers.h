/* Numbers of small_template.h, in each lane one, and what is done with them: vectors of real ones, or two vectors of complex ones. Each function
   does the same in all lanes, and where there is one. */

#if LANES == 1
typedef PART NAME(numbers);
typedef BITS NAME(masks);
#define CHOSEN(mask, a, b) ((mask) ? (a) : (b))
#define CHOSEN_BITS CHOSEN
#define NOT(mask) (!(mask))
#define BITS_OF(x) ((union { PART part; BITS bits; }){.part = (x)}.bits)
#define OF_BITS(x) ((union { BITS bits; PART part; }){.bits = (x)}.part)
#define SIZE(x) SIZE_OF(x)
#define ROUNDED(x) ROUNDED_ALONE(x)
#else
typedef PART NAME(numbers) __attribute__((vector_size(sizeof(PART) * LANES)));
typedef BITS NAME(masks) __attribute__((vector_size(sizeof(PART) * LANES)));
#define CHOSEN(mask, a, b) OF_BITS(CHOSEN_BITS(mask, BITS_OF(a), BITS_OF(b)))
#define CHOSEN_BITS(mask, a, b) (((mask) & (a)) | (~(mask) & (b)))
#define NOT(mask) (~(mask))
#define BITS_OF(x) ((M)(x))
#define OF_BITS(x) ((V)(x))
#define ROUNDED(x) (x)
#define SIZE(x) OF_BITS(BITS_OF(x) & (BITS)(~(uint64_t)0 >> (65 - 8 * sizeof(BITS))))
#endif
#define V NAME(numbers)
#define M NAME(masks)
#define INLINED TARGETED static inline __attribute__((always_inline))

#if COMPLEX
typedef struct NAME(complex) {
  V re, im;
} NAME(complex);
typedef struct NAME(complex_divisor) { /* the larger part `by`, with the smaller one's share of it: no square is made */
  M real_is_larger;
  V share, by;
} NAME(complex_divisor);
#define N NAME(complex)
#define D NAME(complex_divisor)

INLINED N NAME(real)(V x) {
  const V none = {0};
  return (N){x, none};
}
INLINED V NAME(real_part)(N x) { return x.re; }
INLINED N NAME(conjugate)(N x) { return (N){x.re, -x.im}; }
INLINED N NAME(negative)(N x) { return (N){-x.re, -x.im}; }
INLINED N NAME(plus)(N x, N y) { return (N){x.re + y.re, x.im + y.im}; }
INLINED N NAME(minus)(N x, N y) { return (N){x.re - y.re, x.im - y.im}; }
INLINED N NAME(times)(N x, N y) {
  return (N){ROUNDED(x.re * y.re) - ROUNDED(x.im * y.im), ROUNDED(x.re * y.im) + ROUNDED(x.im * y.re)};
}
INLINED N NAME(times_real)(N x, V y) { return (N){x.re * y, x.im * y}; }
INLINED N NAME(over_real)(N x, V y) { return (N){x.re / y, x.im / y}; }
INLINED V NAME(square)(N x) { return ROUNDED(x.re * x.re) + ROUNDED(x.im * x.im); } /* of the absolute value */
INLINED V NAME(size)(N x) { return SIZE(x.re) + SIZE(x.im); }      /* by which rows are chosen, as LAPACK does */
INLINED V NAME(imaginary_size)(N x) { return SIZE(x.im); }
INLINED V NAME(largest_part)(N x) {
  const M re = BITS_OF(SIZE(x.re)), im = BITS_OF(SIZE(x.im)); /* NaN are largest */
  return OF_BITS(CHOSEN_BITS(re > im, re, im));
}
INLINED M NAME(is_zero)(N x) {
  const V none = {0};
  return (x.re == none) & (x.im == none);
}
INLINED N NAME(choose)(M mask, N x, N y) { return (N){CHOSEN(mask, x.re, y.re), CHOSEN(mask, x.im, y.im)}; }
INLINED D NAME(divisor)(N x) {
  const M larger = SIZE(x.re) >= SIZE(x.im);
  const V most = CHOSEN(larger, x.re, x.im), least = CHOSEN(larger, x.im, x.re), share = least / most;
  return (D){larger, share, most + ROUNDED(least * share)};
}
INLINED N NAME(over)(N x, const D *y) {
  const V first = CHOSEN(y->real_is_larger, x.re, x.im), second = CHOSEN(y->real_is_larger, x.im, x.re);
  const V im = (second - ROUNDED(first * y->share)) / y->by;
  return (N){(first + ROUNDED(second * y->share)) / y->by, CHOSEN(y->real_is_larger, im, -im)};
}
#else
#define N V
#define D V

INLINED N NAME(real)(V x) { return x; }
INLINED V NAME(real_part)(N x) { return x; }
INLINED N NAME(conjugate)(N x) { return x; }
INLINED N NAME(negative)(N x) { return -x; }
INLINED N NAME(plus)(N x, N y) { return x + y; }
INLINED N NAME(minus)(N x, N y) { return x - y; }
INLINED N NAME(times)(N x, N y) { return x * y; }
INLINED N NAME(times_real)(N x, V y) { return x * y; }
INLINED N NAME(over_real)(N x, V y) { return x / y; }
INLINED V NAME(square)(N x) { return x * x; }
INLINED V NAME(size)(N x) { return SIZE(x); }
INLINED V NAME(imaginary_size)(N x) {
  const V none = {0};
  return (void)x, none;
}
INLINED V NAME(largest_part)(N x) { return SIZE(x); }
INLINED M NAME(is_zero)(N x) {
  const V none = {0};
  return x == none;
}
INLINED N NAME(choose)(M mask, N x, N y) { return CHOSEN(mask, x, y); }
INLINED D NAME(divisor)(N x) { return x; }
INLINED N NAME(over)(N x, const D *y) { return x / *y; }
#endif

INLINED N NAME(less)(N x, N y, N z) { return NAME(minus)(x, NAME(times)(y, z)); } /* x - y z */
INLINED N NAME(conjugate_if)(N x, bool conjugated) { return conjugated ? NAME(conjugate)(x) : x; }
INLINED N NAME(nan)(void) {
  const V none = {0};
  return NAME(times_real)(NAME(real)(none + 1), none + (PART)NAN);
}
