/* Arrays of which each process has a part: made, moved between layouts, gathered; and calls that processes do not make alike. The
   processes are threads of this one. */
#include "axle/processes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "array/moving.h"
#include "array/runtime.h"
#include "axle/bodies.h"
#include "axle/collectives.h"
#include "axle/jitted.h"
#include "axle/npy.h"
#include "axle/ops.h"
#include "axle/sharding.h"
#include "processes/within.h"
#include "support/cmocka.h"
#include "support/jobs.h"
#include "support/run.h"

/* --- Contents: each element is its index --- */

static float value_at(const ax_type *whole, const ax_type *block, const int64_t *start, int64_t i) {
  int64_t at = 0, scale = 1;
  for (uint32_t d = whole->rank; d-- > 0;) {
    at += (start[d] + i % block->dims[d]) * scale;
    i /= block->dims[d];
    scale *= whole->dims[d];
  }
  return (float)at;
}

static bool is_right(const ax_type *whole, const ax_type *block, const int64_t *start, const float *data) {
  for (int64_t i = 0; i < ax_type_elems(block); i++)
    if (data[i] != value_at(whole, block, start, i)) return false;
  return true;
}

static ax_status check_shards(const ax_array *array) {
  for (uint32_t i = 0; i < ax_array_addressable_count(array); i++) {
    ax_shard shard;
    AX_TRY(ax_array_addressable_shard(array, i, &shard));
    TEST_HERE(shard.data != NULL || shard.bytes == 0);
    TEST_HERE(is_right(ax_array_typeof(array), &shard.type, shard.start, shard.data));
  }
  return AX_OK;
}

static ax_status write(void *context, const ax_type *block, const int64_t *start, void *data) {
  for (int64_t i = 0; i < ax_type_elems(block); i++) ((float *)data)[i] = value_at(context, block, start, i);
  return AX_OK;
}

/* --- All pairs of layouts --- */

static const char mesh_text[] = "x=4,y=2";
static const char *const specs[] = {"", "x", "y", "_,x", "_,y", "x,y", "y,x", "x+y", "y+x", "_,y+x"};

static ax_status check_whole(const ax_array *array, int64_t process) {
  static const int64_t start[AX_MAX_RANK];
  ax_host_array host;
  ax_runtime *runtime = array->layout->runtime;
  AX_TRY(ax_array_gather(array, process, &host));
  const bool wanted = process == AX_EVERY_PROCESS || process == ax_process_index(runtime);
  const bool right = wanted ? host.data != NULL && is_right(ax_array_typeof(array), ax_array_typeof(array), start, host.data)
                            : host.data == NULL;
  ax_host_array_release(&host);
  TEST_HERE(right);
  return AX_OK;
}

static ax_status check_move(const ax_array *from, const ax_sharding *to, bool copied) {
  ax_array *moved;
  AX_TRY(copied ? ax_array_copy_to(from, to, &moved) : ax_array_reshard(from, to, &moved));
  ax_status status = check_shards(moved);
  if (status == AX_OK) status = check_whole(moved, AX_EVERY_PROCESS);
  if (status == AX_OK) status = check_whole(moved, 1 % (int64_t)ax_process_count(from->layout->runtime));
  ax_array_release(moved);
  return status;
}

static ax_status move_to_all(ax_runtime *runtime, const ax_mesh *mesh, const ax_type *type, const char *spec) {
  ax_array *from;
  AX_TRY(ax_array_from_callback(runtime, mesh, spec, type, write, (void *)type, &from));
  ax_status status = check_shards(from);
  for (size_t t = 0; status == AX_OK && t <= AX_COUNT(specs); t++) {
    ax_sharding *to;
    status = t < AX_COUNT(specs) ? ax_sharding_named(mesh, specs[t], NULL, &to) : ax_sharding_single(0, &to);
    if (status == AX_OK) status = check_move(from, to, t % 2 == 1);
    ax_sharding_release(to);
  }
  ax_array_release(from);
  return status;
}

