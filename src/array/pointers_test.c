/* Exchanges by pointer: which ppermutes move no bytes; that these give what others give, every way a program is run; and the arrays
   whose blocks then lie in an argument's memory. */
#include <stdlib.h>
#include <string.h>

#include "array/executable.h"
#include "axle/collectives.h"
#include "axle/ops.h"
#include "code/compiled.h"
#include "support/cmocka.h"
#include "support/run.h"

enum { members = 4, few = 8, many = 32 << 10 }; /* elements of a block */

static ax_value shift(ax_value x, int64_t by) {
  int64_t pairs[members][2];
  for (int64_t i = 0; i < members; i++) pairs[i][0] = i, pairs[i][1] = (i + by + members) % members;
  return ax_ppermute(x, "d", members, (const int64_t(*)[2])pairs);
}
static ax_value next(ax_value x) { return shift(x, 1); }

static ax_value plus(ax_value x, double number) { return ax_add(x, ax_full_like(x, number)); }
static ax_value times(ax_value x, double number) { return ax_mul(x, ax_full_like(x, number)); }

/* --- Bodies --- */

static void one_shift(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = next(in[0]);
}
static void both_ways(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_sub(next(in[0]), shift(in[0], -1));
}
static void two_results(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = next(in[0]);
  out[1] = shift(in[0], 2);
}
static void of_a_sum(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = next(plus(in[0], 1));
}
static void read_after(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value made = ax_tanh(in[0]);
  out[0] = ax_mul(next(made), ax_add(made, next(next(made))));
}
static void not_all(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  const int64_t pairs[2][2] = {{0, 1}, {2, 0}};
  out[0] = ax_add(ax_ppermute(in[0], "d", 2, pairs), in[0]);
}
static void of_a_ppermuted_sum(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value x = next(in[0]);
  out[0] = ax_add(x, ax_psum(x, "d"));
  out[1] = ax_all_to_all(next(x), "d", 0, 0, true);
}

/* A ring: a carry goes round and a sum of what was seen is made. */
static void ring_step(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = next(in[0]);
  out[1] = ax_add(times(in[1], 0.5), in[0]);
}
static void ring(const ax_value *in, ax_value *out, void *trips) {
  ax_value carries[2] = {in[0], times(in[0], 0)}, results[2];
  ax_scan(AX_FN(ring_step, 2, 2), 2, *(const int64_t *)trips, false, carries, results);
  out[0] = results[1];
}
static void ring_of_a_sum(const ax_value *in, ax_value *out, void *trips) {
  ax_value made = plus(in[0], 1);
  ring(&made, out, trips);
  out[0] = ax_add(out[0], made);
}
static void ring_to_the_end(const ax_value *in, ax_value *out, void *trips) {
  ax_value carries[2] = {in[0], times(in[0], 0)};
  ax_scan(AX_FN(ring_step, 2, 2), 2, *(const int64_t *)trips, false, carries, out);
}
static void ring_both_ways_step(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = next(in[0]);
  out[1] = shift(in[1], -1);
  out[2] = ax_add(times(in[2], 0.5), ax_sub(out[0], in[1]));
}
static void ring_both_ways(const ax_value *in, ax_value *out, void *trips) {
  ax_value carries[3] = {in[0], in[0], times(in[0], 0)}, results[3];
  ax_scan(AX_FN(ring_both_ways_step, 3, 3), 3, *(const int64_t *)trips, false, carries, results);
  out[0] = results[2];
}
static void only_moved(const ax_value *in, ax_value *out, void *trips) {
  ax_scan(AX_FN(one_shift, 1, 1), 1, *(const int64_t *)trips, false, in, out);
}
/* The ring begins anew in each step of a loop around it, with what the last one made. */
static void outer_step(const ax_value *in, ax_value *out, void *trips) {
  ax_value made = ax_tanh(in[0]);
  ring(&made, out, trips);
}
static void ring_in_a_loop(const ax_value *in, ax_value *out, void *trips) {
  ax_scan(AX_CLOSURE(outer_step, 1, 1, trips), 1, 3, false, in, out);
}
static void moved_in_a_loop_step(const ax_value *in, ax_value *out, void *trips) {
  only_moved(in, out, trips);
  out[0] = ax_add(times(out[0], 0.5), in[0]);
}
static void moved_in_a_loop(const ax_value *in, ax_value *out, void *trips) {
  ax_scan(AX_CLOSURE(moved_in_a_loop_step, 1, 1, trips), 1, 3, false, in, out);
}
/* Written again in each step, by what is seen of others. */
static void changed_step(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_tanh(ax_add(next(in[0]), in[0]));
}
static void changed(const ax_value *in, ax_value *out, void *trips) {
  ax_scan(AX_FN(changed_step, 1, 1), 1, *(const int64_t *)trips, false, in, out);
}
static void until(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_lt(in[1], ax_full(AX_S32, AX_DIMS(), 5));
}
static void while_step(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = next(in[0]);
  out[1] = plus(in[1], 1);
}
static void in_a_while(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value carries[2] = {in[0], ax_full(AX_S32, AX_DIMS(), 0)}, results[2];
  ax_while(AX_FN(until, 2, 1), AX_FN(while_step, 2, 2), carries, results);
  out[0] = ax_add(results[0], next(in[0]));
}

