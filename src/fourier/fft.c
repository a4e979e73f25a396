/* fft: C[.., n, ..] -> C[.., n, ..], T[.., n, ..] -> C[.., n / 2 + 1, ..] or C[.., n / 2 + 1, ..] -> T[.., n, ..]
     discrete Fourier transforms along one dimension, T f32 or f64 and C the complex numbers of such parts
     "FFT"    y[k] = sum over j of x[j] exp(-2 pi i j k / n)
     "IFFT"   y[k] = sum over j of x[j] exp(2 pi i j k / n) / n
     "RFFT"   of real numbers, the first n / 2 + 1 of FFT's, which the others are conjugates of
     "IRFFT"  the real numbers with such a transform; imaginary parts that real numbers' have not, at 0 and n / 2, are ignored
   Parameters: fft_type, one of these; fft_length, n; axis.
   Errors: other dtypes; an axis outside the rank; a dimension other than n, or n / 2 + 1 for IRFFT; n 0.
   Linear over real numbers. FFT and IFFT are their own transposes; RFFT's is n IRFFT of the conjugate with all but the ends halved, and
   the other way round. Batched and cut along all dimensions. Where the transformed one is cut, blocks are exchanged, so that each
   device transforms its share of the lines; a line of complex numbers that is alone, n a multiple of the devices' number squared, is
   transformed in four steps (fourier/fft_block.c). Few elements, and other lines that are alone, are gathered.
   Compiled: by ducc0, some lines at once. A line's result has the same bits whatever is beside it, on any number of threads or
   devices, but for the four steps, which round otherwise.
   Where Axle was built without ducc0, by products with small matrices. */
#include <math.h>
#include <string.h>

#include "axle/numpy.h"
#include "fourier/engines.h"
#include "fourier/fft.h"
#include "fourier/products.h"
#include "hlo/hlo.h"
#include "hlo/read.h"
#include "ir/dtype.h"
#include "ops/complex.h"
#include "plan/lower.h"
#include "plan/plan.h"
#include "prim/composite.h"
#include "prim/expand.h"
#include "prim/prims.h"
#include "prim/shape.h"

static const char *const types[] = {
    [AX_FOURIER_FORWARD] = "FFT", [AX_FOURIER_BACKWARD] = "IFFT", [AX_FOURIER_REAL] = "RFFT", [AX_FOURIER_REAL_BACK] = "IRFFT"};

/* False: there is no such type. */
static bool kind_of(const char *name, ax_fourier_kind *out) {
  for (size_t i = 0; i < AX_COUNT(types); i++)
    if (strcmp(types[i], name) == 0) return *out = (ax_fourier_kind)i, true;
  return false;
}

static ax_fourier_kind kind(const ax_eqn *eqn) {
  ax_fourier_kind out = AX_FOURIER_FORWARD; /* infer has checked it */
  (void)kind_of(((const ax_fft_params *)eqn->params)->fft_type, &out);
  return out;
}

static ax_status infer(const ax_infer_args *args) {
  const ax_fft_params *p = args->params;
  const ax_type *x = &args->in[0];
  const ax_dtype part = ax_part_dtype(x->dtype);
  ax_fourier_kind type;
  if (!kind_of(p->fft_type, &type))
    return ax_error(AX_INVALID_ARGUMENT, "the fft_type is \"%s\"; there are FFT, IFFT, RFFT and IRFFT", p->fft_type);
  if ((part != AX_F32 && part != AX_F64) || ax_is_complex(x->dtype) == (type == AX_FOURIER_REAL))
    return ax_error(AX_INVALID_ARGUMENT, "%s needs %s, got %s", p->fft_type,
                    type == AX_FOURIER_REAL ? "f32 or f64" : "c64 or c128", ax_dtype_name(x->dtype));
  if (p->axis < 0 || p->axis >= (int64_t)x->rank)
    return ax_error(AX_INVALID_ARGUMENT, "the axis is %lld, but there are %u dimensions", (long long)p->axis, x->rank);
  const int64_t wanted = type == AX_FOURIER_REAL_BACK ? p->fft_length / 2 + 1 : p->fft_length;
  if (p->fft_length < 1 || x->dims[p->axis] != wanted)
    return ax_error(AX_INVALID_ARGUMENT, "the fft_length is %lld, but dimension %lld has %lld elements", (long long)p->fft_length,
                    (long long)p->axis, (long long)x->dims[p->axis]);
  const ax_dtype dtype = type == AX_FOURIER_REAL ? ax_complex_dtype(x->dtype) : type == AX_FOURIER_REAL_BACK ? part : x->dtype;
  args->out[0] = ax_array_type(dtype, AX_LIST(x->rank, x->dims));
  args->out[0].dims[p->axis] = type == AX_FOURIER_REAL ? p->fft_length / 2 + 1 : p->fft_length;
  return AX_OK;
}

