/* Loops over a few numbers, which fused loops may hold one by one, in every manner: states used whole, in parts, element by element by a
   loop inside, from either end, and by branches. Against evaluation, with integers, so that every bit counts. */
#include <stdio.h>
#include <string.h>

#include "support/cmocka.h"
#include "support/random.h"
#include "support/run.h"

static void try_text(const char *text, uint64_t seed) {
  ax_program *program;
  ax_tensor *in[2];
  test_random random = {seed};
  TEST_OK(ax_program_parse(text, strlen(text), "small states", &program));
  const uint32_t count = ax_program_in_count(program);
  for (uint32_t i = 0; i < count; i++) in[i] = test_random_tensor(&random, *ax_program_in_type(program, i), -50, 50);
  test_every_way(program, in, 0, seed, __FILE__, __LINE__);
  test_release(in, count);
  ax_program_release(program);
}

/* c is added up, then gone through by a loop inside, whose results are the next c. */
static void gone_through(void **state) {
  static const char form[] =
      "{ lambda x:s32[%d]. let\n"
      "  c:s32[%d] t:s32[] = scan[ length=100 reverse=false num_consts=0 num_carry=2\n"
      "    body={ lambda c:s32[%d] t:s32[]. let\n"
      "      z:s32[] = reduce_%s[axes=(0,)] c\n"
      "      a:s32[] y:s32[%d] = scan[ length=%d reverse=%s num_consts=1 num_carry=1\n"
      "        body={ lambda z:s32[] a:s32[] i:s32[]. let p:s32[] = mul a 3:s32[] q:s32[] = add p i r:s32[] = add q z\n"
      "               s:s32[] = rem r 101:s32[] in (s, s) } ] z t c\n"
      "      in (y, a) } ] x 1:s32[]\n"
      "  in (c, t) }\n";
  (void)state;
  for (int elems = 2; elems <= 17; elems += 1 + elems / 4)
    for (int way = 0; way < 4; way++) {
      char text[1024];
      snprintf(text, sizeof text, form, elems, elems, elems, way < 2 ? "sum" : "max", elems, elems, way % 2 != 0 ? "true" : "false");
      try_text(text, (uint64_t)(4 * elems + way));
    }
}

/* Rows and columns of few elements, no whole vectors: what a step stores in parts the next one reads by rows and by columns. */
static void rows_and_columns(void **state) {
  static const char form[] =
      "{ lambda x:%s[%d,%d]. let\n"
      "  c:%s[%d,%d] = scan[ length=30 reverse=false num_consts=0 num_carry=1\n"
      "    body={ lambda c:%s[%d,%d]. let\n"
      "      s:%s[%d] = reduce_sum[axes=(1,)] c\n"
      "      m:%s[%d] = reduce_max[axes=(0,)] c\n"
      "      a:%s[%d,%d] = broadcast_in_dim[shape=(%d,%d) broadcast_dimensions=(0,)] s\n"
      "      b:%s[%d,%d] = broadcast_in_dim[shape=(%d,%d) broadcast_dimensions=(1,)] m\n"
      "      n:%s[%d,%d] = broadcast_in_dim[shape=(%d,%d) broadcast_dimensions=()] 101:%s[]\n"
      "      d:%s[%d,%d] = add a b\n"
      "      e:%s[%d,%d] = add c d\n"
      "      f:%s[%d,%d] = rem e n\n"
      "      in (f) } ] x\n"
      "  in (c) }\n";
  static const char *const types[] = {"s32", "s64", "s8", "u32", "s16"};
  (void)state;
  for (int r = 1; r <= 33; r += 1 + r / 3)
    for (int k = 2; k <= 37; k += 1 + k / 2) {
      const char *t = types[(r + k) % 5];
      char text[2048];
      snprintf(text, sizeof text, form, t, r, k, t, r, k, t, r, k, t, r, t, k, t, r, k, r, k, t, r, k, r, k, t, r, k, r, k, t, t, r, k, t, r, k, t, r, k);
      try_text(text, (uint64_t)(100 * r + k));
    }
}

/* The same with floats, by what gives the same bits in any order: largest and smallest numbers, and sums of two. */
static void rows_and_columns_of_floats(void **state) {
  static const char form[] =
      "{ lambda x:%s[%d,%d]. let\n"
      "  c:%s[%d,%d] = scan[ length=30 reverse=false num_consts=0 num_carry=1\n"
      "    body={ lambda c:%s[%d,%d]. let\n"
      "      s:%s[%d] = reduce_min[axes=(1,)] c\n"
      "      m:%s[%d] = reduce_max[axes=(0,)] c\n"
      "      a:%s[%d,%d] = broadcast_in_dim[shape=(%d,%d) broadcast_dimensions=(0,)] s\n"
      "      b:%s[%d,%d] = broadcast_in_dim[shape=(%d,%d) broadcast_dimensions=(1,)] m\n"
      "      d:%s[%d,%d] = sub a b\n"
      "      e:%s[%d,%d] = max c d\n"
      "      f:%s[%d,%d] = rev[dimensions=(1,)] e\n"
      "      in (f) } ] x\n"
      "  in (c) }\n";
  static const char *const types[] = {"f32", "f64", "bf16", "f16"};
  (void)state;
  for (int r = 1; r <= 21; r += 1 + r / 3)
    for (int k = 2; k <= 37; k += 1 + k / 2) {
      const char *t = types[(r + k) % 4];
      char text[2048];
      snprintf(text, sizeof text, form, t, r, k, t, r, k, t, r, k, t, r, t, k, t, r, k, r, k, t, r, k, r, k, t, r, k, t, r, k, t, r, k);
      try_text(text, (uint64_t)(100 * r + k));
    }
}

