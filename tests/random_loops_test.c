/* Loops in loops made at random, with branches and calls between: scans that give a value of each step or do not, whiles whose
   tests read what is carried, no trips, one or several. Bodies capture what is around them, carry on each other's values, overwrite
   rows where the counter says, and exchange values with another device. Passes move, share and overwrite all of that memory, which
   must never be seen, under any policy. In some programs almost nothing has one device wait for the other, so that it may be whole
   loops behind. */

#include "axle/collectives.h"
#include "axle/ops.h"
#include "support/cmocka.h"
#include "support/random.h"
#include "support/run.h"

enum { SIDE = 20, PART = 4, IN = 4, OUT = 3, CARRIES = 3, LOOP = 1 + CARRIES, MOST = 24 };

typedef struct pool {
  ax_value x[MOST]; /* each [SIDE, SIDE] */
  int count;
} pool;

typedef struct maker {
  test_random random;
  bool collectives; /* all devices come here */
  bool sparse;      /* bodies pass on what comes or is made in a loop; only innermost ones exchange it */
  int depth;        /* of nesting still allowed */
  pool outer;       /* what bodies may capture */
  ax_value counter; /* the innermost loop's */
} maker;

static const int64_t dims[] = {SIDE, SIDE};

static int below(maker *m, int64_t n) { return (int)test_random_below(&m->random, n); }
static ax_value integer(double value) { return ax_full(AX_S32, AX_DIMS(), value); }
static ax_value scaled(ax_value x, double by) { return ax_mul(x, ax_full_like(x, by)); }
static ax_value turned(ax_value x) { return ax_transpose(x, AX_DIMS(1, 0)); }
static ax_value rows(ax_value x, int64_t from, int64_t to) {
  return ax_slice(x, AX_DIMS(from, 0), AX_DIMS(to, SIDE), NULL);
}
static ax_value greatest(ax_value x) { return ax_reduce_max(x, AX_ALL_DIMS, false); }

/* What a pool has no room for is not used. */
static void keep(pool *p, ax_value x) {
  if (p->count < MOST) p->x[p->count++] = x;
}

/* Of the last two. */
static ax_value recent(maker *m, const pool *p) { return p->x[p->count - 1 - below(m, 2)]; }

/* Of those here, or around. */
static ax_value pick(maker *m, const pool *p) {
  const pool *from = m->outer.count > 0 && below(m, 3) != 0 ? &m->outer : p;
  return from->x[below(m, from->count)];
}

static ax_value place(maker *m) { return below(m, 2) != 0 ? m->counter : integer(below(m, 9)); }

/* --- Values --- */

static ax_value constant(maker *m) {
  float data[SIDE * SIDE];
  const int which = below(m, 4);
  for (int i = 0; i < SIDE * SIDE; i++) data[i] = (float)((i * 7 + which * 13) % 29 - 14) / 40;
  return ax_constant((&(ax_type){.dtype = AX_F32, .rank = 2, .dims = {SIDE, SIDE}}), data);
}

static ax_value pointwise(maker *m, ax_value x, ax_value y) {
  switch (below(m, 6)) {
    case 0: return x; /* another name for it */
    case 1: return ax_sin(x);
    case 2: return scaled(ax_add(x, y), 0.7);
    case 3: return ax_max(ax_sin(x), y);
    case 4: return turned(ax_tanh(x));
    default: return ax_add(x, ax_convert_element_type(ax_convert_element_type(y, AX_BF16), AX_F32));
  }
}

static ax_value product(maker *m, ax_value x, ax_value y) {
  switch (below(m, 6)) {
    case 0: return ax_tanh(ax_matmul(x, constant(m)));
    case 1: return ax_tanh(ax_matmul(turned(x), ax_exp(ax_neg(ax_abs(y)))));
    case 2: {
      ax_value part = ax_dynamic_slice(x, AX_VALUES(place(m), integer(0)), AX_DIMS(SIDE / 2, SIDE));
      return ax_tanh(ax_matmul(turned(part), rows(y, 5, 5 + SIDE / 2)));
    }
    default: return ax_tanh(ax_dot_general(x, y, AX_DIMS(1), AX_DIMS(below(m, 2)), AX_DIMS(), AX_DIMS()));
  }
}

