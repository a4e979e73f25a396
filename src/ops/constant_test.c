/* Constants: what a dtype holds is what was asked for, or an error says that it cannot. */
#include <math.h>
#include <string.h>

#include "axle/ops.h"
#include "ir/program.h"
#include "support/cmocka.h"
#include "support/tensor.h"

typedef struct constant {
  ax_dtype dtype;
  double value;
  int64_t integer; /* ax_full_i64 of it, when `whole` */
  bool whole;
  const char *error; /* part of the message; NULL: it is held */
  uint64_t bits;
} constant;

static void make(const ax_value *in, ax_value *out, void *context) {
  (void)in;
  const constant *c = context;
  out[0] = c->whole ? ax_full_i64(c->dtype, AX_DIMS(), c->integer) : ax_full(c->dtype, AX_DIMS(), c->value);
}

static void check(const constant *c) {
  ax_program *program;
  ax_status status = ax_trace(AX_CLOSURE(make, 0, 1, (void *)c), NULL, &program);
  if (c->error != NULL) {
    TEST_FAILS(status, AX_INVALID_ARGUMENT, c->error);
    return;
  }
  TEST_OK(status);
  uint64_t bits = 0;
  memcpy(&bits, ax_value_literal(program, program->outs[0])->data, ax_dtype_bytes(c->dtype));
  assert_int_equal(bits, c->bits);
  ax_program_release(program);
}

static void doubles(void **state) {
  (void)state;
  static const constant cases[] = {
      {AX_S32, 3e9, .error = "s32 cannot hold 3000000000"},
      {AX_S32, 2.7, .error = "s32 cannot hold 2.7"},
      {AX_S32, 0.1 + 0.2, .error = "s32 cannot hold 0.30000000000000004"},
      {AX_S32, NAN, .error = "s32 cannot hold nan"},
      {AX_S64, INFINITY, .error = "s64 cannot hold inf"},
      {AX_U8, -1, .error = "u8 cannot hold -1"},
      {AX_U8, 256, .error = "u8 cannot hold 256"},
      {AX_S8, -129, .error = "s8 cannot hold -129"},
      {AX_BOOL, 2, .error = "bool cannot hold 2"},
      {AX_S64, 0x1p53 + 2, .error = "from 2^53 on a double is not every integer; ax_full_i64"},
      {AX_F16, 65520, .error = "f16 cannot hold 65520"},
      {AX_F32, 1e39, .error = "f32 cannot hold"},
      {AX_S8, -128, .bits = 0x80},
      {AX_U8, 255, .bits = 255},
      {AX_U32, 4294967295.0, .bits = 4294967295u},
      {AX_BOOL, 1, .bits = 1},
      {AX_S64, -(0x1p53 - 1), .bits = (uint64_t)-((INT64_C(1) << 53) - 1)},
      {AX_F16, 65504, .bits = 0x7bff},
      {AX_F32, INFINITY, .bits = 0x7f800000},
      {AX_F32, 0.1, .bits = 0x3dcccccd},
      {AX_F32, -0.0, .bits = 0x80000000},
  };
  for (size_t i = 0; i < AX_COUNT(cases); i++) check(&cases[i]);
}

static void integers(void **state) {
  (void)state;
  static const constant cases[] = {
      {AX_S64, .whole = true, .integer = (INT64_C(1) << 53) + 1, .bits = (UINT64_C(1) << 53) + 1},
      {AX_S64, .whole = true, .integer = INT64_MIN, .bits = UINT64_C(1) << 63},
      {AX_U64, .whole = true, .integer = INT64_MAX, .bits = INT64_MAX},
      {AX_U64, .whole = true, .integer = -1, .error = "u64 cannot hold -1"},
      {AX_S32, .whole = true, .integer = INT32_MIN, .bits = 0x80000000},
      {AX_S32, .whole = true, .integer = INT64_C(1) << 31, .error = "s32 cannot hold 2147483648"},
      {AX_U16, .whole = true, .integer = 65536, .error = "u16 cannot hold 65536"},
      {AX_BOOL, .whole = true, .integer = 2, .error = "bool cannot hold 2"},
      {AX_F32, .whole = true, .integer = 3, .bits = 0x40400000},
      {AX_BF16, .whole = true, .integer = 38702809297715199, .bits = 0x5b09}, /* as an f64 it would be a tie */
      {AX_F16, .whole = true, .integer = 100000, .error = "f16 cannot hold 100000"},
  };
  for (size_t i = 0; i < AX_COUNT(cases); i++) check(&cases[i]);
}

static void too_much(const ax_value *in, ax_value *out, void *context) { (void)in, (void)out, (void)context; }

/* Counts whose sum passes 32 bits. */
static void counts(void **state) {
  (void)state;
  ax_type type = TEST_SCALAR(AX_F32);
  ax_program *program;
  TEST_FAILS(ax_trace(AX_FN(too_much, 1, UINT32_MAX), &type, &program), AX_INVALID_ARGUMENT,
             "1 inputs and 4294967295 results are too many");
  TEST_FAILS(ax_trace(AX_FN(too_much, 0, UINT32_C(1) << 31), &type, &program), AX_INVALID_ARGUMENT, "too many");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(doubles), cmocka_unit_test(integers), cmocka_unit_test(counts)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
