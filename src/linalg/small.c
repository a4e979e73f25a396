/* Small matrices: small_template.h for each dtype and, by small_registers.h, each width of registers; and what counts as small. */
#include "linalg/small.h"

#include <math.h>
#include <string.h>

#include "machine/features.h"

/* The row of a pivot; of a user's that is no row, the first or the last one. */
static inline int32_t existing_row(int32_t pivot, int64_t rows) {
  return pivot < 0 ? 0 : pivot < rows ? pivot : (int32_t)rows - 1;
}

/* A product that is rounded before it is added. The compiler is told not to contract the two; gcc 12 does it all the same where
   it sees a product of complex numbers, unless the product may not be regrouped. Other compilers keep to what they are told.
   Vectors are not looked at for such products; gcc 12 would take them apart, number by number, for the barrier. */
#if defined(__has_builtin)
#if __has_builtin(__builtin_assoc_barrier)
#define ROUNDED_ALONE(x) __builtin_assoc_barrier(x)
#endif
#endif
#if !defined(ROUNDED_ALONE)
#define ROUNDED_ALONE(x) (x)
#endif

typedef struct triangle { /* of a system: a's, and whether it is taken transposed, conjugated, with a diagonal of 1 */
  bool lower, transposed, conjugated, unit;
} triangle;

enum { least_beside = 16 }; /* rows from which on right sides of complex numbers are worth moving beside each other */

#define PART float
#define BITS int32_t
#define COMPLEX 0
#define SIZE_OF fabsf
#define ROOT_OF sqrtf
#define MANY 16
#define FUNCTION(registers, x) f32_##registers##_##x
#include "linalg/small_registers.h"

#define PART double
#define BITS int64_t
#define COMPLEX 0
#define SIZE_OF fabs
#define ROOT_OF sqrt
#define MANY 8
#define FUNCTION(registers, x) f64_##registers##_##x
#include "linalg/small_registers.h"

#define PART float
#define BITS int32_t
#define COMPLEX 1
#define SIZE_OF fabsf
#define ROOT_OF sqrtf
#define MANY 16
#define FUNCTION(registers, x) c64_##registers##_##x
#include "linalg/small_registers.h"

#define PART double
#define BITS int64_t
#define COMPLEX 1
#define SIZE_OF fabs
#define ROOT_OF sqrt
#define MANY 8
#define FUNCTION(registers, x) c128_##registers##_##x
#include "linalg/small_registers.h"

/* --- Which --- */

#define ROUTINES(of) \
  {of##_lu, of##_cholesky, of##_triangular_solve, of##_linear_solve, of##_geqrf, of##_householder_product, of##_qr}

typedef ax_matrix_code *routines[AX_SMALL_COUNT];

typedef struct codes { /* of a dtype and a width of registers: of one matrix, and of some side by side */
  routines one, lanes;
} codes;

#define CODES(dtype, registers) {ROUTINES(dtype##_one_##registers), ROUTINES(dtype##_##registers)}

#define ALL_DTYPES(registers) {CODES(f32, registers), CODES(f64, registers), CODES(c64, registers), CODES(c128, registers)}

/* By registers of `bytes` bytes; NULL: the processor has none. */
static const codes *codes_of(ax_dtype dtype, uint32_t bytes) {
  static const codes plain[] = ALL_DTYPES(plain);
  const size_t at = dtype == AX_F32 ? 0 : dtype == AX_F64 ? 1 : dtype == AX_C64 ? 2 : 3;
#if defined(__x86_64__)
  static const codes wide[] = ALL_DTYPES(wide), widest[] = ALL_DTYPES(widest);
  if (bytes == 64) return ax_machine_has(AX_FEATURE_AVX512) ? &widest[at] : NULL;
  if (bytes == 32) return ax_machine_has(AX_FEATURE_AVX2) ? &wide[at] : NULL;
#endif
  return bytes == 16 ? &plain[at] : NULL;
}

typedef struct small {
  double elems, steps; /* of f32 in operands and results; multiplications */
  uint32_t overwritten; /* the operand that the first result is made over; AX_NONE: none */
} small;

static small small_of(const ax_matrix_call *call, ax_small which) {
  const double m = (double)call->m, n = (double)call->n, order = which == AX_SMALL_TRIANGULAR_SOLVE && !call->left ? n : m;
  switch (which) {
    case AX_SMALL_LU: return (small){m * n, m * n * fmin(m, n), 0};
    case AX_SMALL_CHOLESKY: return (small){n * n, n * n * n / 2, 0};
    case AX_SMALL_TRIANGULAR_SOLVE: return (small){order * order / 2 + m * n, m * n * order, 1};
    case AX_SMALL_LINEAR_SOLVE: return (small){order * order / 2 + m * n, 3 * m * n * order, 3};
    case AX_SMALL_GEQRF: return (small){m * n, 2 * m * n * fmin(m, n), 0};
    case AX_SMALL_HOUSEHOLDER_PRODUCT: return (small){m * n, 2 * m * n * (double)call->k, 0};
    default: return (small){m * n + (m + n) * (double)call->columns, 4 * m * fmax(n, (double)call->columns) * fmin(m, n), AX_NONE};
  }
}

bool ax_small_by(ax_matrix_routine *routine, ax_small which, uint32_t bytes) {
  const codes *found = codes_of(routine->call.dtype, bytes);
  if (found == NULL) return false;
  routine->code = found->one[which];
  routine->lanes = found->lanes[which];
  return true;
}

void ax_small_code(ax_matrix_routine *routine, ax_small which) {
  enum { most_beside = 20 }; /* larger ones of complex numbers, side by side, are in no near cache */
  const ax_matrix_call *call = &routine->call;
  const small s = small_of(call, which);
  if (call->m > AX_SMALL_ORDER || call->n > AX_SMALL_ORDER) return;
  routine->unread = which == AX_SMALL_LINEAR_SOLVE ? 0 : AX_NONE; /* the matrices themselves: their factors do */
  routine->overwritten = s.overwritten;
  routine->work_bytes = 0;
  const double parts = ax_is_complex(call->dtype) ? 2 : 1; /* of a number; a product of two has as many as these have together */
  routine->time = (8 + 0.6 * s.elems * parts + 0.02 * s.steps * parts * parts) * (ax_part_dtype(call->dtype) == AX_F32 ? 1 : 2);
  uint32_t bytes = 64;
  while (!ax_small_by(routine, which, bytes)) bytes /= 2;
  if (ax_is_complex(call->dtype) && (call->m > most_beside || call->n > most_beside)) routine->lanes = NULL;
}
