/* Small matrices: small_template.h for each dtype and each width of registers, and what counts as small. */
#include "linalg/small.h"

#include <math.h>
#include <string.h>

#include "machine/features.h"

/* Any number is a row: a pivot of a user's may be none. */
static inline int32_t existing_row(int32_t pivot, int64_t rows) {
  return pivot < 0 ? 0 : pivot < rows ? pivot : (int32_t)rows - 1;
}

/* gcc remarks that functions which hand on registers of 64 bytes are called otherwise where there are none: none here does. */
#if !defined(__clang__)
#pragma GCC diagnostic ignored "-Wpsabi"
#endif

/* --- f32 --- */

#define PART float
#define BITS int32_t
#define SIZE_OF fabsf
#define ROOT_OF sqrtf

#define NAME(x) f32_one_##x
#define LANES 1
#define TARGETED
#include "linalg/small_template.h"

#define NAME(x) f32_plain_##x
#define LANES 16
#define TARGETED
#include "linalg/small_template.h"

#if defined(__x86_64__)
#define NAME(x) f32_wide_##x
#define LANES 16
#define TARGETED __attribute__((target("avx2")))
#include "linalg/small_template.h"

#define NAME(x) f32_widest_##x
#define LANES 16
#define TARGETED __attribute__((target("avx512f,avx512vl,avx512bw,avx512dq")))
#include "linalg/small_template.h"
#endif

#undef PART
#undef BITS
#undef SIZE_OF
#undef ROOT_OF

/* --- f64 --- */

#define PART double
#define BITS int64_t
#define SIZE_OF fabs
#define ROOT_OF sqrt

#define NAME(x) f64_one_##x
#define LANES 1
#define TARGETED
#include "linalg/small_template.h"

#define NAME(x) f64_plain_##x
#define LANES 8
#define TARGETED
#include "linalg/small_template.h"

#if defined(__x86_64__)
#define NAME(x) f64_wide_##x
#define LANES 8
#define TARGETED __attribute__((target("avx2")))
#include "linalg/small_template.h"

#define NAME(x) f64_widest_##x
#define LANES 8
#define TARGETED __attribute__((target("avx512f,avx512vl,avx512bw,avx512dq")))
#include "linalg/small_template.h"
#endif

#undef PART
#undef BITS
#undef SIZE_OF
#undef ROOT_OF

/* --- Which --- */

#define ROUTINES(of) \
  {of##_lu, of##_cholesky, of##_triangular_solve, of##_linear_solve, of##_geqrf, of##_householder_product, of##_qr}

typedef ax_matrix_code *const routines[AX_SMALL_COUNT];

static routines f32_one = ROUTINES(f32_one), f64_one = ROUTINES(f64_one), f32_plain = ROUTINES(f32_plain), f64_plain = ROUTINES(f64_plain);
#if defined(__x86_64__)
static routines f32_wide = ROUTINES(f32_wide), f64_wide = ROUTINES(f64_wide), f32_widest = ROUTINES(f32_widest), f64_widest = ROUTINES(f64_widest);
#endif

ax_matrix_code *ax_small_lanes(ax_small which, ax_dtype dtype, uint32_t bytes) {
  const bool is_f32 = dtype == AX_F32;
#if defined(__x86_64__)
  if (bytes == 64) return !ax_machine_has(AX_FEATURE_AVX512) ? NULL : is_f32 ? f32_widest[which] : f64_widest[which];
  if (bytes == 32) return !ax_machine_has(AX_FEATURE_AVX2) ? NULL : is_f32 ? f32_wide[which] : f64_wide[which];
#endif
  return bytes != 16 ? NULL : is_f32 ? f32_plain[which] : f64_plain[which];
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

void ax_small_code(ax_matrix_routine *routine, ax_small which) {
  const ax_matrix_call *call = &routine->call;
  const small s = small_of(call, which);
  if (ax_is_complex(call->dtype) || call->m > AX_SMALL_ORDER || call->n > AX_SMALL_ORDER) return;
  routine->code = call->dtype == AX_F32 ? f32_one[which] : f64_one[which];
  routine->unread = which == AX_SMALL_LINEAR_SOLVE ? 0 : AX_NONE; /* the matrices themselves: their factors do */
  routine->overwritten = s.overwritten;
  routine->work_bytes = 0;
  routine->time = (8 + 0.6 * s.elems + 0.07 * s.steps) * (call->dtype == AX_F32 ? 1 : 2);
  for (uint32_t bytes = 64; bytes >= 16 && routine->lanes == NULL; bytes /= 2) routine->lanes = ax_small_lanes(which, call->dtype, bytes);
}
