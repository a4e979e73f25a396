/* dce, cse and simplification. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "axle/collectives.h"
#include "axle/ops.h"
#include "ir/prim.h"
#include "ir/transform.h"
#include "support/cmocka.h"
#include "support/tensor.h"

static void wasteful(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value a = ax_exp(in[0]), b = ax_exp(in[0]);
  ax_log(in[1]);          /* dead */
  ax_neg(ax_tanh(in[1])); /* dead, both */
  ax_value c = ax_mul(a, b), d = ax_mul(b, a), e = ax_mul(a, a);
  out[0] = ax_add(c, e); /* c = d = e once a = b */
  out[1] = d;
}

static ax_program *trace_wasteful(void) {
  ax_type types[] = {TEST_SCALAR(AX_F64), TEST_SCALAR(AX_F64)};
  return test_trace(wasteful, NULL, types, 2, 2);
}

static void check_values(const ax_program *program) {
  double x[] = {0, 1}, y[2];
  test_run_scalars(program, x, y);
  assert_true(y[0] == 2 && y[1] == 1);
}

static void drops_the_dead(void **state) {
  (void)state;
  ax_program *program = trace_wasteful(), *clean, *again;
  assert_int_equal(program->eqn_count, 9);
  TEST_OK(ax_program_dce(program, &clean));
  assert_int_equal(clean->eqn_count, 6);
  assert_int_equal(ax_program_in_count(clean), 2); /* inputs stay */
  check_values(clean);
  TEST_OK(ax_program_dce(clean, &again));
  assert_true(ax_program_equal(clean, again));
  ax_program *all[] = {program, clean, again};
  for (size_t i = 0; i < AX_COUNT(all); i++) ax_program_release(all[i]);
}

#define SVD(uv) "svd[full_matrices=false compute_uv=" uv "] x"
#define EIGH(v) "eigh[lower=true compute_v=" v "] x"

/* What is left of the program is `wanted`. */
static void expect_left(const char *text, const char *wanted) {
  ax_program *program, *left, *other;
  TEST_OK(ax_program_parse(text, strlen(text), "t", &program));
  TEST_OK(ax_program_parse(wanted, strlen(wanted), "t", &other));
  TEST_OK(ax_program_dce(program, &left));
  assert_true(ax_program_equal(left, other));
  ax_program *all[] = {program, left, other};
  for (size_t i = 0; i < AX_COUNT(all); i++) ax_program_release(all[i]);
}

/* Values are computed alone where no vectors are needed, also where a call gives vectors that are not used. */
static void drops_vectors(void **state) {
  (void)state;
  expect_left("{ lambda x:f32[3,3]. let s:f32[3] u:f32[3,3] t:f32[3,3] = " SVD("true") " v:f32[3,3] w:f32[3] = " EIGH("true") " in (s, w) }",
              "{ lambda x:f32[3,3]. let s:f32[3] = " SVD("false") " w:f32[3] = " EIGH("false") " in (s, w) }");
  expect_left("{ lambda x:f32[3,3]. let s:f32[3] u:f32[3,3] = closed_call[body={ lambda x:f32[3,3]. let s:f32[3] u:f32[3,3] t:f32[3,3] = " SVD("true")
              " in (s, u) }] x in (s,) }",
              "{ lambda x:f32[3,3]. let s:f32[3] = closed_call[body={ lambda x:f32[3,3]. let s:f32[3] = " SVD("false") " in (s,) }] x in (s,) }");
  static const char *const stay[] = {
      "{ lambda x:f32[3,3]. let s:f32[3] u:f32[3,3] t:f32[3,3] = " SVD("true") " in (t,) }",
      "{ lambda x:f32[3,3]. let v:f32[3,3] w:f32[3] = " EIGH("true") " in (v,) }",
      "{ lambda x:f32[3,3]. let w:f32[3] = " EIGH("false") " in (w,) }"};
  for (size_t i = 0; i < AX_COUNT(stay); i++) expect_left(stay[i], stay[i]);
}

static void merges_the_equal(void **state) {
  (void)state;
  ax_program *program = trace_wasteful(), *merged, *clean, *again;
  TEST_OK(ax_program_cse(program, &merged));
  TEST_OK(ax_program_dce(merged, &clean));
  assert_int_equal(clean->eqn_count, 3); /* exp, mul, add */
  check_values(clean);
  TEST_OK(ax_program_cse(clean, &again));
  assert_true(ax_program_equal(clean, again));
  ax_program *all[] = {program, merged, clean, again};
  for (size_t i = 0; i < AX_COUNT(all); i++) ax_program_release(all[i]);
}

