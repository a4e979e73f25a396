/* ax_check: a program is evaluated by reference, and at each kernel_call that it comes to the kernel is run on the machine,
   recorded, and proved from that record, or explored. */
#include "axle/check.h"

#include <string.h>

#include "kernel/machine/code.h"
#include "kernel/step.h"
#include "check/all_inputs.h"
#include "check/decides.h"
#include "check/finding.h"
#include "check/made_up.h"
#include "check/notes.h"
#include "check/prove.h"
#include "check/strands.h"
#include "check/told.h"
#include "check/watch.h"
#include "xform/evaluate.h"

struct checked { /* a report, being made */
  ax_check_report report;
  ax_check_kernel *kernels;
  uint32_t capacity;
  const ax_program *program;
  const ax_check_options *options;
  const ax_eqn **seen;
  uint32_t seen_count, seen_capacity;
  ax_decides *decides; /* of kernels that were come to, where inputs are made up */
  uint32_t decides_count, decides_capacity;
  ax_arena texts;
  uint8_t *operands; /* of the present kernel: what each decides */
  bool by_values; /* the verdict on the present kernel compares values: of sums that are exact, or of what runs come to */
  bool *distinct; /* by input: made up so that no two results are alike by chance; NULL: none is */
  bool points_unknown; /* of the present kernel: its run has no end, so it does not say what points need of one another */
  bool failed;    /* the checker itself, not what it checks */
};

static ax_status keep(struct checked *c, const char *text, const char **out) {
  *out = ax_arena_copy(&c->texts, text, strlen(text) + 1);
  return *out != NULL ? AX_OK : ax_out_of_memory(strlen(text) + 1);
}

/* --- Findings --- */

/* Moves a text made by ax_interleaving_print and its like into the report. */
static ax_status keep_made(struct checked *c, ax_status status, char *made, const char **out) {
  if (status == AX_OK) status = keep(c, made, out);
  ax_free(made);
  return status;
}

/* The pictures are of the finding's own schedule, run once more, as far as it goes. */
static ax_status keep_finding(struct checked *c, ax_watch *watch, const ax_act_finding *finding, ax_check_finding *out) {
  ax_act_record record = {0};
  char *made = NULL;
  out->kind = ax_finding_kind_name(finding->kind);
  AX_TRY(keep(c, finding->text != NULL ? finding->text : out->kind, &out->text));
  const ax_system system = ax_watch_system(watch);
  ax_act_finding shown = *finding;
  AX_TRY(ax_system_follow(&system, &finding->schedule, &shown.schedule.count));
  ax_status status = ax_interleaving_print(&shown.schedule, &made);
  AX_TRY(keep_made(c, status, made, &out->schedule));
  status = ax_system_record(&system, &shown.schedule, false, 0, &record);
  if (status == AX_OK) {
    const ax_act_run run = ax_act_record_run(&record);
    made = NULL;
    status = ax_act_run_print(&run, &shown, &made);
    status = keep_made(c, status, made, &out->picture);
    made = NULL;
    if (status == AX_OK) {
      status = ax_act_run_svg(&run, &shown, &made);
      status = keep_made(c, status, made, &out->svg);
    }
  }
  ax_act_record_deinit(&record);
  return status;
}

/* Findings that only differ in numbers are told once, with how many there are. `causes`: those that others may follow from;
   otherwise the others. follows: those that are not told. */
