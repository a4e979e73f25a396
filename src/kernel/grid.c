/* The stack of grids around the function that is being traced. A grid is allocated in the memory of its trace, so it needs no
   release when the trace fails. A trace that begins inside another one sees the grids of the outer trace. */
#include "kernel/grid.h"

#include "kernel/local.h"
#include "prim/prims.h"

static const ax_context_key grids = {.name = "grid"};

struct ax_grid {
  struct ax_grid *around;
  uint32_t count;
  const ax_value *ids; /* the number along each dimension; NULL: the primitive program_id gives it */
  const int64_t *sizes;
};

bool ax_grid_push(uint32_t count, const ax_value *ids, const int64_t *sizes) {
  struct ax_grid *made = ax_trace_alloc(sizeof *made);
  if (made == NULL) return false;
  ax_builder *builder = ax_builder_current();
  made->around = ax_context_get(&grids);
  made->count = count;
  made->sizes = ax_arena_copy(&builder->arena, sizes, count * sizeof sizes[0]);
  made->ids = ids != NULL ? ax_arena_copy(&builder->arena, ids, count * sizeof ids[0]) : NULL;
  if (made->sizes == NULL || (ids != NULL && made->ids == NULL)) {
    ax_fail(ax_out_of_memory(count * sizeof sizes[0]));
    return false;
  }
  return ax_context_set(&grids, made);
}

void ax_grid_pop(void) {
  const struct ax_grid *grid = ax_builder_current() != NULL ? ax_context_get(&grids) : NULL;
  if (grid != NULL) ax_context_set(&grids, grid->around);
}

/* Returns the innermost grid, after checking that it has the dimension. NULL: the trace has failed, now or before. */
static const struct ax_grid *grid_of(const char *function, uint32_t dimension) {
  if (ax_failed()) return NULL;
  const struct ax_grid *grid = ax_context_get(&grids);
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
