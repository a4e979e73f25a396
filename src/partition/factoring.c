/* Factors of dimensions (ir/prim.h) and the axes that cut them. A factor that is all of a dimension may be cut by axes that do not
   divide it. */
#include <string.h>

#include "partition/partitioner.h"

bool ax_factoring_of(ax_factoring *f, const ax_program *program, const ax_eqn *eqn) {
  const uint32_t count = eqn->in_count + eqn->out_count;
  ax_status status = ax_grow(&f->in, sizeof f->in[0], 0, count, &f->capacity);
  if (status != AX_OK) {
    ax_fail(status);
    return false;
  }
  for (uint32_t t = 0; t < count; t++) {
    memset(f->in[t].count, 0, sizeof f->in[t].count);
    f->in[t].reached = 0;
  }
  f->out = f->in + eqn->in_count;
  f->factors.count = 0;
  eqn->prim->shard(&(ax_shard_args){eqn, program->types, &f->factors, f->in, f->out});
  return true;
}

void ax_factoring_deinit(ax_factoring *f) { ax_free(f->in); }

bool ax_factor_is_all(const ax_factors *factors, const ax_factored *tensor, const ax_type *type, uint32_t d) {
  return tensor->count[d] == 1 && ((tensor->reached >> d & 1) != 0 || factors->size[tensor->factor[d][0]] == type->dims[d]);
}

bool ax_factor_flows(const ax_factors *factors, const ax_factored *tensor, const ax_type *type, uint32_t d) {
  if ((tensor->reached >> d & 1) == 0) return true;
  const double positions = (double)factors->size[tensor->factor[d][0]] * (double)tensor->reach[d].stride;
  const double length = (double)type->dims[d] * (double)tensor->reach[d].base;
  return positions <= 2 * length && length <= 2 * positions;
}

void ax_cuts_read(const ax_mesh *mesh, const ax_factors *factors, const ax_factored *tensor, const ax_type *type,
                  const ax_spec *spec, ax_cuts *cuts) {
  for (uint32_t d = 0; d < type->rank; d++) {
    uint32_t next = 0; /* of the dimension's axes */
    for (uint32_t k = 0; k < tensor->count[d]; k++) {
      const uint32_t factor = tensor->factor[d][k];
      int64_t left = factors->size[factor];
      ax_axis_list *by = &cuts->by[factor];
      by->count = 0;
      while (spec != NULL && next < spec->count[d]) {
        const int64_t parts = mesh->axis[spec->axis[d][next]].size;
        if (left % parts != 0 && !ax_factor_is_all(factors, tensor, type, d)) break;
        left = (left + parts - 1) / parts;
        by->axis[by->count++] = spec->axis[d][next++];
        if (left == 1 && k + 1 < tensor->count[d]) break;
      }
      if (left > 1) next = spec != NULL ? spec->count[d] : 0; /* those behind it are not cut */
    }
  }
}

ax_spec ax_cuts_write(const ax_mesh *mesh, const ax_factors *factors, const ax_factored *tensor, uint32_t rank,
                      const ax_cuts *cuts) {
  ax_spec spec;
  memset(&spec, 0, sizeof spec);
  for (uint32_t d = 0; d < rank; d++) {
    bool reached = true;
    for (uint32_t k = 0; k < tensor->count[d] && reached; k++) {
      const ax_axis_list *by = &cuts->by[tensor->factor[d][k]];
      int64_t left = factors->size[tensor->factor[d][k]];
      for (uint32_t i = 0; i < by->count; i++) {
        left /= mesh->axis[by->axis[i]].size;
        spec.axis[d][spec.count[d]++] = by->axis[i];
      }
      reached = left == 1;
    }
    if (spec.count[d] > 0) spec.rank = d + 1;
  }
  return spec;
}
