/* Describes a program's inputs and results. Two prunings decide what the plan has of them: one of the user's program, and one of
   the program of each device, whose inputs and results are those that the first has left.

     program  --outer pruning-->  partitioned program  --inner pruning-->  plan

   The specs are those of the partitioned program. */
#include "assemble/signature.h"

#include "mesh/constraint.h"
#include "mesh/sharding.h"
#include "prim/prims.h"

typedef struct describer {
  const ax_program *program;
  const ax_partitioned *laid;
  const ax_pruning *outer, *inner;
  ax_plan *plan;
  ax_signature *out;
  ax_spec *whole;        /* the spec of all inputs and results that are not cut */
  const ax_spec **said;  /* by unused input: the spec that the user's constraint gives it; NULL: there is none */
  uint32_t *before;      /* by the inner pruning's input: the program's number */
} describer;

static ax_status allocate(describer *d) {
  ax_arena *arena = &d->plan->arena;
  ax_signature *s = d->out;
  const uint32_t in_count = d->program->in_count, out_count = d->program->out_count;
  *s = (ax_signature){.mesh = *d->laid->mesh, .in_count = in_count, .out_count = out_count};
  s->in = ax_arena_alloc(arena, in_count * sizeof s->in[0]);
  s->out = ax_arena_alloc(arena, out_count * sizeof s->out[0]);
  s->kept = ax_arena_alloc(arena, d->plan->in_count * sizeof s->kept[0]);
  d->whole = ax_arena_alloc(arena, sizeof *d->whole);
  d->said = ax_arena_alloc(arena, in_count * sizeof d->said[0]);
  d->before = ax_arena_alloc(arena, d->inner->in_count * sizeof d->before[0]);
  if (s->in == NULL || s->out == NULL || s->kept == NULL || d->whole == NULL || d->said == NULL || d->before == NULL)
    return ax_out_of_memory(in_count * sizeof s->in[0] + out_count * sizeof s->out[0]);
  return AX_OK;
}

/* The partitioned program goes when the passes are over, so its specs are copied. */
static ax_status keep_spec(const describer *d, const ax_spec *spec, const ax_spec **out) {
  *out = spec != NULL ? ax_arena_copy(&d->plan->arena, spec, sizeof *spec) : d->whole;
  return *out != NULL ? AX_OK : ax_out_of_memory(sizeof *spec);
}

/* Finds the specs that constraints give to unused inputs. Other layouts of such an input do not matter. */
static void find_said(describer *d) {
  const ax_program *program = d->program;
  for (uint32_t i = 0; i < program->eqn_count; i++) {
    const ax_eqn *eqn = &program->eqns[i];
    const uint32_t input = eqn->prim == &ax_prim_sharding_constraint ? eqn->in[0] : program->in_count;
    if (input >= program->in_count || d->outer->place[input] != AX_NONE || d->said[input] != NULL) continue;
    const ax_constraint_params *p = eqn->params;
    ax_type block;
    const ax_mesh *mesh = &d->out->mesh;
    if (ax_mesh_equal(&p->mesh, mesh, false) && ax_shard_type(&program->types[input], &p->specs.v[0], mesh, &block) == AX_OK)
      d->said[input] = &p->specs.v[0];
  }
}

static ax_status describe_input(describer *d, uint32_t i) {
  const uint32_t left = d->outer->place[i]; /* its number in the partitioned program */
  ax_signature_in *in = &d->out->in[i];
  *in = (ax_signature_in){.place = AX_NONE, .donated = AX_NONE};
  if (left == AX_NONE) return keep_spec(d, d->said[i], &in->spec);
  d->before[left] = i;
  in->place = d->inner->place[left];
  if (in->place != AX_NONE) d->out->kept[in->place] = i;
  return keep_spec(d, d->laid->in_specs != NULL ? &d->laid->in_specs[left] : NULL, &in->spec);
}

/* Requires all inputs described. */
static ax_status describe_result(describer *d, uint32_t k) {
  const uint32_t left = d->outer->returned[k].made;
  ax_signature_out *out = &d->out->out[k];
  *out = (ax_signature_out){.made = AX_NONE, .input = d->outer->returned[k].input};
  if (left != AX_NONE) {
    const ax_returned *inner = &d->inner->returned[left];
    *out = (ax_signature_out){.made = inner->made, .input = inner->input != AX_NONE ? d->before[inner->input] : AX_NONE};
    AX_TRY(keep_spec(d, d->laid->out_specs != NULL ? &d->laid->out_specs[left] : NULL, &out->spec));
  }
  if (out->input != AX_NONE) d->out->in[out->input].is_passed = true;
  return AX_OK;
}

/* Unused inputs are not donated. An input that is also a result unchanged goes on living in its memory, so no result may be
   written there. */
static ax_status choose_donated(describer *d, const ax_args *donate) {
  const uint32_t in_count = d->program->in_count;
  bool *asked = ax_arena_alloc(&d->plan->arena, in_count), *writable = ax_arena_alloc(&d->plan->arena, d->plan->in_count);
  if (asked == NULL || writable == NULL) return ax_out_of_memory(in_count);
  AX_TRY(ax_args_mask(*donate, "input", in_count, asked));
  for (uint32_t i = 0; i < in_count; i++) {
    ax_signature_in *in = &d->out->in[i];
    in->asked = asked[i];
    in->donate = in->asked && ax_signature_uses(d->out, i);
    if (in->place != AX_NONE) writable[in->place] = in->asked && !in->is_passed;
  }
  d->plan->donate = writable;
  return AX_OK;
}

static bool is_plain(const describer *d) {
  const ax_signature *s = d->out;
  bool plain = s->in_count == d->plan->in_count && s->out_count == d->plan->out_count;
  for (uint32_t k = 0; k < s->out_count && plain; k++) plain = s->out[k].made == k;
  return plain;
}

ax_status ax_signature_make(const ax_program *program, const ax_partitioned *laid, const ax_pruning *outer, const ax_pruning *inner,
                            const ax_args *donate, ax_plan *plan, ax_signature *out) {
  describer d = {.program = program, .laid = laid, .outer = outer, .inner = inner, .plan = plan, .out = out};
  AX_TRY(allocate(&d));
  find_said(&d);
  for (uint32_t i = 0; i < program->in_count; i++) AX_TRY(describe_input(&d, i));
  for (uint32_t k = 0; k < program->out_count; k++) AX_TRY(describe_result(&d, k));
  AX_TRY(choose_donated(&d, donate));
  out->plain = is_plain(&d);
  return AX_OK;
}

void ax_signature_find_donated(ax_signature *s, const ax_result *results) {
  for (uint32_t k = s->out_count; k-- > 0;) { /* if several results are the same input, the first counts */
    const ax_signature_out *out = &s->out[k];
    const uint32_t in = out->made == AX_NONE ? AX_NONE : results[out->made].donated;
    if (in != AX_NONE) s->in[s->kept[in]].donated = k;
    if (out->input != AX_NONE && s->in[out->input].donate) s->in[out->input].donated = k;
  }
}
