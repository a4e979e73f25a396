/* Functions that many equations call are looked into once, and what is found there holds for each parameter that they are given. */
#include "planner/roles.h"

#include "control/closed_call.h"
#include "prim/prims.h"
#include "support/cmocka.h"
#include "support/layered.h"
#include "support/tensor.h"

enum { experts = 4, width = 8, samples = 2 };

/* tokens[E, T, D], w[E, D, D] -> as many tokens */
static AX_BODY(of_experts) {
  (void)context;
  out[0] = ax_tanh(ax_dot_general(in[0], in[1], AX_DIMS(2), AX_DIMS(1), AX_DIMS(0), AX_DIMS(0)));
}

/* tokens, w -> tokens, by no product of w that takes its matrices one by one */
static AX_BODY(plain) {
  (void)context;
  out[0] = ax_add(in[0], ax_reduce_sum(in[1], AX_ALL_DIMS, false));
}

typedef struct calling {
  ax_program *body;
  uint32_t calls, params; /* each call has another of the parameters, in turn */
} calling;

static AX_BODY(call_again) { /* w.., x */
  const calling *c = context;
  ax_value x = in[c->params];
  for (uint32_t k = 0; k < c->calls && !ax_failed(); k++)
    x = *ax_called_bind(&ax_prim_closed_call, &(ax_closed_call_params){c->body}, c->body, (const ax_value[]){x, in[k % c->params]});
  out[0] = x;
}

static AX_BODY(loss_of_calls) {
  ax_value made;
  call_again(in, &made, context);
  out[0] = ax_reduce_mean(ax_square(made), AX_ALL_DIMS, false);
}

/* x, w -> x: the body, twice */
static AX_BODY(twice) {
  ax_program *body = context;
  ax_value x = in[0];
  for (uint32_t k = 0; k < 2; k++)
    x = *ax_called_bind(&ax_prim_closed_call, &(ax_closed_call_params){body}, body, (const ax_value[]){x, in[1]});
  out[0] = x;
}

static ax_program *trace_body(ax_fn function) {
  const ax_type types[] = {ax_array_type(AX_F32, AX_DIMS(experts, 2, width)),
                           ax_array_type(AX_F32, AX_DIMS(experts, width, width))};
  ax_program *made;
  TEST_OK(ax_trace(function, AX_LIST(2, types), &made));
  return made;
}

/* The model of a loss that calls the body; gives how many bodies were looked into. */
static uint32_t look(calling of, ax_model *m) {
  ax_type types[64];
  const uint32_t batch[] = {of.params};
  ax_planner_options options = test_options(samples, 1);
  ax_program *loss;
  uint32_t looks;
  for (uint32_t i = 0; i <= of.params; i++)
    types[i] =
        i < of.params ? ax_array_type(AX_F32, AX_DIMS(experts, width, width)) : ax_array_type(AX_F32, AX_DIMS(experts, 2, width));
  options.batch = (ax_args){.list = batch, .count = 1};
  TEST_OK(ax_trace(AX_CLOSURE(loss_of_calls, of.params + 1, 1, &of), AX_LIST(of.params + 1, types), &loss));
  TEST_OK(ax_model_make(loss, &options, m));
  ax_free(m->layered);
  ax_free(m->experts);
  TEST_OK(ax_model_find_roles(m, &looks));
  ax_program_release(loss);
  return looks;
}

static void test_many_calls(void **state) {
  (void)state;
  for (uint32_t params = 1; params <= 32; params *= 32) {
    calling of = {.body = trace_body(AX_FN(of_experts, 2, 1)), .calls = 500, .params = params};
    ax_model m;
    assert_int_equal(look(of, &m), 2); /* the loss, and the function */
    for (uint32_t p = 0; p < params; p++) assert_int_equal(m.experts[p], 0);
    ax_model_deinit(&m);
    ax_program_release(of.body);
  }
}

/* As many equations as 2^40 would be gone through, were each call looked into. */
static void test_calls_of_calls(void **state) {
  (void)state;
  enum { depth = 40 };
  calling of = {.body = trace_body(AX_FN(of_experts, 2, 1)), .calls = 1, .params = 1};
  ax_model m;
  for (int k = 0; k < depth; k++) {
    ax_program *inner = of.body;
    of.body = trace_body(AX_CLOSURE(twice, 2, 1, inner));
    ax_program_release(inner);
  }
  assert_int_equal(look(of, &m), depth + 2);
  assert_int_equal(m.experts[0], 0);
  ax_model_deinit(&m);
  ax_program_release(of.body);
}

static void test_no_experts(void **state) {
  (void)state;
  calling of = {.body = trace_body(AX_FN(plain, 2, 1)), .calls = 3, .params = 2};
  ax_model m;
  assert_int_equal(look(of, &m), 2);
  for (uint32_t p = 0; p < 2; p++) assert_int_equal(m.experts[p], -1);
  ax_model_deinit(&m);
  ax_program_release(of.body);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_many_calls), cmocka_unit_test(test_calls_of_calls),
                                     cmocka_unit_test(test_no_experts)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
