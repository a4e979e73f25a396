/* LLVM's names of the host are copies made with malloc. Where there was no memory for one, compiling reports that, and goes on
   later. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above first */
#include <cmocka.h>

#include "jit/emit/generator.h"
#include "jit/llvm/llvm.h"

static char *nothing(void) { return NULL; }

static ax_status emit(void) {
  const ax_position at = {.dim = 0, .coef = 1, .dynamic = AX_NONE};
  const int64_t dims[] = {8};
  ax_generator generator = {0};
  ax_arena arena = {0};
  ax_loop_kernel *kernel = ax_kernel_create(&arena, 1, 0, dims);
  const uint32_t slot = ax_kernel_slot(kernel, AX_F32, 1, dims);
  void *object;
  size_t bytes;
  ax_kernel_store(kernel, ax_kernel_slot(kernel, AX_F32, 1, dims), &at, ax_kernel_load(kernel, slot, &at), AX_SCALAR_NONE);
  const ax_status status = ax_generator_emit(&generator, &(ax_unit){.kernel = kernel}, 1, &object, &bytes);
  ax_free(object);
  ax_generator_deinit(&generator);
  ax_arena_deinit(&arena);
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

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(names_without_memory)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
