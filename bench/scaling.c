/* How the time to trace, differentiate and compile grows with a program of a family (families.h). Each is measured once in a
   process of its own. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "axle/stablehlo.h"
#include "axle/transform.h"
#include "cases.h"
#include "families.h"
#include "serve.h"

/* --- Memory: what Axle itself holds --- */

/* Threads that end with the process may still release memory. */
static struct {
  atomic_size_t now, peak;
} held;

enum { lead = 64, huge_page = 2 << 20 }; /* the size stands before the memory; Axle asks for lines at most */

static void *counted_allocate(void *user, size_t bytes, size_t align) {
  char *memory;
  (void)user;
  const bool large = bytes >= 2 * huge_page; /* as Axle's own allocator does */
  if (align > lead || posix_memalign((void **)&memory, large ? huge_page : lead, lead + bytes) != 0) return NULL;
#ifdef MADV_HUGEPAGE
  if (large) (void)madvise(memory, bytes / huge_page * huge_page, MADV_HUGEPAGE);
#endif
  memcpy(memory + lead - sizeof bytes, &bytes, sizeof bytes);
  size_t now = atomic_fetch_add(&held.now, bytes) + bytes, peak = held.peak;
  while (now > peak && !atomic_compare_exchange_weak(&held.peak, &peak, now)) continue;
  return memory + lead;
}

static void counted_release(void *user, void *memory) {
  size_t bytes;
  (void)user;
  memcpy(&bytes, (char *)memory - sizeof bytes, sizeof bytes);
  atomic_fetch_sub(&held.now, bytes);
  free((char *)memory - lead);
}

static int64_t equations_of(const ax_program *program) {
  char *text;
  int64_t count = 0;
  check(ax_program_print(program, &text));
  for (const char *at = text; (at = strchr(at, '=')) != NULL; at++) count += at[-1] == ' ' && at[1] == ' ';
  ax_string_free(text);
  return count > 0 ? count : 1;
}

static void find_family(char **arguments, subject *s) {
  ax_set_allocator(&(ax_allocator){counted_allocate, counted_release, NULL});
  *s = (subject){.n = atoll(arguments[1])};
  if (family_make(arguments[0], s)) return;
  fprintf(stderr, "no family of programs is called %s\n", arguments[0]);
  exit(1);
}

/* --- scaling FAMILY N: seconds in all, to trace, to differentiate and to compile; bytes that the executable keeps, an equation
   --- */

void scaling(char **arguments) {
  subject s;
  find_family(arguments, &s);
  ax_runtime *runtime;
  ax_executable *executable;
  check(ax_runtime_create(NULL, &runtime));
  bench_wait();
  double start = bench_seconds();
  ax_program *program = job_trace(&s.job);
  double traced = bench_seconds();
  size_t before = held.now;
  check(ax_compile(runtime, program, NULL, &executable));
  double compiled = bench_seconds(), grad = s.whole - s.inner;
  size_t kept = held.now - before;
  printf("%.6g %.6g %.6g %.6g %.6g\n", compiled - start, traced - start - grad, grad, compiled - traced,
         (double)kept / (double)equations_of(program));
  fflush(stdout);
  ax_executable_release(executable);
  ax_program_release(program);
  ax_runtime_release(runtime);
}

/* --- reading FAMILY N: seconds to read the text of a program, and to write it --- */

void reading(char **arguments) {
  subject s;
  char *text;
  find_family(arguments, &s);
  ax_program *program = job_trace(&s.job), *again;
  bench_wait();
  double start = bench_seconds();
  check(ax_program_print(program, &text));
  double written = bench_seconds();
  check(ax_program_parse(text, strlen(text), "text", &again));
  printf("%.6g %.6g\n", bench_seconds() - written, written - start);
  fflush(stdout);
  ax_string_free(text);
  ax_program_release(program);
  ax_program_release(again);
}

/* Processor time of all threads of this process, whatever else the machine does. */
static double processor_seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* --- stages FAMILY N: every stage by itself, a line each: its name, seconds, MiB that Axle held more at its peak than before, and
   seconds of its threads' processors --- */

