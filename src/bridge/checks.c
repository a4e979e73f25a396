/* The checks of StableHLO's own tests, as operations of the dialect check and as custom calls (@check.expect_close): two arrays are
   compared while the program runs, and the run fails where they differ.

     expect_eq          the same numbers; NaN is NaN
     expect_close       floats at most max_ulp_difference units of the last place apart: 1, and of custom calls 3, unless it is said
     expect_almost_eq   apart by a tolerance of 1e-4, unless it is said, or by that of their size
     eq                 the same, and true is the result */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "axle/callback.h"
#include "axle/ops.h"
#include "bridge/readers.h"
#include "ir/number.h"
#include "ir/text.h"
#include "prim/rules.h"

typedef enum check_kind { CHECK_EQ, CHECK_CLOSE, CHECK_ALMOST_EQ } check_kind;
typedef struct check {
  check_kind kind;
  int64_t most_units;
  double tolerance;
} check;

/* --- Comparing --- */

/* The floats' bits as integers that are ordered as they are, both zeros being 0. */
static int64_t place_of(ax_dtype dtype, const void *data, int64_t index) {
  const size_t bytes = ax_dtype_bytes(dtype);
  uint64_t bits = 0;
  memcpy(&bits, (const char *)data + (size_t)index * bytes, bytes);
  const uint64_t sign = (uint64_t)1 << (8 * bytes - 1);
  return (bits & sign) != 0 ? -(int64_t)(bits & ~sign) : (int64_t)bits;
}

static bool floats_pass(const check *c, ax_dtype dtype, const void *got, const void *want, int64_t index) {
  const double a = ax_number_load(dtype, got, index).f, b = ax_number_load(dtype, want, index).f;
  if (a == b || (isnan(a) && isnan(b))) return true;
  if (c->kind == CHECK_ALMOST_EQ) return fabs(a - b) <= c->tolerance * fmax(1, fabs(b));
  if (c->kind == CHECK_EQ || !isfinite(a) || !isfinite(b)) return false;
  const int64_t x = place_of(dtype, got, index), y = place_of(dtype, want, index);
  const uint64_t apart = x > y ? (uint64_t)x - (uint64_t)y : (uint64_t)y - (uint64_t)x;
  return apart <= (uint64_t)c->most_units;
}

static bool element_passes(const check *c, ax_dtype dtype, const void *got, const void *want, int64_t index) {
  const ax_dtype part = ax_part_dtype(dtype);
  const size_t bytes = ax_dtype_bytes(dtype);
  if (ax_is_float(dtype)) return floats_pass(c, dtype, got, want, index);
  if (ax_is_complex(dtype)) return floats_pass(c, part, got, want, 2 * index) && floats_pass(c, part, got, want, 2 * index + 1);
  return memcmp((const char *)got + (size_t)index * bytes, (const char *)want + (size_t)index * bytes, bytes) == 0;
}

static ax_status compare(ax_callback_call *call, void *context) {
  const ax_host_array *got = &call->in[0], *want = &call->in[1];
  const int64_t count = ax_dims_elems(got->rank, got->dims);
  for (int64_t i = 0; i < count; i++) {
    if (element_passes(context, got->dtype, got->data, want->data, i)) continue;
    ax_text text = {0};
    ax_text_add(&text, "element %" PRId64 " is ", i);
    ax_element_text(&text, got->dtype, got->data, i);
    ax_text_add(&text, ", and should be ");
    ax_element_text(&text, want->dtype, want->data, i);
    if (!text.failed) snprintf(call->message, AX_MESSAGE_BYTES, "%s", text.data);
    ax_text_deinit(&text);
    return AX_INVALID_ARGUMENT;
  }
  return AX_OK;
}

/* --- Reading --- */