/* Sums at places that all rows have in common: of two numbers each. */
static void scattered(void **state) {
  static const char form[] =
      "{ lambda x:%s[6,5,7]. let\n"
      "  c:%s[6,5,7] = scan[ length=9 reverse=false num_consts=0 num_carry=1\n"
      "    body={ lambda c:%s[6,5,7]. let\n"
      "      j:s32[11,2] = iota[dtype=s32 shape=(11,2) dimension=0]\n"
      "      k:s32[11,2] = broadcast_in_dim[shape=(11,2) broadcast_dimensions=()] 6:s32[]\n"
      "      i:s32[11,2] = rem j k\n"
      "      t:%s[6,5] = reduce_max[axes=(2,)] c\n"
      "      v:%s[6,11] = broadcast_in_dim[shape=(6,11) broadcast_dimensions=()] 3:%s[]\n"
      "      d:%s[6,5,7] = scatter_add[update_window_dims=(0,) inserted_window_dims=(1, 2) scatter_dims_to_operand_dims=(1, 2) "
      "operand_batching_dims=() scatter_indices_batching_dims=() mode=\"fill\" indices_are_sorted=false unique_indices=false] c i v\n"
      "      b:%s[6,5,7] = broadcast_in_dim[shape=(6,5,7) broadcast_dimensions=(0, 1)] t\n"
      "      e:%s[6,5,7] = add d b\n"
      "      in (e) } ] x\n"
      "  in (c) }\n";
  static const char *const types[] = {"s32", "u32", "s64", "u64", "s16"};
  (void)state;
  for (int i = 0; i < (int)AX_COUNT(types); i++) {
    const char *t = types[i];
    char text[2048];
    snprintf(text, sizeof text, form, t, t, t, t, t, t, t, t, t);
    try_text(text, (uint64_t)i);
  }
}

/* The state's elements each by another rule, and its parts in others' places. */
static void in_parts(void **state) {
  static const char text[] =
      "{ lambda x:s32[4] y:s32[4]. let\n"
      "  c:s32[4] d:s32[4] = scan[ length=90 reverse=false num_consts=0 num_carry=2\n"
      "    body={ lambda c:s32[4] d:s32[4]. let\n"
      "      a:s32[1] = slice[start_indices=(0,) limit_indices=(1,) strides=(1,)] c\n"
      "      b:s32[3] = slice[start_indices=(1,) limit_indices=(4,) strides=(1,)] c\n"
      "      e:s32[3] = slice[start_indices=(0,) limit_indices=(3,) strides=(1,)] d\n"
      "      f:s32[3] = add b e\n"
      "      g:s32[4] = concatenate[dimension=0] f a\n"
      "      m:s32[4] = broadcast_in_dim[shape=(4,) broadcast_dimensions=()] 1009:s32[]\n"
      "      h:s32[4] = add g g\n"
      "      i:s32[4] = rem h m\n"
      "      j:s32[2] = slice[start_indices=(2,) limit_indices=(4,) strides=(1,)] i\n"
      "      k:s32[4] = dynamic_update_slice d j 1:s32[]\n"
      "      in (i, k) } ] x y\n"
      "  in (c, d) }\n";
  (void)state;
  try_text(text, 1);
}

/* Rows and columns of a matrix that become one number each, which all of it takes in again. */
static void combined(void **state) {
  static const char form[] =
      "{ lambda x:s32[%d,%d]. let\n"
      "  u:s32[%d] = reduce_sum[axes=(%d,)] x\n"
      "  c:s32[%d,%d] t:s32[%d] = scan[ length=%d reverse=false num_consts=0 num_carry=2\n"
      "    body={ lambda c:s32[%d,%d] t:s32[%d]. let\n"
      "      s:s32[%d] = reduce_%s[axes=(%d,)] c\n"
      "      a:s32[%d] = add s t\n"
      "      b:s32[%d,%d] = broadcast_in_dim[shape=(%d,%d) broadcast_dimensions=(%d,)] a\n"
      "      d:s32[%d,%d] = add c c\n"
      "      e:s32[%d,%d] = add d b\n"
      "      m:s32[%d,%d] = broadcast_in_dim[shape=(%d,%d) broadcast_dimensions=()] 1009:s32[]\n"
      "      f:s32[%d,%d] = rem e m\n"
      "      in (f, s) } ] x u\n"
      "  in (c, t) }\n";
  static const int shapes[][2] = {{2, 3}, {5, 5}, {3, 7}, {7, 3}, {6, 6}, {8, 5}, {4, 10}, {4, 17}, {1, 33}, {7, 7}};
  static const char *const combiners[] = {"sum", "max", "min"};
  (void)state;
  for (int i = 0; i < (int)AX_COUNT(shapes); i++)
    for (int way = 0; way < 6; way++) {
      const int r = shapes[i][0], k = shapes[i][1], axis = way % 2, left = axis == 0 ? k : r;
      char text[2048];
      snprintf(text, sizeof text, form, r, k, left, axis, r, k, left, 60 + way, r, k, left, left, combiners[way / 2], axis, left, r, k,
               r, k, 1 - axis, r, k, r, k, r, k, r, k, r, k);
      try_text(text, (uint64_t)(10 * i + way));
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(gone_through), cmocka_unit_test(rows_and_columns), cmocka_unit_test(rows_and_columns_of_floats),
                                     cmocka_unit_test(scattered), cmocka_unit_test(in_parts), cmocka_unit_test(combined)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
