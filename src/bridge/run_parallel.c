/* interpreter.run_parallel, of StableHLO's own tests: functions on the devices of a grid, replicas by partitions. Operands are those of
   the first device, then the second one's, and so on, as results are. It becomes one shard_map.

     programs = [[@f, @f]]        each device runs @f on its row of operands that are stacked
     programs = [[@f], [@g]]      each device chooses its function by its number; what the others give is zeros there

   The tests' host: an infeed takes what the next function of the list `infeed` gives, an outfeed is dropped, and a channel leads from the
   one device whose function sends over it to the one whose function receives from it. */
#include <string.h>

#include "axle/collectives.h"
#include "axle/ops.h"
#include "bridge/devices.h"
#include "bridge/readers.h"
#include "collectives/messages.h"
#include "mesh/shard_map.h"
#include "prim/bind.h"

struct ax_hlo_parallel {
  const ax_hlo_read_args *args;
  const ax_hlo_slice *functions; /* by device */
  const ax_hlo_attribute *queue; /* functions that give what infeeds take; NULL: there are none */
  uint32_t fed;                  /* of the queue */
  bool same;                     /* all devices run one function */
  int64_t replicas, partitions, count;
  uint32_t in_count, out_count; /* of one device, where all run the same; else of all */
};
typedef struct ax_hlo_parallel parallel;

/* The functions in the rows of programs = [[@f, @g], [@f, @g]]. */
static ax_status find_functions(const ax_hlo_attribute *programs, parallel *p) {
  if (programs == NULL || programs->kind != AX_HLO_ARRAY || programs->count == 0)
    return ax_error(AX_INVALID_ARGUMENT, "programs must be lists of functions");
  p->replicas = programs->count, p->partitions = programs->items[0].count, p->same = true;
  p->count = p->replicas * p->partitions;
  ax_hlo_slice *functions = ax_trace_alloc((size_t)(p->count + 1) * sizeof functions[0]);
  if (functions == NULL) return AX_OK;
  for (uint32_t r = 0; r < programs->count; r++) {
    const ax_hlo_attribute *row = &programs->items[r];
    if (row->kind != AX_HLO_ARRAY || row->count != p->partitions || row->count == 0)
      return ax_error(AX_INVALID_ARGUMENT, "programs must be lists of the same length");
    for (uint32_t k = 0; k < row->count; k++) {
      functions[r * row->count + k] = row->items[k].text;
      p->same = p->same && ax_hlo_slice_same(row->items[k].text, functions[0]);
    }
  }
  p->functions = functions;
  return AX_OK;
}

/* --- A function of one device --- */

/* NULL: there is no such function of one block. */
static const ax_hlo_block *block_of(const parallel *p, ax_hlo_slice name) {
  const ax_hlo_operation *op = ax_hlo_function(p->args, name);
  return op != NULL && op->regions[0].block_count == 1 ? &op->regions[0].blocks[0] : NULL;
}

/* How many values the function takes and gives. */
static ax_status count_values(const parallel *p, int64_t device, uint32_t *ins, uint32_t *outs) {
  const ax_hlo_slice name = p->functions[device];
  const ax_hlo_block *block = block_of(p, name);
  if (block == NULL || block->operation_count == 0)
    return ax_error(AX_INVALID_ARGUMENT, "there is no function @%.*s of one block", (int)name.length, name.start);
  *ins = block->argument_count;
  *outs = block->operations[block->operation_count - 1]->operand_count;
  return AX_OK;
}

static void call(const parallel *p, ax_hlo_slice function, uint32_t in_count, const ax_value *in, uint32_t out_count, ax_value *out) {
  ax_hlo_body body;
  ax_fn fn;
  ax_status status = ax_hlo_function_body(p->args, function, out_count, &body, &fn);
  if (status == AX_OK && fn.in_count != in_count)
    status = ax_error(AX_INVALID_ARGUMENT, "@%.*s takes %u values, and gets %u", (int)function.length, function.start, fn.in_count, in_count);
  if (status != AX_OK) {
    if (!ax_failed()) ax_fail(status);
    return;
  }
  fn.function(in, out, fn.context);
}

static AX_BODY(run_same) {
  const parallel *p = context;
  call(p, p->functions[0], p->in_count, in, p->out_count, out);
}

/* --- Functions that differ --- */

typedef struct branch {
  const parallel *p;
  int64_t device;
} branch;

/* The results of all devices, of which one device's own are those that its function gives. */
static AX_BODY(run_branch) {
  const branch *b = context;
  const ax_hlo_read_args *args = b->p->args;
  uint32_t first_in = 0, first_out = 0, ins = 0, outs = 0;
  (void)in;
  for (int64_t d = 0; d < b->device; d++) {
    if (count_values(b->p, d, &ins, &outs) != AX_OK) return; /* they were counted before */
    first_in += ins, first_out += outs;
  }
  if (count_values(b->p, b->device, &ins, &outs) != AX_OK) return;
  for (uint32_t k = 0; k < b->p->out_count; k++) {
    const ax_type *type = &args->out_types[k];
    if (k < first_out || k >= first_out + outs) out[k] = (ax_full)(type->dtype, type->rank, type->dims, 0);
  }
  call(b->p, b->p->functions[b->device], ins, args->in + first_in, outs, out + first_out);
}

