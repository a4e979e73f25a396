#include "sim/levels.h"

#include <math.h>
#include <string.h>

#include "plan/op.h"

/* Loops inside so many others are gone through once for each step around them, not twice, so that time does not double for each. */
enum { most_doubled = 4 };

/* What was touched, in order: a place for each touch, of which only a buffer's last one has bytes. Sums of places are kept as a tree
   (P. Fenwick, 1994): sums[i] has the places of (i - lowest bit of i, i]. */
typedef struct order {
  double *sums, *bytes; /* by place, from 1 on */
  uint32_t *place;      /* by root: of its last touch; 0: none yet */
  uint32_t *root;       /* by place */
  uint32_t places, used, roots;
  double all;
} order;

typedef struct touch { /* of an operation */
  uint32_t root, parent; /* root: the buffer, or the part of it that goes its own way; parent: the buffer */
  double whole;        /* bytes of the root */
  double read, written; /* bytes of the view, then their share of what the operation moves */
  bool past;            /* it is written past the caches (plan/stream.c) */
} touch;

typedef struct leveling {
  const ax_plan *plan;
  const ax_cluster *machine;
  ax_sim_work *work;
  order order;
  touch *touches;
  uint32_t count, capacity;
  bool streams; /* what is noted is written past the caches */
  ax_status status;
} leveling;

/* --- The order --- */

static void add(order *o, uint32_t place, double bytes) {
  o->all += bytes;
  for (uint32_t i = place; i <= o->places; i += i & -i) o->sums[i] += bytes;
}

static double up_to(const order *o, uint32_t place) {
  double sum = 0;
  for (uint32_t i = place; i > 0; i -= i & -i) sum += o->sums[i];
  return sum;
}

/* Places run out: those that count move to the front, in order. */
static void move_up(order *o) {
  uint32_t used = 0;
  memset(o->sums, 0, (o->places + 1) * sizeof o->sums[0]);
  o->all = 0;
  for (uint32_t p = 1; p <= o->used; p++) {
    const uint32_t root = o->root[p];
    if (o->place[root] != p) continue;
    o->root[++used] = root;
    o->bytes[used] = o->bytes[p];
    o->place[root] = used;
    add(o, used, o->bytes[used]);
  }
  o->used = used;
}

/* Only the bytes that were touched last count. */
static void touch_root(order *o, uint32_t root, double bytes) {
  if (o->used == o->places) move_up(o);
  const uint32_t last = o->place[root], now = ++o->used;
  if (last != 0) add(o, last, -o->bytes[last]);
  o->root[now] = root;
  o->bytes[now] = bytes;
  o->place[root] = now;
  add(o, now, bytes);
}

static void forget_root(order *o, uint32_t root) {
  const uint32_t last = o->place[root];
  if (last != 0) add(o, last, -o->bytes[last]);
  o->place[root] = 0;
}

/* Bytes touched after a place; 0: it is none. */
static double after(const order *o, uint32_t place) { return place == 0 ? INFINITY : o->all - up_to(o, place); }

static ax_status order_make(ax_arena *arena, uint32_t roots, order *out) {
  const uint32_t places = 2 * roots + 2;
  *out = (order){.places = places, .roots = roots};
  out->sums = ax_arena_alloc(arena, (places + 1) * sizeof out->sums[0]);
  out->bytes = ax_arena_alloc(arena, (places + 1) * sizeof out->bytes[0]);
  out->root = ax_arena_alloc(arena, (places + 1) * sizeof out->root[0]);
  out->place = ax_arena_alloc(arena, (roots + 1) * sizeof out->place[0]);
  if (out->sums == NULL || out->bytes == NULL || out->root == NULL || out->place == NULL) return ax_out_of_memory(0);
  return AX_OK;
}

/* --- An operation --- */

static void note(void *context, uint32_t id, bool writes) {
  leveling *l = context;
  const ax_buffer *buffer = &l->plan->buffers[id];
  const double bytes = (double)ax_buffer_bytes(buffer), all = (double)ax_buffer_bytes(&l->plan->buffers[buffer->allocation]);
  /* A slice that moves with a loop may come to any part of its buffer. One that stays is touched by itself; if all of the buffer is
     touched as well, both are counted. */
  const uint32_t root = buffer->loop == AX_NONE && bytes < all ? id : buffer->allocation;
  uint32_t i = 0;
  while (i < l->count && l->touches[i].root != root) i++;
  if (i == l->count) {
    if (l->status == AX_OK) l->status = ax_grow(&l->touches, sizeof l->touches[0], l->count, 1, &l->capacity);
    if (l->status != AX_OK) return;
    l->touches[l->count++] = (touch){.root = root, .parent = buffer->allocation};
  }
  touch *t = &l->touches[i];
  *(writes ? &t->written : &t->read) += bytes;
  t->past = t->past || (writes && l->streams);
  t->whole = root == id ? bytes : all;
}

/* Cores store large results past their caches. */
static bool streams(const leveling *l, const ax_op *op) {
  return l->machine->core > 0 && op->kind == AX_OP_KERNEL && op->kernel.kernel->streams;
}

