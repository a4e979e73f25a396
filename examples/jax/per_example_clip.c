#include <math.h>
#include <stdio.h>

#include <axle/axle.h>

enum { BATCH = 64, STEPS = 10, LAYERS = 3, PARAMS = 2 * LAYERS };
enum { X = PARAMS, LABEL, COUNT, MU, NU = MU + PARAMS, STATE = NU + PARAMS };
enum { LOSS = STATE, GRAD, CLIPPED = GRAD + PARAMS, NORM, RESULTS };
static const int SIZES[] = {8, 16, 16, 5};
static const double CLIP = 2;
static const ax_mesh mesh = {.count = 1, .axis = {{.name = "data", .size = 8}}};
static ax_treedef *params_def;

static ax_value chirp(double freq, ax_type type) {
  ax_value k = ax_iota(AX_F64, AX_DIMS(ax_type_elems(&type)), 0);
  ax_value wave = ax_sin(ax_mul(ax_mul(freq, k), k));
  return ax_reshape(ax_convert_element_type(wave, type.dtype), AX_LIST(type.rank, type.dims));
}

/* w of each layer, b of each -> loss */
static AX_BODY(loss_fn) {
  const ax_value *example = context; /* x, label */
  ax_value x = example[0];
  for (int i = 0; i < LAYERS; i++)
    x = ax_add(ax_matmul(i == 0 ? x : ax_relu(x), in[i]), in[LAYERS + i]);
  out[0] = ax_neg(ax_dynamic_at(ax_log_softmax(x, -1), example[1], 0));
}

/* x, label; the context is the parameters -> loss, grad, whether it was clipped */
static AX_BODY(clipped_grad) {
  ax_value_and_grad(AX_CLOSURE(loss_fn, PARAMS, 1, in), AX_FIRST(PARAMS), context, out);
  ax_value flat = ax_tree_ravel(AX_LIST(PARAMS, out + 1)), norm = ax_sqrt(ax_matmul(flat, flat));
  ax_tree_scale(ax_min(1, ax_div(CLIP, norm)), AX_LIST(PARAMS, out + 1), out + 1);
  out[1 + PARAMS] = ax_convert_element_type(ax_gt(norm, CLIP), AX_F32);
}

/* the state, on each device -> the next, loss, grad, clipped, norm of the old parameters */
static AX_BODY(train_step) {
  ax_value varying[PARAMS];
  for (int i = 0; i < PARAMS; i++)
    varying[i] = ax_pvary(in[i], "data");
  ax_vmap(AX_CLOSURE(clipped_grad, 2, 2 + PARAMS, varying), in + X, out + LOSS, NULL);
  for (int i = LOSS; i <= CLIPPED; i++)
    out[i] = ax_pmean(ax_reduce_mean(out[i], AX_DIMS(0), false), "data");
  ax_optimizer optimizer = ax_adamw(ax_warmup_cosine_decay_schedule(0, 0.05, 3, STEPS, 0));
  optimizer.weight_decay = 0.01;
  ax_optimizer_update(&optimizer, params_def, out + GRAD, in + COUNT, in, out + COUNT, out);
  out[X] = in[X];
  out[LABEL] = in[LABEL];
  out[NORM] = ax_global_norm(AX_LIST(PARAMS, in));
}

/* -> what the last step gives, with the losses, .. of all; the context is the step */
static AX_BODY(train) {
  ax_value state[STATE], x = chirp(0.29, AX_TYPE(AX_F32, BATCH, SIZES[0]));
  ax_value scores = ax_add(ax_index(x, ":, :5"), ax_index(x, ":, 3:"));
  for (int i = 0; i < LAYERS; i++) {
    ax_value w = chirp(0.37 + 0.1 * i, AX_TYPE(AX_F32, SIZES[i], SIZES[i + 1]));
    state[i] = ax_div(w, sqrt(SIZES[i]));
    state[LAYERS + i] = ax_full(AX_F32, AX_DIMS(SIZES[i + 1]), 0);
  }
  for (int i = 0; i < PARAMS; i++)
    state[MU + i] = state[NU + i] = ax_full_like(state[i], 0);
  state[COUNT] = ax_full(AX_S32, AX_DIMS(), 0);
  state[X] = x;
  state[LABEL] = ax_argmax(scores, 1, AX_S32);
  ax_scan(*(ax_fn *)context, STATE, STEPS, false, state, out);
}

int main(int argc, char **argv) {
  const char *path = argc > 1 ? argv[1] : "per_example_clip.npz", *names[PARAMS];
  const char *specs = "*6; data*2; *13 -> *6; data*2; *22";
  ax_fn step = AX_SHARDED(&mesh, specs, AX_FN(train_step, STATE, RESULTS));
  ax_host_array out[RESULTS], found[RESULTS];
  ax_npz *npz;
  ax_must(ax_treedef_parse("layer0/w: f32[8,16]; layer1/w: f32[16,16]; layer2/w: f32[16,5];"
                           "layer{0,1}/b: f32[16]; layer2/b: f32[5]", &params_def));
  ax_must(ax_apply(NULL, AX_CLOSURE(train, 0, RESULTS, &step), NULL, out));
  for (int i = 0; i < STEPS; i++)
    printf("step %d loss %.6f clipped %.6f\n", i, ax_host_at(&out[LOSS], i),
           ax_host_at(&out[CLIPPED], i));
  for (int i = 0; i < PARAMS; i++)
    names[i] = ax_treedef_name(params_def, i);
  ax_must(ax_npz_write(path, AX_LIST(PARAMS, names), out));
  ax_must(ax_npz_read(path, &npz));
  remove(path);
  for (int i = 0; i < PARAMS; i++)
    out[i] = *ax_npz_find(npz, names[i]);
  ax_must(ax_apply(NULL, step, out, found));
  ax_print("restored norm", &found[NORM]);
  ax_print("restored loss", &found[LOSS]);
}
