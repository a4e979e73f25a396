/* Helpers shared by the transforms. */
#ifndef AX_XFORM_XFORM_H
#define AX_XFORM_XFORM_H

#include "ir/memo.h"
#include "ir/transform.h"

/* --- Walking a program, equation by equation, into the current builder --- */

typedef struct ax_program_walk {
  ax_arena arena; /* scratch that lives as long as the walk */
  const ax_program *program;
  ax_value *value; /* by value id: its handle in the current trace */
  ax_value *in;    /* room for the operands of any equation */
  uint32_t most;   /* the largest number of operands or results of an equation */
} ax_program_walk;
/* False: no memory; the trace has failed. Call ax_walk_deinit in either case. */
bool ax_walk_init(ax_program_walk *walk, const ax_program *program);
void ax_walk_deinit(ax_program_walk *walk);
void *ax_walk_alloc(ax_program_walk *walk, size_t bytes); /* cleared; NULL: the trace has failed */
/* The handles of an equation's operands, valid until the next call. Equations that are built next count as made from this
   equation. */
const ax_value *ax_walk_operands(ax_program_walk *walk, const ax_eqn *eqn);
/* Copies the equation, applied to the walk's values. */
void ax_walk_replay(ax_program_walk *walk, const ax_eqn *eqn);

/* --- Transforms within transforms: each made once --- */

/* Gives the transform in progress a memo: that of the transform around it, or `own`, which starts as zero and whose owner calls
   ax_memo_deinit once the builder is finished. */
void ax_memo_enter(ax_builder *builder, ax_memo *own);
/* Finds the transform's entry for a question about `program`. `key` has the rest of the question (ir/memo.h) and is freed. *entry
   NULL: no transform is in progress, so the answer is not kept. */
AX_MUST_USE ax_status ax_memo_find(const char *question, const ax_program *program, ax_text *key, ax_memo_entry **entry);

/* --- Needed values: needs.c --- */

/* The part of an equation with programs that is needed: which operands and results, and, if params is not NULL, the parameters of
   the equation reduced to them. */
typedef struct ax_needed {
  void *params;
  bool *in, *out;
} ax_needed;
/* Says in *any whether the equation is needed for the values marked in needed[]. If so, it also marks the values that the equation
   needs. For an equation that holds programs it fills in *of, whose `in` and `out` must have room for the operands and results. */
AX_MUST_USE ax_status ax_need_eqn(ax_memo *memo, const ax_eqn *eqn, bool *needed, ax_needed *of, bool *any);

/* The end of every pass: in debug builds the verifier checks the program made. */
AX_MUST_USE ax_status ax_verified(ax_status status, ax_program **made);
/* Ends the trace as ax_builder_finish does, and removes values that are not used. */
AX_MUST_USE ax_status ax_finish_clean(ax_builder *builder, const ax_value *outs, uint32_t out_count, ax_program **out);
/* Checks that a rule's value has the wanted dtype, shape and axis sets. Otherwise the trace fails with AX_INTERNAL, which names the
   equation and `rule`. */
bool ax_check_rule(const ax_eqn *eqn, const char *rule, ax_value made, const ax_type *wanted);
/* AX_INVALID_ARGUMENT: an input that derivatives are taken by is no float. wrt NULL: all float inputs. */
AX_MUST_USE ax_status ax_check_wrt(const ax_program *program, const bool *wrt);
/* A mask of the inputs that are in wrt; AX_ALL_ARGS: of all floats. Owned by the caller: ax_free. AX_INVALID_ARGUMENT: as
   ax_args_mask. */
AX_MUST_USE ax_status ax_wrt_mask(const ax_program *program, ax_args wrt, bool **out);
/* Says whether input i has a tangent. */
bool ax_has_tangent(const ax_program *program, const bool *wrt, uint32_t i);

/* AX_INVALID_ARGUMENT: the first result is no float scalar, so it has no gradient. */
AX_MUST_USE ax_status ax_check_loss(const ax_program *program);

/* Says that a region's linearize and transpose rules keep messages in order: closed_call, shard_map, scan, cond. Both
   sides of a link go through a loop's steps backwards, and take the branches again that they took. */
bool ax_reverses_messages(const ax_eqn *eqn);

/* jvp.c: ax_jvp_program, by the `linearize` rules or by the `jvp` rules. */
AX_MUST_USE ax_status ax_differentiate(const ax_program *program, const bool *wrt, const ax_want *want, bool linearize,
                                       ax_program **out);

/* As ax_memo_find, with `more`, bytes that belong to the question too. */
AX_MUST_USE ax_status ax_find_tangents(const char *question, const ax_program *program, const bool *wrt, const ax_want *want,
                                       const void *more, size_t bytes, ax_memo_entry **entry);

/* --- residuals.c: the values that a linearized program computes again instead of keeping them. --- */

typedef struct ax_residuals {
  const ax_program *joint;
  const bool *held;    /* by input: the value is kept in any case */
  const bool *known;   /* by equation: both halves may contain it */
  const bool *again;   /* by equation: the tangent half contains it in any case */
  const bool *fixed;   /* by value: the value depends on no input */
  bool *needed;        /* by value: the tangent half uses it; updated */
  bool *more;          /* by equation: to be computed again too if its result is needed; filled in */
} ax_residuals;
AX_MUST_USE ax_status ax_choose_residuals(ax_residuals *residuals);
/* The bytes of a value, summed over the devices that hold a value of their own. */
double ax_value_weight(const ax_program *program, uint32_t id);

#endif
