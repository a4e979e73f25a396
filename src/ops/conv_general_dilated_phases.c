/* Convolutions of a dilated lhs, as the gradients of strided convolutions are, without the zeros between its elements.

   Along one dimension, position o and the kernel's place k meet an element, and no zero, if o * stride + k * dilation - low is a
   multiple of the base. So positions fall into phases, o = phase + q * period, and each phase has its own places of the kernel, k =
   first + j * step:

       y[phase + q * period] = sum over j of lhs[q * (period * stride / base) + j * (dilation / gcd) - low'] * rhs[first + j * step]

   which is a convolution without a base. Consecutive phases that have equally many places and meet the same elements are a segment:
   one convolution computes them at once, as more features of the result (for patches, all of them). The segments' results are then
   interleaved. No place is added to a phase, so that nothing is multiplied by a zero that the definition does not have. */
#include "ops/conv_general_dilated.h"
#include "prim/prims.h"

enum { most_period = 256, most_convolutions = 16 };

typedef struct phase {
  int64_t first, step, count; /* places; count 0: no place meets an element */
  int64_t low;
} phase;

/* Along a dimension. */
typedef struct phases {
  ax_window window;
  int64_t period, positions; /* positions: of each phase, the last ones of some beyond the result */
  int64_t stride, dilation;
  int64_t segments;
} phases;

static int64_t common_divisor(int64_t a, int64_t b) { return b == 0 ? a : common_divisor(b, a % b); }

static phase phase_of(const phases *s, int64_t index) {
  const ax_window *w = &s->window;
  phase f = {.step = w->base / common_divisor(w->dilation, w->base)};
  while (f.first < f.step && f.first < w->size && (index * w->stride + f.first * w->dilation - w->low) % w->base != 0) f.first++;
  if (f.first < f.step && f.first < w->size) {
    f.count = (w->size - 1 - f.first) / f.step + 1;
    f.low = -(index * w->stride + f.first * w->dilation - w->low) / w->base;
  }
  return f;
}

/* The end, exclusive, of the segment that begins with phase `index`. */
static int64_t segment_end(const phases *s, int64_t index, bool one_group) {
  const phase f = phase_of(s, index);
  for (index++; one_group && index < s->period; index++) {
    const phase next = phase_of(s, index);
    if (next.count != f.count || next.low != f.low) break;
  }
  return index;
}

/* The padding behind the elements that makes room for all positions of this phase. */
static int64_t high_of(const phases *s, const phase *f) {
  return (s->positions - 1) * s->stride + (f->count - 1) * s->dilation + 1 - s->window.array - f->low;
}

/* False: they are too many, none of them meets anything, or some positions are too far from the array for padding to say. */
static bool find_phases(const ax_window *w, bool one_group, phases *s) {
  *s = (phases){.window = *w,
                .period = w->base / common_divisor(w->stride, w->base),
                .dilation = w->dilation / common_divisor(w->dilation, w->base)};
  s->stride = s->period * w->stride / w->base;
  bool any = false;
  if (w->base > most_period) return false;
  s->positions = ax_ceil_div(ax_window_count(w), s->period);
  for (int64_t i = 0; i < s->period; i = segment_end(s, i, one_group), s->segments++) {
    const phase f = phase_of(s, i);
    if (f.count > 0 && (f.low < -w->array || high_of(s, &f) < -w->array)) return false;
    any = any || f.count > 0;
  }
  return any;
}

typedef struct convolution {
  const ax_conv_params *p;
  phases along[AX_MAX_RANK];
  uint32_t spatial;
  bool one_group;
} convolution;

static bool find_all(const ax_conv_params *p, const ax_type *lhs, const ax_type *rhs, convolution *c) {
  bool dilated = false;
  int64_t segments = 1;
  *c = (convolution){.p = p, .spatial = ax_conv_spatial(p), .one_group = p->feature_group_count * p->batch_group_count == 1};
  for (uint32_t i = 0; i < c->spatial && segments <= most_convolutions; i++) {
    const ax_window w = ax_conv_window(p, lhs, rhs, i);
    if (!find_phases(&w, c->one_group, &c->along[i])) return false;
    dilated = dilated || w.base > 1;
    segments *= c->along[i].segments;
  }
  return dilated && segments <= most_convolutions && lhs->rank < AX_MAX_RANK;
}

bool ax_conv_has_phases(const ax_conv_params *p, const ax_type *lhs, const ax_type *rhs) {
  convolution c;
  return find_all(p, lhs, rhs, &c);
}

/* Sets the parameters of a segment's convolution along dimension i. */
static void set_window(ax_conv_params *p, const phases *s, uint32_t i, const phase *f) {
  p->window_strides.v[i] = s->stride;
  p->lhs_dilation.v[i] = 1;
  p->rhs_dilation.v[i] = s->dilation;
  p->padding_low.v[i] = f->low;
  p->padding_high.v[i] = high_of(s, f);
}

