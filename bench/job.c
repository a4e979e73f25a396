/* Inputs are the same on every mesh and every run: random numbers from a seed. */
#include "job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "axle/collectives.h"
#include "axle/ops.h"
#include "axle/transform.h"

void check(ax_status status) {
  if (status == AX_OK) return;
  fprintf(stderr, "%s: %s\n", ax_status_name(status), ax_message());
  exit(1);
}

static void *room(size_t bytes) {
  void *memory = calloc(1, bytes);
  if (memory == NULL) {
    fprintf(stderr, "out of memory: %zu bytes\n", bytes);
    exit(1);
  }
  return memory;
}

/* --- Programs --- */

/* "d; d -> d": free(). */
static char *specs_text(const job_function *f) {
  size_t length = 8, used = 0;
  for (uint32_t i = 0; i < f->in_count; i++) length += strlen(f->in_specs[i]) + 2;
  for (uint32_t i = 0; i < f->out_count; i++) length += strlen(f->out_specs[i]) + 2;
  char *text = room(length);
  for (uint32_t i = 0; i < f->in_count; i++) used += (size_t)sprintf(text + used, "%s%s", i > 0 ? "; " : "", f->in_specs[i]);
  used += (size_t)sprintf(text + used, " -> ");
  for (uint32_t i = 0; i < f->out_count; i++) used += (size_t)sprintf(text + used, "%s%s", i > 0 ? "; " : "", f->out_specs[i]);
  return text;
}

static void on_mesh(const ax_value *in, ax_value *out, void *context) {
  const job_function *f = context;
  ax_mesh mesh;
  check(ax_mesh_parse(f->mesh, &mesh));
  char *specs = specs_text(f);
  ax_shard_map(&mesh, specs, AX_CLOSURE(f->body, f->in_count, f->out_count, f->context), in, out);
  free(specs);
}

ax_program *job_trace(const job_function *f) {
  ax_program *program;
  bool alone = f->mesh == NULL;
  check(ax_trace(AX_CLOSURE(alone ? f->body : on_mesh, f->in_count, f->out_count, alone ? f->context : (void *)f), f->types,
                 &program));
  return program;
}

ax_program *job_trace_global(const job_function *f) {
  ax_program *program, *laid;
  ax_mesh mesh;
  char *specs = specs_text(f);
  check(ax_mesh_parse(f->mesh, &mesh));
  check(ax_trace(AX_CLOSURE(f->body, f->in_count, f->out_count, f->context), f->types, &program));
  check(ax_program_with_shardings(program, &mesh, specs, &laid));
  ax_program_release(program);
  free(specs);
  return laid;
}

static void step(const ax_value *in, ax_value *out, void *context) {
  const model *m = context;
  ax_value_and_grad(AX_CLOSURE(m->loss, m->input_count, 1, context), AX_FIRST(m->weight_count), in, out);
  for (uint32_t i = 0; i < m->weight_count; i++) {
    ax_value slope = out[1 + i];
    out[1 + i] = ax_sub(in[i], ax_mul(ax_full_like(slope, 0.1), slope));
  }
}

ax_executable *job_compile_step(const model *m, ax_runtime *runtime, bool donate) {
  const char **out_specs = room((1 + m->weight_count) * sizeof out_specs[0]);
  out_specs[0] = "";
  for (uint32_t i = 0; i < m->weight_count; i++) out_specs[1 + i] = m->specs[i];
  const job_function f = {step, (void *)m, m->mesh, m->input_count, 1 + m->weight_count, m->types, m->specs, out_specs};
  ax_program *program = m->global ? job_trace_global(&f) : job_trace(&f);
  ax_executable *executable;
  check(ax_compile(runtime, program, &(ax_compile_options){.donate = AX_FIRST(donate ? m->weight_count : 0)}, &executable));
  ax_program_release(program);
  free(out_specs);
  return executable;
}

/* --- Inputs --- */

static uint64_t random_bits(uint64_t *state) {
  *state = *state * 6364136223846793005u + 1442695040888963407u;
  return *state >> 33;
}

