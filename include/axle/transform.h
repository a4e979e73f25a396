/* Transforms: program -> program. Each result is a program, owned by the caller, that can be printed, run and transformed again;
   it may be the given one, retained, when there is nothing to do. Any thread. `*out` is NULL on failure.

   Statuses of all: AX_INVALID_ARGUMENT: what each function says below. AX_ABSENT: a primitive without the rule that is needed,
   by name (reverse differentiation of a while loop, say). AX_OUT_OF_MEMORY. */
#ifndef AXLE_TRANSFORM_H
#define AXLE_TRANSFORM_H

#include <limits.h>

#include "axle/program.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default) /* all else is hidden in the library */

/* (x..) -> (y..)  becomes  (x.., dx..) -> (y.., dy..) where the dx are tangents of the inputs in wrt, and dy those of float
   results. AX_INVALID_ARGUMENT: wrt names an input that is not float (AX_ALL_ARGS means the floats), or one that does not exist.
   AX_ABSENT: the program has a function with custom_vjp, which has no derivative forwards. */
AX_MUST_USE ax_status ax_program_jvp(const ax_program *program, ax_args wrt, ax_program **out);
/* Splits the jvp in two: *primal: (x..) -> (y.., residual..);  *tangent: (residual.., dx..) -> (dy..), linear in dx.
   Residuals are the values of the primal that the tangent needs; *residual_count is their number. Both outputs are NULL on failure.
   AX_INVALID_ARGUMENT: as jvp. */
AX_MUST_USE ax_status ax_program_linearize(const ax_program *program, ax_args wrt, ax_program **primal,
                                           ax_program **tangent, uint32_t *residual_count);
/* For a program that is linear in the inputs `linear`: (constants.., dx..) -> (dy..) becomes (constants.., cotangents of dy..) ->
   (cotangents of dx..). AX_ABSENT: an equation that is not linear in its operands that depend on dx. */
AX_MUST_USE ax_status ax_program_transpose(const ax_program *program, ax_args linear, ax_program **out);
/* f: (x..) -> scalar float (first result; further results are carried along by value_and_grad).
   grad: (x..) -> (df/dx for those in wrt..); value_and_grad: (x..) -> (f's results.., df/dx..).
   AX_INVALID_ARGUMENT: the first result is no float scalar; wrt is empty; as jvp. */
AX_MUST_USE ax_status ax_program_grad(const ax_program *program, ax_args wrt, ax_program **out);
AX_MUST_USE ax_status ax_program_value_and_grad(const ax_program *program, ax_args wrt, ax_program **out);
/* In the lists of dimensions that vmap and pmap take: this operand or result is not mapped, None in JAX. A dimension below 0 counts
   from the end, so -1 is the last one. */
enum { AX_NOT_MAPPED = INT_MIN };
/* The mapped operands and results, and their dimensions: .in_axes = {AX_DIMS(0, AX_NOT_MAPPED)}. {0}: all of them along
   dimension 0. */
typedef struct ax_vmap_options {
  ax_dim_list in_axes;        /* the mapped dimension of each operand; {0}: all 0; AX_NOT_MAPPED: none */
  ax_dim_list out_axes;       /* where each result gets it; {0}: all 0; AX_NOT_MAPPED: nowhere, it must not depend on a mapped
                                 operand */
  int64_t size;               /* of the mapped dimensions. 0, for a function only: taken from the mapped operands */
  const char *axis_name;      /* of the mapped axis, for collectives over it; NULL: none */
  const char *spmd_axis_name; /* "data", or "data,model": mesh axes; NULL: none. shard_maps inside split the mapped dimension over
                                 them */
} ax_vmap_options;
/* Makes a program that does for each element of a batch what `program` does for one. Adds a dimension of options->size to inputs
   that are mapped, at in_axes[i], and to results at out_axes[i]. As jax.vmap.
   axis_name: the program may use collectives over it when it was traced in an environment that has it. spmd_axis_name: the specs of
   shard_maps inside get these axes for the new dimension, so that each device has a part of the batch, instead of all of it. It has
   no effect inside a shard_map over them.
   AX_INVALID_ARGUMENT: in_axes of another number than there are inputs, out_axes than results; an axis outside the rank; a size
   below 0, or another than the named axis has; a result with AX_NOT_MAPPED that depends on a mapped input; spmd_axis_name: axes
   that a shard_map's mesh has not, or that its specs use, or whose devices do not divide the size. AX_ABSENT: in a shard_map that
   splits the batch, a collective over axis_name or spmd_axis_name. */
