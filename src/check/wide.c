/* Runs of bytes that are spread over all places, classes, and the record. */
#include "check/wide.h"

#include <stdlib.h>
#include <string.h>

enum { most_runs = 4096 };
static const uint64_t bias = (uint64_t)1 << 50; /* regions of classes begin so far below the start, which may be behind */

void ax_wide_deinit(ax_wide *w) {
  void *memory[] = {w->steps, w->touches, w->classes, w->words, w->runs, w->agents, w->regions, w->semaphores};
  for (uint32_t k = 0; k < AX_COUNT(memory); k++) ax_free(memory[k]);
  ax_table_deinit(&w->table);
  *w = (ax_wide){0};
}

/* --- Runs of bytes --- */

static ax_status add_runs(ax_wide *w, const ax_bytes *runs, uint32_t count, uint32_t *first) {
  AX_TRY(ax_grow(&w->runs, sizeof w->runs[0], w->run_count, count, &w->run_capacity));
  *first = w->run_count;
  if (count > 0) memcpy(w->runs + w->run_count, runs, count * sizeof runs[0]);
  w->run_count += count;
  return AX_OK;
}

static int by_begin(const void *a, const void *b) {
  const ax_bytes *x = a, *y = b;
  return x->begin < y->begin ? -1 : x->begin > y->begin;
}

/* Ascending, and those that meet joined. */
static uint32_t tidy(ax_bytes *runs, uint32_t count) {
  uint32_t kept = 0;
  if (count > 0) qsort(runs, count, sizeof runs[0], by_begin);
  for (uint32_t k = 0; k < count; k++) {
    if (kept > 0 && runs[k].begin <= runs[kept - 1].end) {
      if (runs[k].end > runs[kept - 1].end) runs[kept - 1].end = runs[k].end;
    } else
      runs[kept++] = runs[k];
  }
  return kept;
}

/* The bytes of a view whose starts are 0. */
static ax_status bytes_of(const ax_abstract *view, ax_touches *pool) {
  pool->touch_count = pool->run_count = 0;
  return ax_view_touch(pool, &view->view, NULL, false);
}

/* Each run wherever the start may be: one long run where it reaches its next place, or where there would be too many. */
static ax_status spread(ax_bytes **runs, uint32_t *count, const ax_shift *shift) {
  const uint64_t places = ((uint64_t)(shift->high - shift->low) >> shift->bits) + 1, stride = (uint64_t)shift->stride << shift->bits;
  const uint64_t from = (uint64_t)(shift->low * shift->stride);
  bool reaches = places * *count > most_runs || stride == 0;
  for (uint32_t k = 0; k < *count && !reaches; k++) reaches = (*runs)[k].end - (*runs)[k].begin >= stride;
  if (reaches) {
    for (uint32_t k = 0; k < *count; k++) {
      (*runs)[k].begin += from;
      (*runs)[k].end += from + (places - 1) * stride;
    }
    *count = tidy(*runs, *count);
    return AX_OK;
  }
  ax_bytes *more = ax_alloc(places * *count * sizeof more[0]);
  if (more == NULL) return ax_out_of_memory(0);
  uint32_t made = 0;
  for (uint64_t p = 0; p < places; p++)
    for (uint32_t k = 0; k < *count; k++)
      more[made++] = (ax_bytes){(*runs)[k].begin + from + p * stride, (*runs)[k].end + from + p * stride};
  ax_free(*runs);
  *runs = more;
  *count = tidy(more, made);
  return AX_OK;
}

ax_status ax_wide_bytes(const ax_abstract *view, ax_bytes **runs, uint32_t *count) {
  ax_touches pool = {0};
  *runs = NULL;
  *count = 0;
  if (view->nowhere) return AX_OK;
  ax_status status = bytes_of(view, &pool);
  if (status == AX_OK && pool.run_count > 0) {
    *runs = ax_alloc(pool.run_count * sizeof(*runs)[0]);
    if (*runs == NULL)
      status = ax_out_of_memory(0);
    else
      memcpy(*runs, pool.runs, pool.run_count * sizeof(*runs)[0]);
    *count = *runs != NULL ? pool.run_count : 0;
  }
  ax_touches_deinit(&pool);
  for (uint32_t k = 0; k < view->shift_count && status == AX_OK && *count > 0; k++) status = spread(runs, count, &view->shifts[k]);
  return status;
}

