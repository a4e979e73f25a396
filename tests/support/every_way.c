/* One program run in every manner there is: the policies, 1 to 8 workers, whose memory arguments lie in, who else runs at the same
   time; and over processes (spread.c).

   All ways of a program share one runtime, and so its machine code: the policy is set between runs, when nothing is in flight. What
   is kept of runtimes goes after some programs, since they keep the machine code of all. */
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "array/executable.h"
#include "mesh/sharding.h"
#include "support/cmocka.h"
#include "support/processes.h"
#include "support/random.h"
#include "support/run.h"

enum { most_workers = 8, most_at_once = 3, programs_a_runtime = 100 };

typedef struct manner {
  ax_policy policy;
  uint64_t seed; /* SEEDED */
  bool donate;   /* all arguments */
  bool lent;     /* each part of an argument in memory of its own, at no address that is more than an element's */
  int at_once;   /* so many runs started, none waiting for another; 0: one, by ax_run */
  bool threads;  /* each of them by ax_run, on a thread of its own, of the same arrays unless these are donated */
  bool chained;  /* each takes the results of the one before, which need not be ready */
} manner;

/* --- Runtimes, and how often they were used --- */

static struct {
  ax_runtime *runtime;
  uint32_t programs;
} teams[most_workers + 1];

static struct {
  uint64_t fixed, seeded, parallel[most_workers + 1], donated, lent, started, by_threads, chained;
} tally;

static void release_teams(void) {
  for (size_t w = 0; w < AX_COUNT(teams); w++) {
    ax_runtime_release(teams[w].runtime);
    teams[w].runtime = NULL;
  }
}

static ax_runtime *team_of(uint32_t workers) {
  static bool registered;
  if (!registered) atexit(release_teams);
  registered = true;
  if (teams[workers].programs++ % programs_a_runtime == 0) {
    ax_runtime_release(teams[workers].runtime);
    TEST_OK(ax_runtime_create(&(ax_runtime_options){.workers = workers}, &teams[workers].runtime));
  }
  return teams[workers].runtime;
}

static void count_runs(const manner *how, uint32_t workers, uint64_t runs) {
  if (how->policy == AX_POLICY_FIXED) tally.fixed += runs;
  else if (how->policy == AX_POLICY_SEEDED) tally.seeded += runs;
  else tally.parallel[workers] += runs;
  if (how->donate) tally.donated += runs;
  if (how->lent) tally.lent += runs;
  if (how->at_once > 0) *(how->threads ? &tally.by_threads : &tally.started) += runs;
  if (how->chained) tally.chained += runs;
}

void test_tell_ways(void) {
  if (tally.fixed == 0) return;
  print_message("runs: fixed %llu, seeded %llu, parallel with 1 to %d workers", (unsigned long long)tally.fixed,
                (unsigned long long)tally.seeded, most_workers);
  for (int w = 1; w <= most_workers; w++) print_message(" %llu", (unsigned long long)tally.parallel[w]);
  print_message("; of these donated %llu, lent %llu, started %llu, by threads %llu, on results to come %llu\n",
                (unsigned long long)tally.donated, (unsigned long long)tally.lent, (unsigned long long)tally.started,
                (unsigned long long)tally.by_threads, (unsigned long long)tally.chained);
  test_tell_spreads();
}

/* --- Arguments and results --- */

/* Laid out as the executable wants it, lent part by part. */
static ax_array *lend(ax_runtime *runtime, const ax_layout *layout, const void *data) {
  size_t item = ax_dtype_bytes(layout->type.dtype);
  ax_part *parts = calloc(layout->blocks, sizeof parts[0]);
  ax_array *array;
  ax_text spec = {0};
  assert_non_null(parts);
  for (uint32_t b = 0; b < layout->blocks; b++) {
    int64_t start[AX_MAX_RANK];
    char *memory = malloc(layout->block_bytes + 64 + 3 * item);
    assert_non_null(memory);
    parts[b] = (ax_part){.data = memory + item * (1 + b % 3), .bytes = layout->block_bytes, .release = free, .context = memory};
    ax_layout_offset(layout, b, start);
    ax_shard_read(&layout->type, data, start, &layout->block, parts[b].data);
  }
  for (uint32_t d = 0; d < layout->spec.rank; d++) { /* "_,a+b" */
    if (layout->spec.count[d] == 0) ax_text_add(&spec, "_");
    for (uint32_t i = 0; i < layout->spec.count[d]; i++)
      ax_text_add(&spec, "%s%s", i > 0 ? "+" : "", layout->mesh.axis[layout->spec.axis[d][i]].name);
    if (d + 1 < layout->spec.rank) ax_text_add(&spec, ",");
  }
  TEST_OK(ax_array_from_parts(runtime, &layout->mesh, spec.data != NULL ? spec.data : "", &layout->type,
                              AX_LIST(layout->blocks, parts), &array));
  ax_text_deinit(&spec);
  free(parts);
  return array;
}