static ax_status keep_some(struct checked *c, ax_watch *watch, const ax_act_findings *findings, bool causes, const bool *follows,
                           ax_check_finding *kept, ax_check_kernel *kernel) {
  for (uint32_t i = 0; i < findings->count; i++) {
    const ax_act_finding *finding = &findings->items[i];
    uint32_t before = 0, after = 0;
    if (follows[i] || ax_finding_is_cause(finding) != causes) continue;
    for (uint32_t k = 0; k < findings->count; k++)
      if (k != i && !follows[k] && ax_findings_alike(&findings->items[k], finding)) k < i ? before++ : after++;
    if (before > 0) continue;
    ax_check_finding *made = &kept[kernel->finding_count];
    AX_TRY(keep_finding(c, watch, finding, made));
    kernel->finding_count++;
    if (after == 0) continue;
    ax_text text = {0};
    ax_text_add(&text, "%s\n  and %u more like it", made->text, after);
    ax_status status = text.failed ? ax_out_of_memory(0) : keep(c, text.data, &made->text);
    ax_text_deinit(&text);
    AX_TRY(status);
  }
  return AX_OK;
}

static ax_status keep_findings(struct checked *c, ax_watch *watch, const ax_act_findings *findings, ax_check_kernel *kernel) {
  ax_check_finding *kept = ax_arena_alloc(&c->texts, (findings->count + 1) * sizeof kept[0]);
  bool *follows = ax_arena_alloc(&c->texts, (findings->count + 1) * sizeof follows[0]);
  if (kept == NULL || follows == NULL) return ax_out_of_memory(findings->count * sizeof kept[0]);
  for (uint32_t i = 0; i < findings->count; i++) AX_TRY(ax_finding_follows(watch, findings, &findings->items[i], &follows[i]));
  AX_TRY(keep_some(c, watch, findings, true, follows, kept, kernel));
  AX_TRY(keep_some(c, watch, findings, false, follows, kept, kernel));
  kernel->findings = kept;
  return AX_OK;
}

/* --- One kernel --- */

/* If one run does not decide all, a finding may be about a path that no run takes, as after a count that is read sooner than it can
   be. Moves the certain findings to the front, and returns their number. */
static uint32_t certain_first(ax_act_findings *findings) {
  uint32_t certain = 0;
  for (uint32_t i = 0; i < findings->count; i++) {
    if (!findings->items[i].certain) continue;
    const ax_act_finding moved = findings->items[certain];
    findings->items[certain++] = findings->items[i];
    findings->items[i] = moved;
  }
  return certain;
}

static void say_how(const ax_proof *proof, ax_verdict verdict, ax_text *how) {
  if (verdict == AX_PROVED) {
    ax_text_add(how, "all schedules come to what one run does: each of %llu acts that others conflict with was held back%s",
                (unsigned long long)proof->holds, proof->symmetric ? ", one of each class that turning the devices makes" : "");
    if (proof->locks > 0) ax_text_add(how, "; %u lock%s may be taken in any order", proof->locks, proof->locks > 1 ? "s" : "");
    if (proof->exact) ax_text_add(how, ", as sums of floats are exact with these inputs");
    if (proof->extremes)
      ax_text_add(how, ", as floats whose maximum or minimum is taken are no NaN, nor zeros of both signs, with these inputs");
  } else if (!proof->confluent)
    ax_text_add(how, "one run does not tell all: %s", proof->why_not != NULL ? proof->why_not : "");
  else
    ax_text_add(how, "from one run, each act held back in turn");
}

/* Of a kernel that is proved: for which inputs. */
static ax_status keep_claim(struct checked *c, const ax_all_inputs *all, ax_check_kernel *kernel) {
  kernel->proved_for = all->proved_for;
  return all->why.length > 0 ? keep(c, all->why.data, &kernel->proved_for_why) : AX_OK;
}

/* A proof for all inputs is one for these. Otherwise the run is proved by itself. */
static ax_status prove_run(struct checked *c, ax_watch *watch, const ax_act_record *record, ax_all_inputs *all, ax_proof *proof) {
  uint32_t *symmetry = watch->machine->device_count > 1 ? ax_watch_rotation(watch) : NULL;
  const ax_proof_options options = {.symmetry = symmetry};
  const double begin = ax_seconds();
  ax_status status = AX_OK;
  if (record->fault_count == 0 && record->pending_count == 0)
    status = ax_all_inputs_prove(c->program, watch, record, c->operands, symmetry, all);
  if (status == AX_OK && all->has_proof) {
    *proof = all->proof;
    all->proof = (ax_proof){0};
  } else if (status == AX_OK)
    status = ax_prove(record, &options, proof);
  if (status == AX_OK && (proof->exact || proof->extremes) && all->proved_for != AX_INPUTS_THESE) {
    all->proved_for = AX_INPUTS_THESE;
    ax_text_add(&all->why, "%s",
                proof->exact ? "sums of floats are exact with these values"
                             : "floats whose maximum or minimum is taken may be NaN, or zeros of both signs");
  }
  proof->seconds = ax_seconds() - begin;
  ax_free(symmetry);
  return status;
}

