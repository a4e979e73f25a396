/* grid_point: i: s32[].., T.. -> ()     body on the operands T, at the point i of a grid: what program_id says in it
   Parameters: grid, its sizes; body, (T..) -> ().
   Errors: as many numbers as the grid has dimensions, then what the body takes; a body that gives results.
   What kernels over grids become (expand.c) have it. The effects are the body's. It stands in kernels' bodies alone. */
#include "kernel/discharge.h"
#include "kernel/local.h"
#include "kernel/scratch.h"
#include "prim/prims.h"
#include "prim/region.h"

/* --- infer, differs --- */

static ax_status infer(const ax_infer_args *args) {
  const ax_grid_point_params *params = args->params;
  const ax_program *body = params->body;
  uint32_t rank = params->grid.count;
  AX_TRY(ax_region_check_axes(body, args->axes, "the body"));
  if (body->out_count != 0 || rank > AX_MAX_RANK || args->in_count != rank + body->in_count)
    return ax_error(AX_INVALID_ARGUMENT,
                    "the body takes %u values and gives %u, not %u operands behind the %u numbers of the grid, and none",
                    body->in_count, body->out_count, args->in_count - (rank < args->in_count ? rank : args->in_count), rank);
  for (uint32_t d = 0; d < rank; d++) AX_TRY(ax_step_scalar(args, d, AX_S32, "the number in the grid"));
  for (uint32_t i = 0; i < body->in_count; i++)
    AX_TRY(ax_region_check_type(&args->in[rank + i], &body->types[i], args->axes, "operand", rank + i, "is", "the body takes"));
  return AX_OK;
}

/* It gives nothing. */
static void differs(const ax_differs_args *args) {
  const ax_grid_point_params *params = args->eqn->params;
  (void)ax_region_differs(args, params->body, args->in + params->grid.count, args->out);
}

/* The operands before are the numbers in the grid. */
static ax_region_link links(const ax_region_link_args *args) {
  const ax_grid_point_params *params = args->eqn->params;
  return args->is_output ? ax_region_link_own() : ax_region_link_to(AX_LINK_SAME, params->grid.count + args->number);
}

/* --- check --- */

static ax_status check(ax_step_check_args *args) {
  args->grid = ((const ax_grid_point_params *)args->eqn->params)->grid.count;
  return AX_OK;
}

/* --- In a plain program --- */

static void discharge(const ax_discharge_args *args) {
  const ax_grid_point_params *params = args->eqn->params;
  const ax_value *around = args->d->ids;
  ax_value ids[AX_MAX_RANK];
  for (uint32_t i = 0; i < params->grid.count; i++) ids[i] = args->in[i].value;
  args->d->ids = ids;
  ax_discharge_body(args, params->body, args->in + params->grid.count);
  args->d->ids = around;
}

/* --- The record --- */

static const ax_step step = {.role = AX_STEP_HOLDS_BODY, .grid_point = true, .check = check, .discharge = discharge};

static uint32_t count_outs(const void *params) { return ((const ax_grid_point_params *)params)->body->out_count; }

static const ax_param params[] = {{"grid", AX_PARAM_DIMS, offsetof(ax_grid_point_params, grid)},
                                  {"body", AX_PARAM_PROGRAM, offsetof(ax_grid_point_params, body)}};

const ax_prim ax_prim_grid_point = {
    .name = "grid_point",
    AX_STEP_REGION_RULES,
    AX_PARAMS(params, ax_grid_point_params),
    .infer = infer,
    .differs = differs,
    .links = links,
    .step = &step,
};
