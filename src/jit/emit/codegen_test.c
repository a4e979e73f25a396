/* The functions that write LLVM IR (codegen.h), one by one: each test writes a small function by hand, compiles it and calls it.

   A function here has a kernel's type. It loads operands from slots 0 and 1, and stores results to the slots from `made` on. */
#include "jit/emit/codegen.h"

#include <math.h>
#include <string.h>

#include "jit/emit/generator.h"
#include "jit/emit/nest.h"
#include "support/cmocka.h"

enum { slot_count = 5, made = 2, lanes = 4 };

static ax_generator generator;
static ax_codegen cg;
static _Alignas(64) unsigned char memory[slot_count][64]; /* by slot */

/* --- A function by hand --- */

static int start_llvm(void **state) {
  (void)state;
  void *object;
  size_t bytes;
  if (ax_generator_emit(&generator, NULL, 0, &object, &bytes) != AX_OK) return -1; /* of nothing: it starts LLVM */
  ax_free(object);
  return 0;
}

static int end_llvm(void **state) {
  (void)state;
  ax_generator_deinit(&generator);
  return 0;
}

static int open_module(void **state) {
  (void)state;
  memset(memory, 0, sizeof memory);
  cg = (ax_codegen){.vector_bytes = generator.vector_bytes, .context = generator.context};
  cg.module = LLVMModuleCreateWithNameInContext("test", cg.context);
  cg.builder = LLVMCreateBuilderInContext(cg.context);
  return 0;
}

static int begin(void **state) {
  open_module(state);
  ax_cg_begin_function(&cg, "test_0");
  return 0;
}

/* After a test that has called its function, or that looked at types and constants alone. */
static int end(void **state) {
  (void)state;
  LLVMDisposeBuilder(cg.builder);
  LLVMDisposeModule(cg.module);
  return 0;
}

static LLVMValueRef address(uint32_t slot) {
  LLVMTypeRef pointer = LLVMPointerTypeInContext(cg.context, 0);
  LLVMValueRef at = ax_cg_i64(&cg, slot);
  return LLVMBuildLoad2(cg.builder, pointer, LLVMBuildGEP2(cg.builder, pointer, LLVMGetParam(cg.function, 0), &at, 1, ""), "");
}

static LLVMValueRef load(uint32_t slot, LLVMTypeRef type) { return LLVMBuildLoad2(cg.builder, type, address(slot), ""); }
static LLVMValueRef load_words(uint32_t slot) { return load(slot, ax_cg_int(&cg, 32, lanes)); }
static LLVMValueRef load_floats(uint32_t slot) { return load(slot, ax_cg_register(&cg, AX_F32, lanes)); }
static void store(uint32_t slot, LLVMValueRef value) { LLVMBuildStore(cg.builder, value, address(slot)); }

/* Compiles the module, whose function has its end already, and calls it for the range 3 .. 10. */
static void call_finished(void) {
  char *message = NULL;
  LLVMMemoryBufferRef buffer = NULL;
  ax_object_function function;
  ax_object_file object = {0};
  if (LLVMVerifyModule(cg.module, LLVMReturnStatusAction, &message)) fail_msg("%s", message);
  LLVMDisposeMessage(message);
  message = NULL;
  if (LLVMTargetMachineEmitToMemoryBuffer(generator.machine, cg.module, LLVMObjectFile, &message, &buffer)) fail_msg("%s", message);
  const size_t bytes = LLVMGetBufferSize(buffer);
  void *data = ax_alloc(bytes);
  memcpy(data, LLVMGetBufferStart(buffer), bytes);
  LLVMDisposeMemoryBuffer(buffer);
  if (ax_object_load(data, bytes, ax_math_find, "test_", 1, &function, &object) != AX_OK) fail_msg("%s", ax_message());
  ax_free(data);
  void *slots[slot_count];
  for (int i = 0; i < slot_count; i++) slots[i] = memory[i];
  ((void (*)(void *const *, const int64_t *, int64_t, int64_t))function)(slots, NULL, 3, 10);
  ax_object_unload(&object);
}

static void call(void) {
  LLVMBuildRetVoid(cg.builder);
  call_finished();
}

#define GIVE(slot, type, ...) memcpy(memory[slot], (const type[]){__VA_ARGS__}, sizeof((const type[]){__VA_ARGS__}))
#define EXPECT(slot, type, ...) \
  assert_memory_equal(memory[slot], ((const type[]){__VA_ARGS__}), sizeof((const type[]){__VA_ARGS__}))

/* --- types.c --- */

