/* Kernels written by hand, rewritten, and compared with what they must become, as text. */
#include <string.h>

#include "plan/kernel_rewrite.h"
#include "support/arena.h"
#include "support/cmocka.h"
#include "support/random.h"
#include "support/tensor.h"

/* --- Kernels by hand --- */

static const int64_t dims[] = {4, 6};

static ax_position along(int dim, int64_t coef, int64_t offset) {
  return (ax_position){.dim = dim, .coef = coef, .offset = offset, .dynamic = AX_NONE};
}

static ax_bound kernel_of(uint32_t rank, uint32_t reduce_rank, const uint32_t *buffers, uint32_t count) {
  ax_bound b = {ax_kernel_create(&test_arena, rank, reduce_rank, dims), ax_arena_copy(&test_arena, buffers, count * sizeof buffers[0])};
  assert_non_null(b.kernel);
  for (uint32_t i = 0; i < count; i++) ax_kernel_slot(b.kernel, AX_F32, rank, dims);
  return b;
}

static ax_ex load(ax_bound b, uint32_t slot) {
  ax_position at[AX_MAX_RANK];
  ax_at_identity(at, b.kernel->rank);
  return ax_kernel_load(b.kernel, slot, at);
}

static void store(ax_bound b, uint32_t slot, ax_ex expr) {
  ax_position at[AX_MAX_RANK];
  ax_at_identity(at, b.kernel->rank);
  ax_kernel_store(b.kernel, slot, at, expr, AX_SCALAR_NONE);
}

/* to = op(from..): `from` one or two buffers */
static ax_bound pointwise(ax_scalar op, uint32_t from, uint32_t other, uint32_t to) {
  uint32_t buffers[] = {from, to, other}, count = other == AX_NONE ? 2 : 3;
  ax_bound b = kernel_of(2, 0, buffers, count);
  ax_ex x = load(b, 0), y = count == 3 ? load(b, 2) : AX_NONE;
  store(b, 1, ax_kernel_op(b.kernel, op, AX_F32, x, y, AX_NONE));
  return b;
}

/* The buffers, then the kernel. NULL: there is none. */
static void expect(const ax_bound *b, const char *wanted) {
  ax_text text = {0};
  char *got;
  if (b->kernel == NULL) {
    assert_null(wanted);
    return;
  }
  assert_non_null(wanted);
  for (uint32_t i = 0; i < b->kernel->slot_count; i++) ax_text_add(&text, "b%u ", b->buffers[i]);
  ax_kernel_text(&text, b->kernel);
  TEST_OK(ax_text_finish(&text, &got));
  assert_string_equal(got, wanted);
  ax_free(got);
}

/* --- Inlining --- */

static void inlining(void **state) {
  (void)state;
  ax_bound producer = pointwise(AX_SCALAR_EXP, 10, AX_NONE, 11), consumer = pointwise(AX_SCALAR_ADD, 11, 10, 12), out;
  TEST_OK(ax_kernel_inline(&test_arena, &producer, &producer.kernel->stores[0], &consumer, 0, 0, NULL, &out));
  expect(&out, "b10 b12 for i0<4 i1<6\n"
               "  e0:f32 = load s0[i0, i1]\n"
               "  e1:f32 = exp e0\n"
               "  e2:f32 = add e1 e0\n"
               "  s1[i0, i1] = e2\n");
  expect(&consumer, "b11 b12 b10 for i0<4 i1<6\n" /* what comes in is left as it is */
                    "  e0:f32 = load s0[i0, i1]\n"
                    "  e1:f32 = load s2[i0, i1]\n"
                    "  e2:f32 = add e0 e1\n"
                    "  s1[i0, i1] = e2\n");
}

