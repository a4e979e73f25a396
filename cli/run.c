/* axle run: runs a program on arrays from files, and writes results to files or to the screen. axle trace: the same, to get the
   timeline. */
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "array/array.h"
#include "axle/exec.h"
#include "axle/processes.h"
#include "array/runtime.h"
#include "bridge/npy.h"
#include "cli.h"
#include "ir/number.h"
#include "ir/prim.h"
#include "ir/program.h"
#include "xform/evaluate.h"

enum { most_printed = 1000 }; /* elements of a result shown on the screen */

typedef struct run {
  word_list in, out; /* NAME=VALUE */
  shardings shardings;
  int reference, convert, check_nan, check_inf;
  ax_runtime *runtime; /* NULL: the reference rules compute */
  uint32_t process;    /* of several; results are for process 0 to give */
  ax_runtime_options options;
  ax_subnormals subnormals;
  ax_contraction contraction;
  source source;
  inputs inputs;
  ax_host_array *results;
  ax_program *whole; /* what runs: takes and gives whole arrays */
  char *timeline;    /* file; NULL: none */
  int late_sums;
  bool traces;       /* axle trace: only the timeline is written */
  char *code_cache;  /* NULL: own_code_cache */
  plugin_choice plugin;
} run;

enum { option_in = 1, option_out, option_plugin_option, option_contraction, option_policy, option_processes, option_seed, option_subnormals, option_workers };

/* --- Inputs --- */

static ax_status read_inputs(run *run) {
  const ax_program *program = run->source.program;
  run->results = ax_calloc(program->out_count, sizeof run->results[0]);
  if (run->results == NULL) return ax_out_of_memory(program->out_count);
  AX_TRY(inputs_read(&run->inputs, &run->source, &run->in, run->convert));
  for (uint32_t i = 0; i < program->in_count; i++)
    if (!run->inputs.given[i])
      return ax_error(AX_INVALID_ARGUMENT, "input %s of type %s is not given: --in %s=FILE.npy",
                      source_input_name(&run->source, i), ax_type_string(&program->types[i], &program->axes),
                      source_input_name(&run->source, i));
  return AX_OK;
}

/* Finds the path that a file will have once it is written: its folder, with links resolved, and its name. False: the folder
   cannot be resolved, so writing the file will fail. */
static bool find_place(const char *path, char place[2 * PATH_MAX]) {
  char target[PATH_MAX], folder[PATH_MAX];
  if (ax_file_target(path, target) != AX_OK) return false;
  const char *slash = strrchr(target, '/');
  const char *name = slash != NULL ? slash + 1 : target;
  snprintf(place, 2 * PATH_MAX, "%.*s", slash != NULL ? (int)(name - target) : 1, slash != NULL ? target : ".");
  if (realpath(place, folder) == NULL) return false;
  snprintf(place, 2 * PATH_MAX, "%s/%s", folder, name);
  return true;
}

static int64_t result_of(const run *run, const char *word) {
  return source_find_output(&run->source, word, (size_t)(strchr(word, '=') - word));
}

static const char *file_of(const char *word) { return strchr(word, '=') + 1; }

/* Refuses two results, or a result and the timeline, in one file: the second would replace the first. */
static ax_status check_places(const run *run) {
  char place[2 * PATH_MAX], other[2 * PATH_MAX];
  for (uint32_t i = 0; i < run->out.count; i++) {
    if (!find_place(file_of(run->out.words[i]), place)) continue;
    for (uint32_t k = 0; k < i; k++)
      if (find_place(file_of(run->out.words[k]), other) && strcmp(place, other) == 0)
        return ax_error(AX_INVALID_ARGUMENT, "--out %s: --out %s is written to this file", run->out.words[i], run->out.words[k]);
    if (run->timeline != NULL && strcmp(run->timeline, "-") != 0 && find_place(run->timeline, other) && strcmp(place, other) == 0)
      return ax_error(AX_INVALID_ARGUMENT, "--out %s: --timeline %s is written to this file", run->out.words[i], run->timeline);
  }
  return AX_OK;
}

