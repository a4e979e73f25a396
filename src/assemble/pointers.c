/* Exchanges by pointer: ppermutes, and copies of their results, that move no bytes.

   A device that only reads what a ppermute brings can read it where the sender has it. So the results of such ppermutes have no
   memory. Each device has a pointer to the part that it sees, and an instruction POINT sets it. In a loop the pointers go round:

     loop: y = ppermute(c); .. y .. c ..; c = y        c's memory is written before the loop alone; in step n device d sees the part
                                                        of the device that is n places before it

   An allocation whose memory several others see, each as some power of one permutation, is a *source*; the others are its *images*.
   It may be an image of itself, as c is. An exchange or a copy that only makes an image is a *move*. Allocations are images if

     all their writes are moves, from one source or its images, and whole
     the moves are copies, and ppermutes over one group with the same pairs, in which each member has a source
     all devices move together, and all write the source: neither is done where control differs between devices. Else one would see
     the part of one step and another that of the step before; and who waits for all writers would wait for those that do not come
     while an image can be read, no instruction writes the source: its writes stand before the moves, seen from the innermost block
     that has both. An argument that is a source is not written at all
     at most one of them is a result. If the source is an argument that stays, any number are: a result of much memory then lies in
     the argument's (array/call.c)

   Who reads an image reads the memory of another device, so devices wait for all writers in their group, and a later writer waits
   for all readers (synchronise.c). If that happens as often as the moves themselves, a wait for one sender and a short copy cost
   less: then only long values go by pointer.

   All decisions are made here, on the plan, which keeps its exchanges: simulated time and reports read them. */
#include <string.h>

#include "assemble/assembly.h"
#include "plan/op.h"

enum { worth_bytes = 64 << 10 }; /* of a part, if the source is written as often as it moves; of a result's blocks together */

typedef struct place { /* of an operation: in its block, which stands in the operation `outer` */
  uint32_t block, index;
} place;

typedef struct one_block {
  place at; /* of the operation around it; block AX_NONE: it is the plan's */
  uint32_t depth, loops; /* blocks and loops around it */
} one_block;

typedef struct move {
  const ax_exchange *exchange; /* NULL: a copy */
  uint32_t from, to;           /* allocations */
  place at;
} move;

typedef struct source { /* by allocation */
  uint32_t of;           /* the source that it is an image of; AX_NONE: none; itself, if it is one and moves too */
  uint32_t writes, moves; /* how often operations write it, and how many of these are moves */
  uint32_t results;      /* of the plan that it is */
  bool excluded;         /* no image, and no source */
  bool own;              /* no image */
  const ax_exchange *exchange; /* of the moves that made it; NULL: none is known */
  /* Of a source: */
  uint32_t images, image_results; /* of which results of the plan */
  uint32_t around;       /* the innermost block with its writes and all moves; AX_NONE: none yet */
  uint32_t last_write, first_move; /* in that block; AX_NONE: none yet */
  bool bad;              /* its images need memory of their own */
  bool loops;            /* a move stands in a loop inside that block */
  const ax_op *rewritten; /* in a loop: the operation that writes it, if it is one */
} source;

typedef struct finder {
  ax_assembly *a;
  const ax_plan *plan;
  ax_arena arena;
  one_block *blocks;
  uint32_t block_count, block_capacity;
  move *moves;
  uint32_t move_count, move_capacity;
  source *sources;
  /* The visit at hand: */
  place at;
  const ax_op *op;
  bool by_many; /* operations of this kind reach others' memory by themselves */
  ax_status status;
  void (*look)(struct finder *f, uint32_t allocation, bool writes);
} finder;

/* --- Walking --- */

static void visit_one(void *context, uint32_t buffer, bool writes) {
  finder *f = context;
  f->look(f, f->plan->buffers[buffer].allocation, writes);
}