/* --- Bodies in which devices take different ways --- */

static void sine(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_sin(in[0]);
}
static void exp_of_square(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_exp(ax_mul(in[0], in[0]));
}
static void the_first(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = in[0];
}
static void the_second(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = in[1];
}
/* Device 0 takes the first way, all others the second. */
static ax_value either(ax_function first, ax_function second, uint32_t count, const ax_value *in) {
  ax_value out;
  ax_fn ways[] = {{first, count, 1, NULL}, {second, count, 1, NULL}};
  (ax_switch)(ax_axis_index("d"), 2, ways, count, in, 1, &out);
  return out;
}
static void of_what_branches_made(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_mul(next(either(sine, exp_of_square, 1, in)), in[0]);
}
static void moved_or_not(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value both[] = {in[0], next(in[0])};
  out[0] = either(the_first, the_second, 2, both);
}
static void sum_moved_or_not(const ax_value *in, ax_value *out, void *context) {
  ax_value made = plus(in[0], 0.25);
  moved_or_not(&made, out, context);
}
static void moved_or_not_in_a_loop(const ax_value *in, ax_value *out, void *trips) {
  ax_scan(AX_FN(moved_or_not, 1, 1), 1, *(const int64_t *)trips, false, in, out);
}
static void as_often_as_the_device(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_lt(in[1], ax_axis_index("d"));
}
static void sine_again(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_sin(in[0]);
  out[1] = plus(in[1], 1);
}
static void of_what_loops_made(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value none = ax_sub(ax_axis_index("d"), ax_axis_index("d")), carries[2] = {in[0], none}, results[2];
  ax_while(AX_FN(as_often_as_the_device, 2, 1), AX_FN(sine_again, 2, 2), carries, results);
  out[0] = ax_mul(next(results[0]), in[0]);
}

/* A carry that begins as what devices make in different ways, and is what a ppermute brings from then on. */
static void take_from_the_other(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = next(in[1]);
  out[1] = in[1];
  out[2] = ax_add(in[2], ax_sin(in[0]));
}
static void begun_apart(const ax_value *in, ax_value *out, void *trips) {
  ax_value made = ax_cos(in[0]), carries[3] = {either(sine, exp_of_square, 1, &made), ax_tanh(in[0]), in[0]}, results[3];
  ax_scan(AX_FN(take_from_the_other, 3, 3), 3, *(const int64_t *)trips, false, carries, results);
  out[0] = ax_add(results[2], results[0]);
}

/* --- What goes by pointer --- */

typedef struct kinds {
  uint32_t points, pushes, clears;
} kinds;

static ax_program *trace(ax_function body, void *context, int64_t elems, uint32_t results) {
  test_map map = {"d=4", {"d"}, {"d"}, .body = body, .context = context};
  if (results > 1) map.out_specs[1] = "d";
  const ax_type type = TEST_TYPE(AX_F32, members * elems);
  return test_trace_map(&map, &type);
}

static kinds count(ax_function body, int64_t trips, int64_t elems, uint32_t results) {
  kinds found = {0};
  ax_runtime *runtime;
  ax_executable *executable;
  TEST_OK(ax_runtime_create(NULL, &runtime));
  ax_program *program = trace(body, &trips, elems, results);
  TEST_OK(ax_compile(runtime, program, NULL, &executable));
  const ax_code *code = &test_compiled(executable)->codes[0];
  for (uint32_t i = 0; i < code->instr_count; i++) {
    found.points += code->instrs[i].kind == AX_INSTR_POINT;
    found.pushes += code->instrs[i].kind == AX_INSTR_PUSH;
    found.clears += code->instrs[i].kind == AX_INSTR_CLEAR;
  }
  ax_executable_release(executable);
  ax_program_release(program);
  ax_runtime_release(runtime);
  return found;
}