/* Reports bad --out options before anything is computed. */
static ax_status check_outputs(const run *run) {
  for (uint32_t i = 0; i < run->out.count; i++) {
    const char *word = run->out.words[i];
    if (result_of(run, word) < 0)
      return ax_error(AX_INVALID_ARGUMENT, "--out %s: the program has no such result", word);
  }
  return check_places(run);
}

/* --- The program that runs --- */

static bool mesh_equal(const ax_mesh *a, const ax_mesh *b) { return a->count == b->count && ax_axes_begin_with(a, b); }

/* A program on whole arrays has its mesh in its shard_maps; --mesh may only repeat it. */
static ax_status check_whole_mesh(const run *run) {
  const ax_program *program = run->source.program;
  uint32_t found = 0;
  for (uint32_t i = 0; run->shardings.has_mesh && i < program->eqn_count; i++) {
    const ax_eqn *eqn = &program->eqns[i];
    for (uint32_t p = 0; p < eqn->prim->param_count; p++) {
      if (eqn->prim->params[p].kind != AX_PARAM_MESH) continue;
      const ax_mesh *mesh = ax_param_at(eqn, &eqn->prim->params[p]);
      found++;
      if (!mesh_equal(&run->shardings.mesh, mesh))
        return ax_error(AX_INVALID_ARGUMENT, "line %u: %s is over another mesh than --mesh; leave --mesh out",
                        eqn->line, eqn->prim->name);
    }
  }
  if (!run->shardings.has_mesh || found > 0 || run->shardings.mesh.count == 0) return AX_OK;
  return ax_error(AX_INVALID_ARGUMENT, "the program uses no mesh; leave --mesh out");
}

static ax_status check_shapes(const run *run) {
  for (uint32_t i = 0; i < run->whole->in_count; i++) {
    ax_type type = host_type(&run->inputs.arrays[i]);
    if (!ax_same_shape(&type, &run->whole->types[i]))
      return ax_error(AX_INVALID_ARGUMENT, "input %s is %s, but %s is given", source_input_name(&run->source, i),
                      ax_type_string(&run->whole->types[i], NULL), ax_type_string(&type, NULL));
  }
  return AX_OK;
}

static ax_status make_whole(run *run) {
  ax_program *program = run->source.program;
  if (shardings_given(&run->shardings)) {
    const ax_process_layout processes = ax_process_layout_of(run->runtime);
    AX_TRY(shardings_apply(&run->shardings, &run->source, &processes, &run->whole));
    return check_shapes(run);
  }
  if (program->axes.count == 0) {
    AX_TRY(check_whole_mesh(run));
    run->whole = ax_program_retain(program);
    return check_shapes(run);
  }
  ax_type *types = ax_calloc(program->in_count, sizeof types[0]);
  if (types == NULL) return ax_out_of_memory(program->in_count * sizeof types[0]);
  for (uint32_t i = 0; i < program->in_count; i++) types[i] = host_type(&run->inputs.arrays[i]);
  ax_status status =
      whole_program(&run->source, run->shardings.has_mesh ? &run->shardings.mesh : &program->axes, types, &run->whole);
  ax_free(types);
  return status;
}

/* --- Running --- */

/* Simplifies the program as compiling does, and keeps the numbers of its equations. So a collective whose result is unused is
   left out of both runs, and cannot deadlock in one of them alone. */
static ax_status simplify(const ax_program *program, ax_program **out) {
  ax_context numbers;
  ax_keep_numbers(&numbers);
  ax_status status = ax_program_simplify(program, out);
  ax_context_leave(&numbers);
  return status;
}

/* Runs the program by the reference rules, one equation after another. */
static ax_status evaluate(const run *run, ax_tensor *const *in, ax_tensor **out) {
  ax_program *simple;
  AX_TRY(simplify(run->whole, &simple));
  const ax_hooks hooks = {.print = ax_print_to, .print_context = stdout};
  ax_status status = ax_evaluate_with(run->subnormals, &hooks, simple, in, out);
  ax_program_release(simple);
  return status;
}

