#include "machine/subnormals.h"

#include "base/choice.h"

static const ax_choice choice = {"subnormals", "AXLE_SUBNORMALS", {"keep", "flush"}};

bool ax_subnormals_find(const char *word, ax_subnormals *out) {
  int value;
  const bool found = ax_choice_find(&choice, word, &value);
  if (found) *out = (ax_subnormals)value;
  return found;
}

ax_status ax_subnormals_flush(ax_subnormals asked, bool *flush) {
  int value;
  AX_TRY(ax_choice_decide(&choice, (int)asked, &value));
  *flush = value != AX_SUBNORMALS_KEEP;
  return AX_OK;
}
