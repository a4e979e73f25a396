#include "hlo/verify_rules.h"

#include <inttypes.h>
#include <string.h>

#include "ir/dtype.h"

/* --- Quantized products: dot_general and convolution --- */

/* The second operand may have scales of its own where the first has none; the result is as the first. */
static ax_status check_product_scales(const ax_verified *v) {
  const ax_hlo_value_type *a = ax_verified_in(v, 0), *b = ax_verified_in(v, 1), *out = ax_verified_out(v, 0);
  const ax_hlo_quantized *x = a->quantized, *y = b->quantized, *z = out->quantized;
  if (x == NULL && y == NULL && z == NULL) return AX_OK;
  if (y == NULL || (x == NULL) != (z == NULL))
    return ax_error(AX_INVALID_ARGUMENT, "operand 1 must be quantized if another is, and operand 0 if the result is");
  for (uint32_t i = 0; i < y->count; i++)
    if (y->zeros[i] != 0 && y->axis >= 0) return ax_error(AX_INVALID_ARGUMENT, "the zero points of operand 1 must be 0");
  if (x == NULL) {
    if (a->dtype == y->expressed && out->dtype == y->expressed) return AX_OK;
    return ax_error(AX_INVALID_ARGUMENT, "operand 1 stands for other numbers than those of operand 0 and the result");
  }
  if (x->storage != y->storage) return ax_error(AX_INVALID_ARGUMENT, "operands 0 and 1 are stored as different integers");
  if (x->expressed != y->expressed || z->expressed != x->expressed)
    return ax_error(AX_INVALID_ARGUMENT, "the operands and the result stand for different numbers");
  if (y->axis < 0 && z->axis >= 0) return ax_error(AX_INVALID_ARGUMENT, "the result has several scales, and operand 1 has one");
  return AX_OK;
}

static ax_status check_product_elements(const ax_verified *v) {
  const ax_hlo_value_type *b = ax_verified_in(v, 1);
  const ax_hlo_quantized *y = b->quantized;
  AX_TRY(check_product_scales(v));
  for (uint32_t i = 0; y != NULL && y->axis < 0 && i < y->count; i++)
    if (y->zeros[i] != 0 && ax_hlo_slice_is(v->op->name, "stablehlo.dot_general"))
      return ax_error(AX_INVALID_ARGUMENT, "the zero point of operand 1 must be 0");
  return AX_OK;
}

/* --- dot_general --- */

typedef struct contraction {
  ax_dims lhs_batch, rhs_batch, lhs, rhs;
} contraction;

/* No dimension is both batching and contracting. */
static ax_status check_apart(const contraction *c) {
  AX_TRY(ax_hlo_check_disjoint("lhs_batching_dimensions", &c->lhs_batch, "lhs_contracting_dimensions", &c->lhs));
  return ax_hlo_check_disjoint("rhs_batching_dimensions", &c->rhs_batch, "rhs_contracting_dimensions", &c->rhs);
}

static ax_status read_contraction(const ax_verified *v, contraction *c) {
  const ax_hlo_attribute *group = ax_hlo_find(v->op, "dot_dimension_numbers");
  AX_TRY(ax_hlo_item_integers(group, "lhs_batching_dimensions", &c->lhs_batch));
  AX_TRY(ax_hlo_item_integers(group, "rhs_batching_dimensions", &c->rhs_batch));
  AX_TRY(ax_hlo_item_integers(group, "lhs_contracting_dimensions", &c->lhs));
  AX_TRY(ax_hlo_item_integers(group, "rhs_contracting_dimensions", &c->rhs));
  if (c->lhs_batch.count != c->rhs_batch.count)
    return ax_error(AX_INVALID_ARGUMENT, "both operands must have as many batching dimensions");
  if (c->lhs.count != c->rhs.count) return ax_error(AX_INVALID_ARGUMENT, "both operands must have as many contracting dimensions");
  return check_apart(c);
}

static ax_status check_pairs(const char *what, const ax_hlo_value_type *a, const ax_dims *x, const ax_hlo_value_type *b,
                             const ax_dims *y) {
  for (uint32_t i = 0; i < x->count; i++)
    if (!ax_hlo_extents_fit(a->dims[x->v[i]], b->dims[y->v[i]]))
      return ax_error(AX_INVALID_ARGUMENT,
                      "%s dimensions %" PRId64 " and %" PRId64 " have different extents: %" PRId64 " and %" PRId64, what, x->v[i],
                      y->v[i], a->dims[x->v[i]], b->dims[y->v[i]]);
  return AX_OK;
}

static bool has(const ax_dims *list, int64_t d) {
  for (uint32_t i = 0; i < list->count; i++)
    if (list->v[i] == d) return true;
  return false;
}

