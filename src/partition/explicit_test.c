/* Sharding in types: what follows for each operation, as jax.typeof says on a mesh of explicit axes (JAX 0.10, by hand), what is
   refused, and that programs typed so give what they gave. */
#include <stdio.h>
#include <string.h>

#include "axle/ops.h"
#include "axle/transform.h"
#include "partition/partition.h"
#include "support/cmocka.h"
#include "support/random.h"
#include "support/run.h"

static ax_mesh mesh_of(const char *text) {
  ax_mesh mesh;
  TEST_OK(ax_mesh_parse(text, &mesh));
  return mesh;
}

/* --- Operations --- */

typedef enum operation {
  PRODUCT,
  PRODUCT_SAID,
  ADD,
  SUM_0,
  SUM_1,
  TURN,
  SPLIT_0,
  JOIN,
  SPLIT_1,
  JOIN_0,
  JOIN_1,
  SLICE_1,
  ARGMAX_0,
  BOTH,
  LOOP,
  LOOP_STACKS,
  LOOP_OVER,
  MAPPED
} operation;
typedef struct typed {
  operation what;
  ax_mesh mesh;
} typed;

static AX_BODY(step) {
  (void)context;
  out[0] = ax_add(in[0], in[1]);
  out[1] = in[0];
}

static AX_BODY(mapped) {
  (void)context;
  out[0] = ax_neg(in[0]);
}

static ax_value operate(const typed *t, const ax_value *in) {
  static const int64_t turn[] = {1, 0}, zeros[] = {0, 1}, ends[] = {8, 16};
  ax_value pair[2] = {in[1], in[0]};
  switch (t->what) {
    case PRODUCT: return ax_matmul(in[0], in[1]);
    case PRODUCT_SAID: return ax_with_sharding(ax_matmul(in[0], in[1]), &t->mesh, "data");
    case ADD: return ax_add(in[0], in[1]);
    case SUM_0: return ax_reduce_sum(in[0], AX_DIMS(0), false);
    case SUM_1: return ax_reduce_sum(in[0], AX_DIMS(1), false);
    case TURN: return ax_transpose(in[0], turn);
    case SPLIT_0: return ax_reshape(in[0], AX_DIMS(2, 4, 16));
    case JOIN: return ax_reshape(in[0], AX_DIMS(128));
    case SPLIT_1: return ax_reshape(in[0], AX_DIMS(8, 2, 8));
    case JOIN_0: return ax_concatenate(AX_VALUES(in[0], in[0]), 0);
    case JOIN_1: return ax_concatenate(AX_VALUES(in[0], in[0]), 1);
    case SLICE_1: return ax_slice(in[0], zeros, ends, NULL);
    case ARGMAX_0: return ax_argmax(in[0], 0, AX_S32);
    case BOTH:
      return ax_mul(ax_add(in[0], in[0]),
                    ax_broadcast_in_dim(ax_reduce_max(in[0], AX_DIMS(1), false), AX_DIMS(8, 16), AX_DIMS(0)));
    case LOOP:
    case LOOP_OVER: ax_scan(AX_FN(step, 2, 2), 1, -1, false, pair, pair); return pair[0];
    case LOOP_STACKS: ax_scan(AX_FN(step, 2, 2), 1, -1, false, pair, pair); return pair[1];
    default: ax_shard_map(&t->mesh, "data -> data", AX_FN(mapped, 1, 1), in, pair); return pair[0];
  }
}

static AX_BODY(operated) { out[0] = operate(context, in); }

