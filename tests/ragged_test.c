/* ragged_all_to_all: slices at random, uneven, empty, out of order and apart, against what follows from its definition; in loops
   and branches; derivatives; batched over its own axis; in several processes; as other collectives, for plugins that lack it.
   ragged_faults_test.c has what is wrong with slices.
   */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "axle/collectives.h"
#include "axle/ops.h"
#include "axle/transform.h"
#include "array/executable.h"
#include "collectives/ragged.h"
#include "plain/plain.h"
#include "support/cmocka.h"
#include "support/random.h"
#include "support/run.h"
#include "support/spreads.h"

enum { FROM, SIZE, TO, EXPECTED, tables };

/* Slices of all members: by table, then member, then number. */
typedef struct layout {
  int64_t members, each, from_rows, to_rows, columns;
  double *table[tables];
} layout;

static int64_t slices_of(const layout *l) { return l->members * l->each; }
static double *at(const layout *l, int table, int64_t member, int64_t slice) {
  return &l->table[table][member * slices_of(l) + slice];
}

static void layout_free(layout *l) {
  for (int k = 0; k < tables; k++) free(l->table[k]);
}

/* Every receiver has its slices in a random order, with room before some of them; senders' may lie on each other. */
static layout random_layout(test_random *random, int64_t members, int64_t each) {
  layout l = {
      .members = members, .each = each, .from_rows = test_random_below(random, 12), .columns = test_random_below(random, 4)};
  for (int k = 0; k < tables; k++) l.table[k] = calloc((size_t)(members * slices_of(&l)), sizeof(double));
  int64_t *order = calloc((size_t)slices_of(&l), sizeof order[0]), most = 0;
  for (int64_t r = 0; r < members; r++) {
    int64_t row = 0;
    for (int64_t i = 0; i < slices_of(&l); i++) { /* shuffled as it grows */
      int64_t j = test_random_below(random, i + 1);
      order[i] = order[j];
      order[j] = i;
    }
    for (int64_t i = 0; i < slices_of(&l); i++) {
      int64_t sender = order[i] / each, slice = r * each + order[i] % each;
      int64_t size = test_random_below(random, 3) == 0 ? 0 : test_random_below(random, l.from_rows + 1);
      row += test_random_below(random, 4) == 0 ? test_random_below(random, 3) : 0;
      *at(&l, FROM, sender, slice) = (double)test_random_below(random, l.from_rows - size + 1);
      *at(&l, SIZE, sender, slice) = *at(&l, EXPECTED, r, order[i]) = (double)size;
      *at(&l, TO, sender, slice) = (double)row;
      row += size;
    }
    most = row > most ? row : most;
  }
  l.to_rows = most + test_random_below(random, 3);
  free(order);
  return l;
}

/* result[m]: output[m] with every row in its place. */
static void put_rows(const layout *l, const ax_tensor *operand, ax_tensor *result) {
  for (int64_t sender = 0; sender < l->members; sender++)
    for (int64_t i = 0; i < slices_of(l); i++)
      for (int64_t row = 0; row < *at(l, SIZE, sender, i); row++)
        for (int64_t c = 0; c < l->columns; c++) {
          int64_t from = (sender * l->from_rows + (int64_t)*at(l, FROM, sender, i) + row) * l->columns + c;
          int64_t to = (i / l->each * l->to_rows + (int64_t)*at(l, TO, sender, i) + row) * l->columns + c;
          test_set(result, to, test_get(operand, from));
        }
}

/* --- Programs over all members' arrays, end to end --- */

typedef struct shape {
  const char *mesh, *axes, *spec;
  int64_t members;
} shape;

static const shape shapes[] = {{"d=1", "d", "d", 1}, {"d=2", "d", "d", 2}, {"d=3", "d", "d", 3}, {"a=2,b=2", "a,b", "a+b", 4},
                               {"a=2,b=3", "b,a", "b+a", 6}, {"d=8", "d", "d", 8}, {"a=2,b=2,c=2", "c,a,b", "c+a+b", 8}};

static void exchange(const ax_value *in, ax_value *out, void *context) {
  out[0] = ax_ragged_all_to_all(in[0], in[1], in[2], in[3], in[4], in[5], context);
}

