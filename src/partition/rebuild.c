/* The walk that makes the per-device program. An equation outside shard_maps is bound on blocks (operation.c) or on whole
   values. A shard_map's body is bound in its place, on blocks. A program in control flow is rebuilt for the layouts of its
   inputs and results (layouts.c), once for each set of layouts: a hundred calls of one body on blocks laid out alike stay calls
   of one body. */
#include <string.h>

#include "control/closed_call.h"
#include "ir/flow.h"
#include "partition/partitioner.h"
#include "prim/bind.h"
#include "prim/prims.h"
#include "prim/rules.h"

/* A program held by equations, on the whole mesh. */
typedef struct rebuilt {
  ax_program *program; /* borrowed */
  const ax_spec **out; /* how its results are laid out */
  ax_held *parts;      /* by result: the parts that a call gives of it (ax_held.parts), to be combined where it is needed */
  ax_axis_set *uneven; /* ax_held.uneven of each */
  ax_asked *asked;     /* by input: how the program joined its blocks */
} rebuilt;

ax_held *ax_held_alloc(ax_partitioner *p, const ax_program *program) {
  ax_held *held = ax_arena_alloc(&p->arena, program->value_count * sizeof held[0]);
  if (held == NULL) ax_fail(ax_out_of_memory(program->value_count * sizeof held[0]));
  for (uint32_t v = 0; held != NULL && v < program->value_count; v++) held[v].type = &program->types[v];
  return held;
}

ax_value ax_held_here(const ax_partitioner *p, ax_held *held, const ax_spec *spec) {
  if (spec == NULL) return ax_held_whole(held);
  ax_value value = ax_held_as(held, spec);
  if (ax_failed()) return value;
  return ax_vary_to(value, ax_typeof(value).spread.varying | (ax_spec_set(spec) & ax_checked_axes(&p->mesh)));
}

/* --- Programs held by equations --- */

/* The program to rebuild, its scope, and the layouts of its inputs and results. out NULL: results lie as they are made. */
typedef struct question {
  const ax_scope *s;
  const ax_program *program;
  const ax_spec *const *in, *const *out;
} question;

/* How often each value is an operand or a result. NULL: the trace has failed. */
static uint32_t *count_uses(const ax_program *program) {
  uint32_t *uses = ax_trace_alloc((program->value_count + 1) * sizeof uses[0]);
  for (uint32_t i = 0; uses != NULL && i < program->eqn_count; i++)
    for (uint32_t j = 0; j < program->eqns[i].in_count; j++) uses[program->eqns[i].in[j]]++;
  for (uint32_t k = 0; uses != NULL && k < program->out_count; k++) uses[program->outs[k]]++;
  return uses;
}

static ax_value *walk_program(ax_partitioner *p, const question *q, ax_builder *builder, rebuilt *made) {
  const ax_program *program = q->program;
  ax_held *held = ax_held_alloc(p, program);
  ax_value *outs = ax_trace_alloc(program->out_count * sizeof outs[0]);
  const uint32_t *uses = count_uses(program);
  if (held == NULL || outs == NULL || uses == NULL) return NULL;
  for (uint32_t i = 0; i < program->in_count; i++) {
    held[i].spec = q->in[i];
    held[i].asked = &made->asked[i];
    ax_type type = ax_scope_block(p, q->s, &program->types[i], q->in[i]);
    held[i].value = ax_builder_input(builder, &type);
  }
  ax_rebuild(p, q->s, program, held);
  for (uint32_t k = 0; k < program->out_count && !ax_failed(); k++) {
    ax_held *result = &held[program->outs[k]];
    if (q->out != NULL || uses[program->outs[k]] > 1) ax_held_combine(result);
    made->parts[k] = (ax_held){.parts = result->parts, .combine = result->combine, .combined = result->combined};
    made->out[k] = q->out != NULL ? q->out[k] : result->spec;
    made->uneven[k] = q->out != NULL ? 0 : result->uneven;
    outs[k] = q->out != NULL ? ax_held_here(p, result, q->out[k]) : result->value;
  }
  return outs;
}