static void a_function_gets_slots_and_a_range(void **state) {
  (void)state;
  store(made, LLVMBuildAdd(cg.builder, LLVMGetParam(cg.function, 2), ax_cg_i64(&cg, 1000), ""));
  store(made + 1, LLVMGetParam(cg.function, 3));
  call();
  EXPECT(made, int64_t, 1003);
  EXPECT(made + 1, int64_t, 10);
}

static void memory_on_the_stack_begins_a_cache_line(void **state) {
  (void)state;
  GIVE(0, int32_t, 1, 2, 3, 4);
  LLVMValueRef odd = ax_cg_stack(&cg, ax_cg_int(&cg, 8, 1)), place = ax_cg_stack(&cg, ax_cg_int(&cg, 32, lanes));
  LLVMBuildStore(cg.builder, ax_cg_integer(&cg, AX_U8, 1, 0), odd);
  LLVMBuildStore(cg.builder, load_words(0), place);
  store(made, LLVMBuildLoad2(cg.builder, ax_cg_int(&cg, 32, lanes), place, ""));
  LLVMValueRef at = LLVMBuildCast(cg.builder, LLVMPtrToInt, place, ax_cg_int(&cg, 64, 1), "");
  store(made + 1, LLVMBuildAnd(cg.builder, at, ax_cg_i64(&cg, 63), ""));
  call();
  EXPECT(made, int32_t, 1, 2, 3, 4);
  EXPECT(made + 1, int64_t, 0);
}

static void registers_hold_bool_as_a_bit_and_narrow_floats_as_f32(void **state) {
  (void)state;
  assert_ptr_equal(ax_cg_register(&cg, AX_BOOL, lanes), ax_cg_int(&cg, 1, lanes));
  assert_ptr_equal(ax_cg_register(&cg, AX_BF16, lanes), ax_cg_register(&cg, AX_F32, lanes));
  assert_ptr_equal(ax_cg_register(&cg, AX_U16, 1), ax_cg_int(&cg, 16, 1));
  assert_ptr_not_equal(ax_cg_register(&cg, AX_F64, 1), ax_cg_register(&cg, AX_F32, 1));
}

static void memory_holds_bool_as_a_byte_and_narrow_floats_as_16_bits(void **state) {
  (void)state;
  assert_ptr_equal(ax_cg_memory(&cg, AX_BOOL, lanes), ax_cg_int(&cg, 8, lanes));
  assert_ptr_equal(ax_cg_memory(&cg, AX_F16, lanes), ax_cg_int(&cg, 16, lanes));
  assert_ptr_equal(ax_cg_memory(&cg, AX_BF16, 1), ax_cg_int(&cg, 16, 1));
  assert_ptr_equal(ax_cg_memory(&cg, AX_F32, lanes), ax_cg_register(&cg, AX_F32, lanes));
}

static void constants_of_vectors(void **state) {
  (void)state;
  store(made, ax_cg_splat(ax_cg_i64(&cg, -3), lanes));
  store(made + 1, ax_cg_integer(&cg, AX_S16, lanes, 7));
  store(made + 2, ax_cg_number(&cg, AX_F32, lanes, 1.5));
  call();
  EXPECT(made, int64_t, -3, -3, -3, -3);
  EXPECT(made + 1, int16_t, 7, 7, 7, 7, 0);
  EXPECT(made + 2, float, 1.5f, 1.5f, 1.5f, 1.5f, 0);
}

static void constants_by_the_bits_of_their_dtype(void **state) {
  (void)state;
  store(made, ax_cg_bits(&cg, AX_F16, 0x3e00));
  store(made + 1, ax_cg_bits(&cg, AX_BF16, 0x3fc0));
  store(made + 2, ax_cg_bits(&cg, AX_F64, 0x3ff8000000000000));
  call();
  EXPECT(made, float, 1.5f);
  EXPECT(made + 1, float, 1.5f);
  EXPECT(made + 2, double, 1.5);
}

static void a_scalar_in_all_lanes(void **state) {
  (void)state;
  GIVE(0, int32_t, 100, 1, 1, 1);
  LLVMValueRef all = ax_cg_broadcast(&cg, load(0, ax_cg_int(&cg, 32, 1)), lanes);
  store(made, LLVMBuildAdd(cg.builder, all, ax_cg_iota(&cg, 32, lanes, -3), ""));
  call();
  EXPECT(made, int32_t, 100, 97, 94, 91);
}

static void lanes_in_another_order(void **state) {
  (void)state;
  GIVE(0, int32_t, 10, 11, 12, 13);
  GIVE(1, int32_t, 20, 21, 22, 23);
  LLVMValueRef a = load_words(0), b = load_words(1);
  store(made, ax_cg_shuffle(&cg, a, b, (const int64_t[]){7, 0, 4, 3}, lanes));
  store(made + 1, ax_cg_reverse(&cg, a, lanes));
  store(made + 2, ax_cg_concat(&cg, ax_cg_slice(&cg, a, 1, 2), ax_cg_slice(&cg, b, 2, 2), 2));
  call();
  EXPECT(made, int32_t, 23, 10, 20, 13);
  EXPECT(made + 1, int32_t, 13, 12, 11, 10);
  EXPECT(made + 2, int32_t, 11, 12, 22, 23);
}

