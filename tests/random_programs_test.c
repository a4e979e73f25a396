/* Programs made at random: values that differ along some axes and are the same along others, fused and not, in loops, branches
   and calls, with collectives between. Every policy must give the same bits, and reference evaluation's values. Gradients must
   too, of programs in which nothing jumps. Some have values as large as it takes for passes that leave small ones alone. */

#include "axle/collectives.h"
#include "axle/ops.h"
#include "support/cmocka.h"
#include "support/random.h"
#include "support/run.h"

enum { ROWS = 4, NARROW = 6, POOL = 12, IN = 3, OUT = 3 };

typedef struct maker {
  test_random random;
  const ax_mesh *mesh;
  ax_dtype dtype;
  int64_t wide; /* values are [ROWS, NARROW * wide] */
  int depth;    /* of nesting still allowed */
  bool collectives;
  bool apart;   /* devices go different ways along a, so collectives are over b */
  bool smooth;  /* nothing jumps, nor do derivatives */
} maker;

static int64_t below(maker *m, int64_t n) { return test_random_below(&m->random, n); }
static int64_t columns(const maker *m) { return NARROW * m->wide; }
static ax_value number(const maker *m, double value) { return ax_full(m->dtype, AX_DIMS(), value); }
static ax_value greater(const maker *m, ax_value x, ax_value y) { return m->smooth ? ax_tanh(ax_add(x, y)) : ax_max(x, y); }
static ax_value greatest(const maker *m, ax_value x, const int64_t *axes, uint32_t count) {
  return m->smooth ? ax_tanh(ax_reduce_sum(x, AX_LIST(count, axes), false)) : ax_reduce_max(x, AX_LIST(count, axes), false);
}

static const char *some_axes(maker *m) {
  static const char *const two[] = {"a", "b", "a,b", "b,a"};
  return m->mesh->count == 1 ? "a" : m->apart ? "b" : two[below(m, 4)];
}

/* What comes to x again, or to something simpler. */
static ax_value needless(maker *m, ax_value x, ax_value y) {
  const int64_t turn[] = {1, 0}, flat[] = {ROWS * columns(m)}, narrow[] = {columns(m), ROWS}, dims[] = {ROWS, columns(m)};
  switch (below(m, 7)) {
    case 0: return ax_mul(ax_full_like(x, 1), x);
    case 1: return ax_add(x, ax_full_like(x, -0.0));
    case 2: return ax_neg(ax_neg(ax_div(x, ax_full_like(x, 1))));
    case 3: return ax_where(ax_lt(x, y), ax_sub(x, ax_full_like(x, 0)), x); /* smooth all the same */
    case 4: return ax_convert_element_type(ax_convert_element_type(x, AX_F64), m->dtype);
    case 5: return ax_transpose(ax_transpose(x, turn), turn);
    default: return ax_reshape(ax_reshape(ax_reshape(x, AX_LIST(1, flat)), AX_LIST(2, narrow)), AX_LIST(2, dims));
  }
}

static ax_value pointwise(maker *m, ax_value x, ax_value y) {
  switch (below(m, 8)) {
    case 7: return needless(m, x, y);
    case 0: return ax_add(x, y);
    case 1: return ax_sub(x, y);
    case 2: return ax_tanh(ax_mul(x, y));
    case 3: return greater(m, x, y);
    case 4:
      return m->smooth ? ax_neg(ax_logistic(y))
                       : ax_where(ax_lt(x, y), x, y); /* does not jump where they are equal but for rounding */
    case 5: return ax_logistic(x);
    default: return ax_mul(x, ax_full_like(x, 0.5));
  }
}

/* --- Views: the same elements under other dimensions, in other orders, with pointwise work between --- */

static ax_value reshaped(maker *m, ax_value x) {
  static const struct {
    uint32_t rank;
    int64_t dims[4];
  } shapes[] = {{1, {24}},      {2, {6, 4}},    {2, {3, 8}},       {3, {4, 2, 3}},
                {3, {2, 2, 6}}, {3, {4, 1, 6}}, {4, {2, 2, 3, 2}}, {2, {4, 6}}};
  int64_t i = below(m, AX_COUNT(shapes)), dims[4];
  for (uint32_t d = 0; d < shapes[i].rank; d++) dims[d] = shapes[i].dims[d] * (d + 1 == shapes[i].rank ? m->wide : 1);
  return ax_reshape(x, AX_LIST(shapes[i].rank, dims));
}