static const char *axes_of(const parallel *p) {
  if (p->replicas > 1 && p->partitions > 1) return "replica,partition";
  return p->replicas > 1 ? "replica" : "partition";
}

static AX_BODY(run_chosen) {
  const parallel *p = context;
  ax_fn *branches = ax_trace_alloc((size_t)p->count * sizeof branches[0]);
  branch *each = ax_trace_alloc((size_t)p->count * sizeof each[0]);
  (void)in;
  if (branches == NULL || each == NULL) return;
  for (int64_t d = 0; d < p->count; d++) {
    each[d] = (branch){p, d};
    branches[d] = (ax_fn){run_branch, 0, p->out_count, &each[d]};
  }
  (ax_switch)(ax_axis_index(axes_of(p)), (uint32_t)p->count, branches, 0, NULL, p->out_count, out);
}

/* --- The host of the tests --- */

/* What is fed in: infeed = [@f, @g], functions that give one array each, in the order in which infeeds take them. */
static ax_status check_queue(const parallel *p) {
  if (p->queue == NULL) return AX_OK;
  if (p->queue->kind != AX_HLO_ARRAY || p->queue->count == 0)
    return ax_error(AX_INVALID_ARGUMENT, "infeed must be a list of functions that is not empty, or be left out");
  for (uint32_t i = 0; i < p->queue->count; i++) {
    const ax_hlo_attribute *name = &p->queue->items[i];
    const ax_hlo_block *block = name->kind == AX_HLO_SYMBOL ? block_of(p, name->text) : NULL;
    const int length = (int)name->text.length;
    if (block == NULL) return ax_error(AX_INVALID_ARGUMENT, "infeed: there is no function @%.*s", length, name->text.start);
    const uint32_t results = block->operation_count > 0 ? block->operations[block->operation_count - 1]->operand_count : 0;
    if (results != 1) /* a module without tokens and tuples (hlo/flatten.h) has nothing but arrays */
      return ax_error(AX_INVALID_ARGUMENT, "infeed: @%.*s must give one array, and gives %u", length, name->text.start, results);
  }
  return AX_OK;
}

/* Infeeds in loops, branches and other functions take arrays each time that they run, which is not known here. */
static ax_status take_fed(const ax_hlo_read_args *args, parallel *p) {
  const ax_hlo_block *block = block_of(p, p->functions[0]); /* it was counted before, so there is one */
  bool inside = false;
  if (p->queue == NULL) return ax_error(AX_INVALID_ARGUMENT, "nothing is fed in: the attribute infeed of " AX_HLO_RUN_PARALLEL " says what");
  if (p->count > 1) return ax_error(AX_ABSENT, "several devices that take from one infeed are not read");
  for (uint32_t i = 0; i < block->operation_count; i++)
    inside = inside || (ax_hlo_slice_is(block->operations[i]->name, "stablehlo.infeed") && block->operations[i]->result == args->op->result);
  if (!inside) return ax_error(AX_ABSENT, "what is fed in is taken by the function of each device alone, outside of loops and branches");
  if (args->op->result_count != 1) return ax_error(AX_ABSENT, "it takes %u arrays at once, where functions are fed in", args->op->result_count);
  if (p->fed == p->queue->count) return ax_error(AX_INVALID_ARGUMENT, "%u arrays are fed in, and this would take one more", p->queue->count);
  call(p, p->queue->items[p->fed++].text, 0, NULL, 1, args->out);
  return AX_OK;
}

/* Whether the block sends over the channel, or receives from it. */
static bool uses_channel(const ax_hlo_block *block, const char *op_name, int64_t channel) {
  for (uint32_t i = 0; i < block->operation_count; i++) {
    const ax_hlo_operation *op = block->operations[i];
    const ax_hlo_attribute *said = ax_hlo_slice_is(op->name, op_name) ? ax_hlo_find(op, "channel_handle") : NULL;
    const ax_hlo_attribute *handle = said != NULL ? ax_hlo_item(said, "handle") : NULL;
    if (handle != NULL && handle->kind == AX_HLO_INTEGER && handle->integer == channel) return true;
    for (uint32_t r = 0; r < op->region_count; r++)
      for (uint32_t b = 0; b < op->regions[r].block_count; b++)
        if (uses_channel(&op->regions[r].blocks[b], op_name, channel)) return true;
  }
  return false;
}

/* The one device whose function has such an operation. */
static ax_status find_side(const parallel *p, const char *op_name, int64_t channel, int64_t *device) {
  *device = -1;
  for (int64_t d = 0; d < p->count; d++) {
    const ax_hlo_operation *function = ax_hlo_function(p->args, p->functions[d]);
    if (!uses_channel(&function->regions[0].blocks[0], op_name, channel)) continue;
    if (*device >= 0) return ax_error(AX_ABSENT, "several devices have a %s on channel %lld", op_name, (long long)channel);
    *device = d;
  }
  return *device >= 0 ? AX_OK : ax_error(AX_INVALID_ARGUMENT, "no device has a %s on channel %lld", op_name, (long long)channel);
}