/* Three columns of four rows, of which the second is not known, or not asked for. */
static void elements_in_turn(void **state) {
  (void)state;
  GIVE(0, int32_t, 10, 11, 12, 13);
  GIVE(1, int32_t, 20, 21, 22, 23);
  LLVMValueRef v[] = {load_words(0), load_words(1)}, three[] = {v[0], NULL, v[1]};
  ax_cg_interleave(&cg, v, 2, lanes);
  store(made, v[1]);
  ax_cg_interleave(&cg, three, 3, lanes);
  LLVMValueRef first = three[0];
  ax_cg_deinterleave(&cg, three, 3, lanes);
  store(made + 1, first);
  store(made + 2, three[2]);
  call();
  EXPECT(made, int32_t, 12, 22, 13, 23);
  const int32_t *row = (const int32_t *)memory[made + 1]; /* and what follows it: 10, any, 20, 11 */
  assert_true(row[0] == 10 && row[2] == 20 && row[3] == 11);
  EXPECT(made + 2, int32_t, 20, 21, 22, 23);
}

static LLVMValueRef counted(uint32_t first, uint32_t step) {
  LLVMValueRef start =
      LLVMBuildAdd(cg.builder, ax_cg_integer(&cg, AX_S32, lanes, first), load_words(1), ""); /* of 0, unknown to LLVM */
  return LLVMBuildAdd(cg.builder, start, ax_cg_iota(&cg, 32, lanes, step), "");
}

/* Numbers 0, 1, .. in rows of any length: columns out of rows, and rows out of columns. */
static void rows_and_columns(void **state) {
  (void)state;
  LLVMValueRef wrong = ax_cg_integer(&cg, AX_S32, lanes, 0);
  for (uint32_t count = 1; count <= AX_MOST_IN_TURN; count++) {
    LLVMValueRef rows[AX_MOST_IN_TURN], columns[AX_MOST_IN_TURN];
    for (uint32_t k = 0; k < count; k++) {
      rows[k] = counted(k * lanes, 1);
      columns[k] = counted(k, count);
    }
    LLVMValueRef from_rows[AX_MOST_IN_TURN], from_columns[AX_MOST_IN_TURN];
    memcpy(from_rows, rows, sizeof rows);
    memcpy(from_columns, columns, sizeof columns);
    ax_cg_deinterleave(&cg, from_rows, count, lanes);
    ax_cg_interleave(&cg, from_columns, count, lanes);
    for (uint32_t k = 0; k < count; k++) {
      wrong = LLVMBuildOr(cg.builder, wrong, LLVMBuildSub(cg.builder, from_rows[k], columns[k], ""), "");
      wrong = LLVMBuildOr(cg.builder, wrong, LLVMBuildSub(cg.builder, from_columns[k], rows[k], ""), "");
    }
  }
  memset(memory[made], 1, sizeof memory[made]);
  store(made, wrong);
  call();
  EXPECT(made, int32_t, 0, 0, 0, 0);
}

static void an_intrinsic_of_a_vector_type(void **state) {
  (void)state;
  GIVE(0, int32_t, 1, -5, 7, 0);
  GIVE(1, int32_t, 2, -6, 7, -1);
  LLVMTypeRef type = ax_cg_int(&cg, 32, lanes);
  LLVMValueRef both[] = {load_words(0), load_words(1)};
  store(made, ax_cg_intrinsic(&cg, "llvm.smax", &type, 1, both, 2));
  call();
  EXPECT(made, int32_t, 2, -5, 7, 0);
}

/* --- convert.c --- */

static void memory_to_registers_and_back(void **state) {
  (void)state;
  GIVE(0, uint16_t, 0x3fc0, 0xc000, 0x7f80, 0x8000); /* 1.5, -2, inf, -0 */
  GIVE(1, uint8_t, 0, 1, 2, 255);
  LLVMValueRef wide = ax_cg_to_register(&cg, AX_BF16, load(0, ax_cg_memory(&cg, AX_BF16, lanes)), lanes);
  LLVMValueRef set = ax_cg_to_register(&cg, AX_BOOL, load(1, ax_cg_memory(&cg, AX_BOOL, lanes)), lanes);
  store(made, wide);
  store(made + 1, ax_cg_to_memory(&cg, AX_BF16, wide, lanes));
  store(made + 2, ax_cg_to_memory(&cg, AX_BOOL, set, lanes));
  call();
  EXPECT(made, float, 1.5f, -2.0f, INFINITY, -0.0f);
  EXPECT(made + 1, uint16_t, 0x3fc0, 0xc000, 0x7f80, 0x8000);
  EXPECT(made + 2, uint8_t, 0, 1, 1, 1);
}

