/* Calls of the host: how often they are made, by whom and in which order, under every policy and as reference evaluation makes
   them; what goes wrong in them. */
#include <unistd.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "axle/axle.h"
#include "support/cmocka.h"
#include "support/host.h"
#include "support/oom.h"
#include "support/run.h"

/* What is written down is the same each way; `sorted`: but for the order of lines. */
static void same_each_way(const char *text, bool sorted, const char *wanted) {
  ax_program *program = test_parsed(text);
  test_log reference;
  test_log_begin(&reference);
  test_evaluate_calls(program, &reference);
  if (sorted) test_log_sort(&reference);
  if (wanted != NULL) assert_string_equal(test_log_text(&reference), wanted);
  for (size_t w = 0; w < test_order_count; w++) {
    test_log log;
    test_log_begin(&log);
    ax_runtime *runtime = test_host_runtime(test_orders[w], &log);
    for (int again = 0; again < 2; again++) { /* the second run is by the same state */
      ax_text_deinit(&log.text);
      TEST_OK(test_run_calls(runtime, program, NULL));
      if (sorted) test_log_sort(&log);
      assert_string_equal(test_log_text(&log), test_log_text(&reference));
    }
    ax_runtime_release(runtime);
    test_log_end(&log);
  }
  test_log_end(&reference);
  ax_program_release(program);
}

/* --- Who calls, how often, in which order --- */

#define MAP(in, out) "shard_map[mesh=(d=3,) unchecked=false in_specs=(" in ") out_specs=(" out ")"

static void ordered_calls(void **state) {
  (void)state;
  same_each_way("{ lambda x:f32[6]. let\n"
                " = ordered_debug_print[axes=() format=\"whole {}\"] x\n"
                " y:f32[6] = " MAP("P(d)", "P(d)") " body={ axes d=3 ; lambda a:f32[2]{V:d}. let\n"
                "   = ordered_debug_print[axes=(d) format=\"block {:.1f}\"] a\n"
                "   b:f32[2]{V:d} = scan[length=2 reverse=false num_consts=0 num_carry=1 body={ axes d=3 ; lambda a:f32[2]{V:d}. let\n"
                "     b:f32[2]{V:d} = ordered_io_callback[axes=(d) callback=\"count\" types=(f32[2])] a in (b) }] a in (b) }] x\n"
                " z:f32[6] = ordered_io_callback[axes=() callback=\"count\" types=(f32[6])] y in (z) }",
                false,
                "whole [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]\n"
                "block [1.0, 2.0]\nblock [3.0, 4.0]\nblock [5.0, 6.0]\n"
                "device 0: count(1)\ndevice 1: count(3)\ndevice 2: count(5)\n"
                "device 0: count(2)\ndevice 1: count(4)\ndevice 2: count(6)\n"
                "device 0: count(3)\n");
  /* in branches and loops that all devices go through alike */
  same_each_way("{ lambda x:f32[6] n:s32[]. let\n"
                " y:f32[6] = " MAP("P(d), P()", "P(d)") " body={ axes d=3 ; lambda a:f32[2]{V:d} n:s32[]. let\n"
                "   i:s32[] b:f32[2]{V:d} = while[cond={ axes d=3 ; lambda i:s32[] a:f32[2]{V:d}. let c:bool[] = lt i 3:s32[] in (c) } cond_nconsts=0\n"
                "     body={ axes d=3 ; lambda i:s32[] a:f32[2]{V:d}. let\n"
                "       b:f32[2]{V:d} = cond[branches=({ axes d=3 ; lambda a:f32[2]{V:d}. let in (a) },\n"
                "         { axes d=3 ; lambda a:f32[2]{V:d}. let b:f32[2]{V:d} = ordered_io_callback[axes=(d) callback=\"count\" types=(f32[2])] a in (b) })] i a\n"
                "       j:s32[] = add i 1:s32[] in (j, b) } body_nconsts=0] 0:s32[] a in (b) }] x n in (y) }",
                false,
                "device 0: count(1)\ndevice 1: count(3)\ndevice 2: count(5)\n"
                "device 0: count(2)\ndevice 1: count(4)\ndevice 2: count(6)\n");
}

