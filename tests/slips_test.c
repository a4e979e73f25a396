/* What users get wrong without meaning to: NULL for what must be there, counts and handles that are none, files without names. Each
   is refused with words that say what is missing; and what is odd but sound is not refused. */
#include <stdint.h>

#include "axle/axle.h"
#include "axle/npy.h"
#include "support/cmocka.h"
#include "support/tensor.h"

/* --- Steps --- */

static void same(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = in[0];
}

typedef struct slip {
  const char *message; /* NULL: none */
  void (*step)(const ax_value *in, ax_value *out); /* in: f32[4,3], s32[]; out: one result, which is in[0] */
} slip;

static void no_branches(const ax_value *in, ax_value *out) { ax_switch(in[1], AX_LIST(2, NULL), in, out); }
static void no_branch(const ax_value *in, ax_value *out) {
  ax_switch(in[1], AX_FNS(AX_FN(same, 1, 1), AX_FN(NULL, 1, 1)), in, out);
}
static void no_condition(const ax_value *in, ax_value *out) { ax_while(AX_FN(NULL, 1, 1), AX_FN(same, 1, 1), in, out); }
static void no_body(const ax_value *in, ax_value *out) { ax_scan(AX_FN(NULL, 1, 1), 1, 3, false, in, out); }
static void no_function(const ax_value *in, ax_value *out) { ax_closed_call(AX_FN(NULL, 1, 1), in, out); }
static void no_loss(const ax_value *in, ax_value *out) { ax_grad(AX_FN(NULL, 1, 1), AX_FIRST(1), in, out); }
static void no_mapped(const ax_value *in, ax_value *out) { ax_vmap(AX_FN(NULL, 1, 1), in, out, NULL); }
static void no_map(const ax_value *in, ax_value *out) { ax_shard_map(NULL, "->", AX_FN(same, 1, 1), in, out); }
static void too_many_carries(const ax_value *in, ax_value *out) { ax_scan(AX_FN(same, 1, 1), 2, 3, false, in, out); }
static void too_few_carries(const ax_value *in, ax_value *out) { ax_while(AX_FN(same, 2, 1), AX_FN(same, 2, 1), in, out); }
static void uneven_branches(const ax_value *in, ax_value *out) {
  ax_switch(in[1], AX_FNS(AX_FN(same, 1, 1), AX_FN(same, 1, 2)), in, out);
}
static void no_index(const ax_value *in, ax_value *out) { ax_switch(in[0], AX_LIST(1, &AX_FN(same, 1, 1)), in, out); }
static void no_predicate(const ax_value *in, ax_value *out) { ax_if(in[1], AX_FN(same, 1, 1), AX_FN(same, 1, 1), in, out); }
static void one_operand_more(const ax_value *in, ax_value *out) { out[0] = ax_neg(in[2]); }
static void give_second(const ax_value *in, ax_value *out, void *context) { (void)context, out[0] = in[1]; }
static void one_carry_more(const ax_value *in, ax_value *out) { ax_scan(AX_FN(give_second, 1, 1), 1, 3, false, in, out); }
static void only_numbers(const ax_value *in, ax_value *out) { (void)in, out[0] = ax_add(ax_integer(1), ax_real(2)); }
static void a_half(const ax_value *in, ax_value *out) { out[0] = ax_add(in[1], ax_real(0.5)); }
static void too_large(const ax_value *in, ax_value *out) { out[0] = ax_mul(ax_integer(3000000000), in[1]); }
static void number_alone(const ax_value *in, ax_value *out) { (void)in, out[0] = ax_neg(ax_integer(-1)); }
static void number_returned(const ax_value *in, ax_value *out) { (void)in, out[0] = ax_integer(0); }
static void no_arrow(const ax_value *in, ax_value *out) {
  ax_shard_map((&(ax_mesh){1, {{.name = "d", .size = 2}}}), "d", AX_FN(same, 1, 1), in, out);
}
static void bad_times(const ax_value *in, ax_value *out) {
  ax_shard_map((&(ax_mesh){1, {{.name = "d", .size = 2}}}), "d; d*x -> d", AX_FN(same, 3, 1), AX_VALUES(in[0], in[0], in[0]), out);
}
static void many_times(const ax_value *in, ax_value *out) {
  ax_shard_map((&(ax_mesh){1, {{.name = "d", .size = 2}}}), "d; *3 -> d", AX_FN(same, 3, 1), AX_VALUES(in[0], in[0], in[0]), out);
}
static void few_specs(const ax_value *in, ax_value *out) {
  ax_shard_map((&(ax_mesh){1, {{.name = "d", .size = 2}}}), "d; d -> d", AX_FN(same, 3, 1), AX_VALUES(in[0], in[0], in[0]), out);
}
static void by_integer(const ax_value *in, ax_value *out) { ax_jvp(AX_FN(same, 2, 1), AX_ARGS(0, 1), in, in, out, out); }
static void by_nothing_there(const ax_value *in, ax_value *out) { ax_grad(AX_FN(same, 2, 1), AX_ARGS(0, 3), in, out); }
static void descending(const ax_value *in, ax_value *out) {
  ax_grad(AX_FN(same, 2, 1), AX_ARGS(1, 0), AX_VALUES(in[0], in[0]), out);
}
static void by_nothing(const ax_value *in, ax_value *out) { ax_grad(AX_FN(same, 2, 1), (ax_args){0}, in, out); }
/* Of a set that there cannot be no more results are poisoned than there are operands. */
static void by_a_million(const ax_value *in, ax_value *out) {
  ax_value guarded[3] = {in[1], in[1], in[1]};
  ax_grad(AX_FN(same, 2, 1), AX_RANGE(0, 1000000), in, guarded);
  out[0] = guarded[2].id == in[1].id ? in[0] : guarded[2];
}
static void by_all_but_one(const ax_value *in, ax_value *out) {
  ax_vjp(AX_FN(same, 1, 1), AX_RANGE(1, UINT32_MAX), in, in, out, out);
}
static void joined_nothing(const ax_value *in, ax_value *out) { (void)in, out[0] = ax_concatenate(AX_LIST(2, NULL), 0); }
static void joined_number(const ax_value *in, ax_value *out) {
  const ax_value list[2] = {in[0], {.trace = 1}}; /* as C takes AX_VALUES(in[0], 1) */
  out[0] = ax_concatenate(AX_LIST(2, list), 0);
}
static void raveled_nothing(const ax_value *in, ax_value *out) { (void)in, out[0] = ax_tree_ravel(AX_LIST(2, NULL)); }
static void norm_of_nothing(const ax_value *in, ax_value *out) { (void)in, out[0] = ax_global_norm(AX_LIST(2, NULL)); }
static void call_on_nothing(const ax_value *in, ax_value *out) { (void)in, ax_closed_call(AX_FN(same, 1, 1), NULL, out); }
static void no_pairs(const ax_value *in, ax_value *out) { out[0] = ax_ppermute(in[0], "", 1, NULL); }
static void no_such_dimension(const ax_value *in, ax_value *out) { out[0] = ax_all_gather(in[0], "", 9, true); }
static void no_such_handle(const ax_value *in, ax_value *out) { out[0] = ax_neg((ax_value){in[0].trace, 600}); }
static void no_elements(const ax_value *in, ax_value *out) {
  const ax_type none = TEST_TYPE(AX_F32, 0);
  (void)in;
  out[0] = ax_constant(&none, NULL);
}

