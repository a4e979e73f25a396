/* For which inputs kernels are proved, and what is said where it is not for all. */
#include <string.h>

#include "axle/axle.h"
#include "axle/check.h"
#include "support/cmocka.h"
#include "support/tensor.h"

/* Inputs: a table, and 8 rows of 4. The result has the rows' memory. */
enum { TABLE, ROWS, OUT, BUFFER, SEMAPHORE, DMA, BARRIER, OWN, REFS };
enum { entries = 4, rows = 8, columns = 4, buffers = 3 };

static ax_value number(int64_t n) { return ax_full_i64(AX_S32, AX_DIMS(), n); }
static ax_value me(void) { return ax_axis_index("w"); }
static ax_value entry(const ax_value *in, ax_value k) { return ax_ref_load(ax_ref_at(in[TABLE], k)); }
static ax_value clamp(ax_value x, int64_t most) { return ax_max(ax_min(x, number(most)), number(0)); }
static ax_value row(double value) { return ax_full(AX_F32, AX_DIMS(columns), value); }
static void put(const ax_value *in, ax_value at) { ax_ref_store(ax_ref_at(in[OUT], at), row(1)); }

/* --- Addresses --- */

static AX_BODY(next_to_base) { put(in, ax_add(entry(in, number(0)), me())); }
static AX_BODY(next_to_clamped) { put(in, ax_add(clamp(entry(in, number(0)), rows - 2), me())); }
static AX_BODY(clamped_apart) { put(in, clamp(ax_add(entry(in, number(0)), me()), rows - 1)); } /* both are the last row, for 7 */
static AX_BODY(scattered) { put(in, clamp(entry(in, me()), rows - 1)); }
static AX_BODY(halves) { /* the first half, and the second */
  put(in, ax_add(ax_rem(clamp(entry(in, me()), 100), number(rows / 2)), ax_mul(me(), number(rows / 2))));
}
/* One of two rows, of each core its own; the same entry decides for both, or each core's. */
static void put_either(const ax_value *in, ax_value decides, int64_t apart) {
  put(in, ax_select_n(ax_gt(decides, number(1)), me(), ax_add(me(), number(apart))));
}
static AX_BODY(either_of_two) { put_either(in, entry(in, number(0)), 1); } /* 0 or 1, and 1 or 2: never the same */
static AX_BODY(each_either) { put_either(in, ax_sub(entry(in, me()), number(2)), 1); } /* 1 and 1, for 4 and 3 */
/* Even rows, and odd ones. */
static AX_BODY(by_parity) { put(in, ax_add(ax_mul(clamp(entry(in, me()), 3), number(2)), me())); }
static AX_BODY(by_parity_anywhere) { put(in, ax_add(ax_mul(entry(in, me()), number(2)), me())); } /* also where it wraps */
static AX_BODY(both_even) { put(in, ax_mul(ax_add(clamp(entry(in, me()), 2), me()), number(2))); }
static AX_BODY(two_by_parity) { /* two rows each: core 0's second may be core 1's first */
  ax_value at = ax_add(ax_mul(clamp(entry(in, me()), 2), number(2)), me());
  ax_ref_store(ax_ref_slice(in[OUT], AX_VALUES(at, number(0)), AX_DIMS(2, columns)), ax_full(AX_F32, AX_DIMS(2, columns), 2.0));
}
static AX_BODY(own_column) {
  ax_value at = clamp(entry(in, me()), rows - 1);
  ax_ref_store(ax_ref_slice(in[OUT], AX_VALUES(at, me()), AX_DIMS(1, 1)), ax_full(AX_F32, AX_DIMS(1, 1), 2.0));
}
/* Each core copies the row that the table has for it into a buffer of its own. */
static AX_BODY(gathered) {
  ax_value buffer = ax_ref_at(in[BUFFER], me()), done = ax_ref_at(in[DMA], me());
  ax_copy_start(ax_ref_at(in[ROWS], clamp(entry(in, me()), rows - 1)), buffer, &(ax_copy_options){.received = &done});
  ax_copy_wait(done, buffer);
  ax_barrier_arrive(in[BARRIER]);
  ax_barrier_wait(in[BARRIER]);
  ax_ref_store(ax_ref_at(in[OUT], me()), ax_ref_load(buffer));
}
/* The same, and nothing says that all have read. */
static AX_BODY(gathered_early) {
  ax_value buffer = ax_ref_at(in[BUFFER], me()), done = ax_ref_at(in[DMA], me());
  ax_copy_start(ax_ref_at(in[ROWS], clamp(entry(in, me()), rows - 1)), buffer, &(ax_copy_options){.received = &done});
  ax_copy_wait(done, buffer);
  ax_ref_store(ax_ref_at(in[OUT], me()), ax_ref_load(buffer));
}