static const struct {
  operation what;
  const char *specs, *wanted; /* of the last value; or in the message */
} rows[] = {
    {PRODUCT, "data; _,model", "f32[8@data,8@model] = "},
    {PRODUCT, "data,model; ", "f32[8@data,8] = "},
    {PRODUCT, "data; data", "f32[8@data,8] = "},
    {PRODUCT, "data+model; ", "f32[8@data+model,8] = "},
    {PRODUCT, "data,model; model", "not said how the result lies"},
    {PRODUCT, "data; _,data", "an axis would cut two dimensions of result 0"},
    {PRODUCT, "_,data; model", "operand 1: f32[16@model,8] is cut otherwise"},
    {PRODUCT_SAID, "data,model; model", "f32[8@data,8] = "},
    {ADD, "data; ", "f32[8@data,16] = "},
    {ADD, "data; _,model", "f32[8@data,16@model] = "},
    {ADD, "data; model", "operand 1: f32[8@model,16] is cut otherwise"},
    {ADD, "data; _,data", "an axis would cut two dimensions of result 0"},
    {SUM_0, "data,model", "f32[16@model] = "},
    {SUM_1, "data,model", "f32[8@data] = "},
    {TURN, "data,model", "f32[16@model,8@data] = "},
    {SPLIT_0, "data", "f32[2@data,4,16] = "},
    {JOIN, "data", "f32[128@data] = "},
    {JOIN, "_,data", "operand 0: f32[8,16@data] is cut so that result 0, f32[128], has no dimension of it"},
    {SPLIT_1, "_,model", "f32[8,2@model,8] = "},
    {JOIN_1, "data", "f32[8@data,32] = "},
    {SLICE_1, "data", "f32[8@data,15] = "},
    {ARGMAX_0, "_,model", "s32[16@model] = "},
    {ARGMAX_0, "data,model", "s32[16@model] = "},
    {BOTH, "data,model", "f32[8@data,16@model] = mul"},
    {LOOP, "_,model; model", "f32[16@model] "},
    {LOOP_STACKS, "_,model; model", "f32[8,16@model] = scan"},
    {LOOP, "_,model; _", "carry 0: it is f32[16], and comes round as f32[16@model]"},
    {LOOP_OVER, "data; _", "cut along the dimension that it goes over"},
    {MAPPED, "data", "f32[8@data,16] = shard_map"},
    {MAPPED, "_,data", "operand 0: it is f32[8,16@data], and taken as f32[8@data,16]"},
};

static ax_status typed_text(const typed *t, const char *ins, char **out) {
  const bool one = strchr(ins, ';') == NULL, vector = t->what == LOOP || t->what == LOOP_STACKS || t->what == LOOP_OVER;
  ax_type types[] = {TEST_TYPE(AX_F32, 8, 16), TEST_TYPE(AX_F32, 8, 16)};
  if (t->what == PRODUCT || t->what == PRODUCT_SAID) types[1] = TEST_TYPE(AX_F32, 16, 8);
  if (vector) types[1] = TEST_TYPE(AX_F32, 16);
  ax_program *program = test_trace(operated, (void *)t, types, one ? 1 : 2, 1), *said, *made;
  char specs[64];
  *out = NULL;
  snprintf(specs, sizeof specs, "%s -> ?", ins);
  TEST_OK(ax_program_with_shardings(program, &t->mesh, specs, &said));
  ax_status status = ax_program_explicit(said, &made);
  if (status == AX_OK) status = ax_program_print_shardings(made, out);
  if (made != NULL) test_random_run(made, 1, false, 1e-5);
  ax_program_release(made);
  ax_program_release(said);
  ax_program_release(program);
  return status;
}

static void operations(void **state) {
  (void)state;
  for (size_t i = 0; i < AX_COUNT(rows); i++) {
    const typed t = {rows[i].what, mesh_of("data=2,model=2")};
    const bool refused = strstr(rows[i].wanted, " = ") == NULL && rows[i].wanted[strlen(rows[i].wanted) - 1] != ' ';
    char *text;
    ax_status status = typed_text(&t, rows[i].specs, &text);
    if ((status != AX_OK) != refused || strstr(refused ? ax_message() : text, rows[i].wanted) == NULL)
      fail_msg("row %zu: wanted \"%s\", got %s", i, rows[i].wanted, status != AX_OK ? ax_message() : text);
    ax_string_free(text);
  }
}

/* --- Whole programs --- */

static AX_BODY(squared) {
  (void)context;
  out[0] = ax_mul(in[0], in[0]);
}

static AX_BODY(branch) {
  (void)context;
  out[0] = ax_tanh(in[0]);
}

static AX_BODY(less) {
  (void)context;
  out[0] = ax_lt(in[1], ax_integer(3));
}

static AX_BODY(again) {
  (void)context;
  out[0] = ax_mul(in[0], ax_real(0.5));
  out[1] = ax_add(in[1], ax_integer(1));
}

static AX_BODY(controlled) {
  (void)context;
  ax_value x, y, loop[2];
  ax_closed_call(AX_FN(squared, 1, 1), in, &x);
  ax_switch(ax_full(AX_S32, AX_DIMS(), 1), AX_FNS(AX_FN(squared, 1, 1), AX_FN(branch, 1, 1)), &x, &y);
  loop[0] = y, loop[1] = ax_full(AX_S32, AX_DIMS(), 0);
  ax_while(AX_FN(less, 2, 1), AX_FN(again, 2, 2), loop, loop);
  out[0] = ax_reduce_sum(ax_matmul(loop[0], in[1]), AX_DIMS(1), false);
}