static ax_value turned(maker *m, ax_value x) {
  uint32_t rank = ax_typeof(x).rank;
  int64_t order[4] = {0, 1, 2, 3};
  for (uint32_t d = rank; d > 1; d--) {
    int64_t other = below(m, d), kept = order[d - 1];
    order[d - 1] = order[other], order[other] = kept;
  }
  return ax_transpose(x, order);
}

/* Slices along one dimension, put beside each other, or in the place of what was cut off. */
static ax_value shifted(maker *m, ax_value x) {
  ax_type type = ax_typeof(x);
  int64_t axis = below(m, type.rank), at, low[4] = {0}, high[4], before[4] = {0}, after[4] = {0}, none[4] = {0};
  if (type.dims[axis] == 1) return x;
  at = 1 + below(m, type.dims[axis] - 1);
  for (uint32_t d = 0; d < type.rank; d++) high[d] = type.dims[d];
  low[axis] = at;
  ax_value end = ax_slice(x, low, high, NULL);
  low[axis] = 0, high[axis] = at;
  ax_value begin = ax_slice(x, low, high, NULL);
  if (below(m, 2) == 0) return ax_concatenate(AX_VALUES(end, below(m, 2) == 0 ? ax_neg(begin) : begin), (uint32_t)axis);
  before[axis] = at;
  if (below(m, 2) == 0) return ax_pad(end, number(m, 0.25), before, after, none);
  after[axis] = at;
  return ax_pad(end, number(m, -0.5), none, after, none);
}

static ax_value viewed(maker *m, ax_value x, ax_value y) {
  const int64_t dims[] = {ROWS, columns(m)};
  ax_value first = x;
  for (int64_t i = 2 + below(m, 4); i > 0; i--) {
    x = below(m, 3) == 0 ? turned(m, x) : below(m, 3) == 0 ? shifted(m, x) : reshaped(m, x);
    ax_type type = ax_typeof(x);
    switch (below(m, 4)) {
      case 0: x = ax_tanh(x); break;
      case 1: x = ax_add(x, ax_reshape(below(m, 2) == 0 ? first : y, AX_LIST(type.rank, type.dims))); break;
      case 2: x = ax_mul(x, ax_full_like(x, 0.5)); break;
      default: break;
    }
  }
  x = ax_reshape(x, AX_LIST(2, dims));
  return below(m, 2) == 0 ? x : ax_sub(x, first);
}

static ax_value moved(maker *m, ax_value x, ax_value y) {
  const int64_t turn[] = {1, 0}, dims[] = {ROWS, columns(m)}, flat[] = {ROWS * columns(m)}, starts[] = {1, 2},
                limits[] = {4, columns(m) - 1};
  const int64_t low[] = {1, 2}, high[] = {0, 1}, none[] = {0, 0}, axis = below(m, 2);
  switch (below(m, 9)) {
    case 6:
    case 7:
    case 8: return viewed(m, x, y);
    case 0: return ax_transpose(ax_tanh(ax_transpose(x, turn)), turn);
    case 1: return ax_reshape(ax_add(ax_reshape(x, AX_LIST(1, flat)), ax_reshape(y, AX_LIST(1, flat))), AX_LIST(2, dims));
    case 2: return ax_pad(ax_slice(x, starts, limits, NULL), number(m, 0.25), low, high, none);
    case 3: return ax_sub(x, ax_expand_dims(ax_reduce_mean(x, AX_LIST(1, &axis), false), axis));
    case 4: return ax_softmax(x, axis);
    default: {
      ax_value both[] = {ax_slice(x, none, AX_DIMS(2, columns(m)), NULL), ax_slice(y, AX_DIMS(2, 0), dims, NULL)};
      return ax_concatenate(AX_LIST(2, both), 0);
    }
  }
}

