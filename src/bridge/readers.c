/* Readers of StableHLO operations that are no primitives. */
#include "bridge/readers.h"

#include "axle/numpy.h"
#include "axle/ops.h"
#include "axle/random.h"
#include "linalg/lapack_read.h"
#include "prim/bind.h"

static ax_status takes(const ax_hlo_read_args *args, uint32_t count) {
  if (args->op->operand_count == count) return AX_OK;
  return ax_error(AX_INVALID_ARGUMENT, "it takes %u operands, and here are %u", count, args->op->operand_count);
}

/* --- Arithmetic --- */

static ax_status clamp_read(const ax_hlo_read_args *args) {
  AX_TRY(takes(args, 3));
  args->out[0] = ax_clamp(args->in[0], args->in[1], args->in[2]);
  return AX_OK;
}

/* dims.. in front. */
static ax_status broadcast_read(const ax_hlo_read_args *args) {
  const ax_type *to = &args->out_types[0];
  int64_t at[AX_MAX_RANK];
  AX_TRY(takes(args, 1));
  const ax_type x = ax_typeof(args->in[0]);
  if (x.rank > to->rank) return ax_error(AX_INVALID_ARGUMENT, "the result has fewer dimensions than the operand");
  for (uint32_t d = 0; d < x.rank; d++) at[d] = to->rank - x.rank + d;
  args->out[0] = (ax_broadcast_in_dim)(args->in[0], AX_LIST(to->rank, to->dims), AX_LIST(x.rank, at));
  return AX_OK;
}

static ax_status top_k_read(const ax_hlo_read_args *args) {
  int64_t k;
  AX_TRY(takes(args, 1));
  AX_TRY(ax_hlo_integer(args->op, "k", &k));
  (ax_top_k)(args->in[0], k, args->op->result_count, args->out);
  return AX_OK;
}

static ax_status square_read(const ax_hlo_read_args *args) {
  AX_TRY(takes(args, 1));
  args->out[0] = ax_square(args->in[0]);
  return AX_OK;
}

static ax_status is_inf_read(const ax_hlo_read_args *args) {
  AX_TRY(takes(args, 1));
  const ax_value finite = ax_is_finite(args->in[0]), number = ax_eq(args->in[0], args->in[0]);
  args->out[0] = ax_and(ax_not(finite), number);
  return AX_OK;
}

static ax_status conj_read(const ax_hlo_read_args *args) {
  AX_TRY(takes(args, 1));
  args->out[0] = ax_conj(args->in[0]);
  return AX_OK;
}

static const ax_hlo_reader arithmetic[] = {{"stablehlo.clamp", clamp_read},
                                           {"stablehlo.broadcast", broadcast_read},
                                           {"chlo.square", square_read},
                                           {"chlo.is_inf", is_inf_read},
                                           {"chlo.conj", conj_read},
                                           {"chlo.top_k", top_k_read},
                                           {0}};

/* --- Random numbers --- */

static ax_status rng_bits_read(const ax_hlo_read_args *args) {
  const ax_hlo_attribute *algorithm = ax_hlo_find(args->op, "rng_algorithm");
  const ax_type *bits = &args->out_types[args->op->result_count - 1];
  AX_TRY(takes(args, 1));
  const ax_rng_algorithm which = algorithm == NULL || ax_hlo_slice_is(algorithm->text, "DEFAULT") ? AX_RNG_DEFAULT
                                 : ax_hlo_slice_is(algorithm->text, "THREE_FRY")                   ? AX_RNG_THREE_FRY
                                                                                                   : AX_RNG_PHILOX;
  (ax_rng_bit_generator)(args->in[0], bits->dtype, AX_LIST(bits->rank, bits->dims), which, args->op->result_count, args->out);
  return AX_OK;
}

static const ax_hlo_reader draws[] = {{"stablehlo.rng_bit_generator", rng_bits_read}, {0}};

/* --- One device --- */

static ax_status first_device_read(const ax_hlo_read_args *args) {
  const ax_type *type = &args->out_types[0];
  args->out[0] = (ax_full)(type->dtype, AX_LIST(type->rank, type->dims), 0);
  return AX_OK;
}

static const ax_hlo_reader devices[] = {
    {"stablehlo.partition_id", first_device_read}, {"stablehlo.replica_id", first_device_read}, {0}};

/* --- Custom calls --- */

/* The operand: what the call says of it is where it lies, or how it is laid out. */
static ax_status same_read(const ax_hlo_read_args *args) {
  AX_TRY(takes(args, 1));
  args->out[0] = args->in[0];
  return AX_OK;
}

static ax_status erf_read(const ax_hlo_read_args *args) {
  AX_TRY(takes(args, 1));
  args->out[0] = ax_erf(args->in[0]);
  return AX_OK;
}

static const ax_hlo_reader targets[] = {{"Sharding", same_read},
                                        {"annotate_device_placement", same_read},
                                        {"LayoutConstraint", same_read},
                                        {"mhlo.erf", erf_read},
                                        {0}};

static ax_status custom_call_read(const ax_hlo_read_args *args) {
  const ax_hlo_attribute *name = ax_hlo_find(args->op, "call_target_name");
  if (name == NULL) return ax_error(AX_INVALID_ARGUMENT, "the attribute call_target_name is missing");
  if (ax_lapack_reads(name->text)) return ax_lapack_read(args, name->text);
  for (const ax_hlo_reader *target = targets; target->op != NULL; target++)
    if (ax_hlo_slice_is(name->text, target->op)) return target->read(args);
  return ax_error(AX_ABSENT, "the target @%.*s is not known: there are lapack_.._ffi, Sharding, annotate_device_placement, LayoutConstraint and mhlo.erf",
                  (int)name->text.length, name->text.start);
}

static const ax_hlo_reader calls[] = {{"stablehlo.custom_call", custom_call_read}, {0}};

/* --- The lists --- */

const ax_hlo_reader *const ax_hlo_reader_lists[] = {arithmetic, draws, devices, calls, ax_hlo_window_readers};
const uint32_t ax_hlo_reader_list_count = AX_COUNT(ax_hlo_reader_lists);