static ax_value kept;
static void keep(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  kept = out[0] = ax_exp(in[0]);
}
static void of_a_body(const ax_value *in, ax_value *out) {
  ax_scan(AX_FN(keep, 1, 1), 1, 2, false, in, out);
  out[0] = ax_mul(kept, in[0]);
}
static void of_a_condition(const ax_value *in, ax_value *out) {
  ax_if(ax_gt(in[1], ax_integer(0)), AX_FN(keep, 1, 1), AX_FN(keep, 1, 1), in, out);
  out[0] = ax_concatenate(AX_VALUES(in[0], kept), 0);
}
static void of_a_transform(const ax_value *in, ax_value *out) {
  ax_vmap(AX_FN(keep, 1, 1), in, out, NULL);
  out[0] = ax_tanh(kept);
}
static void of_a_function(const ax_value *in, ax_value *out) {
  ax_closed_call(AX_FN(keep, 1, 1), in, out);
  out[0] = kept;
}
static void gather(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_mul(ax_all_gather(in[0], "d", 0, true), ax_integer(2));
}
static void gathered(const ax_value *in, ax_value *out) {
  ax_shard_map((&(ax_mesh){1, {{.name = "d", .size = 2}}}), "d -> ", AX_FN(gather, 1, 1), in, out);
}
static void varying(const ax_value *in, ax_value *out) {
  ax_shard_map((&(ax_mesh){1, {{.name = "d", .size = 2}}}), "d -> ", AX_FN(same, 1, 1), in, out);
}
static void sum_on_d(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_psum(in[0], "d");
}
static void sum_of_some(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_if(ax_gt(ax_reduce_sum(in[0], AX_ALL_DIMS, false), ax_integer(0)), AX_FN(sum_on_d, 1, 1), AX_FN(same, 1, 1), in, out);
}
static void some_sum(const ax_value *in, ax_value *out) {
  ax_shard_map((&(ax_mesh){1, {{.name = "d", .size = 2}}}), "d -> d", AX_FN(sum_of_some, 1, 1), in, out);
}
static void empty_spec(const ax_value *in, ax_value *out) {
  ax_shard_map((&(ax_mesh){1, {{.name = "d", .size = 2}}}), "d,,d -> d", AX_FN(same, 1, 1), in, out);
}
static void jax_spec(const ax_value *in, ax_value *out) {
  ax_shard_map((&(ax_mesh){1, {{.name = "d", .size = 2}}}), "P(d) -> d", AX_FN(same, 1, 1), in, out);
}
static void no_length(const ax_value *in, ax_value *out) { ax_scan(AX_FN(same, 1, 1), 1, -1, false, in, out); }
static void negative_length(const ax_value *in, ax_value *out) { ax_scan(AX_FN(same, 1, 1), 1, -5, false, in, out); }
static void sum_of_nowhere(const ax_value *in, ax_value *out) { out[0] = ax_psum(in[0], "d"); }
static void whole_softmax(const ax_value *in, ax_value *out) { out[0] = ax_softmax(in[1], 0); }
static void no_axis(const ax_value *in, ax_value *out) { out[0] = ax_log_softmax(in[0], 2); }
static void whole_gelu(const ax_value *in, ax_value *out) { out[0] = ax_gelu(in[1]); }
static void whole_mean(const ax_value *in, ax_value *out) { out[0] = ax_reduce_mean(in[0], AX_DIMS(2), false); }
static void fewer_classes(const ax_value *in, ax_value *out) { out[0] = ax_one_hot(in[1], -1, AX_F32); }
static void half_hot(const ax_value *in, ax_value *out) { out[0] = ax_one_hot(in[0], 3, AX_F32); }
static void uneven_product(const ax_value *in, ax_value *out) { out[0] = ax_matmul(in[0], in[0]); }
static void mixed_product(const ax_value *in, ax_value *out) { out[0] = ax_matmul(in[0], in[1]); }
static void uneven_sum(const ax_value *in, ax_value *out) { out[0] = ax_add(in[0], ax_reshape(in[0], AX_DIMS(3, 4))); }
static void chosen_by_number(const ax_value *in, ax_value *out) { out[0] = ax_where(in[1], in[0], in[0]); }
static void uneven_choice(const ax_value *in, ax_value *out) {
  out[0] = ax_where(ax_gt(in[1], ax_integer(0)), in[0], ax_reshape(in[0], AX_DIMS(3, 4)));
}
static void cast_sideways(const ax_value *in, ax_value *out) { out[0] = ax_pcast(in[0], "", "sideways"); }
static void no_new_dimension(const ax_value *in, ax_value *out) { out[0] = ax_expand_dims(in[0], 4); }
static void twice_as_long(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_concatenate(AX_VALUES(in[0], in[0]), 0);
}
static void uneven_results(const ax_value *in, ax_value *out) {
  ax_if(ax_gt(in[1], ax_integer(0)), AX_FN(same, 1, 1), AX_FN(twice_as_long, 1, 1), in, out);
}

