/* Batching: a value either has a batch dimension, at any place, or it has none and is the same for all members. Equations on values
   without one are copied; the others follow the primitives' batch rules.

     in_axes  ->  the inputs' batch dimensions  ->  carried through by the rules  ->  moved to out_axes

   When the batch has an axis name, equations that may speak of that axis always go by their rule: a psum over it of a value
   without batch dimension is that value times the size. The axis leaves the environment, and the axis sets of types close the
   gap: for the axes after it the bit is one less.

   spmd_axis_name: a shard_map splits its batch dimensions over these axes, as if its specs had named them. In its body each device
   has a part of the batch, and values with a batch dimension vary over the axes (ax_batching_here, prim/bind.h). */
#include <string.h>

#include "ir/prim.h"
#include "prim/bind.h"
#include "xform/xform.h"

typedef struct batch_walk {
  ax_program_walk walk;
  const char *axis; /* NULL: none, or not in the environment */
  const ax_axes *split; /* the axes in the environment that the batch is split over; NULL: it is whole */
  int64_t size;
  int *dim;    /* by value: of the batch dimension, or -1 */
  int *in_dim; /* room for one equation's */
} batch_walk;

/* --- The axis --- */

static ax_mesh without_axis(const ax_mesh *axes, uint32_t index) {
  ax_mesh rest = *axes;
  rest.count--;
  memmove(rest.axis + index, rest.axis + index + 1, (rest.count - index) * sizeof rest.axis[0]);
  return rest;
}

static ax_axis_set close_gap(ax_axis_set set, uint32_t index) {
  ax_axis_set below = ((ax_axis_set)1 << index) - 1;
  return (set & below) | (set >> 1 & ~below);
}

static ax_type outside(const ax_type *type, int axis) {
  ax_type result = *type;
  if (axis < 0) return result;
  result.spread.varying = close_gap(type->spread.varying, (uint32_t)axis);
  result.spread.reduced = close_gap(type->spread.reduced, (uint32_t)axis);
  result.spread.unreduced = close_gap(type->spread.unreduced, (uint32_t)axis);
  if (result.spread.unreduced == 0) result.spread.kind = AX_UNREDUCED_SUM;
  return result;
}

/* Says whether the equation itself names the axis. */
static bool names(const ax_eqn *eqn, const char *axis) {
  for (uint32_t i = 0; i < eqn->prim->param_count; i++) {
    if (eqn->prim->params[i].kind != AX_PARAM_AXES) continue;
    const ax_axes *named = ax_param_at(eqn, &eqn->prim->params[i]);
    for (uint32_t k = 0; k < named->count; k++)
      if (strcmp(named->name[k], axis) == 0) return true;
  }
  return false;
}

/* Whether an equation may speak of the axis: in its names, or in a program it holds. */
static bool mentions(const ax_eqn *eqn, const char *axis) {
  return eqn->prim->kind == AX_REGION || names(eqn, axis);
}

/* Refuses equations that name the batch's axis, or an axis that splits it, while each device has only a part of the batch: such an
   equation would have to work on the whole batch. */
static ax_status check_split(const batch_walk *w, const ax_eqn *eqn) {
  bool named = w->axis != NULL && names(eqn, w->axis);
  for (uint32_t k = 0; k < w->split->count; k++) named = named || names(eqn, w->split->name[k]);
  if (!named) return AX_OK;
  return ax_error(AX_ABSENT,
                  "vmap: no %s over an axis that is mapped, or in spmd_axis_name, in a shard_map that splits what is mapped",
                  eqn->prim->name);
}

/* The axes that the batch is split over here; NULL: none, or not in this environment. */
static const ax_axes *split_here(const ax_mesh *axes) {
  const ax_axes *split = ax_batching_here().split;
  return split != NULL && ax_mesh_find_manual(axes, split->name[0]) >= 0 ? split : NULL;
}

/* The enclosing environment, for a body without one of its own whose batched values must vary over axes that split the batch. NULL:
   the body's own environment is enough. */
static const ax_mesh *wider(const ax_program *program) {
  const ax_builder *around = ax_builder_current();
  return program->axes.count == 0 && around != NULL && split_here(&around->axes) != NULL ? &around->axes : NULL;
}