static ax_status run_reference(run *run) {
  const ax_program *program = run->whole;
  size_t count = (size_t)program->in_count + program->out_count;
  ax_tensor **tensors = ax_calloc(count, sizeof tensors[0]), **out = tensors + program->in_count;
  ax_status status = tensors != NULL ? AX_OK : ax_out_of_memory(count * sizeof tensors[0]);
  for (uint32_t i = 0; status == AX_OK && i < program->in_count; i++) {
    status = ax_tensor_create(&program->types[i], &tensors[i]);
    if (status == AX_OK) status = inputs_read_whole(&run->inputs, i);
    if (status == AX_OK) memcpy(tensors[i]->data, run->inputs.arrays[i].data, host_bytes(&run->inputs.arrays[i]));
  }
  if (status == AX_OK) status = evaluate(run, tensors, out);
  for (uint32_t i = 0; status == AX_OK && i < program->out_count; i++) {
    status = host_make(&program->types[program->outs[i]], &run->results[i]);
    if (status == AX_OK) memcpy(run->results[i].data, out[i]->data, host_bytes(&run->results[i]));
  }
  for (size_t i = 0; tensors != NULL && i < count; i++) ax_tensor_release(tensors[i]);
  ax_free(tensors);
  return status;
}

/* A result that each process has whole is process 0's to give. */
static ax_status write_result(const run *run, const ax_array *result, const char *path) {
  return result->layout->map != NULL || run->process == 0 ? ax_array_write_npy(result, path) : AX_OK;
}

static ax_status take_results(run *run, ax_array *const *out) {
  for (uint32_t i = 0; i < run->out.count; i++)
    AX_TRY(write_result(run, out[result_of(run, run->out.words[i])], file_of(run->out.words[i])));
  for (uint32_t i = 0; run->out.count == 0 && !run->traces && i < run->whole->out_count; i++)
    AX_TRY(ax_array_gather(out[i], 0, &run->results[i]));
  return AX_OK;
}

static ax_status run_on(run *run, ax_executable *executable, ax_array **in, ax_array **out) {
  const ax_program *program = run->whole;
  for (uint32_t i = 0; i < program->in_count; i++) AX_TRY(inputs_put(&run->inputs, i, executable, &in[i]));
  AX_TRY(ax_run(executable, AX_LIST(program->in_count, in), AX_LIST(program->out_count, out)));
  return take_results(run, out);
}

/* Writes the timeline of the last run: trace events into a file named .json, otherwise text. The name - is the screen. */
static ax_status write_timeline(const run *run, ax_executable *executable) {
  const char *name = run->timeline;
  const size_t length = strlen(name);
  bool json = length > 5 && strcmp(name + length - 5, ".json") == 0;
  char *text;
  AX_TRY(ax_executable_gather_timeline(executable, json ? AX_TIMELINE_JSON : AX_TIMELINE_TEXT, &text));
  const ax_status status = run->process > 0 ? AX_OK : write_file(name, text, strlen(text));
  ax_string_free(text);
  return status;
}

static ax_status start_runtime(run *run) {
  run->options.print = ax_print_to;
  run->options.print_context = stdout;
  AX_TRY(plugin_apply(&run->plugin, &run->options));
  run->options.code_cache = run->code_cache != NULL ? run->code_cache : own_code_cache();
  AX_TRY(ax_runtime_create(&run->options, &run->runtime));
  run->process = ax_process_index(run->runtime);
  return AX_OK;
}

