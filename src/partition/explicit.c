/* Sharding in types. The layout of each value follows from the layouts of its equation's operands, by rule and in one direction. If
   no rule decides, that is an error, which a constraint resolves:

     h:f32[8@data,16@model] = dot_general x:f32[8@data,12] w:f32[12,16@model]     each factor is cut in one way: h keeps the cuts
     y = dot_general a:f32[8@data,16@model] b:f32[16@model,6]                     both are cut along the dimension that is summed: y
                                                                                  may be whole or in parts, so a constraint must be
                                                                                  its only user
     z = add f32[8@data] f32[8@model]                                             the operands are cut in different ways: refused

   An operand that is whole along a factor goes with one that is cut. A factor that an operation combines is gone from its result.
   A dimension that an operation cannot keep must be whole. Bodies of loops and branches are typed for the operands that they are
   given; a carry must come round with the layout that it went in with.

   The result is the program with a constraint on each value that is computed from a cut one, so that the partitioner has no
   choice. */
#include <stdio.h>
#include <string.h>

#include "control/closed_call.h"
#include "ir/region_link.h"
#include "mesh/constraint.h"
#include "mesh/sharding.h"
#include "partition/partitioner.h"
#include "prim/bind.h"
#include "prim/prims.h"

typedef struct typing {
  const ax_mesh *mesh; /* of all constraints */
  ax_memo memo;
  ax_factoring factoring;
} typing;

/* A program typed for inputs that lie in one way. */
typedef struct typed {
  ax_program *program; /* borrowed */
  const ax_spec **out;
} typed;

/* The values of the program at hand. Layouts are unique; NULL: whole. */
typedef struct values {
  const ax_program *old;
  ax_value *value;
  const ax_spec **lies;
  uint32_t *uses, *user; /* by value: how many operands it is; the last equation that takes it */
} values;

static const typed *type_program(typing *t, const ax_program *program, const ax_spec *const *in);

/* --- Texts --- */

static const char *shown(const typing *t, const ax_type *type, const ax_spec *spec, char *out, size_t bytes) {
  ax_text text = {0};
  ax_sharded_type_text(&text, type, spec, t->mesh);
  snprintf(out, bytes, "%s", text.data != NULL ? text.data : "?");
  ax_text_deinit(&text);
  return out;
}
enum { SHOWN = 256 };

/* --- Layouts --- */

static const ax_spec *unique(typing *t, const ax_spec *spec) {
  ax_spec plain = *spec;
  plain.rank = 0;
  for (uint32_t d = 0; d < AX_MAX_RANK; d++)
    if (plain.count[d] > 0) plain.rank = d + 1;
  if (plain.rank == 0) return NULL;
  ax_memo_entry *entry = ax_memo_ask(&t->memo, "layout", NULL, &plain, sizeof plain);
  if (entry == NULL) ax_fail(ax_out_of_memory(sizeof plain));
  return entry != NULL ? entry->key : NULL;
}

static const ax_spec *moved(typing *t, const ax_spec *spec, int by) {
  if (spec == NULL || (by > 0 && spec->rank == AX_MAX_RANK)) return NULL;
  const ax_spec here = ax_spec_moved(spec, by);
  return unique(t, &here);
}

/* Binds a constraint that lays the value out as `spec` says; NULL: whole. */
static ax_value constrained(const typing *t, ax_value value, const ax_spec *spec) {
  ax_spec whole = {0};
  ax_constraint_params params = {.mesh = *t->mesh, .specs = {1, spec != NULL ? (ax_spec *)spec : &whole}};
  return ax_bind1(&ax_prim_sharding_constraint, &params, &value, 1);
}

static void set(const typing *t, values *v, uint32_t id, ax_value value, const ax_spec *spec, bool says) {
  v->lies[id] = spec;
  v->value[id] = says && !ax_failed() ? constrained(t, value, spec) : value;
}

/* --- Operations --- */

static uint32_t axes_in(const ax_spec *spec, uint32_t d) { return spec != NULL && d < spec->rank ? spec->count[d] : 0; }

/* Adds the cuts of operand i to `known`, and counts it in `holders` for each factor that it cuts. False: refused, because an
   earlier operand is cut in another way, or because the operation does not keep a dimension that is cut. */
