/* The verifier of pushes: how the pieces of an exchange get to their places. It decides nothing itself; each way of putting pieces
   relies on facts that are found here again, from the exchange, its buffers and the accesses of the list:

     all ways        elements and members are those of the exchange; runs are contiguous on both sides; pairs lead there and back
     by the last     (at_last_arrival, or batches without copies) operands are arguments of the run that no instruction writes;
                     members combined at last arrival come once
     at once         the slots of one call are enough
     as a whole      each peer gets a piece of a sum; a whole operand is combined
     in batches      pieces are copied, to all peers or into one shared result; a batch has room for its members
     by several      (as a whole, in batches, or at once) each group has a counter and a stage, which no other exchange uses */
#include <string.h>

#include "assemble/verify.h"

typedef struct facts {
  const bool *written;    /* by allocation: an instruction writes it */
  const bool *nested;     /* by exchange: it is started in a loop or branch */
  const ax_push **owner;  /* by stage: the push that uses it; NULL: none yet */
} facts;

static const ax_buffer *allocation_of(const ax_assembly *a, uint32_t buffer) {
  return &a->plan->buffers[a->plan->buffers[buffer].allocation];
}

/* --- What each push says --- */

/* A run is contiguous on both sides, and with the dimensions around it makes up a part. */
static ax_status check_run(const ax_push *push) {
  const ax_exchange *x = push->exchange;
  int64_t run = 1;
  if (push->outer_rank > x->rank) return ax_error(AX_INTERNAL, "has %u of %u dimensions around a run", push->outer_rank, x->rank);
  for (uint32_t d = x->rank; d-- > push->outer_rank; run *= x->dims[d])
    if (x->dims[d] != 1 && (x->src_stride[d] != run || x->dst_stride[d] != run))
      return ax_error(AX_INTERNAL, "has a run over dimension %u, which is not contiguous", d);
  if (run == push->run) return AX_OK;
  return ax_error(AX_INTERNAL, "has runs of %lld elements, not %lld", (long long)push->run, (long long)run);
}

static ax_status check_sizes(const ax_assembly *a, const ax_push *push) {
  const ax_type *in = &a->plan->buffers[push->exchange->in].type, *out = &a->plan->buffers[push->exchange->out].type;
  const int64_t elems = ax_type_elems(in), combined = push->way == AX_PUSH_AS_WHOLE ? elems : push->run;
  if (push->elems != elems)
    return ax_error(AX_INTERNAL, "has operands of %lld elements, not %lld", (long long)push->elems, (long long)elems);
  if (push->item != (int64_t)ax_dtype_bytes(in->dtype) || push->out_item != (int64_t)ax_dtype_bytes(out->dtype))
    return ax_error(AX_INTERNAL, "has elements of %lld and %lld bytes", (long long)push->item, (long long)push->out_item);
  if (push->combined == combined) return AX_OK;
  return ax_error(AX_INTERNAL, "combines %lld elements at once, not %lld", (long long)push->combined, (long long)combined);
}

/* Each pair is in both tables, and no other. */
static ax_status check_pairs(const ax_push *push) {
  const ax_pairs *pairs = push->exchange->pairs;
  uint32_t sending = 0, receiving = 0;
  if (push->exchange->peers != AX_PEERS_PAIRS) return AX_OK;
  for (uint32_t i = 0; i < push->members; i++) {
    sending += push->targets[i] != AX_NONE;
    receiving += push->sources[i] != AX_NONE;
  }
  for (uint32_t i = 0; i < pairs->count; i++)
    if (push->targets[pairs->v[i][0]] != pairs->v[i][1] || push->sources[pairs->v[i][1]] != pairs->v[i][0])
      return ax_error(AX_INTERNAL, "member %lld does not send to %lld", (long long)pairs->v[i][0], (long long)pairs->v[i][1]);
  if (sending == pairs->count && receiving == pairs->count) return AX_OK;
  return ax_error(AX_INTERNAL, "%u members send and %u receive, of %u pairs", sending, receiving, pairs->count);
}

/* Says whether operands are arguments that stay as they are for the whole run. */
static bool stays(const ax_assembly *a, const ax_push *push, const facts *f) {
  const ax_buffer *in = allocation_of(a, push->exchange->in);
  return in->kind == AX_BUFFER_INPUT && !f->written[a->plan->buffers[push->exchange->in].allocation];
}

