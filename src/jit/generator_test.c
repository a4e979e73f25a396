/* The registers that code uses on processors of several kinds, whose names LLVM is given instead of this machine's; the code is
   read, not run. The passes that LLVM runs, as it prints them itself. LLVM's names of the host are copies made with malloc: where
   there was no memory for one, compiling reports that, and goes on later. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above first */
#include <cmocka.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "jit/emit/generator.h"
#include "jit/llvm/linked.h"
#include "jit/llvm/llvm.h"
#include "machine/features.h"

static char *nothing(void) { return NULL; }

/* The caller frees *object. The arena is freed. */
static ax_status emit_made(ax_arena arena, const ax_loop_kernel *kernel, void **object, size_t *bytes, uint32_t *vector_bytes) {
  ax_generator generator = {0};
  const ax_status status = ax_generator_emit(&generator, &(ax_unit){.kernel = kernel}, 1, object, bytes);
  *vector_bytes = generator.vector_bytes;
  ax_generator_deinit(&generator);
  ax_arena_deinit(&arena);
  return status;
}

/* The value that a kernel stores, of x. */
typedef ax_ex body(ax_loop_kernel *kernel, ax_ex x);
static ax_ex copied(ax_loop_kernel *kernel, ax_ex x) {
  (void)kernel;
  return x;
}

/* A kernel over an array. The caller frees *object. */
static ax_status emit_kernel(ax_dtype dtype, body *make, void **object, size_t *bytes, uint32_t *vector_bytes) {
  const ax_position at = {.dim = 0, .coef = 1, .dynamic = AX_NONE};
  const int64_t dims[] = {4096};
  ax_arena arena = {0};
  ax_loop_kernel *kernel = ax_kernel_create(&arena, 1, 0, dims);
  const uint32_t slot = ax_kernel_slot(kernel, dtype, 1, dims);
  const ax_ex value = make(kernel, ax_kernel_load(kernel, slot, &at));
  ax_kernel_store(kernel, ax_kernel_slot(kernel, dtype, 1, dims), &at, value, AX_SCALAR_NONE);
  return emit_made(arena, kernel, object, bytes, vector_bytes);
}

static ax_status emit_copy(void **object, size_t *bytes, uint32_t *vector_bytes) {
  return emit_kernel(AX_F32, copied, object, bytes, vector_bytes);
}

static ax_status emit(void) {
  void *object;
  size_t bytes;
  uint32_t vector_bytes;
  const ax_status status = emit_copy(&object, &bytes, &vector_bytes);
  ax_free(object);
  return status;
}

static void names_without_memory(void **state) {
  (void)state;
  assert_int_equal(ax_llvm_load(), AX_OK);
  const ax_llvm_functions all = ax_llvm;
  for (int name = 0; name < 3; name++) {
    if (name == 0) ax_llvm.LLVMGetDefaultTargetTriple = nothing;
    if (name == 1) ax_llvm.LLVMGetHostCPUName = nothing;
    if (name == 2) ax_llvm.LLVMGetHostCPUFeatures = nothing;
    assert_int_equal(emit(), AX_OUT_OF_MEMORY);
    ax_llvm = all;
    assert_int_equal(emit(), AX_OK);
  }
}

/* Compiles, and returns what is written to the standard error output meanwhile. */
static char *written_while_compiling(void) {
  enum { most = 1 << 20 };
  char file[] = "/tmp/axle_passes_XXXXXX", *text = calloc(1, most);
  const int into = mkstemp(file), before = dup(STDERR_FILENO);
  assert_true(text != NULL && into >= 0 && before >= 0 && dup2(into, STDERR_FILENO) >= 0);
  const ax_status status = emit();
  assert_true(dup2(before, STDERR_FILENO) >= 0);
  assert_true(pread(into, text, most - 1, 0) > 0);
  close(before);
  close(into);
  unlink(file);
  assert_int_equal(status, AX_OK);
  return text;
}

