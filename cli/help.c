/* axle help: prints the spec comments that stand over the primitives' rules. The build extracts them (cmake/specs.awk). */
#include <stdio.h>
#include <string.h>

#include "cli.h"
#include "cli/specs.h"

enum { most_columns = 100 };

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

int help_main(int argc, const char **argv) {
  const char *word = argc > 1 ? argv[1] : "--help";
  if (argc > 2) return usage_error("help", "one NAME, not also '%s'", argv[2]);
  if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) {
    print_overview();
    list_primitives();
    return EXIT_OK;
  }
  for (size_t i = 0; i < AX_COUNT(specs); i++) {
    if (strcmp(word, specs[i].name) != 0) continue;
    fputs(spec_texts[specs[i].text], stdout);
    return EXIT_OK;
  }
  return print_command_help(word) ? EXIT_OK : usage_error("help", "there is no primitive and no command '%s'", word);
}
