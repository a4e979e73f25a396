/* map and scan_unrolled: the bits of a loop that is not unrolled, how many steps a program holds, what is refused. Their values
   beside JAX's: tests/vectors/control.c. */

#include "axle/ops.h"
#include "axle/transform.h"
#include "support/cmocka.h"
#include "support/lanes.h"
#include "support/run.h"
#include "support/tensor.h"

enum { LENGTH = 7 };

static AX_BODY(cell) { /* h, x -> h, y */
  out[0] = ax_tanh(ax_add(ax_mul(in[0], ax_real(0.75)), in[1]));
  out[1] = ax_mul(ax_sin(out[0]), in[1]);
}

typedef struct loop {
  int64_t unroll; /* 0: ax_scan */
  bool reverse;
} loop;

static AX_BODY(run_loop) {
  const loop *l = context;
  if (l->unroll == 0)
    ax_scan(AX_FN(cell, 2, 2), 1, -1, l->reverse, in, out);
  else
    ax_scan_unrolled(AX_FN(cell, 2, 2), 1, -1, l->reverse, l->unroll, in, out);
}
static AX_BODY(loss) {
  ax_value made[2];
  run_loop(in, made, context);
  out[0] = ax_add(ax_reduce_sum(made[0], AX_ALL_DIMS, false), ax_reduce_sum(made[1], AX_ALL_DIMS, false));
}
static AX_BODY(both) { /* the results and the gradients */
  run_loop(in, out, context);
  ax_grad(AX_CLOSURE(loss, 2, 1, context), AX_FIRST(2), in, out + 2);
}

static void same_bits(void **state) {
  (void)state;
  const ax_type types[] = {TEST_TYPE(AX_F32, 5), TEST_TYPE(AX_F32, LENGTH, 5)};
  test_random random = {.state = 7};
  ax_tensor *in[] = {test_random_tensor(&random, types[0], -1, 1), test_random_tensor(&random, types[1], -1, 1)};
  for (int reverse = 0; reverse < 2; reverse++) {
    ax_tensor *plain[4], *out[4];
    for (int64_t unroll = 0; unroll <= LENGTH + 1; unroll++) {
      ax_program *program = test_trace(both, &(loop){unroll, reverse == 1}, types, 2, 4);
      test_run(program, in, unroll == 0 ? plain : out);
      for (uint32_t k = 0; k < 4 && unroll > 0; k++)
        assert_memory_equal(out[k]->data, plain[k]->data, (size_t)test_elems(plain[k]) * sizeof(float));
      if (unroll > 0) test_release(out, 4);
      ax_program_release(program);
    }
    test_release(plain, 4);
  }
  test_release(in, 2);
}

static void steps_in_a_round(void **state) {
  (void)state;
  const ax_type types[] = {TEST_TYPE(AX_F32, 5), TEST_TYPE(AX_F32, LENGTH, 5)};
  static const struct {
    int64_t unroll;
    uint32_t scans, steps;
  } rows[] = {{1, 1, 1}, {2, 1, 3}, {3, 1, 4}, {LENGTH, 0, LENGTH}, {100, 0, LENGTH}};
  for (size_t i = 0; i < AX_COUNT(rows); i++) {
    ax_program *program = test_trace(run_loop, &(loop){rows[i].unroll, false}, types, 2, 2);
    assert_int_equal(test_count_prim(program, "scan"), rows[i].scans);
    assert_int_equal(test_count_prim(program, "tanh"), rows[i].steps);
    ax_program_release(program);
  }
}

typedef struct call { /* of one of them, with operands and counts that may be wrong */
  bool map;
  int64_t size, length;
  uint32_t carries, count;
  ax_function body;
} call;

static AX_BODY(shorter) { /* h of another shape */
  out[0] = ax_reduce_sum(in[0], AX_DIMS(0), false);
  out[1] = in[1];
}
static AX_BODY(called) {
  const call *c = context;
  ax_fn f = AX_FN(c->body, c->count, 2);
  if (c->map)
    ax_map(f, c->size, AX_LIST(c->count, in), AX_LIST(2, out));
  else
    ax_scan_unrolled(f, c->carries, c->length, false, c->size, AX_LIST(c->count, in), AX_LIST(2, out));
}

static void refused(void **state) {
  (void)state;
  const ax_type types[] = {TEST_TYPE(AX_F32, 5), TEST_TYPE(AX_F32, LENGTH, 5)},
                scalars[] = {TEST_SCALAR(AX_F32), TEST_SCALAR(AX_F32)};
  const struct {
    call call;
    const ax_type *types;
    const char *message;
  } rows[] = {
      {{true, 2, 0, 0, 2, cell}, types, "map: xs 1 has the length 7, not 5"},
      {{true, 0, 0, 0, 2, cell}, scalars, "map: xs 0 is f32[]: there is nothing to loop over"},
      {{true, -1, 0, 0, 2, cell}, types + 1, "map: the batch size is -1"},
      {{true, 0, 0, 0, 0, cell}, types, "map: there is no operand to loop over"},
      {{false, 0, -1, 1, 2, cell}, types, "scan_unrolled: the number of steps in a round is 0"},
      {{false, 2, 6, 1, 2, cell}, types, "scan_unrolled: xs 0 has the length 7, not 6"},
      {{false, 2, -1, 3, 2, cell}, types, "scan_unrolled: there are 3 carries, more than operands or results"},
      {{false, 2, -1, 2, 2, cell}, types, "scan_unrolled: there is neither a length nor xs"},
      {{false, 2, -1, 1, 2, shorter}, types, "scan_unrolled: carry 0 starts as f32[5], but the body makes f32[] of it"},
  };
  const ax_type squares[] = {types[1], types[1]};
  for (size_t i = 0; i < AX_COUNT(rows); i++) {
    ax_program *program;
    const ax_type *in = rows[i].types == types + 1 ? squares : rows[i].types;
    TEST_FAILS(ax_trace(AX_CLOSURE(called, rows[i].call.count, 2, &rows[i].call), AX_LIST(rows[i].call.count, in), &program),
               AX_INVALID_ARGUMENT, rows[i].message);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(same_bits), cmocka_unit_test(steps_in_a_round), cmocka_unit_test(refused)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