static rebuilt *build(ax_partitioner *p, const question *q) {
  rebuilt *made = ax_arena_alloc(&p->arena, sizeof *made);
  const ax_spec **out = ax_arena_alloc(&p->arena, q->program->out_count * sizeof out[0]);
  ax_held *parts = ax_arena_alloc(&p->arena, q->program->out_count * sizeof parts[0]);
  ax_axis_set *uneven = ax_arena_alloc(&p->arena, q->program->out_count * sizeof uneven[0]);
  ax_asked *asked = ax_arena_alloc(&p->arena, q->program->in_count * sizeof asked[0]);
  if (made == NULL || out == NULL || parts == NULL || uneven == NULL || asked == NULL) {
    ax_fail(ax_out_of_memory(0));
    return NULL;
  }
  *made = (rebuilt){.out = out, .parts = parts, .uneven = uneven, .asked = asked};
  ax_builder builder;
  ax_builder_begin(&builder, &p->mesh);
  builder.seals = true;
  ax_value *outs = walk_program(p, q, &builder, made);
  ax_status status = ax_builder_finish(&builder, outs, outs != NULL ? q->program->out_count : 0, &made->program, NULL, NULL);
  if (status == AX_OK) return made;
  ax_fail(status);
  return NULL;
}

/* The scope, the layouts of the inputs, and of the results, or for each of them that it is as it is made. */
static const void **key_of(const question *q, size_t *bytes) {
  static const char as_made;
  const uint32_t in_count = q->program->in_count, count = 1 + in_count + q->program->out_count;
  const void **key = ax_trace_alloc(count * sizeof key[0]);
  *bytes = count * sizeof key[0];
  if (key == NULL) return NULL;
  key[0] = q->s;
  for (uint32_t i = 0; i < in_count; i++) key[1 + i] = q->in[i];
  for (uint32_t k = 1 + in_count; k < count; k++) key[k] = q->out != NULL ? q->out[k - 1 - in_count] : (const void *)&as_made;
  return key;
}

/* NULL: the trace has failed. */
static const rebuilt *rebuild(ax_partitioner *p, const question *q) {
  size_t bytes;
  const void **key = key_of(q, &bytes);
  if (key == NULL) return NULL;
  ax_memo_entry *entry = ax_memo_ask(&p->memo, "rebuilt", q->program, key, bytes);
  if (entry == NULL) ax_fail(ax_out_of_memory(bytes));
  if (entry == NULL || entry->known) return entry != NULL ? entry->data : NULL;
  rebuilt *made = build(p, q);
  if (made == NULL) return NULL;
  entry->made[0] = made->program;
  entry->data = made;
  entry->known = true;
  return made;
}

/* --- Equations --- */

/* An equation that is bound anew: how its operands are handed over and its results come back. */
typedef struct binding {
  const ax_program *program; /* that the equation is of */
  const ax_eqn *eqn;
  const ax_spec **in, **out;
  ax_held *parts;
  ax_axis_set *uneven;
} binding;

static bool binding_init(ax_partitioner *p, const ax_scope *s, const ax_program *program, const ax_eqn *eqn, ax_held *held,
                         binding *b) {
  for (uint32_t i = 0; i < eqn->in_count; i++) ax_held_combine(&held[eqn->in[i]]);
  *b = (binding){program, eqn, ax_trace_alloc(eqn->in_count * sizeof b->in[0]), ax_trace_alloc(eqn->out_count * sizeof b->out[0]),
                 ax_trace_alloc(eqn->out_count * sizeof b->parts[0]), ax_trace_alloc(eqn->out_count * sizeof b->uneven[0])};
  if (ax_failed()) return false;
  ax_region_layouts(p, s, program, eqn, b->in, b->out);
  return !ax_failed();
}

/* The program, with what it joins of the inputs marked joined before, where it is done once for all calls and iterations. */
static const rebuilt *rebuild_for(ax_partitioner *p, question q, const ax_spec **in, const bool *once) {
  q.in = in;
  const rebuilt *made = rebuild(p, &q);
  bool changed = false;
  for (uint32_t i = 0; made != NULL && i < q.program->in_count; i++) {
    const ax_asked *asked = &made->asked[i];
    if (!once[i] || !asked->joined) continue;
    in[i] = asked->several ? NULL : ax_spec_unique(p, &asked->as);
    changed = true;
  }
  return changed && !ax_failed() ? rebuild(p, &q) : made;
}

