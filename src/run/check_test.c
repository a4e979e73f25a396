/* Runs that look for NaNs and infinities: what is found, and what is not; the same under every policy; what the option leaves as it
   was. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/cmocka.h"
#include "support/oom.h"
#include "support/run.h"

static const ax_runtime_options ways[] = {
    {.policy = AX_POLICY_FIXED},
    {.policy = AX_POLICY_SEEDED, .seed = 3},
    {.policy = AX_POLICY_SEEDED, .seed = 77},
    {.policy = AX_POLICY_PARALLEL, .workers = 1},
    {.policy = AX_POLICY_PARALLEL, .workers = 3},
    {.policy = AX_POLICY_PARALLEL, .workers = 7},
};

enum { elems = 8, most_parts = 6 };

typedef struct finding {
  const char *text;    /* a program that takes f32[8] */
  float x[elems];
  uint32_t kinds;
  const char *parts[most_parts]; /* of the message, in this order; none: nothing is found */
} finding;

/* On four devices, two elements each. */
#define ON_FOUR(body)                                                                                                               \
  "{ lambda x:f32[8]. let y:f32[8] = shard_map[mesh=(d=4) unchecked=true in_specs=(P(d)) out_specs=(P(d)) body={ axes d=4? ; " body \
  "}] x in (y) }"

static ax_program *parse(const char *text) {
  ax_program *program;
  TEST_OK(ax_program_parse(text, strlen(text), "text", &program));
  return program;
}

/* The status of a run, and its result. */
static ax_status run(ax_runtime *runtime, ax_program *program, const ax_compile_options *options, const float *x, float *y) {
  const ax_type type = TEST_TYPE(AX_F32, elems);
  ax_executable *executable;
  ax_array *in, *out;
  TEST_OK(ax_compile(runtime, program, options, &executable));
  test_use_threads(executable);
  TEST_OK(ax_device_put_data(runtime, NULL, "", &type, x, &in));
  ax_status status = ax_run(executable, &in, &out);
  if (status == AX_OK) TEST_OK(ax_array_read(out, y, elems * sizeof y[0]));
  ax_array_release(in);
  ax_array_release(out);
  ax_executable_release(executable);
  return status;
}

static void check_message(const char *const *parts) {
  const char *at = ax_message();
  for (int i = 0; i < most_parts && parts[i] != NULL; i++) {
    const char *found = strstr(at, parts[i]);
    if (found == NULL) fail_msg("no \"%s\" in \"%s\"", parts[i], ax_message());
    at = found + strlen(parts[i]);
  }
}

/* Each way, twice, and by reference code too: the same message, or the same bits as without looking. */
static void find(const finding *f) {
  ax_program *program = parse(f->text);
  char first[4096] = "";
  for (size_t w = 0; w < sizeof ways / sizeof ways[0]; w++) {
    ax_runtime *runtime;
    float plain[elems], checked[elems];
    TEST_OK(ax_runtime_create(&ways[w], &runtime));
    for (int reference = 0; reference < 2; reference++) {
      ax_compile_options options = {.reference = reference != 0};
      TEST_OK(run(runtime, program, &options, f->x, plain));
      options.check_numerics = f->kinds;
      ax_status status = run(runtime, program, &options, f->x, checked);
      if (f->parts[0] == NULL) {
        if (status != AX_OK) fail_msg("%s: %s", ax_status_name(status), ax_message());
        assert_memory_equal(plain, checked, sizeof plain);
        continue;
      }
      assert_int_equal(status, AX_NOT_FINITE);
      check_message(f->parts);
      if (first[0] == '\0') snprintf(first, sizeof first, "%s", ax_message());
      assert_string_equal(ax_message(), first);
    }
    ax_runtime_release(runtime);
  }
  ax_program_release(program);
}

static void find_all(const finding *cases, size_t count) {
  for (size_t i = 0; i < count; i++) find(&cases[i]);
}
#define FIND_ALL(cases) find_all(cases, sizeof(cases) / sizeof(cases)[0])

/* --- What is found --- */

