/* What a reduction of elements and their places finds is often the greatest or the least element, the first of equals, as JAX says
   argmax in StableHLO:

     reduce x, iota, -inf, 0, by (a, i), (b, j) -> a > b or a is NaN ? (a, i) : a == b and i < j ? (a, i) : (b, j)

   argmax and argmin take a fraction of the time. A body is one of them if it does on all orders of two elements, of which one or both
   may be NaN, what these do. That proves it, since a body that only compares elements with elements and places with places, and
   chooses by that, can tell no more than these orders apart. The places are an iota's, and so those that are combined first are less;
   only the first element has the start's, 0, and then no element goes behind the start. Of zeros of both signs the element that is
   found may be the other one, as it may be in whichever order a reduction combines. */
#include <math.h>
#include <string.h>

#include "ir/number.h"
#include "ops/argmax.h"
#include "ops/iota.h"
#include "ops/reduce.h"
#include "prim/composite.h"
#include "prim/prims.h"
#include "prim/scalars.h"
#include "prim/shape.h"

enum { most_values = 64 }; /* of a body */

/* --- What bodies may do --- */

typedef enum origin { TRUTH, ELEMENT, PLACE } origin; /* what a value of the body is chosen from */

static bool is_logic(const ax_prim *prim) {
  return prim == &ax_prim_and || prim == &ax_prim_or || prim == &ax_prim_xor || prim == &ax_prim_not;
}

static bool compares(const ax_prim *prim) {
  return prim == &ax_prim_lt || prim == &ax_prim_le || prim == &ax_prim_gt || prim == &ax_prim_ge || prim == &ax_prim_eq ||
         prim == &ax_prim_ne;
}

/* Operands from `first` on are of one origin, which is *is. */
static bool alike(const ax_eqn *eqn, const origin *origins, uint32_t first, origin *is) {
  *is = origins[eqn->in[first]];
  for (uint32_t k = first + 1; k < eqn->in_count; k++)
    if (origins[eqn->in[k]] != *is) return false;
  return true;
}

static bool has_origin(const ax_eqn *eqn, const origin *origins, origin *is) {
  if (eqn->prim == &ax_prim_select_n) return eqn->in_count == 3 && origins[eqn->in[0]] == TRUTH && alike(eqn, origins, 1, is);
  if (eqn->in_count == 0 || !alike(eqn, origins, 0, is)) return false;
  if ((eqn->prim == &ax_prim_min || eqn->prim == &ax_prim_max) && *is != TRUTH) return true; /* one of the two, by their order */
  const bool comparison = compares(eqn->prim) && *is != TRUTH;
  if (!comparison && (!is_logic(eqn->prim) || *is != TRUTH)) return false;
  *is = TRUTH;
  return true;
}

static bool only_chooses(const ax_program *body) {
  origin origins[most_values] = {ELEMENT, PLACE, ELEMENT, PLACE};
  if (body->value_count > most_values) return false;
  for (uint32_t i = 0; i < body->eqn_count; i++)
    if (!has_origin(&body->eqns[i], origins, &origins[body->eqns[i].out])) return false;
  return origins[body->outs[0]] == ELEMENT && origins[body->outs[1]] == PLACE;
}

/* --- Which it is --- */

static double const orders[][2] = {{0, 1}, {1, 0}, {0, 0}, {NAN, 0}, {0, NAN}, {NAN, NAN}}; /* what every dtype tells apart */
enum { without_nan = 3, all_orders = AX_COUNT(orders) };

/* Whether the second element goes before the first, whose place is no greater. */
static bool goes_before(bool least, const double *of) {
  return (least ? of[1] < of[0] : of[1] > of[0]) || (of[1] != of[1] && of[0] == of[0]);
}

static void set_element(const ax_tensor *to, double x) {
  ax_number_store(to->dtype, to->data, 0,
                  ax_is_float(to->dtype) ? (ax_number){.f = x + 1} : (ax_number){.i = (int64_t)x}); /* some floats have no 0 */
}

