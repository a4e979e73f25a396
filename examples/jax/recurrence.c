#include <axle/axle.h>

enum { STEPS = 128, WIDTH = 6, DEVICES = 8 };
static const ax_mesh mesh = {.count = 1, .axis = {{.name = "time", .size = DEVICES}}};

static ax_value chirp(double freq, ax_type type) {
  ax_value k = ax_iota(AX_F64, AX_DIMS(ax_type_elems(&type)), 0);
  ax_value wave = ax_sin(ax_mul(ax_mul(freq, k), k));
  return ax_reshape(ax_convert_element_type(wave, type.dtype), AX_LIST(type.rank, type.dims));
}

/* a, b -> h[t] = a[t] h[t-1] + b[t], from 0; the product of a up to t */
static AX_BODY(scan_states) {
  ax_value h = ax_full(AX_F32, AX_DIMS(WIDTH), 0), product = ax_full_like(h, 1);
  AX_SCAN (a, in[0], &h, &product) {
    h = ax_add(ax_mul(a, h), ax_each(in[1]));
    product = ax_mul(a, product);
    ax_collect(&out[0], h);
    ax_collect(&out[1], product);
  }
}

/* Each device scans its own steps from 0, then adds what comes in from those before it. */
static AX_BODY(cut_states) {
  ax_value made[2], found[2];
  scan_states(in, made, NULL);
  ax_value ends = ax_all_gather(ax_index(made[0], "-1"), "time", 0, false),
           decays = ax_all_gather(ax_index(made[1], "-1"), "time", 0, false);
  ax_value before = ax_lt(ax_iota(AX_S32, AX_DIMS(DEVICES, 1), 0), ax_axis_index("time"));
  scan_states((ax_value[]){ax_where(before, decays, 1), ax_where(before, ends, 0)}, found, NULL);
  out[0] = ax_add(made[0], ax_mul(made[1], ax_index(found[0], "-1")));
}

/* a, b -> the mean square, h */
static AX_BODY(loss_fn) {
  ax_shard_map(&mesh, "time; time -> time", AX_FN(cut_states, 2, 1), in, &out[1]);
  out[0] = ax_reduce_mean(ax_square(out[1]), AX_ALL_DIMS, false);
}

/* -> what main prints */
static AX_BODY(everything) {
  ax_value args[] = {ax_add(0.9, ax_mul(0.1, chirp(0.37, AX_TYPE(AX_F32, STEPS, WIDTH)))),
                     chirp(0.53, AX_TYPE(AX_F32, STEPS, WIDTH))};
  ax_value found[4], whole[2]; /* loss, h, da, db */
  ax_value_and_grad(AX_FN(loss_fn, 2, 2), AX_FIRST(2), args, found);
  scan_states(args, whole, NULL);
  out[0] = ax_index(found[1], "-1");
  out[1] = ax_allclose(found[1], whole[0], 1e-4, 1e-5);
  for (int i = 1; i < 4; i++)
    out[1 + i] = ax_global_norm(AX_VALUES(found[i]));
  out[5] = ax_index(found[2], "64, :3");
}

int main(void) {
  const char *labels[] = {"h[-1]", "h matches", "h norm", "a grad norm", "b grad norm",
                          "a grad [64, :3]"};
  ax_host_array out[6];
  ax_must(ax_apply(NULL, AX_FN(everything, 0, 6), NULL, out));
  for (int i = 0; i < 6; i++)
    ax_print(labels[i], &out[i]);
}
