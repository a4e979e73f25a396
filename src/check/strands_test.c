/* Points of a grid that are in no order: kernels that are right, and the same with one fault each. */
#undef AXLE_NO_LINES /* as users have it */
#include "check/strand_access.h"

#include <stdlib.h>
#include <string.h>

#include "axle/axle.h"
#include "check/strands.h"
#include "support/cmocka.h"
#include "support/tensor.h"

/* A few points over rows of x and y; z, pinned, has rows that are copied by hand. */
enum { rows = 6, usual = 3, columns = 4, most_dims = 3 };
enum { PINNED = 3, SCRATCH, SEMAPHORE, DMA, BARRIER, FAR, REFS }; /* x, z, y, z are the first refs */

typedef struct shape {
  const char *name;
  ax_function body, x_map, y_map; /* NULL: the whole, in fast memory */
  const char *found;              /* a part of the only finding; NULL: it is proved */
  uint32_t rank;                  /* 0: one dimension, parallel */
  int64_t grid[most_dims];
  int semantics[most_dims];
  int64_t block;  /* its rows; 0: one */
  int64_t y_rows; /* 0: 3 */
  bool in_place;  /* y is x's memory */
  const int32_t *table;
  bool given;           /* the table is an input */
  ax_check_inputs for_; /* that it is proved for */
} shape;

/* refs: x, z as operand, y, z as result, scratch .. */
static ax_value x_of(const ax_value *in) { return in[0]; }
static ax_value y_of(const ax_value *in) { return in[2]; }
static ax_value z_of(const ax_value *in) { return in[PINNED]; }
static ax_value number(int64_t n) { return ax_full_i64(AX_S32, AX_DIMS(), n); }
static ax_value id(uint32_t d) { return ax_program_id(d); }
static ax_value is(uint32_t d, int64_t n) { return ax_eq(id(d), number(n)); }
static ax_value scratch_row(const ax_value *in, ax_value k) { return ax_ref_at(in[SCRATCH], k); }
static ax_value row(double value) { return ax_full(AX_F32, AX_DIMS(columns), value); }
static ax_value first_row(ax_value ref) { return ax_ref_at(ref, number(0)); }

/* --- Maps --- */
static AX_BODY(by_first) { out[0] = in[0], out[1] = ax_integer(0); }
static AX_BODY(by_second) { out[0] = in[1], out[1] = ax_integer(0); }
static AX_BODY(by_halves) { out[0] = ax_div(in[0], number(2)), out[1] = ax_integer(0); }
static AX_BODY(always_first) { out[0] = out[1] = ax_integer(0); }
static AX_BODY(up_to_one) { out[0] = ax_min(in[0], number(1)), out[1] = ax_integer(0); }
static AX_BODY(by_both) { out[0] = ax_add(ax_mul(in[0], number(3)), in[1]), out[1] = ax_integer(0); }
static AX_BODY(by_all) { out[0] = ax_add(ax_mul(in[0], number(2)), in[2]), out[1] = ax_integer(0); } /* not by the second */
static AX_BODY(backwards) { out[0] = ax_sub(number(2), in[0]), out[1] = ax_integer(0); }
static AX_BODY(by_table) {
  const ax_value *table = *(const ax_value *const *)context;
  out[0] = ax_dynamic_at(*table, in[0], 0), out[1] = ax_integer(0);
}

/* The table's entry for the point, between 0 and `most`. */
static ax_value entry(void *context, int64_t most) {
  const ax_value *table = *(const ax_value *const *)context;
  return ax_max(ax_min(ax_dynamic_at(*table, id(0), 0), number(most)), number(0));
}

