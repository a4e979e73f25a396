/* Products: in tiles, with the same bits for every number of threads; one that finds no memory to work in fails the run, whoever
   computed it. */
#include <math.h>
#include <stdlib.h>

#include "axle/ops.h"
#include "support/cmocka.h"
#include "support/random.h"
#include "support/run.h"

/* Memory of which the given piece for a product's work from now on is not there; 0: all is. */
static atomic_int fails_in;

typedef struct sizes { /* bytes that a product below works in, and nothing else asks for */
  size_t least, most;
} sizes;

static void *allocate(void *user, size_t bytes, size_t align) {
  const sizes *fails = user;
  void *memory = NULL;
  int left = bytes >= fails->least && bytes < fails->most ? atomic_load(&fails_in) : 0;
  while (left > 0 && !atomic_compare_exchange_weak(&fails_in, &left, left - 1)) continue;
  return left == 1 || posix_memalign(&memory, align, bytes) != 0 ? NULL : memory;
}
static void release(void *user, void *memory) {
  (void)user;
  free(memory);
}

/* Products of f64 by several threads at once, each with the second operand turned over: OpenBLAS without threads of its own lost
   them. */
static void turned_products(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_dot_general(in[0], in[0], AX_DIMS(1), AX_DIMS(1), AX_DIMS(), AX_DIMS());
  out[0] = ax_dot_general(out[0], in[0], AX_DIMS(1), AX_DIMS(0), AX_DIMS(), AX_DIMS());
}
static void turned_products_on(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_mesh mesh;
  TEST_OK(ax_mesh_parse("d=8", &mesh));
  ax_shard_map(&mesh, "d -> d", AX_CLOSURE(turned_products, 1, 1, NULL), in, out);
}
static void products_at_once(void **state) {
  (void)state;
  const ax_type type = ax_array_type(AX_F64, AX_DIMS(32, 2));
  ax_program *program = test_trace(turned_products_on, NULL, &type, 1, 1);
  for (uint64_t seed = 1; seed <= 20; seed++) test_random_run(program, seed, false, 1e-12);
  ax_program_release(program);
}

static void square(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  const ax_type type = ax_typeof(in[0]);
  const int64_t batch = type.rank - 2, contract = batch + 1, batches[] = {0};
  out[0] = ax_dot_general(in[0], in[0], AX_LIST(1, &contract), AX_LIST(1, &contract), AX_LIST((uint32_t)batch, batches),
                          AX_LIST((uint32_t)batch, batches)); /* so that the right one is packed */
}

static void square_on_devices(const ax_value *in, ax_value *out, void *context) {
  ax_shard_map(context, "d -> d", AX_CLOSURE(square, 1, 1, NULL), in, out);
}

/* With no memory for the nth part, then with memory for all. mesh: "d=2", say; "": one device. is_kept: the plan keeps memory free for
   the work, so none is asked for. */
static void check(const char *devices, ax_type type, uint32_t workers, int nth, bool is_kept, sizes fails) {
  ax_runtime *runtime;
  ax_executable *executable;
  ax_array *x, *y;
  ax_tensor *data;
  ax_mesh mesh;
  TEST_OK(ax_mesh_parse(devices, &mesh));
  ax_program *program = test_trace(mesh.count > 0 ? square_on_devices : square, &mesh, &type, 1, 1);
  test_random random = {1};
  data = test_random_tensor(&random, type, -1, 1);
  TEST_OK(ax_runtime_create(&(ax_runtime_options){.workers = workers}, &runtime));
  TEST_OK(ax_compile(runtime, program, NULL, &executable));
  test_use_threads(executable);
  TEST_OK(ax_device_put_data(runtime, &mesh, mesh.count > 0 ? "d" : "", &type, data->data, &x));
  const ax_allocator scarce = {allocate, release, &fails};
  ax_set_allocator(&scarce);
  atomic_store(&fails_in, nth);
  if (is_kept) {
    TEST_OK(ax_run(executable, &x, &y));
    assert_int_equal(atomic_exchange(&fails_in, 0), nth); /* nothing of the size was asked for */
    ax_array_release(y);
  } else {
    TEST_FAILS(ax_run(executable, &x, &y), AX_OUT_OF_MEMORY, "a product f32[");
    assert_null(y);
  }
  TEST_OK(ax_run(executable, &x, &y));
  ax_array_release(y);
  ax_array_release(x);
  ax_executable_release(executable);
  ax_runtime_release(runtime);
  ax_tensor_release(data);
  ax_program_release(program);
  ax_set_allocator(NULL);
}

