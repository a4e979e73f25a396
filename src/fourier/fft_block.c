/* fft along a dimension that a mesh's axes cut: so that no device transforms what others transform too.

     lines        another dimension has at least as many elements as there are devices: blocks are exchanged, so that each device
                  has whole lines, and back after they are transformed. Every line has the bits that it has on one device.

     four steps   of complex numbers, n = D m on D devices, m a multiple of D. Device p has x[p m + j], for all j below m:
                    exchanged, device r has m / D of the j and all p, and makes  z[q,j] = w(n, j q) sum over p of w(D, p q) x[p,j]
                    exchanged, device q has z[q,j] for all j, and makes          y[q + D k] = sum over j of w(m, j k) z[q,j]
                    exchanged, device p has y[p m + j], for all j
                  with w(n, k) the k-th power of the n-th root of one. Each device takes as many bytes three times as lines do
                  twice. Roundings are not those of one device.

   Where neither can be, but there is another dimension, it is padded until each device has a line. A line of real numbers that is
   alone, or one of a length that D^2 does not divide, is gathered by all devices. Blocks of results may end in padding: n / 2 + 1
   elements seldom divide. */
#include "fourier/fft.h"

#include <math.h>
#include <string.h>

#include "axle/collectives.h"
#include "axle/ops.h"
#include "linalg/bands.h"

static ax_value transformed(const ax_fft_params *p, ax_value x, int64_t n, int64_t axis) {
  const ax_fft_params along = {.fft_type = p->fft_type, .fft_length = n, .axis = axis};
  return ax_bind1(&ax_prim_fft, &along, &x, 1);
}

/* The dimension whose blocks are exchanged: the first that the devices divide, or else the longest. AX_NONE: there is no other. */
static uint32_t other_dimension(const ax_type *block, uint32_t axis, int64_t devices) {
  uint32_t longest = AX_NONE;
  for (uint32_t d = 0; d < block->rank; d++) {
    if (d == axis) continue;
    if (block->dims[d] % devices == 0) return d;
    if (longest == AX_NONE || block->dims[d] > block->dims[longest]) longest = d;
  }
  return longest;
}

static ax_value by_lines(const ax_block_args *args, const ax_fft_params *p, uint32_t other) {
  const ax_type block = ax_typeof(args->in[0]);
  const int64_t wanted = args->types[args->eqn->in[0]].dims[p->axis], kept = args->blocks[0].dims[p->axis];
  if (ax_failed()) return ax_poison;
  const ax_bands bands = ax_bands_of(&args->specs[0], AX_NONE, (uint32_t)p->axis, block.dims[other]);
  const ax_value lines = ax_bands_exchange(&bands, args->in[0], other, p->axis, wanted);
  return ax_bands_exchange_back(&bands, transformed(p, lines, p->fft_length, p->axis), other, p->axis, kept);
}

static ax_value gathered(const ax_block_args *args, const ax_fft_params *p) {
  const ax_axes names = ax_spec_names(&args->specs[0], &ax_builder_current()->axes, (uint32_t)p->axis, 0);
  const ax_axes_list list = ax_axes_listed(&names);
  const ax_value blocks = ax_all_gather_invariant(args->in[0], list.text, p->axis, true);
  const ax_value x = ax_matrix_fitted(blocks, args->types[args->eqn->in[0]].dims[p->axis], p->axis);
  const ax_value y = transformed(p, x, p->fft_length, p->axis);
  const int64_t kept = args->blocks[0].dims[p->axis];
  const ax_value start = ax_block_start(args, 0, (uint32_t)p->axis, AX_S64);
  return ax_dynamic_slice_in_dim(ax_matrix_fitted(y, kept * ax_axis_size(list.text), p->axis), start, kept, p->axis);
}

/* --- Four steps --- */

typedef struct steps {
  const char *axes; /* of the mesh */
  int64_t devices, n, axis;
  bool back;
} steps;

/* x[.., m, ..] as x[.., devices, m / devices, ..], and back. */
static ax_value cut(const steps *s, ax_value x) {
  const ax_type type = ax_typeof(x);
  int64_t dims[AX_MAX_RANK];
  if (ax_failed()) return ax_poison;
  memcpy(dims, type.dims, (size_t)s->axis * sizeof dims[0]);
  dims[s->axis] = s->devices, dims[s->axis + 1] = type.dims[s->axis] / s->devices;
  memcpy(dims + s->axis + 2, type.dims + s->axis + 1, (type.rank - (size_t)s->axis - 1) * sizeof dims[0]);
  return ax_reshape(x, AX_LIST(type.rank + 1, dims));
}

