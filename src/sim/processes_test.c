/* Simulated time of meshes over processes: which messages are sent, beside the closed forms of processes/ways.h. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "axle/axle.h"
#include "processes/ways.h"
#include "sim/cluster.h"
#include "sim/procedure.h"
#include "support/cmocka.h"
#include "support/tensor.h"

/* --- Messages --- */

/* Of a procedure over mesh x=2,y=2 on a machine of two nodes of two devices: "sender>receiver .. (bytes);", a line a chain. */
static void expect_messages(ax_collective_kind kind, const char *axes, double bytes, ax_algorithm algorithm, const char *messages) {
  ax_sim_procedure p = {.kind = kind, .bytes = bytes, .per_process = 2};
  ax_axes names = {0};
  ax_cluster *machine;
  ax_sim_place place;
  ax_mesh mesh;
  ax_text text = {0};
  bool done;
  for (const char *axis = axes; *axis != '\0'; axis++) names.name[names.count++][0] = *axis;
  TEST_OK(ax_cluster_parse("machine m device flops f32 1 memory 1 node devices 2 bandwidth 1 network bandwidth 1", NULL, &machine));
  TEST_OK(ax_mesh_parse("x=2,y=2", &mesh));
  TEST_OK(ax_sim_place_make(machine, &mesh, &place));
  ax_sim_group_make(&place, &names, &p.group);
  TEST_OK(ax_sim_procedure_make(&p, algorithm, &done));
  if (messages == NULL) assert_false(done);
  for (uint32_t c = 0; c < p.chain_count; c++) {
    ax_text_add(&text, "%s", c > 0 ? "\n" : "");
    for (uint32_t i = 0; i < p.chains[c].phase_count; i++) {
      const ax_sim_phase *phase = &p.chains[c].phases[i];
      int64_t sent = 0, received = 0;
      for (int64_t d = 0; d < 4; d++) {
        received += ax_sim_procedure_receives(&p, phase, d);
        for (int64_t k = 0; k < ax_sim_procedure_sends(&p, phase, d); k++, sent++)
          ax_text_add(&text, " %d>%d", (int)d, (int)ax_sim_procedure_target(&p, phase, 0, k, d));
      }
      assert_int_equal(sent, received);
      ax_text_add(&text, " (%g);", phase->bytes);
    }
  }
  if (messages != NULL) assert_string_equal(text.data, messages);
  ax_text_deinit(&text);
  ax_sim_procedure_deinit(&p);
  ax_cluster_release(machine);
}

static void messages(void **state) {
  (void)state;
  const ax_collective_kind sum = AX_COLLECTIVE_ALL_REDUCE, parts = AX_COLLECTIVE_ALL_TO_ALL;
  expect_messages(sum, "xy", 100, AX_ALGORITHM_GATHER, " 0>2 1>3 2>0 3>1 (100); 0>1 1>0 2>3 3>2 (100);");
  expect_messages(sum, "x", 100, AX_ALGORITHM_GATHER, " 0>2 1>3 2>0 3>1 (100);");
  expect_messages(sum, "y", 100, AX_ALGORITHM_GATHER, " 0>1 1>0 2>3 3>2 (100);"); /* nothing crosses */
  expect_messages(parts, "xy", 100, AX_ALGORITHM_GATHER, " 0>2 1>3 2>0 3>1 (50); 0>1 1>0 2>3 3>2 (25);");
  expect_messages(sum, "xy", 100, AX_ALGORITHM_RUN, " 0>2 1>3 2>0 3>1 (100); 0>1 1>0 2>3 3>2 (100);");
  /* Halves to those that add them; totals, between the first of each process; and out to the others. */
  expect_messages(sum, "xy", 100, AX_ALGORITHM_SHARES,
                  " 0>2 1>3 2>0 3>1 (50); 0>1 1>0 2>3 3>2 (50); 0>2 2>0 (50); 0>1 2>3 (100);");
  expect_messages(sum, "yx", 100, AX_ALGORITHM_SHARES,
                  " 0>2 1>3 2>0 3>1 (50); 0>1 1>0 2>3 3>2 (50); 0>2 2>0 (50); 0>1 2>3 (100);");
  expect_messages(sum, "x", 65535, AX_ALGORITHM_RUN, " 0>2 1>3 2>0 3>1 (65535);");
  expect_messages(sum, "x", 65536, AX_ALGORITHM_RUN, " 0>2 1>3 2>0 3>1 (32768); 0>2 1>3 2>0 3>1 (32768);");
  expect_messages(AX_COLLECTIVE_ALL_GATHER, "x", 65536, AX_ALGORITHM_RUN, " 0>2 1>3 2>0 3>1 (65536);");
  expect_messages(AX_COLLECTIVE_ALL_GATHER, "xy", 100, AX_ALGORITHM_SHARES, NULL);
  expect_messages(sum, "y", 1 << 20, AX_ALGORITHM_SHARES, NULL); /* nothing crosses */
  expect_messages(sum, "y", 1 << 20, AX_ALGORITHM_RUN, " 0>1 1>0 2>3 3>2 (1.04858e+06);");
  /* One block goes there and back. Of three, the others follow the first. */
  expect_messages(sum, "xy", 100, AX_ALGORITHM_CHAIN, " 0>1 1>0 2>3 3>2 (25); 0>2 (100); 2>0 (100); 0>1 2>3 (100);");
  expect_messages(sum, "x", 131073, AX_ALGORITHM_CHAIN,
                  " 0>2 1>3 (65536); 0>2 1>3 (1);\n 0>2 1>3 (65536); 2>0 3>1 (65536); 2>0 3>1 (65536); 2>0 3>1 (1);");
  /* Additions would have another order; there is nothing to add; nothing crosses. */
  expect_messages(sum, "yx", 100, AX_ALGORITHM_CHAIN, NULL);
  expect_messages(AX_COLLECTIVE_ALL_GATHER, "xy", 100, AX_ALGORITHM_CHAIN, NULL);
  expect_messages(sum, "y", 100, AX_ALGORITHM_CHAIN, NULL);
}

