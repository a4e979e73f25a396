/* Which library of MPI: what launchers say, and what is said where none can be loaded. */
#include "processes/load.h"

#include <stdlib.h>
#include <string.h>

#include "support/cmocka.h"

static const char *set, *value;
static const char *variable(const char *name) { return strcmp(name, set) == 0 ? value : NULL; }

static ax_mpi_launcher with(const char *name, const char *text) {
  set = name;
  value = text;
  return ax_mpi_launcher_of(variable);
}

static void launchers_are_known_by_their_variables(void **state) {
  (void)state;
  assert_string_equal(with("OMPI_COMM_WORLD_SIZE", "4").family, "openmpi");
  assert_int_equal(with("OMPI_COMM_WORLD_SIZE", "4").processes, 4);
  assert_string_equal(with("PMI_SIZE", "2").family, "mpich");
  assert_string_equal(with("SLURM_STEP_NUM_TASKS", "16").family, "");
  assert_int_equal(with("PMI_SIZE", "").processes, 0);
  assert_int_equal(with("HOME", "3").processes, 0);
}

static void a_world_of_one_under_a_launcher_of_many_is_refused(void **state) {
  (void)state;
  setenv("AXLE_MPI", "nowhere/libaxle_mpi_none.so", 1);
  setenv("OMPI_COMM_WORLD_SIZE", "4", 1);
  assert_int_equal(ax_mpi_check_world(4), AX_OK);
  assert_int_equal(ax_mpi_check_world(1), AX_UNAVAILABLE);
  assert_non_null(strstr(ax_message(), "Open MPI's mpirun started 4 processes"));
}

static void what_was_tried_is_said(void **state) {
  (void)state;
  const ax_mpi_shim *shim;
  for (int again = 0; again < 2; again++) {
    assert_int_equal(ax_mpi_load(&shim), AX_UNAVAILABLE);
    assert_null(shim);
    assert_non_null(strstr(ax_message(), "AXLE_MPI=nowhere/libaxle_mpi_none.so"));
    assert_non_null(strstr(ax_message(), "launcher: Open MPI's mpirun"));
    assert_non_null(strstr(ax_message(), "No such file or directory"));
  }
  assert_string_equal(ax_mpi_library(), ax_message());
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(launchers_are_known_by_their_variables),
      cmocka_unit_test(a_world_of_one_under_a_launcher_of_many_is_refused),
      cmocka_unit_test(what_was_tried_is_said),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
