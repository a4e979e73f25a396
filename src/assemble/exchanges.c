/* Tables for exchanges: the members of a group, the places of their parts, and how a part is put into another.

   An exchange has one push, which all its instructions share. Tables that depend on the group alone (member numbers and places) are
   made once for all exchanges over the same axes between buffers stored along the same axes. The push of an exchange, its event and
   other accesses to its memory are looked up by the exchange's id or the buffer's allocation, so the cost grows with the number of
   exchanges. */
#include <string.h>

#include "assemble/assembly.h"
#include "machine/caches.h"

typedef struct members { /* of a group; see ax_push */
  const ax_axes *names;
  uint32_t in_set, out_set;
  uint32_t *number, *place, *in_place;
} members;

typedef struct exchanger {
  ax_assembly *a;
  ax_push **push;   /* by exchange */
  uint32_t *event;  /* by exchange: the event that its pushes signal */
  bool *nested;     /* by exchange: started in a loop or branch */
  bool *written;    /* by allocation: some instruction writes it */
  members *tables;  /* few: one for each way of grouping */
  uint32_t table_count, table_capacity;
} exchanger;

/* Counts the trailing dimensions of a part that are contiguous on both sides as one run. */
static void find_run(ax_push *push) {
  const ax_exchange *x = push->exchange;
  push->run = 1;
  push->outer_rank = x->rank;
  while (push->outer_rank > 0) {
    uint32_t d = push->outer_rank - 1;
    if (x->dims[d] != 1 && (x->src_stride[d] != push->run || x->dst_stride[d] != push->run)) break;
    push->run *= x->dims[d];
    push->outer_rank = d;
  }
}

/* --- Members --- */

static ax_status number_members(ax_compiled *c, members *m, uint32_t n) {
  AX_TRY(ax_member_numbers(c, m->names, &m->number));
  AX_TRY(ax_member_places(c, m->names, n, m->out_set, &m->place));
  return ax_member_places(c, m->names, n, m->in_set, &m->in_place);
}

/* Gives the push the tables of its group: member numbers in the order of the mesh, and places in the memory of both sides. A
   table is made when first needed. */
static ax_status take_members(exchanger *x, ax_push *push) {
  members m = {.names = &push->exchange->names, .in_set = push->in_set, .out_set = push->out_set};
  uint32_t i = 0;
  while (i < x->table_count && (x->tables[i].in_set != m.in_set || x->tables[i].out_set != m.out_set ||
                                !ax_axes_equal(x->tables[i].names, m.names)))
    i++;
  if (i == x->table_count) {
    AX_TRY(number_members(x->a->compiled, &m, push->members));
    AX_TRY(ax_grow(&x->tables, sizeof x->tables[0], x->table_count, 1, &x->table_capacity));
    x->tables[x->table_count++] = m;
  }
  push->number = x->tables[i].number;
  push->place = x->tables[i].place;
  push->in_place = x->tables[i].in_place;
  return AX_OK;
}

static ax_status pair_members(ax_compiled *c, ax_push *push) {
  uint32_t n = push->members;
  const ax_pairs *pairs = push->exchange->pairs;
  push->targets = ax_arena_alloc(&c->plan->arena, n * sizeof push->targets[0]);
  push->sources = ax_arena_alloc(&c->plan->arena, n * sizeof push->sources[0]);
  if (push->targets == NULL || push->sources == NULL) return ax_out_of_memory(n * sizeof push->targets[0]);
  memset(push->targets, 0xff, n * sizeof push->targets[0]);
  memset(push->sources, 0xff, n * sizeof push->sources[0]);
  for (uint32_t i = 0; i < pairs->count; i++) {
    push->targets[pairs->v[i][0]] = (uint32_t)pairs->v[i][1];
    push->sources[pairs->v[i][1]] = (uint32_t)pairs->v[i][0];
  }
  return AX_OK;
}

/* --- Pushes --- */

enum { least_by_last = 1 << 17 }; /* bytes of a group's contributions */

/* Says whether the operands are arguments of the run that are never overwritten. */
static bool stays(const exchanger *x, const ax_exchange *exchange) {
  uint32_t allocation = x->a->plan->buffers[exchange->in].allocation;
  if (x->a->pointed != NULL && x->a->pointed[allocation].has_pointers) return false; /* each device knows its own pointer alone */
  return x->a->plan->buffers[allocation].kind == AX_BUFFER_INPUT && !x->written[allocation];
}