/* --- Control --- */

static AX_BODY(nothing) {}
static AX_BODY(put_own) { put(context, me()); }
static AX_BODY(put_next) { put(context, ax_add(me(), number(2))); }
static AX_BODY(put_first) { put(context, number(0)); }
static AX_BODY(put_second) { put(context, number(1)); }
static AX_BODY(put_last) { put(context, number(rows - 1)); }
static ax_value is_large(const ax_value *in) { return ax_gt(entry(in, me()), number(1)); }
static AX_BODY(guarded) { ax_if(is_large(in), AX_CLOSURE(put_own, 0, 0, in), AX_CLOSURE(put_next, 0, 0, in), NULL, NULL); }
static AX_BODY(guarded_first) { ax_if(is_large(in), AX_CLOSURE(put_first, 0, 0, in), AX_FN(nothing, 0, 0), NULL, NULL); }
static AX_BODY(signal_both) {
  const ax_value *refs = context;
  ax_semaphore_signal(refs[SEMAPHORE], ax_integer(1), NULL);
  ax_semaphore_wait(refs[SEMAPHORE], ax_integer(1));
}
static AX_BODY(signal_round) {
  (void)in;
  signal_both(NULL, out, context);
}
static AX_BODY(meets) { ax_if(is_large(in), AX_CLOSURE(signal_both, 0, 0, in), AX_FN(nothing, 0, 0), NULL, NULL); }
/* Guards that keep an index in bounds, or apart from another core's. Entries may be below 0. */
static AX_BODY(put_entry) { put(context, entry(context, number(0))); }
static AX_BODY(put_own_entry) { put(context, entry(context, me())); }
static ax_value is_row(ax_value x) { return ax_and(ax_ge(x, number(0)), ax_lt(x, number(rows))); }
static AX_BODY(in_guard) { ax_if(is_row(entry(in, number(0))), AX_CLOSURE(put_entry, 0, 0, in), AX_FN(nothing, 0, 0), NULL, NULL); }
static AX_BODY(in_choice) {
  ax_value x = entry(in, number(0));
  put(in, ax_select_n(is_row(x), number(0), x));
}
static AX_BODY(in_half_guard) { /* below 0 it is out of bounds */
  ax_if(ax_lt(entry(in, number(0)), number(rows)), AX_CLOSURE(put_entry, 0, 0, in), AX_FN(nothing, 0, 0), NULL, NULL);
}
static AX_BODY(rows_by_side) { /* each core its half of the rows, if its entry is there */
  ax_value x = entry(in, me()), low = ax_lt(x, number(4)), first = ax_eq(me(), number(0));
  ax_value there = ax_or(ax_and(first, low), ax_and(ax_not(first), ax_not(low)));
  ax_if(there, AX_CLOSURE(put_own_entry, 0, 0, in), AX_FN(nothing, 0, 0), NULL, NULL);
}