static bool learn(typing *t, const values *v, const ax_eqn *eqn, uint32_t i, ax_cuts *known, uint32_t *holders) {
  const ax_factored *tensor = &t->factoring.in[i];
  const ax_factors *factors = &t->factoring.factors;
  const ax_type *type = &v->old->types[eqn->in[i]];
  const ax_spec *spec = v->lies[eqn->in[i]];
  char text[SHOWN];
  ax_cuts own;
  if (spec == NULL) return true;
  ax_cuts_read(t->mesh, factors, tensor, type, spec, &own);
  for (uint32_t d = 0; d < type->rank; d++) {
    uint32_t kept = 0;
    for (uint32_t k = 0; k < tensor->count[d]; k++) {
      const uint32_t factor = tensor->factor[d][k];
      const ax_axis_list *mine = &own.by[factor];
      ax_axis_list *all = &known->by[factor];
      kept += mine->count;
      if (mine->count == 0) continue;
      holders[factor]++;
      if (all->count > 0 && (all->count != mine->count || memcmp(all->axis, mine->axis, mine->count) != 0)) {
        ax_reject(eqn->prim,
                  "operand %u: %s is cut otherwise than the operands before it along dimension %u, and nothing says which of them "
                  "is to be laid anew: constrain one",
                  i, shown(t, type, spec, text, sizeof text), d);
        return false;
      }
      *all = *mine;
    }
    if (kept == axes_in(spec, d)) continue;
    ax_reject(eqn->prim, "operand %u: %s is cut along dimension %u, which is not kept here: constrain it to be whole before", i,
              shown(t, type, spec, text, sizeof text), d);
    return false;
  }
  return true;
}

/* Whether the equation has one result, used once, by a constraint. */
static bool is_resolved(const values *v, const ax_eqn *eqn) {
  if (eqn->out_count != 1 || v->uses[eqn->out] != 1) return false;
  const uint32_t user = v->user[eqn->out];
  return user != AX_NONE && v->old->eqns[user].prim == &ax_prim_sharding_constraint;
}

/* Whether several operands are cut along a factor that is combined. Then only a constraint can say how the result lies. */
static bool is_ambiguous(const typing *t, const uint32_t *holders) {
  for (uint32_t k = 0; k < t->factoring.factors.count; k++)
    if (t->factoring.factors.kind[k] != AX_FACTOR_ALONG && holders[k] > 1) return true;
  return false;
}

static bool has_twice(const ax_spec *spec) {
  ax_axis_set seen = 0;
  for (uint32_t d = 0; d < spec->rank; d++)
    for (uint32_t i = 0; i < spec->count[d]; i++) {
      if (seen >> spec->axis[d][i] & 1) return true;
      seen |= (ax_axis_set)1 << spec->axis[d][i];
    }
  return false;
}

/* Whether each dimension of the result has all axes by which its factors are cut. It lacks those of a factor that stands behind
   one that is not cut to single elements. */
static bool keeps_all(const ax_factored *tensor, uint32_t rank, const ax_cuts *known, const ax_spec *spec) {
  for (uint32_t d = 0; d < rank; d++) {
    uint32_t count = 0;
    for (uint32_t k = 0; k < tensor->count[d]; k++) count += known->by[tensor->factor[d][k]].count;
    if (count != axes_in(spec, d)) return false;
  }
  return true;
}

static void type_operation(typing *t, values *v, const ax_eqn *eqn, const ax_value *out) {
  ax_cuts known;
  uint32_t holders[AX_MAX_FACTORS] = {0};
  bool cut = false;
  char text[SHOWN];
  memset(&known, 0, sizeof known);
  if (!ax_factoring_of(&t->factoring, v->old, eqn)) return;
  for (uint32_t i = 0; i < eqn->in_count; i++) {
    cut = cut || v->lies[eqn->in[i]] != NULL;
    if (!learn(t, v, eqn, i, &known, holders)) return;
  }
  const bool ambiguous = is_ambiguous(t, holders);
  if (ambiguous && !is_resolved(v, eqn)) {
    const ax_spec *spec = v->lies[eqn->in[0]];
    ax_reject(eqn->prim,
              "operands are cut along what is combined (the first is %s), so that it is not said how the result lies: a constraint "
              "on it does",
              shown(t, &v->old->types[eqn->in[0]], spec, text, sizeof text));
    return;
  }
  for (uint32_t k = 0; k < eqn->out_count; k++) {
    const ax_type *type = &v->old->types[eqn->out + k];
    const ax_spec spec = ax_cuts_write(t->mesh, &t->factoring.factors, &t->factoring.out[k], type->rank, &known);
    if (!keeps_all(&t->factoring.out[k], type->rank, &known, &spec)) {
      ax_reject(eqn->prim, "operand 0: %s is cut so that result %u, %s, has no dimension of it: constrain it to be whole before",
                shown(t, &v->old->types[eqn->in[0]], v->lies[eqn->in[0]], text, sizeof text), k, ax_type_string(type, NULL));
      return;
    }
    if (has_twice(&spec)) {
      ax_reject(
          eqn->prim,
          "an axis would cut two dimensions of result %u, as operands are cut by it along different ones: constrain one of them",
          k);
      return;
    }
    set(t, v, eqn->out + k, out[k], unique(t, &spec), cut && !ambiguous);
  }
}

