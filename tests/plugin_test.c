/* Programs that a plugin of PJRT compiles and runs: every sample gives what Axle gives, on one device and on several; and arrays that live
   on the plugin's devices. By default the plugin is Axle's own; another is taken from the environment:
     AXLE_TEST_PLUGIN           its path
     AXLE_TEST_PLUGIN_OPTIONS   its options; it must have 8 devices, but for AXLE_TEST_PLUGIN_DEVICES
     AXLE_TEST_PLUGIN_DEVICES   how many it has where that is fewer: programs of more cannot run there
     AXLE_TEST_PLUGIN_SHARE     "2/5": the third fifth of the samples, for several at once
     AXLE_TEST_PLUGIN_ONLY      names of primitives between spaces, whose samples alone are run
     AXLE_TEST_PLUGIN_LACKS     names of primitives between spaces that it cannot run
     AXLE_TEST_PLUGIN_ULPS      how far results of floats may be off, in units of the last digit, where Axle's own are exact */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "axle/exec.h"
#include "axle/sharding.h"
#include "axle/stages.h"
#include "ir/prim.h"
#include "support/cmocka.h"
#include "support/compare.h"
#include "support/lanes.h"
#include "support/run.h"
#include "support/vectors.h"

static ax_runtime *runtime, *own;

static const char *setting(const char *name, const char *otherwise) {
  const char *value = getenv(name);
  return value != NULL ? value : otherwise;
}

/* --- Samples --- */

typedef struct tally {
  uint32_t same, absent;
} tally;

static int device_count(void) {
  return atoi(setting("AXLE_TEST_PLUGIN_DEVICES", "8"));
}

static bool is_listed(const char *names, const char *name) {
  const size_t length = strlen(name);
  for (const char *at = names; (at = strstr(at, name)) != NULL; at += length)
    if ((at == names || at[-1] == ' ') && (at[length] == ' ' || at[length] == '\0')) return true;
  return false;
}

/* What calls the host, which a plugin does not. */
static bool calls_host(const ax_program *program) {
  bool found = false;
  for (uint32_t e = 0; e < program->eqn_count && !found; e++) {
    const ax_program *held;
    const char *name = program->eqns[e].prim->name;
    found = strstr(name, "callback") != NULL || strstr(name, "debug_print") != NULL || strcmp(name, "custom_call") == 0;
    for (uint32_t p = 0; !found && (held = ax_eqn_program(&program->eqns[e], p)) != NULL; p++) found = calls_host(held);
  }
  return found;
}

static ax_status try_on(ax_runtime *on, ax_program *program, ax_tensor *const *in, ax_tensor **out) {
  ax_executable *executable = NULL;
  ax_array *arrays[32] = {NULL};
  const uint32_t in_count = program->in_count, out_count = program->out_count;
  assert_true(in_count + out_count <= AX_COUNT(arrays));
  ax_status status = ax_compile(on, program, NULL, &executable);
  for (uint32_t i = 0; status == AX_OK && i < in_count; i++)
    status = (ax_executable_put)(executable, i, program->types[i].dtype, in[i]->data, test_tensor_bytes(in[i]), &arrays[i]);
  if (status == AX_OK) status = ax_run(executable, AX_LIST(in_count, arrays), AX_LIST(out_count, arrays + in_count));
  for (uint32_t k = 0; status == AX_OK && k < out_count; k++) {
    out[k] = test_tensor(*ax_program_out_type(program, k), NULL);
    status = (ax_array_read)(arrays[in_count + k], AX_NO_DTYPE, out[k]->data, test_tensor_bytes(out[k]));
  }
  for (uint32_t i = 0; i < in_count + out_count; i++) ax_array_release(arrays[i]);
  ax_executable_release(executable);
  return status;
}