/* The zeros that stand for phases along dimension i without places: the array that made() would return for as many phases. */
static ax_value zeros(const convolution *c, uint32_t i, const ax_conv_params *p, ax_value x, ax_value y, int64_t phases) {
  const ax_type lhs = ax_typeof(x), rhs = ax_typeof(y);
  ax_type type = ax_array_type(lhs.dtype, AX_LIST(lhs.rank, lhs.dims));
  type.dims[p->out_spec.v[AX_CONV_BATCH]] = lhs.dims[p->lhs_spec.v[AX_CONV_BATCH]] / p->batch_group_count;
  type.dims[p->out_spec.v[AX_CONV_FEATURE]] = phases * rhs.dims[p->rhs_spec.v[AX_CONV_OUT]];
  for (uint32_t k = 0; k < c->spatial; k++)
    type.dims[p->out_spec.v[AX_CONV_SPATIAL + k]] = k <= i ? c->along[k].positions : ax_window_count(&c->along[k].window);
  return ax_zeros_of(&type);
}

/* The kernel's places of phases begin .. end along dimension i, those of one phase behind those of another among its features for
   the result. */
static ax_value places_of(const convolution *c, uint32_t i, ax_value y, int64_t begin, int64_t end) {
  ax_value *parts = ax_trace_alloc((size_t)(end - begin) * sizeof parts[0]);
  for (int64_t n = begin; n < end && parts != NULL && !ax_failed(); n++) {
    const phase f = phase_of(&c->along[i], n);
    parts[n - begin] = ax_window_part(y, (uint32_t)c->p->rhs_spec.v[AX_CONV_SPATIAL + i], f.first, f.count, f.step);
  }
  if (parts == NULL || ax_failed()) return ax_poison;
  return end - begin == 1 ? parts[0] : ax_concatenate(AX_LIST((uint32_t)(end - begin), parts), c->p->rhs_spec.v[AX_CONV_OUT]);
}

/* made with its features in front of `phases`, which then stand behind dimension d. */
static ax_value phases_behind(ax_value made, uint32_t features, uint32_t d, int64_t phases) {
  const ax_type type = ax_typeof(made);
  int64_t dims[AX_MAX_RANK];
  if (ax_failed()) return ax_poison;
  for (uint32_t k = 0; k <= type.rank; k++)
    dims[k] = k < features        ? type.dims[k]
              : k == features     ? phases
              : k == features + 1 ? type.dims[features] / phases
                                  : type.dims[k - 1];
  return ax_move_dim(ax_reshape(made, AX_LIST(type.rank + 1, dims)), (int)features, (int)d + 1);
}

/* x, whose elements along dimension d have neighbours along the next one: one dimension, of which `extent` are there. */
static ax_value laid_between(ax_value x, uint32_t d, int64_t extent) {
  const ax_type type = ax_typeof(x);
  int64_t dims[AX_MAX_RANK];
  if (ax_failed()) return ax_poison;
  for (uint32_t i = 0; i + 1 < type.rank; i++)
    dims[i] = i < d ? type.dims[i] : i == d ? type.dims[d] * type.dims[d + 1] : type.dims[i + 1];
  return ax_window_part(ax_reshape(x, AX_LIST(type.rank - 1, dims)), d, 0, extent, 1);
}

/* p and y: of the dimensions before i, one segment's. */
static ax_value made(const convolution *c, uint32_t i, const ax_conv_params *p, ax_value x, ax_value y) {
  if (i == c->spatial) return ax_conv_bind(p, x, y);
  const phases *s = &c->along[i];
  const uint32_t d = (uint32_t)p->out_spec.v[AX_CONV_SPATIAL + i];
  uint32_t count = 0;
  ax_value *parts = ax_trace_alloc((size_t)s->segments * sizeof parts[0]);
  for (int64_t n = 0, end; n < s->period && parts != NULL && !ax_failed(); n = end) {
    const phase f = phase_of(s, n);
    ax_conv_params inner = *p;
    end = segment_end(s, n, c->one_group);
    if (f.count > 0) set_window(&inner, s, i, &f);
    ax_value part = f.count > 0 ? made(c, i + 1, &inner, x, places_of(c, i, y, n, end)) : zeros(c, i, p, x, y, end - n);
    parts[count++] = phases_behind(part, (uint32_t)p->out_spec.v[AX_CONV_FEATURE], d, end - n);
  }
  return parts != NULL && !ax_failed() ? laid_between(ax_concatenate(AX_LIST(count, parts), d + 1), d, ax_window_count(&s->window))
                                       : ax_poison;
}

ax_value ax_conv_by_phases(const ax_eqn *eqn, const ax_value *in) {
  const ax_conv_params *p = eqn->params;
  const ax_type lhs = ax_typeof(in[0]), rhs = ax_typeof(in[1]);
  convolution c;
  if (ax_failed() || !find_all(p, &lhs, &rhs, &c)) return ax_poison;
  return made(&c, 0, p, in[0], in[1]);
}
