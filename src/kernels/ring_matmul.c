/* Shared by the products of axle/collective_matmul.h: the checks of operands and options, and the steps of their kernels' bodies on
   refs. */
#include "kernels/collective_matmul.h"

#include <string.h>

#include "prim/composite.h"

/* --- Operands --- */

bool ax_ring_same_dtype(const char *function, ax_value lhs, ax_value rhs) {
  ax_type left, right;
  if (!ax_operand(function, lhs, &left) || !ax_operand(function, rhs, &right)) return false;
  if (left.dtype != right.dtype)
    ax_reject_as(function, "operand dtypes differ: %s and %s", ax_operand_string(&left), ax_operand_string(&right));
  return !ax_failed();
}

static bool check_operands(const ax_ring_matmul *m) {
  const ax_type *lhs = &m->lhs, *rhs = &m->rhs;
  const char *function = m->ring.function;
  if (lhs->dtype == AX_BOOL || rhs->dtype == AX_BOOL)
    ax_reject_as(function, "needs a numeric dtype, got bool");
  else if (lhs->rank < 2 || lhs->rank != rhs->rank)
    ax_reject_as(function, "the operands are %s and %s; both are of as many dimensions, two at least", ax_operand_string(lhs),
                 ax_operand_string(rhs));
  else
    for (uint32_t d = 0; d + 2 < lhs->rank; d++) {
      if (lhs->dims[d] == rhs->dims[d]) continue;
      ax_reject_as(function, "dimension %u is of %lld in %s and of %lld in %s", d, (long long)lhs->dims[d], ax_operand_string(lhs),
                   (long long)rhs->dims[d], ax_operand_string(rhs));
      return false;
    }
  return !ax_failed();
}

/* The sum's dimension is whole in the right operand; the left one has it whole, or, gathered along it, a part. */
static bool check_contraction(const ax_ring_matmul *m, bool scatter) {
  int64_t mine = m->lhs.dims[m->lhs.rank - 1], other = m->rhs.dims[m->rhs.rank - 2], whole = mine;
  bool parts = m->columns && !scatter;
  if (parts && __builtin_mul_overflow(mine, m->ring.length, &whole)) whole = -1;
  if (whole == other) return true;
  if (parts)
    ax_reject_as(m->ring.function,
                 "the columns of %s are gathered from a ring of %lld, so that there are %lld rows of the right operand; it is %s",
                 ax_operand_string(&m->lhs), (long long)m->ring.length, (long long)whole, ax_operand_string(&m->rhs));
  else
    ax_reject_as(m->ring.function, "%s has %lld columns and %s has %lld rows", ax_operand_string(&m->lhs), (long long)mine,
                 ax_operand_string(&m->rhs), (long long)other);
  return false;
}

/* The dimension of the whole product that there are parts of; places in it are s32. */
static bool check_parts(ax_ring_matmul *m, bool scatter) {
  uint32_t rank = m->lhs.rank;
  int64_t *out = &m->out.dims[m->columns ? rank - 1 : rank - 2], whole = *out;
  if (scatter && whole % m->ring.length != 0) {
    ax_reject_as(m->ring.function, "the product of %s and %s has %lld %s, which a ring of %lld does not divide",
                 ax_operand_string(&m->lhs), ax_operand_string(&m->rhs), (long long)whole, m->columns ? "columns" : "rows",
                 (long long)m->ring.length);
    return false;
  }
  if (scatter) *out = whole / m->ring.length;
  else if (m->columns) whole = m->rhs.dims[rank - 2];
  else if (__builtin_mul_overflow(whole, m->ring.length, &whole)) whole = INT64_MAX;
  else *out = whole;
  if (whole <= INT32_MAX) return true;
  ax_reject_as(m->ring.function, "there are %lld %s in parts; places are s32", (long long)whole, m->columns ? "columns" : "rows");
  return false;
}

ax_dtype ax_ring_sums(ax_dtype dtype) {
  const ax_dtype_kind kind = ax_dtype_get(dtype)->kind;
  if (ax_dtype_bytes(dtype) >= 4) return dtype;
  return kind == AX_KIND_FLOAT ? AX_F32 : kind == AX_KIND_SIGNED ? AX_S32 : AX_U32;
}