/* Parameters and dtypes tell equations apart; equal collectives are one. */
static void different(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_integer_pow(in[0], 2);
  out[1] = ax_integer_pow(in[0], 3);
  out[2] = ax_mul(ax_full(AX_F64, AX_DIMS(), 0.0), ax_full(AX_F64, AX_DIMS(), -0.0));
  out[3] = ax_psum(in[0], "data");
  out[4] = ax_psum(in[0], "model");
  out[5] = ax_psum(in[0], "data");
}

static void parameters_count(void **state) {
  (void)state;
  ax_mesh mesh;
  TEST_OK(ax_mesh_parse("data=2,model=2", &mesh));
  ax_type type = TEST_SCALAR(AX_F64);
  type.spread.varying = 3;
  ax_program *program, *merged;
  TEST_OK(ax_trace_on(&mesh, AX_FN(different, 1, 6), &type, &program));
  TEST_OK(ax_program_cse(program, &merged));
  assert_int_equal(merged->eqn_count, program->eqn_count - 1);
  assert_int_equal(merged->outs[3], merged->outs[5]);
  assert_int_not_equal(merged->outs[3], merged->outs[4]);
  ax_program_release(merged);
  ax_program_release(program);
}

/* An equation with state is neither dropped nor merged; nor is one that holds a program with such an equation. */
static void state_stays(void **state) {
  (void)state;
  ax_type type = TEST_SCALAR(AX_F64);
  ax_program *programs[2], *clean, *merged;
  for (int stateful = 0; stateful < 2; stateful++) {
    ax_prim prim = *ax_prim_find("neg", 3);
    prim.effects = stateful ? AX_EFFECT_STATE : 0;
    ax_builder builder;
    ax_value x, out[3];
    ax_builder_begin(&builder, NULL);
    x = ax_builder_input(&builder, &type);
    for (int i = 0; i < 3; i++) ax_emit(&prim, NULL, &x, 1, &out[i], 1);
    TEST_OK(ax_builder_finish(&builder, out, 2, &programs[stateful], NULL, NULL));
    assert_int_equal(programs[stateful]->effects, prim.effects);
    TEST_OK(ax_program_dce(programs[stateful], &clean));
    TEST_OK(ax_program_cse(programs[stateful], &merged));
    assert_int_equal(clean->eqn_count, stateful ? 3 : 2);
    assert_int_equal(merged->eqn_count, stateful ? 3 : 1);
    ax_program *all[] = {programs[stateful], clean, merged};
    for (size_t i = 0; i < AX_COUNT(all); i++) ax_program_release(all[i]);
  }
}

static void sums(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_psum(in[0], "data");
}

static void maps(const ax_value *in, ax_value *out, void *context) {
  ax_shard_map(context, "data -> ", AX_FN(sums, 1, 1), in, out);
}

static void effects_come_from_inside(void **state) {
  (void)state;
  ax_mesh mesh;
  TEST_OK(ax_mesh_parse("data=2", &mesh));
  ax_type type = TEST_TYPE(AX_F64, 2);
  ax_program *program = test_trace(maps, &mesh, &type, 1, 1);
  assert_int_equal(program->eqns[0].prim->effects, 0);
  assert_int_equal(ax_eqn_effects(&program->eqns[0]), AX_EFFECT_EXCHANGE);
  assert_int_equal(program->effects, AX_EFFECT_EXCHANGE);
  ax_program_release(program);
}

/* --- Simplification --- */

static ax_program *parse(const char *text) {
  ax_program *program;
  TEST_OK(ax_program_parse(text, strlen(text), NULL, &program));
  return program;
}

static void simplifies_to(const char *text, const char *wanted) {
  ax_program *program = parse(text), *expected = parse(wanted), *simple, *again;
  char *got;
  TEST_OK(ax_program_simplify(program, &simple));
  TEST_OK(ax_program_print(simple, &got));
  if (!ax_program_equal(simple, expected)) fail_msg("%s\nbecame\n%s\nnot\n%s", text, got, wanted);
  TEST_OK(ax_program_simplify(simple, &again));
  assert_ptr_equal(again, simple);
  ax_string_free(got);
  ax_program *all[] = {program, expected, simple, again};
  for (size_t i = 0; i < AX_COUNT(all); i++) ax_program_release(all[i]);
}

