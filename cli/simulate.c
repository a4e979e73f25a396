/* axle simulate: predicts the time that a program takes on a machine, from a description of that machine. */
#include "axle/simulate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "ir/program.h"
#include "sim/cluster.h"

typedef struct simulate {
  shardings shardings;
  spread spread;
  ax_simulate_options options;
  int every_device, describe, late_sums;
  char *machine, *timeline;
  ax_slow_device *slow; /* of --slow */
  uint32_t slow_count, slow_capacity;
  source source;
} simulate;

enum { option_algorithm = 1, option_most_messages, option_devices_shown, option_slow };

static const char default_machine[] = "tpu-like-torus";

static ax_status find_machine(const simulate *s, const ax_lowered *lowered, ax_cluster **out) {
  if (s->spread.layout.processes == 0) return ax_cluster_read(s->machine != NULL ? s->machine : default_machine, out);
  const ax_mesh *mesh = ax_lowered_mesh(lowered);
  return ax_cluster_over(&s->spread.layout, mesh != NULL ? ax_mesh_devices(mesh) : 1, out);
}

static ax_status simulate_file(const simulate *s, ax_cluster **machine, ax_simulation *out) {
  ax_program *program = NULL;
  ax_lowered *lowered = NULL;
  ax_status status = whole_laid_out(&s->source, &s->shardings, &s->spread.layout, &program);
  if (status == AX_OK) status = ax_program_lower(program, &(ax_compile_options){.late_sums = s->late_sums}, &lowered);
  if (status == AX_OK) status = find_machine(s, lowered, machine);
  if (status == AX_OK) status = ax_simulate(lowered, *machine, &s->options, out);
  ax_lowered_release(lowered);
  ax_program_release(program);
  return status;
}

static bool ends_in(const char *path, const char *ending) {
  const size_t length = strlen(path), tail = strlen(ending);
  return length >= tail && strcmp(path + length - tail, ending) == 0;
}

bool is_picture(const char *path) { return ends_in(path, ".svg"); }

ax_status timeline_check(const char *path) {
  if (path == NULL || is_picture(path) || ends_in(path, ".json") || strcmp(path, "-") == 0) return AX_OK;
  return ax_error(AX_INVALID_ARGUMENT, "--timeline: give it a name that ends in .svg, for a picture, or in .json, for Perfetto: %s", path);
}

ax_status timeline_write(const char *path, const ax_simulation *simulation) {
  const bool picture = is_picture(path);
  char *text;
  AX_TRY(ax_simulation_print(simulation, picture ? AX_SIMULATION_SVG : AX_SIMULATION_JSON, &text));
  const ax_status status = write_file(path, text, strlen(text));
  ax_string_free(text);
  return status;
}

static ax_status simulate_path(simulate *s, const char *path) {
  ax_cluster *machine = NULL;
  ax_simulation simulation = {0};
  char *text = NULL;
  if (s->spread.layout.processes > 0 && s->machine != NULL)
    return ax_error(AX_INVALID_ARGUMENT, "--spread makes a machine of processes: leave --machine out");
  AX_TRY(timeline_check(s->timeline));
  if (s->spread.layout.processes > 0 && s->options.algorithm == AX_ALGORITHM_BEST) s->options.algorithm = AX_ALGORITHM_RUN;
  AX_TRY(source_read(path, &s->shardings, NULL, &s->source));
  s->options.every_device = s->every_device;
  s->options.slow = (ax_slow_device_list){s->slow_count, s->slow};
  ax_status status = simulate_file(s, &machine, &simulation);
  if (status == AX_OK) status = ax_simulation_print(&simulation, AX_SIMULATION_TEXT, &text);
  if (status == AX_OK) fputs(text, stdout);
  if (status == AX_OK && s->timeline != NULL) status = timeline_write(s->timeline, &simulation);
  ax_string_free(text);
  ax_simulation_release(&simulation);
  ax_cluster_release(machine);
  return status;
}

/* --- The command line --- */

/* DEVICE=FACTOR */
static ax_status take_slow(simulate *s, const char *argument) {
  const char *equals = strchr(argument, '=');
  char digits[24] = {0}, *end = NULL;
  int64_t device = -1;
  double factor = 0;
  if (equals != NULL && (size_t)(equals - argument) < sizeof digits) {
    memcpy(digits, argument, (size_t)(equals - argument));
    if (!ax_integer_parse(digits, &device)) device = -1;
    factor = strtod(equals + 1, &end);
  }
  if (device < 0 || end == NULL || end == equals + 1 || *end != '\0' || !(factor > 0))
    return ax_error(AX_INVALID_ARGUMENT, "--slow: not a device and a factor, as 3=1.5: %s", argument);
  AX_TRY(ax_grow(&s->slow, sizeof s->slow[0], s->slow_count, 1, &s->slow_capacity));
  s->slow[s->slow_count++] = (ax_slow_device){device, factor};
  return AX_OK;
}