static const slip slips[] = {
    {"mul: operand 0 is a value of scan's body, which has finished", of_a_body},
    {"concatenate: operand 1 is a value of if's then, which has finished", of_a_condition},
    {"tanh: the operand is a value of vmap's function, which has finished", of_a_transform},
    {"out[0] is a value of closed_call's function, which has finished", of_a_function},
    {"varies over \"d\", but its spec P() promises it does not (it comes from all_gather, whose result is typed varying; that of "
     "all_gather_invariant is not)",
     gathered},
    {"promises it does not; the results of psum, pmax, pmin and all_gather_invariant do not", varying},
    {"if: then: devices may differ along {d} in what they run here, so not all of them would reach the psum over {d} in it (equation 0)",
     some_sum},
    {"spec \"d,,d\": an entry is empty; \"_\" leaves a dimension whole", empty_spec},
    {"unknown axis \"P(d)\"; the mesh has {d}; a spec is axes for each dimension, as \"data,_,model+pipe\"", jax_spec},
    {"scan: there is neither a length nor xs", no_length},
    {"scan: the length is -5", negative_length},
    {"psum: axis \"d\" is not bound, and none is here: a shard_map binds its mesh's axes, a vmap its axis_name", sum_of_nowhere},
    {"softmax: the operand is s32[]; it must be a float", whole_softmax},
    {"log_softmax: axis is 2, but there are 2 dimensions", no_axis},
    {"gelu: the operand is s32[]; it must be a float", whole_gelu},
    {"reduce_mean: axis is 2, but there are 2 dimensions", whole_mean},
    {"one_hot: there cannot be -1 classes", fewer_classes},
    {"one_hot: needs integer indices, got f32[4,3]", half_hot},
    {"matmul: f32[4,3] and f32[4,3]: the last dimension of the first is 3, but the last but one of the second 4", uneven_product},
    {"matmul: operands 0 and 1 are f32[4,3] and s32[]; they need one dtype", mixed_product},
    {"add f32[4,3] f32[3,4]: the shapes do not broadcast to one", uneven_sum},
    {"where: the condition is s32[]; it must be bool", chosen_by_number},
    {"where: bool[], f32[4,3] and f32[3,4] do not broadcast to one shape", uneven_choice},
    {"pcast: to \"sideways\": expected \"varying\", \"reduced\", \"unreduced\"", cast_sideways},
    {"expand_dims: dimension is 4, but there are 3 dimensions", no_new_dimension},
    {"if: then: result 0 is f32[4,3], but of otherwise it is f32[8,3]", uneven_results},
    {"grad: there is no operand 2: there are 2", by_a_million},
    {"vjp: there is no operand 1: there is 1", by_all_but_one},
    {"concatenate: there are no operands", joined_nothing},
    {"concatenate: operand 1 is the C number 1, where a value is needed: ax_full", joined_number},
    {"tree_ravel: there are no operands", raveled_nothing},
    {"global_norm: there are no operands", norm_of_nothing},
    {"closed_call: there are no operands", call_on_nothing},
    {"switch: there is no branch", no_branches},
    {"switch: branch 1: there is no function", no_branch},
    {"while: condition: there is no function", no_condition},
    {"scan: body: there is no function", no_body},
    {"closed_call: function: there is no function", no_function},
    {"grad: function: there is no function", no_loss},
    {"vmap: function: there is no function", no_mapped},
    {"shard_map: there is no mesh", no_map},
    {"scan: 2 carries, but its body takes 1 operands and gives 1 results", too_many_carries},
    {"while: the body takes 2 operands and gives 1 results, the condition takes 2: all three are the carries", too_few_carries},
    {"switch: branch 1: takes 1 operands and gives 2 results, but others take 1 and give 1", uneven_branches},
    {"switch: the index is f32[4,3]; it must be an s32 scalar", no_index},
    {"if: the predicate is s32[]; it must be a bool scalar", no_predicate},
    {"neg: the operand is in[2], which stands behind its function's last operand", one_operand_more},
    {"scan: body: in[1], which stands behind its function's last operand, is used here", one_carry_more},
    {"add: all operands are numbers, so there is no dtype", only_numbers},
    {"add: s32 cannot hold 0.5", a_half},
    {"mul: s32 cannot hold 3000000000", too_large},
    {"a number has no dtype here", number_alone},
    {"a number has no dtype here", number_returned},
    {"shard_map: specs \"d\": operands' specs, \"->\", results' specs are expected", no_arrow},
    {"there are 2 operand specs for 3 operands", few_specs},
    {"operand 1: \"d*x\": a number of times is expected behind \"*\"", bad_times},
    {"there are more operand specs than operands, of which there are 3", many_times},
    {"jvp: operand 1 is s32[]: only floats have derivatives", by_integer},
    {"grad: there is no operand 3: there are 2", by_nothing_there},
    {"grad: operand 0 is named after 1: sets of them ascend", descending},
    {"grad: there is nothing to take derivatives by", by_nothing},
    {"ppermute: there are no pairs", no_pairs},
    {"all_gather: dimension is 9, but there are 2 dimensions", no_such_dimension},
    {"a handle that no step of its trace gave", no_such_handle},
    {NULL, no_elements},
};

