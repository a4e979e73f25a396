/* Dependences between points, against a machine that runs the strands in many orders.

   Kernels at random over grids with parallel dimensions: blocks by index maps, also by a table; scratch, semaphores, copies,
   masks, guards, blocks that stick out, operands in the memory of results. Of those that are proved in the grid's order, the
   checker says which depend on the order of their strands. The machine here shares nothing with the checker: it has the kernel
   as a list of acts, and runs the strands one after the other in each order, and interleaved, with scratch, semaphores and
   slots of their own. Memory that was never set holds other numbers in each run. Where results differ, the checker has to have
   a finding. Where it has one and results do not differ, a read has to have given something else, or two strands have to have
   met at a number of an operand or a result, and one of them wrote it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "axle/axle.h"
#include "support/cmocka.h"
#include "support/random.h"
#include "support/run.h"

enum { most_dims = 3, most_points = 18, most_acts = 7, block = 2, cells = 4, pinned_cells = 8, entries = 4, most_cells = 40 };
enum { kernels = 400, mixes = 16, most_orders = 24 };
enum { TABLE, X, P, INPUTS };

typedef enum memory { OF_X, OF_Y, OF_S, OF_P, MEMORIES } memory;
typedef enum kind { LOAD, STORE, FILL, MASKED, ADD, SWAP, COPY, START, AWAIT, SIGNAL, WAIT, KINDS } kind;
typedef enum form { FIXED, BY_ID, BY_TABLE, FORMS } form;
typedef enum map { WHOLE, FIRST, ID, SUM, HALF, FLAT, BY_ENTRY, MAPS } map;

typedef struct place { /* a number of a memory */
  memory memory;
  form form;
  uint32_t dim, number;
} place;

typedef struct act {
  kind kind;
  place at, to;           /* COPY, START: from and to; AWAIT: to */
  bool guarded, by_table; /* guarded: only where a number of the grid, or the table there, is `value` */
  uint32_t dim, value;
} act;

typedef struct blocks { /* of x and y */
  map map;
  uint32_t dim, count;
  bool ragged;
} blocks;

typedef struct plan {
  test_random random;
  uint32_t rank, grid[most_dims], points;
  bool parallel[most_dims], pinned, in_place; /* in_place: y is x's memory */
  blocks x, y;
  act acts[most_acts];
  uint32_t count;
} plan;

/* --- As a kernel --- */

typedef struct part {
  const plan *plan;
  const ax_value *refs;
  ax_value table;
  const act *act;
  ax_value x;
  bool in_order;
} part;

static AX_BODY(nothing) {}
static ax_value number(int64_t n) { return ax_full_i64(AX_S32, AX_DIMS(), n); }

static ax_value block_index(const plan *p, const blocks *b, const ax_value *id, ax_value table) {
  ax_value flat = number(0);
  switch (b->map) {
    case ID:
      return id[b->dim];
    case SUM:
      return ax_add(id[0], id[p->rank - 1]);
    case HALF:
      return ax_div(id[b->dim], number(2));
    case BY_ENTRY:
      return ax_dynamic_at(table, id[b->dim], 0);
    case FLAT:
      for (uint32_t d = 0; d < p->rank; d++) flat = ax_add(ax_mul(flat, number(p->grid[d])), id[d]);
      return flat;
    default:
      return number(0);
  }
}

static AX_BODY(x_map) {
  const part *p = context;
  out[0] = block_index(p->plan, &p->plan->x, in, p->table);
}
static AX_BODY(y_map) {
  const part *p = context;
  out[0] = block_index(p->plan, &p->plan->y, in, p->table);
}

static uint32_t elems_of(const blocks *b) { return b->count * block - b->ragged; }
static uint32_t size_of(const plan *p, memory m) {
  return m == OF_S ? cells : m == OF_P ? pinned_cells : m == OF_X && p->x.map == WHOLE ? elems_of(&p->x) : block;
}

static ax_value ref_of(const part *p, memory m) {
  const uint32_t pinned = p->plan->pinned;
  const uint32_t at = m == OF_X ? 0 : m == OF_Y ? 1 + pinned : m == OF_P ? 2 + pinned : 2 + 2 * pinned;
  return p->refs[at];
}
static ax_value semaphore_of(const part *p, bool dma) { return p->refs[3 + 2 * p->plan->pinned + dma]; }

