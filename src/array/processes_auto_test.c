/* Layouts given as "auto" follow from the runtime's processes, or from those that options say; costs count them. The processes are
   threads of this one. */
#include <pthread.h>
#include <string.h>

#include "array/runtime.h"
#include "axle/ops.h"
#include "axle/stages.h"
#include "processes/within.h"
#include "support/cmocka.h"
#include "support/run.h"

enum { inputs = 3, most = 2 };

static AX_BODY(layer) {
  (void)context;
  out[0] = ax_matmul(ax_tanh(ax_matmul(in[0], in[1])), in[2]);
}

static ax_program *program_of(void) {
  const ax_type types[] = {TEST_TYPE(AX_F32, 2, 128), TEST_TYPE(AX_F32, 128, 512), TEST_TYPE(AX_F32, 512, 128)};
  return test_trace(layer, NULL, types, inputs, 1);
}

static ax_mesh mesh_of(void) {
  ax_mesh mesh;
  TEST_OK(ax_mesh_parse("a=2,b=2", &mesh));
  return mesh;
}

static ax_process_layout one = {.processes = 1}, two = {.processes = 2}, two_hosts = {.processes = 2, .per_host = 1};

typedef struct party {
  ax_transport *transport;
  ax_program *program;
  const ax_process_layout *said; /* by the options */
  pthread_t thread;
  ax_status status;
  ax_spec specs[inputs];
  ax_process_layout layout;
  uint32_t counted; /* processes of the cost */
  double between;
} party;

static ax_status compile(party *p, ax_runtime *runtime) {
  const ax_mesh mesh = mesh_of();
  const ax_compile_options options = {.mesh = &mesh, .shardings = "auto -> ?", .processes = p->said};
  ax_executable *executable;
  ax_cost cost;
  AX_TRY(ax_compile(runtime, p->program, &options, &executable));
  for (uint32_t i = 0; i < inputs; i++) p->specs[i] = *ax_executable_in_spec(executable, i);
  p->layout = ax_process_layout_of(runtime);
  ax_status status = ax_executable_cost(executable, &cost);
  p->counted = cost.processes;
  p->between = cost.between;
  ax_cost_release(&cost);
  ax_executable_release(executable);
  return status;
}

static void *be_party(void *context) {
  party *p = context;
  ax_runtime *runtime;
  p->status = ax_runtime_create_over(&(ax_runtime_options){.workers = 1}, p->transport, 0, NULL, &runtime);
  if (p->status == AX_OK) p->status = compile(p, runtime);
  ax_runtime_release(runtime);
  return NULL;
}

/* Compiles in so many processes, which must lay inputs out alike. */
static party in_all(uint32_t processes, const ax_process_layout *said) {
  ax_transport *transports[most];
  party parties[most];
  ax_program *program = program_of();
  assert_int_equal(ax_within_create(processes, transports), AX_OK);
  for (uint32_t p = 0; p < processes; p++) {
    parties[p] = (party){.transport = transports[p], .program = program, .said = said};
    assert_int_equal(pthread_create(&parties[p].thread, NULL, be_party, &parties[p]), 0);
  }
  for (uint32_t p = 0; p < processes; p++) pthread_join(parties[p].thread, NULL);
  for (uint32_t p = 0; p < processes; p++) {
    assert_int_equal(parties[p].status, AX_OK);
    for (uint32_t i = 0; i < inputs; i++) assert_true(ax_spec_equal(&parties[p].specs[i], &parties[0].specs[i]));
  }
  ax_program_release(program);
  return parties[0];
}

static void expect_specs(const party *p, const ax_process_layout *processes) {
  const ax_mesh mesh = mesh_of();
  ax_program *program = program_of();
  ax_lowered *lowered;
  TEST_OK(ax_program_lower(program, &(ax_compile_options){.mesh = &mesh, .shardings = "auto -> ?", .processes = processes}, &lowered));
  for (uint32_t i = 0; i < inputs; i++)
    if (!ax_spec_equal(&p->specs[i], ax_lowered_in_spec(lowered, i))) fail_msg("input %u lies otherwise", i);
  ax_lowered_release(lowered);
  ax_program_release(program);
}

static void by_the_runtime(void **state) {
  (void)state;
  const party spread = in_all(2, NULL), alone = in_all(1, NULL);
  expect_specs(&spread, &two);
  expect_specs(&alone, NULL);
  assert_int_equal(spread.layout.processes, 2);
  assert_int_equal(spread.layout.per_host, 0);
  assert_int_equal(spread.counted, 2);
  assert_int_equal(alone.counted, 1);
}

/* The same program, and so the same bits, on any processes: the options say for which. What crosses is dearest between hosts, so layouts
   chosen for two let less of it cross than those chosen for one process. */
static void by_the_options(void **state) {
  (void)state;
  const party far = in_all(2, &two_hosts), same = in_all(2, &one), alone = in_all(1, &one), other = in_all(1, &two);
  expect_specs(&same, &one);
  expect_specs(&alone, &one);
  expect_specs(&other, &two);
  expect_specs(&far, &two_hosts);
  assert_int_equal(same.counted, 2);
  assert_true(far.between < same.between);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(by_the_runtime), cmocka_unit_test(by_the_options)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
