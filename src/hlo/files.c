#include "hlo/files.h"

#include <ctype.h>
#include <string.h>

#include "hlo/exported.h"
#include "hlo/read_bytecode.h"
#include "hlo/read_text.h"

/* "#name =" or "!name =": an alias of MLIR's. Comments of Axle's begin with # too. */
static bool is_alias(const char *text, size_t length) {
  size_t i = 1;
  while (i < length && (isalnum((unsigned char)text[i]) || text[i] == '_')) i++;
  const size_t name = i - 1;
  while (i < length && text[i] == ' ') i++;
  return length > 0 && (text[0] == '#' || text[0] == '!') && name > 0 && i < length && text[i] == '=';
}

/* The first word of MLIR's texts: an alias, a module, or a function without one. Axle's own begin with a brace or a comment. */
static bool is_text(const char *text, size_t length) {
  size_t i = 0;
  for (; i < length; i++) {
    if (text[i] == '/' && i + 1 < length && text[i + 1] == '/')
      while (i < length && text[i] != '\n') i++;
    else if (strchr(" \t\r\n", text[i]) == NULL || text[i] == '\0')
      break;
  }
  static const char *const words[] = {"module", "func.func", "\"builtin.module\"", "sdy.mesh", "HloModule" /* which is refused as what it is */};
  for (size_t k = 0; k < AX_COUNT(words); k++)
    if (length - i > strlen(words[k]) && memcmp(text + i, words[k], strlen(words[k])) == 0) return true;
  return is_alias(text + i, length - i);
}

ax_hlo_format ax_hlo_format_of(const char *bytes, size_t count) {
  if (ax_hlo_is_bytecode(bytes, count)) return AX_HLO_BYTECODE;
  if (ax_hlo_is_exported(bytes, count)) return AX_HLO_EXPORTED;
  return is_text(bytes, count) ? AX_HLO_TEXT : AX_HLO_NO_MODULE;
}

static ax_status read_exported(const char *bytes, size_t count, const char *source, struct ax_shared *lender, ax_hlo_module *out) {
  ax_arena arena = {0};
  ax_hlo_slice module;
  ax_hlo_calling calling;
  ax_status status = ax_hlo_read_exported(bytes, count, source, &arena, &module, &calling);
  if (status == AX_OK) status = ax_hlo_read_called(module.start, module.length, source, &calling, lender, out);
  ax_arena_deinit(&arena);
  return status;
}

ax_status ax_hlo_read(const char *bytes, size_t count, const char *source, ax_hlo_module *out) {
  return ax_hlo_read_lent(bytes, count, source, NULL, out);
}

ax_status ax_hlo_read_lent(const char *bytes, size_t count, const char *source, struct ax_shared *lender, ax_hlo_module *out) {
  *out = (ax_hlo_module){0};
  if (ax_hlo_is_exported(bytes, count) && !ax_hlo_is_bytecode(bytes, count)) return read_exported(bytes, count, source, lender, out);
  ax_status status = ax_hlo_is_bytecode(bytes, count) ? ax_hlo_read_called(bytes, count, source, NULL, lender, out)
                                                      : ax_hlo_read_lent_text(bytes, count, source, lender, out);
  if (status == AX_OK && lender != NULL) ax_hlo_own(out, bytes, count, lender);
  return status;
}