static bool check_dtype(ax_ring_matmul *m, ax_dtype dtype) {
  const ax_dtype_info *in = ax_dtype_get(m->lhs.dtype), *out = ax_dtype_get(dtype);
  if (dtype == AX_NO_DTYPE) out = in, dtype = m->lhs.dtype;
  if (out->kind != in->kind) {
    ax_reject_as(m->ring.function, "the result of %s is to be %s, which is not of its kind", ax_dtype_name(m->lhs.dtype),
                 ax_dtype_name(dtype));
    return false;
  }
  m->out.dtype = dtype;
  m->sums = ax_ring_sums(dtype);
  return true;
}

/* Kernels with one barrier semaphore are to have the same neighbours: a device that meets others could take a signal of theirs for
   one of those it waits for. So there is one for each table, on each mesh. */
static int64_t barrier_of(const ax_ring *ring, const ax_rings *rings) {
  const ax_mesh *mesh = &ax_builder_current()->axes;
  uint64_t hash = ax_hash_bytes(AX_HASH_SEED, ring->axes, strlen(ring->axes));
  for (uint32_t i = 0; i < mesh->count; i++)
    hash = ax_hash_word(ax_hash_bytes(hash, mesh->axis[i].name, strlen(mesh->axis[i].name)), (uint64_t)mesh->axis[i].size);
  if (rings != NULL)
    hash = ax_hash_bytes(ax_hash_word(hash, (uint64_t)ring->length), rings->ids,
                         (size_t)ax_type_elems(&rings->type) * sizeof rings->ids[0]);
  return (int64_t)(hash % INT32_MAX) + 1;
}

bool ax_ring_matmul_init(ax_ring_matmul *m, const char *function, bool scatter, const ax_value *in, const char *axes,
                         const ax_rings *rings, const ax_ring_options *options) {
  static const ax_ring_options none;
  if (options == NULL) options = &none;
  *m = (ax_ring_matmul){.scatter = scatter, .columns = options->columns, .collective_id = options->collective_id};
  if (!ax_ring_init(&m->ring, function, axes, rings, options->buffering) || !ax_operand(function, in[0], &m->lhs) ||
      !ax_operand(function, in[1], &m->rhs) || !check_operands(m) || !check_contraction(m, scatter))
    return false;
  if (m->collective_id == 0) m->collective_id = barrier_of(&m->ring, rings);
  m->out = m->lhs;
  m->out.spread = (ax_spread){0};
  m->out.dims[m->out.rank - 1] = m->rhs.dims[m->rhs.rank - 1];
  return check_parts(m, scatter) && check_dtype(m, options->dtype);
}

/* --- What bodies use --- */

ax_value ax_ref_part(ax_value ref, uint32_t dimension, ax_value start, int64_t size) {
  ax_type type = ax_typeof(ref);
  ax_value starts[AX_MAX_RANK];
  for (uint32_t d = 0; d < type.rank; d++) starts[d] = d == dimension ? start : ax_integer(0);
  type.dims[dimension] = size;
  return ax_ref_slice(ref, starts, type.dims);
}

static ax_value load_as(ax_value ref, ax_dtype dtype) { return ax_convert_element_type(ax_ref_load(ref), dtype); }

ax_value ax_ref_product(const ax_ring_matmul *m, ax_value lhs, ax_value rhs) {
  return ax_matmul(load_as(lhs, m->sums), load_as(rhs, m->sums));
}

void ax_ref_round(const ax_ring_matmul *m, ax_value ref, ax_value value) {
  ax_ref_store(ref, ax_convert_element_type(value, m->out.dtype));
}

/* --- The kernels' functions --- */

ax_value ax_collective_matmul_kernel(ax_value lhs, ax_value rhs, const char *axes, const ax_rings *rings,
                                     const ax_ring_options *options) {
  const ax_value in[] = {lhs, rhs};
  ax_ring_matmul m;
  bool fine = ax_ring_same_dtype("collective_matmul_kernel", lhs, rhs) &&
              ax_ring_matmul_init(&m, "collective_matmul_kernel", false, in, axes, rings, options);
  return fine ? ax_gather_kernel(&m, in) : ax_poison;
}

ax_value ax_matmul_reduce_scatter_kernel(ax_value lhs, ax_value rhs, const char *axes, const ax_rings *rings,
                                         const ax_ring_options *options) {
  const ax_value in[] = {lhs, rhs};
  ax_ring_matmul m;
  bool fine = ax_ring_same_dtype("matmul_reduce_scatter_kernel", lhs, rhs) &&
              ax_ring_matmul_init(&m, "matmul_reduce_scatter_kernel", true, in, axes, rings, options);
  return fine ? ax_scatter_kernel(&m, in) : ax_poison;
}
