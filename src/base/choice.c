#include "base/choice.h"

#include <stdlib.h>
#include <string.h>

bool ax_choice_find(const ax_choice *choice, const char *word, int *value) {
  for (int i = 0; i < 2; i++)
    if (strcmp(choice->words[i], word) == 0) {
      *value = i + 1;
      return true;
    }
  return false;
}

ax_status ax_choice_decide(const ax_choice *choice, int asked, int *value) {
  const char *first = choice->words[0], *second = choice->words[1], *said = asked == 0 ? getenv(choice->variable) : NULL;
  if (asked < 0 || asked > 2)
    return ax_error(AX_INVALID_ARGUMENT, "%s is %d; it is %s or %s", choice->name, asked, first, second);
  *value = asked;
  if (said != NULL && said[0] != '\0' && !ax_choice_find(choice, said, value))
    return ax_error(AX_INVALID_ARGUMENT, "%s is \"%s\"; it is %s or %s", choice->variable, said, first, second);
  return AX_OK;
}
