/* In which layouts programs take their inputs and give their results, found before anything is rebuilt.

   An input is taken as its uses take it: by shard_maps in the layouts of their specs, by programs in control flow as they take it in turn,
   by all other operations whole. Where some use takes it whole it comes whole, gathered once, where it is held. A result is given as it
   is made; one that is an input which nothing uses is as that is. So it goes through calls, cond, while and scan:

     call     also of a function with a derivative of its own: operands as the body takes them, results as it gives them
     cond     operands as all branches together take them; results in the first layout that a branch gives, for cutting what another
              gives whole costs nothing
     loops    a carry in the layout in which it is taken, if it comes round in blocks; one that is not used, in that in which it is given.
              A constant that all uses take in one layout stays in it; otherwise it is gathered once, outside. What scan goes over, and
              what it stacks, is laid out as its slices are

   Every program is looked at once for each scope it stands in. */
#include "mesh/partitioner.h"
#include "prim/cond.h"
#include "prim/prims.h"
#include "prim/rules.h"
#include "prim/scan.h"
#include "prim/while.h"

static const ax_use whole_use = {.used = true, .whole = true, .uniform = true};

static ax_use use_as(const ax_spec *spec) { return spec == NULL ? whole_use : (ax_use){.used = true, .uniform = true, .first = spec}; }

const ax_spec *ax_use_layout(const ax_use *use, const ax_spec *held) {
  if (!use->used) return held;
  if (use->whole) return NULL;
  return use->uniform || held != NULL ? use->first : NULL; /* several layouts are cut from what is whole */
}

static void add_use(ax_use *use, const ax_use *more) {
  if (!more->used) return;
  if (!use->used) {
    *use = *more;
    return;
  }
  use->whole = use->whole || more->whole;
  use->uniform = use->uniform && more->uniform && use->first == more->first;
}

/* How an equation that holds a program uses an operand, when the program uses the input it becomes so. */
static ax_use handed(const ax_use *use) {
  ax_use made = *use;
  if (made.whole) made = whole_use;
  return made;
}

/* A constant of a loop: gathered outside, unless all uses agree. */
static ax_use loop_constant(const ax_use *use) { return use->used && !use->uniform ? whole_use : handed(use); }

/* --- Equations --- */

static void shard_map_layouts(ax_partitioner *p, const ax_scope *s, const ax_eqn *eqn, ax_layouts *l) {
  const ax_shard_map_params *params = eqn->params;
  const ax_scope *inner = ax_scope_body(p, s, params);
  for (uint32_t i = 0; inner != NULL && i < eqn->in_count; i++)
    l->in[i] = use_as(ax_scope_spec(p, inner, s->axes.count, &params->in_specs.v[i]));
  for (uint32_t k = 0; inner != NULL && k < eqn->out_count; k++)
    l->out[k].spec = ax_scope_spec(p, inner, s->axes.count, &params->out_specs.v[k]);
}

static void call_layouts(ax_partitioner *p, const ax_scope *s, const ax_eqn *eqn, ax_layouts *l) {
  const ax_layouts *body = ax_layouts_of_program(p, s, ax_eqn_program(eqn, 0));
  for (uint32_t i = 0; body != NULL && i < eqn->in_count; i++) l->in[i] = handed(&body->in[i]);
  for (uint32_t k = 0; body != NULL && k < eqn->out_count; k++) l->out[k] = body->out[k];
}

/* What branches give of one result: of two layouts the first, of two inputs that are the same that one. */
static ax_made either(const ax_made *a, const ax_made *b) {
  if (a->spec != NULL || b->spec != NULL) return (ax_made){a->spec != NULL ? a->spec : b->spec, AX_NONE};
  return a->from == b->from ? *a : (ax_made){NULL, AX_NONE};
}

