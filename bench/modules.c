/* b21, b22: modules of StableHLO: how long reading takes, and what running them takes beside XLA. jax_modules.py writes them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "axle/exec.h"
#include "axle/stablehlo.h"
#include "cases.h"
#include "job.h"
#include "serve.h"

static char *read_file(const char *path, size_t *bytes) {
  FILE *file = fopen(path, "rb");
  char *text = NULL;
  if (file != NULL && fseek(file, 0, SEEK_END) == 0) {
    *bytes = (size_t)ftell(file);
    rewind(file);
    text = malloc(*bytes + 1);
  }
  if (text == NULL || fread(text, 1, *bytes, file) != *bytes) {
    fprintf(stderr, "%s cannot be read\n", path);
    exit(1);
  }
  text[*bytes] = '\0';
  fclose(file);
  return text;
}

typedef struct module_text {
  const char *text, *name;
  size_t bytes;
} module_text;

static void read_module(void *context, int64_t count) {
  const module_text *m = context;
  for (int64_t i = 0; i < count; i++) {
    ax_program *program;
    check(ax_program_from_stablehlo(m->text, m->bytes, m->name, &program));
    ax_program_release(program);
  }
}

void module_read(char **arguments) {
  module_text m = {.name = arguments[0]};
  m.text = read_file(arguments[0], &m.bytes);
  bench_serve(read_module, &m, 1);
}

/* A runtime of its own each time, so that no code is there already. */
static void compile_module(void *context, int64_t count) {
  const module_text *m = context;
  const ax_runtime_options options = {.code_cache = "off"};
  for (int64_t i = 0; i < count; i++) {
    ax_runtime *runtime;
    ax_program *program;
    ax_executable *executable;
    check(ax_runtime_create(&options, &runtime));
    check(ax_program_from_stablehlo(m->text, m->bytes, m->name, &program));
    check(ax_compile(runtime, program, NULL, &executable));
    ax_program_release(program);
    ax_executable_release(executable);
    ax_runtime_release(runtime);
  }
}

void module_compile(char **arguments) {
  module_text m = {.name = arguments[0]};
  m.text = read_file(arguments[0], &m.bytes);
  bench_serve(compile_module, &m, 1);
}

/* Integers from 0 to 7, floats from -0.5 to 0.5. */
static void fill(void *data, const ax_type *type, uint64_t *state) {
  for (int64_t i = 0; i < ax_type_elems(type); i++) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    const float number = (float)(*state >> 40) / (1 << 24) - 0.5f;
    uint32_t bits;
    memcpy(&bits, &number, sizeof bits);
    if (type->dtype == AX_F32) ((float *)data)[i] = number;
    else if (type->dtype == AX_BF16) ((uint16_t *)data)[i] = (uint16_t)(bits >> 16);
    else if (ax_dtype_bytes(type->dtype) == 4) ((int32_t *)data)[i] = (int32_t)(*state >> 61);
    else if (ax_dtype_bytes(type->dtype) == 1) ((int8_t *)data)[i] = (int8_t)(*state >> 61);
    else {
      fprintf(stderr, "an input of a dtype that is not filled yet\n");
      exit(1);
    }
  }
}

/* The module compiled, and arrays for its inputs. */
static job module_job(char **arguments) {
  size_t bytes;
  char *text = read_file(arguments[0], &bytes);
  uint64_t state = 1;
  ax_program *program;
  job j = {0};
  check(ax_program_from_stablehlo(text, bytes, arguments[0], &program));
  check(ax_runtime_create(NULL, &j.runtime));
  check(ax_compile(j.runtime, program, NULL, &j.executable));
  j.in_count = ax_program_in_count(program), j.out_count = ax_program_out_count(program);
  j.arrays = calloc(j.in_count + j.out_count, sizeof j.arrays[0]);
  for (uint32_t i = 0; i < j.in_count; i++) {
    const ax_type *type = ax_program_in_type(program, i);
    const ax_mesh one = {0};
    void *data = calloc((size_t)ax_type_elems(type), 4);
    if (j.arrays == NULL || data == NULL) exit(1);
    fill(data, type, &state);
    check(ax_device_put_data(j.runtime, &one, "", type, data, &j.arrays[i]));
    free(data);
  }
  ax_program_release(program);
  return j;
}

void module_run(char **arguments) {
  job j = module_job(arguments);
  bench_serve(job_run, &j, 1);
}

/* The most bytes that the runtime held, until after the first run: inputs, results, constants, temporaries and what its pool keeps. */
void module_memory(char **arguments) {
  size_t now, peak;
  job j = module_job(arguments);
  bench_wait();
  job_run(&j, 1);
  ax_runtime_memory(j.runtime, &now, &peak);
  bench_answer((double)peak);
}
