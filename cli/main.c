/* The axle command: chooses the sub-command. Its options, help and errors are shared by all of them. */
#include "cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "machine/subnormals.h"
#include "plan/contract.h"

static const struct {
  const char *name, *summary;
  int (*main)(int argc, const char **argv);
} commands[] = {
    {"run", "run a program on arrays", run_main},
    {"trace", "run a program, and write what each device did when", trace_main},
    {"bench", "where a program's time goes, kernel by kernel, beside what this machine could do", bench_main},
    {"show", "print a program, transformed or lowered", show_main},
    {"simulate", "what a run would take on a machine that is described", simulate_main},
    {"plan", "choose a mesh, layouts and more for a program or a model's training on such a machine", plan_main},
    {"check", "prove that a program's kernels are synchronised, or show what goes wrong", check_main},
    {"devices", "what this machine offers", devices_main},
    {"help", "what a primitive, a public function or a command does", help_main},
};

int report_error(void) {
  fflush(stdout); /* what was shown before comes first */
  fprintf(stderr, "axle: error: %s\n", ax_message());
  return EXIT_FAILED;
}

int usage_error(const char *command, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  fputs("axle: error: ", stderr);
  vfprintf(stderr, format, arguments);
  va_end(arguments);
  fprintf(stderr, "\nTry 'axle %s%s--help'.\n", command, command[0] != '\0' ? " " : "");
  return EXIT_USAGE;
}

/* --- Lists of words --- */

ax_status word_list_add(word_list *list, const char *word, size_t length) {
  AX_TRY(ax_grow(&list->words, sizeof list->words[0], list->count, 1, &list->capacity));
  char *copy = ax_calloc(length + 1, 1);
  if (copy == NULL) return ax_out_of_memory(length + 1);
  memcpy(copy, word, length);
  list->words[list->count++] = copy;
  return AX_OK;
}

void word_list_deinit(word_list *list) {
  for (uint32_t i = 0; i < list->count; i++) ax_free(list->words[i]);
  ax_free(list->words);
  *list = (word_list){0};
}

/* --- Options --- */

enum { help_value = 1000 };

static void print_help(const option_set *set, poptContext context) {
  printf("%s\n\n", set->summary);
  poptSetOtherOptionHelp(context, set->usage);
  poptPrintHelp(context, stdout, 0);
  if (set->notes != NULL) printf("\n%s", set->notes);
}

/* Calls the handler; its message becomes a usage error. */
static int handle(const option_set *set, poptContext context, int value) {
  char *argument = poptGetOptArg(context);
  ax_status status = set->handle(set->context, value, argument);
  free(argument);
  return status == AX_OK ? EXIT_OK : usage_error(set->command, "%s", ax_message());
}

static int take_file(const option_set *set, poptContext context, char **file) {
  const char *first = poptGetArg(context), *second = poptGetArg(context);
  if (first == NULL && set->wants_file) return usage_error(set->command, "which FILE?");
  if (first != NULL && !set->wants_file) return usage_error(set->command, "unexpected argument '%s'", first);
  if (second != NULL) return usage_error(set->command, "one FILE, not also '%s'", second);
  if (first != NULL && (*file = strdup(first)) == NULL) return usage_error(set->command, "out of memory");
  return EXIT_OK;
}

int read_options(const option_set *set, int argc, const char **argv, char **file, bool *done) {
  struct poptOption help[] = {
      {NULL, '\0', POPT_ARG_INCLUDE_TABLE, (void *)set->table, 0, NULL, NULL},
      {"help", 'h', POPT_ARG_NONE, NULL, help_value, "Print this", NULL},
      POPT_TABLEEND,
  };
  char title[64]; /* the command's name in the first line of the help */
  snprintf(title, sizeof title, "axle %s", set->command);
  argv[0] = title;
  poptContext context = poptGetContext("axle", argc, argv, help, 0);
  int value = -1, code = EXIT_OK;
  *done = false;
  while (code == EXIT_OK && !*done && (value = poptGetNextOpt(context)) >= 0) {
    *done = value == help_value;
    if (*done)
      print_help(set, context);
    else
      code = handle(set, context, value);
  }
  if (code == EXIT_OK && !*done && value < -1)
    code = usage_error(set->command, "%s: %s", poptBadOption(context, 0), poptStrerror(value));
  if (code == EXIT_OK && !*done) code = take_file(set, context, file);
  poptFreeContext(context);
  return code;
}

ax_status take_count(const char *option, const char *argument, int64_t most, int64_t *out) {
  if (ax_integer_parse(argument, out) && *out > 0 && *out <= most) return AX_OK;
  return ax_error(AX_INVALID_ARGUMENT, "%s: not a positive number: %s", option, argument);
}

ax_status take_subnormals(const char *argument, ax_subnormals *out) {
  if (ax_subnormals_find(argument, out)) return AX_OK;
  return ax_error(AX_INVALID_ARGUMENT, "--subnormals: expected keep or flush, got \"%s\"", argument);
}

ax_status take_contraction(const char *argument, ax_contraction *out) {
  if (ax_contraction_find(argument, out)) return AX_OK;
  return ax_error(AX_INVALID_ARGUMENT, "--contraction: expected exact or fused, got \"%s\"", argument);
}

/* --- The command --- */

void print_overview(void) {
  puts("Usage: axle COMMAND [OPTION...]\nParallel array programs over meshes of devices.\n\nCommands:");
  for (size_t i = 0; i < AX_COUNT(commands); i++) printf("  %-10s %s\n", commands[i].name, commands[i].summary);
  puts("\n'axle COMMAND --help' tells more. Exit codes: 0, 1 (failed), 2 (wrong usage).");
}

bool print_command_help(const char *name) {
  const char *argv[] = {name, "--help", NULL};
  for (size_t i = 0; i < AX_COUNT(commands); i++)
    if (strcmp(name, commands[i].name) == 0) return commands[i].main(2, argv) == EXIT_OK;
  return false;
}

static int print_version(void) {
  puts("axle " AXLE_VERSION);
  return EXIT_OK;
}

static int run_command(int argc, char **argv) {
  const char *word = argc > 1 ? argv[1] : "";
  if (strcmp(word, "--version") == 0) return print_version();
  if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) {
    print_overview();
    return EXIT_OK;
  }
  for (size_t i = 0; i < AX_COUNT(commands); i++)
    if (strcmp(word, commands[i].name) == 0) return commands[i].main(argc - 1, (const char **)argv + 1);
  return argc > 1 ? usage_error("", "there is no command '%s'", word) : usage_error("", "which command?");
}

int main(int argc, char **argv) {
  int code = run_command(argc, argv);
  bool written = fflush(stdout) == 0 && !ferror(stdout);
  if (!written) fputs("axle: error: standard output cannot be written\n", stderr);
  return written ? code : EXIT_FAILED;
}