static void cond_layouts(ax_partitioner *p, const ax_scope *s, const ax_eqn *eqn, ax_layouts *l) {
  const ax_programs *branches = &((const ax_cond_params *)eqn->params)->branches;
  l->in[0] = whole_use;
  for (uint32_t b = 0; b < branches->count; b++) {
    const ax_layouts *branch = ax_layouts_of_program(p, s, branches->v[b]);
    if (branch == NULL) return;
    for (uint32_t i = 1; i < eqn->in_count; i++) add_use(&l->in[i], &branch->in[i - 1]);
    for (uint32_t k = 0; k < eqn->out_count; k++) {
      ax_made made = branch->out[k];
      if (made.from != AX_NONE) made.from++; /* the index is the first operand */
      l->out[k] = b == 0 ? made : either(&l->out[k], &made);
    }
  }
  for (uint32_t i = 1; i < eqn->in_count; i++) l->in[i] = handed(&l->in[i]);
  for (uint32_t k = 0; k < eqn->out_count; k++) { /* another branch may use it */
    ax_made *made = &l->out[k];
    if (made->from != AX_NONE && l->in[made->from].used) *made = (ax_made){ax_use_layout(&l->in[made->from], l->in[made->from].first), AX_NONE};
  }
}

/* The carry that is operand `at`, used so and coming round as `made`, where `from` is an operand. */
static void settle_carry(const ax_use *use, const ax_made *made, uint32_t at, ax_use *in, ax_made *out) {
  const ax_spec *spec = NULL;
  *in = (ax_use){0};
  *out = (ax_made){NULL, at};
  if (!use->used && made->from == at) return; /* as it is held */
  if (!use->used && made->from == AX_NONE) spec = made->spec;
  if (use->used && !use->whole && (made->spec != NULL || made->from != AX_NONE)) spec = use->first;
  *in = use_as(spec);
  *out = (ax_made){spec, AX_NONE};
}

static void scan_layouts(ax_partitioner *p, const ax_scope *s, const ax_eqn *eqn, ax_layouts *l) {
  const ax_scan_params *params = eqn->params;
  const uint32_t consts = (uint32_t)params->num_consts, carries = (uint32_t)params->num_carry;
  const ax_layouts *body = ax_layouts_of_program(p, s, params->body);
  if (body == NULL) return;
  for (uint32_t i = 0; i < consts; i++) l->in[i] = loop_constant(&body->in[i]);
  for (uint32_t k = 0; k < carries; k++)
    settle_carry(&body->in[consts + k], &body->out[k], consts + k, &l->in[consts + k], &l->out[k]);
  for (uint32_t i = consts + carries; i < eqn->in_count; i++) {
    ax_use slice = loop_constant(&body->in[i]);
    l->in[i] = use_as(slice.used ? ax_spec_stacked(p, slice.first) : NULL);
  }
  for (uint32_t k = carries; k < eqn->out_count; k++) l->out[k].spec = ax_spec_stacked(p, body->out[k].spec);
}

static void while_layouts(ax_partitioner *p, const ax_scope *s, const ax_eqn *eqn, ax_layouts *l) {
  const ax_while_params *params = eqn->params;
  const uint32_t cond_consts = (uint32_t)params->cond_nconsts, body_consts = (uint32_t)params->body_nconsts;
  const uint32_t consts = cond_consts + body_consts;
  const ax_layouts *cond = ax_layouts_of_program(p, s, params->cond), *body = ax_layouts_of_program(p, s, params->body);
  if (cond == NULL || body == NULL) return;
  for (uint32_t i = 0; i < consts; i++) l->in[i] = loop_constant(i < cond_consts ? &cond->in[i] : &body->in[i - cond_consts]);
  for (uint32_t k = 0; k < eqn->out_count; k++) {
    ax_use use = body->in[body_consts + k];
    ax_made made = body->out[k];
    add_use(&use, &cond->in[cond_consts + k]);
    if (made.from != AX_NONE) made.from += cond_consts;
    settle_carry(&use, &made, consts + k, &l->in[consts + k], &l->out[k]);
  }
}

