/* Findings are compared by their words, without the numbers of agents. */
#include "check/told.h"

#include <string.h>

bool ax_finding_follows_from_fault(const ax_act_finding *finding) {
  ax_finding_kind kind = finding->kind;
  if (kind == AX_FINDING_AFTER_SCOPE) return finding->other != AX_NONE; /* its device comes to an end early */
  return kind == AX_FINDING_DEADLOCK || kind == AX_FINDING_LEAK || kind == AX_FINDING_BARRIER ||
         kind == AX_FINDING_COPY_NOT_AWAITED;
}

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

/* Whether the number at `at` is of a line: "at line 12", "at kernel.c:12". */
static bool is_line(const char *text, const char *at) {
  if (at - text >= 5 && memcmp(at - 5, "line ", 5) == 0) return true;
  return at - text >= 2 && at[-1] == ':' && !is_digit(at[-2]) && at[-2] != ' ';
}

/* The next letter of a text without numbers, as those of devices and copies; lines of the program tell findings apart. */
static char next_plain(const char *text, const char **at) {
  if (is_digit(**at) && !(*at > text && is_digit((*at)[-1])) && !is_line(text, *at))
    while (is_digit(**at)) (*at)++;
  return **at == 0 ? 0 : *(*at)++;
}

bool ax_findings_alike(const ax_act_finding *a, const ax_act_finding *b) {
  if (a->kind != b->kind || a->text == NULL || b->text == NULL) return false;
  const char *x = a->text, *y = b->text;
  for (;;) {
    char next = next_plain(a->text, &x);
    if (next != next_plain(b->text, &y)) return false;
    if (next == 0) return true;
  }
}