static ax_value cell_of(const part *p, const place *at) {
  const uint32_t size = size_of(p->plan, at->memory);
  ax_value id = at->form == FIXED ? number(at->number) : ax_program_id(at->dim);
  if (at->form == BY_TABLE) id = ax_dynamic_at(p->table, id, 0);
  return ax_ref_at(ref_of(p, at->memory), ax_rem(ax_add(id, number(at->form == FIXED ? 0 : at->number)), number(size)));
}

static AX_BODY(do_act) {
  const part *p = context;
  const act *a = p->act;
  ax_value ref = ref_of(p, a->at.memory), done = semaphore_of(p, true), stored = ax_add(p->x, number(a->value + 5));
  const int64_t size = size_of(p->plan, a->at.memory);
  switch (a->kind) {
    case STORE:
      ax_ref_store(cell_of(p, &a->at), stored);
      break;
    case FILL:
      ax_ref_store(ref, ax_broadcast_to(stored, AX_DIMS(size)));
      break;
    case MASKED:
      ax_ref_store_masked(ref, ax_eq(ax_iota(AX_S32, AX_DIMS(size), 0), ax_full_i64(AX_S32, AX_DIMS(size), a->at.number % size)),
                          ax_broadcast_to(stored, AX_DIMS(size)));
      break;
    case ADD:
      ax_ref_add(cell_of(p, &a->at), stored);
      break;
    case COPY:
      ax_copy(cell_of(p, &a->at), cell_of(p, &a->to));
      break;
    case START:
      ax_copy_start(cell_of(p, &a->at), cell_of(p, &a->to), &(ax_copy_options){.received = &done});
      break;
    case AWAIT:
      ax_copy_wait(done, cell_of(p, &a->to));
      break;
    case SIGNAL:
      ax_semaphore_signal(semaphore_of(p, false), ax_integer(1), NULL);
      break;
    case WAIT:
      ax_semaphore_wait(semaphore_of(p, false), ax_integer(1));
      break;
    default:
      break;
  }
}

static AX_BODY(body) {
  part p = *(const part *)context;
  p.refs = in;
  p.x = number(3);
  for (uint32_t d = 0; d < p.plan->rank; d++) p.x = ax_add(ax_mul(p.x, number(11)), ax_program_id(d));
  for (uint32_t k = 0; k < p.plan->count; k++) {
    const act *a = p.act = &p.plan->acts[k];
    if (a->kind == LOAD || a->kind == SWAP) {
      ax_value was = a->kind == LOAD ? ax_ref_load(cell_of(&p, &a->at)) : ax_ref_swap(cell_of(&p, &a->at), p.x);
      p.x = ax_add(ax_mul(p.x, number(31)), was);
    } else if (a->guarded) {
      ax_value id = ax_program_id(a->dim);
      if (a->by_table) id = ax_dynamic_at(p.table, id, 0);
      ax_if(ax_eq(id, number(a->value)), AX_CLOSURE(do_act, 0, 0, &p), AX_FN(nothing, 0, 0), NULL, NULL);
    } else
      do_act(NULL, NULL, &p);
  }
}

