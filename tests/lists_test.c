/* Lists carry their counts: those that are written out, C arrays, variables, and those in structs of options. A list that is too
   short, or one that is written out and too long, is an error at the line of its call, with both numbers. tests/c_refused_test.sh
   has the calls that do not compile, and what the macros know of lists under each compiler. */
#undef AXLE_NO_LINES
#include "axle/axle.h"

#include <stdio.h>
#include <string.h>

#include "support/cmocka.h"
#include "support/tensor.h"

static AX_BODY(sum) { out[0] = ax_add(in[0], in[1]); }
static AX_BODY(total) { out[0] = ax_reduce_sum(ax_mul(in[0], in[1]), AX_ALL_DIMS, false); }
static AX_BODY(both) {
  out[0] = ax_add(in[0], in[1]);
  out[1] = ax_sub(in[0], in[1]);
}
static AX_BODY(next) {
  out[0] = ax_add(in[1], 1);
  out[1] = ax_mul(in[2], 2);
}
static AX_BODY(step) {
  out[0] = ax_add(in[0], in[1]);
  out[1] = in[0];
}
static AX_BODY(is_small) { out[0] = ax_lt(in[0], 10); }
static AX_BODY(doubled) { out[0] = ax_mul(in[0], 2); }

/* The error of a call, without the folders in front of its file. */
static const char *told(void) {
  const char *text = strstr(ax_message(), "lists_test.c:");
  return text != NULL ? text : ax_message();
}

/* Expects the last message to name the file and this line, and to end with `rest`. */
static void expect_at(int line, const char *rest) {
  char wanted[300];
  snprintf(wanted, sizeof wanted, "lists_test.c:%d: ", line);
  if (strstr(told(), wanted) == NULL || strstr(told(), rest) == NULL) fail_msg("%s and %s are not in: %s", wanted, rest, told());
}

static void types_are_counted(void **state) {
  (void)state;
  const ax_type type = AX_TYPE(AX_F32, 4), types[] = {type, type, type}, *unknown = types;
  ax_program *program;
  TEST_OK(ax_trace(AX_FN(sum, 2, 1), AX_TYPES(type, type), &program));
  ax_program_release(program);
  TEST_OK(ax_trace(AX_FN(sum, 2, 1), types, &program)); /* it may be longer */
  ax_program_release(program);
  TEST_OK(ax_trace(AX_FN(sum, 2, 1), AX_LIST(2, unknown), &program));
  ax_program_release(program);
  assert_int_equal(ax_trace(AX_FN(sum, 2, 1), AX_TYPES(type), &program), AX_INVALID_ARGUMENT);
  expect_at(__LINE__ - 1, "trace: the function takes 2 inputs, but the list has 1");
  assert_int_equal(ax_trace(AX_FN(sum, 2, 1), &type, &program), AX_INVALID_ARGUMENT);
  expect_at(__LINE__ - 1, "trace: the function takes 2 inputs, but the list has 1");
  assert_int_equal(ax_trace(AX_FN(sum, 2, 1), AX_TYPES(type, type, type), &program), AX_INVALID_ARGUMENT);
  expect_at(__LINE__ - 1, "trace: the function takes 2 inputs, but the list has 3");
  assert_int_equal(ax_trace(AX_FN(sum, 2, 1), AX_LIST(1, unknown), &program), AX_INVALID_ARGUMENT);
  expect_at(__LINE__ - 1, "the list has 1");
}

/* Each is a body over in[0], in[1]: f32[4], with one list that is wrong; `line` is that of the call. */
static int line;
#define AT (line = __LINE__)

