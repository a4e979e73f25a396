/* axle help: prints the spec comments that stand over the primitives' rules, and the contracts in the public headers. The build
   extracts both (cmake/specs.awk, cmake/reference.awk), so that nothing is read when this runs. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/nearest.h"
#include "cli.h"
#include "cli/contracts.h"
#include "cli/specs.h"

enum { most_columns = 100, longest_name = 64 };

/* --- What there is --- */

static void list_primitives(void) {
  size_t column = 0;
  puts("\nPrimitives, of which 'axle help NAME' tells more:");
  for (size_t i = 0; i < AX_COUNT(specs); i++) {
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
  puts("      --search WORD     Find the primitives and public names in whose text WORD stands");
}

static const char *find_spec(const char *name) {
  for (size_t i = 0; i < AX_COUNT(specs); i++)
    if (strcmp(name, specs[i].name) == 0) return spec_texts[specs[i].text];
  return NULL;
}

/* Returns the index in public_names of the name behind `prefix`, upper and lower case being the same if `any_case`; else -1. */
static int64_t find_public(const char *prefix, const char *name, bool any_case) {
  const size_t length = strlen(prefix);
  for (size_t i = 0; i < AX_COUNT(public_names); i++) {
    const char *public_name = public_names[i].name;
    if (strncasecmp(public_name, prefix, length) != 0) continue;
    if ((any_case ? strcasecmp : strcmp)(public_name + length, name) == 0) return (int64_t)i;
  }
  return -1;
}

static void print_contract(int64_t index) {
  const unsigned contract = public_names[index].contract;
  printf("%s\naxle/%s\n", contracts[contract].text, contracts[contract].header);
}

/* --- Names without "ax_" that are no primitives --- */

/* Says whether the contract declares the name as a function with a value as its result, as those have that add equations. */
static bool makes_equations(int64_t index) {
  char declaration[longest_name + 16];
  snprintf(declaration, sizeof declaration, "ax_value %s(", public_names[index].name);
  return strstr(contracts[public_names[index].contract].text, declaration) != NULL;
}

static void print_composite(const char *word, int64_t index) {
  const char *name = public_names[index].name;
  if (makes_equations(index))
    printf("%s is no primitive: the function %s makes equations of primitives, which printed programs show.\n\n", word, name);
  else
    printf("%s is no primitive; this is %s.\n\n", word, name);
  print_contract(index);
}

/* --- Names that do not exist --- */

static ax_status unknown_text(const char *word, char **out) {
  const bool prefixed = strncasecmp(word, "ax_", 3) == 0;
  ax_nearest nearest = {0};
  ax_text text = {0};
  for (size_t i = 0; i < AX_COUNT(specs); i++) ax_nearest_offer(&nearest, word, specs[i].name, specs[i].name);
  for (size_t i = 0; i < AX_COUNT(public_names); i++)
    ax_nearest_offer(&nearest, word, public_names[i].name, public_names[i].name + (prefixed ? 0 : 3));
  ax_text_add(&text, "there is no primitive, no command and no public name '%s'", word);
  ax_nearest_text(&text, &nearest);
  return ax_text_finish(&text, out);
}

static int unknown_name(const char *word) {
  char *text;
  if (unknown_text(word, &text) != AX_OK) return report_error();
  const int code = usage_error("help", "%s", text);
  ax_string_free(text);
  return code;
}

/* --- Searching --- */

/* Returns the first line of the text in which the word stands, and its length; NULL: there is none. */
static const char *find_line(const char *text, const char *word, int *length) {
  const size_t word_length = strlen(word);
  for (const char *line = text; *line != '\0';) {
    const size_t count = strcspn(line, "\n");
    for (size_t i = 0; i + word_length <= count; i++) {
      if (strncasecmp(line + i, word, word_length) != 0) continue;
      const size_t indent = strspn(line, " ");
      *length = (int)(count - indent);
      return line + indent;
    }
    line += count + (line[count] == '\n');
  }
  return NULL;
}

static bool search_specs(const char *word) {
  bool found = false;
  for (size_t i = 0; i < AX_COUNT(specs); i++) {
    int length = 0;
    const char *line = find_line(spec_texts[specs[i].text], word, &length);
    if (line == NULL) continue;
    if (!found) puts("Primitives:");
    found = true;
    printf("  %-24s %.*s\n", specs[i].name, length, line);
  }
  return found;
}

/* Prints the names that have the word in them or, where the word stands in the contract's text alone, the first ones. */
static void print_found(unsigned contract, const char *word) {
  enum { most_names = 3 };
  int length = 0;
  const char *line = find_line(contracts[contract].text, word, &length);
  unsigned all = 0, having = 0, shown = 0;
  for (size_t i = 0; i < AX_COUNT(public_names); i++) {
    if (public_names[i].contract != contract) continue;
    all++;
    having += find_line(public_names[i].name, word, &(int){0}) != NULL;
  }
  fputs("  ", stdout);
  for (size_t i = 0; i < AX_COUNT(public_names); i++) {
    if (public_names[i].contract != contract || (having > 0 && find_line(public_names[i].name, word, &(int){0}) == NULL)) continue;
    if (shown == most_names) {
      printf(", .. (%u)", having > 0 ? having : all);
      break;
    }
    printf("%s%s", shown++ > 0 ? ", " : "", public_names[i].name);
  }
  printf("\n      axle/%s: %.*s\n", contracts[contract].header, length, line);
}

static bool search_contracts(const char *word) {
  bool found = false;
  for (unsigned i = 0; i < AX_COUNT(contracts); i++) {
    if (find_line(contracts[i].text, word, &(int){0}) == NULL) continue;
    if (!found) puts("Functions, macros and types:");
    found = true;
    print_found(i, word);
  }
  return found;
}

static int search_main(const char *word) {
  const bool in_specs = search_specs(word), in_contracts = search_contracts(word);
  if (in_specs || in_contracts) return EXIT_OK;
  fprintf(stderr, "axle: error: '%s' stands in no text of a primitive or a public name\n", word);
  return EXIT_FAILED;
}

/* --- The command --- */

int help_main(int argc, const char **argv) {
  const char *word = argc > 1 ? argv[1] : "--help";
  if (strcmp(word, "--search") == 0) {
    if (argc < 3 || argv[2][0] == '\0') return usage_error("help", "--search: which WORD?");
    if (argc > 3) return usage_error("help", "one WORD, not also '%s'; quote words that stand together", argv[3]);
    return search_main(argv[2]);
  }
  if (argc > 2) return usage_error("help", "one NAME, not also '%s'", argv[2]);
  if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) {
    print_help_of_help();
    return EXIT_OK;
  }
  const char *spec = find_spec(word);
  if (spec != NULL) {
    fputs(spec, stdout);
    if (find_public("ax_", word, false) >= 0) printf("\nThe function: 'axle help ax_%s'.\n", word);
    return EXIT_OK;
  }
  if (print_command_help(word)) return EXIT_OK;
  int64_t index = find_public("", word, false);
  if (index >= 0) {
    print_contract(index);
    return EXIT_OK;
  }
  index = find_public("ax_", word, true);
  if (index < 0) return unknown_name(word);
  print_composite(word, index);
  return EXIT_OK;
}