/* The same from absolute values in f64, for bounds of sums. */
static void find_condition(const test_instance *instance, ax_tensor *const *in, uint32_t in_count, ax_tensor **condition) {
  ax_tensor *absolute[32] = {NULL};
  ax_program *whole;
  test_instance in_f64 = test_instance_in_f64(instance);
  TEST_OK(test_on_mesh(in_f64.program, &whole));
  for (uint32_t i = 0; i < in_count; i++) absolute[i] = test_absolute(in[i]);
  test_run(whole, absolute, condition);
  test_release(absolute, in_count);
  test_instance_release(&in_f64);
  ax_program_release(whole);
}

/* A module has some primitives as several operations, each of which is rounded; and another compiler has functions of its own. */
static test_sample allowed(const test_instance *instance) {
  const test_sample *sample = instance->sample;
  test_sample out = *sample;
  const unsigned several = is_listed("integer_pow bessel_i0e bessel_i1e matmul_reduce_scatter", sample->prim) ? 32 : 0;
  const unsigned other = (unsigned)atoi(setting("AXLE_TEST_PLUGIN_ULPS", "0")), most = several > other ? several : other;
  if (several > 0 && ax_is_narrow_float(instance->t)) out.sums = false; /* its terms are rounded, too */
  if (out.ulps < most) out.ulps = most;
  if (out.narrow_ulps < most) out.narrow_ulps = most;
  out.sums = out.sums || (sample->by_largest && is_listed("eig schur", sample->prim)); /* elements of complex matrices by the largest, too */
  return out;
}

static void compare(const test_instance *instance, const ax_program *program, ax_tensor *const *in, ax_tensor **got, ax_tensor **wanted) {
  ax_tensor *condition[32] = {NULL};
  if (instance->sample->sums && ax_is_float(instance->t)) find_condition(instance, in, program->in_count, condition);
  const test_sample sample = allowed(instance);
  test_instance judged = *instance;
  judged.sample = &sample;
  test_align_vectors(instance->program, got, wanted); /* another library's may have other signs */
  for (uint32_t k = 0; k < program->out_count; k++) test_compare(&judged, "on the plugin", got[k], wanted[k], condition[k]);
  test_release(condition, program->out_count);
}

/* Why nobody is to blame where the plugin cannot run a sample. */
static bool is_absent(const test_instance *instance, const ax_program *program, ax_status status) {
  if (status == AX_ABSENT && calls_host(program)) return true;
  if (status == AX_INVALID_ARGUMENT && device_count() < 8 && strstr(ax_message(), " devices, more than the ") != NULL) return true;
  return status != AX_OK && is_listed(setting("AXLE_TEST_PLUGIN_LACKS", ""), instance->sample->prim);
}

/* Another plugin's eig and schur may give other results that are as right: what is fixed is compared. */
static test_instance comparable(const test_instance *instance) {
  test_instance out = *instance;
  if (getenv("AXLE_TEST_PLUGIN") != NULL) TEST_OK(test_fixed_program(instance->program, &out.program));
  else ax_program_retain(out.program);
  return out;
}

static void check_instance(const test_instance *given, tally *tally) {
  ax_tensor *in[32] = {NULL}, *got[32] = {NULL}, *wanted[32] = {NULL};
  ax_program *program;
  const test_instance fixed = comparable(given), *instance = &fixed;
  TEST_OK(test_on_mesh(instance->program, &program));
  test_random random = test_instance_random(given);
  for (uint32_t i = 0; i < program->in_count; i++)
    in[i] = test_random_tensor(&random, program->types[i], test_low(instance->sample), test_high(instance->sample));
  const bool runs = test_passes(instance, "here", try_on(own, program, in, wanted));
  const ax_status status = runs ? try_on(runtime, program, in, got) : AX_OK;
  if (is_absent(instance, program, status)) tally->absent++;
  else if (runs && test_passes(instance, "on the plugin", status)) {
    compare(instance, program, in, got, wanted);
    tally->same++;
  }
  test_release(in, program->in_count), test_release(got, program->out_count), test_release(wanted, program->out_count);
  ax_program_release(program), ax_program_release(fixed.program);
}

/* A plugin may end the process where it meets what its compiler does not expect: then the sample is named. */
static const test_instance *volatile running;

