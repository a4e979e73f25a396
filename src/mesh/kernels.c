/* Kernels in the per-device program: what they hold acts on a device's own memory and is nothing to lay out, so it stays as it is but for its environment, which is the whole mesh,
   unchecked, and then axes of its own (cores). Where the whole mesh is not the one that the kernel was written for, axes are called otherwise; a core that it signals or copies to is
   told by one coordinate an axis, or by a number over all of them, so that no axis of these may have become several. */
#include <string.h>

#include "mesh/partitioner.h"
#include "prim/rules.h"

/* Whether the whole mesh has these axes, and no others. */
static bool is_whole(const ax_partitioner *p, const ax_scope *s) {
  bool same = s->axes.count == p->mesh.count;
  for (uint32_t i = 0; same && i < s->axes.count; i++)
    same = s->runs[i].count == 1 && s->runs[i].axis[0] == i && strcmp(s->axes.axis[i].name, p->mesh.axis[i].name) == 0;
  return same;
}

static bool make_axes(const ax_partitioner *p, const ax_scope *s, const ax_program *program, ax_mesh *out) {
  *out = p->mesh;
  for (uint32_t i = 0; i < out->count; i++) out->axis[i].unchecked = true;
  for (uint32_t i = s->axes.count; i < program->axes.count; i++) {
    const ax_axis *own = &program->axes.axis[i];
    if (out->count == AX_MAX_AXES || ax_mesh_find(out, own->name) >= 0) {
      ax_fail(ax_error(AX_ABSENT, "a kernel's core axis \"%s\" on the mesh %s, which %s", own->name, ax_bound_string(&p->mesh),
                       out->count == AX_MAX_AXES ? "has too many axes" : "has one of this name"));
      return false;
    }
    out->axis[out->count++] = *own;
  }
  return true;
}

/* The names of a step's axes, on the whole mesh; those of cores are called as they are. */
static bool rename_axes(const ax_partitioner *p, const ax_scope *s, const ax_eqn *eqn, ax_axes *axes) {
  ax_axes here = {.groups = axes->groups};
  for (uint32_t i = 0; i < axes->count; i++) {
    const int at = ax_mesh_find(&s->axes, axes->name[i]);
    const uint32_t parts = at >= 0 ? s->runs[at].count : 1;
    if (eqn->prim->memory && parts != 1) {
      ax_fail(ax_error(AX_ABSENT, "%s%s%s to a place along \"%s\", which is %u axes of the mesh %s", eqn->prim->name, eqn->location != NULL ? " at " : "",
                       eqn->location != NULL ? eqn->location : "", axes->name[i], parts, ax_bound_string(&p->mesh)));
      return false;
    }
    for (uint32_t k = 0; k < parts; k++)
      memcpy(here.name[here.count++], at >= 0 ? p->mesh.axis[s->runs[at].axis[k]].name : axes->name[i], AX_MAX_NAME);
  }
  *axes = here;
  return true;
}

static ax_program *rename(ax_partitioner *p, const ax_scope *s, const ax_program *program);

static void *rename_params(ax_partitioner *p, const ax_scope *s, const ax_eqn *eqn) {
  const ax_prim *prim = eqn->prim;
  char *made = ax_eqn_own_params(eqn, &p->arena);
  ax_program **held;
  if (made == NULL && prim->params_bytes > 0) ax_fail(ax_out_of_memory(prim->params_bytes));
  for (uint32_t i = 0; made != NULL && i < prim->param_count; i++) {
    void *field = made + prim->params[i].offset;
    if (prim->params[i].kind == AX_PARAM_AXES && !rename_axes(p, s, eqn, field)) return NULL;
    if (prim->memory && prim->params[i].kind == AX_PARAM_BOOL && strcmp(prim->params[i].name, "logical") == 0 && *(bool *)field)
      ax_fail(ax_error(AX_ABSENT, "%s to a device by its number, on the mesh %s, where it has another", prim->name, ax_bound_string(&p->mesh)));
  }
  for (uint32_t k = 0; made != NULL && !ax_failed() && (held = ax_params_program(prim, made, k)) != NULL; k++) *held = rename(p, s, *held);
  return ax_failed() ? NULL : made;
}

static ax_value *copy_equations(ax_partitioner *p, const ax_scope *s, const ax_program *program, ax_builder *builder) {
  ax_value *value = ax_trace_alloc(program->value_count * sizeof value[0]), *outs = ax_trace_alloc(program->out_count * sizeof outs[0]);
  for (uint32_t i = 0; value != NULL && i < program->in_count; i++) value[i] = ax_builder_input(builder, &program->types[i]);
  for (uint32_t i = 0; i < program->eqn_count && !ax_failed(); i++) {
    const ax_eqn *eqn = &program->eqns[i];
    ax_builder_stem(builder, eqn);
    const void *params = rename_params(p, s, eqn);
    ax_value *in = ax_trace_alloc(eqn->in_count * sizeof in[0]);
    for (uint32_t k = 0; in != NULL && k < eqn->in_count; k++) in[k] = value[eqn->in[k]];
    if (!ax_failed()) ax_emit(eqn->prim, params, in, eqn->in_count, value + eqn->out, eqn->out_count);
  }
  for (uint32_t k = 0; k < program->out_count && !ax_failed(); k++) outs[k] = value[program->outs[k]];
  return outs;
}

/* NULL: the trace has failed. */
static ax_program *rename(ax_partitioner *p, const ax_scope *s, const ax_program *program) {
  ax_mesh axes;
  ax_memo_entry *entry = ax_memo_ask(&p->memo, "kernel", program, &s, sizeof s);
  if (entry == NULL) ax_fail(ax_out_of_memory(sizeof s));
  if (entry == NULL || !make_axes(p, s, program, &axes)) return NULL;
  if (entry->known) return entry->made[0];
  ax_builder builder;
  ax_builder_begin(&builder, &axes);
  builder.seals = true;
  ax_value *outs = copy_equations(p, s, program, &builder);
  ax_status status = ax_builder_finish(&builder, outs, outs != NULL ? program->out_count : 0, &entry->made[0], NULL, NULL);
  if (status != AX_OK) ax_fail(status);
  entry->known = status == AX_OK;
  return entry->made[0];
}

ax_program *ax_kernel_program_here(ax_partitioner *p, const ax_scope *s, ax_program *program) {
  bool acts = program->out_count == 0; /* others say where blocks are, and have no environment */
  return acts && !is_whole(p, s) ? rename(p, s, program) : program;
}
