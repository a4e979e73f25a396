/* The pool: what was freed is what comes next, by several sizes and from several threads, and trimming gives it all back. */
#include "run/pool.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/cmocka.h"
#include "support/tensor.h"

static ax_pool *new_pool(void) {
  ax_pool *pool = ax_calloc(1, sizeof *pool);
  assert_non_null(pool);
  ax_pool_init(pool);
  return pool;
}

static void end_pool(ax_pool *pool) {
  size_t now, peak;
  ax_pool_trim(pool);
  ax_pool_count(pool, &now, &peak);
  assert_int_equal(now, 0);
  ax_pool_deinit(pool);
  pthread_mutex_destroy(&pool->lock);
  ax_free(pool);
}

static size_t taken(ax_pool *pool) {
  size_t now, peak;
  ax_pool_count(pool, &now, &peak);
  return now;
}

static const size_t sizes[] = {0, 1, 64, 65, 100, 4096, 65536, 65537, 100000, 1 << 20, 1200000};
enum { size_count = AX_COUNT(sizes), each = 6, most = size_count * each };

/* Several of each size at a time, as the results of a run are. */
static void round_of(ax_pool *pool, void **blocks) {
  for (int i = 0; i < most; i++) {
    TEST_OK(ax_pool_alloc(pool, sizes[i % size_count], &blocks[i]));
    assert_int_equal((uintptr_t)blocks[i] % 64, 0);
    if (sizes[i % size_count] > 0) memset(blocks[i], i, sizes[i % size_count] < 4096 ? sizes[i % size_count] : 4096);
  }
  for (int i = 0; i < most; i++) ax_pool_free(pool, blocks[i], sizes[i % size_count]);
}

static bool among(void *block, void **blocks) {
  for (int i = 0; i < most; i++)
    if (blocks[i] == block) return true;
  return false;
}

static void little_is_wasted(void **state) {
  (void)state;
  for (size_t bytes = 1; bytes < 50 << 20; bytes += bytes / 5 + 1) {
    ax_pool *pool = new_pool();
    void *block;
    TEST_OK(ax_pool_alloc(pool, bytes, &block));
    assert_true(taken(pool) >= bytes && taken(pool) <= (bytes <= 1024 ? 2 * bytes + 64 : bytes <= 65536 ? bytes + bytes / 16 + 64 : bytes + 63));
    ax_pool_free(pool, block, bytes);
    end_pool(pool);
  }
}

/* After the first round nothing new is touched. */
static void warm(void **state) {
  (void)state;
  ax_pool *pool = new_pool();
  void *first[most], *later[most];
  round_of(pool, first);
  size_t once = taken(pool);
  for (int round = 0; round < 20; round++) {
    round_of(pool, later);
    assert_int_equal(taken(pool), once);
    for (int i = 0; i < most; i++) assert_true(among(later[i], first));
  }
  end_pool(pool);
}

/* Blocks whose sizes differ a little, two at a time: no more of them than there are at a time, each no larger than the class. */
static void sizes_that_vary(void **state) {
  (void)state;
  enum { all = 99392, varied = 24 };
  ax_pool *pool = new_pool();
  size_t settled = 0;
  for (int round = 0; round < 3; round++)
    for (int i = 0; i < varied; i++) {
      void *blocks[2];
      const size_t bytes[2] = {all + 64 * (size_t)(i * 7 % varied / 2), all + 64 * (size_t)(i * 5 % varied / 2)}; /* within 704 bytes: one class */
      for (int k = 0; k < 2; k++) TEST_OK(ax_pool_alloc(pool, bytes[k], &blocks[k]));
      for (int k = 0; k < 2; k++) memset(blocks[k], 5, bytes[k]);
      for (int k = 0; k < 2; k++) ax_pool_free(pool, blocks[k], bytes[k]);
      assert_true(taken(pool) <= 2 * (all + all / 64));
      if (round > 0) assert_int_equal(taken(pool), settled);
      settled = taken(pool);
    }
  end_pool(pool);
}

/* What another thread frees is not lost, except for the few blocks that it keeps for itself. */
typedef struct hand {
  ax_pool *pool;
  void *block;
  size_t bytes;
} hand;

static void *free_it(void *context) {
  hand *h = context;
  ax_pool_free(h->pool, h->block, h->bytes);
  return NULL;
}