/* --- Bodies that are right, and those with a fault --- */
static AX_BODY(negates) { ax_ref_store(y_of(in), ax_neg(ax_ref_load(x_of(in)))); }
static AX_BODY(by_scratch) {
  ax_ref_store(scratch_row(in, number(0)), row(1));
  ax_ref_add(scratch_row(in, number(0)), row(1));
  ax_ref_store(first_row(y_of(in)), ax_ref_load(scratch_row(in, number(0))));
}
static AX_BODY(scratch_once) {
  AX_IF (is(0, 0)) ax_ref_store(scratch_row(in, number(0)), row(1));
  ax_ref_store(first_row(y_of(in)), ax_ref_load(scratch_row(in, number(0))));
}
static AX_BODY(counts_points) {
  AX_IF (is(0, 0)) ax_ref_store(scratch_row(in, number(0)), row(0));
  ax_ref_add(scratch_row(in, number(0)), row(1));
  ax_ref_store(y_of(in), ax_neg(ax_ref_load(x_of(in))));
}
static AX_BODY(swaps) {
  AX_IF (is(0, 0)) ax_ref_store(scratch_row(in, number(0)), row(0));
  ax_ref_store(first_row(y_of(in)), ax_ref_swap(scratch_row(in, number(0)), row(1)));
}
/* A sum over the last dimension, in scratch. */
static void sums(const ax_value *in, uint32_t guard, uint32_t last) {
  AX_IF (is(guard, 0)) ax_ref_store(scratch_row(in, number(0)), row(0));
  ax_ref_add(scratch_row(in, number(0)), ax_ref_load(first_row(x_of(in))));
  AX_IF (is(last, 1)) ax_ref_store(first_row(y_of(in)), ax_ref_load(scratch_row(in, number(0))));
}
static AX_BODY(sums_by_scratch) { sums(in, 1, 1); }
static AX_BODY(sums_begun_once) { sums(in, 0, 1); } /* it begins where i is 0, at both k: a sum of one */
static AX_BODY(carried_outside) {                   /* k is the first dimension */
  AX_IF (is(0, 0)) ax_ref_store(scratch_row(in, number(0)), row(0));
  ax_ref_add(scratch_row(in, number(0)), row(1));
  ax_ref_store(first_row(y_of(in)), ax_ref_load(scratch_row(in, number(0))));
}
static AX_BODY(adds_to_result) {
  AX_IF (is(1, 0)) ax_ref_store(first_row(y_of(in)), row(0));
  ax_ref_add(first_row(y_of(in)), row(1));
}
static AX_BODY(adds_up_points) {
  AX_IF (is(0, 0)) ax_ref_store(y_of(in), ax_full(AX_F32, AX_DIMS(usual, columns), 0.0));
  ax_ref_add(first_row(y_of(in)), row(1));
}
static AX_BODY(first_stores) {
  AX_IF (is(0, 0)) ax_ref_store(y_of(in), ax_full(AX_F32, AX_DIMS(usual, columns), 0.0));
}
static AX_BODY(signals_itself) {
  ax_semaphore_signal(in[SEMAPHORE], ax_integer(1), NULL);
  ax_semaphore_wait(in[SEMAPHORE], ax_integer(1));
  negates(in, out, context);
}
static AX_BODY(signals_next) {
  AX_IF (ax_gt(id(0), number(0))) ax_semaphore_wait(in[SEMAPHORE], ax_integer(1));
  AX_IF (ax_lt(id(0), number(2))) ax_semaphore_signal(in[SEMAPHORE], ax_integer(1), NULL);
  negates(in, out, context);
}
static AX_BODY(reads_count) {
  AX_IF (ax_gt(id(0), number(0))) (void)ax_semaphore_read(in[SEMAPHORE]);
  ax_semaphore_signal(in[SEMAPHORE], ax_integer(1), NULL);
  AX_IF (is(0, 2)) ax_semaphore_wait(in[SEMAPHORE], ax_integer(3));
  negates(in, out, context);
}
static AX_BODY(meets_itself) {
  for (int k = 0; k < 2; k++) ax_barrier_arrive(in[BARRIER]);
  ax_barrier_wait(in[BARRIER]);
  negates(in, out, context);
}
static AX_BODY(arrives_for_next) { /* 1, 2 and 1 arrivals, of two each */
  ax_barrier_arrive(in[BARRIER]);
  AX_IF (is(0, 1)) {
    ax_barrier_wait(in[BARRIER]);
    ax_barrier_arrive(in[BARRIER]);
  }
  AX_IF (is(0, 2)) ax_barrier_wait(in[BARRIER]);
  negates(in, out, context);
}
/* Copies a row of z to the scratch. */
static void start(const ax_value *in) {
  ax_value done = in[DMA];
  ax_copy_start(first_row(z_of(in)), scratch_row(in, number(1)), &(ax_copy_options){.received = &done});
}
static AX_BODY(copies) {
  start(in);
  ax_copy_wait(in[DMA], scratch_row(in, number(1)));
  ax_ref_store(first_row(y_of(in)), ax_ref_load(scratch_row(in, number(1))));
}
static AX_BODY(copies_ahead) {
  AX_IF (is(0, 0)) start(in);
  ax_copy_wait(in[DMA], scratch_row(in, number(1)));
  ax_ref_store(first_row(y_of(in)), ax_ref_load(scratch_row(in, number(1))));
  AX_IF (ax_lt(id(0), number(2))) start(in);
}
static AX_BODY(scoped_row) {
  const ax_value *refs = context;
  ax_ref_store(in[0], ax_ref_load(first_row(x_of(refs))));
  ax_ref_store(first_row(y_of(refs)), ax_ref_load(in[0]));
}
static AX_BODY(by_scope) {
  const ax_scratch scratch = {.type = AX_VMEM(AX_F32, columns)};
  ax_run_scoped(AX_LIST(1, &scratch), NULL, AX_CLOSURE(scoped_row, 1, 0, (void *)(uintptr_t)in), AX_LIST(0, (ax_value *)NULL));
}
/* Columns from `from` on of a row of the scratch are stored, then all read. */
static void masks(const ax_value *in, int64_t from) {
  ax_value column = ax_iota(AX_S32, AX_DIMS(columns), 0);
  AX_IF (is(0, 0)) ax_ref_store(scratch_row(in, number(0)), row(0));
  ax_ref_store_masked(scratch_row(in, number(0)), ax_ge(column, ax_full_i64(AX_S32, AX_DIMS(columns), from)), row(1));
  ax_ref_store(first_row(y_of(in)), ax_ref_load(scratch_row(in, number(0))));
}
static AX_BODY(masks_all) { masks(in, 0); }
static AX_BODY(masks_most) { masks(in, 1); }
/* Rows of z by copies: the point's own, and another. */
static void put_row(const ax_value *in, ax_value to) {
  ax_ref_store(scratch_row(in, number(0)), row(1));
  ax_copy(scratch_row(in, number(0)), ax_ref_at(z_of(in), to));
  negates(in, NULL, NULL);
}
static void get_row(const ax_value *in, ax_value from) {
  ax_copy(ax_ref_at(z_of(in), from), scratch_row(in, number(1)));
  ax_ref_store(first_row(y_of(in)), ax_ref_load(scratch_row(in, number(1))));
}
static AX_BODY(puts_own) { put_row(in, id(0)); }
static AX_BODY(puts_first) { put_row(in, number(0)); }
static AX_BODY(puts_two) {
  put_row(in, id(0));
  put_row(in, ax_add(id(0), number(1)));
}
static AX_BODY(gets_own) {
  put_row(in, id(0));
  get_row(in, id(0));
}
static AX_BODY(gets_one_before) {
  put_row(in, ax_add(id(0), number(1)));
  get_row(in, id(0));
}
static AX_BODY(stores_to_operand) { /* x is brought in once for all points */
  ax_ref_store(first_row(x_of(in)), row(1));
  ax_ref_store(first_row(y_of(in)), ax_ref_load(first_row(x_of(in))));
}
static AX_BODY(stores_to_operand_late) {
  ax_ref_store(first_row(y_of(in)), ax_ref_load(first_row(x_of(in))));
  ax_ref_store(first_row(x_of(in)), row(1));
}
/* x, whole, is the memory of y: the point's own row, and another. */
static AX_BODY(takes_own_row) { ax_ref_store(first_row(y_of(in)), ax_neg(ax_ref_load(ax_ref_at(x_of(in), id(0))))); }
static AX_BODY(takes_next_row) {
  ax_ref_store(first_row(y_of(in)), ax_neg(ax_ref_load(ax_ref_at(x_of(in), ax_rem(ax_add(id(0), number(1)), number(3))))));
}
static AX_BODY(by_far_row) {
  ax_copy(first_row(x_of(in)), ax_ref_at(in[FAR], id(0)));
  ax_copy(ax_ref_at(in[FAR], id(0)), first_row(y_of(in)));
}
static AX_BODY(by_one_far_row) {
  ax_copy(first_row(x_of(in)), ax_ref_at(in[FAR], number(0)));
  ax_copy(ax_ref_at(in[FAR], number(0)), first_row(y_of(in)));
}