ax_layouts ax_layouts_of_eqn(ax_partitioner *p, const ax_scope *s, const ax_eqn *eqn) {
  ax_layouts l = {ax_arena_alloc(&p->arena, eqn->in_count * sizeof l.in[0]), ax_arena_alloc(&p->arena, eqn->out_count * sizeof l.out[0])};
  if (l.in == NULL || l.out == NULL) {
    ax_fail(ax_out_of_memory(0));
    return (ax_layouts){NULL, NULL};
  }
  for (uint32_t k = 0; k < eqn->out_count; k++) l.out[k].from = AX_NONE;
  if (eqn->prim == &ax_prim_shard_map) shard_map_layouts(p, s, eqn, &l);
  else if (eqn->prim == &ax_prim_closed_call || eqn->prim == &ax_prim_checkpoint || eqn->prim == &ax_prim_custom_vjp || eqn->prim == &ax_prim_custom_jvp)
    call_layouts(p, s, eqn, &l);
  else if (eqn->prim == &ax_prim_cond) cond_layouts(p, s, eqn, &l);
  else if (eqn->prim == &ax_prim_scan) scan_layouts(p, s, eqn, &l);
  else if (eqn->prim == &ax_prim_while) while_layouts(p, s, eqn, &l);
  else for (uint32_t i = 0; i < eqn->in_count; i++) l.in[i] = whole_use;
  return l;
}

/* --- Programs --- */

/* made: by value. */
static void look_at_eqn(ax_partitioner *p, const ax_scope *s, const ax_eqn *eqn, ax_made *made, ax_layouts *l) {
  const bool is_region = eqn->prim->kind == AX_REGION;
  ax_layouts at = {0};
  if (is_region) at = ax_layouts_of_eqn(p, s, eqn);
  if (ax_failed()) return;
  for (uint32_t k = 0; k < eqn->in_count; k++) {
    const ax_made *operand = &made[eqn->in[k]];
    if (operand->from != AX_NONE) add_use(&l->in[operand->from], is_region ? &at.in[k] : &whole_use);
  }
  for (uint32_t k = 0; k < eqn->out_count; k++) {
    ax_made *out = &made[eqn->out + k];
    *out = is_region ? at.out[k] : (ax_made){NULL, AX_NONE};
    if (out->from != AX_NONE) *out = made[eqn->in[out->from]]; /* as that is made */
  }
}

static void look_at(ax_partitioner *p, const ax_scope *s, const ax_program *program, ax_made *made, ax_layouts *l) {
  for (uint32_t i = 0; i < program->in_count; i++) made[i].from = i;
  for (uint32_t i = 0; i < program->eqn_count && !ax_failed(); i++) look_at_eqn(p, s, &program->eqns[i], made, l);
  for (uint32_t k = 0; k < program->out_count; k++) {
    ax_made *out = &l->out[k];
    *out = made[program->outs[k]];
    if (out->from == AX_NONE || !l->in[out->from].used) continue;
    const ax_use *use = &l->in[out->from];
    *out = (ax_made){ax_use_layout(use, use->first), AX_NONE};
  }
}

/* As propagation found. */
static void take_propagated(const ax_program *program, const ax_spec *const *lies, ax_layouts *l) {
  for (uint32_t i = 0; i < program->in_count; i++) l->in[i] = use_as(lies[i]);
  for (uint32_t k = 0; k < program->out_count; k++) l->out[k] = (ax_made){lies[program->outs[k]], AX_NONE};
}

const ax_layouts *ax_layouts_of_program(ax_partitioner *p, const ax_scope *s, const ax_program *program) {
  ax_memo_entry *entry = ax_memo_ask(&p->memo, "layouts", program, &s, sizeof s);
  if (entry != NULL && entry->known) return entry->data;
  ax_layouts *l = ax_arena_alloc(&p->arena, sizeof *l);
  ax_made *made = ax_arena_alloc(&p->arena, program->value_count * sizeof made[0]);
  if (l != NULL) {
    l->in = ax_arena_alloc(&p->arena, program->in_count * sizeof l->in[0]);
    l->out = ax_arena_alloc(&p->arena, program->out_count * sizeof l->out[0]);
  }
  if (entry == NULL || l == NULL || made == NULL || l->in == NULL || l->out == NULL) {
    ax_fail(ax_out_of_memory(0));
    return NULL;
  }
  const ax_spec *const *lies = ax_propagated(p, s, program);
  if (lies != NULL) take_propagated(program, lies, l);
  else look_at(p, s, program, made, l);
  if (ax_failed()) return NULL;
  entry->data = l;
  entry->known = true;
  return l;
}
