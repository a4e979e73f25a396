/* Bodies from leaves to leaves: on a mesh, and compiled. Operands and results are compared with the treedefs first, so that
   messages name leaves:

     operands are of the leaves' types  ->  the body, on blocks  ->  results are the leaves' blocks, and vary as their specs say */
#include "axle/collectives.h"
#include "axle/exec.h"
#include "ir/program.h"
#include "mesh/sharding.h"
#include "prim/bind.h"
#include "tree/treedef.h"

typedef struct body {
  const char *who; /* for messages */
  const ax_mesh *mesh; /* NULL: the body runs on whole leaves, whatever their specs */
  const ax_treedef *in_def, *out_def;
  ax_fn function;
} body;

/* Counts that are not given are the treedefs'. */
static ax_status begin(body *b) {
  AX_TRY(ax_require(b->in_def, "treedef of the operands"));
  AX_TRY(ax_require(b->out_def, "treedef of the results"));
  ax_fn *f = &b->function;
  if (f->function == NULL) return ax_error(AX_INVALID_ARGUMENT, "%s: there is no function", b->who);
  bool given = f->in_count > 0 || f->out_count > 0;
  if (given && (f->in_count != b->in_def->count || f->out_count != b->out_def->count))
    return ax_error(AX_INVALID_ARGUMENT, "%s: the body takes %u operands and gives %u results, the treedefs have %u and %u leaves",
                    b->who, f->in_count, f->out_count, b->in_def->count, b->out_def->count);
  f->in_count = b->in_def->count;
  f->out_count = b->out_def->count;
  return AX_OK;
}

/* A leaf's spec on the mesh, and its block. */
static ax_status block_of(const body *b, const ax_treedef *def, uint32_t i, ax_spec *spec, ax_type *block) {
  *block = def->types[i];
  if (b->mesh == NULL) return AX_OK;
  ax_status status = ax_spec_parse(def->specs[i], b->mesh, spec);
  if (status == AX_OK) status = ax_shard_type(&def->types[i], spec, b->mesh, block);
  return status == AX_OK ? status : ax_error_context(status, "%s: %s: ", b->who, def->names[i]);
}

static bool alike(const ax_type *a, const ax_type *b) { return a->dtype == b->dtype && ax_same_shape(a, b); }

/* False: the trace has failed. */
static bool operands_fit(const body *b, const ax_value *in) {
  for (uint32_t i = 0; i < b->in_def->count; i++) {
    ax_spec spec;
    ax_type block, type = ax_typeof(in[i]);
    if (!ax_failed() && !alike(&type, &b->in_def->types[i]))
      ax_reject_as(b->who, "%s is %s, but its operand is %s", b->in_def->names[i], ax_type_string(&b->in_def->types[i], NULL),
                   ax_type_string(&type, &ax_builder_current()->axes));
    ax_status status = ax_failed() ? AX_OK : block_of(b, b->in_def, i, &spec, &block);
    if (status != AX_OK) ax_fail(status);
    if (ax_failed()) return false;
  }
  return true;
}

/* A result inside the body. The mesh's axes are the last of those in scope. */
static void check_result(const body *b, uint32_t i, ax_value result) {
  const ax_mesh *scope = &ax_builder_current()->axes;
  const ax_treedef *def = b->out_def;
  ax_spec spec;
  ax_type block, type = ax_typeof(result);
  ax_status status = ax_failed() ? AX_OK : block_of(b, def, i, &spec, &block);
  if (status != AX_OK) ax_fail(status);
  if (ax_failed()) return;
  if (!alike(&type, &block)) {
    bool cut = !alike(&block, &def->types[i]);
    ax_reject_as(b->who, "%s is %s%s%s%s%s, but the body gives %s", def->names[i], ax_type_string(&def->types[i], NULL),
                 cut ? " @ " : "", cut ? def->specs[i] : "", cut ? ", on each device " : "",
                 cut ? ax_type_string(&block, NULL) : "", ax_type_string(&type, scope));
    return;
  }
  if (b->mesh == NULL) return;
  ax_axis_set varying = type.spread.varying >> (scope->count - b->mesh->count) & ~ax_spec_set(&spec);
  if (varying != 0)
    ax_reject_as(
        b->who,
        "%s varies over %s, which its spec \"%s\" does not name; the results of psum, pmean and all_gather_invariant do not",
        def->names[i], ax_axis_set_string(varying, b->mesh), def->specs[i]);
}

/* Results that the body did not set are found by this function's caller. */
static void call_checked(const ax_value *in, ax_value *out, void *context) {
  const body *b = context;
  b->function.function(in, out, b->function.context);
  for (uint32_t i = 0; i < b->out_def->count && !ax_failed(); i++)
    if (out[i].trace != 0) check_result(b, i, out[i]);
}

static void map(const body *b, const ax_value *in, ax_value *out) {
  ax_text text = {0};
  char *specs = NULL;
  if (ax_failed() || !operands_fit(b, in)) return;
  ax_text_add(&text, "%s -> %s", b->in_def->all_specs, b->out_def->all_specs);
  ax_status status = ax_text_finish(&text, &specs);
  if (status == AX_OK)
    ax_shard_map(b->mesh, specs, AX_CLOSURE(call_checked, b->function.in_count, b->function.out_count, (void *)b), in, out);
  else ax_fail(status);
  ax_free(specs);
}

void (ax_tree_shard_map)(const ax_mesh *mesh, const ax_treedef *in_def, const ax_treedef *out_def, ax_fn function,
                         uint32_t in_count, const ax_value *in, uint32_t out_count, ax_value *out) {
  body b = {"tree_shard_map", mesh, in_def, out_def, function};
  uint32_t gives = ax_treedef_count(out_def);
  ax_status status = begin(&b);
  if (status == AX_OK) status = ax_require(mesh, "mesh");
  if (status != AX_OK) ax_fail(status);
  if (!ax_failed() && ax_lists_fit(b.who, in_count, ax_treedef_count(in_def), out_count, gives, out)) map(&b, in, out);
  if (ax_failed()) ax_poison_list(out_count, gives, out);
}

static void map_body(const ax_value *in, ax_value *out, void *context) { map(context, in, out); }

ax_status ax_tree_jit(ax_runtime *runtime, const ax_mesh *mesh, const ax_treedef *in_def, const ax_treedef *out_def, ax_fn function,
                      const ax_compile_options *options, ax_executable **out) {
  body b = {"tree_jit", mesh, in_def, out_def, function};
  *out = NULL;
  AX_TRY(begin(&b));
  ax_function whole = mesh != NULL ? map_body : call_checked;
  return ax_jit(runtime, AX_CLOSURE(whole, b.function.in_count, b.function.out_count, &b), in_def->types, options, out);
}
