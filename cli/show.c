/* axle show: shows a program after the passes asked for. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "axle/exec.h"
#include "axle/stablehlo.h"
#include "axle/stages.h"
#include "axle/transform.h"
#include "array/executable.h"
#include "base/shared.h"
#include "cli.h"
#include "ir/prim.h"

typedef struct show {
  word_list passes, wrt, linear;
  shardings shardings;
  spread spread; /* for the cost, and for "auto" */
  char *after; /* --after: the pass to stop after; NULL: none */
  int cost, memory; /* --cost, --memory: the last pass */
  int module;       /* --module: the module that was read, and no program */
  char *bytecode, *target; /* --bytecode, --target: where a module goes, and the version of VHLO; NULL: as text */
  int64_t size;
  char *axis_name;
  source source;      /* the program after the passes so far */
  uint32_t residuals; /* after linearize: how many first inputs are residuals, in which the tangent is not linear */
  ax_program *primal; /* after linearize: the primal; printed if linearize is the last pass */
} show;

enum { option_pass = 1, option_after, option_wrt, option_linear, option_size, option_axis, option_bytecode, option_target };

static ax_status split(word_list *list, const char *words) {
  for (const char *word = words;;) {
    const char *comma = strchr(word, ',');
    AX_TRY(word_list_add(list, word, comma != NULL ? (size_t)(comma - word) : strlen(word)));
    if (comma == NULL) return AX_OK;
    word = comma + 1;
  }
}

/* --- Transforms --- */

/* Finds the inputs of these names; if there are no names, *out is `otherwise`. *list is the caller's: ax_free. */
static ax_status choose(const show *show, const word_list *names, ax_args otherwise, ax_args *out, uint32_t **list) {
  const uint32_t count = show->source.program->in_count;
  *list = NULL;
  *out = otherwise;
  if (names->count == 0) return AX_OK;
  bool *chosen = ax_calloc(count + 1, sizeof chosen[0]);
  *list = ax_calloc(count + 1, sizeof **list);
  ax_status status = chosen != NULL && *list != NULL ? AX_OK : ax_out_of_memory(count);
  for (uint32_t i = 0; i < names->count && status == AX_OK; i++) {
    int64_t index = source_find_input(&show->source, names->words[i], strlen(names->words[i]));
    if (index < 0) status = ax_error(AX_INVALID_ARGUMENT, "the program has no input \"%s\"", names->words[i]);
    else chosen[index] = true;
  }
  *out = (ax_args){.list = *list};
  for (uint32_t i = 0; i < count && status == AX_OK; i++)
    if (chosen[i]) (*list)[out->count++] = i;
  ax_free(chosen);
  return status;
}

/* Differentiates by the inputs that --wrt names; by default by the first input for a gradient, and by all floats for a jvp. */
static ax_status differentiate(show *show, ax_status (*how)(const ax_program *, ax_args, ax_program **), ax_program **out) {
  ax_args wrt;
  uint32_t *list;
  ax_status status = choose(show, &show->wrt, how == ax_program_jvp ? AX_ALL_ARGS : AX_FIRST(1), &wrt, &list);
  if (status == AX_OK) status = how(show->source.program, wrt, out);
  ax_free(list);
  return status;
}

static ax_status jvp(show *show, ax_program **out) { return differentiate(show, ax_program_jvp, out); }
static ax_status grad(show *show, ax_program **out) { return differentiate(show, ax_program_grad, out); }
static ax_status value_and_grad(show *show, ax_program **out) { return differentiate(show, ax_program_value_and_grad, out); }

static ax_status linearize(show *show, ax_program **out) {
  ax_args wrt;
  uint32_t *list;
  ax_program_release(show->primal);
  show->primal = NULL;
  ax_status status = choose(show, &show->wrt, AX_ALL_ARGS, &wrt, &list);
  if (status == AX_OK) status = ax_program_linearize(show->source.program, wrt, &show->primal, out, &show->residuals);
  ax_free(list);
  return status;
}

/* The program is taken as linear in the inputs that --linear names; by default in those that linearize says, else in all
   floats. */
static ax_status transpose(show *show, ax_program **out) {
  const ax_program *program = show->source.program;
  ax_args linear, otherwise = show->residuals > 0 ? AX_RANGE(show->residuals, program->in_count - show->residuals) : AX_ALL_ARGS;
  uint32_t *list;
  ax_status status = choose(show, &show->linear, otherwise, &linear, &list);
  if (status == AX_OK) status = ax_program_transpose(program, linear, out);
  ax_free(list);
  return status;
}

