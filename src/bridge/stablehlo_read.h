/* Programs of StableHLO modules, inside the house. */
#ifndef AX_BRIDGE_STABLEHLO_READ_H
#define AX_BRIDGE_STABLEHLO_READ_H

#include "axle/stablehlo.h"
#include "hlo/module.h"
#include "ir/text.h"

/* Values whose layouts a module asks for (inspected.c), in the order of the text. */
typedef struct ax_inspected {
  struct ax_inspected *next;
  const void *asks; /* its operation's attribute, while the module is read */
  const char *text; /* what the module says of whom it is for: any bytes */
  size_t text_bytes;
  uint32_t rank;
  bool told;    /* what follows is known: the program was partitioned, and has a mesh */
  bool by_hand; /* it is in a shard_map, where each device has what it has */
  ax_mesh mesh; /* without names */
  ax_spec spec;
} ax_inspected;
typedef struct ax_inspections { /* zeroed; it must live as long as the program */
  ax_arena arena;
  uint32_t count;
  ax_inspected *first, *last;
} ax_inspections;
void ax_inspections_deinit(ax_inspections *inspections);

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
  const bool *by_device; /* then: by input, that devices have each its own by itself though its layout shows one; NULL: of none */
  ax_inspections *inspections; /* takes the values whose layouts the module asks for; they are known when the program is partitioned. Such a
                                  program is good for nothing else. NULL: nobody asks */
} ax_hlo_binding;

/* ax_program_from_stablehlo_with, with the names of inputs and results: what JAX calls them, where the module says it, else inputs as
   the text does; results have none then. binding, names: NULL, there is
   none, and none are wanted. */
AX_MUST_USE ax_status ax_program_from_stablehlo_named(const char *text, size_t bytes, const char *source, const ax_hlo_binding *binding,
                                                      ax_program_names *names, ax_program **out);

#endif
