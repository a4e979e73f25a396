/* ax_check on kernels: what is right is proved, and each fault is found with a schedule that shows it; exploring says the same. */
#include "axle/check.h"

#include <stdlib.h>
#include <string.h>

#include "axle/axle.h"
#include "support/cmocka.h"
#include "support/tensor.h"

static const ax_core_mesh one_core = {.core = "tensorcore"};
enum { devices = 3 };

/* What is wrong with the ring below. */
typedef enum slip {
  RIGHT,
  NO_BARRIER,      /* the block may arrive before the right one is in the kernel */
  WRONG_NEIGHBOUR, /* likewise: the left one says that it is there, the block goes to the right one */
  NO_WAIT,         /* the result is read while it comes */
  SIGNAL_TWICE,    /* the barrier semaphore is not 0 at the end */
  WAIT_TOO_MUCH,   /* for bytes that nobody sends */
  REUSE,           /* the source is written while it is read */
  OUT_OF_BOUNDS,
  UNSET,
  SLIPS
} slip;

static ax_value left_of(ax_value me) {
  return ax_where(ax_eq(me, ax_integer(0)), ax_integer(devices - 1), ax_sub(me, ax_integer(1)));
}

static ax_value right_of(ax_value me) {
  ax_value next = ax_add(me, ax_integer(1));
  return ax_where(ax_eq(next, ax_integer(devices)), ax_integer(0), next);
}

/* in: x, out, slot, sent, received. Each sends x + 1 to the slot of the device on its right, once that has said that it is there,
   and gives what comes. */
static AX_BODY(ring) {
  const slip wrong = *(const slip *)context;
  ax_value right = right_of(ax_axis_index("d")), own = ax_ref_at(in[2], ax_integer(0)), other = ax_ref_at(in[2], ax_integer(1));
  ax_value left = wrong == WRONG_NEIGHBOUR ? right : left_of(ax_axis_index("d"));
  const ax_target_core to = {.axes = "d", .coordinates = {AX_VALUES(right)}},
                       back = {.axes = "d", .coordinates = {AX_VALUES(left)}};
  ax_value barrier = ax_barrier_semaphore();
  if (wrong == OUT_OF_BOUNDS) own = ax_ref_at(in[2], ax_add(ax_axis_index("d"), ax_integer(1))), other = own;
  if (wrong != NO_BARRIER) ax_semaphore_signal(barrier, ax_integer(wrong == SIGNAL_TWICE ? 2 : 1), &back);
  if (wrong != NO_BARRIER) ax_semaphore_wait(barrier, ax_integer(1));
  if (wrong != UNSET) ax_ref_store(own, ax_add(ax_ref_load(in[0]), ax_real(1)));
  ax_copy_start(own, other, &(ax_copy_options){.received = (ax_value *)&in[4], .sent = (ax_value *)&in[3], .to = &to});
  if (wrong == REUSE) ax_ref_store(own, ax_ref_load(in[0]));
  ax_copy_wait(in[3], own);
  if (wrong != NO_WAIT) ax_copy_wait(in[4], wrong == WAIT_TOO_MUCH ? in[2] : other);
  ax_ref_store(in[1], ax_ref_load(wrong == NO_WAIT ? own : other));
  if (wrong == NO_WAIT) ax_ref_store(other, ax_ref_load(in[0]));
}

static AX_BODY(kernel) {
  const ax_scratch scratch[] = {
      {.type = AX_VMEM(AX_F32, 2, 2)}, {.type = ax_dma_semaphore_type(AX_DIMS())}, {.type = ax_dma_semaphore_type(AX_DIMS())}};
  const ax_kernel_options options = {.name = "ring", .scratch = {AX_LIST(3, scratch)}};
  ax_mpmd_map(AX_LIST(1, &one_core), &AX_CLOSURE(ring, 5, 0, context), &options, AX_LIST(1, in), AX_TYPES(AX_TYPE(AX_F32, 2)), out);
}

static AX_BODY(whole) {
  const ax_mesh mesh = {.count = 1, .axis = {{.name = "d", .size = devices}}};
  ax_shard_map(&mesh, "d -> d", AX_CLOSURE(kernel, 1, 1, context), in, out);
}

