/* The stage between a program and an executable: a partitioned program, with the options that executables still need. */
#include "axle/stages.h"

#include "axle/transform.h"
#include "array/executable.h"
#include "machine/float_mode.h"
#include "partition/partition.h"

struct ax_lowered {
  atomic_uint references;
  ax_program *program; /* with its shardings */
  ax_laid laid;
  ax_compile_options options; /* without mesh, shardings and `like` arrays, which `program` includes; its lists are owned */
  double seconds;
};

static void destroy(ax_lowered *l) {
  ax_program_release(l->program);
  ax_laid_deinit(&l->laid);
  ax_free((uint32_t *)l->options.donate.list);
  ax_free((const char **)l->options.names.v);
  ax_free(l);
}

static ax_status keep_options(ax_lowered *l, const ax_compile_options *options, uint32_t in_count) {
  const char **names;
  l->options = *options;
  l->options.mesh = NULL;
  l->options.shardings = NULL;
  l->options.processes = NULL;
  l->options.like = (ax_array_list){0};
  l->options.donate.list = NULL;
  l->options.names = (ax_name_list){0};
  AX_TRY(ax_names_copy(&options->names, in_count, &names));
  if (names != NULL) l->options.names = (ax_name_list){in_count, (const char *const *)names};
  if (options->donate.list == NULL) return AX_OK;
  const size_t bytes = options->donate.count * sizeof options->donate.list[0];
  uint32_t *list = ax_alloc(bytes);
  if (list == NULL) return ax_out_of_memory(bytes);
  for (uint32_t i = 0; i < options->donate.count; i++) list[i] = options->donate.list[i];
  l->options.donate.list = list;
  return AX_OK;
}

static ax_status lower(ax_lowered *l, ax_program *program, const ax_compile_options *options) {
  const double begin = ax_seconds();
  AX_TRY(ax_program_laid_over(program, options, "lower", &l->program));
  AX_TRY(keep_options(l, options, program->in_count));
  ax_float_mode caller = ax_float_mode_enter(false); /* as ax_compile */
  ax_status status = ax_program_lay_out(l->program, options->keep_unused, &l->laid);
  ax_float_mode_leave(caller);
  l->seconds = ax_seconds() - begin;
  return status;
}

ax_status ax_program_lower(ax_program *program, const ax_compile_options *options, ax_lowered **out) {
  const ax_compile_options defaults = {0};
  *out = NULL;
  AX_TRY(ax_require(program, "program"));
  ax_lowered *l = ax_calloc(1, sizeof *l);
  if (l == NULL) return ax_out_of_memory(sizeof *l);
  atomic_init(&l->references, 1);
  ax_status status = lower(l, program, options != NULL ? options : &defaults);
  if (status == AX_OK) *out = l;
  else destroy(l);
  return status;
}

ax_status ax_lowered_plan(const ax_lowered *l, ax_plan **out) {
  ax_float_mode caller = ax_float_mode_enter(false);
  ax_status status = ax_laid_plan(&l->laid, &l->options, out);
  ax_float_mode_leave(caller);
  return status;
}

ax_lowered *ax_lowered_retain(ax_lowered *l) {
  if (l != NULL) atomic_fetch_add_explicit(&l->references, 1, memory_order_relaxed);
  return l;
}

void ax_lowered_release(ax_lowered *l) {
  if (l != NULL && atomic_fetch_sub(&l->references, 1) == 1) destroy(l);
}

/* --- Questions --- */

ax_program *ax_lowered_program(const ax_lowered *l) { return l != NULL ? l->laid.program : NULL; }
double ax_lowered_seconds(const ax_lowered *l) { return l != NULL ? l->seconds : 0; }
const ax_mesh *ax_lowered_mesh(const ax_lowered *l) { return l != NULL ? ax_partitioned_of(l->laid.program).mesh : NULL; }

/* The spec of an input or result. In a program without shard_maps it lies whole on its device; so does one that was pruned. */
static const ax_spec *spec_of(const ax_spec *specs, uint32_t number) {
  static const ax_spec whole;
  return specs != NULL && number != AX_NONE ? &specs[number] : &whole;
}

const ax_spec *ax_lowered_in_spec(const ax_lowered *l, uint32_t index) {
  if (l == NULL || index >= l->laid.pruning.in_count) return NULL;
  return spec_of(ax_partitioned_of(l->laid.program).in_specs, l->laid.pruning.place[index]);
}

const ax_spec *ax_lowered_out_spec(const ax_lowered *l, uint32_t index) {
  if (l == NULL || index >= l->laid.pruning.out_count) return NULL;
  const ax_returned *r = &l->laid.pruning.returned[index];
  if (r->input != AX_NONE) return ax_lowered_in_spec(l, r->input);
  return spec_of(ax_partitioned_of(l->laid.program).out_specs, r->made);
}

bool ax_lowered_is_kept(const ax_lowered *l, uint32_t index) {
  return l != NULL && index < l->laid.pruning.in_count && l->laid.pruning.place[index] != AX_NONE;
}

ax_status ax_lowered_use_plan(ax_runtime *runtime, const ax_lowered *l, const ax_plan_use *use, ax_memory *out) {
  ax_float_mode caller = ax_float_mode_enter(false); /* as ax_compile */
  *out = (ax_memory){0};
  const ax_status status = ax_assemble_memory(&runtime->assembler, &(ax_source){.program = l->program, .laid = &l->laid, .options = &l->options}, use, out, NULL);
  ax_float_mode_leave(caller);
  return status;
}

ax_status ax_lowered_memory(ax_runtime *runtime, const ax_lowered *l, ax_memory *out) {
  *out = (ax_memory){0};
  AX_TRY(ax_require(runtime, "runtime"));
  AX_TRY(ax_require(l, "lowered"));
  return ax_lowered_use_plan(runtime, l, NULL, out);
}

/* --- The next stage --- */

ax_status ax_lowered_compile(ax_runtime *runtime, const ax_lowered *l, ax_executable **out) {
  *out = NULL;
  AX_TRY(ax_require(runtime, "runtime"));
  AX_TRY(ax_require(l, "lowered"));
  return ax_executable_of(runtime, l->program, &l->laid, l->seconds, &l->options, out);
}

/* --- Text --- */

static void row(ax_text *text, const char *name, size_t device, size_t all) {
  ax_text_add(text, "%16zu  %16zu  %s\n", device, all, name);
}

ax_status ax_memory_text(ax_runtime *runtime, ax_program *program, char **out) {
  const ax_compile_options options = {0};
  ax_memory memory;
  ax_text text = {0}, held = {0};
  *out = NULL;
  ax_status status = ax_assemble_memory(&runtime->assembler, &(ax_source){.program = program, .options = &options}, NULL, &memory, &held);
  const ax_memory_bytes *one = &memory.device, *all = &memory.all;
  if (status == AX_OK) {
    ax_text_add(&text, "%16s  %16s\n", "bytes, a device", "in all");
    row(&text, "arguments", one->arguments, all->arguments);
    row(&text, "results", one->results, all->results);
    row(&text, "constants", one->constants, all->constants);
    row(&text, "temporaries that devices share or that are kept", one->kept, all->kept);
    row(&text, "temporaries of a device's own", one->scratch, all->scratch);
    ax_text_add(&text, "\n%s", held.data != NULL ? held.data : "");
    text.failed = text.failed || held.failed;
    status = ax_text_finish(&text, out);
  }
  ax_text_deinit(&held);
  return status;
}
