/* Reference evaluation in lock step: equation by equation, on every device (lane) before the next.

     LOCAL        the rule once a lane
     COLLECTIVE   the rule once a group: the lanes that agree off the equation's axes. All of a group's members must be here.
                  Without an exchange: as LOCAL. With state: the rule once with all lanes
     REGION       the rule once with all lanes; it runs its programs through ax_evaluate_lanes, perhaps on some of the lanes only

   In lock step a device that is not among the lanes is at another place of the program and never comes here: a group with a member
   missing is a deadlock, found at once. A tensor lives until its last use.

   A program with messages between two devices is evaluated one lane at a time, until that lane waits (apart.h). The members of a
   group then wait for each other at the collective. */
#include "xform/evaluate.h"

#include <stdlib.h>
#include <string.h>

#include "ir/path.h"
#include "ir/prim.h"
#include "machine/float_mode.h"
#include "machine/subnormals.h"
#include "xform/apart.h"

/* --- Tensors --- */

ax_status ax_tensor_create(const ax_type *type, ax_tensor **out) {
  *out = NULL;
  size_t bytes = ax_dtype_bytes(type->dtype);
  for (uint32_t d = 0; d < type->rank; d++)
    if (!ax_mul_size(bytes, (size_t)type->dims[d], &bytes)) return ax_out_of_memory(SIZE_MAX);
  ax_tensor *tensor = ax_alloc(sizeof *tensor);
  void *data = ax_calloc(1, bytes);
  if (tensor == NULL || data == NULL) {
    ax_free(tensor);
    ax_free(data);
    return ax_out_of_memory(bytes);
  }
  *tensor = (ax_tensor){.dtype = type->dtype, .rank = type->rank, .data = data};
  memcpy(tensor->dims, type->dims, sizeof tensor->dims);
  *out = tensor;
  return AX_OK;
}

void ax_tensor_release(ax_tensor *tensor) {
  if (tensor == NULL) return;
  ax_free(tensor->data);
  ax_free(tensor);
}

static ax_type type_of(const ax_tensor *tensor) { return ax_array_type(tensor->dtype, AX_LIST(tensor->rank, tensor->dims)); }

ax_status ax_tensor_copy(const ax_tensor *tensor, ax_tensor **out) {
  ax_type type = type_of(tensor);
  AX_TRY(ax_tensor_create(&type, out));
  memcpy((*out)->data, tensor->data, (size_t)ax_type_elems(&type) * ax_dtype_bytes(type.dtype));
  return AX_OK;
}

/* --- One evaluation --- */

typedef struct member {
  int64_t group, index; /* of the devices that agree off the axes; within the group */
  uint32_t lane;
} member;

typedef struct evaluation {
  const ax_evaluator *driver;
  const ax_program *program;
  uint32_t lanes;
  const int64_t *device;
  ax_tensor **value; /* [id * lanes + lane]; inputs are borrowed */
  uint32_t *uses;    /* still to come, by id */
  /* room for one equation's; operands and results by lane, and by member of one group */
  ax_tensor **in, **group_in, **group_out;
  int64_t *group_device;
  member *members;
  ax_arena arena;
} evaluation;

static void drop(evaluation *e, uint32_t id) {
  if (id < e->program->in_count) return;
  for (uint32_t lane = 0; lane < e->lanes; lane++) {
    ax_tensor **at = &e->value[(size_t)id * e->lanes + lane];
    ax_tensor_release(*at);
    *at = NULL;
  }
}

static void used(evaluation *e, uint32_t id) {
  if (--e->uses[id] == 0) drop(e, id);
}

static ax_status make_results(evaluation *e, const ax_eqn *eqn) {
  for (uint32_t k = 0; k < eqn->out_count; k++)
    for (uint32_t lane = 0; lane < e->lanes; lane++)
      AX_TRY(ax_tensor_create(&e->program->types[eqn->out + k], &e->value[(size_t)(eqn->out + k) * e->lanes + lane]));
  return AX_OK;
}

/* An equation, in the regions around it. */
static ax_evaluator driver_of(const evaluation *e, const ax_eqn *eqn) {
  return (ax_evaluator){.outer = e->driver, .eqn = eqn, .program = e->program, .crowd = e->driver != NULL ? e->driver->crowd : NULL,
                        .hooks = e->driver != NULL ? e->driver->hooks : NULL};
}

