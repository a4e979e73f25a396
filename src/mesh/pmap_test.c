/* pmap: every dimension in and out, pmaps in pmaps and beside each other, what is pruned, what is given as a function; everything
   that is refused. Values and derivatives beside JAX's: tests/vectors/pmap.c. */
#include "axle/pmap.h"

#include <string.h>

#include "axle/collectives.h"
#include "axle/ops.h"
#include "axle/transform.h"
#include "support/cmocka.h"
#include "support/oom.h"
#include "support/run.h"
#include "support/tensor.h"

enum { UNMAPPED = AX_NOT_MAPPED };

enum { COUNT = 3 };

static ax_value total(ax_value x) { return ax_reduce_sum(x, AX_ALL_DIMS, false); }

/* --- Every dimension, every way --- */

typedef struct way {
  int in, out;
} way;

static AX_BODY(sine) { out[0] = ax_sin(in[0]); }
static AX_BODY(moved) {
  const way *w = context;
  ax_pmap(AX_FN(sine, 1, 1), in, out, &(ax_pmap_options){.in_axes = {AX_DIMS(w->in)}, .out_axes = {AX_DIMS(w->out)}});
  out[1] = ax_moveaxis(ax_sin(in[0]), w->in, w->out);
}

static void every_dimension(void **state) {
  (void)state;
  const ax_type type = TEST_TYPE(AX_F64, 2, 3, 4);
  double data[24];
  for (int i = 0; i < 24; i++) data[i] = i * 0.25 - 3;
  ax_tensor *x = test_tensor(type, data), *out[2];
  for (int i = 0; i < 18; i++) {
    way w = {i % 9 / 3 - (i < 9 ? 0 : 3), i % 3 - (i < 9 ? 0 : 3)}; /* from the front, from the end */
    ax_program *program = test_trace(moved, &w, &type, 1, 2);
    test_run(program, &x, out);
    assert_true(test_same_tensors(out[0], out[1]));
    TEST_EVERY_WAY(program, &x, 1e-15);
    test_release(out, 2);
    ax_program_release(program);
  }
  test_release(&x, 1);
}

/* --- Beside and inside one another --- */

static AX_BODY(shift) { out[0] = ax_sub(in[0], ax_psum(in[0], context)); }
static AX_BODY(rows_then_columns) {
  ax_value shifted;
  ax_pmap(AX_CLOSURE(shift, 1, 1, "i"), in, &shifted, &(ax_pmap_options){.axis_name = "i"});
  ax_pmap(AX_CLOSURE(shift, 1, 1, "j"), &shifted, out,
          &(ax_pmap_options){.axis_name = "j", .in_axes = {AX_DIMS(1)}, .out_axes = {AX_DIMS(1)}});
}

static void beside(void **state) {
  (void)state;
  const ax_type type = TEST_TYPE(AX_F64, 4, 4);
  double data[16], rows[4] = {0}, columns[4] = {0};
  for (int i = 0; i < 16; i++) data[i] = i * i - 3;
  ax_program *program = test_trace(rows_then_columns, NULL, &type, 1, 1);
  assert_int_equal(ax_program_devices(program), 4);
  ax_tensor *x = test_tensor(type, data), *out;
  test_run(program, &x, &out);
  for (int i = 0; i < 16; i++) columns[i % 4] += data[i];
  for (int i = 0; i < 16; i++) rows[i / 4] += data[i] - columns[i % 4];
  for (int i = 0; i < 16; i++) TEST_NEAR(test_get(out, i), data[i] - columns[i % 4] - rows[i / 4], 1e-12);
  TEST_EVERY_WAY(program, &x, 1e-12);
  test_release(&out, 1);
  test_release(&x, 1);
  ax_program_release(program);
}

