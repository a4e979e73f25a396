/* Few elements picked, or overwritten, along dimensions that are cut: as of the whole array, for all starts, and with no array gathered. */
#include <stdio.h>
#include <string.h>

#include "axle/stages.h"
#include "axle/transform.h"
#include "ir/prim.h"
#include "partition/partition.h"
#include "support/cmocka.h"
#include "support/run.h"
#include "support/tensor.h"

typedef struct laid {
  ax_program *program, *partitioned;
  double received; /* bytes */
} laid;

static laid lay(const char *text, const char *devices, const char *specs) {
  ax_program *said;
  ax_mesh mesh;
  ax_cost cost;
  laid l;
  TEST_OK(ax_program_parse(text, strlen(text), "test", &l.program));
  TEST_OK(ax_mesh_parse(devices, &mesh));
  TEST_OK(ax_program_with_shardings(l.program, &mesh, specs, &said));
  TEST_OK(ax_program_partition(said, &l.partitioned));
  TEST_OK(ax_program_cost(said, &cost));
  l.received = cost.received;
  ax_cost_release(&cost);
  ax_program_release(said);
  return l;
}

static void release(laid *l) {
  ax_program_release(l->program);
  ax_program_release(l->partitioned);
}

static ax_tensor *numbers(const ax_type *type, int64_t from) {
  ax_tensor *made = test_tensor(*type, NULL);
  for (int64_t i = 0; i < test_elems(made); i++) test_set(made, i, (double)(from + i));
  return made;
}

/* Dtypes without negative numbers get a large one in their place. */
static ax_tensor *start_of(const ax_type *type, int start) {
  const bool no_sign = type->dtype == AX_U8 || type->dtype == AX_U64;
  return test_tensor(*type, (const double[]){start < 0 && no_sign ? 200 : start});
}

/* The operands before `first` are arrays, the others starts, which take all numbers in -2 .. n + 1, less or more by operand. */
static void same_for_all_starts(const laid *l, uint32_t first) {
  const ax_program *p = l->program;
  ax_tensor *in[8], *whole, *parts;
  for (int start = -2; start < p->types[0].dims[0] + 2; start++) {
    for (uint32_t i = 0; i < p->in_count; i++)
      in[i] = i < first ? numbers(&p->types[i], 1 + 50 * (int64_t)i) : start_of(&p->types[i], start + (int)(i - first));
    test_run(p, in, &whole);
    test_run(l->partitioned, in, &parts);
    TEST_TENSORS_NEAR(whole, parts, 0);
    if (start % 4 == 0) TEST_EVERY_WAY(l->partitioned, in, 0);
    for (uint32_t i = 0; i < p->in_count; i++) ax_tensor_release(in[i]);
    ax_tensor_release(whole), ax_tensor_release(parts);
  }
}

typedef struct row {
  const char *text, *devices, *specs;
  uint32_t first; /* start among the operands */
  double received;
} row;

static void check(const row *rows, size_t count) {
  for (size_t i = 0; i < count; i++) {
    laid l = lay(rows[i].text, rows[i].devices, rows[i].specs);
    same_for_all_starts(&l, rows[i].first);
    if (l.received != rows[i].received) fail_msg("row %zu: %g bytes are received, not %g", i, l.received, rows[i].received);
    release(&l);
  }
}

/* A sum over n devices: a device receives two times (n - 1) of n parts of what is picked. */
static void elements_are_picked_where_they_are(void **state) {
  (void)state;
#define PICK(T, I) "{ lambda x:" T "[8,6] i:" I "[] j:" I "[]. let y:" T "[1,6] = dynamic_slice[slice_sizes=(1, 6)] x i j in (y,) }"
  static const row rows[] = {
      {PICK("f32", "s32"), "d=4", "d,_; ;  -> _", 1, 36},     {PICK("s8", "u8"), "d=4", "d,_; ;  -> _", 1, 9},
      {PICK("f32", "u64"), "d=2,m=2", "d,m; ;  -> _,m", 1, 12}, {PICK("c64", "s64"), "d=2", "d,_; ;  -> _", 1, 48},
      {PICK("f32", "s32"), "d=3", "d,_; ;  -> _", 1, 32}, /* blocks of 3, 3 and 2 */
      {"{ lambda x:f32[8,6] i:s16[] j:s16[]. let y:f32[1,1] = dynamic_slice[slice_sizes=(1, 1)] x i j in (y,) }", "d=2,m=2",
       "d,m; ;  -> _", 1, 6},
  };
#undef PICK
  check(rows, AX_COUNT(rows));
}

static void elements_are_overwritten_where_they_are(void **state) {
  (void)state;
#define PUT(T, U, I) "{ lambda x:" T "[8,6] u:" T U " i:" I "[] j:" I "[]. let y:" T "[8,6] = dynamic_update_slice x u i j in (y,) }"
  static const row rows[] = {
      {PUT("f32", "[1,6]", "s32"), "d=4", "d,_; ?; ;  -> d,_", 2, 0},
      {PUT("s8", "[1,6]", "u8"), "d=3", "d,_; ?; ;  -> _", 2, 36},
      {PUT("f32", "[1,6]", "s64"), "d=2,m=2", "d,m; _,m; ;  -> d,m", 2, 0},
      {PUT("bool", "[1,1]", "s32"), "d=2,m=2", "d,m; ?; ;  -> d,m", 2, 0},
      {PUT("f32", "[1,4]", "s32"), "d=4", "d,_; ?; ;  -> d,_", 2, 0}, /* not from the row's beginning */
  };
#undef PUT
  check(rows, AX_COUNT(rows));
}