/* Fills in the operands and results of members[0 .. count), some of the lanes. */
static void gather_members(evaluation *e, const ax_eqn *eqn, const member *members, uint32_t count) {
  for (uint32_t m = 0; m < count; m++) {
    uint32_t lane = members[m].lane;
    e->group_device[m] = e->device[lane];
    for (uint32_t i = 0; i < eqn->in_count; i++)
      e->group_in[(size_t)i * count + m] = e->value[(size_t)eqn->in[i] * e->lanes + lane];
    for (uint32_t k = 0; k < eqn->out_count; k++)
      e->group_out[(size_t)k * count + m] = e->value[(size_t)(eqn->out + k) * e->lanes + lane];
  }
}

/* The rule on some of the lanes. */
static ax_status eval_members(evaluation *e, const ax_eqn *eqn, const member *members, uint32_t count, ax_axis_set each) {
  ax_evaluator here = driver_of(e, eqn);
  ax_eval_args args = {.eqn = eqn,
                       .axes = &e->program->axes,
                       .lanes = count,
                       .device = e->group_device,
                       .in = e->group_in,
                       .out = e->group_out,
                       .driver = &here,
                       .hooks = here.hooks,
                       .each = each};
  gather_members(e, eqn, members, count);
  return eqn->prim->eval(&args);
}

static ax_status eval_alone(evaluation *e, const ax_eqn *eqn) {
  AX_TRY(make_results(e, eqn));
  for (uint32_t lane = 0; lane < e->lanes; lane++) {
    member alone = {.lane = lane};
    AX_TRY(eval_members(e, eqn, &alone, 1, 0));
  }
  return AX_OK;
}

/* --- Collectives --- */

static const ax_axes *axes_of(const ax_eqn *eqn) {
  static const ax_axes none;
  for (uint32_t i = 0; i < eqn->prim->param_count; i++)
    if (eqn->prim->params[i].kind == AX_PARAM_AXES && strcmp(eqn->prim->params[i].name, "axes") == 0)
      return ax_param_at(eqn, &eqn->prim->params[i]);
  return &none;
}

/* Row-major index of a device's coordinates along the axes that are not in the set; and, of a program that knows of none of the
   axes around it, along those, which come before. */
static int64_t index_off(const ax_mesh *mesh, ax_axis_set set, int64_t device) {
  int64_t index = device / ax_mesh_devices(mesh);
  for (uint32_t a = 0; a < mesh->count; a++)
    if ((set >> a & 1) == 0) index = index * mesh->axis[a].size + ax_mesh_coordinate(mesh, device, a);
  return index;
}

static int by_group(const void *a, const void *b) {
  const member *x = a, *y = b;
  if (x->group != y->group) return x->group < y->group ? -1 : 1;
  return x->index < y->index ? -1 : x->index > y->index;
}

enum { listed_devices = 8 };

static void list_device(ax_text *text, const ax_mesh *mesh, int64_t device, int64_t nth) {
  if (nth >= listed_devices) return;
  ax_text_add(text, "%s%lld (", nth > 0 ? ", " : "", (long long)device);
  for (uint32_t a = 0; a < mesh->count; a++)
    ax_text_add(text, "%s%s=%lld", a > 0 ? "," : "", mesh->axis[a].name,
                (long long)ax_mesh_coordinate(mesh, device, a));
  ax_text_add(text, ")");
}

static void list_more(ax_text *text, int64_t count) {
  if (count > listed_devices) ax_text_add(text, " and %lld more", (long long)(count - listed_devices));
}

static ax_path path_of(const ax_evaluator *last) {
  ax_path path = {0};
  for (const ax_evaluator *at = last; at != NULL; at = at->outer) path.count += at->eqn != NULL;
  uint32_t level = path.count;
  for (const ax_evaluator *at = last; at != NULL; at = at->outer)
    if (at->eqn != NULL) path.step[--level] = (struct ax_path_step){at->eqn, at->program, 0};
  return path;
}

void ax_evaluator_text(ax_text *text, const ax_evaluator *at) {
  ax_text_add(text, "%s", at->eqn->prim->name);
  for (uint32_t i = 0; i < at->eqn->in_count && i < 8; i++) {
    ax_text_add(text, " ");
    ax_type_text(text, &at->program->types[at->eqn->in[i]], &at->program->axes);
  }
  const ax_path path = path_of(at);
  ax_path_text(text, &path);
}