static AX_BODY(short_operands) { AT, ax_grad(AX_FN(total, 2, 1), AX_ARGS(0), AX_VALUES(in[0]), out); }
static AX_BODY(long_operands) { AT, ax_grad(AX_FN(total, 2, 1), AX_ARGS(0), AX_VALUES(in[0], in[1], in[0]), out); }
static AX_BODY(one_operand) {
  ax_value x = in[0];
  AT, ax_closed_call(AX_FN(sum, 2, 1), &x, out);
}
static AX_BODY(short_results) {
  ax_value found[1];
  AT, ax_value_and_grad(AX_FN(total, 2, 1), AX_ALL_ARGS, in, found);
  out[0] = found[0];
}
static AX_BODY(short_pair) {
  ax_value found[2];
  AT, ax_closed_call(AX_FN(both, 2, 2), in, &found[1]);
  out[0] = found[1];
}
/* A member of a struct ends where the next begins. */
static AX_BODY(short_member) {
  struct { ax_value gradient, kept; } found = {.kept = in[1]};
  AT, ax_grad(AX_FN(total, 2, 1), AX_FIRST(2), in, &found.gradient);
  out[0] = found.kept;
}
static AX_BODY(short_carries) {
  ax_value end[1];
  AT, ax_fori_loop(0, 3, AX_FN(next, 3, 2), in, end);
  out[0] = end[0];
}
static AX_BODY(short_scan) {
  ax_value end[1];
  AT, ax_scan(AX_FN(step, 2, 2), 1, 4, false, AX_VALUES(ax_reduce_sum(in[0], AX_ALL_DIMS, false), in[1]), end);
  out[0] = end[0];
}
static AX_BODY(short_while) { AT, ax_while(AX_FN(is_small, 1, 1), AX_FN(doubled, 1, 1), AX_VALUES(), out); }
static AX_BODY(short_if) { AT, ax_if(ax_full(AX_BOOL, AX_DIMS(), 1), AX_FN(sum, 2, 1), AX_FN(sum, 2, 1), AX_VALUES(in[0]), out); }
static AX_BODY(short_tangents) {
  ax_value y, dy;
  AT, ax_jvp(AX_FN(sum, 2, 1), AX_FIRST(2), in, AX_VALUES(in[0]), &y, &dy);
  out[0] = dy;
}
static AX_BODY(short_gradients) {
  ax_value y, gradient;
  AT, ax_vjp(AX_FN(sum, 2, 1), AX_FIRST(2), in, AX_VALUES(in[0]), &y, &gradient);
  out[0] = gradient;
}
static AX_BODY(short_vmap) { AT, ax_vmap(AX_FN(sum, 2, 1), AX_VALUES(in[0]), out, NULL); }
static AX_BODY(short_permutation) {
  ax_value x = ax_reshape(in[0], AX_DIMS(2, 2));
  AT, out[0] = ax_transpose(x, AX_DIMS(0));
}
static AX_BODY(long_permutation) {
  ax_value x = ax_reshape(in[0], AX_DIMS(2, 2));
  AT, out[0] = ax_transpose(x, AX_DIMS(1, 0, 2));
}
static AX_BODY(short_start) { AT, out[0] = ax_slice(in[0], AX_DIMS(), AX_DIMS(1), NULL); }
static AX_BODY(short_limit) {
  ax_value x = ax_reshape(in[0], AX_DIMS(2, 2));
  const int64_t start[2] = {0}, limit[1] = {1};
  AT, out[0] = ax_slice(x, start, limit, NULL);
}
/* Arrays whose length is found as the program runs. */
static AX_BODY(short_measured) {
  const int *count = context;
  ax_value found[*count];
  AT, ax_closed_call(AX_FN(both, 2, 2), in, found);
  out[0] = found[0];
}
static AX_BODY(short_split) {
  ax_value part[1];
  AT, ax_split(in[0], AX_DIMS(2, 2), 0, part);
  out[0] = part[0];
}
static AX_BODY(short_sorted) {
  ax_value sorted[1];
  AT, ax_sort_together(AX_LIST(2, in), 0, 1, sorted);
  out[0] = sorted[0];
}
static AX_BODY(short_pure_callback) {
  const ax_type types[] = {AX_TYPE(AX_F32, 4), AX_TYPE(AX_F32)};
  ax_value given[1];
  AT, ax_pure_callback(NULL, false, AX_VALUES(in[0]), AX_LIST(2, types), given);
  out[0] = given[0];
}
static AX_BODY(short_io_callback) {
  ax_value given[1];
  AT, ax_io_callback(NULL, false, AX_VALUES(), AX_TYPES(AX_TYPE(AX_F32, 4), AX_TYPE(AX_F32)), given);
  out[0] = given[0];
}
static AX_BODY(short_scoped) {
  const ax_scratch scratch[2] = {{.type = AX_VMEM(AX_F32, 4)}, {.type = AX_VMEM(AX_F32, 4)}};
  ax_value given[1];
  AT, ax_run_scoped(scratch, NULL, AX_FN(both, 2, 2), given);
  out[0] = given[0];
}
static AX_BODY(short_scratch) {
  const ax_scratch scratch = {.type = AX_VMEM(AX_F32, 4)};
  AT, ax_run_scoped(&scratch, NULL, AX_FN(sum, 2, 1), out);
}
static AX_BODY(short_kernel) {
  const ax_type types[] = {AX_TYPE(AX_F32, 4), AX_TYPE(AX_F32, 4)};
  ax_value given[1];
  AT, ax_kernel_call((&(ax_kernel){.outs = {AX_LIST(2, types)}}), AX_FN(both, 4, 0), in, given);
  out[0] = given[0];
}
static AX_BODY(short_kernel_operands) {
  const ax_type type = AX_TYPE(AX_F32, 4);
  ax_value x = in[0];
  AT, ax_kernel_call((&(ax_kernel){.outs = {AX_LIST(1, &type)}}), AX_FN(sum, 3, 0), &x, out);
}
static AX_BODY(short_mpmd) {
  const ax_core_mesh meshes[2] = {{.core = "one"}, {.core = "other"}};
  const ax_fn bodies[1] = {AX_FN(sum, 3, 0)};
  AT, ax_mpmd_map(AX_LIST(2, meshes), bodies, NULL, in, AX_TYPES(AX_TYPE(AX_F32, 4)), out);
}
static AX_BODY(short_mpmd_results) {
  const ax_core_mesh mesh = {.core = "one"};
  const ax_fn body = AX_FN(sum, 4, 0);
  ax_value given[1];
  AT, ax_mpmd_map(AX_LIST(1, &mesh), &body, NULL, in, AX_TYPES(AX_TYPE(AX_F32, 4), AX_TYPE(AX_F32, 4)), given);
  out[0] = given[0];
}
static AX_BODY(short_map) {
  ax_value half[1];
  AT, ax_tree_map(ax_neg, AX_LIST(2, in), half);
  out[0] = half[0];
}
static AX_BODY(short_zip) {
  ax_value pair[2], b[1] = {in[1]};
  AT, ax_tree_zip(ax_add, AX_LIST(2, in), b, pair);
  out[0] = pair[0];
}
static AX_BODY(short_scaled) {
  ax_value half[1];
  AT, ax_tree_scale(0.5, AX_LIST(2, in), half);
  out[0] = half[0];
}
static AX_BODY(short_unravelled) {
  ax_value leaf[1];
  AT, ax_tree_unravel(ax_tree_ravel(AX_LIST(2, in)), AX_LIST(2, in), leaf);
  out[0] = leaf[0];
}
static AX_BODY(short_einsum) {
  ax_value x = in[0];
  AT, out[0] = ax_einsum("i,i->i", &x);
}
static AX_BODY(short_shuffle) {
  const int64_t perm[1] = {0};
  AT, out[0] = ax_pshuffle(in[0], "d", perm);
}
static AX_BODY(short_scales) {
  const int64_t boundaries[2] = {10, 20};
  const double scales[1] = {0.5};
  ax_schedule schedule = ax_piecewise_constant_schedule(1, AX_LIST(2, boundaries), scales);
  AT, out[0] = ax_schedule_at(&schedule, ax_full(AX_S32, AX_DIMS(), 0));
}
static AX_BODY(short_parts) {
  const ax_schedule part = ax_constant_schedule(1);
  ax_schedule schedule = ax_join_schedules(&part, AX_DIMS(10));
  AT, out[0] = ax_schedule_at(&schedule, ax_full(AX_S32, AX_DIMS(), 0));
}
static AX_BODY(no_count) {
  const ax_fn *branches = context;
  AT, ax_switch(ax_full(AX_S32, AX_DIMS(), 0), branches, in, out);
}

