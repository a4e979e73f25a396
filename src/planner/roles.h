/* What the parameters of a model are: which of them the loop over layers slices, and which have experts. */
#ifndef AX_PLANNER_ROLES_H
#define AX_PLANNER_ROLES_H

#include "planner/step.h"

/* Finds the parameters that the loop slices, and those of experts: m->layered and m->experts, which the model owns. Each function
   that equations call is looked into once for each set of its operands that come from parameters, however many call it. *looks:
   how many bodies were looked into; NULL. AX_OUT_OF_MEMORY. */
AX_MUST_USE ax_status ax_model_find_roles(ax_model *model, uint32_t *looks);

#endif
