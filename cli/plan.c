/* axle plan: chooses a mesh and layouts for a program, or for the training of a model, on a machine that is described. */
#include "axle/planner.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "cli.h"
#include "ir/program.h"
#include "planner/step.h"

typedef struct plan {
  ax_planner_options options;
  int train;
  char *machine, *batch, *write, *timeline;
  ax_mesh mesh; /* of one strategy that is timed */
  ax_strategy given;
  bool is_given;
  const char *of_mesh, *of_stages; /* the last option of those that go with --mesh, and with its `pipe`; NULL: none was given */
  int64_t which; /* strategy that is written, from 1 on */
  ax_optimizer optimizer;
  source source;
  shardings shardings; /* extents that a module leaves open */
  uint32_t *inputs; /* numbers of the batch's */
  char (*names)[AX_MAX_LEAF_NAME]; /* of all inputs */
  const char **name_list;
} plan;

enum {
  option_devices = 1,
  option_samples,
  option_memory,
  option_seconds,
  option_keep,
  option_one,
  option_microbatches,
  option_saves,
  option_schedule,
  option_chunks,
  option_which,
  option_optimizer
};

/* Marks the inputs that are named, with "," between. */
static ax_status mark_named(const plan *p, bool *marked) {
  for (const char *at = p->batch; *at != '\0';) {
    const size_t length = strcspn(at, ",");
    const int64_t input = source_find_input(&p->source, at, length);
    if (input < 0) return ax_error(AX_INVALID_ARGUMENT, "--batch: there is no input '%.*s'", (int)length, at);
    marked[input] = true;
    at += length + (at[length] == ',');
  }
  return AX_OK;
}

/* Bytes of the argument's name in the name of an input, as JAX has them: params of params['w'][0] and of params.layers[0]. */
static size_t argument_length(const char *name) { return strcspn(name, "[."); }

/* Marks the inputs of all arguments but the first, if that is one of several arrays: a tree of parameters. */
static void mark_other_arguments(const plan *p, bool *marked) {
  const char *first = source_input_name(&p->source, 0);
  const size_t length = argument_length(first);
  for (uint32_t i = 0; first[length] != '\0' && i < p->source.program->in_count; i++) {
    const char *name = source_input_name(&p->source, i);
    marked[i] = argument_length(name) != length || memcmp(name, first, length) != 0;
  }
}

/* Finds which inputs are a sample's, by --batch or by their names. The planner finds it by their types if there are none. */
static ax_status find_batch(plan *p) {
  const uint32_t count = p->source.program->in_count;
  if (!p->train || count == 0) return AX_OK;
  bool *marked = ax_calloc((size_t)count + 1, sizeof marked[0]);
  p->inputs = ax_calloc((size_t)count + 1, sizeof p->inputs[0]);
  ax_status status = marked != NULL && p->inputs != NULL ? AX_OK : ax_out_of_memory(count);
  if (status == AX_OK && p->batch != NULL) status = mark_named(p, marked);
  else if (status == AX_OK) mark_other_arguments(p, marked);
  for (uint32_t i = 0; status == AX_OK && i < count; i++)
    if (marked[i]) p->inputs[p->options.batch.count++] = i;
  p->options.batch.list = p->inputs;
  ax_free(marked);
  return status;
}

/* Which inputs were taken for a sample's, where that was not said. */
static void tell_batch(const plan *p) {
  const ax_program *program = p->source.program;
  if (!p->train || p->batch != NULL || program->in_count == 0) return;
  const uint32_t first = ax_model_first_of_batch(program);
  printf("a sample is");
  if (p->options.batch.count > 0) {
    const char *params = source_input_name(&p->source, 0);
    for (uint32_t k = 0; k < p->options.batch.count; k++) printf(" %s", source_input_name(&p->source, p->inputs[k]));
    printf("; the inputs of %.*s are parameters (--batch says otherwise)\n", (int)argument_length(params), params);
    return;
  }
  for (uint32_t i = first; i < program->in_count; i++) printf(" %s", source_input_name(&p->source, i));
  if (first == 0) printf("; there are no parameters (--batch says otherwise)\n");
  else
    printf("; the inputs before are parameters, up to %s %s (--batch says otherwise)\n", source_input_name(&p->source, first - 1),
           ax_type_string(&program->types[first - 1], &program->axes));
}

