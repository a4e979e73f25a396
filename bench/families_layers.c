/* Equal layers, as many as are wanted: each a call of one function, or written out; on one device, or with the hidden dimension
   over eight. */
#include "axle/collectives.h"
#include "axle/ops.h"
#include "families.h"

typedef struct layers {
  int64_t count;
  bool kept, spread; /* by ax_closed_call; the hidden dimension lies over "d" */
} layers;

/* (h, gain, w1, w2) -> h + tanh(norm(h) w1) w2 */
static void layer(const ax_value *in, ax_value *out, void *context) {
  const layers *l = context;
  const int64_t last = -1;
  ax_value size = ax_expand_dims(ax_reduce_mean(ax_mul(in[0], in[0]), AX_LIST(1, &last), false), -1);
  ax_value normed = ax_mul(ax_mul(in[0], ax_rsqrt(ax_add(size, ax_full_like(size, 1e-5)))), in[1]);
  ax_value made = ax_matmul(ax_tanh(ax_matmul(normed, in[2])), in[3]);
  out[0] = ax_add(in[0], l->spread ? ax_psum(made, "d") : made);
}

/* (gain.., w1.., w2.., x) -> loss */
static void layers_loss(const ax_value *in, ax_value *out, void *context) {
  const layers *l = context;
  ax_value h = in[3 * l->count];
  for (int64_t i = 0; i < l->count; i++) {
    const ax_value all[] = {h, in[i], in[l->count + i], in[2 * l->count + i]};
    if (l->kept) ax_closed_call(AX_CLOSURE(layer, 4, 1, context), all, &h);
    else layer(all, &h, context);
  }
  out[0] = ax_reduce_mean(ax_mul(h, h), AX_ALL_DIMS, false);
}

void family_layers(subject *s, bool kept, bool spread) {
  const ax_type kinds[] = {ax_array_type(AX_F32, AX_DIMS(64)), ax_array_type(AX_F32, AX_DIMS(64, 256)),
                           ax_array_type(AX_F32, AX_DIMS(256, 64)), ax_array_type(AX_F32, AX_DIMS(32, 64))};
  const char *const kind_specs[] = {"", "_,d", "d", ""};
  int64_t count = 3 * s->n + 1;
  layers *l = family_room(1, sizeof *l);
  ax_type *types = family_room(count, sizeof types[0]);
  const char **specs = family_room(1 + count, sizeof specs[0]);
  *l = (layers){s->n, kept, spread};
  specs[0] = "";
  for (int64_t i = 0; i < count; i++) {
    types[i] = kinds[i / s->n];
    specs[1 + i] = kind_specs[i / s->n];
  }
  s->loss = layers_loss;
  s->loss_context = l;
  s->wrt_count = (uint32_t)count - 1;
  s->job = (job_function){family_gradients, s, spread ? "d=8" : NULL, (uint32_t)count, (uint32_t)count, types, specs + 1, specs};
}