static void lists_in_traces_are_counted(void **state) {
  (void)state;
  ax_fn branch = AX_FN(sum, 2, 1);
  const struct {
    ax_function body;
    const char *message;
  } slips[] = {
      {short_operands, "grad: the function takes 2 operands, but the list has 1"},
      {long_operands, "grad: the function takes 2 operands, but the list has 3"},
      {one_operand, "closed_call: the function takes 2 operands, but the list has 1"},
      {short_results, "value_and_grad: the call gives 3 results, but the list has 1"},
      {short_member, "grad: the call gives 2 results, but the list has 1"},
      {short_pair, "closed_call: the call gives 2 results, but the list has 1"},
      {short_carries, "fori_loop: the call gives 2 results, but the list has 1"},
      {short_scan, "scan: the call gives 2 results, but the list has 1"},
      {short_while, "while: the function takes 1 operand, but the list has 0"},
      {short_if, "if: the function takes 2 operands, but the list has 1"},
      {short_tangents, "jvp: it takes 2 tangents, but the list has 1"},
      {short_gradients, "vjp: the call gives 2 results, but the list has 1"},
      {short_vmap, "vmap: the function takes 2 operands, but the list has 1"},
      {short_permutation, "transpose: the array has 2 dimensions, but the list has 1"},
      {long_permutation, "transpose: the array has 2 dimensions, but the list has 3"},
      {short_start, "slice: the array has 1 dimension, but the list has 0"},
      {short_limit, "slice: the array has 2 dimensions, but the list has 1"},
      {short_split, "split: there are 2 parts, but the list has 1"},
      {short_sorted, "sort_together: the call gives 2 results, but the list has 1"},
      {short_pure_callback, "pure_callback: the call gives 2 results, but the list has 1"},
      {short_io_callback, "io_callback: the call gives 2 results, but the list has 1"},
      {short_scoped, "run_scoped: the function gives 2 results, but the list has 1"},
      {short_scratch, "run_scoped: the function takes 2 operands, but there are 1 scratch"},
      {short_kernel, "kernel_call: the call gives 2 results, but the list has 1"},
      {short_kernel_operands, "kernel_call: "},
      {short_mpmd, "mpmd_map: the meshes take 2 functions, but the list has 1"},
      {short_mpmd_results, "mpmd_map: the call gives 2 results, but the list has 1"},
      {short_map, "tree_map: there are 2 values, but the list has 1"},
      {short_zip, "tree_zip: a has 2 values, but the list has 1"},
      {short_scaled, "tree_scale: there are 2 values, but the list has 1"},
      {short_unravelled, "tree_unravel: there are 2 values, but the list has 1"},
      {short_einsum, "1 operand, but subscripts for 2"},
      {short_shuffle, "pshuffle: perm has 1 numbers; the group along \"d\" has 2 members"},
      {short_scales, "piecewise_constant_schedule: the boundaries take 2 scales, but the list has 1"},
      {short_parts, "join_schedules: the boundaries take 2 parts, but the list has 1"},
      {no_count, "switch: nothing says how many branches there are: AX_LIST(count, pointer) does"},
  };
  const ax_type type = AX_TYPE(AX_F32, 4);
  ax_mesh axes;
  TEST_OK(ax_mesh_parse("d=2", &axes));
  for (size_t i = 0; i < sizeof slips / sizeof slips[0]; i++) {
    ax_program *program;
    void *volatile context = &branch; /* what it points to is not known where it is used */
    assert_int_equal(ax_trace_on(&axes, AX_CLOSURE(slips[i].body, 2, 1, context), AX_TYPES(type, type), &program),
                     AX_INVALID_ARGUMENT);
    expect_at(line, slips[i].message);
  }
  int one = 1;
  ax_program *program;
  assert_int_equal(ax_trace(AX_CLOSURE(short_measured, 2, 1, &one), AX_TYPES(type, type), &program), AX_INVALID_ARGUMENT);
  expect_at(line, "closed_call: the call gives 2 results, but the list has 1");
}

