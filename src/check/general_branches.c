/* Branches and loops that depend on inputs, in the general run.

   A branch is walked along each of its ways, each from the same values; what they leave is joined. A loop that counts up to a bound is
   walked with all that it changes unknown but its index, which is between the bounds. What memory a round writes is known after a first
   walk; from then on it may hold anything. The second walk has the addresses of any round, and the third is after any round: it finds what is
   no longer written, or stored and not committed.

       fori (i < n)  { load table i; copy; wait; use }        i: a symbol from 0 to the most that n is, less 1 */
#include <string.h>

#include "check/general.h"
#include "ir/number.h"
#include "prim/prims.h"

bool ax_general_depends(const ax_general *g, uint32_t core, const ax_core_code_step *step, int64_t *known) {
  *known = 0;
  if (step->kind != AX_STEP_TEST && (step->kind != AX_STEP_SWITCH || step->target_count == 1)) return false;
  return !ax_general_known(g, core, step->in[0], known);
}

/* Where all ways of a branch meet: each ends with a jump there. */
static uint32_t meeting_of(const ax_core_code *code, const ax_core_code_step *step) {
  const ax_core_code_step *jump = &code->steps[step->targets[1] - 1];
  return jump->kind == AX_STEP_JUMP ? jump->target : AX_NONE;
}

/* Where a loop's condition begins: its last step jumps there. */
static uint32_t head_of(const ax_core_code *code, const ax_core_code_step *test) { return code->steps[test->target - 1].target; }

bool ax_general_is_within(const ax_general *g, uint32_t core, const ax_core_code_step *step, uint32_t pc) {
  const ax_core_code *code = ax_general_code(g, core);
  int64_t known;
  if (!ax_general_depends(g, core, step, &known)) return false;
  if (step->kind == AX_STEP_TEST) return pc >= head_of(code, step) && pc < step->target;
  return pc >= step->targets[0] && pc < meeting_of(code, step);
}

static void set_slot(ax_general_core *core, uint32_t slot, ax_abstract *value) {
  ax_abstract_release(core->slot[slot]);
  core->slot[slot] = value;
}

/* From `from` to `to`, as acts that may come. Copies that are started have to be waited for. */
static ax_status walk_part(ax_general *g, uint32_t core, const ax_core_code_step *branch, uint32_t from, uint32_t to) {
  const uint32_t first = g->open_first;
  g->cores[core].pc = from;
  g->open_first = g->open_count;
  ax_status status = ax_general_walk_acts(g, core, to);
  if (status == AX_OK && !ax_general_is_closed(g))
    status = ax_general_refuse(branch, "on inputs it starts a copy that it does not wait for");
  g->open_count = g->open_first;
  g->open_first = first;
  return status;
}

/* --- Branches --- */

/* Joins what a way left in the slots with what the ways before did. */
static ax_status join_slots(ax_general *g, uint32_t core, ax_abstract **joined) {
  const ax_core_code *code = ax_general_code(g, core);
  for (uint32_t i = 0; i < code->slot_count; i++) {
    ax_abstract *mine = g->cores[core].slot[i], *was = joined[i];
    if (mine == was || mine == NULL) continue;
    if (was == NULL) {
      joined[i] = ax_abstract_retain(mine); /* a value of this way alone, which nothing behind uses */
      continue;
    }
    joined[i] = NULL;
    const ax_status status = ax_abstract_join(g->symbols, &code->types[i], was, mine, &joined[i]);
    ax_abstract_release(was);
    AX_TRY(status);
  }
  return AX_OK;
}

static ax_abstract **hold_slots(const ax_general *g, uint32_t core) {
  const uint32_t count = ax_general_code(g, core)->slot_count;
  ax_abstract **held = ax_alloc((count + 1) * sizeof held[0]);
  for (uint32_t i = 0; held != NULL && i < count; i++) held[i] = ax_abstract_retain(g->cores[core].slot[i]);
  return held;
}

static void release_slots(const ax_general *g, uint32_t core, ax_abstract **held) {
  for (uint32_t i = 0; held != NULL && i < ax_general_code(g, core)->slot_count; i++) ax_abstract_release(held[i]);
  ax_free(held);
}

/* What it means for numbers that way b of two is taken. */
static void guard_way(ax_general *g, const ax_abstract *chooser, const ax_core_code_step *step, uint32_t b) {
  if (step->target_count == 2 && chooser != NULL && chooser->ids != NULL)
    ax_symbols_guard(g->symbols, chooser->ids[0], b == 1, g->guards, &g->guard_count);
}

