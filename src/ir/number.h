/* One element of any dtype, widened to the type in which reference code computes. Rounding f64 to a smaller float after each
   operation gives the same bits as computing in that dtype (for + - * / sqrt). */
#ifndef AX_IR_NUMBER_H
#define AX_IR_NUMBER_H

#include "ir/program.h"

typedef struct ax_number {
  union {
    double f;   /* AX_KIND_FLOAT, and the real part of AX_KIND_COMPLEX */
    int64_t i;  /* AX_KIND_SIGNED */
    uint64_t u; /* AX_KIND_UNSIGNED, AX_KIND_BOOL (0 or 1), AX_KIND_KEY (the first word below) */
  };
  double imag; /* AX_KIND_COMPLEX */
} ax_number;
/* The bytes of one element of any dtype, for a number that is stored to be looked at. */
typedef struct ax_element {
  uint64_t bits[2]; /* of all dtypes but c128 the first holds all */
} ax_element;

ax_number ax_number_load(ax_dtype dtype, const void *data, int64_t index);
/* Floats are rounded to nearest even; integers wrap. */
void ax_number_store(ax_dtype dtype, void *data, int64_t index, ax_number number);
/* The semantics of convert_element_type: float to integer truncates and saturates, NaN gives 0; to bool is != 0; integer to float
   is rounded once; a complex number loses its imaginary part, but to bool. Float to float is left to the store that follows. */
ax_number ax_number_convert(ax_dtype from, ax_dtype to, ax_number number);
/* Rounds a number to `dtype`, as a store and a load do. */
ax_number ax_number_round(ax_dtype dtype, ax_number number);
/* The number of a float dtype that is nearest to a decimal as strtod reads it, in the C locale: rounded once. *end: behind the
   decimal. */
ax_number ax_number_decimal(ax_dtype dtype, const char *word, char **end);
/* A float or complex dtype has the real number, after rounding: it is not too large, and where it is NaN or infinite the dtype has that. */
bool ax_number_holds(ax_dtype dtype, double value);
ax_number ax_number_of(ax_dtype dtype, double value);

#endif
