/* Functions of the host that are called with blocks (ax_callback.blocks). Any other function is called once, with whole values, outside of
   shard_maps; this one by each device, with its block of each operand as that lies, so that nothing is gathered for it:

     io_callback[axes=()] x                   x: f32[8,4], P(data) of data=4, model=2
     io_callback[axes=(data,model)] x'        x': f32[2,4], the device's own block

   A dimension that its axes do not divide is gathered, since blocks of it would end in padding.

   A callback that asks how its operand lies (ax_callback.lies) is answered, and the equation is gone. */
#include <string.h>

#include "control/host_call.h"
#include "ir/callback.h"
#include "mesh/sharding.h"
#include "partition/partitioner.h"
#include "prim/bind.h"

/* The value's layout without dimensions whose blocks have padding. */
static const ax_spec *even_spec(ax_partitioner *p, const ax_held *held) {
  if (held->spec == NULL) return NULL;
  ax_spec spec = *held->spec;
  for (uint32_t d = 0; d < held->type->rank && d < spec.rank; d++) {
    if (ax_shard_divides(held->type, held->spec, &p->mesh, d)) continue;
    memset(spec.axis[d], 0, sizeof spec.axis[d]); /* specs are compared by their bytes */
    spec.count[d] = 0;
  }
  return ax_spec_unique(p, &spec);
}

static void bind_blocks(ax_partitioner *p, const ax_eqn *eqn, ax_held *held) {
  ax_value *in = ax_trace_alloc(eqn->in_count * sizeof in[0]);
  char *params = ax_eqn_own_params(eqn, &p->arena);
  if (params == NULL) ax_fail(ax_out_of_memory(eqn->prim->params_bytes));
  for (uint32_t i = 0; i < eqn->in_count && !ax_failed(); i++) {
    ax_held *operand = &held[eqn->in[i]];
    ax_held_combine(operand);
    in[i] = ax_held_here(p, operand, even_spec(p, operand));
  }
  if (ax_failed()) return;
  *(ax_axes *)(void *)params = ax_axis_set_names(ax_all_axes(&p->mesh), &p->mesh); /* the first parameter: host_call.h */
  ax_bind(eqn->prim, params, in, eqn->in_count, NULL, 0);
}

bool ax_bind_host_call(ax_partitioner *p, const ax_scope *s, const ax_eqn *eqn, ax_held *held) {
  const ax_callback *callback = ax_host_call_callback(eqn);
  if (callback == NULL || (!callback->blocks && callback->lies == NULL)) return false;
  if (callback->lies == NULL) {
    bind_blocks(p, eqn, held);
    return true;
  }
  ax_held_combine(&held[eqn->in[0]]);
  if (!ax_failed()) callback->lies(callback->context, &p->mesh, held[eqn->in[0]].spec, s->axes.count > 0);
  return true;
}
