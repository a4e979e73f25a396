/* What the processor can do, and the floating-point environment of threads that compute. */
#include "machine/features.h"

#include <fenv.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "machine/float_mode.h"
#include "support/cmocka.h"

static void wider_instructions_include_narrower_ones(void **state) {
  (void)state;
  assert_true(!ax_machine_has(AX_FEATURE_AVX2) || ax_machine_has(AX_FEATURE_AVX));
  assert_true(!ax_machine_has(AX_FEATURE_AVX512) || ax_machine_has(AX_FEATURE_AVX2));
  assert_true(!ax_machine_has(AX_FEATURE_AVX512_VNNI) || ax_machine_has(AX_FEATURE_AVX512));
  assert_true(!ax_machine_has(AX_FEATURE_AVX512_BF16) || ax_machine_has(AX_FEATURE_AVX512));
  assert_true(!ax_machine_has(AX_FEATURE_FAST_AVX512_BF16) || ax_machine_has(AX_FEATURE_AVX512_BF16));
}

/* As compilers ask for them. */
static void features_are_those_that_compilers_find(void **state) {
  (void)state;
#if defined(__x86_64__)
  __builtin_cpu_init();
  assert_int_equal(ax_machine_has(AX_FEATURE_AVX), __builtin_cpu_supports("avx") != 0);
  assert_int_equal(ax_machine_has(AX_FEATURE_AVX2), __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"));
  assert_int_equal(ax_machine_has(AX_FEATURE_AVX512),
                   __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
                       __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq"));
  assert_int_equal(ax_machine_has(AX_FEATURE_AVX512_VNNI), __builtin_cpu_supports("avx512vnni") != 0);
  assert_int_equal(ax_machine_has(AX_FEATURE_AVX512_BF16), __builtin_cpu_supports("avx512bf16") != 0);
#endif
}

/* A processor with AMX has no AMX, if the system does not save tiles, or not all of them; and none without AVX-512. */
static void tiles_need_the_system(void **state) {
  (void)state;
  ax_processor_words words = {.leaf_1_ecx = ~0u, .leaf_7_ebx = ~0u, .leaf_7_ecx = ~0u, .leaf_7_edx = ~0u, .leaf_7_1_eax = ~0u,
                              .saved = 0x600e7};
  const uint32_t tiles = 1u << AX_FEATURE_AMX_BF16 | 1u << AX_FEATURE_AMX_INT8, all = ax_features_of(&words);
  assert_int_equal(all & tiles, tiles);
  words.saved = 0x400e7;
  assert_int_equal(ax_features_of(&words), all & ~tiles);
  words.saved = 0x60007;
  assert_int_equal(ax_features_of(&words) & tiles, 0);
  words.saved = 0x600e7, words.leaf_7_edx = 1 << 24 | 1 << 22;
  assert_int_equal(ax_features_of(&words) & tiles, 1u << AX_FEATURE_AMX_BF16);
  assert_int_equal(ax_features_of(&(ax_processor_words){0}), 0);
}

/* Asked again, and by a forked process, the answer is the same. */
static void a_forked_process_has_leave_for_tiles_too(void **state) {
  (void)state;
  const bool has = ax_machine_has(AX_FEATURE_AMX_BF16);
  for (int i = 0; i < 3; i++) assert_int_equal(ax_machine_has(AX_FEATURE_AMX_BF16), has);
  const pid_t child = fork();
  if (child == 0) _exit(ax_machine_has(AX_FEATURE_AMX_BF16) == has ? 0 : 1);
  int status = 1;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
}

static void registers_are_as_wide_as_instructions(void **state) {
  (void)state;
  const uint32_t wanted = ax_machine_has(AX_FEATURE_AVX512) ? 64 : ax_machine_has(AX_FEATURE_AVX2) ? 32 : 16;
  assert_int_equal(ax_machine_register_bytes(), wanted);
}

/* As the file that the kernel keeps says it, which asks CPUID in its own way. */
static void intels_sums_of_bf16_are_slow(void **state) {
  (void)state;
  char line[512];
  bool intel = false;
  FILE *file = fopen("/proc/cpuinfo", "r");
  if (file == NULL) skip();
  while (file != NULL && fgets(line, sizeof line, file) != NULL) intel = intel || strstr(line, "GenuineIntel") != NULL;
  fclose(file);
  assert_int_equal(ax_machine_has(AX_FEATURE_FAST_AVX512_BF16), ax_machine_has(AX_FEATURE_AVX512_BF16) && !intel);
  assert_true(intel || !ax_machine_has(AX_FEATURE_FAST_GATHERS));
}

static void a_processor_has_one_identity(void **state) {
  (void)state;
  ax_digester a, b, none;
  ax_digester_init(&a), ax_digester_init(&b), ax_digester_init(&none);
  const bool says = ax_machine_add_identity(&a);
  assert_int_equal(ax_machine_add_identity(&b), says);
  const ax_digest one = ax_digester_finish(&a), again = ax_digester_finish(&b), nothing = ax_digester_finish(&none);
  assert_memory_equal(&one, &again, sizeof one);
  assert_int_equal(memcmp(&one, &nothing, sizeof one) == 0, !says);
}

/* Volatile, so that each is computed where it stands. */
static volatile double three = 3, tiny = 0x1p-1000;

static void a_callers_rounding_comes_back(void **state) {
  (void)state;
  volatile double nearest = 1 / three;
  fesetround(FE_UPWARD);
  volatile double upward = 1 / three;
  const ax_float_mode caller = ax_float_mode_enter(false);
  volatile double inside = 1 / three, small = tiny * 0x1p-60;
  const ax_float_mode outer = ax_float_mode_enter(true);
  volatile double flushed = tiny * 0x1p-60, read = small * 0x1p60;
  ax_float_mode_leave(outer);
  volatile double again = tiny * 0x1p-60;
  ax_float_mode_leave(caller);
  volatile double after = 1 / three;
  const int rounding = fegetround();
  fesetround(FE_TONEAREST);
  assert_true(inside == nearest && upward > nearest && after == upward);
  assert_int_equal(rounding, FE_UPWARD);
  assert_true(small == 0x1p-1060 && again == small);
#if defined(__x86_64__) || defined(__aarch64__)
  assert_true(flushed == 0 && read == 0);
#endif
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(wider_instructions_include_narrower_ones),
      cmocka_unit_test(features_are_those_that_compilers_find),
      cmocka_unit_test(tiles_need_the_system),
      cmocka_unit_test(a_forked_process_has_leave_for_tiles_too),
      cmocka_unit_test(registers_are_as_wide_as_instructions),
      cmocka_unit_test(intels_sums_of_bf16_are_slow),
      cmocka_unit_test(a_processor_has_one_identity),
      cmocka_unit_test(a_callers_rounding_comes_back),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
