/* The partitioner, in its simplest form: a program becomes one shard_map over its mesh.

     a = mul x x                                  shard_map[data=4] x w {
     b = shard_map[data=4] a w { body }             a = mul x x                    the same on every device
     c = add b b                            -->     .. the slice of a of this device; body; its result's blocks joined ..
                                                    c = add b b
                                                  }

   What stands outside shard_maps is computed by every device, on whole arrays. The result of a shard_map stays in blocks until
   something needs it in another layout; then it is laid out anew by collectives and slices that show in the program (reshard.h).
   Inputs are laid out as their first user wants them, results as they are made. Programs in control flow are rebuilt the same way;
   what goes in and out of them is whole, but for constants and carries of scans that are taken and given in one layout.

   The mesh has a level for each depth of shard_maps inside one another; those at one depth must be over the same devices, and their
   meshes are refined into one (refine.h). Along the axes of deeper levels, values of outer bodies are the same everywhere.

   If any of the shard_maps is unchecked, the one made of them is, and a result that differs over more axes than its spec names is
   taken from the first device, as each of them would. */
#include "mesh/partition.h"

#include <stdio.h>
#include <string.h>

#include "mesh/refine.h"
#include "mesh/reshard.h"
#include "ir/flow.h"
#include "mesh/shard_map.h"
#include "mesh/sharding.h"
#include "prim/prims.h"
#include "prim/rules.h"
#include "prim/scan.h"

/* Of all shard_maps at one depth. */
typedef struct level {
  const ax_mesh **meshes; /* the different ones; borrowed */
  uint32_t mesh_count, mesh_capacity, first, count; /* its axes of the whole mesh */
} level;

/* What the axes of a program's environment are made of in the whole mesh. */
typedef struct scope {
  struct scope *next;
  uint32_t depth; /* shard_maps around it */
  ax_mesh axes;
  ax_axis_list runs[AX_MAX_AXES];
} scope;

/* A program met: searched for meshes, or rebuilt. */
typedef struct met {
  const ax_program *program;
  const scope *scope;  /* NULL: searched, at `depth` */
  uint32_t depth;
  ax_program *rebuilt; /* owned */
} met;

typedef struct partition {
  level *levels;
  uint32_t level_count, level_capacity;
  bool unchecked;
  ax_mesh mesh;
  ax_arena arena; /* for the time of the work */
  ax_memo memo;   /* likewise */
  scope *scopes;  /* the different ones */
  met *met; /* a hash table: a program held by many equations is one */
  uint32_t met_count, met_slots;
} partition;

/* --- Programs met --- */

static uint64_t met_hash(const met *m) {
  uint64_t hash = ax_hash_bytes(AX_HASH_SEED, &m->program, sizeof m->program);
  hash = ax_hash_bytes(hash, &m->scope, sizeof m->scope);
  return ax_hash_bytes(hash, &m->depth, sizeof m->depth);
}

static met *met_slot(met *table, uint32_t slots, const met *wanted) {
  size_t at = met_hash(wanted) & (slots - 1);
  while (table[at].program != NULL && (table[at].program != wanted->program || table[at].scope != wanted->scope ||
                                       table[at].depth != wanted->depth))
    at = (at + 1) & (slots - 1);
  return &table[at];
}

static ax_status met_grow(partition *p) {
  if (2 * p->met_count < p->met_slots) return AX_OK;
  uint32_t slots = p->met_slots > 0 ? 2 * p->met_slots : 16;
  met *table = ax_calloc(slots, sizeof table[0]);
  if (table == NULL) return ax_out_of_memory(slots * sizeof table[0]);
  for (uint32_t i = 0; i < p->met_slots; i++)
    if (p->met[i].program != NULL) *met_slot(table, slots, &p->met[i]) = p->met[i];
  ax_free(p->met);
  p->met = table;
  p->met_slots = slots;
  return AX_OK;
}

/* The entry for a program; `*is_new` when there was none. */
static ax_status meet(partition *p, const met *wanted, met **out, bool *is_new) {
  AX_TRY(met_grow(p));
  *out = met_slot(p->met, p->met_slots, wanted);
  *is_new = (*out)->program == NULL;
  if (*is_new) {
    **out = *wanted;
    p->met_count++;
  }
  return AX_OK;
}

