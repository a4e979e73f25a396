/* What goes wrong in one process of several: all report it, with the same status and message, and none hangs. */
#include <stdlib.h>
#include <string.h>

#include "axle/bodies.h"
#include "axle/callback.h"
#include "axle/collectives.h"
#include "axle/ops.h"
#include "base/base.h"
#include "support/cmocka.h"
#include "support/processes.h"
#include "support/run.h"

enum { ELEMS = 4, LONG = 6000 };

/* --- Bodies: over x=4 --- */

static ax_value is_device(int64_t d) { return ax_eq(ax_axis_index("x"), ax_full(AX_S32, AX_DIMS(), (double)d)); }

static AX_BODY(sum) { out[0] = ax_mul(ax_psum(in[0], "x"), ax_full_like(in[0], 0.5)); }
static AX_BODY(nothing) { out[0] = ax_neg(in[0]); }
static AX_BODY(all_but_the_third) {
  ax_if(is_device(2), AX_FN(nothing, 1, 1), AX_FN(sum, 1, 1), in, out);
}
static AX_BODY(only_the_third) {
  ax_if(is_device(2), AX_FN(sum, 1, 1), AX_FN(nothing, 1, 1), in, out);
}
static AX_BODY(sends) {
  (void)ax_psend(in[0], "x", AX_PAIRS({0, 3}));
  out[0] = ax_neg(in[0]);
}
static AX_BODY(receives) {
  out[0] = ax_precv(ax_create_token(), ax_typeof(in[0]), "x", AX_PAIRS({0, 3}));
}
static AX_BODY(takes_roots) { out[0] = ax_psum(ax_sqrt(in[0]), "x"); }
static AX_BODY(calls) {
  ax_value called;
  ax_io_callback(context, false, AX_LIST(1, in), AX_TYPES(ax_typeof(in[0])), &called);
  out[0] = ax_psum(called, "x");
}

static ax_status refuse_the_third(ax_callback_call *call, void *context) {
  (void)context;
  if (call->device != 2) return AX_OK;
  strcpy(call->message, "not on this one");
  return AX_INVALID_ARGUMENT;
}

/* --- Runs --- */

static const uint32_t alternating[] = {0, 1, 0, 1};
static const test_spread spreads[] = {
    {.processes = 2, .workers = 1},
    {.processes = 2, .workers = 2},
    {.processes = 4, .workers = 1},
    {.processes = 2, .workers = 1, .listed = 4, .of = alternating},
    {.processes = 3, .workers = 2, .policy = AX_POLICY_SEEDED, .seed = 5},
    {.processes = 3, .workers = 1, .delays = true, .seed = 1},
    {.processes = 4, .workers = 2, .delays = true, .seed = 2},
};

typedef struct trouble {
  const char *name;
  ax_function body;
  ax_status status;
  const char *parts[4]; /* of the message in each spread, in any order */
  const char *in_two;   /* a part of it in the first spread; NULL: none is looked for */
  bool differs;         /* results differ between devices */
  int64_t elems;        /* of a device; 0: ELEMS */
  uint32_t check_numerics;
  ax_callback *callback;
} trouble;

static ax_program *trace(const trouble *t) {
  const ax_type type = TEST_TYPE(AX_F32, 4, t->elems > 0 ? t->elems : ELEMS);
  return test_trace_map(
      &(test_map){"x=4", {"x"}, {t->differs ? "x" : ""}, .unchecked = true, .body = t->body, .context = t->callback}, &type);
}

static ax_tensor *minus_one_in_the_third(const ax_type *type) {
  ax_tensor *tensor;
  TEST_OK(ax_tensor_create(type, &tensor));
  for (int64_t i = 0; i < ax_type_elems(type); i++) test_set(tensor, i, i / type->dims[1] == 2 ? -1 : 1);
  return tensor;
}

static void fails(const trouble *t) {
  static char message[8192];
  ax_program *program = trace(t);
  ax_tensor *in = minus_one_in_the_third(ax_program_in_type(program, 0));
  for (size_t s = 0; s < AX_COUNT(spreads); s++) {
    test_spread spread = spreads[s];
    spread.check_numerics = t->check_numerics;
    assert_int_equal(test_in_processes(program, &spread, &in, NULL, message), t->status);
    if (s == 0 && t->in_two != NULL && strstr(message, t->in_two) == NULL) fail_msg("%s: no \"%s\" in: %s", t->name, t->in_two, message);
    for (size_t i = 0; i < AX_COUNT(t->parts) && t->parts[i] != NULL; i++)
      if (strstr(message, t->parts[i]) == NULL) fail_msg("%s, spread %zu: no \"%s\" in: %s", t->name, s, t->parts[i], message);
  }
  ax_tensor_release(in);
  ax_program_release(program);
}

