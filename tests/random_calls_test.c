/* Programs at random that call the host: in loops, branches and calls, beside collectives. What is called is what reference
   evaluation calls, and ordered calls are in its order, under every policy. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "axle/axle.h"
#include "support/cmocka.h"
#include "support/host.h"
#include "support/random.h"
#include "support/run.h"

/* A body made of calls, collectives, loops and branches, which all devices go through alike. */
typedef struct maker {
  test_random random;
  ax_callback *count;
  uint32_t depth, left; /* how much more may be made */
} maker;

static uint32_t below(maker *m, uint32_t n) { return (uint32_t)(ax_next_random(&m->random.state) % n); }

static AX_BODY(make_body);

static AX_BODY(is_small) { out[0] = ax_lt(in[0], ax_integer(2)); }
static AX_BODY(make_step) {
  make_body(in + 1, out + 1, context);
  out[0] = ax_add(in[0], ax_integer(1));
}

static ax_value make_region(maker *m, ax_value x) {
  ax_value made[2];
  m->depth++;
  switch (below(m, 4)) {
    case 0: ax_scan(AX_CLOSURE(make_body, 1, 1, m), 1, below(m, 4), false, &x, made); break;
    case 1: ax_closed_call(AX_CLOSURE(make_body, 1, 1, m), &x, made); break;
    case 2: {
      ax_value some = ax_gt(ax_psum(ax_reduce_sum(x, AX_ALL_DIMS, false), "d"), ax_real(0));
      ax_if(some, AX_CLOSURE(make_body, 1, 1, m), AX_CLOSURE(make_body, 1, 1, m), &x, made);
      break;
    }
    default: {
      ax_value start[] = {ax_full(AX_S32, AX_DIMS(), 0), x};
      ax_while(AX_FN(is_small, 2, 1), AX_CLOSURE(make_step, 2, 2, m), start, made);
      made[0] = made[1];
    }
  }
  m->depth--;
  return made[0];
}

static ax_value make_one(maker *m, ax_value x) {
  ax_value y = x, all;
  const ax_type type = ax_typeof(x);
  switch (below(m, 9)) {
    case 0: ax_debug_print("o {:.4f}", true, AX_LIST(1, &x)); return x;
    case 1: ax_debug_print("u {:.4f}", false, AX_LIST(1, &x)); return x;
    case 2: ax_debug_print("o once", true, AX_VALUES()); return ax_sin(x);
    case 3: ax_io_callback(m->count, true, AX_LIST(1, &x), AX_LIST(1, &type), &y); return ax_sub(y, ax_real(1));
    case 4: ax_io_callback(m->count, false, AX_LIST(1, &x), AX_TYPES(), NULL); return x;
    case 5: ax_pure_callback(m->count, false, AX_LIST(1, &x), AX_LIST(1, &type), &y); return ax_sub(y, ax_real(1));
    case 6: all = ax_pmean(x, "d"); return ax_add(ax_mul(x, ax_real(0.5)), all);
    default: return m->depth < 3 && m->left > 0 ? make_region(m, x) : ax_sin(x);
  }
}

static AX_BODY(make_body) {
  maker *m = context;
  ax_value x = in[0];
  for (uint32_t i = 2 + below(m, 4); i > 0 && m->left > 0; i--, m->left--) x = make_one(m, x);
  out[0] = ax_add(x, ax_mul(in[0], ax_real(0)));
}

/* Keeps the ordered lines, as they are, and the others sorted. */
static void split_lines(const test_log *from, test_log *ordered, test_log *others) {
  for (const char *at = test_log_text(from); *at != '\0'; at = strchr(at, '\n') + 1) {
    test_log *to = *at == 'o' ? ordered : others;
    ax_text_add_bytes(&to->text, at, (size_t)(strchr(at, '\n') + 1 - at));
  }
  test_log_sort(others);
}

/* But for the last digit of numbers, which the functions of compiled code may round otherwise. */
static bool same_text(const test_log *a, const test_log *b) {
  const char *x = test_log_text(a), *y = test_log_text(b);
  while (*x != '\0' && *y != '\0') {
    char *past_x, *past_y;
    const double u = strtod(x, &past_x), v = strtod(y, &past_y);
    if ((past_x == x) != (past_y == y)) return false;
    if (past_x == x ? *x != *y : fabs(u - v) > 1.5e-4) return false;
    x = past_x == x ? x + 1 : past_x;
    y = past_y == y ? y + 1 : past_y;
  }
  return *x == *y;
}

static ax_status count_unseen(ax_callback_call *call,
                              void *context) { /* as test_count_call, of which the name says whether it is in order */
  (void)context;
  for (uint32_t k = 0; k < call->out_count; k++)
    for (int64_t i = 0; i < 2; i++) ((float *)call->out[k].data)[i] = (float)(ax_host_at(&call->in[0], i) + 1);
  return AX_OK;
}

static void one_at_random(uint64_t seed, bool show) {
  test_log wanted, wanted_ordered, wanted_others;
  test_log_begin(&wanted), test_log_begin(&wanted_ordered), test_log_begin(&wanted_others);
  ax_callback *count = test_callback("count", count_unseen, NULL);
  maker m = {.random = {seed}, .count = count, .left = 25};
  const test_map map = {.mesh = "d=4", .in_specs = {"d"}, .out_specs = {"d"}, .body = make_body, .context = &m};
  ax_program *program = test_trace_map(&map, (ax_type[]){TEST_TYPE(AX_F32, 8)});
  if (show) test_show_program(program);
  test_evaluate_calls(program, &wanted);
  split_lines(&wanted, &wanted_ordered, &wanted_others);
  for (size_t w = 0; w < test_order_count; w++) {
    test_log log, ordered, others;
    test_log_begin(&log), test_log_begin(&ordered), test_log_begin(&others);
    ax_runtime *runtime = test_host_runtime(test_orders[w], &log);
    TEST_OK(test_run_calls(runtime, program, NULL));
    split_lines(&log, &ordered, &others);
    if (!same_text(&ordered, &wanted_ordered) || !same_text(&others, &wanted_others))
      fail_msg("seed %llu, way %zu:\n%s%s\nnot\n%s%s", (unsigned long long)seed, w, test_log_text(&ordered), test_log_text(&others),
               test_log_text(&wanted_ordered), test_log_text(&wanted_others));
    ax_runtime_release(runtime);
    test_log_end(&log), test_log_end(&ordered), test_log_end(&others);
  }
  ax_program_release(program);
  ax_callback_release(count);
  test_log_end(&wanted), test_log_end(&wanted_ordered), test_log_end(&wanted_others);
}

static void at_random(void **state) {
  (void)state;
  test_each_seed(40, one_at_random);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(at_random)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