/* The words that an f32 was rounded from: their upper halves are right, and no instruction has cleared the lower ones. */
static void upper_halves_of_rounded_numbers(void **state) {
  (void)state;
  GIVE(0, float, 1.0f, -2.0f, 1.00390625f, 1.01171875f); /* 1 + 2^-8 and 1 + 3 * 2^-8 lie between two bf16 */
  LLVMValueRef words = ax_cg_upper_half(&cg, ax_cg_round(&cg, AX_BF16, load_floats(0), lanes), lanes);
  store(made, LLVMBuildLShr(cg.builder, words, ax_cg_integer(&cg, AX_U32, lanes, 16), ""));
  call();
  EXPECT(made, uint32_t, 0x3f80, 0xc000, 0x3f80, 0x3f82);
}

static void rounding_to_a_narrow_float(void **state) {
  (void)state;
  GIVE(0, uint32_t, 0x3f808000, 0x3f818000, 0x3f808001, 0x7f800001); /* two ties, just above one, a NaN */
  GIVE(1, uint32_t, 0x3f801000, 0x3f803000, 0x3f801001, 0x47800000); /* likewise of f16; 65536, its infinity */
  store(made, ax_cg_round(&cg, AX_BF16, load_floats(0), lanes));
  store(made + 1, ax_cg_round(&cg, AX_F16, load_floats(1), lanes));
  store(made + 2, ax_cg_round_arithmetic(&cg, AX_BF16, load_floats(0), lanes));
  call();
  EXPECT(made, uint32_t, 0x3f800000, 0x3f820000, 0x3f810000, 0x7fc00000);
  EXPECT(made + 1, uint32_t, 0x3f800000, 0x3f804000, 0x3f802000, 0x7f800000);
  EXPECT(made + 2, uint32_t, 0x3f800000, 0x3f820000, 0x3f810000); /* of a NaN with such bits it makes no promise */
}

/* 1 + 2^-8 + 2^-30 is above the middle of two bf16. As an f32 it would be the middle itself, which is rounded down. */
static void a_conversion_rounds_once(void **state) {
  (void)state;
  GIVE(0, double, 1 + 0x1p-8 + 0x1p-30, 1 + 0x1p-8, -3.75, 2);
  LLVMValueRef x = load(0, ax_cg_register(&cg, AX_F64, lanes));
  store(made, ax_cg_convert(&cg, AX_F64, AX_BF16, x, lanes));
  store(made + 1, ax_cg_convert(&cg, AX_F64, AX_S32, x, lanes));
  call();
  EXPECT(made, float, 1.0078125f, 1.0f, -3.75f, 2.0f);
  EXPECT(made + 1, int32_t, 1, 1, -3, 2);
}

/* --- scalar.c --- */

static void one_operation(void **state) {
  (void)state;
  GIVE(0, float, 1, 2, 3, 4);
  GIVE(1, float, 5, 2, 1, -4);
  LLVMValueRef both[] = {load_floats(0), load_floats(1)};
  LLVMValueRef less = ax_cg_scalar(&cg, &(ax_expr){.op = AX_SCALAR_LT, .dtype = AX_BOOL}, AX_F32, both, lanes);
  store(made, ax_cg_scalar(&cg, &(ax_expr){.op = AX_SCALAR_SUB, .dtype = AX_F32}, AX_F32, both, lanes));
  store(made + 1, ax_cg_to_memory(&cg, AX_BOOL, less, lanes));
  call();
  EXPECT(made, float, -4, 0, 2, 8);
  EXPECT(made + 1, uint8_t, 1, 0, 0, 0);
}

static void sums_are_made_in_a_wide_enough_dtype(void **state) {
  (void)state;
  assert_int_equal(ax_cg_accumulator(AX_BF16, false), AX_F32);
  assert_int_equal(ax_cg_accumulator(AX_F16, true), AX_F64);
  assert_int_equal(ax_cg_accumulator(AX_F32, false), AX_F32);
  assert_int_equal(ax_cg_accumulator(AX_F32, true), AX_F64);
  assert_int_equal(ax_cg_accumulator(AX_S16, true), AX_S16);
}

