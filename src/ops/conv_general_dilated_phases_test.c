/* Convolutions of what is dilated, compiled, beside reference evaluation, exactly: of small whole numbers no sum is rounded. One to
   three spatial dimensions, groups, positions that meet nothing, infinities. What a way costs is seen in the plan. */
#include <math.h>
#include <string.h>

#include "axle/exec.h"
#include "axle/ops.h"
#include "support/cmocka.h"
#include "support/random.h"
#include "support/run.h"
#include "support/tensor.h"

typedef struct example {
  ax_conv_options options;
  int64_t strides[3], low[3], high[3], base[3], dilation[3];
  ax_type types[2];
} example;

static int64_t from_one(test_random *random, int64_t most) { return 1 + test_random_below(random, most); }

/* False: the window is longer than what it moves over. */
static bool make_example(example *x, test_random *random) {
  static const char *const orders[][2] = {{"NWC", "WIO"}, {"NHWC", "HWIO"}, {"NDHWC", "DHWIO"}};
  static const ax_dtype dtypes[] = {AX_F32, AX_F32, AX_F64, AX_S32, AX_BF16};
  const uint32_t spatial = (uint32_t)from_one(random, 3);
  const int64_t groups = test_random_below(random, 3) == 0 ? from_one(random, 3) : 1;
  const bool of_batch = test_random_below(random, 2), last = test_random_below(random, 2);
  int64_t lhs[5] = {from_one(random, 3), from_one(random, 4)}, rhs[5] = {groups * from_one(random, 4), lhs[1]}, elems = 1;
  *x = (example){.options = {.strides = {spatial, x->strides},
                             .low = {spatial, x->low},
                             .high = {spatial, x->high},
                             .lhs_dilation = {spatial, x->base},
                             .rhs_dilation = {spatial, x->dilation}}};
  lhs[of_batch ? 0 : 1] *= groups;
  *(of_batch ? &x->options.batch_group_count : &x->options.feature_group_count) = groups;
  for (uint32_t i = 0; i < spatial; i++) {
    const bool plain = test_random_below(random, 3) == 0, patches = test_random_below(random, 4) == 0;
    x->base[i] = plain ? 1 : from_one(random, 5);
    lhs[2 + i] = from_one(random, 7), rhs[2 + i] = patches ? x->base[i] : from_one(random, 6);
    x->strides[i] = test_random_below(random, 2) ? 1 : from_one(random, 4),
    x->dilation[i] = test_random_below(random, 2) ? 1 : from_one(random, 4);
    x->low[i] = test_random_below(random, 12) - 3, x->high[i] = test_random_below(random, 12) - 3;
    const int64_t padded = (lhs[2 + i] - 1) * x->base[i] + 1 + x->low[i] + x->high[i],
                  reach = (rhs[2 + i] - 1) * x->dilation[i] + 1;
    if (padded < reach) return false;
    elems *= (padded - reach) / x->strides[i] + 1;
  }
  if (last) {
    x->options.lhs = x->options.out = orders[spatial - 1][0], x->options.rhs = orders[spatial - 1][1];
    const int64_t c = lhs[1], o = rhs[0], in = rhs[1];
    memmove(lhs + 1, lhs + 2, spatial * sizeof lhs[0]), lhs[1 + spatial] = c;
    memmove(rhs, rhs + 2, spatial * sizeof rhs[0]), rhs[spatial] = in, rhs[spatial + 1] = o;
  }
  const ax_dtype dtype = dtypes[test_random_below(random, 5)];
  x->types[0] = ax_array_type(dtype, AX_LIST(2 + spatial, lhs)), x->types[1] = ax_array_type(dtype, AX_LIST(2 + spatial, rhs));
  return elems < 5000;
}

static AX_BODY(call) {
  const example *x = context;
  out[0] = ax_conv_general_dilated(in[0], in[1], &x->options);
}

