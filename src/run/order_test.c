/* Programs in which order matters: memory written again in a loop while it, or what was made of it, is still wanted, by the device
   itself or by others. Every policy must give the same bits, and reference evaluation's values. */
#include "axle/collectives.h"
#include "axle/ops.h"
#include "support/cmocka.h"
#include "support/random.h"
#include "support/run.h"

static ax_value number(double value) { return ax_full(AX_F32, AX_DIMS(), value); }
static ax_value integer(double value) { return ax_full(AX_S32, AX_DIMS(), value); }

static void check(ax_function function, void *context, const ax_type *types, uint32_t in_count, uint32_t out_count) {
  test_random random = {7};
  ax_tensor *in[2];
  ax_program *program = test_trace(function, context, types, in_count, out_count);
  for (uint32_t i = 0; i < in_count; i++) in[i] = test_random_tensor(&random, types[i], -1, 1);
  TEST_EVERY_WAY(program, in, 1e-5);
  test_release(in, in_count);
  ax_program_release(program);
}

/* --- One device --- */

static void add_product(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_add(in[0], ax_mul(in[0], in[1]));
}

static void over_constants(const ax_value *in, ax_value *out, void *context) {
  const float steps[] = {1, 2, 3};
  const ax_type type = TEST_TYPE(AX_F32, 3);
  (void)context;
  ax_scan(AX_FN(add_product, 2, 1), 1, 3, false, AX_VALUES(in[0], ax_constant(&type, steps)), out);
}

static void turned(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_transpose(in[0], AX_DIMS(1, 0));
}

static void first_row_down(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value row = ax_slice(in[0], AX_DIMS(0, 0), AX_DIMS(1, 4), NULL);
  out[0] = ax_transpose(ax_mul(ax_broadcast_in_dim(row, AX_DIMS(4, 4), AX_DIMS(0, 1)), number(0.5)), AX_DIMS(1, 0));
}

typedef struct repeated {
  ax_function body;
} repeated;

static void three_times(const ax_value *in, ax_value *out, void *context) {
  ax_scan(AX_FN(((repeated *)context)->body, 1, 1), 1, 3, false, in, out);
}

static void constants_step_by_step(void **state) {
  (void)state;
  check(over_constants, NULL, (ax_type[]){TEST_SCALAR(AX_F32)}, 1, 1);
}

static void carries_moved_within(void **state) {
  (void)state;
  const ax_type type = TEST_TYPE(AX_F32, 4, 4);
  check(three_times, &(repeated){turned}, &type, 1, 1);
  check(three_times, &(repeated){first_row_down}, &type, 1, 1);
}

/* --- Loops in loops: what all read is written again by its owner --- */

static void use_both(const ax_value *in, ax_value *out, void *context) {
  const ax_value *same = context;
  out[0] = ax_tanh(ax_add(ax_mul(in[0], same[0]), same[1]));
}

static ax_value renewed(ax_value x) { return ax_add(ax_mul(x, number(0.5)), number(0.3)); }

static void loop_within(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value same[] = {in[0], ax_matmul(in[0], in[0])};
  ax_scan(AX_CLOSURE(use_both, 1, 1, same), 1, 3, false, in + 1, out + 1);
  out[0] = renewed(in[0]);
}

static void read_in_inner_loop(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_scan(AX_FN(loop_within, 2, 2), 2, 4, false, in, out);
}

static void up_to_my_index(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_le(in[0], ax_axis_index("a"));
}

static void twice_more(const ax_value *in, ax_value *out, void *context) {
  out[0] = ax_add(in[0], integer(1));
  ax_scan(AX_CLOSURE(use_both, 1, 1, context), 1, 2, false, in + 1, out + 1);
}

static void different_trips_within(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value same[] = {in[0], in[0]}, start[] = {ax_pvary(integer(0), "a"), in[1]}, end[2];
  ax_while(AX_CLOSURE(up_to_my_index, 2, 1, same), AX_CLOSURE(twice_more, 2, 2, same), start, end);
  out[0] = renewed(in[0]);
  out[1] = end[1];
}

