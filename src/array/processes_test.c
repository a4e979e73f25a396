/* Programs over meshes that are spread over several processes: the same bits as in one, however devices are spread. The processes are
   threads of this one (support/processes.h). */
#include <stdlib.h>
#include <string.h>

#include "axle/bodies.h"
#include "axle/collectives.h"
#include "axle/ops.h"
#include "support/cmocka.h"
#include "support/processes.h"
#include "support/random.h"
#include "support/run.h"

/* --- Bodies --- */

static void sum_x(const ax_value *in, ax_value *out, void *c) { (void)c; out[0] = ax_psum(in[0], "x"); }
static void sum_y(const ax_value *in, ax_value *out, void *c) { (void)c; out[0] = ax_psum(in[0], "y"); }
static void sum_all(const ax_value *in, ax_value *out, void *c) { (void)c; out[0] = ax_psum(in[0], "x,y"); }
static void most(const ax_value *in, ax_value *out, void *c) { (void)c; out[0] = ax_pmax(in[0], "x"); }
static void scatter(const ax_value *in, ax_value *out, void *c) { (void)c; out[0] = ax_psum_scatter(in[0], "x", 0, true); }
static void gather(const ax_value *in, ax_value *out, void *c) { (void)c; out[0] = ax_all_gather(in[0], "x", 0, true); }
static void gather_columns(const ax_value *in, ax_value *out, void *c) { (void)c; out[0] = ax_all_gather(in[0], "x", 1, true); }
static void swap(const ax_value *in, ax_value *out, void *c) { (void)c; out[0] = ax_all_to_all(in[0], "x", 0, 1, true); }
static void shift(const ax_value *in, ax_value *out, void *c) { (void)c; out[0] = ax_pshift(in[0], "x", 1, true); }
static void shift_open(const ax_value *in, ax_value *out, void *c) { (void)c; out[0] = ax_pshift(in[0], "x", 1, false); }
static void broadcast(const ax_value *in, ax_value *out, void *c) { (void)c; out[0] = ax_pbroadcast(in[0], "x", 2); }
static void send_one(const ax_value *in, ax_value *out, void *c) {
  (void)c;
  out[0] = ax_ppermute(in[0], "x", AX_PAIRS({0, 3}));
}

static void step(const ax_value *in, ax_value *out, void *c) {
  (void)c;
  ax_value mean = ax_div(ax_psum(in[0], "x"), ax_full_like(in[0], 4));
  out[0] = ax_add(ax_pshift(in[0], "x", 1, true), ax_mul(mean, ax_full_like(in[0], 0.3)));
}

/* --- Comparing --- */

typedef struct kase {
  const char *name, *mesh, *in, *out;
  ax_function body;
  bool unchecked;
} kase;

static const kase cases[] = {
    {"psum x", "x=4", "x", "", sum_x, false},
    {"psum x of rows", "x=4", "_,x", "", sum_x, false},
    {"psum x of x,y", "x=4,y=2", "x,y", "_,y", sum_x, false},
    {"psum y of x,y", "x=4,y=2", "x,y", "x", sum_y, false},
    {"psum x,y", "x=4,y=2", "x,y", "", sum_all, false},
    {"psum x, the same along y", "x=4,y=2", "x", "", sum_x, false},
    {"psum x, y outside", "y=2,x=4", "x", "", sum_x, false},
    {"pmax", "x=4", "x", "", most, false},
    {"psum_scatter", "x=4", "_,x", "x", scatter, false},
    {"psum_scatter of x,y", "x=4,y=2", "_,x+y", "x,y", scatter, true},
    {"all_gather", "x=4", "x", "x", gather, true},
    {"all_gather, the same on all", "x=4,y=2", "x,y", "_,y", gather, true},
    {"all_gather of columns", "x=4", "x", "x", gather_columns, true},
    {"all_to_all", "x=4", "_,x", "x", swap, true},
    {"all_to_all of x,y", "x=4,y=2", "y,x", "y,x", swap, true},
    {"pshift", "x=4", "x", "x", shift, false},
    {"pshift of x,y", "x=4,y=2", "x,y", "x,y", shift, false},
    {"pshift, the same along y", "x=4,y=2", "x", "x", shift, false},
    {"pshift without wrap", "x=4", "x", "x", shift_open, false},
    {"pbroadcast", "x=4", "x", "", broadcast, true},
    {"ppermute of one pair", "x=4", "x", "x", send_one, false},
    {"mean and shift", "x=4,y=2", "x,y", "x,y", step, false},
};

static const uint32_t alternating[] = {0, 1, 0, 1, 0, 1, 0, 1}, scattered[] = {2, 0, 1, 1, 0, 2, 0, 1}, most_in_one[] = {1, 1, 0, 1, 1, 1, 1, 1};