/* --- Lists in structs of options, which are the contexts of these bodies --- */

static AX_BODY(mapped) { AT, ax_vmap(AX_FN(both, 2, 2), in, out, (const ax_vmap_options *)context); }
static AX_BODY(over_devices) { AT, ax_pmap(AX_FN(both, 2, 2), in, out, (const ax_pmap_options *)context); }
static AX_BODY(convolved) {
  ax_value image = ax_reshape(in[0], AX_DIMS(1, 1, 2, 2)), kernel = ax_reshape(in[1], AX_DIMS(1, 1, 2, 2));
  out[1] = in[1];
  AT, out[0] = ax_conv_general_dilated(image, kernel, (const ax_conv_options *)context);
}
static AX_BODY(windowed) {
  ax_value x = ax_reshape(in[0], AX_DIMS(2, 2));
  out[1] = x;
  AT, out[0] = ax_reduce_window_sum(x, AX_DIMS(1, 1), (const ax_window_options *)context);
}
static AX_BODY(nothing) {}
static AX_BODY(in_a_kernel) {
  const ax_type type = ax_typeof(in[0]);
  ax_kernel kernel = *(const ax_kernel *)context;
  kernel.outs = (ax_type_list){1, &type};
  out[1] = in[1];
  AT, ax_kernel_call(&kernel, AX_FN(nothing, 3, 0), AX_LIST(2, in), out);
}
static AX_BODY(pipelined) {
  ax_pipeline_options options = *(const ax_pipeline_options *)context;
  options.in_count = 2;
  options.out_count = 1;
  AT, ax_emit_pipeline(&options, AX_FN(nothing, 3, 0), in);
}
static AX_BODY(in_a_pipeline) {
  const ax_type type = ax_typeof(in[0]);
  out[1] = in[1];
  ax_mpmd_map(AX_LIST(1, &(ax_core_mesh){.core = "tensorcore"}), &AX_CLOSURE(pipelined, 3, 0, context), NULL, AX_LIST(2, in), AX_LIST(1, &type), out);
}
static AX_BODY(signals) { AT, ax_semaphore_signal(in[3], 1, (const ax_target_core *)context); }
static AX_BODY(to_a_core) {
  const ax_type type = ax_typeof(in[0]);
  const ax_kernel_options options = {.scratch = {AX_SCRATCH({.type = ax_semaphore_type(AX_DIMS())})}};
  const ax_core_mesh cores = {.core = "tensorcore", .mesh = {.count = 1, .axis = {{.name = "core", .size = 2}}}};
  out[1] = in[1];
  ax_mpmd_map(AX_LIST(1, &cores), &AX_CLOSURE(signals, 4, 0, context), &options, AX_LIST(2, in), AX_LIST(1, &type), out);
}

#define CONV(...) \
  convolved, &(ax_conv_options) { __VA_ARGS__ }
#define WINDOW(...) \
  windowed, &(ax_window_options) { __VA_ARGS__ }
#define VMAP(...) \
  mapped, &(ax_vmap_options) { __VA_ARGS__ }
#define PMAP(...) \
  over_devices, &(ax_pmap_options) { __VA_ARGS__ }
#define KERNEL(...) \
  in_a_kernel, &(ax_kernel) { __VA_ARGS__ }
#define PIPELINE(...) \
  in_a_pipeline, &(ax_pipeline_options) { __VA_ARGS__ }
#define CORE(...) \
  to_a_core, &(ax_target_core) { .axes = "core", __VA_ARGS__ }

