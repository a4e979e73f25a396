/* Dtypes: the table, and the questions that the rest of the house asks about one instead of comparing names. */
#ifndef AX_IR_DTYPE_H
#define AX_IR_DTYPE_H

#include "axle/type.h"
#include "base/base.h"

int ax_dtype_find(const char *name, size_t length); /* AX_NO_DTYPE when there is none */
typedef enum ax_dtype_kind { AX_KIND_BOOL, AX_KIND_SIGNED, AX_KIND_UNSIGNED, AX_KIND_FLOAT } ax_dtype_kind;
typedef struct ax_dtype_info {
  const char *name, *hlo, *numpy; /* "f32", "f32", "<f4"; numpy is NULL where NumPy has no such dtype */
  size_t bytes;
  ax_dtype_kind kind;
} ax_dtype_info;
const ax_dtype_info *ax_dtype_get(ax_dtype dtype); /* never NULL */

/* Three questions that today's dtypes answer alike, and that others (complex numbers) do not. */
/* A value of the dtype has a tangent and a cotangent. */
bool ax_is_differentiable(ax_dtype dtype);
/* Its elements are real numbers with NaN, infinities and two zeros. They are ordered, but for NaN, and ax_number holds one as f. */
bool ax_is_float(ax_dtype dtype);
/* Arithmetic on it rounds, and has fractions. So a sum depends on the order of its terms and begins with -0 as its neutral element,
   long sums are made in a wider dtype, and bits have no meaning to users. */
bool ax_rounds(ax_dtype dtype);

/* It is bf16 or f16: a float of 16 bits, whose sums and functions are computed in f32. */
bool ax_is_narrow_float(ax_dtype dtype);

#endif