static ax_status run_compiled(run *run) {
  ax_executable *executable = NULL;
  size_t count = (size_t)run->whole->in_count + run->whole->out_count;
  ax_array **arrays = ax_calloc(count, sizeof arrays[0]);
  if (arrays == NULL) return ax_out_of_memory(count * sizeof arrays[0]);
  const ax_compile_options options = {
      .check_numerics = (run->check_nan ? AX_CHECK_NAN : 0u) | (run->check_inf ? AX_CHECK_INF : 0u),
      .subnormals = run->subnormals,
      .contraction = run->contraction,
      .late_sums = run->late_sums,
      .timeline = run->timeline != NULL};
  ax_status status = ax_compile(run->runtime, run->whole, &options, &executable);
  if (status == AX_OK) status = run_on(run, executable, arrays, arrays + run->whole->in_count);
  if (status == AX_OK && run->timeline != NULL) status = write_timeline(run, executable);
  for (size_t i = 0; i < count; i++) ax_array_release(arrays[i]);
  ax_executable_release(executable);
  ax_free(arrays);
  return status;
}

/* --- Results --- */

/* On the screen every NaN is shown as nan; files keep its bits. */
static void plain_nans(ax_host_array *array) {
  const ax_dtype dtype = ax_part_dtype(array->dtype);
  const int64_t numbers = ax_dims_elems(array->rank, array->dims) * (ax_is_complex(array->dtype) ? 2 : 1);
  for (int64_t i = 0; ax_is_float(dtype) && i < numbers; i++)
    if (isnan(ax_number_load(dtype, array->data, i).f)) ax_number_store(dtype, array->data, i, (ax_number){.f = (double)NAN});
}

static ax_status print_results(const run *run) {
  for (uint32_t i = 0; i < run->whole->out_count; i++) {
    ax_literal literal = {.type = host_type(&run->results[i]), .data = run->results[i].data};
    ax_text text = {0};
    char *made;
    plain_nans(&run->results[i]);
    ax_text_add(&text, "%s = ", source_output_name(&run->source, i));
    if (ax_type_elems(&literal.type) > most_printed)
      ax_text_add(&text, "%s (long: --out %s=FILE.npy writes it)", ax_type_string(&literal.type, NULL),
                  source_output_name(&run->source, i));
    else
      ax_literal_text(&text, &literal);
    AX_TRY(ax_text_finish(&text, &made));
    puts(made);
    ax_string_free(made);
  }
  return AX_OK;
}

static ax_status give_results(const run *run) {
  for (uint32_t i = 0; run->reference && i < run->out.count; i++)
    AX_TRY(ax_npy_write(file_of(run->out.words[i]), &run->results[result_of(run, run->out.words[i])]));
  return run->out.count == 0 && !run->traces ? print_results(run) : AX_OK;
}

static ax_status run_program(run *run, const char *path) {
  if (run->reference && (run->check_nan || run->check_inf))
    return ax_error(AX_INVALID_ARGUMENT, "--reference does not go with --check-numerics and --check-infinities");
  if (run->reference && run->timeline != NULL) return ax_error(AX_INVALID_ARGUMENT, "--reference does not go with --timeline");
  if (run->reference && run->options.processes == AX_MPI)
    return ax_error(AX_INVALID_ARGUMENT, "--reference does not go with --processes mpi");
  if (run->reference && run->plugin.path != NULL) return ax_error(AX_INVALID_ARGUMENT, "--reference does not go with --plugin");
  if (run->traces && run->timeline == NULL) return ax_out_of_memory(0);
  AX_TRY(source_read(path, &run->shardings, &run->in, &run->source));
  AX_TRY(check_outputs(run));
  AX_TRY(read_inputs(run));
  if (!run->reference) AX_TRY(start_runtime(run));
  AX_TRY(make_whole(run));
  AX_TRY(run->reference ? run_reference(run) : run_compiled(run));
  return run->process == 0 ? give_results(run) : AX_OK;
}

static void deinit(run *run) {
  uint32_t out_count = run->source.program != NULL ? run->source.program->out_count : 0;
  for (uint32_t i = 0; run->results != NULL && i < out_count; i++) ax_host_array_release(&run->results[i]);
  ax_runtime_release(run->runtime);
  inputs_deinit(&run->inputs);
  ax_free(run->results);
  ax_program_release(run->whole);
  source_deinit(&run->source);
  word_list_deinit(&run->in);
  word_list_deinit(&run->out);
  shardings_deinit(&run->shardings);
  free(run->timeline);
  plugin_deinit(&run->plugin);
  free(run->code_cache);
}

