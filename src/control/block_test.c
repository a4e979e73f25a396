/* Blocks of C as bodies: each form makes the program that the function form makes, alone, in one another, and in other
   functions. */
#undef AXLE_NO_LINES
#include <string.h>

#include "axle/axle.h"
#include "support/cmocka.h"
#include "support/run.h"
#include "support/tensor.h"

/* in: f32[4], f32[], s32[]; out: one f32[4], one f32[] */
enum { OPERANDS = 3, RESULTS = 2 };

static ax_value sum(ax_value x) { return (ax_reduce_sum)(x, AX_ALL_DIMS, false); }

/* --- AX_LOOP, from one number to another --- */

static AX_BODY(count_step) {
  ax_value of = *(const ax_value *)context;
  out[1] = ax_add(in[2], ax_mul(sum(in[1]), ax_convert_element_type(in[0], AX_F32)));
  out[0] = ax_mul(ax_add(in[1], of), 0.5);
}
static AX_BODY(count_by_function) { ax_fori_loop(2, 7, AX_CLOSURE(count_step, 3, 2, &in[0]), in, out); }
static AX_BODY(count_by_block) {
  ax_value x = in[0], total = in[1];
  AX_LOOP (i, 2, 7, &x, &total) {
    total = ax_add(total, ax_mul(sum(x), ax_convert_element_type(i, AX_F32)));
    x = ax_mul(ax_add(x, in[0]), 0.5);
  }
  out[0] = x;
  out[1] = total;
}

/* --- AX_LOOP, to a value --- */

static AX_BODY(to_function) { ax_fori_loop(1, in[2], AX_CLOSURE(count_step, 3, 2, &in[0]), in, out); }
static AX_BODY(to_block) {
  out[0] = in[0];
  out[1] = in[1];
  AX_LOOP (i, 1, in[2], &out[0], &out[1]) {
    out[1] = ax_add(out[1], ax_mul(sum(out[0]), ax_convert_element_type(i, AX_F32)));
    out[0] = ax_mul(ax_add(out[0], in[0]), 0.5);
  }
}

/* --- AX_SCAN --- */

static AX_BODY(scan_step) { /* carry, row, row -> carry, row */
  out[0] = ax_add(ax_mul(in[0], in[1]), in[2]);
  out[1] = ax_exp(in[0]);
}
static AX_BODY(scan_by_function) {
  ax_value twice = ax_mul(in[0], 2), given[] = {in[1], in[0], twice}, made[2];
  ax_scan(AX_FN(scan_step, 3, 2), 1, -1, context != NULL, given, made);
  out[0] = made[1];
  out[1] = made[0];
}
static AX_BODY(scan_by_block) {
  ax_value twice = ax_mul(in[0], 2), rows, carry = in[1];
  AX_SCAN (row, in[0], &carry) {
    ax_value before = carry;
    carry = ax_add(ax_mul(carry, row), ax_each(twice));
    ax_collect(&rows, ax_exp(before));
  }
  out[0] = rows;
  out[1] = carry;
}
static AX_BODY(reversed_by_block) {
  ax_value twice = ax_mul(in[0], 2), rows, carry = in[1];
  AX_SCAN_REVERSED (row, in[0], &carry) {
    ax_value before = carry;
    carry = ax_add(ax_mul(carry, row), ax_each(twice));
    ax_collect(&rows, ax_exp(before));
  }
  out[0] = rows;
  out[1] = carry;
}
static AX_BODY(reversed_by_function) {
  int reverse = 1;
  scan_by_function(in, out, &reverse);
}

/* Slices and stacks in a loop with an index; no variables. */
static AX_BODY(row_step) {
  out[1] = ax_mul(in[1], ax_convert_element_type(in[0], AX_F32));
  out[0] = ax_add(in[0], 1);
}
static AX_BODY(rows_by_function) {
  ax_value made[2];
  ax_scan(AX_FN(row_step, 2, 2), 1, -1, false, AX_VALUES(ax_full(AX_S32, AX_DIMS(), 0), in[0]), made);
  out[0] = made[1];
  out[1] = in[1];
}
static AX_BODY(rows_by_block) {
  AX_LOOP (i, 0, 4) ax_collect(&out[0], ax_mul(ax_each(in[0]), ax_convert_element_type(i, AX_F32)));
  out[1] = in[1];
}

