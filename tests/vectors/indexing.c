/* Windows at indices: see indexing.py. */
#include "vectors.h"

enum { UNMAPPED = AX_NOT_MAPPED };

typedef struct form { /* as in indexing.py */
  ax_dim_list window, collapsed, map, batching, index_batching;
  const int64_t *sizes;
} form;

static const form forms[] = {
    {{0}, {AX_DIMS(0)}, {AX_DIMS(0)}, {0}, {0}, LIST(1)},
    {{AX_DIMS(1)}, {AX_DIMS(0)}, {AX_DIMS(0)}, {0}, {0}, LIST(1, 6)},
    {{AX_DIMS(0, 2)}, {0}, {AX_DIMS(1, 0)}, {0}, {0}, LIST(3, 2)},
    {{AX_DIMS(1, 3)}, {AX_DIMS(1)}, {AX_DIMS(1, 0)}, {0}, {0}, LIST(2, 1, 3)},
    {{0}, {AX_DIMS(1)}, {AX_DIMS(1)}, {AX_DIMS(0)}, {AX_DIMS(0)}, LIST(1, 1)},
    {{AX_DIMS(3)}, {AX_DIMS(0)}, {AX_DIMS(0)}, {AX_DIMS(1)}, {AX_DIMS(2)}, LIST(1, 1, 2)},
    {{AX_DIMS(1, 2)}, {0}, {0}, {0}, {0}, LIST(4, 3)},
    {{AX_DIMS(1)}, {AX_DIMS(0)}, {AX_DIMS(0)}, {0}, {0}, LIST(1, 3)},
};

static ax_value gather(const form *f, ax_value x, ax_value indices, const ax_index_options *options) {
  const ax_gather_dims dims = {f->window, f->collapsed, f->map, f->batching, f->index_batching};
  return ax_gather(x, indices, f->sizes, &dims, options);
}

static void gathers(const ax_value *in, ax_value *out, void *context) {
  const ax_value fill = ax_typeof(in[0]).dtype == AX_BOOL ? ax_integer(1) : ax_integer(3);
  out[0] = gather(context, in[0], in[1], NULL);
  out[1] = gather(context, in[0], in[1], &(ax_index_options){.mode = AX_INDEX_CLIP});
  out[2] = gather(context, in[0], in[1], &(ax_index_options){.fill_value = fill});
}

typedef ax_value (*scatter)(ax_value x, ax_value indices, ax_value updates, const ax_scatter_dims *dims,
                            const ax_index_options *options);

static void scatter_each(const form *f, const scatter *functions, uint32_t count, const ax_value *in, ax_value *out) {
  const ax_scatter_dims dims = {f->window, f->collapsed, f->map, f->batching, f->index_batching};
  for (uint32_t k = 0; k < count; k++)
    for (int clips = 0; clips < 2; clips++)
      out[2 * k + (uint32_t)clips] =
          functions[k](in[0], in[1], in[2], &dims, &(ax_index_options){.mode = clips ? AX_INDEX_CLIP : AX_INDEX_FILL});
}

static void scatters(const ax_value *in, ax_value *out, void *context) {
  static const scatter functions[] = {ax_scatter, ax_scatter_add};
  scatter_each(context, functions, 2, in, out);
}

static void other_scatters(const ax_value *in, ax_value *out, void *context) {
  static const scatter functions[] = {ax_scatter_mul, ax_scatter_min, ax_scatter_max};
  scatter_each(context, functions, 3, in, out);
}

BODY(scatter_sub) {
  static const scatter functions[] = {ax_scatter_sub};
  scatter_each(&forms[3], functions, 1, in, out);
}
BODY(twice_and_one) { out[0] = ax_add(ax_mul(in[0], ax_real(2)), ax_real(1)); }
BODY(scatter_apply) {
  const form *f = &forms[3];
  const ax_scatter_dims dims = {f->window, f->collapsed, f->map, f->batching, f->index_batching};
  out[0] = (ax_scatter_apply)(in[0], in[1], AX_FN(twice_and_one, 1, 1), DIMS(2, 2, 3, 3), &dims, NULL);
}
BODY(scatter_bool) {
  static const scatter functions[] = {ax_scatter, ax_scatter_min, ax_scatter_max};
  scatter_each(&forms[3], functions, 3, in, out);
}

