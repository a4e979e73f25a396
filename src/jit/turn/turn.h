/* Rows that become columns. Kernels that only move elements call these functions (jit/emit/turned.c), which are compiled ahead:
   unrolled shuffles would take most of the time to compile a kernel.

     turn.c              finds them, by this machine's registers
     turn_template.h     the functions, for registers of one width
     turn_16.c, turn_32.c    them, for any processor and for AVX2 */
#ifndef AX_JIT_TURN_H
#define AX_JIT_TURN_H

#include <stdbool.h>
#include <stdint.h>

/* The beginning of row r, or column c: r * pitch, and after each `inner` of them `uneven` more, if `inner` is not 0. */
typedef struct ax_turn_steps {
  int64_t pitch, inner, uneven;
} ax_turn_steps;

/* Element (r, c) goes from `from` + row r + c * its bytes to `to` + column c + r * its bytes. Distances are in bytes. Generated
   code fills this structure in: each field has 8 bytes. */
typedef struct ax_turn {
  char *to;
  const char *from;
  int64_t row, row_end, column, column_end; /* which are moved */
  int64_t columns;                          /* of a row: 16 bytes of it at least; those that are not moved may be read */
  ax_turn_steps row_steps, column_steps;
} ax_turn;
enum { AX_TURN_WORDS = sizeof(ax_turn) / 8 };

typedef void ax_turn_function(const ax_turn *turn);

/* For elements of 1, 2, 4 or 8 bytes. `streams`: whole lines are stored past the caches, and a fence must follow, before other
   threads hear that it is done. NULL: there is none. */
ax_turn_function *ax_turn_of(uint32_t bytes, bool streams);

/* By what generated code calls it. NULL: it is no such name. */
enum { AX_TURN_NAME = 32 };
void ax_turn_name(uint32_t bytes, bool streams, char name[static AX_TURN_NAME]);
ax_turn_function *ax_turn_find(const char *name);

typedef ax_turn_function *const ax_turn_table[4][2]; /* by bytes, 1, 2, 4, 8; by whether they stream */
extern const ax_turn_table ax_turn_16, ax_turn_32;   /* 32: all NULL where the compiler makes no such code */

#endif
