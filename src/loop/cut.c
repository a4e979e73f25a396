/* Large kernels are cut into parts, which several threads may run at once. Along which dimension, and into how many, follows from the
   kernel alone: a part should take some tens of microseconds, and walk memory in runs that are long enough to be fetched ahead. */
#include "ir/program.h"
#include "loop/passes.h"

static const double part_time = 30000; /* nanoseconds */
enum { most_parts = 256, run_bytes = 2048 };

/* --- How long it takes --- */

/* Nanoseconds an element, on one thread of a machine with wide vectors, roughly. */
static double op_time(const ax_expr *expr) {
  bool is_integer = !ax_is_float(expr->dtype);
  double width = (double)ax_dtype_bytes(expr->dtype) / 4;
  switch ((int)expr->op) {
    case AX_LEAF_CONST:
    case AX_LEAF_AXIS: return 0;
    case AX_SCALAR_DIV: return is_integer ? width * width : 0.1 * width;
    case AX_SCALAR_SQRT:
    case AX_SCALAR_RSQRT: return 0.1 * width;
    case AX_SCALAR_EXP:
    case AX_SCALAR_LOG:
    case AX_SCALAR_EXPM1:
    case AX_SCALAR_LOG1P:
    case AX_SCALAR_LOGISTIC: return 0.4 * width;
    case AX_SCALAR_TANH:
    case AX_SCALAR_ERF:
    case AX_SCALAR_POW: return 1.4 * width;
    default: return 0.05;
  }
}

double ax_kernel_time(const ax_kernel *kernel) {
  double elem = 0.05 * kernel->store_count;
  for (uint32_t i = 0; i < kernel->expr_count; i++) elem += op_time(&kernel->exprs[i]);
  return elem * (double)ax_dims_elems(kernel->rank, kernel->dims);
}

/* --- Along which dimension --- */

typedef struct access { /* a load or store: how far apart its elements are along each dimension of the kernel */
  int64_t stride[2 * AX_MAX_RANK], bytes;
  double elems; /* how many there are */
} access;

static access access_of(const ax_kernel *kernel, uint32_t slot, const ax_at *at) {
  const ax_slot *s = &kernel->slots[slot];
  access a = {.bytes = (int64_t)ax_dtype_bytes(s->dtype), .elems = 1};
  int64_t pitch = 1;
  for (uint32_t d = s->rank; d-- > 0; pitch *= s->dims[d])
    if (at[d].dim >= 0) a.stride[at[d].dim] += at[d].coef * pitch;
  for (uint32_t d = 0; d < kernel->rank; d++)
    if (a.stride[d] != 0) a.elems *= (double)kernel->dims[d];
  return a;
}

/* The least extent of a part along `dim` at which this access still goes over whole runs. */
static int64_t least_extent(const access *a, uint32_t dim) {
  int64_t apart = (a->stride[dim] < 0 ? -a->stride[dim] : a->stride[dim]) * a->bytes;
  return apart == 0 ? 1 : (run_bytes + apart - 1) / apart;
}

typedef struct lengths {
  int64_t least[2 * AX_MAX_RANK]; /* by dimension: of a part */
} lengths;

/* Only accesses that matter: those to no less than a few elements for each of the largest's. */
static lengths least_lengths(const ax_kernel *kernel) {
  lengths l;
  double largest = 0;
  for (uint32_t pass = 0; pass < 2; pass++) {
    for (uint32_t d = 0; pass == 1 && d < kernel->rank; d++) l.least[d] = 1;
    for (uint32_t i = 0; i < kernel->expr_count + kernel->store_count; i++) {
      const ax_expr *expr = i < kernel->expr_count ? &kernel->exprs[i] : NULL;
      const ax_store *store = expr == NULL ? &kernel->stores[i - kernel->expr_count] : NULL;
      if (expr != NULL && expr->op != AX_LEAF_LOAD) continue;
      access a = expr != NULL ? access_of(kernel, expr->slot, expr->at) : access_of(kernel, store->slot, store->at);
      if (pass == 0 && a.elems > largest) largest = a.elems;
      for (uint32_t d = 0; pass == 1 && a.elems * 8 >= largest && d < kernel->rank; d++) {
        int64_t least = least_extent(&a, d);
        if (least > l.least[d]) l.least[d] = least;
      }
    }
  }
  return l;
}

/* The outermost dimension that gives as many parts as are wanted, or the one that gives most. */
static void cut_kernel(ax_kernel *kernel) {
  double wanted = ax_kernel_time(kernel) / part_time;
  uint32_t parallel = kernel->rank - kernel->reduce_rank;
  int64_t most = 1;
  kernel->ranged = 0;
  kernel->parts = 1;
  if (wanted < 2 || parallel == 0) return;
  if (wanted > most_parts) wanted = most_parts;
  lengths l = least_lengths(kernel);
  for (uint32_t d = 0; d < parallel && (double)most < wanted; d++) {
    int64_t parts = kernel->dims[d] / l.least[d];
    if (parts <= most) continue;
    kernel->ranged = d;
    most = parts;
  }
  kernel->parts = (uint32_t)((double)most < wanted ? (double)most : wanted);
}

static void cut_block(ax_block *block) {
  for (uint32_t i = 0; i < block->count; i++) {
    ax_op *op = &block->ops[i];
    for (uint32_t k = 0; ax_op_block(op, k) != NULL; k++) cut_block(ax_op_block(op, k));
    if (op->kind == AX_OP_KERNEL) cut_kernel(op->kernel.kernel);
  }
}

ax_status ax_plan_cut(ax_plan *plan) {
  cut_block(&plan->block);
  return AX_OK;
}