static ax_status check_axis(const ax_program *program, const char *axis, int64_t size, int *index) {
  *index = axis != NULL ? ax_mesh_find(&program->axes, axis) : -1;
  if (axis != NULL && !ax_is_name(axis, strlen(axis)))
    return ax_error(AX_INVALID_ARGUMENT, "vmap: \"%.64s\" is not a name", axis);
  if (size < 0) return ax_error(AX_INVALID_ARGUMENT, "vmap: the size is %lld", (long long)size);
  if (*index < 0 || program->axes.axis[*index].size == size || split_here(&program->axes) != NULL) return AX_OK;
  return ax_error(AX_INVALID_ARGUMENT, "vmap: axis \"%s\" has size %lld, but the size is %lld", axis,
                  (long long)program->axes.axis[*index].size, (long long)size);
}

/* --- The walk --- */

/* Checks a rule's result: its type must be the equation's, but for the batch dimension. */
static void check_made(const batch_walk *w, const ax_eqn *eqn, uint32_t k) {
  uint32_t id = eqn->out + k;
  ax_type made = ax_typeof(w->walk.value[id]), plain = w->walk.program->types[id];
  int dim = w->dim[id];
  if (ax_failed()) return;
  bool fits = dim < (int)made.rank && made.dtype == plain.dtype && made.rank == plain.rank + (dim >= 0) &&
              (dim < 0 || made.dims[dim] == w->size);
  for (uint32_t d = 0; d < plain.rank && fits; d++) fits = made.dims[d + (dim >= 0 && (int)d >= dim)] == plain.dims[d];
  if (!fits)
    ax_fail(ax_error(AX_INTERNAL, "%s: its batch rule made %s, batch dimension %d, of %s", eqn->prim->name,
                     ax_type_string(&made, NULL), dim, ax_type_string(&plain, NULL)));
}

/* The groups of an equation over the axis that is batched; NULL: it has none, or is not over that axis. */
static const ax_axes *grouped(const batch_walk *w, const ax_eqn *eqn) {
  const ax_axes *axes = ax_eqn_grouped(eqn);
  return axes != NULL && w->axis != NULL && names(eqn, w->axis) ? axes : NULL;
}

/* Such an equation as others over all members, in the environment that has the axis. */
static ax_status ungroup(const batch_walk *w, const ax_eqn *eqn, const ax_axes *axes, ax_program **out) {
  const ax_program *program = w->walk.program;
  ax_builder builder;
  ax_value made[1];
  ax_builder_begin(&builder, &program->axes);
  ax_builder_stem(&builder, eqn);
  ax_value *in = ax_trace_alloc(eqn->in_count * sizeof in[0]);
  for (uint32_t i = 0; in != NULL && i < eqn->in_count; i++) in[i] = ax_builder_input(&builder, &program->types[eqn->in[i]]);
  if (!ax_failed()) eqn->prim->ungroup(&(ax_ungroup_args){eqn, axes, in, made});
  return ax_builder_finish(&builder, made, ax_failed() ? 0 : 1, out, NULL, NULL);
}

static void batch_ungrouped(const batch_walk *w, const ax_axes *axes, const ax_batch_args *args) {
  ax_program *ungrouped = NULL, *batched = NULL;
  ax_status status = ungroup(w, args->eqn, axes, &ungrouped);
  if (status == AX_OK) status = ax_batch_program(ungrouped, args->in_dim, args->size, args->axis, NULL, args->out_dim, &batched);
  if (status == AX_OK) ax_call(batched, args->in, args->out);
  else ax_fail(status);
  ax_program_release(ungrouped);
  ax_program_release(batched);
}

