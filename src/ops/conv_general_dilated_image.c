/* Lowers convolutions of f32 and f64, and of bf16 where the processor multiplies such, to products whose rows lie in the image, or in
   a copy of it. Sums of bf16 are made in f32, and rounded once. An image has depth, rows and
   columns; a convolution of fewer dimensions has images of one row, or of one depth. Groups stand in front of all that.

   Few places, as in layers. Along a row of the image the kernel's places lie side by side, so the rows of the left factor overlap.
   The places in other rows, and those in a row that do not lie side by side, are terms of the product:

     y[batch, od, oh, ow, out] = sum over kd, kh of
       padded[batch, od * stride + kd * dilation, oh * stride + kh * dilation, (ow * stride .. + kw, in)]
         . rhs[kd, kh, (kw, in), out]

   If rows are short, or places in a row are apart and have few features: along the columns the parts for the kernel's places are
   copied side by side, once; along the rows, each place is a product of rows that lie together, added to those before it. Rows that
   a stride skips are stored behind one another too.

     unfolded[batch, d, h mod stride, h / stride, ow, kw, in] = padded[batch, d, h, ow * stride + kw * dilation, in]
     y[batch, od, (oh, ow), out] += sum over kd of
       unfolded[batch, od * stride + kd * dilation, (kh * dilation) mod stride, (kh * dilation) / stride + oh, ow, (kw, in)]
         . rhs[kd, kh, (kw, in), out]

   What is copied so is larger than the image. A large batch is gone through in pieces, of which one is there at a time. An image that is
   only padded is not: the kernels that compute it pad it, and would be there for each piece.

   Few positions, as in gradients of kernels: the same, with the image's batch in the place of its features. The positions in a
   row are rows of the left factor if they lie side by side.

     y[od, oh, (ow, batch), out] = sum over in, kd, kh of
       padded[in, od * stride + kd * dilation, oh * stride + kh * dilation, kw * dilation + (ow, batch)]'
         . rhs[in, kd, kh, kw, out] */
#include <string.h>

#include "ops/conv_general_dilated.h"
#include "plan/lower.h"
#include "plan/plan.h"
#include "prim/prims.h"
#include "product/product.h"

enum { most_unfolded = 128, long_width = 16, few_features = 32 };
enum { depth, row, column, dims_of_image };

typedef struct image {
  const ax_conv_params *p;
  uint32_t spatial;
  ax_window along[dims_of_image]; /* padded; one place at one position in the dimensions that the convolution lacks */
  int64_t count[dims_of_image];   /* of positions */
  int64_t groups, batch, in, out; /* the last three: of a group */
  int64_t skipped, together;      /* the stride of rows, and how many lie together for each remainder by it */
} image;

static bool find_image(const ax_lower *lower, const ax_eqn *eqn, image *u) {
  const ax_conv_params *p = eqn->params;
  const ax_type *lhs = &lower->program->types[eqn->in[0]], *rhs = &lower->program->types[eqn->in[1]];
  const uint32_t spatial = ax_conv_spatial(p);
  const bool multiplied = lhs->dtype == AX_F32 || lhs->dtype == AX_F64 || ax_conv_multiplies_narrow(lhs->dtype);
  if (spatial < 1 || spatial > dims_of_image || !multiplied) return false;
  *u = (image){.p = p, .spatial = spatial, .groups = p->feature_group_count * p->batch_group_count};
  for (uint32_t i = 0; i < dims_of_image; i++) {
    const uint32_t lacks = dims_of_image - spatial;
    ax_window *w = &u->along[i];
    *w = (ax_window){.array = 1, .base = 1, .size = 1, .dilation = 1, .stride = 1};
    if (i >= lacks) *w = ax_conv_window(p, lhs, rhs, i - lacks);
    u->count[i] = ax_window_count(w);
    w->array = ax_dilated(w->array, w->base) + w->low + w->high;
  }
  u->batch = lhs->dims[p->lhs_spec.v[AX_CONV_BATCH]] / p->batch_group_count;
  u->in = rhs->dims[p->rhs_spec.v[AX_CONV_IN]];
  u->out = rhs->dims[p->rhs_spec.v[AX_CONV_OUT]] / u->groups;
  u->skipped = u->along[row].stride;
  u->together = ax_ceil_div(u->along[row].array, u->skipped);
  return true;
}

static bool lies_in_rows(const image *u) {
  return u->count[column] >= long_width && (u->along[column].dilation == 1 || u->in >= few_features);
}

