/* ax_run and ax_run_start: check and hold the arguments, lay them out, and get memory for results.

   A call is performed at once, on the caller's thread, if its arguments are ready and unused, apart from users that leave within
   the time of a lock: it needs no object. Otherwise it becomes a pending run. So does a call that need only be started, if it is
   worth a thread, and if its caller does not wait for it next: to hand a short run over and to be woken takes as long as the run. What a
   callback starts is performed by its thread as well, if it can be: the team may be in callbacks as a whole, each of which waits for what it
   has started in ways of its own, and then nobody would be left to perform that. */
#include "array/call.h"

#include <string.h>

#include "array/joint.h"
#include "array/pending.h"
#include "array/remote.h"
#include "run/inside.h"

/* --- Arguments --- */

enum { most_named = 5 };

void ax_mismatch(ax_mismatches *all, const ax_executable *e, uint32_t index, const ax_type *want, const ax_type *got,
                 const char *but) {
  if (all->count++ >= most_named) return;
  ax_text_add(&all->text, "\n  ");
  ax_argument_text(&all->text, e, NULL, index);
  ax_text_add(&all->text, ": the program takes %s, got %s%s", ax_type_string(want, NULL),
              got != NULL ? ax_type_string(got, NULL) : "nothing", but);
}

ax_status ax_mismatches_report(ax_mismatches *all, const char *who, uint32_t arguments) {
  if (all->count == 0) return AX_OK;
  if (all->count > most_named) ax_text_add(&all->text, "\n  ... and %u more", all->count - most_named);
  ax_status status = ax_error(AX_INVALID_ARGUMENT, "%s: %u of %u arguments do not match:%s", who, all->count, arguments,
                              all->text.data != NULL ? all->text.data : "");
  ax_text_deinit(&all->text);
  return status;
}

static ax_status check_arguments(const ax_executable *e, ax_array *const *in) {
  ax_mismatches wrong = {0};
  for (uint32_t i = 0; i < e->signature.in_count; i++) {
    if (in != NULL && in[i] != NULL && in[i]->layout == e->wanted[i] && !ax_array_gone(in[i])) continue; /* the usual case */
    const ax_type *want = ax_program_in_type(e->program, i);
    const ax_type *got = in != NULL && in[i] != NULL ? &in[i]->layout->type : NULL;
    bool gone = got != NULL && ax_signature_uses(&e->signature, i) && ax_array_gone(in[i]),
         foreign = got != NULL && in[i]->layout->runtime != e->runtime;
    if (got != NULL && !gone && !foreign && got->dtype == want->dtype && ax_same_shape(got, want)) continue;
    ax_mismatch(&wrong, e, i, want, got, gone ? ", which was donated to an earlier run" : foreign ? " of another runtime" : "");
  }
  return ax_mismatches_report(&wrong, "run", e->signature.in_count);
}

ax_status ax_call_check_counts(const ax_executable *e, const char *who, uint32_t in_count, uint32_t out_count) {
  AX_TRY(ax_list_check(who, "the program takes", "argument", in_count, e->signature.in_count));
  return ax_list_check(who, "the program gives", "result", out_count, e->signature.out_count);
}

/* Ends the use of the first `count` arguments. Donated ones are given back unless the run began. */
static void let_go(const ax_run_call *call, uint32_t count, bool began) {
  for (uint32_t i = 0; i < count; i++) {
    if (ax_call_donates(call, i)) ax_array_end_taking(call->in[i], began);
    else ax_array_leave(call->in[i]);
  }
}

static ax_status refuse_both(uint32_t donated, uint32_t other, const char *type) {
  return ax_error(AX_INVALID_ARGUMENT, "run: argument %u is donated, but the same array is argument %u too: %s", donated, other,
                  type);
}

/* Argument i is the same array as another argument, and one of the two is donated. Finds the other one for the message. */
ax_status ax_call_refuse_twice(const ax_run_call *call, uint32_t i) {
  uint32_t k = 0;
  while (k == i || call->in[k] != call->in[i] || !(ax_call_donates(call, k) || ax_call_donates(call, i))) k++;
  const uint32_t first = i < k ? i : k, second = i < k ? k : i;
  const bool first_given = ax_call_donates(call, first);
  return refuse_both(ax_call_input(call, first_given ? first : second), ax_call_input(call, first_given ? second : first),
                     ax_type_string(&call->in[i]->layout->type, NULL));
}

