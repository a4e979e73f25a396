/* ref_load: ref<T[d..]>, [mask: bool[d..], other: T[d..]] -> T[d..]
      loads the elements; where the mask is false nothing is read, and `other` is given
   ref_store: ref<T[d..]>, value: T[d..], [mask: bool[d..]] -> ()
      stores the value; where the mask is false nothing is written
   ref_swap: ref<T[d..]>, value: T[d..], [mask: bool[d..], other: T[d..]] -> T[d..]
      stores the value, and gives the elements that were there
   ref_add: ref<T[d..]>, value: T[d..] -> ()
      adds the value to the elements: a load and a store, which are two steps

   Parameters: masked: whether there is a mask; ref_add has none.
   Errors: an operand that is no ref; a value, mask or other of another shape or dtype; a sum of bools.
   The core does it itself, before it goes on, in the order of its program. Other agents that touch the same bytes meanwhile race
   with it. They stand in kernels' bodies alone. */
#include "kernel/local.h"
#include "prim/prims.h"

/* --- infer --- */

/* Operand 0 is a ref, operand `from` its mask, and operand `from` + 1, where there is one, the value given where the mask is
   false. */
static ax_status check_masked(const ax_infer_args *args, uint32_t from, bool has_other) {
  bool masked = ((const ax_ref_masked_params *)args->params)->masked;
  uint32_t count = from + (masked ? 1 + has_other : 0);
  AX_TRY(ax_step_count(args, count, count));
  AX_TRY(ax_step_ref(args, 0));
  if (from > 1) AX_TRY(ax_step_array(args, 1, args->in[0].dtype, &args->in[0], "the value"));
  if (masked) AX_TRY(ax_step_array(args, from, AX_BOOL, &args->in[0], "the mask"));
  return masked && has_other ? ax_step_array(args, from + 1, args->in[0].dtype, &args->in[0], "what stands where the mask is false")
                             : AX_OK;
}

static ax_type what_is_there(const ax_infer_args *args) {
  return ax_array_type(args->in[0].dtype, AX_LIST(args->in[0].rank, args->in[0].dims));
}

static ax_status load_infer(const ax_infer_args *args) {
  AX_TRY(check_masked(args, 1, true));
  args->out[0] = what_is_there(args);
  return AX_OK;
}

static ax_status store_infer(const ax_infer_args *args) { return check_masked(args, 2, false); }

static ax_status swap_infer(const ax_infer_args *args) {
  AX_TRY(check_masked(args, 2, true));
  args->out[0] = what_is_there(args);
  return AX_OK;
}

static ax_status add_infer(const ax_infer_args *args) {
  AX_TRY(ax_step_ref(args, 0));
  if (args->in[0].dtype == AX_BOOL)
    return ax_error(AX_INVALID_ARGUMENT, "%s: there are no sums of bools", ax_type_string(&args->in[0], args->axes));
  return ax_step_array(args, 1, args->in[0].dtype, &args->in[0], "the value");
}

/* --- The records --- */

static const ax_step_access loads = {.reads = true, .mask = 1, .other = 2};
static const ax_step_access stores = {.writes = true, .value = 1, .mask = 2};
static const ax_step_access swaps = {.reads = true, .writes = true, .value = 1, .mask = 2, .other = 3};
static const ax_step_access adds = {.reads = true, .writes = true, .value = 1, .combine = &ax_prim_add};

static const ax_step load_step = {.role = AX_STEP_MAKES_ACT, .access = &loads};
static const ax_step store_step = {.role = AX_STEP_MAKES_ACT, .access = &stores};
static const ax_step swap_step = {.role = AX_STEP_MAKES_ACT, .access = &swaps};
static const ax_step add_step = {.role = AX_STEP_MAKES_ACT, .access = &adds};

static const ax_param params[] = {{"masked", AX_PARAM_BOOL, offsetof(ax_ref_masked_params, masked)}};

const ax_prim ax_prim_ref_load = {
    .name = "ref_load", AX_STEP_RULES, .effects = AX_KERNEL_STEP, .in_count = -1, .out_count = 1, .infer = load_infer,
    .step = &load_step,
    AX_PARAMS(params, ax_ref_masked_params),
};

