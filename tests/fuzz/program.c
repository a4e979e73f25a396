/* What libFuzzer calls: bytes read as a module, of which a program is made. What is read is
   exported again, since export sees what no program of Axle's own has. Built with clang and -DAXLE_FUZZ=ON. */
#include <stddef.h>
#include <stdint.h>

#include "axle/stablehlo.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count) {
  ax_program *program;
  char *text;
  if ((ax_program_from_stablehlo)((const char *)bytes, count, "fuzz", &program) != AX_OK) return 0;
  if ((ax_program_stablehlo)(program, &text) == AX_OK) ax_string_free(text);
  ax_program_release(program);
  return 0;
}
