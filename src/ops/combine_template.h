/* Rows of one type, for combine.c, which defines TYPE (what the names of the functions begin with), ELEMENT and

     WIDE     of integers: the unsigned type that sums and products wrap in
     MOST     of extremes of narrow floats, whose bits are the integers ELEMENT: the largest integer, INFINITE: infinity, QUIET: a
              NaN, FLUSHING: the least normal number, below which the thread flushes; 0: it does not
     BITS     of extremes of f32 and f64: the unsigned type of their bits, QUIET: those of a NaN, FLUSHING: 1, which compilers do
              not know: a product with it flushes
     PART     of complex numbers: the type of their parts, REAL and IMAG: what takes them, MADE: makes a number of two, EXTREME: the
              extreme of two parts
     none     of sums and products of floats: TYPE_one is a function there
     PACKED   if TYPE_packed combines so many numbers or fewer, a constant; not by products

   and has them undefined here. FLUSHING is found once a call. A block's count is a constant, so that compilers need not be told to
   do several at once. */
#if defined(WIDE)

static inline INLINED ELEMENT NAME(one)(ax_scalar combine, ELEMENT a, ELEMENT b) {
  switch (combine) {
    case AX_SCALAR_ADD: return (ELEMENT)((WIDE)a + (WIDE)b);
    case AX_SCALAR_MUL: return (ELEMENT)((WIDE)a * (WIDE)b);
    case AX_SCALAR_MIN: return a < b ? a : b;
    case AX_SCALAR_NONE: return b;
    default: return a < b ? b : a;
  }
}

#elif defined(MOST)

/* Floats lie in the order of the integers x and y, -0 before +0. */
static inline INLINED ELEMENT NAME(one)(ax_scalar combine, ELEMENT a, ELEMENT b, ELEMENT least_normal) {
  const ELEMENT x = (ELEMENT)(a ^ (a < 0 ? MOST : 0)), y = (ELEMENT)(b ^ (b < 0 ? MOST : 0));
  const ELEMENT least = x < y ? x : y, greatest = x < y ? y : x, z = combine == AX_SCALAR_MIN ? least : greatest;
  const ELEMENT size = (ELEMENT)(a & MOST), other = (ELEMENT)(b & MOST), larger = size < other ? other : size;
  const ELEMENT made = (ELEMENT)(z ^ (z < 0 ? MOST : 0)), kept = (ELEMENT)((made & MOST) < least_normal ? made & ~MOST : made);
  return larger > INFINITE ? QUIET : kept;
}

#elif defined(BITS)

/* A processor's maximum gives its second operand if both are zeros. So there are two, and the larger zero is what both have in
   common. The product flushes subnormal numbers, as not every processor's maximum does. */
