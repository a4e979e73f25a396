/* One operation's use of an allocation in a group (rows.c): the bytes that it touches of row 0, and the distance to the next
   row. */
#ifndef AX_PLAN_ROWS_USE_H
#define AX_PLAN_ROWS_USE_H

#include "plan/plan.h"

typedef struct ax_rows_use {
  uint32_t allocation, members; /* members: those that touch it, a bit each */
  uint32_t loop;         /* of the views by which it is touched */
  int64_t loop_step;
  int64_t row, outer;    /* bytes from row to row, and from one outer index to the next */
  int64_t low, high;     /* bytes of row 0 between which it is touched, */
  int64_t touched;       /* and how many of them are at most: rows may lie far apart */
  uint32_t touches;
  uint32_t last;         /* the member that came to it last: bytes of row 0 between which that touches it, and how many at most */
  int64_t last_low, last_high, last_touched;
  int64_t most;          /* bytes that one member touches, at most, of the member with most of them */
  bool written, irregular; /* irregular: members touch it at different distances, or at unknown places */
} ax_rows_use;

/* The use by one access of a kernel whose dimension `dim` is the rows; of a load with a guard where that holds. False: the kernel
   should not be walked by these rows. */
bool ax_rows_use_of_load(const ax_plan *plan, const ax_bound *kernel, const ax_expr *load, uint32_t dim, ax_rows_use *out);
bool ax_rows_use_of_store(const ax_plan *plan, const ax_bound *kernel, const ax_store *store, uint32_t dim, ax_rows_use *out);
/* The use by an operand of a product. */
ax_rows_use ax_rows_use_of_product(const ax_plan *plan, const ax_gemm *product, uint32_t index);

#endif
