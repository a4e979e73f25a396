/* Programs made at random in which arrays are overwritten in part: rows, columns and blocks put into a few values that are
   copied to one another's names, read in part before and after, added to, at places known and found out, in loops, branches and
   calls inside one another, on one device or on several that hold the same or their own. Overwriting in place must never be
   seen, under any policy, whoever owns the arguments; nor in gradients, where rows are added to sums of what began as zeros. */

#include "axle/collectives.h"
#include "axle/ops.h"
#include "support/cmocka.h"
#include "support/random.h"
#include "support/run.h"

enum { ROWS = 5, COLUMNS = 4, VALUES = 4, STEPS = 4, TRIPS = 3, OUT = VALUES };

typedef struct maker {
  test_random random;
  bool spread;   /* over devices: values 2 and 3 differ, the others are the same */
  bool gradient; /* of the program is wanted: no whiles */
  int depth;   /* of nesting still allowed */
  ax_value x[VALUES], counter;
} maker;

static int below(maker *m, int64_t n) { return (int)test_random_below(&m->random, n); }
static ax_value integer(double value) { return ax_full(AX_S32, AX_DIMS(), value); }
static ax_value scaled(ax_value x, double by) { return ax_mul(x, ax_full_like(x, by)); }
static bool differs(const maker *m, int v) { return m->spread && v >= VALUES / 2; }

/* Of those that may be part of value v. */
static ax_value some(maker *m, int v) { return m->x[below(m, m->spread && !differs(m, v) ? VALUES / 2 : VALUES)]; }

/* Where: known, the loop's counter, beyond the end, or found in the data. */
static ax_value place(maker *m, ax_value x) {
  switch (below(m, 5)) {
    case 0: return integer(below(m, ROWS));
    case 1: return m->counter;
    case 2: return ax_add(m->counter, integer(below(m, 7) - 3));
    case 3: return ax_sub(integer(ROWS - 1), m->counter);
    default: return ax_reshape(ax_argmax(ax_slice(x, AX_DIMS(0, 0), AX_DIMS(ROWS, 1), NULL), 0, AX_S32), AX_DIMS());
  }
}

static ax_value part_of(maker *m, ax_value x, int64_t rows, int64_t columns) {
  return ax_dynamic_slice(x, AX_VALUES(place(m, x), integer(below(m, 2))), AX_DIMS(rows, columns));
}

/* A row, two rows, a column or a block, of another value or made of one. */
static ax_value overwritten(maker *m, ax_value x, ax_value y) {
  static const int64_t sizes[][2] = {{1, COLUMNS}, {2, COLUMNS}, {ROWS, 1}, {2, 2}, {1, 1}, {ROWS, COLUMNS}};
  const int64_t *size = sizes[below(m, 6)];
  ax_value part = part_of(m, y, size[0], size[1]);
  if (below(m, 2) != 0) part = ax_tanh(ax_add(part, part_of(m, x, size[0], size[1])));
  return ax_dynamic_update_slice(x, part, AX_VALUES(place(m, x), integer(below(m, 2))));
}

/* As the gradient of a row that was looked up. */
static ax_value row_added(maker *m, ax_value x, ax_value y) {
  ax_value zeros = below(m, 4) != 0 ? ax_full_like(x, 0) : scaled(y, 0);
  ax_value table = ax_dynamic_update_slice(zeros, part_of(m, y, 1, COLUMNS), AX_VALUES(place(m, y), integer(0)));
  return below(m, 2) != 0 ? ax_add(x, table) : ax_add(table, x);
}

static ax_value changed(maker *m, int v) {
  ax_value x = some(m, v), y = some(m, v);
  switch (below(m, differs(m, v) ? 10 : 9)) {
    case 0: return x; /* another name for it */
    case 1: return scaled(ax_add(x, y), 0.6);
    case 2: return ax_tanh(ax_sub(x, y));
    case 3:
    case 4: return scaled(row_added(m, x, y), 0.8);
    case 9: return scaled(ax_psum(x, "a"), 0.4);
    default: return overwritten(m, x, y);
  }
}

/* --- Bodies: counter, values; a scan's also takes a row and gives one --- */

typedef struct body {
  maker maker;
  bool rows;
} body;

static void steps(maker *m, int count);

static ax_value varied(const maker *m, ax_value x, int v) {
  return differs(m, v) && ax_typeof(x).spread.varying == 0 ? ax_pvary(x, "a") : x;
}

static void run_body(const ax_value *in, ax_value *out, void *context) {
  const body *b = context;
  maker m = b->maker; /* the body may be traced again: the same choices each time */
  m.counter = in[0];
  for (int v = 0; v < VALUES; v++) m.x[v] = in[1 + v];
  if (b->rows)
    m.x[0] = ax_dynamic_update_slice(m.x[0], ax_expand_dims(in[1 + VALUES], 0), AX_VALUES(place(&m, m.x[1]), integer(0)));
  steps(&m, 1 + below(&m, STEPS));
  out[0] = ax_add(m.counter, integer(1));
  for (int v = 0; v < VALUES; v++) out[1 + v] = varied(&m, m.x[v], v);
  if (b->rows) out[1 + VALUES] = ax_reshape(part_of(&m, m.x[below(&m, 2)], 1, COLUMNS - 1), AX_DIMS(COLUMNS - 1));
}