ax_status ax_general_walk_ways(ax_general *g, uint32_t core, const ax_core_code_step *step) {
  const uint32_t guards = g->guard_count;
  const uint32_t meeting = meeting_of(ax_general_code(g, core), step), slots = ax_general_code(g, core)->slot_count;
  ax_abstract **before = hold_slots(g, core), **joined = NULL;
  ax_status status = before == NULL ? ax_out_of_memory(0) : AX_OK;
  if (status == AX_OK && meeting == AX_NONE) status = ax_general_refuse(step, "it depends on inputs");
  g->may++;
  for (uint32_t b = 0; b < step->target_count && status == AX_OK; b++) {
    for (uint32_t i = 0; i < slots; i++) set_slot(&g->cores[core], i, ax_abstract_retain(before[i]));
    guard_way(g, before[step->in[0]], step, b);
    status = walk_part(g, core, step, step->targets[b], meeting);
    g->guard_count = guards;
    if (status != AX_OK) break;
    if (joined == NULL) {
      joined = hold_slots(g, core);
      if (joined == NULL) status = ax_out_of_memory(0);
    } else
      status = join_slots(g, core, joined);
  }
  g->may--;
  for (uint32_t i = 0; i < slots && status == AX_OK; i++) set_slot(&g->cores[core], i, ax_abstract_retain(joined[i]));
  release_slots(g, core, before);
  release_slots(g, core, joined);
  return status;
}

/* --- Loops --- */

typedef struct loop {
  const ax_core_code *code;
  const ax_core_code_step *test;
  uint32_t head, at, end; /* of its condition, its test, and behind it */
  uint32_t index, bound;  /* slots: it goes on while index < bound */
} loop;

/* The step of the loop that writes a slot, but for a move of itself; *operand: which of its results. NULL: none, or several. */
static const ax_core_code_step *writer_of(const loop *l, uint32_t slot, uint32_t *operand, uint32_t *count) {
  const ax_core_code_step *found = NULL;
  *count = 0;
  for (uint32_t s = l->head; s < l->end; s++) {
    const ax_core_code_step *step = &l->code->steps[s];
    for (uint32_t k = 0; k < step->out_count; k++) {
      if (step->out[k] != slot || (step->kind == AX_STEP_MOVE && step->in[k] == slot)) continue;
      found = step;
      *operand = k;
      ++*count;
    }
  }
  return *count == 1 ? found : NULL;
}

/* In all rounds: the loop does not write it. */
static bool is_one(const ax_general *g, uint32_t core, const loop *l, uint32_t slot) {
  int64_t value;
  uint32_t operand, count;
  (void)writer_of(l, slot, &operand, &count);
  return count == 0 && g->cores[core].slot[slot] != NULL && ax_general_known(g, core, slot, &value) && value == 1;
}

/* index < bound, and index + 1 in the next round: the loop ends. */
static bool find_index(const ax_general *g, uint32_t core, loop *l) {
  uint32_t operand, count;
  const ax_core_code_step *less = writer_of(l, l->test->in[0], &operand, &count);
  if (less == NULL || less->kind != AX_STEP_EVAL || (less->eqn->prim != &ax_prim_lt && less->eqn->prim != &ax_prim_gt))
    return false;
  const bool swapped = less->eqn->prim == &ax_prim_gt;
  l->index = less->in[swapped], l->bound = less->in[!swapped];
  (void)writer_of(l, l->bound, &operand, &count);
  if (count != 0 || !ax_is_counted(l->code->types[l->index].dtype) || ax_type_elems(&l->code->types[l->index]) != 1) return false;
  const ax_core_code_step *next = writer_of(l, l->index, &operand, &count);
  if (next == NULL || next->kind != AX_STEP_MOVE) return false;
  const ax_core_code_step *sum = writer_of(l, next->in[operand], &operand, &count);
  if (sum == NULL || sum->kind != AX_STEP_EVAL || sum->eqn->prim != &ax_prim_add) return false;
  return (sum->in[0] == l->index && is_one(g, core, l, sum->in[1])) || (sum->in[1] == l->index && is_one(g, core, l, sum->in[0]));
}

static bool has_acts(const loop *l) {
  for (uint32_t s = l->head; s < l->at; s++) {
    const ax_step_kind kind = l->code->steps[s].kind;
    if (kind == AX_STEP_ACT || kind == AX_STEP_OPEN || kind == AX_STEP_CLOSE || kind == AX_STEP_SWITCH || kind == AX_STEP_TEST)
      return true;
  }
  return false;
}