/* The program without the primitive gives the same; tolerance 0: bit by bit. */
static void check_plain(ax_program *program, ax_tensor *const *in, double tolerance) {
  ax_program *plain;
  ax_tensor *got[2] = {NULL}, *wanted[2] = {NULL};
  assert_true(program->out_count <= 2);
  TEST_OK(ax_plain_program(program, &(ax_plain_lacks){.ragged_all_to_all = true}, &plain));
  assert_int_equal(test_count_prim(plain, "ragged_all_to_all"), 0);
  TEST_OK(ax_program_verify(plain));
  TEST_OK(test_try(program, in, wanted));
  TEST_OK(test_try(plain, in, got));
  for (uint32_t k = 0; k < program->out_count; k++)
    if (tolerance == 0) assert_true(test_same_tensors(got[k], wanted[k]));
    else TEST_TENSORS_NEAR(got[k], wanted[k], tolerance);
  test_release(got, 2), test_release(wanted, 2);
  ax_program_release(plain);
}

static void types_of(const layout *l, ax_type *types) {
  types[0] = ax_array_type(AX_F32, AX_DIMS(l->members * l->from_rows, l->columns));
  types[1] = ax_array_type(AX_F32, AX_DIMS(l->members * l->to_rows, l->columns));
  for (int k = 0; k < tables; k++) types[2 + k] = ax_array_type(AX_S32, AX_DIMS(l->members * slices_of(l)));
}

static ax_program *program_of(const shape *s, const ax_type *types, ax_function body, bool unchecked) {
  const test_map map = {s->mesh,        {s->spec, s->spec, s->spec, s->spec, s->spec, s->spec}, {s->spec}, body, unchecked,
                        (void *)s->axes};
  return test_trace_map(&map, types);
}

static void inputs_of(const layout *l, test_random *random, ax_tensor **in) {
  ax_type types[6];
  types_of(l, types);
  for (int k = 0; k < 2; k++) in[k] = test_random_tensor(random, types[k], -1, 1);
  for (int k = 0; k < tables; k++) in[2 + k] = test_tensor(types[2 + k], l->table[k]);
}

/* By definition. Gradients of sum(result * t) are t where rows went, added, and t where none came. */
static void compare_gradients(const layout *l, ax_program *program, ax_tensor **in, ax_tensor *t) {
  ax_program *gradient;
  ax_tensor *operands[7] = {in[0], in[1], in[2], in[3], in[4], in[5], t}, *got[2];
  ax_tensor *operand = test_tensor(ax_array_type(AX_F32, AX_LIST(2, in[0]->dims)), NULL), *output;
  TEST_OK(ax_tensor_copy(t, &output));
  TEST_OK(ax_program_grad(program, AX_ARGS(0, 1), &gradient));
  for (int64_t i = 0; i < test_elems(operand); i++) test_set(operand, i, 0);
  for (int64_t sender = 0; sender < l->members; sender++)
    for (int64_t i = 0; i < slices_of(l); i++)
      for (int64_t at_ = 0; at_ < (int64_t)*at(l, SIZE, sender, i) * l->columns; at_++) {
        int64_t from = (sender * l->from_rows + (int64_t)*at(l, FROM, sender, i)) * l->columns + at_;
        int64_t to = (i / l->each * l->to_rows + (int64_t)*at(l, TO, sender, i)) * l->columns + at_;
        test_set(operand, from, test_get(operand, from) + test_get(t, to));
        test_set(output, to, 0);
      }
  TEST_OK(ax_evaluate(gradient, operands, got));
  TEST_TENSORS_NEAR(got[0], operand, 1e-5);
  TEST_TENSORS_NEAR(got[1], output, 0);
  test_release(got, 2);
  TEST_EVERY_WAY(gradient, operands, 0);
  check_plain(gradient, operands, 1e-5);
  ax_tensor_release(operand);
  ax_tensor_release(output);
  ax_program_release(gradient);
}

typedef struct weighed {
  const shape *shape;
  const ax_mesh *mesh;
  const char *specs;
} weighed;

static void weigh(const ax_value *in, ax_value *out, void *context) {
  const weighed *w = context;
  ax_value made;
  ax_shard_map(w->mesh, w->specs, AX_CLOSURE(exchange, 6, 1, (void *)w->shape->axes), in, &made);
  out[0] = ax_reduce_sum(ax_mul(made, in[6]), AX_ALL_DIMS, false);
}