/* The result is the first operand, f32[3], to the bit, on numbers that are hard to keep. Subnormal ones are kept: what flushes them
   does so no more in a program that is simplified. */
static void gives_its_operand(const char *text) {
  static const double edges[][3] = {{NAN, -0.0, 0.0}, {INFINITY, -INFINITY, 0x1p-149}, {-0x1p-149, 0x1.fffffep127, 1}};
  ax_program *program = parse(text);
  for (size_t e = 0; e < AX_COUNT(edges); e++) {
    ax_tensor *in[3], *out[1];
    in[0] = test_tensor(program->types[0], edges[e]);
    in[1] = test_tensor(program->types[1], (double[]){1, 2, 3});
    in[2] = test_tensor(program->types[2], (double[]){1, 0, 1});
    TEST_OK(ax_evaluate_with(AX_SUBNORMALS_KEEP, NULL, program, in, out));
    assert_memory_equal(out[0]->data, in[0]->data, 3 * sizeof(float));
    test_release(in, 3);
    test_release(out, 1);
  }
  ax_program_release(program);
}

static void to_an_operand(void **state) {
  (void)state;
  static const char *const equations[] = {
      "y:f32[3] = mul x one",
      "y:f32[3] = mul one x",
      "y:f32[3] = div x one",
      "y:f32[3] = add x minus",
      "y:f32[3] = add minus x",
      "y:f32[3] = sub x zero",
      "n:f32[3] = neg x y:f32[3] = neg n",
      "y:f32[3] = select_n p x x",
      "y:f32[3] = select_n true:bool[] q x",
      "y:f32[3] = select_n false:bool[] x q",
      "y:f32[3] = convert_element_type[dtype=f32] x",
      "w:f64[3] = convert_element_type[dtype=f64] x y:f32[3] = convert_element_type[dtype=f32] w",
      "t:f32[1,3] = reshape[new_sizes=(1, 3)] x y:f32[3] = reshape[new_sizes=(3,)] t",
      "y:f32[3] = broadcast_in_dim[shape=(3,) broadcast_dimensions=(0,)] x",
      "y:f32[3] = slice[start_indices=(0,) limit_indices=(3,) strides=(1,)] x",
      "y:f32[3] = pad[low=(0,) high=(0,) interior=(0,)] x 7.0:f32[]",
  };
  for (size_t i = 0; i < AX_COUNT(equations); i++) {
    char text[1024];
    snprintf(
        text, sizeof text,
        "{ lambda x:f32[3] q:f32[3] p:bool[3]. let one:f32[3] = broadcast_in_dim[shape=(3,) broadcast_dimensions=()] 1.0:f32[] "
        "zero:f32[3] = broadcast_in_dim[shape=(3,) broadcast_dimensions=()] 0.0:f32[] "
        "minus:f32[3] = broadcast_in_dim[shape=(3,) broadcast_dimensions=()] -0.0:f32[] %s in (y,) }",
        equations[i]);
    simplifies_to(text, "{ lambda x:f32[3] q:f32[3] p:bool[3]. let in (x,) }");
    gives_its_operand(text);
  }
  simplifies_to(
      "{ axes d=2 ; lambda x:s32[]{V:d}. let o:s32[]{V:d} = pvary[axes=(d,)] 1:s32[] z:s32[]{V:d} = pvary[axes=(d,)] 0:s32[] "
      "a:s32[]{V:d} = mul o x b:s32[]{V:d} = add a z in (b,) }",
      "{ axes d=2 ; lambda x:s32[]{V:d}. let in (x,) }");
}