static ax_status walk_block(finder *f, const ax_block *block, uint32_t number, uint32_t *next) {
  for (uint32_t i = 0; i < block->count && f->status == AX_OK; i++) {
    ax_op *op = &block->ops[i];
    f->at = (place){number, i};
    f->op = op;
    ax_op_visit(op, visit_one, f);
    for (uint32_t k = 0; ax_op_block(op, k) != NULL; k++) {
      const uint32_t inner = (*next)++;
      if (inner == f->block_count) {
        AX_TRY(ax_grow(&f->blocks, sizeof f->blocks[0], f->block_count, 1, &f->block_capacity));
        const one_block around = f->blocks[number];
        f->blocks[f->block_count++] = (one_block){{number, i}, around.depth + 1, around.loops + (op->kind == AX_OP_LOOP)};
      }
      AX_TRY(walk_block(f, ax_op_block(op, k), inner, next));
    }
  }
  return f->status;
}

/* Calls `look` for each buffer of each operation. Blocks have the same numbers in each walk. */
static ax_status walk(finder *f, void (*look)(finder *f, uint32_t allocation, bool writes)) {
  uint32_t next = 1;
  f->look = look;
  return walk_block(f, &f->plan->block, 0, &next);
}

/* --- Moves --- */

static bool is_whole(const ax_plan *plan, uint32_t buffer) {
  const ax_buffer *b = &plan->buffers[buffer], *allocation = &plan->buffers[b->allocation];
  return b->offset == 0 && b->loop == AX_NONE && ax_buffer_bytes(b) == ax_buffer_bytes(allocation) && !allocation->updated;
}

static bool same_storage(const ax_plan *plan, uint32_t from, uint32_t to) {
  const ax_buffer *x = &plan->buffers[plan->buffers[from].allocation], *y = &plan->buffers[plan->buffers[to].allocation];
  return is_whole(plan, from) && is_whole(plan, to) && x != y && x->axes == y->axes && x->type.dtype == y->type.dtype &&
         ax_buffer_bytes(x) == ax_buffer_bytes(y);
}

/* Each member sends to one and receives from one. */
static bool is_permutation(const ax_plan *plan, const ax_exchange *x) {
  return x->peers == AX_PEERS_PAIRS && x->pairs->count == ax_axis_set_size(x->axes, &plan->mesh) && x->names.groups.count == 0 &&
         (x->axes & ~plan->buffers[plan->buffers[x->out].allocation].axes) == 0;
}

/* Says which move an operation is. False: none. */
static bool find_move(const ax_plan *plan, const ax_op *op, move *out) {
  uint32_t to, from;
  *out = (move){0};
  if (op->kind == AX_OP_START || op->kind == AX_OP_DONE) {
    if (!is_permutation(plan, op->exchange)) return false;
    out->exchange = op->exchange;
    to = op->exchange->out;
    from = op->exchange->in;
  } else if (!ax_op_copies_all(op, &to, &from)) {
    return false;
  }
  out->to = plan->buffers[to].allocation;
  out->from = plan->buffers[from].allocation;
  return same_storage(plan, from, to);
}

static void list_move(finder *f, uint32_t allocation, bool writes) {
  move one;
  source *s = &f->sources[allocation];
  if (f->op->kind == AX_OP_RAGGED || f->op->kind == AX_OP_CORES) s->excluded = true; /* they find others' parts by themselves */
  if (!writes) return;
  if (f->op->diverging != 0) s->excluded = true; /* some devices do not write it */
  s->writes++;
  if (!find_move(f->plan, f->op, &one)) return;
  s->moves++;
  if (f->op->kind == AX_OP_DONE || f->status != AX_OK) return;
  one.at = f->at;
  f->status = ax_grow(&f->moves, sizeof f->moves[0], f->move_count, 1, &f->move_capacity);
  if (f->status == AX_OK) f->moves[f->move_count++] = one;
}

/* --- Sources --- */

static bool may_be_image(const finder *f, uint32_t allocation) {
  const source *s = &f->sources[allocation];
  return !s->excluded && !s->own && s->writes == s->moves && f->plan->buffers[allocation].kind == AX_BUFFER_TEMP;
}

static bool may_be_source(const finder *f, uint32_t allocation) {
  const source *s = &f->sources[allocation];
  return !s->excluded && !s->bad && f->plan->buffers[allocation].kind != AX_BUFFER_CONST;
}

