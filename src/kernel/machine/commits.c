/* Stores that are not committed. On GPUs asynchronous copies do not see what threads have stored to shared memory before these have
   committed it: a copy may read what was there before.

     store, .. , store | commit_smem | copy_start        each core remembers what it has stored since its last commit

   The checker asks whether a copy reads some of that of the core that starts it. A copy that writes over it makes it forgotten. Stores
   of other cores are not looked at: whether such a core has committed depends on how far it is, and an act depends on its own agent
   alone (act.h). */
#include "kernel/machine/agent.h"

#include <string.h>

static bool is_near(const ax_view *view) { return view->type.space == AX_SPACE_VMEM || view->type.space == AX_SPACE_SMEM; }

static bool same_runs(const ax_touches *a, const ax_touch *x, const ax_touches *b, const ax_touch *y) {
  return x->region == y->region && x->count == y->count &&
         memcmp(a->runs + x->first, b->runs + y->first, x->count * sizeof a->runs[0]) == 0;
}

/* Adds a store of these bytes; one of the same bytes before is replaced. */
static ax_status add_store(ax_stored *stored, const ax_touches *pool, const ax_touch *touch, const ax_core_code_step *step) {
  for (uint32_t k = 0; k < stored->touches.touch_count; k++) {
    if (!same_runs(&stored->touches, &stored->touches.touches[k], pool, touch)) continue;
    stored->steps[k] = step;
    return AX_OK;
  }
  AX_TRY(ax_grow(&stored->steps, sizeof stored->steps[0], stored->touches.touch_count, 1, &stored->capacity));
  AX_TRY(ax_touches_copy(&stored->touches, pool, touch));
  stored->steps[stored->touches.touch_count - 1] = step;
  return AX_OK;
}

ax_status ax_about_stored(ax_about *a) {
  const ax_touches *pool = &a->state->pool;
  if (a->state->machine->commits == AX_COMMITS_NONE || !is_near(ax_about_view(a, 0))) return AX_OK;
  for (uint32_t t = 0; t < pool->touch_count; t++)
    if (pool->touches[t].write) AX_TRY(add_store(&a->actor->frame.stored, pool, &pool->touches[t], a->step));
  return AX_OK;
}

void ax_core_frame_commit(ax_core_frame *frame) { frame->stored.touches.touch_count = frame->stored.touches.run_count = 0; }

/* --- Copies --- */

/* The first byte that both touch; false: there is none. */
static bool common(const ax_touches *a, const ax_touch *x, const ax_touches *b, const ax_touch *y, ax_bytes *out) {
  for (uint32_t i = x->first, k = y->first; x->region == y->region && i < x->first + x->count && k < y->first + y->count;) {
    const ax_bytes m = a->runs[i], n = b->runs[k];
    *out = (ax_bytes){m.begin > n.begin ? m.begin : n.begin, m.end < n.end ? m.end : n.end};
    if (out->begin < out->end) return true;
    if (m.end < n.end) i++;
    else k++;
  }
  return false;
}

static bool needs_commit(const ax_about *a) {
  const ax_commits commits = a->state->machine->commits;
  if (commits == AX_COMMITS_NONE || !is_near(ax_about_view(a, 0))) return false;
  return commits == AX_COMMITS_ALL || ((const ax_copy_params *)a->step->eqn->params)->grouped;
}

static ax_status tell(ax_about *a, const ax_core_code_step *store, uint32_t region, ax_bytes bytes) {
  char text[160], stored[160];
  const ax_status status =
      ax_state_fault(a->state, a->fault, AX_FINDING_NOT_COMMITTED, region,
                     "%s reads what its core has stored (%s), and no ax_commit_smem comes between",
                     ax_step_text(a->step, text, sizeof text), ax_step_text(store, stored, sizeof stored));
  a->fault->bytes = bytes;
  return status;
}

ax_status ax_about_committed(ax_about *a) {
  const ax_stored *stored = &a->actor->frame.stored;
  ax_touches source = {0};
  ax_bytes bytes;
  if (!needs_commit(a) || stored->touches.touch_count == 0) return AX_OK;
  ax_status status = ax_view_touch(&source, ax_about_view(a, 0), NULL, false);
  for (uint32_t k = 0; k < stored->touches.touch_count && source.touch_count > 0 && status == AX_OK; k++) {
    if (!common(&stored->touches, &stored->touches.touches[k], &source, &source.touches[0], &bytes)) continue;
    status = tell(a, stored->steps[k], source.touches[0].region, bytes);
    break;
  }
  ax_touches_deinit(&source);
  return status;
}

static bool covers(const ax_touches *a, const ax_touch *x, const ax_touches *b, const ax_touch *y) {
  if (x->region != y->region) return false;
  for (uint32_t k = y->first, i = x->first; k < y->first + y->count; k++) {
    while (i < x->first + x->count && a->runs[i].end < b->runs[k].end) i++;
    if (i == x->first + x->count || a->runs[i].begin > b->runs[k].begin) return false;
  }
  return true;
}

ax_status ax_about_overwritten(ax_about *a, const ax_view *by) {
  ax_stored *stored = &a->actor->frame.stored;
  ax_touches all = {0}, kept = {0};
  uint32_t count = 0;
  if (stored->touches.touch_count == 0) return AX_OK;
  ax_status status = ax_view_touch(&all, by, NULL, true);
  for (uint32_t k = 0; k < stored->touches.touch_count && status == AX_OK; k++) {
    const ax_touch *touch = &stored->touches.touches[k];
    if (all.touch_count > 0 && covers(&all, &all.touches[0], &stored->touches, touch)) continue;
    status = ax_touches_copy(&kept, &stored->touches, touch);
    stored->steps[count++] = stored->steps[k];
  }
  ax_touches_deinit(&all);
  if (status != AX_OK) {
    ax_touches_deinit(&kept);
    return status;
  }
  ax_touches_deinit(&stored->touches);
  stored->touches = kept;
  return AX_OK;
}

/* --- As part of a frame --- */

ax_status ax_stored_copy(const ax_stored *from, ax_stored *to) {
  const uint32_t count = from->touches.touch_count;
  *to = (ax_stored){0};
  AX_TRY(ax_grow(&to->steps, sizeof to->steps[0], 0, count, &to->capacity));
  for (uint32_t k = 0; k < count; k++) {
    AX_TRY(ax_touches_copy(&to->touches, &from->touches, &from->touches.touches[k]));
    to->steps[k] = from->steps[k];
  }
  return AX_OK;
}

void ax_stored_deinit(ax_stored *stored) {
  ax_touches_deinit(&stored->touches);
  ax_free(stored->steps);
  *stored = (ax_stored){0};
}

uint64_t ax_stored_hash(const ax_stored *stored, uint64_t hash) {
  for (uint32_t k = 0; k < stored->touches.touch_count; k++) hash = ax_hash_word(hash, stored->touches.touches[k].region);
  return ax_hash_bytes(hash, stored->touches.runs, stored->touches.run_count * sizeof(ax_bytes));
}
