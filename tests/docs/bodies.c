/* What docs/bodies.md shows. */
#include <stdio.h>

#include <axle/axle.h>

/* The square root of a by Newton's steps, until they change little. */
static ax_value root(ax_value a) {
  ax_value x = a, change = ax_full_like(a, 1);
  AX_WHILE (ax_gt(ax_abs(change), 1e-6), &x, &change) {
    ax_value better = ax_mul(ax_add(x, ax_div(a, x)), 0.5);
    change = ax_sub(better, x);
    x = better;
  }
  return x;
}

/* xs -> the running mean, where an element is not negative; the root of the last */
static AX_BODY(means) {
  ax_value mean = ax_full(AX_F32, AX_DIMS(), 0), count = mean, all;
  AX_SCAN (x, in[0], &mean, &count) {
    AX_IF (ax_ge(x, 0), &mean, &count) {
      count = ax_add(count, 1);
      mean = ax_add(mean, ax_div(ax_sub(x, mean), count));
    }
    ax_collect(&all, mean);
  }
  out[0] = all;
  out[1] = root(mean);
}

static AX_BODY(power) {
  ax_value x = in[0];
  AX_LOOP (i, 0, 3, &x) x = ax_mul(x, in[0]);
  out[0] = x;
}

static AX_BODY(forgotten) {
  ax_value x = in[0], total = ax_full_like(x, 0);
  AX_LOOP (i, 0, 3, &x) {
    total = ax_add(total, x);
    x = ax_mul(x, in[0]);
  }
  out[0] = total;
}

int main(void) {
  ax_program *program, *none;
  char *text;
  const ax_type scalar = AX_TYPE(AX_F32);
  const float xs[] = {1, 3, -5, 8};
  ax_host_array given = ax_host_view(AX_F32, AX_DIMS(4), xs), out[2];
  ax_must(ax_apply(NULL, AX_FN(means, 1, 2), &given, out));
  ax_print("means", &out[0]);
  ax_print("root", &out[1]);
  ax_must(ax_trace(AX_FN(power, 1, 1), &scalar, &program));
  ax_must(ax_program_print(program, &text));
  fputs(text, stdout);
  if (ax_trace(AX_FN(forgotten, 1, 1), &scalar, &none) != AX_OK) puts(ax_message());
  ax_string_free(text);
  ax_program_release(program);
  for (int i = 0; i < 2; i++) ax_host_array_release(&out[i]);
}
