/* Dtypes: the table (dtype.def), and the questions that the rest of the house asks about one instead of comparing names. */
#ifndef AX_IR_DTYPE_H
#define AX_IR_DTYPE_H

#include "axle/type.h"
#include "base/base.h"

int ax_dtype_find(const char *name, size_t length); /* AX_NO_DTYPE when there is none */
typedef enum ax_dtype_kind { AX_KIND_BOOL, AX_KIND_SIGNED, AX_KIND_UNSIGNED, AX_KIND_FLOAT, AX_KIND_COMPLEX, AX_KIND_KEY } ax_dtype_kind;

/* What a float format has besides numbers, a sign and two zeros. */
typedef enum ax_specials {
  AX_SPECIALS_NONE,      /* it is no float */
  AX_SPECIALS_IEEE,      /* of the largest exponent: the infinity, then NaNs */
  AX_SPECIALS_FINITE,    /* all ones are NaN, which also stands for what is too large */
  AX_SPECIALS_ONE_ZERO,  /* there is no -0: its bits are the one NaN, which also stands for what is too large */
  AX_SPECIALS_SATURATED, /* nothing: what is too large becomes the largest number, and NaN a zero of the other sign */
  AX_SPECIALS_POWERS     /* the numbers are powers of 2: no sign, no zero; all ones are NaN, which also stands for what is too large,
                            zero or negative. Halfway between two it is rounded up, as is all between the two smallest. */
} ax_specials;

typedef struct ax_dtype_info {
  const char *name, *hlo, *numpy; /* "f32", "f32", "<f4"; numpy is NULL where its files have no name for this dtype alone */
  size_t bytes;
  uint32_t bits; /* the lower ones of the bytes; 1 of bool */
  ax_dtype_kind kind;
  ax_dtype computed; /* arithmetic is done in this dtype, and each result is rounded once; of complex numbers their parts' */
  uint32_t exponent, fraction; /* of floats: bits */
  int32_t bias;
  ax_specials specials;
} ax_dtype_info;
const ax_dtype_info *ax_dtype_get(ax_dtype dtype); /* never NULL */

/* Three questions that most dtypes answer alike: all three hold of floats but for powers of 2, none of integers; complex numbers are
   differentiable and round, but are no floats. */
/* A value of the dtype has a tangent and a cotangent. Powers of 2 have none: there is neither 0 among them nor a negative number. */
bool ax_is_differentiable(ax_dtype dtype);
/* Its elements are real numbers, most with NaN, infinities and two zeros. They are ordered, but for NaN, and ax_number holds one as
   f. */
bool ax_is_float(ax_dtype dtype);
/* Arithmetic on it rounds, and has fractions. So a sum depends on the order of its terms and begins with -0 as its neutral element,
   long sums are made in a wider dtype, and bits have no meaning to users. */
bool ax_rounds(ax_dtype dtype);

/* Truth values and integers: arithmetic on them gives one result wherever it is done. */
bool ax_is_exact(ax_dtype dtype);

bool ax_is_key(ax_dtype dtype);
bool ax_is_complex(ax_dtype dtype);
/* The dtype of a complex number's two parts; any other dtype itself. */
ax_dtype ax_part_dtype(ax_dtype dtype);
/* The complex dtype with these parts; AX_NO_DTYPE for all but f32 and f64. */
ax_dtype ax_complex_dtype(ax_dtype part);

/* The dtype in which reference code adds and multiplies many numbers: f64, c128, an integer itself. */
ax_dtype ax_widest_dtype(ax_dtype dtype);

/* It is a float of less than 32 bits, whose sums and functions are computed in f32. */
bool ax_is_narrow_float(ax_dtype dtype);
/* It is a float of a byte: f8, f6 and f4. Registers hold f32, also where only its sign is turned, and results are rounded. */
bool ax_is_byte_float(ax_dtype dtype);
/* It is an integer of less than 8 bits, which memory holds in the lower bits of a byte. */
bool ax_is_short_integer(ax_dtype dtype);
/* The dtype of what numbers of a byte are multiplied as, which holds all of them: bf16 for f8 and f4, s8 and u8 for short
   integers; the dtype itself for others. Products have ax_product_result of it. */
ax_dtype ax_multiplied_as(ax_dtype dtype);
/* Every number of `from` is one of `to`: the conversion loses nothing. */
bool ax_dtype_widens(ax_dtype from, ax_dtype to);
/* Operands of `from`, whose products are added as `to`, become that before they are multiplied: wider floats, as many bits or more of
   integers, and floats for integers, whose own products would wrap around. */
bool ax_is_multiplied_as(ax_dtype from, ax_dtype to);

/* --- Floats --- */
/* Its numbers are powers of 2, f8e8m0fnu: it has no sign and no zero, and its least number is subnormal in f32. */
bool ax_is_power(ax_dtype dtype);
bool ax_has_infinity(ax_dtype dtype);
bool ax_has_nan(ax_dtype dtype);
bool ax_has_sign(ax_dtype dtype);
/* Bits without the sign: of the largest finite number; of infinity, or what stands for it; of the positive NaN. */
uint64_t ax_float_largest_bits(ax_dtype dtype);
uint64_t ax_float_infinity_bits(ax_dtype dtype);
uint64_t ax_float_nan_bits(ax_dtype dtype);
bool ax_float_is_nan(ax_dtype dtype, uint64_t bits);
/* The largest finite number; the least one (that of the other sign, or the smallest power); the smallest normal number. */
double ax_float_largest(ax_dtype dtype);
double ax_float_least(ax_dtype dtype);
double ax_float_smallest_normal(ax_dtype dtype);

/* The bits of a float dtype's exponent and of its fraction; the sign is one more. */
typedef struct ax_float_form {
  int exponent, fraction;
} ax_float_form;
ax_float_form ax_float_form_of(ax_dtype dtype);

#endif