static ax_status vmap(show *show, ax_program **out) {
  return ax_program_vmap(show->source.program, &(ax_vmap_options){.size = show->size, .axis_name = show->axis_name}, out);
}

static ax_status dce(show *show, ax_program **out) { return ax_program_dce(show->source.program, out); }
static ax_status cse(show *show, ax_program **out) { return ax_program_cse(show->source.program, out); }
static ax_status simplify(show *show, ax_program **out) { return ax_program_simplify(show->source.program, out); }
static ax_status explicit_types(show *show, ax_program **out) { return ax_program_explicit(show->source.program, out); }
static ax_status types(show *show, char **out) { return ax_program_print_shardings(show->source.program, out); }

/* Where --in-sharding says how a program lies, its mesh is in it already. */
static ax_status compiled_form(const show *show, ax_program **out) {
  const shardings *s = &show->shardings;
  return whole_compiled(&show->source, s->has_mesh && !shardings_given(s) ? &s->mesh : NULL, out);
}

static ax_status partition(show *show, ax_program **out) {
  ax_program *program;
  *out = NULL;
  AX_TRY(compiled_form(show, &program));
  ax_status status = ax_program_partition(program, out);
  ax_program_release(program);
  return status;
}

/* --- Passes that end in text --- */

/* Gives the result of one pass on the way to an executable, as text. */
static ax_status after(const show *show, const char *pass, char **out) {
  ax_program *program = NULL;
  ax_runtime *runtime = NULL;
  *out = NULL;
  ax_status status = compiled_form(show, &program);
  if (status == AX_OK) status = ax_runtime_create(NULL, &runtime);
  ax_rates rates;
  const bool bounds = strcmp(pass, "codegen") == 0;
  if (bounds) keep_speeds(), rates = ax_rates_measured(ax_machine_threads());
  if (status == AX_OK) status = ax_text_after(runtime, program, pass, bounds ? &rates : NULL, out);
  ax_runtime_release(runtime);
  ax_program_release(program);
  return status;
}

static ax_status lower(show *show, char **out) { return after(show, "coalesce", out); }

static ax_status stablehlo(show *show, char **out) { return ax_program_stablehlo(show->source.program, out); }

static ax_status executable(show *show, char **out) {
  ax_program *program = NULL;
  ax_runtime *runtime = NULL;
  ax_executable *made = NULL;
  *out = NULL;
  ax_status status = compiled_form(show, &program);
  if (status == AX_OK) status = ax_runtime_create(NULL, &runtime);
  if (status == AX_OK) status = ax_compile(runtime, program, NULL, &made);
  if (status == AX_OK) status = ax_executable_text(made, out);
  ax_executable_release(made);
  ax_runtime_release(runtime);
  ax_program_release(program);
  return status;
}

static ax_status cost(show *show, char **out) {
  ax_program *program;
  ax_cost of = {0};
  *out = NULL;
  AX_TRY(compiled_form(show, &program));
  ax_status status = ax_program_cost_over(program, &show->spread.layout, &of);
  if (status == AX_OK) status = ax_cost_text(&of, out);
  ax_cost_release(&of);
  ax_program_release(program);
  return status;
}

static ax_status memory(show *show, char **out) {
  ax_program *program = NULL;
  ax_runtime *runtime = NULL;
  *out = NULL;
  ax_status status = compiled_form(show, &program);
  if (status == AX_OK) status = ax_runtime_create(NULL, &runtime);
  if (status == AX_OK) status = ax_memory_text(runtime, program, out);
  ax_runtime_release(runtime);
  ax_program_release(program);
  return status;
}

static void add_effects(ax_text *text, const ax_program *program) {
  const ax_effects of = ax_program_effects(program);
  ax_text_add(text, "collectives over %s, %s single-sided communication\n",
              of.axes != 0 ? ax_axis_set_string(of.axes, ax_program_axes(program)) : "no axes",
              of.single_sided ? "with" : "without");
}

/* The effects of a body over axes of its own, as a shard_map's is, are not among those of the program around it. */
static void add_effects_inside(ax_text *text, const ax_program *program) {
  for (uint32_t i = 0; i < program->eqn_count; i++) {
    const ax_eqn *eqn = &program->eqns[i];
    const ax_program *body;
    for (uint32_t k = 0; (body = ax_eqn_program(eqn, k)) != NULL; k++) {
      if (body->axes.count > program->axes.count) {
        ax_text_add(text, "in %s (line %u): ", eqn->prim->name, eqn->line);
        add_effects(text, body);
      }
      add_effects_inside(text, body);
    }
  }
}

