/* A gather on a ring of devices, written as kernels are that do it (src/kernels/ring.h says how), with one fault at a time. The
   checker proves the one without, and finds each fault: of the kind that it has, with a schedule that can be gone again. Most of
   them do not show when the kernel is evaluated, as it is run in one order alone. AXLE_PROOFS=1 prints what is found. */
#include "axle/axle.h"
#include "axle/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/cmocka.h"
#include "support/tensor.h"

typedef enum fault {
  NONE,
  NO_BARRIER,
  BARRIER_WAITS_FOR_ONE,
  BARRIER_WITH_LEFT_ALONE,
  BARRIER_WAITS_FIRST,
  BARRIER_SIGNALLED_TWICE,
  NO_CAPACITY_WAIT,
  CREDIT_TOO_MANY,
  CREDIT_TOO_FEW,
  ONE_SLOT,
  FREE_BEFORE_SENT,
  FREE_BEFORE_USED,
  FREE_DOWNSTREAM,
  FREE_TWICE,
  FREE_DROPPED,
  FREE_LAST_TOO,
  CAPACITY_SWAPPED,
  RECEIVE_WRONG_SLOT,
  RECEIVE_WRONG_SIDE,
  RECEIVE_NOT_AWAITED,
  RECEIVED_IN_ONE,
  SENT_NOT_AWAITED,
  SENT_IN_PART,
  SENT_AND_RECEIVED_SWAPPED,
  WRONG_NEIGHBOUR,
  WRONG_SLOT,
  SLOT_CHANGED_WHILE_SENT,
  OWN_CHANGED_WHILE_SENT,
  NO_FINAL_WAIT,
  FINAL_WAIT_FOR_ALL,
  ONE_DEVICE_STOPS,
  FAULTS
} fault;

enum { LEFT, RIGHT };

/* One device's part, traced step by step: rings here are short. refs: x, out, scratch. */
typedef struct gather {
  fault fault;
  int n, slot_count;
  ax_value x, out, slots[2], capacity[2], sent[2], received[2], me;
  ax_value neighbour[2];
  ax_target_core core[2];
} gather;

static int arrivals(const gather *g, int side) { return side == LEFT ? g->n / 2 : (g->n - 1) / 2; }
static ax_value number(int64_t i) { return ax_full_i64(AX_S32, AX_DIMS(), i); }

static ax_value ahead(const gather *g, int places) {
  ax_value at = ax_add(g->me, number(places + g->n));
  return ax_sub(at, ax_mul(ax_div(at, number(g->n)), number(g->n)));
}

static ax_value slot(const gather *g, int side, int a) { return ax_ref_at(g->slots[side], number(a % g->slot_count)); }
static ax_value received(const gather *g, int side, int a) {
  return ax_ref_at(g->received[side], number(g->fault == RECEIVED_IN_ONE ? 0 : a % g->slot_count));
}

static void meet(const gather *g) {
  ax_value barrier = ax_barrier_semaphore();
  int all = g->fault == BARRIER_WAITS_FOR_ONE || g->fault == BARRIER_WITH_LEFT_ALONE ? 1 : 2;
  if (g->fault == NO_BARRIER) return;
  if (g->fault == BARRIER_WAITS_FIRST) ax_semaphore_wait(barrier, number(all));
  ax_semaphore_signal(barrier, number(g->fault == BARRIER_SIGNALLED_TWICE ? 2 : 1), &g->core[LEFT]);
  if (g->fault != BARRIER_WITH_LEFT_ALONE) ax_semaphore_signal(barrier, number(1), &g->core[RIGHT]);
  if (g->fault != BARRIER_WAITS_FIRST) ax_semaphore_wait(barrier, number(all));
}

static void send(const gather *g, int side, int a, ax_value part) {
  ax_value to = slot(g, side, g->fault == WRONG_SLOT ? 0 : a), there = received(g, side, a), here = g->sent[side];
  const ax_target_core *core = &g->core[g->fault == WRONG_NEIGHBOUR ? RIGHT : side];
  if (g->fault != NO_CAPACITY_WAIT) ax_semaphore_wait(g->capacity[g->fault == CAPACITY_SWAPPED ? 1 - side : side], number(1));
  if (g->fault == SENT_AND_RECEIVED_SWAPPED)
    ax_copy_start(part, to, &(ax_copy_options){.received = &here, .sent = &there, .to = core});
  else ax_copy_start(part, to, &(ax_copy_options){.received = &there, .sent = &here, .to = core});
}

