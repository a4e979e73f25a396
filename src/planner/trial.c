#include "planner/trial.h"

#include <math.h>

#include "axle/transform.h"
#include "array/executable.h"
#include "base/base.h"
#include "machine/caches.h"
#include "sim/cluster.h"
#include "sim/estimate.h"

static void divide_path(const ax_simulation *s, ax_trial *out) {
  for (uint32_t i = 0; i < s->path_count; i++) {
    const double seconds = s->path[i].end - s->path[i].start;
    *(s->ops[s->path[i].op].algorithm != NULL ? &out->exchanging : &out->computing) += seconds;
  }
}

/* Where devices are so unlike that it takes long, what was estimated stays. */
static ax_status simulate(const ax_lowered *lowered, const ax_trial_options *options, ax_trial *out) {
  static const double most_messages = 5e5;
  ax_simulation simulation;
  const ax_status status = ax_simulate(lowered, options->machine, &(ax_simulate_options){.spans = 1, .most_messages = most_messages}, &simulation);
  if (status == AX_INVALID_ARGUMENT && isfinite(out->seconds)) return AX_OK;
  AX_TRY(status);
  out->computing = out->exchanging = out->launching = 0;
  out->seconds = simulation.seconds;
  divide_path(&simulation, out);
  ax_simulation_release(&simulation);
  return AX_OK;
}

typedef struct estimating {
  const ax_trial_options *options;
  ax_trial *out;
} estimating;

static ax_status use(void *context, const ax_plan *plan, const ax_memory *memory) {
  const estimating *e = context;
  ax_sim_estimate about;
  e->out->bytes = ax_memory_bytes_all(&memory->device);
  e->out->arguments = (double)memory->device.arguments;
  e->out->results = (double)memory->device.results;
  if (e->out->bytes > e->options->most) return AX_OK;
  AX_TRY(ax_plan_estimate(plan, e->options->machine, e->options->times, &about));
  e->out->seconds = about.seconds;
  e->out->computing = about.computing;
  e->out->exchanging = about.exchanging;
  e->out->launching = about.launching;
  return AX_OK;
}

static ax_status check_time(const ax_trial_options *options) {
  if (options->end == 0 || ax_seconds() <= options->end) return AX_OK;
  return ax_error(AX_UNAVAILABLE, "planner: the time of the search is over");
}

ax_status ax_trial_run(ax_program *program, const ax_mesh *mesh, const char *specs, const ax_trial_options *options, ax_trial *out) {
  ax_program *laid = NULL;
  ax_lowered *lowered = NULL;
  ax_memory memory;
  estimating e = {options, out};
  *out = (ax_trial){.seconds = INFINITY};
  const bool assumed = ax_caches_assume(!ax_cluster_is_here(options->machine));
  ax_status status = check_time(options);
  if (status == AX_OK) status = ax_program_with_shardings(program, mesh, specs, &laid);
  if (status == AX_OK) status = check_time(options);
  if (status == AX_OK) status = ax_program_lower(laid, &(ax_compile_options){.donate = options->donated, .late_sums = true}, &lowered);
  if (status == AX_OK) status = check_time(options);
  if (status == AX_OK) status = ax_lowered_use_plan(options->runtime, lowered, &(ax_plan_use){use, &e}, &memory);
  const bool again = status == AX_ABSENT || options->exact; /* kernels are not estimated */
  if (status == AX_OK && again) status = check_time(options);
  if ((status == AX_OK || status == AX_ABSENT) && again && out->bytes <= options->most) status = simulate(lowered, options, out);
  (void)ax_caches_assume(assumed);
  ax_lowered_release(lowered);
  ax_program_release(laid);
  return status;
}
