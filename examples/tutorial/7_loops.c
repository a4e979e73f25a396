/* Step 7 of docs/tutorial.md: loops and branches inside a program, with their derivatives. */
#include <axle/axle.h>

/* x -> the sum of the first eight terms of 1 + x + x^2 + .. */
static AX_BODY(series) {
  ax_value x = in[0], total = ax_full_like(x, 0), power = ax_full_like(x, 1);
  AX_LOOP (i, 0, 8, &total, &power) {
    total = ax_add(total, power);
    power = ax_mul(power, x);
  }
  out[0] = total;
}

static AX_BODY(slope) {
  ax_grad(AX_FN(series, 1, 1), AX_FIRST(1), in, out);
}

/* deposits f32[4] -> the last balance f32[], all balances f32[4] */
static AX_BODY(balances) {
  ax_value balance = ax_full(AX_F32, AX_DIMS(), 0), all;
  AX_SCAN (deposit, in[0], &balance) {
    balance = ax_add(balance, deposit);
    ax_collect(&all, balance);
  }
  out[0] = balance;
  out[1] = all;
}

/* x -> x, halved until it is not above 1 */
static AX_BODY(shrink) {
  ax_value x = in[0];
  AX_WHILE (ax_gt(x, 1), &x) x = ax_div(x, 2);
  out[0] = x;
}

/* x -> |x| */
static AX_BODY(absolute) {
  ax_value x = in[0];
  AX_IF (ax_lt(x, 0), &x) x = ax_neg(x);
  out[0] = x;
}

/* index, total, power -> total, power: one term, as a function; x is captured from the function around. */
static AX_BODY(term) {
  const ax_value *x = context;
  ax_value total = in[1], power = in[2];
  out[0] = ax_add(total, power);
  out[1] = ax_mul(power, *x);
}

static AX_BODY(series_by_function) {
  ax_value x = in[0], zero = ax_full_like(x, 0), one = ax_full_like(x, 1), carries[2];
  ax_fori_loop(0, 8, AX_CLOSURE(term, 3, 2, &x), AX_VALUES(zero, one), carries);
  out[0] = carries[0];
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
  show("series", AX_FN(series, 1, 1), AX_HOST(half));
  show("by function", AX_FN(series_by_function, 1, 1), AX_HOST(half));
  show("its slope", AX_FN(slope, 1, 1), AX_HOST(half));
  show("balance", AX_FN(balances, 1, 2), AX_HOST(deposits));
  show("halved", AX_FN(shrink, 1, 1), AX_HOST(ten));
  show("absolute", AX_FN(absolute, 1, 1), AX_HOST(minus));
  return 0;
}