/* Rows of the scratch, or of z, that the table says: all written first, or by the first point alone. */
static void by_entry(const ax_value *in, void *context, bool always) {
  ax_value at = entry(context, 1);
  if (always)
    ax_ref_store(in[SCRATCH], ax_full(AX_F32, AX_DIMS(2, columns), 0.0));
  else AX_IF (is(0, 0))
    ax_ref_store(in[SCRATCH], ax_full(AX_F32, AX_DIMS(2, columns), 0.0));
  if (!always) ax_ref_store(scratch_row(in, number(0)), row(2));
  ax_ref_store(scratch_row(in, at), row(1));
  ax_ref_store(first_row(y_of(in)), ax_ref_load(scratch_row(in, at)));
}
static AX_BODY(by_entry_anew) { by_entry(in, context, true); }
static AX_BODY(by_entry_once) { by_entry(in, context, false); }
static AX_BODY(perhaps_anew) { /* where the entry is 0, as in the run */
  AX_IF (is(0, 0)) ax_ref_store(scratch_row(in, number(0)), row(0));
  AX_IF (ax_eq(entry(context, 1), number(0))) ax_ref_store(scratch_row(in, number(0)), row(1));
  ax_ref_store(first_row(y_of(in)), ax_ref_load(scratch_row(in, number(0))));
}
static AX_BODY(perhaps_too) { /* what the branch writes is written anyway */
  ax_ref_store(scratch_row(in, number(0)), row(0));
  AX_IF (ax_eq(entry(context, 1), number(0))) ax_ref_store(scratch_row(in, number(0)), row(1));
  ax_ref_store(first_row(y_of(in)), ax_ref_load(scratch_row(in, number(0))));
}
static AX_BODY(puts_by_entry) { put_row(in, ax_add(id(0), ax_mul(entry(context, 1), number(3)))); } /* i, or i + 3 */
static AX_BODY(puts_near_entry) { put_row(in, ax_add(id(0), entry(context, 1))); }

static const int32_t apart[] = {2, 0, 1}, twice[] = {1, 0, 1}, same[] = {0, 0, 0}, each[] = {0, 1, 2};

#define LAST_ARBITRARY \
  { AX_PARALLEL, AX_ARBITRARY }
#define FIRST_ARBITRARY \
  { AX_ARBITRARY, AX_PARALLEL }

