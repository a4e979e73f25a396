/* At each item, repetitions of each length up to most_period are tried. The items behind a repetition that was found are passed
   over, so a long loop is compared with itself once for each length. */
#include "sim/fold.h"

enum { most_period = 512, least_times = 3 };

/* Returns how many items from `at` on are followed, `period` items later, by an equal one without a break. */
static uint32_t matching(const uint64_t *keys, uint32_t count, uint32_t at, uint32_t period) {
  uint32_t i = at;
  while (i + period < count && keys[i] == keys[i + period]) i++;
  return i - at;
}

static ax_sim_fold fold_at(const uint64_t *keys, uint32_t count, uint32_t at) {
  ax_sim_fold best = {at, 1, 1};
  for (uint32_t period = 1; period <= most_period && period <= (count - at) / least_times; period++) {
    const uint32_t times = matching(keys, count, at, period) / period + 1;
    if (times >= least_times && times * period > best.times * best.period) best = (ax_sim_fold){at, period, times};
  }
  return best;
}

ax_status ax_sim_fold_make(const uint64_t *keys, uint32_t count, ax_sim_fold **out, uint32_t *out_count) {
  ax_sim_fold *folds = ax_alloc(count * sizeof folds[0]);
  uint32_t made = 0;
  *out = NULL;
  *out_count = 0;
  if (folds == NULL) return ax_out_of_memory(count * sizeof folds[0]);
  for (uint32_t i = 0; i < count; i += folds[made - 1].period * folds[made - 1].times) folds[made++] = fold_at(keys, count, i);
  *out = folds;
  *out_count = made;
  return AX_OK;
}