static ax_status all_pairs(ax_runtime *runtime, const void *context) {
  ax_mesh mesh;
  AX_TRY(ax_mesh_parse(mesh_text, &mesh));
  for (size_t f = 0; f < AX_COUNT(specs); f++) AX_TRY(move_to_all(runtime, &mesh, context, specs[f]));
  return AX_OK;
}

static void arrays_move_between_all_layouts(void **state) {
  (void)state;
  const ax_type types[] = {TEST_TYPE(AX_F32, 8, 8), TEST_TYPE(AX_F32, 16, 8, 3), TEST_TYPE(AX_F32, 64, 520)};
  for (size_t t = 0; t < AX_COUNT(types); t++)
    for (size_t s = 0; s < TEST_SPREADS; s++)
      if (test_in_all(&test_spreads[s], all_pairs, &types[t], NULL) != AX_OK) fail_msg("type %zu, spread %zu", t, s);
}

/* --- How many messages a move takes --- */

enum { MESSAGES_OF = 3 };
static struct {
  const ax_transport_functions *inner;
  ax_transport_functions own;
  uint32_t sent[MESSAGES_OF];   /* by process: messages with pieces */
  size_t largest[MESSAGES_OF]; /* bytes */
} counted;

static ax_status send_counted(ax_transport *transport, uint32_t to, const ax_envelope *envelope, const void *payload,
                              ax_on_done *sent, void *context) {
  const uint32_t own = transport->process;
  if (envelope->kind == AX_MESSAGE_PART) {
    counted.sent[own]++;
    if (envelope->bytes > counted.largest[own]) counted.largest[own] = envelope->bytes;
  }
  return counted.inner->send(transport, to, envelope, payload, sent, context);
}

typedef struct counted_move {
  const char *mesh, *from, *to;
  ax_type type;
  uint32_t messages; /* that each process sends at most */
  size_t largest;    /* bytes of each at most */
} counted_move;

static ax_status move_counted(ax_runtime *runtime, const void *context) {
  const counted_move *c = context;
  ax_transport *transport = runtime->executor.processes->transport;
  const uint32_t own = transport->process;
  ax_mesh mesh;
  ax_array *from, *to = NULL;
  ax_sharding *sharding = NULL;
  AX_TRY(ax_mesh_parse(c->mesh, &mesh));
  AX_TRY(ax_array_from_callback(runtime, &mesh, c->from, &c->type, write, (void *)&c->type, &from));
  ax_status status = ax_sharding_named(&mesh, c->to, NULL, &sharding);
  const ax_transport_functions *inner = transport->functions;
  counted.sent[own] = 0;
  counted.largest[own] = 0;
  transport->functions = &counted.own;
  if (status == AX_OK) status = ax_array_reshard(from, sharding, &to);
  transport->functions = inner;
  if (status == AX_OK) status = check_shards(to);
  ax_sharding_release(sharding);
  ax_array_release(to);
  ax_array_release(from);
  AX_TRY(status);
  if (counted.sent[own] > c->messages || counted.largest[own] > c->largest)
    return ax_error(AX_INTERNAL, "process %u: %u messages, of %zu bytes at most", own, counted.sent[own], counted.largest[own]);
  return AX_OK;
}

static void catch_sends(void) {
  ax_transport *transports[MESSAGES_OF];
  assert_int_equal(ax_within_create(MESSAGES_OF, transports), AX_OK);
  counted.inner = transports[0]->functions;
  counted.own = *counted.inner;
  counted.own.send = send_counted;
  for (uint32_t p = 0; p < MESSAGES_OF; p++) transports[p]->functions->destroy(transports[p]);
}

/* 64 devices have 64 x 64 pairs of blocks, which two messages from each process take; of many bytes it takes more, of a megabyte. A
   piece of more than that is a message. */
