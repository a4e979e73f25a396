/* The functions of vector_f32.h and vector_f64.h for registers of 32 bytes. CMakeLists.txt has this file alone compiled for AVX2
   and FMA. */
#include "jit/math/vector_math.h"

#if defined(__AVX2__) && defined(__FMA__)
#define AX_VECTOR_BYTES 32
#define AX_SLEEF_ERFC Sleef_erfcd4_u15avx2
#define AX_SLEEF_TAN Sleef_tand4_u10avx2
#include "jit/math/vector_f32.h"
#include "jit/math/vector_angles_f32.h"
#include "jit/math/vector_f64.h"
#include "jit/math/vector_angles_f64.h"
#include "jit/math/vector_pow_f64.h"
#include "jit/math/vector_rem.h"
#include "jit/math/vector_special.h"
#define AX_VECTOR_TABLE ax_vector_math_32
#include "jit/math/vector_table.h"
#else
const ax_vector_math ax_vector_math_32;
#endif
