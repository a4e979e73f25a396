/* Kernels over grids run as plain programs, with points side by side where these need nothing of one another: random kernels give what the
   machine gives, to the bit, and it is known which are run so. */
#include "kernel/beside.h"

#include <string.h>

#include "axle/axle.h"
#include "ir/prim.h"
#include "kernel/discharge.h"
#include "prim/prims.h"
#include "support/cmocka.h"
#include "support/random.h"
#include "support/run.h"

enum { most_rank = 3, most_operands = 3 };

/* --- Random kernels --- */

typedef enum which_block { is_first, is_number, is_half, is_from_the_end } which_block; /* 0, i, i / 2, n - 1 - i */

typedef struct random_spec {
  uint32_t rank;
  int64_t dims[most_rank], block[most_rank]; /* block 0: squeezed */
  which_block which[most_rank];
  uint32_t by[most_rank]; /* the dimension of the grid */
} random_spec;

typedef struct random_kernel {
  uint32_t rank, outer; /* of the grid; its first dimensions choose blocks of the result, along the others is added up */
  int64_t grid[most_rank];
  ax_semantics semantics[most_rank];
  uint32_t operands;
  random_spec in[most_operands], out;
  bool scratch, alias;
} random_kernel;

static int64_t number(test_random *random, int64_t from, int64_t to) {
  return from + (int64_t)test_random_below(random, to - from + 1);
}

static bool one_in(test_random *random, int64_t n) { return test_random_below(random, n) == 0; }

/* `blocks` of them, of which the last may stick out. */
static void fill_dim(test_random *random, random_spec *s, uint32_t d, which_block which, uint32_t by, int64_t blocks) {
  const int64_t block = number(random, 1, 3);
  s->which[d] = which;
  s->by[d] = by;
  s->block[d] = block;
  s->dims[d] = blocks * block - (one_in(random, 3) ? number(random, 0, block - 1) : 0);
  if (block == 1 && one_in(random, 3)) s->block[d] = 0;
}

static void fill_operand(test_random *random, const random_kernel *k, random_spec *s) {
  s->rank = (uint32_t)number(random, 1, most_rank);
  for (uint32_t d = 0; d < s->rank; d++) {
    const uint32_t g = (uint32_t)test_random_below(random, k->rank);
    if (one_in(random, 4)) fill_dim(random, s, d, is_first, 0, number(random, 1, 2));
    else if (one_in(random, 12)) fill_dim(random, s, d, one_in(random, 2) ? is_half : is_from_the_end, g, k->grid[g]);
    else fill_dim(random, s, d, is_number, g, k->grid[g] + (one_in(random, 8) ? 1 : 0));
  }
}

static void fill_result(test_random *random, random_kernel *k) {
  uint32_t left[most_rank];
  for (uint32_t g = 0; g < k->outer; g++) left[g] = g;
  k->out.rank = k->outer;
  for (uint32_t d = 0; d < k->outer; d++) {
    const uint32_t at = (uint32_t)test_random_below(random, k->outer - d), g = left[at];
    left[at] = left[k->outer - d - 1];
    fill_dim(random, &k->out, d, is_number, g, k->grid[g]);
  }
  if (k->out.rank < most_rank && one_in(random, 2)) fill_dim(random, &k->out, k->out.rank++, is_first, 0, 1);
}

static random_kernel draw(uint64_t seed) {
  test_random random = {seed};
  random_kernel k = {.rank = (uint32_t)number(&random, 1, most_rank), .operands = (uint32_t)number(&random, 1, most_operands)};
  k.outer = (uint32_t)number(&random, 1, k.rank);
  for (uint32_t g = 0; g < k.rank; g++) {
    k.grid[g] = number(&random, 1, 4);
    k.semantics[g] = g < k.outer && one_in(&random, 2) ? AX_PARALLEL : AX_ARBITRARY;
  }
  fill_result(&random, &k);
  for (uint32_t i = 0; i < k.operands; i++) fill_operand(&random, &k, &k.in[i]);
  k.scratch = one_in(&random, 3);
  k.alias = one_in(&random, 4);
  if (k.alias) k.in[0] = k.out;
  return k;
}

/* --- What they compute --- */

typedef struct mapped {
  const random_kernel *k;
  const random_spec *s;
} mapped;

static void index_of(const ax_value *ids, ax_value *index, void *context) {
  const mapped *m = context;
  for (uint32_t d = 0; d < m->s->rank; d++) {
    const uint32_t g = m->s->by[d];
    switch (m->s->which[d]) {
      case is_first: index[d] = ax_integer(0); break;
      case is_number: index[d] = ids[g]; break;
      case is_half: index[d] = ax_div(ids[g], ax_integer(2)); break;
      case is_from_the_end: index[d] = ax_sub(ax_integer(m->k->grid[g] - 1), ids[g]);
    }
  }
}

