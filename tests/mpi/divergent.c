/* Under mpirun, 2 processes or more: programs made from a seed, in which one process does something else than the others. All must
   be told, by an error that names it, and none may hang.
     divergent alive SEED COUNT LOG    COUNT programs after each other: another program, shape, dtype, donation, sharding, branch,
                                       call, data, or a failure in one process. After each of them all go on together
     divergent end SEED LOG            one process ends early: exits, returns from main, aborts, is killed, in a call or between
                                       calls, or at any moment
   LOG gets lines: what was done and when, who was told when, in seconds, and what. */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "axle/axle.h"

enum { most_steps = 6, most_devices = 32 };

/* --- What all draw alike --- */

static uint64_t state;
static uint64_t bits(void) { /* splitmix64 */
  uint64_t z = state += 0x9e3779b97f4a7c15u;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return z ^ z >> 31;
}
static uint32_t below(uint32_t count) { return (uint32_t)(bits() % count); }

/* --- The log --- */

static int log_file;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* One line, at once. Called in a signal's handler too: the only thing that this thread then does. */
static void note(const char *format, ...) {
  char line[1024];
  va_list arguments;
  va_start(arguments, format);
  int length = vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  if (length >= (int)sizeof line) length = sizeof line - 1;
  for (int i = 0; i < length - 1; i++)
    if (line[i] == '\n') line[i] = '|';
  if (write(log_file, line, (size_t)length) != length) _exit(3);
}