static ax_status effects(show *show, char **out) {
  ax_text text = {0};
  add_effects(&text, show->source.program);
  add_effects_inside(&text, show->source.program);
  return ax_text_finish(&text, out);
}

static const struct {
  const char *name;
  ax_status (*transform)(show *show, ax_program **out);
  ax_status (*text)(show *show, char **out);
  bool runs; /* a per-device program goes into it as it runs, over its mesh or that of --mesh */
} passes[] = {
    {"jvp", jvp, NULL, false},
    {"linearize", linearize, NULL, false},
    {"transpose", transpose, NULL, false},
    {"grad", grad, NULL, false},
    {"value_and_grad", value_and_grad, NULL, false},
    {"vmap", vmap, NULL, false},
    {"dce", dce, NULL, false},
    {"cse", cse, NULL, false},
    {"simplify", simplify, NULL, false},
    {"explicit", explicit_types, NULL, false},
    {"partition", partition, NULL, true},
    {"lower", NULL, lower, true},
    {"stablehlo", NULL, stablehlo, false},
    {"executable", NULL, executable, true},
    {"types", NULL, types, false},
    {"cost", NULL, cost, true},
    {"memory", NULL, memory, true},
    {"effects", NULL, effects, false},
};

static size_t find_pass(const char *name) {
  size_t i = 0;
  while (i < AX_COUNT(passes) && strcmp(passes[i].name, name) != 0) i++;
  return i;
}

static ax_status print_program(const char *title, const ax_program *program) {
  char *text;
  AX_TRY(ax_program_print_locations(program, &text));
  printf("%s%s", title, text);
  ax_string_free(text);
  return AX_OK;
}

static ax_status transform(show *show, size_t pass) {
  ax_program *next = NULL;
  bool keeps_primal = passes[pass].transform == linearize;
  AX_TRY(passes[pass].transform(show, &next));
  source_deinit(&show->source);
  show->source.program = next;
  if (keeps_primal) return AX_OK;
  ax_program_release(show->primal);
  show->primal = NULL;
  show->residuals = 0;
  return AX_OK;
}

static ax_status print_after(show *show) {
  char *text;
  AX_TRY(after(show, show->after, &text));
  fputs(text, stdout);
  ax_string_free(text);
  return AX_OK;
}

/* Writes what --bytecode asks for, which is released. */
static ax_status put_bytecode(const show *show, ax_status made, char *bytes, size_t count) {
  if (made == AX_OK) made = write_file(show->bytecode, bytes, count);
  ax_string_free(bytes);
  return made;
}

/* The StableHLO module as it was read, in any form: as text, or as bytecode into the file that --bytecode names. */
static ax_status put_module(const show *show, const source_bytes *module, const char *source) {
  char *out = NULL;
  size_t count = 0;
  if (show->bytecode != NULL) {
    const ax_status made = ax_stablehlo_bytecode(module->data, module->length, source, show->target, &out, &count);
    return put_bytecode(show, made, out, count);
  }
  AX_TRY(ax_stablehlo_text(module->data, module->length, source, &out));
  fputs(out, stdout);
  ax_string_free(out);
  return AX_OK;
}

static ax_status show_module(const show *show, const char *path) {
  source_bytes *bytes;
  AX_TRY(source_bytes_read(path, &bytes));
  const ax_status status = put_module(show, bytes, path);
  ax_shared_release(bytes->owner);
  return status;
}

/* What the pass makes of the program, which ends there. */
static ax_status put_text(show *show, size_t pass) {
  char *text = NULL;
  if (show->bytecode != NULL && passes[pass].text == stablehlo) {
    size_t count = 0;
    const ax_status made = ax_program_stablehlo_bytecode(show->source.program, show->target, &text, &count);
    return put_bytecode(show, made, text, count);
  }
  AX_TRY(passes[pass].text(show, &text));
  fputs(text, stdout);
  ax_string_free(text);
  return AX_OK;
}

/* A mesh over which nothing of what is shown lies would go unheard. */
static ax_status check_mesh_is_heard(const show *show) {
  const shardings *s = &show->shardings;
  bool runs = show->after != NULL;
  if (!s->has_mesh || shardings_given(s)) return AX_OK;
  if (show->module) return ax_error(AX_INVALID_ARGUMENT, "--mesh: --module shows a module as it was read, over no mesh");
  if (show->source.program->axes.count == 0)
    return ax_error(AX_INVALID_ARGUMENT, "--mesh: the program has its mesh, or needs --in-sharding to say how it lies");
  for (uint32_t i = 0; i < show->passes.count; i++) runs = runs || passes[find_pass(show->passes.words[i])].runs;
  if (runs) return AX_OK;
  return ax_error(AX_INVALID_ARGUMENT,
                  "--mesh: a per-device program lies over a mesh where it is shown as it runs: with --cost, --memory, --after, "
                  "or --pass partition, lower or executable");
}