/* Parts of several elements, which lie in one block, across two or more, or have more than a block. */
static void parts_are_picked_where_they_are(void **state) {
  (void)state;
#define PICK(T, N, S) "{ lambda x:" T "[" N ",6] i:s32[] j:s32[]. let y:" T "[" S "] = dynamic_slice[slice_sizes=(" S ")] x i j in (y,) }"
  static const row rows[] = {
      {PICK("f32", "16", "2,6"), "d=4", "d,_; ;  -> _", 1, 72},     {PICK("s8", "27", "3,6"), "d=9", "d,_; ;  -> _", 1, 32},
      {PICK("c64", "32", "4,6"), "d=16", "d,_; ;  -> _", 1, 360},   {PICK("f32", "16", "2,6"), "d=2,m=2", "d,m; ;  -> _,m", 1, 24},
      {PICK("f32", "32", "4,1"), "d=8,m=2", "d,m; ;  -> _", 1, 30}, {PICK("s32", "30", "3,6"), "d=8", "d,_; ;  -> _", 1, 126},
      {PICK("f32", "16", "3,6"), "d=2", "d,_; ;  -> _", 1, 192}, /* more than an eighth: the other block is received */
  };
#undef PICK
  check(rows, AX_COUNT(rows));
}

static void parts_are_overwritten_where_they_are(void **state) {
  (void)state;
#define PUT(T, N, U) "{ lambda x:" T "[" N ",6] u:" T "[" U "] i:s32[] j:s32[]. let y:" T "[" N ",6] = dynamic_update_slice x u i j in (y,) }"
  static const row rows[] = {
      {PUT("f32", "16", "2,6"), "d=4", "d,_; ?; ;  -> d,_", 2, 0},     {PUT("c64", "32", "4,6"), "d=16", "d,_; ?; ;  -> d,_", 2, 0},
      {PUT("s8", "27", "3,6"), "d=9", "d,_; ?; ;  -> d,_", 2, 0},      {PUT("bool", "16", "2,6"), "d=2,m=2", "d,m; _,m; ;  -> d,m", 2, 0},
      {PUT("f32", "32", "4,1"), "d=8,m=2", "d,m; ?; ;  -> d,m", 2, 0}, {PUT("f32", "16", "2,4"), "d=8", "d,_; ?; ;  -> d,_", 2, 0},
  };
#undef PUT
  check(rows, AX_COUNT(rows));
}

/* Windows of several rows, at one or two places, are put or added by the devices that have some of their rows; of those that are not inside the
   whole array nothing is. */
static void windows_are_put_where_they_are(void **state) {
  (void)state;
#define LISTS " inserted_window_dims=() scatter_dims_to_operand_dims=(0,) operand_batching_dims=() scatter_indices_batching_dims=() mode="
#define PUT(P, T, N, U, M) "{ lambda x:" T "[" N ",6] u:" T "[" U ",6] i:s32[]. let k:s32[1] = broadcast_in_dim[shape=(1,) broadcast_dimensions=()] i" \
  "  y:" T "[" N ",6] = " P "[update_window_dims=(0, 1)" LISTS "\"" M "\" indices_are_sorted=false unique_indices=true] x k u in (y,) }"
#define PUT_TWO(P, N, U) "{ lambda x:f32[" N ",6] u:f32[2," U ",6] i:s32[]. let a:s32[1,1] = broadcast_in_dim[shape=(1, 1) broadcast_dimensions=()] i" \
  "  f:s32[1,1] = broadcast_in_dim[shape=(1, 1) broadcast_dimensions=()] 4:s32[] b:s32[1,1] = sub a f k:s32[2,1] = concatenate[dimension=0] a b" \
  "  y:f32[" N ",6] = " P "[update_window_dims=(1, 2)" LISTS "\"fill\" indices_are_sorted=false unique_indices=false] x k u in (y,) }"
  static const row rows[] = {
      {PUT("scatter", "f32", "16", "2", "fill"), "d=4", "d,_; ?;  -> d,_", 2, 0},
      {PUT("scatter", "bool", "32", "4", "clip"), "d=16", "d,_; ?;  -> d,_", 2, 0},
      {PUT("scatter_add", "c64", "27", "3", "fill"), "d=9", "d,_; ?;  -> d,_", 2, 0},
      {PUT("scatter_add", "f32", "32", "4", "clip"), "d=4,m=2", "d,m; _,m;  -> d,m", 2, 0},
      {PUT("scatter_max", "s32", "16", "2", "fill"), "d=2", "d,_; ?;  -> d,_", 2, 0},
      {PUT_TWO("scatter_add", "32", "4"), "d=8", "d,_; ?;  -> d,_", 2, 0},
      {PUT_TWO("scatter", "16", "2"), "d=4", "d,_; ?;  -> d,_", 2, 0},
  };
#undef PUT
#undef PUT_TWO
#undef LISTS
  check(rows, AX_COUNT(rows));
}

