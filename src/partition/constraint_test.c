/* What constraints say of some dimensions only, and what propagation makes of the others. */
#include <string.h>

#include "axle/ops.h"
#include "axle/transform.h"
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
              {"_,model -> ?", "?,?", "_,model"},      {"? -> ?", "data,?", "data"},        {"data,model -> ?", "", ""}};
  const ax_type type = TEST_TYPE(AX_F32, 4, 6);
  for (size_t i = 0; i < AX_COUNT(rows); i++) {
    const constrained c = {mesh_of("data=2,model=2"), rows[i].spec};
    ax_program *program = laid(&c, &type, rows[i].given, false, NULL);
    expect_out(program, rows[i].out);
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
      cmocka_unit_test(open_dimensions),
      cmocka_unit_test(mapped_dimension),
      cmocka_unit_test(texts),
      cmocka_unit_test(refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
