/* What constraints say of some dimensions only, and what propagation makes of the others. */
#include <string.h>

#include "axle/ops.h"
#include "axle/transform.h"
#include "ir/prim.h"
#include "partition/partition.h"
#include "support/cmocka.h"
#include "support/tensor.h"

static ax_mesh mesh_of(const char *text) {
  ax_mesh mesh;
  TEST_OK(ax_mesh_parse(text, &mesh));
  return mesh;
}

typedef struct constrained {
  ax_mesh mesh;
  const char *spec;
} constrained;

static AX_BODY(doubled) {
  const constrained *c = context;
  const ax_value x = ax_with_sharding(in[0], &c->mesh, c->spec);
  out[0] = ax_add(x, x);
}

/* One operand, cut as `given` says, mapped along its first dimension or not. */
static ax_program *laid(const constrained *c, const ax_type *type, const char *given, bool mapped, const char *const *spmd) {
  const ax_type row = ax_array_type(type->dtype, AX_LIST(type->rank - mapped, type->dims + mapped));
  ax_program *program = test_trace(doubled, (void *)c, &row, 1, 1), *batched, *said, *partitioned;
  if (mapped) {
    TEST_OK(ax_program_vmap(program, &(ax_vmap_options){.size = type->dims[0], .spmd_axis_name = spmd != NULL ? *spmd : NULL},
                            &batched));
    ax_program_release(program);
    program = batched;
  }
  TEST_OK(ax_program_with_shardings(program, &c->mesh, given, &said));
  TEST_OK(ax_program_partition(said, &partitioned));
  ax_program_release(said);
  ax_program_release(program);
  return partitioned;
}

static void expect_out(const ax_program *partitioned, const char *spec) {
  const ax_partitioned parts = ax_partitioned_of((ax_program *)partitioned);
  ax_spec wanted;
  TEST_OK(ax_spec_parse(spec, parts.mesh, &wanted));
  assert_true(ax_spec_equal(&parts.out_specs[0], &wanted));
}

/* A dimension of which nothing is said lies as what comes lies; one that is said to be whole is whole. */
static void open_dimensions(void **state) {
  (void)state;
  static const struct {
    const char *given, *spec, *out;
  } rows[] = {{"data -> ?", "?,model", "data,model"}, {"data -> ?", "_,model", "_,model"}, {"data,model -> ?", "?,_", "data"},
              {"_,model -> ?", "?,?", "_,model"},      {"? -> ?", "data,?", "data"},      {"data -> ?", "?,_ p1", "data"},
              {"data -> ?", "?,model p2", "data,model"},        {"data,model -> ?", "", ""}};
  const ax_type type = TEST_TYPE(AX_F32, 4, 6);
  for (size_t i = 0; i < AX_COUNT(rows); i++) {
    const constrained c = {mesh_of("data=2,model=2"), rows[i].spec};
    ax_program *program = laid(&c, &type, rows[i].given, false, NULL);
    expect_out(program, rows[i].out);
    ax_program_release(program);
  }
}

static AX_BODY(sum_of_two) {
  (void)context;
  out[0] = ax_add(in[0], in[1]);
}

/* One step of training: y = x w over samples, w less its momentum, into which the gradient goes. */
static AX_BODY(trained) {
  (void)context;
  const ax_value w = in[0], state = in[1], x = in[2];
  const ax_value h = ax_tanh(ax_matmul(x, w)), gradient = ax_matmul(ax_swapaxes(x, 0, 1), ax_matmul(h, ax_swapaxes(w, 0, 1)));
  const ax_value next = ax_add(ax_mul(state, ax_real(0.5)), gradient);
  out[0] = ax_sub(w, next), out[1] = next;
}

static uint32_t count(const ax_program *program, const char *prim) {
  uint32_t found = 0;
  for (uint32_t e = 0; e < program->eqn_count; e++) {
    found += strcmp(program->eqns[e].prim->name, prim) == 0;
    for (uint32_t k = 0; ax_eqn_program(&program->eqns[e], k) != NULL; k++) found += count(ax_eqn_program(&program->eqns[e], k), prim);
  }
  return found;
}

/* A state that is cut along the axis of the samples: of priority 1 its cut ends at the gradient, whose sum is scattered; of 0 it meets
   the samples', in one order or the other. */