/* The consumer reads the producer's transposed rows from the second on, every other one. */
static void positions_are_composed(void **state) {
  (void)state;
  ax_bound producer = kernel_of(2, 0, (uint32_t[]){10, 11}, 2), consumer = kernel_of(2, 0, (uint32_t[]){11, 12}, 2), out;
  ax_position from[] = {along(1, 1, 3), along(0, 5, 0)}, at[] = {along(1, 2, 1), along(0, 1, 0)};
  ax_ex element = ax_kernel_load(producer.kernel, 0, from);
  ax_ex row = ax_kernel_index(producer.kernel, 0);
  store(producer, 1, ax_kernel_op(producer.kernel, AX_SCALAR_ADD, AX_S64, element, row, AX_NONE));
  store(consumer, 1, ax_kernel_load(consumer.kernel, 0, at));
  TEST_OK(ax_kernel_inline(&test_arena, &producer, &producer.kernel->stores[0], &consumer, 0, 0, NULL, &out));
  expect(&out, "b10 b12 for i0<4 i1<6\n"
               "  e0:f32 = load s0[i0+3, 10*i1+5]\n"
               "  e1:s64 = const 1\n"
               "  e2:s64 = index 1\n"
               "  e3:s64 = const 2\n"
               "  e4:s64 = mul e2 e3\n"
               "  e5:s64 = add e4 e1\n"
               "  e6:s64 = add e0 e5\n"
               "  s1[i0, i1] = e6\n");
}

/* Where the consumer reads is decided at run time: an index of the producer cannot be told. */
static void not_every_position_composes(void **state) {
  (void)state;
  ax_bound producer = kernel_of(2, 0, (uint32_t[]){11}, 1), consumer = kernel_of(2, 0, (uint32_t[]){11, 12}, 2), out;
  store(producer, 0, ax_kernel_index(producer.kernel, 1));
  ax_position at[] = {along(0, 1, 0), along(1, 1, 0)};
  at[1].dynamic = ax_kernel_axis(consumer.kernel, 0);
  store(consumer, 1, ax_kernel_load(consumer.kernel, 0, at));
  TEST_OK(ax_kernel_inline(&test_arena, &producer, &producer.kernel->stores[0], &consumer, 0, 0, NULL, &out));
  expect(&out, NULL);
}

/* Nothing is left of where a constant was read from. */
static void inlining_prunes(void **state) {
  (void)state;
  ax_bound producer = kernel_of(2, 0, (uint32_t[]){11}, 1), consumer = kernel_of(2, 0, (uint32_t[]){11, 12}, 2), out;
  store(producer, 0, ax_kernel_const(producer.kernel, AX_F32, 0x40e00000));
  ax_position at[] = {along(0, 1, 0), along(1, 1, 0)};
  at[1].dynamic = ax_kernel_axis(consumer.kernel, 0);
  store(consumer, 1, ax_kernel_load(consumer.kernel, 0, at));
  TEST_OK(ax_kernel_inline(&test_arena, &producer, &producer.kernel->stores[0], &consumer, 0, 0, NULL, &out));
  expect(&out, "b12 for i0<4 i1<6\n"
               "  e0:f32 = const 7.0\n"
               "  s0[i0, i1] = e0\n");
}

static ax_bound long_chain(uint32_t from, uint32_t to, uint32_t length) {
  ax_bound b = kernel_of(2, 0, (uint32_t[]){from, to}, 2);
  ax_ex x = load(b, 0);
  for (uint32_t i = 0; i < length; i++) x = ax_kernel_op(b.kernel, AX_SCALAR_EXP, AX_F32, x, AX_NONE, AX_NONE);
  store(b, 1, x);
  assert_int_equal(b.kernel->expr_count, length + 1);
  return b;
}

/* What nodes are, whatever their numbers: of operands and buffers. Loads of `buffer` are `loaded`. */
static void find_meanings(const ax_bound *b, uint32_t buffer, uint64_t loaded, uint64_t *meaning) {
  for (uint32_t i = 0; i < b->kernel->expr_count; i++) {
    const ax_expr *expr = &b->kernel->exprs[i];
    const bool loads = expr->op == AX_LEAF_LOAD;
    meaning[i] = ax_hash_word(ax_hash_word(AX_HASH_SEED, (uint64_t)expr->op), (uint64_t)expr->imm);
    for (int k = 0; k < 3; k++)
      if (expr->arg[k] != AX_NONE) meaning[i] = ax_hash_word(meaning[i], meaning[expr->arg[k]]);
    if (loads) meaning[i] = ax_hash_word(ax_hash_word(meaning[i], b->buffers[expr->slot]), (uint64_t)expr->at[0].offset);
    if (loads && b->buffers[expr->slot] == buffer) meaning[i] = loaded;
  }
}