ax_status ax_call_check_same(const ax_run_call *call) {
  for (uint32_t k = 0; k < call->same_count; k++) {
    const ax_same *same = &call->same[k];
    if (!ax_array_gone(same->array)) continue;
    const char *type = ax_type_string(&same->array->layout->type, NULL);
    for (uint32_t i = 0; i < call->in_count; i++)
      if (call->in[i] == same->array) return refuse_both(ax_call_input(call, i), same->input, type);
    return ax_error(AX_INVALID_ARGUMENT, "run: argument %u, %s, is donated by another thread", same->input, type);
  }
  return AX_OK;
}

typedef enum holding { HELD, NOT_YET, FAILED } holding;

static ax_status wait_for_maker(const ax_array *array) { return array->maker != NULL ? ax_pending_wait(array->maker) : AX_OK; }

/* Called when all arguments are ready. From here on no other thread takes the arguments' memory or uses that of donated ones.
   NOT_YET: a donated argument has users, or occurs twice. */
static holding hold(const ax_run_call *call, ax_status *status) {
  *status = AX_OK;
  for (uint32_t i = 0; i < call->in_count; i++) {
    ax_array *array = call->in[i];
    const ax_pending *maker = array->maker;
    if (maker != NULL && ax_pending_over(maker)) *status = wait_for_maker(array);
    bool made = maker == NULL || (ax_pending_over(maker) && *status == AX_OK);
    if (made && (ax_call_donates(call, i) ? ax_array_take(array) : ax_array_use(array))) continue;
    let_go(call, i, false);
    return *status == AX_OK ? NOT_YET : FAILED;
  }
  *status = ax_call_check_same(call);
  if (*status == AX_OK) return HELD;
  let_go(call, call->in_count, false);
  return FAILED;
}

/* --- One run --- */

/* The layout of a result that is passed on. */
static ax_layout *layout_of(const ax_run_call *call, const ax_passed *passed) {
  ax_layout *wanted = call->on->passed[passed->result];
  return wanted != NULL ? wanted : call->in[passed->from]->layout;
}

ax_status ax_call_make_arrays(const ax_run_call *call) {
  const uint32_t made = call->e->compiled.plan->out_count;
  for (uint32_t k = 0; k < made; k++) AX_TRY(ax_array_create(call->on->made[k], NULL, &call->out[k]));
  for (uint32_t k = 0; k < call->passed_count; k++)
    AX_TRY(ax_array_create(layout_of(call, &call->passed[k]), NULL, &call->out[made + k]));
  return AX_OK;
}

void ax_call_drop_arrays(ax_array **out, uint32_t count) {
  for (uint32_t k = 0; k < count; k++) {
    ax_array_release(out[k]);
    out[k] = NULL;
  }
}

typedef struct performance {
  const ax_run_call *call;
  ax_parts **inputs;  /* retained: laid out as the plan wants them */
  ax_parts **outputs; /* retained, until the results have them */
} performance;

static ax_status lay_out_inputs(performance *p) {
  const ax_executable *e = p->call->e;
  for (uint32_t i = 0; i < e->compiled.plan->in_count; i++) {
    const ax_array *array = p->call->in[i];
    const ax_laying laying = e->compiled.plan->donate[i] ? AX_LAY_WRITTEN : AX_LAY_READ;
    AX_TRY(ax_parts_lay_out(array->parts, array->layout, e->wanted[e->signature.kept[i]], laying, &p->inputs[i]));
    if (p->inputs[i] != array->parts && p->inputs[i]->memory != NULL)
      atomic_fetch_add_explicit(&ax_runtime_tally(e->runtime)->copied, 1, memory_order_relaxed);
  }
  return AX_OK;
}

