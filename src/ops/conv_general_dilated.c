/* conv_general_dilated: lhs T[batch, features, s..], rhs T[out, in, k..] -> T[batch / bg, out, o..]
     y[b, f, o..] = sum over c, k.. of lhs[b, c, (o * stride + k * rhs_dilation - low) / lhs_dilation ..] * rhs[f, c, k..]
   with zeros where there is no such element. The specs say which dimension has which role. rhs is not reversed.
   Parameters: window_strides, padding_low, padding_high (negative: cut), lhs_dilation, rhs_dilation: one entry a spatial dimension;
   lhs_spec, out_spec: the numbers of the batch, the feature and the spatial dimensions; rhs_spec: of out feature, in feature,
   spatial; feature_group_count fg: lhs's features and out are cut into fg groups, and group i of the features makes group i of out;
   batch_group_count bg: lhs's batch and out are cut into bg groups, and group i of the batch makes group i of out.
   Errors: bool or dtypes that differ; ranks below 2 or that differ; a spec that is no permutation; a stride, dilation or group
   count below 1; both group counts above 1; sizes that the groups do not divide, an in that is not features / fg; padding that cuts
   off more than there is.
   Numerics: eval adds floats in f64 and rounds once; compiled bf16 and f16 are multiplied and added in f32 and rounded once.
   Integers wrap. Compiled code leaves out some of the products with the zeros that dilation inserts: an infinity of the kernel
   makes no NaN there.
   Bilinear; the transposes are convolutions: lhs's of the cotangent, lhs_dilation and strides in each other's place, with rhs
   reversed; rhs's of lhs with the cotangent as its kernel, rhs_dilation and strides in each other's place.
   Sharding: cuts of batch, features and groups are kept; a cut of in makes a sum. A spatial dimension is cut with the result's, or,
   where the kernel is longer than the result, with the kernel's, which makes a sum; devices exchange the elements that their
   windows need from neighbours' blocks. */
#include "ops/conv_general_dilated.h"

#include <string.h>

#include "hlo/hlo.h"
#include "hlo/read.h"
#include "prim/composite.h"
#include "prim/prims.h"

ax_window ax_conv_window(const ax_conv_params *p, const ax_type *lhs, const ax_type *rhs, uint32_t i) {
  return (ax_window){.array = lhs->dims[p->lhs_spec.v[AX_CONV_SPATIAL + i]],
                     .base = p->lhs_dilation.v[i],
                     .low = p->padding_low.v[i],
                     .high = p->padding_high.v[i],
                     .size = rhs->dims[p->rhs_spec.v[AX_CONV_SPATIAL + i]],
                     .dilation = p->rhs_dilation.v[i],
                     .stride = p->window_strides.v[i]};
}

ax_value ax_conv_bind(const ax_conv_params *p, ax_value lhs, ax_value rhs) {
  ax_value in[] = {lhs, rhs};
  return ax_bind1(&ax_prim_conv_general_dilated, p, in, 2);
}

/* --- infer --- */

static ax_status infer_specs(const ax_conv_params *p, uint32_t rank) {
  const struct {
    const char *what;
    const ax_dims *dims;
    uint32_t count;
  } lists[] = {{"lhs_spec", &p->lhs_spec, rank}, {"rhs_spec", &p->rhs_spec, rank}, {"out_spec", &p->out_spec, rank},
               {"window_strides", &p->window_strides, rank - 2}, {"padding_low", &p->padding_low, rank - 2},
               {"padding_high", &p->padding_high, rank - 2}, {"lhs_dilation", &p->lhs_dilation, rank - 2},
               {"rhs_dilation", &p->rhs_dilation, rank - 2}};
  for (size_t i = 0; i < AX_COUNT(lists); i++) {
    if (lists[i].dims->count != lists[i].count)
      return ax_error(AX_INVALID_ARGUMENT, "%s has %u entries, not %u, for operands of rank %u", lists[i].what,
                      lists[i].dims->count, lists[i].count, rank);
    if (lists[i].count == rank) AX_TRY(ax_infer_distinct(lists[i].what, lists[i].dims, rank));
  }
  return AX_OK;
}

static ax_status infer_divides(const char *what, int64_t size, const char *groups, int64_t count) {
  if (size % count == 0) return AX_OK;
  return ax_error(AX_INVALID_ARGUMENT, "%s %lld does not divide the %lld %s", groups, (long long)count, (long long)size, what);
}