/* How many members the group has that starts at `first`; `all`: as many as there are along the names. */
static int64_t size_of_group(const ax_axes *names, const member *first, int64_t all) {
  return names->groups.count == 0 ? all : ax_group_size(&names->groups, (uint32_t)(first->group % names->groups.count));
}

static int64_t device_of_group(const ax_axes *names, const ax_mesh *mesh, const member *first, int64_t device, int64_t index) {
  const ax_groups *groups = &names->groups;
  if (groups->count > 0) index = groups->member[ax_group_begin(groups, (uint32_t)(first->group % groups->count)) + index];
  return ax_axes_device(names, mesh, device, index);
}

/* The end, exclusive, of the members that agree with the one at `first`. */
static uint32_t end_of_group(const evaluation *e, uint32_t first) {
  uint32_t end = first;
  while (end < e->lanes && e->members[end].group == e->members[first].group) end++;
  return end;
}

/* Appends those of the incomplete groups that are here, or those that are not. Returns how many there are. */
static int64_t list_side(const evaluation *e, ax_text *text, const ax_axes *names, int64_t all, bool waiting) {
  const ax_mesh *mesh = &e->program->axes;
  int64_t count = 0;
  for (uint32_t first = 0, end; first < e->lanes; first = end) {
    const member *member = &e->members[first];
    int64_t size = size_of_group(names, member, all);
    end = end_of_group(e, first);
    if (end - first == size) continue;
    uint32_t next = first;
    for (int64_t index = 0; index < size; index++) {
      bool here = next < end && e->members[next].index == index;
      if (here) next++;
      if (here != waiting) continue;
      list_device(text, mesh, device_of_group(names, mesh, member, e->device[member->lane], index), count++);
    }
  }
  list_more(text, count);
  return count;
}

static ax_status deadlock(const evaluation *e, const ax_eqn *eqn, const ax_axes *names, int64_t size) {
  ax_text text = {0};
  ax_text_add(&text, "deadlock: ");
  const ax_evaluator here = driver_of(e, eqn);
  ax_evaluator_text(&text, &here);
  ax_text_add(&text, ": devices wait: ");
  list_side(e, &text, names, size, true);
  ax_text_add(&text, "; devices never come: ");
  list_side(e, &text, names, size, false);
  ax_status status = text.failed ? ax_out_of_memory(0) : ax_error(AX_DEADLOCK, "%s", text.data);
  ax_text_deinit(&text);
  return status;
}

/* Members numbered over all along the axes are numbered in their groups. */
static ax_status number_in_groups(evaluation *e, const ax_groups *groups) {
  size_t members = groups->end[groups->count - 1];
  uint32_t *group = ax_alloc(2 * members * sizeof group[0]);
  if (group == NULL) return ax_out_of_memory(2 * members * sizeof group[0]);
  ax_groups_numbers(groups, group, group + members);
  for (uint32_t lane = 0; lane < e->lanes; lane++) {
    member *m = &e->members[lane];
    m->group = m->group * groups->count + group[m->index];
    m->index = group[members + (size_t)m->index];
  }
  ax_free(group);
  return AX_OK;
}

/* The one lane, which is members[0], comes to its group. */
static ax_status eval_meeting(evaluation *e, const ax_eqn *eqn, int64_t size) {
  ax_evaluator here = driver_of(e, eqn);
  AX_TRY(make_results(e, eqn));
  gather_members(e, eqn, e->members, 1);
  return ax_crowd_meet(&here, e->members[0].group, e->members[0].index, size, e->device[0], e->group_in, e->group_out);
}

static int by_device(const void *a, const void *b) {
  const member *x = a, *y = b;
  return x->index < y->index ? -1 : x->index > y->index;
}

/* Evaluates all lanes at once, in the order of their devices: for equations with an effect, which may happen once for several
   lanes. */
static ax_status eval_together(evaluation *e, const ax_eqn *eqn) {
  ax_axis_set each;
  AX_TRY(ax_axes_resolve(axes_of(eqn), &e->program->axes, &each));
  for (uint32_t i = 0; i < eqn->in_count; i++) each |= e->program->types[eqn->in[i]].spread.varying;
  AX_TRY(make_results(e, eqn));
  for (uint32_t lane = 0; lane < e->lanes; lane++) e->members[lane] = (member){0, e->device[lane], lane};
  qsort(e->members, e->lanes, sizeof e->members[0], by_device);
  return eval_members(e, eqn, e->members, e->lanes, each);
}