/* What would change a bit of some value stays. */
static void what_stays(void **state) {
  (void)state;
  static const char *const texts[] = {
      "{ lambda x:f32[]. let y:f32[] = add x 0.0:f32[] in (y,) }",  /* -0 + 0 = 0 */
      "{ lambda x:f32[]. let y:f32[] = sub x -0.0:f32[] in (y,) }", /* -0 - -0 = 0 */
      "{ lambda x:f32[]. let y:f32[] = sub 0.0:f32[] x in (y,) }",
      "{ lambda x:f32[]. let y:f32[] = mul x 0.0:f32[] in (y,) }", /* NaN, -0 */
      "{ lambda x:f32[]. let y:f32[] = div 1.0:f32[] x in (y,) }",
      "{ lambda x:f32[]. let y:bf16[] = convert_element_type[dtype=bf16] x z:f32[] = convert_element_type[dtype=f32] y in (z,) }",
      "{ lambda x:s32[]. let y:f32[] = convert_element_type[dtype=f32] x z:s32[] = convert_element_type[dtype=s32] y in (z,) }",
      "{ lambda x:s32[]. let y:u64[] = convert_element_type[dtype=u64] x z:f32[] = convert_element_type[dtype=f32] y in (z,) }",
      "{ lambda x:f32[2,3]. let y:f32[3,2] = reshape[new_sizes=(3, 2)] x z:f32[2,3] = transpose[permutation=(1, 0)] y in (z,) }",
      "{ lambda x:f32[]. let y:f32[] = stop_gradient x in (y,) }",
      "{ lambda x:f32[2,3] y:f32[1,3]. let z:f32[3,3] = concatenate[dimension=0] x y in (z,) }",
      "{ lambda x:f32[2,3] y:f32[1,3]. let a:f32[3,3] = concatenate[dimension=0] x y " /* of both */
      "z:f32[2,3] = slice[start_indices=(1,0) limit_indices=(3,3) strides=(1,1)] a in (z,) }",
      "{ lambda x:f32[4,6]. let y:f32[6,4] = transpose[permutation=(1, 0)] x " /* a large part */
      "z:f32[3,4] = slice[start_indices=(1, 0) limit_indices=(4, 4) strides=(1, 1)] y in (z,) }",
      "{ lambda x:f32[3]. let y:f32[3] = pad[low=(1,) high=(-1,) interior=(0,)] x 0.0:f32[] in (y,) }",
      "{ lambda x:f32[2,3] y:f32[5,4,3]. let t:f32[3,4,5] = transpose[permutation=(2, 1, 0)] y " /* the result's dimensions would
                                                                                                    change places */
      "z:f32[2,4,5] = dot_general[lhs_contract=(1,) rhs_contract=(0,) lhs_batch=() rhs_batch=()] x t in (z,) }",
      "{ lambda x:f32[2,3,4] y:f32[3,4,5]. let t:f32[2,4,3] = transpose[permutation=(0, 2, 1)] x " /* another order of additions */
      "z:f32[2,5] = dot_general[lhs_contract=(2, 1) rhs_contract=(0, 1) lhs_batch=() rhs_batch=()] t y in (z,) }",
  };
  for (size_t i = 0; i < AX_COUNT(texts); i++) simplifies_to(texts[i], texts[i]);
}

