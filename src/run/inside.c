/* See inside.h. */
#include "run/inside.h"

static _Thread_local ax_inside *innermost;

void ax_inside_enter(ax_inside *inside, const ax_executor *executor) {
  *inside = (ax_inside){executor, innermost};
  innermost = inside;
}

void ax_inside_leave(const ax_inside *inside) { innermost = inside->outer; }

static const ax_inside *next_of(const ax_inside *inside, const ax_executor *executor) {
  while (inside != NULL && inside->executor != executor) inside = inside->outer;
  return inside;
}

bool ax_inside_run(const ax_executor *executor) { return next_of(innermost, executor) != NULL; }

bool ax_inside_nested(const ax_executor *executor) {
  const ax_inside *inside = next_of(innermost, executor);
  return inside != NULL && next_of(inside->outer, executor) != NULL;
}
