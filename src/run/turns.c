/* See turns.h.

     place A, by all of 3 devices      calls 0 1 2         a device's turn here: what it has counted + its number
     place B, by one for all           call  3             the others count it as they pass
     place A again, in a loop          calls 4 5 6

     envelope                          place: whether the payload is the results of a call, one after the other; words[0]: the
                                       number of that call, or how many calls have been made */
#include "run/turns.h"

#include <string.h>

#include "ir/prim.h"
#include "run/compute.h"
#include "run/remote.h"

enum { MADE, RESULTS };

/* --- Telling other processes --- */

static ax_status tell(ax_execution *run, uint32_t process, uint64_t made) {
  ax_envelope envelope = {.kind = AX_MESSAGE_TURN, .place = MADE, .words = {made}};
  return ax_remote_send(run->remote, process, &envelope, NULL);
}

static ax_status tell_all(ax_execution *run, const ax_turns *turns, uint64_t made) {
  for (uint32_t i = 0; i < turns->other_count; i++) AX_TRY(tell(run, turns->others[i], made));
  return AX_OK;
}

/* Whoever is waiting for it in this process has been told by the counter. */
static ax_status pass_on(ax_execution *run, const ax_turns *turns, uint32_t number, uint64_t made) {
  const ax_process_map *map = run->compiled->map;
  if (number + 1 == turns->calls) return tell_all(run, turns, made);
  const uint32_t next = map->of[turns->caller[number + 1]];
  return next != map->process ? tell(run, next, made) : AX_OK;
}

/* --- Results --- */

static size_t result_bytes(const ax_instr *instr, uint32_t k) {
  const ax_type *type = &instr->program->types[instr->eqn->out + k];
  return (size_t)ax_type_elems(type) * ax_dtype_bytes(type->dtype);
}

/* Copies all results, which lie one after the other in `payload`, from there or to there; NULL: only counts. Returns their bytes.
   */
static size_t copy_results(const ax_activation *activation, const ax_instr *instr, char *payload, bool to) {
  size_t at = 0;
  for (uint32_t k = 0; k < instr->eqn->out_count; k++) {
    const size_t bytes = result_bytes(instr, k);
    void *result = ax_address(activation, &instr->refs[instr->eqn->in_count + k]);
    if (payload != NULL && bytes > 0) memcpy(to ? payload + at : result, to ? result : payload + at, bytes);
    at += bytes;
  }
  return at;
}

static ax_status send_results(ax_execution *run, const ax_activation *activation, const ax_instr *instr, uint32_t number) {
  const ax_turns *turns = instr->call.turns;
  const size_t bytes = copy_results(activation, instr, NULL, true);
  ax_status status = AX_OK;
  char *payload = ax_alloc(bytes);
  if (payload == NULL) return ax_out_of_memory(bytes);
  (void)copy_results(activation, instr, payload, true);
  for (uint32_t i = turns->first_taker[number]; i < turns->first_taker[number + 1] && status == AX_OK; i++) {
    ax_envelope envelope = {.kind = AX_MESSAGE_TURN, .place = RESULTS, .bytes = bytes, .words = {activation->turn + number}};
    status = ax_remote_send(run->remote, run->compiled->map->of[turns->taker[i]], &envelope, payload);
  }
  ax_free(payload);
  return status;
}

/* Takes the results of a call out of those that have come. NULL: they have not. */
static ax_delivery *find_results(ax_remote *r, uint64_t call) {
  ax_remote_lock(r);
  ax_delivery *before = NULL, *one = r->call_results.first;
  for (; one != NULL && one->envelope.words[0] != call; one = one->next) before = one;
  if (one != NULL) (void)ax_deliveries_take(&r->call_results, before);
  ax_remote_unlock(r);
  return one;
}