static void await_sent(const gather *g, int side, ax_value part) {
  if (g->fault == SENT_NOT_AWAITED) return;
  if (g->fault == SENT_IN_PART) part = ax_ref_slice(part, AX_VALUES(number(0)), AX_DIMS(1));
  ax_copy_wait(g->sent[side], part);
}

static void receive(const gather *g, int side, int a) {
  if (g->fault == RECEIVE_NOT_AWAITED && a == 0) return;
  int of = g->fault == RECEIVE_WRONG_SIDE ? 1 - side : side, at = g->fault == RECEIVE_WRONG_SLOT ? a + 1 : a;
  ax_copy_wait(received(g, of, at), slot(g, side, a));
}

static void free_slot(const gather *g, int side, int a) {
  if (g->fault == FREE_DROPPED && a == 0) return;
  ax_semaphore_signal(g->capacity[side], number(g->fault == FREE_TWICE && a == 0 ? 2 : 1),
                      &g->core[g->fault == FREE_DOWNSTREAM ? side : 1 - side]);
}

static void use(const gather *g, int side, int a) {
  ax_ref_store(ax_ref_at(g->out, ahead(g, side == LEFT ? a + 1 : -a - 1)), ax_ref_load(slot(g, side, a)));
}

static void step(const gather *g, int a) {
  bool goes_on[2], is_here[2];
  for (int side = LEFT; side <= RIGHT; side++) {
    is_here[side] = a < arrivals(g, side);
    goes_on[side] = a + 1 < arrivals(g, side);
    if (is_here[side]) receive(g, side, a);
    if (goes_on[side]) send(g, side, a + 1, slot(g, side, a));
    if (goes_on[side] && g->fault == FREE_BEFORE_SENT) free_slot(g, side, a);
    if (goes_on[side] && g->fault == SLOT_CHANGED_WHILE_SENT) ax_ref_add(slot(g, side, a), ax_real(1));
  }
  for (int side = LEFT; side <= RIGHT; side++) {
    if (is_here[side] && g->fault != FREE_BEFORE_USED) use(g, side, a);
    if (goes_on[side]) await_sent(g, side, slot(g, side, a));
    if (goes_on[side] || g->fault == FREE_LAST_TOO) {
      if (is_here[side] && g->fault != FREE_BEFORE_SENT) free_slot(g, side, a);
    }
    if (is_here[side] && g->fault == FREE_BEFORE_USED) use(g, side, a);
  }
}

static AX_BODY(steps) {
  const gather *g = context;
  for (int a = 0; a < arrivals(g, LEFT); a++) step(g, a);
}
static AX_BODY(nothing) {}

static AX_BODY(on_device) {
  gather g = *(const gather *)context;
  g.x = in[0], g.out = in[1], g.me = ax_axis_index("d");
  for (int side = LEFT; side <= RIGHT; side++) {
    const ax_value *scratch = in + 2 + 4 * side;
    g.slots[side] = scratch[0], g.capacity[side] = scratch[1], g.sent[side] = scratch[2], g.received[side] = scratch[3];
    g.neighbour[side] = ahead(&g, side == LEFT ? -1 : 1);
    g.core[side] = (ax_target_core){.axes = "d", .coordinates = {AX_LIST(1, &g.neighbour[side])}};
    int credits = g.slot_count + (g.fault == CREDIT_TOO_MANY) - (g.fault == CREDIT_TOO_FEW);
    if (arrivals(&g, side) > 0) ax_semaphore_signal(g.capacity[side], number(credits), NULL);
  }
  meet(&g);
  for (int side = LEFT; side <= RIGHT; side++)
    if (arrivals(&g, side) > 0) send(&g, side, 0, g.x);
  if (g.fault == OWN_CHANGED_WHILE_SENT) ax_ref_store(g.x, ax_real(1));
  ax_ref_store(ax_ref_at(g.out, g.me), ax_ref_load(g.x));
  for (int side = LEFT; side <= RIGHT; side++)
    if (arrivals(&g, side) > 0) await_sent(&g, side, g.x);
  if (g.fault == ONE_DEVICE_STOPS) ax_if(ax_eq(g.me, number(1)), AX_FN(nothing, 0, 0), AX_CLOSURE(steps, 0, 0, &g), NULL, NULL);
  else steps(NULL, NULL, &g);
  int taken = g.slot_count - 1 + (g.fault == FINAL_WAIT_FOR_ALL) + (g.fault == CREDIT_TOO_MANY) - (g.fault == CREDIT_TOO_FEW);
  for (int side = LEFT; side <= RIGHT; side++)
    if (arrivals(&g, side) > 0 && g.fault != NO_FINAL_WAIT && taken > 0) ax_semaphore_wait(g.capacity[side], number(taken));
}

