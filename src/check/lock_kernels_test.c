/* Kernels of 2 to 64 cores under one lock: what a section does decides how the checker comes to an answer, and what that costs.
   AXLE_PROOFS=1 prints the table of docs/checker.md. */
#include "axle/check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "axle/axle.h"
#include "support/cmocka.h"
#include "support/random.h"
#include "support/run.h"
#include "support/tensor.h"

/* What a body has: operand, result, and scratch of the kernel. */
enum { X, Y, SUM, LOCK, DONE, REFS };

typedef struct kernel {
  const char *name;
  ax_value (*section)(const ax_value *refs);          /* what is done with the lock .. */
  void (*after)(const ax_value *refs, ax_value value); /* .. and then */
  ax_dtype dtype;
  const char *finding; /* NULL: it is proved */
  bool searched;       /* state by state */
  int64_t from;        /* cores, from which on this is so: the order of two terms does not matter */
} kernel;

typedef struct trial {
  const kernel *k;
  int64_t cores;
  const ax_value *refs;
} trial;

static ax_value me(void) { return ax_axis_index("core"); }
static AX_BODY(nothing) {}
static void on_first(ax_function body, const trial *t) {
  ax_if(ax_eq(me(), ax_integer(0)), AX_CLOSURE(body, 0, 0, t), AX_FN(nothing, 0, 0), NULL, NULL);
}
static void signal(ax_value semaphore) { ax_semaphore_signal(semaphore, ax_integer(1), NULL); }
static ax_value number(const trial *t, double x) {
  return t->k->dtype == AX_F32 ? ax_full(AX_F32, AX_DIMS(), x) : ax_full_i64(t->k->dtype, AX_DIMS(), (int64_t)x);
}

/* The first core lets all in, and gives the sum when all are through. */
static AX_BODY(begins) {
  const trial *t = context;
  ax_ref_store(t->refs[SUM], number(t, 0));
  signal(t->refs[LOCK]);
}
static AX_BODY(ends) {
  const trial *t = context;
  ax_semaphore_wait(t->refs[DONE], ax_integer(t->cores));
  ax_semaphore_wait(t->refs[LOCK], ax_integer(1));
  ax_ref_store(ax_ref_at(t->refs[Y], ax_integer(t->cores)), ax_ref_load(t->refs[SUM]));
}

static AX_BODY(body) {
  trial t = *(const trial *)context;
  t.refs = in;
  on_first(begins, &t);
  ax_semaphore_wait(in[LOCK], ax_integer(1));
  const ax_value value = t.k->section(in);
  signal(in[LOCK]);
  t.k->after(in, value);
  signal(in[DONE]);
  on_first(ends, &t);
}

static AX_BODY(call) {
  const trial *t = context;
  const ax_core_mesh mesh = {
      .core = "core", .mesh = {.count = 1, .axis = {{.name = "core", .size = t->cores}}}, .threads = "core"};
  const ax_scratch scratch[] = {{.type = ax_ref_type(AX_SPACE_VMEM, t->k->dtype, AX_DIMS())},
                                {.type = ax_semaphore_type(AX_DIMS())},
                                {.type = ax_semaphore_type(AX_DIMS())}};
  const ax_kernel_options options = {.scratch = {AX_LIST(AX_COUNT(scratch), scratch)}};
  ax_mpmd_map(AX_LIST(1, &mesh), &AX_CLOSURE(body, REFS, 0, t), &options, AX_LIST(1, in),
              AX_TYPES(AX_TYPE(t->k->dtype, t->cores + 1)), out);
}

/* --- Sections --- */

