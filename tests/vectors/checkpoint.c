/* Bodies that are done again for their derivatives; checkpoint.py has the same with jax.checkpoint. */
#include <stdint.h>

#include "vectors/vectors.h"

#define BOTH "f32 f64"
#define MESHES "d=4 a=4,b=2:a"

static const char *axes(void *context) { return ((const vector_variant *)context)->axes; }
static ax_value total(ax_value x) { return ax_reduce_sum(x, AX_ALL_DIMS, false); }

/* --- Layers: context NULL: nothing is saved; or the options --- */

static const ax_checkpoint_options dots = {.save_dots = true};

BODY(layer) {
  ax_value h = ax_tanh(ax_matmul(in[0], in[1]));
  out[0] = ax_mul(ax_sin(ax_matmul(h, in[1])), h);
}
BODY(layer_again) { ax_checkpoint(AX_FN(layer, 2, 1), in, out, context); }

static ax_value through(ax_value h, ax_value ws, int64_t from, int64_t to, void *context) {
  for (int64_t i = from; i < to; i++) layer_again((ax_value[]){h, ax_at(ws, i, 0)}, &h, context);
  return h;
}
BODY(chain) { out[0] = through(in[0], in[1], 0, 4, NULL); }
BODY(chain_dots) { out[0] = through(in[0], in[1], 0, 4, (void *)(uintptr_t)&dots); }
BODY(named_layer) {
  ax_value h = ax_checkpoint_name(ax_tanh(ax_matmul(in[0], in[1])), "first");
  out[0] = ax_mul(ax_checkpoint_name(ax_sin(ax_matmul(h, in[1])), "second"), h);
}
BODY(names) {
  out[0] = in[0];
  for (int64_t i = 0; i < 4; i++)
    ax_checkpoint(AX_FN(named_layer, 2, 1), AX_VALUES(out[0], ax_at(in[1], i, 0)), out,
                  &(ax_checkpoint_options){.save_names = "first,third"});
}
static void named_layers(const ax_checkpoint_options *options, const ax_value *in, ax_value *out) {
  out[0] = in[0];
  for (int64_t i = 0; i < 4; i++) ax_checkpoint(AX_FN(named_layer, 2, 1), AX_VALUES(out[0], ax_at(in[1], i, 0)), out, options);
}
BODY(everything) { named_layers(&(ax_checkpoint_options){.save_everything = true}, in, out); }
BODY(unbatched) { named_layers(&(ax_checkpoint_options){.save_unbatched_dots = true}, in, out); }
BODY(other_names) { named_layers(&(ax_checkpoint_options){.save_names_but = "second"}, in, out); }
BODY(either) { named_layers(&(ax_checkpoint_options){.save_dots = true, .save_names = "second"}, in, out); }
BODY(own_policy) { named_layers(&(ax_checkpoint_options){.save_primitives = "tanh,cos"}, in, out); }
BODY(first_two) { out[0] = through(in[0], in[1], 0, 2, NULL); }
BODY(last_two) { out[0] = through(in[0], in[1], 2, 4, NULL); }
BODY(nested) {
  ax_value half;
  ax_checkpoint(AX_FN(first_two, 2, 1), in, &half, NULL);
  ax_checkpoint(AX_FN(last_two, 2, 1), AX_VALUES(half, in[1]), out, NULL);
}
BODY(scanned) { ax_scan(AX_FN(layer_again, 2, 1), 1, 4, false, in, out); }
BODY(plainly_scanned) { ax_scan(AX_FN(layer, 2, 1), 1, 4, false, in, out); }
BODY(of_scan) { ax_checkpoint(AX_FN(plainly_scanned, 2, 1), in, out, NULL); }
BODY(doubled) { out[0] = ax_mul(in[0], ax_real(2)); }
BODY(chosen) {
  ax_if(ax_gt(total(in[0]), ax_real(0)), AX_FN(layer_again, 2, 1), AX_FN(doubled, 2, 1), AX_VALUES(in[0], ax_at(in[1], 0, 0)), out);
}
BODY(uses_captured) {
  const ax_value *ws = context;
  layer((ax_value[]){in[0], ax_at(*ws, 0, 0)}, out, NULL);
  out[0] = ax_add(out[0], ax_at(ax_at(*ws, 1, 0), 0, 0));
}
BODY(captured) {
  ax_value ws = in[1];
  ax_checkpoint(AX_CLOSURE(uses_captured, 1, 1, &ws), in, out, NULL);
}

/* --- Derivatives of them: context: one of them --- */

typedef struct function {
  ax_function f;
} function;