static ax_status show_program(show *show, const char *path) {
  if (show->module) {
    AX_TRY(check_mesh_is_heard(show));
    return show_module(show, path);
  }
  AX_TRY(source_read(path, &show->shardings, NULL, &show->source));
  AX_TRY(check_mesh_is_heard(show));
  if (shardings_given(&show->shardings)) {
    ax_program *laid;
    AX_TRY(shardings_apply(&show->shardings, &show->source, &show->spread.layout, &laid));
    ax_program_release(show->source.program); /* names stay as they are */
    show->source.program = laid;
  }
  for (uint32_t i = 0; i < show->passes.count; i++) {
    size_t pass = find_pass(show->passes.words[i]);
    if (passes[pass].transform != NULL) {
      AX_TRY(transform(show, pass));
      continue;
    }
    return put_text(show, pass);
  }
  if (show->after != NULL) return print_after(show);
  if (show->primal != NULL) AX_TRY(print_program("# primal\n", show->primal));
  return print_program(show->primal != NULL ? "# tangent\n" : "", show->source.program);
}

/* --- The command line --- */

static ax_status add_passes(show *show, const char *names) {
  AX_TRY(split(&show->passes, names));
  for (uint32_t i = 0; i < show->passes.count; i++) {
    size_t pass = find_pass(show->passes.words[i]);
    if (pass == AX_COUNT(passes)) return ax_error(AX_INVALID_ARGUMENT, "there is no pass '%s'", show->passes.words[i]);
    if (i > 0 && passes[find_pass(show->passes.words[i - 1])].text != NULL)
      return ax_error(AX_INVALID_ARGUMENT, "nothing can follow the pass %s", show->passes.words[i - 1]);
  }
  return AX_OK;
}

/* Bytecode is of a module: of the one that was read, or that the program becomes. */
static ax_status add_bytecode(show *show) {
  const uint32_t passes = show->passes.count;
  if (show->target != NULL && show->bytecode == NULL)
    return ax_error(AX_INVALID_ARGUMENT, "--target is of bytecode: --bytecode FILE says where that goes");
  if (show->bytecode == NULL || show->module) return AX_OK;
  if (show->after != NULL) return ax_error(AX_INVALID_ARGUMENT, "--bytecode is of a StableHLO module, and --after gives none");
  if (show->cost || show->memory)
    return ax_error(AX_INVALID_ARGUMENT, "--bytecode is of a StableHLO module, and --cost and --memory give none");
  if (passes > 0 && strcmp(show->passes.words[passes - 1], "stablehlo") == 0) return AX_OK;
  return add_passes(show, "stablehlo");
}

static ax_status add_last(show *show) {
  AX_TRY(add_bytecode(show));
  if (show->cost) AX_TRY(add_passes(show, "cost"));
  return show->memory ? add_passes(show, "memory") : AX_OK;
}

static ax_status keep_text(char **kept, const char *text) {
  free(*kept);
  *kept = strdup(text);
  return *kept != NULL ? AX_OK : ax_out_of_memory(0);
}

static ax_status take_option(void *context, int value, const char *argument) {
  show *show = context;
  switch (value) {
    case option_pass: return add_passes(show, argument);
    case option_mesh:
    case option_in_sharding:
    case option_out_sharding:
    case option_dim:
    case option_ffi: return shardings_take(&show->shardings, value, argument);
    case option_spread: return spread_take(&show->spread, argument);
    case option_after: return keep_text(&show->after, argument);
    case option_bytecode: return keep_text(&show->bytecode, argument);
    case option_target: return keep_text(&show->target, argument);
    case option_wrt: return split(&show->wrt, argument);
    case option_linear: return split(&show->linear, argument);
    case option_size:
      if (ax_integer_parse(argument, &show->size) && show->size > 0) return AX_OK;
      return ax_error(AX_INVALID_ARGUMENT, "--size: not a positive number: %s", argument);
    default: return keep_text(&show->axis_name, argument);
  }
}

