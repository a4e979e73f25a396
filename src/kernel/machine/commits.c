/* Stores that are not committed. On GPUs asynchronous copies do not see what threads have stored to shared memory before these have
   committed it: a copy may read what was there before.

     store, .. , store | commit_smem | copy_start        each core remembers what it has stored since its last commit

   The checker asks whether a copy reads some of that of the core that starts it. Bytes that such a copy writes over are forgotten, those
   alone. Stores and copies of other cores are not looked at: whether such a core has committed depends on how far it is, and an act
   depends on its own agent alone (act.h). */
#include "kernel/machine/agent.h"

#include <string.h>

static bool is_near(const ax_view *view) { return view->type.space == AX_SPACE_VMEM || view->type.space == AX_SPACE_SMEM; }

/* --- Bytes that are stored --- */

/* The first run that ends at these bytes or behind their beginning. */
static uint32_t first_run(const ax_stored *stored, uint32_t region, uint64_t begin) {
  uint32_t low = 0, high = stored->count;
  while (low < high) {
    const uint32_t middle = low + (high - low) / 2;
    const ax_stored_run *run = &stored->runs[middle];
    if (run->region < region || (run->region == region && run->bytes.end < begin)) low = middle + 1;
    else high = middle;
  }
  return low;
}

/* Appends to a list, unless it is nothing; goes on with the last one if it can. */
static void append(ax_stored_run *list, uint32_t *count, ax_stored_run run) {
  ax_stored_run *last = *count > 0 ? &list[*count - 1] : NULL;
  if (run.bytes.begin >= run.bytes.end || run.step == NULL) return;
  if (last != NULL && last->step == run.step && last->region == run.region && last->bytes.end == run.bytes.begin)
    last->bytes.end = run.bytes.end;
  else
    list[(*count)++] = run;
}

/* Lists the runs old[0 .. old_count) of a region with the bytes by[0 .. by_count) replaced: as the step's, or nobody's. */
static uint32_t replace(const ax_stored_run *old, uint32_t old_count, const ax_bytes *by, uint32_t by_count, ax_stored_run put,
                        ax_stored_run *list) {
  uint32_t count = 0, k = 0, entered = 0; /* by[0 .. entered) are in the list */
  for (uint32_t i = 0; i < old_count; i++) {
    ax_stored_run rest = old[i];
    for (; k < by_count && by[k].begin < rest.bytes.end; k++) {
      ax_stored_run before = rest;
      if (before.bytes.end > by[k].begin) before.bytes.end = by[k].begin;
      append(list, &count, before);
      put.bytes = by[k];
      if (entered <= k) append(list, &count, put), entered = k + 1;
      if (rest.bytes.begin < by[k].end) rest.bytes.begin = by[k].end;
      if (by[k].end > rest.bytes.end) break; /* the next old run may be in it as well */
    }
    append(list, &count, rest);
  }
  for (k = entered; k < by_count; k++) {
    put.bytes = by[k];
    append(list, &count, put);
  }
  return count;
}

ax_status ax_stored_put(ax_stored *stored, const ax_touches *pool, const ax_touch *touch, const ax_core_code_step *step) {
  const ax_bytes *by = pool->runs + touch->first;
  if (touch->count == 0) return AX_OK;
  const uint32_t first = first_run(stored, touch->region, by[0].begin);
  uint32_t end = first; /* behind the last one that these bytes meet */
  while (end < stored->count && stored->runs[end].region == touch->region &&
         stored->runs[end].bytes.begin <= by[touch->count - 1].end)
    end++;
  const uint32_t room = end - first + 2 * touch->count;
  ax_stored_run *list = ax_alloc(room * sizeof list[0]);
  if (list == NULL) return ax_out_of_memory(room * sizeof list[0]);
  const ax_stored_run put = {.region = touch->region, .step = step};
  const uint32_t count = replace(stored->runs + first, end - first, by, touch->count, put, list), behind = stored->count - end;
  ax_status status = ax_grow(&stored->runs, sizeof stored->runs[0], stored->count, count, &stored->capacity);
  if (status == AX_OK) {
    if (behind > 0) memmove(stored->runs + first + count, stored->runs + end, behind * sizeof stored->runs[0]);
    if (count > 0) memcpy(stored->runs + first, list, count * sizeof list[0]);
    stored->count = first + count + behind;
  }
  ax_free(list);
  return status;
}