/* Each core has four rows, and its entry says which of these: where a guard says that there are so many. */
static ax_value is_below(ax_value x, int32_t count) { return ax_and(ax_le(number(0), x), ax_lt(x, number(count))); }
static void put_own_row(const ax_value *refs, ax_value row) { put(refs, ax_add(ax_mul(me(), number(4)), row)); }
static AX_BODY(put_third) { put_own_row(context, ax_add(entry(context, me()), number(1))); }
static AX_BODY(put_even) { put_own_row(context, ax_mul(entry(context, me()), number(2))); }
static AX_BODY(put_sum) { put_own_row(context, ax_add(entry(context, me()), ax_mul(entry(context, number(2)), number(-1)))); }
static AX_BODY(own_third) {
  ax_if(is_below(entry(in, me()), 3), AX_CLOSURE(put_third, 0, 0, in), AX_FN(nothing, 0, 0), NULL, NULL);
}
static AX_BODY(own_fifth) {
  ax_if(is_below(entry(in, me()), 5), AX_CLOSURE(put_third, 0, 0, in), AX_FN(nothing, 0, 0), NULL, NULL);
}
static AX_BODY(own_even) { ax_if(is_below(entry(in, me()), 2), AX_CLOSURE(put_even, 0, 0, in), AX_FN(nothing, 0, 0), NULL, NULL); }
static AX_BODY(own_half) { /* no lower bound: it may wrap */
  ax_if(ax_lt(entry(in, me()), number(2)), AX_CLOSURE(put_even, 0, 0, in), AX_FN(nothing, 0, 0), NULL, NULL);
}
static AX_BODY(own_sum) {
  ax_value x = entry(in, me()), y = entry(in, number(2));
  ax_value there = ax_and(ax_and(ax_le(number(2), x), ax_lt(x, number(4))), is_below(y, 3));
  ax_if(there, AX_CLOSURE(put_sum, 0, 0, in), AX_FN(nothing, 0, 0), NULL, NULL);
}

/* A branch that copies, and waits for it. */
static AX_BODY(fetch) {
  const ax_value *refs = context;
  ax_value buffer = ax_ref_at(refs[BUFFER], me()), done = ax_ref_at(refs[DMA], me());
  ax_copy_start(ax_ref_at(refs[ROWS], clamp(entry(refs, me()), rows - 1)), buffer, &(ax_copy_options){.received = &done});
  ax_copy_wait(done, buffer);
}
static AX_BODY(fetch_scoped) {
  const ax_value *refs = context;
  ax_copy(ax_ref_at(refs[ROWS], clamp(entry(refs, me()), rows - 1)), ax_ref_at(refs[BUFFER], me()));
}
static AX_BODY(start) {
  const ax_value *refs = context;
  ax_value buffer = ax_ref_at(refs[BUFFER], me()), done = ax_ref_at(refs[DMA], me());
  ax_copy_start(ax_ref_at(refs[ROWS], number(1)), buffer, &(ax_copy_options){.received = &done});
}
static AX_BODY(await_it) {
  const ax_value *refs = context;
  ax_copy_wait(ax_ref_at(refs[DMA], me()), ax_ref_at(refs[BUFFER], me()));
}
static void end_rows(const ax_value *in) { /* the row is stored when all have read */
  ax_barrier_arrive(in[BARRIER]);
  ax_barrier_wait(in[BARRIER]);
  ax_ref_store(ax_ref_at(in[OUT], me()), ax_ref_load(ax_ref_at(in[BUFFER], me())));
}
static void begin_rows(const ax_value *in) { ax_ref_store(ax_ref_at(in[BUFFER], me()), row(0)); }
static AX_BODY(fetched) {
  begin_rows(in);
  ax_if(is_large(in), AX_CLOSURE(fetch, 0, 0, in), AX_FN(nothing, 0, 0), NULL, NULL);
  end_rows(in);
}
static AX_BODY(fetched_scoped) {
  begin_rows(in);
  ax_if(is_large(in), AX_CLOSURE(fetch_scoped, 0, 0, in), AX_FN(nothing, 0, 0), NULL, NULL);
  end_rows(in);
}
static AX_BODY(fetched_twice) { /* the same semaphore serves a copy that always comes */
  fetch(in, NULL, (void *)(uintptr_t)in);
  ax_if(is_large(in), AX_CLOSURE(fetch, 0, 0, in), AX_FN(nothing, 0, 0), NULL, NULL);
  end_rows(in);
}
static AX_BODY(fetched_apart) { /* started in one branch, waited for in another */
  begin_rows(in);
  ax_if(is_large(in), AX_CLOSURE(start, 0, 0, in), AX_FN(nothing, 0, 0), NULL, NULL);
  ax_if(is_large(in), AX_CLOSURE(await_it, 0, 0, in), AX_FN(nothing, 0, 0), NULL, NULL);
  end_rows(in);
}
static AX_BODY(fetched_early) { /* nothing says that the other core has read */
  begin_rows(in);
  ax_if(is_large(in), AX_CLOSURE(fetch, 0, 0, in), AX_FN(nothing, 0, 0), NULL, NULL);
  ax_ref_store(ax_ref_at(in[OUT], me()), ax_ref_load(ax_ref_at(in[BUFFER], me())));
}

