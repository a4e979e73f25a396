/* Fourier transforms along several dimensions, one after the other by the primitive fft (src/fourier); frequencies. */
#include <string.h>

#include "axle/numpy.h"
#include "lib/checked.h"

/* --- Several dimensions --- */

/* The transform along each of the dimensions, the last first: where an array is cut along its first dimension, most transforms then need
   no other device. count AX_ALL_DIMS: of all. */
static ax_value along_each(const char *name, ax_value (*one)(ax_value, int64_t), ax_value x, uint32_t count, const int64_t *axes) {
  ax_type type;
  if (!ax_operand(name, x, &type)) return ax_poison;
  const uint32_t given = axes == NULL ? type.rank : ax_list_entries(count, type.rank);
  if (given == 0) return ax_reject_as(name, "there is no axis");
  for (uint32_t i = given; i-- > 0 && !ax_failed();) x = one(x, axes == NULL ? (int64_t)i : axes[i]);
  return ax_failed() ? ax_poison : x;
}

ax_value(ax_fftn)(ax_value x, uint32_t count, const int64_t *axes) { return along_each("fftn", ax_fft, x, count, axes); }
ax_value(ax_ifftn)(ax_value x, uint32_t count, const int64_t *axes) { return along_each("ifftn", ax_ifft, x, count, axes); }

ax_value(ax_rfftn)(ax_value x, uint32_t count, const int64_t *axes) {
  ax_type type;
  if (!ax_operand("rfftn", x, &type)) return ax_poison;
  const uint32_t given = axes == NULL ? type.rank : ax_list_entries(count, type.rank);
  if (given == 0) return ax_reject_as("rfftn", "there is no axis");
  x = ax_rfft(x, axes == NULL ? (int64_t)type.rank - 1 : axes[given - 1]);
  for (uint32_t i = given - 1; i-- > 0 && !ax_failed();) x = ax_fft(x, axes == NULL ? (int64_t)i : axes[i]);
  return ax_failed() ? ax_poison : x;
}

ax_value(ax_irfftn)(ax_value x, int64_t n, uint32_t count, const int64_t *axes) {
  ax_type type;
  if (!ax_operand("irfftn", x, &type)) return ax_poison;
  const uint32_t given = axes == NULL ? type.rank : ax_list_entries(count, type.rank);
  if (given == 0) return ax_reject_as("irfftn", "there is no axis");
  for (uint32_t i = 0; i + 1 < given && !ax_failed(); i++) x = ax_ifft(x, axes == NULL ? (int64_t)i : axes[i]);
  return ax_failed() ? ax_poison : ax_irfft(x, n, axes == NULL ? (int64_t)type.rank - 1 : axes[given - 1]);
}

/* --- Frequencies --- */

enum { most = INT32_MAX }; /* frequencies: they are a constant */

/* The first `count` of 0, 1, .., over n * spacing; those from `negative` on are less n. */
static ax_value frequencies(const char *name, ax_dtype dtype, int64_t n, double spacing, int64_t count, int64_t negative) {
  if ((dtype != AX_F32 && dtype != AX_F64) || n < 1 || n > most || !(spacing != 0))
    return ax_reject_as(name, "n is %lld, and the spacing %g; they must not be 0, n at most %d, and the dtype f32 or f64",
                        (long long)n, spacing, most);
  double *values = ax_trace_alloc((size_t)count * sizeof values[0]);
  if (values == NULL) return ax_poison;
  for (int64_t k = 0; k < count; k++) values[k] = (double)(k >= negative ? k - n : k) / ((double)n * spacing);
  const ax_type type = {.form = AX_ARRAY, .dtype = AX_F64, .rank = 1, .dims = {count}};
  const ax_value all = (ax_constant)(&type, AX_F64, values, (size_t)count * sizeof values[0]);
  return ax_convert_element_type(all, dtype);
}

ax_value ax_fftfreq(ax_dtype dtype, int64_t n, double spacing) { return frequencies("fftfreq", dtype, n, spacing, n, (n + 1) / 2); }
ax_value ax_rfftfreq(ax_dtype dtype, int64_t n, double spacing) { return frequencies("rfftfreq", dtype, n, spacing, n / 2 + 1, n); }

static ax_value shifted(const char *name, ax_value x, uint32_t count, const int64_t *axes, bool back) {
  int64_t shifts[AX_MAX_RANK], along[AX_MAX_RANK];
  ax_type type;
  if (!ax_operand(name, x, &type)) return ax_poison;
  const uint32_t given = axes == NULL ? type.rank : ax_list_entries(count, type.rank);
  if (given > type.rank) return ax_reject_as(name, "%u axes of %s", given, ax_operand_string(&type));
  for (uint32_t i = 0; i < given; i++) {
    along[i] = axes == NULL ? (int64_t)i : axes[i];
    if (!ax_dimension(name, "an axis", &along[i], type.rank)) return ax_poison;
    const int64_t half = type.dims[along[i]] / 2;
    shifts[i] = back ? -half : half;
  }
  return (ax_roll)(x, given, shifts, given, along);
}

ax_value(ax_fftshift)(ax_value x, uint32_t count, const int64_t *axes) { return shifted("fftshift", x, count, axes, false); }
ax_value(ax_ifftshift)(ax_value x, uint32_t count, const int64_t *axes) { return shifted("ifftshift", x, count, axes, true); }