static ax_status infer_features(const ax_conv_params *p, const ax_type *lhs, const ax_type *rhs) {
  int64_t fg = p->feature_group_count, bg = p->batch_group_count, features = lhs->dims[p->lhs_spec.v[AX_CONV_FEATURE]];
  int64_t in = rhs->dims[p->rhs_spec.v[AX_CONV_IN]], out = rhs->dims[p->rhs_spec.v[AX_CONV_OUT]];
  if (fg < 1 || bg < 1 || (fg > 1 && bg > 1))
    return ax_error(AX_INVALID_ARGUMENT,
                    "feature_group_count is %lld and batch_group_count %lld; they must be at least 1, and one of them 1",
                    (long long)fg, (long long)bg);
  AX_TRY(infer_divides("features of the left operand", features, "feature_group_count", fg));
  if (in != features / fg)
    return ax_error(AX_INVALID_ARGUMENT, "the left operand has %lld features in %lld groups; the right takes %lld, not %lld",
                    (long long)features, (long long)fg, (long long)in, (long long)(features / fg));
  AX_TRY(infer_divides("features of the result", out, "feature_group_count", fg));
  AX_TRY(infer_divides("features of the result", out, "batch_group_count", bg));
  return infer_divides("elements of the batch", lhs->dims[p->lhs_spec.v[AX_CONV_BATCH]], "batch_group_count", bg);
}

static ax_status infer(const ax_infer_args *args) {
  const ax_conv_params *p = args->params;
  const ax_type *lhs = &args->in[0], *rhs = &args->in[1];
  ax_type *out = &args->out[0];
  if (lhs->dtype != rhs->dtype)
    return ax_error(AX_INVALID_ARGUMENT, "operand dtypes differ: %s and %s", ax_dtype_name(lhs->dtype), ax_dtype_name(rhs->dtype));
  if (lhs->dtype == AX_BOOL) return ax_error(AX_INVALID_ARGUMENT, "needs a numeric dtype, got bool");
  if (lhs->rank != rhs->rank || lhs->rank < 2)
    return ax_error(AX_INVALID_ARGUMENT, "operands of ranks %u and %u; they must have one rank, of at least 2", lhs->rank,
                    rhs->rank);
  AX_TRY(infer_specs(p, lhs->rank));
  AX_TRY(infer_features(p, lhs, rhs));
  *out = ax_array_type(lhs->dtype, AX_LIST(lhs->rank, lhs->dims));
  out->dims[p->out_spec.v[AX_CONV_BATCH]] = lhs->dims[p->lhs_spec.v[AX_CONV_BATCH]] / p->batch_group_count;
  out->dims[p->out_spec.v[AX_CONV_FEATURE]] = rhs->dims[p->rhs_spec.v[AX_CONV_OUT]];
  for (uint32_t i = 0; i < ax_conv_spatial(p); i++) {
    ax_window w = ax_conv_window(p, lhs, rhs, i);
    AX_TRY(ax_window_positions(&w, "the left operand", (uint32_t)p->lhs_spec.v[AX_CONV_SPATIAL + i],
                               &out->dims[p->out_spec.v[AX_CONV_SPATIAL + i]]));
  }
  return AX_OK;
}

/* --- eval --- */

typedef struct walk {
  const ax_conv_params *p;
  const ax_tensor *lhs, *rhs;
  ax_window windows[AX_MAX_RANK];
  int64_t taps[AX_MAX_RANK], tap_count; /* places of the kernel */
  int64_t lhs_stride[AX_MAX_RANK], rhs_stride[AX_MAX_RANK]; /* by place in the spec */
} walk;

static void strides_of(const ax_tensor *x, const ax_dims *spec, int64_t *by_place) {
  int64_t strides[AX_MAX_RANK];
  ax_dense_strides(x->rank, x->dims, strides);
  for (uint32_t i = 0; i < spec->count; i++) by_place[i] = strides[spec->v[i]];
}

/* The offset of the element of lhs that place `tap` of the kernel meets, from the first element of its batch and feature; -1 if a
   zero is there. *kernel: the offset of that place in rhs. */