/* --- eval: each result as the sum that it is --- */

typedef struct lines { /* x[a, count, s], for operand and result */
  int64_t a, s;
} lines;

static lines lines_of(uint32_t rank, const int64_t *dims, int64_t axis) {
  return (lines){ax_dims_elems((uint32_t)axis, dims), ax_dims_elems(rank - (uint32_t)axis - 1, dims + axis + 1)};
}

/* The element j of n of a line's spectrum, of which the last are conjugates of the first if only half is there. */
static ax_number spectrum_at(const ax_tensor *x, int64_t from, int64_t s, int64_t n, int64_t j, bool half) {
  const int64_t mirror = half && 2 * j > n ? n - j : j;
  ax_number number = ax_number_load(x->dtype, x->data, from + mirror * s);
  if (mirror != j) number.imag = -number.imag;
  if (half && (j == 0 || 2 * j == n)) number.imag = 0;
  return number;
}

static ax_status eval(const ax_eval_args *args) {
  const ax_fft_params *p = args->eqn->params;
  const ax_fourier_kind type = kind(args->eqn);
  const ax_tensor *x = args->in[0], *y = args->out[0];
  const lines l = lines_of(x->rank, x->dims, p->axis);
  const bool back = ax_fourier_is_back(type);
  const int64_t n = p->fft_length, in_count = x->dims[p->axis], out_count = y->dims[p->axis];
  double(*roots)[2] = ax_alloc((size_t)n * sizeof roots[0]);
  if (roots == NULL) return ax_out_of_memory((size_t)n * sizeof roots[0]);
  for (int64_t j = 0; j < n; j++) ax_fourier_root(back ? n - j : j, n, &roots[j][0], &roots[j][1]);
  for (int64_t line = 0; line < l.a * l.s; line++)
    for (int64_t k = 0; k < out_count; k++) {
      const int64_t from = line / l.s * in_count * l.s + line % l.s, to = line / l.s * out_count * l.s + line % l.s;
      double re = 0, im = 0;
      for (int64_t j = 0; j < n; j++) {
        const ax_number v = spectrum_at(x, from, l.s, n, j, type == AX_FOURIER_REAL_BACK);
        const double *w = roots[j * k % n];
        re += v.f * w[0] - v.imag * w[1];
        im += v.f * w[1] + v.imag * w[0];
      }
      if (back) re /= (double)n, im /= (double)n;
      ax_number_store(y->dtype, y->data, to + k * l.s, (ax_number){.f = re, .imag = im});
    }
  ax_free(roots);
  return AX_OK;
}

/* --- Derivatives --- */

static ax_value bound(ax_fourier_kind type, int64_t n, int64_t axis, ax_value x) {
  const ax_fft_params p = {.fft_type = types[type], .fft_length = n, .axis = axis};
  return ax_bind1(&ax_prim_fft, &p, &x, 1);
}

/* x[.., n / 2 + 1, ..] with all but its elements 0 and n / 2 multiplied. */
static ax_value inner_scaled(ax_value x, int64_t n, int64_t axis, double by) {
  const ax_value ends = ax_fourier_own_conjugates(x, n, axis);
  return ax_where(ends, x, ax_mul(x, ax_real(by)));
}

