/* From a program to instructions: the passes, as a contents page.

     program  --simplify, partition-->  per-device program  --lower-->  plan  --passes of plan/-->  plan
     --flatten ..-->  instructions

   Any stage can be looked at: `axle show --after PASS FILE`. In debug builds each stage is verified as soon as it is made. */
#include <string.h>

#include "assemble/assemble.h"
#include "assemble/assembly.h"
#include "assemble/nests.h"
#include "ir/transform.h"
#include "plan/contract.h"
#include "xform/narrow.h"

/* The state of a build, as far as the passes have come. */
typedef struct build {
  const ax_assembler *assembler;
  const ax_program *source; /* as it was given */
  const ax_compile_options *options;
  bool is_laid, keep_unused; /* is_laid: it begins with a laid-out program */
  ax_program *program; /* the latest; owned */
  ax_pruning own;      /* inputs and results that the first pruning left, if it is done here */
  const ax_pruning *pruning; /* the first pruning, wherever it was done */
  ax_program *laid;    /* partitioned: has the layouts of arrays; owned */
  ax_program *whole;   /* `laid` without groups, whose body is `program`; owned */
  ax_pruning inner;    /* inputs and results of `whole` that the second pruning left */
  ax_signature *signature;
  ax_assembly a;       /* with the compiled code, and the plan once there is one */
} build;

/* --- The whole program --- */

/* Prunes before partitioning, so that unused inputs and results have no effect on meshes and layouts. */
static ax_status prune(build *b) {
  ax_program *left;
  AX_TRY(ax_pruning_make(&b->own, b->program, NULL, b->keep_unused, &left));
  ax_program_release(b->program);
  b->program = left;
  b->pruning = &b->own;
  return AX_OK;
}

/* --- What each device runs --- */

/* Groups change the mesh inside the program; arrays lie on the user's mesh. */
static ax_status ungroup(build *b) {
  b->laid = b->program;
  b->program = NULL;
  return ax_program_ungroup(b->laid, &b->program);
}

/* Takes the body, simplified and pruned once more, since the partitioner makes unused equations and duplicates. */
static ax_status take_body(build *b) {
  ax_program *simple;
  b->whole = b->program;
  b->program = NULL;
  const ax_partitioned whole = ax_partitioned_of(b->whole);
  AX_TRY(ax_program_simplify(whole.body, &simple));
  ax_status status = ax_pruning_make(&b->inner, simple, &whole, b->keep_unused, &b->program);
  ax_program_release(simple);
  return status;
}

/* Sums over devices leave loops, where that is asked for. */
static ax_status leave_loops(build *b) {
  ax_program *left;
  if (!b->options->late_sums) return AX_OK;
  AX_TRY(ax_sums_leave_loops(b->program, &left));
  ax_program_release(b->program);
  b->program = left;
  return AX_OK;
}

/* Functions that call each other twice would be exponentially long plans. */
static ax_status loop_calls(build *b) {
  ax_program *looped;
  AX_TRY(ax_program_loop_calls(b->program, AX_MOST_WRITTEN_OUT, &looped));
  ax_program_release(b->program);
  b->program = looped;
  return AX_OK;
}

/* --- The plan --- */

static ax_status refuse_devices(const ax_mesh *mesh, int64_t most) {
  ax_text axes = {0};
  ax_mesh_text(&axes, mesh);
  ax_status status = ax_error(AX_INVALID_ARGUMENT, "the mesh has %lld devices, more than the %lld there are: %s",
                              (long long)ax_mesh_devices(mesh), (long long)most, axes.data != NULL ? axes.data : "?");
  ax_text_deinit(&axes);
  return status;
}

/* Makes the plan of the partitioned program, and the signature. */
static ax_status make_plan(build *b, const ax_partitioned *laid, const ax_partitioned *left) {
  const ax_assembler *by = b->assembler;
  ax_compiled *c = b->a.compiled;
  ax_plan_options options = {.reference = b->options->reference,
                             .check = b->options->check_numerics,
                             .unchecked_ragged = b->options->unchecked_ragged,
                             .hooks = by->hooks,
                             .runtime = by->runtime,
                             .passes = by->plan_passes,
                             .pass_count = by->plan_pass_count};
  AX_TRY(ax_contraction_fused(b->options->contraction, &options.contract));
  const int64_t devices = ax_mesh_devices(left->mesh);
  if (devices > by->max_devices) return refuse_devices(left->mesh, by->max_devices);
  c->devices = (uint32_t)devices;
  if (by->processes != NULL && by->processes->processes > 1 && devices > 1)
    AX_TRY(ax_process_map_create(by->processes, c->devices, &c->map));
  options.map = c->map;
  AX_TRY(ax_partitioned_plan(left, &options, &c->plan));
  return ax_signature_make(b->source, laid, b->pruning, &b->inner, &b->options->donate, c->plan, b->signature);
}

