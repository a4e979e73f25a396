/* Code depends on a slot's dimensions and positions in two ways only: by how far a step along each dimension of the kernel moves
   in memory, and by where each access begins (jit/nest/loops.c). If all accesses of a slot begin beyond its first element, the
   slot may as well begin later:

     x[i0, i1 + 40] of f32[32,64]    is    x[i0, i1 + 8] of f32[.,64] that begins 128 bytes later

   It begins later by whole cache lines, so that each vector lies in its line as before, and is stored as before. How many rows an
   array has does not matter to the code either, unless the array is so large that its rows are fetched ahead. Nor does the number
   of steps along one dimension that is not added up, but for its class (assemble/flat.h). */
#include "assemble/moved.h"

#include <string.h>

#include "assemble/flat.h"

#include "ir/program.h"
#include "machine/caches.h"

enum { line = 64 };

typedef struct slot_use {
  int64_t least; /* where the first access begins, in elements; INT64_MAX: there is none */
  int64_t later; /* elements by which the slot begins later */
  bool dynamic;  /* an access has a start that is data */
} slot_use;

static int64_t first_element(const ax_slot *slot, const ax_position *at) {
  int64_t pitch = 1, first = 0;
  for (uint32_t d = slot->rank; d-- > 0; pitch *= slot->dims[d]) first += at[d].offset * pitch;
  return first;
}

static void add_access(const ax_slot *slot, const ax_position *at, slot_use *use) {
  const int64_t first = first_element(slot, at);
  if (first < use->least) use->least = first;
  for (uint32_t d = 0; d < slot->rank; d++) use->dynamic = use->dynamic || at[d].dynamic != AX_NONE;
}

/* A load whose guard is false reads the slot's first element (jit/emit/memory.c), so the slot may not begin beyond its end. */
static int64_t whole_lines(const ax_slot *slot, int64_t least) {
  const int64_t last = ax_dims_elems(slot->rank, slot->dims) - 1, a_line = line / (int64_t)ax_dtype_bytes(slot->dtype);
  const int64_t most = least < last ? least : last;
  return slot->rank > 0 && most > 0 ? most / a_line * a_line : 0;
}

static bool counts_rows(const ax_slot *slot, const slot_use *use) {
  return slot->rank == 0 || slot->dims[0] == 1 || use->dynamic ||
         ax_dims_elems(slot->rank, slot->dims) >= ax_caches_here()->far_rows / (int64_t)ax_dtype_bytes(slot->dtype);
}

/* The extent that stands for the kernel's class, if its steps go along one dimension and differ in places alone; else its own. */
static int64_t class_of_line(const ax_loop_kernel *kernel) {
  if (kernel->rank != 1 || kernel->reduce_rank > 0) return kernel->dims[0];
  for (uint32_t i = 0; i < kernel->expr_count; i++)
    if (kernel->exprs[i].op == AX_LEAF_INDEX || kernel->exprs[i].op == AX_LEAF_INSIDE) return kernel->dims[0];
  return ax_flat_class(kernel->dims[0]);
}

/* Finds how much later each slot may begin; false: no slot would change. */
static bool find_uses(const ax_loop_kernel *kernel, slot_use *uses) {
  bool changes = kernel->rank > 0 && class_of_line(kernel) != kernel->dims[0];
  for (uint32_t s = 0; s < kernel->slot_count; s++) uses[s] = (slot_use){.least = INT64_MAX};
  for (uint32_t i = 0; i < kernel->expr_count; i++) {
    const ax_expr *e = &kernel->exprs[i];
    if (e->op == AX_LEAF_LOAD) add_access(&kernel->slots[e->slot], e->at, &uses[e->slot]);
  }
  for (uint32_t i = 0; i < kernel->store_count; i++)
    add_access(&kernel->slots[kernel->stores[i].slot], kernel->stores[i].at, &uses[kernel->stores[i].slot]);
  for (uint32_t s = 0; s < kernel->slot_count; s++) {
    uses[s].later = whole_lines(&kernel->slots[s], uses[s].least == INT64_MAX ? 0 : uses[s].least);
    changes = changes || uses[s].later > 0 || !counts_rows(&kernel->slots[s], &uses[s]);
  }
  return changes;
}

/* The same positions of a slot that begins later. All of the offset goes along the last dimension, whose elements are
   neighbours. */
static const ax_position *moved_at(ax_arena *arena, const ax_slot *slot, const ax_position *at, const slot_use *use) {
  if (slot->rank == 0) return at;
  ax_position *moved = ax_arena_copy(arena, at, slot->rank * sizeof at[0]);
  if (moved == NULL) return NULL;
  for (uint32_t d = 0; d < slot->rank; d++) moved[d].offset = 0;
  moved[slot->rank - 1].offset = first_element(slot, at) - use->later;
  return moved;
}

static bool move(ax_loop_kernel *kernel, const slot_use *uses) {
  for (uint32_t i = 0; i < kernel->expr_count; i++) {
    ax_expr *e = &kernel->exprs[i];
    if (e->op == AX_LEAF_LOAD && (e->at = moved_at(kernel->arena, &kernel->slots[e->slot], e->at, &uses[e->slot])) == NULL &&
        kernel->slots[e->slot].rank > 0)
      return false;
  }
  for (uint32_t i = 0; i < kernel->store_count; i++) {
    ax_store *store = &kernel->stores[i];
    store->at = moved_at(kernel->arena, &kernel->slots[store->slot], store->at, &uses[store->slot]);
    if (store->at == NULL && kernel->slots[store->slot].rank > 0) return false;
  }
  for (uint32_t s = 0; s < kernel->slot_count; s++)
    if (!counts_rows(&kernel->slots[s], &uses[s])) kernel->slots[s].dims[0] = 1;
  if (kernel->rank > 0) kernel->dims[0] = class_of_line(kernel);
  return true;
}

const ax_loop_kernel *ax_kernel_moved(ax_arena *arena, const ax_loop_kernel *kernel, int64_t *bytes) {
  slot_use uses[AX_MAX_SLOTS];
  memset(bytes, 0, kernel->slot_count * sizeof bytes[0]);
  if (!find_uses(kernel, uses)) return kernel;
  ax_loop_kernel *moved = ax_kernel_copy(arena, kernel);
  if (moved == NULL || !move(moved, uses)) return NULL;
  for (uint32_t s = 0; s < kernel->slot_count; s++) bytes[s] = uses[s].later * (int64_t)ax_dtype_bytes(kernel->slots[s].dtype);
  return moved;
}
