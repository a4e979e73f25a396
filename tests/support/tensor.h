/* Tensors and programs in tests: made, read and run in one line. Failures fail the test. */
#ifndef AX_TESTS_SUPPORT_TENSOR_H
#define AX_TESTS_SUPPORT_TENSOR_H

#include "axle/transform.h"
#include "xform/evaluate.h"

/* Fails the test with the message of a status that is not AX_OK. */
/* The set of those with mask[i], i < count; good for the next few calls. */
ax_args test_args(const bool *mask, uint32_t count);
#define TEST_OK(call) test_ok((call), __FILE__, __LINE__)
void test_ok(ax_status status, const char *file, int line);
/* A failure of this kind, with `part` in its message. */
#define TEST_FAILS(call, kind, part) test_fails((call), (kind), (part), __FILE__, __LINE__)
void test_fails(ax_status status, ax_status kind, const char *part, const char *file, int line);

/* An array type, f64 say: TEST_TYPE(AX_F64, 3, 4). */
#define TEST_TYPE(dtype, ...) ax_array_type((dtype), AX_DIMS(__VA_ARGS__))
#define TEST_SCALAR(dtype) ax_array_type((dtype), AX_DIMS())

/* Elements converted from `values`, row-major; ax_tensor_release. */
ax_tensor *test_tensor(ax_type type, const double *values);
/* A tensor of complex numbers has their parts for elements, one after the other: twice as many real numbers. */
int64_t test_elems(const ax_tensor *tensor);
double test_get(const ax_tensor *tensor, int64_t index);
void test_set(ax_tensor *tensor, int64_t index, double value);
/* Releases `count` tensors. */
void test_release(ax_tensor **tensors, uint32_t count);

/* |a - b| <= tolerance * max(1, |a|, |b|), or both NaN, or equal. */
bool test_near(double a, double b, double tolerance);
#define TEST_NEAR(a, b, tolerance) test_assert_near((a), (b), (tolerance), __FILE__, __LINE__)
void test_assert_near(double a, double b, double tolerance, const char *file, int line);
#define TEST_TENSORS_NEAR(a, b, tolerance) test_assert_tensors_near((a), (b), (tolerance), __FILE__, __LINE__)
void test_assert_tensors_near(const ax_tensor *a, const ax_tensor *b, double tolerance, const char *file, int line);
/* Of one type, and bit by bit the same; any NaN is any NaN. */
bool test_same_tensors(const ax_tensor *a, const ax_tensor *b);
size_t test_tensor_bytes(const ax_tensor *tensor);
/* Sum of products, over all elements of all tensors; of complex numbers its real part. */
double test_inner(ax_tensor *const *a, ax_tensor *const *b, uint32_t count);
/* Sum of squared sizes, over all elements of all tensors; b is not looked at. */
double test_squares(ax_tensor *const *a, ax_tensor *const *b, uint32_t count);

/* ax_trace; released by the caller. */
ax_program *test_trace(ax_function function, void *context, const ax_type *in, uint32_t in_count, uint32_t out_count);
/* How many equations of this name the program has, with those of the programs that it holds. */
uint32_t test_count_prim(const ax_program *program, const char *name);
/* ax_evaluate. */
void test_run(const ax_program *program, ax_tensor *const *in, ax_tensor **out);
/* A program of f64 scalars: x[..] -> out[..]. */
void test_run_scalars(const ax_program *program, const double *x, double *out);

#endif