static const sizes columns_of_64 = {25000, 26000};

static void failed_products(void **state) {
  (void)state;
  check("", TEST_TYPE(AX_F32, 64, 100), 1, 1, false, columns_of_64);
  check("", TEST_TYPE(AX_F32, 3, 64, 100), 1, 1, false, columns_of_64);
}

/* Large enough for parts that other threads take. */
static void failed_parts(void **state) {
  (void)state;
  for (int nth = 1; nth <= 7; nth += 3) check("", TEST_TYPE(AX_F32, 64, 64, 100), 2, nth, false, columns_of_64);
}

/* Large enough for a tile a thread, of which the first finds no memory; on one device it asks for none. */
static void failed_tiles(void **state) {
  (void)state;
  check("d=2", TEST_TYPE(AX_F32, 1200, 600), 2, 1, false, (sizes){350000, 850000});
  check("", TEST_TYPE(AX_F32, 600, 600), 2, 1, true, (sizes){350000, 450000});
}

typedef struct orientation {
  int64_t lhs_contract, rhs_contract;
} orientation;

static void multiply(const ax_value *in, ax_value *out, void *context) {
  const orientation *o = context;
  out[0] = ax_dot_general(in[0], in[1], AX_LIST(1, &o->lhs_contract), AX_LIST(1, &o->rhs_contract), AX_DIMS(), AX_DIMS());
}

/* Cut into tiles, in every orientation; whoever computes them. */
static void tiles(void **state) {
  (void)state;
  enum { m = 300, n = 517, k = 200 };
  ax_runtime *runtime;
  test_random random = {1};
  TEST_OK(ax_runtime_create(&(ax_runtime_options){.workers = 3}, &runtime));
  for (int way = 0; way < 8; way++) {
    orientation o = {way & 1, way >> 1 & 1};
    ax_dtype dtype = way & 4 ? AX_F64 : AX_F32;
    ax_type types[] = {o.lhs_contract ? TEST_TYPE(dtype, m, k) : TEST_TYPE(dtype, k, m),
                       o.rhs_contract ? TEST_TYPE(dtype, n, k) : TEST_TYPE(dtype, k, n)};
    ax_program *program = test_trace(multiply, &o, types, 2, 1);
    ax_tensor *in[] = {test_random_tensor(&random, types[0], -1, 1), test_random_tensor(&random, types[1], -1, 1)}, *out;
    test_execute(runtime, program, in, &out);
    for (int64_t i = 0; i < m * n; i += 37) {
      double sum = 0;
      for (int64_t p = 0; p < k; p++)
        sum += test_get(in[0], o.lhs_contract ? i / n * k + p : p * m + i / n) *
               test_get(in[1], o.rhs_contract ? i % n * k + p : p * n + i % n);
      TEST_NEAR(test_get(out, i), sum, 1e-4);
    }
    test_release(in, 2);
    test_release(&out, 1);
    ax_program_release(program);
  }
  ax_runtime_release(runtime);
}

typedef struct product {
  ax_dtype dtype;
  int64_t batch, m, n, k; /* batch 0: it has none */
  bool lhs_turned, rhs_turned;
} product;

static void multiply_batch(const ax_value *in, ax_value *out, void *context) {
  const product *p = context;
  const uint32_t rank = p->batch > 0;
  const int64_t lhs = rank + !p->lhs_turned, rhs = rank + p->rhs_turned, batch = 0;
  out[0] = ax_dot_general(in[0], in[1], AX_LIST(1, &lhs), AX_LIST(1, &rhs), AX_LIST(rank, &batch), AX_LIST(rank, &batch));
}

static ax_type matrices(const product *p, int64_t rows, int64_t columns, bool turned) {
  const int64_t dims[] = {p->batch, turned ? columns : rows, turned ? rows : columns};
  return p->batch > 0 ? ax_array_type(p->dtype, AX_LIST(3, dims)) : ax_array_type(p->dtype, AX_LIST(2, dims + 1));
}

