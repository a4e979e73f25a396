/* Fused loops as data: what makes two of them equal, copies, and which kernels are small enough for one. */
#include "jit/nest/fused_loop.h"

#include "support/cmocka.h"

/* y = -x, of so many elements. */
static ax_loop_kernel *negate(ax_arena *arena, int64_t elems) {
  ax_position at;
  ax_loop_kernel *k = ax_kernel_create(arena, 1, 0, &elems);
  ax_at_identity(&at, 1);
  const ax_ex x = ax_kernel_load(k, ax_kernel_slot(k, AX_F32, 1, &elems), &at);
  ax_kernel_store(k, ax_kernel_slot(k, AX_F32, 1, &elems), &at, ax_kernel_op(k, AX_SCALAR_NEG, AX_F32, x, AX_NONE, AX_NONE),
                  AX_SCALAR_NONE);
  assert_false(k->failed);
  return k;
}

/* Eight times: place 1 = -(place 0 + 16 bytes each time). */
typedef struct example {
  ax_fused_loop_operand operands[2];
  ax_fused_loop_step steps[3];
  ax_fused_loop_place places[2];
  ax_fused_loop loop;
} example;

static void make(ax_arena *arena, example *out) {
  *out = (example){.operands = {{.place = 0, .loop = 0, .step = 16}, {.place = 1, .loop = AX_NONE}},
                   .places = {{.dtype = AX_F32}, {.dtype = AX_F32, .elems = 4, .wanted = true}}};
  out->steps[0] = (ax_fused_loop_step){.kind = AX_FUSED_LOOP_LOOP, .trips = 8};
  out->steps[1] = (ax_fused_loop_step){.kind = AX_FUSED_LOOP_KERNEL, .kernel = negate(arena, 4), .operands = out->operands};
  out->steps[2] = (ax_fused_loop_step){.kind = AX_FUSED_LOOP_END};
  out->loop = (ax_fused_loop){3, 2, out->steps, out->places};
}

static void steps_have_operands_by_their_kind(void **state) {
  (void)state;
  ax_arena arena = {0};
  example a;
  make(&arena, &a);
  assert_int_equal(ax_fused_loop_operands(&a.steps[0]), 0);
  assert_int_equal(ax_fused_loop_operands(&a.steps[1]), 2);
  assert_int_equal(ax_fused_loop_operands(&(ax_fused_loop_step){.kind = AX_FUSED_LOOP_TEST}), 1);
  assert_int_equal(ax_fused_loop_operands(&(ax_fused_loop_step){.kind = AX_FUSED_LOOP_BRANCH, .count = 3}), 1);
  ax_arena_deinit(&arena);
}

static void loops_of_equal_kernels_are_equal(void **state) {
  (void)state;
  ax_arena arena = {0};
  example a, b;
  make(&arena, &a), make(&arena, &b);
  assert_ptr_not_equal(a.steps[1].kernel, b.steps[1].kernel);
  assert_true(ax_fused_loop_equal(&a.loop, &b.loop));
  assert_true(ax_fused_loop_hash(&a.loop) == ax_fused_loop_hash(&b.loop));
  ax_arena_deinit(&arena);
}

static void differ(const example *a, const example *b) {
  assert_false(ax_fused_loop_equal(&a->loop, &b->loop));
  assert_true(ax_fused_loop_hash(&a->loop) != ax_fused_loop_hash(&b->loop));
}

static void every_field_makes_another_loop(void **state) {
  (void)state;
  ax_arena arena = {0};
  example a, b;
  make(&arena, &a);
  make(&arena, &b), b.operands[0].place = 1, differ(&a, &b);
  make(&arena, &b), b.operands[1].first = 1, differ(&a, &b);
  make(&arena, &b), b.operands[0].loop = AX_NONE, differ(&a, &b);
  make(&arena, &b), b.operands[0].step = 32, differ(&a, &b);
  make(&arena, &b), b.places[0].dtype = AX_BF16, differ(&a, &b);
  make(&arena, &b), b.places[0].elems = 4, differ(&a, &b);
  make(&arena, &b), b.places[1].needed = true, differ(&a, &b);
  make(&arena, &b), b.places[1].wanted = false, differ(&a, &b);
  make(&arena, &b), b.steps[0].trips = 9, differ(&a, &b);
  make(&arena, &b), b.steps[0].kind = AX_FUSED_LOOP_CASE, differ(&a, &b);
  make(&arena, &b), b.steps[0].count = 1, differ(&a, &b);
  make(&arena, &b), b.steps[1].kernel = negate(&arena, 5), differ(&a, &b);
  make(&arena, &b), b.loop.step_count = 2, differ(&a, &b);
  make(&arena, &b), b.loop.place_count = 1, differ(&a, &b);
  ax_arena_deinit(&arena);
}

static void count_word(void *context, uint64_t word) {
  (void)word;
  ++*(uint32_t *)context;
}

/* One of the whole, one of each place, two of each step, three of each operand, and the kernel's own. */
static void words_are_all_of_the_structure(void **state) {
  (void)state;
  ax_arena arena = {0};
  uint32_t kernel_words = 0, words = 0;
  example a;
  make(&arena, &a);
  ax_kernel_words(a.steps[1].kernel, count_word, &kernel_words);
  ax_fused_loop_words(&a.loop, count_word, &words);
  assert_int_equal(words, 1 + 2 + 3 * 2 + 2 * 3 + kernel_words);
  ax_arena_deinit(&arena);
}

static void a_copy_outlives_what_it_was_made_of(void **state) {
  (void)state;
  ax_arena arena = {0}, made = {0};
  example a, b;
  make(&made, &a), make(&arena, &b);
  ax_fused_loop *copy = ax_fused_loop_copy(&arena, &a.loop);
  assert_non_null(copy);
  assert_ptr_not_equal(copy->steps[1].kernel, a.steps[1].kernel);
  ax_arena_deinit(&made);
  a = (example){.loop = {0}};
  assert_true(ax_fused_loop_equal(copy, &b.loop));
  ax_arena_deinit(&arena);
}

static void kernels_of_a_microsecond_may_be_steps(void **state) {
  (void)state;
  ax_arena arena = {0};
  assert_true(ax_fused_loop_takes(negate(&arena, 16)));
  assert_false(ax_fused_loop_takes(negate(&arena, 1 << 20)));
  ax_arena_deinit(&arena);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(steps_have_operands_by_their_kind),
      cmocka_unit_test(loops_of_equal_kernels_are_equal),
      cmocka_unit_test(every_field_makes_another_loop),
      cmocka_unit_test(words_are_all_of_the_structure),
      cmocka_unit_test(a_copy_outlives_what_it_was_made_of),
      cmocka_unit_test(kernels_of_a_microsecond_may_be_steps),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