static const test_spread spreads[] = {
    {.processes = 1, .workers = 1},
    {.processes = 2, .workers = 1},
    {.processes = 2, .workers = 2},
    {.processes = 3, .workers = 1},
    {.processes = 4, .workers = 2, .donate = true},
    {.processes = 8, .workers = 1},
    {.processes = 2, .workers = 1, .listed = 8, .of = alternating},
    {.processes = 3, .workers = 2, .listed = 8, .of = scattered},
    {.processes = 2, .workers = 1, .listed = 8, .of = most_in_one, .policy = AX_POLICY_SEEDED, .seed = 3},
    {.processes = 3, .workers = 1, .listed = 8, .of = scattered, .delays = true, .seed = 5},
};

static ax_tensor *random_input(const ax_type *type, uint64_t seed) {
  ax_tensor *tensor;
  test_random random = {seed};
  TEST_OK(ax_tensor_create(type, &tensor));
  for (int64_t i = 0; i < ax_type_elems(type); i++) test_set(tensor, i, (double)test_random_below(&random, 2000) / 777 - 1);
  return tensor;
}

/* Bits, in processes and in one. */
static void compare_spreads(const char *name, ax_program *program) {
  const ax_type *type = ax_program_in_type(program, 0);
  const uint32_t count = ax_program_out_count(program);
  ax_tensor *in = random_input(type, 17), *wanted[2], *got[2];
  assert_true(count <= AX_COUNT(got));
  TEST_OK(test_in_processes(program, &(test_spread){.processes = 1, .workers = 1}, &in, wanted, NULL));
  for (size_t s = 0; s < AX_COUNT(spreads); s++) {
    if (test_in_processes(program, &spreads[s], &in, got, NULL) != AX_OK) fail_msg("%s: spread %zu", name, s);
    for (uint32_t k = 0; k < count; k++)
      if (!test_same_tensors(wanted[k], got[k])) fail_msg("%s: spread %zu: result %u differs", name, s, k);
    test_release(got, count);
  }
  ax_tensor_release(in);
  test_release(wanted, count);
}

static void compare(const char *name, ax_program *program) {
  ax_tensor *in = random_input(ax_program_in_type(program, 0), 17);
  TEST_EVERY_WAY(program, &in, 1e-5);
  ax_tensor_release(in);
  compare_spreads(name, program);
}

static void check_all(int64_t rows, int64_t columns) {
  for (size_t i = 0; i < AX_COUNT(cases); i++) {
    const kase *k = &cases[i];
    const ax_type type = TEST_TYPE(AX_F32, rows, columns);
    ax_program *program =
        test_trace_map(&(test_map){k->mesh, {k->in}, {k->out}, .unchecked = k->unchecked, .body = k->body}, &type);
    compare(k->name, program);
    ax_program_release(program);
  }
}

static void exchanges_of_short_parts(void **state) {
  (void)state;
  check_all(16, 16);
}

static void exchanges_of_long_parts(void **state) {
  (void)state;
  check_all(64, 1600);
}

/* --- Orders of what comes --- */

/* The short sum may be complete before the long one, which is fetched; what reads the long one has to wait for it. */
static void long_then_short(const ax_value *in, ax_value *out, void *c) {
  (void)c;
  ax_value many = ax_psum(in[0], "x"), few = ax_psum(ax_slice_in_dim(in[0], 0, 1, 1, 0), "x");
  out[0] = ax_mul(few, few);
  out[1] = ax_mul(many, many);
}

static void a_long_sum_is_awaited_behind_a_short_one(void **state) {
  (void)state;
  const ax_type type = TEST_TYPE(AX_F32, 16, 1600);
  ax_program *program = test_trace_map(&(test_map){"x=4", {"x"}, {"", ""}, .body = long_then_short}, &type);
  compare("a long sum, then a short one", program);
  ax_program_release(program);
}

/* Large sums are split over processes; totals of a step are read while others go on to the next. */
static void sum_of_step(const ax_value *in, ax_value *out, void *c) {
  (void)c;
  const ax_value sum = ax_psum(in[1], "x");
  out[0] = ax_sub(sum, in[1]);
}
static void sums_in_a_loop(const ax_value *in, ax_value *out, void *c) {
  (void)c;
  ax_fori_loop(ax_full(AX_S32, AX_DIMS(), 0), ax_full(AX_S32, AX_DIMS(), 6), AX_FN(sum_of_step, 2, 1), in, out);
}

static void long_sums_in_a_loop(void **state) {
  (void)state;
  const ax_dtype dtypes[] = {AX_F32, AX_BF16, AX_F64, AX_S32};
  for (size_t i = 0; i < AX_COUNT(dtypes); i++) {
    const ax_type type = TEST_TYPE(dtypes[i], 16, 10007);
    ax_program *program = test_trace_map(&(test_map){"x=8", {"x"}, {"x"}, .body = sums_in_a_loop}, &type);
    compare_spreads("long sums in a loop", program);
    ax_program_release(program);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(long_sums_in_a_loop),
      cmocka_unit_test(exchanges_of_short_parts),
      cmocka_unit_test(exchanges_of_long_parts),
      cmocka_unit_test(a_long_sum_is_awaited_behind_a_short_one),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