typedef struct at_step {
  const random_kernel *k;
  const ax_value *refs;
  ax_value value; /* of this point */
} at_step;

static ax_value without_nan(ax_value x) { return ax_where(ax_ne(x, x), ax_real(0), x); }

static ax_value to_shape(ax_value scalar, ax_value ref) {
  const ax_type type = ax_typeof(ref);
  return ax_broadcast_in_dim(scalar, AX_LIST(type.rank, type.dims), AX_DIMS());
}

static uint32_t sum_at(const random_kernel *k) { return k->operands + (k->scratch ? 1 : 0); }

static AX_BODY(begin_sum) {
  const at_step *s = context;
  const ax_value ref = s->refs[sum_at(s->k)];
  if (!s->k->alias || s->k->scratch) ax_ref_store(ref, to_shape(ax_full(AX_F32, AX_DIMS(), 0), ref));
}
static AX_BODY(leave) {}
static AX_BODY(end_sum) {
  const at_step *s = context;
  const ax_value sum = to_shape(ax_reduce_sum(ax_ref_load(s->refs[sum_at(s->k)]), AX_ALL_DIMS, false), s->refs[s->k->operands]);
  if (s->k->alias) ax_ref_add(s->refs[s->k->operands], sum);
  else ax_ref_store(s->refs[s->k->operands], sum);
}

static ax_value all_at(const random_kernel *k, bool last) {
  ax_value all = ax_eq(ax_program_id(0), ax_program_id(0));
  for (uint32_t g = k->outer; g < k->rank; g++) all = ax_and(all, ax_eq(ax_program_id(g), ax_integer(last ? k->grid[g] - 1 : 0)));
  return all;
}

static AX_BODY(point) {
  const random_kernel *k = context;
  at_step s = {k, in, ax_full(AX_F32, AX_DIMS(), 1)};
  for (uint32_t i = 0; i < k->operands; i++)
    s.value = ax_add(ax_mul(s.value, ax_real(i == 1 ? 3 : 1)), ax_reduce_sum(without_nan(ax_ref_load(in[i])), AX_ALL_DIMS, false));
  for (uint32_t g = 0; g < k->rank; g++)
    s.value = ax_add(s.value, ax_mul(ax_convert_element_type(ax_program_id(g), AX_F32), ax_real(1 + 7 * g)));
  ax_if(all_at(k, false), AX_CLOSURE(begin_sum, 0, 0, &s), AX_FN(leave, 0, 0), NULL, NULL);
  ax_ref_add(in[sum_at(k)], to_shape(s.value, in[sum_at(k)]));
  if (k->scratch) ax_if(all_at(k, true), AX_CLOSURE(end_sum, 0, 0, &s), AX_FN(leave, 0, 0), NULL, NULL);
}

static AX_BODY(call) {
  const random_kernel *k = context;
  ax_block_spec specs[most_operands + 1];
  mapped maps[most_operands + 1];
  for (uint32_t i = 0; i <= k->operands; i++) {
    maps[i] = (mapped){k, i < k->operands ? &k->in[i] : &k->out};
    specs[i] = (ax_block_spec){.block = {AX_LIST(maps[i].s->rank, maps[i].s->block)}, .index_map = index_of, .context = &maps[i]};
  }
  const ax_type type = ax_array_type(AX_F32, AX_LIST(k->out.rank, k->out.dims));
  const ax_scratch sums = {.type = AX_VMEM(AX_F32, 2)};
  const ax_kernel kernel = {.grid = {AX_LIST(k->rank, k->grid)},
                            .semantics = {AX_LIST(k->rank, k->semantics)},
                            .in_specs = {AX_LIST(k->operands, specs)},
                            .out_specs = {AX_LIST(1, specs + k->operands)},
                            .outs = {AX_LIST(1, &type)},
                            .options = {.scratch = {AX_LIST(k->scratch ? 1 : 0, &sums)},
                                        .aliases = {AX_LIST(k->alias ? 1 : 0, ((const uint32_t[][2]){{0, 0}}))}}};
  ax_kernel_call(&kernel, AX_CLOSURE(point, k->operands + 1 + k->scratch, 0, (void *)(uintptr_t)context), AX_LIST(k->operands, in),
                 AX_LIST(1, out));
}

/* --- They give what the machine gives --- */

static uint32_t drawn, regular, beside; /* of all: kernels that run as plain programs, and those with points side by side */

