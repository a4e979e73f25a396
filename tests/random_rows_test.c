/* Chains over rows made at random: reductions of rows, what is made of them and of rows, products, other rows and columns in
   between, in loops, and their gradients. Values are large enough for rows to be done together (plan/rows.c); every policy must
   give the same bits, and reference evaluation's values. */
#include "axle/ops.h"
#include "axle/transform.h"
#include "support/cmocka.h"
#include "support/random.h"
#include "support/run.h"

enum { POOL = 9, IN = 2, OUT = 2 };

typedef struct maker {
  test_random random;
  uint32_t rank;
  int64_t dims[3];
  ax_dtype dtype;
  bool smooth; /* derivatives do not jump */
} maker;

static const int64_t last = -1;

static int64_t below(maker *m, int64_t n) { return test_random_below(&m->random, n); }

static ax_value row_sum(maker *m, ax_value x) {
  switch (below(m, m->smooth ? 2 : 4)) {
    case 0: return ax_reduce_mean(x, AX_LIST(1, &last), true);
    case 1: return ax_logsumexp(x, AX_LIST(1, &last), true);
    case 2: return ax_reduce_max(x, AX_LIST(1, &last), true);
    default: return ax_reduce_min(ax_abs(x), AX_LIST(1, &last), true);
  }
}

static ax_value layernorm(ax_value x) {
  ax_value centred = ax_sub(x, ax_reduce_mean(x, AX_LIST(1, &last), true));
  return ax_mul(centred, ax_rsqrt(ax_add(ax_reduce_mean(ax_mul(centred, centred), AX_LIST(1, &last), true), ax_real(0.1))));
}

/* Row i of the other is as far from the end, or what is in one column is in all. */
static ax_value across(maker *m, ax_value x) {
  const int64_t rows = m->rank - 2;
  if (below(m, 2) == 0) return ax_rev(x, AX_LIST(1, &rows));
  return ax_sub(x, ax_reduce_mean(x, AX_LIST(1, &rows), true));
}

static AX_BODY(halve) {
  maker *m = context;
  out[0] = ax_mul(ax_softmax(ax_add(in[0], in[1]), -1), ax_real(3));
  out[1] = ax_tanh(row_sum(m, out[0]));
  out[1] = ax_mul(in[1], ax_broadcast_to(out[1], AX_LIST(m->rank, m->dims)));
}

static ax_value looped(maker *m, ax_value x, ax_value y) {
  ax_value carried[] = {x, y}, made[2];
  ax_scan(AX_CLOSURE(halve, 2, 2, m), 2, 1 + below(m, 3), false, carried, made);
  return below(m, 2) == 0 ? made[0] : made[1];
}

/* What the first rows of y are worth to each row of x, and their mean by that. */
static ax_value attended(maker *m, ax_value x, ax_value y) {
  const uint32_t rows = m->rank - 2;
  const int64_t start[3] = {0}, most = 1 + 30000 / m->dims[rows + 1];
  int64_t limit[3] = {m->dims[0], m->dims[1], m->dims[2]};
  limit[rows] = 1 + below(m, most < 60 ? most : 60);
  if (limit[rows] > m->dims[rows]) limit[rows] = m->dims[rows];
  ax_value few = ax_slice(y, start, limit, NULL);
  ax_value scores = ax_einsum(m->rank == 2 ? "qd,kd->qk" : "bqd,bkd->bqk", AX_VALUES(ax_tanh(x), few));
  ax_value shares = ax_softmax(ax_mul(scores, ax_real(1 / (double)m->dims[rows + 1])), -1);
  return ax_einsum(m->rank == 2 ? "qk,kd->qd" : "bqk,bkd->bqd", AX_VALUES(shares, few));
}

static ax_value next(maker *m, ax_value x, ax_value y) {
  switch (below(m, 13)) {
    case 0: return ax_softmax(x, -1);
    case 1: return ax_log_softmax(x, -1);
    case 2: return layernorm(x);
    case 3: return ax_add(y, ax_broadcast_to(row_sum(m, x), AX_LIST(m->rank, m->dims)));
    case 4: return ax_mul(y, ax_broadcast_to(ax_tanh(ax_add(row_sum(m, x), row_sum(m, y))), AX_LIST(m->rank, m->dims)));
    case 5: return ax_tanh(ax_mul(x, y));
    case 6: return across(m, x);
    case 7: return looped(m, x, y);
    case 8: return ax_reshape(ax_logistic(ax_reshape(x, AX_DIMS(ax_dims_elems(m->rank, m->dims)))), AX_LIST(m->rank, m->dims));
    case 9:
    case 10: return attended(m, x, y);
    default: return ax_sub(ax_mul(x, ax_real(0.5)), y);
  }
}

static void chain(const ax_value *in, ax_value *out, void *context) {
  maker m = *(maker *)context;
  ax_value pool[POOL] = {in[0], in[1]};
  for (int i = IN; i < POOL; i++) pool[i] = next(&m, pool[below(&m, 2) == 0 ? i - 1 : below(&m, i)], pool[below(&m, i)]);
  for (int i = 0; i < OUT; i++) out[i] = pool[POOL - 1 - i];
}

static void loss(const ax_value *in, ax_value *out, void *context) {
  ax_value made[OUT];
  chain(in, made, context);
  out[0] = ax_reduce_mean(ax_mul(made[0], made[1]), AX_ALL_DIMS, false);
}

static void one_program(uint64_t seed, bool show) {
  static const struct {
    uint32_t rank;
    int64_t dims[3];
  } shapes[] = {{2, {190, 191}},    {2, {9, 4003}},     {2, {2, 17001}}, {2, {4100, 9}},
                {3, {3, 110, 121}}, {3, {2, 1, 17001}}, {2, {33000, 1}}, {3, {600, 7, 9}}};
  static const ax_dtype dtypes[] = {AX_F32, AX_F64, AX_F32, AX_F32};
  maker m = {.random = {seed},
             .rank = shapes[seed % AX_COUNT(shapes)].rank,
             .dtype = dtypes[seed % AX_COUNT(dtypes)],
             .smooth = seed % 3 == 0};
  for (uint32_t d = 0; d < m.rank; d++) m.dims[d] = shapes[seed % AX_COUNT(shapes)].dims[d];
  const ax_type type = ax_array_type(m.dtype, AX_LIST(m.rank, m.dims)), types[] = {type, type};
  ax_program *program = m.smooth ? test_trace(loss, &m, types, IN, 1) : test_trace(chain, &m, types, IN, OUT), *grad;
  if (m.smooth) {
    TEST_OK(ax_program_value_and_grad(program, test_args((bool[IN]){true, true}, IN), &grad));
    ax_program_release(program);
    program = grad;
  }
  test_random_run(program, seed, show, m.dtype == AX_F64 ? 1e-9 : 2e-4);
  ax_program_release(program);
}

static void programs(void **state) {
  (void)state;
  test_each_seed(24, one_program);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(programs)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