/* --- Equations that say how values lie --- */

static void type_constraint(typing *t, values *v, const ax_eqn *eqn) {
  const ax_constraint_params *params = eqn->params;
  ax_spec spec = params->specs.v[0];
  const ax_spec *before = v->lies[eqn->in[0]];
  for (uint32_t d = 0; d < AX_MAX_RANK; d++) {
    if ((spec.open >> d & 1) == 0) continue;
    spec.count[d] = (uint8_t)axes_in(before, d);
    if (spec.count[d] > 0) memcpy(spec.axis[d], before->axis[d], sizeof spec.axis[d]);
  }
  spec.open = 0;
  spec.priority = 0;
  if (has_twice(&spec)) ax_reject(eqn->prim, "an axis would cut two dimensions: what the spec leaves open is cut by it already");
  else set(t, v, eqn->out, v->value[eqn->in[0]], unique(t, &spec), true);
}

static void type_shard_map(typing *t, values *v, const ax_eqn *eqn, const ax_value *out) {
  const ax_shard_map_params *params = eqn->params;
  char has[SHOWN], takes[SHOWN];
  const ax_mesh plain = ax_mesh_plain(&params->mesh);
  if (!ax_mesh_equal(&plain, t->mesh, false)) {
    ax_reject(eqn->prim, "it is over another mesh than the constraints");
    return;
  }
  for (uint32_t i = 0; i < eqn->in_count; i++) {
    const ax_spec *lies = v->lies[eqn->in[i]], *wanted = unique(t, &params->in_specs.v[i]);
    const ax_type *type = &v->old->types[eqn->in[i]];
    if (lies == wanted) continue;
    ax_reject(eqn->prim, "operand %u: it is %s, and taken as %s: constrain it so before", i, shown(t, type, lies, has, sizeof has),
              shown(t, type, wanted, takes, sizeof takes));
    return;
  }
  for (uint32_t k = 0; k < eqn->out_count; k++) set(t, v, eqn->out + k, out[k], unique(t, &params->out_specs.v[k]), true);
}

/* --- Equations that hold programs --- */

/* Whether two layouts that must be the same are. False: refused, with both types in the message. */
static bool same(const typing *t, const ax_eqn *eqn, const char *what, uint32_t number, const ax_type *type, const ax_spec *a,
                 const char *verb, const ax_spec *b) {
  char first[SHOWN], second[SHOWN];
  if (a == b || ax_failed()) return !ax_failed();
  ax_reject(eqn->prim, "%s %u: it is %s, and %s %s", what, number, shown(t, type, a, first, sizeof first), verb,
            shown(t, type, b, second, sizeof second));
  return false;
}

/* A region's operands and results, as its programs are to be typed for them. */
typedef struct region {
  typing *t;
  const values *v;
  const ax_eqn *eqn;
  const ax_spec **in, **out;
  bool *given; /* results that a program has given already */
} region;

/* How input i of program k lies: as its operand does. *out NULL: whole. False: refused. */
static bool type_input(const region *r, uint32_t k, uint32_t i, const ax_spec **out) {
  const ax_region_link link = ax_region_link_in(r->eqn, k, i);
  char text[SHOWN];
  *out = link.how != AX_LINK_OWN ? r->in[link.number] : NULL;
  if (link.how != AX_LINK_SLICE) return true;
  if (axes_in(*out, 0) > 0) {
    ax_reject(r->eqn->prim, "what it goes over is %s, cut along the dimension that it goes over: constrain that to be whole before",
              shown(r->t, &r->v->old->types[r->eqn->in[link.number]], *out, text, sizeof text));
    return false;
  }
  *out = moved(r->t, *out, -1);
  return true;
}

/* How a result lies, from output j of program k: carries come round as they went in, and branches agree. False: refused. */
static bool type_output(const region *r, const ax_program *program, uint32_t k, uint32_t j, const ax_spec *const *in,
                        const ax_spec *made) {
  const ax_region_link link = ax_region_link_out(r->eqn, k, j);
  const ax_type *type = &program->types[program->outs[j]];
  if (link.how == AX_LINK_OWN) return true;
  if (link.carry != AX_NONE &&
      !same(r->t, r->eqn, "carry", link.number, &program->types[link.carry], in[link.carry], "comes round as", made))
    return false;
  if (r->given[link.number] && !same(r->t, r->eqn, "result", link.number, type, r->out[link.number], "another branch gives", made))
    return false;
  r->out[link.number] = link.how == AX_LINK_SLICE ? moved(r->t, made, 1) : made;
  r->given[link.number] = true;
  return true;
}