static ax_value joined(const steps *s, ax_value x) {
  const ax_type type = ax_typeof(x);
  int64_t dims[AX_MAX_RANK];
  if (ax_failed()) return ax_poison;
  memcpy(dims, type.dims, (size_t)s->axis * sizeof dims[0]);
  dims[s->axis] = type.dims[s->axis] * type.dims[s->axis + 1];
  memcpy(dims + s->axis + 1, type.dims + s->axis + 2, (type.rank - (size_t)s->axis - 2) * sizeof dims[0]);
  return ax_reshape(x, AX_LIST(type.rank - 1, dims));
}

static ax_value exchanged(const steps *s, ax_value x) { return ax_all_to_all(x, s->axes, s->axis, s->axis, true); }

/* w(n, j q) of this device's j, in f64 whatever x has, as [devices, m / devices] beside the dimensions of x. The power is below n,
   and taken from -n / 2 on: angles are then exact to 2^-52. */
static ax_value roots(const steps *s, ax_value x) {
  const ax_type type = ax_typeof(x);
  if (ax_failed()) return ax_poison;
  const int64_t size = type.dims[s->axis + 1], dims[] = {s->devices, size}, beside[] = {s->axis, s->axis + 1};
  const ax_value first = ax_mul(ax_convert_element_type(ax_axis_index(s->axes), AX_S64), ax_integer(size));
  const ax_value j = ax_add(ax_iota(AX_S64, AX_LIST(2, dims), 1), first);
  const ax_value power = ax_rem(ax_mul(j, ax_iota(AX_S64, AX_LIST(2, dims), 0)), ax_integer(s->n));
  const ax_value least = ax_where(ax_gt(ax_mul(power, ax_integer(2)), ax_integer(s->n)), ax_sub(power, ax_integer(s->n)), power);
  const double turn = (s->back ? 2 : -2) * acos(-1.0) / (double)s->n;
  const ax_value angle = ax_mul(ax_convert_element_type(least, AX_F64), ax_real(turn));
  const ax_value root = ax_convert_element_type(ax_complex(ax_cos(angle), ax_sin(angle)), type.dtype);
  return ax_broadcast_in_dim(root, AX_LIST(type.rank, type.dims), beside);
}

static ax_value by_steps(const ax_block_args *args, const ax_fft_params *p, const steps *s) {
  const int64_t m = s->n / s->devices;
  ax_value x = exchanged(s, cut(s, args->in[0]));
  x = transformed(p, x, s->devices, s->axis);
  x = exchanged(s, ax_mul(x, roots(s, x)));
  x = transformed(p, joined(s, x), m, s->axis);
  return joined(s, ax_moveaxis(exchanged(s, cut(s, x)), s->axis, s->axis + 1));
}

void ax_fft_block(const ax_block_args *args) {
  const ax_fft_params *p = args->eqn->params;
  const ax_type *block = &args->blocks[0];
  const uint32_t axis = (uint32_t)p->axis;
  const ax_axes names = ax_spec_names(&args->specs[0], &ax_builder_current()->axes, axis, 0);
  if (names.count == 0) {
    args->out[0] = ax_bind1(args->eqn->prim, p, args->in, 1);
    return;
  }
  const ax_axes_list list = ax_axes_listed(&names);
  const steps s = {.axes = list.text, .devices = ax_axis_size(list.text), .n = p->fft_length, .axis = p->axis,
                   .back = strcmp(p->fft_type, "IFFT") == 0};
  const bool whole = strcmp(p->fft_type, "FFT") == 0 || s.back; /* not real */
  const uint32_t other = other_dimension(block, axis, s.devices);
  const int64_t lines = other != AX_NONE ? block->dims[other] : 1;
  if (lines >= s.devices)
    args->out[0] = by_lines(args, p, other);
  else if (whole && s.n % s.devices == 0 && s.n / s.devices % s.devices == 0 && block->rank < AX_MAX_RANK)
    args->out[0] = by_steps(args, p, &s);
  else
    args->out[0] = lines > 1 ? by_lines(args, p, other) : gathered(args, p);
}