/* Passes that `optnone` turns off are not run, nor are the analyses that only they ask for. */
static void no_pass_is_in_vain(void **state) {
  static const char *const show[] = {"axle", "-debug-pass=Structure"}, *const hide[] = {"axle", "-debug-pass=Disabled"};
  static const char *const in_vain[] = {"Loop Strength Reduction", "Induction Variable Users", "Scalar Evolution Analysis",
                                        "CodeGen Prepare", "Branch Probability Basic Block Placement", "Early Tail Duplication",
                                        "Machine code sinking"};
  (void)state;
  assert_int_equal(ax_llvm_load(), AX_OK);
  void *library = AX_LLVM_LINKED[0] != '\0' ? dlopen(AX_LLVM_LINKED, RTLD_LAZY | RTLD_LOCAL) : NULL;
  if (library == NULL) skip(); /* LLVM's own library, whose options are everybody's */
  const ax_llvm_linked *linked = dlsym(library, "axle_llvm");
  assert_non_null(linked);
  linked->set_options(AX_COUNT(show), show, "");
  char *text = written_while_compiling();
  linked->set_options(AX_COUNT(hide), hide, "");
  assert_non_null(strstr(text, "Greedy Register Allocator"));
  for (size_t i = 0; i < AX_COUNT(in_vain); i++) assert_null(strstr(text, in_vain[i]));
  free(text);
  dlclose(library);
}

#if defined(__x86_64__)

/* As LLVM writes them, with what is beside the point left out. */
static const struct processor {
  const char *name, *features;
  uint32_t vector_bytes;
} processors[] = {
    {"x86-64", "+sse2,-avx,-avx2,-avx512f", 16},
    {"ivybridge", "+sse4.2,+avx,+f16c,-avx2,-fma", 16},
    {"haswell", "+sse2,+avx,+avx2,+fma,+f16c,+bmi2,-avx512f,-avx512fp16", 32},
    {"skylake-avx512", "+avx,+avx2,+fma,+avx512f,+avx512cd,+avx512bw,+avx512dq,+avx512vl", 64},
    {"znver4", "+avx512bf16,+avx2,+avx512bw,+fma,+avx512vl,+avx512dq,-avx512fp16,+avx512f", 64},
    /* names that begin as others do stand before them */
    {"sapphirerapids", "+amx-tile,+avx512fp16,+avx2,+avx512bw,+fma,+avx512vl,+avx512dq,+avx512f", 64},
};

static const struct processor *now;
static char *name_of_now(void) { return strdup(now->name); }
static char *features_of_now(void) { return strdup(now->features); }

/* From here on LLVM makes code for the processor `now`. Returns LLVM's own functions, to be put back. */
static ax_llvm_functions pretend(void) {
  assert_int_equal(ax_llvm_load(), AX_OK);
  const ax_llvm_functions all = ax_llvm;
  ax_llvm.LLVMGetHostCPUName = name_of_now;
  ax_llvm.LLVMGetHostCPUFeatures = features_of_now;
  return all;
}

/* How many lines of the disassembled object match. */
static int lines_with(const void *object, size_t bytes, const char *pattern) {
  char file[] = "/tmp/axle_generator_XXXXXX", command[128], number[32] = "";
  const int descriptor = mkstemp(file);
  assert_true(descriptor >= 0 && write(descriptor, object, bytes) == (ssize_t)bytes);
  close(descriptor);
  snprintf(command, sizeof command, "objdump -d %s | grep -c '%s'", file, pattern);
  FILE *found = popen(command, "r");
  assert_non_null(found);
  assert_non_null(fgets(number, sizeof number, found));
  pclose(found);
  unlink(file);
  return atoi(number);
}

static void registers_are_the_processors_widest(void **state) {
  (void)state;
  const ax_llvm_functions all = pretend();
  for (size_t i = 0; i < AX_COUNT(processors); i++) {
    void *object;
    size_t bytes;
    uint32_t vector_bytes;
    now = &processors[i];
    assert_int_equal(emit_copy(&object, &bytes, &vector_bytes), AX_OK);
    assert_int_equal(vector_bytes, now->vector_bytes);
    assert_int_equal(lines_with(object, bytes, "%zmm") > 0, now->vector_bytes == 64);
    if (now->vector_bytes == 32) assert_true(lines_with(object, bytes, "%ymm") > 0);
    if (now->vector_bytes == 16) assert_true(lines_with(object, bytes, "%xmm") > 0); /* LLVM may join two on a processor with AVX */
    ax_free(object);
  }
  ax_llvm = all;
}

