/* Under mpirun: runs that are started and not waited for, with ordered calls, each of which adds a line to a file that all
   processes write to. The lines are those of one process, in that order; the results too.
     calls FILE */
#include <fcntl.h>
#include <unistd.h>

#include "axle/axle.h"
#include "axle/processes.h"
#include "world.h"

enum { devices = 4, runs = 3, steps = 2 };

static const char *file;

static ax_status note(ax_callback_call *call, void *context) {
  char line[64];
  const int length = snprintf(line, sizeof line, "%s%lld %g\n", (const char *)context, (long long)call->device,
                              ((const float *)call->in[0].data)[0]);
  const int at = open(file, O_WRONLY | O_CREAT | O_APPEND, 0600);
  CHECK(at >= 0 && write(at, line, (size_t)length) == length && close(at) == 0);
  if (call->out_count > 0) *(float *)call->out[0].data = ((const float *)call->in[0].data)[0] + 1;
  return AX_OK;
}

static AX_BODY(step) {
  ax_callback *const *places = context;
  ax_value made;
  ax_type type = ax_typeof(in[0]);
  type.spread = (ax_spread){0};
  ax_io_callback(places[0], true, AX_VALUES(in[0]), AX_LIST(1, &type), &made);
  out[0] = ax_psum(made, "d");
  (ax_io_callback)(places[1], true, 1, out, 0, NULL, 0, NULL);
}
static AX_BODY(body) { ax_scan(AX_CLOSURE(step, 1, 1, context), 1, steps, false, in, out); }

/* What the calls of one process write. */
static void expect(char *text, size_t bytes, float *x) {
  size_t length = 0;
  for (int i = 0; i < runs * steps; i++) {
    float sum = 0;
    for (int d = 0; d < devices; d++) {
      length += (size_t)snprintf(text + length, bytes - length, "a%d %g\n", d, (double)x[d]);
      sum += x[d] + 1;
    }
    for (int d = 0; d < devices; d++) {
      length += (size_t)snprintf(text + length, bytes - length, "b%d %g\n", d, (double)sum);
      x[d] = sum;
    }
  }
}

static void check_file(const char *wanted) {
  char text[8192];
  FILE *stream = fopen(file, "r");
  CHECK(stream != NULL);
  text[fread(text, 1, sizeof text - 1, stream)] = '\0';
  fclose(stream);
  if (strcmp(text, wanted) == 0) return;
  fprintf(stderr, "%s\nand not\n%s", text, wanted);
  abort();
}

int main(int count, char **arguments) {
  CHECK(count == 2);
  file = arguments[1];
  float numbers[devices] = {1, 2, 3, 4};
  char wanted[8192];
  ax_host_array in = AX_HOST(numbers), whole;
  ax_runtime *runtime;
  ax_callback *places[2];
  ax_executable *executable;
  ax_program *program;
  ax_array *x, *next;
  ax_mesh mesh;
  const ax_type type = ax_array_type(AX_F32, AX_DIMS(devices));
  CHECK(ax_runtime_create(&(ax_runtime_options){.processes = AX_MPI, .workers = 2}, &runtime) == AX_OK);
  const bool first = ax_process_index(runtime) == 0;
  if (first) unlink(file); /* its device makes the first call */
  CHECK(ax_callback_create("a", note, "a", NULL, &places[0]) == AX_OK);
  CHECK(ax_callback_create("b", note, "b", NULL, &places[1]) == AX_OK);
  CHECK(ax_mesh_parse("d=4", &mesh) == AX_OK);
  CHECK(ax_trace(AX_SHARDED(&mesh, "d -> d", AX_CLOSURE(body, 1, 1, places)), &type, &program) == AX_OK);
  CHECK(ax_compile(runtime, program, NULL, &executable) == AX_OK);
  CHECK(ax_device_put(runtime, &mesh, "d", &in, &x) == AX_OK);
  for (int i = 0; i < runs; i++) {
    CHECK(ax_run_start(executable, &x, &next) == AX_OK);
    ax_array_release(x);
    x = next;
  }
  CHECK(ax_array_gather(x, AX_EVERY_PROCESS, &whole) == AX_OK);
  expect(wanted, sizeof wanted, numbers);
  CHECK(memcmp(whole.data, numbers, sizeof numbers) == 0);
  if (first) check_file(wanted);
  ax_host_array_release(&whole);
  ax_array_release(x);
  ax_executable_release(executable);
  ax_program_release(program);
  for (int i = 0; i < 2; i++) ax_callback_release(places[i]);
  ax_runtime_release(runtime);
  if (first) unlink(file);
  return 0;
}
