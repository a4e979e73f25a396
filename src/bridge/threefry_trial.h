/* Threefry among other functions: clients of StableHLO send its rounds, as a loop of additions and shifts (jax.random, on processors),
   which computed one by one takes several times as long as the primitive. */
#ifndef AX_BRIDGE_THREEFRY_TRIAL_H
#define AX_BRIDGE_THREEFRY_TRIAL_H

#include "ir/program.h"

/* Whether a program of four operands (the words of keys and of counts, u32, that broadcast to the shape of the results) gives the two
   words that threefry2x32 does. False too where memory is short. */
bool ax_is_threefry(const ax_program *program);

#endif