AX_MUST_USE ax_status ax_program_vmap(const ax_program *program, const ax_vmap_options *options, ax_program **out);
/* Removes equations whose results are unused, collectives among them, in nested programs too, with the operands and results these
   no longer need. Equations with other effects stay, and so do inputs. */
AX_MUST_USE ax_status ax_program_dce(const ax_program *program, ax_program **out);
/* Merges equal equations: one primitive, equal parameters, the same operands. */
AX_MUST_USE ax_status ax_program_cse(const ax_program *program, ax_program **out);
/* dce and cse, in nested programs too, and replaces expressions by simpler ones that compute the same bits: x for x * 1, x + -0.0,
   x - 0, -(-x), a choice between equal cases, a transpose there and back, a broadcast or a reshape of another; small updates of an
   array, which are chosen, for a choice between the array with and without them; a transpose of a small slice for a slice of a
   transpose; for a call of at most four cheap operations, these. ax_compile does this first. */
AX_MUST_USE ax_status ax_program_simplify(const ax_program *program, ax_program **out);
/* The program with ax_with_sharding around its inputs and results, which lays them out on `mesh`. specs: "data,_; ? -> ?,model",
   an entry for each input and result. An entry is a spec as ax_with_sharding takes it; or "?", which leaves the layout open; or
   "auto". For an input "auto" chooses, among the ways to cut it evenly, the one with the least cost of a run on a device (by
   ax_cost). It tries them, which takes as long as partitioning some ten times for each type of input, or for each input if there
   are few. For a result "auto" keeps the layout in which it is made. An entry that stands alone on its side holds for all there.
   An input or result that its spec does not divide is whole outside the program, and in padded blocks inside.
   AX_INVALID_ARGUMENT: an unsound mesh; specs that do not parse, or that have more entries than their input or result has
   dimensions; the message names it by its number. */
AX_MUST_USE ax_status ax_program_with_shardings(const ax_program *program, const ax_mesh *mesh, const char *specs,
                                                ax_program **out);
/* Sharding in types, as jax.sharding.AxisType.Explicit. In the given program constraints (ax_program_with_shardings,
   ax_with_sharding) lay out some values over one mesh. The result has a constraint on each value that is cut. Its layout follows
   from those of its operands by rule, so nothing is left to propagation or choice. An input without a constraint is whole. Take
   derivatives of the result: its cotangents are laid out as its values are. But take those through ax_custom_jvp and ax_custom_vjp
   before, because such a function has become a plain call.
   AX_INVALID_ARGUMENT, with the line of the operation: a value whose layout neither a rule nor a constraint decides, which is so if
     operands are cut differently;
     several are cut along a dimension that is combined, and the result has other readers than one constraint;
     an operand is cut along a dimension that the operation does not keep;
     one axis would cut two dimensions of a result;
     a carry has another layout after an iteration than before it, or branches give a result different layouts;
     an operand that a scan slices is cut along its first dimension;
     a shard_map's operand is not laid out as its spec says.
   Also constraints, or a shard_map, over more than one mesh. */
AX_MUST_USE ax_status ax_program_explicit(const ax_program *program, ax_program **out);
/* The program as one shard_map over its whole mesh: a program for each device, with all its collectives and slices explicit.
   Equations outside of shard_maps are computed on blocks where the layouts of shard_maps and ax_with_sharding propagate to them,
   and whole on every device otherwise. Layouts propagate through calls, cond, while and scan too. Blocks are gathered where an
   operation needs them whole. shard_maps over different meshes of the same devices are put over one mesh that refines all of them:
   with (a=4, b=2) and (c=8) c is a and b. One over fewer devices, whose number divides theirs, runs on several groups of devices,
   which do the same: with (e=2) e is the first part of a. A shard_map inside another adds its axes. A program that is one shard_map
   already, or has none, is returned itself.
   AX_INVALID_ARGUMENT: a per-device program. AX_ABSENT: meshes whose numbers of devices do not divide each other; meshes, as 3x2
   and 2x3, without a common refinement of at most AX_MAX_AXES axes. */
AX_MUST_USE ax_status ax_program_partition(const ax_program *program, ax_program **out);

