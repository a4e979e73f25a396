/* What a reduction of elements and their places finds is often the greatest or the least element, the first of equals, as JAX says
   argmax in StableHLO:

     reduce x, iota, -inf, 0, by (a, i), (b, j) -> a > b or a is NaN ? (a, i) : a == b and i < j ? (a, i) : (b, j)

   argmax and argmin take a fraction of the time. A body is one of them if it does on all orders of two elements, of which one or both
   may be NaN, what these do. That proves it, since a body that only compares elements with elements and places with places, and
   chooses by that, can tell no more than these orders apart. The places are an iota's, so those that are combined first are less. Of
   zeros of both signs the element that is found may be the other one, as it may be in whichever order a reduction combines. */
#include <math.h>
#include <string.h>

#include "ir/number.h"
#include "ops/iota.h"
#include "ops/reduce.h"
#include "prim/composite.h"
#include "prim/prims.h"
#include "prim/scalars.h"
#include "prim/shape.h"

enum { most_values = 64 }; /* of a body */

/* --- What bodies may do --- */

typedef enum sort { TRUTH, ELEMENT, PLACE } sort; /* what a value of the body is chosen from */

static bool is_logic(const ax_prim *prim) {
  return prim == &ax_prim_and || prim == &ax_prim_or || prim == &ax_prim_xor || prim == &ax_prim_not;
}

static bool compares(const ax_prim *prim) {
  return prim == &ax_prim_lt || prim == &ax_prim_le || prim == &ax_prim_gt || prim == &ax_prim_ge || prim == &ax_prim_eq ||
         prim == &ax_prim_ne;
}

/* Operands from `first` on are of one sort, which is *is. */
static bool alike(const ax_eqn *eqn, const sort *sorts, uint32_t first, sort *is) {
  *is = sorts[eqn->in[first]];
  for (uint32_t k = first + 1; k < eqn->in_count; k++)
    if (sorts[eqn->in[k]] != *is) return false;
  return true;
}

static bool has_sort(const ax_eqn *eqn, const sort *sorts, sort *is) {
  if (eqn->prim == &ax_prim_select_n) return eqn->in_count == 3 && sorts[eqn->in[0]] == TRUTH && alike(eqn, sorts, 1, is);
  if (eqn->in_count == 0 || !alike(eqn, sorts, 0, is)) return false;
  const bool comparison = compares(eqn->prim) && *is != TRUTH;
  if (!comparison && (!is_logic(eqn->prim) || *is != TRUTH)) return false;
  *is = TRUTH;
  return true;
}

static bool only_chooses(const ax_program *body) {
  sort sorts[most_values] = {ELEMENT, PLACE, ELEMENT, PLACE};
  if (body->value_count > most_values) return false;
  for (uint32_t i = 0; i < body->eqn_count; i++)
    if (!has_sort(&body->eqns[i], sorts, &sorts[body->eqns[i].out])) return false;
  return sorts[body->outs[0]] == ELEMENT && sorts[body->outs[1]] == PLACE;
}

/* --- Which it is --- */

static double const orders[][2] = {{1, 2}, {2, 1}, {1, 1}, {NAN, 1}, {1, NAN}, {NAN, NAN}};
enum { without_nan = 3, all_orders = AX_COUNT(orders) };

/* Whether b goes before a, whose place is less. */
static bool goes_before(bool least, const double *of) {
  return (least ? of[1] < of[0] : of[1] > of[0]) || (of[1] != of[1] && of[0] == of[0]);
}

static ax_number number(ax_dtype dtype, double x) {
  return ax_is_float(dtype) ? (ax_number){.f = x} : (ax_number){.i = (int64_t)x};
}

static bool chooses_so(const ax_scalars_run *run, bool least, const double *of) {
  enum { a, i, b, j };
  const ax_program *body = run->body;
  const ax_dtype element = body->types[a].dtype, place = body->types[i].dtype;
  const uint32_t chosen = goes_before(least, of) ? b : a;
  const ax_tensor *makes[] = {&run->value[body->outs[0]], &run->value[body->outs[1]]};
  ax_number_store(element, run->value[a].data, 0, number(element, of[0]));
  ax_number_store(element, run->value[b].data, 0, number(element, of[1]));
  ax_number_store(place, run->value[i].data, 0, (ax_number){.i = 1});
  ax_number_store(place, run->value[j].data, 0, (ax_number){.i = 2});
  if (ax_scalars_step(run) != AX_OK) return false;
  return ax_number_load(place, makes[1]->data, 0).i == (chosen == a ? 1 : 2) &&
         memcmp(makes[0]->data, run->value[chosen].data, ax_dtype_bytes(element)) == 0;
}

static bool seeks(const ax_program *body, bool least) {
  ax_element cells[most_values] = {0};
  ax_tensor values[most_values];
  const size_t count = ax_is_float(body->types[0].dtype) ? all_orders : without_nan;
  for (uint32_t i = 0; i < body->value_count; i++) values[i] = (ax_tensor){.dtype = body->types[i].dtype, .data = &cells[i]};
  for (size_t k = 0; k < count; k++)
    if (!chooses_so(&(ax_scalars_run){body, values}, least, orders[k])) return false;
  return true;
}

/* Whether the number is that start. The first element may then be taken without it. */
static bool starts_at(const ax_rewrite_args *args, uint32_t id, ax_number wanted) {
  const ax_literal *start = ax_made_literal(args->made_by, id);
  const ax_dtype dtype = args->types[id].dtype;
  if (start == NULL || args->types[id].rank != 0) return false;
  const ax_number is = ax_number_load(dtype, start->data, 0);
  return ax_is_float(dtype) ? is.f == wanted.f : is.u == wanted.u;
}

static const ax_prim *found(const ax_rewrite_args *args) {
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
    if (starts_at(args, eqn->in[2], start) && starts_at(args, eqn->in[3], (ax_number){0}) && seeks(p->body, least))
      return least ? &ax_prim_argmin : &ax_prim_argmax;
  }
  return NULL;
}

/* The elements at these places; they are not computed unless they are used. */
static ax_value elements_at(ax_value x, ax_value place, int64_t axis) {
  static const ax_index_options inside = {.mode = AX_INDEX_PROMISE_IN_BOUNDS};
  const ax_value taken = ax_take_along_axis(x, ax_expand_dims(place, axis), axis, &inside);
  return (ax_squeeze)(taken, AX_DIMS(axis));
}

bool ax_reduce_places(const ax_rewrite_args *args) {
  const ax_prim *prim = found(args);
  if (prim == NULL) return false;
  if (args->values == NULL) return true;
  const int64_t axis = ((const ax_reduce_by_params *)args->eqn->params)->axes.v[0];
  const ax_value x = args->values[args->eqn->in[0]];
  const ax_dtype dtype = args->types[args->eqn->in[1]].dtype;
  args->out[1] = prim == &ax_prim_argmax ? ax_argmax(x, axis, dtype) : ax_argmin(x, axis, dtype);
  args->out[0] = elements_at(x, args->out[1], axis);
  return true;
}
