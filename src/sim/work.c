/* Operations of plans, counted. */
#include "sim/work.h"

#include <math.h>

#include "ir/prim.h"
#include "jit/nest/fused_loop.h"
#include "partition/partition.h"
#include "plan/op.h"
#include "prim/prims.h"
#include "sim/levels.h"
#include "sim/switches.h"

typedef struct making {
  const ax_plan *plan;
  const ax_sim_place *place;
  const ax_timed_kernels *kernels;
  ax_sim_work *work;
  const ax_mail **queues;
  uint32_t queue_count, queue_capacity;
  uint32_t depth;
} making;

/* --- What an operation takes --- */

/* Kernels and products count themselves. Of what else an equation became, the operation that computes it has the equation's flops;
   those that a pass split off it have their bytes alone. */
static ax_status count_op(const making *m, const ax_op *op, ax_amount *out) {
  const ax_op_rules *rules = ax_op_rules_of(op);
  *out = ax_op_amount(m->plan, op);
  if (rules->does_equation == NULL || !rules->does_equation(op)) return AX_OK;
  if (op->eqn == NULL || op->program == NULL || op->eqn->prim->kind != AX_LOCAL) return AX_OK;
  out->dtype = op->program->types[op->eqn->out].dtype;
  return ax_equation_flops(op->program, op->eqn, &out->flops);
}

static ax_status add_op(making *m, const ax_op *op, uint32_t *out) {
  ax_sim_work *w = m->work;
  const ax_op_rules *rules = ax_op_rules_of(op);
  const char *label = rules->label != NULL ? rules->label(op) : NULL,
             *name = label != NULL ? label : op->eqn != NULL ? op->eqn->prim->name : "copy";
  AX_TRY(ax_grow(&w->ops, sizeof w->ops[0], w->op_count, 1, &w->op_capacity));
  *out = w->op_count++;
  w->ops[*out] = (ax_sim_work_op){.name = name,
                                  .equation = op->eqn,
                                  .location = op->eqn != NULL ? op->eqn->location : NULL,
                                  .line = op->eqn != NULL ? op->eqn->line : 0,
                                  .transfer = AX_NONE};
  return AX_OK;
}

static ax_status add_step(making *m, ax_sim_work_step step) {
  ax_sim_work *w = m->work;
  AX_TRY(ax_grow(&w->steps, sizeof w->steps[0], w->step_count, 1, &w->step_capacity));
  w->steps[w->step_count++] = step;
  return AX_OK;
}

/* As if all its bytes were in memory. */
static void take_time(const making *m, ax_sim_work_op *op) {
  const ax_cluster *machine = m->place->machine;
  op->seconds = ax_sim_effort_seconds(machine, &op->effort, ax_sim_moving(machine, &op->effort), &op->bound);
}

/* Where devices share a memory, a small result that is the same on several of them is made once and copied to a place for each
   (plan/lower.c). Devices with memories of their own have it there. */
static bool is_in_place(const making *m, const ax_op *op) {
  uint32_t to, from;
  if (m->place->machine->one_memory || !ax_op_copies_all(op, &to, &from)) return false;
  const ax_axis_set made = m->plan->buffers[from].axes, stored = m->plan->buffers[to].axes;
  return made != stored && (made & ~stored) == 0;
}

static ax_status compute(making *m, const ax_op *op) {
  const ax_cluster *machine = m->place->machine;
  ax_amount a;
  uint32_t index;
  if (is_in_place(m, op)) return AX_OK;
  AX_TRY(count_op(m, op, &a));
  AX_TRY(add_op(m, op, &index));
  ax_sim_work_op *made = &m->work->ops[index];
  made->flops = a.flops;
  made->bytes = a.read + a.written;
  made->effort = ax_sim_effort_of(machine, op, &a);
  take_time(m, made);
  return add_step(m, (ax_sim_work_step){.kind = AX_WORK_COMPUTE, .op = index, .of = op});
}

/* A kernel takes what it takes alone, all its devices at once, and a launch. */
static ax_status run_kernel(making *m, const ax_op *op) {
  const ax_simulated_kernel *kernel = ax_kernels_find(m->kernels, op->eqn);
  const ax_cluster *machine = m->place->machine;
  const double devices = (double)m->place->devices;
  uint32_t index;
  if (kernel == NULL) return compute(m, op);
  AX_TRY(add_op(m, op, &index));
  ax_sim_work_op *made = &m->work->ops[index];
  made->flops = kernel->flops / devices;
  made->bytes = (kernel->copied + kernel->sent) / devices;
  made->seconds = machine->launch + kernel->seconds;
  made->bound = kernel->computing > 0.5                                            ? "flops"
                : kernel->carrying > 0.5                                           ? "bandwidth"
                : kernel->copied / devices > kernel->seconds / 2 * machine->memory ? "memory"
                                                                                   : "latency";
  return add_step(m, (ax_sim_work_step){.kind = AX_WORK_COMPUTE, .op = index, .of = op});
}

