/* Which places are held element by element: in a loop written by hand, and in changes of it. */
#include "jit/nest/elements.h"

#include "support/arena.h"
#include "support/cmocka.h"
#include "support/tensor.h"

enum { STATE, RATE, PLACES, STEPS = 4 };

/* A hundred times: rate = sin(state[0]); state[i] = state[i] + (i > 0 ? rate : state[1]). */
typedef struct example {
  ax_fused_loop_operand first[2], second[4];
  ax_fused_loop_step steps[STEPS];
  ax_fused_loop_place places[PLACES];
  ax_fused_loop loop;
  bool in_memory[PLACES], often[STEPS], held[PLACES], changed[STEPS];
} example;

static ax_position along(int dim, int64_t coef, int64_t offset) {
  return (ax_position){.dim = dim, .coef = coef, .offset = offset, .dynamic = AX_NONE};
}

static ax_loop_kernel *sine(void) {
  ax_loop_kernel *k = ax_kernel_create(&test_arena, 0, 0, NULL);
  const uint32_t in = ax_kernel_slot(k, AX_F32, 0, NULL), out = ax_kernel_slot(k, AX_F32, 0, NULL);
  ax_kernel_store(k, out, NULL, ax_kernel_op(k, AX_SCALAR_SIN, AX_F32, ax_kernel_load(k, in, NULL), AX_NONE, AX_NONE),
                  AX_SCALAR_NONE);
  return k;
}

/* Of so many elements, with so many more operations on each. */
static ax_loop_kernel *moved(int64_t elems, int depth) {
  ax_position at = along(0, 1, 0), behind = along(0, 1, -1);
  ax_loop_kernel *k = ax_kernel_create(&test_arena, 1, 0, &elems);
  const int64_t one = 1;
  const uint32_t in = ax_kernel_slot(k, AX_F32, 1, &elems), second = ax_kernel_slot(k, AX_F32, 1, &one),
                 rate = ax_kernel_slot(k, AX_F32, 1, &one), out = ax_kernel_slot(k, AX_F32, 1, &elems);
  const ax_ex is_first = ax_kernel_inside(k, 0, 1, 0, 1),
              other = ax_kernel_load_where(k, rate, &behind, ax_kernel_inside(k, 0, 1, -1, 1));
  const ax_ex by = ax_kernel_op(k, AX_SCALAR_SELECT, AX_F32, is_first, ax_kernel_load_where(k, second, &at, is_first), other);
  ax_ex sum = ax_kernel_op(k, AX_SCALAR_ADD, AX_F32, ax_kernel_load(k, in, &at), by, AX_NONE);
  for (int i = 0; i < depth; i++) sum = ax_kernel_op(k, AX_SCALAR_MUL, AX_F32, sum, by, AX_NONE);
  ax_kernel_store(k, out, &at, sum, AX_SCALAR_NONE);
  return k;
}

static example *make(int64_t elems, int depth) {
  example *e = ax_arena_alloc(&test_arena, sizeof *e);
  assert_non_null(e);
  *e = (example){
      .first = {{.place = STATE, .loop = AX_NONE}, {.place = RATE, .loop = AX_NONE}},
      .second = {{.place = STATE, .loop = AX_NONE},
                 {.place = STATE, .first = 1, .loop = AX_NONE},
                 {.place = RATE, .loop = AX_NONE},
                 {.place = STATE, .loop = AX_NONE}},
      .places = {{.dtype = AX_F32, .elems = (uint16_t)elems, .needed = true, .wanted = true}, {.dtype = AX_F32, .elems = 1}},
      .in_memory = {true, false},
      .often = {true, true, true, true}};
  e->steps[0] = (ax_fused_loop_step){.kind = AX_FUSED_LOOP_LOOP, .trips = 100};
  e->steps[1] = (ax_fused_loop_step){.kind = AX_FUSED_LOOP_KERNEL, .kernel = sine(), .operands = e->first};
  e->steps[2] = (ax_fused_loop_step){.kind = AX_FUSED_LOOP_KERNEL, .kernel = moved(elems, depth), .operands = e->second};
  e->steps[3] = (ax_fused_loop_step){.kind = AX_FUSED_LOOP_END};
  e->loop = (ax_fused_loop){STEPS, PLACES, e->steps, e->places};
  return e;
}

static void expect(example *e, bool held) {
  ax_fused_loop *out;
  TEST_OK(ax_fused_loop_by_elements(&test_arena, &e->loop, e->in_memory, e->often, e->held, e->changed, &out));
  assert_int_equal(e->held[STATE], held);
  assert_false(e->held[RATE]); /* one element is no question */
  for (int i = 0; i < STEPS; i++) {
    const bool is_kernel = e->steps[i].kind == AX_FUSED_LOOP_KERNEL;
    assert_int_equal(e->changed[i], held && is_kernel);
    assert_true(out->steps[i].operands == e->steps[i].operands);
    if (!is_kernel || !held)
      assert_true(out->steps[i].kernel == e->steps[i].kernel);
    else
      assert_int_equal(out->steps[i].kernel->rank, 0);
  }
}

static void a_pendulum_is_held(void **state) {
  (void)state;
  example *e = make(2, 0);
  expect(e, true);
  assert_int_equal(e->steps[2].kernel->rank, 1); /* what came in is left as it is */
}

static void what_takes_longer_is_not(void **state) {
  (void)state;
  expect(make(2, 20), true);
  expect(make(16, 20), false); /* sixteen times as many operations */
  expect(make(AX_FUSED_LOOP_ELEMENTS + 1, 0), false); /* too many elements */
}

static void where_it_does_not_matter(void **state) {
  (void)state;
  example *e = make(2, 0);
  e->in_memory[STATE] = false; /* vectors do */
  expect(e, false);
  e = make(2, 0);
  e->often[2] = false;
  expect(e, false);
}

/* A loop around goes through the place. */
static void what_moves(void **state) {
  (void)state;
  example *e = make(2, 0);
  e->first[0].loop = 0, e->first[0].step = 4;
  expect(e, false);
}

/* A branch reads the place from memory; a kernel computes where it reads it. */
static void what_others_need(void **state) {
  (void)state;
  example *e = make(2, 0);
  e->steps[0] = (ax_fused_loop_step){.kind = AX_FUSED_LOOP_BRANCH, .count = 1, .operands = e->first};
  expect(e, false);
  e = make(2, 0);
  ax_loop_kernel *k = ax_kernel_create(&test_arena, 0, 0, NULL);
  const int64_t two = 2;
  const uint32_t in = ax_kernel_slot(k, AX_F32, 1, &two), out = ax_kernel_slot(k, AX_F32, 0, NULL);
  const ax_ex start = ax_kernel_op(k, AX_SCALAR_CONVERT, AX_S64, ax_kernel_load(k, out, NULL), AX_NONE, AX_NONE);
  const ax_position at = {.dim = -1, .dynamic = start, .limit = 1};
  ax_kernel_store(k, out, NULL, ax_kernel_load(k, in, &at), AX_SCALAR_NONE);
  e->steps[1].kernel = k;
  expect(e, false);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(a_pendulum_is_held, test_arena_start, test_arena_end),
      cmocka_unit_test_setup_teardown(what_takes_longer_is_not, test_arena_start, test_arena_end),
      cmocka_unit_test_setup_teardown(where_it_does_not_matter, test_arena_start, test_arena_end),
      cmocka_unit_test_setup_teardown(what_moves, test_arena_start, test_arena_end),
      cmocka_unit_test_setup_teardown(what_others_need, test_arena_start, test_arena_end),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