static void add_free(const ax_hlo_value_type *type, const ax_dims *batch, const ax_dims *contracted, ax_dims *out) {
  for (uint32_t d = 0; d < type->rank && out->count < AX_MAX_RANK; d++)
    if (!has(batch, d) && !has(contracted, d)) out->v[out->count++] = type->dims[d];
}

/* Algorithms: the elements of the operands, of the sum, components of each, products, whether the sum may lose digits. */
static const struct {
  const char *lhs, *rhs, *sum;
  int64_t components, products;
  bool loses;
} algorithms[] = {
    {"f8E5M2", "f8E5M2", "f32", 1, 1, true}, {"f8E5M2", "f8E5M2", "f32", 1, 1, false}, {"f16", "f16", "f16", 1, 1, false},
    {"f16", "f16", "f32", 1, 1, false},      {"bf16", "bf16", "bf16", 1, 1, false},    {"bf16", "bf16", "f32", 1, 1, false},
    {"bf16", "bf16", "f32", 1, 3, false},    {"bf16", "bf16", "f32", 1, 6, false},     {"bf16", "bf16", "f32", 1, 9, false},
    {"tf32", "tf32", "f32", 1, 1, false},    {"tf32", "tf32", "f32", 1, 3, false},     {"f32", "f32", "f32", 1, 1, false},
    {"f64", "f64", "f64", 1, 1, false}};

static bool is_type(const ax_hlo_attribute *algorithm, const char *name, const char *type) {
  const ax_hlo_attribute *found = ax_hlo_item(algorithm, name);
  if (found != NULL && found->kind == AX_HLO_WORD) return ax_hlo_slice_is(found->text, type); /* tf32 */
  return found != NULL && found->type != NULL && ax_hlo_slice_is(found->type->text, type);
}

static bool is_byte_float(const ax_hlo_attribute *algorithm, const char *name) {
  const ax_hlo_attribute *found = ax_hlo_item(algorithm, name);
  return found != NULL && found->type != NULL && found->type->text.length > 2 && memcmp(found->type->text.start, "f8", 2) == 0;
}

static int64_t number(const ax_hlo_attribute *group, const char *name) {
  const ax_hlo_attribute *found = ax_hlo_item(group, name);
  return found != NULL && (found->kind == AX_HLO_INTEGER || found->kind == AX_HLO_BOOL) ? found->integer : 0;
}

static ax_status check_algorithm(const ax_verified *v) {
  static const char *const counts[] = {"lhs_component_count", "rhs_component_count", "num_primitive_operations"};
  const ax_hlo_attribute *a = ax_hlo_find(v->op, "algorithm"), *config = ax_hlo_find(v->op, "precision_config");
  if (a == NULL || a->kind != AX_HLO_DICTIONARY || a->count == 0 || is_type(a, "lhs_precision_type", "none")) return AX_OK;
  for (uint32_t i = 0; config != NULL && i < config->count; i++)
    if (!ax_hlo_slice_is(config->items[i].text, "DEFAULT"))
      return ax_error(AX_INVALID_ARGUMENT, "precision_config must be DEFAULT where there is an algorithm");
  for (size_t i = 0; i < AX_COUNT(counts); i++)
    if (number(a, counts[i]) < 1)
      return ax_error(AX_INVALID_ARGUMENT, "algorithm: %s is %" PRId64 ", and must be at least 1", counts[i], number(a, counts[i]));
  const bool loses = number(a, "allow_imprecise_accumulation") != 0;
  const bool one = number(a, counts[0]) == 1 && number(a, counts[1]) == 1 && number(a, counts[2]) == 1;
  if (one && is_byte_float(a, "lhs_precision_type") && is_byte_float(a, "rhs_precision_type") &&
      is_type(a, "accumulation_type", "f32"))
    return AX_OK;
  for (size_t i = 0; i < AX_COUNT(algorithms); i++)
    if (is_type(a, "lhs_precision_type", algorithms[i].lhs) && is_type(a, "rhs_precision_type", algorithms[i].rhs) &&
        is_type(a, "accumulation_type", algorithms[i].sum) && number(a, counts[0]) == algorithms[i].components &&
        number(a, counts[1]) == algorithms[i].components && number(a, counts[2]) == algorithms[i].products &&
        loses == algorithms[i].loses)
      return AX_OK;
  return ax_error(AX_INVALID_ARGUMENT, "algorithm: no hardware is known to have it");
}

