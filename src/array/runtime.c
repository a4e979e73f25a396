/* The runtime: options, pooled memory (pool.c), workers, and the cache of executables. */
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "array/code_cache.h"
#include "array/executable.h"
#include "array/pending.h"
#include "base/choice.h"
#include "client/client.h"
#include "machine/machine.h"
#include "processes/mpi.h"
#include "processes/opening_watch.h"
#include "processes/shared_memory.h"
#include "processes/stall.h"
#include "run/inside.h"

/* --- Memory --- */

void ax_runtime_trim(ax_runtime *runtime) {
  if (runtime == NULL) return;
  ax_pool_trim(&runtime->executor.pool);
  ax_jit_trim(runtime->assembler.jit);
}

void ax_runtime_memory(const ax_runtime *runtime, size_t *now, size_t *peak) {
  *now = *peak = 0;
  if (runtime != NULL) ax_pool_count((ax_pool *)&runtime->executor.pool, now, peak); /* its lock is not part of the constant data */
}

/* --- What is told --- */

ax_counters ax_runtime_counters(const ax_runtime *runtime) {
  ax_counters counters = {0};
  if (runtime == NULL) return counters;
  pthread_mutex_t *lock = (pthread_mutex_t *)&runtime->cache.lock; /* the cast: the lock is not part of the constant data */
  pthread_mutex_lock(lock);
  counters.programs_compiled = runtime->cache.compiled;
  counters.programs_found = runtime->cache.found;
  pthread_mutex_unlock(lock);
  lock = (pthread_mutex_t *)&runtime->layouts_lock;
  pthread_mutex_lock(lock);
  counters.layouts_made = runtime->layouts_made;
  counters.layouts_found = runtime->layouts_found;
  pthread_mutex_unlock(lock);
  for (uint32_t i = 0; i < AX_TALLIES; i++) {
    counters.runs += atomic_load_explicit(&runtime->tallies[i].runs, memory_order_relaxed);
    counters.arguments_copied += atomic_load_explicit(&runtime->tallies[i].copied, memory_order_relaxed);
    counters.calls_without_run += atomic_load_explicit(&runtime->tallies[i].calls_without, memory_order_relaxed);
  }
  const ax_jit_counts kernels = ax_jit_count(runtime->assembler.jit);
  counters.kernels_compiled = kernels.compiled;
  counters.kernels_found = kernels.found;
  counters.kernels_loaded = kernels.loaded;
  counters.code_bytes = kernels.code_bytes;
  return counters;
}

void ax_runtime_log(const ax_runtime *runtime, const char *format, ...) {
  char line[512];
  if (runtime->options.log == NULL) return;
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  runtime->options.log(line, runtime->options.log_context);
}

/* --- The runtime --- */

static ax_status check_options(const ax_runtime_options *options) {
  if (options == NULL) return AX_OK;
  if (options->max_devices < 0)
    return ax_error(AX_INVALID_ARGUMENT, "runtime: max_devices is %lld", (long long)options->max_devices);
  if (options->policy != AX_POLICY_PARALLEL && options->policy != AX_POLICY_FIXED && options->policy != AX_POLICY_SEEDED)
    return ax_error(AX_INVALID_ARGUMENT, "runtime: %d is no policy", (int)options->policy);
  if ((options->check_numerics & ~(uint32_t)(AX_CHECK_NAN | AX_CHECK_INF)) != 0)
    return ax_error(AX_INVALID_ARGUMENT, "runtime: check_numerics is %u; it is AX_CHECK_NAN, AX_CHECK_INF, both or 0",
                    options->check_numerics);
  return AX_OK;
}

static ax_status create_compiler(ax_runtime *runtime) {
  char folder[PATH_MAX];
  const bool keeps = ax_code_cache_folder(runtime->options.code_cache, folder, sizeof folder);
  runtime->options.code_cache = NULL; /* was only borrowed */
  ax_machine_keep(keeps ? folder : NULL);
  return ax_jit_create(&(ax_jit_options){.folder = keeps ? folder : NULL, .folder_bytes = runtime->options.code_cache_bytes,
                                         .idle_bytes = runtime->options.idle_code_bytes,
                                         .threads = runtime->options.workers}, &runtime->assembler.jit);
}

/* NULL: Axle compiles and runs. */
static const char *plugin_of(const ax_runtime_options *options) {
  const char *path = options->plugin != NULL ? options->plugin : getenv("AXLE_PLUGIN");
  return path != NULL && path[0] != '\0' ? path : NULL;
}

