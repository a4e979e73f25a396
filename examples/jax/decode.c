#include <math.h>
#include <stdio.h>

#include <axle/axle.h>

enum { BATCH = 4, PROMPT = 8, NEW = 16, VOCAB = 32, DIM = 32, HEADS = 4, LENGTH = PROMPT + NEW };
enum { WQ, WK, WV, WO, W1, W2, UNEMBED, EMBED, POSITION, PARAMS };

static ax_value chirp(double freq, ax_type type) {
  ax_value k = ax_iota(AX_F64, AX_DIMS(ax_type_elems(&type)), 0);
  ax_value wave = ax_sin(ax_mul(ax_mul(freq, k), k));
  return ax_reshape(ax_convert_element_type(wave, type.dtype), AX_LIST(type.rank, type.dims));
}

static ax_value weight(int i, int64_t rows, int64_t columns) {
  return ax_div(chirp(0.31 + 0.06 * i, AX_TYPE(AX_F32, rows, columns)), sqrt(rows));
}

static ax_value layer_norm(ax_value x) {
  ax_value centered = ax_sub(x, ax_reduce_mean(x, AX_ALL_DIMS, false));
  ax_value variance = ax_reduce_mean(ax_square(centered), AX_ALL_DIMS, false);
  return ax_mul(centered, ax_rsqrt(ax_add(variance, 1e-5)));
}

/* prompt -> tokens, logits */
static AX_BODY(generate) {
  const ax_value *params = context;
  ax_value keys = ax_full(AX_F32, AX_DIMS(LENGTH, HEADS, DIM / HEADS), 0), values = keys;
  ax_value prompt = ax_pad(in[0], 0, AX_DIMS(0), AX_DIMS(NEW - 1), AX_DIMS(0)),
           previous = ax_index(prompt, "0");
  AX_LOOP (t, 0, LENGTH - 1, &keys, &values, &previous) {
    ax_value token = ax_where(ax_lt(t, PROMPT), ax_each(prompt), previous), qkv[3];
    ax_value x = ax_add(ax_take(params[EMBED], token, 0), ax_take(params[POSITION], t, 0));
    ax_value h = layer_norm(x);
    for (int i = 0; i < 3; i++)
      qkv[i] = ax_reshape(ax_matmul(h, params[WQ + i]), AX_DIMS(HEADS, -1));
    keys = ax_dynamic_at_set(keys, qkv[1], t, 0);
    values = ax_dynamic_at_set(values, qkv[2], t, 0);
    ax_value scores = ax_div(ax_einsum("hd,thd->ht", AX_VALUES(qkv[0], keys)), sqrt(DIM / HEADS)),
             seen = ax_le(ax_iota(AX_S32, AX_DIMS(LENGTH), 0), t);
    ax_value weights = ax_softmax(ax_where(seen, scores, -INFINITY), -1);
    ax_value mixed = ax_reshape(ax_einsum("ht,thd->hd", AX_VALUES(weights, values)), AX_DIMS(DIM));
    x = ax_add(x, ax_matmul(mixed, params[WO]));
    ax_value hidden = ax_gelu(ax_matmul(layer_norm(x), params[W1]));
    ax_value logits = ax_matmul(layer_norm(ax_add(x, ax_matmul(hidden, params[W2]))), params[UNEMBED]);
    previous = ax_argmax(logits, -1, AX_S32);
    ax_collect(&out[0], previous);
    ax_collect(&out[1], logits);
  }
}

/* -> prompts and what follows, top logits of the last position, logits norm */
static AX_BODY(everything) {
  ax_value params[PARAMS] = {
      weight(WQ, DIM, DIM), weight(WK, DIM, DIM), weight(WV, DIM, DIM), weight(WO, DIM, DIM),
      weight(W1, DIM, 4 * DIM), weight(W2, 4 * DIM, DIM), weight(UNEMBED, DIM, VOCAB),
      chirp(0.83, AX_TYPE(AX_F32, VOCAB, DIM)), chirp(0.97, AX_TYPE(AX_F32, LENGTH, DIM))};
  ax_value i = ax_reshape(ax_iota(AX_S32, AX_DIMS(BATCH * PROMPT), 0), AX_DIMS(BATCH, PROMPT));
  ax_value prompts = ax_rem(ax_mul(ax_square(i), 7), 31), made[2];
  ax_vmap(AX_CLOSURE(generate, 1, 2, params), &prompts, made, NULL);
  ax_value tokens = ax_slice_in_dim(made[0], PROMPT - 1, AX_END, 1, 1),
           logits = ax_slice_in_dim(made[1], PROMPT - 1, AX_END, 1, 1);
  out[0] = ax_concatenate(AX_VALUES(prompts, tokens), 1);
  out[1] = ax_reduce_max(ax_index(logits, ":, -1"), AX_DIMS(-1), false);
  out[2] = ax_global_norm(AX_VALUES(logits));
}

int main(void) {
  ax_host_array out[3];
  ax_must(ax_apply(NULL, AX_FN(everything, 0, 3), NULL, out));
  for (int i = 0; i < BATCH * LENGTH; i++)
    printf("%g%s", ax_host_at(&out[0], i),
           (i + 1) % LENGTH == 0 ? "\n" : i % LENGTH == PROMPT - 1 ? " -> " : " ");
  ax_print("top logits of the last position", &out[1]);
  ax_print("logits norm", &out[2]);
}
