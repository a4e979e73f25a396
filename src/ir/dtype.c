/* The table of dtypes, and what follows from its columns. */
#include "ir/dtype.h"

#include <math.h>
#include <string.h>

enum { /* the table's lines are in the order of ax_dtype */
  NO_LINE,
#define AX_DTYPE(enumerator, ...) LINE_##enumerator,
#include "ir/dtype.def"
#undef AX_DTYPE
  LINES
};
#define AX_DTYPE(enumerator, ...) _Static_assert((int)LINE_##enumerator == (int)AX_##enumerator, #enumerator);
#include "ir/dtype.def"
#undef AX_DTYPE
_Static_assert((int)LINES == (int)AX_DTYPE_COUNT, "axle/type.h has the dtypes of dtype.def");

static const ax_dtype_info dtypes[AX_DTYPE_COUNT] = {
    [AX_NO_DTYPE] = {.name = "?", .hlo = "?"},
#define AX_DTYPE(enumerator, name_, bits_, kind_, hlo_, numpy_, computed_, exponent_, fraction_, bias_, specials_)            \
  [AX_##enumerator] = {.name = name_, .hlo = hlo_, .numpy = numpy_, .bytes = ((bits_) + 7) / 8, .bits = bits_,               \
                       .kind = AX_KIND_##kind_, .computed = AX_##computed_, .exponent = exponent_, .fraction = fraction_,    \
                       .bias = bias_, .specials = AX_SPECIALS_##specials_},
#include "ir/dtype.def"
#undef AX_DTYPE
};

const ax_dtype_info *ax_dtype_get(ax_dtype dtype) {
  return (unsigned)dtype < AX_DTYPE_COUNT ? &dtypes[dtype] : &dtypes[AX_NO_DTYPE];
}
size_t ax_dtype_bytes(ax_dtype dtype) { return ax_dtype_get(dtype)->bytes; }
const char *ax_dtype_name(ax_dtype dtype) { return ax_dtype_get(dtype)->name; }

int ax_dtype_find(const char *name, size_t length) {
  for (int i = 1; i < AX_DTYPE_COUNT; i++)
    if (strlen(dtypes[i].name) == length && memcmp(dtypes[i].name, name, length) == 0) return i;
  return AX_NO_DTYPE;
}

bool ax_is_differentiable(ax_dtype dtype) { return ax_is_complex(dtype) || (ax_is_float(dtype) && ax_has_sign(dtype)); }
bool ax_is_float(ax_dtype dtype) { return ax_dtype_get(dtype)->kind == AX_KIND_FLOAT; }
bool ax_rounds(ax_dtype dtype) { return ax_is_float(dtype) || ax_is_complex(dtype); }
bool ax_is_exact(ax_dtype dtype) {
  const ax_dtype_kind kind = ax_dtype_get(dtype)->kind;
  return kind == AX_KIND_BOOL || kind == AX_KIND_SIGNED || kind == AX_KIND_UNSIGNED;
}

bool ax_is_key(ax_dtype dtype) { return ax_dtype_get(dtype)->kind == AX_KIND_KEY; }
bool ax_is_complex(ax_dtype dtype) { return ax_dtype_get(dtype)->kind == AX_KIND_COMPLEX; }
ax_dtype ax_part_dtype(ax_dtype dtype) { return ax_is_complex(dtype) ? ax_dtype_get(dtype)->computed : dtype; }
ax_dtype ax_complex_dtype(ax_dtype part) { return part == AX_F32 ? AX_C64 : part == AX_F64 ? AX_C128 : AX_NO_DTYPE; }
ax_dtype ax_widest_dtype(ax_dtype dtype) { return ax_is_complex(dtype) ? AX_C128 : ax_is_float(dtype) ? AX_F64 : dtype; }
bool ax_is_narrow_float(ax_dtype dtype) { return ax_is_float(dtype) && ax_dtype_get(dtype)->bits < 32; }
bool ax_is_byte_float(ax_dtype dtype) { return ax_is_float(dtype) && ax_dtype_get(dtype)->bytes == 1; }

bool ax_is_short_integer(ax_dtype dtype) {
  const ax_dtype_info *info = ax_dtype_get(dtype);
  return (info->kind == AX_KIND_SIGNED || info->kind == AX_KIND_UNSIGNED) && info->bits < 8;
}

ax_dtype ax_multiplied_as(ax_dtype dtype) {
  if (ax_is_byte_float(dtype)) return AX_BF16;
  if (ax_is_short_integer(dtype)) return ax_dtype_get(dtype)->kind == AX_KIND_SIGNED ? AX_S8 : AX_U8;
  return dtype;
}

/* Powers of 2, by exponent: the smallest number, and the one above the largest. */
static int lowest_power(const ax_dtype_info *f) { return f->specials == AX_SPECIALS_POWERS ? -f->bias : 1 - f->bias - (int)f->fraction; }

bool ax_dtype_widens(ax_dtype from, ax_dtype to) {
  const ax_dtype_info *a = ax_dtype_get(from), *b = ax_dtype_get(to);
  if (from == to) return true;
  if (ax_is_complex(to)) return ax_dtype_widens(ax_part_dtype(from), ax_part_dtype(to));
  if (ax_is_complex(from)) return false;
  if (a->kind == AX_KIND_FLOAT) {
    if (b->kind != AX_KIND_FLOAT || b->bits <= a->bits || b->specials != AX_SPECIALS_IEEE) return false;
    return b->fraction >= a->fraction && lowest_power(b) <= lowest_power(a) && ax_float_largest(from) <= ax_float_largest(to);
  }
  if (a->kind == AX_KIND_BOOL || b->kind == AX_KIND_FLOAT || b->kind == AX_KIND_BOOL) return false;
  return b->kind == a->kind ? b->bits >= a->bits : a->kind == AX_KIND_UNSIGNED && b->bits > a->bits;
}

bool ax_is_multiplied_as(ax_dtype from, ax_dtype to) {
  const bool rounds = ax_rounds(to);
  if (ax_rounds(from)) return ax_dtype_widens(from, to);
  return rounds || (to != AX_BOOL && ax_dtype_get(to)->bits >= ax_dtype_get(from)->bits);
}

/* --- Floats --- */

ax_float_form ax_float_form_of(ax_dtype dtype) {
  const ax_dtype_info *info = ax_dtype_get(dtype);
  return (ax_float_form){(int)info->exponent, (int)info->fraction};
}

static uint64_t ones(uint32_t bits) { return ((uint64_t)1 << bits) - 1; }

bool ax_is_power(ax_dtype dtype) { return ax_dtype_get(dtype)->specials == AX_SPECIALS_POWERS; }
bool ax_has_infinity(ax_dtype dtype) { return ax_dtype_get(dtype)->specials == AX_SPECIALS_IEEE; }
bool ax_has_nan(ax_dtype dtype) { return ax_is_float(dtype) && ax_dtype_get(dtype)->specials != AX_SPECIALS_SATURATED; }
bool ax_has_sign(ax_dtype dtype) {
  const ax_dtype_info *f = ax_dtype_get(dtype);
  return f->kind == AX_KIND_FLOAT ? f->specials != AX_SPECIALS_POWERS : f->kind == AX_KIND_SIGNED;
}

uint64_t ax_float_largest_bits(ax_dtype dtype) {
  const ax_dtype_info *f = ax_dtype_get(dtype);
  const uint64_t all = ones(f->exponent + f->fraction);
  switch (f->specials) {
    case AX_SPECIALS_IEEE: return (ones(f->exponent) << f->fraction) - 1;
    case AX_SPECIALS_FINITE:
    case AX_SPECIALS_POWERS: return all - 1;
    default: return all;
  }
}

uint64_t ax_float_nan_bits(ax_dtype dtype) {
  const ax_dtype_info *f = ax_dtype_get(dtype);
  const uint64_t all = ones(f->exponent + f->fraction), sign = all + 1;
  switch (f->specials) {
    case AX_SPECIALS_IEEE: return ones(f->exponent) << f->fraction | (uint64_t)1 << (f->fraction - 1);
    case AX_SPECIALS_FINITE:
    case AX_SPECIALS_POWERS: return all;
    default: return sign; /* also of a format without NaN: its zero of the other sign */
  }
}

uint64_t ax_float_infinity_bits(ax_dtype dtype) {
  const ax_dtype_info *f = ax_dtype_get(dtype);
  if (f->specials == AX_SPECIALS_IEEE) return ones(f->exponent) << f->fraction;
  return f->specials == AX_SPECIALS_SATURATED ? ax_float_largest_bits(dtype) : ax_float_nan_bits(dtype);
}

bool ax_float_is_nan(ax_dtype dtype, uint64_t bits) {
  const ax_dtype_info *f = ax_dtype_get(dtype);
  const uint64_t all = ones(f->exponent + f->fraction);
  switch (f->specials) {
    case AX_SPECIALS_IEEE: return (bits & all) > ones(f->exponent) << f->fraction;
    case AX_SPECIALS_FINITE: return (bits & all) == all;
    case AX_SPECIALS_POWERS: return bits == all;
    case AX_SPECIALS_ONE_ZERO: return bits == all + 1;
    default: return false;
  }
}

double ax_float_largest(ax_dtype dtype) {
  const ax_dtype_info *f = ax_dtype_get(dtype);
  const uint64_t bits = ax_float_largest_bits(dtype), unit = (uint64_t)1 << f->fraction;
  return ldexp((double)(unit + (bits & (unit - 1))), (int)(bits >> f->fraction) - f->bias - (int)f->fraction);
}

double ax_float_smallest_normal(ax_dtype dtype) {
  const ax_dtype_info *f = ax_dtype_get(dtype);
  return ldexp(1, f->specials == AX_SPECIALS_POWERS ? -f->bias : 1 - f->bias);
}

double ax_float_least(ax_dtype dtype) {
  return ax_has_sign(dtype) ? -ax_float_largest(dtype) : ax_float_smallest_normal(dtype);
}