ax_status ax_hlo_check_dot_general(const ax_verified *v) {
  const ax_hlo_value_type *a = ax_verified_in(v, 0), *b = ax_verified_in(v, 1);
  contraction c;
  AX_TRY(check_algorithm(v));
  AX_TRY(read_contraction(v, &c));
  AX_TRY(check_product_elements(v));
  if (!ax_hlo_ranked(a) || !ax_hlo_ranked(b)) return AX_OK;
  AX_TRY(ax_hlo_check_places("lhs_batching_dimensions", &c.lhs_batch, a->rank, false));
  AX_TRY(ax_hlo_check_places("lhs_contracting_dimensions", &c.lhs, a->rank, false));
  AX_TRY(ax_hlo_check_places("rhs_batching_dimensions", &c.rhs_batch, b->rank, false));
  AX_TRY(ax_hlo_check_places("rhs_contracting_dimensions", &c.rhs, b->rank, false));
  AX_TRY(check_pairs("batching", a, &c.lhs_batch, b, &c.rhs_batch));
  AX_TRY(check_pairs("contracting", a, &c.lhs, b, &c.rhs));
  if (b->quantized != NULL && b->quantized->axis >= 0 && has(&c.rhs, b->quantized->axis))
    return ax_error(AX_INVALID_ARGUMENT, "the scales of operand 1 are those of a contracting dimension");
  ax_dims dims = {0};
  for (uint32_t i = 0; i < c.lhs_batch.count; i++) dims.v[dims.count++] = a->dims[c.lhs_batch.v[i]];
  if ((int64_t)a->rank + b->rank - c.lhs_batch.count - 2 * c.lhs.count > AX_MAX_RANK) return AX_OK;
  add_free(a, &c.lhs_batch, &c.lhs, &dims);
  add_free(b, &c.rhs_batch, &c.rhs, &dims);
  return ax_hlo_check_shape(v, 0, &dims);
}

ax_status ax_hlo_check_dot(const ax_verified *v) {
  const ax_hlo_value_type *a = ax_verified_in(v, 0), *b = ax_verified_in(v, 1);
  ax_dims dims = {0};
  AX_TRY(check_product_scales(v));
  if (!ax_hlo_ranked(a) || !ax_hlo_ranked(b)) return AX_OK;
  if (a->rank < 1 || a->rank > 2 || b->rank < 1 || b->rank > 2)
    return ax_error(AX_INVALID_ARGUMENT, "operands must have the rank 1 or 2, and have %u and %u", a->rank, b->rank);
  if (!ax_hlo_extents_fit(a->dims[a->rank - 1], b->dims[0]))
    return ax_error(AX_INVALID_ARGUMENT, "contracting dimensions have different extents: %" PRId64 " and %" PRId64,
                    a->dims[a->rank - 1], b->dims[0]);
  if (a->rank == 2) dims.v[dims.count++] = a->dims[0];
  if (b->rank == 2) dims.v[dims.count++] = b->dims[1];
  return ax_hlo_check_shape(v, 0, &dims);
}

ax_status ax_hlo_check_einsum(const ax_verified *v) {
  const ax_hlo_attribute *config = ax_hlo_find(v->op, "einsum_config");
  return config == NULL || config->kind == AX_HLO_STRING ? AX_OK : ax_error(AX_INVALID_ARGUMENT, "einsum_config must be a string");
}

ax_status ax_hlo_check_top_k(const ax_verified *v) {
  const ax_hlo_value_type *in = ax_verified_in(v, 0), *places = ax_verified_out(v, 1);
  int64_t k;
  AX_TRY(ax_hlo_integer(v->op, "k", &k));
  AX_TRY(ax_hlo_check_elements(v, 0, 0));
  if (places->element_known && places->dtype != AX_S32) return ax_error(AX_INVALID_ARGUMENT, "result 1 must be of i32");
  if (!ax_hlo_ranked(in)) return AX_OK;
  if (in->rank == 0) return ax_error(AX_INVALID_ARGUMENT, "the operand's rank must be at least 1");
  ax_dims dims = ax_hlo_dims_of(in);
  if (dims.v[in->rank - 1] >= 0 && dims.v[in->rank - 1] < k)
    return ax_error(AX_INVALID_ARGUMENT, "the operand's last dimension must be at least k=%" PRId64 ", and is %" PRId64, k,
                    dims.v[in->rank - 1]);
  dims.v[in->rank - 1] = k;
  AX_TRY(ax_hlo_check_shape(v, 0, &dims));
  return ax_hlo_check_shape(v, 1, &dims);
}

/* --- ragged_dot --- */

typedef struct ragged {
  contraction c;
  ax_dims ragged, group;
} ragged;

