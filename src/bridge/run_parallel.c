/* interpreter.run_parallel, of StableHLO's own tests: a function on each device of a grid, replicas by partitions. Operands are
   those of the first device, then the second one's, and so on, as results are. It becomes one shard_map. */
#include <string.h>

#include "axle/ops.h"
#include "bridge/devices.h"
#include "bridge/readers.h"
#include "mesh/shard_map.h"
#include "prim/bind.h"

typedef struct ax_hlo_infeed ax_hlo_infeed;

typedef struct parallel {
  const ax_hlo_read_args *args;
  ax_hlo_slice function;
  int64_t replicas, partitions;
  uint32_t in_count, out_count; /* of one device */
} parallel;

/* The one function in all rows of programs = [[@f, @f], [@f, @f]]. */
static ax_status find_function(const ax_hlo_attribute *programs, parallel *p) {
  if (programs == NULL || programs->kind != AX_HLO_ARRAY || programs->count == 0)
    return ax_error(AX_INVALID_ARGUMENT, "programs must be lists of functions");
  p->replicas = programs->count, p->partitions = programs->items[0].count;
  for (uint32_t r = 0; r < programs->count; r++) {
    const ax_hlo_attribute *row = &programs->items[r];
    if (row->kind != AX_HLO_ARRAY || row->count != p->partitions || row->count == 0)
      return ax_error(AX_INVALID_ARGUMENT, "programs must be lists of the same length");
    for (uint32_t k = 0; k < row->count; k++) {
      if (r + k == 0) p->function = row->items[0].text;
      if (ax_hlo_slice_same(row->items[k].text, p->function)) continue;
      return ax_error(AX_ABSENT, "devices that run different functions are not read");
    }
  }
  return AX_OK;
}

static AX_BODY(run_one) {
  const parallel *p = context;
  ax_hlo_operation call = *p->args->op;
  ax_hlo_read_args args = *p->args;
  call.operand_count = p->in_count, call.result_count = p->out_count;
  args.op = &call, args.in = in, args.out = out;
  const ax_status status = ax_hlo_call(&args, p->function);
  if (status != AX_OK && !ax_failed()) ax_fail(status);
}

/* --- What is fed in: infeed = [@f, @g], functions that give one array each, in the order in which infeeds take them --- */

struct ax_hlo_infeed {
  const ax_hlo_attribute *functions;
  const ax_hlo_block *block; /* of the function that takes them */
  uint32_t next, wanted;
};

static const ax_hlo_block *block_of(const ax_hlo_operation *function) {
  return function != NULL && function->region_count == 1 && function->regions[0].block_count == 1 ? &function->regions[0].blocks[0] : NULL;
}

/* A function that gives one array. */
static ax_status check_fed(const ax_hlo_read_args *args, const ax_hlo_attribute *name) {
  const ax_hlo_block *block = name->kind == AX_HLO_SYMBOL ? block_of(ax_hlo_function(args, name->text)) : NULL;
  const int length = (int)name->text.length;
  if (block == NULL) return ax_error(AX_INVALID_ARGUMENT, "infeed: there is no function @%.*s", length, name->text.start);
  const uint32_t results = block->operation_count > 0 ? block->operations[block->operation_count - 1]->operand_count : 0;
  if (results == 1) return AX_OK; /* a module without tokens and tuples (hlo/flatten.h) has nothing but arrays */
  return ax_error(AX_INVALID_ARGUMENT, "infeed: @%.*s must give one array, and gives %u", length, name->text.start, results);
}

/* *out: what the function takes; its functions are NULL where the operation has no attribute infeed. */
static ax_status find_infeed(const parallel *p, ax_hlo_infeed *out) {
  const ax_hlo_attribute *functions = ax_hlo_find(p->args->op, "infeed");
  *out = (ax_hlo_infeed){.functions = functions};
  if (functions == NULL) return AX_OK;
  if (functions->kind != AX_HLO_ARRAY || functions->count == 0)
    return ax_error(AX_INVALID_ARGUMENT, "infeed must be a list of functions that is not empty, or be left out");
  for (uint32_t i = 0; i < functions->count; i++) AX_TRY(check_fed(p->args, &functions->items[i]));
  if (p->replicas * p->partitions > 1) return ax_error(AX_ABSENT, "infeed on several devices is not read");
  out->block = block_of(ax_hlo_function(p->args, p->function));
  for (uint32_t i = 0; out->block != NULL && i < out->block->operation_count; i++)
    out->wanted += ax_hlo_slice_is(out->block->operations[i]->name, "stablehlo.infeed");
  return AX_OK;
}