static void reductions_of_nothing(void **state) {
  (void)state;
  assert_int_equal(ax_cg_identity_bits(AX_SCALAR_ADD, AX_F32), 0);
  assert_int_equal(ax_cg_identity_bits(AX_SCALAR_MUL, AX_BF16), 0x3f80);
  assert_int_equal(ax_cg_identity_bits(AX_SCALAR_MAX, AX_S8), 0x80);
  assert_int_equal(ax_cg_identity_bits(AX_SCALAR_MAX, AX_U8), 0);
  assert_int_equal(ax_cg_identity_bits(AX_SCALAR_MIN, AX_F16), 0x7c00);
  assert_int_equal(ax_cg_identity_bits(AX_SCALAR_MIN, AX_S32), INT32_MAX);
  assert_int_equal(ax_cg_identity_bits(AX_SCALAR_AND, AX_U16), 0xffff);
}

static void a_reduction_begins_with_its_identity(void **state) {
  (void)state;
  GIVE(0, float, 1, -2, -INFINITY, 0.5f);
  GIVE(1, float, 3, -4, 5, -0.5f);
  LLVMValueRef x = load_floats(0), none = ax_cg_identity(&cg, AX_SCALAR_MAX, AX_BF16, lanes);
  store(made, ax_cg_combine(&cg, AX_SCALAR_MAX, AX_BF16, none, x, lanes));
  store(made + 1, ax_cg_combine(&cg, AX_SCALAR_MUL, AX_F32, x, load_floats(1), lanes));
  call();
  EXPECT(made, float, 1, -2, -INFINITY, 0.5f);
  EXPECT(made + 1, float, 3, 8, -INFINITY, -0.25f);
}

/* --- order.c --- */

static void floats_as_integers_of_the_same_order(void **state) {
  (void)state;
  GIVE(0, float, -INFINITY, -1.0f, -0.0f, INFINITY);
  GIVE(1, float, -1.0f, -0.0f, 0.0f, NAN);
  assert_int_equal(ax_cg_order(AX_BF16), AX_S16);
  assert_int_equal(ax_cg_order(AX_F32), AX_S32);
  assert_int_equal(ax_cg_order(AX_F64), AX_S64);
  LLVMValueRef low = load_floats(0), high = load_floats(1);
  LLVMValueRef a = ax_cg_to_order(&cg, AX_SCALAR_MAX, AX_F32, low, lanes),
               b = ax_cg_to_order(&cg, AX_SCALAR_MAX, AX_F32, high, lanes);
  LLVMValueRef last = ax_cg_to_order(&cg, AX_SCALAR_MIN, AX_F32, high, lanes); /* of the smallest: NaNs come first */
  store(made, ax_cg_to_memory(&cg, AX_BOOL, LLVMBuildICmp(cg.builder, LLVMIntSLT, a, b, ""), lanes));
  store(made + 1, ax_cg_from_order(&cg, AX_SCALAR_MAX, AX_F32, a, lanes));
  store(made + 2, ax_cg_from_order(&cg, AX_SCALAR_MIN, AX_F32, last, lanes));
  call();
  uint8_t got[lanes];
  memcpy(got, memory[made], sizeof got);
  for (int i = 0; i < lanes - 1; i++) assert_int_equal(got[i], 1);
  EXPECT(made + 1, float, -INFINITY, -1.0f, -0.0f, INFINITY);
  EXPECT(made + 2, float, -1.0f, -0.0f, 0.0f, NAN);
}

/* Zeros and NaNs, each way round. */
static void the_smaller_of_two(void **state) {
  (void)state;
  GIVE(0, float, 0.0f, -0.0f, NAN, 2.0f); /* "or" leaves a NaN's bits as they are beside powers of two */
  GIVE(1, float, -0.0f, 0.0f, 1.0f, NAN);
  GIVE(2, float, -INFINITY, 3.0f, 0.0f, -2.0f);
  LLVMValueRef x = load_floats(0), y = load_floats(1), z = load_floats(2), constant = ax_cg_number(&cg, AX_F32, lanes, 1);
  LLVMValueRef xy = ax_cg_extreme(&cg, AX_F32, false, x, y, lanes);
  assert_null(ax_cg_extreme(&cg, AX_F32, false, x, constant, lanes));
  if (xy == NULL) return; /* no such instruction */
  store(made, xy);
  store(made + 1, ax_cg_extreme(&cg, AX_F32, false, y, z, lanes));
  call();
  EXPECT(made, float, -0.0f, -0.0f, NAN, NAN);
  EXPECT(made + 1, float, -INFINITY, 0.0f, 0.0f, -NAN);
}

