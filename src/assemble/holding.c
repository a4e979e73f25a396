/* A table of the memory that a run holds: the allocations alive at the point where it holds most, over all devices, with their
   spaces and lifetimes. `axle show --after memory` ends with it. */
#include <stdlib.h>

#include "assemble/assembly.h"
#include "ir/prim.h"

typedef struct holder {
  uint32_t allocation;
  size_t bytes; /* of all its parts */
} holder;

static bool counts(const ax_assembly *a, uint32_t allocation) {
  ax_space_kind kind =
      a->residents[allocation].space != AX_NONE ? a->compiled->spaces[a->residents[allocation].space].kind : AX_SPACE_CONST;
  return a->plan->buffers[allocation].allocation == allocation && (kind == AX_SPACE_KEPT || kind == AX_SPACE_SCRATCH);
}

/* Bytes of all parts. Scratch memory counts once for each device, as if all ran at once. */
static size_t bytes_of(const ax_assembly *a, uint32_t allocation) {
  const ax_part_space *space = &a->compiled->spaces[a->residents[allocation].space];
  uint32_t parts = space->kind == AX_SPACE_SCRATCH ? a->compiled->devices : a->compiled->sets[space->set].size;
  return (size_t)ax_buffer_bytes(&a->plan->buffers[allocation]) * parts;
}

static int by_bytes(const void *x, const void *y) {
  const holder *a = x, *b = y;
  if (a->bytes != b->bytes) return a->bytes > b->bytes ? -1 : 1;
  return a->allocation < b->allocation ? -1 : a->allocation > b->allocation;
}

/* The position where most bytes are alive. change: by position, with room for one more; cleared. */
static uint32_t fullest(const ax_assembly *a, int64_t *change, int64_t *most) {
  int64_t now = 0;
  uint32_t at = 0;
  *most = 0;
  for (uint32_t allocation = 0; allocation < a->plan->buffer_count; allocation++) {
    if (!counts(a, allocation)) continue;
    change[a->residents[allocation].life.first] += (int64_t)bytes_of(a, allocation);
    change[a->residents[allocation].life.last + 1] -= (int64_t)bytes_of(a, allocation);
  }
  for (uint32_t i = 0; i < a->instr_count; i++) {
    now += change[i];
    if (now > *most) {
      *most = now;
      at = i;
    }
  }
  return at;
}

static const char *maker(const ax_assembly *a, uint32_t position) {
  const ax_eqn *eqn = a->instrs[position].eqn;
  return eqn != NULL ? eqn->prim->name : "";
}

static void row(ax_text *text, const ax_assembly *a, const holder *one) {
  const ax_buffer *buffer = &a->plan->buffers[one->allocation];
  const ax_resident *r = &a->residents[one->allocation];
  ax_text_add(text, "%12zu  b%u %s", one->bytes, one->allocation, ax_type_string(&buffer->type, &a->plan->mesh));
  ax_text_add(text, " per %s, s%u+%lld, %u to %u, %s to %s\n", ax_axis_set_string(buffer->axes, &a->plan->mesh), r->space,
              (long long)r->offset, r->life.first, r->life.last, maker(a, r->life.first), maker(a, r->life.last));
}

ax_status ax_holding_text(ax_text *text, ax_assembly *a) {
  int64_t most, *change = ax_arena_alloc(&a->scratch, ((size_t)a->instr_count + 2) * sizeof change[0]);
  holder *list = ax_arena_alloc(&a->scratch, a->plan->buffer_count * sizeof list[0]);
  uint32_t count = 0;
  if (change == NULL || list == NULL) return ax_out_of_memory(a->plan->buffer_count * sizeof list[0]);
  uint32_t at = fullest(a, change, &most);
  for (uint32_t allocation = 0; allocation < a->plan->buffer_count; allocation++)
    if (counts(a, allocation) && a->residents[allocation].life.first <= at && at <= a->residents[allocation].life.last)
      list[count++] = (holder){allocation, bytes_of(a, allocation)};
  if (count > 0) qsort(list, count, sizeof list[0], by_bytes);
  ax_text_add(text, "at %u the most is alive, bytes over all devices, if all run at once: %lld\n", at, (long long)most);
  for (uint32_t i = 0; i < count; i++) row(text, a, &list[i]);
  return AX_OK;
}
