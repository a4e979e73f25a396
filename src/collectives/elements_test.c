/* Complex numbers and keys in collectives that are started, and in ragged exchanges: beside the same of the numbers' parts, and of
   the keys' words; derivatives, batches, StableHLO. */
#include <string.h>

#include "axle/collectives.h"
#include "axle/ops.h"
#include "axle/random.h"
#include "axle/stablehlo.h"
#include "axle/transform.h"
#include "hlo/hlo.h"
#include "ir/prim.h"
#include "support/cmocka.h"
#include "support/random.h"
#include "support/run.h"

enum { MEMBERS = 4, ROWS = 4, COLUMNS = 3 };

static ax_runtime *runtime;

/* A program of two results, which are to be the same; a zero of a cotangent may have another sign. tolerance: beside evaluation. */
static void both_the_same(const test_map *map, const ax_type *types, uint32_t count, uint64_t seed, double tolerance) {
  test_random random = {seed};
  ax_tensor *in[8], *out[2];
  ax_program *program = test_trace_map(map, types);
  for (uint32_t i = 0; i < count; i++) in[i] = test_random_tensor(&random, types[i], -1, 1);
  test_execute(runtime, program, in, out);
  TEST_TENSORS_NEAR(out[0], out[1], 0);
  TEST_EVERY_WAY(program, in, tolerance);
  test_release(in, count), test_release(out, 2);
  ax_program_release(program);
}

/* --- Started --- */

typedef ax_value exchange(ax_value x);
static ax_value permuted(ax_value x) { return ax_pshift(x, "d", 1, true); }
static ax_value gathered(ax_value x) { return ax_all_gather(x, "d", 0, true); }
static ax_value turned(ax_value x) { return ax_all_to_all(x, "d", 0, 0, true); }
static ax_value summed(ax_value x) { return ax_pvary(ax_psum(x, "d"), "d"); }
static ax_value scattered(ax_value x) { return ax_psum_scatter(x, "d", 0, true); }

static exchange *const moves[] = {permuted, gathered, turned}, *const sums[] = {summed, scattered};

/* Its parts, exchanged apart, beside the number. */
static AX_BODY(complex_and_parts) {
  exchange *const *does = context;
  const ax_value future = ax_start((*does)(in[0])), square = ax_mul(in[0], in[0]);
  const ax_value re = (*does)(ax_real_part(in[0])), im = (*does)(ax_imag_part(in[0]));
  const ax_value least = ax_reduce_sum(ax_real_part(square), AX_ALL_DIMS, false), zero = ax_mul(least, ax_real(0));
  out[0] = ax_add(ax_done(future), ax_complex(zero, zero));
  out[1] = ax_add(ax_complex(re, im), ax_complex(zero, zero));
}

static AX_BODY(keys_and_words) {
  exchange *const *does = context;
  const ax_value future = ax_start((*does)(ax_random_wrap_key_data(in[0])));
  out[1] = (*does)(in[0]);
  out[0] = ax_random_key_data(ax_done(future));
}

static void started(void **state) {
  (void)state;
  const ax_dtype dtypes[] = {AX_C64, AX_C128};
  for (size_t k = 0; k < AX_COUNT(moves) + AX_COUNT(sums); k++)
    for (size_t d = 0; d < AX_COUNT(dtypes); d++) {
      exchange *const *does = k < AX_COUNT(moves) ? &moves[k] : &sums[k - AX_COUNT(moves)];
      const ax_type type = TEST_TYPE(dtypes[d], MEMBERS * ROWS, COLUMNS), words = TEST_TYPE(AX_U32, MEMBERS * ROWS, 2);
      const test_map parts = {"d=4", {"d"}, {"d", "d"}, complex_and_parts, false, (void *)(uintptr_t)does},
                     keys = {"d=4", {"d"}, {"d", "d"}, keys_and_words, false, (void *)(uintptr_t)does};
      both_the_same(&parts, &type, 1, 3 + k, 0);
      if (k < AX_COUNT(moves)) both_the_same(&keys, &words, 1, 5 + k, 0);
    }
}

/* --- Ragged: each member has one slice for each, of 0 to 2 rows, at the same places in all members --- */

static const int64_t sizes[MEMBERS][MEMBERS] = {{1, 1, 0, 1}, {0, 1, 2, 1}, {2, 0, 1, 1}, {1, 1, 1, 1}};

/* Row `member` of a table, as this device's. */
static ax_value own_row(int64_t (*table)[MEMBERS]) {
  const ax_type type = TEST_TYPE(AX_S64, MEMBERS, MEMBERS);
  return ax_dynamic_at((ax_constant)(&type, AX_S64, table, sizeof(int64_t[MEMBERS][MEMBERS])), ax_axis_index("d"), 0);
}

static ax_value ragged(ax_value operand, ax_value output) {
  int64_t from[MEMBERS][MEMBERS], to[MEMBERS][MEMBERS], sent[MEMBERS][MEMBERS], received[MEMBERS][MEMBERS];
  for (int m = 0; m < MEMBERS; m++)
    for (int n = 0; n < MEMBERS; n++) {
      sent[m][n] = sizes[m][n], received[n][m] = sizes[m][n], from[m][n] = to[m][n] = 0;
      for (int before = 0; before < n; before++) from[m][n] += before % 2 == 0 ? sizes[m][before] : 0; /* some lie on each other */
      for (int before = 0; before < m; before++) to[m][n] += sizes[before][n];
    }
  return ax_ragged_all_to_all(operand, output, own_row(from), own_row(sent), own_row(to), own_row(received), "d");
}