/* The most devices, of so many, that divide the samples, or are a multiple of them. */
static int64_t even_devices(int64_t samples, int64_t devices) {
  if (devices > samples) return devices - devices % samples;
  while (samples % devices != 0) devices--;
  return devices;
}

/* What may keep a search from a good mesh, and what would not. */
static void tell_samples(const plan *p) {
  const int64_t samples = p->options.samples > 0 ? p->options.samples : 1;
  const int64_t devices = p->options.devices, more = samples > devices ? samples : devices, fewer = samples > devices ? devices : samples;
  if (p->train && p->options.samples == 0) printf("a step has one sample (--samples says otherwise)\n");
  if (!p->train || p->is_given || more % fewer == 0) return;
  printf("%lld samples and %lld devices: the one does not divide the other, so few meshes cut samples evenly; --devices %lld", (long long)samples,
         (long long)devices, (long long)even_devices(samples, devices));
  if (samples > devices && samples <= INT64_MAX - devices)
    printf(", --samples %lld and --samples %lld do", (long long)(samples - samples % devices), (long long)(samples - samples % devices + devices));
  else printf(" and --samples %lld do", (long long)devices);
  printf("\n");
}

/* Axes of one device, which do nothing, may be left out. */
static void leave_out_ones(const ax_mesh *mesh, ax_mesh *out) {
  *out = (ax_mesh){0};
  for (uint32_t a = 0; a < mesh->count; a++)
    if (mesh->axis[a].size > 1) out->axis[out->count++] = mesh->axis[a];
}

/* Axes are called by what they do at last, which may be faster than what their names said. */
static void tell_names(const plan *p, const ax_mesh *found) {
  ax_mesh asked, shown;
  leave_out_ones(&p->mesh, &asked);
  leave_out_ones(found, &shown);
  bool same = asked.count == shown.count;
  for (uint32_t a = 0; a < asked.count && same; a++) same = strcmp(asked.axis[a].name, shown.axis[a].name) == 0;
  if (same) return;
  printf("the axes of --mesh are called by what they do where that is faster than what their names say:");
  for (uint32_t a = 0; a < shown.count; a++)
    printf("%s%s=%lld", a > 0 ? "," : " ", shown.axis[a].name, (long long)shown.axis[a].size);
  printf("\n");
}

/* Inputs are called in errors and tables as the command line calls them. */
static ax_status name_inputs(plan *p) {
  const uint32_t count = p->source.program->in_count;
  p->names = ax_calloc((size_t)count + 1, sizeof p->names[0]);
  p->name_list = ax_calloc((size_t)count + 1, sizeof p->name_list[0]);
  if (p->names == NULL || p->name_list == NULL) return ax_out_of_memory(count);
  for (uint32_t i = 0; i < count; i++) {
    snprintf(p->names[i], sizeof p->names[i], "%s", source_input_name(&p->source, i));
    p->name_list[i] = p->names[i];
  }
  p->options.input_names = p->name_list;
  return AX_OK;
}

static ax_status print(const plan *p, const ax_strategies *found) {
  char *text;
  AX_TRY(ax_strategies_print(found, p->source.program->in_count, p->options.input_names, &text));
  tell_batch(p);
  tell_samples(p);
  if (p->is_given) tell_names(p, &found->list[0].mesh);
  fputs(text, stdout);
  ax_string_free(text);
  return AX_OK;
}

static ax_status write_pipeline(const char *path, const char *picture) {
  if (!is_picture(path)) return ax_error(AX_ABSENT, "--timeline: a pipeline's is a picture: give it a name that ends in .svg");
  return write_file(path, picture, strlen(picture));
}

/* "dir/step.axle" as "dir/step.first.forward.axle". */
static ax_status name_part(const char *path, const char *piece, const char *pass, char **out) {
  const char *slash = strrchr(path, '/'), *dot = strrchr(slash != NULL ? slash : path, '.');
  const int stem = (int)(dot != NULL ? dot - path : (ptrdiff_t)strlen(path));
  ax_text text = {0};
  ax_text_add(&text, "%.*s.%s.%s%s", stem, path, piece, pass, path + stem);
  return ax_text_finish(&text, out);
}