static void pieces_are_packed(void **state) {
  enum { MIB = 1 << 20 };
  const counted_move moves[] = {
      {"x=64", "x,_", "_,x", TEST_TYPE(AX_F32, 64, 64), 2, MIB},
      {"x=64", "x,_", "", TEST_TYPE(AX_F32, 64, 64), 2, MIB},
      {"x=8,y=8", "x+y,_", "_,y", TEST_TYPE(AX_F32, 64, 64), 2, MIB},
      {"x=8", "x,_", "_,x", TEST_TYPE(AX_F32, 1024, 2048), 4, MIB},
      {"x=3", "x,_", "_,x", TEST_TYPE(AX_F32, 1536, 1539), 2, 512 * 513 * 4},
  };
  (void)state;
  catch_sends();
  for (size_t i = 0; i < AX_COUNT(moves); i++)
    assert_int_equal(test_in_all(&(test_spread){.processes = MESSAGES_OF, .workers = 1}, move_counted, &moves[i], NULL), AX_OK);
}

/* --- What each process has --- */

static ax_status local_parts(ax_runtime *runtime, const void *context) {
  const ax_type type = TEST_TYPE(AX_F32, 16, 8);
  ax_mesh mesh;
  ax_type local;
  ax_array *array;
  int64_t here, sum = 0;
  uint32_t process;
  (void)context;
  AX_TRY(ax_mesh_parse("x=8", &mesh));
  AX_TRY(ax_runtime_local_device_count(runtime, &mesh, &here));
  for (int64_t d = 0; d < 8; d++) {
    AX_TRY(ax_runtime_process_of(runtime, &mesh, d, &process));
    sum += process == ax_process_index(runtime);
  }
  TEST_HERE(sum == here);
  TEST_HERE(ax_runtime_process_of(runtime, &mesh, 8, &process) == AX_INVALID_ARGUMENT);
  AX_TRY(ax_array_local_type(runtime, &mesh, "x", &type, &local));
  TEST_HERE(local.dims[0] == 2 * here && local.dims[1] == 8);
  float *data = calloc((size_t)ax_type_elems(&local) + 1, sizeof data[0]);
  for (int64_t d = 0, row = 0; d < 8; d++) { /* rows 2 d and 2 d + 1 are device d's */
    AX_TRY(ax_runtime_process_of(runtime, &mesh, d, &process));
    if (process != ax_process_index(runtime)) continue;
    for (int64_t i = 0; i < 16; i++) data[row * 16 + i] = (float)(16 * d + i);
    row++;
  }
  ax_status status = (ax_array_from_local)(runtime, &mesh, "x", &type, AX_F32, data, (size_t)ax_type_elems(&local) * 4, &array);
  if (status == AX_OK && here > 0) {
    ax_array *none;
    TEST_HERE((ax_array_from_local)(runtime, &mesh, "x", &type, AX_F32, data, (size_t)ax_type_elems(&local) * 4 - 4, &none) ==
         AX_INVALID_ARGUMENT);
  }
  free(data);
  AX_TRY(status);
  TEST_HERE(ax_array_addressable_count(array) == here);
  TEST_HERE(ax_array_is_addressable(array) == (here == 8));
  status = check_shards(array);
  if (status == AX_OK) status = check_whole(array, AX_EVERY_PROCESS);
  ax_array_release(array);
  return status;
}

static void arrays_are_made_of_local_data(void **state) {
  (void)state;
  for (size_t s = 0; s < TEST_SPREADS; s++) assert_int_equal(test_in_all(&test_spreads[s], local_parts, NULL, NULL), AX_OK);
}

static ax_status no_box(ax_runtime *runtime, const void *context) {
  const ax_type type = TEST_TYPE(AX_F32, 8, 8);
  ax_mesh mesh;
  ax_type local;
  (void)context;
  AX_TRY(ax_mesh_parse("x=2,y=2", &mesh));
  return ax_array_local_type(runtime, &mesh, "x,y", &type, &local);
}

static void blocks_that_are_no_box_are_refused(void **state) {
  static const uint32_t crossed[] = {0, 1, 1, 0};
  char message[8192];
  (void)state;
  assert_int_equal(test_in_all(&(test_spread){.processes = 2, .workers = 1, .listed = 4, .of = crossed}, no_box, NULL, message),
                   AX_INVALID_ARGUMENT);
  assert_non_null(strstr(message, "the 2 blocks f32[4,4] of this process do not make a box of f32[8,8]"));
}