static ax_program *type_held(const region *r, const ax_program *program, uint32_t k) {
  const ax_spec **in = ax_trace_alloc(program->in_count * sizeof in[0]);
  for (uint32_t i = 0; in != NULL && i < program->in_count; i++)
    if (!type_input(r, k, i, &in[i])) return NULL;
  const typed *made = in != NULL ? type_program(r->t, program, in) : NULL;
  for (uint32_t j = 0; made != NULL && j < program->out_count; j++)
    if (!type_output(r, program, k, j, in, made->out[j])) return NULL;
  return made != NULL ? made->program : NULL;
}

/* The parameters with programs typed. NULL: the trace has failed. */
static void *type_params(const region *r) {
  void *made = ax_eqn_own_params(r->eqn, &r->t->memo.arena);
  ax_program **held;
  if (made == NULL) ax_fail(ax_out_of_memory(r->eqn->prim->params_bytes));
  for (uint32_t k = 0; !ax_failed() && (held = ax_params_program(r->eqn->prim, made, k)) != NULL; k++)
    *held = type_held(r, *held, k);
  return ax_failed() ? NULL : made;
}

/* Types a region's programs for its operands and binds it. A region with derivatives of its own is bound as a call of its first
   program, because derivatives have been taken by now. */
static void type_region(typing *t, values *v, const ax_eqn *eqn, const ax_value *in, ax_value *out) {
  const ax_closed_call_params called = {eqn->prim->derived ? ax_eqn_program(eqn, 0) : NULL};
  ax_eqn call = *eqn;
  if (eqn->prim->derived) call.prim = &ax_prim_closed_call, call.params = (void *)&called;
  region r = {t, v, &call, ax_trace_alloc(eqn->in_count * sizeof r.in[0]), ax_trace_alloc(eqn->out_count * sizeof r.out[0]),
              ax_trace_alloc(eqn->out_count + 1)};
  if (ax_failed()) return;
  for (uint32_t i = 0; i < eqn->in_count; i++) r.in[i] = v->lies[eqn->in[i]];
  void *params = type_params(&r);
  if (params == NULL) return;
  ax_bind(call.prim, params, in, eqn->in_count, out, eqn->out_count);
  for (uint32_t k = 0; k < eqn->out_count && !ax_failed(); k++) set(t, v, eqn->out + k, out[k], r.out[k], r.out[k] != NULL);
}

/* --- Programs --- */

static void type_eqn(typing *t, values *v, const ax_eqn *eqn) {
  ax_value *in = ax_trace_alloc(eqn->in_count * sizeof in[0]), *out = ax_trace_alloc(eqn->out_count * sizeof out[0]);
  if (ax_failed()) return;
  for (uint32_t i = 0; i < eqn->in_count; i++) in[i] = v->value[eqn->in[i]];
  if (eqn->prim == &ax_prim_sharding_constraint) {
    type_constraint(t, v, eqn);
    return;
  }
  if (eqn->prim->kind == AX_REGION && eqn->prim != &ax_prim_shard_map) {
    type_region(t, v, eqn, in, out);
    return;
  }
  ax_bind(eqn->prim, eqn->params, in, eqn->in_count, out, eqn->out_count);
  if (ax_failed()) return;
  if (eqn->prim == &ax_prim_shard_map) type_shard_map(t, v, eqn, out);
  else type_operation(t, v, eqn, out);
}

static bool values_init(values *v, const ax_program *program) {
  *v = (values){program, ax_trace_alloc(program->value_count * sizeof v->value[0]),
                ax_trace_alloc(program->value_count * sizeof v->lies[0]), ax_trace_alloc(program->value_count * sizeof v->uses[0]),
                ax_trace_alloc(program->value_count * sizeof v->user[0])};
  if (ax_failed()) return false;
  memset(v->lies, 0, program->value_count * sizeof v->lies[0]);
  memset(v->uses, 0, program->value_count * sizeof v->uses[0]);
  for (uint32_t id = 0; id < program->value_count; id++) v->user[id] = AX_NONE;
  for (uint32_t e = 0; e < program->eqn_count; e++)
    for (uint32_t i = 0; i < program->eqns[e].in_count; i++) {
      v->uses[program->eqns[e].in[i]]++;
      v->user[program->eqns[e].in[i]] = e;
    }
  for (uint32_t k = 0; k < program->out_count; k++) v->uses[program->outs[k]]++;
  return true;
}

