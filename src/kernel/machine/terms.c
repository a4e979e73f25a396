/* How large the terms were that results are sums of (state.h): so that a difference of two results can be held against what another
   order of additions may come to.

   A sum of n + 1 terms t is off by n u sum |t| / (1 - n u) at most in any order, where u is half a unit of the dtype (Higham,
   Accuracy and Stability of Numerical Algorithms, 4.2). The sum may be small where the terms are not. So each element of memory
   that is added to keeps its number of additions, and the sum of its terms without their signs. Both go with what is loaded,
   stored and copied, and through sums, products, maxima and minima with it. An element that is stored otherwise has none: how
   much of it is due to an order is not known. */
#include <math.h>
#include <string.h>

#include "kernel/machine/agent.h"
#include "prim/prims.h"

/* In bytes, of element i of a view. */
static int64_t offset_of(const ax_view *view, int64_t i) {
  int64_t offset = view->offset;
  for (uint32_t d = view->type.rank; d-- > 0; i /= view->type.dims[d]) offset += i % view->type.dims[d] * view->strides[d];
  return offset;
}

static ax_status alloc_terms(int64_t count, ax_term **out) {
  *out = ax_calloc((size_t)count + 1, sizeof **out);
  return *out != NULL ? AX_OK : ax_out_of_memory((size_t)count * sizeof **out);
}

static bool has_terms(const ax_view *view, const ax_bank *memory) {
  return memory->terms != NULL && memory->term_bytes == ax_dtype_bytes(view->type.dtype);
}

ax_status ax_terms_read(const ax_view *view, const ax_bank *memory, ax_term **out) {
  const int64_t count = ax_type_elems(&view->type);
  *out = NULL;
  if (!has_terms(view, memory)) return AX_OK;
  AX_TRY(alloc_terms(count, out));
  for (int64_t i = 0; i < count; i++) (*out)[i] = memory->terms[offset_of(view, i) / memory->term_bytes];
  return AX_OK;
}

ax_status ax_terms_write(const ax_view *view, ax_bank *memory, const unsigned char *mask, const ax_term *terms) {
  const uint32_t bytes = (uint32_t)ax_dtype_bytes(view->type.dtype);
  if (memory->terms == NULL && terms == NULL) return AX_OK;
  if (memory->terms != NULL && memory->term_bytes != bytes) {
    ax_free(memory->terms);
    memory->terms = NULL;
  }
  if (memory->terms == NULL) AX_TRY(alloc_terms((int64_t)(memory->bytes / bytes), &memory->terms));
  memory->term_bytes = bytes;
  for (int64_t i = 0; i < ax_type_elems(&view->type); i++)
    if (mask == NULL || mask[i] != 0) memory->terms[offset_of(view, i) / bytes] = terms != NULL ? terms[i] : (ax_term){0};
  return AX_OK;
}

/* Of an element: a number that is no sum is one term. */
static ax_term term_of(const ax_cell *cell, int64_t i) {
  if (cell->terms != NULL && cell->terms[i].sums > 0) return cell->terms[i];
  return (ax_term){.size = fabs(ax_number_load(cell->tensor->dtype, cell->tensor->data, i).f)};
}

ax_status ax_terms_add(const ax_view *view, const ax_bank *memory, const ax_cell *value, ax_term **out) {
  const int64_t count = ax_type_elems(&view->type);
  *out = NULL;
  if (!ax_is_float(view->type.dtype)) return AX_OK;
  AX_TRY(alloc_terms(count, out));
  const bool has = has_terms(view, memory);
  for (int64_t i = 0; i < count; i++) {
    const int64_t at = offset_of(view, i);
    ax_term was = has ? memory->terms[at / memory->term_bytes] : (ax_term){0};
    if (was.sums == 0) was.size = fabs(ax_number_load(view->type.dtype, memory->data + at, 0).f);
    const ax_term more = term_of(value, i);
    (*out)[i] = (ax_term){was.size + more.size, was.sums + more.sums + 1};
  }
  return AX_OK;
}

/* Also of numbers that depend on sums otherwise: each operation adds one rounding. */
static ax_term combined(const ax_prim *prim, ax_term a, ax_term b) {
  if (prim == &ax_prim_mul) return (ax_term){a.size * b.size, a.sums + b.sums + 1};
  if (prim == &ax_prim_max || prim == &ax_prim_min) return (ax_term){fmax(a.size, b.size), fmax(a.sums, b.sums)};
  return (ax_term){a.size + b.size, a.sums + b.sums + 1};
}

ax_status ax_terms_eval(const ax_prim *prim, ax_cell *const *in, ax_cell *out) {
  const bool knows =
      prim == &ax_prim_add || prim == &ax_prim_sub || prim == &ax_prim_mul || prim == &ax_prim_max || prim == &ax_prim_min;
  if (!knows || !ax_is_float(out->tensor->dtype) || (in[0]->terms == NULL && in[1]->terms == NULL)) return AX_OK;
  const int64_t count = ax_dims_elems(out->tensor->rank, out->tensor->dims);
  AX_TRY(alloc_terms(count, &out->terms));
  for (int64_t i = 0; i < count; i++) {
    const ax_term a = term_of(in[0], i), b = term_of(in[1], i);
    if (a.sums > 0 || b.sums > 0) out->terms[i] = combined(prim, a, b);
  }
  return AX_OK;
}

bool ax_term_explains(ax_dtype dtype, ax_term term, double difference) {
  const double half = ldexp(1, -ax_float_form_of(dtype).fraction - 1), roundings = term.sums * half;
  if (term.sums == 0 || !isfinite(term.size)) return false;
  return difference <= 2 * term.size * (roundings < 0.5 ? roundings / (1 - roundings) : 1);
}