static inline INLINED ELEMENT NAME(one)(ax_scalar combine, ELEMENT a, ELEMENT b, ELEMENT one) {
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
static inline INLINED ELEMENT NAME(one)(ax_scalar combine, ELEMENT a, ELEMENT b, ELEMENT one) {
  const PART ar = REAL(a), ai = IMAG(a), br = REAL(b), bi = IMAG(b), none = combine == AX_SCALAR_MIN ? INFINITY : -INFINITY;
  if (combine == AX_SCALAR_ADD) return MADE(ar + br, ai + bi);
  if (combine == AX_SCALAR_MUL) return MADE(ar * br - ai * bi, ar * bi + ai * br);
  const bool first = combine == AX_SCALAR_MIN ? ar <= br : ar >= br, second = combine == AX_SCALAR_MIN ? br <= ar : br >= ar;
  const PART re = EXTREME(combine, ar, br, REAL(one)), im = EXTREME(combine, first ? ai : none, second ? bi : none, REAL(one));
  const bool is_nan = __builtin_isunordered(ar, br) || __builtin_isunordered(ai, bi);
  return MADE(is_nan ? NAN : re, is_nan ? NAN : im);
}

#endif

#if defined(FLUSHING)
#define COMBINED(a, b) NAME(one)(combine, (a), (b), flushing)
#else
#define COMBINED(a, b) NAME(one)(combine, (a), (b))
#define FLUSHING 0
#endif

static inline INLINED void NAME(single)(ax_scalar combine, ELEMENT *to, const ELEMENT *from, ELEMENT flushing) {
  (void)flushing; /* of extremes */
#if defined(PACKED)
  if (combine != AX_SCALAR_MUL) {
    NAME(packed)(combine, to, from, 1, flushing);
    return;
  }
#endif
  *to = COMBINED(*to, *from);
}

/* Blocks of the widest registers, of the narrowest, and elements: a row of a table may have few. */
static inline INLINED void NAME(some)(ax_scalar combine, ELEMENT *restrict to, const ELEMENT *restrict from, int64_t count,
                                ELEMENT flushing) {
  enum { at_once = AX_REGISTER_BYTES / sizeof(ELEMENT), few = 16 / sizeof(ELEMENT) };
  int64_t i = 0;
  (void)flushing; /* of extremes */
  if (count == 1) {
    NAME(single)(combine, to, from, flushing);
    return;
  }
  for (; i + at_once <= count; i += at_once)
    for (int k = 0; k < at_once; k++) to[i + k] = COMBINED(to[i + k], from[i + k]);
  for (; i + few <= count; i += few)
    for (int k = 0; k < few; k++) to[i + k] = COMBINED(to[i + k], from[i + k]);
  for (; i < count; i++) to[i] = COMBINED(to[i], from[i]);
}

/* Takes a copy of the rows' description, which no store can change; `count` may be a constant. Of single elements processors have
   many in flight by themselves, so none is fetched. */
static inline INLINED void NAME(counted)(ax_scalar combine, const ax_combined *rows, int64_t count) {
  const ax_combined r = *rows;
  const fetching from = fetching_of(rows);
  const ELEMENT flushing = FLUSHING;
  for (int64_t i = 0; i < r.rows; i++) {
    if (count > 1) fetch(&r, i, sizeof(ELEMENT), from);
    NAME(some)(combine, to_row(&r, i), from_row(&r, i), count, flushing);
  }
}

static inline INLINED void NAME(rows)(ax_scalar combine, const ax_combined *rows) {
  enum { shortest = 16 / sizeof(ELEMENT), half = 32 / sizeof(ELEMENT), line = AX_LINE_BYTES / sizeof(ELEMENT) };
  if (rows->count == 1) NAME(counted)(combine, rows, 1);
  else if (combine == AX_SCALAR_MUL) NAME(counted)(combine, rows, rows->count); /* seldom: not worth more code */
  else if (rows->count == shortest) NAME(counted)(combine, rows, shortest);
  else if (rows->count == half) NAME(counted)(combine, rows, half);
  else if (rows->count == line) NAME(counted)(combine, rows, line);
  else NAME(counted)(combine, rows, rows->count);
}

static inline INLINED void NAME(run)(ax_scalar combine, const ax_combined *r) {
  switch (combine) {
#if !defined(MOST) && !defined(BITS)
    case AX_SCALAR_ADD: NAME(rows)(AX_SCALAR_ADD, r); return;
    case AX_SCALAR_MUL: NAME(rows)(AX_SCALAR_MUL, r); return;
#endif
#if defined(WIDE) || defined(MOST) || defined(BITS) || defined(PART)
    case AX_SCALAR_MIN: NAME(rows)(AX_SCALAR_MIN, r); return;
    case AX_SCALAR_MAX: NAME(rows)(AX_SCALAR_MAX, r); return;
#endif
    default: return;
  }
}

/* A row of few elements, a constant: those that make no block are loaded before one is stored, so that no loop is left. */
static inline INLINED void NAME(few)(ax_scalar combine, ELEMENT *restrict to, const ELEMENT *restrict from, int64_t count,
                                ELEMENT flushing) {
  enum { block = 16 / sizeof(ELEMENT) > 1 ? 16 / sizeof(ELEMENT) : 2 };
  const int64_t blocks = count / block * block;
  ELEMENT rest[block];
  (void)flushing; /* of extremes */
  if (count == 1) {
    NAME(single)(combine, to, from, flushing);
    return;
  }
#if defined(PACKED) /* but for whole lines, of which wider registers have more */
  if (combine != AX_SCALAR_MUL && (sizeof(ELEMENT) == 2 || count * sizeof(ELEMENT) < 64)) {
#pragma GCC unroll 16
    for (int k = 0; k < count; k += PACKED) NAME(packed)(combine, to + k, from + k, count - k < PACKED ? count - k : PACKED, flushing);
    return;
  }
#endif
  if (blocks > 0) NAME(some)(combine, to, from, blocks, flushing);
#pragma GCC unroll 16
  for (int k = 0; k < block; k++)
    if (blocks + k < count) rest[k] = COMBINED(to[blocks + k], from[blocks + k]);
#pragma GCC unroll 16
  for (int k = 0; k < block; k++)
    if (blocks + k < count) to[blocks + k] = rest[k];
}

/* `count`, `numbers` and `dense`, which says that numbers and elements lie next to each other: constants. */
static inline INLINED void NAME(placed)(ax_scalar combine, const ax_short_rows *rows, int64_t count, uint32_t numbers, bool dense) {
  ax_short_rows r = *rows;
  if (dense) r.at_step = numbers, r.from_step = r.pitch[numbers - 1] = 1;
  ELEMENT *to = (ELEMENT *)(void *)r.to;
  const ELEMENT *from = (const ELEMENT *)(const void *)r.from, flushing = FLUSHING;
  for (int64_t i = 0; i < r.rows; i++) {
    int64_t place;
    if (!find_place(&r, i, numbers, &place)) continue;
    if (count >= 4 && r.far) __builtin_prefetch((const char *)(from + i * r.from_step) + placed_ahead);
    NAME(few)(combine, to + place, from + i * r.from_step, count, flushing);
  }
}

/* Of 1 to 4 elements, or at two numbers. */
static inline INLINED void NAME(shortest_rows)(ax_scalar combine, const ax_short_rows *r) {
  const bool dense = r->count == 1 && r->at_step == r->numbers && r->from_step == 1 && r->pitch[r->numbers - 1] == 1;
  if (dense && r->numbers == 1) NAME(placed)(combine, r, 1, 1, true);
  else if (dense) NAME(placed)(combine, r, 1, 2, true);
  else if (r->numbers == 2) NAME(placed)(combine, r, 1, 2, false);
  else if (r->count == 1) NAME(placed)(combine, r, 1, 1, false);
  else if (r->count == 2) NAME(placed)(combine, r, 2, 1, false);
  else if (r->count == 3) NAME(placed)(combine, r, 3, 1, false);
  else if (r->count == 4) NAME(placed)(combine, r, 4, 1, false);
}

/* Of more elements, and 64 bytes at most. */
static inline INLINED void NAME(longer_rows)(ax_scalar combine, const ax_short_rows *r) {
  enum { most = 64 / sizeof(ELEMENT) };
  if (r->count == 5) NAME(placed)(combine, r, 5, 1, false);
  else if (r->count == 6) NAME(placed)(combine, r, 6, 1, false);
  else if (r->count == 7) NAME(placed)(combine, r, 7, 1, false);
  else if (r->count == 8) NAME(placed)(combine, r, 8, 1, false);
  else if (most >= 12 && r->count == 12) NAME(placed)(combine, r, 12, 1, false);
  else if (most >= 16 && r->count == 16) NAME(placed)(combine, r, 16, 1, false);
}

/* `longer`: a constant. */
static inline INLINED void NAME(rows_by)(ax_scalar combine, const ax_short_rows *r, bool longer) {
  if (longer) NAME(longer_rows)(combine, r);
  else NAME(shortest_rows)(combine, r);
}

static inline INLINED void NAME(short_rows)(ax_scalar combine, const ax_short_rows *r, bool longer) {
  switch (combine) {
#if defined(WIDE)
    case AX_SCALAR_NONE: NAME(rows_by)(AX_SCALAR_NONE, r, longer); return;
#endif
#if !defined(MOST) && !defined(BITS)
    case AX_SCALAR_ADD: NAME(rows_by)(AX_SCALAR_ADD, r, longer); return;
    case AX_SCALAR_MUL: NAME(rows_by)(AX_SCALAR_MUL, r, longer); return;
#endif
#if defined(WIDE) || defined(MOST) || defined(BITS) || defined(PART)
    case AX_SCALAR_MIN: NAME(rows_by)(AX_SCALAR_MIN, r, longer); return;
    case AX_SCALAR_MAX: NAME(rows_by)(AX_SCALAR_MAX, r, longer); return;
#endif
    default: return;
  }
}

static void NAME(at)(ax_scalar combine, const ax_short_rows *r) { NAME(short_rows)(combine, r, false); }

#undef TYPE
#undef ELEMENT
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
#undef PACKED
