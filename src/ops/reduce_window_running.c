/* Lowers cumulative operations (cumulative.c), and windows that see all elements up to their place or all from it on, to kernels
   that run (plan/kernel.h): one pass. Elements are numbered in the order in which they are combined.

   A few long rows are cut in chunks, so that several threads can work. The chunks follow from the shape alone, and so do results:

     totals[c]    what chunk c comes to                           read once
     before[c]    what the chunks 0 .. c come to                  few
     result       runs through each chunk c anew, and begins
                  with before[c - 1] and its first element        read again, and written

   Sums and products of bf16 and f16 are kept in f32 between the chunks. */
#include "ops/window.h"
#include "plan/lower.h"

typedef struct run {
  ax_scalar op;
  bool reverse;
  int64_t outer, length, inner; /* [outer, length, inner]: what goes before the dimension, and what goes behind it */
  ax_dtype dtype, kept;         /* of the elements; of what is kept between chunks */
  ax_axis_set axes;
  uint32_t x, y;
} run;

static ax_position place(int dim, int64_t coef, int64_t offset) {
  return (ax_position){.dim = dim, .coef = coef, .offset = offset, .dynamic = AX_NONE};
}

/* Loop `dim`, which goes through `extent` elements or chunks in their order. */
static ax_position in_order(const run *r, int dim, int64_t extent) {
  return r->reverse ? place(dim, -1, extent - 1) : place(dim, 1, 0);
}

static ax_ex widened(ax_lower *lower, const run *r, ax_ex x) {
  return r->dtype == r->kept ? x : ax_kernel_op(lower->kernel, AX_SCALAR_CONVERT, r->kept, x, AX_NONE, AX_NONE);
}

static ax_ex combined(ax_lower *lower, const run *r, ax_ex a, ax_ex b) {
  return ax_kernel_op(lower->kernel, r->op, r->kept, a, b, AX_NONE);
}

static ax_status view(ax_lower *lower, const run *r, uint32_t buffer, int64_t from, ax_type type, uint32_t *out) {
  type.dtype = r->dtype;
  return ax_lower_view(lower, buffer, &type, from * r->inner * (int64_t)ax_dtype_bytes(r->dtype), AX_NONE, 0, out);
}

/* `count` elements from `from` on, in memory. before: a buffer [.., inner] whose last row stands before them; AX_NONE: nothing
   does. */
static ax_status lower_rows(ax_lower *lower, const run *r, int64_t from, int64_t count, uint32_t before, int64_t rows) {
  const int64_t dims[] = {r->outer, r->inner, count};
  const ax_position at[] = {place(0, 1, 0), in_order(r, 2, count), place(1, 1, 0)};
  const ax_position last[] = {place(0, 1, 0), place(-1, 0, rows - 1), place(1, 1, 0)};
  uint32_t x, y;
  AX_TRY(view(lower, r, r->x, from, ax_array_type(r->dtype, AX_DIMS(r->outer, count, r->inner)), &x));
  AX_TRY(view(lower, r, r->y, from, ax_array_type(r->dtype, AX_DIMS(r->outer, count, r->inner)), &y));
  AX_TRY(ax_lower_kernel_begin(lower, 3, 1, dims));
  lower->kernel->running = true;
  ax_ex value = widened(lower, r, ax_lower_load(lower, x, at));
  if (before != AX_NONE) {
    ax_ex begun = combined(lower, r, ax_lower_load(lower, before, last), value);
    ax_ex is_first = ax_kernel_inside(lower->kernel, 2, 1, 0, 1);
    value = ax_kernel_op(lower->kernel, AX_SCALAR_SELECT, r->kept, is_first, begun, value);
  }
  ax_lower_store(lower, y, at, value, r->op);
  return ax_lower_kernel_end(lower);
}

/* --- Chunks --- */

/* The length of a chunk; 0: the rows are many, or short. Rows that other rows follow are cut evenly. */
static int64_t chunk_length(const run *r) {
  enum { least_elems = 1 << 17, many_rows = 16, inner_row = 512, chunk_elems = 1 << 15, least_chunk = 256, least_chunks = 4 };
  const int64_t rows = r->outer * ax_ceil_div(r->inner, inner_row);
  int64_t chunk = chunk_elems / r->inner < least_chunk ? least_chunk : chunk_elems / r->inner;
  if (rows >= many_rows || r->outer * r->length * r->inner < least_elems || r->length < least_chunks * chunk) return 0;
  if (r->outer == 1) return chunk;
  for (int64_t even = chunk; even < 2 * chunk; even++)
    if (r->length % even == 0) return even;
  return 0;
}