/* Shards of an array that devices share: the replicas are counted over all processes. */
static ax_status replicas(ax_runtime *runtime, const void *context) {
  const ax_type type = TEST_TYPE(AX_F32, 8);
  ax_mesh mesh;
  ax_array *array;
  (void)context;
  AX_TRY(ax_mesh_parse("x=2,y=4", &mesh));
  AX_TRY(ax_array_from_callback(runtime, &mesh, "x", &type, write, (void *)&type, &array));
  ax_status status = AX_OK;
  for (uint32_t i = 0; i < ax_array_addressable_count(array) && status == AX_OK; i++) {
    ax_shard shard;
    status = ax_array_addressable_shard(array, i, &shard);
    if (status == AX_OK && (shard.replica != shard.device % 4 || shard.start[0] != shard.device / 4 * 4))
      status = ax_error(AX_INTERNAL, "device %lld has replica %lld", (long long)shard.device, (long long)shard.replica);
  }
  ax_shard none;
  TEST_HERE(ax_array_addressable_shard(array, ax_array_addressable_count(array), &none) == AX_INVALID_ARGUMENT);
  ax_array_release(array);
  return status;
}

static void shards_know_their_replica(void **state) {
  (void)state;
  for (size_t s = 0; s < TEST_SPREADS; s++) assert_int_equal(test_in_all(&test_spreads[s], replicas, NULL, NULL), AX_OK);
}

/* --- Calls that differ --- */

static ax_status put_same(ax_runtime *runtime, const void *context) {
  const float odd = *(const float *)context, data[4] = {1, 2, 3, ax_process_index(runtime) == 1 ? odd : 4};
  ax_mesh mesh;
  ax_array *array;
  AX_TRY(ax_mesh_parse("x=4", &mesh));
  AX_TRY(ax_device_put_same(runtime, &mesh, "x", &AX_HOST(data), &array));
  ax_array_release(array);
  return AX_OK;
}

static void data_that_should_be_the_same_is_compared(void **state) {
  char message[8192];
  (void)state;
  assert_int_equal(test_in_all(&test_spreads[1], put_same, &(float){4}, NULL), AX_OK);
  assert_int_equal(test_in_all(&test_spreads[2], put_same, &(float){5}, message), AX_INVALID_ARGUMENT);
  assert_non_null(strstr(message, "processes 0 and 1 do not do the same, line 1:\n  process 0: puts f32[4] with digest "));
  assert_non_null(strstr(message, "\n  process 1: puts f32[4] with digest "));
}

static void sum(const ax_value *in, ax_value *out, void *c) { (void)c; out[0] = ax_psum(in[0], "x"); }
static void twice(const ax_value *in, ax_value *out, void *c) { (void)c; out[0] = ax_psum(ax_add(in[0], in[0]), "x"); }

static ax_program *program_of(ax_function body) {
  const ax_type type = TEST_TYPE(AX_F32, 8, 4);
  return test_trace_map(&(test_map){"x=4", {"x"}, {""}, .body = body}, &type);
}

typedef struct programs {
  ax_program *program[2]; /* process 0's, and that of the others */
  bool found;             /* all have compiled the first one before */
} programs;

static ax_status compile_own(ax_runtime *runtime, const void *context) {
  const programs *p = context;
  ax_executable *first = NULL, *own = NULL;
  ax_status status = p->found ? ax_compile(runtime, p->program[0], NULL, &first) : AX_OK;
  if (status == AX_OK) status = ax_compile(runtime, p->program[ax_process_index(runtime) > 0], NULL, &own);
  ax_executable_release(own);
  ax_executable_release(first);
  return status;
}

/* --- Slips of one process alone: all fail, and go on together --- */

typedef enum slip { HOST_DTYPE, HOST_COUNT, JITTED_ARGUMENT, JITTED_HOST, NO_HOST, NO_PATH, NO_PROGRAM, SLIPS } slip;