static void give_up(const char *what) {
  note("wrong %u %s: %s\n", getpid(), what, ax_message());
  fprintf(stderr, "divergent: %s: %s\n", what, ax_message());
  abort();
}
#define CHECK(condition) \
  do {                   \
    if (!(condition)) give_up(#condition); \
  } while (0)

/* --- Programs --- */

typedef struct recipe {
  uint32_t steps, devices, callback_before; /* callback_before: a step; most_steps: none */
  uint8_t step[most_steps];
  int64_t elems;
  ax_dtype dtype;
  int64_t stays_away; /* a device that does not come to the sum at the end; -1: none */
  ax_callback *callback;
} recipe;

static ax_value mean(ax_value x, const recipe *r) { return ax_mul(ax_psum(x, "x"), ax_full_like(x, 1.0 / r->devices)); }
static void one_turn(const ax_value *in, ax_value *out, void *context) {
  out[0] = ax_add(ax_pshift(in[1], "x", 1, true), mean(in[1], context));
}
static ax_value turns(ax_value x, recipe *r) {
  ax_value out;
  ax_fori_loop(ax_full(AX_S32, AX_DIMS(), 0), ax_full(AX_S32, AX_DIMS(), 3), AX_CLOSURE(one_turn, 2, 1, r), AX_VALUES(x), &out);
  return out;
}
static void sum_of_all(const ax_value *in, ax_value *out, void *context) { out[0] = mean(in[0], context); }
static void nothing(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_neg(in[0]);
}
static ax_value unless_away(ax_value x, recipe *r) {
  ax_value out, away = ax_eq(ax_axis_index("x"), ax_full(AX_S32, AX_DIMS(), (double)r->stays_away));
  ax_if(away, AX_CLOSURE(nothing, 1, 1, NULL), AX_CLOSURE(sum_of_all, 1, 1, r), AX_VALUES(x), &out);
  return out;
}

static ax_value one_step(ax_value x, uint32_t step, recipe *r) {
  switch (step) {
    case 0: return mean(x, r);
    case 1: return ax_pshift(x, "x", 1, true);
    case 2: return ax_slice(ax_all_gather(x, "x", 0, true), AX_DIMS(0), AX_DIMS(r->elems), AX_DIMS(1));
    case 3: return turns(x, r);
    case 4: return ax_pmax(x, "x");
    default: return ax_mul(x, ax_full_like(x, 0.5));
  }
}

static void body(const ax_value *in, ax_value *out, void *context) {
  recipe *r = context;
  ax_value x = in[0];
  for (uint32_t i = 0; i < r->steps; i++) {
    if (i == r->callback_before) ax_io_callback(r->callback, false, AX_VALUES(x), AX_TYPES(ax_typeof(x)), &x);
    x = one_step(x, r->step[i], r);
  }
  out[0] = r->stays_away >= 0 ? unless_away(x, r) : x;
}

typedef struct part { /* what each process has of the programs */
  ax_runtime *runtime;
  uint32_t own, processes;
  recipe recipe;
  ax_mesh mesh;
  ax_executable *executable;
  ax_array *in;
  ax_host_array wanted;
} part;

static void all(const ax_value *in, ax_value *out, void *context) {
  part *p = context;
  ax_shard_map_unchecked(&p->mesh, "x -> x", AX_CLOSURE(body, 1, 1, &p->recipe), in, out);
}

static ax_type type_of(const recipe *r) { return ax_array_type(r->dtype, AX_DIMS(r->elems * r->devices)); }

static ax_status compile(part *p, const recipe *r, bool donates, ax_executable **out) {
  const recipe mine = p->recipe;
  const ax_type type = type_of(r);
  p->recipe = *r;
  ax_status status = ax_jit(p->runtime, AX_CLOSURE(all, 1, 1, p), &type, &(ax_compile_options){.donate = {.count = donates}}, out);
  p->recipe = mine;
  return status;
}

static void draw(recipe *r, uint32_t processes) {
  *r = (recipe){.steps = 1 + below(most_steps - 1), .devices = processes * (1 + below(2)), .callback_before = most_steps,
                .elems = below(4) == 0 ? 4096 : 1 + below(40), .dtype = AX_F32, .stays_away = -1};
  for (uint32_t i = 0; i < r->steps; i++) r->step[i] = (uint8_t)below(6);
  r->step[0] = (uint8_t)below(5); /* a collective */
}

static float data[most_devices * 4096];

static ax_status put(part *p, const char *spec, ax_array **out) {
  const ax_type type = type_of(&p->recipe);
  const ax_host_array host = {.dtype = AX_F32, .rank = 1, .dims = {type.dims[0]}, .data = data, .view = true};
  return ax_device_put(p->runtime, &p->mesh, spec, &host, out);
}

static ax_status run(ax_executable *executable, ax_array *in) {
  ax_array *out;
  ax_status status = ax_run(executable, AX_LIST(1, &in), AX_LIST(1, &out));
  ax_array_release(out);
  return status;
}

static void result(part *p, ax_host_array *out) {
  ax_array *array;
  CHECK(ax_run(p->executable, AX_LIST(1, &p->in), AX_LIST(1, &array)) == AX_OK);
  CHECK(ax_array_gather(array, AX_EVERY_PROCESS, out) == AX_OK);
  ax_array_release(array);
}

static void begin(part *p) {
  char text[32];
  draw(&p->recipe, p->processes);
  snprintf(text, sizeof text, "x=%u", p->recipe.devices);
  CHECK(ax_mesh_parse(text, &p->mesh) == AX_OK);
  CHECK(compile(p, &p->recipe, false, &p->executable) == AX_OK);
  CHECK(put(p, "x", &p->in) == AX_OK);
  result(p, &p->wanted);
}

/* What went wrong has left nothing behind. */
static void check_again(part *p) {
  ax_host_array got;
  result(p, &got);
  CHECK(memcmp(got.data, p->wanted.data, (size_t)(p->recipe.elems * p->recipe.devices) * 4) == 0);
  ax_host_array_release(&got);
}

static void end(part *p) {
  ax_array_release(p->in);
  ax_executable_release(p->executable);
  ax_host_array_release(&p->wanted);
}

/* --- One process does something else, and all go on --- */

static ax_status compile_other(part *p, const recipe *other, bool donates) {
  ax_executable *executable;
  ax_status status = compile(p, other, donates, &executable);
  ax_executable_release(executable);
  return status;
}

static ax_status other_step(part *p, bool mine) {
  recipe other = p->recipe;
  if (mine) other.step[other.steps - 1] ^= 1;
  return compile_other(p, &other, false);
}
static ax_status one_step_more(part *p, bool mine) {
  recipe other = p->recipe;
  if (mine) other.step[other.steps++] = 0;
  return compile_other(p, &other, false);
}
static ax_status other_shape(part *p, bool mine) {
  recipe other = p->recipe;
  other.elems += mine;
  return compile_other(p, &other, false);
}
static ax_status other_dtype(part *p, bool mine) {
  recipe other = p->recipe;
  if (mine) other.dtype = AX_F64;
  return compile_other(p, &other, false);
}
static ax_status other_donation(part *p, bool mine) { return compile_other(p, &p->recipe, mine); }
static ax_status other_sharding(part *p, bool mine) {
  ax_array *in;
  CHECK(put(p, mine ? "" : "x", &in) == AX_OK);
  ax_status status = run(p->executable, in);
  ax_array_release(in);
  return status;
}
static ax_status other_branch(part *p, bool mine) {
  recipe other = p->recipe;
  ax_executable *executable;
  other.step[other.steps++] = 4;
  CHECK(compile(p, &other, false, &executable) == AX_OK);
  ax_status status = run(mine ? executable : p->executable, p->in);
  ax_executable_release(executable);
  return status;
}
static ax_status gathers_instead(part *p, bool mine) {
  ax_host_array whole;
  if (!mine) return run(p->executable, p->in);
  ax_status status = ax_array_gather(p->in, AX_EVERY_PROCESS, &whole);
  ax_host_array_release(&whole);
  return status;
}
static ax_status compiles_instead(part *p, bool mine) {
  return mine ? compile_other(p, &p->recipe, true) : run(p->executable, p->in);
}
static ax_status other_data(part *p, bool mine) {
  ax_array *in;
  data[0] += mine;
  const int64_t elems = p->recipe.elems * p->recipe.devices;
  const ax_host_array host = {.dtype = AX_F32, .rank = 1, .dims = {elems}, .data = data, .view = true};
  ax_status status = ax_device_put_same(p->runtime, &p->mesh, "x", &host, &in);
  data[0] -= mine;
  ax_array_release(in);
  return status;
}
/* A device of this process does not come to a sum. */
static ax_status stays_away(part *p, bool mine) {
  recipe other = p->recipe;
  ax_executable *executable;
  (void)mine;
  CHECK(compile(p, &other, false, &executable) == AX_OK);
  ax_status status = run(executable, p->in);
  ax_executable_release(executable);
  return status;
}
static ax_status refuse(ax_callback_call *call, void *mine) {
  memcpy(call->out[0].data, call->in[0].data, (size_t)call->in[0].dims[0] * 4);
  if (!*(const bool *)mine) return AX_OK;
  snprintf(call->message, AX_MESSAGE_BYTES, "thrown");
  return AX_INVALID_ARGUMENT;
}
static ax_status throws(part *p, bool mine) {
  recipe other = p->recipe;
  ax_executable *executable;
  CHECK(ax_callback_create("refuse", refuse, &mine, NULL, &other.callback) == AX_OK);
  other.callback_before = other.steps - 1;
  CHECK(compile(p, &other, false, &executable) == AX_OK);
  ax_status status = run(executable, p->in);
  ax_executable_release(executable);
  ax_callback_release(other.callback);
  return status;
}
static ax_status wrong_argument(part *p, bool mine) { return run(p->executable, mine ? NULL : p->in); }

typedef struct divergence {
  const char *name;
  ax_status (*do_it)(part *p, bool mine); /* mine: this process is the one that does otherwise */
} divergence;
static const divergence divergences[] = {
    {"other step", other_step},           {"one step more", one_step_more},     {"other shape", other_shape},
    {"other dtype", other_dtype},         {"other donation", other_donation},   {"other sharding", other_sharding},
    {"other branch", other_branch},       {"gathers instead", gathers_instead}, {"compiles instead", compiles_instead},
    {"other data", other_data},           {"stays away", stays_away},           {"throws", throws},
    {"wrong argument", wrong_argument},
};

/* "processes 0 and 2 do not do the same", "process 2: ..", "device 5 (x=5) of process 2" */
static bool names(const char *message, uint32_t process) {
  char one[32], first[32], second[32];
  snprintf(one, sizeof one, "process %u", process);
  snprintf(first, sizeof first, "processes %u and ", process);
  snprintf(second, sizeof second, " and %u do not", process);
  return strstr(message, one) != NULL || strstr(message, first) != NULL || strstr(message, second) != NULL;
}

static void diverge(part *p, uint32_t number) {
  const divergence *d = &divergences[number % (sizeof divergences / sizeof divergences[0])];
  const uint32_t culprit = below(p->processes);
  begin(p);
  const uint32_t devices_each = p->recipe.devices / p->processes;
  recipe kept = p->recipe;
  if (d->do_it == stays_away) p->recipe.stays_away = culprit * devices_each;
  const double before = now();
  if (p->own == culprit) note("does %u %.6f %s\n", culprit, before, d->name);
  const ax_status status = d->do_it(p, p->own == culprit);
  const double after = now();
  p->recipe = kept;
  if (status == AX_OK) give_up(d->name);
  note("told %u %.6f %.6f %s\n", p->own, after, after - before, ax_message());
  if (!names(ax_message(), culprit)) give_up(d->name);
  check_again(p);
  end(p);
}

/* --- One process ends --- */

typedef void ending(void);
/* Callbacks of two devices may come to it at once, and exit is not for two threads at a time. */
static void by_exit(void) {
  static pthread_mutex_t never_again = PTHREAD_MUTEX_INITIALIZER;
  pthread_mutex_lock(&never_again);
  exit(0);
}
static void by_quick_exit(void) { _exit(0); }
static void by_abort(void) { abort(); }
static void by_fault(void) { raise(SIGSEGV); }
static void by_kill(void) { raise(SIGKILL); }
static const struct {
  const char *name;
  ending *end; /* NULL: returns from main */
  bool any_time; /* it may happen in a signal's handler */
} endings[] = {{"exit", by_exit, false}, {"_exit", by_quick_exit, true}, {"abort", by_abort, true}, {"fault", by_fault, true},
               {"kill", by_kill, true},  {"return", NULL, false}};
enum { endings_count = sizeof endings / sizeof endings[0] };

static struct {
  uint32_t own, how;
  bool in_call;
} death;

static void die(void) {
  note("does 0 %.6f %s in process %u\n", now(), endings[death.how].name, death.own);
  if (endings[death.how].end != NULL) endings[death.how].end();
}
static void on_alarm(int signal) {
  (void)signal;
  die();
}
static ax_status die_in_call(ax_callback_call *call, void *context) {
  (void)context;
  memcpy(call->out[0].data, call->in[0].data, (size_t)call->in[0].dims[0] * 4);
  if (death.in_call) die();
  return AX_OK;
}

static void set_alarm(uint32_t microseconds) {
  signal(SIGALRM, on_alarm);
  setitimer(ITIMER_REAL, &(struct itimerval){.it_value = {.tv_usec = 1 + microseconds}}, NULL);
}

/* Returns true if this process is to return from main. */
static bool end_early(part *p) {
  const uint32_t culprit = below(p->processes), how = below(endings_count), when = below(3);
  const uint32_t turns_before = below(20), later = below(30000);
  const bool mine = p->own == culprit;
  const bool any_time = when == 0 && endings[how].any_time, in_call = when == 1 && endings[how].end != NULL;
  death.own = culprit;
  death.how = how;
  draw(&p->recipe, p->processes);
  p->recipe.callback_before = 0;
  char text[32];
  snprintf(text, sizeof text, "x=%u", p->recipe.devices);
  CHECK(ax_mesh_parse(text, &p->mesh) == AX_OK);
  CHECK(ax_callback_create("dies", die_in_call, NULL, NULL, &p->recipe.callback) == AX_OK);
  if (mine && any_time) set_alarm(later);
  ax_status status = compile(p, &p->recipe, false, &p->executable);
  if (status == AX_OK) status = put(p, "x", &p->in);
  for (uint32_t turn = 0; status == AX_OK; turn++) {
    death.in_call = mine && in_call && turn == turns_before;
    if (mine && !any_time && !in_call && turn == turns_before) {
      die();
      return true;
    }
    status = run(p->executable, p->in);
  }
  note("told %u %.6f 0 %s\n", p->own, now(), ax_message());
  if (!names(ax_message(), culprit)) give_up("the one that has ended is not named");
  end(p);
  ax_callback_release(p->recipe.callback);
  return false;
}

int main(int count, char **arguments) {
  const bool ends = count == 4 && strcmp(arguments[1], "end") == 0;
  part p = {0};
  if (!ends && (count != 5 || strcmp(arguments[1], "alive") != 0)) return 2;
  state = strtoull(arguments[2], NULL, 0);
  log_file = open(arguments[count - 1], O_WRONLY | O_APPEND | O_CREAT, 0666);
  CHECK(log_file >= 0);
  for (uint32_t i = 0; i < sizeof data / sizeof data[0]; i++) data[i] = (float)(i % 13) - 6;
  CHECK(ax_runtime_create(&(ax_runtime_options){.processes = AX_MPI, .workers = 1 + below(2)}, &p.runtime) == AX_OK);
  p.own = ax_process_index(p.runtime);
  p.processes = ax_process_count(p.runtime);
  CHECK(p.processes > 1 && 2 * p.processes <= most_devices);
  if (ends && end_early(&p)) return 0;
  const uint32_t first = below(1 << 20), cases = ends ? 0 : (uint32_t)strtoul(arguments[3], NULL, 0);
  for (uint32_t i = 0; i < cases; i++) diverge(&p, first + i);
  ax_runtime_release(p.runtime);
  return ends ? 9 : 0; /* 9: told */
}
