/* What docs/running.md shows: what a call does not do, where it goes on, and runs that print while others are started. */
#include <stdio.h>

#include <axle/axle.h>

static void step(const ax_value *in, ax_value *out, void *context) {
  (void)context; /* in: weights, frozen weights, a batch that this version does not use */
  out[0] = ax_mul(in[0], 0.5);
  out[1] = in[1];
}

static void report(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_debug_print("a run has {}", true, AX_LIST(1, in));
  out[0] = ax_add(in[0], 1);
}

static ax_array *put(ax_runtime *runtime, const char *mesh_text, int64_t first) {
  const float data[4] = {1, 2, 3, 4};
  const int64_t ids[] = {first, first + 1};
  const ax_host_array host = ax_host_view(AX_F32, AX_DIMS(4), data);
  ax_sharding *sharding;
  ax_array *array;
  ax_mesh mesh;
  ax_must(ax_mesh_parse(mesh_text, &mesh));
  ax_must(ax_sharding_named(&mesh, "data", &(ax_sharding_options){.devices = {2, ids}}, &sharding));
  ax_must(ax_device_put_as(runtime, sharding, &host, &array));
  ax_sharding_release(sharding);
  return array;
}

static void call(ax_runtime *runtime) {
  static const char *const names[] = {"w", "frozen", "batch"};
  const ax_type types[] = {AX_TYPE(AX_F32, 4), AX_TYPE(AX_F32, 4), AX_TYPE(AX_F32, 4)};
  ax_executable *e;
  ax_mesh mesh;
  ax_must(ax_mesh_parse("data=2", &mesh));
  const ax_compile_options options = {
      .donate = AX_ARGS(0, 2), .mesh = &mesh, .shardings = "data -> data", .names = {AX_LIST(3, names)}};
  ax_must(ax_jit(runtime, AX_FN(step, 3, 2), types, &options, &e));
  for (uint32_t i = 0; i < 3; i++) printf("%s: %s\n", names[i], ax_executable_is_kept(e, i) ? "computed with" : "not computed with");

  ax_array *in[] = {put(runtime, "data=2", 6), put(runtime, "data=2", 6), put(runtime, "data=2", 6)}, *out[2];
  ax_must(ax_run(e, in, out));
  printf("result 1 is argument %d, and the same array: %s\n", (int)ax_executable_passed(e, 1), out[1] == in[1] ? "yes" : "no");
  ax_sharding *where;
  ax_must(ax_array_sharding(out[0], &where));
  printf("result 0 lies on devices %d and %d\n", (int)ax_sharding_device(where, 0), (int)ax_sharding_device(where, 1));

  ax_array *other = put(runtime, "data=2", 0), *none[2];
  if (ax_run(e, AX_ARRAYS(other, in[1], in[2]), none) != AX_OK) printf("%s\n", ax_message());
  const ax_counters counters = ax_runtime_counters(runtime);
  printf("%d run, %d arguments copied\n", (int)counters.runs, (int)counters.arguments_copied);

  for (int i = 0; i < 3; i++) ax_array_release(in[i]);
  for (int k = 0; k < 2; k++) ax_array_release(out[k]);
  ax_array_release(other);
  ax_sharding_release(where);
  ax_executable_release(e);
}

static void start(ax_runtime *runtime) {
  const float one = 1;
  const ax_type scalar = {.dtype = AX_F32};
  ax_executable *e;
  ax_array *x, *next;
  ax_must(ax_jit(runtime, AX_FN(report, 1, 1), &scalar, NULL, &e));
  ax_must(ax_device_put_data(runtime, NULL, "", &scalar, &one, &x));
  for (int i = 0; i < 3; i++) { /* each run waits for the one before, and nobody else does */
    ax_must(ax_run_start(e, &x, &next));
    ax_array_release(x);
    x = next;
  }
  ax_runtime_wait(runtime); /* all has been printed now, and x is ready */
  printf("ready: %s\n", ax_array_is_ready(x) ? "yes" : "no");
  ax_array_release(x);
  ax_executable_release(e);
}

int main(void) {
  ax_runtime *runtime;
  ax_must(ax_runtime_create(&(ax_runtime_options){.print = ax_print_to, .print_context = stdout}, &runtime));
  call(runtime);
  start(runtime);
  ax_runtime_release(runtime);
  return 0;
}