static ax_status prove(struct checked *c, ax_watch *watch, const ax_act_record *record, ax_check_kernel *kernel) {
  ax_proof proof = {0};
  ax_all_inputs all = {.proved_for = AX_INPUTS_THESE};
  ax_status status = prove_run(c, watch, record, &all, &proof);
  if (status != AX_OK) {
    ax_all_inputs_deinit(&all);
    ax_proof_deinit(&proof);
    return status;
  }
  c->by_values = proof.exact || proof.extremes || !proof.confluent;
  kernel->pairs = proof.pairs, kernel->holds = proof.holds, kernel->seconds = proof.seconds;
  const ax_act_findings told = {.items = proof.findings.items,
                                .count = proof.confluent ? proof.findings.count : certain_first(&proof.findings)};
  kernel->verdict = told.count > 0 ? AX_WRONG : proof.proved ? AX_PROVED : AX_BOUNDED;
  status = keep_findings(c, watch, &told, kernel);
  ax_text how = {0};
  say_how(&proof, kernel->verdict, &how);
  if (status == AX_OK) status = how.failed ? ax_out_of_memory(0) : keep(c, how.data, &kernel->how);
  ax_text_deinit(&how);
  if (status == AX_OK && kernel->verdict == AX_PROVED) status = keep_claim(c, &all, kernel);
  ax_all_inputs_deinit(&all);
  ax_proof_deinit(&proof);
  return status;
}

static ax_status explore(struct checked *c, ax_watch *watch, ax_check_kernel *kernel) {
  const ax_explore_options options = {.mode = c->options->exhaustive ? AX_EXPLORE_ALL : AX_EXPLORE_REDUCED,
                                      .most_states = c->options->max_states != 0 ? c->options->max_states : 1000000,
                                      .results_suffice = c->options->max_states == 0 && !c->options->exhaustive};
  const ax_system system = ax_watch_system(watch);
  ax_exploration found;
  const double begin = ax_seconds();
  if (!c->options->exhaustive) AX_TRY(ax_watch_join_alike(watch));
  AX_TRY(ax_explore(&system, &options, &found));
  kernel->states = found.states, kernel->transitions = found.transitions;
  kernel->seconds += ax_seconds() - begin;
  kernel->outcomes = found.outcome_count;
  kernel->state_bytes = found.states > 0 ? (double)found.bytes / (double)found.states : 0;
  ax_verdict verdict = found.findings.count > 0 ? AX_WRONG : found.bounded ? AX_BOUNDED : AX_PROVED;
  ax_status status = AX_OK;
  if (verdict == AX_PROVED && kernel->verdict == AX_BOUNDED) {
    ax_all_inputs all;
    status = ax_all_inputs_search(c->program, watch->machine, c->operands, &all);
    if (status == AX_OK) status = keep_claim(c, &all, kernel);
    ax_all_inputs_deinit(&all);
  }
  if (status == AX_OK && kernel->finding_count == 0) status = keep_findings(c, watch, &found.findings, kernel);
  if (kernel->verdict != AX_WRONG) kernel->verdict = verdict;
  if (kernel->verdict != AX_PROVED) kernel->proved_for = AX_INPUTS_THESE, kernel->proved_for_why = "";
  ax_text how = {0};
  ax_text_add(&how, "%s%llu states were gone through%s", found.bounded ? "stopped: only " : "",
              (unsigned long long)found.states,
              options.mode == AX_EXPLORE_ALL ? ", each schedule" : ", schedules that come to the same once");
  if (status == AX_OK) status = how.failed ? ax_out_of_memory(0) : keep(c, how.data, &kernel->how);
  ax_text_deinit(&how);
  ax_exploration_deinit(&found);
  return status;
}

