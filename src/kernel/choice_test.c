/* Kernels whose index maps read tables run as plain programs where their blocks are there and come in order, and step by step elsewhere:
   random ones give what the machine gives, to the bit, and fail as a run step by step does; what is asked of the tables is compared with a
   search of all points; gradients and batches. */
#include "kernel/choice.h"

#include <string.h>

#include "axle/axle.h"
#include "ir/prim.h"
#include "kernel/discharge.h"
#include "prim/prims.h"
#include "support/cmocka.h"
#include "support/random.h"
#include "support/run.h"

/* --- Random kernels --- */

enum { X, TILE, FIRST, GROUP, INPUTS }; /* x [rows, columns]; tables [n, m]: the result's block, whether it is new, x's block */

typedef enum order { IN_A_ROW, ANY_ORDER, OF_THE_GRID } order; /* of the result's blocks */

typedef struct random_kernel {
  int64_t n, m;                        /* the grid */
  int64_t blocks, block, rows, columns; /* of x: so many blocks of rows, of which the last may stick out */
  int64_t tiles, tile, made;           /* of the result */
  order order;
  bool half;   /* x's block is half of the number in the table */
  bool beyond; /* a number in a table that is no block */
} random_kernel;

static int64_t number(test_random *random, int64_t from, int64_t to) {
  return from + (int64_t)test_random_below(random, to - from + 1);
}

static random_kernel draw(uint64_t seed) {
  test_random random = {seed};
  random_kernel k = {.n = number(&random, 1, 3), .m = number(&random, 1, 4), .blocks = number(&random, 1, 5), .block = number(&random, 1, 3),
                     .columns = number(&random, 1, 3), .tile = number(&random, 1, 3), .order = (order)number(&random, 0, 2)};
  k.rows = k.blocks * k.block - number(&random, 0, k.block - 1);
  k.tiles = k.order == OF_THE_GRID ? k.n : number(&random, 1, 5);
  k.made = k.tiles * k.tile - number(&random, 0, k.tile - 1);
  k.half = number(&random, 0, 3) == 0;
  k.beyond = number(&random, 0, 3) == 0;
  return k;
}

/* Tables: ascending, or in any order; `first` where the block is another than before. */
static void fill(const random_kernel *k, uint64_t seed, ax_tensor **in) {
  test_random random = {seed + 77};
  const int64_t points = k->n * k->m;
  double tile = 0;
  for (int64_t p = 0; p < points; p++) {
    if (k->order == IN_A_ROW && number(&random, 0, 1) == 0 && tile + 1 < (double)k->tiles) tile++;
    if (k->order == ANY_ORDER) tile = (double)number(&random, 0, k->tiles - 1);
    test_set(in[TILE], p, tile);
    test_set(in[FIRST], p, p == 0 || test_get(in[TILE], p) != test_get(in[TILE], p - 1));
    test_set(in[GROUP], p, (double)(number(&random, 0, k->blocks - 1) * (k->half ? 2 : 1)));
  }
  static const double strange[] = {-1, 100, -2147483648.0, 2147483647, 1073741824, -1000};
  if (k->beyond) test_set(in[number(&random, 0, 1) == 0 ? TILE : GROUP], number(&random, 0, points - 1), strange[number(&random, 0, 5)]);
}

typedef struct traced {
  const random_kernel *k;
  const ax_value *in;
} traced;

static ax_value look_up(const traced *t, uint32_t table, const ax_value *ids) {
  return ax_dynamic_at(ax_dynamic_at(t->in[table], ids[0], 0), ids[1], 0);
}

static AX_BODY_OF(x_of, const traced, t) {
  const ax_value group = look_up(t, GROUP, in);
  out[0] = t->k->half ? ax_div(group, ax_integer(2)) : group;
  out[1] = ax_integer(0);
}

static AX_BODY_OF(tile_of, const traced, t) { out[0] = t->k->order == OF_THE_GRID ? in[0] : look_up(t, TILE, in); }

