#include <math.h>
#include <stdio.h>

#include <axle/axle.h>

enum { BATCH = 64, STEPS = 20, LAYERS = 3, LEAVES = 2 * LAYERS, PADDED = 1480 };
enum { MU = LEAVES, NU, COUNT, X, Y, STATE, LOSS = STATE, SHARD, RESULTS };
static const int SIZES[] = {8, 32, 32, 4};
static const double LR = 1e-2, B1 = 0.9, B2 = 0.999, EPS = 1e-8;
static const ax_mesh mesh = {.count = 1, .axis = {{.name = "data", .size = 8}}};

static ax_value chirp(double freq, ax_type type) {
  ax_value k = ax_iota(AX_F64, AX_DIMS(ax_type_elems(&type)), 0);
  ax_value wave = ax_sin(ax_mul(ax_mul(freq, k), k));
  return ax_reshape(ax_convert_element_type(wave, type.dtype), AX_LIST(type.rank, type.dims));
}

/* w, b of each layer -> the mean square of the error */
static AX_BODY(loss_fn) {
  const ax_value *batch = context; /* x, y */
  ax_value x = batch[0];
  for (int i = 0; i < LEAVES; i += 2)
    x = ax_add(ax_matmul(i == 0 ? x : ax_tanh(x), in[i]), in[i + 1]);
  out[0] = ax_reduce_mean(ax_square(ax_sub(x, batch[1])), AX_ALL_DIMS, false);
}

static ax_value padded_ravel(const ax_value *params) {
  ax_value flat = ax_tree_ravel(AX_LIST(LEAVES, params));
  return ax_pad(flat, 0, AX_DIMS(0), AX_DIMS(PADDED - ax_typeof(flat).dims[0]), AX_DIMS(0));
}

/* the state, on each device -> the next, the loss, the size of a moment's shard */
static AX_BODY(train_step) {
  int64_t size = ax_axis_size("data"), shard = ax_typeof(in[MU]).dims[0];
  ax_value local[LEAVES], found[1 + LEAVES];
  for (int i = 0; i < LEAVES; i++)
    local[i] = ax_pvary(in[i], "data");
  ax_value_and_grad(AX_CLOSURE(loss_fn, LEAVES, 1, (void *)&in[X]), AX_FIRST(LEAVES), local, found);

  ax_value grad = ax_div(ax_psum_scatter(padded_ravel(found + 1), "data", 0, true), size);
  out[COUNT] = ax_add(in[COUNT], 1);
  out[MU] = ax_add(ax_mul(B1, in[MU]), ax_mul(1 - B1, grad));
  out[NU] = ax_add(ax_mul(B2, in[NU]), ax_mul(1 - B2, ax_square(grad)));
  ax_value count = ax_convert_element_type(out[COUNT], AX_F32);
  ax_value mu_hat = ax_div(out[MU], ax_sub(1, ax_pow(B1, count))),
           nu_hat = ax_div(out[NU], ax_sub(1, ax_pow(B2, count)));
  ax_value update = ax_div(ax_mul(LR, mu_hat), ax_add(ax_sqrt(nu_hat), EPS));
  ax_value first = ax_mul(ax_axis_index("data"), shard),
           mine = ax_dynamic_slice_in_dim(padded_ravel(in), first, shard, 0);
  ax_value flat = ax_all_gather_invariant(ax_sub(mine, update), "data", 0, true);
  ax_tree_unravel(flat, AX_LIST(LEAVES, in), out);
  out[X] = in[X];
  out[Y] = in[Y];
  out[LOSS] = ax_pmean(found[0], "data");
  out[SHARD] = ax_full(AX_S32, AX_DIMS(), shard);
}

/* -> the losses, the norm of the parameters, the size of a moment's shard */
static AX_BODY(train) {
  ax_value state[RESULTS], x = chirp(0.29, AX_TYPE(AX_F32, BATCH, SIZES[0]));
  for (int i = 0; i < LAYERS; i++) {
    ax_value w = chirp(0.37 + 0.1 * i, AX_TYPE(AX_F32, SIZES[i], SIZES[i + 1]));
    state[2 * i] = ax_div(w, sqrt(SIZES[i]));
    state[2 * i + 1] = ax_full(AX_F32, AX_DIMS(SIZES[i + 1]), 0);
  }
  state[MU] = state[NU] = ax_full(AX_F32, AX_DIMS(PADDED), 0);
  state[COUNT] = ax_full(AX_S32, AX_DIMS(), 0);
  state[X] = x;
  state[Y] = ax_mul(ax_sin(ax_mul(2, ax_index(x, ":, :4"))), ax_index(x, ":, 4:"));
  ax_fn step = AX_SHARDED(&mesh, "*6; data*2; ; data*2 -> *6; data*2; ; data*2; *2",
                          AX_FN(train_step, STATE, RESULTS));
  ax_scan(step, STATE, STEPS, false, state, state);
  out[0] = state[LOSS];
  out[1] = ax_global_norm(AX_LIST(LEAVES, state));
  out[2] = ax_index(state[SHARD], "0");
}

int main(void) {
  ax_host_array out[3];
  ax_must(ax_apply(NULL, AX_FN(train, 0, 3), NULL, out));
  for (int step = 0; step < STEPS; step++)
    printf("step %d loss %.6f\n", step, ax_host_at(&out[0], step));
  ax_print("param norm", &out[1]);
  ax_print("moment shard", &out[2]);
}
