/* Primitives as programs of others, for devices that lack them: a program as a plugin can run it that has StableHLO's own operations and
   nothing besides, as none of LAPACK's functions. */
#ifndef AX_PLAIN_PLAIN_H
#define AX_PLAIN_PLAIN_H

#include "base/base.h"
#include "ir/program.h"

/* What a device lacks; {0}: nothing. */
typedef struct ax_plain_lacks {
  bool lapack; /* functions of LAPACK, which XLA's processors have by jaxlib alone */
} ax_plain_lacks;

/* The program with each equation that needs what is lacking, at any depth, replaced by a call of a program that does not. Types stay as they
   are. Where nothing is replaced *out is `program` itself, retained. AX_OUT_OF_MEMORY; AX_INTERNAL: a rule gives other types. */
AX_MUST_USE ax_status ax_plain_program(const ax_program *program, const ax_plain_lacks *lacks, ax_program **out);

#endif
