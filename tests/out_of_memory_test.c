/* Every allocation failed in turn, on the whole way from a C function to numbers: trace, transforms, print, parse, compile, run,
   read back. Each failure is AX_OUT_OF_MEMORY and leaves nothing allocated, and the next attempt, in the same runtime, goes
   further.

   Machine code is compiled beforehand: the runtime keeps it by structure, so that attempts take microseconds. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "axle/axle.h"
#include "support/cmocka.h"
#include "support/oom.h"
#include "support/run.h"

enum { most_inputs = 4, most_elems = 64 };

typedef struct job {
  ax_runtime *runtime; /* NULL: a new one each time */
  ax_function function;
  ax_type in[most_inputs];
  uint32_t in_count, out_count;
  const char *mesh, *in_specs[most_inputs], *out_specs[most_inputs]; /* mesh NULL: whole arrays */
  ax_status (*transform)(const ax_program *program, ax_program **out); /* of the whole */
  const bool *donate;
  double checksum; /* of the results; set by the first run */
} job;

/* --- What runs on each device --- */

static void loss(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value hidden = ax_relu(ax_matmul(in[2], in[0])), y = ax_psum(ax_matmul(hidden, in[1]), "model");
  out[0] = ax_pmean(ax_reduce_mean(ax_mul(y, y), AX_ALL_DIMS, false), "data");
}

/* w1, w2, x -> loss, new w1, new w2 */
static void train(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value result[3];
  ax_value_and_grad(AX_FN(loss, 3, 1), AX_FIRST(2), in, result);
  out[0] = result[0];
  for (int i = 0; i < 2; i++) out[1 + i] = ax_sub(in[i], ax_mul(result[1 + i], ax_full_like(result[1 + i], 0.1)));
}

static void step(const ax_value *in, ax_value *out, void *context) {
  ax_value scale = *(const ax_value *)context;
  out[0] = ax_tanh(ax_add(in[0], ax_mul(ax_psum(in[1], "data"), scale)));
  out[1] = ax_mul(out[0], in[1]);
}

static void sums_in_a_scan(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value scale = in[1], results[2];
  ax_scan(AX_CLOSURE(step, 2, 2, &scale), 1, -1, false, AX_VALUES(ax_psum(ax_reduce_sum(in[0], AX_DIMS(0), false), "data"), in[0]),
          results);
  out[0] = ax_psum(ax_add(results[0], ax_reduce_sum(results[1], AX_DIMS(0), false)), "data");
}

static void halve(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_mul(in[0], ax_full_like(in[0], 0.5));
}

static void is_large(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_gt(ax_reduce_max(in[0], AX_DIMS(0), false), ax_full(AX_F32, AX_DIMS(), 1));
}

static void moves(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  static const int64_t ring[][2] = {{0, 1}, {1, 2}, {2, 3}, {3, 0}};
  ax_value moved = ax_ppermute(in[0], "data", 4, ring), all = ax_all_gather(moved, "data", 0, true), chosen;
  ax_if(ax_eq(ax_axis_index("data"), ax_full(AX_S32, AX_DIMS(), 1)), AX_FN(halve, 1, 1), AX_FN(halve, 1, 1), &moved, &chosen);
  ax_while(AX_FN(is_large, 1, 1), AX_FN(halve, 1, 1), &chosen, &out[0]);
  out[1] = ax_psum_scatter(all, "data", 0, true);
}

static void send_to_next(const ax_value *in, ax_value *out, void *context) {
  (void)ax_psend(in[0], "data", 1, context);
  out[0] = in[0];
}

static void receive_half(const ax_value *in, ax_value *out, void *context) {
  out[0] = ax_mul(in[0], ax_precv(ax_create_token(), ax_typeof(in[0]), "data", 1, context));
}

/* Round a ring, and in a branch of each. */
static void messages(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  static const int64_t ring[][2] = {{0, 1}, {1, 0}}, one[][2] = {{1, 0}};
  ax_value moved = ax_precv(ax_psend(in[0], "data", 2, ring), ax_typeof(in[0]), "data", 2, ring);
  ax_if(ax_eq(ax_axis_index("data"), ax_full(AX_S32, AX_DIMS(), 1)), AX_CLOSURE(send_to_next, 1, 1, one),
        AX_CLOSURE(receive_half, 1, 1, one), &moved, out);
}