/* Of all that is compared for the largest, a NaN of either sign is last. */
static void a_nan_is_the_largest_and_the_smallest(void **state) {
  (void)state;
  GIVE(0, uint32_t, 0x7fc00000, 0xffc00000, 0x7fc00000, 0xffc00000);
  LLVMValueRef nan = load_floats(0), infinity = ax_cg_number(&cg, AX_F32, lanes, INFINITY);
  LLVMValueRef largest = LLVMBuildICmp(cg.builder, LLVMIntSGT, ax_cg_to_order(&cg, AX_SCALAR_MAX, AX_F32, nan, lanes),
                                       ax_cg_to_order(&cg, AX_SCALAR_MAX, AX_F32, infinity, lanes), "");
  LLVMValueRef least = ax_cg_number(&cg, AX_F32, lanes, -INFINITY);
  LLVMValueRef smallest = LLVMBuildICmp(cg.builder, LLVMIntSLT, ax_cg_to_order(&cg, AX_SCALAR_MIN, AX_F32, nan, lanes),
                                        ax_cg_to_order(&cg, AX_SCALAR_MIN, AX_F32, least, lanes), "");
  store(made, ax_cg_to_memory(&cg, AX_BOOL, largest, lanes));
  store(made + 1, ax_cg_to_memory(&cg, AX_BOOL, smallest, lanes));
  call();
  EXPECT(made, uint8_t, 1, 1, 1, 1);
  EXPECT(made + 1, uint8_t, 1, 1, 1, 1);
}

/* --- integer.c --- */

static void integers_divided(void **state) {
  (void)state;
  GIVE(0, int32_t, 7, -7, 5, INT32_MIN);
  GIVE(1, int32_t, 2, 2, 0, -1);
  LLVMValueRef a = load_words(0), b = load_words(1);
  store(made, ax_cg_integer_div(&cg, AX_S32, a, b, false, lanes));
  store(made + 1, ax_cg_integer_div(&cg, AX_U32, a, b, false, lanes));
  call();
  EXPECT(made, int32_t, 3, -3, -1, INT32_MIN);
  EXPECT(made + 1, uint32_t, 3, 0x7ffffffc, UINT32_MAX, 0);
}

/* One by a number: each divisor takes another product. */
static void integers_divided_by_numbers(void **state) {
  enum { all = 4 };
  static const uint32_t divisors[] = {2, 3, 5, 7, 10, 60, 64, 256, 641, 1000003, 0x3fffffff, 0x40000000, 0x7fffffff};
  (void)state;
  for (size_t i = 0; i < AX_COUNT(divisors); i++) {
    const uint32_t d = divisors[i];
    const int32_t a[all] = {INT32_MIN, (int32_t)(d * (INT32_MAX / d)), -(int32_t)d - 1, 12345678 + (int32_t)(d / 2)};
    for (int k = 0; k < all; k++) {
      assert_int_equal(begin(state), 0);
      memcpy(memory[0], &a[k], sizeof a[k]);
      LLVMTypeRef word = ax_cg_int(&cg, 32, 1);
      LLVMValueRef x = load(0, word), y = LLVMConstInt(word, d, false);
      store(made, ax_cg_integer_div(&cg, AX_S32, x, y, false, 1));
      store(made + 1, ax_cg_integer_div(&cg, AX_U32, x, y, false, 1));
      call();
      int32_t quotient;
      uint32_t of_bits;
      memcpy(&quotient, memory[made], sizeof quotient);
      memcpy(&of_bits, memory[made + 1], sizeof of_bits);
      if (quotient != a[k] / (int32_t)d || of_bits != (uint32_t)a[k] / d) fail_msg("%d by %u: %d, %u", a[k], d, quotient, of_bits);
      assert_int_equal(end(state), 0);
    }
  }
}

static void long_integers_divided(void **state) {
  (void)state;
  GIVE(0, int64_t, INT64_MAX, -9, INT64_MIN, 10);
  GIVE(1, int64_t, 3, 2, -1, 0);
  LLVMTypeRef type = ax_cg_int(&cg, 64, lanes);
  store(made, ax_cg_integer_div(&cg, AX_S64, load(0, type), load(1, type), false, lanes));
  call();
  EXPECT(made, int64_t, INT64_MAX / 3, -4, INT64_MIN, -1);
}

static void powers_of_integers(void **state) {
  (void)state;
  GIVE(0, int32_t, 3, 2, -1, 7);
  GIVE(1, int32_t, 4, -1, -3, 0);
  store(made, ax_cg_integer_pow(&cg, AX_S32, load_words(0), load_words(1), lanes));
  call();
  EXPECT(made, int32_t, 81, 0, -1, 1);
}

/* --- math.c, half_math.c --- */

