/* Rows under outer dimensions, of groups (plan/rows.c): what a kernel reads moves with these in its own ways, backwards, crosswise,
   from a place known late, or not at all, and what is outside of an array depends on them. And what is turned is added to what all
   rows have in common. */
#include "axle/ops.h"
#include "support/cmocka.h"
#include "support/random.h"
#include "support/run.h"

enum { OUTER = 5, SIDE = 130 }; /* a slice of the outer dimension is more than a cache near a core takes as one row */

static const int64_t outermost = 0, innermost = -1;

/* A reader of the same rows: the larger of each number and the one as far from the row's end. */
static ax_value folded(ax_value x) { return ax_max(x, ax_rev(x, AX_LIST(1, &innermost))); }

static AX_BODY(backwards) { out[0] = folded(ax_sub(in[0], ax_rev(in[0], AX_LIST(1, &outermost)))); }
static AX_BODY(crosswise) {
  const ax_value x = ax_reshape(in[0], AX_DIMS(OUTER, OUTER, SIDE / OUTER, SIDE));
  out[0] = folded(ax_sub(x, ax_transpose(x, AX_DIMS(1, 0, 2, 3))));
}
static AX_BODY(bordered) {
  const int64_t none[3] = {0, 0, 0}, one[3] = {1, 1, 1}, limit[3] = {OUTER - 2, SIDE - 2, SIDE - 2};
  const ax_value x = ax_pad(ax_slice(in[0], none, limit, NULL), ax_real(1), one, one, none);
  out[0] = folded(ax_sub(x, ax_rev(x, AX_LIST(1, &innermost))));
}
static AX_BODY(found_late) {
  const int64_t sizes[4] = {1, OUTER, SIDE, SIDE};
  const ax_value zero = ax_integer(0), start[4] = {in[1], zero, zero, zero}; /* clamped */
  const ax_value x = ax_reshape(ax_dynamic_slice(in[0], start, sizes), AX_DIMS(OUTER, SIDE, SIDE));
  out[0] = folded(ax_mul(x, x));
}
/* One number for each row that is written, or for each that is read, as a mask or a bias has. */
static AX_BODY(turned) {
  const ax_value y = ax_transpose(in[0], AX_DIMS(2, 1, 0));
  out[0] = ax_add(y, ax_broadcast_in_dim(in[1], AX_DIMS(100, 17, OUTER), AX_DIMS(0)));
}

static void run(ax_function body, uint32_t count, const ax_type *types) {
  ax_program *program = test_trace(body, NULL, types, count, 1);
  test_random_run(program, 3, false, 0);
  ax_program_release(program);
}

static const ax_dtype dtypes[] = {AX_F32, AX_F64, AX_BF16, AX_S32, AX_U8};

static void each(ax_function body) {
  for (size_t i = 0; i < AX_COUNT(dtypes); i++)
    run(body, 1, &(ax_type[]){ax_array_type(dtypes[i], AX_DIMS(OUTER, SIDE, SIDE))}[0]);
}

static void goes_backwards(void **state) { (void)state, each(backwards); }
static void goes_crosswise(void **state) { (void)state, each(crosswise); }
static void has_a_border(void **state) { (void)state, each(bordered); }
static void is_found_late(void **state) {
  (void)state;
  for (size_t i = 0; i < AX_COUNT(dtypes); i++)
    run(found_late, 2, (ax_type[]){ax_array_type(dtypes[i], AX_DIMS(2, OUTER, SIDE, SIDE)), ax_array_type(AX_S32, AX_DIMS())});
}
static void is_turned(void **state) {
  (void)state;
  for (size_t i = 0; i < AX_COUNT(dtypes); i++)
    run(turned, 2,
        (ax_type[]){ax_array_type(dtypes[i], AX_DIMS(OUTER, 17, 100)), ax_array_type(dtypes[i], AX_DIMS(100))});
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(goes_backwards), cmocka_unit_test(goes_crosswise),
                                     cmocka_unit_test(has_a_border), cmocka_unit_test(is_found_late), cmocka_unit_test(is_turned)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
