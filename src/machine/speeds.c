/* Each measurement is the shortest of a few rounds, since other processes can make it longer only. */
#include "machine/speeds.h"

#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "machine/caches.h"
#include "machine/features.h"
#include "machine/processor.h"

/* 0: it could not be measured, and stays assumed. */
static void measured(ax_description *m, ax_fact fact, double value) {
  if (value > 0) m->facts[fact] = (ax_known){value, AX_SOURCE_MEASURED};
}

/* The two shortest rounds. */
typedef struct rounds {
  double least, second;
} rounds;

static const rounds none = {HUGE_VAL, HUGE_VAL};

static void note(rounds *r, double took) {
  if (took < r->least) r->second = r->least, r->least = took;
  else if (took < r->second) r->second = took;
}

/* A machine that does little else has two rounds that are alike. */
static bool agree(const rounds *r) { return r->least > 0 && r->second <= 1.25 * r->least; }

/* --- Memory and caches --- */

/* As wide as the processor loads, or the arithmetic would take longer than the caches. */
#if defined(__x86_64__)
__attribute__((target("avx512f"))) static uint64_t sum_64(const void *memory, size_t bytes) {
  const __m512i *from = memory;
  __m512i a = _mm512_setzero_si512(), b = a, c = a, d = a;
  for (size_t i = 0; i + 3 < bytes / sizeof a; i += 4) {
    a = _mm512_add_epi64(a, from[i]), b = _mm512_add_epi64(b, from[i + 1]);
    c = _mm512_add_epi64(c, from[i + 2]), d = _mm512_add_epi64(d, from[i + 3]);
  }
  return (uint64_t)_mm512_reduce_add_epi64(_mm512_add_epi64(_mm512_add_epi64(a, b), _mm512_add_epi64(c, d)));
}

__attribute__((target("avx2"))) static uint64_t sum_32(const void *memory, size_t bytes) {
  const __m256i *from = memory;
  __m256i a = _mm256_setzero_si256(), b = a, c = a, d = a;
  for (size_t i = 0; i + 3 < bytes / sizeof a; i += 4) {
    a = _mm256_add_epi64(a, from[i]), b = _mm256_add_epi64(b, from[i + 1]);
    c = _mm256_add_epi64(c, from[i + 2]), d = _mm256_add_epi64(d, from[i + 3]);
  }
  return (uint64_t)_mm256_extract_epi64(_mm256_add_epi64(_mm256_add_epi64(a, b), _mm256_add_epi64(c, d)), 0);
}
#endif

static uint64_t sum_16(const void *memory, size_t bytes) {
  typedef uint64_t two_words __attribute__((vector_size(16)));
  const two_words *from = memory;
  two_words a = {0}, b = a, c = a, d = a;
  for (size_t i = 0; i + 3 < bytes / sizeof a; i += 4) a += from[i], b += from[i + 1], c += from[i + 2], d += from[i + 3];
  a += b + c + d;
  return a[0] + a[1];
}

static void read_all_of(void *memory, size_t bytes) {
  volatile uint64_t used; /* so that the compiler keeps the loop */
#if defined(__x86_64__)
  used = ax_machine_has(AX_FEATURE_AVX512) ? sum_64(memory, bytes)
         : ax_machine_has(AX_FEATURE_AVX2) ? sum_32(memory, bytes)
                                           : sum_16(memory, bytes);
#else
  used = sum_16(memory, bytes);
#endif
  (void)used;
}

/* Past the caches, as large results are stored: afterwards no line of them is in a cache. Where there is no instruction for that,
   plainly. */
static void write_all_of(void *memory, size_t bytes) {
#if defined(__SSE2__)
  __m128i *to = memory;
  for (size_t i = 0; i < bytes / sizeof *to; i++) _mm_stream_si128(&to[i], _mm_set1_epi64x(1));
  _mm_sfence();
#else
  memset(memory, 1, bytes);
#endif
}

/* Some threads that do the same at the same time, each on its own part of the memory: write all of it in one step, read it in the
   next. They wait for each other by turning, since to wake a thread takes longer than a cache is read. A thread on the processor of
   the one that made the team moves away. */
typedef struct team {
  char *memory;
  size_t bytes; /* of each */
  _Atomic uint32_t begun, done, joined; /* begun: steps; done: threads' steps */
  uint32_t others;
  _Atomic int processor; /* of the thread that makes the team */
} team;