static ax_value mine(const ax_value *refs) { return ax_ref_load(ax_ref_at(refs[X], me())); }
static ax_value keeps_own(const ax_value *refs) {
  const ax_value value = mine(refs);
  ax_ref_store(ax_ref_at(refs[Y], me()), value);
  return value;
}
static ax_value adds(const ax_value *refs) {
  const ax_value value = mine(refs);
  ax_ref_store(refs[SUM], ax_add(ax_ref_load(refs[SUM]), value));
  return value;
}
/* 1, and often 2^-24, which is lost beside 1. */
static ax_value adds_little(const ax_value *refs) {
  const ax_value value = ax_where(ax_eq(me(), ax_integer(1)), ax_full(AX_F32, AX_DIMS(), 1), ax_real(1.0 / (1 << 24)));
  ax_ref_store(refs[SUM], ax_add(ax_ref_load(refs[SUM]), value));
  return value;
}
static ax_value takes_largest(const ax_value *refs) {
  const ax_value value = mine(refs);
  ax_ref_store(refs[SUM], ax_max(value, ax_ref_load(refs[SUM])));
  return value;
}
static ax_value multiplies(const ax_value *refs) {
  const ax_value value = mine(refs);
  ax_ref_store(refs[SUM], ax_mul(ax_ref_load(refs[SUM]), value));
  return value;
}
static ax_value joins_bits(const ax_value *refs) {
  const ax_value value = mine(refs);
  ax_ref_store(refs[SUM], ax_or(ax_ref_load(refs[SUM]), value));
  return value;
}
/* What it compares with is more than what others write, so it is no maximum: the order decides. */
static ax_value takes_larger_and_more(const ax_value *refs) {
  const ax_value value = mine(refs), sum = ax_ref_load(refs[SUM]);
  ax_ref_store(refs[SUM], ax_max(ax_ref_load(refs[SUM]), ax_add(sum, value)));
  ax_ref_store(refs[SUM], ax_mul(ax_ref_load(refs[SUM]), ax_integer(3)));
  return value;
}
/* Each core's own element, where other cores add nothing: the order of its two terms is that of the program. */
static ax_value adds_to_own(const ax_value *refs) {
  const ax_value own = ax_ref_at(refs[Y], me());
  ax_ref_store(own, ax_full(AX_F32, AX_DIMS(), 1));
  ax_ref_store(own, ax_add(ax_ref_load(own), ax_full(AX_F32, AX_DIMS(), 0x1p-30)));
  return mine(refs);
}
static ax_value overwrites(const ax_value *refs) {
  const ax_value value = ax_convert_element_type(me(), AX_S32);
  ax_ref_store(refs[SUM], value);
  return value;
}
static ax_value leaves_own(const ax_value *refs) {
  const ax_value value = mine(refs);
  ax_ref_store(refs[SUM], value);
  return value;
}
static ax_value takes_ticket(const ax_value *refs) {
  const ax_value ticket = ax_ref_load(refs[SUM]);
  ax_ref_store(refs[SUM], ax_add(ticket, ax_integer(1)));
  return ticket;
}

static void nothing_more(const ax_value *refs, ax_value value) { (void)refs, (void)value; }
static void keeps(const ax_value *refs, ax_value value) { ax_ref_store(ax_ref_at(refs[Y], me()), value); }
/* The ticket says which element this core computes. */
static void works(const ax_value *refs, ax_value ticket) {
  ax_ref_store(ax_ref_at(refs[Y], ticket), ax_mul(ax_ref_load(ax_ref_at(refs[X], ticket)), ax_integer(2)));
}

/* The last core, if it comes first, stores to the first one's element as well. */
static AX_BODY(stores_to_first) {
  ax_ref_store(ax_ref_at(((const ax_value *)context)[Y], ax_integer(0)), ax_full_i64(AX_S32, AX_DIMS(), 5));
}
static void keeps_and_more(const ax_value *refs, ax_value ticket) {
  keeps(refs, ticket);
  ax_if(ax_eq(ax_add(ax_mul(ticket, ax_integer(100)), me()), ax_integer(3)), AX_CLOSURE(stores_to_first, 0, 0, refs),
        AX_FN(nothing, 0, 0), NULL, NULL);
}

