/* Images resized: along each dimension a product with a matrix of weights, which depends on the sizes alone and so is a constant.
   Weights are those of jax.image.resize, computed in f64. */
#include <math.h>
#include <string.h>

#include "axle/numpy.h"
#include "lib/checked.h"

static double triangle(double x) { return x < 1 ? 1 - x : 0; }

/* Keys, Cubic convolution interpolation for digital image processing, 1981, with a = -1/2. */
static double cubic(double x) {
  if (x >= 2) return 0;
  return x >= 1 ? ((-0.5 * x + 2.5) * x - 4) * x + 2 : (1.5 * x - 2.5) * x * x + 1;
}

static double lanczos(double radius, double x) {
  const double pi = 3.14159265358979323846;
  if (x > radius) return 0;
  return x > 1e-3 ? radius * sin(pi * x) * sin(pi * x / radius) / (pi * pi * x * x) : 1;
}
static double lanczos3(double x) { return lanczos(3, x); }
static double lanczos5(double x) { return lanczos(5, x); }

typedef double (*filter)(double distance);
typedef struct method {
  const char *name;
  filter weight; /* NULL: the nearest element alone */
} method;
static const method methods[] = {
    {"nearest", NULL}, {"linear", triangle}, {"cubic", cubic}, {"lanczos3", lanczos3}, {"lanczos5", lanczos5}};

static const method *find(const char *name) {
  for (size_t i = 0; name != NULL && i < sizeof methods / sizeof methods[0]; i++)
    if (strcmp(methods[i].name, name) == 0) return &methods[i];
  ax_reject_as("image_resize", "there is no method \"%s\"", name != NULL ? name : "");
  return NULL;
}

/* weights[m, n]: what each of m elements adds to each of n. A filter that is wider than 1 takes the mean of what it covers. */
static void weigh(double *weights, int64_t m, int64_t n, filter weight, bool antialias) {
  const double step = (double)m / (double)n, width = antialias && step > 1 ? step : 1;
  for (int64_t j = 0; j < n; j++) {
    const double at = ((double)j + 0.5) * step - 0.5;
    double sum = 0;
    for (int64_t i = 0; i < m; i++) sum += weights[i * n + j] = weight(fabs(at - (double)i) / width);
    const bool inside = at >= -0.5 && at <= (double)m - 0.5 && fabs(sum) > 1000 * 0x1p-23;
    for (int64_t i = 0; i < m; i++) weights[i * n + j] = inside ? weights[i * n + j] / sum : 0;
  }
}

static ax_value weights_of(int64_t m, int64_t n, ax_dtype dtype, filter weight, bool antialias) {
  const ax_type type = ax_array_type(AX_F64, AX_LIST(2, ((int64_t[]){m, n})));
  const int64_t elems = ax_type_elems(&type);
  double *weights = ax_trace_alloc((size_t)(elems + 1) * sizeof weights[0]);
  if (weights == NULL) return ax_poison;
  weigh(weights, m, n, weight, antialias);
  if (dtype == AX_F64) return (ax_constant)(&type, AX_F64, weights, (size_t)elems * sizeof weights[0]);
  const ax_type narrow = ax_array_type(AX_F32, AX_LIST(2, type.dims));
  float *rounded = ax_trace_alloc((size_t)(elems + 1) * sizeof rounded[0]);
  if (rounded == NULL) return ax_poison;
  for (int64_t i = 0; i < elems; i++) rounded[i] = (float)weights[i];
  return ax_convert_element_type((ax_constant)(&narrow, AX_F32, rounded, (size_t)elems * sizeof rounded[0]), dtype);
}

/* Rounded as JAX does it, in f32. */
static ax_value nearest(ax_value x, int64_t m, int64_t n, int64_t d) {
  const ax_type type = ax_array_type(AX_S32, AX_LIST(1, &n));
  int32_t *from = ax_trace_alloc((size_t)(n + 1) * sizeof from[0]);
  if (from == NULL) return ax_poison;
  for (int64_t j = 0; j < n; j++) from[j] = (int32_t)floorf(((float)j + 0.5F) * (float)m / (float)n);
  return ax_take(x, (ax_constant)(&type, AX_S32, from, (size_t)n * sizeof from[0]), d);
}

ax_value (ax_image_resize)(ax_value x, uint32_t rank, const int64_t *dims, const char *method_name, bool antialias) {
  static const char name[] = "image_resize";
  ax_type t;
  const method *by = find(method_name);
  if (by == NULL || !ax_operand(name, x, &t) || (by->weight != NULL && !ax_float_operand(name, x))) return ax_poison;
  if (rank != t.rank) return ax_reject_as(name, "%u dimensions are given for %s", rank, ax_operand_string(&t));
  for (uint32_t d = 0; d < rank; d++)
    if (dims[d] < 0 || dims[d] > INT32_MAX || (t.dims[d] == 0 && dims[d] > 0))
      return ax_reject_as(name, "dimension %u of %s cannot become %lld", d, ax_operand_string(&t), (long long)dims[d]);
  for (uint32_t d = 0; d < rank && !ax_failed(); d++) {
    if (dims[d] == t.dims[d]) continue;
    if (by->weight == NULL) {
      x = nearest(x, t.dims[d], dims[d], d);
      continue;
    }
    const int64_t zero = 0, at = d;
    ax_value weights = weights_of(t.dims[d], dims[d], t.dtype, by->weight, antialias);
    x = ax_dot_general(x, weights, AX_LIST(1, &at), AX_LIST(1, &zero), AX_DIMS(), AX_DIMS());
    x = ax_moveaxis(x, -1, d);
  }
  return x;
}