static ax_array *argument(const ax_executable *executable, const manner *how, uint32_t i, const ax_tensor *data) {
  ax_array *array;
  if (how->lent) return lend(executable->runtime, executable->wanted[i], data->data);
  TEST_OK(ax_device_put_data(executable->runtime, NULL, "", ax_program_in_type(executable->program, i), data->data, &array));
  return array;
}

static ax_tensor *result(const ax_executable *executable, uint32_t k, const ax_array *array) {
  ax_tensor *tensor;
  TEST_OK(ax_tensor_create(ax_program_out_type(executable->program, k), &tensor));
  TEST_OK(ax_array_read(array, tensor->data, test_tensor_bytes(tensor)));
  return tensor;
}

/* Result i of a run can be argument i of the next. */
static bool fits(const ax_program *program, uint32_t i) {
  const ax_type *in = ax_program_in_type(program, i), *out = ax_program_out_type(program, i);
  return in != NULL && out != NULL && in->dtype == out->dtype && ax_same_shape(in, out);
}

/* --- Runs --- */

typedef struct one_run {
  ax_executable *executable;
  uint32_t in_count, out_count;
  ax_array **in, **out;
  ax_status status;
  pthread_t thread;
} one_run;

static void *run_alone(void *context) {
  one_run *run = context;
  run->status = ax_run(run->executable, AX_LIST(run->in_count, run->in), AX_LIST(run->out_count, run->out));
  return NULL;
}

static void start(one_run *run, const manner *how) {
  if (how->threads) assert_int_equal(pthread_create(&run->thread, NULL, run_alone, run), 0);
  else if (how->at_once > 0) run->status = ax_run_start(run->executable, AX_LIST(run->in_count, run->in),
                                                        AX_LIST(run->out_count, run->out));
  else run_alone(run);
}

/* The arguments of run r: fresh, the first run's, or the results of the run before. */
static void choose_arguments(one_run *runs, int r, const manner *how, ax_tensor *const *in) {
  for (uint32_t i = 0; i < runs[r].in_count; i++) {
    if (how->chained && r > 0 && fits(runs[r].executable->program, i)) runs[r].in[i] = ax_array_retain(runs[r - 1].out[i]);
    else if (how->threads && r > 0 && !how->donate) runs[r].in[i] = ax_array_retain(runs[0].in[i]);
    else runs[r].in[i] = argument(runs[r].executable, how, i, in[i]);
  }
}

/* out: the last run's results; `same`: all runs gave the same. */
static void run_all(ax_executable *executable, const manner *how, ax_tensor *const *in, ax_tensor **out, bool *same) {
  uint32_t in_count = ax_program_in_count(executable->program), out_count = ax_program_out_count(executable->program);
  int count = how->at_once > 0 ? how->at_once : 1;
  ax_array **arrays = calloc((size_t)most_at_once * (in_count + out_count) + 1, sizeof arrays[0]);
  one_run runs[most_at_once];
  assert_non_null(arrays);
  for (int r = 0; r < count; r++) {
    ax_array **own = arrays + (size_t)r * (in_count + out_count);
    runs[r] = (one_run){.executable = executable, .in_count = in_count, .out_count = out_count, .in = own, .out = own + in_count};
    choose_arguments(runs, r, how, in);
    if (!how->threads) start(&runs[r], how);
  }
  for (int r = 0; how->threads && r < count; r++) start(&runs[r], how);
  for (int r = 0; how->threads && r < count; r++) pthread_join(runs[r].thread, NULL);
  for (int r = count - 1; r >= 0; r--) {
    TEST_OK(runs[r].status);
    for (uint32_t k = 0; k < out_count && !(how->chained && r < count - 1); k++) {
      ax_tensor *got = result(executable, k, runs[r].out[k]);
      if (r == count - 1) {
        out[k] = got;
        continue;
      }
      *same = *same && test_same_tensors(got, out[k]);
      ax_tensor_release(got);
    }
  }
  ax_runtime_wait(executable->runtime); /* runs whose results nobody has read */
  for (size_t i = 0; i < (size_t)most_at_once * (in_count + out_count); i++) ax_array_release(arrays[i]);
  free(arrays);
}

