/* Loops as fused loops against reference evaluation, bit by bit: random ones, and those that are near the ends of what fused loops
   can be. */
#include <stdlib.h>
#include <string.h>

#include "axle/collectives.h"
#include "axle/ops.h"
#include "code/compiled.h"
#include "support/cmocka.h"
#include "support/random.h"
#include "support/run.h"

/* --- Random loops: carries of all kinds, changed by what gives the same bits everywhere, with loops and branches in each other
   --- */

enum carry { COUNT, REAL, FLAG, BRAIN, HALF, LONG, ONE, BYTES, PAIR, TABLE, CARRIES };
enum { rows = 2, columns = 9 };

static void carry_types(ax_type *types) {
  const ax_type all[CARRIES] = {TEST_SCALAR(AX_S32),  TEST_SCALAR(AX_F32), TEST_SCALAR(AX_BOOL),
                                TEST_SCALAR(AX_BF16), TEST_SCALAR(AX_F16), TEST_SCALAR(AX_S64),
                                TEST_TYPE(AX_F32, 1), TEST_TYPE(AX_S8, 3),     TEST_SCALAR(AX_C64),
                                TEST_TYPE(AX_F32, rows, columns)};
  memcpy(types, all, sizeof all);
}

static ax_value cast(ax_value x, ax_dtype dtype) { return ax_convert_element_type(x, dtype); }
static ax_value scalar(ax_value x) { return ax_reshape(x, AX_DIMS()); }
static ax_value halved(ax_value x, double plus) { return ax_add(ax_mul(x, ax_real(0.5)), ax_real(plus)); }
static ax_value looked_up(const ax_value *c) {
  return scalar(ax_dynamic_slice(c[TABLE], AX_VALUES(ax_and(c[COUNT], ax_integer(1)), c[COUNT]), AX_DIMS(1, 1)));
}
static ax_value overwritten(const ax_value *c) {
  return ax_dynamic_update_slice(c[TABLE], ax_reshape(c[REAL], AX_DIMS(1, 1)),
                                 AX_VALUES(c[LONG], ax_convert_element_type(c[COUNT], AX_S64)));
}

static void change(test_random *random, ax_value *c) {
  ax_value before = c[REAL];
  switch (test_random_below(random, 17)) {
    case 0: c[COUNT] = ax_add(ax_mul(c[COUNT], ax_integer(3)), ax_integer(1)); break;
    case 1: c[REAL] = halved(c[REAL], 1); break;
    case 2: c[FLAG] = ax_gt(c[REAL], cast(c[BRAIN], AX_F32)); break;
    case 3: c[BRAIN] = halved(c[BRAIN], 0.7); break;
    case 4: c[HALF] = ax_sub(cast(c[REAL], AX_F16), halved(c[HALF], 0.3)); break;
    case 5: c[LONG] = ax_add(ax_mul(c[LONG], ax_integer(5)), cast(c[COUNT], AX_S64)); break;
    case 6: /* these change places */
      c[REAL] = scalar(c[ONE]);
      c[ONE] = ax_reshape(before, AX_DIMS(1));
      break;
    case 7: c[BYTES] = ax_add(c[BYTES], cast(c[COUNT], AX_S8)); break;
    case 8: c[COUNT] = cast(ax_reduce_max(c[BYTES], AX_ALL_DIMS, false), AX_S32); break;
    case 9: c[TABLE] = ax_rev(halved(c[TABLE], 1), AX_DIMS(1)); break;
    case 10: c[REAL] = ax_where(c[FLAG], c[REAL], ax_reduce_max(c[TABLE], AX_ALL_DIMS, false)); break;
    case 11: c[ONE] = ax_add(c[ONE], looked_up(c)); break;
    case 12: c[TABLE] = overwritten(c); break;
    case 13: c[PAIR] = ax_complex(halved(ax_imag_part(c[PAIR]), 1), c[REAL]); break;
    case 14: c[PAIR] = ax_conj(c[PAIR]); break;
    case 15: c[REAL] = ax_add(ax_real_part(c[PAIR]), ax_imag_part(c[PAIR])); break;
    default: c[FLAG] = ax_eq(ax_and(c[COUNT], ax_integer(1)), ax_integer(0));
  }
}