static void gradients_at_random(uint64_t seed, bool show) {
  test_random random = {seed};
  const shape *s = &shapes[test_random_below(&random, AX_COUNT(shapes))];
  layout l = random_layout(&random, s->members, 1 + test_random_below(&random, 3));
  ax_tensor *in[7];
  ax_type types[7];
  ax_mesh mesh;
  char specs[64];
  ax_program *program;
  types_of(&l, types);
  types[6] = types[1];
  snprintf(specs, sizeof specs, "%s -> %s", s->spec, s->spec);
  TEST_OK(ax_mesh_parse(s->mesh, &mesh));
  TEST_OK(ax_trace(AX_CLOSURE(weigh, 7, 1, &(weighed){s, &mesh, specs}), types, &program));
  if (show) test_show_program(program);
  inputs_of(&l, &random, in);
  in[6] = test_random_tensor(&random, types[6], -1, 1);
  compare_gradients(&l, program, in, in[6]);
  test_release(in, 7);
  ax_program_release(program);
  layout_free(&l);
}

static void gradients(void **state) {
  (void)state;
  test_each_seed(12, gradients_at_random);
}

/* --- Batches --- */

/* Members along a and b, of sizes 2 and 3, as devices or as batched axes: arrays are [2, 3, ..]. */
typedef struct places {
  const char *axes, *mesh, *spec;
  int mapped; /* 1: a, 2: b, 3: both */
} places;

static void one_member(const ax_value *in, ax_value *out, void *context) {
  exchange(in, out, (void *)((const places *)context)->axes);
}

/* The arrays less one dimension of 1, or mapped over it. */
static void over_b(const ax_value *in, ax_value *out, void *context) {
  const places *p = context;
  ax_value rows[6];
  if ((p->mapped & 2) != 0) {
    ax_vmap(AX_CLOSURE(one_member, 6, 1, context), in, out, &(ax_vmap_options){.axis_name = "b"});
    return;
  }
  for (int k = 0; k < 6; k++) rows[k] = ax_squeeze(in[k], AX_DIMS(0));
  one_member(rows, out, context);
  out[0] = ax_expand_dims(out[0], 0);
}

static void over_a(const ax_value *in, ax_value *out, void *context) {
  const places *p = context;
  ax_value rows[6];
  if ((p->mapped & 1) != 0) {
    ax_vmap(AX_CLOSURE(over_b, 6, 1, context), in, out, &(ax_vmap_options){.axis_name = "a"});
    return;
  }
  for (int k = 0; k < 6; k++) rows[k] = ax_squeeze(in[k], AX_DIMS(0));
  over_b(rows, out, context);
  out[0] = ax_expand_dims(out[0], 0);
}

static ax_program *placed(const places *p, const ax_type *types) {
  ax_program *program;
  if (p->mesh == NULL) {
    TEST_OK(ax_trace(AX_CLOSURE(over_a, 6, 1, (void *)p), types, &program));
    return program;
  }
  const test_map map = {p->mesh, {p->spec, p->spec, p->spec, p->spec, p->spec, p->spec}, {p->spec}, over_a, false, (void *)p};
  return test_trace_map(&map, types);
}

/* [6 n, ..], by number of member, -> [2, 3, n, ..], where member (i, j) has number 3 i + j, or 2 j + i. */
static ax_tensor *by_place(const ax_tensor *flat, bool b_first) {
  int64_t dims[AX_MAX_RANK] = {2, 3, flat->dims[0] / 6, flat->rank > 1 ? flat->dims[1] : 0}, part = test_elems(flat) / 6;
  ax_tensor *placed = test_tensor(ax_array_type(flat->dtype, AX_LIST(flat->rank + 2, dims)), NULL);
  for (int64_t place = 0; place < 6; place++)
    for (int64_t i = 0; i < part; i++)
      test_set(placed, place * part + i, test_get(flat, (b_first ? place % 3 * 2 + place / 3 : place) * part + i));
  return placed;
}

static void compare_placed(const places *p, ax_tensor *const *in, const ax_tensor *wanted) {
  ax_type types[6];
  ax_tensor *got;
  for (int k = 0; k < 6; k++) types[k] = ax_array_type(in[k]->dtype, AX_LIST(in[k]->rank, in[k]->dims));
  ax_program *program = placed(p, types);
  TEST_OK(ax_evaluate(program, in, &got));
  assert_true(test_same_tensors(got, wanted));
  TEST_EVERY_WAY(program, in, 0);
  check_plain(program, in, 0);
  ax_tensor_release(got);
  ax_program_release(program);
}

