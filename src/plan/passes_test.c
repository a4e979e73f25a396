/* The table of passes: its order is allowed, a wrong one is refused, a plan that breaks what is said of it is found out; each pass
   has the name of its file and function, and changes the plan of a small program, which would come out otherwise were it left out
   of the table. */
#include "plan/passes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "axle/collectives.h"
#include "axle/ops.h"
#include "axle/sharding.h"
#include "axle/transform.h"
#include "support/cmocka.h"
#include "support/run.h"

/* --- The table --- */

static const ax_plan_pass *pass_named(const char *name) {
  for (uint32_t i = 0; i < ax_plan_pass_count; i++)
    if (strcmp(ax_plan_passes[i].name, name) == 0) return &ax_plan_passes[i];
  fail_msg("there is no pass %s", name);
  return NULL;
}

static void order_is_allowed(void **state) {
  (void)state;
  TEST_OK(ax_plan_passes_check(ax_plan_passes, ax_plan_pass_count));
}

static void refused(const char *first, const char *second, const char *message) {
  const ax_plan_pass list[] = {*pass_named(first), *pass_named(second)};
  assert_int_equal(ax_plan_passes_check(list, 2), AX_INTERNAL);
  assert_string_equal(ax_message(), message);
}

static void wrong_order_is_refused(void **state) {
  (void)state;
  refused("rows", "fuse", "pass fuse needs a plan that is 'separate', which it is not after rows");
  refused("panels", "products", "pass products needs a plan that is 'unpacked', which it is not after panels");
}

/* Needs are not for ever: a pass that makes what another broke gives it back. */
static void what_is_made_again_holds(void **state) {
  (void)state;
  const ax_plan_pass list[] = {*pass_named("rows"), {"ungroup", NULL, .makes = AX_PLAN_SEPARATE}, *pass_named("fuse")};
  TEST_OK(ax_plan_passes_check(list, 3));
}

static void names_agree(void **state) {
  (void)state;
  for (uint32_t i = 0; i < ax_plan_pass_count; i++) {
    const char *name = ax_plan_passes[i].name;
    char path[128], line[512], wanted[128];
    bool found = false;
    snprintf(path, sizeof path, "src/plan/%s.c", name);
    snprintf(wanted, sizeof wanted, "ax_status ax_plan_%s(ax_plan *plan) {", name);
    FILE *file = fopen(path, "r");
    if (file == NULL) fail_msg("pass %s has no file %s", name, path);
    while (!found && fgets(line, sizeof line, file) != NULL) found = strncmp(line, wanted, strlen(wanted)) == 0;
    fclose(file);
    if (!found) fail_msg("%s does not define ax_plan_%s", path, name);
  }
}

/* --- What each does --- */

static const int64_t last = -1;