const ax_prim ax_prim_ref_store = {
    .name = "ref_store", AX_STEP_RULES, .effects = AX_KERNEL_STEP, .in_count = -1, .out_count = 0, .infer = store_infer,
    .step = &store_step,
    AX_PARAMS(params, ax_ref_masked_params),
};

const ax_prim ax_prim_ref_swap = {
    .name = "ref_swap", AX_STEP_RULES, .effects = AX_KERNEL_STEP, .in_count = -1, .out_count = 1, .infer = swap_infer,
    .step = &swap_step,
    AX_PARAMS(params, ax_ref_masked_params),
};

const ax_prim ax_prim_ref_add = {
    .name = "ref_add", AX_STEP_RULES, .effects = AX_KERNEL_STEP, .in_count = 2, .out_count = 0, .infer = add_infer,
    .step = &add_step,
};

/* --- The functions --- */

static const ax_ref_masked_params plain = {false}, masked = {true};

/* The ref's type; AX_NO_DTYPE, and the trace has failed, for anything else. */
static ax_type ref_type(const char *function, ax_value ref) {
  ax_type type = ax_memory_type(function, ref);
  if (type.dtype == AX_NO_DTYPE || type.form == AX_REF) return type;
  ax_reject_as(function, "%s is no ref", ax_type_string(&type, &ax_builder_current()->axes));
  return (ax_type){0};
}

ax_value ax_ref_load(ax_value ref) {
  return ref_type("ref_load", ref).dtype != AX_NO_DTYPE ? ax_bind1(&ax_prim_ref_load, &plain, &ref, 1) : ax_poison;
}

ax_value ax_ref_load_masked(ax_value ref, ax_value mask, ax_value other) {
  ax_type type = ref_type("ref_load_masked", ref);
  if (type.dtype == AX_NO_DTYPE) return ax_poison;
  ax_value in[] = {ref, mask, ax_of_shape("ref_load_masked", other, &type)};
  return ax_bind1(&ax_prim_ref_load, &masked, in, 3);
}

void ax_ref_store(ax_value ref, ax_value value) {
  ax_type type = ref_type("ref_store", ref);
  if (type.dtype == AX_NO_DTYPE) return;
  ax_value in[] = {ref, ax_of_shape("ref_store", value, &type)};
  ax_step_bind(&ax_prim_ref_store, &plain, in, 2);
}

void ax_ref_store_masked(ax_value ref, ax_value mask, ax_value value) {
  ax_type type = ref_type("ref_store_masked", ref);
  if (type.dtype == AX_NO_DTYPE) return;
  ax_value in[] = {ref, ax_of_shape("ref_store_masked", value, &type), mask};
  ax_step_bind(&ax_prim_ref_store, &masked, in, 3);
}

ax_value ax_ref_swap(ax_value ref, ax_value value) {
  ax_type type = ref_type("ref_swap", ref);
  if (type.dtype == AX_NO_DTYPE) return ax_poison;
  ax_value in[] = {ref, ax_of_shape("ref_swap", value, &type)};
  return ax_bind1(&ax_prim_ref_swap, &plain, in, 2);
}

ax_value ax_ref_swap_masked(ax_value ref, ax_value mask, ax_value value, ax_value other) {
  ax_type type = ref_type("ref_swap_masked", ref);
  if (type.dtype == AX_NO_DTYPE) return ax_poison;
  ax_value in[] = {ref, ax_of_shape("ref_swap_masked", value, &type), mask, ax_of_shape("ref_swap_masked", other, &type)};
  return ax_bind1(&ax_prim_ref_swap, &masked, in, 4);
}

void ax_ref_add(ax_value ref, ax_value value) {
  ax_type type = ref_type("ref_add", ref);
  if (type.dtype == AX_NO_DTYPE) return;
  ax_value in[] = {ref, ax_of_shape("ref_add", value, &type)};
  ax_step_bind(&ax_prim_ref_add, NULL, in, 2);
}