static bool is_of_kernel(const ax_op *op) { return op->eqn != NULL && op->eqn->prim == &ax_prim_kernel_call; }

/* --- Transfers --- */

static int64_t devices_of_node(const ax_cluster *machine) { return machine->topology == AX_TOPOLOGY_NODES ? machine->per_node : 0; }

static ax_collective_kind kind_of(const ax_exchange *x) {
  if (x->peers == AX_PEERS_PAIRS) return AX_COLLECTIVE_PERMUTE;
  if (x->peers == AX_PEERS_ALL) return x->combine != AX_SCALAR_NONE ? AX_COLLECTIVE_REDUCE_SCATTER : AX_COLLECTIVE_ALL_TO_ALL;
  return x->combine != AX_SCALAR_NONE ? AX_COLLECTIVE_ALL_REDUCE : x->alone ? AX_COLLECTIVE_BROADCAST : AX_COLLECTIVE_ALL_GATHER;
}

static void note_machine(const making *m, ax_dtype dtype, bool sums, ax_sim_procedure *s) {
  s->per_process = devices_of_node(m->place->machine);
  ax_sim_switches_note(m->place->machine, m->place->devices, dtype, sums, s);
}

/* By member, whom it sends to and gets from. */
static ax_status tabulate(making *m, const ax_pairs *pairs, ax_sim_procedure *s) {
  const size_t bytes = (size_t)s->group.members * sizeof(int64_t);
  int64_t *source = ax_arena_alloc(&m->work->arena, bytes), *target = ax_arena_alloc(&m->work->arena, bytes);
  if (source == NULL || target == NULL) return ax_out_of_memory(bytes);
  for (int64_t i = 0; i < s->group.members; i++) source[i] = target[i] = -1;
  for (uint32_t i = 0; i < pairs->count; i++) {
    target[pairs->v[i][0]] = pairs->v[i][1];
    source[pairs->v[i][1]] = pairs->v[i][0];
  }
  s->source = source;
  s->target = target;
  return AX_OK;
}

static ax_status add_transfer(making *m, const ax_op *op, const ax_sim_transfer *transfer) {
  ax_sim_work *w = m->work;
  uint32_t index;
  if (transfer->procedure.group.members == 1) return AX_OK;
  AX_TRY(add_op(m, op, &index));
  AX_TRY(ax_grow(&w->transfers, sizeof w->transfers[0], w->transfer_count, 1, &w->transfer_capacity));
  w->ops[index].transfer = w->transfer_count;
  w->transfers[w->transfer_count] = *transfer;
  w->transfers[w->transfer_count++].op = index;
  return add_step(m, (ax_sim_work_step){.kind = AX_WORK_TRANSFER, .op = index, .of = op});
}

static uint32_t root_of(const making *m, uint32_t buffer) { return m->plan->buffers[buffer].allocation; }

/* Adds a transfer. If the operand is scattered, its first dimension stands for the members' parts, and all of them count. */
static ax_status exchange(making *m, const ax_op *op) {
  const ax_exchange *x = op->exchange;
  ax_sim_transfer t = {.reads = root_of(m, x->in), .writes = root_of(m, x->out)};
  if (is_of_kernel(op)) return AX_OK; /* how the executor has devices begin together, and end */
  ax_sim_group_make(m->place, &x->names, &t.procedure.group);
  note_machine(m, m->plan->buffers[x->in].type.dtype, x->combine == AX_SCALAR_ADD, &t.procedure);
  t.procedure.kind = kind_of(x);
  t.procedure.bytes = (double)ax_dims_elems(x->rank, x->dims) * (double)ax_dtype_bytes(m->plan->buffers[x->in].type.dtype);
  if (x->peers == AX_PEERS_ALL) t.procedure.bytes *= (double)t.procedure.group.members;
  t.procedure.root = x->alone ? x->source : 0;
  if (x->peers == AX_PEERS_PAIRS) AX_TRY(tabulate(m, x->pairs, &t.procedure));
  return add_transfer(m, op, &t);
}

