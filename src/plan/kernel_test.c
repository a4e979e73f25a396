/* Kernels as data: what adding to them gives. */
#include "plan/kernel.h"
#include "support/arena.h"
#include "support/cmocka.h"

/* One slot too many is remembered, not written. */
static void too_many_slots(void **state) {
  (void)state;
  const int64_t dims[] = {4};
  ax_arena arena = {0};
  ax_position at[1];
  ax_loop_kernel *kernel = ax_kernel_create(&arena, 1, 0, dims);
  ax_at_identity(at, 1);
  for (uint32_t i = 0; i < AX_MAX_SLOTS; i++) assert_int_equal(ax_kernel_slot(kernel, AX_F32, 1, dims), i);
  assert_false(kernel->failed);
  uint32_t slot = ax_kernel_slot(kernel, AX_F32, 1, dims);
  assert_true(kernel->failed);
  ax_kernel_store(kernel, slot, at, ax_kernel_load(kernel, slot, at), AX_SCALAR_NONE);
  assert_true(kernel->slot_count == AX_MAX_SLOTS && kernel->store_count == 0 && kernel->failed);
  ax_arena_deinit(&arena);
}

/* --- Kernels of one line --- */

static ax_loop_kernel *rows(int64_t count) {
  ax_loop_kernel *k = ax_kernel_create(&test_arena, 1, 0, &count);
  ax_kernel_slot(k, AX_F32, 1, &count);
  return k;
}

static ax_position along(int dim, int64_t coef, int64_t offset) {
  return (ax_position){.dim = dim, .coef = coef, .offset = offset, .dynamic = AX_NONE};
}

static bool is_constant(const ax_loop_kernel *k, ax_ex node, int64_t bits) {
  return k->exprs[node].op == AX_LEAF_CONST && k->exprs[node].imm == bits;
}

static ax_scalar op_of(const ax_loop_kernel *k, ax_ex node) { return k->exprs[node].op; }

/* --- Guards --- */

static void a_guard_that_is_certain_is_a_constant(void **state) {
  (void)state;
  ax_loop_kernel *k = rows(10);
  assert_true(is_constant(k, ax_kernel_inside(k, 0, 1, 0, 10), 1));
  assert_true(is_constant(k, ax_kernel_inside(k, 0, -1, 9, 10), 1));
  assert_true(is_constant(k, ax_kernel_inside(k, 0, 1, 10, 10), 0));
  assert_true(is_constant(k, ax_kernel_inside(k, 0, 1, -10, 10), 0));
  assert_true(is_constant(k, ax_kernel_inside(k, -1, 0, 3, 4), 1));
  assert_int_equal(op_of(k, ax_kernel_inside(k, 0, 1, 1, 10)), AX_LEAF_INSIDE);
  assert_int_equal(op_of(k, ax_kernel_inside(k, 0, 2, 0, 18)), AX_LEAF_INSIDE); /* 2 i is 18 at last */
}

static void both_of_two_guards(void **state) {
  (void)state;
  ax_loop_kernel *k = rows(10);
  const ax_ex a = ax_kernel_inside(k, 0, 1, 1, 10), b = ax_kernel_inside(k, 0, 1, -1, 10);
  const ax_ex never = ax_kernel_inside(k, 0, 1, 20, 10), always = ax_kernel_inside(k, 0, 1, 0, 10);
  assert_int_equal(ax_kernel_both(k, a, AX_NONE), a);
  assert_int_equal(ax_kernel_both(k, always, b), b);
  assert_int_equal(ax_kernel_both(k, always, always), AX_NONE);
  assert_int_equal(ax_kernel_both(k, a, never), never);
  assert_int_equal(ax_kernel_both(k, a, a), a);
  assert_int_equal(op_of(k, ax_kernel_both(k, a, b)), AX_SCALAR_AND);
}

static void a_load_that_is_never_done_is_zero(void **state) {
  (void)state;
  ax_loop_kernel *k = rows(10);
  const ax_position at = along(0, 1, 0);
  assert_true(is_constant(k, ax_kernel_load_where(k, 0, &at, ax_kernel_inside(k, 0, 1, 20, 10)), 0));
  assert_int_equal(ax_kernel_load_where(k, 0, &at, ax_kernel_inside(k, 0, 1, 0, 10)), ax_kernel_load(k, 0, &at));
}

/* --- Equal nodes --- */

