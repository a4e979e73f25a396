/* Programs of StableHLO modules, inside the house. */
#ifndef AX_BRIDGE_STABLEHLO_READ_H
#define AX_BRIDGE_STABLEHLO_READ_H

#include "axle/stablehlo.h"
#include "hlo/module.h"
#include "ir/text.h"

/* What the caller knows of the entry function's arguments, where the module leaves extents open; and custom calls. */
typedef struct ax_hlo_binding {
  uint32_t dim_count;
  const ax_stablehlo_dim *dims;
  /* Asked for the type of an argument, which is the program's input `index`, where extents are open; AX_NO_DTYPE: not known. NULL: none
     is. */
  ax_status (*type_of)(void *context, uint32_t index, ax_hlo_slice name, ax_type *out);
  void *context;
  ax_custom_calls *custom_calls; /* borrowed; NULL: none */
  bool entry_tokens;             /* tokens that @main takes and returns are arrays bool[0] (hlo/flatten.h) */
  struct ax_shared *owner; /* holds the module's bytes: the program's constants lie in them, and retain it. NULL: they are copied, since
                              the caller may free the bytes */
  bool parts; /* inputs and results that devices have by themselves, or in sums, have a new first dimension of their parts (bridge/parts.h);
                 the names say which */
  bool inspects; /* with parts: values whose layouts the module asks for are further results (bridge/inspected.c) */
} ax_hlo_binding;

/* ax_program_from_stablehlo_with, with the names of inputs and results: what JAX calls them, where the module says it, else inputs as
   the text does; results have none then. binding, names: NULL, there is
   none, and none are wanted. */
AX_MUST_USE ax_status ax_program_from_stablehlo_named(const char *text, size_t bytes, const char *source, const ax_hlo_binding *binding,
                                                      ax_program_names *names, ax_program **out);

#endif