/* Names are their own where none are given. */
static AX_BODY(innermost) { out[0] = ax_add(ax_mul(in[0], ax_psum(in[0], "pmap_1")), ax_psum(in[0], "pmap,pmap_1")); }
static AX_BODY(inner) { ax_pmap(AX_FN(innermost, 1, 1), in, out, NULL); }
static AX_BODY(nested) { ax_pmap(AX_FN(inner, 1, 1), in, out, NULL); }
static AX_BODY(nested_loss) {
  nested(in, out, context);
  out[0] = total(ax_mul(out[0], out[0]));
}
static AX_BODY(nested_slope) { ax_grad(AX_FN(nested_loss, 1, 1), AX_FIRST(1), in, out); }

/* Two inside one, of which the smaller is done by twice as many devices as it needs. */
static AX_BODY(of_a_part) { out[0] = ax_mul(in[0], ax_psum(in[0], context)); }
static AX_BODY(inner_sizes) {
  ax_value both[2], square = ax_reshape(in[0], AX_DIMS(2, 2));
  ax_pmap(AX_CLOSURE(of_a_part, 1, 1, "j"), in, both, &(ax_pmap_options){.axis_name = "j"});
  ax_pmap(AX_CLOSURE(of_a_part, 1, 1, "i,k"), &square, both + 1, &(ax_pmap_options){.axis_name = "k", .in_axes = {AX_DIMS(1)}});
  out[0] = ax_add(both[0], ax_reshape(both[1], AX_DIMS(4)));
}
static AX_BODY(two_sizes) { ax_pmap(AX_FN(inner_sizes, 1, 1), in, out, &(ax_pmap_options){.axis_name = "i"}); }
static AX_BODY(two_sizes_loss) {
  two_sizes(in, out, context);
  out[0] = total(ax_mul(out[0], out[0]));
}
static AX_BODY(two_sizes_slope) { ax_grad(AX_FN(two_sizes_loss, 1, 1), AX_FIRST(1), in, out); }
static AX_BODY(two_sizes_written_out) {
  ax_value cube = ax_reshape(in[0], AX_DIMS(2, 2, 2));
  ax_value part = ax_transpose(ax_mul(cube, ax_reduce_sum(cube, AX_DIMS(0, 2), true)), AX_DIMS(0, 2, 1));
  out[0] = ax_add(ax_mul(in[0], ax_reduce_sum(in[0], AX_DIMS(1), true)), ax_reshape(part, AX_DIMS(2, 4)));
}
static AX_BODY(two_sizes_written_out_loss) {
  two_sizes_written_out(in, out, context);
  out[0] = total(ax_mul(out[0], out[0]));
}
static AX_BODY(two_sizes_written_out_slope) { ax_grad(AX_FN(two_sizes_written_out_loss, 1, 1), AX_FIRST(1), in, out); }

static AX_BODY(written_out) {
  ax_value of_rows = ax_reduce_sum(in[0], AX_DIMS(1), true);
  out[0] = ax_add(ax_mul(in[0], of_rows), ax_reduce_sum(in[0], AX_ALL_DIMS, true));
}
static AX_BODY(written_out_loss) {
  written_out(in, out, context);
  out[0] = total(ax_mul(out[0], out[0]));
}
static AX_BODY(written_out_slope) { ax_grad(AX_FN(written_out_loss, 1, 1), AX_FIRST(1), in, out); }

static void inside(void **state) {
  (void)state;
  const ax_function pairs[][2] = {{nested, written_out}, {nested_slope, written_out_slope}, {two_sizes, two_sizes_written_out},
                                  {two_sizes_slope, two_sizes_written_out_slope}};
  const ax_type type = TEST_TYPE(AX_F64, 2, 4);
  double data[8];
  for (int i = 0; i < 8; i++) data[i] = 0.5 * i - 1;
  ax_tensor *x = test_tensor(type, data);
  for (size_t i = 0; i < AX_COUNT(pairs); i++) {
    ax_program *program = test_trace(pairs[i][0], NULL, &type, 1, 1), *plain = test_trace(pairs[i][1], NULL, &type, 1, 1);
    ax_tensor *out, *wanted;
    assert_int_equal(ax_program_devices(program), 8);
    assert_int_equal(ax_program_devices(plain), 1);
    test_run(program, &x, &out);
    test_run(plain, &x, &wanted);
    TEST_TENSORS_NEAR(out, wanted, 1e-12);
    TEST_EVERY_WAY(program, &x, 1e-12);
    test_release(&out, 1);
    test_release(&wanted, 1);
    ax_program_release(program);
    ax_program_release(plain);
  }
  test_release(&x, 1);
}