typedef struct slipping {
  ax_program *program;
  slip what;
} slipping;

static void twice_alone(const ax_value *in, ax_value *out, void *c) { (void)c; out[0] = ax_add(in[0], in[0]); }
static AX_BODY(sum_over_x) { ax_shard_map(context, "x -> _", AX_FN(sum, 1, 1), in, out); }

typedef struct things {
  ax_runtime *runtime;
  ax_program *program;
  ax_mesh mesh;
  ax_executable *executable;
  ax_jitted *jitted;
  ax_array *array;
} things;

static ax_status slip_once(const things *t, slip what, bool slips, const ax_host_array *host) {
  const int32_t whole[8][4] = {{0}};
  const ax_host_array wrong = AX_HOST(whole);
  ax_host_array out = {0};
  ax_array *made = NULL, *none = NULL;
  ax_executable *executable = NULL;
  ax_status status = AX_INTERNAL;
  switch (what) {
    case HOST_DTYPE: status = (ax_run_host)(t->executable, 1, slips ? &wrong : host, 1, &out); break;
    case HOST_COUNT: status = (ax_run_host)(t->executable, slips ? 2 : 1, host, 1, &out); break;
    case JITTED_ARGUMENT: status = (ax_jitted_run)(t->jitted, 1, slips ? &none : (ax_array *const *)&t->array, 1, &made); break;
    case JITTED_HOST: status = (ax_jitted_run_host)(t->jitted, slips ? 0 : 1, host, 1, &out); break;
    case NO_HOST: status = ax_device_put_same(t->runtime, &t->mesh, "x", slips ? NULL : host, &made); break;
    case NO_PATH: status = ax_array_write_npy(t->array, slips ? NULL : "slips.npy"); break;
    default:
      status = ax_compile(t->runtime, slips ? NULL : t->program,
                          &(ax_compile_options){.mesh = &t->mesh, .shardings = "x -> ?"}, &executable);
      break;
  }
  ax_host_array_release(&out);
  ax_array_release(made);
  ax_executable_release(executable);
  return status;
}

static ax_status is_sum(const things *t, const ax_host_array *host, float expected) {
  ax_host_array out = {0};
  AX_TRY(ax_run_host(t->executable, host, &out));
  const bool right = ((const float *)out.data)[0] == expected;
  ax_host_array_release(&out);
  return right ? AX_OK : ax_error(AX_INTERNAL, "a wrong sum");
}

static ax_status slip_and_go_on(const things *t, const slipping *s) {
  float data[8][4] = {{1}};
  const ax_host_array host = AX_HOST(data);
  for (int i = 0; i < 4; i++) {
    const ax_status status = slip_once(t, s->what, i == 2 && ax_process_index(t->runtime) == 1, &host);
    if ((status != AX_OK) != (i == 2) || (i == 2 && strstr(ax_message(), "process 1") == NULL))
      return ax_error(AX_INTERNAL, "slip %d, call %d: %s: %s", (int)s->what, i, ax_status_name(status), ax_message());
    data[0][0] = (float)(i + 2);
    AX_TRY(is_sum(t, &host, data[0][0]));
  }
  return AX_OK;
}

static ax_status slip_here(ax_runtime *runtime, const void *context) {
  const slipping *s = context;
  static const float data[8][4] = {{1}};
  things t = {.runtime = runtime};
  const ax_type type = TEST_TYPE(AX_F32, 8, 4);
  AX_TRY(ax_mesh_parse("x=4", &t.mesh));
  ax_status status = ax_trace(AX_FN(twice_alone, 1, 1), &type, &t.program);
  if (status == AX_OK) status = ax_compile(runtime, s->program, NULL, &t.executable);
  if (status == AX_OK) status = ax_jitted_create(runtime, AX_CLOSURE(sum_over_x, 1, 1, &t.mesh), NULL, &t.jitted);
  if (status == AX_OK) status = ax_device_put(runtime, &t.mesh, "x", &AX_HOST(data), &t.array);
  if (status == AX_OK) status = slip_and_go_on(&t, s);
  ax_array_release(t.array);
  ax_jitted_release(t.jitted);
  ax_executable_release(t.executable);
  ax_program_release(t.program);
  return status;
}