static int64_t meets(const walk *w, const int64_t *position, int64_t tap, int64_t *kernel) {
  int64_t at = 0;
  bool there = true;
  *kernel = 0;
  for (uint32_t i = ax_conv_spatial(w->p); i-- > 0; tap /= w->taps[i]) {
    int64_t k = tap % w->taps[i], element = ax_window_element(&w->windows[i], position[i], k);
    there = there && element >= 0;
    at += element * w->lhs_stride[AX_CONV_SPATIAL + i];
    *kernel += k * w->rhs_stride[AX_CONV_SPATIAL + i];
  }
  return there ? at : -1;
}

/* index: of the result's element, by place in out_spec. */
static ax_number element(const walk *w, const int64_t *index) {
  const ax_conv_params *p = w->p;
  const ax_tensor *lhs = w->lhs, *rhs = w->rhs;
  int64_t in = rhs->dims[p->rhs_spec.v[AX_CONV_IN]], out = rhs->dims[p->rhs_spec.v[AX_CONV_OUT]], kernel;
  int64_t batches = lhs->dims[p->lhs_spec.v[AX_CONV_BATCH]] / p->batch_group_count, f = index[AX_CONV_FEATURE];
  int64_t b = index[AX_CONV_BATCH] + f / (out / p->batch_group_count) * batches, c = f / (out / p->feature_group_count) * in;
  ax_number total = {0};
  for (int64_t tap = 0; tap < w->tap_count; tap++) {
    int64_t at = meets(w, index + AX_CONV_SPATIAL, tap, &kernel);
    for (int64_t i = 0; i < in; i++) {
      ax_number x = {0};
      if (at >= 0)
        x = ax_number_load(lhs->dtype, lhs->data, at + b * w->lhs_stride[AX_CONV_BATCH] + (c + i) * w->lhs_stride[AX_CONV_FEATURE]);
      ax_number y = ax_number_load(rhs->dtype, rhs->data, kernel + f * w->rhs_stride[AX_CONV_OUT] + i * w->rhs_stride[AX_CONV_IN]);
      if (!ax_rounds(lhs->dtype)) total.u += x.u * y.u;
      else total.f += x.f * y.f - x.imag * y.imag;
      total.imag += x.f * y.imag + x.imag * y.f;
    }
  }
  return total;
}

static ax_status eval(const ax_eval_args *args) {
  const ax_conv_params *p = args->eqn->params;
  const ax_tensor *out = args->out[0];
  walk w = {.p = p, .lhs = args->in[0], .rhs = args->in[1]};
  ax_type lhs = ax_array_type(w.lhs->dtype, AX_LIST(w.lhs->rank, w.lhs->dims)),
          rhs = ax_array_type(w.rhs->dtype, AX_LIST(w.rhs->rank, w.rhs->dims));
  for (uint32_t i = 0; i < ax_conv_spatial(p); i++) {
    w.windows[i] = ax_conv_window(p, &lhs, &rhs, i);
    w.taps[i] = w.windows[i].size;
  }
  w.tap_count = ax_dims_elems(ax_conv_spatial(p), w.taps);
  strides_of(w.lhs, &p->lhs_spec, w.lhs_stride);
  strides_of(w.rhs, &p->rhs_spec, w.rhs_stride);
  int64_t count = ax_dims_elems(out->rank, out->dims), at[AX_MAX_RANK], index[AX_MAX_RANK];
  for (int64_t i = 0; i < count; i++) {
    int64_t rest = i;
    for (uint32_t d = out->rank; d-- > 0; rest /= out->dims[d]) at[d] = rest % out->dims[d];
    for (uint32_t d = 0; d < out->rank; d++) index[d] = at[p->out_spec.v[d]];
    ax_number_store(out->dtype, out->data, i, element(&w, index));
  }
  return AX_OK;
}

/* --- jvp --- */

static void jvp(const ax_jvp_args *args) {
  const ax_conv_params *p = args->eqn->params;
  ax_value left = args->tangent_in[0], right = args->tangent_in[1];
  args->out[0] = ax_conv_bind(p, args->in[0], args->in[1]);
  args->tangent_out[0] = ax_add_any(ax_is_zero(left) ? ax_zero : ax_conv_bind(p, left, args->in[1]),
                                    ax_is_zero(right) ? ax_zero : ax_conv_bind(p, args->in[0], right));
}

/* --- The record --- */

