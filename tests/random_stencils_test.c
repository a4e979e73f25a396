/* Random sums of arrays that were padded, cut, turned round, shifted and put together along random dimensions, some of them step
   after step: each element is chosen from one place or another, and comes out as in reference code, bit by bit. */
#include "axle/ops.h"
#include "axle/transform.h"
#include "support/cmocka.h"
#include "support/random.h"
#include "support/run.h"

typedef struct maker {
  test_random random;
  uint32_t rank;
  int64_t dims[4];
  ax_dtype dtype;
  bool grows; /* what is computed may be what is padded */
} maker;

static int64_t below(maker *m, int64_t count) { return (int64_t)(test_random_bits(&m->random) % (uint64_t)count); }

static ax_value number(maker *m) {
  const int64_t least = m->dtype == AX_U16 ? 0 : -2;
  return ax_full(m->dtype, AX_DIMS(), below(m, 3) == 0 ? 0 : (double)(least + below(m, 5)));
}

/* Between low and high of padding, the sum of which is 0. */
static ax_value padded(maker *m, ax_value x) {
  int64_t low[4], high[4], none[4] = {0};
  for (uint32_t d = 0; d < m->rank; d++) {
    int64_t most = m->dims[d] > 3 ? 3 : m->dims[d];
    low[d] = below(m, 2) == 0 ? 0 : below(m, 2 * most + 1) - most;
    high[d] = -low[d];
  }
  return ax_pad(x, number(m), low, high, none);
}

/* Padded all around, and cut somewhere else. */
static ax_value windowed(maker *m, ax_value x) {
  int64_t low[4], high[4], none[4] = {0}, start[4], limit[4];
  for (uint32_t d = 0; d < m->rank; d++) {
    low[d] = below(m, 3);
    high[d] = below(m, 3);
    start[d] = below(m, low[d] + high[d] + 1);
    limit[d] = start[d] + m->dims[d];
  }
  return ax_slice(ax_pad(x, number(m), low, high, none), start, limit, NULL);
}

static ax_value rolled(maker *m, ax_value x) {
  int64_t d = below(m, m->rank), n = m->dims[d], by = n < 2 ? 0 : below(m, 2) == 0 ? 1 : 1 + below(m, n - 1);
  if (by == 0) return x;
  if (below(m, 2) == 0) by = n - by;
  ax_value end = ax_slice_in_dim(x, n - by, n, 1, d), begin = ax_slice_in_dim(x, 0, n - by, 1, d);
  return ax_concatenate(AX_VALUES(end, below(m, 4) == 0 ? ax_neg(begin) : begin), (uint32_t)d);
}

/* The first and the last are there once more: as at a mirror, or the border goes on. */
static ax_value reflected(maker *m, ax_value x) {
  int64_t d = below(m, m->rank), n = m->dims[d], start = below(m, 3);
  if (n < 2) return x;
  ax_value first = ax_slice_in_dim(x, 0, 1, 1, d), last = ax_slice_in_dim(x, n - 1, n, 1, d);
  return ax_slice_in_dim(ax_concatenate(AX_VALUES(first, x, last), (uint32_t)d), start, start + n, 1, d);
}

static ax_value elsewhere(maker *m, ax_value x) {
  const int64_t d = below(m, m->rank);
  switch (below(m, 8)) {
    case 0:
    case 1: return padded(m, x);
    case 2:
    case 3: return windowed(m, x);
    case 4:
    case 5: return rolled(m, x);
    case 6: return reflected(m, x);
    default: return ax_rev(x, AX_LIST(1, &d));
  }
}

static void stencil(const ax_value *in, ax_value *out, void *context) {
  maker m = *(maker *)context; /* the same each time it is traced */
  ax_value sum = in[0];
  for (int64_t i = 1 + below(&m, 5); i > 0; i--) {
    ax_value from = m.grows && below(&m, 3) == 0 ? sum : in[0], moved = elsewhere(&m, from);
    if (below(&m, 4) == 0) moved = elsewhere(&m, moved);
    sum = below(&m, 3) == 0 ? ax_max(sum, moved) : ax_add(sum, moved);
  }
  out[0] = ax_is_float(m.dtype) ? ax_mul(sum, ax_full_like(sum, 0.25)) : sum;
}

static void steps(const ax_value *in, ax_value *out, void *context) {
  ax_scan(AX_CLOSURE(stencil, 1, 1, context), 1, 3, false, in, out);
}

static void same(ax_program *program, ax_tensor *const *in) {
  ax_runtime *runtime;
  ax_tensor *got, *wanted;
  TEST_OK(ax_runtime_create(NULL, &runtime));
  test_execute(runtime, program, in, &got);
  test_execute_reference(runtime, program, in, &wanted);
  assert_memory_equal(got->data, wanted->data, test_tensor_bytes(got));
  test_release(&got, 1);
  test_release(&wanted, 1);
  ax_runtime_release(runtime);
}

static void one(uint64_t seed, bool show) {
  static const int64_t extents[] = {1, 2, 3, 5, 7, 8, 15, 16, 17, 31, 33, 64, 65, 127, 200};
  static const ax_dtype dtypes[] = {AX_F32, AX_F32, AX_F32, AX_F64, AX_BF16, AX_F16, AX_S32, AX_S8, AX_U16};
  maker m = {.random = {seed}};
  m.rank = 1 + (uint32_t)below(&m, 3);
  m.dtype = dtypes[below(&m, AX_COUNT(dtypes))];
  m.grows = below(&m, 2) == 0;
  int64_t room = 40000;
  for (uint32_t d = 0; d < m.rank; d++) {
    m.dims[d] = extents[below(&m, AX_COUNT(extents))];
    if (m.dims[d] > room) m.dims[d] = room;
    room /= m.dims[d];
  }
  ax_type type = ax_array_type(m.dtype, AX_LIST(m.rank, m.dims));
  ax_program *program = test_trace(below(&m, 3) == 0 ? steps : stencil, &m, &type, 1, 1);
  if (show) test_show_program(program);
  ax_tensor *in = test_random_tensor(&m.random, type, -3, 3);
  same(program, &in);
  test_release(&in, 1);
  ax_program_release(program);
}

static void random_stencils(void **state) {
  (void)state;
  test_each_seed(60, one);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(random_stencils)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
