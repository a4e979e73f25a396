/* A kernel is flat if its steps differ only in the elements they touch, and every slot is either a single element or an array as
   large as the index space, taken in its order. Then the index space may as well have one dimension. That changes no bits, since
   nothing is added up.

   Code depends on extents in three ways. A loop over few elements has masked vectors throughout, which is the shorter code. A loop
   over many has whole vectors and a remainder. If every part of the range is a whole number of vectors, there are neither masks nor
   a remainder (jit/emit/emit.c). So there are three forms: [few], [many] and [many, block]. A kernel with fewer than `fewest`
   elements, which may be less than a register holds, keeps its number. */
#include "assemble/flat.h"

#include <string.h>

enum { fewest = 512, few = 1 << 15, block = 64 }; /* a block is a whole number of any vectors */
static const int64_t many = (int64_t)1 << 40; /* more than any array has */

int64_t ax_flat_class(int64_t elems) { return elems < fewest || elems >= many ? elems : elems > few ? many : few; }

static bool lies_flat(const ax_loop_kernel *kernel, uint32_t slot, const ax_position *at) {
  return kernel->slots[slot].rank == 0 || ax_kernel_covers(kernel, slot, at);
}

/* The number of elements of the whole index space; 0: the kernel is not flat. */
static int64_t flat_elems(const ax_loop_kernel *kernel) {
  int64_t elems = 1;
  if (kernel->rank == 0 || kernel->reduce_rank > 0) return 0;
  for (uint32_t d = 0; d < kernel->rank; d++)
    if ((d < kernel->ranged && kernel->dims[d] != 1) || !ax_mul_i64(elems, kernel->dims[d], &elems)) return 0;
  for (uint32_t i = 0; i < kernel->expr_count; i++) {
    const ax_expr *e = &kernel->exprs[i];
    if (e->op == AX_LEAF_INDEX || e->op == AX_LEAF_INSIDE) return 0;
    if (e->op == AX_LEAF_LOAD && (e->arg[0] != AX_NONE || !lies_flat(kernel, e->slot, e->at))) return 0;
  }
  for (uint32_t i = 0; i < kernel->store_count; i++)
    if (kernel->slots[kernel->stores[i].slot].rank == 0 || !lies_flat(kernel, kernel->stores[i].slot, kernel->stores[i].at))
      return 0;
  return elems;
}

const ax_loop_kernel *ax_kernel_flat(ax_arena *arena, const ax_loop_kernel *kernel, int64_t *scale) {
  static const ax_position identity[] = {{.dim = 0, .coef = 1, .dynamic = AX_NONE}, {.dim = 1, .coef = 1, .dynamic = AX_NONE}};
  const int64_t elems = flat_elems(kernel);
  *scale = 1;
  if (elems < fewest || elems >= many) return kernel;
  ax_loop_kernel *flat = ax_kernel_copy(arena, kernel);
  if (flat == NULL) return NULL;
  const int64_t step = elems / kernel->dims[kernel->ranged];
  const bool in_blocks = step % block == 0;
  const int64_t dims[] = {in_blocks ? many : ax_flat_class(elems), block};
  *scale = in_blocks ? step / block : step;
  flat->rank = in_blocks ? 2 : 1;
  flat->ranged = 0;
  memcpy(flat->dims, dims, flat->rank * sizeof dims[0]);
  for (uint32_t i = 0; i < flat->slot_count; i++) {
    ax_slot *slot = &flat->slots[i];
    if (slot->rank == 0) continue;
    slot->rank = flat->rank;
    memcpy(slot->dims, dims, flat->rank * sizeof dims[0]);
  }
  for (uint32_t i = 0; i < flat->expr_count; i++)
    if (flat->exprs[i].op == AX_LEAF_LOAD && flat->slots[flat->exprs[i].slot].rank > 0) flat->exprs[i].at = identity;
  for (uint32_t i = 0; i < flat->store_count; i++) flat->stores[i].at = identity;
  return flat;
}