/* Others are sums or single products. */
static bool has_few_places(const image *u) {
  const ax_window *w = u->along;
  const int64_t *n = u->count, places = w[depth].size * w[row].size * w[column].size;
  const bool few = w[depth].size <= n[depth] && w[row].size <= n[row] && w[column].size <= n[column];
  return few && places > 1 && u->out > 1 && u->groups * u->in > 0 && (u->groups == 1 || u->in > 1) &&
         n[depth] * n[row] * n[column] >= 16 && (lies_in_rows(u) || w[row].size * w[column].size <= most_unfolded);
}

static bool has_few_positions(const image *u) {
  const ax_window *w = u->along;
  const int64_t *n = u->count, positions = n[depth] * n[row] * n[column];
  const bool few = n[depth] <= w[depth].size && n[row] <= w[row].size && n[column] <= w[column].size;
  return few && w[column].size >= long_width && positions * u->batch > 1 && u->out > 1;
}

/* --- Operands --- */

/* Groups cut dimension d of x, and stand in front. A convolution without groups has one. */
static ax_value padded(const ax_eqn *eqn, const ax_value *in, uint32_t first, uint32_t last) {
  const ax_conv_params *p = eqn->params;
  const ax_type lhs = ax_typeof(in[0]), rhs = ax_typeof(in[1]);
  const uint32_t spatial = ax_conv_spatial(p);
  uint32_t order[AX_MAX_RANK] = {first}, at[AX_MAX_RANK];
  ax_window windows[dims_of_image];
  for (uint32_t i = 0; i < spatial; i++) order[1 + i] = AX_CONV_SPATIAL + i, windows[i] = ax_conv_window(p, &lhs, &rhs, i);
  order[1 + spatial] = last;
  ax_value x = ax_window_padded(ax_conv_ordered(in[0], &p->lhs_spec, order, false, at), ax_zero_like(in[0]), 1, spatial, windows);
  const uint32_t grouped = p->batch_group_count > 1 ? AX_CONV_BATCH : AX_CONV_FEATURE;
  return ax_conv_groups_front(x, at[grouped], p->feature_group_count * p->batch_group_count);
}

/* Some images of the batch: the parameters of an equation that stands for the convolution's. */
typedef struct piece {
  ax_conv_params p;
  int64_t from, count;
} piece;

/* lhs as [group, batch, spatial.., in], padded; of a piece. */
static ax_value padded_image(const ax_eqn *eqn, const ax_value *in) {
  const piece *of = eqn->params;
  const ax_value some[] = {ax_window_part(in[0], (uint32_t)of->p.lhs_spec.v[AX_CONV_BATCH], of->from, of->count, 1), in[1]};
  return padded(eqn, some, AX_CONV_BATCH, AX_CONV_FEATURE);
}

/* lhs as [group, in, spatial.., batch], padded. */
static ax_value padded_features(const ax_eqn *eqn, const ax_value *in) { return padded(eqn, in, AX_CONV_FEATURE, AX_CONV_BATCH); }

static ax_value kernel_in(const ax_eqn *eqn, const ax_value *in, bool features_first) {
  const ax_conv_params *p = eqn->params;
  const uint32_t spatial = ax_conv_spatial(p);
  uint32_t order[AX_MAX_RANK], at[AX_MAX_RANK], n = 0;
  if (features_first) order[n++] = AX_CONV_IN;
  for (uint32_t i = 0; i < spatial; i++) order[n++] = AX_CONV_SPATIAL + i;
  if (!features_first) order[n++] = AX_CONV_IN;
  order[n++] = AX_CONV_OUT;
  return ax_conv_groups_front(ax_conv_ordered(in[1], &p->rhs_spec, order, false, at), n - 1,
                              p->feature_group_count * p->batch_group_count);
}

/* rhs as [group, spatial.., in, out]. */
static ax_value kernel_rows(const ax_eqn *eqn, const ax_value *in) { return kernel_in(eqn, in, false); }

/* rhs as [group, in, spatial.., out]. */
static ax_value kernel_images(const ax_eqn *eqn, const ax_value *in) { return kernel_in(eqn, in, true); }

/* --- Products --- */

static void add_batch(ax_gemm *g, int64_t extent, int64_t a, int64_t b, int64_t c) {
  if (extent == 1) return;
  g->batch[g->batch_rank] = extent;
  g->a_stride[g->batch_rank] = a, g->b_stride[g->batch_rank] = b, g->c_stride[g->batch_rank++] = c;
}

static void add_term(ax_gemm *g, int64_t extent, int64_t a, int64_t b) {
  if (extent == 1) return;
  g->terms[g->term_rank] = extent;
  g->a_term[g->term_rank] = a, g->b_term[g->term_rank++] = b;
}