/* Gives each result parts of its own, or those of the donated input whose memory it gets. */
static ax_status make_outputs(performance *p) {
  ax_executable *e = p->call->e;
  for (uint32_t k = 0; k < e->compiled.plan->out_count; k++) {
    const ax_result *result = &e->compiled.results[k];
    ax_parts *donated = result->donated != AX_NONE ? p->inputs[result->donated] : NULL;
    if (result->lent != AX_NONE) AX_TRY(ax_parts_in(e->assigned.made[k], p->inputs[result->lent], &p->outputs[k]));
    else if (result->part != NULL)
      AX_TRY(ax_parts_share(e->runtime, e->assigned.made[k], result->part, result->part_count, donated, &p->outputs[k]));
    else if (donated != NULL) p->outputs[k] = ax_parts_retain(donated);
    else AX_TRY(ax_parts_create(e->runtime, e->assigned.made[k], &p->outputs[k]));
  }
  return AX_OK;
}

/* Results that a run has left in the memory of an argument get their own if that is lent by the caller, who may use it again once
   the argument is released, or if blocks of the argument lie with several owners. */
static ax_status leave_lent(performance *p) {
  const ax_executable *e = p->call->e;
  for (uint32_t k = 0; k < e->compiled.plan->out_count && e->compiled.points; k++) {
    ax_parts *own;
    const uint32_t in = e->compiled.results[k].lent;
    if (in == AX_NONE || ax_parts_may_hold(p->inputs[in])) continue;
    AX_TRY(ax_parts_own(p->outputs[k], e->assigned.made[k], &own));
    ax_parts_release(p->outputs[k]);
    p->outputs[k] = own;
  }
  return AX_OK;
}

/* Passes on results that are an argument. */
static ax_status pass_on(performance *p) {
  const ax_run_call *call = p->call;
  ax_parts **outputs = p->outputs + call->e->compiled.plan->out_count;
  for (uint32_t k = 0; k < call->passed_count; k++) {
    const ax_array *from = call->in[call->passed[k].from];
    AX_TRY(ax_parts_lay_out(from->parts, from->layout, layout_of(call, &call->passed[k]), AX_LAY_SHARED, &outputs[k]));
  }
  return AX_OK;
}

/* Donated inputs lose their parts, whether or not results live in their memory. */
static void take_donations(const ax_run_call *call) {
  for (uint32_t i = 0; i < call->in_count; i++) {
    if (!ax_call_donates(call, i)) continue;
    ax_parts_release(call->in[i]->parts);
    call->in[i]->parts = NULL;
  }
}

/* Processes run together or not at all, so none may keep what another one has no memory to keep. */
static bool may_keep_constants(const ax_executable *e) { return e->compiled.is_constant && e->compiled.map == NULL; }

/* Results that depend on no input are those of the first run. They share its parts, so a run to which one is donated writes into
   a copy. */
static bool take_constants(performance *p) {
  const ax_executable *e = p->call->e;
  ax_parts **kept = may_keep_constants(e) ? atomic_load_explicit(&e->constant_parts, memory_order_acquire) : NULL;
  for (uint32_t k = 0; kept != NULL && k < e->compiled.plan->out_count; k++) p->outputs[k] = ax_parts_retain(kept[k]);
  return kept != NULL;
}

/* If there is no memory to keep them, the next run computes them again. */
static void keep_constants(performance *p) {
  ax_executable *e = p->call->e;
  ax_parts **none = NULL, **kept = may_keep_constants(e) ? ax_alloc(e->compiled.plan->out_count * sizeof kept[0]) : NULL;
  if (kept == NULL) return;
  for (uint32_t k = 0; k < e->compiled.plan->out_count; k++) kept[k] = ax_parts_retain(p->outputs[k]);
  if (atomic_compare_exchange_strong(&e->constant_parts, &none, kept)) return;
  for (uint32_t k = 0; k < e->compiled.plan->out_count; k++) ax_parts_release(kept[k]); /* another thread was first */
  ax_free(kept);
}

static void count_without(ax_executable *e) {
  atomic_fetch_add_explicit(&ax_runtime_tally(e->runtime)->calls_without, 1, memory_order_relaxed);
}