static void transpose(const ax_transpose_args *args) {
  const ax_fft_params *p = args->eqn->params;
  const ax_value t = args->cotangent[0];
  const double n = (double)p->fft_length;
  switch (kind(args->eqn)) {
    case AX_FOURIER_REAL: {
      const ax_value halved = inner_scaled(ax_conjugated(t), p->fft_length, p->axis, 0.5);
      args->out[0] = ax_mul(bound(AX_FOURIER_REAL_BACK, p->fft_length, p->axis, halved), ax_real(n));
      break;
    }
    case AX_FOURIER_REAL_BACK: {
      const ax_value spectrum = ax_conjugated(bound(AX_FOURIER_REAL, p->fft_length, p->axis, t));
      args->out[0] = ax_mul(inner_scaled(spectrum, p->fft_length, p->axis, 2), ax_real(1 / n));
      break;
    }
    default: args->out[0] = ax_bind1(args->eqn->prim, p, &t, 1);
  }
}

/* --- batch, shard --- */

static void batch(const ax_batch_args *args) {
  ax_fft_params p = *(const ax_fft_params *)args->eqn->params;
  if (args->in_dim[0] <= p.axis) p.axis++;
  args->out[0] = ax_bind1(args->eqn->prim, &p, args->in, 1);
  args->out_dim[0] = args->in_dim[0];
}

/* Half a spectrum is cut by the devices that cut the line evenly; its blocks then end in padding. A factor that no array has counts
   the operations for each element, 5 log2 n; half as many of real numbers. */
static void shard(const ax_shard_args *args) {
  const ax_type *x = &args->types[args->eqn->in[0]];
  const ax_fft_params *p = args->eqn->params;
  const double operations = (ax_fourier_is_real(kind(args->eqn)) ? 2.5 : 5) * log2((double)p->fft_length);
  (void)ax_factor(args, operations > 1 ? (int64_t)operations : 1, AX_FACTOR_ALONG);
  for (uint32_t d = 0; d < x->rank; d++) {
    const bool along = d == p->axis;
    const uint32_t factor = ax_factor(args, along ? p->fft_length : x->dims[d], AX_FACTOR_ALONG);
    args->factors->exchanged[factor] = along ? 2 : 0;
    ax_factor_of(&args->in[0], d, factor);
    ax_factor_of(&args->out[0], d, factor);
  }
}

/* --- lower: lines in groups that the engine transforms at once, shared out to parts --- */

enum { line_bytes = 64 /* bytes */, least_parts = 12, share = 8 };

/* Several at once, a long line of f32 takes half to all of the time that it takes alone, in eight times the memory; one of f64 gains nothing.
   Two threads should have a group each. How many there are decides nothing, since bits depend on this. */
static bool are_many(int64_t lines, const ax_fourier_key *key) {
  enum { many_lines = 16, longest = 1 << 17 };
  return lines >= many_lines && key->n > AX_FOURIER_SHORT && key->n <= longest && !key->wide;
}

/* A short line that is all there is, which would fill the other lanes of registers with copies of itself, takes a quarter to all of the
   time by itself. On several devices it may be one of many lines that are cut, whose bits are those of the uncut array. */
static bool is_alone(int64_t lines, const ax_fourier_key *key, const ax_plan *plan) {
  return lines == 1 && key->n <= AX_FOURIER_SHORT && ax_mesh_devices(&plan->mesh) == 1;
}

typedef struct transform {
  const ax_fourier_engine *engine;
  ax_fourier_key key;
  ax_fourier_job job;
  int64_t count, at_once; /* lines; lines of a group */
  int64_t work_bytes;     /* of a part */
  uint32_t parts;
} transform;

/* Where lines that lie side by side fill a group, no group has others. */
static bool grouped_by_side(const transform *t) { return t->job.s >= t->at_once; }
static int64_t groups_side_by_side(const transform *t) { return (t->job.s + t->at_once - 1) / t->at_once; }

static int64_t groups(const transform *t) {
  if (grouped_by_side(t)) return t->count / t->job.s * groups_side_by_side(t);
  return (t->count + t->at_once - 1) / t->at_once;
}