/* A chain over buffers 1 and 2 that makes buffer 3: `count` operations on the one, with a number or the other. */
static ax_bound chain(test_random *random, uint32_t count) {
  ax_bound b = kernel_of(2, 0, (uint32_t[]){1, 2, 3}, 3);
  ax_ex value = load(b, 0);
  for (uint32_t i = 0; i < count; i++) {
    const int64_t number = test_random_below(random, 40);
    const ax_ex other = test_random_below(random, 3) == 0 ? load(b, 1) : ax_kernel_const(b.kernel, AX_F32, number);
    value = ax_kernel_op(b.kernel, (ax_scalar)(AX_SCALAR_ADD + test_random_below(random, 3)), AX_F32, value, other, AX_NONE);
  }
  store(b, 2, value);
  return b;
}

/* Reads buffer 3 and perhaps 2, and makes 4: of it, of numbers that its maker may have too, and of itself; perhaps a sum. */
static ax_bound reader(test_random *random, uint32_t count) {
  ax_bound b = kernel_of(2, (uint32_t)test_random_below(random, 2), (uint32_t[]){2, 3, 4}, 3);
  ax_ex value = test_random_below(random, 2) == 0 ? ax_kernel_const(b.kernel, AX_F32, 7) : load(b, 0);
  for (uint32_t i = 0; i < count; i++) {
    const ax_ex number = ax_kernel_const(b.kernel, AX_F32, (int64_t)test_random_below(random, 40));
    const ax_ex other = i == 0 || test_random_below(random, 3) == 0 ? load(b, 1) : number;
    value = ax_kernel_op(b.kernel, (ax_scalar)(AX_SCALAR_ADD + test_random_below(random, 3)), AX_F32, value, other, AX_NONE);
  }
  ax_position at[AX_MAX_RANK];
  ax_at_identity(at, 2);
  if (b.kernel->reduce_rank > 0) b.kernel->slots[2].rank = 1;
  ax_kernel_store(b.kernel, 2, at, value, b.kernel->reduce_rank > 0 ? AX_SCALAR_ADD : AX_SCALAR_NONE);
  return b;
}

/* Chains of every length up to what a kernel may have: the result is what both say, no node is there twice, and none is left over. */
static void chains_grow(void **state) {
  (void)state;
  test_random random = {1};
  uint64_t meaning[2][2 * AX_MOST_EXPRS];
  uint32_t there = 0;
  for (uint32_t round = 0; round < 2000; round++) {
    const ax_bound made = chain(&random, 1 + round % 90), read = reader(&random, 1 + (uint32_t)test_random_below(&random, 12));
    ax_bound both;
    TEST_OK(ax_kernel_inline(&test_arena, &made, &made.kernel->stores[0], &read, 1, 0, NULL, &both));
    if (both.kernel == NULL) {
      assert_true(made.kernel->expr_count + read.kernel->expr_count > AX_MOST_EXPRS);
      continue;
    }
    there++;
    find_meanings(&made, AX_NONE, 0, meaning[0]);
    find_meanings(&read, 3, meaning[0][made.kernel->stores[0].expr], meaning[1]);
    const uint64_t wanted = meaning[1][read.kernel->stores[0].expr];
    find_meanings(&both, AX_NONE, 0, meaning[0]);
    assert_true(meaning[0][both.kernel->stores[0].expr] == wanted);
    assert_int_equal(both.kernel->stores[0].reduce, read.kernel->stores[0].reduce);
    assert_int_equal(both.kernel->reduce_rank, read.kernel->reduce_rank);
    assert_int_equal(both.buffers[both.kernel->stores[0].slot], 4);
    assert_true(ax_kernel_is_pruned(both.kernel));
    for (uint32_t i = 0; i < both.kernel->expr_count; i++)
      for (uint32_t k = 0; k < i; k++) assert_true(meaning[0][i] != meaning[0][k]);
    if (round % 100 == 0) ax_arena_empty(&test_arena);
  }
  assert_true(there > 1000);
}

