/* The floating-point environment of a thread that computes: rounding to nearest, no traps, and subnormal numbers kept or flushed
   (arithmetic reads them as zero and gives zero for them). The caller's thread may have another one. Results must depend neither on
   it nor on the thread that computes them, and the caller gets its own back afterwards.

   x86-64: MXCSR's FTZ and DAZ. AArch64: FPCR's FZ. Other processors have no such mode that we know of: there subnormal numbers are
   kept either way. */
#ifndef AX_MACHINE_FLOAT_MODE_H
#define AX_MACHINE_FLOAT_MODE_H

#include <stdbool.h>

#if defined(__x86_64__)

typedef struct ax_float_mode {
  unsigned sse;
  unsigned short x87;
} ax_float_mode;

/* Returns the mode that the thread had. */
static inline ax_float_mode ax_float_mode_enter(bool flush) {
  const unsigned sse = flush ? 0x9fc0 : 0x1f80, flags = 0x3f;
  const unsigned short x87 = 0x037f;
  ax_float_mode caller;
  caller.sse = __builtin_ia32_stmxcsr();
  __asm__ volatile("fnstcw %0" : "=m"(caller.x87));
  if ((caller.sse & ~flags) != sse) __builtin_ia32_ldmxcsr(sse);
  if (caller.x87 != x87) __asm__ volatile("fldcw %0" : : "m"(x87));
  return caller;
}

/* Says whether arithmetic on this thread reads subnormal numbers as zero and gives zero for them. */
static inline bool ax_float_mode_flushes(void) {
  const unsigned both = 0x8040; /* FTZ, DAZ */
  return (__builtin_ia32_stmxcsr() & both) == both;
}

static inline void ax_float_mode_leave(ax_float_mode caller) {
  __builtin_ia32_ldmxcsr(caller.sse); /* with the flags it had */
  if (caller.x87 != 0x037f) __asm__ volatile("fldcw %0" : : "m"(caller.x87));
}

#else

#include <fenv.h>
#include <stdint.h>

typedef fenv_t ax_float_mode;

static inline ax_float_mode ax_float_mode_enter(bool flush) {
  ax_float_mode caller;
  fegetenv(&caller);
  fesetenv(FE_DFL_ENV);
#if defined(__aarch64__)
  uint64_t control;
  __asm__ volatile("mrs %0, fpcr" : "=r"(control));
  control = flush ? control | 1u << 24 : control & ~(uint64_t)(1u << 24);
  __asm__ volatile("msr fpcr, %0" : : "r"(control));
#else
  (void)flush;
#endif
  return caller;
}

/* Without a way to ask, subnormal numbers count as kept. */
static inline bool ax_float_mode_flushes(void) {
  uint64_t control = 0;
#if defined(__aarch64__)
  __asm__ volatile("mrs %0, fpcr" : "=r"(control));
#endif
  return (control >> 24 & 1) != 0;
}

static inline void ax_float_mode_leave(ax_float_mode caller) { fesetenv(&caller); }

#endif

#endif
