/* From nested blocks to one list of instructions with jumps, and a record of who touches which buffer where.

     for loop:    LOOP      ENTER body  ...  NEXT       (exit)
     while loop:  LOOP      ENTER test  ...  TEST  ENTER body  ...  NEXT   (exit)
     branch:      BRANCH    ENTER case 0 ... JUMP    ENTER case 1 ... JUMP   (exit)                                   */
#include <string.h>

#include "assemble/assembly.h"
#include "plan/op.h"

static ax_status emit(ax_assembly *a, const ax_instr *instr, const ax_op *op, uint32_t *position) {
  AX_TRY(ax_grow(&a->instrs, sizeof a->instrs[0], a->instr_count, 1, &a->instr_capacity));
  AX_TRY(ax_grow(&a->ops, sizeof a->ops[0], a->instr_count, 1, &a->ops_capacity));
  a->instrs[a->instr_count] = *instr;
  a->ops[a->instr_count] = op;
  *position = a->instr_count++;
  return AX_OK;
}

static ax_status open_region(ax_assembly *a, uint32_t parent, ax_axis_set axes, uint32_t loop, uint32_t *out) {
  AX_TRY(ax_grow(&a->regions, sizeof a->regions[0], a->region_count, 1, &a->region_capacity));
  *out = a->region_count++;
  axes |= a->regions[parent].axes;
  a->regions[*out] = (ax_region){.parent = parent, .begin = a->instr_count, .axes = axes, .is_loop = loop != AX_NONE, .loop = loop};
  uint32_t position;
  return emit(a, &(ax_instr){.kind = AX_INSTR_ENTER, .region = *out}, NULL, &position);
}

static ax_status add_access(ax_assembly *a, const ax_access *access) {
  for (uint32_t i = a->access_count; i-- > 0 && a->accesses[i].position == access->position;)
    if (a->accesses[i].allocation == access->allocation && a->accesses[i].writes == access->writes &&
        a->accesses[i].done_position == access->done_position)
      return AX_OK;
  AX_TRY(ax_grow(&a->accesses, sizeof a->accesses[0], a->access_count, 1, &a->access_capacity));
  a->accesses[a->access_count++] = *access;
  return AX_OK;
}

typedef struct visit_state {
  ax_assembly *assembly;
  const ax_op *op;
  uint32_t position, region;
  ax_status status;
} visit_state;

static void visit(void *context, uint32_t buffer, bool writes) {
  visit_state *v = context;
  const uint32_t allocation = ax_memory_of_allocation(v->assembly, v->assembly->plan->buffers[buffer].allocation);
  ax_access access = {.allocation = allocation, .position = v->position, .region = v->region,
                      .axes = v->op->axes, .writes = writes, .event = AX_NONE,
                      .done_position = v->position, .done_region = v->region};
  if (writes && v->op->kind == AX_OP_START) access.exchange = v->op->exchange;
  if (v->status == AX_OK) v->status = add_access(v->assembly, &access);
  if (!writes || (v->op->kind != AX_OP_KERNEL && v->op->kind != AX_OP_ROWS) ||
      !v->assembly->plan->buffers[access.allocation].updated)
    return;
  access.writes = false; /* an operand that is not written is read */
  if (v->status == AX_OK) v->status = add_access(v->assembly, &access);
}

/* Local allocations have no memory of their own. */
static void visit_rows(visit_state *v) {
  const ax_rows *rows = v->op->rows;
  uint32_t first = 0;
  for (uint32_t k = 0; k < rows->count; first += ax_op_slots(&rows->members[k++]))
    for (int writes = 0; writes < 2; writes++)
      for (uint32_t i = 0; i < ax_op_slots(&rows->members[k]); i++) {
        const ax_op_use o = ax_op_slot(&rows->members[k], i);
        if ((writes ? o.writes : o.reads) && rows->slots[first + i].row_bytes == 0) visit(v, o.buffer, writes);
      }
}

static void visit_start(visit_state *v) {
  uint32_t buffers[AX_EXCHANGE_BUFFERS];
  const uint32_t count = ax_exchange_buffers(v->assembly, v->op->exchange, buffers);
  for (uint32_t k = 0; k < count; k++) visit(v, buffers[k], k + 1 == count);
}

