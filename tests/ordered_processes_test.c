/* Ordered calls of the host in a run over several processes: the same calls in the same order as in one process, each made once,
   by the process that has its device, with results for all that see them. The processes are threads of this one
   (support/processes.h), so a log that all calls write to has their order. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "axle/callback.h"
#include "axle/collectives.h"
#include "axle/ops.h"
#include "support/cmocka.h"
#include "support/random.h"
#include "support/run.h"
#include "support/spreads.h"

static struct {
  pthread_mutex_t lock;
  char text[16384];
  size_t length;
  uint32_t calls;
  int64_t fails; /* the call that fails; -1 */
} written = {.lock = PTHREAD_MUTEX_INITIALIZER, .fails = -1};

static void begin_log(void) {
  written.length = written.calls = 0;
  written.text[0] = '\0';
}

/* context: the name of the place. Each element of the results is the operand's and the number of the call. */
static ax_status note(ax_callback_call *call, void *context) {
  pthread_mutex_lock(&written.lock);
  const uint32_t number = written.calls++;
  written.length += (size_t)snprintf(written.text + written.length, sizeof written.text - written.length, "%s%lld(%g) ",
                                     (const char *)context, (long long)call->device, ((const float *)call->in[0].data)[0]);
  pthread_mutex_unlock(&written.lock);
  assert_true(written.length < sizeof written.text);
  for (uint32_t k = 0; k < call->out_count; k++)
    for (int64_t i = 0; i < ax_dims_elems(call->out[k].rank, call->out[k].dims); i++)
      ((float *)call->out[k].data)[i] = ((const float *)call->in[0].data)[0] + (float)(i % 7) + (float)number;
  if (number != written.fails) return AX_OK;
  snprintf(call->message, AX_MESSAGE_BYTES, "call %u is one too many", number);
  return AX_INVALID_ARGUMENT;
}

static ax_callback *place_a, *place_b, *place_c;

static int make_places(void **state) {
  (void)state;
  TEST_OK(ax_callback_create("a", note, "a", NULL, &place_a));
  TEST_OK(ax_callback_create("b", note, "b", NULL, &place_b));
  TEST_OK(ax_callback_create("c", note, "c", NULL, &place_c));
  return 0;
}
static int release_places(void **state) {
  (void)state;
  ax_callback_release(place_a);
  ax_callback_release(place_b);
  ax_callback_release(place_c);
  return 0;
}

/* --- Programs --- */

static ax_value called(ax_callback *callback, ax_value x, ax_type type) {
  ax_value out;
  ax_io_callback(callback, true, AX_VALUES(x), AX_LIST(1, &type), &out);
  return out;
}
static void told(ax_callback *callback, ax_value x) { (ax_io_callback)(callback, true, 1, &x, 0, NULL, 0, NULL); }

/* Devices of all processes, one after the other; with results, and without. */
static void at_two_places(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  told(place_a, in[0]);
  ax_value made = called(place_b, in[0], ax_array_type(AX_F32, AX_DIMS(2)));
  out[0] = ax_add(in[0], made);
}

static void step(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  told(place_a, in[0]);
  out[0] = called(place_b, ax_psum(in[0], "x"), ax_array_type(AX_F32, AX_DIMS(2)));
  told(place_c, out[0]);
}
static void looped(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_scan(AX_FN(step, 1, 1), 1, 3, false, in, out);
}

typedef struct whole {
  ax_mesh mesh;
  int64_t elems;
} whole;
static void blocks(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  told(place_a, in[0]);
  out[0] = ax_add(in[0], ax_psum(in[0], "x"));
}

/* Outside of the shard_map one call for all devices: its results are short or long, and all processes need them. */
static void around_a_map(const ax_value *in, ax_value *out, void *context) {
  const whole *w = context;
  const ax_type type = ax_array_type(AX_F32, AX_DIMS(w->elems));
  ax_value x = called(place_b, in[0], type), y;
  ax_shard_map(&w->mesh, "x -> x", AX_FN(blocks, 1, 1), &x, &y);
  told(place_c, y);
  out[0] = called(place_b, y, type);
  out[1] = ax_mul(x, y);
}

static ax_program *map_of(const char *mesh, const char *spec, ax_function body, int64_t elems) {
  const ax_type type = ax_array_type(AX_F32, AX_DIMS(elems));
  return test_trace_map(&(test_map){mesh, {spec}, {spec}, .unchecked = true, .body = body}, &type);
}

static ax_program *program_of(int number) {
  static whole few = {.elems = 16}, many = {.elems = 4096};
  ax_program *program;
  if (number == 0) return map_of("x=8", "x", at_two_places, 16);
  if (number == 1) return map_of("x=4,y=2", "x+y", at_two_places, 16);
  if (number == 2) return map_of("x=4,y=2", "x+y", looped, 16);
  whole *w = number == 3 ? &few : &many;
  TEST_OK(ax_mesh_parse(number == 3 ? "x=8" : "y=2,x=4", &w->mesh));
  const ax_type type = ax_array_type(AX_F32, AX_DIMS(w->elems));
  TEST_OK(ax_trace(AX_CLOSURE(around_a_map, 1, 2, w), &type, &program));
  return program;
}
enum { programs = 5 };