static ax_status read_ragged(const ax_verified *v, ragged *r) {
  const ax_hlo_attribute *group = ax_hlo_find(v->op, "ragged_dot_dimension_numbers");
  if (group == NULL || group->kind != AX_HLO_DICTIONARY)
    return ax_error(AX_INVALID_ARGUMENT, "ragged_dot_dimension_numbers must be numbers of dimensions");
  AX_TRY(ax_hlo_item_integers(group, "lhs_batching_dimensions", &r->c.lhs_batch));
  AX_TRY(ax_hlo_item_integers(group, "rhs_batching_dimensions", &r->c.rhs_batch));
  AX_TRY(ax_hlo_item_integers(group, "lhs_contracting_dimensions", &r->c.lhs));
  AX_TRY(ax_hlo_item_integers(group, "rhs_contracting_dimensions", &r->c.rhs));
  AX_TRY(ax_hlo_item_integers(group, "lhs_ragged_dimensions", &r->ragged));
  AX_TRY(ax_hlo_item_integers(group, "rhs_group_dimensions", &r->group));
  if (r->ragged.count != 1) return ax_error(AX_INVALID_ARGUMENT, "lhs_ragged_dimensions must be one dimension");
  AX_TRY(check_apart(&r->c));
  AX_TRY(ax_hlo_check_disjoint("rhs_group_dimensions", &r->group, "rhs_batching_dimensions", &r->c.rhs_batch));
  return ax_hlo_check_disjoint("rhs_group_dimensions", &r->group, "rhs_contracting_dimensions", &r->c.rhs);
}

/* Sizes of groups: a number for each group, and each place along the dimensions that stand before the ragged one. */
static ax_status check_groups(const ax_hlo_value_type *a, const ax_hlo_value_type *sizes, const ragged *r, int64_t *groups) {
  char text[256];
  ax_dims wanted = {0};
  const int64_t at = r->ragged.v[0];
  const bool contracted = has(&r->c.lhs, at), batch = has(&r->c.lhs_batch, at);
  for (uint32_t i = 0; i < r->c.lhs_batch.count && r->c.lhs_batch.v[i] != at; i++)
    wanted.v[wanted.count++] = a->dims[r->c.lhs_batch.v[i]];
  for (uint32_t i = 0; contracted && i < r->c.lhs.count && r->c.lhs.v[i] != at; i++)
    wanted.v[wanted.count++] = a->dims[r->c.lhs.v[i]];
  for (int64_t d = 0; !contracted && !batch && d < at; d++)
    if (!has(&r->c.lhs, d) && !has(&r->c.lhs_batch, d)) wanted.v[wanted.count++] = a->dims[d];
  *groups = sizes->rank > 0 ? sizes->dims[sizes->rank - 1] : 1;
  wanted.v[wanted.count++] = *groups;
  bool fit = sizes->rank == wanted.count || sizes->rank == 1;
  for (uint32_t d = 0; fit && sizes->rank != 1 && d < wanted.count; d++) fit = ax_hlo_extents_fit(sizes->dims[d], wanted.v[d]);
  if (fit) return AX_OK;
  return ax_error(AX_INVALID_ARGUMENT, "the sizes of groups are %.*s, and must have the shape %s", ax_hlo_length(sizes->text),
                  sizes->text.start, ax_hlo_dims_text(&wanted, text));
}

ax_status ax_hlo_check_ragged_dot(const ax_verified *v) {
  const ax_hlo_value_type *a = ax_verified_in(v, 0), *b = ax_verified_in(v, 1), *sizes = ax_verified_in(v, 2);
  ragged r;
  int64_t groups;
  AX_TRY(read_ragged(v, &r));
  if (!ax_hlo_ranked(a) || !ax_hlo_ranked(b) || !ax_hlo_ranked(sizes)) return AX_OK;
  AX_TRY(ax_hlo_check_places("lhs_batching_dimensions", &r.c.lhs_batch, a->rank, false));
  AX_TRY(ax_hlo_check_places("lhs_contracting_dimensions", &r.c.lhs, a->rank, false));
  AX_TRY(ax_hlo_check_places("lhs_ragged_dimensions", &r.ragged, a->rank, false));
  AX_TRY(ax_hlo_check_places("rhs_batching_dimensions", &r.c.rhs_batch, b->rank, false));
  AX_TRY(ax_hlo_check_places("rhs_contracting_dimensions", &r.c.rhs, b->rank, false));
  AX_TRY(ax_hlo_check_places("rhs_group_dimensions", &r.group, b->rank, false));
  if (r.c.lhs.count != r.c.rhs.count || r.c.lhs_batch.count != r.c.rhs_batch.count)
    return ax_error(AX_INVALID_ARGUMENT, "both operands must have as many batching, and contracting, dimensions");
  AX_TRY(check_pairs("batching", a, &r.c.lhs_batch, b, &r.c.rhs_batch));
  AX_TRY(check_pairs("contracting", a, &r.c.lhs, b, &r.c.rhs));
  AX_TRY(check_groups(a, sizes, &r, &groups));
  const bool free_rows = !has(&r.c.lhs, r.ragged.v[0]) && !has(&r.c.lhs_batch, r.ragged.v[0]);
  if (r.group.count != (free_rows ? 1u : 0u))
    return ax_error(AX_INVALID_ARGUMENT, "rhs_group_dimensions must be %s, as the ragged dimension is %s",
                    free_rows ? "one" : "none", free_rows ? "neither batching nor contracting" : "batching or contracting");
  if (free_rows && !ax_hlo_extents_fit(b->dims[r.group.v[0]], groups))
    return ax_error(AX_INVALID_ARGUMENT,
                    "the group dimension of operand 1 has the extent %" PRId64 ", and there are %" PRId64 " groups",
                    b->dims[r.group.v[0]], groups);
  return AX_OK;
}

