/* Training steps: their time, the time to compile them, their memory, and their gradients for comparison. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "axle/npy.h"
#include "axle/processes.h"
#include "axle/transform.h"
#include "cases.h"
#include "job.h"
#include "mlp.h"
#include "serve.h"
#include "transformer.h"

static model *global_of(model *m) {
  m->global = true;
  return m;
}

model *find_model(const char *name) {
  static const mlp_sizes small = {256, 64, 512, 10}, middle = {1024, 784, 2048, 10};
  static const transformer_sizes sizes = {4, 256, 8, 1024, 128, 32, 256}, deep = {32, 256, 8, 1024, 128, 32, 256};
  if (strcmp(name, "mlp_small") == 0) return mlp_model(&small);
  if (strcmp(name, "mlp_middle") == 0) return mlp_model(&middle);
  if (strcmp(name, "transformer") == 0) return transformer_model(&sizes);
  if (strcmp(name, "transformer_global") == 0) return global_of(transformer_model(&sizes));
  if (strcmp(name, "transformer_global_32") == 0) return global_of(transformer_model(&deep));
  fprintf(stderr, "no model is called %s\n", name);
  exit(1);
}

static ax_runtime *new_runtime(void) {
  ax_runtime *runtime;
  check(ax_runtime_create(NULL, &runtime));
  return runtime;
}

void train(char **arguments) {
  job j = job_train(find_model(arguments[0]), new_runtime());
  bench_serve(job_run, &j, 1);
}

static uint64_t digest_of(const job *j) { /* of the weights, whole; the same in every process */
  uint64_t digest = 14695981039346656037u;
  for (uint32_t i = 0; i < j->carried; i++) {
    ax_host_array host;
    check(ax_array_gather(j->arrays[i], AX_EVERY_PROCESS, &host));
    const ax_type type = ax_array_type(host.dtype, AX_LIST(host.rank, host.dims));
    const size_t bytes = (size_t)ax_type_elems(&type) * ax_dtype_bytes(host.dtype);
    for (size_t b = 0; b < bytes; b++) digest = (digest ^ ((const unsigned char *)host.data)[b]) * 1099511628211u;
    ax_host_array_release(&host);
  }
  return digest;
}

/* In one process or in each of several, which make the same calls: so many rounds of so many steps. Process 0 prints the line
   "CASE TAB SIDE TAB SECONDS TAB DIGEST" for bench/processes.py: the least of the rounds, and what the weights have become. */
void train_rounds(char **arguments) {
  ax_runtime *runtime = new_runtime();
  job j = job_train(find_model(arguments[0]), runtime);
  const int64_t steps = atoll(arguments[1]), rounds = atoll(arguments[2]);
  double least = 1e9;
  job_run(&j, 2);
  for (int64_t round = 0; round < rounds; round++) {
    const double start = bench_seconds();
    job_run(&j, steps);
    const double took = (bench_seconds() - start) / (double)steps;
    if (took < least) least = took;
  }
  const uint64_t digest = digest_of(&j);
  if (ax_process_index(runtime) == 0)
    printf("%s\t%s\t%.9g\t%llu\n", arguments[0], ax_process_count(runtime) > 1 ? "Axle" : "one process", least,
           (unsigned long long)digest);
  job_release(&j);
  ax_runtime_release(runtime);
}

/* Once: the second time would not be the first. */
void compile(char **arguments) {
  model *m = find_model(arguments[0]);
  ax_runtime *runtime = new_runtime();
  bench_wait();
  double start = bench_seconds();
  ax_executable *executable = job_compile_step(m, runtime, true);
  bench_answer(bench_seconds() - start);
  ax_executable_release(executable);
  ax_runtime_release(runtime);
  model_release(m);
}

/* The same where an earlier process, here a child, has left its code. Nothing of LLVM's is loaded yet in this one. */
void compile_again(char **arguments) {
  char folder[] = "/tmp/axle_bench_XXXXXX", command[64];
  const ax_runtime_options options = {.code_cache = folder};
  model *m = find_model(arguments[0]);
  ax_runtime *runtime;
  if (mkdtemp(folder) == NULL) exit(1);
  const pid_t child = fork();
  if (child > 0) waitpid(child, NULL, 0);
  check(ax_runtime_create(&options, &runtime));
  if (child == 0) {
    job_compile_step(m, runtime, true);
    _exit(0);
  }
  bench_wait();
  double start = bench_seconds();
  ax_executable *executable = job_compile_step(m, runtime, true);
  const double seconds = bench_seconds() - start;
  snprintf(command, sizeof command, "rm -r %s", folder);
  if (system(command) == 0) bench_answer(seconds);
  ax_executable_release(executable);
  ax_runtime_release(runtime);
  model_release(m);
}