/* What processes compare: the program, and how the arguments lie. */
static void describe_run(const void *context, ax_text *text) {
  const ax_run_call *call = context;
  const ax_executable *e = call->e;
  ax_text_add(text, "runs a program of %u equations with digest %016llx", e->program->eqn_count, (unsigned long long)e->check);
  for (uint32_t i = 0; i < call->in_count; i++) {
    ax_text_add(text, "\nargument %u: ", ax_call_input(call, i));
    ax_layout_text(text, call->in[i]->layout);
  }
}

static uint64_t check_of(const ax_run_call *call) {
  uint64_t check = ax_hash_word(3, call->e->check);
  for (uint32_t i = 0; i < call->in_count; i++) check = ax_hash_word(check, call->in[i]->layout->hash);
  return check | 1;
}

static void give_results(performance *p) {
  for (uint32_t k = 0; k < ax_call_out_count(p->call); k++) {
    p->call->out[k]->parts = p->outputs[k];
    p->outputs[k] = NULL;
  }
}

/* Of a program that a plugin runs. Its results may be arguments of other runs from when it is handed over, and stay results of it if it
   fails, as those runs then do. */
static ax_status launch(performance *p, ax_client_going *going) {
  AX_TRY(pass_on(p));
  if (p->call->e->compiled.idle_plan) count_without(p->call->e);
  else AX_TRY(ax_remote_launch(p->call, p->outputs, going));
  take_donations(p->call);
  give_results(p);
  return AX_OK;
}

static ax_status run(performance *p, uint64_t number, bool *began) {
  ax_executable *e = p->call->e;
  const bool together = e->compiled.map != NULL;
  AX_TRY(lay_out_inputs(p));
  AX_TRY(pass_on(p));
  if (e->compiled.idle_plan || take_constants(p)) {
    *began = true;
    count_without(e);
    return AX_OK;
  }
  AX_TRY(make_outputs(p));
  atomic_fetch_add_explicit(&ax_runtime_tally(e->runtime)->runs, 1, memory_order_relaxed);
  const ax_doing doing = {together ? check_of(p->call) : 0, describe_run, p->call, "ax_run"};
  AX_TRY(ax_execute(&e->runner, p->inputs, p->outputs, number, &doing, p->call->options, began));
  AX_TRY(leave_lent(p));
  keep_constants(p);
  return AX_OK;
}

ax_status ax_call_launch(const ax_run_call *call, ax_client_going *going) {
  const uint32_t out_count = ax_call_out_count(call);
  ax_parts **outputs = ax_calloc(out_count + 1, sizeof outputs[0]);
  *going = (ax_client_going){0};
  if (outputs == NULL) return ax_out_of_memory(out_count * sizeof outputs[0]);
  performance p = {call, NULL, outputs};
  const ax_status status = launch(&p, going);
  for (uint32_t k = 0; k < out_count; k++) ax_parts_release(outputs[k]);
  ax_free(outputs);
  return status;
}

static ax_status launch_and_wait(const ax_run_call *call, bool *began) {
  ax_client_going going;
  AX_TRY(ax_call_launch(call, &going));
  *began = true;
  return ax_client_finish(&going);
}

static ax_status perform(const ax_run_call *call, uint64_t number, bool *began) {
  ax_parts *few[64];
  const uint32_t in_count = call->e->compiled.plan->in_count, out_count = ax_call_out_count(call);
  const size_t count = (size_t)in_count + out_count;
  *began = false;
  if (call->e->runtime->client != NULL) return launch_and_wait(call, began);
  ax_parts **parts = count <= AX_COUNT(few) ? few : ax_alloc(count * sizeof parts[0]);
  if (parts == NULL) return ax_out_of_memory(count * sizeof parts[0]);
  memset(parts, 0, count * sizeof parts[0]);
  performance p = {call, parts, parts + in_count};
  ax_status status = run(&p, number, began);
  if (*began) take_donations(call);
  for (uint32_t k = 0; k < out_count; k++) {
    if (status == AX_OK) call->out[k]->parts = p.outputs[k];
    else ax_parts_release(p.outputs[k]);
  }
  for (uint32_t i = 0; i < in_count; i++) ax_parts_release(p.inputs[i]);
  if (parts != few) ax_free(parts);
  return status;
}