static void equal_nodes_are_one(void **state) {
  (void)state;
  ax_loop_kernel *k = rows(10);
  const ax_position here = along(0, 1, 0), next = along(0, 1, 1), none = along(-1, 5, 3), same = along(-1, 7, 3);
  assert_int_equal(ax_kernel_load(k, 0, &here), ax_kernel_load(k, 0, &here));
  assert_int_not_equal(ax_kernel_load(k, 0, &here), ax_kernel_load(k, 0, &next));
  assert_int_equal(ax_kernel_load(k, 0, &none), ax_kernel_load(k, 0, &same)); /* of no index there is no coefficient */
  assert_int_not_equal(ax_kernel_index(k, 0), ax_kernel_axis(k, 0));
  const ax_ex x = ax_kernel_load(k, 0, &here);
  assert_int_not_equal(ax_kernel_op_imm(k, AX_SCALAR_INTEGER_POW, AX_F32, x, 2),
                       ax_kernel_op_imm(k, AX_SCALAR_INTEGER_POW, AX_F32, x, 3));
  assert_int_not_equal(ax_kernel_const(k, AX_F32, 1), ax_kernel_const(k, AX_S32, 1));
}

/* What is added to an extended kernel is found where it is there already, and the first one stays as it was. */
static void an_extended_kernel_has_all_nodes(void **state) {
  (void)state;
  ax_loop_kernel *k = rows(10);
  const ax_position here = along(0, 1, 0);
  ax_ex x = ax_kernel_load(k, 0, &here);
  for (int64_t i = 0; i < 20; i++) x = ax_kernel_op(k, AX_SCALAR_ADD, AX_F32, x, ax_kernel_const(k, AX_F32, i), AX_NONE);
  ax_kernel_store(k, 1, &here, x, AX_SCALAR_NONE);
  const uint32_t before = k->expr_count;
  ax_loop_kernel *longer = ax_kernel_extend(&test_arena, k, 1);
  assert_non_null(longer);
  assert_int_equal(longer->store_count, 0);
  assert_int_equal(ax_kernel_const(longer, AX_F32, 7), ax_kernel_const(k, AX_F32, 7));
  assert_int_equal(ax_kernel_load(longer, 0, &here), ax_kernel_load(k, 0, &here));
  for (int64_t i = 20; i < 40; i++) assert_int_equal(ax_kernel_const(longer, AX_F32, i), before + (uint32_t)i - 20); /* more than there is room for */
  assert_int_equal(k->expr_count, before);
  assert_int_equal(k->store_count, 1);
}

static void positions_are_those_of_the_slot(void **state) {
  (void)state;
  ax_loop_kernel *k = rows(10);
  const uint32_t two = ax_kernel_slot(k, AX_F32, 2, (const int64_t[]){10, 3});
  const ax_position at[] = {along(0, 1, 0), along(-1, 0, 2)};
  const ax_ex load = ax_kernel_load(k, two, at), guard = ax_kernel_inside(k, 0, 1, 1, 10), index = ax_kernel_index(k, 0);
  assert_int_equal(ax_expr_positions(k, &k->exprs[load]), 2);
  assert_int_equal(ax_expr_positions(k, &k->exprs[guard]), 1);
  assert_int_equal(ax_expr_positions(k, &k->exprs[index]), 0);
}

/* --- Positions --- */

static void an_identity_has_nothing_added(void **state) {
  (void)state;
  ax_position at[2];
  ax_at_identity(at, 2);
  assert_true(ax_at_is_identity(at, 2));
  const ax_position others[] = {along(0, 1, 0), along(1, 2, 0), along(1, 1, 1), {.dim = 1, .coef = 1, .dynamic = 0}};
  for (size_t i = 0; i < AX_COUNT(others); i++) {
    at[1] = others[i];
    assert_false(ax_at_is_identity(at, 2));
  }
}

static void a_kernel_covers_an_array_of_its_own_size(void **state) {
  (void)state;
  ax_loop_kernel *k = rows(10);
  const ax_position at = along(0, 1, 0), shifted = along(0, 1, 1);
  const uint32_t longer = ax_kernel_slot(k, AX_F32, 1, (const int64_t[]){11});
  assert_true(ax_kernel_covers(k, 0, &at));
  assert_false(ax_kernel_covers(k, 0, &shifted));
  assert_false(ax_kernel_covers(k, longer, &at));
}

/* --- Equality --- */

/* y = -x of 10 rows. */
static ax_loop_kernel *negate(void) {
  ax_loop_kernel *k = rows(10);
  const ax_position at = along(0, 1, 0);
  const ax_ex x = ax_kernel_load(k, 0, &at);
  ax_kernel_store(k, ax_kernel_slot(k, AX_F32, 1, k->dims), &at, ax_kernel_op(k, AX_SCALAR_NEG, AX_F32, x, AX_NONE, AX_NONE),
                  AX_SCALAR_NONE);
  return k;
}

static void differ(const ax_loop_kernel *a, const ax_loop_kernel *b) {
  assert_false(ax_kernel_equal(a, b));
  assert_true(ax_kernel_hash(a) != ax_kernel_hash(b));
}