/* Replays the schedule of the options, and reports its end as a finding. */
static ax_status show_replay(struct checked *c, ax_watch *watch, ax_check_kernel *kernel) {
  ax_act_finding finding = {.agent = AX_NONE, .other = AX_NONE, .object = AX_NONE};
  ax_act_record record = {0};
  const ax_system system = ax_watch_system(watch);
  ax_status status = ax_interleaving_parse(c->options->replay, &finding.schedule);
  if (status == AX_OK) status = ax_system_record(&system, &finding.schedule, false, 0, &record);
  kernel->acts = record.step_count;
  kernel->agents = record.objects.agent_count;
  kernel->verdict = record.fault_count > 0 ? AX_WRONG : AX_BOUNDED;
  kernel->how = "one schedule was run";
  if (record.fault_count > 0) finding.kind = record.faults[0].fault.kind;
  ax_check_finding *shown = ax_arena_alloc(&c->texts, sizeof *shown);
  if (status == AX_OK && shown == NULL) status = ax_out_of_memory(sizeof *shown);
  if (status == AX_OK) status = keep_finding(c, watch, &finding, shown);
  if (status == AX_OK) {
    shown->text = record.fault_count > 0 ? shown->text : "the schedule, and what each agent would do next";
    if (record.fault_count > 0) status = keep(c, record.faults[0].fault.text, &shown->text);
    kernel->findings = shown;
    kernel->finding_count = 1;
  }
  ax_act_record_deinit(&record);
  ax_interleaving_deinit(&finding.schedule);
  return status;
}

/* --- Points that are in no order --- */

/* Adds findings to those of the kernel. */
static ax_status add_findings(struct checked *c, ax_watch *watch, const ax_act_findings *findings, ax_check_kernel *kernel) {
  const uint32_t before = kernel->finding_count;
  ax_check_kernel more = {0};
  AX_TRY(keep_findings(c, watch, findings, &more));
  ax_check_finding *all = ax_arena_alloc(&c->texts, ((size_t)before + more.finding_count + 1) * sizeof all[0]);
  if (all == NULL) return ax_out_of_memory(0);
  if (before > 0) memcpy(all, kernel->findings, before * sizeof all[0]);
  if (more.finding_count > 0) memcpy(all + before, more.findings, more.finding_count * sizeof all[0]);
  kernel->findings = all;
  kernel->finding_count += more.finding_count;
  return AX_OK;
}

static ax_status say_of_points(struct checked *c, uint32_t found, ax_check_kernel *kernel) {
  ax_text how = {0};
  if (found > 0 && kernel->verdict == AX_PROVED)
    ax_text_add(&how, "all is right in the grid's order, but points that are in no order depend on one another");
  else
    ax_text_add(&how, "%s; %s", kernel->how,
                found > 0            ? "points that are in no order depend on one another"
                : kernel->states > 0 ? "of points that are in no order, one run alone was looked at"
                                     : "points that are in no order need nothing of one another");
  const ax_status status = how.failed ? ax_out_of_memory(0) : keep(c, how.data, &kernel->how);
  ax_text_deinit(&how);
  return status;
}