/* --- The mesh --- */

static ax_status add_mesh(partition *p, uint32_t depth, const ax_mesh *mesh) {
  while (p->level_count <= depth) {
    AX_TRY(ax_grow(&p->levels, sizeof p->levels[0], p->level_count, 1, &p->level_capacity));
    p->levels[p->level_count++] = (level){0};
  }
  level *l = &p->levels[depth];
  for (uint32_t i = 0; i < l->mesh_count; i++)
    if (ax_mesh_equal(l->meshes[i], mesh, false)) return AX_OK;
  AX_TRY(ax_grow(&l->meshes, sizeof l->meshes[0], l->mesh_count, 1, &l->mesh_capacity));
  l->meshes[l->mesh_count++] = mesh;
  return AX_OK;
}

static ax_status find_meshes(partition *p, const ax_program *program, uint32_t depth) {
  met *entry;
  bool is_new;
  AX_TRY(meet(p, &(met){.program = program, .depth = depth}, &entry, &is_new));
  for (uint32_t i = 0; is_new && i < program->eqn_count; i++) {
    const ax_eqn *eqn = &program->eqns[i];
    if (eqn->prim == &ax_prim_shard_map) {
      const ax_shard_map_params *params = eqn->params;
      p->unchecked = p->unchecked || params->unchecked;
      AX_TRY(add_mesh(p, depth, &params->mesh));
      AX_TRY(find_meshes(p, params->body, depth + 1));
      continue;
    }
    for (uint32_t k = 0; k < eqn->prim->param_count; k++) {
      const ax_param *param = &eqn->prim->params[k];
      const void *field = ax_param_at(eqn, param);
      if (param->kind == AX_PARAM_PROGRAM) AX_TRY(find_meshes(p, *(ax_program *const *)field, depth));
      if (param->kind != AX_PARAM_PROGRAMS) continue;
      const ax_programs *programs = field;
      for (uint32_t j = 0; j < programs->count; j++) AX_TRY(find_meshes(p, programs->v[j], depth));
    }
  }
  return AX_OK;
}

static ax_status refuse(const ax_mesh *a, const ax_mesh *b) {
  int64_t devices[] = {ax_mesh_devices(a), ax_mesh_devices(b)};
  ax_text first = {0}, second = {0};
  ax_mesh_text(&first, a);
  ax_mesh_text(&second, b);
  const char *one = first.data != NULL ? first.data : "", *two = second.data != NULL ? second.data : "";
  ax_status status =
      devices[0] != devices[1]
          ? ax_error(AX_ABSENT, "shard_maps over meshes of %lld and %lld devices in one program: %s and %s",
                     (long long)devices[0], (long long)devices[1], one, two)
          : ax_error(AX_ABSENT, "shard_maps over the meshes %s and %s in one program: there is no mesh of %d axes or fewer that both "
                                "are made of", one, two, AX_MAX_AXES);
  ax_text_deinit(&first);
  ax_text_deinit(&second);
  return status;
}

/* Which two of a level's meshes have no common refinement; the last two in doubt (all may need too many axes together). */
static ax_status refuse_level(const level *l, uint32_t last) {
  ax_mesh refined;
  for (uint32_t i = 0; i < last; i++)
    if (!ax_mesh_refine(l->meshes[i], l->meshes[last], &refined)) return refuse(l->meshes[i], l->meshes[last]);
  return refuse(l->meshes[last - 1], l->meshes[last]);
}

static ax_status refine_level(partition *p, level *l) {
  ax_mesh refined = l->mesh_count > 0 ? *l->meshes[0] : (ax_mesh){0};
  for (uint32_t i = 1; i < l->mesh_count; i++) {
    ax_mesh next;
    if (!ax_mesh_refine(&refined, l->meshes[i], &next)) return refuse_level(l, i);
    refined = next;
  }
  l->first = p->mesh.count;
  l->count = refined.count;
  if (refined.count > AX_MAX_AXES - p->mesh.count)
    return ax_error(AX_ABSENT, "the meshes of shard_maps inside one another have more than %d axes together", AX_MAX_AXES);
  for (uint32_t i = 0; i < refined.count; i++)
    p->mesh.axis[p->mesh.count++] = (ax_axis){.size = refined.axis[i].size, .unchecked = p->unchecked};
  return AX_OK;
}