/* --- Time --- */

typedef struct over {
  ax_mesh mesh;
  const char *axes;
} over;

static AX_BODY(on_device) { out[0] = ax_psum(in[0], ((const over *)context)->axes); }
static AX_BODY(whole) {
  const over *o = context;
  ax_shard_map_unchecked(&o->mesh, o->mesh.count > 1 ? "x+y -> x+y" : "x -> x", AX_CLOSURE(on_device, 1, 1, context), in, out);
}

static double seconds(const char *mesh, const char *axes, int64_t bytes, const ax_process_layout *processes, ax_simulate_options options) {
  over o = {.axes = axes};
  ax_program *program;
  ax_lowered *lowered;
  ax_cluster *machine;
  ax_simulation simulation;
  TEST_OK(ax_mesh_parse(mesh, &o.mesh));
  const ax_type type = ax_array_type(AX_F32, AX_DIMS(bytes / 4 * ax_mesh_devices(&o.mesh)));
  TEST_OK(ax_trace(AX_CLOSURE(whole, 1, 1, &o), &type, &program));
  TEST_OK(ax_program_lower(program, NULL, &lowered));
  TEST_OK(ax_cluster_over(processes, ax_mesh_devices(&o.mesh), &machine));
  TEST_OK(ax_simulate(lowered, machine, &options, &simulation));
  double took = 0;
  for (uint32_t i = 0; i < simulation.op_count; i++)
    if (simulation.ops[i].algorithm != NULL) took = simulation.ops[i].end - simulation.ops[i].start;
  ax_simulation_release(&simulation);
  ax_cluster_release(machine);
  ax_lowered_release(lowered);
  ax_program_release(program);
  return took;
}

static void assume(void) {
  ax_description machine;
  TEST_OK(ax_machine_parse("", &machine));
  ax_machine_pretend(&machine);
}

static void near(double made, double form, double part, int64_t processes, int64_t bytes) {
  if (fabs(made - form) > part * form)
    fail_msg("%lld bytes over %lld processes: %.9g s, not %.9g s", (long long)bytes, (long long)processes, made, form);
}

/* The way of the first block is shared with the second one, which the form does not know: at most a block more on each hop. */
static void expect_chain(double made, double form, const ax_link_rates *link, uint32_t processes, int64_t bytes) {
  const double more = bytes > AX_CHAIN_BLOCK ? 1.1 * (processes - 1) * AX_CHAIN_BLOCK / link->transfer : 0;
  if (made < 0.95 * form || made > 1.01 * form + more)
    fail_msg("a chain of %lld bytes over %u processes: %.9g s, not %.9g to %.9g s", (long long)bytes, processes, made, form, form + more);
}

/* How much later each further message of one sender comes. */
static double follows(const ax_link_rates *link, double bytes) { return fmax(link->message / 2, bytes / link->transfer); }

