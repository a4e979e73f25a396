/* "Proved for all inputs", against a check for each of many inputs.

   Kernels at random: two or three cores, with numbers that they read from a table (the input) or get by value, from which places,
   guards and masks follow. A kernel that is said to be proved for all inputs has to be proved with each table of numbers from 0 to 3;
   one that is proved for all within bounds, with each but those whose only fault is an access out of bounds. For each table all schedules are
   searched, so no proof for all inputs has a part in that. */
#include "axle/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "axle/axle.h"
#include "support/cmocka.h"
#include "support/random.h"
#include "support/run.h"

enum { most_cores = 3, most_acts = 6, entries = 3, cells = 8, few = 4, semaphores = 2, kernels = 300 };
enum { TABLE, DATA, OUT, SCRATCH, SEMAPHORE, DMA = SEMAPHORE + semaphores, OTHER_DMA, REFS };

typedef enum kind {
  STORE,
  LOAD,
  ADD,
  WIDE,
  MASKED,
  GUARDED,
  CHOSEN,
  FETCHED,
  SCOPED,
  LOOPED,
  ROUNDS,
  COPY,
  SIGNAL,
  WAIT,
  KINDS
} kind;
typedef enum form { PLAIN, OF_CORE, RAW, SHIFTED, CLAMPED, REST, SHIFTED_CLAMPED, SCALED, SUM, CHOICE, STORED, FORMS } form;

typedef struct place { /* an index: a form of an entry of the table and a number */
  form form;
  uint32_t entry, number;
} place;

typedef struct act {
  kind kind;
  place at, to;
  bool scratch, to_scratch; /* which memory */
  uint32_t semaphore;
} act;

typedef struct plan {
  test_random random;
  uint32_t cores;
  bool by_value, clamped; /* the table is a value that bodies capture; its entries are 0 to 3 */
  bool fills;             /* the scratch is written first */
  act acts[most_cores][most_acts];
  uint32_t count[most_cores];
} plan;

/* --- As a kernel --- */

typedef struct part {
  const plan *plan;
  const ax_value *refs;
  ax_value table; /* by value */
  uint32_t core;
  const act *act;
} part;

static AX_BODY(nothing) {}
static ax_value number(uint32_t n) { return ax_full_i64(AX_S32, AX_DIMS(), n); }
static ax_value entry_of(const part *p, uint32_t k) {
  return p->plan->by_value ? ax_dynamic_at(p->table, number(k), 0) : ax_ref_load(ax_ref_at(p->refs[TABLE], number(k)));
}
static ax_value clamp(ax_value x, uint32_t most) { return ax_max(ax_min(x, number(most)), number(0)); }

/* size: of the memory. */
static ax_value index_of(const part *p, const place *at, uint32_t size) {
  ax_value x = at->form > OF_CORE ? entry_of(p, at->entry) : (ax_value){0}, n = number(at->number);
  switch (at->form) {
    case PLAIN:
      return number(at->number % size);
    case OF_CORE:
      return number((p->core + at->number) % size);
    case RAW:
      return x;
    case SHIFTED:
      return ax_add(x, number(p->core));
    case CLAMPED:
      return clamp(x, size - 1);
    case REST:
      return ax_rem(clamp(x, 100), number(size));
    case SHIFTED_CLAMPED:
      return ax_add(clamp(x, size - most_cores), number(p->core));
    case SCALED:
      return ax_add(ax_mul(clamp(x, 1), number(size / 2)), number(p->core % (size / 2)));
    case SUM:
      return clamp(ax_add(x, entry_of(p, (at->entry + 1) % entries)), size - 1);
    case CHOICE:
      return ax_select_n(ax_gt(x, n), number(p->core), number(size - 1 - p->core));
    default: /* through memory that the core writes before */
      ax_ref_store(ax_ref_at(p->refs[SCRATCH], number(p->core)), clamp(x, size - 1));
      return ax_ref_load(ax_ref_at(p->refs[SCRATCH], number(p->core)));
  }
}

