/* Copies out of fast memory that read stores which are not committed: found where the kernel's memory needs commits, and only there. */
#include "axle/check.h"

#include <string.h>

#include "axle/axle.h"
#include "support/cmocka.h"
#include "support/tensor.h"

/* What a body has: operand, result, and scratch of the kernel. */
enum { X, Y, SLOT, OTHER, DONE, REFS };

typedef struct kernel {
  ax_function body;
  const char *target;
} kernel;

static AX_BODY(call) {
  const kernel *k = context;
  const ax_core_mesh one = {.core = "core"};
  const ax_scratch scratch[] = {
      {.type = AX_VMEM(AX_F32, 8)}, {.type = AX_VMEM(AX_F32, 8)}, {.type = ax_dma_semaphore_type(AX_DIMS())}};
  const ax_kernel_options options = {.scratch = {AX_LIST(AX_COUNT(scratch), scratch)}, .target = k->target};
  ax_mpmd_map(AX_LIST(1, &one), &AX_FN(k->body, REFS, 0), &options, AX_LIST(1, in), AX_TYPES(AX_TYPE(AX_F32, 8)), out);
}

static const char gpu[] = "vmem called=SMEM bytes=64KiB align=16; smem within=vmem", tpu[] = "vmem called=VMEM bytes=64KiB align=16";

/* A missing commit is found, or the kernel is proved; in each way to look. */
static void expect(const char *name, ax_function body, const char *target, bool found) {
  for (int way = 0; way < 3; way++) {
    ax_program *program;
    ax_check_report *report;
    const ax_type type = AX_TYPE(AX_F32, 8);
    TEST_OK(ax_trace(AX_CLOSURE(call, 1, 1, &(kernel){body, target}), &type, &program));
    TEST_OK(ax_check(program, &(ax_check_options){.explore = way == 1, .exhaustive = way == 2}, &report));
    ax_program_release(program);
    const ax_check_kernel *k = &report->kernels[0];
    if (report->verdict != (found ? AX_WRONG : AX_PROVED))
      fail_msg("%s, way %d: verdict %d: %s; %s", name, way, report->verdict, k->how, k->finding_count > 0 ? k->findings[0].text : "");
    if (found) {
      assert_int_equal(k->finding_count, 1);
      assert_string_equal(k->findings[0].kind, "missing commit");
      assert_non_null(strstr(k->findings[0].text, "reads what its core has stored (ref_"));
      assert_non_null(strstr(k->findings[0].text, "scratch 0["));
    }
    ax_check_report_release(report);
  }
}

static ax_value half(ax_value ref, int64_t from) {
  const ax_value start = ax_integer(from);
  return ax_ref_slice(ref, &start, AX_DIMS(4));
}
static void fill(const ax_value *refs) { ax_ref_store(refs[SLOT], ax_full(AX_F32, AX_DIMS(8), 2)); }
static void copies(const ax_value *refs, ax_value from, ax_value to) {
  ax_copy_start(from, to, &(ax_copy_options){.received = &refs[DONE]});
  ax_copy_wait(refs[DONE], to);
}
static void copies_in_group(const ax_value *refs) {
  ax_copy_start(refs[SLOT], refs[Y], &(ax_copy_options){.grouped = true});
  ax_copy_commit_group();
  ax_copy_wait_groups(0, false);
}

static AX_BODY(plain) {
  fill(in);
  copies(in, in[SLOT], in[Y]);
}
static AX_BODY(plain_committed) {
  fill(in);
  ax_commit_smem();
  copies(in, in[SLOT], in[Y]);
}
static AX_BODY(grouped) {
  fill(in);
  copies_in_group(in);
}
static AX_BODY(grouped_committed) {
  fill(in);
  ax_commit_smem();
  copies_in_group(in);
}