static void name_running(int signal_number) {
  const test_instance *at = running;
  const char *const words[] = {"ended at sample ", at != NULL ? at->sample->prim : "none", " of ", at != NULL ? ax_dtype_name(at->t) : "none", ": ",
                               at != NULL ? at->sample->text : "", "\n"};
  for (size_t w = 0; w < AX_COUNT(words); w++)
    if (write(STDERR_FILENO, words[w], strlen(words[w])) < 0) break;
  signal(signal_number, SIG_DFL);
  raise(signal_number);
}

/* Indices are random here, and do not keep it. */
static bool is_promise(const test_sample *sample) {
  return strncmp(sample->prim, "scatter", 7) == 0 && strstr(sample->text, "promise_in_bounds") != NULL;
}

static void samples(void **state) {
  static const ax_dtype dtypes[] = {AX_BOOL, AX_S4, AX_S8, AX_U32, AX_S64, AX_F16, AX_BF16, AX_F32, AX_F64, AX_C64, AX_F8E4M3FN, AX_KEY};
  static const ax_dtype others[] = {AX_S32, AX_F32};
  static const char *const shapes[] = {"", "0", "2,3"};
  tally tally = {0};
  const char *only = setting("AXLE_TEST_PLUGIN_ONLY", NULL);
  unsigned share = 0, shares = 1, number = 0;
  (void)state;
  signal(SIGABRT, name_running);
  assert_true(sscanf(setting("AXLE_TEST_PLUGIN_SHARE", "0/1"), "%u/%u", &share, &shares) == 2 && share < shares);
  for (size_t i = 0; i < test_sample_count; i++) {
    if (test_samples[i].kernel || is_promise(&test_samples[i])) continue;
    if (only != NULL && !is_listed(only, test_samples[i].prim)) continue;
    test_instances instances = test_instances_of(&test_samples[i], &(test_variety){dtypes, others, AX_COUNT(dtypes), AX_COUNT(others),
                                                                                   shapes, AX_COUNT(shapes)});
    for (uint32_t n = 0; n < instances.count; n++)
      if (number++ % shares == share) {
        running = &instances.v[n];
        check_instance(&instances.v[n], &tally);
      }
    running = NULL;
    test_instances_release(&instances);
  }
  printf("samples: %u give the same, %u cannot run there\n", tally.same, tally.absent);
  test_blameless();
  assert_true(tally.same * shares > (only == NULL ? 1000 : 0));
}

/* --- Arrays --- */

static ax_executable *compile(const char *text, const ax_compile_options *options) {
  ax_program *program;
  ax_executable *executable;
  TEST_OK(ax_program_parse(text, strlen(text), NULL, &program));
  TEST_OK(ax_compile(runtime, program, options, &executable));
  ax_program_release(program);
  return executable;
}

static ax_array *put(const char *mesh, const char *spec, const float *data, int64_t elems) {
  ax_mesh parsed = {0};
  ax_array *array;
  const ax_type type = TEST_TYPE(AX_F32, elems);
  if (mesh != NULL) TEST_OK(ax_mesh_parse(mesh, &parsed));
  TEST_OK((ax_device_put_data)(runtime, mesh != NULL ? &parsed : NULL, spec, &type, AX_F32, data, (size_t)elems * sizeof data[0], &array));
  return array;
}

static void expect(const ax_array *array, const float *wanted, int64_t elems) {
  float got[64];
  TEST_OK((ax_array_read)(array, AX_F32, got, (size_t)elems * sizeof got[0]));
  for (int64_t i = 0; i < elems; i++) TEST_NEAR(got[i], wanted[i], 1e-6);
}

#define ADD "{ lambda x:f32[8] y:f32[8]. let z:f32[8] = add x y in (z,) }"
#define PSUM                                                                                                                 \
  "{ lambda x:f32[8]. let y:f32[2] = shard_map[mesh=(d=4) unchecked=false in_specs=(P(d),) out_specs=(P(),) body={ axes d=4 ; " \
  "lambda a:f32[2]{V:d}. let b:f32[2] = psum[axes=(d)] a in (b,) }] x in (y,) }"