/* --- Processes --- */

static const uint32_t turned[] = {1, 1, 1, 1, 0, 0, 0, 0};
static const test_spread spreads[] = {
    {.processes = 2, .workers = 1},
    {.processes = 8, .workers = 1, .delays = true, .seed = 1},
    {.processes = 2, .workers = 2, .listed = 8, .of = test_alternating, .delays = true, .seed = 2},
    {.processes = 3, .workers = 2, .listed = 8, .of = test_scattered, .delays = true, .seed = 3},
    {.processes = 2, .workers = 1, .listed = 8, .of = turned, .policy = AX_POLICY_SEEDED, .seed = 4},
    {.processes = 4, .workers = 1, .listed = 8, .of = test_with_empty_ones, .policy = AX_POLICY_SEEDED, .delays = true, .seed = 5},
};

static void numbers(ax_program *program, ax_tensor **in) {
  test_random random = {11};
  *in = test_random_tensor(&random, *ax_program_in_type(program, 0), 1, 9);
}

static void the_order_is_that_of_one_process(void **state) {
  (void)state;
  for (int p = 0; p < programs; p++) {
    ax_program *program = program_of(p);
    const uint32_t count = ax_program_out_count(program);
    ax_tensor *in, *wanted[2], *got[2];
    char order[sizeof written.text];
    numbers(program, &in);
    begin_log();
    TEST_OK(test_in_processes(program, &(test_spread){.processes = 1, .workers = 1}, &in, wanted, NULL));
    strcpy(order, written.text);
    assert_true(written.calls > 2);
    for (size_t i = 0; i < AX_COUNT(spreads); i++) {
      begin_log();
      TEST_OK(test_in_processes(program, &spreads[i], &in, got, NULL));
      if (strcmp(order, written.text) != 0) fail_msg("program %d, spread %zu:\n  %s\nand not\n  %s", p, i, written.text, order);
      for (uint32_t k = 0; k < count; k++)
        if (!test_same_tensors(wanted[k], got[k])) fail_msg("program %d, spread %zu: result %u", p, i, k);
      test_release(got, count);
    }
    test_release(wanted, count);
    ax_tensor_release(in);
    ax_program_release(program);
  }
}

/* A call that fails is the last one: those before it are made, and no other. */
static void after_a_failure_there_are_no_calls(void **state) {
  (void)state;
  ax_program *program = program_of(2);
  ax_tensor *in;
  char order[sizeof written.text], said[8192], message[8192];
  numbers(program, &in);
  for (written.fails = 0; written.fails < 40; written.fails += 13) {
    begin_log();
    const test_spread one = {.processes = 1, .workers = 1};
    assert_int_equal(test_in_processes(program, &one, &in, NULL, said), AX_INVALID_ARGUMENT);
    strcpy(order, written.text);
    for (size_t i = 0; i < AX_COUNT(spreads); i++) {
      begin_log();
      assert_int_equal(test_in_processes(program, &spreads[i], &in, NULL, message), AX_INVALID_ARGUMENT);
      assert_string_equal(written.text, order);
      assert_string_equal(strstr(message, ": ") + 2, said);
    }
  }
  written.fails = -1;
  ax_tensor_release(in);
  ax_program_release(program);
}

/* --- Where a device never comes --- */

static void pass_by(const ax_value *in, ax_value *out, void *context) {
  (void)in, (void)out, (void)context;
}
static void tell(const ax_value *in, ax_value *out, void *context) {
  (void)out, (void)context;
  told(place_a, in[0]);
}
static void but_for_device_2(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value index = ax_axis_index("x");
  ax_if(ax_eq(index, ax_full_like(index, 2)), AX_FN(pass_by, 1, 0), AX_FN(tell, 1, 0), in, NULL);
  out[0] = in[0];
}

static void a_device_that_never_comes_is_named(void **state) {
  (void)state;
  ax_program *program = map_of("x=4", "x", but_for_device_2, 4);
  ax_tensor *in;
  char message[8192];
  numbers(program, &in);
  for (size_t i = 0; i < AX_COUNT(spreads); i++) {
    begin_log();
    assert_int_equal(test_in_processes(program, &spreads[i], &in, NULL, message), AX_DEADLOCK);
    assert_int_equal(written.calls, 2);
    assert_non_null(strstr(message, "at ordered_io_callback f32[1] over x"));
    assert_non_null(strstr(message, "device 2 (x=2)"));
  }
  assert_int_equal(test_in_processes(program, &(test_spread){.processes = 4, .workers = 1}, &in, NULL, message), AX_DEADLOCK);
  assert_non_null(strstr(message, "device 3 (x=3)\n    not heard of: "));
  ax_tensor_release(in);
  ax_program_release(program);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(the_order_is_that_of_one_process, make_places, release_places),
      cmocka_unit_test_setup_teardown(after_a_failure_there_are_no_calls, make_places, release_places),
      cmocka_unit_test_setup_teardown(a_device_that_never_comes_is_named, make_places, release_places),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