static ax_status take_option(void *context, int value, const char *argument) {
  simulate *s = context;
  int64_t number = 0;
  switch (value) {
    case option_algorithm: return ax_algorithm_find(argument, &s->options.algorithm);
    case option_slow: return take_slow(s, argument);
    case option_spread: return spread_take(&s->spread, argument);
    case option_most_messages:
      AX_TRY(take_count("--most-messages", argument, UINT32_MAX, &number));
      s->options.most_messages = (double)number;
      return AX_OK;
    case option_devices_shown:
      AX_TRY(take_count("--devices", argument, UINT32_MAX, &number));
      s->options.spans = (uint32_t)number;
      return AX_OK;
    default: return shardings_take(&s->shardings, value, argument);
  }
}

static int describe(const char *name) {
  ax_cluster *machine;
  const ax_status status = ax_cluster_read(name, &machine);
  if (status == AX_IO_ERROR) return usage_error("simulate", "there is no machine '%s' to describe", name);
  if (status != AX_OK) return report_error();
  fputs(ax_cluster_text(machine), stdout);
  ax_cluster_release(machine);
  return EXIT_OK;
}

static const char notes[] =
    "Nothing is run. Machines are described in a small text (docs/simulate.md); without a file there are a100, h100, h200,\n"
    "h200-sharp, b200, tpu-v4, tpu-v5p, tpu-v6e and grace, by their makers' figures (--describe prints them with their sources);\n"
    "tpu-like-torus, tpu-like-cube and h200-switch, with round ones; and cpu, the cores of this machine (axle simulate --describe "
    "cpu\n"
    "prints it, to be changed), or cpu:4, four of them a device. tpu-like-torus has the sides that the mesh wants, so it is "
    "another\n"
    "machine for each mesh; to find the best mesh take tpu-like-cube, which is the same for all meshes of so many devices.\n"
    "A per-device program (one that begins with `axes`) is simulated on its axes, or on those\n"
    "of --mesh, of the same names and any sizes.\n\n"
    "Algorithms: best (the least time in all), ring, bidirectional, dimensions, doubling, tree, direct, pairwise, torus, switch. "
    "A\n"
    "collective "
    "that one does not do is done by its best. With --spread the mesh lies over processes, with the speeds of messages that the\n"
    "machine's description has (axle devices), and collectives go as in runs; --algorithm gather, shares and chain are single\n"
    "ways (docs/processes.md).\n\n"
    "  axle simulate f.axle --machine h200-switch\n"
    "  axle simulate device.axle --mesh data=1000000 --algorithm ring --timeline f.svg\n"
    "  axle simulate device.axle --mesh data=64 --spread 64x1 --algorithm chain\n";

static void deinit(simulate *s) {
  source_deinit(&s->source);
  shardings_deinit(&s->shardings);
  spread_deinit(&s->spread);
  free(s->machine);
  free(s->timeline);
  ax_free(s->slow);
}

int simulate_main(int argc, const char **argv) {
  simulate s = {0};
  const struct poptOption table[] = {
      {"machine", 'M', POPT_ARG_STRING, &s.machine, 0, "A machine's name, or a file that describes one (tpu-like-torus)",
       "NAME|FILE"},
      {"cluster", 'c', POPT_ARG_STRING, &s.machine, 0, "The same, as axle plan has it", "NAME|FILE"},
      {"late-sums", '\0', POPT_ARG_NONE, &s.late_sums, 0, "Sums over devices that loops add to a carry are made behind the loop", NULL},
      {"algorithm", 'a', POPT_ARG_STRING, NULL, option_algorithm, "How messages of collectives go (best)", "ALGORITHM"},
      {"timeline", '\0', POPT_ARG_STRING, &s.timeline, 0, "Write what each device does when: .svg, or .json for Perfetto", "FILE"},
      {"devices", '\0', POPT_ARG_STRING, NULL, option_devices_shown, "Of how many devices the timeline is (64)", "N"},
      {"slow", '\0', POPT_ARG_STRING, NULL, option_slow, "A device that computes so many times as long, as 3=1.5; may be given repeatedly",
       "DEVICE=FACTOR"},
      {"every-device", '\0', POPT_ARG_NONE, &s.every_device, 0, "Simulate each device, also those that do the same", NULL},
      {"most-messages", '\0', POPT_ARG_STRING, NULL, option_most_messages, "Give up after so many (50000000)", "N"},
      {"describe", '\0', POPT_ARG_NONE, &s.describe, 0, "FILE is the name of a machine: print its description", NULL},
      SHARDING_OPTIONS,
      SPREAD_OPTION,
      POPT_TABLEEND,
  };
  const option_set set = {
      .command = "simulate",
      .usage = "FILE [OPTION...]",
      .summary =
          "What a run of the program in FILE (- for standard input) would take on a machine that is described: simulated time.",
      .table = table,
      .notes = notes,
      .handle = take_option,
      .context = &s,
      .wants_file = true};
  char *file = NULL;
  bool done;
  int code = read_options(&set, argc, argv, &file, &done);
  if (code == EXIT_OK && !done && s.describe) code = describe(file);
  else if (code == EXIT_OK && !done && simulate_path(&s, file) != AX_OK) code = report_error();
  deinit(&s);
  free(file);
  return code;
}
