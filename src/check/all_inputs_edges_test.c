/* Kernels that are right for the inputs given and wrong for others, at the edges of what proofs for all inputs follow: none of them is
   claimed for the input with which it goes wrong. */
#include <string.h>

#include "axle/axle.h"
#include "axle/check.h"
#include "support/cmocka.h"
#include "support/tensor.h"

enum { TABLE, CELLS, OUT, MEMORY, DMA, REFS };
enum { entries = 8, cells = 16 };

static ax_value number(int64_t n) { return ax_full_i64(AX_S32, AX_DIMS(), n); }
static ax_value me(void) { return ax_axis_index("w"); }
static ax_value entry(const ax_value *in, int64_t k) { return ax_ref_load(ax_ref_at(in[TABLE], number(k))); }
static ax_value clamp(ax_value x, int64_t most) { return ax_max(ax_min(x, number(most)), number(0)); }
static void put(const ax_value *in, ax_value at) { ax_ref_store(ax_ref_at(in[OUT], at), number(1)); }
static AX_BODY(nothing) { (void)in, (void)out; }

/* Core 0 stores at q + 1, core 1 at p: apart if p and q are one number. */
static void put_both(const ax_value *in, ax_value p, ax_value q) { put(in, ax_select_n(ax_eq(me(), number(0)), p, ax_add(q, number(1)))); }

static AX_BODY(strided) {
  const ax_value x = clamp(entry(in, 0), 2);
  const ax_value dense = ax_ref_load(ax_ref_slice(in[TABLE], AX_VALUES(x), AX_DIMS(2)));
  const ax_value apart = ax_ref_load(ax_ref_strided_slice(in[TABLE], AX_VALUES(x), AX_DIMS(2), AX_DIMS(2)));
  put_both(in, ax_dynamic_at(dense, number(1), 0), ax_dynamic_at(apart, number(1), 0));
}

/* The start is clamped by the size. */
static AX_BODY(of_two_sizes) {
  const ax_value table = ax_ref_load(in[TABLE]), x = entry(in, 0);
  put_both(in, ax_reshape(ax_dynamic_slice(table, AX_VALUES(x), AX_DIMS(1)), AX_DIMS()),
           ax_dynamic_at(ax_dynamic_slice(table, AX_VALUES(x), AX_DIMS(2)), number(0), 0));
}

/* while i < bound: put i; i += step; step = next; next = 4 */
static AX_BODY(is_below) { out[0] = ax_lt(in[0], *(const ax_value *)context); }
typedef struct around {
  ax_value bound; /* first: is_below reads it */
  const ax_value *refs;
} around;
static AX_BODY_OF(carried_round, const around, a) {
  put(a->refs, in[0]);
  out[0] = ax_add(in[0], in[1]);
  out[1] = in[2];
  out[2] = number(4);
}
static AX_BODY(with_carried_step) {
  const ax_value *refs = context;
  const around a = {clamp(entry(refs, 0), 8), refs};
  const ax_value begin[] = {number(4), number(1), ax_sub(number(0), clamp(entry(refs, 1), 4))};
  ax_value end[3];
  ax_while(AX_CLOSURE(is_below, 3, 1, (void *)&a), AX_CLOSURE(carried_round, 3, 3, (void *)&a), begin, end);
}
static AX_BODY(put_two) { put(context, number(2)); }
static AX_BODY(carried_step) {
  ax_if(ax_eq(me(), number(0)), AX_CLOSURE(put_two, 0, 0, (void *)in), AX_CLOSURE(with_carried_step, 0, 0, (void *)in), NULL, NULL);
}