static ax_executable *compile(ax_runtime *runtime, ax_program *program, bool donate, bool reference) {
  bool *donated = calloc(ax_program_in_count(program) + 1, sizeof donated[0]);
  ax_executable *executable;
  assert_non_null(donated);
  for (uint32_t i = 0; i < ax_program_in_count(program); i++) donated[i] = donate;
  TEST_OK(ax_compile(runtime, program,
                     &(ax_compile_options){.donate = test_args(donated, ax_program_in_count(program)), .reference = reference},
                     &executable));
  free(donated);
  return executable;
}

static void execute_once(ax_runtime *runtime, ax_program *program, bool reference, ax_tensor *const *in, ax_tensor **out) {
  ax_executable *executable = compile(runtime, program, false, reference);
  bool same = true;
  test_use_threads(executable);
  run_all(executable, &(manner){0}, in, out, &same);
  ax_executable_release(executable);
}

void test_execute(ax_runtime *runtime, ax_program *program, ax_tensor *const *in, ax_tensor **out) {
  execute_once(runtime, program, false, in, out);
}

void test_execute_reference(ax_runtime *runtime, ax_program *program, ax_tensor *const *in, ax_tensor **out) {
  execute_once(runtime, program, true, in, out);
}

/* Compiled and run with arrays of the first tensors; what fails first. */
static ax_status try_on(ax_executable *executable, ax_tensor *const *in, ax_array **arrays) {
  uint32_t in_count = ax_program_in_count(executable->program), out_count = ax_program_out_count(executable->program);
  for (uint32_t i = 0; i < in_count; i++) arrays[i] = argument(executable, &(manner){0}, i, in[i]);
  return ax_run(executable, AX_LIST(in_count, arrays), AX_LIST(out_count, arrays + in_count));
}

static ax_status try_once(ax_program *program, bool reference, ax_tensor *const *in, ax_tensor **out) {
  uint32_t in_count = ax_program_in_count(program), out_count = ax_program_out_count(program);
  ax_array **arrays = calloc((size_t)in_count + out_count + 1, sizeof arrays[0]);
  ax_executable *executable;
  assert_non_null(arrays);
  ax_status status = ax_compile(team_of(2), program, &(ax_compile_options){.reference = reference}, &executable);
  if (status == AX_OK) status = try_on(executable, in, arrays);
  for (uint32_t k = 0; status == AX_OK && k < out_count; k++) out[k] = result(executable, k, arrays[in_count + k]);
  for (uint32_t i = 0; i < in_count + out_count; i++) ax_array_release(arrays[i]);
  ax_executable_release(executable);
  free(arrays);
  return status;
}

ax_status test_try(ax_program *program, ax_tensor *const *in, ax_tensor **out) { return try_once(program, false, in, out); }

ax_status test_try_reference(ax_program *program, ax_tensor *const *in, ax_tensor **out) { return try_once(program, true, in, out); }

ax_status test_as_reference(ax_program *program, ax_tensor *const *in, bool written) {
  ax_tensor *made = NULL, *expected = NULL;
  char said[1024];
  const ax_status status = test_try_reference(program, in, &expected);
  snprintf(said, sizeof said, "%s", status == AX_OK ? "" : ax_message());
  const ax_status own = test_try(program, in, &made);
  if (own != status) fail_msg("%s: %s, and of the reference %s: %s", ax_status_name(own), ax_message(), ax_status_name(status), said);
  if (status != AX_OK) assert_string_equal(ax_message(), said);
  else if (written) assert_true(test_same_tensors(made, expected));
  ax_tensor_release(made);
  ax_tensor_release(expected);
  return status;
}

/* --- Every way --- */

typedef struct trial {
  ax_program *program;
  ax_tensor *const *in;
  uint32_t count, workers; /* count: of results */
  ax_executable *executables[2]; /* donate */
  ax_tensor **got;
  uint64_t seed;
  const char *file;
  int line;
} trial;