static const kernel kernels[] = {
    {"other elements of memory", keeps_own, nothing_more, AX_S32, NULL, false, 2},
    {"a sum of integers", adds, keeps, AX_S32, NULL, false, 2},
    {"a sum of floats, without rounding", adds, keeps, AX_F32, NULL, false, 2},
    {"a sum of floats of each core's own", adds_to_own, nothing_more, AX_F32, NULL, false, 2},
    {"the largest of integers", takes_largest, keeps, AX_S32, NULL, false, 2},
    {"the largest of floats", takes_largest, keeps, AX_F32, NULL, false, 2},
    {"a product of integers", multiplies, keeps, AX_S32, NULL, false, 2},
    {"bits of integers, joined", joins_bits, keeps, AX_S32, NULL, false, 2},
    {"the largest, of what is changed as well", takes_larger_and_more, keeps, AX_S32, "several results", true, 2},
    {"a sum of floats that are rounded", adds_little, keeps, AX_F32, "order of additions", true, 3},
    {"the same element: the last one stays", overwrites, keeps, AX_S32, "several results", true, 2},
    {"tickets: which element to compute", takes_ticket, works, AX_S32, NULL, true, 2},
    {"tickets, which each core gives as its result", takes_ticket, keeps, AX_S32, "several results", true, 2}};

/* --- What is found, and what it takes --- */

static ax_check_report *check_as(const kernel *k, int64_t cores, const ax_check_options *options) {
  ax_program *program;
  ax_check_report *report;
  const ax_type type = AX_TYPE(k->dtype, cores);
  const trial t = {.k = k, .cores = cores};
  TEST_OK(ax_trace(AX_CLOSURE(call, 1, 1, &t), &type, &program));
  TEST_OK(ax_check(program, options, &report));
  ax_program_release(program);
  return report;
}

static ax_check_report *check(const kernel *k, int64_t cores, const ax_check_options *options) {
  ax_check_options with = *options;
  int32_t values[64];
  for (int i = 0; i < 64; i++) values[i] = i * i + 1;
  const int32_t *const pointer = values;
  const ax_host_array x = AX_HOST_AT(pointer, cores);
  if (k->dtype == AX_S32) with.in = (ax_host_array_list){.count = 1, .v = &x};
  return check_as(k, cores, &with);
}

static void expect(const kernel *k, int64_t cores, const ax_check_options *options, bool print) {
  ax_check_report *report = check(k, cores, options);
  const ax_check_kernel *kernel = &report->kernels[0];
  bool found = k->finding == NULL;
  for (uint32_t i = 0; i < kernel->finding_count; i++) found = found || strcmp(kernel->findings[i].kind, k->finding) == 0;
  if (print) {
    if (kernel->states > 0) printf(" %llu, %.3f |", (unsigned long long)kernel->states, kernel->seconds);
    else printf(" %.4f |", kernel->seconds);
    fflush(stdout);
  } else if (cores >= k->from && (report->verdict != (k->finding == NULL ? AX_PROVED : AX_WRONG) || !found))
    fail_msg("%s, %lld cores: verdict %d: %s; %s", k->name, (long long)cores, report->verdict, kernel->how,
             kernel->finding_count > 0 ? kernel->findings[0].text : "no finding");
  if (!options->explore && !options->exhaustive) assert_int_equal(kernel->states > 0, k->searched);
  ax_check_report_release(report);
}

/* Every state of small ones is looked at. */
static void test_small(void **state) {
  (void)state;
  for (uint32_t k = 0; k < AX_COUNT(kernels); k++)
    for (int64_t cores = 2; cores <= 4; cores++) {
      expect(&kernels[k], cores, &(ax_check_options){0}, false);
      expect(&kernels[k], cores, &(ax_check_options){.explore = true}, false);
      if (cores < 4) expect(&kernels[k], cores, &(ax_check_options){.exhaustive = true}, false);
    }
}

static void test_growth(void **state) {
  (void)state;
  const bool print = getenv("AXLE_PROOFS") != NULL;
  for (uint32_t k = 0; k < AX_COUNT(kernels); k++) {
    if (print) printf("| %s |", kernels[k].name);
    for (int64_t cores = 2; cores <= (print ? 64 : kernels[k].finding == NULL && kernels[k].searched ? 16 : 32); cores *= 2)
      expect(&kernels[k], cores, &(ax_check_options){0}, print);
    if (print) printf("\n");
  }
}