/* The source of what lies in an allocation; AX_NONE: not known yet, or none. */
static uint32_t source_of(const finder *f, uint32_t allocation) {
  if (f->sources[allocation].of != AX_NONE) return f->sources[allocation].of;
  return may_be_image(f, allocation) || !may_be_source(f, allocation) ? AX_NONE : allocation;
}

/* Gives images their sources, as far as moves tell. One that has two, or none, is a value of its own. */
static void spread(finder *f, bool *changed) {
  for (uint32_t i = 0; i < f->move_count; i++) {
    const move *m = &f->moves[i];
    source *to = &f->sources[m->to];
    const uint32_t of = source_of(f, m->from);
    if (of == AX_NONE || !may_be_image(f, m->to) || to->of == of) continue;
    if (to->of == AX_NONE) to->of = of;
    else to->own = true;
    *changed = true;
  }
}

static bool same_exchange(const ax_exchange *x, const ax_exchange *y) { return x == y || ax_compare_pairs(x, y) == 0; }

/* Images are made by one permutation each. */
static void spread_exchanges(finder *f, bool *changed) {
  for (uint32_t i = 0; i < f->move_count; i++) {
    const move *m = &f->moves[i];
    source *to = &f->sources[m->to];
    const ax_exchange *x = m->exchange != NULL ? m->exchange : f->sources[m->from].exchange;
    const ax_exchange *before = f->sources[m->from].exchange;
    if (to->of == AX_NONE && source_of(f, m->from) != m->to) continue;
    if (x == NULL) continue;
    const bool fits = (to->exchange == NULL || same_exchange(to->exchange, x)) && (before == NULL || same_exchange(before, x));
    if (fits && to->exchange != NULL) continue;
    if (fits) to->exchange = x;
    else if (to->excluded) continue;
    else to->excluded = true;
    *changed = true;
  }
}

/* Forgets all findings but the exclusions. */
static void forget(finder *f) {
  for (uint32_t i = 0; i < f->plan->buffer_count; i++) {
    source *s = &f->sources[i];
    s->of = AX_NONE;
    s->exchange = NULL;
    s->images = s->image_results = 0;
    s->around = s->last_write = s->first_move = AX_NONE;
    s->loops = false;
    s->rewritten = NULL;
  }
}

/* --- What each source promises --- */

static place up(const finder *f, place at, uint32_t depth) {
  while (f->blocks[at.block].depth > depth) at = f->blocks[at.block].at;
  return at;
}

static uint32_t common_block(const finder *f, uint32_t x, uint32_t y) {
  if (x == AX_NONE || x == y) return y;
  const uint32_t least = f->blocks[x].depth < f->blocks[y].depth ? f->blocks[x].depth : f->blocks[y].depth;
  x = up(f, (place){x, 0}, least).block;
  y = up(f, (place){y, 0}, least).block;
  while (x != y) x = f->blocks[x].at.block, y = f->blocks[y].at.block;
  return x;
}

/* Whether the operation at hand moves an image of `s`, or `s` itself. */
static bool moves_image(const finder *f, uint32_t of) {
  move one;
  return find_move(f->plan, f->op, &one) && source_of(f, one.from) == of && (f->sources[one.to].of == of || one.to == of);
}

static void find_around(finder *f, uint32_t allocation, bool writes) {
  const uint32_t of = source_of(f, allocation);
  if (of == AX_NONE || !(writes || moves_image(f, of))) return;
  f->sources[of].around = common_block(f, f->sources[of].around, f->at.block);
}

static void find_order(finder *f, uint32_t allocation, bool writes) {
  const uint32_t of = source_of(f, allocation);
  if (of == AX_NONE || f->sources[of].around == AX_NONE) return;
  source *s = &f->sources[of];
  const place at = up(f, f->at, f->blocks[s->around].depth);
  if (moves_image(f, of)) {
    if (s->first_move == AX_NONE || at.index < s->first_move) s->first_move = at.index;
    s->loops = s->loops || f->blocks[f->at.block].loops > f->blocks[s->around].loops;
  } else if (writes) {
    s->rewritten = s->last_write == AX_NONE && f->at.block == s->around ? f->op : NULL;
    if (s->last_write == AX_NONE || at.index > s->last_write) s->last_write = at.index;
  }
}

