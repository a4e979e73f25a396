/* A warp-specialised pipeline, written out: the last warpgroup brings blocks in, three compute on a third of them, and the first
   stores. */
#include "axle/collectives.h"
#include "pipeline_bugs/bugs.h"

enum {
  RIGHT,
  NO_CONSUMED_WAIT,
  CONSUMED_OTHER_SLOT,
  CONSUMED_BEFORE_READING,
  ONE_CONSUMES,
  ONE_ARRIVAL,
  NO_READY_WAIT,
  ONE_READY,
  READY_BEFORE_WRITING,
  READY_AGAIN,
  NO_FREE_WAIT,
  FREE_TWICE,
  FREE_BEFORE_READ,
  ALL_STORE,
  SWAPPED,
  ONE_BARRIER,
  NO_LAST_WAIT,
  NO_SMEM_COMMIT
};

enum { wgs = 3, part = bug_block / wgs };

typedef struct warps { /* refs */
  int slip;
  ax_value x, y, in_slots, out_slots, full, consumed, ready, free;
  ax_value step, slot, wg;
} warps;

static AX_BODY(nothing) {}
static void where(ax_value predicate, ax_function then, const warps *w) {
  ax_if(predicate, AX_CLOSURE(then, 0, 0, w), AX_FN(nothing, 0, 0), NULL, NULL);
}
static ax_value is_leader(const warps *w) { return ax_eq(w->wg, ax_integer(0)); }
static ax_value part_of(const warps *w, ax_value slots) {
  ax_value start = ax_mul(w->wg, ax_integer(part));
  return ax_ref_slice(ax_ref_at(slots, w->slot), &start, AX_DIMS(part));
}

/* --- The memory warpgroup --- */

static void fetch(const warps *w, ax_value step, ax_value slot) {
  ax_value barrier = ax_ref_at(w->slip == SWAPPED ? w->consumed : w->full, w->slip == ONE_BARRIER ? ax_integer(0) : slot);
  ax_copy_start(ax_ref_at(w->x, step), ax_ref_at(w->in_slots, slot), &(ax_copy_options){.barrier = &barrier});
}

static AX_BODY(refill) {
  const warps *w = context;
  ax_value slot = bug_slot(in[0]);
  if (w->slip != NO_CONSUMED_WAIT) ax_barrier_wait(ax_ref_at(w->slip == SWAPPED ? w->full : w->consumed, slot));
  fetch(w, ax_add(in[0], ax_integer(bug_stages)), slot);
}

static AX_BODY(bring) {
  for (int64_t u = 0; u < bug_stages; u++) fetch(context, ax_integer(u), ax_integer(u));
  ax_fori_loop(ax_integer(0), ax_integer(bug_steps - bug_stages), AX_CLOSURE(refill, 1, 0, context), NULL, NULL);
}

/* --- The others --- */

static AX_BODY(consume) {
  const warps *w = context;
  ax_value slot = w->slip == CONSUMED_OTHER_SLOT ? bug_slot(ax_add(w->step, ax_integer(1))) : w->slot;
  ax_barrier_arrive(ax_ref_at(w->slip == SWAPPED ? w->full : w->consumed, slot));
}

static AX_BODY(say_free) {
  const warps *w = context;
  if (w->slip != FREE_BEFORE_READ) ax_copy_wait_groups(bug_stages - 1, true);
  ax_barrier_arrive(w->free);
  if (w->slip == FREE_TWICE) ax_barrier_arrive(w->free);
}

static AX_BODY(await_free) { ax_barrier_wait(((const warps *)context)->free); }
static AX_BODY(say_ready) { ax_barrier_arrive(((const warps *)context)->ready); }

static AX_BODY(store) {
  const warps *w = context;
  if (w->slip != NO_READY_WAIT && w->slip != ALL_STORE) ax_barrier_wait(w->ready);
  ax_copy_start(ax_ref_at(w->out_slots, w->slot), ax_ref_at(w->y, w->step), &(ax_copy_options){.grouped = true});
  ax_copy_commit_group();
}

static AX_BODY(await_and_store) {
  ax_barrier_wait(((const warps *)context)->ready);
  store(NULL, NULL, context);
}