static const ax_spec *inside(ax_partitioner *p, const ax_spec *spec, ax_region_link_how how) {
  return how == AX_LINK_SLICE ? ax_spec_unstacked(p, spec) : spec;
}

/* A call's results come as the body makes them; but a future is whole. */
static bool gives_as_made(const ax_program *program, const ax_eqn *eqn, uint32_t k) {
  bool made = eqn->prim->runs == AX_RUNS_EACH && ax_region_link_gives(eqn, k);
  for (uint32_t r = 0; r < eqn->out_count; r++) made = made && program->types[eqn->out + r].form != AX_FUTURE;
  return made;
}

/* Program k of the equation, for operands and results as the binding has them, which it changes where the program decides. */
static ax_program *linked_program(ax_partitioner *p, const ax_scope *s, binding *b, uint32_t k, const ax_program *body) {
  const ax_spec **in = ax_trace_alloc(body->in_count * sizeof in[0]), **out = ax_trace_alloc(body->out_count * sizeof out[0]);
  bool *once = ax_trace_alloc(body->in_count + 1);
  if (ax_failed()) return NULL;
  for (uint32_t i = 0; i < body->in_count; i++) {
    const ax_region_link link = ax_region_link_in(b->eqn, k, i);
    in[i] = link.how != AX_LINK_OWN ? inside(p, b->in[link.number], link.how) : NULL;
    once[i] = link.once;
  }
  for (uint32_t j = 0; j < body->out_count; j++) {
    const ax_region_link link = ax_region_link_out(b->eqn, k, j);
    out[j] = link.how != AX_LINK_OWN ? inside(p, b->out[link.number], link.how) : NULL;
  }
  const bool as_made = gives_as_made(b->program, b->eqn, k);
  const rebuilt *made = rebuild_for(p, (question){.s = s, .program = body, .out = as_made ? NULL : out}, in, once);
  for (uint32_t i = 0; made != NULL && i < body->in_count; i++)
    if (once[i]) b->in[ax_region_link_in(b->eqn, k, i).number] = in[i];
  for (uint32_t j = 0; made != NULL && as_made && j < body->out_count; j++) {
    const ax_region_link link = ax_region_link_out(b->eqn, k, j);
    b->out[link.number] = made->out[j];
    b->parts[link.number] = made->parts[j];
    b->uneven[link.number] = made->uneven[j];
  }
  return made != NULL ? made->program : NULL;
}

/* Whether the whole mesh has these axes, and no others. */
static bool is_whole(const ax_partitioner *p, const ax_scope *s) {
  bool same = s->axes.count == p->mesh.count;
  for (uint32_t i = 0; same && i < s->axes.count; i++)
    same = !s->axes.axis[i].automatic && s->runs[i].count == 1 && s->runs[i].axis[0] == i &&
           strcmp(s->axes.axis[i].name, p->mesh.axis[i].name) == 0;
  return same;
}

/* A program without layouts, in the names of the whole mesh; borrowed. NULL: the trace has failed. */
static ax_program *renamed(ax_partitioner *p, const ax_scope *s, const ax_prim *prim, ax_program *program) {
  if (is_whole(p, s)) return program;
  ax_memo_entry *entry = ax_memo_ask(&p->memo, "renamed", program, &s, sizeof s);
  if (entry == NULL) ax_fail(ax_out_of_memory(sizeof s));
  if (entry == NULL || entry->known) return entry != NULL ? entry->made[0] : NULL;
  ax_axes parts[AX_MAX_AXES];
  for (uint32_t i = 0; i < s->axes.count; i++) {
    const ax_axes own = ax_axis_set_names((ax_axis_set)1 << i, &s->axes);
    parts[i] = ax_scope_names(p, s, &own);
  }
  ax_status status = prim->rename(&(ax_rename_args){program, &s->axes, &p->mesh, parts}, &entry->made[0]);
  if (status != AX_OK) ax_fail(status);
  entry->known = status == AX_OK;
  return entry->made[0];
}

static ax_program *program_here(ax_partitioner *p, const ax_scope *s, binding *b, uint32_t k, ax_program *program) {
  const ax_prim *prim = b->eqn->prim;
  return prim->rename != NULL ? renamed(p, s, prim, program) : linked_program(p, s, b, k, program);
}