static void freed_by_others(void **state) {
  (void)state;
  for (size_t s = 2; s < size_count; s++) {
    ax_pool *pool = new_pool();
    hand h = {.pool = pool, .bytes = sizes[s]};
    TEST_OK(ax_pool_alloc(pool, h.bytes, &h.block));
    size_t block = taken(pool);
    ax_pool_free(pool, h.block, h.bytes);
    for (int i = 0; i < 300; i++) {
      pthread_t thread;
      TEST_OK(ax_pool_alloc(pool, h.bytes, &h.block));
      assert_int_equal(pthread_create(&thread, NULL, free_it, &h), 0);
      pthread_join(thread, NULL);
    }
    /* two chains in each pocket, the second of them not full yet */
    assert_true(taken(pool) <= AX_POCKETS * (2 * AX_POCKET_BYTES + 2 * AX_POCKET_LEAST * block) + block);
    end_pool(pool);
  }
}

/* At once, where several share a pocket. */
static void *rounds(void *context) {
  void *blocks[most];
  for (int i = 0; i < 20; i++) round_of(context, blocks);
  return NULL;
}

static void at_once(void **state) {
  (void)state;
  enum { threads = 24 };
  pthread_t ids[threads];
  ax_pool *pool = new_pool();
  for (int i = 0; i < threads; i++) assert_int_equal(pthread_create(&ids[i], NULL, rounds, pool), 0);
  for (int i = 0; i < threads; i++) pthread_join(ids[i], NULL);
  end_pool(pool);
}

/* --- What is kept --- */

/* One size after the other, each a little larger than the one before, and then back: as much as was in use at a time, and a little. */
static void many_sizes_are_not_all_kept(void **state) {
  (void)state;
  enum { times = 60, step = 1 << 20, at_a_time = times * step };
  ax_pool *pool = new_pool();
  void *block;
  for (int i = 1; i <= 2 * times; i++) {
    const size_t bytes = (size_t)step * (size_t)(i <= times ? i : 2 * times + 1 - i);
    TEST_OK(ax_pool_alloc(pool, bytes, &block));
    ax_pool_free(pool, block, bytes);
    assert_true(taken(pool) <= (size_t)at_a_time + AX_POOL_SPARE);
  }
  void *last = block; /* the smallest was freed last, so it is there */
  TEST_OK(ax_pool_alloc(pool, step, &block));
  assert_ptr_equal(block, last);
  ax_pool_free(pool, block, step);
  end_pool(pool);
}

/* The same bytes in few blocks, then in many: no more are held than are in use. Where the same sizes come again, nothing is
   given back. */
static void huge_blocks_make_room(void **state) {
  (void)state;
  enum { all = 512 << 20, parts = 16 };
  ax_pool *pool = new_pool();
  void *blocks[parts], *before[parts];
  for (int count = 1; count <= parts; count *= 2)
    for (int round = 0; round < 3; round++) {
      for (int i = 0; i < count; i++) TEST_OK(ax_pool_alloc(pool, (size_t)all / (size_t)count, &blocks[i]));
      assert_true(taken(pool) <= (size_t)all + AX_POOL_SPARE);
      for (int i = 0; round > 0 && i < count; i++) {
        bool is = false;
        for (int k = 0; k < count; k++) is = is || before[k] == blocks[i];
        assert_true(is);
      }
      for (int i = 0; i < count; i++) ax_pool_free(pool, before[i] = blocks[i], (size_t)all / (size_t)count);
    }
  end_pool(pool);
}

/* Smaller ones are left for sizes that come in turn. */
static void smaller_blocks_stay(void **state) {
  (void)state;
  enum { first = 24 << 20, second = 25 << 20 };
  ax_pool *pool = new_pool();
  void *blocks[2];
  TEST_OK(ax_pool_alloc(pool, first, &blocks[0]));
  ax_pool_free(pool, blocks[0], first);
  TEST_OK(ax_pool_alloc(pool, second, &blocks[1]));
  ax_pool_free(pool, blocks[1], second);
  assert_int_equal(taken(pool), first + second);
  end_pool(pool);
}

