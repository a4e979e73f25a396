/* The functions of vector_f32.h and vector_f64.h for registers of 64 bytes. CMakeLists.txt has this file alone compiled for
   AVX-512. */
#include "jit/math/vector_math.h"

#if defined(__AVX512F__) && defined(__AVX512DQ__)
#define AX_VECTOR_BYTES 64
#define AX_SLEEF_ERFC Sleef_erfcd8_u15avx512f
#define AX_SLEEF_TAN Sleef_tand8_u10avx512f
#include "jit/math/vector_f32.h"
#include "jit/math/vector_angles_f32.h"
#include "jit/math/vector_f64.h"
#include "jit/math/vector_angles_f64.h"
#include "jit/math/vector_pow_f64.h"
#include "jit/math/vector_rem.h"
#include "jit/math/vector_special.h"
#define AX_VECTOR_TABLE ax_vector_math_64
#include "jit/math/vector_table.h"
#else
const ax_vector_math ax_vector_math_64;
#endif