static void transposed_product(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_transpose(ax_matmul(in[0], in[1]), AX_DIMS(1, 0));
}
static AX_BODY(two_sums) {
  (void)context;
  out[0] = ax_tanh(ax_psum(in[0], "d"));
  out[1] = ax_exp(in[1]);
}
static AX_BODY(add_a_row) { /* index, table; row */
  ax_value row = ax_tanh(*(const ax_value *)context), start[] = {in[0], ax_integer(0)};
  out[0] = ax_add(in[1], ax_dynamic_update_slice(ax_full(AX_F32, AX_DIMS(64, 256), 0), row, start));
}
static AX_BODY(put_a_row) {
  ax_value row = ax_tanh(*(const ax_value *)context), start[] = {in[0], ax_integer(0)};
  out[0] = ax_dynamic_update_slice(in[1], row, start);
}
static void over_rows(ax_function body, ax_value row, ax_value *out) {
  ax_value table = ax_full(AX_F32, AX_DIMS(64, 256), 0);
  ax_fori_loop(ax_integer(0), ax_integer(64), AX_CLOSURE(body, 2, 1, &row), &table, out);
}
static void rows_added(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  over_rows(add_a_row, in[0], out);
}
static void rows_put(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  over_rows(put_a_row, in[0], out);
}
static void layers(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value x = in[0];
  for (int i = 0; i < 4; i++) x = ax_gelu(ax_matmul(x, in[1]));
  out[0] = ax_reduce_sum(x, AX_ALL_DIMS, false);
}
static void joined(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  const ax_value parts[] = {ax_exp(in[0]), ax_tanh(in[1])};
  out[0] = ax_mul(ax_concatenate(AX_LIST(2, parts), 0), ax_real(3));
}
static void pointwise(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_tanh(ax_exp(in[0]));
}
static AX_BODY(converted_step) { /* the weights' conversion is the same in each step */
  out[0] = ax_tanh(ax_matmul(in[0], ax_convert_element_type(*(const ax_value *)context, AX_F32)));
}
static void converted(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value weights = in[1];
  ax_scan(AX_CLOSURE(converted_step, 1, 1, &weights), 1, 100, false, in, out);
}
static AX_BODY(decayed_step) { /* as is how much of it is left */
  out[0] = ax_add(ax_mul(in[0], ax_exp(*(const ax_value *)context)), ax_real(1));
}
static void decayed(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value rates = in[1];
  ax_scan(AX_CLOSURE(decayed_step, 1, 1, &rates), 1, 100, false, in, out);
}
static void stepped(const ax_value *in, ax_value *out, void *context) { /* into its first operand's memory, which is donated */
  (void)context;
  out[0] = ax_sub(in[0], ax_mul(in[1], ax_real(0.1)));
}
static AX_BODY(add_product) {
  (void)context;
  out[0] = ax_add(in[0], ax_matmul(in[1], in[2]));
}
static void products_added(const ax_value *in, ax_value *out, void *context) {
  const ax_value operands[] = {in[0], in[1], in[2]};
  ax_scan(AX_CLOSURE(add_product, 3, 1, context), 1, -1, false, operands, out);
}
static AX_BODY(pass_on) {
  (void)context;
  out[0] = ax_ppermute(in[0], "d", 2, (const int64_t[][2]){{0, 1}, {1, 0}});
}
static AX_BODY(around) { ax_scan(AX_CLOSURE(pass_on, 1, 1, context), 1, 6, false, in, out); }
static void softmax(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_softmax(in[0], last);
}
static AX_BODY(product_and_sum) {
  (void)context;
  out[0] = ax_add(ax_mul(in[0], in[0]), in[0]);
}
static AX_BODY(multiplied) { out[0] = ax_tanh(ax_matmul(in[0], *(const ax_value *)context)); }
static void powers(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value weights = in[1];
  ax_scan(AX_CLOSURE(multiplied, 1, 1, &weights), 1, 100, false, in, out);
}

static AX_BODY(points_turned) {
  (void)context;
  out[0] = ax_matmul(in[0], in[1]);
}

static AX_BODY(tanh_of) { out[0] = ax_tanh(in[0]); }
static AX_BODY(each_row) {
  (void)context;
  ax_scan(AX_FN(tanh_of, 1, 1), 0, 64, false, in, out);
}

static void distances(const ax_value *in, ax_value *out, void *context) { /* of all pairs of points */
  (void)context;
  const int64_t dims[] = {200, 100, 8};
  const ax_value x = ax_broadcast_in_dim(in[0], AX_LIST(3, dims), AX_DIMS(0, 2)), y = ax_broadcast_in_dim(in[1], AX_LIST(3, dims), AX_DIMS(1, 2));
  out[0] = ax_reduce_sum(ax_abs(ax_sub(x, y)), AX_DIMS(2), false);
}

static void sorted_and_squared(const ax_value *in, ax_value *out, void *context) { /* in the memory of the sorted numbers */
  (void)context;
  ax_value x = ax_sort(in[0], 0);
  out[0] = ax_mul(x, x);
}