/* --- The command line --- */

static ax_status take_number(const char *option, const char *argument, int64_t most, int64_t *out) {
  if (ax_integer_parse(argument, out) && *out >= 0 && *out <= most) return AX_OK;
  return ax_error(AX_INVALID_ARGUMENT, "%s: expected a number of at most %lld, got \"%s\"", option, (long long)most,
                  argument);
}

static ax_status take_policy(run *run, const char *argument) {
  static const char *const names[] = {"parallel", "fixed", "seeded"};
  for (size_t i = 0; i < AX_COUNT(names); i++) {
    if (strcmp(names[i], argument) != 0) continue;
    run->options.policy = (ax_policy)i;
    return AX_OK;
  }
  return ax_error(AX_INVALID_ARGUMENT, "--policy: expected parallel, fixed or seeded, got \"%s\"", argument);
}

static ax_status take_option(void *context, int value, const char *argument) {
  run *run = context;
  int64_t number = 0;
  switch (value) {
    case option_in: return take_pair(&run->in, "--in", argument);
    case option_out: return take_pair(&run->out, "--out", argument);
    case option_contraction: return take_contraction(argument, &run->contraction);
    case option_policy: return take_policy(run, argument);
    case option_processes: return take_processes(argument, &run->options.processes);
    case option_mesh:
    case option_in_sharding:
    case option_out_sharding:
    case option_dim:
    case option_ffi: return shardings_take(&run->shardings, value, argument);
    case option_seed:
      AX_TRY(take_number("--seed", argument, INT64_MAX, &number));
      run->options.seed = (uint64_t)number;
      return AX_OK;
    case option_plugin_option: return plugin_take(&run->plugin, argument);
    case option_subnormals: return take_subnormals(argument, &run->subnormals);
    default:
      AX_TRY(take_number("--workers", argument, 4096, &number));
      run->options.workers = (uint32_t)number;
      return AX_OK;
  }
}

static const char notes[] =
    "NAME is what the text calls an input or a result, its number from 0, or its letter in the printed form.\n"
    "VALUE is a .npy file, an array of an .npz file (FILE.npz:MEMBER), or a literal (0.5:f32[8,4], [1, 2]:s32[2]).\n\n"
    "A program with a shard_map carries its mesh and takes whole arrays. One without runs on --mesh as --in-sharding and\n"
    "--out-sharding say of some of its inputs and results (an axis, _ or axes joined by + for each dimension). A per-device\n"
    "program (one that begins with `axes`) runs on its axes, or on those of --mesh, which has the same names and may have other\n"
    "sizes. An input that varies over axes of n devices in all is given as one array: of the input's shape (the same on each\n"
    "device), with one dimension of n more in front (one for each), or with one dimension n times as long (cut). Results that\n"
    "vary have one dimension of n more in front.\n\n"
    "With --plugin the program is compiled and run by a plugin of PJRT, as JAX has them, on its devices. Names that begin with xla_\n"
    "are options of its compiler, others of its client.\n\n"
    "  axle run f.axle --in x=x.npy --in w=0.1:f32[4,2] --out y=y.npy\n"
    "  axle run f.axle --mesh data=4,model=2 --in-sharding x=data --in-sharding w=_,model --in x=x.npy --in w=w.npy\n"
    "  axle run device.axle --mesh data=4,model=2 --in x=x.npy\n"
    "  axle run f.axle --in x=x.npy --plugin libpjrt_cpu.so --plugin-option cpu_device_count=8\n";

