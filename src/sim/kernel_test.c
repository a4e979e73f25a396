/* Kernels under simulated time: copies beside computing, rings of devices, waits. */
#include <stdio.h>
#include <string.h>

#include "axle/axle.h"
#include "support/cmocka.h"
#include "support/oom.h"
#include "support/tensor.h"

static ax_status simulate(ax_fn fn, const ax_type *in, const char *machine, ax_simulation *out) {
  ax_program *program;
  ax_lowered *lowered;
  ax_cluster *cluster;
  TEST_OK(ax_trace(fn, in, &program));
  TEST_OK(ax_program_lower(program, NULL, &lowered));
  TEST_OK(ax_cluster_parse(machine, NULL, &cluster));
  ax_status status = ax_simulate(lowered, cluster, NULL, out);
  ax_cluster_release(cluster);
  ax_lowered_release(lowered);
  ax_program_release(program);
  return status;
}

/* --- A pipeline: copies in, computing, copies out --- */

enum { blocks = 16, block = 256 };

typedef struct pipe {
  int64_t stages;
} pipe;

static AX_BODY(by_step) { out[0] = in[0]; }
static AX_BODY(add) { ax_ref_store(in[2], ax_add(ax_ref_load(in[0]), ax_ref_load(in[1]))); }

static AX_BODY(pipelined) {
  const pipe *p = context;
  const ax_block_spec spec = {.block = {AX_DIMS(block)}, .index_map = by_step};
  const ax_pipeline_options options = {.grid = {AX_DIMS(blocks)},
                                       .in_count = 2,
                                       .in_specs = {AX_BLOCK_SPECS(spec, spec)},
                                       .out_count = 1,
                                       .out_specs = {AX_BLOCK_SPECS(spec)},
                                       .max_concurrent_steps = p->stages};
  ax_emit_pipeline(&options, AX_FN(add, 3, 0), in);
}

static AX_BODY(sum) {
  const ax_core_mesh core = {.core = "tensorcore"};
  ax_mpmd_map(AX_LIST(1, &core), &AX_CLOSURE(pipelined, 3, 0, context), NULL, AX_LIST(2, in), AX_TYPES(AX_TYPE(AX_F32, blocks * block)), out);
}

static ax_simulated_kernel pipeline_on(int64_t stages, const char *machine, ax_simulation *s) {
  pipe p = {stages};
  TEST_OK(
      simulate(AX_CLOSURE(sum, 2, 1, &p), (const ax_type[]){AX_TYPE(AX_F32, blocks * block), AX_TYPE(AX_F32, blocks * block)}, machine, s));
  assert_int_equal(s->kernel_count, 1);
  return s->kernels[0];
}

/* Seconds, and the sum of what spans of a kind take. */
static double spent(const ax_simulated_kernel *k, const char *what) {
  double seconds = 0;
  for (uint32_t i = 0; i < k->span_count; i++)
    seconds += strcmp(k->spans[i].what, what) == 0 ? k->spans[i].end - k->spans[i].start : 0;
  return seconds;
}

/* All copies go through one memory: 3 blocks a step. Computing takes little, or more than the copies, or as much as they. */
static void test_pipeline(void **state) {
  (void)state;
  ax_simulation s;
  const double bytes = 3.0 * 4 * blocks * block, flops = blocks * block;
  ax_simulated_kernel k = pipeline_on(2, "machine m device flops f32 1e15 memory 1e6 switch bandwidth 1", &s);
  TEST_NEAR(k.copied, bytes, 0);
  TEST_NEAR(k.flops, flops, 0);
  TEST_NEAR(k.sent, 0, 0);
  TEST_NEAR(k.seconds, bytes / 1e6, 1e-6);
  TEST_NEAR(s.seconds, k.seconds, 1e-6);
  ax_simulation_release(&s);

  k = pipeline_on(2, "machine m device flops f32 1e3 memory 1e9 switch bandwidth 1", &s);
  TEST_NEAR(k.seconds, flops / 1e3, 0.01 * flops / 1e3); /* the first copies and the last are beside nothing */
  TEST_NEAR(k.computing, 1, 0.01);
  ax_simulation_release(&s);

  k = pipeline_on(2, "machine m device flops f32 1e6 memory 12e6 switch bandwidth 1",
                  &s); /* copies of a step as long as its computing */
  const double step = block / 1e6;
  assert_true(k.seconds >= blocks * step && k.seconds <= (blocks + 2) * step);
  ax_simulation_release(&s);

  k = pipeline_on(1, "machine m device flops f32 1e6 memory 12e6 switch bandwidth 1", &s); /* nothing beside anything */
  assert_true(k.seconds >= 1.9 * blocks * step);
  ax_simulation_release(&s);
}