static void make_slip(const ax_value *in, ax_value *out, void *context) { ((const slip *)context)->step(in, out); }

static void steps(void **state) {
  (void)state;
  const ax_type types[] = {TEST_TYPE(AX_F32, 4, 3), TEST_SCALAR(AX_S32)};
  for (size_t i = 0; i < sizeof slips / sizeof slips[0]; i++) {
    ax_program *program = NULL;
    ax_status status = ax_trace(AX_CLOSURE(make_slip, 2, 1, (void *)&slips[i]), types, &program);
    if (slips[i].message != NULL) TEST_FAILS(status, AX_INVALID_ARGUMENT, slips[i].message);
    else TEST_OK(status);
    ax_program_release(program);
  }
}

/* --- Texts of meshes --- */

static void give_sum(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = in[0];
  for (int i = 1; i < 5; i++) out[0] = ax_add(out[0], in[i]);
  out[1] = out[0];
}
static void over_two(const ax_value *in, ax_value *out, void *specs) {
  ax_value five[] = {in[0], in[1], in[1], in[0], in[0]};
  ax_shard_map((&(ax_mesh){1, {{.name = "d", .size = 2}}}), specs, AX_FN(give_sum, 5, 2), five, out);
}
static void repeated_specs(void **state) {
  (void)state;
  static const char *const same_specs[] = {"d; ; ; d; d -> d; d", "d; *2; d*2 -> d*2", "d *1;*2 ;d *2 -> d"};
  const ax_type types[] = {TEST_TYPE(AX_F32, 4), TEST_TYPE(AX_F32, 2)};
  ax_program *programs[3];
  for (int i = 0; i < 3; i++) TEST_OK(ax_trace(AX_CLOSURE(over_two, 2, 2, same_specs[i]), types, &programs[i]));
  for (int i = 0; i < 3; i++) assert_true(ax_program_equal(programs[0], programs[i]));
  for (int i = 0; i < 3; i++) ax_program_release(programs[i]);
}

