/* Programs in another axis environment: every type's axis sets and every axis name, in nested programs too, become those of the
   environment they go to. Results and order stay; so do positions in the text.

     { axes a=4 ; .. psum[axes=(a,)] x:f32[]{V:a} }    with a = (r, s)    { axes p=2 r=2 s=2 ; .. psum[axes=(r, s)] x:f32[]{V:r,s} }

   A nested program's environment begins with its parent's: what it adds (shard_map's mesh) comes after the new one, under its own
   names. */
#include <string.h>

#include "prim/rules.h"
#include "xform/xform.h"

/* What an environment's axes become. */
typedef struct scheme {
  ax_rebinding to;
  const ax_mesh *from;
  ax_axes names[AX_MAX_AXES];      /* by axis of `from` */
  ax_axis_set set[AX_MAX_AXES]; /* the same, those that are checked */
} scheme;

static ax_status rebind(const ax_program *program, const ax_rebinding *to, ax_program **out);

static ax_status check_axis(const ax_axis *axis, const ax_axes *names, const ax_mesh *axes, ax_axis_set *set) {
  AX_TRY(ax_axes_resolve(names, axes, set));
  if (ax_axis_set_size(*set, axes) != axis->size)
    return ax_error(AX_INVALID_ARGUMENT, "axis \"%s\" has size %lld, but %s, which stand for it, have %lld members", axis->name,
                    (long long)axis->size, ax_axis_set_string(*set, axes), (long long)ax_axis_set_size(*set, axes));
  *set &= ax_checked_axes(axes);
  if (axis->unchecked && *set != 0)
    return ax_error(AX_INVALID_ARGUMENT, "axis \"%s\" is unchecked, but %s, which would stand for it, are checked", axis->name,
                    ax_axis_set_string(*set, axes));
  return AX_OK;
}

static ax_status scheme_init(scheme *s, const ax_mesh *from, const ax_rebinding *to) {
  ax_axis_set taken = 0;
  *s = (scheme){.to = *to, .from = from};
  for (uint32_t i = 0; i < from->count; i++) {
    ax_axis_set all;
    if (to->names != NULL) {
      s->names[i] = to->names[i];
    } else {
      s->names[i].count = 1;
      memcpy(s->names[i].name[0], from->axis[i].name, AX_MAX_NAME);
    }
    AX_TRY(check_axis(&from->axis[i], &s->names[i], to->axes, &s->set[i]));
    AX_TRY(ax_axes_resolve(&s->names[i], to->axes, &all));
    if ((taken & all) != 0)
      return ax_error(AX_INVALID_ARGUMENT, "%s would stand for two axes", ax_axis_set_string(taken & all, to->axes));
    taken |= all;
  }
  s->to.names = s->names;
  return AX_OK;
}

static ax_axis_set mapped_set(const scheme *s, ax_axis_set set) {
  ax_axis_set made = 0;
  for (uint32_t i = 0; i < s->from->count; i++)
    if (set >> i & 1) made |= s->set[i];
  return made;
}

static ax_type mapped_type(const scheme *s, const ax_type *type) {
  ax_type made = *type;
  made.spread.varying = mapped_set(s, type->spread.varying);
  made.spread.reduced = mapped_set(s, type->spread.reduced);
  made.spread.unreduced = mapped_set(s, type->spread.unreduced);
  if (made.spread.unreduced == 0) made.spread.kind = AX_UNREDUCED_SUM; /* on unchecked axes nothing is unreduced */
  return made;
}

/* --- Parameters --- */

static ax_status map_names(const scheme *s, ax_axes *names) {
  ax_axes made = {0};
  for (uint32_t i = 0; i < names->count; i++) {
    int axis = ax_mesh_find(s->from, names->name[i]);
    if (axis < 0) return ax_error(AX_INTERNAL, "axis \"%s\" is not of its environment", names->name[i]);
    const ax_axes *parts = &s->names[axis];
    if (made.count + parts->count > AX_MAX_AXES) return ax_error(AX_INVALID_ARGUMENT, "more than %d axes", AX_MAX_AXES);
    memcpy(made.name[made.count], parts->name, parts->count * sizeof parts->name[0]);
    made.count += parts->count;
  }
  *names = made;
  return AX_OK;
}