static AX_BODY(program_of) {
  part p = *(const part *)context;
  const plan *of = p.plan;
  p.table = in[TABLE];
  int64_t grid[most_dims];
  int semantics[most_dims];
  for (uint32_t d = 0; d < of->rank; d++) {
    grid[d] = of->grid[d];
    semantics[d] = of->parallel[d] && !p.in_order ? AX_PARALLEL : AX_ARBITRARY;
  }
  const ax_block_spec x = {.block = {AX_DIMS(block)}, .index_map = x_map, .context = &p}, all = {0},
                      y = {.block = {AX_DIMS(block)}, .index_map = y_map, .context = &p}, whole = {.space = AX_SPACE_HBM};
  const ax_block_spec in_specs[] = {of->x.map == WHOLE ? all : x, whole}, out_specs[] = {y, whole};
  const ax_type outs[] = {AX_TYPE(AX_S32, elems_of(&of->y)), AX_TYPE(AX_S32, pinned_cells)};
  const ax_scratch scratch[] = {
      {.type = AX_VMEM(AX_S32, cells)}, {.type = ax_semaphore_type(AX_DIMS())}, {.type = ax_dma_semaphore_type(AX_DIMS())}};
  const uint32_t aliases[2][2] = {{0, 0}, {1, 1}};
  const ax_semantics_list list = {
      of->rank, (const ax_semantics[]){semantics[0], of->rank > 1 ? semantics[1] : 0, of->rank > 2 ? semantics[2] : 0}};
  const ax_kernel kernel = {
      .grid = {of->rank, grid},
      .semantics = list,
      .in_specs = {1 + of->pinned, in_specs},
      .out_specs = {1 + of->pinned, out_specs},
      .outs = {1 + of->pinned, outs},
      .options = {.scratch = {AX_LIST(3, scratch)}, .aliases = {of->in_place + of->pinned, of->in_place ? aliases : aliases + 1}}};
  ax_kernel_call(&kernel, AX_CLOSURE(body, 5 + 2 * of->pinned, 0, &p), AX_LIST(1 + of->pinned, in + X),
                 AX_LIST(1 + of->pinned, out));
}

/* --- As strands --- */

typedef struct world {
  const plan *plan;
  const int32_t *table;
  int32_t x[most_cells], y[most_cells], p[pinned_cells];
  uint32_t written[MEMORIES][most_cells], read[MEMORIES][most_cells]; /* shared memory: bits of strands */
  uint64_t noise;
  bool stuck;
  uint64_t seen[most_points]; /* a hash of what each point has read */
} world;

typedef struct strand {
  int32_t s[cells], x[most_cells], y[block], signals, bytes;
  int32_t held, fetched; /* the blocks in the slots; -1: none */
  uint32_t bit;
} strand;

static int32_t noise_of(world *w) { return (int32_t)(ax_next_random(&w->noise) | 1); }

static void ids_of(const plan *p, uint32_t point, uint32_t *id) {
  for (uint32_t d = p->rank; d-- > 0;) id[d] = point % p->grid[d], point /= p->grid[d];
}

static int32_t block_at(const world *w, const blocks *b, const uint32_t *id, uint32_t point) {
  switch (b->map) {
    case ID:
      return (int32_t)id[b->dim];
    case SUM:
      return (int32_t)(id[0] + id[w->plan->rank - 1]);
    case HALF:
      return (int32_t)(id[b->dim] / 2);
    case BY_ENTRY:
      return w->table[id[b->dim]];
    case FLAT:
      return (int32_t)point;
    default:
      return 0;
  }
}

static bool never_changes(const plan *p, const blocks *b) {
  if (b->map == WHOLE || b->map == FIRST) return true;
  if (b->map == FLAT) return p->points == 1;
  if (b->map == SUM) return p->grid[0] == 1 && p->grid[p->rank - 1] == 1;
  return p->grid[b->dim] == 1;
}

static int32_t *memory_of(world *w, strand *s, memory m) { return m == OF_S ? s->s : m == OF_P ? w->p : m == OF_X ? s->x : s->y; }
static int32_t *y_of(world *w) { return w->plan->in_place ? w->x : w->y; }

static uint32_t cell_at(const world *w, const place *at, const uint32_t *id) {
  const uint32_t k =
      at->form == FIXED ? at->number : (at->form == BY_TABLE ? (uint32_t)w->table[id[at->dim]] : id[at->dim]) + at->number;
  return k % size_of(w->plan, at->memory);
}

/* A number of p, or of x's block in the memory of y, is read or written. */
static void note(world *w, strand *s, memory m, uint32_t cell, bool write) {
  if (m == OF_X && write) return; /* the slot's alone */
  if (m == OF_X) {
    const uint32_t at = cell + (uint32_t)s->fetched * (w->plan->x.map == WHOLE ? 0 : block);
    if (w->plan->in_place && at < elems_of(&w->plan->x)) w->read[OF_Y][at] |= s->bit;
  } else if (m == OF_P)
    *(write ? &w->written[OF_P][cell] : &w->read[OF_P][cell]) |= s->bit;
}

