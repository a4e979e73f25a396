/* Kernels whose points add to results that they have in common: as plain programs they are one loop without a branch, if the
   points only add; and they give what the machine gives, to the bit, whether they are or not. */
#include <string.h>

#include "axle/axle.h"
#include "ir/prim.h"
#include "kernel/discharge.h"
#include "prim/prims.h"
#include "support/cmocka.h"
#include "support/run.h"

/* x: [1200, 256] in blocks of [300, 64]: a grid of 4 x 4. Bodies have x's block, and the results'. */
enum { rows = 1200, columns = 256, high = 300, wide = 64 };

static AX_BODY(by_both) { out[0] = in[0], out[1] = in[1]; }
static AX_BODY(by_row) { out[0] = in[0]; }
static AX_BODY(turned) { out[0] = in[1], out[1] = in[0]; } /* the grid goes along the columns first */
static AX_BODY(always_first) { out[0] = ax_integer(0); }

static ax_value is_first_point(void) {
  return ax_and(ax_eq(ax_program_id(0), ax_integer(0)), ax_eq(ax_program_id(1), ax_integer(0)));
}
static ax_value sum_of(ax_value x) { return ax_reshape(ax_reduce_sum(x, AX_ALL_DIMS, false), AX_DIMS(1)); }

/* One result of one number. */
static AX_BODY(sums) {
  AX_IF (is_first_point()) ax_ref_store(in[1], ax_real(2));
  ax_ref_add(in[1], sum_of(ax_ref_load(in[0])));
}
static AX_BODY(by_load_and_store) {
  AX_IF (is_first_point()) ax_ref_store(in[1], ax_real(2));
  ax_ref_store(in[1], ax_sub(ax_ref_load(in[1]), sum_of(ax_ref_load(in[0]))));
}
static AX_BODY(greatest) {
  AX_IF (is_first_point()) ax_ref_store(in[1], ax_real(-100));
  ax_ref_store(in[1], ax_max(ax_reshape(ax_reduce_max(ax_ref_load(in[0]), AX_ALL_DIMS, false), AX_DIMS(1)), ax_ref_load(in[1])));
}
static AX_BODY(weighted) { /* by the point's number */
  AX_IF (is_first_point()) ax_ref_store(in[1], ax_real(0));
  ax_ref_add(in[1],
             ax_mul(sum_of(ax_ref_load(in[0])), ax_convert_element_type(ax_add(ax_program_id(0), ax_program_id(1)), AX_F32)));
}
static AX_BODY(slices) { /* of a block, where the point's number says */
  AX_IF (is_first_point()) ax_ref_store(in[1], ax_real(0));
  ax_ref_add(in[1], sum_of(ax_ref_load(
                        ax_ref_slice(in[0], AX_VALUES(ax_rem(ax_program_id(1), ax_integer(3)), ax_integer(0)), AX_DIMS(1, wide)))));
}

/* These do something else, too. */
static AX_BODY(begins_late) {
  ax_ref_add(in[1], sum_of(ax_ref_load(in[0])));
  AX_IF (is_first_point()) ax_ref_store(in[1], ax_real(2));
}
static AX_BODY(begins_with_x) {
  AX_IF (is_first_point()) ax_ref_store(in[1], sum_of(ax_ref_load(in[0])));
  ax_ref_add(in[1], sum_of(ax_ref_load(in[0])));
}
static AX_BODY(begins_at_second) {
  AX_IF (ax_eq(ax_program_id(1), ax_integer(1))) ax_ref_store(in[1], ax_real(2));
  ax_ref_add(in[1], sum_of(ax_ref_load(in[0])));
}
static AX_BODY(begins_each_row) { /* what the rows before have added is lost */
  AX_IF (ax_eq(ax_program_id(1), ax_integer(0))) ax_ref_store(in[1], ax_real(2));
  ax_ref_add(in[1], sum_of(ax_ref_load(in[0])));
}
static AX_BODY(adds_twice) {
  AX_IF (is_first_point()) ax_ref_store(in[1], ax_real(2));
  ax_ref_add(in[1], sum_of(ax_ref_load(in[0])));
  ax_ref_add(in[1], ax_mul(ax_ref_load(in[1]), ax_real(0.5)));
}
static AX_BODY(halves) {
  AX_IF (is_first_point()) ax_ref_store(in[1], ax_real(2));
  ax_ref_store(in[1], ax_add(ax_mul(ax_ref_load(in[1]), ax_real(0.5)), sum_of(ax_ref_load(in[0]))));
}
static AX_BODY(ends) {
  AX_IF (is_first_point()) ax_ref_store(in[1], ax_real(2));
  ax_ref_add(in[1], sum_of(ax_ref_load(in[0])));
  AX_IF (ax_eq(ax_add(ax_program_id(0), ax_program_id(1)), ax_integer(6)))
    ax_ref_store(in[1], ax_mul(ax_ref_load(in[1]), ax_real(0.5)));
}
static AX_BODY(or_else) {
  AX_IF (is_first_point()) ax_ref_store(in[1], ax_real(2));
  AX_ELSE ax_ref_add(in[1], ax_real(1));
  ax_ref_add(in[1], sum_of(ax_ref_load(in[0])));
}
static AX_BODY(reads_before) {
  ax_value before = ax_ref_load(in[1]);
  AX_IF (is_first_point()) ax_ref_store(in[1], ax_real(2));
  ax_ref_store(in[1], ax_add(ax_where(is_first_point(), ax_full_like(before, 1), before), sum_of(ax_ref_load(in[0]))));
}