static ax_status eval_alone_or_together(evaluation *e, const ax_eqn *eqn) {
  const uint32_t effects = eqn->prim->effects;
  return (effects & AX_EFFECT_STATE) != 0 && (effects & AX_EFFECT_MESSAGE) == 0 ? eval_together(e, eqn) : eval_alone(e, eqn);
}

static ax_status eval_collective(evaluation *e, const ax_eqn *eqn) {
  const ax_mesh *mesh = &e->program->axes;
  const ax_axes *names = axes_of(eqn);
  ax_axis_set set;
  AX_TRY(ax_axes_resolve(names, mesh, &set));
  int64_t size = ax_axis_set_size(set, mesh);
  for (uint32_t lane = 0; lane < e->lanes; lane++)
    e->members[lane] =
        (member){index_off(mesh, set, e->device[lane]), ax_axes_index(names, mesh, e->device[lane]), lane};
  if (names->groups.count > 0) AX_TRY(number_in_groups(e, &names->groups));
  if (e->driver != NULL && e->driver->crowd != NULL) return eval_meeting(e, eqn, size_of_group(names, &e->members[0], size));
  qsort(e->members, e->lanes, sizeof e->members[0], by_group);
  for (uint32_t first = 0, end; first < e->lanes; first = end) {
    end = end_of_group(e, first);
    if (end - first != size_of_group(names, &e->members[first], size)) return deadlock(e, eqn, names, size);
  }
  if ((eqn->prim->effects & AX_EFFECT_STATE) != 0) return eval_together(e, eqn);
  AX_TRY(make_results(e, eqn));
  for (uint32_t first = 0, end; first < e->lanes; first = end) {
    end = end_of_group(e, first);
    AX_TRY(eval_members(e, eqn, e->members + first, end - first, 0));
  }
  return AX_OK;
}

static ax_status eval_region(evaluation *e, const ax_eqn *eqn) {
  ax_evaluator inner = driver_of(e, eqn);
  for (uint32_t i = 0; i < eqn->in_count; i++)
    memcpy(e->in + (size_t)i * e->lanes, e->value + (size_t)eqn->in[i] * e->lanes, e->lanes * sizeof e->in[0]);
  ax_eval_args args = {.eqn = eqn,
                       .axes = &e->program->axes,
                       .lanes = e->lanes,
                       .device = e->device,
                       .in = e->in,
                       .out = e->value + (size_t)eqn->out * e->lanes,
                       .driver = &inner,
                       .hooks = inner.hooks};
  return eqn->prim->eval(&args);
}

static ax_status eval_eqn(evaluation *e, const ax_eqn *eqn) {
  if (e->driver != NULL && e->driver->crowd != NULL) AX_TRY(ax_crowd_status(e->driver->crowd));
  switch (eqn->prim->kind) {
    case AX_LOCAL:
      AX_TRY(eval_alone(e, eqn));
      break;
    case AX_COLLECTIVE:
      AX_TRY((eqn->prim->effects & AX_EFFECT_EXCHANGE) != 0 ? eval_collective(e, eqn) : eval_alone_or_together(e, eqn));
      break;
    case AX_REGION:
      AX_TRY(eval_region(e, eqn));
      break;
  }
  for (uint32_t i = 0; i < eqn->in_count; i++) used(e, eqn->in[i]);
  for (uint32_t k = 0; k < eqn->out_count; k++)
    if (e->uses[eqn->out + k] == 0) drop(e, eqn->out + k);
  return AX_OK;
}

/* --- Running a program --- */

static ax_status init(evaluation *e, ax_tensor *const *in) {
  const ax_program *program = e->program;
  size_t most_in = ax_most_operands(program), most_out = ax_most_results(program);
  size_t lanes = e->lanes, values = program->value_count * lanes * sizeof e->value[0];
  e->value = ax_arena_alloc(&e->arena, values);
  if (e->value == NULL) return ax_out_of_memory(values);
  if (program->in_count > 0) memcpy(e->value, in, program->in_count * lanes * sizeof in[0]);
  e->in = ax_arena_alloc(&e->arena, most_in * lanes * sizeof e->in[0]);
  e->group_in = ax_arena_alloc(&e->arena, most_in * lanes * sizeof e->in[0]);
  e->group_out = ax_arena_alloc(&e->arena, most_out * lanes * sizeof e->in[0]);
  e->group_device = ax_arena_alloc(&e->arena, lanes * sizeof e->group_device[0]);
  e->members = ax_arena_alloc(&e->arena, lanes * sizeof e->members[0]);
  if (e->in == NULL || e->group_in == NULL || e->group_out == NULL || e->group_device == NULL || e->members == NULL)
    return ax_out_of_memory(values);
  return ax_program_uses(program, &e->uses);
}