/* Names axis `axis` as wanted, or part `part` of it (-1: it is all of it), or as like that as a name that no other has can be. */
static void name_axis(ax_mesh *mesh, uint32_t axis, const char *wanted, int part) {
  enum { most = AX_MAX_NAME - 4 }; /* bytes that "_15" and the NUL leave */
  char name[AX_MAX_NAME];
  snprintf(name, sizeof name, "%s", wanted);
  if (part >= 0) snprintf(name, sizeof name, "%.*s_%u", most, wanted, (unsigned)part % AX_MAX_AXES);
  for (unsigned i = 0; ax_mesh_find(mesh, name) >= 0; i++)
    snprintf(name, sizeof name, "%.*s_%u", most, wanted, i % (2 * AX_MAX_AXES));
  memcpy(mesh->axis[axis].name, name, sizeof name);
}

/* An axis that is one of a mesh's has its name; one that is only a part of others is named after the first of them. */
static void name_level(partition *p, const level *l, bool parts) {
  for (uint32_t m = 0; m < l->mesh_count; m++) {
    ax_axis_list runs[AX_MAX_AXES];
    ax_mesh_runs(&p->mesh, l->first, l->meshes[m], runs);
    for (uint32_t i = 0; i < l->meshes[m]->count; i++) {
      const char *name = l->meshes[m]->axis[i].name;
      for (uint32_t k = 0; k < runs[i].count && parts == (runs[i].count > 1); k++)
        if (p->mesh.axis[runs[i].axis[k]].name[0] == '\0') name_axis(&p->mesh, runs[i].axis[k], name, parts ? (int)k : -1);
    }
  }
}

static ax_status make_mesh(partition *p) {
  for (uint32_t i = 0; i < p->level_count; i++) AX_TRY(refine_level(p, &p->levels[i]));
  for (uint32_t i = 0; i < p->level_count; i++) name_level(p, &p->levels[i], false);
  for (uint32_t i = 0; i < p->level_count; i++) name_level(p, &p->levels[i], true);
  return ax_mesh_check(&p->mesh);
}

/* --- From a program's axes to those of the whole mesh --- */

static ax_axis_set set_here(const scope *s, ax_axis_set set) {
  ax_axis_set here = 0;
  for (uint32_t i = 0; i < s->axes.count; i++)
    for (uint32_t k = 0; (set >> i & 1) != 0 && k < s->runs[i].count; k++) here |= (ax_axis_set)1 << s->runs[i].axis[k];
  return here;
}

static ax_type type_here(const partition *p, const scope *s, const ax_type *type) {
  ax_type here = *type;
  ax_axis_set checked = ax_checked_axes(&p->mesh);
  here.spread.varying = set_here(s, type->spread.varying) & checked;
  here.spread.reduced = set_here(s, type->spread.reduced) & checked;
  here.spread.unreduced = set_here(s, type->spread.unreduced) & checked;
  if (here.spread.unreduced == 0) here.spread.kind = AX_UNREDUCED_SUM;
  return here;
}

static ax_axes names_here(const partition *p, const scope *s, const ax_axes *names) {
  ax_axes here = {0};
  for (uint32_t i = 0; i < names->count; i++) {
    int axis = ax_mesh_find(&s->axes, names->name[i]);
    for (uint32_t k = 0; axis >= 0 && k < s->runs[axis].count; k++)
      memcpy(here.name[here.count++], p->mesh.axis[s->runs[axis].axis[k]].name, AX_MAX_NAME);
  }
  return here;
}

/* `outer`: how many axes of the scope come before those of the mesh that the spec is of. NULL: no memory. */
static const ax_spec *spec_here(partition *p, const scope *s, uint32_t outer, const ax_spec *spec) {
  ax_spec *here = ax_arena_alloc(&p->arena, sizeof *here);
  if (here == NULL) return NULL;
  here->rank = spec->rank;
  for (uint32_t d = 0; d < spec->rank; d++)
    for (uint32_t i = 0; i < spec->count[d]; i++) {
      const ax_axis_list *run = &s->runs[outer + spec->axis[d][i]];
      for (uint32_t k = 0; k < run->count; k++) here->axis[d][here->count[d]++] = run->axis[k];
    }
  return here;
}