typedef struct at_point {
  ax_value ref, value;
} at_point;

static AX_BODY_OF(store, const at_point, a) { ax_ref_store(a->ref, a->value); }
static AX_BODY_OF(add, const at_point, a) { ax_ref_add(a->ref, a->value); }

static AX_BODY_OF(point, const traced, t) {
  const ax_value ids[] = {ax_program_id(0), ax_program_id(1)}, x = ax_ref_load(in[0]), known = ax_where(ax_ne(x, x), ax_real(0), x),
                 sum = ax_add(ax_reduce_sum(known, AX_ALL_DIMS, false), ax_convert_element_type(ids[1], AX_F32)),
                 first = t->k->order == OF_THE_GRID ? ax_eq(ids[1], ax_integer(0)) : ax_ne(look_up(t, FIRST, ids), ax_integer(0));
  const at_point a = {in[1], ax_broadcast_to(sum, AX_DIMS(t->k->tile))};
  ax_if(first, AX_CLOSURE(store, 0, 0, (void *)(uintptr_t)&a), AX_CLOSURE(add, 0, 0, (void *)(uintptr_t)&a), NULL, NULL);
}

static AX_BODY_OF(call, const random_kernel, k) {
  traced t = {k, in};
  const ax_block_spec x = {.block = {AX_DIMS(k->block, k->columns)}, .index_map = x_of, .context = &t},
                      y = {.block = {AX_DIMS(k->tile)}, .index_map = tile_of, .context = &t};
  ax_kernel_call((&(ax_kernel){.grid = {AX_DIMS(k->n, k->m)}, .in_specs = {AX_BLOCK_SPECS(x)}, .out_specs = {AX_BLOCK_SPECS(y)},
                              .outs = {AX_TYPES(AX_TYPE(AX_F32, k->made))}}),
                 AX_CLOSURE(point, 2, 0, &t), AX_LIST(1, in), out);
}

static void types_of(const random_kernel *k, ax_type *types) {
  types[X] = AX_TYPE(AX_F32, k->rows, k->columns);
  for (int i = 1; i < INPUTS; i++) types[i] = AX_TYPE(AX_S32, k->n, k->m);
}

static void make_inputs(const random_kernel *k, uint64_t seed, ax_type *types, ax_tensor **in) {
  test_random random = {seed + 1000003};
  types_of(k, types);
  for (int i = 0; i < INPUTS; i++) in[i] = test_random_tensor(&random, types[i], -9, 9);
  for (int64_t e = 0; e < test_elems(in[X]); e++) test_set(in[X], e, (double)(int)test_get(in[X], e)); /* sums are exact */
  fill(k, seed, in);
}

/* --- What is asked of tables, by a search --- */

static int64_t block_of(const random_kernel *k, ax_tensor *const *in, uint32_t table, int64_t point) {
  const int64_t number = (int64_t)test_get(in[table], point);
  return table == GROUP && k->half ? number / 2 : number;
}

static bool is_right(const random_kernel *k, ax_tensor *const *in) {
  bool right = true;
  for (int64_t p = 0; p < k->n * k->m; p++) {
    const int64_t x = block_of(k, in, GROUP, p), y = k->order == OF_THE_GRID ? 0 : block_of(k, in, TILE, p);
    right = right && x >= 0 && x < k->blocks && y >= 0 && y < k->tiles;
    if (k->order != OF_THE_GRID && p > 0) right = right && y >= block_of(k, in, TILE, p - 1);
  }
  return right;
}

static uint32_t drawn, plain, failed;