static void expect_pointers(ax_function body, int64_t trips, int64_t elems, uint32_t results) {
  const kinds found = count(body, trips, elems, results);
  assert_true(found.points > 0);
  assert_int_equal(found.pushes + found.clears, 0);
}
static void expect_copies(ax_function body, int64_t trips, int64_t elems) {
  assert_int_equal(count(body, trips, elems, 1).points, 0);
  assert_true(count(body, trips, elems, 1).pushes > 0);
}

static void arguments_are_read_where_they_are(void **state) {
  (void)state;
  expect_pointers(both_ways, 0, few, 1);
  expect_pointers(one_shift, 0, many, 1);
  expect_pointers(two_results, 0, many, 2);
}

static void carries_go_round(void **state) {
  (void)state;
  for (int64_t trips = 2; trips < 8; trips++) {
    expect_pointers(ring, trips, few, 1);
    expect_pointers(ring_of_a_sum, trips, few, 1);
    expect_pointers(ring_to_the_end, trips, few, 2);
    expect_pointers(ring_both_ways, trips, few, 1);
    expect_pointers(only_moved, trips, few, 1);
    expect_pointers(only_moved, trips, many, 1);
  }
  expect_pointers(in_a_while, 0, few, 1);
  expect_pointers(ring_in_a_loop, 4, few, 1);
}

static void long_values_are_read_where_they_were_made(void **state) {
  (void)state;
  expect_pointers(of_a_sum, 0, many, 1);
  expect_pointers(read_after, 0, many, 1);
}

static void the_others_are_copied(void **state) {
  (void)state;
  expect_copies(one_shift, 0, few); /* a small result, that a run may be given to write in */
  expect_copies(of_a_sum, 0, few);  /* waits cost more */
  expect_copies(not_all, 0, few);   /* some see zeros */
  expect_copies(changed, 4, few);   /* written as it is read */
  expect_copies(changed, 4, many);
  /* devices take different ways */
  expect_copies(of_what_branches_made, 0, many);
  expect_copies(of_what_loops_made, 0, many);
  expect_copies(moved_or_not_in_a_loop, 4, few);
}

/* --- What they give --- */

static void run(ax_function body, int64_t trips, int64_t elems, uint32_t results) {
  ax_program *program = trace(body, &trips, elems, results);
  test_random_run(program, (uint64_t)(elems + trips), false, 1e-5);
  ax_program_release(program);
}

static void as_copies_do(void **state) {
  (void)state;
  static const struct { ax_function body; uint32_t results; } bodies[] = {
      {one_shift, 1}, {both_ways, 1}, {two_results, 2},        {of_a_sum, 1},
      {read_after, 1}, {not_all, 1},  {of_a_ppermuted_sum, 2}, {in_a_while, 1},
      {of_what_branches_made, 1},     {of_what_loops_made, 1}, {moved_or_not, 1}, {sum_moved_or_not, 1}};
  for (size_t i = 0; i < AX_COUNT(bodies); i++) {
    run(bodies[i].body, 0, few, bodies[i].results);
    run(bodies[i].body, 0, many, bodies[i].results);
  }
}

static void in_loops(void **state) {
  (void)state;
  static const struct { ax_function body; uint32_t results; } bodies[] = {
      {ring, 1}, {ring_of_a_sum, 1}, {ring_to_the_end, 2}, {ring_both_ways, 1}, {only_moved, 1}, {changed, 1}, {ring_in_a_loop, 1},
      {moved_in_a_loop, 1}, {moved_or_not_in_a_loop, 1}, {begun_apart, 1}};
  for (size_t i = 0; i < AX_COUNT(bodies); i++)
    for (int64_t trips = 1; trips < 6; trips++) run(bodies[i].body, trips, few, bodies[i].results);
  for (size_t i = 0; i < AX_COUNT(bodies); i++) run(bodies[i].body, 3, many, bodies[i].results);
}

/* On two axes: groups along one; and one group over both, in another order. */
static void shift_rows(const ax_value *in, ax_value *out, void *axes) {
  const int64_t size = ax_axis_size(axes);
  int64_t pairs[6][2];
  for (int64_t i = 0; i < size; i++) pairs[i][0] = i, pairs[i][1] = (i * (size == 6 ? 5 : 1) + 2) % size;
  out[0] = ax_ppermute(in[0], axes, (uint32_t)size, (const int64_t(*)[2])pairs);
  out[0] = ax_ppermute(out[0], axes, (uint32_t)size, (const int64_t(*)[2])pairs);
}
static void in_groups(void **state) {
  (void)state;
  static const char *const axes[] = {"a", "b", "a,b", "b,a"};
  for (size_t i = 0; i < AX_COUNT(axes); i++)
    for (int large = 0; large < 2; large++) {
      const ax_type type = TEST_TYPE(AX_F32, 6 * (large ? many : few));
      const test_map map = {"a=2,b=3", {"a+b"}, {"a+b"}, .body = shift_rows, .context = (void *)(uintptr_t)axes[i]};
      ax_program *program = test_trace_map(&map, &type);
      test_random_run(program, i + 1, false, 0);
      ax_program_release(program);
    }
}

