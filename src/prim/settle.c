/* Finding the types of loops' carries (settle.h): the changes that one trace of the body shows are carried round the loop before
   the next trace. */
#include "prim/settle.h"

#include "ir/flow.h"

/* Whether `a` is at most what `b` is: invariant, reduced and varying are more each than the one before. What began as parts is not
   enlarged: that the body gives another type is then said where the loop is bound. */
static bool is_within(const ax_spread *a, const ax_spread *b) {
  return (a->varying & ~b->varying) == 0 && (a->reduced & ~(b->reduced | b->varying | b->unreduced)) == 0;
}

static const ax_context_key notes_key = {.name = "loop notes"};

static void free_arena(void *arena) {
  ax_arena_deinit(arena);
  ax_free(arena);
}
static const ax_context_key memory_key = {.name = "memory of loop notes", .release = free_arena};

bool ax_settle_inside(ax_loop_notes *notes) { return ax_context_set(&notes_key, notes); }

/* The memory for the note of a loop that begins now: that of the loop around it, or else one of the trace's, apart from the memory
   that becomes the program's. NULL: the trace has failed. */
static ax_arena *memory_of_notes(void) {
  if (ax_failed()) return NULL;
  const ax_loop_notes *around = ax_context_get(&notes_key);
  if (around != NULL) return around->arena;
  ax_arena *arena = ax_context_own(ax_builder_current(), &memory_key);
  if (arena != NULL) return arena;
  arena = ax_calloc(1, sizeof *arena);
  if (arena == NULL) ax_fail(ax_out_of_memory(sizeof *arena));
  if (arena == NULL || ax_context_set(&memory_key, arena)) return arena;
  ax_free(arena);
  return NULL;
}

/* The note about the loop that begins now, from the last trace of the body around it. NULL: there is none. */
static const ax_loop_note *known_note(const ax_settling *s) {
  ax_loop_notes *around = ax_context_get(&notes_key);
  const ax_loop_note *known = around != NULL ? around->known : NULL;
  if (known == NULL) return NULL;
  around->known = known->next;
  bool same = known->function == s->note->function && known->count == s->count;
  for (uint32_t k = 0; same && k < s->count; k++) same = is_within(&known->start[k], &s->note->start[k]);
  return same ? known : NULL;
}

/* False: nothing came of it. */
static bool enlarge(ax_settling *s, uint32_t k, ax_axis_set varying, ax_axis_set reduced) {
  ax_spread *on = &s->carries[k].spread, before = *on;
  on->reduced |= reduced & ~on->unreduced;
  ax_spread_vary(on, varying);
  s->spread[k] = *on;
  return !ax_spread_equal(&before, on);
}

bool ax_settle_begin(ax_settling *s, ax_function function, ax_type *carries, uint32_t count) {
  ax_arena *arena = memory_of_notes();
  *s = (ax_settling){.notes = {.arena = arena}, .carries = carries, .count = count, .changed = true};
  if (arena == NULL) return false;
  s->spread = ax_trace_alloc(count * sizeof s->spread[0]);
  s->note = ax_arena_alloc(arena, sizeof *s->note);
  ax_spread *spreads = ax_arena_alloc(arena, 2 * (size_t)count * sizeof spreads[0]);
  if (s->note == NULL || spreads == NULL) ax_fail(ax_out_of_memory(count * sizeof spreads[0]));
  if (ax_failed()) return false;
  *s->note = (ax_loop_note){.function = function, .count = count, .start = spreads, .end = spreads + count};
  for (uint32_t k = 0; k < count; k++) spreads[k] = s->spread[k] = carries[k].spread;
  const ax_loop_note *known = known_note(s);
  if (known == NULL) return true;
  for (uint32_t k = 0; k < count; k++) (void)enlarge(s, k, known->end[k].varying, known->end[k].reduced);
  s->notes.made = known->inside;
  return true;
}

void ax_settle_round(ax_settling *s) {
  s->changed = false;
  s->notes.known = s->notes.made;
  s->notes.made = NULL;
  s->notes.last = &s->notes.made;
}

/* Values that differ between devices vary, so the sets that flow through the body are a lower bound of the carries' final types.
   Most often they are the final types. */
static ax_status carry_through(ax_settling *s, const ax_eqn *eqn, ax_axis_set *in) {
  ax_memo memo = {0};
  ax_flow flow = {.memo = &memo, .question = "settle"};
  ax_axis_set checked = ax_checked_axes(&ax_builder_current()->axes), *out = ax_calloc(eqn->out_count, sizeof out[0]);
  bool found = out != NULL && ax_flow_eqn(&flow, NULL, eqn, in, out);
  for (uint32_t k = 0; k < s->count && found; k++) (void)enlarge(s, k, out[k] & checked, 0);
  ax_free(out);
  ax_memo_deinit(&memo);
  return found ? AX_OK : ax_out_of_memory(eqn->out_count * sizeof out[0]);
}

/* The body makes parts of what began otherwise: only who writes the loop can say parts of what it began as. */
static ax_status check_unreduced(const ax_settling *s, uint32_t k, const ax_spread *made) {
  const ax_mesh *axes = &ax_builder_current()->axes;
  ax_axis_set new = made->unreduced & ~s->spread[k].unreduced;
  if (new == 0) return AX_OK;
  uint32_t axis = (uint32_t)__builtin_ctzll(new);
  return ax_error(
      AX_INVALID_ARGUMENT,
      "carry %u starts %s along \"%s\", but what the body makes of it is %s; vary_unreduced_cast makes its start so, or %s", k,
      ax_state_name(&s->spread[k], axis), axes->axis[axis].name, ax_state_name(made, axis), ax_reduce_advice(made->kind));
}

ax_status ax_settle(ax_settling *s, const ax_eqn *eqn, ax_axis_set *in, uint32_t first, const ax_spread *made) {
  for (uint32_t k = 0; k < s->count; k++) {
    AX_TRY(check_unreduced(s, k, &made[k]));
    s->changed = enlarge(s, k, made[k].varying, made[k].reduced) || s->changed;
    in[first + k] = s->spread[k].varying;
  }
  return s->changed ? carry_through(s, eqn, in) : AX_OK;
}

void ax_settle_end(ax_settling *s) {
  ax_loop_notes *around = ax_context_get(&notes_key);
  for (uint32_t k = 0; k < s->count; k++) s->note->end[k] = s->spread[k];
  s->note->inside = s->notes.made;
  if (around == NULL) return;
  *around->last = s->note;
  around->last = &s->note->next;
}
