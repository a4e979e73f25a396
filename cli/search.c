/* axle help --search: finds all of the words, in any order, each at the beginning of a word of the text, so that "gradient" finds
   "gradients". What is found is printed in three lists: names, headings, texts. Each is gone through once for each rank. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "cli.h"
#include "names.h"

enum { most_words = 8, longest_word = 31, most_lines = 8, most_width = 110 };

typedef struct query {
  const char *text;
  char words[most_words][longest_word + 1];
  unsigned count;
} query;

/* A list under way: its heading stands once there is a line, and lines beyond most_lines are counted. */
typedef struct list {
  const char *heading;
  unsigned count;
} list;

static bool is_letter(char c) { return isalnum((unsigned char)c) != 0; }

static bool is_plural(const char *word, size_t length) {
  return length > 3 && tolower((unsigned char)word[length - 1]) == 's' && tolower((unsigned char)word[length - 2]) != 's';
}

/* Words without the s of a plural. */
static void split_query(const char *text, query *out) {
  *out = (query){.text = text};
  while (*text != '\0' && out->count < most_words) {
    size_t length = 0;
    while (is_letter(text[length])) length++;
    if (length > 0) snprintf(out->words[out->count++], longest_word + 1, "%.*s", (int)(length - is_plural(text, length)), text);
    text += length + (text[length] != '\0');
  }
}

/* Returns the place of a word of the text that begins with `word`, or NULL. */
static const char *find_word(const char *text, const char *word) {
  const size_t length = strlen(word);
  bool inside = false;
  for (const char *at = text; *at != '\0'; at++) {
    if (!inside && strncasecmp(at, word, length) == 0) return at;
    inside = is_letter(*at);
  }
  return NULL;
}

static bool has_all(const char *text, const query *wanted) {
  for (unsigned i = 0; i < wanted->count; i++)
    if (find_word(text, wanted->words[i]) == NULL) return false;
  return wanted->count > 0;
}

/* Returns the place where the words stand one behind the other, or NULL. */
static const char *find_phrase(const char *text, const query *wanted) {
  for (const char *start = text; (start = find_word(start, wanted->words[0])) != NULL; start++) {
    const char *at = start;
    unsigned i = 0;
    while (i < wanted->count && strncasecmp(at, wanted->words[i], strlen(wanted->words[i])) == 0) {
      while (is_letter(*at)) at++;
      while (*at != '\0' && !is_letter(*at)) at++;
      i++;
    }
    if (i == wanted->count) return start;
    while (is_letter(start[1])) start++;
  }
  return NULL;
}

/* 0: the words stand together, 1: they are all there, 2: they are not. */
static int text_rank(const char *text, const query *wanted) {
  if (!has_all(text, wanted)) return 2;
  return find_phrase(text, wanted) != NULL ? 0 : 1;
}

/* --- Printing --- */

static bool begin_line(list *own) {
  if (own->count++ == 0) printf("%s:\n", own->heading);
  return own->count <= most_lines;
}

static bool end_list(const list *own) {
  if (own->count > most_lines) printf("  .. and %u more, which more words would narrow\n", own->count - most_lines);
  return own->count > 0;
}

/* Prints the line in which `at` stands, or a part of it. */
static void print_context(const char *text, const char *at) {
  if (at == NULL) at = text;
  const char *start = at, *end = at + strcspn(at, "\n");
  while (start > text && start[-1] != '\n') start--;
  start += strspn(start, " ");
  const bool cut = end - start > most_width && at - start > most_width / 2;
  if (cut) {
    start = at - most_width / 2;
    while (start < at && is_letter(*start)) start++;
  }
  const int length = end - start > most_width ? most_width : (int)(end - start);
  printf("%s%.*s%s\n", cut ? ".." : "", length, start, start + length < end ? ".." : "");
}

/* Finds the place where the words stand together, or else the place of the first one. */
static const char *find_place(const char *text, const query *wanted) {
  const char *at = find_phrase(text, wanted);
  return at != NULL ? at : find_word(text, wanted->words[0]);
}

static void print_place(const char *place, const char *text, const query *wanted) {
  printf("  %-26s ", place);
  print_context(text, find_place(text, wanted));
}

/* --- Names --- */

enum { name_ranks = 6 };

/* 0: the words are the name, 2: that of a constant or a macro, 3: parts of it, 5: the one word stands somewhere in it, else
   name_ranks. */
static int name_rank(const char *name, const query *wanted) {
  const char *own = strncasecmp(name, "ax_", 3) == 0 ? name + 3 : name;
  if (same_word(own, wanted->text) || same_word(name, wanted->text)) return name[0] == 'A' && wanted->text[0] != 'A' ? 2 : 0;
  if (has_all(own, wanted)) return 3;
  return wanted->count == 1 && strcasestr(own, wanted->words[0]) != NULL ? 5 : name_ranks;
}

/* 1: what others call it is the words, 4: has them. */
static int known_rank(const known_word *known, const query *wanted) {
  if (same_word(known->word, wanted->text) || same_word(bare_name(known->word), wanted->text)) return 1;
  return has_all(known->word, wanted) ? 4 : name_ranks;
}

/* Ranks the name of a primitive that is no function's name. If it is the words themselves, it comes after the names that other
   libraries have for the same (known_rank). */
static int spec_rank(const char *name, const query *wanted) {
  const int rank = name_rank(name, wanted);
  return rank == 0 ? 2 : rank;
}

