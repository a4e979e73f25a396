/* axle bench: runs a program over and over. For each of its kernels, products and exchanges it shows the time taken, the least
   time that its bytes and operations need on this machine, and the difference. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "axle/processes.h"
#include "array/executable.h"
#include "array/runtime.h"
#include "cli.h"
#include "ir/prim.h"
#include "ir/program.h"
#include "run/profile.h"

enum { option_in = 1, option_contraction, option_inputs, option_processes, option_runs, option_seed, option_subnormals, option_workers };

typedef struct bench {
  word_list in;
  shardings shardings;
  source source;
  inputs inputs;
  ax_runtime_options options;
  ax_subnormals subnormals;
  ax_contraction contraction;
  int64_t runs;
  ax_program *whole;
  ax_executable *executable;
  numbers numbers;   /* of inputs that are not given */
  int64_t *limits;   /* by input: of input_limits */
  ax_array **arrays; /* inputs, then results */
  ax_profile_row *rows; /* by instruction: the least times of all runs */
  uint32_t row_count;
  double seconds; /* of the shortest run */
  double outside; /* of it, in which no thread worked on any operation */
  ax_runtime *runtime;
} bench;

static ax_status put_input(bench *b, uint32_t i) {
  const ax_type *wanted = &b->whole->types[i];
  ax_host_array *array = &b->inputs.arrays[i];
  if (!b->inputs.given[i]) AX_TRY(numbers_fill(&b->numbers, i, wanted, b->limits[i], array));
  const ax_type type = host_type(array);
  if (!ax_same_shape(&type, wanted))
    return ax_error(AX_INVALID_ARGUMENT, "input %s is %s, but %s is given", source_input_name(&b->source, i),
                    ax_type_string(wanted, NULL), ax_type_string(&type, NULL));
  AX_TRY(inputs_put(&b->inputs, i, b->executable, &b->arrays[i]));
  ax_host_array_release(array);
  *array = (ax_host_array){0};
  return AX_OK;
}

static ax_status put_inputs(bench *b) {
  b->limits = ax_calloc((size_t)b->whole->in_count + 1, sizeof b->limits[0]);
  if (b->limits == NULL) return ax_out_of_memory(b->whole->in_count * sizeof b->limits[0]);
  AX_TRY(input_limits(b->whole, b->limits));
  AX_TRY(inputs_read(&b->inputs, &b->source, &b->in, true));
  for (uint32_t i = 0; i < b->whole->in_count; i++) AX_TRY(put_input(b, i));
  return AX_OK;
}

static double seconds_of(int64_t nanoseconds) { return 1e-9 * (double)nanoseconds; }

/* Returns the time in which a thread worked on some operation of the run that ended last. Spans are in the order in which they
   began. */
static double covered_seconds(ax_runner *runner) {
  int64_t covered = 0, until = 0;
  pthread_mutex_lock(&runner->lock);
  for (uint32_t i = 0; i < runner->timeline.count; i++) {
    const ax_span *span = &runner->timeline.spans[i];
    const int64_t from = span->begin > until ? span->begin : until;
    if (span->end <= from) continue;
    covered += span->end - from;
    until = span->end;
  }
  pthread_mutex_unlock(&runner->lock);
  return seconds_of(covered);
}

static ax_status run_once(bench *b, bool first) {
  const ax_program *program = b->whole;
  ax_array **out = b->arrays + program->in_count;
  ax_profile_row *rows;
  uint32_t count;
  int64_t before = ax_timeline_now();
  AX_TRY(ax_run(b->executable, AX_LIST(program->in_count, b->arrays), AX_LIST(program->out_count, out)));
  ax_status status = AX_OK;
  for (uint32_t k = 0; k < program->out_count; k++) {
    if (status == AX_OK) status = ax_array_wait(out[k]);
    ax_array_release(out[k]);
    out[k] = NULL;
  }
  AX_TRY(status);
  double took = seconds_of(ax_timeline_now() - before);
  AX_TRY(ax_runner_profile(&b->executable->runner, &rows, &count));
  if (first || took < b->seconds) {
    b->seconds = took;
    b->outside = fmax(0, took - covered_seconds(&b->executable->runner));
  }
  if (first) {
    b->rows = rows;
    b->row_count = count;
    return AX_OK;
  }
  for (uint32_t i = 0; i < count; i++) b->rows[i].seconds = fmin(b->rows[i].seconds, rows[i].seconds);
  ax_free(rows);
  return AX_OK;
}

/* How many runs come next, 0: none. Without a number the limit is half a second of process 0's, which the others learn from time to
   time: between them lie as many runs as there were so far. */