static void still_to_go(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_lt(in[0], integer(TRIPS));
}

static body made(maker *m) {
  body b = {.maker = *m};
  b.maker.depth--;
  test_random_bits(&m->random);
  return b;
}

static void nested(maker *m) {
  body b = made(m), other = made(m);
  ax_value in[2 + VALUES] = {integer(0)}, out[2 + VALUES];
  for (int v = 0; v < VALUES; v++) in[1 + v] = m->x[v];
  int what = below(m, m->gradient ? 3 : 4);
  if (what == 0) {
    const int64_t dims[] = {TRIPS, COLUMNS};
    b.rows = true;
    in[1 + VALUES] = ax_slice(m->x[1], AX_DIMS(1, 0), AX_DIMS(1 + TRIPS, COLUMNS), NULL);
    ax_scan(AX_CLOSURE(run_body, 1 + VALUES + 1, 1 + VALUES + 1, &b), 1 + VALUES, TRIPS, below(m, 2) != 0, in, out);
    ax_value back = ax_pad(out[1 + VALUES], ax_full(AX_F32, AX_DIMS(), 0), AX_DIMS(1, 0), AX_DIMS(ROWS - 1 - dims[0], 1),
                           AX_DIMS(0, 0));
    out[2] = ax_add(out[2], scaled(back, 0.5));
  } else if (what == 1) {
    in[0] = m->counter;
    ax_closed_call(AX_CLOSURE(run_body, 1 + VALUES, 1 + VALUES, &b), in, out);
  } else if (what == 2) {
    ax_value index =
        below(m, 2) != 0
            ? m->counter
            : ax_convert_element_type(ax_lt(ax_reduce_max(m->x[0], AX_ALL_DIMS, false), ax_full(AX_F32, AX_DIMS(), 0.7)), AX_S32);
    in[0] = m->counter;
    ax_switch(index, AX_FNS(AX_CLOSURE(run_body, 1 + VALUES, 1 + VALUES, &b), AX_CLOSURE(run_body, 1 + VALUES, 1 + VALUES, &other)),
              in, out);
  } else {
    ax_while(AX_CLOSURE(still_to_go, 1 + VALUES, 1, &b), AX_CLOSURE(run_body, 1 + VALUES, 1 + VALUES, &b), in, out);
  }
  for (int v = 0; v < VALUES; v++) m->x[v] = out[1 + v];
}

static void steps(maker *m, int count) {
  for (int i = 0; i < count; i++) {
    int v = below(m, VALUES);
    if (m->depth > 0 && below(m, 4) == 0) nested(m);
    else m->x[v] = varied(m, changed(m, v), v);
  }
}

static void device(const ax_value *in, ax_value *out, void *context) {
  maker m = *(const maker *)context;
  for (int v = 0; v < VALUES; v++) m.x[v] = in[v];
  m.counter = integer(1);
  steps(&m, 2);
  nested(&m);
  steps(&m, STEPS);
  for (int v = 0; v < VALUES; v++) out[v] = m.x[v];
}

static void on_mesh(const ax_value *in, ax_value *out, void *context) {
  const maker *m = context;
  const char *specs[] = {"", "", "a", "a"};
  ax_mesh mesh;
  TEST_OK(ax_mesh_parse("a=3", &mesh));
  if (m->spread) test_shard_map(&mesh, specs, specs, false, AX_CLOSURE(device, VALUES, VALUES, context), in, out);
  else device(in, out, context);
}

static void loss(const ax_value *in, ax_value *out, void *context) {
  ax_value results[OUT];
  on_mesh(in, results, context);
  out[0] = ax_full(AX_F32, AX_DIMS(), 0);
  for (int i = 0; i < OUT; i++) out[0] = ax_add(out[0], ax_reduce_sum(results[i], AX_ALL_DIMS, false));
}

/* A derivative jumps where numbers are nearly equal, so evaluation may be on the other side. */
static void gradient(maker *m, const ax_type *types, uint64_t seed, bool show) {
  m->gradient = true;
  ax_program *program = test_trace(loss, m, types, VALUES, 1), *grad;
  TEST_OK(
      ax_program_value_and_grad(program, test_args((bool[VALUES]){true, true, true, true}, ax_program_in_count(program)), &grad));
  test_random_run(grad, seed, show, 1e30);
  ax_program_release(grad);
  ax_program_release(program);
}

static void one_program(uint64_t seed, bool show) {
  maker m = {.random = {seed}, .spread = seed % 2 == 0, .depth = 2};
  ax_type types[VALUES];
  for (int v = 0; v < VALUES; v++) types[v] = TEST_TYPE(AX_F32, differs(&m, v) ? 3 * ROWS : ROWS, COLUMNS);
  ax_program *program = test_trace(on_mesh, &m, types, VALUES, VALUES);
  test_random_run(program, seed + 1, show, 1e-3);
  if (seed % 3 == 0) gradient(&m, types, seed + 2, show);
  ax_program_release(program);
}

static void programs(void **state) {
  (void)state;
  test_each_seed(24, one_program);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(programs)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