/* Rows, of x itself or of another, put into it or added to it. */
static ax_value overwritten(maker *m, ax_value x, ax_value y) {
  const int64_t many[] = {SIDE};
  ax_value from, at;
  switch (below(m, 3)) {
    case 0: from = rows(y, 1, 1 + PART); break;
    case 1: from = ax_tanh(rows(x, 1, 1 + PART)); break;
    default:
      at = ax_mul(ax_add(ax_iota(AX_S32, AX_LIST(1, many), 0), place(m)),
                  ax_full(AX_S32, AX_LIST(1, many), 3)); /* many of them beyond the end */
      return scaled(ax_at_add(x, at, y, 0, NULL), 0.4);
  }
  return ax_dynamic_update_slice(x, from, AX_VALUES(place(m), integer(0)));
}

static ax_value moved(maker *m, ax_value x, ax_value y) {
  switch (below(m, 3)) {
    case 0: return ax_sort(x, 1);
    case 1: return ax_concatenate(AX_VALUES(rows(x, 7, SIDE), ax_sin(rows(y, 0, 7))), 0);
    default: {
      ax_value sums = ax_reduce_sum(x, AX_DIMS(1), false);
      return ax_tanh(ax_mul(y, ax_broadcast_in_dim(sums, AX_LIST(2, dims), AX_DIMS(0))));
    }
  }
}

static ax_value exchanged(ax_value x) {
  static const int64_t swap[][2] = {{0, 1}, {1, 0}};
  return ax_ppermute(x, "a", 2, swap);
}

static ax_value next(maker *m, const pool *p) {
  ax_value x = below(m, 2) != 0 ? recent(m, p) : pick(m, p), y = pick(m, p);
  switch (below(m, m->collectives ? 12 : 9)) {
    case 0:
    case 1: return product(m, x, y);
    case 2:
    case 3: return overwritten(m, x, y);
    case 4: return moved(m, x, y);
    case 9: return ax_tanh(ax_psum(x, "a"));
    case 10:
    case 11: return exchanged(x);
    default: return pointwise(m, x, y);
  }
}

/* --- Bodies. They may be traced again: the same choices each time --- */

static void nested(maker *m, pool *p);

static void fill(maker *m, pool *p, int steps) {
  for (int i = 0; i < steps; i++) {
    if (m->depth > 0 && below(m, 3) == 0) nested(m, p);
    else keep(p, next(m, p));
  }
}

/* What is carried on: another carry, a value from around, what has come from the other device, or something made here. */
static ax_value carried(maker *m, const pool *p, const ax_value *carries, bool exchanges) {
  switch (below(m, exchanges ? 9 : 7)) {
    case 0: return carries[below(m, CARRIES)];
    case 1: return pick(m, p);
    case 2: return p->x[below(m, p->count)];
    case 7:
    case 8: return exchanged(pick(m, p));
    default: return recent(m, p);
  }
}

/* Counter, carries, `taken` values for this step (0 or 1) -> counter, carries, as many of this step. */
static void step(maker *m, const ax_value *in, ax_value *out, int taken) {
  pool p = {.count = 0};
  m->counter = in[0];
  for (int i = 1; i < LOOP + taken; i++) keep(&p, in[i]);
  const bool exchanges = m->collectives && (!m->sparse || m->depth == 0);
  if (!m->sparse) fill(m, &p, 1 + below(m, 6));
  else if (m->depth > 0) nested(m, &p);
  out[0] = ax_add(in[0], integer(1));
  for (int i = 1; i < LOOP; i++) out[i] = carried(m, &p, in + 1, exchanges);
  if (taken != 0) out[LOOP] = below(m, 2) != 0 ? recent(m, &p) : p.x[below(m, p.count)];
}

static AX_BODY(body) {
  maker m = *(const maker *)context;
  step(&m, in, out, 0);
}

static AX_BODY(body_of_steps) {
  maker m = *(const maker *)context;
  step(&m, in, out, 1);
}

/* Counts, and maybe looks at what has been made. */
static AX_BODY(goes_on) {
  maker m = *(const maker *)context;
  pool p = {.x = {in[1], in[2], in[3]}, .count = CARRIES};
  out[0] = ax_lt(in[0], integer(below(&m, 8) == 0 ? 0 : 1 + below(&m, 4)));
  if (below(&m, 2) == 0) return;
  m.depth = 0;
  fill(&m, &p, 3);
  ax_value most = greatest(p.x[p.count - 1]);
  out[0] = ax_and(out[0], ax_lt(m.collectives ? ax_pmax(most, "a") : most, ax_full(AX_F32, AX_DIMS(), 0.97)));
}