static void count(const ax_program *program, const ax_type *in, uint32_t in_count) {
  for (uint32_t e = 0; e < program->eqn_count; e++) {
    if (program->eqns[e].prim != &ax_prim_kernel_call) continue;
    ax_beside found;
    TEST_OK(ax_beside_find(program->eqns[e].params, in, in_count, &found));
    const bool is = ax_kernel_is_regular(program->eqns[e].params, in, in_count, &found) == AX_REGULAR_ALWAYS;
    drawn++;
    regular += is;
    beside += is && found.count > 0;
    ax_beside_deinit(&found);
  }
}

static void one_kernel(uint64_t seed, bool show) {
  random_kernel k = draw(seed);
  ax_type types[most_operands];
  ax_tensor *in[most_operands];
  test_random random = {seed + 1000003};
  for (uint32_t i = 0; i < k.operands; i++) {
    types[i] = ax_array_type(AX_F32, AX_LIST(k.in[i].rank, k.in[i].dims));
    in[i] = test_random_tensor(&random, types[i], -9, 9);
    for (int64_t e = 0; e < test_elems(in[i]); e++) test_set(in[i], e, (double)(int)test_get(in[i], e)); /* sums are exact */
  }
  ax_program *program = test_trace(call, &k, types, k.operands, 1);
  if (show) test_show_program(program);
  count(program, types, k.operands);
  test_every_way(program, in, 0, seed, __FILE__, __LINE__);
  test_release(in, k.operands);
  ax_program_release(program);
}

static void random_kernels_give_what_the_machine_gives(void **state) {
  (void)state;
  test_each_seed(150, one_kernel);
  print_message("%u kernels, %u as plain programs, %u with points side by side\n", drawn, regular, beside);
  if (drawn >= 150) assert_true(regular * 3 > drawn && beside * 4 > drawn && regular < drawn);
}

/* --- Which run so --- */

typedef enum slip { RIGHT, STORES_TO_OPERAND, PLACE_FOUND_LATE, PLACE_BY_NUMBER, PLACE_IN_LOOP, PLACE_BEYOND, PRINTS, WRITES_SCRATCH, ADDS_TO_SCRATCH,
                     BEGINS_SCRATCH_ONCE, MASKS_SCRATCH, PARTS_OF_SCRATCH, BOTH_PARTS, PARALLEL_WITH_SCRATCH, BEYOND } slip;

static void by_row(const ax_value *ids, ax_value *index, void *context) {
  (void)context;
  index[0] = ids[0];
  index[1] = ax_integer(0);
}

static ax_value one_of(ax_value ref, ax_value at) {
  return ax_ref_load(ax_ref_slice(ref, ((const ax_value[]){ax_integer(0), at}), AX_DIMS(1, 1)));
}

static ax_value half_of(ax_value ref, int64_t at) {
  return ax_ref_slice(ref, ((const ax_value[]){ax_integer(0), ax_integer(at)}), AX_DIMS(1, 4));
}

static AX_BODY_OF(clear_scratch, const ax_value, refs) { ax_ref_store(refs[2], ax_real(0)); }

static AX_BODY_OF(add_one_of, const ax_value, refs) { out[0] = ax_add(in[1], one_of(refs[0], ax_sub(ax_integer(7), in[0]))); }

static AX_BODY(row) {
  const slip which = *(const slip *)context;
  ax_value x = ax_ref_load(in[0]);
  if (which == STORES_TO_OPERAND) ax_ref_store(in[0], ax_real(0));
  if (which == PLACE_FOUND_LATE) x = ax_add(x, one_of(in[0], ax_convert_element_type(ax_reduce_sum(x, AX_ALL_DIMS, false), AX_S32)));
  if (which == PLACE_BY_NUMBER) x = ax_add(x, one_of(in[0], ax_add(ax_mul(ax_program_id(0), ax_integer(2)), ax_integer(1))));
  if (which == PLACE_BEYOND) x = ax_add(x, one_of(in[0], ax_mul(ax_program_id(0), ax_integer(3)))); /* 9 of 8 */
  if (which == PLACE_IN_LOOP) ax_fori_loop(ax_integer(0), ax_integer(8), AX_CLOSURE(add_one_of, 2, 1, (void *)(uintptr_t)in), &x, &x);
  if (which == PRINTS) ax_debug_print("{}", false, AX_VALUES(x));
  if (which == WRITES_SCRATCH || which == PARALLEL_WITH_SCRATCH) ax_ref_store(in[2], x);
  if (which == BEGINS_SCRATCH_ONCE)
    ax_if(ax_eq(ax_program_id(0), ax_integer(0)), AX_CLOSURE(clear_scratch, 0, 0, (void *)(uintptr_t)in), AX_FN(leave, 0, 0), NULL, NULL);
  if (which == ADDS_TO_SCRATCH || which == BEGINS_SCRATCH_ONCE) ax_ref_add(in[2], x);
  if (which == MASKS_SCRATCH) ax_ref_store_masked(in[2], ax_gt(x, ax_full_like(x, 0)), x);
  if (which == PARTS_OF_SCRATCH || which == BOTH_PARTS) ax_ref_store(half_of(in[2], 0), ax_real(1));
  if (which == BOTH_PARTS) ax_ref_store(half_of(in[2], 4), ax_real(2));
  ax_ref_store(in[1], x);
}

