/* Programs made at random to be well typed: each operation is one that the operands' types (ax_typeof) allow.

   A value is held twice where it may be unreduced: `own` is what the program under test computes; `whole` is computed by the same
   operations from what the parts come to, made where they become parts. So what the parts of `own` come to and `whole` are one
   value; of values that are in no axis unreduced, `own` and `whole` are. Rounding apart: in s32 they are the same bits. */
#ifndef AX_TESTS_SUPPORT_TYPED_H
#define AX_TESTS_SUPPORT_TYPED_H

#include "axle/collectives.h"
#include "axle/ops.h"
#include "support/random.h"

enum { TYPED_LENGTH = 24, TYPED_MOST = 80, TYPED_FUTURES = 4 };

typedef struct typed_held {
  ax_value own, whole;
} typed_held;

typedef struct typed_maker typed_maker;
/* What is done wrong in place of one step, when `countdown` comes to 0. */
typedef struct typed_slip {
  int64_t countdown;
  bool made;
  bool (*make)(typed_maker *maker, void *context); /* false: it cannot be done wrong here; the step after will do */
  void *context;
} typed_slip;

struct typed_maker {
  test_random random;
  ax_mesh mesh;
  ax_dtype dtype; /* AX_S32 or AX_F32, of all values: [TYPED_LENGTH] */
  int depth;      /* of regions still allowed */
  ax_axis_set apart; /* axes along which devices may be in different places: nothing is exchanged along them */
  bool unreduced; /* values are held twice, and are reduced and unreduced too */
  bool messages;  /* are sent too: whether they are received is nothing that types say */
  bool smooth;    /* what is made is differentiated: nothing has kinks, and there is no while */
  bool heedless;  /* of what `apart` says, and of how carries and branches are unreduced */
  bool started;   /* inside an expression of ax_start */
  const char *mapped; /* the axis of a vmap around, or NULL */
  uint32_t count, future_count;
  typed_held pool[TYPED_MOST], future[TYPED_FUTURES];
  ax_value scalar[2]; /* s32[] */
  typed_slip *slip; /* NULL: none */
};

int64_t typed_below(typed_maker *m, int64_t n);
void typed_hold(typed_maker *m, ax_value own, ax_value whole);
/* Appends to the pool. */
void typed_steps(typed_maker *m, int count);
void typed_end_futures(typed_maker *m);
/* A value that is not unreduced over any of these axes. */
typed_held typed_some(typed_maker *m, ax_axis_set not_unreduced);
/* The names of a set, "a,b", in this order; `text` has TYPED_TEXT bytes. */
enum { TYPED_TEXT = 256 };
const char *typed_names(const typed_maker *m, ax_axis_set set, char *text);
/* A set of axes along which something may be exchanged, 0 where there is none. */
ax_axis_set typed_axes(typed_maker *m, ax_axis_set of);
/* x made to vary along these, none of which it is unreduced along. */
ax_value typed_vary(const typed_maker *m, ax_value x, ax_axis_set set);
ax_value typed_combined(const typed_maker *m, ax_value x); /* the value of the parts, if it has parts */
/* An s32 scalar, 0 to 3, that varies along none of `not_varying`. */
ax_value typed_index(typed_maker *m, ax_axis_set not_varying);
ax_value typed_rolled(ax_value x, int64_t by);

/* A step that takes any values for anything. Where the types allow it all the same, what holds of other steps holds of it. */
void typed_reckless(typed_maker *m);

/* --- typed_regions.c --- */
void typed_region(typed_maker *m);

/* --- typed_program.c --- */
enum { TYPED_INPUTS = 8 };
typedef struct typed_making {
  typed_maker maker;
  ax_type in[TYPED_INPUTS]; /* arrays, and two scalars last */
  uint32_t in_count;
  bool everything;
} typed_making;
/* A mesh of 2 to 8 devices, a dtype and whether values are held twice, as the seed says. */
typed_making typed_making_of(uint64_t seed);
/* A program for each device. everything: results 3k are the values made last, 3k + 1 what their parts come to, 3k + 2 the whole;
   otherwise a few values, each device's own. */
AX_MUST_USE ax_status typed_trace(typed_making *made, bool everything, ax_program **out);
/* Fails the test unless it runs on all devices, what is typed to be the same on some is the same bits, and, if `twice`, results 3k
   + 1 and 3k + 2 agree. */
/* damaged: somebody changed it, so that the slices of a ragged exchange need not fit any more, which is an error of their
   values. */
void typed_check(const ax_program *program, uint64_t seed, bool twice, bool damaged);

#endif