static ax_ex one_f16(ax_loop_kernel *k) { return ax_kernel_const(k, AX_F16, 0x3c00); }
static ax_ex binary(ax_loop_kernel *k, ax_scalar op, ax_ex a, ax_ex b) { return ax_kernel_op(k, op, AX_F16, a, b, AX_NONE); }

static ax_ex arithmetic(ax_loop_kernel *k, ax_ex x) {
  ax_ex y = binary(k, AX_SCALAR_ADD, binary(k, AX_SCALAR_MUL, x, x), one_f16(k));
  y = binary(k, AX_SCALAR_DIV, binary(k, AX_SCALAR_SUB, y, x), y);
  return ax_kernel_op(k, AX_SCALAR_SQRT, AX_F16, y, AX_NONE, AX_NONE);
}

/* sqrt(y) where x is below 1, and the larger of x and 1 elsewhere. */
static ax_ex compared(ax_loop_kernel *k, ax_ex x) {
  const ax_ex below = ax_kernel_op(k, AX_SCALAR_LT, AX_BOOL, x, one_f16(k), AX_NONE);
  return ax_kernel_op(k, AX_SCALAR_SELECT, AX_F16, below, arithmetic(k, x), binary(k, AX_SCALAR_MAX, x, one_f16(k)));
}

/* A function is computed in f32, so that there are as many lanes as f32 has. */
static ax_ex with_function(ax_loop_kernel *k, ax_ex x) {
  return binary(k, AX_SCALAR_ADD, ax_kernel_op_imm(k, AX_SCALAR_EXP, AX_F16, x, 0), one_f16(k));
}

static int instructions(ax_dtype dtype, body *make, const char *which) {
  void *object;
  size_t bytes;
  uint32_t vector_bytes;
  assert_int_equal(emit_kernel(dtype, make, &object, &bytes, &vector_bytes), AX_OK);
  const int count = lines_with(object, bytes, which);
  ax_free(object);
  return count;
}

static ax_ex index_of(ax_loop_kernel *k, ax_ex x) {
  const ax_ex place = ax_kernel_op(k, AX_SCALAR_CONVERT, AX_S32, ax_kernel_index(k, 0), AX_NONE, AX_NONE);
  const ax_ex below = ax_kernel_op(k, AX_SCALAR_LT, AX_BOOL, place, ax_kernel_const(k, AX_S32, 1000), AX_NONE);
  return ax_kernel_op(k, AX_SCALAR_SELECT, AX_F16, below, x, one_f16(k));
}

/* Indices that become s32 are s32 from the beginning: those of s64 would take two registers. */
static void indices_are_as_wide_as_what_they_become(void **state) {
  (void)state;
  const ax_llvm_functions all = pretend();
  for (size_t i = 0; i < AX_COUNT(processors); i++) {
    now = &processors[i];
    if (now->vector_bytes == 16) continue;
    assert_true(instructions(AX_F16, index_of, now->vector_bytes == 64 ? "vpaddd.*%zmm" : "vpaddd.*%ymm") > 0);
    assert_int_equal(instructions(AX_F16, index_of, "vpaddq.*%[yz]mm"), 0);
  }
  ax_llvm = all;
}

/* x / 2 + 1 */
static ax_ex half_and_one(ax_loop_kernel *k, ax_ex x) {
  const ax_ex half = ax_kernel_op(k, AX_SCALAR_MUL, AX_F32, x, ax_kernel_const(k, AX_F32, 0x3f000000), AX_NONE);
  return ax_kernel_op(k, AX_SCALAR_ADD, AX_F32, half, ax_kernel_const(k, AX_F32, 0x3f800000), AX_NONE);
}

/* Constants are put into registers once, not for each vector, and not again for what is left over after whole vectors; where there
   are 16 registers, LLVM may read one for every four vectors again. The mask of what is left over is made of bits. */