/* An operation that writes the source again, in a loop, reads none of its images: those would be other devices' parts, which these
   devices write at the same time. If the source is an image of itself, it writes all of it, and each device sees its own part
   again. */
typedef struct reading {
  const finder *f;
  uint32_t of;
  bool reads;
} reading;

static void find_read(void *context, uint32_t buffer, bool writes) {
  reading *r = context;
  const uint32_t allocation = r->f->plan->buffers[buffer].allocation;
  r->reads = r->reads || (!writes && (allocation == r->of || r->f->sources[allocation].of == r->of));
}

static bool writes_all(const finder *f, const ax_op *op, uint32_t allocation) {
  if (op->kind != AX_OP_KERNEL) return false;
  for (uint32_t i = 0; i < op->kernel.kernel->store_count; i++) {
    const ax_store *store = &op->kernel.kernel->stores[i];
    const uint32_t buffer = op->kernel.buffers[store->slot];
    if (f->plan->buffers[buffer].allocation != allocation) continue;
    if (!is_whole(f->plan, buffer) || !ax_kernel_covers(op->kernel.kernel, store->slot, store->at)) return false;
  }
  return true;
}

static bool may_be_rewritten(const finder *f, uint32_t of) {
  const source *s = &f->sources[of];
  reading r = {f, of, false};
  if (s->rewritten == NULL || (s->exchange != NULL && !writes_all(f, s->rewritten, of))) return false;
  ax_op_visit(s->rewritten, find_read, &r);
  return !r.reads;
}

static bool holds(const finder *f, uint32_t of) {
  const source *s = &f->sources[of];
  const ax_buffer *b = &f->plan->buffers[of];
  if (b->kind == AX_BUFFER_INPUT) {
    if (s->last_write != AX_NONE) return false;
    return s->exchange == NULL || s->image_results == 0;
  }
  if (s->last_write != AX_NONE && s->last_write >= s->first_move) return false;
  if (s->last_write == AX_NONE || s->results + s->image_results > 1) return false;
  if (!s->loops && ax_buffer_bytes(b) < worth_bytes) return false;
  return f->blocks[s->around].loops == 0 || may_be_rewritten(f, of);
}

/* A result that lies in an argument's memory cannot be written by a run, so small ones are copied. */
static bool is_worth(const finder *f, uint32_t image) {
  const ax_plan *plan = f->plan;
  const ax_buffer *b = &plan->buffers[image], *of = &plan->buffers[f->sources[image].of];
  if (f->sources[image].results == 0 || of->kind != AX_BUFFER_INPUT) return true;
  if (f->sources[f->sources[image].of].exchange != NULL) return true; /* the argument is donated */
  return ax_buffer_bytes(b) >= worth_bytes / ax_axis_set_size(b->axes, &plan->mesh);
}

/* Drops images that also get values that are in no source, by a move from there; true: some were dropped. */
static bool drop_mixed(finder *f) {
  bool dropped = false;
  for (uint32_t i = 0; i < f->move_count; i++) {
    source *to = &f->sources[f->moves[i].to];
    if (to->of != AX_NONE && source_of(f, f->moves[i].from) != to->of) to->own = dropped = true;
  }
  return dropped;
}

/* Counts images and drops those that do not hold; true: some were dropped. */
static bool drop(finder *f) {
  bool dropped = drop_mixed(f);
  for (uint32_t i = 0; i < f->plan->buffer_count; i++) {
    source *s = &f->sources[i];
    if (s->of == AX_NONE) continue;
    if (s->excluded || s->own || s->exchange == NULL || s->results > 1 || !is_worth(f, i)) s->own = dropped = true;
    f->sources[s->of].images++;
    f->sources[s->of].image_results += s->results;
  }
  for (uint32_t i = 0; i < f->plan->buffer_count && !dropped; i++)
    if (f->sources[i].images > 0 && (f->sources[i].excluded || !holds(f, i))) f->sources[i].bad = dropped = true;
  return dropped;
}