static void sums_in_bf16(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_psum(ax_convert_element_type(in[0], AX_BF16), "data");
}

/* x[1,2,8,3], w[2,2,3,1]: a convolution, extremes of windows of what comes of it, and a stencil; of whole arrays. */
static void windowed(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value y =
      ax_reduce_window_max(ax_conv(in[0], in[1], NULL, "SAME"), AX_DIMS(1, 1, 2, 1), &(ax_window_options){.padding = "SAME"});
  out[0] =
      ax_reduce_sum(ax_square(ax_sub(ax_slice_in_dim(y, 1, AX_END, 1, 2), ax_slice_in_dim(y, 0, -1, 1, 2))), AX_ALL_DIMS, false);
}

/* --- The way --- */

static void map(const ax_value *in, ax_value *out, void *context) {
  const job *j = context;
  ax_mesh mesh;
  ax_status status = ax_mesh_parse(j->mesh, &mesh);
  assert_int_equal(status, AX_OK);
  test_shard_map(&mesh, j->in_specs, j->out_specs, false, AX_FN(j->function, j->in_count, j->out_count), in, out);
}

static ax_status transformed(const job *j, ax_program **out) {
  ax_fn function =
      j->mesh != NULL ? AX_CLOSURE(map, j->in_count, j->out_count, (void *)j) : AX_FN(j->function, j->in_count, j->out_count);
  AX_TRY(ax_trace(function, j->in, out));
  if (j->transform == NULL) return AX_OK;
  ax_program *plain = *out;
  ax_status status = j->transform(plain, out);
  ax_program_release(plain);
  return status;
}

/* Printed and parsed again, it is the same. */
static ax_status through_text(const ax_program *program, ax_program **out) {
  char *text;
  AX_TRY(ax_program_print(program, &text));
  ax_status status = ax_program_parse(text, strlen(text), "text", out);
  ax_string_free(text);
  if (status == AX_OK) assert_true(ax_program_equal(program, *out));
  return status;
}

static ax_status read_all(ax_array *const *arrays, uint32_t count, double *sum) {
  double data[most_elems * 8];
  for (uint32_t k = 0; k < count; k++) {
    const ax_type *type = ax_array_typeof(arrays[k]);
    size_t bytes = (size_t)ax_type_elems(type) * ax_dtype_bytes(type->dtype);
    assert_true(bytes <= sizeof data);
    AX_TRY(ax_array_read(arrays[k], (void *)data, bytes));
    for (size_t i = 0; i < bytes; i++) *sum += ((const unsigned char *)data)[i] * (double)(i + 1);
  }
  return AX_OK;
}

static ax_status run(job *j, ax_runtime *runtime, ax_program *program) {
  static float values[most_elems * 8];
  ax_array *arrays[2 * most_inputs] = {0};
  ax_executable *executable = NULL;
  uint32_t in_count = ax_program_in_count(program), out_count = ax_program_out_count(program);
  double sum = 0;
  for (int i = 0; i < most_elems; i++) values[i] = (float)(i % 13) * 0.25f - 1;
  ax_status status = ax_compile(runtime, program,
                                &(ax_compile_options){.donate = test_args(j->donate, ax_program_in_count(program))}, &executable);
  for (uint32_t i = 0; i < in_count && status == AX_OK; i++)
    status = ax_device_put_data(runtime, NULL, "", ax_program_in_type(program, i), values, &arrays[i]);
  if (status == AX_OK) status = ax_run(executable, AX_LIST(in_count, arrays), AX_LIST(out_count, arrays + in_count));
  if (status == AX_OK) status = read_all(arrays + in_count, out_count, &sum);
  if (status == AX_OK && j->checksum == 0) j->checksum = sum;
  if (status == AX_OK) assert_true(sum == j->checksum);
  for (uint32_t i = 0; i < in_count + out_count; i++) ax_array_release(arrays[i]);
  ax_executable_release(executable);
  return status;
}