static void constants_stay_in_registers(void **state) {
  (void)state;
  const ax_llvm_functions all = pretend();
  for (size_t i = 0; i < AX_COUNT(processors); i++) {
    now = &processors[i];
    if (now->vector_bytes == 16) continue;
    const int constants = instructions(AX_F32, half_and_one, "vbroadcastss");
    assert_true(now->vector_bytes == 64 ? constants == 2 : constants >= 2 && constants <= 4);
    assert_int_equal(instructions(AX_F32, half_and_one, "vmulps.*[yz]mm"), 4 + 1 + 1); /* four vectors, one, less than one */
    if (now->vector_bytes < 64) continue;
    assert_true(instructions(AX_F32, half_and_one, "kmov.*%[er][a-z]*,%k") > 0);
    assert_int_equal(instructions(AX_F32, half_and_one, "vpcmp"), 0);
  }
  ax_llvm = all;
}

/* (x * g0 + g1) * g2 + .., of as many numbers that the call gives as registers cannot hold. */
enum { many_numbers = 75 };
static ax_ex of_numbers_given(ax_loop_kernel *k, ax_ex x) {
  for (int i = 0; i < many_numbers; i++) {
    const ax_ex number = ax_kernel_op_imm(k, AX_LEAF_GIVEN, AX_F32, AX_NONE, i);
    x = ax_kernel_op(k, i % 2 == 0 ? AX_SCALAR_MUL : AX_SCALAR_ADD, AX_F32, x, number, AX_NONE);
  }
  return x;
}

/* Given numbers that no register is left for are spread from where they are given, by a load that takes no other unit. None is
   kept on the stack, which took the code generator as long as all the rest. */
static void numbers_given_are_spread_by_loads(void **state) {
  (void)state;
  const ax_llvm_functions all = pretend();
  for (size_t i = 0; i < AX_COUNT(processors); i++) {
    now = &processors[i];
    if (now->vector_bytes != 64) continue;
    assert_int_equal(instructions(AX_F32, of_numbers_given, "vbroadcastss %xmm\\|(%rsp),%zmm"), 0);
    assert_int_equal(instructions(AX_F32, of_numbers_given, "vbroadcastss .*(%r"), many_numbers);
  }
  ax_llvm = all;
}

/* Operations on f16 are instructions of f16, in whole registers, where the processor has them; elsewhere they are those of f32,
   between conversions. */
static void f16_is_computed_in_f16_where_the_processor_can(void **state) {
  (void)state;
  static const char *const own[] = {"vaddph.*%zmm", "vmulph.*%zmm", "vsubph.*%zmm", "vdivph.*%zmm", "vsqrtph.*%zmm"};
  const ax_llvm_functions all = pretend();
  for (size_t i = 0; i < AX_COUNT(processors); i++) {
    now = &processors[i];
    const bool has = strcmp(now->name, "sapphirerapids") == 0;
    for (size_t k = 0; k < AX_COUNT(own); k++) assert_int_equal(instructions(AX_F16, arithmetic, own[k]) > 0, has);
    assert_int_equal(instructions(AX_F16, compared, "vcmp.*ph.*%zmm") > 0, has);
    assert_int_equal(instructions(AX_F16, with_function, "vaddph.*%ymm") > 0, has);
    if (has) assert_int_equal(instructions(AX_F16, compared, "vcvtph2ps\\|vcvtps2ph\\|vcvtph2psx"), 0);
  }
  ax_llvm = all;
}

static ax_ex squared(ax_loop_kernel *k, ax_ex x) { return ax_kernel_op(k, AX_SCALAR_MUL, AX_BF16, x, x, AX_NONE); }

/* A result is rounded to bf16 with one addition, and "or" with "and" is one instruction where the processor has such. */
static void rounding_takes_one_addition(void **state) {
  (void)state;
  const ax_llvm_functions all = pretend();
  for (size_t i = 0; i < AX_COUNT(processors); i++) {
    now = &processors[i];
    if (now->vector_bytes != 64) continue;
    const int logic = instructions(AX_BF16, squared, "vpternlogd.*%zmm");
    assert_true(logic > 0);
    assert_int_equal(instructions(AX_BF16, squared, "vpaddd.*%zmm"), logic);
  }
  ax_llvm = all;
}