static ax_check_report *checked(slip wrong, const ax_check_options *options) {
  ax_program *program;
  ax_check_report *report;
  const ax_type type = AX_TYPE(AX_F32, 2 * devices);
  TEST_OK(ax_trace(AX_CLOSURE(whole, 1, 1, &wrong), &type, &program));
  TEST_OK(ax_check(program, options, &report));
  ax_program_release(program);
  assert_int_equal(report->kernel_count, 1);
  return report;
}

static void test_slips(void **state) {
  (void)state;
  static const char *const kinds[SLIPS] = {
      [NO_BARRIER] = "scope",       [WRONG_NEIGHBOUR] = "scope", [NO_WAIT] = "data race",           [SIGNAL_TWICE] = "semaphore",
      [WAIT_TOO_MUCH] = "deadlock", [REUSE] = "data race",       [OUT_OF_BOUNDS] = "out of bounds", [UNSET] = "unset"};
  for (slip wrong = RIGHT; wrong < SLIPS; wrong++) {
    ax_check_report *report = checked(wrong, NULL);
    const ax_check_kernel *k = &report->kernels[0];
    if (getenv("AXLE_SHOW") != NULL) {
      print_message("--- %d: %d, %s; %s\n", wrong, report->verdict, k->how, report->stopped);
      for (uint32_t i = 0; i < k->finding_count; i++)
        print_message("%s\nschedule %s\n%s\n", k->findings[i].text, k->findings[i].schedule, k->findings[i].picture);
    }
    assert_string_equal(k->name, "ring");
    if (kinds[wrong] == NULL) {
      assert_int_equal(report->verdict, AX_PROVED);
      assert_int_equal(k->finding_count, 0);
    } else {
      bool found = false;
      assert_int_equal(report->verdict, AX_WRONG);
      for (uint32_t i = 0; i < k->finding_count; i++) found = found || strstr(k->findings[i].kind, kinds[wrong]) != NULL;
      if (!found)
        fail_msg("slip %d: no finding is a %s; the first is: %s", wrong, kinds[wrong],
                 k->finding_count > 0 ? k->findings[0].text : "none");
    }
    ax_check_report_release(report);
  }
}

/* Going through all schedules finds the same. */
static void test_explored(void **state) {
  (void)state;
  for (slip wrong = RIGHT; wrong < SLIPS; wrong++) {
    ax_check_report *report = checked(wrong, NULL), *explored = checked(wrong, &(ax_check_options){.explore = true});
    assert_int_equal(report->verdict, explored->verdict);
    if (wrong == RIGHT) assert_int_equal(explored->kernels[0].outcomes, 1);
    assert_true(explored->kernels[0].states > 0);
    ax_check_report_release(report);
    ax_check_report_release(explored);
  }
}

static void test_replay(void **state) {
  (void)state;
  ax_check_report *report = checked(REUSE, NULL);
  assert_true(report->kernels[0].finding_count > 0);
  ax_check_report *again = checked(REUSE, &(ax_check_options){.replay = report->kernels[0].findings[0].schedule});
  assert_int_equal(again->kernels[0].finding_count, 1);
  assert_non_null(strstr(again->kernels[0].findings[0].picture, "copy"));
  ax_check_report_release(report);
  ax_check_report_release(again);
}

/* --- Pictures --- */

/* The pixels that a text takes in the picture's font, whose letters are 0.602 of its 11 pixels wide. An entity is one letter. */
static double text_width(const char *text) {
  uint32_t letters = 0;
  for (; *text != '<'; text++, letters++)
    if (*text == '&') text = strchr(text, ';');
  return 0.602 * 11 * letters;
}

static double number_at(const char *at, const char *name) {
  const char *found = strstr(at, name);
  assert_non_null(found);
  return strtod(found + strlen(name), NULL);
}