/* One device a process. Messages of one sender follow one another; a chain is what processes/ways.h says. */
static void closed_forms(void **state) {
  (void)state;
  assume();
  const ax_rates *r = ax_rates_planned();
  for (uint32_t processes = 2; processes <= 64; processes *= 2)
    for (int64_t bytes = 1024; bytes <= 16 << 20; bytes *= 16) {
      const ax_process_layout one = {.processes = processes}, apart = {.processes = processes, .per_host = 1};
      const double others = processes - 1, size = (double)bytes;
      char mesh[32];
      snprintf(mesh, sizeof mesh, "x=%u", processes);
      const ax_simulate_options gather = {.algorithm = AX_ALGORITHM_GATHER}, shares = {.algorithm = AX_ALGORITHM_SHARES},
                                chain = {.algorithm = AX_ALGORITHM_CHAIN};
      const double first = ax_link_seconds(&r->host, size);
      near(seconds(mesh, "x", bytes, &one, gather), first + (others - 1) * follows(&r->host, size), 1e-2, processes, bytes);
      /* A share of each, and then a total of each. */
      const double part = size / processes;
      near(seconds(mesh, "x", bytes, &one, shares), 2 * (ax_link_seconds(&r->host, part) + (others - 1) * follows(&r->host, part)),
           1e-2, processes, bytes);
      expect_chain(seconds(mesh, "x", bytes, &one, chain), ax_chain_seconds(r, processes - 1, 0, size), &r->host, processes, bytes);
      expect_chain(seconds(mesh, "x", bytes, &apart, chain), ax_chain_seconds(r, 0, processes - 1, size), &r->network, processes, bytes);
    }
  ax_machine_pretend(NULL);
}

/* An axis within processes costs less than one across them; devices that are alike are simulated as one, and nothing changes. */
static void axes_and_symmetry(void **state) {
  (void)state;
  const ax_process_layout four = {.processes = 4};
  assume();
  for (int64_t bytes = 64; bytes <= 4 << 20; bytes *= 256) {
    const ax_algorithm algorithms[] = {AX_ALGORITHM_RUN, AX_ALGORITHM_GATHER, AX_ALGORITHM_SHARES, AX_ALGORITHM_CHAIN};
    assert_true(seconds("x=4,y=4", "y", bytes, &four, (ax_simulate_options){.algorithm = AX_ALGORITHM_RUN}) <
                seconds("x=4,y=4", "x", bytes, &four, (ax_simulate_options){.algorithm = AX_ALGORITHM_RUN}));
    for (size_t a = 0; a < AX_COUNT(algorithms); a++) {
      const ax_simulate_options some = {.algorithm = algorithms[a]}, every = {.algorithm = algorithms[a], .every_device = true};
      assert_true(seconds("x=4,y=4", "x,y", bytes, &four, some) == seconds("x=4,y=4", "x,y", bytes, &four, every));
      assert_true(seconds("x=4,y=4", "x", bytes, &four, some) == seconds("x=4,y=4", "x", bytes, &four, every));
    }
  }
  ax_machine_pretend(NULL);
}

static void refused(void **state) {
  (void)state;
  static const uint32_t list[] = {0, 1};
  ax_cluster *machine;
  const ax_process_layout three = {.processes = 3}, listed = {.processes = 2, .process_of = list, .process_of_count = 2};
  TEST_FAILS(ax_cluster_over(&three, 8, &machine), AX_INVALID_ARGUMENT, "8 devices are not in 3 equal blocks");
  TEST_FAILS(ax_cluster_over(&listed, 2, &machine), AX_INVALID_ARGUMENT, "equal blocks");
  assert_null(machine);
}

/* A message that is short, one that is long, and one that stays in its node. */
static void besides(void **state) {
  (void)state;
  ax_cluster *machine;
  ax_sim_place place;
  ax_mesh mesh;
  TEST_OK(ax_cluster_parse("machine m device flops f32 1 memory 1 node devices 2 bandwidth 1 "
                           "network bandwidth 10 short 100 short_bandwidth 5 handshake 7", NULL, &machine));
  TEST_OK(ax_mesh_parse("x=4", &mesh));
  TEST_OK(ax_sim_place_make(machine, &mesh, &place));
  TEST_NEAR(ax_sim_place_besides(&place, 0, 2, 100), 100.0 / 5 - 100.0 / 10, 1e-12);
  TEST_NEAR(ax_sim_place_besides(&place, 0, 2, 101), 7, 0);
  TEST_NEAR(ax_sim_place_besides(&place, 0, 1, 101), 0, 0);
  ax_cluster_release(machine);
  TEST_FAILS(ax_cluster_parse("machine m device flops f32 1 memory 1 switch bandwidth 1 handshake 1", NULL, &machine), AX_PARSE_ERROR,
             "'handshake' is nothing that is said of a switch");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(messages), cmocka_unit_test(closed_forms), cmocka_unit_test(axes_and_symmetry),
                                     cmocka_unit_test(refused), cmocka_unit_test(besides)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