static ax_value cell(const part *p, const place *at, bool scratch) {
  return ax_ref_at(p->refs[scratch ? SCRATCH : OUT], index_of(p, at, scratch ? few : cells));
}

static AX_BODY(store_one) {
  const part *p = context;
  ax_ref_store(cell(p, &p->act->to, p->act->to_scratch), number(7));
}
static AX_BODY(store_other) {
  const part *p = context;
  ax_ref_store(cell(p, &p->act->at, p->act->scratch), number(8));
}

/* A copy in a branch: by a semaphore of the core's own (now and then by one that is used elsewhere too), or one of the branch. */
static AX_BODY(fetch) {
  const part *p = context;
  ax_value to = cell(p, &p->act->to, p->act->to_scratch);
  ax_value done = ax_ref_at(p->refs[p->act->semaphore == 0 || p->core > 0 ? OTHER_DMA : DMA], number(p->core));
  ax_copy_start(cell(p, &p->act->at, p->act->scratch), to, &(ax_copy_options){.received = &done});
  ax_copy_wait(done, to);
}
static AX_BODY(copy_scoped) {
  const part *p = context;
  ax_copy(cell(p, &p->act->at, p->act->scratch), cell(p, &p->act->to, p->act->to_scratch));
}

/* As many rounds as an entry says: a store to a cell of the round, behind one of the core; a copy from there, or one that the act says. */
static AX_BODY(looped) {
  const part *p = context;
  ax_value at = ax_add(in[0], number(p->act->at.number % cells));
  ax_ref_store(ax_ref_at(p->refs[OUT], p->act->semaphore > 0 ? at : ax_min(at, number(cells - 1))), number(9));
}
static AX_BODY(copied) {
  const part *p = context;
  ax_copy(ax_ref_at(p->refs[OUT], ax_rem(in[0], number(cells))), cell(p, &p->act->to, p->act->to_scratch));
  ax_ref_store(ax_ref_at(p->refs[OUT], number(cells - 1 - p->core)), ax_ref_load(cell(p, &p->act->to, p->act->to_scratch)));
}

static void emit(const part *p) {
  const act *a = p->act;
  ax_value guard;
  switch (a->kind) {
    case STORE:
      ax_ref_store(cell(p, &a->at, a->scratch), number(p->core + 1));
      break;
    case LOAD:
      ax_ref_store(ax_ref_at(p->refs[OUT], number(cells - 1 - p->core)), ax_ref_load(cell(p, &a->at, a->scratch)));
      break;
    case ADD:
      ax_ref_add(cell(p, &a->at, a->scratch), number(2));
      break;
    case WIDE: /* two cells of its own, from a base */
      ax_ref_store(
          ax_ref_slice(p->refs[OUT], AX_VALUES(ax_add(ax_mul(number(p->core), number(2)), clamp(entry_of(p, a->at.entry), 2))),
                       AX_DIMS(2)),
          ax_full_i64(AX_S32, AX_DIMS(2), 5));
      break;
    case MASKED:
      guard = ax_lt(ax_iota(AX_S32, AX_DIMS(2), 0), ax_broadcast_to(entry_of(p, a->at.entry), AX_DIMS(2)));
      ax_ref_store_masked(ax_ref_slice(p->refs[OUT], AX_VALUES(number(p->core * 2)), AX_DIMS(2)), guard,
                          ax_full_i64(AX_S32, AX_DIMS(2), 6));
      break;
    case GUARDED:
    case CHOSEN:
      guard = ax_gt(entry_of(p, a->at.entry), number(a->at.number % 4));
      ax_if(guard, AX_CLOSURE(store_one, 0, 0, p), a->kind == CHOSEN ? AX_CLOSURE(store_other, 0, 0, p) : AX_FN(nothing, 0, 0),
            NULL, NULL);
      break;
    case FETCHED:
    case SCOPED:
      guard = ax_gt(entry_of(p, a->at.entry), number(a->at.number % 4));
      ax_if(guard, AX_CLOSURE(a->kind == FETCHED ? fetch : copy_scoped, 0, 0, p), AX_FN(nothing, 0, 0), NULL, NULL);
      break;
    case LOOPED:
    case ROUNDS:
      ax_fori_loop(number(0), clamp(entry_of(p, a->at.entry), 3), AX_CLOSURE(a->kind == LOOPED ? looped : copied, 1, 0, p), NULL,
                   NULL);
      break;
    case COPY: {
      ax_value to = cell(p, &a->to, a->to_scratch), done = ax_ref_at(p->refs[DMA], number(p->core));
      ax_copy_start(cell(p, &a->at, a->scratch), to, &(ax_copy_options){.received = &done});
      ax_copy_wait(done, to);
      break;
    }
    case SIGNAL:
      ax_semaphore_signal(p->refs[SEMAPHORE + a->semaphore], ax_integer(1), NULL);
      break;
    default:
      ax_semaphore_wait(p->refs[SEMAPHORE + a->semaphore], ax_integer(1));
      break;
  }
}

