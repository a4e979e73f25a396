/* Modules as text. That XLA runs them to the same values is the oracle's to say (tests/oracle). */
#include "axle/stablehlo.h"

#include <string.h>

#include "axle/collectives.h"
#include "axle/ops.h"
#include "support/cmocka.h"
#include "support/oom.h"
#include "support/run.h"
#include "support/tensor.h"

static void expect_module(const ax_program *program, const char *expected) {
  char *text;
  TEST_OK(ax_program_stablehlo(program, &text));
  assert_string_equal(text, expected);
  ax_string_free(text);
}

/* --- One device --- */

static void local_body(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value x = ax_stop_gradient(in[0]);
  ax_value less = ax_lt(x, in[1]), cube = ax_integer_pow(x, 3), erf = ax_erf(x);
  out[0] = ax_select_n(less, cube, erf);
}

static void test_local(void **state) {
  (void)state;
  ax_type types[] = {TEST_TYPE(AX_F32, 2), TEST_TYPE(AX_F32, 2)};
  ax_program *program = test_trace(local_body, NULL, types, 2, 1);
  expect_module(
      program,
      "module @axle attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {\n"
      "  func.func public @main(%0: tensor<2xf32>, %1: tensor<2xf32>) -> (tensor<2xf32>) {\n"
      "    %2 = \"stablehlo.compare\"(%0, %1) {compare_type = #stablehlo<comparison_type FLOAT>, "
      "comparison_direction = #stablehlo<comparison_direction LT>} : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xi1>\n"
      "    %3 = \"stablehlo.multiply\"(%0, %0) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>\n"
      "    %4 = \"stablehlo.multiply\"(%0, %3) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>\n"
      "    %5 = \"stablehlo.custom_call\"(%0) {call_target_name = \"mhlo.erf\", mhlo.attributes = {}, mhlo.version = 1 "
      ": i64} : "
      "(tensor<2xf32>) -> tensor<2xf32>\n"
      "    %6 = \"stablehlo.select\"(%2, %5, %4) : (tensor<2xi1>, tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>\n"
      "    \"func.return\"(%6) : (tensor<2xf32>) -> ()\n"
      "  }\n"
      "}\n");
  ax_program_release(program);
}

/* --- A mesh --- */

static void sum_body(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_psum(in[0], "model");
}

#define SUM_MODULE(mark)                                                                                         \
  "module @axle attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {\n"                     \
  "  func.func public @main(%0: tensor<2xf32>" mark ") -> (tensor<2xf32>" mark                                   \
  ") {\n"                                                                                                        \
  "    %1 = \"stablehlo.all_reduce\"(%0) ({\n"                                                                   \
  "    ^bb0(%2: tensor<f32>, %3: tensor<f32>):\n"                                                                \
  "      %4 = \"stablehlo.add\"(%2, %3) : (tensor<f32>, tensor<f32>) -> tensor<f32>\n"                           \
  "      \"stablehlo.return\"(%4) : (tensor<f32>) -> ()\n"                                                       \
  "    }) {channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, replica_groups = dense<[[0, 1], [2, 3]]> : " \
  "tensor<2x2xi64>, use_global_device_ids} : (tensor<2xf32>) -> tensor<2xf32>\n"                              \
  "    \"func.return\"(%1) : (tensor<2xf32>) -> ()\n"                                                            \
  "  }\n"                                                                                                        \
  "}\n"
static const char sum_module[] = SUM_MODULE(" {mhlo.sharding = \"{manual}\"}");

static ax_mesh mesh_of(const char *text) {
  ax_mesh mesh;
  TEST_OK(ax_mesh_parse(text, &mesh));
  return mesh;
}

static void test_per_device(void **state) {
  (void)state;
  ax_mesh mesh = mesh_of("data=2,model=2");
  ax_type type = TEST_TYPE(AX_F32, 2);
  type.spread.varying = 2; /* over model */
  ax_program *program;
  TEST_OK(ax_trace_on(&mesh, AX_FN(sum_body, 1, 1), &type, &program));
  expect_module(program, sum_module);
  ax_program_release(program);
}