/* What was never written goes on by one cell in each round. */
static AX_BODY(chain_round) {
  const ax_value *refs = context;
  (void)in, (void)out;
  for (int k = 8; k > 0; k--) {
    const ax_value done = ax_ref_at(refs[DMA], number(0)), to = ax_ref_at(refs[MEMORY], number(k));
    ax_copy_start(ax_ref_at(refs[MEMORY], number(k - 1)), to, &(ax_copy_options){.received = &done});
    ax_copy_wait(done, to);
  }
}
static AX_BODY(chain) {
  for (int k = 1; k <= 8; k++) ax_ref_store(ax_ref_at(in[MEMORY], number(k)), number(k));
  (ax_fori_loop)(number(0), clamp(entry(in, 0), 20), AX_CLOSURE(chain_round, 1, 0, (void *)in), 0, NULL, 0, NULL);
  put(in, ax_mul(ax_ref_load(ax_ref_at(in[MEMORY], number(8))), number(0)));
}

/* --- Checking --- */

typedef struct kernel {
  const char *name;
  ax_function body;
  int64_t cores;
  int32_t wrong[entries]; /* the table with which it goes wrong */
} kernel;

static AX_BODY_OF(program, const kernel, k) {
  const ax_core_mesh mesh = {.core = "core", .mesh = {.count = 1, .axis = {{.name = "w", .size = k->cores}}}, .threads = "w"};
  const ax_scratch scratch[] = {{.type = AX_SMEM(AX_S32, 64)}, {.type = ax_dma_semaphore_type(AX_DIMS(4))}};
  const uint32_t aliases[1][2] = {{1, 0}};
  const ax_kernel_options options = {.scratch = {AX_LIST(2, scratch)}, .aliases = {AX_LIST(1, aliases)}};
  ax_mpmd_map(AX_LIST(1, &mesh), &AX_FN(k->body, REFS, 0), &options, AX_VALUES(in[0], in[1]), AX_TYPES(AX_TYPE(AX_S32, cells)), out);
}

/* The claim for table 0, and the verdict for the other. */
static void check(const kernel *k) {
  static const int32_t zeros[entries], data[cells];
  const ax_type types[] = {AX_TYPE(AX_S32, entries), AX_TYPE(AX_S32, cells)};
  const int32_t *tables[] = {zeros, k->wrong};
  ax_program *traced;
  TEST_OK(ax_trace(AX_CLOSURE(program, 2, 1, (void *)k), types, &traced));
  for (int t = 0; t < 2; t++) {
    ax_host_array in[] = {ax_host_view(AX_S32, AX_DIMS(entries), tables[t]), ax_host_view(AX_S32, AX_DIMS(cells), data)};
    ax_check_report *report;
    TEST_OK(ax_check(traced, &(ax_check_options){.in = {AX_LIST(2, in)}}, &report));
    if (t == 0 && (report->verdict != AX_PROVED || report->kernels[0].proved_for != AX_INPUTS_THESE))
      fail_msg("%s: verdict %d for %d", k->name, (int)report->verdict, (int)report->kernels[0].proved_for);
    if (t == 1 && report->verdict != AX_WRONG) fail_msg("%s: verdict %d of what is wrong", k->name, (int)report->verdict);
    ax_check_report_release(report);
  }
  ax_program_release(traced);
}

static void wrong_for_others(void **state) {
  static const kernel kernels[] = {{"strided", strided, 2, {1, 0, 5, 4}},
                                   {"of two sizes", of_two_sizes, 2, {7, 0, 0, 0, 0, 0, 6, 7}},
                                   {"carried step", carried_step, 2, {6, 3}},
                                   {"chain", chain, 1, {9}}};
  (void)state;
  for (size_t k = 0; k < AX_COUNT(kernels); k++) check(&kernels[k]);
}

/* --- A kernel in a program that is called twice, with a constant table first --- */