static AX_BODY(kernel) {
  const gather *g = context;
  const int64_t slots[] = {g->slot_count, 2};
  ax_scratch scratch[8];
  for (int i = 0; i < 8; i += 4) {
    scratch[i] = (ax_scratch){.type = ax_ref_type(AX_SPACE_VMEM, AX_F32, AX_LIST(2, slots))};
    scratch[i + 1] = (ax_scratch){.type = ax_semaphore_type(AX_DIMS())};
    scratch[i + 2] = (ax_scratch){.type = ax_dma_semaphore_type(AX_DIMS())};
    scratch[i + 3] = (ax_scratch){.type = ax_dma_semaphore_type(AX_LIST(1, slots))};
  }
  const ax_type result = ax_array_type(AX_F32, AX_DIMS(g->n, 2));
  const ax_kernel made = {.outs = {AX_TYPES(result)}, .options = {.name = "gather", .scratch = {AX_LIST(8, scratch)}}};
  ax_kernel_call(&made, AX_CLOSURE(on_device, 10, 0, g), AX_LIST(1, in), out);
}

static AX_BODY(mapped) {
  const gather *g = context;
  const ax_mesh mesh = {.count = 1, .axis = {{.name = "d", .size = g->n}}};
  ax_shard_map(&mesh, "d -> d", AX_CLOSURE(kernel, 1, 1, g), in, out);
}

static ax_program *make(gather *g) {
  const ax_type type = ax_array_type(AX_F32, AX_DIMS(2 * g->n));
  return test_trace(mapped, g, &type, 1, 1);
}

/* n: of the smallest ring in which it shows; slots: how many there are. kinds: what is found is one of them. */
static const struct {
  fault fault;
  const char *name;
  int n, slots;
  const char *kinds;
} rows[] = {
    {NO_BARRIER, "no barrier at the beginning", 2, 1, "use after scope"},
    {BARRIER_WAITS_FOR_ONE, "the barrier waits for one neighbour", 3, 1, "use after scope, leaked semaphore"},
    {BARRIER_WITH_LEFT_ALONE, "the barrier is with the left neighbour alone", 3, 1, "use after scope"},
    {BARRIER_WAITS_FIRST, "the barrier waits before it signals", 2, 1, "deadlock"},
    {BARRIER_SIGNALLED_TWICE, "one neighbour is signalled twice at the barrier", 3, 1, "leaked semaphore"},
    {NO_CAPACITY_WAIT, "parts are sent without asking for capacity", 6, 2, "data race"},
    {CREDIT_TOO_MANY, "one credit too many", 6, 2, "data race"},
    {CREDIT_TOO_FEW, "one credit too few", 6, 2, "deadlock"},
    {ONE_SLOT, "one slot, where more parts than one arrive", 4, 1, "deadlock"},
    {FREE_BEFORE_SENT, "a slot is free before it has been sent on", 6, 2, "data race"},
    {FREE_BEFORE_USED, "a slot is free before it has been used", 6, 2, "data race"},
    {FREE_DOWNSTREAM, "the neighbour downstream is told of a free slot", 6, 2, "data race"},
    {FREE_TWICE, "a slot is freed twice", 6, 2, "leaked semaphore"},
    {FREE_DROPPED, "a slot is not freed", 6, 2, "deadlock"},
    {FREE_LAST_TOO, "the last slot is freed too", 4, 2, "leaked semaphore"},
    {CAPACITY_SWAPPED, "capacity of the other side is asked for", 7, 2, "data race"},
    {RECEIVE_WRONG_SLOT, "the wrong slot is waited for", 6, 2, "deadlock"},
    {RECEIVE_WRONG_SIDE, "the other side is waited for", 5, 2, "data race"},
    {RECEIVE_NOT_AWAITED, "an arrival is not waited for", 4, 2, "data race"},
    {RECEIVED_IN_ONE, "one semaphore for the arrivals of all slots", 6, 2, "data race"},
    {SENT_NOT_AWAITED, "that a part has been read is not waited for", 6, 2, "data race"},
    {SENT_IN_PART, "half of its bytes are waited for", 6, 2, "leaked semaphore"},
    {SENT_AND_RECEIVED_SWAPPED, "what has been sent signals arrivals", 4, 2, "data race"},
    {WRONG_NEIGHBOUR, "both ways lead to the right", 6, 2, "data race"},
    {WRONG_SLOT, "all parts go to the first slot", 6, 2, "data race"},
    {SLOT_CHANGED_WHILE_SENT, "a slot is changed while it is sent on", 4, 2, "data race"},
    {OWN_CHANGED_WHILE_SENT, "the own part is changed while it is sent", 2, 1, "data race"},
    {NO_FINAL_WAIT, "credits are not taken back at the end", 4, 2, "leaked semaphore"},
    {FINAL_WAIT_FOR_ALL, "one credit more is taken back than there is", 4, 2, "deadlock"},
    {ONE_DEVICE_STOPS, "one device does not go on", 4, 2, "read of unset memory"},
};