/* A sum of `count` buffers from `from` on. */
static ax_bound sum_of(uint32_t from, uint32_t count, uint32_t to) {
  uint32_t buffers[AX_MAX_SLOTS];
  for (uint32_t i = 0; i < count; i++) buffers[i] = from + i;
  buffers[count] = to;
  ax_bound b = kernel_of(2, 0, buffers, count + 1);
  ax_ex sum = load(b, 0);
  for (uint32_t i = 1; i < count; i++) sum = ax_kernel_op(b.kernel, AX_SCALAR_ADD, AX_F32, sum, load(b, i), AX_NONE);
  store(b, count, sum);
  return b;
}

static void too_many_arrays(void **state) {
  (void)state;
  for (uint32_t count = AX_MOST_SLOTS - 3; count < AX_MAX_SLOTS; count++) {
    ax_bound producer = sum_of(100, count, 10), consumer = pointwise(AX_SCALAR_MUL, 10, 11, 12), out;
    TEST_OK(ax_kernel_inline(&test_arena, &producer, &producer.kernel->stores[0], &consumer, 0, 0, NULL, &out));
    assert_int_equal(out.kernel != NULL, count + 2 <= AX_MOST_SLOTS);
    if (out.kernel != NULL) assert_int_equal(out.kernel->slot_count, count + 2);
  }
}

static void too_large(void **state) {
  (void)state;
  ax_bound producer = long_chain(10, 11, 100), consumer = long_chain(11, 12, 58), longer = long_chain(11, 12, 60), out;
  TEST_OK(ax_kernel_inline(&test_arena, &producer, &producer.kernel->stores[0], &consumer, 0, 0, NULL, &out));
  assert_int_equal(out.kernel->expr_count, 159);
  TEST_OK(ax_kernel_inline(&test_arena, &producer, &producer.kernel->stores[0], &longer, 0, 0, NULL, &out));
  expect(&out, NULL);
}

/* --- Merging --- */

/* Two chains are one kernel for as long as its nodes are not too many. */
static void chains_are_merged_up_to_the_limit(void **state) {
  (void)state;
  const ax_bound first = long_chain(10, 11, 100);
  for (uint32_t length = 50; length < 80; length++) {
    const ax_bound second = long_chain(11, 12, length);
    ax_bound out;
    TEST_OK(ax_kernel_merge(&test_arena, &first, &second, &out));
    assert_int_equal(out.kernel != NULL, first.kernel->expr_count + second.kernel->expr_count - 1 <= AX_MOST_EXPRS);
    if (out.kernel != NULL) assert_int_equal(out.kernel->store_count, 2);
  }
}

static void merging(void **state) {
  (void)state;
  ax_bound first = pointwise(AX_SCALAR_EXP, 10, AX_NONE, 11), second = pointwise(AX_SCALAR_ADD, 11, 10, 12), out;
  TEST_OK(ax_kernel_merge(&test_arena, &first, &second, &out));
  expect(&out, "b10 b11 b12 for i0<4 i1<6\n"
               "  e0:f32 = load s0[i0, i1]\n"
               "  e1:f32 = exp e0\n"
               "  e2:f32 = add e1 e0\n"
               "  s1[i0, i1] = e1\n"
               "  s2[i0, i1] = e2\n");
}

static void merging_has_a_limit(void **state) {
  (void)state;
  ax_bound all = pointwise(AX_SCALAR_EXP, 100, AX_NONE, 101);
  for (uint32_t i = 1; i < AX_MOST_SLOTS / 2; i++) {
    ax_bound next = pointwise(AX_SCALAR_EXP, 100 + 2 * i, AX_NONE, 101 + 2 * i);
    TEST_OK(ax_kernel_merge(&test_arena, &all, &next, &all));
    assert_int_equal(all.kernel->slot_count, 2 * i + 2);
  }
  ax_bound one_more = pointwise(AX_SCALAR_EXP, 10, AX_NONE, 11);
  TEST_OK(ax_kernel_merge(&test_arena, &all, &one_more, &all));
  expect(&all, NULL);
}

/* --- Pruning --- */