static const ax_param params[] = {
    {"window_strides", AX_PARAM_DIMS, offsetof(ax_conv_params, window_strides)},
    {"padding_low", AX_PARAM_DIMS, offsetof(ax_conv_params, padding_low)},
    {"padding_high", AX_PARAM_DIMS, offsetof(ax_conv_params, padding_high)},
    {"lhs_dilation", AX_PARAM_DIMS, offsetof(ax_conv_params, lhs_dilation)},
    {"rhs_dilation", AX_PARAM_DIMS, offsetof(ax_conv_params, rhs_dilation)},
    {"lhs_spec", AX_PARAM_DIMS, offsetof(ax_conv_params, lhs_spec)},
    {"rhs_spec", AX_PARAM_DIMS, offsetof(ax_conv_params, rhs_spec)},
    {"out_spec", AX_PARAM_DIMS, offsetof(ax_conv_params, out_spec)},
    {"feature_group_count", AX_PARAM_I64, offsetof(ax_conv_params, feature_group_count)},
    {"batch_group_count", AX_PARAM_I64, offsetof(ax_conv_params, batch_group_count)},
};

static const ax_hlo_form form = {
    .op = "stablehlo.convolution", .precise = true,
    .fields = AX_HLO_FIELDS({"dimension_numbers.input_batch_dimension", "lhs_spec[0]"},
                            {"dimension_numbers.input_feature_dimension", "lhs_spec[1]"},
                            {"dimension_numbers.input_spatial_dimensions", "lhs_spec[2..]"},
                            {"dimension_numbers.kernel_output_feature_dimension", "rhs_spec[0]"},
                            {"dimension_numbers.kernel_input_feature_dimension", "rhs_spec[1]"},
                            {"dimension_numbers.kernel_spatial_dimensions", "rhs_spec[2..]"},
                            {"dimension_numbers.output_batch_dimension", "out_spec[0]"},
                            {"dimension_numbers.output_feature_dimension", "out_spec[1]"},
                            {"dimension_numbers.output_spatial_dimensions", "out_spec[2..]"},
                            {"window_strides", "window_strides"}, {"padding.low", "padding_low"}, {"padding.high", "padding_high"},
                            {"lhs_dilation", "lhs_dilation"}, {"rhs_dilation", "rhs_dilation"},
                            {"feature_group_count", "feature_group_count"}, {"batch_group_count", "batch_group_count"})};

/* It does more than the form: windows may be reversed, and the result's dtype is that of the sums. */
static ax_status read(const ax_hlo_read_args *args) {
  const ax_dtype wanted = args->out_types[0].dtype;
  ax_conv_params p = {0};
  ax_dims reversed, turned = {0};
  if (args->op->operand_count != 2) return ax_error(AX_INVALID_ARGUMENT, "it takes 2 operands, and here are %u", args->op->operand_count);
  AX_TRY(ax_hlo_read_fields(args, &ax_prim_conv_general_dilated, &p));
  if (p.rhs_spec.count != p.lhs_spec.count || p.out_spec.count != p.lhs_spec.count)
    return ax_error(AX_INVALID_ARGUMENT, "dimension_numbers say other numbers of spatial dimensions for operands and result");
  AX_TRY(ax_hlo_integers_or(args->op, "window_reversal", ax_conv_spatial(&p), 0, &reversed));
  for (uint32_t i = 0; i < reversed.count; i++)
    if (reversed.v[i] != 0) turned.v[turned.count++] = p.rhs_spec.v[AX_CONV_SPATIAL + i];
  ax_value lhs = args->in[0], rhs = args->in[1];
  if (turned.count > 0) rhs = ax_rev(rhs, AX_LIST(turned.count, turned.v));
  const bool truth = wanted == AX_BOOL; /* `and` and `or` take the places of product and sum */
  const ax_dtype counted = truth ? AX_S32 : wanted;
  if (ax_typeof(lhs).dtype == AX_BOOL) lhs = ax_convert_element_type(lhs, counted);
  if (ax_typeof(rhs).dtype == AX_BOOL) rhs = ax_convert_element_type(rhs, counted);
  const bool wider = ax_is_multiplied_as(ax_typeof(lhs).dtype, wanted) && ax_is_multiplied_as(ax_typeof(rhs).dtype, wanted);
  if (wider) lhs = ax_convert_element_type(lhs, wanted), rhs = ax_convert_element_type(rhs, wanted);
  const ax_value made = ax_conv_bind(&p, lhs, rhs);
  args->out[0] = truth ? ax_ne(made, ax_zero_like(made)) : ax_convert_element_type(made, wanted);
  return AX_OK;
}