static const char trace_notes[] =
    "Options, NAME and VALUE are those of axle run. The timeline has a track for each device, with kernels, products, exchanges\n"
    "and waits by the names of their equations, and one for each thread. https://ui.perfetto.dev and chrome://tracing show it.\n"
    "As text (--timeline - or a FILE that does not end in .json) it has a row for each thread and each device.\n\n"
    "  axle trace f.axle --mesh data=4 --in-sharding x=data --in x=x.npy --timeline f.json\n";

static int main_of(bool traces, int argc, const char **argv) {
  run run = {.traces = traces};
  struct poptOption table[] = {
      {"in", 'i', POPT_ARG_STRING, NULL, option_in, "An input", "NAME=VALUE"},
      {"out", 'o', POPT_ARG_STRING, NULL, option_out, "Write a result as .npy; without any, all are printed", "NAME=FILE"},
      SHARDING_OPTIONS,
      {"convert", '\0', POPT_ARG_NONE, &run.convert, 0, "Convert inputs to the program's dtypes", NULL},
      {"reference", '\0', POPT_ARG_NONE, &run.reference, 0, "Run by the plain reference code, not compiled", NULL},
      {"check-numerics", '\0', POPT_ARG_NONE, &run.check_nan, 0, "Fail, and say where, when an equation makes a NaN", NULL},
      {"check-infinities", '\0', POPT_ARG_NONE, &run.check_inf, 0, "The same for an infinity", NULL},
      {"late-sums", '\0', POPT_ARG_NONE, &run.late_sums, 0, "Sums over devices that loops add to a carry are made behind the loop", NULL},
      {"subnormals", '\0', POPT_ARG_STRING, NULL, option_subnormals,
       "keep, or flush to zero (the default, unless AXLE_SUBNORMALS says keep)", "HOW"},
      {"contraction", '\0', POPT_ARG_STRING, NULL, option_contraction,
       "exact (the default, unless AXLE_CONTRACTION says fused), or fused: products that are added are not rounded first", "HOW"},
      {"timeline", '\0', POPT_ARG_STRING, &run.timeline, 0,
       "Write what each device did when: text (-: here), or .json for Perfetto", "FILE"},
      {"policy", '\0', POPT_ARG_STRING, NULL, option_policy, "Order of the devices: parallel, fixed, seeded", "POLICY"},
      PROCESSES_OPTION(option_processes),
      {"seed", '\0', POPT_ARG_STRING, NULL, option_seed, "For --policy seeded", "N"},
      {"workers", '\0', POPT_ARG_STRING, NULL, option_workers, "Threads (0: as many as processors this process may use)", "N"},
      {"code-cache", '\0', POPT_ARG_STRING, &run.code_cache, 0, "Folder of compiled code: a path, user or off", "FOLDER"},
      PLUGIN_OPTIONS(&run.plugin.path, option_plugin_option),
      PLUGIN_PARTITIONS_OPTION(&run.plugin.partitions),
      PLUGIN_PRECISION_OPTION(&run.plugin.precision),
      POPT_TABLEEND,
  };
  if (traces) table[AX_COUNT(table) - 5] = table[AX_COUNT(table) - 1]; /* plugins have no timelines */
  const option_set set = {
      .command = traces ? "trace" : "run",
      .usage = "FILE [OPTION...]",
      .table = table,
      .notes = traces ? trace_notes : notes,
      .summary = traces ? "Runs the program in FILE (- for standard input) and writes what each device did when: as JSON for "
                          "Perfetto to trace.json, or as --timeline says."
                        : "Runs the program in FILE (- for standard input).",
      .handle = take_option,
      .context = &run,
      .wants_file = true};
  char *file = NULL;
  bool done;
  int code = read_options(&set, argc, argv, &file, &done);
  if (traces && run.timeline == NULL) run.timeline = strdup("trace.json");
  if (code == EXIT_OK && !done && run_program(&run, file) != AX_OK) code = report_error();
  deinit(&run);
  free(file);
  return code;
}

int run_main(int argc, const char **argv) { return main_of(false, argc, argv); }
int trace_main(int argc, const char **argv) { return main_of(true, argc, argv); }