static void a_slip_of_one_process_fails_in_all(void **state) {
  (void)state;
  slipping s = {program_of(sum), HOST_DTYPE};
  for (; s.what < SLIPS; s.what++) {
    char message[8192];
    if (test_in_all(&test_spreads[1], slip_here, &s, message) != AX_OK) fail_msg("%s", message);
  }
  remove("slips.npy");
  ax_program_release(s.program);
}

static void programs_are_compared_when_they_are_compiled(void **state) {
  char message[8192];
  programs p = {{program_of(sum), program_of(twice)}, false};
  (void)state;
  for (int found = 0; found < 2; found++) {
    p.found = found == 1;
    assert_int_equal(test_in_all(&test_spreads[2], compile_own, &p, message), AX_INVALID_ARGUMENT);
    assert_non_null(strstr(message, "processes 0 and 1 do not do the same, line "));
    assert_non_null(strstr(message, " add "));
  }
  ax_program *const same[] = {p.program[0], p.program[0]};
  programs equal = {{same[0], same[1]}, true};
  assert_int_equal(test_in_all(&test_spreads[2], compile_own, &equal, NULL), AX_OK);
  ax_program_release(p.program[0]);
  ax_program_release(p.program[1]);
}

/* Each process compiles both, and calls one. */
static ax_status run_own(ax_runtime *runtime, const void *context) {
  const programs *p = context;
  const ax_type type = TEST_TYPE(AX_F32, 8, 4);
  ax_executable *both[2] = {0};
  ax_array *in = NULL, *out = NULL;
  ax_mesh mesh;
  ax_status status = ax_mesh_parse("x=4", &mesh);
  for (int i = 0; i < 2 && status == AX_OK; i++) status = ax_compile(runtime, p->program[i], NULL, &both[i]);
  if (status == AX_OK) status = ax_array_from_callback(runtime, &mesh, "x", &type, write, (void *)&type, &in);
  if (status == AX_OK && (!p->found || ax_process_index(runtime) == 0))
    status = (ax_run)(both[ax_process_index(runtime) > 0], 1, &in, 1, &out);
  else if (status == AX_OK)
    status = check_whole(in, AX_EVERY_PROCESS);
  ax_array_release(in);
  ax_array_release(out);
  for (int i = 0; i < 2; i++) ax_executable_release(both[i]);
  return status;
}

/* Process 0 waits in a run for what others, which only compare something, never send. */
static ax_status run_or_put(ax_runtime *runtime, const void *program) {
  const ax_type type = TEST_TYPE(AX_F32, 8, 4);
  const float numbers[4] = {0};
  ax_executable *executable;
  ax_array *in = NULL, *out = NULL;
  ax_mesh mesh;
  ax_status status = ax_mesh_parse("x=4", &mesh);
  AX_TRY(ax_compile(runtime, (ax_program *)program, NULL, &executable));
  if (status == AX_OK) status = ax_array_from_callback(runtime, &mesh, "x", &type, write, (void *)&type, &in);
  if (status == AX_OK && ax_process_index(runtime) == 0) status = (ax_run)(executable, 1, &in, 1, &out);
  else if (status == AX_OK) status = ax_device_put_same(runtime, NULL, "", &AX_HOST(numbers), &out);
  ax_array_release(in);
  ax_array_release(out);
  ax_executable_release(executable);
  return status;
}