/* Every collective lists all devices. */
static void test_too_many_devices(void **state) {
  (void)state;
  ax_mesh mesh = mesh_of("data=2097152,model=2");
  ax_type type = TEST_TYPE(AX_F32, 2);
  type.spread.varying = 2;
  ax_program *program;
  char *text;
  TEST_OK(ax_trace_on(&mesh, AX_FN(sum_body, 1, 1), &type, &program));
  TEST_FAILS(ax_program_stablehlo(program, &text), AX_ABSENT, "4194304 of them are more than the 1048576");
  ax_program_release(program);
}

typedef struct whole {
  ax_mesh mesh[2];
  const char *in_spec, *out_spec;
  bool twice;  /* a second shard_map, over the second mesh, on the first's result */
  bool shifts; /* an addition on the operand before */
} whole;

static void whole_body(const ax_value *in, ax_value *out, void *context) {
  whole *w = context;
  ax_value x = w->shifts ? ax_add(in[0], in[0]) : in[0];
  test_shard_map(&w->mesh[0], &w->in_spec, &w->out_spec, false, AX_FN(sum_body, 1, 1), &x, out);
  if (!w->twice) return;
  test_shard_map(&w->mesh[1], &w->in_spec, &w->out_spec, false, AX_FN(sum_body, 1, 1), out, out);
}

static ax_program *trace_whole(whole *w) {
  ax_type type = TEST_TYPE(AX_F32, 8);
  return test_trace(whole_body, w, &type, 1, 1);
}

/* The shard_map's body, on the device's shards. */
static void test_whole(void **state) {
  (void)state;
  whole w = {.mesh = {mesh_of("data=2,model=2")}, .in_spec = "data+model", .out_spec = "data"};
  ax_program *program = trace_whole(&w);
  expect_module(program, sum_module);
  ax_program_release(program);
}

/* What stands outside of shard_maps, and between two that differ in layout or mesh, is part of the device's program. */
static void test_resharded(void **state) {
  (void)state;
  ax_mesh mesh = mesh_of("data=2,model=2"), other = mesh_of("model=4");
  const struct {
    whole whole;
    const char *ops[3]; /* in this order; NULL ends them */
  } rows[] = {
      {{.mesh = {mesh}, .in_spec = "data+model", .out_spec = "data", .shifts = true},
       {"stablehlo.add\"(%0, %0) : (tensor<2xf32>", "all_reduce"}},
      {{.mesh = {mesh, mesh}, .in_spec = "data+model", .out_spec = "data", .twice = true},
       {"all_reduce", "dynamic_slice", "all_reduce"}},
      {{.mesh = {other, mesh}, .in_spec = "model", .out_spec = "", .twice = true},
       {"dense<[[0, 1, 2, 3]]>", "dense<[[0, 1], [2, 3]]>"}},
  };
  for (size_t i = 0; i < AX_COUNT(rows); i++) {
    whole w = rows[i].whole;
    ax_program *program = trace_whole(&w);
    char *text;
    TEST_OK(ax_program_stablehlo(program, &text));
    const char *at = text;
    for (int k = 0; k < 3 && rows[i].ops[k] != NULL; k++) {
      at = strstr(at, rows[i].ops[k]);
      if (at == NULL) fail_msg("no %s in its place in:\n%s", rows[i].ops[k], text);
      at++;
    }
    ax_string_free(text);
    ax_program_release(program);
  }
}

static void test_refusals(void **state) {
  (void)state;
  whole w = {.mesh = {mesh_of("data=2,model=2"), mesh_of("model=3")}, .in_spec = "", .out_spec = "", .twice = true};
  ax_program *program = trace_whole(&w);
  char *text = "";
  TEST_FAILS(ax_program_stablehlo(program, &text), AX_ABSENT, "meshes of 4 and 3 devices");
  assert_null(text);
  ax_program_release(program);
}

/* --- Calls --- */

static void layer_body(const ax_value *in, ax_value *out, void *context) {
  ax_value inner[] = {in[1], in[0]};
  if (context != NULL) ax_closed_call(AX_FN(layer_body, 2, 1), inner, inner);
  out[0] = ax_tanh(ax_mul(inner[0], in[1]));
}

static void calls_body(const ax_value *in, ax_value *out, void *context) {
  ax_value x[] = {in[0], in[1]};
  for (int i = 0; i < 9; i++) ax_closed_call(AX_CLOSURE(layer_body, 2, 1, i % 3 == 0 ? x : context), x, x);
  out[0] = x[0];
}

