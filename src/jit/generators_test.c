/* A compile of many kernels on several threads: each kernel is compiled once and does what it should, an error is told, and a later
   process finds all code in the folder. */
#include "jit/emit/generators.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "jit/jit.h"
#include "jit/llvm/llvm.h"
#include "support/cmocka.h"

enum { kernels = 120, elems = 100 };

/* y = x * factor + .. + factor, longer for some factors than for others. */
static ax_loop_kernel *make(ax_arena *arena, int factor) {
  const int64_t dims[] = {elems};
  const ax_position at = {.dim = 0, .coef = 1, .dynamic = AX_NONE};
  ax_loop_kernel *k = ax_kernel_create(arena, 1, 0, dims);
  ax_ex e = ax_kernel_load(k, ax_kernel_slot(k, AX_S32, 1, dims), &at);
  const ax_ex by = ax_kernel_const(k, AX_S32, factor);
  e = ax_kernel_op(k, AX_SCALAR_MUL, AX_S32, e, by, AX_NONE);
  for (int i = 0; i < factor % 20; i++) e = ax_kernel_op(k, AX_SCALAR_ADD, AX_S32, e, by, AX_NONE);
  ax_kernel_store(k, ax_kernel_slot(k, AX_S32, 1, dims), &at, e, AX_SCALAR_NONE);
  assert_false(k->failed);
  return k;
}

static void check(ax_kernel_code code, int factor) {
  int32_t x[elems], y[elems];
  for (int i = 0; i < elems; i++) x[i] = i - 50;
  code((void *[]){x, y}, NULL, 0, elems);
  for (int i = 0; i < elems; i++) assert_int_equal(y[i], x[i] * factor + factor % 20 * factor);
}

/* The count of kernels that were compiled, not loaded. */
static uint64_t compile_all(const ax_jit_options *options) {
  ax_arena arena = {0};
  ax_compiler *jit;
  const ax_loop_kernel *all[kernels];
  ax_kernel_code code[kernels];
  assert_int_equal(ax_jit_create(options, &jit), AX_OK);
  for (int i = 0; i < kernels; i++) all[i] = make(&arena, i);
  assert_int_equal(ax_jit_compile(jit, all, kernels, code), AX_OK);
  for (int i = 0; i < kernels; i++) check(code[i], i);
  const ax_jit_counts counts = ax_jit_count(jit);
  assert_int_equal(counts.compiled + counts.loaded, kernels);
  ax_jit_destroy(jit);
  ax_arena_deinit(&arena);
  return counts.compiled;
}

static void threads_compile_everything_once(void **state) {
  (void)state;
  for (uint32_t threads = 1; threads <= 40; threads *= 3) compile_all(&(ax_jit_options){.threads = threads});
}

static void all_code_is_kept(void **state) {
  (void)state;
  char folder[] = "/tmp/axle_generators_XXXXXX", command[64];
  assert_non_null(mkdtemp(folder));
  const ax_jit_options options = {.threads = 4, .folder = folder, .processor = "this one"};
  assert_int_equal(compile_all(&options), kernels);
  assert_int_equal(compile_all(&options), 0);
  assert_int_equal(compile_all(&(ax_jit_options){.folder = folder, .processor = "this one"}), 0);
  snprintf(command, sizeof command, "rm -rf %s", folder);
  assert_int_equal(system(command), 0);
}

/* Makes compilers and destroys them until *context. */
static void *make_and_destroy(void *context) {
  atomic_bool *end = context;
  ax_compiler *jit;
  while (!atomic_load(end)) {
    if (ax_jit_create(&(ax_jit_options){.threads = AX_MOST_GENERATORS}, &jit) == AX_OK) ax_jit_destroy(jit);
  }
  return NULL;
}

/* In a process that is forked while other threads make compilers and destroy them, a compiler is released, and another one made. */
static void forked_processes_release_and_make(void **state) {
#ifdef __SANITIZE_ADDRESS__
  skip(); /* gcc 12's allocator of ASan does not hold its locks across a fork: the child waits for a thread it lacks */
#endif
  enum { threads = 3, rounds = 200, most_seconds = 10 };
  pthread_t thread[threads];
  atomic_bool end = false;
  ax_compiler *jit;
  int ended = 0;
  (void)state;
  compile_all(&(ax_jit_options){.threads = 4}); /* something is kept */
  assert_int_equal(ax_jit_create(NULL, &jit), AX_OK);
  for (int i = 0; i < threads; i++) assert_int_equal(pthread_create(&thread[i], NULL, make_and_destroy, &end), 0);
  for (int i = 0; i < rounds && ended == i; i++) {
    int status;
    const pid_t child = fork();
    if (child == 0) {
      alarm(most_seconds);
      ax_jit_destroy(jit);
      _exit(ax_jit_create(NULL, &jit) != AX_OK);
    }
    if (child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0) ended++;
  }
  atomic_store(&end, true);
  for (int i = 0; i < threads; i++) pthread_join(thread[i], NULL);
  ax_jit_destroy(jit);
  assert_int_equal(ended, rounds);
}