static ax_status lower(build *b) {
  ax_partitioned laid = ax_partitioned_of(b->laid), left = ax_partitioned_of(b->whole);
  left.body = b->program;
  AX_TRY(ax_pruning_specs(&b->inner, &left, &b->a.scratch));
  AX_TRY(make_plan(b, &laid, &left));
  b->a.plan = b->a.compiled->plan;
  return AX_OK;
}

/* --- The contents page --- */

static const char laid_out[] = "partition"; /* last pass of ax_program_lower */
static const char placed[] = "memory";      /* the pass that decides how much memory a run takes */

/* A pass has one of the functions; without any, the entry stands for the passes over plans (plan/passes.c). A pass relies on the
   properties that it `needs`. After it, the property that it `makes` is verified, with all made before. */
typedef struct pass {
  const char *name; /* for a pass over instructions: also of its file, and of ax_instrs_NAME */
  ax_status (*program)(const ax_program *program, ax_program **out); /* verified by ax_program_verify */
  ax_status (*change)(build *b);                                     /* its result is verified by the verifier of its kind */
  ax_status (*instrs)(ax_assembly *a);
  ax_instrs_properties needs, makes;
} pass;

static const pass passes[] = {
    {"simplify", .program = ax_program_simplify},   /* so that dead equations have no effect on meshes and layouts */
    {"prune", .change = prune},                     /* drops unused inputs, and results that are inputs */
    {"partition", .program = ax_program_partition}, /* one shard_map over the whole mesh */
    {"ungroup", .change = ungroup},                 /* collectives over groups become collectives over axes */
    {"body", .change = take_body},                  /* the program of each device, simplified */
    {"narrow", .program = ax_program_narrow},       /* what is read of arrays */
    {"sums", .change = leave_loops},                /* over devices, behind loops instead of in each iteration */
    {"calls", .change = loop_calls},                /* of functions that call each other often, steps of loops */
    {"lower", .change = lower},                     /* operations on buffers */
    {.name = NULL},                                 /* the passes over plans */
    {"flatten", .instrs = ax_instrs_flatten, .makes = AX_INSTRS_FLAT}, /* one list with jumps */
    {"synchronise", .instrs = ax_instrs_synchronise, AX_INSTRS_FLAT,
     AX_INSTRS_SYNCHRONISED}, /* signals and waits where activations touch each other's memory */
    {"memory", .instrs = ax_instrs_memory, AX_INSTRS_SYNCHRONISED,
     AX_INSTRS_PLACED}, /* places buffers; fills in operands, and parts for threads */
    {"events", .instrs = ax_instrs_events, AX_INSTRS_PLACED, AX_INSTRS_NUMBERED},                          /* counters */
    {"exchanges", .instrs = ax_instrs_exchanges, AX_INSTRS_PLACED | AX_INSTRS_NUMBERED, AX_INSTRS_PUSHES}, /* members, and places */
    {"cores", .instrs = ax_instrs_cores, AX_INSTRS_PLACED | AX_INSTRS_NUMBERED,
     AX_INSTRS_CORES},                                                          /* groups that run users' kernels */
    {"turns", .instrs = ax_instrs_turns, AX_INSTRS_NUMBERED, AX_INSTRS_TURNS},  /* order of calls of the host */
    {"links", .instrs = ax_instrs_links, AX_INSTRS_NUMBERED, AX_INSTRS_LINKS},  /* senders and receivers */
    {"ragged", .instrs = ax_instrs_ragged, AX_INSTRS_PLACED | AX_INSTRS_NUMBERED, AX_INSTRS_RAGGED}, /* members, and places of their
                                                                                                       rows */
    {"codegen", .instrs = ax_instrs_codegen, AX_INSTRS_PLACED | AX_INSTRS_PUSHES,
     AX_INSTRS_CODE}, /* kernels' loops in order, with tiles and vectors: machine code */
    {"finish", .instrs = ax_instrs_finish, AX_INSTRS_ALL & ~AX_INSTRS_FINISHED,
     AX_INSTRS_FINISHED}, /* facts that the executor looks up */
};

