/* The engine of Fourier transforms: many transforms of one length, line by line of an array. It is a library of its own, written in
   C++ around ducc0 (engine.cc), which engines.c opens if it is there.

   A line is what stands along one dimension of a dense array T[a, count, s]: line number i stands at index i / s of the first
   dimension and i % s of the last. Numbers of lines go from 0 to a s - 1. */
#ifndef AX_FOURIER_ENGINE_H
#define AX_FOURIER_ENGINE_H

#include <stdbool.h>
#include <stdint.h>

typedef enum ax_fourier_kind {
  AX_FOURIER_FORWARD,  /* n complex numbers -> n, by exp(-2 pi i j k / n) */
  AX_FOURIER_BACKWARD, /* the same by exp(2 pi i j k / n), divided by n */
  AX_FOURIER_REAL,     /* n real numbers -> the first n / 2 + 1 of their transform */
  AX_FOURIER_REAL_BACK /* n / 2 + 1 complex numbers -> n real ones, divided by n; the imaginary parts at 0 and n / 2 are ignored */
} ax_fourier_kind;

static inline bool ax_fourier_is_real(ax_fourier_kind kind) { return kind == AX_FOURIER_REAL || kind == AX_FOURIER_REAL_BACK; }
static inline bool ax_fourier_is_back(ax_fourier_kind kind) { return kind == AX_FOURIER_BACKWARD || kind == AX_FOURIER_REAL_BACK; }

/* Lines up to this length are transformed several at once unless one is alone, longer ones only if there are many. */
enum { AX_FOURIER_SHORT = 4096 };

typedef struct ax_fourier_key { /* what a plan is made for */
  int64_t n;
  bool wide; /* f64; otherwise f32 */
  bool real; /* for the two kinds of real numbers */
  bool many; /* long lines are transformed several at once too; otherwise one by one, which has other bits */
  bool alone; /* short lines are transformed one by one too; otherwise several at once. Never together with `many` */
} ax_fourier_key;

typedef struct ax_fourier_job {
  ax_fourier_kind kind;
  int64_t n, s; /* the length; lines side by side */
} ax_fourier_job;

enum { AX_FOURIER_ENGINE_VERSION = 3 };

/* Functions may be called by several threads at once; a plan does not change once it is made. */
typedef struct ax_fourier_engine {
  uint32_t version;
  int64_t (*lines)(const ax_fourier_key *key); /* how many are transformed at once: a part of a job should have multiples of it */
  void *(*make)(const ax_fourier_key *key);    /* a plan; NULL: no memory */
  void (*free)(void *plan);
  int64_t (*bytes)(const void *plan); /* of a plan, roughly */
  int64_t (*work_bytes)(const void *plan); /* of the memory `work` of one `run`, aligned to 64 bytes */
  /* Transforms the lines begin .. end - 1. `to` may be `from` where both have complex numbers: some lines are read, and then written.
     False: no memory. */
  bool (*run)(const void *plan, const ax_fourier_job *job, int64_t begin, int64_t end, const void *from, void *to, void *work);
} ax_fourier_engine;

/* What the library exports: const ax_fourier_engine axle_fourier; */

#endif