static void turn_until(const _Atomic uint32_t *number, uint32_t least) {
  for (uint32_t i = 1; atomic_load_explicit(number, memory_order_acquire) < least; i++)
    if (i % 1024 == 0) sched_yield();
    else ax_relax();
}

enum { team_steps = 8, over = 1 << 20 };

static void do_step(const team *t, uint32_t own, uint32_t step) {
  (step % 2 == 1 ? write_all_of : read_all_of)(t->memory + own * t->bytes, t->bytes);
}

static void *help(void *context) {
  team *t = context;
  const uint32_t own = atomic_fetch_add(&t->joined, 1) + 1;
  for (uint32_t step = 1; step <= team_steps; step++) {
    turn_until(&t->begun, step);
    if (atomic_load(&t->begun) >= over) break;
    ax_processor_leave(atomic_load(&t->processor));
    do_step(t, own, step);
    atomic_fetch_add(&t->done, 1);
  }
  return NULL;
}

static void take_steps(team *t, rounds *writing, rounds *reading) {
  turn_until(&t->joined, t->others);
  for (uint32_t step = 1; step <= team_steps; step++) {
    const double begin = ax_seconds();
    atomic_store(&t->processor, ax_processor());
    atomic_store(&t->begun, step);
    do_step(t, 0, step);
    turn_until(&t->done, step * t->others);
    note(step % 2 == 1 ? writing : reading, ax_seconds() - begin);
  }
}

/* The speeds of so many threads together, to memory and from it. False: they could not be made, or were disturbed. */
static bool measure_team(char *memory, size_t bytes, uint32_t threads, double *write, double *read) {
  team t = {.memory = memory, .bytes = bytes / threads & ~(size_t)255};
  pthread_t *others = ax_calloc(threads, sizeof others[0]);
  rounds writing = none, reading = none;
  while (others != NULL && t.others + 1 < threads && pthread_create(&others[t.others], NULL, help, &t) == 0) t.others++;
  const bool all = others != NULL && t.others + 1 == threads;
  if (all) take_steps(&t, &writing, &reading);
  else atomic_store(&t.begun, over);
  for (uint32_t i = 0; i < t.others; i++) pthread_join(others[i], NULL);
  ax_free(others);
  *write = (double)(t.bytes * threads) / writing.least;
  *read = (double)(t.bytes * threads) / reading.least;
  return all && agree(&writing) && agree(&reading);
}

static double speed_of_one(char *memory, size_t bytes, bool *quiet) {
  const int some = bytes > 16 << 20 ? 3 : 12;
  rounds r = none;
  for (int i = 0; i < some; i++) {
    const double begin = ax_seconds();
    read_all_of(memory, bytes);
    note(&r, ax_seconds() - begin);
  }
  *quiet = *quiet && agree(&r);
  return (double)bytes / r.least;
}

/* The bytes that the last cache holds: so much is read again and again at its speed. Virtual machines are told their hosts' caches,
   so ever more is tried, up to what is told. */
static double last_holds(double sure, double told, double speed, bool *quiet) {
  const size_t most = (size_t)fmin(told, 128 << 20);
  double holds = sure;
  char *memory = 1.6 * sure <= (double)most ? ax_alloc(most) : NULL;
  for (size_t bytes = (size_t)(1.6 * sure), set = 0; memory != NULL && bytes <= most; bytes = bytes / 5 * 8) {
    memset(memory + set, 0, bytes - set); /* pages that were never written are all the same one */
    set = bytes;
    if (speed_of_one(memory, bytes & ~(size_t)255, quiet) < 0.75 * speed && speed_of_one(memory, bytes & ~(size_t)255, quiet) < 0.75 * speed)
      break;
    holds = (double)bytes;
  }
  ax_free(memory);
  return holds;
}

/* As many threads as get processors' time, and no more than cores. */
static uint32_t threads_at_once(const ax_description *m) {
  enum { most = 1024 };
  const double cores = m->facts[AX_FACT_USABLE_CORES].value, threads = fmin(cores, ax_machine_threads());
  return threads < 1 ? 1 : threads > most ? most : (uint32_t)threads;
}