static int64_t first_line(const transform *t, int64_t group) {
  if (group == groups(t)) return t->count;
  if (!grouped_by_side(t)) return group * t->at_once;
  const int64_t beside = groups_side_by_side(t);
  return group / beside * t->job.s + group % beside * t->at_once;
}

static ax_status run_part(const void *data, void *const *memory, uint32_t part) {
  const transform *t = data;
  ax_fourier_plan *plan;
  const int64_t all = groups(t), begin = first_line(t, all * part / t->parts), end = first_line(t, all * (part + 1) / t->parts);
  if (begin == end) return AX_OK;
  AX_TRY(ax_fourier_take(t->engine, &t->key, true, &plan));
  const bool done = t->engine->run(ax_fourier_made(plan), &t->job, begin, end, memory[0], memory[1],
                                   (char *)memory[2] + part * t->work_bytes);
  ax_fourier_give(plan);
  return done ? AX_OK : AX_OUT_OF_MEMORY;
}

/* Lines whose length has a large prime factor are transformed by products of longer ones. */
static bool has_large_factor(int64_t n) {
  enum { large = 50 };
  for (int64_t p = 2; p < large && p * p <= n; p++)
    while (n % p == 0) n /= p;
  return n > large;
}

/* Nanoseconds of one group, roughly. */
static double group_time(const transform *t) {
  const double n = (double)t->job.n, far = n > 1 << 17 ? 2 : 1, longer = has_large_factor(t->job.n) ? 3 : 1,
               each = (n * log2(n + 1) / 5.5 + 10) * far * longer * (t->key.wide ? 1.7 : 1) * (t->key.real ? 0.5 : 1);
  return t->at_once > 1 ? each * (t->key.wide ? 4 : 8) : each;
}

/* Parts have workspaces of their own: those of a few parts, or together an eighth of what is transformed. So they find room where a
   result will be, and many threads have enough parts where there is much to do. */
static int64_t parts_by_memory(const transform *t) {
  const int64_t most = t->count * t->job.n * (t->key.real ? 1 : 2) * (t->key.wide ? 8 : 4) / share;
  return most > least_parts * t->work_bytes ? most / t->work_bytes : least_parts;
}

static ax_status lower_by_engine(ax_lower *lower, const ax_eqn *eqn, transform *t, uint32_t in, uint32_t *out) {
  ax_fourier_plan *plan;
  uint32_t buffers[] = {in, 0, 0};
  AX_TRY(ax_fourier_take(t->engine, &t->key, false, &plan));
  t->at_once = t->engine->lines(&t->key);
  t->work_bytes = (t->engine->work_bytes(ax_fourier_made(plan)) + line_bytes - 1) / line_bytes * line_bytes;
  ax_fourier_give(plan);
  const double time = (double)groups(t) * group_time(t);
  const int64_t all = groups(t), most = parts_by_memory(t);
  t->parts = ax_routine_parts(time, all < most ? all : most);
  AX_TRY(ax_lower_result(lower, eqn, 0, &buffers[1]));
  const ax_type work = ax_array_type(AX_U8, AX_DIMS(t->parts * t->work_bytes));
  AX_TRY(ax_lower_buffer(lower, &work, ax_lower_get(lower, buffers[1])->axes, &buffers[2]));
  *out = buffers[1];
  const ax_routine routine = {.run = run_part,
                              .data = t,
                              .in_count = 1,
                              .out_count = 2,
                              .parts = t->parts,
                              .buffers = buffers,
                              .in_place = !ax_fourier_is_real(t->job.kind),
                              .time = time,
                              .name = types[t->job.kind]};
  return ax_lower_routine(lower, &routine, sizeof *t);
}

static ax_value by_products(const ax_eqn *eqn, const ax_value *in) {
  const ax_fft_params *p = eqn->params;
  return ax_fourier_by_products(in[0], kind(eqn), p->fft_length, p->axis);
}