static AX_BODY(core_body) {
  part p = *(const part *)context;
  for (uint32_t k = 0; k < few && p.plan->fills && p.core == 0; k++) ax_ref_store(ax_ref_at(p.refs[SCRATCH], number(k)), number(k));
  for (uint32_t k = 0; k < p.plan->count[p.core]; k++) {
    p.act = &p.plan->acts[p.core][k];
    emit(&p);
  }
}

typedef struct whole {
  const plan *plan;
  const ax_value *in;
} whole;

static AX_BODY(body) {
  const whole *w = context;
  part parts[most_cores];
  ax_fn fns[most_cores];
  for (uint32_t c = 0; c < w->plan->cores; c++) {
    parts[c] = (part){.plan = w->plan, .refs = in, .core = c, .table = w->in[0]};
    fns[c] = AX_CLOSURE(core_body, 0, 0, &parts[c]);
  }
  ax_switch(ax_axis_index("w"), AX_LIST(w->plan->cores, fns), NULL, NULL);
}

static AX_BODY(program_of) {
  const plan *p = context;
  ax_value table = in[0];
  if (p->clamped) table = ax_max(ax_min(table, ax_full_i64(AX_S32, AX_DIMS(entries), 3)), ax_full_i64(AX_S32, AX_DIMS(entries), 0));
  whole w = {p, &table};
  const ax_core_mesh mesh = {.core = "core", .mesh = {.count = 1, .axis = {{.name = "w", .size = p->cores}}}, .threads = "w"};
  const ax_scratch scratch[] = {{.type = AX_SMEM(AX_S32, few)},
                                {.type = ax_semaphore_type(AX_DIMS())},
                                {.type = ax_semaphore_type(AX_DIMS())},
                                {.type = ax_dma_semaphore_type(AX_DIMS(most_cores))},
                                {.type = ax_dma_semaphore_type(AX_DIMS(most_cores))}};
  const uint32_t aliases[1][2] = {{1, 0}};
  const ax_kernel_options options = {.scratch = {AX_LIST(AX_COUNT(scratch), scratch)}, .aliases = {AX_LIST(1, aliases)}};
  ax_mpmd_map(AX_LIST(1, &mesh), &AX_CLOSURE(body, REFS, 0, &w), &options, AX_VALUES(table, in[1]),
              AX_TYPES(AX_TYPE(AX_S32, cells)), out);
}

/* --- At random --- */

static uint32_t below(plan *p, uint32_t count) { return (uint32_t)test_random_below(&p->random, count); }
static bool chance(plan *p, uint32_t percent) { return below(p, 100) < percent; }

static place any_place(plan *p) {
  return (place){chance(p, 40) ? (chance(p, 70) ? OF_CORE : PLAIN) : below(p, FORMS), below(p, entries), below(p, cells)};
}