/* --- Matrices --- */

ax_status ax_hlo_check_cholesky(const ax_verified *v) {
  const ax_hlo_value_type *a = ax_verified_in(v, 0);
  if (!ax_hlo_ranked(a)) return AX_OK;
  if (a->rank < 2)
    return ax_error(AX_INVALID_ARGUMENT, "the operand must have at least 2 dimensions, and is %.*s", ax_hlo_length(a->text),
                    a->text.start);
  if (ax_hlo_extents_fit(a->dims[a->rank - 1], a->dims[a->rank - 2])) return AX_OK;
  return ax_error(AX_INVALID_ARGUMENT, "matrices must be square, and are %.*s", ax_hlo_length(a->text), a->text.start);
}

ax_status ax_hlo_check_triangular_solve(const ax_verified *v) {
  const ax_hlo_value_type *a = ax_verified_in(v, 0), *b = ax_verified_in(v, 1);
  const ax_hlo_attribute *transpose = ax_hlo_find(v->op, "transpose_a");
  bool left;
  AX_TRY(ax_hlo_bool(v->op, "left_side", &left));
  AX_TRY(ax_hlo_check_cholesky(v));
  if (transpose != NULL && ax_hlo_slice_is(transpose->text, "TRANSPOSE_INVALID"))
    return ax_error(AX_INVALID_ARGUMENT, "transpose_a must be NO_TRANSPOSE, TRANSPOSE or ADJOINT");
  if (!ax_hlo_ranked(a) || !ax_hlo_ranked(b)) return AX_OK;
  if (a->rank != b->rank) return ax_error(AX_INVALID_ARGUMENT, "operands must have one rank, and have %u and %u", a->rank, b->rank);
  bool fit = ax_hlo_extents_fit(a->dims[a->rank - 1], b->dims[b->rank - (left ? 2 : 1)]);
  for (uint32_t d = 0; d + 2 < a->rank; d++) fit = fit && ax_hlo_extents_fit(a->dims[d], b->dims[d]);
  if (!fit)
    return ax_error(AX_INVALID_ARGUMENT, "%.*s does not go with %.*s", ax_hlo_length(a->text), a->text.start,
                    ax_hlo_length(b->text), b->text.start);
  const ax_dims dims = ax_hlo_dims_of(b);
  return ax_hlo_check_shape(v, 0, &dims);
}

static ax_status check_fft_elements(const ax_verified *v, bool real_in, bool real_out) {
  const ax_hlo_value_type *in = ax_verified_in(v, 0), *out = ax_verified_out(v, 0);
  if (!in->element_known || !out->element_known) return AX_OK;
  if (ax_is_complex(in->dtype) != !real_in || ax_is_complex(out->dtype) != !real_out ||
      ax_part_dtype(in->dtype) != ax_part_dtype(out->dtype))
    return ax_error(AX_INVALID_ARGUMENT, "it goes from %s to %s of the same size", real_in ? "floats" : "complex numbers",
                    real_out ? "floats" : "complex numbers");
  return AX_OK;
}