/* --- Classes --- */

static int by_word(const void *a, const void *b) {
  const uint64_t *x = a, *y = b;
  if (x[0] != y[0]) return x[0] < y[0] ? -1 : 1;
  return x[1] < y[1] ? -1 : x[1] > y[1];
}

typedef struct wanted {
  uint32_t region, count;
  const uint64_t *words;
} wanted;

static bool is_class(const void *wide, uint32_t number, const void *sought) {
  const ax_wide *w = wide;
  const wanted *n = sought;
  const ax_wide_class *c = &w->classes[number];
  return c->region == n->region && c->count == n->count && memcmp(w->words + c->first, n->words, n->count * sizeof n->words[0]) == 0;
}

static uint32_t *slot_of(const ax_wide *w, uint32_t region, const uint64_t *words, uint32_t count) {
  const uint64_t hash = ax_hash_bytes(ax_hash_word(AX_HASH_SEED, region), words, count * sizeof words[0]);
  return ax_table_slot(&w->table, hash, is_class, w, &(wanted){region, count, words});
}

static ax_status make_room(ax_wide *w) {
  bool emptied;
  AX_TRY(ax_table_room(&w->table, w->class_count, &emptied));
  for (uint32_t k = 0; emptied && k < w->class_count; k++)
    *slot_of(w, w->classes[k].region, w->words + w->classes[k].first, w->classes[k].count) = k + 1;
  return AX_OK;
}

/* Finds the class of a view, or makes it: its number. */
static ax_status class_of(ax_wide *w, const ax_abstract *view, uint32_t *out) {
  uint64_t words[2 * AX_MOST_SHIFTS];
  const uint32_t count = 2 * view->shift_count;
  for (uint32_t k = 0; k < view->shift_count; k++) {
    words[2 * k] = (uint64_t)view->shifts[k].stride;
    words[2 * k + 1] = view->shifts[k].part;
  }
  qsort(words, view->shift_count, 2 * sizeof words[0], by_word);
  AX_TRY(make_room(w));
  uint32_t *slot = slot_of(w, view->view.region, words, count);
  if (*slot == 0) {
    AX_TRY(ax_grow(&w->classes, sizeof w->classes[0], w->class_count, 1, &w->class_capacity));
    AX_TRY(ax_grow(&w->words, sizeof w->words[0], w->word_count, count, &w->word_capacity));
    w->classes[w->class_count] =
        (ax_wide_class){.region = view->view.region, .first = w->word_count, .count = count, .agent = AX_NONE};
    memcpy(w->words + w->word_count, words, count * sizeof words[0]);
    w->word_count += count;
    *slot = ++w->class_count;
  }
  *out = *slot;
  return AX_OK;
}

/* --- Acts --- */

ax_status ax_wide_act(ax_wide *w, uint32_t agent, const ax_act *act) {
  AX_TRY(ax_grow(&w->steps, sizeof w->steps[0], w->step_count, 1, &w->step_capacity));
  w->steps[w->step_count++] = (ax_wide_step){.agent = agent, .first = w->touch_count, .label = w->label, .act = *act};
  return AX_OK;
}

static ax_status add_touch(ax_wide *w, const ax_wide_touch *touch) {
  AX_TRY(ax_grow(&w->touches, sizeof w->touches[0], w->touch_count, 1, &w->touch_capacity));
  w->touches[w->touch_count++] = *touch;
  return AX_OK;
}

ax_status ax_wide_same(ax_wide *w, const ax_touches *pool, const ax_touch *touch) {
  ax_wide_touch made = {.region = touch->region, .write = touch->write, .touch = *touch};
  AX_TRY(add_runs(w, pool->runs + touch->first, touch->count, &made.touch.first));
  return add_touch(w, &made);
}

static void note_class(ax_wide *w, uint32_t class, bool write) {
  ax_wide_class *c = &w->classes[class - 1];
  const uint32_t agent = w->steps[w->step_count - 1].agent;
  c->written = c->written || write;
  c->several = c->several || (c->agent != AX_NONE && c->agent != agent);
  c->agent = agent;
}

