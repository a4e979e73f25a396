/* What libFuzzer calls: bytes read as a module, text, bytecode or a file of jax.export, as their beginning says; what is read is printed and
   written. Built with clang and -DAXLE_FUZZ=ON; build-fuzz/tests/fuzz_hlo tests/bytecode */
#include <stddef.h>
#include <stdint.h>

#include "hlo/dialect.h"
#include "hlo/files.h"
#include "hlo/print.h"
#include "hlo/write_bytecode.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count) {
  ax_hlo_module module;
  ax_text text = {0}, written = {0};
  if (ax_hlo_read((const char *)bytes, count, "fuzz", &module) != AX_OK) return 0;
  (void)!ax_hlo_print(&module, &text);
  (void)!ax_hlo_write_bytecode(&module, AX_HLO_VERSION(1, 10), &written);
  ax_text_deinit(&text);
  ax_text_deinit(&written);
  ax_hlo_module_deinit(&module);
  return 0;
}
