/* Modules from one form to another, without making programs of them. */
#include "axle/stablehlo.h"

#include <stdio.h>

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

/* "1.0.0"; of a version only the first two numbers count. */
static ax_status parse_version(const char *word, uint32_t *out) {
  unsigned major = 1, minor = 0, patch = 0;
  int length = 0;
  const bool read = word == NULL || (sscanf(word, "%4u.%4u.%4u%n", &major, &minor, &patch, &length) == 3 && word[length] == '\0');
  *out = AX_HLO_VERSION(major, minor);
  if (read && *out >= AX_HLO_OLDEST && *out <= AX_HLO_NEWEST) return AX_OK;
  return ax_error(AX_INVALID_ARGUMENT, "\"%s\" is no version of VHLO from 0.9.0 to 1.20.0", word);
}

ax_status ax_stablehlo_bytecode(const char *module, size_t bytes, const char *source, const char *version, char **out,
                                size_t *out_bytes) {
  ax_hlo_module read;
  ax_text text = {0};
  uint32_t number;
  *out = NULL;
  *out_bytes = 0;
  AX_TRY(ax_require(module, "module"));
  AX_TRY(parse_version(version, &number));
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