static ax_status send_over(const ax_hlo_read_args *args, const parallel *p, bool sends) {
  const ax_hlo_attribute *channel = ax_hlo_find(args->op, "channel_handle");
  const ax_hlo_attribute *handle = channel != NULL ? ax_hlo_item(channel, "handle") : NULL;
  int64_t pair[1][2];
  if (handle == NULL || handle->kind != AX_HLO_INTEGER) return ax_error(AX_INVALID_ARGUMENT, "the attribute channel_handle must have a handle");
  AX_TRY(find_side(p, "stablehlo.send", handle->integer, &pair[0][0]));
  AX_TRY(find_side(p, "stablehlo.recv", handle->integer, &pair[0][1]));
  const ax_pairs pairs = {1, pair};
  return sends ? ax_send_along(args, axes_of(p), &pairs) : ax_recv_along(args, axes_of(p), &pairs);
}

ax_status ax_hlo_parallel_host(const ax_hlo_read_args *args, bool *done) {
  parallel *p = args->devices->parallel;
  const bool sends = ax_hlo_slice_is(args->op->name, "stablehlo.send");
  *done = p != NULL;
  if (p == NULL || ax_hlo_slice_is(args->op->name, "stablehlo.outfeed")) return AX_OK;
  if (sends || ax_hlo_slice_is(args->op->name, "stablehlo.recv")) {
    *done = !p->same;
    return p->same ? AX_OK : send_over(args, p, sends);
  }
  return take_fed(args, p);
}

/* --- The operation --- */

/* Value number k of each device, along a new first dimension. */
static ax_value stack(const ax_value *values, uint32_t step, int64_t devices) {
  ax_value *rows = ax_trace_alloc((size_t)devices * sizeof rows[0]);
  for (int64_t d = 0; d < devices && rows != NULL; d++) rows[d] = ax_expand_dims(values[d * step], 0);
  return rows != NULL ? (ax_concatenate)((uint32_t)devices, rows, 0) : ax_poison;
}

/* Device d's part of a result that has those of all devices. */
static ax_value part(const parallel *p, ax_value of_all, int64_t d) {
  return p->count > 1 ? ax_squeeze(ax_slice_in_dim(of_all, d, d + 1, 1, 0), AX_DIMS(0)) : of_all;
}

static void run_all(parallel *p, ax_hlo_devices *devices, ax_value *in, ax_value *out) {
  ax_hlo_each each = ax_hlo_each_of(devices, (ax_fn){p->same ? run_same : run_chosen, p->same ? p->in_count : 0, p->out_count, p});
  const ax_value *operands = p->args->in;
  for (uint32_t i = 0; i < p->in_count && p->same; i++) in[i] = p->count > 1 ? stack(operands + i, p->in_count, p->count) : operands[i];
  const ax_fn all = ax_hlo_each_function(&each);
  all.function(in, out, all.context);
  for (int64_t d = 0, first = 0; d < p->count && !ax_failed(); d++) {
    uint32_t ins, outs;
    if (count_values(p, d, &ins, &outs) != AX_OK) return; /* they were counted before */
    for (uint32_t k = 0; k < outs; k++) p->args->out[first + k] = part(p, out[p->same ? k : first + k], d);
    first += outs;
  }
}

/* All functions together take the operands and give the results. */
static ax_status count_all(parallel *p) {
  uint32_t ins = 0, outs = 0, all_ins = 0, all_outs = 0;
  for (int64_t d = 0; d < p->count; d++) {
    AX_TRY(count_values(p, d, &ins, &outs));
    all_ins += ins, all_outs += outs;
  }
  if (all_ins != p->args->op->operand_count || all_outs != p->args->op->result_count)
    return ax_error(AX_INVALID_ARGUMENT, "the functions take %u values and give %u, and there are %u operands and %u results", all_ins, all_outs,
                    p->args->op->operand_count, p->args->op->result_count);
  p->in_count = p->same ? ins : all_ins, p->out_count = p->same ? outs : all_outs;
  return AX_OK;
}

static ax_status read(const ax_hlo_read_args *args) {
  parallel p = {.args = args, .queue = ax_hlo_find(args->op, "infeed")};
  ax_hlo_devices *devices = args->devices;
  AX_TRY(find_functions(ax_hlo_find(args->op, "programs"), &p));
  if (p.functions == NULL) return AX_OK; /* the trace has failed */
  AX_TRY(check_queue(&p));
  AX_TRY(count_all(&p));
  ax_value *values = ax_trace_alloc(((size_t)p.in_count + p.out_count + 1) * sizeof values[0]);
  if (values == NULL) return AX_OK;
  const ax_hlo_devices around = *devices;
  devices->replicas = p.replicas, devices->partitions = p.partitions, devices->parallel = &p;
  run_all(&p, devices, values, values + p.in_count);
  devices->replicas = around.replicas, devices->partitions = around.partitions, devices->parallel = around.parallel;
  return AX_OK;
}

const ax_hlo_reader ax_hlo_parallel_readers[] = {{AX_HLO_RUN_PARALLEL, read}, {0}};