static AX_BODY(ragged_complex) {
  out[0] = ragged(in[0], in[1]);
  out[1] = ax_complex(ragged(ax_real_part(in[0]), ax_real_part(in[1])), ragged(ax_imag_part(in[0]), ax_imag_part(in[1])));
}
static AX_BODY(ragged_keys) {
  out[0] = ax_random_key_data(ragged(ax_random_wrap_key_data(in[0]), ax_random_wrap_key_data(in[1])));
  out[1] = ragged(in[0], in[1]);
}

/* The sum of sines of both parts, weighed. */
static ax_value weighed(ax_value re, ax_value im) {
  const ax_value both = ax_add(ax_sin(re), ax_mul(ax_sin(im), ax_real(3)));
  return ax_psum(ax_reduce_sum(both, AX_ALL_DIMS, false), "d");
}
/* in: the parts of operand and output */
static AX_BODY(loss_of_complex) {
  const ax_value y = ragged(ax_complex(in[0], in[1]), ax_complex(in[2], in[3]));
  out[0] = weighed(ax_real_part(y), ax_imag_part(y));
}
static AX_BODY(loss_of_parts) { out[0] = weighed(ragged(in[0], in[2]), ragged(in[1], in[3])); }
static AX_BODY(gradients) {
  ax_value one[4], other[4];
  ax_grad(AX_FN(loss_of_complex, 4, 1), AX_FIRST(4), in, one);
  ax_grad(AX_FN(loss_of_parts, 4, 1), AX_FIRST(4), in, other);
  out[0] = ax_concatenate(AX_VALUES(one[0], one[1], one[2], one[3]), 0);
  out[1] = ax_concatenate(AX_VALUES(other[0], other[1], other[2], other[3]), 0);
}

static AX_BODY(batched) {
  ax_vmap(AX_FN(ragged_complex, 2, 2), in, out, &(ax_vmap_options){.in_axes = {AX_DIMS(2, 0)}, .out_axes = {AX_DIMS(1, 1)}});
}

static void ragged_elements(void **state) {
  (void)state;
  const ax_dtype dtypes[] = {AX_C64, AX_C128};
  for (size_t d = 0; d < AX_COUNT(dtypes); d++) {
    const ax_type type = TEST_TYPE(dtypes[d], MEMBERS * ROWS, COLUMNS);
    const ax_type part = TEST_TYPE(ax_part_dtype(dtypes[d]), MEMBERS * ROWS, COLUMNS);
    const ax_type types[] = {type, type}, parts[] = {part, part, part, part};
    const test_map numbers = {"d=4", {"d", "d"}, {"d", "d"}, ragged_complex, false, NULL},
                   slopes = {"d=4", {"d", "d", "d", "d"}, {"d", "d"}, gradients, false, NULL};
    both_the_same(&numbers, types, 2, 11, 0);
    both_the_same(&slopes, parts, 4, 12, d == 0 ? 1e-6 : 1e-14);
  }
  const ax_type words[] = {TEST_TYPE(AX_U32, MEMBERS * ROWS, 2), TEST_TYPE(AX_U32, MEMBERS * ROWS, 2)};
  both_the_same(&(test_map){"d=4", {"d", "d"}, {"d", "d"}, ragged_keys, false, NULL}, words, 2, 13, 0);
}

static void ragged_batches(void **state) {
  (void)state;
  const ax_type types[] = {TEST_TYPE(AX_C64, MEMBERS * ROWS, COLUMNS, 2), TEST_TYPE(AX_C64, 2, MEMBERS * ROWS, COLUMNS)};
  both_the_same(&(test_map){"d=4", {"d", "_,d"}, {"d", "d"}, batched, false, NULL}, types, 2, 14, 0);
}

/* --- StableHLO --- */

static void written(void **state) {
  (void)state;
  static const char *const parts[] = {"!stablehlo.future<tensor<4x3xcomplex<f32>>>", "!stablehlo.future<tensor<4x2xui32>>"};
  for (int k = 0; k < 2; k++) {
    const ax_type type = k == 0 ? TEST_TYPE(AX_C64, MEMBERS * ROWS, COLUMNS) : TEST_TYPE(AX_U32, MEMBERS * ROWS, 2);
    const test_map map = {
        "d=4", {"d"}, {"d", "d"}, k == 0 ? complex_and_parts : keys_and_words, false, (void *)(uintptr_t)&moves[0]};
    ax_program *program = test_trace_map(&map, &type);
    char *text;
    TEST_OK(ax_program_stablehlo(program, &text));
    if (strstr(text, parts[k]) == NULL) fail_msg("no %s in\n%s", parts[k], text);
    ax_string_free(text);
    ax_program_release(program);
  }
}

/* StableHLO has a key's words as one dimension more. */
static void keys_of_many_dimensions(void **state) {
  (void)state;
  static const char text[] = "{ lambda x:key[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,2]. let y:key[2] = reshape[new_sizes=(2,)] x in (y,) }";
  ax_program *program;
  uint32_t in = 0, out;
  TEST_OK(ax_program_parse(text, sizeof text - 1, NULL, &program));
  TEST_FAILS(ax_hlo_eqn(&(ax_hlo){.program = program}, &program->eqns[0], &in, &out), AX_ABSENT,
             "reshape: StableHLO has keys with one more dimension, and their rank is 16 already");
  ax_program_release(program);
}

static int set_up(void **state) {
  (void)state;
  TEST_OK(ax_runtime_create(NULL, &runtime));
  return 0;
}
static int tear_down(void **state) {
  (void)state;
  ax_runtime_release(runtime);
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(started), cmocka_unit_test(ragged_elements), cmocka_unit_test(ragged_batches),
                                     cmocka_unit_test(written), cmocka_unit_test(keys_of_many_dimensions)};
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