/* second: the place of the second element, that of the first being 0. */
static bool chooses_extreme(const ax_scalars_run *run, bool least, const double *of, int64_t second) {
  enum { a, i, b, j };
  const ax_tensor *element = &run->value[run->body->outs[0]], *place = &run->value[run->body->outs[1]];
  const bool takes_second = goes_before(least, of);
  const uint32_t chosen = takes_second ? b : a;
  set_element(&run->value[a], of[0]);
  set_element(&run->value[b], of[1]);
  ax_number_store(place->dtype, run->value[i].data, 0, (ax_number){.i = 0});
  ax_number_store(place->dtype, run->value[j].data, 0, (ax_number){.i = second});
  if (ax_scalars_step(run) != AX_OK) return false;
  return ax_number_load(place->dtype, place->data, 0).i == (takes_second ? second : 0) &&
         memcmp(element->data, run->value[chosen].data, ax_dtype_bytes(element->dtype)) == 0;
}

/* Whether the body finds the least or the greatest. */
static bool finds_extreme(const ax_program *body, bool least) {
  ax_element cells[most_values] = {0};
  ax_tensor values[most_values];
  const ax_scalars_run run = {body, values};
  const size_t count = ax_is_float(body->types[0].dtype) ? all_orders : without_nan;
  for (uint32_t i = 0; i < body->value_count; i++) values[i] = (ax_tensor){.dtype = body->types[i].dtype, .data = &cells[i]};
  for (size_t k = 0; k < count; k++) {
    const bool may_start = orders[k][0] == orders[k][1] || goes_before(least, orders[k]); /* the first as the start */
    if (!chooses_extreme(&run, least, orders[k], 1) || (may_start && !chooses_extreme(&run, least, orders[k], 0))) return false;
  }
  return true;
}

/* Whether the reduction starts with that number. */
static bool starts_at(const ax_rewrite_args *args, uint32_t id, ax_number wanted) {
  const ax_literal *start = ax_made_literal(args->made_by, id);
  const ax_dtype dtype = args->types[id].dtype;
  if (start == NULL || args->types[id].rank != 0) return false;
  const ax_number is = ax_number_load(dtype, start->data, 0);
  return ax_is_float(dtype) ? is.f == wanted.f : is.u == wanted.u;
}

static const ax_prim *prim_of(const ax_rewrite_args *args) {
  const ax_eqn *eqn = args->eqn;
  const ax_reduce_by_params *p = eqn->params;
  if (eqn->out_count != 2 || p->axes.count != 1) return NULL;
  const ax_type *x = &args->types[eqn->in[0]], *places = &args->types[eqn->in[1]];
  const ax_dtype_kind kind = ax_dtype_get(places->dtype)->kind;
  const bool ordered = ax_dtype_get(x->dtype)->kind != AX_KIND_BOOL && !ax_is_complex(x->dtype);
  if (!ordered || (kind != AX_KIND_SIGNED && kind != AX_KIND_UNSIGNED) || x->dims[p->axes.v[0]] == 0) return NULL;
  if (ax_iota_dimension(args->made_by[eqn->in[1]]) != p->axes.v[0] || !only_chooses(p->body)) return NULL;
  if (ax_reduce_identity(AX_SCALAR_MIN, places->dtype).u < (uint64_t)x->dims[p->axes.v[0]] - 1) return NULL; /* places that wrap */
  for (int least = 0; least < 2; least++) {
    const ax_number start = ax_reduce_identity(least ? AX_SCALAR_MIN : AX_SCALAR_MAX, x->dtype);
    if (starts_at(args, eqn->in[2], start) && starts_at(args, eqn->in[3], (ax_number){0}) && finds_extreme(p->body, least))
      return least ? &ax_prim_argmin : &ax_prim_argmax;
  }
  return NULL;
}

bool ax_reduce_places(const ax_rewrite_args *args) {
  const ax_prim *prim = prim_of(args);
  if (prim == NULL) return false;
  if (args->values == NULL) return true;
  const int64_t axis = ((const ax_reduce_by_params *)args->eqn->params)->axes.v[0];
  const ax_value x = args->values[args->eqn->in[0]];
  const ax_dtype dtype = args->types[args->eqn->in[1]].dtype;
  args->out[1] = prim == &ax_prim_argmax ? ax_argmax(x, axis, dtype) : ax_argmin(x, axis, dtype);
  args->out[0] = ax_elements_at(x, args->out[1], axis);
  return true;
}
