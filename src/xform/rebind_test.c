/* Programs in another axis environment: compared as text with what they should become, and by their results. */
#include <string.h>

#include "ir/transform.h"
#include "support/cmocka.h"
#include "support/lanes.h"

static ax_program *parse(const char *text) {
  ax_program *program;
  TEST_OK(ax_program_parse(text, strlen(text), "test", &program));
  return program;
}

static ax_mesh mesh_of(const char *text) {
  ax_mesh mesh;
  TEST_OK(ax_mesh_parse(text, &mesh));
  return mesh;
}

static ax_axes names_of(const char *text) {
  ax_axes names;
  TEST_OK(ax_axes_parse(text, &names));
  return names;
}

static void check_equal(const ax_program *made, const char *wanted) {
  ax_program *program = parse(wanted);
  TEST_OK(ax_program_verify(made));
  if (!ax_program_equal(made, program)) {
    char *text;
    TEST_OK(ax_program_print(made, &text));
    print_error("%s\n", text);
    ax_string_free(text);
  }
  assert_true(ax_program_equal(made, program));
  ax_program_release(program);
}

/* A scan whose body holds a cond, each with a collective. */
#define LOOP(ENVIRONMENT, VARYING, NAMES)                                                                           \
  "{ axes " ENVIRONMENT "; lambda i:s32[] x:f64[]" VARYING ". let\n"                                                \
  "    y:f64[]" VARYING " = scan[length=3 reverse=false num_consts=1 num_carry=1 body={ lambda i:s32[] c:f64[]" VARYING ". let\n" \
  "        n:s32[]" VARYING " = axis_index[axes=" NAMES "]\n"                                                       \
  "        m:f64[]" VARYING " = convert_element_type[dtype=f64] n\n"                                            \
  "        d:f64[]" VARYING " = mul c m\n"                                                                          \
  "        e:f64[]" VARYING " = cond[branches=({ lambda d:f64[]" VARYING ". let\n"                                  \
  "            s:f64[] = psum[axes=" NAMES "] d\n"                                                                  \
  "            v:f64[]" VARYING " = pvary[axes=" NAMES "] s\n"                                                      \
  "          in (v,) }, { lambda d:f64[]" VARYING ". let in (d,) })] i d\n"                                         \
  "      in (e,) }] i x\n"                                                                                          \
  "  in (y,) }"

static void axes_are_cut(void **state) {
  (void)state;
  ax_program *program = parse(LOOP("a=4", "{V:a}", "(a,)")), *made;
  ax_mesh axes = mesh_of("r=2,s=2");
  ax_axes names[] = {names_of("r,s")};
  TEST_OK(ax_program_rebind(program, &(ax_rebinding){.axes = &axes, .names = names}, &made));
  check_equal(made, LOOP("r=2 s=2", "{V:r,s}", "(r, s)"));
  ax_tensor **in = test_lane_array(program, 2), **a = test_lane_array(program, 1), **b = test_lane_array(program, 1);
  test_random random = {3};
  test_fill_lanes(program, &program->types[0], &random, test_random_tensor, 0, 1, in);
  test_fill_lanes(program, &program->types[1], &random, test_random_tensor, -1, 1, in + 4);
  TEST_OK(test_run_lanes(program, in, a));
  TEST_OK(test_run_lanes(made, in, b));
  for (int device = 0; device < 4; device++) TEST_TENSORS_NEAR(a[device], b[device], 0);
  test_lane_array_release(program, in, 2), test_lane_array_release(program, a, 1), test_lane_array_release(program, b, 1);
  ax_program_release(program), ax_program_release(made);
}

static void axes_are_added_and_renamed(void **state) {
  (void)state;
  ax_program *program = parse(LOOP("a=4", "{V:a}", "(a,)")), *made;
  ax_mesh larger = mesh_of("p=3,a=4"), other = mesh_of("b=4,p=3");
  ax_axes names[] = {names_of("b")};
  TEST_OK(ax_program_rebind(program, &(ax_rebinding){.axes = &larger}, &made));
  check_equal(made, LOOP("p=3 a=4", "{V:a}", "(a,)"));
  ax_program_release(made);
  TEST_OK(ax_program_rebind(program, &(ax_rebinding){.axes = &other, .names = names}, &made));
  check_equal(made, LOOP("b=4 p=3", "{V:b}", "(b,)"));
  ax_program_release(made), ax_program_release(program);
}

static void unchecked_axes_hold_nothing(void **state) {
  (void)state;
  ax_program *program = parse(LOOP("a=4", "{V:a}", "(a,)")), *made, *back;
  ax_mesh axes = mesh_of("a=4");
  axes.axis[0].unchecked = true;
  TEST_OK(ax_program_rebind(program, &(ax_rebinding){.axes = &axes}, &made));
  check_equal(made, LOOP("a=4?", "", "(a,)"));
  TEST_FAILS(ax_program_rebind(made, &(ax_rebinding){.axes = &program->axes}, &back), AX_INVALID_ARGUMENT,
             "rebind: axis \"a\" is unchecked, but {a}, which would stand for it, are checked");
  assert_null(back);
  ax_program_release(made), ax_program_release(program);
}

