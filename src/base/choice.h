/* Options of two words, which the caller, an environment variable or the default decides. */
#ifndef AX_BASE_CHOICE_H
#define AX_BASE_CHOICE_H

#include "base/base.h"

typedef struct ax_choice {
  const char *name, *variable, *words[2]; /* of the option; in the environment; of its values 1 and 2. Value 0 leaves it open */
} ax_choice;

/* Reads one of the two words. False: it is neither, and *value stays. */
bool ax_choice_find(const ax_choice *choice, const char *word, int *value);
/* *value: the choice asked for; where that is 0, the variable's; without it, 0. AX_INVALID_ARGUMENT: there is no such value,
   or the variable has neither word. */
AX_MUST_USE ax_status ax_choice_decide(const ax_choice *choice, int asked, int *value);

#endif