static const char *name_of(ax_instrs_properties one) {
  for (size_t i = 0; i < AX_COUNT(passes); i++)
    if ((passes[i].makes & one) != 0) return passes[i].name;
  return "no pass";
}

ax_status ax_pipeline_check(const char *left_out) {
  ax_instrs_properties made = 0;
  for (size_t i = 0; i < AX_COUNT(passes); i++) {
    if (passes[i].name != NULL && left_out != NULL && strcmp(passes[i].name, left_out) == 0) continue;
    const ax_instrs_properties lacks = passes[i].needs & ~made;
    if (lacks != 0)
      return ax_error(AX_INTERNAL, "pass %s needs what pass %s makes, which is not before it", passes[i].name,
                      name_of(lacks & -lacks));
    made |= passes[i].makes;
  }
  return AX_OK;
}

/* The properties that hold once this pass has run. */
static ax_instrs_properties made_by(const pass *last) {
  ax_instrs_properties made = 0;
  for (const pass *p = passes; p <= last; p++) made |= p->makes;
  return made;
}

static ax_status verify(const build *b, const pass *pass) {
#ifndef NDEBUG
  if (b->a.plan == NULL) return ax_program_verify(b->program);
  if (pass->instrs == NULL) return ax_plan_check(b->a.plan, pass->name);
  ax_status status = ax_instrs_verify(&b->a, made_by(pass));
  return status == AX_INTERNAL ? ax_error_context(status, "after %s: ", pass->name) : status;
#else
  (void)b, (void)pass, (void)made_by;
  return AX_OK;
#endif
}

static ax_status run_one(build *b, const pass *pass) {
  if (pass->change != NULL) return pass->change(b);
  if (pass->instrs != NULL) return pass->instrs(&b->a);
  ax_program *next;
  AX_TRY(pass->program(b->program, &next));
  ax_program_release(b->program);
  b->program = next;
  return AX_OK;
}

static bool is_last(const char *name, const char *last) { return last != NULL && strcmp(name, last) == 0; }

/* *found: the pass named `last` has run. A program that is laid out begins behind the pass `laid_out`. */
static ax_status run_passes(build *b, const char *last, bool *found) {
  size_t first = 0;
  while (b->is_laid && strcmp(passes[first++].name, laid_out) != 0) continue;
#ifndef NDEBUG
  AX_TRY(ax_pipeline_check(NULL));
#endif
  *found = false;
  for (size_t i = first; i < AX_COUNT(passes); i++) {
    if (passes[i].name == NULL) {
      AX_TRY(ax_plan_optimise(b->a.plan, last, found));
    } else {
      AX_TRY(run_one(b, &passes[i]));
      AX_TRY(verify(b, &passes[i]));
      *found = is_last(passes[i].name, last);
    }
    if (*found) break;
  }
  return AX_OK;
}

/* Runs the passes so that equations keep the numbers that they have in the user's program: messages name these. */
static ax_status run_keeping_numbers(build *b, const char *last, bool *found) {
  ax_context numbers;
  ax_keep_numbers(&numbers);
  ax_status status = run_passes(b, last, found);
  ax_context_leave(&numbers);
  return status;
}

static build begin(const ax_assembler *assembler, const ax_source *source, ax_signature *signature, ax_compiled *compiled) {
  const ax_laid *laid = source->laid;
  *signature = (ax_signature){0};
  *compiled = (ax_compiled){.timed = source->options->timeline, .flushes = source->options->subnormals == AX_SUBNORMALS_FLUSH};
  return (build){.assembler = assembler,
                 .source = source->program,
                 .options = source->options,
                 .is_laid = laid != NULL,
                 .keep_unused = source->options->keep_unused,
                 .pruning = laid != NULL ? &laid->pruning : NULL,
                 .program = ax_program_retain(laid != NULL ? laid->program : source->program),
                 .signature = signature,
                 .a = {.compiled = compiled, .jit = assembler->jit, .threads = assembler->threads, .results_elsewhere = source->results_elsewhere}};
}

static void end(build *b) {
  if (b->a.instr_capacity > 0) ax_free(b->a.instrs); /* otherwise it is in the arena */
  ax_free(b->a.ops);
  ax_free(b->a.regions);
  ax_free(b->a.accesses);
  ax_free(b->a.events);
  ax_free(b->a.aliased_allocations);
  ax_arena_deinit(&b->a.scratch);
  ax_pruning_deinit(&b->own);
  ax_pruning_deinit(&b->inner);
  ax_program_release(b->program);
  ax_program_release(b->laid);
  ax_program_release(b->whole);
}

