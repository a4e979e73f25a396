/* Whether a kernel is proved for all inputs. */
#ifndef AX_CHECK_ALL_INPUTS_H
#define AX_CHECK_ALL_INPUTS_H

#include "axle/check.h"
#include "check/facts.h"
#include "check/prove.h"
#include "check/watch.h"

typedef struct ax_all_inputs {
  ax_check_inputs proved_for; /* if all that is to be proved is .. */
  bool depends;               /* operands that depend on inputs decide acts; else a proof of the run is one for all inputs */
  bool strands_depend;        /* the proof fails, as points may depend on one another that are in no order */
  bool has_proof;             /* .. and here the proof is: of the general run, so of this run too */
  ax_proof proof;
  ax_text why; /* what may be out of bounds; why it is for these inputs alone */
} ax_all_inputs;
void ax_all_inputs_deinit(ax_all_inputs *all);

/* The watch has noted the steps of the run, which has come to its end without a fault. operands: what each of the kernel's operands
   decides (decides.h). symmetry: as of ax_prove. */
AX_MUST_USE ax_status ax_all_inputs_prove(const ax_program *program, ax_watch *watch, const ax_act_record *run,
                                          const uint8_t *operands, const uint32_t *symmetry, ax_all_inputs *out);
/* The same of a kernel all of whose schedules were searched. */
AX_MUST_USE ax_status ax_all_inputs_search(const ax_program *program, const ax_machine *machine, const uint8_t *operands,
                                           ax_all_inputs *out);

#endif
