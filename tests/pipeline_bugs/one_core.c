/* A pipeline of one core, written out: copies in arrive at barriers, copies out are groups. */
#include "pipeline_bugs/bugs.h"

enum {
  RIGHT,
  NO_IN_WAIT,
  IN_WAIT_OTHER_SLOT,
  FETCH_BEFORE_BODY,
  FETCH_OTHER_SLOT,
  FETCH_ONE_MORE,
  FETCH_ONE_LESS,
  NO_FIRST_FETCH,
  TWO_ARRIVALS,
  NO_GROUP_WAIT,
  ONE_MORE_PENDING,
  STORE_BEFORE_BODY,
  OUT_SLOT_STAYS,
  NO_COMMIT,
  NO_LAST_WAIT,
  LAST_WAIT_READS,
  NO_SMEM_COMMIT,
  SMEM_COMMIT_LATE,
  SMEM_COMMIT_EARLY,
  RIGHT_SUMS,
  STORE_EACH_STEP,
  STORE_AT_FIRST_STEP, /* two steps after each other have one block of the result, and add to it */
  RIGHT_RETURNS,
  RETURN_WAIT_READS /* two blocks by turns: the result comes back to each */
};

static bool sums(int slip) { return slip >= RIGHT_SUMS && slip < RIGHT_RETURNS; }
static bool returns(int slip) { return slip >= RIGHT_RETURNS; }

typedef struct piping { /* refs */
  int slip;
  ax_value x, y, in_slots, out_slots, full, step;
} piping;

static AX_BODY(nothing) {}

static void fetch(const piping *p, ax_value step, ax_value slot) {
  ax_value barrier = ax_ref_at(p->full, slot);
  ax_copy_start(ax_ref_at(p->x, step), ax_ref_at(p->in_slots, slot), &(ax_copy_options){.barrier = &barrier});
}

static AX_BODY(fetch_ahead) {
  const piping *p = context;
  ax_value ahead = ax_add(p->step, ax_integer(bug_stages));
  fetch(p, ahead, bug_slot(p->slip == FETCH_OTHER_SLOT ? ax_add(p->step, ax_integer(1)) : p->step));
}

static void fetch_if_any(const piping *p) {
  int64_t last = bug_steps - bug_stages + (p->slip == FETCH_ONE_MORE) - (p->slip == FETCH_ONE_LESS);
  ax_if(ax_lt(p->step, ax_integer(last)), AX_CLOSURE(fetch_ahead, 0, 0, p), AX_FN(nothing, 0, 0), NULL, NULL);
}

static void store(const piping *p, ax_value slot) {
  ax_value to = sums(p->slip) ? ax_div(p->step, ax_integer(2)) : returns(p->slip) ? bug_slot(p->step) : p->step;
  ax_value changes = ax_eq(bug_slot(p->step), ax_integer(p->slip == STORE_AT_FIRST_STEP ? 0 : 1));
  ax_copy_options options = {.grouped = true};
  if (sums(p->slip) && p->slip != STORE_EACH_STEP) options.predicate = &changes;
  if (p->slip == RIGHT_RETURNS) ax_copy_wait_groups(0, false);
  ax_copy_start(ax_ref_at(p->out_slots, slot), ax_ref_at(p->y, to), &options);
  if (p->slip != NO_COMMIT) ax_copy_commit_group();
}

static AX_BODY(begin) {
  const ax_value *slot_x = context;
  ax_ref_store(slot_x[0], slot_x[1]);
}

static AX_BODY(go_on) {
  const ax_value *slot_x = context;
  ax_ref_add(slot_x[0], slot_x[1]);
}

static AX_BODY(step) {
  piping p = *(const piping *)context;
  p.step = in[0];
  ax_value slot = bug_slot(p.step), other = bug_slot(ax_add(p.step, ax_integer(1)));
  ax_value out_slot = p.slip == OUT_SLOT_STAYS ? ax_integer(0) : sums(p.slip) ? bug_slot(ax_div(p.step, ax_integer(2))) : slot;
  if (p.slip != NO_IN_WAIT) ax_barrier_wait(ax_ref_at(p.full, p.slip == IN_WAIT_OTHER_SLOT ? other : slot));
  if (p.slip != NO_GROUP_WAIT) ax_copy_wait_groups(bug_stages - 1 + (p.slip == ONE_MORE_PENDING), true);
  if (p.slip == FETCH_BEFORE_BODY) fetch_if_any(&p);
  if (p.slip == STORE_BEFORE_BODY) store(&p, out_slot);
  const ax_value slot_x[] = {ax_ref_at(p.out_slots, out_slot), ax_mul(ax_ref_load(ax_ref_at(p.in_slots, slot)), ax_integer(2))};
  if (p.slip == SMEM_COMMIT_EARLY) ax_commit_smem();
  if (!sums(p.slip)) ax_ref_store(slot_x[0], slot_x[1]);
  else ax_if(ax_eq(slot, ax_integer(0)), AX_CLOSURE(begin, 0, 0, slot_x), AX_CLOSURE(go_on, 0, 0, slot_x), NULL, NULL);
  if (p.slip != NO_SMEM_COMMIT && p.slip != SMEM_COMMIT_LATE && p.slip != SMEM_COMMIT_EARLY) ax_commit_smem();
  if (p.slip != STORE_BEFORE_BODY) store(&p, out_slot);
  if (p.slip == SMEM_COMMIT_LATE) ax_commit_smem();
  if (p.slip != FETCH_BEFORE_BODY) fetch_if_any(&p);
}

