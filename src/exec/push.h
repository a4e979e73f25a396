/* PUSH and CLEAR instructions: exchanges between the activations of a group. */
#ifndef AX_EXEC_PUSH_H
#define AX_EXEC_PUSH_H

#include "exec/execution.h"

enum { AX_PUSH_BLOCK = 1 << 14 }; /* elements: several contributions are combined in blocks of so many */
enum { AX_PUSH_AT_ONCE = 16 };   /* members at most whose contributions one call combines */

/* My parts of an exchange, put where they go; then its event is signalled. False: I must wait for my turn, and am parked. */
bool ax_push_do(ax_execution *run, ax_worker_slot *worker_slot, const ax_activation *activation, const ax_instr *instr, uint32_t f);
/* My result of a ppermute is zero, when I have no source. */
void ax_push_clear(const ax_activation *activation, const ax_instr *instr);

#endif