/* Rows are taken as if each member had as many for every other one: how many it is nobody knows before a run. */
static ax_status take_rows(making *m, const ax_op *op) {
  const ax_ragged *r = op->ragged;
  ax_sim_transfer t = {.reads = root_of(m, r->in[0]), .writes = root_of(m, r->out)};
  ax_sim_group_make(m->place, &r->names, &t.procedure.group);
  note_machine(m, m->plan->buffers[r->in[0]].type.dtype, false, &t.procedure);
  t.procedure.kind = AX_COLLECTIVE_ALL_TO_ALL;
  t.procedure.bytes = (double)ax_buffer_bytes(&m->plan->buffers[r->in[0]]);
  return add_transfer(m, op, &t);
}

/* Sides over the same axes with the same link, in order, are one queue. */
static uint32_t queue_of(making *m, const ax_mail *mail) {
  uint32_t q = 0;
  while (q < m->queue_count && !(m->queues[q]->link == mail->link && ax_axes_equal(&m->queues[q]->names, &mail->names))) q++;
  if (q == m->queue_count) m->queues[m->queue_count++] = mail;
  return q;
}

static ax_status post(making *m, const ax_op *op) {
  const ax_mail *mail = op->message;
  const bool sends = op->kind == AX_OP_SEND;
  ax_sim_work *w = m->work;
  ax_sim_post made = {
      .procedure = {.kind = AX_COLLECTIVE_PERMUTE, .bytes = (double)ax_buffer_bytes(&m->plan->buffers[mail->buffer])}};
  uint32_t index;
  ax_sim_group_make(m->place, &mail->names, &made.procedure.group);
  AX_TRY(tabulate(m, mail->pairs, &made.procedure));
  AX_TRY(ax_grow(&m->queues, sizeof m->queues[0], m->queue_count, 1, &m->queue_capacity));
  made.queue = queue_of(m, mail);
  w->queues = m->queue_count;
  AX_TRY(ax_grow(&w->posts, sizeof w->posts[0], w->post_count, 1, &w->post_capacity));
  w->posts[w->post_count] = made;
  AX_TRY(add_op(m, op, &index));
  w->ops[index].bytes = sends ? made.procedure.bytes : 0;
  w->ops[index].bound = sends ? "bandwidth" : "latency";
  return add_step(
      m, (ax_sim_work_step){.kind = sends ? AX_WORK_SEND : AX_WORK_RECEIVE, .op = index, .target = w->post_count++, .of = op});
}

/* --- Blocks --- */

static ax_status add_block(making *m, const ax_block *block);

/* Adds the estimated seconds of one run of a block, for the choice among blocks. */
static ax_status weigh(const making *m, const ax_block *block, double *seconds);

static ax_status weigh_nothing(const making *m, const ax_op *op, double *seconds) {
  (void)m, (void)op, (void)seconds;
  return AX_OK;
}

static ax_status weigh_one(const making *m, const ax_op *op, double *seconds) {
  const ax_cluster *machine = m->place->machine;
  ax_amount a = {0};
  AX_TRY(count_op(m, op, &a));
  const ax_sim_effort effort = ax_sim_effort_of(machine, op, &a);
  *seconds += machine->launch + effort.computing + ax_sim_moving(machine, &effort).all;
  return AX_OK;
}

static ax_status weigh_exchange(const making *m, const ax_op *op, double *seconds) {
  const ax_sim_wire *wire = &m->place->machine->wire;
  *seconds += wire->latency + (double)ax_buffer_bytes(&m->plan->buffers[op->exchange->in]) / wire->bandwidth;
  return AX_OK;
}

static ax_status weigh_loop(const making *m, const ax_op *op, double *seconds) {
  double inside = 0;
  AX_TRY(weigh(m, &op->loop.test, &inside));
  AX_TRY(weigh(m, &op->loop.body, &inside));
  *seconds += inside * (op->loop.trips < 0 ? 1 : (double)op->loop.trips);
  return AX_OK;
}

static ax_status weigh_branch(const making *m, const ax_op *op, double *seconds) {
  double most = 0;
  for (uint32_t k = 0; k < op->branch.count; k++) {
    double inside = 0;
    AX_TRY(weigh(m, &op->branch.blocks[k], &inside));
    most = inside > most ? inside : most;
  }
  *seconds += most;
  return AX_OK;
}