static void list_specs(list *own, int rank, const query *wanted) {
  for (unsigned i = 0; i < spec_count; i++)
    if (find_public("ax_", specs[i].name, false) < 0 && spec_rank(specs[i].name, wanted) == rank && begin_line(own))
      printf("  %-26s %.*s\n", specs[i].name, (int)strcspn(spec_texts[specs[i].text], "\n"), spec_texts[specs[i].text]);
}

static void list_public(list *own, int rank, const query *wanted) {
  for (unsigned i = 0; i < public_count; i++) {
    if (name_rank(public_names[i].name, wanted) != rank || !begin_line(own)) continue;
    int length;
    const char *line = name_line(i, &length);
    printf("  %-26s axle/%s: %.*s\n", public_names[i].name, contracts[public_names[i].contract].header, length, line);
  }
}

/* Returns the word of a row that ranks best; words of a row stand together, from `from` on. *end: those of the next row. */
static const known_word *best_of_row(unsigned from, const query *wanted, unsigned *end) {
  const known_word *best = &known_words[from];
  for (*end = from; *end < known_count && known_words[*end].row == known_words[from].row; ++*end)
    if (known_rank(&known_words[*end], wanted) < known_rank(best, wanted)) best = &known_words[*end];
  return best;
}

/* A line for each row, with what it is called here. */
static void list_known(list *own, int rank, const query *wanted) {
  for (unsigned i = 0, end; i < known_count; i = end) {
    const known_word *known = best_of_row(i, wanted, &end);
    const known_row *row = &known_rows[known->row];
    if (known_rank(known, wanted) != rank || !begin_line(own)) continue;
    printf("  %-26.60s %s:%u: ", known->names[0] != '\0' ? known->names : row->ours, row->page, row->line);
    print_context(row->theirs, find_word(row->theirs, wanted->words[0]));
  }
}

static bool list_names(const query *wanted) {
  list own = {.heading = "Names"};
  for (int rank = 0; rank < name_ranks; rank++) {
    list_public(&own, rank, wanted);
    list_known(&own, rank, wanted);
    list_specs(&own, rank, wanted);
  }
  return end_list(&own);
}

/* --- Headings and texts --- */

static void list_passages(list *own, bool heading, int rank, const query *wanted) {
  for (unsigned i = 0; i < passage_count; i++) {
    const passage *here = &passages[i];
    if (here->heading != heading || text_rank(here->text, wanted) != rank || !begin_line(own)) continue;
    const char *at = find_place(here->text, wanted);
    unsigned line = here->line;
    for (const char *c = here->text; c < at; c++) line += *c == '\n';
    char place[96];
    snprintf(place, sizeof place, "%s:%u", here->page, line);
    print_place(place, here->text, wanted);
  }
}

/* Returns the name of the contract that is declared last before `at`, a place in its code, or the first one. */
static const char *name_at(unsigned contract, const char *at) {
  const char *code = contracts[contract].code, *name = NULL, *nearest = NULL;
  for (unsigned i = 0; i < public_count; i++) {
    if (public_names[i].contract != contract) continue;
    const char *stands = strstr(code, public_names[i].name);
    const bool before = at != NULL && stands != NULL && stands <= at && (nearest == NULL || stands > nearest);
    if (name == NULL || before) name = public_names[i].name;
    if (before) nearest = stands;
  }
  return name;
}

static void list_contracts(list *own, int rank, const query *wanted) {
  for (unsigned i = 0; i < contract_count; i++) {
    const int in_comment = text_rank(contracts[i].comment, wanted), in_code = text_rank(contracts[i].code, wanted);
    if ((in_comment < in_code ? in_comment : in_code) != rank || !begin_line(own)) continue;
    const bool comment = in_comment <= in_code;
    const char *name = name_at(i, comment ? NULL : find_place(contracts[i].code, wanted));
    print_place(name, comment ? contracts[i].comment : contracts[i].code, wanted);
  }
}

static void list_spec_texts(list *own, int rank, const query *wanted) {
  for (unsigned i = 0; i < spec_count; i++)
    if ((i == 0 || specs[i].text != specs[i - 1].text) && text_rank(spec_texts[specs[i].text], wanted) == rank && begin_line(own))
      print_place(specs[i].name, spec_texts[specs[i].text], wanted);
}

static bool list_headings(const query *wanted) {
  list own = {.heading = "Headings"};
  for (int rank = 0; rank < 2; rank++) list_passages(&own, true, rank, wanted);
  return end_list(&own);
}

static bool list_texts(const query *wanted) {
  list own = {.heading = "Texts"};
  for (int rank = 0; rank < 2; rank++) {
    list_contracts(&own, rank, wanted);
    list_passages(&own, false, rank, wanted);
    list_spec_texts(&own, rank, wanted);
  }
  return end_list(&own);
}

static int found_nothing(const char *words) {
  ax_text text = {0};
  char *message;
  ax_text_add(&text, "'%s' stands in no name, heading or text", words);
  add_nearest(&text, words);
  if (ax_text_finish(&text, &message) != AX_OK) return report_error();
  fprintf(stderr, "axle: error: %s\n", message);
  ax_string_free(message);
  return EXIT_FAILED;
}

int search_main(const char *text) {
  query wanted;
  split_query(text, &wanted);
  const bool in_names = list_names(&wanted), in_headings = list_headings(&wanted), in_texts = list_texts(&wanted);
  return in_names || in_headings || in_texts ? EXIT_OK : found_nothing(text);
}