static void unordered_calls(void **state) {
  (void)state;
  same_each_way("{ lambda x:f32[6]. let\n"
                " = debug_print[axes=() format=\"whole {}\"] x\n = debug_print[axes=() format=\"whole {}\"] x\n"
                " y:f32[6] = " MAP("P(d)", "P(d)") " body={ axes d=3 ; lambda a:f32[2]{V:d}. let\n"
                "   = debug_print[axes=(d) format=\"here\"]\n"
                "   = debug_print[axes=() format=\"differs {}\"] a\n"
                "   i:s32[]{V:d} = axis_index[axes=(d)]\n"
                "   b:f32[2]{V:d} = cond[branches=({ axes d=3 ; lambda a:f32[2]{V:d}. let in (a) },\n"
                "       { axes d=3 ; lambda a:f32[2]{V:d}. let b:f32[2]{V:d} = io_callback[axes=(d) callback=\"count\" types=(f32[2])] a in (b) })] i a\n"
                "   in (b) }] x\n"
                " z:f32[6] = io_callback[axes=() callback=\"count\" types=(f32[6])] y in (x) }",
                true,
                "device 0: count(1)\ndevice 1: count(3)\ndevice 2: count(5)\n"
                "differs [1.0, 2.0]\ndiffers [3.0, 4.0]\ndiffers [5.0, 6.0]\nhere\nhere\nhere\n"
                "whole [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]\nwhole [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]\n");
}

/* Pure ones may go, be one, and are one where devices have the same. */
static void pure_calls(void **state) {
  (void)state;
  test_log log;
  double first[2];
  test_log_begin(&log);
  ax_runtime *runtime = test_host_runtime((ax_runtime_options){.workers = 2}, &log);
  ax_program *program = test_parsed("{ lambda x:f32[6]. let\n"
                               " a:f32[6] = pure_callback[vectorized=false callback=\"count\" types=(f32[6])] x\n"
                               " b:f32[6] = pure_callback[vectorized=false callback=\"count\" types=(f32[6])] x\n"
                               " c:f32[6] = pure_callback[vectorized=true callback=\"count\" types=(f32[6])] x\n"
                               " y:f32[6] = " MAP("P(), P()", "P()") " body={ axes d=3 ; lambda a:f32[6] b:f32[6]. let\n"
                               "   c:f32[6] = pure_callback[vectorized=false callback=\"count\" types=(f32[6])] a d:f32[6] = add b c in (d) }] a b in (y) }");
  TEST_OK(test_run_calls(runtime, program, first));
  assert_int_equal(log.calls, 2);
  TEST_NEAR(first[0], 5, 0);
  ax_program_release(program);
  ax_runtime_release(runtime);
  test_log_end(&log);
}

/* --- Many devices --- */

static ax_status slow_on_one(ax_callback_call *call, void *context) {
  if (call->device == 3) usleep(20000);
  return test_count_call(call, context);
}

static AX_BODY(many_body) {
  const ax_type type = ax_typeof(in[0]);
  ax_value a;
  ax_io_callback(((ax_callback **)context)[0], true, AX_LIST(1, in), AX_LIST(1, &type), &a);
  ax_io_callback(((ax_callback **)context)[0], false, AX_LIST(1, &a), AX_LIST(1, &type), &a);
  out[0] = ax_psum(a, "d");
}

static void many_devices(void **state) {
  (void)state;
  enum { devices = 1000 };
  for (size_t w = 0; w < test_order_count; w++) {
    test_log log;
    test_log_begin(&log);
    ax_runtime *runtime = test_host_runtime(test_orders[w], &log);
    ax_callback *slow = test_callback("slow", slow_on_one, &log);
    const test_map map = {.mesh = "d=1000", .in_specs = {"d"}, .out_specs = {""}, .body = many_body, .context = &slow};
    ax_program *program = test_trace_map(&map, (ax_type[]){TEST_TYPE(AX_F32, devices)});
    ax_executable *executable;
    TEST_OK(ax_compile(runtime, program, NULL, &executable));
    float x[devices], sum;
    for (int i = 0; i < devices; i++) x[i] = 0.25f * (float)i;
    ax_host_array in = ax_host_view(AX_F32, AX_DIMS(devices), x), out = {0};
    TEST_OK(ax_run_host(executable, &in, &out));
    sum = ((float *)out.data)[0];
    TEST_NEAR(sum, 0.25 * devices * (devices - 1) / 2 + 2 * devices, 1e-6);
    assert_int_equal(log.calls, 2 * devices);
    int next = 0; /* the ordered ones are in order among the others */
    for (const char *at = test_log_text(&log); *at != '\0'; at = strchr(at, '\n') + 1) {
      int device;
      double value;
      assert_int_equal(sscanf(at, "device %d: slow(%lf)", &device, &value), 2);
      if (value == 0.25 * device) assert_int_equal(device, next++);
    }
    assert_int_equal(next, devices);
    ax_host_array_release(&out);
    ax_executable_release(executable);
    ax_program_release(program);
    ax_callback_release(slow);
    ax_runtime_release(runtime);
    test_log_end(&log);
  }
}

