/* Primitives as programs of others, for devices that lack them: a program as a plugin can run it that has StableHLO's own operations and
   nothing besides, as none of LAPACK's functions. */
#ifndef AX_PLAIN_PLAIN_H
#define AX_PLAIN_PLAIN_H

#include "base/base.h"
#include "ir/program.h"

/* What a device lacks; {0}: nothing. */
typedef struct ax_plain_lacks {
  bool lapack; /* functions of LAPACK, which XLA's processors have by jaxlib alone */
  bool collective_broadcast, ragged_all_to_all, messages;
  bool byte_combinations; /* sums, least and largest numbers over devices of integers of less than a byte and of floats of a byte */
  bool two_bit_moves;     /* what integers of two bits are gathered, exchanged, joined or sorted by; exchanges of f8e8m0fnu make NaN of nothing */
  bool wide_sums;         /* such sums of f16 and bf16 are rounded at each step */
  bool narrow_functions;  /* functions of floats of less than 32 bits are absent, or round each step */
  bool starts_once;       /* the start of a reduction by a body is combined as often as the device likes */
  bool short_cuts;        /* what cuts an array of integers of less than a byte, as a padding of less than nothing */
  bool slow_steps;        /* steps of a loop cost much more than small operations: a few large ones are better than many short ones */
  bool short_counts;      /* bits of integers of less than a byte are counted with those of the byte around */
} ax_plain_lacks;

/* The program with each equation that needs what is lacking, at any depth, replaced by a call of a program that does not. Types stay as they
   are. Where nothing is replaced *out is `program` itself, retained. AX_OUT_OF_MEMORY; AX_INTERNAL: a rule gives other types. */
AX_MUST_USE ax_status ax_plain_program(const ax_program *program, const ax_plain_lacks *lacks, ax_program **out);

/* The program with each precv as a ppermute, and without tokens. AX_ABSENT: which psend a precv takes from is not known, or not the same
   on all devices. ax_plain_program does it first, where messages are lacking. */
AX_MUST_USE ax_status ax_plain_messages(const ax_program *program, ax_program **out);

/* What plugins of PJRT lack, by their platform's name. The last entry, without a name, is for all others: what it lacks is what no plugin is
   known to have. */
typedef struct ax_plain_platform {
  const char *name;
  ax_plain_lacks lacks;
} ax_plain_platform;
extern const ax_plain_platform ax_plain_platforms[];

#endif