static AX_BODY(part) {
  maker m = *(const maker *)context;
  pool p = {.x = {in[0], in[1]}, .count = 2};
  fill(&m, &p, 1 + below(&m, 4));
  out[0] = p.x[p.count - 1];
}

/* --- Nesting --- */

static maker deeper(maker *m, const pool *p) {
  maker inner = *m;
  inner.depth--;
  for (int i = 0; i < p->count; i++) keep(&inner.outer, p->x[i]);
  test_random_bits(&m->random);
  return inner;
}

static void scan_of_steps(maker *m, pool *p, maker *inner, ax_value *in, ax_value *out) {
  const int trips = 1 + below(m, 5);
  in[LOOP] = ax_broadcast_in_dim(pick(m, p), AX_DIMS(trips, SIDE, SIDE), AX_DIMS(1, 2));
  ax_scan(AX_CLOSURE(body_of_steps, LOOP + 1, LOOP + 1, inner), LOOP, trips, below(m, 2) != 0, in, out);
}

/* Where all devices need not agree, which branch is taken may follow from the data. */
static ax_value branched(maker *m, maker *first, maker *second, const ax_value *in) {
  ax_value index = below(m, 2) != 0 ? m->counter
                                    : ax_convert_element_type(ax_lt(greatest(in[0]), ax_full(AX_F32, AX_DIMS(), 0.8)), AX_S32),
           out;
  first->collectives = second->collectives = false;
  ax_switch(index, AX_FNS(AX_CLOSURE(part, 2, 1, first), AX_CLOSURE(part, 2, 1, second)), in, &out);
  return out;
}

/* The same body twice, so that it may be compiled once. */
static ax_value called(maker *inner, ax_value *in) {
  ax_value out;
  ax_closed_call(AX_CLOSURE(part, 2, 1, inner), in, &out);
  in[0] = out;
  ax_closed_call(AX_CLOSURE(part, 2, 1, inner), in, &out);
  return out;
}

static void nested(maker *m, pool *p) {
  maker inner = deeper(m, p), other = deeper(m, p);
  ax_value in[LOOP + 1] = {integer(0)}, out[LOOP + 1];
  bool of_steps = false;
  for (int i = 1; i < LOOP; i++) in[i] = pick(m, p);
  switch (m->sparse ? 8 : below(m, 9)) {
    case 0: keep(p, called(&inner, in + 1)); return;
    case 1:
    case 2: keep(p, branched(m, &inner, &other, in + 1)); return;
    case 3:
    case 4: ax_while(AX_CLOSURE(goes_on, LOOP, 1, &other), AX_CLOSURE(body, LOOP, LOOP, &inner), in, out); break;
    case 5:
    case 6: ax_scan(AX_CLOSURE(body, LOOP, LOOP, &inner), LOOP, below(m, 6), false, in, out); break;
    default:
      scan_of_steps(m, p, &inner, in, out);
      of_steps = true;
  }
  for (int i = 1 + below(m, of_steps ? LOOP : CARRIES); i < LOOP; i++) keep(p, out[i]); /* the others' last values are not read */
  if (of_steps) keep(p, ax_reduce_max(out[LOOP], AX_DIMS(0), false));
}

static AX_BODY(device) {
  maker m = *(const maker *)context;
  pool p = {.x = {in[0], in[1], in[2], in[3]}, .count = IN};
  m.counter = integer(1);
  fill(&m, &p, 2);
  nested(&m, &p);
  fill(&m, &p, 3);
  for (int i = 0; i < OUT; i++) out[i] = p.x[p.count - 1 - i];
}

/* On one device, or two. */
static void one_program(uint64_t seed, bool show) {
  const bool two = seed % 2 != 0;
  maker m = {.random = {seed}, .collectives = two, .sparse = seed % 4 == 1, .depth = 3};
  const test_map map = {"a=2", {"a", "_", "a", "_"}, {"a", "a", "a"}, device, true, &m};
  ax_type types[IN];
  for (int i = 0; i < IN; i++) types[i] = TEST_TYPE(AX_F32, two && i % 2 == 0 ? 2 * SIDE : SIDE, SIDE);
  ax_program *program = two ? test_trace_map(&map, types) : test_trace(device, &m, types, IN, OUT);
  test_random_run(program, seed + 1, show, 1e-2);
  ax_program_release(program);
}

static void programs(void **state) {
  (void)state;
  test_each_seed(130, one_program);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(programs)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