BODY(loss) {
  ax_value made;
  ((const function *)context)->f(in, &made, NULL);
  out[0] = total(ax_mul(made, made));
}
static void slopes(ax_function f, const ax_value *in, ax_value *out) {
  ax_grad(AX_CLOSURE(loss, 2, 1, &(function){f}), AX_FIRST(2), in, out);
}
BODY(chain_grad) { slopes(chain, in, out); }
BODY(chain_dots_grad) { slopes(chain_dots, in, out); }
BODY(names_grad) { slopes(names, in, out); }
BODY(everything_grad) { slopes(everything, in, out); }
BODY(unbatched_grad) { slopes(unbatched, in, out); }
BODY(other_names_grad) { slopes(other_names, in, out); }
BODY(either_grad) { slopes(either, in, out); }
BODY(own_policy_grad) { slopes(own_policy, in, out); }
BODY(nested_grad) { slopes(nested, in, out); }
BODY(scan_grad) { slopes(scanned, in, out); }
BODY(of_scan_grad) { slopes(of_scan, in, out); }
BODY(cond_grad) { slopes(chosen, in, out); }
BODY(captured_grad) { slopes(captured, in, out); }

BODY(steepness) {
  ax_value slope[2];
  slopes(((const function *)context)->f, in, slope);
  out[0] = total(ax_mul(slope[1], slope[1]));
}
BODY(second) { ax_grad(AX_CLOSURE(steepness, 2, 1, &(function){chain}), AX_FIRST(1), in, out); }
BODY(second_scan) { ax_grad(AX_CLOSURE(steepness, 2, 1, &(function){scanned}), AX_FIRST(1), in, out); }

static const ax_vmap_options by_row = {.in_axes = {AX_DIMS(0, AX_NOT_MAPPED)}};
BODY(scan_slope) { ax_grad(AX_CLOSURE(loss, 2, 1, &(function){scanned}), AX_FIRST(1), in, out); }
BODY(vmap_of_grad) { ax_vmap(AX_FN(scan_slope, 2, 1), in, out, &by_row); }
BODY(total_of_rows) {
  ax_vmap(AX_FN(chain, 2, 1), in, out, &by_row);
  out[0] = total(out[0]);
}
BODY(grad_of_vmap) { ax_grad(AX_FN(total_of_rows, 2, 1), AX_FIRST(1), in, out); }

/* --- On meshes: the collective of what is done again, and its gradient --- */

typedef struct collective {
  ax_value (*f)(ax_value x, const char *axes);
  const char *axes;
  ax_value w;
} collective;

BODY(mixed) {
  const collective *c = context;
  out[0] = c->f(ax_sin(ax_mul(in[0], in[1])), c->axes);
}
BODY(summed_sine) {
  const collective *c = context;
  ax_value made;
  ax_checkpoint(AX_CLOSURE(mixed, 2, 1, context), AX_VALUES(in[0], c->w), &made, NULL);
  out[0] = total(ax_sin(made));
}
static void with_slope(ax_value (*f)(ax_value, const char *), const ax_value *in, ax_value *out, void *context) {
  collective c = {f, axes(context), in[1]};
  ax_checkpoint(AX_CLOSURE(mixed, 2, 1, &c), in, out, NULL);
  ax_grad(AX_CLOSURE(summed_sine, 1, 1, &c), AX_FIRST(1), in, &out[1]);
}

static ax_value sums(ax_value x, const char *over) { return ax_mul(ax_psum(x, over), x); }
static ax_value means(ax_value x, const char *over) { return ax_mul(ax_pmean(x, over), x); }
static ax_value gathered(ax_value x, const char *over) {
  return ax_mul(ax_reduce_sum(ax_all_gather(x, over, 0, false), AX_DIMS(0), false), x);
}
static ax_value scattered(ax_value x, const char *over) {
  ax_value part = ax_psum_scatter(x, over, 0, true);
  return ax_mul(ax_concatenate(AX_VALUES(part, part, part, part), 0), x);
}
static ax_value exchanged(ax_value x, const char *over) { return ax_mul(ax_all_to_all(x, over, 0, 0, true), x); }
static ax_value passed_on(ax_value x, const char *over) { return ax_mul(ax_pshift(x, over, 1, true), x); }
static ax_value swapped(ax_value x, const char *over) {
  return ax_mul(ax_reshape(ax_pswapaxes(ax_reshape(x, AX_DIMS(4, 2, 3)), over, 0), AX_DIMS(8, 3)), x);
}
static ax_value numbered(ax_value x, const char *over) {
  return ax_mul(x, ax_convert_element_type(ax_axis_index(over), ax_typeof(x).dtype));
}
static ax_value grouped(ax_value x, const char *over) {
  return ax_mul(ax_psum(x, over[0] == 'd' ? "d {0,1} {2,3}" : "a {0,1} {2,3}"), x);
}

BODY(mesh_psum) { with_slope(sums, in, out, context); }
BODY(mesh_pmean) { with_slope(means, in, out, context); }
BODY(mesh_all_gather) { with_slope(gathered, in, out, context); }
BODY(mesh_psum_scatter) { with_slope(scattered, in, out, context); }
BODY(mesh_all_to_all) { with_slope(exchanged, in, out, context); }
BODY(mesh_ppermute) { with_slope(passed_on, in, out, context); }
BODY(mesh_pswapaxes) { with_slope(swapped, in, out, context); }
BODY(mesh_axis_index) { with_slope(numbered, in, out, context); }
BODY(mesh_groups) { with_slope(grouped, in, out, context); }