/* Rows of the left factor that overlap are said to be terms, even of one, since products of one term alone are taken for products
   of rows that are apart. */
static void end_terms(ax_gemm *g) {
  if (g->term_rank == 0) g->terms[0] = 1, g->term_rank = 1;
}

/* Makes one product of the last dimension of a batch if its products have rows that follow each other. */
static void join_rows(ax_gemm *g) {
  const uint32_t last = g->batch_rank == 0 ? 0 : g->batch_rank - 1;
  if (g->batch_rank == 0 || g->b_stride[last] != 0) return;
  if (g->a_stride[last] != g->m * g->lda || g->c_stride[last] != g->m * g->ldc) return;
  g->m *= g->batch[last];
  g->batch_rank--;
}

static ax_gemm product_of(const image *u, ax_dtype dtype, uint32_t a, uint32_t b, uint32_t c) {
  return (ax_gemm){.dtype = dtype, .n = u->out, .ldb = u->out, .ldc = u->groups * u->out, .a = a, .b = b, .c = c};
}

/* out[batch, od, oh, ow, (group, out)], of which images from number `from` on are made. */
static ax_status multiply_image(ax_lower *lower, const image *u, int64_t from, uint32_t padded_lhs, uint32_t kernel, uint32_t out) {
  const ax_window *w = u->along;
  const int64_t line = w[column].array * u->in, plane = w[row].array * line, space = w[depth].array * plane;
  const int64_t each = u->in * u->out, places = w[depth].size * w[row].size * w[column].size;
  ax_gemm g = product_of(u, ax_lower_type(lower, padded_lhs)->dtype, padded_lhs, kernel, out);
  const bool joined = w[column].dilation == 1;
  g.m = u->count[column];
  g.k = joined ? w[column].size * u->in : u->in;
  g.lda = w[column].stride * u->in;
  const int64_t c_row = g.m * g.ldc, c_plane = u->count[row] * c_row;
  g.c_offset = from * u->count[depth] * c_plane;
  add_batch(&g, u->groups, u->batch * space, places * each, u->out);
  add_batch(&g, u->batch, space, 0, u->count[depth] * c_plane);
  add_batch(&g, u->count[depth], w[depth].stride * plane, 0, c_plane);
  add_batch(&g, u->count[row], w[row].stride * line, 0, c_row);
  add_term(&g, w[depth].size, w[depth].dilation * plane, w[row].size * w[column].size * each);
  add_term(&g, w[row].size, w[row].dilation * line, w[column].size * each);
  if (!joined) add_term(&g, w[column].size, w[column].dilation * u->in, each);
  join_rows(&g);
  end_terms(&g);
  return ax_lower_gemm(lower, &g);
}

/* out[od, oh, ow, batch, (group, out)] */
static ax_status multiply_features(ax_lower *lower, const image *u, uint32_t padded_lhs, uint32_t kernel, uint32_t out) {
  const ax_window *w = u->along;
  const int64_t line = w[column].array * u->batch, plane = w[row].array * line, space = w[depth].array * plane;
  const int64_t kernel_row = w[column].size * u->out, kernel_plane = w[row].size * kernel_row,
                images = w[depth].size * kernel_plane;
  ax_gemm g = product_of(u, ax_lower_type(lower, padded_lhs)->dtype, padded_lhs, kernel, out);
  const bool joined = w[column].stride == 1;
  g.transpose_a = true;
  g.m = joined ? u->count[column] * u->batch : u->batch;
  g.k = w[column].size;
  g.lda = w[column].dilation * u->batch;
  const int64_t c_column = u->batch * g.ldc, c_row = u->count[column] * c_column, c_plane = u->count[row] * c_row;
  add_batch(&g, u->groups, u->in * space, u->in * images, u->out);
  add_batch(&g, u->count[depth], w[depth].stride * plane, 0, c_plane);
  add_batch(&g, u->count[row], w[row].stride * line, 0, c_row);
  if (!joined) add_batch(&g, u->count[column], w[column].stride * u->batch, 0, c_column);
  add_term(&g, u->in, space, images);
  add_term(&g, w[depth].size, w[depth].dilation * plane, kernel_plane);
  add_term(&g, w[row].size, w[row].dilation * line, kernel_row);
  end_terms(&g);
  return ax_lower_gemm(lower, &g);
}

static ax_position place(int dim, int64_t coef, int64_t offset) {
  return (ax_position){.dim = dim, .coef = coef, .offset = offset, .dynamic = AX_NONE};
}

