/* Comparisons whose outcome bounds say: which become constants or the bool itself, and that all give what was written, for every dtype, comparison and
   number near the bounds. */
#include "ops/known_comparison.h"

#include "axle/ops.h"
#include "axle/transform.h"
#include "support/cmocka.h"
#include "support/host.h"
#include "support/random.h"
#include "support/run.h"

typedef ax_value comparison(ax_value a, ax_value b);
#define COMPARISON(name) \
  static ax_value name(ax_value a, ax_value b) { return ax_##name(a, b); }
COMPARISON(eq)
COMPARISON(ne)
COMPARISON(lt)
COMPARISON(le)
COMPARISON(gt)
COMPARISON(ge)

static comparison *const comparisons[] = {eq, ne, lt, le, gt, ge};
static const char *const names[] = {"eq", "ne", "lt", "le", "gt", "ge"};

typedef struct question {
  comparison *compare;
  ax_dtype as; /* what x is converted to first; AX_NO_DTYPE: nothing */
  int64_t number;
  bool turned; /* the number stands first */
} question;

static AX_BODY(ask) {
  const question *q = context;
  ax_value x = in[0];
  if (q->as != AX_NO_DTYPE) x = ax_convert_element_type(x, q->as);
  const ax_type type = ax_typeof(x);
  if (ax_failed()) return;
  const ax_value number = ax_full_i64(type.dtype, AX_LIST(type.rank, type.dims), q->number);
  out[0] = q->turned ? q->compare(number, x) : q->compare(x, number);
}

static int comparisons_of(const ax_program *program) {
  int count = 0;
  for (size_t i = 0; i < AX_COUNT(names); i++) count += (int)test_count_prim(program, names[i]);
  return count;
}

/* The program's comparisons that are left. What it gives is compared with reference evaluation, which takes it as it is. */
static int left(ax_program *program, test_random *random) {
  ax_program *simple;
  ax_tensor *in[2];
  for (uint32_t k = 0; k < program->in_count; k++) in[k] = test_edge_tensor(random, program->types[k]);
  TEST_OK(ax_program_simplify(program, &simple));
  const int count = comparisons_of(simple);
  TEST_EVERY_WAY(program, in, 0);
  test_release(in, program->in_count);
  ax_program_release(simple);
  return count;
}

static void of_every_dtype(void **state) {
  (void)state;
  static const ax_dtype from[] = {AX_BOOL, AX_U8, AX_S8, AX_U16, AX_S32, AX_U32, AX_S64, AX_U64, AX_F32};
  static const ax_dtype as[] = {AX_NO_DTYPE, AX_S32, AX_S64, AX_U8};
  static const int64_t numbers[] = {-1, 0, 1, 2, 127, 128, 255, 256};
  test_random random = {17};
  for (size_t d = 0; d < AX_COUNT(from); d++)
    for (size_t a = 0; a < AX_COUNT(as); a++)
      for (int round = 0; round < 24; round++) {
        const ax_dtype dtype = as[a] != AX_NO_DTYPE ? as[a] : from[d];
        question q = {comparisons[test_random_below(&random, 6)], as[a], numbers[test_random_below(&random, 8)], test_random_below(&random, 2) == 1};
        if (dtype == AX_BOOL) q.number &= 1;
        else if (dtype == AX_S8) q.number = q.number > 127 ? 127 : q.number;
        else if (dtype == AX_U8 || dtype == AX_U16 || dtype == AX_U32 || dtype == AX_U64) q.number &= 255;
        const ax_type type = TEST_TYPE(from[d], 5, 3);
        ax_program *program = test_trace(ask, &q, &type, 1, 1);
        (void)left(program, &random);
        ax_program_release(program);
      }
}

static int left_in(const char *text) {
  test_random random = {2};
  ax_program *program = test_parsed(text);
  const int count = left(program, &random);
  ax_program_release(program);
  return count;
}

#define AGAINST(number, what) \
  "{ lambda x:" what "[4]. let n:s32[4] = convert_element_type[dtype=s32] x c:s32[4] = broadcast_in_dim[shape=(4,) " \
  "broadcast_dimensions=()] " number ":s32[] "

static void which(void **state) {
  (void)state;
  assert_int_equal(left_in(AGAINST("0", "u8") "y:bool[4] = lt n c in (y,) }"), 0);
  assert_int_equal(left_in(AGAINST("1", "u8") "y:bool[4] = lt n c in (y,) }"), 1);
  assert_int_equal(left_in(AGAINST("255", "u8") "y:bool[4] = gt n c in (y,) }"), 0);
  assert_int_equal(left_in(AGAINST("0", "s8") "y:bool[4] = lt n c in (y,) }"), 1);
  assert_int_equal(left_in(AGAINST("0", "bool") "y:bool[4] = gt n c in (y,) }"), 0);
  assert_int_equal(left_in(AGAINST("0", "bool") "y:bool[4] = eq c n in (y,) }"), 0);
  assert_int_equal(left_in(AGAINST("0", "f32") "y:bool[4] = lt n c in (y,) }"), 1);
  /* An index of iota, and of a remainder that keeps the sign of what is divided. */
  assert_int_equal(left_in("{ lambda . let n:s32[4] = iota[dtype=s32 shape=(4,) dimension=0] c:s32[4] = broadcast_in_dim[shape=(4,) "
                           "broadcast_dimensions=()] 0:s32[] y:bool[4] = lt n c in (y,) }"), 0);
  assert_int_equal(left_in("{ lambda x:s32[4]. let d:s32[4] = broadcast_in_dim[shape=(4,) broadcast_dimensions=()] 3:s32[] n:s32[4] = rem x d "
                           "c:s32[4] = broadcast_in_dim[shape=(4,) broadcast_dimensions=()] 0:s32[] y:bool[4] = lt n c in (y,) }"), 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(of_every_dtype), cmocka_unit_test(which)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
