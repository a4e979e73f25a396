/* axle check: finds out whether the kernels of a program are synchronised, in every order in which cores and copies may go
   on. */
#include "axle/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "ir/program.h"
#include "prim/prims.h"

typedef struct check {
  word_list in; /* NAME=VALUE */
  shardings shardings;
  ax_check_options options;
  int convert, explore, exhaustive, every_visit, no_pictures, figures;
  char *svg;
  source source;
  inputs inputs;
} check;

enum { option_in = 1, option_max_states, option_replay };

/* --- The report --- */

static const char *verdict_name(const ax_check_kernel *k) {
  if (k->verdict != AX_PROVED) return k->verdict == AX_WRONG ? "wrong" : "not decided";
  return k->proved_for == AX_INPUTS_ALL         ? "proved for all inputs"
         : k->proved_for == AX_INPUTS_IN_BOUNDS ? "proved for all inputs within bounds"
                                                : "proved for these inputs";
}

/* What the verdict does not say. */
static void print_why(const ax_check_kernel *k) {
  if (k->verdict != AX_PROVED || k->proved_for_why[0] == '\0') return;
  if (k->proved_for == AX_INPUTS_IN_BOUNDS) printf("  some inputs may lead out of bounds: %s\n", k->proved_for_why);
  else printf("  not for all inputs: %s\n", k->proved_for_why);
}

static void print_figures(const ax_check_kernel *k) {
  printf("  %u agents; acts of one run: %llu\n", k->agents, (unsigned long long)k->acts);
  if (k->holds > 0)
    printf("  pairs that are in order: %llu; acts held back: %llu\n", (unsigned long long)k->pairs, (unsigned long long)k->holds);
  if (k->states > 0)
    printf("  states: %llu, of %.0f bytes; steps: %llu; ways to end well: %u\n", (unsigned long long)k->states, k->state_bytes,
           (unsigned long long)k->transitions, k->outcomes);
  printf("  seconds: %.3g\n", k->seconds);
}

static void print_kernel(const check *c, const ax_check_kernel *k) {
  printf("kernel %s%s%s%s: %s\n", k->name, k->location[0] != 0 ? " (" : "", k->location, k->location[0] != 0 ? ")" : "",
         c->options.replay != NULL ? "replayed" : verdict_name(k));
  printf("  %s\n", k->how);
  print_why(k);
  for (const char *line = k->notes; line != NULL && *line != '\0';) {
    const size_t length = strcspn(line, "\n");
    printf("  note: %.*s\n", (int)length, line);
    line += length + (line[length] == '\n');
  }
  if (c->figures) print_figures(k);
  for (uint32_t i = 0; i < k->finding_count; i++) {
    const ax_check_finding *f = &k->findings[i];
    printf("\n%u. %s\n", i + 1, f->text);
    if (c->options.replay == NULL) printf("  --replay='%s'\n", f->schedule);
    if (!c->no_pictures) printf("\n%s", f->picture);
  }
  if (k->finding_count > 0) puts("");
}

/* Writes the picture of the first finding, if there is one. */
static ax_status write_svg(const check *c, const ax_check_report *report) {
  const ax_check_finding *first = NULL;
  for (uint32_t k = 0; k < report->kernel_count && first == NULL; k++)
    if (report->kernels[k].finding_count > 0) first = report->kernels[k].findings;
  if (c->svg == NULL || first == NULL) return AX_OK;
  return write_file(c->svg, first->svg, strlen(first->svg));
}

static ax_status print_report(const check *c, const ax_check_report *report) {
  for (uint32_t k = 0; k < report->kernel_count; k++) print_kernel(c, &report->kernels[k]);
  if (report->kernel_count == 0)
    printf("no kernel was come to%s\n", report->stopped == NULL ? "; the program comes to its end" : "");
  for (uint32_t i = 0; i < report->made_up_count; i++)
    printf("%s%s",
           i == 0 ? "for made-up values, which addresses, control flow or compared results of kernels follow from, of: " : ", ",
           source_input_name(&c->source, report->made_up[i]));
  if (report->made_up_count > 0) puts("; --in gives others");
  if (report->stopped != NULL) printf("the program stopped: %s\n", report->stopped);
  return write_svg(c, report);
}

/* --- The program --- */

static ax_status check_program(check *c, ax_verdict *verdict) {
  ax_program *program = NULL;
  ax_check_report *report = NULL;
  AX_TRY(whole_laid_out(&c->source, &c->shardings, NULL, &program));
  ax_status status = inputs_read(&c->inputs, &c->source, &c->in, c->convert);
  for (uint32_t i = 0; status == AX_OK && i < c->inputs.count; i++) status = inputs_read_whole(&c->inputs, i);
  c->options.in = (ax_host_array_list){ax_program_in_count(program), c->inputs.arrays};
  if (status == AX_OK && !ax_program_holds(program, &ax_prim_kernel_call))
    fputs("axle: the program has no kernels: it is evaluated, which takes long where it computes much, to see whether its collectives "
          "come to an end\n", stderr);
  if (status == AX_OK) status = ax_check(program, &c->options, &report);
  if (status == AX_OK) status = print_report(c, report);
  if (status == AX_OK) *verdict = report->verdict;
  ax_check_report_release(report);
  ax_program_release(program);
  return status;
}