static int32_t load(world *w, strand *s, memory m, uint32_t cell, uint32_t point) {
  const int32_t value = memory_of(w, s, m)[cell];
  note(w, s, m, cell, false);
  w->seen[point] = ax_hash_word(w->seen[point], (uint64_t)(uint32_t)value);
  return value;
}

static void store(world *w, strand *s, memory m, uint32_t cell, int32_t value) {
  memory_of(w, s, m)[cell] = value;
  note(w, s, m, cell, true);
}

static int32_t plus(int32_t a, int32_t b) { return (int32_t)((uint32_t)a + (uint32_t)b); }

static void run_act(world *w, strand *s, const act *a, const uint32_t *id, uint32_t point, int32_t *x) {
  const memory m = a->at.memory;
  const uint32_t at = cell_at(w, &a->at, id), size = size_of(w->plan, m);
  const int32_t stored = plus(*x, (int32_t)a->value + 5);
  int32_t was = 0;
  const bool guarded = a->guarded && a->kind != LOAD && a->kind != SWAP;
  if (guarded && (a->by_table ? (uint32_t)w->table[id[a->dim]] : id[a->dim]) != a->value) return;
  switch (a->kind) {
    case LOAD:
    case SWAP:
      was = load(w, s, m, at, point);
      if (a->kind == SWAP) store(w, s, m, at, *x);
      *x = plus((int32_t)((uint32_t)*x * 31), was);
      break;
    case STORE:
      store(w, s, m, at, stored);
      break;
    case FILL:
      for (uint32_t k = 0; k < size; k++) store(w, s, m, k, stored);
      break;
    case MASKED:
      store(w, s, m, a->at.number % size, stored);
      break;
    case ADD:
      store(w, s, m, at, plus(load(w, s, m, at, point), stored));
      break;
    case COPY:
    case START:
      store(w, s, a->to.memory, cell_at(w, &a->to, id), load(w, s, m, at, point));
      if (a->kind == START) s->bytes += 4;
      break;
    case AWAIT:
      w->stuck = w->stuck || (s->bytes -= 4) < 0;
      break;
    case SIGNAL:
      s->signals++;
      break;
    case WAIT:
      w->stuck = w->stuck || --s->signals < 0;
      break;
    default:
      break;
  }
}

static void fetch(const world *w, const blocks *b, const int32_t *from, int32_t index, int32_t *slot) {
  const uint32_t elems = elems_of(b), count = b->map == WHOLE ? elems : block;
  (void)w;
  for (uint32_t k = 0; k < count; k++)
    slot[k] = (uint32_t)index * block + k < elems ? from[(uint32_t)index * block + k] : INT32_MIN;
}

static void put_back(world *w, strand *s) {
  for (uint32_t k = 0; k < block; k++) {
    const uint32_t at = (uint32_t)s->held * block + k;
    if (at >= elems_of(&w->plan->y)) continue;
    y_of(w)[at] = s->y[k];
    w->written[OF_Y][at] |= s->bit;
  }
  s->held = -1;
}

static void begin_strand(world *w, strand *s, uint32_t number) {
  *s = (strand){.held = -1, .fetched = -1, .bit = 1u << number};
  for (uint32_t k = 0; k < cells; k++) s->s[k] = noise_of(w);
}

/* next: the strand's next point; most_points: there is none. */
static void run_point(world *w, strand *s, uint32_t point, uint32_t next) {
  const plan *p = w->plan;
  uint32_t id[most_dims], then[most_dims];
  int32_t x = 3;
  ids_of(p, point, id);
  const int32_t index = block_at(w, &p->x, id, point);
  if (s->fetched < 0 || !never_changes(p, &p->x)) fetch(w, &p->x, w->x, index, s->x);
  s->fetched = index;
  if (s->held < 0) {
    s->held = block_at(w, &p->y, id, point);
    for (uint32_t k = 0; k < block; k++) s->y[k] = noise_of(w);
    if (p->in_place) fetch(w, &p->y, w->x, s->held, s->y);
  }
  for (uint32_t d = 0; d < p->rank; d++) x = plus((int32_t)((uint32_t)x * 11), (int32_t)id[d]);
  for (uint32_t k = 0; k < p->count; k++) run_act(w, s, &p->acts[k], id, point, &x);
  if (next < most_points) ids_of(p, next, then);
  if (next == most_points || block_at(w, &p->y, then, next) != s->held) put_back(w, s);
}