/* --- A product on a ring --- */

typedef struct ring {
  ax_mesh mesh;
  bool kernel;
} ring;

static AX_BODY(on_device) {
  const ring *r = context;
  out[0] = r->kernel ? ax_collective_matmul(in[0], in[1], "x", NULL) : ax_matmul(ax_all_gather(in[0], "x", 0, true), in[1]);
}

static AX_BODY(on_ring) {
  const ring *r = context;
  ax_shard_map_unchecked(&r->mesh, "x; _,x -> _,x", AX_CLOSURE(on_device, 2, 1, (void *)r), in, out);
}

enum { rows = 16, width = 32, columns = 24 };

static void product(const char *mesh, bool kernel, const char *machine, ax_simulation *s) {
  ring r = {.kernel = kernel};
  TEST_OK(ax_mesh_parse(mesh, &r.mesh));
  const int64_t n = r.mesh.axis[0].size;
  TEST_OK(simulate(AX_CLOSURE(on_ring, 2, 1, &r), (const ax_type[]){AX_TYPE(AX_F32, rows * n, width), AX_TYPE(AX_F32, width, columns * n)},
                   machine, s));
}

/* Each device multiplies n parts, and is sent the n-1 of the others, from both sides: what is longer decides, and not the sum of
   both. */
static void test_ring(void **state) {
  (void)state;
  static const char fast_links[] = "machine m device flops f32 1e6 memory 1e15 torus dimensions 1 latency 1e-9 bandwidth 1e15";
  static const char slow_links[] = "machine m device flops f32 1e15 memory 1e15 torus dimensions 1 latency 1e-9 bandwidth 1e6";
  static const char both[] = "machine m device flops f32 1e6 memory 1e15 torus dimensions 1 latency 1e-9 bandwidth 4e4";
  for (int64_t n = 3; n <= 7; n++) {
    char mesh[32];
    ax_simulation s;
    const double flops = 2.0 * rows * width * columns * (double)n, bytes = 4.0 * rows * width;
    snprintf(mesh, sizeof mesh, "x=%lld", (long long)n);
    product(mesh, true, fast_links, &s);
    assert_int_equal(s.kernel_count, 1);
    const ax_simulated_kernel *k = &s.kernels[0];
    TEST_NEAR(k->seconds, flops / 1e6, 0.03 * flops / 1e6);
    assert_true(k->flops >= flops * (double)n && k->flops <= 1.1 * flops * (double)n);
    TEST_NEAR(k->sent, bytes * (double)(n * (n - 1)), 0);
    assert_int_equal(s.devices, n);
    assert_true(s.seconds >= k->seconds * (1 - 1e-12) && s.seconds < 1.01 * k->seconds + 1e-6);
    ax_simulation_release(&s);

    product(mesh, true, slow_links, &s); /* one way round has the larger half of the others' parts to bring */
    const double steps = (double)(n / 2);
    TEST_NEAR(s.kernels[0].seconds, steps * bytes / 1e6, 0.03 * steps * bytes / 1e6);
    ax_simulation_release(&s);

    ax_simulation apart;
    product(mesh, true, both, &s);
    product(mesh, false, both, &apart);
    assert_true(s.kernels[0].seconds < 0.9 * apart.seconds); /* beside each other, not one after the other */
    ax_simulation_release(&apart);
    ax_simulation_release(&s);
  }
}

