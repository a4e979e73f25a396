/* Under mpirun, 2 processes of one machine: a run of one runtime goes on while the first process makes another runtime, which the
   second makes only when the run is over. Making it waits in MPI for the second process; the run must not wait for that. */
#include <time.h>

#include "axle/axle.h"
#include "axle/processes.h"
#include "world.h"

enum { devices = 4, steps = 1000 };

/* Of the devices of process 1: by then process 0 is in MPI. */
static ax_status come_late(ax_callback_call *call, void *context) {
  (void)context;
  if (call->device >= devices / 2) nanosleep(&(struct timespec){.tv_nsec = 300000000}, NULL);
  *(float *)call->out[0].data = *(const float *)call->in[0].data;
  return AX_OK;
}

static AX_BODY(step) { out[0] = ax_pmean(in[0], "d"); }
static AX_BODY(body) {
  const ax_type type = ax_typeof(in[0]);
  ax_value late;
  ax_io_callback(context, false, AX_VALUES(in[0]), AX_LIST(1, &type), &late);
  ax_scan(AX_FN(step, 1, 1), 1, steps, false, &late, out);
}

static void make(ax_runtime **out) {
  CHECK(ax_runtime_create(&(ax_runtime_options){.processes = AX_MPI, .workers = 2}, out) == AX_OK);
}

static void check(const ax_array *y) {
  ax_host_array whole;
  CHECK(ax_array_gather(y, AX_EVERY_PROCESS, &whole) == AX_OK);
  for (int d = 0; d < devices; d++) CHECK(((const float *)whole.data)[d] == 2.5f); /* the mean of 1 to 4, and then of itself */
  ax_host_array_release(&whole);
}

/* Leaves the run going on. */
static ax_array *start(ax_runtime *runtime, ax_program *program, const ax_mesh *mesh) {
  float numbers[devices] = {1, 2, 3, 4};
  ax_host_array in = AX_HOST(numbers);
  ax_executable *executable;
  ax_array *x, *y;
  CHECK(ax_compile(runtime, program, NULL, &executable) == AX_OK);
  CHECK(ax_device_put(runtime, mesh, "d", &in, &x) == AX_OK);
  CHECK(ax_run_start(executable, &x, &y) == AX_OK);
  ax_array_release(x);
  ax_executable_release(executable);
  return y;
}

int main(void) {
  ax_runtime *first, *second;
  ax_program *program;
  ax_callback *late;
  ax_mesh mesh;
  const ax_type type = ax_array_type(AX_F32, AX_DIMS(devices));
  make(&first);
  CHECK(ax_mesh_parse("d=4", &mesh) == AX_OK);
  CHECK(ax_callback_create("late", come_late, NULL, NULL, &late) == AX_OK);
  CHECK(ax_trace(AX_SHARDED(&mesh, "d -> d", AX_CLOSURE(body, 1, 1, late)), &type, &program) == AX_OK);
  ax_array *y = start(first, program, &mesh);
  if (ax_process_index(first) == 1) CHECK(ax_array_wait(y) == AX_OK);
  make(&second);
  check(y);
  ax_array *z = start(second, program, &mesh);
  check(z);
  ax_array_release(y);
  ax_array_release(z);
  ax_program_release(program);
  ax_callback_release(late);
  ax_runtime_release(second);
  ax_runtime_release(first);
  return 0;
}