static uint32_t strand_at(const plan *p, uint32_t point) {
  uint32_t id[most_dims], strand = 0;
  ids_of(p, point, id);
  for (uint32_t d = 0; d < p->rank; d++)
    if (p->parallel[d]) strand = strand * p->grid[d] + id[d];
  return strand;
}

static uint32_t strands_of(const plan *p) {
  uint32_t count = 1;
  for (uint32_t d = 0; d < p->rank; d++) count *= p->parallel[d] ? p->grid[d] : 1;
  return count;
}

static const int32_t *input_of(uint32_t i) {
  static int32_t data[2][most_cells];
  for (int k = 0; k < most_cells; k++) data[0][k] = 1000 + 7 * k, data[1][k] = 5000 + 13 * k;
  return data[i];
}

static void begin_world(world *w, const plan *p, const int32_t *table, uint64_t noise) {
  *w = (world){.plan = p, .table = table, .noise = noise};
  memcpy(w->x, input_of(0), sizeof w->x);
  memcpy(w->p, input_of(1), sizeof w->p);
  for (uint32_t k = 0; k < most_cells; k++) w->y[k] = noise_of(w);
}

static void end_strand(world *w, const strand *s) { w->stuck = w->stuck || s->signals != 0 || s->bytes != 0; }

static void run_in_order(world *w, const plan *p, const int32_t *table, uint64_t noise) {
  strand one;
  begin_world(w, p, table, noise);
  begin_strand(w, &one, 0);
  for (uint32_t point = 0; point < p->points; point++) run_point(w, &one, point, point + 1 < p->points ? point + 1 : most_points);
  end_strand(w, &one);
}

/* turns: the strand that goes on, one for each point. */
static void run_strands(world *w, const plan *p, const int32_t *table, uint64_t noise, const uint32_t *turns) {
  strand all[most_points];
  uint32_t at[most_points];
  const uint32_t count = strands_of(p);
  begin_world(w, p, table, noise);
  for (uint32_t k = 0; k < count; k++) begin_strand(w, &all[k], k);
  for (uint32_t k = 0; k < count; k++)
    for (at[k] = 0; strand_at(p, at[k]) != k;) at[k]++;
  for (uint32_t t = 0; t < p->points; t++) {
    const uint32_t k = turns[t];
    uint32_t next = at[k] + 1;
    while (next < p->points && strand_at(p, next) != k) next++;
    run_point(w, &all[k], at[k], next < p->points ? next : most_points);
    at[k] = next;
  }
  for (uint32_t k = 0; k < count; k++) end_strand(w, &all[k]);
}

static bool same_results(const world *a, const world *b) {
  const plan *p = a->plan;
  const int32_t *x = p->in_place ? a->x : a->y, *y = p->in_place ? b->x : b->y;
  return a->stuck == b->stuck && memcmp(x, y, elems_of(&p->y) * sizeof x[0]) == 0 &&
         (!p->pinned || memcmp(a->p, b->p, sizeof a->p) == 0);
}

static bool strands_meet(const world *w) {
  for (uint32_t m = 0; m < MEMORIES; m++)
    for (uint32_t k = 0; k < most_cells; k++) {
      const uint32_t written = w->written[m][k], all = written | w->read[m][k];
      if (written != 0 && (all & (all - 1)) != 0) return true;
    }
  return false;
}

typedef struct outcome {
  bool stale;  /* in the grid's order the results follow from memory that was never set */
  bool differ; /* results do, by the order of strands */
  bool unlike; /* reads do, or strands meet in shared memory */
} outcome;