static void a_function_of_a_vector(void **state) {
  (void)state;
  GIVE(0, float, 0, 1, -1, 10);
  LLVMValueRef x = load_floats(0);
  store(made, ax_cg_math(&cg, AX_SCALAR_EXP, AX_F32, false, &x, lanes));
  call();
  for (int i = 0; i < lanes; i++) {
    float in, out;
    memcpy(&in, &memory[0][4 * i], 4);
    memcpy(&out, &memory[made][4 * i], 4);
    assert_float_equal(out / expf(in), 1, 1e-6f);
  }
}

/* Registers of 16 bytes call SLEEF instead. */
static void a_number_to_a_power(void **state) {
  (void)state;
  assert_false(ax_cg_raises(&cg, 0) || ax_cg_raises(&cg, 1) || ax_cg_raises(&cg, -2) || ax_cg_raises(&cg, INFINITY) ||
               ax_cg_raises(&cg, NAN));
  assert_int_equal(ax_cg_raises(&cg, 10), cg.vector_bytes > 16);
  GIVE(0, float, 2, -1, 39, -INFINITY);
  store(made, ax_cg_raises(&cg, 10) ? ax_cg_raise(&cg, 10, load_floats(0), lanes) : load_floats(0));
  call();
  if (cg.vector_bytes > 16) EXPECT(made, float, 100, 0.1f, INFINITY, 0);
}

static void registers_that_have_functions_of_ours(void **state) {
  (void)state;
  assert_true(cg.vector_bytes == 16 || ax_cg_has_own(&cg, AX_SCALAR_EXP, AX_F32));
  assert_false(ax_cg_has_own(&cg, AX_SCALAR_ADD, AX_F32));
  cg.vector_bytes = 16;
  assert_false(ax_cg_has_own(&cg, AX_SCALAR_EXP, AX_F32));
}

static void a_function_of_narrow_numbers_is_in_line(void **state) {
  (void)state;
  const uint32_t whole = cg.vector_bytes / 4;
  const ax_codegen older = {.vector_bytes = 16};
  assert_false(ax_cg_has_half(&older, AX_SCALAR_EXP, AX_BF16));
  assert_false(ax_cg_has_half(&cg, AX_SCALAR_EXP, AX_F32));
  if (!ax_cg_has_half(&cg, AX_SCALAR_EXP, AX_BF16)) return;
  GIVE(0, float, 0, 1, -1, 3, 0, 1, -1, 3, 0, 1, -1, 3, 0, 1, -1, 3);
  store(made, ax_cg_half(&cg, AX_SCALAR_EXP, AX_BF16, load(0, ax_cg_register(&cg, AX_F32, whole))));
  call();
  for (uint32_t i = 0; i < whole; i++) {
    float in, out;
    memcpy(&in, &memory[0][4 * i], 4);
    memcpy(&out, &memory[made][4 * i], 4);
    assert_float_equal(out / expf(in), 1, 0x1p-8f);
  }
}

/* --- nest.h, fused_loop_emit.h: whole kernels --- */

enum { elems = 11 };
static const ax_position each = {.dim = 0, .coef = 1, .dynamic = AX_NONE};

/* out[i] = in[i] + 1: slot 0 to slot 1. */
static ax_loop_kernel *plus_one(ax_arena *arena) {
  const int64_t dims[] = {elems};
  ax_loop_kernel *k = ax_kernel_create(arena, 1, 0, dims);
  const uint32_t in = ax_kernel_slot(k, AX_S32, 1, dims), out = ax_kernel_slot(k, AX_S32, 1, dims);
  ax_kernel_store(k, out, &each,
                  ax_kernel_op(k, AX_SCALAR_ADD, AX_S32, ax_kernel_load(k, in, &each), ax_kernel_const(k, AX_S32, 1), AX_NONE),
                  AX_SCALAR_NONE);
  return k;
}

static void a_kernel_does_its_range(void **state) {
  (void)state;
  ax_arena arena = {0};
  const ax_loop_kernel *kernel = plus_one(&arena);
  assert_int_equal(ax_nest_emit(&arena, &cg, kernel, "test_0"), AX_OK);
  GIVE(0, int32_t, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10);
  call_finished(); /* steps 3 .. 10 */
  EXPECT(1, int32_t, 0, 0, 0, 4, 5, 6, 7, 8, 9, 10, 0);
  ax_arena_deinit(&arena);
}

/* A kernel in a larger function reads and writes where that says, and does all of its steps. */
static void a_kernel_inside_a_function(void **state) {
  (void)state;
  ax_arena arena = {0};
  ax_nest_schedule *schedule;
  assert_int_equal(ax_nest_schedule_inside(&arena, plus_one(&arena), (ax_registers){.bytes = cg.vector_bytes}, false, &schedule), AX_OK);
  assert_non_null(schedule);
  const LLVMValueRef bases[] = {address(1), address(made)};
  LLVMValueRef *const held[] = {NULL, NULL};
  const bool far[] = {false, false};
  const ax_nest_inside inside = {.coordinates = LLVMGetParam(cg.function, 1), .bases = bases, .held = held, .far = far};
  assert_int_equal(ax_nest_emit_inside(&arena, &cg, schedule, &inside), AX_OK);
  GIVE(1, int32_t, 0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100);
  call();
  EXPECT(made, int32_t, 1, 11, 21, 31, 41, 51, 61, 71, 81, 91, 101);
  ax_arena_deinit(&arena);
}