/* Where types say nothing, a device may never come. */
static void never_comes(void **state) {
  (void)state;
  ax_program *program = test_parsed(
      "{ lambda x:f32[6]. let\n"
      " y:f32[6] = shard_map[mesh=(d=3,) unchecked=true in_specs=(P(d)) out_specs=(P(d)) body={ axes d=3? ; lambda a:f32[2]. let\n"
      "   i:s32[] = axis_index[axes=(d)]\n"
      "   j:s32[] = sub 1:s32[] i\n"
      "   = cond[branches=({ axes d=3? ; lambda a:f32[2]. let in () },\n"
      "       { axes d=3? ; lambda a:f32[2]. let = ordered_debug_print[axes=(d) format=\"{}\"] a in () })] i a in (a) }] x in (y) }");
  for (size_t w = 0; w < test_order_count; w++) {
    test_log log;
    test_log_begin(&log);
    ax_runtime *runtime = test_host_runtime(test_orders[w], &log);
    TEST_FAILS(test_run_calls(runtime, program, NULL), AX_DEADLOCK, "never come: device 0 (d=0), which has finished");
    assert_non_null(strstr(ax_message(), "at ordered_debug_print f32[2] over d"));
    ax_runtime_release(runtime);
    test_log_end(&log);
  }
  ax_program_release(program);
}

/* --- Without memory --- */

static ax_status copy_first(ax_callback_call *call, void *context) {
  ++*(uint32_t *)context;
  if (call->out_count > 0) memcpy(call->out[0].data, call->in[0].data, 2 * sizeof(float));
  return AX_OK;
}

static void count_texts(const char *text, void *context) { *(uint32_t *)context += text[0] == 'p'; }

static ax_status whole_way(void *context) {
  static const char text[] = "{ lambda x:f32[6]. let y:f32[6] = " MAP("P(d)", "P(d)") " body={ axes d=3 ; lambda a:f32[2]{V:d}. let\n"
                             "  = ordered_debug_print[axes=(d) format=\"p {:.2f}\"] a\n"
                             "  b:f32[2]{V:d} = io_callback[axes=(d) callback=\"copy\" types=(f32[2])] a\n"
                             "  c:f32[2]{V:d} = pure_callback[vectorized=false callback=\"copy\" types=(f32[2])] b in (c) }] x in (y) }";
  uint32_t *counts = context;
  ax_runtime *runtime = NULL;
  ax_program *program = NULL;
  ax_callback *copy = NULL;
  counts[0] = counts[1] = 0;
  ax_status status =
      ax_runtime_create(&(ax_runtime_options){.workers = 1, .print = count_texts, .print_context = &counts[1]}, &runtime);
  if (status == AX_OK) status = ax_callback_create("copy", copy_first, &counts[0], NULL, &copy);
  if (status == AX_OK) status = ax_runtime_register(runtime, copy);
  if (status == AX_OK) status = ax_program_parse(text, strlen(text), "t", &program);
  float x[6] = {1, 2, 3, 4, 5, 6};
  ax_host_array in = ax_host_view(AX_F32, AX_DIMS(6), x), out = {0};
  ax_executable *executable = NULL;
  if (status == AX_OK) status = ax_compile(runtime, program, NULL, &executable);
  if (status == AX_OK) status = ax_run_host(executable, &in, &out);
  if (status == AX_OK) assert_true(counts[0] == 6 && counts[1] == 3 && ((float *)out.data)[5] == 6);
  ax_host_array_release(&out);
  ax_executable_release(executable);
  ax_program_release(program);
  ax_callback_release(copy);
  ax_runtime_release(runtime);
  return status;
}