static ax_status count_next(const bench *b, int64_t done, int64_t begin, int64_t *out) {
  enum { most = 1000 };
  const int64_t together = ax_process_count(b->runtime) > 1 ? done : 1;
  const bool is_time_left = done < most && seconds_of(ax_timeline_now() - begin) < 0.5;
  if (b->runs > 0) *out = b->runs - done;
  else *out = !is_time_left ? 0 : together < most - done ? together : most - done;
  return processes_take_first(b->runtime, out);
}

/* Makes as many runs as are asked for, or as fit into half a second. */
static ax_status run_all(bench *b) {
  const int64_t begin = ax_timeline_now();
  AX_TRY(run_once(b, true));
  ax_free(b->rows); /* the first run touches fresh memory, so its times do not count */
  AX_TRY(run_once(b, true));
  for (int64_t done = 1, next = 1; next > 0; done += next) {
    AX_TRY(count_next(b, done, begin, &next));
    for (int64_t i = 0; i < next; i++) AX_TRY(run_once(b, false));
  }
  return AX_OK;
}

/* --- The table --- */

typedef struct line {
  ax_profile_row row;
  double read, written, flops; /* of all calls */
  double bound;
  const char *which;
  bool between; /* an exchange, where there are several processes: what it moves here, and when, is not known */
} line;

static int by_loss(const void *a, const void *b) {
  const line *x = a, *y = b;
  double p = x->row.seconds - x->bound, q = y->row.seconds - y->bound;
  return p < q ? 1 : p > q ? -1 : 0;
}

static const char *kind_of(const ax_op *op) {
  if (op == NULL) return "copies of carries and results";
  switch ((int)op->kind) {
    case AX_OP_KERNEL: return "kernel";
    case AX_OP_ROWS: return "rows";
    case AX_OP_GEMM: return "product";
    case AX_OP_START: return "exchange";
    case AX_OP_EVAL: return "reference";
    case AX_OP_ROUTINE: return "routine";
    case AX_OP_LOOP: return "loop";
    default: return "other";
  }
}

/* Prints the dimensions that a kernel goes over, or those of a product. */
static void print_shape(const ax_op *op) {
  if (op == NULL) return;
  if (op->kind == AX_OP_KERNEL) {
    const ax_loop_kernel *k = op->kernel.kernel;
    for (uint32_t d = 0; d < k->rank; d++)
      printf("%s%lld", d == 0 ? " [" : d == k->rank - k->reduce_rank ? ", over " : ",", (long long)k->dims[d]);
    if (k->rank > 0) printf("]");
  } else if (op->kind == AX_OP_ROWS) {
    printf(" %u kernels and products over %lld rows", op->rows->count, (long long)(op->rows->outer * op->rows->extent));
  } else if (op->kind == AX_OP_GEMM) {
    const ax_gemm *g = op->gemm;
    const long long batch = (long long)ax_dims_elems(g->batch_rank, g->batch);
    if (batch > 1) printf(" %lld of", batch);
    printf(" %s[%lld,%lld]x[%lld,%lld]", ax_dtype_name(g->dtype), (long long)g->m, (long long)g->k, (long long)g->k,
           (long long)g->n);
  }
}

static void print_line(const line *l, double whole) {
  const ax_op *op = l->row.op;
  const double us = 1e6 * l->row.seconds;
  printf("%10.2f %5.1f%% %8u ", us, 100 * l->row.seconds / whole, l->row.calls);
  if (l->between)
    printf("%10s %-10s %9s %8s %8s", "", "processes", "", "", "");
  else
    printf("%10.2f %-10s %9.2f %8.1f %8.1f", 1e6 * l->bound, l->which, us - 1e6 * l->bound, (l->read + l->written) / l->row.seconds / 1e9,
           l->flops / l->row.seconds / 1e9);
  printf("  %s", kind_of(op));
  print_shape(op);
  const ax_eqn *eqn = op != NULL ? op->eqn : NULL;
  if (eqn != NULL) printf(" of %s", eqn->prim->name);
  if (eqn != NULL && eqn->location != NULL) printf(" @ %s", eqn->location);
  else if (eqn != NULL && eqn->line > 0) printf(" @ line %u", eqn->line);
  printf("\n");
}

enum { most_named = 8 }; /* inputs in the line about them */

/* Says which numbers the inputs had: "inputs: normal, seed 0; x given; ids below 100". */
static void print_inputs(const bench *b) {
  uint32_t named = 0;
  printf("inputs: %s", numbers_name(b->numbers.kind));
  if (b->numbers.kind != NUMBERS_ONES) printf(", seed %llu", (unsigned long long)b->numbers.seed);
  for (uint32_t i = 0; i < b->whole->in_count && named <= most_named; i++) {
    const bool given = b->inputs.given[i], indexes = b->limits[i] < INT64_MAX && b->numbers.kind != NUMBERS_ONES;
    if (!given && !indexes) continue;
    if (named++ == most_named) printf("; ..");
    else if (given) printf("; %s given", source_input_name(&b->source, i));
    else printf("; %s below %lld", source_input_name(&b->source, i), (long long)b->limits[i]);
  }
  printf("\n");
}

