/* Layouts that are chosen: what is known to be best is found, nothing found costs more than what propagation makes of nothing, and
   results stay. */
#include <stdio.h>

#include "axle/ops.h"
#include "axle/pmap.h"
#include "axle/stages.h"
#include "axle/transform.h"
#include "machine/machine.h"
#include "mesh/constraint.h"
#include "partition/partition.h"
#include "support/cmocka.h"
#include "support/random.h"
#include "support/run.h"

static AX_BODY(layer) {
  (void)context;
  out[0] = ax_matmul(ax_tanh(ax_matmul(in[0], in[1])), in[2]);
}

static ax_mesh mesh_of(const char *text) {
  ax_mesh mesh;
  TEST_OK(ax_mesh_parse(text, &mesh));
  return mesh;
}

static ax_program *layer_of(int64_t rows) {
  const ax_type types[] = {TEST_TYPE(AX_F32, rows, 128), TEST_TYPE(AX_F32, 128, 512), TEST_TYPE(AX_F32, 512, 128)};
  return test_trace(layer, NULL, types, 3, 1);
}

/* Few rows: each device has some of the hidden elements, and sums are added up; many: each has some rows, and nothing moves. That
   holds on the machine that is assumed: where handing over takes long, each device has some of the few rows as well. */
static void known(void **state) {
  (void)state;
  static const struct {
    int64_t rows;
    const char *mesh, *specs, *in[3], *out, *machine;
  } rows[] = {
      {8, "data=8", "auto -> ?", {"data", "", ""}, "data", "exchange 10000 ns\n"},
      {8, "data=8", "auto -> ?", {"", "_,data", "data"}, "", NULL},
      {65536, "data=8", "auto -> auto", {"data", "", ""}, "data", NULL},
      {8, "data=2,model=4", "auto -> ?", {"", "_,data+model", "data+model"}, "", NULL},
      {65536, "data=2,model=4", "auto -> ?", {"data+model", "", ""}, "data+model", NULL},
      {64, "data=8", "data; auto; auto -> data", {"data", "", ""}, "data", NULL},
      {64, "data=8", "?; data; auto -> ?", {"_,data", "data", "data"}, "", NULL},
  };
  for (size_t i = 0; i < AX_COUNT(rows); i++) {
    const ax_mesh mesh = mesh_of(rows[i].mesh);
    ax_description machine;
    TEST_OK(ax_machine_parse(rows[i].machine != NULL ? rows[i].machine : "", &machine));
    ax_machine_pretend(&machine);
    ax_program *program = layer_of(rows[i].rows), *said, *partitioned;
    TEST_OK(ax_program_with_shardings(program, &mesh, rows[i].specs, &said));
    TEST_OK(ax_program_partition(said, &partitioned));
    const ax_partitioned parts = ax_partitioned_of(partitioned);
    for (int k = 0; k < 4; k++) {
      ax_spec wanted;
      TEST_OK(ax_spec_parse(k < 3 ? rows[i].in[k] : rows[i].out, parts.mesh, &wanted));
      if (!ax_spec_equal(k < 3 ? &parts.in_specs[k] : parts.out_specs, &wanted))
        fail_msg("row %zu: %s %d lies otherwise", i, k < 3 ? "input" : "result", k);
    }
    ax_program_release(partitioned);
    ax_program_release(said);
    ax_program_release(program);
  }
  ax_machine_pretend(NULL);
}

static double received(const ax_program *program, const ax_mesh *mesh, const char *specs) {
  ax_program *said;
  ax_cost cost;
  TEST_OK(ax_program_with_shardings(program, mesh, specs, &said));
  TEST_OK(ax_program_cost(said, &cost));
  const double units = cost.flops / 32 + cost.received;
  ax_cost_release(&cost);
  ax_program_release(said);
  return units;
}

/* Of all ways to cut three arrays by one axis, in work and bytes moved. */
static void among_all(void **state) {
  (void)state;
  static const char *const ways[] = {"", "data", "_,data"};
  const ax_mesh mesh = mesh_of("data=4");
  for (int64_t rows = 16; rows <= 65536; rows *= 8) {
    ax_program *program = layer_of(rows);
    double least = 0;
    for (int way = 0; way < 27; way++) {
      char specs[64];
      snprintf(specs, sizeof specs, "%s; %s; %s -> ?", ways[way % 3], ways[way / 3 % 3], ways[way / 9]);
      const double units = received(program, &mesh, specs);
      if (way == 0 || units < least) least = units;
    }
    const double slack = 4.0 * (2 * rows * 128 + 2 * 128 * 512) / 16 + 2 * 8192; /* what devices hold and collectives count too */
    assert_true(received(program, &mesh, "auto -> ?") <= least + slack);
    ax_program_release(program);
  }
}

static ax_program *chosen_for(const ax_process_layout *processes, const ax_mesh *mesh) {
  ax_program *program = layer_of(2), *said;
  TEST_OK(ax_program_laid_like(program, mesh, "auto -> ?", processes, NULL, &said));
  ax_program_release(program);
  return said;
}

static ax_cost cost_on(const ax_program *program, const ax_process_layout *processes) {
  ax_cost cost;
  TEST_OK(ax_program_cost_over(program, processes, &cost));
  return cost;
}

/* Two rows, which one axis can cut alone. In one process it does not matter which axis does what; over two, the layout that is chosen
   sends less between them than what is best for one, and takes less time. Speeds that are measured play no part. */
static void what_is_sent_most_stays_within_a_process(void **state) {
  (void)state;
  static const uint32_t by_turns[] = {0, 1, 0, 1};
  const ax_process_layout spreads[] = {{.processes = 2}, {.processes = 2, .process_of = by_turns, .process_of_count = 4}};
  const ax_mesh mesh = mesh_of("a=2,b=2");
  ax_description machine;
  TEST_OK(ax_machine_parse("", &machine));
  ax_machine_pretend(&machine);
  ax_program *one = chosen_for(NULL, &mesh), *none = chosen_for(&(ax_process_layout){.processes = 1}, &mesh);
  assert_true(ax_program_equal(one, none));
  for (size_t i = 0; i < AX_COUNT(spreads); i++) {
    ax_program *two = chosen_for(&spreads[i], &mesh);
    ax_cost before = cost_on(one, &spreads[i]), after = cost_on(two, &spreads[i]);
    if (!(after.between < before.between && after.seconds < before.seconds))
      fail_msg("spread %zu: %.0f bytes between processes in %.2f us; for one process %.0f in %.2f", i, after.between, 1e6 * after.seconds,
               before.between, 1e6 * before.seconds);
    ax_cost_release(&before), ax_cost_release(&after);
    ax_program_release(two);
  }
  ax_program_release(one), ax_program_release(none);
  ax_machine_pretend(NULL);
}

/* Nothing is asked for: the mesh is there all the same, and results are what they were. */
static void results(void **state) {
  (void)state;
  const ax_mesh mesh = mesh_of("data=2,model=2");
  ax_program *program = layer_of(8), *said;
  TEST_OK(ax_program_with_shardings(program, &mesh, "auto -> auto", &said));
  assert_int_equal(ax_program_devices(said), 4);
  test_random_run(said, 1, false, 1e-5);
  ax_program_release(said);
  ax_program_release(program);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(known), cmocka_unit_test(among_all),
                                     cmocka_unit_test(what_is_sent_most_stays_within_a_process), cmocka_unit_test(results)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