ax_status ax_about_stored(ax_about *a) {
  const ax_touches *pool = &a->state->pool;
  if (a->state->machine->commits == AX_COMMITS_NONE || !is_near(ax_about_view(a, 0))) return AX_OK;
  for (uint32_t t = 0; t < pool->touch_count; t++)
    if (pool->touches[t].write) AX_TRY(ax_stored_put(&a->actor->frame.stored, pool, &pool->touches[t], a->step));
  return AX_OK;
}

void ax_core_frame_commit(ax_core_frame *frame) { frame->stored.count = 0; }

/* --- Copies --- */

/* The first bytes of a touch that are stored, and by which step; false: there are none. */
static bool common(const ax_stored *stored, const ax_touches *pool, const ax_touch *touch, ax_stored_run *out) {
  for (uint32_t k = touch->first; k < touch->first + touch->count; k++) {
    const ax_bytes bytes = pool->runs[k];
    for (uint32_t i = first_run(stored, touch->region, bytes.begin); i < stored->count; i++) {
      *out = stored->runs[i];
      if (out->region != touch->region || out->bytes.begin >= bytes.end) break;
      if (out->bytes.begin < bytes.begin) out->bytes.begin = bytes.begin;
      if (out->bytes.end > bytes.end) out->bytes.end = bytes.end;
      if (out->bytes.begin < out->bytes.end) return true;
    }
  }
  return false;
}

static bool needs_commit(const ax_about *a) {
  const ax_commits commits = a->state->machine->commits;
  if (commits == AX_COMMITS_NONE || !is_near(ax_about_view(a, 0))) return false;
  return commits == AX_COMMITS_ALL || ((const ax_copy_params *)a->step->eqn->params)->grouped;
}

static ax_status tell(ax_about *a, const ax_stored_run *stored) {
  char text[160], store[160];
  const ax_status status =
      ax_state_fault(a->state, a->fault, AX_FINDING_NOT_COMMITTED, stored->region,
                     "%s reads what its core has stored (%s), and no ax_commit_smem comes between",
                     ax_step_text(a->step, text, sizeof text), ax_step_text(stored->step, store, sizeof store));
  a->fault->bytes = stored->bytes;
  return status;
}

ax_status ax_about_committed(ax_about *a) {
  const ax_stored *stored = &a->actor->frame.stored;
  ax_touches source = {0};
  ax_stored_run found;
  if (!needs_commit(a) || stored->count == 0) return AX_OK;
  ax_status status = ax_view_touch(&source, ax_about_view(a, 0), NULL, false);
  if (status == AX_OK && source.touch_count > 0 && common(stored, &source, &source.touches[0], &found)) status = tell(a, &found);
  ax_touches_deinit(&source);
  return status;
}

ax_status ax_about_overwritten(ax_about *a, const ax_view *by) {
  ax_stored *stored = &a->actor->frame.stored;
  ax_touches all = {0};
  if (stored->count == 0) return AX_OK;
  ax_status status = ax_view_touch(&all, by, NULL, true);
  if (status == AX_OK && all.touch_count > 0) status = ax_stored_put(stored, &all, &all.touches[0], NULL);
  ax_touches_deinit(&all);
  return status;
}

/* --- As part of a frame --- */

ax_status ax_stored_copy(const ax_stored *from, ax_stored *to) {
  *to = (ax_stored){0};
  if (from->count == 0) return AX_OK;
  AX_TRY(ax_grow(&to->runs, sizeof to->runs[0], 0, from->count, &to->capacity));
  memcpy(to->runs, from->runs, from->count * sizeof to->runs[0]);
  to->count = from->count;
  return AX_OK;
}

void ax_stored_deinit(ax_stored *stored) {
  ax_free(stored->runs);
  *stored = (ax_stored){0};
}

/* Of the bytes alone: which steps stored them, only words depend on. */
uint64_t ax_stored_hash(const ax_stored *stored, uint64_t hash) {
  for (uint32_t k = 0; k < stored->count;) {
    const ax_stored_run *run = &stored->runs[k++];
    uint64_t end = run->bytes.end;
    while (k < stored->count && stored->runs[k].region == run->region && stored->runs[k].bytes.begin == end)
      end = stored->runs[k++].bytes.end;
    hash = ax_hash_word(ax_hash_word(ax_hash_word(hash, run->region), run->bytes.begin), end);
  }
  return hash;
}
