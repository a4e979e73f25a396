/* See pace.h. Time is cut into windows. After `until` windows of the way that is kept to come those of a trial, and then the times of the
   last windows of one way are compared with those of the trial, instruction by instruction: the least of each, as a thread may lose its
   processor. The longer a way has proved the better one, the more seldom the other is tried. */
#include "run/pace.h"

enum {
  window = 500000, /* nanoseconds */
  compared = 2,    /* windows of either way */
  first_until = 8,
  most_until = 256
};
static const double clearly = 1.1; /* times faster */

/* Times that are compared from now on are those of this way's next windows. */
static void clear(ax_pace *pace) {
  for (uint32_t i = 0; i < pace->count; i++) {
    pace->steps[i].least[pace->alone] = 0;
    pace->steps[i].trials = 0;
  }
}

static void note(ax_pace *pace, int64_t now) {
  ax_pace_step *step = &pace->steps[pace->step];
  const float time = (float)(now - pace->begun), least = step->least[pace->alone];
  step->least[pace->alone] = least == 0 || time < least ? time : least;
  step->trials += pace->tries;
  pace->elapsed += now - pace->begun;
}

static bool trial_was_faster(const ax_pace *pace) {
  double kept = 0, tried = 0;
  for (uint32_t i = 0; i < pace->count; i++) {
    const ax_pace_step *step = &pace->steps[i];
    if (step->least[0] == 0 || step->least[1] == 0) continue;
    kept += (double)step->trials * (double)step->least[!pace->alone];
    tried += (double)step->trials * (double)step->least[pace->alone];
  }
  return tried * clearly < kept;
}

static void end_trial(ax_pace *pace) {
  pace->tries = false;
  if (trial_was_faster(pace)) {
    pace->until = first_until;
  } else {
    pace->alone = !pace->alone;
    pace->until = pace->until < most_until ? 2 * pace->until : most_until;
  }
}

static void end_window(ax_pace *pace) {
  pace->elapsed = 0;
  pace->windows++;
  if (pace->until == 0) pace->until = first_until;
  if (pace->tries && pace->windows == compared) {
    end_trial(pace);
    pace->windows = 0;
  } else if (!pace->tries && pace->windows == pace->until) {
    pace->alone = !pace->alone;
    pace->tries = true;
    pace->windows = 0;
    clear(pace);
  } else if (!pace->tries && pace->windows == pace->until - compared) {
    clear(pace);
  }
}

bool ax_pace_step_begins(ax_pace *pace, uint32_t instr, int64_t now) {
  if (pace->begun != 0) note(pace, now);
  if (pace->elapsed >= window) end_window(pace);
  pace->step = instr;
  pace->begun = now;
  return pace->alone;
}

void ax_pace_ends(ax_pace *pace, int64_t now) {
  note(pace, now);
  pace->begun = 0;
}