static void pruning(void **state) {
  (void)state;
  ax_bound first = pointwise(AX_SCALAR_EXP, 10, AX_NONE, 11), second = pointwise(AX_SCALAR_ADD, 13, 10, 12), both, out;
  TEST_OK(ax_kernel_merge(&test_arena, &first, &second, &both));
  assert_true(ax_kernel_is_pruned(both.kernel));
  TEST_OK(ax_kernel_prune(&test_arena, &both, (bool[]){false, true}, &out));
  expect(&out, "b10 b11 for i0<4 i1<6\n"
               "  e0:f32 = load s0[i0, i1]\n"
               "  e1:f32 = exp e0\n"
               "  s1[i0, i1] = e1\n");
  load(out, 0);
  ax_kernel_const(out.kernel, AX_F32, 1);
  assert_false(ax_kernel_is_pruned(out.kernel));
}

/* Equal nodes are one, few or many; a copy finds its nodes again. */
static void equal_nodes(void **state) {
  (void)state;
  ax_bound b = long_chain(10, 11, 150);
  ax_ex x = load(b, 0);
  for (uint32_t i = 0; i < 150; i++) x = ax_kernel_op(b.kernel, AX_SCALAR_EXP, AX_F32, x, AX_NONE, AX_NONE);
  assert_int_equal(b.kernel->expr_count, 151);
  ax_arena own = {0};
  assert_true(ax_arena_reserve(&own, ax_kernel_copy_bytes(b.kernel)));
  ax_loop_kernel *copy = ax_kernel_copy(&own, b.kernel);
  assert_true(ax_kernel_equal(copy, b.kernel));
  assert_true(ax_kernel_hash(copy) == ax_kernel_hash(b.kernel));
  assert_int_equal(ax_kernel_op(copy, AX_SCALAR_EXP, AX_F32, x, AX_NONE, AX_NONE), 151);
  assert_int_equal(ax_kernel_op(copy, AX_SCALAR_EXP, AX_F32, x - 1, AX_NONE, AX_NONE), x);
  ax_arena_deinit(&own);
}

/* --- Other dimensions --- */

static void a_piece_has_its_own_indices(void **state) {
  (void)state;
  ax_bound b = pointwise(AX_SCALAR_EXP, 10, AX_NONE, 11), out;
  TEST_OK(ax_kernel_piece(&test_arena, &b, 1, 2, 3, &out));
  expect(&out, "b10 b11 for i0<4 i1<3\n"
               "  e0:f32 = load s0[i0, i1+2]\n"
               "  e1:f32 = exp e0\n"
               "  s1[i0, i1+2] = e1\n");
}

/* Rows 0 and 1 are outside of what the guard lets be read, the others inside. */
static void a_guard_of_a_piece_may_be_certain(void **state) {
  (void)state;
  ax_bound b = kernel_of(2, 0, (uint32_t[]){10, 11}, 2), out;
  ax_position at[] = {along(0, 1, -2), along(1, 1, 0)};
  store(b, 1, ax_kernel_load_where(b.kernel, 0, at, ax_kernel_inside(b.kernel, 0, 1, -2, 4)));
  TEST_OK(ax_kernel_piece(&test_arena, &b, 0, 2, 2, &out));
  expect(&out, "b10 b11 for i0<2 i1<6\n"
               "  e0:f32 = load s0[i0, i1]\n"
               "  s1[i0+2, i1] = e0\n");
  TEST_OK(ax_kernel_piece(&test_arena, &b, 0, 0, 2, &out));
  expect(&out, "b11 for i0<2 i1<6\n"
               "  e0:f32 = const 0.0\n"
               "  s0[i0, i1] = e0\n");
}

static uint32_t view(void *context, uint32_t buffer, uint32_t rank, const int64_t *view_dims) {
  (void)view_dims;
  *(uint32_t *)context = rank;
  return buffer + 100;
}

static void a_kernel_goes_over_rows_as_one(void **state) {
  (void)state;
  uint32_t rank = 0;
  const ax_views views = {view, &rank};
  ax_bound b = pointwise(AX_SCALAR_EXP, 10, AX_NONE, 11), out;
  TEST_OK(ax_kernel_redimension(&test_arena, &b, 1, (int64_t[]){24}, &views, &out));
  expect(&out, "b110 b111 for i0<24\n"
               "  e0:f32 = load s0[i0]\n"
               "  e1:f32 = exp e0\n"
               "  s1[i0] = e1\n");
  assert_int_equal(rank, 1);
}

