/* The memory that a run takes, by purpose: the sizes of its spaces, added up. */
#include "code/compiled.h"

static size_t *figure_of(ax_memory_bytes *bytes, ax_space_kind kind) {
  switch (kind) {
    case AX_SPACE_CONST: return &bytes->constants;
    case AX_SPACE_INPUT: return &bytes->arguments;
    case AX_SPACE_OUTPUT: return &bytes->results;
    case AX_SPACE_KEPT: return &bytes->kept;
    default: return &bytes->scratch;
  }
}

/* Memory that several devices share counts once. Scratch memory counts for each device, as if all ran at once. */
void ax_memory_of(const ax_compiled *c, ax_memory *out) {
  *out = (ax_memory){0};
  for (uint32_t s = 0; s < c->space_count; s++) {
    const ax_part_space *space = &c->spaces[s];
    const size_t parts = space->kind == AX_SPACE_SCRATCH ? c->devices : c->sets[space->set].size;
    *figure_of(&out->device, space->kind) += (size_t)space->bytes;
    *figure_of(&out->all, space->kind) += (size_t)space->bytes * parts;
  }
}
