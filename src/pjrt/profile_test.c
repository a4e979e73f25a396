/* Traces: a profiler notes runs on two devices, one at a time, with the lines of equations; what it gives is read as XLA's XSpace. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "axle/status.h"
#include "client/messages.pb-c.h"
#include "support/oom.h"
#include "support/plugin.h"

static const char two_partitions[] = "\x1a\x04\x20\x01\x28\x02"; /* executable_build_options {num_replicas, num_partitions} */
static char module[] = "module @step attributes {mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 1 : i32} {\n"
                       "sdy.mesh @mesh = <[\"d\"=2]>\n"
                       "func.func public @main(%x: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{\"d\"}]>}) -> "
                       "(tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{\"d\"}]>}) {\n"
                       "  %0 = stablehlo.add %x, %x : tensor<4xf32> loc(\"train.py\":31:5)\n  return %0 : tensor<4xf32>\n}\n}\n";

static const ax_pjrt_profiler_functions *profilers(void) {
  const ax_pjrt_extension *e = GetPjrtApi()->extensions;
  while (e != NULL && e->type != AX_PJRT_PROFILERS) e = e->next;
  assert_non_null(e);
  return ((const ax_pjrt_profilers *)(const void *)e)->functions;
}

static ax_profiler *make_profiler(void) {
  ax_pjrt_profiler_create_args made = {.struct_size = sizeof made};
  expect_no_error("create", profilers()->create(&made));
  return made.profiler;
}

static ax_pjrt_error *start(ax_profiler *p) { return profilers()->start(&(ax_pjrt_profiler_args){sizeof(ax_pjrt_profiler_args), p}); }
static ax_pjrt_error *stop(ax_profiler *p) { return profilers()->stop(&(ax_pjrt_profiler_args){sizeof(ax_pjrt_profiler_args), p}); }
static void end(ax_profiler *p) { expect_no_error("destroy", profilers()->destroy(&(ax_pjrt_profiler_args){sizeof(ax_pjrt_profiler_args), p})); }

static ax_pjrt_loaded_executable *load(ax_pjrt_client *client) {
  ax_pjrt_loaded_executable *loaded;
  expect_no_error("compile", compile(client, module, two_partitions, 6, &loaded));
  return loaded;
}

/* Runs it, and holds the results: 2, 4, 6, 8. */
static void run_step(ax_pjrt_client *client, ax_pjrt_loaded_executable *loaded) {
  const float data[] = {1, 2, 3, 4};
  ax_pjrt_buffer *x[2], *out[2];
  for (int d = 0; d < 2; d++) x[d] = put(client, d, data + 2 * d, AX_PJRT_F32, (const int64_t[]){2}, 1);
  ax_pjrt_buffer *const *const lists[] = {&x[0], &x[1]};
  ax_pjrt_buffer **const outputs[] = {&out[0], &out[1]};
  CALL(loaded_execute, .of = loaded, .arguments = lists, .device_count = 2, .argument_count = 1, .outputs = outputs);
  for (int d = 0; d < 2; d++) {
    float back[2];
    read_buffer(out[d], back, sizeof back);
    assert_true(back[0] == 2 * data[2 * d] && back[1] == 2 * data[2 * d + 1]);
    drop(x[d]), drop(out[d]);
  }
}

static const AxPjrtProto__XLine *line_called(const AxPjrtProto__XSpace *space, const char *name) {
  for (size_t p = 0; p < space->n_planes; p++)
    for (size_t i = 0; i < space->planes[p]->n_lines; i++)
      if (strcmp(space->planes[p]->lines[i]->name, name) == 0) return space->planes[p]->lines[i];
  fail_msg("there is no line %s", name);
  return NULL;
}

static const char *name_of(const AxPjrtProto__XSpace *space, const AxPjrtProto__XEvent *event) {
  const AxPjrtProto__XPlane *plane = space->planes[1];
  for (size_t i = 0; i < plane->n_event_metadata; i++)
    if (plane->event_metadata[i]->key == event->metadata_id) return plane->event_metadata[i]->value->name;
  return "";
}

static size_t count_named(const AxPjrtProto__XSpace *space, const AxPjrtProto__XLine *line, const char *name) {
  size_t count = 0;
  for (size_t i = 0; i < line->n_events; i++) {
    assert_true(line->events[i]->offset_ps >= 0 && line->events[i]->duration_ps >= 0);
    count += strcmp(name_of(space, line->events[i]), name) == 0;
  }
  return count;
}

static AxPjrtProto__XSpace *collect(ax_profiler *p) {
  ax_pjrt_profiler_data_args own = {.struct_size = sizeof own, .of = p}, copied = own;
  expect_no_error("collect_data", profilers()->collect_data(&own));
  copied.bytes = malloc(own.count + 1);
  expect_no_error("collect_data", profilers()->collect_data(&copied));
  assert_memory_equal(copied.bytes, own.bytes, own.count);
  AxPjrtProto__XSpace *space = ax_pjrt_proto__xspace__unpack(NULL, own.count, copied.bytes);
  free(copied.bytes);
  assert_non_null(space);
  assert_int_equal(space->n_planes, 2);
  return space;
}