static void one_example(uint64_t seed, bool show) {
  test_random random = {seed};
  static example x;
  while (!make_example(&x, &random)) {}
  ax_tensor *in[2], *wanted;
  for (int i = 0; i < 2; i++) {
    in[i] = test_tensor(x.types[i], NULL);
    for (int64_t k = 0; k < test_elems(in[i]); k++) test_set(in[i], k, (double)test_random_below(&random, 3) - 1);
  }
  if (ax_is_float(x.types[0].dtype) && test_random_below(&random, 3) == 0) /* is in the sums of its own windows only */
    test_set(in[0], test_random_below(&random, test_elems(in[0])), INFINITY);
  ax_program *program = test_trace(call, &x, x.types, 2, 1);
  if (show) test_show_program(program);
  test_run(program, in, &wanted);
  ax_runtime *runtime;
  ax_tensor *out;
  TEST_OK(ax_runtime_create(&(ax_runtime_options){.workers = 2}, &runtime));
  test_execute(runtime, program, in, &out);
  ax_runtime_release(runtime);
  for (int64_t k = 0; k < test_elems(wanted); k++)
    if (test_get(out, k) != test_get(wanted, k) && !(isnan(test_get(out, k)) && isnan(test_get(wanted, k))))
      fail_msg("seed %llu, element %lld: %g, not %g", (unsigned long long)seed, (long long)k, test_get(out, k),
               test_get(wanted, k));
  test_release(&wanted, 1);
  test_release(&out, 1);
  test_release(in, 2);
  ax_program_release(program);
}

static void at_random(void **state) {
  (void)state;
  test_each_seed(300, one_example);
}

/* Multiply-adds of the plan's products: those that meet an element of the image, and no zeros. */
static double work_of(const ax_plan *plan) {
  double work = 0;
  for (uint32_t i = 0; i < plan->block.count; i++) {
    const ax_gemm *g = plan->block.ops[i].gemm;
    if (plan->block.ops[i].kind == AX_OP_GEMM)
      work += (double)(g->m * g->n * g->k) * (double)ax_dims_elems(g->batch_rank, g->batch) *
              (double)ax_dims_elems(g->term_rank, g->terms);
  }
  return work;
}

static void costs(void **state) {
  static const struct {
    int64_t image, window, base, low, high;
    double places; /* a position, in the mean */
  } all[] = {
      {32, 3, 2, 1, 2, 9.0 / 4},  /* 4, 2, 2 and 1 */
      {8, 16, 16, 15, 15, 1},     /* 256 phases, a place each, in one segment */
      {32, 1, 2, 0, 1, 1.0 / 4},  /* three of four are zeros */
      {30, 5, 1, 2, 2, 25},       /* not dilated */
  };
  (void)state;
  for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
    const int64_t n = all[i].image, k = all[i].window, c = 16, o = 4;
    example x = {.strides = {1, 1},
                 .base = {all[i].base, all[i].base},
                 .low = {all[i].low, all[i].low},
                 .high = {all[i].high, all[i].high},
                 .dilation = {1, 1}};
    x.options = (ax_conv_options){.lhs = "NHWC",
                                  .rhs = "HWIO",
                                  .out = "NHWC",
                                  .strides = {2, x.strides},
                                  .low = {2, x.low},
                                  .high = {2, x.high},
                                  .lhs_dilation = {2, x.base},
                                  .rhs_dilation = {2, x.dilation}};
    const ax_type types[] = {ax_array_type(AX_F32, AX_DIMS(2, n, n, c)), ax_array_type(AX_F32, AX_DIMS(k, k, c, o))};
    ax_program *program = test_trace(call, &x, types, 2, 1);
    ax_plan *plan = test_plan(program);
    const double each = work_of(plan) / (double)(ax_type_elems(ax_program_out_type(program, 0)) * c);
    if (each < 0.99 * all[i].places || each > 1.1 * all[i].places)
      fail_msg("%g places a position of case %zu, not %g", each, i, all[i].places);
    ax_plan_destroy(plan);
    ax_program_release(program);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(at_random), cmocka_unit_test(costs)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