typedef struct body { /* what it does follows from its seed */
  uint64_t seed;
  uint32_t depth;
  int64_t trips;
} body;

static void change_all(const ax_value *in, ax_value *out, void *context);

static void counts_too(const ax_value *in, ax_value *out, void *context) {
  change_all(in, out, context);
  out[COUNT] = ax_add(in[COUNT], ax_integer(1));
}
static void below(const ax_value *in, ax_value *out, void *context) {
  out[0] = ax_lt(in[COUNT], ax_integer(((const body *)context)->trips));
}

/* A row of a table more, and a number for each. */
static void with_row(const ax_value *in, ax_value *out, void *context) {
  change_all(in, out, context);
  out[REAL] = ax_add(out[REAL], ax_reduce_max(in[CARRIES], AX_ALL_DIMS, false));
  out[CARRIES] = out[REAL];
}

static void change_inside(test_random *random, uint32_t depth, ax_value *c) {
  static const int64_t trips[] = {0, 1, 2, 3, 7};
  const body parts[] = {{test_random_bits(random), depth, trips[test_random_below(random, 5)]},
                        {test_random_bits(random), depth, 0},
                        {test_random_bits(random), 0, 0}};
  ax_value more[CARRIES + 1];
  memcpy(more, c, CARRIES * sizeof c[0]);
  switch (test_random_below(random, 5)) {
    case 0: ax_scan(AX_CLOSURE(change_all, CARRIES, CARRIES, &parts[0]), CARRIES, parts[0].trips, false, c, c); break;
    case 1:
      c[COUNT] = ax_and(c[COUNT], ax_integer(3));
      ax_while(AX_CLOSURE(below, CARRIES, 1, &parts[0]), AX_CLOSURE(counts_too, CARRIES, CARRIES, &parts[0]), c, c);
      break;
    case 2:
      ax_if(c[FLAG], AX_CLOSURE(change_all, CARRIES, CARRIES, &parts[0]), AX_CLOSURE(change_all, CARRIES, CARRIES, &parts[1]), c,
            c);
      break;
    case 3: {
      const ax_fn cases[] = {AX_CLOSURE(change_all, CARRIES, CARRIES, &parts[0]),
                             AX_CLOSURE(change_all, CARRIES, CARRIES, &parts[1]),
                             AX_CLOSURE(change_all, CARRIES, CARRIES, &parts[2])};
      ax_switch(c[COUNT], AX_LIST(3, cases), c, c);
      break;
    }
    default:
      more[CARRIES] = c[TABLE];
      ax_scan(AX_CLOSURE(with_row, CARRIES + 1, CARRIES + 1, &parts[0]), CARRIES, rows, test_random_below(random, 2) == 0, more,
              more);
      memcpy(c, more, CARRIES * sizeof c[0]);
      c[ONE] = ax_reduce_max(more[CARRIES], AX_DIMS(0), true);
  }
}

static void change_all(const ax_value *in, ax_value *out, void *context) {
  const body *b = context;
  test_random random = {b->seed};
  ax_value c[CARRIES];
  memcpy(c, in, sizeof c);
  for (int k = 0; k < 3; k++) change(&random, c);
  for (int64_t k = test_random_below(&random, 3); b->depth > 0 && k >= 0; k--) change_inside(&random, b->depth - 1, c);
  for (int k = 0; k < 2; k++) change(&random, c);
  memcpy(out, c, sizeof c);
}

static void in_a_scan(const ax_value *in, ax_value *out, void *context) {
  ax_scan(AX_CLOSURE(change_all, CARRIES, CARRIES, context), CARRIES, ((const body *)context)->trips, false, in, out);
}

static ax_program *trace_random(uint64_t seed) {
  ax_type types[CARRIES];
  const body b = {seed, 1 + (uint32_t)(seed % 3), 1 + (int64_t)(seed % 4)};
  carry_types(types);
  return test_trace(in_a_scan, (void *)(uintptr_t)&b, types, CARRIES, CARRIES);
}