static void what_a_node_needs_are_its_operands_and_starts(void **state) {
  (void)state;
  ax_bound b = kernel_of(2, 0, (uint32_t[]){10, 11}, 2);
  bool needed[8] = {false};
  ax_position at[] = {along(0, 1, 0), along(1, 1, 0)};
  const ax_ex unused = ax_kernel_index(b.kernel, 1), moving = ax_kernel_axis(b.kernel, 0),
              guard = ax_kernel_inside(b.kernel, 0, 1, -1, 4);
  at[1].dynamic = moving;
  const ax_ex x = ax_kernel_load_where(b.kernel, 0, at, guard);
  const ax_ex y = ax_kernel_op(b.kernel, AX_SCALAR_EXP, AX_F32, x, AX_NONE, AX_NONE);
  ax_kernel_need(b.kernel, y, needed);
  assert_true(needed[x] && !needed[guard] && !needed[moving]); /* its own operands alone */
  ax_kernel_needs(b.kernel, needed);
  assert_true(needed[x] && needed[guard] && needed[moving] && !needed[unused]);
}

/* --- Unrolling --- */

/* out[i] = sum over j of x[i, j] * i, and y[i, j] = x[i, j] where j > 0. */
static ax_loop_kernel *rows_and_sums(ax_dtype dtype) {
  static const int64_t two[] = {2, 2};
  ax_position at[] = {along(0, 1, 0), along(1, 1, 0)}, before[] = {along(0, 1, 0), along(1, 1, -1)};
  ax_loop_kernel *k = ax_kernel_create(&test_arena, 2, 1, two);
  const uint32_t x = ax_kernel_slot(k, dtype, 2, two), sums = ax_kernel_slot(k, dtype, 1, two),
                 y = ax_kernel_slot(k, dtype, 2, two);
  const ax_ex value = ax_kernel_load(k, x, at);
  const ax_ex i = ax_kernel_op(k, AX_SCALAR_CONVERT, dtype, ax_kernel_index(k, 0), AX_NONE, AX_NONE);
  ax_kernel_store(k, sums, at, ax_kernel_op(k, AX_SCALAR_MUL, dtype, value, i, AX_NONE), AX_SCALAR_ADD);
  ax_kernel_store(k, y, at, ax_kernel_load_where(k, x, before, ax_kernel_inside(k, 1, 1, -1, 1)), AX_SCALAR_NONE);
  return k;
}

static void unrolling(void **state) {
  (void)state;
  ax_loop_kernel *k = rows_and_sums(AX_F32), *out;
  const uint32_t buffers[] = {0, 1, 2};
  TEST_OK(ax_kernel_unroll(&test_arena, k, 0, 4, &out));
  const ax_bound made = {out, ax_arena_copy(&test_arena, buffers, sizeof buffers)};
  expect(&made,
         "b0 b1 b2 for\n"
         "  e0:f32 = load s0[0, 0]\n"
         "  e1:s64 = const 0\n"
         "  e2:f32 = const 0.0\n"
         "  e3:f32 = mul e0 e2\n"
         "  e4:bool = const false\n"
         "  e5:f32 = add e2 e3\n"
         "  e6:f32 = load s0[0, 1]\n"
         "  e7:f32 = mul e6 e2\n"
         "  e8:bool = const true\n"
         "  e9:f32 = add e5 e7\n"
         "  e10:f32 = load s0[1, 0]\n"
         "  e11:s64 = const 1\n"
         "  e12:f32 = const 1.0\n"
         "  e13:f32 = mul e10 e12\n"
         "  e14:f32 = add e2 e13\n"
         "  e15:f32 = load s0[1, 1]\n"
         "  e16:f32 = mul e15 e12\n"
         "  e17:f32 = add e14 e16\n"
         "  s2[0, 0] = e2\n"
         "  s1[0] = e9\n"
         "  s2[0, 1] = e0\n"
         "  s2[1, 0] = e2\n"
         "  s1[1] = e17\n"
         "  s2[1, 1] = e10\n");
}