ax_status ax_hlo_check_fft(const ax_verified *v) {
  const ax_hlo_value_type *in = ax_verified_in(v, 0);
  const ax_hlo_attribute *type = ax_hlo_find(v->op, "fft_type");
  const bool real_in = type != NULL && ax_hlo_slice_is(type->text, "RFFT"),
             real_out = type != NULL && ax_hlo_slice_is(type->text, "IRFFT");
  ax_dims lengths;
  AX_TRY(ax_hlo_integers(v->op, "fft_length", &lengths));
  AX_TRY(check_fft_elements(v, real_in, real_out));
  if (lengths.count < 1 || lengths.count > 3)
    return ax_error(AX_INVALID_ARGUMENT, "fft_length must have 1 to 3 entries, and has %u", lengths.count);
  if (!ax_hlo_ranked(in)) return AX_OK;
  if (in->rank < lengths.count) return ax_error(AX_INVALID_ARGUMENT, "the operand must have at least %u dimensions", lengths.count);
  ax_dims dims = ax_hlo_dims_of(in);
  for (uint32_t i = 0; i < lengths.count; i++) {
    int64_t *extent = &dims.v[in->rank - lengths.count + i];
    const bool last = i + 1 == lengths.count;
    const int64_t wanted = real_out && last ? lengths.v[i] / 2 + 1 : lengths.v[i];
    const bool nothing = real_out && last && lengths.v[i] == 0 && ax_hlo_extents_fit(*extent, 0);
    if (!nothing && !ax_hlo_extents_fit(*extent, wanted))
      return ax_error(AX_INVALID_ARGUMENT,
                      "fft_length has %" PRId64 ", and the operand's dimension %u the extent %" PRId64 ", not %" PRId64,
                      lengths.v[i], in->rank - lengths.count + i, *extent, wanted);
    if (last && real_in) *extent = lengths.v[i] > 0 ? lengths.v[i] / 2 + 1 : 0;
    if (last && real_out) *extent = lengths.v[i];
  }
  return ax_hlo_check_shape(v, 0, &dims);
}

/* --- Normalisation --- */

/* Operands and results of one dimension, as long as that of the features; `full`: those that are as operand 0, by bits. */
static ax_status check_norm(const ax_verified *v, uint32_t full_in, uint32_t full_out) {
  const ax_hlo_value_type *in = ax_verified_in(v, 0);
  int64_t feature;
  AX_TRY(ax_hlo_integer(v->op, "feature_index", &feature));
  if (!ax_hlo_ranked(in)) return AX_OK;
  if (feature >= in->rank)
    return ax_error(AX_INVALID_ARGUMENT, "feature_index is %" PRId64 ", and must be less than the rank, %u", feature, in->rank);
  const uint32_t ins = v->op->operand_count;
  for (uint32_t i = 1; i < ins + v->op->result_count; i++) {
    const ax_hlo_value_type *type = i < ins ? ax_verified_in(v, i) : ax_verified_out(v, i - ins);
    const bool full = i < ins ? (full_in >> i & 1) != 0 : (full_out >> (i - ins) & 1) != 0;
    if (!ax_hlo_ranked(type)) continue;
    if (full ? ax_hlo_shapes_fit(type, in) : type->rank == 1 && ax_hlo_extents_fit(type->dims[0], in->dims[feature])) continue;
    return ax_error(AX_INVALID_ARGUMENT, "%s %u is %.*s, and must %s", i < ins ? "operand" : "result", i < ins ? i : i - ins,
                    ax_hlo_length(type->text), type->text.start,
                    full ? "have the shape of operand 0" : "have one dimension, as long as that of the features");
  }
  return AX_OK;
}

ax_status ax_hlo_check_batch_norm_training(const ax_verified *v) { return check_norm(v, 1, 1); }
ax_status ax_hlo_check_batch_norm_inference(const ax_verified *v) { return check_norm(v, 1, 1); }
ax_status ax_hlo_check_batch_norm_grad(const ax_verified *v) { return check_norm(v, 1 | 1 << 4, 1); }

/* --- Convolution --- */

typedef struct convolution {
  int64_t batch[2], feature[2]; /* of the input, of the output */
  int64_t in, out;              /* features of the kernel */
  ax_dims spatial[3];           /* input, kernel, output */
  int64_t groups, batch_groups;
  ax_dims strides, low, high, base, dilation;
} convolution;

static ax_status read_number(const ax_hlo_attribute *group, const char *name, int64_t *out) {
  const ax_hlo_attribute *found = ax_hlo_item(group, name);
  if (found == NULL || found->kind != AX_HLO_INTEGER)
    return ax_error(AX_INVALID_ARGUMENT, "dimension_numbers: %s is missing", name);
  *out = found->integer;
  return AX_OK;
}

/* The numbers of two dimensions and the spatial ones are those of all dimensions. */
static ax_status check_all(const char *what, int64_t a, int64_t b, const ax_dims *spatial, int64_t rank) {
  ax_dims all = *spatial;
  if (all.count + 2 > AX_MAX_RANK) return AX_OK;
  all.v[all.count++] = a, all.v[all.count++] = b;
  return ax_hlo_check_places(what, &all, rank, false);
}

