/* Rewrites remembered: what comes from memory is what would be made, for every way in which buffers can be the same. */
#include "plan/rewrites.h"

#include "support/cmocka.h"
#include "support/oom.h"
#include "support/random.h"
#include "support/tensor.h"

static const int64_t dims[] = {4, 6};

/* to = op(from, other), or op(from), and its pool's use of it. */
typedef struct made {
  ax_bound bound;
  ax_pooled_kernel *pooled;
} made;

static made pointwise(ax_arena *arena, ax_kernel_pool *pool, ax_scalar op, uint32_t from, uint32_t other, uint32_t to) {
  const uint32_t all[] = {from, other, to};
  uint32_t slots[3], buffers[3], count = 0;
  made m = {.bound = {ax_kernel_create(arena, 2, 0, dims), NULL}};
  ax_position at[2];
  if (m.bound.kernel == NULL) return m;
  ax_at_identity(at, 2);
  for (int i = 0; i < 3; i++) {
    uint32_t k = 0;
    while (k < count && buffers[k] != all[i]) k++;
    slots[i] = k;
    if (k < count || all[i] == AX_NONE) continue;
    buffers[count++] = all[i];
    ax_kernel_slot(m.bound.kernel, AX_F32, 2, dims);
  }
  ax_ex x = ax_kernel_load(m.bound.kernel, slots[0], at);
  ax_ex y = other != AX_NONE ? ax_kernel_load(m.bound.kernel, slots[1], at) : AX_NONE;
  ax_kernel_store(m.bound.kernel, slots[2], at, ax_kernel_op(m.bound.kernel, op, AX_F32, x, y, AX_NONE), AX_SCALAR_NONE);
  m.bound.buffers = ax_arena_copy(arena, buffers, sizeof buffers);
  m.pooled = m.bound.buffers != NULL && !m.bound.kernel->failed ? ax_kernel_pool_find(pool, m.bound.kernel) : NULL;
  if (m.pooled != NULL) m.bound.kernel = m.pooled->kernel;
  return m;
}

/* Another number each time: what takes a view is not remembered. */
static uint32_t new_view(void *context, uint32_t buffer, uint32_t rank, const int64_t *of) {
  (void)buffer, (void)rank, (void)of;
  return 100 + (*(uint32_t *)context)++;
}
static uint32_t view_count;
static const ax_views no_views = {new_view, &view_count};

static void equal_kernels_are_one(void **state) {
  (void)state;
  ax_arena arena = {0};
  ax_kernel_pool pool = {0};
  made a = pointwise(&arena, &pool, AX_SCALAR_ADD, 1, 2, 3), b = pointwise(&arena, &pool, AX_SCALAR_ADD, 7, 9, 8);
  made c = pointwise(&arena, &pool, AX_SCALAR_ADD, 1, 1, 3), d = pointwise(&arena, &pool, AX_SCALAR_MUL, 1, 2, 3);
  assert_ptr_equal(a.pooled, b.pooled);
  assert_int_equal(a.pooled->uses, 2);
  assert_ptr_not_equal(a.pooled, c.pooled);
  assert_ptr_not_equal(a.pooled, d.pooled);
  ax_kernel_pool_deinit(&pool);
  ax_arena_deinit(&arena);
}

static void check(const ax_rewritten *got, const ax_bound *wanted) {
  if (wanted->kernel == NULL) {
    assert_null(got->pooled);
    return;
  }
  assert_non_null(got->pooled);
  assert_true(ax_kernel_equal(got->pooled->kernel, wanted->kernel));
  for (uint32_t i = 0; i < wanted->kernel->slot_count; i++) assert_int_equal(got->buffers[i], wanted->buffers[i]);
}