/* The search stops as there are several results, far from where core 3 comes first: the race is found all the same, and where it is not
   the finding does not say that there is none. */
static void test_late_race(void **state) {
  (void)state;
  const kernel race = {"late race", takes_ticket, keeps_and_more, AX_S32, "data race", true, 4};
  for (int64_t cores = 4; cores <= 12; cores++) expect(&race, cores, &(ax_check_options){0}, false);
  const kernel several = {"tickets", takes_ticket, keeps, AX_S32, "several results", true, 2};
  ax_check_report *report = check(&several, 8, &(ax_check_options){0});
  assert_non_null(strstr(report->kernels[0].findings[0].text, "and no race was found in the "));
  assert_non_null(strstr(report->kernels[0].how, "stopped: only "));
  ax_check_report_release(report);
}

/* Without inputs: those that a verdict depends on are named, and do not hide that results differ by being all alike. */
static void test_made_up(void **state) {
  (void)state;
  static const struct {
    kernel k;
    ax_verdict verdict;
    bool named;
  } trials[] = {{{"other elements", keeps_own, nothing_more, AX_S32, NULL, false, 2}, AX_PROVED, false},
                {{"a sum of integers", adds, keeps, AX_S32, NULL, false, 2}, AX_PROVED, false},
                {{"a sum of floats", adds, keeps, AX_F32, NULL, false, 2}, AX_PROVED, true},
                {{"a sum of each core's own", adds_to_own, nothing_more, AX_F32, NULL, false, 2}, AX_PROVED, false},
                {{"tickets", takes_ticket, works, AX_S32, NULL, true, 2}, AX_PROVED, true},
                {{"the last one stays", leaves_own, keeps, AX_S32, NULL, true, 2}, AX_WRONG, true},
                {{"the last one stays", leaves_own, keeps, AX_BOOL, NULL, true, 2}, AX_WRONG, true},
                {{"the last one stays", leaves_own, keeps, AX_U8, NULL, true, 2}, AX_WRONG, true},
                {{"the last one stays", leaves_own, keeps, AX_F32, NULL, true, 2}, AX_WRONG, true}};
  for (uint32_t k = 0; k < AX_COUNT(trials); k++)
    for (int way = 0; way < 3; way++) {
      ax_check_report *report = check_as(&trials[k].k, 3, &(ax_check_options){.explore = way == 1, .exhaustive = way == 2});
      const ax_check_kernel *kernel = &report->kernels[0];
      if (report->verdict != trials[k].verdict)
        fail_msg("%s, way %d: verdict %d: %s", trials[k].k.name, way, report->verdict, kernel->how);
      assert_int_equal(report->kernel_count, 1);
      assert_int_equal(report->made_up_count, trials[k].named);
      if (trials[k].verdict == AX_WRONG) assert_string_equal(kernel->findings[0].kind, "several results");
      ax_check_report_release(report);
    }
}

/* Sums that are small beside their terms differ by the order of additions alone; what is no sum, or more than one, by more. */

static ax_value halves_and_adds(const ax_value *refs) {
  const ax_value value = mine(refs);
  ax_ref_store(refs[SUM], ax_add(ax_mul(ax_ref_load(refs[SUM]), ax_real(0.5)), value));
  return value;
}
static ax_value adds_and_leaves(const ax_value *refs) {
  const ax_value value = mine(refs);
  ax_ref_add(refs[SUM], ax_mul(value, ax_real(1000)));
  ax_ref_store(refs[SUM], value);
  return value;
}
static ax_value adds_twice(const ax_value *refs) {
  const ax_value value = adds(refs);
  ax_ref_add(refs[SUM], ax_neg(value));
  ax_ref_add(refs[SUM], value);
  return value;
}

