/* Cores that go round for ever are told as a deadlock; those that others let go on, and those of which nobody knows, are not. */
#include <string.h>

#include "axle/axle.h"
#include "support/cmocka.h"
#include "support/run.h"

enum { X, Y, FIRST, SECOND, LOCK, FLAG, REFS }; /* two semaphores, a lock, a flag; all shared by the cores */

static ax_value core(void) { return ax_axis_index("core"); }
static ax_value zero(void) { return ax_convert_element_type(ax_full(AX_F32, AX_DIMS(), 0), AX_S32); }
static ax_value flag(const ax_value *in) { return ax_ref_load(ax_ref_at(in[FLAG], ax_integer(0))); }
static void set(const ax_value *in, int64_t value) { ax_ref_store(in[FLAG], ax_full_i64(AX_S32, AX_DIMS(1), value)); }
static void finish(const ax_value *in) { ax_ref_store(ax_ref_at(in[Y], core()), ax_mul(ax_ref_load(ax_ref_at(in[X], core())), ax_real(2))); }

static AX_BODY(nothing) {}
static AX_BODY(is_low) { out[0] = ax_lt(ax_semaphore_read(*(const ax_value *)context), ax_integer(1)); }
static AX_BODY(is_unset) { out[0] = ax_eq(flag(context), ax_integer(0)); }
static void read_on(ax_value semaphore) { ax_while(AX_CLOSURE(is_low, 0, 1, &semaphore), AX_FN(nothing, 0, 0), NULL, NULL); }
static void load_on(const ax_value *in) { ax_while(AX_CLOSURE(is_unset, 0, 1, in), AX_FN(nothing, 0, 0), NULL, NULL); }
static void load_on_under_lock(const ax_value *in) {
  ax_value seen = zero();
  AX_WHILE (ax_eq(seen, ax_integer(0)), &seen) {
    ax_semaphore_wait(in[LOCK], ax_integer(1));
    seen = flag(in);
    ax_semaphore_signal(in[LOCK], ax_integer(1), NULL);
  }
}
static void open_lock(const ax_value *in) {
  set(in, 0);
  ax_semaphore_signal(in[LOCK], ax_integer(1), NULL);
}

/* --- None of these ends --- */

static AX_BODY(one_reads) {
  AX_IF (ax_eq(core(), ax_integer(0))) read_on(in[FIRST]);
  AX_ELSE ax_semaphore_wait(in[SECOND], ax_integer(1));
  finish(in);
}
static AX_BODY(both_read) {
  AX_IF (ax_eq(core(), ax_integer(0))) read_on(in[FIRST]);
  AX_ELSE read_on(in[SECOND]);
  finish(in);
}
static AX_BODY(one_loads) {
  AX_IF (ax_eq(core(), ax_integer(0))) {
    set(in, 0);
    load_on(in);
  }
  AX_ELSE ax_semaphore_wait(in[SECOND], ax_integer(1));
  finish(in);
}
static AX_BODY(one_locks) {
  AX_IF (ax_eq(core(), ax_integer(0))) {
    open_lock(in);
    load_on_under_lock(in);
  }
  AX_ELSE ax_semaphore_wait(in[SECOND], ax_integer(1));
  finish(in);
}
static AX_BODY(both_lock) {
  AX_IF (ax_eq(core(), ax_integer(0))) open_lock(in);
  load_on_under_lock(in);
  finish(in);
}
static AX_BODY(counts_to_100) { /* and again from 0 */
  AX_IF (ax_eq(core(), ax_integer(0))) {
    ax_value n = zero();
    AX_WHILE (ax_lt(ax_semaphore_read(in[FIRST]), ax_integer(1)), &n) n = ax_rem(ax_add(n, ax_integer(1)), ax_integer(100));
  }
  AX_ELSE ax_semaphore_wait(in[SECOND], ax_integer(1));
  finish(in);
}
static AX_BODY(stores_and_copies) {
  AX_IF (ax_eq(core(), ax_integer(0))) {
    AX_WHILE (ax_lt(ax_semaphore_read(in[FIRST]), ax_integer(1))) {
      ax_ref_store(in[FLAG], ax_broadcast_to(ax_semaphore_read(in[FIRST]), AX_DIMS(1)));
      ax_copy(in[X], in[Y]);
    }
  }
  AX_ELSE ax_semaphore_wait(in[SECOND], ax_integer(1));
  finish(in);
}

/* --- These do --- */

static AX_BODY(is_set) {
  AX_IF (ax_eq(core(), ax_integer(0))) {
    set(in, 0);
    ax_semaphore_signal(in[FIRST], ax_integer(1), NULL);
    load_on(in);
  }
  AX_ELSE {
    ax_semaphore_wait(in[FIRST], ax_integer(1));
    set(in, 1);
  }
  finish(in);
}
static AX_BODY(is_set_under_lock) {
  AX_IF (ax_eq(core(), ax_integer(0))) {
    open_lock(in);
    load_on_under_lock(in);
  }
  AX_ELSE {
    ax_semaphore_wait(in[LOCK], ax_integer(1));
    set(in, 1);
    ax_semaphore_signal(in[LOCK], ax_integer(1), NULL);
  }
  finish(in);
}
/* Core 1 works for many rounds in which core 0 is found to go round. */
static AX_BODY(is_late) {
  AX_IF (ax_eq(core(), ax_integer(0))) read_on(in[FIRST]);
  AX_ELSE {
    ax_value n = zero();
    AX_WHILE (ax_lt(n, ax_integer(300000)), &n) n = ax_add(n, ax_add(ax_mul(ax_semaphore_read(in[SECOND]), ax_integer(2)), ax_integer(1)));
    ax_semaphore_signal(in[FIRST], ax_integer(1), NULL);
  }
  finish(in);
}
/* Ends once core 0 sees the lock taken, which only happens where cores change between two acts. */
static AX_BODY(is_taken) { out[0] = ax_gt(ax_semaphore_read(((const ax_value *)context)[LOCK]), ax_integer(0)); }
static AX_BODY(takes_in_turn) {
  AX_IF (ax_eq(core(), ax_integer(0))) {
    open_lock(in);
    ax_semaphore_signal(in[FIRST], ax_integer(1), NULL);
    ax_while(AX_CLOSURE(is_taken, 0, 1, in), AX_FN(nothing, 0, 0), NULL, NULL);
    set(in, 1);
  }
  AX_ELSE {
    ax_semaphore_wait(in[FIRST], ax_integer(1));
    load_on_under_lock(in);
  }
  finish(in);
}