/* The plan verifier after each pass, whatever the build; with and without donations. */
static void verify_passes(ax_program *program) {
  bool *donate = calloc(ax_program_in_count(program) + 1, sizeof donate[0]);
  assert_non_null(donate);
  for (int given = 0; given < 2; given++) {
    ax_plan *plan = test_plan(program);
    for (uint32_t i = 0; i < ax_program_in_count(program); i++) donate[i] = true;
    if (given) plan->donate = donate;
    TEST_OK(ax_plan_verify(plan));
    for (uint32_t i = 0; i < ax_plan_pass_count; i++) {
      TEST_OK(ax_plan_passes[i].run(plan));
      ax_status status = ax_plan_verify(plan);
      if (status != AX_OK) fail_msg("after %s: %s", ax_plan_passes[i].name, ax_message());
    }
    ax_plan_destroy(plan);
  }
  free(donate);
}

/* In another order that ax_plan_passes_check allows, with some left out: drawn anew until one is allowed. */
static uint32_t draw_passes(test_random *random, ax_plan_pass *passes) {
  uint32_t count;
  do {
    count = 0;
    for (uint32_t i = 0; i < ax_plan_pass_count; i++) {
      if (test_random_below(random, 6) == 0) continue;
      const uint32_t at = (uint32_t)test_random_below(random, count + 1);
      memmove(passes + at + 1, passes + at, (count - at) * sizeof passes[0]);
      passes[at] = ax_plan_passes[i];
      count++;
    }
  } while (ax_plan_passes_check(passes, count) != AX_OK);
  return count;
}

/* Compiled so, verified after each pass and run: as evaluation, whose values the caller compares. */
static void run_with_other_passes(const trial *t, ax_runtime *runtime, test_random *random, ax_tensor **out, char *told,
                                  size_t bytes) {
  ax_plan_pass passes[32];
  assert_true(ax_plan_pass_count <= AX_COUNT(passes));
  const uint32_t count = draw_passes(random, passes);
  ax_plan *plan = test_plan(t->program);
  told[0] = '\0';
  for (uint32_t i = 0; i < count; i++) {
    snprintf(told + strlen(told), bytes - strlen(told), "%s%s", i > 0 ? " " : "", passes[i].name);
    TEST_OK(passes[i].run(plan));
    if (ax_plan_verify(plan) != AX_OK) fail_msg("seed %llu: after passes %s: %s", (unsigned long long)t->seed, told, ax_message());
  }
  ax_plan_destroy(plan);
  runtime->assembler.plan_passes = passes;
  runtime->assembler.plan_pass_count = count;
  ax_executable *executable = compile(runtime, t->program, test_random_below(random, 2) == 0, false);
  bool same = true;
  runtime->assembler.plan_passes = NULL;
  runtime->options.policy = AX_POLICY_PARALLEL;
  test_use_threads(executable);
  run_all(executable, &(manner){0}, t->in, out, &same);
  ax_executable_release(executable);
}

/* Nothing is in flight when this is called. */
static void run_in_manner(const trial *t, const manner *how, ax_tensor *const *in, ax_tensor **out, bool *same) {
  ax_executable *executable = t->executables[how->donate];
  executable->runtime->options.policy = how->policy;
  executable->runtime->options.seed = how->seed;
  test_use_threads(executable);
  executable->compiled.threaded = how->policy == AX_POLICY_PARALLEL;
  count_runs(how, t->workers, how->at_once > 0 ? (uint64_t)how->at_once : 1);
  run_all(executable, how, in, out, same);
}

static void blame(const trial *t, const manner *how, uint32_t k) {
  static const char *const policies[] = {"parallel", "fixed", "seeded"};
  print_error("seed %llu: result %u differs: %s, %u workers, %s%s%s%s%d at once\n", (unsigned long long)t->seed, k,
              policies[how->policy], t->workers, how->donate ? "donated, " : "", how->lent ? "lent, " : "",
              how->threads ? "by threads, " : "", how->chained ? "on results to come, " : "", how->at_once);
  _fail(t->file, t->line);
}

static void check(const trial *t, const manner *how, ax_tensor *const *wanted) {
  bool same = true;
  run_in_manner(t, how, t->in, t->got, &same);
  if (!same) blame(t, how, AX_NONE);
  for (uint32_t k = 0; k < t->count; k++)
    if (!test_same_tensors(wanted[k], t->got[k])) blame(t, how, k);
  test_release(t->got, t->count);
}