/* The strands one after the other in a random order, or all mixed. */
static void draw_turns(test_random *random, const plan *p, bool mixed, uint32_t *turns) {
  const uint32_t strands = strands_of(p), each = p->points / strands;
  uint32_t order[most_points];
  for (uint32_t k = 0; k < strands; k++) order[k] = k;
  for (uint32_t k = strands; k-- > 1;) {
    const uint32_t other = (uint32_t)test_random_below(random, k + 1), was = order[k];
    order[k] = order[other], order[other] = was;
  }
  for (uint32_t t = 0; t < p->points; t++) turns[t] = order[t / each];
  for (uint32_t k = p->points; mixed && k-- > 1;) {
    const uint32_t other = (uint32_t)test_random_below(random, k + 1), was = turns[k];
    turns[k] = turns[other], turns[other] = was;
  }
}

static outcome run_all(const plan *p, const int32_t *table, uint64_t seed) {
  static world first, other;
  test_random random = {seed};
  uint32_t turns[most_points];
  outcome o = {0};
  run_in_order(&first, p, table, 1);
  run_in_order(&other, p, table, 2);
  o.stale = !same_results(&first, &other);
  for (uint32_t k = 0; k < most_orders + mixes; k++) {
    draw_turns(&random, p, k >= most_orders, turns);
    run_strands(&other, p, table, 3 + k, turns);
    o.differ = o.differ || !same_results(&first, &other);
    o.unlike = o.unlike || memcmp(first.seen, other.seen, sizeof first.seen) != 0 || strands_meet(&other);
  }
  return o;
}

/* --- At random --- */

static uint32_t below(plan *p, uint32_t count) { return (uint32_t)test_random_below(&p->random, count); }
static bool chance(plan *p, uint32_t percent) { return below(p, 100) < percent; }

static memory any_memory(plan *p) {
  const memory m = below(p, MEMORIES);
  return m == OF_P && !p->pinned ? OF_S : m;
}

static place any_place(plan *p, memory m) {
  return (place){m, chance(p, 50) ? FIXED : chance(p, 80) ? BY_ID : BY_TABLE, below(p, p->rank), below(p, cells)};
}

static blocks any_blocks(plan *p, map least) {
  blocks b = {.map = chance(p, 55) ? ID : least + below(p, MAPS - least), .dim = below(p, p->rank), .ragged = chance(p, 30)};
  b.count = b.map == ID         ? p->grid[b.dim]
            : b.map == SUM      ? p->grid[0] + p->grid[p->rank - 1] - 1
            : b.map == HALF     ? (p->grid[b.dim] + 1) / 2
            : b.map == FLAT     ? p->points
            : b.map == BY_ENTRY ? entries
            : b.map == WHOLE    ? 3
                                : 1;
  return b;
}

static void add(plan *p, act a) {
  if (p->count < most_acts) p->acts[p->count++] = a;
}

static bool moves(kind k) { return k == COPY || k == START; }

static void add_any(plan *p) {
  act a = {
      .kind = below(p, KINDS), .guarded = chance(p, 30), .by_table = chance(p, 15), .dim = below(p, p->rank), .value = below(p, 3)};
  memory m = any_memory(p), to = any_memory(p);
  if (chance(p, 85) && m == OF_X && a.kind != LOAD && !moves(a.kind)) m = OF_S;
  if (to == OF_X) to = OF_S;
  if (m == OF_P && a.kind < COPY) m = OF_S;
  a.at = any_place(p, m), a.to = any_place(p, to);
  if (a.kind == SIGNAL || a.kind == WAIT || a.kind == START || a.kind == AWAIT) {
    if (chance(p, 60)) return;
    act pair = a;
    pair.kind = a.kind >= SIGNAL ? SIGNAL : START, pair.at = any_place(p, OF_S);
    if (chance(p, 70)) pair.guarded = a.guarded = false;
    add(p, pair);
    pair.kind = a.kind >= SIGNAL ? WAIT : AWAIT;
    if (chance(p, 40)) pair.dim = below(p, p->rank), pair.value = below(p, 3), pair.guarded = true;
    add(p, pair);
    return;
  }
  add(p, a);
}

