/* Modules from one form to another, without making programs of them. */
#include "axle/stablehlo.h"

#include "hlo/files.h"
#include "hlo/dialect.h"
#include "hlo/print.h"
#include "hlo/verify.h"
#include "hlo/write_bytecode.h"

ax_status ax_stablehlo_text(const char *module, size_t bytes, const char *source, char **out) {
  ax_hlo_module read;
  ax_text text = {0};
  *out = NULL;
  AX_TRY(ax_require(module, "module"));
  AX_TRY(ax_hlo_read(module, bytes, source != NULL ? source : "module", &read));
  ax_status status = ax_hlo_verify(&read);
  if (status == AX_OK) status = ax_hlo_print(&read, &text);
  ax_hlo_module_deinit(&read);
  if (status == AX_OK) return ax_text_finish(&text, out);
  ax_text_deinit(&text);
  return status;
}

ax_status ax_stablehlo_bytecode(const char *module, size_t bytes, const char *source, const char *version, char **out,
                                size_t *out_bytes) {
  ax_hlo_module read;
  ax_text text = {0};
  uint32_t number;
  *out = NULL;
  *out_bytes = 0;
  AX_TRY(ax_require(module, "module"));
  AX_TRY(ax_hlo_parse_version(version, &number));
  AX_TRY(ax_hlo_read(module, bytes, source != NULL ? source : "module", &read));
  ax_status status = ax_hlo_verify(&read);
  if (status == AX_OK) status = ax_hlo_write_bytecode(&read, number, &text);
  *out_bytes = text.length;
  ax_hlo_module_deinit(&read);
  if (status == AX_OK) return ax_text_finish(&text, out);
  *out_bytes = 0;
  ax_text_deinit(&text);
  return status;
}