static bool has_unforeseen_loops(const ax_compiled *c) { return c->brief && !c->ends_soon; }

ax_status ax_call_perform(const ax_run_call *call, uint64_t number, bool *began) {
  ax_executable *e = call->e;
  if (!has_unforeseen_loops(&e->compiled)) return perform(call, number, began);
  const int64_t start = ax_timeline_now();
  const ax_status status = perform(call, number, began);
  if (status == AX_OK) atomic_store_explicit(&e->took, ax_timeline_now() - start, memory_order_relaxed);
  return status;
}

/* Performs the call now. The arguments are ready, and in use by this call or given to it, so that its callbacks and other threads
   may release the caller's references to them. They may overwrite the caller's list too. */
static ax_status run_now(const ax_run_call *given) {
  ax_array *few[64], **own = given->in_count <= AX_COUNT(few) ? few : ax_alloc(given->in_count * sizeof own[0]);
  bool began = false;
  if (own == NULL) {
    let_go(given, given->in_count, false);
    return ax_out_of_memory(given->in_count * sizeof own[0]);
  }
  if (given->in_count > 0) memcpy(own, given->in, given->in_count * sizeof own[0]);
  ax_run_call call = *given;
  call.in = own;
  ax_status status = ax_call_make_arrays(&call);
  if (status == AX_OK) status = ax_call_perform(&call, 0, &began);
  let_go(&call, call.in_count, began);
  if (own != few) ax_free(own);
  return status;
}

/* --- Calls --- */

typedef enum manner { AT_ONCE, LATER, TOGETHER } manner; /* TOGETHER: later, as a run that all processes make */

/* As far as can be told: by its plan, and where that has loops of unknown length by its last run. */
static bool is_short(ax_executable *e) {
  enum { nanoseconds = 1000000 };
  const int64_t took = atomic_load_explicit(&e->took, memory_order_relaxed);
  return e->compiled.ends_soon || (took > 0 && took < nanoseconds);
}

static ax_status start(ax_run_call *call, manner how, ax_pending **pending) {
  ax_executable *e = call->e;
  ax_status status;
  call->together = how == TOGETHER;
  const bool awaited = call->options != NULL && call->options->awaited && is_short(e);
  const bool hands_over = how == LATER && !awaited && !ax_inside_nested(&e->runtime->executor);
  const bool worth_a_thread = call->together || (hands_over && e->compiled.threaded && ax_workers_any(e->runtime->executor.workers));
  *pending = NULL;
  holding held = worth_a_thread ? NOT_YET : hold(call, &status);
  if (held == NOT_YET) return ax_pending_start(call, pending);
  return held == HELD ? run_now(call) : status;
}

/* A call of a program whose plan has fewer inputs or results. */
typedef struct selection {
  ax_run_call call;
  ax_array **in, **out;
  uint32_t *input;
  uint32_t
      *given; /* by argument that is donated but not the plan's: 1 + its index in the call; 0: it is not there yet */
  ax_passed *passed;
  ax_same *same;
} selection;

/* Allocates the lists for the most entries they can have, as one block of memory, owned by the caller: *memory. */
static ax_status make_room(selection *s, ax_executable *e, const ax_assigned *on, void **memory) {
  const size_t given = e->signature.in_count, out_count = e->signature.out_count, in_count = given + out_count;
  const size_t bytes = (in_count + out_count) * sizeof s->in[0] + in_count * sizeof s->input[0] + given * sizeof s->given[0] +
                       out_count * (sizeof s->passed[0] + sizeof s->same[0]);
  void *next = *memory = ax_calloc(1, bytes + 1);
  if (next == NULL) return ax_out_of_memory(bytes);
  s->in = next;
  s->out = s->in + in_count;
  s->same = (ax_same *)(void *)(s->out + out_count);
  s->passed = (ax_passed *)(void *)(s->same + out_count);
  s->input = (uint32_t *)(void *)(s->passed + out_count);
  s->given = s->input + in_count;
  s->call = (ax_run_call){.e = e, .on = on, .in = s->in, .out = s->out, .input = s->input, .passed = s->passed, .same = s->same};
  return AX_OK;
}