static const float eight[] = {1, 2, 3, 4, 5, 6, 7, 8}, twice[] = {2, 4, 6, 8, 10, 12, 14, 16}, thrice[] = {3, 6, 9, 12, 15, 18, 21, 24};

static void arrays_live_there(void **state) {
  (void)state;
  size_t now, peak, later;
  ax_array *x = put(NULL, "", eight, 8), *y, *z;
  ax_executable *add = compile(ADD, NULL);
  ax_runtime_memory(runtime, &now, &peak);
  TEST_OK((ax_run)(add, 2, (ax_array *[]){x, x}, 1, &y));
  TEST_OK((ax_run)(add, 2, (ax_array *[]){y, x}, 1, &z));
  ax_runtime_memory(runtime, &later, &peak);
  assert_int_equal(ax_runtime_counters(runtime).arguments_copied, 0);
  expect(y, twice, 8), expect(z, thrice, 8), expect(x, eight, 8);
  ax_array_release(x), ax_array_release(y), ax_array_release(z);
  ax_executable_release(add);
}

static void several_devices(void **state) {
  (void)state;
  if (device_count() < 4) skip();
  const float sums[] = {16, 20};
  ax_array *cut = put("d=4", "d", eight, 8), *whole = put(NULL, "", eight, 8), *y;
  ax_executable *psum = compile(PSUM, NULL), *add = compile(ADD, NULL);
  TEST_OK((ax_run)(psum, 1, &cut, 1, &y));
  expect(y, sums, 2);
  ax_array_release(y);
  TEST_OK((ax_run)(psum, 1, &whole, 1, &y)); /* which is laid out anew */
  expect(y, sums, 2);
  ax_array_release(y);
  TEST_OK((ax_run)(add, 2, (ax_array *[]){whole, cut}, 1, &y));
  expect(y, twice, 8);
  ax_array_release(y), ax_array_release(cut), ax_array_release(whole);
  ax_executable_release(psum), ax_executable_release(add);
}

static void donated(void **state) {
  (void)state;
  float got[8];
  ax_array *x = put(NULL, "", eight, 8), *y = put(NULL, "", eight, 8), *z;
  ax_executable *add = compile(ADD, &(ax_compile_options){.donate = AX_ARGS(0)});
  TEST_OK((ax_run)(add, 2, (ax_array *[]){x, y}, 1, &z));
  TEST_FAILS((ax_array_read)(x, AX_F32, got, sizeof got), AX_INVALID_ARGUMENT, "donated");
  expect(z, twice, 8), expect(y, eight, 8);
  ax_array *w;
  TEST_OK((ax_run)(add, 2, (ax_array *[]){z, y}, 1, &w)); /* z was read, so its elements are here, too */
  expect(w, thrice, 8);
  ax_array_release(z);
  TEST_FAILS((ax_run)(add, 2, (ax_array *[]){y, y}, 1, &z), AX_INVALID_ARGUMENT, "is donated, but the same array is argument 1 too");
  ax_array_release(x), ax_array_release(y), ax_array_release(w);
  ax_executable_release(add);
}

/* Arrays that share parts: what one of them is given for stays the other's. */
static void shared_parts_stay(void **state) {
  (void)state;
  ax_array *x = put(NULL, "", eight, 8), *y, *same, *z;
  ax_executable *pass = compile("{ lambda x:f32[8]. let in (x, x) }", &(ax_compile_options){.donate = AX_ARGS(0)});
  ax_executable *add = compile(ADD, &(ax_compile_options){.donate = AX_ARGS(0, 1)});
  ax_array *both[2];
  TEST_OK((ax_run)(pass, 1, &x, 2, both));
  y = both[0], same = both[1];
  TEST_OK((ax_run)(add, 2, (ax_array *[]){y, same}, 1, &z));
  expect(z, twice, 8);
  ax_array_release(x), ax_array_release(y), ax_array_release(same), ax_array_release(z);
  ax_executable_release(pass), ax_executable_release(add);
}