static AX_BODY(round_of) { put(context, me()); }
static AX_BODY(parity_round) { put(context, ax_add(ax_mul(in[0], number(2)), me())); }
static AX_BODY(long_by_parity) { ax_fori_loop(ax_integer(0), clamp(entry(in, me()), 4), AX_CLOSURE(parity_round, 1, 0, in), NULL, NULL); }
static AX_BODY(long_as) { ax_fori_loop(ax_integer(0), entry(in, me()), AX_CLOSURE(round_of, 1, 0, in), NULL, NULL); }
static AX_BODY(meets_in_rounds) { ax_fori_loop(ax_integer(0), entry(in, me()), AX_CLOSURE(signal_round, 1, 0, in), NULL, NULL); }
/* A page in each round, as many as an entry says. */
static AX_BODY(page_round) {
  const ax_value *refs = context;
  ax_value buffer = ax_ref_at(refs[BUFFER], me());
  ax_copy(ax_ref_at(refs[ROWS], clamp(ax_ref_load(ax_ref_at(refs[TABLE], in[0])), rows - 1)), buffer);
  ax_ref_store(ax_ref_at(refs[BUFFER], me()), ax_add(ax_ref_load(buffer), row(1)));
}
static AX_BODY(pages) {
  begin_rows(in);
  ax_fori_loop(ax_integer(0), clamp(entry(in, me()), entries), AX_CLOSURE(page_round, 1, 0, in), NULL, NULL);
  end_rows(in);
}
static AX_BODY(all_pages) { /* of a table that may be too short */
  begin_rows(in);
  ax_fori_loop(ax_integer(0), entry(in, me()), AX_CLOSURE(page_round, 1, 0, in), NULL, NULL);
  end_rows(in);
}
/* As long as a number grows: nothing says that it ends. */
static AX_BODY(is_less) { out[0] = ax_lt(in[0], ax_integer(9)); }
static AX_BODY(doubled) { out[0] = ax_add(in[0], in[0]); }
static AX_BODY(grows) {
  ax_value last;
  ax_while(AX_FN(is_less, 1, 1), AX_FN(doubled, 1, 1), AX_VALUES(ax_max(entry(in, me()), number(1))), &last);
  put(in, me());
}
/* Each round stores to a row that the round before has computed. */
static AX_BODY(carried_round) {
  const ax_value *refs = context;
  put(refs, clamp(in[1], rows / 2 - 1));
  out[0] = ax_mul(in[1], in[1]);
}
static AX_BODY(carried) {
  in = context;
  ax_value last;
  ax_fori_loop(ax_integer(0), entry(in, number(0)), AX_CLOSURE(carried_round, 2, 1, in), AX_VALUES(number(0)), &last);
}
static AX_BODY(
    carried_beside) { /* the other core stores to the other half; or to row 0, which only the first round seems to have */
  ax_if(ax_eq(me(), ax_integer(0)), AX_CLOSURE(carried, 0, 0, in), AX_CLOSURE(put_last, 0, 0, in), NULL, NULL);
}
static AX_BODY(carried_before) {
  ax_if(ax_eq(me(), ax_integer(0)), AX_CLOSURE(carried, 0, 0, in), AX_CLOSURE(put_second, 0, 0, in), NULL, NULL);
}
static AX_BODY(amount) {
  ax_value own = ax_ref_at(in[OWN], me());
  ax_semaphore_signal(own, ax_max(entry(in, me()), number(0)), NULL);
  ax_semaphore_wait(own, ax_max(entry(in, me()), number(0)));
}

