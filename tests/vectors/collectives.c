/* Collectives over every mesh and choice of axes: collectives.py says the same in JAX. */
#include "vectors/vectors.h"

#define LINE "d=2 d=4 d=8 d=1"
#define GRID "a=4,b=2:a,b a=4,b=2:b a=4,b=2:a"
#define ORDERED LINE " " GRID
#define MESHES ORDERED " a=4,b=2:b,a"
#define FEW "d=2 a=2,b=2:b,a a=2,b=2:b"
#define MORE "d=8 a=4,b=2:a,b a=4,b=2:a"

static const vector_variant *variant(void *context) { return context; }
static const char *axes(void *context) { return variant(context)->axes; }
static ax_value plain_float(ax_value x) { return ax_convert_element_type(x, AX_F32); }

BODY(psum) { out[0] = ax_psum(in[0], axes(context)); }
BODY(psum_positional) {
  char both[80], *cursor = both;
  for (const char *a = axes(context); *a != '\0';) *cursor++ = *a++;
  for (const char *more = ",0"; *more != '\0';) *cursor++ = *more++;
  *cursor = '\0';
  out[0] = ax_psum(in[0], both);
  out[1] = ax_pmean(in[0], both);
}
BODY(of_bools) {
  ax_value positive = ax_gt(in[0], ax_integer(0));
  out[0] = ax_psum(positive, axes(context));
  out[1] = ax_pmax(positive, axes(context));
  out[2] = ax_pmin(positive, axes(context));
}
BODY(psum_of_number) { out[0] = ax_mul(in[0], ax_psum(ax_integer(3), axes(context))); }
BODY(pargmax) { out[0] = ax_pargmax(in[0], axes(context)); }
BODY(pargmin) { out[0] = ax_pargmin(in[0], axes(context)); }
BODY(psum_used) { out[0] = ax_mul(ax_psum(in[0], axes(context)), in[0]); }
BODY(psum_of_replicated) {
  out[0] = ax_psum(in[0], axes(context));
  out[1] = ax_psum(in[1], axes(context));
}
BODY(pmean) { out[0] = ax_pmean(in[0], axes(context)); }
BODY(pmax) { out[0] = ax_pmax(in[0], axes(context)); }
BODY(pmin) { out[0] = ax_pmin(in[0], axes(context)); }
BODY(all_gather) { out[0] = ax_all_gather(in[0], axes(context), 0, false); }
BODY(all_gather_1) { out[0] = ax_all_gather(in[0], axes(context), 1, false); }
BODY(all_gather_last) { out[0] = ax_all_gather(in[0], axes(context), 2, false); }
BODY(all_gather_tiled) { out[0] = ax_all_gather(in[0], axes(context), 0, true); }
BODY(all_gather_tiled_1) { out[0] = ax_all_gather(in[0], axes(context), 1, true); }
BODY(psum_scatter) { out[0] = ax_psum_scatter(in[0], axes(context), 0, false); }
BODY(psum_scatter_1) { out[0] = ax_psum_scatter(in[0], axes(context), 1, false); }
BODY(psum_scatter_tiled) { out[0] = ax_psum_scatter(in[0], axes(context), 0, true); }
BODY(psum_scatter_tiled_1) { out[0] = ax_psum_scatter(in[0], axes(context), 1, true); }
BODY(all_to_all) { out[0] = ax_all_to_all(in[0], axes(context), 0, 0, false); }
BODY(all_to_all_1_0) { out[0] = ax_all_to_all(in[0], axes(context), 1, 0, false); }
BODY(all_to_all_0_2) { out[0] = ax_all_to_all(in[0], axes(context), 0, 2, false); }
BODY(all_to_all_tiled) { out[0] = ax_all_to_all(in[0], axes(context), 0, 0, true); }
BODY(all_to_all_tiled_1_0) { out[0] = ax_all_to_all(in[0], axes(context), 1, 0, true); }
BODY(all_to_all_tiled_0_1) { out[0] = ax_all_to_all(in[0], axes(context), 0, 1, true); }