/* Runs on the results of runs, one waiting for the other; then all started at once. */
static void check_chain(trial *t, bool donate) {
  const manner alone = {.policy = AX_POLICY_FIXED, .donate = donate};
  uint32_t in_count = ax_program_in_count(t->program);
  ax_tensor **in = calloc(in_count + 1, sizeof in[0]), **before = calloc(t->count + 1, sizeof before[0]),
            **after = calloc(t->count + 1, sizeof after[0]);
  bool any = false, same = true;
  assert_true(in != NULL && before != NULL && after != NULL);
  for (uint32_t i = 0; i < in_count; i++) any = any || fits(t->program, i);
  for (int r = 0; any && r < most_at_once; r++) {
    for (uint32_t i = 0; i < in_count; i++) in[i] = r > 0 && fits(t->program, i) ? before[i] : t->in[i];
    run_in_manner(t, &alone, in, after, &same);
    if (r > 0) test_release(before, t->count);
    memcpy(before, after, t->count * sizeof before[0]);
  }
  if (any) {
    check(t, &(manner){.policy = AX_POLICY_PARALLEL, .donate = donate, .lent = donate, .at_once = most_at_once, .chained = true},
          before);
    test_release(before, t->count);
  }
  free(in), free(before), free(after);
}

static const manner ways[] = {
    {.policy = AX_POLICY_SEEDED, .donate = true},
    {.policy = AX_POLICY_SEEDED, .lent = true},
    {.policy = AX_POLICY_SEEDED, .donate = true, .lent = true},
    {.policy = AX_POLICY_PARALLEL, .at_once = 2},
    {.policy = AX_POLICY_PARALLEL, .donate = true, .lent = true, .at_once = 2},
    {.policy = AX_POLICY_PARALLEL, .at_once = 3, .threads = true},
    {.policy = AX_POLICY_PARALLEL, .donate = true, .at_once = 2, .threads = true},
};

static const double most_apart = 1e-3;

/* Two executables of a program may add in another order, where memory that is given away lets other kernels become one. */
static void check_donating(ax_tensor *const *kept, ax_tensor *const *donated, uint32_t count, double tolerance, const char *file,
                           int line) {
  for (uint32_t i = 0; i < count; i++)
    test_assert_tensors_near(donated[i], kept[i], tolerance < most_apart ? tolerance : most_apart, file, line);
}

/* --- Evaluation --- */

/* Floats moved by up to 16 roundings, at random. */
static ax_tensor *moved(const ax_tensor *x, const ax_type *type, test_random *random) {
  ax_tensor *copy;
  TEST_OK(ax_tensor_create(type, &copy));
  memcpy(copy->data, x->data, test_tensor_bytes(x));
  if (type->dtype != AX_F32 && type->dtype != AX_F64) return copy;
  double unit = type->dtype == AX_F32 ? 0x1p-23 : 0x1p-52;
  for (int64_t i = 0; i < ax_type_elems(type); i++)
    test_set(copy, i, test_get(x, i) * (1 + (double)(test_random_below(random, 33) - 16) * unit));
  return copy;
}

/* far: by result and element, how far evaluation goes when inputs move so, so many times with numbers that `random` draws. */
static void measure(const trial *t, ax_tensor *const *reference, int times, test_random *random, double **far) {
  uint32_t in_count = ax_program_in_count(t->program);
  ax_tensor **in = calloc(in_count + 1, sizeof in[0]), **out = calloc(t->count + 1, sizeof out[0]);
  assert_true(in != NULL && out != NULL);
  for (int n = 0; n < times; n++) {
    for (uint32_t i = 0; i < in_count; i++) in[i] = moved(t->in[i], ax_program_in_type(t->program, i), random);
    test_run(t->program, in, out);
    for (uint32_t k = 0; k < t->count; k++)
      for (int64_t i = 0; i < ax_type_elems(ax_program_out_type(t->program, k)); i++)
        far[k][i] = fmax(far[k][i], fabs(test_get(out[k], i) - test_get(reference[k], i)));
    test_release(in, in_count);
    test_release(out, t->count);
  }
  free(in), free(out);
}

typedef struct place {
  uint32_t result;
  int64_t element;
} place;