/* --- Memory that is not written, or not committed, for some --- */

static AX_BODY(writes_one) { /* of two buffers, and reads the first */
  ax_value own = ax_rem(clamp(entry(in, me()), 1), number(2));
  ax_ref_store(ax_ref_slice(in[BUFFER], AX_VALUES(own, me()), AX_DIMS(1, 1)), ax_full(AX_F32, AX_DIMS(1, 1), 2.0));
  (void)ax_ref_load(ax_ref_slice(in[BUFFER], AX_VALUES(number(0), me()), AX_DIMS(1, 1)));
}
static void store_and_copy(const ax_value *in,
                           bool commits) { /* one core stores to any of the first two rows of the buffer, and copies the second */
  ax_value done = ax_ref_at(in[DMA], number(0)), from = ax_ref_at(in[BUFFER], number(1)), to = ax_ref_at(in[OUT], number(0));
  for (int64_t k = 0; k < 2; k++) ax_ref_store(ax_ref_at(in[BUFFER], number(k)), row(3));
  ax_commit_smem();
  ax_ref_store(ax_ref_at(in[BUFFER], clamp(entry(in, number(0)), 1)), row(4));
  if (commits) ax_commit_smem();
  ax_copy_start(from, to, &(ax_copy_options){.received = &done});
  ax_copy_wait(done, to);
}
static AX_BODY(stores_and_copies) { store_and_copy(in, false); }
static AX_BODY(stores_commits_copies) { store_and_copy(in, true); }

/* --- Programs --- */

typedef struct kernel {
  ax_function body;
  uint32_t threads;
  const char *target;
  int place; /* 0: alone; 1: the table is a constant; 2: in a loop, with a table of the round before; 3: the table is clamped before */
} kernel;

static void call(const kernel *k, ax_value table, ax_value x, ax_value *out) {
  const ax_core_mesh mesh = {.core = "core", .mesh = {.count = 1, .axis = {{.name = "w", .size = k->threads}}}, .threads = "w"};
  const ax_scratch scratch[] = {{.type = AX_VMEM(AX_F32, buffers, columns)},
                                {.type = ax_semaphore_type(AX_DIMS())},
                                {.type = ax_dma_semaphore_type(AX_DIMS(2))},
                                {.type = ax_barrier_type(AX_DIMS()), .arrivals = 2},
                                {.type = ax_semaphore_type(AX_DIMS(2))}};
  const uint32_t aliases[1][2] = {{1, 0}};
  const ax_kernel_options options = {
      .scratch = {AX_LIST(AX_COUNT(scratch), scratch)}, .aliases = {AX_LIST(1, aliases)}, .target = k->target};
  ax_mpmd_map(AX_LIST(1, &mesh), &AX_FN(k->body, REFS, 0), &options, AX_VALUES(table, x), AX_TYPES(AX_TYPE(AX_F32, rows, columns)),
              out);
}

typedef struct rounds {
  const kernel *kernel;
  ax_value table;
} rounds;

static AX_BODY(one_round) { /* in: the round, rows; the table is another one in each round */
  const rounds *r = context;
  ax_value table = ax_add(r->table, ax_broadcast_to(in[0], AX_DIMS(entries)));
  call(r->kernel, table, in[1], out);
}

static AX_BODY(whole) {
  const kernel *k = context;
  rounds r = {k, in[0]};
  if (k->place == 1) r.table = ax_iota(AX_S32, AX_DIMS(entries), 0);
  if (k->place == 3)
    r.table = ax_max(ax_min(in[0], ax_full_i64(AX_S32, AX_DIMS(entries), 6)), ax_full_i64(AX_S32, AX_DIMS(entries), 0));
  if (k->place == 2)
    ax_fori_loop(number(0), number(3), AX_CLOSURE(one_round, 2, 1, &r), AX_LIST(1, in + 1), out);
  else
    call(k, r.table, in[1], out);
}