static AX_BODY(rows) {
  const slip which = *(const slip *)context;
  const ax_block_spec spec = {.block = {AX_DIMS(1, 8)}, .index_map = by_row};
  const ax_scratch scratch = {.type = AX_VMEM(AX_F32, 1, 8)};
  const bool has = which >= WRITES_SCRATCH && which <= PARALLEL_WITH_SCRATCH;
  const ax_kernel kernel = {.grid = {AX_DIMS(which == BEYOND ? 5 : 4)},
                            .semantics = {AX_SEMANTICS(which == PARALLEL_WITH_SCRATCH ? AX_PARALLEL : AX_ARBITRARY)},
                            .in_specs = {AX_BLOCK_SPECS(spec)},
                            .out_specs = {AX_BLOCK_SPECS(spec)},
                            .outs = {AX_TYPES(AX_TYPE(AX_F32, 4, 8))},
                            .options = {.scratch = {AX_LIST(has ? 1 : 0, &scratch)}}};
  ax_kernel_call(&kernel, AX_CLOSURE(row, 2 + has, 0, context), AX_LIST(1, in), AX_LIST(1, out));
}

static void those_that_a_run_could_tell_apart_run_step_by_step(void **state) {
  static const struct {
    slip which;
    bool regular, beside;
  } cases[] = {{RIGHT, true, true},         {STORES_TO_OPERAND, false, false}, {PLACE_FOUND_LATE, false, false},
               {PLACE_BY_NUMBER, true, true}, {PLACE_IN_LOOP, true, true},     {PLACE_BEYOND, false, false},
               {PRINTS, false, false},      {WRITES_SCRATCH, true, true},     {ADDS_TO_SCRATCH, true, false},
               {BEGINS_SCRATCH_ONCE, true, false}, {MASKS_SCRATCH, true, false},     {PARTS_OF_SCRATCH, true, false},
               {BOTH_PARTS, true, false},   {PARALLEL_WITH_SCRATCH, true, true},
               {BEYOND, false, false}};
  (void)state;
  const ax_type type = AX_TYPE(AX_F32, 4, 8);
  for (size_t i = 0; i < AX_COUNT(cases); i++) {
    slip which = cases[i].which;
    ax_program *program = test_trace(rows, &which, &type, 1, 1);
    drawn = regular = beside = 0;
    count(program, &type, 1);
    if (drawn != 1 || regular != cases[i].regular || beside != cases[i].beside) fail_msg("case %zu: %u, %u", i, regular, beside);
    ax_program_release(program);
  }
}

/* Batches have a dimension more for each of the grid's; there is no room for all. */
static void at_all(const ax_value *ids, ax_value *index, void *context) {
  (void)context;
  for (uint32_t d = 0; d < 14; d++) index[d] = d < 4 ? ids[d] : ax_integer(0);
}

static AX_BODY(negate) { ax_ref_store(in[1], ax_neg(ax_ref_load(in[0]))); }

static AX_BODY(of_many_dimensions) {
  const ax_block_spec spec = {.block = {AX_DIMS(1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 3)}, .index_map = at_all};
  const ax_type type = ax_typeof(in[0]);
  const ax_kernel kernel = {.grid = {AX_DIMS(2, 2, 2, 2)}, .in_specs = {AX_BLOCK_SPECS(spec)}, .out_specs = {AX_BLOCK_SPECS(spec)},
                            .outs = {AX_LIST(1, &type)}};
  ax_kernel_call(&kernel, AX_FN(negate, 2, 0), AX_LIST(1, in), AX_LIST(1, out));
}

static void ranks_have_an_end(void **state) {
  (void)state;
  const ax_type type = AX_TYPE(AX_F32, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 3);
  test_random random = {7};
  ax_tensor *in = test_random_tensor(&random, type, -1, 1);
  ax_program *program = test_trace(of_many_dimensions, NULL, &type, 1, 1);
  drawn = regular = beside = 0;
  count(program, &type, 1);
  assert_true(regular == 1 && beside == 1);
  TEST_EVERY_WAY(program, &in, 0);
  test_release(&in, 1);
  ax_program_release(program);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(random_kernels_give_what_the_machine_gives),
                                     cmocka_unit_test(those_that_a_run_could_tell_apart_run_step_by_step), cmocka_unit_test(ranks_have_an_end)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
