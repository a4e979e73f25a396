/* Kernels whose last blocks stick out and whose bodies make sums or maxima: the strands at the edge are a batch of their own
   (discharge_strands.c). The machine gives the same, and what is whole is not padded. */
#include <string.h>

#include "axle/axle.h"
#include "ir/program.h"
#include "kernel/discharge.h"
#include "prim/prims.h"
#include "support/cmocka.h"
#include "support/run.h"

typedef struct tried { /* x: rows x columns, in tiles */
  int64_t rows, columns, tile_rows, tile_columns;
  ax_function map, body;
  int64_t out[2]; /* of the result, in tiles of out_tile; rank 1 if out[1] is 0 */
  int64_t out_tile[2];
  ax_function out_map;
  bool in_place;
} tried;

static int64_t tiles(int64_t n, int64_t tile) { return (n + tile - 1) / tile; }

static AX_BODY(here) { out[0] = in[0], out[1] = in[1]; }
static AX_BODY(second) { out[0] = in[1]; }

/* What sticks out of an operand is NaN: here a number that no maximum is. */
static ax_value known(ax_value x) { return ax_where(ax_ne(x, x), ax_real(-1000), x); }

static ax_value number(uint32_t dim) { return ax_convert_element_type(ax_program_id(dim), AX_F32); }

static AX_BODY(less_than_sum) {
  const ax_value x = ax_ref_load(in[0]);
  ax_ref_store(in[1], ax_add(ax_sub(x, ax_reduce_sum(x, AX_DIMS(1), true)), number(0)));
}
static AX_BODY(sum_of_rows) { ax_ref_store(in[1], ax_add(ax_reduce_sum(known(ax_ref_load(in[0])), AX_DIMS(0), false), number(1))); }
static AX_BODY(less_than_most) {
  const ax_value x = known(ax_ref_load(in[0]));
  ax_ref_store(in[1], ax_add(ax_sub(x, ax_reduce_max(x, AX_ALL_DIMS, true)), ax_sub(number(0), ax_mul(number(1), ax_real(10)))));
}

static AX_BODY_OF(call, const tried, t) {
  const uint32_t rank = t->out[1] > 0 ? 2 : 1;
  const ax_block_spec x = {.block = {AX_DIMS(t->tile_rows, t->tile_columns)}, .index_map = t->map},
                      y = {.block = {AX_LIST(rank, t->out_tile)}, .index_map = t->out_map};
  const uint32_t alias[1][2] = {{0, 0}};
  ax_kernel_call((&(ax_kernel){.grid = {AX_DIMS(tiles(t->rows, t->tile_rows), tiles(t->columns, t->tile_columns))},
                              .in_specs = {AX_BLOCK_SPECS(x)},
                              .out_specs = {AX_BLOCK_SPECS(y)},
                              .outs = {AX_TYPES((ax_array_type)(AX_F32, rank, t->out))},
                              .options = {.aliases = {AX_LIST(t->in_place ? 1 : 0, alias)}}}),
                 AX_CLOSURE(t->body, 2, 0, NULL), AX_LIST(1, in), out);
}

static ax_program *traced(const tried *t) {
  const ax_type type = AX_TYPE(AX_F32, t->rows, t->columns);
  ax_program *program;
  TEST_OK((ax_trace)(AX_CLOSURE(call, 1, 1, (void *)t), 1, &type, &program));
  return program;
}

static const ax_eqn *kernel_in(const ax_program *program) {
  const ax_eqn *eqn = program->eqns;
  while (eqn->prim != &ax_prim_kernel_call) eqn++;
  return eqn;
}

/* The most elements that a padding in the plain program has. */
static int64_t most_padded(const ax_program *program, const tried *t) {
  const ax_type type = AX_TYPE(AX_F32, t->rows, t->columns);
  ax_program *plain;
  int64_t most = 0;
  TEST_OK(ax_kernel_discharge_run(kernel_in(program), &(ax_discharge_options){.in = &type, .in_count = 1, .beside = true}, &plain));
  for (uint32_t e = 0; e < plain->eqn_count; e++) {
    const ax_eqn *eqn = &plain->eqns[e];
    if (eqn->prim == &ax_prim_pad && ax_type_elems(&plain->types[eqn->out]) > most) most = ax_type_elems(&plain->types[eqn->out]);
  }
  ax_program_release(plain);
  return most;
}

static void try_one(const tried *t) {
  const ax_type type = AX_TYPE(AX_F32, t->rows, t->columns);
  const int64_t along = tiles(t->columns, t->tile_columns), wide = along * t->tile_columns,
                high = tiles(t->rows, t->tile_rows) * t->tile_rows;
  ax_program *program = traced(t);
  ax_tensor *in;
  TEST_OK(ax_tensor_create(&type, &in));
  for (int64_t i = 0; i < t->rows * t->columns; i++) test_set(in, i, (double)((i * 37) % 23) / 4 - 2);
  (void)test_as_reference(program, &in, true);
  int64_t edge = t->rows % t->tile_rows != 0 ? t->tile_rows * wide : 0; /* of the last strands along each dimension, the larger */
  if (t->columns % t->tile_columns != 0 && high * t->tile_columns > edge) edge = high * t->tile_columns;
  assert_in_range(most_padded(program, t), edge > 0, edge);
  ax_tensor_release(in);
  ax_program_release(program);
}

static void rows(void **state) {
  (void)state;
  for (int64_t n = 5; n <= 17; n += 3)
    for (int64_t tile = 2; tile <= 4; tile++)
      for (int in_place = 0; in_place < 2; in_place++)
        try_one(&(tried){n, 6, tile, 6, here, less_than_sum, {n, 6}, {tile, 6}, here, in_place});
}

/* Each result is a number for a column. */
static void columns(void **state) {
  (void)state;
  for (int64_t n = 5; n <= 17; n += 4)
    for (int64_t tile = 2; tile <= 4; tile++) try_one(&(tried){3, n, 3, tile, here, sum_of_rows, {n}, {tile}, second, false});
}

static void rows_and_columns(void **state) {
  (void)state;
  for (int64_t n = 5; n <= 11; n += 2)
    for (int64_t tile = 2; tile <= 4; tile++)
      for (int in_place = 0; in_place < 2; in_place++)
        try_one(&(tried){n, n + 3, tile, tile + 1, here, less_than_most, {n, n + 3}, {tile, tile + 1}, here, in_place});
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(rows), cmocka_unit_test(columns), cmocka_unit_test(rows_and_columns)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