static ax_status view_without_shifts(ax_wide *w, const ax_abstract *view, bool write) {
  ax_touches pool = {0};
  ax_status status = ax_view_touch(&pool, &view->view, NULL, write);
  if (status == AX_OK && pool.touch_count > 0) status = ax_wide_same(w, &pool, &pool.touches[0]);
  ax_touches_deinit(&pool);
  return status;
}

ax_status ax_wide_view(ax_wide *w, const ax_abstract *view, bool write) {
  ax_wide_touch made = {.region = view->view.region, .write = write};
  ax_touches pool = {0};
  ax_bytes *runs;
  if (view->nowhere) return AX_OK;
  if (view->shift_count == 0) return view_without_shifts(w, view, write);
  ax_status status = ax_wide_bytes(view, &runs, &made.far_count);
  if (status == AX_OK && made.far_count > 0) {
    status = add_runs(w, runs, made.far_count, &made.far);
    if (status == AX_OK) status = bytes_of(view, &pool);
    uint64_t shift = bias;
    for (uint32_t k = 0; k < view->shift_count; k++) shift += (uint64_t)(view->shifts[k].stride * view->shifts[k].constant);
    for (uint32_t k = 0; k < pool.run_count; k++) pool.runs[k].begin += shift, pool.runs[k].end += shift;
    made.near_count = pool.run_count;
    if (status == AX_OK) status = add_runs(w, pool.runs, pool.run_count, &made.near);
    if (status == AX_OK) status = class_of(w, view, &made.class);
    if (status == AX_OK) note_class(w, made.class, write);
    if (status == AX_OK) status = add_touch(w, &made);
  }
  ax_free(runs);
  ax_touches_deinit(&pool);
  return status;
}

/* --- More agents and objects --- */

ax_status ax_wide_add_agent(ax_wide *w, const ax_act_agent *agent) {
  AX_TRY(ax_grow(&w->agents, sizeof w->agents[0], w->agent_count, 1, &w->agent_capacity));
  w->agents[w->agent_count++] = *agent;
  return AX_OK;
}

ax_status ax_wide_add_region(ax_wide *w, const ax_act_region *region) {
  AX_TRY(ax_grow(&w->regions, sizeof w->regions[0], w->region_count, 1, &w->region_capacity));
  w->regions[w->region_count++] = *region;
  return AX_OK;
}

ax_status ax_wide_add_semaphore(ax_wide *w, uint32_t device) {
  AX_TRY(ax_grow(&w->semaphores, sizeof w->semaphores[0], w->semaphore_count, 1, &w->semaphore_capacity));
  w->semaphores[w->semaphore_count++] = device;
  return AX_OK;
}

/* --- The record --- */

typedef struct writer {
  const ax_wide *w;
  ax_act_record *out;
  uint32_t *shared;   /* by region: the one that all classes of it share; AX_NONE: it has no classes */
  bool *written;      /* by region: but for scopes */
  uint32_t *of_class; /* by class - 1: its own region; AX_NONE: it needs none */
  ax_touches touches; /* of the present act */
} writer;

/* class: of one, whose bytes are not those of the memory. */
static ax_status add_region(writer *x, uint32_t like, bool class, uint32_t *out) {
  ax_act_region region = x->out->objects.regions[like];
  region.behind = like + 1;
  if (class) region.bytes = 2 * bias, region.elem_bytes = region.rank = 0;
  *out = x->out->objects.region_count;
  return ax_act_objects_add_region(&x->out->objects, region);
}

static ax_status add_regions(writer *x, uint32_t regions) {
  const ax_wide *w = x->w;
  x->shared = ax_alloc((regions + 1) * sizeof x->shared[0]);
  x->written = ax_calloc(regions + 1, sizeof x->written[0]);
  x->of_class = ax_alloc((w->class_count + 1) * sizeof x->of_class[0]);
  if (x->shared == NULL || x->written == NULL || x->of_class == NULL) return ax_out_of_memory(0);
  memset(x->shared, 0xff, (regions + 1) * sizeof x->shared[0]);
  for (uint32_t t = 0; t < w->touch_count; t++)
    x->written[w->touches[t].region] = x->written[w->touches[t].region] || (w->touches[t].write && !w->touches[t].touch.scope);
  for (uint32_t k = 0; k < w->class_count; k++) {
    const ax_wide_class *c = &w->classes[k];
    if (x->shared[c->region] == AX_NONE) AX_TRY(add_region(x, c->region, false, &x->shared[c->region]));
    x->of_class[k] = AX_NONE;
    if (c->written && c->several) AX_TRY(add_region(x, c->region, true, &x->of_class[k]));
  }
  return AX_OK;
}

