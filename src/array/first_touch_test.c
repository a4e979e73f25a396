/* Where there are several memories, a page lies near the processor that touches it first. So nobody may touch the memory of a result
   before the thread that computes it: not the allocation, and not the thread that starts the run. Large blocks are given without
   the right to touch them here; the first touch of each page is noted, with its thread, and gives the right. */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "axle/ops.h"
#include "base/base.h"
#include "support/cmocka.h"
#include "support/run.h"
#include "support/tensor.h"

enum { large = 8 << 20, most_blocks = 8, rows = 4096, columns = 1024 };

/* One of the blocks; they are never given back while the test runs. */
typedef struct block {
  char *memory;
  size_t bytes;
  _Atomic uint32_t touched, by_caller; /* pages */
} block;

static block blocks[most_blocks];
static _Atomic uint32_t block_count;
static pthread_t caller;
static size_t page;

static void *allocate(void *user, size_t bytes, size_t align) {
  (void)user;
  void *memory = NULL;
  if (bytes < large || atomic_load(&block_count) == most_blocks) return posix_memalign(&memory, align, bytes) == 0 ? memory : NULL;
  memory = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return NULL;
  block *b = &blocks[atomic_load(&block_count)];
  b->memory = memory;
  b->bytes = bytes;
  atomic_fetch_add(&block_count, 1);
  return memory;
}

static void release(void *user, void *memory) {
  (void)user;
  for (uint32_t i = 0; i < atomic_load(&block_count); i++)
    if (blocks[i].memory == memory) return;
  free(memory);
}

static void note_touch(int signal_number, siginfo_t *info, void *context) {
  char *at = info->si_addr;
  (void)context;
  for (uint32_t i = 0; i < atomic_load(&block_count); i++) {
    block *b = &blocks[i];
    if (at < b->memory || at >= b->memory + b->bytes) continue;
    char *begin = b->memory + (size_t)(at - b->memory) / page * page;
    atomic_fetch_add(&b->touched, 1);
    if (pthread_equal(pthread_self(), caller)) atomic_fetch_add(&b->by_caller, 1);
    if (mprotect(begin, page, PROT_READ | PROT_WRITE) == 0) return;
  }
  signal(signal_number, SIG_DFL); /* a fault of another kind happens again, and ends the test */
}

static AX_BODY(shifted) {
  (void)context;
  out[0] = ax_add(in[0], ax_full_like(in[0], 1));
}

/* The caller's thread only starts the run: a thread of the runtime computes all of the result, and touches all of it. */
static void results_are_touched_by_who_computes_them(void **state) {
  (void)state;
  const ax_type type = TEST_TYPE(AX_F32, rows, columns);
  const ax_mesh none = {0};
  const ax_allocator own = {allocate, release, NULL};
  struct sigaction action = {.sa_sigaction = note_touch, .sa_flags = SA_SIGINFO | SA_NODEFER}, before;
  ax_runtime *runtime;
  ax_executable *e;
  ax_array *x, *y;
  if (AX_HOSTILE) skip(); /* blocks are filled with NaN */
  float *numbers = calloc((size_t)rows * columns, sizeof numbers[0]);
  assert_non_null(numbers);
  page = (size_t)sysconf(_SC_PAGESIZE);
  caller = pthread_self();
  sigemptyset(&action.sa_mask);
  TEST_OK(ax_runtime_create(&(ax_runtime_options){.workers = 2}, &runtime));
  ax_program *program = test_trace(shifted, NULL, &type, 1, 1);
  TEST_OK(ax_compile(runtime, program, NULL, &e));
  TEST_OK(ax_device_put_data(runtime, &none, "", &type, numbers, &x));
  assert_int_equal(sigaction(SIGSEGV, &action, &before), 0);
  ax_set_allocator(&own);
  ax_status status = ax_run_start(e, AX_ARRAYS(x), &y);
  /* Until it waits, the caller's thread takes no part; a thread of the runtime finds the run and computes all of it. */
  for (int i = 0; status == AX_OK && i < 100000 && !ax_array_is_ready(y); i++) usleep(100);
  const bool ready = status == AX_OK && ax_array_is_ready(y);
  float got[2] = {0};
  uint32_t touched = 0, by_caller = 0;
  if (ready && atomic_load(&block_count) == 1) touched = blocks[0].touched, by_caller = blocks[0].by_caller;
  if (ready) status = ax_array_read(y, numbers, (size_t)rows * columns * sizeof numbers[0]);
  memcpy(got, numbers + rows * columns - 2, sizeof got);
  ax_array_release(y);
  ax_array_release(x);
  ax_executable_release(e);
  ax_runtime_release(runtime);
  ax_set_allocator(NULL);
  assert_int_equal(sigaction(SIGSEGV, &before, NULL), 0);
  TEST_OK(status);
  assert_true(ready && got[0] == 1 && got[1] == 1);
  assert_int_equal(block_count, 1); /* the result alone is so large */
  assert_int_equal(by_caller, 0);
  assert_int_equal(touched, (uint32_t)(blocks[0].bytes / page));
  munmap(blocks[0].memory, blocks[0].bytes);
  ax_program_release(program);
  free(numbers);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(results_are_touched_by_who_computes_them)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