static const shape right[] = {
    {"rows of their own", .body = negates, .x_map = by_first, .y_map = by_first},
    {"rows in another order", .body = negates, .x_map = by_first, .y_map = backwards},
    {"blocks of two rows, of which the last sticks out", .body = negates, .x_map = by_first, .y_map = by_first, .grid = {2},
     .block = 2},
    {"scratch that is written first", .body = by_scratch, .x_map = by_first, .y_map = by_first},
    {"scratch that is written first, under a mask", .body = masks_all, .x_map = by_first, .y_map = by_first},
    {"a sum in scratch over the last dimension", .body = sums_by_scratch, .x_map = by_first, .y_map = by_first, .rank = 2,
     .grid = {3, 2}, .semantics = LAST_ARBITRARY},
    {"a sum in the result over the last dimension", .body = adds_to_result, .x_map = by_first, .y_map = by_first, .rank = 2,
     .grid = {3, 2}, .semantics = LAST_ARBITRARY},
    {"a sum over points that are in order", .body = adds_up_points, .x_map = by_first, .y_map = NULL, .rank = 1, .grid = {3},
     .semantics = {AX_ARBITRARY}},
    {"scratch kept by points that are in order", .body = scratch_once, .x_map = by_first, .y_map = by_first, .rank = 1, .grid = {3},
     .semantics = {AX_ARBITRARY}},
    {"one point", .body = counts_points, .x_map = by_first, .y_map = by_first, .grid = {1}, .y_rows = 1},
    {"two parallel dimensions", .body = negates, .x_map = by_both, .y_map = by_both, .y_rows = 6, .rank = 2, .grid = {2, 3},
     .semantics = {AX_PARALLEL, AX_PARALLEL}},
    {"a signal of its own", .body = signals_itself, .x_map = by_first, .y_map = by_first},
    {"a phase of its own", .body = meets_itself, .x_map = by_first, .y_map = by_first},
    {"a copy of its own", .body = copies, .x_map = by_first, .y_map = by_first},
    {"a scope", .body = by_scope, .x_map = by_first, .y_map = by_first},
    {"rows of z of its own", .body = puts_own, .x_map = by_first, .y_map = by_first},
    {"rows of z that it has written", .body = gets_own, .x_map = by_first, .y_map = by_first},
    {"its own row of its block of x, in y's memory", .body = negates, .x_map = by_first, .y_map = by_first, .in_place = true},
    {"its own row of the whole of x, in y's memory", .body = takes_own_row, .x_map = NULL, .y_map = by_first, .in_place = true},
    {"a store to its block of x", .body = stores_to_operand_late, .x_map = by_first, .y_map = by_first},
    {"a store to x, which it has written itself", .body = stores_to_operand, .x_map = NULL, .y_map = by_first},
    {"blocks by a table", .body = negates, .x_map = by_first, .y_map = by_table, .table = apart},
    {"scratch in far memory, a row each", .body = by_far_row, .x_map = by_first, .y_map = by_first},
};

static const shape wrong[] = {
    {"scratch that the first point writes", .body = scratch_once, .x_map = by_first, .y_map = by_first,
     .found = "point (1) reads what point (0) has written to scratch 0[0, 0:4]"},
    {"a count of points", .body = counts_points, .x_map = by_first, .y_map = by_first,
     .found = "point (1) reads what point (0) has written to scratch 0[0, 0:4]"},
    {"a swap", .body = swaps, .x_map = by_first, .y_map = by_first,
     .found = "point (1) reads what point (0) has written to scratch 0[0, 0:4]"},
    {"a sum that begins where i is 0", .body = sums_begun_once, .x_map = by_first, .y_map = by_first,
     .found = "point (1, 0) reads what point (0, 1) has written to scratch 0", .rank = 2, .grid = {3, 2},
     .semantics = LAST_ARBITRARY},
    {"a sum over the first dimension, in scratch", .body = carried_outside, .x_map = by_second, .y_map = by_second,
     .found = "has written to scratch 0[0, 0:4]", .rank = 2, .grid = {2, 3}, .semantics = FIRST_ARBITRARY},
    {"a mask that leaves one number out", .body = masks_most, .x_map = by_first, .y_map = by_first,
     .found = "point (1) reads what point (0) has written to scratch 0[0, 0] of"},
    {"all store the first block", .body = negates, .x_map = by_first, .y_map = always_first,
     .found = "point (1) and point (0) both write result 0[0, 0:4]", .y_rows = 1},
    {"two store one block", .body = negates, .x_map = by_first, .y_map = by_halves,
     .found = "point (1) and point (0) both write result 0[0, 0:4]", .y_rows = 2},
    {"the last two store one block", .body = negates, .x_map = by_first, .y_map = up_to_one,
     .found = "point (2) and point (1) both write result 0[1, 0:4]", .y_rows = 2},
    {"two store one block, one long after the other", .body = negates, .x_map = by_first, .y_map = by_table,
     .found = "point (2) and point (0) both write result 0[1, 0:4]", .y_rows = 2, .table = twice},
    {"a block by one of two parallel dimensions", .body = negates, .x_map = by_first, .y_map = by_first,
     .found = "point (0, 1) and point (0, 0) both write result 0[0, 0:4]", .rank = 2, .grid = {3, 2},
     .semantics = {AX_PARALLEL, AX_PARALLEL}},
    {"a block by two of three", .body = negates, .x_map = by_all, .y_map = by_all, .found = "both write result 0", .y_rows = 4,
     .rank = 3, .grid = {2, 3, 2}, .semantics = {AX_PARALLEL, AX_PARALLEL, AX_ARBITRARY}},
    {"a sum over points", .body = adds_up_points, .x_map = by_first, .y_map = NULL,
     .found = "point (1) reads what point (0) has written to the block of result 0"},
    {"one point writes the block of all", .body = first_stores, .x_map = by_first, .y_map = NULL,
     .found = "both write result 0[0:3, 0:4]"},
    {"a signal to the next", .body = signals_next, .x_map = by_first, .y_map = by_first,
     .found = "point (1) waits for what point (0) has done to semaphore scratch 1"},
    {"a count that is read", .body = reads_count, .x_map = by_first, .y_map = by_first,
     .found = "point (1) reads a count that point (0) has changed, of semaphore scratch 1"},
    {"arrivals for the next", .body = arrives_for_next, .x_map = by_first, .y_map = by_first, .found = "barrier scratch 3"},
    {"a copy that the one before has started", .body = copies_ahead, .x_map = by_first, .y_map = by_first,
     .found = "point (1) waits for what point (0) has done to semaphore scratch 2"},
    {"all copy to one row of z", .body = puts_first, .x_map = by_first, .y_map = by_first,
     .found = "point (1) and point (0) both write operand 1[0, 0:4]"},
    {"rows of z that overlap", .body = puts_two, .x_map = by_first, .y_map = by_first,
     .found = "point (1) and point (0) both write operand 1[1, 0:4]"},
    {"a row of z that the one before has written", .body = gets_one_before, .x_map = by_first, .y_map = by_first,
     .found = "point (1) reads what point (0) writes to operand 1[1, 0:4]"},
    {"the next row of the whole of x, in y's memory", .body = takes_next_row, .x_map = NULL, .y_map = by_first,
     .found = "point (1) writes what point (0) reads of operand 0[1, 0:4]", .in_place = true},
    {"the block of the one before, in y's memory", .body = negates, .x_map = by_first, .y_map = backwards, .found = "reads what",
     .in_place = true},
    {"a store to x, which all have", .body = stores_to_operand_late, .x_map = NULL, .y_map = by_first,
     .found = "point (1) reads what point (0) has written to the block of operand 0"},
    {"the same, of one point", .body = stores_to_operand_late, .x_map = always_first, .y_map = by_first,
     .found = "point (1) reads what point (0) has written to the block of operand 0"},
    {"a block that is stored only as others come between", .body = negates, .x_map = by_second, .y_map = by_second,
     .found = "as other points come between the two, to operand 0[0, 0:4]", .rank = 2, .grid = {2, 3}, .semantics = FIRST_ARBITRARY,
     .in_place = true},
    {"a row of far scratch for all", .body = by_one_far_row, .x_map = by_first, .y_map = by_first,
     .found = "point (1) and point (0) both write scratch 4[0, 0:4]"},
};