/* --- Arrays in an argument's memory --- */

static ax_executable *compile(ax_runtime *runtime, ax_function body, bool donate) {
  int64_t trips = 3;
  ax_program *program = trace(body, &trips, many, 1);
  const ax_compile_options some = {.donate = AX_ALL_ARGS}, none = {0};
  ax_executable *executable;
  TEST_OK(ax_compile(runtime, program, donate ? &some : &none, &executable));
  ax_program_release(program);
  return executable;
}

static void add_one(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = plus(in[0], 1);
}

static float *counted(void) {
  float *values = malloc(members * many * sizeof values[0]);
  for (int i = 0; i < members * many; i++) values[i] = (float)i;
  return values;
}

static ax_array *put_counted(ax_executable *executable) {
  float *values = counted();
  ax_array *array;
  TEST_OK((ax_executable_put)(executable, 0, AX_F32, values, members * many * sizeof values[0], &array));
  free(values);
  return array;
}

static ax_array *run_on(ax_executable *executable, ax_array *in) {
  ax_array *out;
  TEST_OK(ax_run(executable, AX_LIST(1, &in), AX_LIST(1, &out)));
  return out;
}

/* Block b is that of the counted array `by` places before, with `more` added. */
static void expect(ax_array *array, int64_t by, float more) {
  for (int64_t b = 0; b < members; b++) {
    const float *block = (const float *)test_parts(array)->part[b];
    const int64_t from = (b - by + members) % members;
    for (int64_t i = 0; i < many; i += 77) assert_float_equal(block[i], (float)(from * many + i) + more, 0);
  }
}

typedef struct fixture {
  ax_runtime *runtime;
  ax_executable *shifts, *adds; /* `adds` overwrites its argument */
} fixture;

static fixture begin(void) {
  fixture f;
  TEST_OK(ax_runtime_create(&(ax_runtime_options){.workers = 2}, &f.runtime));
  f.shifts = compile(f.runtime, one_shift, false);
  f.adds = compile(f.runtime, add_one, true);
  return f;
}
static void end(fixture *f) {
  ax_executable_release(f->shifts);
  ax_executable_release(f->adds);
  ax_runtime_release(f->runtime);
}

static void a_result_lies_in_its_argument(void **state) {
  (void)state;
  fixture f = begin();
  ax_array *x = put_counted(f.shifts), *y = run_on(f.shifts, x), *z = run_on(f.shifts, y);
  for (int b = 0; b < members; b++) {
    assert_ptr_equal(test_parts(y)->part[b], test_parts(x)->part[(b + members - 1) % members]);
    assert_ptr_equal(test_parts(z)->part[b], test_parts(x)->part[(b + members - 2) % members]);
  }
  assert_ptr_equal(test_parts(z)->source, test_parts(x)); /* no chain */
  ax_array_release(x);
  ax_array_release(y);
  expect(z, 2, 0);
  ax_array_release(z);
  end(&f);
}

/* A run writes into a copy as long as another array can see the memory, and in place afterwards. */
static void overwritten_by_a_later_run(void **state) {
  (void)state;
  fixture f = begin();
  ax_array *x = put_counted(f.shifts), *y = run_on(f.shifts, x), *more = run_on(f.adds, y);
  expect(more, 1, 1);
  expect(x, 0, 0);
  ax_array_release(y);
  y = run_on(f.shifts, x);
  ax_array_release(more);
  more = run_on(f.adds, x);
  expect(more, 0, 1);
  expect(y, 1, 0);
  ax_array_release(x);
  unsigned char *before = test_parts(y)->part[2];
  ax_array *last = run_on(f.adds, y);
  expect(last, 1, 1);
  assert_ptr_equal(test_parts(last)->part[2], before);
  ax_array_release(more);
  ax_array_release(y);
  ax_array_release(last);
  end(&f);
}