/* Bodies for each form. */
#define FORM_BODIES(k)                                                        \
  BODY(gather##k) { gathers(in, out, (void *)(uintptr_t)&forms[k]); }         \
  BODY(scatter##k) { scatters(in, out, (void *)(uintptr_t)&forms[k]); }       \
  BODY(scatter_others##k) { other_scatters(in, out, (void *)(uintptr_t)&forms[k]); }
FORM_BODIES(0)
FORM_BODIES(1)
FORM_BODIES(2)
FORM_BODIES(3)
FORM_BODIES(4)
FORM_BODIES(5)
FORM_BODIES(6)
FORM_BODIES(7)

BODY(extremes) {
  const form *f = &forms[3];
  const ax_scatter_dims dims = {f->window, f->collapsed, f->map, f->batching, f->index_batching};
  out[0] = ax_scatter_min(in[0], in[1], in[2], &dims, NULL);
  out[1] = ax_scatter_max(in[0], in[1], in[2], &dims, NULL);
}

BODY(unique) {
  const ax_type type = ax_array_type(AX_S32, AX_DIMS(3, 1));
  const ax_index_options options = {.unique_indices = true};
  const form *f = &forms[1];
  const ax_scatter_dims dims = {f->window, f->collapsed, f->map, f->batching, f->index_batching};
  ax_value indices = ax_constant(&type, ((const int32_t[]){4, 1, 7}));
  out[0] = ax_scatter(in[0], indices, in[2], &dims, &options);
  out[1] = ax_scatter_mul(in[0], indices, in[2], &dims, &options);
}

static void each_row(ax_function body, const form *f, ax_dim_list axes, uint32_t in_count, uint32_t out_count, const ax_value *in,
                     ax_value *out) {
  ax_vmap(AX_CLOSURE(body, in_count, out_count, f), in, out, &(ax_vmap_options){.in_axes = axes});
}

BODY(gather_batch_x) { each_row(gathers, &forms[3], (ax_dim_list){AX_DIMS(1, UNMAPPED)}, 2, 3, in, out); }
BODY(gather_batch_i) { each_row(gathers, &forms[3], (ax_dim_list){AX_DIMS(UNMAPPED, 0)}, 2, 3, in, out); }
BODY(gather_batch) { each_row(gathers, &forms[5], (ax_dim_list){AX_DIMS(0, 0)}, 2, 3, in, out); }
BODY(scatter_batch_u) { each_row(scatters, &forms[2], (ax_dim_list){AX_DIMS(UNMAPPED, UNMAPPED, 0)}, 3, 4, in, out); }
BODY(scatter_batch_i) { each_row(scatters, &forms[2], (ax_dim_list){AX_DIMS(UNMAPPED, 0, UNMAPPED)}, 3, 4, in, out); }
BODY(scatter_batch) { each_row(scatters, &forms[4], (ax_dim_list){AX_DIMS(2, 0, 0)}, 3, 4, in, out); }

BODY(take_modes) {
  static const ax_index_mode modes[] = {AX_INDEX_FILL, AX_INDEX_CLIP};
  for (int k = 0; k < 6; k++)
    out[k] = ax_take_with(in[0], in[1], k / 2 < 2 ? k / 2 : -1, &(ax_index_options){.mode = modes[k % 2]});
}

BODY(along) {
  out[0] = ax_take_along_axis(in[0], in[1], 0, NULL);
  out[1] = ax_take_along_axis(in[0], in[2], 1, NULL);
  out[2] = ax_take_along_axis(in[0], in[2], -2, &(ax_index_options){.fill_value = ax_integer(2)});
}

BODY(updates) {
  const ax_value row = ax_at(ax_at(in[2], 0, 0), 0, 0);
  out[0] = ax_at_set(in[0], in[1], in[2], 0, NULL);
  out[1] = ax_at_add(in[0], in[1], row, 0, NULL);
  out[2] = ax_at_min(in[0], in[1], ax_at(row, 0, 0), 1, NULL);
  out[3] = ax_at_max(in[0], in[1], ax_integer(1), -1, NULL);
}

static void one_slice(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_dynamic_slice(in[0], in + 1, LIST(2, 3));
}

BODY(slices) {
  const ax_value row = ax_at(in[0], 0, 0);
  each_row(one_slice, NULL, (ax_dim_list){AX_DIMS(0, 0, 0)}, 3, 1, in, out);
  each_row(one_slice, NULL, (ax_dim_list){AX_DIMS(UNMAPPED, 0, UNMAPPED)}, 3, 1, (const ax_value[]){row, in[1], ax_at(in[2], 0, 0)},
           out + 1);
  each_row(one_slice, NULL, (ax_dim_list){AX_DIMS(0, UNMAPPED, 0)}, 3, 1, (const ax_value[]){in[0], ax_at(in[1], 1, 0), in[2]},
           out + 2);
}

static void one_update(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_dynamic_update_slice(in[0], in[1], in + 2);
}

BODY(update_slices) {
  const ax_value row = ax_at(in[0], 0, 0);
  each_row(one_update, NULL, (ax_dim_list){AX_DIMS(0, 0, 0, 0)}, 4, 1, in, out);
  each_row(one_update, NULL, (ax_dim_list){AX_DIMS(UNMAPPED, UNMAPPED, 0, UNMAPPED)}, 4, 1,
           (const ax_value[]){row, ax_at(in[1], 0, 0), in[2], ax_at(in[3], 0, 0)}, out + 1);
  each_row(one_update, NULL, (ax_dim_list){AX_DIMS(0, UNMAPPED, 0, 0)}, 4, 1,
           (const ax_value[]){in[0], ax_at(in[1], 1, 0), in[2], in[3]}, out + 2);
}

BODY(sorts) {
  for (int d = 0; d < 3; d++) out[d] = ax_sort(in[0], d);
}
static ax_value sorts_long(ax_value x) { return ax_sort(x, -1); }
BODY(sorts_edge) {
  out[0] = ax_sort(in[0], 0);
  out[1] = ax_argsort(in[0], 0);
}
BODY(argsorts) {
  out[0] = ax_argsort(in[0], 0);
  out[1] = ax_argsort(in[0], -1);
}
BODY(together) {
  ax_sort_together(AX_VALUES(in[1], in[0], in[2]), 0, 2, out);
  ax_sort_together(AX_VALUES(in[0], in[2]), 1, 1, out + 3);
}
static void sort_row(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_sort(in[0], 0);
}
static void sort_pair(const ax_value *in, ax_value *out, void *context) {
  ax_value sorted[2];
  (void)context;
  ax_sort_together(AX_LIST(2, in), 0, 1, sorted);
  out[0] = sorted[1];
}
BODY(sorts_batch) {
  each_row(sort_row, NULL, (ax_dim_list){AX_DIMS(1)}, 1, 1, in, out);
  each_row(sort_pair, NULL, (ax_dim_list){AX_DIMS(0, UNMAPPED)}, 2, 1, (const ax_value[]){in[0], ax_at(in[0], 0, 0)}, out + 1);
}
static AX_BODY(smaller) { (void)context, out[0] = ax_lt(ax_abs(in[0]), ax_abs(in[1])); }
static AX_BODY(greater_then_less) {
  (void)context;
  out[0] = ax_or(ax_gt(in[0], in[3]), ax_and(ax_eq(in[0], in[3]), ax_lt(in[1], in[4])));
}
static AX_BODY(no_less) { (void)context, out[0] = ax_ge(in[0], in[2]); }
BODY(sorts_by) {
  ax_value pair[2];
  ax_sort_by(AX_LIST(1, in), 1, AX_FN(smaller, 2, 1), AX_LIST(1, out));
  ax_sort_by(AX_VALUES(in[1], in[0], in[2]), 0, AX_FN(greater_then_less, 6, 1), AX_LIST(3, out + 1));
  ax_sort_by(AX_VALUES(in[1], in[2]), -2, AX_FN(no_less, 4, 1), pair);
  out[4] = pair[1];
}
static void sort_by_size(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_sort_by(AX_LIST(1, in), 0, AX_FN(smaller, 2, 1), AX_LIST(1, out));
}
static ax_value sorts_by_long(ax_value x) {
  sort_by_size(&x, &x, NULL);
  return x;
}
BODY(sorts_by_mapped) {
  const ax_value row = ax_at(in[0], 0, 0), one = ax_slice_in_dim(row, 0, 1, 1, 0), none = ax_slice_in_dim(row, 0, 0, 1, 0);
  each_row(sort_by_size, NULL, (ax_dim_list){AX_DIMS(1)}, 1, 1, in, out);
  sort_by_size(&one, out + 1, NULL);
  sort_by_size(&none, out + 2, NULL);
}
BODY(largest) {
  ax_top_k(in[0], 3, out);
  ax_top_k(in[0], 0, out + 2);
  ax_top_k(ax_at(in[0], 0, 0), 5, out + 4);
}
static ax_value largest_slopes(ax_value x) {
  ax_value out[2];
  ax_top_k(x, 3, out);
  return out[0];
}
BODY(largest_edge) { ax_top_k(in[0], 24, out); }

static ax_value embedding(ax_value table, ax_value ids) {
  return ax_reduce_sum(ax_tanh(ax_take(table, ids, 0)), AX_DIMS(0, 1), false);
}

#define MOVE "f32 f64 bf16 f16 s8 s16 s32 s64 u8 u16 u32 u64 bool"
#define NUMBER "f32 f64 bf16 f16 s8 s32 s64 u8 u16 u64"
#define FORM(k, move, number)                                                                             \
  {"gather" #k, move, .body = gather##k, .in = 2, .out = 3}, {"scatter" #k, number, .body = scatter##k, .in = 3, .out = 4}, \
      {"scatter_others" #k, number, .body = scatter_others##k, .in = 3, .out = 6, .modes = "v"}

static const vector_case indexing_cases[] = {
    FORM(0, "f32", "f32"),
    FORM(1, "f32", "f32"),
    FORM(2, "f32", "f32"),
    FORM(3, MOVE, NUMBER),
    FORM(4, "f32", "f32"),
    FORM(5, "f32", "f32"),
    FORM(6, "f32", "f32"),
    FORM(7, "f32", "f32"),
    {"gather_u8", "f32 s32", .body = gather1, .in = 2, .out = 3},
    {"gather_s64", "f32 u8", .body = gather2, .in = 2, .out = 3},
    {"scatter_sub", "f32 s32", .body = scatter_sub, .in = 3, .out = 2},
    {"scatter_apply", "f32", .body = scatter_apply, .in = 2, .modes = "v"},
    {"scatter_bool", "bool", .body = scatter_bool, .in = 3, .out = 6},
    {"extremes", "f32 f64", .body = extremes, .in = 3, .out = 2, .scaled = true},
    {"unique", "f32 f64 bf16", .body = unique, .in = 3, .out = 2},
    {"gather_batch_x", "f32", .body = gather_batch_x, .in = 2, .out = 3},
    {"gather_batch_i", "f32", .body = gather_batch_i, .in = 2, .out = 3},
    {"gather_batch", "f32", .body = gather_batch, .in = 2, .out = 3},
    {"scatter_batch_u", "f32", .body = scatter_batch_u, .in = 3, .out = 4},
    {"scatter_batch_i", "f32", .body = scatter_batch_i, .in = 3, .out = 4},
    {"scatter_batch", "f32", .body = scatter_batch, .in = 3, .out = 4},
    {"take_modes", "f32 bf16 s32 u8 bool", .body = take_modes, .in = 2, .out = 6},
    {"along", "f32 bf16 s32", .body = along, .in = 3, .out = 3},
    {"updates", "f32 s32", .body = updates, .in = 3, .out = 4, .modes = "v"},
    {"slices", "f32 s32", .body = slices, .in = 3, .out = 3},
    {"update_slices", "f32 s32", .body = update_slices, .in = 4, .out = 3},
    {"sorts", MOVE, .body = sorts, .out = 3},
    {"sorts_long", "f32 f64 bf16 s16 u64", .unary = sorts_long},
    {"sorts_edge", NUMBER, .body = sorts_edge, .out = 2, .modes = "v"},
    {"argsorts", MOVE, .body = argsorts, .out = 2, .modes = "v"},
    {"together", "f32 bf16 s32", .body = together, .in = 3, .out = 5},
    {"sorts_batch", "f32", .body = sorts_batch, .out = 2},
    {"sorts_by", "f32 s32", .body = sorts_by, .in = 3, .out = 5},
    {"sorts_by_long", "f32 bf16", .unary = sorts_by_long},
    {"sorts_by_mapped", "f32", .body = sorts_by_mapped, .out = 3},
    {"largest", "f32 f64 bf16 s32 u8", .body = largest, .out = 6, .modes = "v"},
    {"largest_slopes", "f32", .unary = largest_slopes},
    {"largest_edge", "f32 s32", .body = largest_edge, .out = 2, .modes = "v"},
    {"embedding", "f32 f64 bf16", .binary = embedding, .scaled = true},
};

const VECTOR_GROUP(indexing);
