/* Programs made at random to be hard to put in order: two values for each set of axes they vary over, written again and again from
   one another, by collectives too, in loops, branches, calls and shard_maps over one more axis inside one another; devices may be
   apart in loops and branches. A value that is the same on several devices is written by one of them while the others may still
   read it. Every policy must give the same bits, and reference evaluation's values. */

#include <string.h>

#include "axle/collectives.h"
#include "axle/ops.h"
#include "support/cmocka.h"
#include "support/random.h"
#include "support/run.h"

enum { N = 4, SETS = 4, VALUES = 2 * SETS, STEPS = 3, A = 1, B = 2 };

/* Value v varies over the axes in the set v / 2: A, B, both or none. */
typedef struct maker {
  test_random random;
  const ax_mesh *mesh;
  bool unchecked, inside; /* a shard_map over c */
  int depth, apart; /* of nesting still allowed; the axes along which devices may be in different places */
  ax_value values[VALUES];
} maker;

static int below(maker *m, int64_t n) { return (int)test_random_below(&m->random, n); }
static ax_value number(double value) { return ax_full(AX_F32, AX_DIMS(), value); }
static ax_value integer(double value) { return ax_full(AX_S32, AX_DIMS(), value); }
static ax_value scaled(ax_value x, double by) { return ax_mul(x, number(by)); }
static const char *names(int set) { return set == A ? "a" : set == B ? "b" : "a,b"; }

static ax_value varied(const maker *m, ax_value x, int set) {
  int missing = set & ~(int)ax_typeof(x).spread.varying;
  return m->unchecked || missing == 0 ? x : ax_pvary(x, names(missing));
}

static ax_value some(maker *m, int set) { /* of those that vary over no other axes */
  int part;
  do part = below(m, SETS);
  while ((part & ~set) != 0);
  return m->values[part * 2 + below(m, 2)];
}

/* The members' own parts of x, different ones, one after the other. */
static ax_value parts(ax_value x, int64_t n) {
  ax_value part[9];
  for (int64_t i = 0; i < n; i++) part[i] = scaled(ax_expand_dims(x, 0), 1 - 0.1 * (double)i);
  return ax_concatenate(AX_LIST((uint32_t)n, part), 0);
}

static ax_value communicated(maker *m, ax_value x, int over, bool varies) {
  const char *axes = names(over);
  int64_t n = ax_axis_size(axes), first = 0, ring[9][2];
  x = varied(m, x, over);
  for (int64_t i = 0; i < n; i++) ring[i][0] = i, ring[i][1] = (i + 1) % n;
  int which = (int)below(m, varies ? 8 : 4);
  bool begun = below(m, 2) != 0;
  uint32_t pairs = (uint32_t)(1 + below(m, n));
  switch (which) {
    case 0:
      return scaled(ax_psum(x, axes), 0.4);
    case 1:
      return begun ? ax_done(ax_start(ax_pmax(x, axes))) : ax_pmax(x, axes);
    case 2:
      x = begun ? ax_done(ax_start(ax_all_gather_invariant(x, axes, 0, false))) : ax_all_gather_invariant(x, axes, 0, false);
      return ax_reduce_max(x, AX_LIST(1, &first), false);
    case 3:
      return ax_done(ax_psum_start(scaled(x, 0.3), axes));
    case 4:
      return begun ? ax_done(ax_ppermute_start(x, axes, pairs, (const int64_t(*)[2])ring))
                   : ax_ppermute(x, axes, pairs, (const int64_t(*)[2])ring);
    case 5:
      x = parts(x, n);
      x = begun ? ax_done(ax_all_to_all_start(x, axes, 0, 0, false)) : ax_all_to_all(x, axes, 0, 0, false);
      return ax_reduce_sum(scaled(x, 0.3), AX_LIST(1, &first), false);
    case 6:
      return begun ? ax_done(ax_pbroadcast_start(x, axes, n - 1)) : ax_pbroadcast(x, axes, below(m, n));
    default:
      x = parts(x, n);
      return scaled(begun ? ax_done(ax_psum_scatter_start(x, axes, 0, false)) : ax_psum_scatter(x, axes, 0, false), 0.4);
  }
}