static void one_random(uint64_t seed, bool show) {
  ax_program *program = trace_random(seed);
  test_random_run(program, seed, show, 0);
  ax_program_release(program);
}

static void random_loops(void **state) {
  (void)state;
  test_each_seed(60, one_random);
}

/* --- Vectors: carries of one length, changed element by element, and sums of all --- */

enum vectors { WIDE, NARROW, TRUTH, WHOLE, DOUBLE, SHORT, MOST, VECTORS }; /* the last of them a scalar */

static void vector_types(int64_t elems, ax_type *types) {
  const ax_dtype dtypes[] = {AX_F32, AX_BF16, AX_BOOL, AX_S32, AX_F64, AX_S8};
  for (size_t k = 0; k < AX_COUNT(dtypes); k++) types[k] = TEST_TYPE(dtypes[k], elems);
  types[MOST] = TEST_SCALAR(AX_F32);
}

static void change_vectors(const ax_value *in, ax_value *out, void *context) {
  test_random random = {*(const uint64_t *)context};
  memcpy(out, in, VECTORS * sizeof out[0]);
  for (int k = 0; k < 4; k++) {
    ax_value wide = out[WIDE];
    switch (test_random_below(&random, 10)) {
      case 0: out[WIDE] = halved(wide, 1); break;
      case 1: out[NARROW] = halved(out[NARROW], 0.5); break;
      case 2: out[TRUTH] = ax_gt(wide, cast(out[NARROW], AX_F32)); break;
      case 3: out[WHOLE] = ax_add(ax_mul(out[WHOLE], ax_integer(3)), cast(out[SHORT], AX_S32)); break;
      case 4: out[DOUBLE] = ax_where(out[TRUTH], out[DOUBLE], halved(cast(wide, AX_F64), 2)); break;
      case 5: out[SHORT] = ax_add(out[SHORT], ax_integer(7)); break;
      case 6: out[MOST] = ax_reduce_max(wide, AX_ALL_DIMS, false); break;
      case 7: out[WIDE] = ax_add(ax_mul(wide, ax_real(0.25)), out[MOST]); break;
      case 8: /* these change places */
        out[WIDE] = cast(out[NARROW], AX_F32);
        out[NARROW] = cast(wide, AX_BF16);
        break;
      default: out[WIDE] = ax_broadcast_to(out[MOST], AX_DIMS(ax_typeof(wide).dims[0]));
    }
  }
}

/* In a branch of a while in a scan. */
static void vectors_stay(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  memcpy(out, in, VECTORS * sizeof out[0]);
}
static void perhaps(const ax_value *in, ax_value *out, void *context) {
  ax_if(ax_gt(in[MOST], ax_real(0)), AX_CLOSURE(change_vectors, VECTORS, VECTORS, context), AX_FN(vectors_stay, VECTORS, VECTORS),
        in, out);
  const uint64_t seed = *(const uint64_t *)context + 1;
  change_vectors(out, out, (void *)(uintptr_t)&seed);
}
static AX_BODY(below_three) { out[0] = ax_lt(in[VECTORS], ax_integer(3)); }
static void perhaps_again(const ax_value *in, ax_value *out, void *context) {
  perhaps(in, out, context);
  out[VECTORS] = ax_add(in[VECTORS], ax_integer(1));
}
static void thrice(const ax_value *in, ax_value *out, void *context) {
  ax_value now[VECTORS + 1];
  memcpy(now, in, VECTORS * sizeof now[0]);
  now[VECTORS] = ax_full_i64(AX_S32, AX_DIMS(), 0);
  ax_while(AX_FN(below_three, VECTORS + 1, 1), AX_CLOSURE(perhaps_again, VECTORS + 1, VECTORS + 1, context), now, now);
  memcpy(out, now, VECTORS * sizeof out[0]);
}
static void vectors_in_a_scan(const ax_value *in, ax_value *out, void *context) {
  ax_scan(AX_CLOSURE(thrice, VECTORS, VECTORS, context), VECTORS, 4, false, in, out);
}

