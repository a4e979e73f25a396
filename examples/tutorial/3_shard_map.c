/* Step 3 of docs/tutorial.md: the same loss on four devices, each with its rows. */
#include <stdio.h>

#include <axle/axle.h>

static ax_mesh mesh;

static ax_value mean_square(const ax_value *in) {
  ax_value error = ax_sub(ax_matmul(in[1], in[0]), in[2]);
  return ax_reduce_mean(ax_square(error), AX_ALL_DIMS, false);
}

/* The body on each device: w f32[3], x f32[2,3], y f32[2] -> f32[] */
static AX_BODY(part) {
  out[0] = ax_pmean(mean_square(in), "data");
}

static AX_BODY(loss) {
  ax_shard_map(&mesh, "; data; data -> ", AX_FN(part, 3, 1), in, out);
}

/* The same without the mean over the devices. */
static AX_BODY(forgetful_part) {
  out[0] = mean_square(in);
}

static AX_BODY(forgetful_loss) {
  ax_shard_map(&mesh, "; data; data -> ", AX_FN(forgetful_part, 3, 1), in, out);
}

int main(void) {
  ax_type types[] = {AX_TYPE(AX_F32, 3), AX_TYPE(AX_F32, 8, 3), AX_TYPE(AX_F32, 8)};
  ax_program *program, *none;
  char *text;
  ax_must(ax_mesh_parse("data=4", &mesh));
  ax_must(ax_trace(AX_FN(loss, 3, 1), types, &program));
  ax_must(ax_program_print(program, &text));
  printf("%s", text);
  ax_string_free(text);
  ax_program_release(program);

  if (ax_trace(AX_FN(forgetful_loss, 3, 1), types, &none) != AX_OK) printf("%s\n", ax_message());
  return 0;
}