static uint32_t count_in(const char *text, const char *part) {
  uint32_t count = 0;
  for (const char *at = text; (at = strstr(at, part)) != NULL; at++) count++;
  return count;
}

/* One function for each different body, those called by functions among them. */
static void test_calls(void **state) {
  (void)state;
  ax_type types[] = {TEST_TYPE(AX_F32, 2), TEST_TYPE(AX_F32, 2)};
  ax_program *program = test_trace(calls_body, NULL, types, 2, 1);
  char *text;
  TEST_OK(ax_program_stablehlo(program, &text));
  assert_int_equal(count_in(text, "func.func private @body_"), 2);
  assert_int_equal(count_in(text, "\"func.call\""), 10);
  assert_int_equal(count_in(text, "stablehlo.tanh"), 2);
  assert_non_null(strstr(text,
                         "  func.func private @body_1(%0: tensor<2xf32>, %1: tensor<2xf32>) -> (tensor<2xf32>) {\n"
                         "    %2 = \"stablehlo.multiply\"(%1, %1) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>\n"
                         "    %3 = \"stablehlo.tanh\"(%2) : (tensor<2xf32>) -> tensor<2xf32>\n"
                         "    \"func.return\"(%3) : (tensor<2xf32>) -> ()\n"
                         "  }\n"));
  ax_string_free(text);
  ax_program_release(program);
}

/* What is done again stands behind a barrier, so that it is not merged with what was done first. */
static AX_BODY(sines) { out[0] = ax_sin(ax_sin(in[0])); }
static AX_BODY(sines_again) { ax_checkpoint(AX_FN(sines, 1, 1), in, out, NULL); }
static AX_BODY(sines_slope) {
  ax_value gradient;
  ax_vjp(AX_FN(sines_again, 1, 1), AX_FIRST(1), in, in, &out[0], &gradient);
  out[1] = gradient;
}

static void test_checkpoints(void **state) {
  (void)state;
  ax_type type = TEST_TYPE(AX_F32, 2);
  ax_program *program = test_trace(sines_slope, NULL, &type, 1, 2);
  char *text;
  TEST_OK(ax_program_stablehlo(program, &text));
  assert_int_equal(count_in(text, "func.func private @body_"), 2);
  assert_int_equal(count_in(text, "stablehlo.sine"), 3); /* of which one is made again */
  assert_non_null(strstr(
      text,
      "    %1 = \"func.call\"(%0) {callee = @body_0} : (tensor<2xf32>) -> tensor<2xf32>\n"
      "    %2, %3 = \"stablehlo.optimization_barrier\"(%0, %0) : (tensor<2xf32>, tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>)\n"));
  ax_string_free(text);
  ax_program_release(program);
}

/* As bytecode: the same module, with the line of each equation; what VHLO has not is refused at its line. */
static ax_program *read_module(const char *text, size_t bytes) {
  ax_program *program;
  TEST_OK(ax_program_from_stablehlo(text, bytes, "m", &program));
  return program;
}

static void test_bytecode(void **state) {
  (void)state;
#define OF(operation)                                       \
  "func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {\n" \
  "  %0 = " operation "\n"                                  \
  "  return %0 : tensor<2xf32>\n}\n"
  static const char sine[] = OF("stablehlo.sine %x : tensor<2xf32> loc(\"train.py\":31:4)");
  static const char asinh[] = OF("chlo.asinh %x : tensor<2xf32> -> tensor<2xf32> loc(\"train.py\":32:4)");
  char *bytes, *before, *after;
  size_t count;
  ax_program *program = read_module(sine, strlen(sine));
  TEST_OK(ax_program_stablehlo_bytecode(program, "1.0.0", &bytes, &count));
  TEST_OK(ax_program_stablehlo(program, &before));
  TEST_OK(ax_stablehlo_text(bytes, count, "m", &after));
  assert_string_equal(after, before);
  ax_string_free(before);
  ax_string_free(after);
  ax_program_release(program);
  program = read_module(bytes, count);
  TEST_OK(ax_program_print_locations(program, &after));
  assert_non_null(strstr(after, "train.py:31"));
  ax_string_free(after);
  ax_string_free(bytes);
  ax_program_release(program);
  program = read_module(asinh, strlen(asinh));
  TEST_FAILS(ax_program_stablehlo_bytecode(program, NULL, &bytes, &count), AX_ABSENT, "train.py:32: chlo.asinh: VHLO has no such operation");
  assert_null(bytes);
  TEST_FAILS(ax_program_stablehlo_bytecode(program, "0.1.0", &bytes, &count), AX_INVALID_ARGUMENT, "no version of VHLO");
  ax_program_release(program);
  TEST_FAILS(ax_program_stablehlo_bytecode(NULL, NULL, &bytes, &count), AX_INVALID_ARGUMENT, "program");
#undef OF
}