/* What other devices add changes no number, nor the sign of a zero. */
static void same_bits_are_picked(const char *text, const void *bits) {
  laid l = lay(text, "d=4", "d;  -> _");
  const size_t bytes = ax_dtype_bytes(l.program->types[0].dtype);
  for (int i = 0; i < 8; i++) {
    ax_tensor *in[] = {test_tensor(l.program->types[0], NULL), test_tensor(l.program->types[1], (const double[]){i})}, *y;
    memcpy(in[0]->data, bits, 8 * bytes);
    test_run(l.partitioned, in, &y);
    assert_memory_equal(y->data, (const char *)bits + (size_t)i * bytes, bytes);
    if (i == 1) TEST_EVERY_WAY(l.partitioned, in, 0);
    ax_tensor_release(in[0]), ax_tensor_release(in[1]), ax_tensor_release(y);
  }
  release(&l);
}

static void a_zero_keeps_its_sign(void **state) {
  (void)state;
#define SLICE(T) "{ lambda x:" T "[8] i:s32[]. let y:" T "[1] = dynamic_slice[slice_sizes=(1,)] x i in (y,) }"
#define GATHER(T, V, M) "{ lambda x:" T "[8] i:s32[]. let k:s32[1,1] = broadcast_in_dim[shape=(1, 1) broadcast_dimensions=()] i" \
  "  y:" T "[1] = gather[offset_dims=() collapsed_slice_dims=(0,) start_index_map=(0,) operand_batching_dims=()" \
  "    start_indices_batching_dims=() mode=\"" M "\" indices_are_sorted=false unique_indices=false slice_sizes=(1,) fill_value=" V ":" T "[]] x k" \
  "  in (y,) }"
  static const float single[] = {0, -0.0f, -0.0f, 0, 1, -0.0f, 0, -1},
                     complex[] = {0, -0.0f, -0.0f, 0, -0.0f, -0.0f, 0, 0, 1, -0.0f, -0.0f, 2, 0, -1, -1, 0};
  static const uint8_t f8[] = {0, 0x80, 0x80, 0, 0x3c, 0x80, 0, 0xbc}, powers[] = {0, 1, 2, 3, 126, 127, 128, 254};
  same_bits_are_picked(SLICE("f32"), single);
  same_bits_are_picked(SLICE("c64"), complex);
  same_bits_are_picked(SLICE("f8e5m2"), f8);
  same_bits_are_picked(SLICE("f8e8m0fnu"), powers);
  same_bits_are_picked(GATHER("f32", "0.0", "clip"), single);
  same_bits_are_picked(GATHER("f32", "0.0", "fill"), single);
  same_bits_are_picked(GATHER("c64", "0.0", "fill"), complex);
  same_bits_are_picked(GATHER("f8e5m2", "0.0", "clip"), f8);
  same_bits_are_picked(GATHER("f8e8m0fnu", "1.0", "clip"), powers);
#undef SLICE
#undef GATHER
}

/* What a loop reads and writes step by step stays cut: no step gathers the array. */
static void a_loop_goes_over_blocks(void **state) {
  (void)state;
  static const char text[] =
      "{ lambda x:f32[8,6] z:f32[8,6]. let"
      "  n:s32[] w:f32[8,6] y:f32[8,6] = scan[length=8 reverse=false num_consts=0 num_carry=3"
      "    body={ lambda i:s32[] x:f32[8,6] y:f32[8,6]. let"
      "      r:f32[1,6] = dynamic_slice[slice_sizes=(1, 6)] x i 0:s32[] s:f32[1,6] = mul r r"
      "      v:f32[8,6] = dynamic_update_slice y s i 0:s32[] j:s32[] = add i 1:s32[] in (j, x, v) }] 0:s32[] x z in (y,) }";
  laid l = lay(text, "d=4", "d; d -> d");
  ax_tensor *in[] = {numbers(&l.program->types[0], 1), numbers(&l.program->types[1], 0)}, *whole, *parts;
  assert_true(l.received == 8 * 36);
  test_run(l.program, in, &whole);
  test_run(l.partitioned, in, &parts);
  TEST_TENSORS_NEAR(whole, parts, 0);
  TEST_EVERY_WAY(l.partitioned, in, 0);
  ax_tensor_release(in[0]), ax_tensor_release(in[1]), ax_tensor_release(whole), ax_tensor_release(parts);
  release(&l);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(elements_are_picked_where_they_are),
      cmocka_unit_test(elements_are_overwritten_where_they_are),
      cmocka_unit_test(parts_are_picked_where_they_are),
      cmocka_unit_test(parts_are_overwritten_where_they_are),
      cmocka_unit_test(windows_are_put_where_they_are),
      cmocka_unit_test(a_zero_keeps_its_sign),
      cmocka_unit_test(a_loop_goes_over_blocks),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
