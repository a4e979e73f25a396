/* Two layers of a model that is cut over four devices, with the products and the exchanges between devices in one: each device has
   some rows of x, and some columns of w1 and rows of w2. Rows of x go round the ring of devices while they are multiplied, and sums
   go round it to whoever has the rows. Compared, with the gradients, with the same as one does it otherwise, where everybody waits
   for all rows; and what its kernels do is proved to be right whoever comes first. */
#include <axle/axle.h>
#include <math.h>
#include <stdio.h>

enum { rows = 16, width = 12, hidden = 32 };

/* in: x[rows / 4, width], w1[width, hidden / 4], w2[hidden / 4, width] -> [rows / 4, width] */
static AX_BODY(overlapped) {
  ax_value h = ax_gelu(ax_collective_matmul(in[0], in[1], "d", NULL));
  out[0] = ax_matmul_reduce_scatter(h, in[2], "d", NULL);
}

static AX_BODY(one_by_one) {
  ax_value h = ax_gelu(ax_matmul(ax_all_gather(in[0], "d", 0, true), in[1]));
  out[0] = ax_psum_scatter(ax_matmul(h, in[2]), "d", 0, true);
}

static AX_BODY(loss) {
  const ax_fn *layers = context;
  ax_value y;
  layers->function(in, &y, NULL);
  out[0] = ax_psum(ax_reduce_sum(ax_square(y), AX_DIMS(0, 1), false), "d");
}

static AX_BODY(loss_and_gradients) { ax_value_and_grad(AX_CLOSURE(loss, 3, 1, context), AX_ALL_ARGS, in, out); }

static AX_BODY(on_mesh) {
  ax_mesh mesh;
  ax_must(ax_mesh_parse("d=4", &mesh));
  ax_shard_map(&mesh, "d; _,d; d -> ; d; _,d; d", AX_CLOSURE(loss_and_gradients, 3, 4, context), in, out);
}

static ax_program *traced(ax_function layers) {
  const ax_fn fn = AX_FN(layers, 3, 1);
  ax_program *program;
  ax_must(ax_trace(AX_CLOSURE(on_mesh, 3, 4, &fn),
                   AX_TYPES(AX_TYPE(AX_F32, rows, width), AX_TYPE(AX_F32, width, hidden), AX_TYPE(AX_F32, hidden, width)),
                   &program));
  return program;
}

static void run(ax_runtime *runtime, ax_program *program, const ax_host_array *in, ax_host_array *out) {
  ax_executable *executable;
  ax_must(ax_compile(runtime, program, NULL, &executable));
  ax_must(ax_run_host(executable, in, out));
  ax_executable_release(executable);
}

static void prove(const ax_program *program) {
  ax_check_report *report;
  ax_must(ax_check(program, NULL, &report));
  for (uint32_t k = 0; k < report->kernel_count; k++) {
    const ax_check_kernel *kernel = &report->kernels[k];
    printf("%-22s %4u agents %5llu acts: %s\n", kernel->name, kernel->agents, (unsigned long long)kernel->acts,
           kernel->verdict == AX_PROVED ? "proved" : "not proved");
  }
  ax_check_report_release(report);
}

/* Relative to the largest element. */
static double difference(const ax_host_array *a, const ax_host_array *b) {
  const float *x = a->data, *y = b->data;
  double most = 0, largest = 0;
  int64_t count = 1;
  for (uint32_t d = 0; d < a->rank; d++) count *= a->dims[d];
  for (int64_t i = 0; i < count; i++)
    most = fmax(most, fabs((double)x[i] - (double)y[i])), largest = fmax(largest, fabs((double)y[i]));
  return most / largest;
}

int main(void) {
  static const char *const names[] = {"loss", "gradient of x", "gradient of w1", "gradient of w2"};
  static float x[rows * width], w1[width * hidden], w2[hidden * width];
  for (int i = 0; i < rows * width; i++) x[i] = (float)sin(i);
  for (int i = 0; i < width * hidden; i++) w1[i] = (float)sin(2 * i) / 3, w2[i] = (float)cos(i) / 5;
  const ax_host_array in[] = {ax_host_view(AX_F32, AX_DIMS(rows, width), x), ax_host_view(AX_F32, AX_DIMS(width, hidden), w1),
                              ax_host_view(AX_F32, AX_DIMS(hidden, width), w2)};
  ax_host_array ours[4] = {{0}}, plain[4] = {{0}};
  ax_program *program = traced(overlapped), *reference = traced(one_by_one);
  ax_runtime *runtime;
  bool same = true;
  ax_must(ax_runtime_create(NULL, &runtime));
  run(runtime, program, in, ours);
  run(runtime, reference, in, plain);
  printf("loss %.4f\n", ax_host_at(&ours[0], 0));
  for (int k = 0; k < 4; k++) {
    bool close = difference(&ours[k], &plain[k]) < 1e-5;
    printf("%-15s %s\n", names[k], close ? "as with all_gather and psum_scatter" : "DIFFERS");
    same = same && close;
  }
  prove(program);
  for (int k = 0; k < 4; k++) ax_host_array_release(&ours[k]), ax_host_array_release(&plain[k]);
  ax_program_release(program);
  ax_program_release(reference);
  ax_runtime_release(runtime);
  return same ? 0 : 1;
}