static const struct {
  const char *name;
  check_kind kind;
} kinds[] = {{"check.expect_eq", CHECK_EQ},
             {"check.expect_eq_const", CHECK_EQ},
             {"check.expect_close", CHECK_CLOSE},
             {"check.eq", CHECK_ALMOST_EQ},
             {"check.expect_almost_eq", CHECK_ALMOST_EQ},
             {"check.expect_almost_eq_const", CHECK_ALMOST_EQ}};

static bool find_kind(ax_hlo_slice name, check_kind *out) {
  for (size_t i = 0; i < AX_COUNT(kinds); i++) {
    if (!ax_hlo_slice_is(name, kinds[i].name)) continue;
    *out = kinds[i].kind;
    return true;
  }
  return false;
}

bool ax_hlo_is_check(ax_hlo_slice name) { return find_kind(name, &(check_kind){0}); }

/* The second array: an operand, or the attribute `value`. */
static ax_status wanted(const ax_hlo_read_args *args, ax_value *out) {
  const ax_hlo_attribute *value = ax_hlo_find(args->op, "value");
  const bool constant = value != NULL && value->kind == AX_HLO_ELEMENTS;
  if (args->op->operand_count != (constant ? 1u : 2u)) return ax_error(AX_INVALID_ARGUMENT, "it compares two arrays");
  if (constant) return ax_hlo_elements_value(value, out);
  *out = args->in[1];
  return AX_OK;
}

static void release(void *context) { ax_free(context); }

static ax_status bind_check(const check *c, const char *name, const ax_value *pair) {
  ax_callback *callback;
  check *copy = ax_alloc(sizeof *copy);
  if (copy == NULL) return ax_out_of_memory(sizeof *copy);
  *copy = *c;
  const ax_status status = ax_callback_create(name, compare, copy, release, &callback);
  if (status != AX_OK) {
    ax_free(copy);
    return status;
  }
  (ax_io_callback)(callback, false, 2, pair, 0, NULL, 0, NULL);
  ax_callback_release(callback);
  return AX_OK;
}

ax_status ax_hlo_read_check(const ax_hlo_read_args *args, ax_hlo_slice name) {
  const ax_hlo_attribute *units = ax_hlo_find(args->op, "max_ulp_difference"), *tolerance = ax_hlo_find(args->op, "tolerance");
  const bool call = ax_hlo_slice_is(args->op->name, "stablehlo.custom_call");
  check c = {.most_units = units != NULL ? units->integer : call ? 3 : 1, .tolerance = 1e-4};
  char text[64];
  ax_dtype dtype;
  ax_element number;
  ax_value pair[2] = {args->in[0]};
  if (!find_kind(name, &c.kind) || args->op->operand_count == 0) return ax_error(AX_INVALID_ARGUMENT, "it compares two arrays");
  if (tolerance != NULL && tolerance->kind == AX_HLO_FLOAT && ax_hlo_number(tolerance, &dtype, &number))
    c.tolerance = ax_number_load(dtype, &number, 0).f;
  AX_TRY(wanted(args, &pair[1]));
  const ax_type got = ax_typeof(pair[0]), want = ax_typeof(pair[1]);
  if (ax_failed()) return AX_OK;
  if (got.dtype != want.dtype || !ax_same_shape(&got, &want))
    return ax_error(AX_INVALID_ARGUMENT, "the two arrays have different types");
  snprintf(text, sizeof text, "%.*s", (int)name.length, name.start);
  for (uint32_t k = 0; k < args->op->result_count; k++) args->out[k] = (ax_full)(AX_BOOL, AX_LIST(0, NULL), 1);
  return bind_check(&c, text, pair);
}

static ax_status read(const ax_hlo_read_args *args) { return ax_hlo_read_check(args, args->op->name); }

const ax_hlo_reader ax_hlo_check_readers[] = {
    {"check.expect_eq", read},        {"check.expect_eq_const", read},        {"check.expect_close", read},
    {"check.expect_almost_eq", read}, {"check.expect_almost_eq_const", read}, {0}};
