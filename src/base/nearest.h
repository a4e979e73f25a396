/* The names that are spelled most like a word, for messages about a name that does not exist. */
#ifndef AX_BASE_NEAREST_H
#define AX_BASE_NEAREST_H

#include "base/base.h"

enum { AX_MOST_NEAREST = 3 };

/* The nearest names so far, nearest first; of equally near ones the first that was offered. Zero-initialise to start. Names are
   borrowed. */
typedef struct ax_nearest {
  const char *names[AX_MOST_NEAREST];
  uint32_t away[AX_MOST_NEAREST], count;
} ax_nearest;

/* Offers a name, of which `spelling`, at most 255 bytes, is compared with the word. Upper and lower case are the same. */
void ax_nearest_offer(ax_nearest *nearest, const char *word, const char *name, const char *spelling);
/* Adds "; the nearest: "a", "b"" to the text, and nothing if no name was offered. */
void ax_nearest_text(ax_text *text, const ax_nearest *nearest);

#endif