/* --- The same inside a trace, on functions. Errors, as above, are kept by the trace, and `out` is poison. `in` has f.in_count
   entries, and lists that are too short are errors (axle/type.h). wrt names the operands by which derivatives are taken, in
   ascending order; all are floats (AX_ALL_ARGS: those that are). Tangents, cotangents and vectors have the type of the value that
   they belong to; one that varies over fewer axes is made to agree, and a number (ax_real, ax_integer) stands for an array. --- */
/* f(in), and the gradients of its first result, a float scalar, with respect to each of wrt; further results are carried along.
   out: f's results, then the gradients. As jax.value_and_grad. */
void ax_value_and_grad(ax_fn f, ax_args wrt, uint32_t in_count, const ax_value *in, uint32_t out_count, ax_value *out);
/* The gradients alone, as jax.grad. */
void ax_grad(ax_fn f, ax_args wrt, uint32_t in_count, const ax_value *in, uint32_t out_count, ax_value *out);
/* f(in), and its derivative forwards: the changes of the results when the operands change along the tangents. tangents: one for
   each of wrt; out: f's results; out_tangents: as many, zeros for those that are no floats. As jax.jvp. */
void ax_jvp(ax_fn f, ax_args wrt, uint32_t in_count, const ax_value *in, uint32_t tangent_count, const ax_value *tangents,
            uint32_t out_count, ax_value *out, uint32_t out_tangent_count, ax_value *out_tangents);
/* f(in), and its derivative backwards: the gradients of the sum of all results, each multiplied by its cotangent. cotangents: one
   for each result of f; those of results that are no floats are ignored. out: f's results; gradients: one for each of
   wrt, of its operand's type. As jax.vjp and one call of the function that it returns. */
void ax_vjp(ax_fn f, ax_args wrt, uint32_t in_count, const ax_value *in, uint32_t cotangent_count, const ax_value *cotangents,
            uint32_t out_count, ax_value *out, uint32_t gradient_count, ax_value *gradients);

/* x, laid out on `mesh` as the spec says ("data,_,?", see ax_spec). A dimension that is `?` is left open for the partitioner, as
   by PartitionSpec.UNCONSTRAINED. As jax.lax.with_sharding_constraint. vmap leaves the dimension that it adds open, unless
   spmd_axis_name gives axes. The computations before and after x are laid out to match, where nothing else decides their layout.
   Its cotangent is laid out as it is. A dimension need not be divided: blocks are padded. Inside a shard_map its mesh adds further
   devices, as that of a shard_map would there. Errors: a spec that does not parse, or has more entries than x has dimensions; an
   axis name that is in use around it. */
ax_value ax_with_sharding(ax_value x, const ax_mesh *mesh, const char *spec);

/* A function linearized at a point, made by ax_linearize. A plain value that belongs to the trace it was made in. It may be used
   there and in traces inside, which capture the values that it needs; anywhere else it is an error. In a shard_map begun since,
   tangents and cotangents may vary over its axes too, unless they go into a body of the function (a scan's, ..), whose types are
   fixed. */
typedef struct ax_linear {
  uint64_t trace;
  uint32_t number, in_count, out_count; /* counts of tangents and of results */
} ax_linear;
/* f(in), and its derivative at that point as a linear map, which ax_pushforward applies forwards and ax_pullback backwards. As
   jax.linearize and jax.vjp. out: f's results. Values that depend on `in` alone are computed here, once, however often the map
   is used. */
ax_linear ax_linearize(ax_fn f, ax_args wrt, uint32_t in_count, const ax_value *in, uint32_t out_count, ax_value *out);
/* tangents: one for each of wrt; out_tangents: one for each result, zeros for those that are no floats. */
void ax_pushforward(ax_linear linear, uint32_t tangent_count, const ax_value *tangents, uint32_t out_tangent_count,
                    ax_value *out_tangents);
/* cotangents and gradients: as ax_vjp's. */
void ax_pullback(ax_linear linear, uint32_t cotangent_count, const ax_value *cotangents, uint32_t gradient_count,
                 ax_value *gradients);

/* As jax.custom_vjp: f(in), whose derivative backwards is the caller's. forward takes f's operands, and gives f's results and then
   any number of residuals. backward takes the residuals and the cotangents of f's float results, and gives the cotangents of f's
   float operands: in the duals of their types, as ax_vjp does (one that varies over fewer axes is made to agree). forward runs in
   the place of f where derivatives are taken, and forward and backward are differentiated when derivatives are taken again. It has
   no derivative forwards: jvp, jacfwd and pushforward of it are AX_ABSENT. Values of the enclosing trace that the functions use
   without taking them as operands have no derivative. ax_program_partition leaves f alone in place of the three, so take
   derivatives before.
   Errors: counts that do not fit; forward's results that are not as f's; cotangents that are of other types; derivatives by a value
   that is used without being an operand. */