static ax_status whole_way(void *context) {
  job *j = context;
  ax_program *program = NULL, *parsed = NULL;
  ax_runtime *runtime = j->runtime;
  ax_status status = transformed(j, &program);
  if (status == AX_OK) status = through_text(program, &parsed);
  if (status == AX_OK && runtime == NULL) status = ax_runtime_create(&(ax_runtime_options){.workers = 1}, &runtime);
  if (status == AX_OK) status = run(j, runtime, parsed);
  ax_program_release(program);
  ax_program_release(parsed);
  if (j->runtime != NULL)
    ax_runtime_trim(runtime);
  else
    ax_runtime_release(runtime);
  return status;
}

static void fail_each(job j) {
  TEST_OK(ax_runtime_create(&(ax_runtime_options){.workers = 1}, &j.runtime));
  TEST_OK(whole_way(&j)); /* compiles the machine code */
  assert_true(test_each_allocation(whole_way, &j) > 40);
  ax_runtime_release(j.runtime);
}

static ax_status grad_of(const ax_program *program, ax_program **out) { return ax_program_grad(program, AX_FIRST(1), out); }

static ax_status vmap_of_grad_of(const ax_program *program, ax_program **out) {
  ax_program *grad;
  *out = NULL;
  AX_TRY(ax_program_value_and_grad(program, AX_FIRST(1), &grad));
  ax_status status = ax_program_vmap(grad, &(ax_vmap_options){.in_axes = {AX_DIMS(0, AX_NOT_MAPPED)}, .size = 3}, out);
  ax_program_release(grad);
  return status;
}

static ax_status cse_of_jvp_of(const ax_program *program, ax_program **out) {
  ax_program *jvp;
  *out = NULL;
  AX_TRY(ax_program_jvp(program, AX_ALL_ARGS, &jvp));
  ax_status status = ax_program_cse(jvp, out);
  ax_program_release(jvp);
  return status;
}

static ax_status rows_cut_of_grad_of(const ax_program *program, ax_program **out) {
  ax_program *grad;
  ax_mesh mesh;
  *out = NULL;
  AX_TRY(ax_mesh_parse("row=4", &mesh));
  AX_TRY(ax_program_grad(program, AX_FIRST(2), &grad));
  ax_status status = ax_program_with_shardings(grad, &mesh, "_,_,row; ? -> _,_,row; _", out);
  ax_program_release(grad);
  return status;
}

/* --- The tests --- */

static void training(void **state) {
  (void)state;
  job j = {.function = train,
           .in = {TEST_TYPE(AX_F32, 3, 4), TEST_TYPE(AX_F32, 4, 2), TEST_TYPE(AX_F32, 4, 3)},
           .in_count = 3,
           .out_count = 3,
           .mesh = "data=2,model=2",
           .in_specs = {"_,model", "model", "data"},
           .out_specs = {"", "_,model", "model"}};
  fail_each(j);
  j.donate = (const bool[]){true, true, false};
  fail_each(j);
}

static void scan(void **state) {
  (void)state;
  job j = {.function = sums_in_a_scan, .in = {TEST_TYPE(AX_F32, 6), TEST_SCALAR(AX_F32)}, .in_count = 2, .out_count = 1,
           .mesh = "data=2", .in_specs = {"data", ""}, .out_specs = {""}};
  fail_each(j);
  j.transform = grad_of;
  fail_each(j);
  j.transform = vmap_of_grad_of;
  fail_each(j);
}

static void exchanges(void **state) {
  (void)state;
  job j = {.function = moves, .in = {TEST_TYPE(AX_F32, 8)}, .in_count = 1, .out_count = 2, .mesh = "data=4", .in_specs = {"data"},
           .out_specs = {"data", "data"}};
  fail_each(j);
  j.transform = cse_of_jvp_of;
  fail_each(j);
}

static void windows(void **state) {
  (void)state;
  fail_each((job){.function = windowed,
                  .in = {TEST_TYPE(AX_F32, 1, 2, 8, 3), TEST_TYPE(AX_F32, 2, 2, 3, 1)},
                  .in_count = 2,
                  .out_count = 1,
                  .transform = rows_cut_of_grad_of});
}