void ax_laid_deinit(ax_laid *laid) {
  ax_program_release(laid->program);
  ax_pruning_deinit(&laid->pruning);
  laid->program = NULL;
}

ax_status ax_program_lay_out(ax_program *program, bool keep_unused, ax_laid *out) {
  build b = {.program = ax_program_retain(program), .keep_unused = keep_unused};
  bool found;
  *out = (ax_laid){0};
  ax_status status = run_keeping_numbers(&b, laid_out, &found);
  if (status == AX_OK) {
    *out = (ax_laid){b.program, b.own};
    b.program = NULL;
    b.own = (ax_pruning){0};
  }
  end(&b);
  return status;
}

/* No input is donated, and there is no runtime that knows the number of devices. */
static ax_status plan_of(build *b, ax_plan **out) {
  ax_plan_options options = {
      .reference = b->options->reference, .check = b->options->check_numerics, .unchecked_ragged = b->options->unchecked_ragged};
  AX_TRY(ax_contraction_fused(b->options->contraction, &options.contract));
  AX_TRY(ungroup(b));
  AX_TRY(take_body(b));
  AX_TRY(leave_loops(b));
  AX_TRY(loop_calls(b));
  ax_partitioned left = ax_partitioned_of(b->whole);
  left.body = b->program;
  AX_TRY(ax_pruning_specs(&b->inner, &left, &b->a.scratch));
  AX_TRY(ax_partitioned_plan(&left, &options, out));
  ax_status status = ax_plan_optimise(*out, NULL, NULL);
  if (status == AX_OK) return AX_OK;
  ax_plan_destroy(*out);
  *out = NULL;
  return status;
}

ax_status ax_laid_plan(const ax_laid *laid, const ax_compile_options *options, ax_plan **out) {
  build b = {.options = options,
             .keep_unused = options->keep_unused,
             .pruning = &laid->pruning,
             .program = ax_program_retain(laid->program)};
  ax_context numbers;
  *out = NULL;
  ax_keep_numbers(&numbers);
  ax_status status = plan_of(&b, out);
  ax_context_leave(&numbers);
  end(&b);
  return status;
}

ax_status ax_assemble(const ax_assembler *assembler, const ax_source *source, ax_signature *signature, ax_compiled *compiled) {
  build b = begin(assembler, source, signature, compiled);
  bool found;
  ax_status status = run_keeping_numbers(&b, NULL, &found);
  if (status == AX_OK) ax_signature_find_donated(signature, compiled->results);
  end(&b);
  return status;
}

static const pass first_passes[] = {{"simplify", .program = ax_program_simplify},
                                    {"prune", .change = prune},
                                    {"partition", .program = ax_program_partition_plain}};

/* A plan that says how many inputs and results there are. */
static ax_status bare_plan(build *b, const ax_partitioned *whole) {
  ax_compiled *c = b->a.compiled;
  const int64_t devices = ax_mesh_devices(whole->mesh);
  if (devices > b->assembler->max_devices) return refuse_devices(whole->mesh, b->assembler->max_devices);
  c->plan = ax_calloc(1, sizeof *c->plan);
  if (c->plan == NULL) return ax_out_of_memory(sizeof *c->plan);
  c->plan->mesh = *whole->mesh;
  c->plan->in_count = b->program->in_count;
  c->plan->out_count = b->program->out_count;
  c->devices = (uint32_t)devices;
  c->idle_plan = b->program->eqn_count == 0 && b->program->out_count == 0;
  c->threaded = true;
  return ax_signature_make(b->source, whole, b->pruning, &b->inner, &b->options->donate, c->plan, b->signature);
}

/* All inputs and results stay. */
static ax_status prune_nothing(ax_pruning *p, const ax_program *program) {
  p->place = ax_alloc(((size_t)program->in_count + 1) * sizeof p->place[0]);
  p->returned = ax_alloc(((size_t)program->out_count + 1) * sizeof p->returned[0]);
  if (p->place == NULL || p->returned == NULL) return ax_out_of_memory(program->in_count * sizeof p->place[0]);
  p->in_count = program->in_count;
  p->out_count = program->out_count;
  for (uint32_t i = 0; i < program->in_count; i++) p->place[i] = i;
  for (uint32_t k = 0; k < program->out_count; k++) p->returned[k] = (ax_returned){.made = k, .input = AX_NONE};
  return AX_OK;
}