/* --- AX_WHILE --- */

static AX_BODY(is_less) { out[0] = ax_lt(in[1], *(const ax_value *)context); }
static AX_BODY(while_step) {
  out[0] = ax_mul(in[0], 2);
  out[1] = ax_add(in[1], ax_max(sum(in[0]), 1));
}
static AX_BODY(while_by_function) {
  ax_value limit = ax_mul(in[1], 100);
  ax_while(AX_CLOSURE(is_less, 2, 1, &limit), AX_FN(while_step, 2, 2), in, out);
}
static AX_BODY(while_by_block) {
  ax_value limit = ax_mul(in[1], 100), x = in[0], y = in[1];
  AX_WHILE (ax_lt(y, limit), &x, &y) {
    ax_value before = x;
    x = ax_mul(x, 2);
    y = ax_add(y, ax_max(sum(before), 1));
  }
  out[0] = x;
  out[1] = y;
}

/* --- AX_IF --- */

static AX_BODY(yes) {
  const ax_value *given = context;
  out[0] = ax_mul(given[0], given[1]);
  out[1] = ax_exp(given[1]);
}
static AX_BODY(no) {
  const ax_value *given = context;
  out[0] = ax_sin(given[0]);
  out[1] = given[1];
}
static AX_BODY(same) { memcpy(out, context, 2 * sizeof out[0]); }
static AX_BODY(if_by_function) {
  ax_value made[2];
  ax_if(ax_gt(in[1], 0), AX_CLOSURE(yes, 0, 2, in), AX_CLOSURE(no, 0, 2, in), NULL, made);
  ax_if(ax_gt(in[2], 3), AX_CLOSURE(yes, 0, 2, made), AX_CLOSURE(same, 0, 2, made), NULL, out);
}
static AX_BODY(if_by_block) {
  ax_value x = in[0], y; /* set by both */
  AX_IF (ax_gt(in[1], 0), &x, &y) {
    x = ax_mul(x, in[1]);
    y = ax_exp(in[1]);
  } AX_ELSE {
    x = ax_sin(x);
    y = in[1];
  }
  AX_IF (ax_gt(in[2], 3), &x, &y) {
    x = ax_mul(x, y);
    y = ax_exp(y);
  }
  out[0] = x;
  out[1] = y;
}

/* --- All in one another, in loops of C, with variables in an array --- */

static AX_BODY(inner_yes) { out[0] = ax_add(((ax_value *)context)[0], sum(((ax_value *)context)[1])); }
static AX_BODY(inner_no) { out[0] = ((ax_value *)context)[0]; }
static AX_BODY(inner_small) { out[0] = ax_lt(in[0], 10); }
static AX_BODY(inner_double) { out[0] = ax_mul(in[0], 2); }
static AX_BODY(inner_step) { /* index, x, y */
  ax_value given[] = {in[2], in[1]};
  ax_if(ax_gt(in[2], 0), AX_CLOSURE(inner_yes, 0, 1, given), AX_CLOSURE(inner_no, 0, 1, given), NULL, &out[1]);
  ax_while(AX_FN(inner_small, 1, 1), AX_FN(inner_double, 1, 1), &out[1], &out[1]);
  out[0] = ax_logistic(ax_mul(in[1], out[1]));
}
static AX_BODY(outer_step) { ax_fori_loop(0, 2, AX_FN(inner_step, 3, 2), &in[1], out); }
static AX_BODY(nest_by_function) {
  out[0] = in[0];
  out[1] = in[1];
  for (int k = 0; k < 2; k++) ax_fori_loop(0, 3, AX_FN(outer_step, 3, 2), out, out);
}
static AX_BODY(nest_by_block) {
  ax_value x[2] = {in[0], in[1]};
  for (int k = 0; k < 2; k++)
    AX_LOOP (i, 0, 3, &x[0], &x[1])
      AX_LOOP (j, 0, 2, &x[0], &x[1]) {
        AX_IF (ax_gt(x[1], 0), &x[1]) x[1] = ax_add(x[1], sum(x[0]));
        AX_WHILE (ax_lt(x[1], 10), &x[1]) x[1] = ax_mul(x[1], 2);
        x[0] = ax_logistic(ax_mul(x[0], x[1]));
      }
  memcpy(out, x, sizeof x);
}