/* Enough that threads' beginnings and ends do not count. Where stores go through the caches, more than these hold. */
static size_t bytes_for(uint32_t threads) {
  const double some = 24 << 20, each = 1 << 20, most = 256 << 20;
#if defined(__SSE2__)
  const double caches = 0;
#else
  const double caches = fmin(1.25 * (double)ax_caches_here()->last, 96 << 20);
#endif
  return (size_t)fmin(fmax(fmax(some, caches), threads * each), most) & ~(size_t)255;
}

/* All threads come first, so that each part lies near the thread that writes it first, where there are several memories. The first
   round, in which the system finds memory, is never among the shortest. */
static bool measure_memory(ax_description *m) {
  const uint32_t threads = threads_at_once(m);
  const size_t bytes = bytes_for(threads);
  const double near = (double)ax_caches_here()->second, shared = (double)ax_caches_here()->shared;
  double write, read, write_all, read_all;
  char *memory = ax_alloc(bytes);
  if (memory == NULL) return false;
  bool quiet = measure_team(memory, bytes, threads, &write_all, &read_all);
  quiet = measure_team(memory, bytes, 1, &write, &read) && quiet;
  measured(m, AX_FACT_WRITE, write);
  measured(m, AX_FACT_READ, read);
  measured(m, AX_FACT_WRITE_ALL, fmax(write, write_all));
  measured(m, AX_FACT_READ_ALL, fmax(read, read_all));
  measured(m, AX_FACT_L2_READ, speed_of_one(memory, (size_t)(near / 2) & ~(size_t)255, &quiet));
  const double in_last = fmin(fmin(4 * near, shared / 2), (double)bytes),
               last = speed_of_one(memory, (size_t)in_last & ~(size_t)255, &quiet);
  ax_free(memory);
  measured(m, AX_FACT_L3_READ, last);
  measured(m, AX_FACT_L3_HOLDS, last_holds(shared, m->facts[AX_FACT_L3].value, last, &quiet));
  return quiet;
}

/* --- A line between two cores --- */

typedef struct court {
  _Alignas(128) _Atomic uint32_t ball; /* even: the other thread's turn */
  _Alignas(128) _Atomic bool over;
  _Atomic bool there; /* the other thread has come */
  int processor;      /* of this thread, where the other one must not be */
} court;

static void *return_balls(void *context) {
  court *c = context;
  ax_processor_leave(c->processor);
  atomic_store(&c->there, true);
  for (uint32_t seen = 0; !atomic_load_explicit(&c->over, memory_order_relaxed);) {
    const uint32_t ball = atomic_load_explicit(&c->ball, memory_order_acquire);
    if (ball % 2 == 1 && ball != seen) atomic_store_explicit(&c->ball, ball + 1, memory_order_release), seen = ball;
  }
  return NULL;
}

/* Seconds of a line's way, from some exchanges; HUGE_VAL: the other thread has not answered in time. */
static double play(court *c, uint32_t *ball) {
  enum { exchanges = 200 };
  const double begin = ax_seconds(), patience = 2e-3;
  for (int i = 0; i < exchanges; i++) {
    atomic_store_explicit(&c->ball, ++*ball, memory_order_release);
    ++*ball;
    for (uint32_t spins = 1; atomic_load_explicit(&c->ball, memory_order_acquire) != *ball; spins++)
      if (spins % 4096 == 0 && ax_seconds() - begin > patience) return HUGE_VAL;
  }
  return (ax_seconds() - begin) / (2 * exchanges);
}

/* A process with one processor exchanges lines with nobody; there the fact stays assumed. */
static bool measure_exchange(ax_description *m) {
  enum { games = 4 };
  court c = {.processor = ax_processor()};
  pthread_t other;
  rounds r = none;
  uint32_t ball = 0;
  if (m->facts[AX_FACT_USABLE].value < 2) return true;
  if (pthread_create(&other, NULL, return_balls, &c) == 0) {
    while (!atomic_load(&c.there)) sched_yield();
    for (int i = 0; i < games; i++) {
      const double took = play(&c, &ball);
      if (took == HUGE_VAL) break; /* the count is no longer known */
      note(&r, took);
    }
    atomic_store(&c.over, true);
    pthread_join(other, NULL);
  }
  if (r.least < HUGE_VAL) measured(m, AX_FACT_EXCHANGE, r.least);
  return agree(&r);
}

/* --- Arithmetic --- */

#if defined(__x86_64__)

enum { chains = 8, steps = 4000 }; /* two products begin in each cycle, and each takes four at least */

