/* Payloads that are lent to another process, which reads them where they lie. A slot in memory that both share says how a loan
   stands:

     lent      nobody has begun to read it
     reading   its receiver reads it: the owner waits
     moved     the owner has copied it, and needs its memory for something else; the slot says where the copy is
     over      it has been read; or there is no such loan any more

   The owner moves what is lent, and the receiver begins to read what is lent; the first of them wins. */
#ifndef AX_PROCESSES_LOANS_H
#define AX_PROCESSES_LOANS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { AX_LOAN_SLOTS = 32 };

typedef enum ax_loan_state { AX_LOAN_OVER, AX_LOAN_LENT, AX_LOAN_READING, AX_LOAN_MOVED } ax_loan_state;

typedef struct ax_loan_slot { /* in shared memory */
  _Alignas(64) _Atomic uint64_t word; /* the loan, and in its two lowest bits the state */
  _Atomic uint64_t address;           /* of what is moved */
} ax_loan_slot;
void ax_loan_slots_clear(ax_loan_slot *slots);

/* Of the owner; one thread at a time. */
typedef struct ax_loans {
  ax_loan_slot *slots; /* NULL: nothing can be lent */
  uint32_t taken;      /* a bit for each */
  uint64_t serial;
} ax_loans;
/* Lends something: the number of the loan. 0: all slots are taken. */
uint64_t ax_loans_begin(ax_loans *loans);
/* There is no such loan any more: frees its slot. */
void ax_loans_end(ax_loans *loans, uint64_t loan);

/* Any thread of either side. */
ax_loan_state ax_loan_look(const ax_loan_slot *slots, uint64_t loan);
/* The owner has copied it to an address. Returns false if its receiver was there first. */
bool ax_loan_move(ax_loan_slot *slots, uint64_t loan, uint64_t address);
/* The receiver begins, or goes on, to read what was lent at *address. READING; or MOVED: *address is where it is now; or OVER. */
ax_loan_state ax_loan_read(ax_loan_slot *slots, uint64_t loan, uint64_t *address);
void ax_loan_return(ax_loan_slot *slots, uint64_t loan); /* the receiver has read it where it was lent */

#endif