/* Small programs each of which comes out otherwise without the pass. */
static const struct example {
  const char *pass;
  ax_function function;
  uint32_t in_count;
  ax_type in[3];
  bool derived, donated; /* its gradient instead; operands are donated */
  const char *mesh; /* the function is of each device */
} examples[] = {
    {"products", transposed_product, 2,
     .in = {{.dtype = AX_F32, .rank = 2, .dims = {64, 32}}, {.dtype = AX_F32, .rank = 2, .dims = {32, 48}}}},
    {"order", two_sums, 2, .in = {{.dtype = AX_F32, .rank = 1, .dims = {64}}, {.dtype = AX_F32, .rank = 1, .dims = {64}}},
     .mesh = "d=2"},
    {"scatter", rows_added, 1, .in = {{.dtype = AX_F32, .rank = 2, .dims = {1, 256}}}},
    {"recompute", layers, 2,
     .in = {{.dtype = AX_F32, .rank = 2, .dims = {512, 512}}, {.dtype = AX_F32, .rank = 2, .dims = {512, 512}}}, .derived = true},
    {"update", rows_put, 1, .in = {{.dtype = AX_F32, .rank = 2, .dims = {1, 256}}}},
    {"pieces", joined, 2,
     .in = {{.dtype = AX_F32, .rank = 2, .dims = {4096, 64}}, {.dtype = AX_F32, .rank = 2, .dims = {4096, 64}}}},
    {"unroll", points_turned, 2,
     .in = {{.dtype = AX_F32, .rank = 2, .dims = {1000, 3}}, {.dtype = AX_F32, .rank = 2, .dims = {3, 3}}}},
    {"invariants", decayed, 2, .in = {{.dtype = AX_F32, .rank = 1, .dims = {4096}}, {.dtype = AX_F32, .rank = 1, .dims = {4096}}}},
    {"fuse", pointwise, 1, .in = {{.dtype = AX_F32, .rank = 1, .dims = {64}}}},
    {"maps", each_row, 1, .in = {{.dtype = AX_F32, .rank = 2, .dims = {64, 256}}}},
    {"turn", distances, 2, .in = {{.dtype = AX_F32, .rank = 2, .dims = {200, 8}}, {.dtype = AX_F32, .rank = 2, .dims = {100, 8}}}},
    {"hoist", converted, 2,
     .in = {{.dtype = AX_F32, .rank = 2, .dims = {64, 256}}, {.dtype = AX_BF16, .rank = 2, .dims = {256, 256}}}},
    {"cut", pointwise, 1, .in = {{.dtype = AX_F32, .rank = 1, .dims = {1 << 20}}}},
    {"coalesce", stepped, 2, .in = {{.dtype = AX_F32, .rank = 1, .dims = {4096}}, {.dtype = AX_F32, .rank = 1, .dims = {4096}}},
     .donated = true},
    {"accumulate", products_added, 3,
     .in = {{.dtype = AX_F32, .rank = 2, .dims = {64, 64}},
            {.dtype = AX_F32, .rank = 3, .dims = {9, 64, 32}},
            {.dtype = AX_F32, .rank = 3, .dims = {9, 32, 64}}}},
    {"alternate", around, 1, .in = {{.dtype = AX_F32, .rank = 1, .dims = {4096}}}, .mesh = "d=2"},
    {"rows", softmax, 1, .in = {{.dtype = AX_F32, .rank = 2, .dims = {512, 512}}}},
    {"panels", powers, 2,
     .in = {{.dtype = AX_F32, .rank = 2, .dims = {160, 256}}, {.dtype = AX_F32, .rank = 2, .dims = {256, 256}}}},
    {"overwrite", sorted_and_squared, 1, .in = {{.dtype = AX_F32, .rank = 1, .dims = {4096}}}},
    {"stream", pointwise, 1, .in = {{.dtype = AX_F32, .rank = 1, .dims = {1 << 26}}}},
    {"contract", product_and_sum, 1, .in = {{.dtype = AX_F32, .rank = 1, .dims = {64}}}},
};