/* In a shard_map whose types are checked: what varies over its axis does so in the pmap. */
static AX_BODY(of_block) { ax_pmap(AX_CLOSURE(shift, 1, 1, "i"), in, out, &(ax_pmap_options){.axis_name = "i"}); }
static AX_BODY(in_checked) {
  ax_mesh mesh;
  TEST_OK(ax_mesh_parse("d=2", &mesh));
  ax_shard_map(&mesh, "d -> d", AX_FN(of_block, 1, 1), in, out);
}
static AX_BODY(of_two_sizes) {
  ax_mesh mesh;
  TEST_OK(ax_mesh_parse("d=2", &mesh));
  in_checked(in, out, NULL);
  ax_shard_map(&mesh, "_,d -> _,d", AX_FN(of_block, 1, 1), in, out + 1);
}

static void in_shard_map(void **state) {
  (void)state;
  const ax_type type = TEST_TYPE(AX_F64, 4, 2);
  double data[] = {1, 2, 3, 5, 7, 11, 13, 17};
  ax_program *program = test_trace(of_two_sizes, NULL, &type, 1, 2);
  ax_tensor *x = test_tensor(type, data), *out[2];
  assert_int_equal(ax_program_devices(program), 8);
  test_run(program, &x, out);
  for (int i = 0; i < 8; i++)
    TEST_NEAR(test_get(out[0], i), -data[i ^ 2], 1e-12); /* of two, less the sum of both: less the other */
  double columns[2] = {24, 35};
  for (int i = 0; i < 8; i++) TEST_NEAR(test_get(out[1], i), data[i] - columns[i % 2], 1e-12);
  TEST_EVERY_WAY(program, &x, 1e-12);
  test_release(out, 2);
  test_release(&x, 1);
  ax_program_release(program);
}

/* Beside arrays that are laid over fewer devices, outside of it. */
static AX_BODY(of_constrained) {
  ax_mesh mesh;
  TEST_OK(ax_mesh_parse("d=2", &mesh));
  ax_value x = ax_with_sharding(in[0], &mesh, "d");
  x = ax_mul(x, x);
  ax_pmap(AX_CLOSURE(shift, 1, 1, "i"), &x, out, &(ax_pmap_options){.axis_name = "i"});
  out[1] = total(ax_with_sharding(out[0], &mesh, "_,d"));
}

static void beside_constraints(void **state) {
  (void)state;
  const ax_type type = TEST_TYPE(AX_F64, 4, 2);
  double data[] = {1, 2, 3, 5, 7, 11, 13, 17}, columns[2] = {1 + 9 + 49 + 169, 4 + 25 + 121 + 289};
  ax_program *program = test_trace(of_constrained, NULL, &type, 1, 2);
  ax_tensor *x = test_tensor(type, data), *out[2];
  test_run(program, &x, out);
  for (int i = 0; i < 8; i++) TEST_NEAR(test_get(out[0], i), data[i] * data[i] - columns[i % 2], 1e-12);
  TEST_NEAR(test_get(out[1], 0), -3 * (columns[0] + columns[1]), 1e-12);
  TEST_EVERY_WAY(program, &x, 1e-12);
  test_release(out, 2);
  test_release(&x, 1);
  ax_program_release(program);
}

/* --- Results that differ, taken once; sizes given --- */

static AX_BODY(numbers) {
  out[0] = ax_axis_index("i");
  out[1] = ax_add(in[0], ax_axis_index("i"));
  out[2] = ax_add(ax_axis_index("i"), ax_integer(ax_axis_size("i")));
}
static AX_BODY(counted) {
  const ax_pmap_options options = {.axis_name = "i",
                                   .in_axes = {AX_DIMS(UNMAPPED)},
                                   .out_axes = {AX_DIMS(UNMAPPED, 0, UNMAPPED)},
                                   .axis_size = COUNT,
                                   .devices = {AX_DIMS(4, 0, 2)}};
  ax_pmap(AX_FN(numbers, 1, 3), in, out, &options);
}