static AX_BODY(whole) {
  const ax_core_mesh mesh = {.core = "core", .mesh = {.count = 1, .axis = {{.name = "core", .size = 2}}}};
  const ax_scratch one = {.type = ax_semaphore_type(AX_DIMS()), .shared = true}, memory = {.type = AX_SMEM(AX_S32, 1), .shared = true};
  const ax_kernel_options options = {.name = "round", .scratch = {AX_SCRATCH(one, one, one, memory)}};
  const ax_fn body = AX_FN(*(const ax_function *)context, REFS, 0);
  ax_mpmd_map(AX_LIST(1, &mesh), &body, &options, AX_LIST(1, in), AX_TYPES(AX_TYPE(AX_F32, 2)), out);
}

/* An error's message names both. */
static void run(ax_function body, const ax_runtime_options *how, ax_status wanted, const char *first, const char *second) {
  const ax_type type = AX_TYPE(AX_F32, 2);
  const float data[] = {3, 4};
  const ax_host_array host = ax_host_view(AX_F32, AX_DIMS(2), data);
  ax_runtime *runtime;
  ax_executable *executable;
  ax_array *x, *y;
  float got[2];
  TEST_OK(ax_runtime_create(how, &runtime));
  TEST_OK(ax_jit(runtime, AX_CLOSURE(whole, 1, 1, &body), &type, NULL, &executable));
  if (how->workers < 4) test_use_threads(executable);
  TEST_OK(ax_device_put(runtime, NULL, "", &host, &x));
  const ax_status status = ax_run(executable, &x, &y);
  if (status != wanted) fail_msg("status %d: %s", (int)status, status != AX_OK ? ax_message() : "");
  const bool names_both = status == AX_OK || (strstr(ax_message(), first) != NULL && strstr(ax_message(), second) != NULL);
  if (!names_both) fail_msg("%s", ax_message());
  if (status == AX_OK) {
    TEST_OK(ax_array_read(y, got, sizeof got));
    assert_true(got[0] == 6 && got[1] == 8);
    ax_array_release(y);
  }
  ax_array_release(x);
  ax_executable_release(executable);
  ax_runtime_release(runtime);
}

static void run_every_way(ax_function body, ax_status wanted, const char *first, const char *second) {
  for (uint32_t workers = 1; workers <= 4; workers++)
    run(body, &(ax_runtime_options){.workers = workers, .policy = workers == 3 ? AX_POLICY_SEEDED : AX_POLICY_PARALLEL, .seed = 5}, wanted, first, second);
}

/* The evaluator, too. */
static void evaluate(ax_function body, ax_status wanted) {
  const ax_type type = AX_TYPE(AX_F32, 2);
  ax_program *program;
  ax_tensor *x, *y = NULL;
  TEST_OK(ax_trace(AX_CLOSURE(whole, 1, 1, &body), &type, &program));
  TEST_OK(ax_tensor_create(&type, &x));
  assert_int_equal(ax_evaluate(program, &x, &y), wanted);
  if (wanted == AX_OK) ax_tensor_release(y);
  ax_tensor_release(x);
  ax_program_release(program);
}

static void cores_that_go_round_are_told(void **state) {
  (void)state;
  static const struct { ax_function body; const char *first, *second; } cases[] = {
      {one_reads, "device 0, core 0 goes round in while", "device 0, core 1 waits in semaphore_wait"},
      {both_read, "device 0, core 0 goes round in while", "device 0, core 1 goes round in while"},
      {one_loads, "device 0, core 0 goes round in while", "device 0, core 1 waits in semaphore_wait"},
      {one_locks, "device 0, core 0 goes round in while", "device 0, core 1 waits in semaphore_wait"},
      {both_lock, "device 0, core 0 goes round in while", "device 0, core 1 goes round in while"},
      {counts_to_100, "device 0, core 0 goes round in while", "device 0, core 1 waits in semaphore_wait"},
      {stores_and_copies, "device 0, core 0 goes round in while", "device 0, core 1 waits in semaphore_wait"}};
  for (size_t i = 0; i < AX_COUNT(cases); i++) {
    run_every_way(cases[i].body, AX_DEADLOCK, cases[i].first, cases[i].second);
    if (cases[i].body != stores_and_copies) evaluate(cases[i].body, AX_DEADLOCK);
  }
}

static void cores_that_are_let_go_are_not(void **state) {
  (void)state;
  const ax_function bodies[] = {is_set, is_set_under_lock, is_late};
  for (size_t i = 0; i < AX_COUNT(bodies); i++) {
    run_every_way(bodies[i], AX_OK, "", "");
    evaluate(bodies[i], AX_OK);
  }
  for (uint64_t seed = 1; seed <= 10; seed++)
    run(takes_in_turn, &(ax_runtime_options){.workers = 2, .policy = AX_POLICY_SEEDED, .seed = seed}, AX_OK, "", "");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(cores_that_go_round_are_told), cmocka_unit_test(cores_that_are_let_go_are_not)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