static void one_device(void **state) {
  (void)state;
  static const finding cases[] = {
      {"{ lambda x:f32[8]. let y:f32[8] = neg x\n z:f32[8] = log y w:f32[8] = exp z in (w) }",
       {-1, 2, -3, -4, 5, 0, -7, -8},
       AX_CHECK_NAN,
       {"log f32[8]", "(equation 1, line 2) makes 2 NaNs in f32[8], the first at [1], on device 0"}},
      {"{ lambda x:f32[8]. let y:f32[8] = neg x\n z:f32[8] = log y w:f32[8] = exp z in (w) }",
       {-1, -2, -3, -4, -5, 0, -7, -8},
       AX_CHECK_NAN | AX_CHECK_INF,
       {"log f32[8]", "makes 1 infinity in f32[8], the first at [5], on device 0"}},
      {"{ lambda x:f32[8]. let y:f32[8] = log x in (y) }",
       {1, -1, 0},
       AX_CHECK_NAN | AX_CHECK_INF,
       {"log f32[8]", "makes 1 NaN and 6 infinities in f32[8], the first at [1], on device 0"}},
      /* a mask does not hide it */
      {"{ lambda x:f32[8]. let zero:f32[8] = broadcast_in_dim[shape=(8) broadcast_dimensions=()] 0.0:f32[] p:bool[8] = gt x zero l:f32[8] = log "
       "x y:f32[8] = select_n p zero l in (y) }",
       {1, -1, 2},
       AX_CHECK_NAN,
       {"log f32[8]", "makes 1 NaN in f32[8], the first at [1]"}},
      /* infinities that make NaNs */
      {"{ lambda x:f32[8]. let m:f32[8] = exp x n:f32[8] = sub m m in (n) }",
       {1, 2, 100},
       AX_CHECK_NAN,
       {"sub f32[8] f32[8]", "at [2]"}},
      {"{ lambda x:f32[8]. let m:f32[8] = exp x n:f32[8] = sub m m in (n) }", {1, 2, 100}, AX_CHECK_INF, {"exp f32[8]", "at [2]"}},
      /* narrow and wide floats, products, indices */
      {"{ lambda x:f32[8]. let h:f16[8] = convert_element_type[dtype=f16] x y:f32[8] = convert_element_type[dtype=f32] h in (y) }",
       {1, 1e6f},
       AX_CHECK_INF,
       {"convert_element_type f32[8]", "makes 1 infinity in f16[8], the first at [1]"}},
      {"{ lambda x:f32[8]. let h:bf16[8] = convert_element_type[dtype=bf16] x l:bf16[8] = log h y:f32[8] = convert_element_type[dtype=f32] l in "
       "(y) }",
       {1, 2, 3, -4, 1, 1, 1, 1},
       AX_CHECK_NAN,
       {"log bf16[8]", "makes 1 NaN in bf16[8], the first at [3]"}},
      {"{ lambda x:f32[8]. let h:f64[8] = convert_element_type[dtype=f64] x l:f64[8] = sqrt h y:f32[8] = convert_element_type[dtype=f32] l in "
       "(y) }",
       {1, 2, 3, 1, 1, 1, 1, -1},
       AX_CHECK_NAN,
       {"sqrt f64[8]", "makes 1 NaN in f64[8], the first at [7]"}},
      {"{ lambda x:f32[8]. let m:f32[2,4] = reshape[new_sizes=(2, 4)] x p:f32[2,2] = dot_general[lhs_contract=(1) rhs_contract=(1) lhs_batch=() "
       "rhs_batch=()] m m s:f32[] = reduce_sum[axes=(0, 1)] p y:f32[8] = broadcast_in_dim[shape=(8) broadcast_dimensions=()] s in (y) }",
       {1, 2, 3, 1, 1e30f, 1, 1, 1},
       AX_CHECK_INF,
       {"dot_general f32[2,4] f32[2,4]", "makes 1 infinity in f32[2,2], the first at [1,1]"}},
      /* rows that come back to one place */
      {"{ lambda x:f32[8]. let z:f32[8] = broadcast_in_dim[shape=(8) broadcast_dimensions=()] 0.0:f32[] f:s32[2] = constant[value=[3, 3]:s32[2]] "
       "s:s32[2] = constant[value=[1, 1]:s32[2]] o:s32[2] = constant[value=[0, 1]:s32[2]] y:f32[8] = ragged_all_to_all[axes=() batch=0 "
       "local=() back=true] x z f s o s in (y) }",
       {3e38f, 3e38f, 1},
       AX_CHECK_INF,
       {"ragged_all_to_all f32[8]", "makes 1 infinity in f32[8], the first at [3]"}},
  };
  FIND_ALL(cases);
}

