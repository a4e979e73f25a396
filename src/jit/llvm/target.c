/* The processor is identified without LLVM (machine/features.h), because LLVM is not loaded yet. */
#include "jit/llvm/target.h"

#include <llvm/Config/llvm-config.h>
#include <stdio.h>
#include <string.h>

#include "jit/llvm/code_digest.h"
#include "machine/caches.h"
#include "machine/features.h"

bool ax_jit_target(uint32_t most_vector_bytes, const char *instead, ax_digest *out) {
  ax_digester digester;
  char text[128];
  ax_digester_init(&digester);
  const int length = snprintf(text, sizeof text, "LLVM %s, axle %s, registers %u;", LLVM_VERSION_STRING, AX_CODE_DIGEST,
                              (unsigned)most_vector_bytes);
  ax_digester_add(&digester, text, (size_t)length + 1);
  ax_digester_add(&digester, ax_caches_here(), sizeof(ax_caches)); /* by which loops are blocked and rows prefetched */
  if (instead != NULL) ax_digester_add(&digester, instead, strlen(instead) + 1);
  if (instead == NULL && !ax_machine_add_identity(&digester)) return false;
  *out = ax_digester_finish(&digester);
  return true;
}
