/* axle devices: shows the processor, the threads and the libraries of this machine. */
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "axle/processes.h"
#include "cli.h"
#include "jit/jit.h"
#include "machine/features.h"
#include "machine/machine.h"
#include "machine/system.h"

static void print_model(void) {
  char model[256];
  ax_system_model("", model, sizeof model);
  if (model[0] != '\0') printf("processor  %s\n", model);
}

static void print_vectors(void) {
#if defined(__x86_64__)
  const uint32_t bytes = ax_machine_register_bytes();
  const char *name = bytes == 64 ? "AVX-512" : bytes == 32 ? "AVX2" : "SSE2";
  printf("vectors    %u bits (%s), %u f32 at once\n", bytes * 8, name, bytes / 4);
#elif defined(__aarch64__)
  printf("vectors    128 bits (NEON), 4 f32 at once\n");
#endif
}

static const char *const libraries[] = {"libsleef.", "libzip.", "libz."};

/* Prints the real path of a loaded library, since that has the version in its name. */
static int print_library(struct dl_phdr_info *info, size_t size, void *context) {
  (void)size, (void)context;
  const char *slash = strrchr(info->dlpi_name, '/');
  for (size_t i = 0; slash != NULL && i < AX_COUNT(libraries); i++) {
    if (strncmp(slash + 1, libraries[i], strlen(libraries[i])) != 0) continue;
    char *path = realpath(info->dlpi_name, NULL);
    printf("  %s\n", path != NULL ? path : info->dlpi_name);
    free(path);
  }
  return 0;
}

ax_status facts_print(const char *before, const ax_known *known, const char *more) {
  ax_text text = {0};
  char *facts = NULL;
  for (int f = 0; f < AX_FACT_COUNT; f++) {
    ax_text_add(&text, "%s%s", before, ax_machine_record((ax_fact)f)->given ? "" : "# ");
    ax_machine_add_text(&text, (ax_fact)f, known != NULL ? known[f] : ax_machine_know((ax_fact)f));
  }
  ax_text_add(&text, "%s", more != NULL ? more : "");
  const ax_status status = ax_text_finish(&text, &facts);
  if (status == AX_OK) fputs(facts, stdout);
  ax_free(facts);
  return status;
}

/* What this machine has. */
static ax_status print_machine(void) {
  print_model();
  printf("threads    %u\n", ax_machine_threads());
  print_vectors();
  printf("memory     %.1f GiB, %.1f GiB free\n", memory_gibibytes(_SC_PHYS_PAGES), memory_gibibytes(_SC_AVPHYS_PAGES));
  puts("devices    virtual ones, up to 2^20 (1048576) in a mesh; they share the cores");
  puts("machine");
  AX_TRY(facts_print("  ", NULL, NULL));
  puts("libraries");
  dl_iterate_phdr(print_library, NULL);
  printf("  %s, when the first kernel is compiled\n", ax_jit_library());
  return AX_OK;
}

/* --- Several processes --- */

enum { option_mesh_of = 1, option_processes, option_plugin_option };

typedef struct asked {
  ax_processes_by by;
  ax_mesh mesh;
  bool has_mesh;
  plugin_choice plugin;
} asked;

static ax_status take_option(void *context, int value, const char *argument) {
  asked *a = context;
  if (value == option_plugin_option) return plugin_take(&a->plugin, argument);
  if (value == option_processes) return take_processes(argument, &a->by);
  a->has_mesh = true;
  return ax_mesh_parse(argument, &a->mesh);
}

/* What the environment says of processes is known to the runtime. */
static bool is_about_processes(const asked *a) {
  return a->has_mesh || a->by == AX_MPI || (a->by != AX_ONE_PROCESS && getenv("AXLE_PROCESSES") != NULL);
}

/* Prints the processes, and of process 0 the machine. */
static ax_status print_processes(const asked *a) {
  ax_runtime *runtime;
  AX_TRY(ax_runtime_create(&(ax_runtime_options){.processes = a->by, .code_cache = "off"}, &runtime));
  ax_status status = processes_print(runtime, a->has_mesh ? &a->mesh : NULL);
  if (status == AX_OK && ax_process_index(runtime) == 0) status = print_machine();
  ax_runtime_release(runtime);
  return status;
}

static ax_status print_devices(const asked *a) {
  if (a->plugin.path != NULL) return plugin_print(&a->plugin);
  return is_about_processes(a) ? print_processes(a) : print_machine();
}

int devices_main(int argc, const char **argv) {
  int facts = 0, messages = 0;
  asked asked = {0};
  const struct poptOption table[] = {
      {"machine", 'm', POPT_ARG_NONE, &facts, 0, "prints the machine's description alone, as AXLE_MACHINE takes it", NULL},
      {"messages", '\0', POPT_ARG_NONE, &messages, 0,
       "under mpirun: measures messages between the processes, and prints the description with their speeds", NULL},
      {"mesh", '\0', POPT_ARG_STRING, NULL, option_mesh_of, "Which devices of this mesh each process has", "AXIS=N,.."},
      PROCESSES_OPTION(option_processes),
      PLUGIN_OPTIONS(&asked.plugin.path, option_plugin_option),
      POPT_TABLEEND};
  const option_set set = {.command = "devices",
                          .usage = "[OPTION...]",
                          .summary = "Lists the processor, memory and libraries that programs run on.",
                          .table = table,
                          .handle = take_option,
                          .context = &asked};
  char *file = NULL;
  bool done;
  int code = read_options(&set, argc, argv, &file, &done);
  free(file);
  if (code != EXIT_OK || done) return code;
  if (ax_machine_check() != AX_OK) return report_error();
  if (messages) return messages_print() == AX_OK ? EXIT_OK : report_error();
  keep_speeds();
  if (facts) return facts_print("", NULL, NULL) == AX_OK ? EXIT_OK : report_error();
  code = print_devices(&asked) == AX_OK ? EXIT_OK : report_error();
  plugin_deinit(&asked.plugin);
  return code;
}