static void deadlocks(void **state) {
  (void)state;
  fails(&(trouble){.name = "one stays away", .body = all_but_the_third, .status = AX_DEADLOCK, .differs = true,
                   .in_two = "device 0 (x=0), device 1 (x=1)\n    never come: device 2 (x=2) of process 1\nprocess 1: deadlock: ",
                   .parts = {"psum f32[1,4]", "never come", "device 2 (x=2)"}});
  fails(&(trouble){.name = "one comes", .body = only_the_third, .status = AX_DEADLOCK, .differs = true,
                   .in_two = "device 3 (x=3), which has finished, device 0 (x=0) of process 0, device 1 (x=1) of process 0",
                   .parts = {"psum f32[1,4]", "never come", "device 1 (x=1)", "device 3 (x=3)"}});
  fails(&(trouble){.name = "one of long parts stays away", .body = all_but_the_third, .status = AX_DEADLOCK, .differs = true,
                   .elems = LONG, .parts = {"psum f32[1,6000]", "never come", "device 2 (x=2)"}});
}

static void messages(void **state) {
  (void)state;
  for (int64_t elems = ELEMS; elems <= LONG; elems += LONG - ELEMS) {
    fails(&(trouble){.name = "sent in vain", .body = sends, .status = AX_INVALID_ARGUMENT, .differs = true, .elems = elems,
                     .parts = {"message 1 of device 0 (x=0)", "is never received"}});
    fails(&(trouble){.name = "awaited in vain", .body = receives, .status = AX_DEADLOCK, .differs = true, .elems = elems,
                     .parts = {"never comes to device 3", "message 1 of device 0 (x=0)"}});
  }
}

static void nans(void **state) {
  (void)state;
  fails(&(trouble){.name = "a root", .body = takes_roots, .status = AX_NOT_FINITE, .check_numerics = AX_CHECK_NAN,
                   .parts = {"sqrt", "device 2 (x=2)"}});
}

static void callbacks(void **state) {
  (void)state;
  ax_callback *callback;
  TEST_OK(ax_callback_create("picky", refuse_the_third, NULL, NULL, &callback));
  fails(&(trouble){.name = "a callback", .body = calls, .status = AX_INVALID_ARGUMENT, .callback = callback,
                   .parts = {"not on this one", "device 2 (x=2)"}});
  ax_callback_release(callback);
}

/* --- Out of memory in one process --- */

static _Thread_local bool mine;
static long until_failure, asked;

static void *allocate(void *user, size_t bytes, size_t align) {
  void *memory = NULL;
  (void)user;
  if (mine) asked++;
  if (mine && until_failure-- == 0) return NULL;
  return posix_memalign(&memory, align, bytes) == 0 ? memory : NULL;
}
static void release(void *user, void *memory) {
  (void)user;
  free(memory);
}
static void in_the_last(uint32_t process, bool begins) { mine = begins && process == 1; }

static void each_allocation(ax_function body, int64_t elems) {
  static char message[8192];
  ax_program *program = trace(&(trouble){.body = body, .elems = elems});
  ax_tensor *in = minus_one_in_the_third(ax_program_in_type(program, 0));
  test_spread spread = {.processes = 2, .workers = 1, .around = in_the_last};
  const ax_allocator hostile = {allocate, release, NULL};
  ax_set_allocator(&hostile);
  test_team *team = test_team_create(&spread);
  ax_status status = AX_OUT_OF_MEMORY;
  for (long nth = 0, done = 0; done < 3; nth++) { /* what is needed late is asked for more than once */
    until_failure = nth;
    asked = 0;
    status = test_in_team(team, program, &spread, &in, NULL, message);
    if (status != AX_OK) assert_int_equal(status, AX_OUT_OF_MEMORY);
    if (status != AX_OK && strncmp(message, "process 1: ", 11) != 0) fail_msg("allocation %ld: %s", nth, message);
    done = asked <= nth ? done + 1 : 0;
  }
  assert_int_equal(status, AX_OK);
  test_team_release(team);
  ax_set_allocator(NULL);
  ax_tensor_release(in);
  ax_program_release(program);
}

static void out_of_memory(void **state) {
  (void)state;
  each_allocation(sum, ELEMS);
  each_allocation(sum, LONG);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(deadlocks), cmocka_unit_test(messages),      cmocka_unit_test(nans),
      cmocka_unit_test(callbacks), cmocka_unit_test(out_of_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