static ax_status list_loops(ax_assembly *a, uint32_t region, ax_loops *out) {
  uint32_t depth = 0;
  for (uint32_t r = region; r != 0; r = a->regions[r].parent) depth += a->regions[r].is_loop;
  *out = (ax_loops){depth, ax_arena_alloc(&a->plan->arena, depth * sizeof out->v[0])};
  if (out->v == NULL) return ax_out_of_memory(depth * sizeof out->v[0]);
  for (uint32_t r = region; r != 0; r = a->regions[r].parent)
    if (a->regions[r].is_loop) out->v[--depth] = a->regions[r].loop;
  return AX_OK;
}

static ax_status describe_ragged(ax_assembly *a, const ax_op *op, uint32_t region, ax_instr *instr) {
  ax_ragged_instr *made = instr->ragged = ax_arena_alloc(&a->plan->arena, sizeof *made);
  if (made == NULL) return ax_out_of_memory(sizeof *made);
  made->ragged = op->ragged;
  made->step = op->step;
  return list_loops(a, region, &made->loops);
}

static ax_status describe_rows(ax_assembly *a, const ax_op *op, uint32_t region, ax_instr *instr) {
  ax_rows_instr *made = instr->rows = ax_arena_alloc(&a->plan->arena, sizeof *made);
  (void)region;
  if (made == NULL) return ax_out_of_memory(sizeof *made);
  made->rows = op->rows;
  made->code = ax_arena_alloc(&a->plan->arena, op->rows->count * sizeof made->code[0]);
  return made->code != NULL ? AX_OK : ax_out_of_memory(op->rows->count * sizeof made->code[0]);
}

static ax_status describe_cores(ax_assembly *a, const ax_op *op, uint32_t region, ax_instr *instr) {
  ax_cores_instr *made = instr->cores = ax_arena_alloc(&a->plan->arena, sizeof *made);
  (void)region;
  if (made == NULL) return ax_out_of_memory(sizeof *made);
  made->cores = op->cores;
  made->step = op->cores_step;
  return AX_OK;
}

/* Describes the operands of a check, and the loops around it. */
static ax_status describe_check(ax_assembly *a, const ax_op *op, uint32_t region, ax_instr *instr) {
  ax_arena *arena = &a->plan->arena;
  const ax_buffer *buffers = a->plan->buffers;
  uint32_t count = op->check.count;
  ax_loops loops;
  AX_TRY(list_loops(a, region, &loops));
  ax_value_check *check = ax_arena_alloc(arena, sizeof *check);
  ax_dtype *dtype = ax_arena_alloc(arena, count * sizeof dtype[0]);
  int64_t *elems = ax_arena_alloc(arena, count * sizeof elems[0]);
  if (check == NULL || dtype == NULL || elems == NULL) return ax_out_of_memory(count * sizeof elems[0]);
  for (uint32_t k = 0; k < count; k++) {
    dtype[k] = buffers[op->check.buffers[k]].type.dtype;
    elems[k] = ax_type_elems(&buffers[op->check.buffers[k]].type);
  }
  *check = (ax_value_check){.kinds = a->plan->options.check, .result = op->check.result, .type = buffers[op->check.buffers[0]].type,
                      .dtype = dtype, .elems = elems, .loops = loops};
  instr->check = check;
  return AX_OK;
}

static ax_status describe_eval(ax_assembly *a, const ax_op *op, uint32_t region, ax_instr *instr) {
  ax_loops *loops = ax_arena_alloc(&a->plan->arena, sizeof *loops);
  (void)op;
  if (loops == NULL) return ax_out_of_memory(sizeof *loops);
  instr->call.loops = loops;
  return list_loops(a, region, loops);
}

static ax_status describe_nothing(ax_assembly *a, const ax_op *op, uint32_t region, ax_instr *instr) {
  (void)a, (void)op, (void)region, (void)instr;
  return AX_OK;
}

/* The instruction of an operation of each kind, and what fills in its fields. Loops and branches become several instructions. */
static const struct instr_of_kind {
  ax_instr_kind kind;
  ax_status (*describe)(ax_assembly *a, const ax_op *op, uint32_t region, ax_instr *instr);
} by_kind[AX_OP_KINDS] = {
    [AX_OP_KERNEL] = {AX_INSTR_KERNEL, describe_nothing},
    [AX_OP_ROWS] = {AX_INSTR_ROWS, describe_rows},
    [AX_OP_GEMM] = {AX_INSTR_GEMM, describe_nothing},
    [AX_OP_EVAL] = {AX_INSTR_EVAL, describe_eval},
    [AX_OP_ROUTINE] = {AX_INSTR_ROUTINE, describe_nothing},
    [AX_OP_START] = {AX_INSTR_PUSH, describe_nothing},
    [AX_OP_DONE] = {AX_INSTR_CLEAR, describe_nothing},
    [AX_OP_SEND] = {AX_INSTR_SEND, describe_nothing},
    [AX_OP_RECEIVE] = {AX_INSTR_RECEIVE, describe_nothing},
    [AX_OP_RAGGED] = {AX_INSTR_RAGGED, describe_ragged},
    [AX_OP_CORES] = {AX_INSTR_CORES, describe_cores},
    [AX_OP_CHECK] = {AX_INSTR_CHECK, describe_check},
};