static void add(plan *p, uint32_t core, act a) {
  if (p->count[core] < most_acts) p->acts[core][p->count[core]++] = a;
}

/* One core tells another; some of the signals are missing. */
static void add_message(plan *p) {
  const uint32_t from = below(p, p->cores), to = below(p, p->cores), s = below(p, semaphores);
  if (from == to) return;
  if (!chance(p, 5)) add(p, from, (act){.kind = SIGNAL, .semaphore = s});
  add(p, to, (act){.kind = WAIT, .semaphore = s});
}

static plan make_plan(uint64_t seed) {
  plan p = {.random = {seed}};
  p.cores = 2 + below(&p, most_cores - 1);
  p.by_value = chance(&p, 40), p.clamped = chance(&p, 50), p.fills = chance(&p, 50);
  const uint32_t acts = 1 + below(&p, 5), core_first = below(&p, p.cores);
  for (uint32_t k = 0; k < acts; k++) {
    const kind kind = below(&p, COPY + 1);
    const uint32_t core = chance(&p, 40) ? core_first : below(&p, p.cores);
    add(&p, core,
        (act){.kind = kind,
              .at = any_place(&p),
              .to = any_place(&p),
              .scratch = chance(&p, 30),
              .to_scratch = chance(&p, 30),
              .semaphore = chance(&p, 20)});
    if (chance(&p, 40)) add_message(&p);
  }
  return p;
}

/* --- Against a check for each input --- */

static struct { uint64_t searches, undecided, kernels, decided, all, bounds, these, fine, told; } total;

/* searches: all schedules are gone through, so that the verdict does not rest on a proof for all inputs. */
static ax_check_report *check_with(const ax_program *program, const int32_t *table, bool searches) {
  static const int32_t data[cells];
  const ax_host_array in[] = {ax_host_view(AX_S32, AX_DIMS(entries), table), ax_host_view(AX_S32, AX_DIMS(cells), data)};
  ax_check_report *report;
  TEST_OK(ax_check(program, &(ax_check_options){.in = {AX_LIST(2, in)}, .explore = searches}, &report));
  return report;
}

static bool is_outside(const ax_check_report *report) {
  const ax_check_kernel *k = &report->kernels[0];
  for (uint32_t i = 0; i < k->finding_count; i++)
    if (strcmp(k->findings[i].kind, "out of bounds") == 0) return true;
  return false;
}

static void show(const plan *p) {
  static const char *const names[KINDS] = {"store",   "load",   "add",    "wide",   "masked", "guarded", "chosen",
                                           "fetched", "scoped", "looped", "rounds", "copy",   "signal",  "wait"};
  static const char *const forms[FORMS] = {"plain",           "of core", "raw", "shifted", "clamped", "rest",
                                           "shifted clamped", "scaled",  "sum", "choice",  "stored"};
  print_message("%u cores%s%s%s\n", p->cores, p->by_value ? ", by value" : "", p->clamped ? ", clamped" : "",
                p->fills ? ", filled" : "");
  for (uint32_t c = 0; c < p->cores; c++)
    for (uint32_t k = 0; k < p->count[c]; k++) {
      const act *a = &p->acts[c][k];
      print_message("  core %u: %s %s %u %u%s -> %s %u %u%s; semaphore %u\n", c, names[a->kind], forms[a->at.form], a->at.entry,
                    a->at.number, a->scratch ? " of scratch" : "", forms[a->to.form], a->to.entry, a->to.number,
                    a->to_scratch ? " of scratch" : "", a->semaphore);
    }
}

