/* What the transforms share. */
#ifndef AX_XFORM_XFORM_H
#define AX_XFORM_XFORM_H

#include "ir/memo.h"
#include "ir/transform.h"

/* --- Walking a program, equation by equation, into the builder that is current --- */

typedef struct ax_program_walk {
  ax_arena arena; /* scratch, for the time of the walk */
  const ax_program *program;
  ax_value *value; /* by value id: its handle in the current trace */
  ax_value *in;    /* room for the operands of any one equation */
  uint32_t most;   /* the most operands or results an equation has */
} ax_program_walk;
/* False without memory: the trace has failed. ax_walk_deinit in any case. */
bool ax_walk_init(ax_program_walk *walk, const ax_program *program);
void ax_walk_deinit(ax_program_walk *walk);
void *ax_walk_alloc(ax_program_walk *walk, size_t bytes); /* cleared; NULL: the trace has failed */
/* The handles of an equation's operands, until the next call; what is built next stems from it. */
const ax_value *ax_walk_operands(ax_program_walk *walk, const ax_eqn *eqn);
/* The equation as it is, on the walk's values. */
void ax_walk_replay(ax_program_walk *walk, const ax_eqn *eqn);

/* --- Transforms within transforms: made once --- */

/* The transform in progress has a memo from here on: that of the transform around it, or `own` (zero to start), which its owner
   ends with ax_memo_deinit once the builder is finished. */
void ax_memo_enter(ax_builder *builder, ax_memo *own);
/* The transform's entry for a question about `program`; `key` says the rest of it (ir/memo.h) and is freed. *entry NULL: there is
   no transform in progress, and the answer is not kept. */
AX_MUST_USE ax_status ax_memo_find(const char *question, const ax_program *program, ax_text *key, ax_memo_entry **entry);

/* --- What is needed: needs.c --- */

/* Of an equation that holds programs: which operands and results are needed; and, when params is not NULL, the parameters of the
   equation that is left. */
typedef struct ax_needed {
  void *params;
  bool *in, *out;
} ax_needed;
/* *any says whether the equation is needed for the values marked in needed[]. If so, the values that it needs are marked there too;
   and if it holds programs, *of is filled in, whose `in` and `out` have room for its operands and results. */
AX_MUST_USE ax_status ax_need_eqn(ax_memo *memo, const ax_eqn *eqn, bool *needed, ax_needed *of, bool *any);

/* What every pass ends with: in debug builds the verifier looks at what it made. */
AX_MUST_USE ax_status ax_verified(ax_status status, ax_program **made);
/* Ends the trace as ax_builder_finish does, and removes what nobody uses. */
AX_MUST_USE ax_status ax_finish_clean(ax_builder *builder, const ax_value *outs, uint32_t out_count, ax_program **out);
/* Same dtype, shape and axis sets; otherwise the trace fails with AX_INTERNAL: `rule` of this equation is wrong. */
bool ax_check_rule(const ax_eqn *eqn, const char *rule, ax_value made, const ax_type *wanted);
/* AX_INVALID_ARGUMENT: an input that is to have a tangent is no float. wrt NULL: all float inputs. */
AX_MUST_USE ax_status ax_check_wrt(const ax_program *program, const bool *wrt);
/* By input, whether it is one of wrt, of which AX_ALL_ARGS are the floats. Owned by the caller: ax_free. AX_INVALID_ARGUMENT: as
   ax_args_mask. */
AX_MUST_USE ax_status ax_wrt_mask(const ax_program *program, ax_args wrt, bool **out);
/* Whether input i has a tangent. */
bool ax_has_tangent(const ax_program *program, const bool *wrt, uint32_t i);

/* AX_INVALID_ARGUMENT: its first result is no float scalar, as gradients want it. */
AX_MUST_USE ax_status ax_check_loss(const ax_program *program);

/* A region whose linearize and transpose rules keep messages in their order: a closed_call, a shard_map. */
bool ax_reverses_messages(const ax_eqn *eqn);

/* jvp.c: ax_jvp_program, by the `linearize` rules or by the `jvp` rules. */
AX_MUST_USE ax_status ax_differentiate(const ax_program *program, const bool *wrt, const ax_want *want, bool linearize,
                                       ax_program **out);

/* As ax_memo_find; more: bytes that say the rest of the question. */
AX_MUST_USE ax_status ax_find_tangents(const char *question, const ax_program *program, const bool *wrt, const ax_want *want,
                                       const void *more, size_t bytes, ax_memo_entry **entry);

/* --- residuals.c: what a linearized program had better make again than keep. --- */

typedef struct ax_residuals {
  const ax_program *joint;
  const bool *held;    /* by input: it is there anyway */
  const bool *known;   /* by equation: it may stand in both halves */
  const bool *again;   /* by equation: it stands in the tangent half in any case */
  const bool *fixed;   /* by value: it depends on no input */
  bool *needed;        /* by value: the tangent half uses it; changed */
  bool *more;          /* by equation: to be made again too if its result is needed; filled in */
} ax_residuals;
AX_MUST_USE ax_status ax_choose_residuals(ax_residuals *residuals);
/* Bytes over all the devices that hold a value of their own. */
double ax_value_weight(const ax_program *program, uint32_t id);

#endif
