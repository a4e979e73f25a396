/* Every helper fails the test itself, at the line that called it. */
#include "support/tensor.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ir/number.h"
#include "ir/prim.h"
#include "support/cmocka.h"

void test_ok(ax_status status, const char *file, int line) {
  if (status == AX_OK) return;
  print_error("%s: %s\n", ax_status_name(status), ax_message());
  _fail(file, line);
}

void test_fails(ax_status status, ax_status kind, const char *part, const char *file, int line) {
  if (status == kind && strstr(ax_message(), part) != NULL) return;
  print_error("%s, not %s with \"%s\": %s\n", ax_status_name(status), ax_status_name(kind), part, ax_message());
  _fail(file, line);
}

ax_tensor *test_tensor(ax_type type, const double *values) {
  ax_tensor *tensor;
  TEST_OK(ax_tensor_create(&type, &tensor));
  for (int64_t i = 0; values != NULL && i < test_elems(tensor); i++) test_set(tensor, i, values[i]);
  return tensor;
}

int64_t test_elems(const ax_tensor *tensor) {
  return ax_dims_elems(tensor->rank, tensor->dims) * (ax_is_complex(tensor->dtype) ? 2 : 1);
}

double test_get(const ax_tensor *tensor, int64_t index) {
  const ax_dtype dtype = ax_part_dtype(tensor->dtype);
  return ax_number_convert(dtype, AX_F64, ax_number_load(dtype, tensor->data, index)).f;
}

void test_set(ax_tensor *tensor, int64_t index, double value) {
  const ax_dtype dtype = ax_part_dtype(tensor->dtype);
  ax_number_store(dtype, tensor->data, index, ax_number_of(dtype, value));
}

void test_release(ax_tensor **tensors, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) ax_tensor_release(tensors[i]);
}

bool test_near(double a, double b, double tolerance) {
  if (a == b || (isnan(a) && isnan(b))) return true;
  return fabs(a - b) <= tolerance * fmax(1, fmax(fabs(a), fabs(b)));
}

void test_assert_near(double a, double b, double tolerance, const char *file, int line) {
  if (test_near(a, b, tolerance)) return;
  print_error("%.17g is not near %.17g\n", a, b);
  _fail(file, line);
}

size_t test_tensor_bytes(const ax_tensor *tensor) { return (size_t)test_elems(tensor) * ax_dtype_bytes(ax_part_dtype(tensor->dtype)); }

bool test_same_tensors(const ax_tensor *a, const ax_tensor *b) {
  if (a->dtype != b->dtype || a->rank != b->rank || memcmp(a->dims, b->dims, a->rank * sizeof a->dims[0]) != 0) return false;
  size_t bytes = ax_dtype_bytes(ax_part_dtype(a->dtype)), all = test_tensor_bytes(a);
  if (all == 0 || memcmp(a->data, b->data, all) == 0) return true;
  for (int64_t i = 0; i < test_elems(a); i++) {
    bool equal = memcmp((char *)a->data + (size_t)i * bytes, (char *)b->data + (size_t)i * bytes, bytes) == 0;
    if (!equal && !(isnan(test_get(a, i)) && isnan(test_get(b, i)))) return false;
  }
  return true;
}

void test_assert_tensors_near(const ax_tensor *a, const ax_tensor *b, double tolerance, const char *file, int line) {
  if (a->dtype != b->dtype || a->rank != b->rank || memcmp(a->dims, b->dims, a->rank * sizeof a->dims[0]) != 0) {
    print_error("tensors of different types\n");
    _fail(file, line);
  }
  for (int64_t i = 0; i < test_elems(a); i++) {
    if (test_near(test_get(a, i), test_get(b, i), tolerance)) continue;
    print_error("element %lld: %.17g is not near %.17g\n", (long long)i, test_get(a, i), test_get(b, i));
    _fail(file, line);
  }
}

double test_inner(ax_tensor *const *a, ax_tensor *const *b, uint32_t count) {
  double sum = 0;
  for (uint32_t k = 0; k < count; k++)
    for (int64_t i = 0; i < test_elems(a[k]); i++) {
      const double product = test_get(a[k], i) * test_get(b[k], i);
      sum += ax_is_complex(a[k]->dtype) && i % 2 == 1 ? -product : product;
    }
  return sum;
}

double test_squares(ax_tensor *const *a, ax_tensor *const *b, uint32_t count) {
  double sum = 0;
  (void)b;
  for (uint32_t k = 0; k < count; k++)
    for (int64_t i = 0; i < test_elems(a[k]); i++) sum += test_get(a[k], i) * test_get(a[k], i);
  return sum;
}

uint32_t test_count_prim(const ax_program *program, const char *name) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < program->eqn_count; i++) {
    const ax_program *held;
    count += strcmp(program->eqns[i].prim->name, name) == 0;
    for (uint32_t k = 0; (held = ax_eqn_program(&program->eqns[i], k)) != NULL; k++) count += test_count_prim(held, name);
  }
  return count;
}

ax_program *test_trace(ax_function function, void *context, const ax_type *in, uint32_t in_count, uint32_t out_count) {
  ax_program *program;
  TEST_OK(ax_trace(AX_CLOSURE(function, in_count, out_count, context), in, &program));
  return program;
}

void test_run(const ax_program *program, ax_tensor *const *in, ax_tensor **out) {
  TEST_OK(ax_evaluate(program, in, out));
}

void test_run_scalars(const ax_program *program, const double *x, double *out) {
  uint32_t in_count = ax_program_in_count(program), out_count = ax_program_out_count(program);
  ax_tensor **tensors = calloc((size_t)in_count + out_count, sizeof tensors[0]);
  for (uint32_t i = 0; i < in_count; i++) tensors[i] = test_tensor(TEST_SCALAR(AX_F64), &x[i]);
  test_run(program, tensors, tensors + in_count);
  for (uint32_t i = 0; i < out_count; i++) out[i] = test_get(tensors[in_count + i], 0);
  test_release(tensors, in_count + out_count);
  free(tensors);
}

ax_args test_args(const bool *mask, uint32_t count) {
  static _Thread_local struct { uint32_t list[16384]; } ring[4];
  static _Thread_local uint32_t next;
  uint32_t *list = ring[next++ % AX_COUNT(ring)].list, chosen = 0;
  assert_true(count <= AX_COUNT(ring[0].list));
  for (uint32_t i = 0; mask != NULL && i < count; i++)
    if (mask[i]) list[chosen++] = i;
  return (ax_args){.list = list, .count = chosen};
}