static void test_roundings(void **state) {
  (void)state;
  static const float mixed[16] = {1.1F, -1.2F,   2.3F,   -2.4F, 3.7F, -3.6F, .1F,    -.02F,
                                  1,    -100.7F, 100.3F, .3F,   -.7F, 11.3F, -11.1F, .01F};
  static const float near[16] = {1, 1.0001F, 1.0002F, 1.0003F, 1.0004F, 1.0005F, 1.0006F, 1.0007F, 1, 1, 1, 1, 1, 1, 1, 1};
  static const struct {
    kernel k;
    const float *x;
  } trials[] = {{{"mixed signs", adds, keeps, AX_F32, "order of additions", true, 2}, mixed},
                {{"mixed signs, twice", adds_twice, keeps, AX_F32, "order of additions", true, 2}, mixed},
                {{"halves", halves_and_adds, keeps, AX_F32, "several results", true, 2}, mixed},
                {{"the last one's, nearly alike", adds_and_leaves, keeps, AX_F32, "several results", true, 2}, near}};
  for (uint32_t k = 0; k < AX_COUNT(trials); k++)
    for (int64_t cores = 4; cores <= 16; cores *= 2) {
      const ax_host_array x = AX_HOST_AT(trials[k].x, cores);
      ax_check_report *report = check_as(&trials[k].k, cores, &(ax_check_options){.in = {1, &x}});
      if (report->verdict != AX_WRONG || strcmp(report->kernels[0].findings[0].kind, trials[k].k.finding) != 0)
        fail_msg("%s, %d cores: %s", trials[k].k.name, (int)cores,
                 report->verdict == AX_WRONG ? report->kernels[0].findings[0].kind : report->kernels[0].how);
      ax_check_report_release(report);
    }
}

/* --- At random --- */

enum { ADD, MAX, MIN, FLOAT_UPDATES, MUL = FLOAT_UPDATES, AND, OR, XOR, UPDATES };

typedef struct draw {
  ax_dtype dtype;
  uint32_t cores, update[3];
  bool adds_first[3]; /* the term is not the core's own, as what is there is added to it */
} draw;

static ax_value updated(uint32_t update, ax_value a, ax_value b) {
  switch (update) {
    case MAX:
      return ax_max(a, b);
    case MIN:
      return ax_min(a, b);
    case MUL:
      return ax_mul(a, b);
    case AND:
      return ax_and(a, b);
    case OR:
      return ax_or(a, b);
    case XOR:
      return ax_xor(a, b);
    default:
      return ax_add(a, b);
  }
}

static AX_BODY(updates_body) {
  const draw *d = context;
  ax_semaphore_wait(in[LOCK], ax_integer(1));
  for (uint32_t c = 0; c < d->cores; c++)
    AX_IF (ax_eq(me(), ax_integer(c))) {
      const ax_value own = mine(in), value = d->adds_first[c] ? ax_add(ax_ref_load(in[SUM]), own) : own;
      ax_ref_store(in[SUM], updated(d->update[c], ax_ref_load(in[SUM]), value));
    }
  signal(in[LOCK]);
  signal(in[DONE]);
}

static AX_BODY(updates_first) {
  const draw *d = context;
  ax_ref_store(in[SUM], ax_ref_load(ax_ref_at(in[X], ax_integer(d->cores))));
  signal(in[LOCK]);
}

static AX_BODY(updates_last) {
  const draw *d = context;
  ax_semaphore_wait(in[DONE], ax_integer(d->cores));
  ax_semaphore_wait(in[LOCK], ax_integer(1));
  ax_ref_store(ax_ref_at(in[Y], ax_integer(0)), ax_ref_load(in[SUM]));
}

static AX_BODY(updates_core) {
  const draw *d = context;
  AX_IF (ax_eq(me(), ax_integer(0))) updates_first(in, NULL, (void *)d);
  updates_body(in, NULL, (void *)d);
  AX_IF (ax_eq(me(), ax_integer(0))) updates_last(in, NULL, (void *)d);
}