static uint32_t select_argument(selection *s, ax_array *const *in, uint32_t i) {
  s->in[s->call.in_count] = in[i];
  s->input[s->call.in_count] = i;
  return s->call.in_count++;
}

/* Gives the index of a donated argument in the call, where it may occur only once. */
static uint32_t find_given(selection *s, ax_array *const *in, uint32_t i) {
  if (s->call.e->signature.in[i].place != AX_NONE) return s->call.e->signature.in[i].place;
  if (s->given[i] == 0) s->given[i] = select_argument(s, in, i) + 1;
  return s->given[i] - 1;
}

/* Says whether result k is the very array of its argument: the argument is not donated, and has the result's layout. */
static bool is_same_array(const ax_executable *e, ax_array *const *in, uint32_t k) {
  const ax_signature_out *r = &e->signature.out[k];
  const ax_layout *is = in[r->input]->layout, *wanted = e->assigned.passed[k];
  return !e->signature.in[r->input].donate && (wanted == NULL || (ax_layout_same(is, wanted) && is->devices == wanted->devices));
}

static void select_all(selection *s, ax_array *const *in, ax_array **out) {
  const ax_executable *e = s->call.e;
  for (uint32_t i = 0; i < e->compiled.plan->in_count; i++) select_argument(s, in, e->signature.kept[i]);
  for (uint32_t k = 0; k < e->signature.out_count; k++) {
    const uint32_t i = e->signature.out[k].input;
    if (i == AX_NONE) continue;
    if (is_same_array(e, in, k)) s->same[s->call.same_count++] = (ax_same){out[k] = ax_array_retain(in[i]), i};
    else
      s->passed[s->call.passed_count++] =
          (ax_passed){e->signature.in[i].donate ? find_given(s, in, i) : select_argument(s, in, i), k};
  }
}

/* Puts the results into the program's order. */
static void hand_out(const selection *s, ax_array **out) {
  const ax_executable *e = s->call.e;
  for (uint32_t k = 0; k < e->signature.out_count; k++)
    if (e->signature.out[k].made != AX_NONE) out[k] = s->out[e->signature.out[k].made];
  for (uint32_t k = 0; k < s->call.passed_count; k++) out[s->passed[k].result] = s->out[e->compiled.plan->out_count + k];
}

/* Nothing runs if all results are arguments as they are, and no other argument is taken. */
static ax_status start_selected(ax_executable *e, const ax_assigned *on, ax_array *const *in, ax_array **out,
                                const ax_run_options *options, manner how, ax_pending **pending) {
  selection s;
  void *memory;
  *pending = NULL;
  AX_TRY(make_room(&s, e, on, &memory));
  select_all(&s, in, out);
  s.call.options = options;
  const bool nothing = e->compiled.idle_plan && s.call.in_count == 0;
  if (nothing) count_without(e);
  ax_status status = nothing ? AX_OK : start(&s.call, how, pending);
  hand_out(&s, out);
  ax_free(memory);
  return status;
}

static ax_status check_call(const ax_executable *e, ax_array *const *in, uint32_t in_count, ax_array **out, uint32_t out_count) {
  for (uint32_t k = 0; k < ax_list_entries(out_count, e != NULL ? e->signature.out_count : 0); k++) out[k] = NULL;
  AX_TRY(ax_require(e, "executable"));
  AX_TRY(ax_call_check_counts(e, "run", in_count, out_count));
  return check_arguments(e, in);
}

static ax_status begin(ax_executable *e, ax_array *const *in, ax_array **out, const ax_run_options *options, manner how,
                       ax_pending **pending) {
  const ax_assigned *on;
  *pending = NULL;
  AX_TRY(ax_assigned_find(e, in, "run", NULL, &on));
  if (!e->signature.plain) return start_selected(e, on, in, out, options, how, pending);
  return start(&(ax_run_call){.e = e, .on = on, .in_count = e->signature.in_count, .in = in, .out = out, .options = options}, how, pending);
}