/* unfolded[planes, remainder, row, ow, kw * in] from padded[planes, h, w, in]: planes of all groups, of the batch and its
   depths. */
static ax_status unfold(ax_lower *lower, const image *u, uint32_t padded_lhs, uint32_t *out) {
  const ax_window *w = u->along;
  const ax_buffer from = *ax_lower_get(lower, padded_lhs);
  const int64_t planes = u->groups * u->batch * w[depth].array;
  const ax_dtype dtype = from.type.dtype;
  const ax_type flat = ax_array_type(dtype, AX_DIMS(planes, w[row].array, w[column].array, u->in)),
                type = ax_array_type(dtype, AX_DIMS(planes, u->skipped, u->together, u->count[column], w[column].size * u->in));
  uint32_t planar;
  AX_TRY(ax_lower_view(lower, padded_lhs, &flat, 0, AX_NONE, 0, &planar));
  AX_TRY(ax_lower_buffer(lower, &type, from.axes, out));
  for (int64_t r = 0; r < u->skipped && r < w[row].array; r++)
    for (int64_t k = 0; k < w[column].size; k++) {
      const int64_t dims[] = {planes, (w[row].array - r - 1) / u->skipped + 1, u->count[column], u->in};
      const ax_position src[] = {place(0, 1, 0), place(1, u->skipped, r), place(2, w[column].stride, k * w[column].dilation),
                                 place(3, 1, 0)};
      const ax_position dst[] = {place(0, 1, 0), place(-1, 0, r), place(1, 1, 0), place(2, 1, 0), place(3, 1, k * u->in)};
      AX_TRY(ax_lower_move(lower, 4, dims, *out, dst, planar, src));
    }
  return AX_OK;
}

/* out[batch, od, (oh, ow), (group, out)], likewise. */
static ax_status multiply_unfolded(ax_lower *lower, const image *u, int64_t from, uint32_t unfolded, uint32_t kernel, uint32_t out) {
  const ax_window *w = u->along;
  const int64_t k = w[column].size * u->in, line = u->count[column] * k, plane = u->skipped * u->together * line,
                space = w[depth].array * plane, images = w[depth].size * w[row].size * k * u->out;
  ax_gemm g = product_of(u, ax_lower_type(lower, unfolded)->dtype, unfolded, kernel, out);
  g.m = u->count[row] * u->count[column];
  g.lda = g.k = k;
  g.c_offset = from * u->count[depth] * g.m * g.ldc;
  add_batch(&g, u->groups, u->batch * space, images, u->out);
  add_batch(&g, u->batch, space, 0, u->count[depth] * g.m * g.ldc);
  add_batch(&g, u->count[depth], w[depth].stride * plane, 0, g.m * g.ldc);
  add_term(&g, w[depth].size, w[depth].dilation * plane, w[row].size * k * u->out);
  join_rows(&g);
  for (int64_t n = 0; n < w[row].size; n++) {
    const int64_t h = n * w[row].dilation;
    g.accumulate = n > 0;
    g.a_offset = (h % u->skipped * u->together + h / u->skipped) * line;
    g.b_offset = n * k * u->out;
    AX_TRY(ax_lower_gemm(lower, &g));
  }
  return AX_OK;
}

/* --- The whole --- */

/* The result, of which `product` has dimension at[role] for each role of its spec. */
static ax_status moved(ax_lower *lower, const ax_eqn *eqn, uint32_t product, const int *at, uint32_t *out) {
  const ax_dims *spec = &((const ax_conv_params *)eqn->params)->out_spec;
  ax_position src[AX_MAX_RANK], dst[AX_MAX_RANK];
  bool same = ax_lower_type(lower, product)->dtype == lower->program->types[eqn->out].dtype;
  for (uint32_t i = 0; i < spec->count; i++) {
    src[at[i]] = place((int)spec->v[i], 1, 0);
    same = same && at[i] == spec->v[i];
  }
  *out = product;
  if (same) return AX_OK;
  ax_at_identity(dst, spec->count);
  AX_TRY(ax_lower_result(lower, eqn, 0, out));
  return ax_lower_move(lower, spec->count, lower->program->types[eqn->out].dims, *out, dst, product, src);
}

/* A buffer for the product, of the dtype that products are made in: the result with its spatial dimensions from dimension `spatial_at` on, its features last. at: as
   moved() takes it. */
