/* Programs made at random in which little memory is free: values of two shapes, each made of some before (element by element, by
   products, along rows, turned over), in loops and branches, some of them results and some of the results read again. Temporaries lie where results will
   be, what is computed element by element overwrites what it is computed from, and products work in memory between them. Nobody may
   see any of it: neither under any policy and number of workers, nor runs beside it, nor processes that share the mesh.

   Values of most programs are small, those of a few large: only these are overwritten, and have products that are made where they are added.

   How much memory small programs take is checked too, so that this is about memory that is shared indeed. */

#include "array/executable.h"
#include "axle/collectives.h"
#include "axle/ops.h"
#include "support/cmocka.h"
#include "support/random.h"
#include "support/run.h"

enum { SMALL = 24, LARGE = 96, /* large: enough bytes for temporaries that are overwritten, and for products that are made where they are added */
       VALUES = 5, STEPS = 9, TRIPS = 3, OUT = 4 };

typedef struct maker {
  test_random random;
  int64_t size; /* of each dimension */
  bool spread; /* over devices: all values differ along the axis */
  bool apart;  /* devices may be in different branches, so there are no sums over them */
  int depth;   /* of nesting still allowed */
  ax_value x[VALUES];
} maker;

static int below(maker *m, int64_t n) { return (int)test_random_below(&m->random, n); }
static ax_value some(maker *m) { return m->x[below(m, VALUES)]; }
static ax_value scaled(ax_value x, double by) { return ax_mul(x, ax_full_like(x, by)); }

/* Pieces of what two values are joined to: each of one value, or across both. */
static ax_value pieces_of(maker *m, ax_value x, ax_value y) {
  const ax_value parts[] = {ax_sin(x), y};
  const int64_t dim = below(m, 2), begin = below(m, 3) == 0 ? m->size / 2 : m->size;
  ax_value joined = ax_concatenate(AX_LIST(2, parts), dim);
  ax_value first = ax_slice(joined, AX_DIMS(0, 0), AX_DIMS(m->size, m->size), NULL);
  const int64_t row = dim == 0 ? begin : 0, column = dim == 0 ? 0 : begin;
  ax_value second = ax_slice(joined, AX_DIMS(row, column), AX_DIMS(row + m->size, column + m->size), NULL);
  return below(m, 2) == 0 ? scaled(ax_matmul(first, second), m->size == LARGE ? 0.1 : 0.2) : scaled(ax_add(first, second), 0.6);
}

/* Of the same shape as all values, and about as large. */
static ax_value changed(maker *m) {
  ax_value x = some(m), y = some(m);
  const double by = m->size == LARGE ? 0.5 : 1; /* for longer sums */
  switch (below(m, m->spread && !m->apart ? 12 : 10)) {
    case 0: return ax_tanh(ax_sub(x, y));
    case 1: return scaled(ax_add(x, y), 0.6);
    case 2:
    case 3: return scaled(ax_matmul(x, y), 0.2 * by);
    case 4: return ax_sub(x, scaled(ax_matmul(ax_transpose(x, AX_DIMS(1, 0)), y), 0.1 * by));
    case 5: return ax_sub(x, scaled(ax_reduce_sum(y, AX_DIMS(1), true), 0.1 * by));
    case 6: return ax_softmax(x, 1);
    case 7: return scaled(ax_transpose(ax_add(x, y), AX_DIMS(1, 0)), 0.7);
    case 8: return ax_sin(ax_mul(x, x));
    case 9: return pieces_of(m, x, y);
    case 10: return scaled(ax_psum(x, "a"), 0.3);
    default: return scaled(ax_psum(ax_matmul(ax_transpose(x, AX_DIMS(1, 0)), y), "a"), 0.1 * by);
  }
}

typedef struct body {
  maker maker;
} body;

static void steps(maker *m, int count);
static ax_value varied(const maker *m, ax_value x) {
  return m->spread && ax_typeof(x).spread.varying == 0 ? ax_pvary(x, "a") : x;
}

static void run_body(const ax_value *in, ax_value *out, void *context) {
  maker m = ((const body *)context)->maker; /* the body may be traced again: the same choices each time */
  for (int v = 0; v < VALUES; v++) m.x[v] = in[v];
  steps(&m, 1 + below(&m, 4));
  for (int v = 0; v < VALUES; v++) out[v] = varied(&m, m.x[v]);
}

