/* Products that are added to carries and to arguments, made at random: what they are added to may be a factor of theirs, be read
   before or later, be overwritten in part, or change places with another carry, in loops within loops and in branches. Integers, so
   that each way of doing it gives the same numbers (plan/accumulate.c adds in place what may be). */
#include "axle/ops.h"
#include "axle/transform.h"
#include "support/cmocka.h"
#include "support/random.h"
#include "support/run.h"

enum { IN = 5, OUT = 3, CARRIED = 3, MOST = 40 };

typedef struct values {
  ax_value x[MOST];
  int count;
} values;

typedef struct maker {
  test_random random;
  int64_t side, batch; /* batch 0: matrices */
  int depth;           /* of loops and branches that may still follow */
} maker;

static int below(maker *m, int n) { return (int)test_random_below(&m->random, n); }
static void keep(values *v, ax_value x) {
  if (v->count < MOST) v->x[v->count++] = x;
}
static ax_value pick(maker *m, const values *v) { return v->x[below(m, v->count)]; }

static ax_value product(maker *m, ax_value x, ax_value y) {
  const int64_t first = m->batch > 0, left = first + below(m, 2), right = first + below(m, 2);
  return ax_dot_general(x, y, AX_DIMS(left), AX_DIMS(right), AX_LIST(first, ((int64_t[]){0})), AX_LIST(first, ((int64_t[]){0})));
}

static ax_value sum(maker *m, ax_value x, ax_value y) { return below(m, 2) == 0 ? ax_add(x, y) : ax_add(y, x); }

/* Some of the first rows of y, from some row of x on. */
static ax_value overwritten(maker *m, ax_value x, ax_value y) {
  const int64_t none[3] = {0, 0, 0}, limit[3] = {m->batch, 1 + below(m, (int)m->side), m->side};
  const ax_value zero = ax_integer(0), start[3] = {zero, ax_integer(below(m, (int)m->side)), zero};
  const int skip = m->batch > 0 ? 0 : 1;
  return ax_dynamic_update_slice(x, ax_slice(y, none + skip, limit + skip, NULL), start + skip);
}

static void loop(maker *m, values *v);
static void branches(maker *m, values *v);

static void step(maker *m, values *v, ax_value *carry) {
  ax_value *to = &carry[below(m, CARRIED)];
  const ax_value x = pick(m, v), y = pick(m, v), old = *to;
  const int kind = below(m, 10);
  if (kind < 2) *to = sum(m, old, product(m, kind == 0 ? old : x, kind == 0 && below(m, 2) == 0 ? x : old)); /* of itself */
  else if (kind == 2) *to = sum(m, sum(m, old, product(m, x, y)), product(m, y, x));
  else if (kind == 3) *to = overwritten(m, old, x);
  else if (kind == 4 && m->depth > 0) loop(m, v);
  else if (kind == 5 && m->depth > 0) branches(m, v);
  else *to = sum(m, old, product(m, x, y));
  if (kind == 6) keep(v, product(m, old, x)); /* as it was before */
  if (kind == 7) keep(v, ax_sub(old, y));
  keep(v, *to);
}

static void some_steps(maker *m, values *v, ax_value *carry, int most) {
  for (int i = 0; i < CARRIED; i++) keep(v, carry[i]);
  for (int n = 1 + below(m, most); n > 0; n--) step(m, v, carry);
}

static AX_BODY(body) {
  maker m = *(const maker *)context;
  values v = {0};
  ax_value carry[CARRIED] = {in[0], in[1], in[2]};
  keep(&v, in[CARRIED]);
  some_steps(&m, &v, carry, 5);
  const int first = below(&m, 4) == 0 ? 1 : 0; /* two change places */
  out[0] = carry[first];
  out[1] = carry[1 - first];
  out[2] = carry[2];
  out[CARRIED] = pick(&m, &v);
}

static maker inner_of(maker *m) {
  return (maker){.random = {(uint64_t)below(m, 1 << 30) + 1}, .side = m->side, .batch = m->batch, .depth = m->depth - 1};
}

static void loop(maker *m, values *v) {
  maker inner = inner_of(m);
  const int64_t steps = below(m, 8) == 0 ? 0 : 1 + below(m, 3), dims[4] = {steps, m->batch, m->side, m->side},
                flat[3] = {steps, m->side, m->side};
  const ax_value over = ax_broadcast_in_dim(pick(m, v), AX_LIST(m->batch > 0 ? 4 : 3, m->batch > 0 ? dims : flat),
                                            AX_LIST(m->batch > 0 ? 3 : 2, ((int64_t[]){1, 2, 3})));
  ax_value in[CARRIED + 1] = {pick(m, v), pick(m, v), pick(m, v), over}, out[CARRIED + 1];
  ax_scan(AX_CLOSURE(body, CARRIED + 1, CARRIED + 1, &inner), CARRIED, steps, below(m, 2) == 0, in, out);
  for (int i = 0; i < CARRIED; i++) keep(v, out[i]);
  if (steps > 0) keep(v, ax_reduce_sum(out[CARRIED], AX_DIMS(0), false));
}

static AX_BODY(branch) {
  maker m = *(const maker *)context;
  values v = {0};
  ax_value carry[CARRIED] = {in[0], in[1], in[2]};
  some_steps(&m, &v, carry, 3);
  out[0] = carry[0];
}

static void branches(maker *m, values *v) {
  maker one = inner_of(m), other = inner_of(m);
  const ax_value in[CARRIED] = {pick(m, v), pick(m, v), pick(m, v)};
  ax_value out;
  const ax_value test = ax_gt(ax_reduce_sum(in[0], AX_ALL_DIMS, false), ax_integer(0));
  ax_if(test, AX_CLOSURE(branch, CARRIED, 1, &one), AX_CLOSURE(branch, CARRIED, 1, &other), in, &out);
  keep(v, out);
}

static AX_BODY(whole) {
  maker m = *(const maker *)context;
  values v = {0};
  ax_value carry[CARRIED] = {in[0], in[1], in[2]};
  for (int i = CARRIED; i < IN; i++) keep(&v, in[i]);
  some_steps(&m, &v, carry, 8);
  loop(&m, &v);
  for (int i = 0; i + 1 < OUT; i++) out[i] = carry[i];
  out[OUT - 1] = v.x[v.count - 1];
}

static void one_program(uint64_t seed, bool show) {
  static const int64_t sides[] = {1, 2, 8, 20, 33, 48}, batches[] = {0, 0, 1, 2};
  test_random random = {seed};
  const int64_t side = sides[test_random_below(&random, AX_COUNT(sides))],
                batch = batches[test_random_below(&random, AX_COUNT(batches))];
  const maker m = {.random = {7 * seed + 3}, .side = side, .batch = batch, .depth = 2};
  const ax_type type =
      batch > 0 ? ax_array_type(AX_S32, AX_DIMS(batch, side, side)) : ax_array_type(AX_S32, AX_DIMS(side, side));
  const ax_type types[IN] = {type, type, type, type, type};
  ax_program *program = test_trace(whole, (void *)(uintptr_t)&m, types, IN, OUT);
  ax_tensor *in[IN];
  for (int i = 0; i < IN; i++) in[i] = test_random_tensor(&random, type, -3, 3);
  if (show) test_show_program(program);
  test_every_way(program, in, 0, seed, __FILE__, __LINE__);
  test_release(in, IN);
  ax_program_release(program);
}

static void programs(void **state) {
  (void)state;
  test_each_seed(60, one_program);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(programs)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