static ax_status write_pass(const plan *p, const ax_program *program, const char *piece, const char *pass) {
  char *path, *text = NULL;
  AX_TRY(name_part(p->write, piece, pass, &path));
  ax_status status = ax_program_print(program, &text);
  if (status == AX_OK) status = write_file(path, text, strlen(text));
  if (status == AX_OK) printf("%s\n", path);
  ax_string_free(text);
  ax_string_free(path);
  return status;
}

/* The programs of a pipeline's first part, of one in the middle and of the last. */
static ax_status write_parts(const plan *p, const ax_strategy *strategy) {
  static const char *const names[] = {"first", "middle", "last"};
  const int64_t parts = strategy->stages * strategy->chunks, numbers[] = {0, 1, parts - 1};
  printf("\nprograms of %lld parts:\n", (long long)parts);
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    ax_stage_programs made;
    if (i == 1 && parts < 3) continue;
    AX_TRY(ax_planner_stage(p->source.program, &p->options, strategy, numbers[i], &made));
    ax_status status = write_pass(p, made.forward, names[i], "forward");
    if (status == AX_OK) status = write_pass(p, made.backward, names[i], "backward");
    if (status == AX_OK) status = write_pass(p, made.update, names[i], "update");
    ax_stage_programs_release(&made);
    AX_TRY(status);
  }
  return AX_OK;
}

/* The program of the strategy that is asked for, the first, as text, and a simulation of it; of a pipeline its picture, and the programs of its parts. */
static ax_status write_first(const plan *p, const ax_cluster *machine, const ax_strategies *found) {
  ax_program *program = NULL;
  ax_lowered *lowered = NULL;
  ax_simulation simulation = {0};
  char *text = NULL;
  const int64_t which = p->which > 0 ? p->which : 1;
  if (p->write == NULL && p->timeline == NULL) return AX_OK;
  if (which > found->count) return ax_error(AX_ABSENT, "--write, --timeline: there is no strategy %lld (--keep keeps more)", (long long)which);
  const ax_strategy *first = &found->list[which - 1];
  if (first->stages > 1 && p->timeline != NULL) AX_TRY(write_pipeline(p->timeline, first->picture));
  if (first->stages > 1) return p->write != NULL ? write_parts(p, first) : AX_OK;
  ax_status status = ax_planner_program(p->source.program, &p->options, first, &program);
  if (status == AX_OK && p->write != NULL) status = ax_program_print(program, &text);
  if (status == AX_OK && p->write != NULL) status = write_file(p->write, text, strlen(text));
  if (status == AX_OK && p->timeline != NULL) {
    status = ax_program_lower(program, &(ax_compile_options){.late_sums = true}, &lowered);
    if (status == AX_OK) status = ax_simulate(lowered, machine, NULL, &simulation);
    if (status == AX_OK) status = timeline_write(p->timeline, &simulation);
  }
  ax_string_free(text);
  ax_simulation_release(&simulation);
  ax_lowered_release(lowered);
  ax_program_release(program);
  return status;
}

/* The best over the mesh that is given. */
static ax_status search_given(plan *p, const ax_cluster *machine, ax_strategies *out) {
  p->options.mesh = &p->mesh;
  if (p->options.keep == 0) p->options.keep = 1;
  return ax_planner_search(p->source.program, machine, &p->options, out);
}

/* The strategy that is given alone, as if it had been found. A first axis `pipe` of its mesh is the stages. */
static ax_status time_given(plan *p, const ax_cluster *machine, ax_strategies *out) {
  const bool piped = p->mesh.count > 0 && strcmp(p->mesh.axis[0].name, "pipe") == 0;
  const double began = ax_seconds();
  ax_strategy *timed = ax_calloc(1, sizeof *timed);
  if (timed == NULL) return ax_out_of_memory(sizeof *timed);
  p->given.mesh = p->mesh;
  if (piped) {
    p->given.stages = p->mesh.axis[0].size;
    p->given.mesh.count--;
    memmove(p->given.mesh.axis, p->mesh.axis + 1, p->given.mesh.count * sizeof p->mesh.axis[0]);
    if (p->given.schedule == AX_PIPELINE_NONE) p->given.schedule = AX_PIPELINE_1F1B;
    if (p->given.stages == 1) p->given.schedule = AX_PIPELINE_NONE;
  }
  const ax_status status = ax_planner_time(p->source.program, machine, &p->options, &p->given, timed);
  *out = (ax_strategies){.count = 1, .list = timed, .devices = (double)p->options.devices, .tried = 1, .complete = true,
                         .seconds = ax_seconds() - began};
  if (status != AX_OK) ax_strategies_release(out);
  return status;
}

