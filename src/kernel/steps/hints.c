/* program_id: -> s32[]              where in the kernel's grid this is: the number along `dimension`
   set_max_registers: -> ()          a hint: how many registers each thread of this warpgroup may have from here on
   trace_begin, trace_end: -> ()     a named span, told by what the checker finds in it; they nest

   Parameters: dimension; count, increase; name, "" of trace_end.
   Errors: a dimension that the grid has not; fewer than 1 register.
   program_id has no effect. They stand in kernels' bodies alone. */
#include "kernel/discharge.h"
#include "kernel/local.h"
#include "prim/prims.h"

/* --- infer --- */

static ax_status id_infer(const ax_infer_args *args) {
  int64_t dimension = ((const ax_program_id_params *)args->params)->dimension;
  if (dimension < 0 || dimension >= AX_MAX_RANK)
    return ax_error(AX_INVALID_ARGUMENT, "dimension %lld: a grid has %d dimensions at most", (long long)dimension, AX_MAX_RANK);
  args->out[0] = ax_array_type(AX_S32, AX_DIMS());
  return AX_OK;
}

static ax_status registers_infer(const ax_infer_args *args) {
  int64_t count = ((const ax_registers_params *)args->params)->count;
  if (count < 1) return ax_error(AX_INVALID_ARGUMENT, "%lld registers", (long long)count);
  return AX_OK;
}

static ax_status trace_infer(const ax_infer_args *args) {
  (void)args;
  return AX_OK;
}

/* --- check --- */

static ax_status check_id(ax_step_check_args *args) {
  int64_t dimension = ((const ax_program_id_params *)args->eqn->params)->dimension;
  if (dimension < args->grid) return AX_OK;
  return ax_error(AX_INVALID_ARGUMENT, "program_id of dimension %lld stands in it, but the grid has %u dimensions",
                  (long long)dimension, args->grid);
}

/* --- In a plain program --- */

static void discharge_id(const ax_discharge_args *a) {
  const int64_t dimension = ((const ax_program_id_params *)a->eqn->params)->dimension;
  if (a->d->ids == NULL) ax_fail(ax_error(AX_ABSENT, "program_id in a function with rules of its own; take it outside"));
  else ax_discharge_give(a, 0, a->d->ids[dimension]);
}

/* --- The records --- */

static const ax_step id_step = {.role = AX_STEP_MAKES_VIEW, .grid_number = true, .check = check_id, .discharge = discharge_id};
static const ax_step registers_step = {.role = AX_STEP_MAKES_NOTE};
static const ax_step begin_step = {.role = AX_STEP_MAKES_NOTE, .span = AX_SPAN_BEGINS};
static const ax_step end_step = {.role = AX_STEP_MAKES_NOTE, .span = AX_SPAN_ENDS};

static const ax_param id_params[] = {{"dimension", AX_PARAM_I64, offsetof(ax_program_id_params, dimension)}};
static const ax_param registers_params[] = {{"count", AX_PARAM_I64, offsetof(ax_registers_params, count)},
                                            {"increase", AX_PARAM_BOOL, offsetof(ax_registers_params, increase)}};
static const ax_param trace_params[] = {{"name", AX_PARAM_TEXT, offsetof(ax_trace_params, name)}};

const ax_prim ax_prim_program_id = {
    .name = "program_id", AX_STEP_RULES, .in_count = 0, .out_count = 1, .infer = id_infer,
    .step = &id_step,
    AX_PARAMS(id_params, ax_program_id_params),
};

const ax_prim ax_prim_set_max_registers = {
    .name = "set_max_registers", AX_STEP_RULES, .effects = AX_KERNEL_STEP, .in_count = 0, .out_count = 0, .infer = registers_infer,
    .step = &registers_step,
    AX_PARAMS(registers_params, ax_registers_params),
};

const ax_prim ax_prim_trace_begin = {
    .name = "trace_begin", AX_STEP_RULES, .effects = AX_KERNEL_STEP, .in_count = 0, .out_count = 0, .infer = trace_infer,
    .step = &begin_step,
    AX_PARAMS(trace_params, ax_trace_params),
};

const ax_prim ax_prim_trace_end = {
    .name = "trace_end", AX_STEP_RULES, .effects = AX_KERNEL_STEP, .in_count = 0, .out_count = 0, .infer = trace_infer,
    .step = &end_step,
    AX_PARAMS(trace_params, ax_trace_params),
};

/* --- The functions --- */

void ax_set_max_registers(int64_t count, bool increase) {
  ax_step_bind(&ax_prim_set_max_registers, &(ax_registers_params){count, increase}, NULL, 0);
}

void ax_kernel_trace_begin(const char *name) {
  if (name == NULL) ax_reject(&ax_prim_trace_begin, "the span has no name");
  else ax_step_bind(&ax_prim_trace_begin, &(ax_trace_params){name}, NULL, 0);
}

void ax_kernel_trace_end(void) { ax_step_bind(&ax_prim_trace_end, &(ax_trace_params){""}, NULL, 0); }