typedef struct under_way {
  subject subject;
  ax_runtime *runtime;
  ax_program *program;
  char *text;
  job job;
} under_way;

static ax_status drop(ax_status status, ax_program *made) {
  ax_program_release(made);
  return status;
}

static ax_status stage_trace(under_way *w) {
  w->program = job_trace(&w->subject.job);
  return AX_OK;
}
static ax_status stage_print(under_way *w) { return ax_program_print(w->program, &w->text); }
static ax_status stage_parse(under_way *w) {
  ax_program *made;
  ax_status status = ax_program_parse(w->text, strlen(w->text), "text", &made);
  return drop(status, made);
}
static ax_status stage_verify(under_way *w) { return ax_program_verify(w->program); }
static ax_status transformed(const under_way *w, ax_status (*transform)(const ax_program *, ax_program **)) {
  ax_program *made;
  ax_status status = transform(w->program, &made);
  return drop(status, made);
}
static ax_status stage_dce(under_way *w) { return transformed(w, ax_program_dce); }
static ax_status stage_cse(under_way *w) { return transformed(w, ax_program_cse); }
static ax_status stage_simplify(under_way *w) { return transformed(w, ax_program_simplify); }
static ax_status stage_partition(under_way *w) { return transformed(w, ax_program_partition); }
static ax_status stage_jvp(under_way *w) {
  ax_program *made;
  ax_status status = ax_program_jvp(w->program, AX_ALL_ARGS, &made);
  return drop(status, made);
}
static ax_status stage_vmap(under_way *w) {
  ax_program *made;
  ax_status status = ax_program_vmap(w->program, &(ax_vmap_options){.size = 3}, &made);
  return drop(status, made);
}
static ax_status stage_stablehlo(under_way *w) {
  char *text;
  ax_status status = ax_program_stablehlo(w->program, &text);
  ax_string_free(text);
  return status;
}
static ax_status stage_compile(under_way *w) { return ax_compile(w->runtime, w->program, NULL, &w->job.executable); }
static ax_status stage_put(under_way *w) {
  w->job = job_arrays(&w->subject.job, w->runtime, w->job.executable);
  return AX_OK;
}
static ax_status stage_run(under_way *w) {
  job_run(&w->job, 1);
  return AX_OK;
}

void every_stage(char **arguments) {
  static const struct {
    const char *name;
    ax_status (*run)(under_way *);
  } table[] = {{"trace", stage_trace},
               {"print", stage_print},
               {"parse", stage_parse},
               {"verify", stage_verify},
               {"dce", stage_dce},
               {"cse", stage_cse},
               {"simplify", stage_simplify},
               {"partition", stage_partition},
               {"jvp", stage_jvp},
               {"vmap", stage_vmap},
               {"stablehlo", stage_stablehlo},
               {"compile", stage_compile},
               {"put", stage_put},
               {"first_run", stage_run},
               {"run", stage_run}};
  under_way w = {0};
  find_family(arguments, &w.subject);
  check(ax_runtime_create(NULL, &w.runtime));
  for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
    const size_t before = held.now;
    held.peak = before;
    const double used = processor_seconds(), start = bench_seconds();
    ax_status status = table[i].run(&w);
    double took = bench_seconds() - start, grad = i == 0 ? w.subject.whole - w.subject.inner : 0;
    if (status == AX_OK)
      printf("%-10s %10.6f %10.3f %10.6f\n", table[i].name, took - grad, (double)(held.peak - before) / 1048576,
             processor_seconds() - used - grad);
    else printf("%-10s %10s %s\n", table[i].name, "-", ax_message());
    if (grad > 0) printf("%-10s %10.6f\n", "grad", grad);
    if (table[i].run == stage_compile)
      printf("%-10s %10llu\n", "kernels", (unsigned long long)ax_runtime_counters(w.runtime).kernels_compiled);
    fflush(stdout);
  }
  job_release(&w.job);
  ax_string_free(w.text);
  ax_program_release(w.program);
  ax_runtime_release(w.runtime);
}