/* As many devices as the mesh of --mesh has. */
static ax_status take_devices(plan *p) {
  const int64_t devices = ax_mesh_devices(&p->mesh);
  if (p->options.devices > 0 && p->options.devices != devices)
    return ax_error(AX_INVALID_ARGUMENT, "--mesh: it has %lld devices, and --devices says %lld", (long long)devices,
                    (long long)p->options.devices);
  p->options.devices = devices;
  return AX_OK;
}

/* Options that would go unheard are slips. */
static ax_status check_options(const plan *p) {
  const bool piped = p->is_given && strcmp(p->mesh.axis[0].name, "pipe") == 0 && p->mesh.axis[0].size > 1;
  AX_TRY(timeline_check(p->timeline));
  if (!p->train && p->options.samples > 0) return ax_error(AX_INVALID_ARGUMENT, "--samples is of --train");
  if (!p->train && p->batch != NULL) return ax_error(AX_INVALID_ARGUMENT, "--batch is of --train");
  if (!p->train && p->options.optimizer != NULL) return ax_error(AX_INVALID_ARGUMENT, "--optimizer is of --train");
  if (!p->is_given && p->of_mesh != NULL)
    return ax_error(AX_INVALID_ARGUMENT, "%s is of --mesh, which says one way to be timed; the search finds it by itself", p->of_mesh);
  if (!piped && p->of_stages != NULL)
    return ax_error(AX_INVALID_ARGUMENT, "%s is of stages: --mesh pipe=P,data=N, with more than one", p->of_stages);
  return AX_OK;
}

/* A search that found nothing of use has failed, though its table shows what came nearest. What --mesh says is timed whether it
   fits or not, and its row says which. */
static ax_status check_found(const plan *p, const ax_strategies *found) {
  const char *more = found->complete ? "" : "; the time was over, and with --seconds there is more to try";
  if (p->is_given || found->list[0].fits) return AX_OK;
  return ax_error(
      AX_INVALID_ARGUMENT,
      "nothing was found that fits: a device has %.4g bytes, and the way that takes the least needs %.4g; give it more devices, "
      "or devices of more memory (--devices, --cluster, --memory)%s",
      found->capacity, found->list[0].memory.total, more);
}

static ax_status plan_path(plan *p, const char *path) {
  ax_cluster *machine = NULL;
  ax_strategies found = {0};
  AX_TRY(check_options(p));
  if (p->is_given) AX_TRY(take_devices(p));
  AX_TRY(source_read(path, &p->shardings, NULL, &p->source));
  AX_TRY(name_inputs(p));
  AX_TRY(find_batch(p));
  p->options.train = p->train;
  ax_status status = ax_cluster_read(p->machine != NULL ? p->machine : "h200", &machine);
  if (status == AX_OK && p->is_given)
    status = p->of_mesh != NULL ? time_given(p, machine, &found) : search_given(p, machine, &found);
  else if (status == AX_OK) status = ax_planner_search(p->source.program, machine, &p->options, &found);
  if (status == AX_OK) status = print(p, &found);
  if (status == AX_OK) status = check_found(p, &found);
  if (status == AX_OK) status = write_first(p, machine, &found);
  ax_strategies_release(&found);
  ax_cluster_release(machine);
  return status;
}

/* --- The command line --- */

static ax_status take_number(const char *option, const char *argument, double *out) {
  char *end;
  *out = strtod(argument, &end);
  return end != argument && *end == '\0' && *out > 0 && isfinite(*out)
             ? AX_OK
             : ax_error(AX_INVALID_ARGUMENT, "%s: not a positive number: %s", option, argument);
}

static const char *policy_name(int value) { return ax_checkpoint_policy_name((ax_checkpoint_policy)value); }
static const char *schedule_name(int value) { return ax_pipeline_schedule_name((ax_pipeline_schedule)value); }