/* Of the body of a shard_map. NULL: no memory. */
static const scope *body_scope(partition *p, const scope *outer, const ax_shard_map_params *params) {
  scope s = *outer;
  s.depth++;
  s.axes = params->body->axes;
  ax_mesh_runs(&p->mesh, p->levels[outer->depth].first, &params->mesh, s.runs + outer->axes.count);
  for (const scope *known = p->scopes; known != NULL; known = known->next)
    if (known->depth == s.depth && ax_mesh_equal(&known->axes, &s.axes, true) && memcmp(known->runs, s.runs, sizeof s.runs) == 0)
      return known;
  scope *made = ax_arena_copy(&p->arena, &s, sizeof s);
  if (made == NULL) return NULL;
  made->next = p->scopes;
  return p->scopes = made;
}

/* --- The walk --- */

static void walk(partition *p, const scope *s, const ax_program *program, ax_held *held);

/* A type of which each device holds the block that `spec` says; NULL: the whole. */
static ax_type block_here(const partition *p, const scope *s, const ax_type *type, const ax_spec *spec) {
  ax_type here = type_here(p, s, type);
  if (spec == NULL) return here;
  ax_status status = ax_shard_type(&here, spec, &p->mesh, &here);
  if (status != AX_OK) ax_fail(status);
  here.spread.varying |= ax_spec_set(spec) & ax_checked_axes(&p->mesh);
  return here;
}

/* The block, varying as its type does; of spec NULL: the whole. */
static ax_value held_here(const partition *p, ax_held *held, const ax_spec *spec) {
  if (spec == NULL) return ax_held_whole(held);
  ax_value value = ax_held_as(held, spec);
  if (ax_failed()) return value;
  return ax_vary_to(value, ax_typeof(value).spread.varying | (ax_spec_set(spec) & ax_checked_axes(&p->mesh)));
}

/* A program held by an equation: the same on the whole mesh. How what goes in and out is laid out, by input and result; NULL, or NULL
   of one: whole. */
static ax_status rebuild_body(partition *p, const scope *s, const ax_program *program, const ax_spec *const *in_specs,
                              const ax_spec *const *out_specs, ax_program **out) {
  ax_builder builder;
  ax_builder_begin(&builder, &p->mesh);
  builder.seals = true;
  ax_held *held = ax_arena_alloc(&p->arena, program->value_count * sizeof held[0]);
  ax_value *outs = ax_trace_alloc(program->out_count * sizeof outs[0]);
  if (held == NULL) ax_fail(ax_out_of_memory(program->value_count * sizeof held[0]));
  for (uint32_t i = 0; held != NULL && i < program->in_count; i++) {
    held[i].spec = in_specs != NULL ? in_specs[i] : NULL;
    ax_type type = block_here(p, s, &program->types[i], held[i].spec);
    held[i].value = ax_builder_input(&builder, &type);
  }
  if (outs != NULL && !ax_failed()) {
    walk(p, s, program, held);
    for (uint32_t k = 0; k < program->out_count; k++)
      outs[k] = held_here(p, &held[program->outs[k]], out_specs != NULL ? out_specs[k] : NULL);
  }
  return ax_builder_finish(&builder, outs, outs != NULL ? program->out_count : 0, out, NULL, NULL);
}

/* Borrowed; NULL: the trace has failed. */
static ax_program *rebuilt(partition *p, const scope *s, const ax_program *program) {
  const met wanted = {.program = program, .scope = s, .depth = s->depth};
  met *entry;
  bool is_new;
  ax_program *made = NULL;
  ax_status status = meet(p, &wanted, &entry, &is_new);
  if (status == AX_OK && !is_new) return entry->rebuilt;
  if (status == AX_OK) status = rebuild_body(p, s, program, NULL, NULL, &made);
  if (status == AX_OK) met_slot(p->met, p->met_slots, &wanted)->rebuilt = made; /* the table may have moved */
  else ax_fail(status);
  return made;
}

