/* Numbers of few bits, in wider ones.

     functions   of floats of less than 32 bits: in f32, rounded once, which is what the primitives say. XLA's programs of asin and its like
                 round every step to the dtype, and it has none of erfc and bessel_i1e for floats of a byte
     cuts        of integers of less than a byte, by paddings of less than nothing, as bytes: XLA's compiler for GPUs ends the process
     joined, sorted
                 integers of two bits, as bytes: XLA's plugin for processors ends the process
     counts      of bits, of integers of less than a byte: XLA counts those of the byte that holds them */
#include "plain/rules.h"
#include "prim/bind.h"
#include "prim/prims.h"

static bool function_applies(const ax_plain_lacks *lacks, const ax_eqn *eqn, const ax_type *in, const ax_type *out) {
  (void)eqn, (void)out;
  return lacks->narrow_functions && ax_is_narrow_float(in[0].dtype);
}

static void function(const ax_eqn *eqn, const ax_value *in, ax_value *out) {
  const ax_dtype dtype = ax_typeof(in[0]).dtype;
  const ax_value x = ax_convert_element_type(in[0], AX_F32);
  out[0] = ax_convert_element_type(ax_bind1(eqn->prim, eqn->params, &x, 1), dtype);
}

static bool cut_applies(const ax_plain_lacks *lacks, const ax_eqn *eqn, const ax_type *in, const ax_type *out) {
  bool cuts = false;
  for (int side = 0; side < 2; side++) {
    const ax_dims *amounts = ax_plain_parameter(eqn, side == 0 ? "low" : "high");
    for (uint32_t d = 0; d < amounts->count; d++) cuts = cuts || amounts->v[d] < 0;
  }
  (void)out;
  return lacks->short_cuts && cuts && ax_is_short_integer(in[0].dtype);
}

static bool count_applies(const ax_plain_lacks *lacks, const ax_eqn *eqn, const ax_type *in, const ax_type *out) {
  (void)eqn, (void)out;
  return lacks->short_counts && ax_is_short_integer(in[0].dtype);
}

/* Of a byte whose upper bits are 0; before the last 1 there is one behind the number's own bits, if they are all 0. */
static void count(const ax_eqn *eqn, const ax_value *in, ax_value *out) {
  const ax_dtype dtype = ax_typeof(in[0]).dtype;
  const int64_t above = (int64_t)1 << ax_dtype_get(dtype)->bits;
  if (ax_failed()) return;
  ax_value bits = ax_and(ax_convert_element_type(in[0], AX_S32), ax_integer(above - 1));
  if (eqn->prim == &ax_prim_ctz) bits = ax_or(bits, ax_integer(above));
  out[0] = ax_convert_element_type(ax_bind1(eqn->prim, eqn->params, &bits, 1), dtype);
}

static bool is_two_bits(ax_dtype dtype) { return dtype == AX_S2 || dtype == AX_U2; }

bool ax_plain_two_bits(const ax_plain_lacks *lacks, const ax_eqn *eqn, const ax_type *in, const ax_type *out) {
  bool any = false;
  (void)out;
  for (uint32_t i = 0; i < eqn->in_count; i++) any = any || is_two_bits(in[i].dtype);
  return lacks->two_bit_moves && any;
}

void ax_plain_as_bytes(const ax_eqn *eqn, const ax_value *in, ax_value *out) {
  ax_value *x = ax_trace_alloc(eqn->in_count * sizeof x[0]);
  for (uint32_t i = 0; x != NULL && i < eqn->in_count; i++) {
    const ax_dtype dtype = ax_typeof(in[i]).dtype;
    x[i] = ax_is_short_integer(dtype) ? ax_convert_element_type(in[i], ax_multiplied_as(dtype)) : in[i];
  }
  if (x == NULL || ax_failed()) return;
  ax_bind(eqn->prim, eqn->params, x, eqn->in_count, out, eqn->out_count);
  for (uint32_t k = 0; k < eqn->out_count && !ax_failed(); k++) out[k] = ax_convert_element_type(out[k], ax_typeof(in[k]).dtype);
}

const ax_plain_rule ax_plain_narrow[] = {{.prim = &ax_prim_asin, .applies = function_applies, .trace = function},
                                         {.prim = &ax_prim_acos, .applies = function_applies, .trace = function},
                                         {.prim = &ax_prim_asinh, .applies = function_applies, .trace = function},
                                         {.prim = &ax_prim_acosh, .applies = function_applies, .trace = function},
                                         {.prim = &ax_prim_atanh, .applies = function_applies, .trace = function},
                                         {.prim = &ax_prim_erfc, .applies = function_applies, .trace = function},
                                         {.prim = &ax_prim_bessel_i1e, .applies = function_applies, .trace = function},
                                         {.prim = &ax_prim_rsqrt, .applies = function_applies, .trace = function},
                                         {.prim = &ax_prim_logistic, .applies = function_applies, .trace = function},
                                         {.prim = &ax_prim_expm1, .applies = function_applies, .trace = function},
                                         {.prim = &ax_prim_log1p, .applies = function_applies, .trace = function},
                                         {.prim = &ax_prim_pad, .applies = cut_applies, .trace = ax_plain_as_bytes},
                                         {.prim = &ax_prim_population_count, .applies = count_applies, .trace = count},
                                         {.prim = &ax_prim_ctz, .applies = count_applies, .trace = count},
                                         {.prim = &ax_prim_concatenate, .applies = ax_plain_two_bits, .trace = ax_plain_as_bytes},
                                         {.prim = &ax_prim_sort, .applies = ax_plain_two_bits, .trace = ax_plain_as_bytes},
                                         {0}};