/* Nothing is known of what the loop changes, but the bounds of its index. */
static ax_status forget_slots(ax_general *g, uint32_t core, const loop *l, ax_interval index) {
  for (uint32_t s = l->head; s < l->end; s++) {
    const ax_core_code_step *step = &l->code->steps[s];
    for (uint32_t k = 0; k < step->out_count; k++) {
      const uint32_t slot = step->out[k];
      const ax_type *type = &l->code->types[slot];
      const ax_interval range = slot == l->index ? index : ax_interval_of_dtype(type->dtype);
      ax_abstract *value = NULL;
      if (step->kind == AX_STEP_MOVE && step->in[k] == slot) continue;
      if (type->form == AX_ARRAY && ax_is_counted(type->dtype) && ax_type_elems(type) == 1) {
        AX_TRY(ax_abstract_ids(g->symbols, 1, &value));
        set_slot(&g->cores[core], slot, value);
        AX_TRY(ax_symbols_fresh(g->symbols, type->dtype, range, &value->ids[0]));
        continue;
      }
      if (type->form == AX_ARRAY) AX_TRY(ax_abstract_range((uint64_t)ax_type_elems(type), range, &value));
      set_slot(&g->cores[core], slot, value);
    }
  }
  return AX_OK;
}

/* Nor of the memory that it writes. changed: by region, which a walk before has written; NULL: this is the first. */
static ax_status forget_memory(ax_general *g, const loop *l, const uint64_t *versions, uint32_t count, bool *changed, bool first) {
  for (uint32_t r = 0; r < count; r++) {
    ax_general_region *region = &g->regions[r];
    if (!region->there || region->version == versions[r]) continue;
    if (!first && !changed[r]) return ax_general_refuse(l->test, "its rounds write other memory");
    changed[r] = true;
    ax_general_forget_content(g, r);
  }
  return AX_OK;
}

/* Bytes that may not have been written. */
static uint64_t count_unset(const ax_general *g, uint32_t count) {
  uint64_t unset = 0;
  for (uint32_t r = 0; r < count; r++)
    for (uint64_t b = 0; g->regions[r].there && g->regions[r].set != NULL && b < g->regions[r].bytes; b++) unset += g->regions[r].set[b] == 0;
  return unset;
}

/* Until a round changes nothing more: what was never written may go on by one buffer in each. */
static ax_status walk_rounds(ax_general *g, uint32_t core, const loop *l, ax_interval index) {
  const uint32_t count = g->region_count;
  uint64_t *versions = ax_calloc(count + 1, sizeof versions[0]);
  bool *changed = ax_calloc(count + 1, sizeof changed[0]);
  ax_status status = versions == NULL || changed == NULL ? ax_out_of_memory(0) : AX_OK;
  enum { least_rounds = 3, most_rounds = 64 };
  uint64_t before = UINT64_MAX;
  for (uint32_t time = 0; status == AX_OK; time++) {
    const uint64_t unset = count_unset(g, count);
    if (time >= least_rounds && unset == before) break;
    before = unset;
    if (time == most_rounds) status = ax_general_refuse(l->test, "what its rounds have written goes on to change");
    if (status != AX_OK) break;
    for (uint32_t r = 0; r < count; r++) versions[r] = g->regions[r].version;
    status = forget_slots(g, core, l, index);
    if (status == AX_OK) status = walk_part(g, core, l->test, l->at + 1, l->end - 1);
    if (status == AX_OK) status = forget_memory(g, l, versions, count, changed, time == 0);
  }
  ax_free(versions);
  ax_free(changed);
  return status;
}

ax_status ax_general_walk_loop(ax_general *g, uint32_t core, const ax_core_code_step *test) {
  const ax_core_code *code = ax_general_code(g, core);
  loop l = {.code = code, .test = test, .head = head_of(code, test), .at = (uint32_t)(test - code->steps), .end = test->target};
  if (has_acts(&l) || !find_index(g, core, &l)) return ax_general_refuse(test, "how long the loop is depends on inputs");
  ax_interval index = {ax_abstract_bounds(g->symbols, g->cores[core].slot[l.index]).low,
                       ax_abstract_bounds(g->symbols, g->cores[core].slot[l.bound]).high};
  if (index.high == INT64_MIN || index.low > --index.high) { /* there is no round */
    g->cores[core].pc = l.end;
    return AX_OK;
  }
  g->may++;
  const ax_status status = walk_rounds(g, core, &l, index);
  g->may--;
  AX_TRY(status);
  g->cores[core].pc = l.end;
  return forget_slots(g, core, &l, ax_interval_of_dtype(code->types[l.index].dtype));
}