static void expect(const kernel *k, ax_check_inputs proved_for, const char *why) {
  ax_program *program;
  ax_check_report *report;
  const ax_type types[] = {AX_TYPE(AX_S32, entries), AX_TYPE(AX_F32, rows, columns)};
  TEST_OK(ax_trace(AX_CLOSURE(whole, 2, 1, k), types, &program));
  int32_t table[entries] = {0, 1, 2, 3};
  const ax_host_array in[] = {ax_host_view(AX_S32, AX_DIMS(entries), table), {0}};
  TEST_OK(ax_check(program, &(ax_check_options){.in = {AX_LIST(2, in)}}, &report));
  if (report->verdict != AX_PROVED) print_message("%s\n", report->kernels[0].findings[0].text);
  assert_int_equal(report->verdict, AX_PROVED);
  if (report->kernels[0].proved_for != proved_for) print_message("%s\n", report->kernels[0].proved_for_why);
  assert_int_equal(report->kernels[0].proved_for, proved_for);
  if (strstr(report->kernels[0].proved_for_why, why) == NULL) print_message("%s\n", report->kernels[0].proved_for_why);
  assert_non_null(strstr(report->kernels[0].proved_for_why, why));
  ax_check_report_release(report);
  ax_program_release(program);
}

static void test_addresses(void **state) {
  (void)state;
  expect(&(kernel){.body = next_to_base, .threads = 2}, AX_INPUTS_IN_BOUNDS, "ref_slice");
  expect(&(kernel){.body = next_to_clamped, .threads = 2}, AX_INPUTS_ALL, "");
  expect(&(kernel){.body = clamped_apart, .threads = 2}, AX_INPUTS_THESE, "data race: operand 1");
  expect(&(kernel){.body = scattered, .threads = 2}, AX_INPUTS_THESE, "data race: operand 1");
  expect(&(kernel){.body = scattered, .threads = 1}, AX_INPUTS_ALL, "");
  expect(&(kernel){.body = halves, .threads = 2}, AX_INPUTS_ALL, "");
  expect(&(kernel){.body = own_column, .threads = 2}, AX_INPUTS_ALL, "");
  expect(&(kernel){.body = either_of_two, .threads = 2}, AX_INPUTS_ALL, "");
  expect(&(kernel){.body = each_either, .threads = 2}, AX_INPUTS_THESE, "data race: operand 1");
  expect(&(kernel){.body = by_parity, .threads = 2}, AX_INPUTS_ALL, "");
  expect(&(kernel){.body = by_parity_anywhere, .threads = 2}, AX_INPUTS_IN_BOUNDS, "ref_slice");
  expect(&(kernel){.body = both_even, .threads = 2}, AX_INPUTS_THESE, "data race: operand 1");
  expect(&(kernel){.body = two_by_parity, .threads = 2}, AX_INPUTS_THESE, "data race: operand 1");
  expect(&(kernel){.body = gathered, .threads = 2}, AX_INPUTS_ALL, "");
  expect(&(kernel){.body = gathered_early, .threads = 2}, AX_INPUTS_THESE, "data race: operand 1");
}