/* The program before it is partitioned, which is done only to know the mesh and how inputs and results lie. */
static ax_status take_whole(build *b, ax_program *before) {
  b->whole = b->program;
  b->program = ax_program_retain(before);
  return prune_nothing(&b->inner, before);
}

static ax_status make_body(build *b, bool is_whole) {
  ax_program *before = NULL;
  ax_status status = AX_OK;
  for (size_t i = 0; status == AX_OK && i < AX_COUNT(first_passes); i++) {
    ax_program_release(before);
    before = ax_program_retain(b->program);
    status = run_one(b, &first_passes[i]);
    if (status == AX_OK) status = verify(b, &first_passes[i]);
  }
  if (status == AX_OK) status = is_whole ? take_whole(b, before) : take_body(b);
  ax_program_release(before);
  AX_TRY(status);
  const ax_partitioned whole = ax_partitioned_of(b->whole);
  return bare_plan(b, &whole);
}

ax_status ax_assemble_body(const ax_assembler *assembler, const ax_source *source, ax_signature *signature, ax_compiled *compiled,
                           bool whole, ax_program **body) {
  const ax_source anew = {.program = source->program, .options = source->options}; /* a laid-out program has kernels still */
  build b = begin(assembler, &anew, signature, compiled);
  ax_context numbers;
  *body = NULL;
  ax_keep_numbers(&numbers);
  const ax_status status = make_body(&b, whole);
  ax_context_leave(&numbers);
  if (status == AX_OK) *body = ax_program_retain(b.program);
  end(&b);
  return status;
}

ax_status ax_assemble_memory(const ax_assembler *assembler, const ax_source *source, const ax_plan_use *use, ax_memory *out,
                             ax_text *text) {
  ax_signature signature;
  ax_compiled compiled;
  build b = begin(assembler, source, &signature, &compiled);
  bool found;
  b.a.counted = true;
  b.a.elsewhere = use != NULL;
  ax_status status = run_keeping_numbers(&b, placed, &found);
  if (status == AX_OK) ax_memory_of(&compiled, out);
  if (status == AX_OK && use != NULL) status = use->function(use->context, b.a.plan, out);
  if (status == AX_OK && text != NULL) status = ax_holding_text(text, &b.a);
  end(&b);
  ax_compiled_deinit(&compiled, assembler->jit);
  return status;
}

/* --- Text --- */

static ax_status refuse_name(const char *name) {
  ax_text text = {0};
  for (size_t i = 0; i < AX_COUNT(passes); i++) {
    if (passes[i].name != NULL) ax_text_add(&text, "%s%s", i > 0 ? ", " : "", passes[i].name);
    for (uint32_t k = 0; passes[i].name == NULL && k < ax_plan_pass_count; k++) ax_text_add(&text, ", %s", ax_plan_passes[k].name);
  }
  ax_status status = ax_error(AX_INVALID_ARGUMENT, "there is no pass '%s'; in their order they are %s", name,
                              text.data != NULL ? text.data : "");
  ax_text_deinit(&text);
  return status;
}

static ax_status stage_text(build *b, const char *name, const ax_rates *rates, char **out) {
  ax_text text = {0};
  if (strcmp(name, "codegen") == 0) {
    ax_status made = ax_nests_text(&text, &b->a, rates);
    if (made == AX_OK) return ax_text_finish(&text, out);
    ax_text_deinit(&text);
    return made;
  }
  if (b->a.plan == NULL) return ax_program_print_locations(b->program, out);
  if (b->a.instr_count == 0) ax_plan_text(&text, b->a.plan);
  else ax_instrs_text(&text, b->a.compiled, b->a.instrs, b->a.instr_count);
  ax_status status = b->a.residents != NULL ? ax_holding_text(&text, &b->a) : AX_OK;
  if (status == AX_OK) return ax_text_finish(&text, out);
  ax_text_deinit(&text);
  return status;
}

ax_status ax_assemble_text(const ax_assembler *assembler, const ax_source *source, const char *pass, const ax_rates *rates,
                           char **out) {
  ax_signature signature;
  ax_compiled compiled;
  build b = begin(assembler, source, &signature, &compiled);
  bool found;
  *out = NULL;
  ax_status status = run_keeping_numbers(&b, pass, &found);
  if (status == AX_OK && !found) status = refuse_name(pass);
  if (status == AX_OK) status = stage_text(&b, pass, rates, out);
  end(&b);
  ax_compiled_deinit(&compiled, assembler->jit);
  return status;
}