static AX_BODY(updates_call) {
  const draw *d = context;
  const ax_core_mesh mesh = {.core = "core", .mesh = {.count = 1, .axis = {{.name = "core", .size = d->cores}}}, .threads = "core"};
  const ax_scratch scratch[] = {{.type = ax_ref_type(AX_SPACE_VMEM, d->dtype, AX_DIMS())},
                                {.type = ax_semaphore_type(AX_DIMS())},
                                {.type = ax_semaphore_type(AX_DIMS())}};
  const ax_kernel_options options = {.scratch = {AX_LIST(AX_COUNT(scratch), scratch)}};
  ax_mpmd_map(AX_LIST(1, &mesh), &AX_CLOSURE(updates_core, REFS, 0, d), &options, AX_LIST(1, in), AX_TYPES(AX_TYPE(d->dtype, 1)),
              out);
}

static struct { uint32_t kernels, right, of_locks, wrong; } met;

/* Updates of each kind, mostly of one, to one element; of integers, and of floats among which are NaN and zeros of both signs: a
   kernel that is proved without a search has one result in all orders. */
static void one(uint64_t seed, bool show) {
  static const float floats[] = {1.5F, -2, 0.25F, 3, 1, NAN, 0, -0.0F};
  test_random random = {seed};
  draw d = {.dtype = test_random_below(&random, 2) == 0 ? AX_S32 : AX_F32, .cores = 2 + (uint32_t)test_random_below(&random, 2)};
  const uint32_t updates = d.dtype == AX_F32 ? FLOAT_UPDATES + 1 : UPDATES, usual = (uint32_t)test_random_below(&random, updates),
                 special = test_random_below(&random, 3) == 0 ? 8 : 5;
  int32_t integers[4];
  float reals[4];
  (void)show;
  for (uint32_t c = 0; c < d.cores; c++) {
    d.update[c] = test_random_below(&random, 8) == 0 ? (uint32_t)test_random_below(&random, updates) : usual;
    d.adds_first[c] = test_random_below(&random, 12) == 0;
  }
  for (uint32_t c = 0; c < 4; c++) {
    integers[c] = (int32_t)test_random_below(&random, 60) - 20;
    reals[c] = floats[test_random_below(&random, special)];
  }
  const int32_t *const some_integers = integers;
  const float *const some_reals = reals;
  const ax_host_array x = d.dtype == AX_S32 ? AX_HOST_AT(some_integers, d.cores + 1) : AX_HOST_AT(some_reals, d.cores + 1);
  const ax_type type = AX_TYPE(d.dtype, d.cores + 1);
  ax_program *program;
  ax_check_report *proof, *all;
  TEST_OK(ax_trace(AX_CLOSURE(updates_call, 1, 1, &d), &type, &program));
  TEST_OK(ax_check(program, &(ax_check_options){.in = {1, &x}}, &proof));
  TEST_OK(ax_check(program, &(ax_check_options){.in = {1, &x}, .exhaustive = true}, &all));
  if (proof->verdict != all->verdict)
    fail_msg("seed %llu: %d, and %d by all orders: %s", (unsigned long long)seed, proof->verdict, all->verdict,
             proof->kernels[0].how);
  met.kernels++;
  met.right += all->verdict == AX_PROVED;
  met.wrong += all->verdict == AX_WRONG;
  met.of_locks += proof->verdict == AX_PROVED && proof->kernels[0].states == 0;
  ax_check_report_release(proof);
  ax_check_report_release(all);
  ax_program_release(program);
}

static void test_updates(void **state) {
  (void)state;
  test_each_seed(400, one);
  print_message("%u kernels: %u right, %u of these proved for their locks, %u wrong\n", met.kernels, met.right, met.of_locks,
                met.wrong);
  if (met.kernels == 400) assert_true(met.of_locks > 150 && met.wrong > 40 && met.right > met.of_locks);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_small),     cmocka_unit_test(test_made_up),
                                     cmocka_unit_test(test_late_race), cmocka_unit_test(test_growth),
                                     cmocka_unit_test(test_updates),   cmocka_unit_test(test_roundings)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