/* What is wrong with what was said of the kernel; NULL. */
static const char *compare(const plan *p, bool counts) {
  ax_program *program;
  int32_t table[entries] = {0};
  const ax_type types[] = {AX_TYPE(AX_S32, entries), AX_TYPE(AX_S32, cells)};
  const char *said = NULL;
  TEST_OK(ax_trace(AX_CLOSURE(program_of, 2, 1, p), types, &program));
  ax_check_report *first = check_with(program, table, false);
  const ax_check_inputs claimed = first->kernels[0].proved_for;
  bool fine = true;
  char why[400];
  snprintf(why, sizeof why, "%s", first->kernels[0].proved_for_why);
  if (first->verdict != AX_PROVED) {
    said = claimed != AX_INPUTS_THESE ? "a claim without a proof" : NULL;
    fine = false;
  }
  for (uint32_t k = 0; k < 64 && fine && said == NULL; k++) {
    for (uint32_t e = 0; e < entries; e++) table[e] = (int32_t)(k >> 2 * e & 3);
    ax_check_report *report = check_with(program, table, true);
    const bool proved = report->verdict != AX_WRONG, outside = is_outside(report);
    total.searches++, total.undecided += report->verdict == AX_BOUNDED;
    fine = proved || outside;
    if (claimed == AX_INPUTS_ALL && !proved) said = "proved for all inputs, and not with this one";
    if (claimed == AX_INPUTS_IN_BOUNDS && !fine) said = "proved within bounds, and not with this one";
    ax_check_report *again = k % 9 == 1 && proved && said == NULL ? check_with(program, table, false) : NULL;
    if (again != NULL && again->kernels[0].proved_for != claimed && claimed != AX_INPUTS_THESE)
      said = "another claim with another input";
    ax_check_report_release(again);
    if (said != NULL && counts) print_message("%s: %d %d %d\n", said, table[0], table[1], table[2]);
    ax_check_report_release(report);
  }
  if (counts) {
    const bool claims = claimed != AX_INPUTS_THESE;
    total.kernels++;
    total.decided += first->verdict == AX_PROVED;
    total.all += claimed == AX_INPUTS_ALL, total.bounds += claimed == AX_INPUTS_IN_BOUNDS;
    total.fine += fine, total.told += fine && claims;
    if (fine && !claims && getenv("AXLE_SHOW") != NULL) show(p), print_message("not told: %s\n", why);
  }
  ax_check_report_release(first);
  ax_program_release(program);
  return said;
}

static void shrink(plan *p) {
  for (bool smaller = true; smaller;) {
    smaller = false;
    for (uint32_t c = 0; c < p->cores; c++)
      for (uint32_t k = 0; k < p->count[c]; k++) {
        plan less = *p;
        memmove(&less.acts[c][k], &less.acts[c][k + 1], (less.count[c] - k - 1) * sizeof less.acts[c][0]);
        less.count[c]--;
        if (compare(&less, false) == NULL) continue;
        *p = less;
        smaller = true;
        k--;
      }
  }
}

static void one(uint64_t seed, bool shown) {
  plan p = make_plan(seed);
  if (shown) show(&p);
  const char *said = compare(&p, true);
  if (said == NULL) return;
  char text[300];
  snprintf(text, sizeof text, "%s", said);
  shrink(&p);
  show(&p);
  (void)compare(&p, true);
  fail_msg("seed %llu: %s", (unsigned long long)seed, text);
}

static void test_kernels_at_random(void **ignored) {
  (void)ignored;
  test_each_seed(kernels, one);
  print_message(
      "%llu kernels, %llu proved for the first input: %llu for all inputs, %llu within bounds; of %llu that are right with all "
      "64 inputs, that was told of %llu\n",
      (unsigned long long)total.kernels, (unsigned long long)total.decided, (unsigned long long)total.all,
      (unsigned long long)total.bounds, (unsigned long long)total.fine, (unsigned long long)total.told);
  assert_true(total.undecided * 100 <= total.searches);
  if (total.kernels < kernels) return;
  assert_true(total.all > total.kernels / 20 && total.bounds > total.kernels / 50 && 10 * total.told > 7 * total.fine);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_kernels_at_random)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