/* Row by row, as before; only what is reduced over is spelled out. */
static void unrolling_sums(void **state) {
  (void)state;
  const int64_t dims[] = {5, 3}, results[] = {5};
  ax_loop_kernel *k = ax_kernel_create(&test_arena, 2, 1, dims), *out;
  ax_position at[2];
  const uint32_t buffers[] = {0, 1}, x = ax_kernel_slot(k, AX_F32, 2, dims), y = ax_kernel_slot(k, AX_F32, 1, results);
  ax_at_identity(at, 2);
  ax_kernel_store(k, y, at, ax_kernel_load(k, x, at), AX_SCALAR_MAX);
  TEST_OK(ax_kernel_unroll(&test_arena, k, 1, 3, &out));
  const ax_bound made = {out, ax_arena_copy(&test_arena, buffers, sizeof buffers)};
  expect(&made,
         "b0 b1 for i0<5\n"
         "  e0:f32 = load s0[i0, 0]\n"
         "  e1:f32 = load s0[i0, 1]\n"
         "  e2:f32 = max e0 e1\n"
         "  e3:f32 = load s0[i0, 2]\n"
         "  e4:f32 = max e2 e3\n"
         "  s1[i0] = e4\n");
  TEST_OK(ax_kernel_unroll(&test_arena, k, 2, 3, &out));
  assert_null(out); /* a dimension that is kept is reduced over */
  TEST_OK(ax_kernel_unroll(&test_arena, k, 1, 2, &out));
  assert_null(out);
}

static void not_unrolled(void **state) {
  (void)state;
  ax_loop_kernel *k = rows_and_sums(AX_F32), *out;
  TEST_OK(ax_kernel_unroll(&test_arena, k, 0, 3, &out));
  assert_null(out); /* four steps */
  k->dims[1] = 0;
  TEST_OK(ax_kernel_unroll(&test_arena, k, 0, 4, &out));
  assert_null(out); /* none */
  k = rows_and_sums(AX_BF16);
  TEST_OK(ax_kernel_unroll(&test_arena, k, 0, 4, &out));
  assert_null(out); /* rounded once, not in each step */
  k = rows_and_sums(AX_F32);
  k->running = true;
  TEST_OK(ax_kernel_unroll(&test_arena, k, 0, 4, &out));
  assert_null(out);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(inlining, test_arena_start, test_arena_end),
      cmocka_unit_test_setup_teardown(positions_are_composed, test_arena_start, test_arena_end),
      cmocka_unit_test_setup_teardown(not_every_position_composes, test_arena_start, test_arena_end),
      cmocka_unit_test_setup_teardown(inlining_prunes, test_arena_start, test_arena_end),
      cmocka_unit_test_setup_teardown(chains_grow, test_arena_start, test_arena_end),
      cmocka_unit_test_setup_teardown(too_many_arrays, test_arena_start, test_arena_end),
      cmocka_unit_test_setup_teardown(too_large, test_arena_start, test_arena_end),
      cmocka_unit_test_setup_teardown(chains_are_merged_up_to_the_limit, test_arena_start, test_arena_end),
      cmocka_unit_test_setup_teardown(merging, test_arena_start, test_arena_end),
      cmocka_unit_test_setup_teardown(merging_has_a_limit, test_arena_start, test_arena_end),
      cmocka_unit_test_setup_teardown(pruning, test_arena_start, test_arena_end),
      cmocka_unit_test_setup_teardown(equal_nodes, test_arena_start, test_arena_end),
      cmocka_unit_test_setup_teardown(a_piece_has_its_own_indices, test_arena_start, test_arena_end),
      cmocka_unit_test_setup_teardown(a_guard_of_a_piece_may_be_certain, test_arena_start, test_arena_end),
      cmocka_unit_test_setup_teardown(a_kernel_goes_over_rows_as_one, test_arena_start, test_arena_end),
      cmocka_unit_test_setup_teardown(unrolling, test_arena_start, test_arena_end),
      cmocka_unit_test_setup_teardown(unrolling_sums, test_arena_start, test_arena_end),
      cmocka_unit_test_setup_teardown(not_unrolled, test_arena_start, test_arena_end),
      cmocka_unit_test_setup_teardown(what_a_node_needs_are_its_operands_and_starts, test_arena_start, test_arena_end),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