/* Weights are small, tokens are bytes, the rest is between -1 and 1. */
static void fill(void *data, const ax_type *type, bool small, uint64_t *state) {
  int64_t elems = ax_type_elems(type);
  float scale = small ? 0.05f : 1;
  for (int64_t i = 0; i < elems; i++) {
    uint64_t bits = random_bits(state);
    if (type->dtype == AX_S32)
      ((int32_t *)data)[i] = (int32_t)(bits & 255);
    else
      ((float *)data)[i] = scale * ((float)(bits & 0xffff) / 32768 - 1);
  }
}

static ax_array *put(ax_runtime *runtime, const char *mesh_text, const char *spec, const ax_type *type,
                     const void *data) {
  ax_mesh mesh;
  ax_array *array;
  check(ax_mesh_parse(mesh_text != NULL ? mesh_text : "", &mesh));
  check(ax_device_put_data(runtime, &mesh, spec, type, data, &array));
  return array;
}

static size_t bytes_of(const ax_type *type) { return (size_t)ax_type_elems(type) * ax_dtype_bytes(type->dtype); }

job job_arrays(const job_function *f, ax_runtime *runtime, ax_executable *executable) {
  job j = {.runtime = ax_runtime_retain(runtime), .executable = executable, .in_count = f->in_count, .out_count = f->out_count};
  j.arrays = room((f->in_count + f->out_count) * sizeof j.arrays[0]);
  for (uint32_t i = 0; i < f->in_count; i++) {
    float *ones = room(bytes_of(&f->types[i]));
    for (int64_t k = 0; k < ax_type_elems(&f->types[i]); k++) ones[k] = 1;
    j.arrays[i] = put(j.runtime, f->mesh, f->mesh != NULL ? f->in_specs[i] : "", &f->types[i], ones);
    free(ones);
  }
  return j;
}

job job_create_on(const job_function *f, ax_runtime *runtime) {
  job j = job_arrays(f, runtime, NULL);
  ax_program *program = job_trace(f);
  check(ax_compile(j.runtime, program, NULL, &j.executable));
  ax_program_release(program);
  return j;
}

job job_create(const job_function *f, uint32_t workers) {
  ax_runtime *runtime;
  check(ax_runtime_create(&(ax_runtime_options){.workers = workers}, &runtime));
  job j = job_create_on(f, runtime);
  ax_runtime_release(runtime);
  return j;
}

job job_train(const model *m, ax_runtime *runtime) {
  job j = {ax_runtime_retain(runtime),
           job_compile_step(m, runtime, true),
           NULL,
           m->input_count,
           1 + m->weight_count,
           m->weight_count};
  uint64_t state = 1;
  j.arrays = room((j.in_count + j.out_count) * sizeof j.arrays[0]);
  for (uint32_t i = 0; i < m->input_count; i++) {
    void *data = room(bytes_of(&m->types[i]));
    fill(data, &m->types[i], i < m->weight_count, &state);
    j.arrays[i] = put(runtime, m->mesh, m->specs[i], &m->types[i], data);
    free(data);
  }
  return j;
}

void job_release(job *j) {
  for (uint32_t i = 0; i < j->in_count; i++) ax_array_release(j->arrays[i]);
  ax_executable_release(j->executable);
  ax_runtime_release(j->runtime);
  free(j->arrays);
}

/* One run; its results take the places they are to have. */
static void run_once(job *j, ax_status (*run)(ax_executable *, uint32_t, ax_array *const *, uint32_t, ax_array **)) {
  ax_array **in = j->arrays, **out = in + j->in_count;
  uint32_t dropped = j->out_count - j->carried;
  check(run(j->executable, j->in_count, in, j->out_count, out));
  for (uint32_t k = 0; k < dropped; k++) ax_array_release(out[k]);
  for (uint32_t k = 0; k < j->carried; k++) {
    ax_array_release(in[k]);
    in[k] = out[dropped + k];
  }
}

void job_run(void *context, int64_t count) {
  for (int64_t n = 0; n < count; n++) run_once(context, ax_run);
}

void job_run_ahead(void *context, int64_t count) {
  job *j = context;
  for (int64_t n = 0; n < count; n++) {
    for (int k = 0; k < job_steps_ahead; k++) run_once(j, ax_run_start);
    for (uint32_t i = 0; i < j->carried; i++) check(ax_array_wait(j->arrays[i]));
  }
}