static const char notes[] =
    "Passes from program to program:\n"
    "  jvp             (x.., dx..) -> (y.., dy..)\n"
    "  linearize       primal (x..) -> (y.., residual..) and tangent (residual.., dx..) -> (dy..);\n"
    "                  a pass after it gets the tangent\n"
    "  transpose       of a linear program: (constant.., dy..) -> (dx..)\n"
    "  grad, value_and_grad, vmap, dce, cse, simplify\n"
    "  explicit        how each value lies, from --in-sharding and constraints on by rule alone; what is ambiguous is an error\n"
    "  partition       one shard_map over the whole mesh: what each device runs\n"
    "Passes that end in text (per-device programs are shown as axle run runs them):\n"
    "  lower           what runs: buffers, fused kernels, products, exchanges\n"
    "  types           the program with each value's layout in its type, as f32[8@data,16]\n"
    "  stablehlo       the StableHLO module of one device\n"
    "  executable      instructions and memory\n"
    "  cost            what a run costs each device: flops, bytes, bytes received by collective; with --spread what stays within a\n"
    "                  process, what crosses, and the time of both\n"
    "  memory          what memory a run takes, a device and in all, and what is alive where most is held\n"
    "  effects         which axes its collectives name, and whether devices send each other messages\n"
    "Passes on the way to an executable, for --after (a name that is none lists all of them): simplify,\n"
    "partition, body (the program of each device), lower (buffers and operations), .. rows, flatten\n"
    "(instructions), synchronise, memory (and what is alive where most is held), .. codegen (each kernel's loops in\n"
    "their order, with parts, tiles and vectors, what it reads, writes and computes, and the least time that takes on this\n"
    "machine), finish\n\n"
    "NAME is what the text calls an input, its number from 0, or its letter in the printed form.\n\n"
    "  axle show f.axle --pass linearize,transpose\n"
    "  axle show f.axle --mesh data=4,model=2 --in-sharding x=data --pass partition\n"
    "  axle show f.axle --cost --spread 2        devices in two processes of one host; 4x8: 32 processes on four hosts\n";

int show_main(int argc, const char **argv) {
  show show = {.size = 2};
  const struct poptOption table[] = {
      {"pass", 'p', POPT_ARG_STRING, NULL, option_pass, "Passes, in order; may be given several times", "PASS,.."},
      {"cost", '\0', POPT_ARG_NONE, &show.cost, 0, "What a run costs each device: as --pass cost, after all others", NULL},
      {"memory", '\0', POPT_ARG_NONE, &show.memory, 0, "What memory a run takes: as --pass memory, after all others", NULL},
      {"module", '\0', POPT_ARG_NONE, &show.module, 0, "The StableHLO module of the file as text, also of bytecode", NULL},
      {"bytecode", '\0', POPT_ARG_STRING, NULL, option_bytecode, "Writes the module of --module, or else that of --pass stablehlo, as bytecode", "FILE"},
      {"target", '\0', POPT_ARG_STRING, NULL, option_target, "The version of VHLO that --bytecode writes (1.0.0); 1.0.0+mixed: chlo and sdy, too", "VERSION"},
      {"after", '\0', POPT_ARG_STRING, NULL, option_after, "Shows what there is after a pass on the way to an executable", "PASS"},
      {"wrt", '\0', POPT_ARG_STRING, NULL, option_wrt, "Inputs to differentiate by (all floats; grad: the first)",
       "NAME,.."},
      {"linear", '\0', POPT_ARG_STRING, NULL, option_linear, "Inputs that transpose takes as linear", "NAME,.."},
      {"size", '\0', POPT_ARG_STRING, NULL, option_size, "Size of the dimension that vmap adds (2)", "N"},
      SHARDING_OPTIONS,
      SPREAD_OPTION,
      {"axis-name", '\0', POPT_ARG_STRING, NULL, option_axis, "Name of the axis that vmap maps", "NAME"},
      POPT_TABLEEND,
  };
  const option_set set = {
      .command = "show",
      .usage = "FILE [OPTION...]",
      .summary = "Prints the program in FILE (- for standard input), transformed.",
      .table = table,
      .handle = take_option,
      .context = &show,
      .wants_file = true,
      .notes = notes};
  char *file = NULL;
  bool done;
  int code = read_options(&set, argc, argv, &file, &done);
  if (code == EXIT_OK && !done && add_last(&show) != AX_OK) code = usage_error("show", "%s", ax_message());
  if (code == EXIT_OK && !done && show_program(&show, file) != AX_OK) code = report_error();
  source_deinit(&show.source);
  ax_program_release(show.primal);
  word_list_deinit(&show.passes);
  word_list_deinit(&show.wrt);
  word_list_deinit(&show.linear);
  shardings_deinit(&show.shardings);
  spread_deinit(&show.spread);
  free(show.axis_name);
  free(show.after);
  free(show.bytecode);
  free(show.target);
  free(file);
  return code;
}