static AX_BODY(scattered) { put(in, clamp(ax_ref_load(ax_ref_at(in[TABLE], me())), cells - 1)); }
static const kernel scattering = {"scattered", scattered, 2, {5, 5}};
static AX_BODY(once) { program(in, out, (void *)&scattering); }
static AX_BODY(twice) {
  static const int32_t known[entries] = {0, 1, 2, 3, 4, 5, 6, 7};
  const ax_type type = AX_TYPE(AX_S32, entries);
  const ax_value constant = ax_constant(&type, known), here[] = {constant, in[1]};
  ax_value first, second;
  ax_closed_call(AX_FN(once, 2, 1), here, &first);
  ax_closed_call(AX_FN(once, 2, 1), in, &second);
  out[0] = ax_add(first, second);
}

static void each_call_counts(void **state) {
  static const int32_t apart[entries] = {0, 1}, data[cells];
  const ax_type types[] = {AX_TYPE(AX_S32, entries), AX_TYPE(AX_S32, cells)};
  const int32_t *tables[] = {apart, scattering.wrong};
  ax_program *traced;
  (void)state;
  TEST_OK(ax_trace(AX_FN(twice, 2, 1), types, &traced));
  for (int t = 0; t < 2; t++) {
    ax_host_array in[] = {ax_host_view(AX_S32, AX_DIMS(entries), tables[t]), ax_host_view(AX_S32, AX_DIMS(cells), data)};
    ax_check_report *report;
    TEST_OK(ax_check(traced, &(ax_check_options){.in = {AX_LIST(2, in)}, .every_visit = true}, &report));
    assert_int_equal(report->verdict, t == 0 ? AX_PROVED : AX_WRONG);
    assert_int_equal(report->kernels[0].proved_for, AX_INPUTS_THESE);
    ax_check_report_release(report);
  }
  ax_program_release(traced);
}

/* --- Predicates of many parts --- */

static AX_BODY(put_first) { put(context, number(0)); }
static AX_BODY(deep) { /* p and p, 60 times; and not p, 3,000 times */
  ax_value p = ax_gt(entry(in, 0), number(3));
  for (int k = 0; k < 60; k++) p = ax_and(p, p);
  for (int k = 0; k < 3000; k++) p = ax_not(p);
  ax_if(p, AX_CLOSURE(put_first, 0, 0, (void *)in), AX_FN(nothing, 0, 0), NULL, NULL);
}
static AX_BODY(never_taken) { out[0] = ax_lt(ax_mul(in[0], number(0)), number(10)); }
static AX_BODY(as_it_is) { out[0] = in[0]; }
static AX_BODY(endless) {
  const ax_value zero = number(0);
  ax_value end;
  (void)in, (void)out, (void)context;
  ax_while(AX_FN(never_taken, 1, 1), AX_FN(as_it_is, 1, 1), &zero, &end);
}
static AX_BODY(endless_if_large) {
  ax_if(ax_gt(entry(in, 0), number(5)), AX_FN(endless, 0, 0), AX_FN(nothing, 0, 0), NULL, NULL);
}

/* They come to an end. */
static void much_to_look_at(void **state) {
  static const ax_function bodies[] = {deep, endless_if_large};
  static const int32_t zeros[entries], data[cells];
  (void)state;
  for (size_t b = 0; b < AX_COUNT(bodies); b++) {
    const kernel k = {"", bodies[b], 1, {0}};
    const ax_type types[] = {AX_TYPE(AX_S32, entries), AX_TYPE(AX_S32, cells)};
    ax_host_array in[] = {ax_host_view(AX_S32, AX_DIMS(entries), zeros), ax_host_view(AX_S32, AX_DIMS(cells), data)};
    ax_program *traced;
    ax_check_report *report;
    TEST_OK(ax_trace(AX_CLOSURE(program, 2, 1, (void *)&k), types, &traced));
    TEST_OK(ax_check(traced, &(ax_check_options){.in = {AX_LIST(2, in)}}, &report));
    assert_int_equal(report->verdict, AX_PROVED);
    ax_check_report_release(report);
    ax_program_release(traced);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(wrong_for_others), cmocka_unit_test(each_call_counts), cmocka_unit_test(much_to_look_at)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