static void options_in_traces_are_counted(void **state) {
  (void)state;
  const ax_block_spec whole = {0}, short_block = {.block = {AX_DIMS()}}, long_block = {.block = {AX_DIMS(2, 1)}};
  const ax_value one = ax_integer(1);
  const struct {
    ax_function body;
    const void *options;
    const char *message; /* NULL: the list is as it should be */
  } slips[] = {
      {VMAP(.in_axes = {AX_DIMS(0, 0)}, .out_axes = {AX_DIMS(0, -1)}), NULL},
      {VMAP(.in_axes = {AX_DIMS(0)}), "vmap: in_axes has 1 entry, but there are 2 operands"},
      {VMAP(.in_axes = {AX_DIMS(0, 0, AX_NOT_MAPPED)}), "vmap: in_axes has 3 entries, but there are 2 operands"},
      {VMAP(.out_axes = {AX_DIMS(0)}), "vmap: out_axes has 1 entry, but there are 2 results"},
      {VMAP(.out_axes = {AX_DIMS(0, 0, 0)}), "vmap: out_axes has 3 entries, but there are 2 results"},
      {VMAP(.in_axes = {.count = 2}), "vmap: in_axes has a count of 2, but no entries"},
      {VMAP(.in_axes = {AX_DIMS(0, INT64_MAX)}), "vmap: in_axes[1]=9223372036854775807 of f32[4] is out of range"},
      {VMAP(.in_axes = {AX_DIMS(0, INT64_MIN)}), "vmap: in_axes[1]=-9223372036854775808 of f32[4] is out of range"},
      {PMAP(.in_axes = {AX_DIMS(0, -1)}, .out_axes = {AX_DIMS(0, 0)}, .devices = {AX_DIMS(3, 1, 0, 2)}), NULL},
      {PMAP(.in_axes = {AX_DIMS(0)}), "pmap: in_axes has 1 entry, but there are 2 operands"},
      {PMAP(.in_axes = {AX_DIMS(0, 0, 0)}), "pmap: in_axes has 3 entries, but there are 2 operands"},
      {PMAP(.out_axes = {AX_DIMS(0)}), "pmap: out_axes has 1 entry, but there are 2 results"},
      {PMAP(.out_axes = {AX_DIMS(0, 0, 0)}), "pmap: out_axes has 3 entries, but there are 2 results"},
      {PMAP(.devices = {AX_DIMS(0, 1, 2)}), "pmap: 3 devices are given for an axis of 4"},
      {PMAP(.devices = {AX_DIMS(0, 1, 2, 3, 4)}), "pmap: 5 devices are given for an axis of 4"},
      {CONV(.strides = {AX_DIMS(1, 1)}, .low = {AX_DIMS(1, 0)}, .lhs_dilation = {AX_DIMS(1, 2)}), NULL},
      {CONV(.strides = {AX_DIMS(1)}), "conv_general_dilated: strides has 1 entry, but there are 2 spatial dimensions"},
      {CONV(.strides = {AX_DIMS(1, 1, 1)}), "conv_general_dilated: strides has 3 entries, but there are 2 spatial dimensions"},
      {CONV(.low = {AX_DIMS(1)}), "conv_general_dilated: low has 1 entry, but there are 2 spatial dimensions"},
      {CONV(.high = {AX_DIMS(1, 0, 1)}), "conv_general_dilated: high has 3 entries, but there are 2 spatial dimensions"},
      {CONV(.lhs_dilation = {AX_DIMS(1)}), "conv_general_dilated: lhs_dilation has 1 entry, but there are 2 spatial dimensions"},
      {CONV(.rhs_dilation = {AX_DIMS(1)}), "conv_general_dilated: rhs_dilation has 1 entry, but there are 2 spatial dimensions"},
      {WINDOW(.strides = {AX_DIMS(1, 2)}, .high = {AX_DIMS(1, 0)}), NULL},
      {WINDOW(.strides = {AX_DIMS(1)}), "reduce_window_sum: strides has 1 entry, but there are 2 dimensions"},
      {WINDOW(.low = {AX_DIMS(0, 0, 0)}), "reduce_window_sum: low has 3 entries, but there are 2 dimensions"},
      {WINDOW(.high = {AX_DIMS(1)}), "reduce_window_sum: high has 1 entry, but there are 2 dimensions"},
      {WINDOW(.base_dilation = {AX_DIMS(1)}), "reduce_window_sum: base_dilation has 1 entry, but there are 2 dimensions"},
      {WINDOW(.window_dilation = {AX_DIMS(1)}), "reduce_window_sum: window_dilation has 1 entry, but there are 2 dimensions"},
      {KERNEL(.grid = {AX_DIMS(2)}, .semantics = {AX_SEMANTICS(AX_PARALLEL)},
              .in_specs = {AX_BLOCK_SPECS(whole, {.block = {AX_DIMS(2)}})}),
       NULL},
      {KERNEL(.grid = {AX_DIMS(2, 2)}, .semantics = {AX_SEMANTICS(AX_PARALLEL)}),
       "kernel_call: semantics has 1 entry, but there are 2 grid dimensions"},
      {KERNEL(.semantics = {AX_SEMANTICS(AX_PARALLEL)}), "kernel_call: semantics has 1 entry, but there are 0 grid dimensions"},
      {KERNEL(.in_specs = {AX_BLOCK_SPECS(whole)}), "kernel_call: in_specs has 1 entry, but there are 2 operands"},
      {KERNEL(.in_specs = {AX_BLOCK_SPECS(whole, whole, whole)}), "kernel_call: in_specs has 3 entries, but there are 2 operands"},
      {KERNEL(.out_specs = {AX_BLOCK_SPECS(whole, whole)}), "kernel_call: out_specs has 2 entries, but there is 1 result"},
      {KERNEL(.in_specs = {AX_BLOCK_SPECS(short_block, long_block)}),
       "kernel_call: operand 1: a block of 2 dimensions, but it is f32[4]"},
      {PIPELINE(.in_specs = {AX_BLOCK_SPECS(whole, whole)}, .out_specs = {AX_BLOCK_SPECS(whole)}), NULL},
      {PIPELINE(.in_specs = {AX_BLOCK_SPECS(whole)}), "emit_pipeline: in_specs has 1 entry, but there are 2 operands"},
      {PIPELINE(.out_specs = {AX_BLOCK_SPECS(whole, whole)}), "emit_pipeline: out_specs has 2 entries, but there is 1 result"},
      {PIPELINE(.out_specs = {AX_BLOCK_SPECS(long_block)}),
       "emit_pipeline: result 0: a block of 2 dimensions, but it is ref<f32[4] any>"},
      {CORE(.coordinates = {AX_LIST(1, &one)}), NULL},
      {CORE(.coordinates = {0}), "semaphore_signal: axes \"core\" take 1 coordinate, but there are 0"},
      {CORE(.coordinates = {AX_VALUES(one, one)}), "semaphore_signal: axes \"core\" take 1 coordinate, but there are 2"},
  };
  const ax_type type = AX_TYPE(AX_F32, 4);
  for (size_t i = 0; i < sizeof slips / sizeof slips[0]; i++) {
    ax_program *program;
    ax_status status =
        ax_trace(AX_CLOSURE(slips[i].body, 2, 2, (void *)(uintptr_t)slips[i].options), AX_TYPES(type, type), &program);
    if (slips[i].message == NULL) {
      if (status != AX_OK) fail_msg("slip %zu: %s", i, ax_message());
      ax_program_release(program);
      continue;
    }
    assert_int_equal(status, AX_INVALID_ARGUMENT);
    expect_at(line, slips[i].message);
  }
}

