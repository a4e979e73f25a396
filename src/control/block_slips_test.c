/* What goes wrong in blocks of C: each slip is an error that names the line of the block's head, and the variable. */
#undef AXLE_NO_LINES
#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include "axle/axle.h"
#include "support/cmocka.h"
#include "support/tensor.h"

static int at; /* the line of the head */
#define HERE (at = __LINE__)

/* in: f32[4], f32[], s32[], bool[]; out: one result */
enum { OPERANDS = 4 };

static ax_value sum(ax_value x) { return (ax_reduce_sum)(x, AX_ALL_DIMS, false); }

/* --- Variables that are not listed --- */

static AX_BODY(read_in_next_round) {
  ax_value x = in[0], t = in[1];
  HERE; AX_LOOP (i, 0, 3, &x) {
    x = ax_add(x, t);
    t = sum(x);
  }
  out[0] = x;
}
static AX_BODY(read_in_next_round_in_else) {
  ax_value x = in[0], t = in[1];
  AX_IF (in[3], &x) x = ax_neg(x); AX_ELSE {
    HERE; AX_LOOP (i, 0, 3, &x) {
      x = ax_add(x, t);
      t = ax_mul(t, 2);
    }
  }
  out[0] = x;
}
static AX_BODY(read_in_next_scan) {
  ax_value x = in[1], t = in[1];
  HERE; AX_SCAN (row, in[0], &x) {
    x = ax_add(ax_mul(x, t), row);
    t = x;
  }
  out[0] = x;
}
static AX_BODY(read_in_next_while) {
  ax_value x = in[1], t = in[1];
  HERE; AX_WHILE (ax_lt(x, 9), &x) {
    x = ax_add(x, t);
    t = ax_mul(x, 2);
  }
  out[0] = x;
}
static AX_BODY(read_by_condition) {
  ax_value x = in[1], t = in[1];
  HERE; AX_WHILE (ax_lt(t, 9), &x) t = x = ax_add(x, 1);
  out[0] = x;
}
static AX_BODY(read_after_loop) {
  ax_value x = in[0], t = in[1];
  HERE; AX_LOOP (i, 0, 3, &x) t = sum(x = ax_mul(x, 2));
  out[0] = ax_mul(x, t);
}
static AX_BODY(read_after_if) {
  ax_value x = in[0];
  HERE; AX_IF (in[3]) x = ax_mul(x, 2);
  out[0] = ax_neg(x);
}
static AX_BODY(returned_after_if) {
  out[0] = in[0];
  HERE; AX_IF (in[3]) out[0] = ax_mul(in[0], 2);
}
static AX_BODY(read_in_else) {
  ax_value x = in[0], t = in[0];
  HERE; AX_IF (in[3], &x) x = t = ax_mul(x, 2); AX_ELSE x = ax_neg(t);
  out[0] = x;
}
static AX_BODY(listed_inside_only) {
  ax_value x = in[0], t = in[1];
  HERE; AX_LOOP (i, 0, 3, &x) {
    AX_IF (in[3], &t) t = ax_add(t, 1);
    x = ax_mul(x, t);
  }
  out[0] = x;
}

/* --- C variables that a round changes --- */

static AX_BODY(changed_number) {
  ax_value x = in[0];
  double rate = 1;
  HERE; AX_LOOP (i, 0, 3, &x) {
    x = ax_mul(x, rate);
    rate *= 0.5;
  }
  out[0] = x;
}
static AX_BODY(changed_choice) {
  ax_value x = in[1];
  int k = 0;
  HERE; AX_SCAN (row, in[0], &x) x = ax_add(ax_mul(x, row), k++ % 2 == 0 ? in[1] : x);
  out[0] = x;
}
static AX_BODY(changed_capture) {
  ax_value x = in[1], both[] = {ax_mul(in[1], 2), ax_mul(in[1], 3)};
  int k = 0;
  HERE; AX_LOOP (i, 0, 3, &x) x = ax_add(x, both[k++ % 2]);
  out[0] = x;
}
static AX_BODY(changed_slices) {
  ax_value x = in[1], both[] = {in[0], ax_mul(in[0], 3)};
  int k = 0;
  HERE; AX_LOOP (i, 0, 4, &x) x = ax_add(x, ax_each(both[k++ % 2]));
  out[0] = x;
}
static AX_BODY(changed_condition) {
  ax_value x = in[1];
  double limit = 5;
  HERE; AX_WHILE (ax_lt(x, limit++), &x) x = ax_add(x, 1);
  out[0] = x;
}