/* The equation's parameters, in the names of the whole mesh. NULL: there are none, or the trace has failed. */
static void *params_here(partition *p, const scope *s, const ax_eqn *eqn) {
  const ax_prim *prim = eqn->prim;
  char *made = prim->params_bytes > 0 ? ax_trace_alloc(prim->params_bytes) : NULL;
  if (made == NULL) return NULL;
  memcpy(made, eqn->params, prim->params_bytes);
  for (uint32_t i = 0; i < prim->param_count && !ax_failed(); i++) {
    const void *old = ax_param_at(eqn, &prim->params[i]);
    void *field = made + prim->params[i].offset;
    if (prim->params[i].kind == AX_PARAM_AXES) *(ax_axes *)field = names_here(p, s, old);
    if (prim->params[i].kind == AX_PARAM_PROGRAM) *(ax_program **)field = rebuilt(p, s, *(ax_program *const *)old);
    if (prim->params[i].kind != AX_PARAM_PROGRAMS) continue;
    ax_programs *programs = field;
    ax_program **v = ax_trace_alloc(programs->count * sizeof v[0]);
    for (uint32_t k = 0; v != NULL && k < programs->count && !ax_failed(); k++) v[k] = rebuilt(p, s, programs->v[k]);
    programs->v = v;
  }
  return made;
}

/* On whole values. */
static void copy_eqn(partition *p, const scope *s, const ax_eqn *eqn, ax_held *held) {
  ax_value *in = ax_trace_alloc(eqn->in_count * sizeof in[0]), *out = ax_trace_alloc(eqn->out_count * sizeof out[0]);
  for (uint32_t i = 0; in != NULL && i < eqn->in_count; i++) in[i] = ax_held_whole(&held[eqn->in[i]]);
  void *params = params_here(p, s, eqn);
  if (ax_failed()) return;
  ax_bind(eqn->prim, params, in, eqn->in_count, out, eqn->out_count);
  for (uint32_t k = 0; k < eqn->out_count; k++) held[eqn->out + k].value = out[k];
}

/* --- Carries --- */

/* The layouts that equations take operands and give results in. Arrays of the counts, NULL entries at first: whole. False: no memory. */
static bool shard_map_specs(partition *p, const scope *s, const ax_eqn *eqn, const ax_spec **in, const ax_spec **out) {
  const ax_shard_map_params *params = eqn->params;
  const scope *inner = body_scope(p, s, params);
  for (uint32_t i = 0; inner != NULL && i < eqn->in_count; i++)
    if ((in[i] = spec_here(p, inner, s->axes.count, &params->in_specs.v[i])) == NULL) return false;
  for (uint32_t k = 0; inner != NULL && k < eqn->out_count; k++)
    if ((out[k] = spec_here(p, inner, s->axes.count, &params->out_specs.v[k])) == NULL) return false;
  return inner != NULL;
}

static bool program_specs(partition *p, const scope *s, const ax_program *program, const ax_spec **in, const ax_spec **out, bool *uniform);

/* A carry that the body takes and gives in one layout stays in it from one iteration to the next; so does a constant of which every use
   is in one layout. */
static bool scan_specs(partition *p, const scope *s, const ax_eqn *eqn, const ax_spec **in, const ax_spec **out) {
  const ax_scan_params *params = eqn->params;
  bool *uniform = ax_arena_alloc(&p->arena, eqn->in_count);
  if (uniform == NULL || !program_specs(p, s, params->body, in, out, uniform)) return false;
  for (uint32_t i = 0; i < eqn->in_count; i++) {
    int64_t carry = (int64_t)i - params->num_consts;
    bool is_carry = carry >= 0 && carry < params->num_carry;
    bool stays = is_carry ? in[i] != NULL && out[carry] != NULL && ax_spec_equal(in[i], out[carry]) : carry < 0 && uniform[i];
    if (!stays || ax_spec_set(in[i]) == 0) in[i] = NULL;
    if (in[i] == NULL && is_carry) out[carry] = NULL;
  }
  for (uint32_t k = (uint32_t)params->num_carry; k < eqn->out_count; k++) out[k] = NULL;
  return true;
}

static bool eqn_specs(partition *p, const scope *s, const ax_eqn *eqn, const ax_spec ***in, const ax_spec ***out) {
  *in = ax_arena_alloc(&p->arena, eqn->in_count * sizeof **in);
  *out = ax_arena_alloc(&p->arena, eqn->out_count * sizeof **out);
  if (*in == NULL || *out == NULL) return false;
  if (eqn->prim == &ax_prim_shard_map) return shard_map_specs(p, s, eqn, *in, *out);
  return eqn->prim != &ax_prim_scan || scan_specs(p, s, eqn, *in, *out);
}