/* --- The command line --- */

static ax_status take_option(void *context, int value, const char *argument) {
  check *c = context;
  int64_t number = 0;
  switch (value) {
    case option_in: return take_pair(&c->in, "--in", argument);
    case option_max_states:
      if (!ax_integer_parse(argument, &number) || number <= 0)
        return ax_error(AX_INVALID_ARGUMENT, "--max-states: not a positive number: %s", argument);
      c->options.max_states = (uint64_t)number;
      return AX_OK;
    case option_replay:
      c->options.replay = strdup(argument);
      return c->options.replay != NULL ? AX_OK : ax_out_of_memory(strlen(argument));
    default: return shardings_take(&c->shardings, value, argument);
  }
}

static const char notes[] =
    "Goes through the program by the reference rules, and checks each kernel that it comes to for deadlocks, data races,\n"
    "semaphores left over, misuse of barriers, reads of memory that was never set, use out of bounds or after a scope,\n"
    "results that depend on the order, and points of a grid that need one another though they are in no order. Each finding\n"
    "comes with the schedule that shows it. docs/checker.md says how to read it, and what is proved. Inputs that are not\n"
    "given are made up (docs/checker.md). NAME and VALUE are those of axle run.\n\n"
    "Exit code 0: everything is proved. 1: something is wrong, or not decided.\n\n"
    "  axle check kernel.axle\n"
    "  axle check kernel.axle --svg race.svg\n"
    "  axle check kernel.axle --replay '0x4 3 1x2'\n";

static void deinit(check *c) {
  inputs_deinit(&c->inputs);
  source_deinit(&c->source);
  word_list_deinit(&c->in);
  shardings_deinit(&c->shardings);
  free((char *)c->options.replay);
  free(c->svg);
}

static int check_path(check *c, const char *path) {
  ax_verdict verdict = AX_PROVED;
  c->options.explore = c->explore, c->options.exhaustive = c->exhaustive, c->options.every_visit = c->every_visit;
  ax_status status = source_read(path, &c->shardings, &c->in, &c->source);
  if (status == AX_OK) status = check_program(c, &verdict);
  if (status != AX_OK) return report_error();
  return verdict == AX_PROVED ? EXIT_OK : EXIT_FAILED;
}

int check_main(int argc, const char **argv) {
  check c = {0};
  const struct poptOption table[] = {
      {"in", 'i', POPT_ARG_STRING, NULL, option_in, "An input", "NAME=VALUE"},
      {"convert", '\0', POPT_ARG_NONE, &c.convert, 0, "Convert inputs to the program's dtypes", NULL},
      {"explore", '\0', POPT_ARG_NONE, &c.explore, 0, "Go through all schedules, also where one run is enough", NULL},
      {"exhaustive", '\0', POPT_ARG_NONE, &c.exhaustive, 0, "The same, without leaving out those that come to the same", NULL},
      {"max-states", '\0', POPT_ARG_STRING, NULL, option_max_states, "Give up exploring after so many (1000000)", "N"},
      {"every-visit", '\0', POPT_ARG_NONE, &c.every_visit, 0, "Check a kernel each time it is come to, not the first alone", NULL},
      {"replay", '\0', POPT_ARG_STRING, NULL, option_replay, "Run the first kernel by a finding's schedule, and show where it ends",
       "SCHEDULE"},
      {"svg", '\0', POPT_ARG_STRING, &c.svg, 0, "Write the first finding's picture", "FILE"},
      {"no-pictures", '\0', POPT_ARG_NONE, &c.no_pictures, 0, "Print findings without pictures", NULL},
      {"figures", '\0', POPT_ARG_NONE, &c.figures, 0, "Print how many acts, pairs and states were looked at, and the time", NULL},
      SHARDING_OPTIONS,
      POPT_TABLEEND,
  };
  const option_set set = {
      .command = "check",
      .usage = "FILE [OPTION...]",
      .table = table,
      .notes = notes,
      .summary =
          "Proves that the kernels of the program in FILE (- for standard input) are synchronised, or shows what goes wrong.",
      .handle = take_option,
      .context = &c,
      .wants_file = true};
  char *file = NULL;
  bool done;
  int code = read_options(&set, argc, argv, &file, &done);
  if (code == EXIT_OK && !done) code = check_path(&c, file);
  deinit(&c);
  free(file);
  return code;
}