static ax_tensor *multiplied(ax_program *program, ax_tensor *const *in, uint32_t workers) {
  ax_runtime *runtime;
  ax_tensor *out;
  TEST_OK(ax_runtime_create(&(ax_runtime_options){.workers = workers}, &runtime));
  test_execute(runtime, program, in, &out);
  ax_runtime_release(runtime);
  return out;
}

static void check_sums(const product *p, ax_tensor *const *in, const ax_tensor *out) {
  const int64_t m = p->m, n = p->n, k = p->k, count = (p->batch > 0 ? p->batch : 1) * m * n;
  for (int64_t at = 0; at < count; at += count / 60) {
    const int64_t which = at / (m * n), i = at / n % m, j = at % n;
    double sum = 0;
    for (int64_t x = 0; x < k; x++)
      sum += test_get(in[0], which * m * k + (p->lhs_turned ? x * m + i : i * k + x)) *
             test_get(in[1], which * k * n + (p->rhs_turned ? j * k + x : x * n + j));
    if (ax_is_float(p->dtype)) TEST_NEAR(test_get(out, at), sum, p->dtype == AX_BF16 ? 0.02 * (1 + fabs(sum)) : 1e-3);
    else assert_int_equal((int64_t)sum & 255, (int64_t)test_get(out, at) & 255);
  }
}

/* Large enough for several tiles a thread: of every kind of number, in every orientation, some of a batch; with more rows than are
   packed at a time; a few columns more than whole panels. Those of bf16 with a small factor are made row by row with what narrows
   them. */
static void large_tiles(void **state) {
  (void)state;
  static const product products[] = {
      {AX_F32, 0, 300, 517, 400, 0, 0},   {AX_F32, 0, 300, 517, 400, 1, 0},   {AX_F32, 0, 71, 1030, 700, 0, 1},
      {AX_F32, 3, 200, 450, 400, 1, 1},   {AX_F64, 0, 301, 300, 300, 0, 0},   {AX_F64, 2, 301, 300, 300, 1, 0},
      {AX_BF16, 0, 500, 500, 300, 0, 0},  {AX_BF16, 0, 500, 500, 301, 1, 0},  {AX_F32, 0, 401, 300, 11000, 0, 0},
      {AX_F32, 0, 500, 300, 9000, 1, 1},  {AX_S8, 0, 701, 700, 300, 1, 0},    {AX_F32, 0, 60, 700, 9000, 1, 0},
      {AX_F32, 0, 700, 100, 300, 1, 1},   {AX_F32, 0, 257, 1100, 5000, 0, 1}, {AX_BF16, 0, 301, 100, 901, 1, 1},
      {AX_F32, 0, 1100, 600, 9000, 1, 0}, {AX_BF16, 0, 1024, 128, 640, 0, 1}, {AX_BF16, 0, 2000, 200, 300, 1, 0},
      {AX_BF16, 9, 256, 128, 300, 0, 1},  {AX_BF16, 40, 128, 64, 128, 0, 0},
  };
  test_random random = {7};
  for (size_t i = 0; i < AX_COUNT(products); i++) {
    product p = products[i];
    const ax_type types[] = {matrices(&p, p.m, p.k, p.lhs_turned), matrices(&p, p.k, p.n, p.rhs_turned)};
    ax_program *program = test_trace(multiply_batch, &p, types, 2, 1);
    ax_tensor *in[] = {test_random_tensor(&random, types[0], -1, 1), test_random_tensor(&random, types[1], -1, 1)};
    ax_tensor *alone = multiplied(program, in, 1);
    check_sums(&p, in, alone);
    for (uint32_t workers = 2; workers <= 7; workers += 5) {
      ax_tensor *out = multiplied(program, in, workers);
      assert_true(test_same_tensors(out, alone));
      test_release(&out, 1);
    }
    test_release(&alone, 1);
    test_release(in, 2);
    ax_program_release(program);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(failed_products), cmocka_unit_test(failed_parts),
                                     cmocka_unit_test(failed_tiles),    cmocka_unit_test(tiles),
                                     cmocka_unit_test(large_tiles),     cmocka_unit_test(products_at_once)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