static ax_status read_dimension_numbers(const ax_verified *v, convolution *c, int64_t rank) {
  const ax_hlo_attribute *g = ax_hlo_find(v->op, "dimension_numbers");
  if (g == NULL || g->kind != AX_HLO_DICTIONARY) return ax_error(AX_INVALID_ARGUMENT, "dimension_numbers are missing");
  AX_TRY(read_number(g, "input_batch_dimension", &c->batch[0]));
  AX_TRY(read_number(g, "input_feature_dimension", &c->feature[0]));
  AX_TRY(read_number(g, "kernel_input_feature_dimension", &c->in));
  AX_TRY(read_number(g, "kernel_output_feature_dimension", &c->out));
  AX_TRY(read_number(g, "output_batch_dimension", &c->batch[1]));
  AX_TRY(read_number(g, "output_feature_dimension", &c->feature[1]));
  AX_TRY(ax_hlo_item_integers(g, "input_spatial_dimensions", &c->spatial[0]));
  AX_TRY(ax_hlo_item_integers(g, "kernel_spatial_dimensions", &c->spatial[1]));
  AX_TRY(ax_hlo_item_integers(g, "output_spatial_dimensions", &c->spatial[2]));
  if (c->spatial[0].count != c->spatial[1].count || c->spatial[0].count != c->spatial[2].count)
    return ax_error(AX_INVALID_ARGUMENT, "input, kernel and output must have as many spatial dimensions, and have %u, %u and %u",
                    c->spatial[0].count, c->spatial[1].count, c->spatial[2].count);
  if (rank != c->spatial[0].count + 2)
    return ax_error(AX_INVALID_ARGUMENT, "the operands must have %u dimensions, and have %" PRId64, c->spatial[0].count + 2, rank);
  AX_TRY(check_all("dimension_numbers of the input", c->batch[0], c->feature[0], &c->spatial[0], rank));
  AX_TRY(check_all("dimension_numbers of the kernel", c->in, c->out, &c->spatial[1], rank));
  return check_all("dimension_numbers of the output", c->batch[1], c->feature[1], &c->spatial[2], rank);
}

static ax_status check_positive(const char *name, const ax_dims *list) {
  for (uint32_t d = 0; d < list->count; d++)
    if (list->v[d] <= 0)
      return ax_error(AX_INVALID_ARGUMENT, "%s has %" PRId64 ", and must have numbers above 0", name, list->v[d]);
  return AX_OK;
}

static ax_status read_window(const ax_verified *v, convolution *c) {
  const uint32_t count = c->spatial[0].count;
  ax_dims reversal;
  AX_TRY(ax_hlo_window_list(v, "window_strides", count, &c->strides));
  AX_TRY(ax_hlo_window_list(v, "lhs_dilation", count, &c->base));
  AX_TRY(ax_hlo_window_list(v, "rhs_dilation", count, &c->dilation));
  if (v->op->operand_count == 2) AX_TRY(ax_hlo_read_padding(v->op, count, &c->low, &c->high));
  AX_TRY(check_positive("window_strides", &c->strides));
  AX_TRY(check_positive("lhs_dilation", &c->base));
  AX_TRY(check_positive("rhs_dilation", &c->dilation));
  const ax_hlo_attribute *found = ax_hlo_find(v->op, "window_reversal");
  const bool plain = found != NULL && found->kind != AX_HLO_ELEMENTS;
  return plain ? ax_hlo_integers_or(v->op, "window_reversal", count, 0, &reversal) : AX_OK;
}

static bool divides(int64_t extent, int64_t by) { return extent == AX_HLO_DYNAMIC || extent % by == 0; }

static ax_status check_groups_of(const ax_verified *v, const convolution *c) {
  const int64_t *in = ax_verified_in(v, 0)->dims, *kernel = ax_verified_in(v, 1)->dims;
  const int64_t features = in[c->feature[0]], outs = kernel[c->out];
  if (c->groups > 1 && c->batch_groups > 1)
    return ax_error(AX_INVALID_ARGUMENT,
                    "only one of feature_group_count, %" PRId64 ", and batch_group_count, %" PRId64 ", may be above 1", c->groups,
                    c->batch_groups);
  if (!divides(in[c->batch[0]], c->batch_groups) || !divides(outs, c->batch_groups))
    return ax_error(AX_INVALID_ARGUMENT,
                    "batch_group_count, %" PRId64 ", must divide the input's batch, %" PRId64
                    ", and the kernel's output features, %" PRId64,
                    c->batch_groups, in[c->batch[0]], outs);
  if (!divides(features, c->groups) || !divides(outs, c->groups))
    return ax_error(AX_INVALID_ARGUMENT,
                    "feature_group_count, %" PRId64 ", must divide the input's features, %" PRId64
                    ", and the kernel's output features, %" PRId64,
                    c->groups, features, outs);
  if (features == AX_HLO_DYNAMIC || ax_hlo_extents_fit(kernel[c->in], features / c->groups)) return AX_OK;
  return ax_error(AX_INVALID_ARGUMENT,
                  "the kernel has %" PRId64 " input features, and must have the input's, %" PRId64
                  ", divided by feature_group_count, %" PRId64,
                  kernel[c->in], features, c->groups);
}