static void calls_are_compared(void **state) {
  char message[8192];
  programs p = {{program_of(sum), program_of(twice)}, false};
  (void)state;
  assert_int_equal(test_in_all(&test_spreads[1], run_own, &p, message), AX_INVALID_ARGUMENT);
  assert_non_null(strstr(message, "process 0: runs a program of "));
  assert_non_null(strstr(message, "process 1: runs a program of "));
  p.found = true; /* process 0 runs, the others gather */
  assert_int_equal(test_in_all(&test_spreads[1], run_own, &p, message), AX_INVALID_ARGUMENT);
  assert_non_null(strstr(message, "process 1: gathers f32[8,4] over (x=4,), P(x)"));
  assert_int_equal(test_in_all(&test_spreads[1], run_or_put, p.program[0], message), AX_INVALID_ARGUMENT);
  assert_non_null(strstr(message, "process 0: runs a program of "));
  assert_non_null(strstr(message, "process 1: puts f32[4] "));
  ax_program_release(p.program[0]);
  ax_program_release(p.program[1]);
}

/* A process whose argument is wrong says so to the others, who would wait for it. */
static ax_status run_wrong(ax_runtime *runtime, const void *context) {
  const ax_type type = TEST_TYPE(AX_F32, 8, 4), wrong = TEST_TYPE(AX_F32, 4, 4);
  const ax_type *own = ax_process_index(runtime) == 1 ? &wrong : &type;
  ax_executable *executable;
  ax_array *in = NULL, *out = NULL;
  ax_mesh mesh;
  AX_TRY(ax_mesh_parse("x=4", &mesh));
  AX_TRY(ax_compile(runtime, (ax_program *)context, NULL, &executable));
  ax_status status = ax_array_from_callback(runtime, &mesh, "_,x", own, write, (void *)own, &in);
  if (status == AX_OK) status = (ax_run)(executable, 1, &in, 1, &out);
  ax_array_release(in);
  ax_array_release(out);
  ax_executable_release(executable);
  return status;
}

static void a_wrong_argument_of_one_process_fails_in_all(void **state) {
  char message[8192];
  ax_program *program = program_of(sum);
  (void)state;
  assert_int_equal(test_in_all(&test_spreads[2], run_wrong, program, message), AX_INVALID_ARGUMENT);
  assert_non_null(strstr(message, "process 1: run: 1 of 1 arguments do not match:"));
  ax_program_release(program);
}

/* --- Arguments that lie otherwise than the program wants them --- */

static ax_status run_laid(ax_runtime *runtime, const void *context) {
  const ax_type type = TEST_TYPE(AX_F32, 8, 4);
  ax_executable *executable;
  ax_mesh mesh;
  AX_TRY(ax_mesh_parse("x=4", &mesh));
  AX_TRY(ax_compile(runtime, (ax_program *)context, &(ax_compile_options){.donate = AX_ARGS(0)}, &executable));
  ax_status status = AX_OK;
  for (int way = 0; way < 3 && status == AX_OK; way++) {
    ax_array *in = NULL, *out = NULL;
    ax_host_array host = {0};
    status = ax_array_from_callback(runtime, &mesh, way == 0 ? "_,x" : way == 1 ? "" : "x", &type, write, (void *)&type, &in);
    if (status == AX_OK) status = (ax_run_start)(executable, 1, &in, 1, &out);
    if (status == AX_OK) status = ax_array_gather(out, AX_EVERY_PROCESS, &host);
    for (int64_t i = 0; i < 8 && status == AX_OK; i++) /* rows i of four blocks of two rows */
      if (((float *)host.data)[i] != (float)(4 * i + 48)) status = ax_error(AX_INTERNAL, "element %lld", (long long)i);
    ax_host_array_release(&host);
    ax_array_release(in);
    ax_array_release(out);
  }
  ax_executable_release(executable);
  return status;
}

static void arguments_are_laid_out_between_processes(void **state) {
  ax_program *program = program_of(sum);
  (void)state;
  for (size_t s = 0; s < TEST_SPREADS; s++) assert_int_equal(test_in_all(&test_spreads[s], run_laid, program, NULL), AX_OK);
  ax_program_release(program);
}

/* --- Out of memory in one process --- */