static void meshes(void **state) {
  (void)state;
  static const char *const rows[][2] = {
      {"data=4;model=2", "expected ',' after \"data=4\", got \";model=2\""},
      {"data=1e3", "expected ',' after \"data=1\", got \"e3\""},
      {"data=", "axis \"data\" needs a size of at least 1"},
      {"a_name_that_is_longer_than_it_may_be=2", "the name \"a_name_that_is_longer_than_it_may_be\" has more than 31 bytes"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    ax_mesh mesh;
    TEST_FAILS(ax_mesh_parse(rows[i][0], &mesh), AX_INVALID_ARGUMENT, rows[i][1]);
  }
}

/* --- Arrays --- */

static int released;
static void count_release(void *context) {
  (void)context;
  released++;
}

static void arrays(void **state) {
  (void)state;
  ax_runtime *runtime;
  ax_array *array;
  ax_mesh mesh;
  static float data[8];
  const ax_type type = TEST_TYPE(AX_F32, 8), none = TEST_TYPE(AX_F32, 0);
  ax_type future = type, spread = type;
  ax_part parts[4], nowhere[4];
  future.form = AX_FUTURE;
  spread.spread.varying = UINT64_MAX;
  TEST_OK(ax_runtime_create(NULL, &runtime));
  TEST_OK(ax_mesh_parse("d=4", &mesh));
  for (int i = 0; i < 4; i++) parts[i] = (ax_part){.data = &data[2 * i], .bytes = 8, .release = count_release};
  for (int i = 0; i < 4; i++) nowhere[i] = (ax_part){.release = count_release};
  TEST_FAILS(ax_device_put_data(runtime, &mesh, "d", &future, data, &array), AX_INVALID_ARGUMENT, "future<f32[8]> is no array");
  TEST_OK(ax_device_put_data(runtime, &mesh, "d", &spread, data, &array)); /* axis sets are not looked at, and not kept */
  assert_true(ax_type_equal(ax_array_typeof(array), &type));
  ax_array_release(array);
  TEST_FAILS(ax_array_from_parts(runtime, &mesh, "d", &type, AX_LIST(4, NULL), &array), AX_INVALID_ARGUMENT,
             "there is no list of parts");
  parts[2].data = NULL;
  TEST_FAILS(ax_array_from_parts(runtime, &mesh, "d", &type, AX_LIST(4, parts), &array), AX_INVALID_ARGUMENT,
             "part 2 is at no address");
  assert_int_equal(released, 0);
  TEST_OK(ax_array_from_parts(runtime, &mesh, "d", &none, AX_LIST(4, nowhere), &array)); /* of no elements, nowhere */
  ax_array_release(array);
  assert_int_equal(released, 4);
  ax_runtime_release(runtime);
}

/* --- Files --- */

static void files(void **state) {
  (void)state;
  ax_host_array array;
  ax_npz *npz;
  float data[1] = {0};
  const ax_host_array one = {.dtype = AX_F32, .rank = 1, .dims = {1}, .data = data};
  TEST_FAILS(ax_npy_read(NULL, &array), AX_INVALID_ARGUMENT, "there is no path");
  TEST_FAILS(ax_npz_read(NULL, &npz), AX_INVALID_ARGUMENT, "there is no path");
  TEST_FAILS(ax_csv_read(NULL, &array), AX_INVALID_ARGUMENT, "there is no path");
  TEST_FAILS(ax_npy_write(NULL, &one), AX_INVALID_ARGUMENT, "there is no path");
  TEST_FAILS(ax_npy_write("/nowhere/x.npy", NULL), AX_INVALID_ARGUMENT, "there is no array");
  TEST_FAILS(ax_npz_write(NULL, AX_LIST(1, (const char *[]){"a"}), &one), AX_INVALID_ARGUMENT, "there is no path");
  TEST_FAILS(ax_npz_write("/nowhere/x.npz", AX_LIST(1, NULL), &one), AX_INVALID_ARGUMENT, "there is no list of names");
  TEST_FAILS(ax_npz_write("/nowhere/x.npz", AX_LIST(1, (const char *[]){"a"}), NULL), AX_INVALID_ARGUMENT,
             "there is no list of arrays");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(repeated_specs), cmocka_unit_test(steps), cmocka_unit_test(meshes),
                                     cmocka_unit_test(arrays), cmocka_unit_test(files)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