/* --- Ways out --- */

static AX_BODY(broken_loop) {
  ax_value x = in[0];
  HERE; AX_LOOP (i, 0, 3, &x) {
    x = ax_mul(x, 2);
    if (context == NULL) break;
  }
  out[0] = ax_neg(in[0]);
}
static AX_BODY(broken_scan) {
  HERE; AX_SCAN (row, in[0]) { break; }
  out[0] = ax_neg(in[0]);
}
static AX_BODY(broken_while) {
  ax_value x = in[1];
  HERE; AX_WHILE (ax_lt(x, 9), &x) { break; }
  out[0] = ax_neg(in[0]);
}
static AX_BODY(broken_if) {
  for (int k = 0; k < 2; k++) {
    HERE; AX_IF (in[3]) { break; }
  }
  out[0] = ax_neg(in[0]);
}
static AX_BODY(broken_else) {
  HERE; AX_IF (in[3]) { (void)ax_neg(in[0]); } AX_ELSE { break; }
  out[0] = ax_neg(in[0]);
}
static AX_BODY(broken_in_second_run) {
  int k = 0;
  HERE; AX_LOOP (i, 0, 3) {
    (void)ax_neg(in[0]);
    if (k++ == 1) break;
  }
  out[0] = ax_neg(in[0]);
}
static AX_BODY(returned) {
  out[0] = in[0];
  HERE; AX_LOOP (i, 0, 3, &out[0]) {
    AX_IF (in[3], &out[0]) {
      out[0] = ax_mul(out[0], 2);
      if (context == NULL) return;
    }
  }
}
static AX_BODY(gone) {
  ax_value x = in[0];
  HERE; AX_LOOP (i, 0, 3, &x) { goto end; }
end:
  out[0] = ax_neg(in[0]);
}
static jmp_buf jump;
static AX_BODY(jumped) {
  out[0] = ax_neg(in[0]);
  if (setjmp(jump) == 0) {
    HERE; AX_LOOP (i, 0, 3) longjmp(jump, 1);
  }
}
static AX_BODY(jumps) {
  HERE; AX_LOOP (i, 0, 3) longjmp(jump, 1);
  out[0] = in[0];
}
static AX_BODY(jumped_from_function) {
  if (setjmp(jump) == 0) ax_closed_call(AX_FN(jumps, OPERANDS, 1), in, out);
  out[0] = ax_neg(in[0]);
}

/* --- Types --- */

static AX_BODY(other_shape) {
  ax_value x = in[0], y = in[1];
  HERE; AX_LOOP (i, 0, 3, &y, & x) x = sum(x);
  out[0] = ax_add(x, y);
}
static AX_BODY(other_dtype) {
  struct { ax_value w[2]; } s = {{in[0], in[1]}};
  HERE; AX_WHILE (ax_lt(s.w[1], 9), &s.w[0], &(s.w[1])) s.w[1] = ax_convert_element_type(s.w[1], AX_S32);
  out[0] = s.w[1];
}
static AX_BODY(other_branch) {
  ax_value x = in[0];
  HERE; AX_IF (in[3], &x) x = sum(x);
  out[0] = x;
}
static AX_BODY(other_else) {
  ax_value x = in[0];
  HERE; AX_IF (in[3], &x) x = sum(x); AX_ELSE x = in[2];
  out[0] = x;
}
static AX_BODY(no_value) {
  ax_value x = {0};
  HERE; AX_IF (in[3], &x) x = in[0];
  out[0] = x;
}
static AX_BODY(no_value_before) {
  ax_value x = {0};
  HERE; AX_LOOP (i, 0, 3, &x) x = in[0];
  out[0] = x;
}
static AX_BODY(number_before) {
  ax_value x = ax_real(0);
  HERE; AX_LOOP (i, 0, 3, &x) x = ax_add(x, in[1]);
  out[0] = x;
}
static AX_BODY(number_after) {
  ax_value x = in[0];
  HERE; AX_LOOP (i, 0, 3, &x) x = ax_real(0);
  out[0] = x;
}