/* Kernels over few buffers, made into others again and again: always as kernel_rewrite.c does. */
static void as_made_anew(void **state) {
  (void)state;
  enum { rounds = 3000, held = 6 };
  ax_arena arena = {0};
  ax_kernel_pool pool = {0};
  test_random random = {7};
  made kernels[held];
  for (int i = 0; i < held; i++) kernels[i] = pointwise(&arena, &pool, AX_SCALAR_ADD, (uint32_t)i, 1, 2);
  for (int i = 0; i < rounds; i++) {
    made *a = &kernels[test_random_below(&random, held)], *b = &kernels[test_random_below(&random, held)];
    ax_rewritten got;
    ax_bound wanted;
    pool.most_bytes = 20000; /* so that it is emptied now and then */
    const bool merges = test_random_below(&random, 2) == 0;
    const uint32_t slot = (uint32_t)test_random_below(&random, b->bound.kernel->slot_count);
    if (merges) {
      TEST_OK(ax_kernel_merge(&arena, &a->bound, &b->bound, &wanted));
      TEST_OK(ax_pool_merge(&pool, &a->bound, &b->bound, &got));
    } else {
      TEST_OK(ax_kernel_inline(&arena, &a->bound, &a->bound.kernel->stores[0], &b->bound, slot, 0, &no_views, &wanted));
      TEST_OK(ax_pool_inline(&pool, &a->bound, 0, &b->bound, slot, 0, &no_views, &got));
    }
    check(&got, &wanted);
    ax_kernel_pool_release(b->pooled);
    if (got.pooled != NULL && got.pooled->kernel->store_count < 4 && got.pooled->kernel->expr_count < 30) {
      *b = (made){{got.pooled->kernel, ax_arena_copy(&arena, got.buffers, sizeof got.buffers)}, got.pooled};
      continue;
    }
    ax_kernel_pool_release(got.pooled);
    *b = pointwise(&arena, &pool, (ax_scalar)(AX_SCALAR_ADD + test_random_below(&random, 3)),
                   (uint32_t)test_random_below(&random, 5), 1, 5 + (uint32_t)test_random_below(&random, 3));
  }
  assert_true(pool.count < 100);
  ax_kernel_pool_deinit(&pool);
  ax_arena_deinit(&arena);
}

static void pruned(void **state) {
  (void)state;
  ax_arena arena = {0};
  ax_kernel_pool pool = {0};
  made a = pointwise(&arena, &pool, AX_SCALAR_ADD, 1, 2, 3), b = pointwise(&arena, &pool, AX_SCALAR_MUL, 1, 4, 5);
  ax_rewritten both, one, other, again;
  TEST_OK(ax_pool_merge(&pool, &a.bound, &b.bound, &both));
  const ax_bound merged = {both.pooled->kernel, both.buffers};
  TEST_OK(ax_pool_prune(&pool, &merged, (bool[]){false, true}, &one));
  TEST_OK(ax_pool_prune(&pool, &merged, (bool[]){true, false}, &other));
  TEST_OK(ax_pool_prune(&pool, &merged, (bool[]){false, true}, &again));
  assert_ptr_equal(one.pooled, a.pooled); /* what is left is what there was */
  assert_ptr_equal(other.pooled, b.pooled);
  assert_ptr_equal(again.pooled, one.pooled);
  assert_int_equal(other.buffers[1], 4);
  ax_kernel_pool_deinit(&pool);
  ax_arena_deinit(&arena);
}

static ax_status rewrites(void *context) {
  ax_arena arena = {0};
  ax_kernel_pool pool = {0};
  ax_rewritten out;
  (void)context;
  made a = pointwise(&arena, &pool, AX_SCALAR_ADD, 1, 2, 3), b = pointwise(&arena, &pool, AX_SCALAR_MUL, 3, 2, 5);
  ax_status status = a.pooled != NULL && b.pooled != NULL ? AX_OK : ax_out_of_memory(0);
  if (status == AX_OK) status = ax_pool_merge(&pool, &a.bound, &b.bound, &out);
  if (status == AX_OK) status = ax_pool_inline(&pool, &a.bound, 0, &b.bound, 0, 0, &no_views, &out);
  ax_kernel_pool_deinit(&pool);
  ax_arena_deinit(&arena);
  return status;
}

static void each_allocation_may_fail(void **state) {
  (void)state;
  assert_true(test_each_allocation(rewrites, NULL) > 8);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(equal_kernels_are_one),
      cmocka_unit_test(as_made_anew),
      cmocka_unit_test(pruned),
      cmocka_unit_test(each_allocation_may_fail),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
