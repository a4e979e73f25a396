/* Spelling is compared by Levenshtein's distance: how many characters are changed, added or left out between two words. One row of
   his table is kept. */
#include "base/nearest.h"

#include <string.h>

enum { longest_spelling = 255 };

static uint8_t lower(char letter) { return (uint8_t)(letter >= 'A' && letter <= 'Z' ? letter - 'A' + 'a' : letter); }

static uint32_t distance(const char *a, const char *b) {
  uint32_t row[longest_spelling + 1];
  const uint32_t length = (uint32_t)strlen(b);
  for (uint32_t k = 0; k <= length; k++) row[k] = k;
  for (uint32_t i = 0; a[i] != '\0'; i++) {
    uint32_t diagonal = row[0];
    row[0] = i + 1;
    for (uint32_t k = 0; k < length; k++) {
      const uint32_t changed = diagonal + (lower(a[i]) != lower(b[k])), shorter = (row[k] < row[k + 1] ? row[k] : row[k + 1]) + 1;
      diagonal = row[k + 1];
      row[k + 1] = changed < shorter ? changed : shorter;
    }
  }
  return row[length];
}

void ax_nearest_offer(ax_nearest *nearest, const char *word, const char *name, const char *spelling) {
  if (strlen(spelling) > longest_spelling) return;
  const uint32_t away = distance(word, spelling);
  uint32_t place = nearest->count;
  while (place > 0 && nearest->away[place - 1] > away) place--;
  if (place == AX_MOST_NEAREST) return;
  if (nearest->count < AX_MOST_NEAREST) nearest->count++;
  for (uint32_t k = nearest->count - 1; k > place; k--) {
    nearest->names[k] = nearest->names[k - 1];
    nearest->away[k] = nearest->away[k - 1];
  }
  nearest->names[place] = name;
  nearest->away[place] = away;
}

void ax_nearest_text(ax_text *text, const ax_nearest *nearest) {
  for (uint32_t k = 0; k < nearest->count; k++) ax_text_add(text, "%s\"%s\"", k > 0 ? ", " : "; the nearest: ", nearest->names[k]);
}
