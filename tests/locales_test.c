/* Texts in a format are the same in each locale: what is printed where numbers have a decimal comma is byte for byte what is
   printed where they have a point. The locale is made here, as few machines have one. */
#undef AXLE_NO_LINES
#include "axle/axle.h"

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/cmocka.h"
#include "support/tensor.h"

static const char comma_locale[] = "de_DE.UTF-8";
static char folder[64] = "/tmp/axle-locales-XXXXXX";

static bool sets_comma(void) { return setlocale(LC_ALL, comma_locale) != NULL && strcmp(localeconv()->decimal_point, ",") == 0; }

static int make_locale(void **state) {
  (void)state;
  char command[200];
  if (mkdtemp(folder) == NULL) return -1;
  snprintf(command, sizeof command, "localedef -i de_DE -f UTF-8 %s/%s >/dev/null 2>&1", folder, comma_locale);
  if (system(command) != 0) return 0; /* one that is installed will do, too */
  return setenv("LOCPATH", folder, 1);
}

static int remove_locale(void **state) {
  (void)state;
  char command[200];
  snprintf(command, sizeof command, "rm -r %s", folder);
  return system(command);
}

static AX_BODY(summed) {
  (void)context;
  out[0] = ax_psum(ax_mul(ax_matmul(in[0], in[0]), 0.3), "d");
  out[1] = ax_mul(in[0], 1e-30);
}

static AX_BODY(mapped) {
  (void)context;
  ax_mesh mesh;
  if (ax_mesh_parse("d=4", &mesh) == AX_OK) ax_shard_map(&mesh, "d -> _; d", AX_FN(summed, 1, 2), in, out);
}

enum { texts = 9 };

typedef struct things {
  ax_program *program;
  ax_executable *executable;
  ax_simulation simulation;
} things;

static void print_all(things *t, char *out[texts]) {
  ax_cost cost;
  TEST_OK(ax_simulation_print(&t->simulation, AX_SIMULATION_TEXT, &out[0]));
  TEST_OK(ax_simulation_print(&t->simulation, AX_SIMULATION_JSON, &out[1]));
  TEST_OK(ax_simulation_print(&t->simulation, AX_SIMULATION_SVG, &out[2]));
  TEST_OK(ax_executable_timeline(t->executable, AX_TIMELINE_JSON, &out[3]));
  TEST_OK(ax_executable_timeline(t->executable, AX_TIMELINE_TEXT, &out[4]));
  TEST_OK(ax_executable_text(t->executable, &out[5]));
  TEST_OK(ax_program_print(t->program, &out[6]));
  TEST_OK(ax_program_stablehlo(t->program, &out[7]));
  TEST_OK(ax_program_cost(t->program, &cost));
  TEST_OK(ax_cost_text(&cost, &out[8]));
  ax_cost_release(&cost);
}

static void run_once(ax_runtime *runtime, ax_executable *executable) {
  static const float zeros[64 * 16];
  const ax_type type = TEST_TYPE(AX_F32, 64, 16);
  ax_array *in, *out[2];
  TEST_OK(ax_device_put_data(runtime, NULL, "", &type, zeros, &in));
  TEST_OK(ax_run(executable, &in, out));
  TEST_OK(ax_array_wait(out[0]));
  TEST_OK(ax_array_wait(out[1]));
  ax_array_release(in);
  ax_array_release(out[0]);
  ax_array_release(out[1]);
}

static void all_texts(void **state) {
  (void)state;
  static const char *const names[texts] = {"simulation",       "simulation as JSON", "simulation as SVG",
                                           "timeline as JSON", "timeline",           "executable",
                                           "program",          "StableHLO",          "cost"};
  things t;
  char *here[texts], *there[texts];
  ax_runtime *runtime;
  ax_lowered *lowered;
  ax_cluster *machine;
  if (!sets_comma()) skip(); /* neither localedef nor the locale is there */
  setlocale(LC_ALL, "C");
  TEST_OK(ax_trace(AX_FN(mapped, 1, 2), AX_TYPES(TEST_TYPE(AX_F32, 64, 16)), &t.program));
  TEST_OK(ax_runtime_create(NULL, &runtime));
  TEST_OK(ax_compile(runtime, t.program, &(ax_compile_options){.timeline = true}, &t.executable));
  run_once(runtime, t.executable);
  TEST_OK(ax_program_lower(t.program, NULL, &lowered));
  TEST_OK(ax_cluster_read("tpu-like-torus", &machine));
  TEST_OK(ax_simulate(lowered, machine, NULL, &t.simulation));
  print_all(&t, here);
  assert_true(sets_comma());
  print_all(&t, there);
  setlocale(LC_ALL, "C");
  for (int i = 0; i < texts; i++) {
    if (strcmp(here[i], there[i]) != 0) fail_msg("the %s is not the same:\n%s\n%s", names[i], here[i], there[i]);
    ax_string_free(here[i]);
    ax_string_free(there[i]);
  }
  ax_simulation_release(&t.simulation);
  ax_cluster_release(machine);
  ax_lowered_release(lowered);
  ax_executable_release(t.executable);
  ax_runtime_release(runtime);
  ax_program_release(t.program);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(all_texts)};
  return cmocka_run_group_tests(tests, make_locale, remove_locale);
}
