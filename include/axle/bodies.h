/* Loops and branches with their bodies in place, as a block of C:

     ax_value x = in[0], total = ax_full(AX_F32, AX_DIMS(), 0);
     AX_LOOP (i, 0, 10, &x, &total) {
       x = ax_mul(x, 0.5);
       AX_IF (ax_gt(total, 1), &total) total = ax_mul(total, 2);
       total = ax_add(total, ax_reduce_sum(x, AX_ALL_DIMS, false));
     }
     out[0] = total;

   They are equal to ax_fori_loop, ax_scan, ax_while and ax_if (axle/ops.h), and make the same programs; no function and no
   context is written.
   Functions remain for bodies that are used in several places, and for ax_shard_map, ax_vmap and ax_grad; blocks may stand in such
   functions. Blocks stand in one another, in loops of C and in bodies of kernels as well.

   Variables. The head ends with the addresses of the variables that the block sets: &x, &state.w, &h[k]; there may be none.
   In a loop they are its carries: at the top of the block they hold what the round before left, and after the loop what the
   last round left. In a branch they are its results. All other values that the block uses keep their value from before. A variable
   that is set in the block, not listed, and used in the next round or after the block is an error that names the block.

   Running the block. The library runs a loop's block at least twice while it traces, and the runs must make the same equations. So
   it finds a C variable that a round changes and that the program depends on (`ax_mul(x, k++)`), and a variable that should be a
   carry. Both blocks of a branch are run. So C's own effects (printf, malloc, a[n++]) have no place in a block.
   A block is run to its end: break, return, goto, longjmp and exceptions out of it are an error of the trace. `continue` ends a
   round, as in C. In the block of AX_IF it ends that block alone, and the code after AX_IF is run.

   Errors are kept by the trace, as those of operations; they name the line of the head, and the variable. They are those of
   the functions, and those said here. In C the macros use __attribute__((cleanup)) of gcc and clang, in C++ a destructor. */
#ifndef AXLE_BODIES_H
#define AXLE_BODIES_H

#include "axle/line.h"
#include "axle/program.h"

#pragma GCC system_header /* errors in its macros are shown at the line that uses them; what it includes is no such header */

/* AX_LOOP (i, lower, upper, &x, ..) { .. }       as jax.lax.fori_loop
   For each index i from lower to below upper. i: a const ax_value that the macro declares, an integer scalar. If both bounds
   are C numbers, or values made of scalar constants, the loop becomes a scan, and all derivatives work. Otherwise the bounds are
   integer scalars of one dtype, or one of them a number, and the loop becomes a while, which has forward derivatives only. See
   ax_fori_loop. */
#define AX_LOOP(i, lower, ...) AX_LOOP_(AX_BLOCK_NAME, i, lower, #__VA_ARGS__, __VA_ARGS__)

/* AX_SCAN (x, xs, &h, ..) { .. }                 as jax.lax.scan
   For each slice x of xs along dimension 0; x: a const ax_value that the macro declares. AX_SCAN_REVERSED begins with the last.
   In such a block, and in AX_LOOP's where it becomes a scan:
     ax_each(ys)        the slice of another array: T[n,d..] -> T[d..], n being the number of rounds; ys is made outside of the
                        block
     ax_collect(&z, y)  stacks what the rounds give: after the loop z is T[n,d..], the y of each round along dimension 0, in the
                        order of the slices. y: T[d..]. It stands in the block itself, once for each z; z holds nothing before
                        the loop's end */
#define AX_SCAN(x, ...) AX_SCAN_(AX_BLOCK_NAME, x, "AX_SCAN", false, #__VA_ARGS__, __VA_ARGS__)
#define AX_SCAN_REVERSED(x, ...) AX_SCAN_(AX_BLOCK_NAME, x, "AX_SCAN_REVERSED", true, #__VA_ARGS__, __VA_ARGS__)

/* AX_WHILE (condition, &x, ..) { .. }            as jax.lax.while_loop
   Repeats the block as long as the condition holds. condition: an expression of the variables and any other values that gives a
   bool scalar; it is traced before each round. See ax_while. */
#define AX_WHILE(...) AX_WHILE_(AX_BLOCK_NAME, #__VA_ARGS__, __VA_ARGS__)

/* AX_IF (predicate, &x, ..) { .. } AX_ELSE { .. }          as jax.lax.cond
   Runs the first block where the predicate, a bool scalar, holds, and the second where it does not. Without AX_ELSE the variables
   keep what they hold. A variable that both blocks set need not hold anything before. AX_ELSE AX_IF (..) { .. } goes on: the first
   lists what any of them sets. See ax_if. */
#define AX_IF(...) AX_IF_(AX_BLOCK_NAME, #__VA_ARGS__, __VA_ARGS__)
#define AX_ELSE else

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default) /* all else is hidden in the library */

ax_value ax_each(ax_value xs);
void ax_collect(ax_value *stacked, ax_value y);

/* For the macros only; do not call these. A block under way; a plain value, on the caller's stack. */
typedef enum ax_block_stage { AX_BLOCK_BEGUN, AX_BLOCK_ENTERED, AX_BLOCK_ENDED } ax_block_stage; /* of a run */
typedef struct ax_code_block {
  void *inside;    /* NULL: nothing is under way */
  uint64_t around; /* the trace that it stands in */
  ax_value index;  /* the value that the head declares */
  bool then;       /* AX_IF: the block that runs now is that of a predicate that holds */
  ax_block_stage stage;
} ax_code_block;
/* call: "prog.c:12: AX_LOOP"; listed: the head's text from the argument before the variables on; both static. frame: of the
   function that the block stands in. variables: up to a NULL. */
ax_code_block ax_loop_block(const char *call, const char *listed, const void *frame, ax_value *const *variables, ax_value lower,
                            ax_value upper);
ax_code_block ax_scan_block(const char *call, const char *listed, const void *frame, ax_value *const *variables, ax_value xs,
                            bool reverse);
ax_code_block ax_while_block(const char *call, const char *listed, const void *frame, ax_value *const *variables);
ax_code_block ax_if_block(const char *call, const char *listed, const void *frame, ax_value *const *variables, ax_value predicate);
bool ax_block_next(ax_code_block *block); /* ends a run of the block and begins the next; false: there is none */
bool ax_block_enter(ax_code_block *block, const void *declared); /* true once in each run */
bool ax_block_test(ax_code_block *block, ax_value condition);
void ax_block_left(ax_code_block *block); /* C leaves the block's scope, by its end or otherwise */

#pragma GCC visibility pop

#ifndef AXLE_NO_LINES /* axle/line.h */
#define ax_each(...) AX_LINED(each, __VA_ARGS__)
#define ax_collect(...) AX_LINED_VOID(collect, __VA_ARGS__)
#endif

#ifdef __cplusplus
}
#endif

#include "axle/inside/block.h"

#endif