static const ax_hlo_reader readers[] = {{"stablehlo.convolution", read}, {0}};

const ax_prim ax_prim_conv_general_dilated = {
    .name = "conv_general_dilated", .kind = AX_LOCAL, .linear = AX_LINEAR_ONE, .kinds = AX_KINDS_SUM, .in_count = 2, .out_count = 1,
    AX_PARAMS(params, ax_conv_params),
    .infer = infer, .spread = ax_spread_local, .eval = eval, .differs = ax_differs_union, .jvp = jvp, .linearize = jvp,
    .transpose = ax_conv_transpose, .batch = ax_conv_batch, .simplify = ax_simplify_nothing,
    .shard = ax_conv_shard, .block = ax_conv_block, .lower = ax_conv_lower, .complex = ax_complex_product, .form = &form,
    .reads = readers, .hlo = ax_hlo_by_form,
};

/* --- The public functions --- */

static const char function[] = "conv_general_dilated";

static const char *const names[] = {"NC", "OI", "NC"}; /* of the two dimensions of lhs, rhs and the result that are not spatial */

/* "NHWC" -> "HW": what stands beside the two names. */
static bool spatial_letters(const char *what, const char *text, uint32_t rank, const char *two, char *out) {
  uint32_t count = 0;
  bool good = strlen(text) == rank && strchr(text, two[0]) != NULL && strchr(text, two[1]) != NULL;
  for (const char *c = text; good && *c != '\0'; c++) {
    good = strchr(c + 1, *c) == NULL;
    if (*c != two[0] && *c != two[1]) out[count++] = *c;
  }
  out[good ? count : 0] = '\0';
  if (!good)
    ax_reject_as(function, "%s is \"%.40s\": it must have %u different letters, %c and %c among them", what, text, rank, two[0],
                 two[1]);
  return good;
}

/* Spatial dimensions in the order of the letters. */
static bool read_spec(const char *what, const char *text, uint32_t rank, const char *two, const char *order, ax_dims *out) {
  char own[AX_MAX_RANK + 1];
  if (!spatial_letters(what, text, rank, two, own)) return false;
  *out = (ax_dims){.count = rank, .v = {strchr(text, two[0]) - text, strchr(text, two[1]) - text}};
  for (uint32_t i = 0; order[i] != '\0'; i++) {
    const char *at = strchr(own, order[i]) != NULL ? strchr(text, order[i]) : NULL;
    if (at == NULL)
      return ax_reject_as(function, "%s is \"%.40s\": it has no spatial dimension %c, which another one has", what, text, order[i]),
             false;
    out->v[AX_CONV_SPATIAL + i] = at - text;
  }
  return true;
}

/* Reads the three specs. A spec that is not given has its two dimensions that are not spatial in front, and the spatial letters of
   a given one behind them. */
static bool read_specs(const ax_conv_options *options, uint32_t rank, ax_conv_params *p) {
  static const char letters[] = "DHWXYZABEFGJKL";
  static const char *const what[] = {"lhs", "rhs", "out"};
  const char *texts[] = {options->lhs, options->rhs, options->out};
  char order[AX_MAX_RANK + 1] = "", own[3][AX_MAX_RANK + 1];
  ax_dims *specs[] = {&p->lhs_spec, &p->rhs_spec, &p->out_spec};
  const int from = texts[1] != NULL ? 1 : texts[0] != NULL ? 0 : 2;
  if (texts[from] != NULL && !spatial_letters(what[from], texts[from], rank, names[from], order)) return false;
  for (uint32_t i = 0; i < rank - 2 && texts[from] == NULL; i++)
    order[i] = letters[i + (rank < 5 ? 5 - rank : 0)], order[i + 1] = '\0';
  for (int i = 0; i < 3; i++) {
    memcpy(own[i], names[i], 2);
    memcpy(own[i] + 2, order, strlen(order) + 1);
    const char *otherwise = i == 2 && texts[0] != NULL ? texts[0] : own[i];
    if (!read_spec(what[i], texts[i] != NULL ? texts[i] : otherwise, rank, names[i], order, specs[i])) return false;
  }
  return true;
}

