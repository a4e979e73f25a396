/* Executables as bytes: what they are made of, which is compiled again where they are loaded. Machine code is the runtime's to keep
   (AXLE_CODE_CACHE), since it depends on the machine.

     "AXLE-PJRT\0"  the version's text, the compile options, the module: each its length in 8 bytes, lowest first, then its bytes
     the digest of all that comes before it

   Bytes of another version are refused by its name, and so are those that are damaged. */
#include <string.h>

#include "base/digest.h"
#include "pjrt/pjrt.h"

static const char magic[10] = "AXLE-PJRT";
enum { sections = 3 };

ax_pjrt_held *ax_pjrt_held_of(size_t count) {
  ax_pjrt_held *held = ax_alloc(sizeof *held + count);
  if (held != NULL) held->count = count;
  return held;
}

void ax_pjrt_held_release(ax_pjrt_held *held) { ax_free(held); }

typedef struct section {
  const char *bytes;
  size_t count;
} section;

static ax_digest digest_of(const char *bytes, size_t count) {
  ax_digester digester;
  ax_digester_init(&digester);
  ax_digester_add(&digester, bytes, count);
  return ax_digester_finish(&digester);
}

static char *write_section(char *at, const section *s) {
  for (int i = 0; i < 8; i++) *at++ = (char)(unsigned char)((uint64_t)s->count >> (8 * i) & 0xff);
  if (s->count > 0) memcpy(at, s->bytes, s->count);
  return at + s->count;
}

static bool read_section(const char **at, const char *end, section *out) {
  uint64_t count = 0;
  if (end - *at < 8) return false;
  for (int i = 0; i < 8; i++) count |= (uint64_t)(unsigned char)(*at)[i] << (8 * i);
  *at += 8;
  if (count > (uint64_t)(end - *at)) return false;
  *out = (section){*at, (size_t)count};
  *at += count;
  return true;
}

ax_pjrt_error *ax_pjrt_do_executable_serialize(ax_pjrt_executable_serialize_args *args) {
  const ax_pjrt_executable *e = args->of;
  const section parts[sections] = {{ax_pjrt_version_text, strlen(ax_pjrt_version_text)}, {e->option_text, e->option_bytes}, {e->code, e->code_bytes}};
  size_t count = sizeof magic + sizeof(ax_digest);
  for (int i = 0; i < sections; i++) count += 8 + parts[i].count;
  ax_pjrt_held *held = ax_pjrt_held_of(count);
  if (held == NULL) return ax_pjrt_fail(AX_PJRT_RESOURCE_EXHAUSTED, "out of memory for an executable of %zu bytes", count);
  memcpy(held->bytes, magic, sizeof magic);
  char *at = held->bytes + sizeof magic;
  for (int i = 0; i < sections; i++) at = write_section(at, &parts[i]);
  const ax_digest digest = digest_of(held->bytes, (size_t)(at - held->bytes));
  memcpy(at, digest.bytes, sizeof digest.bytes);
  args->bytes = held->bytes, args->count = count;
  args->held = held, args->release = ax_pjrt_held_release;
  return NULL;
}

static ax_pjrt_error *read(const char *bytes, size_t count, section *parts) {
  const char *at = bytes + sizeof magic;
  bool whole = count > sizeof magic + sizeof(ax_digest) && memcmp(bytes, magic, sizeof magic) == 0;
  if (!whole) return ax_pjrt_fail(AX_PJRT_INVALID_ARGUMENT, "these bytes are no executable of Axle's");
  const char *end = bytes + count - sizeof(ax_digest);
  whole = read_section(&at, end, &parts[0]);
  if (whole && (parts[0].count != strlen(ax_pjrt_version_text) || memcmp(parts[0].bytes, ax_pjrt_version_text, parts[0].count) != 0))
    return ax_pjrt_fail(AX_PJRT_INVALID_ARGUMENT, "the executable was made by %.*s, and this is %s", parts[0].count < 64 ? (int)parts[0].count : 64,
                        parts[0].bytes, ax_pjrt_version_text);
  for (int i = 1; whole && i < sections; i++) whole = read_section(&at, end, &parts[i]);
  const ax_digest digest = digest_of(bytes, (size_t)(end - bytes));
  if (whole && at == end && memcmp(digest.bytes, end, sizeof digest.bytes) == 0) return NULL;
  return ax_pjrt_fail(AX_PJRT_DATA_LOSS, "the executable is damaged");
}

ax_pjrt_error *ax_pjrt_do_executable_deserialize_and_load(ax_pjrt_executable_deserialize_and_load_args *args) {
  section parts[sections];
  ax_pjrt_executable *e;
  args->value = NULL;
  AX_PJRT_TRY(read(args->bytes, args->count, parts));
  const bool others = AX_PJRT_HAS(args, option_bytes) && args->option_bytes > 0; /* options that count instead */
  const ax_pjrt_program program = {.struct_size = sizeof program, .code = (char *)(uintptr_t)parts[2].bytes, .code_bytes = parts[2].count,
                                   .format = "mlir", .format_length = 4};
  AX_PJRT_TRY(ax_pjrt_executable_of(args->of, &program, others ? args->options : parts[1].bytes, others ? args->option_bytes : parts[1].count, true, &e));
  return ax_pjrt_executable_load(e, &args->value);
}

ax_pjrt_error *ax_pjrt_do_executable_compile_options(ax_pjrt_executable_compile_options_args *args) {
  ax_pjrt_held *held = ax_pjrt_held_of(args->of->option_bytes);
  if (held == NULL) return ax_pjrt_fail(AX_PJRT_RESOURCE_EXHAUSTED, "out of memory for compile options");
  if (held->count > 0) memcpy(held->bytes, args->of->option_text, held->count);
  args->bytes = held->bytes, args->count = held->count;
  args->held = held, args->release = ax_pjrt_held_release;
  return NULL;
}