/* Half is stored again after the commit; the copy is of the other half, or of all. */
static void half_late(const ax_value *refs, int64_t stored) {
  fill(refs);
  ax_commit_smem();
  ax_ref_store(half(refs[SLOT], stored), ax_full(AX_F32, AX_DIMS(4), 3));
  copies(refs, half(refs[SLOT], 4), half(refs[Y], 4));
  ax_commit_smem();
  copies(refs, half(refs[SLOT], 0), half(refs[Y], 0));
}
static AX_BODY(same_half) { half_late(in, 4); }
static AX_BODY(other_half) { half_late(in, 0); }

static AX_BODY(adds) {
  copies(in, in[X], in[SLOT]);
  ax_ref_add(in[SLOT], ax_full(AX_F32, AX_DIMS(8), 1));
  copies(in, in[SLOT], in[Y]);
}
/* What the core has stored is written over by a copy, whose bytes these are then. */
static AX_BODY(overwritten) {
  fill(in);
  copies(in, in[X], in[SLOT]);
  copies(in, in[SLOT], in[Y]);
}
/* In two halves; and the one half alone, where the other is still what the core has stored. */
static AX_BODY(overwritten_in_halves) {
  fill(in);
  copies(in, half(in[X], 0), half(in[SLOT], 0));
  copies(in, half(in[X], 4), half(in[SLOT], 4));
  copies(in, in[SLOT], in[Y]);
}
static AX_BODY(overwritten_half) {
  fill(in);
  copies(in, half(in[X], 0), half(in[SLOT], 0));
  copies(in, in[SLOT], in[Y]);
}
/* A copy never waits for the core's stores elsewhere; a store that is masked off is none; one that a branch leaves out likewise. */
static AX_BODY(elsewhere) {
  copies(in, in[X], in[SLOT]);
  ax_ref_store(in[OTHER], ax_full(AX_F32, AX_DIMS(8), 1));
  copies(in, in[SLOT], in[Y]);
}
static AX_BODY(masked_off) {
  copies(in, in[X], in[SLOT]);
  ax_ref_store_masked(in[SLOT], ax_lt(ax_full(AX_F32, AX_DIMS(8), 1), ax_real(0)), ax_full(AX_F32, AX_DIMS(8), 1));
  copies(in, in[SLOT], in[Y]);
}
static AX_BODY(is_no_copy) {
  fill(in);
  ax_ref_store(in[Y], ax_ref_load(in[SLOT]));
}
static AX_BODY(step) {
  const ax_value *refs = context;
  fill(refs);
  copies(refs, refs[SLOT], refs[Y]);
  ax_commit_smem(); /* too late, in each step */
}
static AX_BODY(in_loop) { ax_fori_loop(ax_integer(0), ax_integer(2), AX_CLOSURE(step, 1, 0, in), NULL, NULL); }

typedef struct named {
  const char *name;
  ax_function body;
} named;
#define NAMED(body) {#body, body}

static void test_found(void **state) {
  (void)state;
  const named missing[] = {NAMED(plain), NAMED(grouped), NAMED(same_half), NAMED(overwritten_half),
                           NAMED(adds),  NAMED(in_loop)};
  for (uint32_t k = 0; k < AX_COUNT(missing); k++) expect(missing[k].name, missing[k].body, gpu, true);
  expect("grouped", grouped, NULL, true); /* groups of copies are of GPUs */
}

static void test_not_found(void **state) {
  (void)state;
  const named right[] = {NAMED(plain_committed), NAMED(grouped_committed), NAMED(overwritten), NAMED(overwritten_in_halves),
                         NAMED(elsewhere),       NAMED(masked_off),        NAMED(is_no_copy),  NAMED(other_half)};
  for (uint32_t k = 0; k < AX_COUNT(right); k++) {
    expect(right[k].name, right[k].body, gpu, false);
    expect(right[k].name, right[k].body, NULL, false);
  }
  const named anything[] = {NAMED(plain), NAMED(grouped), NAMED(same_half), NAMED(adds), NAMED(in_loop)};
  for (uint32_t k = 0; k < AX_COUNT(anything); k++) expect(anything[k].name, anything[k].body, tpu, false);
  expect("plain", plain, NULL, false);
  expect("adds", adds, NULL, false);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_found), cmocka_unit_test(test_not_found)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