/* Each step's words end inside its box, each agent's name inside the picture. Returns how many boxes there are. */
static uint32_t check_picture(const char *svg) {
  const double width = number_at(svg, " width=\"");
  uint32_t boxes = 0;
  for (const char *at = svg; (at = strstr(at, "<text ")) != NULL; at++)
    assert_true(number_at(at, " x=\"") + text_width(strchr(at, '>') + 1) <= width);
  for (const char *at = svg; (at = strstr(at, "<rect x=\"")) != NULL; at++) {
    const char *text = strstr(at, "<text ");
    assert_non_null(text);
    const double end = number_at(text, " x=\"") + text_width(strchr(text, '>') + 1);
    if (end > number_at(at, " x=\"") + number_at(at, " width=\"")) fail_msg("these words leave their box: %.80s", text);
    boxes++;
  }
  return boxes;
}

static void words_stay_in_their_boxes(void **state) {
  (void)state;
  uint32_t boxes = 0;
  for (slip wrong = NO_BARRIER; wrong < SLIPS; wrong++) {
    ax_check_report *report = checked(wrong, NULL);
    const ax_check_kernel *k = &report->kernels[0];
    for (uint32_t i = 0; i < k->finding_count; i++) boxes += check_picture(k->findings[i].svg);
    ax_check_report_release(report);
  }
  assert_true(boxes > 50);
}

/* A kernel that is to be interpreted, where no wait waits, is checked as any other. */
static AX_BODY_OF(waits_for, const int64_t, amount) { /* x, y, semaphore */
  ax_semaphore_signal(in[2], ax_integer(1), NULL);
  ax_semaphore_wait(in[2], ax_integer(*amount));
  ax_ref_store(in[1], ax_mul(ax_ref_load(in[0]), ax_real(2)));
}

static AX_BODY_OF(interpreted, const int64_t, amount) {
  const ax_scratch semaphore = {.type = ax_semaphore_type(AX_DIMS())};
  const ax_kernel kernel = {.outs = {AX_TYPES(AX_TYPE(AX_F32, 4))}, .options = {.scratch = {1, &semaphore}, .interpret = true}};
  ax_kernel_call(&kernel, AX_CLOSURE(waits_for, 3, 0, (void *)amount), AX_LIST(1, in), AX_LIST(1, out));
}

static void interpreted_kernels(void **state) {
  (void)state;
  for (int64_t amount = 1; amount <= 2; amount++) {
    const ax_type type = AX_TYPE(AX_F32, 4);
    ax_program *program;
    ax_check_report *report;
    TEST_OK(ax_trace(AX_CLOSURE(interpreted, 1, 1, &amount), AX_LIST(1, &type), &program));
    TEST_OK(ax_check(program, NULL, &report));
    assert_int_equal(report->verdict, amount == 1 ? AX_PROVED : AX_WRONG);
    ax_check_report_release(report);
    ax_program_release(program);
  }
}

/* Two cores that copy their rows, and what each leaves out. Findings that follow from another are not told, and others are. */
typedef enum cut { CUT_NOTHING, NOT_AWAITED, AND_LEAKS, AND_RACES, STOPS, STOPS_AND_NOT_AWAITED, CUTS } cut;

static AX_BODY(copies_row) {
  const cut what = *(const cut *)context;
  const ax_value me = ax_axis_index("core"), from = ax_ref_at(in[0], me), to = ax_ref_at(in[1], me);
  ax_value done = ax_ref_at(in[2], me);
  ax_copy_start(from, to, &(ax_copy_options){.received = &done});
  if (what == AND_RACES) ax_ref_store(to, ax_ref_load(from));
  if (what == AND_LEAKS)
    AX_IF (ax_eq(me, ax_integer(0))) ax_semaphore_signal(in[3], ax_integer(1), NULL);
  if (what == STOPS) (void)ax_ref_load(ax_ref_at(in[0], ax_add(me, ax_integer(1)))); /* the second core */
  if (what == STOPS_AND_NOT_AWAITED)
    AX_IF (ax_eq(me, ax_integer(1))) (void)ax_ref_load(ax_ref_at(in[0], ax_add(me, ax_integer(1))));
  if (what == CUT_NOTHING || what == STOPS) ax_copy_wait(done, to);
}

