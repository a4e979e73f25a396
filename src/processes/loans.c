#include "processes/loans.h"

#include <string.h>

/* A loan is its serial number, from 1, and below it its slot. */
enum { slot_bits = 5, state_bits = 2, states = (1 << state_bits) - 1 };
_Static_assert(AX_LOAN_SLOTS == 1 << slot_bits, "a loan has bits for its slot");

static uint32_t slot_of(uint64_t loan) { return (uint32_t)(loan % AX_LOAN_SLOTS); }
static uint64_t word_of(uint64_t loan, ax_loan_state state) { return loan << state_bits | state; }

void ax_loan_slots_clear(ax_loan_slot *slots) { memset(slots, 0, AX_LOAN_SLOTS * sizeof slots[0]); }

uint64_t ax_loans_begin(ax_loans *loans) {
  if (loans->slots == NULL || loans->taken == UINT32_MAX) return 0;
  const uint32_t slot = (uint32_t)__builtin_ctz(~loans->taken);
  const uint64_t loan = ++loans->serial << slot_bits | slot;
  loans->taken |= 1u << slot;
  atomic_store_explicit(&loans->slots[slot].word, word_of(loan, AX_LOAN_LENT), memory_order_release);
  return loan;
}

void ax_loans_end(ax_loans *loans, uint64_t loan) {
  loans->taken &= ~(1u << slot_of(loan));
  atomic_store_explicit(&loans->slots[slot_of(loan)].word, word_of(loan, AX_LOAN_OVER), memory_order_release);
}

ax_loan_state ax_loan_look(const ax_loan_slot *slots, uint64_t loan) {
  const uint64_t word = atomic_load_explicit(&slots[slot_of(loan)].word, memory_order_acquire);
  return word >> state_bits == loan ? (ax_loan_state)(word & states) : AX_LOAN_OVER;
}

bool ax_loan_move(ax_loan_slot *slots, uint64_t loan, uint64_t address) {
  uint64_t word = word_of(loan, AX_LOAN_LENT);
  atomic_store_explicit(&slots[slot_of(loan)].address, address, memory_order_relaxed);
  return atomic_compare_exchange_strong_explicit(&slots[slot_of(loan)].word, &word, word_of(loan, AX_LOAN_MOVED),
                                                 memory_order_acq_rel, memory_order_acquire);
}

ax_loan_state ax_loan_read(ax_loan_slot *slots, uint64_t loan, uint64_t *address) {
  uint64_t word = word_of(loan, AX_LOAN_LENT);
  if (atomic_compare_exchange_strong_explicit(&slots[slot_of(loan)].word, &word, word_of(loan, AX_LOAN_READING),
                                              memory_order_acq_rel, memory_order_acquire))
    return AX_LOAN_READING;
  const ax_loan_state state = ax_loan_look(slots, loan);
  if (state == AX_LOAN_MOVED) *address = atomic_load_explicit(&slots[slot_of(loan)].address, memory_order_relaxed);
  return state;
}

void ax_loan_return(ax_loan_slot *slots, uint64_t loan) {
  uint64_t word = word_of(loan, AX_LOAN_READING); /* where the run has failed, its owner may have ended it, and lent another */
  (void)atomic_compare_exchange_strong_explicit(&slots[slot_of(loan)].word, &word, word_of(loan, AX_LOAN_OVER),
                                                memory_order_release, memory_order_relaxed);
}