/* A carry that begins the same on all devices and comes to vary; another of which a while's condition says so. */
static AX_BODY(vary_step) {
  out[0] = ax_add(in[1], *(const ax_value *)context);
  out[1] = ax_add(in[2], sum(in[1]));
}
static AX_BODY(vary_small) { out[0] = ax_lt(in[0], 9); }
static AX_BODY(vary_by_function) {
  ax_value given[] = {ax_full_like(in[0], 0), ax_full(AX_F32, AX_DIMS(), 0)};
  ax_fori_loop(0, 5, AX_CLOSURE(vary_step, 3, 2, &in[0]), given, out);
  ax_while(AX_FN(vary_small, 1, 1), AX_FN(inner_double, 1, 1), &out[1], &out[1]);
  out[1] = ax_add(in[1], out[1]);
}
static AX_BODY(vary_by_block) {
  ax_value x = ax_full_like(in[0], 0), y = ax_full(AX_F32, AX_DIMS(), 0);
  AX_LOOP (i, 0, 5, &x, &y) {
    ax_value before = x;
    x = ax_add(x, in[0]);
    y = ax_add(y, sum(before));
  }
  AX_WHILE (ax_lt(y, 9), &y) y = ax_mul(y, 2);
  out[0] = x;
  out[1] = ax_add(in[1], y);
}

typedef struct pair {
  const char *name;
  ax_function function, block;
  bool forward; /* it has no reverse derivatives */
} pair;
static const pair pairs[] = {
    {"count", count_by_function, count_by_block, false}, {"to", to_function, to_block, true},
    {"scan", scan_by_function, scan_by_block, false},    {"reversed", reversed_by_function, reversed_by_block, false},
    {"rows", rows_by_function, rows_by_block, false},    {"while", while_by_function, while_by_block, true},
    {"if", if_by_function, if_by_block, false},          {"nest", nest_by_function, nest_by_block, true},
    {"vary", vary_by_function, vary_by_block, true},
};

/* --- In other functions: the same operands and results --- */

static AX_BODY(plain) { ((const ax_fn *)context)->function(in, out, NULL); }
static AX_BODY(jvp) { ax_jvp(*(const ax_fn *)context, AX_FIRST(2), in, in, (ax_value[RESULTS]){{0}}, out); }
static AX_BODY(loss) {
  ax_value made[RESULTS];
  ((const ax_fn *)context)->function(in, made, NULL);
  out[0] = ax_add(sum(made[0]), made[1]);
}
static AX_BODY(grad) { ax_grad(AX_CLOSURE(loss, OPERANDS, 1, context), AX_FIRST(2), in, out); }
static AX_BODY(mapped) {
  ax_value many[OPERANDS], made[RESULTS];
  for (int i = 0; i < OPERANDS; i++) many[i] = ax_stack(AX_VALUES(in[i], ax_add(in[i], 1)), 0);
  ax_vmap(*(const ax_fn *)context, many, made, NULL);
  for (int i = 0; i < RESULTS; i++) out[i] = ax_reduce_sum(made[i], AX_DIMS(0), false);
}
static const ax_mesh mesh = {.count = 1, .axis = {{.name = "d", .size = 2}}};
static AX_BODY(on_device) {
  ax_value local[OPERANDS] = {ax_concatenate(AX_VALUES(in[0], in[0]), 0), in[1], in[2]}, made[RESULTS];
  ((const ax_fn *)context)->function(local, made, NULL);
  out[0] = ax_slice_in_dim(made[0], 0, 2, 1, 0);
  out[1] = ax_psum(ax_add(made[1], sum(made[0])), "d");
}
static AX_BODY(sharded) { ax_shard_map(&mesh, "d; *2 -> d; ", AX_CLOSURE(on_device, OPERANDS, RESULTS, context), in, out); }
static AX_BODY(in_block) {
  ax_value x = in[0], y = in[1];
  AX_LOOP (i, 0, 2, &x, &y) {
    ax_value made[RESULTS];
    ((const ax_fn *)context)->function((ax_value[]){x, y, in[2]}, made, NULL);
    x = made[0];
    y = made[1];
  }
  out[0] = x;
  out[1] = y;
}

