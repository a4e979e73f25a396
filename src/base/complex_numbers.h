/* <complex.h> with the macros that make a number of its parts. glibc has them for compilers that say they are gcc 4.7 or later; clang
   says it is gcc 4.2. Included last: its macro `complex` is a slot's name in records (ir/prim.h). */
#ifndef AX_BASE_COMPLEX_NUMBERS_H
#define AX_BASE_COMPLEX_NUMBERS_H

#include <complex.h>

#ifndef CMPLX
#define CMPLX(x, y) __builtin_complex((double)(x), (double)(y))
#define CMPLXF(x, y) __builtin_complex((float)(x), (float)(y))
#endif

#endif