/* Of a program: its inputs as their first user takes them, its results as they are made. uniform: by input, whether all its users take it
   so. */
static bool program_specs(partition *p, const scope *s, const ax_program *program, const ax_spec **in, const ax_spec **out, bool *uniform) {
  bool *used = ax_arena_alloc(&p->arena, program->in_count);
  const ax_spec **made = ax_arena_alloc(&p->arena, program->value_count * sizeof made[0]), **takes, **gives;
  if (used == NULL || made == NULL) return false;
  for (uint32_t i = 0; i < program->eqn_count; i++) {
    const ax_eqn *eqn = &program->eqns[i];
    if (!eqn_specs(p, s, eqn, &takes, &gives)) return false;
    for (uint32_t k = 0; k < eqn->in_count; k++) {
      uint32_t id = eqn->in[k];
      if (id >= program->in_count) continue;
      if (!used[id]) in[id] = takes[k];
      uniform[id] = takes[k] != NULL && (!used[id] || (uniform[id] && ax_spec_equal(in[id], takes[k])));
      used[id] = true;
    }
    for (uint32_t k = 0; k < eqn->out_count; k++) made[eqn->out + k] = gives[k];
  }
  for (uint32_t k = 0; k < program->out_count; k++) {
    out[k] = made[program->outs[k]];
    if (program->outs[k] < program->in_count) uniform[program->outs[k]] = false;
  }
  return true;
}

static void copy_scan(partition *p, const scope *s, const ax_eqn *eqn, ax_held *held) {
  ax_scan_params params = *(const ax_scan_params *)eqn->params;
  const ax_spec **in_specs, **out_specs;
  bool any = false;
  if (!eqn_specs(p, s, eqn, &in_specs, &out_specs)) ax_fail(ax_out_of_memory(0));
  for (uint32_t i = 0; i < eqn->in_count && !ax_failed(); i++) any = any || in_specs[i] != NULL;
  if (ax_failed()) return;
  if (!any) {
    copy_eqn(p, s, eqn, held);
    return;
  }
  ax_value *in = ax_trace_alloc(eqn->in_count * sizeof in[0]), *out = ax_trace_alloc(eqn->out_count * sizeof out[0]);
  for (uint32_t i = 0; in != NULL && i < eqn->in_count; i++) in[i] = held_here(p, &held[eqn->in[i]], in_specs[i]);
  ax_status status = ax_failed() ? AX_OK : rebuild_body(p, s, params.body, in_specs, out_specs, &params.body);
  if (status != AX_OK) ax_fail(status);
  if (ax_failed()) return;
  ax_bind(&ax_prim_scan, &params, in, eqn->in_count, out, eqn->out_count);
  ax_program_release(params.body);
  for (uint32_t k = 0; k < eqn->out_count; k++) held[eqn->out + k] = (ax_held){.value = out[k], .spec = out_specs[k]};
}

/* --- shard_maps --- */

/* The axes of its own mesh along which the results of an unchecked body differ: of the body's environment. NULL: the trace has
   failed. */
static const ax_axis_set *differing(partition *p, const ax_shard_map_params *params) {
  const ax_program *body = params->body;
  uint32_t outer = body->axes.count - params->mesh.count;
  ax_axis_set *in = ax_arena_alloc(&p->arena, body->in_count * sizeof in[0]);
  for (uint32_t i = 0; in != NULL && i < body->in_count; i++) in[i] = ax_spec_set(&params->in_specs.v[i]) << outer;
  ax_flow flow = {.memo = &p->memo, .question = "differs"};
  const ax_axis_set *all = in != NULL ? ax_flow_program(&flow, body, in) : NULL;
  if (all == NULL) ax_fail(ax_out_of_memory(0));
  return all;
}