void ax_custom_vjp(ax_fn f, ax_fn forward, ax_fn backward, uint32_t in_count, const ax_value *in, uint32_t out_count,
                   ax_value *out);
/* As jax.custom_jvp: f(in), whose derivative is the caller's, forwards and, transposed, backwards. rule takes f's operands, then
   the tangents of its float operands. It gives f's results, which do not depend on the tangents, then the tangents of its float
   results, which are linear in them.
   Errors: as of ax_custom_vjp; results that depend on tangents. AX_ABSENT: backwards, tangents that are not linear. */
void ax_custom_jvp(ax_fn f, ax_fn rule, uint32_t in_count, const ax_value *in, uint32_t out_count, ax_value *out);

/* The values that ax_checkpoint keeps for derivatives besides the operands: all that one of the fields says, as
   jax.checkpoint_policies.save_from_both_policies. {0}, or NULL: none, nothing_saveable. The policies of JAX that offload values to
   the host's memory are these, as the devices' memory is the host's: offload_dot_with_no_batch_dims is save_unbatched_dots, and
   save_and_offload_only_these_names is save_names with the names of both lists. */
typedef struct ax_checkpoint_options {
  bool save_dots;             /* results of dot_general and convolutions: dots_saveable */
  const char *save_names;     /* "attention,ffn": values to which ax_checkpoint_name gave one of these names, save_only_these_names;
                                 NULL: none */
  bool save_everything;       /* everything_saveable */
  bool save_unbatched_dots;   /* results of dot_general without batch dimensions: dots_with_no_batch_dims_saveable */
  const char *save_names_but; /* "logits": values with a name that is not among these, save_any_names_but_these; "": all with a name;
                                 NULL: none */
  const char *save_primitives; /* "exp,reduce_sum": results of equations of these primitives, those that derivatives bring with them
                                  too: a policy of one's own, lambda prim, *_, **params: prim.name in (..); NULL: none */
} ax_checkpoint_options;
/* As jax.checkpoint (jax.remat): f(in). Derivatives keep only its operands and the values it captures, and compute the rest again
   when they need it, collectives too. This takes less memory and more work: a deep chain of layers then holds one value a layer, a
   scan over such steps one a step.
   f may contain other checkpoints, and be differentiated any number of times. Equations are asked for one by one in f itself: loops,
   branches and calls in it are kept, or done again, as a whole. ax_debug_print in f prints again where f is done again, ordered or
   not, unless everything is saved. ax_io_callback may stand in f, but f has no derivatives then (AX_ABSENT).
   Errors: f sends or receives messages; names that could not be those of an axis; an unknown primitive. */
void ax_checkpoint(ax_fn f, uint32_t in_count, const ax_value *in, uint32_t out_count, ax_value *out,
                   const ax_checkpoint_options *options);
/* As jax.ad_checkpoint.checkpoint_name: T[d..] -> T[d..], x by a name. Any T. An error: a name that an axis could not have. */
ax_value ax_checkpoint_name(ax_value x, const char *name);

/* As jax.jacfwd and jax.jacrev: out[r * n + k], n being the number of wrt, is the derivative of result r by the k-th of wrt,
   [result's dimensions.., operand's dimensions..], in the dtype of the result (jacfwd) or of the operand (jacrev). jacfwd costs as
   much as f for each element of the operands, jacrev for each element of the results; f is traced once, on a batch of all of
   them.
   Also an error: a result that is no float; more than AX_MAX_RANK dimensions. */
void ax_jacfwd(ax_fn f, ax_args wrt, uint32_t in_count, const ax_value *in, uint32_t out_count, ax_value *out);
void ax_jacrev(ax_fn f, ax_args wrt, uint32_t in_count, const ax_value *in, uint32_t out_count, ax_value *out);
/* As jax.hessian, forward over reverse: out[(r * n + k) * n + l] is the derivative of result r by the k-th and the l-th of wrt,
   [result's dimensions.., the k-th's.., the l-th's..]. Errors as above. */