/* A row's or a column's sums. */
static AX_BODY(row_sums) {
  AX_IF (ax_eq(ax_program_id(1), ax_integer(0))) ax_ref_store(in[1], ax_real(0));
  ax_ref_add(in[1], ax_reduce_sum(ax_ref_load(in[0]), AX_DIMS(1), false));
}
static AX_BODY(column_sums) {
  AX_IF (ax_eq(ax_program_id(1), ax_integer(0))) ax_ref_store(in[1], ax_real(0));
  ax_ref_add(in[1], ax_reduce_sum(ax_ref_load(in[0]), AX_DIMS(0), false));
}

typedef struct a_kernel {
  ax_function body;
  ax_function x_map, map; /* of x and of the result */
  int64_t block, whole;
  bool one_loop;
} a_kernel;

static AX_BODY_OF(call, const a_kernel, a) {
  const bool by_columns = a->x_map == turned;
  const ax_block_spec x = {.block = {AX_DIMS(high, wide)}, .index_map = a->x_map},
                      y = {.block = {AX_DIMS(a->block)}, .index_map = a->map};
  ax_kernel_call(
      (&(ax_kernel){.grid = {AX_DIMS(by_columns ? columns / wide : rows / high, by_columns ? rows / high : columns / wide)},
                    .in_specs = {AX_BLOCK_SPECS(x)},
                    .out_specs = {AX_BLOCK_SPECS(y)},
                    .outs = {AX_TYPES(AX_TYPE(AX_F32, a->whole))}}),
      AX_FN(*a->body, 2, 0), AX_LIST(1, in), out);
}

static void count(const ax_program *program, uint32_t *loops, uint32_t *branches, uint32_t *sums_made) {
  const ax_program *nested;
  for (uint32_t e = 0; e < program->eqn_count; e++) {
    const ax_eqn *eqn = &program->eqns[e];
    *loops += eqn->prim == &ax_prim_scan;
    *branches += eqn->prim->runs == AX_RUNS_ONE && ax_eqn_program(eqn, 0) != NULL;
    *sums_made += eqn->prim == &ax_prim_reduce_sum || eqn->prim == &ax_prim_reduce_max;
    for (uint32_t i = 0; (nested = ax_eqn_program(eqn, i)) != NULL; i++) count(nested, loops, branches, sums_made);
  }
}

static void try_kernel(const a_kernel *a) {
  const ax_type type = TEST_TYPE(AX_F32, rows, columns);
  ax_program *program = test_trace(call, (void *)(uintptr_t)a, &type, 1, 1), *plain;
  ax_tensor *x;
  uint32_t loops = 0, branches = 0, sums_made = 0;
  const ax_eqn *kernel = &program->eqns[0];
  TEST_OK(
      ax_kernel_discharge_run(kernel, &(ax_discharge_options){.in = &type, .in_count = 1, .beside = true, .apart = true}, &plain));
  count(plain, &loops, &branches, &sums_made);
  assert_int_equal(loops == 1 && branches == 0 && sums_made == 1, a->one_loop);
  TEST_OK(ax_tensor_create(&type, &x));
  for (int64_t i = 0; i < rows * columns; i++) test_set(x, i, (double)(i * 7 % 11) - 5);
  TEST_EVERY_WAY(program, &x, 0);
  ax_tensor_release(x);
  ax_program_release(plain);
  ax_program_release(program);
}

static void kernels_that_add(void **state) {
  (void)state;
  const a_kernel kernels[] = {
      {sums, by_both, always_first, 1, 1, true},          {by_load_and_store, by_both, always_first, 1, 1, true},
      {greatest, by_both, always_first, 1, 1, true},      {weighted, by_both, always_first, 1, 1, true},
      {slices, by_both, always_first, 1, 1, true},        {row_sums, by_both, by_row, high, rows, true},
      {column_sums, turned, by_row, wide, columns, true},
  };
  for (size_t k = 0; k < AX_COUNT(kernels); k++) try_kernel(&kernels[k]);
}

static void kernels_that_do_more(void **state) {
  (void)state;
  const a_kernel kernels[] = {
      {begins_late, by_both, always_first, 1, 1, false},
      {begins_with_x, by_both, always_first, 1, 1, false},
      {begins_at_second, by_both, always_first, 1, 1, false},
      {begins_each_row, by_both, always_first, 1, 1, false},
      {adds_twice, by_both, always_first, 1, 1, false},
      {halves, by_both, always_first, 1, 1, false},
      {ends, by_both, always_first, 1, 1, false},
      {or_else, by_both, always_first, 1, 1, false},
      {reads_before, by_both, always_first, 1, 1, false},
  };
  for (size_t k = 0; k < AX_COUNT(kernels); k++) try_kernel(&kernels[k]);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(kernels_that_add), cmocka_unit_test(kernels_that_do_more)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