static void step(batch_walk *w, const ax_eqn *eqn) {
  bool any = (w->axis != NULL && mentions(eqn, w->axis)) || (ax_eqn_effects(eqn) & AX_EFFECT_MESSAGE) != 0;
  ax_axis_set varying = ax_batching_here().varying;
  for (uint32_t i = 0; i < eqn->in_count; i++) {
    w->in_dim[i] = w->dim[eqn->in[i]];
    any = any || w->in_dim[i] >= 0;
  }
  if (!any) {
    ax_walk_replay(&w->walk, eqn);
    for (uint32_t k = 0; k < eqn->out_count; k++) w->dim[eqn->out + k] = -1;
    return;
  }
  ax_status status = w->split != NULL ? check_split(w, eqn) : AX_OK;
  if (status != AX_OK) {
    ax_fail(status);
    return;
  }
  ax_batch_args args = {.eqn = eqn,
                        .in = ax_walk_operands(&w->walk, eqn),
                        .in_dim = w->in_dim,
                        .size = w->size,
                        .axis = w->axis,
                        .out = w->walk.value + eqn->out,
                        .out_dim = w->dim + eqn->out};
  const ax_axes *axes = grouped(w, eqn);
  if (axes != NULL) batch_ungrouped(w, axes, &args);
  else eqn->prim->batch(&args);
  for (uint32_t k = 0; k < eqn->out_count && !ax_failed(); k++) {
    if (args.out_dim[k] >= 0 && varying != 0) args.out[k] = ax_vary_to(args.out[k], varying);
    check_made(w, eqn, k);
  }
}

static bool init(batch_walk *w, const ax_program *program) {
  if (!ax_walk_init(&w->walk, program)) return false;
  w->dim = ax_walk_alloc(&w->walk, program->value_count * sizeof w->dim[0]);
  w->in_dim = ax_walk_alloc(&w->walk, w->walk.most * sizeof w->in_dim[0]);
  return w->dim != NULL && w->in_dim != NULL;
}

static ax_status batched_type(ax_type *type, uint32_t index, int dim, int64_t size) {
  if (dim == -1) return AX_OK;
  if (dim < -1 || dim > (int)type->rank || type->rank == AX_MAX_RANK)
    return ax_error(AX_INVALID_ARGUMENT, "vmap: in_axes[%u]=%d of %s is out of range", index, dim,
                    ax_type_string(type, NULL));
  memmove(type->dims + dim + 1, type->dims + dim, (type->rank - (uint32_t)dim) * sizeof type->dims[0]);
  type->dims[dim] = size;
  type->rank++;
  return AX_OK;
}

static void inputs(batch_walk *w, ax_builder *builder, const int *in_dim, int axis) {
  const ax_axis_set varying = ax_batching_here().varying;
  const ax_program *program = w->walk.program;
  for (uint32_t i = 0; i < program->in_count; i++) {
    ax_type type = outside(&program->types[i], axis);
    w->dim[i] = in_dim[i];
    ax_status status = batched_type(&type, i, in_dim[i], w->size);
    if (status != AX_OK) ax_fail(status);
    if (in_dim[i] >= 0) type.spread.varying |= varying;
    w->walk.value[i] = ax_builder_input(builder, &type);
  }
}

/* A result with its batch dimension where it is wanted; *dim: where that is. */
static ax_value placed(const batch_walk *w, uint32_t index, int want, int *dim) {
  uint32_t id = w->walk.program->outs[index];
  const ax_type *type = &w->walk.program->types[id];
  ax_value value = w->walk.value[id];
  int is = w->dim[id];
  *dim = want != AX_BATCH_ANY ? want : is >= 0 ? 0 : -1;
  if (*dim < -1 || *dim > (int)type->rank) {
    ax_fail(ax_error(AX_INVALID_ARGUMENT, "vmap: out_axes[%u]=%d of %s is out of range", index, *dim,
                     ax_type_string(type, &w->walk.program->axes)));
    return ax_poison;
  }
  if (*dim == -1 && is >= 0) {
    ax_fail(ax_error(AX_INVALID_ARGUMENT, "vmap: out_axes[%u] is AX_NOT_MAPPED, but result %u, %s, depends on a mapped input",
                     index, index, ax_type_string(type, &w->walk.program->axes)));
    return ax_poison;
  }
  if (*dim == -1) return value;
  return is >= 0 ? ax_move_dim(value, is, *dim) : ax_move_dim(ax_batch_front(value, -1, w->size), 0, *dim);
}

