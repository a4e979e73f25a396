#include "support/processes.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "array/executable.h"
#include "mesh/sharding.h"
#include "processes/within.h"
#include "support/cmocka.h"
#include "support/run.h"

typedef struct whole { /* a result, put together */
  ax_tensor *tensor;
  bool *known; /* by element */
} whole;

typedef struct together {
  ax_program *program;
  const test_spread *spread;
  ax_tensor *const *in;
  whole *out;
  pthread_mutex_t lock; /* guards `out` */
  bool differ;          /* a block of two processes */
} together;

typedef struct process {
  together *all;
  ax_transport *transport;
  pthread_t thread;
  ax_status status;
  char message[8192];
} process;

/* --- Results --- */

static void note_element(together *all, whole *w, int64_t at, const char *value, size_t item) {
  char *mine = (char *)w->tensor->data + (size_t)at * item;
  if (w->known[at] && memcmp(mine, value, item) != 0) all->differ = true;
  w->known[at] = true;
  memcpy(mine, value, item);
}

static void note_block(together *all, whole *w, const ax_type *type, const ax_type *block, const int64_t *offset, const char *data) {
  const size_t item = ax_dtype_bytes(type->dtype);
  for (int64_t i = 0; i < ax_type_elems(block); i++) {
    int64_t rest = i, at = 0, scale = 1;
    for (uint32_t d = type->rank; d-- > 0;) {
      at += (offset[d] + rest % block->dims[d]) * scale;
      rest /= block->dims[d];
      scale *= type->dims[d];
    }
    note_element(all, w, at, data + (size_t)i * item, item);
  }
}

static void note_result(together *all, uint32_t k, const ax_array *array) {
  const ax_layout *layout = array->layout;
  pthread_mutex_lock(&all->lock);
  for (uint32_t b = 0; b < layout->blocks; b++) {
    int64_t offset[AX_MAX_RANK];
    if (!ax_layout_has(layout, b)) continue;
    ax_layout_offset(layout, b, offset);
    note_block(all, &all->out[k], &layout->type, &layout->block, offset, (const char *)array->parts->part[b]);
  }
  pthread_mutex_unlock(&all->lock);
}

/* --- One process --- */

static ax_status compile_and_run(together *all, ax_runtime *runtime, ax_executable **executable, ax_array **arrays) {
  const uint32_t in_count = ax_program_in_count(all->program), out_count = ax_program_out_count(all->program);
  bool *donated = calloc(in_count + 1, sizeof donated[0]);
  assert_non_null(donated);
  for (uint32_t i = 0; i < in_count; i++) donated[i] = all->spread->donate;
  ax_status status =
      ax_compile(runtime, all->program, &(ax_compile_options){.donate = test_args(donated, in_count)}, executable);
  free(donated);
  if (status == AX_OK && all->spread->workers > 1) test_use_threads(*executable);
  for (uint32_t i = 0; status == AX_OK && i < in_count; i++)
    status = ax_device_put_data(runtime, NULL, "", ax_program_in_type(all->program, i), all->in[i]->data, &arrays[i]);
  if (status == AX_OK) status = ax_run(*executable, AX_LIST(in_count, arrays), AX_LIST(out_count, arrays + in_count));
  for (uint32_t k = 0; status == AX_OK && all->out != NULL && k < out_count; k++) note_result(all, k, arrays[in_count + k]);
  return status;
}

static void *be_process(void *context) {
  process *p = context;
  const test_spread *spread = p->all->spread;
  const size_t count = (size_t)ax_program_in_count(p->all->program) + ax_program_out_count(p->all->program);
  ax_array **arrays = calloc(count + 1, sizeof arrays[0]);
  ax_runtime *runtime = NULL;
  ax_executable *executable = NULL;
  const ax_runtime_options options = {.workers = spread->workers, .policy = spread->policy, .seed = spread->seed};
  p->status = ax_runtime_create_over(&options, p->transport, spread->listed, spread->of, &runtime);
  if (p->status == AX_OK) p->status = compile_and_run(p->all, runtime, &executable, arrays);
  if (p->status != AX_OK) snprintf(p->message, sizeof p->message, "%s", ax_message());
  for (size_t i = 0; i < count; i++) ax_array_release(arrays[i]);
  free(arrays);
  ax_executable_release(executable);
  ax_runtime_release(runtime);
  return NULL;
}

/* --- All --- */

static void begin_results(together *all) {
  for (uint32_t k = 0; k < ax_program_out_count(all->program); k++) {
    const ax_type *type = ax_program_out_type(all->program, k);
    assert_int_equal(ax_tensor_create(type, &all->out[k].tensor), AX_OK);
    all->out[k].known = calloc((size_t)ax_type_elems(type) + 1, 1);
    assert_non_null(all->out[k].known);
  }
}

static void end_results(together *all, ax_tensor **out, bool complete) {
  for (uint32_t k = 0; k < ax_program_out_count(all->program); k++) {
    for (int64_t i = 0; complete && i < ax_type_elems(ax_program_out_type(all->program, k)); i++)
      assert_true(all->out[k].known[i]);
    free(all->out[k].known);
    out[k] = all->out[k].tensor;
  }
  free(all->out);
}

ax_status test_in_processes(ax_program *program, const test_spread *spread, ax_tensor *const *in, ax_tensor **out, char *message) {
  static process processes[TEST_MOST_PROCESSES];
  ax_transport *transports[TEST_MOST_PROCESSES];
  together all = {.program = program, .spread = spread, .in = in, .lock = PTHREAD_MUTEX_INITIALIZER};
  assert_true(spread->processes <= TEST_MOST_PROCESSES);
  if (out != NULL) {
    all.out = calloc(ax_program_out_count(program) + 1, sizeof all.out[0]);
    begin_results(&all);
  }
  assert_int_equal(ax_within_create(spread->processes, transports), AX_OK);
  for (uint32_t p = 0; p < spread->processes; p++) {
    processes[p] = (process){.all = &all, .transport = transports[p]};
    assert_int_equal(pthread_create(&processes[p].thread, NULL, be_process, &processes[p]), 0);
  }
  for (uint32_t p = 0; p < spread->processes; p++) pthread_join(processes[p].thread, NULL);
  for (uint32_t p = 1; p < spread->processes; p++) {
    assert_string_equal(processes[p].message, processes[0].message);
    assert_int_equal(processes[p].status, processes[0].status);
  }
  if (out != NULL) end_results(&all, out, processes[0].status == AX_OK);
  if (message != NULL) strcpy(message, processes[0].message);
  else if (processes[0].status != AX_OK) print_error("%s\n", processes[0].message);
  assert_false(all.differ);
  return processes[0].status;
}
