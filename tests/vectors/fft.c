/* Fourier transforms: fft.py says the same in JAX. */
#include "axle/numpy.h"
#include "vectors/vectors.h"

#define BOTH "f32 f64"

static ax_value complex_of(ax_value x) {
  return ax_complex(x, ax_mul(ax_flip(x, DIMS(-1)), ax_real(0.5)));
}

static ax_value *put(ax_value *out, ax_value y) {
  out[0] = ax_real_part(y);
  out[1] = ax_imag_part(y);
  return out + 2;
}

static void along(ax_value x, int64_t axis, ax_value *out) {
  ax_value z = complex_of(x);
  put(put(put(put(out, ax_fft(z, axis)), ax_ifft(z, axis)), ax_fft(x, axis)), ax_rfft(x, axis));
}
BODY(last) { along(in[0], -1, out); }
BODY(middle) { along(in[0], 1, out); }

#define BACK(n) \
  static ax_value irfft##n(ax_value x) { return ax_irfft(complex_of(x), n, -1); }
BACK(1)
BACK(2)
BACK(7)
BACK(12)
BACK(31)
BACK(256)

BODY(several) {
  ax_value x = in[0], z = complex_of(x);
  put(put(put(put(out, ax_fftn(z, AX_ALL_DIMS)), ax_ifftn(z, DIMS(0, 2))), ax_rfftn(x, DIMS(2, 1))), ax_fftn(z, DIMS(-2, -1)));
  out[8] = ax_irfftn(z, 8, AX_ALL_DIMS);
}
BODY(shifts) {
  const ax_dtype dtype = ax_typeof(in[0]).dtype;
  ax_value first = ax_reshape(ax_slice_in_dim(ax_slice_in_dim(in[0], 0, 1, 1, 0), 0, 1, 1, 1), DIMS());
  out[0] = ax_fftshift(in[0], AX_ALL_DIMS);
  out[1] = ax_ifftshift(in[0], DIMS(1));
  out[2] = ax_add(ax_fftfreq(dtype, 7, 0.5), first);
  out[3] = ax_add(ax_rfftfreq(dtype, 8, 1), first);
}
BODY(squared_back) { out[0] = ax_irfft(ax_square(ax_rfft(in[0], 0)), 6, 0); }
BODY(spectrum) {
  ax_value y = ax_rfft(in[0], -1);
  out[0] = ax_reduce_sum(ax_square(ax_abs(y)), DIMS(-1), false);
  const ax_vmap_options columns = {.in_axes = {DIMS(1)}};
  (ax_vmap)(AX_FN(squared_back, 1, 1), 1, in, 1, out + 1, &columns);
}

#define LENGTH(n) {"fft" #n, BOTH, .body = last, .out = 8, .scaled = true}
static const vector_case fft_cases[] = {
    LENGTH(1), LENGTH(2), LENGTH(3), LENGTH(8), LENGTH(15), LENGTH(128), LENGTH(131), LENGTH(262), LENGTH(384),
    {"fft20_middle", BOTH, .body = middle, .out = 8, .scaled = true},
    {"irfft1", BOTH, .unary = irfft1, .scaled = true},
    {"irfft2", BOTH, .unary = irfft2, .scaled = true},
    {"irfft7", BOTH, .unary = irfft7, .scaled = true},
    {"irfft12", BOTH, .unary = irfft12, .scaled = true},
    {"irfft31", BOTH, .unary = irfft31, .scaled = true},
    {"irfft256", BOTH, .unary = irfft256, .scaled = true},
    {"fft_several", BOTH, .body = several, .out = 9, .scaled = true},
    {"fft_shifts", BOTH, .body = shifts, .out = 4},
    {"spectrum", BOTH, .body = spectrum, .out = 2, .scaled = true},
};

const VECTOR_GROUP(fft);
