/* The default choice of algorithms: devices stay alike where one algorithm for all keeps them so, and the total is no worse than
   with one algorithm for all. */
#undef AXLE_NO_LINES
#include "axle/axle.h"

#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "support/cmocka.h"
#include "support/tensor.h"

enum { layers = 2, width = 2048, hidden = 8192, rows = 64 * 512, in_count = 1 + 4 * layers };

static ax_value layer(ax_value x, const ax_value *w) {
  const ax_value mixed = ax_add(x, ax_matmul(ax_matmul(x, w[2]), w[3]));
  return ax_add(mixed, ax_matmul(ax_gelu(ax_matmul(mixed, w[0])), w[1]));
}

static AX_BODY(loss) {
  (void)context;
  ax_value x = in[0];
  for (uint32_t l = 0; l < layers; l++) x = layer(x, &in[1 + 4 * l]);
  out[0] = ax_reduce_mean(ax_square(x), AX_ALL_DIMS, false);
}

static AX_BODY(gradients) {
  (void)context;
  ax_grad(AX_FN(loss, in_count, 1), AX_RANGE(1, 4 * layers), in, out);
}

static ax_program *step_of_net(void) {
  ax_type types[in_count] = {TEST_TYPE(AX_F32, rows, width)};
  ax_program *program;
  for (uint32_t l = 0; l < layers; l++) {
    types[1 + 4 * l] = TEST_TYPE(AX_F32, width, hidden);
    types[2 + 4 * l] = TEST_TYPE(AX_F32, hidden, width);
    types[3 + 4 * l] = types[4 + 4 * l] = TEST_TYPE(AX_F32, width, width);
  }
  TEST_OK(ax_trace(AX_FN(gradients, in_count, 4 * layers), types, &program));
  return program;
}

static ax_lowered *on_mesh(ax_program *program, const char *mesh_text) {
  static const char of_layer[] = "_,model; model,_; _,model; model,_";
  char spec[200];
  ax_mesh mesh;
  ax_program *laid;
  ax_lowered *lowered;
  snprintf(spec, sizeof spec, "data,_; %s; %s -> %s; %s", of_layer, of_layer, of_layer, of_layer);
  TEST_OK(ax_mesh_parse(mesh_text, &mesh));
  TEST_OK(ax_program_with_shardings(program, &mesh, spec, &laid));
  TEST_OK(ax_program_lower(laid, NULL, &lowered));
  ax_program_release(laid);
  return lowered;
}

static double seconds(const ax_lowered *lowered, const ax_cluster *machine, ax_algorithm algorithm, double *events,
                      int64_t *simulated) {
  ax_simulation s;
  TEST_OK(ax_simulate(lowered, machine, &(ax_simulate_options){.algorithm = algorithm}, &s));
  const double total = s.seconds;
  if (events != NULL) *events = s.events;
  if (simulated != NULL) *simulated = s.simulated;
  ax_simulation_release(&s);
  return total;
}

static void no_worse_than_one_for_all(void **state) {
  (void)state;
  static const char *const meshes[] = {"data=64,model=4", "data=16,model=16"}, *const machines[] = {"tpu-like-torus",
                                                                                                    "tpu-like-cube", "h200-switch"};
  ax_program *program = step_of_net();
  for (size_t i = 0; i < AX_COUNT(meshes); i++)
    for (size_t k = 0; k < AX_COUNT(machines); k++) {
      ax_lowered *lowered = on_mesh(program, meshes[i]);
      ax_cluster *machine;
      TEST_OK(ax_cluster_read(machines[k], &machine));
      const double best = seconds(lowered, machine, AX_ALGORITHM_BEST, NULL, NULL);
      for (int a = AX_ALGORITHM_BEST + 1; a < AX_ALGORITHM_COUNT; a++)
        assert_true(best <= seconds(lowered, machine, (ax_algorithm)a, NULL, NULL));
      ax_cluster_release(machine);
      ax_lowered_release(lowered);
    }
  ax_program_release(program);
}

enum { sums = 12 };

static AX_BODY(sum_each) {
  (void)context;
  for (int i = 0; i < sums; i++) out[i] = ax_psum(in[i], "data");
}

