/* Convolutions of what is dilated, which the gradients of strided ones are, without the zeros in between.

   Along one dimension, position o and the kernel's place k meet an element, and no zero, where o * stride + k * dilation - low is a multiple of the base.
   So positions fall into phases, o = phase + q * period, each of which knows its places of the kernel, k = first + j * step:

     y[phase + q * period] = sum over j of lhs[q * (period * stride / base) + j * (dilation / gcd) - low'] * rhs[first + j * step]

   which is a convolution without a base. One is made for each phase, and their results are laid between one another; or all at once, with
   the phases for features of the result, where their places are nearly the same ones (patches: as many phases as places). */
#include "prim/conv_general_dilated.h"
#include "prim/prims.h"

enum { most_apart = 16, most_together = 1 << 16 };
static const double worth_together = 1.25; /* places that are zeros in some phases, with the others, to those that are none */

typedef struct phase {
  int64_t first, step, count; /* places; count 0: no place meets an element */
  int64_t low;
} phase;

/* Along a dimension. */
typedef struct phases {
  ax_window window;
  int64_t period, positions; /* positions: of each phase, the last ones of some beyond the result */
  int64_t stride, dilation;
  int64_t most_low, places; /* of all that have places, which together have so many */
} phases;

static int64_t common_divisor(int64_t a, int64_t b) { return b == 0 ? a : common_divisor(b, a % b); }

static phase phase_of(const phases *s, int64_t index) {
  const ax_window *w = &s->window;
  phase f = {.step = w->base / common_divisor(w->dilation, w->base)};
  while (f.first < f.step && (index * w->stride + f.first * w->dilation - w->low) % w->base != 0) f.first++;
  if (f.first < f.step && f.first < w->size) f.count = (w->size - 1 - f.first) / f.step + 1;
  f.low = -(index * w->stride + f.first * w->dilation - w->low) / w->base;
  return f;
}

/* So many elements, behind what is there, as all positions with these places want. */
static int64_t high_of(const phases *s, int64_t low, int64_t places) {
  return (s->positions - 1) * s->stride + (places - 1) * s->dilation + 1 - s->window.array - low;
}

static bool is_sound(const phases *s, int64_t low, int64_t places) {
  return low >= -s->window.array && high_of(s, low, places) >= -s->window.array;
}

/* False: some positions are too far from the array for padding to say. */
static bool find_phases(const ax_window *w, phases *s) {
  *s = (phases){.window = *w, .period = w->base / common_divisor(w->stride, w->base), .dilation = w->dilation / common_divisor(w->dilation, w->base)};
  s->stride = s->period * w->stride / w->base;
  s->positions = (ax_window_count(w) + s->period - 1) / s->period;
  bool any = false;
  int64_t end = 0;
  for (int64_t i = 0; i < s->period; i++) {
    const phase f = phase_of(s, i);
    if (f.count == 0) continue;
    if (!is_sound(s, f.low, f.count)) return false;
    if (!any || f.low > s->most_low) s->most_low = f.low;
    any = true;
  }
  for (int64_t i = 0; i < s->period && any; i++) {
    const phase f = phase_of(s, i);
    const int64_t last = (s->most_low - f.low) / s->dilation + f.count;
    if (f.count > 0 && last > end) end = last;
  }
  s->places = end;
  return any;
}

typedef struct convolution {
  const ax_conv_params *p;
  phases along[AX_MAX_RANK];
  uint32_t spatial;
  double phases, apart, together; /* places that are gone through, phase by phase and for all at once */
} convolution;

static bool find_all(const ax_conv_params *p, const ax_type *lhs, const ax_type *rhs, convolution *c) {
  bool dilated = false;
  *c = (convolution){.p = p, .spatial = ax_conv_spatial(p), .phases = 1, .apart = 1, .together = 1};
  for (uint32_t i = 0; i < c->spatial; i++) {
    const ax_window w = ax_conv_window(p, lhs, rhs, i);
    if (w.base > most_together || !find_phases(&w, &c->along[i])) return false;
    double places = 0;
    for (int64_t n = 0; n < c->along[i].period; n++) places += (double)phase_of(&c->along[i], n).count;
    dilated = dilated || w.base > 1;
    c->phases *= (double)c->along[i].period;
    c->apart *= places;
    c->together *= (double)(c->along[i].period * c->along[i].places);
  }
  return dilated && lhs->rank < AX_MAX_RANK;
}

static bool makes_together(const convolution *c) {
  if (c->p->feature_group_count * c->p->batch_group_count != 1 || c->phases > most_together) return false;
  for (uint32_t i = 0; i < c->spatial; i++) {
    const phases *s = &c->along[i];
    for (int64_t n = 0; n < s->period; n++) {
      const phase f = phase_of(s, n);
      if (f.count > 0 && (s->most_low - f.low) % s->dilation != 0) return false;
    }
  }
  return c->together <= worth_together * c->apart || c->phases > most_apart;
}

bool ax_conv_has_phases(const ax_conv_params *p, const ax_type *lhs, const ax_type *rhs) {
  convolution c;
  return find_all(p, lhs, rhs, &c) && (makes_together(&c) || c.phases <= most_apart);
}

/* As the phases' convolutions have it along dimension i. */
static void set_window(ax_conv_params *p, const phases *s, uint32_t i, int64_t low, int64_t places) {
  p->window_strides.v[i] = s->stride;
  p->lhs_dilation.v[i] = 1;
  p->rhs_dilation.v[i] = s->dilation;
  p->padding_low.v[i] = low;
  p->padding_high.v[i] = high_of(s, low, places);
}