/* --- Heads --- */

static AX_BODY(twice) {
  ax_value x = in[0];
  HERE; AX_LOOP (i, 0, 3, &x, &x) x = ax_neg(x);
  out[0] = x;
}
static AX_BODY(half_a_bound) {
  HERE; AX_LOOP (i, 0, 2.5) {}
  out[0] = in[0];
}
static AX_BODY(float_bound) {
  HERE; AX_LOOP (i, 0, in[1]) {}
  out[0] = in[0];
}
static AX_BODY(no_array) {
  HERE; AX_SCAN (x, in[1]) {}
  out[0] = in[0];
}
static AX_BODY(no_predicate) {
  HERE; AX_IF (in[2]) {}
  out[0] = in[0];
}
static AX_BODY(number_predicate) {
  HERE; AX_IF (ax_integer(1)) {}
  out[0] = in[0];
}
static AX_BODY(no_condition) {
  ax_value x = in[1];
  HERE; AX_WHILE (x, &x) {}
  out[0] = x;
}

/* --- Slices and stacks --- */

static AX_BODY(each_nowhere) {
  HERE; out[0] = ax_each(in[0]);
}
static AX_BODY(each_of_unknown) {
  AX_LOOP (i, 0, in[2]) {
    HERE; (void)ax_each(in[0]);
  }
  out[0] = in[0];
}
static AX_BODY(each_of_others) {
  AX_LOOP (i, 0, 3) {
    HERE; (void)ax_each(in[0]);
  }
  out[0] = in[0];
}
static AX_BODY(each_of_inner) {
  AX_LOOP (i, 0, 4) {
    HERE; (void)ax_each(ax_neg(in[0]));
  }
  out[0] = in[0];
}
static AX_BODY(collected_in_if) {
  AX_LOOP (i, 0, 4) AX_IF (in[3]) {
    HERE; ax_collect(&out[0], in[1]);
  }
}
static AX_BODY(collected_twice) {
  AX_LOOP (i, 0, 4) {
    ax_collect(&out[0], in[1]);
    HERE; ax_collect(&out[0], in[1]);
  }
}
static AX_BODY(collected_and_read) {
  out[0] = in[0];
  AX_LOOP (i, 0, 4) {
    ax_collect(&out[0], in[1]);
    HERE; (void)ax_neg(out[0]);
  }
}

/* --- Communication that not all devices come to --- */

static AX_BODY(apart) {
  out[0] = in[0];
  HERE; AX_IF (ax_gt(sum(in[0]), 0), &out[0]) out[0] = ax_psum(out[0], "d");
}
static AX_BODY(divergent) { ax_shard_map((&(ax_mesh){1, {{.name = "d", .size = 2}}}), "d -> d", AX_FN(apart, 1, 1), in, out); }

/* --- Blocks that end at their head --- */

static AX_BODY(loop_ends_at_its_head) {
  ax_value x = in[0];
  HERE; AX_LOOP (i, 0, 3, &x); /* here */
  {
    x = ax_mul(x, 2);
  }
  out[0] = x;
}
static AX_BODY(scan_ends_at_its_head) {
  ax_value x = in[1];
  HERE; AX_SCAN (row, in[0], &x); /* here */
  {
    x = ax_add(x, 1);
  }
  out[0] = x;
}
static AX_BODY(while_ends_at_its_head) {
  ax_value x = in[1];
  HERE; AX_WHILE (ax_lt(x, 10), &x); /* here */
  {
    x = ax_add(x, 1);
  }
  out[0] = x;
}

