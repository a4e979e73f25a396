/* Kept times of collectives: each is found for the same collective in a place of the same sizes, and for no other. */
#include "sim/kept_times.h"

#include <stdio.h>
#include <string.h>

#include "support/cmocka.h"
#include "support/tensor.h"

static const char machine_text[] =
    "machine \"m\" device flops f32 1e12 memory 1e11 launch 1e-6\nnode devices 4 latency 1e-6 bandwidth 1e10 overhead 5e-7\n"
    "network latency 3e-6 bandwidth 5e9 overhead 1e-6\n";

static void test_kept(void **state) {
  (void)state;
  static const char *const meshes[] = {"a=4,b=8", "a=8,b=4", "b=4,a=8", "a=2,b=16"}; /* names do not count */
  enum { MESHES = AX_COUNT(meshes), KINDS = AX_COLLECTIVE_PERMUTE, SIZES = 3 };
  ax_cluster *machine;
  ax_kept_times *times;
  ax_sim_alone got;
  TEST_OK(ax_cluster_parse(machine_text, "m", &machine));
  TEST_OK(ax_kept_times_create(&times));
  for (int turn = 0; turn < 2; turn++) /* the second turn finds what the first has kept */
    for (int m = 0; m < MESHES; m++)
      for (int kind = 0; kind < KINDS; kind++)
        for (int size = 0; size < SIZES; size++)
          for (uint32_t axis = 0; axis < 2; axis++) {
            ax_mesh mesh;
            ax_sim_place place;
            ax_axes names = {.count = 1};
            ax_sim_procedure procedure = {.kind = (ax_collective_kind)kind, .bytes = 64 << size};
            TEST_OK(ax_mesh_parse(meshes[m], &mesh));
            TEST_OK(ax_sim_place_make(machine, &mesh, &place));
            strcpy(names.name[0], mesh.axis[axis].name);
            ax_sim_group_make(&place, &names, &procedure.group);
            const double seconds = (double)(((m == 2 ? 0 : m) * KINDS + kind) * SIZES + size) * 2 + axis;
            const bool is_kept = ax_kept_times_find(times, &procedure, &place, &got);
            assert_true(is_kept == (turn == 1 || m == 2));
            if (is_kept) assert_true(got.seconds == seconds && got.busy[1] == 2 * seconds);
            else ax_kept_times_add(times, &procedure, &place, &(ax_sim_alone){.seconds = seconds, .busy[1] = 2 * seconds});
            procedure.kind = AX_COLLECTIVE_PERMUTE; /* its pairs are the program's */
            ax_kept_times_add(times, &procedure, &place, &(ax_sim_alone){.seconds = 1});
            assert_false(ax_kept_times_find(times, &procedure, &place, &got));
          }
  ax_kept_times_destroy(times);
  ax_kept_times_destroy(NULL);
  ax_cluster_release(machine);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_kept)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