static void chains(void **state) {
  (void)state;
  simplifies_to("{ lambda x:f32[2,3]. let a:f32[6] = reshape[new_sizes=(6,)] x b:f32[3,2] = reshape[new_sizes=(3, 2)] a in (b,) }",
                "{ lambda x:f32[2,3]. let b:f32[3,2] = reshape[new_sizes=(3, 2)] x in (b,) }");
  simplifies_to(
      "{ lambda x:f32[2,3,4]. let a:f32[3,4,2] = transpose[permutation=(1, 2, 0)] x b:f32[4,3,2] = transpose[permutation=(1, 0, 2)] a "
      "in (b,) }",
      "{ lambda x:f32[2,3,4]. let b:f32[4,3,2] = transpose[permutation=(2, 1, 0)] x in (b,) }");
  simplifies_to(
      "{ lambda x:f32[2,3] y:f32[5,3]. let t:f32[3,5] = transpose[permutation=(1, 0)] y "
      "z:f32[2,5] = dot_general[lhs_contract=(1,) rhs_contract=(0,) lhs_batch=() rhs_batch=()] x t in (z,) }",
      "{ lambda x:f32[2,3] y:f32[5,3]. let z:f32[2,5] = dot_general[lhs_contract=(1,) rhs_contract=(1,) lhs_batch=() rhs_batch=()] x y "
      "in (z,) }");
  simplifies_to(
      "{ lambda q:f32[2,8,3,4] k:f32[2,9,3,4]. let a:f32[2,3,8,4] = transpose[permutation=(0, 2, 1, 3)] q "
      "b:f32[2,3,4,9] = transpose[permutation=(0, 2, 3, 1)] k "
      "z:f32[2,3,8,9] = dot_general[lhs_contract=(3,) rhs_contract=(2,) lhs_batch=(0, 1) rhs_batch=(0, 1)] a b in (z,) }",
      "{ lambda q:f32[2,8,3,4] k:f32[2,9,3,4]. let "
      "z:f32[2,3,8,9] = dot_general[lhs_contract=(3,) rhs_contract=(3,) lhs_batch=(0, 2) rhs_batch=(0, 2)] q k in (z,) }");
  simplifies_to("{ lambda x:f32[3]. let a:f32[3,1] = broadcast_in_dim[shape=(3, 1) broadcast_dimensions=(0,)] x "
                "b:f32[2,3,4] = broadcast_in_dim[shape=(2, 3, 4) broadcast_dimensions=(1, 2)] a in (b,) }",
                "{ lambda x:f32[3]. let b:f32[2,3,4] = broadcast_in_dim[shape=(2, 3, 4) broadcast_dimensions=(1,)] x in (b,) }");
  simplifies_to("{ lambda x:f32[0,3] y:f32[2,3]. let a:f32[2,3] = concatenate[dimension=0] x y in (a,) }",
                "{ lambda x:f32[0,3] y:f32[2,3]. let in (y,) }");
  simplifies_to(
      "{ lambda x:f32[9,2,5]. let a:f32[5,9,2] = transpose[permutation=(2, 0, 1)] x "
      "b:f32[1,4,2] = slice[start_indices=(3, 1, 0) limit_indices=(4, 9, 2) strides=(1, 2, 1)] a in (a, b) }",
      "{ lambda x:f32[9,2,5]. let a:f32[5,9,2] = transpose[permutation=(2, 0, 1)] x "
      "c:f32[4,2,1] = slice[start_indices=(1, 0, 3) limit_indices=(9, 2, 4) strides=(2, 1, 1)] x "
      "b:f32[1,4,2] = transpose[permutation=(2, 0, 1)] c in (a, b) }");
  simplifies_to("{ lambda x:f32[20,3]. let a:f32[6,2] = slice[start_indices=(2,1) limit_indices=(20,3) strides=(3,1)] x "
                "b:f32[2,1] = slice[start_indices=(1,1) limit_indices=(5,2) strides=(2,1)] a in (b,) }",
                "{ lambda x:f32[20,3]. let b:f32[2,1] = slice[start_indices=(5,2) limit_indices=(12,3) strides=(6,1)] x in (b,) }");
  simplifies_to("{ lambda x:f32[2,3] y:f32[2,4]. let a:f32[2,7] = concatenate[dimension=1] x y "
                "b:f32[1,2] = slice[start_indices=(1,4) limit_indices=(2,7) strides=(1,2)] a in (b,) }",
                "{ lambda x:f32[2,3] y:f32[2,4]. let b:f32[1,2] = slice[start_indices=(1,1) limit_indices=(2,4) strides=(1,2)] y in (b,) }");
  simplifies_to("{ lambda x:f32[2,3] y:f32[2,4]. let a:f32[2,7] = concatenate[dimension=1] x y "
                "b:f32[2,4] = slice[start_indices=(0,3) limit_indices=(2,7) strides=(1,1)] a in (b,) }",
                "{ lambda x:f32[2,3] y:f32[2,4]. let in (y,) }");
  simplifies_to(
      "{ lambda x:bf16[]. let a:f32[] = convert_element_type[dtype=f32] x b:s8[] = convert_element_type[dtype=s8] a in (b,) }",
      "{ lambda x:bf16[]. let b:s8[] = convert_element_type[dtype=s8] x in (b,) }");
}