static void batched_over_its_own_axes(void **state) {
  (void)state;
  static const places all[] = {{NULL, "a=2,b=3", "a,b", 0}, {NULL, "a=2", "a", 2}, {NULL, "b=3", "_,b", 1}, {NULL, NULL, NULL, 3}};
  for (uint64_t seed = 1; seed <= 6; seed++) {
    test_random random = {seed};
    bool b_first = seed % 2 == 1;
    layout l = random_layout(&random, 6, 1 + (int64_t)seed % 3);
    ax_tensor *flat[6], *in[6], *made, *wanted;
    inputs_of(&l, &random, flat);
    TEST_OK(ax_tensor_copy(flat[1], &made));
    put_rows(&l, flat[0], made);
    wanted = by_place(made, b_first);
    for (int k = 0; k < 6; k++) in[k] = by_place(flat[k], b_first);
    for (size_t i = 0; i < AX_COUNT(all); i++) {
      places p = all[i];
      p.axes = b_first ? "b,a" : "a,b";
      compare_placed(&p, in, wanted);
    }
    ax_tensor_release(wanted);
    ax_tensor_release(made);
    test_release(in, 6);
    test_release(flat, 6);
    layout_free(&l);
  }
}

/* --- Written out for StableHLO, which has an exchange between devices alone --- */

static void bind_params(const ax_value *in, ax_value *out, void *context) { out[0] = ax_ragged_bind(context, in); }

/* Members along a, which are devices, and b; two elements of a batch, of the same slices and other rows. in[operand * 2 +
   device]. */
static void place_on_devices(const layout *l, test_random *random, bool b_first, bool back, ax_tensor **in) {
  ax_tensor *flat[6];
  inputs_of(l, random, flat);
  for (int k = 0; k < 6; k++) {
    ax_tensor *placed = by_place(flat[k], b_first);
    int64_t dims[] = {2, 3, placed->dims[2], l->columns}, part = test_elems(placed) / 2;
    for (int device = 0; device < 2; device++) {
      int to = back && k < 2 ? 1 - k : k;
      in[to * 2 + device] = test_random_tensor(random, ax_array_type(placed->dtype, AX_LIST(placed->rank, dims)), -1, 1);
      for (int64_t i = 0; k >= 2 && i < 2 * part; i++) test_set(in[to * 2 + device], i, test_get(placed, device * part + i % part));
    }
    ax_tensor_release(placed);
  }
  test_release(flat, 6);
}

static void written_out_is_the_same(void **state) {
  (void)state;
  for (uint64_t seed = 0; seed < 8; seed++) {
    test_random random = {seed};
    const bool b_first = seed % 2 == 1, back = seed / 2 % 2 == 1;
    layout l = random_layout(&random, 6, 1 + (int64_t)seed % 3);
    ax_ragged_params params = {.axes = {.count = 1, .name = {"a"}}, .batch = 1, .local = {1, {b_first ? 2 : 1}}, .back = back};
    ax_program *program, *written;
    ax_tensor *in[12], *got[2], *wanted[2];
    ax_type types[6];
    ax_mesh mesh;
    TEST_OK(ax_mesh_parse("a=2", &mesh));
    place_on_devices(&l, &random, b_first, back, in);
    for (int k = 0; k < 6; k++) {
      types[k] = ax_array_type(in[2 * k]->dtype, AX_LIST(in[2 * k]->rank, in[2 * k]->dims));
      types[k].spread.varying = 1;
    }
    TEST_OK(ax_trace_on(&mesh, AX_CLOSURE(bind_params, 6, 1, &params), types, &program));
    TEST_OK(ax_ragged_write_out(&mesh, &params, types, &written));
    TEST_OK(ax_evaluate_lanes(NULL, program, 2, (const int64_t[]){0, 1}, in, wanted));
    TEST_OK(ax_evaluate_lanes(NULL, written, 2, (const int64_t[]){0, 1}, in, got));
    for (int device = 0; device < 2; device++) TEST_TENSORS_NEAR(got[device], wanted[device], back ? 1e-5 : 0);
    test_release(in, 12);
    test_release(got, 2);
    test_release(wanted, 2);
    ax_program_release(program);
    ax_program_release(written);
    layout_free(&l);
  }
}

/* --- In loops, branches and futures, and behind other collectives --- */