static ax_program *trace_vectors(uint64_t seed) {
  static const int64_t lengths[] = {1, 2, 3, 7, 15, 16, 17, 31, 32, 33, 48, 63, 64, 65, 100, 127, 128, 129, 255, 256, 300};
  ax_type types[VECTORS];
  vector_types(lengths[seed % AX_COUNT(lengths)], types);
  return test_trace(vectors_in_a_scan, &seed, types, VECTORS, VECTORS);
}

static void one_of_vectors(uint64_t seed, bool show) {
  ax_program *program = trace_vectors(seed);
  test_random_run(program, seed, show, 0);
  ax_program_release(program);
}

static void vectors(void **state) {
  (void)state;
  test_each_seed(63, one_of_vectors);
}

/* --- Branches that an element of a vector chooses --- */

static AX_BODY(negated) { out[0] = ax_neg(in[0]); }
static AX_BODY(squared) { out[0] = ax_mul(in[0], in[0]); }
static AX_BODY(raised) { out[0] = ax_add(in[0], ax_real(1.5)); }
static AX_BODY(change_by_element) { /* context: the number of branches */
  const ax_fn branches[] = {AX_FN(negated, 1, 1), AX_FN(squared, 1, 1), AX_FN(raised, 1, 1)};
  ax_switch(in[1], AX_LIST(*(const uint32_t *)context, branches), AX_LIST(1, in), AX_LIST(1, out));
}
static AX_BODY(change_by_row) { /* the row is made in the loop around, in vectors */
  const ax_value row = ax_neg(in[1]);
  ax_scan(AX_CLOSURE(change_by_element, 2, 1, context), 1, -1, false, AX_VALUES(in[0], row), AX_LIST(1, out));
}
static AX_BODY(change_by_rows) { ax_scan(AX_CLOSURE(change_by_row, 2, 1, context), 1, -1, false, AX_LIST(2, in), AX_LIST(1, out)); }

static void elements_choose(void **state) {
  (void)state;
  for (int64_t elems = 1; elems <= 33; elems += elems < 3 ? 1 : 15)
    for (uint32_t branches = 1; branches <= 3; branches++) {
      const ax_type types[] = {ax_array_type(AX_F64, AX_DIMS(3)), ax_array_type(AX_S32, AX_DIMS(3, elems))};
      ax_program *program = test_trace(change_by_rows, &branches, types, 2, 1);
      test_random random = {(uint64_t)elems};
      ax_tensor *in[] = {test_random_tensor(&random, types[0], -1, 1), test_random_tensor(&random, types[1], -3, 2)};
      TEST_EVERY_WAY(program, in, 0);
      test_release(in, 2);
      ax_program_release(program);
    }
}

/* --- Columns that are put together in each step: rows behind the last vector, and what lies behind the rows --- */

enum { states = 3 };
static AX_BODY(next_rows) {
  const int64_t rows_of = *(const int64_t *)context;
  for (uint32_t k = 0; k < states; k++) {
    const int64_t columns_of = ax_typeof(in[k]).dims[1];
    ax_value made[8];
    for (int64_t c = 0; c < columns_of; c++) {
      const ax_value one = ax_slice(in[k], AX_DIMS(0, c), AX_DIMS(rows_of, c + 1), NULL),
                     next = ax_slice(in[k], AX_DIMS(0, (c + 1) % columns_of), AX_DIMS(rows_of, (c + 1) % columns_of + 1), NULL);
      made[c] = ax_sub(ax_mul(one, ax_real(0.5)), next);
    }
    out[k] = ax_concatenate(AX_LIST((uint32_t)columns_of, made), 1);
  }
}
static AX_BODY(rows_in_steps) {
  ax_scan(AX_CLOSURE(next_rows, states, states, context), states, 3, false, AX_LIST(states, in), AX_LIST(states, out));
}