/* Longer arrays, pointers that nothing is known of, and lists from the middle of arrays are as good as ever. */
static AX_BODY(roomy) {
  ax_value found[5] = {in[0], in[1]}, pair[] = {in[0], in[1]};
  ax_value *volatile at = &found[2];
  ax_closed_call(AX_FN(both, 2, 2), pair, &found[1]);
  ax_closed_call(AX_FN(both, 2, 2), found, at);
  ax_closed_call(AX_FN(both, 2, 2), AX_LIST(2, found + 1), AX_LIST(2, found + 3));
  ax_closed_call(AX_FN(sum, 2, 1), &found[3], out);
}

static void what_is_long_enough_passes(void **state) {
  (void)state;
  ax_program *program;
  const ax_type type = AX_TYPE(AX_F32, 4);
  TEST_OK(ax_trace(AX_FN(roomy, 2, 1), AX_TYPES(type, type), &program));
  ax_program_release(program);
}

static void runs_are_counted(void **state) {
  (void)state;
  float x[4] = {1, 2, 3, 4}, y[4] = {4, 3, 2, 1}, z[4];
  ax_runtime *runtime;
  ax_executable *executable;
  ax_host_array hosts[3], given[2] = {ax_host_view(AX_F32, AX_DIMS(4), x), ax_host_view(AX_F32, AX_DIMS(4), y)};
  ax_array *in[2], *out[2], *one;
  const ax_type type = AX_TYPE(AX_F32, 4);
  TEST_OK(ax_runtime_create(NULL, &runtime));
  TEST_OK(ax_jit(runtime, AX_FN(both, 2, 2), AX_TYPES(type, type), NULL, &executable));
  TEST_OK(ax_executable_put(executable, 0, x, &in[0]));
  TEST_OK(ax_executable_put(executable, 1, y, &in[1]));
  assert_int_equal(ax_run(executable, in, &one), AX_INVALID_ARGUMENT);
  expect_at(__LINE__ - 1, "run: the program gives 2 results, but the list has 1");
  assert_null(one);
  assert_int_equal(ax_run(executable, AX_ARRAYS(in[0]), out), AX_INVALID_ARGUMENT);
  expect_at(__LINE__ - 1, "run: the program takes 2 arguments, but the list has 1");
  assert_null(out[0]);
  assert_null(out[1]);
  assert_int_equal(ax_run_host(executable, given, &hosts[2]), AX_INVALID_ARGUMENT);
  expect_at(__LINE__ - 1, "run_host: the program gives 2 results, but the list has 1");
  assert_int_equal(ax_apply(runtime, AX_FN(both, 2, 2), AX_HOST_ARRAYS(given[0]), hosts), AX_INVALID_ARGUMENT);
  expect_at(__LINE__ - 1, "apply: the function takes 2 operands, but the list has 1");
  assert_int_equal(ax_jit_host(runtime, AX_FN(both, 2, 2), &given[1], NULL, &executable), AX_INVALID_ARGUMENT);
  expect_at(__LINE__ - 1, "jit_host: the function takes 2 inputs, but the list has 1");
  TEST_OK(ax_jit(runtime, AX_FN(both, 2, 2), AX_TYPES(type, type), NULL, &executable));
  TEST_OK(ax_run(executable, in, out));
  TEST_OK(ax_array_read(out[1], z, sizeof z));
  assert_true(z[0] == -3 && z[3] == 3);
  for (int i = 0; i < 2; i++) {
    ax_array_release(in[i]);
    ax_array_release(out[i]);
  }
  ax_executable_release(executable);
  ax_executable_release(executable); /* equal programs are one executable, of which this is the first reference */
  ax_runtime_release(runtime);
}