static void read_in_loops_of_their_own(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_scan(AX_FN(different_trips_within, 2, 2), 2, 4, false, in, out);
}

static void written_by_the_owner(void **state) {
  (void)state;
  const ax_type types[] = {TEST_TYPE(AX_F32, 4, 4), TEST_TYPE(AX_F32, 12, 4)};
  check(test_map_body, &(test_map){"a=3", {"", "a"}, {"", "a"}, .body = read_in_inner_loop}, types, 2, 2);
  check(test_map_body, &(test_map){"a=3", {"", "a"}, {"", "a"}, .body = read_in_loops_of_their_own}, types, 2, 2);
}

/* --- Exchanges in a loop whose trips might differ, as far as anyone can tell, but do not --- */

static const int64_t swap[][2] = {{0, 1}, {1, 0}};

static void four_times(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_lt(in[0], integer(4));
}

static void summed(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_add(in[0], integer(1));
  out[1] = ax_tanh(ax_add(ax_mul(ax_psum(in[1], "a"), in[1]), number(0.1)));
}

static void gathered(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_add(in[0], integer(1));
  out[1] = ax_tanh(ax_mul(ax_reduce_max(ax_all_gather(in[1], "a", 0, false), AX_DIMS(0), false), in[1]));
}

static void swapped(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_add(in[0], integer(1));
  out[1] = ax_tanh(ax_add(ax_mul(ax_ppermute(in[1], "a", 2, swap), in[1]), in[1]));
}

static void repeat(ax_function body, const ax_value *in, ax_value *out) {
  ax_value start[] = {ax_mul(ax_axis_index("a"), integer(0)), in[0]}, end[2];
  ax_while(AX_FN(four_times, 2, 1), AX_FN(body, 2, 2), start, end);
  out[0] = end[1];
}

static void repeat_summed(const ax_value *in, ax_value *out, void *context) { (void)context, repeat(summed, in, out); }
static void repeat_gathered(const ax_value *in, ax_value *out, void *context) {
  (void)context, repeat(gathered, in, out);
}
static void repeat_swapped(const ax_value *in, ax_value *out, void *context) {
  (void)context, repeat(swapped, in, out);
}

static void exchanged_where_trips_might_differ(void **state) {
  (void)state;
  const ax_function bodies[] = {repeat_summed, repeat_gathered, repeat_swapped};
  const ax_type type = TEST_TYPE(AX_F32, 8, 4);
  for (int i = 0; i < 3; i++)
    check(test_map_body, &(test_map){"a=2", {"a"}, {"a"}, .body = bodies[i], .unchecked = true}, &type, 1, 1);
}

/* --- Results that only the first device along an axis gives --- */

static void keep_swapped(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_ppermute(in[0], "a", 2, swap);
  out[1] = ax_add(in[1], out[0]);
}

static void map_in_loop(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_mesh mesh;
  TEST_OK(ax_mesh_parse("a=2,b=2", &mesh));
  const char *in_specs[] = {"a,b", "a,b"}, *out_specs[] = {"a", "a,b"};
  ax_value result[2];
  test_shard_map(&mesh, in_specs, out_specs, true, AX_FN(keep_swapped, 2, 2), in, result);
  out[0] = ax_concatenate(AX_VALUES(result[0], result[0]), 1);
  out[1] = result[1];
}

static void maps_in_loop(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_scan(AX_FN(map_in_loop, 2, 2), 2, 4, false, in, out);
}

static void read_by_the_first(void **state) {
  (void)state;
  check(maps_in_loop, NULL, (ax_type[]){TEST_TYPE(AX_F32, 4, 4), TEST_TYPE(AX_F32, 4, 4)}, 2, 2);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(constants_step_by_step), cmocka_unit_test(carries_moved_within),
      cmocka_unit_test(written_by_the_owner),   cmocka_unit_test(exchanged_where_trips_might_differ),
      cmocka_unit_test(read_by_the_first),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