/* What a group of rows keeps between its members goes round in the smallest cache. */
static void note_rows(leveling *l, const ax_rows *rows) {
  uint32_t first = 0;
  for (uint32_t k = 0; k < rows->count; first += ax_op_slots(&rows->members[k++]))
    for (uint32_t i = 0; i < ax_op_slots(&rows->members[k]); i++) {
      const ax_op_use use = ax_op_slot(&rows->members[k], i);
      if (rows->slots[first + i].row_bytes != 0) continue;
      l->streams = streams(l, &rows->members[k]);
      if (use.reads) note(l, use.buffer, false);
      if (use.writes) note(l, use.buffer, true);
    }
}

/* Shares what an operation moves among its buffers, by their sizes. */
static void share(leveling *l, const ax_sim_effort *effort) {
  double read = 0, written = 0;
  for (uint32_t i = 0; i < l->count; i++) {
    read += l->touches[i].read;
    written += l->touches[i].written;
  }
  for (uint32_t i = 0; i < l->count; i++) {
    l->touches[i].read *= read > 0 ? effort->read / read : 0;
    l->touches[i].written *= written > 0 ? effort->written / written : 0;
  }
}

/* Bytes that a cache gets to hold. */
static double moved(const touch *t) { return t->past ? 0 : fmin(t->whole, t->read + t->written); }

/* What part of bytes that are so far away a cache still has: all up to three quarters of its size, as something else is in it too;
   from one and a half of it on none. */
static double held(const ax_sim_cache *cache, double distance) { return fmin(fmax((1.5 - distance / cache->bytes) / 0.75, 0), 1); }

/* Bytes that were touched since the last touch of this buffer, its own and those of the operation's other buffers included, each
   once. Of a buffer of which parts are touched any part may come next. */
static double distance_of(const leveling *l, const touch *t) {
  const uint32_t *place = l->order.place;
  const uint32_t last = place[t->root] > place[t->parent] ? place[t->root] : place[t->parent];
  double bytes = after(&l->order, last) + moved(t);
  for (uint32_t i = 0; i < l->count; i++)
    if (l->touches[i].root != t->root && place[l->touches[i].root] < last) bytes += moved(&l->touches[i]);
  return fmax(bytes, t->whole);
}

static ax_sim_moved seconds_of(const leveling *l, const touch *t) {
  const ax_cluster *m = l->machine;
  if (t->past) return (ax_sim_moved){0, 0};
  const double distance = distance_of(l, t), bytes = t->read + t->written, memory = t->read / m->memory + t->written / ax_sim_write_rate(m);
  double seconds = 0, found = 0;
  for (uint32_t c = 0; c < m->cache_count; c++) {
    const double here = fmax(held(&m->caches[c], distance), found);
    seconds += (here - found) * bytes / m->caches[c].bandwidth;
    found = here;
  }
  return (ax_sim_moved){seconds + (1 - found) * memory,
                        seconds * ax_sim_cores(m) + (1 - found) * memory * ax_sim_memory_alone(m)};
}

static void visit(leveling *l, const ax_sim_work_step *step) {
  ax_sim_work_op *op = &l->work->ops[step->op];
  ax_sim_moved moving = {0, 0};
  double past = 0;
  l->count = 0;
  l->streams = streams(l, step->of);
  if (step->of->kind == AX_OP_ROWS) note_rows(l, step->of->rows);
  else ax_op_visit(step->of, note, l);
  share(l, &op->effort);
  for (uint32_t i = 0; i < l->count; i++) {
    const ax_sim_moved one = seconds_of(l, &l->touches[i]);
    moving = (ax_sim_moved){moving.all + one.all, moving.alone + one.alone};
    past += l->touches[i].past ? l->touches[i].written : 0;
  }
  for (uint32_t i = 0; i < l->count; i++) {
    const touch *t = &l->touches[i];
    if (t->past) forget_root(&l->order, t->root);
    else touch_root(&l->order, t->root, moved(t));
  }
  /* what is stored past the caches goes out while the next is read */
  past /= ax_sim_write_rate(l->machine);
  moving = (ax_sim_moved){hypot(moving.all, past), hypot(moving.alone, past * ax_sim_memory_alone(l->machine))};
  op->seconds = ax_sim_effort_seconds(l->machine, &op->effort, moving, &op->bound);
}

/* --- The program --- */

/* From a step to the end of the loop it is in, or of all; returns the step after that. What is visited last counts. */
static uint32_t walk(leveling *l, uint32_t first, uint32_t depth) {
  const ax_sim_work *w = l->work;
  uint32_t i = first;
  while (i < w->step_count && w->steps[i].kind != AX_WORK_NEXT) {
    const ax_sim_work_step *step = &w->steps[i];
    if (step->kind == AX_WORK_LOOP) {
      if (step->trips > 1 && depth < most_doubled) (void)walk(l, i + 1, depth + 1);
      i = walk(l, i + 1, depth + 1);
      continue;
    }
    if (step->kind == AX_WORK_COMPUTE && step->of->kind != AX_OP_CORES) visit(l, step);
    i++;
  }
  return i + 1;
}

ax_status ax_sim_from_caches(const ax_plan *plan, const ax_cluster *machine, ax_sim_work *work) {
  leveling l = {.plan = plan, .machine = machine, .work = work};
  ax_arena arena = {0};
  l.status = order_make(&arena, plan->buffer_count, &l.order);
  for (uint32_t pass = 0; pass < 2 && l.status == AX_OK; pass++) (void)walk(&l, 0, 0);
  ax_free(l.touches);
  ax_arena_deinit(&arena);
  return l.status;
}