/* --- By pointer --- */

static ax_status add_point(ax_assembly *a, const ax_op *op, const ax_exchange *exchange, uint32_t from, uint32_t to) {
  uint32_t position;
  ax_point *point = ax_arena_alloc(&a->plan->arena, sizeof *point);
  if (point == NULL) return ax_out_of_memory(sizeof *point);
  *point = (ax_point){.exchange = exchange, .from = from, .to = to, .memory = a->pointed[to].memory};
  return emit(a, &(ax_instr){.kind = AX_INSTR_POINT, .point = point}, op, &position);
}

/* Each device begins with its own part of a source that has pointers itself. */
static ax_status point_to_own(ax_assembly *a) {
  for (uint32_t i = 0; a->pointed != NULL && i < a->plan->buffer_count; i++)
    if (a->pointed[i].has_pointers && a->pointed[i].memory == i) AX_TRY(add_point(a, NULL, NULL, AX_NONE, i));
  return AX_OK;
}

typedef struct renewal {
  ax_assembly *a;
  const ax_op *op;
  ax_status status;
} renewal;

static void renew_one(void *context, uint32_t buffer, bool writes) {
  renewal *r = context;
  const uint32_t allocation = r->a->plan->buffers[buffer].allocation;
  if (writes && r->status == AX_OK && r->a->pointed[allocation].renewed == r->op)
    r->status = add_point(r->a, r->op, NULL, AX_NONE, allocation);
}

/* Before an operation that writes a source again, each device sees its own part of it. */
static ax_status renew(ax_assembly *a, const ax_op *op) {
  renewal r = {a, op, AX_OK};
  if (a->pointed != NULL) ax_op_visit(op, renew_one, &r);
  return r.status;
}

static ax_status plain(ax_assembly *a, const ax_op *op, uint32_t region) {
  uint32_t from, to;
  if (ax_is_by_pointer(a, op, &from, &to)) {
    if (op->kind == AX_OP_DONE) return AX_OK;
    return add_point(a, op, op->kind == AX_OP_START ? op->exchange : NULL, from, to);
  }
  if (ax_is_contributed(a, op)) return AX_OK; /* by its START */
  AX_TRY(renew(a, op));
  if (op->kind == AX_OP_DONE && op->exchange->peers != AX_PEERS_PAIRS) return AX_OK; /* its readers wait instead */
  visit_state v = {.assembly = a, .op = op, .region = region};
  if (by_kind[op->kind].describe == NULL)
    return ax_error(AX_INTERNAL, "an operation '%s' has no instruction", ax_op_rules_of(op)->name);
  const ax_instr_kind kind = ax_op_takes_turns(op) ? AX_INSTR_CALL : by_kind[op->kind].kind;
  AX_TRY(emit(a, &(ax_instr){.kind = kind, .region = region}, op, &v.position));
  AX_TRY(by_kind[op->kind].describe(a, op, region, &a->instrs[v.position]));
  if (op->kind == AX_OP_ROWS) visit_rows(&v);
  else if (op->kind == AX_OP_START) visit_start(&v);
  else ax_op_visit(op, visit, &v);
  return v.status;
}

static ax_status flatten_block(ax_assembly *a, const ax_block *block, uint32_t region);

/* Every device reads the scalar that decides where it goes. */
static ax_status control_read(ax_assembly *a, uint32_t buffer, uint32_t position, uint32_t region, uint32_t done,
                              uint32_t done_region, bool before) {
  const uint32_t allocation = ax_memory_of_allocation(a, a->plan->buffers[buffer].allocation);
  return add_access(a, &(ax_access){.allocation = allocation, .position = position, .region = region,
                                    .axes = ax_all_axes(&a->plan->mesh), .event = AX_NONE, .done_position = done,
                                    .done_region = done_region, .done_before = before});
}