static ax_status put(writer *x, uint32_t region, uint32_t colour, bool write, bool scope, uint32_t first, uint32_t count) {
  AX_TRY(ax_touches_add(&x->touches, region, write, scope, count, x->w->runs + first));
  x->touches.touches[x->touches.touch_count - 1].colour = colour;
  return AX_OK;
}

static ax_status write_touch(writer *x, const ax_wide_touch *t) {
  const uint32_t shared = x->shared[t->region];
  if (t->class > 0) {
    AX_TRY(put(x, shared, t->class + 1, t->write, false, t->far, t->far_count));
    const uint32_t own = x->of_class[t->class - 1];
    return own != AX_NONE ? put(x, own, 0, t->write, false, t->near, t->near_count) : AX_OK;
  }
  AX_TRY(put(x, t->region, t->touch.colour, t->write, t->touch.scope, t->touch.first, t->touch.count));
  x->touches.touches[x->touches.touch_count - 1].sum = t->touch.sum;
  if (shared == AX_NONE || (!t->touch.scope && !x->written[t->region])) return AX_OK;
  return put(x, shared, t->touch.scope ? 0 : 1, t->write, t->touch.scope, t->touch.first, t->touch.count);
}

static ax_status write_step(writer *x, uint32_t s) {
  const ax_wide *w = x->w;
  const uint32_t end = s + 1 < w->step_count ? w->steps[s + 1].first : w->touch_count;
  ax_act act = w->steps[s].act;
  x->touches.touch_count = x->touches.run_count = 0;
  for (uint32_t t = w->steps[s].first; t < end; t++) AX_TRY(write_touch(x, &w->touches[t]));
  act.touch_first = 0;
  act.touch_count = x->touches.touch_count;
  return ax_act_record_step(x->out, w->steps[s].agent, &act, &x->touches);
}

/* Each number of a semaphore is one of a barrier too. */
static ax_status copy_objects(const ax_wide *w, const ax_act_objects *from, ax_act_objects *to) {
  for (uint32_t k = 0; k < from->agent_count; k++) AX_TRY(ax_act_objects_add_agent(to, from->agents[k]));
  for (uint32_t k = 0; k < from->semaphore_count; k++) AX_TRY(ax_act_objects_add_semaphore(to, from->semaphores[k]));
  for (uint32_t k = 0; k < from->barrier_count; k++) AX_TRY(ax_act_objects_add_barrier(to, from->barriers[k]));
  for (uint32_t k = 0; k < from->region_count; k++) AX_TRY(ax_act_objects_add_region(to, from->regions[k]));
  for (uint32_t k = 0; k < w->agent_count; k++) AX_TRY(ax_act_objects_add_agent(to, w->agents[k]));
  for (uint32_t k = 0; k < w->region_count; k++) AX_TRY(ax_act_objects_add_region(to, w->regions[k]));
  for (uint32_t k = 0; k < w->semaphore_count; k++) {
    AX_TRY(ax_act_objects_add_semaphore(to, (ax_act_semaphore){.name = "semaphore of a branch", .device = w->semaphores[k]}));
    AX_TRY(
        ax_act_objects_add_barrier(to, (ax_act_barrier){.name = "barrier of a branch", .device = w->semaphores[k], .arrivals = 1}));
  }
  return AX_OK;
}

ax_status ax_wide_record(const ax_wide *wide, const ax_act_objects *objects, ax_act_record *out) {
  *out = (ax_act_record){0};
  writer x = {.w = wide, .out = out};
  ax_status status = copy_objects(wide, objects, &out->objects);
  if (status == AX_OK) status = add_regions(&x, out->objects.region_count);
  for (uint32_t s = 0; s < wide->step_count && status == AX_OK; s++) status = write_step(&x, s);
  ax_free(x.shared);
  ax_free(x.written);
  ax_free(x.of_class);
  ax_touches_deinit(&x.touches);
  if (status != AX_OK) ax_act_record_deinit(out);
  return status;
}