/* Bytes: the process at its largest, then the runtime. */
void peak_memory(char **arguments) {
  char mesh[32];
  int64_t devices = atoll(arguments[0]);
  snprintf(mesh, sizeof mesh, "data=%lld", (long long)devices);
  model *m = linear_model(mesh, devices, 8, 4096, 4096);
  bench_wait();
  job j = job_train(m, new_runtime());
  job_run(&j, 3);
  struct rusage usage;
  size_t now, peak;
  getrusage(RUSAGE_SELF, &usage);
  ax_runtime_memory(j.runtime, &now, &peak);
  printf("%.0f %zu\n", 1024.0 * (double)usage.ru_maxrss, peak);
  ax_runtime_release(j.runtime);
  job_release(&j);
  model_release(m);
}

/* Bytes that a run of a transformer of so many layers holds besides its arguments: of a training step, or of the loss alone. */
void temporaries(char **arguments) {
  const transformer_sizes sizes = {atoll(arguments[1]), 256, 8, 1024, 128, 32, 256};
  model *m = transformer_model(&sizes);
  ax_runtime *runtime = new_runtime();
  size_t before, after, peak;
  bench_wait();
  const char *replicated = "";
  job j = strcmp(arguments[0], "step") == 0
              ? job_train(m, runtime)
              : job_create_on(&(job_function){m->loss, m, m->mesh, m->input_count, 1, m->types, m->specs, &replicated}, runtime);
  ax_runtime_memory(runtime, &before, &peak);
  job_run(&j, 1);
  ax_runtime_memory(runtime, &after, &peak);
  printf("%zu\n", peak - before);
  job_release(&j);
  model_release(m);
}

static void loss_and_gradients(const ax_value *in, ax_value *out, void *context) {
  const model *m = context;
  ax_value_and_grad(AX_CLOSURE(m->loss, m->input_count, 1, context), AX_FIRST(m->weight_count), in, out);
}

static ax_host_array run_to_host(ax_array *array) {
  const ax_type *type = ax_array_typeof(array);
  ax_host_array host = {.dtype = type->dtype, .rank = type->rank};
  size_t bytes = (size_t)ax_type_elems(type) * ax_dtype_bytes(type->dtype);
  memcpy(host.dims, type->dims, sizeof host.dims);
  host.data = malloc(bytes + 1);
  check(ax_array_read(array, host.data, bytes));
  return host;
}

static ax_executable *compile_gradients(const model *m, ax_runtime *runtime) {
  const char **out_specs = calloc(1 + m->weight_count, sizeof out_specs[0]);
  out_specs[0] = "";
  memcpy(out_specs + 1, m->specs, m->weight_count * sizeof out_specs[0]);
  const job_function f = {loss_and_gradients,  (void *)m, m->mesh,  m->input_count,
                          1 + m->weight_count, m->types,  m->specs, out_specs};
  ax_program *program = m->global ? job_trace_global(&f) : job_trace(&f);
  ax_executable *executable;
  check(ax_compile(runtime, program, NULL, &executable));
  ax_program_release(program);
  free(out_specs);
  return executable;
}

/* Reads the inputs from one .npz file by their names, writes "loss" and the gradients, by the weights' names, to another. */
void gradients(char **arguments) {
  model *m = find_model(arguments[0]);
  ax_runtime *runtime = new_runtime();
  ax_npz *npz;
  ax_mesh mesh;
  const uint32_t count = 1 + m->weight_count;
  ax_array **arrays = calloc(m->input_count + count, sizeof arrays[0]), **out = arrays + m->input_count;
  ax_host_array *results = calloc(count, sizeof results[0]);
  const char **names = calloc(count, sizeof names[0]);
  names[0] = "loss";
  check(ax_npz_read(arguments[1], &npz));
  check(ax_mesh_parse(m->mesh, &mesh));
  for (uint32_t i = 0; i < m->input_count; i++) {
    const ax_host_array *host = ax_npz_find(npz, m->names[i]);
    if (host == NULL) fprintf(stderr, "%s has no %s\n", arguments[1], m->names[i]), exit(1);
    ax_type type = ax_array_type(host->dtype, AX_LIST(host->rank, host->dims));
    check(ax_device_put_data(runtime, &mesh, m->specs[i], &type, host->data, &arrays[i]));
  }
  ax_executable *executable = compile_gradients(m, runtime);
  check(ax_run(executable, AX_LIST(m->input_count, arrays), AX_LIST(count, out)));
  for (uint32_t k = 0; k < count; k++) {
    results[k] = run_to_host(out[k]);
    if (k > 0) names[k] = m->names[k - 1];
  }
  check(ax_npz_write(arguments[2], AX_LIST(count, names), results));
}
