/* The caches as the compiler and the library's kernels see them, made of the machine's description (machine.h). Sizes decide how
   kernels are cut, grouped, compiled and prefetched; they never decide in which order numbers are added, for which algorithms have
   constants of their own (AX_SUMS_ constants below).

   The formulas were found on processors with these caches, and give there about the sizes that were measured:

                             line    first     second    third
     Sapphire Rapids class   64 B    48 KiB    2 MiB     1.9 MiB a core; a virtual machine of 2 cores is told 480 MiB
     Zen 4, Zen 5            64 B    32, 48    1 MiB     32 MiB for eight cores                                            */
#ifndef AX_MACHINE_CACHES_H
#define AX_MACHINE_CACHES_H

#include "machine/machine.h"

typedef struct ax_caches {
  /* --- The levels --- */
  int64_t first;  /* a core's first cache, less what it needs for all else: the power of two in it */
  int64_t second; /* a core's share of a second cache */
  int64_t last;   /* the last cache, which cores share. Virtual machines are told their host's, which others use too: at most 16
                     MiB a core are believed */
  int64_t shared; /* what lies in it beside all else */

  /* --- Thresholds: from these sizes on another way of doing the same is faster --- */
  /* A row that several kernels go over in turn (plan/rows_blocks.c); rows packed for all columns (product/product.c); the packed
     factors of one plan that few rows are multiplied with (plan/panels.c); what is read in short squares (jit/nest/squares.c). What
     is larger is in none of a core's caches, and not in its part of the last one, when the next kernel, column or line comes. */
  int64_t kept;
  /* An array whose long rows loops around a kernel prefetch (jit/emit/memory.c), and a factor whose product prefetches the next
     one's (product/product.h). To prefetch what a cache holds only costs. */
  int64_t far_rows;
  /* A right factor that few rows read in long runs (product/few.h). If a cache holds it, sums in registers are faster. */
  int64_t far_factor;
  /* A result that is stored past the caches (plan/stream.c): y = x + 1 took 0.5 to 0.85 of the time from here on. */
  int64_t streamed;
  /* The same for results that are read along other rows than they are written (plan/stream.c): each vector is a line of another
     row, and an ordinary store waits for it. Transposes took 0.4 to 0.8 of the time from here on. */
  int64_t streamed_turned;
} ax_caches;

/* This machine's. The pointer is valid for the process. */
const ax_caches *ax_caches_here(void);
ax_caches ax_caches_of(const ax_description *machine); /* of one whose facts of caches are known */
/* From now on this thread is told caches that are assumed, and speeds too (ax_rates_planned), whatever this machine has and
   AXLE_MACHINE gives: for plans of machines that are only described, which are the same wherever they are made. Returns whether
   that was so before, to be put back. */
bool ax_caches_assume(bool on);
bool ax_machine_is_described(void);                /* on this thread */
void ax_caches_forget(void);                       /* see ax_machine_pretend */

/* A line, as far as algorithms have it in the layout of what they pack, in the ends of tiles, and in steps of prefetching. Lines of
   other sizes are powers of two, so such lines divide them or are whole numbers of them. */
enum { AX_LINE_BYTES = 64 };

/* Sizes that decide in which order numbers are added. They are constants of these algorithms, since a result has the same bits on
   machines with equal instructions, whatever their caches. Each is about the size of a cache of the machines above. */
enum {
  AX_SUMS_NEAR_BYTES = 1 << 20,  /* sums over so much are made in another shape than longer ones (jit/nest) */
  AX_SUMS_SHARED_BYTES = 24 << 20, /* blocks of longer reductions read long runs (plan/cut.c) */
  AX_SUMS_STRANDS_BYTES = 40 << 20  /* points of a kernel that are computed at once, step by step, have so many values together
                                     (kernel/beside.c): attention by blocks of 128 takes 0.7 of the time with all points at once */
};

#endif