/* The body's inputs and results, on the whole mesh. False: no memory. */
static bool enter_body(partition *p, const scope *s, const scope *inner, const ax_eqn *eqn, ax_held *held, ax_held *inside) {
  const ax_shard_map_params *params = eqn->params;
  const ax_program *body = params->body;
  for (uint32_t i = 0; i < eqn->in_count; i++) {
    const ax_spec *spec = spec_here(p, inner, s->axes.count, &params->in_specs.v[i]);
    if (spec == NULL) return false;
    ax_type type = type_here(p, inner, &body->types[i]);
    inside[i].value = ax_vary_to(ax_held_as(&held[eqn->in[i]], spec), type.spread.varying);
  }
  walk(p, inner, body, inside);
  for (uint32_t k = 0; k < eqn->out_count && !ax_failed(); k++) {
    ax_held *result = &held[eqn->out + k];
    result->value = ax_held_whole(&inside[body->outs[k]]);
    result->spec = spec_here(p, inner, s->axes.count, &params->out_specs.v[k]);
    if (result->spec == NULL) return false;
  }
  return true;
}

static void enter(partition *p, const scope *s, const ax_eqn *eqn, ax_held *held) {
  const ax_shard_map_params *params = eqn->params;
  const ax_program *body = params->body;
  uint32_t outer = s->axes.count;
  const scope *inner = body_scope(p, s, params);
  ax_held *inside = ax_arena_alloc(&p->arena, body->value_count * sizeof inside[0]);
  const ax_axis_set *differs = params->unchecked ? differing(p, params) : NULL;
  if (inner == NULL || inside == NULL || !enter_body(p, s, inner, eqn, held, inside)) ax_fail(ax_out_of_memory(0));
  for (uint32_t k = 0; k < eqn->out_count && differs != NULL && !ax_failed(); k++) {
    ax_axis_set own = differs[body->outs[k]] >> outer << outer;
    held[eqn->out + k].uneven = set_here(inner, own) & ~ax_spec_set(held[eqn->out + k].spec);
  }
}

/* held: by value; those of the inputs are set. */
static void walk(partition *p, const scope *s, const ax_program *program, ax_held *held) {
  for (uint32_t i = 0; i < program->eqn_count && !ax_failed(); i++) {
    const ax_eqn *eqn = &program->eqns[i];
    ax_builder_stem(ax_builder_current(), eqn);
    if (eqn->prim == &ax_prim_shard_map) enter(p, s, eqn, held);
    else if (eqn->prim == &ax_prim_scan) copy_scan(p, s, eqn, held);
    else copy_eqn(p, s, eqn, held);
  }
}

/* --- The whole --- */

static ax_value input(const partition *p, ax_builder *builder, const ax_type *whole, const ax_spec *spec) {
  ax_type block;
  ax_status status = ax_shard_type(whole, spec, &p->mesh, &block);
  if (status != AX_OK) ax_fail(status);
  block.spread.varying = ax_spec_set(spec) & ax_checked_axes(&p->mesh);
  return ax_failed() ? ax_poison : ax_builder_input(builder, &block);
}

/* The body in a trace of its own, and the layouts of its inputs and results. */
static ax_status make_body(partition *p, const ax_program *program, ax_spec *in_specs, ax_spec *out_specs, ax_program **out) {
  const scope outside = {0};
  ax_builder builder;
  ax_builder_begin(&builder, &p->mesh);
  ax_held *held = ax_arena_alloc(&p->arena, program->value_count * sizeof held[0]);
  const ax_spec **wanted = ax_arena_alloc(&p->arena, program->in_count * sizeof wanted[0]);
  const ax_spec **given = ax_arena_alloc(&p->arena, program->out_count * sizeof given[0]);
  bool *uniform = ax_arena_alloc(&p->arena, program->in_count);
  ax_value *outs = ax_trace_alloc(program->out_count * sizeof outs[0]);
  if (held == NULL || wanted == NULL || given == NULL || uniform == NULL || !program_specs(p, &outside, program, wanted, given, uniform))
    ax_fail(ax_out_of_memory(0));
  for (uint32_t i = 0; i < program->in_count && !ax_failed(); i++) {
    held[i].spec = wanted[i];
    if (wanted[i] != NULL) in_specs[i] = *wanted[i];
    held[i].value = input(p, &builder, &program->types[i], &in_specs[i]);
  }
  if (!ax_failed()) walk(p, &outside, program, held);
  for (uint32_t k = 0; k < program->out_count && !ax_failed(); k++) {
    const ax_held *result = &held[program->outs[k]];
    outs[k] = result->value;
    if (result->spec != NULL) out_specs[k] = *result->spec;
  }
  return ax_builder_finish(&builder, outs, ax_failed() ? 0 : program->out_count, out, NULL, NULL);
}