static void sizes(void **state) {
  (void)state;
  const ax_type type = TEST_SCALAR(AX_S32);
  ax_program *program = test_trace(counted, NULL, &type, 1, 3);
  ax_tensor *x = test_tensor(type, (double[]){10}), *out[3];
  test_run(program, &x, out);
  assert_true(test_get(out[0], 0) == 0 && test_get(out[2], 0) == COUNT);
  for (int i = 0; i < COUNT; i++) assert_true(test_get(out[1], i) == 10 + i);
  TEST_EVERY_WAY(program, &x, 0);
  test_release(out, 3);
  test_release(&x, 1);
  ax_program_release(program);
  assert_int_equal(ax_program_devices(NULL), 1);
}

/* --- What nobody uses --- */

static AX_BODY(two_of_two) {
  out[0] = ax_mul(in[0], in[2]);
  out[1] = ax_psum(in[1], "i");
}
static AX_BODY(one_of_two) {
  ax_value made[2];
  ax_pmap(AX_FN(two_of_two, 3, 2), in, made, &(ax_pmap_options){.axis_name = "i", .in_axes = {AX_DIMS(0, 0, UNMAPPED)}});
  out[0] = made[0];
}

static void pruned(void **state) {
  (void)state;
  const ax_type types[] = {TEST_TYPE(AX_F32, 4, 2), TEST_TYPE(AX_F32, 4, 3), TEST_TYPE(AX_F32, 2)};
  ax_program *program = test_trace(one_of_two, NULL, types, 3, 1), *less;
  char *text;
  TEST_OK(ax_program_dce(program, &less));
  TEST_OK(ax_program_print(less, &text));
  assert_non_null(strstr(text, "in_specs=(P(i), P())\n      out_specs=(P(i),)\n"));
  assert_null(strstr(text, "psum"));
  ax_string_free(text);
  ax_program_release(less);
  ax_program_release(program);
}

/* --- As a function, with a static argument; its operand donated --- */

static AX_BODY(scaled) {
  const double *by = context;
  out[0] = ax_mul(in[0], ax_real(*by));
}

static void as_function(void **state) {
  (void)state;
  const ax_type type = TEST_TYPE(AX_F32, 4, 2);
  const ax_pmap_options options = {.axis_name = "i", .axis_size = 4};
  const float data[] = {1, 2, 3, 4, 5, 6, 7, 8};
  float got[8];
  double by = 3;
  ax_runtime *runtime;
  ax_executable *executable;
  ax_mesh mesh;
  ax_array *x, *y;
  TEST_OK(ax_runtime_create(&(ax_runtime_options){.workers = 2, .max_devices = 4}, &runtime));
  TEST_OK(ax_mesh_parse("i=4", &mesh));
  for (int reference = 0; reference < 2; reference++) { /* equation by equation too, which takes sizes and donations as well */
    const ax_compile_options compiled = {.donate = AX_FIRST(1), .reference = reference != 0};
    TEST_OK(ax_jit(runtime, AX_PMAPPED(&options, AX_CLOSURE(scaled, 1, 1, &by)), &type, &compiled, &executable));
    TEST_OK(ax_device_put_data(runtime, &mesh, "i", &type, data, &x));
    TEST_OK(ax_run(executable, &x, &y));
    assert_int_equal(ax_array_part_count(y), 4);
    TEST_OK(ax_array_read(y, got, sizeof got));
    for (int i = 0; i < 8; i++) assert_true(got[i] == 3 * data[i]);
    TEST_FAILS(ax_array_read(x, got, sizeof got), AX_INVALID_ARGUMENT, "donated");
    ax_array_release(x);
    ax_array_release(y);
    ax_executable_release(executable);
  }
  const ax_type longer = TEST_TYPE(AX_F32, 5, 2);
  TEST_FAILS(ax_jit(runtime, AX_PMAPPED(NULL, AX_CLOSURE(scaled, 1, 1, &by)), &longer, NULL, &executable), AX_INVALID_ARGUMENT,
             "the mesh has 5 devices, more than the 4 there are: (pmap=5,)");
  TEST_FAILS(ax_jit(runtime, AX_PMAPPED(NULL, AX_FN(inner, 1, 1)), &longer, NULL, &executable), AX_INVALID_ARGUMENT,
             "the mesh has 10 devices, more than the 4 there are: (pmap=5, pmap_1=2)");
  TEST_FAILS(ax_jit(runtime, AX_PMAPPED(&(ax_pmap_options){.axis_size = 4}, AX_FN(inner, 1, 1)), &longer, NULL, &executable),
             AX_INVALID_ARGUMENT, "pmap: axis_size is 4: in_axes[0]=0 of f32[5,2] has size 5");
  ax_runtime_release(runtime);
}