static ax_status reshard_hostile(ax_runtime *runtime, const void *context) {
  ax_mesh mesh;
  ax_array *from = NULL, *to = NULL;
  ax_sharding *columns = NULL;
  AX_TRY(ax_mesh_parse("x=4", &mesh));
  ax_status status = ax_sharding_named(&mesh, "_,x", NULL, &columns);
  if (status == AX_OK) status = ax_array_from_callback(runtime, &mesh, "x", context, write, (void *)context, &from);
  test_be_hostile(ax_process_index(runtime) == 1);
  if (status == AX_OK) status = ax_array_reshard(from, columns, &to);
  test_be_hostile(false);
  if (status == AX_OK) status = check_shards(to);
  ax_array_release(from);
  ax_array_release(to);
  ax_sharding_release(columns);
  return status;
}

static ax_status gather_hostile(ax_runtime *runtime, const void *context) {
  ax_mesh mesh;
  ax_array *from;
  AX_TRY(ax_mesh_parse("x=4", &mesh));
  AX_TRY(ax_array_from_callback(runtime, &mesh, "x", context, write, (void *)context, &from));
  test_be_hostile(ax_process_index(runtime) == 1);
  ax_status status = check_whole(from, AX_EVERY_PROCESS);
  test_be_hostile(false);
  ax_array_release(from);
  return status;
}

static ax_status compile_hostile(ax_runtime *runtime, const void *context) {
  ax_executable *executable;
  test_be_hostile(ax_process_index(runtime) == 1);
  ax_status status = ax_compile(runtime, (ax_program *)context, &(ax_compile_options){.reference = true}, &executable);
  test_be_hostile(false);
  if (status == AX_OK) ax_executable_release(executable);
  return status;
}

static void out_of_memory_in_one_process_is_everyones(void **state) {
  const ax_type small = TEST_TYPE(AX_F32, 8, 8), large = TEST_TYPE(AX_F32, 64, 520);
  ax_program *program = program_of(sum);
  (void)state;
  test_each_allocation_in_one(reshard_hostile, &small, 1, NULL);
  test_each_allocation_in_one(reshard_hostile, &large, 1, NULL);
  test_each_allocation_in_one(gather_hostile, &small, 1, NULL);
  test_each_allocation_in_one(gather_hostile, &large, 1, NULL);
  test_each_allocation_in_one(compile_hostile, program, 7, NULL);
  ax_program_release(program);
}

/* --- A process that is gone --- */

static ax_status reshard_without_one(ax_runtime *runtime, const void *context) {
  ax_transport *transport = runtime->executor.processes->transport;
  if (transport->process == 1) {
    ax_within_lose(transport, 1);
    return ax_error(AX_UNAVAILABLE, "process 1 is gone");
  }
  return reshard_hostile(runtime, context);
}

static void a_process_that_is_gone_is_named(void **state) {
  const ax_type types[] = {TEST_TYPE(AX_F32, 8, 8), TEST_TYPE(AX_F32, 64, 520)};
  char message[8192];
  (void)state;
  for (size_t t = 0; t < AX_COUNT(types); t++) {
    assert_int_equal(test_in_all(&test_spreads[2], reshard_without_one, &types[t], message), AX_UNAVAILABLE);
    assert_string_equal(message, "process 1 is gone");
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(arrays_move_between_all_layouts),
      cmocka_unit_test(pieces_are_packed),
      cmocka_unit_test(arrays_are_made_of_local_data),
      cmocka_unit_test(blocks_that_are_no_box_are_refused),
      cmocka_unit_test(shards_know_their_replica),
      cmocka_unit_test(data_that_should_be_the_same_is_compared),
      cmocka_unit_test(a_slip_of_one_process_fails_in_all),
      cmocka_unit_test(programs_are_compared_when_they_are_compiled),
      cmocka_unit_test(calls_are_compared),
      cmocka_unit_test(a_wrong_argument_of_one_process_fails_in_all),
      cmocka_unit_test(arguments_are_laid_out_between_processes),
      cmocka_unit_test(out_of_memory_in_one_process_is_everyones),
      cmocka_unit_test(a_process_that_is_gone_is_named),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