/* Says whether the last member to arrive may combine all contributions: these are large, and lie in arguments of the run that
   are never overwritten. */
static bool may_be_by_last(const exchanger *x, const ax_push *push) {
  const ax_exchange *exchange = push->exchange;
  if (exchange->combine == AX_SCALAR_NONE || push->elems * push->item * push->members < least_by_last) return false;
  return (push->outer_rank == 0 || push->way == AX_PUSH_AS_WHOLE) && stays(x, exchange) && !x->nested[exchange->id];
}

/* Returns how many contiguous bytes of a result come from one source. */
static int64_t stretch_bytes(const ax_push *push) {
  int64_t elems = push->run;
  for (uint32_t d = push->outer_rank; d-- > 0 && push->exchange->dst_stride[d] == elems;) elems *= push->exchange->dims[d];
  return elems * push->item;
}

/* Returns how many pieces' runs one member puts if it puts its own. */
static int64_t run_count(const ax_push *push) { return push->run > 0 ? push->elems / push->run : 0; }

/* A group has a counter of its own unless exchanges over other axes write the result as well. Without one, members of different
   groups could not be told apart, and none can put what others have. */
static bool has_own_counters(const exchanger *x, const ax_push *push) {
  const ax_plan *plan = x->a->plan;
  const ax_exchange *exchange = push->exchange;
  const ax_axis_set groups = plan->buffers[plan->buffers[exchange->out].allocation].axes & ~exchange->axes;
  return x->a->compiled->events[push->event].groups == groups;
}

/* Decides how pieces get to their places. Pieces are put apart if they are long, or few; but if operands stay, the last member can
   always put all, in the order in which they stand in the results. */
static ax_push_way choose_way(const exchanger *x, const ax_push *push) {
  enum { long_bytes = 512, long_piece_bytes = 4096, few = 4 };
  const ax_exchange *exchange = push->exchange;
  const bool to_all = exchange->peers != AX_PEERS_PAIRS && !exchange->alone && push->members > 1;
  if (!to_all || !has_own_counters(x, push)) return AX_PUSH_APART;
  if (exchange->combine != AX_SCALAR_NONE) {
    bool short_pieces = push->run * push->out_item < long_piece_bytes && run_count(push) >= few;
    return exchange->peers == AX_PEERS_ALL && short_pieces && !push->at_once ? AX_PUSH_AS_WHOLE : AX_PUSH_APART;
  }
  if (exchange->peers == AX_PEERS_ALL && stays(x, exchange)) return AX_PUSH_IN_BATCHES;
  return stretch_bytes(push) < long_bytes && run_count(push) >= few ? AX_PUSH_IN_BATCHES : AX_PUSH_APART;
}

/* Returns the members of a batch: enough for their runs to make long stretches of a result, and no more than a quarter of a core's
   second cache holds. */
static uint32_t batch_size(const ax_push *push) {
  enum { enough_bytes = 1024 };
  int64_t bytes = push->elems * push->item, by_cache = ax_caches_here()->second / 4 / bytes,
          enough = enough_bytes / stretch_bytes(push);
  int64_t size = by_cache > enough ? by_cache : enough;
  size = size < 2 ? 2 : size;
  size = size < AX_PUSH_BATCH ? size : AX_PUSH_BATCH;
  return size < push->members ? (uint32_t)size : push->members;
}

static void choose(const exchanger *x, ax_push *push) {
  ax_compiled *c = x->a->compiled;
  push->way = choose_way(x, push);
  if (push->way == AX_PUSH_APART && !push->at_once) return;
  push->batch = push->way == AX_PUSH_IN_BATCHES && !stays(x, push->exchange) ? batch_size(push) : 0;
  push->stage = c->stage_count;
  c->stage_count += c->events[push->event].count;
}

/* A pair of members that add up one value do it faster one after the other. */
static bool may_be_at_once(const exchanger *x, const ax_push *push, int64_t parts) {
  enum { most_elems = 64 };
  const ax_exchange *exchange = push->exchange;
  const bool few = push->members <= AX_PUSH_AT_ONCE && push->members * parts * push->run <= most_elems;
  return exchange->combine != AX_SCALAR_NONE && push->outer_rank == 0 && x->nested[exchange->id] && few &&
         (push->members > 2 || parts > 1) && has_own_counters(x, push);
}