static const struct {
  ax_function function;
  const char *head, *message; /* what stands behind the line, and elsewhere */
} slips[] = {
    {read_in_next_round, "AX_LOOP: ", "add: operand 1 is a value of AX_LOOP's block at "},
    {read_in_next_round_in_else, "AX_LOOP: ", "add: operand 1 is a value of AX_LOOP's block at "},
    {read_in_next_scan, "AX_SCAN: ", "mul: operand 1 is a value of AX_SCAN's block at "},
    {read_in_next_while, "AX_WHILE: ", "add: operand 1 is a value of AX_WHILE's block at "},
    {read_by_condition, "AX_WHILE: ", "lt: operand 0 is a value of AX_WHILE's block at "},
    {read_after_loop, ", which has finished; a variable that the block sets", "mul: operand 1 is a value of AX_LOOP's block at "},
    {read_after_if, ", which has finished; a variable that the block sets", "neg: the operand is a value of AX_IF's block at "},
    {returned_after_if, ", which has finished; a variable that the block sets", "out[0] is a value of AX_IF's block at "},
    {read_in_else, "AX_IF: ", "neg: the operand is a value of AX_IF's block at "},
    {listed_inside_only, "AX_LOOP: ", "is a value of AX_LOOP's block at "},
    {changed_number, "AX_LOOP: the block makes something else each time that C runs it", ""},
    {changed_choice, "AX_SCAN: the block makes something else each time that C runs it", ""},
    {changed_capture, "AX_LOOP: the block makes something else each time that C runs it", ""},
    {changed_slices, "AX_LOOP: the block makes something else each time that C runs it", ""},
    {changed_condition, "AX_WHILE: the block makes something else each time that C runs it", ""},
    {loop_ends_at_its_head, "AX_LOOP: the block does nothing; a `;` behind its head ends it there", ""},
    {scan_ends_at_its_head, "AX_SCAN: the block does nothing; a `;` behind its head ends it there", ""},
    {while_ends_at_its_head, "AX_WHILE: the block does nothing; a `;` behind its head ends it there", ""},
    {broken_loop, "AX_LOOP: its block was left by break", ", after " __FILE__ ":"},
    {broken_scan, "AX_SCAN: its block was left by break", ""},
    {broken_while, "AX_WHILE: its block was left by break", ""},
    {broken_if, "AX_IF: its block was left by break", ""},
    {broken_else, "AX_IF: its block was left by break", ""},
    {broken_in_second_run, "AX_LOOP: its block was left by break", ""},
    {returned, "AX_LOOP: ", "AX_IF: its block was left by break, return, goto"},
    {gone, "AX_LOOP: its block was left by break, return, goto", ""},
    {jumped, "AX_LOOP: its block was left by break, return, goto, longjmp", ""},
    {jumped_from_function, ", which has finished", "out[0] is a value of AX_LOOP's block at "},
    {other_shape, "AX_LOOP: x starts as f32[4], but the block makes it f32[]", ""},
    {other_dtype, "AX_WHILE: (s.w[1]) starts as f32[], but the block makes it s32[]", ""},
    {other_branch, "AX_IF: x is f32[] in the block, but f32[4] where the predicate is false", ""},
    {other_else, "AX_IF: x is f32[] in the block, but s32[] where the predicate is false", ""},
    {no_value, "AX_IF: x, where the predicate is false: the operand is a value that was never set", ""},
    {no_value_before, "AX_LOOP: x: the operand is a value that was never set", ""},
    {number_before, "AX_LOOP: x starts as a number", ""},
    {number_after, "AX_LOOP: x is a number when the block ends", ""},
    {twice, "AX_LOOP: x is listed twice", ""},
    {half_a_bound, "AX_LOOP: the upper bound is 2.5; it must be an integer", ""},
    {float_bound, "AX_LOOP: the upper bound is f32[]; it must be an integer scalar", ""},
    {no_array, "AX_SCAN: the array is f32[]: there is nothing to loop over", ""},
    {no_predicate, "AX_IF: the predicate is s32[]; it must be a bool scalar", ""},
    {number_predicate, "AX_IF: the predicate is a number of C", ""},
    {no_condition, "AX_WHILE: the condition is f32[]; it must be a bool scalar", ""},
    {each_nowhere, "each: it stands in no AX_SCAN, and in no AX_LOOP whose bounds are numbers or constants", ""},
    {each_of_unknown, "each: it stands in no AX_SCAN, and in no AX_LOOP whose bounds are numbers or constants", ""},
    {each_of_others, "each: the operand is f32[4]; its first dimension must be the number of rounds, 3", ""},
    {each_of_inner, "each: the operand is made in the block of AX_LOOP", ""},
    {collected_in_if, "collect: it stands in a body within the block of AX_LOOP", ""},
    {collected_twice, "collect: there is a stack in this variable already", ""},
    {collected_and_read, "neg: the operand is a value that was never set", ""},
    {divergent, "AX_IF: ", "devices may differ along {d} in what they run here"},
};