static ax_status lower(ax_lower *lower, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  const ax_fft_params *p = eqn->params;
  const ax_type *x = ax_lower_type(lower, in[0]);
  const ax_fourier_kind type = kind(eqn);
  const lines l = lines_of(x->rank, x->dims, p->axis);
  if (l.a * l.s == 0) {
    AX_TRY(ax_lower_result(lower, eqn, 0, &out[0]));
    return ax_lower_fill(lower, out[0], (ax_number){.i = 0});
  }
  transform t = {.engine = ax_fourier_engine_here(),
                 .key = {.n = p->fft_length,
                         .wide = ax_part_dtype(x->dtype) == AX_F64,
                         .real = ax_fourier_is_real(type)},
                 .job = {.kind = type, .n = p->fft_length, .s = l.s},
                 .count = l.a * l.s};
  if (t.engine == NULL) return ax_lower_expanded(lower, eqn, by_products, in, out);
  t.key.many = are_many(t.count, &t.key);
  t.key.alone = is_alone(t.count, &t.key, lower->plan);
  return lower_by_engine(lower, eqn, &t, in[0], out);
}

/* --- hlo: StableHLO transforms the last dimension --- */

static ax_type exchanged(const ax_type *x, int64_t axis) {
  ax_type type = *x;
  type.dims[axis] = x->dims[x->rank - 1], type.dims[x->rank - 1] = x->dims[axis];
  return type;
}

static uint32_t hlo_exchanged(ax_hlo *hlo, uint32_t x, const ax_type *to, int64_t axis) {
  ax_dims permutation = {.count = to->rank};
  ax_hlo_attributes attributes = {.hlo = hlo};
  for (uint32_t d = 0; d < to->rank; d++) permutation.v[d] = d;
  permutation.v[axis] = to->rank - 1, permutation.v[to->rank - 1] = axis;
  ax_hlo_add_dims(&attributes, "permutation", &permutation);
  return ax_hlo_op(hlo, "stablehlo.transpose", &x, 1, &attributes, to, 1);
}

static ax_status hlo(ax_hlo *hlo, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  const ax_fft_params *p = eqn->params;
  const ax_type *x = &hlo->program->types[eqn->in[0]], *y = &hlo->program->types[eqn->out];
  const ax_type from = exchanged(x, p->axis), to = exchanged(y, p->axis);
  const bool last = p->axis + 1 == (int64_t)x->rank;
  ax_hlo_attributes attributes = {.hlo = hlo};
  const uint32_t id = last ? in[0] : hlo_exchanged(hlo, in[0], &from, p->axis);
  ax_hlo_add_fields(&attributes, eqn->prim, p);
  out[0] = ax_hlo_op(hlo, "stablehlo.fft", &id, 1, &attributes, &to, 1);
  if (!last) out[0] = hlo_exchanged(hlo, out[0], y, p->axis);
  return AX_OK;
}

/* --- The record --- */

static const ax_param params[] = {
    {"fft_type", AX_PARAM_TEXT, offsetof(ax_fft_params, fft_type)},
    {"fft_length", AX_PARAM_I64, offsetof(ax_fft_params, fft_length)},
    {"axis", AX_PARAM_I64, offsetof(ax_fft_params, axis)},
};

/* Written by it; StableHLO's transforms may be along several dimensions. */
static const ax_hlo_form form = {.op = "stablehlo.fft",
                                 .fields = AX_HLO_FIELDS({"fft_type", "fft_type"}, {"fft_length", "fft_length"})};