static void options_of_programs_are_counted(void **state) {
  (void)state;
  const float x[4] = {1, 2, 3, 4};
  const ax_type type = AX_TYPE(AX_F32, 4);
  const ax_host_array view = ax_host_view(AX_F32, AX_DIMS(4), x);
  ax_runtime *runtime;
  ax_program *program, *made;
  ax_executable *executable;
  ax_lowered *lowered;
  ax_check_report *report;
  ax_array *array;
  TEST_OK(ax_runtime_create(NULL, &runtime));
  TEST_OK(ax_trace(AX_FN(sum, 2, 1), AX_TYPES(type, type), &program));
  TEST_OK(ax_device_put(runtime, NULL, "", &view, &array));
  const struct {
    ax_compile_options options;
    const char *rest;
  } compiles[] = {{{.names = {AX_NAMES("x")}}, "names has 1 entry, but there are 2 inputs"},
                  {{.names = {AX_NAMES("x", "y", "z")}}, "names has 3 entries, but there are 2 inputs"},
                  {{.names = {.count = 2}}, "names has a count of 2, but no entries"},
                  {{.like = {AX_ARRAYS(array)}}, "like has 1 entry, but there are 2 inputs"},
                  {{.like = {AX_ARRAYS(array, array, array)}}, "like has 3 entries, but there are 2 inputs"}};
  for (size_t i = 0; i < sizeof compiles / sizeof compiles[0]; i++) {
    TEST_FAILS(ax_compile(runtime, program, &compiles[i].options, &executable), AX_INVALID_ARGUMENT, compiles[i].rest);
    TEST_FAILS(ax_program_lower(program, &compiles[i].options, &lowered), AX_INVALID_ARGUMENT, compiles[i].rest);
    TEST_FAILS(ax_jit(runtime, AX_FN(sum, 2, 1), AX_TYPES(type, type), &compiles[i].options, &executable), AX_INVALID_ARGUMENT,
               compiles[i].rest);
  }
  const ax_compile_options good = {.names = {AX_NAMES("x", NULL)}, .like = {AX_ARRAYS(array, NULL)}};
  TEST_OK(ax_compile(runtime, program, &good, &executable));
  ax_executable_release(executable);
  TEST_FAILS(ax_program_vmap(program, &(ax_vmap_options){.in_axes = {AX_DIMS(0)}, .size = 3}, &made), AX_INVALID_ARGUMENT,
             "vmap: in_axes has 1 entry, but there are 2 inputs");
  TEST_FAILS(ax_program_vmap(program, &(ax_vmap_options){.out_axes = {AX_DIMS(0, 0)}, .size = 3}, &made), AX_INVALID_ARGUMENT,
             "vmap: out_axes has 2 entries, but there is 1 result");
  TEST_FAILS(ax_check(program, &(ax_check_options){.in = {AX_HOST_ARRAYS(view)}}, &report), AX_INVALID_ARGUMENT,
             "check: in has 1 entry, but there are 2 inputs");
  TEST_FAILS(ax_check(program, &(ax_check_options){.in = {AX_HOST_ARRAYS(view, view, view)}}, &report), AX_INVALID_ARGUMENT,
             "check: in has 3 entries, but there are 2 inputs");
  TEST_OK(ax_check(program, &(ax_check_options){.in = {AX_HOST_ARRAYS(view, view)}}, &report));
  ax_check_report_release(report);
  ax_array_release(array);
  ax_program_release(program);
  ax_runtime_release(runtime);
}

static void devices_are_counted(void **state) {
  (void)state;
  ax_mesh mesh;
  ax_sharding *sharding;
  TEST_OK(ax_mesh_parse("d=4", &mesh));
  const struct {
    ax_sharding_options options;
    const char *rest;
  } slips[] = {{{.devices = {AX_DIMS(0, 1, 2)}}, "3 devices for 4 places"},
               {{.devices = {AX_DIMS(0, 1, 2, 3, 4)}}, "5 devices for 4 places"},
               {{.devices = {.count = 4}}, "devices has a count of 4, but no entries"},
               {{.devices = {AX_DIMS(3, 1, 2, 0)}, .device_count = 3}, "device_count is 3, but devices has 4 entries"}};
  for (size_t i = 0; i < sizeof slips / sizeof slips[0]; i++) {
    TEST_FAILS(ax_sharding_named(&mesh, "d", &slips[i].options, &sharding), AX_INVALID_ARGUMENT, slips[i].rest);
    assert_null(sharding);
  }
  TEST_OK(ax_sharding_replicated(&(ax_sharding_options){.devices = {AX_DIMS(5, 2, 4)}}, &sharding));
  assert_int_equal(ax_sharding_device_count(sharding), 3);
  assert_int_equal(ax_sharding_device(sharding, 2), 4);
  ax_sharding_release(sharding);
}

static void lists_of_one_length_are_counted(void **state) {
  (void)state;
  const char *const names[2] = {"a", "b"}, *const specs[1] = {""};
  const ax_type types[1] = {AX_TYPE(AX_F32, 4)};
  float x[4] = {1, 2, 3, 4};
  const ax_host_array hosts[1] = {ax_host_view(AX_F32, AX_DIMS(4), x)};
  ax_treedef *def;
  assert_int_equal(ax_treedef_create(AX_LIST(2, names), types, NULL, &def), AX_INVALID_ARGUMENT);
  expect_at(__LINE__ - 1, "treedef_create: the names take 2 types, but the list has 1");
  assert_int_equal(ax_treedef_create(AX_LIST(2, names), AX_TYPES(types[0], types[0]), specs, &def), AX_INVALID_ARGUMENT);
  expect_at(__LINE__ - 1, "treedef_create: the names take 2 specs, but the list has 1");
  TEST_OK(ax_treedef_create(AX_LIST(1, names), types, specs, &def));
  assert_int_equal(ax_npz_write("/nowhere/x.npz", AX_LIST(2, names), hosts), AX_INVALID_ARGUMENT);
  expect_at(__LINE__ - 1, "npz_write: the names take 2 arrays, but the list has 1");
  ax_treedef *all;
  assert_int_equal(ax_treedef_join("one; two", &def, &all), AX_INVALID_ARGUMENT);
  expect_at(__LINE__ - 1, "treedef_join: \"one; two\" has 2 names for 1 parts");
  ax_treedef_release(def);
}

