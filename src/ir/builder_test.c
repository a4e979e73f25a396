/* What tracing promises about functions that do not keep to their side: results that are not set, places behind them that are, and
   functions that leave by longjmp. */
#include <pthread.h>
#include <setjmp.h>
#include <string.h>

#include "axle/collectives.h"
#include "axle/ops.h"
#include "ir/transform.h"
#include "support/cmocka.h"
#include "support/tensor.h"

/* --- Results --- */

/* What a body does with out[0 .. 4): a bit for each place it sets. */
typedef struct body {
  uint64_t sets;
} body;

static void badly(const ax_value *in, ax_value *out, void *context) {
  const body *b = context;
  for (uint32_t k = 0; k < 64; k++)
    if (b->sets >> k & 1) out[k] = in[0];
}

static void positive(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_gt(in[0], ax_full_like(in[0], 0));
}

typedef enum way { PLAIN, SCAN, WHILE, BRANCH, SHARD_MAP, GRAD, VALUE_AND_GRAD, JVP, VMAP } way;
typedef struct call {
  way way;
  body body;
  uint32_t count; /* of the results asked for */
} call;

static void called(const ax_value *in, ax_value *out, void *context) {
  call *c = context;
  ax_value made[8], pair[] = {in[0], in[0]};
  ax_mesh mesh;
  TEST_OK(ax_mesh_parse("d=2", &mesh));
  const ax_fn branch = AX_CLOSURE(badly, 1, c->count, &c->body);
  switch (c->way) {
    case PLAIN: badly(in, out, &c->body); return;
    case SCAN: ax_scan(AX_CLOSURE(badly, c->count, c->count, &c->body), c->count, 3, false, pair, made); break;
    case WHILE:
      ax_while(AX_CLOSURE(positive, c->count, 1, &c->body), AX_CLOSURE(badly, c->count, c->count, &c->body), pair, made);
      break;
    case BRANCH: ax_switch(ax_full(AX_S32, AX_DIMS(), 0), AX_LIST(1, &branch), in, made); break;
    case SHARD_MAP: ax_shard_map(&mesh, " -> ", AX_CLOSURE(badly, 1, c->count, &c->body), in, made); break;
    case GRAD: ax_grad(AX_CLOSURE(badly, 1, 1, &c->body), AX_FIRST(1), in, made); break;
    case VALUE_AND_GRAD: ax_value_and_grad(AX_CLOSURE(badly, 1, 1, &c->body), AX_FIRST(1), in, made); break;
    case JVP: ax_jvp(AX_CLOSURE(badly, 1, c->count, &c->body), AX_FIRST(1), pair, pair + 1, made, made + c->count); break;
    case VMAP: {
      ax_value spread = ax_broadcast_in_dim(in[0], AX_DIMS(3), NULL);
      ax_vmap(AX_CLOSURE(badly, 1, c->count, &c->body), &spread, made, NULL);
    }
  }
  out[0] = in[0];
}

static void check(way way, uint32_t count, uint64_t sets, const char *message) {
  ax_type type = TEST_SCALAR(AX_F64);
  ax_program *program;
  call c = {way, {sets}, count};
  ax_status status = ax_trace(AX_CLOSURE(called, 1, way == PLAIN ? count : 1, &c), &type, &program);
  if (message != NULL)
    TEST_FAILS(status, AX_INVALID_ARGUMENT, message);
  else
    TEST_OK(status);
  ax_program_release(program);
}

static void places_behind_the_results(void **state) {
  (void)state;
  check(PLAIN, 2, 3, NULL);
  check(PLAIN, 2, 7, "out[2] was set, but there are 2 results");
  check(PLAIN, 1, 1 << 16 | 1, "out[16] was set, but there is 1 result");
  check(PLAIN, 1, UINT64_C(1) << 40 | 1, "out[40] was set, but there is 1 result");
  check(SCAN, 1, UINT64_C(1) << 63 | 1, "scan: body: out[63] was set, but there is 1 result");
  check(PLAIN, 0, 1, "out[0] was set, but there are 0 results");
  check(SCAN, 2, 7, "scan: body: out[2] was set, but there are 2 results");
  check(WHILE, 1, 3, "while: body: out[1] was set, but there is 1 result");
  check(BRANCH, 1, 5, "switch: branch 0: out[2] was set, but there is 1 result");
  check(SHARD_MAP, 2, 11, "shard_map: body: out[3] was set, but there are 2 results");
  check(GRAD, 1, 3, "grad: function: out[1] was set, but there is 1 result");
  check(VALUE_AND_GRAD, 1, 3, "value_and_grad: function: out[1] was set");
  check(JVP, 2, 7, "jvp: function: out[2] was set");
  check(VMAP, 1, 3, "vmap: function: out[1] was set");
}