/* --- Refused --- */

static AX_BODY(first) { out[0] = in[0]; }
static AX_BODY(nothing) {}
static AX_BODY(in_itself) { ax_pmap(AX_FN(first, 1, 1), in, out, &(ax_pmap_options){.axis_name = context}); }
static AX_BODY(with_devices) { ax_pmap(AX_FN(first, 1, 1), in, out, &(ax_pmap_options){.devices = {AX_DIMS(0, 1, 2, 3)}}); }
static AX_BODY(of_sixteen_axes) {
  const ax_fn function = *(const ax_fn *)context;
  ax_pmap(function, in, out, NULL);
}
static AX_BODY(sized) { out[0] = ax_psum(in[0], "nobody"); }

typedef struct refusal {
  ax_pmap_options options;
  ax_fn function;
  const char *message;
} refusal;

static AX_BODY(attempt) {
  const refusal *r = context;
  ax_pmap(r->function, in, out, &r->options);
}

static void refused(void **state) {
  (void)state;
  const ax_fn f = AX_FN(first, 4, 1);
  const refusal refusals[] = {
      {{.in_axes = {AX_DIMS(0, 0, 0, UNMAPPED)}, .axis_name = ""}, f, "pmap: axis_name \"\" is not a name"},
      {{.in_axes = {AX_DIMS(0, 0, 0, UNMAPPED)}, .axis_name = "a b"}, f, "pmap: axis_name \"a b\" is not a name"},
      {{.in_axes = {AX_DIMS(0, 0, 2, 0)}}, f, "pmap: in_axes[2]=2 of f32[4,2] is out of range"},
      {{.in_axes = {AX_DIMS(0, -3, 0, 0)}}, f, "pmap: in_axes[1]=-3 of f32[4,4] is out of range"},
      {{.in_axes = {AX_DIMS(0, 0, 1, UNMAPPED)}},
       f,
       "pmap: the mapped dimensions are not of one size: in_axes[0]=0 of f32[4] has size 4, in_axes[1]=0 of f32[4,4] has size 4, "
       "in_axes[2]=1 of "
       "f32[4,2] has size 2"},
      {{.in_axes = {AX_DIMS(UNMAPPED, UNMAPPED, UNMAPPED, UNMAPPED)}},
       f,
       "pmap: in_axes maps no operand, and axis_size does not say how many devices there are"},
      {{.in_axes = {AX_DIMS(UNMAPPED, UNMAPPED, UNMAPPED, 0)}},
       f,
       "pmap: there is no device for mapped dimensions of size 0: in_axes[3]=0 of f32[0,2] has size 0"},
      {{.in_axes = {AX_DIMS(0, 0, 0, UNMAPPED)}, .axis_size = 3},
       f,
       "pmap: axis_size is 3: in_axes[0]=0 of f32[4] has size 4, in_axes[1]=0 of"},
      {{.in_axes = {AX_DIMS(0, 0, 0, UNMAPPED)}, .axis_size = -3}, f, "pmap: axis_size is -3"},
      {{.in_axes = {AX_DIMS(UNMAPPED, 0, UNMAPPED, UNMAPPED)}, .devices = {AX_DIMS(0, 1, 2)}},
       f,
       "pmap: 3 devices are given for an axis of 4: in_axes[1]=0 of f32[4,4]"},
      {{.in_axes = {AX_DIMS(UNMAPPED, 0, UNMAPPED, UNMAPPED)}, .devices = {AX_DIMS(0)}},
       f,
       "pmap: 1 device is given for an axis of 4"},
      {{.in_axes = {AX_DIMS(UNMAPPED, 0, UNMAPPED, UNMAPPED)}, .devices = {AX_DIMS(3, -2, 1, 0)}}, f, "pmap: devices[1] is -2"},
      {{.in_axes = {AX_DIMS(UNMAPPED, 0, UNMAPPED, UNMAPPED)}, .devices = {AX_DIMS(3, 7, 3, 0)}},
       f,
       "pmap: devices[0] and devices[2] are both 3"},
      {{.in_axes = {AX_DIMS(UNMAPPED, 0, UNMAPPED, UNMAPPED)}, .devices = {.count = 4}},
       f,
       "pmap: devices has a count of 4, but no entries"},
      {{.in_axes = {AX_DIMS(0, 0, 0, UNMAPPED)}, .out_axes = {AX_DIMS(1)}},
       f,
       "pmap: body: out_axes[0]=1 of f32[] is out of range"},
      {{.in_axes = {AX_DIMS(UNMAPPED, 0, UNMAPPED, UNMAPPED)}, .out_axes = {AX_DIMS(-3)}},
       f,
       "pmap: body: out_axes[0]=-3 of f32[4] is out of range"},
      {{.in_axes = {AX_DIMS(0, 0, 0, UNMAPPED)}, .axis_size = 4},
       AX_FN(nothing, 4, 1),
       "pmap: body: out[0] was never set, but there is 1 result"},
      {{.in_axes = {AX_DIMS(0, 0, 0, UNMAPPED)}}, AX_FN(NULL, 4, 1), "pmap: body: there is no function"},
      {{.in_axes = {AX_DIMS(0, 0, 0, UNMAPPED)}}, AX_FN(sized, 4, 1), "axis \"nobody\""},
      {{.in_axes = {AX_DIMS(UNMAPPED, 0, UNMAPPED, UNMAPPED)}, .axis_name = "i"},
       AX_CLOSURE(in_itself, 4, 1, "i"),
       "pmap: body: pmap: axis_name \"i\" is in use around this pmap"},
      {{.in_axes = {AX_DIMS(UNMAPPED, 0, UNMAPPED, UNMAPPED)}, .axis_name = "i"},
       AX_FN(with_devices, 4, 1),
       "pmap: body: pmap: devices are the outermost pmap's to give; around this one there is {i}"},
      {{.in_axes = {AX_DIMS(UNMAPPED, UNMAPPED, UNMAPPED, UNMAPPED)}, .axis_size = (int64_t)1 << 40},
       f,
       "pmap: more than 2^31 devices"},
  };
  const ax_type types[] = {TEST_TYPE(AX_F32, 4), TEST_TYPE(AX_F32, 4, 4), TEST_TYPE(AX_F32, 4, 2), TEST_TYPE(AX_F32, 0, 2)};
  ax_program *program;
  for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
    TEST_FAILS(ax_trace(AX_CLOSURE(attempt, 4, 1, &refusals[i]), types, &program), AX_INVALID_ARGUMENT, refusals[i].message);
    assert_null(program);
  }
  /* As deep as there are axes, and one deeper. */
  ax_fn nest[AX_MAX_AXES + 2] = {AX_FN(first, 1, 1)};
  for (int i = 0; i <= AX_MAX_AXES; i++) nest[i + 1] = AX_CLOSURE(of_sixteen_axes, 1, 1, &nest[i]);
  ax_type ones = {.dtype = AX_F32, .rank = AX_MAX_RANK};
  for (int d = 0; d < AX_MAX_RANK; d++) ones.dims[d] = 1;
  TEST_OK(ax_trace(nest[AX_MAX_AXES], &ones, &program));
  assert_int_equal(ax_program_devices(program), 1);
  ax_program_release(program);
  ones.rank = 1;
  TEST_FAILS(ax_trace(nest[2], &ones, &program), AX_INVALID_ARGUMENT, "pmap: body: pmap: in_axes[0]=0 of f32[] is out of range");
}