static void columns_put_together(void **state) {
  (void)state;
  for (int64_t count = 17; count < 40; count += 3)
    for (int64_t wide = 2; wide <= 8; wide++) {
      ax_type types[states];
      for (uint32_t k = 0; k < states; k++) types[k] = ax_array_type(AX_F32, AX_DIMS(count, wide));
      ax_program *program = test_trace(rows_in_steps, &count, types, states, states);
      test_random random = {(uint64_t)(count * wide)};
      ax_tensor *in[states];
      for (uint32_t k = 0; k < states; k++) in[k] = test_random_tensor(&random, types[k], -1, 1);
      TEST_EVERY_WAY(program, in, 0);
      test_release(in, states);
      ax_program_release(program);
    }
}

/* --- Places that a step finds for the next one: inside of the table, and not --- */

static ax_value element_at(ax_value table, ax_value place) {
  return ax_reshape(ax_dynamic_slice(table, AX_VALUES(place), AX_DIMS(1)), AX_DIMS());
}
static AX_BODY(next_place) { /* place, table -> the same, what was found on the way */
  const int64_t count = ax_typeof(in[1]).dims[0];
  const ax_value wrapped = ax_where(ax_lt(in[0], ax_integer(0)), ax_add(in[0], ax_integer(count)), in[0]),
                 found = element_at(in[1], wrapped);
  out[0] = element_at(in[1], ax_add(found, ax_integer(1)));
  out[1] = in[1];
  out[2] = ax_sub(found, wrapped);
}
static AX_BODY(from_place_to_place) { ax_scan(AX_FN(next_place, 2, 3), 2, 40, false, AX_LIST(2, in), AX_LIST(3, out)); }

static void places_handed_on(void **state) {
  static const ax_dtype dtypes[] = {AX_S32, AX_S64};
  (void)state;
  for (int64_t count = 1; count < 50; count += 7)
    for (int64_t beyond = 0; beyond <= 60; beyond += 20)
      for (uint32_t d = 0; d < AX_COUNT(dtypes); d++) {
        const ax_type types[] = {ax_array_type(dtypes[d], AX_DIMS()), ax_array_type(dtypes[d], AX_DIMS(count))};
        ax_program *program = test_trace(from_place_to_place, NULL, types, 2, 3);
        test_random random = {(uint64_t)(count + beyond)};
        ax_tensor *in[] = {test_random_tensor(&random, types[0], 0, 9),
                           test_random_tensor(&random, types[1], (double)-beyond, (double)(count + beyond))};
        TEST_EVERY_WAY(program, in, 0);
        test_release(in, 2);
        ax_program_release(program);
      }
}

/* --- Shorter registers --- */

static void at_width(ax_runtime *runtime, ax_program *program, uint64_t seed) {
  ax_tensor *in[CARRIES], *out[CARRIES], *wanted[CARRIES];
  test_random random = {seed};
  const uint32_t count = ax_program_in_count(program);
  for (uint32_t k = 0; k < count; k++) in[k] = test_random_tensor(&random, *ax_program_in_type(program, k), -2, 2);
  test_execute(runtime, program, in, out);
  test_execute_reference(runtime, program, in, wanted);
  for (uint32_t k = 0; k < count; k++) assert_true(test_same_tensors(out[k], wanted[k]));
  test_release(in, count);
  test_release(out, count);
  test_release(wanted, count);
  ax_program_release(program);
}

/* Code for other registers is the same under any number of threads, so TSan, which is slow, sees a third of the programs. */
#ifdef __SANITIZE_THREAD__
enum { vector_seeds = 14, loop_seeds = 5 };
#else
enum { vector_seeds = 42, loop_seeds = 15 };
#endif

static void shorter_registers(void **state) {
  (void)state;
  for (uint32_t bytes = 16; bytes <= 64; bytes *= 2) {
    ax_runtime *runtime;
    TEST_OK(ax_runtime_create(NULL, &runtime));
    test_use_vectors(runtime, bytes);
    for (uint64_t seed = 1; seed <= vector_seeds; seed++) at_width(runtime, trace_vectors(seed), seed);
    for (uint64_t seed = 1; seed <= loop_seeds; seed++) at_width(runtime, trace_random(seed), seed);
    ax_runtime_release(runtime);
  }
}

/* --- What becomes a fused loop --- */

