/* A function for a custom call of rms_norm.mlir, built as a shared library. It is of the oldest kind that XLA on CPUs calls, which needs no
   header: it is given memory alone, so the module hands it the shape. */
#include <math.h>
#include <stdint.h>

void RmsNorm(void *out, const void **in);
void RmsNorm(void *out, const void **in) {
  const int32_t *shape = in[0];
  const float *x = in[1];
  float *y = out;
  for (int32_t r = 0; r < shape[0]; r++, x += shape[1], y += shape[1]) {
    float sum = 0;
    for (int32_t i = 0; i < shape[1]; i++) sum += x[i] * x[i];
    for (int32_t i = 0; i < shape[1]; i++) y[i] = x[i] / sqrtf(sum / (float)shape[1]);
  }
}
