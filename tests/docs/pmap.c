/* What docs/sharding.md shows of pmap: rows less their mean, on a device each; the program that it is, its derivative, and what is refused. */
#include <stdio.h>

#include <axle/axle.h>

/* A row less the mean of all rows, and the sum of the squares of all that is left. */
static AX_BODY(center) {
  out[0] = ax_sub(in[0], ax_pmean(in[0], "row"));
  out[1] = ax_psum(ax_reduce_sum(ax_square(out[0]), AX_ALL_DIMS, false), "row");
}

static const ax_pmap_options rows = {
    .axis_name = "row",
    .out_axes = {AX_DIMS(1, AX_NOT_MAPPED)}, /* rows become columns; the sum is the same on all devices, and is given once */
};

static AX_BODY(squares) {
  ax_value made[2];
  ax_pmap(AX_FN(center, 1, 2), in, made, &rows);
  out[0] = made[1];
}

static AX_BODY(slope) {
  ax_grad(AX_FN(squares, 1, 1), AX_FIRST(1), in, out);
}

static AX_BODY(product) {
  out[0] = ax_mul(in[0], in[1]);
}

static AX_BODY(uneven) {
  ax_pmap(AX_FN(product, 2, 1), in, out, NULL);
}

int main(void) {
  const float data[] = {1, 2, 3, 3, 4, 5, 5, 9, 4, 7, 1, 0};
  const ax_host_array x = ax_host_view(AX_F32, AX_DIMS(4, 3), data);
  ax_host_array made[2], gradient;
  ax_must(ax_apply(NULL, AX_PMAPPED(&rows, AX_FN(center, 1, 2)), &x, made));
  ax_print("centered", &made[0]);
  ax_print("squares", &made[1]);
  ax_must(ax_apply(NULL, AX_FN(slope, 1, 1), &x, &gradient));
  ax_print("slope", &gradient);

  ax_program *program, *none;
  char *text;
  ax_must(ax_trace(AX_PMAPPED(&rows, AX_FN(center, 1, 2)), AX_TYPES(AX_TYPE(AX_F32, 4, 3)), &program));
  ax_must(ax_program_print(program, &text));
  printf("%d devices\n%s", (int)ax_program_devices(program), text);
  ax_string_free(text);
  ax_program_release(program);

  if (ax_trace(AX_FN(uneven, 2, 1), AX_TYPES(AX_TYPE(AX_F32, 4), AX_TYPE(AX_F32, 3, 4)), &none) != AX_OK) printf("%s\n", ax_message());
  for (int i = 0; i < 2; i++) ax_host_array_release(&made[i]);
  ax_host_array_release(&gradient);
  return 0;
}