static ax_status flatten_loop(ax_assembly *a, const ax_op *op, uint32_t outer) {
  uint32_t loop, first, test_region = AX_NONE, body, test = AX_NONE, next;
  AX_TRY(emit(a, &(ax_instr){.kind = AX_INSTR_LOOP, .loop = op->loop.id, .trips = op->loop.trips}, op, &loop));
  first = a->instr_count;
  if (op->loop.trips < 0) {
    AX_TRY(open_region(a, outer, op->axes, op->loop.id, &test_region));
    AX_TRY(flatten_block(a, &op->loop.test, test_region));
    AX_TRY(emit(a, &(ax_instr){.kind = AX_INSTR_TEST}, op, &test));
    a->regions[test_region].end = a->instr_count;
  }
  AX_TRY(open_region(a, outer, op->axes, op->loop.id, &body));
  AX_TRY(flatten_block(a, &op->loop.body, body));
  AX_TRY(emit(a, &(ax_instr){.kind = AX_INSTR_NEXT, .loop = op->loop.id, .trips = op->loop.trips, .target = first}, NULL, &next));
  uint32_t exit = a->instr_count;
  a->regions[body].end = a->regions[body].exit = exit;
  a->instrs[loop].target = exit;
  if (test == AX_NONE) return AX_OK;
  a->regions[test_region].exit = exit;
  a->instrs[test].target = exit;
  AX_TRY(control_read(a, op->loop.condition, test, test_region, a->regions[body].begin, body, false));
  return control_read(a, op->loop.condition, test, test_region, exit, outer, true);
}

static ax_status flatten_branch(ax_assembly *a, const ax_op *op, uint32_t outer) {
  uint32_t branch;
  uint32_t *targets = ax_arena_alloc(&a->plan->arena, op->branch.count * sizeof targets[0]);
  uint32_t *jumps = ax_arena_alloc(&a->scratch, op->branch.count * sizeof jumps[0]);
  uint32_t *regions = ax_arena_alloc(&a->scratch, op->branch.count * sizeof regions[0]);
  if (targets == NULL || jumps == NULL || regions == NULL) return ax_out_of_memory(0);
  ax_instr instr = {.kind = AX_INSTR_BRANCH, .branch = {targets, op->branch.count}};
  AX_TRY(emit(a, &instr, op, &branch));
  for (uint32_t k = 0; k < op->branch.count; k++) {
    targets[k] = a->instr_count;
    AX_TRY(open_region(a, outer, op->axes, AX_NONE, &regions[k]));
    AX_TRY(flatten_block(a, &op->branch.blocks[k], regions[k]));
    AX_TRY(emit(a, &(ax_instr){.kind = AX_INSTR_JUMP}, NULL, &jumps[k]));
    a->regions[regions[k]].end = a->instr_count;
  }
  uint32_t exit = a->instr_count;
  for (uint32_t k = 0; k < op->branch.count; k++) {
    a->instrs[jumps[k]].target = exit;
    a->regions[regions[k]].exit = exit;
  }
  return control_read(a, op->branch.index, branch, outer, exit, outer, true);
}

static ax_status flatten_block(ax_assembly *a, const ax_block *block, uint32_t region) {
  for (uint32_t i = 0; i < block->count; i++) {
    const ax_op *op = &block->ops[i];
    if (op->kind == AX_OP_LOOP)
      AX_TRY(flatten_loop(a, op, region));
    else if (op->kind == AX_OP_BRANCH)
      AX_TRY(flatten_branch(a, op, region));
    else
      AX_TRY(plain(a, op, region));
  }
  return AX_OK;
}

ax_status ax_instrs_flatten(ax_assembly *a) {
  uint32_t end;
  AX_TRY(ax_grow(&a->regions, sizeof a->regions[0], 0, 1, &a->region_capacity));
  a->regions[0] = (ax_region){.parent = AX_NONE, .loop = AX_NONE};
  a->region_count = 1;
  AX_TRY(ax_find_pointed(a));
  AX_TRY(ax_find_contributed(a));
  AX_TRY(point_to_own(a));
  AX_TRY(flatten_block(a, &a->plan->block, 0));
  AX_TRY(emit(a, &(ax_instr){.kind = AX_INSTR_END}, NULL, &end));
  a->regions[0].end = a->regions[0].exit = a->instr_count;
  return AX_OK;
}
