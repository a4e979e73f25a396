/* Names: Axle's own, and what others call the same. */
#include "names.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/nearest.h"
#include "cli/contracts.h"
#include "cli/pages.h"
#include "cli/specs.h"

enum { longest_word = 63 };

const char *find_spec(const char *name) {
  for (size_t i = 0; i < spec_count; i++)
    if (strcmp(name, specs[i].name) == 0) return spec_texts[specs[i].text];
  return NULL;
}

int64_t find_public(const char *prefix, const char *name, bool any_case) {
  const size_t length = strlen(prefix);
  for (size_t i = 0; i < public_count; i++) {
    const char *public_name = public_names[i].name;
    if (strncasecmp(public_name, prefix, length) != 0) continue;
    if ((any_case ? strcasecmp : strcmp)(public_name + length, name) == 0) return (int64_t)i;
  }
  return -1;
}

const char *name_line(int64_t index, int *length) {
  const char *name = public_names[index].name;
  const contract *own = &contracts[public_names[index].contract];
  /* AX_IF (p, &x) { .. }, as its comment shows it */
  const bool is_block = isupper((unsigned char)*name) && strstr(own->code, "#define") != NULL;
  for (int i = 0; i < 3; i++) {
    const char *text = i == 0 ? own->calls : i == 1 && is_block ? own->comment : own->code;
    for (const char *at = strstr(text, name); at != NULL; at = strstr(at + 1, name)) {
      const char next = at[strlen(name)];
      if (text == own->comment && next != '(' && strncmp(at + strlen(name), " (", 2) != 0) continue;
      if (isalnum((unsigned char)next) || next == '_' || (at > text && (isalnum((unsigned char)at[-1]) || at[-1] == '_'))) continue;
      while (at > text && at[-1] != '\n') at--;
      at += strspn(at, " ");
      *length = (int)strcspn(at, "\n");
      return at;
    }
  }
  *length = 0;
  return "";
}

/* --- What others call it --- */

bool same_word(const char *a, const char *b) {
  for (bool some = false;; a++, b++, some = true) {
    while (*a != '\0' && !isalnum((unsigned char)*a)) a++;
    while (*b != '\0' && !isalnum((unsigned char)*b)) b++;
    if (tolower((unsigned char)*a) != tolower((unsigned char)*b)) return false;
    if (*a == '\0') return some;
  }
}

const char *bare_name(const char *word) {
  const char *dot = strrchr(word, '.');
  return dot == NULL ? word : dot + 1;
}

/* Writes the word with its module as the tables name it, and without what stands behind a bracket. */
static void normalise(const char *word, char *out) {
  static const char *const modules[][2] = {{"jax.numpy.", "jnp."}, {"numpy.", "np."}, {"jax.", ""},
                                           {"ax_get_", ""},        {"ax_", ""},       {"mpi.", "mpi_"}};
  const char *start = "";
  for (size_t i = 0; i < AX_COUNT(modules) && *start == '\0'; i++) {
    const size_t length = strlen(modules[i][0]);
    if (strncasecmp(word, modules[i][0], length) != 0) continue;
    start = modules[i][1];
    word += length;
    if (*start == '\0') break;
  }
  snprintf(out, longest_word + 1, "%s%.*s", start, (int)strcspn(word, "("), word);
}

int64_t find_known(const char *word, bool bare, int64_t from) {
  char own[longest_word + 1], theirs[longest_word + 1];
  normalise(word, own);
  for (int64_t i = from; i < (int64_t)known_count; i++) {
    normalise(known_words[i].word, theirs);
    if (same_word(bare ? bare_name(own) : own, bare ? bare_name(theirs) : theirs)) return i;
  }
  return -1;
}

/* --- Names that do not exist --- */

/* Says whether `name` has all the parts of the word, between _: "put" is one of "ax_device_put". Most getters have no "get" in
   Axle, and `without_get` passes over it. */
static bool has_parts(const char *name, const char *word, bool without_get) {
  bool some = false;
  while (*word != '\0') {
    const size_t length = strcspn(word, "_.");
    const bool passed_over = length == 0 || (without_get && length == 3 && strncasecmp(word, "get", 3) == 0);
    bool found = passed_over;
    for (const char *at = name; !found && at != NULL; at = strchr(at, '_')) {
      at += *at == '_';
      found = strcspn(at, "_") == length && strncasecmp(at, word, length) == 0;
    }
    if (!found) return false;
    some = some || !passed_over;
    word += length + (word[length] != '\0');
  }
  return some;
}

typedef struct suggestions {
  const char *names[5];
  uint32_t count;
} suggestions;

static void suggest(suggestions *list, const char *name, uint32_t most) {
  for (uint32_t i = 0; i < list->count; i++)
    if (strcmp(list->names[i], name) == 0) return;
  if (list->count < most) list->names[list->count++] = name;
}

/* Suggests the shortest names that have the word's parts. */
static void suggest_parts(suggestions *list, const char *word, bool without_get) {
  for (size_t length = 4; length <= longest_word; length++) {
    for (size_t i = 0; i < public_count; i++) {
      const char *name = public_names[i].name;
      if (strlen(name) == length && has_parts(name + 3, word, without_get)) suggest(list, name, 3);
    }
  }
}

void add_nearest(ax_text *text, const char *word) {
  const bool prefixed = strncasecmp(word, "ax_", 3) == 0;
  const char *bare = bare_name(prefixed ? word + 3 : word);
  suggestions list = {0};
  ax_nearest nearest = {0};
  suggest_parts(&list, bare, false);
  if (list.count == 0) suggest_parts(&list, bare, true);
  const bool has_some = list.count > 0; /* then a name that differs in more than one letter is not meant */
  for (size_t i = 0; i < public_count && !has_some; i++)
    if (has_parts(bare, public_names[i].name + 3, false)) suggest(&list, public_names[i].name, 2);
  for (size_t i = 0; i < spec_count && !prefixed; i++) ax_nearest_offer(&nearest, bare, specs[i].name, specs[i].name);
  for (size_t i = 0; i < public_count; i++) ax_nearest_offer(&nearest, bare, public_names[i].name, public_names[i].name + 3);
  for (uint32_t i = 0; i < nearest.count; i++)
    if (!has_some || nearest.away[i] < 2) suggest(&list, nearest.names[i], AX_COUNT(list.names));
  for (uint32_t i = 0; i < list.count; i++) ax_text_add(text, "%s\"%s\"", i > 0 ? ", " : "; the nearest: ", list.names[i]);
}