static void without_memory(void **state) {
  (void)state;
  uint32_t counts[2];
  TEST_OK(whole_way(counts));
  assert_true(test_each_allocation(whole_way, counts) > 40);
}

/* --- Failing --- */

static ax_status fail_on_device(ax_callback_call *call, void *context) {
  if (call->device != *(const int64_t *)context) return AX_OK;
  snprintf(call->message, AX_MESSAGE_BYTES, "no room on shelf %g", ax_host_at(&call->in[0], 0));
  return AX_IO_ERROR;
}

static ax_status fail_from_device(ax_callback_call *call, void *context) {
  if (call->device < *(const int64_t *)context) return AX_OK;
  snprintf(call->message, AX_MESSAGE_BYTES, "device %d has no room", (int)call->device);
  return AX_IO_ERROR;
}

static ax_status put_elsewhere(ax_callback_call *call, void *context) {
  call->out[0].data = context;
  return AX_OK;
}

/* Results are filled in where they are. */
static void other_memory_is_refused(void **state) {
  (void)state;
  static float other[6];
  for (size_t w = 0; w < test_order_count; w++) {
    test_log log;
    test_log_begin(&log);
    ax_runtime *runtime = test_host_runtime(test_orders[w], &log);
    ax_callback *elsewhere = test_callback("elsewhere", put_elsewhere, other);
    TEST_OK(ax_runtime_register(runtime, elsewhere));
    ax_program *program = test_parsed("{ lambda x:f32[6]. let\n y:f32[6] = io_callback[axes=() callback=\"elsewhere\" types=(f32[6])] x in (y) }");
    TEST_FAILS(test_run_calls(runtime, program, NULL), AX_INVALID_ARGUMENT, "the data of result 0 is other memory now");
    ax_program_release(program);
    ax_callback_release(elsewhere);
    ax_runtime_release(runtime);
    test_log_end(&log);
  }
}

/* Of several that fail the lowest device's is said, in whatever order they come, and of several places the first: another waits for
   devices that have gone no further. */
static void fails_alike(void **state) {
  (void)state;
  static const char *const prims[] = {"io_callback", "ordered_io_callback"};
  int64_t first = 1;
  for (size_t w = 0; w < 2 * test_order_count; w++) {
    test_log log;
    char text[512];
    test_log_begin(&log);
    ax_runtime *runtime = test_host_runtime(test_orders[w / 2], &log);
    ax_callback *shelf = test_callback("shelf", fail_from_device, &first);
    TEST_OK(ax_runtime_register(runtime, shelf));
    snprintf(text, sizeof text,
             "{ lambda x:f32[6]. let\n y:f32[6] = " MAP("P(d)", "P(d)") " body={ axes d=3 ; lambda a:f32[2]{V:d}. let\n"
             "   = %s[axes=(d) callback=\"shelf\" types=()] a\n b:f32[2] = psum[axes=(d,)] a\n = %s[axes=(d) callback=\"shelf\" types=()] b\n"
             " in (a) }] x in (y) }", prims[w % 2], prims[w % 2]);
    ax_program *program = test_parsed(text);
    for (int again = 0; again < 20; again++)
      TEST_FAILS(test_run_calls(runtime, program, NULL), AX_IO_ERROR,
                 "on device 1 (d=1): callback \"shelf\" failed (AX_IO_ERROR): device 1 has no room");
    assert_non_null(strstr(ax_message(), "line 3"));
    ax_program_release(program);
    ax_callback_release(shelf);
    ax_runtime_release(runtime);
    test_log_end(&log);
  }
}