static void started(void **state) {
  (void)state;
  ax_array *x = put(NULL, "", eight, 8), *sum = ax_array_retain(x);
  ax_executable *add = compile(ADD, NULL);
  for (int i = 0; i < 20; i++) {
    ax_array *next;
    TEST_OK((ax_run_start)(add, 2, (ax_array *[]){sum, x}, 1, &next));
    ax_array_release(sum);
    sum = next;
  }
  ax_runtime_wait(runtime);
  float wanted[8];
  for (int i = 0; i < 8; i++) wanted[i] = 21 * eight[i];
  expect(sum, wanted, 8);
  ax_array_release(x), ax_array_release(sum);
  ax_executable_release(add);
}

static void *run_often(void *context) {
  ax_executable *const *executables = context;
  for (int i = 0; i < 50; i++) {
    ax_array *cut = put("d=4", "d", eight, 8), *y;
    TEST_OK((ax_run)(executables[0], 1, &cut, 1, &y));
    expect(y, (const float[]){16, 20}, 2);
    ax_array_release(y), ax_array_release(cut);
  }
  return NULL;
}

/* Collectives of several runs at once, on the same devices. */
static void several_threads(void **state) {
  (void)state;
  if (device_count() < 4) skip();
  pthread_t threads[4];
  ax_executable *psum = compile(PSUM, NULL);
  for (size_t t = 0; t < AX_COUNT(threads); t++) assert_int_equal(pthread_create(&threads[t], NULL, run_often, &psum), 0);
  for (size_t t = 0; t < AX_COUNT(threads); t++) pthread_join(threads[t], NULL);
  ax_executable_release(psum);
}

/* --- Partitioned by the plugin --- */

static void partitioned_there(void **state) {
  static const char *const texts[] = {
      PSUM,
      "{ lambda x:f32[8] w:f32[]. let a:f32[8] = mul x x b:f32[8] = sharding_constraint[mesh=(d=4) specs=(P(d))] a "
      "c:f32[] = reduce_sum[axes=(0)] b e:f32[] = add c w in (b, e) }",
      "{ lambda x:f32[8] n:s32[]. let y:f32[8] = scan[length=3 reverse=false num_consts=0 num_carry=1 body={ lambda c:f32[8]. let "
      "z:f32[8] = shard_map[mesh=(d=2,e=2) unchecked=false in_specs=(P(d+e)) out_specs=(P(d+e)) body={ axes d=2 e=2 ; "
      "lambda a:f32[2]{V:d,e}. let b:f32[2]{V:d,e} = ppermute[axes=(d) pairs=((0, 1), (1, 0))] a in (b) }] c "
      "y:f32[8] = add z c in (y) }] x in (y, x) }"};
  const char *lacks = setting("AXLE_TEST_PLUGIN_LACKS", "");
  ax_runtime *there;
  (void)state;
  const ax_runtime_options options = {.plugin = setting("AXLE_TEST_PLUGIN", AXLE_OWN_PLUGIN), .plugin_partitions = true,
                                      .plugin_options = setting("AXLE_TEST_PLUGIN_OPTIONS", "num_devices=8")};
  if (is_listed(lacks, "shardy") || device_count() < 4) skip();
  TEST_OK(ax_runtime_create(&options, &there));
  for (size_t t = 0; t < AX_COUNT(texts); t++) {
    ax_tensor *in[2] = {NULL}, *got[2] = {NULL}, *wanted[2] = {NULL};
    ax_program *program;
    test_random random = {t + 1};
    TEST_OK(ax_program_parse(texts[t], strlen(texts[t]), NULL, &program));
    for (uint32_t i = 0; i < program->in_count; i++) in[i] = test_random_tensor(&random, program->types[i], -2, 2);
    TEST_OK(try_on(own, program, in, wanted));
    TEST_OK(try_on(there, program, in, got));
    for (uint32_t k = 0; k < program->out_count; k++) TEST_TENSORS_NEAR(got[k], wanted[k], 1e-6);
    test_release(in, 2), test_release(got, 2), test_release(wanted, 2);
    ax_program_release(program);
  }
  ax_runtime_release(there);
}