/* Waits for results that are arguments, since these may be results of a run that is not over. */
static ax_status wait_for_passed(const ax_executable *e, ax_array *const *out) {
  for (uint32_t k = 0; !e->signature.plain && k < e->signature.out_count; k++)
    if (e->signature.out[k].input != AX_NONE) AX_TRY(wait_for_maker(out[k]));
  return AX_OK;
}

static ax_status run_to_end(ax_executable *e, ax_array *const *in, ax_array **out, const ax_run_options *options) {
  ax_pending *pending;
  ax_status status = begin(e, in, out, options, AT_ONCE, &pending);
  if (pending != NULL) status = ax_pending_wait(pending);
  ax_pending_release(pending);
  return status == AX_OK ? wait_for_passed(e, out) : status;
}

/* Once the run is over. Where there is no memory to be told by, this thread waits. */
static void tell_when_over(ax_pending *pending, const ax_run_options *options) {
  if (pending != NULL && ax_pending_when_over(pending, options->over, options->context) == AX_OK) return;
  const ax_status status = pending != NULL ? ax_pending_wait(pending) : AX_OK;
  options->over(status, status == AX_OK ? NULL : ax_message(), options->context);
}

static ax_status start_in_manner(ax_executable *e, ax_array *const *in, ax_array **out, const ax_run_options *options, manner how) {
  ax_pending *pending;
  ax_status status = begin(e, in, out, options, how, &pending);
  if (status == AX_OK && options != NULL && options->over != NULL) tell_when_over(pending, options);
  ax_pending_release(pending);
  return status;
}
static ax_status run_later(ax_executable *e, ax_array *const *in, ax_array **out, const ax_run_options *options) {
  return start_in_manner(e, in, out, options, LATER);
}
static ax_status run_later_together(ax_executable *e, ax_array *const *in, ax_array **out, const ax_run_options *options) {
  return start_in_manner(e, in, out, options, TOGETHER);
}

typedef ax_status way(ax_executable *, ax_array *const *, ax_array **, const ax_run_options *);

/* Holds the executable until the call returns, since a callback of the run, or another thread, may release the caller's
   reference. */
static ax_status call_held(way *run, ax_executable *e, uint32_t in_count, ax_array *const *in, uint32_t out_count, ax_array **out,
                           const ax_run_options *options) {
  AX_TRY(check_call(e, in, in_count, out, out_count));
  ax_inside inside;
  const uint32_t place = ax_callers_enter(&e->callers);
  ax_inside_enter(&inside, &e->runtime->executor);
  ax_status status = run(e, in, out, options);
  if (status != AX_OK) ax_call_drop_arrays(out, e->signature.out_count);
  ax_executable_leave(e, place);
  ax_inside_leave(&inside);
  return status;
}

/* Whether all processes make the call: the program's mesh is spread over them, or they lay out its arguments. */
static bool is_together(const ax_executable *e, ax_array *const *in, uint32_t in_count) {
  if (e == NULL || e->runtime->executor.processes == NULL) return false;
  if (e->compiled.map != NULL) return true;
  for (uint32_t i = 0; in != NULL && i < ax_list_entries(in_count, e->signature.in_count); i++)
    if (in[i] != NULL && in[i]->layout->map != NULL && ax_signature_uses(&e->signature, i)) return true;
  return false;
}

static void describe_call(const void *context, ax_text *text) {
  const ax_executable *e = context;
  ax_text_add(text, "calls a program of %u equations with digest %016llx", e->program->eqn_count, (unsigned long long)e->check);
}

ax_doing ax_call_doing(const ax_executable *e) { return (ax_doing){ax_hash_word(4, e->check) | 1, describe_call, e, "ax_run"}; }

/* The runs that processes do together are made one after the other, in the same order. */
static ax_status call_together(ax_executable *e, uint32_t in_count, ax_array *const *in, uint32_t out_count, ax_array **out,
                               const ax_run_options *options) {
  ax_joint joint;
  const ax_executable *held = ax_executable_retain(e);
  const ax_doing doing = ax_call_doing(held);
  ax_joint_begin(&joint, e->runtime, true, &doing);
  ax_status status = ax_joint_end_run(&joint, call_held(run_to_end, e, in_count, in, out_count, out, options));
  if (status != AX_OK) ax_call_drop_arrays(out, ax_list_entries(out_count, e->signature.out_count));
  ax_executable_release(e);
  return status;
}