static AX_BODY(body) { /* x, y, in_slots, out_slots, full */
  const bug *b = context;
  const piping p = {b->slip, in[0], in[1], in[2], in[3], in[4], ax_integer(0)};
  for (int64_t u = b->slip == NO_FIRST_FETCH; u < bug_stages; u++) fetch(&p, ax_integer(u), ax_integer(u));
  ax_fori_loop(ax_integer(0), ax_integer(bug_steps), AX_CLOSURE(step, 1, 0, &p), NULL, NULL);
  if (b->slip != NO_LAST_WAIT) ax_copy_wait_groups(0, b->slip == LAST_WAIT_READS);
}

static AX_BODY(kernel) {
  const bug *b = context;
  const ax_scratch scratch[] = {{.type = AX_VMEM(AX_F32, bug_stages, bug_block)},
                                {.type = AX_VMEM(AX_F32, bug_stages, bug_block)},
                                {.type = ax_barrier_type(AX_DIMS(bug_stages)), .arrivals = 1 + (b->slip == TWO_ARRIVALS)}};
  const ax_kernel_options options = {.scratch = {AX_LIST(3, scratch)}};
  const ax_core_mesh one = {.core = "tensorcore"};
  ax_mpmd_map(AX_LIST(1, &one), &AX_CLOSURE(body, 5, 0, context), &options, AX_LIST(1, in),
              AX_TYPES(AX_TYPE(AX_F32, b->slip < RIGHT_SUMS ? bug_steps : bug_steps / 2, bug_block)), out);
}

static const bug all[] = {
    {"one core", NULL, RIGHT, kernel},
    {"the body does not wait for its operand", "data race|unset", NO_IN_WAIT, kernel},
    {"it waits for the other slot", "data race|unset|deadlock", IN_WAIT_OTHER_SLOT, kernel},
    {"a slot is fetched again before the body has read it", "data race", FETCH_BEFORE_BODY, kernel},
    {"a block is fetched into the other slot", "data race|barrier|deadlock", FETCH_OTHER_SLOT, kernel},
    {"one block more than there is is fetched", "out of bounds", FETCH_ONE_MORE, kernel},
    {"one block less is fetched", "deadlock", FETCH_ONE_LESS, kernel},
    {"the first block is not fetched", "deadlock", NO_FIRST_FETCH, kernel},
    {"the barrier waits for two copies, of which there is one", "deadlock", TWO_ARRIVALS, kernel},
    {"the body writes to a slot without waiting for stores", "data race", NO_GROUP_WAIT, kernel},
    {"one store too many may be under way", "data race", ONE_MORE_PENDING, kernel},
    {"the result is stored before the body has made it", "data race|unset", STORE_BEFORE_BODY, kernel},
    {"the result's slot is always the first", "data race", OUT_SLOT_STAYS, kernel},
    {"stores are never made a group", "data race|not awaited", NO_COMMIT, kernel},
    {"nobody waits for the last stores", "not awaited|data race|scope", NO_LAST_WAIT, kernel},
    {"the last stores are waited for until they have read, not written", "not awaited|data race|scope", LAST_WAIT_READS, kernel},
    {"what the body has stored is not committed", "missing commit", NO_SMEM_COMMIT, kernel},
    {"it is committed after the copy has been started", "missing commit", SMEM_COMMIT_LATE, kernel},
    {"it is committed before it is stored", "missing commit", SMEM_COMMIT_EARLY, kernel},
    {"one core, which adds", NULL, RIGHT_SUMS, kernel},
    {"a block of the result is stored at each of its steps", "data race", STORE_EACH_STEP, kernel},
    {"it is stored at the first of its steps", "data race", STORE_AT_FIRST_STEP, kernel},
    {"one core, which comes back to blocks", NULL, RIGHT_RETURNS, kernel},
    {"a block is stored again when the store before has read, not written", "data race", RETURN_WAIT_READS, kernel},
};
const bug_list bugs_one_core = {all, AX_COUNT(all)};