static ax_status product_buffer(ax_lower *lower, const ax_eqn *eqn, int batch_at, int spatial_at, int *at, uint32_t *product) {
  const ax_type *result = &lower->program->types[eqn->out];
  const ax_dims *spec = &((const ax_conv_params *)eqn->params)->out_spec;
  int64_t dims[AX_MAX_RANK];
  at[AX_CONV_BATCH] = batch_at, at[AX_CONV_FEATURE] = (int)spec->count - 1;
  for (uint32_t i = AX_CONV_SPATIAL; i < spec->count; i++) at[i] = spatial_at + (int)(i - AX_CONV_SPATIAL);
  for (uint32_t i = 0; i < spec->count; i++) dims[at[i]] = result->dims[spec->v[i]];
  ax_dtype made;
  if (!ax_product_result(result->dtype, &made)) return ax_error(AX_INTERNAL, "a product of %s", ax_dtype_name(result->dtype));
  const ax_type plain = ax_array_type(made, AX_LIST(spec->count, dims));
  return ax_lower_buffer(lower, &plain, lower->differs[eqn->out], product);
}

/* With fewer bytes, products are too short for several threads: four pieces of 600 KB instead of two took a step of LeNet 1.07 times as long. */
enum { most_pieces = 4, piece_bytes = 1 << 20 };

static int64_t pieces_of(const image *u, const ax_type *lhs) {
  const ax_window *w = u->along;
  const double planes = (double)u->groups * (double)u->batch * (double)w[depth].array,
               plane = (double)w[row].array * (double)u->count[column] * (double)w[column].size * (double)u->in;
  const double wanted = planes * plane * (double)ax_dtype_bytes(lhs->dtype) / piece_bytes;
  const int64_t most = u->batch < most_pieces ? u->batch : most_pieces;
  if (lies_in_rows(u) || u->p->batch_group_count > 1 || wanted < 2) return 1;
  return wanted < (double)most ? (int64_t)wanted : most;
}

/* Makes the part of the product that belongs to a piece. */
static ax_status lower_piece(ax_lower *lower, const ax_eqn *eqn, const image *all, const piece *of, const uint32_t *in, uint32_t kernel,
                             uint32_t product) {
  image u = *all;
  ax_eqn some = *eqn;
  uint32_t lhs;
  u.batch = of->count / u.p->batch_group_count;
  some.params = of;
  AX_TRY(ax_lower_expanded(lower, &some, padded_image, in, &lhs));
  if (lies_in_rows(&u)) return multiply_image(lower, &u, of->from, lhs, kernel, product);
  AX_TRY(unfold(lower, &u, lhs, &lhs));
  return multiply_unfolded(lower, &u, of->from, lhs, kernel, product);
}

static ax_status lower_rows(ax_lower *lower, const ax_eqn *eqn, const image *u, const uint32_t *in, uint32_t *out) {
  const ax_type *lhs = &lower->program->types[eqn->in[0]];
  const int64_t pieces = pieces_of(u, lhs), all = lhs->dims[u->p->lhs_spec.v[AX_CONV_BATCH]];
  uint32_t kernel, product = 0;
  int at[AX_MAX_RANK];
  AX_TRY(ax_lower_expanded(lower, eqn, kernel_rows, in, &kernel));
  AX_TRY(product_buffer(lower, eqn, 0, 1, at, &product));
  for (int64_t n = 0; n < pieces; n++) {
    const piece one = {*u->p, all * n / pieces, all * (n + 1) / pieces - all * n / pieces};
    AX_TRY(lower_piece(lower, eqn, u, &one, in, kernel, product));
  }
  return moved(lower, eqn, product, at, out);
}

static ax_status lower_features(ax_lower *lower, const ax_eqn *eqn, const image *u, const uint32_t *in, uint32_t *out) {
  uint32_t lhs, kernel, product = 0;
  int at[AX_MAX_RANK];
  AX_TRY(ax_lower_expanded(lower, eqn, padded_features, in, &lhs));
  AX_TRY(ax_lower_expanded(lower, eqn, kernel_images, in, &kernel));
  AX_TRY(product_buffer(lower, eqn, (int)u->spatial, 0, at, &product));
  AX_TRY(multiply_features(lower, u, lhs, kernel, product));
  return moved(lower, eqn, product, at, out);
}

ax_status ax_conv_lower_image(ax_lower *lower, const ax_eqn *eqn, const uint32_t *in, uint32_t *out, bool *made) {
  image u;
  *made = find_image(lower, eqn, &u) && (has_few_places(&u) || has_few_positions(&u));
  if (!*made) return AX_OK;
  return has_few_places(&u) ? lower_rows(lower, eqn, &u, in, out) : lower_features(lower, eqn, &u, in, out);
}
