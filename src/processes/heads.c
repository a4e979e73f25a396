#include "processes/heads.h"

#include <assert.h>
#include <string.h>

size_t ax_head_write(const ax_head *last, const void *head, size_t bytes, uint32_t code[AX_HEAD_CODE / 4]) {
  const uint32_t count = (uint32_t)(bytes / 4);
  uint32_t differ = 0;
  size_t written = 1;
  assert(bytes % 4 == 0 && bytes <= AX_HEAD_BYTES);
  for (uint32_t i = 0; i < count; i++) {
    uint32_t word;
    memcpy(&word, (const char *)head + 4 * i, sizeof word);
    if (word == last->words[i]) continue;
    differ |= 1u << i;
    code[written++] = word;
  }
  code[0] = count << AX_HEAD_WORDS | differ;
  return written * 4;
}

void ax_head_keep(ax_head *last, const void *head, size_t bytes) { memcpy(last->words, head, bytes); }

size_t ax_head_read(ax_head *last, const void *code, size_t *bytes) {
  const char *next = code;
  uint32_t first;
  memcpy(&first, next, sizeof first);
  next += sizeof first;
  *bytes = (size_t)(first >> AX_HEAD_WORDS) * 4;
  for (uint32_t differ = first & ((1u << AX_HEAD_WORDS) - 1); differ != 0; differ &= differ - 1, next += 4)
    memcpy(&last->words[__builtin_ctz(differ)], next, 4);
  return (size_t)(next - (const char *)code);
}