static void priorities(void **state) {
  (void)state;
  const ax_type square = TEST_TYPE(AX_F32, 16, 16), types[] = {square, square, TEST_TYPE(AX_F32, 32, 16)};
  const ax_mesh mesh = mesh_of("data=4");
  ax_program *program = test_trace(trained, NULL, types, 3, 2), *said, *partitioned;
  TEST_OK(ax_program_with_shardings(program, &mesh, "_,_; _,data p1; data -> _,_; _,data p1", &said));
  TEST_OK(ax_program_partition(said, &partitioned));
  assert_int_equal(count(partitioned, "psum_scatter"), 1);
  assert_int_equal(count(partitioned, "all_to_all"), 0);
  assert_int_equal(count(partitioned, "psum"), 0);
  assert_true(count(partitioned, "all_gather_invariant") + count(partitioned, "all_gather") == 1); /* of the new w */
  ax_program_release(partitioned);
  ax_program_release(said);
  ax_program_release(program);
}

/* What is of a later priority takes what the earlier ones left, whatever stands first. */
static void later_ones(void **state) {
  (void)state;
  const ax_type type = TEST_TYPE(AX_F32, 16, 16), types[] = {type, type};
  static const struct {
    const char *specs, *out;
  } rows[] = {
      {"data,_ ; _,data p1 -> ?,?", "data"},   {"_,data p1 ; data,_ -> ?,?", "data"}, {"_,data p2 ; data,_ p1 -> ?,?", "data"},
      {"_,data p1 ; data,_ p2 -> ?,?", "_,data"}, {"data,_ ; _,model p1 -> ?,?", "data,model"},
  };
  const ax_mesh mesh = mesh_of("data=2,model=2");
  for (size_t i = 0; i < AX_COUNT(rows); i++) {
    ax_program *program = test_trace(sum_of_two, NULL, types, 2, 1), *said, *partitioned;
    TEST_OK(ax_program_with_shardings(program, &mesh, rows[i].specs, &said));
    TEST_OK(ax_program_partition(said, &partitioned));
    expect_out(partitioned, rows[i].out);
    ax_program_release(partitioned);
    ax_program_release(said);
    ax_program_release(program);
  }
}

/* vmap says nothing of the dimension that it adds, unless it is told. */
static void mapped_dimension(void **state) {
  (void)state;
  static const char *const model = "model";
  const constrained c = {mesh_of("data=2,model=2"), "_"};
  const ax_type type = TEST_TYPE(AX_F32, 4, 6);
  ax_program *program = laid(&c, &type, "data -> ?", true, NULL);
  expect_out(program, "data");
  ax_program_release(program);
  program = laid(&c, &type, "? -> ?", true, &model);
  expect_out(program, "model");
  ax_program_release(program);
}

static void texts(void **state) {
  (void)state;
  const constrained c = {mesh_of("data=2,model=2"), "?,model"}, whole = {c.mesh, "_,model"};
  const ax_type type = TEST_TYPE(AX_F32, 4, 6);
  ax_program *program = test_trace(doubled, (void *)&c, &type, 1, 1), *other = test_trace(doubled, (void *)&whole, &type, 1, 1),
             *again;
  char *text;
  TEST_OK(ax_program_print(program, &text));
  assert_non_null(strstr(text, "P(?, model)"));
  TEST_OK(ax_program_parse(text, strlen(text), "open", &again));
  assert_true(ax_program_equal(program, again));
  assert_false(ax_program_equal(program, other));
  ax_string_free(text);
  ax_program_release(program);
  ax_program_release(other);
  ax_program_release(again);
}

/* Nobody but constraints. */
static void refused(void **state) {
  (void)state;
  const char *text =
      "{ lambda a:f32[8]. let b:f32[16] = shard_map[ mesh=(i=2,) unchecked=false in_specs=(P(?),) out_specs=(P(i),)\n"
      "  body={ axes i=2 ; lambda a:f32[8]. let b:f32[8]{V:i} = pvary[axes=(i,)] a in (b,) } ] a in (b,) }";
  const ax_mesh mesh = mesh_of("data=2");
  ax_program *program;
  ax_spec spec;
  assert_int_not_equal(ax_program_parse(text, strlen(text), "shard_map", &program), AX_OK);
  assert_non_null(strstr(ax_message(), "the spec P(?) leaves a dimension open of f32[8]"));
  assert_int_equal(ax_spec_parse("data,?", &mesh, &spec), AX_INVALID_ARGUMENT);
  assert_non_null(strstr(ax_message(), "which only constraints do"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(priorities), cmocka_unit_test(later_ones), cmocka_unit_test(open_dimensions),
      cmocka_unit_test(mapped_dimension),
      cmocka_unit_test(texts),
      cmocka_unit_test(refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