/* Whether some element is farther from evaluation than evaluation goes: the first one. */
static bool is_too_far(const trial *t, ax_tensor *const *got, ax_tensor *const *reference, double *const *far, double tolerance,
                       place *at) {
  for (uint32_t k = 0; k < t->count; k++)
    for (int64_t i = 0; i < ax_type_elems(ax_program_out_type(t->program, k)); i++) {
      const double g = test_get(got[k], i), w = test_get(reference[k], i);
      *at = (place){k, i};
      if (!test_near(g, w, tolerance) && !(fabs(g - w) <= 2 * far[k][i])) return true;
    }
  return false;
}

/* Some programs double an error at each step, or jump where two numbers are nearly equal: machine code, which rounds otherwise than
   evaluation, may then be as far from it as evaluation from itself when inputs move by a few roundings. A few moves tell that of
   most programs; of those where most moves change little and some change all, many. */
static void check_far(const trial *t, ax_tensor *const *got, ax_tensor *const *reference, double tolerance) {
  enum { few = 24, many = 1000 };
  double **far = calloc(t->count + 1, sizeof far[0]);
  test_random random = {t->seed};
  place at;
  assert_non_null(far);
  for (uint32_t k = 0; k < t->count; k++) {
    far[k] = calloc((size_t)ax_type_elems(ax_program_out_type(t->program, k)) + 1, sizeof far[k][0]);
    assert_non_null(far[k]);
  }
  measure(t, reference, few, &random, far);
  if (is_too_far(t, got, reference, far, tolerance, &at)) measure(t, reference, many, &random, far);
  if (is_too_far(t, got, reference, far, tolerance, &at)) {
    print_error("seed %llu: result %u, element %lld: %.17g is not near %.17g\n", (unsigned long long)t->seed, at.result,
                (long long)at.element, test_get(got[at.result], at.element), test_get(reference[at.result], at.element));
    _fail(t->file, t->line);
  }
  for (uint32_t k = 0; k < t->count; k++) free(far[k]);
  free(far);
}

/* --- Runs that look for NaNs and infinities: what is found, or the results, is the same under every policy --- */

enum { most_message = 4096, one_in = 4 };

static ax_status look(const trial *t, ax_executable *executable, ax_policy policy, uint64_t seed, ax_tensor **out) {
  uint32_t in_count = ax_program_in_count(t->program);
  ax_array **arrays = calloc((size_t)in_count + t->count + 1, sizeof arrays[0]), **results = arrays + in_count;
  assert_non_null(arrays);
  executable->runtime->options.policy = policy;
  executable->runtime->options.seed = seed;
  test_use_threads(executable);
  executable->compiled.threaded = policy == AX_POLICY_PARALLEL;
  for (uint32_t i = 0; i < in_count; i++) arrays[i] = argument(executable, &(manner){0}, i, t->in[i]);
  ax_status status = ax_run(executable, AX_LIST(in_count, arrays), AX_LIST(t->count, results));
  if (status != AX_OK && status != AX_NOT_FINITE) fail_msg("seed %llu: looking: %s", (unsigned long long)t->seed, ax_message());
  for (uint32_t k = 0; k < t->count && status == AX_OK; k++) out[k] = result(executable, k, results[k]);
  for (uint32_t i = 0; i < in_count + t->count; i++) ax_array_release(arrays[i]);
  free(arrays);
  return status;
}

static void check_looking(const trial *t, ax_tensor *const *kept, uint64_t seed, double tolerance) {
  static const ax_policy policies[] = {AX_POLICY_FIXED, AX_POLICY_SEEDED, AX_POLICY_PARALLEL};
  ax_tensor **first = calloc(t->count + 1, sizeof first[0]);
  ax_executable *executable;
  char message[most_message] = "";
  assert_non_null(first);
  TEST_OK(ax_compile(t->executables[0]->runtime, t->program, &(ax_compile_options){.check_numerics = AX_CHECK_NAN | AX_CHECK_INF},
                     &executable));
  for (size_t p = 0; p < AX_COUNT(policies); p++) {
    ax_status status = look(t, executable, policies[p], seed, p == 0 ? first : t->got);
    if (p == 0 && status != AX_OK) snprintf(message, sizeof message, "%s", ax_message());
    if ((status == AX_OK) != (message[0] == '\0') || (status != AX_OK && strcmp(message, ax_message()) != 0))
      fail_msg("seed %llu: found \"%s\", then \"%s\"", (unsigned long long)t->seed, message, status != AX_OK ? ax_message() : "");
    for (uint32_t k = 0; status == AX_OK && p > 0 && k < t->count; k++) assert_true(test_same_tensors(first[k], t->got[k]));
    if (status == AX_OK && p > 0) test_release(t->got, t->count);
  }
  for (uint32_t k = 0; message[0] == '\0' && k < t->count; k++)
    test_assert_tensors_near(first[k], kept[k], tolerance < most_apart ? tolerance : most_apart, t->file, t->line);
  if (message[0] == '\0') test_release(first, t->count);
  free(first);
  ax_executable_release(executable);
}