/* Blocks of one size are all kept if they were in use at the same time, and come again. */
static void what_was_in_use_is_kept(void **state) {
  (void)state;
  enum { count = 100, bytes = 1 << 20 };
  void *blocks[count];
  ax_pool *pool = new_pool();
  for (int round = 0; round < 3; round++) {
    for (int i = 0; i < count; i++) TEST_OK(ax_pool_alloc(pool, bytes, &blocks[i]));
    assert_int_equal(taken(pool), count * (size_t)bytes);
    for (int i = 0; i < count; i++) ax_pool_free(pool, blocks[i], bytes);
    assert_int_equal(taken(pool), count * (size_t)bytes);
  }
  end_pool(pool);
}

/* --- Borrowed memory --- */

/* Borrows blocks of these sizes at a time and gives them back. */
static void borrow_at_once(ax_pool *pool, const size_t *bytes, int count, void **blocks) {
  for (int i = 0; i < count; i++) {
    TEST_OK(ax_pool_borrow(pool, bytes[i], &blocks[i]));
    assert_int_equal((uintptr_t)blocks[i] % 64, 0);
    memset(blocks[i], i, bytes[i]);
  }
  for (int i = 0; i < count; i++) assert_int_equal(((const unsigned char *)blocks[i])[bytes[i] - 1], i); /* they lie apart */
  for (int i = 0; i < count; i++) ax_pool_give_back(pool, blocks[i], bytes[i]);
}

/* There are never more large blocks than at a time, and the largest serves all. */
static void borrowed_blocks_fit_all(void **state) {
  (void)state;
  ax_pool *pool = new_pool();
  void *large, *block;
  TEST_OK(ax_pool_borrow(pool, 3000000, &large));
  ax_pool_give_back(pool, large, 3000000);
  for (size_t bytes = AX_POOL_SMALL + 1; bytes <= 3000000; bytes += bytes / 7) {
    TEST_OK(ax_pool_borrow(pool, bytes, &block));
    assert_ptr_equal(block, large);
    ax_pool_give_back(pool, block, bytes);
  }
  assert_in_range(taken(pool), 3000000, 3000000 + 3000000 / 64);
  TEST_OK(ax_pool_borrow(pool, 9000000, &block)); /* the smaller one makes room */
  ax_pool_give_back(pool, block, 9000000);
  assert_in_range(taken(pool), 9000000, 9000000 + 9000000 / 64);
  end_pool(pool);
}

/* Of several programs in turn, as much as the largest needs of each block; and once it is there nothing changes. */
static void borrowed_in_turn(void **state) {
  (void)state;
  enum { programs = 40, at_a_time = 5, largest = 2 << 20 };
  ax_pool *pool = new_pool();
  void *blocks[at_a_time];
  size_t bytes[at_a_time], settled = 0;
  for (int round = 0; round < 4; round++)
    for (int p = 0; p < programs; p++) {
      for (int i = 0; i < at_a_time; i++) bytes[i] = (size_t)largest - (size_t)(p * 17 % programs) * 30000 - (size_t)i * 100000;
      borrow_at_once(pool, bytes, at_a_time, blocks);
      assert_true(taken(pool) <= at_a_time * ((size_t)largest + largest / 64));
      if (round > 1) assert_int_equal(taken(pool), settled);
      settled = taken(pool);
    }
  end_pool(pool);
}

/* Small blocks take those of a large one, which then needs another: no more free bytes are kept than were asked for at a time. */
static void large_blocks_that_small_ones_have(void **state) {
  (void)state;
  enum { rounds_of_more = 12, large = 50 << 20, little = 1 << 20 };
  ax_pool *pool = new_pool();
  void *blocks[rounds_of_more + 1];
  for (int k = 1; k <= rounds_of_more; k++) {
    for (int i = 0; i < k; i++) TEST_OK(ax_pool_borrow(pool, little, &blocks[i]));
    TEST_OK(ax_pool_borrow(pool, large, &blocks[k]));
    for (int i = 0; i < k; i++) ax_pool_give_back(pool, blocks[i], little);
    ax_pool_give_back(pool, blocks[k], large);
    assert_true(taken(pool) <= (size_t)large + (size_t)k * little + AX_POOL_SPARE);
  }
  end_pool(pool);
}

static size_t held;
enum { all_there_is = 100 << 20 };

