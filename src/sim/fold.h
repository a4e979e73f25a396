/* Repetitions in a sequence, so that reports show the steps of a long loop once.

     a b c b c b c d   ->   a once, b c three times, d once */
#ifndef AX_SIM_FOLD_H
#define AX_SIM_FOLD_H

#include "base/base.h"

/* The items [first, first + period) stand `times` times, one after the other. */
typedef struct ax_sim_fold {
  uint32_t first, period, times;
} ax_sim_fold;

/* Cuts a sequence of `count` keys into folds that follow each other; equal keys are equal items. An item that does not repeat with
   its neighbours at least three times is in a fold of its own, whose times is 1. Of several repetitions that begin at one item the
   one that covers most items is taken, and of those the shortest. *out is the caller's: ax_free. */
AX_MUST_USE ax_status ax_sim_fold_make(const uint64_t *keys, uint32_t count, ax_sim_fold **out, uint32_t *out_count);

#endif