/* One axis of devices is not two dimensions of one array, however they come to be named for it. */
static AX_BODY(over_rows) {
  ax_mesh mesh;
  TEST_OK(ax_mesh_parse("a=2,i=2", &mesh));
  ax_shard_map(&mesh, "i -> i", AX_FN(first, 1, 1), in, out);
}
static AX_BODY(split_by) { ax_vmap(AX_FN(over_rows, 1, 1), in, out, &(ax_vmap_options){.spmd_axis_name = context}); }
static AX_BODY(split_twice) {
  ax_vmap(AX_CLOSURE(split_by, 1, 1, context), in, out, &(ax_vmap_options){.spmd_axis_name = context});
}
static AX_BODY(named_twice) {
  ax_mesh mesh;
  TEST_OK(ax_mesh_parse("a=2", &mesh));
  ax_shard_map(&mesh, "a,a -> a", AX_FN(first, 1, 1), in, out);
}

static void coinciding(void **state) {
  (void)state;
  const ax_type type = TEST_TYPE(AX_F32, 2, 2, 4);
  ax_program *program;
  TEST_OK(ax_trace(AX_CLOSURE(split_by, 1, 1, "a"), &type, &program));
  ax_program_release(program);
  TEST_FAILS(ax_trace(AX_CLOSURE(split_twice, 1, 1, "a"), &type, &program), AX_INVALID_ARGUMENT,
             "vmap: spmd_axis_name: {a} is in use in the spec of shard_map's operand 0");
  TEST_FAILS(ax_trace(AX_CLOSURE(split_by, 1, 1, "i"), &type, &program), AX_INVALID_ARGUMENT,
             "vmap: spmd_axis_name: {i} is in use in the spec of shard_map's operand 0");
  TEST_FAILS(ax_trace(AX_FN(named_twice, 1, 1), &type, &program), AX_INVALID_ARGUMENT, "axis \"a\" is used twice");
}

