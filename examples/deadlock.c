/* A deliberate deadlock: device 2 takes another way and never comes to the sum. docs/deadlocks.md reads the report line by line. */
#include <stdio.h>

#include <axle/axle.h>

static ax_mesh mesh; /* d=4 */

static AX_BODY(sum) {
  out[0] = ax_psum(in[0], "d");
}

static AX_BODY(stay_away) {
  out[0] = in[0];
}

static AX_BODY(device) {
  ax_if(ax_eq(ax_axis_index("d"), 2), AX_FN(stay_away, 1, 1), AX_FN(sum, 1, 1), in, out);
}

/* Checked, this is refused where it is traced. */
static AX_BODY(checked) {
  ax_shard_map(&mesh, "d -> d", AX_FN(device, 1, 1), in, out);
}

static AX_BODY(unchecked) {
  ax_shard_map_unchecked(&mesh, "d -> d", AX_FN(device, 1, 1), in, out);
}

int main(void) {
  float x[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  ax_type type = AX_TYPE(AX_F32, 8);
  ax_program *program = NULL;
  ax_runtime *runtime = NULL;
  ax_executable *executable = NULL;
  ax_array *in = NULL, *out = NULL;
  ax_status status;

  if ((status = ax_mesh_parse("d=4", &mesh))) goto cleanup;
  if (ax_trace(AX_FN(checked, 1, 1), &type, &program) != AX_OK) printf("checked: %s\n\n", ax_message());
  if ((status = ax_trace(AX_FN(unchecked, 1, 1), &type, &program))) goto cleanup;
  if ((status = ax_runtime_create(NULL, &runtime))) goto cleanup;
  if ((status = ax_compile(runtime, program, NULL, &executable))) goto cleanup;
  if ((status = ax_executable_put(executable, 0, x, &in))) goto cleanup;
  status = ax_run(executable, &in, &out);
  if (status == AX_DEADLOCK) printf("unchecked: %s\n", ax_message());

cleanup:
  if (status != AX_DEADLOCK) fprintf(stderr, "deadlock: expected a deadlock, got %s: %s\n", ax_status_name(status), ax_message());
  ax_array_release(in);
  ax_array_release(out);
  ax_executable_release(executable);
  ax_runtime_release(runtime);
  ax_program_release(program);
  return status == AX_DEADLOCK ? 0 : 1;
}