/* The flops of both: `chains` chains of fused products over vectors. */
__attribute__((target("avx512f"))) static double multiply_64(volatile float *out) {
  __m512 sums[chains], factor = _mm512_set1_ps(0.5f), addend = _mm512_set1_ps(1);
  for (int c = 0; c < chains; c++) sums[c] = addend;
  for (int i = 0; i < steps; i++) {
#pragma GCC unroll 8
    for (int c = 0; c < chains; c++) sums[c] = _mm512_fmadd_ps(sums[c], factor, addend);
  }
  for (int c = 0; c < chains; c++) *out += _mm512_cvtss_f32(sums[c]);
  return 2.0 * 16 * chains * steps;
}

__attribute__((target("avx2,fma"))) static double multiply_32(volatile float *out) {
  __m256 sums[chains], factor = _mm256_set1_ps(0.5f), addend = _mm256_set1_ps(1);
  for (int c = 0; c < chains; c++) sums[c] = addend;
  for (int i = 0; i < steps; i++) {
#pragma GCC unroll 8
    for (int c = 0; c < chains; c++) sums[c] = _mm256_fmadd_ps(sums[c], factor, addend);
  }
  for (int c = 0; c < chains; c++) *out += _mm256_cvtss_f32(sums[c]);
  return 2.0 * 8 * chains * steps;
}

/* As functions are computed: by a polynomial of what is left of a rounded quotient, which is scaled by an integer in its exponent, and
   chosen or not. Some vectors at once, of which a step of each waits for the one before: a kernel's wait for nothing, so there are as many
   as keep the units busy, where registers hold them. They begin differently, or the compiler would see that they are the same. */
enum { mixed_vectors = 8, mixed_of_32 = 6, vectors = 4, mixed_steps = 1000, operations = 12 };

__attribute__((target("avx512f"))) static double mix_64(volatile float *out) {
  const __m512 one = _mm512_set1_ps(1), two = _mm512_set1_ps(2), half = _mm512_set1_ps(0.5f), small = _mm512_set1_ps(0.04f);
  __m512 x[mixed_vectors];
  for (int v = 0; v < mixed_vectors; v++) x[v] = _mm512_set1_ps(0.5f + (float)v);
  for (int i = 0; i < mixed_steps; i++) {
#pragma GCC unroll 8
    for (int v = 0; v < mixed_vectors; v++) {
      const __m512 whole = _mm512_roundscale_ps(_mm512_mul_ps(x[v], two), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
      const __m512 rest = _mm512_fnmadd_ps(whole, half, x[v]);
      const __m512 made = _mm512_fmadd_ps(_mm512_fmadd_ps(_mm512_fmadd_ps(rest, small, half), rest, half), rest, one);
      const __m512i power = _mm512_slli_epi32(_mm512_cvtps_epi32(whole), 23);
      const __m512 scaled = _mm512_castsi512_ps(_mm512_add_epi32(_mm512_castps_si512(_mm512_add_ps(made, small)), power));
      x[v] = _mm512_min_ps(_mm512_mask_blend_ps(_mm512_cmp_ps_mask(scaled, two, _CMP_LT_OQ), one, scaled), two);
    }
  }
  for (int v = 0; v < mixed_vectors; v++) *out += _mm512_cvtss_f32(x[v]);
  return 16.0 * operations * mixed_vectors * mixed_steps;
}

__attribute__((target("avx2,fma"))) static double mix_32(volatile float *out) {
  const __m256 one = _mm256_set1_ps(1), two = _mm256_set1_ps(2), half = _mm256_set1_ps(0.5f), small = _mm256_set1_ps(0.04f);
  __m256 x[mixed_of_32];
  for (int v = 0; v < mixed_of_32; v++) x[v] = _mm256_set1_ps(0.5f + (float)v);
  for (int i = 0; i < mixed_steps; i++) {
#pragma GCC unroll 6
    for (int v = 0; v < mixed_of_32; v++) {
      const __m256 whole = _mm256_round_ps(_mm256_mul_ps(x[v], two), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
      const __m256 rest = _mm256_fnmadd_ps(whole, half, x[v]);
      const __m256 made = _mm256_fmadd_ps(_mm256_fmadd_ps(_mm256_fmadd_ps(rest, small, half), rest, half), rest, one);
      const __m256i power = _mm256_slli_epi32(_mm256_cvtps_epi32(whole), 23);
      const __m256 scaled = _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(_mm256_add_ps(made, small)), power));
      x[v] = _mm256_min_ps(_mm256_blendv_ps(one, scaled, _mm256_cmp_ps(scaled, two, _CMP_LT_OQ)), two);
    }
  }
  for (int v = 0; v < mixed_of_32; v++) *out += _mm256_cvtss_f32(x[v]);
  return 8.0 * operations * mixed_of_32 * mixed_steps;
}