static void a_kernel_without_steps_has_no_schedule(void **state) {
  (void)state;
  ax_arena arena = {0};
  ax_nest_schedule *schedule;
  ax_loop_kernel *kernel = ax_kernel_create(&arena, 1, 0, (const int64_t[]){0});
  ax_kernel_store(kernel, ax_kernel_slot(kernel, AX_S32, 1, (const int64_t[]){0}), &each, ax_kernel_const(kernel, AX_S32, 1),
                  AX_SCALAR_NONE);
  assert_int_equal(ax_nest_schedule_inside(&arena, kernel, (ax_registers){.bytes = cg.vector_bytes}, false, &schedule), AX_OK);
  assert_null(schedule);
  ax_arena_deinit(&arena);
}

/* Element i in step i, once: a slot that can be held in registers. Not so of a slot that is read backwards. */
static void slots_that_are_walked_once(void **state) {
  (void)state;
  ax_arena arena = {0};
  ax_nest_schedule *schedule;
  const int64_t dims[] = {16};
  const ax_position back = {.dim = 0, .coef = -1, .offset = 15, .dynamic = AX_NONE};
  ax_loop_kernel *k = ax_kernel_create(&arena, 1, 0, dims);
  const uint32_t in = ax_kernel_slot(k, AX_F32, 1, dims), out = ax_kernel_slot(k, AX_F32, 1, dims);
  ax_kernel_store(k, out, &each, ax_kernel_load(k, in, &back), AX_SCALAR_NONE);
  assert_int_equal(ax_nest_schedule_inside(&arena, k, (ax_registers){.bytes = cg.vector_bytes}, false, &schedule), AX_OK);
  assert_true(ax_nest_walks_once(schedule, out, 16));
  assert_false(ax_nest_walks_once(schedule, in, 16));
  ax_arena_deinit(&arena);
}

#define BY_HAND(test) cmocka_unit_test_setup_teardown(test, begin, end)
#define OF_KERNEL(test) cmocka_unit_test_setup_teardown(test, open_module, end)

int main(void) {
  const struct CMUnitTest tests[] = {
      BY_HAND(a_function_gets_slots_and_a_range),
      BY_HAND(memory_on_the_stack_begins_a_cache_line),
      BY_HAND(registers_hold_bool_as_a_bit_and_narrow_floats_as_f32),
      BY_HAND(memory_holds_bool_as_a_byte_and_narrow_floats_as_16_bits),
      BY_HAND(constants_of_vectors),
      BY_HAND(constants_by_the_bits_of_their_dtype),
      BY_HAND(a_scalar_in_all_lanes),
      BY_HAND(lanes_in_another_order),
      BY_HAND(elements_in_turn),
      BY_HAND(rows_and_columns),
      BY_HAND(an_intrinsic_of_a_vector_type),
      BY_HAND(memory_to_registers_and_back),
      BY_HAND(upper_halves_of_rounded_numbers),
      BY_HAND(rounding_to_a_narrow_float),
      BY_HAND(a_conversion_rounds_once),
      BY_HAND(one_operation),
      BY_HAND(sums_are_made_in_a_wide_enough_dtype),
      BY_HAND(reductions_of_nothing),
      BY_HAND(a_reduction_begins_with_its_identity),
      BY_HAND(floats_as_integers_of_the_same_order),
      BY_HAND(the_smaller_of_two),
      BY_HAND(a_nan_is_the_largest_and_the_smallest),
      BY_HAND(integers_divided),
      cmocka_unit_test(integers_divided_by_numbers),
      BY_HAND(long_integers_divided),
      BY_HAND(powers_of_integers),
      BY_HAND(a_number_to_a_power),
      BY_HAND(a_function_of_a_vector),
      BY_HAND(registers_that_have_functions_of_ours),
      BY_HAND(a_function_of_narrow_numbers_is_in_line),
      OF_KERNEL(a_kernel_does_its_range),
      BY_HAND(a_kernel_inside_a_function),
      BY_HAND(a_kernel_without_steps_has_no_schedule),
      BY_HAND(slots_that_are_walked_once),
  };
  return cmocka_run_group_tests(tests, start_llvm, end_llvm);
}