static void test_control(void **state) {
  (void)state;
  expect(&(kernel){.body = guarded, .threads = 2}, AX_INPUTS_ALL, "");
  expect(&(kernel){.body = guarded_first, .threads = 2}, AX_INPUTS_THESE, "data race: operand 1[0");
  expect(&(kernel){.body = meets, .threads = 2}, AX_INPUTS_THESE, "whether it comes depends on inputs");
  expect(&(kernel){.body = fetched, .threads = 2}, AX_INPUTS_ALL, "");
  expect(&(kernel){.body = fetched_scoped, .threads = 2}, AX_INPUTS_ALL, "");
  expect(&(kernel){.body = fetched_twice, .threads = 2}, AX_INPUTS_THESE, "is used elsewhere too");
  expect(&(kernel){.body = fetched_apart, .threads = 2}, AX_INPUTS_THESE, "starts a copy that it does not wait for");
  expect(&(kernel){.body = fetched_early, .threads = 2}, AX_INPUTS_THESE, "data race: operand 1");
  expect(&(kernel){.body = long_as, .threads = 2}, AX_INPUTS_ALL, "");
  expect(&(kernel){.body = long_by_parity, .threads = 2}, AX_INPUTS_ALL, "");
  expect(&(kernel){.body = meets_in_rounds, .threads = 2}, AX_INPUTS_THESE, "whether it comes depends on inputs");
  expect(&(kernel){.body = pages, .threads = 2}, AX_INPUTS_ALL, "");
  expect(&(kernel){.body = all_pages, .threads = 2}, AX_INPUTS_IN_BOUNDS, "ref_slice of operand 0");
  expect(&(kernel){.body = grows, .threads = 2}, AX_INPUTS_THESE, "how long the loop is depends on inputs");
  expect(&(kernel){.body = carried_beside, .threads = 2}, AX_INPUTS_ALL, "");
  expect(&(kernel){.body = carried_before, .threads = 2}, AX_INPUTS_THESE, "data race: operand 1[1");
  expect(&(kernel){.body = amount, .threads = 2}, AX_INPUTS_THESE, "its amount, device or predicate depends on inputs");
}

static void test_guards(void **state) {
  (void)state;
  expect(&(kernel){.body = in_guard, .threads = 1}, AX_INPUTS_ALL, "");
  expect(&(kernel){.body = in_choice, .threads = 1}, AX_INPUTS_ALL, "");
  expect(&(kernel){.body = in_half_guard, .threads = 1}, AX_INPUTS_IN_BOUNDS, "ref_slice");
  expect(&(kernel){.body = rows_by_side, .threads = 2}, AX_INPUTS_IN_BOUNDS, "ref_slice");
  expect(&(kernel){.body = own_third, .threads = 2}, AX_INPUTS_ALL, "");
  expect(&(kernel){.body = own_fifth, .threads = 2}, AX_INPUTS_THESE, "data race");
  expect(&(kernel){.body = own_even, .threads = 2}, AX_INPUTS_ALL, "");
  expect(&(kernel){.body = own_half, .threads = 2}, AX_INPUTS_THESE, "data race");
  expect(&(kernel){.body = own_sum, .threads = 2}, AX_INPUTS_ALL, "");
}

static void test_memory(void **state) {
  (void)state;
  expect(&(kernel){.body = stores_and_copies, .threads = 1, .target = "h200"}, AX_INPUTS_THESE,
         "no ax_commit_smem has made visible");
  expect(&(kernel){.body = stores_commits_copies, .threads = 1, .target = "h200"}, AX_INPUTS_ALL, "");
  expect(&(kernel){.body = writes_one, .threads = 1}, AX_INPUTS_THESE, "reads what nobody has written");
}

static void test_programs(void **state) {
  (void)state;
  expect(&(kernel){.body = scattered, .threads = 2, .place = 1}, AX_INPUTS_ALL, ""); /* a table that is the same for all inputs */
  expect(&(kernel){.body = next_to_base, .threads = 2, .place = 3}, AX_INPUTS_ALL, "");
  expect(&(kernel){.body = next_to_clamped, .threads = 2, .place = 2}, AX_INPUTS_ALL, "");
  expect(&(kernel){.body = scattered, .threads = 2, .place = 2}, AX_INPUTS_THESE, "data race");
}

/* --- Two devices: each copies its row to the other's result, at the place that a table of both has --- */

enum { SENT_TABLE, SENT_ROW, SENT_INTO, SENT_OUT, ARRIVED };
enum { sent_early = 1, sent_wide }; /* it stores to its row 2: before the other may send; while it may */