static gather without(int n, int slots) {
  int most = n / 2;
  return (gather){.fault = NONE, .n = n, .slot_count = slots < most ? slots : most};
}

static void test_right(void **state) {
  (void)state;
  for (int n = 2; n <= 8; n++)
    for (int slots = 2; slots <= 4; slots++) {
      gather g = without(n, slots);
      ax_program *program = make(&g);
      ax_check_report *report;
      TEST_OK(ax_check(program, NULL, &report));
      if (report->verdict != AX_PROVED)
        fail_msg("%d devices, %d slots: %s", n, slots,
                 report->kernels[0].finding_count > 0 ? report->kernels[0].findings[0].text : "");
      ax_check_report_release(report);
      ax_program_release(program);
    }
}

static void replays(const ax_program *program, const char *schedule) {
  ax_check_report *report;
  const ax_check_options options = {.replay = schedule};
  TEST_OK(ax_check(program, &options, &report));
  ax_check_report_release(report);
}

/* Evaluated, it ends, and with what the right one gives: the fault does not show. */
static bool runs_well(const ax_program *program, int n) {
  const ax_type type = ax_array_type(AX_F32, AX_DIMS(2 * n));
  ax_tensor *in, *out = NULL;
  TEST_OK(ax_tensor_create(&type, &in));
  for (int i = 0; i < 2 * n; i++) test_set(in, i, i + 2);
  bool well = ax_evaluate(program, &in, &out) == AX_OK;
  for (int64_t i = 0; well && i < test_elems(out); i++) well = test_get(out, i) == (double)(i % (2 * n) + 2);
  ax_tensor_release(in);
  ax_tensor_release(out);
  return well;
}

/* Whether it is found alone. */
static bool finds(size_t r, bool show) {
  gather g = {.fault = rows[r].fault, .n = rows[r].n, .slot_count = rows[r].slots};
  ax_program *program = make(&g);
  ax_check_report *report;
  TEST_OK(ax_check(program, NULL, &report));
  const ax_check_kernel *found = &report->kernels[0];
  bool fits = false;
  bool hidden = runs_well(program, g.n);
  for (uint32_t i = 0; i < found->finding_count; i++) fits = fits || strstr(rows[r].kinds, found->findings[i].kind) != NULL;
  if (show) {
    printf("| %s | %d | %d | %s | ", rows[r].name, g.n, g.slot_count, hidden ? "nothing" : "it");
    for (uint32_t i = 0; i < found->finding_count; i++) printf("%s%s", i > 0 ? ", " : "", found->findings[i].kind);
    printf(" | %.4f |\n", found->seconds);
  }
  if (report->verdict != AX_WRONG || !fits)
    fail_msg("%s: %s %s", rows[r].name, found->how, found->finding_count > 0 ? found->findings[0].text : "");
  for (uint32_t i = 0; i < found->finding_count; i++) replays(program, found->findings[i].schedule);
  ax_check_report_release(report);
  ax_program_release(program);
  return hidden;
}

static void test_faults(void **state) {
  (void)state;
  bool show = getenv("AXLE_PROOFS") != NULL;
  int hidden = 0;
  for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++) {
    assert_int_equal(rows[r].fault, r + 1);
    hidden += finds(r, show);
  }
  assert_true(hidden >= 18);
  assert_int_equal(sizeof rows / sizeof rows[0], FAULTS - 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_right), cmocka_unit_test(test_faults)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