static bool is_small(const ax_push *push, int64_t parts) {
  if (push->way == AX_PUSH_AS_WHOLE) return push->elems <= AX_PUSH_SMALL;
  return push->exchange->combine != AX_SCALAR_NONE && push->outer_rank == 0 && push->run * parts <= AX_PUSH_SMALL;
}

/* Decides how contributions get to their places within one process. */
static void choose_how(const exchanger *x, ax_push *push) {
  push->product = ax_contributed_to(x->a, push->exchange);
  if (push->product != NULL) {
    push->combined = push->run;
    return; /* one member after the other, each in its turn */
  }
  const int64_t parts = push->exchange->peers == AX_PEERS_ONE ? 1 : push->members;
  push->at_once = may_be_at_once(x, push, parts);
  choose(x, push);
  push->combined = push->way == AX_PUSH_AS_WHOLE ? push->elems : push->run;
  push->at_last_arrival = may_be_by_last(x, push);
  push->small = is_small(push, parts) && !push->at_last_arrival;
}

static ax_status find_crossing(ax_compiled *c, ax_axis_set on, ax_push *push) {
  const ax_exchange *exchange = push->exchange;
  AX_TRY(ax_find_crossing(c, &exchange->names, exchange->axes, on, &push->crossing));
  if (push->crossing == NULL) return AX_OK;
  push->crossing_first = c->crossing_groups;
  c->crossing_groups += push->crossing->here_count;
  return AX_OK;
}

/* on: the axes along which devices push. */
static ax_status make_push(exchanger *x, const ax_exchange *exchange, ax_axis_set on, ax_push **out) {
  ax_compiled *c = x->a->compiled;
  const ax_plan *plan = x->a->plan;
  ax_push *push = *out = ax_arena_alloc(&c->plan->arena, sizeof *push);
  if (push == NULL) return ax_out_of_memory(sizeof *push);
  push->exchange = exchange;
  push->item = (int64_t)ax_dtype_bytes(plan->buffers[exchange->in].type.dtype);
  push->out_item = (int64_t)ax_dtype_bytes(plan->buffers[exchange->out].type.dtype);
  push->members = (uint32_t)ax_axis_set_size(exchange->axes, &plan->mesh);
  push->event = x->event[exchange->id];
  AX_TRY(ax_set_of(c, plan->buffers[plan->buffers[exchange->out].allocation].axes, &push->out_set));
  AX_TRY(ax_set_of(c, plan->buffers[plan->buffers[exchange->in].allocation].axes, &push->in_set));
  push->elems = ax_type_elems(&plan->buffers[exchange->in].type);
  find_run(push);
  AX_TRY(find_crossing(c, on, push));
  if (push->crossing == NULL) choose_how(x, push);
  else push->combined = push->run;
  AX_TRY(take_members(x, push));
  return exchange->peers == AX_PEERS_PAIRS ? pair_members(c, push) : AX_OK;
}

/* Collects from the accesses the tables by exchange and by allocation. */
static ax_status look_up(exchanger *x) {
  ax_arena *scratch = &x->a->scratch;
  const ax_plan *plan = x->a->plan;
  x->push = ax_arena_alloc(scratch, plan->exchange_count * sizeof x->push[0]);
  x->event = ax_arena_alloc(scratch, plan->exchange_count * sizeof x->event[0]);
  x->nested = ax_arena_alloc(scratch, plan->exchange_count);
  x->written = ax_arena_alloc(scratch, plan->buffer_count);
  if (x->push == NULL || x->event == NULL || x->nested == NULL || x->written == NULL) return ax_out_of_memory(plan->buffer_count);
  for (uint32_t i = 0; i < x->a->access_count; i++) {
    const ax_access *access = &x->a->accesses[i];
    x->written[access->allocation] |= access->writes;
    if (access->exchange == NULL) continue;
    x->event[access->exchange->id] = access->event;
    x->nested[access->exchange->id] |= access->region != 0;
  }
  return AX_OK;
}