/* The table is an input; where none is said, its entries are 0, 1 and 2. for_: for which other tables that is proved. */
static const shape by_inputs[] = {
    {"rows of scratch that are all written first", .body = by_entry_anew, .x_map = by_first, .y_map = by_first,
     .for_ = AX_INPUTS_ALL},
    {"rows of scratch, one of which the first point alone has written", .body = by_entry_once, .x_map = by_first, .y_map = by_first,
     .found = "scratch 0"},
    {"scratch that a branch writes, or the first point", .body = perhaps_anew, .x_map = by_first, .y_map = by_first,
     .found = "scratch 0", .table = same},
    {"scratch that a branch writes again", .body = perhaps_too, .x_map = by_first, .y_map = by_first, .for_ = AX_INPUTS_ALL},
    {"rows of z, three apart", .body = puts_by_entry, .x_map = by_first, .y_map = by_first, .found = "operand 1"},
    {"rows of z, next to one another", .body = puts_near_entry, .x_map = by_first, .y_map = by_first, .found = "operand 1"},
    {"blocks that the table says", .body = negates, .x_map = by_first, .y_map = by_table, .found = "depends on inputs"},
    {"blocks of x that the table says", .body = negates, .x_map = by_table, .y_map = by_first, .for_ = AX_INPUTS_IN_BOUNDS},
};

static AX_BODY_OF(kernel, const shape, s) {
  const int64_t height = s->block > 0 ? s->block : 1;
  const int64_t y_rows = s->y_rows > 0 ? s->y_rows : usual;
  const ax_type entries = AX_TYPE(AX_S32, usual);
  const ax_value table = s->table != NULL ? ax_constant(&entries, s->table) : s->given ? in[2] : (ax_value){0}, *tables = &table;
  const ax_block_spec x = {.block = {AX_DIMS(height, columns)}, .index_map = s->x_map, .context = &tables},
                      y = {.block = {AX_DIMS(height, columns)}, .index_map = s->y_map, .context = &tables}, whole = {0},
                      pinned = {.space = AX_SPACE_HBM};
  const uint32_t rank = s->rank > 0 ? s->rank : 1;
  const int64_t three[] = {3};
  const int parallel[] = {AX_PARALLEL};
  ax_semantics semantics[most_dims];
  for (uint32_t d = 0; d < rank; d++) semantics[d] = (ax_semantics)(s->rank > 0 ? s->semantics : parallel)[d];
  const ax_scratch scratch[] = {{.type = AX_VMEM(AX_F32, 2, columns)},
                                {.type = ax_semaphore_type(AX_DIMS())},
                                {.type = ax_dma_semaphore_type(AX_DIMS())},
                                {.type = ax_barrier_type(AX_DIMS()), .arrivals = 2},
                                {.type = AX_HBM(AX_F32, rows, columns)}};
  const uint32_t aliases[2][2] = {{1, 1}, {0, 0}};
  const ax_kernel k = {.grid = {rank, s->grid[0] > 0 ? s->grid : three},
                       .semantics = {rank, semantics},
                       .in_specs = {AX_BLOCK_SPECS(s->x_map != NULL ? x : whole, pinned)},
                       .out_specs = {AX_BLOCK_SPECS(s->y_map != NULL ? y : whole, pinned)},
                       .outs = {AX_TYPES(AX_TYPE(AX_F32, y_rows, columns), AX_TYPE(AX_F32, rows, columns))},
                       .options = {.scratch = {AX_LIST(AX_COUNT(scratch), scratch)}, .aliases = {1 + s->in_place, aliases}}};
  ax_kernel_call(&k, AX_CLOSURE(s->body, REFS, 0, &tables), AX_LIST(2, in), AX_LIST(2, out));
}

static ax_program *trace(const shape *s) {
  const int64_t x_rows = !s->in_place ? rows : s->y_rows > 0 ? s->y_rows : usual;
  const ax_type types[] = {AX_TYPE(AX_F32, x_rows, columns), AX_TYPE(AX_F32, rows, columns), AX_TYPE(AX_S32, usual)};
  return test_trace(kernel, (void *)(uintptr_t)s, types, 2 + s->given, 2);
}