BODY(nearer_to_mean) {
  const collective *c = context;
  out[0] = ax_add(ax_sin(ax_mul(in[0], c->w)), ax_pmean(ax_tanh(in[0]), c->axes));
}
BODY(nearer_again) { ax_checkpoint(AX_CLOSURE(nearer_to_mean, 1, 1, context), in, out, NULL); }
BODY(mesh_psum_scan) { ax_scan(AX_CLOSURE(nearer_again, 1, 1, &(collective){NULL, axes(context), in[1]}), 1, 3, false, in, out); }

static const vector_case checkpoint_cases[] = {
    {"chain", BOTH, .body = chain, .in = 2, .scaled = true},
    {"chain_dots", "f64", .body = chain_dots, .in = 2, .scaled = true},
    {"chain_grad", BOTH, .body = chain_grad, .in = 2, .out = 2, .ulps = 256, .scaled = true},
    {"chain_dots_grad", "f64", .body = chain_dots_grad, .in = 2, .out = 2, .ulps = 256, .scaled = true},
    {"names", "f64", .body = names, .in = 2, .scaled = true},
    {"names_grad", "f64", .body = names_grad, .in = 2, .out = 2, .ulps = 256, .scaled = true},
    {"everything_grad", "f64", .body = everything_grad, .in = 2, .out = 2, .ulps = 256, .scaled = true},
    {"unbatched_grad", "f64", .body = unbatched_grad, .in = 2, .out = 2, .ulps = 256, .scaled = true},
    {"other_names_grad", "f64", .body = other_names_grad, .in = 2, .out = 2, .ulps = 256, .scaled = true},
    {"either_grad", "f64", .body = either_grad, .in = 2, .out = 2, .ulps = 256, .scaled = true},
    {"own_policy_grad", "f64", .body = own_policy_grad, .in = 2, .out = 2, .ulps = 256, .scaled = true},
    {"nested_grad", "f64", .body = nested_grad, .in = 2, .out = 2, .ulps = 256, .scaled = true},
    {"scan_grad", BOTH, .body = scan_grad, .in = 2, .out = 2, .ulps = 256, .scaled = true},
    {"of_scan_grad", "f64", .body = of_scan_grad, .in = 2, .out = 2, .ulps = 256, .scaled = true},
    {"cond_grad", "f64", .body = cond_grad, .in = 2, .out = 2, .ulps = 256, .scaled = true},
    {"captured_grad", "f64", .body = captured_grad, .in = 2, .out = 2, .ulps = 256, .scaled = true},
    {"second", "f64", .body = second, .in = 2, .ulps = 1024, .scaled = true},
    {"second_scan", "f64", .body = second_scan, .in = 2, .ulps = 1024, .scaled = true},
    {"vmap_of_grad", "f64", .body = vmap_of_grad, .in = 2, .ulps = 256, .scaled = true},
    {"grad_of_vmap", "f64", .body = grad_of_vmap, .in = 2, .ulps = 256, .scaled = true},
    {"mesh_psum", MESHES, "A . > A A", .body = mesh_psum, .in = 2, .out = 2, .unchecked = true, .ulps = 64, .scaled = true},
    {"mesh_pmean", MESHES, "A . > A A", .body = mesh_pmean, .in = 2, .out = 2, .unchecked = true, .ulps = 64, .scaled = true},
    {"mesh_all_gather", MESHES, "A . > A A", .body = mesh_all_gather, .in = 2, .out = 2, .unchecked = true, .ulps = 64,
     .scaled = true},
    {"mesh_psum_scatter", MESHES, "A . > A A", .body = mesh_psum_scatter, .in = 2, .out = 2, .unchecked = true, .ulps = 64,
     .scaled = true},
    {"mesh_all_to_all", MESHES, "A . > A A", .body = mesh_all_to_all, .in = 2, .out = 2, .unchecked = true, .ulps = 64,
     .scaled = true},
    {"mesh_ppermute", MESHES, "A . > A A", .body = mesh_ppermute, .in = 2, .out = 2, .unchecked = true, .ulps = 64, .scaled = true},
    {"mesh_pswapaxes", MESHES, "A . > A A", .body = mesh_pswapaxes, .in = 2, .out = 2, .unchecked = true, .ulps = 64,
     .scaled = true},
    {"mesh_axis_index", MESHES, "A . > A A", .body = mesh_axis_index, .in = 2, .out = 2, .unchecked = true, .ulps = 64,
     .scaled = true},
    {"mesh_groups", MESHES, "A . > A A", .body = mesh_groups, .in = 2, .out = 2, .unchecked = true, .ulps = 64, .scaled = true},
    {"mesh_psum_scan", MESHES, "A . > A", .body = mesh_psum_scan, .in = 2, .ulps = 64, .scaled = true},
};
const VECTOR_GROUP(checkpoint);
