/* The general run of a kernel: the acts of its runs for all inputs at once, in the order of one run that was recorded. all_inputs.c says
   what it proves. An input that cannot be followed is AX_ABSENT, and the message says why. */
#ifndef AX_CHECK_GENERAL_H
#define AX_CHECK_GENERAL_H

#include "check/abstract.h"
#include "check/facts.h"
#include "check/watch.h"
#include "check/wide.h"

typedef struct ax_general_region { /* memory, in the general run */
  bool there;                      /* the rest is filled in */
  ax_type type;
  uint64_t bytes, count;  /* of it, and of its elements */
  uint32_t *ids;          /* a symbol for each element; AX_NONE: never written. NULL: `fixed`, `named`, or bounds alone */
  const ax_tensor *fixed; /* its content, for all inputs */
  bool named;             /* each element is a symbol of its own, though there are no ids */
  ax_interval range;
  uint64_t version;       /* counts writes */
  uint32_t object_behind; /* of semaphores that a branch has made: the first one's number and 1; 0: of others */
  unsigned char *set;     /* by byte: it has been written, for all inputs; NULL: all of them */
} ax_general_region;

typedef struct ax_general_core {
  uint32_t pc, acts;
  ax_abstract **slot;
  int64_t *counter;
  uint32_t *occurrence;
  ax_stored stored;
} ax_general_core;

typedef struct ax_general_copy { /* a copy under way */
  const ax_core_code_step *step;
  ax_abstract *from, *to, *data;
  bool has_read, all_set; /* all_set: all that it has read was written */
} ax_general_copy;

enum { AX_MOST_OPEN = 16 };
typedef struct ax_general_open { /* bytes that copies of a branch have signalled, and nobody has waited for */
  uint32_t object;
  int64_t bytes;
} ax_general_open;

typedef struct ax_general {
  ax_machine *machine;
  const ax_act_record *run;
  const ax_step_note *notes;    /* by step of the run */
  const ax_operand_fact *facts; /* by operand */
  ax_tensor *const *in;         /* as of ax_state_create */
  ax_symbols *symbols;
  ax_wide wide;
  ax_general_region *regions;
  uint32_t region_count, region_capacity;
  ax_general_core *cores;
  ax_general_copy *copies; /* by agent */
  uint32_t step;           /* of the run, that is looked at */
  bool strands;            /* points of the kernel's grid are in no order: acts need labels (strands.h) */
  uint32_t may;            /* branches that depend on inputs, around the present step: each of its acts may not come */
  uint64_t walked;         /* steps within such branches */
  bool *dropped;           /* by agent of the run: a copy that a branch on inputs has started */
  ax_general_open open[AX_MOST_OPEN];
  uint32_t open_first, open_count; /* of the present way */
  ax_guard guards[AX_MOST_GUARDS]; /* of the ways around the present step */
  uint32_t guard_count;
  uint32_t *way_objects, way_object_count, way_object_capacity; /* by semaphore: the core whose branches use it; AX_NONE */
  char outside[256];                                            /* an access that may be out of bounds; "": there is none */
} ax_general;

AX_MUST_USE ax_status ax_general_create(ax_general *general); /* makes cores and regions; the first fields are filled in */
void ax_general_deinit(ax_general *general);
/* Goes through the run. */
AX_MUST_USE ax_status ax_general_go(ax_general *general);

/* --- Within the general run --- */
/* AX_ABSENT. */
ax_status ax_general_refuse(const ax_core_code_step *step, const char *format, ...) AX_PRINTF(2, 3);
const ax_core_code *ax_general_code(const ax_general *general, uint32_t core);
/* memory: general_memory.c */
AX_MUST_USE ax_status ax_general_make_region(ax_general *general, uint32_t region, const ax_type *type, bool set);
void ax_general_forget_region(ax_general_region *region);
AX_MUST_USE ax_status ax_general_load(ax_general *general, const ax_abstract *view, ax_abstract **out);
/* may: perhaps not all of its elements, or none. */
AX_MUST_USE ax_status ax_general_store(ax_general *general, const ax_abstract *view, const ax_abstract *value, bool may);
void ax_general_forget_content(ax_general *general, uint32_t region); /* it may hold anything */
bool ax_general_is_set(const ax_general *general, uint32_t region, const ax_bytes *runs, uint32_t count);
AX_MUST_USE ax_status ax_general_put_set(ax_general *general, uint32_t region, const ax_bytes *runs, uint32_t count, bool set);
/* acts: general_acts.c. Each adds the act, if the run has it, or as one that may come. */
AX_MUST_USE ax_status ax_general_access(ax_general *general, uint32_t core, const ax_core_code_step *step);
AX_MUST_USE ax_status ax_general_meet(ax_general *general, uint32_t core, const ax_core_code_step *step);
AX_MUST_USE ax_status ax_general_copy_acts(ax_general *general, uint32_t agent);
AX_MUST_USE ax_status ax_general_check_committed(ax_general *general, uint32_t core, const ax_core_code_step *step,
                                                 const ax_abstract *from);
AX_MUST_USE ax_status ax_general_copy_reads(ax_general *general, ax_general_copy *copy);
AX_MUST_USE ax_status ax_general_copy_writes(ax_general *general, ax_general_copy *copy, uint32_t region);
/* cores: general.c */
bool ax_general_known(const ax_general *general, uint32_t core, uint32_t slot,
                      int64_t *out); /* the integer is the same for all inputs */
void ax_general_label(ax_general *general, uint32_t core); /* of the acts that the core comes to where it stands */
AX_MUST_USE ax_status ax_general_walk_acts(ax_general *general, uint32_t core, uint32_t meeting); /* until the core stands there */
/* branches and loops that depend on inputs: general_branches.c. depends: a SWITCH or TEST does; *known: its operand, if not. */
bool ax_general_depends(const ax_general *general, uint32_t core, const ax_core_code_step *step, int64_t *known);
/* Whether `pc` is a part of the branch or loop on inputs that `step`, before which the core stands, begins. */
bool ax_general_is_within(const ax_general *general, uint32_t core, const ax_core_code_step *step, uint32_t pc);
AX_MUST_USE ax_status ax_general_walk_ways(ax_general *general, uint32_t core, const ax_core_code_step *step);
AX_MUST_USE ax_status ax_general_walk_loop(ax_general *general, uint32_t core, const ax_core_code_step *step);
/* acts in them: general_ways.c */
AX_MUST_USE ax_status ax_general_way_act(ax_general *general, uint32_t core, const ax_core_code_step *step); /* no load or store */
bool ax_general_is_closed(const ax_general *general); /* all copies that the present way has started were waited for */
AX_MUST_USE ax_status ax_general_check_objects(const ax_general *general); /* at the end */

#endif