/* Each allocation failing in turn: traced with ids that are looked through, counted, tiled; a sharding through text. */
static AX_BODY(doubled) { ax_pmap(AX_FN(first, 1, 1), in, out, NULL); }
static AX_BODY(with_ids) {
  ax_mesh mesh;
  ax_status status = ax_mesh_parse("i=2", &mesh);
  assert_int_equal(status, AX_OK);
  ax_pmap(AX_FN(doubled, 1, 1), in, out, &(ax_pmap_options){.devices = {AX_DIMS(1, 0)}});
  ax_vtile(&mesh, "i -> i", AX_CLOSURE(shift, 1, 1, "i"), in, out + 1);
}

static ax_status whole_way(void *context) {
  (void)context;
  const ax_type type = TEST_TYPE(AX_F32, 2, 4);
  ax_program *program;
  ax_pmap_sharding sharding;
  char *text;
  AX_TRY(ax_trace(AX_FN(with_ids, 1, 2), &type, &program));
  const int64_t devices = ax_program_devices(program);
  ax_program_release(program);
  if (devices == INT64_MAX) return AX_OUT_OF_MEMORY;
  assert_int_equal(devices, 8);
  AX_TRY(ax_pmap_sharding_parse("ShardingSpec((Unstacked(2), NoSharding()), (ShardedAxis(axis=0),))", &sharding));
  AX_TRY(ax_pmap_sharding_print(&sharding, &text));
  ax_string_free(text);
  return AX_OK;
}

static void out_of_memory(void **state) {
  (void)state;
  assert_true(test_each_allocation(whole_way, NULL) > 10);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_dimension), cmocka_unit_test(beside), cmocka_unit_test(inside),      cmocka_unit_test(in_shard_map),
      cmocka_unit_test(sizes),           cmocka_unit_test(pruned), cmocka_unit_test(as_function), cmocka_unit_test(refused),
      cmocka_unit_test(beside_constraints),
      cmocka_unit_test(coinciding),      cmocka_unit_test(out_of_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