static ax_status lower_totals(ax_lower *lower, const run *r, uint32_t x, int64_t count, int64_t size, uint32_t totals) {
  const int64_t dims[] = {r->outer, count, r->inner, size};
  const ax_position from[] = {place(0, 1, 0), in_order(r, 1, count), in_order(r, 3, size), place(2, 1, 0)};
  ax_position to[AX_MAX_RANK];
  ax_at_identity(to, 3);
  AX_TRY(ax_lower_kernel_begin(lower, 4, 1, dims));
  ax_lower_store(lower, totals, to, widened(lower, r, ax_lower_load(lower, x, from)), r->op);
  return ax_lower_kernel_end(lower);
}

static ax_status lower_before(ax_lower *lower, const run *r, int64_t count, uint32_t totals, uint32_t before) {
  const int64_t dims[] = {r->outer, r->inner, count};
  const ax_position at[] = {place(0, 1, 0), place(2, 1, 0), place(1, 1, 0)};
  AX_TRY(ax_lower_kernel_begin(lower, 3, 1, dims));
  lower->kernel->running = true;
  ax_lower_store(lower, before, at, ax_lower_load(lower, totals, at), r->op);
  return ax_lower_kernel_end(lower);
}

static ax_status lower_chunks(ax_lower *lower, const run *r, uint32_t x, uint32_t y, int64_t count, int64_t size, uint32_t before) {
  const int64_t dims[] = {r->outer, count, r->inner, size};
  const ax_position at[] = {place(0, 1, 0), in_order(r, 1, count), in_order(r, 3, size), place(2, 1, 0)};
  const ax_position last[] = {place(0, 1, 0), place(1, 1, -1), place(2, 1, 0)};
  AX_TRY(ax_lower_kernel_begin(lower, 4, 1, dims));
  ax_loop_kernel *kernel = lower->kernel;
  kernel->running = true;
  ax_ex follows = ax_kernel_inside(kernel, 1, 1, -1, count);
  ax_ex is_first = ax_kernel_both(kernel, follows, ax_kernel_inside(kernel, 3, 1, 0, 1));
  ax_ex value = widened(lower, r, ax_lower_load(lower, x, at));
  ax_ex begun = combined(lower, r, ax_lower_load_where(lower, before, last, follows), value);
  ax_lower_store(lower, y, at, ax_kernel_op(kernel, AX_SCALAR_SELECT, r->kept, is_first, begun, value), r->op);
  return ax_lower_kernel_end(lower);
}

/* Whole chunks, and the rest, which comes last: at the end, or at the beginning of rows that are gone through from their end. */
static ax_status lower_in_chunks(ax_lower *lower, const run *r, int64_t size) {
  const int64_t count = r->length / size, rest = r->length % size, first = r->reverse ? rest : 0;
  const ax_type chunks = ax_array_type(r->dtype, AX_DIMS(r->outer, count, size, r->inner)),
                kept = ax_array_type(r->kept, AX_DIMS(r->outer, count, r->inner));
  uint32_t x, y, totals, before;
  AX_TRY(view(lower, r, r->x, first, chunks, &x));
  AX_TRY(view(lower, r, r->y, first, chunks, &y));
  AX_TRY(ax_lower_buffer(lower, &kept, r->axes, &totals));
  AX_TRY(ax_lower_buffer(lower, &kept, r->axes, &before));
  AX_TRY(lower_totals(lower, r, x, count, size, totals));
  AX_TRY(lower_before(lower, r, count, totals, before));
  AX_TRY(lower_chunks(lower, r, x, y, count, size, before));
  return rest == 0 ? AX_OK : lower_rows(lower, r, r->reverse ? 0 : count * size, rest, before, count);
}

ax_status ax_window_lower_running(ax_lower *lower, const ax_eqn *eqn, ax_scalar op, uint32_t d, bool reverse, uint32_t in,
                                  uint32_t *out) {
  const ax_type *type = &lower->program->types[eqn->out];
  const bool narrow = (op == AX_SCALAR_ADD || op == AX_SCALAR_MUL) && ax_is_narrow_float(type->dtype);
  run r = {.op = op, .reverse = reverse, .dtype = type->dtype, .kept = narrow ? AX_F32 : type->dtype, .x = in};
  r.outer = ax_dims_elems(d, type->dims), r.length = type->dims[d], r.inner = ax_dims_elems(type->rank - d - 1, type->dims + d + 1);
  r.axes = lower->differs[eqn->out];
  AX_TRY(ax_lower_result(lower, eqn, 0, out));
  r.y = *out;
  const int64_t size = chunk_length(&r);
  return size > 0 ? lower_in_chunks(lower, &r, size) : lower_rows(lower, &r, 0, r.length, AX_NONE, 0);
}
