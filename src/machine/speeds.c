/* Each measurement is the shortest of a few rounds, since other processes can make it longer only. */
#include "machine/speeds.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "machine/caches.h"
#include "machine/features.h"

static void measured(ax_description *m, ax_fact fact, double value) { m->facts[fact] = (ax_known){value, AX_SOURCE_MEASURED}; }

/* --- Memory --- */

typedef uint64_t eight_words __attribute__((vector_size(64)));

static uint64_t sum_of(const eight_words *from, size_t count) {
  eight_words a = {0}, b = {0};
  for (size_t i = 0; i + 1 < count; i += 2) a += from[i], b += from[i + 1];
  return a[0] + b[7];
}

/* More than the caches hold, so that what was written first is in none of them. */
static void measure_memory(ax_description *m) {
  enum { rounds = 3, most = 96 << 20 };
  const double wanted = 1.5 * (double)ax_caches_here()->last;
  const size_t bytes = wanted < most ? (size_t)wanted & ~(size_t)127 : most;
  char *memory = ax_alloc(bytes);
  double least = HUGE_VAL;
  volatile uint64_t used = 0;
  if (memory == NULL) return;
  memset(memory, 1, bytes);
  for (int i = 0; i < rounds; i++) {
    const double begin = ax_seconds();
    used += sum_of((const eight_words *)(void *)memory, bytes / sizeof(eight_words));
    least = fmin(least, ax_seconds() - begin);
  }
  ax_free(memory);
  if (least > 0) measured(m, AX_FACT_READ, (double)bytes / least);
}

/* --- A line between two cores --- */

typedef struct court {
  _Alignas(128) _Atomic uint32_t ball; /* even: the other thread's turn */
  _Alignas(128) _Atomic bool over;
} court;

static void *return_balls(void *context) {
  court *c = context;
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

static void measure_exchange(ax_description *m) {
  enum { rounds = 4 };
  court c = {0};
  pthread_t other;
  double least = HUGE_VAL;
  uint32_t ball = 0;
  if (m->facts[AX_FACT_USABLE].value < 2) return;
  if (pthread_create(&other, NULL, return_balls, &c) == 0) {
    for (int i = 0; i < rounds; i++) {
      const double took = play(&c, &ball);
      if (took == HUGE_VAL) break; /* the count is no longer known */
      least = fmin(least, took);
    }
    atomic_store(&c.over, true);
    pthread_join(other, NULL);
  }
  if (least < HUGE_VAL) measured(m, AX_FACT_EXCHANGE, least);
}

/* --- Arithmetic --- */

#if defined(__x86_64__)
#include <immintrin.h>

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

/* Other types follow from f32 by how many of them an instruction takes. */
static void measure_arithmetic(ax_description *m) {
  enum { rounds = 20 };
  volatile float out = 0;
  double most = 0;
  const bool wide = ax_machine_has(AX_FEATURE_AVX512);
  if (!wide && !ax_machine_has(AX_FEATURE_AVX2)) return;
  for (int i = 0; i < rounds; i++) {
    const double begin = ax_seconds(), flops = wide ? multiply_64(&out) : multiply_32(&out), took = ax_seconds() - begin;
    if (took > 0) most = fmax(most, flops / took);
  }
  measured(m, AX_FACT_F32, most);
  measured(m, AX_FACT_F64, most / 2);
  measured(m, AX_FACT_BF16, ax_machine_has(AX_FEATURE_FAST_AVX512_BF16) ? 2 * most : most);
  measured(m, AX_FACT_S8, ax_machine_has(AX_FEATURE_AVX512_VNNI) ? 4 * most : most);
}

#else

static void measure_arithmetic(ax_description *m) { (void)m; }

#endif

void ax_speeds_measure(ax_description *machine) {
  measure_memory(machine);
  measure_exchange(machine);
  measure_arithmetic(machine);
}