/* In the run that was recorded: what the points of a grid need of one another. A run that does not come to its end does not say. */
static ax_status compare_points(struct checked *c, ax_watch *watch, const ax_act_record *record, ax_check_kernel *kernel) {
  enum { most_told = 12 };
  ax_act_findings found = {0};
  if (!watch->labels_steps) return AX_OK;
  c->points_unknown = record->fault_count > 0 || record->pending_count > 0;
  if (c->points_unknown) return AX_OK;
  const double begin = ax_seconds();
  ax_status status = ax_strands_find(watch->machine, record, watch->labels, most_told, &found);
  kernel->seconds += ax_seconds() - begin;
  if (status == AX_OK) status = say_of_points(c, found.count, kernel);
  if (status == AX_OK && found.count > 0) {
    status = add_findings(c, watch, &found, kernel);
    kernel->verdict = AX_WRONG, kernel->proved_for = AX_INPUTS_THESE, kernel->proved_for_why = "";
  }
  ax_act_findings_deinit(&found);
  return status;
}

static ax_status look_at(struct checked *c, ax_watch *watch, ax_check_kernel *kernel) {
  ax_act_record record = {0};
  const ax_system system = ax_watch_system(watch);
  watch->notes_steps = true;
  ax_status status = ax_system_record(&system, NULL, true, 0, &record); /* first of all, so that numbers are the same each time */
  watch->notes_steps = false;
  kernel->agents = record.objects.agent_count;
  kernel->acts = record.step_count;
  if (status == AX_OK && c->options->replay != NULL)
    status = show_replay(c, watch, kernel);
  else if (status == AX_OK) {
    status = prove(c, watch, &record, kernel);
    bool more = kernel->verdict == AX_BOUNDED || c->options->explore || c->options->exhaustive;
    if (status == AX_OK && more) status = explore(c, watch, kernel);
    if (status == AX_OK) status = compare_points(c, watch, &record, kernel);
  }
  ax_act_record_deinit(&record);
  return status;
}

/* Whether any body of the kernel has a step such as this asks for. */
static bool has_step(const ax_machine *machine, bool (*asks)(const ax_eqn *eqn)) {
  for (uint32_t b = 0; b < machine->params->bodies.count; b++)
    for (uint32_t s = 0; s < machine->codes[b]->step_count; s++) {
      const ax_core_code_step *step = &machine->codes[b]->steps[s];
      if (step->kind == AX_STEP_ACT && asks(step->eqn)) return true;
    }
  return false;
}

static bool is_grouped(const ax_eqn *eqn) {
  return ax_step_copies(eqn) && ((const ax_copy_params *)eqn->params)->grouped;
}

/* Groups of copies are of GPUs; on a target whose fast memory is called SMEM all copies from there need it. */
static ax_status find_commits(ax_machine *machine) {
  const char *text = machine->params->target;
  ax_target target;
  machine->commits = has_step(machine, is_grouped) ? AX_COMMITS_GROUPED : AX_COMMITS_NONE;
  if (text == NULL || text[0] == '\0') return AX_OK;
  AX_TRY(ax_target_parse(text, &target));
  machine->commits = strcmp(target.space[AX_SPACE_VMEM].called, "SMEM") == 0 ? AX_COMMITS_ALL : AX_COMMITS_NONE;
  return AX_OK;
}

static bool reads_count(const ax_eqn *eqn) { return eqn->prim->step->reads_count; }

static ax_status check_machine(struct checked *c, ax_machine *machine, ax_tensor *const *in, ax_check_kernel *kernel) {
  ax_watch watch;
  machine->strict = true;
  machine->signals_travel = has_step(machine, reads_count); /* waits cannot tell when a signal has come, counts can */
  if (has_step(machine, ax_step_copies)) AX_TRY(find_commits(machine)); /* others need not remember what they store */
  AX_TRY(ax_watch_init(&watch, machine, in));
  ax_status status = look_at(c, &watch, kernel);
  ax_watch_deinit(&watch);
  return status;
}

static bool seen_before(struct checked *c, const ax_eqn *eqn, ax_status *status) {
  for (uint32_t i = 0; i < c->seen_count; i++)
    if (c->seen[i] == eqn) return !c->options->every_visit;
  *status = ax_grow(&c->seen, sizeof c->seen[0], c->seen_count, 1, &c->seen_capacity);
  if (*status == AX_OK) c->seen[c->seen_count++] = eqn;
  return false;
}

