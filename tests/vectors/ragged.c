/* Exchanges that data direct: ragged.py says the same in JAX. */
#include <stdio.h>

#include "vectors/vectors.h"

enum { UNMAPPED = AX_NOT_MAPPED };

#define MESHES "d=2 d=4 d=8 a=4,b=2:a,b a=4,b=2:b,a a=4,b=2:b a=4,b=2:a"
#define FEW "d=4 a=4,b=2:b,a a=4,b=2:a"
#define FOURS "d=4 a=4,b=2:a"

enum { OPERANDS = 6 };

static const char *axes_of(void *context) { return ((const vector_variant *)context)->axes; }

static ax_value exchange(const ax_value *in, const char *axes) {
  return ax_ragged_all_to_all(in[0], in[1], in[2], in[3], in[4], in[5], axes);
}

BODY(ragged) { out[0] = exchange(in, axes_of(context)); }

BODY(in_groups) {
  char axes[80];
  snprintf(axes, sizeof axes, "%s {0,2} {3,1}", axes_of(context));
  out[0] = exchange(in, axes);
}

typedef struct around {
  const ax_value *in;
  const char *axes;
} around;

static void step(const ax_value *in, ax_value *out, void *context) {
  const around *a = context;
  out[0] = ax_sin(in[0]);
  out[1] = ax_ragged_all_to_all(in[0], ax_cos(in[1]), a->in[2], a->in[3], a->in[4], a->in[5], a->axes);
}
BODY(in_scan) { ax_scan(AX_CLOSURE(step, 2, 2, &((around){in, axes_of(context)})), 2, 3, false, in, out); }

BODY(mapped_arrays) {
  const ax_vmap_options options = {.in_axes = {AX_DIMS(2, 1, UNMAPPED, UNMAPPED, UNMAPPED, UNMAPPED)}, .out_axes = {AX_DIMS(1)}};
  ax_vmap(AX_CLOSURE(ragged, OPERANDS, 1, context), in, out, &options);
}
BODY(mapped_all) { ax_vmap(AX_CLOSURE(ragged, OPERANDS, 1, context), in, out, NULL); }
BODY(mapped_tables) {
  const ax_vmap_options options = {.in_axes = {AX_DIMS(UNMAPPED, UNMAPPED, 0, 0, 0, 0)}};
  ax_vmap(AX_CLOSURE(ragged, OPERANDS, 1, context), in, out, &options);
}

BODY(over_i) { out[0] = exchange(in, "i"); }
BODY(own_axis) { ax_vmap(AX_CLOSURE(over_i, OPERANDS, 1, NULL), in, out, &(ax_vmap_options){.axis_name = "i"}); }

static ax_value told(void *context, ax_value x, ax_value source) { return ax_pbroadcast_dynamic(x, axes_of(context), source); }

typedef struct teller {
  void *context;
  ax_value x, source;
} teller;

static void tell(const ax_value *in, ax_value *out, void *context) {
  const teller *t = context;
  out[0] = told(t->context, ax_mul(ax_sin(in[0]), t->x), t->source);
}
BODY(pbroadcast_dynamic) { out[0] = told(context, in[0], in[1]); }
BODY(pbroadcast_dynamic_scan) { ax_scan(AX_CLOSURE(tell, 1, 1, &((teller){context, in[0], in[1]})), 1, 3, false, in, out); }
BODY(pbroadcast_dynamic_vmap) {
  const ax_vmap_options options = {.in_axes = {AX_DIMS(1, UNMAPPED)}, .out_axes = {AX_DIMS(1)}};
  ax_vmap(AX_CLOSURE(pbroadcast_dynamic, 2, 1, context), in, out, &options);
}

#define OVER(name, variants, body_, ...) \
  { name, variants, "A A A A A A > A", .body = body_, .in = OPERANDS, .scaled = true, __VA_ARGS__ }
#define TOLD(name, variants, body_, ...) {name, variants, "A . > A", .body = body_, .in = 2, .scaled = true, __VA_ARGS__}

static const vector_case ragged_cases[] = {
    OVER("ragged", MESHES, ragged, ),
    OVER("ragged_several", FEW, ragged, ),
    OVER("ragged_rows", "d=8", ragged, ),
    OVER("ragged_s8", "d=4", ragged, ),
    OVER("ragged_bf16", "d=4", ragged, .modes = "vj"),
    OVER("ragged_f64", "a=4,b=2:a", ragged, ),
    OVER("ragged_groups", FOURS, in_groups, .unchecked = true),
    OVER("ragged_groups_several", FOURS, in_groups, .unchecked = true),
    {"ragged_scan", FEW, "A A A A A A > A A", .body = in_scan, .in = OPERANDS, .out = 2, .scaled = true},
    OVER("ragged_vmap", FEW, mapped_arrays, ),
    OVER("ragged_vmap_all", FEW, mapped_all, ),
    OVER("ragged_vmap_tables", FEW, mapped_tables, ),
    {"ragged_own_axis", "f32 f64", .body = own_axis, .in = OPERANDS, .scaled = true},
    TOLD("pbroadcast_dynamic", MESHES, pbroadcast_dynamic, .modes = "vj"),
    TOLD("pbroadcast_dynamic_s32", FEW, pbroadcast_dynamic, ),
    TOLD("pbroadcast_dynamic_vmap", FEW, pbroadcast_dynamic_vmap, .modes = "vj"),
    TOLD("pbroadcast_dynamic_masked", FEW, pbroadcast_dynamic, ),
    TOLD("pbroadcast_dynamic_scan", FEW, pbroadcast_dynamic_scan, ),
};
const VECTOR_GROUP(ragged);
