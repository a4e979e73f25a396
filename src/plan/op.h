/* The rules of a kind of operation: all that passes, the verifier, texts and simulation ask of an operation whatever its kind.
   Walkers ask the rules (ax_op_rules_of) and name no kind. Passes that are about one kind, as fusion is about kernels, name that
   one, and leave all others as they are. So a new kind is a row in op_kinds.def, its fields in ax_op (plan.h), and a file with its
   rules (operations/README.md, "How to add a kind of operation"). */
#ifndef AX_PLAN_OP_H
#define AX_PLAN_OP_H

#include "plan/amount.h"
#include "plan/plan.h"
#include "plan/verify.h"

/* A copy of an operation under other buffers, as in a call of a body or one more step of a loop. */
typedef struct ax_op_renaming {
  ax_arena *arena, *lists; /* of the copy; and of a kernel's list of buffers, which does not outlive fusion */
  ax_status (*buffer)(void *context, uint32_t *buffer); /* puts the buffer of the copy in place of that of the original */
  void (*start)(void *context, const ax_exchange *from, ax_exchange *to); /* numbers the copy of an exchange that is started */
  ax_exchange *(*started)(void *context, ax_exchange *from);              /* the copy of one that is done */
  uint32_t (*loop)(void *context, uint32_t id);                           /* the id of the copy of a loop */
  void *context;
} ax_op_renaming;

/* A sum over a group of devices. */
typedef struct ax_op_sum {
  const ax_axes *names; /* of the group */
  uint32_t in, added;   /* the operand; the buffer that the sum is added to, or AX_NONE */
} ax_op_sum;

typedef struct ax_op_rules {
  const char *name;

  /* --- What it is. --- */

  bool only_computes; /* it makes its results from its operands, and does nothing else: passes move it, or do it before a loop */
  bool makes_results; /* its device writes them by itself while it runs, so they may lie in other memory */
  bool is_exchange, is_message; /* it is one side of one: no operation moves across it if that delays other devices */
  bool is_ordered;    /* it keeps its order among ordered operations, whatever its equation is */
  bool waits;         /* for other devices */

  /* --- What it touches. --- */

  void (*visit)(const ax_op *op, ax_visit visit, void *context); /* as ax_op_visit; NULL: no buffers */
  ax_block *(*block)(ax_op *op, uint32_t index);                 /* as ax_op_block; NULL: there are no blocks inside */
  /* The buffer that is stored along the axes on which the operation runs, which the verifier checks. NULL: it may run along more,
     or along others. */
  uint32_t (*stored)(const ax_op *op);
  /* Visits the buffers that it writes a part of, relying on the rest to keep its old value. NULL: there are none. */
  void (*visit_updated)(const ax_op *op, ax_visit visit, void *context);
  /* The buffer that other devices put a value into. NULL: there is none. */
  uint32_t (*arrival)(const ax_op *op);
  /* Buffer `index` of those that it reads; another buffer of the same type may be written there. NULL beyond the last. The slot is
     NULL if it reads none, or if they cannot be replaced one by one. */
  uint32_t *(*operand)(ax_op *op, uint32_t index);

  /* --- What it takes. --- */

  double (*time)(const ax_plan *plan, const ax_op *op);      /* as ax_op_time; NULL: none */
  ax_amount (*amount)(const ax_plan *plan, const ax_op *op); /* as ax_op_amount; NULL: the bytes of all its buffers, and no flops */
  bool (*does_equation)(const ax_op *op); /* its flops are those of its equation, since `amount` has none; NULL: never */
  const char *(*label)(const ax_op *op);  /* the name in reports; NULL, or a result of NULL: the primitive's */

  /* --- Numbers. --- */

  bool (*makes_nonfinite)(const ax_op *op); /* it may give a NaN or an infinity for finite operands; NULL: never */
  bool (*sums)(const ax_plan *plan, const ax_op *op, ax_op_sum *out); /* it sums floats over a group of devices; NULL: never */

  /* --- Copies. --- */

  /* Makes `op`, which is a copy of the struct, a copy under other buffers. Makes room for blocks, which the caller copies. NULL:
     no operation of the kind is ever copied. AX_OUT_OF_MEMORY. */
  ax_status (*rename)(const ax_op_renaming *renaming, ax_op *op);

  /* --- Text and invariants. --- */

  /* Adds the operation as text. A line begins with the place where it runs and its equation; the rule adds the rest of it, and the
     lines of the blocks inside the operation. */
  void (*text)(ax_text *text, const ax_plan *plan, const ax_op *op, int indent);
  /* Checks what must hold before its buffers can be visited. AX_INTERNAL. */
  ax_status (*verify)(ax_plan_verifier *verifier, const ax_op *op);
  /* Visits its buffers, checks the blocks inside it and what decides between them. NULL: ax_verify_inside, in that order. */
  ax_status (*verify_inside)(ax_plan_verifier *verifier, ax_op *op);
} ax_op_rules;

/* By kind, AX_OP_NONE among them. */
extern const ax_op_rules *const ax_op_table[AX_OP_KINDS];
static inline const ax_op_rules *ax_op_rules_of(const ax_op *op) { return ax_op_table[op->kind]; }

/* The rules of each kind, which stand in the room below (plan/operations). */
#define AX_OP_KIND(kind, rules) extern const ax_op_rules ax_op_##rules##_rules;
#include "plan/op_kinds.def"
#undef AX_OP_KIND

/* --- Questions that the rules answer. --- */

/* Whether it only computes, and neither its kind nor its equation is ordered. */
bool ax_op_only_computes(const ax_op *op);
/* As `operand`; NULL if the slot is. */
uint32_t *ax_op_operand(ax_op *op, uint32_t index);
/* Makes *op, a copy of the struct, a copy under other buffers. AX_INTERNAL: its kind is never copied. AX_OUT_OF_MEMORY. */
AX_MUST_USE ax_status ax_op_rename(const ax_op_renaming *renaming, ax_op *op);

/* --- For rules. --- */

/* Copies a list of buffers, and renames them. */
AX_MUST_USE ax_status ax_op_rename_list(const ax_op_renaming *renaming, ax_arena *arena, uint32_t **list, uint32_t count);
/* Renames a buffer, unless it is AX_NONE. */
AX_MUST_USE ax_status ax_op_rename_buffer(const ax_op_renaming *renaming, uint32_t *buffer);

/* Lines of text: of an operation, and of all operations of a block. */
void ax_op_text(ax_text *text, const ax_plan *plan, const ax_op *op, int indent);
void ax_block_text(ax_text *text, const ax_plan *plan, const ax_block *block, int indent);
/* `lead`, then the names of the buffers. */
void ax_buffers_text(ax_text *text, const char *lead, const uint32_t *buffers, uint32_t count);

#endif
