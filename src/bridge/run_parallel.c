/* interpreter.run_parallel, of StableHLO's own tests: a function on each device of a grid, replicas by partitions. Operands are
   those of the first device, then the second one's, and so on, as results are. It becomes one shard_map. */
#include <string.h>

#include "axle/ops.h"
#include "bridge/devices.h"
#include "bridge/readers.h"
#include "mesh/shard_map.h"
#include "prim/bind.h"

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
  const int64_t replicas = devices->replicas, partitions = devices->partitions;
  devices->replicas = p.replicas, devices->partitions = p.partitions;
  run_all(&p, devices, values, values + p.in_count);
  devices->replicas = replicas, devices->partitions = partitions;
  return AX_OK;
}

const ax_hlo_reader ax_hlo_parallel_readers[] = {{AX_HLO_RUN_PARALLEL, read}, {0}};