static ax_value exchanged(const ax_value *in, ax_value operand, ax_value output, const char *axes) {
  return ax_ragged_all_to_all(operand, output, in[2], in[3], in[4], in[5], axes);
}
static ax_value grown(ax_value x) { return ax_add(ax_mul(x, ax_full_like(x, 0.5)), ax_full_like(x, 1)); }

typedef struct outer {
  const ax_value *in;
  const char *axes;
} outer;

static void step(const ax_value *in, ax_value *out, void *context) {
  const outer *o = context;
  out[0] = grown(in[0]);
  out[1] = exchanged(o->in, in[0], in[1], o->axes);
}
static void scanned(const ax_value *in, ax_value *out, void *context) {
  ax_value carries[2];
  ax_scan(AX_CLOSURE(step, 2, 2, &(outer){in, context}), 2, 4, false, in, carries);
  out[0] = carries[1];
}

static void below(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_lt(in[2], ax_full(AX_S32, AX_DIMS(), 3));
}
static void counted(const ax_value *in, ax_value *out, void *context) {
  step(in, out, context);
  out[2] = ax_add(in[2], ax_full(AX_S32, AX_DIMS(), 1));
}
static void repeated(const ax_value *in, ax_value *out, void *context) {
  ax_value carries[3], start[] = {in[0], in[1], ax_full(AX_S32, AX_DIMS(), 0)};
  ax_while(AX_FN(below, 3, 1), AX_CLOSURE(counted, 3, 3, &(outer){in, context}), start, carries);
  out[0] = carries[1];
}

static void left(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = in[1];
}
static void chosen(const ax_value *in, ax_value *out, void *context) {
  ax_value sum = ax_psum(ax_reduce_sum(in[3], AX_ALL_DIMS, false), context), made;
  ax_value odd = ax_eq(ax_sub(sum, ax_mul(ax_div(sum, ax_full_like(sum, 2)), ax_full_like(sum, 2))), ax_full_like(sum, 1));
  ax_if(odd, AX_CLOSURE(left, 6, 1, context), AX_CLOSURE(exchange, 6, 1, context), in, &made);
  ax_if(odd, AX_CLOSURE(exchange, 6, 1, context), AX_CLOSURE(left, 6, 1, context), in, out);
  out[0] = ax_add(out[0], made);
}

static void started(const ax_value *in, ax_value *out, void *context) {
  ax_value first = ax_start(exchanged(in, in[0], in[1], context)), second = ax_start(exchanged(in, grown(in[0]), in[1], context));
  ax_value meanwhile = ax_reduce_sum(grown(in[0]), AX_ALL_DIMS, false);
  out[0] = ax_add(ax_add(ax_done(second), ax_done(first)), meanwhile);
}

static void chained(const ax_value *in, ax_value *out, void *context) {
  int64_t ring[8][2], members = ax_axis_size(context);
  for (int64_t i = 0; i < members; i++) ring[i][0] = i, ring[i][1] = (i + 1) % members;
  ax_value turned = ax_ppermute(in[0], context, (uint32_t)members, (const int64_t(*)[2])ring);
  ax_value once = exchanged(in, turned, in[1], context), same = ax_pmax(in[0], context);
  out[0] = exchanged(in, same, ax_add(once, grown(once)), context);
}

static void called(const ax_value *in, ax_value *out, void *context) {
  ax_value next[6], half;
  ax_closed_call(AX_CLOSURE(exchange, 6, 1, context), in, &half);
  for (int k = 0; k < 6; k++) next[k] = in[k];
  next[0] = grown(in[0]);
  next[1] = grown(half);
  ax_closed_call(AX_CLOSURE(exchange, 6, 1, context), next, out);
}

static void in_programs_at_random(uint64_t seed, bool show) {
  static const ax_function bodies[] = {scanned, repeated, chosen, started, chained, called};
  test_random random = {seed};
  const shape *s = &shapes[test_random_below(&random, AX_COUNT(shapes))];
  layout l = random_layout(&random, s->members, 1 + test_random_below(&random, 3));
  ax_tensor *in[6];
  ax_type types[6];
  types_of(&l, types);
  ax_program *program = program_of(s, types, bodies[seed % AX_COUNT(bodies)], test_random_below(&random, 2) == 0);
  if (show) test_show_program(program);
  inputs_of(&l, &random, in);
  TEST_EVERY_WAY(program, in, 1e-5);
  check_plain(program, in, 1e-5);
  test_release(in, 6);
  ax_program_release(program);
  layout_free(&l);
}