static ax_status check_combining(const ax_assembly *a, const ax_push *push, const facts *f) {
  const ax_exchange *x = push->exchange;
  const uint32_t peers = x->peers == AX_PEERS_ONE ? 1 : push->members;
  if ((push->at_last_arrival || push->at_once) && x->combine == AX_SCALAR_NONE)
    return ax_error(AX_INTERNAL, "combines what is copied");
  if (push->at_last_arrival && !stays(a, push, f))
    return ax_error(AX_INTERNAL, "is done by the last member, but operands do not stay until it comes");
  if (push->at_last_arrival && f->nested[x->id]) return ax_error(AX_INTERNAL, "is done by the last member, but members come again");
  if (!push->at_once || (push->members <= AX_PUSH_AT_ONCE && peers <= AX_PUSH_AT_ONCE && push->outer_rank == 0)) return AX_OK;
  return ax_error(AX_INTERNAL, "is combined at once, for %u members", push->members);
}

static ax_status check_whole(const ax_push *push) {
  const ax_exchange *x = push->exchange;
  if (x->combine != AX_SCALAR_NONE && x->peers == AX_PEERS_ALL && !x->alone && !push->at_once) return AX_OK;
  return ax_error(AX_INTERNAL, "is put as a whole, but its peers get no pieces of a sum");
}

static ax_status check_batch(const ax_assembly *a, const ax_push *push, const facts *f) {
  const ax_exchange *x = push->exchange;
  if (x->combine != AX_SCALAR_NONE || x->peers == AX_PEERS_PAIRS || x->alone)
    return ax_error(AX_INTERNAL, "is put in batches, but its members have no pieces that are copied to all");
  if (push->batch > AX_PUSH_BATCH || push->batch > push->members)
    return ax_error(AX_INTERNAL, "has batches of %u of %u members", push->batch, push->members);
  if (push->batch > 0 || stays(a, push, f)) return AX_OK;
  return ax_error(AX_INTERNAL, "is put without copies, but operands do not stay until the last member comes");
}

/* --- Groups --- */

/* Members of other groups signal other counters, so that a group knows when its own have come. */
static ax_status check_group(const ax_assembly *a, const ax_push *push) {
  const ax_event *event = &a->compiled->events[push->event];
  const ax_axis_set groups = allocation_of(a, push->exchange->out)->axes & ~push->exchange->axes;
  if (event->groups != groups || event->away != NULL)
    return ax_error(AX_INTERNAL, "is put by several members, but groups share a counter of event %u", push->event);
  const uint32_t count = a->compiled->stage_count;
  if (push->stage <= count && event->count <= count - push->stage) return AX_OK;
  return ax_error(AX_INTERNAL, "has stages %u to %u of %u", push->stage, push->stage + event->count, count);
}

static ax_status claim_stages(const ax_assembly *a, const ax_push *push, const facts *f) {
  for (uint32_t i = 0; i < a->compiled->events[push->event].count; i++) {
    const ax_push **one = &f->owner[push->stage + i];
    if (*one != NULL && *one != push)
      return ax_error(AX_INTERNAL, "uses stage %u, which is that of exchange %u", push->stage + i, (*one)->exchange->id);
    *one = push;
  }
  return AX_OK;
}

static ax_status check_one(const ax_assembly *a, const ax_push *push, const facts *f) {
  AX_TRY(check_run(push));
  AX_TRY(check_sizes(a, push));
  AX_TRY(check_pairs(push));
  AX_TRY(check_combining(a, push, f));
  if (push->way == AX_PUSH_APART && !push->at_once) return AX_OK;
  if (push->way == AX_PUSH_AS_WHOLE) AX_TRY(check_whole(push));
  if (push->way == AX_PUSH_IN_BATCHES) AX_TRY(check_batch(a, push, f));
  AX_TRY(check_group(a, push));
  return claim_stages(a, push, f);
}

ax_status ax_pushes_verify(const ax_assembly *a, ax_arena *arena) {
  bool *written = ax_arena_alloc(arena, a->plan->buffer_count), *nested = ax_arena_alloc(arena, a->plan->exchange_count);
  const facts f = {written, nested, ax_arena_alloc(arena, a->compiled->stage_count * sizeof f.owner[0])};
  if (written == NULL || nested == NULL || f.owner == NULL) return ax_out_of_memory(a->plan->buffer_count);
  for (uint32_t i = 0; i < a->access_count; i++) {
    const ax_access *access = &a->accesses[i];
    written[access->allocation] |= access->writes;
    if (access->exchange != NULL) nested[access->exchange->id] |= access->region != 0;
  }
  for (uint32_t i = 0; i < a->instr_count; i++) {
    if (a->instrs[i].kind != AX_INSTR_PUSH) continue;
    ax_status status = check_one(a, a->instrs[i].push, &f);
    if (status != AX_OK) return ax_error_context(status, "instruction %u ", i);
  }
  return AX_OK;
}
