/* Sorting networks over rows of one width of elements, for sort_network.c. Elements are compared as signed integers, whatever
   they are. The includer says, and has undefined here:

     NAME(x)    names of these functions
     ELEMENT    the signed integer
     LEAST, MOST   the least one, whose bits are the sign alone, and the greatest
     TARGETED   attributes of a function for the processor's registers, or nothing */
#define LANES (AX_NETWORK_LINE / (int64_t)sizeof(ELEMENT))

/* Element k of row l goes to lines[k * LANES + l]. Lanes without a row have zeros. */
TARGETED static void NAME(load)(const ax_sort_network *n, const ELEMENT *from, ELEMENT *lines, int64_t row, int64_t rows) {
  if (rows < LANES) memset(lines, 0, (size_t)n->extent * AX_NETWORK_LINE);
  if (lie_across(n, row, rows)) {
    const ELEMENT *first = from + first_of(n, row);
    for (int64_t k = 0; k < n->extent; k++, first += n->inner)
      if (rows == LANES) memcpy(lines + k * LANES, first, AX_NETWORK_LINE);
      else memcpy(lines + k * LANES, first, (size_t)rows * sizeof(ELEMENT));
    return;
  }
  for (int64_t l = 0; l < rows; l++) {
    const ELEMENT *first = from + first_of(n, row + l);
    for (int64_t k = 0; k < n->extent; k++) lines[k * LANES + l] = first[k * n->inner];
  }
}

TARGETED static void NAME(store)(const ax_sort_network *n, const ELEMENT *lines, ELEMENT *to, int64_t row, int64_t rows) {
  if (lie_across(n, row, rows)) {
    ELEMENT *first = to + first_of(n, row);
    for (int64_t k = 0; k < n->extent; k++, first += n->inner)
      if (rows == LANES) memcpy(first, lines + k * LANES, AX_NETWORK_LINE);
      else memcpy(first, lines + k * LANES, (size_t)rows * sizeof(ELEMENT));
    return;
  }
  for (int64_t l = 0; l < rows; l++) {
    ELEMENT *first = to + first_of(n, row + l);
    for (int64_t k = 0; k < n->extent; k++) first[k * n->inner] = lines[k * LANES + l];
  }
}

/* Says whether one of the floats is NaN, that is beyond `infinity`, or -0. */
TARGETED static bool NAME(any_strange)(const ELEMENT *lines, int64_t extent, ELEMENT infinity) {
  ELEMENT strange = 0;
  for (int64_t k = 0; k < extent; k++)
    for (int64_t l = 0; l < LANES; l++) {
      const ELEMENT x = lines[k * LANES + l];
      strange = (ELEMENT)(strange | ((x & MOST) > infinity) | (x == LEAST));
    }
  return strange != 0;
}

/* Changes bits `in_all`, and then bits `in_negative` of those that are negative; twice it changes nothing. */
TARGETED static void NAME(change)(ELEMENT *lines, int64_t extent, ELEMENT in_all, ELEMENT in_negative) {
  for (int64_t k = 0; k < extent; k++)
    for (int64_t l = 0; l < LANES; l++) {
      const ELEMENT x = (ELEMENT)(lines[k * LANES + l] ^ in_all);
      lines[k * LANES + l] = (ELEMENT)(x ^ (x < 0 ? in_negative : 0));
    }
}

TARGETED static void NAME(exchange)(const ax_sort_network *n, ELEMENT *lines) {
  for (uint32_t p = 0; p < n->count; p++) {
    ELEMENT *restrict a = lines + n->pairs[2 * p] * LANES, *restrict b = lines + n->pairs[2 * p + 1] * LANES;
    for (int64_t l = 0; l < LANES; l++) {
      const ELEMENT x = a[l], y = b[l];
      a[l] = x < y ? x : y;
      b[l] = x < y ? y : x;
    }
  }
}

TARGETED static bool NAME(sort)(const ax_sort_network *n, const void *from, void *to, int64_t row, int64_t rows) {
  _Alignas(AX_NETWORK_LINE) ELEMENT lines[AX_NETWORK_EXTENT * LANES];
  const bool is_float = infinity_of(n->dtype) != 0, changes = ax_dtype_get(n->dtype)->kind != AX_KIND_SIGNED;
  const ELEMENT in_all = is_float || !changes ? 0 : LEAST, in_negative = is_float ? MOST : 0;
  NAME(load)(n, from, lines, row, rows);
  if (is_float && NAME(any_strange)(lines, n->extent, (ELEMENT)infinity_of(n->dtype))) return false;
  if (changes) NAME(change)(lines, n->extent, in_all, in_negative);
  NAME(exchange)(n, lines);
  if (changes) NAME(change)(lines, n->extent, in_all, in_negative);
  NAME(store)(n, lines, to, row, rows);
  return true;
}

#undef NAME
#undef LANES
#undef TARGETED