static bool is_given(const struct checked *c, uint32_t input) {
  return c->options->in.count > 0 && c->options->in.v[input].data != NULL;
}

static ax_status note_decides(struct checked *c, const ax_machine *machine, const ax_check_kernel *kernel) {
  AX_TRY(ax_grow(&c->decides, sizeof c->decides[0], c->decides_count, 1, &c->decides_capacity));
  ax_decides *made = &c->decides[c->decides_count];
  *made = (ax_decides){.eqn = machine->eqn, .operands = c->operands};
  c->decides_count++;
  const uint8_t counts = kernel->proved_for != AX_INPUTS_THESE ? 0 : c->by_values ? UINT8_MAX : AX_DECIDES_ACTS;
  for (uint32_t i = 0; i < machine->eqn->in_count; i++) made->operands[i] &= counts;
  return AX_OK;
}

/* Inputs that were not given, and that kernels' addresses or control flow follow from; or results, where these were compared. *unlike:
   some of the latter alone may be made up so that results differ where they can, and are noted. */
static ax_status list_made_up(struct checked *c, const ax_program *program, bool *unlike) {
  uint32_t *list = ax_arena_alloc(&c->texts, (program->in_count + 1) * sizeof list[0]);
  bool *distinct = ax_arena_alloc(&c->texts, (program->in_count + 1) * sizeof distinct[0]);
  uint8_t *decides = ax_calloc(program->in_count + 1, sizeof decides[0]);
  ax_status status = list == NULL || distinct == NULL || decides == NULL
                         ? ax_out_of_memory(0)
                         : ax_decides_of_program(program, c->decides, c->decides_count, decides);
  *unlike = false;
  for (uint32_t i = 0; i < program->in_count && status == AX_OK; i++) {
    distinct[i] = decides[i] == AX_DECIDES_RESULTS && !is_given(c, i) && !ax_is_float(program->types[i].dtype);
    *unlike = *unlike || distinct[i];
    if ((decides[i] & (AX_DECIDES_ACTS | AX_DECIDES_RESULTS)) != 0 && !is_given(c, i)) list[c->report.made_up_count++] = i;
  }
  c->report.made_up = list;
  c->distinct = distinct;
  ax_free(decides);
  return status;
}

static ax_status keep_notes(struct checked *c, const ax_eval_args *args, ax_check_kernel *kernel) {
  ax_text text = {0};
  ax_status status = ax_check_notes(args->eqn->params, args->eqn->in_count, c->points_unknown, &text);
  if (status == AX_OK) status = keep(c, text.length > 0 ? text.data : "", &kernel->notes);
  ax_text_deinit(&text);
  return status;
}

/* Called by reference evaluation when it reaches a kernel. */
static ax_status come_to(const ax_eval_args *args, void *context) {
  struct checked *c = context;
  ax_status status = AX_OK;
  if (seen_before(c, args->eqn, &status)) return AX_OK;
  AX_TRY(status);
  AX_TRY(ax_grow(&c->kernels, sizeof c->kernels[0], c->report.kernel_count, 1, &c->capacity));
  ax_check_kernel *kernel = &c->kernels[c->report.kernel_count];
  const ax_kernel_params *params = args->eqn->params;
  *kernel = (ax_check_kernel){.proved_for_why = ""};
  AX_TRY(keep(c, params->name != NULL ? params->name : "kernel", &kernel->name));
  kernel->location = ax_eqn_place(args->eqn, &c->texts);
  AX_TRY(
      keep(c, kernel->location != NULL ? kernel->location : "", &kernel->location)); /* the program may be gone before the report */
  c->report.kernel_count++;
  c->points_unknown = false;
  ax_machine *machine;
  AX_TRY(ax_machine_of(args, NULL, &machine));
  c->operands = ax_arena_alloc(&c->texts, args->eqn->in_count + 1);
  status = c->operands != NULL ? ax_decides_of_kernel(machine, c->operands) : ax_out_of_memory(args->eqn->in_count);
  if (status == AX_OK) status = check_machine(c, machine, args->in, kernel);
  if (status == AX_OK) status = keep_notes(c, args, kernel);
  if (status == AX_OK) status = note_decides(c, machine, kernel);
  ax_machine_release(machine);
  c->failed = c->failed || status != AX_OK;
  if (kernel->verdict == AX_WRONG || (kernel->verdict == AX_BOUNDED && c->report.verdict == AX_PROVED))
    c->report.verdict = kernel->verdict;
  return status;
}

