#include "processes/heads.h"

#include <assert.h>
#include <string.h>

size_t ax_head_write(const ax_head *last, const void *head, size_t bytes, uint32_t code[AX_HEAD_CODE / 4]) {
  const uint32_t count = (uint32_t)(bytes / 4);
  uint32_t differ = 0;
  size_t written = 1;
  assert(bytes % 4 == 0 && bytes <= AX_HEAD_BYTES);
  for (uint32_t i = 0; i < count; i += 2) { /* most pairs of words are the same */
    uint32_t words[2] = {0};
    const uint32_t some = count - i < 2 ? 1 : 2;
    if (some == 2 && memcmp((const char *)head + 4 * i, &last->words[i], 8) == 0) continue;
    memcpy(words, (const char *)head + 4 * i, some * 4);
    for (uint32_t k = 0; k < some; k++) {
      if (words[k] == last->words[i + k]) continue;
      differ |= 1u << (i + k);
      code[written++] = words[k];
    }
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
