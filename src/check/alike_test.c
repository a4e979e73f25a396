/* Cores that do the same, at random: the search that takes them for one another says what the search of all states says. */
#include "axle/check.h"

#include <stdio.h>
#include <string.h>

#include "axle/axle.h"
#include "support/cmocka.h"
#include "support/random.h"
#include "support/run.h"
#include "support/tensor.h"

/* What a body has: operand, result, and scratch of the kernel. */
enum { X, Y, CELLS, LOCK, DONE, REFS };
enum { most_steps = 5, cells = 4, kernels = 150, most_states = 60000 };

typedef enum kind { TAKE, GIVE, TICKET, LOAD, STORE, STORE_AT, OWN, BRANCH, LAST, KINDS } kind;

typedef struct step {
  kind kind;
  int64_t cell;
} step;

typedef struct plan {
  test_random random;
  int64_t cores;
  step steps[most_steps];
  uint32_t count;
  bool first_too; /* the first core does the same */
} plan;

static uint32_t below(plan *p, uint32_t count) { return (uint32_t)test_random_below(&p->random, count); }
static bool chance(plan *p, uint32_t percent) { return below(p, 100) < percent; }

static ax_value me(void) { return ax_axis_index("core"); }
static AX_BODY(nothing) {}
static void signal(ax_value semaphore, int64_t count) { ax_semaphore_signal(semaphore, ax_integer(count), NULL); }
static ax_value cell(const ax_value *refs, ax_value at) { return ax_ref_at(refs[CELLS], at); }

typedef struct part {
  const plan *plan;
  const ax_value *refs;
  ax_value value;
} part;

static AX_BODY(stores_other) {
  const part *p = context;
  ax_ref_store(cell(p->refs, ax_integer(1)), ax_full_i64(AX_S32, AX_DIMS(), 5));
}

static AX_BODY(stores_value) {
  const part *p = context;
  ax_ref_store(cell(p->refs, ax_integer(2)), p->value);
}

/* The value that a core has goes from step to step. */
static ax_value emit(const part *p, const step *s) {
  const ax_value at = ax_integer(s->cell), zero = ax_integer(0);
  switch (s->kind) {
    case TAKE: ax_semaphore_wait(p->refs[LOCK], ax_integer(1)); return p->value;
    case GIVE: signal(p->refs[LOCK], 1); return p->value;
    case TICKET: {
      const ax_value ticket = ax_ref_load(cell(p->refs, zero));
      ax_ref_store(cell(p->refs, zero), ax_add(ticket, ax_integer(1)));
      return ticket;
    }
    case LOAD: return ax_add(p->value, ax_ref_load(cell(p->refs, at)));
    case STORE: ax_ref_store(cell(p->refs, at), p->value); return p->value;
    case STORE_AT: { /* where the value says */
      const ax_value last = ax_integer(cells - 1);
      ax_ref_store(cell(p->refs, ax_min(ax_max(p->value, zero), last)), ax_full_i64(AX_S32, AX_DIMS(), 7));
      return p->value;
    }
    case OWN: ax_ref_store(ax_ref_at(p->refs[Y], me()), p->value); return p->value;
    case LAST: /* the last core alone */
      ax_if(ax_eq(me(), ax_integer(p->plan->cores - 1)), AX_CLOSURE(stores_value, 0, 0, p), AX_FN(nothing, 0, 0), NULL, NULL);
      return p->value;
    default:
      ax_if(ax_lt(p->value, ax_integer(1)), AX_CLOSURE(stores_other, 0, 0, p), AX_FN(nothing, 0, 0), NULL, NULL);
      return p->value;
  }
}

static AX_BODY(work) {
  part p = *(const part *)context;
  for (uint32_t k = 0; k < p.plan->count; k++) p.value = emit(&p, &p.plan->steps[k]);
  signal(p.refs[DONE], 1);
}

static AX_BODY(begins) {
  const part *p = context;
  for (int64_t k = 0; k < cells; k++) ax_ref_store(cell(p->refs, ax_integer(k)), ax_full_i64(AX_S32, AX_DIMS(), k));
  for (int64_t k = 0; k < 4; k++) ax_ref_store(ax_ref_at(p->refs[Y], ax_integer(k)), ax_full_i64(AX_S32, AX_DIMS(), 0));
  signal(p->refs[LOCK], 1);
}

static AX_BODY(ends) {
  const part *p = context;
  ax_semaphore_wait(p->refs[DONE], ax_integer(p->plan->cores - !p->plan->first_too));
  ax_semaphore_wait(p->refs[LOCK], ax_integer(1));
  ax_value sum = ax_full_i64(AX_S32, AX_DIMS(), 0);
  for (int64_t k = 0; k < cells; k++) sum = ax_add(ax_mul(sum, ax_integer(10)), ax_ref_load(cell(p->refs, ax_integer(k))));
  ax_ref_store(ax_ref_at(p->refs[Y], ax_integer(4)), sum);
}