/* In the trace in progress. NULL: it has failed. */
static ax_value *walk(typing *t, const ax_program *program, const ax_spec *const *in, const ax_spec **out_specs) {
  values v;
  ax_value *outs = ax_trace_alloc(program->out_count * sizeof outs[0]);
  if (outs == NULL || !values_init(&v, program)) return NULL;
  for (uint32_t i = 0; i < program->in_count; i++) v.value[i] = ax_builder_input(ax_builder_current(), &program->types[i]);
  for (uint32_t i = 0; i < program->in_count && !ax_failed(); i++)
    set(t, &v, i, v.value[i], in != NULL ? in[i] : NULL, in != NULL && in[i] != NULL);
  for (uint32_t e = 0; e < program->eqn_count && !ax_failed(); e++) {
    ax_builder_stem(ax_builder_current(), &program->eqns[e]);
    type_eqn(t, &v, &program->eqns[e]);
  }
  for (uint32_t k = 0; k < program->out_count && !ax_failed(); k++) {
    outs[k] = v.value[program->outs[k]];
    out_specs[k] = v.lies[program->outs[k]];
  }
  return ax_failed() ? NULL : outs;
}

static ax_status build(typing *t, const ax_program *program, const ax_spec *const *in, const ax_spec **out_specs, bool seals,
                       ax_program **made) {
  ax_builder builder;
  ax_builder_begin(&builder, &program->axes);
  builder.seals = seals;
  ax_value *outs = walk(t, program, in, out_specs);
  return ax_builder_finish(&builder, outs, outs != NULL ? program->out_count : 0, made, NULL, NULL);
}

static const typed *type_program(typing *t, const ax_program *program, const ax_spec *const *in) {
  ax_memo_entry *entry = ax_memo_ask(&t->memo, "typed", program, in, program->in_count * sizeof in[0]);
  if (entry != NULL && entry->known) return entry->data;
  typed *made = ax_arena_alloc(&t->memo.arena, sizeof *made);
  const ax_spec **out = ax_arena_alloc(&t->memo.arena, program->out_count * sizeof out[0]);
  if (entry == NULL || made == NULL || out == NULL) {
    ax_fail(ax_out_of_memory(0));
    return NULL;
  }
  *made = (typed){.out = out};
  ax_status status = build(t, program, in, out, true, &made->program);
  if (status != AX_OK) {
    ax_fail(status);
    return NULL;
  }
  entry->made[0] = made->program;
  entry->data = made;
  entry->known = true;
  return made;
}

/* The mesh of all constraints; *out NULL: there are none. */
static ax_status find_mesh(ax_memo *memo, const ax_program *program, const ax_mesh **out) {
  ax_memo_entry *entry = ax_memo_ask(memo, "mesh", program, NULL, 0);
  if (entry == NULL) return ax_out_of_memory(0);
  if (entry->known) return AX_OK;
  entry->known = true;
  for (uint32_t e = 0; e < program->eqn_count; e++) {
    const ax_eqn *eqn = &program->eqns[e];
    const ax_program *held;
    if (eqn->prim == &ax_prim_shard_map) continue;
    if (eqn->prim == &ax_prim_sharding_constraint) {
      const ax_mesh *mesh = &((const ax_constraint_params *)eqn->params)->mesh;
      if (*out != NULL && !ax_mesh_equal(*out, mesh, false))
        return ax_error(AX_INVALID_ARGUMENT, "explicit: there are constraints over more than one mesh");
      *out = mesh;
    }
    for (uint32_t k = 0; (held = ax_eqn_program(eqn, k)) != NULL; k++) AX_TRY(find_mesh(memo, held, out));
  }
  return AX_OK;
}

ax_status ax_program_explicit(const ax_program *program, ax_program **out) {
  typing t = {0};
  *out = NULL;
  AX_TRY(ax_require(program, "program"));
  const ax_spec **outs = ax_calloc((size_t)program->out_count + 1, sizeof outs[0]);
  ax_status status = outs != NULL ? find_mesh(&t.memo, program, &t.mesh) : ax_out_of_memory(0);
  if (status == AX_OK && t.mesh == NULL) *out = ax_program_retain((ax_program *)program);
  else if (status == AX_OK) status = build(&t, program, NULL, outs, false, out);
  ax_free(outs);
  ax_factoring_deinit(&t.factoring);
  ax_memo_deinit(&t.memo);
  return status;
}
