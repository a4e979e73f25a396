/* program_id: -> s32[]              where in the kernel's grid this is: the number along `dimension`
   set_max_registers: -> ()          a hint: how many registers each thread of this warpgroup may have from here on
   trace_begin, trace_end: -> ()     a named span, told by what the checker finds in it; they nest

   Parameters: dimension; count, increase; name, "" of trace_end.
   Errors: a dimension that the grid has not; fewer than 1 register.
   program_id has no effect. They stand in kernels' bodies alone. */
#include "kernel/grid.h"

#include "kernel/local.h"
#include "prim/prims.h"

/* --- infer --- */

static ax_status id_infer(const ax_infer_args *args) {
  int64_t dimension = ((const ax_program_id_params *)args->params)->dimension;
  if (dimension < 0 || dimension >= AX_MAX_RANK)
    return ax_error(AX_INVALID_ARGUMENT, "dimension %lld: a grid has %d dimensions at most", (long long)dimension, AX_MAX_RANK);
  args->out[0] = ax_array_type(AX_S32, 0, NULL);
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

/* --- The records --- */

static const ax_step id_step = {.role = AX_STEP_MAKES_VIEW, .check = check_id};
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
    .params = id_params, .param_count = AX_COUNT(id_params), .params_bytes = sizeof(ax_program_id_params),
};

const ax_prim ax_prim_set_max_registers = {
    .name = "set_max_registers", AX_STEP_RULES, .effects = AX_KERNEL_STEP, .in_count = 0, .out_count = 0, .infer = registers_infer,
    .step = &registers_step,
    .params = registers_params, .param_count = AX_COUNT(registers_params), .params_bytes = sizeof(ax_registers_params),
};

const ax_prim ax_prim_trace_begin = {
    .name = "trace_begin", AX_STEP_RULES, .effects = AX_KERNEL_STEP, .in_count = 0, .out_count = 0, .infer = trace_infer,
    .step = &begin_step,
    .params = trace_params, .param_count = AX_COUNT(trace_params), .params_bytes = sizeof(ax_trace_params),
};

const ax_prim ax_prim_trace_end = {
    .name = "trace_end", AX_STEP_RULES, .effects = AX_KERNEL_STEP, .in_count = 0, .out_count = 0, .infer = trace_infer,
    .step = &end_step,
    .params = trace_params, .param_count = AX_COUNT(trace_params), .params_bytes = sizeof(ax_trace_params),
};

/* --- Grids around. In the trace's memory: a trace that fails takes them with it, and those inside it have the one around. --- */

struct ax_grid {
  const struct ax_grid *around;
  uint32_t count;
  const ax_value *ids; /* NULL: program_id's */
  const int64_t *sizes;
};

bool ax_grid_push(uint32_t count, const ax_value *ids, const int64_t *sizes) {
  struct ax_grid *made = ax_trace_alloc(sizeof *made);
  if (made == NULL) return false;
  ax_builder *builder = ax_builder_current();
  made->around = builder->grid;
  made->count = count;
  made->sizes = ax_arena_copy(&builder->arena, sizes, count * sizeof sizes[0]);
  made->ids = ids != NULL ? ax_arena_copy(&builder->arena, ids, count * sizeof ids[0]) : NULL;
  if (made->sizes == NULL || (ids != NULL && made->ids == NULL)) {
    ax_fail(ax_out_of_memory(count * sizeof sizes[0]));
    return false;
  }
  builder->grid = made;
  return true;
}

void ax_grid_pop(void) {
  ax_builder *builder = ax_builder_current();
  if (builder != NULL && builder->grid != NULL) builder->grid = builder->grid->around;
}

/* The grid around that has the dimension; NULL: the trace has failed. */
static const struct ax_grid *grid_of(const char *function, uint32_t dimension) {
  if (ax_failed()) return NULL;
  const struct ax_grid *grid = ax_builder_current()->grid;
  if (grid == NULL) ax_reject_as(function, "there is no grid around: it stands outside of a kernel");
  else if (dimension >= grid->count)
    ax_reject_as(function, "dimension %u of a grid of %u dimension%s", dimension, grid->count, grid->count == 1 ? "" : "s");
  return ax_failed() ? NULL : grid;
}

/* --- The functions --- */

ax_value ax_program_id(uint32_t dimension) {
  const struct ax_grid *grid = grid_of("program_id", dimension);
  if (grid == NULL) return ax_poison;
  if (grid->ids != NULL) return grid->ids[dimension];
  return ax_bind1(&ax_prim_program_id, &(ax_program_id_params){dimension}, NULL, 0);
}

ax_value ax_num_programs(uint32_t dimension) {
  const struct ax_grid *grid = grid_of("num_programs", dimension);
  return grid != NULL ? ax_as("num_programs", ax_integer(grid->sizes[dimension]), AX_S32) : ax_poison;
}

void ax_set_max_registers(int64_t count, bool increase) {
  ax_step_bind(&ax_prim_set_max_registers, &(ax_registers_params){count, increase}, NULL, 0);
}

void ax_kernel_trace_begin(const char *name) {
  if (name == NULL) ax_reject(&ax_prim_trace_begin, "the span has no name");
  else ax_step_bind(&ax_prim_trace_begin, &(ax_trace_params){name}, NULL, 0);
}

void ax_kernel_trace_end(void) { ax_step_bind(&ax_prim_trace_end, &(ax_trace_params){""}, NULL, 0); }
