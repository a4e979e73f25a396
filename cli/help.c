/* axle help: prints the spec comments that stand over the primitives' rules, and the contracts in the public headers. The build
   extracts both (cli/names.h), so that nothing is read when this runs. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "cli.h"
#include "names.h"

enum { most_columns = 100, longest_name = 64 };

/* --- What there is --- */

static void list_primitives(void) {
  size_t column = 0;
  puts("\nPrimitives, of which 'axle help NAME' tells more:");
  for (size_t i = 0; i < spec_count; i++) {
    size_t length = strlen(specs[i].name) + 2;
    if (column > 0 && column + length > most_columns) putchar('\n');
    column = column == 0 || column + length > most_columns ? length : column + length;
    printf("  %s", specs[i].name);
  }
  putchar('\n');
}

static void print_help_of_help(void) {
  print_overview();
  list_primitives();
  puts("\nPublic functions, macros and types have their contracts here too: 'axle help ax_psum'.\n");
  puts("Names of JAX and MPI lead to what stands in their place: 'axle help lax.scan', 'axle help MPI_Bcast'.\n");
  puts("      --search WORDS     Find names, headings and texts in the headers, the pages and the examples");
}

/* A part of a contract under its heading, or nothing. */
static void print_part(const char *heading, const char *text) {
  if (*text != '\0') printf("%s%s\n", heading, text);
}

static void print_contract(int64_t index) {
  const contract *own = &contracts[public_names[index].contract];
  print_part("Called in C:\n", own->calls);
  print_part("", own->code);
  print_part("In C++:\n", own->forms);
  print_part("", own->comment);
  printf("axle/%s\n", own->header);
}

/* --- Names without "ax_" that are no primitives --- */

/* Says whether the contract declares the name as a function with a value as its result, as those have that add equations. */
static bool makes_equations(int64_t index) {
  char declaration[longest_name + 16];
  snprintf(declaration, sizeof declaration, "ax_value %s(", public_names[index].name);
  return strstr(contracts[public_names[index].contract].code, declaration) != NULL;
}

static void print_composite(const char *word, int64_t index) {
  const char *name = public_names[index].name;
  if (bare_name(word) != word)
    printf("Axle has no '%s'. In its place is %s.\n\n", word, name);
  else if (makes_equations(index))
    printf("%s is no primitive: the function %s makes equations of primitives, which printed programs show.\n\n", word, name);
  else
    printf("%s is no primitive; this is %s.\n\n", word, name);
  print_contract(index);
}

/* --- Names of others --- */

/* Prints a line for each of the names, "ax_psum, ax_pmax". */
static void print_names(const char *names) {
  for (const char *at = names; *at != '\0'; at += strspn(at, ", ")) {
    char name[longest_name];
    const int length = (int)strcspn(at, ",");
    snprintf(name, sizeof name, "%.*s", length, at);
    at += length;
    const int64_t index = find_public("", name, false);
    if (index < 0) continue;
    int count;
    const char *line = name_line(index, &count);
    printf("  %-24s %.*s\n", name, count, line);
  }
}

/* Prints the rows of the tables that have others' name. */
static void print_rows(const char *word, bool bare) {
  enum { most_rows = 5 };
  unsigned rows = 0, last = 0;
  for (int64_t i = find_known(word, bare, 0); i >= 0 && rows < most_rows; i = find_known(word, bare, i + 1)) {
    const known_row *row = &known_rows[known_words[i].row];
    if (rows > 0 && known_words[i].row == last) continue;
    last = known_words[i].row;
    rows++;
    printf("\n%s:%u: %s\n    %s\n", row->page, row->line, row->theirs, row->ours);
  }
}

static bool print_others(const char *word, bool bare) {
  const int64_t first = find_known(word, bare, 0);
  if (first < 0) return false;
  printf("Axle has no '%s'. In its place:\n", word);
  print_names(known_words[first].names);
  print_rows(word, bare);
  return true;
}

/* --- Names that do not exist --- */

static int unknown_name(const char *word) {
  ax_text text = {0};
  char *message;
  ax_text_add(&text, "there is no primitive, no command and no public name '%s'", word);
  add_nearest(&text, word);
  if (ax_text_finish(&text, &message) != AX_OK) return report_error();
  const int code = usage_error("help", "%s", message);
  ax_string_free(message);
  return code;
}

/* --- The command --- */

static bool print_spec(const char *word) {
  const char *spec = find_spec(word);
  if (spec == NULL) return false;
  fputs(spec, stdout);
  if (find_public("ax_", word, false) >= 0) printf("\nThe function: 'axle help ax_%s'.\n", word);
  return true;
}

static bool print_public(const char *word) {
  const int64_t index = find_public("", word, false);
  if (index >= 0) print_contract(index);
  return index >= 0;
}

/* Axle's name for the bare one. */
static bool print_prefixed(const char *word) {
  const char *bare = bare_name(word);
  const int64_t same_case = find_public("ax_", bare, false), index = same_case >= 0 ? same_case : find_public("ax_", bare, true);
  if (index < 0) return false;
  print_composite(word, index);
  if (bare != word) print_rows(word, false);
  return true;
}

/* A row of the tables begins with the whole name, and the function of that name is none of those it names: lax.cond is AX_IF, and not
   ax_cond, which is jnp.linalg's. */
static bool means_another(const char *word) {
  char own[longest_name + 8];
  const int64_t row = find_known(word, false, 0);
  snprintf(own, sizeof own, "ax_%.*s", longest_name, bare_name(word));
  if (row < 0 || bare_name(word) == word) return false;
  const char *theirs = known_rows[known_words[row].row].theirs;
  return strncmp(theirs + (theirs[0] == '`'), word, strlen(word)) == 0 && strstr(known_words[row].names, own) == NULL;
}

/* Names of jax.lax are Axle's. Those of other modules may mean something else: jnp.max is ax_reduce_max, and not ax_max. */
static bool print_name(const char *word) {
  const bool of_lax = strncmp(word, "lax.", 4) == 0 || strncmp(word, "jax.lax.", 8) == 0;
  const bool other_module = strchr(word, '.') != NULL && (!of_lax || means_another(word));
  if (print_spec(word) || print_command_help(word) || print_public(word)) return true;
  if (!other_module && print_prefixed(word)) return true;
  return print_others(word, false) || (other_module && print_prefixed(word)) || print_others(word, true);
}

static int search_words(int argc, const char **argv) {
  ax_text text = {0};
  char *joined;
  for (int i = 0; i < argc; i++) ax_text_add(&text, "%s%s", i > 0 ? " " : "", argv[i]);
  if (ax_text_finish(&text, &joined) != AX_OK) return report_error();
  const int code = search_main(joined);
  ax_string_free(joined);
  return code;
}

int help_main(int argc, const char **argv) {
  const char *word = argc > 1 ? argv[1] : "--help";
  if (strcmp(word, "--search") == 0) {
    if (argc < 3 || argv[2][0] == '\0') return usage_error("help", "--search: which WORDS?");
    return search_words(argc - 2, argv + 2);
  }
  if (argc > 2) return usage_error("help", "one NAME, not also '%s'", argv[2]);
  if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) {
    print_help_of_help();
    return EXIT_OK;
  }
  return print_name(word) ? EXIT_OK : unknown_name(word);
}
