/* The rules of a kind of operation: all that passes, the verifier, texts and simulation ask of an operation whatever its kind.
   Walkers ask the rules (ax_op_rules_of) and name no kind. Passes that are about one kind, as fusion is about kernels, name that
   one, and leave all others as they are. So a new kind is a row in op_kinds.def, its fields in ax_op (plan.h), and a file with its
   rules (README.md, "How to add a kind of operation"). */
#ifndef AX_PLAN_OP_H
#define AX_PLAN_OP_H

#include "plan/plan.h"
#include "plan/verify.h"

typedef struct ax_op_rules {
  const char *name;

  /* --- What it touches. --- */

  void (*visit)(const ax_op *op, ax_visit visit, void *context); /* as ax_op_visit; NULL: no buffers */
  ax_block *(*block)(ax_op *op, uint32_t index);                 /* as ax_op_block; NULL: there are no blocks inside */
  /* The buffer that is stored along the axes on which the operation runs, which the verifier checks. NULL: it may run along more,
     or along others. */
  uint32_t (*stored)(const ax_op *op);

  /* --- Text and invariants. --- */

  /* The rest of a line that says where the operation runs and of which equation it is; and the lines of what is inside it. */
  void (*text)(ax_text *text, const ax_plan *plan, const ax_op *op, int indent);
  /* Checks what must hold before its buffers can be visited. AX_INTERNAL. */
  ax_status (*verify)(ax_plan_verifier *verifier, const ax_op *op);
  /* Visits its buffers, checks the blocks inside it and what decides between them. NULL: ax_verify_inside, in that order. */
  ax_status (*verify_inside)(ax_plan_verifier *verifier, ax_op *op);
} ax_op_rules;

/* By kind, AX_OP_NONE among them. */
extern const ax_op_rules *const ax_op_table[];
extern const uint32_t ax_op_kind_count;
static inline const ax_op_rules *ax_op_rules_of(const ax_op *op) { return ax_op_table[op->kind]; }

/* Those of each kind. */
#define AX_OP_KIND(kind, rules) extern const ax_op_rules ax_op_##rules##_rules;
#include "plan/op_kinds.def"
#undef AX_OP_KIND

/* --- For text rules. --- */

void ax_op_text(ax_text *text, const ax_plan *plan, const ax_op *op, int indent);
void ax_block_text(ax_text *text, const ax_plan *plan, const ax_block *block, int indent);
/* `lead`, then the names of the buffers. */
void ax_buffers_text(ax_text *text, const char *lead, const uint32_t *buffers, uint32_t count);

#endif
