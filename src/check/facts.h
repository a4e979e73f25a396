/* What a program says of the operands of a kernel, for all inputs and on all visits. */
#ifndef AX_CHECK_FACTS_H
#define AX_CHECK_FACTS_H

#include "check/symbols.h"

typedef struct ax_operand_fact { /* of a value */
  bool fixed;                    /* it does not depend on inputs, and is there once */
  bool decides;                  /* of a kernel's operand: its content decides acts (decides.h) */
  ax_interval range;             /* of its elements */
} ax_operand_fact;

/* operands: by operand of the kernel's equation; `decides` stays as it is. Of a kernel that the program does not have, nothing is
   known: all of int64. */
AX_MUST_USE ax_status ax_facts_of(const ax_program *program, const ax_eqn *kernel, ax_operand_fact *operands);

#endif