static void fails_run(void **state) {
  (void)state;
  static const char *const prims[] = {"io_callback", "ordered_io_callback"};
  int64_t device = 1;
  for (size_t w = 0; w < 2 * test_order_count; w++) {
    test_log log;
    char text[512];
    test_log_begin(&log);
    ax_runtime *runtime = test_host_runtime(test_orders[w / 2], &log);
    ax_callback *shelf = test_callback("shelf", fail_on_device, &device);
    TEST_OK(ax_runtime_register(runtime, shelf));
    snprintf(text, sizeof text,
             "{ lambda x:f32[6]. let\n y:f32[6] = " MAP("P(d)", "P(d)") " body={ axes d=3 ; lambda a:f32[2]{V:d}. let\n"
             "   = %s[axes=(d) callback=\"shelf\" types=()] a\n in (a) }] x in (y) }", prims[w % 2]);
    ax_program *program = test_parsed(text);
    for (int again = 0; again < 2; again++) {
      TEST_FAILS(test_run_calls(runtime, program, NULL), AX_IO_ERROR,
                 "on device 1 (d=1): callback \"shelf\" failed (AX_IO_ERROR): no room on shelf 3");
      assert_non_null(strstr(ax_message(), "line 3"));
    }
    device = 5; /* and goes on when nothing fails */
    TEST_OK(test_run_calls(runtime, program, NULL));
    device = 1;
    ax_program_release(program);
    ax_callback_release(shelf);
    ax_runtime_release(runtime);
    test_log_end(&log);
  }
}

static void names(void **state) {
  (void)state;
  test_log log;
  test_log_begin(&log);
  ax_runtime *runtime = test_host_runtime((ax_runtime_options){.workers = 1}, &log);
  ax_program *program = test_parsed("{ lambda x:f32[2]. let = io_callback[axes=() callback=\"who\" types=()] x in (x) }");
  TEST_FAILS(test_run_calls(runtime, program, NULL), AX_INVALID_ARGUMENT,
             "no callback \"who\" is registered (ax_runtime_register)");
  ax_callback *who = test_callback("who", test_count_call, &log), *same = test_callback("who", test_count_call, &log),
              *other = test_callback("who", slow_on_one, &log);
  TEST_OK(ax_runtime_register(runtime, who));
  TEST_OK(ax_runtime_register(runtime, same));
  TEST_FAILS(ax_runtime_register(runtime, other), AX_INVALID_ARGUMENT, "another callback \"who\" is registered already");
  TEST_FAILS(ax_runtime_register(runtime, NULL), AX_INVALID_ARGUMENT, "there is no callback");
  assert_string_equal(ax_callback_name(who), "who");
  TEST_OK(test_run_calls(runtime, program, NULL));
  assert_int_equal(log.calls, 1);
  ax_callback *none;
  TEST_FAILS(ax_callback_create("", test_count_call, NULL, NULL, &none), AX_INVALID_ARGUMENT, "1 to 255 bytes");
  TEST_FAILS(ax_callback_create("x", NULL, NULL, NULL, &none), AX_INVALID_ARGUMENT, "has no function");
  TEST_FAILS(ax_callback_create(NULL, test_count_call, NULL, NULL, &none), AX_INVALID_ARGUMENT, "there is no name");
  ax_callback_release(who), ax_callback_release(same), ax_callback_release(other);
  ax_program_release(program);
  ax_runtime_release(runtime);
  test_log_end(&log);
}

/* --- Traced: references, equality, waiting --- */

static void let_go(void *context) { ++*(int *)context; }

static AX_BODY(call_once) {
  ax_io_callback(context, false, AX_LIST(1, in), AX_TYPES(AX_TYPE(AX_F32, 2)), out);
}

static void references(void **state) {
  (void)state;
  int released = 0;
  test_log log;
  ax_callback *made;
  test_log_begin(&log);
  ax_runtime *runtime = test_host_runtime((ax_runtime_options){.workers = 1}, &log);
  TEST_OK(ax_callback_create("c", test_count_call, &released, let_go, &made));
  ax_program *a = test_trace(call_once, made, (const ax_type[]){AX_TYPE(AX_F32, 2)}, 1, 1),
             *b = test_trace(call_once, made, (const ax_type[]){AX_TYPE(AX_F32, 2)}, 1, 1);
  ax_callback *like = test_callback("c", test_count_call, NULL);
  ax_program *c = test_trace(call_once, like, (const ax_type[]){AX_TYPE(AX_F32, 2)}, 1, 1);
  assert_true(ax_program_equal(a, b));
  assert_false(ax_program_equal(a, c)); /* another context */
  ax_callback_release(like);
  ax_callback_release(made);
  ax_executable *executable;
  TEST_OK(ax_compile(runtime, a, NULL, &executable));
  ax_program_release(a), ax_program_release(b), ax_program_release(c);
  assert_int_equal(released, 0);
  ax_executable_release(executable);
  assert_int_equal(released, 1);
  ax_runtime_release(runtime);
  test_log_end(&log);
}