static ax_status export_again(void *context) {
  char *text;
  ax_status status = ax_program_stablehlo(context, &text);
  if (status == AX_OK) assert_string_equal(text, sum_module);
  ax_string_free(text);
  return status;
}

static void test_out_of_memory(void **state) {
  (void)state;
  whole w = {.mesh = {mesh_of("data=2,model=2")}, .in_spec = "data+model", .out_spec = "data"};
  ax_program *program = trace_whole(&w);
  assert_true(test_each_allocation(export_again, program) > 4);
  ax_program_release(program);
}

/* --- Operations with bodies, and those made of several --- */

/* The module of a program as text has each of these, in this order. */
static void has(const char *text, const char *const *parts, uint32_t count) {
  ax_program *program;
  char *module;
  TEST_OK(ax_program_parse(text, strlen(text), "t.axle", &program));
  TEST_OK(ax_program_stablehlo(program, &module));
  const char *at = module;
  for (uint32_t i = 0; i < count; i++) {
    const char *found = strstr(at, parts[i]);
    if (found == NULL) fail_msg("there is no %s in or behind its place:\n%s", parts[i], module);
    at = found + strlen(parts[i]);
  }
  ax_string_free(module);
  ax_program_release(program);
}
#define HAS(text, ...) has(text, (const char *const[]){__VA_ARGS__}, AX_COUNT(((const char *const[]){__VA_ARGS__})))

static void test_bodies(void **state) {
  (void)state;
  HAS("{ lambda n:s32[] x:f32[2]. let k:s32[] y:f32[2] = while[\n"
      "    cond={ lambda m:s32[] i:s32[] v:f32[2]. let c:bool[] = lt i m in (c,) } cond_nconsts=1\n"
      "    body={ lambda w:f32[2] i:s32[] v:f32[2]. let j:s32[] = add i 1:s32[] u:f32[2] = mul v w in (j, u) } body_nconsts=1]\n"
      "  n x 0:s32[] x in (y, k) }",
      "\"stablehlo.while\"(%0, %1, %2, %1)", "bb0(%7:", "\"stablehlo.compare\"(%9, %7)", "LT", "\"stablehlo.return\"(%11)",
      "bb0(%12:", "\"stablehlo.add\"(%14, %16)", "\"stablehlo.multiply\"(%15, %13)", "\"stablehlo.return\"(%12, %13, %17, %18)");
  HAS("{ lambda x:f32[3]. let t:f32[] s:f32[3] = scan[length=3 reverse=true num_consts=0 num_carry=1\n"
      "    body={ lambda c:f32[] i:f32[]. let d:f32[] = add c i in (d, c) }] 0.0:f32[] x in (t, s) }",
      "\"stablehlo.while\"", "\"stablehlo.dynamic_slice\"", "\"stablehlo.add\"", "\"stablehlo.dynamic_update_slice\"");
}

static void test_shapes(void **state) {
  (void)state;
  HAS("{ lambda x:f32[2,3]. let y:f32[3,2] = transpose[permutation=(1, 0)] x\n"
      "  z:f32[6,2] = concatenate[dimension=0] y y in (z,) }",
      "\"stablehlo.transpose\"", "permutation = array<i64: 1, 0>", "tensor<3x2xf32>", "\"stablehlo.concatenate\"",
      "dimension = 0 : i64", "tensor<6x2xf32>");
  HAS("{ lambda x:f32[5,3]. let y:s32[3] = argmax[axes=(0,) index_dtype=s32] x in (y,) }", "\"stablehlo.reduce\"", "tensor<3xi32>");
}

