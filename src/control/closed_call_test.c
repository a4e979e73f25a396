/* Functions kept as one: equal ones are one program, and so is what transforms make of them. */
#include <stdio.h>
#include <string.h>

#include "axle/ops.h"
#include "ir/prim.h"
#include "ir/transform.h"
#include "support/cmocka.h"
#include "support/host.h"
#include "support/oom.h"
#include "support/tensor.h"

enum { layers = 5 };

static void layer(const ax_value *in, ax_value *out, void *context) {
  out[0] = ax_tanh(ax_mul(ax_sin(ax_mul(ax_cos(in[0]), in[1])), in[0]));
  out[1] = ax_add(in[0], *(ax_value *)context); /* captured */
}

typedef struct model {
  bool kept; /* by closed_call; otherwise its equations in place */
  int layers;
} model;

static void chain(const ax_value *in, ax_value *out, void *context) {
  const model *m = context;
  ax_value pair[] = {in[0], in[1]}, shift = in[2], made[2];
  for (int i = 0; i < m->layers; i++) {
    if (m->kept) ax_closed_call(AX_CLOSURE(layer, 2, 2, &shift), pair, made);
    else layer(pair, made, &shift);
    pair[0] = made[0];
    pair[1] = ax_mul(made[1], in[1]);
  }
  out[0] = ax_add(pair[0], pair[1]);
}

static ax_program *trace(bool kept) {
  ax_type types[] = {TEST_SCALAR(AX_F64), TEST_SCALAR(AX_F64), TEST_SCALAR(AX_F64)};
  return test_trace(chain, &(model){kept, layers}, types, 3, 1);
}

/* How many calls there are, and of how many bodies. */
static void count(const ax_program *program, uint32_t *calls, uint32_t *bodies) {
  const ax_program *seen[64];
  *calls = *bodies = 0;
  for (uint32_t i = 0; i < program->eqn_count; i++) {
    const ax_program *body = ax_eqn_program(&program->eqns[i], 0);
    if (body == NULL) continue;
    uint32_t k = 0;
    while (k < *bodies && seen[k] != body) k++;
    if (k == *bodies) seen[(*bodies)++] = body;
    ++*calls;
  }
}

static void check_count(const ax_program *program, uint32_t calls, uint32_t bodies) {
  uint32_t is_calls, is_bodies;
  count(program, &is_calls, &is_bodies);
  assert_int_equal(is_calls, calls);
  assert_int_equal(is_bodies, bodies);
}

/* The same results on inputs in front of which `lead` members stand, where there are any. */
static void check_same(const ax_program *a, const ax_program *b) {
  assert_int_equal(a->in_count, b->in_count);
  assert_int_equal(a->out_count, b->out_count);
  ax_tensor *in[8], *x[8], *y[8];
  for (uint32_t i = 0; i < a->in_count; i++) {
    in[i] = test_tensor(a->types[i], NULL);
    for (int64_t e = 0; e < test_elems(in[i]); e++) test_set(in[i], e, 0.3 + 0.1 * i + 0.05 * (double)e);
  }
  test_run(a, in, x);
  test_run(b, in, y);
  for (uint32_t k = 0; k < a->out_count; k++) TEST_TENSORS_NEAR(x[k], y[k], 1e-14);
  test_release(in, a->in_count), test_release(x, a->out_count), test_release(y, a->out_count);
}

static void equal_functions_are_one(void **state) {
  (void)state;
  ax_program *kept = trace(true), *plain = trace(false), *again;
  check_count(kept, layers, 1);
  check_same(kept, plain);
  char *text;
  TEST_OK(ax_program_print(kept, &text));
  TEST_OK(ax_program_parse(text, strlen(text), "text", &again));
  assert_true(ax_program_equal(kept, again));
  check_count(again, layers, 1);
  ax_string_free(text);
  ax_program *all[] = {kept, plain, again};
  for (size_t i = 0; i < AX_COUNT(all); i++) ax_program_release(all[i]);
}

static ax_status forward(const ax_program *program, ax_program **out) { return ax_program_jvp(program, AX_ALL_ARGS, out); }
static ax_status backward(const ax_program *program, ax_program **out) {
  return ax_program_value_and_grad(program, AX_FIRST(3), out);
}
static ax_status members(const ax_program *program, ax_program **out) {
  return ax_program_vmap(program, &(ax_vmap_options){.in_axes = {AX_DIMS(0, AX_NOT_MAPPED, 0)}, .size = 4}, out);
}
static ax_status merged(const ax_program *program, ax_program **out) { return ax_program_cse(program, out); }

static void transforms_are_shared(void **state) {
  (void)state;
  const struct {
    ax_status (*transform)(const ax_program *, ax_program **);
    uint32_t calls, bodies;
  } rows[] = {{forward, layers, 1}, {members, layers, 2}, {merged, layers, 1}, {backward, 2 * layers, 4}};
  for (size_t i = 0; i < AX_COUNT(rows); i++) {
    ax_program *kept = trace(true), *plain = trace(false), *a, *b;
    TEST_OK(rows[i].transform(kept, &a));
    TEST_OK(rows[i].transform(plain, &b));
    TEST_OK(ax_program_verify(a));
    uint32_t calls, bodies;
    count(a, &calls, &bodies);
    assert_int_equal(calls, rows[i].calls);
    assert_true(bodies <= rows[i].bodies); /* one but for the first and last, whose operands and results take part otherwise */
    check_same(a, b);
    ax_program *all[] = {kept, plain, a, b};
    for (size_t k = 0; k < AX_COUNT(all); k++) ax_program_release(all[k]);
  }
}