static AX_BODY(summed) {
  (void)context;
  ax_mesh mesh;
  TEST_OK(ax_mesh_parse("data=8192", &mesh));
  ax_shard_map_unchecked(&mesh, "data; data; data; data; data; data; data; data; data; data; data; data -> ; ; ; ; ; ; ; ; ; ; ; ",
                         AX_FN(sum_each, sums, sums), in, out);
}

/* A tree makes devices unlike, and so more messages than are tried out lightly. It is tried where its time alone promises something. */
static void no_worse_than_a_tree(void **state) {
  (void)state;
  ax_type types[sums];
  ax_program *program;
  ax_lowered *lowered;
  ax_cluster *machine;
  for (int i = 0; i < sums; i++) types[i] = TEST_TYPE(AX_F32, 8192 * 256, 1024);
  TEST_OK(ax_trace(AX_FN(summed, sums, sums), types, &program));
  TEST_OK(ax_program_lower(program, NULL, &lowered));
  TEST_OK(ax_cluster_read("tpu-like-torus", &machine));
  const double best = seconds(lowered, machine, AX_ALGORITHM_BEST, NULL, NULL);
  assert_true(best <= seconds(lowered, machine, AX_ALGORITHM_TREE, NULL, NULL));
  assert_true(best < seconds(lowered, machine, AX_ALGORITHM_BIDIRECTIONAL, NULL, NULL)); /* which keeps devices alike */
  ax_cluster_release(machine);
  ax_lowered_release(lowered);
  ax_program_release(program);
}

static void devices_stay_alike(void **state) {
  (void)state;
  static const char *const meshes[] = {"data=1024,model=4", "data=256,model=16", "data=64,model=64"};
  ax_program *program = step_of_net();
  ax_cluster *machine;
  TEST_OK(ax_cluster_read("tpu-like-torus", &machine));
  for (size_t i = 0; i < AX_COUNT(meshes); i++) {
    ax_lowered *lowered = on_mesh(program, meshes[i]);
    double events;
    int64_t simulated;
    assert_true(seconds(lowered, machine, AX_ALGORITHM_BEST, &events, &simulated) <=
                seconds(lowered, machine, AX_ALGORITHM_BIDIRECTIONAL, NULL, NULL));
    assert_int_equal(simulated, 1);
    assert_true(events < 20000);
    ax_lowered_release(lowered);
  }
  ax_cluster_release(machine);
  ax_program_release(program);
}

/* Where the mesh lies is said, and of tpu-like-cube does not depend on how the mesh is cut. */
static void expect_topology(ax_program *program, const char *mesh, const char *name, const char *topology) {
  ax_lowered *lowered = on_mesh(program, mesh);
  ax_cluster *machine;
  ax_simulation s;
  char *text, line[200];
  TEST_OK(ax_cluster_read(name, &machine));
  TEST_OK(ax_simulate(lowered, machine, NULL, &s));
  assert_string_equal(s.topology, topology);
  TEST_OK(ax_simulation_print(&s, AX_SIMULATION_TEXT, &text));
  snprintf(line, sizeof line, " devices of the machine %s (%s)", name, topology);
  assert_non_null(strstr(text, line));
  ax_string_free(text);
  ax_simulation_release(&s);
  ax_cluster_release(machine);
  ax_lowered_release(lowered);
}

static void topologies(void **state) {
  (void)state;
  ax_program *program = step_of_net();
  expect_topology(program, "data=1024,model=4", "tpu-like-torus", "torus 1024 x 4 x 1");
  expect_topology(program, "data=1024,model=4", "tpu-like-cube", "torus 16 x 16 x 16");
  expect_topology(program, "data=64,model=64", "tpu-like-cube", "torus 16 x 16 x 16");
  expect_topology(program, "data=8,model=4", "tpu-like-cube", "torus 4 x 4 x 2");
  expect_topology(program, "data=2,model=1", "tpu-like-cube", "torus 2 x 1 x 1");
  expect_topology(program, "data=8,model=4", "h200-switch", "4 nodes of 8");
  expect_topology(program, "data=8,model=4", "cpu", "a switch");
  ax_program_release(program);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(no_worse_than_one_for_all), cmocka_unit_test(no_worse_than_a_tree),
                                     cmocka_unit_test(devices_stay_alike), cmocka_unit_test(topologies)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