/* What differs along c, and then does not. */
static ax_value communicated_inside(maker *m, ax_value x, int over) {
  static const char *const c_first[] = {"c", "c,a", "c,b", "c,a,b"}, *const c_last[] = {"c", "a,c", "b,c", "a,b,c"};
  const char *axes = below(m, 2) != 0 ? c_first[over] : c_last[over];
  const int64_t first = 0;
  x = ax_mul(varied(m, x, over), ax_add(number(0.5), scaled(ax_convert_element_type(ax_axis_index("c"), AX_F32), 0.3)));
  switch (below(m, 4)) {
    case 0:
      return scaled(ax_psum(x, axes), 0.3);
    case 1:
      return ax_done(ax_start(ax_pmax(x, axes)));
    case 2:
      return ax_reduce_max(ax_all_gather_invariant(x, axes, 0, false), AX_LIST(1, &first), false);
    default:
      return ax_pmin(ax_ppermute(x, "c", (uint32_t)(1 + below(m, 2)), (const int64_t[][2]){{0, 1}, {1, 0}}), axes);
  }
}

static ax_value computed(maker *m, int set) {
  ax_value x = some(m, set), y = some(m, set);
  const int64_t turn[] = {1, 0}, row = below(m, 2);
  int over = below(m, SETS) & ~m->apart;
  switch (below(m, m->inside ? 11 : 9)) {
    case 0:
      return ax_tanh(ax_matmul(x, y));
    case 1:
      return scaled(ax_add(x, y), 0.6);
    case 2:
      return ax_sub(x, ax_expand_dims(ax_reduce_mean(y, AX_LIST(1, &row), false), row));
    case 3:
      return ax_transpose(ax_tanh(x), turn);
    case 4:
      return ax_transpose(x, turn);
    case 5:
      return ax_dynamic_update_slice(x, ax_slice(y, AX_DIMS(0, 1), AX_DIMS(2, 3), NULL),
                                     AX_VALUES(integer(below(m, 3)), integer(1)));
    case 9:
    case 10:
      return communicated_inside(m, some(m, set | over), over);
    default:
      return over != 0 ? communicated(m, some(m, set | over), over, (set & over) == over) : ax_max(scaled(x, 0.7), y);
  }
}

static void steps(maker *m, int count);

/* --- Bodies: of the values that vary over all axes along which devices are apart in them --- */

typedef struct body {
  maker maker;
  int trips, axis; /* how often, or, where devices are apart, along which axis */
} body;

static bool carried(const body *b, int v) { return ((v / 2) & b->maker.apart) == b->maker.apart; }

static uint32_t list(const body *b, const ax_value *values, ax_value *in) {
  uint32_t count = 0;
  for (int v = 0; v < VALUES; v++)
    if (carried(b, v)) in[count++] = values[v];
  return count;
}

static void put_back(const body *b, ax_value *values, const ax_value *out) {
  for (int v = 0; v < VALUES; v++)
    if (carried(b, v)) values[v] = *out++;
}

static void run_body(const ax_value *in, ax_value *out, void *context) {
  const body *b = context;
  maker m = b->maker; /* the body may be traced again: the same choices each time */
  put_back(b, m.values, in);
  steps(&m, STEPS + below(&m, STEPS));
  for (int v = 0; v < VALUES; v++) m.values[v] = varied(&m, m.values[v], v / 2);
  list(b, m.values, out);
}

static void run_counted(const ax_value *in, ax_value *out, void *context) {
  out[0] = ax_add(in[0], integer(1));
  run_body(in + 1, out + 1, context);
}

static void still_to_go(const ax_value *in, ax_value *out, void *context) {
  const body *b = context;
  out[0] = b->axis != 0 ? ax_le(in[0], ax_axis_index(names(b->axis))) : ax_lt(in[0], integer(b->trips));
}

/* `axis`: along which devices will be apart; in an unchecked program they may only seem to be. */
static body made(maker *m, int axis) {
  body b = {.maker = *m, .trips = below(m, 4), .axis = axis};
  b.maker.depth--;
  b.maker.apart |= axis;
  test_random_bits(&m->random);
  return b;
}

static ax_value counter(maker *m, int set) {
  bool seems = m->unchecked && below(m, 2) != 0;
  return seems ? ax_mul(ax_axis_index("a"), integer(0)) : varied(m, integer(0), set);
}

