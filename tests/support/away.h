/* What tests of kernels over several processes have in common: what their bodies are made of, and how results are compared. */
#ifndef AX_TESTS_SUPPORT_AWAY_H
#define AX_TESTS_SUPPORT_AWAY_H

#include <string.h>

#include "axle/axle.h"
#include "support/cmocka.h"
#include "support/kernels.h"
#include "support/random.h"
#include "support/run.h"
#include "support/spreads.h"

enum { N = 4, ROUNDS = 6, SHORT = 6, LONG = 3000 }; /* devices along x; elements of a row: LONG ones are fetched */

static inline ax_value along(const char *axis, int64_t size, int64_t step) {
  ax_value at = ax_add(ax_axis_index(axis), ax_integer(step < 0 ? step + size : step));
  return ax_where(ax_ge(at, ax_integer(size)), ax_sub(at, ax_integer(size)), at);
}
static inline ax_value right(void) { return along("x", N, 1); }
static inline ax_value left(void) { return along("x", N, -1); }
#define TO(axes_, ...) (&(ax_target_core){.axes = axes_, .coordinates = {AX_VALUES(__VA_ARGS__)}})

static inline void meet_neighbours(void) {
  ax_semaphore_signal(ax_barrier_semaphore(), ax_integer(1), TO("x", left()));
  ax_semaphore_signal(ax_barrier_semaphore(), ax_integer(1), TO("x", right()));
  ax_semaphore_wait(ax_barrier_semaphore(), ax_integer(2));
}

/* Sends and waits until what others send has come too. */
static inline void shift(ax_value source, ax_value destination, ax_value received, ax_value sent, const ax_target_core *to) {
  ax_copy_start(source, destination, &(ax_copy_options){.received = &received, .sent = &sent, .to = to});
  ax_copy_wait(sent, source);
  ax_copy_wait(received, destination);
}

/* --- Kernels on each device: x, results, then scratch --- */

static inline void run_kernel(ax_function body, uint32_t scratch_count, const ax_scratch *scratch, const ax_value *in, ax_type type,
                       ax_value *out) {
  const ax_kernel_options options = {.name = "away", .scratch = {AX_LIST(scratch_count, scratch)}};
  ax_mpmd_map(AX_LIST(1, &test_one_core), &AX_FN(body, 2 + scratch_count, 0), &options, AX_LIST(1, in), AX_LIST(1, &type),
              AX_LIST(1, out));
}
static inline ax_scratch copies(void) { return (ax_scratch){.type = ax_dma_semaphore_type(AX_DIMS())}; }
static inline ax_scratch signals(void) { return (ax_scratch){.type = ax_semaphore_type(AX_DIMS())}; }
static inline ax_scratch barrier(int64_t arrivals) {
  return (ax_scratch){.type = ax_barrier_type(AX_DIMS()), .arrivals = arrivals};
}
static inline ax_scratch two_barriers(int64_t arrivals) {
  return (ax_scratch){.type = ax_barrier_type(AX_DIMS(2)), .arrivals = arrivals};
}
static inline ax_scratch slots(int64_t count, int64_t elems) { return (ax_scratch){.type = AX_VMEM(AX_F32, count, elems)}; }
static inline int64_t elems_of(ax_value x) { return ax_typeof(x).dims[ax_typeof(x).rank - 1]; }

/* --- Comparing --- */

typedef struct kase {
  const char *name, *mesh, *in, *out;
  ax_function body;
  bool racy; /* it has other results under other schedules than those of the executor, so only these are compared */
} kase;

static inline ax_tensor *random_input(const ax_type *type, uint64_t seed) {
  return test_random_tensor(&(test_random){seed}, *type, -1, 1.6);
}

static inline void compare(const kase *k, int64_t elems) {
  const ax_type type = TEST_TYPE(AX_F32, elems * (strchr(k->in, '+') != NULL ? 2 * N : N));
  ax_program *program = test_trace_map(&(test_map){k->mesh, {k->in}, {k->out}, .unchecked = true, .body = k->body}, &type);
  ax_tensor *in = random_input(&type, 17);
  if (!k->racy && elems == SHORT) TEST_EVERY_WAY(program, &in, 1e-3);
  test_compare_spreads(k->name, program, &in, test_all_spreads, TEST_ALL_SPREADS);
  ax_tensor_release(in);
  ax_program_release(program);
}

/* A program over x that fails in all spreads, with a message that has `part`, and `in_two` where devices are in two blocks. */
static inline void fails(ax_function body, ax_status status, const char *in_two, const char *part) {
  static char message[8192];
  const ax_type type = TEST_TYPE(AX_F32, N * SHORT);
  ax_program *program = test_trace_map(&(test_map){"x=4", {"x"}, {"x"}, .unchecked = true, .body = body}, &type);
  ax_tensor *in = random_input(&type, 3);
  for (size_t s = 0; s < TEST_ALL_SPREADS; s++) {
    assert_int_equal(test_in_processes(program, &test_all_spreads[s], &in, NULL, message), status);
    if (strstr(message, part) == NULL) fail_msg("spread %zu: no \"%s\" in: %s", s, part, message);
    if (s == 0 && strstr(message, in_two) == NULL) fail_msg("no \"%s\" in: %s", in_two, message);
  }
  ax_tensor_release(in);
  ax_program_release(program);
}

#endif