/* Along dimension d of x, where each element has `count` neighbours along the next one: one dimension, of which `extent` are there. */
static ax_value laid_between(ax_value x, uint32_t d, int64_t extent) {
  ax_type type = ax_typeof(x);
  int64_t dims[AX_MAX_RANK];
  if (ax_failed()) return ax_poison;
  for (uint32_t i = 0; i + 1 < type.rank; i++) dims[i] = i < d ? type.dims[i] : i == d ? type.dims[d] * type.dims[d + 1] : type.dims[i + 1];
  return ax_window_part(ax_reshape(x, type.rank - 1, dims), d, 0, extent, 1);
}

/* --- Phase by phase --- */

static ax_value zeros(const convolution *c, const ax_conv_params *p, ax_value x, ax_value y) {
  const ax_type lhs = ax_typeof(x), rhs = ax_typeof(y);
  ax_type type = ax_array_type(lhs.dtype, lhs.rank, lhs.dims);
  type.dims[p->out_spec.v[AX_CONV_BATCH]] = lhs.dims[p->lhs_spec.v[AX_CONV_BATCH]] / p->batch_group_count;
  type.dims[p->out_spec.v[AX_CONV_FEATURE]] = rhs.dims[p->rhs_spec.v[AX_CONV_OUT]];
  for (uint32_t i = 0; i < c->spatial; i++) type.dims[p->out_spec.v[AX_CONV_SPATIAL + i]] = c->along[i].positions;
  return ax_zeros_of(&type);
}

/* p and y: of the dimensions before i, one phase's. `none`: it has no places. */
static ax_value apart(const convolution *c, uint32_t i, const ax_conv_params *p, ax_value x, ax_value y, bool none) {
  if (i == c->spatial) return none ? zeros(c, p, x, y) : ax_conv_bind(p, x, y);
  const phases *s = &c->along[i];
  const uint32_t d = (uint32_t)p->out_spec.v[AX_CONV_SPATIAL + i];
  ax_value *parts = ax_trace_alloc((size_t)s->period * sizeof parts[0]);
  for (int64_t n = 0; n < s->period && parts != NULL && !ax_failed(); n++) {
    const phase f = phase_of(s, n);
    ax_conv_params inner = *p;
    if (f.count > 0) set_window(&inner, s, i, f.low, f.count);
    ax_value kernel = f.count > 0 ? ax_window_part(y, (uint32_t)p->rhs_spec.v[AX_CONV_SPATIAL + i], f.first, f.count, f.step) : y;
    ax_value made = apart(c, i + 1, &inner, x, kernel, none || f.count == 0);
    parts[n] = ax_expand_dims(made, (int)d + 1);
  }
  return parts != NULL && !ax_failed() ? laid_between(ax_concatenate((uint32_t)s->period, parts, d + 1), d, ax_window_count(&s->window)) : ax_poison;
}

/* --- All at once --- */

/* y with the phases along dimension i in front of its features for the result, each with the places of all. */
static ax_value with_phases(const convolution *c, uint32_t i, ax_value y) {
  const phases *s = &c->along[i];
  const uint32_t d = (uint32_t)c->p->rhs_spec.v[AX_CONV_SPATIAL + i];
  ax_value *parts = ax_trace_alloc((size_t)s->period * sizeof parts[0]);
  for (int64_t n = 0; n < s->period && parts != NULL && !ax_failed(); n++) {
    const phase f = phase_of(s, n);
    ax_window pads = {.array = f.count, .base = 1, .low = f.count > 0 ? (s->most_low - f.low) / s->dilation : 0};
    pads.high = s->places - f.count - pads.low;
    parts[n] = ax_window_padded(ax_window_part(y, d, f.count > 0 ? f.first : 0, f.count, f.step), ax_zero_like(y), d, 1, &pads);
  }
  return parts != NULL && !ax_failed() ? ax_concatenate((uint32_t)s->period, parts, (uint32_t)c->p->rhs_spec.v[AX_CONV_OUT]) : ax_poison;
}

static ax_value together(const convolution *c, ax_value x, ax_value y) {
  ax_conv_params p = *c->p;
  const uint32_t features = (uint32_t)p.out_spec.v[AX_CONV_FEATURE];
  for (uint32_t i = 0; i < c->spatial; i++) {
    y = with_phases(c, i, y);
    set_window(&p, &c->along[i], i, c->along[i].most_low, c->along[i].places);
  }
  ax_value made = ax_conv_bind(&p, x, y);
  for (uint32_t i = c->spatial; i-- > 0 && !ax_failed();) { /* the last dimension's phases are the outermost */
    const phases *s = &c->along[i];
    const uint32_t d = (uint32_t)p.out_spec.v[AX_CONV_SPATIAL + i];
    ax_type type = ax_typeof(made);
    int64_t dims[AX_MAX_RANK];
    for (uint32_t k = 0; k <= type.rank; k++)
      dims[k] = k < features ? type.dims[k] : k == features ? s->period : k == features + 1 ? type.dims[features] / s->period : type.dims[k - 1];
    ax_value apart = ax_reshape(made, type.rank + 1, dims);
    made = laid_between(ax_move_dim(apart, (int)features, (int)d + 1), d, ax_window_count(&s->window));
  }
  return made;
}

ax_value ax_conv_by_phases(const ax_eqn *eqn, const ax_value *in) {
  const ax_conv_params *p = eqn->params;
  const ax_type lhs = ax_typeof(in[0]), rhs = ax_typeof(in[1]);
  convolution c;
  if (ax_failed() || !find_all(p, &lhs, &rhs, &c)) return ax_poison;
  return makes_together(&c) ? together(&c, in[0], in[1]) : apart(&c, 0, p, in[0], in[1], false);
}