static void test_trace(void **state) {
  (void)state;
  ax_pjrt_client *client = create(2);
  ax_pjrt_loaded_executable *loaded = load(client);
  ax_profiler *p = make_profiler(), *other = make_profiler();
  run_step(client, loaded); /* before */
  expect_no_error("start", start(p));
  expect_no_error("start", start(p));
  ax_pjrt_error *refused = start(other);
  ax_pjrt_profiler_error_args error = {.struct_size = sizeof error, .of = refused};
  profilers()->error_message(&error);
  assert_non_null(strstr(error.text, "one at a time"));
  expect_no_error("error_code", profilers()->error_code(&error));
  assert_int_equal(error.code, AX_PJRT_ALREADY_EXISTS);
  profilers()->error_destroy(&error);
  for (int i = 0; i < 3; i++) run_step(client, loaded);
  expect_no_error("stop", stop(p));
  run_step(client, loaded); /* after */
  AxPjrtProto__XSpace *space = collect(p);
  assert_int_equal(space->n_warnings, 0);
  assert_string_equal(space->planes[1]->name, "/device:CUSTOM:Axle devices");
  assert_int_equal(count_named(space, line_called(space, "programs"), "step"), 3);
  assert_int_equal(count_named(space, line_called(space, "device 0"), "add (train.py:31)"), 3);
  assert_int_equal(count_named(space, line_called(space, "device 1"), "add (train.py:31)"), 3);
  (void)line_called(space, "thread 0");
  ax_pjrt_proto__xspace__free_unpacked(space, NULL);
  end(p), end(other);
  end(NULL);
  CALL(loaded_destroy, .of = loaded);
  destroy(client);
}

/* A profiler that saw nothing, and one that is ended while it is at work. */
static void test_nothing(void **state) {
  (void)state;
  ax_profiler *p = make_profiler();
  AxPjrtProto__XSpace *space = collect(p);
  assert_int_equal(space->planes[0]->n_lines + space->planes[1]->n_lines, 0);
  ax_pjrt_proto__xspace__free_unpacked(space, NULL);
  expect_no_error("start", start(p));
  end(p);
  p = make_profiler();
  expect_no_error("start", start(p));
  end(p);
}

typedef struct runner {
  ax_pjrt_client *client;
  ax_pjrt_loaded_executable *loaded;
} runner;

static void *run_often(void *context) {
  runner *r = context;
  for (int i = 0; i < 50; i++) run_step(r->client, r->loaded);
  return NULL;
}

/* Several threads run one program, while traces begin and end. */
static void test_threads(void **state) {
  (void)state;
  ax_pjrt_client *client = create(2);
  runner r = {client, load(client)};
  pthread_t threads[3];
  for (int i = 0; i < 3; i++) assert_int_equal(pthread_create(&threads[i], NULL, run_often, &r), 0);
  for (int i = 0; i < 20; i++) {
    ax_profiler *p = make_profiler();
    expect_no_error("start", start(p));
    run_step(client, r.loaded);
    ax_pjrt_proto__xspace__free_unpacked(collect(p), NULL);
    end(p);
  }
  for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
  CALL(loaded_destroy, .of = r.loaded);
  destroy(client);
}

/* --- Without memory a run is right or refused, and a trace says that it lacks something, or is refused --- */

typedef struct traced {
  ax_pjrt_client *client;
  ax_profiler *profiler;
  ax_pjrt_loaded_executable *loaded;
  ax_pjrt_buffer *x[2], *out[2];
  bool lacks;
} traced;

static ax_pjrt_error *try_trace(traced *t) {
  ax_pjrt_buffer *const *const lists[] = {&t->x[0], &t->x[1]};
  ax_pjrt_buffer **const outputs[] = {&t->out[0], &t->out[1]};
  ax_pjrt_loaded_execute_args run = {.struct_size = sizeof run, .of = t->loaded, .arguments = lists, .device_count = 2, .argument_count = 1,
                                     .outputs = outputs};
  ax_pjrt_profiler_data_args collected = {.struct_size = sizeof collected, .of = t->profiler};
  ax_pjrt_error *error = start(t->profiler);
  if (error == NULL) error = GetPjrtApi()->loaded_execute(&run);
  if (error == NULL) error = profilers()->collect_data(&collected);
  if (error != NULL) return error;
  AxPjrtProto__XSpace *space = ax_pjrt_proto__xspace__unpack(NULL, collected.count, collected.bytes);
  t->lacks = space->n_warnings > 0;
  ax_pjrt_proto__xspace__free_unpacked(space, NULL);
  return NULL;
}

static ax_pjrt_error *try_all(traced *t) {
  const ax_pjrt_named two = {.struct_size = sizeof two, .name = "num_devices", .name_length = 11, .kind = AX_PJRT_INTEGER, .integer = 2, .count = 1};
  ax_pjrt_client_create_args client = {.struct_size = sizeof client, .options = &two, .option_count = 1};
  ax_pjrt_profiler_create_args profiler = {.struct_size = sizeof profiler};
  ax_pjrt_error *error = GetPjrtApi()->client_create(&client);
  if (error != NULL) return error;
  t->client = client.client;
  if ((error = profilers()->create(&profiler)) != NULL) return error;
  t->profiler = profiler.profiler;
  if ((error = compile(t->client, module, two_partitions, 6, &t->loaded)) != NULL) return error;
  for (int d = 0; d < 2; d++)
    if ((error = try_put(t->client, d, (const float[]){1, 2}, 2, &t->x[d])) != NULL) return error;
  return try_trace(t);
}

static ax_status attempt(void *context) {
  traced t = {0};
  (void)context;
  ax_pjrt_error *error = try_all(&t);
  for (int d = 0; d < 2; d++) drop(t.x[d]), drop(t.out[d]);
  end(t.profiler);
  CALL(loaded_destroy, .of = t.loaded);
  if (t.client != NULL) destroy(t.client);
  return error == NULL && t.lacks ? AX_OUT_OF_MEMORY : status_of_try(error);
}

static void test_out_of_memory(void **state) {
  (void)state;
  assert_true(test_each_allocation(attempt, NULL) > 100);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_trace), cmocka_unit_test(test_nothing), cmocka_unit_test(test_threads),
                                     cmocka_unit_test(test_out_of_memory)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