static void lists_of_arrays_are_counted(void **state) {
  (void)state;
  const ax_type type = AX_TYPE(AX_F32, 4);
  float x[4] = {1, 2, 3, 4};
  const ax_host_array hosts[2] = {ax_host_view(AX_F32, AX_DIMS(4), x), ax_host_view(AX_F32, AX_DIMS(4), x)};
  ax_runtime *runtime;
  ax_mesh mesh;
  ax_sharding *sharding;
  ax_array *two[2], *again[2], *one[1], *array;
  TEST_OK(ax_runtime_create(NULL, &runtime));
  TEST_OK(ax_mesh_parse("d=2", &mesh));
  TEST_OK(ax_sharding_named(&mesh, "d", NULL, &sharding));
  const ax_sharding *const both_ways[2] = {sharding, sharding};
  assert_int_equal(ax_device_put_many(runtime, AX_LIST(2, both_ways), &hosts[1], two), AX_INVALID_ARGUMENT);
  expect_at(__LINE__ - 1, "device_put_many: it takes 2 host arrays, but the list has 1");
  assert_null(two[0]);
  assert_null(two[1]);
  assert_int_equal(ax_device_put_many(runtime, AX_LIST(2, both_ways), hosts, one), AX_INVALID_ARGUMENT);
  expect_at(__LINE__ - 1, "device_put_many: the call gives 2 results, but the list has 1");
  assert_null(one[0]);
  TEST_OK(ax_device_put_many(runtime, AX_LIST(2, both_ways), hosts, two));
  assert_int_equal(ax_array_reshard_many(AX_LIST(2, two), both_ways, one), AX_INVALID_ARGUMENT);
  expect_at(__LINE__ - 1, "array_reshard_many: the call gives 2 results, but the list has 1");
  assert_int_equal(ax_array_reshard_many(AX_LIST(2, two), &both_ways[1], again), AX_INVALID_ARGUMENT);
  expect_at(__LINE__ - 1, "array_reshard_many: it takes 2 shardings, but the list has 1");
  assert_null(again[0]);
  for (int i = 0; i < 2; i++) ax_array_release(two[i]);
  const ax_part part = {.data = x, .bytes = 8};
  assert_int_equal(ax_array_from_parts(runtime, &mesh, "d", &type, &part, &array), AX_INVALID_ARGUMENT);
  expect_at(__LINE__ - 1, "array_from_parts: ");
  assert_int_equal(ax_array_from_device_parts(runtime, sharding, &type, &part, &array), AX_INVALID_ARGUMENT);
  expect_at(__LINE__ - 1, "array_from_device_parts: 1 for 2 devices");
  assert_int_equal(ax_array_from_device_arrays(runtime, sharding, &type, one, &array), AX_INVALID_ARGUMENT);
  expect_at(__LINE__ - 1, "array_from_device_arrays: 1 for 2 devices");
  ax_sharding_release(sharding);
  ax_runtime_release(runtime);
}

/* Memory in arrays whose length is found as the program runs. */
static void measured_memory_is_counted(void **state) {
  (void)state;
  volatile int three = 3;
  float x[three], y[4] = {1, 2, 3, 4};
  memset(x, 0, sizeof x);
  ax_runtime *runtime;
  ax_array *array;
  const ax_type type = AX_TYPE(AX_F32, 4);
  TEST_OK(ax_runtime_create(NULL, &runtime));
  assert_int_equal(ax_device_put_data(runtime, NULL, "", &type, x, &array), AX_INVALID_ARGUMENT);
  expect_at(__LINE__ - 1, "f32[4] takes 16 bytes, but the memory in C has 12");
  TEST_OK(ax_device_put_data(runtime, NULL, "", &type, y, &array));
  assert_int_equal(ax_array_read(array, x, sizeof y), AX_INVALID_ARGUMENT);
  expect_at(__LINE__ - 1, "array_read: ");
  TEST_OK(ax_array_read(array, y, sizeof y));
  ax_array_release(array);
  ax_runtime_release(runtime);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(types_are_counted),
      cmocka_unit_test(lists_in_traces_are_counted),
      cmocka_unit_test(options_in_traces_are_counted),
      cmocka_unit_test(what_is_long_enough_passes),
      cmocka_unit_test(runs_are_counted),
      cmocka_unit_test(options_of_programs_are_counted),
      cmocka_unit_test(devices_are_counted),
      cmocka_unit_test(lists_of_one_length_are_counted),
      cmocka_unit_test(lists_of_arrays_are_counted),
      cmocka_unit_test(measured_memory_is_counted),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