static void short_ones_are_written_out(void **state) {
  (void)state;
  static const struct {
    const char *body;
    uint32_t calls;
  } rows[] = {{"d:f64[2] = broadcast_in_dim[shape=(2,) broadcast_dimensions=()] b e:f64[2] = mul a d f:f64[2] = sub e a ", 0},
              {"d:f64[2] = sin a e:f64[2] = sin d f:f64[2] = sin e g:f64[2] = sin f h:f64[2] = sin g ", 1},
              {"d:f64[2] = cumsum[axis=0 reverse=false] a ", 1}};
  for (size_t i = 0; i < AX_COUNT(rows); i++) {
    char text[600];
    const char *body = rows[i].body;
    const char last = strrchr(body, ':')[-1];
    snprintf(text, sizeof text, "{ lambda x:f64[2] y:f64[]. let z:f64[2] = closed_call[body={ lambda a:f64[2] b:f64[]. let %sin (%c,) }] x y "
             "w:f64[2] = neg z in (w,) }", body, last);
    ax_program *program = test_parsed(text), *simple;
    TEST_OK(ax_program_simplify(program, &simple));
    check_count(simple, rows[i].calls, rows[i].calls);
    check_same(program, simple);
    ax_program_release(program), ax_program_release(simple);
  }
}

/* Of a choice that the caller knows, only the chosen side is left; calls with the same choices share their body. */
static void known_choices_are_taken(void **state) {
  (void)state;
  static const struct {
    const char *first, *second;
    uint32_t bodies, sums; /* left */
  } rows[] = {{"false", "false", 1, 0}, {"true", "true", 1, 1}, {"true", "false", 2, 1}, {"u", "u", 1, 1}, {"u", "false", 2, 1}};
  for (size_t i = 0; i < AX_COUNT(rows); i++) {
    char text[1000];
    const char *types[] = {rows[i].first[0] == 'u' ? "" : ":bool[]", rows[i].second[0] == 'u' ? "" : ":bool[]"};
    const char body[] = "{ lambda a:f64[2] b:bool[]. let c:f64[2] = cumsum[axis=0 reverse=false] a d:s32[] = convert_element_type[dtype=s32] b "
                        "e:f64[2] = select_n b a c f:f64[2] = sin e g:f64[2] = cos f h:f64[2] = tan g i:f64[2] = sin h j:f64[2] = cond["
                        "branches=({ lambda a:f64[2]. let in (a,) }, { lambda a:f64[2]. let b:f64[2] = neg a in (b,) })] d i in (j,) }";
    snprintf(text, sizeof text, "{ lambda x:f64[2] u:bool[]. let y:f64[2] = closed_call[body=%s] x %s%s z:f64[2] = closed_call[body=%s] y %s%s "
             "in (z,) }", body, rows[i].first, types[0], body, rows[i].second, types[1]);
    ax_program *program = test_parsed(text), *simple;
    TEST_OK(ax_program_simplify(program, &simple));
    check_count(simple, 2, rows[i].bodies);
    uint32_t sums = 0, choices = 0;
    for (uint32_t e = 0; e < simple->eqn_count; e++) {
      const ax_program *called = ax_eqn_program(&simple->eqns[e], 0);
      for (uint32_t k = 0; called != NULL && k < called->eqn_count; k++) {
        sums += strcmp(called->eqns[k].prim->name, "cumsum") == 0;
        choices += strcmp(called->eqns[k].prim->name, "cond") == 0;
      }
    }
    assert_int_equal(sums > 0, rows[i].sums);
    assert_int_equal(choices, (rows[i].first[0] == 'u') + (rows[i].second[0] == 'u'));
    check_same(program, simple);
    ax_program_release(program), ax_program_release(simple);
  }
}

static void refuses(void **state) {
  (void)state;
  const char text[] = "{ lambda x:f64[2]. let y:f64[] = closed_call[body={ lambda x:f64[]. let in (x,) }] x in (y,) }";
  ax_program *program;
  TEST_FAILS(ax_program_parse(text, strlen(text), "text", &program), AX_PARSE_ERROR,
             "operand 0 is f64[2], but the body takes f64[]");
}

/* Trace and gradient, which share bodies, remember what they made, and prune. */
static ax_status traced_and_differentiated(void *context) {
  ax_type types[] = {TEST_SCALAR(AX_F64), TEST_SCALAR(AX_F64), TEST_SCALAR(AX_F64)};
  ax_program *program, *made;
  AX_TRY(ax_trace(AX_CLOSURE(chain, 3, 1, &(model){true, 2}), types, &program));
  ax_status status = backward(program, &made);
  ax_program_release(program);
  if (status == AX_OK) ax_program_release(made);
  (void)context;
  return status;
}

static void each_allocation_may_fail(void **state) {
  (void)state;
  assert_true(test_each_allocation(traced_and_differentiated, NULL) > 40);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(each_allocation_may_fail),
      cmocka_unit_test(equal_functions_are_one),
      cmocka_unit_test(transforms_are_shared),
      cmocka_unit_test(short_ones_are_written_out), cmocka_unit_test(known_choices_are_taken), cmocka_unit_test(refuses),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