/* Arrays lie on a plugin's first devices. */
static void place_third(void) {
  const int64_t dims[] = {8};
  const ax_host_array host = (ax_host_view)(AX_F32, 1, dims, AX_F32, eight, sizeof eight);
  ax_sharding *third;
  ax_array *array;
  TEST_OK(ax_sharding_single(3, &third));
  TEST_FAILS(ax_device_put_as(runtime, third, &host, &array), AX_ABSENT, "on its first devices, in the order of their numbers");
  ax_sharding_release(third);
}

static void refused(void **state) {
  (void)state;
  ax_program *program;
  ax_executable *executable;
  static const char many[] =
      "{ lambda x:f32[4096]. let y:f32[4096] = shard_map[mesh=(d=4096) unchecked=false in_specs=(P(d),) out_specs=(P(d),) body={ axes d=4096 ; "
      "lambda a:f32[1]{V:d}. let b:f32[1]{V:d} = neg a in (b,) }] x in (y,) }";
  const ax_compile_options lacking[] = {{.timeline = true}, {.check_numerics = AX_CHECK_NAN}, {.reference = true},
                                        {.subnormals = AX_SUBNORMALS_KEEP}, {.contraction = AX_CONTRACTION_FUSED}};
  TEST_OK(ax_program_parse(many, strlen(many), NULL, &program));
  TEST_FAILS(ax_compile(runtime, program, NULL, &executable), AX_INVALID_ARGUMENT, "the mesh has 4096 devices, more than the ");
  ax_program_release(program);
  TEST_OK(ax_program_parse(ADD, strlen(ADD), NULL, &program));
  for (size_t i = 0; i < AX_COUNT(lacking); i++)
    TEST_FAILS(ax_compile(runtime, program, &lacking[i], &executable), AX_ABSENT, "programs that a plugin runs have no");
  TEST_OK(ax_compile(runtime, program, NULL, &executable));
  char *text;
  ax_memory memory;
  TEST_FAILS(ax_executable_text(executable, &text), AX_ABSENT, "a plugin has compiled the program");
  TEST_FAILS(ax_executable_memory(executable, &memory), AX_ABSENT, "a plugin has compiled the program");
  ax_executable_release(executable);
  ax_program_release(program);
  if (device_count() > 3) place_third();
  ax_runtime *other;
  TEST_FAILS(ax_runtime_create(&(ax_runtime_options){.plugin = "/nowhere/plugin.so"}, &other), AX_UNAVAILABLE, "cannot be opened");
  TEST_FAILS(ax_runtime_create(&(ax_runtime_options){.plugin = "libz.so.1"}, &other), AX_UNAVAILABLE, "no GetPjrtApi");
  TEST_FAILS(ax_runtime_create(&(ax_runtime_options){.plugin = "any", .plugin_precision = "most"}, &other), AX_INVALID_ARGUMENT,
             "precision is highest, high or default, and not \"most\"");
  TEST_FAILS(ax_runtime_create(&(ax_runtime_options){.plugin = "any", .processes = AX_MPI}, &other), AX_ABSENT, "does not go with MPI");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(arrays_live_there), cmocka_unit_test(several_devices), cmocka_unit_test(donated),
                                     cmocka_unit_test(shared_parts_stay), cmocka_unit_test(started), cmocka_unit_test(several_threads),
                                     cmocka_unit_test(partitioned_there), cmocka_unit_test(refused),
                                     cmocka_unit_test(samples)};
  const ax_runtime_options options = {.workers = 2, .plugin = setting("AXLE_TEST_PLUGIN", AXLE_OWN_PLUGIN),
                                      .plugin_options = setting("AXLE_TEST_PLUGIN_OPTIONS", "num_devices=8")};
  if (ax_runtime_create(&(ax_runtime_options){.workers = 2}, &own) != AX_OK || ax_runtime_create(&options, &runtime) != AX_OK) {
    fprintf(stderr, "%s\n", ax_message());
    return 1;
  }
  const int failed = cmocka_run_group_tests(tests, NULL, NULL);
  ax_runtime_release(runtime);
  ax_runtime_release(own);
  return failed;
}
