/* What strands do to memory (strands.c), and which of it depends on the order of strands (strand_memory.c), in words
   (strand_told.c). */
#ifndef AX_CHECK_STRAND_ACCESS_H
#define AX_CHECK_STRAND_ACCESS_H

#include "check/strands.h"

typedef struct ax_strand_access { /* of the touch with its number */
  uint32_t step;                  /* of the record */
  uint32_t point;                 /* whose it is; AX_NONE: the pipeline's, of no strand */
  uint32_t strand;                /* AX_NONE likewise */
  bool own;                       /* of memory that each strand has by itself; else of memory that all share */
  bool reads, may;                /* as of ax_point_label */
  bool is_store;                  /* a block of a result is stored: .. */
  uint32_t next;                  /* .. the strand's next store of that result; AX_NONE */
  uint32_t store;                 /* of what a strand has changed in a block: the store; AX_NONE: it is none such */
} ax_strand_access;

typedef enum ax_strand_fault {
  AX_STRAND_READS,  /* own memory: `later` reads what `earlier`, of another strand, has written */
  AX_STRAND_MEETS,  /* shared memory: both touch the same bytes, and one of them writes */
  AX_STRAND_KEEPS,  /* `later` reads what `earlier`, of the same strand, has written: stored by now only as others come between */
  AX_STRAND_WAITS,  /* `later` waits for more than its strand has signalled */
  AX_STRAND_COUNTS, /* `later` reads a count that other strands have changed */
  AX_STRAND_LEAVES  /* the strand of `later` leaves a count, or a phase, for others */
} ax_strand_fault;

typedef struct ax_dependence {
  ax_strand_fault fault;
  uint32_t later, earlier;             /* steps of the record; earlier AX_NONE: not known */
  uint32_t later_point, earlier_point; /* AX_NONE: not known */
  uint32_t region;                     /* of memory; of an object: AX_NONE */
  uint32_t object;
  bool barrier;    /* the object is one */
  ax_bytes *bytes; /* that both touch; ax_free */
  uint32_t byte_count;
} ax_dependence;

typedef struct ax_dependences {
  ax_dependence *items;
  uint32_t count, capacity, most; /* most: that are told */
} ax_dependences;
/* One for each two places in the program is enough. The list owns `bytes` from now on. */
AX_MUST_USE ax_status ax_dependences_add(ax_dependences *list, const ax_act_record *record, ax_dependence made);
void ax_dependences_deinit(ax_dependences *list);

/* points, strands: by step of the record; AX_NONE: it is of none. several: there are several devices. */
AX_MUST_USE ax_status ax_strands_judge_counts(const ax_act_record *record, const uint32_t *points, const uint32_t *strands,
                                              uint32_t strand_count, bool several, ax_dependences *out);
/* touches: of the regions of the record, one for each access. */
AX_MUST_USE ax_status ax_strands_judge_memory(const ax_act_record *record, const ax_touches *touches,
                                              const ax_strand_access *accesses, ax_dependences *out);
/* A dependence as a finding: its text, and the run as its schedule. slots: by region, 1 + the number of the operand or result whose
   blocks are in it; 0: none. */
AX_MUST_USE ax_status ax_dependence_tell(const ax_machine *machine, const ax_act_record *record, const uint32_t *slots,
                                         const ax_dependence *dependence, ax_act_finding *out);

#endif
