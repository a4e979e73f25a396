/* Numbers and parts of a file's bytes. A number has one to nine bytes; the zeros below the lowest 1 of the first byte say how many
   follow. */
#include <stdio.h>
#include <string.h>

#include "hlo/bytecode.h"

ax_status ax_hlo_broken(const ax_hlo_bytecode *b, const unsigned char *at, const char *format, ...) {
  char message[512];
  va_list args;
  va_start(args, format);
  vsnprintf(message, sizeof message, format, args);
  va_end(args);
  return ax_error(AX_PARSE_ERROR, "%s: byte %zu: %s", b->scan.module->source, (size_t)(at - b->start), message);
}

ax_status ax_hlo_read_byte(const ax_hlo_bytecode *b, ax_hlo_bytes *from, unsigned char *out) {
  if (from->next == from->end) return ax_hlo_broken(b, from->next, "the bytes end here, and more must follow");
  *out = *from->next++;
  return AX_OK;
}

ax_status ax_hlo_read_number(const ax_hlo_bytecode *b, ax_hlo_bytes *from, uint64_t *out) {
  unsigned char first = 0, byte = 0;
  AX_TRY(ax_hlo_read_byte(b, from, &first));
  const uint32_t more = first == 0 ? 8 : (uint32_t)__builtin_ctz(first);
  uint64_t rest = 0;
  for (uint32_t i = 0; i < more; i++) {
    AX_TRY(ax_hlo_read_byte(b, from, &byte));
    rest |= (uint64_t)byte << 8 * i;
  }
  *out = more == 8 ? rest : rest << (7 - more) | first >> (more + 1);
  return AX_OK;
}

ax_status ax_hlo_read_signed(const ax_hlo_bytecode *b, ax_hlo_bytes *from, int64_t *out) {
  uint64_t number;
  AX_TRY(ax_hlo_read_number(b, from, &number));
  *out = (int64_t)(number >> 1 ^ (~(number & 1) + 1));
  return AX_OK;
}

ax_status ax_hlo_read_flagged(const ax_hlo_bytecode *b, ax_hlo_bytes *from, uint64_t *out, bool *flag) {
  AX_TRY(ax_hlo_read_number(b, from, out));
  *flag = (*out & 1) != 0;
  *out >>= 1;
  return AX_OK;
}

ax_status ax_hlo_read_below(const ax_hlo_bytecode *b, ax_hlo_bytes *from, uint64_t bound, const char *what, uint32_t *out) {
  const unsigned char *at = from->next;
  uint64_t number;
  AX_TRY(ax_hlo_read_number(b, from, &number));
  if (number >= bound)
    return ax_hlo_broken(b, at, "%s %llu is asked for, and there are %llu", what, (unsigned long long)number,
                         (unsigned long long)bound);
  *out = (uint32_t)number;
  return AX_OK;
}

ax_status ax_hlo_read_count(const ax_hlo_bytecode *b, ax_hlo_bytes *from, uint32_t *out) {
  const unsigned char *at = from->next;
  uint64_t count;
  AX_TRY(ax_hlo_read_number(b, from, &count));
  if (count > ax_hlo_left(from) || count > UINT32_MAX / 4)
    return ax_hlo_broken(b, at, "%llu entries cannot be in the %zu bytes that follow", (unsigned long long)count,
                         ax_hlo_left(from));
  *out = (uint32_t)count;
  return AX_OK;
}

ax_status ax_hlo_read_part(const ax_hlo_bytecode *b, ax_hlo_bytes *from, uint64_t bytes, ax_hlo_bytes *out) {
  if (bytes > ax_hlo_left(from))
    return ax_hlo_broken(b, from->next, "%llu bytes must follow, and there are %zu", (unsigned long long)bytes, ax_hlo_left(from));
  *out = (ax_hlo_bytes){from->next, from->next + bytes};
  from->next += bytes;
  return AX_OK;
}

ax_status ax_hlo_read_blob(const ax_hlo_bytecode *b, ax_hlo_bytes *from, ax_hlo_bytes *out) {
  uint64_t bytes;
  AX_TRY(ax_hlo_read_number(b, from, &bytes));
  return ax_hlo_read_part(b, from, bytes, out);
}

ax_status ax_hlo_align(const ax_hlo_bytecode *b, ax_hlo_bytes *from, uint64_t alignment) {
  ax_hlo_bytes padding;
  if (alignment == 0 || (alignment & (alignment - 1)) != 0)
    return ax_hlo_broken(b, from->next, "an alignment must be a power of 2");
  const uint64_t place = (uint64_t)(from->next - b->start);
  return ax_hlo_read_part(b, from, (0 - place) & (alignment - 1), &padding);
}

ax_status ax_hlo_read_section(const ax_hlo_bytecode *b, ax_hlo_bytes *from, uint32_t *id, ax_hlo_bytes *out) {
  unsigned char kind = 0;
  uint64_t length, alignment;
  AX_TRY(ax_hlo_read_byte(b, from, &kind));
  AX_TRY(ax_hlo_read_number(b, from, &length));
  if ((kind & 0x80) != 0) {
    AX_TRY(ax_hlo_read_number(b, from, &alignment));
    AX_TRY(ax_hlo_align(b, from, alignment));
  }
  *id = kind & 0x7f;
  return ax_hlo_read_part(b, from, length, out);
}

ax_status ax_hlo_read_string(const ax_hlo_bytecode *b, ax_hlo_bytes *from, ax_hlo_slice *out) {
  uint32_t index = 0;
  AX_TRY(ax_hlo_read_below(b, from, b->string_count, "string", &index));
  *out = b->strings[index];
  return AX_OK;
}

ax_status ax_hlo_read_bits(const ax_hlo_bytecode *b, ax_hlo_bytes *from, uint32_t bits, uint64_t *out) {
  unsigned char byte = 0;
  int64_t number;
  if (bits > 64) return ax_hlo_broken(b, from->next, "numbers of %u bits are not read", bits);
  if (bits <= 8) {
    AX_TRY(ax_hlo_read_byte(b, from, &byte));
    number = byte;
  } else {
    AX_TRY(ax_hlo_read_signed(b, from, &number));
  }
  *out = bits == 64 ? (uint64_t)number : (uint64_t)number & (((uint64_t)1 << bits) - 1);
  return AX_OK;
}

ax_status ax_hlo_make(ax_hlo_bytecode *b, size_t count, size_t bytes, void *out) {
  void *made = ax_arena_alloc(&b->scan.module->arena, count * bytes);
  memcpy(out, &made, sizeof made);
  return made != NULL || count == 0 ? AX_OK : ax_out_of_memory(count * bytes);
}

ax_status ax_hlo_read_integers(ax_hlo_bytecode *b, ax_hlo_bytes *from, const int64_t **out, uint32_t *count) {
  int64_t *numbers;
  AX_TRY(ax_hlo_read_count(b, from, count));
  AX_TRY(ax_hlo_make(b, *count, sizeof numbers[0], &numbers));
  for (uint32_t i = 0; i < *count; i++) AX_TRY(ax_hlo_read_signed(b, from, &numbers[i]));
  *out = numbers;
  return AX_OK;
}