/* --- The program --- */

static ax_status go_through(const ax_program *program, struct checked *c) {
  ax_tensor **in = ax_calloc(program->in_count + 1, sizeof in[0]), **out = ax_calloc(program->out_count + 1, sizeof out[0]);
  ax_status status = in == NULL || out == NULL ? ax_out_of_memory(0) : AX_OK;
  for (uint32_t i = 0; i < program->in_count && status == AX_OK; i++)
    status = ax_made_up_input(&program->types[i], is_given(c, i) ? &c->options->in.v[i] : NULL, i,
                              c->distinct != NULL && c->distinct[i], &in[i]);
  const ax_hooks hooks = {.kernel = come_to, .kernel_context = c};
  if (status == AX_OK) {
    status = ax_evaluate_on(&hooks, program, in, out);
    bool found =
        !c->failed && status != AX_OK && status != AX_OUT_OF_MEMORY &&
        (status == AX_DEADLOCK || c->report.verdict == AX_WRONG ||
         (status == AX_INVALID_ARGUMENT && c->report.kernel_count > 0)); /* as where a kernel that was proved is come to again */
    if (found) {
      status = keep(c, ax_message(), &c->report.stopped);
      c->report.verdict = AX_WRONG;
    }
  }
  for (uint32_t i = 0; in != NULL && i < program->in_count; i++) ax_tensor_release(in[i]);
  for (uint32_t k = 0; out != NULL && k < program->out_count; k++) ax_tensor_release(out[k]);
  ax_free(in);
  ax_free(out);
  return status;
}

/* Once; and again, if nothing is wrong only as all integers are 0: two cores that store theirs to one place store the same. */
static ax_status check_all(const ax_program *program, struct checked *c) {
  bool unlike;
  AX_TRY(go_through(program, c));
  AX_TRY(list_made_up(c, program, &unlike));
  if (!unlike || c->report.verdict == AX_WRONG || c->options->replay != NULL) return AX_OK;
  c->report = (ax_check_report){0};
  c->seen_count = c->decides_count = 0;
  AX_TRY(go_through(program, c));
  return list_made_up(c, program, &unlike);
}

ax_status(ax_check)(const ax_program *program, const ax_check_options *options, ax_check_report **out) {
  static const ax_check_options defaults;
  *out = NULL;
  AX_TRY(ax_require(program, "program"));
  AX_TRY(ax_whole_check(program));
  if (options == NULL) options = &defaults;
  AX_TRY(ax_option_check("check", "in", options->in.count, options->in.v, program->in_count, "input"));
  struct checked *c = ax_calloc(1, sizeof *c);
  if (c == NULL) return ax_out_of_memory(sizeof *c);
  c->options = options;
  c->program = program;
  ax_status status = check_all(program, c);
  c->report.kernels = c->kernels;
  ax_free(c->seen);
  ax_free(c->decides);
  c->seen = NULL;
  c->decides = NULL;
  if (status == AX_OK)
    *out = &c->report;
  else
    ax_check_report_release(&c->report);
  return status;
}

void ax_check_report_release(ax_check_report *report) {
  struct checked *c = (struct checked *)report; /* the report is its first member */
  if (c == NULL) return;
  ax_free(c->kernels);
  ax_free(c->seen);
  ax_arena_deinit(&c->texts);
  ax_free(c);
}