static ax_value product(maker *m, ax_value x, ax_value y) {
  const int64_t turn[] = {1, 0};
  return ax_tanh(ax_matmul(ax_mul(ax_matmul(x, ax_transpose(y, turn)), number(m, 1 / (double)m->wide)), x));
}

static ax_value communicated(maker *m, ax_value x) {
  static const int64_t swap[][2] = {{0, 1}, {1, 0}};
  const char *axes = some_axes(m);
  int64_t n = ax_axis_size(axes), axis = 0;
  switch (below(m, 6)) {
    case 0: return ax_mul(ax_psum(x, axes), ax_full_like(x, 0.5));
    case 1: return ax_pmean(x, axes);
    case 2: return m->smooth ? ax_psum(ax_tanh(x), axes) : ax_pmax(x, axes);
    case 3: return ax_ppermute(x, m->apart ? "b" : "a", (uint32_t)(1 + below(m, 2)), swap);
    case 4: return greatest(m, ax_all_gather(x, axes, 0, false), &axis, 1);
    default: {
      ax_value many = ax_reshape(x, AX_DIMS(ROWS * columns(m)));
      if (ROWS * columns(m) % n != 0) return m->smooth ? x : ax_pmin(x, axes);
      ax_value part = ax_psum_scatter(many, axes, 0, true);
      return ax_mul(ax_reshape(ax_all_gather(part, axes, 0, true), AX_DIMS(ROWS, columns(m))), ax_full_like(x, 0.25));
    }
  }
}

static void fill(maker *m, ax_value *pool, int count, int steps);

static void loop_body(const ax_value *in, ax_value *out, void *context) {
  maker m = *(maker *)context; /* the body may be traced again: the same choices each time */
  ax_value pool[POOL] = {in[0], in[1], in[2]};
  fill(&m, pool, 3, 4);
  for (int i = 0; i < 2; i++) out[i] = pool[3 + i];
  out[2] = greatest(&m, pool[5], NULL, 0);
}

static void branch_body(const ax_value *in, ax_value *out, void *context) {
  maker m = *(maker *)context;
  ax_value pool[POOL] = {in[0], in[1], in[0]};
  fill(&m, pool, 3, 3);
  out[0] = pool[5];
}

static maker deeper(const maker *m) {
  maker inner = *m;
  inner.depth--;
  return inner;
}

static ax_value looped(maker *m, ax_value x, ax_value y) {
  maker inner = deeper(m);
  test_random_bits(&m->random);
  const int64_t dims[] = {3, ROWS, columns(m)}, where[] = {1, 2};
  ax_value in[] = {x, y, ax_mul(ax_broadcast_in_dim(x, AX_LIST(3, dims), where), number(m, 0.5))}, out[3];
  ax_scan(AX_CLOSURE(loop_body, 3, 3, &inner), 2, 3, below(m, 2) != 0, in, out);
  return ax_sub(ax_add(out[0], out[1]), greatest(m, out[2], NULL, 0));
}

static ax_value branched(maker *m, ax_value x, ax_value y) {
  bool varying = below(m, 2) != 0;
  maker first = deeper(m), second;
  first.collectives = first.collectives && (!varying || m->mesh->count > 1);
  first.apart = first.apart || varying;
  second = first;
  test_random_bits(&second.random);
  test_random_bits(&m->random);
  test_random_bits(&m->random);
  ax_value index = varying ? ax_axis_index("a") : ax_full(AX_S32, AX_DIMS(), (double)below(m, 2)), out;
  ax_value in[] = {x, y};
  const ax_fn bodies[] = {AX_CLOSURE(branch_body, 2, 1, &first), AX_CLOSURE(branch_body, 2, 1, &second)};
  ax_switch(index, AX_LIST(2, bodies), in, &out);
  return out;
}

/* The same body twice, so that it may be compiled once. */
static ax_value called(maker *m, ax_value x, ax_value y) {
  maker inner = deeper(m);
  test_random_bits(&m->random);
  ax_value in[] = {x, y}, out;
  ax_closed_call(AX_CLOSURE(branch_body, 2, 1, &inner), in, &out);
  in[below(m, 2)] = out;
  ax_closed_call(AX_CLOSURE(branch_body, 2, 1, &inner), in, &out);
  return out;
}