static ax_program *program_of(const struct example *x) {
  if (x->mesh != NULL) {
    const test_map map = {.mesh = x->mesh,
                          .in_specs = {"d", x->in_count > 1 ? "d" : NULL},
                          .out_specs = {"", x->in_count > 1 ? "d" : NULL},
                          .body = x->function,
                          .unchecked = true};
    return test_trace_map(&map, x->in);
  }
  ax_program *program = test_trace(x->function, NULL, x->in, x->in_count, 1), *gradient;
  if (!x->derived) return program;
  TEST_OK(ax_program_grad(program, test_args((bool[]){true, true}, 2), &gradient));
  ax_program_release(program);
  return gradient;
}

/* The plan after all passes but this one (NULL: after all): its text, and which properties hold. ax_string_free. */
static char *outcome_without(const struct example *x, const char *left_out) {
  ax_program *program = program_of(x);
  static const bool all[AX_COUNT(x->in)] = {true, true, true};
  ax_plan_pass passes[32];
  uint32_t count = 0;
  ax_text text = {0};
  char *out;
  assert_true(ax_plan_pass_count <= AX_COUNT(passes));
  for (uint32_t i = 0; i < ax_plan_pass_count; i++)
    if (left_out == NULL || strcmp(ax_plan_passes[i].name, left_out) != 0) passes[count++] = ax_plan_passes[i];
  ax_plan *plan = test_plan(program);
  if (x->donated) plan->donate = all;
  plan->options.contract = strcmp(x->pass, "contract") == 0;
  if (left_out == NULL) TEST_OK(ax_plan_optimise(plan, NULL, NULL)); /* the table itself */
  else TEST_OK(ax_plan_run_passes(plan, passes, count, NULL, NULL));
  ax_plan_text(&text, plan);
  for (ax_plan_properties p = 1; p <= AX_PLAN_UNCUT; p <<= 1) ax_text_add(&text, "%d", ax_plan_verify_properties(plan, p) == AX_OK);
  TEST_OK(ax_text_finish(&text, &out));
  ax_plan_destroy(plan);
  ax_program_release(program);
  return out;
}

static void each_does_something(void **state) {
  (void)state;
  assert_int_equal(ax_plan_pass_count, AX_COUNT(examples));
  for (uint32_t i = 0; i < ax_plan_pass_count; i++) {
    const struct example *x = &examples[i];
    assert_string_equal(x->pass, ax_plan_passes[i].name);
    char *with = outcome_without(x, NULL), *without = outcome_without(x, x->pass);
    if (strcmp(with, without) == 0) fail_msg("pass %s changes nothing of its example:\n%s", x->pass, with);
    ax_free(with), ax_free(without);
  }
}

/* A plan with a group of rows is not separate, whatever is said of it. */
static void properties_are_checked(void **state) {
  (void)state;
  static const struct {
    const char *pass;
    ax_plan_property broken;
  } cases[] = {{"rows", AX_PLAN_SEPARATE},
               {"panels", AX_PLAN_UNPACKED},
               {"stream", AX_PLAN_CACHED},
               {"cut", AX_PLAN_UNCUT}};
  for (size_t c = 0; c < AX_COUNT(cases); c++)
    for (size_t i = 0; i < AX_COUNT(examples); i++) {
      if (strcmp(examples[i].pass, cases[c].pass) != 0) continue;
      ax_program *program = program_of(&examples[i]);
      ax_plan *plan = test_plan(program);
      TEST_OK(ax_plan_verify_properties(plan, AX_PLAN_LOWERED));
      TEST_OK(ax_plan_optimise(plan, NULL, NULL));
      if (ax_plan_verify_properties(plan, cases[c].broken) != AX_INTERNAL)
        fail_msg("%s was not found to break its property", cases[c].pass);
      assert_non_null(strstr(ax_message(), "any more, as is said of it"));
      ax_plan_destroy(plan);
      ax_program_release(program);
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(order_is_allowed), cmocka_unit_test(wrong_order_is_refused), cmocka_unit_test(what_is_made_again_holds),
      cmocka_unit_test(names_agree),      cmocka_unit_test(each_does_something),    cmocka_unit_test(properties_are_checked),
  };
  return cmocka_run_group_tests_name("passes", tests, NULL, NULL);
}