static line line_of(const bench *b, const ax_rates *rates, const ax_profile_row *row) {
  const bool between = row->op != NULL && row->op->kind == AX_OP_START && ax_process_count(b->runtime) > 1;
  const ax_amount amount = between || row->op == NULL ? (ax_amount){.dtype = AX_F32} : ax_op_amount(b->executable->compiled.plan, row->op);
  const double calls = row->calls;
  return (line){*row,
                calls * amount.read,
                calls * amount.written,
                calls * amount.flops,
                calls * ax_least_seconds(rates, &amount),
                ax_least_seconds_by(rates, &amount),
                between};
}

static ax_status print_table(const bench *b, const ax_rates *rates) {
  line *lines = ax_calloc(b->row_count, sizeof lines[0]);
  uint32_t count = 0;
  double in_all = 0, bounds = 0;
  if (lines == NULL) return ax_out_of_memory(b->row_count * sizeof lines[0]);
  for (uint32_t i = 0; i < b->row_count; i++) {
    const ax_profile_row *row = &b->rows[i];
    if (row->calls == 0 || row->seconds <= 0) continue;
    lines[count] = line_of(b, rates, row);
    in_all += row->seconds;
    bounds += lines[count++].bound;
  }
  qsort(lines, count, sizeof lines[0], by_loss);
  print_inputs(b);
  if (ax_process_count(b->runtime) > 1)
    printf("%u processes; what is listed is process 0's, with %lld of the devices\n", ax_process_count(b->runtime),
           (long long)(b->executable->compiled.map != NULL ? b->executable->compiled.map->here : b->executable->compiled.devices));
  printf("this machine: reads %.3g GB/s, writes %.3g; products of f32 %.4g GF/s\n", rates->read / 1e9, rates->write / 1e9,
         rates->flops[AX_F32] / 1e9);
  printf("a run: %.2f us; in what is listed %.2f, of which the least is %.2f\n", 1e6 * b->seconds, 1e6 * in_all, 1e6 * bounds);
  printf("the rest: %.2f us (%.0f%% of a run) in which no thread worked on what is listed: beginning and ending the run, steps of\n"
         "loops, waits of devices and threads for each other%s, and taking the time\n\n",
         1e6 * b->outside, 100 * b->outside / b->seconds, ax_process_count(b->runtime) > 1 ? ", messages of exchanges" : "");
  printf("%10s %6s %8s %10s %-10s %9s %8s %8s\n", "us", "", "calls", "bound us", "by", "lost us", "GB/s", "GF/s");
  for (uint32_t i = 0; i < count; i++) print_line(&lines[i], in_all);
  ax_free(lines);
  return AX_OK;
}

/* --- The command --- */

static ax_status bench_program(bench *b, const char *path) {
  AX_TRY(source_read(path, &b->shardings, &b->in, &b->source));
  AX_TRY(whole_laid_out(&b->source, &b->shardings, NULL, &b->whole));
  b->arrays = ax_calloc((size_t)b->whole->in_count + b->whole->out_count + 1, sizeof b->arrays[0]);
  if (b->arrays == NULL) return ax_out_of_memory(0);
  AX_TRY(ax_runtime_create(&b->options, &b->runtime));
  const bool prints = ax_process_index(b->runtime) == 0;
  ax_rates rates = {0};
  keep_speeds();
  if (prints) rates = ax_rates_measured(b->runtime->options.workers);
  const ax_compile_options compiling = {.subnormals = b->subnormals, .contraction = b->contraction, .timeline = true};
  ax_status status = ax_compile(b->runtime, b->whole, &compiling, &b->executable);
  if (status == AX_OK) status = put_inputs(b);
  if (status == AX_OK) status = run_all(b);
  if (status == AX_OK && prints) status = print_table(b, &rates);
  return status;
}

static void deinit(bench *b) {
  for (uint32_t i = 0; b->arrays != NULL && i < b->whole->in_count + b->whole->out_count; i++) ax_array_release(b->arrays[i]);
  ax_free(b->arrays);
  ax_free(b->limits);
  ax_free(b->rows);
  ax_executable_release(b->executable);
  ax_runtime_release(b->runtime);
  ax_program_release(b->whole);
  inputs_deinit(&b->inputs);
  source_deinit(&b->source);
  word_list_deinit(&b->in);
  shardings_deinit(&b->shardings);
}