static void orders(const ax_value *in, ax_value *out, void *context, bool tiled) {
  for (int64_t s = 0; s < 3; s++)
    for (int64_t c = 0; c < 3; c++) out[3 * s + c] = ax_all_to_all(in[0], axes(context), s, c, tiled);
}
BODY(all_to_all_orders) { orders(in, out, context, false); }
BODY(all_to_all_tiled_orders) { orders(in, out, context, true); }
BODY(from_the_end) {
  out[0] = ax_all_to_all(in[0], axes(context), -1, -3, true);
  out[1] = ax_all_to_all(in[0], axes(context), -2, -1, true);
  out[2] = ax_psum_scatter(in[0], axes(context), -1, true);
  out[3] = ax_all_gather(in[0], axes(context), -2, true);
  out[4] = ax_all_gather(in[0], axes(context), -1, false);
}
BODY(all_gather_scalar) {
  const int64_t first = 0;
  out[0] = ax_all_gather(ax_reduce_sum(in[0], DIMS(0, 1), false), axes(context), 0, false);
  out[1] =
      ax_reduce_sum(ax_all_gather(ax_reshape(ax_slice(in[0], LIST(0, 0), LIST(1, 3), NULL), DIMS(3)), axes(context), -1, false),
                    AX_LIST(1, &first), false);
}

static ax_value around(ax_value x, void *context) {
  int64_t pairs[64][2], n = variant(context)->members;
  for (int64_t i = 0; i < n; i++) pairs[i][0] = i, pairs[i][1] = (i + 1) % n;
  return ax_ppermute(x, axes(context), (uint32_t)n, (const int64_t(*)[2])pairs);
}
BODY(ppermute_ring) { out[0] = around(in[0], context); }

/* Some members send to others, one to itself; some get nothing. */
BODY(ppermute_pairs) {
  int64_t n = variant(context)->members;
  const int64_t pairs[][2] = {{n - 1, 0}, {0, n - 1}, {1, 1}};
  out[0] = ax_ppermute(in[0], axes(context), n > 3 ? 3 : n > 2 ? 2 : 1, pairs);
}

BODY(pshuffle) {
  int64_t perm[64], n = variant(context)->members;
  for (int64_t i = 0; i < n; i++) perm[i] = n - 1 - i;
  out[0] = ax_pshuffle(in[0], axes(context), AX_LIST((uint32_t)n, perm));
}
BODY(pswapaxes) { out[0] = ax_pswapaxes(in[0], axes(context), 1); }
BODY(pbroadcast) { out[0] = ax_pbroadcast(in[0], axes(context), variant(context)->members - 1); }

BODY(pshift_ring) {
  const int64_t by[] = {1, -1, 5, -12};
  for (int i = 0; i < 4; i++) out[i] = ax_pshift(in[0], axes(context), by[i], true);
}

BODY(pshift_line) {
  const int64_t by[] = {1, -1, 2, 0, -99};
  for (int i = 0; i < 5; i++) out[i] = ax_done(ax_start(ax_pshift(in[0], axes(context), by[i], false)));
}

BODY(axis_index) { out[0] = ax_mul(in[0], plain_float(ax_axis_index(axes(context)))); }
BODY(axis_index_s32) { out[0] = ax_add(ax_expand_dims(ax_axis_index(axes(context)), 0), in[0]); }
BODY(axis_size) { out[0] = ax_mul(in[0], ax_full_like(in[0], (double)ax_axis_size(axes(context)))); }
BODY(pvary) {
  ax_value x = ax_pcast(in[0], axes(context), "varying");
  out[0] = ax_mul(x, ax_full_like(x, 2));
}
BODY(implicit_pvary) { out[0] = ax_psum(ax_matmul(in[0], in[1]), axes(context)); }
BODY(psum_of_psum) { out[0] = ax_pmean(ax_tanh(ax_mul(ax_psum(in[0], axes(context)), in[0])), axes(context)); }
BODY(unchecked) {
  out[0] = ax_psum(in[0], axes(context));
  out[1] = ax_all_gather(in[0], axes(context), 0, true);
  out[2] = around(in[0], context);
}