static void each_that_is_right_is_proved(void **state) {
  (void)state;
  for (size_t k = 0; k < AX_COUNT(right); k++) {
    ax_program *program = trace(&right[k]);
    ax_check_report *report;
    TEST_OK(ax_check(program, NULL, &report));
    const ax_check_kernel *found = &report->kernels[0];
    if (found->verdict != AX_PROVED || found->proved_for != AX_INPUTS_ALL)
      fail_msg("%s: %s; %s; %s", right[k].name, found->how, found->proved_for_why,
               found->finding_count > 0 ? found->findings[0].text : "");
    ax_check_report_release(report);
    ax_program_release(program);
  }
}

/* The finding is the only one, names lines of this file, and its schedule can be replayed. */
static void check_wrong(const shape *s) {
  ax_program *program = trace(s);
  ax_check_report *report, *again;
  TEST_OK(ax_check(program, NULL, &report));
  const ax_check_kernel *k = &report->kernels[0];
  if (k->verdict != AX_WRONG || k->finding_count == 0) fail_msg("%s: nothing is found: %s", s->name, k->how);
  for (uint32_t i = 0; i < k->finding_count; i++) {
    const ax_check_finding *f = &k->findings[i];
    if (getenv("AXLE_SHOW") != NULL) print_message("%s\n%s\n", s->name, f->text);
    if (strcmp(f->kind, "dependence between points") != 0) fail_msg("%s: %s", s->name, f->text);
    if (strstr(f->text, "of the grid is AX_PARALLEL") == NULL || strstr(f->text, "strands_test.c:") == NULL)
      fail_msg("%s: %s", s->name, f->text);
    TEST_OK(ax_check(program, &(ax_check_options){.replay = f->schedule}, &again));
    ax_check_report_release(again);
  }
  if (strstr(k->findings[0].text, s->found) == NULL) fail_msg("%s: %s", s->name, k->findings[0].text);
  ax_check_report_release(report);
  ax_program_release(program);
}

static void each_fault_is_found(void **state) {
  (void)state;
  for (size_t k = 0; k < AX_COUNT(wrong); k++) check_wrong(&wrong[k]);
}

/* --- Several devices: each point signals the two neighbours, and waits for both; or the last point for those of all --- */

enum { ring = 3 };

typedef struct neighbours {
  bool last_waits;
} neighbours;

static AX_BODY_OF(meet_neighbours, const neighbours, n) {
  for (int side = 1; side < ring; side++) {
    ax_value to = ax_rem(ax_add(ax_axis_index("d"), number(side)), number(ring));
    ax_semaphore_signal(in[2], ax_integer(1), &(ax_target_core){.axes = "d", .coordinates = {AX_VALUES(to)}});
  }
  if (!n->last_waits)
    ax_semaphore_wait(in[2], ax_integer(ring - 1));
  else AX_IF (is(0, 1))
    ax_semaphore_wait(in[2], ax_integer(2 * (ring - 1)));
  ax_ref_store(in[1], ax_neg(ax_ref_load(in[0])));
}

static AX_BODY_OF(on_device, const neighbours, n) {
  const ax_block_spec rows_of = {.block = {AX_DIMS(1, columns)}, .index_map = by_first};
  const ax_scratch scratch = {.type = ax_semaphore_type(AX_DIMS())};
  const ax_kernel k = {.grid = {AX_DIMS(2)},
                       .semantics = {AX_SEMANTICS(AX_PARALLEL)},
                       .in_specs = {AX_BLOCK_SPECS(rows_of)},
                       .out_specs = {AX_BLOCK_SPECS(rows_of)},
                       .outs = {AX_TYPES(AX_TYPE(AX_F32, 2, columns))},
                       .options = {.scratch = {AX_SCRATCH(scratch)}}};
  ax_kernel_call(&k, AX_CLOSURE(meet_neighbours, 3, 0, (void *)(uintptr_t)n), AX_LIST(1, in), AX_LIST(1, out));
}

static AX_BODY_OF(over_ring, const neighbours, n) {
  const ax_mesh mesh = {.count = 1, .axis = {{.name = "d", .size = ring}}};
  ax_shard_map(&mesh, "d -> d", AX_CLOSURE(on_device, 1, 1, (void *)(uintptr_t)n), in, out);
}

/* Two signals that have come may be one neighbour's two: a strand that is run by itself waits for both neighbours. */
static void points_of_devices_meet_their_like(void **state) {
  (void)state;
  for (int k = 0; k < 2; k++) {
    const ax_type type = AX_TYPE(AX_F32, 2 * ring, columns);
    const neighbours n = {.last_waits = k == 1};
    ax_program *program = test_trace(over_ring, (void *)(uintptr_t)&n, &type, 1, 1);
    ax_check_report *report;
    TEST_OK(ax_check(program, NULL, &report));
    const ax_check_kernel *found = &report->kernels[0];
    if (getenv("AXLE_SHOW") != NULL) print_message("%s; %s\n", found->how, found->finding_count > 0 ? found->findings[0].text : "");
    if (k == 0 && found->verdict != AX_PROVED) fail_msg("%s", found->finding_count > 0 ? found->findings[0].text : found->how);
    if (k == 1 && (found->finding_count == 0 || strstr(found->findings[0].text, "waits for what point (0) has done") == NULL))
      fail_msg("%s", found->finding_count > 0 ? found->findings[0].text : found->how);
    ax_check_report_release(report);
    ax_program_release(program);
  }
}