static plan make_plan(uint64_t seed) {
  plan p = {.random = {seed}, .points = 1};
  p.rank = 1 + below(&p, most_dims);
  for (uint32_t d = 0; d < p.rank; d++) {
    const uint32_t size = d == 2 ? 2 : 1 + below(&p, 3);
    p.grid[d] = size, p.points *= size;
    p.parallel[d] = chance(&p, 60);
  }
  p.pinned = chance(&p, 40);
  p.x = any_blocks(&p, WHOLE), p.y = any_blocks(&p, FIRST);
  p.in_place = chance(&p, 25);
  if (p.in_place) {
    if (p.x.map != WHOLE || chance(&p, 60)) p.x = p.y;
    if (p.x.map == WHOLE) p.x.count = p.y.count, p.x.ragged = p.y.ragged;
  }
  if (chance(&p, 55)) add(&p, (act){.kind = FILL, .at = {.memory = OF_S}, .guarded = chance(&p, 40), .dim = below(&p, p.rank)});
  if (chance(&p, 30)) add(&p, (act){.kind = FILL, .at = {.memory = OF_Y}, .guarded = chance(&p, 50), .dim = below(&p, p.rank)});
  for (uint32_t k = 1 + below(&p, 4); k-- > 0;) add_any(&p);
  if (chance(&p, 60)) add(&p, (act){.kind = LOAD, .at = any_place(&p, OF_X)});
  if (chance(&p, 70)) add(&p, (act){.kind = chance(&p, 85) ? FILL : MASKED, .at = any_place(&p, OF_Y)});
  return p;
}

static void show(const plan *p) {
  static const char *const names[KINDS] = {"load", "store", "fill",  "masked", "add", "swap",
                                           "copy", "start", "await", "signal", "wait"};
  static const char *const maps[MAPS] = {"whole", "first", "id", "sum", "half", "flat", "entry"},
                           forms[FORMS] = "=it", *const of = "xysp";
  for (uint32_t d = 0; d < p->rank; d++)
    print_message("%s%u%s", d > 0 ? " x " : "grid ", p->grid[d], p->parallel[d] ? " parallel" : "");
  print_message("; x %s %u of %u%s, y %s %u of %u%s%s%s\n", maps[p->x.map], p->x.dim, p->x.count, p->x.ragged ? " ragged" : "",
                maps[p->y.map], p->y.dim, p->y.count, p->y.ragged ? " ragged" : "", p->in_place ? ", in place" : "",
                p->pinned ? ", pinned" : "");
  for (uint32_t k = 0; k < p->count; k++) {
    const act *a = &p->acts[k];
    print_message("  %s %c[%c%u%+d] to %c[%c%u%+d]", names[a->kind], of[a->at.memory], forms[a->at.form], a->at.dim,
                  (int)a->at.number, of[a->to.memory], forms[a->to.form], a->to.dim, (int)a->to.number);
    if (a->guarded) print_message(" if %s%u is %u", a->by_table ? "table at " : "id ", a->dim, a->value);
    print_message("; value %u\n", a->value);
  }
}

/* --- Compared --- */

static struct { uint64_t plans, right, depend, differ, dead, claims, all, plain; } total;

static ax_program *trace(const plan *p, bool in_order) {
  const ax_type types[] = {AX_TYPE(AX_S32, entries), AX_TYPE(AX_S32, elems_of(&p->x)), AX_TYPE(AX_S32, pinned_cells)};
  const part of = {.plan = p, .in_order = in_order};
  ax_program *program;
  TEST_OK(ax_trace(AX_CLOSURE(program_of, 2 + p->pinned, 1 + p->pinned, &of), types, &program));
  return program;
}

static ax_check_report *check_with(const plan *p, const ax_program *program, const int32_t *table) {
  const ax_host_array in[] = {ax_host_view(AX_S32, AX_DIMS(entries), table),
                              ax_host_view(AX_S32, AX_DIMS(elems_of(&p->x)), input_of(0)),
                              ax_host_view(AX_S32, AX_DIMS(pinned_cells), input_of(1))};
  ax_check_report *report;
  TEST_OK(ax_check(program, &(ax_check_options){.in = {AX_LIST(2 + p->pinned, in)}}, &report));
  return report;
}