/* In StableHLO's words. */
static ax_status read_precision(const char *word, const char **out) {
  static const char *const names[][2] = {{"highest", "HIGHEST"}, {"high", "HIGH"}, {"default", "DEFAULT"}};
  if (word == NULL) word = getenv("AXLE_PLUGIN_PRECISION");
  if (word == NULL || word[0] == '\0') word = names[0][0];
  for (size_t i = 0; i < AX_COUNT(names); i++) {
    *out = names[i][1];
    if (strcmp(word, names[i][0]) == 0) return AX_OK;
  }
  return ax_error(AX_INVALID_ARGUMENT, "runtime: the plugin's precision is highest, high or default, and not \"%s\"", word);
}

/* A mesh has no more devices than the plugin. */
static ax_status open_plugin(ax_runtime *runtime) {
  ax_runtime_options *options = &runtime->options;
  const char *path = plugin_of(options), *words = options->plugin_options, *precision = options->plugin_precision;
  if (words == NULL) words = getenv("AXLE_PLUGIN_OPTIONS");
  options->plugin = options->plugin_options = options->plugin_precision = NULL; /* were only borrowed */
  if (path == NULL) return AX_OK;
  AX_TRY(read_precision(precision, &runtime->plugin_precision));
  if (options->check_numerics != 0)
    return ax_error(AX_ABSENT, "runtime: programs that a plugin runs have no check_numerics");
  ax_status status = ax_client_create(path, words, &runtime->client);
  if (status != AX_OK) return ax_error_context(status, "runtime: ");
  if (runtime->client->device_count < options->max_devices) options->max_devices = runtime->client->device_count;
  runtime->assembler.max_devices = options->max_devices;
  return AX_OK;
}

/* In this process alone; `threads` is how many are worth it here. */
static ax_status create(const ax_runtime_options *options, uint32_t threads, ax_runtime **out) {
  *out = NULL;
  AX_TRY(check_options(options));
  AX_TRY(ax_machine_check());
  ax_runtime *runtime = *out = ax_calloc(1, sizeof *runtime);
  if (runtime == NULL) return ax_out_of_memory(sizeof *runtime);
  if (options != NULL) runtime->options = *options;
  runtime->options.communicator = NULL; /* were only borrowed */
  runtime->options.process_of = NULL;
  if (runtime->options.workers == 0) runtime->options.workers = threads;
  if (runtime->options.max_devices == 0) runtime->options.max_devices = 1 << 20;
  if (runtime->options.policy != AX_POLICY_PARALLEL) runtime->options.workers = 1;
  if (runtime->options.run_workers == 0 || runtime->options.run_workers > runtime->options.workers)
    runtime->options.run_workers = runtime->options.workers;
  atomic_init(&runtime->references, 1);
  atomic_init(&runtime->owners, 1);
  runtime->process = getpid();
  ax_pool_init(&runtime->executor.pool);
  ax_executable_cache_init(&runtime->cache);
  pthread_mutex_init(&runtime->layouts_lock, NULL);
  pthread_mutex_init(&runtime->order, NULL);
  pthread_mutex_init(&runtime->bringing, NULL);
  ax_callbacks_init(&runtime->callbacks);
  runtime->executor.options = &runtime->options;
  runtime->executor.hooks = (ax_hooks){
      .callbacks = &runtime->callbacks, .print = runtime->options.print, .print_context = runtime->options.print_context};
  runtime->assembler = (ax_assembler){
      .hooks = &runtime->executor.hooks, .runtime = runtime, .max_devices = runtime->options.max_devices, .threads = runtime->options.run_workers};
  ax_status status = open_plugin(runtime);
  if (status == AX_OK) status = create_compiler(runtime);
  if (status == AX_OK) status = ax_workers_create(runtime->options.workers - 1, &runtime->executor.workers);
  if (status != AX_OK) {
    ax_runtime_destroy(runtime);
    *out = NULL;
  }
  return status;
}

/* Of blocks that exchanges may read from other processes. */
static void *alloc_shared(size_t bytes) { return bytes >= AX_SHARED_LEAST ? ax_shared_or_own_alloc(bytes) : ax_alloc(bytes); }

/* Processes that share a machine share its processors, unless each is bound to its own. */
static uint32_t threads_beside(uint32_t beside) {
  const uint32_t all = ax_machine_threads();
  const bool bound = sysconf(_SC_NPROCESSORS_ONLN) > (long)all;
  return bound || beside <= 1 ? all : all > beside ? all / beside : 1;
}

static ax_status set_watch(const ax_runtime_options *options, ax_stalls *stalls) {
  return options != NULL ? ax_stall_set(stalls, options->watch_seconds, options->watch, options->watch_context)
                         : ax_stall_set(stalls, 0, NULL, NULL);
}