/* Whether a run takes the plain program. */
static bool is_plain(const ax_program *program, ax_tensor *const *in) {
  const ax_eqn *eqn = NULL;
  for (uint32_t e = 0; e < program->eqn_count; e++)
    if (program->eqns[e].prim == &ax_prim_kernel_call) eqn = &program->eqns[e];
  assert_non_null(eqn);
  const ax_kernel_params *params = eqn->params;
  const uint32_t consts = (uint32_t)params->consts;
  ax_type types[2 * INPUTS];
  ax_tensor *given[INPUTS], *right;
  ax_beside beside;
  ax_program *choice;
  static const ax_mesh none;
  for (uint32_t i = 0; i < eqn->in_count; i++) types[i] = program->types[eqn->in[i]];
  for (uint32_t i = 0; i < consts; i++) given[i] = in[eqn->in[i]]; /* the program's own inputs */
  TEST_OK(ax_beside_find(params, types + consts, eqn->in_count - consts, &beside));
  const ax_regular regular = ax_kernel_is_regular(params, types + consts, eqn->in_count - consts, &beside);
  assert_int_not_equal(regular, AX_REGULAR_NEVER);
  TEST_OK(ax_choice_trace(params, types, eqn->in_count, &beside, &none, &choice));
  TEST_OK(ax_evaluate(choice, given, &right));
  const bool found = test_get(right, 0) != 0;
  if (regular == AX_REGULAR_ALWAYS) assert_true(found);
  test_release(&right, 1);
  ax_program_release(choice);
  ax_beside_deinit(&beside);
  return found;
}

/* --- They give what the machine gives --- */

static void both_ways(ax_program *program, ax_tensor *const *in, bool written) {
  failed += test_as_reference(program, in, written) != AX_OK;
}

/* A result's tile that no point visits, or that sticks out, holds anything. */
static bool is_all_written(const random_kernel *k, ax_tensor *const *in) {
  if (k->order == OF_THE_GRID) return true;
  for (int64_t t = 0; t < k->tiles; t++) {
    bool found = false;
    for (int64_t p = 0; p < k->n * k->m; p++) found = found || test_get(in[TILE], p) == (double)t;
    if (!found) return false;
  }
  return true;
}

static void one_kernel(uint64_t seed, bool show) {
  random_kernel k = draw(seed);
  ax_type types[INPUTS];
  ax_tensor *in[INPUTS];
  make_inputs(&k, seed, types, in);
  for (uint64_t more = 1; more < 40 && !k.beyond && !is_all_written(&k, in); more++) fill(&k, seed + 1000 * more, in);
  ax_program *program = test_trace(call, &k, types, INPUTS, 1);
  if (show) test_show_program(program);
  const bool right = is_plain(program, in);
  assert_int_equal(right, is_right(&k, in));
  drawn++;
  plain += right;
  if (k.beyond) both_ways(program, in, is_all_written(&k, in));
  else if (is_all_written(&k, in)) test_every_way(program, in, 0, seed, __FILE__, __LINE__);
  test_release(in, INPUTS);
  ax_program_release(program);
}

static void random_kernels_give_what_the_machine_gives(void **state) {
  (void)state;
  test_each_seed(120, one_kernel);
  print_message("%u kernels, %u as plain programs, %u that fail\n", drawn, plain, failed);
  if (drawn >= 120) assert_true(plain * 4 > drawn && plain < drawn && failed > 5);
}

/* --- Derivatives and batches --- */

static AX_BODY_OF(loss, const random_kernel, k) {
  ax_value made;
  call(in, &made, (void *)(uintptr_t)k);
  out[0] = ax_reduce_sum(ax_square(made), AX_ALL_DIMS, false);
}

static AX_BODY(slope) { ax_grad(AX_CLOSURE(loss, INPUTS, 1, context), AX_FIRST(1), AX_LIST(INPUTS, in), AX_LIST(1, out)); }