static ax_value *results(batch_walk *w, const int *want, int *out_dim) {
  uint32_t count = w->walk.program->out_count;
  ax_value *outs = ax_walk_alloc(&w->walk, count * sizeof outs[0]);
  for (uint32_t i = 0; i < count && outs != NULL && !ax_failed(); i++) {
    int dim;
    outs[i] = placed(w, i, want != NULL ? want[i] : AX_BATCH_ANY, &dim);
    if (out_dim != NULL) out_dim[i] = dim;
  }
  return outs;
}

/* `split` NULL: what the batching around says. */
static ax_status batch(const ax_program *program, const int *in_dim, int64_t size, const char *axis, const ax_axes *split,
                       const int *want, int *out_dim, ax_program **out) {
  int index;
  *out = NULL;
  AX_TRY(check_axis(program, axis, size, &index));
  ax_mesh axes = index >= 0               ? without_axis(&program->axes, (uint32_t)index)
                 : wider(program) != NULL ? *wider(program)
                                          : program->axes;
  ax_builder builder;
  ax_memo memo = {0};
  batch_walk w = {.axis = index >= 0 ? axis : NULL, .size = size};
  ax_value *outs = NULL;
  ax_builder_begin(&builder, &axes);
  ax_memo_enter(&builder, &memo);
  ax_batching batching = {.split = split != NULL ? split : ax_batching_here().split};
  ax_batching_set(&batching);
  w.split = split_here(&axes);
  ax_axis_set parts = 0;
  ax_status status = w.split != NULL ? ax_axes_resolve(w.split, &axes, &parts) : AX_OK;
  if (status != AX_OK) ax_fail(status);
  batching.varying = parts & ax_checked_axes(&axes);
  if (init(&w, program)) {
    inputs(&w, &builder, in_dim, index);
    for (uint32_t i = 0; i < program->eqn_count && !ax_failed(); i++) step(&w, &program->eqns[i]);
    outs = results(&w, want, out_dim);
  }
  status = ax_finish_clean(&builder, outs, program->out_count, out);
  ax_walk_deinit(&w.walk);
  ax_memo_deinit(&memo);
  return status;
}

void ax_batch_call(const ax_program *program, const ax_value *in, const int *in_dim, int64_t size, const char *axis,
                   const int *want, ax_value *out) {
  int index;
  ax_memo own = {0}; /* what is known of programs in it, if no transform around has a memo */
  ax_builder *builder = ax_builder_current();
  ax_memo_enter(builder, &own);
  ax_status status = check_axis(program, axis, size, &index);
  if (status != AX_OK) ax_fail(status);
  batch_walk w = {.axis = index >= 0 ? axis : NULL, .size = size, .split = split_here(&ax_builder_current()->axes)};
  ax_value *outs = NULL;
  if (status == AX_OK && init(&w, program)) {
    for (uint32_t i = 0; i < program->in_count; i++) {
      w.walk.value[i] = in[i];
      w.dim[i] = in_dim[i];
    }
    for (uint32_t i = 0; i < program->eqn_count && !ax_failed(); i++) step(&w, &program->eqns[i]);
    outs = results(&w, want, NULL);
  }
  for (uint32_t k = 0; k < program->out_count; k++) out[k] = outs != NULL && !ax_failed() ? outs[k] : ax_poison;
  ax_walk_deinit(&w.walk);
  if (builder->memo == &own) builder->memo = NULL;
  ax_memo_deinit(&own);
}

