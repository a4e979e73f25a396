/* top_level_all_gather: by value the array itself, in every layout, with its gradient; what is refused. */
#include "axle/collectives.h"
#include "axle/ops.h"
#include "axle/transform.h"
#include "support/cmocka.h"
#include "support/run.h"
#include "support/tensor.h"

static const char *const layouts[] = {"a -> ",        "a,b -> a", "a+b -> a", "b+a -> b",  "a+b,_ -> ",
                                      "_,b+a -> _,b", "a,b -> ",  " -> ",     "b,a -> b,a"};
enum { count = sizeof layouts / sizeof layouts[0] };

static ax_mesh mesh_of(void) {
  ax_mesh mesh;
  TEST_OK(ax_mesh_parse("a=2,b=3", &mesh));
  return mesh;
}

static void gathered(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  const ax_mesh mesh = mesh_of();
  for (int i = 0; i < count; i++) out[i] = ax_top_level_all_gather(in[0], &mesh, layouts[i]);
}

static void loss(const ax_value *in, ax_value *out, void *context) {
  ax_value all[count];
  gathered(in, all, context);
  out[0] = ax_full(AX_F64, AX_DIMS(), 0);
  for (int i = 0; i < count; i++)
    out[0] = ax_add(out[0], ax_reduce_sum(ax_mul(all[i], ax_mul(all[i], ax_integer(i + 1))), AX_ALL_DIMS, false));
}

static void gradient(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_grad(AX_FN(loss, 1, 1), AX_FIRST(1), in, out);
}

static void the_array_itself(void **state) {
  (void)state;
  const ax_type type = TEST_TYPE(AX_F64, 6, 12);
  double data[72];
  for (int i = 0; i < 72; i++) data[i] = i * 0.25 - 5;
  ax_tensor *in = test_tensor(type, data), *out[count], *slope;
  ax_program *program = test_trace(gathered, NULL, &type, 1, count), *backward = test_trace(gradient, NULL, &type, 1, 1);
  test_run(program, &in, out);
  test_run(backward, &in, &slope);
  for (int i = 0; i < 72; i++) {
    for (int k = 0; k < count; k++) TEST_NEAR(test_get(out[k], i), data[i], 0);
    TEST_NEAR(test_get(slope, i), data[i] * count * (count + 1), 1e-12);
  }
  TEST_EVERY_WAY(program, &in, 0);
  test_release(&in, 1);
  test_release(out, count);
  test_release(&slope, 1);
  ax_program_release(program);
  ax_program_release(backward);
}

static void by_specs(const ax_value *in, ax_value *out, void *context) {
  const ax_mesh mesh = mesh_of();
  out[0] = ax_top_level_all_gather(in[0], &mesh, context);
}

static void refused(void **state) {
  (void)state;
  static const char *const bad[][2] = {
      {"a -> b", "top_level_all_gather: dimension 0 keeps none but the first of the axes"},
      {"a+b -> b", "dimension 0 keeps none but the first"},
      {"a -> a+b", "dimension 0 keeps none but the first"},
      {" -> _,a", "dimension 1 keeps none but the first"},
      {"c -> ", "unknown axis \"c\""},
      {"a", "\"->\""},
      {"_,_,a -> ", "shard_map: "},
      {"_,b -> ", "shard_map: "}, /* 10 by 3 */
  };
  const ax_type type = TEST_TYPE(AX_F32, 6, 10);
  ax_program *program;
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
    TEST_FAILS(ax_trace(AX_CLOSURE(by_specs, 1, 1, (void *)bad[i][0]), &type, &program), AX_INVALID_ARGUMENT, bad[i][1]);
  TEST_FAILS(ax_trace(AX_FN(by_specs, 1, 1), &type, &program), AX_INVALID_ARGUMENT, "there are no specs");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(the_array_itself), cmocka_unit_test(refused)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