/* What is kept is taken once, and by a generator alone that is alike. */
static void a_kept_machine_is_for_one_that_is_alike(void **state) {
  (void)state;
  ax_arena arena = {0};
  const ax_unit unit = {.kernel = make(&arena, 0)};
  ax_generator first = {.wanted.most_vector_bytes = 16}, other = {.wanted.most_vector_bytes = 32}, next = {.wanted.most_vector_bytes = 16};
  void *object[2];
  size_t bytes[2];
  assert_int_equal(ax_generator_emit(&first, &unit, 1, &object[0], &bytes[0]), AX_OK);
  const struct LLVMOpaqueTargetMachine *machine = first.machine;
  for (int i = 0; i < 8; i++) { /* more than are kept: those of other tests may be there */
    ax_generator one = {.wanted.most_vector_bytes = 0};
    ax_generator_take_kept(&one);
    ax_generator_deinit(&one);
  }
  ax_generator_keep(&first);
  assert_null(first.machine);
  ax_generator_take_kept(&other);
  assert_true(other.machine != machine);
  ax_generator_take_kept(&next);
  assert_ptr_equal(next.machine, machine);
  assert_int_equal(next.vector_bytes, 16);
  assert_int_equal(ax_generator_emit(&next, &unit, 1, &object[1], &bytes[1]), AX_OK);
  assert_int_equal(bytes[1], bytes[0]);
  assert_memory_equal(object[0], object[1], bytes[0]);
  for (int i = 0; i < 2; i++) ax_free(object[i]);
  ax_generator_deinit(&next);
  ax_generator_deinit(&other);
  ax_arena_deinit(&arena);
}

static void init_units(ax_arena *arena, ax_unit *units) {
  for (int i = 0; i < kernels; i++) units[i] = (ax_unit){.kernel = make(arena, i)};
}

/* Parts follow each other, none is empty, and they are about equal: of the parts of four, none has half of the units. */
static void parts_are_equal(void **state) {
  (void)state;
  ax_arena arena = {0};
  ax_unit units[kernels];
  init_units(&arena, units);
  assert_int_equal(ax_generators_worth(units, kernels, 1), 1);
  assert_int_equal(ax_generators_worth(units, 3, 4), 1); /* too little work */
  assert_int_equal(ax_generators_worth(units, 0, 4), 1);
  assert_int_equal(ax_generators_worth(units, kernels, 4), 4);
  for (uint32_t count = 1; count <= 4; count++) {
    ax_generator generators[4] = {{0}};
    ax_emitted made[4];
    uint32_t next = 0;
    assert_int_equal(ax_generators_emit(generators, count, units, kernels, made), AX_OK);
    for (uint32_t i = 0; i < count; i++) {
      assert_int_equal(made[i].first, next);
      assert_true(made[i].count > 0 && (count < 4 || made[i].count < kernels / 2) && made[i].bytes > 0);
      next += made[i].count;
      ax_free(made[i].object);
      ax_generator_deinit(&generators[i]);
    }
    assert_int_equal(next, kernels);
  }
  ax_arena_deinit(&arena);
}

/* Each generator would be told of the same free memory, so they are asked for together. */
static void there_is_memory_for_all_or_for_one(void **state) {
  (void)state;
  enum { some = 96 << 20 }; /* for one, and for two with their stacks, but not for four */
  ax_arena arena = {0};
  ax_unit units[kernels];
  struct rlimit before, least;
  unsigned long long pages = 0;
  init_units(&arena, units);
  FILE *file = fopen("/proc/self/statm", "re");
  if (file == NULL || fscanf(file, "%llu", &pages) != 1) skip();
  fclose(file);
  assert_int_equal(getrlimit(RLIMIT_AS, &before), 0);
  least = before;
  least.rlim_cur = pages * (unsigned long long)sysconf(_SC_PAGESIZE) + some;
  assert_int_equal(setrlimit(RLIMIT_AS, &least), 0);
  const uint32_t four = ax_generators_worth(units, kernels, 4), two = ax_generators_worth(units, kernels, 2);
  assert_int_equal(setrlimit(RLIMIT_AS, &before), 0);
  assert_int_equal(four, 1);
  assert_int_equal(two, 2);
  ax_arena_deinit(&arena);
}

static char *nothing(void) { return NULL; }

/* What fails on another thread is told on this one, and nothing stays behind. */
static void failures_are_told(void **state) {
  (void)state;
  ax_arena arena = {0};
  ax_unit units[kernels];
  ax_generator generators[3] = {{0}};
  ax_emitted made[3];
  init_units(&arena, units);
  assert_int_equal(ax_llvm_load(), AX_OK);
  assert_int_equal(ax_generators_emit(generators, 1, units, kernels, made), AX_OK); /* the first generator has started */
  ax_free(made[0].object);
  const ax_llvm_functions all = ax_llvm;
  ax_llvm.LLVMGetHostCPUName = nothing;
  assert_int_equal(ax_generators_emit(generators, 3, units, kernels, made), AX_OUT_OF_MEMORY);
  ax_llvm = all;
  for (int i = 0; i < 3; i++) assert_null(made[i].object);
  assert_non_null(strstr(ax_message(), "memory"));
  for (int i = 0; i < 3; i++) ax_generator_deinit(&generators[i]);
  ax_arena_deinit(&arena);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(threads_compile_everything_once), cmocka_unit_test(all_code_is_kept),
                                     cmocka_unit_test(forked_processes_release_and_make), cmocka_unit_test(a_kept_machine_is_for_one_that_is_alike),
                                     cmocka_unit_test(parts_are_equal), cmocka_unit_test(there_is_memory_for_all_or_for_one),
                                     cmocka_unit_test(failures_are_told)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
