/* The choice of values that are computed again instead of kept: the residuals of loops (xform/residuals.c), and the values that a
   plan holds for long (plan/recompute.c).

   In a chain of cheap computations, later ones often use every link. It is enough to keep some links and to make the others again
   from them. A value's *bases* are the kept values that it is made of in the end, through values that need not be kept or are made
   again themselves. The choice is two walks forward over all values, in the order in which they are made. The first adds up for
   each base how much could be made of it if it alone were kept in addition (its gain). The second decides: a value is made again
   if its bases are kept anyway, are much smaller than it is, or gain more than they weigh. All other values are kept, and become
   bases.

   The time is in proportion to the values, since the bases and the work of each are bounded. */
#ifndef AX_IR_REMAKE_H
#define AX_IR_REMAKE_H

#include "base/base.h"

enum { AX_REMAKE_BASES = 6 };

typedef struct ax_remade { /* a value; the caller sets the first line */
  bool makeable, wanted;   /* it can be made again; it is to be kept if it is not made again */
  bool again, opaque;      /* it is made again; values made of it take it as it is, not its bases */
  uint32_t work, base_count, bases[AX_REMAKE_BASES];
  double gain;             /* bytes of values that could be made again if it were kept */
} ax_remade;

typedef struct ax_remaking {
  uint32_t most_work; /* of all that is made again for one value */
  bool decided;       /* second walk: it is known which values before the one at hand are made again; otherwise they are bases */
  ax_remade *(*value)(void *context, uint32_t id);
  double (*weight)(void *context, uint32_t id);              /* bytes */
  bool (*is_kept)(void *context, uint32_t base, uint32_t id); /* the base is there anyway when `id` would be made of it */
  void (*keep)(void *context, uint32_t base, uint32_t id);    /* keeps the base, since `id` is made of it */
  void *context;
} ax_remaking;

/* Begins to find the bases of a value; `work` is its own. False: that is too much, and it is opaque. */
bool ax_remake_begin(const ax_remaking *r, ax_remade *value, uint32_t work);
/* Adds an operand that may have to be kept. False: the value has too many bases or takes too much work, and is opaque. */
bool ax_remake_operand(const ax_remaking *r, ax_remade *value, uint32_t operand);
/* Whether values made of this one have its bases as theirs. */
bool ax_remake_sees_through(const ax_remaking *r, const ax_remade *value);
/* When its bases have been found: the first walk adds it to the gain of the base that it lacks, the second decides on it. */
void ax_remake_decide(const ax_remaking *r, uint32_t id);

#endif