/* What a slot holds from the block before is not read as the new block's. */
static AX_BODY(adds_later) {
  AX_IF (ax_lt(id(0), number(2))) ax_ref_store(y_of(in), ax_full(AX_F32, AX_DIMS(1, columns), 1.0));
  ax_ref_add(first_row(y_of(in)), row(1));
}

static void a_block_that_comes_begins_anew(void **state) {
  (void)state;
  const shape s = {"",        .body = adds_later, .x_map = by_first,          .y_map = by_first,
                   .rank = 1, .grid = {3},        .semantics = {AX_ARBITRARY}};
  ax_program *program = trace(&s);
  ax_check_report *report;
  TEST_OK(ax_check(program, NULL, &report));
  assert_int_equal(report->verdict, AX_WRONG);
  assert_string_equal(report->kernels[0].findings[0].kind, "read of unset memory");
  ax_check_report_release(report);
  ax_program_release(program);
}

static void what_holds_for_other_inputs_is_told(void **state) {
  (void)state;
  for (size_t k = 0; k < AX_COUNT(by_inputs); k++) {
    shape s = by_inputs[k];
    const int32_t *table = s.table != NULL ? s.table : each;
    s.given = true, s.table = NULL;
    ax_program *program = trace(&s);
    ax_check_report *report;
    const ax_host_array in[] = {{0}, {0}, ax_host_view(AX_S32, AX_DIMS(usual), table)};
    TEST_OK(ax_check(program, &(ax_check_options){.in = {AX_LIST(3, in)}}, &report));
    const ax_check_kernel *found = &report->kernels[0];
    if (getenv("AXLE_SHOW") != NULL)
      print_message("%s: %d, for %d: %s\n", s.name, found->verdict, found->proved_for, found->proved_for_why);
    if (s.found == NULL && (found->verdict != AX_PROVED || found->proved_for != s.for_))
      fail_msg("%s: %s", s.name, found->proved_for_why);
    if (s.found != NULL &&
        (found->verdict != AX_PROVED || found->proved_for != AX_INPUTS_THESE || strstr(found->proved_for_why, s.found) == NULL))
      fail_msg("%s: %s", s.name, found->proved_for_why);
    ax_check_report_release(report);
    ax_program_release(program);
  }
}

/* --- Accesses to the same bytes --- */

typedef struct touched {
  uint32_t strand, begin, end, colour;
  bool own, write, reads, may;
} touched;

/* How many dependences these have, one at each place. */
static uint32_t count_dependences(const touched *list, uint32_t count) {
  static const char places[8];
  ax_act_record record = {0};
  ax_touches touches = {0};
  ax_strand_access accesses[8];
  ax_dependences found = {.most = 8};
  const ax_act act = {.kind = AX_ACT_LOCAL};
  TEST_OK(ax_act_objects_add_agent(&record.objects, (ax_act_agent){.name = "core", .initial = true}));
  TEST_OK(ax_act_objects_add_region(&record.objects, (ax_act_region){.name = "x", .bytes = 16}));
  for (uint32_t k = 0; k < count; k++) {
    const touched *t = &list[k];
    TEST_OK(ax_act_record_step(&record, 0, &act, NULL));
    record.steps[k].act.location = &places[k];
    TEST_OK(ax_touches_add(&touches, 0, t->write, false, 1, &(ax_bytes){t->begin, t->end}));
    touches.touches[k].colour = t->colour;
    accesses[k] = (ax_strand_access){.store = AX_NONE,
                                     .step = k,
                                     .point = t->strand,
                                     .strand = t->strand,
                                     .own = t->own,
                                     .reads = t->reads,
                                     .may = t->may,
                                     .next = AX_NONE};
  }
  TEST_OK(ax_strands_judge_memory(&record, &touches, accesses, &found));
  const uint32_t dependences = found.count;
  if (dependences > 0) assert_true(found.items[0].byte_count > 0);
  TEST_OK(ax_dependences_add(&found, &record, (ax_dependence){.fault = AX_STRAND_WAITS, .object = 3, .earlier = AX_NONE}));
  assert_int_equal(found.count, dependences + 1);
  TEST_OK(ax_dependences_add(&found, &record, (ax_dependence){.fault = AX_STRAND_WAITS, .object = 3, .earlier = AX_NONE}));
  assert_int_equal(found.count, dependences + 1); /* the same again */
  ax_dependences_deinit(&found);
  ax_touches_deinit(&touches);
  ax_act_record_deinit(&record);
  return dependences;
}

#define COUNT(...) count_dependences((touched[]){__VA_ARGS__}, sizeof((touched[]){__VA_ARGS__}) / sizeof(touched))

static void own_memory_has_what_its_strand_has_written(void **state) {
  (void)state;
  const touched first = {.strand = 0, .end = 8, .own = true, .write = true}, reads = {.strand = 1, .end = 8, .own = true};
  touched own = first, part = first, may = first, other = first, pipeline = first, swap = first;
  own.strand = 1, part.strand = 1, part.begin = 4, may.strand = 1, may.may = true, other.strand = 2, swap.strand = 1,
  swap.reads = true;
  pipeline.strand = AX_NONE;
  assert_int_equal(COUNT(first, reads), 1);
  assert_int_equal(COUNT(first, own, reads), 0);
  assert_int_equal(COUNT(first, part, reads), 1);
  assert_int_equal(COUNT(first, may, reads), 1);
  assert_int_equal(COUNT(first, pipeline, reads), 0);
  assert_int_equal(COUNT(own, other, reads), 1);
  assert_int_equal(COUNT(first, swap), 1);
  assert_int_equal(COUNT(own, may, reads), 0);
  touched moved = first, as_well = reads, apart = reads;
  moved.colour = as_well.colour = 5, apart.colour = 6;
  assert_int_equal(COUNT(moved, as_well), 0);
  assert_int_equal(COUNT(moved, apart), 1);
  assert_int_equal(COUNT(first, moved, apart), 1);
}