static ax_value next(maker *m, ax_value x, ax_value y) {
  int64_t choice = below(m, 12);
  if (choice < 5) return pointwise(m, x, y);
  if (choice < 8) return moved(m, x, y);
  if (choice < 9) return product(m, x, y);
  if (choice < 11 && m->collectives) return communicated(m, x);
  if (m->depth == 0) return pointwise(m, x, y);
  int64_t which = below(m, 5);
  return which < 2 ? looped(m, x, y) : which < 4 ? branched(m, x, y) : called(m, x, y);
}

static void fill(maker *m, ax_value *pool, int count, int steps) {
  for (int i = 0; i < steps; i++) {
    ax_value x = pool[below(m, count + i)];
    pool[count + i] = next(m, x, pool[below(m, count + i)]);
  }
}

static void device(const ax_value *in, ax_value *out, void *context) {
  maker m = *(maker *)context;
  ax_value pool[POOL] = {in[0], in[1], in[2]};
  fill(&m, pool, IN, POOL - IN);
  for (int i = 0; i < OUT; i++) out[i] = pool[POOL - 1 - i];
}

static void on_mesh(const ax_value *in, ax_value *out, void *context) {
  const maker *m = context;
  bool one = m->mesh->count == 1;
  const char *in_specs[] = {"a", one ? "" : "_, b", ""}, *whole = one ? "a" : "a, b";
  const char *out_specs[] = {whole, whole, whole};
  test_shard_map(m->mesh, in_specs, out_specs, false, AX_CLOSURE(device, IN, OUT, context), in, out);
}

static void loss(const ax_value *in, ax_value *out, void *context) {
  ax_value results[OUT];
  on_mesh(in, results, context);
  out[0] = number(context, 0);
  for (int i = 0; i < OUT; i++) out[0] = ax_add(out[0], ax_reduce_sum(results[i], AX_ALL_DIMS, false));
}

static ax_program *made(ax_function function, maker *m, uint32_t out_count) {
  const ax_mesh *mesh = m->mesh;
  int64_t a = mesh->axis[0].size, b = mesh->count > 1 ? mesh->axis[1].size : 1;
  const ax_type types[] = {TEST_TYPE(m->dtype, ROWS *a, columns(m)), TEST_TYPE(m->dtype, ROWS, columns(m) * b),
                           TEST_TYPE(m->dtype, ROWS, columns(m))};
  return test_trace(function, m, types, IN, out_count);
}

static void gradient(maker m, uint64_t seed, bool show) {
  ax_program *grad, *program;
  m.smooth = true;
  m.dtype = AX_F64;
  program = made(loss, &m, 1);
  TEST_OK(ax_program_value_and_grad(program, test_args((bool[IN]){true, true, true}, ax_program_in_count(program)), &grad));
  test_random_run(grad, seed, show, 1e-6);
  ax_program_release(grad);
  ax_program_release(program);
}

/* Now and then values are as large as those that are made again, cut into parts, and added by the last; in others runs are long
   enough for parts of a value to be kernels of their own. */
static void one_program(uint64_t seed, bool show) {
  ax_mesh mesh;
  TEST_OK(ax_mesh_parse(seed % 3 == 0 ? "a=3" : seed % 3 == 1 ? "a=2,b=2" : "a=4,b=2", &mesh));
  maker m = {.random = {seed},
             .mesh = &mesh,
             .dtype = AX_F32,
             .wide = seed % 8 == 4   ? 200
                     : seed % 3 == 1 ? 8
                                     : 1,
             .depth = 2,
             .collectives = true};
  ax_program *program = made(on_mesh, &m, OUT);
  test_random_run(program, seed + 1, show, 2e-4);
  ax_program_release(program);
  if (seed % 4 == 0) gradient(m, seed + 2, show);
}

static void programs(void **state) {
  (void)state;
  test_each_seed(24, one_program);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(programs)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