/* Whole numbers that follow from literals, and the branches that they choose; floats stay. */
static void known_numbers(void **state) {
  (void)state;
  simplifies_to("{ lambda x:f32[]. let a:s32[] = mul 3:s32[] 5:s32[] b:s32[] = sub a 20:s32[] c:bool[] = lt b 0:s32[] "
                "d:s32[] = select_n c 7:s32[] b e:s32[] = div d 0:s32[] f:u8[] = convert_element_type[dtype=u8] d in (d, e, f) }",
                "{ lambda x:f32[]. let in (-5:s32[], -1:s32[], 251:u8[]) }");
  simplifies_to("{ lambda x:f32[]. let a:f32[] = mul 3.0:f32[] 0.1:f32[] b:f32[] = mul a x in (b,) }",
                "{ lambda x:f32[]. let a:f32[] = mul 3.0:f32[] 0.1:f32[] b:f32[] = mul a x in (b,) }");
  simplifies_to("{ lambda x:f32[]. let i:s32[] = convert_element_type[dtype=s32] true:bool[] y:f32[] = cond[branches=("
                "{ lambda x:f32[]. let y:f32[] = exp x in (y,) }, { lambda x:f32[]. let y:f32[] = sin x in (y,) })] i x in (y,) }",
                "{ lambda x:f32[]. let y:f32[] = sin x in (y,) }");
  simplifies_to("{ lambda x:f32[]. let y:f32[] = cond[branches=({ lambda x:f32[]. let y:f32[] = exp x in (y,) }, "
                "{ lambda x:f32[]. let y:f32[] = sin x in (y,) })] -7:s32[] x in (y,) }",
                "{ lambda x:f32[]. let y:f32[] = exp x in (y,) }");
}

/* Nested programs are simplified too, and one that several equations hold stays one. */
static void nested_programs(void **state) {
  (void)state;
  simplifies_to(
      "{ lambda i:s32[] x:f32[]. let y:f32[] = cond[branches=({ lambda x:f32[]. let e:f32[] = exp x y:f32[] = mul x 1.0:f32[] in (y,) }, "
      "{ lambda x:f32[]. let a:f32[] = neg x b:f32[] = neg x c:f32[] = add a b in (c,) })] i x in (y,) }",
      "{ lambda i:s32[] x:f32[]. let y:f32[] = cond[branches=({ lambda x:f32[]. let in (x,) }, "
      "{ lambda x:f32[]. let a:f32[] = neg x c:f32[] = add a a in (c,) })] i x in (y,) }");
  ax_program *body = parse("{ lambda x:f32[]. let y:f32[] = mul x 1.0:f32[] z:f32[] = exp y in (z,) }"), *program, *simple;
  ax_type type = TEST_SCALAR(AX_F32), index = TEST_SCALAR(AX_S32);
  ax_builder builder;
  ax_value x, out;
  struct {
    ax_programs branches;
  } params = {{1, &body}};
  ax_builder_begin(&builder, NULL);
  const ax_value which = ax_builder_input(&builder, &index);
  x = ax_builder_input(&builder, &type);
  ax_value operands[] = {which, x};
  for (int i = 0; i < 2; i++) {
    ax_emit(ax_prim_find("cond", 4), &params, operands, 2, &out, 1);
    operands[1] = out;
  }
  TEST_OK(ax_builder_finish(&builder, &out, 1, &program, NULL, NULL));
  TEST_OK(ax_program_simplify(program, &simple));
  const ax_programs *first = simple->eqns[0].params, *second = simple->eqns[1].params;
  assert_int_equal(first->v[0]->eqn_count, 1);
  assert_ptr_equal(first->v[0], second->v[0]);
  ax_program *all[] = {body, program, simple};
  for (size_t i = 0; i < AX_COUNT(all); i++) ax_program_release(all[i]);
}

/* A long chain of steps that all fold away: one walk, however long. */
static void long_chains(void **state) {
  (void)state;
  enum { length = 4000 };
  ax_text text = {0};
  ax_text_add(&text, "{ lambda v0:f32[2,3]. let\n");
  for (int i = 0; i < length; i++)
    ax_text_add(&text, "v%d:f32[%s] = transpose[permutation=(1, 0)] v%d\n", i + 1, i % 2 ? "2,3" : "3,2", i);
  ax_text_add(&text, "in (v%d,) }", length);
  simplifies_to(text.data, "{ lambda x:f32[2,3]. let in (x,) }");
  ax_text_deinit(&text);
}

static void square_of(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_reduce_sum(ax_mul(in[0], ax_exp(in[0])), AX_DIMS(0), false);
}