/* The same by hand: each visit's rows are added up, and each row gets twice the sum of its result's tile. */
static void expect_slope(const random_kernel *k, ax_tensor *const *in, ax_tensor *const *out) {
  for (int64_t e = 0; e < test_elems(out[0]); e++) test_set(out[0], e, 0);
  for (int64_t t = 0; t < k->tiles; t++) {
    double sum = 0;
    const int64_t elems = (t + 1) * k->tile > k->made ? k->made - t * k->tile : k->tile;
    for (int pass = 0; pass < 2; pass++)
      for (int64_t p = 0; p < k->n * k->m; p++) {
        if ((k->order == OF_THE_GRID ? p / k->m : block_of(k, in, TILE, p)) != t) continue;
        if (pass == 0) sum += (double)(p % k->m);
        for (int64_t r = 0; r < k->block * k->columns; r++) {
          const int64_t e = block_of(k, in, GROUP, p) * k->block * k->columns + r;
          if (e >= k->rows * k->columns) continue;
          if (pass == 0) sum += test_get(in[X], e);
          else test_set(out[0], e, test_get(out[0], e) + 2 * sum * (double)elems);
        }
      }
  }
}

static void one_slope(uint64_t seed, bool show) {
  random_kernel k = draw(seed);
  ax_type types[INPUTS];
  ax_tensor *in[INPUTS], *made, *expected;
  if (k.order == ANY_ORDER) k.order = IN_A_ROW;
  k.beyond = false;
  make_inputs(&k, seed, types, in);
  for (uint64_t more = 1; more < 40 && !is_all_written(&k, in); more++) fill(&k, seed + 1000 * more, in);
  if (is_all_written(&k, in)) {
    ax_program *program = test_trace(slope, &k, types, INPUTS, 1);
    if (show) test_show_program(program);
    TEST_OK(test_try(program, in, &made));
    TEST_OK(ax_tensor_create(&types[X], &expected));
    expect_slope(&k, in, &expected);
    TEST_TENSORS_NEAR(made, expected, 0);
    test_release(&made, 1);
    test_release(&expected, 1);
    ax_program_release(program);
  }
  test_release(in, INPUTS);
}

static void gradients(void **state) {
  (void)state;
  test_each_seed(40, one_slope);
}

static AX_BODY(batch) {
  static const int64_t axes[] = {AX_NOT_MAPPED, 0, 0, 0};
  ax_vmap(AX_CLOSURE(call, INPUTS, 1, context), AX_LIST(INPUTS, in), AX_LIST(1, out), &(ax_vmap_options){.in_axes = {AX_LIST(INPUTS, axes)}});
}

/* A batch of tables, of which one may be wrong: the same as by each table alone, in the machine and in a run. */
static void one_batch(uint64_t seed, bool show) {
  enum { lanes = 3 };
  random_kernel k = draw(seed);
  ax_type types[INPUTS];
  ax_tensor *in[INPUTS], *one[INPUTS];
  bool whole = true;
  k.beyond = false;
  make_inputs(&k, seed, types, one);
  for (int i = 1; i < INPUTS; i++) {
    types[i] = AX_TYPE(AX_S32, lanes, k.n, k.m);
    TEST_OK(ax_tensor_create(&types[i], &in[i]));
  }
  in[X] = one[X];
  for (int64_t lane = 0; lane < lanes; lane++) {
    fill(&k, seed + 10000 * (uint64_t)lane, one);
    for (uint64_t more = 1; more < 40 && !is_all_written(&k, one); more++) fill(&k, seed + 10000 * (uint64_t)lane + 1000 * more, one);
    whole = whole && is_all_written(&k, one);
    for (int i = 1; i < INPUTS; i++)
      for (int64_t p = 0; p < k.n * k.m; p++) test_set(in[i], lane * k.n * k.m + p, test_get(one[i], p));
  }
  ax_program *program = test_trace(batch, &k, types, INPUTS, 1);
  if (show) test_show_program(program);
  if (whole) test_every_way(program, in, 0, seed, __FILE__, __LINE__);
  ax_program_release(program);
  test_release(in + 1, INPUTS - 1);
  test_release(one, INPUTS);
}

static void batches(void **state) {
  (void)state;
  test_each_seed(30, one_batch);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(random_kernels_give_what_the_machine_gives), cmocka_unit_test(gradients),
                                     cmocka_unit_test(batches)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
