/* select_n's rule `rewrite`: updates of an array that are chosen before they are made. */
#ifndef AX_OPS_CHOSEN_UPDATE_H
#define AX_OPS_CHOSEN_UPDATE_H

#include "ir/prim.h"

bool ax_choose_update(const ax_rewrite_args *args);

#endif