static bool has_dependence(const ax_check_report *report) {
  for (uint32_t i = 0; i < report->kernels[0].finding_count; i++)
    if (strcmp(report->kernels[0].findings[i].kind, "dependence between points") == 0) return true;
  return false;
}

/* What is wrong with what is said for this table; NULL. claimed: for all inputs, or for those within bounds. */
static const char *compare_with(const plan *p, const ax_program *in_order, const ax_program *program, const int32_t *table,
                                bool claimed, bool counts) {
  ax_check_report *before = check_with(p, in_order, table), *report = check_with(p, program, table);
  const bool right = before->verdict == AX_PROVED, depends = has_dependence(report);
  const outcome o = run_all(p, table, 7);
  const char *said = NULL;
  if (right && o.stale) said = "proved in the grid's order, and results follow from memory that was never set";
  if (right && o.differ && !depends) said = "results differ by the order of strands, and nothing is found";
  if (right && depends && !o.unlike) said = "a finding, though strands do not meet and read the same";
  if (right && report->verdict != (depends ? AX_WRONG : AX_PROVED)) said = "another verdict";
  if (claimed && (report->verdict != AX_PROVED)) said = "proved for all inputs, and not with this one";
  if (counts && right) {
    total.right++;
    total.depend += depends, total.differ += o.differ, total.dead += depends && !o.differ;
  }
  ax_check_report_release(before);
  ax_check_report_release(report);
  return said;
}

static const char *compare(const plan *p, bool counts) {
  static const int32_t tables[][entries] = {{0, 0, 0, 0}, {0, 1, 2, 3}, {2, 0, 1, 3}, {1, 1, 0, 2}, {3, 2, 3, 0}};
  ax_program *in_order = trace(p, true), *program = trace(p, false);
  const char *said = NULL;
  bool all = false;
  for (uint32_t k = 0; k < AX_COUNT(tables) && said == NULL; k++) {
    said = compare_with(p, in_order, program, tables[k], all, counts);
    if (k > 0) continue;
    ax_check_report *report = check_with(p, program, tables[0]), *plain = check_with(p, in_order, tables[0]);
    all = report->kernels[0].proved_for == AX_INPUTS_ALL;
    if (counts) total.claims += all, total.plain += plain->kernels[0].proved_for == AX_INPUTS_ALL && report->verdict == AX_PROVED;
    ax_check_report_release(report);
    ax_check_report_release(plain);
  }
  if (counts) total.plans++;
  ax_program_release(in_order);
  ax_program_release(program);
  return said;
}

static void shrink(plan *p) {
  for (uint32_t k = 0; k < p->count;) {
    plan less = *p;
    memmove(&less.acts[k], &less.acts[k + 1], (less.count - k - 1) * sizeof less.acts[0]);
    less.count--;
    if (compare(&less, false) == NULL)
      k++;
    else
      *p = less, k = 0;
  }
}

static void one(uint64_t seed, bool shown) {
  plan p = make_plan(seed);
  if (strands_of(&p) < 2) return;
  if (shown) show(&p);
  const char *said = compare(&p, true);
  if (said == NULL) return;
  shrink(&p);
  show(&p);
  fail_msg("seed %llu: %s", (unsigned long long)seed, said);
}

static void test_kernels_at_random(void **ignored) {
  (void)ignored;
  test_each_seed(kernels, one);
  print_message(
      "%llu kernels with 5 tables each: %llu right in the grid's order; of these %llu depend on the order of strands: results of "
      "%llu differ, and of %llu a read alone, or what is written twice; %llu proved for all inputs, of %llu that are in order\n",
      (unsigned long long)total.plans, (unsigned long long)total.right, (unsigned long long)total.depend,
      (unsigned long long)total.differ, (unsigned long long)total.dead, (unsigned long long)total.claims,
      (unsigned long long)total.plain);
  if (total.plans < kernels / 2) return;
  assert_true(total.right > total.plans && total.depend > total.right / 5 && total.depend < 4 * total.right / 5);
  assert_true(4 * total.dead < total.depend && 10 * total.claims >= 9 * total.plain);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_kernels_at_random)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