static void nothing(void **state) {
  (void)state;
  static const finding cases[] = {
      {"{ lambda x:f32[8]. let y:f32[8] = neg x z:f32[8] = exp y in (z) }", {1, 2, 3}, AX_CHECK_NAN | AX_CHECK_INF, {NULL}},
      /* arguments bring what they like; where none of it comes from a NaN, neither does a NaN */
      {"{ lambda x:f32[8]. let y:f32[8] = neg x z:f32[8] = exp y in (z) }", {1, NAN, 3}, AX_CHECK_NAN | AX_CHECK_INF, {NULL}},
      {"{ lambda x:f32[8]. let y:f32[8] = neg x z:f32[8] = mul y y in (z) }",
       {1, INFINITY, -INFINITY},
       AX_CHECK_NAN | AX_CHECK_INF,
       {NULL}},
      /* a maximum that begins with -inf, a mask of -inf, and what exp makes of it */
      {"{ lambda x:f32[8]. let m:f32[8] = broadcast_in_dim[shape=(8) broadcast_dimensions=()] -inf:f32[] n:f32[8] = max x m one:f32[8] = "
       "broadcast_in_dim[shape=(8) broadcast_dimensions=()] 1.0:f32[] p:bool[8] = lt x one k:f32[8] = select_n p m n t:f32[8] = sub k one y:f32[8] = "
       "exp t in (y) }",
       {1, -1, 3},
       AX_CHECK_NAN | AX_CHECK_INF,
       {NULL}},
      /* only NaNs are looked for */
      {"{ lambda x:f32[8]. let y:f32[8] = exp x in (y) }", {100, 1000}, AX_CHECK_NAN, {NULL}},
      {"{ lambda x:f32[8]. let y:f32[8] = log x in (y) }", {-1, 1, 1, 1, 1, 1, 1, 1}, AX_CHECK_INF, {NULL}},
      /* nobody needs it */
      {"{ lambda x:f32[8]. let y:f32[8] = log x z:f32[8] = neg x in (z) }", {-1}, AX_CHECK_NAN, {NULL}},
      {ON_FOUR("lambda x:f32[2]. let s:f32[2] = psum[axes=(d)] x y:f32[2] = mul s x in (y) "),
       {1, 2, 3, NAN},
       AX_CHECK_NAN | AX_CHECK_INF,
       {NULL}},
      {ON_FOUR("lambda x:f32[2]. let s:f32[2] = psum[axes=(d)] x y:f32[2] = add s x in (y) "),
       {1, 2, INFINITY},
       AX_CHECK_NAN | AX_CHECK_INF,
       {NULL}},
  };
  FIND_ALL(cases);
}

static void devices(void **state) {
  (void)state;
  static const finding cases[] = {
      /* the lowest of those that find the same, and the others; those who wait for them are no deadlock */
      {ON_FOUR("lambda x:f32[2]. let l:f32[2] = log x s:f32[2] = psum[axes=(d)] l y:f32[2] = mul s x in (y) "),
       {1, 1, 1, -1, 1, 1, -1, -1},
       AX_CHECK_NAN,
       {"log f32[2] (equation 0", "makes 1 NaN in f32[2], the first at [1], on device 1 (d=1)\n  likewise on device 3 (d=3)"}},
      /* the earliest equation, not the lowest device */
      {ON_FOUR("lambda x:f32[2]. let l:f32[2] = sqrt x n:f32[2] = neg x m:f32[2] = log n o:f32[2] = add l m in (o) "),
       {1, 1, 1, 1, 1, 1, -1, -1},
       AX_CHECK_NAN,
       {"sqrt f32[2]", "2 NaNs", "on device 3 (d=3)"}},
      /* sums of finite numbers, and of infinities of other devices */
      {ON_FOUR("lambda x:f32[2]. let s:f32[2] = psum[axes=(d)] x n:f32[2] = neg s in (n) "),
       {0, 3e38f, 0, 3e38f},
       AX_CHECK_INF,
       {"psum f32[2] over d", "makes 1 infinity in f32[2], the first at [1], on device 0 (d=0), for all along "}},
      {ON_FOUR("lambda x:f32[2]. let s:f32[2] = psum[axes=(d)] x n:f32[2] = neg s in (n) "),
       {0, INFINITY, 0, -INFINITY},
       AX_CHECK_NAN,
       {"psum f32[2] over d", "makes 1 NaN"}},
      {ON_FOUR(
           "lambda x:f32[2]. let g:f32[8] = all_gather[axes=(d) dimension=0] x s:f32[2] = psum_scatter[axes=(d) dimension=0] g in (s) "),
       {0, 0, 2e38f},
       AX_CHECK_INF,
       {"psum_scatter f32[8] over d", "makes 1 infinity in f32[2], the first at [0], on device 1 (d=1)"}},
      {ON_FOUR(
           "lambda x:f32[2]. let g:f32[8] = all_gather[axes=(d) dimension=0] x s:f32[2] = psum_scatter[axes=(d) dimension=0] g in (s) "),
       {0, 0, NAN, INFINITY},
       AX_CHECK_NAN | AX_CHECK_INF,
       {NULL}},
  };
  FIND_ALL(cases);
}

