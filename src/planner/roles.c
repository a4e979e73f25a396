/* Values are followed from the parameters on, through what only converts, slices or reshapes them, to the products that take
   them.

   A function is looked into with its own inputs in the place of parameters: what it finds of input i holds for whatever parameter
   an equation gives it there. So it need not be looked into again for the next equation that calls it. */
#include "planner/roles.h"

#include <string.h>

#include "control/closed_call.h"
#include "control/scan.h"
#include "ir/memo.h"
#include "ops/dot_general.h"
#include "prim/prims.h"

/* What is known of a value: which parameter it is, itself or converted, or a slice of it. */
typedef struct origin {
  uint32_t param; /* AX_NONE: none */
  int32_t first;  /* how many of the parameter's first dimensions the value lacks; below 0: it has others before them */
} origin;

/* A product takes the matrices of a parameter one by one along that dimension. */
typedef struct experts {
  uint32_t param;
  int8_t dim;
} experts;

typedef struct looking {
  ax_model *m;
  ax_memo memo; /* what functions were found to do with their operands: by body, and by which operands are of parameters */
  uint32_t looks;
} looking;

/* What is being looked through: the model, or a body whose inputs are its parameters. */
typedef struct scope {
  looking *l;
  int8_t *dim;    /* by parameter; -1: it has no experts */
  experts *found; /* in the order in which they were found, each parameter once; NULL: that is not asked */
  uint32_t found_count;
} scope;

/* The first product that says so decides. */
static void note(scope *s, uint32_t param, int32_t dim) {
  if (s->dim[param] >= 0 || dim < 0) return; /* below 0: a dimension that was added */
  s->dim[param] = (int8_t)dim;
  if (s->found != NULL) s->found[s->found_count++] = (experts){param, (int8_t)dim};
}

/* Notes the batch dimensions of products with parameters. */
static void find_experts(scope *s, const origin *origins, const ax_eqn *eqn) {
  const ax_dot_params *dot = eqn->params;
  for (uint32_t i = 0; eqn->prim == &ax_prim_dot_general && i < 2; i++) {
    const ax_dims *batch = i == 0 ? &dot->lhs_batch : &dot->rhs_batch;
    const origin *o = &origins[eqn->in[i]];
    for (uint32_t k = 0; o->param != AX_NONE && k < batch->count; k++) note(s, o->param, (int32_t)batch->v[k] + o->first);
  }
}

/* A conversion is its operand, and so is a reshape that adds or drops a first dimension of one, as slices are dealt with. */
static origin origin_of(const ax_program *program, const ax_eqn *eqn, const origin *origins) {
  static const origin none = {AX_NONE, 0};
  if (eqn->prim == &ax_prim_convert_element_type) return origins[eqn->in[0]];
  if (eqn->prim != &ax_prim_reshape) return none;
  const ax_type *from = &program->types[eqn->in[0]], *to = &program->types[eqn->out];
  const bool drops = from->rank > to->rank;
  const ax_type *longer = drops ? from : to, *shorter = drops ? to : from;
  if (longer->rank != shorter->rank + 1 || longer->dims[0] != 1) return none;
  if (memcmp(longer->dims + 1, shorter->dims, shorter->rank * sizeof shorter->dims[0]) != 0) return none;
  return (origin){origins[eqn->in[0]].param, origins[eqn->in[0]].first + (drops ? 1 : -1)};
}

static ax_status look_through(scope *s, const ax_program *program, const origin *inputs);

/* In the loop operands are constants of it, carries, and what it slices. */
static ax_status look_into_loop(scope *s, const ax_eqn *eqn, const origin *origins) {
  const ax_scan_params *scan = eqn->params;
  bool *layered = s->l->m->layered;
  origin *inputs = ax_calloc((size_t)eqn->in_count + 1, sizeof inputs[0]);
  if (inputs == NULL) return ax_out_of_memory(eqn->in_count);
  for (uint32_t i = 0; i < eqn->in_count; i++) {
    const bool sliced = i >= scan->num_consts + scan->num_carry, carried = !sliced && i >= scan->num_consts;
    inputs[i] = (origin){carried ? AX_NONE : origins[eqn->in[i]].param, origins[eqn->in[i]].first + sliced};
    if (sliced && inputs[i].param != AX_NONE && origins[eqn->in[i]].first == 0) layered[inputs[i].param] = true;
  }
  const ax_status status = look_through(s, scan->body, inputs);
  ax_free(inputs);
  return status;
}