static void bf16(void **state) {
  (void)state;
  fail_each((job){.function = sums_in_bf16, .in = {TEST_TYPE(AX_F32, 8)}, .in_count = 1, .out_count = 1, .mesh = "data=4",
                  .in_specs = {"data"}, .out_specs = {""}});
}

static void messages_too(void **state) {
  (void)state;
  fail_each((job){.function = messages, .in = {TEST_TYPE(AX_F32, 8)}, .in_count = 1, .out_count = 1, .mesh = "data=2",
                  .in_specs = {"data"}, .out_specs = {"data"}});
}

/* The runtime and its machine code too. */
static void fresh_runtimes(void **state) {
  (void)state;
  job j = {.function = halve, .in = {TEST_TYPE(AX_F32, 4)}, .in_count = 1, .out_count = 1, .mesh = "data=2", .in_specs = {"data"},
           .out_specs = {"data"}};
  assert_true(test_each_allocation(whole_way, &j) > 40);
}

/* --- Address space: of libraries too --- */

/* Layers of products and more kernels than one. */
static void layers(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value x = in[0];
  for (int i = 0; i < 6; i++)
    x = ax_reduce_max(ax_expand_dims(ax_tanh(ax_matmul(x, ax_transpose(x, AX_DIMS(1, 0)))), 0), AX_DIMS(0), false);
  out[0] = ax_softmax(x, 0);
}

static size_t address_space(void) {
  unsigned long pages = 0;
  FILE *file = fopen("/proc/self/statm", "r");
  if (file == NULL || fscanf(file, "%lu", &pages) != 1) pages = 0;
  if (file != NULL) fclose(file);
  return pages * (size_t)sysconf(_SC_PAGESIZE);
}

/* In a child with so many bytes more than it has: 0 when all went well, 1 for AX_OUT_OF_MEMORY, 2 for another failure. */
static int run_within(size_t bytes, ax_program *program) {
  pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    size_t limit = address_space() + bytes;
    const ax_type *type = ax_program_in_type(program, 0);
    static float data[200 * 200];
    ax_runtime *runtime = NULL;
    ax_executable *executable = NULL;
    ax_array *x = NULL, *y = NULL;
    if (setrlimit(RLIMIT_AS, &(struct rlimit){limit, limit}) != 0) _exit(2);
    ax_status status = ax_runtime_create(&(ax_runtime_options){.workers = 1}, &runtime);
    if (status == AX_OK) status = ax_compile(runtime, program, NULL, &executable);
    if (status == AX_OK) status = ax_device_put_data(runtime, NULL, "", type, data, &x);
    if (status == AX_OK) status = ax_run(executable, &x, &y);
    _exit(status == AX_OK ? 0 : status == AX_OUT_OF_MEMORY ? 1 : 2);
  }
  int ended;
  assert_int_equal(waitpid(child, &ended, 0), child);
  if (!WIFEXITED(ended)) fail_msg("%zu bytes more: signal %d", bytes, WTERMSIG(ended));
  return WEXITSTATUS(ended);
}

static void little_address_space(void **state) {
  (void)state;
#ifdef __SANITIZE_ADDRESS__
  skip(); /* it takes all there is */
#endif
  job j = {.function = halve, .in = {TEST_TYPE(AX_F32, 4)}, .in_count = 1, .out_count = 1, .mesh = "data=2", .in_specs = {"data"},
           .out_specs = {"data"}};
  const ax_type type = TEST_TYPE(AX_F32, 200, 200);
  ax_program *program = test_trace(layers, NULL, &type, 1, 1);
  TEST_OK(whole_way(&j)); /* loads LLVM */
  int found = 1;
  for (size_t megabytes = 0; megabytes < 256 && found != 0; megabytes += 4) {
    found = run_within(megabytes << 20, program);
    assert_true(found != 2);
  }
  assert_int_equal(found, 0);
  ax_program_release(program);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(training), cmocka_unit_test(scan),           cmocka_unit_test(exchanges),
      cmocka_unit_test(bf16), cmocka_unit_test(windows),     cmocka_unit_test(messages_too),   cmocka_unit_test(fresh_runtimes),
      cmocka_unit_test(little_address_space),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