static AX_BODY(copies_rows) {
  const ax_core_mesh mesh = {.core = "core", .mesh = {.count = 1, .axis = {{.name = "core", .size = 2}}}};
  const ax_scratch scratch[] = {{.type = ax_dma_semaphore_type(AX_DIMS(2))}, {.type = ax_semaphore_type(AX_DIMS())}};
  const ax_kernel_options options = {.name = "rows", .scratch = {AX_LIST(2, scratch)}};
  ax_mpmd_map(AX_LIST(1, &mesh), &AX_CLOSURE(copies_row, 4, 0, context), &options, AX_LIST(1, in), AX_TYPES(AX_TYPE(AX_F32, 2, 3)),
              out);
}

static void test_what_follows(void **state) {
  (void)state;
  static const char *const kinds[CUTS][2] = {{NULL},
                                             {"copy not awaited"},
                                             {"copy not awaited", "leaked semaphore"},
                                             {"copy not awaited", "data race"},
                                             {"out of bounds"},
                                             {"out of bounds", "data race"}};
  const ax_type type = AX_TYPE(AX_F32, 2, 3);
  for (cut what = CUT_NOTHING; what < CUTS; what++)
    for (int explore = 0; explore < 2; explore++) {
      ax_program *program;
      ax_check_report *report;
      TEST_OK(ax_trace(AX_CLOSURE(copies_rows, 1, 1, &what), &type, &program));
      TEST_OK(ax_check(program, &(ax_check_options){.explore = explore}, &report));
      const ax_check_kernel *k = &report->kernels[0];
      for (uint32_t i = 0; i < 3; i++) {
        const char *expected = i < 2 ? kinds[what][i] : NULL, *found = i < k->finding_count ? k->findings[i].kind : NULL;
        if ((expected == NULL) != (found == NULL) || (found != NULL && strcmp(found, expected) != 0))
          fail_msg("cut %d, explored %d: finding %u is %s", what, explore, i, found != NULL ? k->findings[i].text : "not there");
      }
      ax_check_report_release(report);
      ax_program_release(program);
    }
}

/* A table says which block of eight rows a kernel takes, the last of which sticks out: one beyond it is told as a whole. */
static AX_BODY_OF(listed_block, const ax_value, table) {
  (void)in;
  out[0] = ax_dynamic_at(table[0], ax_integer(0), 0);
}
static AX_BODY(first_block) { out[0] = in[0]; }
static AX_BODY(copies_block) { ax_ref_store(in[1], ax_ref_load(in[0])); }
static AX_BODY(takes_block) {
  const ax_block_spec x = {.block = {AX_DIMS(8)}, .index_map = listed_block, .context = (void *)&in[1]},
                      y = {.block = {AX_DIMS(8)}, .index_map = first_block};
  const ax_kernel kernel = {.grid = {AX_DIMS(1)},
                            .in_specs = {AX_BLOCK_SPECS(x)},
                            .out_specs = {AX_BLOCK_SPECS(y)},
                            .outs = {AX_TYPES(AX_TYPE(AX_F32, 8))}};
  ax_kernel_call(&kernel, AX_FN(copies_block, 2, 0), AX_LIST(1, in), out);
}

static void blocks_out_of_bounds_are_whole(void **state) {
  (void)state;
  const ax_type types[] = {AX_TYPE(AX_F32, 50), AX_TYPE(AX_S32, 1)};
  ax_program *program;
  TEST_OK(ax_trace(AX_FN(takes_block, 2, 1), types, &program));
  for (int32_t block = 5; block < 8; block++) {
    ax_check_report *report;
    const ax_host_array in[] = {{0}, ax_host_view(AX_S32, AX_DIMS(1), &block)};
    TEST_OK(ax_check(program, &(ax_check_options){.in = {AX_LIST(2, in)}}, &report));
    assert_int_equal(report->verdict, block < 7 ? AX_PROVED : AX_WRONG);
    if (block == 7)
      assert_non_null(strstr(report->kernels[0].findings[0].text, "takes elements 56 to 63 of dimension 0, which has 50"));
    ax_check_report_release(report);
  }
  ax_program_release(program);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_what_follows),  cmocka_unit_test(blocks_out_of_bounds_are_whole),
                                     cmocka_unit_test(test_slips),         cmocka_unit_test(test_explored),
                                     cmocka_unit_test(test_replay),        cmocka_unit_test(words_stay_in_their_boxes),
                                     cmocka_unit_test(interpreted_kernels)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
