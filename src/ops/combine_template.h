/* Rows of one type, for combine.c, which defines ELEMENT, RUN (the function's name), ROWS, COUNTED, SOME and ONE (names of its
   parts) and

     WIDE     of integers: the unsigned type that sums and products wrap in
     MOST     of extremes of narrow floats, whose bits are the integers ELEMENT: the largest integer, INFINITE: infinity, QUIET: a
              NaN, FLUSHING: the least normal number, below which the thread flushes; 0: it does not
     BITS     of extremes of f32 and f64: the unsigned type of their bits, QUIET: those of a NaN, FLUSHING: 1, which compilers do
              not know: a product with it flushes
     none     of sums and products of floats: ONE is a function

   and has them undefined here. FLUSHING is found once a call. A block's count is a constant, so that compilers need not be told to
   do several at once. */
#if defined(WIDE)

static inline INLINED ELEMENT ONE(ax_scalar combine, ELEMENT a, ELEMENT b) {
  switch (combine) {
    case AX_SCALAR_ADD: return (ELEMENT)((WIDE)a + (WIDE)b);
    case AX_SCALAR_MUL: return (ELEMENT)((WIDE)a * (WIDE)b);
    case AX_SCALAR_MIN: return a < b ? a : b;
    default: return a < b ? b : a;
  }
}

#elif defined(MOST)

/* Floats lie in the order of the integers x and y, -0 before +0. */
static inline INLINED ELEMENT ONE(ax_scalar combine, ELEMENT a, ELEMENT b, ELEMENT least_normal) {
  const ELEMENT x = (ELEMENT)(a ^ (a < 0 ? MOST : 0)), y = (ELEMENT)(b ^ (b < 0 ? MOST : 0));
  const ELEMENT least = x < y ? x : y, greatest = x < y ? y : x, z = combine == AX_SCALAR_MIN ? least : greatest;
  const ELEMENT size = (ELEMENT)(a & MOST), other = (ELEMENT)(b & MOST), larger = size < other ? other : size;
  const ELEMENT made = (ELEMENT)(z ^ (z < 0 ? MOST : 0)), kept = (ELEMENT)((made & MOST) < least_normal ? made & ~MOST : made);
  return larger > INFINITE ? QUIET : kept;
}

#elif defined(BITS)

/* A processor's maximum gives its second operand if both are zeros. So there are two, and the larger zero is what both have in
   common. The product flushes subnormal numbers, as not every processor's maximum does. */
static inline INLINED ELEMENT ONE(ax_scalar combine, ELEMENT a, ELEMENT b, ELEMENT one) {
  typedef union number {
    ELEMENT value;
    BITS bits;
  } number;
  const bool least = combine == AX_SCALAR_MIN;
  const number x = {least ? (a < b ? a : b) : (a > b ? a : b)}, y = {least ? (b < a ? b : a) : (b > a ? b : a)};
  const BITS both = least ? x.bits | y.bits : x.bits & y.bits;
  return (number){.bits = both | (__builtin_isunordered(a, b) ? QUIET : 0)}.value * one;
}

#elif defined(PART)

/* Of the real parts, and of the imaginary parts that stand beside that. NaN in either part wins. */
static inline INLINED ELEMENT ONE(ax_scalar combine, ELEMENT a, ELEMENT b, ELEMENT one) {
  const PART ar = REAL(a), ai = IMAG(a), br = REAL(b), bi = IMAG(b), none = combine == AX_SCALAR_MIN ? INFINITY : -INFINITY;
  if (combine == AX_SCALAR_ADD) return MADE(ar + br, ai + bi);
  if (combine == AX_SCALAR_MUL) return MADE(ar * br - ai * bi, ar * bi + ai * br);
  const bool first = combine == AX_SCALAR_MIN ? ar <= br : ar >= br, second = combine == AX_SCALAR_MIN ? br <= ar : br >= ar;
  const PART re = EXTREME(combine, ar, br, REAL(one)), im = EXTREME(combine, first ? ai : none, second ? bi : none, REAL(one));
  const bool is_nan = __builtin_isunordered(ar, br) || __builtin_isunordered(ai, bi);
  return MADE(is_nan ? NAN : re, is_nan ? NAN : im);
}

#endif

/* Blocks of the widest registers, of the narrowest, and elements: a row of a table may have few. */
#if defined(FLUSHING)
#define COMBINED(a, b) ONE(combine, (a), (b), flushing)
#else
#define COMBINED(a, b) ONE(combine, (a), (b))
#define FLUSHING 0
#endif
static inline INLINED void SOME(ax_scalar combine, ELEMENT *restrict to, const ELEMENT *restrict from, int64_t count,
                                ELEMENT flushing) {
  enum { at_once = AX_REGISTER_BYTES / sizeof(ELEMENT), few = 16 / sizeof(ELEMENT) };
  int64_t i = 0;
  (void)flushing; /* of extremes */
  for (; i + at_once <= count; i += at_once)
    for (int k = 0; k < at_once; k++) to[i + k] = COMBINED(to[i + k], from[i + k]);
  for (; i + few <= count; i += few)
    for (int k = 0; k < few; k++) to[i + k] = COMBINED(to[i + k], from[i + k]);
  for (; i < count; i++) to[i] = COMBINED(to[i], from[i]);
}

/* Takes a copy of the rows' description, which no store can change; `count` may be a constant. Of single elements processors have
   many in flight by themselves, so none is fetched. */
static inline INLINED void COUNTED(ax_scalar combine, const ax_combined *rows, int64_t count) {
  const ax_combined r = *rows;
  const fetching from = fetching_of(rows);
  const ELEMENT flushing = FLUSHING;
  for (int64_t i = 0; i < r.rows; i++) {
    if (count > 1) fetch(&r, i, sizeof(ELEMENT), from);
    SOME(combine, to_row(&r, i), from_row(&r, i), count, flushing);
  }
}

static inline INLINED void ROWS(ax_scalar combine, const ax_combined *rows) {
  enum { shortest = 16 / sizeof(ELEMENT), half = 32 / sizeof(ELEMENT), line = AX_LINE_BYTES / sizeof(ELEMENT) };
  if (rows->count == 1) COUNTED(combine, rows, 1);
  else if (rows->count == shortest) COUNTED(combine, rows, shortest);
  else if (rows->count == half) COUNTED(combine, rows, half);
  else if (rows->count == line) COUNTED(combine, rows, line);
  else COUNTED(combine, rows, rows->count);
}

static inline INLINED void RUN(ax_scalar combine, const ax_combined *r) {
  switch (combine) {
#if !defined(MOST) && !defined(BITS)
    case AX_SCALAR_ADD: ROWS(AX_SCALAR_ADD, r); return;
    case AX_SCALAR_MUL: ROWS(AX_SCALAR_MUL, r); return;
#endif
#if defined(WIDE) || defined(MOST) || defined(BITS) || defined(PART)
    case AX_SCALAR_MIN: ROWS(AX_SCALAR_MIN, r); return;
    case AX_SCALAR_MAX: ROWS(AX_SCALAR_MAX, r); return;
#endif
    default: return;
  }
}

#undef ELEMENT
#undef RUN
#undef ROWS
#undef SOME
#undef COUNTED
#undef ONE
#undef WIDE
#undef MOST
#undef INFINITE
#undef QUIET
#undef BITS
#undef PART
#undef REAL
#undef IMAG
#undef MADE
#undef EXTREME
#undef FLUSHING
#undef COMBINED