static ax_status take_number(const char *option, const char *what, int64_t least, int64_t most, const char *argument,
                             int64_t *out) {
  if (ax_integer_parse(argument, out) && *out >= least && *out <= most) return AX_OK;
  return ax_error(AX_INVALID_ARGUMENT, "%s: not a %s: %s", option, what, argument);
}

static ax_status take_option(void *context, int value, const char *argument) {
  bench *b = context;
  int64_t number;
  switch (value) {
    case option_in: return take_pair(&b->in, "--in", argument);
    case option_contraction: return take_contraction(argument, &b->contraction);
    case option_inputs:
      if (numbers_find(argument, &b->numbers.kind)) return AX_OK;
      return ax_error(AX_INVALID_ARGUMENT, "--inputs: expected normal, uniform, ones, masked or vanishing, got \"%s\"", argument);
    case option_mesh:
    case option_in_sharding:
    case option_out_sharding:
    case option_dim:
    case option_ffi: return shardings_take(&b->shardings, value, argument);
    case option_processes: return take_processes(argument, &b->options.processes);
    case option_runs: return take_number("--runs", "number of runs", 1, INT64_MAX, argument, &b->runs);
    case option_seed:
      AX_TRY(take_number("--seed", "seed, which is 0 or more", 0, INT64_MAX, argument, &number));
      b->numbers.seed = (uint64_t)number;
      return AX_OK;
    case option_subnormals: return take_subnormals(argument, &b->subnormals);
    default:
      AX_TRY(take_number("--workers", "number of threads", 0, 4096, argument, &number));
      b->options.workers = (uint32_t)number;
      return AX_OK;
  }
}

int bench_main(int argc, const char **argv) {
  bench b = {.runs = 0};
  const struct poptOption table[] = {
      {"in", 'i', POPT_ARG_STRING, NULL, option_in, "An input; --inputs says what the others are", "NAME=VALUE"},
      {"inputs", '\0', POPT_ARG_STRING, NULL, option_inputs,
       "Numbers of inputs that are not given: normal (the default), uniform, ones, masked, vanishing", "NUMBERS"},
      {"seed", '\0', POPT_ARG_STRING, NULL, option_seed, "For random inputs (0); the same seed gives the same numbers", "N"},
      {"subnormals", '\0', POPT_ARG_STRING, NULL, option_subnormals,
       "keep, or flush to zero (the default, unless AXLE_SUBNORMALS says keep)", "HOW"},
      {"contraction", '\0', POPT_ARG_STRING, NULL, option_contraction,
       "exact (the default, unless AXLE_CONTRACTION says fused), or fused: products that are added are not rounded first", "HOW"},
      SHARDING_OPTIONS,
      PROCESSES_OPTION(option_processes),
      {"runs", '\0', POPT_ARG_STRING, NULL, option_runs, "How often it is run (as half a second has room for)", "N"},
      {"workers", '\0', POPT_ARG_STRING, NULL, option_workers, "Threads (0: as many as processors this process may use)", "N"},
      POPT_TABLEEND,
  };
  const option_set set = {
      .command = "bench",
      .usage = "FILE [OPTION...]",
      .summary = "Runs the program in FILE (- for standard input) over and over, and lists where its time goes.",
      .table = table,
      .handle = take_option,
      .context = &b,
      .wants_file = true,
      .notes =
          "A line for each kernel, product and exchange, those that lose most time first. us: the microseconds of a run in which\n"
          "some thread was at it, the least of all runs. calls: in one run, by all devices (an operation in a loop is called once\n"
          "a step). bound: the least time for the bytes that it has to read and write and for its operations, from the speeds of\n"
          "memory, caches and products that axle devices shows. The rest is the time that no line has, in the shortest run.\n"
          "Memory that was just written is still in the caches, so small operations can be faster than their bound. Taking the\n"
          "time costs some 50 ns a call.\n\n"
          "Floats of inputs that are not given are random: normal has mean 0 and deviation 1, uniform lies between -1 and 1, masked\n"
          "is normal with -1e9 for half of the elements, and vanishing has sizes from the least of the dtype (1e-45 of f32) to 1.\n"
          "With --subnormals keep, numbers too small for a whole mantissa can take many times as long. Integers lie below the extent\n"
          "that they index, others from 0 to 9; booleans are true or false. A loop that ends only for some numbers may not end for\n"
          "these: --in, or --inputs ones, gives others.\n\n"
          "  axle bench f.axle\n"
          "  axle bench f.axle --inputs masked --seed 1\n"
          "  axle bench f.axle --in x=x.npy --workers 1\n"};
  char *file = NULL;
  bool done;
  int code = read_options(&set, argc, argv, &file, &done);
  if (code == EXIT_OK && !done && bench_program(&b, file) != AX_OK) code = report_error();
  deinit(&b);
  free(file);
  return code;
}