static void in_programs(void **state) {
  (void)state;
  test_each_seed(30, in_programs_at_random);
}

/* --- Groups --- */

/* Every group's members have what those of `one` have: place[i] is where member i of all groups, one group after the other,
   stands. */
static ax_tensor *spread_out(const ax_tensor *one, int64_t members, int64_t all, const int64_t *place) {
  int64_t dims[] = {one->dims[0] / members * all, one->dims[1]}, part = test_elems(one) / members;
  ax_tensor *out = test_tensor(ax_array_type(one->dtype, AX_LIST(one->rank, dims)), NULL);
  for (int64_t m = 0; m < all; m++)
    for (int64_t i = 0; i < part; i++) test_set(out, place[m] * part + i, test_get(one, m % members * part + i));
  return out;
}

static void groups_of_any_order(void **state) {
  (void)state;
  static const struct {
    shape shape;
    int64_t all, place[8];
  } rows[] = {{{"d=4", "d {0,1} {2,3}", "d", 2}, 4, {0, 1, 2, 3}},
              {{"d=4", "d {0,2} {1,3}", "d", 2}, 4, {0, 2, 1, 3}},
              {{"d=3", "d {2} {0} {1}", "d", 1}, 3, {2, 0, 1}},
              {{"d=6", "d {3,0,1} {2,5,4}", "d", 3}, 6, {3, 0, 1, 2, 5, 4}},
              {{"a=2,b=4", "a,b {0,5} {1,4} {7,2} {3,6}", "a+b", 2}, 8, {0, 5, 1, 4, 7, 2, 3, 6}}};
  for (size_t r = 0; r < AX_COUNT(rows); r++) {
    const shape *s = &rows[r].shape;
    test_random random = {r};
    layout l = random_layout(&random, s->members, 2);
    ax_tensor *one[6], *made, *in[6], *wanted, *got;
    ax_type types[6];
    inputs_of(&l, &random, one);
    TEST_OK(ax_tensor_copy(one[1], &made));
    put_rows(&l, one[0], made);
    for (int k = 0; k < 6; k++) {
      in[k] = spread_out(one[k], s->members, rows[r].all, rows[r].place);
      types[k] = ax_array_type(in[k]->dtype, AX_LIST(in[k]->rank, in[k]->dims));
    }
    wanted = spread_out(made, s->members, rows[r].all, rows[r].place);
    ax_program *program = program_of(s, types, exchange, r % 2 == 0);
    TEST_OK(ax_evaluate(program, in, &got));
    assert_true(test_same_tensors(got, wanted));
    TEST_EVERY_WAY(program, in, 0);
    check_plain(program, in, 0);
    ax_tensor_release(got);
    ax_tensor_release(made);
    ax_tensor_release(wanted);
    test_release(one, 6);
    test_release(in, 6);
    ax_program_release(program);
    layout_free(&l);
  }
}

/* --- Between processes: the bits that one gives, however devices are spread --- */

static const test_spread spreads[] = {
    {.processes = 2, .workers = 1},
    {.processes = 8, .workers = 1, .donate = true},
    {.processes = 2, .workers = 2, .listed = 8, .of = test_alternating, .delays = true, .seed = 3},
    {.processes = 3, .workers = 2, .listed = 8, .of = test_scattered, .delays = true, .seed = 5},
    {.processes = 2, .workers = 1, .listed = 8, .of = test_most_in_one, .policy = AX_POLICY_SEEDED, .seed = 7},
    {.processes = 4, .workers = 1, .listed = 8, .of = test_with_empty_ones, .delays = true, .policy = AX_POLICY_SEEDED, .seed = 9},
};

/* The gradient of what the exchange gives, squared: rows go forth and back. */
static void squared(const ax_value *in, ax_value *out, void *context) {
  const weighed *w = context;
  ax_value made;
  ax_shard_map(w->mesh, w->specs, AX_CLOSURE(exchange, 6, 1, (void *)w->shape->axes), in, &made);
  out[0] = ax_reduce_sum(ax_mul(made, made), AX_ALL_DIMS, false);
}