/* The equation's parameters, in the names of the whole mesh. NULL: there are none, or the trace has failed. */
static void *params_here(ax_partitioner *p, const ax_scope *s, binding *b) {
  const ax_prim *prim = b->eqn->prim;
  char *made = ax_eqn_own_params(b->eqn, &p->arena);
  ax_program **held;
  if (made == NULL && prim->params_bytes > 0) ax_fail(ax_out_of_memory(prim->params_bytes));
  if (made == NULL) return NULL;
  for (uint32_t i = 0; i < prim->param_count; i++) {
    ax_axes *axes = (ax_axes *)(void *)(made + prim->params[i].offset);
    if (prim->params[i].kind == AX_PARAM_AXES) *axes = ax_scope_names(p, s, axes);
  }
  for (uint32_t k = 0; !ax_failed() && (held = ax_params_program(prim, made, k)) != NULL; k++)
    *held = program_here(p, s, b, k, *held);
  return made;
}

static void bind_region(ax_partitioner *p, const ax_scope *s, const ax_program *program, const ax_eqn *eqn, ax_held *held) {
  binding b;
  ax_value *in = ax_trace_alloc(eqn->in_count * sizeof in[0]), *out = ax_trace_alloc(eqn->out_count * sizeof out[0]);
  if (ax_failed() || !binding_init(p, s, program, eqn, held, &b)) return;
  void *params = params_here(p, s, &b);
  for (uint32_t i = 0; i < eqn->in_count && !ax_failed(); i++) in[i] = ax_held_here(p, &held[eqn->in[i]], b.in[i]);
  if (ax_failed()) return;
  ax_bind(eqn->prim, params, in, eqn->in_count, out, eqn->out_count);
  for (uint32_t k = 0; k < eqn->out_count; k++) {
    ax_held_set(&held[eqn->out + k], out[k], b.out[k]);
    held[eqn->out + k].uneven = b.uneven[k];
    held[eqn->out + k].parts = b.parts[k].parts;
    held[eqn->out + k].combine = b.parts[k].combine;
    held[eqn->out + k].combined = b.parts[k].combined;
  }
}

/* The program that it is a call of, in the trace's memory. NULL: the trace has failed. */
static ax_program *called_by(ax_partitioner *p, const ax_eqn *eqn) {
  if (!p->plain || eqn->prim->plain == NULL) return ax_eqn_program(eqn, 0);
  ax_memo_entry *entry = ax_memo_ask(&p->memo, "plain", ax_eqn_program(eqn, 0), &eqn->prim, sizeof eqn->prim);
  ax_status status = entry == NULL ? ax_out_of_memory(0) : entry->known ? AX_OK : eqn->prim->plain(eqn, &entry->made[0]);
  if (status != AX_OK) ax_fail(status);
  if (status == AX_OK) entry->known = true;
  return entry != NULL ? entry->made[0] : NULL;
}

/* Binds a region with derivatives of its own as a call of its program, because derivatives have been taken by now. */
static void bind_custom(ax_partitioner *p, const ax_scope *s, const ax_program *program, const ax_eqn *eqn, ax_held *held) {
  const ax_closed_call_params params = {called_by(p, eqn)};
  ax_eqn call = *eqn;
  call.prim = &ax_prim_closed_call;
  call.params = &params;
  if (params.body != NULL) bind_region(p, s, program, &call, held);
}

/* A collective over groups: over the axes that they are along, or by its rule. Its result varies as it did. */
static void bind_ungrouped(ax_partitioner *p, const ax_type *result, const ax_eqn *eqn, void *params, const ax_value *in,
                           ax_value *out) {
  ax_axes *axes = params, along; /* the first parameter */
  if (ax_groups_along(&p->mesh, axes, &along)) {
    *axes = along;
    if (along.count == 0 && eqn->in_count == 1) out[0] = in[0]; /* of one member; a ragged exchange with itself still moves rows */
    else ax_bind(eqn->prim, params, in, eqn->in_count, out, eqn->out_count);
  } else {
    eqn->prim->ungroup(&(ax_ungroup_args){eqn, axes, in, out});
  }
  out[0] = ax_vary_to(out[0], result->spread.varying);
}