/* Infeeds in loops, branches and other functions take arrays each time that they run, which is not known here. */
ax_status ax_hlo_read_infeed(const ax_hlo_read_args *args) {
  ax_hlo_infeed *infeed = args->devices->infeed;
  const ax_hlo_operation *op = args->op;
  bool inside = false;
  if (infeed->functions == NULL) return ax_error(AX_INVALID_ARGUMENT, "nothing is fed in: the attribute infeed of " AX_HLO_RUN_PARALLEL " says what");
  for (uint32_t i = 0; infeed->block != NULL && i < infeed->block->operation_count; i++) {
    const ax_hlo_operation *other = infeed->block->operations[i];
    inside = inside || (ax_hlo_slice_is(other->name, "stablehlo.infeed") && other->result == op->result);
  }
  if (!inside) return ax_error(AX_ABSENT, "what is fed in is taken by the function of each device alone, outside of loops and branches");
  if (op->result_count != 1) return ax_error(AX_ABSENT, "it takes %u arrays at once, where functions are fed in", op->result_count);
  if (infeed->next == infeed->functions->count)
    return ax_error(AX_INVALID_ARGUMENT, "%u arrays are fed in, and this would take one more", infeed->functions->count);
  return ax_hlo_call(args, infeed->functions->items[infeed->next++].text);
}

/* --- Arrays of all devices --- */

/* Value number k of each device, along a new first dimension. */
static ax_value stack(const ax_value *values, uint32_t step, int64_t devices) {
  ax_value *rows = ax_trace_alloc((size_t)devices * sizeof rows[0]);
  for (int64_t d = 0; d < devices && rows != NULL; d++) rows[d] = ax_expand_dims(values[d * step], 0);
  return rows != NULL ? (ax_concatenate)((uint32_t)devices, rows, 0) : ax_poison;
}

static void run_all(const parallel *p, ax_hlo_devices *devices, ax_value *in, ax_value *out) {
  const int64_t count = p->replicas * p->partitions;
  const ax_fn one = {run_one, p->in_count, p->out_count, (void *)p};
  ax_hlo_each each = ax_hlo_each_of(devices, one);
  const ax_value *operands = p->args->in;
  for (uint32_t i = 0; i < p->in_count; i++) in[i] = count > 1 ? stack(operands + i, p->in_count, count) : operands[i];
  const ax_fn all = ax_hlo_each_function(&each);
  all.function(in, out, all.context);
  for (uint32_t k = 0; k < p->out_count; k++)
    for (int64_t d = 0; d < count && !ax_failed(); d++) {
      ax_value *to = &p->args->out[d * p->out_count + k];
      *to = count > 1 ? ax_squeeze(ax_slice_in_dim(out[k], d, d + 1, 1, 0), AX_DIMS(0)) : out[k];
    }
}

static ax_status read(const ax_hlo_read_args *args) {
  parallel p = {.args = args};
  ax_hlo_devices *devices = args->devices;
  AX_TRY(find_function(ax_hlo_find(args->op, "programs"), &p));
  const int64_t count = p.replicas * p.partitions;
  if (args->op->operand_count % count != 0 || args->op->result_count % count != 0)
    return ax_error(AX_INVALID_ARGUMENT, "each device must have as many operands, and results, as the others");
  p.in_count = (uint32_t)(args->op->operand_count / count), p.out_count = (uint32_t)(args->op->result_count / count);
  ax_value *values = ax_trace_alloc((p.in_count + p.out_count + 1) * sizeof values[0]);
  if (values == NULL) return AX_OK;
  const ax_hlo_devices around = *devices;
  ax_hlo_infeed infeed;
  AX_TRY(find_infeed(&p, &infeed));
  devices->replicas = p.replicas, devices->partitions = p.partitions;
  devices->infeed = &infeed;
  run_all(&p, devices, values, values + p.in_count);
  devices->replicas = around.replicas, devices->partitions = around.partitions, devices->infeed = around.infeed;
  if (infeed.functions == NULL || infeed.next == infeed.wanted || ax_failed()) return AX_OK;
  return ax_error(AX_ABSENT, "@%.*s, which takes what is fed in, is read for one operation alone", (int)p.function.length, p.function.start);
}

const ax_hlo_reader ax_hlo_parallel_readers[] = {{AX_HLO_RUN_PARALLEL, read}, {0}};