/* A callback may compile and run other programs on the runtime it is called in. */
static AX_BODY(plus_one) { out[0] = ax_add(in[0], ax_real(1)); }

static ax_status run_and_copy(ax_callback_call *call, void *context) {
  ax_host_array out = {0};
  ax_status status = ax_apply(context, AX_FN(plus_one, 1, 1), call->in, &out);
  if (status != AX_OK) snprintf(call->message, AX_MESSAGE_BYTES, "%s", ax_message());
  if (status == AX_OK) memcpy(call->out[0].data, out.data, 2 * sizeof(float));
  ax_host_array_release(&out);
  return status;
}

static void runs_inside(void **state) {
  (void)state;
  static const char *const prims[] = {"io_callback", "ordered_io_callback"};
  for (size_t w = 0; w < 2 * test_order_count; w++) {
    test_log log;
    char text[512];
    double first[1];
    test_log_begin(&log);
    ax_runtime *runtime = test_host_runtime(test_orders[w / 2], &log);
    ax_callback *nest = test_callback("nest", run_and_copy, runtime);
    TEST_OK(ax_runtime_register(runtime, nest));
    snprintf(text, sizeof text,
             "{ lambda x:f32[6]. let\n y:f32[6] = " MAP("P(d)", "P(d)") " body={ axes d=3 ; lambda a:f32[2]{V:d}. let\n"
             "   b:f32[2]{V:d} = %s[axes=(d) callback=\"nest\" types=(f32[2])] a\n in (b) }] x in (y) }", prims[w % 2]);
    ax_program *program = test_parsed(text);
    TEST_OK(test_run_calls(runtime, program, first));
    TEST_NEAR(first[0], 2, 0);
    ax_program_release(program);
    ax_callback_release(nest);
    ax_runtime_release(runtime);
    test_log_end(&log);
  }
}

/* Runs without results are waited for by the runtime. */
static void waits_for_calls(void **state) {
  (void)state;
  test_log log;
  test_log_begin(&log);
  ax_runtime *runtime = test_host_runtime((ax_runtime_options){.workers = 3}, &log);
  ax_program *program = test_parsed("{ lambda x:f32[6]. let = " MAP("P(d)", "") " body={ axes d=3 ; lambda a:f32[2]{V:d}. let\n"
                               "   = debug_print[axes=(d) format=\"{}\"] a in () }] x in () }");
  ax_executable *executable;
  TEST_OK(ax_compile(runtime, program, NULL, &executable));
  test_use_threads(executable);
  ax_array *x;
  TEST_OK(ax_executable_put(executable, 0, ((float[6]){1, 2, 3, 4, 5, 6}), &x));
  enum { runs = 50 };
  for (int i = 0; i < runs; i++) TEST_OK(ax_run_start(executable, &x, NULL));
  ax_runtime_wait(runtime);
  uint32_t lines = 0;
  for (const char *c = test_log_text(&log); *c != '\0'; c++) lines += *c == '\n';
  assert_int_equal(lines, 3 * runs);
  ax_runtime_wait(NULL);
  ax_array_release(x);
  ax_executable_release(executable);
  ax_program_release(program);
  ax_runtime_release(runtime);
  test_log_end(&log);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(ordered_calls),
                                     cmocka_unit_test(unordered_calls),
                                     cmocka_unit_test(pure_calls),
                                     cmocka_unit_test(many_devices),
                                     cmocka_unit_test(never_comes),
                                     cmocka_unit_test(without_memory),
                                     cmocka_unit_test(fails_run), cmocka_unit_test(other_memory_is_refused), cmocka_unit_test(fails_alike),
                                     cmocka_unit_test(names),
                                     cmocka_unit_test(references),
                                     cmocka_unit_test(runs_inside),
                                     cmocka_unit_test(waits_for_calls)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