static AX_BODY(sends) {
  const int form = *(const int *)context;
  ax_value all = ax_barrier_semaphore(), d = ax_axis_index("d"), at = ax_ref_load(ax_ref_at(in[SENT_TABLE], number(0)));
  ax_value other = ax_sub(number(1), d);
  const ax_target_core there = {.axes = "d", .coordinates = {AX_VALUES(other)}};
  ax_value place = ax_ref_at(in[SENT_OUT], form == sent_wide ? clamp(at, rows - 1) : at);
  if (form == sent_early) ax_ref_store(ax_ref_at(in[SENT_OUT], number(2)), row(4));
  ax_semaphore_signal(all, ax_integer(1), &there);
  ax_semaphore_wait(all, ax_integer(1));
  if (form == sent_wide) ax_ref_store(ax_ref_at(in[SENT_OUT], number(2)), row(4)); /* while the other's row may come */
  ax_copy_start(ax_ref_at(in[SENT_ROW], number(0)), place,
                &(ax_copy_options){.received = (ax_value *)(uintptr_t)&in[ARRIVED], .to = &there});
  ax_copy_wait(in[ARRIVED], place);
  if (form == 0) ax_ref_store(ax_ref_at(in[SENT_OUT], at), ax_ref_load(ax_ref_at(in[SENT_OUT], at)));
}

static AX_BODY(sends_on_device) {
  const ax_core_mesh one = {.core = "core"};
  const uint32_t aliases[1][2] = {{2, 0}};
  const ax_scratch scratch = {.type = ax_dma_semaphore_type(AX_DIMS())};
  const ax_kernel_options options = {.scratch = {AX_LIST(1, &scratch)}, .aliases = {AX_LIST(1, aliases)}, .collective_id = 1};
  ax_mpmd_map(AX_LIST(1, &one), &AX_CLOSURE(sends, 5, 0, context), &options, AX_LIST(3, in),
              AX_TYPES(AX_TYPE(AX_F32, rows, columns)), out);
}

static AX_BODY(sends_on_both) {
  const ax_mesh mesh = {.count = 1, .axis = {{.name = "d", .size = 2}}};
  ax_shard_map(&mesh, "_; d; d -> d", AX_CLOSURE(sends_on_device, 3, 1, context), in, out);
}

/* What is said, from row 6; and whether it is right for all rows. */
static void expect_sent(int form, ax_check_inputs proved_for, const char *why) {
  ax_program *program;
  ax_check_report *report;
  const ax_type types[] = {AX_TYPE(AX_S32, 2), AX_TYPE(AX_F32, 2, columns), AX_TYPE(AX_F32, 2 * rows, columns)};
  bool fine = true;
  TEST_OK(ax_trace(AX_CLOSURE(sends_on_both, 3, 1, &form), types, &program));
  for (int32_t at = 0; at <= rows; at++) {
    int32_t table[2] = {at == rows ? 6 : at};
    const ax_host_array in[] = {ax_host_view(AX_S32, AX_DIMS(2), table), {0}, {0}};
    TEST_OK(ax_check(program, &(ax_check_options){.in = {AX_LIST(3, in)}}, &report));
    fine = fine && report->verdict == AX_PROVED;
    if (at < rows) ax_check_report_release(report);
  }
  assert_int_equal(report->kernels[0].proved_for, proved_for);
  assert_non_null(strstr(report->kernels[0].proved_for_why, why));
  assert_int_equal(fine, proved_for != AX_INPUTS_THESE);
  ax_check_report_release(report);
  ax_program_release(program);
}

static void test_devices(void **state) {
  (void)state;
  expect_sent(0, AX_INPUTS_IN_BOUNDS, "ref_slice");
  expect_sent(sent_early, AX_INPUTS_IN_BOUNDS, "ref_slice");
  expect_sent(sent_wide, AX_INPUTS_THESE, "data race: operand 2");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_addresses), cmocka_unit_test(test_control),
                                     cmocka_unit_test(test_guards),    cmocka_unit_test(test_memory),
                                     cmocka_unit_test(test_programs),  cmocka_unit_test(test_devices)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
