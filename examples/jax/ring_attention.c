#include <math.h>

#include <axle/axle.h>

enum { BATCH = 2, SEQ = 64, HEADS = 4, DIM = 16 };
static const ax_mesh mesh = {.count = 1, .axis = {{.name = "seq", .size = 8}}};

static ax_value chirp(double freq, ax_type type) {
  ax_value k = ax_iota(AX_F64, AX_DIMS(ax_type_elems(&type)), 0);
  ax_value wave = ax_mul(2, ax_sin(ax_mul(ax_mul(freq, k), k)));
  return ax_reshape(ax_convert_element_type(wave, type.dtype), AX_LIST(type.rank, type.dims));
}

static ax_value causal_scores(ax_value q, ax_value k, ax_value q_pos, ax_value k_pos) {
  ax_value scores = ax_div(ax_einsum("bqhd,bkhd->bhqk", AX_VALUES(q, k)), sqrt(DIM));
  return ax_where(ax_ge(ax_expand_dims(q_pos, 1), k_pos), scores, -INFINITY);
}

/* q, k, v, positions -> the attention's output */
static AX_BODY(full_attention) {
  ax_value weights = ax_softmax(causal_scores(in[0], in[1], in[3], in[3]), -1);
  out[0] = ax_einsum("bhqk,bkhd->bqhd", AX_VALUES(weights, in[2]));
}

static AX_BODY(ring_attention) {
  ax_value q = in[0], k = in[1], v = in[2], k_pos = in[3];
  ax_value sum = ax_full_like(ax_swapaxes(q, 1, 2), 0), denom = ax_reduce_sum(sum, AX_DIMS(-1), true);
  ax_value top = ax_full_like(denom, -INFINITY);
  AX_LOOP (i, 0, ax_axis_size("seq"), &k, &v, &k_pos, &sum, &denom, &top) {
    ax_value scores = causal_scores(q, k, in[3], k_pos);
    ax_value new_top = ax_max(top, ax_reduce_max(scores, AX_DIMS(-1), true));
    ax_value rescale = ax_exp(ax_sub(top, new_top)), weights = ax_exp(ax_sub(scores, new_top));
    sum = ax_add(ax_mul(sum, rescale), ax_einsum("bhqk,bkhd->bhqd", AX_VALUES(weights, v)));
    denom = ax_add(ax_mul(denom, rescale), ax_reduce_sum(weights, AX_DIMS(-1), true));
    top = new_top;
    k = ax_pshift(k, "seq", 1, true);
    v = ax_pshift(v, "seq", 1, true);
    k_pos = ax_pshift(k_pos, "seq", 1, true);
  }
  out[0] = ax_swapaxes(ax_div(sum, denom), 1, 2);
}

/* q, k, v, positions -> the loss, what the attention gave */
static AX_BODY(mean_square) {
  ax_closed_call(*(ax_fn *)context, in, &out[1]);
  out[0] = ax_reduce_mean(ax_square(out[1]), AX_ALL_DIMS, false);
}

/* -> loss, out, grad, out[1, 63, 3, :4], norm of out, it matches, norm of grad, it matches */
static AX_BODY(everything) {
  ax_type type = AX_TYPE(AX_F32, BATCH, SEQ, HEADS, DIM);
  ax_value expected[3], args[] = {chirp(0.37, type), chirp(0.53, type), chirp(0.71, type),
                                  ax_iota(AX_S32, AX_DIMS(SEQ), 0)};
  ax_fn full = AX_FN(full_attention, 4, 1);
  ax_fn ring = AX_SHARDED(&mesh, "_,seq; _,seq; _,seq; seq -> _,seq", AX_FN(ring_attention, 4, 1));
  ax_value_and_grad(AX_CLOSURE(mean_square, 4, 2, &full), AX_FIRST(1), args, expected);
  ax_value_and_grad(AX_CLOSURE(mean_square, 4, 2, &ring), AX_FIRST(1), args, out);
  out[3] = ax_index(out[1], "1, 63, 3, :4");
  out[4] = ax_global_norm(AX_VALUES(out[1]));
  out[5] = ax_allclose(out[1], expected[1], 1e-5, 1e-5);
  out[6] = ax_global_norm(AX_VALUES(out[2]));
  out[7] = ax_allclose(out[2], expected[2], 1e-4, 1e-7);
}

int main(void) {
  ax_host_array out[8];
  ax_must(ax_apply(NULL, AX_FN(everything, 0, 8), NULL, out));
  ax_print("out[1, 63, 3, :4]", &out[3]);
  ax_print("out norm", &out[4]);
  ax_print("out matches", &out[5]);
  ax_print("loss", &out[0]);
  ax_print("grad norm", &out[6]);
  ax_print("grad matches", &out[7]);
}