static ax_status choose(making *m, const ax_op *op) {
  uint32_t costliest = 0;
  double most = -1;
  if (op->axes != 0 && ax_op_has_messages(op))
    return ax_error(AX_ABSENT,
                    "simulate: a conditional%s%s that devices take differently sends or receives messages: which of them do is a "
                    "matter of data",
                    op->eqn != NULL && op->eqn->location != NULL ? " at " : "",
                    op->eqn != NULL && op->eqn->location != NULL ? op->eqn->location : "");
  for (uint32_t k = 0; k < op->branch.count; k++) {
    double seconds = 0;
    AX_TRY(weigh(m, &op->branch.blocks[k], &seconds));
    if (seconds > most) costliest = k;
    if (seconds > most) most = seconds;
  }
  return op->branch.count > 0 ? add_block(m, &op->branch.blocks[costliest]) : AX_OK;
}

/* Cores compute a loop of short kernels at once, as one function (jit/nest/fused_loop.h): no step of it is launched, and each waits for what
   the one before it has computed. */
static void join(making *m, uint32_t begin) {
  ax_sim_work *w = m->work;
  for (uint32_t i = begin; i < w->step_count; i++) {
    const ax_sim_work_step *step = &w->steps[i];
    const bool joins = step->kind == AX_WORK_LOOP || step->kind == AX_WORK_NEXT ||
                       (step->kind == AX_WORK_COMPUTE && step->of->kind == AX_OP_KERNEL && ax_fused_loop_takes(step->of->kernel.kernel));
    if (!joins) return;
  }
  const double least = 1e-9 * m->place->machine->core / ax_sim_cores(m->place->machine); /* one core computes it */
  for (uint32_t i = begin; i < w->step_count; i++) {
    ax_sim_work_op *op = &w->ops[w->steps[i].op];
    if (w->steps[i].kind != AX_WORK_COMPUTE || !op->effort.launched) continue;
    op->effort.launched = false;
    op->effort.computing = fmax(op->effort.computing, least * ax_op_amount(m->plan, w->steps[i].of).chain_ns);
    take_time(m, op);
  }
}

static ax_status loop(making *m, const ax_op *op) {
  const uint32_t begin = m->work->step_count;
  const int64_t trips = op->loop.trips < 0 ? 1 : op->loop.trips;
  m->work->at_least = m->work->at_least || op->loop.trips < 0;
  if (trips == 0) return AX_OK;
  AX_TRY(add_step(m, (ax_sim_work_step){.kind = AX_WORK_LOOP, .trips = trips, .of = op}));
  m->depth++;
  if (m->depth > m->work->loops) m->work->loops = m->depth;
  AX_TRY(add_block(m, &op->loop.test));
  AX_TRY(add_block(m, &op->loop.body));
  m->depth--;
  if (m->place->machine->core > 0) join(m, begin + 1);
  bool computes = true;
  for (uint32_t i = begin + 1; i < m->work->step_count; i++)
    computes = computes && m->work->steps[i].kind != AX_WORK_TRANSFER && m->work->steps[i].kind != AX_WORK_SEND &&
               m->work->steps[i].kind != AX_WORK_RECEIVE;
  m->work->steps[begin].computes = computes;
  return add_step(m, (ax_sim_work_step){.kind = AX_WORK_NEXT, .target = begin});
}

static ax_status nothing(making *m, const ax_op *op) {
  (void)m, (void)op;
  return AX_OK;
}

static ax_status ragged_step(making *m, const ax_op *op) {
  return op->step == AX_RAGGED_TAKE ? take_rows(m, op) : op->step == AX_RAGGED_PACK ? compute(m, op) : AX_OK;
}

static ax_status cores_step(making *m, const ax_op *op) { return op->cores_step == AX_CORES_RUN ? run_kernel(m, op) : AX_OK; }

/* How operations of a kind are added to the work, and weighed. NULL: as one that computes, which takes its flops and bytes. */
static const struct simulated_kind {
  ax_status (*add)(making *m, const ax_op *op);
  ax_status (*weigh)(const making *m, const ax_op *op, double *seconds);
} by_kind[AX_OP_KINDS] = {
    [AX_OP_NONE] = {nothing, weigh_nothing},
    [AX_OP_DONE] = {nothing, weigh_nothing},
    [AX_OP_START] = {exchange, weigh_exchange},
    [AX_OP_RAGGED] = {.add = ragged_step},
    [AX_OP_CORES] = {.add = cores_step},
    [AX_OP_SEND] = {.add = post},
    [AX_OP_RECEIVE] = {.add = post},
    [AX_OP_LOOP] = {loop, weigh_loop},
    [AX_OP_BRANCH] = {choose, weigh_branch},
};

