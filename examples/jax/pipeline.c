#include <math.h>

#include <axle/axle.h>

enum { STAGES = 4, MICROBATCHES = 8, ROWS = 4, DIM = 16 };
static const double LR = 0.5;
static const ax_mesh mesh = {.count = 1, .axis = {{.name = "stage", .size = STAGES}}};

static ax_value chirp(double freq, ax_type type) {
  ax_value k = ax_iota(AX_F64, AX_DIMS(ax_type_elems(&type)), 0);
  ax_value wave = ax_sin(ax_mul(ax_mul(freq, k), k));
  return ax_reshape(ax_convert_element_type(wave, type.dtype), AX_LIST(type.rank, type.dims));
}

/* w, b [stage, ..], x -> the stage's output */
static ax_value layer(const ax_value *params, int stage, ax_value x) {
  ax_value w = ax_at(params[0], stage, 0), b = ax_at(params[1], stage, 0);
  return ax_tanh(ax_add(ax_matmul(x, w), b));
}

static AX_BODY(sequential) {
  out[0] = in[2];
  for (int i = 0; i < STAGES; i++)
    out[0] = layer(in, i, out[0]);
}

static AX_BODY(pipelined) {
  ax_value received = ax_full(AX_F32, AX_DIMS(ROWS, DIM), 0), stage = ax_axis_index("stage"), all;
  AX_LOOP (t, 0, MICROBATCHES + STAGES - 1, &received) {
    ax_value made = layer(in, 0, ax_where(ax_eq(stage, 0), ax_dynamic_at(in[2], t, 0), received));
    received = ax_pshift(made, "stage", 1, false);
    ax_collect(&all, made);
  }
  all = ax_slice_in_dim(all, STAGES - 1, AX_END, 1, 0);
  out[0] = ax_psum(ax_where(ax_eq(stage, STAGES - 1), all, 0), "stage");
}

/* w, b, x, y -> the mean square of the error */
static AX_BODY(loss_fn) {
  ax_closed_call(*(ax_fn *)context, in, out);
  out[0] = ax_reduce_mean(ax_square(ax_sub(out[0], in[3])), AX_ALL_DIMS, false);
}

/* w, b, x, y -> loss, dw, db, new w, new b, new loss */
static void sgd_step(ax_fn model, const ax_value *in, ax_value *out) {
  ax_fn loss = AX_CLOSURE(loss_fn, 4, 1, &model);
  ax_value_and_grad(loss, AX_FIRST(2), in, out);
  for (int i = 0; i < 2; i++)
    out[3 + i] = ax_sub(in[i], ax_mul(LR, out[1 + i]));
  ax_closed_call(loss, AX_VALUES(out[3], out[4], in[2], in[3]), &out[5]);
}

/* -> pipelined's step, norms of dw and db by stage, new w[3, 0, :4], whether sequential agrees */
static AX_BODY(compare) {
  ax_value x = chirp(0.29, AX_TYPE(AX_F32, MICROBATCHES, ROWS, DIM)), expected[6];
  ax_value args[] = {ax_div(chirp(0.37, AX_TYPE(AX_F32, STAGES, DIM, DIM)), sqrt(DIM)),
                     ax_mul(0.1, chirp(0.53, AX_TYPE(AX_F32, STAGES, DIM))), x,
                     ax_mul(0.5, ax_cos(ax_mul(3, x)))};
  sgd_step(AX_SHARDED(&mesh, "stage; stage; -> ", AX_FN(pipelined, 3, 1)), args, out);
  sgd_step(AX_FN(sequential, 3, 1), args, expected);
  out[6] = ax_sqrt(ax_reduce_sum(ax_square(out[1]), AX_DIMS(1, 2), false));
  out[7] = ax_sqrt(ax_reduce_sum(ax_square(out[2]), AX_DIMS(1), false));
  out[8] = ax_slice(out[3], AX_DIMS(3, 0, 0), AX_DIMS(4, 1, 4), NULL);
  ax_value found = ax_tree_ravel(AX_LIST(6, out)), wanted = ax_tree_ravel(AX_LIST(6, expected));
  ax_value bound = ax_add(1e-6, ax_mul(1e-5, ax_abs(wanted)));
  out[9] = ax_reduce_and(ax_le(ax_abs(ax_sub(found, wanted)), bound), AX_ALL_DIMS, false);
}

int main(void) {
  ax_host_array out[10];
  ax_must(ax_apply(NULL, AX_FN(compare, 0, 10), NULL, out));
  ax_print("loss", &out[0]);
  ax_print("after step", &out[5]);
  ax_print("grad norm of w by stage", &out[6]);
  ax_print("grad norm of b by stage", &out[7]);
  ax_print("new w[3, 0, :4]", &out[8]);
  ax_print("matches unpipelined", &out[9]);
}