static void *alloc_of_little(size_t bytes) {
  if (bytes > all_there_is - held) return NULL;
  held += bytes;
  return ax_alloc(bytes);
}
static void free_of_little(void *memory, size_t bytes) {
  held -= bytes;
  ax_free(memory);
}

/* Free blocks of either kind make room for one of the other. What was refused is not taken for memory that was in use. */
static void free_blocks_make_room(void **state) {
  static const ax_pool_source source = {alloc_of_little, free_of_little, .shared = false};
  (void)state;
  ax_pool *pool = new_pool();
  void *block;
  pool->source = &source;
  for (int round = 0; round < 2; round++) {
    TEST_OK(ax_pool_alloc(pool, 60 << 20, &block));
    ax_pool_free(pool, block, 60 << 20);
    TEST_OK(ax_pool_borrow(pool, 70 << 20, &block));
    ax_pool_give_back(pool, block, 70 << 20);
  }
  assert_int_equal(ax_pool_alloc(pool, (size_t)64 << 30, &block), AX_OUT_OF_MEMORY);
  assert_int_equal(ax_pool_borrow(pool, (size_t)64 << 30, &block), AX_OUT_OF_MEMORY);
  assert_int_equal(taken(pool), 0);
  assert_int_equal(pool->large.most, 60 << 20);
  assert_in_range(pool->borrowed.most, 70 << 20, (70 << 20) + (70 << 20) / 64);
  end_pool(pool);
  assert_int_equal(held, 0);
}

/* Small memory is as any other. */
static void little_is_borrowed(void **state) {
  (void)state;
  static const size_t bytes[] = {0, 1, 4096, AX_POOL_SMALL};
  ax_pool *pool = new_pool();
  for (size_t i = 0; i < AX_COUNT(bytes); i++) {
    void *block;
    TEST_OK(ax_pool_borrow(pool, bytes[i], &block));
    ax_pool_give_back(pool, block, bytes[i]);
  }
  end_pool(pool);
}

/* --- A forked process --- */

enum { few_bytes = 16 << 10, many_bytes = 1 << 20 };

static void *map_shared(size_t bytes) {
  void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  return memory != MAP_FAILED ? memory : NULL;
}
static void unmap(void *memory, size_t bytes) { munmap(memory, bytes); }

/* What it frees of memory that it shares with its parent stays as it is. */
static void a_forked_process_leaves_shared_memory(void **state) {
  static const ax_pool_source source = {map_shared, unmap, .shared = true};
  char *blocks[2];
  const size_t bytes[2] = {few_bytes, many_bytes};
  (void)state;
  ax_pool *pool = new_pool();
  pool->source = &source;
  for (int i = 0; i < 2; i++) {
    TEST_OK(ax_pool_alloc(pool, bytes[i], (void **)&blocks[i]));
    memset(blocks[i], 7, bytes[i]);
  }
  const pid_t child = fork();
  if (child == 0) {
    for (int i = 0; i < 2; i++) ax_pool_free(pool, blocks[i], bytes[i]);
    ax_pool_deinit(pool);
    _exit(0);
  }
  assert_true(child > 0 && waitpid(child, NULL, 0) == child);
  for (int i = 0; i < 2; i++)
    for (size_t k = 0; k < bytes[i]; k++) assert_int_equal(blocks[i][k], 7);
  for (int i = 0; i < 2; i++) ax_pool_free(pool, blocks[i], bytes[i]);
  end_pool(pool);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(little_is_wasted),
                                     cmocka_unit_test(warm),
                                     cmocka_unit_test(sizes_that_vary),
                                     cmocka_unit_test(freed_by_others),
                                     cmocka_unit_test(at_once),
                                     cmocka_unit_test(many_sizes_are_not_all_kept),
                                     cmocka_unit_test(huge_blocks_make_room),
                                     cmocka_unit_test(smaller_blocks_stay),
                                     cmocka_unit_test(what_was_in_use_is_kept),
                                     cmocka_unit_test(borrowed_blocks_fit_all),
                                     cmocka_unit_test(borrowed_in_turn),
                                     cmocka_unit_test(large_blocks_that_small_ones_have),
                                     cmocka_unit_test(free_blocks_make_room),
                                     cmocka_unit_test(little_is_borrowed),
                                     cmocka_unit_test(a_forked_process_leaves_shared_memory)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