/* A gradient does not begin with a product with the 1 that it starts from. */
static void gradients(void **state) {
  (void)state;
  ax_type type = TEST_TYPE(AX_F32, 4);
  ax_program *program = test_trace(square_of, NULL, &type, 1, 1), *gradient;
  char *text;
  TEST_OK(ax_program_grad(program, AX_FIRST(1), &gradient));
  TEST_OK(ax_program_print(gradient, &text));
  assert_null(strstr(text, "1.0:f32[]"));
  assert_int_equal(gradient->eqn_count, 3); /* exp, mul, add */
  ax_string_free(text);
  ax_program_release(program);
  ax_program_release(gradient);
}

/* --- Regions --- */

/* What is left of `before`. */
static void check_left(const char *before, const char *after) {
  ax_program *program = parse(before), *wanted = parse(after), *clean, *again;
  TEST_OK(ax_program_dce(program, &clean));
  TEST_OK(ax_program_verify(clean));
  if (!ax_program_equal(clean, wanted)) {
    char *text;
    TEST_OK(ax_program_print(clean, &text));
    print_error("%s", text);
    ax_string_free(text);
  }
  assert_true(ax_program_equal(clean, wanted));
  TEST_OK(ax_program_dce(clean, &again));
  assert_ptr_equal(clean, again);
  ax_program *all[] = {program, wanted, clean, again};
  for (size_t i = 0; i < AX_COUNT(all); i++) ax_program_release(all[i]);
}

#define SCAN(counts) "scan[length=3 reverse=false " counts " body="

static void scans_keep_what_is_needed(void **state) {
  (void)state;
  /* of carries a, b, c and ys p, q: p needs c, c needs a; neither needs b, nor the constant that b alone uses */
  check_left("{ lambda k:f64[] l:f64[] a:f64[] b:f64[] c:f64[] x:f64[3]. let\n"
             "  d:f64[] e:f64[] f:f64[] p:f64[3] q:f64[3] = " SCAN("num_consts=2 num_carry=3")
             "{ lambda k:f64[] l:f64[] a:f64[] b:f64[] c:f64[] x:f64[]. let\n"
             "    d:f64[] = mul a k  e:f64[] = mul b l  f:f64[] = add c a  q:f64[] = mul b x in (d, e, f, f, q) }] k l a b c x\n"
             "in (p,) }",
             "{ lambda k:f64[] l:f64[] a:f64[] b:f64[] c:f64[] x:f64[3]. let\n"
             "  d:f64[] f:f64[] p:f64[3] = " SCAN("num_consts=1 num_carry=2")
             "{ lambda k:f64[] a:f64[] c:f64[]. let d:f64[] = mul a k  f:f64[] = add c a in (d, f, f) }] k a c\n"
             "in (p,) }");
  /* what a scan inside does not need, the one around does not either */
  check_left("{ lambda a:f64[] b:f64[]. let\n"
             "  c:f64[] d:f64[] = " SCAN("num_consts=0 num_carry=2") "{ lambda a:f64[] b:f64[]. let\n"
             "    c:f64[] d:f64[] = " SCAN("num_consts=0 num_carry=2") "{ lambda a:f64[] b:f64[]. let\n"
             "      c:f64[] = exp a  d:f64[] = mul a b  e:f64[] = tanh d in (c, e) }] a b in (c, d) }] a b\n"
             "in (c,) }",
             "{ lambda a:f64[] b:f64[]. let\n"
             "  c:f64[] = " SCAN("num_consts=0 num_carry=1") "{ lambda a:f64[]. let\n"
             "    c:f64[] = " SCAN("num_consts=0 num_carry=1") "{ lambda a:f64[]. let c:f64[] = exp a in (c,) }] a in (c,) }] a\n"
             "in (c,) }");
}

