/* The engine of this machine and the plans that it has made. */
#ifndef AX_FOURIER_ENGINES_H
#define AX_FOURIER_ENGINES_H

#include "base/base.h"
#include "fourier/engine.h"

/* NULL: Axle was built without ducc0, or for a newer processor than this. Opened when it is first asked for, and never closed. */
const ax_fourier_engine *ax_fourier_engine_here(void);

/* A plan of the engine's, which is made unless it is kept. Plans of little use lately are dropped, those that are taken are not:
   every plan that is taken is given back. AX_OUT_OF_MEMORY, without a message if `quiet`. Any thread. */
typedef struct ax_fourier_plan ax_fourier_plan;
AX_MUST_USE ax_status ax_fourier_take(const ax_fourier_engine *engine, const ax_fourier_key *key, bool quiet, ax_fourier_plan **out);
void ax_fourier_give(ax_fourier_plan *plan);
const void *ax_fourier_made(const ax_fourier_plan *plan); /* what the engine made */

#endif