/* How many loops of a compiled program are fused loops; *loops: of how many. */
static uint32_t fused_loops(ax_program *program, uint32_t *loops) {
  ax_runtime *runtime;
  ax_executable *e;
  uint32_t count = 0;
  *loops = 0;
  TEST_OK(ax_runtime_create(NULL, &runtime));
  TEST_OK(ax_compile(runtime, program, NULL, &e));
  const ax_code *code = &test_compiled(e)->codes[0];
  for (uint32_t i = 0; i < code->instr_count; i++) {
    const ax_instr *instr = &code->instrs[i];
    if (instr->kind != AX_INSTR_LOOP) continue;
    ++*loops;
    count += instr->fused_loop != NULL;
  }
  ax_executable_release(e);
  ax_runtime_release(runtime);
  return count;
}

static void assert_fused_loops(ax_program *program, uint32_t wanted, uint32_t of) {
  uint32_t loops, count = fused_loops(program, &loops);
  assert_int_equal(count, wanted);
  assert_int_equal(loops, of);
}

static AX_BODY(add_one) { out[0] = ax_add(in[0], ax_real(1)); }

/* So many scans in each other. */
static void nested(const ax_value *in, ax_value *out, void *context) {
  const uint32_t depth = *(const uint32_t *)context, less = depth - 1;
  if (depth == 0) add_one(in, out, NULL);
  else ax_scan(AX_CLOSURE(nested, 1, 1, &less), 1, 2, false, in, out);
}

static void ten_deep(void **state) {
  (void)state;
  const uint32_t depth = 10;
  const ax_type types[] = {TEST_SCALAR(AX_F32), TEST_TYPE(AX_F32, 5)};
  for (int k = 0; k < 2; k++) {
    ax_program *program = test_trace(nested, (void *)(uintptr_t)&depth, &types[k], 1, 1);
    assert_fused_loops(program, 1, depth); /* the outermost holds the others */
    test_random_run(program, 1, false, 0);
    ax_program_release(program);
  }
}

/* Too deep, or too long, for one function: the inner ones are. */
static void forty_deep(void **state) {
  (void)state;
  const uint32_t depth = 40;
  const ax_type type = TEST_SCALAR(AX_F32);
  ax_program *program = test_trace(nested, (void *)(uintptr_t)&depth, &type, 1, 1);
  uint32_t loops;
  assert_int_equal(fused_loops(program, &loops), 1);
  assert_int_equal(loops, depth);
  ax_program_release(program);
}

static AX_BODY(many_scans) {
  out[0] = in[0];
  for (int k = 0; k < 300; k++) ax_scan(AX_FN(add_one, 1, 1), 1, 2, false, out, out);
}
static AX_BODY(many_in_one) { ax_scan(AX_FN(many_scans, 1, 1), 1, 2, false, in, out); }

static void no_function_without_end(void **state) {
  (void)state;
  const ax_type type = TEST_SCALAR(AX_F32);
  ax_program *program = test_trace(many_in_one, NULL, &type, 1, 1);
  assert_fused_loops(program, 300, 301);
  test_random_run(program, 1, false, 0);
  ax_program_release(program);
}

/* Swaps need two values at once. */
static AX_BODY(turn) {
  out[0] = in[1];
  out[1] = in[2];
  out[2] = in[0];
}
static void turns(const ax_value *in, ax_value *out, void *context) {
  ax_scan(AX_FN(turn, 3, 3), 3, *(const int64_t *)context, false, in, out);
}

static void carries_that_turn(void **state) {
  (void)state;
  for (int64_t trips = 0; trips < 9; trips++)
    for (int k = 0; k < 2; k++) {
      const ax_type one = k == 0 ? TEST_SCALAR(AX_F64) : TEST_TYPE(AX_BF16, 7), types[] = {one, one, one};
      ax_program *program = test_trace(turns, &trips, types, 3, 3);
      test_random_run(program, (uint64_t)trips, false, 0);
      ax_program_release(program);
    }
}

/* --- Devices --- */