/* --- The decision --- */

static void count_results(finder *f) {
  const ax_plan *plan = f->plan;
  for (uint32_t k = 0; k < plan->out_count; k++) {
    const uint32_t allocation = plan->buffers[plan->out[k]].allocation;
    f->sources[allocation].results++;
    if (plan->out_axes[k] != plan->buffers[allocation].axes) f->sources[allocation].excluded = true;
  }
}

static ax_status find_all(finder *f, bool *found) {
  enum { most_rounds = 8 };
  *found = false;
  for (int round = 0; round < most_rounds && !*found; round++) {
    forget(f);
    for (bool changed = true; changed;) {
      changed = false;
      spread(f, &changed);
    }
    for (bool changed = true; changed;) {
      changed = false;
      spread_exchanges(f, &changed);
    }
    AX_TRY(walk(f, find_around));
    AX_TRY(walk(f, find_order));
    *found = !drop(f);
  }
  return AX_OK;
}

/* Tells the later passes. A source that moves has pointers as its images have. */
static ax_status note(finder *f) {
  ax_assembly *a = f->a;
  const uint32_t count = f->plan->buffer_count;
  bool any = false;
  for (uint32_t i = 0; i < count; i++) any = any || f->sources[i].images > 0;
  if (!any) return AX_OK;
  a->pointed = ax_arena_alloc(&a->plan->arena, count * sizeof a->pointed[0]);
  if (a->pointed == NULL) return ax_out_of_memory(count * sizeof a->pointed[0]);
  for (uint32_t i = 0; i < count; i++) {
    const source *s = &f->sources[i];
    a->pointed[i] = (ax_pointed){.memory = i, .space = AX_NONE};
    if (s->images > 0) {
      a->pointed[i].has_pointers = s->exchange != NULL;
      a->pointed[i].renewed = f->blocks[s->around].loops > 0 && s->exchange != NULL ? s->rewritten : NULL;
    }
    if (s->of != AX_NONE) a->pointed[i] = (ax_pointed){.memory = s->of, .space = AX_NONE, .has_pointers = true};
  }
  for (uint32_t i = 0; i < count; i++)
    if (f->sources[i].exchange != NULL) a->pointed[a->pointed[i].memory].away |= f->sources[i].exchange->axes;
  return AX_OK;
}

static ax_status find(finder *f) {
  const ax_plan *plan = f->plan;
  bool found, any = false;
  f->sources = ax_arena_alloc(&f->arena, plan->buffer_count * sizeof f->sources[0]);
  if (f->sources == NULL) return ax_out_of_memory(plan->buffer_count * sizeof f->sources[0]);
  AX_TRY(ax_grow(&f->blocks, sizeof f->blocks[0], 0, 1, &f->block_capacity));
  f->blocks[f->block_count++] = (one_block){{AX_NONE, 0}, 0, 0};
  AX_TRY(walk(f, list_move));
  for (uint32_t i = 0; i < f->move_count; i++) any = any || f->moves[i].exchange != NULL;
  if (!any) return AX_OK;
  count_results(f);
  AX_TRY(find_all(f, &found));
  return found ? note(f) : AX_OK;
}

ax_status ax_find_pointed(ax_assembly *a) {
  finder f = {.a = a, .plan = a->plan};
  if (a->compiled->map != NULL) return AX_OK; /* what another process has is at no address of this one */
  const bool messages = a->plan->program != NULL && (a->plan->program->effects & AX_EFFECT_MESSAGE) != 0;
  ax_status status = a->plan->exchange_count == 0 || messages ? AX_OK : find(&f);
  ax_free(f.blocks);
  ax_free(f.moves);
  ax_arena_deinit(&f.arena);
  return status;
}

bool ax_is_by_pointer(const ax_assembly *a, const ax_op *op, uint32_t *from, uint32_t *to) {
  move one;
  if (a->pointed == NULL || !find_move(a->plan, op, &one)) return false;
  *from = one.from;
  *to = one.to;
  return a->pointed[one.to].has_pointers && a->pointed[one.from].memory == a->pointed[one.to].memory;
}
