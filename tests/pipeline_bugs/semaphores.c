/* A pipeline of one core whose copies signal DMA semaphores, one a slot. */
#include "pipeline_bugs/bugs.h"

enum {
  RIGHT,
  NO_RECEIVED_WAIT,
  RECEIVED_OTHER_SLOT,
  ONE_SEMAPHORE,
  NO_SENT_WAIT,
  NO_LAST_SENT_WAIT,
  SWAPPED,
  WAIT_TWICE,
  WAIT_HALF,
  STORED_TWICE
};

typedef struct piping { /* refs */
  int slip;
  ax_value x, y, in_slots, out_slots, received, stored, step;
} piping;

static AX_BODY(nothing) {}
static void where(ax_value predicate, ax_function then, const piping *p) {
  ax_if(predicate, AX_CLOSURE(then, 0, 0, p), AX_FN(nothing, 0, 0), NULL, NULL);
}

static ax_value semaphore_of(const piping *p, bool in, ax_value slot) {
  bool swapped = p->slip == SWAPPED;
  return ax_ref_at(in != swapped ? p->received : p->stored, p->slip == ONE_SEMAPHORE && in ? ax_integer(0) : slot);
}

static void fetch(const piping *p, ax_value step, ax_value slot) {
  ax_value received = ax_ref_at(p->received, p->slip == ONE_SEMAPHORE ? ax_integer(0) : slot);
  ax_copy_start(ax_ref_at(p->x, step), ax_ref_at(p->in_slots, slot), &(ax_copy_options){.received = &received});
}

static AX_BODY(fetch_ahead) {
  const piping *p = context;
  fetch(p, ax_add(p->step, ax_integer(bug_stages)), bug_slot(p->step));
}

static void await_store(const piping *p, ax_value slot) {
  ax_copy_wait(semaphore_of(p, false, slot), ax_ref_at(p->out_slots, slot));
}
static AX_BODY(await_store_before) { await_store(context, bug_slot(((const piping *)context)->step)); }

static AX_BODY(step) {
  piping p = *(const piping *)context;
  p.step = in[0];
  ax_value slot = bug_slot(p.step), other = bug_slot(ax_add(p.step, ax_integer(1)));
  ax_value in_slot = ax_ref_at(p.in_slots, slot), out_slot = ax_ref_at(p.out_slots, slot), stored = ax_ref_at(p.stored, slot),
           start = ax_integer(0);
  ax_value awaited = p.slip == WAIT_HALF ? ax_ref_slice(in_slot, &start, AX_DIMS(bug_block / 2)) : in_slot;
  if (p.slip != NO_RECEIVED_WAIT) ax_copy_wait(semaphore_of(&p, true, p.slip == RECEIVED_OTHER_SLOT ? other : slot), awaited);
  if (p.slip == WAIT_TWICE) ax_copy_wait(semaphore_of(&p, true, slot), awaited);
  if (p.slip != NO_SENT_WAIT) where(ax_ge(p.step, ax_integer(bug_stages)), await_store_before, &p);
  ax_ref_store(out_slot, ax_mul(ax_ref_load(in_slot), ax_integer(2)));
  ax_copy_start(out_slot, ax_ref_at(p.y, p.step),
                &(ax_copy_options){.received = &stored, .sent = p.slip == STORED_TWICE ? &stored : NULL});
  where(ax_lt(p.step, ax_integer(bug_steps - bug_stages)), fetch_ahead, &p);
}

static AX_BODY(body) { /* x, y, in_slots, out_slots, received, stored */
  const bug *b = context;
  const piping p = {b->slip, in[0], in[1], in[2], in[3], in[4], in[5], ax_integer(0)};
  for (int64_t u = 0; u < bug_stages; u++) fetch(&p, ax_integer(u), ax_integer(u));
  ax_fori_loop(ax_integer(0), ax_integer(bug_steps), AX_CLOSURE(step, 1, 0, &p), NULL, NULL);
  for (int64_t u = b->slip == NO_LAST_SENT_WAIT; u < bug_stages; u++) await_store(&p, ax_integer(u));
}

static AX_BODY(kernel) {
  const ax_type slots = AX_VMEM(AX_F32, bug_stages, bug_block), semaphores = ax_dma_semaphore_type(AX_DIMS(bug_stages));
  const ax_scratch scratch[] = {{.type = slots}, {.type = slots}, {.type = semaphores}, {.type = semaphores}};
  const ax_kernel_options options = {.scratch = {AX_LIST(AX_COUNT(scratch), scratch)}};
  const ax_core_mesh one = {.core = "tensorcore"};
  ax_mpmd_map(AX_LIST(1, &one), &AX_CLOSURE(body, 6, 0, context), &options, AX_LIST(1, in),
              AX_TYPES(AX_TYPE(AX_F32, bug_steps, bug_block)), out);
}

static const bug all[] = {
    {"semaphores", NULL, RIGHT, kernel},
    {"the body does not wait for its operand", "data race|unset|semaphore", NO_RECEIVED_WAIT, kernel},
    {"it waits for the other slot", "data race|unset", RECEIVED_OTHER_SLOT, kernel},
    {"all slots have one semaphore", "data race|unset", ONE_SEMAPHORE, kernel},
    {"the body writes to a slot without waiting for its store", "data race|semaphore", NO_SENT_WAIT, kernel},
    {"one of the last stores is not waited for", "semaphore|not awaited|data race", NO_LAST_SENT_WAIT, kernel},
    {"the waits for in and out are swapped", "deadlock|data race|unset", SWAPPED, kernel},
    {"each wait is there twice", "deadlock", WAIT_TWICE, kernel},
    {"half of the bytes are waited for", "data race|semaphore|unset", WAIT_HALF, kernel},
    {"stores signal when they have read, and again when they have written", "data race|semaphore", STORED_TWICE, kernel},
};
const bug_list bugs_semaphores = {all, AX_COUNT(all)};