/* Floats are compared as integers: to turn them takes one shift. */
static void the_largest_takes_one_shift_a_vector(void **state) {
  const int64_t dims[] = {64, 512};
  (void)state;
  const ax_llvm_functions all = pretend();
  for (size_t i = 0; i < AX_COUNT(processors); i++) {
    ax_arena arena = {0};
    ax_position at[2];
    ax_loop_kernel *kernel = ax_kernel_create(&arena, 2, 1, dims);
    void *object;
    size_t bytes;
    uint32_t vector_bytes;
    now = &processors[i];
    ax_at_identity(at, 2);
    const ax_ex x = ax_kernel_load(kernel, ax_kernel_slot(kernel, AX_F32, 2, dims), at);
    ax_kernel_store(kernel, ax_kernel_slot(kernel, AX_F32, 1, dims), at, x, AX_SCALAR_MAX);
    assert_int_equal(emit_made(arena, kernel, &object, &bytes, &vector_bytes), AX_OK);
    if (vector_bytes == 64) assert_true(lines_with(object, bytes, "vpsrad.*%zmm") > 0);
    if (vector_bytes == 64) assert_int_equal(lines_with(object, bytes, "vpsrld.*%zmm"), 0);
    ax_free(object);
  }
  ax_llvm = all;
}

/* The sum of x[i, j - 1] x[i, j + 1], with 0 beyond the ends of a row. */
static void rows_of_stencils_are_added_without_masks(void **state) {
  enum { rows = 64, columns = 256 };
  const int64_t dims[] = {rows, columns};
  const ax_position to = {.dim = -1, .dynamic = AX_NONE};
  ax_arena arena = {0};
  ax_loop_kernel *kernel = ax_kernel_create(&arena, 2, 2, dims);
  const uint32_t slot = ax_kernel_slot(kernel, AX_F32, 2, dims), sum = ax_kernel_slot(kernel, AX_F32, 0, NULL);
  ax_ex side[2];
  (void)state;
  for (int k = 0; k < 2; k++) {
    const ax_position at[] = {{.dim = 0, .coef = 1, .dynamic = AX_NONE},
                              {.dim = 1, .coef = 1, .offset = 2 * k - 1, .dynamic = AX_NONE}};
    side[k] = ax_kernel_load_where(kernel, slot, at, ax_kernel_inside(kernel, 1, 1, 2 * k - 1, columns));
  }
  ax_kernel_store(kernel, sum, &to, ax_kernel_op(kernel, AX_SCALAR_MUL, AX_F32, side[0], side[1], AX_NONE), AX_SCALAR_ADD);
  assert_false(kernel->failed);
  const ax_llvm_functions all = pretend();
  void *object;
  size_t bytes;
  uint32_t vector_bytes;
  now = &processors[4];
  assert_int_equal(emit_made(arena, kernel, &object, &bytes, &vector_bytes), AX_OK);
  assert_true(lines_with(object, bytes, "vmovups .*(.*),%zmm[0-9]*$") > 0);
  ax_free(object);
  ax_llvm = all;
}

/* The library's own vector code, which asks the processor itself, and code that LLVM makes agree on this machine. */
static void both_answers_agree(void **state) {
  (void)state;
  void *object;
  size_t bytes;
  uint32_t vector_bytes;
  assert_int_equal(emit_copy(&object, &bytes, &vector_bytes), AX_OK);
  assert_int_equal(vector_bytes, ax_machine_register_bytes());
  ax_free(object);
}

#endif

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(names_without_memory),
      cmocka_unit_test(no_pass_is_in_vain),
#if defined(__x86_64__)
      cmocka_unit_test(registers_are_the_processors_widest),
      cmocka_unit_test(indices_are_as_wide_as_what_they_become),
      cmocka_unit_test(constants_stay_in_registers),
      cmocka_unit_test(numbers_given_are_spread_by_loads),
      cmocka_unit_test(f16_is_computed_in_f16_where_the_processor_can),
      cmocka_unit_test(rounding_takes_one_addition),
      cmocka_unit_test(the_largest_takes_one_shift_a_vector),
      cmocka_unit_test(rows_of_stencils_are_added_without_masks),
      cmocka_unit_test(both_answers_agree),
#endif
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