/* The typed program has nothing left to be moved that its types do not say: the only collective adds the product's parts up. */
static void control_flow(void **state) {
  (void)state;
  const ax_mesh mesh = mesh_of("data=2,model=2");
  const ax_type types[] = {TEST_TYPE(AX_F32, 8, 16), TEST_TYPE(AX_F32, 16, 4)};
  ax_program *program = test_trace(controlled, NULL, types, 2, 1), *said, *made, *partitioned;
  char *text;
  TEST_OK(ax_program_with_shardings(program, &mesh, "data; _,model -> data", &said));
  TEST_OK(ax_program_explicit(said, &made));
  TEST_OK(ax_program_print_shardings(made, &text));
  assert_non_null(strstr(text, "f32[8@data,4@model] = dot_general"));
  ax_string_free(text);
  TEST_OK(ax_program_partition(made, &partitioned));
  TEST_OK(ax_program_print(partitioned, &text));
  assert_null(strstr(text, "all_gather"));
  assert_null(strstr(text, "all_to_all"));
  ax_string_free(text);
  test_random_run(made, 1, false, 1e-5);
  ax_program_release(partitioned);
  ax_program_release(made);
  ax_program_release(said);
  ax_program_release(program);
}

/* Nothing said is nothing typed; two meshes are refused. */
static AX_BODY(two_meshes) {
  const ax_mesh one = mesh_of("data=4"), other = mesh_of("data=2,model=2");
  (void)context;
  out[0] = ax_with_sharding(ax_with_sharding(in[0], &one, "data"), &other, "data");
}

static void meshes(void **state) {
  (void)state;
  const ax_type type = TEST_TYPE(AX_F32, 8);
  ax_program *program = test_trace(squared, NULL, &type, 1, 1), *made;
  TEST_OK(ax_program_explicit(program, &made));
  assert_ptr_equal(made, program);
  ax_program_release(made);
  ax_program_release(program);
  program = test_trace(two_meshes, NULL, &type, 1, 1);
  assert_int_equal(ax_program_explicit(program, &made), AX_INVALID_ARGUMENT);
  assert_null(made);
  ax_program_release(program);
}

/* The gradient of a typed program: weights' cotangents lie as weights do, although both operands of their products are cut along
   what is summed. */
static AX_BODY(loss) {
  (void)context;
  ax_value y = ax_matmul(in[1], in[0]);
  out[0] = ax_reduce_sum(ax_mul(y, y), AX_ALL_DIMS, false);
}

static void gradients(void **state) {
  (void)state;
  const ax_mesh mesh = mesh_of("data=4");
  const ax_type types[] = {TEST_TYPE(AX_F32, 16, 8), TEST_TYPE(AX_F32, 8, 16)};
  ax_program *program = test_trace(loss, NULL, types, 2, 1), *said, *made, *gradient, *partitioned;
  TEST_OK(ax_program_with_shardings(program, &mesh, "_,data; data -> ?", &said));
  assert_int_equal(ax_program_explicit(said, &made), AX_INVALID_ARGUMENT); /* rows of one and columns of the other by one axis */
  ax_program_release(said);
  TEST_OK(ax_program_with_shardings(program, &mesh, "data; data -> ?", &said));
  TEST_OK(ax_program_explicit(said, &made));
  TEST_OK(ax_program_grad(made, AX_FIRST(1), &gradient));
  TEST_OK(ax_program_partition(gradient, &partitioned));
  const ax_partitioned parts = ax_partitioned_of(partitioned);
  for (int side = 0; side < 2; side++) {
    const ax_spec *spec = side == 0 ? &parts.in_specs[0] : &parts.out_specs[0];
    assert_true(spec->count[0] == 1 && spec->count[1] == 0);
  }
  test_random_run(gradient, 1, false, 1e-5);
  ax_program_release(partitioned);
  ax_program_release(gradient);
  ax_program_release(made);
  ax_program_release(said);
  ax_program_release(program);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(operations), cmocka_unit_test(control_flow), cmocka_unit_test(gradients),
                                     cmocka_unit_test(meshes)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