/* A program held by an equation: in the new environment, with those axes behind it that it added to the old one. */
static ax_status map_nested(const scheme *s, ax_program **program) {
  const ax_mesh *own = &(*program)->axes;
  uint32_t outer = s->from->count;
  ax_mesh axes = *s->to.axes;
  ax_axes names[AX_MAX_AXES] = {0};
  ax_rebinding to = {.axes = &axes, .names = names, .equation = s->to.equation, .context = s->to.context};
  memcpy(names, s->names, sizeof names);
  for (uint32_t i = outer; i < own->count; i++) {
    if (axes.count == AX_MAX_AXES) return ax_error(AX_INVALID_ARGUMENT, "more than %d axes", AX_MAX_AXES);
    axes.axis[axes.count++] = own->axis[i];
    names[i].count = 1;
    memcpy(names[i].name[0], own->axis[i].name, AX_MAX_NAME);
  }
  AX_TRY(ax_mesh_check(&axes));
  ax_program *made;
  AX_TRY(rebind(*program, &to, &made));
  *program = made;
  return AX_OK;
}

/* Copies the parameters and maps what they say of axes. The first `*owned` programs in them are then the caller's. */
static ax_status map_params(const scheme *s, const ax_eqn *eqn, void *params, uint32_t *owned) {
  const ax_prim *prim = eqn->prim;
  for (uint32_t i = 0; i < prim->param_count; i++) {
    void *field = (char *)params + prim->params[i].offset;
    if (prim->params[i].kind == AX_PARAM_AXES) AX_TRY(map_names(s, field));
    if (prim->params[i].kind == AX_PARAM_PROGRAM) {
      AX_TRY(map_nested(s, field));
      ++*owned;
    }
    if (prim->params[i].kind != AX_PARAM_PROGRAMS) continue;
    ax_programs *programs = field;
    ax_program **made = ax_trace_alloc(programs->count * sizeof made[0]);
    if (made == NULL) return AX_OUT_OF_MEMORY;
    if (programs->count > 0) memcpy(made, programs->v, programs->count * sizeof made[0]);
    programs->v = made;
    for (uint32_t j = 0; j < programs->count; j++) {
      AX_TRY(map_nested(s, &made[j]));
      ++*owned;
    }
  }
  return AX_OK;
}

static void release_owned(const ax_prim *prim, const void *params, uint32_t owned) {
  for (uint32_t i = 0; i < prim->param_count; i++) {
    const void *field = (const char *)params + prim->params[i].offset;
    if (prim->params[i].kind == AX_PARAM_PROGRAM && owned > 0) {
      ax_program_release(*(ax_program *const *)field);
      owned--;
    }
    if (prim->params[i].kind != AX_PARAM_PROGRAMS) continue;
    const ax_programs *programs = field;
    for (uint32_t j = 0; j < programs->count && owned > 0; j++, owned--) ax_program_release(programs->v[j]);
  }
}

/* --- The walk --- */

static void step(const scheme *s, ax_walk *walk, const ax_eqn *eqn) {
  const ax_value *in = ax_walk_operands(walk, eqn);
  ax_value *out = walk->value + eqn->out;
  if (s->to.equation != NULL && s->to.equation(&s->to, eqn, in, out)) return;
  char *params = ax_trace_alloc(eqn->prim->params_bytes);
  if (params == NULL) return;
  if (eqn->params != NULL) memcpy(params, eqn->params, eqn->prim->params_bytes);
  uint32_t owned = 0;
  ax_status status = map_params(s, eqn, params, &owned);
  if (status != AX_OK) ax_fail(status);
  if (!ax_failed()) ax_bind(eqn->prim, params, in, eqn->in_count, out, eqn->out_count);
  release_owned(eqn->prim, params, owned);
}

static ax_status rebind(const ax_program *program, const ax_rebinding *to, ax_program **out) {
  scheme s;
  ax_builder builder;
  ax_walk walk;
  ax_value *outs = NULL;
  *out = NULL;
  AX_TRY(scheme_init(&s, &program->axes, to));
  ax_builder_begin(&builder, to->axes);
  builder.seals = true;
  if (ax_walk_init(&walk, program)) {
    for (uint32_t i = 0; i < program->in_count; i++) {
      ax_type type = mapped_type(&s, &program->types[i]);
      walk.value[i] = ax_builder_input(&builder, &type);
    }
    for (uint32_t i = 0; i < program->eqn_count && !ax_failed(); i++) step(&s, &walk, &program->eqns[i]);
    outs = ax_walk_alloc(&walk, program->out_count * sizeof outs[0]);
    for (uint32_t k = 0; k < program->out_count && outs != NULL; k++) outs[k] = walk.value[program->outs[k]];
  }
  ax_status status = ax_builder_finish(&builder, outs, program->out_count, out, NULL, NULL);
  ax_walk_deinit(&walk);
  return status;
}

ax_status ax_program_rebind(const ax_program *program, const ax_rebinding *to, ax_program **out) {
  *out = NULL;
  AX_TRY(ax_mesh_check(to->axes));
  ax_status status = rebind(program, to, out);
  return status == AX_OK || status == AX_OUT_OF_MEMORY ? status : ax_error_context(status, "rebind: ");
}