/* False: the trace has failed. */
static bool take(const char *option, const ax_dim_list *list, uint32_t count, int64_t otherwise, ax_dims *out) {
  out->count = count;
  if (!ax_option_fits(function, option, list->count, list->v, count, "spatial dimension")) return false;
  for (uint32_t i = 0; i < count; i++) out->v[i] = ax_option_at(list, i, otherwise);
  return true;
}

static bool read_lists(const ax_conv_options *options, uint32_t spatial, ax_conv_params *p) {
  return take("strides", &options->strides, spatial, 1, &p->window_strides) &&
         take("low", &options->low, spatial, 0, &p->padding_low) && take("high", &options->high, spatial, 0, &p->padding_high) &&
         take("lhs_dilation", &options->lhs_dilation, spatial, 1, &p->lhs_dilation) &&
         take("rhs_dilation", &options->rhs_dilation, spatial, 1, &p->rhs_dilation);
}

static bool read_padding(const ax_conv_options *options, const ax_type *lhs, const ax_type *rhs, ax_conv_params *p) {
  if (options->padding == NULL) return true;
  if (options->low.count > 0 || options->high.count > 0)
    return ax_reject_as(function, "padding is \"%.40s\", and low or high is given too", options->padding), false;
  for (uint32_t i = 0; i < ax_conv_spatial(p); i++) {
    ax_window w = ax_conv_window(p, lhs, rhs, i);
    if (!ax_window_pads(function, options->padding, &w)) return false;
    p->padding_low.v[i] = w.low;
    p->padding_high.v[i] = w.high;
  }
  return true;
}

/* Products are computed in the wider of the operands' dtype and the requested dtype. */
static ax_value convert(ax_value x, ax_dtype dtype) { return ax_typeof(x).dtype == dtype ? x : ax_convert_element_type(x, dtype); }

static ax_value conv(ax_value lhs, ax_value rhs, const ax_conv_options *options) {
  static const ax_conv_options none = {0};
  ax_type types[2];
  ax_conv_params p = {0};
  if (options == NULL) options = &none;
  if (!ax_operand(function, lhs, &types[0]) || !ax_operand(function, rhs, &types[1])) return ax_poison;
  if (types[0].rank != types[1].rank || types[0].rank < 2)
    return ax_reject_as(function, "%s and %s: operands must have one rank, of at least 2", ax_operand_string(&types[0]),
                        ax_operand_string(&types[1]));
  uint32_t rank = types[0].rank;
  p.feature_group_count = options->feature_group_count != 0 ? options->feature_group_count : 1;
  p.batch_group_count = options->batch_group_count != 0 ? options->batch_group_count : 1;
  if (!read_lists(options, rank - 2, &p) || !read_specs(options, rank, &p) || !read_padding(options, &types[0], &types[1], &p))
    return ax_poison;
  ax_dtype wanted = options->preferred_element_type, own = types[0].dtype;
  if (wanted == AX_NO_DTYPE || wanted == own) return ax_conv_bind(&p, lhs, rhs);
  if (ax_dtype_bytes(wanted) == 0 || wanted == AX_BOOL || ax_rounds(wanted) != ax_rounds(own) || own != types[1].dtype)
    return ax_reject_as(function, "a result of dtype %s is asked for of %s and %s", ax_dtype_name(wanted),
                        ax_operand_string(&types[0]), ax_operand_string(&types[1]));
  ax_dtype wide = ax_dtype_bytes(wanted) > ax_dtype_bytes(own) ? wanted : own;
  return convert(ax_conv_bind(&p, convert(lhs, wide), convert(rhs, wide)), wanted);
}

ax_value ax_conv_general_dilated(ax_value lhs, ax_value rhs, const ax_conv_options *options) { return conv(lhs, rhs, options); }

ax_value (ax_conv)(ax_value lhs, ax_value rhs, uint32_t count, const int64_t *strides, const char *padding) {
  uint32_t rank = ax_typeof(lhs).rank;
  if (ax_failed() || (strides != NULL && !ax_list_fits("conv", "there are", "spatial dimension", count, rank < 2 ? 0 : rank - 2)))
    return ax_poison;
  const ax_dim_list by = {strides != NULL && rank > 2 ? rank - 2 : 0, strides};
  return conv(lhs, rhs, &(ax_conv_options){.strides = by, .padding = padding != NULL ? padding : "VALID"});
}