static ax_status find_name(const char *argument, const char *option, int count, const char *(*name)(int), int *out) {
  ax_text text = {0};
  for (int i = 0; i < count; i++) {
    ax_text_add(&text, "%s%s", i > 0 ? ", " : "", name(i));
    if (strcmp(name(i), argument) != 0) continue;
    *out = i;
    ax_text_deinit(&text);
    return AX_OK;
  }
  const ax_status status = ax_error(AX_INVALID_ARGUMENT, "%s: '%s' is none of %s", option, argument, text.data != NULL ? text.data : "");
  ax_text_deinit(&text);
  return status;
}

typedef struct named_optimizer {
  const char *name;
  ax_optimizer (*make)(ax_schedule learning_rate);
} named_optimizer;

static const named_optimizer optimizers[] = {{"sgd", ax_sgd},         {"adam", ax_adam},       {"adamw", ax_adamw},
                                             {"lamb", ax_lamb},       {"lion", ax_lion},       {"rmsprop", ax_rmsprop},
                                             {"adagrad", ax_adagrad}, {"adafactor", ax_adafactor}};
static const char *optimizer_name(int value) { return optimizers[value].name; }

/* How fast it learns takes no time. */
static ax_status take_optimizer(plan *p, const char *argument) {
  int found;
  AX_TRY(find_name(argument, "--optimizer", (int)(sizeof optimizers / sizeof optimizers[0]), optimizer_name, &found));
  p->optimizer = optimizers[found].make(ax_constant_schedule(1e-3));
  p->options.optimizer = &p->optimizer;
  return AX_OK;
}

/* Options that say how the way of --mesh is done. */
static void note_option(plan *p, int value) {
  if (value == option_microbatches) p->of_mesh = "--microbatches";
  if (value == option_saves) p->of_mesh = "--saves";
  if (value == option_schedule) p->of_mesh = p->of_stages = "--schedule";
  if (value == option_chunks) p->of_mesh = p->of_stages = "--chunks";
}

static ax_status take_option(void *context, int value, const char *argument) {
  plan *p = context;
  int64_t count = 0;
  note_option(p, value);
  switch (value) {
    case option_devices: return take_count("--devices", argument, INT64_MAX, &p->options.devices);
    case option_samples: return take_count("--samples", argument, INT64_MAX, &p->options.samples);
    case option_memory: return take_number("--memory", argument, &p->options.memory);
    case option_one:
      p->is_given = true;
      return ax_mesh_parse(argument, &p->mesh);
    case option_microbatches: return take_count("--microbatches", argument, INT64_MAX, &p->given.microbatches);
    case option_chunks: return take_count("--chunks", argument, INT64_MAX, &p->given.chunks);
    case option_saves: return find_name(argument, "--saves", AX_CHECKPOINT_POLICY_COUNT, policy_name, (int *)&p->given.saved);
    case option_schedule: return find_name(argument, "--schedule", AX_PIPELINE_SCHEDULE_COUNT, schedule_name, (int *)&p->given.schedule);
    case option_which: return take_count("--number", argument, INT64_MAX, &p->which);
    case option_optimizer: return take_optimizer(p, argument);
    case option_dim: return shardings_take(&p->shardings, value, argument);
    case option_seconds: return take_number("--seconds", argument, &p->options.seconds);
    default:
      AX_TRY(take_count("--keep", argument, INT64_MAX, &count));
      p->options.keep = count < 100 ? (uint32_t)count : 100;
      return AX_OK;
  }
}

static const char notes[] =
    "Nothing is run. Each way to cut the program over a mesh of so many devices is simulated (axle simulate), within the memory of a\n"
    "device. docs/planner.md says how it searches.\n\n"
    "  axle plan layer.axle --cluster tpu-v5p --devices 64\n"
    "  axle plan loss.axle --train --samples 1024 --cluster h200 --devices 4096 --write step.axle\n"
    "  axle plan loss.axle --train --samples 1024 --mesh pipe=8,data=64,model=8 --microbatches 16 --schedule interleaved --chunks 2\n";

/* A search allocates and frees the same few megabytes for each program that it tries. If they went back to the system each time, it would
   clear them each time, which takes a sixth of a search. */
static void keep_freed_memory(void) {
#ifdef __GLIBC__
  enum { kept = 1 << 30, large = 32 << 20, steps = 16 << 20 };
  (void)!mallopt(M_TRIM_THRESHOLD, kept);
  (void)!mallopt(M_MMAP_THRESHOLD, large);
  (void)!mallopt(M_TOP_PAD, steps);
#endif
}