/* Binds an equation on whole values. */
static void bind_whole(ax_partitioner *p, const ax_scope *s, const ax_program *program, const ax_eqn *eqn, ax_held *held) {
  binding b = {.program = program, .eqn = eqn};
  ax_value *in = ax_trace_alloc(eqn->in_count * sizeof in[0]), *out = ax_trace_alloc(eqn->out_count * sizeof out[0]);
  for (uint32_t i = 0; in != NULL && i < eqn->in_count; i++) in[i] = ax_held_whole(&held[eqn->in[i]]);
  void *params = params_here(p, s, &b);
  if (ax_failed()) return;
  if (p->ungroups && ax_eqn_grouped(eqn) != NULL) {
    const ax_type result = ax_scope_type(p, s, &program->types[eqn->out]);
    bind_ungrouped(p, &result, eqn, params, in, out);
  } else {
    ax_bind(eqn->prim, params, in, eqn->in_count, out, eqn->out_count);
  }
  for (uint32_t k = 0; k < eqn->out_count; k++) held[eqn->out + k].value = out[k];
}

/* --- shard_maps --- */

/* The axes of its own mesh along which the results of an unchecked body differ: of the body's environment. NULL: the trace has
   failed. */
static const ax_axis_set *differing(ax_partitioner *p, const ax_shard_map_params *params) {
  const ax_program *body = params->body;
  ax_axis_set *in = ax_arena_alloc(&p->arena, body->in_count * sizeof in[0]);
  for (uint32_t i = 0; in != NULL && i < body->in_count; i++)
    in[i] = ax_axis_set_on(ax_spec_set(&params->in_specs.v[i]), &params->mesh, &body->axes);
  ax_flow flow = {.memo = &p->memo, .question = "differs"};
  const ax_axis_set *all = in != NULL ? ax_flow_program(&flow, body, in) : NULL;
  if (all == NULL) ax_fail(ax_out_of_memory(0));
  return all;
}

/* An operand as the body's input: cut as the map's spec says, and further as it is over axes that are automatic inside. */
static void hand_in(ax_partitioner *p, const ax_scope *inner, ax_held *operand, const ax_spec *own, ax_held *input) {
  ax_held_combine(operand);
  const ax_spec *automatic = ax_spec_inward(p, inner, input->type, operand->spec), *wanted = ax_spec_outward(p, own, automatic);
  const ax_value x = ax_failed() ? ax_poison : ax_held_here(p, operand, wanted);
  ax_held_set(input, ax_vary_to(x, ax_scope_type(p, inner, input->type).spread.varying), automatic);
}

/* A result of the body as the map's, likewise. */
static void hand_out(ax_partitioner *p, const ax_scope *inner, ax_held *made, const ax_spec *own, ax_held *result) {
  ax_held_combine(made);
  const ax_spec *automatic = ax_spec_inward(p, inner, made->type, made->spec);
  if (!ax_failed()) ax_held_set(result, ax_held_here(p, made, automatic), ax_spec_outward(p, own, automatic));
}

/* The body in the place of the equation: its inputs are blocks, its results are held as blocks. */
static void enter_body(ax_partitioner *p, const ax_scope *s, const ax_scope *inner, const ax_eqn *eqn, ax_held *held,
                       ax_held *inside) {
  const ax_shard_map_params *params = eqn->params;
  const ax_program *body = params->body;
  for (uint32_t i = 0; i < eqn->in_count && !ax_failed(); i++)
    hand_in(p, inner, &held[eqn->in[i]], ax_spec_on(p, s, &params->mesh, &params->in_specs.v[i]), &inside[i]);
  ax_propagate(p, inner, body);
  if (!ax_failed()) ax_rebuild(p, inner, body, inside);
  for (uint32_t k = 0; k < eqn->out_count && !ax_failed(); k++)
    hand_out(p, inner, &inside[body->outs[k]], ax_spec_on(p, s, &params->mesh, &params->out_specs.v[k]), &held[eqn->out + k]);
}

