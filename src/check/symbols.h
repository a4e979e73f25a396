/* Integers that depend on inputs, as symbols: what is the same for all inputs, how far apart two of them are, and between which
   bounds each lies. */
#ifndef AX_CHECK_SYMBOLS_H
#define AX_CHECK_SYMBOLS_H

#include "prim/intervals.h"

typedef enum ax_symbol_kind { /* what a name's key is of */
                              AX_SYMBOL_FRESH,
                              AX_SYMBOL_MADE,  /* a result of an equation */
                              AX_SYMBOL_TAKEN, /* an element of an array, at an index that depends on inputs */
                              AX_SYMBOL_LOADED /* an element of memory */
} ax_symbol_kind;

typedef struct ax_symbols ax_symbols; /* numbers with an id each: the same id means the same number for each input */
AX_MUST_USE ax_status ax_symbols_create(ax_symbols **out);
void ax_symbols_release(ax_symbols *symbols);

AX_MUST_USE ax_status ax_symbols_constant(ax_symbols *symbols, ax_dtype dtype, int64_t value, uint32_t *out);
/* A number of which nothing is known but its bounds. The same key gives the same number. The key's first word is an
   ax_symbol_kind. */
AX_MUST_USE ax_status ax_symbols_named(ax_symbols *symbols, ax_dtype dtype, ax_interval range, uint32_t count, const uint64_t *key,
                                       uint32_t *out);
/* One that is like no other. */
AX_MUST_USE ax_status ax_symbols_fresh(ax_symbols *symbols, ax_dtype dtype, ax_interval range, uint32_t *out);
uint64_t ax_symbols_serial(ax_symbols *symbols); /* another number each time, for keys; at least 1 */
/* What an elementwise equation makes of numbers. */
AX_MUST_USE ax_status ax_symbols_apply(ax_symbols *symbols, const ax_eqn *eqn, const uint32_t *in, ax_dtype dtype, uint32_t *out);

ax_interval ax_symbols_range(const ax_symbols *symbols, uint32_t id);
ax_dtype ax_symbols_dtype(const ax_symbols *symbols, uint32_t id);
/* The primitive that made the number from one or two others, `in`; NULL: none that is known. */
const ax_prim *ax_symbols_maker(const ax_symbols *symbols, uint32_t id, uint32_t in[2]);
/* The number is `part` + *constant, modulo 2^bits of its dtype; numbers that differ by constants have one `part`. *constant is between
   -2^30 and 2^30. */
AX_MUST_USE ax_status ax_symbols_split(ax_symbols *symbols, uint32_t id, uint32_t *part, int64_t *constant);

/* The number is a multiple of 2^*bits and *rest, whatever the inputs: also where sums wrap. *bits is at most 30. */
void ax_symbols_multiple(const ax_symbols *symbols, uint32_t id, uint32_t *bits, int64_t *rest);

/* The number is the sum of others with factors, and of a constant, modulo 2^bits of its dtype; these are between -2^(bits-1) and
   2^(bits-1). */
enum { AX_SYMBOLS_TERMS = 16 };
typedef struct ax_symbols_terms {
  int64_t constant, factor[AX_SYMBOLS_TERMS];
  uint32_t count, number[AX_SYMBOLS_TERMS];
} ax_symbols_terms;
void ax_symbols_sum(const ax_symbols *symbols, uint32_t id, ax_symbols_terms *out);

typedef struct ax_guard { /* a number is within bounds where a predicate holds */
  uint32_t number;
  ax_interval range;
} ax_guard;
enum { AX_MOST_GUARDS = 16 };
/* Appends what a predicate, or an integer that is one, says of numbers where it is true, or false; no more than there is room for. */
void ax_symbols_guard(const ax_symbols *symbols, uint32_t predicate, bool truth, ax_guard *guards, uint32_t *count);
/* Bounds of a number where the guards hold; empty: they never do. */
AX_MUST_USE ax_status ax_symbols_guarded(ax_symbols *symbols, uint32_t id, const ax_guard *guards, uint32_t count,
                                         ax_interval *out);

#endif
