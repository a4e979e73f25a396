/* Step 7 of docs/tutorial.md: loops and branches inside a program, with their derivatives. */
#include <axle/axle.h>

/* index, total, power -> total, power: one term of 1 + x + x^2 + ..; x is captured from the function around. */
static AX_BODY(term) {
  const ax_value *x = context;
  ax_value total = in[1], power = in[2];
  out[0] = ax_add(total, power);
  out[1] = ax_mul(power, *x);
}

/* x -> the sum of the first eight terms */
static AX_BODY(series) {
  ax_value x = in[0], zero = ax_full_like(x, 0), one = ax_full_like(x, 1), carries[2];
  ax_fori_loop(0, 8, AX_CLOSURE(term, 3, 2, &x), (ax_value[]){zero, one}, carries);
  out[0] = carries[0];
}

static AX_BODY(slope) {
  ax_grad(AX_FN(series, 1, 1), AX_FIRST(1), in, out);
}

/* balance, deposit -> balance, balance: the carry, and what is kept of this step */
static AX_BODY(deposit) {
  out[0] = out[1] = ax_add(in[0], in[1]);
}

/* deposits f32[4] -> the last balance f32[], all balances f32[4] */
static AX_BODY(balances) {
  ax_scan(AX_FN(deposit, 2, 2), 1, -1, false, (ax_value[]){ax_full(AX_F32, AX_DIMS(), 0), in[0]}, out);
}

static AX_BODY(above) {
  const ax_value *limit = context;
  out[0] = ax_gt(in[0], *limit);
}

static AX_BODY(halve) { out[0] = ax_div(in[0], 2); }

/* x -> x, halved until it is not above 1 */
static AX_BODY(shrink) {
  ax_value limit = ax_full(AX_F32, AX_DIMS(), 1);
  ax_while(AX_CLOSURE(above, 1, 1, &limit), AX_FN(halve, 1, 1), in, out);
}

static AX_BODY(negated) { out[0] = ax_neg(in[0]); }
static AX_BODY(as_it_is) { out[0] = in[0]; }

/* x -> |x| */
static AX_BODY(absolute) {
  ax_if(ax_lt(in[0], 0), AX_FN(negated, 1, 1), AX_FN(as_it_is, 1, 1), in, out);
}

static void show(const char *label, ax_fn function, ax_host_array x) {
  ax_host_array out[2];
  ax_must(ax_apply(NULL, function, &x, out));
  for (uint32_t i = 0; i < function.out_count; i++) {
    ax_print(label, &out[i]);
    ax_host_array_release(&out[i]);
  }
}

int main(void) {
  float half = 0.5f, ten = 10, minus = -3, deposits[] = {5, 10, -3, 8};
  show("series", AX_FN(series, 1, 1), ax_host_view(AX_F32, AX_DIMS(), &half));
  show("its slope", AX_FN(slope, 1, 1), ax_host_view(AX_F32, AX_DIMS(), &half));
  show("balance", AX_FN(balances, 1, 2), ax_host_view(AX_F32, AX_DIMS(4), deposits));
  show("halved", AX_FN(shrink, 1, 1), ax_host_view(AX_F32, AX_DIMS(), &ten));
  show("absolute", AX_FN(absolute, 1, 1), ax_host_view(AX_F32, AX_DIMS(), &minus));
  return 0;
}
