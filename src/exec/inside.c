/* See inside.h. */
#include "exec/inside.h"

static _Thread_local ax_inside *innermost;

void ax_inside_enter(ax_inside *inside, const ax_runtime *runtime) {
  *inside = (ax_inside){runtime, innermost};
  innermost = inside;
}

void ax_inside_leave(const ax_inside *inside) { innermost = inside->outer; }

bool ax_inside_run(const ax_runtime *runtime) {
  const ax_inside *inside = innermost;
  while (inside != NULL && inside->runtime != runtime) inside = inside->outer;
  return inside != NULL;
}