static AX_BODY(body) {
  const part p = {context, in, ax_full_i64(AX_S32, AX_DIMS(), 0)};
  const ax_value first = ax_eq(me(), ax_integer(0));
  ax_if(first, AX_CLOSURE(begins, 0, 0, &p), AX_FN(nothing, 0, 0), NULL, NULL);
  if (p.plan->first_too) work(NULL, NULL, (void *)&p);
  else ax_if(first, AX_FN(nothing, 0, 0), AX_CLOSURE(work, 0, 0, &p), NULL, NULL);
  ax_if(first, AX_CLOSURE(ends, 0, 0, &p), AX_FN(nothing, 0, 0), NULL, NULL);
}

static AX_BODY(call) {
  const plan *p = context;
  const ax_core_mesh mesh = {
      .core = "core", .mesh = {.count = 1, .axis = {{.name = "core", .size = p->cores}}}, .threads = "core"};
  const ax_scratch scratch[] = {
      {.type = AX_VMEM(AX_S32, cells)}, {.type = ax_semaphore_type(AX_DIMS())}, {.type = ax_semaphore_type(AX_DIMS())}};
  const ax_kernel_options options = {.scratch = {AX_LIST(AX_COUNT(scratch), scratch)}};
  ax_mpmd_map(AX_LIST(1, &mesh), &AX_CLOSURE(body, REFS, 0, p), &options, AX_LIST(1, in), AX_TYPES(AX_TYPE(AX_S32, 5)), out);
}

static void add(plan *p, kind kind) {
  if (p->count < most_steps) p->steps[p->count++] = (step){kind, below(p, cells)};
}

/* Mostly a section, and something after it. */
static plan make_plan(uint64_t seed) {
  plan p = {.random = {seed}};
  p.cores = 3 + chance(&p, 30);
  p.first_too = p.cores == 3 && chance(&p, 40);
  if (chance(&p, 85)) add(&p, TAKE);
  add(&p, chance(&p, 60) ? TICKET : (kind)(LOAD + below(&p, KINDS - LOAD)));
  if (chance(&p, 20)) add(&p, (kind)(LOAD + below(&p, KINDS - LOAD)));
  if (p.steps[0].kind == TAKE && chance(&p, 90)) add(&p, GIVE);
  if (chance(&p, 70)) add(&p, chance(&p, 50) ? STORE_AT : (kind)(LOAD + below(&p, KINDS - LOAD)));
  return p;
}

static uint32_t kinds_of(const ax_check_kernel *k) {
  static const char *const all[] = {"deadlock", "data race", "leaked semaphore", "several results", "read of unset memory"};
  uint32_t kinds = 0;
  for (uint32_t f = 0; f < k->finding_count; f++)
    for (uint32_t i = 0; i < AX_COUNT(all); i++)
      if (strcmp(k->findings[f].kind, all[i]) == 0) kinds |= 1u << i;
  return kinds;
}

static struct { uint64_t kernels, proved, several, fewer, bounded; } total;

static void one(uint64_t seed, bool show) {
  const plan p = make_plan(seed);
  ax_program *program;
  ax_check_report *some, *all;
  const ax_type type = AX_TYPE(AX_S32, 1);
  (void)show;
  TEST_OK(ax_trace(AX_CLOSURE(call, 1, 1, &p), &type, &program));
  TEST_OK(ax_check(program, &(ax_check_options){.explore = true, .max_states = most_states}, &some));
  TEST_OK(ax_check(program, &(ax_check_options){.exhaustive = true, .max_states = most_states}, &all));
  const ax_check_kernel *a = &some->kernels[0], *b = &all->kernels[0];
  const bool bounded = a->states >= most_states || b->states >= most_states;
  if (!bounded && (some->verdict != all->verdict || kinds_of(a) != kinds_of(b) || a->outcomes != b->outcomes))
    fail_msg("seed %llu: verdict %d with %u results, %s; of all states %d with %u, %s", (unsigned long long)seed, some->verdict,
             a->outcomes, a->finding_count > 0 ? a->findings[0].text : "", all->verdict, b->outcomes,
             b->finding_count > 0 ? b->findings[0].text : "");
  total.kernels++;
  total.bounded += bounded;
  total.proved += some->verdict == AX_PROVED;
  total.several += b->outcomes > 1;
  total.fewer += 4 * a->states < b->states;
  ax_check_report_release(some);
  ax_check_report_release(all);
  ax_program_release(program);
}

static void test_at_random(void **state) {
  (void)state;
  test_each_seed(kernels, one);
  print_message("%llu kernels: %llu proved, %llu with several results, %llu with a quarter of the states, %llu bounded\n",
                (unsigned long long)total.kernels, (unsigned long long)total.proved, (unsigned long long)total.several,
                (unsigned long long)total.fewer, (unsigned long long)total.bounded);
  if (total.kernels < kernels) return;
  assert_true(total.proved > kernels / 10 && total.several > kernels / 10 && total.bounded < kernels / 4);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_at_random)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