/* A process whose call fails before it is pending waits for those before it, and then says so in its place: others find it failed
   when they come to it. */
static ax_status start_together(ax_executable *e, uint32_t in_count, ax_array *const *in, uint32_t out_count, ax_array **out,
                               const ax_run_options *options) {
  ax_joint joint;
  const ax_executable *held = ax_executable_retain(e);
  const ax_doing doing = ax_call_doing(held);
  ax_status status = call_held(run_later_together, e, in_count, in, out_count, out, options);
  if (status != AX_OK) {
    ax_joint_begin(&joint, e->runtime, true, &doing);
    status = ax_joint_end_run(&joint, status);
  }
  ax_executable_release(e);
  return status;
}

/* Without threads a started run would begin only when it is waited for, and other processes would wait until then. */
static bool may_be_pending(const ax_executable *e) {
  return !e->compiled.idle_plan && ax_workers_any(e->runtime->executor.workers);
}

ax_status (ax_run)(ax_executable *e, uint32_t in_count, ax_array *const *in, uint32_t out_count, ax_array **out) {
  if (is_together(e, in, in_count)) return call_together(e, in_count, in, out_count, out, NULL);
  return call_held(run_to_end, e, in_count, in, out_count, out, NULL);
}

static ax_status start_run(ax_executable *e, uint32_t in_count, ax_array *const *in, uint32_t out_count, ax_array **out,
                           const ax_run_options *options) {
  if (!is_together(e, in, in_count)) return call_held(run_later, e, in_count, in, out_count, out, options);
  if (may_be_pending(e)) return start_together(e, in_count, in, out_count, out, options);
  AX_TRY(call_together(e, in_count, in, out_count, out, options));
  if (options != NULL && options->over != NULL) tell_when_over(NULL, options);
  return AX_OK;
}

ax_status (ax_run_start)(ax_executable *e, uint32_t in_count, ax_array *const *in, uint32_t out_count, ax_array **out) {
  return start_run(e, in_count, in, out_count, out, NULL);
}

ax_status (ax_run_start_with)(ax_executable *e, uint32_t in_count, ax_array *const *in, uint32_t out_count, ax_array **out,
                              const ax_run_options *options) {
  for (uint32_t k = 0; k < ax_list_entries(out_count, e != NULL ? e->signature.out_count : 0); k++) out[k] = NULL;
  AX_TRY(ax_require(options, "options"));
  return start_run(e, in_count, in, out_count, out, options);
}

/* Does not wait for an array that was donated, since it can never be read. Holds the array meanwhile: a callback of the run that
   makes it may release the caller's reference. The casts: counting users and references does not change the array. */
ax_status ax_array_wait(const ax_array *array) {
  AX_TRY(ax_require(array, "array"));
  ax_array *held = ax_array_retain((ax_array *)array);
  ax_status status = ax_array_gone(held) ? AX_OK : wait_for_maker(held);
  if (status == AX_OK && ax_array_gone(held)) status = ax_array_refuse_donated(held);
  ax_array_release(held);
  return status;
}

ax_status ax_array_when_ready(const ax_array *array, ax_ready_callback tell, void *context) {
  AX_TRY(ax_require(array, "array"));
  ax_array *held = ax_array_retain((ax_array *)array);
  ax_status status = AX_OK;
  if (ax_array_gone(held)) tell(ax_array_refuse_donated(held), ax_message(), context);
  else if (held->maker == NULL) tell(AX_OK, NULL, context);
  else status = ax_pending_when_over(held->maker, tell, context);
  ax_array_release(held);
  return status;
}

bool ax_array_is_ready(const ax_array *array) {
  return array != NULL && (array->maker == NULL || ax_pending_over(array->maker) || ax_array_gone((ax_array *)array));
}