static void nested(maker *m) {
  body one = {.maker = *m}, other = {.maker = *m};
  ax_value out[VALUES];
  one.maker.depth = other.maker.depth = m->depth - 1;
  test_random_bits(&m->random);
  other.maker.random = m->random;
  test_random_bits(&m->random);
  if (below(m, 2) == 0) {
    ax_scan(AX_CLOSURE(run_body, VALUES, VALUES, &one), VALUES, TRIPS, false, m->x, out);
  } else {
    one.maker.apart = other.maker.apart = true;
    const ax_value large = ax_lt(ax_reduce_max(m->x[0], AX_ALL_DIMS, false), ax_full(AX_F32, AX_DIMS(), 0.9));
    ax_switch(ax_convert_element_type(large, AX_S32),
              AX_FNS(AX_CLOSURE(run_body, VALUES, VALUES, &one), AX_CLOSURE(run_body, VALUES, VALUES, &other)), m->x, out);
  }
  for (int v = 0; v < VALUES; v++) m->x[v] = out[v];
}

static void steps(maker *m, int count) {
  for (int i = 0; i < count; i++) {
    if (m->depth > 0 && below(m, 5) == 0) nested(m);
    else m->x[below(m, VALUES)] = varied(m, changed(m));
  }
}

static void device(const ax_value *in, ax_value *out, void *context) {
  maker m = *(const maker *)context;
  for (int v = 0; v < VALUES; v++) m.x[v] = in[v];
  for (int k = 0; k < OUT; k++) { /* results at different times */
    steps(&m, 1 + below(&m, STEPS));
    out[k] = varied(&m, changed(&m));
    if (below(&m, 2) == 0) m.x[below(&m, VALUES)] = out[k];
  }
}

static void on_mesh(const ax_value *in, ax_value *out, void *context) {
  const maker *m = context;
  const char *specs[] = {"a", "a", "a", "a", "a"};
  ax_mesh mesh;
  TEST_OK(ax_mesh_parse("a=3", &mesh));
  if (m->spread) test_shard_map(&mesh, specs, specs, false, AX_CLOSURE(device, VALUES, OUT, context), in, out);
  else device(in, out, context);
}

static void one_program(uint64_t seed, bool show) {
  maker m = {.random = {seed}, .size = seed % 4 == 0 ? LARGE : SMALL, .spread = seed % 3 == 0, .depth = 2};
  ax_type types[VALUES];
  for (int v = 0; v < VALUES; v++) types[v] = TEST_TYPE(AX_F32, m.spread ? 3 * m.size : m.size, m.size);
  ax_program *program = test_trace(on_mesh, &m, types, VALUES, OUT);
  test_random_run(program, seed + 1, show, 1e-3);
  ax_program_release(program);
}

static void programs(void **state) {
  (void)state;
  test_each_seed(40, one_program);
}

/* --- How much --- */

enum { ROWS = 2048, COLUMNS = 64, BYTES = 4 * ROWS * COLUMNS };

static int64_t temporaries_of(ax_function function, uint32_t in_count, uint32_t out_count) {
  const ax_type types[] = {TEST_TYPE(AX_F32, ROWS, COLUMNS), TEST_TYPE(AX_F32, ROWS, COLUMNS), TEST_TYPE(AX_F32, COLUMNS, COLUMNS)};
  ax_program *program = test_trace(function, NULL, types, in_count, out_count);
  ax_runtime *runtime;
  ax_executable *executable;
  ax_memory memory;
  TEST_OK(ax_runtime_create(&(ax_runtime_options){.workers = 1}, &runtime));
  TEST_OK(ax_compile(runtime, program, NULL, &executable));
  TEST_OK(ax_executable_memory(executable, &memory));
  ax_executable_release(executable);
  ax_runtime_release(runtime);
  ax_program_release(program);
  return (int64_t)(memory.device.scratch + memory.device.kept);
}

/* The gradient is in the memory of the new weights. */
static void descended(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_sub(in[0], scaled(ax_matmul(in[1], in[2]), 0.1));
}
/* The product is read by another one, so it cannot be overwritten; it lies where the other result will be, which is made last. */
static void lodging(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_matmul(ax_matmul(in[0], in[2]), in[2]);
  out[1] = ax_transpose(ax_add(ax_tanh(out[0]), in[1]), AX_DIMS(1, 0));
}
/* What is joined is never whole in memory, as it is read in pieces alone. */
static void sliced(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  const ax_value parts[] = {ax_exp(in[0]), ax_tanh(in[1])};
  ax_value joined = ax_concatenate(AX_LIST(2, parts), 0);
  out[0] = ax_sub(ax_slice(joined, AX_DIMS(0, 0), AX_DIMS(ROWS, COLUMNS), NULL), in[1]);
  out[1] = ax_mul(ax_slice(joined, AX_DIMS(ROWS, 0), AX_DIMS(2 * ROWS, COLUMNS), NULL), in[0]);
}

static void little_memory_is_taken(void **state) {
  (void)state;
  const int64_t work = BYTES / 2; /* more than products of this size pack */
  assert_true(temporaries_of(descended, 3, 1) < work);
  assert_true(temporaries_of(lodging, 3, 2) < work);
  assert_true(temporaries_of(sliced, 3, 2) < work);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(programs), cmocka_unit_test(little_memory_is_taken)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
