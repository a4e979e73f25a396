#include "support/nest.h"

#include "axle/ops.h"

typedef struct inside { /* of so many levels */
  const test_nest *nest;
  const ax_value *w;
  uint32_t depth;
} inside;

static void as_it_is(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = in[0];
}

static void below_ten(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_lt(in[1], ax_full_like(in[1], 10));
}

static void enter(const ax_value *in, ax_value *out, void *context);

static void enter_with_own(const ax_value *in, ax_value *out, void *context) {
  inside here = *(const inside *)context;
  here.w = &in[1];
  enter(in, out, &here);
}

static void enter_and_count(const ax_value *in, ax_value *out, void *context) {
  enter(in, out, context);
  out[1] = ax_add(in[1], ax_full_like(in[1], 4));
}

/* What the level at hand does to x. */
static void enter(const ax_value *in, ax_value *out, void *context) {
  const inside *here = context;
  inside next = {here->nest, here->w, here->depth + 1};
  const test_level level = here->depth < TEST_MOST_LEVELS ? here->nest->levels[here->depth] : (test_level){0};
  switch (level.kind) {
    case TEST_NO_LEVEL: here->nest->step(in, out, (void *)(uintptr_t)here->w); break;
    case TEST_SCAN: ax_scan(AX_CLOSURE(enter, 1, 1, &next), 1, level.count, false, in, out); break;
    case TEST_EACH: {
      const ax_type w = ax_typeof(*here->w);
      const ax_value from[] = {in[0],
                               ax_broadcast_in_dim(*here->w, AX_DIMS(level.count, w.dims[0], w.dims[1]), AX_DIMS(1, 2))};
      ax_scan(AX_CLOSURE(enter_with_own, 2, 1, &next), 1, level.count, false, from, out);
      break;
    }
    case TEST_WHILE: {
      const ax_value from[] = {in[0], ax_full(AX_S32, AX_DIMS(), level.count)};
      ax_value made[2];
      ax_while(AX_FN(below_ten, 2, 1), AX_CLOSURE(enter_and_count, 2, 2, &next), from, made);
      out[0] = made[0];
      break;
    }
    case TEST_IF: {
      const ax_value most = ax_reduce_max(in[0], AX_ALL_DIMS, false);
      ax_if(ax_gt(most, ax_full_like(most, 0.25)), AX_CLOSURE(enter, 1, 1, &next), AX_FN(as_it_is, 1, 1), in, out);
      break;
    }
  }
}

void test_nested(const ax_value *in, ax_value *out, void *nest) {
  inside outermost = {nest, &in[1], 0};
  enter(in, out, &outermost);
}
