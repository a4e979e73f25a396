#include <axle/axle.h>

enum { SIDE = 4, SIZE = 48, DEVICES = SIDE * SIDE };
static const ax_mesh mesh = {.count = 2, .axis = {{.name = "row", .size = SIDE},
                                                  {.name = "col", .size = SIDE}}};

static ax_value chirp(double freq, ax_type type) {
  ax_value k = ax_iota(AX_F64, AX_DIMS(ax_type_elems(&type)), 0);
  ax_value wave = ax_sin(ax_mul(ax_mul(freq, k), k));
  return ax_reshape(ax_convert_element_type(wave, type.dtype), AX_LIST(type.rank, type.dims));
}

/* Block (i, j) moves up by `up` j places and left by `left` i, around the torus. */
static ax_value skewed(ax_value x, int up, int left) {
  int64_t pairs[DEVICES][2];
  for (int i = 0; i < SIDE; i++)
    for (int j = 0; j < SIDE; j++) {
      pairs[i * SIDE + j][0] = i * SIDE + j;
      pairs[i * SIDE + j][1] = (i + SIDE - up * j) % SIDE * SIDE + (j + SIDE - left * i) % SIDE;
    }
  return ax_ppermute(x, "row,col", DEVICES, (const int64_t (*)[2])pairs);
}

static AX_BODY(cannon) {
  ax_value a = skewed(in[0], 0, 1), b = skewed(in[1], 1, 0), c = ax_full_like(a, 0);
  AX_LOOP (i, 0, SIDE, &a, &b, &c) {
    c = ax_add(c, ax_matmul(a, b));
    a = ax_pshift(a, "col", -1, true);
    b = ax_pshift(b, "row", -1, true);
  }
  out[0] = c;
}

/* a, b -> the sum of the sines, c */
static AX_BODY(loss_fn) {
  ax_closed_call(*(ax_fn *)context, in, &out[1]);
  out[0] = ax_reduce_sum(ax_sin(out[1]), AX_ALL_DIMS, false);
}

/* -> what `labels` says */
static AX_BODY(everything) {
  ax_type type = AX_TYPE(AX_F32, SIZE, SIZE);
  ax_value args[] = {chirp(0.37, type), chirp(0.53, type)};
  ax_value found[4]; /* loss, c, da, db */
  ax_fn product = AX_SHARDED(&mesh, "row,col; row,col -> row,col", AX_FN(cannon, 2, 1));
  ax_value_and_grad(AX_CLOSURE(loss_fn, 2, 2, &product), AX_FIRST(2), args, found);
  out[0] = ax_index(found[1], "5, :4");
  out[1] = ax_allclose(found[1], ax_matmul(args[0], args[1]), 1e-4, 1e-4);
  for (int i = 1; i < 4; i++)
    out[1 + i] = ax_global_norm(AX_VALUES(found[i]));
  out[5] = ax_index(found[3], "-1, -4:");
}

int main(void) {
  const char *labels[] = {"c [5, :4]", "c matches", "c norm", "a grad norm", "b grad norm",
                          "b grad [-1, -4:]"};
  ax_host_array out[6];
  ax_must(ax_apply(NULL, AX_FN(everything, 0, 6), NULL, out));
  for (int i = 0; i < 6; i++)
    ax_print(labels[i], &out[i]);
}
