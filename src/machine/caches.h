/* The caches as the compiler and the library's kernels see them. All sizes are constants, because they decide how kernels are cut,
   grouped and compiled: with sizes asked from the machine, one program would have another plan and other machine code on every
   machine. They were measured on the processors of docs/performance.md, which have these caches:

                             line    first     second    third, shared
     Sapphire Rapids class   64 B    48 KiB    2 MiB     1.9 MiB a core, 100 MiB and more in all
     Zen 5                   64 B    48 KiB    1 MiB     32 MiB for eight cores                                       */
#ifndef AX_MACHINE_CACHES_H
#define AX_MACHINE_CACHES_H

/* --- The levels, by sizes that every processor met so far has --- */
enum {
  AX_LINE_BYTES = 64,
  AX_FIRST_LEVEL_BYTES = 32 << 10, /* a core's first cache, less what it needs for all else */
  AX_SECOND_LEVEL_BYTES = 1 << 20, /* a core's second cache where it is smallest: 0.005 ns a byte (plan/cut.c) */
  AX_NEAR_LEVELS_BYTES = 2 << 20,  /* and where it is largest: more never lies near a core */
  AX_SHARED_LEVEL_BYTES = 24 << 20 /* the cache that cores share: 0.01 ns a byte; memory takes 0.02 */
};

/* --- Thresholds: measured sizes from which another way of doing the same is faster. No level has them. --- */
enum {
  /* A row that several kernels go over in turn (plan/rows_blocks.c), and rows packed for all columns (product/product.c): more is
     in no cache when the next kernel, or the next column, comes. */
  AX_KEPT_BYTES = 4 << 20,
  /* The packed factors of one plan that few rows are multiplied with (plan/panels.c): the caches hold so many. */
  AX_KEPT_FACTORS_BYTES = 5 << 20,
  /* An array whose long rows loops around a kernel prefetch (jit/emit/memory.c): no caches near a core hold it. */
  AX_FAR_ROWS_BYTES = 12 << 20,
  /* A right factor that few rows read in long runs (product/few.h). If a cache holds it, sums in registers are faster. */
  AX_FAR_FACTOR_BYTES = 16 << 20,
  /* A result that is stored past the caches (plan/stream.c): y = x + 1 took 0.5 to 0.85 of the time from here on. */
  AX_STREAMED_BYTES = 32 << 20
};

#endif