/* Along the last fft_length.count dimensions: real ones along the last, the others one after the other. */
static ax_status read(const ax_hlo_read_args *args) {
  static const char *const kinds[] = {"FFT", "IFFT", "RFFT", "IRFFT"};
  const ax_hlo_attribute *type = ax_hlo_find(args->op, "fft_type");
  ax_dims length;
  uint32_t kind = 0;
  AX_TRY(ax_hlo_integers(args->op, "fft_length", &length));
  while (type != NULL && kind < AX_COUNT(kinds) && !ax_hlo_slice_is(type->text, kinds[kind])) kind++;
  const ax_type x = ax_typeof(args->in[0]);
  if (type == NULL || kind == AX_COUNT(kinds) || length.count == 0 || length.count > x.rank)
    return ax_error(AX_INVALID_ARGUMENT, "fft_type must be FFT, IFFT, RFFT or IRFFT, with the lengths of some of the last dimensions");
  ax_value y = args->in[0];
  const bool inverse = kind == 3;
  const ax_type *out = &args->out_types[0];
  if (ax_dims_has(&length, 0) && ax_type_elems(out) == 0) { /* a transform of nothing: there is nothing to compute */
    args->out[0] = (ax_full)(out->dtype, AX_LIST(out->rank, out->dims), 0);
    return AX_OK;
  }
  for (uint32_t i = 0; i < length.count; i++) { /* the last dimension is transformed first, but last of all by IRFFT */
    const uint32_t k = inverse ? i : length.count - 1 - i;
    const bool last = k + 1 == length.count;
    const uint32_t how = kind < 2 || last ? kind : kind == 2 ? 0 : 1;
    const ax_fft_params p = {.fft_type = kinds[how], .fft_length = length.v[k], .axis = (int64_t)(x.rank - length.count + k)};
    y = ax_bind1(&ax_prim_fft, &p, &y, 1);
  }
  args->out[0] = y;
  return AX_OK;
}

static const ax_hlo_reader readers[] = {{"stablehlo.fft", read}, {0}};

const ax_prim ax_prim_fft = {
    .name = "fft", .kind = AX_LOCAL, .in_count = 1, .out_count = 1, .form = &form, AX_PARAMS(params, ax_fft_params), AX_LINEAR_TANGENTS,
    .kinds = AX_KINDS_SUM, .infer = infer, .spread = ax_spread_local, .eval = eval, .differs = ax_differs_union,
    .transpose = transpose, .batch = batch, .simplify = ax_simplify_nothing, .shard = shard, .block = ax_fft_block,
    .lower = lower, .complex = lower, .reads = readers, .hlo = hlo,
};

/* --- The public functions --- */

static ax_value along(const char *name, ax_fourier_kind type, ax_value x, int64_t n, int64_t axis) {
  ax_type of;
  if (!ax_operand(name, x, &of)) return ax_poison;
  const ax_dtype part = ax_part_dtype(of.dtype);
  if (part != AX_F32 && part != AX_F64)
    return ax_reject_as(name, "the operand is %s; it must be of f32, f64 or complex numbers", ax_operand_string(&of));
  if (type == AX_FOURIER_REAL && ax_is_complex(of.dtype))
    return ax_reject_as(name, "the operand is %s; it must be of real numbers", ax_operand_string(&of));
  if (!ax_dimension(name, "the axis", &axis, of.rank)) return ax_poison;
  const int64_t count = of.dims[axis];
  if (count == 0)
    return ax_reject_as(name, "dimension %lld of %s has no elements", (long long)axis, ax_operand_string(&of));
  if (type != AX_FOURIER_REAL && !ax_is_complex(of.dtype)) x = ax_complex(x, ax_full_like(x, 0));
  if (type != AX_FOURIER_REAL_BACK) return bound(type, count, axis, x);
  if (n == 0) n = 2 * (count - 1);
  if (n < 1 || count != n / 2 + 1)
    return ax_reject_as(name, "%lld real numbers are made of %lld complex ones, but the operand is %s", (long long)n,
                        (long long)(n / 2 + 1), ax_operand_string(&of));
  return bound(type, n, axis, x);
}

ax_value (ax_fft)(ax_value x, int64_t axis) { return along("fft", AX_FOURIER_FORWARD, x, 0, axis); }
ax_value (ax_ifft)(ax_value x, int64_t axis) { return along("ifft", AX_FOURIER_BACKWARD, x, 0, axis); }
ax_value (ax_rfft)(ax_value x, int64_t axis) { return along("rfft", AX_FOURIER_REAL, x, 0, axis); }
ax_value (ax_irfft)(ax_value x, int64_t n, int64_t axis) { return along("irfft", AX_FOURIER_REAL_BACK, x, n, axis); }