static const struct {
  ax_function function;
  bool reverse;
} around[] = {{plain, false}, {jvp, false}, {grad, true}, {mapped, false}, {sharded, false}, {in_block, false}};

static void same_programs(void **state) {
  (void)state;
  const ax_type types[] = {TEST_TYPE(AX_F32, 4), TEST_SCALAR(AX_F32), TEST_SCALAR(AX_S32)};
  for (size_t i = 0; i < AX_COUNT(pairs); i++)
    for (size_t k = 0; k < AX_COUNT(around); k++) {
      if (around[k].reverse && pairs[i].forward) continue;
      ax_fn function = AX_FN(pairs[i].function, OPERANDS, RESULTS), block = AX_FN(pairs[i].block, OPERANDS, RESULTS);
      ax_program *by_function = test_trace(around[k].function, &function, types, OPERANDS, RESULTS);
      ax_program *by_block = test_trace(around[k].function, &block, types, OPERANDS, RESULTS);
      char *wanted, *found;
      TEST_OK(ax_program_print(by_function, &wanted));
      TEST_OK(ax_program_print(by_block, &found));
      if (strcmp(wanted, found) != 0) fail_msg("%s, %zu:\n%s\nis not\n%s", pairs[i].name, k, found, wanted);
      ax_string_free(wanted);
      ax_string_free(found);
      ax_program_release(by_function);
      ax_program_release(by_block);
    }
}

static void runs(void **state) {
  (void)state;
  const ax_type types[] = {TEST_TYPE(AX_F32, 4), TEST_SCALAR(AX_F32), TEST_SCALAR(AX_S32)};
  ax_tensor *in[] = {test_tensor(types[0], (double[]){1, 2, 0.5, 0.25}), test_tensor(types[1], (double[]){0.5}),
                     test_tensor(types[2], (double[]){4})};
  for (size_t i = 0; i < AX_COUNT(pairs); i++) {
    ax_program *program = test_trace(pairs[i].block, NULL, types, OPERANDS, RESULTS);
    TEST_EVERY_WAY(program, in, 1e-5);
    ax_program_release(program);
  }
  test_release(in, OPERANDS);
}

/* --- How often C runs a block --- */

static int times;
static AX_BODY(counted) {
  ax_value x = in[0];
  AX_LOOP (a, 0, 2, &x)
    AX_LOOP (b, 0, 2, &x)
      AX_LOOP (c, 0, 2, &x)
        AX_LOOP (d, 0, 2, &x) {
          times++;
          x = ax_mul(x, 2);
        }
  out[0] = x;
}

static void runs_of_a_nest(void **state) {
  (void)state;
  const ax_type type = TEST_TYPE(AX_F32, 2);
  ax_program_release(test_trace(counted, NULL, &type, 1, 1));
  assert_int_equal(times, 5);
}

/* --- Kernels --- */

static AX_BODY(kernel) { /* x, y */
  AX_LOOP (i, 0, 4) {
    AX_IF (ax_gt(i, 1)) { ax_ref_store(ax_ref_at(in[1], i), ax_ref_load(ax_ref_at(in[0], i))); }
    AX_ELSE { ax_ref_store(ax_ref_at(in[1], i), ax_full(AX_F32, AX_DIMS(), 7)); }
  }
}
static AX_BODY(call_kernel) {
  const ax_type type = AX_TYPE(AX_F32, 4);
  ax_kernel_call(&(ax_kernel){.outs = {AX_TYPES(type)}}, AX_FN(kernel, 2, 0), AX_LIST(1, in), out);
}

static void in_kernels(void **state) {
  (void)state;
  const ax_type type = TEST_TYPE(AX_F32, 4);
  ax_tensor *in = test_tensor(type, (double[]){1, 2, 3, 4}), *out;
  ax_program *program = test_trace(call_kernel, NULL, &type, 1, 1);
  test_run(program, &in, &out);
  for (int i = 0; i < 4; i++) assert_true(test_get(out, i) == (i > 1 ? i + 1 : 7));
  test_release(&in, 1);
  test_release(&out, 1);
  ax_program_release(program);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(same_programs), cmocka_unit_test(runs), cmocka_unit_test(runs_of_a_nest),
                                     cmocka_unit_test(in_kernels)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