/* The whole program: its inputs, one equation, its results. */
static ax_status wrap(partition *p, const ax_program *program, ax_program *body, ax_spec *in_specs, ax_spec *out_specs,
                      ax_program **out) {
  ax_shard_map_params params = {.mesh = p->mesh, .unchecked = p->unchecked, .in_specs = {program->in_count, in_specs},
                                .out_specs = {program->out_count, out_specs}, .body = body};
  for (uint32_t i = 0; i < params.mesh.count; i++) params.mesh.axis[i].unchecked = false;
  ax_builder builder;
  ax_builder_begin(&builder, &program->axes);
  ax_value *in = ax_trace_alloc(program->in_count * sizeof in[0]);
  ax_value *outs = ax_trace_alloc(program->out_count * sizeof outs[0]);
  for (uint32_t i = 0; in != NULL && i < program->in_count; i++) in[i] = ax_builder_input(&builder, &program->types[i]);
  if (!ax_failed()) ax_bind(&ax_prim_shard_map, &params, in, program->in_count, outs, program->out_count);
  return ax_builder_finish(&builder, outs, outs != NULL ? program->out_count : 0, out, NULL, NULL);
}

static ax_status make(partition *p, const ax_program *program, ax_program **out) {
  ax_program *body = NULL;
  AX_TRY(make_mesh(p));
  ax_spec *specs = ax_calloc((size_t)program->in_count + program->out_count + 1, sizeof specs[0]);
  if (specs == NULL) return ax_out_of_memory(0);
  ax_status status = make_body(p, program, specs, specs + program->in_count, &body);
  if (status == AX_OK) status = wrap(p, program, body, specs, specs + program->in_count, out);
  ax_program_release(body);
  ax_free(specs);
  return status;
}

static bool is_one_shard_map(const ax_program *program) {
  const ax_eqn *eqn = program->eqns;
  if (program->eqn_count != 1 || eqn->prim != &ax_prim_shard_map || eqn->in_count != program->in_count ||
      eqn->out_count != program->out_count)
    return false;
  for (uint32_t i = 0; i < eqn->in_count; i++)
    if (eqn->in[i] != i) return false;
  for (uint32_t k = 0; k < eqn->out_count; k++)
    if (program->outs[k] != eqn->out + k) return false;
  return true;
}

static void deinit(partition *p) {
  for (uint32_t i = 0; i < p->level_count; i++) ax_free(p->levels[i].meshes);
  ax_free(p->levels);
  for (uint32_t i = 0; i < p->met_slots; i++) ax_program_release(p->met[i].rebuilt);
  ax_free(p->met);
  ax_memo_deinit(&p->memo);
  ax_arena_deinit(&p->arena);
}

ax_status ax_program_partition(const ax_program *program, ax_program **out) {
  partition p = {0};
  *out = NULL;
  AX_TRY(ax_require(program, "program"));
  if (program->axes.count > 0)
    return ax_error(AX_INVALID_ARGUMENT, "partition: a per-device program, over the axes %s: put it in a shard_map",
                    ax_axis_set_string(ax_all_axes(&program->axes), &program->axes));
  ax_status status = find_meshes(&p, program, 0);
  if (status == AX_OK && (p.level_count == 0 || (p.level_count == 1 && is_one_shard_map(program))))
    *out = ax_program_retain((ax_program *)program);
  else if (status == AX_OK)
    status = make(&p, program, out);
  deinit(&p);
#ifndef NDEBUG
  if (status == AX_OK) status = ax_program_verify(*out);
  if (status != AX_OK) {
    ax_program_release(*out);
    *out = NULL;
  }
#endif
  return status;
}

ax_partitioned ax_partitioned_of(ax_program *program) {
  static const ax_mesh one_device;
  const ax_eqn *eqn = program->eqns;
  if (program->eqn_count != 1 || eqn->prim != &ax_prim_shard_map) return (ax_partitioned){.body = program, .mesh = &one_device};
  const ax_shard_map_params *params = eqn->params;
  return (ax_partitioned){params->body, &params->mesh, params->in_specs.v, params->out_specs.v};
}
