/* Calls of the host: how often they are made, by whom and in which order, under every policy and as reference evaluation makes them; what
   transforms make of them; what goes wrong in them; formats. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "axle/axle.h"
#include "exec/exec.h"
#include "ir/text.h"
#include "prim/format.h"
#include "support/cmocka.h"
#include "support/oom.h"
#include "support/random.h"
#include "support/run.h"

/* --- What is printed and called is written down --- */

typedef struct log {
  pthread_mutex_t lock;
  ax_text text;
  uint32_t calls;
} log_of;

static void log_begin(log_of *log) {
  *log = (log_of){.calls = 0};
  pthread_mutex_init(&log->lock, NULL);
}

static void log_end(log_of *log) {
  ax_text_deinit(&log->text);
  pthread_mutex_destroy(&log->lock);
}

static void print_to_log(const char *text, void *context) {
  log_of *log = context;
  pthread_mutex_lock(&log->lock);
  ax_text_add(&log->text, "%s", text);
  pthread_mutex_unlock(&log->lock);
}

static int by_text(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

static const char *text_of(const log_of *log) { return log->text.data != NULL ? log->text.data : ""; }

/* The lines, sorted. */
static void sort_lines(log_of *log) {
  char *lines[4096], *text = log->text.data;
  uint32_t count = 0;
  ax_text sorted = {0};
  for (char *line = text != NULL ? strtok(text, "\n") : NULL; line != NULL; line = strtok(NULL, "\n")) {
    assert_true(count < AX_COUNT(lines));
    lines[count++] = line;
  }
  qsort(lines, count, sizeof lines[0], by_text);
  for (uint32_t i = 0; i < count; i++) ax_text_add(&sorted, "%s\n", lines[i]);
  ax_text_deinit(&log->text);
  log->text = sorted;
}

/* --- Callbacks --- */

/* "device 2: count(1.5)" for the first element of each operand; every result's elements are the first operand's, plus one. */
static ax_status count_call(ax_callback_call *call, void *context) {
  log_of *log = context;
  pthread_mutex_lock(&log->lock);
  log->calls++;
  ax_text_add(&log->text, "device %lld: %s(", (long long)call->device, call->name);
  for (uint32_t i = 0; i < call->in_count; i++) ax_text_add(&log->text, "%s%g", i > 0 ? ", " : "", ax_host_at(&call->in[i], 0));
  ax_text_add(&log->text, ")\n");
  pthread_mutex_unlock(&log->lock);
  for (uint32_t k = 0; k < call->out_count; k++) {
    const ax_type type = ax_array_type(call->out[k].dtype, call->out[k].rank, call->out[k].dims);
    for (int64_t i = 0; i < ax_type_elems(&type); i++) {
      assert_true(ax_host_at(&call->out[k], i) == 0);
      double value = call->in_count > 0 ? ax_host_at(&call->in[0], i) + 1 : 1;
      if (type.dtype == AX_F32) ((float *)call->out[k].data)[i] = (float)value;
      else ((int32_t *)call->out[k].data)[i] = (int32_t)value;
    }
  }
  return AX_OK;
}

static ax_callback *new_callback(const char *name, ax_callback_function function, void *context) {
  ax_callback *made;
  TEST_OK(ax_callback_create(name, function, context, NULL, &made));
  return made;
}

static ax_runtime *new_runtime(ax_runtime_options options, log_of *log) {
  ax_runtime *runtime;
  options.print = print_to_log;
  options.print_context = log;
  TEST_OK(ax_runtime_create(&options, &runtime));
  ax_callback *count = new_callback("count", count_call, log);
  TEST_OK(ax_runtime_register(runtime, count));
  ax_callback_release(count);
  return runtime;
}

/* --- Programs as texts --- */

static ax_program *parsed(const char *text) {
  ax_program *program;
  TEST_OK(ax_program_parse(text, strlen(text), "t", &program));
  return program;
}

/* Runs it on 1, 2, 3, .. in each input, its calls written to the log; first[k]: the first element of result k, NULL: not wanted. */
static ax_status run_program(ax_runtime *runtime, ax_program *program, double *first) {
  ax_executable *executable;
  ax_array *in[8] = {NULL}, *out[8] = {NULL};
  uint32_t in_count = ax_program_in_count(program), out_count = ax_program_out_count(program);
  AX_TRY(ax_compile(runtime, program, NULL, &executable));
  test_use_threads(executable);
  for (uint32_t i = 0; i < in_count; i++) {
    double values[64];
    for (int v = 0; v < 64; v++) values[v] = v + 1;
    ax_tensor *tensor = test_tensor(*ax_program_in_type(program, i), values);
    TEST_OK(ax_executable_put(executable, i, tensor->data, &in[i]));
    ax_tensor_release(tensor);
  }
  ax_status status = ax_run(executable, in_count, in, out_count, out);
  for (uint32_t k = 0; k < out_count && status == AX_OK && first != NULL; k++) {
    ax_host_array host = {0};
    TEST_OK(ax_array_to_host(out[k], &host));
    first[k] = ax_host_at(&host, 0);
    ax_host_array_release(&host);
  }
  for (uint32_t i = 0; i < 8; i++) ax_array_release(in[i]), ax_array_release(out[i]);
  ax_executable_release(executable);
  return status;
}

static void evaluate(ax_program *program, log_of *log) {
  ax_tensor *in[8] = {NULL}, *out[8] = {NULL};
  ax_callbacks callbacks = {.count = 0};
  ax_callbacks_init(&callbacks);
  ax_callback *count = new_callback("count", count_call, log);
  TEST_OK(ax_callbacks_add(&callbacks, count));
  const ax_hooks hooks = {&callbacks, print_to_log, log};
  for (uint32_t i = 0; i < program->in_count; i++) {
    double values[64];
    for (int v = 0; v < 64; v++) values[v] = v + 1;
    in[i] = test_tensor(program->types[i], values);
  }
  TEST_OK(ax_evaluate_on(&hooks, program, in, out));
  test_release(in, program->in_count);
  test_release(out, program->out_count);
  ax_callback_release(count);
  ax_callbacks_deinit(&callbacks);
}

static const ax_runtime_options ways[] = {
    {.policy = AX_POLICY_FIXED},           {.policy = AX_POLICY_SEEDED, .seed = 1}, {.policy = AX_POLICY_SEEDED, .seed = 2},
    {.policy = AX_POLICY_SEEDED, .seed = 3}, {.workers = 1},                          {.workers = 2},
    {.workers = 5}};

/* What is written down is the same each way; `sorted`: but for the order of lines. */
static void same_each_way(const char *text, bool sorted, const char *wanted) {
  ax_program *program = parsed(text);
  log_of reference;
  log_begin(&reference);
  evaluate(program, &reference);
  if (sorted) sort_lines(&reference);
  if (wanted != NULL) assert_string_equal(text_of(&reference), wanted);
  for (size_t w = 0; w < AX_COUNT(ways); w++) {
    log_of log;
    log_begin(&log);
    ax_runtime *runtime = new_runtime(ways[w], &log);
    for (int again = 0; again < 2; again++) { /* the second run is by the same state */
      ax_text_deinit(&log.text);
      TEST_OK(run_program(runtime, program, NULL));
      if (sorted) sort_lines(&log);
      assert_string_equal(text_of(&log), text_of(&reference));
    }
    ax_runtime_release(runtime);
    log_end(&log);
  }
  log_end(&reference);
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
  log_of log;
  double first[2];
  log_begin(&log);
  ax_runtime *runtime = new_runtime((ax_runtime_options){.workers = 2}, &log);
  ax_program *program = parsed("{ lambda x:f32[6]. let\n"
                               " a:f32[6] = pure_callback[vectorized=false callback=\"count\" types=(f32[6])] x\n"
                               " b:f32[6] = pure_callback[vectorized=false callback=\"count\" types=(f32[6])] x\n"
                               " c:f32[6] = pure_callback[vectorized=true callback=\"count\" types=(f32[6])] x\n"
                               " y:f32[6] = " MAP("P(), P()", "P()") " body={ axes d=3 ; lambda a:f32[6] b:f32[6]. let\n"
                               "   c:f32[6] = pure_callback[vectorized=false callback=\"count\" types=(f32[6])] a d:f32[6] = add b c in (d) }] a b in (y) }");
  TEST_OK(run_program(runtime, program, first));
  assert_int_equal(log.calls, 2);
  TEST_NEAR(first[0], 5, 0);
  ax_program_release(program);
  ax_runtime_release(runtime);
  log_end(&log);
}

/* --- Many devices --- */

static ax_status slow_on_one(ax_callback_call *call, void *context) {
  if (call->device == 3) usleep(20000);
  return count_call(call, context);
}

static AX_BODY(many_body) {
  const ax_type type = ax_typeof(in[0]);
  ax_value a;
  ax_io_callback(((ax_callback **)context)[0], true, 1, in, 1, &type, &a);
  ax_io_callback(((ax_callback **)context)[0], false, 1, &a, 1, &type, &a);
  out[0] = ax_psum(a, "d");
}

static void many_devices(void **state) {
  (void)state;
  enum { devices = 1000 };
  for (size_t w = 0; w < AX_COUNT(ways); w++) {
    log_of log;
    log_begin(&log);
    ax_runtime *runtime = new_runtime(ways[w], &log);
    ax_callback *slow = new_callback("slow", slow_on_one, &log);
    const test_map map = {.mesh = "d=1000", .in_specs = {"d"}, .out_specs = {""}, .body = many_body, .context = &slow};
    ax_program *program = test_trace_map(&map, (ax_type[]){TEST_TYPE(AX_F32, devices)});
    ax_executable *executable;
    TEST_OK(ax_compile(runtime, program, NULL, &executable));
    float x[devices], sum;
    for (int i = 0; i < devices; i++) x[i] = 0.25f * (float)i;
    ax_host_array in = ax_host_view(AX_F32, AX_DIMS(devices), x), out = {0};
    TEST_OK(ax_run_host(executable, 1, &in, 1, &out));
    sum = ((float *)out.data)[0];
    TEST_NEAR(sum, 0.25 * devices * (devices - 1) / 2 + 2 * devices, 1e-6);
    assert_int_equal(log.calls, 2 * devices);
    int next = 0; /* the ordered ones are in order among the others */
    for (const char *at = text_of(&log); *at != '\0'; at = strchr(at, '\n') + 1) {
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
    log_end(&log);
  }
}

/* Where types say nothing, a device may never come. */
static void never_comes(void **state) {
  (void)state;
  ax_program *program = parsed("{ lambda x:f32[6]. let\n"
                               " y:f32[6] = shard_map[mesh=(d=3,) unchecked=true in_specs=(P(d)) out_specs=(P(d)) body={ axes d=3? ; lambda a:f32[2]. let\n"
                               "   i:s32[] = axis_index[axes=(d)]\n"
                               "   j:s32[] = sub 1:s32[] i\n"
                               "   = cond[branches=({ axes d=3? ; lambda a:f32[2]. let in () },\n"
                               "       { axes d=3? ; lambda a:f32[2]. let = ordered_debug_print[axes=(d) format=\"{}\"] a in () })] i a in (a) }] x in (y) }");
  for (size_t w = 0; w < AX_COUNT(ways); w++) {
    log_of log;
    log_begin(&log);
    ax_runtime *runtime = new_runtime(ways[w], &log);
    TEST_FAILS(run_program(runtime, program, NULL), AX_DEADLOCK, "never come: device 0 (d=0), which has finished");
    assert_non_null(strstr(ax_message(), "at ordered_debug_print f32[2] over d"));
    ax_runtime_release(runtime);
    log_end(&log);
  }
  ax_program_release(program);
}

/* --- At random --- */

/* A body made of calls, collectives, loops and branches, which all devices go through alike. */
typedef struct maker {
  test_random random;
  ax_callback *count;
  uint32_t depth, left; /* how much more may be made */
} maker;

static uint32_t below(maker *m, uint32_t n) { return (uint32_t)(ax_next_random(&m->random.state) % n); }

static AX_BODY(make_body);

static AX_BODY(is_small) { out[0] = ax_lt(in[0], ax_integer(2)); }
static AX_BODY(make_step) {
  make_body(in + 1, out + 1, context);
  out[0] = ax_add(in[0], ax_integer(1));
}

static ax_value make_region(maker *m, ax_value x) {
  ax_value made[2];
  m->depth++;
  switch (below(m, 4)) {
    case 0: ax_scan(AX_CLOSURE(make_body, 1, 1, m), 1, below(m, 4), false, &x, made); break;
    case 1: ax_closed_call(AX_CLOSURE(make_body, 1, 1, m), &x, made); break;
    case 2: {
      ax_value some = ax_gt(ax_psum(ax_reduce_sum(x, AX_ALL_DIMS, false), "d"), ax_real(0));
      ax_if(some, AX_CLOSURE(make_body, 1, 1, m), AX_CLOSURE(make_body, 1, 1, m), &x, made);
      break;
    }
    default: {
      ax_value start[] = {ax_full(AX_S32, 0, NULL, 0), x};
      ax_while(AX_FN(is_small, 2, 1), AX_CLOSURE(make_step, 2, 2, m), start, made);
      made[0] = made[1];
    }
  }
  m->depth--;
  return made[0];
}

static ax_value make_one(maker *m, ax_value x) {
  ax_value y = x, all;
  const ax_type type = ax_typeof(x);
  switch (below(m, 9)) {
    case 0: ax_debug_print("o {:.4f}", true, 1, &x); return x;
    case 1: ax_debug_print("u {:.4f}", false, 1, &x); return x;
    case 2: ax_debug_print("o once", true, 0, NULL); return ax_sin(x);
    case 3: ax_io_callback(m->count, true, 1, &x, 1, &type, &y); return ax_sub(y, ax_real(1));
    case 4: ax_io_callback(m->count, false, 1, &x, 0, NULL, NULL); return x;
    case 5: ax_pure_callback(m->count, false, 1, &x, 1, &type, &y); return ax_sub(y, ax_real(1));
    case 6: all = ax_pmean(x, "d"); return ax_add(ax_mul(x, ax_real(0.5)), all);
    default: return m->depth < 3 && m->left > 0 ? make_region(m, x) : ax_sin(x);
  }
}

static AX_BODY(make_body) {
  maker *m = context;
  ax_value x = in[0];
  for (uint32_t i = 2 + below(m, 4); i > 0 && m->left > 0; i--, m->left--) x = make_one(m, x);
  out[0] = ax_add(x, ax_mul(in[0], ax_real(0)));
}

/* Keeps the ordered lines, as they are, and the others sorted. */
static void split_lines(const log_of *from, log_of *ordered, log_of *others) {
  for (const char *at = text_of(from); *at != '\0'; at = strchr(at, '\n') + 1) {
    log_of *to = *at == 'o' ? ordered : others;
    ax_text_add_bytes(&to->text, at, (size_t)(strchr(at, '\n') + 1 - at));
  }
  sort_lines(others);
}

static ax_status count_unseen(ax_callback_call *call, void *context) { /* as count_call, of which the name says whether it is in order */
  (void)context;
  for (uint32_t k = 0; k < call->out_count; k++)
    for (int64_t i = 0; i < 2; i++) ((float *)call->out[k].data)[i] = (float)(ax_host_at(&call->in[0], i) + 1);
  return AX_OK;
}

static void one_at_random(uint64_t seed, bool show) {
  log_of wanted, wanted_ordered, wanted_others;
  log_begin(&wanted), log_begin(&wanted_ordered), log_begin(&wanted_others);
  ax_callback *count = new_callback("count", count_unseen, NULL);
  maker m = {.random = {seed}, .count = count, .left = 25};
  const test_map map = {.mesh = "d=4", .in_specs = {"d"}, .out_specs = {"d"}, .body = make_body, .context = &m};
  ax_program *program = test_trace_map(&map, (ax_type[]){TEST_TYPE(AX_F32, 8)});
  if (show) test_show_program(program);
  evaluate(program, &wanted);
  split_lines(&wanted, &wanted_ordered, &wanted_others);
  for (size_t w = 0; w < AX_COUNT(ways); w++) {
    log_of log, ordered, others;
    log_begin(&log), log_begin(&ordered), log_begin(&others);
    ax_runtime *runtime = new_runtime(ways[w], &log);
    TEST_OK(run_program(runtime, program, NULL));
    split_lines(&log, &ordered, &others);
    if (strcmp(text_of(&ordered), text_of(&wanted_ordered)) != 0 || strcmp(text_of(&others), text_of(&wanted_others)) != 0)
      fail_msg("seed %llu, way %zu:\n%s%s\nnot\n%s%s", (unsigned long long)seed, w, text_of(&ordered), text_of(&others), text_of(&wanted_ordered),
               text_of(&wanted_others));
    ax_runtime_release(runtime);
    log_end(&log), log_end(&ordered), log_end(&others);
  }
  ax_program_release(program);
  ax_callback_release(count);
  log_end(&wanted), log_end(&wanted_ordered), log_end(&wanted_others);
}

static void at_random(void **state) {
  (void)state;
  test_each_seed(40, one_at_random);
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
  ax_status status = ax_runtime_create(&(ax_runtime_options){.workers = 1, .print = count_texts, .print_context = &counts[1]}, &runtime);
  if (status == AX_OK) status = ax_callback_create("copy", copy_first, &counts[0], NULL, &copy);
  if (status == AX_OK) status = ax_runtime_register(runtime, copy);
  if (status == AX_OK) status = ax_program_parse(text, strlen(text), "t", &program);
  float x[6] = {1, 2, 3, 4, 5, 6};
  ax_host_array in = ax_host_view(AX_F32, AX_DIMS(6), x), out = {0};
  ax_executable *executable = NULL;
  if (status == AX_OK) status = ax_compile(runtime, program, NULL, &executable);
  if (status == AX_OK) status = ax_run_host(executable, 1, &in, 1, &out);
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

static void fails_run(void **state) {
  (void)state;
  static const char *const prims[] = {"io_callback", "ordered_io_callback"};
  int64_t device = 1;
  for (size_t w = 0; w < 2 * AX_COUNT(ways); w++) {
    log_of log;
    char text[512];
    log_begin(&log);
    ax_runtime *runtime = new_runtime(ways[w / 2], &log);
    ax_callback *shelf = new_callback("shelf", fail_on_device, &device);
    TEST_OK(ax_runtime_register(runtime, shelf));
    snprintf(text, sizeof text,
             "{ lambda x:f32[6]. let\n y:f32[6] = " MAP("P(d)", "P(d)") " body={ axes d=3 ; lambda a:f32[2]{V:d}. let\n"
             "   = %s[axes=(d) callback=\"shelf\" types=()] a\n in (a) }] x in (y) }", prims[w % 2]);
    ax_program *program = parsed(text);
    for (int again = 0; again < 2; again++) {
      TEST_FAILS(run_program(runtime, program, NULL), AX_IO_ERROR, "on device 1 (d=1): callback \"shelf\" failed (AX_IO_ERROR): no room on shelf 3");
      assert_non_null(strstr(ax_message(), "line 3"));
    }
    device = 5; /* and goes on when nothing fails */
    TEST_OK(run_program(runtime, program, NULL));
    device = 1;
    ax_program_release(program);
    ax_callback_release(shelf);
    ax_runtime_release(runtime);
    log_end(&log);
  }
}

static void names(void **state) {
  (void)state;
  log_of log;
  log_begin(&log);
  ax_runtime *runtime = new_runtime((ax_runtime_options){.workers = 1}, &log);
  ax_program *program = parsed("{ lambda x:f32[2]. let = io_callback[axes=() callback=\"who\" types=()] x in (x) }");
  TEST_FAILS(run_program(runtime, program, NULL), AX_INVALID_ARGUMENT, "no callback \"who\" is registered (ax_runtime_register)");
  ax_callback *who = new_callback("who", count_call, &log), *same = new_callback("who", count_call, &log), *other = new_callback("who", slow_on_one, &log);
  TEST_OK(ax_runtime_register(runtime, who));
  TEST_OK(ax_runtime_register(runtime, same));
  TEST_FAILS(ax_runtime_register(runtime, other), AX_INVALID_ARGUMENT, "another callback \"who\" is registered already");
  TEST_FAILS(ax_runtime_register(runtime, NULL), AX_INVALID_ARGUMENT, "there is no callback");
  assert_string_equal(ax_callback_name(who), "who");
  TEST_OK(run_program(runtime, program, NULL));
  assert_int_equal(log.calls, 1);
  ax_callback *none;
  TEST_FAILS(ax_callback_create("", count_call, NULL, NULL, &none), AX_INVALID_ARGUMENT, "1 to 255 bytes");
  TEST_FAILS(ax_callback_create("x", NULL, NULL, NULL, &none), AX_INVALID_ARGUMENT, "has no function");
  TEST_FAILS(ax_callback_create(NULL, count_call, NULL, NULL, &none), AX_INVALID_ARGUMENT, "there is no name");
  ax_callback_release(who), ax_callback_release(same), ax_callback_release(other);
  ax_program_release(program);
  ax_runtime_release(runtime);
  log_end(&log);
}

/* --- Traced: references, equality, waiting --- */

static void let_go(void *context) { ++*(int *)context; }

static AX_BODY(call_once) {
  ax_io_callback(context, false, 1, in, 1, AX_TYPES(AX_TYPE(AX_F32, 2)), out);
}

static void references(void **state) {
  (void)state;
  int released = 0;
  log_of log;
  ax_callback *made;
  log_begin(&log);
  ax_runtime *runtime = new_runtime((ax_runtime_options){.workers = 1}, &log);
  TEST_OK(ax_callback_create("c", count_call, &released, let_go, &made));
  ax_program *a = test_trace(call_once, made, AX_TYPES(AX_TYPE(AX_F32, 2)), 1, 1), *b = test_trace(call_once, made, AX_TYPES(AX_TYPE(AX_F32, 2)), 1, 1);
  ax_callback *like = new_callback("c", count_call, NULL);
  ax_program *c = test_trace(call_once, like, AX_TYPES(AX_TYPE(AX_F32, 2)), 1, 1);
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
  log_end(&log);
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
  for (size_t w = 0; w < 2 * AX_COUNT(ways); w++) {
    log_of log;
    char text[512];
    double first[1];
    log_begin(&log);
    ax_runtime *runtime = new_runtime(ways[w / 2], &log);
    ax_callback *nest = new_callback("nest", run_and_copy, runtime);
    TEST_OK(ax_runtime_register(runtime, nest));
    snprintf(text, sizeof text,
             "{ lambda x:f32[6]. let\n y:f32[6] = " MAP("P(d)", "P(d)") " body={ axes d=3 ; lambda a:f32[2]{V:d}. let\n"
             "   b:f32[2]{V:d} = %s[axes=(d) callback=\"nest\" types=(f32[2])] a\n in (b) }] x in (y) }", prims[w % 2]);
    ax_program *program = parsed(text);
    TEST_OK(run_program(runtime, program, first));
    TEST_NEAR(first[0], 2, 0);
    ax_program_release(program);
    ax_callback_release(nest);
    ax_runtime_release(runtime);
    log_end(&log);
  }
}

/* Runs without results are waited for by the runtime. */
static void waits_for_calls(void **state) {
  (void)state;
  log_of log;
  log_begin(&log);
  ax_runtime *runtime = new_runtime((ax_runtime_options){.workers = 3}, &log);
  ax_program *program = parsed("{ lambda x:f32[6]. let = " MAP("P(d)", "") " body={ axes d=3 ; lambda a:f32[2]{V:d}. let\n"
                               "   = debug_print[axes=(d) format=\"{}\"] a in () }] x in () }");
  ax_executable *executable;
  TEST_OK(ax_compile(runtime, program, NULL, &executable));
  test_use_threads(executable);
  ax_array *x;
  TEST_OK(ax_executable_put(executable, 0, (float[6]){1, 2, 3, 4, 5, 6}, &x));
  enum { runs = 50 };
  for (int i = 0; i < runs; i++) TEST_OK(ax_run_start(executable, 1, &x, 0, NULL));
  ax_runtime_wait(runtime);
  uint32_t lines = 0;
  for (const char *c = text_of(&log); *c != '\0'; c++) lines += *c == '\n';
  assert_int_equal(lines, 3 * runs);
  ax_runtime_wait(NULL);
  ax_array_release(x);
  ax_executable_release(executable);
  ax_program_release(program);
  ax_runtime_release(runtime);
  log_end(&log);
}

/* --- Transforms --- */

static const ax_type pair_type = {.dtype = AX_F32, .rank = 1, .dims = {2}};

static AX_BODY(pure_each) { ax_pure_callback(context, false, 1, in, 1, &pair_type, out); }
static AX_BODY(pure_all) { ax_pure_callback(context, true, 1, in, 1, &pair_type, out); }
static AX_BODY(io_each) { ax_io_callback(context, false, 1, in, 1, &pair_type, out); }
static AX_BODY(io_ordered) { ax_io_callback(context, true, 1, in, 1, &pair_type, out); }
static AX_BODY(print_each) { ax_debug_print("{}", false, 1, in), out[0] = ax_mul(in[0], in[0]); }
static AX_BODY(print_ordered) { ax_debug_print("{}", true, 1, in), out[0] = in[0]; }

static ax_status batched(ax_function function, void *context, ax_program **out) {
  ax_program *program = test_trace(function, context, &pair_type, 1, 1);
  ax_status status = ax_program_vmap(program, &(ax_vmap_options){.size = 3}, out);
  ax_program_release(program);
  return status;
}

static void batches(void **state) {
  (void)state;
  static const struct {
    ax_function function;
    const char *wanted;
  } rows[] = {{pure_each, "device 0: c(1)\ndevice 0: c(3)\ndevice 0: c(5)\n"}, {pure_all, "device 0: c(1)\n"},
              {io_each, "device 0: c(1)\ndevice 0: c(3)\ndevice 0: c(5)\n"},  {print_each, "[1.0, 2.0]\n[3.0, 4.0]\n[5.0, 6.0]\n"}};
  for (size_t i = 0; i < AX_COUNT(rows); i++) {
    log_of log;
    double first[1];
    ax_program *program;
    log_begin(&log);
    ax_runtime *runtime = new_runtime((ax_runtime_options){.workers = 2}, &log);
    ax_callback *c = new_callback("c", count_call, &log);
    TEST_OK(batched(rows[i].function, c, &program));
    TEST_OK(run_program(runtime, program, first));
    assert_string_equal(text_of(&log), rows[i].wanted);
    TEST_NEAR(first[0], rows[i].function == print_each ? 1 : 2, 0);
    ax_program_release(program);
    ax_callback_release(c);
    ax_runtime_release(runtime);
    log_end(&log);
  }
  ax_program *none;
  ax_callback *c = new_callback("c", count_call, NULL);
  TEST_FAILS(batched(io_ordered, c, &none), AX_ABSENT, "vmap: no ordered_io_callback: the elements of a batch have no order");
  TEST_FAILS(batched(print_ordered, NULL, &none), AX_ABSENT, "vmap: no ordered_debug_print");
  ax_callback_release(c);
}

static AX_BODY(choose) {
  ax_value positive = ax_gt(ax_reduce_sum(in[0], AX_ALL_DIMS, false), ax_real(0));
  ax_if(positive, AX_FN(print_each, 1, 1), AX_FN(print_ordered, 1, 1), in, out);
}
static AX_BODY(still) { out[0] = ax_lt(ax_reduce_sum(in[0], AX_ALL_DIMS, false), ax_real(9)); }
static AX_BODY(go_on) { ax_while(AX_FN(still, 1, 1), AX_FN(print_each, 1, 1), in, out); }

static void chosen_by_members(void **state) {
  (void)state;
  ax_program *none;
  TEST_FAILS(batched(choose, NULL, &none), AX_ABSENT, "calls the host, but each member of the batch chooses a branch of its own");
  TEST_FAILS(batched(go_on, NULL, &none), AX_ABSENT, "the loop calls the host, but each member of the batch ends by itself");
}

static void derivatives(void **state) {
  (void)state;
  static const struct {
    ax_function function;
    const char *name;
  } rows[] = {{pure_each, "pure_callback"}, {io_each, "io_callback"}, {io_ordered, "ordered_io_callback"}};
  ax_callback *c = new_callback("c", count_call, NULL);
  for (size_t i = 0; i < AX_COUNT(rows); i++) {
    ax_program *program = test_trace(rows[i].function, c, &pair_type, 1, 1), *none, *other;
    uint32_t residuals;
    TEST_FAILS(ax_program_jvp(program, AX_ALL_ARGS, &none), AX_ABSENT, rows[i].name);
    assert_non_null(strstr(ax_message(), "has no derivatives; a function around it can be given some (custom_jvp, custom_vjp)"));
    TEST_FAILS(ax_program_linearize(program, AX_ALL_ARGS, &none, &other, &residuals), AX_ABSENT, rows[i].name);
    ax_program_release(program);
  }
  ax_callback_release(c);
}

/* What is printed in a function is printed once by its derivative: in loops, branches and bodies too; and where a rule of one's own prints tangents. */
static AX_BODY(print_in_scan) {
  ax_debug_print("body {:.1f}", true, 1, in);
  out[0] = ax_mul(in[0], in[0]);
}
static AX_BODY(print_alone) { ax_debug_print("call {:.1f}", true, 1, in); }
static AX_BODY(printing) {
  ax_value x;
  ax_closed_call(AX_FN(print_alone, 1, 0), in, NULL);
  ax_debug_print("x {:.1f}", true, 1, in);
  ax_scan(AX_FN(print_in_scan, 1, 1), 1, 2, false, in, &x);
  ax_debug_print("after", true, 0, NULL);
  out[0] = ax_reduce_sum(x, AX_ALL_DIMS, false);
}
static AX_BODY(gradient) { ax_grad(AX_FN(printing, 1, 1), AX_FIRST(1), in, out); }

static AX_BODY(square) { out[0] = ax_mul(in[0], in[0]); }
static AX_BODY(square_rule) { /* x, dx */
  ax_debug_print("tangent {:.1f}", false, 1, in + 1);
  out[0] = ax_mul(in[0], in[0]);
  out[1] = ax_mul(ax_mul(in[0], ax_real(2)), in[1]);
}
static AX_BODY(ruled) {
  ax_value y;
  ax_custom_jvp(AX_FN(square, 1, 1), AX_FN(square_rule, 2, 2), in, &y);
  out[0] = ax_reduce_sum(y, AX_ALL_DIMS, false);
}
static AX_BODY(ruled_jvp) {
  ax_value one = ax_full(AX_F32, AX_DIMS(2), 1);
  ax_jvp(AX_FN(ruled, 1, 1), AX_FIRST(1), in, &one, out, out + 1);
}

static void prints_once(ax_function function, uint32_t out_count, const char *wanted) {
  log_of log;
  double first[2];
  log_begin(&log);
  ax_runtime *runtime = new_runtime((ax_runtime_options){.workers = 2}, &log);
  ax_program *program = test_trace(function, NULL, &pair_type, 1, out_count);
  TEST_OK(run_program(runtime, program, first));
  assert_string_equal(text_of(&log), wanted);
  ax_program_release(program);
  ax_runtime_release(runtime);
  log_end(&log);
}

static void derivatives_of_prints(void **state) {
  (void)state;
  prints_once(gradient, 1, "call [1.0, 2.0]\nx [1.0, 2.0]\nbody [1.0, 2.0]\nbody [1.0, 4.0]\nafter\n");
  prints_once(ruled_jvp, 2, "tangent [1.0, 1.0]\n");
}

/* Nobody reads: nothing is compiled. */
static void nobody_reads(void **state) {
  (void)state;
  ax_runtime *runtime;
  ax_executable *executable;
  char *text;
  TEST_OK(ax_runtime_create(NULL, &runtime));
  ax_program *program = parsed("{ lambda x:f32[2]. let = debug_print[axes=() format=\"{}\"] x = ordered_debug_print[axes=() format=\"a\"] in (x) }");
  TEST_OK(ax_compile(runtime, program, NULL, &executable));
  TEST_OK(ax_executable_text(executable, &text));
  assert_null(strstr(text, "debug_print"));
  ax_string_free(text);
  ax_executable_release(executable);
  ax_program_release(program);
  ax_runtime_release(runtime);
}

/* Elsewhere a name means nothing. */
static void not_exported(void **state) {
  (void)state;
  char *text;
  ax_program *program = parsed("{ lambda x:f32[2]. let = debug_print[axes=() format=\"{}\"] x in (x) }");
  TEST_FAILS(ax_program_stablehlo(program, &text), AX_ABSENT, "debug_print has no StableHLO form: it calls a function of this process");
  ax_program_release(program);
}

/* --- What programs may not say --- */

static void refused(void **state) {
  (void)state;
  static const struct {
    const char *equation, *part;
  } rows[] = {
      {"= debug_print[axes=() format=\"{} {}\"] x", "the format has 2 fields, but there is 1 value"},
      {"= debug_print[axes=() format=\"\"] x", "the format has 0 fields, but there is 1 value"},
      {"= debug_print[axes=() format=\"a {\"] x", "the format, at byte 2: a field is {} or {:[width][.precision][type]}"},
      {"= debug_print[axes=() format=\"a }\"] x", "the format, at byte 2: a closing brace stands alone"},
      {"= debug_print[axes=() format=\"{0}\"] x", "at byte 0: a field is {} or"},
      {"= debug_print[axes=() format=\"{:.f}\"] x", "the point is not followed by a precision"},
      {"= debug_print[axes=() format=\"{:100f}\"] x", "a width or precision is above 99"},
      {"= debug_print[axes=() format=\"{:d}\"] x", "field 0 is for integers, but its value is f32[2]"},
      {"= debug_print[axes=() format=\"{:.2f}\"] i", "field 0 is for floats, but its value is s32[]"},
      {"= debug_print[axes=() format=\"{:.2d}\"] i", "field 0 has a precision, which type d has not"},
      {"= debug_print[axes=() format={}] i", "expected a text, as \"x={}\""},
      {"= debug_print[axes=() format=\"\\q\"]", "a backslash is followed by n, another one, or x and two hexadecimal digits"},
      {"= debug_print[axes=() format=\"\\x00\"]", "a backslash is followed by n"},
      {"= debug_print[axes=() format=\"\\x4\"]", "a backslash is followed by n"},
      {"= debug_print[axes=() format=\"open\n\"]", "the string has no end on its line"},
      {"= debug_print[axes=(d) format=\"\"]", "axis \"d\" is not bound"},
      {"= pure_callback[vectorized=false callback=\"c\" types=()] x", "there are no results; a function with effects is an io_callback"},
      {"= io_callback[axes=() callback=\"\" types=()] x", "a callback's name has 1 to 255 bytes, not 0"},
      {"y:f32[3] = io_callback[axes=() callback=\"c\" types=(f32[2])] x", "io_callback gives f32[2] here"},
      {"y:f32[3] = io_callback[axes=() callback=\"c\" types=(f32[2], f32[3])] x", "io_callback gives 2 results, but 1 are named"},
      {"f:future<f32[2]> = start[body={ lambda a:f32[2]. let = debug_print[axes=() format=\"\"] in (a) }] x y:f32[2] = done f", "the body calls the host"},
  };
  for (size_t i = 0; i < AX_COUNT(rows); i++) {
    char text[512];
    ax_program *program;
    snprintf(text, sizeof text, "{ lambda x:f32[2] i:s32[]. let\n %s\n in (x) }", rows[i].equation);
    TEST_FAILS(ax_program_parse(text, strlen(text), "t", &program), AX_PARSE_ERROR, rows[i].part);
  }
  static const char diverging[] = "{ axes d=2 ; lambda x:f32[2]{V:d}. let i:s32[]{V:d} = axis_index[axes=(d)]\n"
                                  " = cond[branches=({ axes d=2 ; lambda . let = ordered_debug_print[axes=(d) format=\"\"] in () })] i in (x) }";
  ax_program *program;
  TEST_FAILS(ax_program_parse(diverging, strlen(diverging), "t", &program), AX_PARSE_ERROR, "not all of them would reach the ordered_debug_print over {d}");
  TEST_FAILS(ax_trace(AX_CLOSURE(io_each, 1, 1, NULL), &pair_type, &program), AX_INVALID_ARGUMENT, "io_callback: there is no callback");
}

/* --- Formats and quotes --- */

static void formats(void **state) {
  (void)state;
  static const float floats[] = {1, -2.5f, 1e-9f, 3};
  static const int32_t ints[] = {-1, 255};
  static const struct {
    const char *format, *wanted;
  } rows[] = {{"{} {}", "[[1.0, -2.5], [1e-09, 3.0]] [-1, 255]"},
              {"{:.1f}|{:x}", "[[1.0, -2.5], [0.0, 3.0]]|[ffffffff, ff]"},
              {"{:8.2e}{{}}{:4d}", "[[1.00e+00, -2.50e+00], [1.00e-09, 3.00e+00]]{}[  -1,  255]"},
              {"{:6}{:2}", "[[   1.0,   -2.5], [ 1e-09,    3.0]][-1, 255]"},
              {"{:.2}, {}}}", "[[1, -2.5], [1e-09, 3]], [-1, 255]}"},
              {"{:g}{}", "[[1, -2.5], [1e-09, 3]][-1, 255]"}};
  ax_tensor a = {AX_F32, 2, {2, 2}, (void *)floats}, b = {AX_S32, 1, {2}, (void *)ints}, *values[] = {&a, &b};
  const ax_type types[] = {AX_TYPE(AX_F32, 2, 2), AX_TYPE(AX_S32, 2)};
  for (size_t i = 0; i < AX_COUNT(rows); i++) {
    ax_text text = {0};
    TEST_OK(ax_format_check(rows[i].format, 2, types));
    TEST_OK(ax_format_text(&text, rows[i].format, values, 1));
    assert_string_equal(text.data, rows[i].wanted);
    ax_text_deinit(&text);
  }
}

/* The middle of long dimensions of large arrays is left out. */
static void long_arrays(void **state) {
  (void)state;
  static int32_t elements[8 * 200];
  for (int i = 0; i < 8 * 200; i++) elements[i] = i;
  ax_tensor a = {AX_S32, 2, {8, 200}, elements}, *value = &a;
  ax_text text = {0};
  TEST_OK(ax_format_text(&text, "{}", &value, 1));
  assert_string_equal(text.data, "[[0, 1, 2, ..., 197, 198, 199], [200, 201, 202, ..., 397, 398, 399], [400, 401, 402, ..., 597, 598, 599], "
                                 "..., [1000, 1001, 1002, ..., 1197, 1198, 1199], [1200, 1201, 1202, ..., 1397, 1398, 1399], "
                                 "[1400, 1401, 1402, ..., 1597, 1598, 1599]]");
  ax_text_deinit(&text);
}

/* Any bytes go through a program's text and back, and are a format, or are refused, the same way. */
static void any_bytes(void **state) {
  (void)state;
  test_random random = {7};
  uint32_t formats_made = 0;
  for (int i = 0; i < 20000; i++) {
    static const char likely[] = "{}{}:.0123fegdx\\\"n\n";
    char format[24] = "", *whole, *again;
    int length = (int)(ax_next_random(&random.state) % 23);
    for (int c = 0; c < length; c++) {
      uint64_t r = ax_next_random(&random.state);
      format[c] = r % 4 == 0 ? (char)(1 + r / 4 % 255) : likely[r / 4 % (sizeof likely - 1)];
    }
    const ax_type type = AX_TYPE(AX_F32, 2);
    if (ax_format_check(format, 1, &type) != AX_OK && ax_format_check(format, 0, NULL) != AX_OK) continue;
    formats_made++;
    ax_text text = {0};
    ax_program *program, *other;
    ax_text_add(&text, "{ lambda x:f32[2]. let = debug_print[axes=() format=");
    ax_quoted_text(&text, format);
    ax_text_add(&text, "]%s in () }", ax_format_check(format, 1, &type) == AX_OK ? " x" : "");
    TEST_OK(ax_text_finish(&text, &whole));
    program = parsed(whole);
    TEST_OK(ax_program_print(program, &again));
    other = parsed(again);
    assert_true(ax_program_equal(program, other));
    assert_string_equal(*(const char *const *)ax_param_at(&program->eqns[0], &program->eqns[0].prim->params[1]), format);
    ax_free(whole);
    ax_string_free(again);
    ax_program_release(program);
    ax_program_release(other);
  }
  assert_true(formats_made > 1000);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(ordered_calls),   cmocka_unit_test(unordered_calls), cmocka_unit_test(pure_calls),      cmocka_unit_test(many_devices),
      cmocka_unit_test(at_random),       cmocka_unit_test(without_memory),
      cmocka_unit_test(never_comes),     cmocka_unit_test(fails_run),       cmocka_unit_test(names),           cmocka_unit_test(references),
      cmocka_unit_test(runs_inside),     cmocka_unit_test(waits_for_calls), cmocka_unit_test(batches),         cmocka_unit_test(chosen_by_members),
      cmocka_unit_test(derivatives),     cmocka_unit_test(derivatives_of_prints), cmocka_unit_test(nobody_reads), cmocka_unit_test(not_exported),
      cmocka_unit_test(refused),         cmocka_unit_test(formats),         cmocka_unit_test(long_arrays),     cmocka_unit_test(any_bytes)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