/* Each goes round as often as its number says, in a branch that only some take. */
static AX_BODY(not_yet) { out[0] = ax_lt(in[0], in[1]); }
static AX_BODY(count_on) {
  out[0] = ax_add(in[0], ax_integer(1));
  out[1] = in[1];
  out[2] = ax_add(ax_mul(in[2], ax_real(0.5)), ax_convert_element_type(in[0], AX_F32));
}
static AX_BODY(loops) {
  ax_value now[] = {ax_mul(in[0], ax_integer(0)), in[0], in[1]};
  ax_while(AX_FN(not_yet, 3, 1), AX_FN(count_on, 3, 3), now, now);
  out[0] = now[2];
}
static AX_BODY(stays) { out[0] = in[1]; }
static AX_BODY(each_its_own) {
  const ax_value mine[] = {ax_axis_index("d"), in[0]};
  ax_if(ax_gt(mine[0], ax_integer(1)), AX_FN(loops, 2, 1), AX_FN(stays, 2, 1), mine, out);
}
/* What is the same everywhere is made by one alone, and its loops likewise. */
static AX_BODY(one_for_all) {
  ax_value same[1], sum[1] = {ax_psum(in[0], "d")};
  ax_scan(AX_FN(add_one, 1, 1), 1, 5, false, sum, same);
  out[0] = ax_add(in[0], same[0]);
}

static void devices(void **state) {
  (void)state;
  const ax_function bodies[] = {each_its_own, one_for_all};
  for (size_t k = 0; k < AX_COUNT(bodies); k++)
    for (int wide = 0; wide < 2; wide++) {
      const test_map m = {"d=5", {"d"}, {"d"}, .body = bodies[k]};
      const ax_type type = TEST_TYPE(AX_F32, 5 * (wide ? 30 : 1));
      ax_program *program = test_trace_map(&m, &type);
      test_random_run(program, 3, false, 1e-6);
      ax_program_release(program);
    }
}

/* Rows of arrays that no cache near a core holds are read ahead of, beyond the last one too: by a start that moves, and one a
   trip. */
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
enum { FAR_ROWS = 40, FAR_COLUMNS = 800 }; /* which are near: all ways of doing many rows take minutes */
#else
enum { FAR_ROWS = 4000, FAR_COLUMNS = 800 };
#endif
static AX_BODY(add_far_rows) {
  const ax_value at[] = {in[0], ax_full_like(in[0], 0)};
  const int64_t sizes[] = {1, FAR_COLUMNS};
  ax_value row = ax_reshape(ax_dynamic_slice(in[2], at, sizes), AX_DIMS(FAR_COLUMNS));
  out[0] = ax_add(in[0], ax_integer(1));
  out[1] = ax_add(in[1], ax_sub(row, in[3]));
  out[2] = in[2];
}
static AX_BODY(far_rows_in_a_scan) {
  const int64_t columns = FAR_COLUMNS;
  ax_value from[] = {ax_full_i64(AX_S32, AX_DIMS(), 0), ax_full(AX_F32, AX_LIST(1, &columns), 0), in[0], in[1]}, to[3];
  ax_scan(AX_FN(add_far_rows, 4, 3), 3, FAR_ROWS, false, from, to);
  out[0] = to[1];
}

static void far_rows(void **state) {
  (void)state;
  const ax_type types[] = {TEST_TYPE(AX_F32, FAR_ROWS, FAR_COLUMNS), TEST_TYPE(AX_F32, FAR_ROWS, FAR_COLUMNS)};
  ax_program *program = test_trace(far_rows_in_a_scan, NULL, types, 2, 1);
  test_random_run(program, 5, false, 0);
  ax_program_release(program);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(random_loops),
      cmocka_unit_test(vectors),
      cmocka_unit_test(elements_choose),
      cmocka_unit_test(columns_put_together),
      cmocka_unit_test(places_handed_on),
      cmocka_unit_test(shorter_registers),
      cmocka_unit_test(ten_deep),
      cmocka_unit_test(forty_deep),
      cmocka_unit_test(no_function_without_end),
      cmocka_unit_test(carries_that_turn),
      cmocka_unit_test(devices),
      cmocka_unit_test(far_rows),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