/* What has no sign is its own size, and its sign is at most 1. */
static void test_unsigned(void **state) {
  (void)state;
  HAS("{ lambda x:u32[2] y:f32[2]. let a:u32[2] = abs x s:u32[2] = sign a b:f32[2] = sign y in (s, b) }",
      "%2 = \"stablehlo.constant\"() {value = dense<1>", "%3 = \"stablehlo.minimum\"(%0, %2)", "\"stablehlo.sign\"(%1)");
}

/* A whole program in Shardy's words: its mesh, a layout of each parameter and result, a shard_map, and parameters that are given. */
static void test_over_a_mesh(void **state) {
  (void)state;
  static const char text[] =
      "{ lambda x:f32[4] w:f32[2]. let y:f32[4] = neg x z:f32[2] = shard_map[mesh=(d=2) unchecked=false in_specs=(P(d), P()) "
      "out_specs=(P()) body={ axes d=2 ; lambda a:f32[2]{V:d} b:f32[2]. let c:f32[2] = psum[axes=(d)] a e:f32[2] = mul c b in (e) }] "
      "y w in (z) }";
  static const ax_spec cut = {.count = {1}, .rank = 1}, whole = {0};
  const ax_spec in_specs[] = {cut, whole};
  ax_mesh mesh, other;
  ax_program *program;
  char *module;
  size_t bytes;
  TEST_OK(ax_mesh_parse("d=2", &mesh));
  TEST_OK(ax_mesh_parse("e=2", &other));
  TEST_OK(ax_program_parse(text, strlen(text), NULL, &program));
  ax_stablehlo_writing how = {.mesh = &mesh, .in_specs = in_specs, .out_specs = &whole, .donate = AX_ARGS(1)};
  TEST_OK(ax_program_stablehlo_with(program, &how, &module, &bytes));
  assert_int_equal(bytes, strlen(module));
  assert_string_equal(
      module,
      "module @axle attributes {mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 1 : i32} {\n"
      "  \"sdy.mesh\"() {mesh = #sdy.mesh<[\"d\"=2]>, sym_name = \"mesh\"} : () -> ()\n"
      "  func.func public @main(%0: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{\"d\"}]>}, %1: tensor<2xf32> "
      "{jax.buffer_donor = true, sdy.sharding = #sdy.sharding<@mesh, [{}]>}) -> (tensor<2xf32> {sdy.sharding = "
      "#sdy.sharding<@mesh, [{}]>}) {\n"
      "    %2 = \"stablehlo.negate\"(%0) : (tensor<4xf32>) -> tensor<4xf32>\n"
      "    %3 = \"sdy.manual_computation\"(%2, %1) ({\n"
      "    ^bb0(%4: tensor<2xf32>, %5: tensor<2xf32>):\n"
      "      %6 = \"stablehlo.all_reduce\"(%4) ({\n"
      "      ^bb0(%7: tensor<f32>, %8: tensor<f32>):\n"
      "        %9 = \"stablehlo.add\"(%7, %8) : (tensor<f32>, tensor<f32>) -> tensor<f32>\n"
      "        \"stablehlo.return\"(%9) : (tensor<f32>) -> ()\n"
      "      }) {channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, replica_groups = dense<[[0, 1]]> : "
      "tensor<1x2xi64>, use_global_device_ids} : (tensor<2xf32>) -> tensor<2xf32>\n"
      "      %10 = \"stablehlo.multiply\"(%6, %5) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>\n"
      "      \"sdy.return\"(%10) : (tensor<2xf32>) -> ()\n"
      "    }) {in_shardings = #sdy.sharding_per_value<[<@mesh, [{\"d\"}]>, <@mesh, [{}]>]>, manual_axes = "
      "#sdy<manual_axes{\"d\"}>, out_shardings = #sdy.sharding_per_value<[<@mesh, [{}]>]>} : (tensor<4xf32>, "
      "tensor<2xf32>) -> tensor<2xf32>\n"
      "    \"func.return\"(%3) : (tensor<2xf32>) -> ()\n"
      "  }\n"
      "}\n");
  ax_string_free(module);
  how.mesh = &other;
  TEST_FAILS(ax_program_stablehlo_with(program, &how, &module, &bytes), AX_ABSENT, "shard_map over (d=2,) in a module of another mesh");
  how = (ax_stablehlo_writing){.mesh = &mesh};
  TEST_FAILS(ax_program_stablehlo_with(program, &how, &module, &bytes), AX_INVALID_ARGUMENT, "a mesh without specs");
  how = (ax_stablehlo_writing){.donate = AX_ARGS(2)};
  TEST_FAILS(ax_program_stablehlo_with(program, &how, &module, &bytes), AX_INVALID_ARGUMENT, "parameter 2");
  how = (ax_stablehlo_writing){.mesh = &mesh, .in_specs = in_specs, .out_specs = &whole, .version = "1.0.0"};
  TEST_FAILS(ax_program_stablehlo_with(program, &how, &module, &bytes), AX_ABSENT, "VHLO has no");
  ax_program_release(program);
}

