/* Under mpirun, 2 processes or more: programs at random (support/typed.h) give the bits that they give in one process, while each
   process waits for random times between calls and is stopped by the system and continued at random moments. A process that is
   stopped holds up the others; it must not change anything else.
     soak SECONDS SEED    until so many seconds have passed in process 0 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "array/executable.h"
#include "axle/processes.h"
#include "support/cmocka.h"
#include "support/lanes.h"
#include "support/run.h"
#include "support/typed.h"

static ax_runtime *spread, *alone;
static test_random own; /* of this process alone */

static void pause_for(int64_t microseconds) {
  nanosleep(&(struct timespec){.tv_sec = microseconds / 1000000, .tv_nsec = microseconds % 1000000 * 1000}, NULL);
}

/* A child stops this process at random moments, most of the time for a moment, and goes with it. Before MPI is started. */
static void begin_stopping(uint64_t seed) {
  const pid_t parent = getpid();
  test_random random = {seed ^ (uint64_t)parent};
  if (fork() != 0) return;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  while (getppid() == parent) {
    pause_for(test_random_below(&random, 300000));
    kill(parent, SIGSTOP);
    pause_for(test_random_below(&random, test_random_below(&random, 20) == 0 ? 3000000 : 30000));
    kill(parent, SIGCONT);
  }
  _exit(0);
}

static void dawdle(void) {
  if (test_random_below(&own, 4) == 0) pause_for(test_random_below(&own, 10000));
}

/* --- One program --- */

static struct {
  uint64_t run, refused;
} tally;

static void run_spread(ax_program *program, ax_tensor *const *in, ax_tensor **wanted, uint64_t seed) {
  const uint32_t in_count = ax_program_in_count(program), out_count = ax_program_out_count(program);
  ax_array **arrays = calloc((size_t)in_count + out_count + 1, sizeof arrays[0]), **out = arrays + in_count;
  ax_executable *executable;
  assert_non_null(arrays);
  dawdle();
  const ax_status status = ax_compile(spread, program, NULL, &executable);
  if (status == AX_ABSENT) { /* what cannot be done between processes; the same in all */
    tally.refused++;
    free(arrays);
    return;
  }
  TEST_OK(status);
  tally.run++;
  for (uint32_t i = 0; i < in_count; i++)
    TEST_OK(ax_device_put_data(spread, NULL, "", ax_program_in_type(program, i), in[i]->data, &arrays[i]));
  for (int turn = 0; turn < 3; turn++) {
    dawdle();
    TEST_OK(ax_run(executable, AX_LIST(in_count, arrays), AX_LIST(out_count, out)));
    for (uint32_t k = 0; k < out_count; k++) {
      ax_host_array whole;
      dawdle();
      TEST_OK(ax_array_gather(out[k], AX_EVERY_PROCESS, &whole));
      if (memcmp(whole.data, wanted[k]->data, test_tensor_bytes(wanted[k])) != 0)
        fail_msg("seed %llu: result %u has other bits", (unsigned long long)seed, k);
      ax_host_array_release(&whole);
      ax_array_release(out[k]);
      out[k] = NULL;
    }
  }
  for (uint32_t i = 0; i < in_count; i++) ax_array_release(arrays[i]);
  free(arrays);
  ax_executable_release(executable);
}

static void run_both(ax_program *program, uint64_t seed) {
  ax_program *on_mesh;
  test_random data = {seed};
  ax_tensor *in[TYPED_INPUTS], *wanted[64];
  TEST_OK(test_on_mesh(program, &on_mesh));
  const uint32_t in_count = ax_program_in_count(on_mesh), out_count = ax_program_out_count(on_mesh);
  assert_true(out_count <= AX_COUNT(wanted));
  for (uint32_t i = 0; i < in_count; i++) {
    const ax_type *type = ax_program_in_type(on_mesh, i);
    const bool scalar = type->rank == 0, integer = type->dtype == AX_S32;
    in[i] = test_random_tensor(&data, *type, scalar ? 0 : integer ? -10 : -1, scalar ? 4 : integer ? 10 : 1);
  }
  test_execute(alone, on_mesh, in, wanted);
  run_spread(on_mesh, in, wanted, seed);
  test_release(in, in_count);
  test_release(wanted, out_count);
  ax_program_release(on_mesh);
}

static void one_program(uint64_t seed) {
  typed_making made = typed_making_of(seed);
  ax_program *program = NULL;
  made.maker.messages = true;
  if (typed_trace(&made, false, &program) == AX_OK) run_both(program, seed);
  else tally.refused++; /* in all processes */
  ax_program_release(program);
}

/* --- All --- */

static ax_status write_answer(void *answer, const ax_type *block, const int64_t *start, void *data) {
  (void)block, (void)start;
  *(float *)data = *(const bool *)answer;
  return AX_OK;
}

/* What process 0 says. */
static bool all_agree(bool answer) {
  char text[32];
  ax_mesh mesh;
  ax_array *array;
  ax_host_array whole;
  snprintf(text, sizeof text, "x=%u", ax_process_count(spread));
  TEST_OK(ax_mesh_parse(text, &mesh));
  const ax_type type = TEST_TYPE(AX_F32, ax_process_count(spread));
  TEST_OK(ax_array_from_callback(spread, &mesh, "x", &type, write_answer, &answer, &array));
  TEST_OK(ax_array_gather(array, AX_EVERY_PROCESS, &whole));
  const bool first = *(const float *)whole.data != 0;
  ax_host_array_release(&whole);
  ax_array_release(array);
  return first;
}

static double seconds;
static uint64_t first_seed;

static void programs(void **state) {
  (void)state;
  const double end = ax_seconds() + seconds;
  uint64_t seed = first_seed;
  TEST_OK(ax_runtime_create(&(ax_runtime_options){.processes = AX_MPI, .workers = 2}, &spread));
  TEST_OK(ax_runtime_create(&(ax_runtime_options){.processes = AX_ONE_PROCESS, .workers = 1}, &alone));
  own.state = first_seed + ax_process_index(spread);
  do {
    for (int i = 0; i < 4; i++) one_program(seed++);
  } while (all_agree(ax_seconds() < end));
  if (ax_process_index(spread) == 0)
    print_message("%llu programs from seed %llu on in %u processes, each three times; %llu more were refused\n",
                  (unsigned long long)tally.run, (unsigned long long)first_seed, ax_process_count(spread),
                  (unsigned long long)tally.refused);
  ax_runtime_release(alone);
  ax_runtime_release(spread);
}

int main(int count, char **arguments) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(programs)};
  if (count != 3) return 2;
  seconds = strtod(arguments[1], NULL);
  first_seed = strtoull(arguments[2], NULL, 0);
  begin_stopping(first_seed);
  return cmocka_run_group_tests(tests, NULL, NULL);
}