/* A shard_map inside: its mesh's axes come after the new environment. */
#define MAPPED(ENVIRONMENT)                                                                                           \
  "{ axes " ENVIRONMENT "; lambda x:f64[4]{V:a}. let\n"                                                               \
  "    y:f64[4]{V:a} = shard_map[mesh=(m=2,) unchecked=false in_specs=(P(m),) out_specs=(P(m),) body={ axes " ENVIRONMENT " m=2 ;\n" \
  "        lambda x:f64[2]{V:a,m}. let s:f64[2]{V:m} = psum[axes=(a,)] x  t:f64[2]{V:a} = psum[axes=(m,)] x\n"        \
  "          u:f64[2]{V:a,m} = pvary[axes=(a,)] s  v:f64[2]{V:a,m} = pvary[axes=(m,)] t  w:f64[2]{V:a,m} = mul u v in (w,) }] x\n" \
  "  in (y,) }"

/* The body of each nested program that has axes of its own, bound in place, in an environment that has them all. */
static bool inlined(const ax_rebinding *at, const ax_eqn *eqn, const ax_value *in, ax_value *out) {
  if (strcmp(eqn->prim->name, "shard_map") != 0) return false;
  const ax_program *body = NULL;
  for (uint32_t i = 0; i < eqn->prim->param_count; i++)
    if (eqn->prim->params[i].kind == AX_PARAM_PROGRAM)
      body = *(ax_program *const *)((const char *)eqn->params + eqn->prim->params[i].offset);
  ax_axes names[AX_MAX_AXES];
  ax_program *made;
  names[0] = at->names[0];
  names[1] = names_of("m");
  *(uint32_t *)at->context += 1;
  TEST_OK(ax_program_rebind(body, &(ax_rebinding){.axes = at->axes, .names = names}, &made));
  ax_value block = ax_slice(in[0], (const int64_t[]){0}, (const int64_t[]){2}, NULL), result;
  ax_call(made, &block, 1, &result, 1);
  ax_value both[] = {result, result};
  out[0] = ax_concatenate(both, 2, 0);
  ax_program_release(made);
  return true;
}

static void nested_axes_follow(void **state) {
  (void)state;
  ax_program *program = parse(MAPPED("a=4")), *made;
  ax_mesh axes = mesh_of("p=2,a=4"), clash = mesh_of("a=4,m=2");
  TEST_OK(ax_program_rebind(program, &(ax_rebinding){.axes = &axes}, &made));
  check_equal(made, MAPPED("p=2 a=4"));
  ax_program_release(made);
  TEST_FAILS(ax_program_rebind(program, &(ax_rebinding){.axes = &clash}, &made), AX_INVALID_ARGUMENT,
             "rebind: axis \"m\" is named twice");
  uint32_t count = 0;
  clash.axis[0].unchecked = clash.axis[1].unchecked = true;
  TEST_OK(ax_program_rebind(program, &(ax_rebinding){.axes = &clash, .equation = inlined, .context = &count}, &made));
  TEST_OK(ax_program_verify(made));
  assert_int_equal(count, 1);
  assert_int_equal(made->axes.count, 2);
  ax_program_release(made), ax_program_release(program);
}

static void refuses_what_does_not_fit(void **state) {
  (void)state;
  ax_program *program = parse("{ axes a=4 b=2 ; lambda x:f64[]. let in (x,) }"), *made;
  ax_mesh small = mesh_of("a=2,b=2"), whole = mesh_of("r=2,s=2,b=2");
  ax_axes wrong[] = {names_of("r,b"), names_of("b")}, missing[] = {names_of("r,t"), names_of("b")};
  TEST_FAILS(ax_program_rebind(program, &(ax_rebinding){.axes = &small}, &made), AX_INVALID_ARGUMENT,
             "axis \"a\" has size 4, but {a}, which stand for it, have 2 members");
  TEST_FAILS(ax_program_rebind(program, &(ax_rebinding){.axes = &whole, .names = wrong}, &made), AX_INVALID_ARGUMENT,
             "{b} would stand for two axes");
  TEST_FAILS(ax_program_rebind(program, &(ax_rebinding){.axes = &whole, .names = missing}, &made), AX_INVALID_ARGUMENT,
             "unknown axis name \"t\"");
  ax_program_release(program);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(axes_are_cut),
      cmocka_unit_test(axes_are_added_and_renamed),
      cmocka_unit_test(unchecked_axes_hold_nothing),
      cmocka_unit_test(nested_axes_follow),
      cmocka_unit_test(refuses_what_does_not_fit),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