static bool all_near(ax_tensor *const *a, ax_tensor *const *b, const trial *t, double tolerance) {
  for (uint32_t k = 0; k < t->count; k++)
    for (int64_t i = 0; i < ax_type_elems(ax_program_out_type(t->program, k)); i++)
      if (!test_near(test_get(a[k], i), test_get(b[k], i), tolerance)) return false;
  return true;
}

static void check_evaluation(const trial *t, ax_tensor *const *got, ax_tensor *const *reference, double tolerance) {
  for (uint32_t i = 0; tolerance == 0 && i < t->count; i++)
    if (!test_same_tensors(got[i], reference[i]))
      fail_msg("seed %llu: result %u is not what evaluation gives", (unsigned long long)t->seed, i);
  if (tolerance > 0 && !all_near(got, reference, t, tolerance)) check_far(t, got, reference, tolerance);
}

static void check_other_passes(const trial *t, ax_runtime *runtime, test_random *random, ax_tensor *const *reference,
                               double tolerance) {
  char told[512];
  run_with_other_passes(t, runtime, random, t->got, told, sizeof told);
  if (tolerance > 0 && !all_near(t->got, reference, t, tolerance))
    print_message("seed %llu: with passes %s\n", (unsigned long long)t->seed, told);
  check_evaluation(t, t->got, reference, tolerance);
  test_release(t->got, t->count);
}

void test_every_way(ax_program *program, ax_tensor *const *in, double tolerance, uint64_t seed, const char *file, int line) {
  static uint64_t turn;
  test_random random = {seed != 0 ? seed : ++turn};
  uint32_t count = ax_program_out_count(program);
  uint32_t workers = 1 + (uint32_t)(seed != 0 ? test_random_below(&random, most_workers) : (int64_t)(turn % most_workers));
  ax_tensor **reference = calloc(count + 1, sizeof reference[0]);
  assert_non_null(reference);
  const ax_status evaluated = ax_evaluate(program, in, reference);
  if (evaluated == AX_ABSENT && strstr(ax_message(), "no reference evaluation of a ") != NULL) {
    free(reference); /* there is nothing to compare with (control/host_call.c) */
    return;
  }
  TEST_OK(evaluated);
  ax_tensor **first[2] = {calloc(count + 1, sizeof reference[0]),
                          calloc(count + 1, sizeof reference[0])}; /* by whether arguments are donated */
  ax_runtime *runtime = team_of(workers);
  bool same = true;
  trial t = {.program = program, .in = in, .count = count, .workers = workers, .seed = seed, .file = file, .line = line};
  t.got = calloc(count + 1, sizeof t.got[0]);
  assert_true(first[0] != NULL && first[1] != NULL && t.got != NULL);
  verify_passes(program);
  for (int donate = 0; donate < 2; donate++) {
    t.executables[donate] = compile(runtime, program, donate == 1, false);
    run_in_manner(&t, &(manner){.policy = AX_POLICY_FIXED, .donate = donate == 1}, in, first[donate], &same);
  }
  for (size_t w = 0; w < AX_COUNT(ways); w++) {
    manner how = ways[w];
    how.seed = test_random_bits(&random);
    check(&t, &how, first[how.donate]);
  }
  check_donating(first[0], first[1], count, tolerance, file, line);
  for (int donate = 0; donate < 2; donate++) check_chain(&t, donate == 1);
  if (test_random_below(&random, one_in) == 0) check_looking(&t, first[0], seed, tolerance);
  test_spread_over(t.executables, in, (ax_tensor **const *)first, seed, seed != 0 ? seed : turn, file, line);
  check_evaluation(&t, first[0], reference, tolerance);
  if (test_random_below(&random, one_in) == 0) check_other_passes(&t, runtime, &random, reference, tolerance);
  test_release(reference, count);
  for (int donate = 0; donate < 2; donate++) {
    test_release(first[donate], count);
    ax_executable_release(t.executables[donate]);
    free(first[donate]);
  }
  free(reference), free(t.got);
}