void ax_hessian(ax_fn f, ax_args wrt, uint32_t in_count, const ax_value *in, uint32_t out_count, ax_value *out);
/* The product of the Hessian of f's first result, a float scalar, and vectors, one for each of wrt: forward over reverse, at a few
   times the cost of f.
   products: one for each of wrt; gradients (may be NULL): those of ax_grad, which come with them. For many products at one point:
   ax_linearize a function that calls ax_grad. */
void ax_hvp(ax_fn f, ax_args wrt, uint32_t in_count, const ax_value *in, uint32_t vector_count, const ax_value *vectors,
            uint32_t gradient_count, ax_value *gradients, uint32_t product_count, ax_value *products);

/* Runs f on a batch: on each slice of the mapped operands along their dimensions, at once; the results are stacked. options NULL:
   {0}, all operands and results along dimension 0. As jax.vmap; ax_program_vmap says more. */
void ax_vmap(ax_fn f, uint32_t in_count, const ax_value *in, uint32_t out_count, ax_value *out, const ax_vmap_options *options);

/* ax_grad, ax_value_and_grad and ax_vmap as functions to be passed on, to ax_jit, ax_apply, ax_trace or each other:
     ax_vmap(AX_GRAD(AX_FIRST(1), AX_FN(loss, 2, 1)), in, out, NULL)                    the gradient for each example of a batch
     ax_jit(runtime, AX_VMAPPED(NULL, AX_FN(model, 2, 1)), types, NULL, &executable)
   They take the operands of their function, and live as long as the block they stand in. Also an error (kept by the trace):
   AX_GRAD and AX_VALUE_AND_GRAD of AX_ALL_ARGS, which does not say how many results there are. ax_call_differentiated and
   ax_call_vmapped are these functions, and the structs their contexts. */
typedef struct ax_differentiated {
  ax_fn body;
  ax_args wrt;
  bool with_value;  /* ax_value_and_grad, not ax_grad */
  const char *call; /* the line that made it, for errors and equations (axle/line.h); NULL: not known */
} ax_differentiated;
typedef struct ax_vmapped {
  const ax_vmap_options *options; /* may be NULL */
  ax_fn body;
  const char *call; /* as above */
} ax_vmapped;
void ax_call_differentiated(const ax_value *in, ax_value *out, void *differentiated);
void ax_call_vmapped(const ax_value *in, ax_value *out, void *vmapped);
static inline ax_fn ax_differentiated_function(ax_differentiated *differentiated) {
  ax_fn function = differentiated->body;
  function.function = ax_call_differentiated;
  function.context = differentiated;
  function.out_count = (differentiated->with_value ? function.out_count : 0) +
                       (differentiated->wrt.count <= function.in_count ? differentiated->wrt.count : function.in_count);
  return function;
}
static inline ax_fn ax_vmapped_function(ax_vmapped *vmapped) {
  ax_fn function = vmapped->body;
  function.function = ax_call_vmapped;
  function.context = vmapped;
  return function;
}
#ifdef AXLE_NO_LINES
#define AX_TRANSFORM_AT(name) NULL
#else
#define AX_TRANSFORM_AT(name) AX_CALL(name)
#endif
#ifndef __cplusplus
#define AX_GRAD(wrt_, ...) \
  ax_differentiated_function(&(ax_differentiated){.body = __VA_ARGS__, .wrt = wrt_, .call = AX_TRANSFORM_AT("grad")})
#define AX_VALUE_AND_GRAD(wrt_, ...) \
  ax_differentiated_function(        \
      &(ax_differentiated){.body = __VA_ARGS__, .wrt = wrt_, .with_value = true, .call = AX_TRANSFORM_AT("value_and_grad")})
#define AX_VMAPPED(options_, ...) \
  ax_vmapped_function(&(ax_vmapped){.options = (options_), .body = __VA_ARGS__, .call = AX_TRANSFORM_AT("vmap")})
#endif

#pragma GCC visibility pop

#ifndef __cplusplus /* lists, with their counts (axle/type.h) */
#define ax_value_and_grad(f, wrt, in, out) \
  AX_LINED_VOID(value_and_grad, f, wrt, AX_COUNTED(ax_value, in), AX_COUNTED(ax_value, out))