static ax_program *gradient_of(const shape *s, const ax_type *types) {
  ax_mesh mesh;
  char specs[64];
  ax_program *program, *gradient;
  snprintf(specs, sizeof specs, "%s -> %s", s->spec, s->spec);
  TEST_OK(ax_mesh_parse(s->mesh, &mesh));
  TEST_OK(ax_trace(AX_CLOSURE(squared, 6, 1, &(weighed){s, &mesh, specs}), types, &program));
  TEST_OK(ax_program_grad(program, AX_ARGS(0), &gradient));
  ax_program_release(program);
  return gradient;
}

/* The last two: values that are the same along another axis, whose devices may be in other processes; and rows beyond what a
   message takes along. */
static void between_processes(void **state) {
  (void)state;
  static const struct {
    shape shape;
    ax_function body;
    int64_t columns;
  } rows[] = {{{"d=8", "d", "d", 8}, exchange, 3},      {{"a=2,b=2,c=2", "c,a,b", "c+a+b", 8}, exchange, 0},
              {{"a=2,b=4", "b,a", "b+a", 8}, scanned, 2}, {{"d=8", "d", "d", 8}, repeated, 2},
              {{"d=6", "d", "d", 6}, chosen, 3},        {{"d=8", "d", "d", 8}, started, 3},
              {{"d=8", "d", "d", 8}, chained, 1},       {{"d=5", "d", "d", 5}, called, 2},
              {{"d=8", "d", "d", 8}, NULL, 2},          {{"d=8", "d {0,3,5,6} {1,2,4,7}", "d", 4}, exchange, 2},
              {{"d=4,m=2", "d", "d", 4}, scanned, 3},   {{"m=2,d=4", "d", "d", 4}, scanned, 1100}};
  for (size_t r = 0; r < AX_COUNT(rows); r++) {
    const shape *s = &rows[r].shape;
    test_random random = {100 + r};
    layout l = random_layout(&random, s->members, 1 + (int64_t)r % 3);
    ax_tensor *in[6];
    ax_type types[6];
    char name[16];
    snprintf(name, sizeof name, "row %zu", r);
    l.columns = rows[r].columns;
    inputs_of(&l, &random, in);
    if (s->members < 8 && strchr(s->axes, '{') != NULL)
      for (int k = 0; k < 6; k++) {
        ax_tensor *one = in[k];
        in[k] = spread_out(one, s->members, 8, (const int64_t[]){0, 3, 5, 6, 1, 2, 4, 7});
        ax_tensor_release(one);
      }
    for (int k = 0; k < 6; k++) types[k] = ax_array_type(in[k]->dtype, AX_LIST(in[k]->rank, in[k]->dims));
    ax_program *program = rows[r].body != NULL ? program_of(s, types, rows[r].body, r % 2 == 0) : gradient_of(s, types);
    test_compare_spreads(name, program, in, spreads, AX_COUNT(spreads));
    test_release(in, 6);
    ax_program_release(program);
    layout_free(&l);
  }
}

static void at_random(uint64_t seed, bool show) {
  test_random random = {seed};
  const shape *s = &shapes[test_random_below(&random, AX_COUNT(shapes))];
  layout l = random_layout(&random, s->members, 1 + test_random_below(&random, 3));
  ax_tensor *in[6], *wanted, *got;
  ax_type types[6];
  types_of(&l, types);
  ax_program *program = program_of(s, types, exchange, test_random_below(&random, 2) == 0);
  if (show) test_show_program(program);
  inputs_of(&l, &random, in);
  TEST_OK(ax_tensor_copy(in[1], &wanted));
  put_rows(&l, in[0], wanted);
  TEST_OK(ax_evaluate(program, in, &got));
  assert_memory_equal(got->data, wanted->data, (size_t)test_elems(wanted) * sizeof(float));
  TEST_EVERY_WAY(program, in, 0);
  check_plain(program, in, 0);
  ax_tensor_release(got);
  ax_tensor_release(wanted);
  test_release(in, 6);
  ax_program_release(program);
  layout_free(&l);
}

static void slices_at_random(void **state) {
  (void)state;
  test_each_seed(40, at_random);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(slices_at_random),
                                     cmocka_unit_test(in_programs),
                                     cmocka_unit_test(gradients),
                                     cmocka_unit_test(batched_over_its_own_axes),
                                     cmocka_unit_test(written_out_is_the_same),
                                     cmocka_unit_test(groups_of_any_order),
                                     cmocka_unit_test(between_processes)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