static void regions(void **state) {
  (void)state;
#define ROOT_OF_SUM "lambda x:f32[8]. let s:f32[8] = cumsum[axis=0 reverse=false] x y:f32[8] = sqrt s"
#define DOWN(place) /* c = sqrt(c - 1): a NaN in the third iteration */                                                       \
  "scan[length=5 reverse=false num_consts=0 num_carry=1 body={ lambda c:f32[8]. let one:f32[8] = broadcast_in_dim[shape=(8) " \
  "broadcast_dimensions=()] 1.0:f32[] d:f32[8] = sub c one e:f32[8] = sqrt d in (e) }] " place
  static const finding cases[] = {
      {"{ lambda x:f32[8]. let y:f32[8] = " DOWN("x") " in (y) }",
       {9, 9, 2.5f, 9, 9, 9, 9, 9},
       AX_CHECK_NAN,
       {"sqrt f32[8]", "makes 1 NaN in f32[8], the first at [2], in iteration 2 of scan on device 0"}},
      {ON_FOUR(
           "lambda x:f32[2]. let y:f32[2] = scan[length=5 reverse=false num_consts=0 num_carry=1 body={ lambda c:f32[2]. let one:f32[2] = "
           "broadcast_in_dim[shape=(2) broadcast_dimensions=()] 1.0:f32[] d:f32[2] = sub c one e:f32[2] = sqrt d in (e) }] x in (y) "),
       {9, 9, 9, 9, 2.5f, 2.5f, 1.5f, 9},
       AX_CHECK_NAN,
       {"sqrt f32[2]", "in iteration 1 of scan on device 3 (d=3)"}}, /* device 2: in the next */
      {"{ lambda x:f32[8]. let i:s32[] y:f32[8] = while[cond={ lambda i:s32[] v:f32[8]. let p:bool[] = lt i 4:s32[] in (p) } cond_nconsts=0 body={ "
       "lambda i:s32[] v:f32[8]. let j:s32[] = add i 1:s32[] b:bool[] = eq i 3:s32[] k:s32[] = convert_element_type[dtype=s32] b w:f32[8] = "
       "cond[branches=({ lambda v:f32[8]. let w:f32[8] = neg v in (w) }, { lambda v:f32[8]. let w:f32[8] = log v in (w) })] k v in (j, w) } "
       "body_nconsts=0] 0:s32[] x in (y) }",
       {1, 1, 1, 1, 1, 1, 1, 1},
       AX_CHECK_NAN,
       {"log f32[8]", "makes 8 NaNs in f32[8], the first at [0], in iteration 3 of while on device 0"}},
      {"{ lambda x:f32[8]. let z:f32[8] = scan[length=3 reverse=false num_consts=0 num_carry=1 body={ lambda x:f32[8]. let y:f32[8] = " DOWN(
           "x") " z:f32[8] = exp y in (z) }] x in (z) }",
       {1e30f, 1e30f, 40, 1e30f, 1e30f, 1e30f, 1e30f, 1e30f},
       AX_CHECK_NAN,
       {"sqrt f32[8]", "in iteration ", " of scan, in iteration ", " of scan on device 0"}},
      {"{ lambda x:f32[8]. let a:f32[8] = closed_call[body={ " ROOT_OF_SUM " in (y) }] x b:f32[8] = neg a c:f32[8] = "
       "closed_call[body={ " ROOT_OF_SUM " in (y) }] b in (c) }",
       {1, 1, 1, 1, 1, 1, 1, 1},
       AX_CHECK_NAN,
       {"sqrt f32[8]", "(equation 1 of body of closed_call, one of 2 that hold it, line 1) makes 8 NaNs"}},
      /* a call of so few equations is written out */
      {"{ lambda x:f32[8]. let b:f32[8] = neg x c:f32[8] = closed_call[body={ lambda x:f32[8]. let y:f32[8] = sqrt x in (y) }] b in (c) }",
       {1, 1, 1, 1, 1, 1, 1, 1},
       AX_CHECK_NAN,
       {"sqrt f32[8] (line 1) makes 8 NaNs"}},
  };
  FIND_ALL(cases);
}

