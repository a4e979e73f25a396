/* Programs over meshes that are spread over several processes: the same bits as in one, however devices are spread. The processes
   are threads of this one (support/spreads.h). */
#include <stdlib.h>
#include <string.h>

#include "axle/bodies.h"
#include "axle/collectives.h"
#include "axle/ops.h"
#include "support/cmocka.h"
#include "support/random.h"
#include "support/run.h"
#include "support/spreads.h"

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

static ax_tensor *random_input(const ax_program *program) {
  test_random random = {17};
  return test_random_tensor(&random, *ax_program_in_type(program, 0), -1, 1.6);
}

static void compare_spreads(const char *name, ax_program *program) {
  ax_tensor *in = random_input(program);
  test_compare_spreads(name, program, &in, test_all_spreads, TEST_ALL_SPREADS);
  ax_tensor_release(in);
}

static void compare(const char *name, ax_program *program) {
  ax_tensor *in = random_input(program);
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

/* Contributions of a few bytes, such as just fill a message or are one too long for it, and such as go alone. */
static void gather_of_step(const ax_value *in, ax_value *out, void *c) {
  (void)c;
  const ax_value all = ax_all_gather(in[1], "x", 0, false);
  out[0] = ax_sub(ax_mul(ax_reduce_sum(all, AX_DIMS(0), false), ax_full_like(in[1], 0.2)), in[1]);
}
static void gathers_in_a_loop(const ax_value *in, ax_value *out, void *c) {
  (void)c;
  ax_fori_loop(ax_full(AX_S32, AX_DIMS(), 0), ax_full(AX_S32, AX_DIMS(), 6), AX_FN(gather_of_step, 2, 1), in, out);
}

static void short_contributions_in_a_loop(void **state) {
  (void)state;
  const int64_t elems[] = {1, 408, 409, 511, 512, 513};
  for (size_t i = 0; i < AX_COUNT(elems); i++) {
    const ax_type type = TEST_TYPE(AX_F32, 8, elems[i]);
    ax_program *sums = test_trace_map(&(test_map){"x=8", {"x"}, {"x"}, .body = sums_in_a_loop}, &type);
    ax_program *gathers = test_trace_map(&(test_map){"x=8", {"x"}, {"x"}, .body = gathers_in_a_loop}, &type);
    compare_spreads("short sums in a loop", sums);
    compare_spreads("short gathers in a loop", gathers);
    ax_program_release(sums);
    ax_program_release(gathers);
  }
}

/* --- Sums whose results are wanted late --- */

/* Several short sums are under way at a time, of which devices of the last processes have left copies. */
static void sums_ahead(const ax_value *in, ax_value *out, void *c) {
  (void)c;
  const ax_value square = ax_mul(in[1], in[1]);
  const ax_value sum = ax_psum(in[1], "x"), squares = ax_psum(square, "x"), most = ax_pmax(ax_sub(square, in[1]), "x");
  const ax_value other = ax_mul(ax_tanh(ax_pshift(square, "x", 1, true)), in[1]);
  out[0] = ax_add(ax_mul(ax_add(sum, squares), ax_full_like(sum, 1.0 / 64)), ax_mul(ax_mul(most, other), ax_full_like(most, 0.1)));
}
static void sums_ahead_once(const ax_value *in, ax_value *out, void *c) {
  const ax_value numbered[] = {in[0], in[0]};
  sums_ahead(numbered, out, c);
}
static void sums_ahead_in_a_loop(const ax_value *in, ax_value *out, void *c) {
  (void)c;
  ax_fori_loop(ax_full(AX_S32, AX_DIMS(), 0), ax_full(AX_S32, AX_DIMS(), 5), AX_FN(sums_ahead, 2, 1), in, out);
}

static void short_sums_that_are_wanted_late(void **state) {
  (void)state;
  const int64_t elems[] = {1, 513, 5000};
  const ax_function bodies[] = {sums_ahead_once, sums_ahead_in_a_loop};
  for (size_t i = 0; i < 2 * AX_COUNT(elems); i++) {
    const ax_type type = TEST_TYPE(AX_F32, 8, elems[i / 2]);
    ax_program *program = test_trace_map(&(test_map){"x=8", {"x"}, {"x"}, .body = bodies[i % 2]}, &type);
    compare_spreads("sums that are wanted late", program);
    ax_program_release(program);
  }
}

/* --- Contributions that are held back --- */

static ax_value is_device(double d) { return ax_eq(ax_axis_index("x"), ax_full(AX_S32, AX_DIMS(), d)); }
static void pass(const ax_value *in, ax_value *out, void *c) { (void)c; out[0] = in[0]; }
static void send_on(const ax_value *in, ax_value *out, void *c) {
  (void)c;
  (void)ax_psend(in[0], "x", AX_PAIRS({1, 2}));
  out[0] = in[0];
}
static void receive(const ax_value *in, ax_value *out, void *c) {
  (void)c;
  out[0] = ax_precv(ax_create_token(), ax_typeof(in[0]), "x", AX_PAIRS({1, 2}));
}

/* Device 2 gets a message before it contributes to the sum, and device 1 sends that once it has added its own contribution, for which
   it waits for that of device 0. So what device 0 gives must go although device 2, of the same process, is still to come. */
static void send_behind_a_sum(const ax_value *in, ax_value *out, void *c) {
  (void)c;
  ax_value got, sent;
  ax_if(is_device(2), AX_FN(receive, 1, 1), AX_FN(pass, 1, 1), in, &got);
  const ax_value sum = ax_psum(ax_mul(got, got), "x");
  ax_if(is_device(1), AX_FN(send_on, 1, 1), AX_FN(pass, 1, 1), in, &sent);
  out[0] = ax_mul(sent, sum);
}
/* Device 0 gets a message before it contributes to the sum, and device 1, of another process, sends that behind its own contribution: it does
   not wait for its turn, since it does something else before it wants the sum. */
static void message_from_the_next(const ax_value *in, ax_value *out, void *c) {
  (void)c;
  out[0] = ax_precv(ax_create_token(), ax_typeof(in[0]), "x", AX_PAIRS({1, 0}));
}
static void message_to_the_one_before(const ax_value *in, ax_value *out, void *c) {
  (void)c;
  (void)ax_psend(in[0], "x", AX_PAIRS({1, 0}));
  out[0] = in[0];
}
static void send_behind_a_copy(const ax_value *in, ax_value *out, void *c) {
  (void)c;
  ax_value got, sent;
  ax_if(is_device(0), AX_FN(message_from_the_next, 1, 1), AX_FN(pass, 1, 1), in, &got);
  const ax_value sum = ax_psum(ax_mul(got, got), "x");
  ax_if(is_device(1), AX_FN(message_to_the_one_before, 1, 1), AX_FN(pass, 1, 1), in, &sent);
  out[0] = ax_mul(sent, sum);
}

static void a_member_goes_on_before_its_turn(void **state) {
  (void)state;
  if (AX_HOSTILE) skip(); /* where the shortest sums are split, and have no turns */
  const ax_type type = TEST_TYPE(AX_F32, 2, 3);
  ax_program *program = test_trace_map(&(test_map){"x=2", {"x"}, {"x"}, .body = send_behind_a_copy}, &type);
  ax_tensor *in, *got;
  TEST_OK(ax_tensor_create(ax_program_in_type(program, 0), &in));
  for (int64_t i = 0; i < 6; i++) test_set(in, i, (double)i + 1);
  for (uint32_t workers = 1; workers <= 2; workers++) {
    TEST_OK(test_in_processes(program, &(test_spread){.processes = 2, .workers = workers}, &in, &got, NULL));
    for (int64_t i = 0; i < 6; i++) { /* device 0 has squared what device 1 sent */
      const double x = (double)(i % 3 + 4);
      assert_true(test_get(got, i) == ((double)i + 1) * 2 * x * x);
    }
    test_release(&got, 1);
  }
  ax_tensor_release(in);
  ax_program_release(program);
}

static void without_number(const ax_value *in, ax_value *out, void *c) { send_behind_a_sum(in + 1, out, c); }
static void again_and_again(const ax_value *in, ax_value *out, void *c) {
  (void)c;
  ax_fori_loop(ax_full(AX_S32, AX_DIMS(), 0), ax_full(AX_S32, AX_DIMS(), 5), AX_FN(without_number, 2, 1), in, out);
}

static void what_others_wait_for_is_not_held_back(void **state) {
  (void)state;
  static const uint32_t of[] = {0, 1, 0, 0, 1, 0};
  const ax_function bodies[] = {send_behind_a_sum, again_and_again};
  const ax_type type = TEST_TYPE(AX_F32, 6, 5);
  for (size_t i = 0; i < 2 * AX_COUNT(bodies); i++) {
    ax_program *program = test_trace_map(&(test_map){"x=6", {"x"}, {"x"}, .body = bodies[i / 2]}, &type);
    ax_tensor *in = random_input(program), *wanted, *got;
    const test_spread spread = {.processes = 2, .workers = 1 + (uint32_t)i % 2, .listed = AX_COUNT(of), .of = of};
    TEST_OK(test_in_processes(program, &(test_spread){.processes = 1, .workers = 1}, &in, &wanted, NULL));
    TEST_OK(test_in_processes(program, &spread, &in, &got, NULL));
    assert_true(test_same_tensors(wanted, got));
    test_release(&wanted, 1);
    test_release(&got, 1);
    ax_tensor_release(in);
    ax_program_release(program);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(short_sums_that_are_wanted_late),
      cmocka_unit_test(a_member_goes_on_before_its_turn),
      cmocka_unit_test(what_others_wait_for_is_not_held_back),
      cmocka_unit_test(short_contributions_in_a_loop),
      cmocka_unit_test(long_sums_in_a_loop),
      cmocka_unit_test(exchanges_of_short_parts),
      cmocka_unit_test(exchanges_of_long_parts),
      cmocka_unit_test(a_long_sum_is_awaited_behind_a_short_one),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