static void refused(void **state) {
  (void)state;
  const ax_type types[] = {TEST_TYPE(AX_F32, 4), TEST_SCALAR(AX_F32), TEST_SCALAR(AX_S32), TEST_SCALAR(AX_BOOL)};
  for (size_t i = 0; i < AX_COUNT(slips); i++) {
    ax_program *program;
    char wanted[200];
    bool of_head = slips[i].head[0] == ',';
    ax_status status = ax_trace(AX_FN(slips[i].function, OPERANDS - 3 * (slips[i].function == divergent), 1), types, &program);
    snprintf(wanted, sizeof wanted, "block_slips_test.c:%d%s%s", at, of_head ? "" : ": ", slips[i].head);
    if (status != AX_INVALID_ARGUMENT || strstr(ax_message(), wanted) == NULL || strstr(ax_message(), slips[i].message) == NULL)
      fail_msg("%zu: %s, %s\nis not in: %d %s", i, wanted, slips[i].message, status, status == AX_OK ? "" : ax_message());
    const char *inside = strstr(ax_message(), "trace: "); /* behind the place of ax_trace that of the slip comes first */
    if (strstr(slips[i].head, "was left") != NULL && strstr(inside, "block_slips_test.c:") != strstr(ax_message(), wanted))
      fail_msg("%zu: the first place is not that of the slip, %s: %s", i, wanted, ax_message());
    assert_null(program);
  }
}

/* --- What is odd but sound --- */

static AX_BODY(sound) {
  ax_value x = in[0], y = in[1], t;
  AX_LOOP (i, 0, 3, &x) {
    t = ax_mul(x, 2); /* set before it is read in each round */
    x = ax_add(x, t);
    if (context == NULL) continue;
    x = in[1];
  }
  AX_LOOP (i, 3, 0, &y) y = ax_real(7); /* a scalar of the variable's dtype */
  for (int k = 0; k < 3; k++) {
    AX_LOOP (i, 0, 2, &x) x = ax_mul(x, k + 1);
    if (k == 1) break;
  }
  AX_IF (in[3], &y) {} AX_ELSE AX_IF (ax_not(in[3]), &y) y = ax_neg(y);
  out[0] = ax_mul(x, y);
}

static void accepted(void **state) {
  (void)state;
  const ax_type types[] = {TEST_TYPE(AX_F32, 4), TEST_SCALAR(AX_F32), TEST_SCALAR(AX_S32), TEST_SCALAR(AX_BOOL)};
  ax_program_release(test_trace(sound, NULL, types, OPERANDS, 1));
  int times = 0;
  AX_LOOP (i, 0, 3) times++; /* in no trace */
  assert_int_equal(times, 0);
}

/* --- Equations of a block keep their lines; what the head makes has its line --- */

static int of_mul;
static AX_BODY(lined) {
  ax_value x = in[0];
  HERE; AX_LOOP (i, 0, 3, &x) {
    of_mul = __LINE__ + 1;
    x = ax_mul(x, x);
  }
  out[0] = x;
}

static void lines(void **state) {
  (void)state;
  const ax_type type = TEST_TYPE(AX_F32, 4);
  ax_program *program = test_trace(lined, NULL, &type, 1, 1);
  char *text, wanted[sizeof __FILE__ + 40];
  TEST_OK(ax_program_print_locations(program, &text));
  snprintf(wanted, sizeof wanted, "mul a a @\"" __FILE__ ":%d\"", of_mul);
  if (strstr(text, wanted) == NULL) fail_msg("%s is not in %s", wanted, text);
  snprintf(wanted, sizeof wanted, "0:s32[] @\"" __FILE__ ":%d\"", at);
  if (strstr(text, wanted) == NULL) fail_msg("%s is not in %s", wanted, text);
  ax_string_free(text);
  ax_program_release(program);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(refused), cmocka_unit_test(accepted), cmocka_unit_test(lines)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