#define ax_grad(f, wrt, in, out) AX_LINED_VOID(grad, f, wrt, AX_COUNTED(ax_value, in), AX_COUNTED(ax_value, out))
#define ax_jacfwd(f, wrt, in, out) AX_LINED_VOID(jacfwd, f, wrt, AX_COUNTED(ax_value, in), AX_COUNTED(ax_value, out))
#define ax_jacrev(f, wrt, in, out) AX_LINED_VOID(jacrev, f, wrt, AX_COUNTED(ax_value, in), AX_COUNTED(ax_value, out))
#define ax_hessian(f, wrt, in, out) AX_LINED_VOID(hessian, f, wrt, AX_COUNTED(ax_value, in), AX_COUNTED(ax_value, out))
#define ax_linearize(f, wrt, in, out) AX_LINED_ANY(linearize, f, wrt, AX_COUNTED(ax_value, in), AX_COUNTED(ax_value, out))
#define ax_jvp(f, wrt, in, tangents, out, out_tangents) \
  AX_LINED_VOID(jvp, f, wrt, AX_COUNTED(ax_value, in), AX_COUNTED(ax_value, tangents), AX_COUNTED(ax_value, out), \
                AX_COUNTED(ax_value, out_tangents))
#define ax_vjp(f, wrt, in, cotangents, out, gradients) \
  AX_LINED_VOID(vjp, f, wrt, AX_COUNTED(ax_value, in), AX_COUNTED(ax_value, cotangents), AX_COUNTED(ax_value, out), \
                AX_COUNTED(ax_value, gradients))
#define ax_pushforward(linear, tangents, out_tangents) \
  AX_LINED_VOID(pushforward, linear, AX_COUNTED(ax_value, tangents), AX_COUNTED(ax_value, out_tangents))
#define ax_pullback(linear, cotangents, gradients) \
  AX_LINED_VOID(pullback, linear, AX_COUNTED(ax_value, cotangents), AX_COUNTED(ax_value, gradients))
#define ax_custom_vjp(f, forward, backward, in, out) \
  AX_LINED_VOID(custom_vjp, f, forward, backward, AX_COUNTED(ax_value, in), AX_COUNTED(ax_value, out))
#define ax_custom_jvp(f, rule, in, out) AX_LINED_VOID(custom_jvp, f, rule, AX_COUNTED(ax_value, in), AX_COUNTED(ax_value, out))
#define ax_checkpoint(f, in, out, ...) \
  AX_LINED_VOID(checkpoint, f, AX_COUNTED(ax_value, in), AX_COUNTED(ax_value, out), __VA_ARGS__)
#define ax_hvp(f, wrt, in, vectors, gradients, products) \
  AX_LINED_VOID(hvp, f, wrt, AX_COUNTED(ax_value, in), AX_COUNTED(ax_value, vectors), AX_COUNTED(ax_value, gradients), \
                AX_COUNTED(ax_value, products))
#define ax_vmap(f, in, out, ...) AX_LINED_VOID(vmap, f, AX_COUNTED(ax_value, in), AX_COUNTED(ax_value, out), __VA_ARGS__)
#endif

#ifndef AXLE_NO_LINES /* axle/line.h */
#define ax_program_jvp(...) AX_LINED_STATUS(program_jvp, __VA_ARGS__)
#define ax_program_linearize(...) AX_LINED_STATUS(program_linearize, __VA_ARGS__)
#define ax_program_transpose(...) AX_LINED_STATUS(program_transpose, __VA_ARGS__)
#define ax_program_grad(...) AX_LINED_STATUS(program_grad, __VA_ARGS__)
#define ax_program_value_and_grad(...) AX_LINED_STATUS(program_value_and_grad, __VA_ARGS__)
#define ax_program_vmap(...) AX_LINED_STATUS(program_vmap, __VA_ARGS__)
#define ax_program_dce(...) AX_LINED_STATUS(program_dce, __VA_ARGS__)
#define ax_program_cse(...) AX_LINED_STATUS(program_cse, __VA_ARGS__)
#define ax_program_simplify(...) AX_LINED_STATUS(program_simplify, __VA_ARGS__)
#define ax_program_with_shardings(...) AX_LINED_STATUS(program_with_shardings, __VA_ARGS__)
#define ax_program_explicit(...) AX_LINED_STATUS(program_explicit, __VA_ARGS__)
#define ax_program_partition(...) AX_LINED_STATUS(program_partition, __VA_ARGS__)
#define ax_with_sharding(...) AX_LINED(with_sharding, __VA_ARGS__)
#define ax_checkpoint_name(...) AX_LINED(checkpoint_name, __VA_ARGS__)
#endif

#ifdef __cplusplus
}
#endif
#endif