/* Products of f32 and c64, and convolutions, say how precise they are; in bytecode too; and a reader takes it. */
static void test_precision(void **state) {
  (void)state;
  static const char text[] =
      "{ lambda x:f32[2,2] h:bf16[2,2] c:c64[2,2] i:f32[1,1,4] k:f32[1,1,2]. let "
      "y:f32[2,2] = dot_general[lhs_contract=(1) rhs_contract=(0) lhs_batch=() rhs_batch=()] x x "
      "g:bf16[2,2] = dot_general[lhs_contract=(1) rhs_contract=(0) lhs_batch=() rhs_batch=()] h h "
      "e:c64[2,2] = dot_general[lhs_contract=(1) rhs_contract=(0) lhs_batch=() rhs_batch=()] c c "
      "o:f32[1,1,3] = conv_general_dilated[window_strides=(1) padding_low=(0) padding_high=(0) lhs_dilation=(1) rhs_dilation=(1) lhs_spec=(0, 1, 2) "
      "rhs_spec=(0, 1, 2) out_spec=(0, 1, 2) feature_group_count=1 batch_group_count=1] i k in (y, g, e, o) }";
  static const char *const versions[] = {NULL, "1.0.0"};
  ax_program *program, *again;
  char *module, *mlir, *plain;
  size_t bytes;
  TEST_OK(ax_program_parse(text, strlen(text), NULL, &program));
  TEST_OK(ax_program_stablehlo(program, &plain));
  assert_null(strstr(plain, "precision"));
  for (size_t v = 0; v < AX_COUNT(versions); v++) {
    uint32_t said = 0;
    TEST_OK(ax_program_stablehlo_with(program, &(ax_stablehlo_writing){.precision = "HIGHEST", .version = versions[v]}, &module, &bytes));
    TEST_OK(ax_stablehlo_text(module, bytes, NULL, &mlir));
    for (const char *at = mlir; (at = strstr(at, "precision HIGHEST>, #stablehlo<precision HIGHEST>")) != NULL; at++) said++;
    assert_int_equal(said, 3); /* bf16 is whole in any case */
    TEST_OK(ax_program_from_stablehlo(module, bytes, "m.mlir", &again));
    ax_string_free(module);
    TEST_OK(ax_program_stablehlo(again, &module));
    assert_string_equal(module, plain);
    ax_program_release(again);
    ax_string_free(module), ax_string_free(mlir);
  }
  TEST_FAILS(ax_program_stablehlo_with(program, &(ax_stablehlo_writing){.precision = "highest"}, &module, &bytes), AX_INVALID_ARGUMENT,
             "HIGHEST, HIGH or DEFAULT, and not \"highest\"");
  ax_string_free(plain);
  ax_program_release(program);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_local),
      cmocka_unit_test(test_per_device),
      cmocka_unit_test(test_too_many_devices),
      cmocka_unit_test(test_whole),
      cmocka_unit_test(test_resharded),
      cmocka_unit_test(test_refusals),
      cmocka_unit_test(test_calls),
      cmocka_unit_test(test_checkpoints),
                                     cmocka_unit_test(test_bytecode),
      cmocka_unit_test(test_out_of_memory),
      cmocka_unit_test(test_bodies),
      cmocka_unit_test(test_shapes),
      cmocka_unit_test(test_unsigned),
      cmocka_unit_test(test_over_a_mesh),
      cmocka_unit_test(test_precision),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