/* Two devices' blocks of one result never lie in one place: a later run would write there twice. */
static void blocks_lie_apart(void **state) {
  (void)state;
  static const ax_function bodies[] = {moved_or_not, sum_moved_or_not, one_shift, both_ways};
  fixture f = begin();
  for (size_t i = 0; i < AX_COUNT(bodies); i++) {
    ax_executable *picks = compile(f.runtime, bodies[i], false);
    ax_array *x = put_counted(picks), *y = run_on(picks, x);
    for (int a = 0; a < members; a++)
      for (int b = 0; b < a; b++) assert_ptr_not_equal(test_parts(y)->part[a], test_parts(y)->part[b]);
    ax_array_release(x);
    ax_array_release(y);
    ax_executable_release(picks);
  }
  end(&f);
}

static void released(void *context) { ++*(int *)context; }

/* What the caller lends is read, and is neither written nor held. */
static void lent_memory_is_not_kept(void **state) {
  (void)state;
  fixture f = begin();
  float *values = counted();
  int releases = 0;
  ax_part parts[members];
  for (int b = 0; b < members; b++)
    parts[b] = (ax_part){.data = values + b * many, .bytes = many * sizeof values[0], .release = released, .context = &releases};
  const ax_type type = TEST_TYPE(AX_F32, members * many);
  ax_array *x, *y;
  TEST_OK(ax_array_from_parts(f.runtime, ax_executable_mesh(f.shifts), "d", &type, AX_LIST(members, parts), &x));
  y = run_on(f.shifts, x);
  ax_array_release(x);
  assert_int_equal(releases, members);
  memset(values, 0, members * many * sizeof values[0]);
  expect(y, 1, 0);
  ax_array_release(y);
  free(values);
  end(&f);
}

/* The blocks of a donated carry change places in their memory. */
static void a_donated_carry(void **state) {
  (void)state;
  fixture f = begin();
  ax_executable *moves = compile(f.runtime, only_moved, true);
  ax_array *x = put_counted(moves);
  unsigned char *first = test_parts(x)->part[0];
  for (int64_t calls = 1; calls < 4; calls++) {
    ax_array *y = run_on(moves, x);
    ax_array_release(x);
    x = y;
    expect(x, 3 * calls % members, 0);
    assert_ptr_equal(test_parts(x)->part[3 * calls % members], first);
  }
  ax_array_release(x);
  ax_executable_release(moves);
  end(&f);
}

/* Parts in others' memory keep it; parts of their own do not. */
static void parts_in_parts(void **state) {
  (void)state;
  fixture f = begin();
  ax_array *x = put_counted(f.shifts);
  ax_parts *in, *own;
  TEST_OK(ax_parts_in(x->layout, test_parts(x), &in));
  for (int b = 0; b < members; b++) in->part[b] = test_parts(x)->part[members - 1 - b];
  assert_ptr_equal(in->source, test_parts(x));
  assert_null(in->memory);
  assert_true(ax_parts_may_hold(test_parts(x)) && ax_parts_may_hold(in));
  ax_array_release(x);
  TEST_OK(ax_parts_own(in, f.shifts->wanted[0], &own));
  for (int b = 0; b < members; b++) {
    assert_ptr_not_equal(own->part[b], in->part[b]);
    assert_memory_equal(own->part[b], in->part[b], many * sizeof(float));
  }
  assert_null(own->source);
  ax_parts_release(in);
  ax_parts_release(own);
  end(&f);
}

/* Memory that is an argument's counts there alone. */
static void counted_once(void **state) {
  (void)state;
  fixture f = begin();
  ax_memory memory;
  TEST_OK(ax_executable_memory(f.shifts, &memory));
  assert_int_equal(memory.all.arguments, members * many * sizeof(float));
  assert_int_equal(memory.all.results + memory.all.kept + memory.all.scratch, 0);
  end(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(arguments_are_read_where_they_are),
      cmocka_unit_test(carries_go_round),
      cmocka_unit_test(long_values_are_read_where_they_were_made),
      cmocka_unit_test(the_others_are_copied),
      cmocka_unit_test(as_copies_do),
      cmocka_unit_test(in_loops),
      cmocka_unit_test(in_groups),
      cmocka_unit_test(a_result_lies_in_its_argument),
      cmocka_unit_test(overwritten_by_a_later_run), cmocka_unit_test(blocks_lie_apart),
      cmocka_unit_test(lent_memory_is_not_kept),
      cmocka_unit_test(a_donated_carry),
      cmocka_unit_test(parts_in_parts),
      cmocka_unit_test(counted_once),
  };
  return cmocka_run_group_tests_name("pointers", tests, NULL, NULL);
}