/* All values are whole on every device of the axis that comes to them. */
static void run_inside(body *b, const ax_value *in, uint32_t count, ax_value *out) {
  static const char *const specs[VALUES] = {"", "", "", "", "", "", "", ""};
  ax_mesh mesh;
  TEST_OK(ax_mesh_parse("c=2", &mesh));
  b->maker.inside = true;
  test_shard_map(&mesh, specs, specs, b->maker.unchecked, AX_CLOSURE(run_body, count, count, b), in, out);
}

static void nested(maker *m) {
  int what = below(m, m->inside ? 4 : 5), axis = what == 1 || what == 2 ? below(m, 3) : 0;
  body b = made(m, axis), other = made(m, axis);
  ax_value in[1 + VALUES], out[1 + VALUES];
  uint32_t count = list(&b, m->values, in + 1);
  if (what == 0) {
    ax_scan(AX_CLOSURE(run_body, count, count, &b), count, b.trips, below(m, 2) != 0, in + 1, out + 1);
  } else if (what == 1) {
    in[0] = counter(m, b.maker.apart);
    ax_while(AX_CLOSURE(still_to_go, count + 1, 1, &b), AX_CLOSURE(run_counted, count + 1, count + 1, &b), in, out);
  } else if (what == 3) { /* up to three calls of one body */
    for (int i = below(m, 3); i >= 0; i--) {
      ax_closed_call(AX_CLOSURE(run_body, count, count, &b), in + 1, out + 1);
      memcpy(in + 1, out + 1, count * sizeof in[0]);
    }
  } else if (what == 4) {
    run_inside(&b, in + 1, count, out + 1);
  } else {
    ax_value least = ax_reduce_max(m->values[0], AX_ALL_DIMS, false);
    ax_value index = axis != 0 ? ax_axis_index(names(axis)) : ax_convert_element_type(ax_lt(least, number(0.6)), AX_S32);
    ax_switch(ax_add(index, counter(m, 0)),
              AX_FNS(AX_CLOSURE(run_body, count, count, &b), AX_CLOSURE(run_body, count, count, &other)), in + 1, out + 1);
  }
  put_back(&b, m->values, out + 1);
}

static void steps(maker *m, int count) {
  for (int i = 0; i < count; i++) {
    int set = below(m, SETS) | m->apart;
    if (m->depth > 0 && below(m, 4) == 0)
      nested(m);
    else
      m->values[set * 2 + below(m, 2)] = varied(m, computed(m, set), set);
  }
}

/* --- Programs --- */

static void device(const ax_value *in, ax_value *out, void *context) {
  maker m = *(maker *)context;
  for (int set = 0; set < SETS; set++) {
    m.values[set * 2] = in[set];
    m.values[set * 2 + 1] = ax_tanh(in[set]);
  }
  nested(&m);
  steps(&m, STEPS);
  nested(&m);
  for (int set = 0; set < SETS; set++) out[set] = ax_add(m.values[set * 2], m.values[set * 2 + 1]);
}

static void on_mesh(const ax_value *in, ax_value *out, void *context) {
  const maker *m = context;
  const char *specs[] = {"", "a", "b", "a,b"};
  test_shard_map(m->mesh, specs, specs, m->unchecked, AX_CLOSURE(device, SETS, SETS, context), in, out);
}

static void one_program(uint64_t seed, bool show) {
  ax_mesh mesh;
  TEST_OK(ax_mesh_parse(seed % 3 == 0 ? "a=2,b=2" : seed % 3 == 1 ? "a=3,b=2" : "a=2,b=3", &mesh));
  int64_t a = N * mesh.axis[0].size, b = N * mesh.axis[1].size;
  ax_type types[] = {TEST_TYPE(AX_F32, N, N), TEST_TYPE(AX_F32, a, N), TEST_TYPE(AX_F32, b, N), TEST_TYPE(AX_F32, a, b)};
  maker m = {.random = {seed}, .mesh = &mesh, .unchecked = seed / 3 % 3 == 0, .depth = 3};
  ax_program *program = test_trace(on_mesh, &m, types, SETS, SETS);
  test_random_run(program, seed + 1, show, 2e-3);
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