/* --- Runs --- */

/* The results of a run that was started carry it, and so do those of runs on them; what was donated is gone. */
static void started_and_donated(void **state) {
  (void)state;
  const ax_type type = TEST_TYPE(AX_F32, elems);
  const float x[elems] = {4, -1};
  ax_program *program = parse("{ lambda x:f32[8]. let y:f32[8] = sqrt x in (y) }");
  ax_runtime *runtime;
  ax_executable *executable;
  float got[elems];
  size_t bytes, peak;
  TEST_OK(ax_runtime_create(&(ax_runtime_options){.workers = 3}, &runtime));
  TEST_OK(ax_compile(runtime, program, &(ax_compile_options){.donate = AX_FIRST(1), .check_numerics = AX_CHECK_NAN}, &executable));
  test_use_threads(executable);
  ax_array *in, *out[2];
  TEST_OK(ax_device_put_data(runtime, NULL, "", &type, x, &in));
  TEST_OK(ax_run_start(executable, &in, &out[0]));
  TEST_OK(ax_run_start(executable, &out[0], &out[1]));
  TEST_FAILS(ax_array_wait(out[1]), AX_NOT_FINITE, "sqrt f32[8] (equation 0, line 1) makes 1 NaN in f32[8], the first at [1]");
  TEST_FAILS(ax_array_read(out[1], got, sizeof got), AX_NOT_FINITE, "run 1 failed");
  TEST_FAILS(ax_array_read(in, got, sizeof got), AX_INVALID_ARGUMENT, "donated");
  for (int k = 0; k < 2; k++) ax_array_release(out[k]);
  ax_array_release(in);
  const float good[elems] = {4, 9};
  TEST_OK(ax_device_put_data(runtime, NULL, "", &type, good, &in)); /* and the next run goes well */
  TEST_OK(ax_run(executable, &in, &out[0]));
  TEST_OK(ax_array_read(out[0], got, sizeof got));
  assert_true(got[0] == 2 && got[1] == 3 && got[2] == 0);
  ax_array_release(out[0]);
  ax_array_release(in);
  ax_executable_release(executable);
  ax_program_release(program);
  ax_runtime_trim(runtime);
  ax_runtime_memory(runtime, &bytes, &peak);
  assert_int_equal(bytes, 0);
  ax_runtime_release(runtime);
}