int plan_main(int argc, const char **argv) {
  plan p = {0};
  const struct poptOption table[] = {
      {"cluster", 'c', POPT_ARG_STRING, &p.machine, 0, "A machine's name, or a file that describes one (h200)", "NAME|FILE"},
      {"machine", 'M', POPT_ARG_STRING, &p.machine, 0, "The same, as other commands have it", "NAME|FILE"},
      {"devices", 'd', POPT_ARG_STRING, NULL, option_devices, "How many devices it has", "N"},
      {"train", 't', POPT_ARG_NONE, &p.train, 0, "FILE is a model's loss of one sample: plan the step that trains it", NULL},
      {"samples", 's', POPT_ARG_STRING, NULL, option_samples, "Samples of a step (1)", "N"},
      {"batch", 'b', POPT_ARG_STRING, &p.batch, 0, "The inputs that are a sample's; the others are parameters", "NAME,.."},
      {"memory", '\0', POPT_ARG_STRING, NULL, option_memory, "Bytes of a device, as 80e9 (what the machine's description says)",
       "BYTES"},
      {"seconds", '\0', POPT_ARG_STRING, NULL, option_seconds, "When the search ends (60)", "SECONDS"},
      {"mesh", 'm', POPT_ARG_STRING, NULL, option_one,
       "This mesh alone: data=N, expert=N, sequence=N, model=N, as the table has them, before them pipe=P if any", "AXIS=N,.."},
      {"microbatches", '\0', POPT_ARG_STRING, NULL, option_microbatches, "With --mesh: into how many a batch is divided (1)", "N"},
      {"saves", '\0', POPT_ARG_STRING, NULL, option_saves, "With --mesh: what layers keep for gradients: everything, dots, nothing",
       "WHAT"},
      {"schedule", '\0', POPT_ARG_STRING, NULL, option_schedule, "With --mesh: gpipe, 1f1b, interleaved, zero-bubble (1f1b)",
       "SCHEDULE"},
      {"chunks", '\0', POPT_ARG_STRING, NULL, option_chunks, "With --mesh: parts of the layers on each stage (1)", "N"},
      {"optimizer", '\0', POPT_ARG_STRING, NULL, option_optimizer,
       "With --train: sgd, adam, adamw, lamb, lion, rmsprop, adagrad, adafactor (adam)", "NAME"},
      {"write", 'o', POPT_ARG_STRING, &p.write, 0,
       "Write the program of the first strategy, with its layouts; of a pipeline those of its parts", "FILE"},
      {"number", 'n', POPT_ARG_STRING, NULL, option_which, "Which strategy --write and --timeline are of (1)", "N"},
      {"timeline", '\0', POPT_ARG_STRING, &p.timeline, 0,
       "Write what each device does when in the first: .svg, or .json for Perfetto", "FILE"},
      {"dim", '\0', POPT_ARG_STRING, NULL, option_dim, "An extent that a StableHLO module leaves open: b=8, or x.0=8", "NAME=N"},
      {"keep", '\0', POPT_ARG_STRING, NULL, option_keep, "How many ways are printed (5)", "N"},
      POPT_TABLEEND,
  };
  const option_set set = {.command = "plan",
                          .usage = "FILE --devices N [OPTION...]",
                          .summary = "Chooses a mesh, and how the arrays of the program in FILE lie over it, by simulated time.",
                          .table = table,
                          .notes = notes,
                          .handle = take_option,
                          .context = &p,
                          .wants_file = true};
  char *file = NULL;
  bool done;
  keep_freed_memory();
  int code = read_options(&set, argc, argv, &file, &done);
  if (code == EXIT_OK && !done && p.options.devices == 0 && !p.is_given) code = usage_error("plan", "how many devices? --devices N");
  else if (code == EXIT_OK && !done && plan_path(&p, file) != AX_OK) code = report_error();
  source_deinit(&p.source);
  shardings_deinit(&p.shardings);
  ax_free(p.inputs);
  ax_free(p.names);
  ax_free(p.name_list);
  free(p.machine);
  free(p.batch);
  free(p.write);
  free(p.timeline);
  free(file);
  return code;
}
