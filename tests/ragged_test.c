/* ragged_all_to_all: slices at random, uneven, empty, out of order and apart, against what follows from its definition; in loops and
   branches; derivatives; batched over its own axis; everything that is wrong with slices, and what is said of it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "axle/collectives.h"
#include "axle/ops.h"
#include "axle/transform.h"
#include "exec/exec.h"
#include "support/cmocka.h"
#include "support/random.h"
#include "support/run.h"

enum { FROM, SIZE, TO, EXPECTED, tables };

/* Slices of all members: by table, then member, then number. */
typedef struct layout {
  int64_t members, each, from_rows, to_rows, columns;
  double *table[tables];
} layout;

static int64_t slices_of(const layout *l) { return l->members * l->each; }
static double *at(const layout *l, int table, int64_t member, int64_t slice) { return &l->table[table][member * slices_of(l) + slice]; }

static void layout_free(layout *l) {
  for (int k = 0; k < tables; k++) free(l->table[k]);
}

/* Every receiver has its slices in a random order, with room before some of them; senders' may lie on each other. */
static layout random_layout(test_random *random, int64_t members, int64_t each) {
  layout l = {.members = members, .each = each, .from_rows = test_random_below(random, 12), .columns = test_random_below(random, 4)};
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

static void types_of(const layout *l, ax_type *types) {
  types[0] = ax_array_type(AX_F32, 2, (int64_t[]){l->members * l->from_rows, l->columns});
  types[1] = ax_array_type(AX_F32, 2, (int64_t[]){l->members * l->to_rows, l->columns});
  for (int k = 0; k < tables; k++) types[2 + k] = ax_array_type(AX_S32, 1, (int64_t[]){l->members * slices_of(l)});
}

static ax_program *program_of(const shape *s, const layout *l, ax_function body, bool unchecked) {
  ax_type types[6];
  ax_mesh mesh;
  ax_program *program;
  char specs[64];
  types_of(l, types);
  snprintf(specs, sizeof specs, "%s -> %s", s->spec, s->spec);
  TEST_OK(ax_mesh_parse(s->mesh, &mesh));
  ax_sharded sharded = {.mesh = &mesh, .specs = specs, .body = AX_CLOSURE(body, 6, 1, (void *)s->axes)};
  if (!unchecked) TEST_OK(ax_trace(ax_sharded_function(&sharded), types, &program));
  else {
    const test_map map = {s->mesh, {s->spec, s->spec, s->spec, s->spec, s->spec, s->spec}, {s->spec}, body, true, (void *)s->axes};
    program = test_trace_map(&map, types);
  }
  return program;
}

static void inputs_of(const layout *l, test_random *random, ax_tensor **in) {
  ax_type types[6];
  types_of(l, types);
  for (int k = 0; k < 2; k++) in[k] = test_random_tensor(random, types[k], -1, 1);
  for (int k = 0; k < tables; k++) in[2 + k] = test_tensor(types[2 + k], l->table[k]);
}

static void at_random(uint64_t seed, bool show) {
  test_random random = {seed};
  const shape *s = &shapes[test_random_below(&random, AX_COUNT(shapes))];
  layout l = random_layout(&random, s->members, 1 + test_random_below(&random, 3));
  ax_tensor *in[6], *wanted, *got;
  ax_program *program = program_of(s, &l, exchange, test_random_below(&random, 2) == 0);
  if (show) test_show_program(program);
  inputs_of(&l, &random, in);
  TEST_OK(ax_tensor_copy(in[1], &wanted));
  put_rows(&l, in[0], wanted);
  TEST_OK(ax_evaluate(program, in, &got));
  assert_memory_equal(got->data, wanted->data, (size_t)test_elems(wanted) * sizeof(float));
  TEST_EVERY_WAY(program, in, 0);
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
  const struct CMUnitTest tests[] = {cmocka_unit_test(slices_at_random)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