static const vector_case collectives_cases[] = {
    {"psum", MESHES, "A > R", .body = psum, .scaled = true},
    {"psum_used", MESHES, "A > A", .body = psum_used, .scaled = true},
    {"psum_of_replicated", GRID, "A . > R R", .body = psum_of_replicated, .in = 2, .out = 2, .scaled = true},
    {"psum_s32", "d=8 a=4,b=2:a", "A > R", .body = psum},
    {"psum_bf16", "d=8", "A > R", .body = psum, .scaled = true},
    {"psum_f64", "d=8 a=4,b=2:b,a", "A > R", .body = psum, .scaled = true},
    {"pmean", MESHES, "A > R", .body = pmean, .scaled = true},
    {"pmax", MESHES, "A > R", .body = pmax, .modes = "v"},
    {"pmin", MESHES, "A > R", .body = pmin, .modes = "v"},
    {"pmax_s32", "d=8", "A > R", .body = pmax},
    {"psum_positional", MESHES, "A > R R", .body = psum_positional, .out = 2, .scaled = true},
    {"of_bools", MESHES, "A > R R R", .body = of_bools, .out = 3, .modes = "v"},
    {"psum_of_number", MESHES, "A > A", .body = psum_of_number},
    {"pargmax", MESHES, "A > R", .body = pargmax, .modes = "v"},
    {"pargmin_s8", "d=8 a=4,b=2:b,a", "A > R", .body = pargmin},
    {"all_gather", MESHES, "A > A", .body = all_gather, .scaled = true},
    {"all_gather_1", MORE, "A > A", .body = all_gather_1, .scaled = true},
    {"all_gather_last", MORE, "A > A", .body = all_gather_last, .scaled = true},
    {"all_gather_tiled", MESHES, "A > A", .body = all_gather_tiled, .scaled = true},
    {"all_gather_tiled_1", MORE, "A > A", .body = all_gather_tiled_1, .scaled = true},
    {"psum_scatter", MESHES, "A > A", .body = psum_scatter, .scaled = true},
    {"psum_scatter_1", MORE, "A > A", .body = psum_scatter_1, .scaled = true},
    {"psum_scatter_tiled", MESHES, "A > A", .body = psum_scatter_tiled, .scaled = true},
    {"psum_scatter_tiled_1", MORE, "A > A", .body = psum_scatter_tiled_1, .scaled = true},
    {"all_to_all", MESHES, "A > A", .body = all_to_all},
    {"all_to_all_1_0", MORE, "A > A", .body = all_to_all_1_0, .modes = "vj"},
    {"all_to_all_0_2", MORE, "A > A", .body = all_to_all_0_2, .modes = "vj"},
    {"all_to_all_tiled", MESHES, "A > A", .body = all_to_all_tiled},
    {"all_to_all_tiled_1_0", MORE, "A > A", .body = all_to_all_tiled_1_0},
    {"all_to_all_tiled_0_1", MORE, "A > A", .body = all_to_all_tiled_0_1},
    {"all_to_all_orders", FEW, "A > A A A A A A A A A", .body = all_to_all_orders, .out = 9, .modes = "vj"},
    {"all_to_all_tiled_orders", FEW, "A > A A A A A A A A A", .body = all_to_all_tiled_orders, .out = 9, .scaled = true},
    {"from_the_end", FEW, "A > A A A A A", .body = from_the_end, .out = 5, .scaled = true},
    {"all_gather_scalar", FEW, "A > A A", .body = all_gather_scalar, .out = 2, .scaled = true},
    {"ppermute_ring", ORDERED, "A > A", .body = ppermute_ring},
    {"ppermute_pairs", ORDERED, "A > A", .body = ppermute_pairs},
    {"pshuffle", ORDERED, "A > A", .body = pshuffle},
    {"pswapaxes", MESHES, "A > A", .body = pswapaxes},
    {"pbroadcast", MESHES, "A > A", .body = pbroadcast, .scaled = true},
    {"pshift_ring", ORDERED, "A > A A A A", .body = pshift_ring, .out = 4, .scaled = true},
    {"pshift_line", ORDERED, "A > A A A A A", .body = pshift_line, .out = 5, .scaled = true},
    {"axis_index", MESHES, "A > A", .body = axis_index},
    {"axis_index_s32", MESHES, "A > A", .body = axis_index_s32},
    {"axis_size", MESHES, "A > A", .body = axis_size},
    {"pvary", MESHES, ". > A", .body = pvary, .scaled = true},
    {"implicit_pvary", MESHES, "A . > R", .body = implicit_pvary, .in = 2, .scaled = true},
    {"psum_of_psum", MORE, "A > R", .body = psum_of_psum, .scaled = true},
    {"unchecked", "d=4 a=4,b=2:a", "A > A A A", .body = unchecked, .out = 3, .unchecked = true, .scaled = true},
};

const VECTOR_GROUP(collectives);