static void shared_memory_is_of_one_strand_or_not_written(void **state) {
  (void)state;
  const touched writes = {.strand = 0, .end = 8, .write = true}, reads = {.strand = 1, .end = 8};
  touched own = reads, beside = writes, other = writes;
  own.strand = 0, beside.strand = 1, beside.begin = 8, beside.end = 12, other.strand = 1;
  assert_int_equal(COUNT(writes, own, writes), 0);
  assert_int_equal(COUNT(writes, beside), 0);
  assert_int_equal(COUNT(reads, own), 0);
  assert_int_equal(COUNT(writes, reads), 1);
  assert_int_equal(COUNT(reads, own, writes), 1);
  assert_int_equal(COUNT(own, reads, writes), 1);
  assert_int_equal(COUNT(writes, other), 1);
  touched red = writes, red_too = other, blue = other;
  red.colour = red_too.colour = 5, blue.colour = 6;
  assert_int_equal(COUNT(red, red_too), 0);
  assert_int_equal(COUNT(red, blue), 1);
  blue.strand = 0;
  assert_int_equal(COUNT(red, blue, red_too), 1);
}

/* --- Counts --- */

typedef struct counted {
  uint32_t agent, strand;
  ax_act_kind kind;
  int64_t amount;
} counted;

static uint32_t count_faults(const counted *list, uint32_t count, bool several) {
  ax_act_record record = {0};
  ax_dependences found = {.most = 8};
  uint32_t strands[8];
  for (uint32_t a = 0; a < 3; a++)
    TEST_OK(ax_act_objects_add_agent(&record.objects, (ax_act_agent){.name = "core", .device = a, .initial = true}));
  TEST_OK(ax_act_objects_add_semaphore(&record.objects, (ax_act_semaphore){.name = "done"}));
  TEST_OK(ax_act_objects_add_barrier(&record.objects, (ax_act_barrier){.name = "done", .arrivals = 2}));
  for (uint32_t k = 0; k < count; k++) {
    const ax_act act = {.kind = list[k].kind, .amount = list[k].amount};
    TEST_OK(ax_act_record_step(&record, list[k].agent, &act, NULL));
    strands[k] = list[k].strand;
  }
  TEST_OK(ax_strands_judge_counts(&record, strands, strands, 2, several, &found));
  const uint32_t faults = found.count;
  ax_dependences_deinit(&found);
  ax_act_record_deinit(&record);
  return faults;
}

#define FAULTS(several, ...) count_faults((counted[]){__VA_ARGS__}, sizeof((counted[]){__VA_ARGS__}) / sizeof(counted), several)

static void each_strand_has_counts_of_its_own(void **state) {
  (void)state;
  const counted signal = {0, 0, AX_ACT_SIGNAL, 1}, wait = {0, 0, AX_ACT_WAIT, 1}, other = {0, 1, AX_ACT_WAIT, 1},
                after = {0, 1, AX_ACT_SIGNAL, 1}, arrive = {0, 0, AX_ACT_ARRIVE, 0}, arrives = {0, 1, AX_ACT_ARRIVE, 0},
                await = {0, 0, AX_ACT_AWAIT, 1}, read = {0, 1, AX_ACT_READ, 0};
  assert_int_equal(FAULTS(false, signal, wait), 0);
  assert_int_equal(FAULTS(false, signal, other), 1);
  assert_int_equal(FAULTS(true, signal, other), 1);
  assert_int_equal(FAULTS(true, signal, other, after, wait), 1); /* alone the second waits for ever */
  assert_int_equal(FAULTS(false, signal, read, wait), 1);
  assert_int_equal(FAULTS(false, signal, wait, read), 0);
  assert_int_equal(FAULTS(false, arrive, arrive, await), 0);
  assert_int_equal(FAULTS(false, arrive, arrives, await), 1);
  assert_int_equal(FAULTS(true, arrive, arrives, await), 1);
  /* Two neighbours signal device 0; two signals of one of them have come first. */
  const counted one = {1, 0, AX_ACT_SIGNAL, 1}, ones = {1, 1, AX_ACT_SIGNAL, 1}, two = {2, 0, AX_ACT_SIGNAL, 1},
                twos = {2, 1, AX_ACT_SIGNAL, 1}, both = {0, 0, AX_ACT_WAIT, 2}, again = {0, 1, AX_ACT_WAIT, 2};
  assert_int_equal(FAULTS(false, one, ones, both, two, twos, again), 1);
  assert_int_equal(FAULTS(true, one, ones, both, two, twos, again), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(each_that_is_right_is_proved),        cmocka_unit_test(each_fault_is_found),
      cmocka_unit_test(what_holds_for_other_inputs_is_told), cmocka_unit_test(a_block_that_comes_begins_anew),
      cmocka_unit_test(points_of_devices_meet_their_like),   cmocka_unit_test(own_memory_has_what_its_strand_has_written),
      cmocka_unit_test(each_strand_has_counts_of_its_own),   cmocka_unit_test(shared_memory_is_of_one_strand_or_not_written)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
