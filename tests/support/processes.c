#include "support/processes.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "array/executable.h"
#include "array/runtime.h"
#include "mesh/sharding.h"
#include "processes/within.h"
#include "support/cmocka.h"
#include "support/run.h"

typedef struct whole { /* a result, put together */
  ax_tensor *tensor;
  bool *known; /* by element */
} whole;

struct test_team {
  uint32_t processes, workers, listed;
  uint32_t *of;
  ax_transport *transports[TEST_MOST_PROCESSES]; /* NULL: the runtime has it */
  ax_runtime *runtimes[TEST_MOST_PROCESSES];
};

typedef struct together {
  test_team *team;
  ax_program *program;
  const test_spread *how;
  ax_tensor *const *in;
  whole *out;
  pthread_mutex_t lock;       /* guards `out` */
  bool differ;                /* a block of two processes */
  pthread_barrier_t compiled; /* all have compiled, or failed */
  _Atomic uint32_t failed;    /* processes that could not compile: then none runs */
} together;

typedef struct process {
  together *all;
  uint32_t number;
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

static ax_status start(test_team *team, uint32_t number, const test_spread *how) {
  const ax_runtime_options options = {.workers = team->workers};
  ax_transport *transport = team->transports[number];
  team->transports[number] = NULL;
  if (transport != NULL) AX_TRY(ax_runtime_create_over(&options, transport, team->listed, team->of, &team->runtimes[number]));
  team->runtimes[number]->options.policy = how->policy;
  team->runtimes[number]->options.seed = how->seed;
  return AX_OK;
}

static ax_status compile(const together *all, uint32_t number, ax_executable **executable) {
  const uint32_t in_count = ax_program_in_count(all->program);
  bool *donated = calloc(in_count + 1, sizeof donated[0]);
  assert_non_null(donated);
  for (uint32_t i = 0; i < in_count; i++) donated[i] = all->how->donate;
  ax_status status = start(all->team, number, all->how);
  if (status == AX_OK)
    status = ax_compile(all->team->runtimes[number], all->program,
                        &(ax_compile_options){.donate = test_args(donated, in_count), .check_numerics = all->how->check_numerics},
                        executable);
  free(donated);
  return status;
}

static ax_status run(together *all, uint32_t number, ax_executable *executable, ax_array **arrays) {
  const uint32_t in_count = ax_program_in_count(all->program), out_count = ax_program_out_count(all->program);
  if (all->team->workers > 1) test_use_threads(executable);
  executable->compiled.threaded = executable->compiled.threaded && all->how->policy == AX_POLICY_PARALLEL;
  for (uint32_t i = 0; i < in_count; i++)
    AX_TRY(ax_device_put_data(executable->runtime, NULL, "", ax_program_in_type(all->program, i), all->in[i]->data, &arrays[i]));
  if (all->how->around != NULL) all->how->around(number, true);
  ax_status status = ax_run(executable, AX_LIST(in_count, arrays), AX_LIST(out_count, arrays + in_count));
  if (all->how->around != NULL) all->how->around(number, false);
  AX_TRY(status);
  for (uint32_t k = 0; all->out != NULL && k < out_count; k++) note_result(all, k, arrays[in_count + k]);
  return AX_OK;
}

static void *be_process(void *context) {
  process *p = context;
  together *all = p->all;
  const size_t count = (size_t)ax_program_in_count(all->program) + ax_program_out_count(all->program);
  ax_array **arrays = calloc(count + 1, sizeof arrays[0]);
  ax_executable *executable = NULL;
  assert_non_null(arrays);
  p->status = compile(all, p->number, &executable);
  if (p->status != AX_OK) atomic_fetch_add(&all->failed, 1);
  pthread_barrier_wait(&all->compiled);
  if (atomic_load(&all->failed) == 0) p->status = run(all, p->number, executable, arrays);
  if (p->status != AX_OK) snprintf(p->message, sizeof p->message, "%s", ax_message());
  for (size_t i = 0; i < count; i++) ax_array_release(arrays[i]);
  free(arrays);
  ax_executable_release(executable);
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

/* Such a program may say that a result is the same on all devices which is not; each process then has that of its own first device. */
static bool is_unchecked(const ax_program *program) {
  char *text;
  assert_int_equal(ax_program_print(program, &text), AX_OK);
  const bool unchecked = strstr(text, "unchecked=true") != NULL;
  ax_string_free(text);
  return unchecked;
}

ax_status test_in_team(test_team *team, ax_program *program, const test_spread *how, ax_tensor *const *in, ax_tensor **out,
                       char *message) {
  static process processes[TEST_MOST_PROCESSES];
  together all = {.team = team, .program = program, .how = how, .in = in, .lock = PTHREAD_MUTEX_INITIALIZER};
  if (out != NULL) {
    all.out = calloc(ax_program_out_count(program) + 1, sizeof all.out[0]);
    begin_results(&all);
  }
  assert_int_equal(pthread_barrier_init(&all.compiled, NULL, team->processes), 0);
  for (uint32_t p = 0; p < team->processes; p++) {
    processes[p] = (process){.all = &all, .number = p};
    assert_int_equal(pthread_create(&processes[p].thread, NULL, be_process, &processes[p]), 0);
  }
  for (uint32_t p = 0; p < team->processes; p++) pthread_join(processes[p].thread, NULL);
  pthread_barrier_destroy(&all.compiled);
  for (uint32_t p = 1; p < team->processes; p++) {
    assert_string_equal(processes[p].message, processes[0].message);
    assert_int_equal(processes[p].status, processes[0].status);
  }
  if (out != NULL) end_results(&all, out, processes[0].status == AX_OK);
  if (message != NULL) strcpy(message, processes[0].message);
  else if (processes[0].status != AX_OK) print_error("%s\n", processes[0].message);
  if (all.differ && is_unchecked(program)) return AX_ABSENT;
  assert_false(all.differ);
  return processes[0].status;
}

test_team *test_team_create(const test_spread *spread) {
  test_team *team = calloc(1, sizeof *team);
  assert_non_null(team);
  assert_true(spread->processes <= TEST_MOST_PROCESSES);
  *team = (test_team){.processes = spread->processes, .workers = spread->workers, .listed = spread->listed};
  team->of = calloc(spread->listed + 1, sizeof team->of[0]);
  assert_non_null(team->of);
  if (spread->listed > 0) memcpy(team->of, spread->of, spread->listed * sizeof team->of[0]);
  assert_int_equal(ax_within_create(spread->processes, team->transports), AX_OK);
  for (uint32_t p = 0; spread->delays && p < team->processes; p++)
    team->transports[p] = test_delay(team->transports[p], spread->seed + p);
  return team;
}

void test_team_release(test_team *team) {
  if (team == NULL) return;
  for (uint32_t p = 0; p < team->processes; p++) {
    ax_runtime_release(team->runtimes[p]);
    if (team->transports[p] != NULL) team->transports[p]->functions->destroy(team->transports[p]);
  }
  free(team->of);
  free(team);
}

ax_status test_in_processes(ax_program *program, const test_spread *spread, ax_tensor *const *in, ax_tensor **out, char *message) {
  test_team *team = test_team_create(spread);
  ax_status status = test_in_team(team, program, spread, in, out, message);
  test_team_release(team);
  return status;
}