ax_status ax_batch_program(const ax_program *program, const int *in_dim, int64_t size, const char *axis,
                           const int *want, int *out_dim, ax_program **out) {
  ax_memo_entry *entry;
  ax_text key = {0};
  *out = NULL;
  ax_text_add(&key, "%lld %s ", (long long)size, axis != NULL ? axis : "");
  for (uint32_t i = 0; i < program->in_count; i++) ax_text_add(&key, "%d ", in_dim[i]);
  for (uint32_t k = 0; k < program->out_count; k++) ax_text_add(&key, "%d ", want != NULL ? want[k] : AX_BATCH_ANY);
  for (uint32_t a = 0; wider(program) != NULL && a < wider(program)->count; a++)
    ax_text_add(&key, "%s=%lld%s ", wider(program)->axis[a].name, (long long)wider(program)->axis[a].size,
                wider(program)->axis[a].unchecked ? "!" : "");
  AX_TRY(ax_memo_find("batch", program, &key, &entry));
  if (entry == NULL) return batch(program, in_dim, size, axis, NULL, want, out_dim, out);
  if (!entry->known) {
    entry->data = ax_arena_alloc(&ax_builder_current()->memo->arena, program->out_count * sizeof out_dim[0]);
    if (entry->data == NULL) return ax_out_of_memory(program->out_count * sizeof out_dim[0]);
    AX_TRY(batch(program, in_dim, size, axis, NULL, want, entry->data, &entry->made[0]));
    entry->known = true;
  }
  if (out_dim != NULL && program->out_count > 0) memcpy(out_dim, entry->data, program->out_count * sizeof out_dim[0]);
  *out = ax_program_retain(entry->made[0]);
  return AX_OK;
}

/* The axes that options->spmd_axis_name names, in `room`; *split NULL: none, or in scope around the program already, where all that
   it could split is whole. */
static ax_status find_split(const ax_program *program, const ax_vmap_options *options, ax_axes *room, const ax_axes **split) {
  *split = NULL;
  if (options->spmd_axis_name == NULL) return AX_OK;
  ax_status status = ax_axes_parse(options->spmd_axis_name, NULL, room);
  if (status == AX_OK && room->count == 0) status = ax_error(AX_INVALID_ARGUMENT, "there is no name");
  if (status != AX_OK) return ax_error_context(status, "vmap: spmd_axis_name \"%.200s\": ", options->spmd_axis_name);
  for (uint32_t k = 0; k < room->count; k++)
    if (ax_mesh_find_manual(&program->axes, room->name[k]) >= 0) return AX_OK;
  *split = room;
  return AX_OK;
}

bool ax_mapped_dim(int64_t given, uint32_t rank, int *dim) {
  const bool inside = given >= -(int64_t)rank && given < (int64_t)rank;
  *dim = !inside ? -1 : (int)(given < 0 ? given + rank : given);
  return inside || given == AX_NOT_MAPPED;
}

/* Finds the batch dimension of operand or result `index`, which has one more dimension outside than the type `inside`. */
static ax_status batched_dim(const ax_program *program, const char *what, const ax_dim_list *given, uint32_t index,
                             const ax_type *inside, int *dim) {
  const int64_t axis = ax_option_at(given, index, 0);
  if (ax_mapped_dim(axis, inside->rank + 1, dim)) return AX_OK;
  return ax_error(AX_INVALID_ARGUMENT, "vmap: %s[%u]=%lld of %s is out of range", what, index, (long long)axis,
                  ax_type_string(inside, &program->axes));
}

ax_status ax_program_vmap(const ax_program *program, const ax_vmap_options *options, ax_program **out) {
  ax_axes room;
  const ax_axes *split;
  *out = NULL;
  AX_TRY(ax_require(program, "program"));
  AX_TRY(ax_require(options, "options"));
  AX_TRY(ax_option_check("vmap", "in_axes", options->in_axes.count, options->in_axes.v, program->in_count, "input"));
  AX_TRY(ax_option_check("vmap", "out_axes", options->out_axes.count, options->out_axes.v, program->out_count, "result"));
  AX_TRY(find_split(program, options, &room, &split));
  int *axes = ax_calloc((size_t)program->in_count + program->out_count, sizeof axes[0]);
  if (axes == NULL) return ax_out_of_memory(((size_t)program->in_count + program->out_count) * sizeof axes[0]);
  int *want = axes + program->in_count;
  ax_status status = AX_OK;
  for (uint32_t i = 0; i < program->in_count && status == AX_OK; i++)
    status = batched_dim(program, "in_axes", &options->in_axes, i, program->types + i, &axes[i]);
  for (uint32_t k = 0; k < program->out_count && status == AX_OK; k++)
    status = batched_dim(program, "out_axes", &options->out_axes, k, ax_program_out_type(program, k), &want[k]);
  if (status == AX_OK) status = batch(program, axes, options->size, options->axis_name, split, want, NULL, out);
  ax_free(axes);
  return status;
}