static void results_not_set(void **state) {
  (void)state;
  check(PLAIN, 2, 2, "out[0] was never set, but there are 2 results");
  check(SCAN, 2, 1, "scan: body: out[1] was never set, but there are 2 results");
  check(BRANCH, 2, 1, "switch: branch 0: out[1] was never set");
  check(SHARD_MAP, 1, 0, "shard_map: body: out[0] was never set");
  check(GRAD, 1, 0, "grad: function: out[0] was never set, but there is 1 result");
  check(VMAP, 3, 3, "vmap: function: out[2] was never set");
}

/* --- Operations on another thread --- */

typedef struct beside {
  ax_value in, out;
} beside;

static void *add_beside(void *context) {
  beside *b = context;
  b->out = ax_exp(b->in);
  return NULL;
}

static void asks_a_thread(const ax_value *in, ax_value *out, void *context) {
  pthread_t thread;
  beside b = {in[0], in[0]};
  assert_int_equal(pthread_create(&thread, NULL, add_beside, &b), 0);
  assert_int_equal(pthread_join(thread, NULL), 0);
  out[0] = *(const bool *)context ? ax_exp(b.out) : b.out;
}

static void another_thread(void **state) {
  (void)state;
  const char *const hint =
      "(meanwhile operations were called on a thread that traces nothing: all of a trace's are called on its own thread)";
  const char *const says[2] = {"out[0] was never set, but there is 1 result ", "exp: the operand is a value that was never set "};
  for (int used = 0; used < 2; used++) {
    ax_type type = TEST_SCALAR(AX_F64);
    ax_program *program;
    bool uses = used;
    TEST_FAILS(ax_trace(AX_CLOSURE(asks_a_thread, 1, 1, &uses), &type, &program), AX_INVALID_ARGUMENT, says[used]);
    assert_non_null(strstr(ax_message(), hint));
  }
  check(PLAIN, 1, 0, "out[0] was never set, but there is 1 result");
  assert_null(strstr(ax_message(), "thread")); /* of a trace that began later */
}

/* --- Functions that leave --- */

typedef struct leaving {
  jmp_buf back;
  int depth; /* scans around the jump */
} leaving;

static void leaves(const ax_value *in, ax_value *out, void *context) {
  leaving *l = context;
  out[0] = ax_exp(in[0]);
  if (l->depth-- == 0) longjmp(l->back, 1);
  ax_scan(AX_CLOSURE(leaves, 1, 1, l), 1, 2, false, in, out);
}

static void doubles(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_add(in[0], in[0]);
}

static void check_doubles(void) {
  ax_type type = TEST_SCALAR(AX_F64);
  ax_program *program;
  double x = 4, y;
  TEST_OK(ax_trace(AX_FN(doubles, 1, 1), &type, &program));
  test_run_scalars(program, &x, &y);
  assert_true(y == 8);
  ax_program_release(program);
}

static void leave(int depth) {
  leaving l = {.depth = depth};
  ax_type type = TEST_SCALAR(AX_F64);
  ax_program *program;
  if (setjmp(l.back) != 0) return;
  assert_true(ax_trace(AX_CLOSURE(leaves, 1, 1, &l), &type, &program) == AX_INTERNAL); /* not reached */
}

static void the_next_trace_is_as_ever(void **state) {
  (void)state;
  for (int depth = 0; depth < 4; depth++) {
    leave(depth);
    check_doubles();
    assert_null(ax_builder_current());
  }
  leave(1), leave(2);
  check_doubles();
  assert_null(ax_builder_current());
}

/* One that catches what a function it traces threw goes on. */
static void catches(const ax_value *in, ax_value *out, void *context) {
  leaving l = {.depth = *(int *)context};
  ax_value lost;
  if (setjmp(l.back) == 0) ax_scan(AX_CLOSURE(leaves, 1, 1, &l), 1, 2, false, in, &lost);
  out[0] = in[0];
}

/* What is computed after catching, before the trace that was left is given up, belongs to that one. */
static void uses_what_is_lost(const ax_value *in, ax_value *out, void *context) {
  catches(in, out, context);
  out[0] = ax_exp(in[0]);
}

static void caught_in_a_trace(void **state) {
  (void)state;
  ax_type type = TEST_SCALAR(AX_F64);
  for (int depth = 0; depth < 3; depth++) {
    ax_program *program;
    TEST_OK(ax_trace(AX_CLOSURE(catches, 1, 1, &depth), &type, &program));
    assert_int_equal(program->eqn_count, 0);
    ax_program_release(program);
    TEST_FAILS(ax_trace(AX_CLOSURE(uses_what_is_lost, 1, 1, &depth), &type, &program), AX_INVALID_ARGUMENT,
               "out[0] is a value of scan's body, which has finished");
    check_doubles();
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(places_behind_the_results),
      cmocka_unit_test(results_not_set),
      cmocka_unit_test(another_thread),
      cmocka_unit_test(the_next_trace_is_as_ever),
      cmocka_unit_test(caught_in_a_trace),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