/* How many have come is read before they are looked at, so that none is missed that comes in between. */
static bool take_results(ax_execution *run, ax_worker_slot *worker_slot, const ax_activation *activation, const ax_instr *instr,
                         uint32_t f) {
  const uint32_t counter = run->compiled->turns + 1;
  ax_delivery *results;
  for (;;) {
    const uint64_t come = atomic_load(&run->counters[counter].count);
    results = find_results(run->remote, activation->turn + instr->call.turns->takes[activation->device]);
    if (results != NULL) break;
    if (!ax_scheduler_await(run, worker_slot, f, counter, come + 1, true)) return false;
  }
  (void)copy_results(activation, instr, results->payload, false);
  ax_delivery_free(results);
  return true;
}

/* --- What other processes say --- */

static void keep_results(ax_execution *run, ax_delivery *delivery) {
  ax_remote_lock(run->remote);
  ax_deliveries_add(&run->remote->call_results, delivery);
  ax_remote_unlock(run->remote);
  ax_scheduler_signal(run, run->compiled->turns + 1, 1);
}

/* It may be known already. Calls of this process do not change the counter meanwhile: all that are left come after those made. */
static void count_to(ax_execution *run, uint64_t made) {
  const uint64_t known = atomic_load(&run->counters[run->compiled->turns].count);
  if (made > known) ax_scheduler_signal(run, run->compiled->turns, (uint32_t)(made - known));
}

ax_status ax_turn_told(ax_execution *run, ax_delivery *delivery) {
  const ax_envelope *envelope = &delivery->envelope;
  if (run->compiled->turns == AX_NONE) {
    const uint32_t from = delivery->from;
    ax_delivery_free(delivery);
    return ax_error(AX_INTERNAL, "process %u makes ordered calls that this program does not have", from);
  }
  if (ax_delivery_is_away(delivery)) return ax_remote_fetch(run->remote, delivery);
  if (envelope->place == RESULTS) {
    keep_results(run, delivery);
    return AX_OK;
  }
  count_to(run, envelope->words[0]);
  ax_delivery_free(delivery);
  return AX_OK;
}

/* --- Calls --- */

static ax_status call(ax_execution *run, const ax_activation *activation, const ax_instr *instr, uint32_t number) {
  const ax_compiled *c = run->compiled;
  const ax_turns *turns = instr->call.turns;
  AX_TRY(ax_compute_eval(c, &run->executor->hooks, run->options, activation, instr, activation->device));
  if (turns->takes != NULL) AX_TRY(send_results(run, activation, instr, number));
  ax_scheduler_signal(run, c->turns, 1);
  return run->remote != NULL ? pass_on(run, turns, number, activation->turn + number + 1) : AX_OK;
}

ax_status ax_turn_take(ax_execution *run, ax_worker_slot *worker_slot, ax_activation *activation, const ax_instr *instr, uint32_t f,
                       bool *parked) {
  const ax_turns *turns = instr->call.turns;
  *parked = false;
  const uint32_t number = turns->number[activation->device];
  if (number != AX_NONE) {
    *parked = !ax_scheduler_await(run, worker_slot, f, run->compiled->turns, activation->turn + number, true);
    if (*parked) return AX_OK;
    AX_TRY(call(run, activation, instr, number));
  } else if (turns->takes != NULL && turns->takes[activation->device] != AX_NONE) {
    *parked = !take_results(run, worker_slot, activation, instr, f);
    if (*parked) return AX_OK;
  }
  activation->turn += turns->calls;
  return AX_OK;
}

/* --- Reports --- */

uint32_t ax_turn_missing(ax_text *text, const ax_execution *run, uint32_t f,
                         void (*list)(ax_text *text, const ax_execution *run, uint32_t device, uint32_t count), uint32_t count) {
  const ax_activation *waits = &run->activations[f];
  const ax_turns *turns = waits->code->instrs[waits->pc].call.turns;
  const uint64_t known = atomic_load(&run->counters[run->compiled->turns].count), own = turns->number[waits->device];
  const uint64_t end = own != AX_NONE ? own : turns->takes[waits->device] + 1;
  for (uint64_t k = known > waits->turn ? known - waits->turn : 0; k < end; k++)
    if (!ax_device_is_here(run->compiled->map, turns->caller[k])) list(text, run, turns->caller[k], count++);
  return count;
}