__attribute__((target("avx512f"))) static double divide_64(volatile float *out) {
  const __m512 three = _mm512_set1_ps(3);
  __m512 x[vectors];
  for (int v = 0; v < vectors; v++) x[v] = _mm512_set1_ps(1.5f + (float)v);
  for (int i = 0; i < mixed_steps; i++) {
#pragma GCC unroll 4
    for (int v = 0; v < vectors; v++) x[v] = _mm512_sqrt_ps(_mm512_div_ps(three, x[v]));
  }
  for (int v = 0; v < vectors; v++) *out += _mm512_cvtss_f32(x[v]);
  return 2.0 * 16 * vectors * mixed_steps;
}

__attribute__((target("avx2"))) static double divide_32(volatile float *out) {
  const __m256 three = _mm256_set1_ps(3);
  __m256 x[vectors];
  for (int v = 0; v < vectors; v++) x[v] = _mm256_set1_ps(1.5f + (float)v);
  for (int i = 0; i < mixed_steps; i++) {
#pragma GCC unroll 4
    for (int v = 0; v < vectors; v++) x[v] = _mm256_sqrt_ps(_mm256_div_ps(three, x[v]));
  }
  for (int v = 0; v < vectors; v++) *out += _mm256_cvtss_f32(x[v]);
  return 2.0 * 8 * vectors * mixed_steps;
}

/* Operations a second. */
static double speed_of(double (*compute)(volatile float *out), bool *quiet) {
  enum { some = 20 };
  volatile float out = 0;
  rounds r = none;
  double done = 0;
  for (int i = 0; i < some; i++) {
    const double begin = ax_seconds();
    done = compute(&out);
    note(&r, ax_seconds() - begin);
  }
  *quiet = *quiet && agree(&r);
  return done / r.least;
}

/* The other types follow from f32 by how many of them an instruction takes. */
static bool measure_arithmetic(ax_description *m) {
  const bool wide = ax_machine_has(AX_FEATURE_AVX512);
  bool quiet = true;
  if (!wide && !ax_machine_has(AX_FEATURE_AVX2)) return true; /* they stay assumed */
  const double products = speed_of(wide ? multiply_64 : multiply_32, &quiet);
  for (int f = AX_FACT_F32; f <= AX_FACT_S8; f++) measured(m, (ax_fact)f, products * ax_speeds_beside_f32((ax_fact)f));
  measured(m, AX_FACT_MIXED, speed_of(wide ? mix_64 : mix_32, &quiet));
  measured(m, AX_FACT_QUOTIENTS, speed_of(wide ? divide_64 : divide_32, &quiet));
  return quiet;
}

#else

static bool measure_arithmetic(ax_description *m) {
  (void)m;
  return true;
}

#endif

/* For tiles what oneDNN reaches in products of 512^3 on Sapphire Rapids is taken: they are never fed as fast as they multiply. */
double ax_speeds_beside_f32(ax_fact fact) {
  switch ((int)fact) {
    case AX_FACT_F64: return 0.5;
    case AX_FACT_F16: return ax_machine_has(AX_FEATURE_AVX512_FP16) ? 2 : 1;
    case AX_FACT_BF16: return ax_machine_has(AX_FEATURE_AMX_BF16) ? 7 : ax_machine_has(AX_FEATURE_FAST_AVX512_BF16) ? 2 : 1;
    case AX_FACT_S8:
      return ax_machine_has(AX_FEATURE_AMX_INT8)                                                            ? 12
             : ax_machine_has(AX_FEATURE_AVX512_VNNI) || ax_machine_has(AX_FEATURE_AVX_VNNI) ? 4
                                                                                             : 1;
    default: return 1;
  }
}

bool ax_speeds_measure(ax_description *machine) {
  const bool memory = measure_memory(machine), exchange = measure_exchange(machine);
  return measure_arithmetic(machine) && memory && exchange;
}
