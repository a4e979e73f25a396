#include "processes/heads.h"

#include <assert.h>
#include <string.h>

/* Where a word of the code goes next. */
typedef struct writing {
  uint32_t *next, differ;
} writing;

static inline void write_word(writing *w, const ax_head *last, const char *head, uint32_t i) {
  uint32_t word;
  memcpy(&word, head + 4 * i, sizeof word);
  if (word == last->words[i]) return;
  w->differ |= 1u << i;
  *w->next++ = word;
}

/* Most words are the same, so two are looked at together. */
size_t ax_head_write(const ax_head *last, const void *head, size_t bytes, uint32_t code[AX_HEAD_CODE / 4]) {
  const uint32_t count = (uint32_t)(bytes / 4);
  writing w = {.next = code + 1};
  assert(bytes % 4 == 0 && bytes <= AX_HEAD_BYTES);
  for (uint32_t i = 0; i + 1 < count; i += 2) {
    uint64_t both, before;
    memcpy(&both, (const char *)head + 4 * i, sizeof both);
    memcpy(&before, &last->words[i], sizeof before);
    if (both == before) continue;
    write_word(&w, last, head, i);
    write_word(&w, last, head, i + 1);
  }
  if (count % 2 != 0) write_word(&w, last, head, count - 1);
  code[0] = count << AX_HEAD_WORDS | w.differ;
  return (size_t)(w.next - code) * 4;
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