static void test_reports(void **state) {
  (void)state;
  ax_simulation s;
  char *text;
  product("x=4", true, "machine m device flops f32 1e9 memory 1e9 torus dimensions 1 latency 1e-6 bandwidth 1e9", &s);
  for (uint32_t i = 0; i < s.kernels[0].span_count; i++) {
    const ax_simulated_act *act = &s.kernels[0].spans[i];
    assert_true(act->start < act->end && act->end <= s.kernels[0].seconds && act->device < 4);
  }
  assert_true(spent(&s.kernels[0], "copies") > 0 && spent(&s.kernels[0], "waits") > 0 && spent(&s.kernels[0], "computes") > 0);
  TEST_OK(ax_simulation_print(&s, AX_SIMULATION_TEXT, &text));
  assert_non_null(strstr(text, "kernel alone"));
  assert_non_null(strstr(text, s.kernels[0].name));
  ax_string_free(text);
  TEST_OK(ax_simulation_print(&s, AX_SIMULATION_JSON, &text));
  assert_non_null(strstr(text, ": computes\",\"ph\":\"X\""));
  ax_string_free(text);
  ax_simulation_release(&s);
}

static AX_BODY(waits) { ax_semaphore_wait(in[1], ax_full(AX_S32, AX_DIMS(), 1)); }

static AX_BODY(stuck) {
  const ax_core_mesh core = {.core = "tensorcore"};
  const ax_scratch scratch[] = {{.type = ax_semaphore_type(AX_DIMS())}};
  const ax_kernel_options options = {.scratch = {AX_LIST(1, scratch)}, .name = "stuck"};
  ax_mpmd_map(AX_LIST(1, &core), &AX_FN(waits, 2, 0), &options, AX_VALUES(), AX_TYPES(AX_TYPE(AX_F32, 4)), out);
}

static void test_deadlock(void **state) {
  (void)state;
  ax_simulation s;
  assert_int_equal(simulate(AX_FN(stuck, 0, 1), NULL, "machine m device flops f32 1e9 memory 1e9 switch bandwidth 1e9", &s),
                   AX_DEADLOCK);
  assert_non_null(strstr(ax_message(), "deadlock in the kernel stuck"));
  assert_null(s.kernels);
}

static ax_status ring_of_two(void *context) {
  ax_simulation s;
  ax_cluster *cluster;
  ax_status status = ax_cluster_read("cpu", &cluster);
  if (status == AX_OK) status = ax_simulate(context, cluster, NULL, &s);
  if (status == AX_OK) ax_simulation_release(&s);
  ax_cluster_release(cluster);
  return status;
}

static void test_no_memory(void **state) {
  (void)state;
  ring r = {.kernel = true};
  ax_program *program;
  ax_lowered *lowered;
  TEST_OK(ax_mesh_parse("x=2", &r.mesh));
  TEST_OK(ax_trace(AX_CLOSURE(on_ring, 2, 1, &r), AX_TYPES(AX_TYPE(AX_F32, 2, 2), AX_TYPE(AX_F32, 2, 2)), &program));
  TEST_OK(ax_program_lower(program, NULL, &lowered));
  TEST_OK(ring_of_two(lowered)); /* facts of this machine are read once, and go without what there is no memory for */
  assert_true(test_each_allocation(ring_of_two, lowered) > 20);
  ax_lowered_release(lowered);
  ax_program_release(program);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_pipeline), cmocka_unit_test(test_ring),      cmocka_unit_test(test_reports),
      cmocka_unit_test(test_deadlock), cmocka_unit_test(test_no_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
