/* vtile gives what shard_map gives, of every layout, with its gradients; what is refused. */
#include "axle/pmap.h"

#include "axle/collectives.h"
#include "axle/ops.h"
#include "axle/transform.h"
#include "support/cmocka.h"
#include "support/run.h"
#include "support/tensor.h"

typedef struct layout {
  const char *mesh, *specs;
  bool tiled; /* by ax_vtile */
} layout;

/* x in blocks, w as it comes: something of each device, of neighbours, and of all. */
static AX_BODY(mixed) {
  ax_value total = ax_psum(ax_mul(in[0], in[0]), "a,b");
  ax_value place = ax_convert_element_type(ax_axis_index("b,a"), AX_F64);
  out[0] = ax_add(ax_mul(ax_pshift(in[0], "a", 1, true), ax_add(place, ax_pmean(in[0], "b"))),
                  ax_mul(total, ax_reduce_sum(in[1], AX_ALL_DIMS, false)));
  out[1] = ax_psum(ax_mul(ax_reduce_sum(in[0], AX_ALL_DIMS, false), ax_reduce_sum(in[1], AX_ALL_DIMS, false)), "a,b");
}

static AX_BODY(laid_out) {
  const layout *l = context;
  ax_mesh mesh;
  TEST_OK(ax_mesh_parse(l->mesh, &mesh));
  if (l->tiled) ax_vtile(&mesh, l->specs, AX_FN(mixed, 2, 2), in, out);
  else ax_shard_map(&mesh, l->specs, AX_FN(mixed, 2, 2), in, out);
}

static AX_BODY(loss) {
  laid_out(in, out, context);
  out[0] = ax_add(ax_reduce_sum(ax_mul(out[0], out[0]), AX_ALL_DIMS, false), out[1]);
}
static AX_BODY(slopes) {
  ax_value both[2];
  ax_grad(AX_CLOSURE(loss, 2, 2, context), AX_FIRST(2), in, both);
  out[0] = both[0], out[1] = both[1];
}

static void as_shard_map(void **state) {
  (void)state;
  static const layout layouts[] = {
      {"a=2,b=2", "a,b;  -> a,b; ", false},     {"a=2,b=2", "b,a; b -> b,a; ", false}, {"a=2,b=2", "a+b; a -> a+b; ", false},
      {"a=2,b=2", "_,b+a; _,a -> b,a; ", false}, {"a=1,b=4", "b+a;  -> _,a+b; ", false},    {"b=2,a=2", "a,b; a+b -> b,a; ", false},
  };
  const ax_type types[] = {TEST_TYPE(AX_F64, 4, 8), TEST_TYPE(AX_F64, 4, 2)};
  double x[32], w[8];
  for (int i = 0; i < 32; i++) x[i] = (i * 7 % 11 - 5) * 0.25;
  for (int i = 0; i < 8; i++) w[i] = i * 0.5 - 1;
  ax_tensor *in[] = {test_tensor(types[0], x), test_tensor(types[1], w)}, *wanted[2], *got[2];
  const ax_function functions[] = {laid_out, slopes};
  for (size_t i = 0; i < sizeof layouts / sizeof layouts[0]; i++) {
    for (int f = 0; f < 2; f++) {
      layout mapped = layouts[i], tiled = layouts[i];
      tiled.tiled = true;
      ax_program *on_devices = test_trace(functions[f], &mapped, types, 2, 2),
                 *on_one = test_trace(functions[f], &tiled, types, 2, 2);
      assert_int_equal(ax_program_devices(on_one), 1);
      test_run(on_devices, in, wanted);
      test_run(on_one, in, got);
      for (int k = 0; k < 2; k++) TEST_TENSORS_NEAR(got[k], wanted[k], 1e-12);
      TEST_EVERY_WAY(on_one, in, 1e-12);
      test_release(wanted, 2);
      test_release(got, 2);
      ax_program_release(on_devices);
      ax_program_release(on_one);
    }
  }
  test_release(in, 2);
}

static AX_BODY(same) { out[0] = in[0]; }
static AX_BODY(attempt) {
  const layout *l = context;
  ax_mesh mesh;
  TEST_OK(ax_mesh_parse(l->mesh, &mesh));
  ax_vtile(&mesh, l->specs, AX_FN(same, 1, 1), in, out);
}
static AX_BODY(without_mesh) { ax_vtile(NULL, "->", AX_FN(same, 1, 1), in, out); }

static void refused(void **state) {
  (void)state;
  static const struct {
    layout layout;
    const char *message;
  } bad[] = {
      {{"a=2", "a -> ", false}, "out_axes[0] is AX_NOT_MAPPED, but result 0, f32[2,2], depends on a mapped input"},
      {{"a=2", "b -> b", false}, "vtile: specs \"b -> b\": operand 0: spec \"b\": unknown axis \"b\""},
      {{"a=2", "a", false}, "vtile: specs \"a\""},
      {{"a=2", "a,a -> a", false}, "vtile: specs \"a,a -> a\""},
      {{"a=3", "a -> a", false}, "vtile: operand 0: the spec P(a) cuts dimension 0 in 3 parts, which do not divide f32[4,2]"},
      {{"a=2", "_,_,a -> a", false}, "vtile: operand 0: "},
      {{"a=2", "a -> _,_,a", false}, "vtile: result 0: "},
  };
  const ax_type type = TEST_TYPE(AX_F32, 4, 2);
  ax_type deep = {.dtype = AX_F32, .rank = AX_MAX_RANK};
  for (int d = 0; d < AX_MAX_RANK; d++) deep.dims[d] = 2;
  ax_program *program;
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
    TEST_FAILS(ax_trace(AX_CLOSURE(attempt, 1, 1, &bad[i].layout), &type, &program), AX_INVALID_ARGUMENT, bad[i].message);
  const layout split = {"a=2", "a -> a", false}, none = {"", " -> ", false};
  TEST_FAILS(ax_trace(AX_CLOSURE(attempt, 1, 1, &split), &deep, &program), AX_INVALID_ARGUMENT,
             "in blocks has 17 dimensions with the mesh's; 16 are the most");
  TEST_FAILS(ax_trace(AX_FN(without_mesh, 1, 1), &type, &program), AX_INVALID_ARGUMENT, "vtile: there is no mesh");
  TEST_OK(ax_trace(AX_CLOSURE(attempt, 1, 1, &none), &deep, &program));
  ax_program_release(program);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(as_shard_map), cmocka_unit_test(refused)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