/* Looks through a body whose inputs are as `inputs` says, each a parameter of its own or none. */
static ax_status look_into_body(looking *l, const ax_program *body, const origin *inputs, ax_memo_entry *out) {
  scope s = {.l = l, .dim = ax_alloc((size_t)body->in_count + 1)};
  out->data = s.found = ax_arena_alloc(&l->memo.arena, ((size_t)body->in_count + 1) * sizeof s.found[0]);
  ax_status status = s.dim != NULL && s.found != NULL ? AX_OK : ax_out_of_memory(body->in_count);
  if (status == AX_OK) memset(s.dim, -1, (size_t)body->in_count + 1);
  if (status == AX_OK) status = look_through(&s, body, inputs);
  out->count = s.found_count;
  out->known = status == AX_OK;
  ax_free(s.dim);
  return status;
}

/* Equations that call a body, as of functions of a module, give it their operands. One that gets no parameter is left out. */
static ax_status look_into_call(scope *s, const ax_eqn *eqn, const origin *origins) {
  const ax_program *body = ((const ax_closed_call_params *)eqn->params)->body;
  const size_t bytes = (size_t)eqn->in_count * sizeof(origin);
  origin *inputs = ax_calloc((size_t)eqn->in_count + 1, sizeof inputs[0]);
  if (inputs == NULL) return ax_out_of_memory(bytes);
  ax_status status = AX_OK;
  bool any = false;
  for (uint32_t i = 0; i < eqn->in_count; i++) {
    const origin *o = &origins[eqn->in[i]];
    inputs[i] = o->param != AX_NONE ? (origin){i, o->first} : (origin){AX_NONE, 0};
    any = any || o->param != AX_NONE;
  }
  ax_memo_entry *known = any ? ax_memo_ask(&s->l->memo, "experts", body, inputs, bytes) : NULL;
  if (any && known == NULL) status = ax_out_of_memory(bytes);
  if (known != NULL && !known->known) status = look_into_body(s->l, body, inputs, known);
  for (uint32_t k = 0; status == AX_OK && known != NULL && k < known->count; k++) {
    const experts *found = (const experts *)known->data + k;
    note(s, origins[eqn->in[found->param]].param, found->dim);
  }
  ax_free(inputs);
  return status;
}

static ax_status look_through(scope *s, const ax_program *program, const origin *inputs) {
  const ax_model *m = s->l->m;
  origin *origins = ax_calloc((size_t)program->value_count + 1, sizeof origins[0]);
  ax_status status = origins != NULL ? AX_OK : ax_out_of_memory(program->value_count);
  s->l->looks++;
  for (uint32_t v = 0; status == AX_OK && v < program->value_count; v++)
    origins[v] = v < program->in_count ? inputs[v] : (origin){AX_NONE, 0};
  for (uint32_t e = 0; status == AX_OK && e < program->eqn_count; e++) {
    const ax_eqn *eqn = &program->eqns[e];
    if (eqn->out_count == 1) origins[eqn->out] = origin_of(program, eqn, origins);
    find_experts(s, origins, eqn);
    if (program == m->program && e == m->loop)
      status = look_into_loop(s, eqn, origins);
    else if (eqn->prim == &ax_prim_closed_call || eqn->prim == &ax_prim_checkpoint)
      status = look_into_call(s, eqn, origins);
  }
  ax_free(origins);
  return status;
}

ax_status ax_model_find_roles(ax_model *m, uint32_t *looks) {
  const ax_program *program = m->program;
  looking l = {.m = m};
  origin *inputs = ax_calloc((size_t)program->in_count + 1, sizeof inputs[0]);
  m->layered = ax_calloc((size_t)m->param_count + 1, sizeof m->layered[0]);
  m->experts = ax_alloc((size_t)m->param_count + 1);
  ax_status status = inputs != NULL && m->layered != NULL && m->experts != NULL ? AX_OK : ax_out_of_memory(program->in_count);
  if (status == AX_OK) memset(m->experts, -1, (size_t)m->param_count + 1);
  for (uint32_t i = 0; status == AX_OK && i < program->in_count; i++) inputs[i].param = AX_NONE;
  for (uint32_t p = 0; status == AX_OK && p < m->param_count; p++) inputs[m->params[p]].param = p;
  if (status == AX_OK) status = look_through(&(scope){.l = &l, .dim = m->experts}, program, inputs);
  if (looks != NULL) *looks = l.looks;
  ax_memo_deinit(&l.memo);
  ax_free(inputs);
  return status;
}