static void every_field_makes_another_kernel(void **state) {
  (void)state;
  ax_loop_kernel *a = negate(), *b = negate();
  assert_true(ax_kernel_equal(a, b) && ax_kernel_hash(a) == ax_kernel_hash(b));
  b->parts = 7; /* is no part of the structure */
  assert_true(ax_kernel_equal(a, b) && ax_kernel_hash(a) == ax_kernel_hash(b));
  b = negate(), b->ranged = 1, differ(a, b);
  b = negate(), b->streams = true, differ(a, b);
  b = negate(), b->dims[0] = 9, differ(a, b);
  b = negate(), b->reduce_rank = 1, differ(a, b);
  b = negate(), b->slots[1].dtype = AX_BF16, differ(a, b);
  b = negate(), b->slots[0].dims[0] = 12, differ(a, b);
  b = negate(), b->exprs[1].op = AX_SCALAR_ABS, differ(a, b);
  b = negate(), b->stores[0].reduce = AX_SCALAR_ADD, differ(a, b);
  b = negate(), b->stores[0].expr = 0, differ(a, b);
  b = negate(), b->stores[0].slot = 0, differ(a, b);
  b = negate(), ax_kernel_const(b, AX_F32, 0), differ(a, b);
}

static void the_extent_is_that_of_the_ranged_dimension(void **state) {
  (void)state;
  ax_loop_kernel *k = ax_kernel_create(&test_arena, 3, 1, (const int64_t[]){4, 5, 6});
  assert_int_equal(ax_kernel_extent(k), 4);
  k->ranged = 1;
  assert_int_equal(ax_kernel_extent(k), 5);
  assert_int_equal(ax_kernel_extent(ax_kernel_create(&test_arena, 2, 2, (const int64_t[]){4, 5})), 1);
}

static void longer_work_is_cut_into_more_parts(void **state) {
  (void)state;
  assert_true(ax_parts_worth(8000) == 1 && ax_parts_worth(64000) == 8);
  assert_true(ax_parts_worth(64000 + 18000) == 9); /* beyond eight, parts are longer */
}

static void a_text_shows_all_of_a_kernel(void **state) {
  (void)state;
  ax_loop_kernel *k = ax_kernel_create(&test_arena, 2, 1, (const int64_t[]){4, 5});
  const uint32_t in = ax_kernel_slot(k, AX_F32, 2, (const int64_t[]){9, 8}), out = ax_kernel_slot(k, AX_F32, 1, k->dims);
  ax_position at[] = {along(0, 2, -1), along(1, 1, 3)}, to = along(0, 1, 0);
  const ax_ex guard = ax_kernel_inside(k, 0, 2, -1, 9), start_at = ax_kernel_index(k, 1);
  at[1].dynamic = start_at, at[1].limit = 6;
  ax_kernel_store(k, out, &to, ax_kernel_load_where(k, in, at, guard), AX_SCALAR_MAX);
  ax_text text = {0};
  ax_kernel_text(&text, k);
  assert_string_equal(text.data, "for i0<4 reduce i1<5\n"
                                 "  e0:bool = inside [2*i0-1] of 9\n"
                                 "  e1:s64 = index 1\n"
                                 "  e2:f32 = load s0[2*i0-1, i1+3+clamp(e1, 6)] where e0\n"
                                 "  s1[i0] = reduce max e2\n");
  ax_text_deinit(&text);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(too_many_slots),
      cmocka_unit_test_setup_teardown(a_guard_that_is_certain_is_a_constant, test_arena_start, test_arena_end),
      cmocka_unit_test_setup_teardown(both_of_two_guards, test_arena_start, test_arena_end),
      cmocka_unit_test_setup_teardown(a_load_that_is_never_done_is_zero, test_arena_start, test_arena_end),
      cmocka_unit_test_setup_teardown(equal_nodes_are_one, test_arena_start, test_arena_end),
      cmocka_unit_test_setup_teardown(an_extended_kernel_has_all_nodes, test_arena_start, test_arena_end),
      cmocka_unit_test_setup_teardown(positions_are_those_of_the_slot, test_arena_start, test_arena_end),
      cmocka_unit_test_setup_teardown(an_identity_has_nothing_added, test_arena_start, test_arena_end),
      cmocka_unit_test_setup_teardown(a_kernel_covers_an_array_of_its_own_size, test_arena_start, test_arena_end),
      cmocka_unit_test_setup_teardown(every_field_makes_another_kernel, test_arena_start, test_arena_end),
      cmocka_unit_test_setup_teardown(the_extent_is_that_of_the_ranged_dimension, test_arena_start, test_arena_end),
      cmocka_unit_test_setup_teardown(longer_work_is_cut_into_more_parts, test_arena_start, test_arena_end),
      cmocka_unit_test_setup_teardown(a_text_shows_all_of_a_kernel, test_arena_start, test_arena_end),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