static AX_BODY(step) {
  warps w = *(const warps *)context;
  w.step = in[0];
  w.slot = bug_slot(w.step);
  ax_barrier_wait(ax_ref_at(w.slip == SWAPPED ? w.consumed : w.full, w.slip == ONE_BARRIER ? ax_integer(0) : w.slot));
  if (w.slip == NO_FREE_WAIT) where(is_leader(&w), say_free, &w);
  else ax_if(is_leader(&w), AX_CLOSURE(say_free, 0, 0, &w), AX_CLOSURE(await_free, 0, 0, &w), NULL, NULL);
  if (w.slip == CONSUMED_BEFORE_READING) consume(NULL, NULL, &w);
  ax_value x = ax_ref_load(part_of(&w, w.in_slots));
  if (w.slip == ONE_CONSUMES) where(is_leader(&w), consume, &w);
  else if (w.slip != CONSUMED_BEFORE_READING) consume(NULL, NULL, &w);
  if (w.slip == READY_BEFORE_WRITING) say_ready(NULL, NULL, &w);
  ax_ref_store(part_of(&w, w.out_slots), ax_mul(x, ax_integer(2)));
  if (w.slip != NO_SMEM_COMMIT) ax_commit_smem();
  if (w.slip == ONE_READY) where(is_leader(&w), say_ready, &w);
  else if (w.slip != READY_BEFORE_WRITING) say_ready(NULL, NULL, &w);
  if (w.slip == ALL_STORE) await_and_store(NULL, NULL, &w);
  else where(is_leader(&w), store, &w);
}

static AX_BODY(compute) {
  const warps *w = context;
  ax_fori_loop(ax_integer(0), ax_integer(bug_steps), AX_CLOSURE(step, 1, 0, context), NULL, NULL);
  if (w->slip == READY_AGAIN) say_ready(NULL, NULL, context); /* once more, "for what is stored at the end" */
  if (w->slip != NO_LAST_WAIT) ax_copy_wait_groups(0, false);
}

static AX_BODY(body) {
  const bug *b = context;
  warps w = {.slip = b->slip,
             .x = in[0],
             .y = in[1],
             .in_slots = in[2],
             .out_slots = in[3],
             .full = in[4],
             .consumed = in[5],
             .ready = in[6],
             .free = in[7]};
  w.wg = ax_axis_index("wg");
  ax_if(ax_eq(w.wg, ax_integer(wgs)), AX_CLOSURE(bring, 0, 0, &w), AX_CLOSURE(compute, 0, 0, &w), NULL, NULL);
}

static AX_BODY(kernel) {
  const bug *b = context;
  const ax_type slots = AX_VMEM(AX_F32, bug_stages, bug_block), barriers = ax_barrier_type(AX_DIMS(bug_stages)),
                barrier = ax_barrier_type(AX_DIMS());
  const ax_scratch scratch[] = {{.type = slots},
                                {.type = slots},
                                {.type = barriers, .arrivals = 1},
                                {.type = barriers, .arrivals = b->slip == ONE_ARRIVAL ? 1 : wgs},
                                {.type = barrier, .arrivals = wgs},
                                {.type = barrier, .arrivals = 1}};
  const ax_kernel_options options = {.scratch = {AX_LIST(AX_COUNT(scratch), scratch)}};
  const ax_core_mesh mesh = {.core = "warpgroup", .mesh = {.count = 1, .axis = {{.name = "wg", .size = wgs + 1}}}, .threads = "wg"};
  ax_mpmd_map(AX_LIST(1, &mesh), &AX_CLOSURE(body, 8, 0, context), &options, AX_LIST(1, in),
              AX_TYPES(AX_TYPE(AX_F32, bug_steps, bug_block)), out);
}

static const bug all[] = {
    {"warpgroups", NULL, RIGHT, kernel},
    {"blocks are fetched again without waiting that they are consumed", "data race|barrier", NO_CONSUMED_WAIT, kernel},
    {"the other slot is said to be consumed", "data race|deadlock|barrier", CONSUMED_OTHER_SLOT, kernel},
    {"it is said before it is read", "data race", CONSUMED_BEFORE_READING, kernel},
    {"one compute warpgroup alone says it", "deadlock", ONE_CONSUMES, kernel},
    {"one of three arrivals completes it", "data race|barrier", ONE_ARRIVAL, kernel},
    {"a block is stored before all have written it", "data race|unset", NO_READY_WAIT, kernel},
    {"the leader alone says that it has", "deadlock", ONE_READY, kernel},
    {"it is said before it is written", "data race|unset", READY_BEFORE_WRITING, kernel},
    {"it is said once more at the end", "data race|barrier|unset", READY_AGAIN, kernel},
    {"a slot is written to while it is stored", "data race", NO_FREE_WAIT, kernel},
    {"it is said twice that it is free", "data race|barrier", FREE_TWICE, kernel},
    {"it is said without waiting for the store", "data race", FREE_BEFORE_READ, kernel},
    {"all store each block", "data race", ALL_STORE, kernel},
    {"the barriers of in and consumed are swapped", "deadlock|data race|barrier", SWAPPED, kernel},
    {"all slots have one barrier", "data race|barrier|unset|deadlock", ONE_BARRIER, kernel},
    {"nobody waits for the last stores", "not awaited|data race|scope", NO_LAST_WAIT, kernel},
    {"stores are not committed", "missing commit", NO_SMEM_COMMIT, kernel},
};
const bug_list bugs_warps = {all, AX_COUNT(all)};