/* Results move out at their last use; inputs, and values that are results twice, are copied. */
static ax_status take_results(evaluation *e, ax_tensor **out) {
  for (uint32_t k = 0; k < e->program->out_count; k++) {
    uint32_t id = e->program->outs[k];
    bool last = --e->uses[id] == 0 && id >= e->program->in_count;
    for (uint32_t lane = 0; lane < e->lanes; lane++) {
      ax_tensor **from = &e->value[(size_t)id * e->lanes + lane], **to = &out[(size_t)k * e->lanes + lane];
      if (!last) {
        AX_TRY(ax_tensor_copy(*from, to));
        continue;
      }
      *to = *from;
      *from = NULL;
    }
  }
  return AX_OK;
}

ax_status ax_evaluate_lanes(ax_evaluator *driver, const ax_program *program, uint32_t lanes, const int64_t *device,
                            ax_tensor *const *in, ax_tensor **out) {
  evaluation e = {.driver = driver, .program = program, .lanes = lanes, .device = device};
  size_t out_count = (size_t)program->out_count * lanes;
  for (size_t i = 0; i < out_count; i++) out[i] = NULL;
  bool outermost = driver == NULL || (driver->eqn == NULL && driver->crowd == NULL);
  if (outermost && (program->effects & AX_EFFECT_MESSAGE) != 0)
    return ax_crowd_evaluate(driver != NULL ? driver->hooks : NULL, program, lanes, device, in, out);
  if (driver != NULL && driver->crowd != NULL && lanes > 1) return ax_crowd_spread(driver, program, lanes, device, in, out);
  ax_status status = init(&e, in);
  for (uint32_t i = 0; i < program->eqn_count && status == AX_OK; i++) status = eval_eqn(&e, &program->eqns[i]);
  if (status == AX_OK) status = take_results(&e, out);
  if (status != AX_OK) {
    for (size_t i = 0; i < out_count; i++) {
      ax_tensor_release(out[i]);
      out[i] = NULL;
    }
  }
  if (e.value != NULL)
    for (uint32_t id = program->in_count; id < program->value_count; id++) drop(&e, id);
  ax_free(e.uses);
  ax_arena_deinit(&e.arena);
  return status;
}

ax_status ax_evaluate(const ax_program *program, ax_tensor *const *in, ax_tensor **out) {
  return ax_evaluate_with(AX_SUBNORMALS_DEFAULT, NULL, program, in, out);
}

ax_status ax_evaluate_on(const ax_hooks *hooks, const ax_program *program, ax_tensor *const *in, ax_tensor **out) {
  return ax_evaluate_with(AX_SUBNORMALS_DEFAULT, hooks, program, in, out);
}

ax_status ax_evaluate_with(ax_subnormals subnormals, const ax_hooks *hooks, const ax_program *program, ax_tensor *const *in,
                           ax_tensor **out) {
  bool flush;
  ax_evaluator outside = {.hooks = hooks};
  const int64_t device = 0;
  for (uint32_t i = 0; i < program->out_count; i++) out[i] = NULL;
  if (ax_mesh_devices(&program->axes) != 1)
    return ax_error(AX_INVALID_ARGUMENT, "a program for %lld devices cannot be evaluated on one",
                    (long long)ax_mesh_devices(&program->axes));
  for (uint32_t i = 0; i < program->in_count; i++) {
    ax_type type = type_of(in[i]);
    if (type.dtype != program->types[i].dtype || !ax_same_shape(&type, &program->types[i]))
      return ax_error(AX_INVALID_ARGUMENT, "input %u is %s, but the program takes %s", i, ax_type_string(&type, NULL),
                      ax_type_string(&program->types[i], &program->axes));
  }
  AX_TRY(ax_subnormals_flush(subnormals, &flush));
  const ax_float_mode caller = ax_float_mode_enter(flush); /* threads that stand for devices inherit it */
  ax_status status = ax_evaluate_lanes(&outside, program, 1, &device, in, out);
  ax_float_mode_leave(caller);
  return status;
}
