/* Values that are reduced or unreduced along mesh axes: reduced.py says the same in JAX. */
#include "vectors/vectors.h"

#define MESHES "d=2 d=4 d=8 a=4,b=2:a,b a=4,b=2:b a=4,b=2:a"
#define FEW "d=4 a=4,b=2:a"

static const char *axes_of(void *context) { return ((const vector_variant *)context)->axes; }
static ax_value unreduced(void *context, ax_value x) { return ax_pcast(x, axes_of(context), "unreduced"); }
static ax_value reduced(void *context, ax_value x) { return ax_pcast(x, axes_of(context), "reduced"); }
static ax_value varying(void *context, ax_value x) { return ax_pcast(x, axes_of(context), "varying"); }
static ax_value total(void *context, ax_value x) { return ax_unreduced_psum(x, axes_of(context)); }
static ax_value product(void *context, const ax_value *in) { return unreduced(context, ax_mul(in[0], in[1])); }

BODY(unreduced_psum) { out[0] = total(context, product(context, in)); }
BODY(psum_of_unreduced) { out[0] = ax_psum(product(context, in), axes_of(context)); }
BODY(unreduced_psum_scatter) { out[0] = ax_unreduced_psum_scatter(product(context, in), axes_of(context), 0, true); }
BODY(unreduced_psum_scatter_untiled) { out[0] = ax_unreduced_psum_scatter(product(context, in), axes_of(context), 0, false); }
BODY(psum_scatter_of_unreduced) { out[0] = ax_psum_scatter(product(context, in), axes_of(context), 1, true); }
BODY(all_gather_reduced) {
  ax_value all = varying(context, ax_all_gather_reduced(in[0], axes_of(context), 0, true));
  out[0] = ax_mul(ax_reduce_sum(all, AX_DIMS(0), true), in[0]);
}
BODY(all_gather_reduced_untiled) {
  out[0] = ax_mul(varying(context, ax_all_gather_reduced(in[0], axes_of(context), 1, false)), ax_real(2));
}
BODY(preduced) { out[0] = ax_psum(ax_mul(in[0], varying(context, reduced(context, in[1]))), axes_of(context)); }
BODY(reduced_sine) { out[0] = ax_psum(ax_mul(in[0], varying(context, ax_sin(reduced(context, in[1])))), axes_of(context)); }
BODY(unreduced_by_reduced) { out[0] = total(context, ax_mul(unreduced(context, in[0]), reduced(context, in[1]))); }
BODY(unreduced_sum) { out[0] = total(context, ax_add(unreduced(context, in[0]), product(context, in))); }
BODY(unreduced_joined) { out[0] = total(context, ax_concatenate(AX_VALUES(unreduced(context, in[0]), product(context, in)), 1)); }
BODY(unreduced_shapes) {
  out[0] =
      total(context, ax_reduce_sum(ax_reshape(ax_transpose(product(context, in), LIST(1, 0)), AX_DIMS(2, 3)), AX_DIMS(1), false));
}

typedef struct around {
  void *context;
  ax_value x, w;
} around;
static void step(const ax_value *in, ax_value *out, void *context) {
  const around *a = context;
  out[0] = ax_add(in[0], unreduced(a->context, ax_mul(a->x, a->w)));
}
BODY(unreduced_scan) {
  around a = {context, in[0], in[1]};
  ax_value start = unreduced(context, in[0]), made;
  ax_scan(AX_CLOSURE(step, 1, 1, &a), 1, 3, false, &start, &made);
  out[0] = total(context, made);
}
static void times(const ax_value *in, ax_value *out, void *context) { out[0] = product(context, in); }
static void sine(const ax_value *in, ax_value *out, void *context) { out[0] = unreduced(context, ax_sin(in[0])); }
BODY(unreduced_cond) {
  ax_value made;
  ax_if(ax_gt(ax_at(in[1], 0, 0), ax_real(0)), AX_CLOSURE(times, 2, 1, context), AX_CLOSURE(sine, 2, 1, context), in, &made);
  out[0] = total(context, made);
}
BODY(unreduced_in_jit) {
  ax_value x = ax_mul(in[0], in[1]), made;
  ax_closed_call(AX_CLOSURE(sine, 1, 1, context), &x, &made);
  out[0] = total(context, made);
}

#define OVER(name, variants, modes_) {#name, variants, "A . > R", .body = name, .in = 2, .modes = modes_, .scaled = true}
#define SCATTERED(name, variants) {#name, variants, "A . > A", .body = name, .in = 2, .scaled = true}

static const vector_case reduced_cases[] = {
    OVER(unreduced_psum, MESHES, NULL),
    OVER(psum_of_unreduced, MESHES, NULL),
    SCATTERED(unreduced_psum_scatter, MESHES),
    SCATTERED(unreduced_psum_scatter_untiled, MESHES),
    SCATTERED(psum_scatter_of_unreduced, FEW),
    {"all_gather_reduced", MESHES, "A > A", .body = all_gather_reduced, .scaled = true},
    {"all_gather_reduced_untiled", FEW, "A > A", .body = all_gather_reduced_untiled},
    OVER(preduced, MESHES, NULL),
    OVER(reduced_sine, MESHES, "vj"),
    OVER(unreduced_by_reduced, MESHES, "vj"),
    OVER(unreduced_sum, MESHES, NULL),
    OVER(unreduced_joined, FEW, NULL),
    OVER(unreduced_shapes, FEW, NULL),
    OVER(unreduced_scan, FEW, NULL),
    OVER(unreduced_cond, FEW, NULL),
    OVER(unreduced_in_jit, FEW, NULL),
};
const VECTOR_GROUP(reduced);