static void conds_and_whiles_keep_what_is_needed(void **state) {
  (void)state;
  check_left("{ lambda i:s32[] x:f64[] y:f64[] z:f64[]. let\n"
             "  r:f64[] s:f64[] = cond[branches=({ lambda x:f64[] y:f64[] z:f64[]. let a:f64[] = exp z in (x, a) },\n"
             "    { lambda x:f64[] y:f64[] z:f64[]. let a:f64[] = neg y in (a, z) })] i x y z\n"
             "in (r,) }",
             "{ lambda i:s32[] x:f64[] y:f64[] z:f64[]. let\n"
             "  r:f64[] = cond[branches=({ lambda x:f64[] y:f64[]. let in (x,) },\n"
             "    { lambda x:f64[] y:f64[]. let a:f64[] = neg y in (a,) })] i x y\n"
             "in (r,) }");
  check_left(
      "{ lambda l:f64[] k:f64[] m:f64[] a:f64[] b:f64[] c:f64[]. let\n"
      "  d:f64[] e:f64[] f:f64[] = while[cond={ lambda l:f64[] a:f64[] b:f64[] c:f64[]. let p:bool[] = lt a l in (p,) } cond_nconsts=1\n"
      "    body={ lambda k:f64[] m:f64[] a:f64[] b:f64[] c:f64[]. let d:f64[] = add a 1.0:f64[]  e:f64[] = mul b k  f:f64[] = mul c m\n"
      "      in (d, e, f) } body_nconsts=2] l k m a b c\n"
      "in (e,) }",
      "{ lambda l:f64[] k:f64[] m:f64[] a:f64[] b:f64[] c:f64[]. let\n"
      "  d:f64[] e:f64[] = while[cond={ lambda l:f64[] a:f64[] b:f64[]. let p:bool[] = lt a l in (p,) } cond_nconsts=1\n"
      "    body={ lambda k:f64[] a:f64[] b:f64[]. let d:f64[] = add a 1.0:f64[]  e:f64[] = mul b k in (d, e) } body_nconsts=1] l k a b\n"
      "in (e,) }");
}

static void shard_maps_and_calls_keep_what_is_needed(void **state) {
  (void)state;
  check_left("{ lambda x:f64[4] y:f64[4] z:f64[2]. let\n"
             "  r:f64[4] s:f64[] = shard_map[mesh=(d=2,) unchecked=false in_specs=(P(d), P(), P(d)) out_specs=(P(d), P())\n"
             "    body={ axes d=2 ; lambda x:f64[2]{V:d} y:f64[4] z:f64[1]{V:d}. let\n"
             "      t:f64[] = reduce_sum[axes=(0,)] y  a:f64[2]{V:d} = exp x in (a, t) }] x y z\n"
             "in (s,) }",
             "{ lambda x:f64[4] y:f64[4] z:f64[2]. let\n"
             "  s:f64[] = shard_map[mesh=(d=2,) unchecked=false in_specs=(P(),) out_specs=(P(),)\n"
             "    body={ axes d=2 ; lambda y:f64[4]. let t:f64[] = reduce_sum[axes=(0,)] y in (t,) }] y\n"
             "in (s,) }");
  check_left(
      "{ lambda x:f64[] y:f64[]. let\n"
      "  r:f64[] s:f64[] = closed_call[body={ lambda x:f64[] y:f64[]. let a:f64[] = exp x  b:f64[] = exp y in (a, b) }] x y in (s,) }",
      "{ lambda x:f64[] y:f64[]. let\n"
      "  s:f64[] = closed_call[body={ lambda y:f64[]. let b:f64[] = exp y in (b,) }] y in (s,) }");
  check_left(
      "{ lambda x:f64[] y:f64[]. let\n"
      "  r:f64[] s:f64[] = checkpoint[body={ lambda x:f64[] y:f64[]. let a:f64[] = exp x  b:f64[] = exp y in (a, b) }\n"
      "    differentiated=true save_everything=false save_dots=false save_unbatched_dots=false save_names=() save_other_names=false but_names=() save_primitives=()] x y in (s,) }",
      "{ lambda x:f64[] y:f64[]. let\n"
      "  s:f64[] = checkpoint[body={ lambda y:f64[]. let b:f64[] = exp y in (b,) } differentiated=true save_everything=false save_dots=false save_unbatched_dots=false save_names=() save_other_names=false but_names=() save_primitives=()] y in (s,) }");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(to_an_operand),
      cmocka_unit_test(what_stays),
      cmocka_unit_test(chains),
      cmocka_unit_test(known_numbers), cmocka_unit_test(nested_programs),
      cmocka_unit_test(long_chains),
      cmocka_unit_test(gradients),
      cmocka_unit_test(scans_keep_what_is_needed),
      cmocka_unit_test(conds_and_whiles_keep_what_is_needed),
      cmocka_unit_test(shard_maps_and_calls_keep_what_is_needed),
      cmocka_unit_test(state_stays),
      cmocka_unit_test(effects_come_from_inside),
      cmocka_unit_test(drops_the_dead), cmocka_unit_test(drops_vectors),
      cmocka_unit_test(merges_the_equal),
      cmocka_unit_test(parameters_count),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
