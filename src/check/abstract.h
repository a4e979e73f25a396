/* What is known of a kernel's values for all inputs: all of it, each integer as a symbol, or bounds. */
#ifndef AX_CHECK_ABSTRACT_H
#define AX_CHECK_ABSTRACT_H

#include "check/symbols.h"
#include "kernel/machine/state.h"

typedef struct ax_shift { /* a start that depends on inputs: the view begins `stride` bytes further for each 1 of it */
  int64_t stride;
  uint32_t part; /* the start is this number + constant (ax_symbols_split), and within bounds */
  int64_t constant, low, high;
  uint32_t bits; /* it is `low` and a multiple of 2^bits, as is `high` */
} ax_shift;

enum { AX_MOST_SHIFTS = 4, AX_MOST_SYMBOLS = 1 << 16 /* elements of one array */ };

/* A value of a core, never changed once it is made. Of arrays the first of these that there is: */
typedef struct ax_abstract {
  uint32_t references;
  bool is_view;
  ax_tensor *tensor;               /* the value itself, for all inputs */
  uint32_t *ids;                   /* a symbol for each element */
  uint64_t serial;                 /* of ids: of this array alone */
  uint64_t count;                  /* of elements */
  ax_interval range;               /* of all of them */
  ax_view view;                    /* where all starts that depend on inputs are 0 .. */
  ax_shift shifts[AX_MOST_SHIFTS]; /* .. and those starts */
  uint32_t shift_count;
  bool nowhere; /* the view is out of bounds for all inputs */
} ax_abstract;

ax_abstract *ax_abstract_retain(ax_abstract *value);
void ax_abstract_release(ax_abstract *value); /* NULL is allowed */
/* Of an array within the range. */
AX_MUST_USE ax_status ax_abstract_range(uint64_t count, ax_interval range, ax_abstract **out);
AX_MUST_USE ax_status ax_abstract_tensor(const ax_tensor *tensor, ax_abstract **out); /* which is copied */
AX_MUST_USE ax_status ax_abstract_own(ax_tensor *tensor, ax_abstract **out);          /* which is consumed, unless it fails */
/* ids: unset. */
AX_MUST_USE ax_status ax_abstract_ids(ax_symbols *symbols, uint64_t count, ax_abstract **out);
AX_MUST_USE ax_status ax_abstract_view(const ax_view *view, ax_abstract **out);
/* Where ids are all constants, the value itself. Consumes *value. */
AX_MUST_USE ax_status ax_abstract_settle(const ax_symbols *symbols, const ax_type *type, ax_abstract **value);
bool ax_abstract_has_ids(const ax_abstract *value, ax_dtype dtype); /* a symbol can be given for each element */
AX_MUST_USE ax_status ax_abstract_id(ax_symbols *symbols, const ax_abstract *value, ax_dtype dtype, uint64_t element,
                                     uint32_t *out);
ax_interval ax_abstract_bounds(const ax_symbols *symbols, const ax_abstract *value);
/* What is known of a value that is one of the two; NULL: two views, so that it must not be used. */
AX_MUST_USE ax_status ax_abstract_join(ax_symbols *symbols, const ax_type *type, ax_abstract *a, ax_abstract *b, ax_abstract **out);

typedef struct ax_abstract_site { /* where values are computed */
  ax_symbols *symbols;
  const ax_machine *machine;
  const ax_core *core;
  const ax_core_code *code;
} ax_abstract_site;
/* The results of an equation of a core's code. */
AX_MUST_USE ax_status ax_abstract_eval(const ax_abstract_site *site, const ax_core_code_step *step, ax_abstract *const *in,
                                       ax_abstract **out);

#endif
