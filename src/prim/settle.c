/* Loops whose carries' types are being found (settle.h): what a trace of the body shows is carried round the loop before the next trace. */
#include "prim/settle.h"

#include "ir/flow.h"

/* What is known of the loop that begins now, from the last trace of the body around it; NULL: nothing. */
static const ax_loop_note *known_note(const ax_settling *s) {
  ax_loop_notes *around = ax_builder_current()->notes;
  const ax_loop_note *known = around != NULL ? around->known : NULL;
  if (known == NULL) return NULL;
  around->known = known->next;
  bool same = known->function == s->note->function && known->count == s->count;
  for (uint32_t k = 0; same && k < s->count; k++) same = (known->start[k] & ~s->note->start[k]) == 0;
  return same ? known : NULL;
}

bool ax_settle_begin(ax_settling *s, ax_function function, ax_type *carries, uint32_t count) {
  ax_builder *builder = ax_builder_current();
  ax_arena *arena = builder->notes != NULL ? builder->notes->arena : &builder->notes_arena;
  *s = (ax_settling){.notes = {.arena = arena}, .carries = carries, .count = count, .changed = true};
  s->varying = ax_trace_alloc(count * sizeof s->varying[0]);
  s->note = ax_arena_alloc(arena, sizeof *s->note);
  ax_axis_set *sets = ax_arena_alloc(arena, 2 * (size_t)count * sizeof sets[0]);
  if (s->note == NULL || sets == NULL) ax_fail(ax_out_of_memory(count * sizeof sets[0]));
  if (ax_failed()) return false;
  *s->note = (ax_loop_note){.function = function, .count = count, .start = sets, .end = sets + count};
  for (uint32_t k = 0; k < count; k++) sets[k] = s->varying[k] = carries[k].spread.varying;
  const ax_loop_note *known = known_note(s);
  if (known == NULL) return true;
  for (uint32_t k = 0; k < count; k++) carries[k].spread.varying = s->varying[k] |= known->end[k];
  s->notes.made = known->inside;
  return true;
}

void ax_settle_round(ax_settling *s) {
  s->changed = false;
  s->notes.known = s->notes.made;
  s->notes.made = NULL;
  s->notes.last = &s->notes.made;
}

/* What differs between devices varies, so that what is computed is a lower bound of what types come to; most often it is just that. */
static ax_status carry_through(ax_settling *s, const ax_eqn *eqn, ax_axis_set *in) {
  ax_memo memo = {0};
  ax_flow flow = {.memo = &memo, .question = "settle"};
  ax_axis_set checked = ax_checked_axes(&ax_builder_current()->axes), *out = ax_calloc(eqn->out_count, sizeof out[0]);
  bool found = out != NULL && ax_flow_eqn(&flow, NULL, eqn, in, out);
  for (uint32_t k = 0; k < s->count && found; k++) s->carries[k].spread.varying = s->varying[k] |= out[k] & checked;
  ax_free(out);
  ax_memo_deinit(&memo);
  return found ? AX_OK : ax_out_of_memory(eqn->out_count * sizeof out[0]);
}

ax_status ax_settle(ax_settling *s, const ax_eqn *eqn, ax_axis_set *in, uint32_t first, const ax_axis_set *made) {
  for (uint32_t k = 0; k < s->count; k++) {
    s->changed = s->changed || made[k] != s->varying[k];
    s->carries[k].spread.varying = s->varying[k] = in[first + k] = made[k];
  }
  return s->changed ? carry_through(s, eqn, in) : AX_OK;
}

void ax_settle_end(ax_settling *s) {
  ax_loop_notes *around = ax_builder_current()->notes;
  for (uint32_t k = 0; k < s->count; k++) s->note->end[k] = s->varying[k];
  s->note->inside = s->notes.made;
  if (around == NULL) return;
  *around->last = s->note;
  around->last = &s->note->next;
}