/* What is not asked for is not there, and the executables of both are kept apart. */
static void options(void **state) {
  (void)state;
  ax_program *program = parse("{ lambda x:f32[8]. let y:f32[8] = sqrt x in (y) }");
  ax_runtime *runtime;
  ax_executable *executable, *checking, *again;
  char *text;
  TEST_OK(ax_runtime_create(NULL, &runtime));
  TEST_OK(ax_compile(runtime, program, NULL, &executable));
  TEST_OK(ax_compile(runtime, program, &(ax_compile_options){.check_numerics = AX_CHECK_INF}, &checking));
  TEST_OK(ax_compile(runtime, program, &(ax_compile_options){.check_numerics = AX_CHECK_INF}, &again));
  assert_ptr_not_equal(executable, checking);
  assert_ptr_equal(checking, again);
  TEST_OK(ax_executable_text(executable, &text));
  assert_null(strstr(text, "check"));
  ax_string_free(text);
  TEST_OK(ax_executable_text(checking, &text));
  assert_non_null(strstr(text, "check sqrt b1 of b0"));
  ax_string_free(text);
  ax_runtime *all; /* where every program is looked at */
  ax_executable *also;
  TEST_OK(ax_runtime_create(&(ax_runtime_options){.check_numerics = AX_CHECK_NAN}, &all));
  TEST_OK(ax_compile(all, program, NULL, &also));
  TEST_OK(ax_executable_text(also, &text));
  assert_non_null(strstr(text, "check sqrt b1 of b0"));
  ax_string_free(text);
  ax_executable_release(also);
  ax_runtime_release(all);
  ax_executable_release(executable);
  ax_executable_release(checking);
  ax_executable_release(again);
  ax_runtime *none;
  TEST_FAILS(ax_runtime_create(&(ax_runtime_options){.check_numerics = 5}, &none), AX_INVALID_ARGUMENT,
             "runtime: check_numerics is 5");
  TEST_FAILS(ax_compile(runtime, program, &(ax_compile_options){.check_numerics = 4}, &executable), AX_INVALID_ARGUMENT,
             "check_numerics is 4; it is AX_CHECK_NAN, AX_CHECK_INF, both or 0");
  assert_null(executable);
  ax_program_release(program);
  ax_runtime_release(runtime);
}

/* Each allocation of compiling and running failing in turn; nothing is found where nothing is. */
static ax_status compile_and_run(void *context) {
  const ax_type type = TEST_TYPE(AX_F32, elems);
  const float x[elems] = {1, 2, 3, 4, 5, 6, 7, 8};
  ax_runtime *runtime;
  ax_executable *executable = NULL;
  ax_array *in = NULL, *out = NULL;
  ax_status status = ax_runtime_create(&(ax_runtime_options){.workers = 1}, &runtime);
  if (status != AX_OK) return status;
  status = ax_compile(runtime, context, &(ax_compile_options){.check_numerics = AX_CHECK_NAN | AX_CHECK_INF}, &executable);
  if (status == AX_OK) status = ax_device_put_data(runtime, NULL, "", &type, x, &in);
  if (status == AX_OK) status = ax_run(executable, &in, &out);
  ax_array_release(in);
  ax_array_release(out);
  ax_executable_release(executable);
  ax_runtime_release(runtime);
  return status;
}

static void allocations(void **state) {
  (void)state;
  ax_program *program =
      parse(ON_FOUR("lambda x:f32[2]. let l:f32[2] = log x s:f32[2] = psum[axes=(d)] l y:f32[2] = add s x in (y) "));
  test_each_allocation(compile_and_run, program);
  ax_program_release(program);
}

/* Blocks that end in padding, of which the logarithm and the inverse are taken: nothing is found there; what is wrong in an array's
   last element is. */
static void padding(void **state) {
  (void)state;
  ax_program *program = parse(
      "{ lambda x:f32[8]. let s:f32[8] = sharding_constraint[mesh=(d=3,) specs=(P(d),)] x\n y:f32[8] = log s\n z:f32[8] = rsqrt s\n"
      " w:f32[8] = add y z in (w) }");
  for (size_t i = 0; i < AX_COUNT(ways); i++)
    for (int wrong = 0; wrong < 2; wrong++) {
      const float x[elems] = {1, 2, 3, 4, 5, 6, 7, wrong ? 0 : 8};
      float y[elems];
      ax_runtime *runtime;
      TEST_OK(ax_runtime_create(&ways[i], &runtime));
      assert_int_equal(run(runtime, program, &(ax_compile_options){.check_numerics = AX_CHECK_NAN | AX_CHECK_INF}, x, y),
                       wrong ? AX_NOT_FINITE : AX_OK);
      ax_runtime_release(runtime);
    }
  ax_program_release(program);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(one_device), cmocka_unit_test(nothing),          cmocka_unit_test(devices),
      cmocka_unit_test(regions),    cmocka_unit_test(started_and_donated), cmocka_unit_test(options),
      cmocka_unit_test(allocations), cmocka_unit_test(padding),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