ax_status ax_runtime_create_over(const ax_runtime_options *options, ax_transport *transport, uint32_t listed,
                                 const uint32_t *process_of, ax_runtime **out) {
  ax_processes *processes;
  *out = NULL;
  AX_TRY(ax_processes_create(transport, process_of, listed, &processes));
  ax_status status = set_watch(options, &processes->stalls);
  if (status == AX_OK) status = create(options, threads_beside(transport->beside), out);
  status = ax_transport_agree(transport, status);
  if (status != AX_OK) {
    if (*out != NULL) ax_runtime_destroy(*out);
    *out = NULL;
    ax_processes_destroy(processes);
    return status;
  }
  static const ax_pool_source shared = {alloc_shared, ax_shared_or_own_free, .shared = true};
  (*out)->executor.pool.source = &shared;
  (*out)->executor.processes = processes;
  (*out)->assembler.processes = &processes->rule;
  return AX_OK;
}

/* What the environment says of the watch may be wrong here alone: all hear of it once they are together. */
static ax_status create_by_mpi(const ax_runtime_options *options, ax_runtime **out) {
  ax_stalls stalls = {0};
  ax_transport *transport;
  (void)!set_watch(options, &stalls);
  ax_opening_watch *watch = ax_opening_watch_begin(&stalls, options->communicator != NULL);
  ax_status status = ax_mpi_create(options->communicator, &transport);
  if (status == AX_OK) status = ax_runtime_create_over(options, transport, options->process_of_count, options->process_of, out);
  ax_opening_watch_end(watch);
  return status;
}

ax_status ax_runtime_create(const ax_runtime_options *options, ax_runtime **out) {
  static const ax_choice choice = {"processes", "AXLE_PROCESSES", {"one", "mpi"}};
  static const ax_runtime_options none;
  int by;
  *out = NULL;
  if (options == NULL) options = &none;
  ax_status status = ax_choice_decide(&choice, (int)options->processes, &by);
  if (status != AX_OK) return ax_error_context(status, "runtime: ");
  if (by == AX_MPI && plugin_of(options) != NULL)
    return ax_error(AX_ABSENT, "runtime: a plugin's devices are those of one process: it does not go with MPI");
  return by == AX_MPI ? create_by_mpi(options, out) : create(options, ax_machine_threads(), out);
}

ax_runtime *ax_runtime_hold(ax_runtime *runtime) {
  atomic_fetch_add_explicit(&runtime->references, 1, memory_order_relaxed);
  return runtime;
}

bool ax_runtime_let_go(ax_runtime *runtime) { return atomic_fetch_sub(&runtime->references, 1) == 1; }

void ax_runtime_destroy(ax_runtime *runtime) {
  ax_workers_destroy(runtime->executor.workers);
  ax_jit_destroy(runtime->assembler.jit);
  ax_pool_deinit(&runtime->executor.pool);
  ax_callbacks_deinit(&runtime->callbacks);
  ax_executable_cache_deinit(&runtime->cache);
  if (runtime->process == getpid()) { /* in a forked process, a thread that is not there may hold the locks, and others take what it
                                         tells them for its parent's */
    ax_processes_destroy(runtime->executor.processes);
    pthread_mutex_destroy(&runtime->executor.pool.lock);
    pthread_mutex_destroy(&runtime->cache.lock);
    pthread_mutex_destroy(&runtime->layouts_lock);
    pthread_mutex_destroy(&runtime->order);
    pthread_mutex_destroy(&runtime->bringing);
    ax_client_destroy(runtime->client); /* a forked process has none of its threads */
    pthread_mutex_destroy(&runtime->callbacks.lock);
  }
  ax_free(runtime);
}

ax_runtime *ax_runtime_retain(ax_runtime *runtime) {
  if (runtime == NULL) return NULL;
  atomic_fetch_add_explicit(&runtime->owners, 1, memory_order_relaxed);
  return ax_runtime_hold(runtime);
}

/* A thread inside a run cannot wait for all runs. That run holds the runtime, which goes with its last holder. */
void ax_runtime_release(ax_runtime *runtime) {
  if (runtime == NULL) return;
  const bool last = atomic_fetch_sub(&runtime->owners, 1) == 1;
  if (last && runtime->process == getpid() && !ax_inside_run(&runtime->executor)) ax_pending_wait_for_all(runtime);
  ax_runtime_drop(runtime);
}

/* --- What a run has of its host --- */

ax_status ax_runtime_register(ax_runtime *runtime, ax_callback *callback) {
  AX_TRY(ax_require(runtime, "runtime"));
  AX_TRY(ax_require(callback, "callback"));
  return ax_callbacks_add(&runtime->callbacks, callback);
}

/* Holds the runtime: a callback of a run that it waits for may release the last reference. */
void ax_runtime_wait(ax_runtime *runtime) {
  if (runtime == NULL) return;
  ax_runtime_hold(runtime);
  ax_pending_wait_for_all(runtime);
  ax_runtime_drop(runtime);
}

void ax_print_to(const char *text, void *file) { (void)fputs(text, file); }