static ax_status weigh(const making *m, const ax_block *block, double *seconds) {
  for (uint32_t i = 0; i < block->count; i++) {
    const ax_op *op = &block->ops[i];
    AX_TRY((by_kind[op->kind].weigh != NULL ? by_kind[op->kind].weigh : weigh_one)(m, op, seconds));
  }
  return AX_OK;
}

static ax_status add_block(making *m, const ax_block *block) {
  for (uint32_t i = 0; i < block->count; i++) {
    const ax_op *op = &block->ops[i];
    AX_TRY((by_kind[op->kind].add != NULL ? by_kind[op->kind].add : compute)(m, op));
  }
  return AX_OK;
}

/* --- Who waits for which transfers --- */

typedef struct user { /* of a root: a transfer */
  uint32_t transfer, next;
  bool writes;
} user;

typedef struct waiting {
  const making *m;
  const uint32_t *first; /* by root: 1 + a user */
  const user *users;
  uint32_t *seen;        /* by transfer: 1 + the step that waits for it already */
  uint32_t step;
  ax_status status;
} waiting;

static void await(void *context, uint32_t buffer, bool writes) {
  waiting *w = context;
  ax_sim_work *work = w->m->work;
  for (uint32_t u = w->first[root_of(w->m, buffer)]; u != 0 && w->status == AX_OK; u = w->users[u - 1].next) {
    const user *of = &w->users[u - 1];
    if ((!writes && !of->writes) || w->seen[of->transfer] == w->step + 1) continue;
    w->seen[of->transfer] = w->step + 1;
    w->status = ax_grow(&work->awaits, sizeof work->awaits[0], work->await_count, 1, &work->await_capacity);
    if (w->status == AX_OK) work->awaits[work->await_count++] = of->transfer;
  }
}

static ax_status find_waits(const making *m) {
  ax_sim_work *work = m->work;
  ax_arena arena = {0};
  uint32_t *first = ax_arena_alloc(&arena, m->plan->buffer_count * sizeof first[0]);
  user *users = ax_arena_alloc(&arena, 2 * (size_t)work->transfer_count * sizeof users[0]);
  waiting w = {.m = m, .first = first, .users = users, .seen = ax_arena_alloc(&arena, work->transfer_count * sizeof w.seen[0])};
  w.status = first != NULL && users != NULL && w.seen != NULL ? AX_OK : ax_out_of_memory(0);
  for (uint32_t t = 0; t < work->transfer_count && w.status == AX_OK; t++) {
    const uint32_t roots[] = {work->transfers[t].reads, work->transfers[t].writes};
    for (uint32_t k = 0; k < 2; k++) {
      users[2 * t + k] = (user){t, first[roots[k]], k == 1};
      first[roots[k]] = 1 + 2 * t + k;
    }
  }
  for (uint32_t i = 0; i < work->step_count && w.status == AX_OK; i++) {
    ax_sim_work_step *step = &work->steps[i];
    w.step = i;
    step->await_first = work->await_count;
    if (step->kind < AX_WORK_LOOP) ax_op_visit(step->of, await, &w);
    step->await_count = work->await_count - step->await_first;
  }
  ax_arena_deinit(&arena);
  return w.status;
}

static void look_for_kernel(void *context, ax_op *op) { *(bool *)context = *(bool *)context || op->kind == AX_OP_CORES; }

bool ax_plan_has_kernels(const ax_plan *plan) {
  bool found = false;
  ax_block_walk(&plan->block, look_for_kernel, &found);
  return found;
}

ax_status ax_sim_work_make(const ax_plan *plan, const ax_sim_place *place, const ax_timed_kernels *kernels, ax_sim_work *out) {
  making m = {.plan = plan, .place = place, .kernels = kernels, .work = out};
  *out = (ax_sim_work){0};
  ax_status status = add_block(&m, &plan->block);
  ax_free(m.queues);
  if (status == AX_OK && place->machine->cache_count > 0) status = ax_sim_from_caches(plan, place->machine, out);
  return status == AX_OK ? find_waits(&m) : status;
}

void ax_sim_work_deinit(ax_sim_work *work) {
  for (uint32_t t = 0; t < work->transfer_count; t++) ax_sim_procedure_deinit(&work->transfers[t].procedure);
  for (uint32_t p = 0; p < work->post_count; p++) ax_sim_procedure_deinit(&work->posts[p].procedure);
  ax_free(work->posts);
  ax_free(work->ops);
  ax_free(work->steps);
  ax_free(work->transfers);
  ax_free(work->awaits);
  ax_arena_deinit(&work->arena);
  *work = (ax_sim_work){0};
}