static ax_status make_pushes(exchanger *x) {
  ax_assembly *a = x->a;
  AX_TRY(look_up(x));
  for (uint32_t i = 0; i < a->instr_count; i++) {
    ax_instr *instr = &a->instrs[i];
    if (instr->kind != AX_INSTR_PUSH && instr->kind != AX_INSTR_CLEAR) continue;
    const ax_exchange *exchange = a->ops[i]->exchange;
    ax_push **push = &x->push[exchange->id];
    if (*push == NULL) AX_TRY(make_push(x, exchange, a->ops[i]->axes, push));
    const ax_buffer *out = &a->plan->buffers[exchange->out];
    instr->push = *push;
    instr->bytes = ax_type_elems(&out->type) * (int64_t)ax_dtype_bytes(out->type.dtype);
  }
  return AX_OK;
}

ax_status ax_instrs_exchanges(ax_assembly *a) {
  exchanger x = {.a = a};
  ax_status status = make_pushes(&x);
  ax_free(x.tables);
  return status;
}

/* The kernel that combines contributions: dst = dst op src over the contiguous elements of a part, or dst = src if `first`, in
   dst's dtype. NULL: no memory. */
ax_loop_kernel *ax_combine_kernel(ax_assembly *a, const ax_push *push, bool first) {
  const ax_exchange *exchange = push->exchange;
  int64_t dims[] = {push->combined};
  ax_dtype wide = a->plan->buffers[exchange->out].type.dtype, dtype = a->plan->buffers[exchange->in].type.dtype;
  ax_loop_kernel *kernel = ax_kernel_create(&a->scratch, 1, 0, dims);
  ax_position at;
  if (kernel == NULL) return NULL;
  ax_at_identity(&at, 1);
  uint32_t dst = ax_kernel_slot(kernel, wide, 1, dims), src = ax_kernel_slot(kernel, dtype, 1, dims);
  ax_ex value = ax_kernel_load(kernel, src, &at);
  if (dtype != wide) value = ax_kernel_op(kernel, AX_SCALAR_CONVERT, wide, value, AX_NONE, AX_NONE);
  if (!first) value = ax_kernel_op(kernel, exchange->combine, wide, ax_kernel_load(kernel, dst, &at), value, AX_NONE);
  ax_kernel_store(kernel, dst, &at, value, AX_SCALAR_NONE);
  return kernel->failed ? NULL : kernel;
}

/* The kernel that combines the operands of all members, in order, into dst of each peer. Slots are the peers' dsts, then the
   members' srcs. NULL: no memory. */
ax_loop_kernel *ax_combine_all_kernel(ax_assembly *a, const ax_push *push) {
  const ax_exchange *exchange = push->exchange;
  const ax_type *in = &a->plan->buffers[exchange->in].type;
  const ax_dtype wide = a->plan->buffers[exchange->out].type.dtype;
  const int64_t dims[] = {push->run}, elems[] = {ax_type_elems(in)};
  uint32_t peers = exchange->peers == AX_PEERS_ONE ? 1 : push->members, dst[AX_PUSH_AT_ONCE], src[AX_PUSH_AT_ONCE];
  ax_loop_kernel *kernel = ax_kernel_create(&a->scratch, 1, 0, dims);
  ax_position at;
  if (kernel == NULL) return NULL;
  ax_at_identity(&at, 1);
  for (uint32_t j = 0; j < peers; j++) dst[j] = ax_kernel_slot(kernel, wide, 1, dims);
  for (uint32_t m = 0; m < push->members; m++) src[m] = ax_kernel_slot(kernel, in->dtype, 1, elems);
  for (uint32_t j = 0; j < peers; j++) {
    ax_position part = at;
    ax_ex all = AX_NONE;
    part.offset = peers == 1 ? 0 : j * exchange->src_step;
    for (uint32_t m = 0; m < push->members; m++) {
      ax_ex one = ax_kernel_load(kernel, src[m], &part);
      if (in->dtype != wide) one = ax_kernel_op(kernel, AX_SCALAR_CONVERT, wide, one, AX_NONE, AX_NONE);
      all = m == 0 ? one : ax_kernel_op(kernel, exchange->combine, wide, all, one, AX_NONE);
    }
    ax_kernel_store(kernel, dst[j], &at, all, AX_SCALAR_NONE);
  }
  return kernel->failed ? NULL : kernel;
}
