/* See inside.h. */
#include "run/inside.h"

static _Thread_local ax_inside *innermost;

void ax_inside_enter(ax_inside *inside, const ax_executor *executor) {
  *inside = (ax_inside){executor, innermost};
  innermost = inside;
}

void ax_inside_leave(const ax_inside *inside) { innermost = inside->outer; }

bool ax_inside_run(const ax_executor *executor) {
  const ax_inside *inside = innermost;
  while (inside != NULL && inside->executor != executor) inside = inside->outer;
  return inside != NULL;
}