static void enter(ax_partitioner *p, const ax_scope *s, const ax_eqn *eqn, ax_held *held) {
  const ax_shard_map_params *params = eqn->params;
  const ax_program *body = params->body;
  const ax_scope *inner = ax_scope_body(p, s, params);
  ax_held *inside = ax_held_alloc(p, body);
  const ax_axis_set *differs = params->unchecked ? differing(p, params) : NULL;
  if (ax_failed()) return;
  enter_body(p, s, inner, eqn, held, inside);
  for (uint32_t k = 0; k < eqn->out_count && differs != NULL && !ax_failed(); k++) {
    ax_held *result = &held[eqn->out + k];
    ax_axis_set own = differs[body->outs[k]] & ax_shard_map_own(params);
    result->uneven = ax_scope_set(inner, own) & ~(result->spec != NULL ? ax_spec_set(result->spec) : 0);
  }
}

/* The value is laid out as is said, and as propagation found where nothing is. */
static void bind_constraint(const ax_partitioner *p, const ax_eqn *eqn, const ax_spec *const *lies, ax_held *held) {
  const ax_spec *spec = lies[eqn->out];
  ax_held_set(&held[eqn->out], ax_held_here(p, &held[eqn->in[0]], spec), spec);
  held[eqn->out].whole = held[eqn->in[0]].whole;
}

/* The axes that cut the first dimension of a sum's parts, if each device has one of them; 0: they are as any array. */
static ax_axis_set parts_over(const ax_partitioner *p, const ax_type *type, const ax_spec *spec) {
  ax_axis_set axes = 0;
  for (uint32_t i = 0; spec != NULL && spec->rank > 0 && i < spec->count[0]; i++) axes |= (ax_axis_set)1 << spec->axis[0][i];
  return axes != 0 && ax_axis_set_size(axes, &p->mesh) == type->dims[0] ? axes : 0;
}

/* Each device has a part of the sum, which is not made for that. */
static void bind_sum_parts(ax_partitioner *p, const ax_eqn *eqn, const ax_spec *spec, ax_axis_set over, ax_held *held) {
  const ax_spec rest = ax_spec_moved(spec, -1);
  const ax_value part = ax_held_as_part(&held[eqn->in[0]], over, &rest);
  if (ax_failed()) return;
  ax_held_set(&held[eqn->out], ax_vary_to(ax_expand_dims(part, 0), over & ax_checked_axes(&p->mesh)), spec);
}

/* Collectives over all members have factors, as operations of a device have. */
static bool has_factors(const ax_eqn *eqn) {
  return eqn->prim->kind == AX_COLLECTIVE && eqn->prim->shard != ax_shard_whole && ax_eqn_grouped(eqn) == NULL;
}

static void bind_collective(ax_partitioner *p, const ax_scope *s, const ax_program *program, const ax_eqn *eqn,
                            const ax_spec *const *lies, ax_held *held) {
  binding b = {.program = program, .eqn = eqn};
  ax_eqn here = *eqn;
  here.params = params_here(p, s, &b);
  if (!ax_failed()) ax_bind_operation(p, s, program, &here, lies, held);
}

void ax_rebuild(ax_partitioner *p, const ax_scope *s, const ax_program *program, ax_held *held) {
  const ax_spec *const *lies = ax_propagated(p, s, program);
  for (uint32_t i = 0; i < program->eqn_count && !ax_failed(); i++) {
    const ax_eqn *eqn = &program->eqns[i];
    ax_builder_stem(ax_builder_current(), eqn);
    if (eqn->prim == &ax_prim_shard_map) enter(p, s, eqn, held);
    else if (eqn->prim->derived) bind_custom(p, s, program, eqn, held);
    else if (eqn->prim->kind == AX_REGION && eqn->prim->outside == NULL) bind_region(p, s, program, eqn, held);
    else if (eqn->prim == &ax_prim_sharding_constraint) bind_constraint(p, eqn, lies, held);
    else if (eqn->prim == &ax_prim_sum_parts && lies != NULL && parts_over(p, &program->types[eqn->out], lies[eqn->out]) != 0)
      bind_sum_parts(p, eqn, lies[eqn->out], parts_over(p, &program->types[eqn->out], lies[eqn->out]), held);
    else if (lies != NULL && eqn->prim->kind == AX_LOCAL) ax_bind_operation(p, s, program, eqn, lies, held);
    else if (lies != NULL && has_factors(eqn)) bind_collective(p, s, program, eqn, lies, held);
    else if (!ax_bind_host_call(p, s, eqn, held)) bind_whole(p, s, program, eqn, held);
  }
}