static ax_status check_convolved(const ax_verified *v, const convolution *c) {
  const ax_hlo_value_type *in = ax_verified_in(v, 0), *kernel = ax_verified_in(v, 1);
  ax_dims dims = {.count = in->rank};
  const int64_t batch = in->dims[c->batch[0]];
  dims.v[c->batch[1]] = batch == AX_HLO_DYNAMIC ? batch : batch / c->batch_groups;
  dims.v[c->feature[1]] = kernel->dims[c->out];
  for (uint32_t d = 0; d < c->spatial[0].count; d++) {
    const int64_t extent = in->dims[c->spatial[0].v[d]], window = kernel->dims[c->spatial[1].v[d]];
    const bool known = extent != AX_HLO_DYNAMIC && window != AX_HLO_DYNAMIC && v->op->operand_count == 2;
    if (window == 0) return ax_error(AX_INVALID_ARGUMENT, "the kernel must not be empty");
    dims.v[c->spatial[2].v[d]] =
        known ? ax_hlo_windows_in(extent, c->low.v[d], c->high.v[d], c->base.v[d], window, c->dilation.v[d], c->strides.v[d])
              : AX_HLO_DYNAMIC;
  }
  return ax_hlo_check_shape(v, 0, &dims);
}

/* Scales of the kernel are those of its output features, and of the result those of its features. */
static ax_status check_channels(const ax_verified *v, const convolution *c) {
  const ax_hlo_quantized *kernel = ax_verified_in(v, 1)->quantized, *out = ax_verified_out(v, 0)->quantized;
  if (kernel != NULL && kernel->axis >= 0 && kernel->axis != c->out)
    return ax_error(AX_INVALID_ARGUMENT, "the kernel's scales must be those of its output features, dimension %" PRId64, c->out);
  if (out != NULL && out->axis >= 0 && out->axis != c->feature[1])
    return ax_error(AX_INVALID_ARGUMENT, "the result's scales must be those of its features, dimension %" PRId64, c->feature[1]);
  return AX_OK;
}

ax_status ax_hlo_check_convolution(const ax_verified *v) {
  const ax_hlo_value_type *in = ax_verified_in(v, 0), *kernel = ax_verified_in(v, 1);
  convolution c = {0};
  if (!ax_hlo_ranked(in) || !ax_hlo_ranked(kernel)) return AX_OK;
  if (in->rank != kernel->rank || in->rank < 2)
    return ax_error(AX_INVALID_ARGUMENT, "operands must have one rank, of at least 2, and are %.*s and %.*s",
                    ax_hlo_length(in->text), in->text.start, ax_hlo_length(kernel->text), kernel->text.start);
  AX_TRY(read_dimension_numbers(v, &c, in->rank));
  AX_TRY(ax_hlo_integer(v->op, "feature_group_count", &c.groups));
  AX_TRY(ax_hlo_integer(v->op, "batch_group_count", &c.batch_groups));
  AX_TRY(read_window(v, &c));
  AX_TRY(check_groups_of(v, &c));
  if (in->quantized == NULL && kernel->quantized == NULL && ax_verified_out(v, 0)->quantized == NULL &&
      !ax_hlo_elements_fit(in, kernel))
    return ax_error(AX_INVALID_ARGUMENT, "operands must have the same elements, and are %.*s and %.*s", ax_hlo_length(in->text),
                    in->text.start, ax_hlo_length(kernel->text), kernel->text.start);
  AX_TRY(check_product_elements(v));
  AX_TRY(check_channels(v, &c));
  if (v->op->operand_count == 3) {
    const ax_hlo_value_type *padding = ax_verified_in(v, 2);
    const ax_dims wanted = {.count = 2, .v = {c.spatial[0].count, 2}}, is = ax_hlo_dims_of(padding);
    char text[256], other[256];
    if (ax_hlo_ranked(padding) && (is.count != 2 || is.v[0] != wanted.v[0] || is.v[1] != 2))
      return ax_error(AX_INVALID_ARGUMENT, "padding must have the shape %s, and has %s", ax_hlo_dims_text(&wanted, text),
                      ax_hlo_dims_text(&is, other));
  }
  return check_convolved(v, &c);
}
